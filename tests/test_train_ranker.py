"""Training the final ranker: what it learns from, what it may not know, the folder that it leaves."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec.cli import run
from citerec.cli.train import ranker_summary
from citerec.errors import ConfigError, ModelExistsError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.manifest import model_faults, seal_model
from citerec.rank.features import NAMES
from citerec.rank.ltr import Variant, find_ranker, open_ranker
from citerec.rules.held_out import held_out
from citerec.rules.known import CitationScope, TemporalGraph
from citerec.train.data import load_training_data
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.train.ranker import gather, train
from citerec.train.ranker.ablation import DevEvaluation, ablations
from citerec.train.ranker.boost import RISING, fit
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples
from citerec.train.ranker.gather import Gatherer, LaggedGraph
from citerec.train.ranker.queries import dev_queries, train_queries
from citerec.train.ranker.train import IndexExamples, train_on, train_ranker, was_trained_so
from citerec.train.workspace import Workspace
from citerec.types import CandidateSet, Eligibility, Hits, Query

Build = Callable[..., IndexFolder]


def config(**given: Any) -> RankerTraining:
    few = {"threads": 1, "trees": 5, "least_rows": 5, "queries": 40}
    return RankerTraining.of(few | {"dev_queries": 10, "reranker": "none"} | given)


def made(queries: int, seed: int, telling: str = "bm25") -> RankerExamples:
    """Queries of 30 papers, of which the 3 with the most of one feature are cited; all else is chance."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((queries * 30, len(NAMES))).astype(np.float32)
    worth = matrix[:, NAMES.index(telling)].reshape(queries, 30)
    cited = worth >= np.sort(worth, axis=1)[:, -3:][:, :1]
    sizes, gold = np.full(queries, 30), np.full(queries, 3)
    return RankerExamples(matrix, cited.ravel(), sizes, gold, np.ones(len(matrix), np.float32))


def progress(what: str, done: int, total: int) -> None:
    assert 0 <= done <= total


class Everything:
    """Finds all papers that a query may be given, in the order of their rows."""

    def __init__(self, index: IndexFolder) -> None:
        self._years = index.papers.years

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        found: list[CandidateSet] = []
        for rule in eligible:
            rows = [r for r in range(len(self._years)) if r not in rule.excluded]
            rows = [r for r in rows if rule.year_max is None or self._years[r] <= rule.year_max]
            scores = np.arange(len(rows), 0, -1, dtype=np.float32)
            hits = Hits(np.array(rows, np.int32), scores)
            found.append(CandidateSet(hits, {"bm25": hits}))
        return found


# Each paper cites the one before; the last fifth are the dev and test queries.
CHAIN = [
    {
        "id": f"p{n}",
        "title": f"Paper {n}",
        "year": 2000 + n,
        "citations": [f"p{n - 1}"] if n else [],
    }
    for n in range(10)
]


@pytest.fixture
def chain(build: Build) -> IndexFolder:
    return build(CHAIN)


# --- what is learned from


def test_a_train_query_is_given_no_dev_or_test_query_nor_itself(chain: IndexFolder) -> None:
    asked = train_queries(load_training_data(chain))

    assert [query.id for query in asked.queries] == [f"p{n}" for n in range(1, 8)]
    assert asked.eligible[0] == Eligibility(2001, frozenset({1}))  # p8 and p9 are of later years
    assert [rows.tolist() for rows in asked.gold] == [[n] for n in range(7)]


def test_where_the_newest_citations_are_unknown_a_query_knows_the_older_ones(
    chain: IndexFolder,
) -> None:
    known = TemporalGraph(chain, CitationScope.TRAIN)
    citation_lag = LaggedGraph(known, 2)

    now, before = known.snapshot_before(2006), citation_lag.snapshot_before(2006)

    assert np.flatnonzero(now.citing).tolist() == [1, 2, 3, 4, 5]
    assert np.flatnonzero(before.citing).tolist() == [1, 2, 3]  # 2004 and 2005 have not arrived
    assert before.counts.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert before.recent.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]  # made in 2003, 2004, 2005
    assert before.year == 2006


def test_every_train_query_is_shown_once_whatever_it_knows(chain: IndexFolder) -> None:
    gatherer = Gatherer(chain, config(queries=0), print, Everything(chain))

    examples = gatherer.train(load_training_data(chain), progress)

    assert len(examples) == 7
    assert sorted(examples.sizes.tolist()) == [1, 2, 3, 4, 5, 6, 7]  # all papers of before
    assert examples.cited.sum() == 7
    assert examples.matrix.shape == (28, len(NAMES))


