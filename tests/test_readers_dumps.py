"""Dumps of OpenAlex, Semantic Scholar, AMiner, PubMed and Crossref become papers, or a fault with its place."""

import gzip
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.bibliography.markup import plain_text, restored
from citerec.build import BuildConfig, build_index
from citerec.corpus.readers import aminer, detect_format, json_stream, openalex, read_papers
from citerec.corpus.readers.files import Broken, StreamFaultError
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.corpus.readers.source import find_source
from citerec.errors import BadInputError, BadRecordError, MissingExtraError
from citerec.types import Paper

W = "https://openalex.org/W"
OPENALEX: dict[str, Any] = {
    "id": f"{W}2741809807",
    "doi": "https://doi.org/10.7717/peerj.4375",
    "title": "The state of <i>OA</i> &amp; more",
    "display_name": "The state of <i>OA</i> &amp; more",
    "publication_year": 2018,
    "publication_date": "2018-02-13",
    "type": "article",
    "is_retracted": False,
    "is_paratext": False,
    "primary_location": {
        "is_oa": True,
        "landing_page_url": "https://doi.org/10.7717/peerj.4375",
        "source": {
            "id": "https://openalex.org/S1983995261",
            "display_name": "PeerJ",
            "host_organization_name": "PeerJ, Inc.",
        },
    },
    "authorships": [
        {"author_position": "first", "author": {"id": "A1", "display_name": "Ada Smith"}},
        {"author_position": "last", "author": {"id": "A2", "display_name": "Bo Li"}},
    ],
    "biblio": {"volume": "6", "issue": None, "first_page": "e4375", "last_page": "e4375"},
    "abstract_inverted_index": {"Despite": [0], "growth": [2], "of": [3, 7], "the": [1], "OA": [9]},
    "referenced_works": [f"{W}1", f"{W}22"],
    "cited_by_count": 7,
}
PEERJ = Paper(
    id="W2741809807",
    title="The state of OA & more",
    abstract="Despite the growth of of OA",
    year=2018,
    authors=("Ada Smith", "Bo Li"),
    venue="PeerJ",
    citations=("W1", "W22"),
    doi="10.7717/peerj.4375",
    url="https://doi.org/10.7717/peerj.4375",
    type="article",
    volume="6",
    pages="e4375",
    publisher="PeerJ, Inc.",
)
S2_PAPER: dict[str, Any] = {
    "corpusid": 12,
    "externalids": {"ACL": None, "DBLP": "conf/x", "DOI": "10.5555/12", "CorpusId": "12"},
    "url": "https://www.semanticscholar.org/paper/abc",
    "title": "Graphs of papers",
    "authors": [{"authorId": "7", "name": "Ada Smith"}, {"authorId": None, "name": "Bo Li"}],
    "venue": "",
    "publicationvenueid": None,
    "year": 2015,
    "publicationtypes": ["JournalArticle", "Review"],
    "journal": {"name": "J. Graphs", "pages": "1-9", "volume": "3"},
}
AMINER_V10 = {
    "id": "00127ee2-cb05",
    "title": "Preliminary design",
    "abstract": "We design.",
    "authors": ["Ada Smith", "Bo Li"],
    "n_citation": 50,
    "references": ["51c7e02e", "8b3c1f57"],
    "venue": "Web Information",
    "year": 2013,
}
AMINER_V12 = {
    "id": 1091,
    "title": "Preliminary design",
    "authors": [{"name": "Ada Smith", "org": "X", "id": 22}, {"name": "Bo Li", "id": 23}],
    "venue": {"raw": "Web Information", "id": 1194094125, "type": "C"},
    "year": 2013,
    "n_citation": 50,
    "page_start": "89",
    "page_end": "93",
    "doc_type": "Conference",
    "publisher": "ACM",
    "volume": "2",
    "issue": "",
    "doi": "10.5555/1091",
    "references": [2005, 7],
    "indexed_abstract": {"IndexLength": 2, "InvertedIndex": {"We": [0], "design.": [1]}},
    "fos": [{"name": "Design", "w": 0.4}],
}
AMINER_V13 = """[
{
  "_id" : "53e99784b7602d9701f3e3f5",
  "title" : "NumberInt(7) in \\"quotes\\"",
  "authors" : [ { "_id" : "53f4", "name" : "Ada Smith" }, { "_id" : "53f5" } ],
  "venue" : { "_id" : "5390", "name_d" : "Web Information" },
  "year" : NumberInt(2013),
  "n_citation" : NumberInt(50),
  "url" : [ "http://a.org", "http://b.org" ],
  "abstract" : "We design.",
  "references" : [ "53e9", ObjectId("53ea") ]
},
{
  "_id" : ObjectId("53e99784b7602d9701f3e3f6"),
  "n_citation" : NumberLong("1"),
  "year" : NaN
}
]
"""
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


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def read(path: Path, log: list[str] | None = None) -> tuple[str, list[Paper | BadRecordError]]:
    source = find_source(path)
    name = detect_format(source)
    messages = [] if log is None else log
    return name, [located.paper for located in read_papers(source, name, log=messages.append)]


