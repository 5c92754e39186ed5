"""A library of whole texts becomes a graph: its papers, what they cite, and the sentences that cite."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from support.documents import pdf, placed, raw_pdf, whole_text
from support.types import Invoke, MonkeyPatch

from citerec.bibliography.entry import Entry
from citerec.build.corpora import open_corpus, summarise
from citerec.build.index import BuildConfig, build_index, grow_index
from citerec.corpus.collector import RecordCounter
from citerec.corpus.readers import find_source, read_papers
from citerec.errors import BadInputError, ConfigError
from citerec.files import cache as files_cache
from citerec.files.isolated import isolated
from citerec.index.folder import open_index
from citerec.library import reading
from citerec.library.attached import names_in
from citerec.library.lookup import Records
from citerec.library.pdf import read_pdf
from citerec.library.printed import printed_sentences
from citerec.types import Context, Paper

BASIL = "Sacred basil heals the wounds of laboratory mice"
MINT = "Wild mint repels the larvae of many mosquitoes"
SAGE = "Common sage improves the memory of older adults"
TO_BASIL = f"Lovelace A. {BASIL}. J Inv Plants. 2021;3:7-19."
TO_MINT = f"Hopper G. {MINT}. J Inv Plants. 2021;4:1-5."
CLAIM = "Leaves of many plants heal wounds in a few days"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(files_cache, "cache_folder", lambda: tmp_path / "cache")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder of three PDFs, of which one cites the two others."""
    folder = tmp_path / "library"
    folder.mkdir()
    others = [
        f"{n}. Other N. A book that nobody here has, volume {n}. 1999."
        for n in (3, 4, 5)
    ]
    references = [f"1. {TO_BASIL}", f"2. {TO_MINT}", *others]
    text = f"{CLAIM} [1, 2]. Nothing is cited in this sentence of the text."
    (folder / "basil.pdf").write_bytes(
        whole_text(BASIL, "Mice heal.", others, "10.1234/basil")
    )
    (folder / "mint.pdf").write_bytes(whole_text(MINT, "Larvae flee.", others))
    (folder / "sage.pdf").write_bytes(whole_text(SAGE, text, references))
    return folder


def papers_of(
    path: Path, log: Callable[[str], None] = print, format: str = "auto"
) -> dict[str, Paper]:
    return {
        paper.id: paper
        for paper in open_corpus(path, format).papers(RecordCounter(False), log=log)
    }


@pytest.mark.parametrize(
    ("dated", "year"),
    [
        ("Ada Lovelace, Department of Engines", None),
        ("Accepted 3 May 2012", 2012),
        ("Journal of Leaves (2013) 4, 1-9", 2013),
        ("Draft (May 2014)", 2014),
    ],
)
def test_the_year_of_a_pdf_is_not_that_of_a_citation(
    dated: str, year: int | None
) -> None:
    texts = [
        dated,
        "Leaves heal wounds (Lovelace & Hopper 2016; Allen 2017).",
        "Allen (2018) and Hopper et al. (2019) showed it in mice.",
        "It is known since the 2010s (see Lovelace 2015).",
    ]
    lines = [(20.0, 40.0 + 6 * n, 10.0, text) for n, text in enumerate(texts)]

    text = read_pdf(placed([(20.0, 20.0, 20.0, SAGE), *lines]), Path("sage.pdf"))

    assert text.entry.year == year


def test_a_folder_of_pdfs_becomes_a_graph(library: Path) -> None:
    table = list[str]()

    papers = papers_of(library, table.append)

    assert papers.keys() == {"10.1234/basil", "mint", "sage"}
    sage = papers["sage"]
    assert (sage.title, sage.year) == (SAGE, 2021)
    assert sage.abstract.startswith("We report what was found")
    assert sage.citations == ("10.1234/basil", "mint")
    assert sage.contexts == (Context(f"{CLAIM} [CITE].", ("10.1234/basil", "mint")),)
    assert table[0] == "3 whole texts:"
    assert "        2  citations of papers of this library" in table


