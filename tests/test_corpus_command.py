"""`citerec corpus`: corpora of any format are counted, converted, merged and sampled by the real command line."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.tables import table
from support.types import Write

from citerec.build.corpora import merged_paper
from citerec.build.index import BuildConfig, build_index, grow_index
from citerec.files.reading import zstd
from citerec.types import Paper

Cli = Callable[..., "tuple[int, str, str]"]
Made = Write


@pytest.fixture
def cli(invoke: Cli) -> Cli:
    return partial(invoke, "corpus")


@pytest.fixture
def made(write_jsonl: Made) -> Made:
    return lambda name, records: write_jsonl(records, name)


def record(docid: str, title: str = "", **more: Any) -> dict[str, Any]:
    return {"id": docid, "title": title or f"A paper about {docid}", **more}


def lines(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".zst":
        content = zstd.decompress(content)
    return [json.loads(line) for line in content.splitlines()]


def counts(text: str) -> dict[str, str]:
    rows = (line.strip().split("  ", 1) for line in text.splitlines()[1:])
    return {name: value for value, name in rows}


# --- info


def test_info_counts_what_a_corpus_holds(cli: Cli, made: Made) -> None:
    made(
        "papers.jsonl",
        [
            record(
                "a",
                year=1990,
                abstract="Text.",
                doi="10.5555/a",
                citations=["b", "c", "far"],
            ),
            record("b", year=1985, doi="https://doi.org/10.5555/A"),
            record("c", "A paper about A!", year=1990),
            record("c", "A paper about A!", year=1990),
            record("d"),
            {"id": "no title"},
        ],
    )

    code, out, err = cli("info", "papers.jsonl")

    assert code == 0
    assert out.startswith("papers.jsonl  (canonical, 1 file)\n")
    assert counts(out) == {
        "papers": "4",
        "with an abstract": "1",
        "with a DOI": "2",
        "without a year": "1",
        "with citations": "1",
        "citations to papers of the corpus": "2",
        "citations to papers outside the corpus": "1",
        "papers with the DOI of another one": "1",
        "papers with title and year of another one": "1",
        "duplicates left out": "1",
        "records left out: missing fields": "1",
        "years": "1985-1990",
    }
    assert "papers.jsonl, line 6: no 'title'" in err


# --- convert


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_a_library_is_converted_to_a_canonical_corpus(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    (tmp_path / "refs.ris").write_text(
        "TY  - JOUR\nTI  - T\nPY  - 2001\nID  - 7\nER  -\n"
    )

    code, out, _ = cli("convert", "refs.ris", "-o", name)

    assert (code, counts(out)["papers"]) == (0, "1")
    assert lines(tmp_path / name) == [
        {"id": "7", "title": "T", "year": 2001, "type": "JOUR"}
    ]
    assert cli("info", name)[1].startswith(f"{name}  (canonical, 1 file)")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "refs.ris"]
    assert cli("convert", "refs.ris", "-o", f"again.{name}")[0] == 0
    assert (tmp_path / f"again.{name}").read_bytes() == (tmp_path / name).read_bytes()


def test_what_is_there_is_replaced_only_by_force(
    cli: Cli, made: Made, tmp_path: Path
) -> None:
    made("papers.jsonl", [record("a")])
    (tmp_path / "out.jsonl").write_text("mine")

    refused = cli("convert", "papers.jsonl", "-o", "out.jsonl")
    kept = (tmp_path / "out.jsonl").read_text()
    forced = cli("convert", "papers.jsonl", "-o", "out.jsonl", "--force")

    assert refused[0] == 2
    assert "out.jsonl already exists; replace it with --force" in refused[2]
    assert kept == "mine"
    assert forced[0] == 0
    assert len(lines(tmp_path / "out.jsonl")) == 1


# --- merge


def test_papers_are_joined_by_doi_then_by_title_and_year(
    cli: Cli, made: Made, tmp_path: Path
) -> None:
    made(
        "a.jsonl",
        [
            record(
                "1",
                "Counting Birds in the Rain",
                doi="10.5555/birds",
                citations=["2", "x"],
            ),
            record("2", "Trees and their many leaves", year=1999, abstract="Short."),
            record("3", "Editorial", year=2001, authors=["Ann Roe"]),
            record("4", "A title of four words", year=2000, doi="10.5555/a"),
        ],
    )
    made(
        "b.jsonl",
        [
            record(
                "W9",
                "COUNTING BIRDS",
                doi="https://doi.org/10.5555/BIRDS",
                citations=["W8", "W7"],
            ),
            record(
                "W8",
                "Trees, and their many leaves!",
                year=1999,
                abstract="A longer abstract.",
            ),
            record(
                "W7",
                "Editorial",
                year=2001,
                authors=["Bob Poe"],
                citations=["10.5555/birds"],
            ),
            record("W6", "A title of four words", year=2000, doi="10.5555/b"),
        ],
    )

    code, out, _ = cli("merge", "a.jsonl", "b.jsonl", "-o", "out.jsonl")

    assert code == 0
    assert counts(out) == {
        "papers": "6",
        "records": "8",
        "joined by DOI": "1",
        "joined by title and year": "1",
        "citations among them": "3",
        "citations to papers outside": "1",
    }
    merged = {paper["id"]: paper for paper in lines(tmp_path / "out.jsonl")}
    assert merged["1"] == record(
        "1",
        "Counting Birds in the Rain",
        doi="10.5555/birds",
        citations=["2", "x", "W7"],
    )
    assert merged["2"]["abstract"] == "A longer abstract."
    assert merged["W7"]["citations"] == ["1"]
    assert {"3", "4", "W6"} < merged.keys()  # of other authors, or with other DOIs


def test_a_preprint_and_its_publication_are_joined_and_the_publication_describes_both(
    cli: Cli, made: Made, tmp_path: Path
) -> None:
    title, published = "A title of four words", {"doi": "10.5555/a", "type": "article"}
    made(
        "a.jsonl",
        [record("1", title, doi="10.48550/arXiv.2101.00001", type="preprint")],
    )
    made(
        "b.jsonl",
        [record("2", title, **published), record("3", title, doi="10.5555/b")],
    )

    cli("merge", "a.jsonl", "b.jsonl", "-o", "out.jsonl")

    assert [*lines(tmp_path / "out.jsonl")] == [
        record("1", title, **published),
        record("3", title, doi="10.5555/b"),
    ]


def test_an_index_of_merged_corpora_states_how_many_records_each_of_them_had(
    cli: Cli, made: Made, tmp_path: Path
) -> None:
    both = record("1", doi="10.5555/a")
    made("scopus.jsonl", [both, both, record("2")])
    made("pubmed.jsonl", [record("77", doi="10.5555/a")])
    cli("merge", "scopus.jsonl", "pubmed.jsonl", "-o", "all.jsonl")

    def stated(corpus: str) -> Any:
        config = BuildConfig(force=True)
        report = build_index(tmp_path / corpus, tmp_path / "index", config)
        return report.manifest.corpus["identified"]

    assert stated("all.jsonl") == {"scopus.jsonl": 3, "pubmed.jsonl": 1}
    assert len(lines(tmp_path / "all.jsonl")) == 2  # without two duplicates
    made("late.jsonl", [record("3")])
    grown = grow_index(
        tmp_path / "index", BuildConfig(), corpus=tmp_path / "late.jsonl"
    )
    assert grown.manifest.corpus["identified"] == {
        "scopus.jsonl": 3,
        "pubmed.jsonl": 1,
        "late.jsonl": 1,
    }
    made("all.jsonl", [record("4")])  # another corpus of that name
    assert stated("all.jsonl") == {"all.jsonl": 1}


def test_an_id_that_two_libraries_use_for_two_papers_is_renamed(
    cli: Cli, made: Made, tmp_path: Path
) -> None:
    made(
        "a.jsonl",
        [
            record("smith01", "On the shape of trees"),
            record("x", citations=["smith01"]),
        ],
    )
    made(
        "b.jsonl",
        [
            record("smith01", "On the sound of birds"),
            record("y", citations=["smith01"]),
        ],
    )
    made("c.jsonl", [record("smith01", "On the shape of trees", year=2001)])

    code, out, _ = cli("merge", "a.jsonl", "b.jsonl", "c.jsonl", "-o", "out.jsonl")

    merged = {paper["id"]: paper for paper in lines(tmp_path / "out.jsonl")}
    assert (code, counts(out)["ids renamed: taken by another paper"]) == (0, "1")
    assert merged.keys() == {"smith01", "x", "smith01#2", "y"}
    assert merged["x"]["citations"] == ["smith01"]
    assert merged["y"]["citations"] == ["smith01#2"]
    assert merged["smith01"]["year"] == 2001


def test_the_most_complete_value_of_each_field_is_kept() -> None:
    first = Paper(
        id="a",
        title="COUNTING BIRDS",
        authors=("J. Doe",),
        pages="12",
        citations=("x",),
    )
    second = Paper(
        id="b",
        title="Counting Birds",
        authors=("Jane Doe", "Ann Roe"),
        year=2001,
        pages="12-15",
        doi="10.5555/birds",
        citations=("y", "x"),
    )

    assert merged_paper([first, second]) == Paper(
        id="a",
        title="Counting Birds",
        authors=("Jane Doe", "Ann Roe"),
        year=2001,
        pages="12-15",
        doi="10.5555/birds",
        citations=("x", "y"),
    )


# --- sample


@pytest.fixture
def chain(made: Made) -> Path:
    """Two chains of 50 papers, in which each paper cites the one before, and 20 papers without citations."""
    chains = [
        record(
            f"{name}{i}",
            year=2000 + i,
            citations=[f"{name}{i - 1}", "far"] if i else [],
        )
        for i in range(50)
        for name in "pq"
    ]
    return made("papers.jsonl", [*chains, *(record(f"alone{i}") for i in range(20))])


def test_a_sample_is_connected_and_repeats(
    cli: Cli, chain: Path, tmp_path: Path
) -> None:
    code, out, _ = cli("sample", chain, "-n", 20, "-o", "one.jsonl")
    cli("sample", chain, "-n", 20, "-o", "two.jsonl")
    cli("sample", chain, "-n", 20, "-o", "other.jsonl", "--seed", 3)

    drawn = [paper["id"] for paper in lines(tmp_path / "one.jsonl")]
    assert code == 0
    assert counts(out) == {
        "papers": "20",
        "citations among them": "19",
        "papers from which the search began": "1",
    }
    assert len({docid[0] for docid in drawn}) == 1
    assert drawn == sorted(drawn, key=lambda docid: int(docid[1:]))
    assert (tmp_path / "one.jsonl").read_bytes() == (
        tmp_path / "two.jsonl"
    ).read_bytes()
    assert (tmp_path / "one.jsonl").read_bytes() != (
        tmp_path / "other.jsonl"
    ).read_bytes()


def test_a_paper_that_all_cite_does_not_fill_a_sample(
    cli: Cli, made: Made, tmp_path: Path
) -> None:
    hub = [
        record("hub"),
        *(record(f"a{i}", citations=["hub", f"b{i}"]) for i in range(200)),
    ]
    made("papers.jsonl", [*hub, *(record(f"b{i}") for i in range(200))])

    cli("sample", "papers.jsonl", "-n", 40, "-o", "out.jsonl")

    drawn = [paper["id"] for paper in lines(tmp_path / "out.jsonl")]
    assert sum(docid.startswith("b") for docid in drawn) >= 10


def test_a_corpus_without_citations_gives_a_random_sample(cli: Cli, made: Made) -> None:
    made("papers.jsonl", [record(f"p{i}") for i in range(9)])

    code, out, err = cli("sample", "papers.jsonl", "-n", 3, "-o", "out.jsonl")

    assert (code, counts(out)["papers"]) == (0, "3")
    assert "this corpus has no citations: the sample is random" in err


# --- Bad inputs

BAD = table(
    """
