"""Requests for recommendations and their answers as JSON; options are views of `citerec.config.RecommendConfig`."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from citerec import Recommendations, RecommendConfig
from citerec.bibliography.entry import PaperList
from citerec.bibliography.paper_list import paper_list_of, parse_paper_list
from citerec.config import (
    Bm25Config,
    FuseMethod,
    RerankConfig,
    Settings,
    StopWords,
)
from citerec.drafts import parse_queries
from citerec.errors import ConfigError, ModelError
from citerec.export.jsonl import FIELDS
from citerec.serve.service import OpenIndex, Service
from citerec.text import QueryForm
from citerec.types import MAX_ABSTRACT, MAX_TITLE

MAX_RESULTS = 1000  # papers of one answer
MAX_LISTED = 10_000  # entries of a list of papers
MAX_NOT_FOUND = 1000  # of these that an answer names
NO_CITED = "none"  # for `cited`: not even the references that the draft cites
Text = Annotated[str, StringConstraints(max_length=16_000_000)]
Title = Annotated[str, StringConstraints(max_length=MAX_TITLE)]
Abstract = Annotated[str, StringConstraints(max_length=MAX_ABSTRACT)]
Papers = Annotated[
    list[Annotated[str, StringConstraints(max_length=10_000)]], Field(max_length=MAX_LISTED)
]
Year = Annotated[int, Field(ge=1, le=9999)]
PaperField = Enum("PaperField", {name: name for name in FIELDS}, type=str)  # of `--fields`
DRAFT: dict[str, Any] = {
    "title": "Brushing in parallel coordinates",
    "abstract": "We select polylines by the angle between axes.",
    "year": 2021,
}


def like(settings: type[Settings], name: str) -> Any:
    """Return the declaration of a setting: its default, bounds and description."""
    return copy(settings.model_fields[name])


class RecommendRequest(BaseModel):
    """A draft, a sentence or a list of references, or several drafts, and options of `citerec recommend`.

    The draft is given by `title` (and `abstract`), by `query` as a record, or by `text` as the content of a file.
    What an option leaves out is as the server was started.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                DRAFT | {"k": 10, "explain": True},
                {"query": [{"id": "a", **DRAFT}, {"id": "b", "title": "Treemaps"}], "k": 5},
                {"context": "Treemaps show hierarchies in little space [CITE]."},
                {"cited": ["10.1109/tvcg.2009.179"], "fields": ["doi", "venue"]},
            ]
        },
    )

    index: str | None = Field(
        default=None, description="The name of an index; by default the first."
    )
    query: dict[str, Any] | Annotated[list[dict[str, Any]], Field(min_length=1)] | None = Field(
        default=None, description="A draft as a record of a query file, or several."
    )
    text: Text | None = Field(
        default=None,
        description="The content of a query file: plain text, LaTeX, Markdown, BibTeX, ...",
    )
    title: Title | None = Field(default=None, description="In place of the title of query or text.")
    abstract: Abstract | None = None
    year: Year | None = Field(default=None, description="The year of the draft that `title` names.")
    context: Text | None = Field(default=None, description="The sentence; [CITE] marks the place.")
    cited: Papers | Text | None = Field(
        default=None,
        description="What the draft cites: ids, DOIs, titles; or the content of a .bib; none.",
    )
    exclude: Papers | Text | None = Field(default=None, description="Papers to exclude, likewise.")
    year_max: Year | None = None
    k: int = Field(default=20, ge=1, le=MAX_RESULTS, description="Number of papers.")
    explain: bool = Field(default=False, description="Whether to add the reasons for each paper.")
    fields: list[PaperField] = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=[], max_length=len(FIELDS), description="More of each paper."
    )

    encoder: Literal["auto", "none"] = Field(default="auto", description="none for BM25 alone.")
    fusion: Literal["auto", "rrf", "weighted"] = "auto"
    retriever: list[str] = Field(default=[], max_length=4, description="Registered retrievers.")
    reranker: str | None = Field(
        default=None, description="none, auto, or a model that the server was started with."
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

    def config(self, start: RecommendConfig, rerankers: Sequence[str]) -> RecommendConfig:
        """Return the settings for this request.

        Args:
            start: Those of requests without options.
            rerankers: The models that requests may name.

        Raises:
            ConfigError: If options contradict each other, or name a model that the server does not offer.
        """
        given, changes = self.model_fields_set, dict[str, Any]()
        bm25 = {"k1": self.k1, "b": self.b, "form": self.query_form, "stop_words": self.stop_words}
        named = {"form": "query_form"}
        if changed := {name: v for name, v in bm25.items() if named.get(name, name) in given}:
            changes["bm25"] = start.bm25.replace(**changed)
        if "encoder" in given and start.encoder == "auto":
            changes["encoder"] = self.encoder
        if self.fusion != "auto":
            changes["fuse"] = FuseMethod(self.fusion)
        if self.retriever:
            changes["retrievers"] = tuple(self.retriever)
        if self.ranker:
            changes["ranker"] = self.ranker
        changes |= {"popularity": False} if self.no_popularity else {}
        changes |= {"authors": False} if self.no_authors else {}
        if "diversity" in given:
            changes["diversity"] = self.diversity
        if {"reranker", "rerank_depth", "rerank_weight"} & given:
            changes["reranker"] = self._reranking(start, rerankers)
        return start.replace(**changes) if changes else start

    def _reranking(self, start: RecommendConfig, rerankers: Sequence[str]) -> str | RerankConfig:
        name = self.reranker or (rerankers[0] if rerankers else "auto")
        if name not in ("auto", "none", *rerankers):
            offered = ", ".join(["auto", "none", *rerankers])
            raise ConfigError(f"no reranker {name[:60]!r}; this server offers: {offered}")
        has_details = self.rerank_depth or self.rerank_weight is not None
        if name == "none" and has_details:
            raise ConfigError("rerank_depth and rerank_weight have no effect without a reranker")
        if name == "none" or (name == "auto" and not has_details):
            return name
        base = start.reranker if isinstance(start.reranker, RerankConfig) else RerankConfig()
        return base.replace(model=name, depth=self.rerank_depth, weight=self.rerank_weight)


def recommended(
    service: Service,
    opened: OpenIndex,
    request: RecommendRequest,
    config: RecommendConfig | None = None,
) -> "Answered":
    """Answer a request; `config` takes the place of its own.

    Raises:
        CiterecError: If the request is wrong.
    """
    config = config or request.config(opened.default.config, service.rerankers)
    try:
        recommender = opened.recommender(config)
    except ModelError as error:  # the default ones are open
        raise ConfigError("the options name a model that this index does not have") from error
    cited, queries, notices = _listed(request.cited, "cited"), None, ()
    if request.query is not None or request.text is not None:
        drafts = parse_queries(_content(request), title=request.title, abstract=request.abstract)
        queries, notices = drafts.queries, drafts.notices
        if len(queries) > (most := service.settings.max_queries):
            raise ConfigError(f"there are {len(queries):,} queries; send at most {most} at once")
        if drafts.cited and request.cited != NO_CITED:
            cited = drafts.cited if cited is None else _joined(drafts.cited, cited)
    lists: dict[str, Any] = {
        "k": request.k,
        "year_max": request.year_max,
        "excluded": _listed(request.exclude, "exclude"),
        "cited": cited,
        "explain": request.explain,
    }
    if queries is None:
        named = request.model_dump(
            include={"title", "abstract", "year", "context"}, exclude_none=True
        )
        found = [recommender.recommend(**named, **lists)]
    elif len(queries) == 1:
        found = [recommender.recommend(queries[0], context=request.context, **lists)]
    elif request.context is None:
        found = recommender.recommend(queries, **lists)
    else:
        raise ConfigError(
            f"context is a sentence of one draft, but there are {len(queries):,}; give one draft, or the key "
            '"context" in each record of query'
        )
    return Answered(
        opened, tuple(found), tuple(notices), tuple(field.value for field in request.fields)
    )


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request."""

    opened: OpenIndex
    lists: tuple[Recommendations, ...]  # one per query, in the order of the request
    notices: tuple[str, ...]  # about the draft as it was read
    fields: tuple[str, ...]

    @property
    def not_found(self) -> list[str]:
        """The entries of `cited` and `exclude` that are not in the corpus."""
        return [*dict.fromkeys(self.lists[0].not_found)][:MAX_NOT_FOUND]

    def as_json(self) -> dict[str, Any]:
        """Return what `RecommendAnswer` describes."""
        return {
            "index": self.opened.name,
            "version": self.opened.version,
            "answers": [
                {
                    "query": one.query.id,
                    "results": one.to_dicts(self.fields),
                    "why_nothing": one.empty_reason,
                    "notices": list(one.notices),
                }
                for one in self.lists
            ],
            "notices": list(self.notices),
            "not_found": self.not_found,
        }


def _content(request: RecommendRequest) -> bytes:
    """Return the draft as the content of a query file."""
    if request.query is not None and request.text is not None:
        raise ConfigError("query and text are both given; give one of them")
    if request.year is not None:
        raise ConfigError("year goes with title; a record of query, or text, has its own")
    if request.text is not None:
        return request.text.encode(errors="replace")
    try:
        return orjson.dumps(request.query)
    except TypeError as error:  # what JSON of a client may hold and that of a file may not
        raise ConfigError(f"query cannot be read: {error}") from error


def _listed(given: list[str] | str | None, name: str) -> PaperList | None:
    """Return a list of papers; a text of a client is never the path of a file."""
    if given is None or (given == NO_CITED and name == "cited"):
        return None
    if isinstance(given, list):
        return paper_list_of(given)
    listed = parse_paper_list(given.replace("\r\n", "\n"), name)
    if (entries := len(listed.entries)) > MAX_LISTED:
        raise ConfigError(f"{name} has {entries:,} entries; expected at most {MAX_LISTED:,}")
    return listed


def _joined(first: PaperList, second: PaperList) -> PaperList:
    return PaperList(first.entries + second.entries, first.unread + second.unread)


class StageHit(BaseModel):
    """Rank and score that one stage gave a paper."""

    rank: int
    score: float


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


class Answer(BaseModel):
    """The recommendations for one query."""

    query: str
    results: list[RecommendedPaper]
    why_nothing: str
    notices: list[str]


class RecommendAnswer(BaseModel):
    """One answer per query, in the order of the queries."""

    index: str
    version: str  # of the index that was searched
    answers: list[Answer]
    notices: list[str]  # what was recognised in the draft, and what is missing
    not_found: list[str]  # entries of `cited` and `exclude` that are not in the corpus
