"""The draft and the lists of papers that `citerec recommend` is given."""

from typing import TYPE_CHECKING

from citerec.cli.console import ConsoleOutput
from citerec.errors import ConfigError
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.bibliography.paper_list import PaperList
    from citerec.cli.request import ListedFile
    from citerec.drafts import QueryFile
    from citerec.recommend import Recommender

_SHOWN = 20  # entries that cannot be read which have a line each


def given_drafts(query: str | None, title: str | None, abstract: str | None) -> "QueryFile":
    """Return the drafts of a query file, or the one of a title and an abstract; with both, these override the file's.

    Raises:
        ConfigError: If the options do not fit together.
        BadInputError: If the file cannot be read.
    """
    from citerec.drafts import QueryFile, read_queries

    if query is None and title is None:
        if abstract:
            raise ConfigError("--abstract needs --title; add the title of the draft")
        raise ConfigError(
            "give the draft either by --query FILE (- for stdin) or by --title; "
            "without a draft, give --context or --cited"
        )
    words = None if title is None else " ".join(title.split())
    if words is not None and not words:
        raise ConfigError("--title is empty; give the title of the draft")
    stated = None if abstract is None else abstract.strip()
    if query is not None:
        if not query.strip():
            raise ConfigError("--query is empty; name a file, or - for stdin")
        return read_queries(query, title=words, abstract=stated)
    return QueryFile((Query(id="query", title=words or "", abstract=stated or "", named=False),))


def cited_rows_of(
    drafts: "QueryFile",
    cited: "ListedFile | None",
    recommender: "Recommender",
    console: ConsoleOutput,
) -> frozenset[int]:
    """Return the rows of the papers that a draft cites: those that it cites itself, and those of the file `cited`."""
    if cited is not None and cited.is_none:
        return frozenset()
    own: frozenset[int] = frozenset()
    if drafts.cited is not None:
        own = _rows(drafts.cited, f"cited in {drafts.cited_from}", recommender, console)
    return own | listed_rows(cited, recommender, console)


def listed_rows(
    file: "ListedFile | None", recommender: "Recommender", console: ConsoleOutput
) -> frozenset[int]:
    """Return the rows of the papers that a list names; log how many were found. None is an empty list."""
    if file is None:
        return frozenset()
    listed = file.read()
    for fault in listed.unread[:_SHOWN]:
        console.warn(f"{file.path}: {fault}; the entry is ignored")
    if (more := len(listed.unread) - _SHOWN) > 0:
        console.warn(f"{file.path}: {more:,} more entries are ignored (list them: citerec check)")
    return _rows(listed, f"in {file.path}", recommender, console)


def _rows(
    listed: "PaperList", place: str, recommender: "Recommender", console: ConsoleOutput
) -> frozenset[int]:
    from citerec.matching import listed_rows as rows_of

    papers = recommender.index.papers
    rows_by_entry = rows_of(listed, papers)
    for entry, rows in zip(listed.entries, rows_by_entry, strict=True):
        ids = ", ".join(papers.ids_at(sorted(rows)))
        name = place.removeprefix("in ").removeprefix("cited in ")
        console.detail(f"{name}: {entry.title or entry.place}: {ids or 'not found'}")
    missing = sum(not rows for rows in rows_by_entry)
    not_found = f", {missing} not found" if missing else ""
    hint = " (use --verbose to list them)" if missing and not console.verbose else ""
    references = "1 reference" if len(rows_by_entry) == 1 else f"{len(rows_by_entry)} references"
    console.log(
        f"{references} {place}: {len(rows_by_entry) - missing} found in this corpus{not_found}{hint}"
    )
    return frozenset[int]().union(*rows_by_entry)
