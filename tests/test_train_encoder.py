"""Training an encoder: what it may learn from, how examples are drawn, what it leaves, how it goes on."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from support.encoder_training import (
    assert_same_weights,
    checkpoints_every,
    config,
    named,
    never,
    quick,
    records,
    train_mrr,
)
from support.tiny import tiny_bert

from citerec.cli import run
from citerec.corpus.splits import read_ids
from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.model import load_parts
from citerec.encode.opening import open_encoder
from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.errors import BadInputError, ConfigError, ModelError, ModelExistsError
from citerec.folder import IndexFolder, open_index
from citerec.manifest import model_faults
from citerec.train import workspace
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder.batch import Collator
from citerec.train.encoder.config import (
    GRAPH_KINDS,
    EncoderPositives,
    EncoderRecipe,
    EncoderTraining,
)
from citerec.train.encoder.dev import mean_f1_and_mrr
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.graph import cited_by_cited, co_cited, graph_vectors, neighbours
from citerec.train.encoder.losses import in_batch, similarity, triplet
from citerec.train.encoder.mine import mined
from citerec.train.encoder.signals import Signals, examples_of
from citerec.train.encoder.train import train_encoder, trained_spec, was_trained_so
from citerec.train.lists import Lists, Pairs
from citerec.train.workspace import Workspace
from citerec.types import Paper

Build = Callable[..., IndexFolder]


@pytest.fixture
def graph(build: Build) -> TrainingData:
    return load_training_data(build(records()))


# --- what may be learned from


def test_queries_are_train_papers_that_cite_something_they_may(graph: TrainingData) -> None:
    assert named(graph, graph.gold) == {
        "b": {"a"},
        "c": {"a", "b"},
        "d": {"c"},
        "e": {"b", "d"},
        "f": {"e"},
    }


def test_the_pool_holds_no_dev_or_test_query_and_nobody_later_than_the_train_queries(
    graph: TrainingData,
) -> None:
    pool = graph.index.papers.ids_at(np.flatnonzero(graph.pool).tolist())

    assert pool == ["a", "b", "c", "d", "e", "f"]  # f is the latest query, of 2005


def test_hard_negatives_are_cited_by_the_cited_and_neither_cited_nor_oneself(
    graph: TrainingData,
) -> None:
    assert named(graph, cited_by_cited(graph, most=None)) == {
        "b": set(),  # a cites nothing
        "c": set(),  # b cites a, which c cites, too
        "d": {"a", "b"},
        "e": {"a", "c"},
        "f": {"b", "d"},
    }


def test_hard_negatives_are_so_on_a_random_graph_too(build: Build) -> None:
    rng = np.random.default_rng(0)
    cites = {f"p{i}": {f"p{j}" for j in rng.integers(0, i, 3)} if i else set() for i in range(60)}
    data = load_training_data(
        build(
            records({i: (1950 + n, " ".join(sorted(c))) for n, (i, c) in enumerate(cites.items())})
        )
    )

    hard = named(data, cited_by_cited(data, most=None))

    known = hard.keys()  # whose citations may be used
    for query, found in hard.items():
        expected = set[str]().union(*(cites[p] for p in cites[query] & known))
        assert found == expected - cites[query] - {query}


def test_of_many_hard_negatives_some_are_kept(graph: TrainingData) -> None:
    every, one = cited_by_cited(graph, most=None), cited_by_cited(graph, most=1)

    assert one.lengths.tolist() == np.minimum(every.lengths, 1).tolist()
    assert all(set(one[i]) <= set(every[i]) for i in range(len(one)))


def test_papers_cited_together_are_positives_if_they_are_no_later(graph: TrainingData) -> None:
    assert named(graph, co_cited(graph).most) == {  # c cites a and b, e cites b and d
        "b": {"a"},  # d is later
        "c": set(),
        "d": {"b"},
        "e": set(),
        "f": set(),
    }


def test_neighbours_in_the_graph_are_those_of_its_eigenvectors(graph: TrainingData) -> None:
    links = np.zeros((10, 10))
    for citing, cited in ("ba", "ca", "cb", "dc", "eb", "ed", "fe"):
        links["abcdefghxy".index(citing), "abcdefghxy".index(cited)] = 1
    both = links + links.T
    degrees = np.maximum(both.sum(1), 1)
    left, values, _ = np.linalg.svd(both / np.sqrt(degrees)[:, None] / np.sqrt(degrees)[None, :])
    expected = (left * values)[:6, :3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)

    vectors = graph_vectors(graph, dim=3, seed=0)

    assert vectors[:6] @ vectors[:6].T == pytest.approx(expected @ expected.T, abs=1e-5)
    assert not vectors[6:].any()
    near = neighbours(graph, 1, 1, dim=3, seed=0)
    assert named(graph, near)["b"] == {"a"}  # the only one that is no later


def test_mined_negatives_stand_at_their_ranks_and_are_not_cited(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    data = load_training_data(sample_index)
    spec = EncoderSpec(similarity=Similarity.COSINE, max_tokens=128)
    encoder = open_encoder(str(tiny_bert(tmp_path / "tiny", spec=spec)), EncodeConfig(threads=1))

    found = mined(data, encoder, 3, 12, threads=1, progress=lambda *_: None)

    assert found.lengths.max() == 10
    for i, query in enumerate(data.queries.tolist()):
        assert not set(found[i].tolist()) & {query, *data.cited[i].tolist()}
        assert data.pool[found[i]].all()
        assert (data.years[found[i]] <= data.years[query]).all()


@pytest.mark.parametrize("recipe", ["specter", "modern"])
@pytest.mark.parametrize("positives", GRAPH_KINDS)
def test_no_dev_or_test_query_is_in_any_example(
    sample_index: IndexFolder, recipe: str, positives: EncoderPositives
) -> None:
    data = load_training_data(sample_index)
    how = config(recipe=recipe, positives=positives, negatives="citations")
    examples = examples_of(Signals(data=data, config=how, mine=never))
    splits = {s: read_ids(sample_index.splits / f"{s}.ids") for s in ("train", "dev", "test")}

    drawn = [examples.epoch(number) for number in range(3)]

    used = set(sample_index.papers.ids_at(np.unique(np.concatenate(drawn)).tolist()))
    assert not used & {*splits["dev"], *splits["test"]}
    asked = sample_index.papers.ids_at(np.unique(drawn[0][:, 0]).tolist())
    assert set(asked) <= set(splits["train"])
    for epoch in drawn:
        assert len(epoch) == len(examples)
        assert not examples.forbidden.holds(epoch[:, 0], epoch[:, 2]).any()
        years = data.years[epoch]
        assert (years[:, 1] <= years[:, 0]).all()


# --- examples


def test_a_query_has_two_hard_triples_and_three_easy_ones(graph: TrainingData) -> None:
    examples = EncoderExamples.of(graph, config(), graph.gold, cited_by_cited(graph))
    rows = dict(zip("abcdef", graph.index.papers.rows_of([*"abcdef"]).tolist(), strict=True))

    drawn = examples.epoch(0)

    of_d = drawn[drawn[:, 0] == rows["d"]]
    assert len(drawn) == 5 * 5
    assert of_d[:, 1].tolist() == [rows["c"]] * 5  # its only citation
    assert {rows["a"], rows["b"]} <= set(of_d[:, 2].tolist())  # both hard ones
    assert rows["c"] not in of_d[:, 2] and rows["d"] not in of_d[:, 2]


def test_epochs_are_drawn_anew_only_if_wanted_and_always_the_same(graph: TrainingData) -> None:
    def epochs(**given: Any) -> list[list[tuple[int, ...]]]:
        examples = EncoderExamples.of(graph, config(**given), graph.gold, cited_by_cited(graph))
        return [[tuple(row) for row in examples.epoch(n).tolist()] for n in (0, 1)]

    old, new = epochs(), epochs(fresh=True)

    assert sorted(old[0]) == sorted(old[1]) and old[0] != old[1]  # in another order
    assert sorted(new[0]) != sorted(new[1])
    assert epochs(fresh=True) == new
    assert epochs(fresh=True, seed=1) != new


def test_in_batch_no_positive_stands_twice(graph: TrainingData) -> None:
    how = config(recipe="modern", negatives="citations")
    examples = EncoderExamples.of(graph, how, graph.gold, cited_by_cited(graph))

    drawn = examples.epoch(0)

    assert len(drawn) == len(graph.gold.indices) == 7
    assert len({(q, p) for q, p, _ in drawn.tolist()}) == 7


def test_lists_draw_without_repeats_unless_they_must() -> None:
    lists = Lists.of(np.array([0, 0, 0, 2]), np.array([7, 8, 9, 5]), 3)
    rng = np.random.default_rng(0)

    assert sorted(lists.drawn(3, rng, repeat=False)[0]) == [7, 8, 9]
    assert lists.drawn(2, rng, repeat=True)[2].tolist() == [5, 5]
    assert lists.drawn(2, rng, repeat=False)[1:].tolist() == [[-1, -1], [5, -1]]


def test_pairs_know_what_they_hold() -> None:
    pairs = Pairs(np.array([1, 2]), np.array([3, 0]), papers=10)

    assert pairs.holds(np.array([[1], [2]]), np.array([[0, 3]])).tolist() == [
        [False, True],
        [True, False],
    ]


# --- losses and measures


def test_the_triplet_loss_is_that_of_torch() -> None:
    import torch

    vectors = torch.randn(3, 5, 4, generator=torch.manual_seed(0)).unbind()
    q, p, n = (v.numpy() for v in vectors)

    ours = float(triplet(*vectors, margin=1.0))

    distance = np.linalg.norm
    by_hand = np.maximum(distance(q - p, axis=1) - distance(q - n, axis=1) + 1, 0).mean()
    assert ours == pytest.approx(float(torch.nn.TripletMarginLoss(margin=1.0)(*vectors)))
    assert ours == pytest.approx(by_hand, abs=1e-5)


def test_the_in_batch_loss_is_minus_the_log_of_the_share_of_the_target() -> None:
    import torch

    scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.3]], np.float32)
    allowed = np.array([[True, True, False], [True, True, True]])
    targets = np.array([0, 1])
    e = np.exp(scores / 0.5)
    rows = -np.log([e[0, 0] / (e[0, 0] + e[0, 1]), e[1, 1] / e[1].sum()])
    given = [torch.from_numpy(array) for array in (scores, targets, allowed)]

    loss = in_batch(*given, temperature=0.5)

    assert float(loss) == pytest.approx(rows.mean(), rel=1e-5)


def test_similarity_is_minus_the_distance_or_the_inner_product() -> None:
    import torch

    q, p = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0]])

    assert similarity(Similarity.L2, q, p).tolist() == [pytest.approx([-5, -1])]
    assert similarity(Similarity.COSINE, p, p).tolist() == [[25, 3], [3, 1]]


def test_mrr_is_the_mean_of_one_over_the_first_rank_of_gold() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]], np.float32)
    gold = np.array([[False, True, True], [False, False, True]])

    assert mean_f1_and_mrr(scores, gold)[1] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_in_batch_what_a_query_cites_or_may_not_cite_does_not_stand_against_it(
    graph: TrainingData, tiny: Path
) -> None:
    how = config(recipe="modern", negatives="citations", max_tokens=24)
    examples = EncoderExamples.of(graph, how, graph.gold, cited_by_cited(graph))
    a, b, c, d, e, f = graph.index.papers.rows_of([*"abcdef"])
    collator = Collator(load_parts(tiny, EncoderSpec(max_tokens=24)), examples, on_cpu=True)

    inputs = collator([np.array(drawn) for drawn in ((c, a, d), (e, d, a), (f, e, b))])

    assert inputs["targets"].tolist() == [0, 2, 3]  # among a, b, d and e
    assert inputs["allowed"].tolist() == [
        [True, False, False, False],  # c cites a and b; d and e are later
        [True, False, True, False],  # e cites b and d, and is itself there
        [True, True, True, True],
    ]
    read = [len(chunk["input_ids"]) for chunk in inputs["chunks"]]
    assert sum(read) == 6  # a to f, each once


# --- settings


def test_options_win_over_the_file_and_the_file_over_the_recipe(tmp_path: Path) -> None:
    file = tmp_path / "training.toml"
    file.write_text('recipe = "modern"\nepochs = 7\nbatch = 64\n')

    read = EncoderTraining.read(file, {"batch": 16, "seed": None})

    assert (read.recipe, read.epochs, read.batch, read.seed) == (EncoderRecipe.MODERN, 7, 16, 0)
    assert (read.model, read.hard, read.fresh) == ("minilm", 1, True)
    assert EncoderTraining.read(None, {}) == EncoderTraining.of({})


def test_the_recipe_of_the_paper() -> None:
    specter = EncoderTraining.of({})

    assert (specter.loss, specter.margin, specter.examples, specter.hard) == ("triplet", 1, 5, 2)
    assert (specter.learning_rate, specter.schedule.warmup, specter.epochs) == (2e-5, 0.1, 2)
    assert (specter.batch, specter.max_tokens) == (32, 512)
    assert (specter.pooling, specter.similarity, specter.separator) == ("cls", "l2", "sep")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epoch = 3", r"training.toml: unknown setting 'epoch'; known settings: recipe, model"),
        (
            'recipe = "old"',
            r"training.toml: recipe must be specter, modern, memory, linear; got 'old'",
        ),
        ('batch = "big"', r"training.toml: batch must be a whole number, got 'big'"),
        ("epochs = 0", "epochs must be at least 1, got 0"),
        (
            "epochs = 9999999999999999999",
            r"epochs must be less than 2\^31, got 9999999999999999999",
        ),
        ("batch = 2000000", "batch must be at most 1,000,000, got 2,000,000"),
        ("hard = 9", "hard must be at most examples, 5, got 9"),
        ('recipe = "modern"\nbatch = 1', "the in-batch loss needs a batch of at least 2, got 1"),
        ("batch = 30\ndevice_batch = 8", "batch must be a multiple of device_batch, 8, got 30"),
        ('precision = "float32"', r"training.toml: precision is now named dtype"),
        ('dtype = "float16"', "dtype must be auto, float32 or bfloat16 in training"),
        ("margin = 0", "margin must be greater than 0"),
    ],
)
def test_a_setting_that_cannot_be_is_one_clear_line(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "training.toml"
    file.write_text(content)

    with pytest.raises(ConfigError, match=message):
        EncoderTraining.read(file, {})


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("epochs")

    with pytest.raises(BadInputError, match=r"bad.toml: not TOML"):
        EncoderTraining.read(tmp_path / "bad.toml", {})


def test_the_spec_is_the_base_models_unless_the_config_says_otherwise(tmp_path: Path) -> None:
    plain = tiny_bert(tmp_path / "plain")
    ours = tiny_bert(tmp_path / "ours", spec=EncoderSpec(max_tokens=64))
    modern = config(recipe="modern")

    assert (trained_spec(plain, modern).pooling, trained_spec(plain, modern).similarity) == (
        "mean",
        "cosine",
    )
    assert trained_spec(ours, modern) == EncoderSpec(max_tokens=64)
    assert trained_spec(plain, config()) == EncoderSpec()


# --- training


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def trained(
    sample_index: IndexFolder, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A model of the recipe `specter`, trained on the sample."""
    output = tmp_path_factory.mktemp("trained") / "specter"
    train_encoder(sample_index, output, quick(tiny))
    return output


