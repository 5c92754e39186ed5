"""Libraries, exports of citation databases and PubMed's XML become papers, or a fault with its place."""

import gzip
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import rispy
from hypothesis import given
from hypothesis import strategies as st

from citerec.bibliography.markup import plain_text, restored
from citerec.bibliography.ris import read_records
from citerec.corpus.readers import Located, detect_format, find_source, read_papers
from citerec.errors import BadInputError, BadRecordError
from citerec.types import Paper

Write = Callable[[str | bytes, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def read(path: Path, log: list[str] | None = None) -> tuple[str, list[Located]]:
    source = find_source(path)
    name = detect_format(source)
    lines = [] if log is None else log
    return name, list(read_papers(source, name, log=lines.append))


def papers(path: Path, log: list[str] | None = None) -> list[Paper]:
    found = [located.paper for located in read(path, log)[1]]
    assert all(isinstance(paper, Paper) for paper in found), found
    return [paper for paper in found if isinstance(paper, Paper)]


def faults(path: Path) -> list[str]:
    return [str(x.paper) for x in read(path)[1] if isinstance(x.paper, BadRecordError)]


# --- BibTeX

BIB = r"""% made by a reference manager
@string{tvcg = "IEEE Trans. Vis. " # {Comput. Graph.}}
@comment{
  @article{hidden, title = {Not a paper}}
}
@preamble{"\newcommand{\noop}[1]{}"}

@Article{muller:2001,
  author = {M{\"u}ller, J{\"o}rg and van der Berg, Anna and others},
  title = {The {\'E}tude of {BERT} \& Trees},
  journal = tvcg # { (Letters)},
  year = 2001,
  volume = {7}, number = {2}, pages = {12--15},
  doi = {https://doi.org/10.1234/ab\_c},
  abstract = {First line.
    Second line with {nested {braces}}.},
}

@inproceedings{doe2005, crossref = {vis05}, author = {Doe, Jane}, title = {Drawing Graphs}, pages = {1--8}}
@proceedings{vis05, title = {Proceedings of Vis 2005}, year = {2005}, publisher = {Example Press}}
"""


def test_a_bibtex_library_is_read_with_its_strings_accents_and_inherited_fields(
    write: Write,
) -> None:
    log: list[str] = []

    muller, doe, vis = papers(write(BIB, "refs.bib"), log)

    assert muller == Paper(
        id="muller:2001",
        title="The Étude of BERT & Trees",
        abstract="First line. Second line with nested braces.",
        year=2001,
        authors=("Jörg Müller", "Anna van der Berg"),
        venue="IEEE Trans. Vis. Comput. Graph. (Letters)",
        doi="10.1234/ab_c",
        type="article",
        volume="7",
        issue="2",
        pages="12–15",
    )
    assert (doe.year, doe.venue, doe.publisher) == (
        2005,
        "Proceedings of Vis 2005",
        "Example Press",
    )
    assert vis.id == "vis05"
    assert log == [
        "this library has no citations: the ranker cannot use them; `citerec collect` fetches them"
    ]


def test_biblatex_has_names_of_its_own_for_fields(write: Write) -> None:
    text = """@xdata{nat, journaltitle = {Nature}, date = {1999-05-01}}
@online{a, xdata = {nat}, title = {Title}, subtitle = {Sub}, url = {https://x.org/a_b}}
"""

    [paper] = papers(write(text, "refs.bib"))

    assert (paper.title, paper.venue, paper.year) == ("Title: Sub", "Nature", 1999)
    assert paper.url == "https://x.org/a_b"


def test_a_broken_bibtex_entry_is_a_fault_with_its_line_and_the_next_is_read(write: Write) -> None:
    text = """@article{a, title = {A}}

@article{b, title = {B
@article{c, title = {C} year = 2001}
@article{d, title = {D}}
@article{e, year = 2001}
"""

    name, found = read(write(text, "refs.bib"))

    assert name == "bibtex"
    assert [type(x.paper) for x in found] == [
        Paper,
        BadRecordError,
        BadRecordError,
        Paper,
        BadRecordError,
    ]
    assert [x.line for x in found] == [1, 3, 4, 5, 6]
    assert "a comma is missing" in str(found[2].paper)
    assert str(found[4].paper).endswith("line 6: this record has no title")


# --- RIS

RIS = (
    "Provider: A Publisher\r\nContent: text/plain\r\n\r\n"
    "TY  - JOUR\r\nA1  - Müller, Jörg\r\nA1  - Berg, Anna van der, Jr.\r\n"
    "T1  - A title that\r\ncontinues here\r\nY1  - 2001/05/12/Spring\r\n"
    "N2  - The abstract\r\n  goes on.\r\nJF  - Journal of Trees\r\nVL  - 7\r\nIS  - 2\r\n"
    "SP  - 12\r\nEP  - 15\r\nUR  - https://doi.org/10.1234/abc\r\nKW  - one\r\nKW  - two\r\nER  - \r\n\r\n"
    "TY  - CONF\r\nTI  - No end\r\nAU  - Doe, Jane\r\nPY  - 2005\r\nDO  - 10.1234/def\r\n"
    "TY  - BOOK\r\nTI  - No end of the one before\r\nID  - 77\r\nER  -\r\n"
)


@pytest.mark.parametrize(
    "encode",
    [
        str.encode,
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\r\n", "\n").encode(),
        lambda text: gzip.compress(text.encode()),
    ],
    ids=["CRLF", "BOM", "LF", "gzip"],
)
def test_a_ris_library_is_read_however_it_is_written(
    write: Write, encode: Callable[[str], bytes]
) -> None:
    muller, doe, book = papers(write(encode(RIS), "refs.ris"))

    assert muller == Paper(
        id="10.1234/abc",
        title="A title that continues here",
        abstract="The abstract goes on.",
        year=2001,
        authors=("Jörg Müller", "Anna van der Berg Jr."),
        venue="Journal of Trees",
        doi="10.1234/abc",
        url="https://doi.org/10.1234/abc",
        type="JOUR",
        volume="7",
        issue="2",
        pages="12-15",
    )
    assert (doe.id, doe.authors, doe.year) == ("10.1234/def", ("Jane Doe",), 2005)
    assert book.id == "77"


def test_a_record_without_any_id_is_named_by_its_file_and_line(write: Write) -> None:
    [paper] = papers(write("TY  - JOUR\nTI  - T\nER  - \n", "my.refs.ris"))

    assert paper.id == "my:1"


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


# --- PubMed

PUBMED = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN"
  "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
{}
</PubmedArticleSet>
"""
ARTICLE = """<PubmedArticle>
  <MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">101</PMID>
    <DateCompleted><Year>2001</Year></DateCompleted>
    <Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print"><Volume>13</Volume><Issue>2</Issue>
      <PubDate><MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate></JournalIssue><Title>J. Trees</Title></Journal>
    <ArticleTitle>CO<sub>2</sub> in <i>Quercus</i> &amp; more.</ArticleTitle>
    <Pagination><MedlinePgn>117-26</MedlinePgn></Pagination>
    <ELocationID EIdType="pii" ValidYN="Y">S1</ELocationID>
    <Abstract><AbstractText Label="AIM" NlmCategory="OBJECTIVE">To <b>draw</b>.</AbstractText>
      <AbstractText Label="RESULTS">Trees.</AbstractText><CopyrightInformation>x</CopyrightInformation></Abstract>
    <AuthorList CompleteYN="Y"><Author><LastName>Smith</LastName><ForeName>Ada B</ForeName></Author>
      <Author><CollectiveName>Tree Group</CollectiveName></Author></AuthorList>
    <PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType></PublicationTypeList>
    </Article></MedlineCitation>
  <PubmedData><ReferenceList><Title>References</Title>
      <Reference><Citation>x</Citation><ArticleIdList><ArticleId IdType="doi">10.5555/Z</ArticleId>
        <ArticleId IdType="pubmed">7</ArticleId></ArticleIdList></Reference>
      <ReferenceList><Reference><ArticleIdList><ArticleId IdType="doi">10.5555/Y</ArticleId></ArticleIdList></Reference>
        <Reference><Citation>no id</Citation></Reference></ReferenceList></ReferenceList>
    <ArticleIdList><ArticleId IdType="pubmed">101</ArticleId><ArticleId IdType="doi">10.5555/101</ArticleId>
    </ArticleIdList></PubmedData></PubmedArticle>"""


def article(pmid: int | str, title: str, version: int = 1, more: str = "") -> str:
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="{version}">{pmid}</PMID><Article>'
        f"<ArticleTitle>{title}</ArticleTitle>{more}</Article></MedlineCitation></PubmedArticle>"
    )


def test_an_article_of_pubmed_is_read_with_markup_labels_and_nested_references(
    write: Write,
) -> None:
    path = write(gzip.compress(PUBMED.format(ARTICLE).encode()), "pubmed26n0001.xml.gz")

    name, [found] = read(path)

    assert name == "pubmed"
    assert found.paper == Paper(
        id="101",
        title="CO2 in Quercus & more.",
        abstract="AIM: To draw. RESULTS: Trees.",
        year=1998,
        authors=("Ada B Smith", "Tree Group"),
        venue="J. Trees",
        citations=("7", "10.5555/y"),
        doi="10.5555/101",
        url="https://pubmed.ncbi.nlm.nih.gov/101/",
        type="Journal Article",
        volume="13",
        issue="2",
        pages="117-26",
    )


def test_later_versions_replace_earlier_ones_and_deletions_delete(write: Write) -> None:
    retracted = "<PublicationTypeList><PublicationType>Retracted Publication</PublicationType></PublicationTypeList>"
    first = [article(1, "one"), article(2, "two, v2", 2), article(2, "two"), article(3, "three")]
    second = [article(1, "one, corrected"), article(4, "four", more=retracted), article(5, "five")]
    deleted = "<DeleteCitation><PMID Version='1'>3</PMID><PMID>5</PMID></DeleteCitation>"
    later = PUBMED.format("\n".join([*second, deleted])).encode()
    write(PUBMED.format("\n".join(first)), "dump/baseline/pubmed26n0001.xml")
    write(b"MD5 = 0\n", "dump/baseline/pubmed26n0001.xml.md5")
    path = write(gzip.compress(later), "dump/updatefiles/pubmed26n0002.xml.gz")
    log: list[str] = []

    found = papers(path.parent.parent, log)

    assert {p.id: p.title for p in found} == {"1": "one, corrected", "2": "two, v2"}
    assert log == [
        "left out 4 records that later ones replace or delete",
        "left out 1 records that were retracted",
    ]


def test_a_book_of_pubmed_is_a_paper(write: Write) -> None:
    book = """<PubmedBookArticle><BookDocument><PMID Version="1">9</PMID><Book><Publisher><PublisherName>NIH
    </PublisherName></Publisher><BookTitle>Tree Reviews</BookTitle><PubDate><Year>1993</Year></PubDate></Book>
    <ArticleTitle>Oak</ArticleTitle><Abstract><AbstractText>Tall.</AbstractText></Abstract></BookDocument>
    </PubmedBookArticle>"""

    [paper] = papers(write(PUBMED.format(book), "p.xml"))

    assert (paper.title, paper.year, paper.venue) == ("Oak", 1993, "Tree Reviews")
    assert (paper.abstract, paper.publisher) == ("Tall.", "NIH")


def test_an_endless_record_of_xml_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citerec.corpus.readers.pubmed.LONGEST", 2**20)
    path = write("<PubmedArticleSet><PubmedArticle>" + "<a>" * 2**20, "a.xml")

    with pytest.raises(BadInputError, match="a record of over 1,048,576 bytes"):
        read(path)


# --- Markup


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b and c > d", "a < b and c > d"),
        ("H<sub>2</sub>O<br/>two", "H2O two"),
        ("&lt;i&gt;E. coli&lt;/i&gt; AT&amp;T", "E. coli AT&T"),
        ("<jats:title>Summary.</jats:title><jats:p>A</jats:p><jats:p>B</jats:p>", "A B"),
        ("f <jats:tex-math>\\alpha</jats:tex-math><mml:mi>α</mml:mi>", "f α"),
        ("<" * 50_000 + "</i", "<" * 50_000 + "</i"),
    ],
)
def test_markup_is_removed_and_other_brackets_stay(text: str, expected: str) -> None:
    assert plain_text(text) == expected


def test_an_inverted_index_has_gaps_and_a_limit() -> None:
    assert restored({"IndexLength": 2, "InvertedIndex": {"b": [7], "a": [0, 2]}}) == "a a b"
    assert restored({"a": [10**18], "b": [None, 1.5], "c": "x"}) == "a"
    with pytest.raises(ValueError, match="abstract has 2,000,005 characters; expected"):
        restored({"word": [0] * 400_001})


# --- Faults


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("\n" * 60_000 + "x", "a.bib"),
        ("@misc{a, title={" + "{" * 100_000, "a.bib"),
        ("@misc{a, title={A}, author={" + "A and " * 20_000 + "B}}", "a.bib"),
        ("TY  - JOUR\nTI  - A\n" + "more\n" * 50_000, "a.ris"),
        ("TY  - JOUR\nTI  - A\n" + "AU  - B\n" * 20_000, "a.ris"),
        ('[{"title": "' + "\\\\" * 200_000, "a.json"),
        ('[{"title": "A", "issued": ' + "{" * 200_000, "a.json"),
    ],
    ids=lambda value: value[-8:].strip() if len(value) > 8 else value,
)
def test_hostile_texts_are_read_in_linear_time(write: Write, content: str, name: str) -> None:
    start = time.process_time()

    with suppress(BadInputError):
        read(write(content, name))

    assert time.process_time() - start < 3


BOMB = f"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<PubmedArticleSet>{article(1, "&b;&c;")}</PubmedArticleSet>"""
BAD = {
    "Latin-1 BibTeX": (b"@article{a,\ntitle={\xe9}}", "a.bib", "not UTF-8"),
    "Latin-1 RIS": (b"TY  - JOUR\nTI  - \xe9\n", "a.ris", "not UTF-8"),
    "cut XML": (PUBMED.format(article(1, "a"))[:-8].encode(), "a.xml", "the XML is cut off"),
    "cut record of XML": (
        PUBMED.format(article(1, "a") + "\n<PubmedArticle><x>")[:-22].encode(),
        "a.xml",
        "the XML is cut off",
    ),
    "cut gzip": (gzip.compress(RIS.encode())[:-20], "a.ris.gz", "the file is cut off"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_to_its_end_is_one_line(write: Write, name: str) -> None:
    content, file, message = BAD[name]

    with pytest.raises(BadInputError) as caught:
        read(write(content, file))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert file in str(caught.value)


FAULTS = {
    "no title in RIS": (
        "TY  - JOUR\nAU  - A\nER  -\n",
        "a.ris",
        "line 1: this record has no title",
    ),
    "no title in BibTeX": ("@misc{a,}\n", "a.bib", "line 1: this record has no title"),
    "comma in BibTeX": ("@misc{a, title={A} year=1}", "a.bib", "a comma is missing"),
    "open brace in BibTeX": ("@misc{a, title={A", "a.bib", "cannot be read"),
    "long title": (f"TY  - JOUR\nTI  - {'x' * 20_001}\n", "a.ris", "'title' has 20,001 characters"),
    "XML": (
        PUBMED.format(f"{article(1, 'a')}\n{article(2, '<b>x')}\n{article(3, 'c')}"),
        "a.xml",
        "line 6: this record is not well-formed XML",
    ),
    "XML without an id": (PUBMED.format(article("", "a")), "a.xml", "no 'id' in this record"),
    "entities of a DTD are not expanded": (BOMB, "a.xml", "undefined entity"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_record_is_one_line_with_file_and_line(write: Write, name: str) -> None:
    content, file, message = FAULTS[name]

    [fault] = faults(write(content, file))

    assert message in fault
    assert "\n" not in fault
    assert f"{file}, line " in fault
