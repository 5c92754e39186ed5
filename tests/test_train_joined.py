"""Training on several indexes at once: their rows are joined, and each query stays within its own index."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from support.encoder_training import quick
from support.tiny import tiny_reranker

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.errors import ConfigError
from citerec.folder import IndexFolder, open_index
from citerec.rules.held_out import trained_on_other_data
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder.dev import load_dev
from citerec.train.encoder.memory import learners
from citerec.train.encoder.train import train_encoder, was_trained_so
from citerec.train.joined import join
from citerec.train.reranker.candidates import train_candidates
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.dev import draw_dev
from citerec.train.reranker.dev import load_dev as load_reranker_dev
from citerec.train.reranker.train import train_reranker
from citerec.types import no_progress

Build = Callable[[list[dict[str, Any]]], IndexFolder]
TOPICS = ["graph drawing", "bird song", "labour market"]


def corpus(name: str, topic: str, count: int = 30) -> list[dict[str, Any]]:
    """Papers about a topic, one a year; each cites the two before it. The last six are dev and test queries."""
    return [
        {
            "id": f"{name}{i}",
            "title": f"{topic} {TOPICS[i % 3]} part {i}",
            "year": 1980 + i,
            "citations": [f"{name}{j}" for j in (i - 1, i - 2) if j >= 0],
        }
        for i in range(count)
    ]


@pytest.fixture
def build(tmp_path: Path, java: None) -> Build:
    """Index records, each time in a folder of its own."""

    def make(records: list[dict[str, Any]]) -> IndexFolder:
        folder = tmp_path / records[0]["id"]
        folder.with_suffix(".jsonl").write_bytes(b"\n".join(map(orjson.dumps, records)) + b"\n")
        build_index(folder.with_suffix(".jsonl"), folder, BuildConfig())
        return open_index(folder)

    return make


@pytest.fixture
def two(build: Build) -> tuple[IndexFolder, IndexFolder]:
    return build(corpus("a", "trees")), build(corpus("b", "rivers"))


@pytest.fixture
def data(two: tuple[IndexFolder, IndexFolder]) -> TrainingData:
    return load_training_data(join(two))


def ids(data: TrainingData, rows: Any) -> list[str]:
    papers = data.index.papers.at(rows)
    return [papers[int(row)].id for row in rows]


def test_the_rows_of_an_index_follow_those_of_the_one_before(
    two: tuple[IndexFolder, IndexFolder], data: TrainingData
) -> None:
    alone = [load_training_data(index) for index in two]

    assert data.papers == 60
    assert ids(data, data.queries) == ids(alone[0], alone[0].queries) + ids(
        alone[1], alone[1].queries
    )
    assert ids(data, data.gold[0]) == ids(alone[0], alone[0].gold[0])
    assert ids(data, data.gold[len(data.gold) - 1]) == ids(
        alone[1], alone[1].gold[len(alone[1].gold) - 1]
    )
    assert data.index.papers.rows_of(["b3", "a3", "unknown"]).tolist() == [33, 3, -1]
    assert [part.data.queries.tolist() for part in data.by_index()] == [
        part.queries.tolist() for part in alone
    ]


def test_a_paper_of_another_index_is_neither_positive_nor_negative(data: TrainingData) -> None:
    allowed = data.eligible(data.queries[:, None], np.arange(data.papers)[None, :])

    for row, flags in zip(data.queries.tolist(), allowed, strict=True):
        own = slice(0, 30) if row < 30 else slice(30, 60)
        assert flags[own].sum() == flags.sum() == row % 30 + 1  # of no later year


def test_what_one_index_holds_out_is_no_training_data_of_another(build: Build) -> None:
    first = corpus("a", "trees")
    # The last paper of the first index, which is a test query, is the tenth of the second under another id.
    second = corpus("b", "rivers")
    second[10]["title"] = first[-1]["title"].upper()

    data = load_training_data(join([build(first), build(second)]))

    assert "b10" not in ids(data, data.queries)
    assert "b10" not in ids(data, data.gold.indices)
    assert not data.pool[40]
    assert "b11" in ids(data, data.queries)


def test_indexes_share_the_memory_and_lists_stay_whole(build: Build) -> None:
    data = load_training_data(
        join([build(corpus("a", "trees", 90)), build(corpus("b", "rivers", 12))])
    )

    rows = learners(data, data.gold, seed=0, most=40)

    small = [row for row in rows.tolist() if row >= 90]
    assert len(rows) == 40
    assert (
        len(small) == 9
    )  # all that are no dev or test queries: the room left goes to the large index
    cited_too = [
        bool(np.isin(data.gold[i], rows).all())
        for i, row in enumerate(data.queries.tolist())
        if row in set(rows.tolist()) and row < 90
    ]
    assert (
        sum(cited_too) > len(cited_too) / 2
    )  # a random 31 of 72 papers would hold both of two for few
    assert learners(data, data.gold, seed=0, most=40).tolist() == rows.tolist()


def test_dev_queries_have_candidates_of_their_own_index(
    two: tuple[IndexFolder, IndexFolder], tiny_model: str
) -> None:
    dev = load_dev(join(two), quick(Path(tiny_model), dev_queries=4, dev_pool=40))

    assert dev and len(dev.queries) == 4
    for query, allowed, gold in zip(dev.queries, dev.allowed, dev.gold, strict=True):
        found = {paper.id[0] for paper, flag in zip(dev.papers, allowed, strict=True) if flag}
        assert found == {query.id[0]}
        assert gold.sum() == 2


def test_an_encoder_of_two_indexes_names_both(
    two: tuple[IndexFolder, IndexFolder], build: Build, tiny_model: str, tmp_path: Path
) -> None:
    other = build(corpus("c", "clouds"))
    how = quick(Path(tiny_model), recipe="memory", hard=0, epochs=1)

    train_encoder(join(two), tmp_path / "m", how, dev_index=other)

    record = orjson.loads((tmp_path / "m" / "training.json").read_bytes())
    assert len(record["indexes"]) == 2
    assert record["selected_on"]["corpus_sha256"] == other.manifest.lineage
    assert [trained_on_other_data(tmp_path / "m", one) for one in (*two, other)] == [
        False,
        False,
        True,
    ]
    assert was_trained_so(tmp_path / "m", join(two), how)
    assert not was_trained_so(tmp_path / "m", two[0], how)
    assert record["counts"]["papers"] == 60


def test_a_reranker_of_two_indexes_finds_candidates_in_each(
    two: tuple[IndexFolder, IndexFolder], data: TrainingData, tmp_path: Path
) -> None:
    base = tiny_reranker(tmp_path / "base")
    how = RerankerTraining.of(
        {
            "model": str(base), "depth": 5, "list_negatives": 2, "batch": 4, "steps": 3, "dev_queries": 4,
            "loss": "softmax", "query_tokens": 24, "candidate_tokens": 24, "short_share": 0.5, "threads": 1,
        }
    )  # fmt: skip

    found = train_candidates(data, how, no_progress, print)
    dev = load_reranker_dev(draw_dev(join(two), how), how, print)

    assert len(found.lists) == len(data.queries)
    for row, candidates in zip(
        data.queries.tolist(), (found.lists[i] for i in range(len(found.lists))), strict=True
    ):
        assert {int(candidate) // 30 for candidate in candidates} <= {row // 30}
    assert dev
    assert [int(rows[0]) // 30 for rows in (dev.candidates.lists[i] for i in range(4))] == [
        0,
        0,
        1,
        1,
    ]
    report = train_reranker(join(two), tmp_path / "m", how)
    assert report.queries == len(data.queries)


def test_the_command_line_trains_on_two_and_refuses_the_same_twice(
    two: tuple[IndexFolder, IndexFolder],
    tiny_model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = tmp_path / "small.toml"
    settings.write_text(
        'recipe = "memory"\nepochs = 1\ndev_queries = 4\ndev_pool = 20\nmax_tokens = 24\nthreads = 1\n'
    )
    indexes = [part for index in two for part in ("--index", str(index.path))]
    command = [
        "train-encoder",
        "--config",
        str(settings),
        "--model",
        tiny_model,
        "--output",
        str(tmp_path / "m"),
    ]

    run([*command, *indexes])

    assert "train queries" in capsys.readouterr().out
    assert (tmp_path / "m" / "training.json").is_file()
    with pytest.raises(ConfigError, match="is given twice"):
        join([two[0], two[0]])
