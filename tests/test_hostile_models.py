"""A model folder may be damaged, or made to harm; one without checksums of ours opens as before."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.harmed import harms
from support.tiny_ranker import tiny_ranker

from citerec.encode.source import find_model
from citerec.errors import IndexDamagedError, ModelDamagedError, ModelError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.manifest import MODEL_SUMS, check_model, model_faults, seal_model
from citerec.rank.ltr import find_ranker
from citerec.rerank.choose import auto_reranker
from citerec.tuned import read_tuned

TESTS = Path(__file__).parent


@pytest.fixture
def model(tiny_model: str, tmp_path: Path) -> Path:
    """A model of a hand, sealed as our trainers do."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    seal_model(folder)
    return folder


@pytest.fixture
def copy(sample_index: IndexFolder, tmp_path: Path) -> Path:
    """A copy of an index, for harm."""
    return Path(shutil.copytree(sample_index.path, tmp_path / "copy"))


def test_a_changed_byte_of_a_small_file_is_found_at_every_opening(model: Path) -> None:
    names = sorted(file.name for file in model.iterdir() if file.name != MODEL_SUMS)
    assert "config.json" in names
    assert "tokenizer.json" in names

    for name in names:
        content = (model / name).read_bytes()
        for _, harmed in harms(content):
            if harmed != content:
                (model / name).write_bytes(harmed)
                with pytest.raises(ModelDamagedError, match=f"{name} is not what was written"):
                    find_model(str(model))
        (model / name).unlink()
        with pytest.raises(ModelDamagedError, match=f"{name} is missing"):
            find_model(str(model))
        (model / name).write_bytes(content)

    assert find_model(str(model)).folder == model


def test_a_model_of_other_software_opens_without_checksums(model: Path) -> None:
    (model / MODEL_SUMS).unlink()

    assert find_model(str(model)).folder == model


def test_a_model_that_we_trained_has_checksums(model: Path) -> None:
    (model / MODEL_SUMS).unlink()
    (model / "training.json").write_text("{}")

    with pytest.raises(ModelDamagedError, match=r"checksums.json is missing"):
        check_model(model)


def test_its_model_card_may_be_edited(model: Path) -> None:
    (model / "README.md").write_text("One")
    seal_model(model)
    (model / "README.md").write_text("Another")

    check_model(model)
    assert model_faults(model) == ["README.md is not what was written"]


def test_checksums_of_before_which_tell_no_sizes_count(model: Path) -> None:
    from citerec.sums import seal_of, serialised

    sums = json.loads((model / MODEL_SUMS).read_bytes())["files"]
    (model / MODEL_SUMS).write_bytes(serialised({"files": sums, "seal": seal_of(sums)}))

    assert model_faults(model) == []
    (model / "config.json").write_text("{}")
    assert model_faults(model, whole=False) == ["config.json is not what was written"]


