"""`citerec collect` against a local server that speaks the APIs of OpenAlex and Semantic Scholar."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.corpora import SAMPLE, real_corpus
from support.scholar_server import BROKEN, ScholarServer, papers_of, serving

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.collect.snowball import Neighbours

KEY = "secret-key-0123456789"
SOURCES = ("openalex", "s2")
# What the tests collect around: three papers of the sample with many citations.
SEEDS = ("khattab2020colbert", "karpukhin2020dense", "devlin2019bert")


def with_dois() -> list[dict[str, Any]]:
    """The sample; every paper has a DOI."""
    papers = papers_of(SAMPLE)
    return [{**paper, "doi": f"10.5555/{paper['id']}"} for paper in papers]


@pytest.fixture
def server() -> Generator[ScholarServer]:
    with serving(with_dois()) as running:
        yield running


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


Collect = Callable[..., Done]


@pytest.fixture
def collect(
    tmp_path: Path,
    server: ScholarServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Collect:
    """Run the command in an empty folder, in this process, with keys, at full speed."""
    monkeypatch.chdir(tmp_path)
    for name, value in services(server).items():
        monkeypatch.setenv(name, value)

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        code = run(["collect", *map(str, arguments), "--rate", "1000"])
        return Done(code, *capsys.readouterr())

    return call


def services(server: ScholarServer) -> dict[str, str]:
    url = server.url
    return {
        "OPENALEX_URL": url,
        "OPENALEX_API_KEY": KEY,
        "S2_URL": url,
        "S2_API_KEY": KEY,
        "no_proxy": "127.0.0.1",
    }


def bibliography(folder: Path, *ids: str, doi: bool = True) -> Path:
    """Write a .bib of papers of the sample, with a private note and an abstract, which stay at home."""
    entries: list[str] = []
    for paper in (p for p in with_dois() if p["id"] in ids):
        fields = {
            "title": paper["title"],
            "author": " and ".join(paper["authors"]),
            "year": paper["year"],
            "abstract": "PRIVATE abstract",
            "file": "/home/PRIVATE/paper.pdf",
            "doi": paper["doi"] if doi else "",
        }
        text = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
        entries.append(f"@article{{PRIVATEkey{len(entries)},\n{text}\n}}\n")
    path = folder / "refs.bib"
    path.write_text("\n".join(entries))
    return path


def collected(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "papers.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "collection.json").read_text())


@pytest.mark.parametrize("source", SOURCES)
def test_a_bibliography_becomes_a_corpus_that_can_be_indexed(
    source: str, collect: Collect, tmp_path: Path, java: None
) -> None:
    bib = bibliography(tmp_path, *SEEDS)

    done = collect(bib, "-o", "mine", "--source", source, "--papers", 40)

    assert done.code == 0, done.err
    papers = collected(tmp_path / "mine")
    assert len({paper["id"] for paper in papers}) == 40
    titles = {paper["title"]: paper for paper in with_dois()}
    for paper in papers:  # as the service has them
        original = titles[paper["title"]]
        for name in ("abstract", "year", "authors", "venue", "doi"):
            assert paper[name] == original[name]
        assert len(paper.get("citations", [])) == len(original["citations"])
    assert {p["doi"].removeprefix("10.5555/") for p in papers[:3]} == set(SEEDS)
    report = build_index(tmp_path / "mine", tmp_path / "index", BuildConfig())
    assert report.manifest.counts["papers"] == 40
    assert report.manifest.counts["citations"] > 40
    assert record(tmp_path / "mine")["seeds"] == [p["id"] for p in papers[:3]]
    assert done.out.endswith("next: citerec index mine\n")
    assert not (tmp_path / "mine" / ".collect").exists()


@pytest.mark.parametrize("source", SOURCES)
def test_only_ids_and_titles_are_sent(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    with_doi = bibliography(tmp_path, SEEDS[0]).read_text()
    without_doi = bibliography(tmp_path, SEEDS[1], doi=False).read_text()
    (tmp_path / "PRIVATE.bib").write_text(with_doi + without_doi.replace("key0", "key1"))

    done = collect(tmp_path / "PRIVATE.bib", "-o", "mine", "--source", source, "--papers", 20)

    assert done.code == 0, done.err
    sent = [f"{r.path} {r.params} {r.headers} {r.body}" for r in server.requests]
    assert not [text for text in sent if "PRIVATE" in text or str(tmp_path) in text]
    assert not [text for text in sent if "Khattab" in text or "Karpukhin" in text]  # an author
    assert "only ids and titles of the references are sent to" in done.err


@pytest.mark.parametrize("source", SOURCES)
def test_titles_find_what_has_no_doi_and_the_rest_is_listed(
    source: str, collect: Collect, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS, doi=False)
    wrong_year = bib.read_text().replace("2020", "1931")  # nor are its authors those of the paper
    wrong_year = re.sub(r"author = \{[^}]*\}", "author = {Ada Nobody}", wrong_year)
    one, two = (
        "@misc{a, title = {A Paper that Nobody Ever Wrote}}\n",
        "@misc{b, doi = {10.5555/none}}\n",
    )
    bib.write_text(bib.read_text() + one + two + wrong_year.replace("PRIVATE", "other"))

    done = collect(bib, "-o", "mine", "--source", source, "--papers", 10)

    assert done.code == 0, done.err
    assert record(tmp_path / "mine")["resolved"] == 3
    rows = [r.split("\t") for r in (tmp_path / "mine" / "unresolved.tsv").read_text().splitlines()]
    assert rows[0] == ["reference", "title", "ids", "reason", "closest title found", "similarity %"]
    reasons = {row[1] or row[2]: row[3] for row in rows[1:]}
    assert "unknown to" in reasons["A Paper that Nobody Ever Wrote"]
    assert "unknown to" in reasons["doi:10.5555/none"]
    assert "title, year or authors differ" in {row[3] for row in rows}
    assert "A Paper that Nobody Ever Wrote" in done.out


def test_the_papers_that_touch_most_seeds_come_first() -> None:
    neighbours = Neighbours()
    for paper, expanded in [("b", "s1"), ("b", "s2"), ("a", "s1"), ("c", "s2"), ("d", "other")]:
        neighbours.add(paper, expanded)
    neighbours.add("s1", "s1")  # cites itself

    ranked = neighbours.ranked({"s1", "s2"}, {"a": 5, "c": 5, "d": 1000})

    assert ranked == ["b", "a", "c", "d"]  # two seeds; one each, equal citations; none


@pytest.mark.parametrize("source", SOURCES)
def test_dois_arxiv_ids_and_ids_of_the_service_do_without_a_file(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    papers = with_dois()
    papers[0]["doi"], papers[1]["doi"] = "10.48550/arXiv.2004.12832", "10.5555/with,comma|bar"
    server.fill(papers)
    own = server.number if source == "openalex" else server.hash

    ids = ("arXiv:2004.12832v2", "https://doi.org/10.5555/with,comma|bar", own[papers[2]["id"]])
    done = collect(*ids, "--source", source, "--papers", 3)

    assert done.code == 0, done.err
    folder = tmp_path / "corpora" / "references"
    assert {p["title"] for p in collected(folder)} == {p["title"] for p in papers[:3]}


@pytest.mark.parametrize("source", SOURCES)
def test_a_search_gives_the_seeds(source: str, collect: Collect, tmp_path: Path) -> None:
    done = collect("--search", "passage retrieval", "--source", source, "--papers", 30)

    assert done.code == 0, done.err
    papers = collected(tmp_path / "corpora" / "passage-retrieval")
    assert len(papers) == 30
    assert "Passage" in papers[0]["title"]


def test_the_same_list_gives_the_same_bytes(collect: Collect, tmp_path: Path) -> None:
    bib = bibliography(tmp_path, *SEEDS)

    for name in ("one", "two"):
        assert collect(bib, "-o", name, "--papers", 60).code == 0

    one, two = (tmp_path / name / "papers.jsonl.gz" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("source", ["openalex", pytest.param("s2", marks=pytest.mark.slow)])
def test_a_large_corpus_takes_all_that_is_connected(
    source: str, collect: Collect, tmp_path: Path
) -> None:
    done = collect("10.5555/khattab2020colbert", "-o", "mine", "--source", source)

    assert done.code == 0, done.err
    links: dict[str, set[str]] = {}
    for paper in with_dois():
        for reference in paper["citations"]:
            links.setdefault(paper["id"], set()).add(reference)
            links.setdefault(reference, set()).add(paper["id"])
    reached, frontier = {"khattab2020colbert"}, {"khattab2020colbert"}
    while frontier := set().union(*(links.get(i, set()) for i in frontier)) - reached:
        reached |= frontier
    dois = {paper["doi"].removeprefix("10.5555/") for paper in collected(tmp_path / "mine")}
    assert dois == reached


def test_references_that_a_batch_leaves_out_are_listed_by_themselves(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    papers = with_dois()
    seed = next(paper for paper in papers if paper["id"] == SEEDS[0])
    seed["elided"] = True  # as some publishers wish
    server.fill(papers)

    collect("10.5555/khattab2020colbert", "-o", "mine", "--source", "s2", "--papers", 50)

    first = collected(tmp_path / "mine")[0]
    assert len(first["citations"]) == len(seed["citations"])


def test_a_batch_that_is_too_large_is_halved(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.most_bytes = 30_000

    done = collect(bibliography(tmp_path, *SEEDS), "-o", "mine", "--source", "s2", "--papers", 60)

    assert done.code == 0, done.err
    assert len(collected(tmp_path / "mine")) == 60


@pytest.mark.parametrize("source", SOURCES)
def test_papers_without_abstracts_are_kept(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.abstracts = False

    collect(bibliography(tmp_path, *SEEDS), "-o", "mine", "--source", source, "--papers", 20)

    assert record(tmp_path / "mine")["counts"]["papers"] == 20
    assert record(tmp_path / "mine")["counts"]["with_abstract"] == 0


def test_a_cursor_that_never_ends_is_left(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.endless = True

    done = collect(bibliography(tmp_path, *SEEDS), "-o", "mine", "--papers", 30)

    assert done.code == 0
    assert "repeats a page" in done.err
    assert len(collected(tmp_path / "mine")) == 30
    assert len(server.requests) < 20


def test_an_update_adds_new_papers_and_keeps_the_others(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS[:2])
    assert collect(bib, "-o", "mine", "--papers", 30).code == 0
    before = gzip.decompress((tmp_path / "mine" / "papers.jsonl.gz").read_bytes())
    late = {"id": "late", "title": "A Late Answer to ColBERT", "year": 2099}
    early = {"id": "early", "title": "An Early Answer to ColBERT", "year": 1999}
    new = [{**paper, "citations": [SEEDS[0]]} for paper in (late, early)]
    server.fill([*with_dois(), *new])

    again = collect(bib, "-o", "mine", "--papers", 30)
    done = collect(bib, "-o", "mine", "--update", "--papers", 30)

    assert "is complete; --update adds what is new" in again.err
    assert done.code == 0, done.err
    after = gzip.decompress((tmp_path / "mine" / "papers.jsonl.gz").read_bytes())
    assert after.startswith(before)  # every id, every line
    added = [json.loads(line)["title"] for line in after[len(before) :].splitlines()]
    assert added == ["A Late Answer to ColBERT"]
    assert len(record(tmp_path / "mine")["runs"]) == 2


def test_an_update_takes_references_that_the_list_has_gained(
    collect: Collect, tmp_path: Path
) -> None:
    collect(bibliography(tmp_path, SEEDS[0]), "-o", "mine", "--papers", 5)

    done = collect(bibliography(tmp_path, *SEEDS[:2]), "-o", "mine", "--update", "--papers", 10)

    assert done.code == 0, done.err
    papers = collected(tmp_path / "mine")
    assert 5 < len(papers) <= 15
    assert f"10.5555/{SEEDS[1]}" in {paper["doi"] for paper in papers}
    assert len(record(tmp_path / "mine")["seeds"]) == 2


def test_a_dry_run_sends_and_writes_nothing(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS)

    done = collect(bib, "-o", "mine", "--dry-run")

    assert done.code == 0
    assert re.search(r"about \d+ requests, .*\$0\.\d\d of the \$1 that is free each day", done.err)
    assert server.requests == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["refs.bib"]


def test_a_large_collection_needs_a_yes(collect: Collect, tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("\n".join(f"A title of paper {i}" for i in range(2000)))

    done = collect("many.txt", "--source", "openalex")

    assert done.code == 2
    assert "start it with --yes, or lower --papers" in done.err


def test_a_missing_key_gives_one_line_with_the_address(
    collect: Collect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENALEX_URL")
    monkeypatch.delenv("OPENALEX_API_KEY")

    done = collect("10.5555/x", "--source", "openalex")

    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "https://openalex.org/settings/api" in done.err


@pytest.mark.parametrize("source", SOURCES)
def test_no_key_is_ever_shown_or_stored(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.keys = {"another"}
    refused = collect("10.5555/x", "-o", "refused", "--source", source)
    server.keys = {KEY}
    server.faults = [BROKEN]
    accepted = collect(
        bibliography(tmp_path, *SEEDS), "-o", "mine", "--source", source, "--papers", 9
    )

    assert refused.code == 2
    assert refused.err.splitlines()[-1].startswith("citerec: error: ")
    assert "check the key in" in refused.err  # although the server repeats the key in its message
    assert accepted.code == 0, accepted.err
    texts = [refused.out, refused.err, accepted.out, accepted.err]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    contents = [path.read_bytes() for path in files]
    unpacked = [gzip.decompress(c) for c in contents if c.startswith(b"\x1f\x8b")]
    assert not [text for text in texts if KEY in text]
    assert not [content for content in [*contents, *unpacked] if KEY.encode() in content]


@pytest.mark.parametrize("key", ["with space", "line\nbreak", "ключ"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(
    key: str, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S2_API_KEY", key)

    done = collect("10.5555/x", "--source", "s2")

    assert done.code == 2
    assert "S2_API_KEY holds characters that no key has" in done.err
    assert key not in done.err


def test_a_wrong_address_is_named(
    collect: Collect, server: ScholarServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENALEX_URL", f"{server.url}/elsewhere")

    done = collect("10.5555/devlin2019bert")

    assert done.code == 2
    assert f"HTTP 404: no such path; is {server.url}/elsewhere the right address?" in done.err


def test_no_key_travels_unencrypted(collect: Collect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_URL", "http://user:password@mirror.example")

    done = collect("10.5555/x", "--source", "s2")

    assert done.code == 2
    assert "http://mirror.example would receive the key in S2_API_KEY unencrypted" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name references"),
        (("--search", "x", "10.5555/x"), "and not both"),
        (("missing.bib",), "no such file, and neither a DOI"),
        (("10.5555/x", "--update"), "no finished collection to update"),
        (("10.5555/x", "--update", "--force"), "use one of them"),
        (("10.5555/unknown",), "has none of the references"),
        (("--search", "zzzz"), "no result for 'zzzz'"),
        (("empty.bib",), "this is empty"),
    ],
)
def test_what_cannot_be_collected_gives_one_line(
    arguments: tuple[str, ...], message: str, collect: Collect, tmp_path: Path
) -> None:
    (tmp_path / "empty.bib").write_text("")

    done = collect(*arguments)

    assert done.code == 2
    assert message in done.err.splitlines()[-1]


def test_another_list_does_not_replace_a_collection(collect: Collect, tmp_path: Path) -> None:
    collect("10.5555/devlin2019bert", "-o", "mine", "--papers", 5)
    before = (tmp_path / "mine" / "papers.jsonl.gz").read_bytes()

    other = collect("10.5555/khattab2020colbert", "-o", "mine", "--papers", 5)
    source = collect("10.5555/devlin2019bert", "-o", "mine", "--papers", 5, "--source", "s2")

    assert other.code == source.code == 2
    assert "has another collection; add to it with --update, replace it with --force" in other.err
    assert "was collected from openalex, whose ids differ" in source.err
    assert (tmp_path / "mine" / "papers.jsonl.gz").read_bytes() == before
    assert collect("10.5555/khattab2020colbert", "-o", "mine", "--papers", 5, "--force").code == 0


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_continues_where_it_was(
    ending: signal.Signals, server: ScholarServer, collect: Collect, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS, doi=False)
    arguments = [str(bib), "-o", "mine", "--source", "s2", "--papers", "60"]
    assert collect(*[a if a != "mine" else "whole" for a in arguments]).code == 0
    needed = len(server.requests)
    server.requests.clear()

    code = "import sys; from citerec.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "collect", *arguments, "--rate", "20"],
        cwd=tmp_path,
        env=os.environ | services(server),
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(server.requests) < 4:
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(ending)
    _, error = process.communicate()
    before = len(server.requests)
    done = collect(*arguments)

    assert not (tmp_path / "mine" / ".collect").exists()
    assert process.returncode != 0
    if ending == signal.SIGINT:
        assert "what was fetched is kept in mine; the same command continues" in error
    assert before < needed
    assert done.code == 0, done.err
    assert "responses of an interrupted run are used again" in done.err
    assert len(server.requests) <= needed + 1  # the one under way
    mine, whole = (tmp_path / name / "papers.jsonl.gz" for name in ("mine", "whole"))
    assert mine.read_bytes() == whole.read_bytes()


def test_an_unfinished_collection_is_no_corpus(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS, doi=False)
    server.keys = {"other"}

    assert collect(bib, "-o", "mine").code == 2

    assert [path.name for path in (tmp_path / "mine").iterdir()] == [".collect"]
    assert run(["index", "mine"]) == 2


def test_two_runs_do_not_fill_one_folder(collect: Collect, tmp_path: Path) -> None:
    from citerec.collect.store import open_cache

    with open_cache(tmp_path / "mine", "collection"):
        done = collect("10.5555/devlin2019bert", "-o", "mine")

    assert done.code == 2
    assert "mine is being filled by another citerec collect" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ecology", "labour"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_real_reference_list_gives_its_neighbourhood(
    name: str, source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    papers = papers_of(real_corpus(name) / "corpus.jsonl.gz")
    server.fill(papers)
    paper = max(papers, key=lambda one: len(one.get("citations", [])))
    cited = [one for one in papers if one["id"] in set(paper["citations"])]
    (tmp_path / "refs.jsonl").write_text(
        "".join(
            json.dumps({k: one[k] for k in ("title", "year", "authors")}) + "\n" for one in cited
        )
    )

    done = collect("refs.jsonl", "-o", "mine", "--source", source, "--papers", 1000)

    assert done.code == 0, done.err
    assert record(tmp_path / "mine")["resolved"] >= 0.95 * len(cited)
    assert len(collected(tmp_path / "mine")) == 1000
