"""The features of candidates for a learning-to-rank model, computed as of the query's year."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from math import fsum, log
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.bibliography.keys import name_key
from citerec.config import RRF_K0
from citerec.corpus.papers import NO_YEAR, Papers, codes
from citerec.folder import IndexFolder
from citerec.rank.expand import (
    CLOSEST,
    EXPAND,
    SEEDS,
    STEPS,
    ExpandedCandidates,
    Links,
    centroid_similarity,
    citers,
    either,
    references,
    unit,
    walk,
)
from citerec.rerank.reranker import NAME as RERANK
from citerec.retrieve.fuse import min_max, ranks_and_scores
from citerec.rules.known import Flags, GraphSnapshot, Rows, Scores, TemporalGraph
from citerec.text import STOP_WORDS
from citerec.types import Query, QueryVector

NEAR = 20  # closest candidates of a sentence, as many as a list of references shows
OLDEST = 30  # years; the largest age


class Group(StrEnum):
    """The source of a feature. All features of a group are present or missing together."""

    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    RERANKER = "reranker"
    GRAPH = "graph"
    POPULARITY = "popularity"
    AUTHORS = "authors"
    VENUE = "venue"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the matrix."""

    name: str
    group: Group
    meaning: str
    needs: tuple[Group, ...] = ()  # further groups; the feature is missing without one of them

    @property
    def groups(self) -> frozenset[Group]:
        """All groups that the feature needs."""
        return frozenset({self.group, *self.needs})


FEATURES: tuple[Feature, ...] = (
    Feature("bm25", Group.LEXICAL, "BM25 score / the query's best; 0 where not found"),
    Feature("bm25_rank", Group.LEXICAL, f"1 / ({RRF_K0} + rank by BM25); 0 where not found"),
    Feature(
        "dense",
        Group.SEMANTIC,
        "similarity of the vectors, min-max scaled to [0, 1] over the hits",
    ),
    Feature("dense_rank", Group.SEMANTIC, f"1 / ({RRF_K0} + rank by vectors); 0 where not found"),
    Feature("rrf", Group.LEXICAL, f"mean of 1 / ({RRF_K0} + rank) over the first-stage retrievers"),
    Feature(
        "rerank",
        Group.RERANKER,
        "probability of a citation by the cross-encoder; NaN where not reranked",
    ),
    Feature(
        "cited_by_similar", Group.GRAPH, "total weight of the neighbours that cite it, in [0, 1]"
    ),
    Feature("cited_by_closest", Group.GRAPH, f"likewise, of the {CLOSEST} closest neighbours"),
    Feature("cited_by_similar_count", Group.GRAPH, "number of neighbours that cite it"),
    Feature("co_cited", Group.GRAPH, "weighted cosine of co-citation with the neighbours"),
    Feature(
        "coupled", Group.GRAPH, "weighted cosine of bibliographic coupling with the neighbours"
    ),
    Feature(
        "coupling",
        Group.GRAPH,
        "cosine of its references and the query's known references; NaN if none is known",
    ),
    Feature("citations", Group.POPULARITY, "log(1 + known citations)"),
    Feature("citations_3y", Group.POPULARITY, "log(1 + known citations of the last 3 years)"),
    Feature("age", Group.POPULARITY, f"years before the query, at most {OLDEST}"),
    Feature("author_overlap", Group.AUTHORS, "share of the query's authors that wrote it"),
    Feature(
        "self_cited", Group.AUTHORS, "log(1 + known papers of the query's authors that cite it)"
    ),
    Feature("venue_match", Group.VENUE, "1 if it appeared in the query's venue, else 0"),
    Feature("title_overlap", Group.TEXT, "Jaccard similarity of the words of both titles"),
    Feature("no_abstract", Group.TEXT, "1 if it has no abstract, else 0"),
    Feature("abstracts", Group.TEXT, "share of the candidates that have an abstract"),
    Feature(
        "linked_similarity",
        Group.GRAPH,
        "cosine of the vectors of the query and of its references and citing papers (mean), min-max scaled",
        needs=(Group.SEMANTIC,),
    ),
    Feature(
        "walk",
        Group.GRAPH,
        f"visits by a walk of {STEPS} steps from the best {SEEDS} candidates / the most visited",
    ),
    Feature(
        "venue_citations",
        Group.VENUE,
        "share of its venue in the known references of the query's venue",
        needs=(Group.GRAPH,),
    ),
    Feature(
        "sentence",
        Group.SEMANTIC,
        "highest similarity of its vector and a sentence's, in standard deviations over the candidates",
    ),
    Feature(
        "sentences_near",
        Group.SEMANTIC,
        f"sentences and title of which it is among the {NEAR} closest candidates",
    ),
    Feature(
        "sentence_bm25",
        Group.LEXICAL,
        "highest BM25 score for title or sentence, in standard deviations over the candidates",
    ),
    Feature(
        "sentence_bm25_rank",
        Group.LEXICAL,
        f"1 / ({RRF_K0} + best rank among the candidates by one of these scores)",
    ),
    Feature(
        "title_found",
        Group.TEXT,
        "share of its title's words that the draft contains; words of few candidates' titles count more",
    ),
)
NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)


