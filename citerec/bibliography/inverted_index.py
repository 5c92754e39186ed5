"""Abstracts that are published as an inverted index: the positions of each word, as OpenAlex and AMiner do."""

from typing import Any, cast

from citerec.valid import MAX_ABSTRACT


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
    places: list[tuple[int, str]] = []
    length = 0
    for word, positions in words.items():
        for place in cast("list[Any]", positions) if isinstance(positions, list) else ():
            if isinstance(place, str) and place.isdecimal() and len(place) < 10:
                place = int(place)  # noqa: PLW2901
            if isinstance(place, int):
                places.append((place, word))
                length += len(word) + 1
                if length > MAX_ABSTRACT:
                    message = f"an abstract of over {MAX_ABSTRACT:,} characters as its index"
                    raise ValueError(message)
    return " ".join(word for _, word in sorted(places))
