"""Training a reranker: its candidates, how examples are drawn, what it leaves, how it goes on."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from support.encoder_training import checkpoints_every
from support.tiny import tiny_bert, tiny_reranker

from citerec.cli import run
from citerec.corpus.splits import read_ids
from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.opening import open_encoder
from citerec.errors import ConfigError, ModelExistsError
from citerec.folder import IndexFolder, open_index
from citerec.index.tokens import TokenStore, write_tokens
from citerec.manifest import model_faults, seal_model
from citerec.rerank.spec import RerankerSpec, read_reranker_spec
from citerec.rules.held_out import data_of, trained_on_other_data, trained_on_other_splits
from citerec.text import pair_text
from citerec.train.data import DevQueries, TrainingData, load_training_data
from citerec.train.lists import Lists
from citerec.train.measures import platt
from citerec.train.reranker.batch import PairReader, Steps, Texts
from citerec.train.reranker.candidates import (
    CandidateFinder,
    CandidateLists,
    LabelledCandidates,
    labelled,
    train_candidates,
    with_teacher,
)
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.dev import RerankerDev, draw_dev, load_dev
from citerec.train.reranker.estimate import DAY, planned_updates, remaining_time
from citerec.train.reranker.examples import MISSING, RerankerExamples
from citerec.train.reranker.net import load_base, make_net
from citerec.train.reranker.teach import is_encoder, taught, teacher_folders
from citerec.train.reranker.train import train_reranker, was_trained_so
from citerec.train.reranker.update import Update, out_of_memory
from citerec.train.schedule import WEIGHT_DECAY
from citerec.train.workspace import Workspace
from citerec.types import Paper, Query, no_progress

Build = Callable[..., IndexFolder]


def config(**given: Any) -> RerankerTraining:
    return RerankerTraining.of({"threads": 1, "epochs": 1, **given})


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "base")


def quick(base: Path, **given: Any) -> RerankerTraining:
    few = {"query_tokens": 32, "candidate_tokens": 32, "dev_queries": 10, "dev_depth": 30}
    few |= {"depth": 30, "batch": 16, "queries": 40, "learning_rate": 1e-3, "log_steps": 5}
    return config(**few | {"model": str(base)} | given)


def lists(base: Path, **given: Any) -> RerankerTraining:
    return quick(base, **{"list_negatives": 3, "batch": 8, "loss": "softmax", **given})


@pytest.fixture(scope="session")
def data(sample_index: IndexFolder) -> TrainingData:
    return load_training_data(sample_index)


@pytest.fixture(scope="session")
def found(data: TrainingData, base: Path) -> CandidateLists:
    return train_candidates(data, quick(base), no_progress, print)


def known(data: TrainingData, found: CandidateLists, how: RerankerTraining) -> LabelledCandidates:
    return labelled(data, found, how)


def added_to(found: CandidateLists, more: LabelledCandidates) -> Any:
    """Flag the entries that stand behind the candidates that were found."""
    lists = more.candidates.lists
    place = np.arange(len(lists.indices)) - lists.indptr[lists.segment_ids]
    return place >= found.lists.lengths[lists.segment_ids]


def no_lengths(places: Any) -> Any:
    return np.zeros(len(places), np.int64)


def examples(data: TrainingData, found: CandidateLists, how: RerankerTraining) -> RerankerExamples:
    return RerankerExamples(known(data, found, how), how, no_lengths)


# --- candidates


def test_candidates_are_of_the_pool_of_no_later_year_and_not_the_query(
    data: TrainingData, found: CandidateLists
) -> None:
    asked = data.queries[found.lists.segment_ids]

    assert found.lists.lengths.max() == 30
    assert data.pool[found.lists.indices].all()
    assert (data.years[found.lists.indices] <= data.years[asked]).all()
    assert (found.lists.indices != asked).all()
    assert (np.diff(found.scores[: found.lists.lengths[0]]) <= 0).all()  # best first


def test_no_dev_or_test_paper_is_ever_read(
    sample_index: IndexFolder, data: TrainingData, found: CandidateLists, base: Path
) -> None:
    held_out = {i for s in ("dev", "test") for i in read_ids(sample_index.splits / f"{s}.ids")}
    for how in (quick(base, positives="all", negatives="random"), lists(base)):
        one = known(data, found, how)
        used = np.union1d(one.query_rows, one.candidates.lists.indices)
        assert not held_out & set(sample_index.papers.ids_at(used.tolist()))


def test_the_fused_candidates_are_those_of_bm25_and_the_vectors_together(
    dense_sample: IndexFolder, base: Path
) -> None:
    data = load_training_data(dense_sample).only(np.arange(5))

    bm25 = train_candidates(data, quick(base), no_progress, print)
    fused = train_candidates(data, quick(base, candidates="fused"), no_progress, print)

    assert fused.lists[0].tolist() != bm25.lists[0].tolist()
    assert fused.scores.max() <= 2 / 61 + 1e-6  # of two stages of RRF
    assert fused.similarity.any() and not bm25.similarity.any()


def test_without_vectors_fused_means_bm25_and_the_encoder_cannot_teach(
    sample_index: IndexFolder, data: TrainingData, found: CandidateLists, base: Path
) -> None:
    said: list[str] = []

    alone = train_candidates(data, quick(base, candidates="fused"), no_progress, said.append)

    assert alone.lists.indices.tolist() == found.lists.indices.tolist()
    assert said[0].endswith("has no vectors: the candidates are those of BM25")
    with pytest.raises(ConfigError, match="has no vectors for the teacher"):
        CandidateFinder(sample_index, quick(base, teacher="encoder"), print)


def test_the_leak_of_positives_adds_what_was_not_found(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    few = CandidateLists.of([], []) if not len(found.lists) else found

    plain, leaking = known(data, few, quick(base)), known(data, few, quick(base, positives="all"))

    assert leaking.cited.sum() == len(data.gold.indices) > plain.cited.sum()
    added = added_to(few, leaking)
    assert leaking.cited[added].all()
    assert not leaking.candidates.scores[added].max() > found.scores.max()


def test_the_leak_of_negatives_adds_random_papers_that_are_not_cited(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    leaking = known(data, found, quick(base, negatives="random", random_negatives=4))

    added = added_to(found, leaking)
    assert not leaking.cited[added].any()
    per_query = np.bincount(
        leaking.candidates.lists.segment_ids[added], minlength=len(data.queries)
    )
    assert per_query.max() == 4
    rows, asked = leaking.candidates.lists.indices[added], leaking.query_rows[added]
    assert data.pool[rows].all() and (data.years[rows] <= data.years[asked]).all()


def test_a_paper_of_the_title_of_the_query_or_of_a_cited_one_is_no_negative(build: Build) -> None:
    papers: list[dict[str, Any]] = [
        {"id": f"p{i}", "title": f"Word embeddings {i}", "year": 2000} for i in range(8)
    ]
    papers += [
        {"id": "cited", "title": "On word embeddings", "year": 2000},
        {"id": "again", "title": "On Word Embeddings!", "year": 2001},
        {"id": "self", "title": "{W}ord embeddings, a study", "year": 2001},
        {"id": "query", "title": "Word embeddings: a study", "year": 2002, "citations": ["cited"]},
    ]
    later = [{"id": f"z{i}", "title": "Words", "year": 2010 + i} for i in range(4)]
    data = load_training_data(build([*papers, *later]))
    how = RerankerTraining.of({"threads": 1, "depth": 20, "list_negatives": 2})
    one = labelled(data, train_candidates(data, how, no_progress, print), how)

    ids = data.index.papers.ids_at(one.candidates.lists.indices.tolist())

    assert dict(zip(ids, one.cited.tolist(), strict=True))["cited"]
    out = {i for i, usable in zip(ids, one.usable.tolist(), strict=True) if not usable}
    assert out == {"cited", "again", "self"}


def test_added_papers_stand_at_the_end_of_their_list_with_its_least_score() -> None:
    found = CandidateLists(
        Lists.of(np.array([0, 0, 1]), np.array([5, 6, 7]), 2),
        np.array([3, 2, 1], np.float32),
        np.array([0.5, 0.1, 0.2], np.float32),
    )

    more = found.with_added(Lists.of(np.array([0, 1]), np.array([8, 9]), 2))

    assert more.lists[0].tolist() == [5, 6, 8] and more.lists[1].tolist() == [7, 9]
    assert more.scores.tolist() == [3, 2, 2, 1, 1]
    assert more.similarity.tolist() == pytest.approx([0.5, 0.1, 0.1, 0.2, 0.2])


def test_a_teacher_has_a_mean_of_0_and_a_spread_of_1_in_each_list() -> None:
    found = CandidateLists(
        Lists.of(np.array([0, 0, 1]), np.array([5, 6, 7]), 2), np.zeros(3), np.zeros(3)
    )

    assert found.standardised(np.array([10, 30, 4])).tolist() == [-1, 1, 0]


# --- examples


def test_the_paper_learns_from_each_candidate_once_an_epoch_as_found(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    drawn = examples(data, found, quick(base))

    first, second = drawn.epoch(0), drawn.epoch(1)

    assert sorted(first.ravel().tolist()) == list(range(len(found.lists.indices)))
    assert first.tolist() != second.tolist() and sorted(first.tolist()) == sorted(second.tolist())
    assert first.tolist() == drawn.epoch(0).tolist()


def test_a_list_is_one_cited_candidate_and_others_of_the_same_list(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    how = lists(base)
    drawn = examples(data, found, how)
    one = drawn.labelled

    epoch = drawn.epoch(0)

    assert epoch.shape == (len(drawn), 4)
    assert one.cited[epoch[:, 0]].all() and not one.cited[epoch[:, 1:]].any()
    owners = one.candidates.lists.segment_ids[epoch]
    assert (owners == owners[:, :1]).all()
    assert all(len(set(row)) == 4 for row in epoch.tolist())
    assert examples(data, found, replace(how, examples=1)).epoch(0)[:, 0].size < len(drawn)


def test_within_a_window_batches_are_of_pairs_of_a_length(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    how = quick(base, batch=8)
    one = known(data, found, how)
    fake = np.random.default_rng(0).integers(1, 100, len(one.cited))

    epoch = RerankerExamples(one, how, lambda places: fake[places]).epoch(0).ravel()

    spread = [np.ptp(fake[epoch[i : i + 8]]) for i in range(0, 320, 8)]
    assert np.mean(spread) < 40  # of 100, and 25 a batch if all were even
    assert sorted(epoch.tolist()) == list(range(len(one.cited)))


def test_candidates_without_a_citation_teach_nothing(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    none = replace(known(data, found, quick(base)), cited=np.zeros(len(found.scores), np.bool_))

    with pytest.raises(ConfigError, match="contain no cited paper; raise depth"):
        RerankerExamples(none, quick(base), no_lengths)


# --- steps


@pytest.fixture
def steps(data: TrainingData, found: CandidateLists, base: Path) -> Steps:
    how = lists(base)
    parts = load_base(base, how)
    reader = PairReader(parts, Texts(parts, data.index.papers), on_cpu=True)
    return Steps(reader, known(data, found, how), micro=8)


def test_a_step_holds_whole_lists_and_reads_each_pair_where_it_says(
    steps: Steps, data: TrainingData, found: CandidateLists, base: Path
) -> None:
    drawn = examples(data, found, lists(base)).epoch(0)[:5]
    drawn[0, 3] = MISSING
    parts = load_base(base, lists(base))

    made = steps(drawn)

    assert [len(step["at"]) for step in made] == [2, 2, 1]
    assert sum(int(step["there"].sum()) for step in made) == 19
    longest = steps.lengths(drawn.ravel()).reshape(drawn.shape).max(1)
    first = drawn[np.argmax(longest)]
    papers = data.index.papers
    query, paper = (papers[int(r[first[0]])] for r in (
        data.queries[found.lists.segment_ids], found.lists.indices))  # fmt: skip
    ids = [row for chunk in made[0]["chunks"] for row in chunk["input_ids"].tolist()]
    read = ids[int(made[0]["at"][0, 0])]
    cut = [parts.cut([pair_text(p)])[0] for p in (query, paper)]
    assert [t for t in read if t] == [2, *cut[0][:30], 3, *cut[1][:31], 3]  # [CLS] 2, [SEP] 3


def test_the_gradient_of_an_update_does_not_depend_on_its_steps(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    import torch

    how = lists(base, dropout=0.0, attention_dropout=0.0)
    parts = load_base(base, how)
    net = make_net(parts, how)
    reader = PairReader(parts, Texts(parts, data.index.papers), on_cpu=True)
    drawn = examples(data, found, how).epoch(0)[:6]

    gradients: list[Any] = []
    for micro in (4, 24):
        net.zero_grad()
        for step in Steps(reader, known(data, found, how), micro)(drawn):
            (net(**step) / len(drawn)).backward()
        gradients.append(torch.cat([p.grad.ravel() for p in net.parameters()]))

    assert gradients[0].tolist() == pytest.approx(gradients[1].tolist(), abs=1e-5)


def test_the_path_of_a_gpu_has_bfloat16_fused_attention_and_the_gradient_of_all_steps(
    data: TrainingData, found: CandidateLists, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr("citerec.train.reranker.net.is_supported", lambda body: False)
    how = lists(base, loss="bce", dropout=0.0, attention_dropout=0.0)
    parts = load_base(base, how)
    net = make_net(parts, how).train()
    reader = PairReader(parts, Texts(parts, data.index.papers), on_cpu=False)
    drawn = examples(data, found, how).epoch(0)[:6]

    gradients: list[Any] = []
    for micro, dtype in ((24, torch.float32), (24, torch.bfloat16), (12, torch.bfloat16)):
        net.zero_grad()
        for step in Steps(reader, known(data, found, how), micro)(drawn):
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is torch.bfloat16):
                (net(**step) / len(drawn)).backward()
        gradients.append(torch.cat([p.grad.ravel() for p in net.parameters()]))

    assert parts.model.config._attn_implementation == "sdpa"
    exact, whole, halves = gradients
    assert float((whole - exact).norm() / exact.norm()) < 0.1
    assert float((halves - whole).norm() / exact.norm()) < 0.1


class Alone:
    """What an update needs of transformers' Trainer, on one device."""

    def __init__(self) -> None:
        from accelerate import Accelerator

        self.accelerator = Accelerator(cpu=True)
        self.state = type("State", (), {"global_step": 0})()

    def compute_loss_context_manager(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()

    def _prepare_inputs(self, inputs: Any) -> Any:
        return inputs


def test_out_of_memory_halves_the_steps_and_gives_the_same_gradient(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    import torch

    how = lists(base, dropout=0.0, attention_dropout=0.0)
    parts = load_base(base, how)
    net = make_net(parts, how)
    reader = PairReader(parts, Texts(parts, data.index.papers), on_cpu=True)
    steps = Steps(reader, known(data, found, how), 16)
    drawn, said = examples(data, found, how).epoch(0)[:6], list[str]()
    update = Update(steps, warm_steps=0, log=said.append)
    net(**Steps(reader, known(data, found, how), 24)(drawn)[0]).div(6).backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    fits = 6  # pairs

    def refuse(_: Any, arguments: Any, given: dict[str, Any]) -> None:
        if given["there"].sum() > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")

    handle = net.register_forward_pre_hook(refuse, with_kwargs=True)
    loss = update(Alone(), net, {"drawn": drawn})

    assert steps.micro == 4 and loss > 0
    assert said == [
        "out of memory: steps now have 8 pairs",
        "out of memory: steps now have 4 pairs",
    ]
    for mine, other in zip(net.parameters(), expected, strict=True):
        assert mine.grad.ravel().tolist() == pytest.approx(other.ravel().tolist(), abs=1e-5)
    fits = 1
    with pytest.raises(ConfigError, match="memory is too small for one example"):
        update(Alone(), net, {"drawn": drawn})
    handle.remove()


def test_memory_that_does_not_suffice_is_known_by_its_kind_or_by_its_words() -> None:
    linux = (
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)"
    )
    windows = "DefaultCPUAllocator: not enough memory: you tried to allocate 4000000000000 bytes."

    assert out_of_memory(RuntimeError(linux)) and out_of_memory(RuntimeError(windows))
    assert out_of_memory(MemoryError())
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_tokens_that_the_index_keeps_are_those_that_are_cut(
    data: TrainingData, base: Path, tmp_path: Path
) -> None:
    parts = load_base(base, quick(base))
    index = open_index(Path(copytree(data.index.path, tmp_path / "index")))
    kept = write_tokens(index, "0" * 64, parts.cut, vocabulary=len(parts.tokenizer))
    assert isinstance(kept, TokenStore)

    stored, cut = Texts(parts, index.papers, kept), Texts(parts, index.papers)

    longest = max(parts.specials.room(parts.spec))
    assert all(stored[row].tolist() == cut[row].tolist() for row in range(len(index.papers)))
    assert max(len(stored[row]) for row in range(len(index.papers))) == longest
    assert stored[0].dtype == cut[0].dtype == np.int32


# --- the base model


def test_a_base_model_is_given_a_head_of_one_label_and_what_is_frozen_is_not_learned(
    base: Path,
) -> None:
    model = load_base(base, quick(base, freeze_embeddings=True, freeze_layers=1)).model

    learned = {name for name, weights in model.named_parameters() if weights.requires_grad}
    assert model.classifier.weight.shape == (1, 32)
    embedded = [name for name in learned if "embeddings" in name]
    assert embedded == ["bert.embeddings.token_type_embeddings.weight"]  # tells the segments apart
    assert not [name for name in learned if "layer.0" in name]
    assert [name for name in learned if "layer.1" in name]
    with pytest.raises(
        ConfigError, match="freeze_layers must be at most 2, the layers of the model, got 3"
    ):
        load_base(base, quick(base, freeze_layers=3))


def test_dropout_is_set_where_it_belongs(base: Path) -> None:
    import torch

    model = load_base(base, quick(base, dropout=0.2, attention_dropout=0.0)).model

    rates = {n: m.p for n, m in model.named_modules() if isinstance(m, torch.nn.Dropout)}
    attention = {n: p for n, p in rates.items() if n.endswith("attention.self.dropout")}
    assert len(attention) == 2 and set(attention.values()) == {0.0}
    assert {p for n, p in rates.items() if n not in attention} == {0.2}


# --- dev and calibration


def test_dev_measures_count_what_is_not_found_too() -> None:
    # given two queries; the first cites 2 of its 3 candidates and one more, the other none that was found
    lists = Lists.of(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 4]), 2)
    beside = np.array([3, 2, 1, 1], np.float32)
    found = CandidateLists(lists, beside, np.zeros(4, np.float32))
    dev = RerankerDev(("a", "b"), found, np.array([False, True, True, False]), np.array([3, 1]))

    f1, mrr = dev.ranked(np.array([0.1, 0.2, 0.9, 0.5]))

    assert f1 == pytest.approx((2 * 2 / (20 + 3) + 0) / 2)
    assert mrr == pytest.approx((1 / 1 + 0) / 2)
    assert dev.ranked(found.scores)[1] == pytest.approx((1 / 2 + 0) / 2)
    measured = dev.measures(np.array([0.0, 0.0, 0.0, 0.0], np.float32))
    assert measured["loss"] == pytest.approx(np.log(3))
    assert measured["mixed"] >= measured["f1"]


