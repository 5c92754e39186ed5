"""Each format becomes the papers that it states, or one line with file and place for what cannot be read."""

import gzip
import json
import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rispy
from hypothesis import given
from hypothesis import strategies as st
from support.tables import table
from support.types import Capture, MonkeyPatch

from citerec.bibliography.fields import Fields
from citerec.bibliography.keys import plain_text
from citerec.bibliography.ris import read_records, to_entry
from citerec.corpus.readers import FORMATS, detect_format, find_source, read_papers
from citerec.errors import BadInputError, BadRecordError, MissingExtraError
from citerec.types import Paper


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (
        content.encode(errors="surrogateescape")
        if isinstance(content, str)
        else content
    )
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def read(
    path: Path, log: list[str] | None = None
) -> tuple[str, list[Paper | BadRecordError]]:
    source = find_source(path)
    name = detect_format(source)
    messages = [] if log is None else log
    return name, [
        located.paper for located in read_papers(source, name, log=messages.append)
    ]


def papers(path: Path, log: list[str] | None = None) -> list[Paper]:
    found = read(path, log)[1]
    assert not [fault for fault in found if isinstance(fault, BadRecordError)]
    return [paper for paper in found if isinstance(paper, Paper)]


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def shapes(*records: Any) -> list[str]:
    """The shapes in which JSON of several records is published."""
    return [lines(*records), json.dumps(records), json.dumps(records, indent=2)]


# --- One corpus of each format


def test_each_format_has_records_here_and_a_row_in_the_documentation() -> None:
    page = Path(__file__).parents[1] / "docs" / "reference" / "formats.md"
    rows = page.read_text()

    assert {*FORMATS} == {*RECORDS, "bibtex", "ris", "pubmed"}  # these are texts, below
    assert [name for name in FORMATS if f"| `{name}` |" not in rows] == []


def stated(records: str) -> list[Paper]:
    """Papers from records of the canonical format."""
    as_tuples = ("authors", "citations")
    return [
        Paper(**{k: tuple(v) if k in as_tuples else v for k, v in record.items()})
        for record in json.loads(f"[{records}]")
    ]


DATA = Path(__file__).parent / "data" / "formats"
# one record of each format, as it is published; of CSL a list of two
RECORDS: dict[str, Any] = {
    file.stem: json.loads(file.read_text()) for file in DATA.glob("*.json")
}
[BERT] = stated(
    """{"id": "bert", "title": "BERT: Pre-training of Transformers", "abstract": "We introduce BERT.", "year": 2019,
 "authors": ["Jacob Devlin", "Ming-Wei Chang"], "venue": "NAACL", "citations": ["elmo", "gpt"]}"""
)
W = "https://openalex.org/W"
OPENALEX = RECORDS["openalex"]
[PEERJ] = stated(
    """{"id": "W2741809807", "title": "The state of OA & more", "abstract": "Despite the growth of of OA", "year": 2018,
 "authors": ["Ada Smith", "Bo Li"], "venue": "PeerJ", "citations": ["W1", "W22"], "doi": "10.7717/peerj.4375",
 "url": "https://doi.org/10.7717/peerj.4375", "type": "article", "volume": "6", "pages": "e4375",
 "publisher": "PeerJ, Inc.", "times_cited": "1024"}"""
)
AMINER = RECORDS["aminer"]
[DESIGN] = stated(
    """{"id": "1091", "title": "Preliminary design", "abstract": "We design.", "year": 2013,
 "authors": ["Ada Smith", "Bo Li"], "venue": "Web Information", "citations": ["2005", "7"], "doi": "10.5555/1091",
 "type": "Conference", "volume": "2", "pages": "89-93", "publisher": "ACM", "times_cited": "50"}"""
)
AMINER_V13 = """[
{
  "_id" : "53e99784b7602d9701f3e3f5",
  "title" : "NumberInt(7) in \\"quotes\\"",
  "authors" : [ { "_id" : "53f4", "name" : "Ada Smith" }, { "_id" : "53f5" } ],
  "venue" : { "_id" : "5390", "name_d" : "Web Information" },
  "year" : NumberInt(2013),
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
CSL_PAPERS = stated(
    r"""{"id": "12", "title": "On Quercus", "year": 2001, "authors": ["Anna van der Berg", "The Tree Consortium"],
 "venue": "Trees", "doi": "10.1234/ABC", "type": "article-journal", "pages": "12-15"},
{"id": "b", "title": "Brace } in \" a title", "year": 1999, "type": "book"}"""
)
CROSSREF = RECORDS["crossref"]
ROOTS = {"DOI": "10.5555/roots", "reference-count": 0, "type": "journal-article"}
CROSSREF_PAPERS = stated(
    """{"id": "10.5555/maps.1", "title": "Maps of trees & roots: A survey", "abstract": "We map (<75 K).", "year": 2015,
 "authors": ["Ada Smith Jr.", "The Tree Consortium"], "venue": "Trees & Roots",
 "citations": ["10.5555/roots", "10.5555/soil"], "doi": "10.5555/Maps.1", "url": "https://doi.org/10.5555/maps.1",
 "type": "journal-article", "volume": "3", "issue": "2", "pages": "1-9", "publisher": "Example Press",
 "times_cited": "7"},
{"id": "10.5555/roots", "title": "", "doi": "10.5555/roots", "type": "journal-article"}"""
)


def crossref_page(*works: Any) -> dict[str, Any]:
    """A page of Crossref's API; the key after `items` begins with its name."""
    body = {"total-results": 2, "items": works, "items-per-page": 20}
    return {"status": "ok", "message-type": "work-list", "message": body}


