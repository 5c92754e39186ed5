"""The forms in which ids, DOIs and titles are compared."""

import re
import unicodedata

from citerec.bibliography.doi import doi_of
from citerec.bibliography.latex import to_text
from citerec.text import normalized

_SEPARATORS = re.compile(r"[\W_]+")
_LATEX = re.compile(r"[\\${}]")
_ASCII = "".join(chr(c).lower() if chr(c).isalnum() else " " for c in range(128))


def id_key(paper_id: str) -> str:
    """Return the form in which ids are compared: a DOI bare and in lower case, other ids unchanged."""
    return doi_of(paper_id).lower() or paper_id


def title_key(title: str) -> str:
    r"""Return the form in which titles are compared: letters and digits in lower case.

    LaTeX, accents and punctuation are removed, letters of every script stay: `{\"U}ber {BERT}` and `Uber BERT!` both
    become `uber bert`. A title without letters and digits has an empty key.
    """
    if _LATEX.search(title):
        title = to_text(title)
    if title.isascii():
        return " ".join(title.translate(_ASCII).split())
    folded = normalized("NFKD", normalized("NFKD", title).casefold())
    without_accents = "".join(c for c in folded if not unicodedata.combining(c))
    return " ".join(_SEPARATORS.sub(" ", without_accents).split())
