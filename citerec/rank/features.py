"""The features of candidates for a learning-to-rank model, computed as of the query's year.

`FEATURES` is the table of citerec's own. A `Feature` of a package (entry point group `citerec.features`), of a
retriever or reranker (its attribute `features`) or of a program is one more row, computed from the same `Signals`; see
docs/guides/extend.md. A value is NaN where it is unknown: LightGBM learns at each split where such papers go.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from math import fsum, log
from typing import Literal

import numpy as np

from citerec.bibliography.keys import name_key, same_person
from citerec.config import RRF_K0
from citerec.errors import ConfigError, shown
from citerec.files.arrays import Array, Counts, Flags, Rows, Scores, offsets
from citerec.graph.temporal import GraphSnapshot, TemporalGraph
from citerec.index.papers import NO_YEAR, Papers, codes
from citerec.index.vectors import unit
from citerec.plugins import Plugins
from citerec.rank.expand import (
    CLOSEST,
    EXPAND,
    SEEDS,
    STEPS,
    ExpandedCandidates,
    linked_similarity,
    walk,
)
from citerec.rerank.reranker import NAME as RERANK
from citerec.retrieve.fuse import min_max, ranks_and_scores
from citerec.text import STOP_WORDS, contents
from citerec.types import Hits, Query, SentenceScores

NEAR = 20  # closest candidates of a sentence, as many as a list of references shows
HIGHEST = 3  # sentences of a body that are averaged
OLDEST = 30  # years; the largest age
COVERED = 0.8  # a draft of the corpus' field is that near to its candidates, or nearer
REFERENCES = 5  # in the corpus, of a paper, in most corpora

Values = Array  # shape (papers,)
Matrix = Scores  # shape (papers, features); NaN where a value is unknown
Table = Scores  # shape (sentences, candidates)


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
    LIST = "list"  # of the whole list, so of its calibration and not of its order
    BODY = "body"  # of the text of a draft, for a model of its own
    CONTEXTS = "contexts"  # sentences that cite, where an index has some
    ADDED = "added"  # of packages and programs


@dataclass(eq=False)
class Signals:
    """What a feature may read: one query, its candidates, and what is known at the query's time."""

    query: Query
    candidates: ExpandedCandidates
    cited: Sequence[int]  # the rows of the known references
    lookups: "Features"  # keeps what was read of the index

    def __post_init__(self) -> None:
        # of the candidates; each feature has their shape
        self.rows: Rows = self.candidates.rows
        self.snapshot = self.candidates.snapshot  # the known citations
        self.graph = self.snapshot.temporal
        self.index = self.graph.index

    @property
    def missing(self) -> Scores:
        """NaN for each candidate: a value that is unknown."""
        return np.full(len(self.rows), np.nan, np.float32)

    def scores(self, retriever: str) -> Scores:
        """Return the score that a retriever gave each candidate; NaN where it is not among its hits."""
        hits = self.candidates.hits_by_source.get(retriever)
        return self.missing if hits is None else ranks_and_scores(hits, self.rows)[1]

    def reciprocal_ranks(self, retriever: str) -> Values:
        """Return 1 / (60 + rank) of each candidate by a retriever, 0 where it is not among its hits."""
        return self._ranks.get(retriever, self.missing)

    @cached_property
    def _ranks(self) -> dict[str, Values]:
        """The reciprocal ranks by retriever."""
        return {
            name: self._reciprocal(hits)
            for name, hits in self.candidates.hits_by_source.items()
            if name != EXPAND and not name.startswith(RERANK)
        }

    def _reciprocal(self, hits: Hits) -> Values:
        """Return 1 / (60 + rank) of each candidate, 0 where it is not among some hits."""
        ranks, _ = ranks_and_scores(hits, self.rows)
        return np.where(ranks > 0, 1 / (RRF_K0 + ranks), 0)

    def scaled_scores(
        self, retriever: str, scale: Callable[[Scores], Values]
    ) -> Values:
        """Return the scores of a retriever, scaled over its hits; 0 where a candidate is not among them."""
        hits = self.candidates.hits_by_source.get(retriever)
        if hits is None:
            return self.missing
        scaled = replace(hits, scores=scale(hits.scores))
        return np.nan_to_num(ranks_and_scores(scaled, self.rows)[1])

    def context_scores(self, name: str) -> Values:
        """Return the scores of each candidate by the contexts that cite it, scaled to [0, 1]; 0 where none was found.

        `name` is that of their search, "bm25" or "dense".
        """
        if (hits := self.candidates.contexts.get(name)) is None:
            return self.missing
        scores = ranks_and_scores(hits, self.rows)[1]
        return np.nan_to_num(scores) / max(float(hits.scores.max(initial=0)), 1e-9)

    def context_rank(self) -> Values:
        """Return the best of 1 / (60 + rank) of each candidate by both searches of contexts; 0 where not found."""
        lists = self.candidates.contexts.values()
        if not lists:
            return self.missing
        return np.max([self._reciprocal(hits) for hits in lists], axis=0)

    def mean_rank(self) -> Values:
        """The mean of the reciprocal ranks of all retrievers."""
        return np.mean([*self._ranks.values()], axis=0) if self._ranks else self.missing

    def log_counts(self, counts: Values) -> Values:
        """Return log(1 + count); unknown if no citation is known."""
        return self.missing if self.snapshot.is_empty else np.log1p(counts)

    def age(self) -> Values:
        """The years of each candidate before the query."""
        years = self.index.papers.years[self.rows]
        return np.where(
            years == NO_YEAR, np.nan, (self.snapshot.year - years).clip(0, OLDEST)
        )

    @cached_property
    def has_abstract(self) -> Values:
        """Whether each candidate has an abstract."""
        return self.index.papers.lengths("abstract", self.rows) > 0

    @cached_property
    def titles(self) -> list[frozenset[str]]:
        """The words of the title of each candidate."""
        return [
            *map(title_words, self.index.papers.texts("title", self.rows).to_pylist())
        ]

    @cached_property
    def _written(self) -> tuple[Rows, int] | None:
        """The papers of the query's authors, see `written_by`; None without authors."""
        papers = self.index.papers
        known = self.query.authors and papers.has_authors
        return written_by(papers, self.query.authors) if known else None

    def author_overlap(self) -> Values:
        """The share of the query's authors that wrote each candidate."""
        if self._written is None:
            return self.missing
        written, author_count = self._written
        shared = _occurrences(written, self.rows) / max(author_count, 1)
        has_authors = self.index.papers.lengths("authors", self.rows) > 0
        return np.where(has_authors, shared, np.nan)

    def self_citations(self) -> Values:
        """How many known papers of the query's authors cite each candidate, log(1 + count)."""
        if self._written is None:
            return self.missing
        citing = np.unique(self._written[0])
        references, _ = self.index.graph.lists(citing[self.snapshot.is_citing(citing)])
        counts = _occurrences(np.sort(references), self.rows)
        return self.log_counts(counts.astype(np.float32))

    def coupling(self) -> Values:
        """The cosine of each candidate's references and the query's known references."""
        if not self.cited:
            return self.missing
        known = np.unique(np.array(self.cited, np.int32))
        references, sizes = self.index.graph.lists(self.rows)
        owners = np.repeat(np.arange(len(self.rows)), sizes)[np.isin(references, known)]
        shared = np.bincount(owners, minlength=len(self.rows)).astype(np.float32)
        size = np.sqrt(np.maximum(sizes, 1) * np.float32(len(known)))
        return np.where(self.snapshot.is_citing(self.rows), shared / size, 0)

    def linked_similarity(self) -> Values:
        """The similarity of the query and the linked papers of each candidate, min-max scaled."""
        if (vector := self.candidates.query_vector) is None:
            return self.missing
        # scaled, because the cosines of one encoder are not those of another
        values = linked_similarity(self.snapshot, self.rows, vector)
        known = np.isfinite(values)
        values[known] = min_max(values[known])
        return values

    def walk(self) -> Values:
        """The visits of a walk from the best candidates / the most visits."""
        visits = walk(self.snapshot, self.rows).at(self.rows)
        return visits / max(float(visits.max(initial=0)), 1e-9)

    @cached_property
    def cosines(self) -> Table | None:
        """The cosines of title and sentences, in this order, and the candidates; None without vectors."""
        return self._cosines(self.candidates.sentences)

    def _cosines(self, sentences: SentenceScores) -> Table | None:
        vector = self.candidates.query_vector
        if sentences.vectors is None or vector is None:
            return None
        return unit(sentences.vectors()) @ vector.of_papers(self.rows).T

    def coverage(self) -> Values:
        """How near the query is to its `NEAR` closest candidates / these to theirs, by mean cosine, less `COVERED`.

        At most 0. Source: a local outlier factor, Breunig et al., 2000, https://doi.org/10.1145/342009.335388.
        """
        if (vector := self.candidates.query_vector) is None or len(self.rows) < 2:
            return self.missing
        papers = vector.of_papers(self.rows)
        cosines = papers @ unit(vector.values)
        near = np.argsort(-cosines)[:NEAR]
        # without itself
        among = np.sort(papers[near] @ papers.T, axis=1)[:, -NEAR - 1 : -1]
        ratio = cosines[near].mean() / max(float(among.mean()), 1e-6)
        return np.full(len(self.rows), min(ratio - COVERED, 0))

    def references(self) -> Values:
        """How many references recent papers of the corpus have, log(mean / `REFERENCES`)."""
        mean = self.graph.mean_references(self.snapshot) / REFERENCES
        return np.full(len(self.rows), log(mean)) if mean else self.missing

    @cached_property
    def sentence_bm25(self) -> Table | None:
        """The BM25 scores of title and sentences and the candidates; None without BM25."""
        return self._bm25(self.candidates.sentences)

    def _bm25(self, sentences: SentenceScores) -> Table | None:
        return sentences.bm25(self.rows) if sentences.bm25 else None

    @cached_property
    def body_cosines(self) -> Table | None:
        """The cosines of the sentences of the body and the candidates; None without a body or vectors."""
        return self._cosines(self.candidates.body)

    def body_bm25(self) -> Values:
        """The highest BM25 score of each candidate for a sentence of the body, standardised; unknown without a body."""
        table = self._bm25(self.candidates.body)
        return self.over(table, lambda scores: standardised(scores).max(axis=0))

    def body_title(self) -> Values:
        """The share of the words of each title that the body contains; unknown without a body."""
        text = " ".join(self.query.body)
        return found_in(text, self.titles) if text else self.missing

    def over(self, table: Table | None, reduce: Callable[[Table], Values]) -> Values:
        """Reduce a table of sentences and candidates to one value per candidate; unknown without the table."""
        return self.missing if table is None else reduce(table)