def test_an_index_of_a_library_is_one_of_any_corpus(
    library: Path, tmp_path: Path
) -> None:
    config = BuildConfig(encoder=None)

    report = build_index(library, tmp_path / "index", config)

    assert report.manifest.corpus["format"] == "library"
    assert report.manifest.counts["papers"] == 3
    assert report.manifest.counts["citations"] == 2
    counts, years = summarise(open_corpus(library))
    assert (counts.counts["citations_inside"], years) == (2, {2021})


def test_append_reads_only_new_files(
    library: Path, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    index = tmp_path / "index"
    config = BuildConfig(encoder=None)
    build_index(library, index, config)
    log = list[str]()
    read = list[str]()

    def counted(job: Callable[[], object], name: str, instead: str) -> object:
        read.append(Path(name).name)
        return isolated(job, name, instead)

    monkeypatch.setattr(reading, "isolated", counted)
    grow_index(index, config, corpus=library, log=log.append)

    assert log == [f"{library} is unchanged since it was indexed: nothing to do"]

    new = whole_text(
        "Thyme calms the cough of small children", "Yes.", [f"1. {TO_MINT}"]
    )
    (library / "thyme.pdf").write_bytes(new)
    grow_index(index, config, corpus=library)

    assert read == ["thyme.pdf"]
    assert len(open_index(index).papers) == 4


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "jabref.bib",
            "@article{mint7, title={TITLE}, year=2021, file={:mint.pdf:PDF}}",
        ),
        (
            "of_a_group.bib",
            "@article{mint7, title={TITLE}, file={:mint.pdf:PDF}}\n"
            "@Comment{jabref-meta: fileDirectory-ada-laptop:texts;}",
        ),
        (
            "zotero.bib",
            "@article{mint7, title={TITLE}, file={Full Text:FOLDER/mint.pdf:application/pdf;Page:a.html:text/html}}",
        ),
        (
            "mendeley.bib",
            "@article{mint7, title={TITLE}, file={:FOLDER/mint.pdf:pdf}}",
        ),
        (
            "zotero.ris",
            "TY  - JOUR\nID  - mint7\nTI  - TITLE\nL1  - file://FOLDER/mint.pdf\nER  - \n",
        ),
        (
            "list.json",
            '[{"id": "mint7", "type": "article", "title": "TITLE", "issued": {}, "author": [], "file": "mint.pdf"}]',
        ),
    ],
)
def test_a_list_names_its_files(name: str, content: str, library: Path) -> None:
    mint = (
        library / "texts" / "mint.pdf" if "texts;" in content else library / "mint.pdf"
    )
    mint.parent.mkdir(exist_ok=True)
    mint.write_bytes(
        whole_text("Another title than that of its record", "Yes.", [f"1. {TO_BASIL}"])
    )
    content = content.replace("TITLE", MINT).replace("FOLDER", f"{library}")
    (library / name).write_text(content)

    papers = papers_of(library / name)

    assert papers.keys() == {"mint7"}
    assert papers["mint7"].title == MINT
    assert papers["mint7"].abstract.startswith("We report")


def test_records_and_texts_of_one_folder_are_joined_by_title(library: Path) -> None:
    record = (
        f"@article{{basil21, title={{{BASIL}}}, author={{Ada Lovelace}}, year=2021}}\n"
    )
    (library / "all.bib").write_text(
        record + "@article{gone, title={Lost}, file={:gone.pdf:PDF}}"
    )
    table = list[str]()

    papers = papers_of(library, table.append)

    assert papers["sage"].citations == ("basil21", "mint")
    assert "        1  named in the library, but missing:" in table
    assert "           gone.pdf" in table


def test_mendeleys_and_zoteros_escapes_are_read() -> None:
    assert names_in(r":C$\backslash$:/Users/ada/a.pdf:pdf") == ["C:/Users/ada/a.pdf"]
    assert names_in(r"My\: paper:files/1/a\;b.pdf:application/pdf") == [
        "files/1/a;b.pdf"
    ]
    assert names_in("a.pdf;b.pdf;c.html") == ["a.pdf", "b.pdf"]


