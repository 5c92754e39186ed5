"""Drafts as LaTeX, Markdown, Word and PDF: fields, included files, and the references that they cite."""

import json
from base64 import b64encode
from html import escape
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from support.documents import pdf, placed, raw_pdf, rezipped, word
from support.tables import table
from support.types import MonkeyPatch

from citerec.drafts import (
    MAX_FIRST_PARAGRAPHS,
    TITLE_PAGE,
    QueryFile,
    latex,
    parse_queries,
    read_queries,
)
from citerec.drafts.cited import printed_references
from citerec.errors import BadInputError
from citerec.files import isolated as inputs
from citerec.index.folder import IndexFolder
from citerec.match.papers import listed_rows

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


@pytest.mark.parametrize("name", ["Paper ID 1234", "Submission 7", "Anonymous Authors"])
def test_a_draft_for_blind_review_has_no_authors(name: str) -> None:
    draft = titled(f"\\author{{{name}}}\\maketitle{ENVIRONMENT}", TITLE)

    [query] = parse(draft, "draft.tex").queries

    assert (query.title, query.authors) == (TITLE, ())


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
    "mdpi": (
        r"\documentclass[water,article]{Definitions/mdpi}\Title{Deep Ranking}\date{2021}"
        r"\Author{Ada Lovelace $^{1,\dagger}$\orcidA{} and Charles Babbage $^{2,}$*}"
        rf"\abstract{{{ABSTRACT}}}\begin{{document}}Text.\end{{document}}"
    ),
    "copernicus": (
        r"\documentclass[gmd]{copernicus}\begin{document}\title{Deep Ranking}\date{2021}"
        r"\Author[1,2]{Ada}{Lovelace}\Author[2]{Charles}{Babbage}\affil[1]{X}\affil[2]{Y}"
        rf"\maketitle{ENVIRONMENT}"
    ),
    "IEEE Computer Society": (
        r"\documentclass[compsoc]{IEEEtran}\begin{document}\title{Deep Ranking}\date{2021}"
        r"\author{Ada~Lovelace,~\IEEEmembership{Fellow,~IEEE,} and Charles~Babbage}"
        rf"\IEEEtitleabstractindextext{{{ENVIRONMENT}}}\maketitle"
    ),
    "marks between names": (
        r"\documentclass{article}\usepackage{neurips_2023}\title{Deep Ranking}\date{2021}"
        r"\author{Ada Lovelace*$^{2}$ Charles Babbage (University of Y, Z)}"
        rf"\begin{{document}}\maketitle{ENVIRONMENT}"
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_fields_of_a_class_are_read(name: str) -> None:
    [query] = parse(CLASSES[name]).queries

    assert (query.title, query.abstract) == ("Deep Ranking", ABSTRACT)
    assert (query.authors, query.year) == (("Ada Lovelace", "Charles Babbage"), 2021)


def test_the_labels_of_formatted_references_cite_nothing() -> None:
    label = r"\protect\citeauthoryear{Doe, Roe, and Poe}{Doe et~al.}{2001}"
    item = rf"\bibitem[{label}]{{doe}} J. Doe. Old hives. Oikos, 2001."
    works = rf"\begin{{thebibliography}}{{1}}{item}\end{{thebibliography}}"

    found = parse(titled(rf"{ENVIRONMENT}Bees dance \cite{{doe}}.{works}"), "a.tex")

    assert found.cited
    assert len(found.cited.entries) == 1
    assert not any("citation key" in notice for notice in found.notices)


def test_macros_of_the_draft_are_expanded_in_title_and_abstract() -> None:
    text = (
        r"\newcommand{\name}{\textsc{CiteNet}\xspace}\newcommand*{\with}[2][deep]{#1 #2}\def\twice#1{#1 and #1}"
        r"\documentclass{article}\title{\name: \twice{ranks}}\begin{document}"
        r"\begin{abstract}With \name, a \with{net} beats a \with[shallow]{tree}; \name wins in all of the"
        r" tests.\end{abstract}"
    )

    title, abstract = read(text)

    assert title == "CiteNet: ranks and ranks"
    assert abstract.startswith(
        "With CiteNet, a deep net beats a shallow tree; CiteNet wins in all"
    )


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


def test_the_text_and_the_citations_of_unknown_commands_are_kept(
    tmp_path: Path,
) -> None:
    text = titled(
        r"\begin{abstract}We \added{rank \citex{two}} papers \SI{3}{\percent} faster than before, and"
        r" better.\end{abstract}\added{As \cite{one} says.}\bibliography{refs}",
        title=r"\vspace{-2cm}On \unknown{Ranks}\tnoteref{t}",
    )

    file = read_queries(write(tmp_path, draft=text, refs=BIB))

    assert file.queries[0].title == "On Ranks"
    assert (
        file.queries[0].abstract == "We rank papers 3 % faster than before, and better."
    )
    assert set(titles(file)) == {"The one paper", "The two paper"}


def test_bytes_that_are_not_utf_8_are_read_and_named(tmp_path: Path) -> None:
    old = "\\documentclass{article}\\usepackage[latin1]{inputenc}\\title{Über}\\begin{document}x"
    draft = write(tmp_path, draft=titled("\\input{part}Text.", title="Blätter"))
    (tmp_path / "part.tex").write_bytes(b"% caf\xe9\n")

    file = read_queries(draft)

    assert read(old.encode("latin-1"))[0] == "Über"
    assert file.queries[0].title == "Blätter"
    assert file.notices[-1].endswith(
        "1 byte of part is not UTF-8, and read as Windows-1252"
    )


VERBATIM = [
    r"\footnote{Data: \url{https://example.org/a%20b.csv}}",
    r"\textbf{\href{https://example.org/a%2Fb}{x} and \path{a%b} and \path|a%b|}",
    r"\verb|a % \input{gone}| and \verb!\end{document}! and \url|a%b|",
    r"\lstinline{x % y} and \mintinline[fontsize=\small]{py}|x % y|",
    "\\begin{verbatim}\n% } \\input{gone} \\end{document}\n\\end{verbatim}",
    "\\begin{lstlisting}[language=C]\n% \\input{gone} {\n\\end{lstlisting}",
    "\\begin{minted}{c}\n50 % {\n\\end{minted}",
    "\\begin{comment}\n\\input{gone} {\n\\end{comment}",
    "\\lstnewenvironment{code}{}{}\\begin{code}\n{ % \\input{gone}\n\\end{code}",
    "\\newenvironment{hidden}{\\begin{comment}}{\\end{comment}}",
    "% \\begin{verbatim}\nText. % \\end{verbatim}\n",
    "a \\\\% comment {\nb",
]


@pytest.mark.parametrize("text", VERBATIM)
def test_verbatim_text_has_no_comments_and_includes_nothing(
    tmp_path: Path, text: str
) -> None:
    body = f"{ENVIRONMENT}Text \\cite{{one}} {text} and \\cite{{two}}.\\bibliography{{refs}}"

    file = read_queries(write(tmp_path, draft=titled(body), refs=BIB))

    assert file.queries[0].abstract == ABSTRACT
    assert titles(file) == ("The one paper", "The two paper")
    assert len(file.notices) == 1  # no \input that is missing, no part that is left out


UNREADABLE = [
    ("", r"\let[=\lbrack"),
    ("", r"A {\bf b."),
    ("", "A } b."),
    ("", "A $x_{ y."),
    ("", r"\begin{quote} open"),
    ("", r"\end{quote} x."),
    ("", "\\section{Open"),
    (r"\let~=\space", ""),
    (r"\newcommand{\bad}[1]{\let[=\x #1}", r"\bad{x} and \bad{y}"),
]


@pytest.mark.parametrize(("preamble", "text"), UNREADABLE)
def test_what_pandoc_cannot_read_costs_its_part_alone(
    tmp_path: Path, preamble: str, text: str
) -> None:
    body = f"{ENVIRONMENT}First \\cite{{one}}.\n\n{text}\n\n\\begin{{itemize}}\n\\item \\cite{{two}}\n\n"
    body += "\\item b\n\\end{itemize}\n\\bibliography{refs}"
    draft = f"{preamble}\n\\newcommand{{\\name}}{{T}}\n{titled(body, title=chr(92) + 'name')}"

    file = read_queries(write(tmp_path, draft=draft, refs=BIB))

    assert (file.queries[0].title, file.queries[0].abstract) == ("T", ABSTRACT)
    assert titles(file) == ("The one paper", "The two paper")
    [line] = [notice for notice in file.notices if "left out" in notice]
    part = line.split("; the first: ")[1]
    assert f"pandoc cannot read it: 1 part of {len(part)} characters in all" in line
    assert part in f"{preamble}\n{text}"


def test_a_sentence_of_an_abstract_that_pandoc_cannot_read_is_left_out() -> None:
    abstract = (
        "We rank papers.\nHere {\\bf is a fault.\nThe others are read as they are."
    )

    text = titled(f"\\begin{{abstract}}\n{abstract}\n\\end{{abstract}}\nText.")

    assert read(text)[1] == "We rank papers. The others are read as they are."


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
    assert (
        sum("is outside the folder of the draft" in notice for notice in file.notices)
        == 4
    )


def test_a_bibliography_may_be_anywhere_in_the_repository_of_a_local_draft(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    folders = [project / "paper", project / "bib", project / ".git"]
    for folder in folders:
        folder.mkdir(parents=True)
    (folders[1] / "refs.bib").write_text("@misc{a, title={Alpha}}")
    (tmp_path / "refs.bib").write_text("@misc{b, title={Secret}}")
    (folders[1] / "link.bib").symlink_to(tmp_path / "refs.bib")
    text = titled(
        r"\cite{a,b} \bibliography{../bib/refs,../../refs,../bib/link} \input{../bib/refs.bib}"
    )
    draft = write(folders[0], draft=text)

    local = read_queries(draft)
    sent = parse_queries(draft.read_bytes(), name="draft.tex", file=draft)

    assert titles(local) == ("Alpha",)
    assert titles(sent) == ()
    refused = "is outside the folder of the draft"
    assert [
        sum(refused in notice for notice in file.notices) for file in (local, sent)
    ] == [3, 4]


def test_loops_and_missing_files_are_left_out_with_a_line(tmp_path: Path) -> None:
    draft = write(
        tmp_path,
        draft=titled(r"\section{Introduction}Begin \input{a} end.\input{gone}"),
        a=r"of \input{b}",
        b=r"it \input{a}\input{b}",
    )

    file = read_queries(draft)

    assert file.queries[0].abstract == "Begin of it end."
    faults = [notice.split(": ", 1)[1] for notice in file.notices[2:]]
    assert ["itself" in fault for fault in faults] == [True, True, False]
    assert "missing" in faults[2]


def test_files_that_multiply_are_refused(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(latex, "MAX_FILES", 50)
    twice = {f"a{i}": f"\\input{{a{i + 1}}}\\input{{a{i + 1}}}" for i in range(10)}
    write(tmp_path, **twice)

    with pytest.raises(BadInputError, match="50 files"):
        latex.flatten(rb"\input{a0}", "draft.tex", tmp_path, [])


def test_nothing_is_followed_from_standard_input() -> None:
    file = parse(
        titled(r"\section{Introduction}A text.\input{a}\cite{k}\bibliography{refs}")
    )

    assert (
        sum(
            "cannot be followed from standard input" in notice
            for notice in file.notices
        )
        == 2
    )


BIB = "".join(
    f"@misc{{{k}, title={{The {k} paper}}}}\n"
    for k in ("one", "two", "three", "four", "five")
)


@pytest.mark.parametrize(
    ("text", "keys"),
    table(
        r"""
\citep[see][p.~3]{one, two}\Citet*{three} | one two three
\autocite{one}\parencite[3]{two}\textcite{three}\footcite{four} | one two three four
\autocites[a]{one}[b][c]{two}\cite{three} | one two three
\nocite{*} | one two three four five
\newcommand{\seealso}[2]{see \citep[#1]{#2}}\seealso{p. 3}{two} | two
\begin{thm}[\cite{one}]Text \cite{two}.\end{thm} | one two
\begin{figure}\includegraphics{x}\caption{\cite{four}}\end{figure}\nocite{five} | four five
"""
    ),
)
@pytest.mark.parametrize(
    "command", [r"\bibliography{refs}", r"\addbibresource{refs.bib}"]
)
def test_cited_keys_are_looked_up(
    tmp_path: Path, text: str, keys: str, command: str
) -> None:
    file = read_queries(write(tmp_path, draft=titled(text + command), refs=BIB))

    assert titles(file) == tuple(f"The {key} paper" for key in keys.split())


NAMESAKES = ("@misc{one, title={The one paper}}", "@misc{one, title={Another}}")


@pytest.mark.parametrize(
    ("draft", "files"),
    [
        (
            r"\usepackage{mine}",
            {"mine.sty": "%\\bibliography{b}\n\\addbibresource{a.bib}"},
        ),
        (
            r"\usepackage{styles/mine}",
            {"styles/mine.sty": r"\addbibresource[x=y]{a.bib}"},
        ),
        (r"\LoadClass{mine}", {"mine.cls": r"\bibliography{a}"}),
        (r"\bibliographyfile{a}", {}),
        (r"\setup{references = a.bib}", {}),
        (
            r"\bibliography{\jobname}",
            {"draft.bib": NAMESAKES[0], "a.bib": NAMESAKES[1]},
        ),
        ("", {"b.bib": ""}),
        (r"\bibliography{gone}", {"b.bib": ""}),
        ("", {"a.bib": "", "b.bib": "", "refs/a.bib": NAMESAKES[0]}),
    ],
)
def test_bibliographies_are_declared_anywhere_or_the_only_one_is_read(
    tmp_path: Path, draft: str, files: dict[str, str]
) -> None:
    for name, text in ({"a.bib": NAMESAKES[0], "b.bib": NAMESAKES[1]} | files).items():
        if text:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)

    file = read_queries(
        write(tmp_path, draft=titled(f"{draft} \\cite{{one}} \\printbibliography"))
    )

    assert titles(file) == ("The one paper",)
    assert any("the only" in notice for notice in file.notices) == (
        files.get("b.bib") == ""
    )


def test_of_two_bibliographies_that_no_draft_declares_none_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.bib").write_text(NAMESAKES[0])
    (tmp_path / "b.bib").write_text(NAMESAKES[1])

    file = read_queries(write(tmp_path, draft=titled(r"\cite{one}")))

    assert not titles(file)
    assert "no bibliography was found" in file.notices[-1]


CHAPTERS = (
    "\\chapter{Background}Trees have been old for a very long time."
    "\\section{Summary}This chapter was about all of the old trees."
)
CHAPTER_TEXT = "Trees have been old for a very long time. This chapter was about all of the old trees."
ABSTRACTS = {
    r"\begin{Prolog}[x]{y}\chapter*{Abstract}ABSTRACT\end{Prolog}CHAPTERS": ABSTRACT,
    r"\begin{Prolog}\begin{EnglishAbstract}ABSTRACT\end{EnglishAbstract}\end{Prolog}CHAPTERS": ABSTRACT,
    r"\begin{resumo}ABSTRACT\end{resumo}CHAPTERS": ABSTRACT,
    r"\begin{resumo}Outro texto.\end{resumo}\begin{abstract}ABSTRACT\end{abstract}": ABSTRACT,
    r"\chapter*{Thanks}To all of them.\chapter*{Summary}ABSTRACT CHAPTERS": ABSTRACT,
    r"\chapter{Summary}ABSTRACT CHAPTERS": ABSTRACT,
    r"CHAPTERS\chapter*{Abstract}ABSTRACT": ABSTRACT,
    "\\abstract\n\\noindent%\nABSTRACT CHAPTERS": ABSTRACT,
    "CHAPTERS": CHAPTER_TEXT,
    r"\begin{thm}[x]Each tree is as old as the oldest of its leaves.\end{thm}": (
        "Each tree is as old as the oldest of its leaves."
    ),
}


@pytest.mark.parametrize("text", ABSTRACTS)
def test_a_summary_of_a_chapter_is_no_abstract_and_unknown_environments_hold_text(
    text: str,
) -> None:
    body = text.replace("ABSTRACT", ABSTRACT).replace("CHAPTERS", CHAPTERS)

    assert read(titled(body))[1] == ABSTRACTS[text]


def test_an_abstract_is_read_from_a_preamble_and_past_its_new_definition() -> None:
    new = r"\renewenvironment{abstract}{\begin{center}Abstract\end{center}}{}"

    assert read(f"{new}{ENVIRONMENT}{titled('Text.')}")[1] == ABSTRACT
    assert read(f"{new}{titled(ENVIRONMENT)}")[1] == ABSTRACT


def test_references_cited_in_full_in_footnotes_are_found(tmp_path: Path) -> None:
    text = r"Text\footfullcite[3]{one}, or\footnote{See \fullcite{two}.}\bibliography{refs}"

    file = read_queries(write(tmp_path, draft=titled(text), refs=BIB))

    assert titles(file) == ("The one paper", "The two paper")


OTHER_TITLES = {
    r"\newcommand{\lmutitle}[1]{\def\x{#1}}\lmutitle{TITLE}": "lmutitle",
    r"\shorttitle{A Short One}\def\mytitle{TITLE}": "mytitle",
    r"\titel{\begin{tabular}{l}By\end{tabular}}\titulo{TITLE}\titleEN{One}": "titulo",
    r"\ThesisTitle[Short]{TITLE}": "ThesisTitle",
    r"\printglossary[title={List of Acronyms}]\xsetup{a = {b}, title = {TITLE}}": "title",
    r"\usepackage[type=master, title={TITLE}]{cover}": "title",
}


@pytest.mark.parametrize("preamble", OTHER_TITLES)
def test_another_command_or_option_states_a_title_and_the_notice_says_which(
    preamble: str,
) -> None:
    source = titled(ENVIRONMENT).replace(r"\title{T}", preamble.replace("TITLE", TITLE))

    file = parse(source, "thesis.tex")

    assert file.queries[0].title == TITLE
    name = OTHER_TITLES[preamble]
    assert file.notices[1] == f"thesis.tex: no \\title was found: {name} stands for it"


@pytest.mark.parametrize(
    "end", ["newpage", "clearpage", "cleardoublepage", "pagebreak"]
)
@pytest.mark.parametrize("name", ["draft.tex", "draft.md"])
def test_a_new_page_ends_an_abstract(end: str, name: str) -> None:
    text = f"{ABSTRACT}\n\n\\{end}\n\nTrees are old, and so are most of their leaves.\n"
    draft = titled(f"\\section*{{Abstract}}\n{text}")
    draft = (
        draft if name == "draft.tex" else f"---\ntitle: T\n---\n\n# Abstract\n\n{text}"
    )

    assert read(draft, name)[1] == ABSTRACT


CLASS = "\\documentclass{article}\\begin{document}"
PROJECTS = [
    ("ms", {"ms": CLASS + r"\input{intro}", "journal_template": CLASS + "x" * 99, "intro": "x"}),
    ("draft", {"draft": CLASS, "cover_letter": CLASS + "x" * 9, "ResponseToReviewers": CLASS + "x" * 9}),
    ("book", {"book": CLASS + r"\include{a}\include{b}", "main": CLASS, "a": "x", "b": "x"}),
    ("paper", {"paper": CLASS, "appendix": CLASS + r"\input{a}\input{b}", "a": "x", "b": "x"}),
    ("thesis", {"thesis": CLASS, "notes": CLASS + "x" * 99}),
    ("x/main", {"x/main": CLASS, "supplement/main": CLASS + "x" * 99}),
    ("thesis", {"thesis": r"\input{pre}\begin{document}", "pre": CLASS}),
    ("a", {"a": CLASS, "figure": r"\documentclass[tikz]{standalone}" + "x" * 99}),
]  # fmt: skip


@pytest.mark.parametrize(("main", "sources"), PROJECTS)
def test_the_main_file_of_a_project_includes_others_or_has_its_name(
    main: str, sources: dict[str, str]
) -> None:
    files = {f"{name}.tex": text.encode() for name, text in sources.items()}

    assert latex.main_file(files) == f"{main}.tex"


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
    assert [
        entry.text.split()[0] for entry in file.cited.entries
    ] == "A. Ada A. Lovelace,".split()
    assert "“Looms and numbers,”" in file.cited.entries[2].text
    assert file.cited.ids == {"10.1234/loom"}


def test_the_bbl_of_a_draft_stands_in_for_its_bib(tmp_path: Path) -> None:
    bbl = (
        r"\bibitem{a} A. Author. \newblock Alpha: a story. "
        r"\newblock \href {https://doi.org/10.1234/a\_1} {\emph{Memoirs}}, 2001."
    )

    file = read_queries(
        write(tmp_path, draft=titled(r"\cite{a}\bibliography{gone.bib}"), bbl=bbl)
    )

    assert file.cited is not None
    [entry] = file.cited.entries
    assert (entry.text, entry.ids) == (
        "A. Author. Alpha: a story. Memoirs, 2001.",
        ("10.1234/a_1",),
    )
    assert not any("missing" in notice for notice in file.notices)


BIBLATEX = r"""\refsection{0}
\datalist[entry]{nty/global//global/global}
  \entry{loom}{article}{}{}
    \name{author}{2}{}{%
      {{un=0,uniquepart=base,hash=1}{%
         family={Lovelace},
         familyi={L\bibinitperiod},
         given={Ada\bibnamedelima King},
         giveni={A\bibinitperiod\bibinitdelim K\bibinitperiod}}}%
      {{hash=2}{%
         family={Berg},
         given={Jo},
         prefix={van\bibnamedelima den}}}%
    }
    \list{publisher}{1}{%
      {Mill}%
    }
    \strng{namehash}{12}
    \field{journaltitle}{Memoirs}
    \field{title}{Looms {that {Count}} \& weave}
    \field{year}{1843}
    \field{pages}{16\bibrangedash 24}
    \verb{doi}
    \verb 10.1234/loom_1
    \endverb
  \endentry
  \entry{old}{book}{}
    \name{author}{1}{}{%
      {{hash=3}{Hopper}{H\bibinitperiod}{Grace}{G\bibinitperiod}{}{}{}{}}%
    }
    \field{title}{Compilers}
    \field{year}{1952}
  \endentry
\enddatalist
\datalist[entry]{none}
  \entry{loom}{article}{}{}
    \field{title}{A copy for another order}
  \endentry
\enddatalist
\endrefsection"""


def test_the_bbl_of_biblatex_has_the_fields_of_its_bib(tmp_path: Path) -> None:
    source = r"\cite{loom,old,lost}\addbibresource{gone.bib}"

    file = read_queries(write(tmp_path, draft=titled(source), bbl=BIBLATEX))

    assert file.cited is not None
    loom, old = file.cited.entries
    assert loom.title == "Looms that Count & weave"
    assert loom.authors == ("Ada King Lovelace", "Jo van den Berg")
    assert (loom.year, loom.venue, loom.ids[0]) == (1843, "Memoirs", "10.1234/loom_1")
    assert (old.title, old.year, old.authors) == ("Compilers", 1952, ("Grace Hopper",))
    assert file.notices[-1].endswith("1 citation key not in draft.bbl: lost")


def test_a_bbl_that_is_a_link_to_outside_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "secret.bbl").write_text(ITEMS)
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "draft.bbl").symlink_to(tmp_path / "secret.bbl")
    draft = write(tmp_path / "paper", draft=titled(r"\cite{plain}"))

    with pytest.raises(BadInputError, match=r"draft\.bbl is a link to outside"):
        read_queries(draft)


