"""Checks that no query used information from its future: everything is recomputed without it and compared.

For each query the index is copied without the citations that the query may not know (see `citerec.rules.known`),
without text, authors and venue of papers of a later year, and without the references of the query itself. Candidates
and features are computed on both indexes and compared bit by bit. Collection statistics (idf, vectors) are those of
the whole corpus, and a reranker reads only query and candidate; for these, and for all rankings of the run, the audit
checks that no paper is of a later year or the query itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from citerec.config import ExpandConfig
from citerec.corpus.graph import Graph
from citerec.corpus.papers import Lookup, Papers
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rank.expand import CandidateExpander, ExpandedCandidates
from citerec.rank.features import FEATURES, NAMES, Feature, Features, Matrix
from citerec.rules.known import (
    PROTOCOL,
    CitationScope,
    TemporalGraph,
    citing_before,
    first_unknown_year,
    latest_year,
    query_rows,
    within,
)
from citerec.types import CandidateSet, Hits, Progress, QueryBatch, no_progress

AT_ONCE = 64  # queries whose candidate sets are in memory at once
HIDDEN = ("title", "abstract", "venue")  # columns that are emptied, in addition to the authors

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit."""

    queries: int
    candidates: int  # recomputed candidates, over all queries
    features: int  # recomputed features with a value for any paper
    hidden: int  # removed citations, over all queries
    lists: int  # checked rankings
    faults: tuple[str, ...]  # one line each

    def __str__(self) -> str:
        """Summarise the checks."""
        return (
            f"audit: {self.queries:,} queries, each recomputed without citations of its year or later, its own "
            f"references ({self.hidden / max(self.queries, 1):,.0f} citations on average) and text of later papers: "
            f"{self.candidates:,} candidates and {self.features} features are identical, bit by bit; "
            f"{self.lists:,} rankings contain no paper of a later year and no query itself"
        )


def audit(
    index: IndexFolder,
    task: EvalSet,
    config: EvalConfig,
    candidates_of: Sequence[CandidateSet],
    lists: Sequence[Sequence[Hits]],
    expand: ExpandConfig | None = None,
    progress: Progress = no_progress,
    added: Sequence[Feature] = (),
) -> Audit:
    """Audit a run.

    Args:
        index: The index.
        task: The evaluation set.
        config: The evaluation config of the systems.
        candidates_of: The candidates of each query.
        lists: The rankings of each system, one per query.
        expand: How papers joined the candidates; `ExpandConfig()` by default.
        progress: Receives the number of checked queries.
        added: Features that are not citerec's own, which are recomputed, too.
    """
    faults = [*_later(index, task, lists)]
    groups = _knowing_the_same(index, task, config.known_graph)
    checked = candidates = hidden = 0
    non_empty = np.zeros(len(FEATURES) + len(added), np.bool_)
    whole = _Computing(index, config, expand, added)
    for (year, last, own), members in groups.items():
        past = without_future(index, year, own, last=last)
        hidden += len(members) * (len(index.graph.indices) - len(past.graph.indices))
        again = _Computing(past, config, expand, added)
        for start in range(0, len(members), AT_ONCE):
            part = members[start : start + AT_ONCE]
            for i, here, there in zip(
                part,
                whole(task, candidates_of, part),
                again(task, candidates_of, part),
                strict=True,
            ):
                candidates += len(here[0].rows)
                non_empty |= ~np.isnan(here[1]).all(axis=0)
                faults += _differences(task.queries[i].id, here, there, (*FEATURES, *added))
            checked += len(part)
            progress("audit", checked, len(task.queries))
    count = sum(map(len, lists))
    return Audit(checked, candidates, int(non_empty.sum()), hidden, count, tuple(faults))


def _knowing_the_same(
    index: IndexFolder, task: EvalSet, scope: CitationScope
) -> Mapping[tuple[int | None, int | None, tuple[int, ...]], Sequence[int]]:
    """Group the queries with the same knowledge: by first unknown year, last year of a text, and own rows."""
    years = index.papers.years
    latest = latest_year(years)
    groups: defaultdict[tuple[int | None, int | None, tuple[int, ...]], list[int]] = defaultdict(
        list
    )
    own = query_rows(task.queries, index.papers)
    for i, (query, rule, rows) in enumerate(zip(task.queries, task.eligible, own, strict=True)):
        year = first_unknown_year(query, rule, scope, in_corpus=bool(rows), latest=latest)
        last = query.year if scope in PROTOCOL else rule.year_max
        seen = tuple(row for row in rows if citing_before(year, years[row : row + 1])[0])
        groups[year, last, seen].append(i)
    return groups


