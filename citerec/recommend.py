"""The facade: `Recommender` opens the stages of the pipeline on one index and recommends papers.

The command line, the web page, the HTTP API, MCP, evaluation on a cluster and programs call it.
"""

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self

from citerec.bibliography.entry import PaperList
from citerec.bibliography.keys import doi_of
from citerec.bibliography.paper_list import paper_list_of, read_paper_list
from citerec.config import RANKING_DEPTH, RecommendConfig, RerankConfig
from citerec.drafts.context import read_context, read_query, sentence_query
from citerec.errors import ConfigError, IndexReplacedError, shown
from citerec.folder import IndexFolder, find_index, open_index, read_manifest
from citerec.matching import listed_rows, recognise
from citerec.pipeline import (
    DIVERSE,
    DiversityStage,
    Pipeline,
    RerankingStage,
    Stage,
    open_reranking,
    rank_stages,
)
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import Feature, declared_features
from citerec.rank.ltr import CustomRanker, LtrModel, RankModel, ranker_of, reads_probability
from citerec.rank.missing import (
    SeedCandidates,
    SeedRetriever,
    seed_reasons,
)
from citerec.rank.reasons import MOST_WORDS, with_reasons
from citerec.recommendations import (
    Recommendations,
    as_recommendations,
    explain_no_results,
    unreliable_notice,
)
from citerec.rerank.reranker import OpenReranker, Reranker
from citerec.retrieve.hybrid import (
    HybridRetriever,
    Retriever,
    open_hybrid,
)
from citerec.rules.known import (
    DEFAULT_OPTIONS,
    CitationScope,
    QueryOptions,
    TemporalGraph,
    eligible,
)
from citerec.text import plural
from citerec.tuned import fusion_in_use, rerank_weight_in_use
from citerec.types import (
    CandidateSet,
    Log,
    Progress,
    Query,
    QueryBatch,
    QueryKind,
    Recommendation,
    no_progress,
)

if TYPE_CHECKING:
    from citerec.references import ReferenceCheck
    from citerec.search import Corpus

IndexPath = str | PathLike[str]
PaperListLike = str | PathLike[str] | Iterable[str] | PaperList  # a file, or ids, DOIs or titles
LIST_FILES = frozenset({".bib", ".bibtex", ".ris", ".txt", ".json", ".jsonl", ".csl"})


