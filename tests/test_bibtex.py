"""BibTeX and BibLaTeX as people bring it; the right readings are those of biber."""

from itertools import starmap
from pathlib import Path

import pytest
from support.tables import table

from citerec.bibliography.bibtex import read_records, to_entry
from citerec.bibliography.entry import Entry
from citerec.corpus.lists import read_paper_list
from citerec.corpus.readers import find_source, read_papers
from citerec.errors import BadInputError
from citerec.types import Paper


def entries(text: str) -> list[Entry]:
    records, broken = read_records(text)
    assert not broken
    return [to_entry(*record) for record in records]


def entry(fields: str, kind: str = "article") -> Entry:
    [found] = entries(f"@{kind}{{k, {fields}}}")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),  # key and title of each entry, line of each fault
    [
        (
            "@misc{a, % {\n title % x =\n = {1% of} # % y\n { it}, % z}\n}",
            [("a", "1% of it")],
        ),
        ("% @misc{n, title={N}}\n 5% @misc{n}\n@misc{a, title={T}}", [("a", "T")]),
        ("@misc{a, title={T},\n%@misc{n, title={N}},\n year=1}", [("a", "T")]),
        (
            "@misc(a, title={(T})\n@string(s = 'S')\n@misc(b, title=s)",
            [("a", "(T"), ("b", "'S'")],
        ),
        (
            "@misc{a, title = jan # ~1 # {} # {x}, year=, note={}, , }",
            [("a", "jan 1x")],
        ),
        ("@misc{author={A}, title={T}}", [("", "T")]),
        (
            "@misc{\n year = 1999,\n title={T}}@misc{, title={U}}",
            [("", "T"), ("", "U")],
        ),
        ("@misc{é:x/y(1) z?a=b&c, title={T}}", [("é:x/y(1) z?a=b&c", "T")]),
        (
            "@misc{a, title={\\{O}}, year=1}\n@misc{b, title={B}}",
            [("a", "{O"), ("b", "B")],
        ),
        (
            "@misc{a, title={\\{1, 2}, year=1}\n@misc{b, title={B}}",
            [("a", "{1, 2"), ("b", "B")],
        ),
        ("@misc{a, title={A}}}\n}\n@misc{b, title={B}}", [("a", "A"), ("b", "B")]),
        ("@comment{x\n@misc{n, title={N}}\n}@misc{a, title={A}}", [("a", "A")]),
        ("x@y.org (@)\n@comment no braces\n@misc{a, title={A}}", [("a", "A")]),
        (
            "@misc{a title={A}}\n@misc{b\n title={B}} @misc{c, title={C}}",
            [("c", "C"), 1, 2],
        ),
        ("@misc{a, title={A\n@misc{b, year=1\n@misc{c, title={C}}", [("c", "C"), 1, 2]),
        (
            "@comment{ {\n@misc{a, title={A}}\n@misc{b, year=1}, title={B}}",
            [("a", "A"), 1, 3],
        ),
    ],
)
def test_an_entry_is_read_as_biber_reads_it_and_a_broken_one_costs_itself_alone(
    text: str, expected: list[tuple[str, str] | int]
) -> None:
    records, broken = read_records(text)

    found = [to_entry(*record) for record in records]
    assert [
        *((one.key, one.title) for one in found),
        *(line for line, _ in broken),
    ] == expected


def test_what_is_wrong_with_an_entry_names_it() -> None:
    text = "@misc{a title={A}}\n@misc{b, title={B} year=1}\n@misc{c, title={C}"

    assert [fault for _, fault in read_records(text)[1]] == [
        "this @misc cannot be read: a comma is missing after the key in 'a title={A}} @misc{b, title={B} year=1} '",
        "entry 'b' cannot be read: a comma is missing before 'year=1} @misc{c, title={C}'",
        "entry 'c' cannot be read: a comma is missing before the end; is a brace not closed?",
    ]


def test_an_entry_without_a_key_is_named_by_its_line_and_title() -> None:
    first, second = entries("@misc{title={Moss}}\n@misc{title={Fern}, doi={10.1234/f}}")

    assert (first.place, first.ids, first.key) == ("line 1: entry 'Moss'", (), "")
    assert (second.place, second.ids) == ("line 2: entry 'Fern'", ("10.1234/f",))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("family=Dijk, given=Jan, prefix=van, useprefix=true", ["Jan van Dijk"]),
        ("Ada Roe and Given = {A. B.}, FAMILY = {L{\\'o}pez}, suffix=Jr", ["Ada Roe", "A. B. López Jr"]),
        ('"family={Robert and Sons, Inc.}" and id=x, family=Ono', ["Robert and Sons, Inc.", "Ono"]),
        ("useprefix=false and given-i=J, given=Jo, family=Ek and others", ["Jo Ek"]),
        ("Ek, Jo and {others} and et al.", ["Jo Ek"]),
        ("family={World Wildlife Fund}", ["World Wildlife Fund,"]),
        ("Moe, Arne {\\{O}}. and Fari\\~na, J. and Mari\\~{n}o, K", ["Arne O. Moe", "J. Fariña", "K Mariño"]),
        ("\\AA slund, A. and \\'Alvarez, B. and \\unknown", ["A. Åslund", "B. Álvarez"]),
    ],
)  # fmt: skip
def test_names_have_the_parts_that_biblatex_gives_them(
    names: str, expected: list[str]
) -> None:
    assert list(entry(f"author = {{{names}}}").authors) == expected