def test_a_draft_that_is_nested_without_end_is_a_clear_error() -> None:
    with pytest.raises(BadInputError, match="cannot be read: JSONDecodeError"):
        parse(f"---\ntitle: {TITLE}\n---\n{'- ' * 2000}x", "draft.md")


def test_a_draft_that_pandoc_does_not_finish_is_a_clear_error(
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "MAX_SECONDS", 1)

    with pytest.raises(
        BadInputError, match=r"needs too much time or memory; pass its main part"
    ):
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
    bib = "".join(
        f"@misc{{{k}, title={{The {k} paper}}}}\n" for k in ("first", "second", "other")
    )
    (tmp_path / "refs.bib").write_text(bib)

    file = read_queries(tmp_path / "draft.md")

    [query] = file.queries
    assert (query.title, query.abstract) == (f"{TITLE}: a study", ABSTRACT)
    assert (query.authors, query.year) == (("Ada Lovelace", "Charles Babbage"), 2021)
    assert titles(file) == ("The first paper", "The second paper")
    assert file.notices[-1].endswith("2 citation keys not in refs.bib: third, hidden")


def test_front_matter_of_manubot_is_a_template_and_its_metadata_have_a_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "metadata.yaml").write_text(
        f"---\ntitle: {TITLE}\nauthors:\n- name: Ada Lovelace\n  github: ada\n...\n"
    )
    draft = tmp_path / "manuscript.md"
    draft.write_text(
        "{## A template.\nIt is filled later. ##}\n\n{% if manubot.authors %}{{ authors }}{% endif %}\n\n"
        f"## Abstract\n\n{ABSTRACT}\n\n## Introduction\n\n{CLAIM}\n"
    )

    [query] = read_queries(draft).queries

    assert (query.title, query.authors) == (TITLE, ("Ada Lovelace",))
    assert (query.abstract, query.body) == (ABSTRACT, (CLAIM,))

    (tmp_path / "metadata.yaml").write_text("title: [Voles\n")
    read_again = read_queries(draft, title="Voles")
    fault = "the metadata files beside it cannot be read; they are left out"
    assert any(notice.endswith(fault) for notice in read_again.notices)


