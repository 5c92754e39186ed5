"""Training the final ranker: what it learns from, what it may not know, the folder that it leaves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpora import built
from support.tiny import tiny_reranker
from support.types import Build, Capture, MonkeyPatch

from citerec.cli import run
from citerec.errors import ModelExistsError
from citerec.files.checksums import model_faults
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.rank.features import FEATURES, NAMES
from citerec.rank.ltr import Variant, open_ranker
from citerec.rules.held_out import held_out
from citerec.train import ranker as training
from citerec.train.boost import IndexExamples, RankerExamples, fit
from citerec.train.data import dev_queries, load_training_data
from citerec.train.ranker import (
    Gatherer,
    gather_examples,
    plan_of,
    sampled,
    train_on,
    train_ranker,
)
from citerec.train.settings import RankerTraining
from citerec.train.trainer import TrainingState, was_trained_so
from citerec.types import CandidateSet, Eligibility, Hits, Query, no_progress

# Each paper cites the one before; the last fifth are the dev and test queries.
CHAIN = [
    {
        "id": f"p{n}",
        "title": f"Paper {n}",
        "year": 2000 + n,
        "citations": [f"p{n - 1}"][: n or 0],
    }
    for n in range(10)
]


def config(**given: Any) -> RankerTraining:
    few = {"threads": 1, "trees": 5, "least_rows": 5, "queries": 40}
    return RankerTraining(**few | {"dev_queries": 10, "reranker": "none"} | given)


def made(queries: int, seed: int, telling: str = "bm25") -> RankerExamples:
    """Queries of 30 papers, of which the 3 with the most of one feature are cited; all else is chance."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((queries * 30, len(NAMES))).astype(np.float32)
    worth = matrix[:, NAMES.index(telling)].reshape(queries, 30)
    cited = worth >= np.sort(worth, axis=1)[:, -3:][:, :1]
    sizes, gold = np.full(queries, 30), np.full(queries, 3)
    return RankerExamples(
        matrix, cited.ravel(), sizes, gold, np.ones(len(matrix), np.float32)
    )


class Everything:
    """Finds all papers that a query may be given, in the order of their rows."""

    retrievers = ()

    def __init__(self, index: IndexFolder, *_: object) -> None:
        self._years = index.papers.years

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        found: list[CandidateSet] = []
        for rule in eligible:
            rows = [r for r in range(len(self._years)) if r not in rule.excluded]
            rows = [
                r
                for r in rows
                if rule.year_max is None or self._years[r] <= rule.year_max
            ]
            hits = Hits(
                np.array(rows, np.int32), np.arange(len(rows), 0, -1, dtype=np.float32)
            )
            found.append(CandidateSet(hits, {"bm25": hits}))
        return found


@pytest.fixture
def chain(build: Build) -> IndexFolder:
    return build(CHAIN)


# --- what is learned from


def test_where_the_newest_citations_are_unknown_a_query_knows_the_older_ones(
    chain: IndexFolder,
) -> None:
    known = TemporalGraph(chain, CitationScope.TRAIN)

    now, before = known.snapshot_before(2006), known.lagged(2).snapshot_before(2006)

    papers = np.arange(10, dtype=np.int32)
    assert np.flatnonzero(now.is_citing(papers)).tolist() == [1, 2, 3, 4, 5]
    # 2004 and 2005 have not arrived
    assert np.flatnonzero(before.is_citing(papers)).tolist() == [1, 2, 3]
    assert before.citations(papers).tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    # by 2003
    assert before.recent_citations(papers).tolist() == [
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ]


def test_every_train_query_is_shown_once_and_dev_queries_with_all_their_candidates(
    chain: IndexFolder, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "open_hybrid", Everything)
    gatherer = Gatherer(chain, config(queries=0), print)
    queries = dev_queries(chain, 10, 0)
    assert queries

    train = gatherer.train(load_training_data(chain), no_progress)
    dev = gatherer.whole(queries, no_progress)

    assert sorted(train.sizes.tolist()) == [1, 2, 3, 4, 5, 6, 7]  # all papers of before
    assert train.cited.sum() == 7 and train.matrix.shape == (28, len(NAMES))
    assert [query.id for query in queries.queries] == ["p8"]
    assert (dev.sizes.tolist(), np.flatnonzero(dev.cited).tolist()) == ([8], [7])


def test_of_many_uncited_papers_some_are_drawn_and_stand_for_the_others() -> None:
    matrix = np.zeros((100, len(NAMES)), np.float32)
    cited = np.arange(100) == 99

    one = sampled(matrix, cited, 1, 20, np.random.default_rng(0))

    assert len(one.cited) == 21 and one.cited.tolist()[-1]
    assert (one.weights[:10] == 1).all() and one.weights[15] == np.float32(
        np.sqrt(89 / 10)
    )