def test_dev_queries_get_candidates_as_the_protocol_has_them(
    sample_index: IndexFolder, base: Path
) -> None:
    how = quick(base, dev_queries=10)

    dev = load_dev(draw_dev(sample_index, how), how, print)

    assert dev
    assert len(dev.queries) == len(dev.gold) == 10
    assert dev.candidates.lists.lengths.max() == 30 and dev.cited.any()
    assert DevQueries.drawn(sample_index, 0, np.random.default_rng(0)) is None


def test_the_calibration_finds_the_chances_that_made_the_labels() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 3, 20_000)
    cited = rng.random(20_000) < 1 / (1 + np.exp(-(0.7 * scores - 1.5)))

    scale, offset = platt(scores, cited)

    assert (scale, offset) == pytest.approx((0.7, -1.5), abs=0.06)
    assert platt(scores, np.zeros(20_000, np.bool_)) == (1, 0)
    upside_down, _ = platt(-scores, cited)
    assert upside_down > 0


# --- settings


def test_the_recipe_of_the_paper() -> None:
    paper = RerankerTraining.of({})

    assert (paper.model, paper.candidates, paper.depth, paper.list_negatives) == (
        "scibert", "bm25", 10, 0)  # fmt: skip
    assert (paper.loss, paper.learning_rate, WEIGHT_DECAY) == ("bce", 3e-6, 0.01)
    assert (paper.batch, paper.steps, round(paper.warmup * paper.steps)) == (128, 300_000, 10_000)
    assert (paper.query_tokens, paper.candidate_tokens, paper.dropout) == (256, 256, 0.1)


