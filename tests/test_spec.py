"""How an encoder reads and pools, by the files of its folder."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.tables import table
from support.tiny import tiny_bert

from citerec.encode.spec import (
    EncoderSpec,
    Pooling,
    Separator,
    Similarity,
    read_spec,
    write_spec,
)
from citerec.encode.torch_backend import load_parts
from citerec.errors import ModelError
from citerec.text import EncoderForm, encoder_text
from citerec.types import Paper

GRAPHS = Paper(
    id="1", title="citation graph", abstract="a neural model", venue="text search"
)
SHORT = EncoderSpec(max_tokens=128)


def words_read(folder: Path, spec: EncoderSpec, paper: Paper) -> list[str]:
    parts = load_parts(folder, spec)
    [ids] = parts.tokens([encoder_text(paper, spec.form, parts.separator)])
    return parts.tokenizer.convert_ids_to_tokens(ids)


# --- the input


@pytest.mark.parametrize(
    ("changes", "abstract", "read"),
    [
        ({}, GRAPHS.abstract, "citation graph [SEP] a neural model"),
        ({}, "", "citation graph [SEP]"),  # the separator stays
        (
            {"separator": Separator.SPACE},
            GRAPHS.abstract,
            "citation graph a neural model",
        ),
        ({"form": EncoderForm.TITLE}, GRAPHS.abstract, "citation graph"),
        (
            {"form": EncoderForm.VENUE},
            GRAPHS.abstract,
            "citation graph [SEP] text search [SEP] a neural model",
        ),
    ],
)
def test_an_encoder_reads_title_separator_abstract(
    tmp_path: Path, changes: dict[str, Any], abstract: str, read: str
) -> None:
    words = words_read(
        tiny_bert(tmp_path),
        replace(SHORT, **changes),
        replace(GRAPHS, abstract=abstract),
    )

    assert words == ["[CLS]", *read.split(), "[SEP]"]


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

    with pytest.raises(ModelError, match=r"citerec_encoder\.json cannot be used"):
        read_spec(tmp_path)


def sentence_model(
    folder: Path, *kinds: str, pooling: dict[str, object], **more: dict[str, object]
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    modules = [
        {
            "type": f"sentence_transformers.models.{kind}",
            "path": f"{i}_{kind}" if i else "",
        }
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
        (
            {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
            Pooling.MEAN,
        ),
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


def test_a_sentence_model_of_euclidean_similarity_is_compared_by_distance(
    tmp_path: Path,
) -> None:
    folder = sentence_model(
        tmp_path,
        "Transformer",
        "Pooling",
        pooling={"pooling_mode": "cls"},
        config_sentence_transformers={"similarity_fn_name": "euclidean"},
    )

    assert read_spec(folder).similarity is Similarity.L2


REFUSED = table(  # modules, the settings of the pooling, and of the model
    """
Transformer Pooling Dense | {} | {} | Transformer, Pooling, Dense; only
BoW | {} | {} | the modules are BoW
Transformer Pooling | {"pooling_mode": "lasttoken"} | {} | 'lasttoken' is not a valid Pooling
Transformer Pooling | {"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true} | {} | is not a valid Pooling
Transformer Pooling | {"pooling_mode": "cls"} | {"similarity_fn_name": "manhattan"} | expected cosine or euclidean
Transformer Pooling | {"pooling_mode": "cls"} | {"default_prompt_name": "query"} | adds a prompt
"""
)


@pytest.mark.parametrize(("kinds", "pooling", "settings", "fault"), REFUSED)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, kinds: str, pooling: str, settings: str, fault: str
) -> None:
    more = (
        {"config_sentence_transformers": json.loads(settings)}
        if settings != "{}"
        else {}
    )
    folder = sentence_model(
        tmp_path, *kinds.split(), pooling=json.loads(pooling), **more
    )

    with pytest.raises(ModelError, match=fault):
        read_spec(folder)
