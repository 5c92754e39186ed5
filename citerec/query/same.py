"""Whether two titles are one paper's, and which papers of a corpus a draft or a reference is.

Titles that differ in case, accents, punctuation and LaTeX are equal (`title_key`). Beyond that, `same_title` lets
words change their order, be misspelt a little or be joined, and a subtitle be left out; numbers ("Part II", "2019")
must be the same. Years and authors, where both sides state them, contradict a match or confirm one that the titles
leave open. A draft is recognised by its DOI or its equal title, the latter where nothing contradicts it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rapidfuzz.distance import Levenshtein

from citerec.query.exclude import title_key
from citerec.query.names import name_key
from citerec.types import Paper, Query

LEAST_WORDS = 4  # of a title that says which paper it is; shorter ones ("Introduction") need more
YEARS_APART = 3  # at most, between a preprint and what became of it
_EMPTY = frozenset("a an the and of in on for to at by".split())
_NUMBERS = frozenset(
    "one two three four five six seven eight nine ten first second third fourth fifth part parts volume"
    " ii iii iv v vi vii viii ix x".split()
)
_SUBTITLE = re.compile(r"\s*(?::\s|\s[-–—]+\s|[—?!]\s|\.\s)")
_NAME = re.compile(r"[^\W\d_]{2,}")


def same_title(one: str, other: str) -> bool:
    """Whether two titles, as their files have them, differ no more than two ways of citing one paper do."""
    first, second = title_key(one).split(), title_key(other).split()
    if first == second:
        return bool(first)
    if _numbers(first) != _numbers(second):
        return False
    if "".join(first) == "".join(second):  # multi-task, multitask
        return len("".join(first)) >= 12
    if _without_subtitle(one) == second or _without_subtitle(other) == first:
        return min(len(first), len(second)) >= LEAST_WORDS
    return _same_words(first, second)


def _numbers(words: Sequence[str]) -> Counter[str]:
    return Counter(
        w for w in words if len(w) == 1 or w in _NUMBERS or any(map(str.isdigit, w))
    ) - Counter("a")


def _without_subtitle(title: str) -> list[str]:
    parts = _SUBTITLE.split(title, maxsplit=1)
    return title_key(parts[0]).split() if len(parts) > 1 else []


def _same_words(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the words are the same in any order, but for empty words and one slip of the pen for every five."""
    one, other = Counter(first), Counter(second)
    mine = sorted(w for w in (one - other).elements() if w not in _EMPTY)
    theirs = sorted(w for w in (other - one).elements() if w not in _EMPTY)
    content = sum(w not in _EMPTY for w in first)
    return (
        content > LEAST_WORDS
        and len(mine) == len(theirs) <= max(1, content // 5)
        and all(_misspelt(a, b) for a, b in zip(mine, theirs, strict=True))
    )


def _misspelt(one: str, other: str) -> bool:
    """Whether a long word was misspelt; a prefix makes another word ("supervised", "unsupervised")."""
    shortest = min(len(one), len(other))
    most = 2 if shortest >= 10 else 1
    return shortest >= 5 and one[:3] == other[:3] and Levenshtein.distance(one, other) <= most


@dataclass(frozen=True, slots=True)
class SimilarTitles:
    """Rows of a corpus whose titles may be that of one reference, each rising."""

    equal: list[int]  # equal, see `title_key`
    near: list[int]  # the `same_title`, but not equal
    longer: list[int]  # those that the title is a main title of, too short to be the `same_title`

    @property
    def rows(self) -> list[int]:
        """All of them."""
        return [*self.equal, *self.near, *self.longer]


def similar_titles(titles: Iterable[str], corpus_titles: Iterable[str]) -> dict[str, SimilarTitles]:
    """Find the titles of a corpus that are equal or similar to some titles. The corpus is read once.

    Args:
        titles: Titles of references.
        corpus_titles: Those of the corpus, by row number.

    Returns:
        What was found for each of `titles`.
    """
    keys = {title: title_key(title) for title in titles}
    found = {title: SimilarTitles([], [], []) for title in keys}
    holders: defaultdict[Hashable, list[str]] = defaultdict(list)
    for title, key in keys.items():
        for code in _codes(title, key):
            holders[code].append(title)
    for row, theirs in enumerate(corpus_titles if holders else ()):
        key = title_key(theirs)
        maybe = {title for code in _codes(theirs, key) for title in holders.get(code, ())}
        for title in maybe:
            if keys[title] == key:
                found[title].equal.append(row)
            elif same_title(title, theirs):
                found[title].near.append(row)
            elif _is_main_title(keys[title], theirs):
                found[title].longer.append(row)
    return found


def _codes(title: str, key: str) -> list[Hashable]:
    """Return codes of a title; titles that are equal or similar have at least one in common.

    They are its letters, those of its main title, and how its words begin: a misspelt word begins as the right one.
    """
    words = key.split()
    codes: list[Hashable] = ["".join(words)] if words else []
    if main := _without_subtitle(title):
        codes.append("".join(main))
    if len(words) > LEAST_WORDS:
        codes.append(tuple(sorted([word[:3] for word in words if word not in _EMPTY])))
    return codes


def _is_main_title(key: str, title: str) -> bool:
    """Whether a title is another one, as its file has it, without its subtitle; a number in the latter counts."""
    words = key.split()
    return _without_subtitle(title) == words and _numbers(words) == _numbers(
        title_key(title).split()
    )


class Described(Protocol):
    """A query, a reference or a paper of a corpus, as far as it says what it is."""

    @property
    def title(self) -> str: ...
    @property
    def year(self) -> int | None: ...
    @property
    def authors(self) -> tuple[str, ...]: ...


def rows_of_entry(
    entry: Described, similar: SimilarTitles, papers: Mapping[int, Paper]
) -> list[int]:
    """Choose the rows that a reference is from those with similar titles.

    Papers of an equal title come first, unless they are contradicted; a title of `LEAST_WORDS` outweighs one of year
    and authors. Else it is the one title whose year and authors agree; else the one near title, unless contradicted.

    Args:
        entry: The reference.
        similar: What `similar_titles` found for its title.
        papers: The papers of these rows.

    Returns:
        Rows of papers that have one title; none if it is not clear which.
    """
    if equal := [row for row in similar.equal if _has_equal_title(entry, papers[row])]:
        return equal
    agreeing = [row for row in (*similar.near, *similar.longer) if _agrees(entry, papers[row])]
    rows = agreeing or similar.near
    if len({title_key(papers[row].title) for row in rows}) > 1:
        return []
    return [row for row in rows if not _contradicts(entry, papers[row])]


def is_draft_of(query: Query, paper: Paper) -> bool:
    """Whether a draft with the title of `paper` is that paper.

    Neither the year nor the authors may contradict it. With a title of fewer than `LEAST_WORDS` words they must have
    an author in common, too.
    """
    return not _contradicts(query, paper) and (
        not _is_short(query) or bool(_shares_author(query, paper))
    )


def _contradicts(one: Described, paper: Paper) -> bool:
    """Whether the years, or the authors, say that two similar titles are of two papers; unknown ones say nothing."""
    most = 1 if _is_short(one) else YEARS_APART
    return (_years_apart(one, paper) or 0) > most or _shares_author(one, paper) is False


def _has_equal_title(one: Described, paper: Paper) -> bool:
    if not _contradicts(one, paper):
        return True
    same_year = _years_apart(one, paper) == 0
    return not _is_short(one) and (same_year or bool(_shares_author(one, paper)))


def _agrees(one: Described, paper: Paper) -> bool:
    """Whether both have a year, at most one apart, and an author's last name in common."""
    apart = _years_apart(one, paper)
    return apart is not None and apart <= 1 and not _last_names(one).isdisjoint(_last_names(paper))


def _is_short(one: Described) -> bool:
    return len(title_key(one.title).split()) < LEAST_WORDS


def _years_apart(one: Described, paper: Paper) -> int | None:
    return None if one.year is None or paper.year is None else abs(one.year - paper.year)


def _shares_author(one: Described, paper: Paper) -> bool | None:
    """Whether both have an author in common; None if the authors of one are unknown.

    With a short title last names must be equal, with a longer one any parts of names, in case they are split wrongly.
    """
    names = _last_names if _is_short(one) else _names
    ours, theirs = names(one), names(paper)
    return not ours.isdisjoint(theirs) if ours and theirs else None


def _names(one: Described) -> frozenset[str]:
    return frozenset(name for author in one.authors for name in _NAME.findall(title_key(author)))


def _last_names(one: Described) -> frozenset[str]:
    keys = (name_key(author).split() for author in one.authors)
    return frozenset(key[-1] for key in keys if key and len(key[-1]) > 1)