def test_epochs_win_over_the_steps_of_a_recipe_and_options_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text('recipe = "strong"\nbatch = 4\n')

    read = RerankerTraining.read(file, {"batch": 2, "model": None})

    assert (read.batch, read.list_negatives, read.model) == (2, 7, "minilm")
    assert RerankerTraining.read(None, {"epochs": 2}).steps == 0
    assert RerankerTraining.read(None, {"epochs": 2, "steps": 5}).steps == 5


def test_epochs_and_steps_as_options_beat_each_other_in_the_file(tmp_path: Path) -> None:
    def schedule(file: str, **options: int) -> tuple[int, int, int]:
        (tmp_path / "t.toml").write_text(file)
        read = RerankerTraining.read(tmp_path / "t.toml", options)
        return read.epochs, read.steps, read.eval_steps

    assert schedule("steps = 50", epochs=2) == (2, 0, 0)
    assert schedule("steps = 50\neval_steps = 5", epochs=2) == (2, 0, 5)
    assert schedule("epochs = 3", steps=50) == (1, 50, 10_000)
    assert schedule("epochs = 3\nsteps = 50", epochs=2, steps=5) == (2, 5, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"loss": "softmax"},
            "the loss softmax compares the papers of a list; list_negatives must",
        ),
        ({"distill": 1}, "distill compares the papers of a list"),
        ({"first_stage_weight": 1}, "first_stage_weight adds to the logits of a list; list_neg"),
        ({"warm_steps": 1}, "warm_steps needs a teacher: encoder, fused, or the folder"),
        ({"loss": "margin-mse", "list_negatives": 1}, "the loss margin-mse needs a teacher"),
        ({"query_tokens": 500}, "query_tokens must be from 8 to 448, got 500"),
        ({"recipe": "best"}, "recipe must be paper, paper-small, strong; got 'best'"),
        ({"distill": float("nan")}, "distill must be a finite number, got nan"),
        ({"distill": float("inf")}, "distill must be a finite number, got inf"),
        ({"distill": -0.5}, "distill must be at least 0, got -0.5"),
        ({"precision": "auto"}, "precision is now named dtype"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"micro": -1}, "micro must be at least 0, got -1"),
        ({"teacher": " "}, "teacher is empty; name one, or none"),
    ],
)
def test_a_setting_that_cannot_be_is_one_clear_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RerankerTraining.of(given)