# --- Zotero

SCHEMA = """
    CREATE TABLE itemTypes (itemTypeID INTEGER, typeName TEXT);
    CREATE TABLE libraries (libraryID INTEGER, type TEXT);
    CREATE TABLE items (itemID INTEGER, itemTypeID INT, key TEXT, libraryID INT DEFAULT 1);
    CREATE TABLE deletedItems (itemID INTEGER);
    CREATE TABLE fields (fieldID INTEGER, fieldName TEXT);
    CREATE TABLE itemData (itemID INT, fieldID INT, valueID INT);
    CREATE TABLE itemDataValues (valueID INTEGER, value);
    CREATE TABLE creators (creatorID INTEGER, firstName TEXT, lastName TEXT);
    CREATE TABLE creatorTypes (creatorTypeID INTEGER, creatorType TEXT);
    CREATE TABLE itemCreators (itemID INT, creatorID INT, creatorTypeID INT, orderIndex INT);
    CREATE TABLE itemAttachments (itemID INTEGER, parentItemID INT, path TEXT);
    INSERT INTO itemTypes VALUES (1, 'journalArticle'), (2, 'attachment'), (3, 'note');
    INSERT INTO libraries VALUES (1, 'user'), (2, 'group'), (3, 'feed');
    INSERT INTO items (itemID, itemTypeID, key) VALUES (1, 1, 'SAGE0001'), (2, 1, 'MINT0001'), (3, 2, 'FILE0001'),
        (4, 3, 'NOTE0001'), (5, 1, 'TRASH001'), (6, 2, 'FILE0002');
    INSERT INTO deletedItems VALUES (5);
    INSERT INTO fields VALUES (1, 'title'), (2, 'date'), (3, 'DOI');
    INSERT INTO itemDataValues VALUES (1, 'Common sage improves the memory of older adults'),
        (2, '2021-05-00 May 2021'), (3, 'Wild mint repels the larvae of many mosquitoes'), (4, '10.1234/mint');
    INSERT INTO itemData VALUES (1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 3, 4);
    INSERT INTO creators VALUES (1, 'Grace', 'Hopper');
    INSERT INTO creatorTypes VALUES (1, 'author');
    INSERT INTO itemCreators VALUES (2, 1, 1, 0);
    INSERT INTO itemAttachments VALUES (3, 1, 'storage:sage.pdf'), (6, 2, 'storage:gone.pdf');
"""


@pytest.fixture
def zotero(library: Path, tmp_path: Path) -> Path:
    """A data folder of Zotero: two items, of which one has its PDF and one has lost it."""
    folder = tmp_path / "Zotero"
    (folder / "storage" / "FILE0001").mkdir(parents=True)
    (library / "sage.pdf").rename(folder / "storage" / "FILE0001" / "sage.pdf")
    with closing(sqlite3.connect(folder / "zotero.sqlite")) as database:
        database.executescript(SCHEMA)
    return folder


def test_the_data_folder_of_zotero_is_a_library(zotero: Path) -> None:
    table = list[str]()

    papers = papers_of(zotero, table.append)

    assert papers.keys() == {"SAGE0001", "MINT0001"}
    assert papers["SAGE0001"].year == 2021
    assert papers["SAGE0001"].citations == ("MINT0001",)
    assert papers["MINT0001"].authors == ("Grace Hopper",)
    assert papers["MINT0001"].doi == "10.1234/mint"
    assert table[-1].endswith("storage/FILE0002/gone.pdf")