def test_a_model_in_the_cache_of_a_hub_is_made_of_links(model: Path, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "hub" / "blobs", tmp_path / "hub" / "snapshots" / "1"
    snapshot.parent.mkdir(parents=True)
    shutil.copytree(model, blobs)
    snapshot.mkdir()
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")

    check_model(snapshot)
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to(model / "config.json")
    with pytest.raises(ModelDamagedError, match=r"config.json is a link"):
        check_model(snapshot)


def test_nobody_waits_at_a_pipe(model: Path) -> None:
    (model / MODEL_SUMS).unlink()
    (model / "model.safetensors").unlink()
    os.mkfifo(model / "model.safetensors")

    with pytest.raises(ModelDamagedError, match=r"model.safetensors is a pipe or a device"):
        find_model(str(model))


@pytest.mark.parametrize(
    ("record", "content"),
    [
        ("model.safetensors.index.json", {"weight_map": {"a": "../x.safetensors"}}),
        ("model.safetensors.index.json", {"weight_map": {"a": "/x.safetensors"}}),
        ("tokenizer_config.json", {"vocab_file": "/etc/passwd"}),
        ("tokenizer_config.json", {"tokenizer_file": "../../../../../../../../etc/passwd"}),
    ],
)
def test_a_model_names_no_file_outside_its_folder(
    model: Path, record: str, content: dict[str, object]
) -> None:
    (model / record).write_text(json.dumps(content))
    seal_model(model)

    with pytest.raises(ModelError, match=f"{record} names the file .* not a path inside the"):
        find_model(str(model))


def test_a_path_of_the_machine_that_a_model_was_made_on_does_not_matter(model: Path) -> None:
    named = {"tokenizer_file": "/root/.cache/huggingface/nowhere/tokenizer.json"}
    (model / "tokenizer_config.json").write_text(json.dumps(named))
    seal_model(model)

    assert find_model(str(model)).folder == model


# --- Models of an index.


@pytest.mark.parametrize(
    ("name", "spec", "find"),
    [
        ("ranker", "ranker.json", lambda index: find_ranker("auto", index)),
        ("reranker", "config.json", lambda index: Path(str(auto_reranker(index, default=True)))),
    ],
)
def test_an_own_model_whose_record_is_gone_is_not_passed_over(
    copy: Path, name: str, spec: str, find: Callable[[IndexFolder], Path | None]
) -> None:
    tiny_ranker(copy / "models" / name, {"bm25": 1.0})
    (copy / "models" / name / "config.json").write_text("{}")
    seal_model(copy / "models" / name)
    assert find(open_index(copy)) == copy / "models" / name

    (copy / "models" / name / spec).unlink()
    with pytest.raises(IndexDamagedError, match=f"models/{name}/{spec} is missing; train"):
        find(open_index(copy))
    with pytest.raises(IndexDamagedError, match=f"models/{name}/{spec} is missing"):
        verify_index(copy)

    shutil.rmtree(copy / "models" / name)  # which removes it on purpose
    assert find(open_index(copy)) != copy / "models" / name


def test_tuned_weights_that_are_gone_are_not_passed_over(copy: Path) -> None:
    (copy / "models" / "fusion").mkdir(parents=True)

    with pytest.raises(Exception, match=r"fusion.json: cannot be read; tune again"):
        read_tuned(open_index(copy))


# --- Each file harmed in turn.


def outcomes(index: Path, how: str, most: int, *names: str) -> list[tuple[str, str, str]]:
    """Run `harmed.py`; what crashes it fails here."""
    command = [sys.executable, "-m", "support.harmed", index, how, str(most), *names]
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    child = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = child.stdout.splitlines()

    assert child.returncode == 0, (lines[-1:], child.stderr[-1000:])
    decoder = json.JSONDecoder()
    found: list[tuple[str, str, str]] = []
    for line in lines:
        (name, harm), end = decoder.raw_decode(line)
        found.append((name, harm, json.loads(line[end:])))
    return found


@pytest.fixture
def whole(dense_sample: IndexFolder, tmp_path: Path) -> Path:
    """An index with vectors and a ranker of its own, for harm."""
    others_leave = shutil.ignore_patterns("models", "tokens")
    index = Path(shutil.copytree(dense_sample.path, tmp_path / "whole", ignore=others_leave))
    tiny_ranker(index / "models" / "ranker", {"bm25": 1.0, "co_cited": 1.0})
    return index


@pytest.mark.slow  # that a changed byte is found is tested file by file for a model and for an index
def test_no_harm_to_any_file_goes_unseen(whole: Path) -> None:
    found = outcomes(whole, "plain", 2)

    assert len(found) > 50
    assert [one for one in found if "DamagedError: " not in one[2]] == []


def test_harm_with_checksums_that_fit_is_an_error_or_a_list_but_no_crash(whole: Path) -> None:
    few = ("citations/indices.npy", "dense/vectors.faiss", "models/ranker/full.txt")

    found = outcomes(whole, "sealed", 2, "papers.arrow", *few)

    assert len(found) == 8
    assert [one for one in found if one[2].startswith("!")] == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "sealed"])
def test_every_harm_to_any_file_is_an_error_or_a_list_but_no_crash(whole: Path, how: str) -> None:
    found = outcomes(whole, how, 6)

    assert len(found) > 150
    assert [one for one in found if one[2].startswith("!")] == []
