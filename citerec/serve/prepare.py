"""Reads a request: its drafts, and the papers that its lists name, found in the corpus."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from citerec.bibliography.paper_list import PaperList, paper_list_of, parse_paper_list
from citerec.corpus.papers import Papers
from citerec.drafts import QueryFile, parse_queries
from citerec.drafts.context import read_context, sentence_query
from citerec.errors import ConfigError
from citerec.matching.recognise import listed_rows
from citerec.missing import list_query
from citerec.rules.eligible import QueryOptions
from citerec.serve.schema import MAX_LISTED, RecommendRequest
from citerec.types import Query, QueryKind

NO_CITED = "none"  # for `cited`: not even the references that the draft cites
MAX_NOT_FOUND = 1000  # entries that an answer names
# what JSON of a client may hold and that of a file may not, by the words of orjson's errors
FAULTS = {
    "64-bit": "holds a whole number beyond 64 bits; send years as whole numbers",
    "not valid UTF-8": "holds half of a character (a lone surrogate, as is left where a text was cut); send text as "
    "UTF-8",
    "Recursion limit": "is nested too deeply, more than 254 levels; send a record such as "
    '{"title": "Late interaction"}',
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that was read."""

    queries: tuple[Query, ...]
    options: QueryOptions  # of all of them
    notices: tuple[str, ...] = ()
    not_found: tuple[str, ...] = field(default=())  # entries of the lists

    @property
    def is_list(self) -> bool:
        """Whether there is no draft, but a list of references."""
        return self.queries[0].kind is QueryKind.REFERENCES


def read_drafts(request: RecommendRequest) -> QueryFile:
    """Return the queries of a request, as `citerec recommend` reads its options.

    Raises:
        ConfigError: If the values do not fit together.
        BadInputError: If the draft cannot be read.
    """
    given = [name for name in ("query", "text") if getattr(request, name) is not None]
    if len(given) > 1:
        raise ConfigError("query and text are both given; give one of them")
    if not given and request.title is None:
        return _without_draft(request)
    drafts = _with_draft(request, has_file=bool(given))
    if request.context is None:
        return drafts
    if drafts.batch:
        raise ConfigError(
            f"context is a sentence of one draft, but there are {len(drafts.queries):,}; give one draft, or the key "
            '"context" in each record of query'
        )
    [query] = drafts.queries
    return replace(drafts, queries=(replace(query, context=read_context(request.context)),))


def _without_draft(request: RecommendRequest) -> QueryFile:
    if request.abstract:
        raise ConfigError("abstract needs title; add the title of the draft")
    if request.context is not None:
        return QueryFile((replace(sentence_query(request.context), year=request.year),))
    if request.cited == []:
        raise ConfigError(
            "cited is empty; give the references that something is missing from, or a draft"
        )
    if request.cited is not None:
        return QueryFile((list_query(),))
    raise ConfigError(
        "there is no draft; give title, query or text; without a draft, give context or cited"
    )


def _with_draft(request: RecommendRequest, *, has_file: bool) -> QueryFile:
    title = None if request.title is None else " ".join(request.title.split())
    if title == "":
        raise ConfigError("title is empty; give the title of the draft")
    abstract = None if request.abstract is None else request.abstract.strip()
    if not has_file:
        draft = Query(
            id="query", title=title or "", abstract=abstract or "", year=request.year, named=False
        )
        return QueryFile((draft,))
    if request.year is not None:
        raise ConfigError("year goes with title; a record of query, or text, has its own")
    data = _encoded(request.text) if request.query is None else _record(request.query)
    return parse_queries(data, title=title, abstract=abstract)


def _record(query: Any) -> bytes:
    try:
        return orjson.dumps(query)
    except TypeError as error:
        faults = (fault for words, fault in FAULTS.items() if words in str(error))
        raise ConfigError(f"query {next(faults, f'cannot be read: {error}')}") from error


def _encoded(text: str | None) -> bytes:
    return (text or "").encode(errors="replace")


def prepare(request: RecommendRequest, drafts: QueryFile, papers: Papers) -> Prepared:
    """Find the papers that the lists of a request name.

    Args:
        request: The request.
        drafts: Its queries.
        papers: The corpus.

    Raises:
        BadInputError: If a list cannot be read.
    """
    cited, not_found = frozenset[int](), list[str]()
    if request.cited != NO_CITED:
        for listed in (drafts.cited, _listed(request.cited, "cited")):
            rows, missing = _found(listed, papers)
            cited, not_found = cited | rows, not_found + missing
    excluded, missing = _found(_listed(request.exclude, "exclude"), papers)
    options = QueryOptions(
        year_max=request.year_max, excluded=excluded | cited, cited=cited, explain=request.explain
    )
    names = tuple(dict.fromkeys([*not_found, *missing]))[:MAX_NOT_FOUND]
    return Prepared(drafts.queries, options, drafts.notices, names)


def _listed(given: list[str] | str | None, name: str) -> PaperList | None:
    if given is None:
        return None
    listed = (
        parse_paper_list(given.replace("\r\n", "\n"), name)
        if isinstance(given, str)
        else paper_list_of(given)
    )
    if len(listed.entries) > MAX_LISTED:
        raise ConfigError(
            f"{name} has {len(listed.entries):,} entries; expected at most {MAX_LISTED:,}"
        )
    return listed


def _found(listed: PaperList | None, papers: Papers) -> tuple[frozenset[int], list[str]]:
    """Return the rows of the papers that a list names, and its entries that are not in the corpus."""
    if listed is None:
        return frozenset(), []
    rows: Sequence[frozenset[int]] = listed_rows(listed, papers)
    pairs = zip(listed.entries, rows, strict=True)
    missing = [entry.title or entry.place for entry, found in pairs if not found]
    return frozenset[int]().union(*rows), [*missing, *listed.unread]
