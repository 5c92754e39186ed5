"""The commands that make and use vectors, and those that rerank, as a user runs them."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from support.corpora import SAMPLE
from support.hub import cached
from support.tiny import tiny_bert
from support.types import Write

from citerec.build.index import BuildConfig, build_index
from citerec.cli import COMMANDS, make_app
from citerec.encode.spec import EncoderSpec
from citerec.evaluation.systems import RERANKED, SYSTEMS
from citerec.files.checksums import seal_model
from citerec.index.folder import IndexFolder, open_index

Cli = Callable[..., "tuple[int, str, str]"]
TITLE = "Dense retrieval of passages"
OPTION = re.compile(r"(?<!\S)--[a-z-]+")
PLAIN = ("--ranker", "none")  # as the stages before the ranker leave the list
RUN = ("--dtype", "float32", "--threads", 1)
ASK = ("recommend", "--title", TITLE, "--format", "json", "--k", 5, *PLAIN)


@pytest.fixture
def cli(invoke: Cli) -> Cli:
    return invoke


@pytest.fixture
def sample(dense_sample: IndexFolder, tmp_path: Path) -> Path:
    """A copy of the sample's index with vectors, under indexes/."""
    copy = tmp_path / "indexes" / "sample"
    shutil.copytree(dense_sample.path, copy)
    return copy


def test_auto_is_minilm_and_says_what_else_there_is(
    cli: Cli, write_jsonl: Write
) -> None:
    corpus = write_jsonl([{"id": "a", "title": TITLE}, {"id": "b", "title": "Graphs"}])

    code, out, err = cli("index", corpus, "--index", "made")
    info = cli("info", "--index", "made")[1]

    assert code == 0
    assert "2  papers" in out
    assert "encoder auto: all-MiniLM-L6-v2" in err
    assert "specter, specter2, scincl (downloads; not measured here)" in err
    assert "encoder  minilm (weights 53aa5117) from minilm" in info
    assert "vectors  2 of 384 dimensions, exact" in info


def test_auto_keeps_the_encoder_of_an_index_that_is_there(
    cli: Cli, tiny_model: str
) -> None:
    cli("index", SAMPLE, "--index", "made", "--encoder", tiny_model)

    code, _, err = cli("index", SAMPLE, "--index", "made", "--force")

    assert (code, err) == (0, "")
    assert open_index(Path("made")).manifest.settings["encoder"]["source"] == tiny_model


