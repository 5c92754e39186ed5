"""The protocol: who is asked, what counts as right, what may be known."""

import json
from pathlib import Path

import pytest
from support.corpora import records
from support.types import Build

from citerec.build.index import BuildConfig, build_index
from citerec.config import Bm25Config
from citerec.errors import ConfigError
from citerec.evaluation.protocol import (
    NO_GOLD,
    NOT_DRAWN,
    NOT_HERE,
    CitationScope,
    EvalConfig,
    EvalSet,
    load_eval_set,
)
from citerec.evaluation.systems import CEILINGS, RERANKED, SYSTEMS, Systems
from citerec.index.folder import IndexFolder, open_index
from citerec.index.splits import write_splits
from citerec.lab.experiment.rules import TOO_FEW, Rules, restricted
from citerec.rules.held_out import train_rows
from citerec.types import Eligibility, Query

# a 2000 ← b 2001, c 2002, q 2003, future 2005
# b 2001 ← c, future, undated;   c 2002 ← d 2002, q;   future ← q (a citation of a later paper)
CORPUS = records(
    """
{"id": "a", "title": "Alpha", "year": 2000},
{"id": "b", "title": "Beta", "year": 2001, "citations": ["a"]},
{"id": "c", "title": "Gamma", "year": 2002, "citations": ["a", "b"]},
{"id": "d", "title": "Delta", "year": 2002, "citations": ["c"]},
{"id": "q", "title": "Alpha beta", "year": 2003, "citations": ["a", "c", "future", "gone"]},
{"id": "future", "title": "Alpha alpha", "year": 2005, "citations": ["a", "b"]},
{"id": "undated", "title": "Alpha once more", "citations": ["b"]}
"""
)
SPLITS = {"train": ["b", "c"], "dev": ["d"], "test": ["q", "undated", "a", "not-here"]}


def a_corpus(folder: Path, splits: dict[str, list[str]] = SPLITS) -> IndexFolder:
    (folder / "made").mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in CORPUS)
    (folder / "made" / "corpus.jsonl").write_text(lines)
    write_splits(folder / "made" / "splits", splits)
    build_index(folder / "made", folder / "index", BuildConfig())
    return open_index(folder / "index")


@pytest.fixture
def tiny(tmp_path: Path) -> IndexFolder:
    return a_corpus(tmp_path)


# --- queries and gold


def test_a_quick_look_is_spread_evenly_over_the_split() -> None:
    gold = {name: {"x": 1} for name in "abcdefg"}
    queries = tuple(Query(id=name, title=name) for name in gold)
    rules = tuple(Eligibility(year_max=2000 + n) for n in range(7))
    whole = EvalSet("test", queries, rules, gold, {NO_GOLD: 2})

    few = whole.spread(3)

    # 0, 7/3, 14/3
    assert list(few.qrels) == [query.id for query in few.queries] == ["a", "c", "e"]
    assert [rule.year_max for rule in few.eligible] == [2000, 2002, 2004]
    assert few.left_out == {NO_GOLD: 2, NOT_DRAWN: 4}
    for count in (7, 8, 1000):
        assert whole.spread(count).queries == queries
    assert list(whole.spread(1).qrels) == ["a"]


def test_gold_is_what_a_query_cites_in_the_corpus_and_of_no_later_year(
    tiny: IndexFolder,
) -> None:
    eval_set = load_eval_set(tiny, "test")

    assert eval_set.qrels == {"q": {"a": 1, "c": 1}, "undated": {"b": 1}}
    assert [query.id for query in eval_set.queries] == ["q", "undated"]
    assert eval_set.left_out == {NOT_HERE: 1, NO_GOLD: 1}  # a cites nothing


def test_queries_carry_no_citations_and_may_not_be_given_themselves(
    tiny: IndexFolder,
) -> None:
    eval_set = load_eval_set(tiny, "test")

    assert eval_set.queries[0] == Query(id="q", title="Alpha beta", year=2003)
    assert [rule.year_max for rule in eval_set.eligible] == [2003, None]
    assert [rule.excluded for rule in eval_set.eligible] == [{4}, {6}]


@pytest.mark.parametrize("split", ["all", "", "../train", "TEST"])
def test_a_split_that_is_none_is_refused(tiny: IndexFolder, split: str) -> None:
    with pytest.raises(ConfigError, match="choose one of train, dev, test"):
        load_eval_set(tiny, split)


def test_a_split_without_a_query_is_refused(build: Build) -> None:
    index = build(
        [{"id": f"p{i}", "title": "Alone", "year": 2000 + i} for i in range(10)]
    )

    with pytest.raises(
        ConfigError, match=r"the test split of .* has no query that cites"
    ):
        load_eval_set(index, "test")


# --- systems


@pytest.mark.parametrize(
    "name", [name for name in SYSTEMS if name not in {*CEILINGS, *RERANKED}]
)
def test_every_system_stays_within_what_is_eligible(
    dense_sample: IndexFolder, name: str
) -> None:
    eval_set = load_eval_set(dense_sample, "test")
    setting = EvalConfig(bm25=Bm25Config(threads=2))

    run, seconds = Systems(dense_sample, eval_set, setting).run(name)

    assert run.name == name
    assert seconds is not None
    assert seconds > 0
    assert run.rankings.keys() == eval_set.qrels.keys()
    papers = {
        dense_sample.papers[row].id: dense_sample.papers[row] for row in range(300)
    }
    for query in eval_set.queries:
        ranking = run.rankings[query.id]
        assert query.id not in ranking.ids
        assert all((papers[i].year or 0) <= (query.year or 0) for i in ranking.ids)


# --- queries that a corpus ships, as BEIR's


