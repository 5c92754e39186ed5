"""What the tools return; an assistant reads these descriptions in the schemas of the tools."""

from typing import Annotated

from pydantic import BaseModel, Field

NextOffset = Annotated[
    int | None, Field(description="The offset of the next page; null on the last page.")
]


class PaperLine(BaseModel):
    """A paper of the corpus, briefly."""

    id: str = Field(description="Its id in the corpus, which the other tools take.")
    title: str
    authors: list[str] = Field(description="At most 5 names.")
    author_count: int
    year: int | None
    venue: str
    doi: str = Field(description="Without https://doi.org/; empty if unknown.")
    cited_by_count: int = Field(description="How many papers of this corpus cite it.")


class RecommendedPaper(PaperLine):
    """A recommended paper."""

    rank: int
    score: float = Field(description="Comparable only within this list.")
    probability: float | None = Field(
        description="The calibrated probability that the draft cites it; null if unknown."
    )
    reasons: list[str]
    abstract: str = Field(description="Its beginning, at most abstract_chars characters.")


class Recommended(BaseModel):
    """Papers that a draft should cite."""

    results: list[RecommendedPaper] = Field(description="Best first.")
    why_nothing: str = Field(description="Why there are no results; empty if there are some.")
    not_found: list[str] = Field(
        description="Entries of cited and exclude that are not in this corpus; at most 50."
    )
    not_found_count: int
    notices: list[str]


class FoundPaper(PaperLine):
    """A hit of a search."""

    rank: int
    score: float = Field(description="BM25; comparable only within this list.")
    abstract: str = Field(description="Its beginning, at most abstract_chars characters.")


class Found(BaseModel):
    """A page of the hits of a search."""

    results: list[FoundPaper] = Field(description="Best first.")
    why_nothing: str
    next_offset: NextOffset


class PaperCard(PaperLine):
    """A paper with its details."""

    abstract: str
    type: str
    url: str
    volume: str
    issue: str
    pages: str
    publisher: str
    reference_count: int = Field(description="How many papers of this corpus it cites.")
    bibtex: str = Field(description="An entry for a .bib file; its key may be changed.")


class LinkPage(BaseModel):
    """A page of linked papers."""

    papers: list[PaperLine] = Field(description="Most cited within this corpus first.")
    total: int = Field(description="On all pages.")
    next_offset: NextOffset


class Links(BaseModel):
    """What a paper cites, and what cites it, within this corpus."""

    id: str
    title: str
    references: LinkPage | None = Field(description="Papers that it cites; null if not requested.")
    cited_by: LinkPage | None = Field(description="Papers that cite it; null if not requested.")


class BibliographyProblem(BaseModel):
    """A problem of one entry of a bibliography."""

    problem: str = Field(
        description="year, doi, title: the corpus has another one; preprint: the corpus has the published version; "
        "no-doi: the corpus has one; duplicate: of an earlier entry; unreadable."
    )
    place: str = Field(description="The line and the entry.")
    key: str = Field(description="The citation key.")
    title: str
    stated: str = Field(description="What the bibliography states.")
    corpus: str = Field(description="What the corpus states; of a duplicate, the earlier entry.")
    id: str = Field(description="The id of the paper in the corpus.")


class BibliographyCheck(BaseModel):
    """The comparison of a bibliography with the corpus."""

    entries: int
    found: int = Field(description="Entries that the corpus has.")
    with_problem: int = Field(description="Entries with a problem.")
    problems: list[BibliographyProblem] = Field(description="A page of them, in file order.")
    problem_count: int = Field(description="On all pages.")
    next_offset: NextOffset


class CorpusInfo(BaseModel):
    """What a corpus holds, and how papers are recommended from it."""

    name: str
    papers: int
    with_abstract: int
    citations: int = Field(description="Among the papers of the corpus.")
    year_min: int | None
    year_max: int | None
    built: str = Field(description="When the index was built, as an ISO 8601 time.")
    format: str = Field(description="The format of the files that the corpus was read from.")
    retrievers: list[str] = Field(description="What finds candidates.")
    encoder: str = Field(description="The model of the vectors; empty without vectors.")
    reranker: str = Field(description="The cross-encoder; empty without one.")
    citerec: str = Field(description="The version of citerec that serves it.")