_WORD = re.compile(r"[^\W_]+")
_MAX_TITLES = 100_000  # titles whose words are in memory at once


class Titles:
    """The words of titles, cached between queries."""

    def __init__(self, papers: Papers) -> None:
        self._papers = papers
        self._words: dict[int, frozenset[str]] = {}

    def overlap(self, title: str, rows: Rows) -> Scores:
        """Return the Jaccard similarity of a title and the titles of papers, in [0, 1], in the shape of `rows`.

        Words are in lower case, without function words. The similarity is 0 if a title has no word.
        """
        query_words = title_words(title)
        candidate_words = self._of(rows)
        shared = [len(query_words & words) for words in candidate_words]
        return np.array(
            [
                both / (len(query_words) + len(words) - both) if both else 0.0
                for both, words in zip(shared, candidate_words, strict=True)
            ],
            np.float32,
        )

    def found_in(self, text: str, rows: Rows) -> Scores:
        """Return the share of each title's words that a text contains, in [0, 1], in the shape of `rows`.

        A word has the weight log((papers + 1) / titles with it) among the titles of these papers. The share is 0 if a
        title has no word.
        """
        titles, words = self._of(rows), title_words(text)
        counts = Counter(word for title in titles for word in title)
        weights = {word: log((len(titles) + 1) / count) for word, count in counts.items()}

        def mass(found: Iterable[str]) -> float:
            return fsum(weights[word] for word in found)  # exact, so in any order

        return np.array(
            [mass(title & words) / mass(title) if title & words else 0.0 for title in titles],
            np.float32,
        )

    def _of(self, rows: Rows) -> Sequence[frozenset[str]]:
        if len(self._words) > _MAX_TITLES:
            self._words.clear()
        fresh = [row for row in rows.tolist() if row not in self._words]
        texts = self._papers.texts("title", np.array(fresh, np.int32)).to_pylist()
        self._words.update(zip(fresh, map(title_words, texts), strict=True))
        return [self._words[row] for row in rows.tolist()]


def title_words(title: str) -> frozenset[str]:
    """Return the words of a title in lower case, without function words."""
    return frozenset(_WORD.findall(title.lower())) - STOP_WORDS


class Venues:
    """The venues of all papers. The constructor reads them all; distinct venues are few."""

    def __init__(self, papers: Papers) -> None:
        self._papers = papers
        named, numbers = codes(papers.column("venue"))
        keys = [venue_key(name) for name in named.to_pylist()]
        number = {key: n for n, key in enumerate(dict.fromkeys(["", *keys]))}
        self._numbers = number  # by venue; 0 for an unknown venue
        # of each paper, shape (papers,)
        self.numbers = np.array([number[key] for key in keys], np.int32)[numbers]

    def number(self, venue: str) -> int:
        """Return the number of a venue; 0 for an unknown one, -1 for one without a paper."""
        return self._numbers.get(venue_key(venue), -1)

    def same(self, venue: str, rows: Rows) -> Scores:
        """Return 1 for the papers of a venue, 0 for the others, NaN if a venue is unknown; in the shape of `rows`.

        Only letters are compared, without year and volume.
        """
        return same_venue(self._papers, venue, rows)


def same_venue(papers: Papers, venue: str, rows: Rows) -> Scores:
    """Return 1 for the papers of a venue, 0 for the others, NaN if a venue is unknown; in the shape of `rows`.

    Only letters are compared, without year and volume.
    """
    key = venue_key(venue)
    if not key:
        return np.full(len(rows), np.nan, np.float32)
    keys = map(venue_key, papers.texts("venue", rows).to_pylist())
    return np.array([float(other == key) if other else np.nan for other in keys], np.float32)


@lru_cache(maxsize=2**14)
def venue_key(venue: str) -> str:
    """Return the letters of a venue's name, in lower case."""
    return "".join(filter(str.isalpha, venue.lower()))


_NONE: Rows = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """The papers of some authors."""

    rows: Rows  # rising; a row occurs once for each of these authors that the paper has
    author_count: int  # different authors among the given names