def titles(path: Path, log: list[str] | None = None) -> dict[str, str]:
    return {paper.id: paper.title for paper in read(path, log)[1] if isinstance(paper, Paper)}


def one(path: Path) -> Paper:
    [paper] = read(path)[1]
    assert isinstance(paper, Paper), paper
    return paper


# --- OpenAlex


@pytest.mark.parametrize(
    "text",
    [
        lines(OPENALEX),
        json.dumps({"meta": {"count": 1}, "results": [OPENALEX], "group_by": []}),
        json.dumps([OPENALEX], indent=1),
        json.dumps(OPENALEX, indent=2),
    ],
    ids=["lines", "API", "array", "indented"],
)
def test_a_work_of_openalex_is_read_from_every_shape(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "works.json", text)

    assert read(path) == ("openalex", [PEERJ])


def test_a_work_with_null_everywhere_has_an_id_and_an_empty_title(tmp_path: Path) -> None:
    nothing = dict.fromkeys(OPENALEX) | {"id": f"{W}5"}
    inside = {
        **nothing,
        "id": f"{W}6",
        "authorships": [None, {"author": None}, {"author": {"display_name": None}}],
        "primary_location": {"source": None},
        "referenced_works": [None],
    }
    path = write(tmp_path / "works.jsonl", lines(nothing, inside))

    assert read(path)[1] == [Paper(id="W5", title=""), Paper(id="W6", title="")]


def test_of_a_snapshot_works_are_read_the_latest_first(tmp_path: Path) -> None:
    works = tmp_path / "data" / "works"
    old, new = works / "updated_date=2024-01-31", works / "updated_date=2024-02-01"
    author = lines({"id": "https://openalex.org/A7", "display_name": "Ada", "works_count": 3})
    write(works / "manifest", '{"entries":[{"url":"s3://openalex/data/works/part_000.gz"}]}')
    write(tmp_path / "data" / "authors" / "updated_date=2024-01-01" / "part_000.gz", author)
    first = {**OPENALEX, "id": f"{W}1"}
    write(old / "part_000.gz", lines({**first, "id": f"{W}2"}))
    cover = {**first, "id": f"{W}4", "is_paratext": True}
    withdrawn = {**first, "id": f"{W}5", "is_retracted": True}
    write(new / "part_000.gz", lines(first, cover, withdrawn))
    log: list[str] = []

    assert list(titles(tmp_path, log)) == ["W1", "W2"]
    assert log == [
        "left out 1 works that are paratext, such as covers",
        "left out 1 works that were retracted",
    ]


