"""Opens the folder of a cross-encoder: a BERT-like model with a trained head of one or two labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.encode.backend import Net
from citerec.encode.model import check_positions, cut, open_folder, positions_of, refuse_missing
from citerec.errors import ModelError
from citerec.index.tokens import LONGEST
from citerec.rerank.spec import RerankerSpec, Specials, read_reranker_spec, with_limits

KIND = "AutoModelForSequenceClassification"
EXPANDER = "pooler."  # below the model's own prefix, and part of the head


@dataclass(frozen=True, slots=True)
class RerankerParts:
    """An open cross-encoder: `model` and `tokenizer` are objects of transformers."""

    model: Any
    tokenizer: Any
    spec: RerankerSpec
    specials: Specials

    @property
    def sizes(self) -> Any:
        """The configuration of the model, with its sizes."""
        return self.model.config

    @property
    def vocabulary(self) -> int:
        """The number of ids of the tokenizer."""
        return len(self.tokenizer)

    @property
    def typed(self) -> bool:
        """Whether the model distinguishes the two segments by token types."""
        reads_types = "token_type_ids" in self.tokenizer.model_input_names
        return reads_types and getattr(self.model.config, "type_vocab_size", 0) > 1

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids, without special tokens, at most as many as one side can have."""
        return cut(self.tokenizer, texts, LONGEST, special=False)


def load_reranker(
    folder: Path, *, query_tokens: int = 0, candidate_tokens: int = 0
) -> RerankerParts:
    """Open the cross-encoder in a folder, in float32; nothing is fetched, and no code of the folder is run.

    Args:
        folder: Holds weights, config.json, tokenizer, and `citerec_reranker.json` if our trainer made it.
        query_tokens: The limit of the query, with special tokens; 0 for the folder's setting, or for the positions that
            the candidate leaves.
        candidate_tokens: The same for the candidate.

    Raises:
        ModelError: If it is not a cross-encoder, its head was not trained, or it has too few positions.
        ConfigError: If a limit is not possible.
    """
    spec = read_reranker_spec(folder)
    spec.with_tokens(query_tokens, candidate_tokens)  # an error before the model is opened
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
            f"{folder} has {model.config.num_labels} labels; a cross-encoder has 1 or 2"
        )
    spec = with_limits(spec, positions_of(model), query_tokens, candidate_tokens)
    try:
        check_positions(folder, model, spec.tokens)
        specials = Specials.of(tokenizer)
    except ModelError as error:
        raise ModelError(f"{error}; choose fewer: --query-tokens N --candidate-tokens N") from error
    except ValueError as error:
        raise ModelError(f"{folder}: {error}") from error
    return RerankerParts(model, tokenizer, spec, specials)


def reranker_net(parts: RerankerParts) -> Net:
    """Return a cross-encoder as a net: one score per pair, shape (pairs, 1).

    The score is the logit of its only label, or the logit of the second label minus that of the first.
    """
    import torch

    class ScoringModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            output = self.model(input_ids=input_ids, attention_mask=attention_mask, **types)
            logits = output.logits.float()
            return logits if logits.shape[1] == 1 else logits[:, 1:] - logits[:, :1]

    return Net(
        module=ScoringModel(),
        padding=parts.tokenizer.pad_token_id,
        max_tokens=parts.spec.tokens,
        typed=parts.typed,
    )
