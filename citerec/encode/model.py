"""Weights and tokenizer of a model folder; with `encoder`, the door to torch and transformers."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.encode.spec import EncoderSpec, Pooling, Separator
from citerec.errors import ModelError

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # in the order of preference
TOKENIZER = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer_config.json",
)
EXPANDER = ("pooler.", "cls.", "lm_head.")  # heads that no vector of ours reads
SPARE_POSITIONS = {"roberta", "xlm-roberta", "camembert"}  # models that count positions from 2


@dataclass(frozen=True, slots=True)
class Parts:
    """A model that is open: `model` and `tokenizer` are those of transformers."""

    model: Any
    tokenizer: Any
    spec: EncoderSpec

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return int(self.model.config.hidden_size)

    @property
    def separator(self) -> str:
        """What stands between the parts of a paper."""
        return " " if self.spec.separator is Separator.SPACE else str(self.tokenizer.sep_token)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut texts into token ids: special tokens included, at most `spec.max_tokens` each."""
        return tokens_of(self, texts)


def load_parts(folder: Path, spec: EncoderSpec) -> Parts:
    """Open the model in a folder: nothing is fetched, no code of the folder is run.

    Args:
        folder: Weights, config.json and tokenizer.
        spec: How it reads and pools.

    Raises:
        ModelError: If it is no model that can encode, or its weights are not whole.
    """
    model, tokenizer, missing = open_folder(folder, "AutoModel")
    refuse_missing(folder, [name for name in missing if not name.startswith(EXPANDER)])
    parts = Parts(model, tokenizer, spec)
    if spec.separator is Separator.TOKEN and not tokenizer.sep_token:
        raise ModelError(f"{folder}: its tokenizer has no separator token; a BERT-like one has")
    check_positions(folder, model, spec.max_tokens)
    return parts


def open_folder(folder: Path, kind: str) -> tuple[Any, Any, list[str]]:
    """Open the model in a folder, in float32: nothing is fetched, no code of the folder is run.

    Args:
        folder: Weights, config.json and tokenizer.
        kind: The class of transformers that opens it.

    Returns:
        Model, tokenizer, and the tensors that the weights lack.

    Raises:
        ModelError: If it is no such model.
    """
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no config.json; name a folder that save_pretrained wrote")
    weights_files(folder)
    if not tokenizer_files(folder):
        raise ModelError(f"{folder} holds no tokenizer; expected tokenizer.json or vocab.txt there")
    transformers = _transformers()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        model, told = getattr(transformers, kind).from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            dtype="float32",
        )
    except Exception as error:  # whatever a broken folder makes transformers raise
        said = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{folder} cannot be opened as a model: {type(error).__name__}: {said}"
        ) from error
    if any(".adapter_" in name for name in told["unexpected_keys"]):
        raise ModelError(
            f"{folder}: an adapter is saved among its weights, where it cannot be told apart; save the adapter "
            "under adapter/"
        )
    if tokenizer.pad_token_id is None:
        raise ModelError(f"{folder}: its tokenizer has no padding token; a BERT-like one has")
    return model.eval(), tokenizer, sorted(told["missing_keys"])


def refuse_missing(folder: Path, missing: Sequence[str]) -> None:
    """Refuse a model whose weights lack tensors.

    Raises:
        ModelError: If there are any.
    """
    if missing:
        raise ModelError(
            f"{folder}: its weights lack {len(missing)} of the tensors that config.json names, "
            f"{missing[0]} among them; they are not this model's"
        )


def check_positions(folder: Path, model: Any, tokens: int) -> None:
    """Refuse a model that has no position for each of so many tokens.

    Raises:
        ModelError: If it has fewer.
    """
    positions = positions_of(model)
    if positions and positions < tokens:
        raise ModelError(
            f"{folder} has {positions} positions, fewer than the {tokens} tokens to be read"
        )


def positions_of(model: Any) -> int:
    """Return how many tokens a model has positions for; 0 where it sets no limit."""
    config = model.config
    positions = getattr(config, "max_position_embeddings", None) or 0
    if positions and getattr(config, "model_type", "") in SPARE_POSITIONS:
        positions -= 2
    return max(0, positions)


def tokens_of(parts: Parts, texts: Sequence[str]) -> list[list[int]]:
    """Cut texts into token ids as an encoder reads them: special tokens included, at most `spec.max_tokens` each."""
    return cut(parts.tokenizer, texts, parts.spec.max_tokens, special=True)


def cut(tokenizer: Any, texts: Sequence[str], at_most: int, *, special: bool) -> list[list[int]]:
    """Cut texts into token ids, at most so many each.

    Half a surrogate pair, which is no character, becomes a question mark.

    Args:
        tokenizer: That of transformers.
        texts: Any.
        at_most: Special tokens within.
        special: Whether to put special tokens around each.
    """
    if not texts:
        return []
    found = tokenizer(
        [text.encode(errors="replace").decode() for text in texts],
        truncation=True,
        max_length=at_most,
        add_special_tokens=special,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return found["input_ids"]


def pool(states: Any, mask: Any, pooling: Pooling) -> Any:
    """Make one vector of each text's tokens, in float32.

    Args:
        states: The last layer's, shape (texts, tokens, dim).
        mask: 1 for a token, 0 for padding, shape (texts, tokens).
        pooling: How.
    """
    if pooling is Pooling.CLS:
        return states[:, 0].float()
    shown = mask.unsqueeze(-1)
    if pooling is Pooling.MAX:
        return states.float().masked_fill(shown == 0, float("-inf")).amax(1)
    weights = shown.float()
    return (states.float() * weights).sum(1) / weights.sum(1).clamp(min=1)


def weights_files(folder: Path) -> list[Path]:
    """Return the files of a model's weights: safetensors, else PyTorch's own.

    The latter are opened by `torch.load(weights_only=True)`, which runs no code.

    Raises:
        ModelError: If there are none.
    """
    for pattern in WEIGHTS:
        if files := sorted(folder.glob(pattern)):
            return files
    raise ModelError(f"{folder} holds no weights; expected model.safetensors")


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that decide how a model cuts text into tokens."""
    return [folder / name for name in TOKENIZER if (folder / name).is_file()]


def _transformers() -> Any:
    """Import transformers: quiet, and without the tokenizers' warning about forks."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    importlib.import_module("torch")  # without it transformers is imported, and fails later
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers
