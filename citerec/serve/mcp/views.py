"""Papers, recommendations and checks as outputs of bounded length."""

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from citerec.api.corpus import LinkedPapers, PaperDetails
from citerec.api.recommender import Recommender
from citerec.api.results import Recommendations
from citerec.bibliography.doi import paper_doi
from citerec.export.bibtex import entry
from citerec.export.clean import one_line
from citerec.export.keys import unique_keys
from citerec.references.check import ReferenceCheck
from citerec.serve.mcp.outputs import (
    BibliographyCheck,
    BibliographyProblem,
    CorpusInfo,
    Found,
    FoundPaper,
    LinkPage,
    PaperCard,
    PaperLine,
    Recommended,
    RecommendedPaper,
)
from citerec.types import Paper

AUTHORS = 5  # names of a paper
NOT_FOUND = 50  # entries that are named
REASONS = 8  # of a paper
LINE, LONG_LINE = 300, 1_000  # characters of a name, of a title or a message
ABSTRACT = 4_000  # characters of the abstract of one paper


def short(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters; `…` stands for what was cut."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: max(most - 1, 0)].rstrip()}…"[:most]


def recommended(recommender: Recommender, result: Recommendations, abstract: int) -> Recommended:
    """Return recommendations; `abstract` is the number of characters of each abstract."""
    lines = _lines(recommender, result.papers)
    return Recommended(
        results=[
            RecommendedPaper(
                **line,
                rank=item.rank,
                score=item.score,
                probability=item.probability,
                reasons=_short_all(item.reasons[:REASONS]),
                abstract=short(item.paper.abstract, abstract),
            )
            for item, line in zip(result, lines, strict=True)
        ],
        why_nothing=short(result.why_nothing, LONG_LINE),
        not_found=_short_all(result.not_found[:NOT_FOUND]),
        not_found_count=len(result.not_found),
        notices=_short_all(result.notices),
    )


def found(recommender: Recommender, result: Recommendations, k: int, abstract: int) -> Found:
    """Return a page of `k` hits; a further hit in `result` shows that there is a next page."""
    items = result.items[:k]
    lines = _lines(recommender, [item.paper for item in items])
    return Found(
        results=[
            FoundPaper(
                **line,
                rank=item.rank,
                score=item.score,
                abstract=short(item.paper.abstract, abstract),
            )
            for item, line in zip(items, lines, strict=True)
        ],
        why_nothing=short(result.why_nothing, LONG_LINE),
        next_offset=items[-1].rank if len(result) > k else None,
    )


def card(recommender: Recommender, details: PaperDetails) -> PaperCard:
    """Return the details of a paper."""
    paper = details.paper
    [line] = _lines(recommender, [paper])
    [key] = unique_keys([paper], None)
    names = ("type", "url", "volume", "issue", "pages", "publisher")
    published: dict[str, Any] = {name: short(getattr(paper, name), LINE) for name in names}
    return PaperCard(
        **line,
        **published,
        abstract=short(paper.abstract, ABSTRACT),
        reference_count=details.references,
        bibtex=entry(key, paper),
    )


def link_page(recommender: Recommender, links: LinkedPapers) -> LinkPage:
    """Return a page of linked papers."""
    lines = _lines(recommender, links.papers)
    return LinkPage(
        papers=[PaperLine(**line) for line in lines],
        total=links.total,
        next_offset=next_offset(links.offset, len(lines), links.total),
    )


def checked(report: ReferenceCheck, offset: int, limit: int) -> BibliographyCheck:
    """Return the problems of a bibliography from `offset` on, at most `limit`."""
    page = report.findings[offset : offset + limit]
    return BibliographyCheck(
        entries=report.entries,
        found=report.found,
        with_problem=report.with_problem,
        problems=[
            BibliographyProblem(
                problem=one.problem,
                place=short(one.place, LINE),
                key=short(one.key, LINE),
                title=short(one.title, LONG_LINE),
                stated=short(one.stated, LONG_LINE),
                corpus=short(one.known, LONG_LINE),
                id=one.id,
            )
            for one in page
        ],
        problem_count=len(report.findings),
        next_offset=next_offset(offset, len(page), len(report.findings)),
    )


def corpus_info(recommender: Recommender) -> CorpusInfo:
    """Return what the corpus of a recommender holds, and what recommends from it."""
    manifest, papers = recommender.index.manifest, recommender.index.papers
    year_min, year_max = recommender.corpus.years or (None, None)
    return CorpusInfo(
        name=manifest.name,
        papers=len(papers),
        with_abstract=int(papers.has_abstract.sum()),
        citations=len(recommender.index.graph.indices),
        year_min=year_min,
        year_max=year_max,
        built=manifest.created,
        format=str(manifest.corpus.get("format", "")),
        retrievers=[*recommender.retriever_names],
        encoder=recommender.encoder,
        reranker=recommender.reranker,
        citerec=version("citerec"),
    )


def next_offset(offset: int, shown: int, total: int) -> int | None:
    """Return the offset of the next page; None on the last page."""
    return offset + shown if shown and offset + shown < total else None


def _lines(recommender: Recommender, papers: Sequence[Paper]) -> list[dict[str, Any]]:
    """Return the fields of `PaperLine` of some papers of the corpus."""
    counts = recommender.corpus.citation_counts([paper.id for paper in papers])
    return [
        {
            "id": paper.id,
            "title": short(paper.title, LONG_LINE),
            "authors": [short(name, LINE) for name in paper.authors[:AUTHORS]],
            "author_count": len(paper.authors),
            "year": paper.year,
            "venue": short(paper.venue, LINE),
            "doi": paper_doi(paper),
            "cited_by_count": count,
        }
        for paper, count in zip(papers, counts, strict=True)
    ]


def _short_all(texts: Iterable[str]) -> list[str]:
    return [short(text, LONG_LINE) for text in texts]
