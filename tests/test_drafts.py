"""Drafts as LaTeX, Markdown, Word and PDF: fields, included files, and the references that they cite."""

from pathlib import Path

import pytest
from support.documents import pdf, placed, raw_pdf, rezipped, word

from citerec import inputs
from citerec.drafts import (
    MAX_FIRST_PARAGRAPHS,
    QueryFile,
    pandoc,
    parse_queries,
    read_queries,
)
from citerec.drafts.cited import printed_references
from citerec.errors import BadInputError
from citerec.folder import IndexFolder
from citerec.matching import listed_rows

ABSTRACT = "We rank the papers that a manuscript should cite, without any figure."
TITLE = "Ranking References for Manuscripts"
ENVIRONMENT = f"\\begin{{abstract}}\n{ABSTRACT}\n\\end{{abstract}}\n"


def parse(data: bytes | str, name: str = "draft") -> QueryFile:
    return parse_queries(data.encode() if isinstance(data, str) else data, name=name)


def read(data: bytes | str, name: str = "draft") -> tuple[str, str]:
    """Return title and abstract."""
    [query] = parse(data, name).queries
    return query.title, query.abstract


def titled(rest: str, title: str = "T") -> str:
    return f"\\documentclass{{article}}\n\\title{{{title}}}\n\\begin{{document}}\n{rest}\n\\end{{document}}\n"


def write(folder: Path, **files: str) -> Path:
    """Write `name.tex` for each argument, `refs.bib` for `refs`; returns the path of `draft.tex`."""
    for name, text in files.items():
        suffix = {"refs": "bib", "bbl": "bbl"}.get(name, "tex")
        (folder / f"{'draft' if name == 'bbl' else name}.{suffix}").write_text(text)
    return folder / "draft.tex"


def titles(file: QueryFile) -> tuple[str, ...]:
    entries = file.cited.entries if file.cited else ()
    return tuple(entry.title for entry in entries if entry.title)


# --- LaTeX