class Authors:
    """The authors of all papers of a corpus; reuse the object."""

    def __init__(self, papers: Papers) -> None:
        """Prepare. Without stored tables all authors are read on first use."""
        self._papers = papers

    @property
    def has_any(self) -> bool:
        """Whether any paper has an author."""
        return self._papers.has_authors

    @property
    def named(self) -> Flags:
        """Whether each paper has an author, shape (papers,)."""
        return self.is_named(np.arange(len(self._papers), dtype=np.int32))

    def is_named(self, rows: Rows) -> Flags:
        """Return whether some papers have an author, shape of `rows`."""
        return self._papers.lengths("authors", rows) > 0

    def written_by(self, names: Sequence[str]) -> Written:
        """Return the papers with at least one of the given authors."""
        keys = {key for name in names if (key := name_key(name))}
        if self._papers.lookup:
            found = self._papers.lookup.authors.rows_of(sorted(keys))
            return Written(np.sort(np.concatenate([*found, _NONE])), len(keys))
        numbers, authors, rows = self._read
        wanted = sorted(numbers[key] for key in keys if key in numbers)
        positions = np.flatnonzero(np.isin(authors, wanted))
        pairs = np.unique(np.stack([rows[positions], authors[positions]]), axis=1)
        return Written(pairs[0], len(keys))

    @cached_property
    def _read(self) -> tuple[dict[str, int], Rows, Rows]:
        """The number of each author, and the authors and rows of all pairs of paper and author."""
        names, counts = self._papers.authors()
        distinct, which = codes(names)
        numbers: dict[str, int] = {}
        keys = [numbers.setdefault(name_key(name), len(numbers)) for name in distinct.to_pylist()]
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return numbers, np.array(keys, np.int32)[which], rows


MOST = 20_000  # papers of one venue whose references are counted: an even sample of a larger one


