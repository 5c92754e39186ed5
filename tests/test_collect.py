"""`citerec collect` against a local server that speaks the APIs of OpenAlex and Semantic Scholar, and misbehaves."""

import gzip
import json
import re
import socket
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.corpora import SAMPLE
from support.scholar_server import (
    BROKEN,
    CUT,
    HTML,
    Fault,
    ScholarServer,
    busy,
    papers_of,
    serving,
)
from support.tables import table
from support.types import Capture, MonkeyPatch

from citerec.cli import run
from citerec.collect import client as client_module
from citerec.collect.client import Client, CollectError, Service, open_cache
from citerec.collect.run import CollectConfig, make_plan
from citerec.collect.snowball import HEADER, identifier
from citerec.collect.sources import SemanticScholar
from citerec.corpus.readers import detect_format, find_source
from citerec.errors import CiterecError

KEY = "secret-key-0123456789"
SOURCES = ("openalex", "s2")
# What the tests collect around: three papers of the sample with many citations.
SEEDS = ("khattab2020colbert", "karpukhin2020dense", "devlin2019bert")
WITH_DOIS = [{**paper, "doi": f"10.5555/{paper['id']}"} for paper in papers_of(SAMPLE)]


@pytest.fixture
def server() -> Generator[ScholarServer]:
    with serving(WITH_DOIS) as running:
        yield running
        assert running.refused == []  # no request was against the rules of a service


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Collect = Callable[..., Done]