def test_an_inverted_index_has_gaps_strings_and_a_limit() -> None:
    assert restored({"b": [7, 1], "a": [0], "c": [None, 1.5], "d": "x"}) == "a b b"
    assert restored({"IndexLength": 2, "InvertedIndex": {"b": [1], "a": [0]}}) == "a b"
    assert restored({"a": [0, 2], "thorn": [-1], "is": [1]}) == "thorn a is a"
    assert restored(None) == ""
    assert restored({"a": [10**18]}) == "a"
    with pytest.raises(ValueError, match="abstract has 2,000,005 characters; expected"):
        restored({"word": [0] * 400_001})


# --- Semantic Scholar


def s2_folder(folder: Path, **more: str) -> Path:
    write(folder / "papers" / "papers-0.gz", lines(S2_PAPER, {"corpusid": "3", "title": "Three"}))
    for name, text in more.items():
        write(folder / name / f"{name}-0.gz", text)
    return folder


ABSTRACTS = lines(
    {"corpusid": 3, "openaccessinfo": {"license": None}, "abstract": "We count."},
    {"corpusid": 99, "abstract": "Of no paper here."},
)
CITATIONS = lines(
    {"citationid": 1, "citingcorpusid": 12, "citedcorpusid": 99, "contexts": None, "intents": None},
    {"citationid": 2, "citingcorpusid": 12, "citedcorpusid": 3, "isinfluential": True},
    {"citationid": 3, "citingcorpusid": 12, "citedcorpusid": 3, "isinfluential": True},
    {"citationid": 4, "citingcorpusid": 99, "citedcorpusid": 12},
    {"citationid": 5, "citingcorpusid": 12, "citedcorpusid": None},
)
IDS = lines(
    {"sha": "aa12", "corpusid": 12, "primary": True},
    {"sha": "bb12", "corpusid": 12, "primary": False},
    {"sha": "aa03", "corpusid": 3, "primary": True},
)


def test_the_dumps_of_semantic_scholar_are_joined(tmp_path: Path) -> None:
    log: list[str] = []

    name, found = read(s2_folder(tmp_path, abstracts=ABSTRACTS, citations=CITATIONS), log)

    assert name == "s2ag"
    assert found == [
        Paper(id="3", title="Three", abstract="We count."),
        Paper(
            id="12",
            title="Graphs of papers",
            year=2015,
            authors=("Ada Smith", "Bo Li"),
            venue="J. Graphs",
            citations=("3", "99"),
            doi="10.5555/12",
            url="https://www.semanticscholar.org/paper/abc",
            type="JournalArticle",
            volume="3",
            pages="1-9",
        ),
    ]
    assert log == ["joining the dumps of citations, abstracts, papers"]


def test_paper_ids_give_the_ids_of_the_api(tmp_path: Path) -> None:
    folder = s2_folder(tmp_path, citations=CITATIONS, ids=IDS)

    found = {paper.id: paper.citations for paper in read(folder)[1] if isinstance(paper, Paper)}

    assert found == {"aa03": (), "aa12": ("aa03", "99")}


def test_papers_without_further_dumps_need_no_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    log: list[str] = []

    assert titles(s2_folder(tmp_path), log) == {"12": "Graphs of papers", "3": "Three"}
    assert log == [
        f"there is no dump of abstracts in {tmp_path}: the papers have none",
        f"there is no dump of citations in {tmp_path}: the papers have none",
    ]
    with pytest.raises(MissingExtraError, match=r"pip install 'citerec\[corpora\]'"):
        read(s2_folder(tmp_path, abstracts=ABSTRACTS))


def test_a_join_leaves_nothing_behind_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = find_source(s2_folder(tmp_path / "dump", abstracts=ABSTRACTS))
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    found = read_papers(source, "s2ag", scratch=scratch)
    next(found)
    during = [path.name for path in scratch.iterdir()]
    assert isinstance(found, Iterator)
    found.close()  # pyright: ignore[reportAttributeAccessIssue]

    assert [name.startswith(".joining-") for name in during] == [True]
    assert list(scratch.iterdir()) == []
    assert capfd.readouterr().out == ""