def test_works_of_all_types_have_titles_years_and_authors(zotero: Path) -> None:
    with closing(sqlite3.connect(zotero / "zotero.sqlite")) as database:
        database.executescript("""
            INSERT INTO itemTypes VALUES (4, 'patent'), (5, 'case'), (6, 'email');
            INSERT INTO items VALUES (7, 4, 'PRESS001', 1), (8, 5, 'COURT001', 2), (9, 6, 'EMAIL001', 1);
            INSERT INTO fields VALUES (4, 'issueDate'), (5, 'caseName'), (6, 'dateDecided'), (7, 'subject');
            INSERT INTO itemDataValues VALUES (5, 'A press for the oil of sage'), (6, '2003-06-10 2003-06-10'),
                (7, 'Sage Growers v. Mint Growers'), (8, 'Leaves from Tuesday');
            INSERT INTO itemData VALUES (7, 1, 5), (7, 4, 6), (8, 5, 7), (8, 6, 6), (9, 7, 8);
            INSERT INTO creators VALUES (2, 'Ada', 'Lovelace'), (3, 'Alan', 'Turing');
            INSERT INTO creatorTypes VALUES (2, 'inventor'), (3, 'attorneyAgent');
            INSERT INTO itemCreators VALUES (7, 2, 2, 0), (7, 3, 3, 1);
        """)

    papers = papers_of(zotero)

    patent = papers["PRESS001"]
    assert (patent.title, patent.year) == ("A press for the oil of sage", 2003)
    assert patent.authors == ("Ada Lovelace",)
    case = papers["COURT001"]
    assert (case.title, case.year) == ("Sage Growers v. Mint Growers", 2003)
    assert papers["EMAIL001"].title == "Leaves from Tuesday"


def test_theses_reports_and_entries_keep_where_they_are_published(zotero: Path) -> None:
    with closing(sqlite3.connect(zotero / "zotero.sqlite")) as database:
        database.executescript("""
            INSERT INTO itemTypes VALUES (4, 'thesis'), (5, 'report'), (6, 'encyclopediaArticle');
            INSERT INTO items VALUES (7, 4, 'THESIS01', 1), (8, 5, 'REPORT01', 1), (9, 6, 'ENTRY001', 1);
            INSERT INTO fields VALUES (4, 'university'), (5, 'institution'), (6, 'reportNumber'),
                (7, 'encyclopediaTitle');
            INSERT INTO itemDataValues VALUES (5, 'Sage'), (6, 'University of Herbs'), (7, 'Herb Institute'),
                (8, 'TR-7'), (9, 'Herbs from A to Z');
            INSERT INTO itemData VALUES (7, 1, 5), (7, 4, 6), (8, 1, 5), (8, 5, 7), (8, 6, 8), (9, 1, 5), (9, 7, 9);
        """)

    papers = papers_of(zotero)

    assert papers["THESIS01"].publisher == "University of Herbs"
    report = papers["REPORT01"]
    assert (report.publisher, report.issue) == ("Herb Institute", "TR-7")
    assert papers["ENTRY001"].venue == "Herbs from A to Z"


def test_what_a_feed_of_zotero_brought_is_not_in_the_library(zotero: Path) -> None:
    with closing(sqlite3.connect(zotero / "zotero.sqlite")) as database:
        database.executescript("""
            INSERT INTO items VALUES (7, 1, 'FEED0001', 3);
            INSERT INTO itemDataValues VALUES (5, 'An article that a journal announced');
            INSERT INTO itemData VALUES (7, 1, 5);
        """)

    assert papers_of(zotero).keys() == {"SAGE0001", "MINT0001"}


def test_a_data_folder_is_followed_as_zotero_changes_it(
    zotero: Path, invoke: Invoke, java: None
) -> None:
    assert invoke("library", "add", "Zotero", "--encoder", "none")[0] == 0
    with closing(sqlite3.connect(zotero / "zotero.sqlite")) as database:
        database.execute("INSERT INTO deletedItems VALUES (2)")
        database.execute("UPDATE itemDataValues SET value = '2020' WHERE valueID = 2")
        database.commit()

    code, line, _ = invoke("library", "update")

    assert (code, line) == (0, "indexes/Zotero: 0 new, 1 changed, 1 deleted\n")
    assert open_index("indexes/Zotero").papers.ids_at([0]) == ["SAGE0001"]