@pytest.fixture
def collect(
    tmp_path: Path,
    server: ScholarServer,
    capsys: Capture,
    monkeypatch: MonkeyPatch,
) -> Collect:
    """Run the command in an empty folder, in this process, with keys, at full speed."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENALEX", "S2"):
        monkeypatch.setenv(f"{name}_URL", server.url)
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        code = run(["collect", "--rate", "1000", *map(str, arguments)])
        return Done(code, *capsys.readouterr())

    return call


def bibliography(folder: Path, *ids: str, doi: bool = True) -> Path:
    """Write a .bib of papers of the sample, with a private note and an abstract, which stay at home."""
    entries: list[str] = []
    for paper in (p for p in WITH_DOIS if p["id"] in ids):
        entry = f"@article{{PRIVATEkey{len(entries)}, title = {{{paper['title']}}},"
        entry += f" author = {{{' and '.join(paper['authors'])}}}, year = {{{paper['year']}}},"
        entry += " abstract = {PRIVATE abstract}, file = {/home/PRIVATE/paper.pdf},"
        entries.append(
            f"{entry} doi = {{{paper['doi']}}}}}\n" if doi else f"{entry}}}\n"
        )
    path = folder / "refs.bib"
    path.write_text("\n".join(entries))
    return path


def collected(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "papers.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "collection.json").read_text())


# --- from references to a corpus


@pytest.mark.parametrize("source", SOURCES)
def test_a_bibliography_becomes_a_corpus(
    source: str, collect: Collect, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS)

    done = collect(bib, "-o", "mine", "--source", source, "--papers", 40)

    assert done.code == 0, done.err
    papers = collected(tmp_path / "mine")
    assert len({paper["id"] for paper in papers}) == 40
    titles = {paper["title"]: paper for paper in WITH_DOIS}
    for paper in papers:  # as the service has them
        original = titles[paper["title"]]
        for name in ("abstract", "year", "authors", "venue", "doi"):
            assert paper[name] == original[name]
        assert len(paper.get("citations", [])) == len(original["citations"])
    assert {p["doi"].removeprefix("10.5555/") for p in papers[:3]} == set(SEEDS)
    assert detect_format(find_source(tmp_path / "mine")) == "canonical"
    assert [*record(tmp_path / "mine")["identified"].values()] == [40]
    assert done.out.endswith("next: citerec index mine\n")


@pytest.mark.parametrize("source", SOURCES)
def test_only_ids_and_titles_are_sent(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    with_doi = bibliography(tmp_path, SEEDS[0]).read_text()
    without_doi = bibliography(tmp_path, SEEDS[1], doi=False).read_text()
    (tmp_path / "PRIVATE.bib").write_text(
        with_doi + without_doi.replace("key0", "key1")
    )

    done = collect(
        tmp_path / "PRIVATE.bib", "-o", "mine", "--source", source, "--papers", 20
    )

    assert done.code == 0, done.err
    sent = [f"{r.path} {r.params} {r.headers} {r.body}" for r in server.requests]
    assert not [text for text in sent if "PRIVATE" in text or str(tmp_path) in text]
    # an author
    assert not [text for text in sent if "Khattab" in text or "Karpukhin" in text]


@pytest.mark.parametrize("source", SOURCES)
def test_titles_find_what_has_no_doi_and_the_rest_is_listed(
    source: str, collect: Collect, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS, doi=False)
    others = bib.read_text().replace("2020", "1931").replace("PRIVATE", "other")
    others = re.sub(r"author = \{[^}]*\}", "author = {Ada Nobody}", others)
    unknown = "@misc{a, title = {A Paper that Nobody Ever Wrote}}\n@misc{b, doi = {10.5555/none}}\n"
    bib.write_text(bib.read_text() + unknown + others)

    done = collect(bib, "-o", "mine", "--source", source, "--papers", 10)

    assert done.code == 0, done.err
    assert record(tmp_path / "mine")["resolved"] == 3
    rows = [
        r.split("\t")
        for r in (tmp_path / "mine" / "unresolved.tsv").read_text().splitlines()
    ]
    assert rows[0] == list(HEADER)
    reasons = {row[1] or row[2]: row[3] for row in rows[1:]}
    assert "unknown to" in reasons["A Paper that Nobody Ever Wrote"]
    assert "unknown to" in reasons["doi:10.5555/none"]
    assert "title, year or authors differ" in {row[3] for row in rows}
    assert "A Paper that Nobody Ever Wrote" in done.out


@pytest.mark.parametrize("source", SOURCES)
def test_dois_arxiv_ids_and_ids_of_the_service_do_without_a_file(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    papers = [dict(paper) for paper in WITH_DOIS]
    papers[0]["doi"], papers[1]["doi"] = "10.48550/arXiv.2004.12832", "10.5555/Other"
    server.fill(papers)
    own = server.number if source == "openalex" else server.hash

    ids = ("arXiv:2004.12832v2", "https://doi.org/10.5555/other", own[papers[2]["id"]])
    done = collect(*ids, "--source", source, "--papers", 3)

    assert done.code == 0, done.err
    folder = tmp_path / "corpora" / "references"
    assert {p["title"] for p in collected(folder)} == {p["title"] for p in papers[:3]}


@pytest.mark.parametrize(
    ("text", "found"),
    table(
        """
