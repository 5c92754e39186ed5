"""Recommendations as text: what programs are promised, and what people see."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import bibtexparser
import numpy as np
import pytest
import rispy
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pybtex.database import parse_string as parse_with_pybtex
from support.tables import table

from citerec.bibliography.keys import Name, dois_of, split_name
from citerec.bibliography.publication import kind_of
from citerec.drafts import parse_queries
from citerec.export import Format, Result, pieces
from citerec.export.terminal import tables
from citerec.types import Paper, Query, Recommendation, StageHit

ATTENTION = Paper(
    id="10.5555/a_b",
    title="Attention Is All You Need: GPT-2 & 50% more",
    abstract="Secret.",
    year=2017,
    authors=("Ashish Vaswani", "van der Berg, Jan", "The Gene Consortium"),
    venue="NeurIPS",
)
BARE = Paper(id="p 2", title="Vitamin D")
QUERY = Query(id="my draft", title="T")
WILD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def result(
    papers: Sequence[Paper], scores: Sequence[float] = (), *, query: Query = QUERY
) -> Result:
    pairs = zip(
        papers, scores or [1.0 / (n + 1) for n in range(len(papers))], strict=True
    )
    ranked = enumerate(pairs, start=1)
    return Result(
        query, tuple(Recommendation(rank=n, paper=p, score=s) for n, (p, s) in ranked)
    )


def dump_one(format: Format, *papers: Paper) -> str:
    return "".join(pieces([result(papers)], format, batch=False))


def test_json_of_one_query_is_a_list_with_the_promised_keys() -> None:
    found = Recommendation(
        rank=1,
        paper=ATTENTION,
        score=41.25,
        stages={"bm25": StageHit(3, 41.25)},
        reasons=("shares 'attention'",),
    )

    text = "".join(pieces([Result(QUERY, (found,))], Format.JSON, batch=False))

    assert json.loads(text) == [
        {
            "rank": 1,
            "id": "10.5555/a_b",
            "title": ATTENTION.title,
            "year": 2017,
            "score": 41.25,
            "stages": {"bm25": {"rank": 3, "score": 41.25}},
            "probability": None,
            "reasons": ["shares 'attention'"],
        }
    ]


def test_a_trec_run_has_six_columns_whatever_the_ids() -> None:
    nothing = result([], query=Query(id="q2", title="T"))

    text = "".join(
        pieces([result([BARE, ATTENTION]), nothing], Format.TREC, batch=True)
    )

    assert (
        text == "my_draft Q0 p_2 1 1.0 citerec\nmy_draft Q0 10.5555/a_b 2 0.5 citerec\n"
    )


@pytest.mark.parametrize(
    "format", [Format.TABLE, Format.JSON, Format.JSONL, Format.TREC]
)
def test_each_result_of_a_batch_is_written_before_the_next_is_made(
    format: Format,
) -> None:
    made: list[str] = []

    def results() -> Iterator[Result]:
        for name in ("q0", "q1", "q2"):
            made.append(name)
            yield result([BARE], query=Query(id=name, title="T"))

    counts = [len(made) for _ in pieces(results(), format, batch=True)]

    assert counts[:3] == [1, 2, 3]  # then only the end of a JSON list


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8))
@example([1e300, 1e300, -1e300])
def test_a_run_falls_strictly_and_keeps_float32(scores: list[float]) -> None:
    papers = [Paper(id=f"p{n}", title="T") for n in range(len(scores))]
    assume(
        np.unique(np.clip(scores, -3e38, 3e38).astype(np.float32)).size == len(scores)
    )
    falling = sorted(scores, reverse=True)

    text = "".join(pieces([result(papers, falling)], Format.TREC, batch=False))

    run = [np.float32(line.split()[4]) for line in text.splitlines()]
    assert all(a > b for a, b in pairwise(run))
    assert [w for w in run if abs(w) < 3e38] == [
        np.float32(s) for s in falling if abs(s) < 3e38
    ]


def test_bibtex_escapes_protects_and_names() -> None:
    text = dump_one(Format.BIBTEX, ATTENTION, BARE)

    assert text == (
        "@inproceedings{vaswani2017attention,\n"
        r"  title = {Attention Is All You Need: {GPT}-2 \& 50\% more}," + "\n"
        "  author = {Vaswani, Ashish and van der Berg, Jan and {The Gene Consortium}},\n"
        "  year = {2017},\n"
        "  booktitle = {NeurIPS},\n"
        "  doi = {10.5555/a_b},\n"
        "}\n"
        "\n"
        "@misc{anonvitamin,\n"
        "  title = {Vitamin {D}},\n"
        "}\n"
    )


def test_capitals_of_names_are_protected_and_those_of_a_title_in_capitals_are_not() -> (
    None
):
    shouted = Paper(id="w", title="SURVIVAL OF MARKED BIRDS")
    acronym = Paper(id="x", title="SPECTER2")
    named = Paper(id="y", title="Strikes of coal miners in India: A study")

    text = dump_one(Format.BIBTEX, shouted, acronym, named)

    assert "title = {SURVIVAL OF MARKED BIRDS}" in text
    assert "title = {{SPECTER2}}" in text
    assert "title = {Strikes of coal miners in {India}: A study}" in text


@pytest.mark.parametrize(
    ("venue", "written"),
    [
        (
            "JOURNAL OF THE AMERICAN STATISTICAL ASSOCIATION",
            "Journal of the American Statistical Association",
        ),
        (
            "IEEE TRANSACTIONS ON IMAGE PROCESSING",
            "IEEE Transactions on Image Processing",
        ),
        ("PLOS ONE", "PLOS One"),
        ("BMC BIOLOGY", "BMC Biology"),
        ("NATURE", "Nature"),
        ("CHILDREN'S GEOGRAPHIES", "Children's Geographies"),
        ("JAMA", "JAMA"),
        ("CG&A", "CG&A"),
        ("J AM VET MED ASSOC", "J Am Vet Med Assoc"),
        (
            "CRISIS-THE JOURNAL OF SUICIDE PREVENTION",
            "Crisis-The Journal of Suicide Prevention",
        ),
        (
            "REVUE D'HISTOIRE DE L'AFRIQUE, PART II",
            "Revue D'Histoire de L'Afrique, Part II",
        ),
        (
            "2014 7TH INTERNATIONAL CONFERENCE ON IMAGES (ICI)",
            "2014 7th International Conference on Images (ICI)",
        ),
        ("CHI EA '20", "CHI EA '20"),
        ("ASONAM", "ASONAM"),
        ("The Lancet HIV", "The Lancet HIV"),
    ],
)
def test_a_venue_in_capitals_only_is_written_in_title_case(
    venue: str, written: str
) -> None:
    kind = "" if venue in {"ASONAM", "CHI EA '20"} else "article"
    paper = Paper(id="x", title="T", venue=venue, type=kind)

    [item] = json.loads(dump_one(Format.CSL, paper))
    bibtex = dump_one(Format.BIBTEX, paper)

    assert item["container-title"] == written
    assert f"{{{written.replace('&', chr(92) + '&')}}}" in bibtex
    assert written in dump_one(Format.RIS, paper)


def test_citation_keys_are_unique_and_ascii() -> None:
    same = [
        Paper(id=f"p{n}", title="The Éclair", year=2019, authors=("Gødel",))
        for n in range(28)
    ]

    keys = re.findall(r"@misc\{(.*),", dump_one(Format.BIBTEX, *same))

    base = "godel2019eclair"
    assert keys[:3] == [base, f"{base}a", f"{base}b"]
    assert keys[26:] == [f"{base}z", f"{base}aa"]


def test_a_bibliography_of_a_batch_has_each_paper_once() -> None:
    batch = [result([BARE, ATTENTION]), result([BARE], query=Query(id="q2", title="T"))]

    for format in (Format.BIBTEX, Format.RIS, Format.CSL):
        assert "".join(pieces(batch, format, batch=True)).count("Vitamin") == 1


@settings(deadline=None)
@given(title=WILD, venue=WILD, name=WILD)
@example(title="{ a \\ $ & % # _ ~ ^ } {{", venue="}", name="and")
@example(title="@article{x, a -- b ``c''", venue="\\", name="A, B, C, D")
def test_any_bibtex_can_be_parsed_by_others(title: str, venue: str, name: str) -> None:
    paper = Paper(
        id="x\\{",
        title=title,
        venue=venue,
        year=1999,
        authors=(name, "B C"),
        url=f"https://{name}",
        pages=title,
        volume=venue,
        publisher=name,
        doi=f"10.1000/{name}",
    )

    text = dump_one(Format.BIBTEX, paper, BARE)

    library = bibtexparser.parse_string(text)
    assert not library.failed_blocks
    assert [entry.key for entry in library.entries][1:] == ["anonvitamin"]
    assert len(parse_with_pybtex(text, "bibtex").entries) == 2


# Three runs of signs mean a dash or a quote to LaTeX; everything else comes back as it was.
PLAIN = WILD.filter(lambda title: not re.search(r"--|``|''", title))


def one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text).split())


@settings(deadline=None)
@given(title=PLAIN, doi=WILD, year=st.none() | st.integers(1000, 9999))
@example(title="{BERT} \\alpha $x$ ~ ^2 'n'", doi="a--b_''~(c)<1:d>", year=2019)
def test_an_export_is_a_query_with_the_same_title_and_doi(
    title: str, doi: str, year: int | None
) -> None:
    title, doi = unicodedata.normalize("NFC", title), unicodedata.normalize("NFC", doi)
    assume(one_line(title) and dois_of(f"10.1000/{doi}") == (f"10.1000/{doi}",))
    paper = Paper(
        id="p", title=title, year=year, authors=("Ada Lovelace",), doi=f"10.1000/{doi}"
    )
    expected = Query(
        id="p",
        title=one_line(title),
        year=year,
        authors=("Ada Lovelace",),
        doi=paper.doi,
    )

    (bibtex,) = parse_queries(dump_one(Format.BIBTEX, paper).encode()).queries
    (ris,) = parse_queries(dump_one(Format.RIS, paper).encode()).queries

    assert replace(bibtex, id="p") == expected  # its id is the citation key
    assert ris == expected


PRINTED = Paper(
    id="j1",
    title="Deep nets",
    year=2015,
    venue="Nature",
    type="article",
    doi="https://doi.org/10.1038/nature14539",
    url="https://www.nature.com/articles/a_b?x={1}",
    volume="521",
    issue="7553",
    pages="436-444",
    publisher="Springer & Co",
)


def test_what_a_corpus_states_of_a_publication_is_written() -> None:
    assert dump_one(Format.BIBTEX, PRINTED) == (
        "@article{anon2015deep,\n"
        "  title = {Deep nets},\n"
        "  year = {2015},\n"
        "  journal = {Nature},\n"
        "  volume = {521},\n"
        "  number = {7553},\n"
        "  pages = {436--444},\n"
        "  doi = {10.1038/nature14539},\n"
        "  url = {https://www.nature.com/articles/a_b?x=%7B1%7D},\n"
        "}\n"
    )
    (ris,) = rispy.loads(dump_one(Format.RIS, PRINTED))
    (csl,) = json.loads(dump_one(Format.CSL, PRINTED))

    assert ris == {
        "type_of_reference": "JOUR",
        "id": "j1",
        "title": "Deep nets",
        "year": "2015",
        "journal_name": "Nature",
        "volume": "521",
        "number": "7553",
        "start_page": "436",
        "end_page": "444",
        "publisher": "Springer & Co",
        "doi": "10.1038/nature14539",
        "urls": ["https://www.nature.com/articles/a_b?x=%7B1%7D"],
    }
    assert csl == {
        "id": "j1",
        "type": "article-journal",
        "title": "Deep nets",
        "issued": {"date-parts": [[2015]]},
        "container-title": "Nature",
        "volume": "521",
        "issue": "7553",
        "page": "436-444",
        "publisher": "Springer & Co",
        "DOI": "10.1038/nature14539",
        "URL": "https://www.nature.com/articles/a_b?x=%7B1%7D",
    }


# of each stated type: the entry of BibTeX, the items of RIS and CSL, and where the venue goes if there is no publisher
KINDS = """
article-journal | article journal | JOUR journal_name | article-journal container-title
Conference | inproceedings booktitle | CPAPER secondary_title | paper-conference container-title
book-chapter | incollection booktitle | CHAP secondary_title | chapter container-title
monograph | book publisher | BOOK publisher | book publisher
dissertation | phdthesis school | THES publisher | thesis publisher
Master's thesis | mastersthesis school | THES publisher | thesis publisher
TechReport | techreport institution | RPRT publisher | report publisher
posted-content | misc howpublished | UNPB secondary_title | article publisher
surprise | misc howpublished | GEN secondary_title | document container-title
"""


@pytest.mark.parametrize(("stated", "bibtex", "ris", "csl"), table(KINDS))
def test_each_kind_of_publication_has_a_type_and_a_field_in_every_format(
    stated: str, bibtex: str, ris: str, csl: str
) -> None:
    paper = replace(BARE, venue="Somewhere", type=stated)

    [entry] = parse_with_pybtex(
        dump_one(Format.BIBTEX, paper), "bibtex"
    ).entries.values()
    [record] = rispy.loads(dump_one(Format.RIS, paper))
    [item] = json.loads(dump_one(Format.CSL, paper))

    found = (
        (entry.type, entry.fields),
        (record["type_of_reference"], record),
        (item["type"], item),
    )
    written = [
        f"{t} {n}" for t, fields in found for n in fields if fields[n] == "Somewhere"
    ]
    assert written == [bibtex, ris, csl]


VENUES = """
EMNLP | conference
NeurIPS 2020 | conference
IEEE VIS (vast) | conference
CHI EA '13 | conference
Proceedings of the 12th Workshop on Letters | conference
Proceedings of the National Academy of Sciences | journal
Proc. ACM Hum.-Comput. Interact. | journal
Proceedings of the IEEE | journal
Proceedings of the IEEE Conference on Robotics | conference
IEEE Transactions on Conference Calls | journal
Machine Learning | journal
SIGMOD Rec. | journal
Theor. Appl. Genet. | journal
arXiv:1606.02585 | preprint
OpenAI Technical Report | report
PhD thesis, MIT | thesis
The Great Unknown | unknown
 | unknown
