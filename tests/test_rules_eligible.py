"""Who may be recommended."""

from pathlib import Path

import numpy as np
import pytest

from citerec.corpus.papers import Papers, write_papers
from citerec.rules.eligible import eligible, mask, query_rows, within
from citerec.types import Eligibility, Paper, Query


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    """Rows 0 to 3: of 2018, of 2020, of an unknown year, of 2021."""
    with write_papers(tmp_path / "papers.arrow") as writer:
        for docid, year in (("old", 2018), ("now", 2020), ("undated", None), ("next", 2021)):
            writer.add(Paper(id=docid, title=docid, year=year))
    return Papers(tmp_path / "papers.arrow")


def allowed(rule: Eligibility, papers: Papers) -> list[str]:
    return papers.ids_at(np.flatnonzero(mask(rule, papers.years)))


def test_a_draft_is_given_papers_of_its_year_and_before_and_those_without_a_year(
    papers: Papers,
) -> None:
    (rule,) = eligible([Query(id="draft", title="D", year=2020)], papers)

    assert allowed(rule, papers) == ["old", "now", "undated"]


def test_a_paper_of_the_corpus_is_not_given_itself(papers: Papers) -> None:
    (rule,) = eligible([Query(id="now", title="N", year=2020)], papers)

    assert allowed(rule, papers) == ["old", "undated"]


def test_a_draft_that_was_recognised_in_the_corpus_is_not_given_itself(papers: Papers) -> None:
    draft = Query(id="draft", title="N", year=2020, named=False, corpus_ids=("undated", "now"))

    (rule,) = eligible([draft], papers)

    assert query_rows([draft], papers) == [(1, 2)]
    assert allowed(rule, papers) == ["old"]


def test_a_draft_without_a_year_is_given_every_year(papers: Papers) -> None:
    (rule,) = eligible([Query(id="draft", title="D")], papers)

    assert allowed(rule, papers) == ["old", "now", "undated", "next"]


@pytest.mark.parametrize("year_max", [2018, 2019])
def test_a_year_that_is_asked_for_goes_before_the_drafts_own(papers: Papers, year_max: int) -> None:
    (rule,) = eligible([Query(id="draft", title="D", year=2021)], papers, year_max=year_max)

    assert allowed(rule, papers) == ["old", "undated"]


def test_what_is_excluded_stays_out_beside_the_query_itself(papers: Papers) -> None:
    (rule,) = eligible([Query(id="now", title="N")], papers, excluded=[0, 2])

    assert allowed(rule, papers) == ["next"]


def test_each_query_of_a_batch_has_a_rule_of_its_own(papers: Papers) -> None:
    drafts = [Query(id="a", title="A", year=2018), Query(id="old", title="O", year=2020)]

    rules = eligible(drafts, papers, excluded=[2])

    assert [allowed(rule, papers) for rule in rules] == [["old"], ["now"]]


def test_an_id_that_was_made_up_excludes_no_paper(papers: Papers) -> None:
    (rule,) = eligible([Query(id="now", title="N", named=False)], papers)

    assert allowed(rule, papers) == ["old", "now", "undated", "next"]


@pytest.mark.parametrize("year_max", [None, -5, 2020, 2**40])
def test_some_rows_are_judged_as_all_of_them_are(papers: Papers, year_max: int | None) -> None:
    rule = Eligibility(year_max, frozenset({0}))
    rows = np.array([3, 0, 2, 2], np.int32)

    assert within(rule, papers.years, rows).tolist() == mask(rule, papers.years)[rows].tolist()
    assert within(rule, papers.years, rows[:0]).tolist() == []
