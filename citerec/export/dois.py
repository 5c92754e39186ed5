"""Writes the DOIs of recommendations, one a line, for the fields of programs that add papers by their identifiers."""

from collections.abc import Iterable

from citerec.bibliography.keys import paper_doi
from citerec.export.result import Result, papers
from citerec.text import one_line


def dump(results: Iterable[Result]) -> str:
    """Write the bare DOI of each recommended paper once, best first; papers without one are left out."""
    dois = (one_line(paper_doi(paper)) for paper in papers(results))
    return "".join(f"{doi}\n" for doi in dict.fromkeys(dois) if doi)