def _occurrences(numbers: Rows, rows: Rows) -> Counts:
    """Return how often each row occurs among some rising numbers, shape of `rows`."""
    return np.searchsorted(numbers, rows, "right") - np.searchsorted(
        numbers, rows, "left"
    )


def near(table: Table) -> Scores:
    """Return of how many sentences each candidate is among the `NEAR` closest, shape (candidates,)."""
    best = np.argsort(-table, axis=1, kind="stable")[:, :NEAR]
    return np.bincount(best.ravel(), minlength=table.shape[1]).astype(np.float32)


def standardised(table: Table) -> Table:
    """Scale the scores of each sentence to mean 0 and standard deviation 1; all 0 if they are equal."""
    spread = table.std(axis=1, keepdims=True)
    # a smaller deviation is a rounding error
    return (table - table.mean(axis=1, keepdims=True)) / np.maximum(
        spread, np.float32(1e-6)
    )


def highest(table: Table) -> Scores:
    """Return the mean of the `HIGHEST` highest standardised scores of each candidate, shape (candidates,)."""
    best = np.sort(standardised(table), axis=0)[-HIGHEST:]
    return best.mean(axis=0)


def table_ranks(table: Table) -> Table:
    """Return 1 / (60 + rank) of each candidate for each sentence, 0 for a score of 0; ties are in the given order."""
    order = np.argsort(-table, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, 1 + table.shape[1])[None], axis=1)
    return np.where(table > 0, 1 / (RRF_K0 + ranks), 0).astype(np.float32)