AT_ONCE = 256  # queries of a batch that are searched together; more take memory and save no time
PAIRS_AT_ONCE = 4096  # pairs that are reranked together; enough to sort them by length
READ_AT_ONCE = 32  # queries whose papers are in memory together, without a reranker


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is open."""

    retriever: HybridRetriever
    ranker: LtrModel | None
    reranker: OpenReranker | None
    graph: TemporalGraph
    pipelines: dict[int, Pipeline] = field(default_factory=dict[int, Pipeline])  # by k


class Recommender:
    """Recommends papers of one index for drafts: retrieved, expanded, ranked and reranked.

    >>> import citerec                                                          # doctest: +SKIP
    >>> recommender = citerec.open("indexes/sample")
    >>> print(recommender.recommend(title="Dense retrieval of passages", k=5))
    """

    def __init__(
        self,
        index: IndexPath | IndexFolder | None = None,
        config: RecommendConfig | None = None,
        log: Log | None = None,
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
            CiterecError: If a part of it, or a model, cannot be opened.
        """
        if not isinstance(index, IndexFolder):
            index = open_index(find_index(None if index is None else Path(index)))
        self.index, self.config, self._log = index, config or RecommendConfig(), log
        self._corpus: Corpus | None = None
        retriever = open_hybrid(index, self.config, log, retrievers=retrievers)
        added = declared_features((*retriever.retrievers, reranker), features)
        custom = None if ranker is None else CustomRanker(model=ranker, added=added)
        model = custom or ranker_of(index, self.config, added)
        opened = open_reranking(index, self.config, model, reranker, log)
        graph = TemporalGraph(index, CitationScope.PUBLISHED)
        self._opened: _Parts | None = _Parts(retriever, model, opened, graph)
        if read_manifest(index.path) != index.manifest:  # parts of two indexes may be open
            raise IndexReplacedError(index.path)
        self._removal = weakref.finalize(self, on_close) if on_close else None

    @property
    def corpus(self) -> "Corpus":
        """The papers of the index: search by keywords, papers by id or DOI, references and cited_by."""
        from citerec.search import Corpus

        if self._corpus is None:
            self._corpus = Corpus(self.index, self.retriever.bm25)
        return self._corpus

    @property
    def retriever(self) -> HybridRetriever:
        """The first stage."""
        return self._parts.retriever

    @property
    def retriever_names(self) -> tuple[str, ...]:
        """The names of the first-stage retrievers."""
        return self.retriever.names

    @property
    def encoder(self) -> str:
        """The name of the encoder whose vectors are searched; empty for BM25 alone."""
        return self.retriever.encoder

    @property
    def open_reranker(self) -> OpenReranker | None:
        """The open reranker, if any."""
        return self._parts.reranker

    @property
    def reranker(self) -> str:
        """The name of the reranker; empty if there is none."""
        return self.open_reranker.name if self.open_reranker else ""

    @property
    def ranker(self) -> str:
        """The name of the learning-to-rank model; empty if there is none."""
        return str(self._parts.ranker or "")

    @property
    def reranker_in_use(self) -> str:
        """The reranker and its settings in one line; empty without one."""
        parts = self._parts
        if not parts.reranker:
            return ""
        interpolates = parts.ranker and not reads_probability(parts.ranker, parts.reranker)
        return f"{parts.reranker}, against {parts.ranker}" if interpolates else str(parts.reranker)

    @property
    def settings_in_use(self) -> tuple[str, ...]:
        """The settings of the stages and the origin of each (tuned, default or option), one per line."""
        index, parts, named = self.index, self._parts, self.config.reranker
        lines: list[str] = []
        if len(self.retriever_names) > 1:
            lines.append(f"fusion: {fusion_in_use(index, self.config)}")
        if (
            (reranker := parts.reranker)
            and parts.ranker
            and reads_probability(parts.ranker, reranker)
        ):
            lines.append(f"rerank weight: none, the probability is a feature of {parts.ranker}")
        elif reranker:
            weight = rerank_weight_in_use(
                index,
                reranker.weight,
                str(reranker.settings["weights"]),
                is_option=isinstance(named, RerankConfig) and named.weight is not None,
                has_ranker=parts.ranker is not None,
            )
            lines.append(f"rerank weight: {weight}")
        origin = "default" if self.config.ranker == "auto" else "option"
        return (*lines, f"ranker: {parts.ranker or 'none'} ({origin})")

    def __repr__(self) -> str:
        if self._opened is None:
            return "<citerec.Recommender, closed>"
        encoder = f" of {self.encoder}" if self.encoder else ""
        names = " + ".join(self.retriever_names) + encoder
        return f"<citerec.Recommender of {self.index.path}: {len(self.index.papers):,} papers, {names}>"

    def recommend(
        self,
        query: Query | None = None,
        /,
        *,
        title: str | None = None,
        abstract: str = "",
        year: int | None = None,
        context: str | None = None,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
    ) -> Recommendations:
        """Recommend papers that a draft or a sentence should cite, or that a list of references lacks, best first.

        Args:
            query: A query.
            title: The title of a draft, in place of `query`.
            abstract: The abstract that goes with `title`.
            year: The year of the draft that `title` names: papers of a later year are left out.
            context: The sentence that needs references, `[CITE]` at the place: with its draft, or alone.
            k: The number of papers; by default `config.k`, which is 20.
            year_max: The latest year of a paper, and of the citations that are known; by default each query's own.
            excluded: Papers that must not come back: ids, DOIs or titles, or the path of a `.bib`, `.ris` or `.txt`.
            cited: Papers that the draft cites already, in the same forms: the ranker learns from them, and they do
                not come back. Without a draft and a sentence: the list whose missing papers are recommended.
            explain: Whether to give reasons for each paper, which takes longer.

        Returns:
            The papers. What `excluded` and `cited` name and the corpus does not have is in `not_found`; that a draft is
            in it, in `notices`.

        Raises:
            BadInputError: If `excluded` or `cited` is a file that is missing or cannot be read.
            ConfigError: If an argument is wrong, both a query and a title are given, or there is nothing to search
                for; if there is a list alone, and the corpus has none of its papers.
            InvalidValueError: If the title is empty, or the year is no year.
        """
        one = _query(query, title, abstract, year, context, has_list=cited is not None)
        options = self.options(
            k=k, year_max=year_max, excluded=excluded, cited=cited, explain=explain
        )
        [result] = self.recommend_many([one], options)
        return result

    def options(
        self,
        *,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
    ) -> QueryOptions:
        """Return options for `recommend_many`; see `recommend` for the arguments and errors."""
        out, out_missing = self._listed(excluded, "excluded")
        known, known_missing = self._listed(cited, "cited")
        return QueryOptions(
            k=None if k is None else self.config.replace(k=k).k,
            year_max=year_max,
            excluded=out,
            cited=known,
            explain=explain,
            not_found=out_missing + known_missing,
        )

    def _listed(
        self, papers: PaperListLike | None, name: str
    ) -> tuple[frozenset[int], tuple[str, ...]]:
        """Return the rows of the papers of a list, and its entries that are not in the corpus or cannot be read."""
        if papers is None:
            return frozenset(), ()
        given: Any = papers
        # a single string is a path if it ends as one and is no DOI
        suffix = PurePath(given).suffix.lower() if isinstance(given, str) else ""
        if isinstance(given, PaperList):
            listed = given
        elif isinstance(given, PathLike) or (suffix in LIST_FILES and not doi_of(given)):
            listed = read_paper_list(fspath(given))
        else:
            is_one = isinstance(given, str) or not hasattr(given, "__iter__")
            texts: list[Any] = [given] if is_one else [*given]
            if wrong := [text for text in texts if not isinstance(text, str)]:
                expected = "the path of a .bib, .ris or .txt, or a list of ids or DOIs"
                raise ConfigError(f"{name} must be {expected}; found {shown(wrong[0])}")
            listed = paper_list_of(texts)
        by_entry = listed_rows(listed, self.index.papers)
        entries = zip(listed.entries, by_entry, strict=True)
        missing = [entry.title or entry.place for entry, rows in entries if not rows]
        missing += listed.unread
        rows = frozenset[int]().union(*by_entry)
        if self._log:
            left = f", {plural(len(missing), 'entry', 'entries')} not found" if missing else ""
            self._log(f"{name}: {plural(len(rows), 'paper')} of this corpus{left}")
        return rows, tuple(missing)

    def recommend_many(
        self,
        queries: Iterable[Query],
        options: QueryOptions = DEFAULT_OPTIONS,
        progress: Progress = no_progress,
    ) -> Iterator[Recommendations]:
        """Yield the recommendations for each query, in the order given, in memory that does not grow with the batch.

        Args:
            queries: Drafts and sentences, or lists of references (`list_query`); not both.
            options: What is asked for besides the text; rows of the corpus in place of papers.
            progress: Receives the number of pairs that are reranked.

        Raises:
            ConfigError: If a row is not in the corpus, or lists hold no paper of the corpus.
        """
        queries, papers = [*queries], self.index.papers
        rows = options.excluded | options.cited
        if bad := [row for row in rows if not 0 <= row < len(papers)]:
            raise ConfigError(
                f"excluded and cited must hold rows of the corpus, from 0 to {len(papers) - 1:,}; got {bad[0]}"
            )
        of_lists = {query.kind is QueryKind.REFERENCES for query in queries}
        if len(of_lists) > 1:
            raise ConfigError("lists of references and drafts cannot be searched together")
        if True in of_lists and not options.cited:
            raise ConfigError(
                f"none of the references is among the {plural(len(papers), 'paper')} of {self.index.path}; "
                "give references of its field, or a draft"
            )
        k, cited = options.k or self.config.k, sorted(options.cited)
        noticed: dict[str, list[tuple[str, str]]] = {"in the corpus": [], "unreliable": []}
        for start in range(0, len(queries), AT_ONCE):
            given = queries[start : start + AT_ONCE]
            texts = [read_query(one) if one.is_sentence else one for one in given]
            recognised = recognise(texts, papers)
            drafts = [query for query, _ in recognised]
            rules = eligible(drafts, papers, year_max=options.year_max, excluded=rows)
            batch = QueryBatch(drafts, rules, [cited] * len(drafts))
            pipeline = self._pipeline(k, batch.cited if True in of_lists else None)
            originals = iter(zip(given, recognised, strict=True))
            for part, candidates in pipeline.run(batch, progress):
                # probabilities are calibrated for drafts, not for sentences
                best = [
                    replace(
                        one,
                        hits=one.hits.best(k),
                        probabilities=None if query.is_sentence else one.probabilities,
                    )
                    for query, one in zip(part.queries, candidates, strict=True)
                ]
                by_row = papers.at(row for one in best for row in one.rows.tolist())
                for query, rule, one in zip(part.queries, part.eligible, best, strict=True):
                    items = as_recommendations(one, by_row)
                    if options.explain:
                        items = self._explained(query, one, items)
                    reason = "" if items else explain_no_results(self.index, rule, query.kind)
                    original, (_, in_corpus) = next(originals)
                    notices = tuple(filter(None, (in_corpus, unreliable_notice(query, one))))
                    for notice in notices:
                        kind = "in the corpus" if notice is in_corpus else "unreliable"
                        noticed[kind].append((original.id, notice))
                    yield Recommendations(original, items, reason, options.not_found, notices)
        for kind, notices in noticed.items():  # a line for each kind, however many queries have it
            if not notices or self._log is None:
                continue
            first_id, line = notices[0]
            if len(queries) > 1 and first_id not in line:
                line = f"{first_id}: {line}"
            if len(notices) > 1:
                line = f"{len(notices):,} of {len(queries):,} drafts are {kind}; the first: {line}"
            self._log(line)

    def check(self, references: str | PathLike[str] | PaperList) -> "ReferenceCheck":
        """Compare a `.bib`, `.ris`, CSL `.json` or list of ids with the corpus, as `citerec check` does.

        Raises:
            BadInputError: If the file is missing or cannot be read.
        """
        from citerec.references import check_references

        is_read = isinstance(references, PaperList)
        listed = references if is_read else read_paper_list(fspath(references))
        return check_references(listed, self.index.papers)

    def close(self) -> None:
        """Release the index and its models; a temporary index is removed. Closing twice does no harm."""
        self._opened = self._corpus = None
        if self._removal:
            self._removal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _parts(self) -> _Parts:
        if self._opened is None:
            raise ConfigError("this recommender is closed; open the index again: citerec.open(...)")
        return self._opened

    def _pipeline(self, k: int, lists: Sequence[Sequence[int]] | None = None) -> Pipeline:
        """Return the pipeline for `k` papers for each draft or sentence, or for each of some lists of references.

        That for drafts keeps what it reads of the corpus. For a list there is no draft that models could read.
        """
        parts, config, stages = self._parts, self.config, list[Stage]()
        if lists is None and k in parts.pipelines:
            return parts.pipelines[k]
        ranker, reranker = (parts.ranker, parts.reranker) if lists is None else (None, None)
        if ranker:
            expander = CandidateExpander(parts.graph, config.expand or ranker.expand)
            stages += rank_stages(parts.graph, ranker, reranker, expander=expander)
        elif reranker:
            stages.append(RerankingStage(reranker))
        if config.diversity > 0:
            dense = parts.retriever.dense
            stages.append(DiversityStage(self.index, dense, config.diversity, k))
        depth = max(
            k,
            reranker.depth if reranker else 0,
            RANKING_DEPTH if ranker else 0,
            DIVERSE if config.diversity > 0 else 0,
        )
        at_once = max(1, PAIRS_AT_ONCE // reranker.depth) if reranker else READ_AT_ONCE
        if lists is not None:
            return Pipeline(self._seed_retriever(lists), tuple(stages), depth, at_once)
        pipeline = Pipeline(parts.retriever, tuple(stages), depth, at_once)
        return parts.pipelines.setdefault(k, pipeline)

    def _seed_retriever(self, lists: Sequence[Collection[int]] = ()) -> SeedRetriever:
        parts = self._parts
        bm25, dense = parts.retriever.bm25, parts.retriever.dense
        return SeedRetriever(parts.graph, lists, bm25=bm25, dense=dense)

    def _explained(
        self, query: Query, candidates: CandidateSet, items: tuple[Recommendation, ...]
    ) -> tuple[Recommendation, ...]:
        parts = self._parts
        if isinstance(candidates, SeedCandidates):
            words = self._seed_retriever().matches(candidates, candidates.rows.tolist(), MOST_WORDS)
            return seed_reasons(parts.graph, candidates, items, words)
        return with_reasons(
            query,
            candidates,
            items,
            graph=parts.graph,
            bm25=parts.retriever.bm25,
            ranker=parts.ranker,
            reranker=parts.reranker,
        )


def open(  # noqa: A001  (as `gzip.open`: always `citerec.open`)
    index: IndexPath | IndexFolder | None = None,
    config: RecommendConfig | None = None,
    log: Log | None = None,
) -> Recommender:
    """Open an index and its models; see `Recommender` for the arguments."""
    return Recommender(index, config, log)


def list_query(name: str = "") -> Query:
    """Return the query that stands for a list of references; `name` is that of its file."""
    title = f"Papers missing from {name}" if name.strip() else "Papers missing from the references"
    return Query(id="references", title=title, named=False, kind=QueryKind.REFERENCES)


def _query(
    query: Query | None,
    title: str | None,
    abstract: str,
    year: int | None,
    context: str | None,
    *,
    has_list: bool,
) -> Query:
    """Return the query that the arguments of `Recommender.recommend` describe."""
    if query is None and title is None and (context is not None or has_list):
        if abstract:
            raise ConfigError("abstract goes with title; give the title of the draft")
        one = list_query() if context is None else sentence_query(context)
        return replace(one, year=year)
    if (query is None) == (title is None):
        raise ConfigError(
            "give either a query or title=...; without a draft, context=... or cited=..."
        )
    if query is None:
        words = " ".join((title or "").split())
        query = Query(id="query", title=words, abstract=abstract.strip(), year=year, named=False)
    elif not isinstance(query, Query):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = type(query).__name__
        raise ConfigError(
            f"expected a query, found {found}; for a text: title=..., for several: recommend_many"
        )
    elif abstract or year is not None:
        raise ConfigError("abstract and year go with title; a query has its own")
    return query if context is None else replace(query, context=read_context(context))