CLASSES = {
    "article": (
        r"\documentclass{article}\title{Deep \emph{Ranking}\thanks{Funded.}}"
        r"\author{Ada Lovelace\thanks{X} \and Charles Babbage\\University of Y}\date{May 2021}\begin{document}"
        rf"\maketitle {ENVIRONMENT}"
    ),
    "acmart": (
        r"\documentclass[sigconf]{acmart}\begin{document}\title[Short]{Deep Ranking}\author{Ada Lovelace}"
        r"\affiliation{\institution{X}}\email{a@b.c}\author{Charles Babbage}\orcid{1}\date{2021}"
        rf"{ENVIRONMENT}\keywords{{a}}\maketitle"
    ),
    "IEEEtran": (
        r"\documentclass{IEEEtran}\title{Deep\\ Ranking}\author{\IEEEauthorblockN{Ada Lovelace}\IEEEauthorblockA{X\\Y}"
        r"\and\IEEEauthorblockN{Charles Babbage}\IEEEauthorblockA{Z}}\date{2021}\begin{document}\maketitle"
        rf"{ENVIRONMENT}\begin{{IEEEkeywords}}a\end{{IEEEkeywords}}"
    ),
    "llncs": (
        r"\documentclass{llncs}\begin{document}\title{Deep Ranking}\titlerunning{Short}"
        r"\author{Ada Lovelace\inst{1}\orcidID{0000} \and Charles Babbage\inst{1,2}}\authorrunning{A. L.}"
        rf"\institute{{X \and Y}}\date{{2021}}\maketitle{ENVIRONMENT}"
    ),
    "elsarticle": (
        r"\documentclass{elsarticle}\begin{document}\begin{frontmatter}\title{Deep Ranking\tnoteref{t}}"
        r"\author[1]{Ada Lovelace\corref{c}}\author[2]{Charles Babbage}\address[1]{X}\date{2021}"
        rf"{ENVIRONMENT}\end{{frontmatter}}"
    ),
    "neurips": (
        r"\documentclass{article}\usepackage[final]{neurips_2021}\title{Deep Ranking}"
        r"\author{Ada Lovelace \\ Department of X \\ \texttt{a@b.c} \And Charles Babbage \\ Y}\date{2021}"
        rf"\begin{{document}}\maketitle{ENVIRONMENT}"
    ),
    "revtex": (
        r"\documentclass[prl]{revtex4-2}\begin{document}\title{Deep Ranking}\author{Ada Lovelace}\email{a@b}"
        rf"\affiliation{{X}}\author{{Charles Babbage}}\affiliation{{Y}}\date{{1 May 2021}}{ENVIRONMENT}\maketitle"
    ),
    "sn-jnl": (
        r"\documentclass{sn-jnl}\begin{document}\title[S]{Deep Ranking}\author*[1]{\fnm{Ada} \sur{Lovelace}}"
        rf"\author[2]{{\fnm{{Charles}} \sur{{Babbage}}}}\date{{2021}}\abstract{{{ABSTRACT}}}\maketitle"
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_fields_of_a_class_are_read(name: str) -> None:
    [query] = parse(CLASSES[name]).queries

    assert (query.title, query.abstract) == ("Deep Ranking", ABSTRACT)
    assert (query.authors, query.year) == (("Ada Lovelace", "Charles Babbage"), 2021)


def test_macros_of_the_draft_are_expanded_in_title_and_abstract() -> None:
    text = (
        r"\newcommand{\name}{\textsc{CiteNet}\xspace}\newcommand*{\with}[2][deep]{#1 #2}\def\twice#1{#1 and #1}"
        r"\documentclass{article}\title{\name: \twice{ranks}}\begin{document}"
        r"\begin{abstract}With \name, a \with{net} beats a \with[shallow]{tree}; \name wins in all of the"
        r" tests.\end{abstract}"
    )

    title, abstract = read(text)

    assert title == "CiteNet: ranks and ranks"
    assert abstract.startswith("With CiteNet, a deep net beats a shallow tree; CiteNet wins in all")


def test_accents_formulas_and_marks_become_text() -> None:
    text = titled(
        r"\begin{abstract}K\"onig uses 90\% of $\alpha$--values~\cite{a}\footnote{Not this.} "
        r"\mbox{is} here, \href{http://x}{and there}.\end{abstract}",
        title=r"The {\L}ukasz \& M\"uller na\"{\i}ve method",
    )

    assert read(text) == (
        "The Łukasz & Müller naïve method",
        "König uses 90% of α–values is here, and there.",
    )


def test_the_text_and_the_citations_of_unknown_commands_are_kept(tmp_path: Path) -> None:
    text = titled(
        r"\begin{abstract}We \added{rank \citex{two}} papers \SI{3}{\percent} faster than before, and"
        r" better.\end{abstract}\added{As \cite{one} says.}\bibliography{refs}",
        title=r"\vspace{-2cm}On \unknown{Ranks}\tnoteref{t}",
    )

    file = read_queries(write(tmp_path, draft=text, refs=BIB))

    assert file.queries[0].title == "On Ranks"
    assert file.queries[0].abstract == "We rank papers 3 % faster than before, and better."
    assert set(titles(file)) == {"The one paper", "The two paper"}


def test_a_draft_in_latin_1_is_read_by_its_declared_encoding() -> None:
    text = "\\documentclass{article}\\usepackage[latin1]{inputenc}\\title{Über}\\begin{document}x"

    assert read(text.encode("latin-1"))[0] == "Über"


def test_included_files_are_read_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "abstract.tex").write_text(ABSTRACT)
    (tmp_path / "parts" / "more.tex").write_text("\\cite{a}\\input{deeper}")
    (tmp_path / "parts" / "deeper.tex").write_text("\\cite{b}")
    draft = write(
        tmp_path,
        draft=titled(
            r"\begin{abstract}\input{parts/abstract}\end{abstract}\include{parts/more}\bibliography{refs}"
        ),
        refs="@misc{a, title={Alpha}}\n@misc{b, title={Beta}}",
    )

    file = read_queries(draft)

    assert file.queries[0].abstract == ABSTRACT
    assert titles(file) == ("Alpha", "Beta")


def test_files_outside_of_the_folder_are_refused_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("secret")
    (tmp_path / "refs.bib").write_text("@misc{a, title={Secret}}")
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "link.tex").symlink_to(tmp_path / "secret.tex")
    draft = write(
        folder,
        draft=titled(
            rf"\section{{Introduction}}\input{{../secret}}\input{{{tmp_path}/secret}}\input link "
            r"\cite{a} and so on. \bibliography{../refs}"
        ),
    )

    file = read_queries(draft)

    assert file.queries[0].abstract == "and so on."
    assert titles(file) == ()
    assert sum("is outside the folder of the draft" in notice for notice in file.notices) == 4