def test_records_in_json_beside_pdfs_are_one_library(
    library: Path, invoke: Invoke, java: None, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.chdir(library.parent)
    record = {"id": "m", "title": MINT, "authors": ["Grace Hopper"], "year": 2021}
    (library / "mine.jsonl").write_text(json.dumps(record))
    (library / "empty.pdf").write_text("no PDF")

    code, _, errors = invoke("library", "add", "library", "--encoder", "none")

    assert code == 0, errors
    papers = open_index("indexes/library").papers
    assert {*papers.ids_at([0, 1, 2])} == {"m", "10.1234/basil", "sage"}
    assert "not read, as no PDF is in them: library/empty.pdf\n" in errors


def test_a_database_is_read_while_zotero_holds_it(zotero: Path) -> None:
    with closing(sqlite3.connect(zotero / "zotero.sqlite")) as database:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")

        assert len(papers_of(zotero)) == 2


def test_a_database_of_another_version_is_one_clear_line(zotero: Path) -> None:
    with closing(sqlite3.connect(zotero / "zotero.sqlite")) as database:
        database.execute("DROP TABLE itemData")

    with pytest.raises(
        BadInputError, match=r"no such table: itemData.*export the library as BibTeX"
    ):
        papers_of(zotero)


# --- Structured texts

JATS = f"""<!DOCTYPE article PUBLIC "-//NLM//DTD JATS" "a.dtd"><article><front><article-meta>
<article-id pub-id-type="doi">10.1234/sage</article-id><title-group><article-title>{SAGE}</article-title></title-group>
<pub-date><year>2021</year></pub-date><abstract><p>We report.</p></abstract></article-meta></front><body><sec>
<p>{CLAIM} <sup><xref ref-type="bibr" rid="B1">1</xref>,<xref ref-type="bibr" rid="B2">2</xref></sup>.</p></sec></body>
<back><ref-list><ref id="B1"><mixed-citation>{TO_BASIL}</mixed-citation></ref><ref id="B2"><element-citation>
<name><surname>Hopper</surname><given-names>G</given-names></name><article-title>{MINT}</article-title><year>2021</year>
</element-citation></ref></ref-list></back></article>"""
TEI = f"""<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>{SAGE}</title></titleStmt>
<sourceDesc><biblStruct><analytic><idno type="DOI">10.1234/sage</idno></analytic><monogr><imprint>
<date when="2021-05-01"/></imprint></monogr></biblStruct></sourceDesc></fileDesc>
<profileDesc><abstract><p>We report.</p></abstract></profileDesc></teiHeader><text><body><div>
<p>{CLAIM} <ref type="bibr" target="#b0">[1,</ref> <ref type="bibr" target="#b1">2]</ref>.</p></div></body>
<back><listBibl><biblStruct xml:id="b0"><analytic><title>{BASIL}</title></analytic><monogr><imprint>
<date when="2021"/></imprint></monogr></biblStruct><biblStruct xml:id="b1"><note type="raw_reference">{TO_MINT}</note>
</biblStruct></listBibl></back></text></TEI>"""
LATEX = rf"""\documentclass{{article}}\title{{{SAGE}}}\date{{2021}}\begin{{document}}\maketitle
\begin{{abstract}}We report.\end{{abstract}}
{CLAIM}~\cite{{basil,mint}}. And this sentence cites nothing at all.
\begin{{thebibliography}}{{9}}\bibitem{{basil}} {TO_BASIL} \bibitem{{mint}} {TO_MINT}
\end{{thebibliography}}\end{{document}}"""
UNARXIVE = {
    "paper_id": "2105.00001",
    "metadata": {"title": SAGE, "update_date": "2021-05-01", "doi": "10.1234/sage"},
    "abstract": {"text": "We report."},
    "body_text": [{"text": f"{CLAIM} {{{{cite:aa}}}}, {{{{cite:bb}}}}."}],
    "bib_entries": {
        "aa": {"bib_entry_raw": TO_BASIL},
        "bb": {"bib_entry_raw": TO_MINT},
    },
}
S2ORC = {
    "paper_id": "77",
    "title": SAGE,
    "year": 2021,
    "identifiers": {"doi": "10.1234/sage"},
    "abstract": [{"text": "We report."}],
    "body_text": [
        {
            "text": f"{CLAIM} [1, 2].",
            "cite_spans": [
                {"start": len(CLAIM) + 1, "end": len(CLAIM) + 4, "ref_id": "BIBREF0"},
                {"start": len(CLAIM) + 5, "end": len(CLAIM) + 7, "ref_id": "BIBREF1"},
            ],
        }
    ],
    "bib_entries": {
        "BIBREF0": {"title": BASIL, "year": 2021},
        "BIBREF1": {
            "title": MINT,
            "year": 2021,
            "other_ids": {"DOI": ["10.1234/mint"]},
        },
    },
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sage.nxml", JATS),
        ("sage.tei.xml", TEI),
        ("sage.tex", LATEX),
        ("arxiv.jsonl", json.dumps(UNARXIVE)),
        ("s2orc.jsonl", json.dumps(S2ORC)),
    ],
)
def test_structured_texts_say_the_same(name: str, text: str, library: Path) -> None:
    (library / "sage.pdf").unlink()
    (library / name).write_text(text)

    papers = papers_of(library, format="library")

    [sage] = [paper for paper in papers.values() if paper.title == SAGE]
    assert sage.abstract == "We report."
    assert sage.year == 2021
    assert sage.citations == ("10.1234/basil", "mint")
    [context] = sage.contexts
    assert (context.text, context.cites) == (
        f"{CLAIM} [CITE].",
        ("10.1234/basil", "mint"),
    )


