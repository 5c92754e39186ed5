"""The open indexes of a server, and what is done with them; no web framework is needed here."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import orjson

from citerec.bibliography.paper_list import PaperList, paper_list_of, parse_paper_list
from citerec.config import RecommendConfig
from citerec.drafts import QueryFile, parse_queries
from citerec.drafts.context import read_context, sentence_query
from citerec.errors import ConfigError
from citerec.export import Result
from citerec.export.jsonl import items
from citerec.folder import open_index
from citerec.matching.recognise import listed_rows
from citerec.missing import list_query, stream_any
from citerec.recommend import BatchRecommender
from citerec.serve.schema import Answer, RecommendAnswer, RecommendRequest
from citerec.serve.settings import ServeConfig


class Service:
    """Open indexes by name; the first one is the default."""

    def __init__(
        self,
        indexes: Mapping[str, Path],
        config: RecommendConfig | None = None,
        settings: ServeConfig | None = None,
    ) -> None:
        """Open the indexes and their models.

        Raises:
            CiterecError: If one cannot be opened.
        """
        self.settings = settings or ServeConfig()
        config = config or RecommendConfig(few_queries=True)
        self._open = {n: BatchRecommender(open_index(p), config) for n, p in indexes.items()}
        self._worker = ThreadPoolExecutor(1, "citerec-models")

    @property
    def names(self) -> Sequence[str]:
        """The names of the indexes."""
        return [*self._open]

    def recommender(self, name: str | None = None) -> BatchRecommender:
        """Return the recommender of an index; of the first one by default."""
        if name is not None and name not in self._open:
            raise ConfigError(f"no index {name!r}; there are: {', '.join(self._open)}")
        return self._open[name] if name else next(iter(self._open.values()))

    def submit(self, request: RecommendRequest) -> "Future[RecommendAnswer]":
        """Start to answer a request; a `CiterecError` of the future is the client's fault."""
        return self._worker.submit(self._answer, request)

    def close(self) -> None:
        """Wait for the requests that were submitted, and close the indexes."""
        self._worker.shutdown()
        self._open = {}

    def _answer(self, request: RecommendRequest) -> RecommendAnswer:
        recommender = self.recommender(request.index)
        drafts = _drafts(request)
        cited, missing = _rows(request.cited, "cited", recommender)
        excluded, not_found = _rows(request.exclude, "exclude", recommender)
        if drafts.cited and request.cited != "none":
            cited |= frozenset().union(*listed_rows(drafts.cited, recommender.index.papers))
        results = stream_any(
            recommender.with_k(request.k),
            drafts.queries,
            year_max=request.year_max,
            excluded=excluded,
            cited=cited,
            explain=request.explain,
        )
        why = partial(
            recommender.explain_no_results, year_max=request.year_max, excluded=excluded | cited
        )
        answers = [
            Answer(
                query=query.id,
                results=items(Result(query, found.items), request.fields),
                why_nothing="" if found.items else why(query),
                notices=[*found.notices],
            )
            for query, found in zip(drafts.queries, results, strict=True)
        ]
        return RecommendAnswer(
            index=request.index or self.names[0],
            answers=answers,
            notices=[*drafts.notices],
            not_found=[*missing, *not_found],
        )


def _drafts(request: RecommendRequest) -> QueryFile:
    given = request.text
    if request.query is not None:
        given = orjson.dumps(request.query).decode()
    if given is None and request.title is None:
        if request.context is not None:
            return QueryFile((sentence_query(request.context),))
        if request.cited is not None:
            return QueryFile((list_query(),))
        raise ConfigError("there is no draft; give query, text, title, context or cited")
    if given is None:
        given = orjson.dumps({"title": request.title, "abstract": request.abstract or ""}).decode()
    drafts = parse_queries(given.encode(), title=request.title, abstract=request.abstract)
    if request.context is None:
        return drafts
    from dataclasses import replace

    [query] = drafts.queries
    return replace(drafts, queries=(replace(query, context=read_context(request.context)),))


def _rows(
    given: list[str] | str | None, name: str, recommender: BatchRecommender
) -> tuple[frozenset[int], list[str]]:
    if given is None or given == "none":
        return frozenset(), []
    listed: PaperList = (
        parse_paper_list(given, name) if isinstance(given, str) else paper_list_of(given)
    )
    rows = listed_rows(listed, recommender.index.papers)
    missing = [e.title or e.place for e, r in zip(listed.entries, rows, strict=True) if not r]
    return frozenset[int]().union(*rows), missing