# The features whose contributions a reason sums up have its name; `value` is the meaning of a feature and its value.
Reason = Literal[
    "bm25",
    "dense",
    "rerank",
    "cited_by_similar",
    "co_cited",
    "coupled",
    "coupling",
    "citations",
    "citations_3y",
    "author_overlap",
    "self_cited",
    "venue_match",
    "value",
    "none",
]
# rising: a higher value never lowers the score; this limits overfitting to one corpus
Direction = Literal["rising", "free"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the matrix."""

    name: str
    group: Group  # `Group.ADDED` for one of a package
    # the value of each candidate; NaN where unknown
    compute: Callable[[Signals], Values]
    meaning: str  # one line, for model cards
    reason: Reason = "value"
    direction: Direction = "free"
    # further groups; the feature is missing without one of them
    needs: tuple[Group, ...] = ()

    @property
    def groups(self) -> frozenset[Group]:
        """All groups that the feature needs."""
        return frozenset({self.group, *self.needs})


# fmt: off
FEATURES: tuple[Feature, ...] = (
    Feature("bm25", Group.LEXICAL,
        lambda s: s.scaled_scores("bm25", lambda scores: scores / max(float(scores.max(initial=0)), 1e-9)),
        "BM25 score / the query's best; 0 where not found",
        "bm25", "rising"),
    Feature("bm25_rank", Group.LEXICAL, lambda s: s.reciprocal_ranks("bm25"),
        f"1 / ({RRF_K0} + rank by BM25); 0 where not found",
        "bm25", "rising"),
    Feature("dense", Group.SEMANTIC, lambda s: s.scaled_scores("dense", min_max),
        "similarity of the vectors, min-max scaled to [0, 1] over the hits",
        "dense", "rising"),
    Feature("dense_rank", Group.SEMANTIC, lambda s: s.reciprocal_ranks("dense"),
        f"1 / ({RRF_K0} + rank by vectors); 0 where not found",
        "dense", "rising"),
    Feature("rrf", Group.LEXICAL, Signals.mean_rank,
        f"mean of 1 / ({RRF_K0} + rank) over the first-stage retrievers",
        "bm25", "rising"),
    Feature("rerank", Group.RERANKER, lambda s: s.missing,  # see `ltr.with_rerank_feature`
        "probability of a citation by the cross-encoder; NaN where not reranked",
        "rerank", "rising"),
    Feature("cited_by_similar", Group.GRAPH, lambda s: s.candidates.neighbour_scores.cited_by,
        "total weight of the neighbours that cite it, in [0, 1]",
        "cited_by_similar", "rising"),
    Feature("cited_by_closest", Group.GRAPH, lambda s: s.candidates.neighbour_scores.cited_by_closest,
        f"likewise, of the {CLOSEST} closest neighbours",
        "cited_by_similar", "rising"),
    Feature("cited_by_similar_count", Group.GRAPH, lambda s: s.candidates.neighbour_scores.cited_by_count,
        "number of neighbours that cite it",
        "cited_by_similar", "rising"),
    Feature("co_cited", Group.GRAPH, lambda s: s.candidates.neighbour_scores.co_cited,
        "weighted cosine of co-citation with the neighbours",
        "co_cited", "rising"),
    Feature("coupled", Group.GRAPH, lambda s: s.candidates.neighbour_scores.coupled,
        "weighted cosine of bibliographic coupling with the neighbours",
        "coupled", "rising"),
    Feature("coupling", Group.GRAPH, Signals.coupling,
        "cosine of its references and the query's known references; NaN if none is known",
        "coupling", "rising"),
    Feature("citations", Group.POPULARITY, lambda s: s.log_counts(s.snapshot.citations(s.rows)),
        "log(1 + known citations)",
        "citations", "free"),
    Feature("citations_3y", Group.POPULARITY, lambda s: s.log_counts(s.snapshot.recent_citations(s.rows)),
        "log(1 + known citations of the last 3 years)",
        "citations_3y", "free"),
    Feature("age", Group.POPULARITY, Signals.age,
        f"years before the query, at most {OLDEST}",
        "none", "free"),
    Feature("author_overlap", Group.AUTHORS, Signals.author_overlap,
        "share of the query's authors that wrote it",
        "author_overlap", "rising"),
    Feature("self_cited", Group.AUTHORS, Signals.self_citations,
        "log(1 + known papers of the query's authors that cite it)",
        "self_cited", "rising"),
    Feature("venue_match", Group.VENUE, lambda s: same_venue(s.index.papers, s.query.venue, s.rows),
        "1 if it appeared in the query's venue, else 0",
        "venue_match", "rising"),
    Feature("title_overlap", Group.TEXT, lambda s: jaccard(title_words(s.query.title), s.titles),
        "Jaccard similarity of the words of both titles",
        "bm25", "rising"),
    Feature("no_abstract", Group.TEXT, lambda s: ~s.has_abstract,
        "1 if it has no abstract, else 0",
        "none", "free"),
    Feature("abstracts", Group.TEXT, lambda s: np.full(len(s.rows), s.has_abstract.mean()),
        "share of the candidates that have an abstract",
        "none", "free"),
    Feature("linked_similarity", Group.GRAPH, Signals.linked_similarity,
        "cosine of the vectors of the query and of its references and citing papers (mean), min-max scaled",
        "dense", "rising", needs=(Group.SEMANTIC,)),
    Feature("walk", Group.GRAPH, Signals.walk,
        f"visits by a walk of {STEPS} steps from the best {SEEDS} candidates / the most visited",
        "cited_by_similar", "rising"),
    Feature("venue_citations", Group.VENUE, lambda s: s.lookups.venue_rates.rates(s.snapshot, s.query.venue, s.rows),
        "share of its venue in the known references of the query's venue",
        "none", "rising", needs=(Group.GRAPH,)),
    Feature("sentence", Group.SEMANTIC,  # the title counts where it is alone
        lambda s: s.over(s.cosines, lambda t: standardised(t[1:] if len(t) > 1 else t).max(axis=0)),
        "highest similarity of its vector and a sentence's, in standard deviations over the candidates",
        "dense", "rising"),
    Feature("sentences_near", Group.SEMANTIC, lambda s: s.over(s.cosines, near),
        f"sentences and title of which it is among the {NEAR} closest candidates",
        "dense", "rising"),
    Feature("sentence_bm25", Group.LEXICAL, lambda s: s.over(s.sentence_bm25, lambda t: standardised(t).max(axis=0)),
        "highest BM25 score for title or sentence, in standard deviations over the candidates",
        "bm25", "rising"),
    Feature("sentence_bm25_rank", Group.LEXICAL,
        lambda s: s.over(s.sentence_bm25, lambda t: table_ranks(t).max(axis=0)),
        f"1 / ({RRF_K0} + best rank among the candidates by one of these scores)",
        "bm25", "rising"),
    Feature("title_found", Group.TEXT, lambda s: found_in(s.query.context or contents(s.query), s.titles),
        "share of its title's words that the draft, or its sentence, contains; words of few titles count more",
        "bm25", "rising"),
    Feature("body_sentence", Group.BODY,
        lambda s: s.over(s.body_cosines, lambda t: standardised(t).max(axis=0)),
        "highest similarity of its vector and that of a sentence of the body, in standard deviations",
        "dense", "rising", needs=(Group.SEMANTIC,)),
    Feature("body_sentences", Group.BODY, lambda s: s.over(s.body_cosines, highest),
        f"likewise, the mean of the {HIGHEST} highest",
        "dense", "rising", needs=(Group.SEMANTIC,)),
    Feature("body_bm25", Group.BODY, Signals.body_bm25,
        "highest BM25 score for a sentence of the body, in standard deviations over the candidates",
        "bm25", "rising", needs=(Group.LEXICAL,)),
    Feature("body_title", Group.BODY, Signals.body_title,
        "share of its title's words that the body contains; words of few titles count more",
        "bm25", "rising", needs=(Group.TEXT,)),
    Feature("coverage", Group.LIST, Signals.coverage,
        f"similarity of the draft and its {NEAR} closest candidates / of these and theirs, less {COVERED}, at most 0",
        "none", "free", needs=(Group.SEMANTIC,)),
    Feature("references", Group.LIST, Signals.references,
        f"log(mean number of known references of the latest tenth of the citing papers / {REFERENCES})",
        "none", "free", needs=(Group.GRAPH,)),
    Feature("known", Group.LIST, lambda s: np.full(len(s.rows), bool(s.cited)),
        "1 if references of the draft are known, else 0",
        "none", "free"),
    # of the sentences that cite papers, see `citerec.rank.contexts`
    Feature("context_bm25", Group.CONTEXTS, lambda s: s.context_scores("bm25"),
        "BM25 scores of the sentences that cite it / those of the best paper; 0 where none was found",
        "none", "rising"),
    Feature("context_dense", Group.CONTEXTS, lambda s: s.context_scores("dense"),
        "likewise, by vectors",
        "none", "rising", needs=(Group.SEMANTIC,)),
    Feature("context_rank", Group.CONTEXTS, Signals.context_rank,
        f"1 / ({RRF_K0} + rank by these scores), the better one; 0 where not found",
        "none", "rising"),
)
# fmt: on
NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)


def declared_features(
    parts: Iterable[object], given: Iterable[Feature] = ()
) -> tuple[Feature, ...]:
    """Return the features that are given, and those that retrievers and rerankers have as `features`.

    A part may be the name of a reranker, which a package may register.
    """
    loaded = (
        Plugins.RERANKERS.load(part)
        if isinstance(part, str) and part in Plugins.RERANKERS.names
        else getattr(part, "retriever", part)
        for part in parts
    )
    declared = (feature for part in loaded for feature in getattr(part, "features", ()))
    features = (*given, *declared)
    if wrong := [part for part in features if not isinstance(part, Feature)]:
        raise ConfigError(f"{shown(wrong[0])} is no citerec.rank.features.Feature")
    return tuple({feature.name: feature for feature in features}.values())


def added_features(
    names: Iterable[str], given: Iterable[Feature]
) -> tuple[Feature, ...]:
    """Return the features with some names that are not citerec's own, of those given, else of installed packages.

    A ConfigError if there is no feature of a name, or its package cannot be imported.
    """
    by_name = {feature.name: feature for feature in given}
    return tuple(
        by_name.get(name) or replace(Plugins.FEATURES.load(name), name=name)
        for name in names
        if name not in NAMES
    )


class Features:
    """Computes features on one index. It caches what it reads of the corpus, so reuse the object."""

    def __init__(
        self,
        graph: TemporalGraph,
        names: Collection[str] = NAMES,
        added: Sequence[Feature] = (),
    ) -> None:
        """Prepare to compute the features with some names, and `added` ones, which are the last columns of a matrix."""
        # the rank by BM25 is also the fused rank where the semantic group is disabled
        self._computed = {*names, "bm25_rank", *(feature.name for feature in added)}
        self._graph = graph
        self.table = (*FEATURES, *added)

    @cached_property
    def venue_rates(self) -> "VenueRates":
        """How often venues cite each other."""
        return VenueRates(self._graph)

    def matrix(
        self, query: Query, candidates: ExpandedCandidates, cited: Sequence[int] = ()
    ) -> Matrix:
        """Return the features of each candidate, shape (papers, features); that of a reranker is missing.

        `cited` are the rows of the known references of the query. A ConfigError if an added feature returns no number
        for each candidate.
        """
        signals = Signals(query, candidates, cited, self)
        matrix = np.full((len(signals.rows), len(self.table)), np.nan, np.float32)
        no_graph = candidates.snapshot.is_empty
        for column, feature in enumerate(self.table if len(matrix) else ()):
            if feature.name in self._computed and not (
                no_graph and Group.GRAPH in feature.groups
            ):
                values = np.asarray(feature.compute(signals))
                if values.shape != (len(matrix),) or np.isinf(values).any():
                    raise ConfigError(
                        f"the feature {feature.name} must be {len(matrix)} numbers, one per candidate, or NaN; "
                        f"got shape {values.shape}"
                    )
                matrix[:, column] = values
        return matrix


def without_groups(
    matrix: Matrix,
    groups: Collection[Group],
    rows: Flags | None = None,
    *,
    keep: Collection[str] = (),
    added: Sequence[Feature] = (),
) -> Matrix:
    """Return features with disabled groups: NaN in their columns.

    Without the semantic group the fused rank is that of BM25 alone, as on an index without vectors.

    `rows` is a mask of the papers to change, None for all; features in `keep` stay; `added` are in the last columns.
    """
    changed = matrix.copy()
    disabled = frozenset(groups)
    where = slice(None) if rows is None else rows
    for column, feature in enumerate((*FEATURES, *added)):
        if feature.groups & disabled and feature.name not in keep:
            changed[where, column] = np.nan
    if Group.SEMANTIC in groups:
        changed[where, NAMES.index("rrf")] = changed[where, NAMES.index("bm25_rank")]
    return changed


_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=100_000)
def title_words(title: str) -> frozenset[str]:
    """Return the words of a title in lower case, without function words."""
    return frozenset(_WORD.findall(title.lower())) - STOP_WORDS


def jaccard(words: frozenset[str], titles: Iterable[frozenset[str]]) -> Scores:
    """Return the Jaccard similarity of the words of a title and of others, in [0, 1]; 0 if one has no word."""
    pairs = [(len(words & others), len(words | others)) for others in titles]
    return np.array(
        [both / either if both else 0.0 for both, either in pairs], np.float32
    )


def found_in(text: str, titles: Sequence[frozenset[str]]) -> Scores:
    """Return the share of each title's words that a text contains, in [0, 1]; 0 if it has no word.

    A word has the weight log((titles + 1) / titles with it).
    """
    words = title_words(text)
    counts = Counter(word for title in titles for word in title)
    weights = {word: log((len(titles) + 1) / count) for word, count in counts.items()}

    def mass(of: Iterable[str]) -> float:
        return fsum(weights[word] for word in of)  # exact, so in any order

    shares = [
        mass(title & words) / mass(title) if title & words else 0.0 for title in titles
    ]
    return np.array(shares, np.float32)


def written_by(papers: Papers, names: Sequence[str]) -> tuple[Rows, int]:
    """Return the papers of some authors, and how many different authors the names are.

    Rows rise; one occurs once for each of these authors that the paper has. Authors whose given names differ are others
    (`same_person`); one of whom initials alone are known is taken for the same.
    """
    by_key = {key: name for name in reversed(names) if (key := name_key(name))}
    rows = list[int]()
    for (key, name), of_key in zip(
        by_key.items(), papers.lookup.authors.rows_of(by_key), strict=True
    ):
        family = key.rpartition(" ")[2]
        for row, authors in zip(
            of_key.tolist(), papers.texts("authors", of_key).to_pylist(), strict=True
        ):
            # most names need no comparison
            near = (
                a
                for a in authors
                if family in a.lower().replace("'", "") or not a.isascii()
            )
            if {same_person(name, author) for author in near} & {True, None}:
                rows.append(row)
    return np.array(sorted(rows), np.int32), len(by_key)


@lru_cache(maxsize=2**14)
def venue_key(venue: str) -> str:
    """Return the letters of a venue's name, in lower case, without year and volume."""
    return "".join(filter(str.isalpha, venue.lower()))


def same_venue(papers: Papers, venue: str, rows: Rows) -> Scores:
    """Return 1 for the papers of a venue, 0 for the others, NaN if a venue is unknown; in the shape of `rows`."""
    key = venue_key(venue)
    if not key:
        return np.full(len(rows), np.nan, np.float32)
    keys = map(venue_key, papers.texts("venue", rows).to_pylist())
    return np.array(
        [float(other == key) if other else np.nan for other in keys], np.float32
    )


# whose references are counted: an even sample of a larger venue
MAX_VENUE_PAPERS = 20_000


class VenueRates:
    """How often the papers of one venue cite those of another; reuse the object."""

    def __init__(self, graph: TemporalGraph) -> None:
        """Read the venues of all papers; distinct ones are few."""
        self._graph = graph
        named, numbers = codes(graph.index.papers.column("venue"))
        keys = [venue_key(name) for name in named.to_pylist()]
        # by venue; 0 for an unknown one
        self._numbers = {key: n for n, key in enumerate(dict.fromkeys(["", *keys]))}
        self._venues = np.array([self._numbers[key] for key in keys], np.int32)[numbers]
        self._order = np.argsort(self._venues, kind="stable").astype(np.int32)
        self._ends = offsets(np.bincount(self._venues))

    def rates(self, snapshot: GraphSnapshot, venue: str, rows: Rows) -> Scores:
        """Return the share of each candidate's venue in the known references of a venue's earlier papers.

        In [0, 1], shape of `rows`. NaN if the venue of the candidate or of the query is unknown, or if no reference of
        the query's venue has a known venue.
        """
        number = self._numbers.get(venue_key(venue), 0)
        missing = np.full(len(rows), np.nan, np.float32)
        if not number:
            return missing
        members = self._order[self._ends[number] : self._ends[number + 1]]
        members = members[:: -(-len(members) // MAX_VENUE_PAPERS) or 1]
        cited, _ = self._graph.index.graph.lists(members[snapshot.is_citing(members)])
        cited = cited[self._graph.index.papers.years[cited] < snapshot.year]
        counts = np.bincount(self._venues[cited], minlength=len(self._ends))
        total = counts[1:].sum()
        if not total:
            return missing
        candidate_venues = self._venues[rows]
        rates = counts[candidate_venues] / total
        return np.where(candidate_venues == 0, np.nan, rates).astype(np.float32)
