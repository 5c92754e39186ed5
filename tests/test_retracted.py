"""A retraction that a source states is kept, read by every format, named everywhere, and never recommended."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.types import Build, Invoke

from citerec import RecommendConfig, Recommender
from citerec.bibliography import write
from citerec.build.corpora import merge, open_corpus
from citerec.build.index import BuildConfig, build_index, grow_index
from citerec.evaluation.protocol import load_eval_set
from citerec.index.folder import open_index
from citerec.rules.eligible import mask
from citerec.train.data import load_training_data
from citerec.types import Query

TITLE, OTHER = "Vaccines and growth in children", "Growth in children of the north"
# the second cites the first, which was retracted
CANONICAL = """\
{"id": "a", "title": "Vaccines and growth in children", "year": 1998, "doi": "10.5555/Vaccines", "retracted": true}
{"id": "b", "title": "Growth in children of the north", "year": 2004, "citations": ["a"], "retracted": 0}
"""
BEIR = """\
{"_id": "a", "title": "Vaccines and growth in children", "text": "", "metadata": {"year": 1998, \
"doi": "10.5555/vaccines", "retracted": true}}
{"_id": "b", "title": "Growth in children of the north", "text": "", "metadata": {"references": ["a"]}}
"""
OPENALEX = """\
{"id": "https://openalex.org/W1", "doi": "https://doi.org/10.5555/vaccines", "title": \
"Vaccines and growth in children", "publication_year": 1998, "is_retracted": true, "referenced_works": []}
{"id": "https://openalex.org/W2", "title": "Growth in children of the north", "publication_year": 2004, \
"is_retracted": false, "referenced_works": ["https://openalex.org/W1"]}
"""
CROSSREF = """\
{"DOI": "10.5555/Vaccines", "title": ["Vaccines and growth in children"], "reference": [],
 "published-print": {"date-parts": [[1998]]}, "updated-by": [{"DOI": "10.5555/n", "type": "retraction"}]}
{"DOI": "10.5555/b", "title": ["Growth in children of the north"], "issued": {"date-parts": [[2004]]},
 "reference": [{"DOI": "10.5555/vaccines"}], "updated-by": [{"DOI": "10.5555/c", "type": "correction"}]}
""".replace("\n ", " ")
NOTICE = """\
{"DOI": "10.5555/n", "title": ["Withdrawn"], "update-to": [{"DOI": "10.5555/Vaccines", "type": "retraction"}]}
"""
PUBMED = """<PubmedArticleSet>
<PubmedArticle><MedlineCitation><PMID>1</PMID><Article>
  <Journal><JournalIssue><PubDate><Year>1998</Year></PubDate></JournalIssue></Journal>
  <ArticleTitle>Vaccines and growth in children</ArticleTitle>
  <PublicationTypeList><PublicationType>Journal Article</PublicationType><PublicationType>Retracted Publication
  </PublicationType></PublicationTypeList></Article></MedlineCitation>
  <PubmedData><ArticleIdList><ArticleId IdType="doi">10.5555/vaccines</ArticleId></ArticleIdList></PubmedData>
</PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>2</PMID><Article>
  <ArticleTitle>Growth in children of the north</ArticleTitle></Article>
  <CommentsCorrectionsList><CommentsCorrections RefType="ErratumIn"/><CommentsCorrections RefType="RetractionOf"/>
  </CommentsCorrectionsList></MedlineCitation><PubmedData><ReferenceList><Reference><ArticleIdList>
  <ArticleId IdType="pubmed">1</ArticleId></ArticleIdList></Reference></ReferenceList></PubmedData>
