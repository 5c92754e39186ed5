"""One record of each JSON format becomes the paper that it states, or a fault with its place."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus.readers import detect_format, find_source, read_papers
from citerec.errors import BadInputError, BadRecordError, MissingExtraError
from citerec.types import Paper

BERT = Paper(
    id="bert",
    title="BERT: Pre-training of Transformers",
    abstract="We introduce BERT.",
    year=2019,
    authors=("Jacob Devlin", "Ming-Wei Chang"),
    venue="NAACL",
    citations=("elmo", "gpt"),
)
TEXTS = {"title": "BERT:  Pre-training\nof Transformers", "year": 2019, "venue": "NAACL"}
AUTHORS = ["Jacob Devlin", "Ming-Wei Chang"]
ABSTRACT = " We introduce BERT. "
CITED = ["elmo", "gpt"]
RECORDS: dict[str, dict[str, Any]] = {
    "canonical": {
        **{"id": "bert", **TEXTS, "abstract": ABSTRACT, "authors": AUTHORS, "citations": CITED},
        "key_phrases": ["nlp"],  # citations decide, not a key of another format
    },
    "openresearch": {
        **{"id": "bert", **TEXTS, "paperAbstract": ABSTRACT, "outCitations": CITED},
        "authors": [{"name": "Jacob Devlin", "ids": ["7"]}, {"name": "Ming-Wei Chang", "ids": []}],
        **{"inCitations": ["roberta"], "doi": "10.5555/bert", "s2Url": "https://s2.org/bert"},
        **{"journalVolume": "", "journalPages": "4171-4186"},
    },
    "citeomatic": {
        **{"id": "bert", **TEXTS, "abstract": ABSTRACT, "authors": AUTHORS},
        **{"out_citations": CITED, "in_citations": ["roberta"], "key_phrases": ["nlp"]},
    },
    "beir": {
        **{"_id": "bert", "title": TEXTS["title"], "text": ABSTRACT},
        "metadata": {"authors": AUTHORS, "year": 2019, "venue": "NAACL", "references": CITED},
    },
}
W = "https://openalex.org/W"
OPENALEX: dict[str, Any] = {
    "id": f"{W}2741809807",
    "doi": "https://doi.org/10.7717/peerj.4375",
    "title": "The state of <i>OA</i> &amp; more",
    "display_name": "The state of <i>OA</i> &amp; more",
    "publication_year": 2018,
    "type": "article",
    "is_retracted": False,
    "is_paratext": False,
    "primary_location": {
        "landing_page_url": "https://doi.org/10.7717/peerj.4375",
        "source": {"display_name": "PeerJ", "host_organization_name": "PeerJ, Inc."},
    },
    "authorships": [
        {"author_position": "first", "author": {"id": "A1", "display_name": "Ada Smith"}},
        {"author_position": "last", "author": {"id": "A2", "display_name": "Bo Li"}},
    ],
    "biblio": {"volume": "6", "issue": None, "first_page": "e4375", "last_page": "e4375"},
    "abstract_inverted_index": {"Despite": [0], "growth": [2], "of": [3, 7], "the": [1], "OA": [9]},
    "referenced_works": [f"{W}1", f"{W}22"],
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
    "doi": "10.5555/1091",
    "references": [2005, 7],
    "indexed_abstract": {"IndexLength": 2, "InvertedIndex": {"We": [0], "design.": [1]}},
}
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
S2_PAPER: dict[str, Any] = {
    "corpusid": 12,
    "externalids": {"ACL": None, "DOI": "10.5555/12", "CorpusId": "12"},
    "url": "https://www.semanticscholar.org/paper/abc",
    "title": "Graphs of papers",
    "authors": [{"authorId": "7", "name": "Ada Smith"}, {"authorId": None, "name": "Bo Li"}],
    "venue": "",
    "year": 2015,
    "publicationtypes": ["JournalArticle", "Review"],
    "journal": {"name": "J. Graphs", "pages": "1-9", "volume": "3"},
}
CSL = [
    {
        "id": 12,
        "type": "article-journal",
        "title": "On <i>Quercus</i>",
        "container-title": ["Trees"],
        "issued": {"date-parts": [["2001", 5]]},
        "author": [
            {"family": "Berg", "given": "Anna", "non-dropping-particle": "van der"},
            {"literal": "The Tree Consortium"},
        ],
        "DOI": "10.1234/ABC",
        "page": "12-15",
    },
    {"id": "b", "type": "book", "title": 'Brace } in " a title', "issued": {"raw": "c. 1999"}},
]
CSL_PAPERS = [
    Paper(
        id="12",
        title="On Quercus",
        year=2001,
        authors=("Anna van der Berg", "The Tree Consortium"),
        venue="Trees",
        doi="10.1234/ABC",
        type="article-journal",
        pages="12-15",
    ),
    Paper(id="b", title='Brace } in " a title', year=1999, type="book"),
]
ARXIV = {
    "id": "0704.0001",
    "authors": "C. Bal\\'azs and E. L. Berger",
    "title": "Calculation of\n  prompt $\\gamma$ photons",
    "doi": "10.5555/photons",
    "journal-ref": "J.Example 76:013009,2007",
    "abstract": "  We calculate. ",
    "versions": [{"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"}],
    "update_date": "2008-11-26",
    "authors_parsed": [["Bal\\'azs", "C.", ""], ["Berger", "E. L.", "Jr.", "An Institute"]],
}


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode(errors="surrogateescape")
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def read(path: Path, log: list[str] | None = None) -> tuple[str, list[Paper | BadRecordError]]:
    source = find_source(path)
    name = detect_format(source)
    messages = [] if log is None else log
    return name, [located.paper for located in read_papers(source, name, log=messages.append)]


def titles(path: Path, log: list[str] | None = None) -> dict[str, str]:
    return {paper.id: paper.title for paper in read(path, log)[1] if isinstance(paper, Paper)}


def shapes(*records: Any) -> list[str]:
    """The shapes in which JSON of several records is published."""
    return [lines(*records), json.dumps(records), json.dumps(records, indent=2)]


# --- Lines of one format each


@pytest.mark.parametrize("name", RECORDS)
def test_each_format_is_recognised_and_read_to_the_same_paper(tmp_path: Path, name: str) -> None:
    found_format, [paper] = read(write(tmp_path / "papers.jsonl", lines(RECORDS[name])))

    assert found_format == name
    assert isinstance(paper, Paper)
    common = {field: getattr(paper, field) for field in ("id", "title", "abstract", "year")}
    assert (
        Paper(**common, authors=paper.authors, venue=paper.venue, citations=paper.citations) == BERT
    )
    if name == "openresearch":
        assert (paper.pages, paper.doi) == ("4171-4186", "10.5555/bert")
        assert paper.url == "https://s2.org/bert"


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("canonical", {"id": "x", "title": "X"}),
        ("openresearch", {"id": "x", "title": "X", "inCitations": []}),
        ("citeomatic", {"id": "x", "title": "X", "key_phrases": []}),
        ("beir", {"_id": "x", "title": "X", "text": None, "metadata": {}}),
        *((name, dict.fromkeys(RECORDS[name]) | {"id": "x", "title": "X"})
          for name in ("canonical", "openresearch", "citeomatic")),
    ],
)  # fmt: skip
def test_a_record_with_no_more_than_it_needs_is_a_paper(
    tmp_path: Path, name: str, record: dict[str, Any]
) -> None:
    assert read(write(tmp_path / "x.jsonl", lines(record))) == (name, [Paper(id="x", title="X")])


def test_a_beir_passage_without_a_title_is_a_paper(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", lines({"_id": "x", "text": "Some passage."}))

    assert read(path)[1] == [Paper(id="x", title="", abstract="Some passage.")]


@pytest.mark.parametrize(
    "record",
    [
        {"references": ["c"], "n_citation": 1},
        {"DOI": "10.5555/a", "issued": 2001},
        {"abstract_inverted_index": {}},
    ],
)
def test_canonical_papers_with_further_keys_stay_canonical(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    record |= {"id": "a", "title": "A", "citations": ["b"]}

    name, found = read(write(tmp_path / "a.jsonl", lines(record)))

    assert (name, found) == ("canonical", [Paper(id="a", title="A", citations=("b",))])


@pytest.mark.parametrize("shape", range(3))
def test_csl_json_is_read_in_every_shape(tmp_path: Path, shape: int) -> None:
    path = write(tmp_path / "library.json", "\ufeff" + shapes(*CSL)[shape])

    assert read(path) == ("csl", CSL_PAPERS)


def test_the_snapshot_of_arxiv_is_read(tmp_path: Path) -> None:
    log: list[str] = []
    old = ARXIV | {"id": "hep-th/9901001", "versions": [], "authors_parsed": [], "doi": None}

    name, [first, second] = read(write(tmp_path / "arxiv.json", lines(ARXIV, old)), log)

    assert name == "arxiv"
    assert first == Paper(
        id="0704.0001",
        title="Calculation of prompt γ photons",
        abstract="We calculate.",
        year=2007,
        authors=("C. Balázs", "E. L. Berger Jr."),
        venue="J.Example 76:013009,2007",
        doi="10.5555/photons",
        url="https://arxiv.org/abs/0704.0001",
        type="preprint",
    )
    assert isinstance(second, Paper)
    assert (second.year, second.authors) == (1999, ("C. Balázs", "E. L. Berger"))
    assert log[0].startswith("the snapshot of arXiv has no citations")


# --- OpenAlex


@pytest.mark.parametrize(
    "text",
    [
        *shapes(OPENALEX),
        json.dumps(OPENALEX, indent=2),
        json.dumps({"meta": {"count": 1}, "results": [OPENALEX], "group_by": []}),
        json.dumps({"meta": {"count": 1}, "results": [OPENALEX]}, indent=2),
    ],
)
def test_a_work_of_openalex_is_read_from_every_shape(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path / "works.json", text)) == ("openalex", [PEERJ])


def test_a_work_with_null_everywhere_has_an_id_and_an_empty_title(tmp_path: Path) -> None:
    nothing: dict[str, Any] = dict.fromkeys(OPENALEX) | {"id": f"{W}5"}
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


# --- AMiner


@pytest.mark.parametrize("text", [*shapes(AMINER_V12), f"[{json.dumps(AMINER_V12)}\n,{{}}\n]"])
def test_a_record_of_aminer_is_read_from_every_shape(tmp_path: Path, text: str) -> None:
    name, found = read(write(tmp_path / "dblp.json", text))

    assert (name, found[0]) == ("aminer", DESIGN)


def test_version_10_has_plain_texts_and_version_13_the_notation_of_mongodb(tmp_path: Path) -> None:
    v10 = {"id": "00127ee2", "title": "T", "abstract": "A", "authors": ["Ada Smith"], "year": 2013}
    plain = read(write(tmp_path / "0.json", lines({**v10, "references": ["51c7"], "venue": "V"})))
    shell = read(write(tmp_path / "dblpv13.json", AMINER_V13))

    expected = Paper(id="00127ee2", title="T", abstract="A", authors=("Ada Smith",), year=2013,
                     citations=("51c7",), venue="V")  # fmt: skip
    assert plain == ("aminer", [expected])
    assert shell == (
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
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = s2_folder(tmp_path / "dump", abstracts=ABSTRACTS, citations=CITATIONS)
    log: list[str] = []
    (scratch := tmp_path / "scratch").mkdir()

    name = detect_format(source := find_source(folder))
    records = read_papers(source, name, log=log.append, scratch=scratch)
    first = next(records)
    during = [path.name for path in scratch.iterdir()]

    assert name == "s2ag"
    assert [located.paper for located in (first, *records)] == [
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
    assert [name.startswith(".joining-") for name in during] == [True]
    assert list(scratch.iterdir()) == []
    assert capfd.readouterr().out == ""


def test_paper_ids_give_the_ids_of_the_api(tmp_path: Path) -> None:
    folder = s2_folder(tmp_path, citations=CITATIONS, ids=IDS)

    found = {paper.id: paper.citations for paper in read(folder)[1] if isinstance(paper, Paper)}

    assert found == {"aa03": (), "aa12": ("aa03", "99")}


def test_papers_without_further_dumps_need_no_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    log: list[str] = []
    write(s2_folder(tmp_path) / "tldrs.gz", lines({"corpusid": 3, "model": "x", "text": "y"}))

    assert titles(tmp_path, log) == {"12": "Graphs of papers", "3": "Three"}
    assert log == [
        "left out tldrs.gz: neither papers nor abstracts, citations or paper-ids",
        f"there is no dump of abstracts in {tmp_path}: the papers have none",
        f"there is no dump of citations in {tmp_path}: the papers have none",
    ]
    with pytest.raises(MissingExtraError, match=r"pip install 'citerec\[corpora\]'"):
        read(s2_folder(tmp_path, abstracts=ABSTRACTS))


def test_a_broken_line_of_a_dump_and_missing_papers_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"abstracts-0\.gz"):
        read(s2_folder(tmp_path / "a", abstracts=ABSTRACTS + '{"corpusid": 12,\n'))
    write(tmp_path / "b" / "citations.gz", CITATIONS)
    with pytest.raises(BadInputError, match="dump of papers is missing; found citations; put"):
        read(tmp_path / "b")


# --- Faults

V12 = json.dumps(AMINER_V12)
FAULTS: dict[str, tuple[str, str]] = {
    "openalex: author id": (lines({**OPENALEX, "id": "https://openalex.org/A7"}), "that of a work"),
    "openalex: no id": (lines(OPENALEX, {"title": "A", "authorships": []}), "line 2: no 'id'"),
    "openalex: year": (lines({**OPENALEX, "publication_year": "MM"}), "must be a year"),
    "openalex: index": (lines({**OPENALEX, "abstract_inverted_index": [1]}), "must be an object"),
    "openalex: authorships": (lines({**OPENALEX, "authorships": {"a": 1}}), "must be a list"),
    "openalex: source": (lines({**OPENALEX, "primary_location": {"source": "P"}}), "an object"),
    "openalex: references": (lines({**OPENALEX, "referenced_works": ["10.1/x"]}), "found '10.1/x'"),
    "openalex: deep": (
        lines(OPENALEX) + '{"id": "W1", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
        "line 2: not JSON",
    ),
    "openalex: Latin-1": (lines(OPENALEX) + '{"id": "caf\udce9"}\n', "line 2: not JSON"),
    "s2ag: corpus id": (lines({**S2_PAPER, "corpusid": "x1"}), "must be a whole number"),
    "aminer: no id": (f"[{V12},\n" + json.dumps({"title": "A"}) + "]", "line 2: no 'id'"),
    "aminer: references": (lines({**AMINER_V12, "references": [1.5]}), "found 1.5"),
    "aminer: broken element": (f"[\n{V12},\n{{'id': 1}},\n{V12}\n]", "record 2 is not JSON"),
    "beir: metadata": (lines({"_id": "x", "text": "", "metadata": [1]}), "must be an object"),
    "csl: year": (lines({"id": "a", "title": "A", "issued": 7.5}), "must be a year"),
    "csl: title": (lines({"id": "a", "title": {}, "issued": {}}), "'title' must be a string"),
    "csl: id": (lines({"id": [], "title": "A", "issued": {}}), "'id' must be a string"),
    "arxiv: authors": (lines(ARXIV | {"authors_parsed": "A"}), "'authors_parsed' must be a list"),
    "arxiv: title": (lines(ARXIV | {"title": None}), "'title' must be a string"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_record_is_one_line_with_its_place(tmp_path: Path, name: str) -> None:
    text, message = FAULTS[name]
    path = write(tmp_path / "dump.data", text)

    found_format, found = read(path)
    [fault] = [str(record) for record in found if isinstance(record, BadRecordError)]

    assert found_format == name.partition(":")[0]
    assert message in fault
    assert fault.startswith(f"{path}, line ")
    assert "\n" not in fault
    assert len(fault) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[{V12},{V12[:-9]}", "line 1: the file ends inside record 2"),
        (f"[{V12},", "line 1: the file ends inside record 2"),
        (f'[{json.dumps(CSL[1])},\n{{"id": "b"', "line 2: the file ends inside record 2"),
    ],
)
def test_an_array_that_is_cut_off_says_so(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read(write(tmp_path / "a.json", text))
