"""The facade: `Recommender` opens the stages of the pipeline on one index and recommends papers.

The command line, the web page, the HTTP API, MCP, workers of a cluster and programs call it.
"""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from citerec.bibliography.entry import PaperList
from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.display import plural
from citerec.errors import ConfigError, IndexReplacedError
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import (
    IndexFolder,
    PathLike,
    find_index,
    open_index,
    read_manifest,
)
from citerec.match.papers import recognise
from citerec.pipeline import (
    Pipeline,
    contexts_of,
    rank_stages,
    reranker_of,
)
from citerec.rank.contexts import ContextRetriever
from citerec.rank.diversify import DIVERSE, DiversityStage
from citerec.rank.features import Feature, declared_features
from citerec.rank.ltr import (
    LtrModel,
    library_notice,
    ranker_of,
    retriever_notice,
)
from citerec.rank.passages import passages
from citerec.rank.reasons import with_reasons
from citerec.rank.seeds import SeedCandidates, SeedRetriever, seed_reasons
from citerec.recommendations import (
    Recommendations,
    as_recommendations,
    explain_no_results,
    relative_scores,
    unreliable_notice,
)
from citerec.request import ListedPapers, PaperListLike, Request, check_queries
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.hybrid import open_hybrid, sentence_alone
from citerec.rules.eligible import eligible, within
from citerec.stages import (
    FirstStage,
    RankModel,
    Reranker,
    Retriever,
    Stage,
    check_stages,
)
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Log,
    Progress,
    Query,
    QueryBatch,
    QueryKind,
    Recommendation,
    no_log,
    no_progress,
)

if TYPE_CHECKING:
    from citerec.match.check import ReferenceCheck
    from citerec.search import Corpus

AT_ONCE = 256  # queries of a batch that are searched together; more take memory and save no time
FEW_AT_ONCE = 8  # of a server, so that it can stop or let others in between
EXPLAINED_AT_ONCE = 100  # papers whose reasons are found together
PAIRS_AT_ONCE = 4096  # pairs that are reranked together; enough to sort them by length
READ_AT_ONCE = 32  # queries whose papers are in memory together, without a reranker


