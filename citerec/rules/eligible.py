"""Which papers may be recommended: the one rule that all stages use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR, Papers
from citerec.errors import ConfigError
from citerec.types import Eligibility, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """What the user of one query asks for, besides its text."""

    # latest year of papers and of known citations; None for the query's
    year_max: int | None = None
    excluded: frozenset[int] = frozenset()  # rows that are not eligible
    cited: frozenset[int] = (
        frozenset()
    )  # rows of the known references, which are not eligible either
    explain: bool = False  # whether to add reasons

    def __post_init__(self) -> None:
        if self.year_max is not None and not self.year_max >= 1:
            raise ConfigError(f"year_max must be a year such as 2019, got {self.year_max}")


DEFAULT_OPTIONS = QueryOptions()


def eligible(
    queries: Sequence[Query],
    papers: Papers,
    *,
    year_max: int | None = None,
    excluded: Iterable[int] = (),
) -> list[Eligibility]:
    """Decide which papers are eligible for each query: not itself, not later than it, not excluded.

    A paper or query of unknown year passes the rule: dropping it would lower recall silently.

    Args:
        queries: The year of each is the latest eligible year, unless `year_max` is given.
        papers: The papers of the index.
        year_max: The latest eligible year; None for the query's.
        excluded: Rows that are not eligible, whatever their year.
    """
    out = frozenset(excluded)
    return [
        Eligibility(query.year if year_max is None else year_max, out.union(docids))
        for query, docids in zip(queries, query_rows(queries, papers), strict=True)
    ]


def query_rows(queries: Sequence[Query], papers: Papers) -> list[tuple[int, ...]]:
    """Return the rows of the papers that are the query itself, rising; none for a draft outside the corpus.

    These papers are not recommended to the query, and no stage may read their references. They are identified by the
    query's id and by its `corpus_ids`. An id that citerec generated (`named` is false) is not the id of a paper.
    """
    ids = [(*([query.id] if query.named else []), *query.corpus_ids) for query in queries]
    rows = iter(papers.rows_of([docid for docids in ids for docid in docids]).tolist())
    return [tuple(sorted({row for _ in docids if (row := next(rows)) >= 0})) for docids in ids]


def within(
    eligible: Eligibility, years: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return which of `rows` are eligible, same shape; `years` holds the year of each row of the index."""
    out = np.fromiter(eligible.excluded, np.int64, len(eligible.excluded))
    keep = np.isin(rows, out, invert=True)
    if eligible.year_max is not None:
        row_years = years[rows]
        keep &= (row_years <= eligible.year_max) | (row_years == NO_YEAR)
    return keep


def mask(eligible: Eligibility, years: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return which rows are eligible, shape (n,): `within` for a stage that reads every row."""
    return within(eligible, years, np.arange(len(years), dtype=np.int32))