def test_works_that_two_papers_cite_become_papers(library: Path) -> None:
    work = "Turing A. Computing machinery and some intelligent plants. Mind. 1950. doi:10.1234/mind"
    structured = JATS.replace(
        "</ref-list>",
        f"<ref id='B3'><mixed-citation>{work}</mixed-citation></ref></ref-list>",
    )
    (library / "sage.pdf").unlink()
    (library / "sage.xml").write_text(structured)
    (library / "mint.pdf").write_bytes(whole_text(MINT, "Larvae flee.", [f"1. {work}"]))
    config = BuildConfig(encoder=None, add_cited=2)

    build_index(library, library.parent / "index", config)

    papers = open_index(library.parent / "index").papers
    [row] = papers.rows_of(["10.1234/mind"])
    assert papers[int(row)].title == "Computing machinery and some intelligent plants"


# --- What cannot be read


def test_texts_that_cannot_be_read_cost_themselves(library: Path) -> None:
    (library / "damaged.pdf").write_bytes((library / "mint.pdf").read_bytes()[:700])
    (library / "locked.pdf").write_bytes(
        pdf("A title of a paper", "Its abstract.", password="x")
    )
    (library / "scanned.pdf").write_bytes(raw_pdf())
    (library / "cut.xml").write_text(JATS[:900])
    table = list[str]()

    papers = papers_of(library, table.append)

    assert len(papers) == 3
    assert "        4  not read:" in table
    faults = " ".join(table)
    for fault in ("is encrypted", "has no text", "the XML is damaged", "is damaged"):
        assert fault in faults


def test_a_text_that_crashes_its_reader_costs_itself(
    library: Path, monkeypatch: MonkeyPatch
) -> None:
    def crashing(
        job: Callable[[], Sequence[object]], name: str, instead: str
    ) -> Sequence[object]:
        names = [file.name for file in job.args[0]]  # type: ignore[attr-defined]
        if "mint.pdf" in names:
            raise BadInputError(name, "takes more than 20 seconds")
        return job()

    monkeypatch.setattr(reading, "isolated", crashing)
    table = list[str]()

    papers = papers_of(library, table.append)

    assert papers.keys() == {"10.1234/basil", "sage"}
    assert table[-1].endswith("mint.pdf: takes more than 20 seconds")


