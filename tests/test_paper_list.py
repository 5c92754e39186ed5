"""What a user has cited already: lists of ids and bibliographies, matched against a corpus."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import table

from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.keys import dois_of, id_key, name_key, title_key, to_text
from citerec.bibliography.paper_list import paper_list_of
from citerec.corpus.lists import parse_paper_list, read_paper_list
from citerec.errors import BadInputError
from citerec.index.folder import IndexFolder
from citerec.match.papers import (
    is_draft_of,
    listed_rows,
    rows_of_entry,
    same_title,
    similar_titles,
)
from citerec.types import Paper, Query


def excluded(folder: Path, text: str | bytes) -> PaperList:
    path = folder / "exclude"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_paper_list(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"Key","Item Type","Title","DOI"\n"A","book","Trees","10.5/x"\n', "a table"),
        ("Title;Year\nTrees;2000\n", "a table"),
    ],
)
def test_formats_that_are_not_read_are_named_and_no_list_of_ids(
    text: str, words: str
) -> None:
    with pytest.raises(BadInputError, match=f"this is {words} "):
        parse_paper_list(text, "refs")


def test_the_yaml_of_typst_is_a_list_and_a_fault_in_it_is_named() -> None:
    text = "# mine\noak:\n    type: Article\n    title: Oak Trees\n    date: 2001-05\n"

    [entry] = parse_paper_list(text, "refs.yml").entries

    assert (entry.key, entry.title, entry.year) == ("oak", "Oak Trees", 2001)
    with pytest.raises(BadInputError, match=r"refs\.yml: this is no valid YAML: "):
        parse_paper_list(f"{text}    author: [Ada", "refs.yml")


CSL_YAML = """---
references:
- id: loom2019
  type: article-journal
  title: Looms of the north
  author:
  - family: Weaver
    given: Ada
  issued:
    date-parts:
    - - 2019
      - 5
  container-title: Weaving
  DOI: 10.1000/loom
- id: knots
  title: Knots and nets
  author: [{literal: The Knot Society}]
  issued: 2020-03
...
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_yaml_of_pandoc_is_a_list(end: str) -> None:
    listed = parse_paper_list(CSL_YAML.replace("\n", end), "refs.yaml")

    first, second = listed.entries
    assert (first.key, first.title, first.year) == (
        "loom2019",
        "Looms of the north",
        2019,
    )
    assert (first.authors, first.venue) == (("Ada Weaver",), "Weaving")
    assert first.dois == ("10.1000/loom",)
    assert (second.title, second.year) == ("Knots and nets", 2020)
    assert second.authors == ("The Knot Society",)


def test_other_indented_text_is_no_yaml_in_linear_time() -> None:
    text = "Plants:\n" + "    a line of blanks and words\n" * 20_000

    assert len(parse_paper_list(text, "refs").entries) == 20_001


def test_titles_with_commas_are_no_table() -> None:
    text = "Maps, trees and a title\nTrees, by title\n10.5555/trees\n"

    assert len(parse_paper_list(text, "refs").entries) == 3


def test_plain_ids_stand_one_a_line(tmp_path: Path) -> None:
    found = excluded(
        tmp_path, "\ufeff# cited already\r\np1\r\n\r\n  12345\r\nA title\r\n"
    )

    assert (found.ids, found.unread) == ({"p1", "12345", "A title"}, ())
    assert [entry.title for entry in found.entries if entry.title] == ["A title"]


def test_a_formatted_reference_is_searched_for_titles(
    sample_index: IndexFolder,
) -> None:
    lines = [
        '[1] A. Vaswani et al., "Attention Is All You Need," in NeurIPS, 2017.',
        "Graph drawing",
    ]

    references, title = paper_list_of(lines).entries

    assert (references.text, title.text) == (lines[0], "")
    [rows, none] = listed_rows(paper_list_of(lines), sample_index.papers)
    assert sample_index.papers.ids_at(rows) == ["vaswani2017attention"]
    assert not none


