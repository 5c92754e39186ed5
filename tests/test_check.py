"""`citerec check`: what a file of references and the corpus state differently."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.corpora import records
from support.types import Capture, MonkeyPatch

from citerec import RecommendConfig, Recommender
from citerec.cli import run
from citerec.corpus.lists import parse_paper_list, read_paper_list
from citerec.index.folder import IndexFolder
from citerec.index.papers import Papers, open_lookup, write_papers
from citerec.match.check import Problem, ReferenceCheck, check_references
from citerec.match.papers import MOST_ALIKE, listed_rows, similar_titles, write_tables
from citerec.types import Paper

Check = Callable[..., ReferenceCheck]
CORPUS: list[dict[str, Any]] = records(
    """
{"id": "maps", "title": "The Maps of Large Trees", "year": 2019, "authors": ["Ada Smith"], "venue": "VIS",
 "doi": "10.1234/maps"},
{"id": "roots", "title": "Roots of Very Large Trees", "year": 2020, "authors": ["Bo Root"],
 "venue": "Journal of Roots", "doi": "https://doi.org/10.1234/ROOTS"},
{"id": "leaves", "title": "Leaves and Their Many Colours", "year": 2021, "authors": ["Cy Leaf"],
 "venue": "arXiv", "doi": "10.48550/arXiv.2101.00001"},
{"id": "soil2001", "title": "Soil Is All a Tree Needs", "year": 2001},
{"id": "moss", "title": "Moss Grows on Old Stones: The Northern Side", "year": 2021, "authors": ["Di Moss"],
 "venue": "Journal of Moss", "doi": "10.1234/moss2"},
{"id": "thesis", "title": "Search for Heavy Leaves in Canopies", "year": 2025, "type": "phdthesis"}
"""
)
SAMPLE_OK = "@inproceedings{a, title={The Maps of Large Trees}, year=2019, doi={10.1234/MAPS}}\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    path = tmp_path_factory.mktemp("check") / "papers.arrow"
    with write_papers(path) as add:
        for paper in CORPUS:
            add(Paper(**paper))
    write_tables(path.parent, Papers(path))
    papers = Papers(path)
    papers.lookup = open_lookup(path.parent)
    return papers


@pytest.fixture
def check(corpus: Papers, tmp_path: Path) -> Check:
    def of(text: str, name: str = "refs.bib") -> ReferenceCheck:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return check_references(read_paper_list(tmp_path / name), corpus)

    return of


def brief(report: ReferenceCheck) -> list[tuple[str, str, str]]:
    return [(one.problem.value, one.file, one.corpus) for one in report.findings]


def test_a_conference_and_its_journal_may_be_a_year_apart(
    check: Check,
) -> None:
    tvcg = "IEEE Transactions on Visualization and Computer Graphics"

    def year_problems(year: int, venue: str) -> list[str]:
        entry = f"title={{The Maps of Large Trees}}, year={year}, journal={{{venue}}}"
        found = brief(check(f"@article{{a, {entry}}}"))
        return [stated for problem, stated, _ in found if problem == "year"]

    assert year_problems(2020, tvcg) == year_problems(2018, tvcg) == []
    assert year_problems(2021, tvcg) == ["2021"]
    assert year_problems(2020, "IEEE VIS") == year_problems(2020, "") == ["2020"]


def test_an_entry_that_agrees_has_no_problem(check: Check) -> None:
    own = "@misc{b, title={Roots of Very Large Trees}, doi={10.1234/roots}, howpublished={Soil}}\n"
    report = check(
        SAMPLE_OK + own + "@misc{c, title={What nobody indexed}, year=1990}\n"
    )

    assert (report.entries, report.found, report.with_problem, report.findings) == (
        3,
        2,
        0,
        (),
    )


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            "@article{a, title={Roots of Very Large Trees}, year=2018, doi={10.1234/roots}}",
            ("year", "2018", "2020"),
        ),
        (
            "@article{a, title={Roots of Very Large Trees}, year=2020, doi={10.9999/wrong}}",
            ("doi", "10.9999/wrong", "10.1234/ROOTS"),
        ),
        (
            "@article{a, title={Rooots of very large trees}, year=2020, doi={10.1234/roots}}",
            ("title", "Rooots of very large trees", "Roots of Very Large Trees"),
        ),
        (
            "@article{a, title={{Roots} of very-large {TREES}.}, year=2020}",
            ("no-doi", "", "10.1234/ROOTS"),
        ),
    ],
)
def test_what_the_corpus_knows_differently_is_listed(
    check: Check, entry: str, problem: tuple[str, str, str]
) -> None:
    report = check(entry)

    assert brief(report) == [problem]
    assert report.findings[0].id == "roots"
    assert report.findings[0].place == "line 1: entry 'a'"


@pytest.mark.parametrize(
    "entry",
    [
        "@unpublished{a, title={Roots of Very Large Trees}, year=2018}",
        "@misc{a, title={Roots of Very Large Trees}, archiveprefix={arXiv}, year=2018}",
        "@article{a, title={Roots of Very Large Trees}, journal={arXiv preprint arXiv:1801.1}, year=2018}",
        "@article{a, title={Roots of Very Large Trees}, doi={10.48550/arXiv.1801.00001}}",
        "@article{a, title={Roots of Very Large Trees}, url={https://arxiv.org/abs/1801.00001}}",
        "TY  - UNPB\nTI  - Roots of Very Large Trees\nPY  - 2018\nER  - \n",
        '[{"id": "a", "type": "article", "title": "Roots of Very Large Trees", "publisher": "arXiv"}]',
    ],
)
def test_a_preprint_with_a_published_version_is_listed_once(
    check: Check, entry: str
) -> None:
    assert brief(check(entry)) == [
        ("preprint", "preprint", "Journal of Roots, 2020, 10.1234/ROOTS")
    ]


EPRINT = "eprint={2101.00001}, archiveprefix={arXiv}, year="


@pytest.mark.parametrize(
    "entry",
    [
        f"@phdthesis{{a, title={{Search for heavy leaves in canopies}}, {EPRINT} 2025}}",
        f"@article{{a, title={{Search for heavy leaves in canopies}}, {EPRINT} 2025}}",  # of that thesis
        f"@inproceedings{{a, title={{Roots of very large trees}}, {EPRINT} 2020, doi={{10.1234/roots}}}}",
        f"@misc{{a, title={{Roots of very large trees}}, {EPRINT} 2020, doi={{10.1234/roots}}}}",
        "TY  - RPRT\nTI  - Roots of very large trees\nDO  - 10.1234/roots\nUR  - https://arxiv.org/abs/1\nER  -\n",
        "@article{a, title={Leaves and their many colours}, journal={arXiv}, year=2021,"
        " doi={10.48550/arXiv.2101.00001}}",
        "@misc{a, title={Soil is all a tree needs}, year=2001}",
        "@misc{a, title={The Maps of Large Trees}, doi={10.1234/maps}, year=2019}",
        "@misc{a, title={The maps of large trees}, howpublished={https://maps.org/10.1234/maps}}",
        "@inproceedings{a, title={The Maps of Large Trees}, booktitle={VIS}, note={arXiv:1801.1},"
        " doi={10.1234/maps}}",
    ],
)
def test_a_preprint_without_a_known_published_version_is_none(
    check: Check, entry: str
) -> None:
    assert brief(check(entry)) == []


def test_a_key_that_is_the_id_of_another_paper_is_no_match(
    check: Check, corpus: Papers
) -> None:
    entry = "@misc{soil2001, title={Worms as engineers of the ground}}"

    assert (check(entry).found, check(entry).findings) == (0, ())
    # as --cited does
    assert listed_rows(parse_paper_list(entry, "cited"), corpus) == [frozenset()]
    with_id = '[{"id": "soil2001", "title": "Soil is all a ..."}]'  # no key that an author chose
    assert listed_rows(parse_paper_list(with_id, "cited"), corpus) == [frozenset({3})]


def test_a_paper_with_a_follow_up_of_another_doi_is_not_that(
    check: Check, corpus: Papers
) -> None:
    entry = "@article{m, title={Moss Grows on Old Stones}, author={Moss, Di}, year=2020, doi={10.1234/moss1}}\n"
    follow_up = "@article{n, title={Moss Grows on Old Stones: the northern side}, doi={10.1234/moss2}}\n"
    printed = "D. Moss, Moss Grows on Old Stones, 2020, https://doi.org/10.1234/MOSS"

    report = check(entry + follow_up)

    assert (report.entries, report.found, report.findings) == (2, 1, ())
    for text, row in ((entry, []), (f"{printed}1.", []), (f"{printed}2.", [4])):
        assert listed_rows(parse_paper_list(text, "cited"), corpus) == [frozenset(row)]


@pytest.mark.parametrize(
    ("first", "second", "duplicates"),
    [
        (
            "title={Moss on stones}, doi={10.5555/a}",
            "title={Moss on stones}, doi={10.5555/b}",
            0,
        ),
        (
            "title={Moss on old stones}, year=1994",
            "title={Moss on old stones}, year=2002",
            0,
        ),
        (
            "title={Moss on stones}, eprint={2101.00001}",
            "title={Moss on stones}, eprint={2202.00002}",
            0,
        ),
        ("title={MossLib v2.1.0 for stones}", "title={MossLib v2.0.1 for stones}", 0),
        (
            "title={A}, eprint={2101.00077}",
            "title={B}, url={https://arxiv.org/abs/2101.00077v2}",
            1,
        ),
        # a number that a program wrote into many entries
        (
            "title={Moss on stones}, author={Moss, Di}, eprint={2101.00001}",
            "title={Roots of trees}, author={Root, Bo}, eprint={2101.00001}",
            0,
        ),
        (
            "title={Moss on stones}, author={Moss, Di}, doi={10.5555/a}",
            "title={Moss on Stones}, author={The Moss Consortium}, doi={10.5555/a}",
            1,
        ),
        # a book and an article
        (
            "title={Moss on Stones: a Theory}, author={Fern, A. and Moss, Di}, year=2001",
            "title={Moss on Stones}, author={Moss, Di}, year=2001",
            0,
        ),
        (
            "title={Deep Moss}, author={Fern, A. and Moss, Di}, year=2001",
            "title={Deep moss}, author={Oak, B. and Moss, Di}, year=2001",
            0,
        ),
        (
            "title={Moss on Old Stones and Walls}, author={Fern, A. and Moss, Di}, year=2001",
            "title={Moss on old stones and walls}, author={Moss, Di and Fern, A.}, year=2001",
            1,
        ),
    ],
)
def test_entries_of_two_works_are_no_duplicates(
    check: Check, first: str, second: str, duplicates: int
) -> None:
    assert (
        len(check(f"@misc{{a, {first}}}\n@misc{{b, {second}}}\n").findings)
        == duplicates
    )


def test_duplicates_are_found_by_doi_key_and_title(check: Check) -> None:
    report = check(
        "@misc{a, title={A long title about the moss on stones}}\n"
        "@misc{b, doi={10.5555/moss}}\n"
        "@article{c, title={{A} Long Title about the Moss on Stoness}}\n"
        "@article{d, doi={https://doi.org/10.5555/MOSS}}\n"
        "@article{B, title={The part of lichen in old forests}}\n"
        "@article{e, title={A long title about the fern on stones}}\n"
    )

    assert [(one.problem, one.place, one.corpus) for one in report.findings] == [
        (Problem.DUPLICATE, "line 3: entry 'c'", "line 1: entry 'a'"),
        (Problem.DUPLICATE, "line 4: entry 'd'", "line 2: entry 'b'"),
        (Problem.DUPLICATE, "line 5: entry 'B'", "line 2: entry 'b'"),
    ]
    assert report.with_problem == 3


def test_a_title_is_compared_with_the_first_of_those_that_repeat_it() -> None:
    # one key, 300 titles
    titles = {f"Maps of trees, {mark * '!'}": None for mark in range(1, 301)}

    similar = similar_titles(titles, [(row, "Maps of Trees") for row in range(300)])

    matched = [one for one in similar.values() if one.equal]
    assert len(matched) == MOST_ALIKE == 100
    assert matched[0].before(299).equal == list(range(100))
    assert matched[0].before(2).equal == [0, 1]


def test_corrections_have_the_keys_of_the_file_and_no_retracted_or_repeated_entry(
    check: Check, corpus: Papers
) -> None:
    report = check(
        "@article{a, title={The Maps of Large Trees}, year=2018, doi={10.1234/maps}}"
        "@article{b, title={Roots of Very Large Trees}, year=2019, doi={10.1234/roots}}"
        "@article{c, title={Roots of Very Large Trees}, year=2019, doi={10.1234/roots}}"
    )

    corrected = report.corrections(corpus)

    assert [entry.key for entry in parse_paper_list(corrected, "x").entries] == [
        "a",
        "b",
    ]
    assert "year={2020}" in corrected


OWN = r"""@string{jor = "Journal of {R}oots"}
@Book{forest, title = {Proceedings of the Forest}, publisher = {Own Press}, year = 2018}
@Article{Root:18,  % as printed
  Author   = {Root, B\'o},
  TITLE    = {Roots of {V}ery Large Trees},
  journal  = jor,  volume = 7, Month = jan,
  Year     = "2018",
  crossref = {forest},
  file     = {:C\:\\a b.pdf:PDF}, keywords = {trees, {DNA}},
  note     = {Year = 2018, I think},
  url      = {https://roots.org}
}
"""


def test_a_corrected_entry_is_that_of_the_author_but_for_what_was_wrong(
    check: Check, corpus: Papers
) -> None:
    report = check(OWN)

    own = OWN[OWN.index("@Article") :]
    right = own.replace('Year     = "2018"', "year     = {2020}").replace(
        "{https://roots.org}", "{https://roots.org},\n  doi = {10.1234/ROOTS}"
    )
    assert [problem for problem, *_ in brief(report)] == ["year", "no-doi"]
    assert report.corrections(corpus) == right
    assert brief(check(right)) == []


@pytest.mark.parametrize(
    ("entry", "right"),
    [
        (
            "@misc(a, title={Roots of very Large Trees}, date=2018-05, doi={10.1234/roots},)",
            "@misc(a, title={Roots of very Large Trees}, year={2020}, doi={10.1234/roots},)",
        ),
        (
            "@misc{a, title={Rooots of Very}, subtitle={Large Trees}, doi={10.1234/roots}, note=x}",
            "@misc{a, title={Roots of Very Large Trees}, subtitle={}, doi={10.1234/roots}, note=x}",
        ),
        (
            "@unpublished{a, title={{Roots} of Very Large Trees}, journal = {arXiv:1801.00001}, year=2018,"
            " eprint={1801.00001} % read\n}",
            "@article{a, title={{Roots} of Very Large Trees}, journal = {Journal of Roots}, year={2020},"
            " eprint={1801.00001},\n  doi = {10.1234/ROOTS} % read\n}",
        ),
        (
            "@article{a, title={The Maps of Large Trees}, author={Smith}, journaltitle={CoRR}, year=2018}",
            "@inproceedings{a, title={The Maps of Large Trees}, author={Smith}, booktitle={VIS}, year={2019},"
            "\n  doi = {10.1234/maps}}",
        ),
        (
            "@misc{a, title={Roots of Very Large Trees}, year=2020, url={https://doi.org/10.9999/wrong}}",
            "@misc{a, title={Roots of Very Large Trees}, year=2020, url={https://doi.org/10.1234/ROOTS},"
            "\n  doi = {10.1234/ROOTS}}",
        ),
    ],
)
def test_a_correction_takes_the_place_of_what_it_corrects(
    check: Check, corpus: Papers, entry: str, right: str
) -> None:
    corrections = check(entry).corrections(corpus)

    assert corrections == f"{right}\n"
    assert check(corrections).corrections(corpus) == ""


def test_a_list_that_is_no_bibtex_is_corrected_as_the_corpus_states_it(
    check: Check, corpus: Papers
) -> None:
    ris = "TY  - JOUR\nID  - a\nTI  - Roots of Very Large Trees\nDO  - 10.1234/roots\nPY  - 2018\nER  - \n"

    corrections = check(ris, "refs.ris").corrections(corpus)

    assert corrections.startswith("@article{a,\n  title = {Roots of Very Large Trees}")
    assert "year = {2020}" in corrections


def test_an_entry_that_cannot_be_read_is_a_problem(check: Check) -> None:
    report = check(SAMPLE_OK + "@misc{b, title={B\n")

    assert (report.entries, report.found, report.with_problem) == (2, 1, 1)
    assert report.findings[0].problem is Problem.UNREADABLE
    assert report.findings[0].place.startswith("line 2: ")


def test_ids_one_a_line_are_found_and_have_no_other_problem(
    check: Check,
) -> None:
    report = check("maps\n10.1234/roots\nnothing\nmaps\n", "refs.txt")

    assert (report.entries, report.found) == (4, 3)
    assert [(one.problem, one.entry) for one in report.findings] == [
        (Problem.DUPLICATE, 3)
    ]


ATTENTION = "@article{a, title={Attention Is All You Need}, year=2017}\n"


def test_the_command_prints_a_summary_and_each_problem(
    sample_index: IndexFolder,
    tmp_path: Path,
    monkeypatch: MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    again = ATTENTION.replace("2017", "2018").replace("{a,", "{b,")
    Path("refs.bib").write_text(ATTENTION + again)
    index = ["--index", str(sample_index.path)]

    assert run(["check", "refs.bib", *index]) == 0
    assert capsys.readouterr().out == (
        "refs.bib: 2 entries, 2 of them could be compared with this corpus; 1 with a problem\n"
        "line 2: entry 'b'\n"
        "  duplicate of line 1: entry 'a'\n"
        "  year: the file has 2018, the corpus 2017 (vaswani2017attention)\n"
    )
    Path("clean.bib").write_text(ATTENTION)
    assert run(["check", "clean.bib", *index, "--strict", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["check", "refs.bib", *index, "--strict", "--format", "json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert {key: content[key] for key in ("entries", "found", "with_problem")} == {
        "entries": 2, "found": 2, "with_problem": 1,
    }  # fmt: skip
    assert content["findings"][1] == {
        "problem": "year", "place": "line 2: entry 'b'", "key": "b",
        "title": "Attention Is All You Need", "file": "2018", "corpus": "2017",
        "id": "vaswani2017attention",
    }  # fmt: skip


def test_a_recommender_checks_references(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    (tmp_path / "refs.bib").write_text(ATTENTION.replace("2017", "2018"))
    config = RecommendConfig(encoder="none", ranker="none")

    with Recommender(sample_index, config) as recommender:
        assert brief(recommender.check(tmp_path / "refs.bib")) == [
            ("year", "2018", "2017")
        ]
