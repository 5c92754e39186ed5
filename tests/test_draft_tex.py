"""Drafts as LaTeX: fields of the common classes, includes, macros, and the references that they cite."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citerec.drafts import QueryFile, parse_queries, read_queries
from citerec.drafts.tex import source as tex_source
from citerec.errors import BadInputError

ABSTRACT = "We rank the papers that a manuscript should cite, without any figure."
ENVIRONMENT = f"\\begin{{abstract}}\n{ABSTRACT}\n\\end{{abstract}}\n"


def parse(text: str) -> QueryFile:
    return parse_queries(text.encode(), name="draft.tex")


def titled(rest: str, title: str = "T") -> str:
    return f"\\documentclass{{article}}\n\\title{{{title}}}\n\\begin{{document}}\n{rest}\n\\end{{document}}\n"


def write(folder: Path, **files: str) -> Path:
    """Write `name.tex` for each argument, `refs.bib` for `refs`; returns the path of `draft.tex`."""
    for name, text in files.items():
        suffix = {"refs": "bib", "bbl": "bbl"}.get(name, "tex")
        (folder / f"{'draft' if name == 'bbl' else name}.{suffix}").write_text(text)
    return folder / "draft.tex"


def titles(file: QueryFile) -> tuple[str, ...]:
    return file.cited.titles if file.cited else ()


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

    [query] = parse(text).queries

    assert query.title == "CiteNet: ranks and ranks"
    assert (
        query.abstract
        == "With CiteNet, a deep net beats a shallow tree; CiteNet wins in all of the tests."
    )


def test_a_macro_that_defines_itself_ends() -> None:
    text = titled(r"\def\a{\b\b}\def\b{\a\a}\begin{abstract}\a and more of it\end{abstract}")

    assert "and more of it" in parse(text).queries[0].abstract


def test_accents_formulas_and_marks_become_text() -> None:
    text = titled(
        r"\begin{abstract}K\"onig's 90\% of $\alpha$--values~\cite{a}\footnote{Not this.} "
        r"\mbox{is} here, \href{http://x}{and there}.\end{abstract}",
        title=r"The {\L}ukasz \& M\"uller na\"{\i}ve method",
    )

    [query] = parse(text).queries

    assert query.title == "The Łukasz & Müller naïve method"
    assert query.abstract == "König's 90% of α–values is here, and there."


def test_comments_and_what_iffalse_hides_are_not_read() -> None:
    hidden = r"""\iffalse \cite{a} \ifx x y \fi \cite{b} \else \cite{seen} \fi
    % \cite{c}
    \begin{comment}\cite{d}\end{comment} \verb|\cite{e}| \begin{verbatim}
    \cite{f} % \end{verbatim} 100\% \cite{kept} \\% \cite{g}
    \iff"""

    file = parse(titled(hidden) + r"\cite{after}")

    assert "2 citation keys, but no bibliography was found" in file.notices[-1]


def test_a_draft_in_latin_1_is_read_by_its_declared_encoding() -> None:
    text = "\\documentclass{article}\\usepackage[latin1]{inputenc}\\title{Über}\\begin{document}x"

    assert parse_queries(text.encode("latin-1")).queries[0].title == "Über"


# --- included files


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
    assert [n.split(": ", 1)[1] for n in file.notices[2:]] == [
        r"\input: a includes itself; it is not read again",
        r"\input: b includes itself; it is not read again",
        r"\input: gone is missing; the draft is read without it",
    ]


def test_files_that_multiply_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tex_source, "MAX_FILES", 50)
    twice = {f"a{i}": f"\\input{{a{i + 1}}}\\input{{a{i + 1}}}" for i in range(10)}
    draft = write(tmp_path, draft=titled(r"\input{a0}"), **twice)

    with pytest.raises(BadInputError, match="has more than 16 MB or 50 files"):
        read_queries(draft)


def test_nothing_is_followed_from_standard_input() -> None:
    file = parse(titled(r"\section{Introduction}A text.\input{a}\cite{k}\bibliography{refs}"))

    assert "\\input: a cannot be followed from standard input" in file.notices[2]
    assert "the bibliography refs cannot be followed from standard input" in file.notices[3]


# --- references


BIB = "".join(
    f"@misc{{{k}, title={{The {k} paper}}}}\n" for k in ("one", "two", "three", "four", "five")
)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (r"\cite{one}", "one"),
        (r"\citep[see][p.~3]{one, two}\Citet*{three}", "one two three"),
        (r"\autocite{one}\parencite[3]{two}\textcite{three}\footcite{four}", "one two three four"),
        (r"\autocites[a]{one}[b][c]{two}\cite{three}", "one two three"),
        (r"\nocite{five}\citeauthor{one}", "five one"),
        (r"\nocite{*}", "one two three four five"),
        (r"\newcommand{\seealso}[2]{see \citep[#1]{#2}}\seealso{p. 3}{two}", "two"),
        (r"\cite{one,\n two}\citestyle{three}\citation{four}".replace(r"\n", "\n"), "one two"),
    ],
)
@pytest.mark.parametrize("command", [r"\bibliography{refs}", r"\addbibresource{refs.bib}"])
def test_cited_keys_are_looked_up(tmp_path: Path, text: str, keys: str, command: str) -> None:
    file = read_queries(write(tmp_path, draft=titled(text + command), refs=BIB))

    assert titles(file) == tuple(f"The {key} paper" for key in keys.split())
    assert file.cited_from == f"{tmp_path / 'draft.tex'} (refs.bib)"


def test_a_broken_entry_of_the_bibliography_is_named(tmp_path: Path) -> None:
    broken = "@misc{six, title={Never closed\n" * 7
    draft = write(tmp_path, draft=titled(r"\cite{one,six}\bibliography{refs}"), refs=BIB + broken)

    file = read_queries(draft)

    assert titles(file) == ("The one paper",)
    said = [notice.split(": ", 1)[1] for notice in file.notices[2:]]
    assert said[0].startswith("refs.bib, line 6: '@misc{six, title={Never closed' cannot be read")
    assert all(one.endswith("; the entry is ignored") for one in said[:5])
    assert said[5:] == [
        "refs.bib: 2 more entries are ignored",
        "1 citation key is not in refs.bib: six",
    ]


ITEMS = r"""\begin{thebibliography}{9}
\bibitem{plain} A. Lovelace and C. Babbage. \newblock Engines that count. \newblock {\em Journal of X}, 1943.
\bibitem[Lovelace(1943)]{natbib} Ada Lovelace. Notes on the engine. In \emph{Memoirs}, 1943.
\bibitem{ieee} A. Lovelace, ``Looms and numbers,'' \emph{J. X}, vol. 3, 1850. doi: 10.1234/loom
\bibitem{springer} Lovelace, A., Babbage, C.: Weaving algebraic patterns. In: Proc. X. pp. 1--2 (1851)
\bibitem{unused} B. Nobody. Never cited. 1900.
\end{thebibliography}"""


def test_formatted_references_are_read_by_their_style() -> None:
    file = parse(titled(rf"\cite{{plain,natbib,ieee,springer}}{ITEMS}"))

    assert titles(file) == (
        "Engines that count", "Notes on the engine", "Looms and numbers", "Weaving algebraic patterns",
    )  # fmt: skip
    assert file.cited is not None
    assert file.cited.ids == {"10.1234/loom"}
    assert file.cited.entries[0].year == 1943


def test_the_bbl_of_a_draft_stands_in_for_its_bib(tmp_path: Path) -> None:
    bbl = r"\entry{a}{article}{}\field{title}{Alpha}\field{subtitle}{a story}\field{year}{2001}\endentry"

    file = read_queries(
        write(tmp_path, draft=titled(r"\cite{a}\addbibresource{gone.bib}"), bbl=bbl)
    )

    assert titles(file) == ("Alpha: a story",)
    assert len(file.notices) == 2


# --- wild text


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.sampled_from(
            r"\title{ \begin{abstract} \end{abstract} \cite{ \input{ \newcommand{\x} \def\x#1 \x \iffalse \fi "
            r"\verb| { } [ ] % $ \\ \" \frac \bibitem{ \section{ \author{ \and ^ _ & # \href{ \begin{itemize} é".split()
        )
        | st.text(max_size=3),
        max_size=40,
    )
)
def test_any_latex_gives_a_draft_or_a_clear_error(pieces: list[str]) -> None:
    try:
        file = parse("\\documentclass{article}\n" + " ".join(pieces))
    except BadInputError as error:
        assert "\n" not in str(error)
        return

    assert file.queries[0].title


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        "\\title{",
        "\\title[",
        "\\begin{abstract}",
        "\\iffalse ",
        "\\cite[",
        "\\bibitem[",
        "$x_{",
        "\\frac",
    ],
)
def test_a_repeated_piece_takes_linear_time(piece: str) -> None:
    parse(titled(piece * 20_000))
