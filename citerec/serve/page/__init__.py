"""The page at `/`, for authors: its HTML, style and scripts, and the routes that only it uses.

`page.html` is rendered by Jinja2. `static/` holds plain JavaScript modules, `static/vendor/` lit-html as published
and the parts of D3 that are used, bundled: no build step, nothing from elsewhere.
Texts of a corpus reach the page as text nodes only.
"""

import mimetypes
from collections.abc import Sequence
from importlib.metadata import version
from io import BytesIO
from pathlib import Path, PurePosixPath
from stat import S_ISLNK
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any, NamedTuple
from zipfile import BadZipFile, ZipFile
from zlib import error

from fastapi import APIRouter, Query, Request, Response, UploadFile
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from citerec import Query as Draft
from citerec import Recommendation, Recommendations, Recommender
from citerec.bibliography.entry import PaperList
from citerec.bibliography.paper_list import read_paper_list
from citerec.bibliography.styles import coins
from citerec.drafts import DocumentFormat, document_format, parse_queries
from citerec.drafts.sentences import paragraphs
from citerec.errors import BadInputError
from citerec.folder import IndexFolder
from citerec.recommend import looked_up
from citerec.serve.requests import RecommendRequest, for_clients, json, recommended
from citerec.serve.service import OpenIndex, Served, Service, answer
from citerec.text import html_page, plural, visible

STATIC = Path(__file__).parent / "static"
FILES = StaticFiles(directory=STATIC)  # with ETags, and 304 for what a browser has
mimetypes.add_type("text/javascript", ".js")  # whatever the system says
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
MOST_FILES, MOST_UNPACKED, MOST_DEPTH = 2_000, 64 * 2**20, 20  # of a .zip; parts of a path
REFERENCES = frozenset({".bib", ".bibtex", ".ris"})  # lists, unless a document is with them
AROUND = frozenset({".bbl", ".sty", ".cls", ".bst"})  # files of a LaTeX draft that are no draft
FIELDS = (
    "authors",
    "venue",
    "doi",
    "url",
    "abstract",
    "times_cited",
)  # of `citerec.export.jsonl.FIELDS`
router = APIRouter(include_in_schema=False)


@router.get("/")
def page(service: Served) -> Response:
    """Return the page; it holds nothing of the corpora, which its scripts ask for."""
    filled = {"version": version("citerec"), "most_bytes": service.settings.max_body_bytes}
    return HTMLResponse(html_page(__name__, **filled), headers=SAFE)


@router.get("/static/{name:path}")
async def static(request: Request, name: str) -> Response:
    """Return a style sheet, a script or a picture."""
    found = await FILES.get_response(name, request.scope)
    found.headers.update(SAFE)
    return found


@router.get("/page/papers")
async def papers(
    request: Request, ids: Annotated[list[str], Query(max_length=MOST)], index: str | None = None
) -> Response:
    """Return the rows of papers by their ids; unknown ids are left out."""

    def work(opened: OpenIndex) -> Response:
        corpus = opened.index.papers
        rows = [row for row in corpus.rows_of([*dict.fromkeys(ids)]).tolist() if row >= 0]
        found = corpus.at(rows)
        items = (Recommendation(rank=0, paper=found[row], score=0.0) for row in rows)
        return json(listed(opened.index, Recommendations(Draft(id="page", title="-"), (*items,))))

    return await answer(request, work, index, "lookups")


@router.get("/page/example")
async def example(request: Request, index: str | None = None) -> Response:
    """Return title and abstract of a paper for a first try: a late one of those that cite many."""

    def work(opened: OpenIndex) -> Response:
        graph, years = opened.index.graph, opened.index.papers.years
        references = (graph.indptr[1:] - graph.indptr[:-1]).clip(max=30)
        paper = opened.index.papers[int((references * 10_000 + years).argmax())]
        return json({"title": paper.title, "abstract": paper.abstract})

    return await answer(request, work, index, "lookups")


@router.post("/page/draft")
async def draft(request: Request, files: list[UploadFile], index: str | None = None) -> Response:
    """Return what was read of uploaded files, whose size is limited as that of any request."""
    sent = [Upload(one.filename or "", await one.read()) for one in files]
    return await answer(request, lambda opened: json(read_uploads(sent, opened)), index, "uploads")