CROSS_REFERENCES = """---
title: Ranking References for Manuscripts
abstract: We rank the papers that a manuscript should cite, without any figure.
bibliography: refs.bib
crossref:
  custom:
    - kind: float
      key: film
      reference-prefix: Film
---

# Introduction

Leaves fall early in the north, as @Fig-fall, @tbl-rain, @sec-methods and @eq-loss show.
Leaves fall late in the south, as @supptbl-rain, @suppfig-wind, @tab:wind and @film-fall show.
Leaves fall twice in the west [@fig-2020].
Leaves fall never in the east [@none].
"""


def test_cross_references_of_quarto_are_no_citations_unless_they_have_an_entry(
    tmp_path: Path,
) -> None:
    Path(tmp_path, "refs.bib").write_text("@book{fig-2020, title={The Fig Tree}}")
    draft = Path(tmp_path, "draft.qmd")
    draft.write_text(CROSS_REFERENCES)

    file = read_queries(draft)

    assert titles(file) == ("The Fig Tree",)
    assert file.notices[1:] == (f"{draft}: 1 citation key not in refs.bib: none",)
    uncited = [query.context for query in file.stated(context="all").queries]
    assert [text[:18] for text in uncited] == [
        "Leaves fall early ",
        "Leaves fall late i",
    ]


def test_cross_references_alone_need_no_bibliography() -> None:
    text = CROSS_REFERENCES.replace("bibliography: refs.bib", "lang: en")

    file = parse(text.replace("[@fig-2020]", "").replace("[@none]", ""), "draft.qmd")

    assert len(file.notices) == 1


def test_markdown_that_begins_with_a_badge_is_no_json() -> None:
    draft = f"[![Status](a.svg)](a.html)\n\n# {TITLE}\n\n## Abstract\n\n{ABSTRACT}\n"

    assert read(draft, "draft.md") == (TITLE, ABSTRACT)


@pytest.mark.parametrize(
    ("suffix", "include"),
    [
        ("qmd", "{{< include parts/NAME.md >}}"),
        ("Rmd", "```{r, child='parts/NAME.md'}\n```"),
        ("typ", '#include "parts/NAME.md"'),
    ],
)
def test_parts_that_a_draft_includes_are_read_from_its_folder_alone(
    tmp_path: Path, suffix: str, include: str
) -> None:
    heading = "=" if suffix == "typ" else "#"
    abstract = f"{heading} Abstract\n\n{ABSTRACT}\n\n{heading} Introduction\n\n"
    folder = tmp_path / "draft"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "text.md").write_text(CLAIM)
    (tmp_path / "secret.md").write_text("A secret that no draft may include here.")
    draft = folder / f"draft.{suffix}"
    includes = [include.replace("NAME", name) for name in ("text", "../../secret")]
    draft.write_text(f"{heading} {TITLE}\n\n{abstract}" + "\n\n".join(includes))

    file = read_queries(draft)

    [query] = file.queries
    assert (query.title, query.abstract, query.body) == (TITLE, ABSTRACT, (CLAIM,))
    assert (
        "secret.md, which the draft includes, is missing or outside" in file.notices[-1]
    )


@pytest.mark.parametrize("package", ["\\usepackage[draft]{changes}", ""])
def test_marks_of_the_package_changes_leave_the_new_text(package: str) -> None:
    title = (
        r"\title{Ranking \added[id=A,comment={sure?}]{References} \deleted{of Many} \replaced{for}{by} "
        r"\highlight[comment=x]{Manuscripts}"
        + (r"\comment[id=B]{Shorten}}" if package else "}")
    )
    hidden = "\\begin{comment}Hidden.\\end{comment}"
    body = f"\\begin{{document}}\\maketitle{ENVIRONMENT}{hidden}Text.\\end{{document}}"

    assert read(f"\\documentclass{{article}}{package}{title}{body}") == (
        TITLE,
        ABSTRACT,
    )


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


