"""How many of a cited paper's words the query has, and what that does to rankings."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from citerec.evaluate.assessment import Evaluation, as_json, assess
from citerec.evaluate.bins import pair_bins, quartiles
from citerec.evaluate.contents import report_of
from citerec.evaluate.overlap import means, overlaps, share, words_of
from citerec.evaluate.protocol import load_task
from citerec.evaluate.report.markdown import markdown
from citerec.folder import IndexFolder
from citerec.run import Run
from citerec.types import Paper, Ranking


def test_words_are_distinct_in_lower_case_and_no_function_words() -> None:
    paper = Paper(id="p", title="The Graph of graphs", abstract="A graph, x and C4.")

    assert words_of(paper) == {"graph", "graphs", "c4"}


def test_the_share_is_that_of_the_cited_papers_words() -> None:
    query, cited = frozenset({"a1", "b1", "c1"}), frozenset({"b1", "c1", "d1", "e1"})

    assert share(query, cited) == 0.5
    assert share(cited, query) == pytest.approx(2 / 3)
    assert share(query, frozenset()) == 0


def test_each_query_is_held_against_each_paper_that_it_cites(
    build: Callable[..., IndexFolder],
) -> None:
    index = build(
        [
            {"id": "a", "title": "Apples grow", "year": 1990},
            {"id": "b", "title": "Bears", "year": 1991},
            *({"id": f"x{n}", "title": "Filler", "year": 1992} for n in range(8)),
            {"id": "q", "title": "Apples again", "year": 2000, "citations": ["a", "b"]},
        ]
    )

    found = overlaps(index, load_task(index, "test"))

    assert found == {"q": {"a": 0.5, "b": 0.0}}
    assert means(found) == {"q": 0.25}


def test_quarters_are_cut_from_the_lowest_up() -> None:
    cut = quartiles([0.1, 0.4, 0.2, 0.3], "{:.1f}")

    assert [quarter.label for quarter in cut] == ["0.1-0.1", "0.2-0.2", "0.3-0.3", "0.4-0.4"]
    assert np.stack([quarter.members for quarter in cut]).sum(0).tolist() == [1, 1, 1, 1]


def test_values_that_are_all_alike_are_one_quarter() -> None:
    [only] = quartiles([0.5, 0.5, 0.5])

    assert (only.label, only.members.tolist()) == ("0.5-0.5", [True] * 3)


GOLD = {f"q{n}": frozenset({f"p{n}"}) for n in range(4)}
OVERLAP = {f"q{n}": {f"p{n}": n / 10} for n in range(4)}
FINDS = Run("finds", {qid: Ranking((f"p{qid[1:]}",), (1.0,)) for qid in ("q2", "q3")})


def test_a_cited_paper_is_found_if_it_is_among_the_best_20() -> None:
    deep = tuple(f"no{n:02}" for n in range(20))
    late = Run("late", {"q3": Ranking((*deep, "p3"), tuple(range(21, 0, -1)))})

    bins = pair_bins(OVERLAP, partial(quartiles, form="{:.2f}"), GOLD, [FINDS, late])

    assert [(part.label, part.pairs) for part in bins] == [
        ("0.00-0.00", 1),
        ("0.10-0.10", 1),
        ("0.20-0.20", 1),
        ("0.30-0.30", 1),
    ]
    assert [part.recall["finds"] for part in bins] == [0, 0, 1, 1]
    assert [part.recall["late"] for part in bins] == [0, 0, 0, 0]


def test_the_report_breaks_all_systems_down_by_overlap() -> None:
    evaluation = Evaluation(
        corpus="tiny",
        split="test",
        known_graph="train",
        qrels=GOLD,
        runs=(FINDS,),
        overlap=OVERLAP,
        resamples=10,
    )

    report = assess(evaluation)
    told = as_json(report)["by_overlap"]

    assert [part["systems"]["finds"]["mrr"] for part in told["queries"]] == [0, 0, 1, 1]
    assert [part["recall@20"]["finds"] for part in told["pairs"]] == [0, 0, 1, 1]
    text = markdown(report_of(report))
    assert "\nMRR by mean share of a cited paper's words in the query\n" in text
    assert "| 0.20-0.20 | 1 | 1.000 |" in text


def test_of_runs_whose_papers_are_not_known_nothing_is_said() -> None:
    evaluation = Evaluation(
        corpus="t", split="test", known_graph=None, qrels=GOLD, runs=(FINDS,), resamples=10
    )

    report = assess(evaluation)

    assert as_json(report)["by_overlap"] == {"queries": [], "pairs": []}
    text = markdown(report_of(report))
    assert "words in the query" not in text
    assert "Kinds of cited papers" not in text
