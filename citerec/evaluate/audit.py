"""Proves on a run that no query saw its own future: all is computed again without it, and must be the same.

For each query a copy of the index is made in which papers cite nobody whose citations the query does not know (see
`citerec.rank.known`), papers of a later year than it may be given have no text, authors or venue, and the query itself
cites nobody. Pools and features are computed on both, and
held against each other, bit by bit. What words and vectors are searched with is of the whole corpus (how rare a word
is), and a reranker reads the query and the candidate alone: of what they found, and of all lists of the run, it is
checked that nothing is of a later year, or the query itself.
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
from citerec.corpus.papers import Papers
from citerec.eligibility import own_rows, within
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rank.expansion import CandidateExpander, ExpandedCandidates
from citerec.rank.features import FEATURES, Features, Matrix
from citerec.rank.known import (
    PROTOCOL,
    KnownGraph,
    TemporalGraph,
    citing_before,
    first_unknown_year,
)
from citerec.types import CandidateSet, Hits, Progress, QueryBatch, no_progress

AT_ONCE = 64  # queries whose pools are in memory together
HIDDEN = ("title", "abstract", "venue")  # columns that are emptied, besides the authors

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Audit:
    """What was checked, and what was found."""

    queries: int
    candidates: int  # papers of pools that were computed twice
    features: int  # of those, that had a value for any paper
    hidden: int  # citations that were taken away, of all queries together
    lists: int  # of systems, whose papers may all be recommended
    faults: tuple[str, ...]  # one line each

    def __str__(self) -> str:
        """Say what was checked."""
        return (
            f"audit: {self.queries:,} queries, each computed again without {self.hidden / max(self.queries, 1):,.0f} "
            f"citations on average that were made in its year or later or are its own, and without what later papers "
            f"say: {self.candidates:,} candidates and {self.features} features of each are the same, bit by bit; "
            f"{self.lists:,} lists hold no paper of a later year and no query itself"
        )


def audit(
    index: IndexFolder,
    task: EvalSet,
    setting: EvalConfig,
    found: Sequence[CandidateSet],
    lists: Sequence[Sequence[Hits]],
    expand: ExpandConfig | None = None,
    progress: Progress = no_progress,
) -> Audit:
    """Check a run.

    Args:
        index: What was searched.
        task: The queries.
        setting: How the systems searched.
        found: The candidates of each query.
        lists: What each system gave to each query.
        expand: How papers joined the candidates; by default as `ExpandConfig` says.
        progress: Receives how many queries are checked.
    """
    faults = [*_later(index, task, lists)]
    alike = _knowing_the_same(index, task, setting.known_graph)
    checked = candidates = hidden = 0
    told = np.zeros(len(FEATURES), np.bool_)
    whole = _Computing(index, setting, expand)
    for (year, last, own), members in alike.items():
        past = without_future(index, year, own, last=last)
        hidden += len(members) * (len(index.graph.indices) - len(past.graph.indices))
        again = _Computing(past, setting, expand)
        for start in range(0, len(members), AT_ONCE):
            part = members[start : start + AT_ONCE]
            for i, here, there in zip(
                part, whole(task, found, part), again(task, found, part), strict=True
            ):
                candidates += len(here[0].rows)
                told |= ~np.isnan(here[1]).all(axis=0)
                faults += _differences(task.queries[i].id, here, there)
            checked += len(part)
            progress("audit", checked, len(task.queries))
    count = sum(map(len, lists))
    return Audit(checked, candidates, int(told.sum()), hidden, count, tuple(faults))


def _knowing_the_same(
    index: IndexFolder, task: EvalSet, graph: KnownGraph
) -> Mapping[tuple[int | None, int | None, tuple[int, ...]], Sequence[int]]:
    """Return the queries that know the same: by first unknown year, last year of a text, and own rows."""
    years = index.papers.years
    alike: defaultdict[tuple[int | None, int | None, tuple[int, ...]], list[int]] = defaultdict(
        list
    )
    own = own_rows(task.queries, index.papers)
    for i, (query, rule, rows) in enumerate(zip(task.queries, task.eligible, own, strict=True)):
        year = first_unknown_year(query, rule, graph, in_corpus=bool(rows))
        last = query.year if graph in PROTOCOL else rule.year_max
        seen = tuple(row for row in rows if citing_before(year, years[row : row + 1])[0])
        alike[year, last, seen].append(i)
    return alike


def without_future(
    index: IndexFolder, year: int | None, own: Sequence[int] = (), *, last: int | None = None
) -> IndexFolder:
    """Return an index as it was before a year, with the same row numbers.

    Args:
        index: The whole.
        year: Papers of this year or later cite nobody; None for no bound.
        own: Rows that cite nobody in any case.
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
    """Papers of which some say nothing but their id and year."""

    def __init__(self, papers: Papers, empty: Flags) -> None:
        table = papers._table
        chunks: dict[str, list[pa.Array]] = {name: [] for name in table.column_names}
        start = 0
        for batch in table.to_batches():
            mine = pa.array(empty[start : start + len(batch)])
            start += len(batch)
            for name in table.column_names:
                column = batch.column(name)
                nothing = pa.scalar("" if name in HIDDEN else None, column.type)
                is_hidden = name in HIDDEN or name == "authors"
                chunks[name].append(
                    compute.call_function("if_else", [mine, nothing, column])
                    if is_hidden
                    else column
                )
        arrays = [pa.chunked_array(chunks[n], table.schema.field(n).type) for n in chunks]
        self._table = pa.table(dict(zip(chunks, arrays, strict=True)))


class _Computing:
    """Makes pools and features of queries on one index."""

    def __init__(
        self, index: IndexFolder, setting: EvalConfig, expand: ExpandConfig | None
    ) -> None:
        graph = TemporalGraph(index, setting.known_graph)
        self._expander = CandidateExpander(graph, expand)
        self._features = Features(index, graph)

    def __call__(
        self, task: EvalSet, found: Sequence[CandidateSet], members: Sequence[int]
    ) -> Iterator[tuple[ExpandedCandidates, Matrix]]:
        queries = [task.queries[i] for i in members]
        rules = [task.eligible[i] for i in members]
        batch = QueryBatch(queries, rules)
        expanded = self._expander.run(batch, [found[i] for i in members])
        for query, candidates in zip(queries, expanded, strict=True):
            yield candidates, self._features.matrix(query, candidates)


def _differences(
    qid: str, here: tuple[ExpandedCandidates, Matrix], there: tuple[ExpandedCandidates, Matrix]
) -> Iterator[str]:
    """Say what differs of one query: its candidates, or a feature by its name."""
    pool, again = here[0], there[0]
    if not (_same(pool.hits.rows, again.hits.rows) and _same(pool.hits.scores, again.hits.scores)):
        yield f"query {qid}: its candidates differ without what it may not know"
        return
    for feature, mine, other in zip(FEATURES, here[1].T, there[1].T, strict=True):
        if not _same(mine, other):
            yield f"query {qid}: the feature {feature.name} differs without what it may not know"


def _same(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> bool:
    return a.tobytes() == b.tobytes()


def _later(index: IndexFolder, task: EvalSet, lists: Sequence[Sequence[Hits]]) -> Iterator[str]:
    """Say which lists hold a paper that their query may not be given."""
    years = index.papers.years
    for hits in lists:
        for query, rule, mine in zip(task.queries, task.eligible, hits, strict=True):
            if not within(rule, years, mine.rows).all():
                yield f"query {query.id}: was given a paper of a later year, or itself"
