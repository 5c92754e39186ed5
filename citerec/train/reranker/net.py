"""The network that is trained: the cross-encoder and its loss as one torch module."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from citerec.encode.model import check_positions, open_folder, refuse_missing
from citerec.errors import ConfigError, ModelError
from citerec.rerank.model import EXPANDER, KIND, RerankerParts
from citerec.rerank.pair import Specials
from citerec.rerank.spec import RerankerSpec
from citerec.train.bert.states import is_supported, states_of
from citerec.train.chunks import Chunk
from citerec.train.reranker import losses
from citerec.train.reranker.config import RerankerLoss, RerankerTraining


def load_base(folder: Path, config: RerankerTraining) -> RerankerParts:
    """Open the base model: a cross-encoder with one label, or any BERT-like model, which gets a new head.

    Raises:
        ModelError: If it is no such model, or has too few positions.
        ConfigError: If `freeze_layers` exceeds its layers.
    """
    spec = RerankerSpec(query_tokens=config.query_tokens, candidate_tokens=config.candidate_tokens)
    model, tokenizer, missing = open_folder(folder, KIND)
    prefix = f"{model.base_model_prefix}."
    refuse_missing(folder, [n for n in missing if n.startswith(prefix) and EXPANDER not in n])
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
    """Return the model with a new head of one label."""
    from transformers import AutoModelForSequenceClassification

    model.config.num_labels = 1
    fresh = AutoModelForSequenceClassification.from_config(model.config)
    fresh.base_model.load_state_dict(model.base_model.state_dict())
    return fresh


def _prepare(model: Any, config: RerankerTraining) -> None:
    """Freeze the weights that are not trained, and set dropout in the modules.

    The dropout of config.json stays that of the base model.
    """
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            attends = ".self" in name or name.endswith(("attention.dropout", "attn_dropout"))
            module.p = config.attention_dropout if attends else config.dropout
    body = model.base_model
    if config.freeze_embeddings:
        body.embeddings.requires_grad_(False)
        if types := getattr(body.embeddings, "token_type_embeddings", None):
            types.requires_grad_(True)  # the two segment embeddings
    layers = getattr(getattr(body, "encoder", body), "layer", [])
    if config.freeze_layers > len(layers):
        raise ConfigError(
            f"freeze_layers must be at most {len(layers)}, the layers of the model, got {config.freeze_layers}"
        )
    for layer in layers[: config.freeze_layers]:
        layer.requires_grad_(False)


def make_net(parts: RerankerParts, config: RerankerTraining) -> Any:
    """Return the module: it maps a step of `batch.Steps` to the loss, summed over its lists."""
    import torch

    class RerankerLossNet(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(
            self, chunks: Sequence[Chunk], at: Any, warm: bool = False, **labels: Any
        ) -> Any:
            read = self.read(chunks)
            with torch.autocast(read.device.type, enabled=False):
                return loss_of(read[at], config, warm=warm, **labels).sum()

        def read(self, chunks: Sequence[Chunk]) -> Any:
            model = self.model
            if not is_supported(model.base_model):
                return torch.cat([model(**chunk).logits[:, 0].float() for chunk in chunks])
            first = torch.cat(states_of(model.bert, chunks, first=True))
            return model.classifier(model.dropout(model.bert.pooler(first)))[:, 0].float()

    return RerankerLossNet()


def loss_of(
    logits: Any,
    config: RerankerTraining,
    *,
    warm: bool,
    cited: Any,
    there: Any,
    teacher: Any,
    raw: Any,
    first_stage: Any,
) -> Any:
    """Return the loss of each list, shape (lists,).

    Args:
        logits: Shape (lists, papers), as all others.
        config: Selects the loss.
        warm: Whether only the teacher's scores are fitted.
        cited: 1 for a cited paper, else 0.
        there: Whether the place holds a paper.
        teacher: Teacher scores, standardised in each list.
        raw: Teacher scores as the teacher returns them.
        first_stage: First-stage scores, standardised in each list; added to the logits with `first_stage_weight`, but
            not where the model alone has to fit the teacher.
    """
    if warm:
        return losses.regressed(logits, teacher, there)
    if config.loss is RerankerLoss.MARGIN_MSE:
        loss = losses.margin_mse(logits, cited, there, raw)
    else:
        kind = {
            RerankerLoss.BCE: losses.bce,
            RerankerLoss.SOFTMAX: losses.softmax,
            RerankerLoss.RANKNET: losses.ranknet,
            RerankerLoss.LAMBDA: losses.lambda_loss,
        }[config.loss]
        loss = kind(logits + config.first_stage_weight * first_stage, cited, there)
    if config.distill:
        loss = loss + config.distill * losses.distilled(logits, teacher, there)
    return loss
