"""Requests for recommendations and their answers as JSON; options are views of `citerec.config.RecommendConfig`."""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal

import orjson
from fastapi import Request as HttpRequest
from fastapi import Response
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from citerec.bibliography.entry import PaperList
from citerec.bibliography.paper_list import paper_list_of
from citerec.bibliography.styles import (
    ReferenceConfig,
    ReferenceFormat,
    notice_of,
    references,
)
from citerec.config import (
    Bm25Config,
    RecommendConfig,
    RerankConfig,
    Settings,
    StopWords,
    setting,
)
from citerec.corpus.lists import parse_paper_list
from citerec.display import some_of
from citerec.drafts import QueryFile
from citerec.errors import (
    BadInputError,
    CiterecError,
    ConfigError,
    IndexReplacedError,
    InvalidValueError,
    MissingExtraError,
    ModelError,
    PaperNotFoundError,
)
from citerec.export.jsonl import FIELDS
from citerec.files.isolated import isolated
from citerec.index.papers import Papers as Corpus
from citerec.match.check import check_references, chosen_papers
from citerec.recommendations import Recommendations
from citerec.request import NONE, ListedPapers, Request
from citerec.serve.guard import KINDS, LOG, MEDIA_TYPE, ProblemError, internal_error
from citerec.serve.service import OpenIndex, Service, answer
from citerec.serve.uploads import (
    MAX_DRAFT,
    MAX_QUERIES,
    bibtex_papers,
    read_drafts,
    within_limits,
)
from citerec.text import QueryForm
from citerec.types import MAX_TITLE, Json, Paper, StageHit

MAX_RESULTS = 1000  # papers of one answer
MAX_LISTED = 10_000  # entries of a list of papers
MAX_STYLED = 200  # papers; pandoc takes a second for them
Text = Annotated[str, StringConstraints(max_length=16_000_000)]
Title = Annotated[str, StringConstraints(max_length=MAX_TITLE)]
Abstract = Annotated[str, StringConstraints(max_length=MAX_DRAFT)]
Paragraphs = Annotated[list[Text], Field(max_length=100_000)]
Papers = Annotated[
    list[Annotated[str, StringConstraints(max_length=10_000)]],
    Field(max_length=MAX_LISTED),
]
Keys = Annotated[
    list[Annotated[str, StringConstraints(max_length=1_000)]], Field(max_length=100_000)
]
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
DECODED = AfterValidator(partial(b64decode, validate=True))
Document = Annotated[
    bytes, DECODED, WithJsonSchema({"type": "string", "pattern": BASE64})
]
Queries = Annotated[list[Json], Field(min_length=1, max_length=MAX_QUERIES)]
Year = Annotated[int, Field(ge=1, le=9999)]
Note = Annotated[str, StringConstraints(max_length=10_000)]
# a name alone: a client must not make the server read files
StyleName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,100}$")]
# of `--fields`
PaperField = Enum("PaperField", {name: name for name in FIELDS}, type=str)
# settings by key, where these are not equal
BM25 = {"query_form": "form", "k1": "k1", "b": "b", "stop_words": "stop_words"}
OTHERS = {
    "encoder": "encoder",
    "retriever": "retrievers",
    "ranker": "ranker",
    "diversity": "diversity",
}
# the last clause of a message, if it is a command to type
COMMAND = re.compile(r"[;,:] [^;]*(?:\bciterec [a-z]+ |--query )[^;]*$")


def like(settings: type[Settings], name: str) -> Any:
    """Return the declaration of a setting: its default, bounds and description."""
    return copy(settings.model_fields[name])