@pytest.mark.parametrize(
    "text",
    [
        f'#show: project.with(title: "{TITLE}", abstract: [{ABSTRACT}])\nCOLOR\n= Introduction\nMore.',
        f"#let titulo = [{TITLE}]\nCOLOR\n#cover(titulo)\n= Abstract\n{ABSTRACT}\n= Introduction\nMore.",
    ],
)
def test_typst_that_pandoc_does_not_know_costs_no_text(text: str) -> None:
    rules = "#let box = theme.of(\n  color.of(theme.dark),\n)\n#outline-of(theme.accents.red)"

    source = '#import "a.typ": *\n' + text.replace("COLOR", rules)

    assert read(source, "draft.typ") == (TITLE, ABSTRACT)


AUTHORS = [
    'authors: ((name: "Ada Lovelace", at: ((name: "London"),)), (name: [Charles Babbage], email: "c@b.uk"),)',
    'authors: ("Ada Lovelace", "Charles Babbage")',
    "author: [Ada Lovelace #super[1] and Charles Babbage]",
    'authors: ("Ada Lovelace": author-meta("London"), "Charles Babbage": (at: (1,)))',
]


@pytest.mark.parametrize("authors", AUTHORS)
def test_authors_of_any_template_of_typst_are_read(authors: str) -> None:
    text = f"#show: paper.with(title: [{TITLE}], {authors}, abstract: [{ABSTRACT}])\n= Introduction\nText."

    [query] = parse(text, "draft.typ").queries

    assert query.authors == ("Ada Lovelace", "Charles Babbage")[: len(query.authors)]
    assert query.authors


HAYAGRIVA = """# of this paper
lovelace:
  type: Article
  title: Notes on the Analytical Engine
  author: ["Lovelace, Ada", {name: Babbage, given-name: Charles}]
  date: 1843-09-01
  serial-number: {doi: 10.1000/notes}
  parent: [{type: Periodical, title: Scientific Memoirs}]
hopper:
  title: {value: "Compilers: the first", verbatim: true}
  author: Hopper, Grace
  url: {value: https://doi.org/10.1000/compilers, date: 2020}
"""
PREPRINT = """
turing:
  type: article
  title: Machines that play
  url: https://example.org/turing
  serial-number: {arxiv: 2101.00001v2}
"""


def test_the_bibliographies_of_typst_are_read(tmp_path: Path) -> None:
    Path(tmp_path, "refs.yml").write_text(HAYAGRIVA + PREPRINT)
    Path(tmp_path, "more.bib").write_text("@book{ba:1, title={Machines and Economy}}")
    draft = Path(tmp_path, "draft.typ")
    draft.write_text(
        f"#set document(title: [{TITLE}])\n= Introduction <sec:in>\n"
        "As @lovelace, @hopper, @turing and @ba:1 show in @sec:in.\n"
        '#bibliography(("refs.yml", "more.bib"))'
    )

    file = read_queries(draft)

    assert file.cited is not None
    first, second, third, fourth = file.cited.entries
    assert (first.title, first.year) == ("Notes on the Analytical Engine", 1843)
    assert first.authors == ("Lovelace, Ada", "Babbage")
    assert (first.venue, first.dois) == ("Scientific Memoirs", ("10.1000/notes",))
    assert (second.title, second.dois[0]) == (
        "Compilers: the first",
        "10.1000/compilers",
    )
    assert third.dois == ("10.48550/arXiv.2101.00001",)
    assert fourth.title == "Machines and Economy"
    assert not any("citation key" in notice for notice in file.notices)


def test_typst_of_which_pandoc_reads_little_is_refused() -> None:
    draft = f"= {TITLE}\n\n" + "#lorem(1).of(2).by(3) #cite(4)\n" * 20

    with pytest.raises(BadInputError, match="pandoc cannot read this Typst draft: #"):
        read(draft, "draft.typ")


# --- Word


def test_styles_and_headings_of_a_word_document_are_read() -> None:
    data = word(
        f"---\ntitle: {TITLE}\n---\n# Abstract\n\n{ABSTRACT}\n\n# Introduction\n\nMore.\n"
    )

    assert read(data) == (TITLE, ABSTRACT)
    assert (
        parse(data)
        .notices[0]
        .startswith(f"draft (Word): title {TITLE!r}, abstract 'We rank")
    )


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


# --- RTF


@pytest.mark.parametrize("mark", ["abstract-title", "block-title", ""])
@pytest.mark.parametrize("tag", ["p", "span"])
def test_the_abstract_in_the_title_block_of_a_page_is_read(mark: str, tag: str) -> None:
    label = f'<div class="{mark}">Abstract</div>' if mark else ""
    page = (
        f'<!doctype html><html><body><header id="title-block-header"><h1 class="title">{TITLE}</h1>'
        f'<div><div class="abstract">{label}<{tag}>{ABSTRACT}</{tag}></div></div></header>'
        "<h2>Introduction</h2><p>Leaves fall early in the north.</p></body></html>"
    )

    assert read(page, "page.html") == (TITLE, ABSTRACT)


@pytest.mark.parametrize(
    "note", [rb"\*\footnote", rb"\footnote", rb"\*\footnote\ftnalt"]
)
def test_rtf_loses_no_letter_after_a_dash_and_no_note(note: bytes) -> None:
    text = (
        rb"{\rtf1\ansi\uc1 {\b Voles of Gda\u324?sk, 1815\u8211?1848\par}"
        rb'\pard \u8220"Voles\u8221" lived in fields of \u8222?rye\u8220e then.{\super \chftn{%s \chftn '
        rb"Evans, R. Voles of the north. Oxford, 1996.}} Farmers saw few of them again.\par}"
    )

    file = parse(text % note, "draft.rtf")

    assert file.queries[0].title == "Voles of Gdańsk, 1815–1848"
    assert file.queries[0].abstract.startswith("“Voles” lived in fields of „rye“ then.")
    assert file.cited is not None
    assert [entry.text for entry in file.cited.entries] == [
        "Evans, R. Voles of the north. Oxford, 1996."
    ]
    uncited = [query.context for query in file.stated(context="all").queries]
    assert uncited == ["Farmers saw few of them again."]


# --- PDF


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("heading", "after"), [("Abstract", "1 Introduction"), ("ABSTRACT", "Keywords: x")]
)
def test_title_and_abstract_of_a_pdf_are_found_by_layout(
    columns: int, heading: str, after: str
) -> None:
    long_title = (
        "Ranking References for the Manuscripts of Authors Who Have Not Read Them"
    )

    data = pdf(long_title, ABSTRACT, heading=heading, after=after, columns=columns)

    assert read(data) == (long_title, ABSTRACT)


def test_ligatures_of_a_pdf_are_letters_again() -> None:
    fonts = Path(pytest.importorskip("matplotlib").get_data_path(), "fonts", "ttf")
    abstract = "An e\ufb03cient work\ufb02ow \ufb01nds o\ufb00ers of many kinds for its authors."

    data = pdf(
        "A Work\ufb02ow of Scientists", abstract, font=str(fonts / "DejaVuSerif.ttf")
    )

    plain = "An efficient workflow finds offers of many kinds for its authors."
    assert read(data) == ("A Workflow of Scientists", plain)


def test_a_pdf_without_an_abstract_uses_its_introduction() -> None:
    file = parse(
        pdf(TITLE, "Ada Lovelace wrote this.", heading="", after="1 Introduction")
    )

    assert file.queries[0].abstract.startswith("The first section begins here")
    assert len(file.queries[0].abstract) <= MAX_FIRST_PARAGRAPHS
    assert "no abstract was found: the first" in file.notices[1]


def column(
    x: float, y: float, texts: list[str], size: float = 9
) -> list[tuple[float, float, float, str]]:
    """Place lines below each other, 4 mm apart; one that begins with a blank is indented by 3 mm."""
    return [
        (x + 3 * text.startswith(" "), y + 4 * n, size, text.strip())
        for n, text in enumerate(texts)
    ]


SENTENCES = [
    "Nobody has read all papers of a field before the next",
    "one appears, so that a list is short.",
] * 6


@pytest.mark.parametrize(
    ("above", "abstract"),
    [
        (
            [(20, 32, 26, "Annals of Testing"), (20, 42, 20, "Research Article")],
            ["Abstract"],
        ),
        (
            [
                (20, 12, 26, "Biological Tests"),
                (20, 20, 8, "Biological Tests 25 (2021) 109057"),
            ],
            [],
        ),
        (
            [(20, 41, 20, "Short Communication"), (20, 25, 14, "OPEN")],
            ["A B S T R A C T"],
        ),
        ([(20, 20, 20, "Running head: CYBER-PHYSICAL SYSTEMS 1")], ["Abstract"]),
    ],
)
def test_the_title_of_a_pdf_is_below_names_of_journals_and_keeps_its_words_apart(
    above: list[tuple[float, float, float, str]], abstract: list[str]
) -> None:
    words = {20.0: "Adopting", 51.0: "Services", 80.0: "of Cyber-"}
    title = [*((x, 50.0, 20.0, word) for x, word in words.items())]
    title += [(20.0, 58.0, 20.0, "Physical Systems")]
    page = [
        *above,
        *title,
        *column(20, 80, ["Ada Lovelace", "Department of Engines"], 12),
    ]
    page += [*column(20, 100, [*abstract, *SENTENCES], 9)]
    page += [*column(20, 170, ["1 Introduction", *SENTENCES], 10)]

    data = placed(page, column(20, 30, SENTENCES * 4, 10))

    assert read(data) == (
        "Adopting Services of Cyber-Physical Systems",
        " ".join(SENTENCES),
    )