def test_training_lowers_the_loss_and_finds_citations_better(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    titles = " ".join(sample_index.papers.titles()).lower()
    spec = EncoderSpec(pooling=Pooling.MEAN, similarity=Similarity.COSINE, max_tokens=24)
    base = tiny_bert(tmp_path / "base", words=sorted(set(re.findall("[a-z]+", titles))), spec=spec)
    how = {"recipe": "modern", "negatives": "citations", "form": "title", "epochs": 4}
    said: list[str] = []

    report = train_encoder(
        sample_index, tmp_path / "m", quick(base, **how, learning_rate=3e-3), log=said.append
    )

    assert [epoch.epoch for epoch in report.history] == [0, 1, 2, 3, 4]
    losses = [epoch.loss or 0 for epoch in report.history[1:]]
    assert losses[-1] < losses[0] - 0.3
    assert train_mrr(sample_index, tmp_path / "m") > train_mrr(sample_index, base) + 0.1
    assert said[0].startswith("epoch 0: dev loss")
    assert said[1].startswith("epoch 1: loss")


def test_the_same_seed_gives_the_same_weights_and_going_on_gives_them_too(
    sample_index: IndexFolder,
    tiny: Path,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints_every(monkeypatch, 5)
    how = quick(tiny)
    output = tmp_path / "m"

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("training", 8):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(sample_index, output, how, progress=stop)
    assert not output.exists()
    last = Workspace.for_model(output).checkpoint()
    assert last is not None and last.name == "checkpoint-5"
    with pytest.raises(
        ConfigError, match="started with other settings: seed was 0, is 1; use the same"
    ):
        train_encoder(sample_index, output, replace(how, seed=1), resume=True)
    said: list[str] = []
    report = train_encoder(sample_index, output, how, resume=True, log=said.append)

    assert said[0] == "resuming from checkpoint-5"
    assert_same_weights(output, trained)
    assert [epoch.epoch for epoch in report.history] == [0, 1, 2]
    history = (open_training(folder)["history"] for folder in (output, trained))
    for ours, theirs in zip(*history, strict=True):
        assert (ours["loss"], ours["dev_mrr"]) == pytest.approx((theirs["loss"], theirs["dev_mrr"]))
    assert not Workspace.for_model(output).folder.exists()


def open_training(folder: Path) -> dict[str, Any]:
    import json

    return json.loads((folder / "training.json").read_text())


def test_a_training_that_is_begun_anew_says_so(
    sample_index: IndexFolder, tiny: Path, trained: Path, tmp_path: Path
) -> None:
    output = tmp_path / "m"
    Workspace.for_model(output).begin({})
    said: list[str] = []

    train_encoder(sample_index, output, quick(tiny), log=said.append)

    assert said[0] == "an unfinished training is discarded; use --resume to continue one"
    assert_same_weights(output, trained)


def test_ctrl_c_on_the_command_line_says_how_to_go_on(
    sample_index: IndexFolder,
    tiny: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seal = Workspace.seal

    def seal_and_stop(self: Workspace, step: int) -> None:
        seal(self, step)
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, "seal", seal_and_stop)
    checkpoints_every(monkeypatch, 2)
    settings = tmp_path / "t.toml"
    settings.write_text("max_tokens = 24\ndev_queries = 0\nthreads = 1\n")
    common = ["train-encoder", "--index", str(sample_index.path), "--model", str(tiny)]

    arguments = [*common, "--config", str(settings), "--output", str(tmp_path / "m")]

    code = run(arguments)

    assert code == 1
    again = ["citerec", *arguments, "--resume"]
    kept = tmp_path / ".m.training"
    told = f"saved the checkpoint of update 2 in {kept}; resume: {shlex.join(again)}\n"
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [".m.training"]


def test_a_checkpoint_is_written_when_one_is_due_whatever_the_settings_say(
    sample_index: IndexFolder,
    tiny: Path,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workspace, "EVERY", 0.0)
    monkeypatch.setattr(workspace, "CHECKPOINT_SHARE", float("inf"))  # after each update
    output = tmp_path / "m"

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("training", 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(sample_index, output, quick(tiny), progress=stop)
    whole = sorted(path.name for path in Workspace.for_model(output).folder.glob("checkpoint-*"))
    train_encoder(sample_index, output, quick(tiny), resume=True)

    assert whole == ["checkpoint-2", "checkpoint-3"]  # older ones are removed
    assert_same_weights(output, trained)


def test_checkpoints_are_due_by_time_and_take_a_small_share_of_it() -> None:
    now = 0.0
    timer = workspace.CheckpointTimer(lambda: now)

    now = workspace.EVERY - 1
    assert not timer.is_due()
    now = workspace.EVERY
    assert timer.is_due()
    timer.begin()
    now += 30  # it takes half a minute to write
    timer.done()

    now += 30 / workspace.CHECKPOINT_SHARE - 1  # 599 seconds later
    assert not timer.is_due()
    now += 1
    assert timer.is_due()


KILLED = """
import sys
from citerec.cli import run
from citerec.train import workspace
workspace.EVERY, workspace.CHECKPOINT_SHARE = 0.0, float("inf")  # a checkpoint after each update
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_training_that_was_killed_goes_on(
    sample_index: IndexFolder, tiny: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "t.toml"
    settings.write_text("max_tokens = 24\nepochs = 3\nthreads = 1\nexamples = 2\n")
    common = ["train-encoder", "--index", str(sample_index.path), "--model", str(tiny)]
    common += ["--config", str(settings), "--output"]
    assert run([*common, str(tmp_path / "whole")]) == 0
    output = tmp_path / "killed"

    process = subprocess.Popen([sys.executable, "-c", KILLED, *common, str(output)])
    until = monotonic() + 120
    while not [*Workspace.for_model(output).folder.glob("checkpoint-*/whole")]:
        assert monotonic() < until and process.poll() is None
        sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    assert not output.exists()
    assert run([*common, str(output), "--resume"]) == 0
    assert_same_weights(output, tmp_path / "whole")


# --- the model folder


PAPERS = [
    Paper(id="a", title="Neural ranking of papers", abstract="We rank papers by citation. " * 9),
    Paper(id="b", title="A graph"),
]


def test_the_model_opens_in_transformers_and_in_sentence_transformers(trained: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    ours = open_encoder(str(trained), EncodeConfig(precision=Precision.FLOAT32, threads=1))
    vectors = ours.encode(PAPERS)
    texts = [f"{paper.title}[SEP]{paper.abstract}" for paper in PAPERS]

    theirs = SentenceTransformer(str(trained), device="cpu").encode(texts)
    tokenizer, model = AutoTokenizer.from_pretrained(trained), AutoModel.from_pretrained(trained)
    cut = tokenizer(texts, truncation=True, max_length=24, padding=True, return_tensors="pt")
    with torch.inference_mode():
        first = model.eval()(**cut).last_hidden_state[:, 0].numpy()

    assert vectors == pytest.approx(theirs, abs=1e-5)
    assert vectors == pytest.approx(first, abs=1e-5)


def test_the_model_folder_tells_its_story_and_names_no_place_of_this_machine(
    trained: Path, tiny: Path
) -> None:
    told = open_training(trained)

    card = (trained / "README.md").read_text()
    assert told["base"] == "tiny"
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    assert told["corpus_sha256"] in card
    assert f"{told['counts']['train_queries']} train queries" in card
    assert [line for line in card.splitlines() if line.startswith("| 2 |")]
    for file in trained.rglob("*.[jm]*"):
        assert str(tiny.parent).encode() not in file.read_bytes()


def test_a_model_is_known_by_what_it_was_trained_on_and_how(
    sample_index: IndexFolder, build: Build, tiny: Path, trained: Path, tmp_path: Path
) -> None:
    how = quick(tiny)

    assert was_trained_so(trained, sample_index, how)
    assert not was_trained_so(trained, sample_index, replace(how, seed=1))
    assert not was_trained_so(trained, build(records()), how)
    assert not was_trained_so(tmp_path / "nowhere", sample_index, how)


def test_a_flipped_byte_in_a_model_folder_is_found(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "m"
    shutil.copytree(trained, copy)
    assert model_faults(copy) == []
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1

    (copy / "model.safetensors").write_bytes(bytes(content))
    (copy / "1_Pooling" / "config.json").unlink()
    (copy / "more.txt").touch()

    assert model_faults(copy) == [
        "1_Pooling/config.json is missing",
        "model.safetensors is not what was written",
        "more.txt does not belong to it",
    ]


# --- what cannot be


def test_a_model_is_replaced_only_if_that_is_said(
    sample_index: IndexFolder, tiny: Path, trained: Path
) -> None:
    with pytest.raises(ModelExistsError, match=r"already exists; replace it with --force"):
        train_encoder(sample_index, trained, quick(tiny))


def test_what_is_no_model_of_ours_is_not_replaced_at_all(
    sample_index: IndexFolder, tiny: Path
) -> None:
    with pytest.raises(
        ConfigError, match="is no model that citerec trained; choose another folder"
    ):
        train_encoder(sample_index, tiny, quick(tiny), force=True)


def test_papers_that_cite_nothing_teach_nothing(build: Build, tiny: Path, tmp_path: Path) -> None:
    index = build([{"id": str(i), "title": "A", "year": 2000 + i} for i in range(9)])

    with pytest.raises(
        ConfigError, match="has no train queries; a model is trained on their citations"
    ):
        train_encoder(index, tmp_path / "m", quick(tiny))


def test_a_batch_that_the_examples_do_not_fill_is_too_large(
    build: Build, tiny: Path, tmp_path: Path
) -> None:
    index = build(records())
    how = quick(tiny, recipe="modern", negatives="citations", batch=64)

    with pytest.raises(ConfigError, match="examples, fewer than a batch of 64; choose a smaller"):
        train_encoder(index, tmp_path / "m", how)


def test_a_model_that_cannot_read_so_many_tokens_is_refused(
    sample_index: IndexFolder, tiny: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="128 positions, fewer than the 512 tokens"):
        train_encoder(sample_index, tmp_path / "m", quick(tiny, max_tokens=512))
    with pytest.raises(ModelError):
        train_encoder(sample_index, tmp_path / "m", quick(tmp_path / "nothing"))


def test_an_index_without_splits_says_how_to_mend_it(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    copy = tmp_path / "index"
    shutil.copytree(sample_index.path, copy)
    opened = open_index(copy)
    (copy / "splits" / "dev.ids").unlink()

    with pytest.raises(ConfigError, match=r"has no dev.ids; rebuild the index: citerec index"):
        load_training_data(opened)


def test_the_command_line_trains_and_says_what_is_wrong(
    sample_index: IndexFolder, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "t.toml"
    settings.write_text("max_tokens = 24\ndev_queries = 5\nexamples = 1\nhard = 1\nthreads = 1\n")
    common = ["train-encoder", "--index", str(sample_index.path), "--model", str(tiny)]
    common += ["--config", str(settings), "--output", str(tmp_path / "m")]

    assert run([*common, "--epochs", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == str(tmp_path / "m")
    assert "citerec: epoch 1: loss" in err
    assert run([*common, "--epochs", "1"]) == 2
    assert run([*common, "--force", "--recipe", "best"]) == 2
    assert run([*common, "--force", "--epochs", "0"]) == 2
    assert run([*common, "--quiet", "--epochs", "1", "--force"]) == 0
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 3 and out == ""