class IndexRequest(BaseModel):
    """A request to one index."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = setting(None, "The name of an index; by default the first.")


class RecommendRequest(IndexRequest):
    """A draft, a sentence or a list of references, or several drafts, and options of `citerec recommend`.

    The draft is given by `title` (and `abstract`), by `query` as a record, or by `text` as the content of a file.
    What an option leaves out is as the server was started.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Brushing in parallel coordinates",
                    "abstract": "We select polylines by the angle between axes.",
                    "year": 2021,
                    "k": 10,
                },
                {"cited": ["10.1109/tvcg.2009.179"], "fields": ["doi", "venue"]},
            ]
        },
    )

    query: Json | Queries | None = setting(
        None, "A draft as a record of a query file, or several."
    )
    text: Text | None = setting(
        None, "The content of a query file: text, LaTeX, Markdown, BibTeX, ..."
    )
    document: Document | None = setting(
        None, "The content of a PDF, a Word file or any other, in base64."
    )
    title: Title | None = setting(
        None, "In place of the title of query, text or document."
    )
    abstract: Abstract | None = None
    body: Text | Paragraphs | None = setting(
        None, "The text that goes with title, or its paragraphs; [CITE] at citations."
    )
    year: Year | None = setting(None, "The year of the draft, in place of its own.")
    context: Text | None = setting(
        None,
        "The sentence; [CITE] marks the place. all: each sentence of the draft without a reference, most sure first; "
        "k is 3 then.",
    )
    cited: Papers | Text | None = setting(
        None, "What the draft cites: ids, DOIs, titles; or the content of a .bib; none."
    )
    exclude: Papers | Text | None = setting(None, "Papers to exclude, likewise.")
    rejected: Papers | Text | None = setting(
        None, "Papers of former lists that do not fit."
    )
    year_max: Year | None = None
    year_min: Year | None = None
    k: int = setting(20, "Number of papers.", ge=1, le=MAX_RESULTS)
    explain: bool = setting(False, "Whether to add the reasons for each paper.")
    fields: list[PaperField] = setting(  # pyright: ignore[reportInvalidTypeForm]
        [], "More of each paper.", max_length=len(FIELDS)
    )

    encoder: Literal["auto", "none"] = setting("auto", "none for BM25 alone.")
    fusion: Literal["auto", "rrf", "weighted"] = "auto"
    retriever: list[str] = setting([], "Registered retrievers.", max_length=4)
    reranker: str | None = setting(
        None, "none, auto, or a model that the server was started with."
    )
    rerank_depth: int = like(RerankConfig, "depth")
    rerank_weight: float | None = like(RerankConfig, "weight")
    ranker: Literal["auto", "none"] | None = None
    no_popularity: bool = False
    no_authors: bool = False
    diversity: float = like(RecommendConfig, "diversity")
    query_form: QueryForm = like(Bm25Config, "form")
    k1: float = like(Bm25Config, "k1")
    b: float = like(Bm25Config, "b")
    stop_words: StopWords = like(Bm25Config, "stop_words")

    @property
    def pool(self) -> str:
        """The threads that read it: those of uploads, if it has what may take seconds to read."""
        parts = (self.text, self.document, self.cited, self.exclude, self.rejected)
        return "lookups" if parts == (None,) * len(parts) else "uploads"

    def config(
        self, start: RecommendConfig, rerankers: Sequence[str]
    ) -> RecommendConfig:
        """Return the settings for this request; `start` are those of one without options."""
        given = self.model_dump(exclude_unset=True, exclude_none=True)
        changes = {
            field: given[name] for name, field in OTHERS.items() if name in given
        }
        if self.fusion != "auto":
            changes["fuse"] = start.fuse.replace(method=self.fusion)
        if bm25 := {
            field: given[name] for name, field in BM25.items() if name in given
        }:
            changes["bm25"] = start.bm25.replace(**bm25)
        changes |= {"popularity": False} if self.no_popularity else {}
        changes |= {"authors": False} if self.no_authors else {}
        if not {"reranker", "rerank_depth", "rerank_weight"} & given.keys():
            return start.replace(**changes)
        name = self.reranker or (rerankers[0] if rerankers else "auto")
        if name not in ("auto", "none", *rerankers):
            offered = ", ".join(["auto", "none", *rerankers])
            raise ConfigError(
                f"no reranker {name[:60]!r}; this server offers: {offered}"
            )
        details = {"depth": self.rerank_depth, "weight": self.rerank_weight}
        has_details = details != {"depth": 0, "weight": None}
        if name == "none" and has_details:
            raise ConfigError(
                "rerank_depth and rerank_weight have no effect without a reranker"
            )
        if name == "none" or (name == "auto" and not has_details):
            return start.replace(reranker=name, **changes)
        chosen = start.rerank.replace(model=name, **details)
        return start.replace(reranker=chosen, **changes)


def read_request(
    body: RecommendRequest, opened: OpenIndex
) -> tuple[Request, ListedPapers]:
    """Read a request within the limits of a server, and look up the papers of its lists.

    Texts that a parser reads are read in processes of their own.
    """
    drafts = _drafts(body)
    request = Request.of(
        drafts,
        title=None if drafts else body.title,
        abstract=(None if drafts else body.abstract) or "",
        body=body.body or "",
        year=None if drafts else body.year,
        context=None if drafts else body.context,
        k=body.k if "k" in body.model_fields_set else None,
        year_max=body.year_max,
        year_min=body.year_min,
        excluded=_listed(body.exclude, "exclude"),
        cited=body.cited if body.cited == NONE else _listed(body.cited, "cited"),
        rejected=_listed(body.rejected, "rejected"),
        explain=body.explain,
        most_sentences=MAX_QUERIES,
    )
    within_limits(request.drafts)
    return request, opened.default.look_up(request)


