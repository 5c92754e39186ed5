"""Requests and answers of the API as JSON; the names of options are those of `citerec recommend`."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class RecommendRequest(BaseModel):
    """A draft, a sentence or a list of references, or several drafts, and options of `citerec recommend`."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = Field(None, description="The name of an index; the first one by default.")
    query: dict[str, Any] | list[dict[str, Any]] | None = Field(
        None, description="A draft as a record (title, abstract, year, ...), or several."
    )
    text: str | None = Field(
        None, description="The content of a query file: plain text, LaTeX, Markdown, BibTeX, ..."
    )
    title: str | None = None
    abstract: str | None = None
    context: str | None = Field(None, description="The sentence that needs a reference.")
    cited: list[str] | str | None = Field(
        None,
        description="Papers that the draft cites: ids, DOIs or titles; or the content of a .bib.",
    )
    exclude: list[str] | str | None = Field(None, description="Papers to exclude, likewise.")
    k: int = Field(20, ge=1)
    year_max: int | None = Field(None, ge=1)
    explain: bool = False
    fields: list[str] = Field([], description="Additional fields of each paper, such as venue.")


class Answer(BaseModel):
    """The recommendations for one query; `results` as in `citerec recommend --format json`."""

    query: str
    results: list[dict[str, Any]]
    why_nothing: str = ""
    notices: list[str] = []


class RecommendAnswer(BaseModel):
    """One answer per query, in the order of the queries."""

    index: str
    answers: list[Answer]
    notices: list[str] = []
    not_found: list[str] = []  # entries of `cited` and `exclude` that are not in the corpus
