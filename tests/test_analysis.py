"""Analysis without Java gives the terms of Lucene's own, or leaves the text to it."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.tools import run_python

from citerec.index.bm25 import analyze_by_lucene, analyze_in_python
from citerec.index.folder import IndexFolder

DATA = Path(__file__).parents[2] / "shared" / "data"
PIECES = [
    "a",
    "b",
    "X",
    "1",
    "2",
    "'",
    "’",
    ".",
    ",",
    ";",
    ":",
    "_",
    "-",
    " ",
    "é",
    "ß",
    "µ",
    "Ω",
]
WORDS = [
    "relational",
    "hopping",
    "falling",
    "agreed",
    "skies",
    "caresses",
    "yes",
    "sensibiliti",
]
ENDINGS = [
    "",
    "s",
    "'s",
    "’S",
    "ed",
    "eed",
    "ing",
    "ization",
    "fulness",
    "ement",
    "sion",
    "ly",
    "y",
]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
    | st.text(st.characters(max_codepoint=0x3C9), max_size=20)
    | st.builds(str.__add__, st.sampled_from(WORDS), st.sampled_from(ENDINGS))
    | st.builds(
        str.__add__,
        st.text("abceilsty", min_size=1, max_size=7),
        st.sampled_from(ENDINGS),
    )
)
@example("U.S.A. can't e.g. 3.14 1,000; a:b x_y __init__ A-B C++ the")
@example("a" * 255 + " " + "b" * 256)
@example("__a __b__ ___ c__d _e")
def test_terms_are_lucenes(java: None, text: str) -> None:
    terms = analyze_in_python(text)

    if terms is not None:
        assert terms == analyze_by_lucene(text)


def test_texts_of_other_characters_are_left_to_lucene() -> None:
    assert analyze_in_python("citation analysis of the naïve") == [
        "citat",
        "analysi",
        "naïv",
    ]
    for text in ("深度学习", "a\u0301", "☕", "Σ", "\u200b", "a\u00adb"):
        assert analyze_in_python(text) is None


def test_a_long_run_of_underscores_is_read_once() -> None:
    # read once for each, this would take an hour
    assert analyze_in_python("_" * 500_000 + " trees") == ["tree"]


SEARCH = """
import sys
from pathlib import Path
from citerec.index.folder import open_index
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Eligibility, Query
retriever = Bm25Retriever(open_index(Path(sys.argv[1])))
query = Query(id="q", title="Citation analysis", abstract="Who cites, and who is cited?")
[hits] = retriever.retrieve([query], [Eligibility()], 5)
retriever.matches(query, hits.rows.tolist(), most=3)
print(len(hits), sorted({"jnius", "numba"} & set(sys.modules)))
"""


def test_a_query_starts_no_java_and_imports_no_numba(sample_index: IndexFolder) -> None:
    assert run_python(SEARCH, sample_index.path).stdout == "5 []\n"


def texts() -> Iterator[str]:
    for corpus in sorted(DATA.glob("*/corpus.jsonl.gz")):
        with gzip.open(corpus) as lines:
            for record in map(orjson.loads, lines):
                yield from filter(None, (record["title"], record.get("abstract")))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data")
def test_terms_of_every_text_of_five_corpora_are_lucenes(java: None) -> None:
    covered = total = 0

    for text in texts():
        total += 1
        if (terms := analyze_in_python(text)) is not None:
            covered += 1
            assert terms == analyze_by_lucene(text), text[:80]

    assert covered > 0.99 * total