BIB = r"""% made by a reference manager
@string{tvcg = "IEEE Trans. Vis. " # {Comput. Graph.}}
@comment{
  @article{hidden, title = {Not a paper}}
}
@preamble{"\newcommand{\noop}[1]{}"}

@Article{muller:2001,
  author = {M{\"u}ller, J{\"o}rg and van der Berg, Anna and {Trees {E}urope} and others},
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
BIB_PAPERS = stated(
    """{"id": "muller:2001", "title": "The Étude of BERT & Trees",
 "abstract": "First line. Second line with nested braces.", "year": 2001,
 "authors": ["Jörg Müller", "Anna van der Berg", "Trees Europe,"], "doi": "10.1234/ab_c", "type": "article",
 "venue": "IEEE Trans. Vis. Comput. Graph. (Letters)", "volume": "7", "issue": "2", "pages": "12–15"},
{"id": "doe2005", "title": "Drawing Graphs", "year": 2005, "authors": ["Jane Doe"],
 "venue": "Proceedings of Vis 2005", "type": "inproceedings", "pages": "1–8", "publisher": "Example Press"},
{"id": "vis05", "title": "Proceedings of Vis 2005", "year": 2005, "type": "proceedings",
 "publisher": "Example Press"}"""
)
BIBLATEX = r"""@xdata{nat, journaltitle = {Nature}}
@thesis{a, journaltitle = {Nature}, type={mathesis}, date=1999-05, title={Title}, subtitle={Sub},
  howpublished={\url{https://x.org/a_b}}}
"""
[BIBLATEX_PAPER] = stated(
    """{"id": "a", "title": "Title: Sub", "year": 1999, "venue": "Nature",
 "url": "https://x.org/a_b", "type": "mastersthesis"}"""
)
RIS = (
    "Provider: A Publisher\r\nContent: text/plain\r\n\r\n"
    "TY  - JOUR\r\nA1  - Müller, Jörg\r\nA1  - Berg, Anna van der, Jr.\r\n"
    "T1  - A title that\r\ncontinues here\r\nY1  - 2001/05/12/Spring\r\n"
    "N2  - The abstract\r\n  goes on.\r\nJF  - Journal of Trees\r\nVL  - 7\r\nIS  - 2\r\n"
    "SP  - 12\r\nEP  - 15\r\nUR  - https://doi.org/10.1234/abc\r\nKW  - one\r\nKW  - two\r\nER  - \r\n\r\n"
    "TY  - CONF\r\nTI  - No end\r\nAU  - Doe, Jane\r\nPY  - 2005\r\nDO  - 10.1234/def\r\n"
    "TY  - BOOK\r\nTI  - No end of the one before\r\nID  - 77\r\nER  -\r\n"
)
RIS_PAPERS = stated(
    """{"id": "10.1234/abc", "title": "A title that continues here", "abstract": "The abstract goes on.", "year": 2001,
 "authors": ["Jörg Müller", "Anna van der Berg Jr."], "venue": "Journal of Trees", "doi": "10.1234/abc",
 "url": "https://doi.org/10.1234/abc", "type": "JOUR", "volume": "7", "issue": "2", "pages": "12-15"},
{"id": "10.1234/def", "title": "No end", "year": 2005, "authors": ["Jane Doe"], "doi": "10.1234/def",
 "type": "CONF"},
{"id": "77", "title": "No end of the one before", "type": "BOOK"}"""
)
TAGGED = {
    "a.nbib": """
PMID- 31
OWN - NLM
DP  - 2020 Feb 2
TI  - Moss on the stones of old
      walls - and more.
LID - S0(20)3 [pii]
LID - 10.1234/moss.1 [doi]
FAU - Moss, Diana K
AU  - Moss DK
AB  - AIM: To
      look.
PT  - Journal Article
PT  - Retracted Publication
JT  - Journal of moss
TA  - J Moss

PMID- 32
TI  - Ferns.
AU  - Oz A
""".replace("\n", "\r\n"),
    "a.enw": """%0 Journal Article
%T Moss on stones
%A Moss, Diana
%A Fern, Al
%J Journal of Moss
%D 2019
%R 10.1234/x
%X We look
at it.

%0 Edited Book
%T Ferns
%B Series
%D 1999
""",
    "a.txt": """FN Clarivate
VR 1.0
PT J
AU Moss, D
   Fern, A
AF Moss, Diana
   Fern, Al
TI Moss on
   stones
SO JOURNAL OF MOSS
PY 2020
VL 3
DI 10.1234/y
UT WOS:1
ER

PT C
TI Ferns
EA JAN 2021
UT WOS:2
ER

EF
""",
}
TAGGED_PAPERS = {
    "a.nbib": stated(
        """{"id": "10.1234/moss.1", "title": "Moss on the stones of old walls - and more.", "abstract": "AIM: To look.",
 "year": 2020, "authors": ["Diana K Moss"], "venue": "Journal of moss", "doi": "10.1234/moss.1", "retracted": true},
{"id": "32", "title": "Ferns.", "authors": ["Oz A"]}"""
    ),
    "a.enw": stated(
        """{"id": "10.1234/x", "title": "Moss on stones", "abstract": "We look at it.", "year": 2019,
 "authors": ["Diana Moss", "Al Fern"], "venue": "Journal of Moss", "doi": "10.1234/x", "type": "Journal Article"},
{"id": "a:11", "title": "Ferns", "year": 1999, "venue": "Series", "type": "Edited Book"}"""
    ),
    "a.txt": stated(
        """{"id": "10.1234/y", "title": "Moss on stones", "year": 2020, "authors": ["Diana Moss", "Al Fern"],
 "venue": "JOURNAL OF MOSS", "doi": "10.1234/y", "type": "J", "volume": "3"},
{"id": "WOS:2", "title": "Ferns", "year": 2021, "type": "C"}"""
    ),
}
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
OAK = """<PubmedBookArticle><BookDocument><PMID Version="1">9</PMID><Book><Publisher><PublisherName>NIH
</PublisherName></Publisher><BookTitle>Tree Reviews</BookTitle><PubDate><Year>1993</Year></PubDate></Book>
<ArticleTitle>Oak</ArticleTitle><Abstract><AbstractText>Tall.</AbstractText></Abstract></BookDocument>
</PubmedBookArticle>"""
PUBMED_PAPERS = stated(
    """{"id": "101", "title": "CO2 in Quercus & more.", "abstract": "AIM: To draw. RESULTS: Trees.", "year": 1998,
 "authors": ["Ada B Smith", "Tree Group"], "venue": "J. Trees", "citations": ["7", "10.5555/y"],
 "doi": "10.5555/101", "url": "https://pubmed.ncbi.nlm.nih.gov/101/", "type": "Journal Article", "volume": "13",
 "issue": "2", "pages": "117-26"},
{"id": "9", "title": "Oak", "abstract": "Tall.", "year": 1993, "venue": "Tree Reviews",
 "url": "https://pubmed.ncbi.nlm.nih.gov/9/", "publisher": "NIH"}"""
)
ARXIV_OLD = RECORDS["arxiv"] | {
    "id": "hep-th/9901001",
    "versions": [],
    "authors_parsed": [],
    "doi": None,
}
ARXIV_PAPERS = stated(
    """{"id": "0704.0001", "title": "Calculation of prompt γ photons", "abstract": "We calculate.", "year": 2007,
 "authors": ["C. Balázs", "E. L. Berger Jr."], "venue": "J.Example 76:013009,2007", "doi": "10.5555/photons",
 "url": "https://arxiv.org/abs/0704.0001", "type": "preprint"},
{"id": "hep-th/9901001", "title": "Calculation of prompt γ photons", "abstract": "We calculate.", "year": 1999,
 "authors": ["C. Balázs", "E. L. Berger"], "venue": "J.Example 76:013009,2007",
 "url": "https://arxiv.org/abs/hep-th/9901001", "type": "preprint"}"""
)
AMINER_V10 = """{"id": "00127ee2", "title": "T", "abstract": "A", "authors": ["Ada Smith"], "year": 2013,
 "references": ["51c7"], "venue": "V"}""".replace("\n", "")
[AMINER_V10_PAPER] = stated(
    """{"id": "00127ee2", "title": "T", "abstract": "A", "year": 2013, "authors": ["Ada Smith"], "venue": "V",
 "citations": ["51c7"]}"""
)
AMINER_V13_PAPERS = stated(
    r"""{"id": "53e99784b7602d9701f3e3f5", "title": "NumberInt(7) in \"quotes\"", "abstract": "We design.",
 "year": 2013, "authors": ["Ada Smith"], "venue": "Web Information", "citations": ["53e9", "53ea"], "url": "http://a.org"},
{"id": "53e99784b7602d9701f3e3f6", "title": "", "times_cited": "1"}"""
)
X, NOTHING = Paper(id="x", title="X"), dict.fromkeys(OPENALEX) | {"id": f"{W}5"}
NESTED_NOTHING = """{"id": "https://openalex.org/W6", "authorships": [null, {"author": null}, {"author":
 {"display_name": null}}], "primary_location": {"source": null}, "referenced_works": [null]}"""
SMALL = table(  # each states the paper X; the last are canonical papers with keys of other formats
    """
canonical    | {"id": "x", "title": "X"}
openresearch | {"id": "x", "title": "X", "inCitations": []}
citeomatic   | {"id": "x", "title": "X", "key_phrases": []}
beir         | {"_id": "x", "title": "X", "text": null, "metadata": {}}
canonical    | {"id": "x", "title": "X", "citations": [], "references": ["c"], "n_citation": 1}
canonical    | {"id": "x", "title": "X", "citations": [], "DOI": "10.5555/a", "issued": 2001}
canonical    | {"id": "x", "title": "X", "citations": [], "abstract_inverted_index": {}}
"""
)
CASES: list[
    tuple[str, str, str | bytes, list[Paper]]
] = [  # format, file, content, papers
    *((name, "a.jsonl", record, [X]) for name, record in SMALL),
    *(
        (name, "a.jsonl", lines(RECORDS[name]), [BERT])
        for name in ("canonical", "citeomatic", "beir")
    ),
    (
        "openresearch",
        "a.jsonl",
        lines(RECORDS["openresearch"]),
        [
            replace(
                BERT, doi="10.5555/bert", url="https://s2.org/bert", pages="4171-4186"
            )
        ],
    ),
    (
        "beir",
        "a.jsonl",
        '{"_id": "x", "text": "A."}',
        [Paper(id="x", title="", abstract="A.")],
    ),
    *(  # null everywhere
        (
            name,
            "a.jsonl",
            lines(dict.fromkeys(RECORDS[name]) | {"id": "x", "title": "X"}),
            [X],
        )
        for name in ("canonical", "openresearch", "citeomatic")
    ),
    ("csl", "a.json", "\ufeff" + json.dumps(RECORDS["csl"]), CSL_PAPERS),
    ("arxiv", "a.json", lines(RECORDS["arxiv"], ARXIV_OLD), ARXIV_PAPERS),
    *(("openalex", "a.json", text, [PEERJ]) for text in shapes(OPENALEX)),
    ("openalex", "a.json", json.dumps(OPENALEX, indent=2), [PEERJ]),
    ("openalex", "a.json", json.dumps({"meta": {}, "results": [OPENALEX]}), [PEERJ]),
    (
        "openalex",
        "a.jsonl",
        lines(NOTHING, NOTHING | json.loads(NESTED_NOTHING)),
        [Paper(id="W5", title=""), Paper(id="W6", title="")],
    ),
    (
        "crossref",
        "a.json.gz",
        json.dumps({"items": [CROSSREF, ROOTS]}, indent=1),
        CROSSREF_PAPERS,
    ),
    (
        "crossref",
        "a",
        lines(crossref_page(CROSSREF), crossref_page(ROOTS)),
        CROSSREF_PAPERS,
    ),
    (
        "crossref",
        "a.json",
        json.dumps({"message-type": "work", "message": CROSSREF}),
        CROSSREF_PAPERS[:1],
    ),
    (
        "crossref",  # as doi.org gives it: CSL-JSON with references
        "a.json",
        json.dumps(
            {
                **CROSSREF,
                "title": "Maps of trees &amp; roots",
                "container-title": "Trees & Roots",
            }
        ),
        CROSSREF_PAPERS[:1],
    ),
    ("aminer", "a.json", json.dumps([AMINER]), [DESIGN]),
    (
        "aminer",
        "a.json",
        lines({**AMINER, "indexed_abstract": json.dumps(AMINER["indexed_abstract"])}),
        [DESIGN],
    ),
    ("aminer", "v10.txt", AMINER_V10, [AMINER_V10_PAPER]),
    ("aminer", "v13.json", AMINER_V13, AMINER_V13_PAPERS),
    ("bibtex", "a.bib", BIB, BIB_PAPERS),
    ("bibtex", "a.bib", BIBLATEX, [BIBLATEX_PAPER]),
    ("ris", "a.ris", RIS, RIS_PAPERS),
    ("ris", "a.ris", "\ufeff" + RIS.replace("\r\n", "\n"), RIS_PAPERS),
    (
        "ris",
        "my.refs.ris",
        "TY  - JOUR\nTI  - T\n",
        [Paper(id="my:1", title="T", type="JOUR")],
    ),
    *(("ris", file, text, TAGGED_PAPERS[file]) for file, text in TAGGED.items()),
    ("pubmed", "a.xml.gz", PUBMED.format(ARTICLE + OAK), PUBMED_PAPERS),
]


@pytest.mark.parametrize(
    ("name", "file", "content", "expected"),
    CASES,
    ids=[f"{n} {f}" for n, f, *_ in CASES],
)
def test_a_corpus_is_recognised_and_read_to_its_papers(
    tmp_path: Path, name: str, file: str, content: str | bytes, expected: list[Paper]
) -> None:
    log: list[str] = []

    assert read(write(tmp_path / file, content), log) == (name, expected)
    assert any("has no citations" in line for line in log) == (
        name in {"bibtex", "ris", "csl", "arxiv"}
    )


VALUES = st.text(alphabet="ab é", max_size=6)
LINES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["TI", "AB", "AU", "KW", "UR", "XX"]), VALUES), VALUES
    ),
    max_size=12,
)


@pytest.mark.parametrize(
    ("kind", "tags", "paper"),
    [
        ("JOUR", "J2  - J. T.|JA  - J Trees", "T, J Trees, "),
        (
            "JOUR",
            "JA  - J Trees|JO  - J. Trees|JF  - Journal of Trees",
            "T, Journal of Trees, ",
        ),
        ("CHAP", "BT  - Handbook", "T, Handbook, "),
        ("CONF", "C3  - Proc. of X", "T, Proc. of X, "),
        ("EBOOK", "TI  - |BT  - Handbook|T2  - Series", "Handbook, Series, "),
        (
            "JOUR",
            "UR  - http://a.org;https://doi.org/10.1234/2[1:S]2.0.CO;2",
            "T, , 10.1234/2[1:S]2.0.CO;2",
        ),
    ],
)
def test_tags_of_ris_are_read_as_zotero_reads_them(
    kind: str, tags: str, paper: str
) -> None:
    title = "" if "TI" in tags else "TI  - T|"
    [record] = read_records(f"TY  - {kind}|{title}{tags}|ER  - ".replace("|", "\n"))
    entry = to_entry(*record)

    assert ", ".join((entry.title, entry.venue, *entry.dois[:1], "")[:3]) == paper


def test_authors_of_ris_with_two_tags_are_all_read_once_each() -> None:
    text = "TY  - JOUR\nA1  - Moser, Ada\nAU  - Lind, Bo\nAU  - Moser, Ada\nTI  - Leaves\nER  - \n"

    entry = to_entry(*read_records(text)[0])

    assert entry.authors == ("Ada Moser", "Bo Lind")


def test_selected_fields_of_a_service_lose_no_year(tmp_path: Path) -> None:
    work = {
        "id": "https://openalex.org/W7",
        "title": "Leaves",
        "publication_year": 2001,
    }
    file = tmp_path / "page.json"
    file.write_text(json.dumps({"meta": {"count": 1}, "results": [work]}))

    source = find_source(file)

    assert detect_format(source) == "openalex"
    [record] = read_papers(source, "openalex")
    assert isinstance(record.paper, Paper)
    assert (record.paper.id, record.paper.year) == ("W7", 2001)


def test_a_list_of_opencitations_is_not_taken_for_csl(tmp_path: Path) -> None:
    file = tmp_path / "meta.json"
    work = {
        "id": "doi:10.5/a omid:br/1",
        "title": "Leaves",
        "author": "Moser, Ada [omid:ra/2]",
        "pub_date": "2001",
    }
    file.write_text(json.dumps([work]))

    assert detect_format(find_source(file)) != "csl"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("", ("Ada Moser",)),
        (
            "<AuthorList Type='authors'><Author><LastName>Lind</LastName></Author></AuthorList>",
            ("Lind",),
        ),
    ],
)
def test_a_book_of_pubmed_has_its_authors_and_a_chapter_its_own(
    own: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    person = "<Author><LastName>{}</LastName><ForeName>{}</ForeName></Author>"
    file = tmp_path / "book.xml"
    file.write_text(
        "<PubmedArticleSet><PubmedBookArticle><BookDocument><PMID>7</PMID><Book><BookTitle>Leaves</BookTitle>"
        f"<AuthorList Type='editors'>{person.format('Kern', 'Zoe')}</AuthorList>"
        f"<AuthorList Type='authors'>{person.format('Moser', 'Ada')}</AuthorList>"
        f"</Book>{own}</BookDocument></PubmedBookArticle></PubmedArticleSet>"
    )

    [record] = read_papers(find_source(file), "pubmed")

    assert isinstance(record.paper, Paper)
    assert record.paper.authors == expected


def test_a_link_of_ris_is_no_doi_beside_a_doi() -> None:
    erratum = "TY  - JOUR\nTI  - T\nDO  - 10.1234/erratum\nUR  - https://x.org/about/10.1234/article\n"
    central = "TY  - JOUR\nTI  - T\nUR  - https://x.org/doi/10.1002/central/CN-1/full\nAU  - The Journal, null\n"

    entries = [to_entry(*record) for record in read_records(erratum + central)]

    assert [entry.dois for entry in entries] == [("10.1234/erratum",), ()]
    assert entries[1].authors == ("The Journal",)


@pytest.mark.parametrize(
    ("issued", "year"),
    [
        ("2014-03-02", 2014),
        ({"raw": "c. 1808"}, 1808),
        ({"date-parts": [["2014", "3"]], "season": 1}, 2014),
        ({"year": "2014"}, 2014),
        ("n.d.", None),
    ],
)
def test_a_date_and_a_name_of_csl_are_read_whole(
    tmp_path: Path, issued: Any, year: int | None
) -> None:
    name = {
        "given": "L.",
        "dropping-particle": "de",
        "non-dropping-particle": "van",
        "family": "B",
    }
    item = {
        "id": "a",
        "title": "A",
        "issued": issued,
        "author": [name | {"suffix": "Jr."}],
    }

    assert read(write(tmp_path / "a.json", json.dumps([item])))[1] == [
        Paper(id="a", title="A", year=year, authors=("L. de van B Jr.",))
    ]


@given(LINES)
def test_a_value_of_many_lines_is_read_as_rispy_reads_it(
    lines: list[str | tuple[str, str]],
) -> None:
    seen: set[str] = set()
    # rispy adds the further lines of a repeated tag to its first value
    kept: list[str] = []
    for line in lines:
        tag, value = line if isinstance(line, tuple) else ("", line)
        if tag not in {"TI", "AB"} or tag not in seen:
            kept.append(f"{tag}  - {value}" if tag else value)
        seen.add(tag)
    text = "\n".join(["TY  - JOUR", *kept])

    [(_, ours)] = read_records(text)

    (theirs,) = rispy.loads(f"{text}\nER  - \n", skip_unknown_tags=True)
    assert _collapsed(ours) == _collapsed(theirs)


def _collapsed(fields: object) -> object:
    """Return fields with each run of blanks as one; rispy keeps one for an empty line."""
    assert isinstance(fields, dict)
    return {
        k: " ".join(v.split()) if isinstance(v, str) else v for k, v in fields.items()
    }


# --- Dumps of several files


def article(pmid: int | str, title: str, more: str = "") -> str:
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID><Article>'
        f"<ArticleTitle>{title}</ArticleTitle>{more}</Article></MedlineCitation></PubmedArticle>"
    )


def test_later_records_replace_earlier_ones_and_deletions_delete(
    tmp_path: Path,
) -> None:
    first = [
        article(1, "one"),
        article(2, "two"),
        article(3, "three"),
        article(5, "five"),
    ]
    second = [article(1, "one, corrected")]
    deleted = (
        "<DeleteCitation><PMID Version='1'>3</PMID><PMID>5</PMID></DeleteCitation>"
    )
    later = PUBMED.format("\n".join([*second, deleted])).encode()
    write(tmp_path / "baseline" / "pubmed26n0001.xml", PUBMED.format("\n".join(first)))
    write(tmp_path / "baseline" / "pubmed26n0001.xml.md5", "MD5 = 0\n")
    write(tmp_path / "updatefiles" / "pubmed26n0002.xml.gz", later)
    log: list[str] = []

    found = papers(tmp_path, log)

    assert {p.id: p.title for p in found} == {"1": "one, corrected", "2": "two"}
    assert log == ["left out 3 records that later ones replace or delete"]


def test_of_a_snapshot_works_are_read_the_latest_first(tmp_path: Path) -> None:
    works = tmp_path / "works" / "data" / "works"  # the first is a folder of the user
    old, new = works / "updated_date=2024-01-31", works / "updated_date=2024-02-01"
    author = lines(
        {"id": "https://openalex.org/A7", "display_name": "Ada", "works_count": 3}
    )
    write(
        works / "manifest",
        '{"entries":[{"url":"s3://openalex/data/works/part_000.gz"}]}',
    )
    write(works.parent / "authors" / "updated_date=2024-01-01" / "part_000.gz", author)
    first = {**OPENALEX, "id": f"{W}1"}
    write(old / "part_000.gz", lines({**first, "id": f"{W}2"}))
    cover = {**first, "id": f"{W}4", "is_paratext": True}
    write(new / "part_000.gz", lines(first, cover, {**first, "id": f"{W}5"}))
    write(
        works / "deleted_ids.csv.gz",
        f"id,deleted_date\n{W}5,2024-03-01\n{W}9,2024-03-02\n",
    )
    log: list[str] = []

    assert [paper.id for paper in papers(tmp_path / "works", log)] == ["W1", "W2"]
    assert log == [
        "left out 1 works that are paratext, such as covers",
        "left out 1 works that were deleted",
    ]


def test_a_folder_of_the_public_data_file_is_read_and_says_what_it_leaves_out(
    tmp_path: Path,
) -> None:
    notice = {
        **ROOTS,
        "DOI": "10.5555/n",
        "update-to": [{"DOI": "10.5555/MAPS.1", "type": "Retraction"}],
    }
    concern = {"DOI": "10.5555/c", "type": "expression_of_concern"}
    write(tmp_path / "0.json.gz", json.dumps({"items": [CROSSREF, ROOTS]}))
    write(
        tmp_path / "1.json",
        json.dumps({"items": [notice | {"updated-by": [concern]}]}, indent=1),
    )
    log: list[str] = []

    found = {paper.id: paper.retracted for paper in papers(tmp_path, log)}

    assert found == {"10.5555/maps.1": True, "10.5555/roots": False, "10.5555/n": False}
    assert log == ["left out 1 references without a DOI"]


def s2_folder(folder: Path, **more: str) -> Path:
    write(
        folder / "papers" / "papers-0.gz",
        lines(RECORDS["s2ag"], {"corpusid": "3", "title": "Three"}),
    )
    for name, text in more.items():
        write(folder / name / f"{name}-0.gz", text)
    return folder


ABSTRACTS = lines(
    {"corpusid": 3, "openaccessinfo": {"license": None}, "abstract": "We count."},
    {"corpusid": 99, "abstract": "Of no paper here."},
)
CITATIONS = lines(
    {"citationid": 1, "citingcorpusid": 12, "citedcorpusid": 99, "contexts": None},
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


def test_the_dumps_of_semantic_scholar_are_joined_and_leave_nothing_behind(
    tmp_path: Path, capfd: Capture
) -> None:
    folder = s2_folder(tmp_path / "dump", abstracts=ABSTRACTS, citations=CITATIONS)
    log: list[str] = []
    (scratch := tmp_path / "scratch").mkdir()

    source = replace(find_source(folder), scratch=scratch)
    name = detect_format(source)
    records = read_papers(source, name, log=log.append)
    first = next(records)
    during = [path.name for path in scratch.iterdir()]

    assert name == "s2ag"
    assert [located.paper for located in (first, *records)] == stated(
        """{"id": "3", "title": "Three", "abstract": "We count."},
{"id": "12", "title": "Graphs of papers", "year": 2015, "authors": ["Ada Smith", "Bo Li"], "venue": "J. Graphs",
 "citations": ["3", "99"], "doi": "10.5555/12", "url": "https://www.semanticscholar.org/paper/abc",
 "type": "JournalArticle", "volume": "3", "pages": "1-9"}"""
    )
    assert log == ["joining the dumps of citations, abstracts, papers"]
    assert [name.startswith(".joining-") for name in during] == [True]
    assert list(scratch.iterdir()) == []
    assert capfd.readouterr().out == ""


def test_paper_ids_give_the_ids_of_the_api(tmp_path: Path) -> None:
    folder = s2_folder(tmp_path, citations=CITATIONS, ids=IDS)

    found = {paper.id: paper.citations for paper in papers(folder)}

    assert found == {"aa03": (), "aa12": ("aa03", "99")}


def test_a_repeated_record_of_a_dump_has_the_same_citations(tmp_path: Path) -> None:
    folder = s2_folder(tmp_path, citations=CITATIONS)
    write(folder / "papers" / "papers-1.gz", lines(RECORDS["s2ag"]))

    found = [paper.citations for paper in papers(folder) if paper.id == "12"]

    assert found == [("3", "99")] * 2


def test_papers_without_further_dumps_need_no_join(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    log: list[str] = []
    write(
        s2_folder(tmp_path) / "tldrs.gz",
        lines({"corpusid": 3, "model": "x", "text": "y"}),
    )
    # before the papers
    write(tmp_path / "authors" / "0.gz", lines({"authorid": "1", "name": "A"}))

    assert [p.title for p in papers(tmp_path, log)] == ["Graphs of papers", "Three"]
    assert log == [
        "left out authors/0.gz; tldrs.gz: neither papers nor abstracts, citations or paper-ids",
        f"there is no dump of abstracts in {tmp_path}: the papers have none",
        f"there is no dump of citations in {tmp_path}: the papers have none",
    ]
    with pytest.raises(MissingExtraError, match=r"pip install 'citerec\[corpora\]'"):
        read(s2_folder(tmp_path, abstracts=ABSTRACTS))


def test_a_broken_line_of_a_dump_and_missing_papers_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"abstracts-0\.gz"):
        read(s2_folder(tmp_path / "a", abstracts=ABSTRACTS + '{"corpusid": 12,\n'))
    write(tmp_path / "b" / "citations.gz", CITATIONS)
    with pytest.raises(
        BadInputError, match="dump of papers is missing; found citations; put"
    ):
        read(tmp_path / "b")


# --- Markup


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b and c > d", "a < b and c > d"),
        ("H<sub>2</sub>O<br/>two", "H2O two"),
        ("&lt;i&gt;E. coli&lt;/i&gt; AT&amp;T", "E. coli AT&T"),
        (
            "<jats:title>Summary.</jats:title><jats:p>A</jats:p><jats:p>B</jats:p>",
            "A B",
        ),
        ("&amp;lt;5 %, AT&amp;amp;T", "<5 %, AT&T"),
        ("f <jats:tex-math>\\alpha</jats:tex-math><mml:mi>α</mml:mi>", "f α"),
        ("<" * 50_000 + "</i", "<" * 50_000 + "</i"),
    ],
)
def test_markup_is_removed_and_other_brackets_stay(text: str, expected: str) -> None:
    assert plain_text(text) == expected


def test_an_inverted_index_has_gaps_and_a_limit() -> None:
    def restored(index: object) -> str:
        return Fields({"a": index}, Path("f"), 1).restored("a")

    assert (
        restored({"IndexLength": 2, "InvertedIndex": {"b": [7], "a": [0, 2]}})
        == "a a b"
    )
    assert restored({"a": [10**18], "b": [None, 1.5], "c": "x"}) == "a"
    with pytest.raises(
        BadRecordError, match="abstract has 2,000,005 characters; expected"
    ):
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
def test_hostile_texts_are_read_in_linear_time(
    tmp_path: Path, content: str, name: str
) -> None:
    start = time.process_time()

    with suppress(BadInputError):
        read(write(tmp_path / name, content))

    assert time.process_time() - start < 3


BOMB = f"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<PubmedArticleSet>{article(1, "&b;&c;")}</PubmedArticleSet>"""
V12 = json.dumps(AMINER)
BAD: dict[str, tuple[str | bytes, str, str]] = {
    "Cyrillic BibTeX": (
        b"@article{a,\ntitle={" + b"\xe9" * 40 + b"}}",
        "a.bib",
        "not UTF-8",
    ),
    "Cyrillic RIS": (b"TY  - JOUR\nTI  - " + b"\xe9" * 40, "a.ris", "not UTF-8"),
    "cut XML": (
        PUBMED.format(article(1, "a"))[:-8].encode(),
        "a.xml",
        "the XML is cut off",
    ),
    # to search the end of each from its own beginning would take minutes
    "no record ends": (b"<PubmedArticle>" * 2**16, "a.xml", "the XML is cut off"),
    "cut record of XML": (
        PUBMED.format(article(1, "a") + "\n<PubmedArticle><x>")[:-22].encode(),
        "a.xml",
        "the XML is cut off",
    ),
    "cut gzip": (gzip.compress(RIS.encode())[:-20], "a.ris", "the file is cut off"),
    "endless record of XML": (
        "<PubmedArticleSet><PubmedArticle>" + "<a>" * 2**20,
        "a.xml",
        "a record of over 1,048,576 bytes",
    ),
    "cut array": (
        f"[{V12},{V12[:-9]}",
        "a.json",
        "line 1: the file ends inside record 2",
    ),
    "two lists": (f"[{V12}]\n[{V12}]", "a.json", "line 1: another list follows"),
    "cut page": ('{"items": [' + V12 + ",", "a.json", "the file ends inside record 2"),
    "cut between": (f"[{V12},", "a.json", "line 1: the file ends inside record 2"),
    "cut lines": (
        f'[{json.dumps(RECORDS["csl"][1])},\n{{"id": "b"',
        "a.json",
        "line 2: the file ends inside record 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_to_its_end_is_one_line(
    tmp_path: Path, monkeypatch: MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("citerec.corpus.readers.pubmed.LONGEST", 2**20)
    content, file, message = BAD[name]

    with pytest.raises(BadInputError) as caught:
        read(write(tmp_path / file, content))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert file in str(caught.value)


CHANGES = table(  # of the record of a format
    """
openalex  | "id": "https://openalex.org/A7"       | that of a work
openalex  | "publication_year": "MM"              | must be a year
openalex  | "abstract_inverted_index": [1]        | must be an object
openalex  | "authorships": {"a": 1}               | must be a list
openalex  | "primary_location": {"source": "P"}   | an object
openalex  | "referenced_works": ["10.1/x"]        | found '10.1/x'
s2ag      | "corpusid": "x1"                      | must be a whole number
aminer    | "indexed_abstract": "We."             | must be an object
aminer    | "references": [1.5]                   | found 1.5
canonical | "retracted": "no"                     | true or false
crossref  | "DOI": 7                              | 'DOI' must be a string
crossref  | "reference": ["x"]                    | a list of objects
crossref  | "update-to": 7, "updated-by": 7       | 'updated-by'
beir      | "metadata": [1]                       | must be an object
csl       | "issued": 7.5                         | must be a year
csl       | "title": {}                           | 'title' must be a string
csl       | "id": []                              | 'id' must be a string
arxiv     | "authors_parsed": "A"                 | 'authors_parsed' must be a list
arxiv     | "title": null                         | 'title' must be a string
"""
)
FIRST = RECORDS | {"csl": RECORDS["csl"][0]}
FAULTS = [  # format, content, what its message says
    *(
        (
            name,
            lines(FIRST[name], FIRST[name] | json.loads(f"{{{change}}}")),
            f"line 2: .*{message}",
        )
        for name, change, message in CHANGES
    ),
    ("openalex", lines(OPENALEX, {"title": "A", "authorships": []}), "line 2: no 'id'"),
    (
        "openalex",
        lines(OPENALEX) + '{"id": "W1", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
        "line 2: not JSON",
    ),
    ("openalex", lines(OPENALEX) + '{"id": "caf\udce9"}\n', "line 2: not JSON"),
    ("aminer", f'[{V12},\n{{"title": "A"}}]', "line 2: no 'id'"),
    ("aminer", f"[\n{V12},\n{{'id': 1}},\n{V12}\n]", "record 2 is not JSON"),
    ("ris", "TY  - JOUR\nAU  - A\nER  -\n", "line 1: this record has no title"),
    ("bibtex", "@misc{a,}\n", "line 1: this record has no title"),
    ("bibtex", "@misc{a, title={A} year=1}", "a comma is missing"),
    ("bibtex", "@misc{a, title={A", "cannot be read"),
    ("ris", f"TY  - JOUR\nTI  - {'x' * 20_001}\n", "'title' has 20,001 characters"),
    (
        "pubmed",
        PUBMED.format(f"{article(1, 'a')}\n{article(2, '<b>x')}\n{article(3, 'c')}"),
        "line 6: this record is not well-formed XML",
    ),
    ("pubmed", PUBMED.format(article("", "a")), "no 'id' in this record"),
    ("pubmed", BOMB, "undefined entity"),  # no entity of a DTD is expanded
]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    FAULTS,
    ids=[f"{name}: {said[:30]}" for name, _, said in FAULTS],
)
def test_a_broken_record_is_one_line_with_its_place(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = write(tmp_path / "dump.data", text)

    found_format, found = read(path)
    [fault] = [str(record) for record in found if isinstance(record, BadRecordError)]

    assert found_format == name
    assert re.search(message, fault)
    assert fault.startswith(f"{path}, line ")
    assert "\n" not in fault
    assert len(fault) < 300


def test_a_broken_bibtex_entry_is_a_fault_with_its_line_and_the_next_is_read(
    tmp_path: Path,
) -> None:
    text = """@article{a, title = {A}}

@article{b, title = {B
@article{c, title = {C} year = 2001}
@article{d, title = {D}}
@article{e, year = 2001}
"""

    name, found = read(write(tmp_path / "refs.bib", text))

    assert name == "bibtex"
    places = [one.line if isinstance(one, BadRecordError) else one.id for one in found]
    assert places == ["a", 3, 4, "d", 6]


def test_a_bibtex_comment_that_never_closes_is_a_fault_and_costs_itself_alone(
    tmp_path: Path,
) -> None:
    text = "@article{a, title = {A}}\n@preamble{ {\\{} }\n@article{b, title = {B}}\n"
    after = "@comment{ a { b }\n@article{c, title = {C}}\n"

    _, found = read(write(tmp_path / "refs.bib", text + after))

    places = [one.line if isinstance(one, BadRecordError) else one.id for one in found]
    assert places == ["a", "b", 4, "c"]


@pytest.mark.parametrize(
    "answer",
    [
        {"total": 1, "offset": 0, "data": [RECORDS["s2"]]},
        {"recommendedPapers": [RECORDS["s2"]]},
        [RECORDS["s2"]],
        RECORDS["s2"],
    ],
)
def test_answers_of_semantic_scholar_are_corpora(answer: Any, tmp_path: Path) -> None:
    file = write(tmp_path / "answer.json", json.dumps(answer))

    name, [paper] = read(file)

    assert (name, isinstance(paper, Paper)) == ("s2", True)
    assert paper == Paper(
        id="0a1b",
        title="Looms & numbers",
        year=1843,
        authors=("Ada Lovelace",),
        doi="10.1234/Loom",
        citations=("2c3d",),
    )


def europepmc_page(*results: Any) -> str:
    """An answer of Europe PMC."""
    answer = {"version": "6.9", "hitCount": 2, "resultList": {"result": results}}
    return json.dumps(answer, indent=1)


def test_whole_results_of_europe_pmc_are_corpora(tmp_path: Path) -> None:
    file = write(tmp_path / "core.json", europepmc_page(RECORDS["europepmc"]))

    assert read(file) == (
        "europepmc",
        [
            Paper(
                id="31",
                title="Looms & numbers.",
                abstract="Aim To weave.",
                year=1843,
                authors=("Ada Lovelace", "Weaving Group"),
                venue="Journal of weaving",
                volume="12",
                issue="3",
                pages="12-19",
                doi="10.1234/Loom",
                type="Journal Article",
                times_cited="7",
                retracted=True,
            )
        ],
    )


def test_short_results_of_europe_pmc_are_corpora(tmp_path: Path) -> None:
    article = {
        "id": "32",
        "source": "MED",
        "title": "Threads.",
        "authorString": "Lovelace A, de la Cruz M.",
        "journalTitle": "J Weav",
        "journalVolume": "13",
        "issue": "1",
        "pubYear": "1844",
        "pubType": "journal article; retracted publication",
    }
    preprint = {
        "id": "PPR5",
        "source": "PPR",
        "title": "Knots",
        "pubYear": "2020",
        "pubType": "preprint",
        "bookOrReportDetails": {"publisher": "bioRxiv"},
    }

    first, second = papers(
        write(tmp_path / "lite.json", europepmc_page(article, preprint))
    )

    assert (first.authors, first.venue, first.year) == (
        ("Lovelace A", "de la Cruz M"),
        "J Weav",
        1844,
    )
    assert (first.volume, first.issue, first.retracted) == ("13", "1", True)
    assert (second.authors, second.retracted) == ((), False)
    assert (second.type, second.publisher) == ("preprint", "bioRxiv")


def test_pages_of_europe_pmc_are_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "1.json", europepmc_page(RECORDS["europepmc"]))
    write(tmp_path / "2.json", europepmc_page(RECORDS["europepmc"] | {"id": "32"}))

    assert [paper.id for paper in papers(tmp_path)] == ["31", "32"]


def test_works_of_crossref_with_selected_fields_are_works(tmp_path: Path) -> None:
    works = (
        {"DOI": "10.5555/Looms", "title": ["Looms"]},
        {
            "DOI": "10.5555/knots",
            "title": ["Knots"],
            "author": [{"given": "Ada", "family": "Lovelace"}],
            "issued": {"date-parts": [[1843]]},
        },
    )

    name, found = read(write(tmp_path / "a.json", json.dumps(crossref_page(*works))))

    assert name == "crossref"
    assert found == [
        Paper(id="10.5555/looms", title="Looms", doi="10.5555/Looms"),
        Paper(
            id="10.5555/knots",
            title="Knots",
            doi="10.5555/knots",
            authors=("Ada Lovelace",),
            year=1843,
        ),
    ]


def test_a_library_in_csl_may_begin_with_a_page_that_nobody_signed(
    tmp_path: Path,
) -> None:
    page = {"id": "1", "type": "webpage", "title": "Looms", "URL": "https://a.org"}
    article = {"id": "2", "title": "Knots", "author": [{"family": "Noel"}]}

    name, found = read(write(tmp_path / "a.json", json.dumps([page, article])))

    assert name == "csl"
    assert [paper.authors for paper in found if isinstance(paper, Paper)] == [
        (),
        ("Noel",),
    ]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (
            "a.json",
            '[{"id": "a", "title": "Knots", "author": [], "URL": "http://arxiv.org/abs/2101.00001v2"}]',
        ),
        ("a.ris", "TY  - UNPB\nTI  - Knots\nUR  - http://arxiv.org/abs/2101.00001\n"),
        (
            "a.bib",
            "@misc{a, title={Knots}, archiveprefix={arXiv}, eprint={2101.00001}}",
        ),
        (
            "dblp.bib",
            "@article{a, title={Knots}, journal={CoRR}, volume={abs/2101.00001}, "
            "url={http://a.org}}",
        ),
        (
            "s2.bib",
            "@article{a, title={Knots}, journal={ArXiv}, volume={abs/2101.00001}, "
            "url={https://api.semanticscholar.org/CorpusID:1}}",
        ),
        (
            "scholar.bib",
            "@article{a, title={Knots}, journal={arXiv preprint arXiv:2101.00001}}",
        ),
        (
            "a.bib",
            "@article{a, title={Knots}, journal={Weaving}, eprint={2101.00001}}",
        ),
        (
            "a.json",
            '[{"id": "a", "title": "Knots", "container-title": "Weaving", "URL": "http://arxiv.org/abs/2101.00001"}]',
        ),
        (
            "a.ris",
            "TY  - JOUR\nTI  - Knots\nT2  - Weaving\nUR  - http://arxiv.org/abs/2101.00001\n",
        ),
    ],
)
def test_the_number_of_a_preprint_on_arxiv_is_its_doi(
    tmp_path: Path, file: str, content: str
) -> None:
    [paper] = papers(write(tmp_path / file, content))

    is_article = paper.venue == "Weaving"  # which has another DOI than its copy
    assert paper.doi == ("" if is_article else "10.48550/arXiv.2101.00001")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("aps.bib", "@article{a, title={Knots}, eid={041001}, numpages={9}}"),
        (
            "wos.bib",
            "@article{ WOS:1,\nTitle = {Knots},\nArticle-Number = {041001},\n}",
        ),
        ("scopus.bib", "@ARTICLE{a,\n\ttitle = {Knots},\n\tart_number = {041001}\n}"),
        ("wos.ris", "TY  - JOUR\nTI  - Knots\nVL  - 3\nC7  - 041001\nER  -\n"),
        ("wos.txt", "FN Clarivate\nPT J\nTI Knots\nAR 041001\nER\nEF\n"),
    ],
)
def test_the_number_of_an_article_stands_for_pages(
    tmp_path: Path, file: str, content: str
) -> None:
    [paper] = papers(write(tmp_path / file, content))

    assert paper.pages == "041001"


