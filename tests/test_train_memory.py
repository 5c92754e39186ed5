"""Learning over a memory: every paper as it was read last stands against every query."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.encoder_training import checkpoints_every, quick, records, train_mrr
from support.tiny import tiny_bert

from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.folder import IndexFolder
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder import memory as encoder_memory
from citerec.train.encoder import memoryloss
from citerec.train.encoder.losses import similarity
from citerec.train.encoder.memory import Memory, learners
from citerec.train.encoder.memoryloss import MemoryScores
from citerec.train.encoder.train import train_encoder
from citerec.train.lists import Lists

Build = Callable[..., IndexFolder]


@pytest.fixture
def graph(build: Build) -> TrainingData:
    """Train queries b … f of the years 2001 to 2005 over the papers a … f: b cites a; c a, b; d c; e b, d; f e."""
    return load_training_data(build(records()))


def memory_of(data: TrainingData) -> Memory:
    rows = learners(data, data.gold, seed=0, most=100)
    return Memory(data, data.gold, rows, seed=0)


def ids(data: TrainingData, memory: Memory, places: Any) -> list[str]:
    return data.index.papers.ids_at(memory.rows[places].tolist())


def test_the_memory_holds_queries_and_what_they_cite_and_no_dev_or_test_query(
    graph: TrainingData,
) -> None:
    rows = learners(graph, graph.gold, seed=0, most=100)

    assert graph.index.papers.ids_at(rows.tolist()) == ["a", "b", "c", "d", "e", "f"]


def test_a_small_memory_takes_some_of_them_always_the_same(graph: TrainingData) -> None:
    few = learners(graph, graph.gold, seed=0, most=3)

    assert len(few) == 3
    assert few.tolist() == learners(graph, graph.gold, seed=0, most=3).tolist()


def test_each_query_stands_against_what_it_might_have_cited(graph: TrainingData) -> None:
    memory = memory_of(graph)

    compared = memory.comparison(memory.rows[:2])

    queries = ids(graph, memory, compared.queries)
    papers = ids(graph, memory, np.arange(len(memory)))
    assert queries == ["b", "c", "d", "e", "f"]
    allowed = {q: {p for p, a in zip(papers, row, strict=True) if a} for q, row in
               zip(queries, compared.allowed, strict=True)}  # fmt: skip
    assert allowed == {  # of no later year, not itself
        "b": {"a"},
        "c": {"a", "b"},
        "d": {"a", "b", "c"},
        "e": {"a", "b", "c", "d"},
        "f": {"a", "b", "c", "d", "e"},
    }
    positives = [
        (queries[owner], papers[target])
        for owner, target in zip(compared.segment_ids, compared.targets, strict=True)
    ]
    assert sorted(positives) == [
        ("b", "a"),
        ("c", "a"),
        ("c", "b"),
        ("d", "c"),
        ("e", "b"),
        ("e", "d"),
        ("f", "e"),
    ]


def test_a_query_weighs_as_the_root_of_how_much_it_cites(graph: TrainingData) -> None:
    memory = memory_of(graph)

    compared = memory.comparison(memory.rows[:1])

    total = 3 * 1 + 2 * 2**0.5  # b, d, f cite one paper each, c and e two
    of_c = compared.weights[compared.segment_ids == 1]
    assert compared.weights.sum() == pytest.approx(1)
    assert of_c.tolist() == pytest.approx([2**0.5 / 2 / total] * 2)


def test_of_many_queries_those_come_first_whom_the_step_concerns(
    graph: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_of(graph)
    every = memory.comparison(graph.queries[:1])
    monkeypatch.setattr(encoder_memory, "MEMORY_QUERIES", 4)
    d, e = (graph.index.papers.rows_of([name]) for name in "de")

    assert {"d", "e"} <= {*ids(graph, memory, memory.comparison(d).queries)}  # who cites d is e
    compared = memory.comparison(e)

    asked = ids(graph, memory, compared.queries)
    assert len(asked) == 4
    assert {"e", "f"} <= {*asked}
    assert compared.queries.tolist() == memory.comparison(e).queries.tolist()
    total = dict(zip("bcdef", np.bincount(every.segment_ids, every.weights), strict=True))
    weighs = dict(zip(asked, np.bincount(compared.segment_ids, compared.weights), strict=True))
    assert weighs["e"] == pytest.approx(total["e"])
    [one, other] = {*asked} - {"e", "f"}  # two of b, c and d stand for all three
    assert weighs[one] == pytest.approx(total[one] * 3 / 2)
    assert weighs[other] == pytest.approx(total[other] * 3 / 2)


def test_the_loss_is_minus_the_log_of_the_share_of_each_positive() -> None:
    import torch

    scores = torch.tensor([[0.2, 0.1, 0.0], [0.3, 0.2, 0.1]])
    papers = torch.cat([torch.eye(3), scores])  # the queries are the last two
    denied = torch.zeros(2, 2, dtype=torch.bool)
    compared = {
        "segment_ids": torch.tensor([0, 1, 1]),
        "targets": torch.tensor([0, 0, 1]),
        "weights": torch.tensor([0.5, 0.25, 0.25]),
        "allowed": torch.tensor([[True, True, False], [True, True, True]]),
    }
    compared["allowed"] = torch.cat([compared["allowed"], denied], 1)

    over_memory = MemoryScores(Similarity.COSINE, 0.1, papers, torch.tensor([3, 4]), compared)
    loss = over_memory.loss(papers[:1], torch.tensor([0]))

    first = np.exp(2) / (np.exp(2) + np.exp(1))  # the third paper does not stand against it
    rest = np.exp([3, 2]) / np.exp([3, 2, 1]).sum()
    assert float(loss) == pytest.approx(-0.5 * np.log(first) - 0.25 * np.log(rest).sum())


@pytest.mark.parametrize("kind", Similarity)
def test_the_gradient_of_the_loss_is_what_torch_derives_from_all_scores(
    kind: Similarity, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(memoryloss, "BLOCK", 3)
    rng = torch.Generator().manual_seed(0)
    papers = torch.randn(12, 4, generator=rng, dtype=torch.float64)
    live, queries = torch.tensor([7, 2, 9]), torch.tensor([0, 2, 3, 7, 8, 11, 1])
    vectors = papers[live].clone().requires_grad_()
    compared = {
        "segment_ids": torch.tensor([0, 0, 1, 2, 3, 4, 5, 6, 6]),
        "targets": torch.tensor([7, 2, 7, 9, 4, 2, 5, 9, 9]),
        "weights": torch.linspace(0.1, 0.9, 9, dtype=torch.float64),
        "allowed": torch.rand(7, 12, generator=rng) > 0.3,
    }
    compared["allowed"][compared["segment_ids"], compared["targets"]] = True

    memory = papers.index_put((live,), vectors)
    logits = similarity(kind, memory[queries], memory) / 0.5
    logits = logits.masked_fill(~compared["allowed"], float("-inf"))
    terms = torch.log_softmax(logits, 1)[compared["segment_ids"], compared["targets"]]
    expected = -(compared["weights"] * terms).sum()
    [gradient] = torch.autograd.grad(expected, vectors)
    loss = MemoryScores(kind, 0.5, papers, queries, compared).loss(vectors, live)

    assert float(loss.detach()) == pytest.approx(float(expected.detach()))
    [found] = torch.autograd.grad(loss, vectors)
    assert found.numpy() == pytest.approx(gradient.numpy())


def test_training_over_the_memory_finds_citations_better(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    words = sorted({w for title in sample_index.papers.titles() for w in title.lower().split()})
    spec = EncoderSpec(pooling=Pooling.MEAN, similarity=Similarity.COSINE, max_tokens=24)
    base = tiny_bert(tmp_path / "base", words=[w for w in words if w.isalpha()], spec=spec)
    how = quick(base, recipe="memory", form="title", epochs=4, learning_rate=3e-3)

    report = train_encoder(sample_index, tmp_path / "m", how)

    losses = [epoch.loss or 0 for epoch in report.history[1:]]
    assert losses[-1] < losses[0] - 0.2
    assert train_mrr(sample_index, tmp_path / "m") > train_mrr(sample_index, base) + 0.1


@pytest.mark.slow  # the trainer resumes with any recipe; the memory's own state is rebuilt
def test_going_on_after_a_stop_gives_the_weights_of_an_unbroken_training(
    sample_index: IndexFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_memory, "MEMORY_QUERIES", 60)
    checkpoints_every(monkeypatch, 5)
    base = tiny_bert(tmp_path / "base")
    how = quick(base, recipe="memory", epochs=2)
    train_encoder(sample_index, tmp_path / "unbroken", how)

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("training", 8):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(sample_index, tmp_path / "broken", how, progress=stop)
    train_encoder(sample_index, tmp_path / "broken", how, resume=True)

    one, other = (load_file(tmp_path / n / "model.safetensors") for n in ("unbroken", "broken"))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not any("memory" in name for name in one)  # which is no part of the model


def test_lists_of_nothing_are_learned_from_by_nobody(graph: TrainingData) -> None:
    nothing = Lists.of(np.zeros(0, np.int64), np.zeros(0, np.int32), len(graph.queries))

    memory = Memory(graph, nothing, graph.queries, seed=0)

    assert len(memory.comparison(graph.queries[:2]).queries) == 0
