"""Splits personal names of a corpus into parts, for reference managers."""

import re
from dataclasses import dataclass

from citerec.export.clean import one_line

_PARTICLES = frozenset(
    {"al", "bin", "da", "dal", "de", "del", "della", "den", "der", "di", "do", "dos", "du", "el"}
    | {"ibn", "la", "le", "ten", "ter", "van", "von", "zu", "zum", "zur"}
)
_SUFFIX = re.compile(r"(?:jr|sr)\.?|i{2,3}|iv", re.IGNORECASE)
_INITIALS = re.compile(r"[A-Z]{1,3}")  # after the family name, as in PubMed: Ribler RL
_GROUP = re.compile(
    r"\b(?:consortium|collaboration|group|team|committee|network|project|initiative|society"
    r"|association|foundation|institute|university|organi[sz]ation|inc|llc|and)\b|&",
    re.IGNORECASE,
)
_NUMBER = re.compile(r" [0-9]{4}$")  # DBLP numbers people of the same name


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of a personal name; `given` and `suffix` may be empty."""

    family: str
    given: str = ""
    suffix: str = ""
    group: bool = False  # an organisation, whose full name is in `family`


def split_name(name: str) -> Name:
    """Split `R. L. Ribler`, `Ribler, R. L.`, `Ribler RL` or `Ribler` into its parts.

    A name of one word is a family name; particles (`van der`) belong to the family.
    """
    name = _NUMBER.sub("", one_line(name))
    if _GROUP.search(name) and len(name.split()) > 1:
        return Name(name, group=True)
    if "," in name:
        return _from_commas([part.strip() for part in name.split(",")])
    words = name.split()
    suffix = words.pop() if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) else ""
    if len(words) > 1 and _INITIALS.fullmatch(words[-1]) and not _abbreviated(words[:-1]):
        return Name(" ".join(words[:-1]), words[-1], suffix)
    start = max(len(words) - 1, 0)
    while start > 0 and words[start - 1] in _PARTICLES:
        start -= 1
    return Name(" ".join(words[start:]), " ".join(words[:start]), suffix)


def _from_commas(parts: list[str]) -> Name:
    """Split `Last, First`, `Last, First, Jr.` or `Last, Jr., First`, given as the parts between commas."""
    family, *rest = [part for part in parts if part] or [""]
    suffixes = [part for part in rest if _SUFFIX.fullmatch(part)]
    given = [part for part in rest if part not in suffixes]
    return Name(family, " ".join(given), " ".join(suffixes))


def _abbreviated(words: list[str]) -> bool:
    """Whether one of `words` is an initial; then the last word is a family name, not initials."""
    return any(word.endswith(".") or len(word) == 1 or word.isupper() for word in words)
