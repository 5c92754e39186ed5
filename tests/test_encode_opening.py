"""Opening an encoder: one that an index recorded, and one whose folder is broken."""

import shutil
from pathlib import Path

import pytest
from support.adapters import write_adapter
from support.tiny import tiny_bert

from citerec.encode.opening import EncoderChangedError, open_encoder, reopen
from citerec.encode.spec import EncoderSpec
from citerec.errors import EncoderMismatchError, ModelError

SPEC = EncoderSpec(max_tokens=128)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), spec=SPEC)


# --- what an index recorded


def test_an_index_with_its_own_model_may_be_moved(tmp_path: Path) -> None:
    index = tmp_path / "index"
    tiny_bert(index / "models" / "encoder", spec=SPEC)
    recorded = open_encoder("models/encoder", base=index).fingerprint

    index.rename(tmp_path / "moved")

    assert reopen(recorded, tmp_path / "moved").fingerprint == recorded


def test_a_model_that_is_gone_is_one_clear_line(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model", spec=SPEC)
    recorded = open_encoder(str(folder)).fingerprint

    shutil.rmtree(folder)

    with pytest.raises(ModelError, match=r"model is not a folder; restore it, or embed the index"):
        reopen(recorded, tmp_path / "index")


def test_a_model_that_was_trained_again_is_one_clear_line(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "encoder"
    tiny_bert(folder, spec=SPEC)
    recorded = open_encoder("models/encoder", base=tmp_path).fingerprint

    tiny_bert(folder, spec=SPEC, seed=1)

    with pytest.raises(EncoderChangedError, match=r"trained again.*citerec encode --index") as told:
        reopen(recorded, tmp_path)
    assert isinstance(told.value, EncoderMismatchError)


def test_an_adapter_that_came_later_makes_it_another_model(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model", spec=SPEC)
    recorded = open_encoder(str(folder)).fingerprint

    write_adapter(folder / "adapter")

    with pytest.raises(EncoderChangedError):
        reopen(recorded, tmp_path)


# --- broken folders


def test_a_folder_without_a_part_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    for lost, said in {
        "config.json": "holds no config.json",
        "model.safetensors": "holds no weights",
        "tokenizer*": "holds no tokenizer",
    }.items():
        broken = tmp_path / lost.strip("*")
        shutil.copytree(folder, broken)
        for file in [*broken.glob(lost)]:
            file.unlink()

        with pytest.raises(ModelError, match=said):
            open_encoder(str(broken))


def test_truncated_weights_are_one_clear_line(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    whole = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(ModelError, match="cannot be opened as a model") as told:
        open_encoder(str(broken))
    assert "\n" not in str(told.value)


def test_the_weights_of_another_model_are_one_clear_line(folder: Path, tmp_path: Path) -> None:
    from transformers import RobertaConfig, RobertaModel

    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    config = RobertaConfig(
        vocab_size=90,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
    )
    RobertaModel(config).save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", broken)

    with pytest.raises(ModelError, match=r"cannot be opened|lack \d+ of the tensors"):
        open_encoder(str(broken))


def test_a_model_of_too_few_positions_is_one_clear_line(tmp_path: Path) -> None:
    name = str(tiny_bert(tmp_path, positions=64))

    with pytest.raises(ModelError, match="64 positions, fewer than the 512 tokens"):
        open_encoder(name)


def test_code_in_a_folder_is_not_run(folder: Path, tmp_path: Path) -> None:
    odd = Path(shutil.copytree(folder, tmp_path / "odd"))
    (odd / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    config = (odd / "config.json").read_text()
    map_ = '{"auto_map": {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"},'
    (odd / "config.json").write_text(config.replace("{", map_, 1))

    open_encoder(str(odd))

    assert not (tmp_path / "ran").exists()
