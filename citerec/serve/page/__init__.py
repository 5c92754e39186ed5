"""The page at `/`, for authors: `page_router` has its HTML, style and scripts, and the routes that only it uses.

`page.html` is rendered by Jinja2. `static/` holds plain JavaScript modules: no build step, nothing from elsewhere.
Texts of a corpus reach the page as text nodes only.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from citerec import Paper, Recommendation, Recommendations, Recommender
from citerec import Query as Draft
from citerec.bibliography.entry import PaperList
from citerec.bibliography.paper_list import read_paper_list
from citerec.drafts import parse_queries
from citerec.drafts.document import DocumentFormat, document_format
from citerec.errors import BadInputError, CiterecError
from citerec.matching import listed_rows
from citerec.serve.answers import ProblemError, finished, json, problem_of
from citerec.serve.guard import LOG
from citerec.serve.page.view import FIELDS, CorpusView
from citerec.serve.requests import Answered, RecommendRequest, recommended
from citerec.serve.service import OpenIndex, Service
from citerec.text import plural, visible

HERE = Path(__file__).parent
STATIC = HERE / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (  # everything from this server, and no script or style within the page
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the browser asks whether its copy is the newest: an update is complete
}
MOST = 100  # papers in a list
MOST_MARKS = 2_000  # papers that are marked as cited or hidden
MOST_FILES = 12  # of one upload
READERS = 2  # uploads that are read at once; a large PDF takes seconds
REFERENCES = frozenset({".bib", ".bibtex", ".ris"})  # lists, unless a document is with them
AROUND = frozenset({".bbl", ".sty", ".cls", ".bst"})  # files of a LaTeX draft that are no draft
SHOWN = 5  # references that are not in the corpus and are named


class PageRequest(BaseModel):
    """A draft, a sentence or references alone, with the marks and the settings of the page."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = None
    title: str = Field("", max_length=20_000)
    abstract: str = Field("", max_length=200_000)
    year: int | None = Field(None, ge=1, le=2200)
    authors: list[str] = Field([], max_length=2_000)
    venue: str = ""
    doi: str = ""
    context: str | None = None
    cited: list[str] = Field([], max_length=MOST_MARKS)
    exclude: list[str] = Field([], max_length=MOST_MARKS)
    k: int = Field(20, ge=1, le=MOST)
    year_max: int | None = Field(None, ge=1, le=2200)

    def for_api(self) -> RecommendRequest:
        """Return the request of `/v1/recommend` whose answer is the list in its last order."""
        stated = self.model_dump(
            include={"title", "abstract", "year", "authors", "venue", "doi"}, exclude_defaults=True
        )
        return RecommendRequest(
            query=stated if self.title.strip() else None,
            context=self.context,
            cited=self.cited or None,
            exclude=self.exclude or None,
            k=self.k,
            year_max=self.year_max,
            explain=True,
            fields=[*FIELDS],
        )


