"""Recognises DOIs, bare or as a link, for reading and for writing."""

import re

from citerec.types import Paper

_DOI = re.compile(
    r"(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*)?(10\.[0-9]{4,9}/\S+)", re.IGNORECASE
)


def doi_of(text: str) -> str:
    """Return `text` as a bare DOI, without resolver or `doi:`; empty if it is not a DOI."""
    match = _DOI.fullmatch(text.strip())
    return match[1] if match else ""


def paper_doi(paper: Paper) -> str:
    """Return the DOI of a paper: the one that its corpus states, else its id or URL if that is a DOI; else empty."""
    return doi_of(paper.doi) or doi_of(paper.id) or doi_of(paper.url)
