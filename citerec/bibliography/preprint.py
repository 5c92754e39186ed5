"""Recognises preprints: by the name of a server, by a DOI or link of one, by the type of an entry."""

import re
from collections.abc import Iterable

SERVER = re.compile(
    r"(?<!\w)(?:ar[xχ]iv|(?:bio|med|chem|psya|eng|soca)r?xiv|CoRR|SSRN|Research Square|preprints?)(?!\w)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"10\.48550/|10\.1101/[0-9]{6}|10\.2139/ssrn|10\.21203/rs\.|10\.26434/chemrxiv|10\.31234/osf|10\.31235/osf"
    r"|(?:arxiv|biorxiv|medrxiv|chemrxiv)\.org/",
    re.IGNORECASE,
)
# of BibTeX, RIS and CSL; an entry of such a type without a venue is taken for a preprint
_TYPES = frozenset({"misc", "unpublished", "online", "unpb", "preprint", "article", "manuscript"})


def is_preprint_doi(doi: str) -> bool:
    """Whether a DOI is one of a preprint server."""
    return bool(_ADDRESS.match(doi))


def is_preprint(type: str, venue: str, remarks: Iterable[str], addresses: Iterable[str]) -> bool:
    """Whether an entry of a bibliography is a preprint; the name of a venue decides if there is one.

    Args:
        type: Its type, in lower case.
        venue: The journal or the proceedings.
        remarks: Other fields that may name a server: publisher, note, archive.
        addresses: DOIs and links.
    """
    if venue.strip():
        return bool(SERVER.search(venue))
    return (
        type in _TYPES
        or any(SERVER.search(text) for text in remarks)
        or any(_ADDRESS.search(text) for text in addresses)
    )
