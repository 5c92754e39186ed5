"""How a paper becomes the text that a stage reads, and texts made to be slow or deep."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.drafts import parse_queries
from citerec.errors import BadInputError, shown
from citerec.text import (
    MAX_MARKS,
    contents,
    normalized,
    sentences,
    stream_safe,
    without_stop_words,
)
from citerec.types import Paper, Query

ACUTE, DOT_BELOW = "\u0301", "\u0323"
MANY_MARKS = "e" + (ACUTE + DOT_BELOW) * 40_000  # 160 kB: normalisation took 7 s


def test_a_text_is_the_title_then_the_abstract() -> None:
    assert (
        contents(Query(id="q", title="Title", abstract="Abstract")) == "Title\nAbstract"
    )
    assert contents(Paper(id="p", title="Title")) == "Title"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "We propose a theory of K nearest Neighbours",
            "propose theory nearest Neighbours",
        ),
        ("theory offline", "theory offline"),
        ("To be or not to be", "To be or not to be"),
    ],
)
def test_function_words_and_single_characters_are_dropped(text: str, kept: str) -> None:
    assert without_stop_words(text).split() == kept.split()


@given(st.text())
def test_a_text_with_words_never_becomes_one_without(text: str) -> None:
    has_words = any(c.isalnum() for c in text)

    assert any(c.isalnum() for c in without_stop_words(text)) == has_words


def test_marks_beyond_thirty_on_a_letter_are_dropped() -> None:
    text = f"a{ACUTE * 50}b{ACUTE * 30}c"

    assert stream_safe(text) == f"a{ACUTE * 30}b{ACUTE * 30}c"
    assert len(normalized("NFKD", MANY_MARKS)) == 1 + MAX_MARKS


@given(st.text())
def test_any_other_text_is_normalised_as_python_does(text: str) -> None:
    assert normalized("NFC", text) == unicodedata.normalize("NFC", text)
    assert normalized("NFKD", text) == unicodedata.normalize("NFKD", text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Smith et al. Show it. So did J. Doe.",
            ["Smith et al. Show it.", "So did J. Doe."],
        ),
        (
            "By 3.5 points, e.g. here. (See below.)",
            ["By 3.5 points, e.g. here.", "(See below.)"],
        ),
        ("no capital. after it", ["no capital. after it"]),
        ("", []),
    ],
)
def test_sentences_end_before_a_capital_and_not_after_an_abbreviation(
    text: str, parts: list[str]
) -> None:
    assert sentences(text) == parts


def test_abbreviations_without_end_are_one_sentence() -> None:
    assert sentences("See fig. A. B. The end. Next") == [
        "See fig. A. B. The end.",
        "Next",
    ]
    assert len(sentences("A. " * 20_000)) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"@article{a,\n" + b"x" * (32 * 2**20),
        b"@a{\n" * 200_001,
        b"\nTY  - JOUR" * 200_001,
        b"x" * (32 * 2**20 + 1),
        b"word " * 5_000,
        b"Graphs\n" + b"x" * 2_000_001,
        b"@string{a = {" + b"x" * 999_000 + b"}}\n" + b"@misc{k, title = a, note = a}\n" * 70,
        b'{"title": "T", "abstract_inverted_index": {"' + b"x" * 100_000 + b'": '
        + json.dumps([*range(100_000)]).encode() + b"}}",
    ],
)  # fmt: skip
def test_a_query_that_would_take_minutes_or_the_memory_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError, match=r"too long|longer than|\d{2},\d{3}"):
        parse_queries(data)


@pytest.mark.parametrize("depth", [1000, 100_000])
@pytest.mark.parametrize(
    "around", ["{}", '{{"title": {}}}', '{{"title": "t", "year": {}}}']
)
def test_nested_json_is_one_line_of_an_error(around: str, depth: int) -> None:
    data = around.format("[" * depth + "]" * depth).encode()

    with pytest.raises(BadInputError) as caught:
        parse_queries(data)

    assert len(str(caught.value)) < 200


@given(st.recursive(st.integers() | st.text() | st.floats(), st.lists))
def test_any_value_is_shown_on_one_short_line(value: object) -> None:
    assert len(shown(value)) <= 60
    assert "\n" not in shown(value)
