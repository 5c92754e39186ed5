"""The audit: what a query may not know is taken away, and what differs is named."""

from pathlib import Path

import numpy as np
import pytest
from support.types import Build, Capture, MonkeyPatch

from citerec.cli import run
from citerec.evaluation.protocol import CitationScope, EvalConfig, load_eval_set
from citerec.evaluation.systems import Systems
from citerec.graph import temporal
from citerec.index.folder import IndexFolder
from citerec.index.papers import open_lookup
from citerec.lab.audit import audit, audit_systems, without_future
from citerec.match.papers import write_tables
from citerec.types import Hits

# q, of 2005, may know what b cites; not what late (2005) and future (2006) cite.
CORPUS = [
    {"id": "a", "title": "Apples", "year": 2000, "authors": ["A. Bee"]},
    {"id": "b", "title": "Apples and bears", "year": 2001, "citations": ["a"]},
    {"id": "late", "title": "Late apples", "year": 2005, "citations": ["a", "b"]},
    {
        "id": "future",
        "title": "Future apples",
        "year": 2006,
        "citations": ["a"],
        "venue": "V",
    },
    *({"id": f"x{n}", "title": "Filler", "year": 1990 + n} for n in range(10)),
    {"id": "q", "title": "Apples again", "year": 2005, "citations": ["a", "b"]},
]


@pytest.fixture
def index(build: Build) -> IndexFolder:
    return build(CORPUS)


def test_an_index_of_before_a_year_cites_only_what_was_cited_then(
    index: IndexFolder,
) -> None:
    past = without_future(index, 2005)

    assert [past.graph.references(row).tolist() for row in range(4)] == [
        [],
        [0],
        [],
        [],
    ]
    assert len(past.graph.indices) == 1
    assert len(index.graph.indices) == 6


def test_later_papers_say_nothing_and_keep_id_and_year(index: IndexFolder) -> None:
    past = without_future(index, 2005).papers

    assert (past[3].id, past[3].year, past[3].title, past[3].venue) == (
        "future",
        2006,
        "",
        "",
    )
    assert past[0] == index.papers[0]
    assert past[2] == index.papers[2]  # of the query's own year
    assert past.years.tolist() == index.papers.years.tolist()


def test_tables_without_the_future_are_those_of_the_emptied_papers(
    build: Build, tmp_path: Path
) -> None:
    later = {**CORPUS[0], "id": "10.1000/later", "year": 2006, "doi": "10.1000/other"}
    past = without_future(build([*CORPUS, later]), 2005).papers
    write_tables(tmp_path, past)

    made, cut = open_lookup(tmp_path), past.lookup

    assert cut is not None
    for name in ("ids", "dois", "titles", "authors"):
        expected, found = getattr(made, name), getattr(cut, name)
        assert found.codes.tolist() == expected.codes.tolist()
        assert found.rows.tolist() == expected.rows.tolist()
    assert len(cut.authors.rows) == 1  # the later paper has the same author


def test_a_run_that_knows_only_the_past_passes(index: IndexFolder) -> None:
    eval_set = load_eval_set(index, "test")
    setting = EvalConfig(known_graph=CitationScope.EARLIER)
    systems = Systems(index, eval_set, setting)

    checked = audit_systems(systems, ["bm25", "expanded"])

    assert checked.faults == ()
    assert (checked.queries, checked.lists) == (
        len(eval_set.queries),
        2 * len(eval_set.queries),
    )
    assert "bit by bit" in str(checked)


def test_the_sample_passes_with_all_features(sample_index: IndexFolder) -> None:
    eval_set = load_eval_set(sample_index, "test")

    setting = EvalConfig(known_graph=CitationScope.EARLIER)
    checked = audit_systems(Systems(sample_index, eval_set, setting), ["bm25"])

    assert checked.faults == ()
    assert checked.candidates > 0


def test_a_list_with_a_paper_of_a_later_year_is_named(index: IndexFolder) -> None:
    eval_set, setting = load_eval_set(index, "test"), EvalConfig()
    found = Systems(index, eval_set, setting).candidates()
    later = int(np.argmax(index.papers.years))
    lists = [
        Hits(np.array([later], np.int32), np.ones(1, np.float32))
        for _ in eval_set.queries
    ]
    early = [
        i
        for i, query in enumerate(eval_set.queries)
        if query.year and query.year < 2006
    ]

    checked = audit(index, eval_set, setting, found, [lists])

    assert len(checked.faults) >= len(early) > 0
    assert (
        "the ranking contains a paper of a later year, or the query itself"
        in checked.faults[0]
    )


def test_a_fault_ends_with_exit_code_1_and_names_the_query(
    index: IndexFolder,
    tmp_path: Path,
    monkeypatch: MonkeyPatch,
    capsys: Capture,
) -> None:
    everybody = lambda year, years: np.ones(len(years), np.bool_)  # noqa: E731
    monkeypatch.setattr(temporal, "citing_before", everybody)

    code = run(
        [
            *("evaluate", "--index", str(index.path), "--systems", "bm25", "--audit"),
            *("--known-graph", "earlier", "--output", str(tmp_path / "report")),
        ]
    )

    assert code == 1
    assert "audit: query " in capsys.readouterr().err
    assert not (tmp_path / "report").exists()
