"""Citation keys such as `ribler2020visual`, unique in a file."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from citerec.bibliography.keys import split_name
from citerec.text import normalized
from citerec.types import Paper

_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    {"a", "an", "and", "are", "as", "at", "by", "can", "do", "does", "for", "from", "how", "in"}
    | {"is", "it", "of", "on", "or", "the", "to", "toward", "towards", "via", "what", "with"}
)


def unique_keys(papers: Sequence[Paper], taken: Iterable[str] = ()) -> Iterator[str]:
    """Yield a key for each paper: last name of the first author, year, first word of the title that is no stop word.

    It is ASCII in lower case; a key that is in use gets a letter.

    Args:
        papers: The papers.
        taken: Keys that are in use, in any case: BibTeX does not distinguish capitals in keys.
    """
    used = {key.lower() for key in taken}
    for paper in papers:
        family = _ascii(split_name(paper.authors[0]).family) if paper.authors else ""
        words = (_ascii(word) for word in _WORD.findall(paper.title))
        word = next((w for w in words if w and w not in _STOP), "")
        base = f"{family or 'anon'}{paper.year or ''}{word}"
        endings = ("" if number == 0 else _letters(number) for number in count())
        key = next(base + ending for ending in endings if base + ending not in used)
        used.add(key)
        yield key


def _letters(number: int) -> str:
    """Return a, b, ..., z, aa, ab, ... for 1, 2, ..."""
    head, last = divmod(number - 1, 26)
    return (_letters(head) if head else "") + chr(ord("a") + last)


def _ascii(text: str) -> str:
    """Return the letters and digits of `text` in ASCII and lower case, without accents."""
    plain = normalized("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "".join(_WORD.findall(plain))