def test_loops_and_missing_files_are_left_out_with_a_line(tmp_path: Path) -> None:
    draft = write(
        tmp_path,
        draft=titled(r"\section{Introduction}Begin \input{a} end.\input{gone}"),
        a=r"of \input{b}",
        b=r"it \input{a}\input{b}",
    )

    file = read_queries(draft)

    assert file.queries[0].abstract == "Begin of it end."
    assert [("itself" in n, "missing" in n) for n in (notice.split(": ", 1)[1] for notice in file.notices[2:])] == [
        (True, False), (True, False), (False, True),
    ]  # fmt: skip


def test_files_that_multiply_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandoc, "MAX_FILES", 50)
    twice = {f"a{i}": f"\\input{{a{i + 1}}}\\input{{a{i + 1}}}" for i in range(10)}
    write(tmp_path, **twice)

    with pytest.raises(BadInputError, match="50 files"):
        pandoc.flatten(r"\input{a0}", "draft.tex", tmp_path, [])


def test_nothing_is_followed_from_standard_input() -> None:
    file = parse(titled(r"\section{Introduction}A text.\input{a}\cite{k}\bibliography{refs}"))

    assert sum("cannot be followed from standard input" in notice for notice in file.notices) == 2


BIB = "".join(
    f"@misc{{{k}, title={{The {k} paper}}}}\n" for k in ("one", "two", "three", "four", "five")
)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (r"\citep[see][p.~3]{one, two}\Citet*{three}", "one two three"),
        (r"\autocite{one}\parencite[3]{two}\textcite{three}\footcite{four}", "one two three four"),
        (r"\autocites[a]{one}[b][c]{two}\cite{three}", "one two three"),
        (r"\nocite{*}", "one two three four five"),
        (r"\newcommand{\seealso}[2]{see \citep[#1]{#2}}\seealso{p. 3}{two}", "two"),
        (
            r"\begin{figure}\includegraphics{x}\caption{\cite{four}}\end{figure}\nocite{five}",
            "four five",
        ),
    ],
)
@pytest.mark.parametrize("command", [r"\bibliography{refs}", r"\addbibresource{refs.bib}"])
def test_cited_keys_are_looked_up(tmp_path: Path, text: str, keys: str, command: str) -> None:
    file = read_queries(write(tmp_path, draft=titled(text + command), refs=BIB))

    assert titles(file) == tuple(f"The {key} paper" for key in keys.split())


def test_a_broken_entry_of_the_bibliography_is_named(tmp_path: Path) -> None:
    broken = "@misc{six, title={Never closed\n" * 7
    draft = write(tmp_path, draft=titled(r"\cite{one,six}\bibliography{refs}"), refs=BIB + broken)

    file = read_queries(draft)

    assert titles(file) == ("The one paper",)
    assert "7 entries are ignored in refs.bib; the first: " in file.notices[-2]
    assert "six" in file.notices[-1]


ITEMS = r"""\begin{thebibliography}{9}
\bibitem{plain} A. Lovelace and C. Babbage. \newblock Engines that count. \newblock {\em Journal of X}, 1943.
\bibitem[Lovelace(1943)]{natbib} Ada Lovelace. Notes on the engine. In \emph{Memoirs}, 1943.
\bibitem{ieee} A. Lovelace, ``Looms and numbers,'' \emph{J. X}, vol. 3, 1850. doi: 10.1234/loom
\bibitem{springer} Lovelace, A., Babbage, C.: Weaving algebraic patterns. In: Proc. X. pp. 1--2 (1851)
\bibitem{unused} B. Nobody. Never cited. 1900.
\end{thebibliography}"""


