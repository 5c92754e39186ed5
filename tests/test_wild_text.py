"""Texts made to be slow or deep: what is dropped of them, what is refused, and that all else stays as it is."""

import json
import unicodedata
from pathlib import Path

import pytest
import rispy
from hypothesis import given
from hypothesis import strategies as st

from citerec.bibliography.keys import title_key, to_text
from citerec.bibliography.paper_list import read_paper_list
from citerec.bibliography.ris import read_records
from citerec.bibliography.write import bibtex
from citerec.drafts import parse_queries
from citerec.encode.encoder import sentences
from citerec.errors import BadInputError, shown
from citerec.rank.features import name_key
from citerec.text import MAX_MARKS, normalized, stream_safe
from citerec.types import Paper

ACUTE, DOT_BELOW = "\u0301", "\u0323"
MANY_MARKS = "e" + (ACUTE + DOT_BELOW) * 40_000  # 160 kB: normalisation took 7 s


def test_marks_beyond_thirty_on_a_letter_are_dropped() -> None:
    text = f"a{ACUTE * 50}b{ACUTE * 30}c"

    assert stream_safe(text) == f"a{ACUTE * 30}b{ACUTE * 30}c"
    assert len(normalized("NFKD", MANY_MARKS)) == 1 + MAX_MARKS


@given(st.text())
def test_any_other_text_is_normalised_as_python_does(text: str) -> None:
    assert normalized("NFC", text) == unicodedata.normalize("NFC", text)
    assert normalized("NFKD", text) == unicodedata.normalize("NFKD", text)


@given(st.text(alphabet=[ACUTE, DOT_BELOW, "\u3099", "\uff9e", "e", "中"], max_size=200))
def test_no_letter_keeps_more_marks_than_the_bound(text: str) -> None:
    longest = marks = 0
    for char in normalized("NFKD", text):
        marks = marks + 1 if unicodedata.combining(char) else 0
        longest = max(longest, marks)

    assert longest <= MAX_MARKS


def test_every_text_that_is_normalised_goes_through_the_bound() -> None:
    paper = Paper(id="p", title=MANY_MARKS, authors=(MANY_MARKS,))

    assert title_key(MANY_MARKS) == "e"
    assert name_key(MANY_MARKS) == "e"
    assert len(to_text("{" + MANY_MARKS + "}")) <= 1 + MAX_MARKS
    assert bibtex([paper]).startswith("@misc{ee,\n")


VALUES = st.text(alphabet="ab é", max_size=6)
LINES = st.lists(
    st.one_of(st.tuples(st.sampled_from(["TI", "AB", "AU", "KW", "UR", "XX"]), VALUES), VALUES),
    max_size=12,
)


@given(LINES)
def test_a_value_of_many_lines_is_read_as_rispy_reads_it(
    lines: list[str | tuple[str, str]],
) -> None:
    seen: set[str] = set()
    kept: list[str] = []  # rispy adds the further lines of a repeated tag to its first value
    for line in lines:
        tag, value = line if isinstance(line, tuple) else ("", line)
        if tag not in {"TI", "AB"} or tag not in seen:
            kept.append(f"{tag}  - {value}" if tag else value)
        seen.add(tag)
    text = "\n".join(["TY  - JOUR", *kept])

    (ours,) = read_records(text)

    (theirs,) = rispy.loads(f"{text}\nER  - \n", skip_unknown_tags=True)
    assert _collapsed(ours.fields) == _collapsed(theirs)


def _collapsed(fields: object) -> object:
    """Return fields with each run of blanks as one; rispy keeps one for an empty line."""
    assert isinstance(fields, dict)
    return {k: " ".join(v.split()) if isinstance(v, str) else v for k, v in fields.items()}


def test_an_abstract_of_many_lines_is_read_whole() -> None:
    text = f"TY  - JOUR\nTI  - Graphs\nAB  - one\n{'word' * 5}\n\n" + "x\n" * 100_000 + "ER  - \n"

    (query,) = parse_queries(text.encode()).queries

    assert query.abstract.startswith("one wordwordwordwordword x x ")
    assert query.abstract.count("x") == 100_000


def test_abbreviations_without_end_are_one_sentence() -> None:
    assert sentences("See fig. A. B. The end. Next") == ["See fig. A. B. The end.", "Next"]
    assert len(sentences("A. " * 20_000)) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"@article{a,\n" + b"x" * (32 * 2**20),
            "this BibTeX has 33,554,444 characters; expected at most",
        ),
        (b"@a{\n" * 200_001, "this BibTeX has 200,001 entries; expected at most 200,000"),
        (b"\nTY  - JOUR" * 200_001, "this RIS has 200,001 entries; expected at most 200,000"),
        (b"x" * (32 * 2**20 + 1), "this plain text has 33,554,433 characters; expected at most"),
        (b"word " * 5_000, "the title has 24,999 characters; expected at most 20,000"),
        (b"Graphs\n" + b"x" * 2_000_001, "the abstract has 2,000,001 characters; expected at most"),
    ],
)
def test_a_query_that_would_take_minutes_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        parse_queries(data)


def test_strings_of_bibtex_cannot_fill_the_memory() -> None:
    long = b"@string{a = {" + b"x" * 999_000 + b"}}\n"
    entries = b"".join(b"@misc{k%d, title = {T}, note = a # b}\n" % n for n in range(1_000))

    with pytest.raises(BadInputError, match=r"line 66: the values are longer than 64,000,000 char"):
        parse_queries(long + entries)


def test_positions_of_a_word_cannot_fill_the_memory() -> None:
    index = {"x" * 100_000: list(range(100_000))}  # 10 GB

    with pytest.raises(
        BadInputError, match="the abstract has 10,000,100,000 characters; expected at most"
    ):
        parse_queries(json.dumps({"title": "T", "abstract_inverted_index": index}).encode())


def test_a_list_of_exclusions_that_would_take_minutes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "refs.bib").write_bytes(b"@a{\n" * 200_001)

    with pytest.raises(BadInputError, match=r"refs\.bib: this BibTeX has 200,001 entries"):
        read_paper_list(tmp_path / "refs.bib")


@pytest.mark.parametrize("depth", [900, 1000, 1100, 100_000])
@pytest.mark.parametrize(
    "around",
    ["{}", '{{"title": {}}}', '{{"title": "t", "id": {}}}', '{{"title": "t", "year": {}}}'],
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