@pytest.mark.parametrize("space", [7.0, 11.0, 12.5])  # millimetres; 15 points are 5.3
def test_the_lines_of_the_title_of_a_manuscript_belong_together(space: float) -> None:
    words = ["Leaves and Rain in the", "Forests of the North and", "of the South"]
    title = [(20.0, 30.0 + space * n, 15.0, text) for n, text in enumerate(words)]
    authors = [
        (20.0, 75.0, 10.0, "Ada Lovelace"),
        (20.0, 90.0, 10.0, "Running title: Leaves"),
    ]
    text = [(20.0, 20.0 + 7 * n, 10.0, text) for n, text in enumerate(SENTENCES)]
    abstract = (20.0, 110.0, 10.0, "Abstract")

    data = placed([*title, *authors, abstract], text)

    assert (
        read(data)[0] == "Leaves and Rain in the Forests of the North and of the South"
    )


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (["The Fall of Leaves in Warm", "Weeks of a Long Rain", "Ada Lovelace"], 2),
        (["THE FALL OF LEAVES:", "THE LONG RAIN", "ADA LOVELACE"], 2),
        (["The Fall of Leaves", "Ada van Lovelace and Charles Babbage"], 1),
        (["The Fall of Leaves", "Department of Trees"], 1),
        (["Why do leaves fall?", "a note by the way"], 1),
    ],
)
def test_a_title_in_bold_may_take_several_lines(lines: list[str], title: int) -> None:
    text = [(20.0, 20.0 + 10 * n, 12.0, text) for n, text in enumerate(SENTENCES)]
    page = [(50.0, 60.0 + 10 * n, 12.0, line) for n, line in enumerate(lines)]
    document = word(
        "\n\n".join(f"**{line}**" for line in lines) + "\n\n" + " ".join(SENTENCES)
    )

    assert read(document, "draft.docx")[0] == " ".join(lines[:title])
    assert read(placed(page, text, style="B"), "draft.pdf")[0] == " ".join(
        lines[:title]
    )


@pytest.mark.parametrize(
    "cover",
    [
        [
            (30, "THÈSE DE DOCTORAT"),
            (16, "Soutenue à l'Université du Nord"),
            (16, "le 12 mai 2020 par"),
            (24, "Ada LOVELACE"),
        ],
        [
            (24, "UNIVERSITÉ DU NORD"),
            (14, "THÈSE DE DOCTORAT"),
            (20, "Ada Marie LOVELACE"),
        ],
        [
            (20, "North Coast University"),
            (14, "A thesis presented by"),
            (20, "Ada Lovelace"),
        ],
        [(12, "Dissertation"), (12, "von"), (18, "Ada Lovelace")],
    ],
)
def test_the_name_on_the_cover_of_a_thesis_is_no_title(
    cover: list[tuple[int, str]],
) -> None:
    lines = [
        *cover,
        (18, "La chute des feuilles"),
        (18, "du nord"),
        (12, "Discipline: Botanique"),
    ]
    places = [
        20.0 + sum(0.6 * size for size, _ in lines[:n]) for n in range(len(lines))
    ]
    page = [
        (30.0, y + 10 * (n == len(cover)), float(size), text)
        for n, (y, (size, text)) in enumerate(zip(places, lines, strict=True))
    ]
    text = [(20.0, 20.0 + 7 * n, 10.0, text) for n, text in enumerate(SENTENCES)]

    assert read(placed(page, text))[0] == "La chute des feuilles du nord"


def test_the_abstract_of_a_thesis_may_follow_its_contents_and_thanks() -> None:
    pages = [
        [(20.0, 40.0, 24.0, "The Fall of Leaves in the North")],
        [(20.0, 40.0, 10.0, "Abstract . . . . . . . iii")],
    ]
    pages += [
        [(20.0, 30.0, 16.0, f"Thanks {n}"), *column(20, 50, SENTENCES[:2], 10)]
        for n in "abcd"
    ]
    pages += [[(20.0, 30.0, 16.0, "Abstract"), *column(20, 50, SENTENCES, 10)]]
    pages += [
        [
            (20.0, 30.0, 16.0, "Introduction"),
            *column(20, 50, ["Leaves fall early in the north."], 10),
        ]
    ]

    file = parse(placed(*pages))

    assert file.queries[0].abstract == " ".join(SENTENCES)
    assert file.queries[0].body == ("Leaves fall early in the north.",)


CLAIM = "Trees of the north lose their leaves in the first weeks of rain."


@pytest.mark.parametrize(
    ("heading", "size", "gap"),
    [
        ("Importance", 10.0, 14.0),
        ("Introduction: Leaves of the north", 10.0, 8.0),
        ("1. Introduction: Leaves", 10.0, 8.0),
        ("Where the leaves fall", 12.0, 7.0),
        ("", 10.0, 14.0),  # the rest of its page is empty
    ],
)
def test_the_abstract_of_a_manuscript_ends_at_a_heading_or_its_page(
    heading: str, size: float, gap: float
) -> None:
    first = [(20.0, 20.0, 20.0, "A Title of Words"), (20.0, 40.0, 12.0, "Abstract")]
    first += [(20.0, 54.0 + 7 * n, 10.0, text) for n, text in enumerate(SENTENCES)]
    end = 54.0 + 7 * (len(SENTENCES) - 1)
    title = [(20.0, end + gap, size, heading)] if heading else []
    start = end + gap + 11.0 if heading else 20.0
    text = [(20.0, start, 10.0, CLAIM)]
    last = [(20.0, 20.0 + 7 * n, 10.0, text) for n, text in enumerate(SENTENCES * 3)]

    pages = [[*first, *title, *text], last] if heading else [first, [*text, *last[3:]]]
    file = parse(placed(*pages))

    assert file.queries[0].abstract == " ".join(SENTENCES)
    assert CLAIM in " ".join(file.queries[0].body)


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
def test_references_of_a_pdf_run_over_columns_and_pages(
    mark: str, heading: str
) -> None:
    items = [
        [mark.format(n) + start, *rest] for n, (start, *rest) in enumerate(LINES, 1)
    ]
    left, right = [*items[0], *items[1][:2]], [*items[1][2:], *items[2]]
    other = [*items[3], *items[4]]
    head, foot = (20.0, 12.0, 9.0, "Journal of Tests 7"), (100.0, 290.0, 9.0, "Page 12")
    first = [
        head,
        (20.0, 30.0, 20.0, "A Title of Words"),
        *column(20, 40, ["The text."], 10),
    ]
    first += [
        (20.0, 60.0, 12.0, heading),
        *column(20, 66, left),
        *column(110, 60, right),
        foot,
    ]
    caption = (24.0, 200.0, 6.0, "Figure 3. A caption of 2009.")  # between references

    cited = parse(placed(first, [head, caption, *column(24, 30, other), foot])).cited

    assert cited is not None
    assert [entry.text for entry in cited.entries] == [
        mark.format(n) + text for n, text in enumerate(ENTRIES, 1)
    ]
    assert cited.entries[1].ids == ("10.1000/ab-12",)


def test_the_references_of_each_chapter_of_a_pdf_count() -> None:
    first = column(20, 60, LINES[0] + LINES[1])
    second = column(20, 60, LINES[0] + LINES[2] + LINES[4][:2])
    pages = [
        [
            (20.0, 20.0, 20.0, "A Title of Words"),
            *column(20, 30, [CLAIM] * 5, 10),
            (20.0, 55.0, 12.0, "References"),
            *part,
            (20.0, 120.0, 16.0, "Where the rain falls"),
            *column(20, 130, SENTENCES, 10),
        ]
        for part in (first, second)
    ]

    cited = parse(placed(*pages)).cited

    assert cited is not None
    texts = [entry.text for entry in cited.entries]
    assert texts == [ENTRIES[0], ENTRIES[1], ENTRIES[2], ENTRIES[4]]


def test_a_pdf_whose_letters_are_codes_is_a_clear_error() -> None:
    codes = "Wh mny tr nd lvs r n th frst f th nrth, thr s n wy t knw whch"

    with pytest.raises(BadInputError, match=r"do not say which letters.*its source"):
        parse(placed(column(20, 30, [codes] * 20)))


@pytest.mark.parametrize("pages", [1, 2])  # a cover repeats the first page
def test_the_title_of_a_pdf_stays_where_it_is_also_a_running_head(pages: int) -> None:
    head = "Leaves and Rain in the Forests"
    title = [(20.0, 20.0, 20.0, head), (20.0, 29.0, 20.0, "of the North")]
    title += column(20, 45, ["Ada Lovelace"], 12)
    later = [[(20.0, 20.0, 8.0, head), *column(20, 40, SENTENCES, 10)]] * 2

    first = [[*title, *column(20, 80, SENTENCES, 10)]] * pages

    assert read(placed(*first, *later))[0] == f"{head} of the North"


PRINTED = [
    ["Bel, G. & Meron, E. (2012). Gradual regime shifts in extended systems.", "Theoretical Ecology, 5, 591-604."],
    ["Black, A. & McKane, A. (2010). Stochastic amplification in models.", "Journal of Biology."],
    ["Caswell, H. (1978). Predators and their coexistence. The Naturalist,", "112, 127-154."],
    ["Caswell, H. (2009). Stage, age and individuals. Oikos, 118, 1763-1782."],
    ["Dai, L. & Gore, J. (2013). Slower recovery in space. Nature, 496, 3-8."],
]  # fmt: skip
NO_REFERENCES = [
    "Conflict of Interest Statement: The authors declare that they have",
    "no conflict of interest.",
    "Copyright \u00a9 2015 Lovelace and Hopper. This is an article of open",
    "access, distributed under the terms of a license.",
]


