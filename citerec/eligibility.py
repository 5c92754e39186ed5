"""Who may be recommended: one rule, which every stage asks."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR, Papers
from citerec.types import Eligible, Query


def eligible(
    queries: Sequence[Query],
    papers: Papers,
    *,
    year_max: int | None = None,
    excluded: Iterable[int] = (),
) -> list[Eligible]:
    """Decide which papers each query may be given: not itself, not from its future, none excluded.

    An unknown year is let through, on either side: dropping it would lower recall without a trace.

    Args:
        queries: The year of each bounds the papers' years unless `year_max` does.
        papers: The papers of the index.
        year_max: The latest year of a paper; by default the query's.
        excluded: Rows that are out whatever their year.
    """
    out = frozenset(excluded)
    return [
        Eligible(query.year if year_max is None else year_max, out.union(own))
        for query, own in zip(queries, own_rows(queries, papers), strict=True)
    ]


def own_rows(queries: Sequence[Query], papers: Papers) -> list[tuple[int, ...]]:
    """Return the rows of the papers that each query is itself, rising; none for a draft outside the corpus.

    These papers are not recommended to the query, and no stage may read their references. They are found by the
    query's id and by its `corpus_ids`. An id that citerec made up (`named` is false) is no paper's id.
    """
    ids = [(*([query.id] if query.named else []), *query.corpus_ids) for query in queries]
    rows = iter(papers.rows_of([docid for own in ids for docid in own]).tolist())
    return [tuple(sorted({row for _ in own if (row := next(rows)) >= 0})) for own in ids]


def within(
    eligible: Eligible, years: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return which of `rows` are eligible, in their shape; `years` holds the year of each row."""
    out = np.fromiter(eligible.excluded, np.int64, len(eligible.excluded))
    keep = np.isin(rows, out, invert=True)
    if eligible.year_max is not None:
        mine = years[rows]
        keep &= (mine <= eligible.year_max) | (mine == NO_YEAR)
    return keep


def mask(eligible: Eligible, years: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return which rows are eligible, shape (n,): `within` for a stage that looks at every row."""
    return within(eligible, years, np.arange(len(years), dtype=np.int32))