info missing.bib | missing.bib: no such file or folder
info good.jsonl --format word | no format 'word'; there are:
convert good.jsonl --format ris -o x.jsonl | good.jsonl holds no valid paper
convert good.jsonl | Missing option '--output' / '-o'
convert good.jsonl -o x.csv | x.csv must be named .jsonl, .jsonl.gz or .jsonl.zst
convert good.jsonl -o no/x.jsonl | there is no folder no
convert good.jsonl -o folder.jsonl | folder.jsonl already exists
merge good.jsonl no.jsonl -o x.jsonl | no.jsonl: no such file
merge good.jsonl bad.jsonl -o x.jsonl | bad.jsonl, line 2: no 'title'
convert twice.bib -o x.jsonl | twice.bib, line 2: id 'a' is already in
sample good.jsonl -n 0 -o x.jsonl | Invalid value for '-n'
"""
)


@pytest.mark.parametrize(("command", "message"), BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    cli: Cli, tmp_path: Path, command: str, message: str
) -> None:
    for file, content in {
        "good.jsonl": b'{"id": "a", "title": "A"}\n',
        "bad.jsonl": b'{"id": "b", "title": "B"}\n{"id": "a", "year": 2001}\n',
        "twice.bib": b"@misc{a, title={A}}\n@misc{a, title={B}}\n",
    }.items():
        (tmp_path / file).write_bytes(content)
    (tmp_path / "folder.jsonl").mkdir()
    before = sorted(tmp_path.iterdir())

    code, out, err = cli(*command.split())

    assert (code, out) == (2, "")
    assert err.startswith("citerec: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
