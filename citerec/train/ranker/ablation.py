"""What each source of evidence is worth: the ranker without it, and the ranker as sources come in one by one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from citerec.rank.features import Group, without
from citerec.train.ranker.boost import Trees
from citerec.train.ranker.examples import MISSING, Examples, spared

STEPS: tuple[tuple[str, tuple[Group, ...]], ...] = (
    ("lexical, semantic and text", (Group.LEXICAL, Group.SEMANTIC, Group.TEXT)),
    ("+ what close papers cite", (Group.GRAPH,)),
    ("+ citations and age", (Group.POPULARITY,)),
    ("+ authors and venue", (Group.AUTHORS, Group.VENUE)),
    ("+ cross-encoder", (Group.RERANKER,)),
)


@dataclass(frozen=True, slots=True, eq=False)
class DevEvaluation:
    """A ranker, and queries of an index that it was not trained on."""

    index: object  # whose they are
    trees: Trees
    dev: Examples


@dataclass(frozen=True, slots=True)
class Ablation:
    """One row of the table."""

    label: str
    f1: float
    mrr: float


def ablations(judged: Sequence[DevEvaluation]) -> list[Ablation]:
    """Measure a ranker with sources missing, which it was trained to do without; nothing is trained again.

    Args:
        judged: The ranker with all features; several, if each was trained on other dev queries.

    Returns:
        First as sources come in one by one, then with all but one.
    """
    there: list[Group] = []
    rows: list[Ablation] = []
    for label, groups in STEPS:
        there += groups
        rows.append(_row(label, judged, [group for group in Group if group not in there]))
    return rows + [
        _row(f"all but {', '.join(one)}", judged, one, spared(one)) for one, _ in MISSING
    ]


def measured(
    judged: Sequence[DevEvaluation], missing: Sequence[Group] = (), spare: Collection[str] = ()
) -> dict[str, float]:
    """Return the means over all their queries, each ordered by the ranker beside it, of F1 at 20 and MRR.

    Args:
        judged: The rankers.
        missing: Sources that they do without.
        spare: Features of these that are there all the same.
    """
    scores = [one.trees.scores(without(one.dev.matrix, missing, spare=spare)) for one in judged]
    return Examples.joined([one.dev for one in judged]).measures(
        np.concatenate([np.zeros(0), *scores])
    )


def _row(
    label: str,
    judged: Sequence[DevEvaluation],
    missing: Sequence[Group],
    spare: Collection[str] = (),
) -> Ablation:
    measures = measured(judged, missing, spare)
    return Ablation(label, measures["f1@20"], measures["mrr"])
