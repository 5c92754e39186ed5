"""Queries as users bring them: every format, and every way to get one wrong."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import table

from citerec.bibliography.keys import to_text
from citerec.drafts import QueryFile, parse_queries
from citerec.errors import BadInputError
from citerec.types import Query

BERT = Query(
    id="devlin2019bert",
    title="BERT: Deep Bidirectional Transformers",
    abstract="We introduce BERT.",
    year=2019,
    authors=("Jacob Devlin", "Ming-Wei Chang"),
    venue="NAACL",
)
BIBTEX = r"""
@string{naacl = "NAACL"}
@comment{jabref-meta: databaseType:bibtex;}
@InProceedings{devlin2019bert,
  Title = {{BERT}: Deep Bidirectional
           Transformers},
  author = "Devlin, Jacob and Chang, Ming-Wei and others",
  abstract = {We introduce } # "{BERT}.",
  year = {c. 2019/05},
  booktitle = naacl
}
"""
RIS = """
TY  - CONF
ID  - devlin2019bert
TI  - BERT: Deep Bidirectional
      Transformers
AU  - Devlin, Jacob
AU  - Chang, Ming-Wei
AB  - We introduce BERT.
PY  - 2019/05/24
T2  - NAACL
ER  -
"""
CSL = {
    "id": "devlin2019bert",
    "type": "paper-conference",
    "title": "BERT: <i>Deep</i> Bidirectional Transformers",
    "abstract": "<jats:p>We introduce BERT.</jats:p>",
    "author": [{"family": "Devlin", "given": "Jacob"}, {"literal": "Ming-Wei Chang"}],
    "issued": {"date-parts": [[2019, 5]]},
    "container-title": "NAACL",
}

RECORD = {
    "id": "devlin2019bert",
    "title": "BERT:  Deep Bidirectional\nTransformers ",
    "abstract": "We introduce BERT.",
    "year": 2019,
    "authors": ["Jacob Devlin", "Ming-Wei Chang"],
    "venue": "NAACL",
    "citations": ["vaswani2017"],
    "colour": "blue",
}


def parse(text: str) -> QueryFile:
    return parse_queries(text.encode(), name="given")


def the_query(text: str) -> Query:
    (query,) = parse(text).queries
    return query


def the_error(text: str | bytes) -> str:
    with pytest.raises(BadInputError) as caught:
        parse_queries(text if isinstance(text, bytes) else text.encode(), name="given")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [json.dumps(RECORD, indent=2), BIBTEX, BIBTEX.replace("\n", "\r\n"), "\ufeff" + BIBTEX, RIS,
     RIS.replace("\n", "\r\n"), RIS.replace("ER  -\n", ""), json.dumps(CSL), json.dumps([CSL])],
    ids=["json", "bibtex", "bibtex-crlf", "bom", "ris", "ris-crlf", "ris-no-end", "csl", "csl-list"],
)  # fmt: skip
def test_one_paper_is_the_same_query_in_every_format(text: str) -> None:
    assert parse(text) == QueryFile((BERT,))
    assert not parse(text).batch


def test_the_first_line_of_plain_text_is_the_title() -> None:
    query = the_query(
        "\n  A title \nFirst line\nof the abstract.\n\nSecond paragraph.\n"
    )

    assert query == Query(
        id="query",
        title="A title",
        abstract="First line of the abstract. Second paragraph.",
        named=False,
    )


@pytest.mark.parametrize(
    "text",
    [
        "Title: A long title\nAbstract: Some words.",
        "TITLE:\nA long title\n\nABSTRACT\nSome words.",
        "Title: A long\n  title\nAbstract\u2014Some words.",
        "# A long title\n\n## Abstract\n\nSome\nwords.",
        "A long title\n\nAbstract. Some words.",
    ],
)
def test_labels_in_plain_text_are_understood(text: str) -> None:
    assert the_query(text) == Query(
        id="query", title="A long title", abstract="Some words.", named=False
    )


def test_many_lines_of_json_are_a_batch_with_ids_by_line() -> None:
    file = parse('{"title": "A"}\n\n{"title": "B", "id": "b"}\n{"title": "C\u2028c"}\n')

    assert [(q.id, q.title) for q in file.queries] == [
        ("q1", "A"),
        ("b", "B"),
        ("q4", "C c"),
    ]
    assert file.batch


@pytest.mark.parametrize(
    ("record", "abstract"),
    [
        ({"_id": "7", "title": "T", "text": "of beir"}, "of beir"),
        ({"_id": "7", "text": "T"}, ""),
        ({"id": 7, "title": "T", "paperAbstract": "of s2orc"}, "of s2orc"),
        (
            {
                "id": "7",
                "title": "T",
                "abstract_inverted_index": {"b": [1], "a": [0, 2]},
            },
            "a b a",
        ),
    ],
)
def test_records_of_other_corpora_are_read(
    record: Mapping[str, object], abstract: str
) -> None:
    assert the_query(json.dumps(record)) == Query(id="7", title="T", abstract=abstract)


def test_authors_and_venue_are_read_from_every_shape() -> None:
    people = [
        {"name": "A B"},
        "C D",
        {"author": {"display_name": "E F"}},
        {"given": "G"},
    ]

    query = the_query(
        json.dumps({"title": "T", "authors": people, "venue": {"raw": "V"}})
    )

    assert query.authors == ("A B", "C D", "E F", "G")
    assert query.venue == "V"


@pytest.mark.parametrize(
    "year", ['"soon"', "NaN", "true", "2019.5", "0", "[2019]", "1e400", "19"]
)
def test_what_is_no_year_is_an_error_on_its_line(year: str) -> None:
    message = the_error(f'{{"title": "A"}}\n{{"title": "T", "year": {year}}}')

    assert message.startswith("given, line 2: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "this is empty|BibTeX"),
        (" \n\t\n", "this is empty"),
        (b"%PDF-1.7 ...", "a PDF|pdftotext paper.pdf -"),
        (b"PK\x03\x04....", "pandoc cannot read this Word draft"),
        (b"\x1f\x8b\x08....", "gzip|gunzip"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        ("Title".encode("utf-16"), "UTF-16|iconv"),
        ("Title".encode("utf-16-le"), "binary|UTF-8"),
        (b"a\n\nbad \xe9 byte", "line 3|0xe9|Latin-1"),
        ("<?xml version='1.0'?><a/>", "XML"),
        ("\\documentclass{article}\n\\begin{document}T", "LaTeX|--title"),
        ("[[]]", "item 1|found []"),
        ("[]", "no paper"),
        ("@comment{nothing else}", "no paper"),
        ("[" * 5000 + "]" * 5000, "line 1|not valid JSON"),
        ('{"title": "A"}\n' * 6 + '{"title": ', "line 7|not valid JSON"),
        ('{\n"title": "A",\n"year": 20x\n}', "line 3|not valid JSON"),
        ('{"title": "A"}\n7', "line 2|an object with a title|found 7"),
        ('{"title": "A"}\n{"title": " "}', "line 2|no title"),
        ('{"abstract": "A"}', "line 1|no title"),
        ('{"title": ["A"]}', "'title' must be a string|found ['A']"),
        ('{"title": "A", "abstract": 5}', "'abstract' must be a string|found 5"),
        ('{"title": "A", "id": true}', "'id' must be a string|found True"),
        ('{"title": "A", "authors": 5}', "'authors' must be a list"),
        ('{"title": "A", "id": "a\\u0007b"}', "control character"),
        ('{"title": "A \\ud800"}', "not valid JSON"),
        ('{"title": "A", "id": "x"}\n\n{"title": "B", "id": "x"}', "line 3|'x'|line 1"),
        ("@misc{a, year=2019}", "line 1|entry 'a'|no title"),
        ("@misc{a, title={A}}\n@misc{a, title={B}}", "line 2|'a'|line 1"),
        ("\n@misc{a, title={A {B}, year=2019}", "line 2|cannot be read"),
        ("@misc{a, title={A}}, year=2019}", "line 1|one brace too many"),
        ("@misc{a,\n title={A} year=2019}", "line 1|entry 'a'|a comma is missing"),
        ("TY  - GEN\nPY  - 2019\nER  - ", "line 1|no title"),
    ],
)
def test_bad_input_is_one_line_that_says_what_and_where(
    text: str | bytes, words: str
) -> None:
    message = the_error(text)

    assert [word for word in words.split("|") if word not in message] == []


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_queries_or_a_clear_error(data: bytes) -> None:
    try:
        file = parse_queries(data)
    except BadInputError:
        return

    assert all(query.title for query in file.queries)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
    ),
    max_leaves=5,
)
KEYS = [
    "id",
    "title",
    "abstract",
    "year",
    "authors",
    "venue",
    "issued",
    "author",
    "text",
]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*KEYS, "abstract_inverted_index"]), JSON))
def test_any_json_values_give_a_query_or_a_clear_error(
    fields: Mapping[str, object],
) -> None:
    try:
        query = the_query(json.dumps(fields))
    except BadInputError:
        return

    assert query.title
    assert query.year is None or 1000 <= query.year <= 9999


def test_strings_that_double_each_other_are_refused() -> None:
    doubling = "".join(f"@string{{s{i + 1} = s{i} # s{i}}}\n" for i in range(60))

    message = the_error('@string{s0 = "xx"}\n' + doubling + "@misc{a, title = s60}")

    assert "longer than 1000000 characters" in message


@pytest.mark.parametrize(
    ("latex", "text"),
    table(
        r"""
{\"u}ber {BERT} | über BERT
Erd\H{o}s, \v{S}, {\'{\i}}, \'\i, \c c, \~{n}, \^{o} | Erdős, Š, í, í, ç, ñ, ô
L{\d{\^e}}, {\~{\^e}}, \'{\ae}, \textcommabelow{S}, 4$^{\circ}$ | Lệ, ễ, ǽ, Ș, 4°
{\L}\'od\'z, {\O}re, stra\ss e, \AA | Łódź, Øre, straße, Å
$\alpha$-helix, C$_{60}$, $O(n \log n)$ | α-helix, C60, O(n log n)
\& \% \$ \# \_ \{ \} {\textbackslash} | & % $ # _ { } \
50% of a $5 bill | 50% of a $5 bill
``Deep'' nets -- a~survey --- {\it now} | “Deep” nets – a survey — now
\emph{E. coli} in \mbox{H\textsubscript{2}O} | E. coli in H2O
}{ \ |
"""
    ),
)
def test_latex_is_read_as_the_letters_it_stands_for(latex: str, text: str) -> None:
    assert to_text(latex) == text
