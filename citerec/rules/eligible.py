"""Which papers a query may be given: not itself, no later one, none that is excluded or retracted."""

from collections.abc import Iterable, Sequence

import numpy as np

from citerec.files.arrays import Flags, Rows, Years
from citerec.index.papers import NO_YEAR, Papers
from citerec.types import YEARS, Eligibility, Query


def eligible(
    queries: Sequence[Query],
    papers: Papers,
    *,
    year_max: int | None = None,
    year_min: int | None = None,
    excluded: Iterable[int] = (),
) -> list[Eligibility]:
    """Decide which papers are eligible for each query: not itself, not later than it, not excluded, not retracted.

    A paper or query of unknown year passes the rule: dropping it would lower recall silently.

    The latest eligible year is `year_max`, else the query's; the rows in `excluded` are not eligible in any year.
    """
    out = frozenset(excluded).union(papers.retracted.tolist())
    return [
        Eligibility(
            query.year if year_max is None else year_max, out.union(rows), year_min
        )
        for query, rows in zip(queries, query_rows(queries, papers), strict=True)
    ]


def query_rows(queries: Sequence[Query], papers: Papers) -> list[tuple[int, ...]]:
    """Return the rows of the papers that are the query itself, rising; none for a draft outside the corpus.

    These papers are not recommended to the query, and no stage may read their references. They are identified by the
    query's id and by its `corpus_ids`. An id that citerec generated (`named` is false) is not the id of a paper.
    """
    ids = [
        (*([query.id] if query.named else []), *query.corpus_ids) for query in queries
    ]
    rows = iter(papers.rows_of([docid for docids in ids for docid in docids]).tolist())
    return [
        tuple(sorted({row for _ in docids if (row := next(rows)) >= 0}))
        for docids in ids
    ]


def within(eligible: Eligibility, years: Years, rows: Rows) -> Flags:
    """Return which of `rows` are eligible, same shape; `years` holds the year of each row of the index."""
    keep = np.ones(len(rows), np.bool_)
    if eligible.excluded:
        out = np.fromiter(eligible.excluded, np.int64, len(eligible.excluded))
        keep = np.isin(rows, out, invert=True)
    return keep & in_years(eligible, years[rows])


def in_years(eligible: Eligibility, years: Years) -> Flags:
    """Return which years are eligible, same shape; an unknown one is."""
    last = YEARS[-1] if eligible.year_max is None else eligible.year_max
    keep = years <= last  # an unknown year is 0
    if eligible.year_min is not None:
        keep &= (years >= eligible.year_min) | (years == NO_YEAR)
    return keep


def mask(eligible: Eligibility, years: Years) -> Flags:
    """Return which rows are eligible, shape (n,): `within` for a stage that reads every row."""
    return within(eligible, years, np.arange(len(years), dtype=np.int32))
