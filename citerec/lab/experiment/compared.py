"""The outcome of a row for the report of a run, and the significance tests between rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.evaluate.bins import Year, by_year, years_of
from citerec.evaluate.calibration import CalibrationBands, calibrate
from citerec.evaluate.catalogue import CEILINGS
from citerec.evaluate.metrics import Comparison, recall_by_depth
from citerec.evaluate.report.model import NONE
from citerec.evaluate.significance import RESAMPLES, Floats, holm, randomisation_test, student_test
from citerec.lab.experiment.kind import ExperimentKind
from citerec.lab.experiment.outcome import Outcome

SWAPS_A_PAIR = (
    100  # at least, since Holm multiplies the least p of n swaps, 1/n, by the number of pairs
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """The outcome of a row of a table, with its expected values."""

    title: str
    file: str  # of the row
    table: str
    corpus: str
    split: str
    claim: str
    verdict: str  # such as OK, near, FAIL, not run here
    why: str = ""  # the reason of the verdict
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])  # empty if not run
    ci95: Mapping[str, Sequence[float]] = field(  # low and high, by metric; may lack some
        default_factory=dict[str, Sequence[float]]
    )
    expect: Mapping[str, float | tuple[float, float]] = field(  # a value, or a range
        default_factory=dict[str, float | tuple[float, float]]
    )
    published: Mapping[str, float] = field(default_factory=dict[str, float])
    published_source: str = ""  # the source of `published`; an address becomes a link
    per_query: Mapping[str, Sequence[float]] = field(  # by metric, in the order of sorted qids
        default_factory=dict[str, Sequence[float]]
    )
    queries_sha256: str = ""  # rows are compared where they share corpus, split and this
    curve: Sequence[float] = ()  # recall at depths from 1; empty for a row without a run
    calibration: CalibrationBands | None = None
    by_year: Sequence[Year] | None = None  # f1@20
    is_ceiling: bool = False  # made from the gold: shown, but not compared

    def __post_init__(self) -> None:
        lengths = {metric: len(scores) for metric, scores in self.per_query.items()}
        if len({*lengths.values()}) > 1:
            raise ConfigError(
                f"{self.file}: its metrics have different numbers of queries: {lengths}"
            )
        if bad := [metric for metric, ends in self.ci95.items() if len(ends) != 2]:
            raise ConfigError(f"{self.file}: the interval of {bad[0]!r} needs a low and a high end")

    @property
    def has_run(self) -> bool:
        """Whether there is a ranking to draw."""
        return bool(self.curve or self.per_query or self.calibration or self.by_year)

    @property
    def corpus_and_split(self) -> str:
        """Corpus and split of the row; – if it has none."""
        return ", ".join(part for part in (self.corpus, self.split) if part) or NONE

    @property
    def all_values(self) -> tuple[Mapping[str, object], ...]:
        """The measured, published and expected values, by metric."""
        return self.metrics, self.published, self.expect

    def has_scores(self, metric: str) -> bool:
        """Return whether the row can be compared in a metric."""
        return metric in self.per_query and not self.is_ceiling


def row_outcome(outcome: Outcome) -> RowOutcome:
    """Return the outcome of a row for the report; a row without rankings has only its values."""
    row = outcome.experiment
    per_query = dict(outcome.result.get("per_query", {}))
    return RowOutcome(
        title=row.title,
        file=str(row.path),
        table=row.table,
        corpus=Path(row.corpus).name,
        split=row.split if row.kind is ExperimentKind.RECOMMEND else "",
        claim=row.claim,
        verdict=str(outcome.verdict),
        why=outcome.why,
        metrics=outcome.metrics,
        ci95=outcome.result.get("ci95", {}),
        expect=row.expect,
        published=row.published,
        published_source=row.source,
        queries_sha256=per_query.pop("queries_sha256", ""),
        per_query=per_query,
        is_ceiling=row.kind is ExperimentKind.RECOMMEND and row.system in CEILINGS,
        **_drawn(outcome, per_query),
    )


@dataclass(frozen=True, slots=True)
class ComparableRows:
    """Rows with the same queries, under distinct names."""

    corpus: str
    split: str
    rows: Mapping[str, RowOutcome]  # by name, in the order given


def groups(outcomes: Sequence[RowOutcome]) -> list[ComparableRows]:
    """Group rows with runs by corpus, split and queries, in the order of their first rows.

    A row with unknown queries is a group of its own.
    """
    by_key: dict[tuple[str, ...], list[RowOutcome]] = {}
    for number, row in enumerate(outcomes):
        if row.has_run:
            own = row.queries_sha256 or f"of row {number}"
            by_key.setdefault((row.corpus, row.split, own), []).append(row)
    return [ComparableRows(key[0], key[1], names(rows)) for key, rows in by_key.items()]


def significance(
    outcomes: Sequence[RowOutcome], metric: str, *, seed: int = 0, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Test every pair of rows with the same corpus, split and queries, corrected by Holm within each group.

    All pairs of a group are tested with the same swaps, so that a hundred rows take seconds.

    Args:
        outcomes: Rows; ceilings, and rows without `metric` per query, are not compared.
        metric: A key of `per_query`.
        seed: Of the swaps of each group.
        resamples: The number of swaps; at least 100 per pair.

    Returns:
        Group by group, the pairs in the order of the rows; the difference is later row minus earlier row.

    Raises:
        ConfigError: If rows of a group have different numbers of queries.
    """
    return [
        comparison
        for group in groups(outcomes)
        for comparison in compared(group, metric, seed=seed, resamples=resamples)
    ]


def compared(
    group: ComparableRows, metric: str, *, seed: int = 0, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Test every pair of rows of one group, see `significance`."""
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
    """Name rows by their titles; equal titles get the file, and a number if that is also equal."""
    all_rows = list(rows)
    titles = Counter(row.title for row in all_rows)
    named: dict[str, RowOutcome] = {}
    for row in all_rows:
        stem = row.title if titles[row.title] == 1 else f"{row.title} ({row.file})"
        name, number = stem, 1
        while name in named:
            number += 1
            name = f"{stem} {number}"
        named[name] = row
    return named


def _drawn(outcome: Outcome, per_query: dict[str, Any]) -> dict[str, Any]:
    run, task = outcome.run, outcome.task
    if run is None or task is None:
        return {}
    years = years_of(task.queries)
    return {
        "curve": recall_by_depth(run, task.qrels).tolist(),
        "calibration": calibrate(run, task.qrels),
        "by_year": by_year(per_query["f1@20"], sorted(task.qrels), years),
    }


def _same_queries(group: ComparableRows, scores: Mapping[str, Floats]) -> None:
    lengths = {name: len(values) for name, values in scores.items()}
    if len({*lengths.values()}) > 1:
        few, many = (end(lengths, key=lambda name: lengths[name]) for end in (min, max))
        raise ConfigError(
            f"{group.corpus}, {group.split}: {few!r} has {lengths[few]} queries, {many!r} {lengths[many]}; "
            "expected the same queries; run both rows again"
        )
