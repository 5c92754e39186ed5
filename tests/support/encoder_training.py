"""Small corpora and settings to train an encoder on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec.encode.config import EncodeConfig
from citerec.encode.opening import open_encoder
from citerec.folder import IndexFolder
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.dev import mean_f1_and_mrr
from citerec.train.lists import Lists
from citerec.train.workspace import CheckpointTimer

# id: (year, cites). By year: ten papers, of which the oldest eight may be train queries, x is dev, y is test.
GRAPH = {
    "a": (2000, ""),
    "b": (2001, "a"),
    "c": (2002, "a b"),
    "d": (2003, "c"),  # c cites a and b
    "e": (2004, "b d"),  # b cites a; d cites c
    "f": (2005, "e"),
    "g": (2006, ""),
    "h": (2007, "x"),  # which came later
    "x": (2008, "a h"),
    "y": (2009, "x d"),
}


def records(graph: dict[str, tuple[int, str]] = GRAPH) -> list[dict[str, Any]]:
    return [
        {"id": i, "title": f"Paper {i}", "year": year, "citations": cites.split()}
        for i, (year, cites) in graph.items()
    ]


def named(data: TrainingData, lists: Lists) -> dict[str, set[str]]:
    ids = data.index.papers.ids_at
    return {
        query: set(ids(lists[i].tolist())) for i, query in enumerate(ids(data.queries.tolist()))
    }


def never() -> Lists:
    raise AssertionError("nothing is to be mined")


def config(**given: Any) -> EncoderTraining:
    return EncoderTraining.of({"threads": 1, **given})


def quick(tiny: Path, **given: Any) -> EncoderTraining:
    few = {"dev_queries": 10, "dev_pool": 60, "examples": 2, "hard": 1, "batch": 16}
    return config(
        **{**few, "max_tokens": 24, "learning_rate": 1e-3, "model": str(tiny), **given},
    )


def checkpoints_every(monkeypatch: pytest.MonkeyPatch, updates: int) -> None:
    """Make a checkpoint due every so many updates, those at the end of an epoch aside."""
    asked: dict[int, int] = {}

    def is_due(timer: CheckpointTimer) -> bool:
        asked[id(timer)] = asked.get(id(timer), 0) + 1
        return asked[id(timer)] % updates == 0

    monkeypatch.setattr(CheckpointTimer, "is_due", is_due)


def assert_same_weights(one: Path, other: Path) -> None:
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    assert all(np.array_equal(a[name], b[name]) for name in a)


def train_mrr(index: IndexFolder, model: Path) -> float:
    data = load_training_data(index)
    papers = index.papers.at(range(len(index.papers)))
    encoder = open_encoder(str(model), EncodeConfig(threads=1))
    vectors = encoder.encode([papers[row] for row in range(len(papers))])
    scores = vectors[data.queries] @ vectors.T
    scores[np.arange(len(data.queries)), data.queries] = -np.inf
    gold = np.zeros(scores.shape, np.bool_)
    gold[data.gold.segment_ids, data.gold.indices] = True
    return mean_f1_and_mrr(scores[gold.any(1)], gold[gold.any(1)])[1]


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")
