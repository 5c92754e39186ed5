"""The list losses of the cross-encoder: pure differentiable functions of logits that return one value per list.

Logits have shape (lists, papers); `there` flags the places that hold a paper, same shape.
"""

from typing import Any

MU = 10.0  # weight of NDCG-Loss2 relative to LambdaRank, as in the source
FAR = -1e9  # the logit of an empty place


def bce(logits: Any, cited: Any, there: Any) -> Any:
    """Return the mean binary cross-entropy of each list; `cited` is 1 for a cited paper, else 0."""
    import torch

    each = torch.nn.functional.binary_cross_entropy_with_logits(logits, cited, reduction="none")
    return _mean(each, there)


def softmax(logits: Any, cited: Any, there: Any) -> Any:
    """Return the mean of -log softmax over the cited papers of each list; 0 for a list without one.

    Source: Cao et al., ICML 2007 (ListNet), https://doi.org/10.1145/1273496.1273513.
    """
    import torch

    shares = torch.log_softmax(logits.masked_fill(~there, FAR), -1)
    return -(shares * cited).sum(-1) / cited.sum(-1).clamp(min=1)


def ranknet(logits: Any, cited: Any, there: Any) -> Any:
    """Return the mean of -log sigmoid(cited - other) over all pairs of a cited and another paper.

    Source: Burges et al., ICML 2005, https://doi.org/10.1145/1102351.1102363.
    """
    import torch

    gaps = logits[:, :, None] - logits[:, None, :]
    return _mean(-torch.nn.functional.logsigmoid(gaps), _pairs(cited, there))


def lambda_loss(logits: Any, cited: Any, there: Any) -> Any:
    """Return NDCG-Loss2++ of LambdaLoss: RankNet in bits, weighted by the change of nDCG if a pair is swapped.

    Source: Wang et al., CIKM 2018, https://doi.org/10.1145/3269206.3271784.
    """
    import torch

    ranked, order = logits.masked_fill(~there, FAR).sort(descending=True, dim=-1)
    cited, there = cited.gather(1, order), there.gather(1, order)
    count = logits.shape[1]
    discount = torch.log2(torch.arange(count + 1, device=logits.device) + 2.0)
    best = (cited.sort(descending=True, dim=-1).values / discount[:count]).sum(-1)
    gain = cited / best.clamp(min=1e-10)[:, None]
    gains = (gain[:, :, None] - gain[:, None, :]).abs()
    places = torch.arange(count, device=logits.device)
    apart = (places[:, None] - places[None, :]).abs()  # discount[d] is that of rank d + 1
    inverse = 1 / discount
    near = (inverse[(apart - 1).clamp(min=0)] - inverse[apart]).abs()
    far = (inverse[:count, None] - inverse[None, :count]).abs()
    weights = (MU * near + far)[None] * gains
    gaps = ranked[:, :, None] - ranked[:, None, :]
    bits = -torch.nn.functional.logsigmoid(gaps) / torch.log(torch.tensor(2.0))
    return _mean(weights * bits, _pairs(cited, there))


def margin_mse(logits: Any, cited: Any, there: Any, teacher: Any) -> Any:
    """Return the mean squared difference of the score margins of model and teacher.

    The margins are between a cited paper and another paper of the list.

    Source: Hofstätter et al., 2020, https://arxiv.org/abs/2010.02666.
    """
    lead = logits[:, :, None] - logits[:, None, :]
    target = teacher[:, :, None] - teacher[:, None, :]
    return _mean((lead - target) ** 2, _pairs(cited, there))


def distilled(logits: Any, teacher: Any, there: Any) -> Any:
    """Return KL(softmax(teacher) || softmax(logits)) of each list."""
    import torch

    target = torch.log_softmax(teacher.masked_fill(~there, FAR), -1)
    predicted = torch.log_softmax(logits.masked_fill(~there, FAR), -1)
    return (target.exp() * (target - predicted)).sum(-1)


def regressed(logits: Any, teacher: Any, there: Any) -> Any:
    """Return the mean squared difference of the logits of each list and the teacher's scores."""
    return _mean((logits - teacher) ** 2, there)


def _pairs(cited: Any, there: Any) -> Any:
    """Return the pairs of a cited and another paper, shape (lists, papers, papers)."""
    return (cited[:, :, None] > cited[:, None, :]) & there[:, :, None] & there[:, None, :]


def _mean(values: Any, chosen: Any) -> Any:
    """Return the mean of the chosen values of each list; 0 if there are none."""
    total = values.masked_fill(~chosen, 0.0).flatten(1).sum(1)
    return total / chosen.flatten(1).sum(1).clamp(min=1)