def test_the_publisher_in_ris_of_web_of_science_is_read(tmp_path: Path) -> None:
    text = "TY  - JOUR\nTI  - Knots\nPU  - WEAVING PRESS\nPI  - LONDON\nER  -\n"

    [paper] = papers(write(tmp_path / "a.ris", text))

    assert paper.publisher == "WEAVING PRESS"


def test_of_several_links_of_mendeley_the_first_counts(tmp_path: Path) -> None:
    text = "@article{a, title={Knots}, url={http://a.org/x{\\_}y http://b.org}}"

    [paper] = papers(write(tmp_path / "a.bib", text))

    assert paper.url == "http://a.org/x_y"


@pytest.mark.parametrize(
    "name",
    [
        "Lovelace, Ada (ada@loom.org)",
        "Lovelace, Ada <ada@loom.org>",
        "Lovelace, Ada, ada@loom.org",
        "Lovelace, Ada; ada@loom.org",
        "Lovelace, Ada",
    ],
)
def test_an_address_of_mail_is_no_part_of_a_name(tmp_path: Path, name: str) -> None:
    text = f"FN Clarivate\nPT J\nAF {name}\n   Babbage, Charles\nTI Looms\nER\nEF\n"

    [paper] = papers(write(tmp_path / "a.txt", text))

    assert paper.authors == ("Ada Lovelace", "Charles Babbage")


