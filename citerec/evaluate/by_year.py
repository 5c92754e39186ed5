"""A metric by the year of the query: shows whether a system trained on the past stays good."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from citerec.evaluate.significance import Floats
from citerec.types import Query


@dataclass(frozen=True, slots=True)
class Year:
    """The queries of one year, and the mean of a metric of one system on them."""

    year: int
    queries: int  # at least 1
    mean: float  # of a metric, over these queries


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
