"""What the page requests, and the list of the first stage, which is shown before rerankers and models are done."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from citerec.api.listed import find_listed
from citerec.drafts import parse_queries
from citerec.drafts.context import read_context
from citerec.export import Result
from citerec.export.jsonl import items
from citerec.recommend import BatchRecommender
from citerec.serve.page.view import FIELDS
from citerec.serve.schema import RecommendRequest
from citerec.types import Query

MOST = 100  # papers in a list
MOST_MARKS = 2_000  # papers that are marked as cited or hidden
UNREADABLE = (
    0.5  # least share of unreadable letters of a draft for a notice, as on the command line
)


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

    def query(self) -> Query | None:
        """Return the draft; None if there is none, whose list has only one order.

        Raises:
            CiterecError: If it cannot be a query.
        """
        if self.record is None:
            return None
        [query] = parse_queries(orjson.dumps(self.record)).queries
        return replace(query, context=read_context(self.context)) if self.context else query


def has_later_stages(recommender: BatchRecommender) -> bool:
    """Whether the order of the first stage is not the last one."""
    return bool(recommender.ranker or recommender.cascade or recommender.config.diversity)


def first_list(request: PageRequest, recommender: BatchRecommender) -> Sequence[dict[str, Any]]:
    """Return the papers in the order of the first stage, as `/v1/recommend` returns them; empty for references alone.

    Raises:
        CiterecError: If the request is wrong.
    """
    query = request.query()
    if query is None:
        return []
    first = copy(recommender)
    first.ranker, first.cascade = None, None
    first.config = replace(recommender.config, diversity=0.0)
    papers = recommender.index.papers
    [found] = first.with_k(request.k).stream(
        [query],
        year_max=request.year_max,
        excluded=find_listed(request.exclude or None, "exclude", papers).rows,
        cited=find_listed(request.cited or None, "cited", papers).rows,
        explain=True,
    )
    return items(Result(query, found.items), FIELDS)


def unreadable_notice(request: PageRequest, recommender: BatchRecommender) -> str:
    """Return a notice if neither encoder nor corpus knows most words of the draft; else an empty string."""
    query = request.query()
    share = recommender.unreadable(query) if query else 0.0
    if share < UNREADABLE:
        return ""
    return (
        "Most words of this draft are in a script or language that neither the encoder nor the papers cover "
        f"({share:.0%} of the letters); the recommendations are unreliable."
    )
