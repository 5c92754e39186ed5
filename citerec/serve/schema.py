"""Requests and answers of the API as JSON; the names of options are those of `citerec recommend`."""

from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from citerec.config import StopWords
from citerec.export.jsonl import FIELDS
from citerec.serve.settings import MAX_RESULTS
from citerec.text import QueryForm
from citerec.valid import MAX_ABSTRACT, MAX_TITLE

MAX_LISTED = 10_000  # entries of a list of papers
Text = Annotated[StrictStr, Field(max_length=16_000_000)]
Title = Annotated[StrictStr, Field(max_length=MAX_TITLE)]
Abstract = Annotated[StrictStr, Field(max_length=MAX_ABSTRACT)]
Papers = Annotated[
    list[Annotated[StrictStr, Field(max_length=10_000)]], Field(max_length=MAX_LISTED)
]
Number = StrictInt | StrictFloat
PaperField = Enum("PaperField", {name: name for name in FIELDS}, type=str)  # of `--fields`
Year = Annotated[StrictInt, Field(ge=1, le=9999)]
DRAFT: dict[str, Any] = {
    "title": "Brushing in parallel coordinates",
    "abstract": "We select polylines by the angle between axes.",
    "year": 2021,
}


class Strict(BaseModel):
    """A request: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class Options(Strict):
    """How papers are found and ordered; what is left out is as the server was started."""

    encoder: Literal["auto", "none"] = Field(default="auto", description="none for BM25 alone.")
    fusion: Literal["auto", "rrf", "weighted"] = "auto"
    retriever: list[StrictStr] = Field(
        default=[], max_length=4, description="Registered retrievers."
    )
    reranker: StrictStr | Annotated[list[StrictStr], Field(max_length=4)] | None = Field(
        default=None, description="none, auto, or a model that the server was started with."
    )
    rerank_depth: list[Annotated[StrictInt, Field(ge=1, le=1000)]] = Field(default=[], max_length=4)
    query_tokens: list[Annotated[StrictInt, Field(ge=64, le=448)]] = Field(default=[], max_length=4)
    candidate_tokens: list[Annotated[StrictInt, Field(ge=64, le=448)]] = Field(
        default=[], max_length=4
    )
    rerank_weight: Number | None = Field(default=None, ge=0, le=1)
    early_stop: StrictBool = False
    ranker: Literal["auto", "none"] = "auto"
    no_popularity: StrictBool = False
    no_authors: StrictBool = False
    diversity: Number = Field(default=0.0, ge=0, le=1)
    query_form: QueryForm = QueryForm.TITLE_ABSTRACT
    k1: Number = Field(default=1.2, ge=0, le=1000)
    b: Number = Field(default=0.75, ge=0, le=1)
    stop_words: StopWords = StopWords.AUTO


class RecommendRequest(Options):
    """A draft, a sentence or a list of references, or several drafts, and options of `citerec recommend`.

    The draft is given by `title` (and `abstract`), by `query` as a record, or by `text` as the content of a file.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                DRAFT | {"k": 10, "explain": True},
                {"query": [{"id": "a", **DRAFT}, {"id": "b", "title": "Treemaps"}], "k": 5},
                {"context": "Treemaps show hierarchies in little space [CITE]."},
                {"cited": ["10.1109/tvcg.2009.179"], "fields": ["doi", "venue"]},
            ]
        }
    )

    index: StrictStr | None = Field(
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
    k: StrictInt = Field(default=20, ge=1, le=MAX_RESULTS)
    explain: StrictBool = Field(
        default=False, description="Whether to add the reasons for each paper."
    )
    fields: list[PaperField] = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=[], max_length=len(FIELDS), description="More of each paper."
    )


class StageHit(BaseModel):
    """Rank and score that one stage gave a paper."""

    rank: int
    score: float


class RecommendedPaper(BaseModel):
    """One element of the list of `citerec recommend --format json`."""

    model_config = ConfigDict(extra="allow")

    rank: int
    id: str
    title: str
    year: int | None
    score: float
    stages: dict[str, StageHit]
    probability: float | None
    reasons: list[str]


class Answer(BaseModel):
    """The recommendations for one query."""

    query: str
    results: list[RecommendedPaper]
    why_nothing: str = ""
    notices: list[str] = []


class RecommendAnswer(BaseModel):
    """One answer per query, in the order of the queries."""

    index: str
    version: str  # of the index that was searched
    answers: list[Answer]
    notices: list[str] = []  # what was recognised in the draft, and what is missing
    not_found: list[str] = []  # entries of `cited` and `exclude` that are not in the corpus


class BriefPaper(BaseModel):
    """What a list shows of a paper."""

    id: str
    title: str
    year: int | None
    authors: list[str]
    venue: str


class FoundPaper(BriefPaper):
    """A hit of a search."""

    score: float  # of BM25


class SearchAnswer(BaseModel):
    """One page of a search, best first."""

    index: str
    version: str
    offset: int
    results: list[FoundPaper]
    more: bool  # whether there are more, after these


class FullPaper(BriefPaper):
    """All that the corpus states of a paper."""

    abstract: str
    doi: str
    url: str
    type: str
    volume: str
    issue: str
    pages: str
    publisher: str


class PaperPage(BaseModel):
    """A page of a list of papers."""

    total: int
    offset: int
    results: list[BriefPaper]


class PaperAnswer(BaseModel):
    """A paper, its references and the papers that cite it, inside the corpus."""

    index: str
    version: str
    paper: FullPaper
    references: PaperPage
    cited_by: PaperPage


class IndexAnswer(BaseModel):
    """What an index holds, and the models that are used on it."""

    name: str
    version: str
    papers: int
    citations: int
    years: tuple[int, int] | None
    retrievers: list[str]
    encoder: str
    reranker: str
    ranker: str


class IndexList(BaseModel):
    """All indexes, the default first."""

    indexes: list[IndexAnswer]
