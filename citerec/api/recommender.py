"""`Recommender`: an open index and its models, with drafts in and lists of papers out."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Self, overload

from citerec.api.corpus import Corpus
from citerec.api.listed import ListedPapers, PaperListLike, find_listed
from citerec.api.queries import queries_of
from citerec.api.results import Recommendations
from citerec.bibliography.paper_list import PaperList, read_paper_list
from citerec.config import RecommendConfig
from citerec.errors import ConfigError
from citerec.folder import IndexFolder, find_index, open_index
from citerec.missing import stream_any
from citerec.rank.ltr import RankModel
from citerec.recommend import BatchRecommender
from citerec.rerank.reranker import Reranker
from citerec.retrieve.retriever import Retriever
from citerec.types import Log, Progress, Query, no_progress

if TYPE_CHECKING:
    from citerec.references.check import ReferenceCheck

IndexPath = str | PathLike[str]


class Recommender:
    """Recommends papers of one index for drafts.

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
        on_close: Callable[[], None] | None = None,
    ) -> None:
        """Open an index and the models that `config` names.

        Args:
            index: A folder, or the name of one under `indexes/`; by default the only one there.
            config: How papers are found and ordered; the defaults are those of `citerec recommend`. With
                `few_queries=True` it opens in about a third of the time, and batches take longer.
            log: Receives a line for each download of a model, each draft that is a paper of the corpus, and each list
                of papers.
            retrievers: The first stage, in place of BM25 and the vectors of the index.
            reranker: Scores the best candidates, in place of the reranker that `config` names.
            ranker: Orders the candidates by their features, in place of the model that `config` names.
            on_close: Called once: by `close`, else when the recommender is garbage-collected or Python ends.

        Raises:
            IndexNotFoundError: If there is no index there, or several to choose from.
            CiterecError: If a part of it, or a model, cannot be opened.
        """
        self._log = log
        if not isinstance(index, IndexFolder):
            index = open_index(find_index(None if index is None else Path(index)))
        self._opened: BatchRecommender | None = BatchRecommender(
            index, config, log, retrievers=retrievers, reranker=reranker, ranker=ranker
        )
        self._corpus: Corpus | None = None
        self._removal = weakref.finalize(self, on_close) if on_close else None

    @property
    def index(self) -> IndexFolder:
        """The index that is searched."""
        return self._open.index

    @property
    def corpus(self) -> Corpus:
        """The papers of the index: search by keywords, papers by id or DOI, references and cited_by."""
        if self._corpus is None:
            self._corpus = Corpus(self._open.index, self._open.retriever.bm25)
        return self._corpus

    @property
    def config(self) -> RecommendConfig:
        """How papers are found and ordered."""
        return self._open.config

    @property
    def encoder(self) -> str:
        """The name of the encoder whose vectors are searched; empty for BM25 alone."""
        return self._open.encoder

    @property
    def reranker(self) -> str:
        """The name of the reranker; empty if there is none."""
        return self._open.reranker

    @property
    def ranker(self) -> str:
        """The name of the learning-to-rank model; empty if there is none."""
        return str(self._open.ranker or "")

    @property
    def retriever_names(self) -> tuple[str, ...]:
        """The names of the first-stage retrievers."""
        return self._open.retriever_names

    def __repr__(self) -> str:
        if self._opened is None:
            return "<citerec.Recommender, closed>"
        of_encoder = f" of {self.encoder}" if self.encoder else ""
        found_by = " + ".join(self.retriever_names) + of_encoder
        return f"<citerec.Recommender of {self.index.path}: {len(self.index.papers):,} papers, {found_by}>"

    @overload
    def recommend(
        self,
        query: None = None,
        /,
        *,
        title: str,
        abstract: str = "",
        year: int | None = None,
        context: str | None = None,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
    ) -> Recommendations: ...
    @overload
    def recommend(
        self,
        query: None = None,
        /,
        *,
        year: int | None = None,
        context: str,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
    ) -> Recommendations: ...
    @overload
    def recommend(
        self,
        query: None = None,
        /,
        *,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike,
        explain: bool = False,
    ) -> Recommendations: ...
    @overload
    def recommend(
        self,
        query: Query,
        /,
        *,
        context: str | None = None,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
    ) -> Recommendations: ...
    @overload
    def recommend(
        self,
        query: Iterable[Query],
        /,
        *,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
    ) -> list[Recommendations]: ...
    def recommend(
        self,
        query: Query | Iterable[Query] | None = None,
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
    ) -> Recommendations | list[Recommendations]:
        """Recommend papers that a draft or a sentence should cite, or that a list of references lacks, best first.

        Args:
            query: A query, or several, which are searched together.
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
            The papers for a draft or a query; a list of these, in the order given, for several queries. What `excluded`
            and `cited` name and the corpus does not have is in `not_found`; that a draft is in it, in `notices`.

        Raises:
            BadInputError: If `excluded` or `cited` is a file that is missing or cannot be read.
            ConfigError: If an argument is wrong, both a query and a title are given, or there is nothing to search
                for; if there is a list alone, and the corpus has none of its papers.
            InvalidValueError: If the title is empty, or the year is no year.
        """
        is_list = cited is not None
        queries = queries_of(query, title, abstract, year, context=context, is_list=is_list)
        found = self.stream(
            queries, k=k, year_max=year_max, excluded=excluded, cited=cited, explain=explain
        )
        if query is None or isinstance(query, Query):
            return next(found)
        return list(found)

    def stream(
        self,
        queries: Iterable[Query],
        *,
        k: int | None = None,
        year_max: int | None = None,
        excluded: PaperListLike | None = None,
        cited: PaperListLike | None = None,
        explain: bool = False,
        progress: Progress = no_progress,
    ) -> Iterator[Recommendations]:
        """Yield what `recommend` returns for several queries, one by one, in memory that does not grow with the batch.

        `progress` receives the number of pairs that are reranked. The other arguments and the errors are those of
        `recommend`; the errors come with the first result.
        """
        recommender = self._open if k is None else self._open.with_k(k)
        out, known = self._find(excluded, "excluded"), self._find(cited, "cited")
        queries, left_out = [*queries], out.rows | known.rows
        results = stream_any(
            recommender,
            queries,
            year_max=year_max,
            excluded=out.rows,
            cited=known.rows,
            explain=explain,
            progress=progress,
        )
        for query, result in zip(queries, results, strict=True):
            why = ""
            if not result.items:
                why = recommender.explain_no_results(query, year_max=year_max, excluded=left_out)
            missing = (*out.not_found, *known.not_found)
            yield Recommendations(query, result.items, why, missing, result.notices)

    def unreadable(self, query: Query) -> float:
        """Return the share of a query's letters in words that neither encoder nor corpus knows, in [0, 1].

        From about a half on, recommendations mean little: nothing covers the script or the language of the text.
        """
        return self._open.unreadable(query)

    def check(self, references: str | PathLike[str] | PaperList) -> "ReferenceCheck":
        """Compare a `.bib`, `.ris`, CSL `.json` or list of ids with the corpus, as `citerec check` does.

        Raises:
            BadInputError: If the file is missing or cannot be read.
        """
        from citerec.references.check import check_list

        listed = (
            references if isinstance(references, PaperList) else read_paper_list(fspath(references))
        )
        return check_list(listed, self._open.index.papers)

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
    def _open(self) -> BatchRecommender:
        if self._opened is None:
            raise ConfigError("this recommender is closed; open the index again: citerec.open(...)")
        return self._opened

    def _find(self, papers: PaperListLike | None, name: str) -> ListedPapers:
        return find_listed(papers, name, self._open.index.papers, self._log)
