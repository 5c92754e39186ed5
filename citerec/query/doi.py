"""What a DOI looks like, bare or as a link; decided here for reading and for writing."""

import re

from citerec.types import Paper

_DOI = re.compile(
    r"(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*)?(10\.[0-9]{4,9}/\S+)", re.IGNORECASE
)


def doi_of(text: str) -> str:
    """Return the DOI that `text` is, without resolver or `doi:`; empty if it is none."""
    found = _DOI.fullmatch(text.strip())
    return found[1] if found else ""


def paper_doi(paper: Paper) -> str:
    """Return the DOI of a paper: the one that its corpus states, or its id or URL if that is one; else empty."""
    return doi_of(paper.doi) or doi_of(paper.id) or doi_of(paper.url)