def test_a_broken_line_of_a_dump_that_is_joined_names_its_file(tmp_path: Path) -> None:
    folder = s2_folder(tmp_path, abstracts=ABSTRACTS + '{"corpusid": 12,\n')

    with pytest.raises(BadInputError, match=r"abstracts-0\.gz"):
        read(folder)


def test_dumps_without_papers_and_further_files_are_named(tmp_path: Path) -> None:
    write(tmp_path / "citations.gz", CITATIONS)
    with pytest.raises(BadInputError, match="dump of papers is missing; found citations; put"):
        read(tmp_path)

    log: list[str] = []
    write(s2_folder(tmp_path) / "tldrs.gz", lines({"corpusid": 3, "model": "x", "text": "y"}))
    assert len(titles(tmp_path, log)) == 2
    assert log[0] == "left out tldrs.gz: neither papers nor abstracts, citations or paper-ids"


# --- AMiner

DESIGN = Paper(
    id="1091",
    title="Preliminary design",
    abstract="We design.",
    year=2013,
    authors=("Ada Smith", "Bo Li"),
    venue="Web Information",
    citations=("2005", "7"),
    doi="10.5555/1091",
    type="Conference",
    volume="2",
    pages="89-93",
    publisher="ACM",
)


@pytest.mark.parametrize(
    "text",
    [
        lines(AMINER_V12),
        json.dumps([AMINER_V12]),
        f"[{json.dumps(AMINER_V12)}\n,{{}}\n]",
        json.dumps([AMINER_V12], indent=2),
    ],
    ids=["lines of v11", "one line", "v12", "indented"],
)
def test_a_record_of_aminer_is_read_from_every_shape(tmp_path: Path, text: str) -> None:
    name, found = read(write(tmp_path / "dblp.json", text))

    assert name == "aminer"
    assert found[0] == DESIGN


def test_version_10_has_plain_texts(tmp_path: Path) -> None:
    plain = {key: AMINER_V10[key] for key in AMINER_V10 if key != "n_citation"}
    path = write(tmp_path / "dblp-ref-0.json", lines(plain))

    assert read(path) == (
        "aminer",
        [
            Paper(
                id="00127ee2-cb05",
                title="Preliminary design",
                abstract="We design.",
                year=2013,
                authors=("Ada Smith", "Bo Li"),
                venue="Web Information",
                citations=("51c7e02e", "8b3c1f57"),
            )
        ],
    )


def test_version_13_is_the_notation_of_mongodb_with_keys_missing(tmp_path: Path) -> None:
    found = read(write(tmp_path / "dblpv13.json", AMINER_V13))

    assert found == (
        "aminer",
        [
            Paper(
                id="53e99784b7602d9701f3e3f5",
                title='NumberInt(7) in "quotes"',
                abstract="We design.",
                year=2013,
                authors=("Ada Smith",),
                venue="Web Information",
                citations=("53e9", "53ea"),
                url="http://a.org",
            ),
            Paper(id="53e99784b7602d9701f3e3f6", title=""),
        ],
    )


def test_canonical_papers_with_further_keys_stay_canonical(tmp_path: Path) -> None:
    record = {"id": "a", "title": "A", "citations": ["b"], "references": ["c"], "n_citation": 1}

    assert read(write(tmp_path / "a.jsonl", lines(record)))[0] == "canonical"


# --- PubMed


