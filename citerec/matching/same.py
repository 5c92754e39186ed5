"""Decides whether two titles are of one paper, and which papers of a corpus a draft or a reference is.

Titles that differ in case, accents, punctuation and LaTeX are equal (`title_key`). Beyond that, `same_title` accepts
another order of words, small spelling errors, joined words and a missing subtitle; numbers ("Part II", "2019") must be
the same. If both sides have years and authors, these contradict a match or confirm one that the titles leave open. A
draft is recognised by its DOI or an equal title, unless year or authors contradict the title.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rapidfuzz.distance import Levenshtein

from citerec.bibliography.keys import title_key
from citerec.bibliography.names import name_key
from citerec.types import Paper, Query

# of a title that identifies a paper; shorter ones ("Introduction") need more evidence
LEAST_WORDS = 4
YEARS_APART = 3  # the largest difference between a preprint and its published version
_EMPTY = frozenset("a an the and of in on for to at by".split())
_NUMBERS = frozenset(
    "one two three four five six seven eight nine ten first second third fourth fifth part parts volume"
    " ii iii iv v vi vii viii ix x".split()
)
_SUBTITLE = re.compile(r"\s*(?::\s|\s[-–—]+\s|[—?!]\s|\.\s)")
_NAME = re.compile(r"[^\W\d_]{2,}")


def same_title(title: str, other: str) -> bool:
    """Whether two titles, as their files have them, differ only as two citations of one paper may."""
    first, second = title_key(title).split(), title_key(other).split()
    if first == second:
        return bool(first)
    if _numbers(first) != _numbers(second):
        return False
    if "".join(first) == "".join(second):  # multi-task, multitask
        return len("".join(first)) >= 12
    if _without_subtitle(title) == second or _without_subtitle(other) == first:
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
    """Whether the words are the same in any order, except for empty words and one spelling error per five words."""
    first_counts, second_counts = Counter(first), Counter(second)
    only_first = sorted(w for w in (first_counts - second_counts).elements() if w not in _EMPTY)
    only_second = sorted(w for w in (second_counts - first_counts).elements() if w not in _EMPTY)
    content = sum(w not in _EMPTY for w in first)
    return (
        content > LEAST_WORDS
        and len(only_first) == len(only_second) <= max(1, content // 5)
        and all(_misspelt(a, b) for a, b in zip(only_first, only_second, strict=True))
    )


def _misspelt(word: str, other: str) -> bool:
    """Whether two long words differ by a spelling error; a prefix makes another word ("supervised", "unsupervised")."""
    shortest = min(len(word), len(other))
    most = 2 if shortest >= 10 else 1
    return shortest >= 5 and word[:3] == other[:3] and Levenshtein.distance(word, other) <= most


@dataclass(frozen=True, slots=True)
class SimilarTitles:
    """Rows of a corpus whose titles may be the title of one reference, each list rising."""

    equal: list[int]  # with an equal title, see `title_key`
    near: list[int]  # with the `same_title`, but not an equal one
    longer: list[int]  # with a title of which this is the main title, too short for `same_title`

    @property
    def rows(self) -> list[int]:
        """The rows of all three lists."""
        return [*self.equal, *self.near, *self.longer]

    def before(self, row: int) -> "SimilarTitles":
        """Return those before a row."""
        lists = (self.equal, self.near, self.longer)
        return SimilarTitles(*([one for one in rows if one < row] for rows in lists))


def similar_titles(titles: Iterable[str], corpus_titles: Iterable[str]) -> dict[str, SimilarTitles]:
    """Find the titles of a corpus that are equal or similar to some titles, in one pass over the corpus.

    Args:
        titles: Titles of references.
        corpus_titles: The titles of the corpus, by row number.

    Returns:
        The rows found for each of `titles`.
    """
    return similar_among(titles, enumerate(corpus_titles))


def similar_among(
    titles: Iterable[str], corpus_titles: Iterable[tuple[int, str]]
) -> dict[str, SimilarTitles]:
    """Find titles among rows of a corpus and their titles, as `similar_titles` does; rows rise."""
    keys = {title: title_key(title) for title in titles}
    similar = {title: SimilarTitles([], [], []) for title in keys}
    titles_by_code: defaultdict[str, list[str]] = defaultdict(list)
    for title, key in keys.items():
        for code in _codes(title, key):
            titles_by_code[code].append(title)
    for row, only_second in corpus_titles if titles_by_code else ():
        key = title_key(only_second)
        candidates = {
            title for code in _codes(only_second, key) for title in titles_by_code.get(code, ())
        }
        for title in candidates:
            if keys[title] == key:
                similar[title].equal.append(row)
            elif same_title(title, only_second):
                similar[title].near.append(row)
            elif _is_main_title(keys[title], only_second):
                similar[title].longer.append(row)
    return similar


def title_codes(title: str) -> frozenset[str]:
    """Return codes of a title; equal or similar titles share at least one code, equal ones that of `letters_code`."""
    return frozenset(_codes(title, title_key(title)))


def letters_code(key: str) -> str:
    """Return the code that all titles with a `title_key` have."""
    return "".join(key.split())


def _codes(title: str, key: str) -> list[str]:
    """Return codes of a title; equal or similar titles share at least one code.

    Codes are its letters, those of its main title, and the first letters of its words, which a spelling error keeps.
    """
    words = key.split()
    codes = ["".join(words)] if words else []
    if main := _without_subtitle(title):
        codes.append("".join(main))
    if len(words) > LEAST_WORDS:
        starts = sorted([word[:3] for word in words if word not in _EMPTY])
        codes.append(" ".join(["", *starts]))  # the other codes have no blank
    return codes


def _is_main_title(key: str, title: str) -> bool:
    """Whether `title` without its subtitle equals `key`; numbers in the subtitle must be in `key`, too."""
    words = key.split()
    return _without_subtitle(title) == words and _numbers(words) == _numbers(
        title_key(title).split()
    )


class Described(Protocol):
    """A query, a reference or a paper of a corpus, with the fields that identify a paper."""

    @property
    def title(self) -> str: ...
    @property
    def year(self) -> int | None: ...
    @property
    def authors(self) -> tuple[str, ...]: ...


def rows_of_entry(
    entry: Described, similar: SimilarTitles, papers: Mapping[int, Described]
) -> list[int]:
    """Return the rows of the papers that a reference is, from those with similar titles.

    Papers with an equal title are preferred, unless contradicted; a title of `LEAST_WORDS` outweighs a contradiction of
    year or authors. Otherwise the one title whose year and authors agree is chosen; otherwise the one near title,
    unless contradicted.

    Args:
        entry: The reference.
        similar: The result of `similar_titles` for its title.
        papers: The papers of these rows.

    Returns:
        Rows of papers that share one title; empty if it is not clear which.
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

    Neither year nor authors may contradict it. With a title of fewer than `LEAST_WORDS` words they must also
    have an author in common.
    """
    return not _contradicts(query, paper) and (
        not _is_short(query) or bool(_shares_author(query, paper))
    )


def _contradicts(described: Described, paper: Described) -> bool:
    """Whether years or authors show that two similar titles are of two papers; unknown ones contradict nothing."""
    most = 1 if _is_short(described) else YEARS_APART
    return (_years_apart(described, paper) or 0) > most or _shares_author(described, paper) is False


def _has_equal_title(described: Described, paper: Described) -> bool:
    if not _contradicts(described, paper):
        return True
    same_year = _years_apart(described, paper) == 0
    return not _is_short(described) and (same_year or bool(_shares_author(described, paper)))


def _agrees(described: Described, paper: Described) -> bool:
    """Whether both have a year, at most one year apart, and an author's last name in common."""
    apart = _years_apart(described, paper)
    return (
        apart is not None
        and apart <= 1
        and not _last_names(described).isdisjoint(_last_names(paper))
    )


def _is_short(described: Described) -> bool:
    return len(title_key(described.title).split()) < LEAST_WORDS


def _years_apart(described: Described, paper: Described) -> int | None:
    return (
        None if described.year is None or paper.year is None else abs(described.year - paper.year)
    )


def _shares_author(described: Described, paper: Described) -> bool | None:
    """Whether both have an author in common; None if the authors of one are unknown.

    With a short title last names must be equal; with a longer one any parts of names, in case they were split wrongly.
    """
    names = _last_names if _is_short(described) else _names
    ours, theirs = names(described), names(paper)
    return not ours.isdisjoint(theirs) if ours and theirs else None


def _names(described: Described) -> frozenset[str]:
    return frozenset(
        name for author in described.authors for name in _NAME.findall(title_key(author))
    )


def _last_names(described: Described) -> frozenset[str]:
    keys = (name_key(author).split() for author in described.authors)
    return frozenset(key[-1] for key in keys if key and len(key[-1]) > 1)
