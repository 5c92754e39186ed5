"""The features of candidates for a learning-to-rank model, computed as of the query's year."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import RRF_K0
from citerec.corpus.papers import NO_YEAR
from citerec.folder import IndexFolder
from citerec.fuse import min_max, ranks_and_scores
from citerec.rank.authors import Authors
from citerec.rank.catalogue import FEATURES, NAMES, OLDEST, Group
from citerec.rank.evidence import Evidence
from citerec.rank.expansion import EXPAND, ExpandedCandidates
from citerec.rank.words import Titles, Venues, same_venue
from citerec.rerank.cascade import NAME as RERANK
from citerec.rules.known import Rows, Scores, TemporalGraph
from citerec.types import Query

Matrix = npt.NDArray[np.float32]  # shape (papers, features); NaN where a source is missing
Columns = dict[str, npt.NDArray[Any]]  # each of shape (papers,)


class Features:
    """Computes features on one index. It caches what it reads of the corpus, so reuse the object."""

    def __init__(
        self, index: IndexFolder, graph: TemporalGraph, names: Collection[str] = NAMES
    ) -> None:
        """Prepare.

        Args:
            index: The index of the candidates.
            graph: The citation graph of the expansion.
            names: The features that a model reads. Those of `evidence` that are not among them are not computed.
        """
        self._papers, self._graph, self._names = index.papers, graph, frozenset(names)
        self._titles = Titles(index.papers)

    def matrix(
        self, query: Query, candidates: ExpandedCandidates, cited_rows: Sequence[int] = ()
    ) -> Matrix:
        """Return the features of each candidate, shape (papers, len(FEATURES)); that of a reranker is missing.

        Args:
            query: The query.
            candidates: The candidates of the query.
            cited_rows: The known references of the query.
        """
        columns = {
            **_retrieval(candidates),
            **_neighbours(candidates),
            **_popularity(candidates, self._papers.years),
            **self._people(query, candidates),
            **self._texts(query, candidates.rows),
            "coupling": self._coupling(candidates, cited_rows),
            **self._evidence.columns(query, candidates, self._names),
        }
        return np.stack([columns[name].astype(np.float32) for name in NAMES], axis=1)

    @cached_property
    def _venues(self) -> Venues:
        return Venues(self._papers)

    @cached_property
    def _authors(self) -> Authors:
        return Authors(self._papers)

    @cached_property
    def _evidence(self) -> Evidence:
        return Evidence(self._graph, venues=lambda: self._venues, titles=self._titles)

    def _people(self, query: Query, candidates: ExpandedCandidates) -> Columns:
        if not query.authors or not self._authors.has_any:
            return dict.fromkeys(("author_overlap", "self_cited"), _missing(len(candidates.rows)))
        written, rows = self._authors.written_by(query.authors), candidates.rows
        shared = _occurrences(written.rows, rows)
        overlap = np.where(
            self._authors.is_named(rows), shared / max(written.author_count, 1), np.nan
        )
        cited = _missing(len(rows))
        if not candidates.snapshot.is_empty:
            citing = np.unique(written.rows)
            citing = citing[candidates.snapshot.is_citing(citing)]
            references, _ = self._graph.index.graph.lists(citing)
            cited = np.log1p(_occurrences(np.sort(references), rows).astype(np.float32))
        return {"author_overlap": overlap, "self_cited": cited}

    def _texts(self, query: Query, rows: Rows) -> Columns:
        has_abstract = self._papers.lengths("abstract", rows) > 0
        return {
            "title_overlap": self._titles.overlap(query.title, rows),
            "venue_match": same_venue(self._papers, query.venue, rows),
            "no_abstract": ~has_abstract,
            "abstracts": np.full(len(rows), has_abstract.mean() if len(rows) else 0),
        }

    def _coupling(
        self, candidates: ExpandedCandidates, cited_rows: Sequence[int]
    ) -> npt.NDArray[np.floating]:
        """Return the cosine of each paper's references and the query's known references, shape (papers,)."""
        if not cited_rows:
            return _missing(len(candidates.rows))
        rows, known = candidates.rows, np.unique(np.array(cited_rows, np.int32))
        references, sizes = self._graph.index.graph.lists(rows)
        owners = np.repeat(np.arange(len(rows)), sizes)[np.isin(references, known)]
        shared = np.bincount(owners, minlength=len(rows)).astype(np.float32)
        size = np.sqrt(np.maximum(sizes, 1) * np.float32(len(known)))
        return np.where(candidates.snapshot.is_citing(rows), shared / size, 0)


def without_groups(
    matrix: Matrix,
    groups: Collection[Group],
    rows: npt.NDArray[np.bool_] | None = None,
    *,
    keep: Collection[str] = (),
) -> Matrix:
    """Return features with disabled groups: NaN in their columns.

    Without the semantic group the fused rank is that of BM25 alone, as on an index without vectors.

    Args:
        matrix: Shape (papers, features).
        groups: The disabled groups.
        rows: Mask of the papers to change, shape (papers,); None for all.
        keep: Names of features of these groups that stay enabled.
    """
    changed, disabled = matrix.copy(), frozenset(groups)
    where = np.ones(len(matrix), np.bool_) if rows is None else rows
    for column, feature in enumerate(FEATURES):
        if feature.groups & disabled and feature.name not in keep:
            changed[where, column] = np.nan
    if Group.SEMANTIC in groups:
        changed[where, NAMES.index("rrf")] = changed[where, NAMES.index("bm25_rank")]
    return changed


def _retrieval(candidates: ExpandedCandidates) -> Columns:
    """Return the features of the retrievers: 0 where one did not find the paper. That of a reranker is missing."""
    missing = _missing(len(candidates.rows))
    columns: Columns = dict.fromkeys(
        ("bm25", "bm25_rank", "dense", "dense_rank", "rerank"), missing
    )
    ranked: list[npt.NDArray[np.floating]] = []
    for name, hits in candidates.hits_by_source.items():
        if name == EXPAND or name.startswith(RERANK):
            continue
        positions, _ = ranks_and_scores(hits, candidates.rows)
        is_hit = positions > 0
        ranked.append(np.where(is_hit, 1 / (RRF_K0 + positions), 0))
        if scaled := _SCALES.get(name):
            points = np.zeros(len(candidates.rows))
            points[is_hit] = scaled(hits.scores)[positions[is_hit] - 1]
            columns |= {name: points, f"{name}_rank": ranked[-1]}
    return {**columns, "rrf": np.mean(ranked, axis=0) if ranked else missing}


def _neighbours(candidates: ExpandedCandidates) -> Columns:
    """Return the neighbour scores; missing if no citation is known."""
    scores = candidates.neighbour_scores
    columns = {
        "cited_by_similar": scores.cites,
        "cited_by_closest": scores.closest,
        "cited_by_similar_count": scores.counts,
        "co_cited": scores.co,
        "coupled": scores.coupled,
    }
    return (
        dict.fromkeys(columns, _missing(len(candidates.rows)))
        if candidates.snapshot.is_empty
        else columns
    )


def _popularity(candidates: ExpandedCandidates, years: npt.NDArray[np.int32]) -> Columns:
    snapshot, rows, paper_years = candidates.snapshot, candidates.rows, years[candidates.rows]
    counts = {
        "citations": snapshot.citations(rows),
        "citations_3y": snapshot.recent_citations(rows),
    }
    age = np.where(paper_years == NO_YEAR, np.nan, (snapshot.year - paper_years).clip(0, OLDEST))
    if snapshot.is_empty:
        return {**dict.fromkeys(counts, _missing(len(rows))), "age": age}
    return {**{name: np.log1p(count) for name, count in counts.items()}, "age": age}


def _occurrences(numbers: Rows, rows: Rows) -> npt.NDArray[np.int64]:
    """Return how often each row occurs among some rising numbers, shape of `rows`."""
    return np.searchsorted(numbers, rows, "right") - np.searchsorted(numbers, rows, "left")


def _of_best(scores: Scores) -> npt.NDArray[np.floating]:
    return scores / max(float(scores.max(initial=0)), 1e-9)


_SCALES: Mapping[str, Callable[[Scores], npt.NDArray[np.floating]]] = {
    "bm25": _of_best,
    "dense": min_max,
}  # retrievers with features of their own; the ranks of the others enter `rrf`


def _missing(papers: int) -> Scores:
    return np.full(papers, np.nan, np.float32)