@pytest.mark.parametrize(
    ("indent", "gap", "after"),
    [
        (0, 0, []),
        (0, 3, []),
        (4, 0, []),
        (4, 0, NO_REFERENCES),
        (0, 3, NO_REFERENCES),
        (0, 0, NO_REFERENCES),
        (0, 0, ["Figure 1. The number of trees in each of the years."]),
    ],
)
def test_references_of_a_pdf_without_marks_end_where_the_next_begins(
    indent: int, gap: int, after: list[str]
) -> None:
    lines = [(20.0, 40.0, 12.0, "References")]
    y = 42.0
    for first, *rest in PRINTED:
        y += gap
        for n, text in enumerate((first, *rest)):
            y += 6
            lines.append((20.0 + indent * n, y, 10.0, text))
    lines += [(20.0, y + 16 + 6 * n, 10.0, text) for n, text in enumerate(after)]

    cited = parse(placed([(20.0, 20.0, 20.0, "A Title of Words"), *lines])).cited

    assert cited is not None
    assert [entry.text for entry in cited.entries] == [*map(" ".join, PRINTED)]


def test_the_numbers_of_the_lines_of_a_manuscript_are_no_text() -> None:
    texts = [
        (20.0, "A Title of Words"),
        *(
            (11.0, text)
            for text in ("Abstract", *SENTENCES, "1 Introduction", *SENTENCES)
        ),
    ]
    lines = [
        (20.0, 20.0 + 8 * n, size, f"{n}  {text}")
        for n, (size, text) in enumerate(texts, 1)
    ]

    assert read(placed(lines)) == ("A Title of Words", " ".join(SENTENCES))


@pytest.mark.parametrize(("every", "stays"), [(5, False), (2, True)])
def test_numbers_of_every_fifth_line_are_no_text(every: int, stays: bool) -> None:
    texts = ["Abstract", *SENTENCES, "1 Introduction", *SENTENCES]
    lines = [
        (20.0, 30.0 + 8 * n, 11.0, f"{n}  {text}" if n % every == 0 else text)
        for n, text in enumerate(texts, 1)
    ]

    title, abstract = read(placed([(20.0, 20.0, 20.0, "A Title of Words"), *lines]))

    assert title == "A Title of Words"
    assert ("10 " in abstract) == stays
    assert (abstract == " ".join(SENTENCES)) != stays


# --- what all of them share


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
SAVED_XML = ZipFile(BytesIO(SAVED)).read("word/document.xml").decode()
PDF = pdf("A Title of Words", "An abstract.")
LATEX = "\\documentclass{article}\n"
BAD: dict[str, tuple[bytes | str, str]] = {
    "LaTeX without a title": (f"{LATEX}\\begin{{document}}x", "has no title that was found"),
    "LaTeX with a title of 100 kB": (titled("x", "word " * 20_000), "expected at most 20,000"),
    "LaTeX of 17 MB": (LATEX + "x" * (17 * 2**20), "more than 16 MB"),
    "broken front matter": ("---\ntitle: a: b\n---\n\nText.\n", "YAML"),
    "a Word document without text": (rezipped(SAVED, None), "zip archive|pandoc cannot read|query as"),
    "a Word document of broken XML": (rezipped(SAVED, "<w:document"), "pandoc cannot read"),
    "a Word document of a repaired name": (rezipped(SAVED, ""), "pandoc cannot read this Word draft"),
    "a cut PDF": (PDF[:300], "but this one is damaged"),
    "a PDF without text": (raw_pdf(), "is a scan or a picture; run OCR first .*; else pass title and"),
    "a PDF with a password": (pdf("A Title", "Text.", password="x"), "save it without a password; else pass title and"),
    "an old Word document": (b"\xd0\xcf\x11\xe0 Word", r"save it as \.docx, without a password\); .* or give title"),
    "a photo": (b"\xff\xd8\xff\xe0 JFIF", "a picture .run OCR on it"),
    "a program": (b"\x7fELF\0", "binary data .* or give title and abstract alone"),
    "a program with a long text": (b"Text. " * 1_000 + b"\0", "binary data .* or give title and abstract alone"),
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
    first, second, third = (sample_index.papers[row] for row in (3, 5, 7))
    printed = [
        f"[{number}] {', '.join(paper.authors)}. “{paper.title},” J. X, {paper.year}."
        for number, paper in enumerate((first, second), 1)
    ]
    printed.append(f"[3] {third.authors[0]} {third.year} {third.title}. J. X 90, 1-9.")
    printed.append("[4] N. Obody, “A title that the corpus does not have,” J. X, 2001.")
    text = "\n\n".join(
        ["# Maps of trees", "We draw trees as maps.", "# References", *printed]
    )

    lines = [
        "References",
        *(half for reference in printed for half in reference.split("“")),
    ]
    file = parse_queries(word(text), name="draft.docx")

    for listed in (file.cited, printed_references(lines)):
        assert listed is not None
        rows = listed_rows(listed, sample_index.papers)
        assert rows == [frozenset({3}), frozenset({5}), frozenset({7}), frozenset()]


# --- titles, abstracts and references by their places and headings


LEAVES = "Leaves and rain in old forests"
DOE, ROE = (
    "Doe, J. (2010). Leaves of old trees. Forests, 3, 1-9.",
    "Roe, A. Rain in the north. Forests, 2012.",
)
PARTS = f"# Abstract\n\n{ABSTRACT}\n\n# 1. Introduction\n\nTrees are old.\n\n"
LARGE = rf"\begin{{flushleft}}{{\Large {LEAVES}}}\\ Ada Lovelace\end{{flushleft}}\section*{{Abstract}}{ABSTRACT}"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (word(f"**{LEAVES}**\n\nAda Lovelace\n\n{PARTS}"), "bold.docx"),
        (
            word(f"Running head: RAIN\n\n{LEAVES}\n\nAda Lovelace\n\n{PARTS}"),
            "plain.docx",
        ),
        (
            word(
                "Universität Passau\n\nLehrstuhl für Botanik\n\nProf. Dr. Charles Babbage\n\n"
                f"Bachelorarbeit im Studiengang Biologie\n\n{LEAVES}\n\nBetreut von: Jane Doe\n\n{PARTS}"
            ),
            "thesis.docx",
        ),
        (
            word(
                f"**Masterarbeit**\\\n**{LEAVES}**\\\nAda Lovelace\n\nzur Erlangung des Grades\n\n{PARTS}",
                "odt",
            ),
            "lines.odt",
        ),
        (word(f"Title: {LEAVES}\n\nAda Lovelace\n\n{PARTS}"), "label.docx"),
        (
            word(f"**{LEAVES}**\n\n**lovelace@engines.org**\n\n{PARTS}"),
            "mail.docx",
        ),
        (word(f"---\ntitle: {LEAVES}\n---\n{PARTS}", "odt"), "style.odt"),
        (word(f"**{LEAVES}**\n\n{PARTS}", "rtf"), "bold.rtf"),
        (f"**{LEAVES}**\n\n{PARTS}".encode(), "bold.md"),
        (f"---\ntitle: Abstract\n---\n{LEAVES}\n\n{PARTS}".encode(), "front.md"),
        (
            f"<html><head><title>Introduction</title></head><p><b>{LEAVES}</b></p><h2>Abstract</h2><p>{ABSTRACT}".encode(),
            "a.html",
        ),
        (titled(LARGE).replace("\\title{T}", "").encode(), "large.tex"),
        (
            titled(
                rf"\chapter*{{Declaration of Authorship}}Mine.\chapter{{Abstract}}{ABSTRACT}"
            )
            .replace(
                r"\title{T}",
                rf"\newcommand{{\its}}{{{LEAVES}}}\hypersetup{{pdftitle={{\its}}}}",
            )
            .encode(),
            "pdftitle.tex",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_name_of_a_section_is_no_title(data: bytes, name: str) -> None:
    assert read(data, name) == (LEAVES, ABSTRACT)


def test_the_title_in_the_properties_is_used_after_the_text() -> None:
    stated = word(f"---\ntitle: {LEAVES}\n---\n{PARTS}")
    text = ZipFile(BytesIO(word(PARTS))).read("word/document.xml").decode()
    own = text.replace("<w:body>", f"<w:body><w:p><w:r><w:t>{TITLE}</w:t></w:r></w:p>")

    titles = [read(rezipped(stated, one))[0] for one in (text, own)]

    assert titles == [LEAVES, TITLE]


def test_the_name_of_a_section_in_the_largest_font_is_no_title() -> None:
    assert read(pdf("Table of Contents", ABSTRACT)) == (ABSTRACT, ABSTRACT)


def test_a_stated_title_may_be_the_name_of_a_kind_of_paper() -> None:
    assert (
        read(f"---\ntitle: Short Paper\n---\n\n# Abstract\n\n{ABSTRACT}\n")[0]
        == "Short Paper"
    )


def test_the_start_of_the_text_stands_for_a_title_and_says_so() -> None:
    file = parse(word(f"# Abstract\n\n{ABSTRACT}\n\n# Introduction\n\nTrees.\n"))

    assert file.queries[0].title == ABSTRACT
    assert (
        file.notices[1]
        == "draft: no title was found: the start of the text stands for it"
    )


HEADINGS = "Reference List|Literaturverzeichnis|Références|Список литературы|参考文献|**References**"


@pytest.mark.parametrize("heading", HEADINGS.split("|"))
@pytest.mark.parametrize(
    "text", [f"{DOE}\n\n{ROE}", f"1. {DOE}\n2. {ROE}"], ids=["lines", "list"]
)
def test_references_are_read_under_a_heading_of_any_language_up_to_the_next(
    heading: str, text: str
) -> None:
    heading = heading if heading.startswith("*") else f"# {heading}"
    after = "# Legend of a Map\n\nA table of 2011, with words.\n"

    file = parse(
        word(f"**{LEAVES}**\n\n{PARTS}{heading}\n\n{text}\n\n{after}"), "draft.docx"
    )

    assert file.cited
    assert [entry.text for entry in file.cited.entries] == [DOE, ROE]


IN_PARTS = {
    "each chapter": f"# References\n\n{DOE}\n\n# Methods\n\n{CLAIM}\n\n# References\n\n{DOE}\n\n{ROE}\n",
    "two headings": f"# Quellenverzeichnis\n\n{DOE}\n\n# Literaturverzeichnis\n\n{ROE}\n",
    "subheadings": f"# Bibliographie\n\n## Sources\n\n{DOE}\n\n## Ouvrages\n\n{ROE}\n\n## Annexe\n\n{CLAIM}\n",
    "numbers": f"# References\n\n[1] {DOE}\n\n# Online methods\n\n{CLAIM}\n\n# References\n\n[2] {DOE}\n\n[3] {ROE}\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        (parts, kind)
        for parts in IN_PARTS
        for kind in ("docx", "md", "txt")
        if (parts, kind) != ("subheadings", "txt")  # a text does not mark them
    ],
)
def test_all_lists_of_references_count_and_what_two_of_them_have_counts_once(
    parts: str, kind: str
) -> None:
    text = f"{LEAVES}\n\n{PARTS}{IN_PARTS[parts]}"
    plain = text.replace("\n\n", "\n").replace("#", "").replace("\n ", "\n").strip()
    data = {"docx": word(text), "md": text.encode(), "txt": plain.encode()}[kind]

    file = parse(data, f"draft.{kind}")

    assert file.cited
    texts = [entry.text.lstrip("[123] ") for entry in file.cited.entries]
    assert texts == [DOE, ROE]
    assert DOE.split(". ")[1] not in " ".join(file.queries[0].body)


NOTED = (
    f"# {LEAVES}\n\nTrees are old.[^1] Rain is not.[^2] We thank a friend.[^3]\n\n"
    f"[^1]: {DOE}\n\n[^2]: {ROE}\n\n[^3]: Thanks.\n"
)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (NOTED.encode(), "draft.md"),
        (word(NOTED), "draft.docx"),
        (
            titled(
                rf"Trees are old.\footnote{{{DOE}}} Rain is not.\footnote{{{ROE}}}\footnote{{Thanks.}}"
            ).encode(),
            "draft.tex",
        ),
    ],
    ids=["md", "docx", "tex"],
)
def test_references_in_footnotes_are_printed_references(data: bytes, name: str) -> None:
    file = parse(data, name)

    assert file.cited
    assert [entry.text for entry in file.cited.entries] == [DOE, ROE]