def test_a_bibliography_gives_keys_dois_and_titles(tmp_path: Path) -> None:
    bibtex = r"""
    @article{goedel31, title = {{\"U}ber {BERT}}, DOI = {https://doi.org/10.1145/ABC\_1}}
    @xdata{shared, title = {No paper}}
    @misc{ours, title = {Über}, subtitle = {{\textless}b{\textgreater}BERT{\textless}/b{\textgreater}}}
    @misc{link, url = {http://dx.doi.org/10.1002/a--b}}
    """

    found = excluded(tmp_path, bibtex)

    assert [entry.title for entry in found.entries if entry.title] == [
        "Über BERT",
        "Über: BERT",
    ]
    assert found.ids == {"goedel31", "10.1145/abc_1", "ours", "10.1002/a--b", "link"}
    assert found.unread == ()


def test_broken_entries_of_a_bibliography_are_told_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    bibtex = (
        "@misc{a, title = {A {broken}\n@misc{b, title = {B}}\n@misc{c, year = 2019}\n"
    )

    found = excluded(tmp_path, bibtex)

    assert [entry.title for entry in found.entries if entry.title] == ["B"]
    assert found.ids == {"b"}
    assert [entry.split(":")[0] for entry in found.unread] == ["line 1", "line 3"]
    assert found.unread[1] == "line 3: entry 'c' has neither a title nor an id"