https://doi.org/10.1145/3397271.3401075 | doi:10.1145/3397271.3401075
https://arxiv.org/abs/2004.12832v2 | arxiv:2004.12832
arXiv:hep-th/9901001 | arxiv:hep-th/9901001
https://openalex.org/W2741809807 | id:W2741809807
0123456789abcdef0123456789abcdef01234567 | id:0123456789abcdef0123456789abcdef01234567
khattab2020 |
../../etc/passwd |
"""
    ),
)
def test_only_ids_of_services_are_ids(text: str, found: str) -> None:
    assert identifier(text) == found


def test_a_large_corpus_takes_all_that_is_connected_and_has_the_same_bytes_again(
    collect: Collect, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        assert collect("10.5555/khattab2020colbert", "-o", name).code == 0

    reached, count = {"khattab2020colbert"}, 0
    while count < len(reached):
        count = len(reached)
        for paper in WITH_DOIS:
            if paper["id"] in reached:
                reached |= {*paper["citations"]}
            elif reached & {*paper["citations"]}:
                reached.add(paper["id"])
    dois = {
        paper["doi"].removeprefix("10.5555/") for paper in collected(tmp_path / "one")
    }
    assert dois == reached
    one, two = (tmp_path / name / "papers.jsonl.gz" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_references_that_a_batch_leaves_out_are_listed_and_large_batches_are_halved(
    collect: Collect, server: ScholarServer, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    server.fill(
        [
            {**paper, "elided": "empty" * (paper["id"] == SEEDS[0])}
            for paper in WITH_DOIS
        ]
    )
    server.most_bytes = 30_000  # above, the batch is refused
    server.most_references = 250  # of a batch; it comes without the others
    monkeypatch.setattr(SemanticScholar, "most_listed", 250)

    done = collect(
        "10.5555/khattab2020colbert", "-o", "mine", "--source", "s2", "--papers", 50
    )

    assert done.code == 0, done.err
    papers = collected(tmp_path / "mine")
    lengths = {paper["doi"]: len(paper["citations"]) for paper in WITH_DOIS}
    assert len(papers) == 50
    assert all(len(p.get("citations", [])) == lengths[p["doi"]] for p in papers)


# --- what a service states is kept


def invented(name: str, *citations: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": f"On {name}",
        "doi": f"10.5555/{name}",
        "year": 2020,
        "citations": [*citations],
        **more,
    }


def links_of(folder: Path, server: ScholarServer) -> dict[str, list[str]]:
    """Return the citations that were written, by the names of the test."""
    names = {number: name for name, number in server.hash.items()}
    return {
        names[p["id"]]: [names[i] for i in p.get("citations", [])]
        for p in collected(folder)
    }


def test_links_are_kept_where_publishers_withhold_references(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    # of `late` the batch has an empty list, and its own list is null
    late = invented("late", "seed", "other", elided="late")
    citing = [invented(f"citing{n}", "seed", "other", elided=True) for n in range(900)]
    server.fill([invented("seed"), invented("other"), late, *citing])
    ids = ("10.5555/seed", "10.5555/late")

    first = collect(*ids, "-o", "mine", "--source", "s2", "--papers", 950)
    links = links_of(tmp_path / "mine", server)
    # the list gains `other`, which papers of the corpus cite, too
    second = collect(*ids, "10.5555/other", "-o", "mine", "--update", "--papers", 950)
    updated = links_of(tmp_path / "mine", server)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert links == {"seed": [], **{p["id"]: ["seed"] for p in (late, *citing)}}
    assert updated == {i: cited and ["seed", "other"] for i, cited in links.items()} | {
        "other": []
    }
    assert (
        "901  without a list of references: their publishers withhold it" in first.out
    )
    assert len(record(tmp_path / "mine")["without_references"]) == 901
    assert [r.path for r in server.requests if r.path.endswith("/references")] == [
        f"/graph/v1/paper/{server.hash['late']}/references"
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_a_retracted_paper_is_marked(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    titles = {
        "a": "RETRACTED ARTICLE: Growth in the north",
        "b": "[Retracted] Growth in the south",
        "c": "Retracted papers: a survey",
    }
    seed = invented("seed", *titles)
    server.fill(
        [
            seed,
            *(
                invented(i, title=titles[i], retracted=i in "ab", year=2000)
                for i in titles
            ),
        ]
    )

    collect("10.5555/seed", "-o", "mine", "--source", source)

    marks = {
        paper["title"]: paper.get("retracted") for paper in collected(tmp_path / "mine")
    }
    assert marks == {
        titles["a"]: True,
        titles["b"]: True,
        titles["c"]: None,
        "On seed": None,
    }


# --- what a service refuses


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "search",
    [
        "Passage retrieval?",
        "passage* | (retrieval)!",
        '"passage retrieval" ~',
        "“passage) retrieval",
        '-passage, retrieval:"',
    ],
)
def test_signs_of_a_search_are_no_commands(
    source: str, search: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    done = collect(
        f"--search={search}", "-o", "mine", "--source", source, "--papers", 9
    )

    assert done.code == 0, done.err
    assert "searching for: passage retrieval\n" in done.err
    assert "Passage" in collected(tmp_path / "mine")[0]["title"]


def test_a_text_finds_what_is_near_in_meaning(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    text = f"Dense passage retrieval (2020)? {'x' * 3000}"
    options = ("--semantic", "--source", "openalex", "--papers", 9, "-o", "mine")

    done = collect("--search", text, *options)
    again = collect("--update", "-o", "mine")

    assert done.code == 0, done.err
    assert "only the text of --search is sent to OpenAlex" in done.err
    # an update asks for what cites the works that were found: the text is sent once
    [sent] = [one for one in server.requests if "search.semantic" in one.params]
    assert sent.params["search.semantic"] == text[:2000]
    assert "passage" in collected(tmp_path / "mine")[0]["title"].lower()
    assert again.code == 0, again.err
    record = json.loads((tmp_path / "mine" / "collection.json").read_bytes())
    assert record["query"]["semantic"]
    # a semantic search costs $0.01, a list $0.0001
    assert record["runs"][0]["dollars"] >= 0.01


def test_a_reference_that_is_refused_is_named_and_left_out(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.unspeakable = "unspeakable"
    titles = (
        "None",
        "{undefined}",
        'What? (*) | !~ "',
        "An unspeakable title",
        "On seed",
    )
    dois = [f"10.5555/{n}" for n in ("unspeakable", *range(30), "other")]
    entries = [f"@misc{{k{n}, title = {{{title}}}}}" for n, title in enumerate(titles)]
    (tmp_path / "refs.bib").write_text("\n".join(entries))
    server.fill([invented("seed"), invented("other"), invented("what", title="What?")])

    done = collect(
        "refs.bib", *dois, "-o", "mine", "--source", "openalex", "--papers", 9
    )

    assert done.code == 0, done.err
    found = {paper["title"] for paper in collected(tmp_path / "mine")}
    assert found == {"On seed", "On other", "What?"}
    assert "10.5555/unspeakable is left out: OpenAlex did not accept" in done.err
    rows = (tmp_path / "mine" / "unresolved.tsv").read_text().splitlines()
    reasons = {row.split("\t")[1]: row.split("\t")[3] for row in rows}
    assert "does not search the title 'None'" in reasons["None"]
    assert "does not search the title 'undefined'" in reasons["undefined"]
    assert "HTTP 400: Failed to parse query" in reasons["An unspeakable title"]
    assert all("unspeakable" in refusal["message"] for refusal in server.refused)
    server.refused.clear()


@pytest.mark.parametrize(
    ("given", "page"),
    [
        ("arXiv:2102.11388v2", "https://arxiv.org/abs/2102.11388"),
        ("10.48550/arXiv.2102.11388", "http://arxiv.org/abs/2102.11388"),
        ("arXiv:hep-th/9901001", "https://arxiv.org/abs/hep-th/9901001"),
        ("arXiv:2102.11388", "https://doi.org/10.48550/arxiv.2102.11388"),
        ("10.1101/2021.02.03", "https://doi.org/10.1101/2021.02.03"),
    ],
)
def test_a_preprint_that_was_merged_into_its_article_is_found(
    given: str, page: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.fill([invented("article", merged=page), invented("another")])

    done = collect(given, "-o", "mine", "--source", "openalex", "--papers", 2)

    assert done.code == 0, done.err
    assert [paper["doi"] for paper in collected(tmp_path / "mine")] == [
        "10.5555/article"
    ]


# --- complete, out of date, interrupted


def test_an_update_adds_new_papers_and_keeps_the_others(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS[:2])
    assert collect(bib, "-o", "mine", "--papers", 30).code == 0
    before = gzip.decompress((tmp_path / "mine" / "papers.jsonl.gz").read_bytes())
    late = {"id": "late", "title": "A Late Answer to ColBERT", "year": 2099}
    early = {"id": "early", "title": "An Early Answer to ColBERT", "year": 1999}
    new = [{**paper, "citations": [SEEDS[0]]} for paper in (late, early)]
    server.fill([*WITH_DOIS, *new])

    again = collect(bib, "-o", "mine", "--papers", 30)
    done = collect(bib, "-o", "mine", "--update", "--papers", 30)

    assert "is complete; --update adds what is new" in again.err
    assert done.code == 0, done.err
    after = gzip.decompress((tmp_path / "mine" / "papers.jsonl.gz").read_bytes())
    assert after.startswith(before)  # every id, every line
    [added] = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert added["title"] == "A Late Answer to ColBERT"
    assert len(record(tmp_path / "mine")["runs"]) == 2


def test_another_list_does_not_replace_a_collection(
    collect: Collect, tmp_path: Path
) -> None:
    collect("10.5555/devlin2019bert", "-o", "mine", "--papers", 5)
    before = (tmp_path / "mine" / "papers.jsonl.gz").read_bytes()

    other = collect("10.5555/khattab2020colbert", "-o", "mine", "--papers", 5)
    source = collect(
        "10.5555/devlin2019bert", "-o", "mine", "--papers", 5, "--source", "s2"
    )

    assert (other.code, source.code) == (2, 2)
    assert "has another collection" in other.err
    assert "was collected from openalex" in source.err
    assert (tmp_path / "mine" / "papers.jsonl.gz").read_bytes() == before
    assert (
        collect(
            "10.5555/khattab2020colbert", "-o", "mine", "--papers", 5, "--force"
        ).code
        == 0
    )


def test_an_interrupted_run_continues_where_it_was(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    arguments = [
        bibliography(tmp_path, *SEEDS, doi=False),
        "--source",
        "s2",
        "--papers",
        60,
    ]
    assert collect(*arguments, "-o", "whole").code == 0
    needed = len(server.requests)
    server.faults = [None, None, None, Fault(401, b"{}")]

    stopped = collect(*arguments, "-o", "mine")
    files = [path.name for path in (tmp_path / "mine").iterdir()]
    no_corpus = run(["index", "mine"])
    server.requests.clear()
    done = collect(*arguments, "-o", "mine")

    assert (stopped.code, files, no_corpus) == (2, [".collect"], 2)
    assert done.code == 0, done.err
    assert len(server.requests) == needed - 3
    assert "3 responses of an interrupted run are used again" in done.err
    assert not (tmp_path / "mine" / ".collect").exists()
    mine, whole = (tmp_path / name / "papers.jsonl.gz" for name in ("mine", "whole"))
    assert mine.read_bytes() == whole.read_bytes()


def test_links_in_a_folder_that_somebody_else_made_are_not_followed(
    collect: Collect, tmp_path: Path
) -> None:
    arguments = [bibliography(tmp_path, *SEEDS), "-o", "mine", "--papers", 40]
    (tmp_path / "home" / "thesis").mkdir(parents=True)
    (tmp_path / "home" / ".bashrc").write_text("PATH=/bin")
    (tmp_path / "mine").mkdir()
    for name in ("papers.jsonl.gz", "unresolved.tsv", ".collect"):
        (tmp_path / "mine" / name).symlink_to(tmp_path / "home" / ".bashrc")
    work = tmp_path / "mine" / ".collect"
    work.unlink()
    work.symlink_to(tmp_path / "home")

    refused = collect(*arguments)
    work.unlink()
    done = collect(*arguments)

    assert (refused.code, done.code) == (2, 0), done.err
    assert f"{work.name} is a link" in refused.err
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == [
        ".bashrc",
        "thesis",
    ]
    assert (tmp_path / "home" / ".bashrc").read_text() == "PATH=/bin"
    assert len(collected(tmp_path / "mine")) == 40


# --- before anything is sent


def test_a_dry_run_sends_and_writes_nothing(
    collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    bib = bibliography(tmp_path, *SEEDS)

    done = collect(bib, "-o", "mine", "--dry-run")

    assert done.code == 0
    assert "only ids and titles of the references are sent to OpenAlex" in done.err
    assert re.search(
        r"about \d+ requests, .*\$0\.\d\d of the \$1 that is free each day", done.err
    )
    assert server.requests == []
    assert [path.name for path in tmp_path.iterdir()] == ["refs.bib"]


def test_without_a_key_what_is_free_each_day_is_a_tenth(
    collect: Collect, server: ScholarServer, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    # 100 titles cost $0.10, and the lists of their references and citations a little more
    (tmp_path / "many.txt").write_text(
        "\n".join(f"A title of paper {i}" for i in range(100))
    )
    arguments = ("many.txt", "-o", "mine", "--source", "openalex", "--papers", 9)
    monkeypatch.setenv("OPENALEX_API_KEY", "")
    server.fill([invented("seed", title="A title of paper 0")])
    server.budget = 0.0505

    refused = collect(*arguments)
    sent = len(server.requests)
    stopped = collect(*arguments, "--yes")
    monkeypatch.setenv("OPENALEX_API_KEY", KEY)
    done = collect(*arguments)

    assert (refused.code, sent, stopped.code, done.code) == (2, 0, 2, 0)
    assert "of the $0.10 that is free each day" in refused.err
    assert "set OPENALEX_API_KEY" in refused.err.splitlines()[-1]
    assert (
        "wait 14.9 hours (HTTP 429: Insufficient budget" in stopped.err.splitlines()[-1]
    )
    assert "50 responses of an interrupted run are used again" in done.err
    assert [refusal["error"] for refusal in server.refused] == ["Rate limit exceeded"]
    server.refused.clear()


def test_an_estimate_counts_searches_and_rates(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv("OPENALEX_API_KEY", "x")
    config = CollectConfig(search="graphs", papers=100, rate=0.5)

    estimate = make_plan(Path("none"), config).estimate

    # 100 seeds with 100 citing works and 40 references each: 140 lists of 100; one search
    assert estimate.requests == 141
    assert estimate.dollars == pytest.approx(0.001 + 140 * 0.0001)
    assert estimate.minutes == pytest.approx(141 * 2 / 60)


def test_a_semantic_search_has_its_own_price(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv("OPENALEX_API_KEY", "x")
    config = CollectConfig(search="graphs", semantic=True, papers=100)

    estimate = make_plan(Path("none"), config).estimate

    # 50 seeds with 100 citing works and 40 references each: 70 lists of 100; one search
    assert estimate.requests == 71
    assert estimate.dollars == pytest.approx(0.01 + 70 * 0.0001)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name references"),
        (("--search", "x", "10.5555/x"), "and not both"),
        (("10.5555/x", "--semantic"), "give --search"),
        (("--search", "x", "--semantic", "--source", "s2"), "add --source openalex"),
        (("missing.bib",), "no such file, and neither a DOI"),
        (("10.5555/x", "--update"), "no finished collection to update"),
        (("10.5555/x", "--update", "--force"), "use one of them"),
        (("10.5555/unknown",), "has none of the references"),
        (("--search", "zzzz"), "no result for 'zzzz'"),
        (("empty.bib",), "this is empty"),
        (
            ("many.txt", "--source", "openalex"),
            "start it with --yes, or lower --papers",
        ),
    ],
)
def test_what_cannot_be_collected_gives_one_line(
    arguments: tuple[str, ...], words: str, collect: Collect, tmp_path: Path
) -> None:
    (tmp_path / "empty.bib").write_text("")
    (tmp_path / "many.txt").write_text(
        "\n".join(f"A title of paper {i}" for i in range(2000))
    )

    done = collect(*arguments)

    assert done.code == 2
    assert words in done.err.splitlines()[-1]


def test_an_open_line_is_refused_without_showing_secrets(
    collect: Collect, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENALEX_URL", "http://u:pass@mirror.example")

    done = collect("10.5555/x", "--source", "openalex")

    assert done.code == 2
    assert "http://mirror.example would receive" in done.err
    assert not [secret for secret in (KEY, "pass@") if secret in done.err]


@pytest.mark.parametrize("source", SOURCES)
def test_no_key_is_ever_shown_or_stored(
    source: str, collect: Collect, server: ScholarServer, tmp_path: Path
) -> None:
    server.keys = {"another"}
    refused = collect("10.5555/x", "-o", "refused", "--source", source)
    server.keys = {KEY}
    bib = bibliography(tmp_path, *SEEDS)
    accepted = collect(bib, "-o", "mine", "--source", source, "--papers", 9)

    assert refused.code == 2
    # although the server repeats the key in its message
    assert "check the key in" in refused.err
    assert accepted.code == 0, accepted.err
    assert KEY not in refused.out + refused.err + accepted.out + accepted.err
    contents = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    contents += [gzip.decompress(c) for c in contents if c.startswith(b"\x1f\x8b")]
    assert not [content for content in contents if KEY.encode() in content]


# --- the client and a server that misbehaves

PAPERS = [
    {"id": "a", "title": "Graph drawing", "year": 1990, "doi": "10.5555/a"},
    {
        "id": "b",
        "title": "Tree drawing",
        "year": 1995,
        "citations": ["a"],
        "doi": "10.5555/b",
    },
]
WORKS = {"filter": "openalex:W1000"}


@pytest.fixture
def small() -> Generator[ScholarServer]:
    with serving(PAPERS) as running:
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: MonkeyPatch) -> None:
    for name, value in {"TRIES": 4, "FIRST_PAUSE": 0.01, "TIMEOUT": 0.5}.items():
        monkeypatch.setattr(client_module, name, value)


@contextmanager
def opened(
    url: str, folder: Path, rate: float = 1000, key: str = ""
) -> Generator[tuple[Client, list[str]]]:
    """Open a client; yields it, and the list of what it logs."""
    service = Service(
        title="OpenAlex",
        url=url,
        variable="KEY",
        parameter="api_key",
        key=key,
        rate=rate,
    )
    messages: list[str] = []
    with open_cache(folder, "collection") as cache:
        client = Client(service, cache, messages.append)
        with closing(client.http):
            yield client, messages


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([BROKEN, BROKEN], "HTTP 500: Internal Server Error"),
        ([CUT], "peer closed connection"),
        ([HTML], "the answer is not JSON"),
        ([Fault(503, b"")], "HTTP 503"),
        ([Fault(403, b'{"message": "Slow"}', {"Retry-After": "0"})], "HTTP 403: Slow"),
        ([busy("0")], "HTTP 429: Too Many Requests"),
        ([Fault(wait=0.6)], "timed out"),
    ],
)
def test_a_passing_fault_is_tried_again(
    faults: list[Fault | None], message: str, small: ScholarServer, tmp_path: Path
) -> None:
    small.faults = list(faults)

    with opened(small.url, tmp_path) as (client, messages):
        answer = client.fetch("/works", WORKS)

    assert answer["results"][0]["title"] == "Graph drawing"
    assert len(small.requests) == len(faults) + 1
    assert len(messages) == len(faults)
    assert message in messages[0]


ENDLESS = b'{"data": [{"citingPaper": {"paperId": "a"}, "citedPaper": {"paperId": "a"}}], "next": 1}'


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(body=b'{"results": 5}'), "of another shape"),
        (Fault(body=b"[[], 1, null]"), "of another shape"),
        (Fault(body=b'{"results": [1, null, "a"], "meta": []}'), "of another shape"),
        (Fault(400, b"[]"), "did not accept a request|none of the references"),
        (Fault(body=b'"' + b"a" * 3_000_000 + b'"'), "takes more than 1 MB"),
        (
            Fault(
                body=gzip.compress(b" " * 2**28), headers={"Content-Encoding": "gzip"}
            ),
            "1 MB",
        ),
        (Fault(body=b"[" * 100_000), "is not JSON"),
        (
            Fault(302, b"", {"Location": "http://localhost:1/"}),
            "redirects to localhost:1",
        ),
        (Fault(302, b"", {"Location": "file:///etc/passwd"}), "redirects"),
    ],
)
@pytest.mark.parametrize("source", SOURCES)
def test_a_hostile_service_gets_one_line(
    source: str,
    fault: Fault,
    words: str,
    collect: Collect,
    server: ScholarServer,
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "MAX_BYTES", 2**20)
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.0)
    server.faults = [fault] * 20

    done = collect("10.5555/x", "--source", source)

    assert done.code == 2
    assert re.search(words, done.err.splitlines()[-1])
    assert "Traceback" not in done.err


def test_a_list_without_an_end_is_given_up(
    small: ScholarServer, tmp_path: Path
) -> None:
    small.faults = [Fault(body=ENDLESS)] * 2
    service = Service(title="S2", url=small.url, variable="KEY", rate=1000)

    with open_cache(tmp_path, "collection") as cache:
        client = Client(service, cache, print, most=50)
        with (
            closing(client.http),
            pytest.raises(CollectError, match="more than 50 pages"),
        ):
            [*SemanticScholar(client).citing(["a"], 10**9)]


def test_a_pause_is_kept_but_hours_and_too_many_tries_end_the_run(
    small: ScholarServer, tmp_path: Path
) -> None:
    small.faults = [busy("0.4"), None, busy("7200"), *[HTML] * 9]

    start = time.monotonic()
    with opened(small.url, tmp_path) as (client, _):
        client.fetch("/works", WORKS)
        assert time.monotonic() - start >= 0.4
        for message in (r"2\.0 hours", "failed 4 times"):
            with pytest.raises(CollectError, match=message):
                client.fetch("/works", {"search": "trees"})


def test_offline_is_stated_plainly(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

        with (
            opened(url, tmp_path) as (client, _),
            pytest.raises(CollectError, match="a network"),
        ):
            client.fetch("/works", WORKS)


def test_responses_of_another_run_are_not_used(
    small: ScholarServer, tmp_path: Path
) -> None:
    start = time.monotonic()
    with (
        pytest.raises(CollectError),
        opened(small.url, tmp_path, rate=10) as (client, _),
    ):
        for number in range(3):
            client.fetch("/works", {"filter": f"openalex:W{number}"})
        with pytest.raises(CiterecError), open_cache(tmp_path, "collection"):
            pass  # two runs do not fill one folder
        raise CollectError("interrupted")

    assert time.monotonic() - start >= 2 / 10  # the rate is kept
    with open_cache(tmp_path, "update of 2026-01-01") as cache:
        assert not [*cache.iterdir()]


def test_a_key_stays_with_its_service_when_it_redirects(
    small: ScholarServer, tmp_path: Path
) -> None:
    with serving([]) as thief, opened(small.url, tmp_path, key="secret") as (client, _):
        small.faults = [Fault(301, b"", {"Location": "/works?filter=openalex:W1000"})]
        answer = client.fetch("/works/W1", {})  # a merged work
        small.faults = [Fault(302, b"", {"Location": f"{thief.url}/works"})]
        with pytest.raises(CollectError, match="redirects"):
            client.fetch("/works", WORKS)

        assert thief.requests == []

    assert answer["results"][0]["title"] == "Graph drawing"
    assert [r.params["api_key"] for r in small.requests] == ["secret"] * 3
