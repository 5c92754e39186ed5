"""Compares what a console block shows with what its command printed.

Text must agree exactly, but for the number of blanks between two words, which follows the width of numbers in a
table. `...` stands for any text, on a line of its own for any lines. Figures that a model had a part in differ by
rounding between processors, so decimals may differ by `DECIMAL` and percentages by `PERCENT` points. Two entries of
a ranked list may change places where their scores are no further apart than that. Whole numbers are exact.
"""

import re

DECIMAL = 0.005
PERCENT = 1.0

# Decimals and percentages, but no part of a DOI, a version or a name.
NUMBER = re.compile(r"(?<![\w./-])([-−]?(?:\d*\.\d+(?:%|(?!\.?[\w/]))|\d+%))")
WORD = re.compile(r"\n *|[^\s]+")  # the indentation of a line counts as text
RANK = re.compile(r" *\d+(?= )")
ANY = "..."


def difference(shown: str, printed: str) -> str:
    """Return where `printed` departs from `shown`, or an empty string if it does not."""
    return _difference(shown, _in_the_order_of(shown, printed))


def _difference(shown: str, printed: str) -> str:
    wanted, found = _words(shown), _words(printed)
    ends = {0}  # how many words of `found` the words of `wanted` so far may cover
    for number, word in enumerate(wanted):
        furthest = max(ends)
        if word == ANY:
            ends = set(range(min(ends), len(found) + 1))
        else:
            ends = {
                end + 1
                for end in ends
                if _matches(wanted, number, *found[end : end + 1])
            }
        if not ends:
            return f"expected {_excerpt(wanted[number:])}, found {_excerpt(found[furthest:])}"
    return (
        ""
        if len(found) in ends
        else f"expected the end, found {_excerpt(found[max(ends) :])}"
    )


def _words(text: str) -> list[str]:
    """Split a text into words and line breaks, each of these with the indentation that follows."""
    lines = [line.rstrip() for line in _joined(text).splitlines()]
    return WORD.findall("\n" + "\n".join(lines).rstrip())


def _matches(wanted: list[str], number: int, word: str = "") -> bool:
    """Whether a printed word is the one that is shown; before `...` a line may have any indentation."""
    if wanted[number + 1 : number + 2] == [ANY] and wanted[number].startswith("\n"):
        return word.startswith("\n")
    return _same(wanted[number], word)


def _joined(text: str) -> str:
    """Make a number and its percent sign one word."""
    return re.sub(r"(?<=\d)[ \u00a0\u202f]%", "%", text)


def _excerpt(words: list[str]) -> str:
    return repr(" ".join(words[:12])) if words else "the end"


def _same(shown: str, printed: str) -> bool:
    """Whether two words have the same text, and numbers within the tolerance."""
    wanted, found = NUMBER.split(shown), NUMBER.split(printed)
    if len(wanted) != len(found) or wanted[::2] != found[::2]:
        return False
    return all(_close(a, b) for a, b in zip(wanted[1::2], found[1::2], strict=True))


def _close(a: str, b: str) -> bool:
    if a.endswith("%") != b.endswith("%"):
        return False
    first, second = (float(number.rstrip("%").replace("−", "-")) for number in (a, b))
    tolerance = PERCENT if a.endswith("%") else DECIMAL
    return abs(first - second) <= tolerance + 1e-9


def _in_the_order_of(shown: str, printed: str) -> str:
    """Move the entries of a ranked list to their places in `shown`, past entries of about the same score only."""
    head, left, tail = _split_list(printed)
    ranks = [RANK.findall(entry)[0] for entry in left]
    ordered: list[str] = []
    for entry, rank in zip(_split_list(shown)[1], ranks, strict=False):
        alike = [
            p
            for p, one in enumerate(left)
            if not _difference(_unranked(entry), _unranked(one))
        ]
        place = alike[0] if alike else 0
        if not all(_tied(left[place], passed) for passed in left[:place]):
            place = 0
        ordered.append(rank + _unranked(left.pop(place)))
    return head + "".join(ordered + left) + tail


def _split_list(text: str) -> tuple[str, list[str], str]:
    """Split at the first ranked list: lines that begin with 1, 2, 3 and so on, each with the indented ones after it."""
    head, entries, tail = "", list[str](), ""
    for line in text.splitlines(keepends=True):
        rank = RANK.match(line)
        if rank and int(rank[0]) == len(entries) + 1 and not tail:
            entries.append(line)
        elif not entries:
            head += line
        elif line[:1] == " " and not tail:
            entries[-1] += line
        else:
            tail += line
    return head, entries, tail


def _unranked(entry: str) -> str:
    return RANK.sub("", entry, count=1)


def _tied(one: str, other: str) -> bool:
    """Whether two scores, the last numbers of the first lines, are within the tolerance."""
    first, second = (
        NUMBER.findall(_joined(text).splitlines()[0])[-1:] for text in (one, other)
    )
    return bool(first and second) and _close(first[0], second[0])