@pytest.mark.parametrize(
    "note",
    [
        f"Vgl. {DOE}; {ROE}",
        f"See also {DOE[:-1]}; cf. {ROE}",
        f"{DOE} Siehe auch {ROE}",
        f"See, e.g., {DOE}; and see {ROE}",
    ],
)
def test_each_reference_of_a_note_is_one(note: str) -> None:
    of_draft = parse(f"# {LEAVES}\n\nTrees are old.[^1]\n\n[^1]: {note}\n", "draft.md")
    of_page = printed_references(["1 Introduction", "Trees are old.", f"1 {note}"])

    for cited in (of_draft.cited, of_page):
        assert cited
        texts = [entry.text.removesuffix(".") for entry in cited.entries]
        assert texts == [DOE.removesuffix("."), ROE.removesuffix(".")]


def test_a_semicolon_within_a_reference_does_not_end_it() -> None:
    note = "Doe, A. Leaves; roots; and the end of trees. Leaf 2010; 5(3): 12; doi:10.1234/abc."

    file = parse(f"# {LEAVES}\n\nTrees are old.[^1]\n\n[^1]: {note}\n", "draft.md")

    assert file.cited
    assert [entry.text for entry in file.cited.entries] == [note]


def test_references_in_the_footnotes_of_a_page_are_found() -> None:
    lines = [
        "1 Introduction",
        "Trees are old in 2010.",
        f"1 {DOE[:30]}",
        DOE[30:],
        "More text.",
        f"2. {ROE}",
        "3 Thanks.",
    ]

    assert [entry.text for entry in printed_references(lines).entries] == [DOE, ROE]


def field(instruction: str, packed: str = "") -> str:
    data = (
        f"<w:fldData>{b64encode(packed.encode()).decode()}</w:fldData>"
        if packed
        else ""
    )
    begin, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}">{text}</w:fldChar></w:r>'
        for kind, text in (("begin", data), ("end", ""))
    )
    half = len(instruction) // 2  # Word breaks a long one
    runs = "".join(
        f"<w:r><w:instrText>{escape(part)}</w:instrText></w:r>"
        for part in (instruction[:half], instruction[half:])
    )
    return f"<w:p>{begin}{runs}<w:r><w:t>(Doe, 2010)</w:t></w:r>{end}</w:p>"


def citation(*titles: str) -> str:
    items = [
        {
            "id": "ITEM-1",
            "itemData": {"id": "ITEM-1", "title": title, "DOI": "10.1234/" + title[-1]},
        }
        for title in titles
    ]
    return json.dumps({"citationItems": items})


def record(title: str) -> str:
    style = f'<titles><title><style face="normal">{title}</style></title></titles>'
    return f"<EndNote><Cite><record>{style}<dates><year>2010</year></dates></record></Cite></EndNote>"


def test_references_in_the_fields_of_reference_managers_are_read() -> None:
    in_base64 = b64encode(citation("Leaves G").encode()).decode()
    text = "".join(
        (
            field(f"ADDIN ZOTERO_ITEM CSL_CITATION {citation('Leaves A')}"),
            # Mendeley's ids are those of one citation
            field(f"ADDIN CSL_CITATION {citation('Leaves B')}"),
            field(f"ADDIN CSL_CITATION {citation('Leaves C', 'Leaves B')}"),
            field(f"ADDIN EN.CITE {record('Leaves D')}"),
            field("ADDIN EN.CITE ", record("Leaves E & F")),
            f'<w:sdt><w:sdtPr><w:tag w:val="MENDELEY_CITATION_v3_{in_base64}"/></w:sdtPr></w:sdt>',
        )
    )
    start, end = SAVED_XML.split("<w:body>")
    data = rezipped(SAVED, f"{start}<w:body>{text}{end}")

    file = parse(data, "draft.docx")

    assert set(titles(file)) == {
        f"Leaves {name}" for name in ("A", "B", "C", "D", "E & F", "G")
    }
    assert len(titles(file)) == 6
    assert file.cited
    assert file.cited.ids == {f"10.1234/{name}" for name in "abcg"}


def test_references_that_are_typed_below_those_of_zotero_count_too() -> None:
    items = [
        {
            "itemData": {
                "title": title,
                "author": [{"family": family}],
                "issued": {"date-parts": [[year]]},
            }
        }
        for title, family, year in (
            ("Voles of the hedges", "Moser", 2001),
            ("Hedges of the plains", "Lind", 2002),
            ("Plains of the north", "Kern", 2003),
        )
    ]
    cited = field(
        f"ADDIN ZOTERO_ITEM CSL_CITATION {json.dumps({'citationItems': items})}"
    )
    printed = (
        "Moser, A. 2001. “Voles of the Hedges.” Journal of Small Animals 3: 1-9.",
        "Lind, B. 2002. “Hedges of the Plains.” Journal of Small Animals 4: 10-19.",
        "Kern, Z. 2003. “Plains of the North.” Journal of Plains 5: 20-29.",
        "Roe, C. 1999. “Voles and their owls.” Journal of Small Animals 1: 1-9.",
    )
    paragraphs = "".join(
        f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in ("References", *printed)
    )
    start, end = SAVED_XML.split("</w:body>")
    data = rezipped(SAVED, f"{start}{cited}{paragraphs}</w:body>{end}")

    file = parse(data, "draft.docx")

    assert file.cited
    found = [entry.title or entry.text for entry in file.cited.entries]
    assert found[:3] == [item["itemData"]["title"] for item in items]
    assert [text[:9] for text in found[3:]] == ["Roe, C. 1"]


