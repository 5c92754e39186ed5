"""Citation keys such as `ribler2020visual`: made by an author's pattern, and unique in a file."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from citerec.errors import ConfigError
from citerec.export.names import split_name
from citerec.text import normalized
from citerec.types import Paper

DEFAULT = "{lastname}{year}{word}"
MAX_PATTERN = 100  # characters
FIELDS = ("lastname", "Lastname", "LASTNAME", "year", "yy", "word", "Word", "WORD")
_FIELD = re.compile(r"\{([A-Za-z]+)\}")
_LITERAL = re.compile(r"[A-Za-z0-9:_./+-]*")  # characters that BibTeX, biber and pandoc all accept
_SEPARATORS = ":_./+-"
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    {"a", "an", "and", "are", "as", "at", "by", "can", "do", "does", "for", "from", "how", "in"}
    | {"is", "it", "of", "on", "or", "the", "to", "toward", "towards", "via", "what", "with"}
)


@dataclass(frozen=True, slots=True)
class KeyPattern:
    """How a citation key is made from a paper: literal characters and the fields of `FIELDS` in braces.

    `lastname` is that of the first author, `yy` the last two digits of the year, `word` the first word of the title
    that is not a stop word. Accents are dropped; the case of a field is that of its name.

    Raises:
        ConfigError: If there is no field, an unknown one, or a character that citation keys cannot contain.
    """

    text: str = DEFAULT

    def __post_init__(self) -> None:
        what = f"key pattern {self.text[:MAX_PATTERN]!r}"
        known = ", ".join(f"{{{name}}}" for name in FIELDS)
        names = _FIELD.findall(self.text)
        if unknown := [name for name in names if name not in FIELDS]:
            raise ConfigError(f"{what}: no field {{{unknown[0]}}}; choose from {known}")
        literal = _FIELD.sub("", self.text)
        if not _LITERAL.fullmatch(literal):
            raise ConfigError(
                f"{what}: expected ASCII letters, digits, {_SEPARATORS} and fields; choose from {known}"
            )
        if not names or len(self.text) > MAX_PATTERN:
            raise ConfigError(
                f"{what}: expected at most {MAX_PATTERN} characters with a field; such as {DEFAULT}"
            )

    def key(self, paper: Paper) -> str:
        """Return the key of a paper: ASCII, the same at every call; a last name that is missing becomes `anon`."""
        family = _ascii(split_name(paper.authors[0]).family) if paper.authors else ""
        words = (_ascii(word) for word in _WORD.findall(paper.title))
        word = next((w for w in words if w and w not in _STOP), "")
        year = str(paper.year or "")
        values = {"lastname": family or "anon", "year": year, "yy": year[-2:], "word": word}
        key = _FIELD.sub(lambda field: _cased(values[field[1].lower()], field[1]), self.text)
        return key.strip(_SEPARATORS) or "anon"


def unique_keys(
    papers: Sequence[Paper], pattern: KeyPattern | None = None, taken: Iterable[str] = ()
) -> Iterator[str]:
    """Yield a key for each paper; one that is taken gets a letter.

    Args:
        papers: The papers.
        pattern: How their keys are made.
        taken: Keys that are in use, in any case: BibTeX does not distinguish capitals in keys.
    """
    pattern = pattern or KeyPattern()
    used = {key.lower() for key in taken}
    for paper in papers:
        key = next(k for k in _candidates(pattern.key(paper)) if k.lower() not in used)
        used.add(key.lower())
        yield key


def _candidates(base: str) -> Iterator[str]:
    yield base
    number = 0
    while True:
        yield base + _letters(number)
        number += 1


def _letters(number: int) -> str:
    """Return a, b, ..., z, aa, ab, ... for 0, 1, 2, ..."""
    head, last = divmod(number, 26)
    return (_letters(head - 1) if head else "") + chr(ord("a") + last)


def _cased(value: str, name: str) -> str:
    """Return a value in the case of the name of its field."""
    if name.islower():
        return value
    return value.upper() if name.isupper() else value.capitalize()


def _ascii(text: str) -> str:
    """Return the letters and digits of `text` in ASCII and lower case, without accents."""
    plain = normalized("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "".join(_WORD.findall(plain))