def size_of(body: RecommendRequest, read: Request) -> int:
    """Return how much work on the models a request is, roughly: those of a lower size go first."""
    return (len(read.drafts.queries) * (body.k + body.rerank_depth)).bit_length()


def _drafts(body: RecommendRequest) -> QueryFile | None:
    """Return the drafts that a body has as a record or the content of a file; None for one of fields."""
    given = [
        part for part in (body.query, body.text, body.document) if part is not None
    ]
    if len(given) > 1:
        raise ConfigError("query, text, document: several are given; give one of them")
    if not given:
        return None
    data = body.document
    if body.text is not None:
        data = body.text.encode(errors="replace")
    elif data is None:
        try:
            data = orjson.dumps(body.query)
        except (
            TypeError
        ) as error:  # what JSON of a client may hold and that of a file may not
            raise ConfigError(f"query cannot be read: {error}") from error
    read = partial(
        read_drafts,
        data,
        title=body.title,
        abstract=body.abstract,
        year=body.year,
        context=body.context,
    )
    return read() if body.query is not None else isolated(read, "query")


async def recommended(
    request: HttpRequest,
    body: RecommendRequest,
    shown: Callable[[OpenIndex, list[Recommendations], Sequence[str]], Response],
) -> Response:
    """Return what `shown` makes of one list per query, in the order of the body, and of notices about the draft."""
    reading = partial(read_request, body)
    read, listed = await answer(request, reading, body.index, body.pool)
    service: Service = request.app.state.service

    def work(opened: OpenIndex) -> Response:
        config = body.config(opened.default.config, service.rerankers)
        try:
            recommender = opened.recommender(config)
        except ModelError as error:  # the default ones are open
            raise ConfigError(
                "the options name a model that this index does not have"
            ) from error
        lists = recommender.recommend_many(read, listed, service.models.pause)
        notices = (*read.drafts.notices, *listed.notices)
        return shown(opened, [*map(for_client, lists)], [*map(for_clients, notices)])

    return await answer(request, work, body.index, size=size_of(body, read))


def for_client(found: Recommendations) -> Recommendations:
    """Return a list whose texts for the user name keys in place of options."""
    notices = tuple(map(for_clients, found.notices))
    return replace(found, empty_reason=for_clients(found.empty_reason), notices=notices)


def _listed(given: list[str] | str | None, name: str) -> PaperList | None:
    return None if given is None else _list(given, name)


def _list(given: list[str] | str, name: str) -> PaperList:
    """Return a list of papers; a text of a client is never the path of a file."""
    return paper_list_of(given) if isinstance(given, list) else read_list(given, name)


def read_list(text: str, name: str) -> PaperList:
    """Read the content of a bibliography in a process of its own; ConfigError if it has too many entries."""
    part = "rejected" if name == "rejected" else "papers"
    listed = isolated(partial(parse_paper_list, text, name, part), name)
    if (entries := len(listed.entries)) > MAX_LISTED:
        raise ConfigError(
            f"{name} has {entries:,} entries; expected at most {MAX_LISTED:,}"
        )
    return listed


class SaveRequest(IndexRequest):
    """Papers of an index and others, with notes."""

    ids: Papers = setting([], "Their ids, DOIs or titles.")
    outside: Text = setting(
        "", "Papers that the index does not have, as BibTeX; they come last."
    )
    notes: dict[str, Note] = setting({}, "Notes by id, for bibtex, ris and csl.")

    def papers(self, opened: OpenIndex) -> list[Paper]:
        """Return the papers, those that the index does not have last; ProblemError if one is missing."""
        found, _, missing = chosen_papers(paper_list_of(self.ids), opened.index.papers)
        if self.outside:
            found += isolated(partial(bibtex_papers, self.outside), "outside")
        if not found and not missing:
            raise ConfigError("ids, outside: there is no paper; give one")
        if missing:
            message = f"ids: not in this index: {some_of(missing)}; leave these out"
            raise ProblemError("not-found", message)
        return found


class ExportRequest(SaveRequest):
    """Papers of an index, and how they are written as references."""

    format: ReferenceFormat = like(ReferenceConfig, "format")
    style: StyleName = like(ReferenceConfig, "style")
    taken_keys: Keys | Text | None = setting(
        None,
        "Citation keys that bibtex does not use; or the content of a .bib, for all of its keys.",
    )

    def written(self, opened: OpenIndex) -> tuple[str, str]:
        """Return the papers as references, and what these lack; ConfigError if there are too many."""
        found = self.papers(opened)
        if len(found) > MAX_STYLED and self.format in ("html", "text"):
            raise ConfigError(
                f"ids: html and text take at most {MAX_STYLED} papers at once"
            )
        config = ReferenceConfig(format=self.format, style=self.style)
        taken = _listed(self.taken_keys, "taken_keys")
        written = references(found, config, self.notes, taken.keys if taken else ())
        return written, notice_of(found, config)


