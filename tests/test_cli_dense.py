"""The commands that make and use vectors, as a user runs them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.corpora import SAMPLE
from support.tiny import tiny_bert

from citerec.cli import run
from citerec.config import FuseConfig, FuseMethod
from citerec.encode.spec import EncoderSpec
from citerec.folder import IndexFolder, open_index
from citerec.tuned import write_tuned

Cli = Callable[..., "tuple[int, str, str]"]
TITLE = "Dense retrieval of passages"
PLAIN = ("--ranker", "none")  # as the stages before the ranker leave the list


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


def test_auto_offline_takes_minilm_and_says_so(cli: Cli, write_jsonl: Callable[..., Path]) -> None:
    corpus = write_jsonl([{"id": "a", "title": TITLE}, {"id": "b", "title": "Graphs"}])

    code, out, err = cli("index", corpus, "--index", "made")
    info = cli("info", "--index", "made")[1]

    assert code == 0
    assert "2  papers" in out
    assert "citerec: warning: --encoder auto: allenai/specter" in err
    assert "MiniLM" in err
    assert "encoder  minilm (weights 53aa5117) from minilm" in info
    assert "vectors  2 of 384 dimensions, exact" in info


def test_auto_keeps_the_encoder_of_an_index_that_is_there(cli: Cli, tiny_model: str) -> None:
    cli("index", SAMPLE, "--index", "made", "--encoder", tiny_model)

    code, _, err = cli("index", SAMPLE, "--index", "made", "--force")

    assert (code, err) == (0, "")
    assert open_index(Path("made")).manifest.settings["encoder"]["source"] == tiny_model


def test_encode_gives_an_index_vectors_that_recommend_uses(cli: Cli, tiny_model: str) -> None:
    cli("index", SAMPLE, "--index", "made", "--encoder", "none")

    code, out, err = cli("encode", "--index", "made", "--encoder", tiny_model)
    asked = cli(
        "recommend", "--index", "made", "--title", TITLE, "--format", "json", "--k", 5, *PLAIN
    )

    assert (code, out) == (0, "")
    assert "made: encoded by" in err
    items: list[dict[str, Any]] = json.loads(asked[1])
    assert {name for item in items for name in item["stages"]} == {"bm25", "dense"}
    for item in items:
        ranks = [stage["rank"] for stage in item["stages"].values()]
        assert item["score"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


def test_encoder_none_is_bm25_alone(cli: Cli, sample: Path) -> None:
    code, out, _ = cli(
        "recommend", "--title", TITLE, "--encoder", "none", "--format", "json", "--k", 3, *PLAIN
    )

    assert code == 0
    assert [list(item["stages"]) for item in json.loads(out)] == [["bm25"]] * 3


def test_evaluate_compares_the_stages_and_their_fusion(cli: Cli, sample: Path) -> None:
    code, _, _ = cli("evaluate", "--output", "report")

    report = json.loads(Path("report/report.json").read_text())
    assert code == 0
    assert [system["name"] for system in report["systems"]] == [
        "bm25",
        "dense",
        "rrf",
        "expanded",
        "ranker",
        "most-cited",
        "random",
        "oracle",
    ]
    assert report["provenance"]["settings"]["index"]["encoder"]["dim"] == 32


def test_tune_writes_what_recommend_then_uses(cli: Cli, sample: Path) -> None:
    dry = cli("tune", "--dry-run")
    assert not (sample / "models").exists()

    code, out, err = cli("tune")

    assert (dry[0], code) == (0, 0)
    assert "rrf, k 60" in out
    assert "weighted, bm25 0.5 + dense 0.5" in out
    assert "fusion: " in err
    assert "recommend uses these settings from now on" in err
    assert "recommend does so" not in dry[2]
    file = sample / "models" / "fusion" / "fusion.json"
    written = json.loads(file.read_text())
    check = written["how"]["settings"]["checks"]["fusion"]
    assert (written["fuse"] is not None) == check["kept"]  # an untrained encoder on 29 queries
    assert ("not kept" in err) == (not check["kept"])
    assert cli("verify")[0] == 0


def test_what_is_in_force_is_said_with_where_it_comes_from(cli: Cli, sample: Path) -> None:
    index = open_index(sample)

    def said(*options: str) -> str:
        return cli("recommend", "--title", TITLE, "--k", 1, "--verbose", *options)[2]

    assert "fusion  rrf, k 60 (default)\n" in cli("info")[1]
    assert "fusion: rrf, k 60 (default)\n" in said()
    assert "fusion: weighted, bm25 0.5 + dense 0.5 (option)\n" in said("--fusion", "weighted")
    assert "ranker: the default ranker (default)\n" in said()

    settings = {"split": "dev", "queries": 29}
    tuned = FuseConfig(method=FuseMethod.WEIGHTED, bm25_weight=0.3, dense_weight=0.7)
    write_tuned(index, tuned, {"settings": settings})

    shown = "weighted, bm25 0.3 + dense 0.7 (tuned on 29 dev queries)\n"
    assert f"fusion  {shown}" in cli("info")[1]
    assert f"fusion: {shown}" in said()

    settings |= {"checks": {"fusion": {"p": 0.41}, "weight": None}}
    write_tuned(index, None, {"settings": settings})

    shown = "rrf, k 60 (default; tuning on 29 dev queries found nothing better, p 0.41)\n"
    assert f"fusion  {shown}" in cli("info")[1]
    assert f"fusion: {shown}" in said()


def test_a_trained_encoder_lies_in_the_index_and_moves_with_it(
    cli: Cli, sample: Path, tiny_model: str, tmp_path: Path
) -> None:
    (tmp_path / "short.toml").write_text("max_tokens = 64\n")  # the tiny model has 128 positions
    how = ("--epochs", 1, "--config", tmp_path / "short.toml")
    trained = cli("train-encoder", "--model", tiny_model, *how)
    embedded = cli("encode", "--encoder", sample / "models" / "encoder")
    sample.rename(tmp_path / "indexes" / "moved")

    code, out, _ = cli("recommend", "--title", TITLE, "--format", "json", "--k", 1)

    assert (trained[0], embedded[0], code) == (0, 0, 0), (trained, embedded)
    assert "dense" in json.loads(out)[0]["stages"]
    assert cli("verify")[0] == 0


BAD: dict[str, tuple[list[str], str]] = {
    "another encoder": (
        ["recommend", "--title", TITLE, "--encoder", "OTHER"],
        "leave --encoder out, or embed it anew",
    ),
    "an encoder that is nowhere": (["encode", "--encoder", "./nowhere"], "nowhere"),
    "encode with none": (["encode", "--encoder", "none"], "choose one with --encoder MODEL"),
    "a device that is not here": (
        ["encode", "--encoder", "OTHER", "--device", "cuda:7"],
        "no device 'cuda:7' here",
    ),
    "a device of no kind": (["encode", "--encoder", "OTHER", "--device", "abacus"], "abacus"),
    "an unknown kind": (["encode", "--encoder", "OTHER", "--dense-index", "tree"], "'tree'"),
    "tuning on test": (["tune", "--split", "test"], "use --split dev"),
    "an unknown metric": (["tune", "--metric", "bleu"], "'bleu'"),
    "an unknown recipe": (["train-encoder", "--recipe", "x"], "recipe"),
    "a base that is nowhere": (["train-encoder", "--model", "./nowhere"], "nowhere"),
    "no epochs": (["train-encoder", "--epochs", "0"], "epochs"),
    "settings that are not there": (["train-encoder", "--config", "x.toml"], "x.toml"),
    "an unknown fusion": (["recommend", "--title", TITLE, "--fusion", "x"], "'x'"),
    "an unknown system": (["evaluate", "--systems", "sparse"], "no system 'sparse'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_the_index_as_it_was(
    cli: Cli, sample: Path, tmp_path: Path, case: str
) -> None:
    arguments, says = BAD[case]
    if "OTHER" in arguments:
        other = str(tiny_bert(tmp_path / "other", seed=3, spec=EncoderSpec(max_tokens=64)))
        arguments = [other if argument == "OTHER" else argument for argument in arguments]
    before = open_index(sample).manifest

    code, out, err = cli(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith("citerec: error: ")
    assert err.count("\n") == 1
    assert says in err
    assert open_index(sample).manifest == before
    assert [path.name for path in sample.parent.iterdir()] == ["sample"]


def test_dense_systems_need_vectors(cli: Cli, sample_index: IndexFolder) -> None:
    code, _, err = cli("evaluate", "--index", sample_index.path, "--systems", "rrf")

    assert code == 2
    assert "rrf needs vectors" in err
    assert "citerec encode --index" in err


def test_tuning_needs_vectors_before_anything_is_searched(
    cli: Cli, sample_index: IndexFolder
) -> None:
    code, _, err = cli("tune", "--index", sample_index.path)

    assert code == 2
    assert "dense needs vectors" in err


def test_many_papers_are_given_where_many_are_wanted(cli: Cli, sample: Path) -> None:
    asked = ["recommend", "--title", TITLE, "--year-max", 2030, "--format", "json"]

    _, out, _ = cli(*asked, "--k", 290)

    assert len(json.loads(out)) == 290
