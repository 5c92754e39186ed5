"""What a file or a pasted text is, decided by one function; and lists of papers in every format that an index reads."""

import textwrap
from pathlib import Path

import pytest

from citerec.corpus.lists import parse_paper_list, read_paper_list
from citerec.corpus.readers import detect_format, find_source, recognise
from citerec.drafts import parse_queries
from citerec.errors import BadInputError
from citerec.serve.uploads import Upload, read_files

APA = """\
Lovelace, A., & Hopper, G. (2017). Trees as maps. Journal of Maps, 30(2), 1–12.
van der Berg, J., Öz, Ü., & Smith-Jones, K. (2019). Graphs: Drawing them well. In Proceedings of Maps (pp. 3–9).
World Health Organization. (2020). Global map report. https://doi.org/10.1000/xyz
"""
WRAPPED = "\n".join(
    textwrap.fill(line, 40, subsequent_indent="    ") for line in APA.splitlines()
)
DRAFT = "Maps, Trees and Graphs: 2010–2020\n\nSince 2010, as Lovelace, A. (2017) notes, maps grew. Others, too."
PRINTED, IDS, TEXT = "a printed list of references", "a list of ids", "plain text"
WORKS = """{"meta": {"count": 2}, "results": [
 {"id": "https://openalex.org/W7", "title": "Trees", "referenced_works": [], "authorships": []},
 {"id": "https://openalex.org/A7", "title": "No work", "referenced_works": []}
]}""".replace("\n", "")
PUBMED = """<?xml version="1.0"?><PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>7</PMID><Article>
<ArticleTitle>Trees</ArticleTitle><Abstract><AbstractText>\\documentclass{minimal}</AbstractText></Abstract>
</Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (APA, PRINTED),
        (f"References\n\n{WRAPPED}", PRINTED),
        (APA.splitlines()[0], PRINTED),
        ('[1]A. Lovelace et al., "Trees," in Proc. Maps, 2017, pp. 1–2.\n', PRINTED),
        (
            "1. Lovelace A, Hopper G. Trees. J Maps. 2017;30:1-12.\n2. Öz Ü. Maps. Maps. 2019;1:4.",
            PRINTED,
        ),
        (
            'Lovelace, Ada, et al. "Trees." Maps, vol. 3, 2017.\nOz, Ü. "On." Maps, 2019.',
            PRINTED,
        ),
        (
            "Ada Lovelace and Grace Hopper. 2017. Trees. In Maps.\nJ. Oz. 2019. Maps. Maps 3.",
            PRINTED,
        ),
        ("[1] 张三, 李四. 深度学习[J]. 计算机学报, 2018, 41(1): 1-20.", PRINTED),
        ("10.1145/3397271.34\nhttps://doi.org/10.18653/v1/N19\ndoi: 10.1000/x", IDS),
        (
            "arXiv:2004.12832v2\n1706.03762\nhep-th/9901001\nPMID: 2345678\nW2741809807",
            IDS,
        ),
        (DRAFT, TEXT),
        (
            "1. Introduction\nSince 2017 (Lovelace, 2017), maps.\n2. Methods\nAs in 2018, for all.",
            TEXT,
        ),
        (
            "Deep maps, as Oz (2019) notes, grew. So, a lot.\nRecent work by Lee, A. (2020) shows, too.",
            TEXT,
        ),
        ("Vision, Maps and Language Models in 2020", TEXT),
        ("word2vec", TEXT),
        ("2019", TEXT),
        ("\nPMID- 123\nOWN - NLM\n", "a list of papers (ris)"),
        ("%0 Journal Article\n%T Trees\n", "a list of papers (ris)"),
        ("%A Oz, A\n%T Trees\n%D 2020\n", "a list of papers (ris)"),
        ("OWN - ERIC\nTI  - Trees\n", "a list of papers (ris)"),
        ("%A template\n%T was typed\n\\documentclass{minimal}", "a draft (LaTeX)"),
        (
            "PMID- 1\nTI  - A\nAB  - We\n      \\documentclass{minimal}",
            "a list of papers (ris)",
        ),
        ("PMID: 31234567 is what we read.\nIt says so.", TEXT),
        ("50 of us read\n%0 Journal Article\nas a comment.", TEXT),
        (
            "%A lovely file of references\n@misc{a, title={A}}",
            "a list of papers (bibtex)",
        ),
        (
            "\ufeffFN Clarivate Analytics Web of Science\nVR 1.0\nPT J\n",
            "a list of papers (ris)",
        ),
        ("PT J\r\nAU Oz, A\r\nTI Trees\r\nER\r\n", "a list of papers (ris)"),
        ("PT\tAU\tTI\tSO\nJ\tOz\tTrees\tMaps\n", "a table (pass"),
        ("PMID,Title,Authors\n1,Trees,Oz\n", "a table (pass"),
        ("Item Title,Publication Title,Item DOI\nTrees,Maps,\n", "a table (pass"),
        ('<rdf:RDF\n xmlns:rdf="x">', "RDF (of Zotero?"),
        ('<?xml version="1.0"?><xml><records>', "EndNote's XML (export"),
        (r"\begin{thebibliography}{9}", "LaTeX (pass"),
        ("Provider: X\n\nTY  - JOUR\nTI  - A\n", "a list of papers (ris)"),
        (
            "TY  - JOUR\nAB  - We\n\\documentclass{minimal}\nER  - ",
            "a list of papers (ris)",
        ),
        (PUBMED, "a list of papers (pubmed)"),
        (WORKS, "a list of papers (openalex)"),
        ('{"title": "A"}', "a list of papers (json)"),
        ("\\documentclass{article}\\cite{a}", "a draft (LaTeX)"),
        ("# Maps\n\n## Trees\nText.", "a draft (Markdown)"),
        ("\0\0", "binary data"),
    ],
)
def test_one_function_decides_what_a_text_is(text: str, expected: str) -> None:
    assert str(recognise(text.encode(), "pasted.txt")).startswith(expected)


def test_a_wrapped_list_has_as_many_references_as_the_same_list_on_lines() -> None:
    lines, wrapped = (parse_paper_list(text, "refs").entries for text in (APA, WRAPPED))

    assert (
        [one.text for one in wrapped] == [one.text for one in lines] == APA.splitlines()
    )


def test_what_an_index_reads_is_a_list_too(tmp_path: Path) -> None:
    (tmp_path / "works").write_text(WORKS)

    works, pubmed = (
        read_paper_list(tmp_path / "works"),
        parse_paper_list(PUBMED, "refs"),
    )

    assert [(one.ids, one.title, one.line) for one in works.entries] == [
        (("W7",), "Trees", 1)
    ]
    assert works.unread == (
        "line 1: 'id' must be that of a work, such as W1; found 'https://openalex.org/A7'",
    )
    assert [(one.ids, one.title) for one in pubmed.entries] == [(("7",), "Trees")]


def test_a_list_is_no_draft_and_a_draft_no_list() -> None:
    for text, what in ((APA, PRINTED), ("10.1145/3397271.34", IDS)):
        with pytest.raises(
            BadInputError, match=f"this is {what} and no draft; give it as --cited"
        ):
            parse_queries(text.encode())
    with pytest.raises(
        BadInputError, match=r"this is a draft \(LaTeX\); pass the \.bib file"
    ):
        parse_paper_list(r"\documentclass{article}\cite{a}", "refs")
    assert parse_queries(DRAFT.encode()).queries[0].title == DRAFT.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (APA, f"this is {PRINTED}, not a corpus; citerec collect FILE fetches"),
        ("10.1145/3397271.34", f"this is {IDS}, not a corpus; citerec collect FILE"),
        (
            r"\documentclass{article}",
            r"this is a draft \(LaTeX\), not a corpus; citerec recommend --query",
        ),
        ("<rdf:RDF/>", r"this is RDF .*, not a corpus; expected JSON lines"),
    ],
)
def test_an_index_says_what_to_do_with_what_is_no_corpus(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "given").write_text(text)

    with pytest.raises(BadInputError, match=message):
        detect_format(find_source(tmp_path / "given"))


def test_an_upload_is_what_its_content_is_whatever_its_name(tmp_path: Path) -> None:
    lists = {
        "a.txt": APA,
        "b.json": WORKS,
        "c": PUBMED,
        "d.jsonl": 2 * '{"title": "A"}\n',
        "europepmc.json": '{"resultList": {"result": [{"id": "1", "source": "MED", '
        '"title": "A", "pubYear": "2019"}]}}',
        "s2.json": '{"total": 1, "data": [{"paperId": "1", "title": "A"}]}',
    }
    one_record = Upload("e.json", b'{"title": "Trees", "abstract": "Grow."}')
    uploads = [Upload(name, text.encode()) for name, text in lists.items()]
    rdf = Upload("f.rdf", b"<rdf:RDF/>")

    read, both = (
        read_files(files, str(tmp_path)) for files in (uploads, [rdf, uploads[0]])
    )

    assert read.draft is None
    assert [(name, len(found.entries)) for name, found in read.lists] == [
        *(("a.txt", 3), ("b.json", 1)),
        *(("c", 1), ("d.jsonl", 2), ("europepmc.json", 1), ("s2.json", 1)),
    ]
    assert [name for name, _ in both.lists] == ["a.txt"]
    assert "f.rdf: this is RDF" in "".join([*both.unread, *map(str, both.faults)])
    draft = read_files([one_record, Upload("a.txt", APA.encode())], str(tmp_path)).draft
    assert draft is not None
    assert draft["title"] == "Trees"