class ExportRequest(BaseModel):
    """Papers of an index, and the format to write them in."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = None
    ids: list[str] = Field(min_length=1, max_length=1_000)
    format: Literal["bibtex", "ris", "csl"] = "bibtex"


def page_router(service: Service) -> APIRouter:
    """Return the routes of the page over the open indexes of a service."""
    router = APIRouter(include_in_schema=False)
    views = {name: CorpusView(opened.index) for name, opened in service.indexes.items()}
    readers = ThreadPoolExecutor(READERS, "citerec-uploads")
    names = {path.name for path in STATIC.iterdir()}
    settings, seconds = service.settings, service.settings.timeout_seconds

    @router.get("/")
    def page() -> Response:  # pyright: ignore[reportUnusedFunction]
        # Without a token the page holds nothing of the corpora; its scripts ask for one.
        shown = [] if settings.tokens else [facts(one) for one in service.indexes.values()]
        text = template().render(
            indexes=shown, version=version("citerec"), most_bytes=settings.max_body_bytes
        )
        return HTMLResponse(text, headers=SAFE)

    @router.get("/static/{name}")
    def static(name: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        if name not in names:
            raise ProblemError("not-found", "no such file")
        return FileResponse(STATIC / name, media_type=TYPES[Path(name).suffix], headers=SAFE)

    @router.get("/page/indexes")
    def indexes() -> Response:  # pyright: ignore[reportUnusedFunction]
        return json([facts(one) for one in service.indexes.values()])

    @router.get("/page/papers")
    async def papers(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        ids: Annotated[list[str], Query(max_length=MOST)],
        index: str | None = None,
    ) -> Response:
        def work(opened: OpenIndex) -> Response:
            chosen = as_list(papers_of(opened, ids))
            return json(views[opened.name].listed(chosen.to_dicts(FIELDS)))

        return await finished(request, service.look_up(work, index), seconds)

    @router.get("/page/example")
    async def example(request: Request, index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        return json(await finished(request, service.look_up(example_of, index), seconds))

    @router.post("/page/export")
    async def exported(request: Request, body: ExportRequest) -> Response:  # pyright: ignore[reportUnusedFunction]
        def work(opened: OpenIndex) -> Response:
            if not (found := papers_of(opened, body.ids)):
                raise BadInputError("ids", "this index has none of these papers; search again")
            return Response(as_list(found).export(body.format), media_type="text/plain")

        return await finished(request, service.look_up(work, body.index), seconds)

    @router.post("/page/draft")
    async def draft(request: Request, index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        opened, files = service.open_index(index), await uploaded(request)
        return json(await asyncio.wrap_future(readers.submit(read_uploads, files, opened)))

    @router.post("/page/recommend")
    async def recommend(request: Request, body: PageRequest) -> Response:  # pyright: ignore[reportUnusedFunction]
        # A server that is busy answers 429 here, before the stream begins.
        first = service.look_up(
            lambda opened: first_list(service, opened, body.for_api(), views[opened.name]),
            body.index,
        )
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(
            events(body, first, service, views), media_type="text/event-stream", headers=headers
        )

    return router


async def events(
    request: PageRequest,
    first: "Future[dict[str, Any] | None]",
    service: Service,
    views: Mapping[str, CorpusView],
) -> AsyncIterator[bytes]:
    """Yield the events `first` (unless the first stage is all) and `last`, or `problem`."""
    start = perf_counter()

    def event(name: str, data: Mapping[str, Any]) -> bytes:
        timed = {**data, "seconds": round(perf_counter() - start, 4)}
        return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(timed))

    def last(opened: OpenIndex) -> dict[str, Any]:
        answered = recommended(service, opened, request.for_api())
        return last_list(answered, views[opened.name])

    try:
        if found := await asyncio.wrap_future(first):
            yield event("first", found)
        yield event("last", await asyncio.wrap_future(service.recommend(last, request.index)))
    except (CiterecError, ProblemError) as error:
        is_own = isinstance(error, ProblemError)
        problem = error if is_own else problem_of(error, service.hidden)
        if problem.status >= 500:
            LOG.error("%s: %s", type(error).__name__, error)
        retry_after = int(problem.headers.get("Retry-After", 0))
        yield event("problem", {**problem.as_json(), "retry_after": retry_after})


def _clean(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # not markup


@cache
def template() -> Any:
    """Return the template of the page; the only import of jinja2 by the server."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment: Any = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        finalize=_clean,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


# --- lists


def facts(opened: OpenIndex) -> dict[str, Any]:
    """Return what the chooser shows of an index; the years are 0 if none is known."""
    recommender = opened.default
    first, last = recommender.corpus.years or (0, 0)
    return {
        "name": opened.name,
        "papers": len(opened.index.papers),
        "first_year": first,
        "last_year": last,
        "found_by": " · ".join([found_by(recommender), *ranked_by(recommender)]),
    }


def first_list(
    service: Service, opened: OpenIndex, request: RecommendRequest, view: CorpusView
) -> dict[str, Any] | None:
    """Return the list of the first stage, which is shown before the models are done.

    None for references alone, and if there is no other order than the last.
    """
    config = opened.default.config
    has_later = bool(ranked_by(opened.default) or config.diversity)
    if not has_later or (request.query is None and request.context is None):
        return None
    plain = config.replace(
        ranker="none", reranker="none", diversity=0.0, popularity=True, authors=True
    )
    [found] = recommended(service, opened, request, plain).lists
    rows = view.listed(found.to_dicts(FIELDS))
    return {**rows, "found_by": found_by(opened.default)} if found else None


