"""What a DOI looks like, bare or as a link; decided here for reading and for writing."""

import re

_DOI = re.compile(
    r"(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*)?(10\.[0-9]{4,9}/\S+)", re.IGNORECASE
)


def doi_of(text: str) -> str:
    """Return the DOI that `text` is, without resolver or `doi:`; empty if it is none."""
    found = _DOI.fullmatch(text.strip())
    return found[1] if found else ""