BEIR = records(
    """
{"_id": "d1", "title": "Alpha", "text": "one", "metadata": {"year": 2000}},
{"_id": "d2", "title": "Beta", "text": "two", "metadata": {"year": 2010, "references": ["d1"]}},
{"_id": "d3", "title": "Alpha beta", "text": "three", "metadata": {"references": ["d1"]}},
{"_id": "d4", "title": "What alpha owes to beta", "text": "Much."}
"""
)
BEIR[-1]["metadata"] = {"year": 2004, "references": ["d1"]}
# q4 is d4, by its text
BEIR_QUERIES = records(
    """
{"_id": "q1", "text": "alpha paper", "metadata": {"year": 2005}},
{"_id": "q2", "text": "beta"},
{"_id": "q3", "text": "cites nothing that is here"},
{"_id": "d3", "text": "alpha beta", "metadata": {"year": 2020}},
{"_id": "q4", "text": "What Alpha owes to Beta. Much."}
"""
)
BEIR_QRELS = "q1 d1 1,q1 d2 2,q1 d3 3,q1 d4 0,q2 d2 1,q3 elsewhere 1,d3 d1 1,d3 d3 1,q4 d1 1,q4 d2 1,q4 d4 1"


@pytest.fixture
def beir(tmp_path: Path) -> IndexFolder:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    for name, papers in (("corpus", BEIR), ("queries", BEIR_QUERIES)):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(paper) + "\n" for paper in papers)
        )
    lines = [
        "query-id\tcorpus-id\tscore",
        *("\t".join(q.split()) for q in BEIR_QRELS.split(",")),
    ]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    build_index(folder, tmp_path / "index", BuildConfig())
    return open_index(tmp_path / "index")


def test_shipped_gold_is_cut_to_what_may_be_recommended(beir: IndexFolder) -> None:
    eval_set = load_eval_set(beir, "test")

    # q1 is of 2005, and d2 of 2010; q3's paper is not in the corpus; d3 does not cite itself; q4 is d4, of 2004
    d1 = {"d1": 1}
    assert eval_set.qrels == {"q1": d1 | {"d3": 3}, "q2": {"d2": 1}, "d3": d1, "q4": d1}
    assert [query.id for query in eval_set.queries] == ["q1", "q2", "d3", "q4"]
    assert eval_set.left_out == {NOT_HERE: 0, NO_GOLD: 1}
    assert [rule.year_max for rule in eval_set.eligible] == [2005, None, 2020, 2004]
    assert train_rows(beir).tolist() == [0, 1]  # d3 and d4 are test queries


def test_shipped_queries_are_searched_with_their_text(beir: IndexFolder) -> None:
    eval_set = load_eval_set(beir, "test")

    run, _ = Systems(beir, eval_set, EvalConfig()).run("bm25")

    assert {qid: set(ranking.ids) for qid, ranking in run.rankings.items()} == {
        "q1": {"d1", "d3", "d4"},
        "q2": {"d2", "d3", "d4"},
        "d3": {"d1", "d2", "d4"},
        "q4": {"d1", "d3"},
    }


def test_citations_by_the_query_in_the_corpus_are_not_known_to_it(
    beir: IndexFolder,
) -> None:
    run, _ = Systems(
        beir, load_eval_set(beir, "test"), EvalConfig(known_graph=CitationScope.EARLIER)
    ).run("most-cited")

    # d1 is cited by d2 (2010), d4 (2004) and by d3, which has no year there, and is a query here.
    found = {
        qid: dict(zip(r.ids, r.scores, strict=True)) for qid, r in run.rankings.items()
    }
    assert found == {"q1": {"d1": 1}, "q2": {"d1": 3}, "d3": {"d1": 2}, "q4": {}}


# --- DBLP's and PubMed's rules


def test_gold_and_candidates_may_be_held_to_the_train_years(tiny: IndexFolder) -> None:
    # The train queries b and c are of 2001 and 2002; q (2003) cites a (2000), c (2002) and future (2005, later).
    eval_set = restricted(tiny, load_eval_set(tiny, "test"), Rules(train_only=True))

    assert eval_set.qrels["q"].keys() == {"a", "c"}
    asked = {
        q.id: e.year_max
        for q, e in zip(eval_set.queries, eval_set.eligible, strict=True)
    }
    # no candidate is later than the last train query
    assert asked == {
        "q": 2002,
        "undated": 2002,
    }


def test_the_latest_train_year_bounds_the_gold_of_a_query_without_a_year(
    tmp_path: Path,
) -> None:
    index = a_corpus(tmp_path, {"train": ["b"], "dev": [], "test": ["undated", "q"]})

    eval_set = restricted(index, load_eval_set(index, "test"), Rules(train_only=True))

    # c is of 2002, b of 2001
    assert eval_set.qrels == {
        "undated": {"b": 1},
        "q": {"a": 1},
    }


def test_queries_with_little_gold_may_be_left_out_and_are_counted(
    tiny: IndexFolder,
) -> None:
    eval_set = restricted(tiny, load_eval_set(tiny, "test"), Rules(min_gold=2))

    # cites a and c; undated cites b alone
    assert [query.id for query in eval_set.queries] == ["q"]
    assert eval_set.qrels.keys() == {"q"}
    assert eval_set.left_out == {NOT_HERE: 1, NO_GOLD: 1, TOO_FEW: 1}


def test_rules_that_no_query_meets_are_an_error(tiny: IndexFolder) -> None:
    with pytest.raises(ConfigError, match="has no query with 9 gold citations"):
        restricted(tiny, load_eval_set(tiny, "test"), Rules(min_gold=9))
    with pytest.raises(ConfigError, match="min_gold must be at least 1, got 0"):
        Rules(min_gold=0)