CHUNKS = f"""{ABSTRACT} We saw `r nrow(birds)` birds.

```{{r setup, include = FALSE}}
secret <- function(M = 1) M
```

~~~ {{python}}
secret = 1
~~~

```bibtex
@article{{doe, title = {{An example}}}}
```
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"---\ntitle: {TITLE}\n---\n\n{CHUNKS}", "standard input"),
        (f"# {TITLE}\n\n{CHUNKS}\n\\section{{No LaTeX}}", "draft.Rmd"),
        (f"# {TITLE}\n\n{CHUNKS}", "draft.qmd"),
    ],
)
def test_front_matter_or_the_suffix_decide_before_code(text: str, name: str) -> None:
    title, abstract = read(text, name)

    assert title == TITLE
    assert abstract.startswith(f"{ABSTRACT} We saw birds.")
    assert "secret" not in abstract


def test_a_draft_with_a_list_of_references_is_no_list_of_references() -> None:
    works = "\n".join(
        f"[{n}] A. Smith and B. Jones. {2000 + n}. On fields and hedges. Oikos {n}:1-9."
        for n in range(1, 9)
    )
    said = (
        "Voles live in hedges that are wide, as others said [1], and old [2, 3]. " * 4
    )
    draft = f"Voles and Hedges of 2004\n\n{ABSTRACT}\n\nIntroduction\n\n{said}\n\nReferences\n\n{works}"

    for name in ("draft.txt", "draft.md"):
        found = parse(
            draft.replace("\n\nI", "\n\n# I").replace("\n\nR", "\n\n# R")
            if name[-1] == "d"
            else draft,
            name,
        )
        assert found.cited
        assert len(found.cited.entries) == 8
        assert found.queries[0].body == (
            "Voles live in hedges that are wide, as others said, and old.",
        )
    # after a heading, and in two parts, they are a list
    for listed in (f"References\n\n{works}", f"{works}\n\nReferences\n\n{works}"):
        with pytest.raises(BadInputError, match="is a printed list of references"):
            parse(listed, "list.txt")


VOLES = "Voles live in hedges that are wide, and in old ones."
UNHEADED = {  # no heading ends the abstract
    "heading.md": f"---\ntitle: Voles\n---\n# Abstract\n\n{'We count voles in forty fields. ' * 90}\n\n{VOLES}",
    "macros.tex": r"\documentclass{article}\makeatletter\let\old\section\renewcommand\section{\@ifstar{\a}{\b}}"
    r"\newcommand\b[1]{\vspace{1em}\old{#1}}\newcommand\a[1]{\old*{#1}}\makeatother\title{Voles}\begin{document}"
    rf"\maketitle\begin{{abstract}}{ABSTRACT}\end{{abstract}}\section{{Introduction}}{VOLES}\end{{document}}",
}


@pytest.mark.parametrize("name", UNHEADED)
def test_the_text_after_an_abstract_is_the_body_without_a_heading(name: str) -> None:
    [query] = parse(UNHEADED[name], name).queries

    assert query.body == (VOLES,)
    assert VOLES not in query.abstract


def test_numbers_in_parentheses_or_above_the_line_cite_where_that_is_the_style() -> (
    None
):
    text = "# A draft\n\n# Introduction\n\n"
    cites = "Voles live in old hedges (1). Owls hunt for them at night (2, 3), foxes by day (4–6).\n\n"
    counts = "We do not know (1) how many there are, (2) where they are, and (3) why they are there.\n\n"
    claim = "Hedges are cut in the early spring."

    def uncited(draft: str) -> list[str]:
        return [
            q.context or ""
            for q in parse(draft, "draft.md").stated(context="all").queries
        ]

    assert uncited(text + cites + claim) == [claim]
    notices = parse(text + cites + claim, "draft.md").stated(context="all").notices
    assert notices[-1] == "draft.md: numbers such as '(1)' are read as citations"
    raised = cites.replace(" (", "").replace(")", "").replace("2, 3", "2,3")
    assert uncited(text + raised + claim) == [claim]
    assert uncited(text + counts.replace("We", "They") + claim) == [
        counts.replace("We", "They").strip(),
        claim,
    ]

    # 3, of 4 raised
    kinds = "Rows are of kind (7); then of kind (8); last of kind (9)."
    more = "Hawks sleep by then9, in their nests.\n\n"
    assert uncited(text + raised + more + kinds) == [kinds]


def test_a_formula_is_no_claim_and_each_chapter_has_its_text() -> None:
    listed = "# References\n\n1\\. Smith A. 2004. Owls of the hedges.\n\n"
    chapter = f"# Chapter\n\n{VOLES}\n\nO(p) = 1 + 2 + 3 + T(q).\n\n{listed}"
    again = chapter.replace("Voles live", "Owls live")

    found = parse(f"---\ntitle: Voles\n---\n{chapter}{again}", "draft.md")

    sentences = [query.context for query in found.stated(context="all").queries]
    assert sentences == [VOLES, VOLES.replace("Voles live", "Owls live")]


LEGENDS = """# A draft

Voles live in old hedges that are wide.

# References

1\\. Smith A. 2004. Voles and their hedges. J Mammal 12:3-9.

2\\. Jones B. Merging of fields in the lowlands. Oikos.

3\\. Brown C. 2006. Numbers of small mammals. Oikos 13:3-9.

Figure 1. Voles in the fields of 2004 and 2006.

Table S2: Hedges, by their width in 2004.
"""


def test_a_reference_without_a_year_is_one_and_a_legend_is_none() -> None:
    cited = parse(LEGENDS, "draft.md").cited

    assert cited
    texts = [entry.text for entry in cited.entries]
    assert [text[:8] for text in texts] == ["1. Smith", "2. Jones", "3. Brown"]


def test_an_address_ends_a_reference_and_the_alphabet_divides_them() -> None:
    lines = """References
Allaire, J., & Cheng, J. (2016). Dynamic documents. Retrieved from
https://example.org/rmarkdown
Barth, M. (2022). Labels of variables for tables, models and others.
Retrieved from https://example.org/labels
Kelley, K. (2016). The means of least squares.
Journal of Statistical Software, 69 (1), 1-33.
Lenth, R. (2018). Estimated marginal means. Oikos."""

    found = printed_references(lines.split("\n")).entries

    assert [entry.text.split(",")[0] for entry in found] == [
        "Allaire",
        "Barth",
        "Kelley",
        "Lenth",
    ]


def test_a_subheading_in_the_text_is_no_title() -> None:
    text = f"## Abstract\n\n{ABSTRACT}\n\n## Introduction\n\n{VOLES}\n\n### Kinds of fields\n\n{VOLES}"

    found = parse(text, "draft.md")

    assert ABSTRACT.startswith(found.queries[0].title.removesuffix("…"))
    assert any("no title was found" in line for line in found.notices)


def test_keys_that_are_ids_need_no_bibliography() -> None:
    text = f"# Voles\n\n{VOLES[:-1]} [@doi:10.1371/journal.pone.0025764; @arxiv:1706.03762v2; @smith]."

    found = parse(text, "draft.md")

    assert found.cited
    assert [entry.ids[0] for entry in found.cited.entries] == [
        "10.1371/journal.pone.0025764",
        "10.48550/arXiv.1706.03762",
    ]
    assert any(
        "1 citation key not in a bibliography: smith" in n for n in found.notices
    )


def test_a_text_with_a_heading_of_references_has_some() -> None:
    start = f"{LEAVES}\nAda Lovelace\n\nAbstract\n{ABSTRACT}\n\n1 Introduction\nTrees are old.\n\n"
    text = (
        f"{start}References\n[1] {DOE[:30]}\n{DOE[30:]}\n[2] {ROE}\n[3] {DOE[:-1]}8.\n"
    )

    file = parse(text, "draft.txt")

    assert file.cited
    assert [entry.text[:7] for entry in file.cited.entries] == [
        "[1] Doe",
        "[2] Roe",
        "[3] Doe",
    ]
    assert "Trees are old" not in file.queries[0].abstract


@pytest.mark.parametrize(
    ("name", "kind"), [("a.docx", "Word"), ("a.odt", "OpenDocument"), ("a.pdf", "PDF")]
)
def test_a_file_that_is_not_what_its_name_says_is_named(name: str, kind: str) -> None:
    with pytest.raises(
        BadInputError, match=f"this is no {kind} document, or a damaged one; open it"
    ) as caught:
        parse(b"\xd1\xe9 broken", name)

    assert "iconv" not in str(caught.value)


@pytest.mark.parametrize("heading", ["# ", "**"])
def test_the_headings_of_a_structured_abstract_may_have_its_level(heading: str) -> None:
    end = "**" if heading == "**" else ""
    names = ["Abstract", "Background", "Methods", "Introduction"]
    abstract, background, methods, rest = (f"{heading}{n}{end}\n\n" for n in names)
    listen = f"{methods}We listen to a hundred of them.\n\n"
    text = f"# {LEAVES}\n\n{abstract}{background}Hives hum at night.\n\n{listen}{rest}Bees dance.\n"

    title, found = read(word(text), "draft.docx")

    assert (title, found) == (
        LEAVES,
        "Hives hum at night. We listen to a hundred of them.",
    )


def test_the_bibliography_of_an_essay_is_not_in_its_abstract() -> None:
    claims = [f"Trade in salt grew in the years after war number {n}." for n in (1, 2)]
    works = [
        "Doe, Jane. The Salt of Towns. Oxford, 1994.",
        "Roe, A. Sea Salt. Bern, 2001.",
    ]
    text = "\n\n".join(["# Salt and War", *claims, "# Bibliography", *works])

    found = parse(text, "essay.md")

    assert found.queries[0].abstract == " ".join(claims)
    assert found.cited
    assert len(found.cited.entries) == 2


def test_a_table_of_contents_of_a_pdf_is_no_text() -> None:
    contents = [f"{n} Leaves of part {n} {'.' * 40} {n + 4}" for n in range(1, 6)]
    first = [
        (20.0, 30.0, 20.0, "Mémoire de fin d'études"),
        (20.0, 50.0, 15.0, LEAVES),
        (20.0, 70.0, 10.0, "Sommaire"),
        *column(20, 80, contents, 10),
    ]
    text = column(20, 30, ["1 Introduction", *SENTENCES * 2], 10)

    found = parse(placed(first, text), "memoire.pdf")

    assert found.queries[0].title == LEAVES
    assert found.queries[0].abstract == " ".join(SENTENCES * 2)
    assert not any("Leaves of part" in line for line in found.lines)


def test_references_of_a_pdf_may_hang_by_half_an_inch() -> None:
    works = [
        f"{name}, A. (2010). Leaves of trees that are old and tall, seen from"
        for name in ("Abel", "Bohr", "Cole", "Dirac", "Euler", "Fermi")
    ]
    page = [(20.0, 20.0, 14.0, "References")]
    for n, work in enumerate(works):
        page += [(20.0, 30 + 12.0 * n, 10.0, work)]
        page += [(32.7, 35 + 12.0 * n, 10.0, "Their roots in the north abgerufen")]

    found = parse(placed(column(20, 30, [TITLE, *SENTENCES], 10), page), "a.pdf")

    assert found.cited
    assert len(found.cited.entries) == 6


NO_LINES = """Technische Universität München
Zur Erlangung des Grades
bee@hive.org
Mémoire de fin d'études de Bea Bee
A thesis submitted to the Senate
University of the Hive
Universität Bienenstadt
Universidad de la Colmena
Hive University
School of Dances
Institut für Bienenkunde""".split("\n")


@pytest.mark.parametrize("text", NO_LINES)
def test_lines_of_a_title_page_are_no_titles(text: str) -> None:
    assert TITLE_PAGE.match(text)


TITLES = """Division of Labour in Hives
Supervised Learning of Dances
University Rankings and the Choice of Students
University Students and Sleep
Universities in Transition
Die Universität im Wandel
Universität im Wandel
Reforming the Public University
Mémoire d'une ruche
Gender and Power at the University
École et abeilles
Thesis Writing
Schools of Bees in Flight
School of Bees: How Swarms Learn
DOI Links in Practice""".split("\n")


@pytest.mark.parametrize("text", TITLES)
def test_titles_may_begin_like_lines_of_a_title_page(text: str) -> None:
    assert not TITLE_PAGE.match(text)