def test_formatted_references_are_read_by_their_style() -> None:
    file = parse(titled(rf"\cite{{plain,natbib,ieee,springer}}{ITEMS}"))

    assert file.cited is not None
    assert [entry.text.split()[0] for entry in file.cited.entries] == [
        "A.",
        "Ada",
        "A.",
        "Lovelace,",
    ]
    assert "“Looms and numbers,”" in file.cited.entries[2].text
    assert file.cited.ids == {"10.1234/loom"}


def test_the_bbl_of_a_draft_stands_in_for_its_bib(tmp_path: Path) -> None:
    bbl = r"\bibitem{a} A. Author. \newblock Alpha: a story. \newblock Memoirs, 2001."

    file = read_queries(write(tmp_path, draft=titled(r"\cite{a}\bibliography{gone.bib}"), bbl=bbl))

    assert file.cited is not None
    assert [entry.text for entry in file.cited.entries] == [
        "A. Author. Alpha: a story. Memoirs, 2001."
    ]
    assert not any("missing" in notice for notice in file.notices)


def test_a_bbl_that_is_a_link_to_outside_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "secret.bbl").write_text(ITEMS)
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "draft.bbl").symlink_to(tmp_path / "secret.bbl")
    draft = write(tmp_path / "paper", draft=titled(r"\cite{plain}"))

    with pytest.raises(BadInputError, match=r"draft\.bbl is a link to outside"):
        read_queries(draft)


def test_a_draft_that_is_nested_without_end_is_a_clear_error() -> None:
    with pytest.raises(BadInputError, match="this Markdown draft is nested too deeply"):
        parse(f"---\ntitle: {TITLE}\n---\n{'- ' * 2000}x", "draft.md")


def test_a_draft_that_pandoc_does_not_finish_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "MAX_SECONDS", 1)

    with pytest.raises(BadInputError, match=r"needs too much time or memory; pass its main part"):
        parse(titled("\\begin{abstract}" * 3_000))


# --- Markdown


MARKDOWN = f"""---
title: "{TITLE}: a *study*"
author: [Ada Lovelace, {{name: Charles Babbage}}]
date: 2021-03-04
bibliography: refs.bib
nocite: "@hidden"
---

# Introduction

As @first and others [see @second, p. 3; -@{{third}}] say; mail ada@example.org, see @fig:one and `@code`.

```
@fenced
```

## Abstract

{ABSTRACT} [@first]
"""


