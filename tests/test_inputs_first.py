"""What is missing is said before any work starts: nothing is read, fetched, searched or trained until then."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.errors import BadInputError, CiterecError, ModelError, OutputError
from citerec.evaluate.protocol import EvalConfig, load_task
from citerec.evaluate.systems import Systems
from citerec.evaluate.tune import tune
from citerec.folder import IndexFolder, open_index
from citerec.io import check_writable
from citerec.lab.experiment.row import read_experiment
from citerec.lab.experiment.run import run_experiment
from citerec.train.ranker import train_ranker
from citerec.train.settings import RankerTraining

Build = Callable[..., IndexFolder]
PAPERS = [
    {"id": "a", "title": "Graph drawing", "year": 1990},
    {"id": "b", "title": "Tree drawing", "year": 1995, "citations": ["a"]},
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus that ships two of three splits."""
    folder = tmp_path / "corpus"
    (folder / "splits").mkdir(parents=True)
    lines = "".join(json.dumps(paper) + "\n" for paper in PAPERS)
    (folder / "papers.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("train", "test"):
        (folder / "splits" / f"{name}.ids").write_text(f"{'a' if name == 'train' else 'b'}\n")
    return folder


def never(what: str, done: int, total: int) -> None:
    raise AssertionError(f"{what} began")


def test_a_missing_split_stops_a_build_before_anything_is_read(
    corpus: Path, tmp_path: Path
) -> None:
    config = BuildConfig(encoder="no/such-encoder")  # which would be looked for after the splits

    with pytest.raises(BadInputError, match=r"dev.ids is missing; expected all three, or none"):
        build_index(corpus, tmp_path / "index", config, never)

    assert not (tmp_path / "index").exists()


def test_the_command_checks_the_corpus_before_it_looks_for_an_encoder(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("--index", str(tmp_path / "index"), "--encoder", "no/such-encoder")

    assert run(["index", str(corpus), *common]) == 2
    assert "dev.ids is missing" in capsys.readouterr().err
    assert run(["index", str(tmp_path / "nothing.jsonl"), *common]) == 2
    assert "nothing.jsonl" in capsys.readouterr().err


def test_a_row_checks_the_splits_of_all_its_corpora_before_the_first_is_indexed(
    corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(corpus, tmp_path / "whole")
    (tmp_path / "whole" / "splits" / "dev.ids").write_text("")
    (tmp_path / "training.toml").write_text("trees = 5\n")
    row = tmp_path / "row.toml"
    row.write_text(
        'title = "A row"\nclaim = "None"\ncost = "None"\nencoder = "minilm"\nsystem = "ranker"\n'
        f'corpus = "{tmp_path / "whole"}"\n'
        f'train_ranker = "{tmp_path / "training.toml"}"\nranker_corpora = ["{corpus}"]\n'
    )

    with pytest.raises(BadInputError, match=r"dev.ids is missing"):
        run_experiment(read_experiment(row), tmp_path / "indexes", never)

    assert not (tmp_path / "indexes").exists()


def test_a_folder_that_cannot_be_made_is_refused_before_the_build(
    corpus: Path, tmp_path: Path
) -> None:
    (corpus / "splits" / "dev.ids").write_text("")
    (tmp_path / "file").write_text("")

    with pytest.raises(OutputError, match="Not a directory"):
        check_writable(tmp_path / "file" / "reports" / "mine")
    with pytest.raises(CiterecError, match="file"):
        build_index(corpus, tmp_path / "file" / "index", BuildConfig(), never)


@pytest.fixture
def without_encoder(build: Build, tiny_model: str, tmp_path: Path) -> IndexFolder:
    """An index whose encoder is not there any more."""
    model = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    papers = [
        {"id": f"p{n}", "title": "A paper", "year": 1990 + n, "citations": ["p0"]}
        for n in range(20)
    ]
    index = build(papers, encoder=str(model))
    shutil.rmtree(model)
    return index


def test_an_encoder_that_is_gone_stops_an_evaluation_before_anything_is_searched(
    without_encoder: IndexFolder,
) -> None:
    task = load_task(without_encoder, "test")
    systems = Systems(without_encoder, task, EvalConfig())

    for name in ("dense", "rrf", "expanded", "ranker"):
        with pytest.raises(ModelError, match="model"):
            systems.check([name])
    systems.check(["bm25", "oracle"])
    with pytest.raises(ModelError, match="model"):
        tune(without_encoder, load_task(without_encoder, "dev"), EvalConfig(), "mrr", never)


def test_all_indexes_are_checked_before_a_ranker_is_trained_on_the_first(
    without_encoder: IndexFolder, tmp_path: Path
) -> None:
    lines = [
        json.dumps({"id": f"q{n}", "title": "A", "year": 1990 + n, "citations": ["q0"]})
        for n in range(20)
    ]
    (tmp_path / "first.jsonl").write_text("\n".join(lines))
    build_index(tmp_path / "first.jsonl", tmp_path / "first", BuildConfig())
    first, config = open_index(tmp_path / "first"), RankerTraining()

    with pytest.raises(ModelError, match="model"):
        train_ranker([first, without_encoder], tmp_path / "ranker", config, progress=never)

    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Not a directory"):
        train_ranker([first], tmp_path / "file" / "ranker", config, progress=never)
