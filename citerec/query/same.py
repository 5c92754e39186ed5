"""Whether two titles are one paper's, and which papers of a corpus a draft or a reference is.

Titles that differ in case, accents, punctuation and LaTeX are equal (`title_key`). Beyond that, `same_title` lets
words change their order, be misspelt a little or be joined, and a subtitle be left out; numbers ("Part II", "2019")
must be the same. A draft is recognised by its DOI or its equal title, the latter where nothing contradicts it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rapidfuzz.distance import Levenshtein

from citerec.query.exclude import title_key
from citerec.text import STOP_WORDS
from citerec.types import Paper, Query

LEAST_WORDS = 4  # of a title that says which paper it is; shorter ones ("Introduction") need more
YEARS_APART = 3  # at most, between a preprint and what became of it
SIMILAR = (
    0.6  # share of its words that a title must have in common with another to be compared with it
)
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


def matching_titles(
    titles: Iterable[str], corpus_titles: Iterable[str]
) -> dict[str, tuple[int, ...]]:
    """Find the papers of a corpus that have one of `titles`: an equal one, else the one paper with the `same_title`.

    The corpus is read once. A title is compared with those only that share `SIMILAR` of the words of either.

    Args:
        titles: Those looked for.
        corpus_titles: Those of the corpus, by row number.

    Returns:
        For each of `titles` the rows that have it, rising; none if the corpus does not, or several distinct titles are
        as near.
    """
    keys = {title: title_key(title) for title in titles}
    equal: dict[str, list[int]] = {key: [] for key in keys.values() if key}
    near: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
    holders: defaultdict[str, list[str]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for title, key in keys.items():
        words = _content(key)
        sizes[title] = len(words)
        for word in words:
            holders[word].append(title)
    for row, theirs in enumerate(corpus_titles if equal else ()):
        key = title_key(theirs)
        if (rows := equal.get(key)) is not None:
            rows.append(row)
        words = _content(key)
        shared = Counter(t for word in words & holders.keys() for t in holders[word])
        for title, count in shared.items():
            least = SIMILAR * min(sizes[title], len(words))
            if count >= least and keys[title] != key and same_title(title, theirs):
                near[title].setdefault(key, []).append(row)
    return {
        title: tuple(equal.get(key, ())) or _only(near.get(title, {}))
        for title, key in keys.items()
    }


def _content(key: str) -> frozenset[str]:
    words = frozenset(key.split())
    return words - STOP_WORDS or words


def _only(near: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    return tuple(next(iter(near.values()))) if len(near) == 1 else ()


def is_draft_of(query: Query, paper: Paper) -> bool:
    """Whether a draft with the title of `paper` is that paper.

    Years of more than `YEARS_APART` apart, or authors none of whom share a name, say that it is another. With a title
    of fewer than `LEAST_WORDS` words they must have an author in common, too, and a year at most one apart.
    """
    apart = 0 if query.year is None or paper.year is None else abs(query.year - paper.year)
    ours, theirs = _names(query.authors), _names(paper.authors)
    if apart > YEARS_APART or (ours and theirs and ours.isdisjoint(theirs)):
        return False
    if len(title_key(query.title).split()) >= LEAST_WORDS:
        return True
    return apart <= 1 and not ours.isdisjoint(theirs)


def _names(authors: Sequence[str]) -> frozenset[str]:
    return frozenset(name for author in authors for name in _NAME.findall(title_key(author)))