"""


@pytest.mark.parametrize(("venue", "kind"), table(VENUES))
def test_without_a_type_the_venue_decides_the_kind(venue: str, kind: str) -> None:
    assert kind_of(replace(BARE, venue=venue)).name == kind.upper()
    with_volume = "JOURNAL" if venue and kind == "unknown" else kind.upper()
    assert kind_of(replace(BARE, venue=venue, volume="3")).name == with_volume


def test_csl_holds_names_in_parts_and_no_abstract() -> None:
    (item,) = json.loads(dump_one(Format.CSL, ATTENTION))

    assert item == {
        "id": "10.5555/a_b",
        "type": "paper-conference",
        "title": ATTENTION.title,
        "author": [
            {"family": "Vaswani", "given": "Ashish"},
            {"family": "van der Berg", "given": "Jan"},
            {"literal": "The Gene Consortium"},
        ],
        "issued": {"date-parts": [[2017]]},
        "container-title": "NeurIPS",
        "DOI": "10.5555/a_b",
    }


def test_dois_are_one_a_line_and_papers_without_one_are_left_out() -> None:
    linked = replace(BARE, id="q", url="https://doi.org/10.1234/url")
    again = replace(PRINTED, id="again")

    text = dump_one(Format.DOI, PRINTED, BARE, linked, again)

    assert text == "10.1038/nature14539\n10.1234/url\n"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("R. L. Ribler", Name("Ribler", "R. L.")),
        ("Ribler RL", Name("Ribler", "RL")),
        ("Ribler", Name("Ribler")),
        ("X. LI", Name("LI", "X.")),
        ("Hans op de Beeck", Name("op de Beeck", "Hans")),
        ("John Smith Jr.", Name("Smith", "John", "Jr.")),
        ("Smith, Jr., John", Name("Smith", "John", "Jr.")),
        ("Wei Wang 0001", Name("Wang", "Wei")),
        ("王小明", Name("王小明")),
        (
            "European Environment Agency",
            Name("European Environment Agency", group=True),
        ),
        ("Plastics Europe,", Name("Plastics Europe", group=True)),
        ("", Name("")),
    ],
)
def test_names_are_split_as_people_would(name: str, parts: Name) -> None:
    assert split_name(name) == parts


def test_a_table_shows_rank_year_title_authors_id_score_and_reasons() -> None:
    found = Recommendation(
        rank=1, paper=ATTENTION, score=0.01639, reasons=("cited by 3",)
    )

    text = "".join(tables([Result(QUERY, (found,))], batch=False, width=60))

    assert text.splitlines() == [
        "#  Year  Paper                                         Score",
        "1  2017  Attention Is All You Need: GPT-2 & 50%      0.01639",
        "         more",
        "         Vaswani et al. · 10.5555/a_b",
        "         cited by 3",
    ]


def test_a_table_tells_when_nothing_matches() -> None:
    assert dump_one(Format.TABLE) == "No eligible paper of this corpus matches.\n"


def test_a_table_of_a_batch_has_the_titles_of_its_queries_and_their_ids() -> None:
    batch = [
        result([BARE]),
        result([], query=Query(id="q2", title="U[i]", named=False)),
    ]

    text = "".join(tables(batch, batch=True, width=60))

    assert text.startswith("T · my draft\n#")
    assert text.endswith("\nU[i]\nNo eligible paper of this corpus matches.\n")


@settings(deadline=None)
@given(WILD, st.integers(1, 200))
def test_any_title_fits_a_table_of_any_width(title: str, width: int) -> None:
    paper = Paper(id=one_line(title) or "x", title=title, authors=(title,))

    text = "".join(tables([result([paper])], batch=False, width=width))

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