def test_ris_and_json_count_by_title_id_and_doi(tmp_path: Path) -> None:
    ris = "TY  - JOUR\nTI  - A\nUR  - a.org\nUR  - https://doi.org/10.1000/X\nER  - \n\nTY  - GEN\nPY  - 2019\nER  - \n"
    jsonl = '{"id": 7, "title": "A", "year": "soon"}\n{"colour": "blue"}\n'
    csl = json.dumps([{"title": "A", "URL": "https://doi.org/10.1000/X"}, "p2", 5])

    assert excluded(tmp_path, ris).ids == {"10.1000/x"}
    assert excluded(tmp_path, ris).unread == (
        "line 7: this record has neither a title nor an id",
    )
    assert excluded(tmp_path, jsonl).ids == {"7"}
    assert [e.title for e in excluded(tmp_path, jsonl).entries if e.title] == ["A"]
    assert excluded(tmp_path, jsonl).unread == ("line 2 has neither a title nor an id",)
    assert excluded(tmp_path, csl).ids == {"10.1000/x", "p2"}
    assert excluded(tmp_path, csl).unread == (
        "item 3 of the list has neither a title nor an id",
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "empty"), (b"%PDF-1.4", "a PDF"), (b'{"id": "a"}\n{"id": ', "line 2")],
)
def test_what_is_no_list_is_an_error(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        excluded(tmp_path, data)


@pytest.mark.parametrize(
    "doi",
    [
        "10.1145/ABC",
        "doi:10.1145/abc",
        "DOI 10.1145/abc.",
        "https://doi.org/10.1145/abc",
        "HTTP://DX.DOI.ORG/10.1145/ABC",
        "http://doi.acm.org/10.1145/abc",
        "https://doi-org.ezproxy.uni.example/10.1145/abc",
        "https://login.uni.example/?url=https%3A%2F%2Fdoi.org%2F10.1145%252Fabc",
        "https://dl.acm.org/doi/pdf/10.1145/abc?download=true",
        "https://publisher.example/10.1145/abc/full#sec2",
        "10.1145/abc ",
        "(10.1145/abc),",
    ],
)
def test_a_doi_has_one_key_however_it_is_written(doi: str) -> None:
    assert id_key(doi) == "10.1145/abc"
    others = ("W123a", "10.1/short", "see 10.1145/abc", "10.1145/abc and more")
    assert [id_key(other) for other in others] == [*others]


OLD = "10.1002/(SICI)1-2(1990)41:6<391::AID-X1>3.0.CO;2-9"


@pytest.mark.parametrize(
    ("text", "dois"),
    [
        ("10.1002/(SICI)1-2(1990)41:6$<$391::AID-X1$>$3.0.CO;2-9", OLD),
        (
            r"10.1002/(SICI)1-2(1990)41:6{\textless}391::AID-X1\textgreater 3.0.CO;2-9.",
            OLD,
        ),
        ("10.1002/(SICI)1-2(1990)41:6&amp;lt;391::AID-X1&gt;3.0.CO;2-9", OLD),
        ("https://doi.org/10.1002/(SICI)1-2(1990)41:6%3C391::AID-X1%3E3.0.CO;2-9", OLD),
        ("10.1002/(SICI)1-2(1990)41:6 < 391::AID-X1 > 3.0.CO;2-9", OLD),
        (
            "10.1659/02(2004)024 [ 0141:SPO]2.0.CO;2",
            "10.1659/02(2004)024[0141:SPO]2.0.CO;2",
        ),
        (
            r"10.1000/a\_b, 10.1000/c{\_}d;10.1000/e--f",
            "10.1000/a_b 10.1000/c_d 10.1000/e--f",
        ),
        (r"\href{https://doi.org/10.1000/a}{\emph{J. X}} 1 (2).", "10.1000/a"),
        (
            "Doe, Trees (doi: 10.1016/S0370-2693(01)01210-5). Epub",
            "10.1016/S0370-2693(01)01210-5",
        ),
        ("10.1101/2020.01.02.123456v2.full.pdf", "10.1101/2020.01.02.123456"),
        ("chapter 10.1 of 5.10.1234/x, 10.12/x", ""),
    ],
)
def test_a_text_has_its_dois_without_escapes_and_punctuation(
    text: str, dois: str
) -> None:
    assert " ".join(dois_of(text)) == dois


@pytest.mark.parametrize(
    "text",
    [
        "@misc{a, title={T}, ee={http://doi.acm.org/10.1000/x}}",
        "@misc{a, title={T}, note={In press, doi: 10.1000/x.}}",
        "@misc{a, title={T}, doi={10.1000/x, 10.1000/erratum}, note={See 10.1000/other}}",
        '[{"title": "T", "note": "DOI: 10.1000/x"}]',
        '{"title": "T", "doi": "https://doi.org/10.1000%2Fx"}\n',
        "TY  - JOUR\nTI  - T\nL3  - 10.1000/x\nER  - \n",
        "TY  - JOUR\nTI  - T\nM3  - doi: 10.1000/x\nER  - \n",
        "TY  - JOUR\nTI  - T\nM3  - Article\nN1  - doi:10.1000/x\nER  - \n",
        "T (2001). https://doi.org/10.1000/x\n",
    ],
)
def test_a_doi_is_found_in_the_fields_that_programs_write_it_to(
    tmp_path: Path, text: str
) -> None:
    [entry] = excluded(tmp_path, text).entries

    assert entry.dois[0] == "10.1000/x"
    assert "10.1000/other" not in entry.dois


@pytest.mark.parametrize(
    ("title", "key"),
    table(
        r"""
BERT: Pre-training of Deep Nets! | bert pre training of deep nets
{\"U}ber  {BERT} | uber bert
Über {\textless}i{\textgreater}BERT{\textless}/i{\textgreater} | uber bert
Straße & C₆₀ ﬁx | strasse c60 fix
$\alpha$-helix of C$_{60}$ | α helix of c60
α-helix of C60 | α helix of c60
深度学习：综述 | 深度学习 综述
Обучение | обучение
?! |
"""
    ),
)
def test_titles_are_compared_by_letters_and_digits(title: str, key: str) -> None:
    assert title_key(title) == key


@settings(deadline=None)
@given(st.text())
def test_a_key_is_its_own_key(title: str) -> None:
    key = title_key(title)

    assert title_key(key) == key


@settings(deadline=None)
@given(st.text("abÜß{}$- \"'é,", max_size=30))
def test_a_title_has_the_key_of_its_latex(title: str) -> None:
    assert title_key(to_text(title)) == title_key(title)


def test_a_name_of_any_length_has_a_key_in_linear_time() -> None:
    assert name_key("Ribler RL") == name_key("R. L. Ribler") == "r ribler"
    assert name_key("a " * 100_000) == "a a"  # quadratic time would be minutes


def found_in(corpus: Sequence[Paper | str], *entries: Entry | str) -> list[list[int]]:
    """Return the rows of a corpus that references match by their titles."""
    papers = [
        Paper(id="p", title=paper) if isinstance(paper, str) else paper
        for paper in corpus
    ]
    references = [
        Entry(title=entry) if isinstance(entry, str) else entry for entry in entries
    ]
    similar = similar_titles(
        [r.title for r in references], enumerate(paper.title for paper in papers)
    )
    there = dict(enumerate(papers))
    return [rows_of_entry(r, similar[r.title], there) for r in references]


@pytest.mark.parametrize(
    "other",
    [
        "Deep Learning for Graph Drawing: Layouts That Scale to Millions",
        "Layouts that scale to millions: deep learning for graph drawing",
        "Deep Learning for Graph Drawing",
        "Deep Learning for Graph Drawing - Layouts that Scale to Milions",
    ],
)
def test_a_title_survives_small_differences(other: str) -> None:
    assert same_title(
        "Deep learning for graph drawing: layouts that scale to millions", other
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "On the theory of graph drawing. Part I",
            "On the theory of graph drawing. Part II",
        ),
        (
            "Overview of the retrieval track in 2019",
            "Overview of the retrieval track in 2020",
        ),
        (
            "A supervised model of text segmentation",
            "An unsupervised model of text segmentation",
        ),
        ("Graphs: a survey", "Graphs"),
        ("Introduction", "Introductions"),
        (
            "Visual analytics of sports data in teams",
            "Visual analytics of sports data in schools",
        ),
    ],
)
def test_titles_of_distinct_papers_are_not_the_same(one: str, other: str) -> None:
    assert not same_title(one, other)


