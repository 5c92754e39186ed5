"""The measurement of approximate search in experiments/ann.py: its arithmetic."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parent.parent / "experiments"


@pytest.fixture(scope="module")
def ann() -> Iterator[ModuleType]:
    """The script, which imports from the scripts that lie next to it."""
    sys.path.insert(0, str(EXPERIMENTS))
    yield import_module("ann")
    sys.path.remove(str(EXPERIMENTS))


def test_recall_is_the_share_of_exact_hits_that_are_found_among_as_many(ann: ModuleType) -> None:
    exact = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    hits = np.array([[4, 3, 9, 1], [6, 5, 0, 9]])

    assert ann.recall(exact, hits, 4) == (3 / 4 + 2 / 4) / 2
    assert ann.recall(exact, hits, 2) == (0 / 2 + 2 / 2) / 2


def test_recall_of_fewer_papers_than_hits_counts_the_papers(ann: ModuleType) -> None:
    exact = np.array([[1, 2, -1, -1], [-1, -1, -1, -1]])
    hits = np.array([[2, -1, -1, -1], [-1, -1, -1, -1]])

    assert ann.recall(exact, hits, 4) == (1 / 2 + 1) / 2


def test_the_best_hits_are_those_of_the_highest_scores(ann: ModuleType) -> None:
    rows, scores = np.array([7, 4, 9, 2], np.int32), np.array([0.5, 0.9, 0.5, 0.1], np.float32)

    assert ann.best((rows, scores), 3).tolist() == [4, 7, 9]
    assert ann.best((rows, scores), 6).tolist() == [4, 7, 9, 2, -1, -1]


def test_a_year_bound_leaves_at_least_the_share(ann: ModuleType) -> None:
    years = np.array([2000, 2001, 2001, 2003, 2004, 2005, 2006, 2007, 2008, 2009], np.int32)

    assert ann.bound_of(years, 0.1) == 2000
    assert ann.bound_of(years, 0.2) == 2001
    assert ann.bound_of(years, 0.5) == 2004
    assert ann.bound_of(years, 1.0) is None
