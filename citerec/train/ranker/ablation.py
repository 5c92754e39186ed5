"""What each source of evidence is worth: the ranker without it, and the ranker as sources come in one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

from citerec.rank.features import Group
from citerec.train.ranker.boost import Trees
from citerec.train.ranker.examples import MISSING, Examples, without

STEPS: tuple[tuple[str, tuple[Group, ...]], ...] = (
    ("words, meaning and text", (Group.WORDS, Group.MEANING, Group.TEXT)),
    ("+ what close papers cite", (Group.GRAPH,)),
    ("+ citations and age", (Group.POPULARITY,)),
    ("+ authors and venue", (Group.AUTHORS, Group.VENUE)),
    ("+ cross-encoder", (Group.RERANKER,)),
)


@dataclass(frozen=True, slots=True)
class Ablation:
    """One row of the table."""

    label: str
    f1: float
    mrr: float


def ablations(trees: Trees, dev: Examples) -> list[Ablation]:
    """Measure a ranker with sources missing, which it was trained to do without; nothing is trained again.

    Args:
        trees: The ranker with all features.
        dev: Queries that it was not trained on.

    Returns:
        First as sources come in one by one, then with all but one.
    """
    there: list[Group] = []
    rows: list[Ablation] = []
    for label, groups in STEPS:
        there += groups
        rows.append(_measured(label, trees, dev, [g for g in Group if g not in there]))
    rows += [_measured(f"all but {', '.join(one)}", trees, dev, one) for one, _ in MISSING]
    return rows


def _measured(label: str, trees: Trees, dev: Examples, missing: Sequence[Group]) -> Ablation:
    measures = dev.measures(trees.scores(without(dev.matrix, missing) if missing else dev.matrix))
    return Ablation(label, measures["f1@20"], measures["mrr"])