def test_front_matter_and_citations_of_markdown_are_read(tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text(MARKDOWN)
    bib = "".join(f"@misc{{{k}, title={{The {k} paper}}}}\n" for k in ("first", "second", "other"))
    (tmp_path / "refs.bib").write_text(bib)

    file = read_queries(tmp_path / "draft.md")

    [query] = file.queries
    assert (query.title, query.abstract) == (f"{TITLE}: a study", ABSTRACT)
    assert (query.authors, query.year) == (("Ada Lovelace", "Charles Babbage"), 2021)
    assert titles(file) == ("The first paper", "The second paper")
    assert file.notices[-1].endswith("2 citation keys not in refs.bib: third, hidden")


@pytest.mark.parametrize("package", ["\\usepackage[draft]{changes}", ""])
def test_marks_of_the_package_changes_leave_the_new_text(package: str) -> None:
    title = (
        r"\title{Ranking \added[id=A,comment={sure?}]{References} \deleted{of Many} \replaced{for}{by} "
        r"\highlight[comment=x]{Manuscripts}" + (r"\comment[id=B]{Shorten}}" if package else "}")
    )
    hidden = "\\begin{comment}Hidden.\\end{comment}"
    body = f"\\begin{{document}}\\maketitle{ENVIRONMENT}{hidden}Text.\\end{{document}}"

    assert read(f"\\documentclass{{article}}{package}{title}{body}") == (TITLE, ABSTRACT)


# --- Typst

BY_TEMPLATE = f"""#import "@preview/charged-ieee:0.1.3": ieee
#show: ieee.with(title: [{TITLE}], abstract: [{ABSTRACT}], bibliography: bibliography("refs.bib"))
= Introduction
We rank @first @second.
"""


@pytest.mark.parametrize(
    "text",
    [
        BY_TEMPLATE,
        BY_TEMPLATE.replace(": ieee\n", ": *\n"),
        f"#set document(title: [{TITLE}])\n= Abstract\n{ABSTRACT}\n= Introduction\nMore.\n",
        f"#show: doc => conf(doc)\n#align(center, text(17pt)[*{TITLE}*])\n= Abstract\n{ABSTRACT}\n",
    ],
)
def test_title_and_abstract_of_typst_are_read(text: str) -> None:
    assert read(text, "draft.typ") == (TITLE, ABSTRACT)


def test_references_of_typst_are_read_from_its_bibliography(tmp_path: Path) -> None:
    (tmp_path / "refs.bib").write_text("@misc{first, title={The First}}@misc{b, title={B}}")
    (tmp_path / "draft.typ").write_text(BY_TEMPLATE)

    file = read_queries(tmp_path / "draft.typ")

    assert file.cited
    assert [entry.key for entry in file.cited.entries] == ["first"]
    assert file.notices[-1].endswith("1 citation key not in refs.bib: second")


# --- Word


def test_styles_and_headings_of_a_word_document_are_read() -> None:
    data = word(f"---\ntitle: {TITLE}\n---\n# Abstract\n\n{ABSTRACT}\n\n# Introduction\n\nMore.\n")

    assert read(data) == (TITLE, ABSTRACT)
    assert parse(data).notices[0].startswith(f"draft (Word): title {TITLE!r}, abstract 'We rank")


# --- HTML


@pytest.mark.parametrize(
    "page",
    [
        f"""<!doctype html><head><title>{TITLE} | Journal</title><meta name="citation_title" content="{TITLE}">
        <meta name="citation_abstract" content="{ABSTRACT}"></head><body><h1>Journal</h1></body>""",
        f"<html><h1>{TITLE}</h1><h2>Abstract</h2><p>{ABSTRACT}</p><h2>1 Introduction</h2><p>More.</p></html>",
    ],
)
def test_tags_of_publishers_and_headings_of_a_page_are_read(page: str) -> None:
    assert read(page) == (TITLE, ABSTRACT)


# --- PDF


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("heading", "after"), [("Abstract", "1 Introduction"), ("ABSTRACT", "Keywords: x")]
)
def test_title_and_abstract_of_a_pdf_are_found_by_layout(
    columns: int, heading: str, after: str
) -> None:
    long_title = "Ranking References for the Manuscripts of Authors Who Have Not Read Them"

    data = pdf(long_title, ABSTRACT, heading=heading, after=after, columns=columns)

    assert read(data) == (long_title, ABSTRACT)


def test_ligatures_of_a_pdf_are_letters_again() -> None:
    fonts = Path(pytest.importorskip("matplotlib").get_data_path(), "fonts", "ttf")
    abstract = "An e\ufb03cient work\ufb02ow \ufb01nds o\ufb00ers of many kinds for its authors."

    data = pdf("A Work\ufb02ow of Scientists", abstract, font=str(fonts / "DejaVuSerif.ttf"))

    plain = "An efficient workflow finds offers of many kinds for its authors."
    assert read(data) == ("A Workflow of Scientists", plain)


def test_a_pdf_without_an_abstract_uses_its_introduction() -> None:
    file = parse(pdf(TITLE, "Ada Lovelace wrote this.", heading="", after="1 Introduction"))

    assert file.queries[0].abstract.startswith("The first section begins here")
    assert len(file.queries[0].abstract) <= MAX_FIRST_PARAGRAPHS
    assert file.queries[0].abstract.endswith("abstract.")
    assert "no abstract was found: the first" in file.notices[1]


def column(
    x: float, y: float, texts: list[str], size: float = 9
) -> list[tuple[float, float, float, str]]:
    """Place lines below each other, 4 mm apart; one that begins with a blank is indented by 3 mm."""
    return [
        (x + 3 * text.startswith(" "), y + 4 * n, size, text.strip())
        for n, text in enumerate(texts)
    ]