def test_a_query_that_another_index_asks_is_left_out_by_id_and_by_title(
    chain: IndexFolder, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    apart = held_out([chain], ("dev", "test"))
    allowed = apart.allowed_mask(
        ["p8", "other", "p1", "x"], ["?", "PAPER 9!", "Paper 1", ""]
    )

    assert allowed.tolist() == [False, False, True, True]
    assert dev_queries(chain, None, 0, held=held_out([chain], ("dev",))) is None
    other = built(  # whose dev and test queries are Paper 1 and Paper 0
        tmp_path / "other",
        [
            {
                "id": f"o{n}",
                "title": f"Paper {9 - n}",
                "year": 2000 + n,
                "citations": [f"o{n - 1}"],
            }
            for n in range(10)
        ],
    )
    monkeypatch.setattr(training, "open_hybrid", Everything)
    examples = gather_examples(chain, None, [other], config())
    assert len(examples.train) == 6


# --- trees


def test_trees_find_the_feature_that_tells_and_stop_when_dev_says() -> None:
    dev, train = made(40, seed=2), made(60, seed=1)

    trees, again = (
        fit(train, dev, ["bm25", "title_overlap", "age"], config(trees=30))
        for _ in "ab"
    )

    assert trees.booster.model_to_string() == again.booster.model_to_string()
    assert max(trees.gains, key=lambda name: trees.gains[name]) == "bm25"
    assert dev.measures(trees.scores(dev.matrix))["mrr"] > 0.7  # by chance 0.3
    assert 1 <= trees.rounds <= 30


def test_more_evidence_never_lowers_a_paper() -> None:
    noisy = made(60, seed=4, telling="age")  # bm25 is chance here
    trees = fit(noisy, None, ["bm25", "age"], config(trees=20))
    grid = np.zeros((21, len(NAMES)), np.float32)
    grid[:, NAMES.index("bm25")] = np.linspace(0, 1, 21)
    grid[:, NAMES.index("age")] = 0.5

    assert (np.diff(trees.scores(grid)) >= -1e-9).all()


# --- the folder


@pytest.mark.parametrize("dev_teaches", [False, True])
def test_the_folder_holds_every_variant_its_record_and_its_card(
    chain: IndexFolder, tmp_path: Path, dev_teaches: bool
) -> None:
    folder = tmp_path / "ranker"
    train = RankerExamples.joined([]) if dev_teaches else made(40, seed=1)
    examples = IndexExamples(chain, train, made(20, seed=2), dev_teaches)

    report = train_on([examples], folder, config(trees=20), print)

    assert model_faults(folder) == []
    for variant in Variant:
        barred = {feature.name for feature in FEATURES if not variant.reads(feature)}
        assert not {*open_ranker(folder, variant).features} & barred
    assert "age" not in open_ranker(folder, Variant.NO_POPULARITY).features
    assert "author_overlap" not in open_ranker(folder, Variant.NO_AUTHORS).features
    assert report.after[Variant.FULL]["mrr"] > report.before["mrr"]
    card, record = (
        (folder / "README.md").read_text(),
        (folder / "training.json").read_text(),
    )
    assert "| bm25 |" in card and str(tmp_path) not in card + record


@pytest.mark.parametrize("telling", ["bm25", "age"])
def test_a_ranker_is_used_where_it_is_better_with_all_earlier_citations_too(
    chain: IndexFolder, telling: str
) -> None:
    # by train papers' citations alone, "bm25" tells in both lists
    lists = made(60, seed=1), made(60, seed=2)
    as_deployed = made(60, seed=3, telling=telling)
    examples = IndexExamples(chain, *lists, dev_teaches=False, deployed=as_deployed)
    logged: list[str] = []
    own = chain.models / "ranker"

    report = train_on([examples], own, config(trees=20), logged.append, own=chain)

    assert report.in_use and report.in_use < report.after[Variant.FULL]["f1@20"]
    assert report.is_better == (telling == "bm25")
    assert report.output.name == ("ranker" if telling == "bm25" else "ranker-new")
    fall = "where the citations of all earlier papers are known, as in recommend"
    assert any(line.startswith(fall) for line in logged) == (telling == "age")


def test_a_corpus_too_small_is_refused_and_leaves_nothing(
    build: Build, capsys: Capture
) -> None:
    papers = [{"id": i, "title": i, "year": 2000 + n} for n, i in enumerate("abc")]
    papers[1]["citations"] = papers[2]["citations"] = ["a"]
    index = build(papers)

    for command in ("train", "train-ranker"):
        assert run([command, "--index", str(index.path)]) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert [*index.models.glob(".*")] == []


def test_a_training_goes_on_with_the_examples_that_it_gathered(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    gathered: list[str] = []

    def stop(task: str, done: int, total: int) -> None:
        gathered.append(task)
        if task == "features of dev queries":
            raise KeyboardInterrupt

    def seen(task: str, done: int, total: int) -> None:
        gathered.append(task)

    train_ranker([sample_index], whole, config())
    with pytest.raises(KeyboardInterrupt):
        train_ranker([sample_index], broken, config(), progress=stop)
    assert TrainingState(broken).folder.is_dir()
    gathered.clear()
    train_ranker([sample_index], broken, config(), resume=True, progress=seen)

    assert {*gathered} == {"features of dev queries"}
    assert (whole / "full.txt").read_text() == (broken / "full.txt").read_text()
    assert was_trained_so(whole, plan_of(config(), [sample_index]))
    assert not was_trained_so(whole, plan_of(config(seed=1), [sample_index]))
    assert not TrainingState(broken).folder.exists()
    with pytest.raises(ModelExistsError):
        train_ranker([sample_index], whole, config())


def test_a_reranker_of_unknown_data_reads_dev_queries_alone_which_then_teach(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    model = str(tiny_reranker(tmp_path / "reranker", scale=2.0))
    few = config(queries=5, dev_queries=5, rerank_depth=3)

    examples = gather_examples(sample_index, model, [], few)

    probability = NAMES.index("rerank")
    assert (
        examples.dev_teaches and np.isfinite(examples.dev.matrix[:, probability]).any()
    )
    assert np.isnan(examples.train.matrix[:, probability]).all()
