"""Checks that no query used information from its future: everything is recomputed without it and compared.

For each query the index is copied without the citations that the query may not know (see `citerec.graph.temporal`),
without text, authors and venue of papers of a later year, and without the references of the query itself. Candidates
and features are computed on both indexes and compared bit by bit. Collection statistics (idf, vectors) are those of
the whole corpus, and a reranker reads only query and candidate; for these, and for all rankings of the run, the audit
checks that no paper is of a later year or the query itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from citerec.evaluation.protocol import EvalConfig, EvalSet
from citerec.evaluation.systems import CEILINGS, RANKED, Systems
from citerec.files.arrays import Flags
from citerec.graph.temporal import TemporalGraph, citations_of, citing_before
from citerec.index.folder import IndexFolder
from citerec.index.papers import Papers
from citerec.rank.expand import NEIGHBOURS, CandidateExpander, ExpandedCandidates
from citerec.rank.features import FEATURES, NAMES, Feature, Features, Matrix
from citerec.rules.eligible import query_rows, within
from citerec.types import CandidateSet, Hits, Progress, QueryBatch, no_progress

AT_ONCE = 64  # queries whose candidate sets are in memory at once
HIDDEN = ("title", "abstract", "venue", "authors")  # columns that are emptied


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


def audit_systems(
    systems: Systems, names: Sequence[str], progress: Progress = no_progress
) -> Audit:
    """Check that the hits of some systems depend on no citation that is unknown for a query; see `audit`."""
    names = [name for name in names if name not in CEILINGS]
    ranker = next((systems.ranker_of(name) for name in names if name in RANKED), None)
    return audit(
        systems.index,
        systems.eval_set,
        systems.config,
        systems.candidates(),
        [systems.hits(name) for name in names],
        ranker.neighbours if ranker else NEIGHBOURS,
        progress,
        ranker.added if ranker else (),
    )


def audit(
    index: IndexFolder,
    eval_set: EvalSet,
    config: EvalConfig,
    candidates_of: Sequence[CandidateSet],
    lists: Sequence[Sequence[Hits]],
    neighbours: int = NEIGHBOURS,
    progress: Progress = no_progress,
    added: Sequence[Feature] = (),
) -> Audit:
    """Audit the candidates of each query, and the rankings of each system, one list per query.

    `neighbours` is their number in the expansion; `added` features, which are not citerec's own, are recomputed, too.
    """
    years = index.papers.years
    whole_batch = QueryBatch(eval_set.queries, eval_set.eligible)
    faults = [
        f"query {query.id}: the ranking contains a paper of a later year, or the query itself"
        for hits in lists
        for query, rule, ranking in zip(
            eval_set.queries, eval_set.eligible, hits, strict=True
        )
        if not within(rule, years, ranking.rows).all()
    ]

    def stages(index: IndexFolder) -> tuple[CandidateExpander, Features]:
        graph = TemporalGraph(index, config.known_graph)
        return CandidateExpander(graph, neighbours), Features(graph, NAMES, added)

    def computed(
        expander: CandidateExpander, features: Features, members: Sequence[int]
    ) -> Iterator[tuple[ExpandedCandidates, Matrix]]:
        for start in range(0, len(members), AT_ONCE):
            part = members[start : start + AT_ONCE]
            batch = whole_batch.at(part)
            found = expander.run(batch, [candidates_of[i] for i in part])
            for query, hits in zip(batch.queries, found, strict=True):
                yield hits, features.matrix(query, hits)

    # queries of the same year, and with the same own papers among those of earlier years, know the same
    groups: defaultdict[tuple[int | None, tuple[int, ...]], list[int]] = defaultdict(
        list
    )
    for i, rows in enumerate(query_rows(eval_set.queries, index.papers)):
        year = eval_set.queries[i].year
        own = np.array([*rows], np.int32)
        groups[year, tuple(own[citing_before(year, years[own])].tolist())].append(i)
    whole = stages(index)
    checked = 0
    candidates = 0
    hidden = 0
    non_empty = np.zeros(len(FEATURES) + len(added), np.bool_)
    for (year, own), members in groups.items():
        past = without_future(index, year, own)
        hidden += len(members) * (len(index.graph.indices) - len(past.graph.indices))
        pairs = zip(
            members,
            computed(*whole, members),
            computed(*stages(past), members),
            strict=True,
        )
        for i, (one, matrix), (other, again) in pairs:
            candidates += len(one.rows)
            non_empty |= ~np.isnan(matrix).all(axis=0)
            checked += 1
            progress("audit", checked, len(eval_set.queries))
            prefix = f"query {eval_set.queries[i].id}:"
            if not (
                _same(one.rows, other.rows)
                and _same(one.hits.scores, other.hits.scores)
            ):
                faults.append(
                    f"{prefix} the candidates differ without future information"
                )
                continue
            faults += [
                f"{prefix} the feature {feature.name} differs without future information"
                for feature, a, b in zip(
                    (*FEATURES, *added), matrix.T, again.T, strict=True
                )
                if not _same(a, b)
            ]
    count = sum(map(len, lists))
    return Audit(
        checked, candidates, int(non_empty.sum()), hidden, count, tuple(faults)
    )


def without_future(
    index: IndexFolder, year: int | None, own: Sequence[int] = ()
) -> IndexFolder:
    """Return the index as it was before a year, with the same row numbers.

    Papers of this year or later cite nothing, and later ones have no text, authors or venue; None is no bound. The rows
    `own` cite nothing in any case.
    """
    years = index.papers.years
    citing = citing_before(year, years)
    citing[[*own]] = False
    later = np.zeros(len(years), np.bool_) if year is None else years > year
    return replace(
        index,
        graph=citations_of(index.graph, citing),
        papers=_Emptied(index.papers, later),
    )


class _Emptied(Papers):
    """Papers of which some have only their id and year."""

    def __init__(self, papers: Papers, empty: Flags) -> None:
        table = papers.table
        flags = pa.array(empty)
        for name in HIDDEN:
            place = table.schema.get_field_index(name)
            blank = pa.scalar(
                None if name == "authors" else "", table.field(place).type
            )
            column = compute.call_function(
                "if_else", [flags, blank, table.column(place)]
            )
            table = table.set_column(place, table.field(place), column)
        self.table = table
        lookup = papers.lookup
        titles, authors = (
            table.where(~empty[table.rows]) for table in (lookup.titles, lookup.authors)
        )
        self.lookup = replace(lookup, titles=titles, authors=authors)


def _same(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> bool:
    return a.tobytes() == b.tobytes()
