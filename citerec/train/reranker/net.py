"""The network that is trained: the model and its loss as one module."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from citerec.encode.model import check_positions, open_folder, refuse_missing
from citerec.errors import ConfigError, ModelError
from citerec.rerank.model import EXPANDER, KIND, RerankerParts
from citerec.rerank.pair import Specials
from citerec.rerank.spec import RerankerSpec
from citerec.train.reranker import losses
from citerec.train.reranker.batch import Chunk
from citerec.train.reranker.config import Loss, RerankerTraining


def load_base(folder: Path, config: RerankerTraining) -> RerankerParts:
    """Open what training begins with: a cross-encoder of one label, or any BERT-like model, which is given a head.

    Raises:
        ModelError: If it is no such model, or has too few positions.
        ConfigError: If more layers are to be frozen than it has.
    """
    spec = RerankerSpec(query_tokens=config.query_tokens, candidate_tokens=config.candidate_tokens)
    model, tokenizer, missing = open_folder(folder, KIND)
    inside = f"{model.base_model_prefix}."
    refuse_missing(folder, [n for n in missing if n.startswith(inside) and EXPANDER not in n])
    check_positions(folder, model, spec.tokens)
    try:
        specials = Specials.of(tokenizer)
    except ValueError as error:
        raise ModelError(f"{folder}: {error}") from error
    if missing or model.config.num_labels != 1:
        model = _with_head(model)
    _prepare(model, config)
    return RerankerParts(model, tokenizer, spec, specials)


def _with_head(model: Any) -> Any:
    """Return the same model with a new head of one label."""
    from transformers import AutoModelForSequenceClassification

    model.config.num_labels = 1
    fresh = AutoModelForSequenceClassification.from_config(model.config)
    fresh.base_model.load_state_dict(model.base_model.state_dict())
    return fresh


def _prepare(model: Any, config: RerankerTraining) -> None:
    """Freeze what is not to be learned, and set dropout in the modules: config.json keeps the base model's."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            attends = ".self" in name or name.endswith(("attention.dropout", "attn_dropout"))
            module.p = config.attention_dropout if attends else config.dropout
    body = model.base_model
    if config.freeze_embeddings:
        body.embeddings.requires_grad_(False)
        if types := getattr(body.embeddings, "token_type_embeddings", None):
            types.requires_grad_(True)  # two rows, which tell the segments apart
    layers = getattr(getattr(body, "encoder", body), "layer", [])
    if config.freeze_layers > len(layers):
        raise ConfigError(
            f"freeze_layers is {config.freeze_layers}, but the model has {len(layers)} layers that can be frozen"
        )
    for layer in layers[: config.freeze_layers]:
        layer.requires_grad_(False)


def make_net(parts: RerankerParts, config: RerankerTraining) -> Any:
    """Return the module: it takes a step that `batch.Steps` makes, and gives the loss, summed over its lists."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(
            self, chunks: Sequence[Chunk], at: Any, warm: bool = False, **known: Any
        ) -> Any:
            read = torch.cat([self.read(chunk) for chunk in chunks])
            with torch.autocast(read.device.type, enabled=False):
                return loss_of(read[at], config, warm=warm, **known).sum()

        def read(self, chunk: Chunk) -> Any:
            return self.model(**chunk).logits[:, 0].float()

    return Net()


def loss_of(
    logits: Any,
    config: RerankerTraining,
    *,
    warm: bool,
    cited: Any,
    there: Any,
    teacher: Any,
    raw: Any,
) -> Any:
    """Return the loss of each list.

    Args:
        logits: Shape (lists, papers), as all others.
        config: Which loss.
        warm: Whether only the teacher is learned from.
        cited: 1 for a cited paper, else 0.
        there: Whether there is a paper.
        teacher: Its scores, of a spread of 1 in each list.
        raw: Its scores as it gives them.
    """
    if warm:
        return losses.regressed(logits, teacher, there)
    if config.loss is Loss.MARGIN_MSE:
        loss = losses.margin_mse(logits, cited, there, raw)
    else:
        kind = {
            Loss.BCE: losses.bce,
            Loss.SOFTMAX: losses.softmax,
            Loss.RANKNET: losses.ranknet,
            Loss.LAMBDA: losses.lambda_loss,
        }[config.loss]
        loss = kind(logits, cited, there)
    if config.distill:
        order = losses.distilled(logits, teacher, there, temperature=config.temperature)
        loss = loss + config.distill * order
    return loss
