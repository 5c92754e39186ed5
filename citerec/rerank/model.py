"""Opens the folder of a cross-encoder: a BERT-like model with a trained head of one or two labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.encode.model import check_positions, cut, open_folder, positions_of, refuse_missing
from citerec.encode.net import Net
from citerec.errors import ConfigError, ModelError
from citerec.index.tokens import LONGEST
from citerec.rerank.pair import Specials
from citerec.rerank.spec import RerankerSpec, read_reranker_spec

KIND = "AutoModelForSequenceClassification"
USEFUL = 64  # tokens: a side that gets what the other leaves is not cut below this
EXPANDER = "pooler."  # below the model's own prefix, and part of the head


@dataclass(frozen=True, slots=True)
class RerankerParts:
    """A cross-encoder that is open: `model` and `tokenizer` are those of transformers."""

    model: Any
    tokenizer: Any
    spec: RerankerSpec
    specials: Specials

    @property
    def typed(self) -> bool:
        """Whether the model tells the two segments apart by token types."""
        named = "token_type_ids" in self.tokenizer.model_input_names
        return named and getattr(self.model.config, "type_vocab_size", 0) > 1

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut texts into token ids, without special tokens, as many of each as one side can ever have."""
        return cut(self.tokenizer, texts, LONGEST, special=False)


def load_reranker(
    folder: Path, *, query_tokens: int = 0, candidate_tokens: int = 0
) -> RerankerParts:
    """Open the cross-encoder in a folder, in float32: nothing is fetched, no code of the folder is run.

    Args:
        folder: Weights, config.json and tokenizer; `citerec_reranker.json`, if our trainer made it.
        query_tokens: How many tokens the query may have, special tokens within; 0 for what the folder says, or
            what the candidate leaves of the model's positions.
        candidate_tokens: The same for the candidate.

    Raises:
        ModelError: If it is no cross-encoder, its head was never trained, or it has too few positions.
        ConfigError: If a limit cannot be.
    """
    spec = read_reranker_spec(folder).with_tokens(query_tokens, candidate_tokens)
    model, tokenizer, missing = open_folder(folder, KIND)
    inside = f"{model.base_model_prefix}."
    body = [n for n in missing if n.startswith(inside) and EXPANDER not in n]
    refuse_missing(folder, body)
    if missing:
        raise ModelError(
            f"{folder} was not trained to rerank: its weights have no head ({missing[0]}); train it: "
            f"citerec train-reranker --model {folder}"
        )
    if model.config.num_labels not in {1, 2}:
        raise ModelError(
            f"{folder} tells {model.config.num_labels} labels apart; a cross-encoder has 1 or 2"
        )
    if bool(query_tokens) != bool(candidate_tokens):
        spec = _sharing(spec, positions_of(model), query_tokens, candidate_tokens)
    try:
        check_positions(folder, model, spec.tokens)
        specials = Specials.of(tokenizer)
    except ModelError as error:
        raise ModelError(f"{error}; say fewer: --query-tokens N --candidate-tokens N") from error
    except ValueError as error:
        raise ModelError(f"{folder}: {error}") from error
    return RerankerParts(model, tokenizer, spec, specials)


def _sharing(spec: RerankerSpec, positions: int, query: int, candidate: int) -> RerankerSpec:
    """Give the side that was not asked for what the other leaves, if the model cannot read both at full length.

    Raises:
        ConfigError: If that is too little to be of use.
    """
    left = positions - (query or candidate)
    if not positions or spec.tokens <= positions:
        return spec
    if left < USEFUL:
        one, other = ("query", "candidate") if query else ("candidate", "query")
        raise ConfigError(
            f"the model reads {positions} tokens: {query or candidate} of the {one} leave {max(0, left)} for the "
            f"{other}, and {USEFUL} is the least; say fewer"
        )
    return spec.with_tokens(query or left, candidate or left)


def reranker_net(parts: RerankerParts) -> Net:
    """Return a cross-encoder as a net: one score a pair, shape (pairs, 1).

    That is the logit of its only label, or that of the second label minus that of the first.
    """
    import torch

    class Scored(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            read = self.model(input_ids=input_ids, attention_mask=attention_mask, **types)
            logits = read.logits.float()
            return logits if logits.shape[1] == 1 else logits[:, 1:] - logits[:, :1]

    return Net(
        module=Scored(),
        padding=parts.tokenizer.pad_token_id,
        max_tokens=parts.spec.tokens,
        typed=parts.typed,
    )