WORDS = (
    (20.0, 50.0, 20.0, "Adopting"),
    (51.0, 50.0, 20.0, "Services"),
    (80.0, 50.0, 20.0, "of Cyber-"),
)
SENTENCES = [
    "Nobody has read all papers of a field before the next",
    "one appears, so that a list is short.",
] * 6


@pytest.mark.parametrize(
    ("above", "abstract"),
    [
        ([(20, 32, 26, "Annals of Testing"), (20, 42, 20, "Research Article")], ["Abstract"]),
        ([(20, 12, 26, "Biological Tests"), (20, 20, 8, "Biological Tests 25 (2021) 109057")], []),
        ([(20, 41, 20, "Short Communication"), (20, 25, 14, "OPEN")], ["A B S T R A C T"]),
    ],
)
def test_the_title_of_a_pdf_is_below_names_of_journals_and_keeps_its_words_apart(
    above: list[tuple[float, float, float, str]], abstract: list[str]
) -> None:
    title = [*WORDS, (20.0, 58.0, 20.0, "Physical Systems")]
    page = [*above, *title, *column(20, 80, ["Ada Lovelace", "Department of Engines"], 12)]
    page += [*column(20, 100, [*abstract, *SENTENCES], 9)]
    page += [*column(20, 170, ["1 Introduction", *SENTENCES], 10)]

    data = placed(page, column(20, 30, SENTENCES * 4, 10))

    assert read(data) == ("Adopting Services of Cyber-Physical Systems", " ".join(SENTENCES))


LINES = [
    ["Bates, D. 2003. Converting a large package to", " classes and methods. J. Tests 12, 1-9."],
    ["da Cruz, L., Field, A. and Gray, B.", " 2005. A second paper of note. J. Tests", " 13. doi:10.1000/ab-", " 12."],
    ["Chambers, J. (1998) Programming with", " data. Springer"],
    ["Everard, K. 1983. Models of the lines and", " 12. their use. Academic Press, London."],
    ["Zeno, A. 1990. Another large package", " of classes. J. Tests 14, 2-9.", " doi:10.1000/own",
     " Cite this article as: A Title of Words."],
]  # fmt: skip
ENTRIES = [
    "Bates, D. 2003. Converting a large package to classes and methods. J. Tests 12, 1-9.",
    "da Cruz, L., Field, A. and Gray, B. 2005. A second paper of note. J. Tests 13. doi:10.1000/ab-12.",
    "Chambers, J. (1998) Programming with data. Springer",
    "Everard, K. 1983. Models of the lines and 12. their use. Academic Press, London.",
    "Zeno, A. 1990. Another large package of classes. J. Tests 14, 2-9.",
]


@pytest.mark.parametrize(
    ("mark", "heading"), [("{}. ", "6. References"), ("[{}] ", "REFERENCES"), ("", "Literature cited"), ("{} ", "")]
)  # fmt: skip
def test_references_of_a_pdf_run_over_columns_and_pages(mark: str, heading: str) -> None:
    items = [[mark.format(n) + start, *rest] for n, (start, *rest) in enumerate(LINES, 1)]
    left, right, other = (
        [*items[0], *items[1][:2]],
        [*items[1][2:], *items[2]],
        [*items[3], *items[4]],
    )
    head, foot = (20.0, 12.0, 9.0, "Journal of Tests 7"), (100.0, 290.0, 9.0, "Page 12")
    first = [head, (20.0, 30.0, 20.0, "A Title of Words"), *column(20, 40, ["The text."], 10)]
    first += [(20.0, 60.0, 12.0, heading), *column(20, 66, left), *column(110, 60, right), foot]
    caption = (24.0, 200.0, 6.0, "Figure 3. A caption of 2009.")  # between references

    cited = parse(placed(first, [head, caption, *column(24, 30, other), foot])).cited

    assert cited is not None
    assert [entry.text for entry in cited.entries] == [
        mark.format(n) + text for n, text in enumerate(ENTRIES, 1)
    ]
    assert cited.entries[1].ids == ("10.1000/ab-12",)


