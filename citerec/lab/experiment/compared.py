"""What running a row gave, as its page shows it, and which differences between rows are more than chance."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from citerec.errors import ConfigError
from citerec.evaluate.by_year import Year
from citerec.evaluate.calibration import CalibrationBands
from citerec.evaluate.metrics import Comparison
from citerec.evaluate.significance import RESAMPLES, Floats, holm, randomisation_test, student_test

COMPARED = ("f1@20", "mrr")
SWAPS_A_PAIR = (
    100  # at least: with m pairs, Holm multiplies the least p that n swaps can give, 1/n, by m
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """What running a row of a table gave, and what it should give."""

    title: str
    file: str  # of the row
    table: str
    corpus: str
    split: str
    claim: str
    verdict: str  # such as OK, near, FAIL, not run here
    why: str = ""  # of the verdict
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])  # empty if not run
    ci95: Mapping[str, Sequence[float]] = field(  # low and high, by metric; may lack some
        default_factory=dict[str, Sequence[float]]
    )
    expect: Mapping[str, float | tuple[float, float]] = field(  # a value, or a range
        default_factory=dict[str, float | tuple[float, float]]
    )
    published: Mapping[str, float] = field(default_factory=dict[str, float])
    published_source: str = ""  # where `published` stands; an address becomes a link
    per_query: Mapping[str, Sequence[float]] = field(  # by metric, in the order of sorted qids
        default_factory=dict[str, Sequence[float]]
    )
    queries_sha256: str = ""  # rows are compared where they share corpus, split and this
    curve: Sequence[float] = ()  # recall at depths from 1; empty for a row without a run
    calibration: CalibrationBands | None = None
    by_year: Sequence[Year] | None = None  # f1@20
    is_ceiling: bool = False  # made from the gold: shown, but in no test and no calibration

    def __post_init__(self) -> None:
        lengths = {metric: len(scores) for metric, scores in self.per_query.items()}
        if len({*lengths.values()}) > 1:
            raise ConfigError(f"{self.file}: its metrics are of unequally many queries: {lengths}")
        if bad := [metric for metric, ends in self.ci95.items() if len(ends) != 2]:
            raise ConfigError(f"{self.file}: the interval of {bad[0]!r} needs a low and a high end")

    @property
    def has_run(self) -> bool:
        """Whether there is anything of its rankings to draw."""
        return bool(self.curve or self.per_query or self.calibration or self.by_year)

    def has_scores(self, metric: str) -> bool:
        """Whether the row can be tested in a metric."""
        return metric in self.per_query and not self.is_ceiling


@dataclass(frozen=True, slots=True)
class ComparableRows:
    """Rows that were asked the same queries, under names that differ."""

    corpus: str
    split: str
    rows: Mapping[str, RowOutcome]  # by name, in the order given


def groups(outcomes: Sequence[RowOutcome]) -> list[ComparableRows]:
    """Put rows with runs together that share corpus, split and queries, in the order of their first rows.

    A row whose queries are not known stands alone.
    """
    together: dict[tuple[str, ...], list[RowOutcome]] = {}
    for number, row in enumerate(outcomes):
        if row.has_run:
            own = row.queries_sha256 or f"of row {number}"
            together.setdefault((row.corpus, row.split, own), []).append(row)
    return [ComparableRows(key[0], key[1], names(rows)) for key, rows in together.items()]


def significance(
    outcomes: Sequence[RowOutcome], metric: str, *, seed: int = 0, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Test every pair of rows that share corpus, split and queries, corrected by Holm within each such group.

    All pairs of a group are tested under the same swaps, so that a hundred rows take seconds.

    Args:
        outcomes: Rows; a ceiling, or one that has no `metric` for each query, is in no pair.
        metric: Of `per_query`.
        seed: Of the swaps; each group starts anew.
        resamples: How many swaps are drawn; 100 for each pair where those are more.

    Returns:
        Group by group, the pairs in the order of the rows; the difference is the later row's gain.

    Raises:
        ConfigError: If rows of a group have unequally many queries.
    """
    return [
        comparison
        for group in groups(outcomes)
        for comparison in compared(group, metric, seed=seed, resamples=resamples)
    ]


def compared(
    group: ComparableRows, metric: str, *, seed: int = 0, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Test every pair of rows of one group, as `significance` does."""
    scores = {
        name: np.asarray(row.per_query[metric], np.float64)
        for name, row in group.rows.items()
        if row.has_scores(metric)
    }
    _same_queries(group, scores)
    pairs = list(combinations(scores, 2))
    if not pairs:
        return []
    a, b = (np.stack([scores[pair[side]] for pair in pairs], axis=1) for side in (0, 1))
    rng, swaps = np.random.default_rng(seed), max(resamples, SWAPS_A_PAIR * len(pairs))
    p_fisher = randomisation_test(a, b, lambda means: means, rng=rng, resamples=swaps).tolist()
    return [
        Comparison(
            a=pair[0],
            b=pair[1],
            metric=metric,
            difference=float((b[:, i] - a[:, i]).mean()),
            p_student=student_test(a[:, i], b[:, i]),
            p_fisher=p_fisher[i],
            p_holm=corrected,
        )
        for i, (pair, corrected) in enumerate(zip(pairs, holm(p_fisher), strict=True))
    ]


def names(rows: Iterable[RowOutcome]) -> dict[str, RowOutcome]:
    """Name rows by their titles; with the file where two share one, and a number where even that is the same."""
    there = list(rows)
    titles = Counter(row.title for row in there)
    named: dict[str, RowOutcome] = {}
    for row in there:
        stem = row.title if titles[row.title] == 1 else f"{row.title} ({row.file})"
        name, number = stem, 1
        while name in named:
            number += 1
            name = f"{stem} {number}"
        named[name] = row
    return named


def _same_queries(group: ComparableRows, scores: Mapping[str, Floats]) -> None:
    lengths = {name: len(values) for name, values in scores.items()}
    if len({*lengths.values()}) > 1:
        few, many = (end(lengths, key=lambda name: lengths[name]) for end in (min, max))
        raise ConfigError(
            f"{group.corpus}, {group.split}: {few!r} has {lengths[few]} queries, {many!r} {lengths[many]}; "
            "they are said to be the same: run both rows again"
        )