def test_a_library_without_a_text_that_can_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "scanned.pdf").write_bytes(raw_pdf())

    with pytest.raises(ConfigError, match="holds no valid paper"):
        papers_of(tmp_path)


def test_a_single_draft_and_a_folder_of_one_are_no_library(tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text(LATEX)
    (tmp_path / "refs.bib").write_text("@article{a, title={A title}}")

    assert papers_of(tmp_path).keys() == {"a"}
    with pytest.raises(BadInputError, match="not a corpus"):
        papers_of(tmp_path / "paper.tex")


# --- Marks and references


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        ("Plants are known to heal wounds [1, 3-4].", (0, 2, 3)),
        ("Plants are known to heal wounds (2, 3).", (1, 2)),
        ("Plants are known to heal wounds.1,2 Then more.", (0, 1)),
        ("Plants are known to heal (Roe et al., 2001; Poe and Doe 2003).", (0, 2)),
        ("Roe et al. (2001) say that most plants heal.", (0,)),
        ("In 12 of the mice [95-99] no wound healed.", None),
    ],
)
def test_marks_of_every_style_are_resolved(
    text: str, cites: tuple[int, ...] | None
) -> None:
    names = (
        "Roe A. First. 2001.",
        "Loe B. Second. 2002.",
        "Poe C. Third. 2003.",
        "Noe D. Fourth. 2004.",
    )
    references = [Entry(text=name) for name in names]

    found = printed_sentences([text], references)

    assert [sentence.cites for sentence in found] == ([cites] if cites else [])


RECORDS = [
    Paper(
        id="long",
        title=BASIL,
        year=2021,
        authors=("Ada Lovelace",),
        volume="3",
        pages="7-19",
    ),
    Paper(id="short", title="Sagebrushes", year=1999, authors=("Grace Hopper",)),
    Paper(id="doi", title="Anything", doi="10.1234/j.inv.2021.07"),
]


@pytest.mark.parametrize(
    ("reference", "ids"),
    [
        (f"12. {TO_BASIL}", ["long"]),
        (
            "Lovelace A. Sacred basil heals the wo unds of labora-tory mice. 2020.",
            ["long"],
        ),
        ("Lovelace A. J. Inv. Plants 2021, 3, 7.", ["long"]),
        ("Lovelace A. J. Inv. Plants 2021, 4, 7.", []),
        ("Hopper G. Sagebrushes. Kew; 1999.", ["short"]),
        ("Allen F. Sagebrushes. Kew; 1999.", []),
        ("Roe. Title. doi: 10.1234/j.inv. 2021.07. Accessed 2022.", ["doi"]),
        ("Roe. Title. doi: 10.1234/j.inv.2021.078", []),
    ],
)
def test_a_reference_names_a_record_whatever_its_style(
    reference: str, ids: list[str]
) -> None:
    records = Records(RECORDS)

    found = records.named_in(reference)

    assert [records.papers[row].id for row in found] == ids


def test_a_library_in_json_needs_its_name(library: Path) -> None:
    """A folder of records with a PDF beside them, such as its description, is a corpus of records."""
    (library / "corpus.jsonl").write_text(
        json.dumps({"id": "m", "title": MINT, "year": 2021}) + "\n"
    )

    assert papers_of(library).keys() == {"m"}
    assert {"m", "sage"} <= {*papers_of(library, format="library")}
    assert [*read_papers(find_source(library), "library")]


def test_pdfs_beside_records_are_not_left_out_silently(
    library: Path, invoke: Invoke, java: None
) -> None:
    (library / "papers.jsonl").write_text(f'{{"id": "m", "title": "{MINT}"}}\n')

    _, _, log = invoke("index", library, "--encoder", "none")
    assert "3 PDFs not read, since there are records; --format library" in log

    _, table, _ = invoke(
        *("index", library, "--encoder", "none"), "--format", "library", "--force"
    )
    assert "3  papers" in table