</PubmedArticle></PubmedArticleSet>"""
LINK = '<CommentsCorrectionsList><CommentsCorrections RefType="RetractionIn"/></CommentsCorrectionsList>'
LINKED = PUBMED.replace("Retracted Publication", "Letter").replace(
    "<PMID>1", f"{LINK}<PMID>1"
)
S2AG = """\
{"corpusid": 1, "title": "Vaccines and growth in children", "year": 1998, "externalids": {"DOI": "10.5555/vaccines"}}
{"corpusid": 2, "title": "Growth in children of the north", "year": 2004, "externalids": {"DOI": "10.5555/north"}}
"""
TABLE = """\ufeffRecord ID,Title,RetractionDate,OriginalPaperDOI,RetractionNature,Reason
1,"Vaccines,
and growth",1/24/2010 0:00,https://doi.org/10.5555/VACCINES,Retraction,+Ethics;
2,Growth,1/24/2011 0:00,10.5555/north,Expression of concern,
3,Growth,1/24/2011 0:00,10.5555/north,Correction,
4,Roots,1/24/2011 0:00,10.5555/roots,Retraction,
5,Roots,1/24/2012 0:00,10.5555/roots,Reinstatement,
6,No DOI,1/24/2012 0:00,unavailable,Retraction,
7,A short row
"""
SOURCES = {
    "canonical/corpus.jsonl": CANONICAL,
    "beir/corpus.jsonl": BEIR,
    "openalex/page.json": '{"meta": 0, "results": ['
    + ",".join(OPENALEX.splitlines())
    + "]}",
    "snapshot/works/updated_date=2026-06-24/part_000": OPENALEX,
    "pubmed/a.xml": PUBMED,
    "linked/a.xml": LINKED,
    "crossref/works.jsonl": CROSSREF,
    "notice/works.jsonl": CROSSREF.replace("retraction", "correction") + NOTICE,
    "table/papers.jsonl": S2AG,
}
REFS = f"@misc{{v, title={{{TITLE}}}, year=1998}}\n@misc{{g, title={{{OTHER}}}}}\n"


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_answer(
    tmp_path: Path, invoke: Invoke, java: None, name: str
) -> None:
    corpus = written(tmp_path, name, SOURCES[name])
    table = written(tmp_path, "table.csv", TABLE) if "table" in name else None
    refs = written(tmp_path, "refs.bib", REFS)
    index = build_index(
        corpus if table else tmp_path / name.partition("/")[0],
        tmp_path / "index",
        BuildConfig(retracted=table),
    ).index

    opened = open_index(index)
    with Recommender(opened, RecommendConfig(few_queries=True)) as recommender:
        draft = recommender.recommend(title=TITLE.lower() + " of the north")
        sentence = recommender.recommend(
            context="Vaccines stop growth in children [CITE]."
        )
        batch = recommender.recommend_many(
            [Query(id="q", title=TITLE), Query(id="r", title="A")]
        )
        lists = [draft, sentence, *batch, recommender.recommend(cited=[OTHER])]
    code, out, _ = invoke(
        "check", refs, "--index", index, "--strict", "--format", "json"
    )
    _, shown, _ = invoke("info", "--index", index)

    [row] = opened.papers.retracted.tolist()
    retracted = opened.papers[row]
    problems = [
        one for one in json.loads(out)["findings"] if one["problem"] == "retracted"
    ]
    assert (retracted.title, retracted.retracted) == (TITLE, True)
    assert OTHER in [paper.title for paper in draft.papers]
    assert [found for found in lists if retracted.id in found.ids] == []
    assert [(one["key"], one["id"]) for one in problems] == [("v", retracted.id)]
    assert problems[0]["corpus"].lower() == "1998, 10.5555/vaccines"
    assert code == 1
    assert "1  retracted, which are never recommended" in shown


# --- the table of Retraction Watch, and what becomes of an index


def flags(index: Path) -> list[bool]:
    papers = open_index(index).papers
    return [papers[row].retracted for row in range(len(papers))]


def test_an_index_learns_of_retractions_and_keeps_them_when_it_grows(
    tmp_path: Path, invoke: Invoke, java: None
) -> None:
    roots = '{"id": "c", "title": "Roots", "doi": "10.5555/ROOTS"}\n'
    corpus = written(tmp_path, "a.jsonl", CANONICAL.replace("true", "null") + roots)
    index = build_index(corpus, tmp_path / "index", BuildConfig()).index
    before = flags(index)

    done = invoke(
        "index", "--retracted", written(tmp_path, "t.csv", TABLE), "--index", index
    )
    learnt = flags(index)
    grow_index(
        index,
        BuildConfig(),
        corpus=written(tmp_path, "b.jsonl", roots.replace("c", "d")),
    )

    assert (before, done[0], learnt) == ([False] * 3, 0, [True, False, False])
    assert sorted(flags(index)) == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            "DOI,Nature\n10.1/x,Retraction\n",
            "('RetractionNature'); expected CSV with the columns",
        ),
        (
            'a,"' + "x" * 200_000,
            "(field larger than field limit (131072)); expected CSV with",
        ),
        ("PK\x03\x04", "this is a zip archive"),
    ],
    ids=["columns", "long", "zip"],
)
def test_a_table_of_something_else_is_one_clear_line(
    tmp_path: Path, invoke: Invoke, content: str, fault: str
) -> None:
    corpus = written(tmp_path, "corpus.jsonl", CANONICAL)
    table = written(tmp_path, "other.csv", content)

    target = ("--index", tmp_path / "new", "--encoder", "none")
    code, _, err = invoke("index", corpus, "--retracted", table, *target)

    assert (code, err.count("\n"), fault in err) == (2, 1, True)
    assert not (tmp_path / "new").exists()


def test_joined_records_are_retracted_if_one_is(tmp_path: Path) -> None:
    plain = written(tmp_path, "plain.jsonl", CANONICAL.replace("true", "false"))

    merge(
        [open_corpus(plain), open_corpus(written(tmp_path, "b.jsonl", CANONICAL))],
        tmp_path / "c.jsonl",
    )

    lines = (tmp_path / "c.jsonl").read_text().splitlines()
    assert [json.loads(line).get("retracted") for line in lines] == [True, None]


# --- page, assistants and exports


def test_page_assistant_and_exports_name_a_retracted_paper(
    build: Build, browser: Any
) -> None:
    pytest.importorskip("uvicorn", reason="the server is not installed")
    mcp = pytest.importorskip("citerec.serve.mcp", reason="mcp is not installed")
    from support.browsing import expect, open_page
    from support.server import listening

    from citerec.serve.service import Service

    index = build([json.loads(line) for line in CANONICAL.splitlines()])
    service = Service({"x": index.path})
    [opened] = service.indexes.values()
    papers, notes = [index.papers[row] for row in (0, 1)], {"a": "All cite it."}

    found = mcp.search(opened, "growth")
    checked = mcp.check_bibliography(opened, REFS)
    with listening(service) as at, open_page(browser, at) as page:
        page.locator("#add").press_sequentially("vaccines")
        expect(page.locator("#add-list li").first).to_contain_text("retracted")
        page.locator("#add").press("Enter")
        page.reload()
        expect(page.locator("#known li")).to_contain_text(f"{TITLE} retracted")
        page.click("#known .named")
        expect(page.locator("#details .by")).to_contain_text("retracted")
        page.click("#details [data-name=taken]")
        page.click("#details [data-name=close]")
        expect(page.locator("#shelf ol li")).to_contain_text(f"{TITLE} retracted")
    service.close()

    assert {one["id"]: one["retracted"] for one in found["results"]} == {
        "a": True,
        "b": False,
    }
    assert "note = {Retracted}" in mcp.get_paper(opened, "a")["bibtex"]
    assert [one["problem"] for one in checked["problems"]].count("retracted") == 1
    assert re.findall("N1  - (.*)", write.ris(papers, notes=notes)) == [
        "Retracted",
        "All cite it.",
    ]
    items = json.loads(write.csl(papers, notes))
    assert [item.get("note") for item in items] == ["Retracted; All cite it.", None]
    stated = re.findall("(?:note|annotation) = .*", write.bibtex(papers, notes))
    assert stated == ["note = {Retracted},", "annotation = {All cite it.},"]


# --- evaluation and training


def test_gold_candidates_and_positives_are_papers_that_may_be_recommended(
    build: Build,
) -> None:
    cited = [
        {"id": f"c{n}", "title": "C", "year": 2000, "retracted": n == 0}
        for n in range(3)
    ]
    citing = [
        {"id": f"q{n}", "title": "Q", "year": 2001 + n, "citations": ["c0", "c1"]}
        for n in range(20)
    ]
    # so it has no gold
    last = {
        "id": "z",
        "title": "Z",
        "year": 2030,
        "citations": ["c0"],
    }
    index = build([*cited, *citing, last])

    test, training = load_eval_set(index, "test"), load_training_data(index)

    assert {docid for gold in test.qrels.values() for docid in gold} == {"c1"}
    assert "z" not in test.qrels
    assert not any(mask(rule, index.papers.years)[0] for rule in test.eligible)
    assert {*training.gold.indices.tolist()} == {1}
