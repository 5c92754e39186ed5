"""Ablations: the learning-to-rank model with groups of features added one by one, and without each group."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from citerec.rank.features import Group, without_groups
from citerec.train.ranker.boost import Trees
from citerec.train.ranker.examples import MISSING, RankerExamples, always_present

STEPS: tuple[tuple[str, tuple[Group, ...]], ...] = (
    ("lexical, semantic and text", (Group.LEXICAL, Group.SEMANTIC, Group.TEXT)),
    ("+ what close papers cite", (Group.GRAPH,)),
    ("+ citations and age", (Group.POPULARITY,)),
    ("+ authors and venue", (Group.AUTHORS, Group.VENUE)),
    ("+ cross-encoder", (Group.RERANKER,)),
)


@dataclass(frozen=True, slots=True, eq=False)
class DevEvaluation:
    """A model, and dev examples of an index that it was not trained on."""

    index: object  # the index of the dev examples
    trees: Trees
    dev: RankerExamples


@dataclass(frozen=True, slots=True)
class Ablation:
    """One row of the ablation table."""

    label: str
    f1: float
    mrr: float


def ablations(evaluations: Sequence[DevEvaluation]) -> list[Ablation]:
    """Measure a model with disabled feature groups; nothing is trained again.

    The training disables groups in copies of the queries, so the model can rank without them.

    Args:
        evaluations: The model with all features; several if each was trained on other dev queries.

    Returns:
        First with the groups added one by one, then with all but one.
    """
    present: list[Group] = []
    rows: list[Ablation] = []
    for label, groups in STEPS:
        present += groups
        rows.append(_row(label, evaluations, [group for group in Group if group not in present]))
    return rows + [
        _row(f"all but {', '.join(one)}", evaluations, one, always_present(one))
        for one, _ in MISSING
    ]


def measure(
    evaluations: Sequence[DevEvaluation], missing: Sequence[Group] = (), kept: Collection[str] = ()
) -> dict[str, float]:
    """Return the means over all queries of F1 at 20 and MRR, each query ranked by the model of its evaluation.

    Args:
        evaluations: The models with their dev examples.
        missing: Disabled feature groups.
        kept: Features of these groups that stay enabled.
    """
    scores = [
        evaluation.trees.scores(without_groups(evaluation.dev.matrix, missing, keep=kept))
        for evaluation in evaluations
    ]
    return RankerExamples.joined([evaluation.dev for evaluation in evaluations]).measures(
        np.concatenate([np.zeros(0), *scores])
    )


def _row(
    label: str,
    evaluations: Sequence[DevEvaluation],
    missing: Sequence[Group],
    kept: Collection[str] = (),
) -> Ablation:
    measures = measure(evaluations, missing, kept)
    return Ablation(label, measures["f1@20"], measures["mrr"])