class VenueRates:
    """How often the papers of one venue cite those of another; reuse the object."""

    def __init__(self, graph: TemporalGraph, venues: Venues) -> None:
        """Prepare; `graph` is the citation graph of the expansion."""
        self._graph, self._venues = graph, venues
        self._order = np.argsort(venues.numbers, kind="stable").astype(np.int32)
        sizes = np.bincount(venues.numbers)
        self._ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])

    def rates(self, snapshot: GraphSnapshot, venue: str, rows: Rows) -> Scores:
        """Return the share of each candidate's venue in the known references of a venue's earlier papers.

        Args:
            snapshot: The known citations.
            venue: The venue of the query.
            rows: The candidates.

        Returns:
            In [0, 1], shape of `rows`. NaN if the venue of the candidate or of the query is unknown, or if no
            reference of the query's venue has a known venue.
        """
        number = self._venues.number(venue)
        missing = np.full(len(rows), np.nan, np.float32)
        if number <= 0:
            return missing
        of_venue = self._order[self._ends[number] : self._ends[number + 1]]
        of_venue = of_venue[:: -(-len(of_venue) // MOST) or 1]
        cited, _ = self._graph.index.graph.lists(of_venue[snapshot.is_citing(of_venue)])
        cited = cited[self._graph.index.papers.years[cited] < snapshot.year]
        counts = np.bincount(self._venues.numbers[cited], minlength=len(self._ends))
        total = counts[1:].sum()
        if not total:
            return missing
        candidate_venues = self._venues.numbers[rows]
        rates = counts[candidate_venues] / total
        return np.where(candidate_venues == 0, np.nan, rates).astype(np.float32)


Table = npt.NDArray[np.float32]  # shape (sentences, candidates)

_LEAST = np.float32(1e-6)  # least standard deviation; smaller values are rounding errors


def cosines(sentences: npt.NDArray[np.float32], papers: npt.NDArray[np.float32]) -> Table:
    """Return the cosine of each sentence's vector and each paper's.

    Args:
        sentences: Shape (sentences, dim).
        papers: Shape (candidates, dim).
    """
    return unit(sentences) @ unit(papers).T


def reciprocal_ranks(table: Table) -> Table:
    """Return 1 / (60 + rank) of each candidate for each sentence, 0 for a score of 0; ties are in the given order."""
    order = np.argsort(-table, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, 1 + table.shape[1])[None], axis=1)
    return np.where(table > 0, 1 / (RRF_K0 + ranks), 0).astype(np.float32)


def standardised(table: Table) -> Table:
    """Scale the scores of each sentence to mean 0 and standard deviation 1; all 0 if they are equal."""
    spread = table.std(axis=1, keepdims=True)
    return (table - table.mean(axis=1, keepdims=True)) / np.maximum(spread, _LEAST)


def highest(table: Table) -> Scores:
    """Return each candidate's highest score for any sentence, shape (candidates,)."""
    return table.max(axis=0)


def near(table: Table) -> Scores:
    """Return of how many sentences each candidate is among the `NEAR` closest, shape (candidates,)."""
    best = np.argsort(-table, axis=1, kind="stable")[:, :NEAR]
    return np.bincount(best.ravel(), minlength=table.shape[1]).astype(np.float32)


class Evidence:
    """Computes these features on one index; reuse the object."""

    def __init__(
        self,
        graph: TemporalGraph,
        *,
        venues: Callable[[], Venues],
        titles: Titles,
    ) -> None:
        """Prepare; venues are read on first use."""
        self.graph, self.titles, self._read_venues = graph, titles, venues

    def columns(
        self, query: Query, candidates: ExpandedCandidates, names: Collection[str]
    ) -> dict[str, Scores]:
        """Return the features by name, each of shape (papers,): NaN if it is not among `names`, or missing."""
        missing = np.full(len(candidates.rows), np.nan, np.float32)
        wanted = {*names} if len(missing) else set[str]()
        if candidates.snapshot.is_empty:
            wanted -= _OF_CITATIONS
        one = _QueryEvidence(query, candidates, self)
        return {
            name: compute(one) if name in wanted else missing for name, compute in _COLUMNS.items()
        }

    @cached_property
    def venue_rates(self) -> VenueRates:
        """The citations between venues."""
        return VenueRates(self.graph, self._read_venues())


class _QueryEvidence:
    """Computes the features of one query."""

    def __init__(self, query: Query, candidates: ExpandedCandidates, of_index: Evidence) -> None:
        self._query, self._vector = query, candidates.query_vector
        self._rows, self._snapshot = candidates.rows, candidates.snapshot
        self._sentences = candidates.sentences
        self._graph, self._index = of_index.graph, of_index

    def linked_similarity(self) -> Scores:
        return self._by_vector(centroid_similarity, self._linked)

    def walk(self) -> Scores:
        visited = walk(self._graph, self._snapshot, self._rows)
        visits = visited.at(self._rows, self._graph.scratch)
        return (visits / max(float(visits.max(initial=0)), 1e-9)).astype(np.float32)

    def venue_citations(self) -> Scores:
        return self._index.venue_rates.rates(self._snapshot, self._query.venue, self._rows)

    def sentence(self) -> Scores:
        if self._cosines is None:
            return self._missing
        return highest(standardised(self._cosines[1:] if len(self._cosines) > 1 else self._cosines))

    def sentences_near(self) -> Scores:
        return self._missing if self._cosines is None else near(self._cosines)

    def sentence_bm25(self) -> Scores:
        return self._missing if self._bm25 is None else highest(standardised(self._bm25))

    def sentence_bm25_rank(self) -> Scores:
        return self._missing if self._bm25 is None else highest(reciprocal_ranks(self._bm25))

    def title_found(self) -> Scores:
        return self._index.titles.found_in(
            f"{self._query.title} {self._query.abstract}", self._rows
        )

    def _linked(self) -> Links:
        """Return the papers that each candidate cites or is cited by."""
        place = self._graph, self._snapshot, self._rows
        return either(citers(*place), references(*place))

    @cached_property
    def _cosines(self) -> Table | None:
        """The cosines of title and sentences, in this order, and the candidates; None without vectors."""
        vectors = self._sentences.vectors
        if vectors is None or self._vector is None:
            return None
        return cosines(vectors(), self._vector.of_papers(self._rows))

    @cached_property
    def _bm25(self) -> Table | None:
        """The scores by BM25 of title and sentences and the candidates; None without."""
        scores = self._sentences.bm25
        return scores(self._rows) if scores else None

    @property
    def _missing(self) -> Scores:
        return np.full(len(self._rows), np.nan, np.float32)

    def _by_vector(
        self, similarity: Callable[[QueryVector, Links], Scores], links: Callable[[], Links]
    ) -> Scores:
        if self._vector is None:
            return self._missing
        return _scaled(similarity(self._vector, links()))


def _scaled(values: Scores) -> Scores:
    """Return values scaled to [0, 1] over the candidates: the cosines of one encoder are not those of another."""
    known = np.isfinite(values)
    scaled = np.full(len(values), np.nan, np.float32)
    scaled[known] = min_max(values[known])
    return scaled


_COLUMNS: Mapping[str, Callable[[_QueryEvidence], Scores]] = {
    "linked_similarity": _QueryEvidence.linked_similarity,
    "walk": _QueryEvidence.walk,
    "venue_citations": _QueryEvidence.venue_citations,
    "sentence": _QueryEvidence.sentence,
    "sentences_near": _QueryEvidence.sentences_near,
    "sentence_bm25": _QueryEvidence.sentence_bm25,
    "sentence_bm25_rank": _QueryEvidence.sentence_bm25_rank,
    "title_found": _QueryEvidence.title_found,
}
SENTENCE_VECTORS = frozenset(("sentence", "sentences_near"))  # the features of these vectors
_OF_CITATIONS = frozenset(feature.name for feature in FEATURES if Group.GRAPH in feature.groups)


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
