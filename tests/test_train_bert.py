"""BERT in training on a CPU: its own forward and backward pass is that of transformers' modules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.encoder_training import quick
from support.tiny import tiny_bert

from citerec.encode.batching import batches, even_batches
from citerec.folder import IndexFolder
from citerec.train.bert.attention import attend, attend_from_first
from citerec.train.bert.chunks import in_parallel
from citerec.train.bert.states import is_supported, states_of
from citerec.train.chunks import Chunk, chunked
from citerec.train.encoder.train import train_encoder

LENGTHS = (24, 24, 17, 16, 9, 5)  # tokens of each text
BUDGET = 48  # of a chunk: two texts of 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "base", layers=3)


def model_of(folder: Path, *, dropout: float = 0.0) -> Any:
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(folder, attn_implementation="eager").train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    return model


def chunks_of(model: Any, *, lengths: Sequence[int] = LENGTHS) -> list[Chunk]:
    rng = np.random.default_rng(0)
    tokens = [rng.integers(5, model.config.vocab_size, length).tolist() for length in lengths]
    return chunked(tokens, BUDGET, padding=0, most=128, firsts=[len(t) // 2 for t in tokens])[0]


def plain(model: Any, chunks: Sequence[Chunk], *, first: bool) -> list[Any]:
    states = [model(**chunk).last_hidden_state for chunk in chunks]
    return [of[:, :1] if first else of for of in states]


def ours(model: Any, chunks: Sequence[Chunk], *, first: bool) -> list[Any]:
    return states_of(model, chunks, first=first)


def gradients(how: Any, model: Any, *, first: bool) -> tuple[list[Any], dict[str, Any]]:
    """Return the states of real tokens, and the gradient of their weighted sum by each parameter."""
    import torch

    model.zero_grad()
    chunks = chunks_of(model)
    states = []
    for of, chunk in zip(how(model, chunks, first=first), chunks, strict=True):
        states.append(of[:, 0] if first else of[chunk["attention_mask"].bool()])
    flat = torch.cat(states).float()
    weights = torch.randn(flat.shape, generator=torch.Generator().manual_seed(1))
    (flat * weights).sum().backward()
    named = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return [flat.detach()], named


@pytest.mark.parametrize("first", [False, True])
def test_states_and_gradients_are_those_of_transformers(folder: Path, first: bool) -> None:
    model = model_of(folder)

    [expected], by_plain = gradients(plain, model, first=first)
    [states], by_ours = gradients(ours, model, first=first)

    assert is_supported(model)
    assert states.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert by_ours.keys() == by_plain.keys()
    for name, gradient in by_plain.items():
        assert by_ours[name].numpy() == pytest.approx(gradient.numpy(), rel=1e-3, abs=1e-5), name


def test_frozen_layers_get_no_gradient_and_change_no_other(folder: Path) -> None:
    model = model_of(folder)
    model.embeddings.requires_grad_(False)
    model.encoder.layer[0].requires_grad_(False)

    _, by_plain = gradients(plain, model, first=True)
    _, by_ours = gradients(ours, model, first=True)

    assert by_ours.keys() == by_plain.keys()
    assert not any(name.startswith("encoder.layer.0") for name in by_ours)
    for name, gradient in by_plain.items():
        assert by_ours[name].numpy() == pytest.approx(gradient.numpy(), rel=1e-3, abs=1e-5), name


def test_in_bfloat16_it_is_as_close_to_float32_as_transformers(folder: Path) -> None:
    import torch

    model = model_of(folder)
    _, exact = gradients(plain, model, first=False)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, by_plain = gradients(plain, model, first=False)
        _, by_ours = gradients(ours, model, first=False)

    def distance(found: dict[str, Any]) -> float:
        apart = sum(float((found[n] - exact[n]).norm() ** 2) for n in exact)
        return (apart / sum(float(g.norm() ** 2) for g in exact.values())) ** 0.5

    assert 0 < distance(by_ours) < max(1.5 * distance(by_plain), 0.02)


def test_threads_give_the_same_bits_each_time_and_the_gradients_of_one_thread(folder: Path) -> None:
    import torch

    model, before = model_of(folder), torch.get_num_threads()
    found: list[dict[str, Any]] = []
    try:
        for threads in (1, 2, 2, 3):
            torch.set_num_threads(threads)
            found.append(gradients(ours, model, first=False)[1])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)

    one, two, again, three = found
    for name, gradient in one.items():
        assert torch.equal(two[name], again[name]), name
        for other in (two, three):
            assert other[name].numpy() == pytest.approx(gradient.numpy(), rel=1e-3, abs=1e-5), name


def test_dropout_is_that_of_the_seed_and_changes_the_states(folder: Path) -> None:
    import torch

    model = model_of(folder, dropout=0.3)
    chunks, drawn = chunks_of(model), list[Any]()
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(torch.cat([of.flatten() for of in states_of(model, chunks, first=False)]))

    assert torch.equal(drawn[0], drawn[1])
    assert not torch.allclose(drawn[0], drawn[2])


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_backward_pass_of_attention_is_what_torch_derives(dropout: float) -> None:
    import torch

    torch.manual_seed(0)
    projected = torch.randn(2, 5, 3, 2, 4, dtype=torch.float64, requires_grad=True)
    padding = torch.zeros(2, 1, 5, dtype=torch.float64)
    padding[1, 0, 3:] = torch.finfo(torch.float64).min
    wanted = torch.randn(2, 5, 8, dtype=torch.float64)

    def derived(states: Any) -> Any:
        query, key, value = states.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(2, 3) / 2 + padding[:, None]  # the root of 4
        weights = torch.nn.functional.dropout(torch.softmax(scores, -1), dropout)
        return (weights @ value).transpose(1, 2).flatten(2)

    found: list[tuple[Any, Any]] = []

    def ours(states: Any) -> Any:
        return attend(states, padding, dropout)

    for how in (derived, ours):
        torch.manual_seed(1)
        out = how(projected)
        found.append((out.detach(), torch.autograd.grad(out, projected, wanted)[0]))

    for expected, got in zip(*found, strict=True):
        assert got.numpy() == pytest.approx(expected.numpy())


def test_attention_of_the_first_token_is_that_of_all_tokens() -> None:
    import torch

    torch.manual_seed(0)
    projected = torch.randn(2, 5, 3, 2, 4)
    query, keys, values = projected.unbind(2)

    first = attend_from_first(query[:, :1], keys, values, None, 0.0)

    assert first.numpy() == pytest.approx(attend(projected, None, 0.0)[:, :1].numpy(), abs=1e-6)


def test_other_models_keep_their_own_modules() -> None:
    from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

    few: dict[str, Any] = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
    few |= {"num_hidden_layers": 1, "vocab_size": 10}

    assert is_supported(BertModel(BertConfig(**few)))
    assert not is_supported(BertModel(BertConfig(**few, is_decoder=True)))
    assert not is_supported(RobertaModel(RobertaConfig(**few)))


def test_an_error_in_a_thread_is_the_error_of_the_step() -> None:
    import torch

    def fail(item: int) -> int:
        raise ValueError(f"item {item}")

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="item 0"):
            in_parallel(fail, [0, 1, 2])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_even_groups_share_the_tokens() -> None:
    lengths = [10] * 16  # 160 tokens, of which 60 fit a group

    assert [len(group) for group in batches(lengths, 60)] == [6, 6, 4]
    assert [len(group) for group in even_batches(lengths, 60)] == [4, 4, 4, 4]
    assert even_batches([70, 10], 60) == [[0], [1]]  # a long text is a group of its own
    assert even_batches([10], 60) == [[0]]


def test_half_batches_with_accumulation_give_the_weights_of_whole_batches(
    sample_index: IndexFolder, folder: Path, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file

    settings = {"batch": 16, "dropout": False, "dtype": "float32", "dev_queries": 0, "epochs": 1}
    for step in (16, 8):
        how = quick(folder, **settings, device_batch=step)
        train_encoder(sample_index, tmp_path / str(step), how)

    whole, halves = (load_file(tmp_path / n / "model.safetensors") for n in ("16", "8"))
    for name, weights in whole.items():
        # A bias of all keys changes no softmax, one of all vectors no distance: Adam enlarges the rounding.
        if name.endswith("key.bias") or name == "encoder.layer.2.output.LayerNorm.bias":
            continue
        assert halves[name] == pytest.approx(weights, abs=2e-4), name