def test_the_whole_pools_of_dev_queries_are_measured(chain: IndexFolder) -> None:
    asked = dev_queries(chain, config())
    gatherer = Gatherer(chain, config(), print, Everything(chain))

    assert asked
    examples = gatherer.whole(asked, progress)

    assert [query.id for query in asked.queries] == ["p8"]
    assert (examples.sizes.tolist(), examples.gold.tolist()) == ([8], [1])
    assert np.flatnonzero(examples.cited).tolist() == [7]


def test_a_query_that_another_index_asks_is_known_by_id_and_by_title(chain: IndexFolder) -> None:
    apart = held_out([chain], ("dev", "test"))

    allowed = apart.allowed_mask(["p8", "other", "p1", "x"], ["?", "PAPER 9!", "Paper 1", ""])

    assert allowed.tolist() == [False, False, True, True]


def test_dev_queries_that_another_index_tests_are_left_out(chain: IndexFolder) -> None:
    others = held_out([chain], ("dev",))

    assert dev_queries(chain, config(), others) is None


# --- trees


def test_trees_find_the_feature_that_tells_and_stop_when_dev_says() -> None:
    settings = config(trees=30)
    dev = made(40, seed=2)

    trees = fit(made(60, seed=1), dev, ["bm25", "title_overlap", "age"], settings)

    assert max(trees.gains, key=lambda name: trees.gains[name]) == "bm25"
    assert dev.measures(trees.scores(dev.matrix))["mrr"] > 0.7  # by chance 0.3
    assert 1 <= trees.rounds <= 30


def test_training_again_gives_the_same_model_bit_by_bit() -> None:
    train = made(40, seed=3)

    first, second = (fit(train, None, list(NAMES), config()) for _ in range(2))

    assert first.text == second.text


def test_more_evidence_never_lowers_a_paper() -> None:
    noisy = made(60, seed=4, telling="age")  # bm25 is chance here
    trees = fit(noisy, None, ["bm25", "age"], config(trees=20))
    grid = np.zeros((21, len(NAMES)), np.float32)
    grid[:, NAMES.index("bm25")] = np.linspace(0, 1, 21)
    grid[:, NAMES.index("age")] = 0.5

    assert (np.diff(trees.scores(grid)) >= -1e-9).all()
    assert not RISING - {*NAMES}


def test_a_source_that_tells_is_missed_and_one_that_does_not_is_not() -> None:
    train, dev = (
        made(60, seed=5, telling="author_overlap"),
        made(40, seed=6, telling="author_overlap"),
    )
    trees = fit(train, None, list(NAMES), config(trees=20))

    table = {row.label: row for row in ablations([DevEvaluation(None, trees, dev)])}

    assert table["+ authors and venue"].mrr > table["+ citations and age"].mrr + 0.2
    assert table["all but authors"].mrr < table["all but venue"].mrr - 0.2


# --- the folder


def a_teacher(index: IndexFolder, *, dev_teaches: bool = False) -> IndexExamples:
    train = RankerExamples.joined([]) if dev_teaches else made(40, seed=1)
    return IndexExamples(index, train, made(20, seed=2), dev_teaches)


def test_the_folder_holds_every_variant_and_opens(chain: IndexFolder, tmp_path: Path) -> None:
    folder = tmp_path / "ranker"

    report = train_on([a_teacher(chain)], folder, config(trees=20), print)

    assert model_faults(folder) == []
    for variant in Variant:
        ranker = open_ranker(folder, variant)
        assert not set(ranker.features) - {f.name for f in variant.features}
    assert "age" not in open_ranker(folder, Variant.NO_POPULARITY).features
    assert "author_overlap" not in open_ranker(folder, Variant.NO_AUTHORS).features
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1e6
    assert report.after[Variant.FULL]["mrr"] > report.before["mrr"]
    assert f"{len(a_teacher(chain).train):>12,}  training queries" in ranker_summary(report)


def test_the_card_tells_what_it_looks_at_and_what_each_source_is_worth(
    chain: IndexFolder, tmp_path: Path
) -> None:
    folder = tmp_path / "ranker"
    train_on([a_teacher(chain)], folder, config(), print)

    card = (folder / "README.md").read_text()
    told = json.loads((folder / "training.json").read_bytes())

    assert "| bm25 |" in card and "+ what close papers cite" in card
    assert len(told["ablations"]) == 10
    assert told["indexes"][0]["corpus_sha256"] == chain.manifest.corpus["sha256"]
    assert str(tmp_path) not in card + json.dumps(told)


