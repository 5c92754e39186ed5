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
    A query that has its id from us alone is no paper of the corpus, whatever ids that has.

    Args:
        queries: The year of each bounds the papers' years unless `year_max` does.
        papers: The papers of the index.
        year_max: The latest year of a paper; by default the query's.
        excluded: Rows that are out whatever their year.
    """
    out = frozenset(excluded)
    own = papers.rows_of([query.id for query in queries]).tolist()
    return [
        Eligible(
            query.year if year_max is None else year_max,
            out | {row} if query.named and row >= 0 else out,
        )
        for query, row in zip(queries, own, strict=True)
    ]


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