def test_an_article_of_pubmed_is_read_with_markup_labels_and_nested_references(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "pubmed26n0001.xml.gz", PUBMED.format(ARTICLE))

    assert read(path) == (
        "pubmed",
        [
            Paper(
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
        ],
    )


def test_later_versions_replace_earlier_ones_and_deletions_delete(tmp_path: Path) -> None:
    retracted = "<PublicationTypeList><PublicationType>Retracted Publication</PublicationType></PublicationTypeList>"
    first = [article(1, "one"), article(2, "two, v2", 2), article(2, "two"), article(3, "three")]
    second = [article(1, "one, corrected"), article(4, "four", more=retracted), article(5, "five")]
    deleted = "<DeleteCitation><PMID Version='1'>3</PMID><PMID>5</PMID></DeleteCitation>"
    write(tmp_path / "baseline" / "pubmed26n0001.xml.gz", PUBMED.format("\n".join(first)))
    write(tmp_path / "baseline" / "pubmed26n0001.xml.gz.md5", b"MD5 = 0\n")
    later = PUBMED.format("\n".join([*second, deleted]))
    write(tmp_path / "updatefiles" / "pubmed26n0002.xml.gz", later)
    log: list[str] = []

    assert titles(tmp_path, log) == {"1": "one, corrected", "2": "two, v2"}
    assert log == [
        "left out 4 records that later ones replace or delete",
        "left out 1 records that were retracted",
    ]


def test_a_book_of_pubmed_is_a_paper(tmp_path: Path) -> None:
    book = """<PubmedBookArticle><BookDocument><PMID Version="1">9</PMID><Book><Publisher><PublisherName>NIH
    </PublisherName></Publisher><BookTitle>Tree Reviews</BookTitle><PubDate><Year>1993</Year></PubDate></Book>
    <ArticleTitle>Oak</ArticleTitle><Abstract><AbstractText>Tall.</AbstractText></Abstract></BookDocument>
    </PubmedBookArticle>"""

    paper = one(write(tmp_path / "p.xml", PUBMED.format(book)))

    assert (paper.title, paper.year, paper.venue) == ("Oak", 1993, "Tree Reviews")
    assert (paper.abstract, paper.publisher) == ("Tall.", "NIH")


# --- Crossref


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b and c > d", "a < b and c > d"),
        ("x<y and z>w", "x<y and z>w"),
        ("H<sub>2</sub>O<br/>two", "H2O two"),
        ("&lt;i&gt;E. coli&lt;/i&gt;", "E. coli"),
        ("AT&amp;T", "AT&T"),
        ("<jats:p>one</jats:p><jats:p>two</jats:p>", "one two"),
        ("<mml:math><mml:mi>x</mml:mi></mml:math>", "x"),
        ("f <jats:tex-math>\\alpha</jats:tex-math><mml:mi>α</mml:mi>", "f α"),
        ("<jats:title>Summary.</jats:title><jats:p>A</jats:p>", "A"),
        ("<" * 50_000 + "</i", "<" * 50_000 + "</i"),
    ],
)
def test_markup_is_removed_and_other_brackets_stay(text: str, expected: str) -> None:
    assert plain_text(text) == expected


# --- Broken records and files