def last_list(answered: Answered, view: CorpusView) -> dict[str, Any]:
    """Return the answer of `/v1/recommend` as the page shows it."""
    [found], recommender = answered.lists, answered.opened.default
    why = in_words_of_the_page(found.empty_reason)
    return {
        **view.listed(found.to_dicts(FIELDS)),
        "why_nothing": f"{why[:1].upper()}{why[1:]}." if why else "",
        "notices": [*map(in_words_of_the_page, (*answered.notices, *found.notices))],
        "not_found": answered.not_found,
        "found_by": found_by(recommender),
        "ranked_by": ranked_by(recommender),
    }


def found_by(recommender: Recommender) -> str:
    """Return the first-stage retrievers for people."""
    names = {"bm25": "BM25", "dense": f"{recommender.encoder} vectors"}
    return " + ".join(names.get(name, name) for name in recommender.retriever_names)


def ranked_by(recommender: Recommender) -> list[str]:
    """Return the later stages for people."""
    stages = ["reranker"] if recommender.reranker else []
    return [*stages, "ranking model"] if recommender.ranker else stages


def papers_of(opened: OpenIndex, ids: Sequence[str]) -> list[Paper]:
    """Return papers by their ids; unknown ids are left out."""
    papers = opened.index.papers
    rows = [row for row in papers.rows_of([*dict.fromkeys(ids)]).tolist() if row >= 0]
    by_row = papers.at(rows)
    return [by_row[row] for row in rows]


def as_list(papers: Sequence[Paper]) -> Recommendations:
    """Return papers as a list in their order."""
    items = (Recommendation(rank=i, paper=paper, score=0.0) for i, paper in enumerate(papers, 1))
    return Recommendations(Draft(id="page", title="Chosen papers", named=False), tuple(items))


def example_of(opened: OpenIndex) -> dict[str, str]:
    """Return title and abstract of a paper for a first try: a late one of those that cite many."""
    graph, years = opened.index.graph, opened.index.papers.years
    references = (graph.indptr[1:] - graph.indptr[:-1]).clip(max=30)
    paper = opened.index.papers[int((references * 10_000 + years).argmax())]
    return {"title": paper.title, "abstract": paper.abstract}


_IN_WORDS_OF_THE_PAGE = (
    (re.compile(r"^'query' "), "This draft "),
    (re.compile(r"give --year-max (\d+) or a later year"), r"set the latest year to \1 or later"),
    (re.compile(r"--year-max"), "the latest year of papers"),
    (re.compile(r"--exclude"), "the hidden papers"),
    (re.compile(r"--cited"), "the papers that you cite"),
    (re.compile(r"--context"), "the sentence"),
)
_COMMAND = re.compile(r"[;,:] [^;]*(?:\bciterec [a-z]+ |(?<![\w-])--[a-z])[^;]*$")


def in_words_of_the_page(message: str, instead: str = "") -> str:
    """Return a message without options; a last clause that gives a command to type becomes `instead`."""
    for pattern, words in _IN_WORDS_OF_THE_PAGE:
        message = pattern.sub(words, message)
    return _COMMAND.sub(instead, message)


# --- uploads


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as a browser sends it."""

    name: str
    data: bytes

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case."""
        return PurePosixPath(self.name).suffix.lower()


async def uploaded(request: Request) -> list[Upload]:
    """Return the files of a multipart request, whose size is limited as that of any request.

    Raises:
        BadInputError: If it is no such request, or has no file.
    """
    try:
        parser = MultiPartParser(
            request.headers, request.stream(), max_files=MOST_FILES, max_fields=0
        )
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        fault = error.message if isinstance(error, MultiPartException) else "no files"
        raise BadInputError("upload", f"cannot be read: {fault}") from error
    sent = [part for part in form.getlist("files") if isinstance(part, UploadFile)]
    files = [Upload(part.filename or "", await part.read()) for part in sent]
    await form.close()
    if not files:
        raise BadInputError("upload", "there is no file; choose a .tex, .bib, .docx, .pdf or .md")
    return files


