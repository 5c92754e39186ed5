"""The page at `/`, for authors: its HTML, style and scripts, and the routes that only it uses.

`page.html` is rendered by Jinja2. `static/` holds plain JavaScript modules, `static/vendor/` lit-html as published
and the parts of D3 that are used, bundled: no build step, nothing from elsewhere.
Texts of a corpus reach the page as text nodes only.
"""

import hashlib
import mimetypes
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, UploadFile
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from citerec.bibliography.styles import coins
from citerec.display import html_page, visible
from citerec.errors import BadInputError
from citerec.index.folder import IndexFolder
from citerec.recommendations import Recommendations
from citerec.request import looked_up
from citerec.serve.requests import (
    MAX_LISTED,
    RecommendRequest,
    checked,
    for_clients,
    json,
    recommended,
)
from citerec.serve.service import OpenIndex, Served, answer
from citerec.serve.uploads import Upload, read_sent
from citerec.types import Json, Recommendation
from citerec.types import Query as Draft

STATIC = Path(__file__).parent / "static"
FILES = StaticFiles(directory=STATIC)  # with ETags, and 304 for what a browser has
_CONTENTS = [path for path in sorted(STATIC.rglob("*")) if path.is_file()]
# in the address of each file, which a browser then keeps
DIGEST = hashlib.sha256(b"".join(map(Path.read_bytes, _CONTENTS))).hexdigest()[:12]
# those that the others import, so that they are all asked for at once
SCRIPTS = [
    path.relative_to(STATIC).as_posix() for path in _CONTENTS if path.suffix == ".js"
]
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
# of `citerec.export.jsonl.FIELDS`
FIELDS = (
    "authors",
    "venue",
    "doi",
    "url",
    "abstract",
    "times_cited",
    "retracted",
)
router = APIRouter(include_in_schema=False)


@router.get("/")
def page(request: Request, service: Served) -> Response:
    """Return the page; it holds nothing of the corpora, which its scripts ask for."""
    filled = html_page(
        __name__,
        version=version("citerec"),
        desk=request.app.state.keeps,
        collect=request.app.state.collects,
        static=f"static/{DIGEST}",
        scripts=SCRIPTS,
        most_bytes=service.settings.max_body_bytes,
    )
    return HTMLResponse(filled, headers=SAFE)


@router.get("/static/{name:path}")
async def static(request: Request, name: str) -> Response:
    """Return a style sheet, a script or a picture; at an address with its digest it never changes."""
    path = name.removeprefix(f"{DIGEST}/")
    found = await FILES.get_response(path, request.scope)
    found.headers.update(SAFE)
    if path != name:
        found.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return found


@router.get("/page/papers")
async def papers(
    request: Request,
    ids: Annotated[list[str], Query(max_length=MOST)],
    index: str | None = None,
) -> Response:
    """Return the rows of papers by their ids; unknown ids are left out."""

    def work(opened: OpenIndex) -> Response:
        corpus = opened.index.papers
        rows = [
            row for row in corpus.rows_of([*dict.fromkeys(ids)]).tolist() if row >= 0
        ]
        found = corpus.at(rows)
        items = (Recommendation(rank=0, paper=found[row], score=0.0) for row in rows)
        return json(
            listed(
                opened.index, Recommendations(Draft(id="page", title="-"), (*items,))
            )
        )

    return await answer(request, work, index, "lookups")


@router.get("/page/example")
async def example(request: Request, index: str | None = None) -> Response:
    """Return title and abstract of a paper for a first try: a late one of those that cite many."""

    def work(opened: OpenIndex) -> Response:
        graph = opened.index.graph
        years = opened.index.papers.years
        references = graph.lengths.clip(max=30)
        paper = opened.index.papers[int((references * 10_000 + years).argmax())]
        return json({"title": paper.title, "abstract": paper.abstract})

    return await answer(request, work, index, "lookups")


@router.post("/page/draft")
async def draft(
    request: Request, files: list[UploadFile], index: str | None = None
) -> Response:
    """Return what was read of uploaded files, whose size is limited as that of any request."""
    sent = [Upload(file.filename or "", await file.read()) for file in files]
    return await answer(
        request, lambda opened: json(read_uploads(sent, opened)), index, "uploads"
    )


@router.post("/page/recommend")
async def recommend(request: Request, body: RecommendRequest) -> Response:
    """Return the answer of `/v1/recommend` as the page shows it, with reasons.

    `is_uncovered` is whether the last notice is that the corpus does not cover the draft.
    """

    def shown(
        opened: OpenIndex, lists: list[Recommendations], notices: Sequence[str]
    ) -> Response:
        found = lists[0]
        reason = found.empty_reason
        return json(
            {
                **listed(opened.index, found),
                "empty_reason": f"{reason[:1].upper()}{reason[1:]}." if reason else "",
                "notices": [*notices, *found.notices],
                "is_uncovered": found.is_uncovered,
                "not_found": list(found.not_found),
                "version": opened.version,
            }
        )

    body = body.model_copy(update={"explain": True})
    return await recommended(request, body, shown)


# --- lists


def listed(index: IndexFolder, found: Recommendations) -> Json:
    """Return one row per paper."""
    items = found.to_dicts(FIELDS)
    rows = index.papers.rows_of([item["id"] for item in items]).tolist()
    for item, paper, row in zip(items, found, rows, strict=True):
        item |= {
            "citations": len(index.graph.cited_by(row)),
            "coins": coins(paper.paper),
        }
    return {"rows": items}


# --- uploads


def read_uploads(files: Sequence[Upload], opened: OpenIndex) -> Json:
    """Read a draft and bibliographies, or bibliographies alone, in a process of their own; look the papers up.

    Returns:
        `draft` (`title`, `abstract`, `year`, `authors`, `venue`, `doi`, and as `text` the sentences of each paragraph
        with its section; None for a list of references), `cited` (`id`, `title`, `year` and `retracted` of the papers
        of the index that are cited), `references` (a line about those of each file), `checks` (what the index states
        otherwise than each file, as `CheckAnswer`), `notices`, `unread` (files, and
        why) and `keys` (of the bibliographies).
    """
    read = read_sent(files)
    cited = dict[str, Json]()
    references = list[str]()
    checks = list[Json]()
    for name, listed in read.lists:
        if (entries := len(listed.entries)) > MAX_LISTED:
            fault = f"this has {entries:,} entries; expected at most {MAX_LISTED:,}"
            read.faults.append(BadInputError(name, fault))
            continue
        rows, _, line = looked_up(listed, name, opened.index.papers)
        found = opened.index.papers.at(sorted(rows)).values()
        for paper in found:
            cited[paper.id] = {
                "id": paper.id,
                "title": visible(paper.title),
                "year": paper.year,
                "retracted": paper.retracted,
            }
        references.append(f"{visible(line)}.")
        checks.append(
            {"name": name, **checked(listed, opened.index.papers).model_dump()}
        )
    instead = "; paste its text into the fields instead"
    faults = [
        BadInputError(fault.path, for_clients(fault.message, instead), line=fault.line)
        for fault in read.faults
    ]
    if faults and not read.draft and not cited:
        raise faults[0]
    unread = [*map(visible, (*read.unread, *map(str, faults)))]
    return {
        "draft": read.draft,
        "cited": [*cited.values()],
        "references": references,
        "checks": checks,
        "notices": [*map(for_clients, read.notices)],
        "unread": unread,
        "keys": sorted(read.keys),
    }