COLBERT = Paper(
    id="c",
    title="ColBERT: Efficient Search",
    year=2020,
    authors=("Khattab, Omar", "M. Zaharia"),
)


def colbert(year: int | None = 2020, *authors: str) -> Entry:
    return Entry(title="ColBERT", year=year, authors=authors)


@pytest.mark.parametrize(
    ("entry", "rows"),
    [
        (colbert(2020, "O. Khattab"), [0]),
        (colbert(2021, "Matei Zaharia", "Ada Lovelace"), [0]),
        (colbert(2022, "O. Khattab"), []),
        (colbert(2020, "Omar Lovelace"), []),  # a first name is not enough
        (colbert(None, "O. Khattab"), []),
        (colbert(2020), []),
    ],
)
def test_a_main_title_of_one_word_is_found_by_year_and_author(
    entry: Entry, rows: list[int]
) -> None:
    assert found_in([COLBERT, "Search with ColBERT"], entry) == [rows]


def test_a_main_title_of_two_papers_is_the_one_that_agrees() -> None:
    later = replace(COLBERT, title="ColBERT: Denoised Supervision", year=2022)
    same_year = replace(later, year=2021)
    entry = colbert(2020, "Omar Khattab")

    assert found_in([later, COLBERT], entry) == [[1]]
    assert found_in([same_year, COLBERT], entry) == [[]]  # both may be it


def test_a_title_near_to_two_papers_is_the_one_that_agrees() -> None:
    title = "Learning to rank for documents"
    corpus = [
        Paper(id="a", title=f"{title}: a survey", year=2010, authors=("A. Lovelace",)),
        Paper(id="b", title=f"{title}: a study", year=2015, authors=("C. Babbage",)),
    ]

    assert found_in(
        corpus, Entry(title=title, year=2015, authors=("Babbage, C.",))
    ) == [[1]]
    assert found_in(corpus, Entry(title=title, year=2015, authors=("G. Hopper",))) == [
        []
    ]
    assert found_in(corpus, title) == [[]]


