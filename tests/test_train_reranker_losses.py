"""The losses of lists, held against hand arithmetic and against sentence-transformers' own."""

from typing import Any

import numpy as np
import pytest

from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.losses import (
    bce,
    distilled,
    lambda_loss,
    margin_mse,
    ranknet,
    regressed,
    softmax,
)
from citerec.train.reranker.net import loss_of


def tensors(*arrays: Any) -> list[Any]:
    import torch

    return [torch.tensor(array) for array in arrays]


def one_list() -> list[Any]:
    """The second of two papers is cited; a third place is empty."""
    return tensors([[1.0, 3.0, 7.0]], [[0.0, 1.0, 0.0]], [[True, True, False]])


def test_losses_of_one_list_by_hand() -> None:
    logits, cited, there = one_list()
    e = np.exp

    assert bce(logits, cited, there).tolist() == pytest.approx(
        [(np.log(1 + e(1)) + np.log(1 + e(-3))) / 2]
    )
    assert softmax(logits, cited, there).tolist() == pytest.approx([-np.log(e(3) / (e(1) + e(3)))])
    assert ranknet(logits, cited, there).tolist() == pytest.approx([np.log(1 + e(-2))])
    teacher = tensors([[0.0, 1.0, 9.0]])[0]
    assert margin_mse(logits, cited, there, teacher).tolist() == pytest.approx([(2 - 1) ** 2])
    assert regressed(logits, teacher, there).tolist() == pytest.approx([(1**2 + 2**2) / 2])


def test_the_model_learns_what_the_first_stage_does_not_know() -> None:
    logits, cited, there = one_list()
    [first_stage] = tensors([[2.0, -1.0, 0.0]])
    config = RerankerTraining.of({"recipe": "strong", "first_stage_weight": 2.0})

    loss = loss_of(
        logits, config, warm=False, cited=cited, there=there, teacher=logits, raw=logits,
        first_stage=first_stage,
    )  # fmt: skip

    e = np.exp  # 1 + 2 * 2 = 5 for the first paper, 3 + 2 * -1 = 1 for the cited one
    assert loss.tolist() == pytest.approx([-np.log(e(1) / (e(5) + e(1)))], rel=1e-5)


def test_the_order_of_the_teacher_is_learned_whole() -> None:
    logits, _, there = one_list()
    same, other = distilled(logits, logits, there), distilled(
        logits, -logits, there
    )  # fmt: skip
    p = 1 / (1 + np.exp(-2))  # of the first paper for a teacher of -1, -3, and of the second here
    expected = p * np.log(p / (1 - p)) + (1 - p) * np.log((1 - p) / p)

    assert same.tolist() == pytest.approx([0], abs=1e-6)
    assert other.tolist() == pytest.approx([expected], rel=1e-5)


def test_a_list_without_a_cited_paper_costs_nothing_but_in_bce() -> None:
    logits, _, there = one_list()
    nothing = logits * 0

    for loss in (softmax, ranknet, lambda_loss):
        assert loss(logits, nothing, there).tolist() == [0]
    assert bce(logits, nothing, there).item() > 0


class Fixed:
    """Stands in for the model of sentence-transformers' losses: its scores are given."""

    num_labels, device = 1, "cpu"

    def __init__(self, logits: Any) -> None:
        self._logits = list(logits)

    def preprocess(self, pairs: Any, **_: Any) -> dict[str, Any]:
        return {"count": len(pairs)}

    def __call__(self, tokens: dict[str, Any]) -> dict[str, Any]:
        import torch

        count = int(tokens["count"])
        mine, self._logits = self._logits[:count], self._logits[count:]
        return {"scores": torch.tensor(mine)}


@pytest.mark.parametrize("positives", [1, 2])
def test_ranknet_and_lambda_are_those_of_sentence_transformers(positives: int) -> None:
    import torch
    from sentence_transformers.cross_encoder.losses import LambdaLoss, RankNetLoss

    logits = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    cited = np.zeros((3, 5), np.float32)
    cited[:, :positives] = 1
    inputs = [["q"] * 3, [["d"] * 5] * 3]
    labels = [torch.from_numpy(row) for row in cited]
    ours = tensors(logits, cited, np.ones((3, 5), np.bool_))

    def theirs(kind: Any, **given: Any) -> float:
        loss = kind.__new__(kind)
        torch.nn.Module.__init__(loss)
        model: Any = Fixed(logits.ravel())
        kind.__init__(loss, model=model, mini_batch_size=0, **given)
        return float(loss(inputs, labels))

    assert float(ranknet(*ours).mean()) == pytest.approx(
        theirs(RankNetLoss, reduction_log="natural"), rel=1e-5
    )
    assert float(lambda_loss(*ours).mean()) == pytest.approx(theirs(LambdaLoss), rel=1e-5)


def test_what_is_not_there_gets_no_gradient() -> None:
    logits, cited, there = one_list()
    teacher = logits.clone()

    for loss in (bce, softmax, ranknet, lambda_loss):
        mine = logits.clone().requires_grad_()
        loss(mine, cited, there).sum().backward()
        assert mine.grad[0, 2] == 0 and mine.grad[0, 1] != 0
    mine = logits.clone().requires_grad_()
    distilled(mine, -teacher, there).sum().backward()
    assert mine.grad[0, 2] == 0 and mine.grad[0, 1] != 0