def test_the_settings_that_are_shipped_can_be() -> None:
    folder = Path(__file__).parent.parent / "experiments" / "reranker" / "trainings"

    read = {file.stem: RerankerTraining.read(file, {}) for file in folder.glob("*.toml")}

    assert read["vis_leak_positives"].positives == "all"
    assert read["vis_leak_negatives"].negatives == "random"


# --- training


@pytest.fixture(scope="session")
def trained(
    sample_index: IndexFolder, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A model of lists, trained on the sample."""
    output = tmp_path_factory.mktemp("trained") / "reranker"
    train_reranker(sample_index, output, broken_off(base))
    return output


def broken_off(base: Path) -> RerankerTraining:
    return lists(base, epochs=2, examples=1)


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def told(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "training.json").read_text())


@pytest.mark.parametrize("loss", ["softmax", "bce", "ranknet", "lambda", "margin-mse"])
def test_every_loss_trains(
    sample_index: IndexFolder, base: Path, tmp_path: Path, loss: str
) -> None:
    how = lists(base, loss=loss, teacher="fused", distill=0.5, dev_queries=0, queries=20, steps=3)

    train_reranker(sample_index, tmp_path / "m", how)

    assert told(tmp_path / "m")["best_step"] == 3


def test_training_lowers_the_loss_and_tells_its_curve(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    titles = " ".join(sample_index.papers.titles()).lower().split()
    words = sorted({word for word in titles if word.isalpha()})
    base = tiny_bert(tmp_path / "base", words=words)
    how = quick(
        base, depth=10, queries=30, epochs=6, learning_rate=5e-3, dropout=0.0,
        attention_dropout=0.0, query_tokens=16, candidate_tokens=16,
    )  # fmt: skip
    said: list[str] = []

    report = train_reranker(sample_index, tmp_path / "m", how, log=said.append)

    losses = [point.loss or 0 for point in report.history[1:]]
    assert losses[-1] < losses[0] - 0.05
    assert said[1].startswith("first stage: dev MRR 0.")
    assert any(line.startswith("step 5: loss 0.") for line in said)
    curve = told(tmp_path / "m")["loss_curve"]
    assert [step for step, _ in curve[:2]] == [5, 10]
    assert report.history[-1].items_per_second


def test_with_the_first_stage_added_the_loss_starts_below_that_of_an_untrained_model(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    losses = dict[float, float | None]()
    for weight in (0.0, 1.0):
        how = lists(base, loss="softmax", first_stage_weight=weight, dev_queries=0, steps=1)
        losses[weight] = (
            train_reranker(sample_index, tmp_path / "m", how, force=True).history[-1].loss
        )

    assert (losses[1.0] or 0) < (losses[0.0] or 0)


def test_a_model_that_adds_to_the_first_stage_records_its_weight(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    weights = dict[float, float]()
    for first_stage_weight in (0.0, 1.0):
        how = lists(
            base,
            loss="softmax",
            first_stage_weight=first_stage_weight,
            steps=1,
            selection_metric="mixed",
        )
        report = train_reranker(sample_index, tmp_path / "m", how, force=True)
        weights[first_stage_weight] = read_reranker_spec(tmp_path / "m").weight

    assert weights[0.0] == 1
    assert weights[1.0] < 1  # an untrained model alone is worse than the first stage
    assert (report.history[-1].dev_mixed or 0) >= (report.history[0].dev_f1 or 0)


def test_the_recorded_weight_serves_both_measures() -> None:
    """Ten queries of 40 candidates in the first stage's order; the scores know a little of what is cited."""
    rng = np.random.default_rng(3)
    cited = rng.random(400) < 0.15
    lists = Lists(np.arange(0, 401, 40), np.tile(np.arange(40, dtype=np.int32), 10))
    first = np.tile(np.linspace(1, 0, 40, dtype=np.float32), 10)  # already scaled to [0, 1]
    dev = RerankerDev(
        queries=("",) * 10,
        candidates=CandidateLists(lists, first, np.zeros(400, np.float32)),
        cited=cited,
        gold=cited.reshape(10, 40).sum(axis=1),
    )
    scores = (rng.standard_normal(400) + cited).astype(np.float32)

    spec = dev.calibrated(RerankerSpec(), scores, adds=True)

    assert spec.scale is not None and spec.offset is not None
    p = 1 / (1 + np.exp(-(spec.scale * scores.astype(np.float64) + spec.offset)))
    measures = {w / 20: dev.ranked(w / 20 * p + (1 - w / 20) * first) for w in range(21)}
    f1, mrr = measures[spec.weight]
    assert f1 * mrr == max(one * other for one, other in measures.values())
    best_f1 = max(one for one, _ in measures.values())
    assert f1 < best_f1  # the weight of the best F1 alone is another
    assert dev.calibrated(RerankerSpec(), scores, adds=False).weight == RerankerSpec().weight


def test_a_warm_start_learns_the_teachers_scores_and_no_labels(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    how = lists(
        base, teacher="fused", warm_steps=10_000, epochs=4, learning_rate=3e-3, queries=10,
        dev_queries=0, dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip

    report = train_reranker(sample_index, tmp_path / "m", how)

    losses = [point.loss or 0 for point in report.history]
    assert losses[-1] < losses[0]


def test_measures_without_a_gain_end_it(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    how = quick(base, steps=40, eval_steps=2, patience=2, learning_rate=1e-12, queries=20)

    report = train_reranker(sample_index, tmp_path / "m", how)

    assert [point.step for point in report.history] == [0, 2, 4, 6]
    assert report.best == 2


@pytest.mark.slow  # another test resumes checkpoints between evaluations
def test_going_on_after_a_stop_gives_the_weights_of_an_unbroken_training(
    sample_index: IndexFolder,
    base: Path,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints_every(monkeypatch, 3)
    how, output = broken_off(base), tmp_path / "m"

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("training", 5):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_reranker(sample_index, output, how, progress=stop)
    last = Workspace.for_model(output).checkpoint()
    assert last is not None and last.name == "checkpoint-3"
    with pytest.raises(ConfigError, match="started with other settings: depth was 30, is 20"):
        train_reranker(sample_index, output, replace(how, depth=20), resume=True)
    said: list[str] = []
    train_reranker(sample_index, output, how, resume=True, log=said.append)

    assert said[0] == "resuming from checkpoint-3"
    one, other = weights(output), weights(trained)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert read_reranker_spec(output) == read_reranker_spec(trained)
    assert not Workspace.for_model(output).folder.exists()


def test_checkpoints_between_evaluations_are_gone_on_from(
    sample_index: IndexFolder, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints_every(monkeypatch, 2)
    how = quick(base, steps=4, eval_steps=4, queries=20)

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("training", 3):
            raise KeyboardInterrupt

    train_reranker(sample_index, tmp_path / "whole", how)
    with pytest.raises(KeyboardInterrupt):
        train_reranker(sample_index, tmp_path / "broken", how, progress=stop)
    last = Workspace.for_model(tmp_path / "broken").checkpoint()
    assert last is not None and last.name == "checkpoint-2"
    report = train_reranker(sample_index, tmp_path / "broken", how, resume=True)

    assert [point.step for point in report.history] == [0, 4]
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "broken")
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("dev_queries", [0, 5])
def test_the_last_update_is_measured_though_it_is_no_multiple(
    sample_index: IndexFolder, base: Path, tmp_path: Path, dev_queries: int
) -> None:
    how = quick(base, steps=5, eval_steps=3, dev_queries=dev_queries, queries=10, log_steps=100)

    report = train_reranker(sample_index, tmp_path / "m", how)

    assert [point.step for point in report.history if point.step] == [3, 5]
    assert report.best in ({3, 5} if dev_queries else {5})
    assert all(point.loss for point in report.history if point.step)


def test_how_much_is_to_be_done_is_said_and_how_long_it_takes(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    said: list[str] = []

    train_reranker(
        sample_index, tmp_path / "m", quick(base, steps=14, dev_queries=0), log=said.append
    )

    assert said[0] == "14 updates of 16 pairs: 224 pairs"
    assert len([s for s in said if s.endswith(" seconds to go, without the evaluations")]) == 1
    assert planned_updates(5, lists(base)) == "5 updates of 32 pairs: 160 pairs"  # 8 lists of 4
    paper, strong = RerankerTraining.of({}), RerankerTraining.of({"recipe": "strong"})
    assert remaining_time(3 * DAY, paper, on_cpu=True) == (
        "about 3 days to go, without the evaluations; on a CPU --recipe strong or paper-small is faster"
    )
    for how, on_cpu in ((paper, False), (strong, True)):
        assert remaining_time(3 * DAY, how, on_cpu=on_cpu).endswith("evaluations")
    assert (
        remaining_time(DAY / 2, paper, on_cpu=True)
        == "about 12 hours to go, without the evaluations"
    )


def test_a_cross_encoders_scores_are_spread_but_for_their_differences(
    data: TrainingData, found: CandidateLists, base: Path
) -> None:
    one = known(data, found, quick(base))
    scores = np.arange(len(found.scores), dtype=np.float32) * 7

    both = with_teacher(one, scores)

    assert both.raw.tolist() == scores.tolist()
    first = both.teacher[: found.lists.lengths[0]]
    assert (first.mean(), first.std()) == pytest.approx((0, 1), abs=1e-4)


TWO = """
import sys
from pathlib import Path
from citerec.folder import open_index
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.train import train_reranker
index, output, settings = map(Path, sys.argv[1:])
said = []
report = train_reranker(open_index(index), output, RerankerTraining.read(settings, {}), log=said.append)
print(len(said) > 0, report.best, [point.dev_mrr for point in report.history][1:], flush=True)
"""


@pytest.mark.slow
def test_several_processes_train_one_model_which_the_first_measures(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    (tmp_path / "two.py").write_text(TWO)
    (tmp_path / "t.toml").write_text(
        f'model = "{base}"\nsteps = 4\neval_steps = 2\nbatch = 16\ndev_queries = 5\nqueries = 10\nthreads = 1\n'
        'device = "cpu"\nquery_tokens = 32\ncandidate_tokens = 32\nlearning_rate = 1e-3\n'
    )
    given = [sample_index.path, tmp_path / "m", tmp_path / "t.toml"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]

    ran = subprocess.run(
        [*command, str(tmp_path / "two.py"), *map(str, given)],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    lines = sorted(ran.stdout.splitlines())
    assert [line.split(" ")[0] for line in lines] == ["False", "True"]  # one speaks
    assert lines[0].split(" ", 1)[1] == lines[1].split(" ", 1)[1]
    assert model_faults(tmp_path / "m") == []


def test_a_cross_encoder_of_sentence_transformers_is_no_encoder(
    trained: Path, tiny_model: str, tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    CrossEncoder(str(trained), device="cpu").save_pretrained(str(tmp_path / "cross"))
    SentenceTransformer(tiny_model, device="cpu").save_pretrained(str(tmp_path / "plain"))

    assert (tmp_path / "plain" / "modules.json").is_file()
    assert is_encoder(tmp_path / "plain") and not is_encoder(tmp_path / "cross")
    (tmp_path / "cross" / "modules.json").write_text("[]")  # as its version 6 has it
    assert not is_encoder(tmp_path / "cross") and not is_encoder(trained)


def test_a_cross_encoder_teaches(
    sample_index: IndexFolder, base: Path, trained: Path, tmp_path: Path
) -> None:
    how = lists(
        base, loss="margin-mse", teacher=str(trained), dev_queries=0, queries=10, dtype="float32"
    )  # fmt: skip

    train_reranker(sample_index, tmp_path / "m", how)

    settings = told(tmp_path / "m")["provenance"]["settings"]
    assert settings["teacher"] == "reranker"  # and not where it lies
    assert was_trained_so(tmp_path / "m", sample_index, how)
    other = tiny_reranker(tmp_path / "other" / "reranker")
    assert not was_trained_so(tmp_path / "m", sample_index, replace(how, teacher=str(other)))


def test_what_a_teacher_was_trained_on_counts_for_its_student(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    papers, splits = data_of(sample_index)

    def student(name: str, corpus: str, splits: str) -> Path:
        teacher = tiny_reranker(tmp_path / "teachers" / name)
        learned = {"corpus_sha256": "of its base", "splits_sha256": "s"}
        record = {"corpus_sha256": corpus, "splits_sha256": splits, "base_indexes": [learned]}
        (teacher / "training.json").write_text(json.dumps(record))
        seal_model(teacher)
        how = lists(base, teacher=str(teacher), distill=0.5, dev_queries=0, queries=5, steps=1)
        train_reranker(sample_index, tmp_path / name, how)
        return tmp_path / name

    same, other = student("same", papers, splits), student("other", papers, "other splits")

    assert not trained_on_other_splits(same, sample_index)
    assert trained_on_other_splits(other, sample_index)  # its train queries may be test queries
    assert not trained_on_other_data(other, sample_index)
    assert [one["corpus_sha256"] for one in told(other)["base_indexes"]] == [papers, "of its base"]


def test_the_encoder_of_an_index_teaches_if_its_similarity_or_the_fused_order_does(
    sample_index: IndexFolder, base: Path, tiny_model: str
) -> None:
    settings = {"encoder": {"source": tiny_model}}
    manifest = replace(sample_index.manifest, settings=settings)
    embedded = replace(sample_index, manifest=manifest)

    def folders(index: IndexFolder, teacher: str) -> list[Path]:
        return teacher_folders(index, quick(base, teacher=teacher), print)

    assert folders(embedded, "encoder") == folders(embedded, "fused") == [Path(tiny_model)]
    assert folders(embedded, str(base)) == [base]
    assert folders(embedded, "none") == folders(sample_index, "fused") == []


# --- the model folder

PAPER = Paper(id="b", title="A graph", abstract="Of citations.")
QUERY = Query(id="a", title="Neural ranking", abstract="We rank papers.")


def test_an_encoder_teaches_how_close_it_puts_query_and_candidate(
    data: TrainingData, found: CandidateLists, base: Path, tiny_model: str
) -> None:
    how = quick(base, teacher=tiny_model, warm_steps=1, list_negatives=1, dtype="float32")
    one = known(data, found, how)

    scores = taught(one, how, lambda *_: None, print)

    encoder = open_encoder(tiny_model, EncodeConfig(precision=Precision.FLOAT32))
    rows = [int(data.queries[0]), *one.candidates.lists[0].tolist()]
    papers = data.index.papers.at(rows)
    vectors = encoder.encode([papers[row] for row in rows])
    close = vectors[1:] @ vectors[0]
    mine = scores[: len(close)]
    assert mine == pytest.approx((close - close.mean()) / close.std(), abs=2e-3)


def test_the_model_opens_in_transformers_and_in_sentence_transformers_with_the_same_scores(
    sample_index: IndexFolder, trained: Path
) -> None:
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from citerec.encode.config import EncodeConfig, Precision
    from citerec.rerank.cross_encoder import open_cross_encoder

    texts = [(pair_text(QUERY), pair_text(PAPER)), ("a graph", "papers")]
    theirs = CrossEncoder(str(trained), device="cpu").predict(texts)
    tokenizer = AutoTokenizer.from_pretrained(trained)
    model = AutoModelForSequenceClassification.from_pretrained(trained).eval()
    cut = tokenizer(*zip(*texts, strict=True), padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model(**cut).logits[:, 0].numpy()
    how = EncodeConfig(precision=Precision.FLOAT32, threads=1, backend="torch")  # pyright: ignore
    ours = open_cross_encoder(str(trained), sample_index, how)
    row = np.array([3], np.int32)
    [scores] = ours.score(sample_index, [QUERY], [row])
    given = (pair_text(QUERY), pair_text(sample_index.papers[3]))

    assert theirs == pytest.approx(logits, abs=1e-5)
    pair = [[*tokenizer(t, add_special_tokens=False)["input_ids"]] for t in given]
    ids = [2, *pair[0][:30], 3, *pair[1][:31], 3]
    types = [0] * (2 + len(pair[0][:30])) + [1] * (1 + len(pair[1][:31]))
    with torch.inference_mode():
        one = model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits
    assert float(scores[0]) == pytest.approx(float(one), abs=1e-5)


def test_the_model_folder_tells_its_story_and_names_no_place_of_this_machine(
    trained: Path, base: Path
) -> None:
    card, spec = (trained / "README.md").read_text(), read_reranker_spec(trained)

    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    assert told(trained)["base"] == "base"
    assert told(trained)["corpus_sha256"] in card
    assert (spec.query_tokens, spec.candidate_tokens) == (32, 32)
    assert (spec.scale, spec.offset) != (1, 0)
    assert model_faults(trained) == []
    for file in trained.rglob("*.[jm]*"):
        assert str(base.parent).encode() not in file.read_bytes()


def test_a_model_is_known_by_what_it_was_trained_on_and_how(
    sample_index: IndexFolder, base: Path, trained: Path, tmp_path: Path
) -> None:
    how = broken_off(base)

    assert was_trained_so(trained, sample_index, how)
    assert not was_trained_so(trained, sample_index, replace(how, seed=1))
    assert not was_trained_so(tmp_path / "nowhere", sample_index, how)
    before = (
        tmp_path / "before"
    )  # as earlier versions left it: it does not tell the base model's weights
    copytree(trained, before)
    record = told(before)
    assert record.pop("weights") and record.pop("taught_by") is None
    (before / "training.json").write_text(json.dumps(record))
    other = tiny_bert(tmp_path / "other" / "base", seed=1)
    assert was_trained_so(before, sample_index, replace(how, model=str(other)))
    assert not was_trained_so(trained, sample_index, replace(how, model=str(other)))
    with pytest.raises(ModelExistsError, match="already exists; replace it with --force"):
        train_reranker(sample_index, trained, how)
    with pytest.raises(
        ConfigError, match="is no model that citerec trained; choose another folder"
    ):
        train_reranker(sample_index, base, how, force=True)


@pytest.mark.parametrize(("easy_first", "known"), [(0.0, True), (0.5, False)])
def test_a_model_of_an_earlier_version_is_known_if_its_former_settings_had_the_value_of_today(
    sample_index: IndexFolder,
    base: Path,
    trained: Path,
    tmp_path: Path,
    easy_first: float,
    known: bool,
) -> None:
    before = tmp_path / "before"
    copytree(trained, before)
    record = told(before)
    settings = record["provenance"]["settings"]
    settings["precision"] = settings.pop("dtype")
    settings |= RerankerTraining.REMOVED | {"easy_first": easy_first}
    (before / "training.json").write_text(json.dumps(record))

    assert was_trained_so(before, sample_index, broken_off(base)) is known


def test_a_damaged_intermediate_result_is_one_clear_line(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what == "training":
            raise KeyboardInterrupt

    how, output = quick(base, queries=20), tmp_path / "m"
    with pytest.raises(KeyboardInterrupt):
        train_reranker(sample_index, output, how, progress=stop)
    saved = Workspace.for_model(output).folder / "candidates.npz"
    saved.write_bytes(saved.read_bytes()[:-40])

    with pytest.raises(ConfigError, match=r"candidates.npz is damaged .*run again without"):
        train_reranker(sample_index, output, how, resume=True)


def test_a_trained_model_can_be_trained_further(
    sample_index: IndexFolder, trained: Path, tmp_path: Path
) -> None:
    before = load_base(trained, quick(trained)).model.classifier.weight.detach().numpy()

    assert np.array_equal(before, weights(trained)["classifier.weight"])


def test_the_command_line_trains_and_says_what_is_wrong(
    sample_index: IndexFolder, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "t.toml"
    settings.write_text(
        "query_tokens = 16\ncandidate_tokens = 16\ndev_queries = 5\ndev_depth = 20\nqueries = 10\n"
    )
    common = ["train-reranker", "--index", str(sample_index.path), "--model", str(base)]
    common += ["--config", str(settings), "--output", str(tmp_path / "m"), "--threads", "1"]

    assert run([*common, "--steps", "2", "--batch", "8"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == str(tmp_path / "m")
    assert "dev F1@20 (step 2)" in out
    assert "citerec: step 2: loss" in err
    assert run([*common, "--steps", "2"]) == 2
    assert run([*common, "--force", "--recipe", "best"]) == 2
    assert "recipe must be paper" in capsys.readouterr().err
    assert RerankerSpec(query_tokens=16, candidate_tokens=16).tokens == 32