V12 = json.dumps(AMINER_V12)
FAULTS: dict[str, tuple[str, str]] = {
    "openalex: author id": (lines({**OPENALEX, "id": "https://openalex.org/A7"}), "that of a work"),
    "openalex: no id": (lines(OPENALEX, {"title": "A", "authorships": []}), "line 2: no 'id'"),
    "openalex: year": (lines({**OPENALEX, "publication_year": "MM"}), "must be a year"),
    "openalex: index": (lines({**OPENALEX, "abstract_inverted_index": [1]}), "must be an object"),
    "openalex: authorships": (lines({**OPENALEX, "authorships": {"a": 1}}), "must be a list"),
    "openalex: source": (lines({**OPENALEX, "primary_location": {"source": "P"}}), "an object"),
    "openalex: references": (lines({**OPENALEX, "referenced_works": ["10.1/x"]}), "ids of works"),
    "openalex: broken page": (
        json.dumps({"meta": {}, "results": [OPENALEX]})[:-2] + ', {"id": }]}',
        "record 2 is not JSON",
    ),
    "openalex: deep": (
        lines(OPENALEX) + '{"id": "W1", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
        "line 2: not JSON",
    ),
    "s2ag: corpus id": (lines({**S2_PAPER, "corpusid": "x1"}), "must be a whole number"),
    "aminer: no id": (f"[{V12},\n" + json.dumps({"title": "A"}) + "]", "line 2: no 'id'"),
    "aminer: references": (lines({**AMINER_V12, "references": [1.5]}), "must hold ids"),
    "aminer: broken element": (f"[\n{V12},\n{{'id': 1}},\n{V12}\n]", "record 2 is not JSON"),
    "pubmed: not well-formed": (
        PUBMED.format(f"{article(1, 'a')}\n{article(2, '<b>x')}\n{article(3, 'c')}"),
        "line 6: this record is not well-formed XML",
    ),
    "pubmed: unknown entity": (PUBMED.format(article(1, "&nbsp;")), "undefined entity"),
    "pubmed: no PMID": (PUBMED.format(article("", "a")), "no 'id' in this record"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_record_is_one_line_with_its_place(tmp_path: Path, name: str) -> None:
    text, message = FAULTS[name]
    path = write(tmp_path / "dump.data", text.encode(errors="surrogateescape"))

    found_format, found = read(path)
    [fault] = [str(record) for record in found if isinstance(record, BadRecordError)]

    assert found_format == name.partition(":")[0]
    assert message in fault
    assert fault.startswith(f"{path}, line ")
    assert "\n" not in fault
    assert len(fault) < 300


BOMB = """<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<PubmedArticleSet>""" + article(1, "&b;&c;")
CUT: dict[str, tuple[str, bytes, str]] = {
    "cut gzip": (
        "a.jsonl.gz",
        gzip.compress(lines(*[{**OPENALEX, "id": f"{W}{n}"} for n in range(1, 3000)]).encode())[
            :-99
        ],
        "the file is cut off after line",
    ),
    "cut array": ("a.json", f"[{V12},{V12[:-9]}".encode(), "the file ends inside record 2"),
    "cut after a comma": ("a.json", f"[{V12},".encode(), "the file ends inside record 2"),
    "cut record of XML": (
        "a.xml",
        PUBMED.format(article(1, "a") + "\n<PubmedArticle><x>")[:-22].encode(),
        "the XML is cut off",
    ),
    "cut set of XML": ("a.xml", PUBMED.format(article(1, "a"))[:-8].encode(), "the XML is cut off"),
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_cannot_be_read_to_its_end_is_one_line(tmp_path: Path, name: str) -> None:
    file, content, message = CUT[name]
    path = tmp_path / file
    path.write_bytes(content)

    with pytest.raises(BadInputError) as caught:
        read(path)

    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_entities_of_a_dtd_are_not_expanded(tmp_path: Path) -> None:
    [fault] = read(write(tmp_path / "a.xml", f"{BOMB}</PubmedArticleSet>"))[1]

    assert "undefined entity" in str(fault)


def test_latin_1_in_json_is_a_broken_record(tmp_path: Path) -> None:
    content = lines(OPENALEX) + '{"id": "W1", "title": "caf\udce9"}\n'
    path = write(tmp_path / "a.jsonl", content.encode(errors="surrogateescape"))

    _, fault = read(path)[1]

    assert "line 2: not JSON: str is not valid UTF-8" in str(fault)


def test_a_record_that_never_ends_is_refused_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_stream, "MAX_LINE", 2**17)
    monkeypatch.setattr(json_stream, "CHUNK", 2**15)
    deep = io.BytesIO(b"[" + b'{"a":[' * 1_000_000)
    tracemalloc.start()

    with pytest.raises(StreamFaultError, match="record 1 has over 131,072 bytes"):
        list(json_records(deep))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_an_endless_record_of_xml_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.corpus.readers.pubmed.LONGEST", 2**20)
    path = write(tmp_path / "a.xml", "<PubmedArticleSet><PubmedArticle>" + "<a>" * 2**20)

    with pytest.raises(BadInputError, match="a record of over 1,048,576 bytes"):
        read(path)


def test_broken_records_are_skipped_and_the_rest_is_indexed(tmp_path: Path, java: None) -> None:
    text = f"[{V12},\n{{broken}},\n" + json.dumps({**AMINER_V12, "id": 7, "references": [1091]})
    path = write(tmp_path / "dblp.json", text + "]")

    report = build_index(path, tmp_path / "index", BuildConfig(skip_bad=True))

    assert report.manifest.counts["papers"] == 2
    assert report.manifest.counts["broken_lines"] == 1
    assert report.manifest.counts["citations"] == 2
    assert "dblp.json, line 2: record 2 is not JSON" in report.examples[0]


# --- Parts

RECORDS = st.lists(
    st.dictionaries(st.text(max_size=4), st.text() | st.lists(st.text(alphabet='"\\{}[],x')))
)


@given(
    RECORDS,
    st.sampled_from(["lines", "array", "indented", "results"]),
    st.integers(1, 50),
    st.data(),
)
def test_any_objects_are_read_back_from_any_shape(
    records: list[dict[str, Any]], shape: str, chunk: int, data: st.DataObject
) -> None:
    ascii_only = data.draw(st.booleans())
    if shape == "lines":
        text = "".join(json.dumps(r, ensure_ascii=ascii_only) + "\n" for r in records)
    else:
        indent = 2 if shape == "indented" else None
        text = json.dumps(records, ensure_ascii=ascii_only, indent=indent)
    if shape == "results":
        text = '{"n": 1, "results": ' + text + ', "more": {}}'
    opener = openalex._LIST if shape == "results" else None
    content = text.encode(errors="replace")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk if opener is None else 2**20)
        found = [row for _, row in json_records(io.BytesIO(content), opener)]

    assert found == [json.loads(json.dumps(r).encode(errors="replace")) for r in records]


@given(st.binary() | st.text(alphabet='{}[]",:\\ n1\n').map(str.encode))
def test_no_bytes_break_the_stream(content: bytes) -> None:
    def rows(stream: io.BytesIO) -> Iterable[Any]:
        return json_records(stream, openalex._LIST, aminer.json_of_shell)

    try:
        found = list(rows(io.BytesIO(content)))
    except StreamFaultError as fault:
        assert "\n" not in fault.message
    else:
        assert all(isinstance(row, (dict, Broken)) for _, row in found)
    first_keys(content, openalex._LIST)


def memory(make: Callable[[int], bytes], path: Path, name: str, size: int) -> float:
    """Return the peak memory of a process that reads a dump of `size` records, in MB."""
    path.write_bytes(make(size))
    code = (
        "from pathlib import Path; from citerec.corpus.readers import *; "
        "from citerec.corpus.readers.source import find_source; "
        f"n = sum(1 for _ in read_papers(find_source(Path({str(path)!r})), {name!r})); "
        f"assert n == {size}, n; status = Path('/proc/self/status').read_text(); "
        "print(status.split('VmHWM:')[1].split()[0])"  # ru_maxrss would include the parent's memory
    )
    return int(subprocess.check_output([sys.executable, "-c", code])) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["aminer", "pubmed"])
def test_memory_does_not_grow_with_a_file(tmp_path: Path, name: str) -> None:
    def make(size: int) -> bytes:
        if name == "pubmed":
            return PUBMED.format(
                "".join(article(n, "x" * 3000) for n in range(1, size + 1))
            ).encode()
        return json.dumps(
            [{**AMINER_V12, "id": n, "abstract": "x" * 3000} for n in range(size)]
        ).encode()

    small, large = (memory(make, tmp_path / "dump", name, size) for size in (2_000, 20_000))

    assert large < small + 15
