"""The commands that rerank, as a user runs them."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citerec.cli import run
from citerec.config import RerankConfig
from citerec.folder import IndexFolder, open_index
from citerec.io import seal_model
from citerec.rerank.reranker import open_reranker
from citerec.tuned import RerankWeight, write_tuned

Cli = Callable[..., "tuple[int, str, str]"]
TITLE = "Dense retrieval of passages"
RUN = ("--dtype", "float32", "--threads", 1)
PLAIN = ("--ranker", "none")  # as the stages before the ranker leave the list
ASK = ("recommend", "--title", TITLE, "--format", "json", "--k", 5, *PLAIN)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in an empty folder, in this process; returns code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def sample(dense_sample: IndexFolder, tmp_path: Path) -> Path:
    """A copy of the sample's index with vectors, under indexes/."""
    copy = tmp_path / "indexes" / "sample"
    shutil.copytree(dense_sample.path, copy)
    return copy


@pytest.fixture
def own(sample: Path, tiny_reranker_model: str) -> Path:
    """The same with a reranker of its own, which `verify` knows nothing of."""
    return Path(shutil.copytree(tiny_reranker_model, sample / "models" / "reranker"))


def test_recommend_reranks_with_the_index_s_own_and_says_how(cli: Cli, own: Path) -> None:
    code, out, err = cli(*ASK, *RUN, "--rerank-depth", 20)

    assert code == 0
    assert "citerec: reranking the best 20 by models/reranker: 32+32 tokens, onnx float32\n" in err
    items: list[dict[str, Any]] = json.loads(out)
    assert [item["stages"]["rerank"]["rank"] for item in items] == [1, 2, 3, 4, 5]
    assert {name for item in items for name in item["stages"]} == {"bm25", "dense", "rerank"}


def test_none_is_the_list_of_the_first_stages(cli: Cli, own: Path) -> None:
    code, out, err = cli(*ASK, "--reranker", "none")

    assert (code, err) == (0, "")
    assert all("rerank" not in item["stages"] for item in json.loads(out))


def test_the_table_says_what_the_reranker_thinks(cli: Cli, own: Path) -> None:
    code, out, _ = cli(
        "recommend", "--title", TITLE, "--k", 3, *RUN, "--rerank-depth", 5, "--explain", *PLAIN
    )

    assert code == 0
    assert len(re.findall(r"reranker: probability [<>]?\d+%", out)) == 3


def test_a_run_of_a_reranked_list_is_in_order(cli: Cli, own: Path) -> None:
    ask = ("recommend", "--title", TITLE, "--format", "trec", "--k", 50, *PLAIN)

    code, out, _ = cli(*ask, *RUN, "--rerank-depth", 10)

    scores = [float(line.split()[4]) for line in out.splitlines()]
    assert (code, len(scores)) == (0, 50)
    assert scores == sorted(scores, reverse=True)


def test_evaluate_compares_what_is_reranked(cli: Cli, own: Path) -> None:
    code, _, err = cli("evaluate", "--output", "report", *RUN, "--rerank-depth", 5)

    report = json.loads(Path("report/report.json").read_text())
    assert code == 0
    names = [system["name"] for system in report["systems"]]
    assert names[:6] == ["bm25", "dense", "rrf", "bm25+rerank", "rerank", "rerank-alone"]
    assert "reranking the best 5 by models/reranker" in err
    [told] = report["provenance"]["settings"]["rerank"]
    assert (told["model"], told["depth"], told["weight"]) == ("models/reranker", 5, 1)
    assert (told["backend"], told["precision"]) == ("torch", "float32")


@pytest.fixture
def foreign(own: Path) -> Path:
    """A reranker that was trained on other papers, as an index that is built anew takes it along."""
    (own / "training.json").write_text('{"corpus_sha256": "f00", "splits_sha256": "f00"}')
    seal_model(own)
    return own


def test_a_reranker_of_other_papers_is_measured_only_if_it_is_named(
    cli: Cli, foreign: Path
) -> None:
    one = ("evaluate", "--output", "report", *RUN, "--rerank-depth", 5)

    def systems() -> list[str]:
        report = json.loads(Path("report/report.json").read_text())
        return [system["name"] for system in report["systems"]]

    code, _, err = cli(*one)
    assert (code, "rerank" in systems()) == (0, False)
    assert "warning: models/reranker is not used: it, its base or its teacher was trained on" in err
    assert "warning: models/reranker is not used" in cli("tune", "--dry-run")[2]

    code, _, err = cli(*one, "--reranker", "models/reranker", "--systems", "rerank")
    assert (code, systems()) == (0, ["rerank"])
    assert "citerec: models/reranker was not trained on these papers and splits" in err

    code, _, err = cli(*ASK, *RUN, "--rerank-depth", 5)
    assert code == 0
    assert "citerec: models/reranker was not trained on these papers and splits" in err
    assert "reranking the best 5 by models/reranker" in err


def test_all_systems_are_those_that_there_are_models_for(cli: Cli, sample: Path) -> None:
    code, _, _ = cli("evaluate", "--output", "report", "--systems", "all")

    names = [s["name"] for s in json.loads(Path("report/report.json").read_text())["systems"]]
    assert code == 0
    assert "rrf" in names
    assert "rerank" not in names


def test_tune_keeps_a_weight_that_is_proved_better_and_recommend_says_which_is_used(
    cli: Cli, own: Path
) -> None:
    code, out, err = cli("tune", *RUN, "--rerank-depth", 5)

    file = own.parent / "fusion" / "fusion.json"
    written = json.loads(file.read_text())
    check = written["how"]["settings"]["checks"]["weight"]
    assert code == 0
    assert written["how"]["settings"]["reranked_metrics"]["f1@20"] >= 0
    assert "rerank weight" in out
    assert "rerank weight: " in err
    assert ("rerank_weight" in written) == check["kept"]
    index = open_index(own.parent.parent)
    asked = (*ASK, *RUN, "--rerank-depth", 5, "--verbose")

    shown = "1 (default; tuning on 29 dev queries found nothing better, p 0.41)"
    settings = {"split": "dev", "queries": 29, "checks": {"weight": {"p": 0.41}}}
    write_tuned(index, None, {"settings": settings})
    assert f"rerank weight: {shown}\n" in cli(*asked)[2]

    weights = open_reranker(index, RerankConfig()).settings["weights"]
    write_tuned(index, None, {"settings": settings}, RerankWeight(0.35, weights, 5, 32, 32))
    assert "rerank weight: 0.35 (tuned on 29 dev queries)\n" in cli(*asked)[2]
    assert "rerank weight: 0.15 (option)\n" in cli(*asked, "--rerank-weight", 0.15)[2]
    assert "weight 0.35, tuned at depth 5 without a ranker" in cli("info")[1]

    code, _, _ = cli("tune", "--reranker", "none")  # which does not try it
    assert (code, json.loads(file.read_text())["rerank_weight"]["weight"]) == (0, 0.35)


def test_tuning_the_reranker_needs_no_vectors(
    cli: Cli, sample_index: IndexFolder, tmp_path: Path, tiny_reranker_model: str
) -> None:
    shutil.copytree(sample_index.path, tmp_path / "indexes" / "words")

    code, out, _ = cli("tune", "--reranker", tiny_reranker_model, *RUN, "--rerank-depth", 5)

    assert code == 0
    assert "rerank weight" in out
    assert "fusion" not in out.splitlines()[0]
