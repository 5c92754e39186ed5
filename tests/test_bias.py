"""Whom a system favours: cited papers by age and by known citations."""

from collections.abc import Callable
from functools import partial

import pytest

from citerec.evaluate.assessment import AGES, CITATIONS, Evaluation, as_json, assess
from citerec.evaluate.bias import CitedPaperStats, cited_stats
from citerec.evaluate.bins import pair_bins, ranges
from citerec.evaluate.contents import report_of
from citerec.evaluate.protocol import CitationScope, load_task
from citerec.evaluate.report.markdown import markdown
from citerec.folder import IndexFolder
from citerec.run import Run
from citerec.types import Ranking

Build = Callable[..., IndexFolder]

# Filler papers of 1990 to 1997 cite a, as does the dev query; q cites a, b and one without a year.
CORPUS = [
    {"id": "a", "title": "Apples", "year": 1980},
    {"id": "b", "title": "Bears", "year": 1999},
    {"id": "undated", "title": "Cats"},
    *({"id": f"x{n}", "title": "Filler", "year": 1990 + n, "citations": ["a"]} for n in range(8)),
    {"id": "dev", "title": "Late filler", "year": 1999, "citations": ["a"]},
    {"id": "q", "title": "Apples again", "year": 2000, "citations": ["a", "b", "undated"]},
]


def test_a_cited_paper_has_its_age_and_its_citations_of_before(build: Build) -> None:
    index = build(CORPUS)
    task = load_task(index, "test")

    found = cited_stats(index, task, CitationScope.EARLIER)

    assert found.ages["q"] == {"a": 20, "b": 1}  # who has no year has no age
    assert found.citations["q"] == {"a": 9, "b": 0, "undated": 0}


def test_only_citations_that_the_query_may_know_are_counted(build: Build) -> None:
    index = build(CORPUS)

    found = cited_stats(index, load_task(index, "test"), CitationScope.TRAIN)

    train = {line for line in (index.splits / "train.ids").read_text().split() if line[0] == "x"}
    assert found.citations["q"]["a"] == len(train) < 9


def test_pairs_are_binned_and_each_counts_alike() -> None:
    qrels = {"q": frozenset({"a", "b", "c"}), "r": frozenset({"a"})}
    known = CitedPaperStats(
        ages={"q": {"a": 0, "b": 1, "c": 25}, "r": {"a": 3}},
        citations={"q": {"a": 0, "b": 0, "c": 60}, "r": {"a": 4}},
    )
    run = Run("new-only", {"q": Ranking(("a",), (1.0,)), "r": Ranking(("b",), (1.0,))})

    ages = pair_bins(known.ages, partial(ranges, bounds=AGES), qrels, [run])
    citations = pair_bins(known.citations, partial(ranges, bounds=CITATIONS), qrels, [run])

    assert [(b.label, b.pairs, b.recall["new-only"]) for b in ages] == [
        ("0-1", 2, 0.5),
        ("2-3", 1, 0.0),
        ("21+", 1, 0.0),
    ]
    assert [(b.label, b.pairs, b.recall["new-only"]) for b in citations] == [
        ("0", 2, 0.5),
        ("3-5", 1, 0.0),
        ("51+", 1, 0.0),
    ]


def test_the_report_tells_both_and_neither_where_nothing_is_known() -> None:
    qrels = {"q": frozenset({"a"})}
    run = Run("mine", {"q": Ranking(("a",), (1.0,))})
    known = CitedPaperStats(ages={"q": {"a": 5}}, citations={"q": {"a": 7}})
    told = {"corpus": "c", "split": "test", "known_graph": "train", "resamples": 10}

    report = assess(Evaluation(qrels=qrels, runs=[run], cited_stats=known, **told))  # type: ignore[arg-type]
    bare = assess(Evaluation(qrels=qrels, runs=[run], **told))  # type: ignore[arg-type]

    content = as_json(report)
    assert content["by_age"] == [{"bin": "4-6", "pairs": 1, "recall@20": {"mine": 1.0}}]
    assert content["by_citations"] == [{"bin": "6-10", "pairs": 1, "recall@20": {"mine": 1.0}}]
    page = markdown(report_of(report))
    assert "by how many years old they were" in page and "| 4-6 | 1 | 1.000 |" in page
    assert "years old" not in markdown(report_of(bare))
    assert as_json(bare)["by_age"] == []


def test_no_pair_with_a_value_is_no_bin() -> None:
    cut = partial(ranges, bounds=AGES)

    assert pair_bins(CitedPaperStats().ages, cut, {"q": frozenset({"a"})}, []) == ()


@pytest.mark.parametrize("known", list(CitationScope))
def test_every_cited_paper_of_the_sample_is_counted(
    sample_index: IndexFolder, known: CitationScope
) -> None:
    task = load_task(sample_index, "test")

    found = cited_stats(sample_index, task, known)

    assert {qid: set(counts) for qid, counts in found.citations.items()} == {
        qid: set(gold) for qid, gold in task.qrels.items()
    }