def test_encode_gives_an_index_vectors_that_recommend_uses(
    cli: Cli, tiny_model: str
) -> None:
    cli("index", SAMPLE, "--index", "made", "--encoder", "none")

    code, out, err = cli("encode", "--index", "made", "--encoder", tiny_model)
    asked = cli(
        "recommend",
        "--index",
        "made",
        "--title",
        TITLE,
        "--format",
        "json",
        "--k",
        5,
        *PLAIN,
    )

    assert (code, out) == (0, "")
    assert "made: encoded by" in err
    items: list[dict[str, Any]] = json.loads(asked[1])
    assert {name for item in items for name in item["stages"]} == {"bm25", "dense"}
    for item in items:
        ranks = [stage["rank"] for stage in item["stages"].values()]
        assert item["score"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


def test_evaluate_compares_the_stages_and_their_fusion(cli: Cli, sample: Path) -> None:
    code, _, _ = cli("evaluate", "--output", "report", "--systems", "all")

    report = json.loads(Path("report/report.json").read_text())
    assert code == 0
    assert [system["name"] for system in report["systems"]] == [
        name for name in SYSTEMS if name not in RERANKED
    ]
    assert report["provenance"]["settings"]["index"]["encoder"]["dim"] == 32


BAD: dict[str, tuple[list[str], str]] = {
    "another encoder": (
        ["recommend", "--title", TITLE, "--encoder", "OTHER"],
        "leave --encoder out, or embed it anew",
    ),
    "an encoder that is nowhere": (["encode", "--encoder", "./nowhere"], "nowhere"),
    "encode with none": (
        ["encode", "--encoder", "none"],
        "choose one with --encoder MODEL",
    ),
    "a device that is not here": (
        ["encode", "--encoder", "OTHER", "--device", "cuda:7"],
        "no device 'cuda:7' here",
    ),
    "a device of no kind": (
        ["encode", "--encoder", "OTHER", "--device", "abacus"],
        "abacus",
    ),
    "an unknown kind": (
        ["encode", "--encoder", "OTHER", "--dense-index", "tree"],
        "'tree'",
    ),
    "a base that is nowhere": (["train-encoder", "--model", "./nowhere"], "nowhere"),
    "no epochs": (["train-encoder", "--epochs", "0"], "epochs"),
    "settings that are not there": (["train-encoder", "--config", "x.toml"], "x.toml"),
    "an unknown fusion": (["recommend", "--title", TITLE, "--fusion", "x"], "'x'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_the_index_as_it_was(
    cli: Cli, sample: Path, tmp_path: Path, case: str
) -> None:
    arguments, says = BAD[case]
    if "OTHER" in arguments:
        other = str(
            tiny_bert(tmp_path / "other", seed=3, spec=EncoderSpec(max_tokens=64))
        )
        arguments = [
            other if argument == "OTHER" else argument for argument in arguments
        ]
    before = open_index(sample).manifest

    code, out, err = cli(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith("citerec: error: ")
    assert err.count("\n") == 1
    assert says in err
    assert open_index(sample).manifest == before
    assert [path.name for path in sample.parent.iterdir()] == ["sample"]


# --- models that are neither here nor can be fetched

MISSING = "owner/missing"
# servers, and groups of commands
OTHERS = {
    "serve",
    "mcp",
    "corpus",
    "experiment",
    "datasets",
}
ARGUMENTS: dict[
    str, tuple[object, ...]
] = {  # that make a command open the model of an option
    "index": (SAMPLE, "--index", "made"),
    "recommend": ("--title", TITLE),
    "evaluate": ("--systems", "rerank"),
}
RECORDED: dict[
    str, tuple[object, ...]
] = {  # that make a command open the encoder of the index
    "index": ("more.jsonl", "--append", "--index", "indexes/sample"),
    "encode": (),
    "recommend": ("--title", TITLE),
    "evaluate": ("--systems", "dense"),
    "train-encoder": ("--recipe", "strong"),
    "train-reranker": ("--recipe", "strong"),
    "train-ranker": (),
}


@pytest.fixture(scope="module")
def once_fetched(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: str, java: None
) -> Path:
    """The sample, embedded by a model of the hub whose cache is gone."""
    folder = tmp_path_factory.mktemp("fetched")
    cached(folder / "hub", MISSING, Path(shutil.copytree(tiny_model, folder / "model")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
        build_index(SAMPLE, folder / "index", BuildConfig(encoder=MISSING))
    return folder / "index"


@pytest.fixture
def gone(once_fetched: Path, tmp_path: Path) -> Path:
    (tmp_path / "more.jsonl").write_text('{"id": "new", "title": "Graphs"}\n')
    return Path(shutil.copytree(once_fetched, tmp_path / "indexes" / "sample"))


def options_of(command: str) -> set[str]:
    parsed: Any = typer.main.get_command(make_app([command]))
    return {
        option
        for parameter in parsed.commands[command].params
        for option in parameter.opts
    }


MODEL_OPTIONS = [
    (command, option)
    for command in COMMANDS
    if command not in OTHERS
    for option in ("--encoder", "--model", "--reranker")
    if option in options_of(command)
]


def assert_options_exist(message: str, command: str) -> None:
    """Fail unless each option of a message is one of the command, or of the command line that it is written in."""
    for clause in message.split(";"):
        spoken, _, line = clause.partition("citerec ")
        assert {*OPTION.findall(spoken)} <= options_of(command)
        name, *_ = line.split() or [command]
        assert {*OPTION.findall(line)} <= options_of(name)


@pytest.mark.parametrize(("command", "option"), MODEL_OPTIONS)
def test_a_model_that_cannot_be_fetched_names_only_options_that_the_command_has(
    cli: Cli, sample: Path, command: str, option: str
) -> None:
    code, _, err = cli(command, *ARGUMENTS.get(command, ()), option, MISSING)

    said = err.removeprefix("citerec: error: ")
    assert (code, said.count("\n")) == (2, 1), err
    assert said.startswith(
        f"{MISSING} is not in the local cache and cannot be fetched: this is offl"
    )
    assert_options_exist(said, command)
    # MiniLM reranks nothing
    is_base = option != "--reranker" and command != "recommend"
    assert (f"; or choose {option} minilm" in said) == is_base
    assert (", or none" in said) == (command == "index")


@pytest.mark.parametrize("command", RECORDED)
def test_the_encoder_of_an_index_that_cannot_be_fetched_is_replaced_by_encode(
    cli: Cli, gone: Path, command: str
) -> None:
    code, _, err = cli(command, *RECORDED[command])

    said = err.splitlines()[-1].removeprefix("citerec: error: ")
    assert code == 2
    assert said.startswith(
        f"{MISSING} is not in the local cache and cannot be fetched: this is offl"
    )
    assert_options_exist(said, command)
    anew = (
        "choose --encoder"
        if command == "encode"
        else "citerec encode --index indexes/sample --enc"
    )
    assert anew in said


# --- reranking


@pytest.fixture
def own(sample: Path, tiny_reranker_model: str) -> Path:
    """The same with a reranker of its own, which `verify` knows nothing of."""
    return Path(shutil.copytree(tiny_reranker_model, sample / "models" / "reranker"))


def test_recommend_reranks_with_the_index_s_own_and_says_how(
    cli: Cli, own: Path
) -> None:
    code, out, err = cli(*ASK, *RUN, "--rerank-depth", 20)

    assert code == 0
    assert (
        "citerec: reranking the best 20 by models/reranker: 32+32 tokens, onnx float32\n"
        in err
    )
    items: list[dict[str, Any]] = json.loads(out)
    assert [item["stages"]["rerank"]["rank"] for item in items] == [1, 2, 3, 4, 5]
    assert {name for item in items for name in item["stages"]} == {
        "bm25",
        "dense",
        "rerank",
    }


@pytest.fixture
def foreign(own: Path) -> Path:
    """A reranker that was trained on other papers, as an index that is built anew takes it along."""
    (own / "training.json").write_text(
        '{"corpus_sha256": "f00", "splits_sha256": "f00"}'
    )
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
    assert (
        "warning: models/reranker is not used: it, its base or its teacher was trained on"
        in err
    )

    code, _, err = cli(*one, "--reranker", "models/reranker", "--systems", "rerank")
    assert (code, systems()) == (0, ["rerank"])
    assert "citerec: models/reranker was not trained on these papers and splits" in err

    code, _, err = cli(*ASK, *RUN, "--rerank-depth", 5)
    assert code == 0
    assert "citerec: models/reranker was not trained on these papers and splits" in err
    assert "reranking the best 5 by models/reranker" in err