@router.post("/page/recommend")
async def recommend(request: Request, service: Served, body: RecommendRequest) -> Response:
    """Return the answer of `/v1/recommend` as the page shows it."""
    body = body.model_copy(update={"explain": True})
    return await answer(request, lambda one: json(answered(service, one, body)), body.index)


# --- lists


def answered(service: Service, opened: OpenIndex, request: RecommendRequest) -> dict[str, Any]:
    """Return the list for a draft, and what the page says about it."""
    start = perf_counter()
    [found, *_], notices = recommended(service, opened, request)
    reason = for_clients(found.empty_reason)
    return {
        **listed(opened.index, found),
        "empty_reason": f"{reason[:1].upper()}{reason[1:]}." if reason else "",
        "notices": [*map(for_clients, (*notices, *found.notices))],
        "not_found": list(found.not_found),
        "version": opened.version,
        "stages": stages(opened.default),
        "seconds": round(perf_counter() - start, 4),
    }


def listed(index: IndexFolder, found: Recommendations) -> dict[str, Any]:
    """Return one row per paper."""
    items = found.to_dicts(FIELDS)
    rows = index.papers.rows_of([item["id"] for item in items]).tolist()
    for item, one, row in zip(items, found, rows, strict=True):
        item |= {"citations": len(index.graph.cited_by(row)), "coins": coins(one.paper)}
    return {"rows": items}


def stages(recommender: Recommender) -> list[str]:
    """Return how papers are found and ranked, in words."""
    names = {"bm25": "words", "dense": "meaning"}
    found = " + ".join(names.get(name, name) for name in recommender.retriever_names)
    later = {"read again": recommender.reranker, "ranked by citations": recommender.ranker}
    return [f"by {found}", *(name for name, model in later.items() if model)]


# --- uploads


class Upload(NamedTuple):
    """A file as a browser sends it."""

    name: str
    data: bytes

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_list(self) -> bool:
        """Whether it is a bibliography; JSON is one if it is a list."""
        is_json = self.suffix == ".json" and self.data.lstrip().startswith(b"[")
        return self.suffix in REFERENCES or is_json

    def path_in(self, folder: str) -> Path:
        """Return where the file is kept in a folder, at its place in the sent one, and nowhere else."""
        parts = self.name.replace("\\", "/").replace("\0", "").split("/")
        names = [*filter(None, (part.lstrip(".")[-60:] for part in parts[-MOST_DEPTH:]))]
        return Path(folder, *(names or ["file"]))


def unpacked(file: Upload, unread: list[str]) -> list[Upload]:
    """Return the files of a .zip within limits, or the file itself; `unread` receives what is left out, and why."""
    if not file.data.startswith(b"PK\x03\x04") or document_format(file.data, file.name):
        return [file]
    found = list[Upload]()
    try:
        with ZipFile(BytesIO(file.data)) as archive:
            infos = [one for one in archive.infolist() if not one.is_dir()]
            if len(infos) > MOST_FILES or sum(one.file_size for one in infos) > MOST_UNPACKED:
                most = f"at most {MOST_FILES:,} files and {MOST_UNPACKED >> 20} MB unpacked"
                unread.append(f"{file.name}: expected {most}")
                return []
            for one in infos:
                place = PurePosixPath(one.filename.replace("\\", "/"))
                if S_ISLNK(one.external_attr >> 16) or place.is_absolute() or ".." in place.parts:
                    unread.append(f"{file.name}: {place} is a link or outside the folder")
                else:
                    found.append(Upload(str(place), archive.read(one)))
    except (BadZipFile, RuntimeError, NotImplementedError, OSError, ValueError, error) as fault:
        unread.append(f"{file.name}: this .zip is damaged or encrypted ({fault})")
    return found


