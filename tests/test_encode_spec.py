"""How an encoder reads and pools: what a folder says of it, and what tells two encoders apart."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.tiny import tiny_bert

from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.model import load_parts, tokens_of
from citerec.encode.opening import fingerprint_of, open_encoder, spec_of
from citerec.encode.sentences import sentences
from citerec.encode.source import NAMES, ModelSource
from citerec.encode.spec import (
    EncoderSpec,
    Fingerprint,
    Pooling,
    Reads,
    Separator,
    Similarity,
    read_spec,
    write_spec,
)
from citerec.errors import ModelError
from citerec.text import EncoderForm, encoder_text
from citerec.types import Paper

GRAPHS = Paper(id="1", title="citation graph", abstract="a neural model", venue="text search")
SHORT = EncoderSpec(max_tokens=128)


def words_read(folder: Path, spec: EncoderSpec, paper: Paper) -> list[str]:
    parts = load_parts(folder, spec)
    [ids] = tokens_of(parts, [encoder_text(paper, spec.form, parts.separator)])
    return parts.tokenizer.convert_ids_to_tokens(ids)


# --- the input


def test_specter_reads_title_sep_abstract(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path)

    read = words_read(folder, SHORT, GRAPHS)

    assert read == "[CLS] citation graph [SEP] a neural model [SEP]".split()


def test_without_an_abstract_the_separator_stays(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path)

    read = words_read(folder, SHORT, replace(GRAPHS, abstract=""))

    assert read == "[CLS] citation graph [SEP] [SEP]".split()


def test_a_sentence_transformers_model_reads_title_and_abstract_behind_a_space(
    tmp_path: Path,
) -> None:
    folder = tiny_bert(tmp_path)

    read = words_read(folder, replace(SHORT, separator=Separator.SPACE), GRAPHS)

    assert read == "[CLS] citation graph a neural model [SEP]".split()


def test_the_forms_of_specters_table_two(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path)

    title = words_read(folder, replace(SHORT, form=EncoderForm.TITLE), GRAPHS)
    venue = words_read(folder, replace(SHORT, form=EncoderForm.VENUE), GRAPHS)

    assert title == "[CLS] citation graph [SEP]".split()
    assert venue == "[CLS] citation graph [SEP] text search [SEP] a neural model [SEP]".split()


def test_a_long_paper_is_cut_at_512_tokens(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path, positions=512)
    paper = Paper(id="1", title="graph", abstract="citation " * 600)

    read = words_read(folder, EncoderSpec(), paper)

    assert read == ["[CLS]", "graph", "[SEP]", *["citation"] * 508, "[SEP]"]


# --- what a folder says


def test_a_folder_that_says_nothing_is_of_specters_kind(tmp_path: Path) -> None:
    spec = read_spec(tiny_bert(tmp_path))

    assert spec == EncoderSpec(
        pooling=Pooling.CLS,
        max_tokens=512,
        form=EncoderForm.TITLE_ABSTRACT,
        separator=Separator.TOKEN,
        similarity=Similarity.L2,
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    spec = EncoderSpec(pooling=Pooling.MEAN, max_tokens=77, form=EncoderForm.AUTHORS)

    write_spec(tmp_path, spec)

    assert read_spec(tmp_path) == spec


def test_a_spec_that_is_not_whole_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "citerec_encoder.json").write_text('{"pooling": "cls"')

    with pytest.raises(ModelError, match=r"citerec_encoder\.json cannot be parsed"):
        read_spec(tmp_path)


def sentence_model(
    folder: Path, *kinds: str, pooling: dict[str, object], **more: dict[str, object]
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": f"{i}_{kind}" if i else ""}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    for name, content in more.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("said", "pooling"),
    [
        ({"pooling_mode_cls_token": True}, Pooling.CLS),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, Pooling.MEAN),
        ({"pooling_mode_max_tokens": True}, Pooling.MAX),
        ({"pooling_mode": "mean"}, Pooling.MEAN),
    ],
)
def test_the_pooling_of_sentence_transformers(
    tmp_path: Path, said: dict[str, object], pooling: Pooling
) -> None:
    folder = sentence_model(
        tmp_path,
        "Transformer",
        "Pooling",
        "Normalize",
        pooling=said,
        sentence_bert_config={"max_seq_length": 99},
    )

    assert read_spec(folder) == EncoderSpec(
        pooling=pooling,
        max_tokens=99,
        separator=Separator.SPACE,
        similarity=Similarity.COSINE,
    )


def test_a_sentence_model_of_euclidean_similarity_is_compared_by_distance(tmp_path: Path) -> None:
    folder = sentence_model(
        tmp_path,
        "Transformer",
        "Pooling",
        pooling={"pooling_mode": "cls"},
        config_sentence_transformers={"similarity_fn_name": "euclidean"},
    )

    assert read_spec(folder).similarity is Similarity.L2


@pytest.mark.parametrize(
    ("kinds", "pooling", "more", "said"),
    [
        (["Transformer", "Pooling", "Dense"], {}, {}, "Transformer, Pooling, Dense; expected"),
        (["BoW"], {}, {}, "the modules are BoW"),
        (
            ["Transformer", "Pooling"],
            {"pooling_mode": "lasttoken"},
            {},
            "pooled by lasttoken; expected cls",
        ),
        (
            ["Transformer", "Pooling"],
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            {},
            "pooled by cls and mean",
        ),
        (
            ["Transformer", "Pooling"],
            {"pooling_mode": "cls"},
            {"config_sentence_transformers": {"similarity_fn_name": "manhattan"}},
            "'manhattan'; expected cosine or euclidean",
        ),
        (
            ["Transformer", "Pooling"],
            {"pooling_mode": "cls"},
            {"config_sentence_transformers": {"default_prompt_name": "query"}},
            "adds a prompt",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path,
    kinds: list[str],
    pooling: dict[str, object],
    more: dict[str, dict[str, object]],
    said: str,
) -> None:
    folder = sentence_model(tmp_path, *kinds, pooling=pooling, **more)

    with pytest.raises(ModelError, match=said):
        read_spec(folder)


# --- the fingerprint


def fingerprint(folder: Path, spec: EncoderSpec, name: str = "m", place: str = "m") -> Fingerprint:
    return fingerprint_of(ModelSource(name, place, folder), load_parts(folder, spec))


def test_the_fingerprint_is_not_changed_by_name_or_place(tmp_path: Path) -> None:
    first, second = tiny_bert(tmp_path / "a"), tiny_bert(tmp_path / "b")

    one = fingerprint(first, SHORT)
    other = fingerprint(second, SHORT, name="another", place="elsewhere")

    assert one.key == other.key
    assert one != other


@pytest.mark.parametrize(
    "change",
    [
        {"pooling": Pooling.MEAN},
        {"max_tokens": 64},
        {"form": EncoderForm.TITLE},
        {"separator": Separator.SPACE},
        {"similarity": Similarity.COSINE},
    ],
)
def test_the_fingerprint_is_changed_by_how_it_reads_and_pools(
    tmp_path: Path, change: dict[str, object]
) -> None:
    folder = tiny_bert(tmp_path)

    changed = replace(SHORT, **change)  # pyright: ignore[reportArgumentType]

    assert fingerprint(folder, SHORT).key != fingerprint(folder, changed).key


def test_the_fingerprint_is_changed_by_weights_and_tokenizer(tmp_path: Path) -> None:
    plain = fingerprint(tiny_bert(tmp_path / "a"), SHORT)
    weights = fingerprint(tiny_bert(tmp_path / "b", seed=1), SHORT)
    words = fingerprint(tiny_bert(tmp_path / "c", words=["reranker"]), SHORT)

    assert len({plain.key, weights.key, words.key}) == 3
    assert plain.tokenizer == weights.tokenizer != words.tokenizer


def test_a_fingerprint_survives_its_way_through_json(tmp_path: Path) -> None:
    mine = open_encoder(str(tiny_bert(tmp_path, spec=SHORT))).fingerprint

    assert Fingerprint.from_json(json.loads(json.dumps(mine.to_json()))) == mine


# --- a sentence at a time


def test_what_was_written_before_papers_were_read_by_sentence_still_opens_and_is_the_same(
    tmp_path: Path,
) -> None:
    folder = tiny_bert(tmp_path, spec=SHORT)
    fingerprint = open_encoder(str(folder)).fingerprint
    recorded = fingerprint.to_json()

    del recorded["spec"]["reads"]
    (folder / "citerec_encoder.json").write_text(json.dumps(recorded["spec"]))

    assert Fingerprint.from_json(recorded).key == fingerprint.key
    assert read_spec(folder) == SHORT


def test_sentence_berts_way_sums_title_and_sentences_to_unit_length(tmp_path: Path) -> None:
    spec = replace(SHORT, pooling=Pooling.MEAN)
    plain = tiny_bert(tmp_path / "plain", spec=spec)
    apart = replace(spec, reads=Reads.SENTENCES, similarity=Similarity.COSINE)
    by_sentence = tiny_bert(tmp_path / "apart", spec=apart)
    paper = replace(GRAPHS, abstract="A neural model. Text search?")

    pieces = [
        Paper(id="t", title="citation graph"),
        Paper(id="1", title="A neural model."),
        Paper(id="2", title="Text search?"),
    ]
    whole = replace(spec, separator=Separator.SPACE)
    write_spec(plain, whole)
    total = open_encoder(str(plain)).encode(pieces).sum(0)
    [found, alone] = open_encoder(str(by_sentence)).encode([paper, pieces[0]])

    assert np.allclose(found, total / np.linalg.norm(total), atol=2e-2)  # bfloat16 where there is
    assert np.linalg.norm(alone) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Smith et al. Show it. So did J. Doe.", ["Smith et al. Show it.", "So did J. Doe."]),
        ("By 3.5 points, e.g. here. (See below.)", ["By 3.5 points, e.g. here.", "(See below.)"]),
        ("no capital. after it", ["no capital. after it"]),
        ("", []),
    ],
)
def test_sentences_end_before_a_capital_and_not_behind_what_is_short(
    text: str, cut: list[str]
) -> None:
    assert sentences(text) == cut


def test_sentence_bert_by_its_name_reads_by_sentence_and_by_its_hub_id_whole(
    tmp_path: Path,
) -> None:
    folder = tiny_bert(tmp_path, spec=replace(SHORT, pooling=Pooling.MEAN))

    named = spec_of(ModelSource("sent-bert", "sent-bert", folder))
    whole = spec_of(ModelSource(NAMES["sent-bert"], NAMES["sent-bert"], folder))

    assert (named.reads, named.similarity) == (Reads.SENTENCES, Similarity.COSINE)
    assert whole.reads is Reads.WHOLE


def test_scibert_as_it_is_gives_the_last_layers_cls(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = tiny_bert(tmp_path, positions=512)  # plain BERT: the folder says nothing
    read = f"{GRAPHS.title}[SEP]{GRAPHS.abstract}"
    tokens = AutoTokenizer.from_pretrained(folder)(read, return_tensors="pt")

    with torch.inference_mode():
        states = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state
    config = EncodeConfig(precision=Precision.FLOAT32)
    [found] = open_encoder(str(folder), config).encode([GRAPHS])

    assert NAMES["scibert"] == "allenai/scibert_scivocab_uncased"
    assert np.allclose(found, states[0, 0].numpy(), atol=1e-5)
