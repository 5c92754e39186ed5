"""`BatchRecommender` opens the stages of the pipeline on one index and runs them for drafts."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

from citerec.config import RecommendConfig
from citerec.describe import describe_cascade, describe_settings
from citerec.drafts.context import read_query
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.matching import recognise
from citerec.no_results import (
    explain_no_results,
    unmatched_notice,
    unreadable_notice,
)
from citerec.pipeline import (
    DiversityStage,
    Pipeline,
    RerankingStage,
    Stage,
    depth_for,
    open_reranking,
    rank_stages,
)
from citerec.rank.diversity import SimilarityFunction, by_vectors, by_words
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import title_words
from citerec.rank.ltr import CustomRanker, RankModel, ranker_of, reads_sentence_vectors
from citerec.rank.reasons import with_reasons
from citerec.recommendations import READ_AT_ONCE, BatchResult, with_papers
from citerec.rerank.reranker import Reranker
from citerec.retrieve.hybrid import ContextRetriever, open_hybrid, unreadable_share
from citerec.retrieve.retriever import Retriever
from citerec.rules.eligible import QueryOptions, eligible, eligible_each
from citerec.rules.known import CitationScope, Rows, TemporalGraph
from citerec.types import (
    CandidateSet,
    Log,
    Progress,
    Query,
    QueryBatch,
    Recommendation,
    no_progress,
)

AT_ONCE = 256  # queries of a batch that are searched together
PAIRS_AT_ONCE = 4096  # pairs that are reranked together; enough to sort them by length


class BatchRecommender:
    """Recommends papers of one index: retrieved, expanded, reranked and ordered by a learning-to-rank model."""

    def __init__(
        self,
        index: IndexFolder,
        config: RecommendConfig | None = None,
        log: Log | None = None,
        *,
        retrievers: Sequence[Retriever] | None = None,
        reranker: Reranker | None = None,
        ranker: RankModel | None = None,
    ) -> None:
        """Open an index.

        Args:
            index: The index.
            config: The stages and their settings.
            log: Receives a message before a download from the hub.
            retrievers: The first-stage retrievers, in place of BM25 and the vectors of the index.
            reranker: Scores the best candidates, in place of the reranker that `config` names.
            ranker: Orders the candidates by their features, in place of the model that `config` names.

        Raises:
            CiterecError: If a part of the index, or a model, cannot be opened.
        """
        self.index, self._log = index, log
        self.config = config or RecommendConfig()
        self.ranker = CustomRanker(ranker) if ranker is not None else ranker_of(index, self.config)
        reads_sentences = self.ranker is not None and reads_sentence_vectors(self.ranker)
        self.retriever = open_hybrid(
            index, self.config, log, retrievers=retrievers, sentences_ahead=reads_sentences
        )
        self.cascade = open_reranking(index, self.config, self.ranker, reranker, log)
        self.graph = TemporalGraph(index, CitationScope.PUBLISHED)
        self.pipeline = self._composed()

    def _composed(self) -> Pipeline:
        return Pipeline(
            ContextRetriever(self.retriever, self.index.id_rank),
            self._stages(),
            depth=depth_for(
                self.config.k,
                cascade=self.cascade,
                ranks=self.ranker is not None,
                diversifies=self.config.diversity > 0,
            ),
            queries_per_part=max(1, PAIRS_AT_ONCE // self.cascade.depth)
            if self.cascade
            else READ_AT_ONCE,
        )

    def _stages(self) -> tuple[Stage, ...]:
        config, cascade, stages = self.config, self.cascade, list[Stage]()
        diversify = DiversityStage(self.similarity, config.diversity, config.k)
        if self.ranker:
            expander = CandidateExpander(self.graph, config.expand or self.ranker.expand)
            stages += rank_stages(self.graph, self.ranker, cascade, expander=expander)
        elif cascade:
            stages.append(RerankingStage(cascade))
        if config.diversity:
            stages.append(diversify)
        return tuple(stages)

    @property
    def encoder(self) -> str:
        """The name of the encoder whose vectors are searched; empty for BM25 alone."""
        return self.retriever.encoder

    @property
    def reranker(self) -> str:
        """The name of the reranker; empty without one."""
        return self.cascade.name if self.cascade else ""

    @property
    def reranks(self) -> str:
        """The rerankers and their settings in one line; empty without one."""
        return describe_cascade(self.cascade, self.ranker) if self.cascade else ""

    @property
    def settings_in_use(self) -> tuple[str, ...]:
        """The settings of the stages and the origin of each (tuned, default or option), one per line."""
        fuses = len(self.retriever_names) > 1
        return describe_settings(self.index, self.config, self.cascade, self.ranker, fuses=fuses)

    @property
    def retriever_names(self) -> tuple[str, ...]:
        """The names of the retrievers."""
        return self.retriever.names

    def with_k(self, k: int, log: Log | None = None) -> Self:
        """Return one of `k` papers per query, and perhaps another log, that shares the index and models of this one."""
        other = copy(self)
        other._log = log or self._log
        other.config = self.config.replace(k=k)
        other.pipeline = other._composed()
        return other

    def recommend(
        self,
        queries: Sequence[Query],
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        cited: Iterable[int] = (),
        explain: bool = False,
    ) -> list[tuple[Recommendation, ...]]:
        """Recommend papers for each query, best first.

        Args:
            queries: One query is a batch of one.
            year_max: The latest year of papers and of known citations; by default each query's year.
            excluded: Rows of papers that are not recommended.
            cited: Rows of known references of the queries; the ranker uses them, and they are not recommended.
            explain: Whether to add reasons, which takes longer.

        Returns:
            For each query, in the order given, at most `config.k` papers; none if nothing matches.

        Raises:
            ConfigError: If `year_max` is not a year, or a row is not in the corpus.
        """
        results = self.stream(
            queries, year_max=year_max, excluded=excluded, cited=cited, explain=explain
        )
        return [result.items for result in results]

    def stream(
        self,
        queries: Sequence[Query],
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        cited: Iterable[int] = (),
        explain: bool = False,
        progress: Progress = no_progress,
    ) -> Iterator[BatchResult]:
        """Yield the results of `recommend`, with notices, in memory that does not grow with the batch.

        `progress` receives the number of reranked pairs.
        """
        known = self.checked_rows(cited, "cited")
        out = known | self.checked_rows(excluded, "excluded")
        options = QueryOptions(year_max=year_max, excluded=out, cited=known, explain=explain)
        yield from self.stream_each(queries, [options] * len(queries), progress)

    def stream_each(
        self,
        queries: Sequence[Query],
        options: Sequence[QueryOptions],
        progress: Progress = no_progress,
    ) -> Iterator[BatchResult]:
        """Yield the results of queries that each have options of their own; see `stream`."""
        for start in range(0, len(queries), AT_ONCE):
            now = slice(start, start + AT_ONCE)
            read = [read_query(query) for query in queries[now]]
            recognised = recognise(read, self.index.papers)
            part = [one.query for one in recognised]
            notices = iter([self._logged(one.notice) for one in recognised])
            rules = eligible_each(part, self.index.papers, options[now])
            batch = QueryBatch(part, rules, [sorted(one.cited) for one in options[now]])
            explains = (one.explain for one in options[now])
            for group, candidates in self.pipeline.run(batch, progress):
                pairs = zip(group.queries, candidates, strict=True)
                best = [self._best(*pair) for pair in pairs]
                papers = with_papers(self.index.papers, best)
                for query, ranked, items in zip(group.queries, best, papers, strict=True):
                    shown = self._explained(query, ranked, items) if next(explains) else items
                    weak = self._weak_notice(query, ranked)
                    yield BatchResult(shown, tuple(filter(None, (next(notices), weak))))

    def _best(self, query: Query, candidates: CandidateSet) -> CandidateSet:
        """Return the papers that are shown; probabilities are calibrated for drafts, not for sentences."""
        probabilities = None if query.is_sentence else candidates.probabilities
        return replace(
            candidates, hits=candidates.hits.best(self.config.k), probabilities=probabilities
        )

    def _explained(
        self, query: Query, candidates: CandidateSet, items: tuple[Recommendation, ...]
    ) -> tuple[Recommendation, ...]:
        bm25, ranker, cascade = self.retriever.bm25, self.ranker, self.cascade
        return with_reasons(
            query, candidates, items, graph=self.graph, bm25=bm25, ranker=ranker, cascade=cascade
        )

    def _weak_notice(self, query: Query, candidates: CandidateSet) -> str:
        """Return why a list may be unreliable; `unreadable_notice` is not logged: commands warn themselves."""
        return unreadable_notice(query, self.unreadable(query)) or self._logged(
            unmatched_notice(query, candidates)
        )

    def _logged(self, notice: str) -> str:
        if self._log and notice:
            self._log(notice)
        return notice

    def checked_rows(self, rows: Iterable[int], name: str) -> frozenset[int]:
        """Return rows as a set; a `ConfigError` if one is not in the corpus."""
        checked, papers = frozenset(rows), len(self.index.papers)
        if bad := [row for row in checked if not 0 <= row < papers]:
            raise ConfigError(
                f"{name} must hold rows of the corpus, from 0 to {papers - 1:,}; got {bad[0]}"
            )
        return checked

    def unreadable(self, query: Query) -> float:
        """Return the share of a query's letters in words that are unknown to the encoder and the corpus, in [0, 1].

        From about 0.5, recommendations are unreliable: the index does not cover the script or language of the text.
        """
        bm25 = self.retriever.bm25
        return unreadable_share(query, bm25, self.retriever.tokens) if bm25 else 0.0

    def explain_no_results(
        self, query: Query, *, year_max: int | None = None, excluded: Iterable[int] = ()
    ) -> str:
        """Return why a query has no recommendations, with numbers and a remedy.

        Args:
            query: A query without recommendations.
            year_max: As given to `recommend`.
            excluded: The excluded rows and the known references.
        """
        [recognised] = recognise([query], self.index.papers)
        [rule] = eligible(
            [recognised.query], self.index.papers, year_max=year_max, excluded=frozenset(excluded)
        )
        has_vectors = bool(self.encoder)
        return explain_no_results(self.index, rule, has_vectors=has_vectors, kind=query.kind)

    def similarity(self, rows: Rows) -> SimilarityFunction:
        """Return the similarity of the papers at some rows: of their vectors, else of their titles."""
        if self.retriever.dense:
            return by_vectors(self.retriever.dense.vectors(rows))
        titles = self.index.papers.texts("title", rows).to_pylist()
        return by_words([title_words(title) for title in titles])
