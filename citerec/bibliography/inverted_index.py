"""Abstracts that are published as an inverted index: the positions of each word, as OpenAlex and AMiner do."""

from typing import Any, cast

from citerec.types import MAX_ABSTRACT


def restored(index: object) -> str:
    """Return the text of an inverted index; positions without a word are skipped, values of wrong types, too.

    Args:
        index: `{"word": [0, 7], ...}`, or `{"IndexLength": 8, "InvertedIndex": {...}}`.

    Raises:
        ValueError: If the text has more than `MAX_ABSTRACT` characters.
    """
    words = cast("dict[str, Any]", index) if isinstance(index, dict) else {}
    if isinstance(words.get("InvertedIndex"), dict):
        words = cast("dict[str, Any]", words["InvertedIndex"])
    lists = [(w, cast("list[Any]", found)) for w, found in words.items() if isinstance(found, list)]
    if (length := sum((len(word) + 1) * len(found) for word, found in lists)) > MAX_ABSTRACT:
        message = f"the abstract has {length:,} characters; expected at most {MAX_ABSTRACT:,}"
        raise ValueError(message)
    places: list[tuple[int, str]] = []
    for word, found in lists:
        start = len(places)
        places += [(place, word) for place in found if type(place) is int]
        if len(places) - start < len(found):
            places[start:] = [(n, word) for place in found if (n := _whole(place)) is not None]
    places.sort()
    return " ".join([word for _, word in places])


def _whole(place: Any) -> int | None:
    if type(place) is int:
        return place
    return int(place) if isinstance(place, str) and place.isdecimal() and len(place) < 10 else None