def read_uploads(files: Sequence[Upload], opened: OpenIndex) -> dict[str, Any]:
    """Read the draft among some files, and every bibliography beside it, or bibliographies alone.

    Returns:
        `draft` (`title`, `abstract`, `year`, `authors`, `venue`, `doi`, and as `text` the sentences of each paragraph
        with its section; None for a list of references), `cited` (`id`, `title` and `year` of the papers of the index
        that are cited), `notices`, `unread` (files, and why) and `keys` (of the bibliographies).
    """
    notices, unread = list[str](), list[str]()
    files = [one for file in files for one in unpacked(file, unread)]
    if not files:
        raise BadInputError("files", "; ".join(unread) or "none was sent; choose a draft")
    main, draft, keys, taken = min(files, key=_order), None, set[str](), set[str]()
    cited, faults = dict[str, dict[str, Any]](), list[BadInputError]()
    with TemporaryDirectory(prefix="citerec-") as folder:
        for file in files:
            try:
                file.path_in(folder).parent.mkdir(parents=True, exist_ok=True)
                file.path_in(folder).write_bytes(file.data)
            except OSError:
                unread.append(f"{file.name}: another file has its name")
        lists = [file for file in files if file.is_list]
        if document_format(main.data, main.name) is not DocumentFormat.LATEX:
            rest = (one.name for one in files if one is not main and one not in lists)
            unread += [f"{name}: not read beside {main.name}" for name in rest]
        for file in lists if main.is_list else [main, *lists]:
            try:
                if not file.is_list:
                    draft, listed, lines = _draft(file, file.path_in(folder))
                    notices += lines
                    keys = {one.key for one in listed.entries} - {""}
                else:
                    listed = read_paper_list(file.path_in(folder))
                    taken |= {one.key for one in listed.entries} - {""}
                # the draft names which it cites of a list that has its keys
                is_its = file.is_list and keys & {one.key for one in listed.entries}
                if not is_its and (listed.entries or listed.unread):
                    found, line = _looked_up(listed, file.name, opened)
                    cited |= {one["id"]: one for one in found}
                    notices.append(line)
            except BadInputError as fault:  # its path may be that of the temporary file
                message = for_clients(fault.message, "; paste its text into the fields instead")
                faults.append(BadInputError(file.name, message, line=fault.line))
        if faults and not draft and not cited:
            raise faults[0]
    unread = [*map(visible, (*unread, *map(str, faults)))]
    read = {"draft": draft, "cited": [*cited.values()], "notices": notices, "unread": unread}
    return read | {"keys": sorted(taken)}


def _order(file: Upload) -> tuple[int, int]:
    """Order the document first: the largest LaTeX file with a preamble, then other documents, lists and the rest."""
    document = document_format(file.data, file.name)
    if document is DocumentFormat.LATEX and file.suffix not in AROUND:
        return (0 if b"\\documentclass" in file.data else 1, -len(file.data))
    is_draft = not file.is_list and file.suffix not in AROUND
    return (2 if document else 3 if is_draft else 4, -len(file.data))


def _draft(file: Upload, path: Path) -> tuple[dict[str, Any], PaperList, list[str]]:
    """Return the draft, its references, and what was read of both."""
    notices: list[str] = []
    try:
        read = parse_queries(file.data, name=file.name, file=path)
    except BadInputError as error:
        if "has no title" not in error.message:
            raise
        read = parse_queries(file.data, name=file.name, file=path, title="Untitled")
        notices = [f"{file.name}: no title was found; write it into the field."]
    if read.batch:
        count = plural(len(read.queries), "draft")
        raise BadInputError(file.name, f"it holds {count}; the page searches for one at a time")
    [query] = read.queries
    draft = {name: getattr(query, name) for name in ("abstract", "year", "venue", "doi")}
    draft |= {"title": "" if notices else visible(query.title), "authors": [*query.authors]}
    parts = paragraphs(read.lines)
    draft["text"] = [{"section": visible(name), "sentences": part} for name, part in parts]
    notices += [for_clients(visible(notice)) for notice in read.notices]
    return draft, read.cited or PaperList(()), notices


def _looked_up(papers: PaperList, name: str, opened: OpenIndex) -> tuple[list[dict[str, Any]], str]:
    """Return the papers of a list that the index has, and a notice about the others."""
    rows, _, line = looked_up(papers, name, opened.index.papers)
    found = opened.index.papers.at(sorted(rows))
    cited = [{"id": p.id, "title": visible(p.title), "year": p.year} for p in found.values()]
    return cited, f"{visible(line)}."
