"""The queries of `Recommender.recommend`: from objects, a title, a sentence, or a list of references alone."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from citerec.drafts.context import read_context, sentence_query
from citerec.errors import ConfigError
from citerec.missing import list_query
from citerec.types import Query


def queries_of(
    query: Query | Iterable[Query] | None,
    title: str | None,
    abstract: str,
    year: int | None,
    *,
    context: str | None,
    is_list: bool,
) -> Sequence[Query]:
    """Return the queries that the arguments of `Recommender.recommend` describe.

    Args:
        query: A query or several.
        title: The title of a draft, in place of `query`.
        abstract: The abstract that goes with `title`.
        year: The year of the draft that `title` names.
        context: The sentence of the one draft that needs references; alone if there is no draft.
        is_list: Whether references are given, which are enough without a draft.

    Raises:
        ConfigError: If the arguments do not fit together.
        InvalidValueError: If the title is empty, or the year is no year.
    """
    if query is None and title is None and (context is not None or is_list):
        if abstract:
            raise ConfigError("abstract goes with title; give the title of the draft")
        one = list_query() if context is None else sentence_query(context)
        return [replace(one, year=year)]
    if (query is None) == (title is None):
        raise ConfigError(
            "give either a query, or several, or title=...; without a draft, context=... or cited=..."
        )
    if query is None:
        words = " ".join((title or "").split())
        draft = Query(id="query", title=words, abstract=abstract.strip(), year=year, named=False)
        return _with_context([draft], context)
    if abstract or year is not None:
        raise ConfigError("abstract and year go with title; a query has its own")
    if isinstance(query, Query):
        return _with_context([query], context)
    queries: list[object] = [query] if isinstance(query, str) else [*query]
    if strange := [one for one in queries if not isinstance(one, Query)]:
        raise ConfigError(
            f"expected queries, found {type(strange[0]).__name__}; for a text: title=..."
        )
    return _with_context([one for one in queries if isinstance(one, Query)], context)


def _with_context(queries: Sequence[Query], context: str | None) -> Sequence[Query]:
    if context is None:
        return queries
    if len(queries) != 1:
        raise ConfigError(
            f"context is a sentence of one draft, got {len(queries)} queries; "
            "give each query its own: Query(..., context=...)"
        )
    return [replace(queries[0], context=read_context(context))]
