"""The forms in which ids, DOIs and titles are compared."""

import re
import unicodedata
from collections.abc import Iterable
from string import whitespace
from typing import Any

from citerec.corpus.papers import compute, strings
from citerec.query.doi import doi_of
from citerec.query.latex import to_text
from citerec.text import normalized

_SEPARATORS = re.compile(r"[\W_]+")
_LATEX = re.compile(r"[\\${}]")
_SPACES = f"{whitespace}\x1c\x1d\x1e\x1f"  # all of ASCII that Python's strip removes
_ASCII = "".join(chr(c).lower() if chr(c).isalnum() else " " for c in range(128))


def id_key(paper_id: str) -> str:
    """Return the form in which ids are compared: a DOI bare and in lower case, other ids unchanged."""
    return doi_of(paper_id).lower() or paper_id


def doi_rows(ids: Iterable[str], corpus_ids: Any) -> frozenset[int]:
    """Return the rows of a corpus whose id equals one of `ids` as a DOI, by `id_key`.

    The corpus may write a DOI as a link, or in capitals. Arrow selects candidates; ids that are not ASCII are always
    candidates, because Arrow's lower case differs from Python's for them.

    Args:
        ids: The ids to find, in the form of `id_key`.
        corpus_ids: The ids of the corpus, an Arrow column.
    """
    dois = sorted(filter(doi_of, ids))
    if not dois:
        return frozenset()
    candidate_rows = compute.indices_nonzero(compute.match_substring(corpus_ids, "10."))
    candidates = corpus_ids.take(candidate_rows)
    # the prefix of a DOI link has no 1
    bare = compute.replace_substring_regex(candidates, "^[^1]+", "")
    lowered = compute.ascii_lower(compute.ascii_rtrim(bare, characters=_SPACES))
    listed = compute.is_in(lowered, value_set=strings(dois))
    maybe = compute.or_(listed, compute.invert(compute.string_is_ascii(candidates)))
    rows = candidate_rows.filter(maybe).to_pylist()
    requested = frozenset(dois)
    pairs = zip(rows, candidates.filter(maybe).to_pylist(), strict=True)
    return frozenset(row for row, docid in pairs if id_key(docid) in requested)


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