class Recommender:
    """Recommends papers of one index for drafts: retrieved, expanded, ranked and reranked.

    >>> import citerec                                                          # doctest: +SKIP
    >>> recommender = citerec.open("indexes/sample")
    >>> print(recommender.recommend(title="Dense retrieval of passages", k=5))

    `retriever_names` names the first-stage retrievers; `encoder`, `reranker` and `ranker` the models, if there are any.
    """

    def __init__(
        self,
        index: PathLike | IndexFolder | None = None,
        config: RecommendConfig | None = None,
        log: Log = no_log,
        *,
        retrievers: Sequence[Retriever] | None = None,
        reranker: Reranker | None = None,
        ranker: RankModel | None = None,
        features: Sequence[Feature] = (),
        on_close: Callable[[], None] | None = None,
    ) -> None:
        """Open an index and the models that `config` names.

        Args:
            index: A folder, or the name of one under `indexes/`; by default the only one there.
            config: How papers are retrieved and ranked; the defaults are those of `citerec recommend`.
            log: Receives a line for each download of a model, and what the user should know about a query.
            retrievers: The first stage, in place of BM25 and the vectors of the index.
            reranker: Scores the best candidates, in place of the reranker that `config` names.
            ranker: Orders the candidates by their features, in place of the model that `config` names.
            features: Features that the ranker reads besides citerec's own and those of the retrievers and the reranker.
            on_close: Called once: by `close`, else when the recommender is garbage-collected or Python ends.

        Raises:
            IndexNotFoundError: If there is no index there, or several to choose from.
            CiterecError: If a part of it, or a model, cannot be opened, or an object is no such stage.
        """
        if not isinstance(index, IndexFolder):
            index = open_index(find_index(None if index is None else Path(index)))
        self.index = index
        self.config = config or RecommendConfig()
        self._log = log
        self._at_once = FEW_AT_ONCE if self.config.few_queries else AT_ONCE
        self.retriever = open_hybrid(index, self.config, log, retrievers=retrievers)
        named = self.config.rerank.model
        added = declared_features(
            (*self.retriever.retrievers, reranker or named), features
        )
        if ranker is not None:
            check_stages([ranker], "score")
        custom = None if ranker is None else LtrModel(model=ranker, added=added)
        self._ranker: LtrModel | None = custom or ranker_of(index, self.config, added)
        in_use = (*self.retriever.names, *self.config.retrievers)
        if self._ranker:
            notices = (
                retriever_notice(self._ranker, in_use, index),
                library_notice(self._ranker, index),
            )
            for notice in filter(None, notices):
                log(notice)
        self.open_reranker: OpenReranker | None = reranker_of(
            index, self.config, self._ranker, reranker, log
        )
        self.retriever_names = self.retriever.names
        self.encoder = self.retriever.encoder
        self.reranker = self.open_reranker.name if self.open_reranker else ""
        self.ranker = str(self._ranker or "")
        self._graph = TemporalGraph(index, CitationScope.PUBLISHED)
        self._is_open = True
        self._process = os.getpid()
        # parts of two indexes may be open
        if read_manifest(index.path) != index.manifest:
            raise IndexReplacedError(
                f"{index.path} was replaced while it was opened; run this again"
            )
        self._removal = weakref.finalize(self, on_close) if on_close else None

    @cached_property
    def corpus(self) -> "Corpus":
        """The papers of the index: found by keywords, by id or DOI, along citations."""
        from citerec.search import Corpus

        self._check_open()
        return Corpus(self.index, self.retriever.bm25)

    def recommend(
        self,
        query: Query | None = None,
        /,
        *,
        title: str | None = None,
        abstract: str = "",
        body: str | Iterable[str] = "",
        year: int | None = None,
        context: str | None = None,
        k: int | None = None,
        year_max: int | None = None,
        year_min: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        rejected: PaperListLike | None = None,
        explain: bool = False,
    ) -> Recommendations:
        """Recommend papers that a draft or a sentence should cite, or that a list of references lacks, best first.

        Args:
            query: A query.
            title: The title of a draft, in place of `query`.
            abstract: The abstract that goes with `title`.
            body: The text that goes with `title`, or its paragraphs: each of its sentences is searched, too.
            year: The year of the draft: papers of a later year are left out.
            context: The sentence that needs references, `[CITE]` at the place: with its draft, or alone.
            k: The number of papers; by default `config.k`, which is 20.
            year_max: The latest year of a paper, and of the citations that are known; by default each query's own.
            year_min: The earliest year of a paper; one of unknown year passes both bounds.
            excluded: Papers that must not come back: ids, DOIs or titles, or the path of a `.bib`, `.ris` or `.txt`.
            cited: Papers that the draft cites already, in the same forms: the ranker learns from them, and they do
                not come back. Without a draft and a sentence: the list whose missing papers are recommended.
            rejected: Papers of former lists that do not fit, in the same forms: they do not come back, and the order
                of the others stays.
            explain: Whether to give reasons for each paper, which takes longer.

        Returns:
            The papers. What the lists name and the corpus does not have is in `not_found`; that a draft is in it, in
            `notices`.

        Raises:
            BadInputError: If a list is a file that is missing or cannot be read.
            ConfigError: If an argument is wrong, both a query and a title are given, or there is nothing to search
                for; if there is a list alone, and the corpus has none of its papers.
            InvalidValueError: If the title is empty, or the year is no year.
        """
        if query is not None:
            check_queries([query])
        request = Request.of(
            query,
            title=title,
            abstract=abstract,
            body=body,
            year=year,
            context=context,
            k=k,
            year_max=year_max,
            year_min=year_min,
            excluded=excluded,
            cited=cited,
            rejected=rejected,
            explain=explain,
        )
        if request.drafts.by_sentence:
            raise ConfigError(
                "context='all' gives a list for each sentence: recommend_many(citerec.Request.of(..., context='all'))"
            )
        [result] = self.recommend_many(request)
        return result

    def look_up(self, request: Request) -> ListedPapers:
        """Return the papers that a request lists, for `recommend_many`; log a line about each list."""
        self._check_open()
        listed = ListedPapers.of(request, self.index.papers)
        for line in listed.lines:
            self._log(line)
        return listed

    def recommend_many(
        self,
        request: Request | Iterable[Query],
        listed: ListedPapers | None = None,
        progress: Progress = no_progress,
    ) -> Iterator[Recommendations]:
        """Yield the recommendations for each query, in the order given, in memory that does not grow with the batch.

        The sentences of one draft come most sure first. The sureness is the probability of the best paper of a
        sentence, times the agreement of the searches for the sentence and for its draft. Without a learning-to-rank
        model there is none, and the sentences keep their order.

        Args:
            request: What is asked for: drafts and sentences, or lists of references; not both. Or queries alone.
            listed: The papers that it lists, if they are looked up already.
            progress: Receives the number of queries that are searched and ranked, of pairs that are reranked and of
                papers whose reasons are found; what it raises ends the work.

        Raises:
            ConfigError: If lists hold no paper of the corpus.
        """
        self._check_open()
        if not isinstance(request, Request):
            request = Request.of(request)
        if listed is None:
            listed = self.look_up(request)
        if not request.drafts.by_sentence:
            yield from self._answers(request, listed, progress)
            return
        if len(request.drafts.queries) > request.most_sentences:
            request = self._with_most_agreement(request, listed, progress)
        lists = self._answers(request, listed, progress)
        yield from sorted(lists, key=lambda answer: -(answer.sureness or 0))

    def _answers(
        self, request: Request, listed: ListedPapers, progress: Progress
    ) -> Iterator[Recommendations]:
        """Yield the recommendations for each query; log once what is to be noticed about several of them."""
        queries = request.drafts.queries
        of_lists = {query.kind is QueryKind.REFERENCES for query in queries}
        if len(of_lists) > 1:
            raise ConfigError(
                "lists of references and drafts cannot be searched together"
            )
        if True in of_lists and not listed.cited:
            papers = plural(len(self.index.papers), "paper")
            raise ConfigError(
                f"none of the references is among the {papers} of {self.index.path}; "
                "give references of its field, or a draft"
            )
        noticed: dict[str, list[str]] = {"in the corpus": [], "unreliable": []}
        for originals, batch, in_corpus in self._batches(request, listed, progress):
            searched = self._searched(batch, request, listed, progress)
            for query, notice, answer in zip(
                originals, in_corpus, searched, strict=True
            ):
                notices = (notice, *answer.notices)
                for lines, line in zip(noticed.values(), notices, strict=True):
                    is_named = len(queries) == 1 or query.id in line
                    if line:
                        lines.append(line if is_named else f"{query.id}: {line}")
                yield replace(answer, query=query, notices=tuple(filter(None, notices)))
        # a line for each kind, however many queries have it
        for kind, lines in noticed.items():
            if lines:
                count = (
                    f"{len(lines):,} of {len(queries):,} drafts are {kind}; the first: "
                )
                self._log(f"{count if len(lines) > 1 else ''}{lines[0]}")

    def _searched(
        self,
        batch: QueryBatch,
        request: Request,
        listed: ListedPapers,
        progress: Progress,
    ) -> Iterator[Recommendations]:
        """Yield the recommendations for each query of a batch, each with one notice, which may be empty."""
        k = request.k or self.config.k
        papers = self.index.papers
        rejected = Eligibility(excluded=listed.rejected)
        depth = k + len(listed.rejected)
        if batch.queries[0].kind is QueryKind.REFERENCES:
            pipeline = self._pipeline(depth, (), batch.cited)
        else:
            pipeline = self.pipeline(depth)
        for part, candidates in pipeline.run(batch, progress):
            lists = list[CandidateSet]()
            for found in candidates:
                fits = within(rejected, papers.years, found.rows)
                lists.append(replace(found, hits=found.hits.only(fits).best(k)))
            by_row = papers.at(row for found in lists for row in found.rows.tolist())
            for query, rule, found in zip(
                part.queries, part.eligible, lists, strict=True
            ):
                items = as_recommendations(found, by_row)
                sureness = None
                if query.is_sentence:
                    best = items[0].probability if items else None
                    sureness = None if best is None else best * found.agreement
                    items = relative_scores(items)
                if request.explain:
                    items = self._explained(query, found, items, progress)
                bm25 = self.retriever.bm25
                language = bm25.foreign_language(query) if bm25 else ""
                notice, is_uncovered = unreliable_notice(
                    query, found, language, covered=listed.covered
                )
                yield Recommendations(
                    query,
                    items,
                    empty_reason=""
                    if items
                    else explain_no_results(self.index, rule, query.kind),
                    not_found=listed.not_found,
                    notices=(notice,),
                    is_uncovered=is_uncovered,
                    sureness=sureness,
                )

    def _batches(
        self, request: Request, listed: ListedPapers, progress: Progress
    ) -> Iterator[tuple[Sequence[Query], QueryBatch, list[str]]]:
        """Yield some queries at a time, as given and as searched, and of each that it is in the corpus, or nothing."""
        papers = self.index.papers
        rows = listed.excluded | listed.cited | listed.rejected
        queries = request.drafts.queries
        for start in range(0, len(queries), self._at_once):
            progress("searching", start, len(queries))
            given = queries[start : start + self._at_once]
            recognised = recognise(given, papers)
            drafts = [query for query, _ in recognised]
            rules = eligible(
                drafts,
                papers,
                year_max=request.year_max,
                year_min=request.year_min,
                # rejected papers leave the list at its end: as neighbours they help (experiments/MARKS.md)
                excluded=rows - listed.rejected,
            )
            known = [sorted(listed.cited)] * len(drafts)
            notices = [notice for _, notice in recognised]
            yield given, QueryBatch(drafts, rules, known), notices

    def _with_most_agreement(
        self, request: Request, listed: ListedPapers, progress: Progress
    ) -> Request:
        """Return a request for the sentences on which the searches agree most, in the order of the draft."""
        queries = request.drafts.queries
        agreement = list[float]()
        for _, batch, _ in self._batches(request, listed, progress):
            found = self.retriever.candidates(
                batch.queries, batch.eligible, RANKING_DEPTH
            )
            agreement += [candidates.agreement for candidates in found]
        most = request.most_sentences
        self._log(
            f"{most:,} of {len(queries):,} sentences are answered: searches agree most"
        )
        places = sorted(range(len(queries)), key=lambda place: -agreement[place])[:most]
        return request.with_queries([queries[place] for place in sorted(places)])

    def check(self, references: PathLike | PaperList) -> "ReferenceCheck":
        """Compare a `.bib`, `.ris`, CSL `.json` or list of ids with the corpus, as `citerec check` does.

        Raises:
            BadInputError: If the file is missing or cannot be read.
        """
        from citerec.match.check import check_references

        is_read = isinstance(references, PaperList)
        if not is_read:
            from citerec.corpus.lists import read_paper_list

            references = read_paper_list(os.fspath(references))
        return check_references(references, self.index.papers)

    def close(self) -> None:
        """Release the index and its models; a temporary index is removed. Closing twice does no harm."""
        if self._is_open:
            self._is_open = False
            for computed in ("corpus", "_ranking", "_contexts"):
                self.__dict__.pop(computed, None)
            del self._ranker, self._graph, self.retriever, self.open_reranker
        if self._removal:
            self._removal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise ConfigError(
                "this recommender is closed; open the index again: citerec.open(...)"
            )
        if self._process != os.getpid():
            raise ConfigError(
                "this recommender was opened before a fork, and its threads are not here; "
                "open the index in each process: citerec.open(...)"
            )

    def __reduce__(self) -> NoReturn:
        raise ConfigError(
            "a recommender cannot be pickled; open the index in each process: citerec.open(...)"
        )

    def pipeline(
        self, depth: int, known: CitationScope = CitationScope.PUBLISHED
    ) -> Pipeline:
        """Return the pipeline of drafts for `depth` papers, with the citations that a scope knows."""
        self._check_open()
        stages = self._ranking
        if known is not self._graph.scope:
            stages = self._stages(TemporalGraph(self.index, known))
        return self._pipeline(depth, stages)

    @cached_property
    def _ranking(self) -> tuple[Stage, ...]:
        """The stages that order the candidates of drafts; they keep what they read of the corpus."""
        return self._stages(self._graph)

    def _stages(self, graph: TemporalGraph) -> tuple[Stage, ...]:
        reranker = self.open_reranker
        is_own = graph is self._graph
        contexts = self._contexts if is_own else contexts_of(graph, self.retriever)
        if self._ranker:
            return rank_stages(graph, self._ranker, reranker, contexts)
        return tuple(stage for stage in (contexts, reranker) if stage)

    @cached_property
    def _contexts(self) -> ContextRetriever | None:
        """What searches the sentences that cite papers of the index; None without any."""
        return contexts_of(self._graph, self.retriever)

    def _pipeline(
        self,
        depth: int,
        stages: tuple[Stage, ...],
        lists: Sequence[Sequence[int]] | None = None,
    ) -> Pipeline:
        """Return the pipeline for `depth` papers for each draft or sentence, or for each of some lists of references.

        For a list there is no draft that models could read: it has no stages but diversity.
        """
        config = self.config
        retriever = self.retriever
        reranker = self.open_reranker
        first_stage: FirstStage = retriever
        if lists is not None:
            reranker = None
            first_stage = SeedRetriever(
                self._graph, lists, bm25=retriever.bm25, dense=retriever.dense
            )
        needed = [depth]
        if config.diversity > 0:
            diversity = DiversityStage(
                self.index, retriever.dense, config.diversity, depth
            )
            stages = (*stages, diversity)
            needed.append(DIVERSE)
        if lists is None and self._ranker:
            needed.append(RANKING_DEPTH)
        if reranker:
            needed.append(reranker.depth)
        at_once = max(1, PAIRS_AT_ONCE // reranker.depth) if reranker else READ_AT_ONCE
        return Pipeline(first_stage, stages, max(needed), at_once)

    def _explained(
        self,
        query: Query,
        candidates: CandidateSet,
        items: tuple[Recommendation, ...],
        progress: Progress,
    ) -> tuple[Recommendation, ...]:
        explained: list[Recommendation] = []
        for start in range(0, len(items), EXPLAINED_AT_ONCE):
            progress("explaining", start, len(items))
            places = slice(start, start + EXPLAINED_AT_ONCE)
            hits = Hits(candidates.rows[places], candidates.hits.scores[places])
            part = replace(candidates, hits=hits)
            if isinstance(part, SeedCandidates):
                bm25 = self.retriever.bm25
                explained += seed_reasons(self._graph, part, items[places], bm25)
                continue
            explained += with_reasons(
                query,
                part,
                items[places],
                graph=self._graph,
                bm25=self.retriever.bm25,
                ranker=self._ranker,
                reranker=self.open_reranker,
                contexts=self._contexts,
            )
        if query.kind is QueryKind.REFERENCES:  # has no text
            return tuple(explained)
        vector = candidates.query_vector
        found = passages(
            sentence_alone(query),
            vector.values if vector else None,
            [item.paper for item in explained],
            self.retriever.bm25,
            self.retriever.dense,
        )
        pairs = zip(explained, found, strict=True)
        return tuple(replace(item, passage=passage) for item, passage in pairs)


def open(  # noqa: A001  (as `gzip.open`: always `citerec.open`)
    index: PathLike | IndexFolder | None = None,
    config: RecommendConfig | None = None,
    log: Log = no_log,
) -> Recommender:
    """Open an index and its models; see `Recommender` for the arguments."""
    return Recommender(index, config, log)