def test_the_numbers_of_the_lines_of_a_manuscript_are_no_text() -> None:
    texts = [
        (20.0, "A Title of Words"),
        *((11.0, text) for text in ("Abstract", *SENTENCES, "1 Introduction", *SENTENCES)),
    ]
    lines = [(20.0, 20.0 + 8 * n, size, f"{n}  {text}") for n, (size, text) in enumerate(texts, 1)]

    assert read(placed(lines)) == ("A Title of Words", " ".join(SENTENCES))


# --- what all of them share


def test_a_stated_title_and_abstract_override_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"title": "Old", "abstract": "Old text", "year": 2020}')
    (tmp_path / "a.md").write_text("---\nyear: 2020\n---\nText without a heading.\n")

    both = read_queries(tmp_path / "a.json", title="New", abstract="New text").queries[0]
    title = read_queries(tmp_path / "a.md", title="New").queries[0]

    assert (both.title, both.abstract, both.year) == ("New", "New text", 2020)
    assert (title.title, title.abstract, title.year) == ("New", "Text without a heading.", 2020)


def test_pandoc_reads_no_file_that_a_draft_names(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("SECRET")
    (tmp_path / "secret.md").write_text("SECRET")
    texts = (
        titled(
            rf"\section{{Introduction}}See \lstinputlisting{{{tmp_path}/secret.tex}} this text."
        ),
        f"---\ntitle: T\n---\n![x]({tmp_path}/secret.md) and this text.\n",
    )

    assert all("SECRET" not in read(text)[1] for text in texts)


SAVED = word(f"---\ntitle: {TITLE}\n---\nText.\n")
PDF = pdf("A Title of Words", "An abstract.")
LATEX = "\\documentclass{article}\n"
BAD: dict[str, tuple[bytes | str, str]] = {
    "LaTeX without a title": (f"{LATEX}\\begin{{document}}x", "has no title that was found"),
    "LaTeX with a title of 100 kB": (titled("x", "word " * 20_000), "expected at most 20,000"),
    "LaTeX of 17 MB": (LATEX + "x" * (17 * 2**20), "more than 16 MB"),
    "LaTeX with an open formula": (titled("$x_{"), "pandoc cannot read this LaTeX draft"),
    "broken front matter": ("---\ntitle: a: b\n---\n\nText.\n", "YAML"),
    "a Word document without text": (rezipped(SAVED, None), "zip archive|pandoc cannot read|query as"),
    "a Word document of broken XML": (rezipped(SAVED, "<w:document"), "pandoc cannot read"),
    "a cut PDF": (PDF[:300], "but this one is damaged"),
    "a PDF without text": (raw_pdf(), "has no text: it is a scan"),
    "a PDF with a password": (pdf("A Title", "Text.", password="x"), "this one is encrypted"),
    "a PDF whose pages hold each other": (
        raw_pdf(pages=b"<< /Kids [2 0 R] /Count 1 >>"), "this one is damaged",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_draft_that_cannot_be_read_is_one_clear_line(name: str) -> None:
    data, fact = BAD[name]

    with pytest.raises(BadInputError, match=fact) as caught:
        parse(data)

    assert "\n" not in str(caught.value)


def test_references_that_a_word_file_or_a_pdf_prints_are_found_in_the_corpus(
    sample_index: IndexFolder,
) -> None:
    first, second = sample_index.papers[3], sample_index.papers[5]
    printed = [
        f"[{number}] {', '.join(paper.authors)}. “{paper.title},” J. X, {paper.year}."
        for number, paper in enumerate((first, second), 1)
    ]
    third = sample_index.papers[7]
    printed.append(f"[3] {third.authors[0]} {third.year} {third.title}. J. X 90, 1-9.")
    printed.append("[4] N. Obody, “A title that the corpus does not have,” J. X, 2001.")
    text = "\n\n".join(["# Maps of trees", "We draw trees as maps.", "# References", *printed])

    file = parse_queries(word(text), name="draft.docx")
    assert file.cited is not None
    rows = listed_rows(file.cited, sample_index.papers)
    lines = printed_references(
        ["References", *(half for one in printed for half in one.split("“"))]
    )

    assert rows == [frozenset({3}), frozenset({5}), frozenset({7}), frozenset()]
    assert listed_rows(lines, sample_index.papers) == rows