def read_uploads(files: Sequence[Upload], opened: OpenIndex) -> dict[str, Any]:
    """Read the draft of some files, or the references of a `.bib` or `.ris` alone.

    Args:
        files: A document, and for LaTeX the files that it includes; or a list of references.
        opened: Where references are looked up.

    Returns:
        `draft` (`title`, `abstract`, `year`, `authors`, `venue`, `doi`; None for a list of references), `cited`
        (`id`, `title` and `year` of the papers of the index that are cited) and `notices`.

    Raises:
        BadInputError: If the document cannot be read.
        MissingExtraError: If the library for a document is not installed.
    """
    with TemporaryDirectory(prefix="citerec-") as folder:
        paths = [_saved(file, Path(folder)) for file in files]
        main = min(range(len(files)), key=lambda i: _order(files[i]))
        name = files[main].name
        try:
            if files[main].suffix in REFERENCES:
                cited, notices = _looked_up(read_paper_list(paths[main]), name, opened)
                return {"draft": None, "cited": cited, "notices": notices}
            return _draft(files[main], paths[main], opened)
        except BadInputError as error:  # its path may be that of the temporary file
            message = in_words_of_the_page(
                error.message, "; paste its text into the fields instead"
            )
            raise BadInputError(name, message, line=error.line) from error


def _saved(file: Upload, folder: Path) -> Path:
    name = PurePosixPath(file.name.replace("\\", "/")).name.replace("\0", "")
    if name in ("", ".", ".."):
        raise BadInputError("upload", "a file has no name; rename it, and choose it again")
    path = folder / name
    try:
        path.write_bytes(file.data)
    except OSError as error:
        fault = f"its name is no file name ({error.strerror})"
        raise BadInputError(visible(name), fault) from error
    return path


def _order(file: Upload) -> tuple[int, int]:
    """Order the document first: the largest LaTeX file with a preamble, then other documents, lists and the rest."""
    document = document_format(file.data, file.name)
    if document is DocumentFormat.LATEX and file.suffix not in AROUND:
        return (0 if b"\\documentclass" in file.data else 1, -len(file.data))
    is_draft = file.suffix not in REFERENCES | AROUND
    return (2 if document else 3 if is_draft else 4, -len(file.data))


def _draft(file: Upload, path: Path, opened: OpenIndex) -> dict[str, Any]:
    notices, title = list[str](), None
    try:
        read = parse_queries(file.data, name=file.name, file=path)
    except BadInputError as error:
        if "has no title" not in error.message:
            raise
        read, title = parse_queries(file.data, name=file.name, file=path, title="Untitled"), ""
        notices.append(f"{file.name}: no title was found; write it into the field.")
    if read.batch:
        count = plural(len(read.queries), "draft")
        raise BadInputError(file.name, f"it holds {count}; the page searches for one at a time")
    [query] = read.queries
    cited, looked_up = _looked_up(read.cited, file.name, opened) if read.cited else ([], [])
    draft = {
        "title": visible(query.title) if title is None else title,
        "abstract": query.abstract,
        "year": query.year,
        "authors": list(query.authors),
        "venue": query.venue,
        "doi": query.doi,
    }
    texts = [*notices, *(in_words_of_the_page(visible(notice)) for notice in read.notices)]
    return {"draft": draft, "cited": cited, "notices": [*texts, *looked_up]}


def _looked_up(
    listed: PaperList, name: str, opened: OpenIndex
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the papers of a list that the index has, and a notice about the others."""
    found = listed_rows(listed, opened.index.papers)
    papers = opened.index.papers.at(sorted(frozenset[int]().union(*found)))
    cited = [{"id": p.id, "title": visible(p.title), "year": p.year} for p in papers.values()]
    missing = [e.title or e.place for e, r in zip(listed.entries, found, strict=True) if not r]
    count = plural(len(listed.entries), "reference")
    notices = [f"{name}: {count}, {len(listed.entries) - len(missing)} of them in this corpus."]
    if missing:
        more = len(missing) - SHOWN
        named = "; ".join(missing[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
        notices.append(f"Not in this corpus: {named}.")
    return cited, [*map(visible, [*notices, *listed.unread[:SHOWN]])]