@pytest.mark.parametrize(
    ("journal", "venue"),
    table(
        r"""
{\apj} | The Astrophysical Journal
"\aap" | Astronomy and Astrophysics
{{\apj} Letters} | The Astrophysical Journal Letters
{\textbackslash mnras} | Monthly Notices of the Royal Astronomical Society
{åp} | Astronomy and Astrophysics
pasp | Publications of the Astronomical Society of the Pacific
{\jofx} | jofx
{\em Nature} | Nature
"""
    ),
)
def test_macros_of_nasa_ads_are_journals(journal: str, venue: str) -> None:
    found = entry(
        f"title={{T}}, journal={journal}, eprint={{1101.1093}}, archiveprefix={{arXiv}}"
    )

    assert (found.venue, found.is_preprint) == (venue, False)


@pytest.mark.parametrize(
    ("fields", "title", "venue"),
    [
        ("chapter={On Frogs}, title={Pond}", "On Frogs", "Pond"),
        ("chapter={Chapter 12: On Frogs}, title={Pond}", "On Frogs", "Pond"),
        ("chapter={3D Frogs}, title={Pond}", "3D Frogs", "Pond"),
        ("chapter={I, Frog}, title={Pond}", "I, Frog", "Pond"),
        *((f"chapter={{{n}}}, title={{Pond}}", "Pond", "") for n in ("4", "3--4", "IV", "Ch. 2", "Chapter A")),
        ("chapter={Frogs}, title={On Frogs}, booktitle={Pond}", "On Frogs", "Pond"),
    ],
)  # fmt: skip
def test_a_chapter_in_words_is_the_title_and_its_book_the_venue(
    fields: str, title: str, venue: str
) -> None:
    found = entry(fields, "inbook")

    assert (found.title, found.venue) == (title, venue)


def test_an_entry_inherits_through_books_and_data_and_not_in_circles() -> None:
    text = """@inbook{c, crossref = {B}, title = {Chapter}, author = {A. Roe}}
@book{b, crossref = {m}, title = {Book}, author = {B. Poe}, xdata = {x,y}, doi = {10.1234/b}}
@mvbook{m, title = {Volumes}, date = {1999-05}, crossref = {c}}
@xdata{x, publisher = {Press}, xdata = {z}} @xdata{z, location = {Bonn}}
@misc{, title = {No key}} @misc{d, title = {D}, crossref = {}}"""

    records = read_records(text)[0]
    chapter, book, volumes, _, plain = starmap(to_entry, records)

    assert (chapter.title, chapter.venue, chapter.year) == ("Chapter", "Book", 1999)
    assert (chapter.authors, chapter.dois) == (("A. Roe",), ())
    assert (book.venue, volumes.venue, plain.venue) == ("Volumes", "Chapter", "")
    assert [records[0][1][name] for name in ("publisher", "location")] == [
        "Press",
        "Bonn",
    ]


@pytest.mark.parametrize(
    ("latex", "title"),
    [
        (r"$\less$i$\greater$Rana$\less$/i$\greater$ and \textless b\textgreater CO\lt/b\gt", "Rana and CO"),
        (r"A $\prime$ of $\Rightarrow$ x$\ll$y, 5\textperthousand, \S 2, $\hbar$", "A ' of ⇒ x≪y, 5‰, § 2, ħ"),
        (r"\textbf{Bold} \cite{x} {\$}$\backslash$beta{\$} \today", "Bold $beta$"),
    ],
)  # fmt: skip
def test_named_symbols_are_read_and_commands_are_not_text(
    latex: str, title: str
) -> None:
    assert entry(f"title = {{{latex}}}").title == title


TWO = "@misc{a, title={Über Bäume}}\n@misc{b, title={Café €}}\n".encode()
FOREIGN = TWO.replace("é €".encode(), "é €".encode("cp1252"))
NOTICE = "refs.bib: 2 bytes are not UTF-8, from line 2 on: read as Windows-1252"


def test_a_foreign_byte_is_read_as_windows_1252_with_a_notice(tmp_path: Path) -> None:
    path, log = tmp_path / "refs.bib", list[str]()
    path.write_bytes(FOREIGN)

    papers = [
        found.paper
        for found in read_papers(find_source(path), "bibtex", log=log.append)
    ]
    listed = read_paper_list(path)

    assert [one.title for one in papers if isinstance(one, Paper)] == [
        "Über Bäume",
        "Café €",
    ]
    assert [one.title for one in listed.entries] == ["Über Bäume", "Café €"]
    assert (log[0], listed.notices) == (NOTICE, (NOTICE,))
    path.write_bytes(
        "@misc{a, title={深度学习的文献综述与展望深度学习的文献综述与展望}}".encode(
            "gbk"
        )
    )
    for read in (
        lambda: [*read_papers(find_source(path), "bibtex")],
        lambda: read_paper_list(path),
    ):
        with pytest.raises(
            BadInputError, match=r"line 1: byte 0xc9 .* GBK .* save it as UTF-8"
        ):
            read()