class CheckRequest(IndexRequest):
    """A bibliography to compare with an index, as `citerec check` does."""

    references: Papers | Text = Field(
        description="Ids, DOIs or titles; or the content of a .bib, RIS or CSL-JSON file."
    )

    def answered(self, opened: OpenIndex) -> "CheckAnswer":
        """Compare the list with an index."""
        return checked(_list(self.references, "references"), opened.index.papers)


class CheckAnswer(BaseModel):
    """What a bibliography and an index state differently."""

    entries: int
    found: int  # entries that the index has
    with_problem: int
    missing: list[str]  # entries that the index does not have: no error of theirs
    # problem, place, key, title, id, and text: the problem in words
    findings: list[dict[str, str]]
    corrections: str  # BibTeX: entries of the file with what the index states otherwise


def checked(listed: PaperList, papers: Corpus) -> CheckAnswer:
    """Compare a list of references with an index."""
    report = check_references(listed, papers)
    names = ("problem", "place", "key", "title", "id")
    findings = [
        {name: str(getattr(found, name)) for name in names} | {"text": found.described}
        for found in report.findings
    ]
    return CheckAnswer(
        entries=report.entries,
        found=report.found,
        with_problem=report.with_problem,
        missing=[entry.title or entry.place for entry in report.missing],
        findings=findings,
        corrections=report.corrections(papers),
    )


class Problem(BaseModel):
    """An error, in the form of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[dict[str, str]] = []  # `pointer` and `detail` of each wrong value


# every route may give these answers: most are of `citerec.serve.guard`; 400: a body that is not JSON
PROBLEMS: dict[int | str, Json] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    }
    for status in sorted({400, 501, *KINDS.values()})
}


class RecommendedPaper(BaseModel):
    """One element of the list of `citerec recommend --format json`; `fields` of the request adds keys."""

    model_config = ConfigDict(extra="allow")

    rank: int
    id: str
    title: str
    year: int | None
    score: float
    stages: Mapping[str, StageHit]
    probability: float | None
    reasons: list[str]
    passage: str = ""  # the nearest sentence of its abstract, with the reasons


class Answer(BaseModel):
    """The recommendations for one query."""

    query: str
    sentence: str = ""  # the one that was searched; none for a draft
    section: str = ""
    sureness: float | None = None  # of a sentence, in [0, 1]
    results: list[RecommendedPaper]
    empty_reason: str
    notices: list[str]


class RecommendAnswer(BaseModel):
    """One answer per query, in the order of the queries."""

    index: str
    version: str  # of the index that was searched
    answers: list[Answer]
    notices: list[str]  # what was recognised in the draft, and what is missing
    not_found: list[str]  # entries of the lists of papers that are not in the corpus


def json(content: object) -> Response:
    """Return an answer; floats are written as `citerec recommend --format json` writes them."""
    return Response(orjson.dumps(content), media_type="application/json")


def for_clients(message: str, instead: str = "") -> str:
    """Return a message with keys in place of options; a last clause that gives a command becomes `instead`."""
    message = COMMAND.sub(instead, message)
    return re.sub(
        r"--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", "_"), message
    )


def problem_of(
    error: CiterecError | ProblemError,
    hidden: Mapping[str, str],
    fields: Mapping[str, Any],
) -> ProblemError:
    """Return what a client gets for an error: its message if the request is at fault; else it is logged.

    `hidden` has paths that must not be shown, and what stands for each; `fields` are those of the log.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, ConfigError | BadInputError | InvalidValueError):
        detail = str(error)
        for path, name in hidden.items():
            detail = detail.replace(path, name)
        return ProblemError("invalid-request", for_clients(detail))
    if isinstance(error, PaperNotFoundError):
        return ProblemError("not-found", str(error))
    if isinstance(error, IndexReplacedError):
        detail = (
            "the index was replaced on the disk; GET /v1/index opens its new version"
        )
        return ProblemError("replaced", detail)
    LOG.error("%s: %s", type(error).__name__, error, extra={"fields": fields})
    if isinstance(error, MissingExtraError):
        command = str(error).rpartition(": ")[2]
        detail = (
            f"the server lacks a package, which its operator can install: {command}"
        )
        return ProblemError("internal", detail, status=501)
    return internal_error()