def without_future(
    index: IndexFolder, year: int | None, own: Sequence[int] = (), *, last: int | None = None
) -> IndexFolder:
    """Return the index as it was before a year, with the same row numbers.

    Args:
        index: The complete index.
        year: Papers of this year or later cite nothing; None for no bound.
        own: Rows that cite nothing in any case.
        last: Papers of a later year have no text, authors or venue; None for no bound.
    """
    graph, years = index.graph, index.papers.years
    citing = citing_before(year, years)
    citing[list(own)] = False
    keep = citing[graph.citing]
    degrees = np.bincount(graph.citing[keep], minlength=len(years))
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    later = np.zeros(len(years), np.bool_) if last is None else years > last
    papers = _Emptied(index.papers, later)
    return replace(index, graph=Graph(ends, graph.indices[keep]), papers=papers)


class _Emptied(Papers):
    """Papers of which some have only their id and year."""

    def __init__(self, papers: Papers, empty: Flags) -> None:
        table = papers._table
        chunks: dict[str, list[pa.Array]] = {name: [] for name in table.column_names}
        start = 0
        for batch in table.to_batches():
            flags = pa.array(empty[start : start + len(batch)])
            start += len(batch)
            for name in table.column_names:
                column = batch.column(name)
                blank = pa.scalar("" if name in HIDDEN else None, column.type)
                is_hidden = name in HIDDEN or name == "authors"
                chunks[name].append(
                    compute.call_function("if_else", [flags, blank, column])
                    if is_hidden
                    else column
                )
        arrays = [pa.chunked_array(chunks[n], table.schema.field(n).type) for n in chunks]
        self._table = pa.table(dict(zip(chunks, arrays, strict=True)))
        self.lookup = papers.lookup and _without(papers.lookup, empty)


def _without(lookup: Lookup, hidden: Flags) -> Lookup:
    """Return tables in which some papers have no title and no author."""
    titles, authors = (
        table.where(~hidden[table.rows]) for table in (lookup.titles, lookup.authors)
    )
    return replace(lookup, titles=titles, authors=authors)


class _Computing:
    """Computes candidate sets and features of queries on one index."""

    def __init__(
        self,
        index: IndexFolder,
        config: EvalConfig,
        expand: ExpandConfig | None,
        added: Sequence[Feature],
    ) -> None:
        graph = TemporalGraph(index, config.known_graph)
        self._expander = CandidateExpander(graph, expand)
        self._features = Features(graph, NAMES, added)

    def __call__(
        self, task: EvalSet, candidates_of: Sequence[CandidateSet], members: Sequence[int]
    ) -> Iterator[tuple[ExpandedCandidates, Matrix]]:
        queries = [task.queries[i] for i in members]
        rules = [task.eligible[i] for i in members]
        batch = QueryBatch(queries, rules)
        expanded = self._expander.run(batch, [candidates_of[i] for i in members])
        for query, candidates in zip(queries, expanded, strict=True):
            yield candidates, self._features.matrix(query, candidates)


def _differences(
    qid: str,
    here: tuple[ExpandedCandidates, Matrix],
    there: tuple[ExpandedCandidates, Matrix],
    features: Sequence[Feature],
) -> Iterator[str]:
    """Yield what differs for one query: its candidates, or a feature."""
    candidates, recomputed = here[0], there[0]
    if not (
        _same(candidates.hits.rows, recomputed.hits.rows)
        and _same(candidates.hits.scores, recomputed.hits.scores)
    ):
        yield f"query {qid}: the candidates differ without future information"
        return
    for feature, value, other in zip(features, here[1].T, there[1].T, strict=True):
        if not _same(value, other):
            yield f"query {qid}: the feature {feature.name} differs without future information"


def _same(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> bool:
    return a.tobytes() == b.tobytes()


def _later(index: IndexFolder, task: EvalSet, lists: Sequence[Sequence[Hits]]) -> Iterator[str]:
    """Yield the rankings with a paper that is not eligible."""
    years = index.papers.years
    for hits in lists:
        for query, rule, ranking in zip(task.queries, task.eligible, hits, strict=True):
            if not within(rule, years, ranking.rows).all():
                yield f"query {query.id}: the ranking contains a paper of a later year, or the query itself"
