"""Breaks metrics down by a value or the year of each query, and recall by a value of each query and cited paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.evaluate.metrics import SystemResult, mean_metrics
from citerec.evaluate.significance import Floats
from citerec.run import Qrels, Run
from citerec.types import Query

CUTOFF = 20  # ranks in which a cited paper counts as found


@dataclass(frozen=True, slots=True)
class Slice:
    """Some of a sequence of values."""

    label: str
    members: npt.NDArray[np.bool_]  # one flag per value, at least one of them set


Cut = Callable[[Sequence[float]], Sequence[Slice]]


@dataclass(frozen=True, slots=True)
class QueryBin:
    """A bin of queries, and the metrics of each system on them."""

    label: str
    queries: int
    systems: Mapping[str, Mapping[str, float]]  # by system and metric


@dataclass(frozen=True, slots=True)
class PairBin:
    """A bin of pairs of a query and a cited paper, with the recall of each system."""

    label: str
    pairs: int
    recall: Mapping[str, float]  # by system: the share of these papers in its top 20


@dataclass(frozen=True, slots=True)
class Year:
    """The queries of one year, and the mean of a metric of one system on them."""

    year: int
    queries: int  # at least 1
    mean: float  # of a metric, over these queries


def quartiles(values: Sequence[float], form: str = "{:g}") -> list[Slice]:
    """Split values into quartiles, lowest first; empty quartiles (equal values) are left out.

    Args:
        values: At least one.
        form: The format of the bounds in the labels.
    """
    array = np.array(values)
    number = np.searchsorted(np.quantile(array, [0.25, 0.5, 0.75]), array, side="left")
    cut: list[Slice] = []
    for quarter in np.unique(number).tolist():
        members = number == quarter
        ends = (form.format(end(array[members]).item()) for end in (np.min, np.max))
        cut.append(Slice("-".join(ends), members))
    return cut


def ranges(values: Sequence[float], bounds: Sequence[tuple[int, int | None]]) -> list[Slice]:
    """Split values by fixed bounds, both ends inclusive, None for no upper end; empty ranges are left out."""
    array = np.array(values)
    cut: list[Slice] = []
    for low, high in bounds:
        members = (array >= low) & (array <= (np.inf if high is None else high))
        if members.any():
            label = f"{low}+" if high is None else f"{low}" if low == high else f"{low}-{high}"
            cut.append(Slice(label, members))
    return cut


def query_bins(
    values: Mapping[str, float], cut: Cut, qrels: Qrels, systems: Sequence[SystemResult]
) -> tuple[QueryBin, ...]:
    """Return the metrics of each system in bins of a value of the query.

    Args:
        values: By query; queries without a value are left out.
        cut: Splits the values.
        qrels: The queries.
        systems: Measured on these queries.
    """
    row_of = {qid: row for row, qid in enumerate(sorted(qrels))}
    known = [(row_of[qid], value) for qid, value in values.items() if qid in row_of]
    if not known:
        return ()
    rows = np.array([row for row, _ in known])
    bins: list[QueryBin] = []
    for part in cut([value for _, value in known]):
        inside = np.sort(rows[part.members])
        metrics = {
            system.name: mean_metrics({name: s[inside] for name, s in system.per_query.items()})
            for system in systems
        }
        bins.append(QueryBin(part.label, len(inside), metrics))
    return tuple(bins)


def pair_bins(
    values: Mapping[str, Mapping[str, float]], cut: Cut, qrels: Qrels, runs: Sequence[Run]
) -> tuple[PairBin, ...]:
    """Return the recall of each system in bins of a value of query and cited paper.

    Args:
        values: By query and by paper that it cites; pairs without a value are left out.
        cut: Splits the values.
        qrels: The cited papers of each query.
        runs: The systems.
    """
    pairs = [
        (qid, docid, values[qid][docid])
        for qid, gold in sorted(qrels.items())
        for docid in sorted(gold)
        if docid in values.get(qid, {})
    ]
    if not pairs:
        return ()
    is_found: dict[str, npt.NDArray[np.bool_]] = {}
    for run in runs:
        top = {qid: frozenset(ranking.ids[:CUTOFF]) for qid, ranking in run.rankings.items()}
        is_found[run.name] = np.array([docid in top.get(qid, ()) for qid, docid, _ in pairs])
    return tuple(
        PairBin(
            part.label,
            int(part.members.sum()),
            {name: float(flags[part.members].mean()) for name, flags in is_found.items()},
        )
        for part in cut([value for *_, value in pairs])
    )


def years_of(queries: Sequence[Query]) -> dict[str, int]:
    """Return the year of each query that has one, by its id."""
    return {query.id: query.year for query in queries if query.year is not None}


def by_year(
    scores: Floats | Sequence[float], qids: Sequence[str], years: Mapping[str, int]
) -> tuple[Year, ...]:
    """Average a metric over the queries of each year, by rising year.

    Args:
        scores: (n,) of one system, such as its f1@20.
        qids: (n,) ids of the queries.
        years: By query; queries without a year are left out.

    Raises:
        ValueError: If the numbers of scores and queries differ.
    """
    if len(scores) != len(qids):
        raise ValueError(f"{len(scores)} scores but {len(qids)} queries")
    values: dict[int, list[float]] = {}
    for qid, score in zip(qids, scores, strict=True):
        if qid in years:
            values.setdefault(years[qid], []).append(float(score))
    return tuple(
        Year(year, len(of_year), float(np.mean(of_year)))
        for year, of_year in sorted(values.items())
    )