def test_records_of_eric_are_read(tmp_path: Path) -> None:
    text = """OWN - ERIC
TI  - Weaving in the Classroom: Looms and
      Numbers
AU  - Lovelace, Ada
AU  - Babbage, Charles
JT  - Journal of Weaving Education
OID - EJ1
VI  - 12
PG  - 12-19
DP  - 2019
LID - http://eric.ed.gov/?id=EJ1
AB  - Children weave.
ISSN - ISSN-1234-5678
PT  - Journal Articles

OWN - ERIC
TI  - Threads
DP  - 2020
OID - ED2
"""

    first, second = papers(write(tmp_path / "eric.nbib", text))

    assert first == Paper(
        id="EJ1",
        title="Weaving in the Classroom: Looms and Numbers",
        abstract="Children weave.",
        year=2019,
        authors=("Ada Lovelace", "Charles Babbage"),
        venue="Journal of Weaving Education",
        volume="12",
        pages="12-19",
    )
    assert (second.id, second.title, second.year) == ("ED2", "Threads", 2020)
    assert [to_entry(*record).ids for record in read_records(text)] == [
        ("EJ1",),
        ("ED2",),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", ["", "%0 Journal Article\n"])
def test_records_of_enw_need_no_type_at_their_start(
    tmp_path: Path, kind: str, end: str
) -> None:
    text = f"""%T Looms
{kind}%A Lovelace, Ada
%A Babbage, Charles
%J Weaving
%D 2019
%X We weave.

%T Threads
{kind}%A Byron, Anna
%D 2020
"""

    looms, threads = read_records(text)
    name, found = read(write(tmp_path / "a.enw", text.replace("\n", end)))

    assert [to_entry(*looms).line, to_entry(*threads).line] == [1, 9 - (not kind)]
    assert name == "ris"
    assert [paper.title for paper in found if isinstance(paper, Paper)] == [
        "Looms",
        "Threads",
    ]
    assert to_entry(*looms).authors == ("Ada Lovelace", "Charles Babbage")
    assert (to_entry(*looms).venue, to_entry(*looms).abstract) == (
        "Weaving",
        "We weave.",
    )
    assert (to_entry(*threads).authors, to_entry(*threads).year) == (
        ("Anna Byron",),
        2020,
    )


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"authorString": "Lovelace A."}, "'authorString' of 2 records is not read"),
        ({"pubYear": "1843"}, "'pubYear' of 2 records is not read"),
        ({"journal": "Memoirs"}, "citerec's own format has 'venue'"),
        ({"date": "1843-09", "year": 1843}, ""),
    ],
)
def test_fields_that_are_named_otherwise_are_not_left_out_without_a_word(
    record: dict[str, Any], line: str, tmp_path: Path
) -> None:
    records = ({"id": name, "title": "Looms"} | record for name in "ab")
    log: list[str] = []

    papers(write(tmp_path / "a.jsonl", lines(*records)), log)

    assert line in "".join(log)
    assert bool(log) == bool(line)