LONG = "Deep graph drawing at scale"


EQUAL = table(  # the paper is of 2011 and by Ada Lovelace
    """
Editorial | | | same
Editorial | 2012 | Lovelace, A. | same
Editorial | 2012 | | same
Editorial | 2013 | | other
Editorial | 2011 | C. Babbage | other
Deep graph drawing at scale | 2012 | C. Babbage | other
Deep graph drawing at scale | 2011 | C. Babbage | same
Deep graph drawing at scale | 2019 | A. Lovelace | same
Deep graph drawing at scale | 2019 | | other
"""
)


@pytest.mark.parametrize(("title", "year", "author", "found"), EQUAL)
def test_an_equal_title_is_the_paper_unless_year_and_authors_disagree(
    title: str, year: str, author: str, found: str
) -> None:
    paper = Paper(id="p", title=title, year=2011, authors=("Ada Lovelace",))

    entry = Entry(
        title=title, year=int(year or 0) or None, authors=(author,) if author else ()
    )

    assert found_in([paper], entry) == [[0] if found == "same" else []]


DOIS = table(
    """
10.1000/a | 10.1000/b | Deep graph drawing at scale: Layouts of Millions | 2011 | other
10.1000/a | 10.1000/b | Deep graph drawing at scale | 2012 | other
10.1000/a | 10.1000/b | Deep graph drawing at scale | 2011 | same, as a DOI may be wrong
10.1000/a | https://doi.org/10.1000/A | Deep graph drawing at scale: Layouts of Millions | 2011 | same
10.48550/arXiv.2101.00001 | 10.1000/b | Deep graph drawing at scale: Layouts of Millions | 2012 | same
10.1000/a | 10.1101/2020.01.02.123456 | Deep graph drawing at scale | 2012 | same
10.1101/gr.1234 | 10.1000/b | Deep graph drawing at scale | 2012 | other, as it is none of bioRxiv
10.5281/zenodo.1 | 10.5281/zenodo.2 | Deep graph drawing at scale | 2012 | same, in two versions
10.48550/arXiv.2101.00001 | 10.48550/arXiv.2202.00002 | Deep graph drawing at scale | 2012 | other
"""
)


@pytest.mark.parametrize(("doi", "other", "title", "year", "found"), DOIS)
def test_dois_of_two_publications_are_of_two_papers(
    doi: str, other: str, title: str, year: str, found: str
) -> None:
    paper = Paper(id="p", title=title, year=2011, authors=("Ada Lovelace",), doi=other)
    entry = Entry(title=LONG, year=int(year), authors=("A. Lovelace",), dois=(doi,))

    assert found_in([paper], entry) == [[0] if found.startswith("same") else []]


def test_a_draft_with_another_doi_is_another_paper() -> None:
    draft = Query(id="q", title=LONG, doi="10.1000/a")

    assert is_draft_of(
        draft, Paper(id="p", title=LONG, doi="10.48550/arXiv.2101.00001")
    )
    assert not is_draft_of(draft, Paper(id="p", title=LONG, doi="10.1000/b"))


DRAFTS = table(
    """
Deep graph drawing at scale | | | same
Deep graph drawing at scale | 2012 | Lovelace, A. | same
Deep graph drawing at scale | 2012 | C. Babbage | other
Deep graph drawing at scale | 2020 | Ada Lovelace | other
Editorial | | | other
Editorial | 2011 | A. Lovelace | same
Editorial | 2014 | A. Lovelace | other
"""
)


@pytest.mark.parametrize(("title", "year", "author", "found"), DRAFTS)
def test_a_draft_of_the_same_title_is_the_paper_unless_something_contradicts_it(
    title: str, year: str, author: str, found: str
) -> None:
    paper = Paper(id="p", title=title, year=2011, authors=("Ada Lovelace",))

    authors = (author,) if author else ()
    draft = Query(id="q", title=title, year=int(year or 0) or None, authors=authors)

    assert is_draft_of(draft, paper) is (found == "same")
