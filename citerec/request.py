"""What is asked for: drafts, a sentence or a list of references, and what the answer must keep to.

The command line, the HTTP API, MCP, programs and rows of a batch make a `Request`, which is checked when it is made.
Papers that it lists are looked up in a corpus once, as `ListedPapers`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Self

from citerec.bibliography.entry import PaperList
from citerec.bibliography.keys import title_key
from citerec.bibliography.paper_list import paper_list_of
from citerec.config import SENTENCE_K, RecommendConfig
from citerec.display import plural, some_of
from citerec.drafts import QueryFile
from citerec.drafts.context import sentence_query, without_query_markers
from citerec.errors import ConfigError
from citerec.index.papers import Papers
from citerec.match.papers import listed_rows
from citerec.types import Query, QueryKind, check_years, year_of

# a file, or ids, DOIs or titles
PaperListLike = str | PathLike[str] | Iterable[str] | PaperList
NONE = "none"  # for `cited`: not even the references of the document
LISTS = ("excluded", "cited", "rejected")
MOST_SENTENCES = 500  # of a draft
NO_REFERENCES = "no references were found; give them as a file of their own: .bib, .ris, or DOIs, one a line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Drafts, sentences of one draft, or a list of references; what is known of them, and bounds of the answer.

    Raises:
        ConfigError: If a bound is no year, no year is within them, or `k` is less than 1.
    """

    drafts: QueryFile
    cited: PaperList | None = None  # besides the references of the document
    excluded: PaperList | None = None  # papers that must not come back
    rejected: PaperList | None = None  # papers of former lists that do not fit
    k: int | None = None  # papers; None for the default
    # latest year of papers and of known citations; None for the query's
    year_max: int | None = None
    year_min: int | None = None  # earliest year of papers
    explain: bool = False  # whether to add reasons
    # of one draft, those on which the searches agree most
    most_sentences: int = MOST_SENTENCES

    def __post_init__(self) -> None:
        if self.k is not None:
            object.__setattr__(self, "k", RecommendConfig().replace(k=self.k).k)
        for name in ("year_max", "year_min"):
            try:
                object.__setattr__(self, name, year_of(getattr(self, name)))
            except ValueError as error:
                raise ConfigError(f"{name} {error}") from error
        if self.most_sentences < 1:
            raise ConfigError(
                f"most_sentences must be at least 1, got {self.most_sentences}"
            )
        check_years(self.year_min, self.year_max)

    @classmethod
    def of(
        cls,
        draft: Query | Iterable[Query] | QueryFile | None = None,
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
        most_sentences: int = MOST_SENTENCES,
    ) -> Self:
        """Make a request; `Recommender.recommend` says what the arguments mean.

        Args:
            draft: One query or several, or those of a file; its references are cited, too, unless `cited` is "none".
            title: The title of a draft, in place of `draft`.
            abstract: The abstract that goes with `title`.
            body: The text that goes with `title`, or its paragraphs: each sentence is searched, too.
            year: The year of the only draft, in place of its own.
            context: A sentence of the only draft, or one alone; `all` for each sentence without a reference.
            k: The number of papers; by default 20, or 3 for each sentence of a draft.
            year_max: The latest year of a paper, and of the citations that are known.
            year_min: The earliest year of a paper.
            excluded: Papers that must not come back: a file, or ids, DOIs or titles.
            cited: Papers that the draft cites already, in the same forms; without a draft and a sentence, the list
                whose missing papers are recommended.
            rejected: Papers of former lists that do not fit, in the same forms.
            explain: Whether to give reasons for each paper.
            most_sentences: The number of sentences of a draft that are answered.

        Raises:
            BadInputError: If a list is a file that is missing or cannot be read.
            ConfigError: If arguments do not go together, or there is nothing to search for.
            InvalidValueError: If the title is empty, or the year is no year.
        """
        if isinstance(cited, str | PathLike) and fspath(cited) == NONE:
            cited = None
            if isinstance(draft, QueryFile):
                draft = replace(draft, cited=None)
        if draft is None:
            lines = tuple(body.splitlines() if isinstance(body, str) else body)
            typed = _typed(title, abstract, lines, context, cited)
            drafts = QueryFile((typed,), lines=lines)
            context = None if title is None else context
        elif title is not None or abstract or body:
            raise ConfigError(
                "title, abstract and body are of a draft; a query has its own"
            )
        elif isinstance(draft, QueryFile):
            drafts = draft
        else:
            queries = [draft] if isinstance(draft, Query) else [*draft]
            check_queries(queries)
            drafts = QueryFile(tuple(map(without_query_markers, queries)))
        drafts = drafts.stated(year=year, context=context)
        return cls(
            drafts=drafts,
            cited=_listed(cited, "cited"),
            excluded=_listed(excluded, "excluded"),
            rejected=_listed(rejected, "rejected"),
            k=SENTENCE_K if k is None and drafts.by_sentence else k,
            year_max=year_max,
            year_min=year_min,
            explain=explain,
            most_sentences=most_sentences,
        )

    def with_queries(self, queries: Sequence[Query]) -> Self:
        """Return the same request for other queries."""
        return replace(self, drafts=replace(self.drafts, queries=tuple(queries)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPapers:
    """The papers that a request lists, as rows of a corpus, and what the corpus does not have."""

    excluded: frozenset[int] = frozenset()  # rows that are not eligible
    # rows of the known references, which are not eligible either
    cited: frozenset[int] = frozenset()
    # rows that did not fit, which leave the list at its end
    rejected: frozenset[int] = frozenset()
    not_found: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()  # one about each list, for the user
    # those of them that are about the references of the document
    notices: tuple[str, ...] = ()

    @property
    def covered(self) -> bool:
        """Whether the corpus has at least a fifth of the known references, and not none."""
        return bool(self.cited) and len(self.not_found) <= 4 * len(self.cited)

    @classmethod
    def of(cls, request: Request, papers: Papers) -> Self:
        """Look up the lists of a request, and the references of its document."""
        rows = dict[str, frozenset[int]]()
        missing = list[str]()
        lines = list[str]()
        for name in LISTS:
            listed: PaperList | None = getattr(request, name)
            rows[name] = frozenset()
            if listed is not None:
                rows[name], not_found, line = looked_up(listed, name, papers)
                missing += not_found
                lines.append(line)
        notices: tuple[str, ...] = ()
        drafts = request.drafts
        if drafts.cited is not None:
            own, not_found, line = looked_up(drafts.cited, drafts.name, papers)
            missing += not_found
            if drafts.cited.entries or not rows["cited"]:
                notices = (line,)
            rows["cited"] |= own
        return cls(
            excluded=rows["excluded"],
            cited=rows["cited"],
            rejected=rows["rejected"],
            not_found=tuple(dict.fromkeys(missing)),
            lines=(*lines, *notices),
            notices=notices,
        )


def looked_up(
    listed: PaperList, name: str, papers: Papers
) -> tuple[frozenset[int], tuple[str, ...], str]:
    """Return the rows of a list, its entries that are not in the corpus or cannot be read, and a line about them.

    The line counts entries; of a text that names several papers, each.
    """
    by_entry = listed_rows(listed, papers)
    rows = frozenset[int]().union(*by_entry)
    named = {title_key(paper.title) or paper.id for paper in papers.at(rows).values()}
    entries = zip(listed.entries, by_entry, strict=True)
    missing = [
        entry.title or entry.place for entry, of_entry in entries if not of_entry
    ]
    found = max(len(named), len(by_entry) - len(missing))
    count = found + len(missing) + len(listed.unread)
    line = f"{plural(count, 'reference')}, {found} of them in this corpus"
    missing = [*dict.fromkeys(missing)]
    parts = [
        line if count else NO_REFERENCES,
        f"not found: {some_of(missing)}" if missing else "",
        some_of(listed.unread),
        *listed.notices,
    ]
    not_found = (*missing, *listed.unread)
    return rows, not_found, f"{name}: {'; '.join(filter(None, parts))}"


def check_queries(given: Sequence[object]) -> None:
    """Check that all objects are queries; a ConfigError says what to give in place of a text."""
    if wrong := [found for found in given if not isinstance(found, Query)]:
        raise ConfigError(
            f"expected a query, found {type(wrong[0]).__name__}; for a text: title=..., for several: recommend_many"
        )


def list_query(name: str = "") -> Query:
    """Return the query that stands for a list of references; `name` is that of its file."""
    title = (
        f"Papers missing from {name}"
        if name.strip()
        else "Papers missing from the references"
    )
    return Query(id="references", title=title, named=False, kind=QueryKind.REFERENCES)


def _typed(
    title: str | None,
    abstract: str,
    lines: Sequence[str],
    context: str | None,
    cited: PaperListLike | None,
) -> Query:
    """Return the query of what is given without a file: a draft, else a sentence, else a list of references."""
    if title is not None:
        title = " ".join(title.split())
        body = ()
        if lines:
            from citerec.drafts.sentences import body_of  # which reads documents, too

            body = body_of(lines)
        return Query(
            id="query",
            title=title,
            abstract=abstract.strip(),
            body=body,
            named=False,
        )
    if abstract or lines:
        name = "--abstract" if abstract else "body"
        raise ConfigError(f"{name} needs --title, the title of the draft")
    if context is not None:
        return sentence_query(context)
    if cited is not None:
        return list_query(Path(cited).name if isinstance(cited, str | PathLike) else "")
    raise ConfigError(
        "there is no draft; give one by --title or --query, a sentence by --context, or references by --cited"
    )


def _listed(papers: PaperListLike | None, name: str) -> PaperList | None:
    if papers is None or isinstance(papers, PaperList):
        return papers
    if isinstance(papers, str | PathLike):
        from citerec.corpus.lists import read_paper_list

        return read_paper_list(
            fspath(papers), "rejected" if name == "rejected" else "papers"
        )
    return paper_list_of(map(str, papers))
