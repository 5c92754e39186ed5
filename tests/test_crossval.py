"""What is tuned is kept only where it beats the default on queries that had no say in the choice."""

import numpy as np
import pytest

from citerec.evaluate.crossval import best_of, cross_validate


def test_of_equal_settings_the_default_is_best_then_the_first() -> None:
    table = np.array([[0.2, 0.4], [0.4, 0.4], [0.4, 0.4], [0.6, 0.2]])

    assert best_of(table, 0) == 1  # .3, .4, .4, .4
    assert best_of(table, 2) == 2
    assert best_of(table[:, :0], 3) == 3  # nothing is known


def test_the_best_of_many_by_chance_is_not_better() -> None:
    rng = np.random.default_rng(1)
    table = rng.random((25, 29))  # 25 ways that differ by chance alone, 29 queries

    checked = cross_validate(table, 0)

    assert table.mean(1).max() > checked.default + 0.05  # it looks better
    assert checked.tuned < table.mean(1).max()
    assert not checked.is_better
    assert (checked.queries, checked.folds) == (29, 10)


def test_a_setting_that_is_better_on_every_query_is_kept() -> None:
    default = np.linspace(0.1, 0.5, 20)

    checked = cross_validate(np.stack([default, default + 0.1]), 0)

    assert checked.tuned == pytest.approx(checked.default + 0.1)
    assert checked.p < 0.001
    assert checked.is_better


def test_a_query_is_measured_with_what_the_others_choose() -> None:
    # Each way is best on one query alone: 1 there and 0 elsewhere, against .1 everywhere.
    table = np.concatenate([np.full((1, 5), 0.1), np.eye(5)])

    checked = cross_validate(table, 0)

    assert (
        checked.tuned == 0.0
    )  # four queries choose a way that is 1 on one of them, 0 on the fifth
    assert not checked.is_better


def test_worse_beyond_chance_is_not_better() -> None:
    table = np.concatenate([np.full((1, 20), 0.04), np.eye(20)])  # each chosen one is worth .05

    checked = cross_validate(table, 0)

    assert checked.p < 0.05
    assert checked.tuned < checked.default
    assert not checked.is_better


def test_one_query_proves_nothing() -> None:
    checked = cross_validate(np.array([[0.1], [0.9]]), 0)

    assert (checked.p, checked.tuned, checked.is_better) == (1.0, 0.1, False)