def test_where_models_have_seen_the_train_queries_dev_queries_teach_in_folds(
    chain: IndexFolder, tmp_path: Path
) -> None:
    folder = tmp_path / "ranker"

    report = train_on([a_teacher(chain, dev_teaches=True)], folder, config(trees=20), print)

    assert report.queries == 20
    assert (
        report.after[Variant.FULL]["mrr"] > report.before["mrr"]
    )  # each measured by the other folds
    assert len(json.loads((folder / "training.json").read_bytes())["ablations"]) == 10


def test_there_must_be_something_to_learn(chain: IndexFolder, tmp_path: Path) -> None:
    nothing = IndexExamples(
        chain, RankerExamples.joined([]), RankerExamples.joined([]), dev_teaches=False
    )

    with pytest.raises(ConfigError, match="nothing to train on"):
        train_on([nothing], tmp_path / "ranker", config(), print)

    assert not (tmp_path / "ranker").exists()


def test_a_training_that_is_refused_leaves_no_folder(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    index = build(
        [
            {"id": "a", "title": "Trees", "year": 2001},
            {"id": "b", "title": "Forests", "year": 2002, "citations": ["a"]},
            {"id": "c", "title": "Woods", "year": 2003, "citations": ["a", "b"]},
        ]
    )

    for command in (["train"], ["train-ranker"], ["train-encoder", "--recipe", "linear"]):
        code = run([*command, "--index", str(index.path)])

        assert code == 2
        assert "Traceback" not in capsys.readouterr().err
        assert [*index.models.glob(".*")] == []


# --- settings


def test_settings_are_checked_and_options_win(tmp_path: Path) -> None:
    file = tmp_path / "ranker.toml"
    file.write_text("trees = 50\nqueries = 7\n")

    read = RankerTraining.read(file, {"trees": 9, "seed": None})

    assert (read.trees, read.queries, read.seed) == (9, 7, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trees": 20_000}, "trees must be at most 10,000, got 20,000"),
        ({"trees": 0}, "trees must be at least 1"),
        ({"tress": 1}, "unknown setting 'tress'"),
        ({"seed": 2**31}, "seed must be less"),
        ({"queries": 10**23}, r"queries must be less than 2\^31"),
        ({"threads": 10**23}, "threads must be at most 1,024"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RankerTraining.of(given)


# --- the whole of it, on the sample


@pytest.fixture(scope="module")
def trained(sample_index: IndexFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rankers") / "sample"
    train_ranker([sample_index], folder, config(), progress=progress)
    return folder


def test_a_ranker_of_the_sample_opens_and_is_known_again(
    sample_index: IndexFolder, trained: Path
) -> None:
    assert find_ranker(str(trained), sample_index) == trained
    assert was_trained_so(trained, [sample_index], config())
    assert not was_trained_so(trained, [sample_index], replace(config(), seed=1))
    assert not was_trained_so(trained.parent, [sample_index], config())


def test_going_on_after_a_stop_gives_the_model_of_an_unbroken_training(
    sample_index: IndexFolder, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "BLOCK", 8)
    whole, output = tmp_path / "whole", tmp_path / "broken"
    train_ranker([sample_index], whole, config())

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("features of dev queries", 8):
            raise KeyboardInterrupt

    def stop_early(what: str, done: int, total: int) -> None:
        if what == "features" and done >= 16:
            raise KeyboardInterrupt

    late: list[tuple[str, int]] = []

    def stop_late(what: str, done: int, total: int) -> None:
        late.append((what, done))
        if (what, done, total) == ("boosted models", 3, 4):
            raise KeyboardInterrupt

    for stops in (stop_early, stop):
        with pytest.raises(KeyboardInterrupt):
            train_ranker([sample_index], output, config(), resume=True, progress=stops)
    folder = Workspace.for_model(output).folder
    kept = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ConfigError, match="started with other settings: seed was 0, is 1"):
        train_ranker([sample_index], output, config(seed=1), resume=True)
    with pytest.raises(KeyboardInterrupt):
        train_ranker([sample_index], output, config(), resume=True, progress=stop_late)
    boosted = {path.name: path.stat().st_mtime_ns for path in folder.glob("trees-*")}
    told: list[tuple[str, int]] = []
    files: list[dict[str, int]] = []

    def note_files(what: str, done: int, total: int) -> None:
        told.append((what, done))
        files.append({path.name: path.stat().st_mtime_ns for path in folder.glob("trees-*")})

    train_ranker([sample_index], output, config(), resume=True, progress=note_files)
    assert kept == ["examples-0.dev.npz", "examples-0.train.npz", "training.json"]
    assert late[0] == ("features of dev queries", 10)  # the other 8 and all train queries were kept
    assert sorted(boosted) == ["trees-1.txt", "trees-2.txt", "trees-3.txt"]
    assert told == [("boosted models", n) for n in (1, 2, 3, 4)]  # no query is searched again
    assert all(files[-1][name] == written for name, written in boosted.items())
    for variant in Variant:
        name = f"{variant}.txt"
        assert (output / name).read_text() == (whole / name).read_text()
    assert not Workspace.for_model(output).folder.exists()


def test_two_indexes_keep_their_examples_apart(
    chain: IndexFolder, sample_index: IndexFolder, tmp_path: Path
) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what == "features of dev queries" and total == 10:  # those of the sample, the second one
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_ranker([chain, sample_index], tmp_path / "m", config(), progress=stop)

    kept = {path.name for path in Workspace.for_model(tmp_path / "m").folder.glob("*.npz")}
    assert {"examples-0.train.npz", "examples-1.train.npz", "examples-1.dev.npz"} <= kept


def test_an_interrupted_training_of_a_ranker_says_how_to_go_on(
    sample_index: IndexFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train_on", interrupted)
    (tmp_path / "t.toml").write_text("queries = 8\ndev_queries = 4\n")
    arguments = ["train-ranker", "--index", str(sample_index.path), "--output", str(tmp_path / "m")]

    code = run([*arguments, "--config", str(tmp_path / "t.toml")])

    err = capsys.readouterr().err
    assert code == 1
    assert f"saved the preparation so far in {tmp_path / '.m.training'}; resume: citerec" in err
    assert "--resume\n" in err


def test_a_model_that_is_there_stays_unless_it_may_be_replaced(
    sample_index: IndexFolder, trained: Path
) -> None:
    with pytest.raises(ModelExistsError):
        train_ranker([sample_index], trained, config())


def test_vectors_are_no_use_where_there_are_none(sample_index: IndexFolder, trained: Path) -> None:
    gains = json.loads((trained / "training.json").read_bytes())["gains"]["full"]

    missing = {feature for feature in gains if feature in ("dense", "dense_rank", "rerank")}
    assert all(gains[feature] == 0 for feature in missing)


def test_the_command_trains_into_the_index_which_stays_whole(
    chain: IndexFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "few.toml"
    settings.write_text("least_rows = 1\ntrees = 3\n")

    code = run(
        ["train-ranker", "--index", str(chain.path), "--config", str(settings), "--threads", "1"]
    )

    out = capsys.readouterr().out
    assert code == 0
    assert "dev F1@20" in out and str(chain.path / "models" / "ranker") in out
    assert find_ranker("auto", open_index(chain.path)) == chain.path / "models" / "ranker"
    verify_index(chain.path)


def test_a_ranker_that_learned_from_other_splits_is_not_measured(
    chain: IndexFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = chain.path / "models" / "ranker"
    train_ranker([chain], own, config(least_rows=1, trees=3))
    ask = ["evaluate", "--index", str(chain.path), "--systems", "ranker", "--output"]
    assert run([*ask, str(tmp_path / "own")]) == 0
    assert "is left out" not in capsys.readouterr().err
    told = json.loads((own / "training.json").read_bytes())
    told["indexes"][0]["splits_sha256"] = "of other splits"
    (own / "training.json").write_text(json.dumps(told))
    seal_model(own)

    code = run([*ask, str(tmp_path / "other")])

    assert code == 0
    assert "models/ranker is not used" in capsys.readouterr().err
    report = json.loads((tmp_path / "other" / "report.json").read_bytes())
    assert report["provenance"]["settings"]["ranker"]["model"] == "the default ranker"


def test_a_model_that_tells_no_candidates_apart_gains_nothing() -> None:
    cited = np.array([True, True, False, False])

    found = f1_and_reciprocal_rank(np.zeros(4), cited, 2, depth=2)
    told_apart = f1_and_reciprocal_rank(np.array([0.0, 1.0, 0.0, 0.0]), cited, 2, depth=2)

    assert found == (0.0, 1 / 3)  # the cited ones count as the third and the fourth
    assert told_apart == (2 * 1 / (2 + 2), 1.0)
