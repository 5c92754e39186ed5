"""What the page requests, and the list of the first stage, which is shown before rerankers and models are done."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from citerec.export import Result
from citerec.export.jsonl import items
from citerec.recommend import BatchRecommender
from citerec.serve.page.view import FIELDS
from citerec.serve.prepare import prepare, read_drafts
from citerec.serve.schema import RecommendRequest

MOST = 100  # papers in a list
MOST_MARKS = 2_000  # papers that are marked as cited or hidden


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

    @property
    def record(self) -> dict[str, Any] | None:
        """The draft as a record of a query file; None for a sentence alone, or references alone."""
        if not self.title.strip():
            return None
        named = {"title": self.title, "abstract": self.abstract, "year": self.year}
        named |= {"authors": self.authors, "venue": self.venue, "doi": self.doi}
        return {name: value for name, value in named.items() if value}

    def for_api(self) -> RecommendRequest:
        """Return the request of `/v1/recommend` whose answer is the list in its last order."""
        return RecommendRequest(
            index=self.index,
            query=self.record,
            context=self.context,
            cited=self.cited or None,
            exclude=self.exclude or None,
            k=self.k,
            year_max=self.year_max,
            explain=True,
            fields=[*FIELDS],
        )


def has_later_stages(recommender: BatchRecommender) -> bool:
    """Whether the order of the first stage is not the last one."""
    return bool(recommender.ranker or recommender.cascade or recommender.config.diversity)


def first_list(request: PageRequest, recommender: BatchRecommender) -> Sequence[dict[str, Any]]:
    """Return the papers in the order of the first stage, as `/v1/recommend` returns them; empty for references alone.

    Raises:
        CiterecError: If the request is wrong.
    """
    wanted, papers = request.for_api(), recommender.index.papers
    prepared = prepare(wanted, read_drafts(wanted), papers)
    if prepared.is_list:
        return []
    first = copy(recommender)
    first.ranker, first.cascade = None, None
    first.config = recommender.config.replace(diversity=0.0)
    options = prepared.options
    [found] = first.with_k(request.k).stream(
        prepared.queries,
        year_max=options.year_max,
        excluded=options.excluded,
        cited=options.cited,
        explain=True,
    )
    return items(Result(prepared.queries[0], found.items), FIELDS)
