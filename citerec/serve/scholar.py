"""The recommendations of Semantic Scholar's API, for clients that were written for it.

Paths, parameters and answers are those of https://api.semanticscholar.org/api-docs/recommendations; a field that the
corpus does not have is null. `paperId` is the id in the corpus.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from citerec.bibliography.keys import paper_doi
from citerec.recommendations import Recommendations
from citerec.serve.guard import ProblemError
from citerec.serve.requests import Papers, RecommendRequest, json, recommended
from citerec.serve.service import OpenIndex, answer
from citerec.types import Json, Paper


class ScholarRequest(BaseModel):
    """Papers that the recommendations should resemble, and papers that they should not."""

    positivePaperIds: Annotated[Papers, Field(min_length=1)]  # noqa: N815
    negativePaperIds: Papers | None = None  # noqa: N815


class ScholarAnswer(BaseModel):
    """The recommended papers, best first."""

    recommendedPapers: list[Json]  # noqa: N815


router = APIRouter(prefix="/recommendations/v1")


@dataclass(frozen=True)
class Shape:
    """The parameters of both routes."""

    fields: Annotated[
        str, Query(max_length=4000, description="Names, separated by commas.")
    ] = "title"
    limit: Annotated[int, Query(ge=1, le=500)] = 100
    index: Annotated[
        str | None, Query(description="An index; by default the first.")
    ] = None


@router.post("/papers", response_model=ScholarAnswer)
@router.post("/papers/", response_model=ScholarAnswer, include_in_schema=False)
async def papers(
    request: Request, shape: Annotated[Shape, Depends()], body: ScholarRequest
) -> Response:
    """Recommend papers for positive examples; negative ones are left out."""

    def wanted(opened: OpenIndex) -> RecommendRequest:
        ids = _ids(opened, [*body.positivePaperIds, *(body.negativePaperIds or ())])
        count = len(body.positivePaperIds)
        return RecommendRequest(
            index=shape.index, cited=ids[:count], exclude=ids[count:], k=shape.limit
        )

    return await _answered(request, shape, wanted)


@router.get("/papers/forpaper/{paper_id:path}", response_model=ScholarAnswer)
async def for_paper(
    request: Request, shape: Annotated[Shape, Depends()], paper_id: str
) -> Response:
    """Recommend papers for one paper of the corpus, by its title and abstract."""

    def wanted(opened: OpenIndex) -> RecommendRequest:
        [docid] = _ids(opened, [paper_id])
        paper = opened.default.corpus.paper(docid).paper
        names = ("id", "title", "abstract", "year")
        draft = {name: value for name in names if (value := getattr(paper, name))}
        return RecommendRequest(index=shape.index, query=draft, k=shape.limit)

    return await _answered(request, shape, wanted)


async def _answered(
    request: Request, shape: Shape, wanted: Callable[[OpenIndex], RecommendRequest]
) -> Response:
    names = [name.strip().partition(".")[0] for name in shape.fields.split(",")]
    fields = dict.fromkeys(filter(None, ["paperId", *names]))

    def shown(
        opened: OpenIndex, lists: list[Recommendations], _: Sequence[str]
    ) -> Response:
        values = _values(opened, lists[0].papers)
        listed = [{name: value.get(name) for name in fields} for value in values]
        return json({"recommendedPapers": listed})

    body = await answer(request, wanted, shape.index, "uploads")
    return await recommended(request, body, shown)


def _ids(opened: OpenIndex, given: Sequence[str]) -> list[str]:
    rows = opened.default.corpus.rows_of(given)
    if missing := [text for text, row in zip(given, rows, strict=True) if row is None]:
        raise ProblemError(
            "not-found", f"Input papers not found: {', '.join(missing)[:500]}"
        )
    return opened.index.papers.ids_at([row for row in rows if row is not None])


def _values(opened: OpenIndex, papers: Sequence[Paper]) -> Iterator[Json]:
    corpus = opened.default.corpus
    ids = [paper.id for paper in papers]
    for paper, (references, cited_by) in zip(papers, corpus.counts(ids), strict=True):
        doi = paper_doi(paper)
        journal = {"name": paper.venue, "volume": paper.volume, "pages": paper.pages}
        yield {
            "paperId": paper.id,
            "externalIds": {"DOI": doi} if doi else {},
            "url": paper.url or (f"https://doi.org/{doi}" if doi else None),
            "title": paper.title,
            "abstract": paper.abstract or None,
            "venue": paper.venue,
            "publicationVenue": {"name": paper.venue} if paper.venue else None,
            "year": paper.year,
            "publicationTypes": [paper.type] if paper.type else None,
            "journal": {k: v for k, v in journal.items() if v} or None,
            "authors": [
                {"authorId": None, "name": name.rstrip(",")} for name in paper.authors
            ],
            "referenceCount": references,
            "citationCount": cited_by,
        }
