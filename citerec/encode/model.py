"""Opens the weights and the tokenizer of a model folder with torch and transformers."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.encode.backend import Net
from citerec.encode.difference import is_difference, read_state, tokenizer_folder
from citerec.encode.files import tokenizer_files, weights_files
from citerec.encode.spec import EncoderSpec, Pooling, Separator, Similarity
from citerec.errors import MissingExtraError, ModelError

EXPANDER = ("pooler.", "cls.", "lm_head.")  # prefixes of heads that no vector depends on
OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert"}  # models whose position ids start at 2


@dataclass(frozen=True, slots=True)
class Parts:
    """An open model: `model` and `tokenizer` are objects of transformers."""

    model: Any
    tokenizer: Any
    spec: EncoderSpec

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return int(self.model.config.hidden_size)

    @property
    def separator(self) -> str:
        """The text between the parts of a paper."""
        return " " if self.spec.separator is Separator.SPACE else str(self.tokenizer.sep_token)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids: with special tokens, at most `spec.max_tokens` each."""
        return tokens_of(self, texts)


def load_parts(folder: Path, spec: EncoderSpec) -> Parts:
    """Open the encoder in a folder; nothing is fetched, and no code of the folder is run.

    Args:
        folder: Holds weights, config.json and tokenizer.
        spec: How it reads and pools text.

    Raises:
        ModelError: If it is not a model that can encode, or its weights are incomplete.
    """
    model, tokenizer, missing = open_folder(folder, "AutoModel")
    refuse_missing(folder, [name for name in missing if not name.startswith(EXPANDER)])
    parts = Parts(model, tokenizer, spec)
    if spec.separator is Separator.TOKEN and not tokenizer.sep_token:
        raise ModelError(f"{folder}: its tokenizer has no separator token; a BERT-like one has")
    check_positions(folder, model, spec.max_tokens)
    return parts


def open_folder(folder: Path, kind: str) -> tuple[Any, Any, list[str]]:
    """Open the model in a folder, in float32; nothing is fetched, and no code of the folder is run.

    Args:
        folder: Holds weights, config.json and tokenizer.
        kind: The class of transformers that opens it.

    Returns:
        The model, the tokenizer, and the names of the tensors that are missing in the weights.

    Raises:
        ModelError: If the folder does not hold such a model.
    """
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no config.json; name a folder that save_pretrained wrote")
    weights_files(folder)
    if not tokenizer_files(folder):
        raise ModelError(f"{folder} holds no tokenizer; expected tokenizer.json or vocab.txt there")
    transformers = _transformers()
    try:
        tokenizer = open_tokenizer(tokenizer_folder(folder))
        model, loading_info = _open_model(transformers, folder, kind)
    except (ModelError, MissingExtraError):
        raise
    except Exception as error:  # a broken folder may raise anything
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{folder} cannot be opened as a model: {type(error).__name__}: {reason}"
        ) from error
    if any(".adapter_" in name for name in loading_info["unexpected_keys"]):
        raise ModelError(
            f"{folder}: an adapter is saved among its weights, where it cannot be recognised; save the adapter "
            "under adapter/"
        )
    if tokenizer.pad_token_id is None:
        raise ModelError(f"{folder}: its tokenizer has no padding token; a BERT-like one has")
    return model.eval(), tokenizer, sorted(loading_info["missing_keys"])


def open_tokenizer(folder: Path) -> Any:
    """Open the tokenizer in a folder; nothing is fetched, and no code of the folder is run."""
    return _transformers().AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )


def _open_model(transformers: Any, folder: Path, kind: str) -> tuple[Any, Any]:
    """Return the model in a folder, and what transformers reports of its tensors."""
    factory = getattr(transformers, kind)
    local = {"local_files_only": True, "trust_remote_code": False}
    loading = {"output_loading_info": True, "dtype": "float32"}
    if not is_difference(folder):
        return factory.from_pretrained(folder, **local, **loading)
    import torch

    config = transformers.AutoConfig.from_pretrained(folder, **local)
    with torch.device("meta"):  # the class that suits the configuration, without its weights
        model_class = type(factory.from_config(config, trust_remote_code=False))
    state = {name: torch.from_numpy(array) for name, array in read_state(folder).items()}
    return model_class.from_pretrained(None, config=config, state_dict=state, **loading)


def refuse_missing(folder: Path, missing: Sequence[str]) -> None:
    """Refuse a model with missing tensors.

    Raises:
        ModelError: If `missing` is not empty.
    """
    if missing:
        raise ModelError(
            f"{folder}: its weights lack {len(missing)} of the tensors that config.json names, "
            f"{missing[0]} among them; they are not this model's"
        )


def check_positions(folder: Path, model: Any, tokens: int) -> None:
    """Refuse a model that has fewer positions than `tokens`.

    Raises:
        ModelError: If it has fewer.
    """
    positions = positions_of(model)
    if positions and positions < tokens:
        raise ModelError(
            f"{folder} has {positions} positions, fewer than the {tokens} tokens to be read"
        )


def positions_of(model: Any) -> int:
    """Return how many tokens a model has positions for; 0 if it has no limit."""
    config = model.config
    positions = getattr(config, "max_position_embeddings", None) or 0
    if positions and getattr(config, "model_type", "") in OFFSET_POSITIONS:
        positions -= 2
    return max(0, positions)


def tokens_of(parts: Parts, texts: Sequence[str]) -> list[list[int]]:
    """Tokenize texts as the encoder reads them: with special tokens, at most `spec.max_tokens` ids each."""
    return cut(parts.tokenizer, texts, parts.spec.max_tokens, special=True)


def cut(tokenizer: Any, texts: Sequence[str], at_most: int, *, special: bool) -> list[list[int]]:
    """Tokenize texts into ids, at most `at_most` each.

    An unpaired surrogate, which is not a character, becomes a question mark.

    Args:
        tokenizer: A tokenizer of transformers.
        texts: The texts; may be empty.
        at_most: The limit, with special tokens.
        special: Whether to add special tokens to each text.
    """
    if not texts:
        return []
    encoded = tokenizer(
        [text.encode(errors="replace").decode() for text in texts],
        truncation=True,
        max_length=at_most,
        add_special_tokens=special,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return encoded["input_ids"]


def pool(states: Any, mask: Any, pooling: Pooling) -> Any:
    """Pool the token vectors of each text to one vector, shape (texts, dim), in float32.

    Args:
        states: The output of the last layer, shape (texts, tokens, dim).
        mask: 1 for a token, 0 for padding, shape (texts, tokens).
        pooling: The method.
    """
    if pooling is Pooling.CLS:
        return states[:, 0].float()
    token_mask = mask.unsqueeze(-1)
    if pooling is Pooling.MAX:
        return states.float().masked_fill(token_mask == 0, float("-inf")).amax(1)
    weights = token_mask.float()
    return (states.float() * weights).sum(1) / weights.sum(1).clamp(min=1)


def encoder_net(parts: Parts) -> Net:
    """Return an encoder as a net: the model with its pooling."""
    import torch

    spec = parts.spec

    class PooledModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.model(input_ids=input_ids, attention_mask=attention_mask)
            vectors = pool(states.last_hidden_state, attention_mask, spec.pooling)
            if spec.similarity is Similarity.COSINE:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors

    return Net(
        module=PooledModel(), padding=parts.tokenizer.pad_token_id, max_tokens=spec.max_tokens
    )


def _transformers() -> Any:
    """Import transformers without its messages, and without the tokenizers' warning about forks."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    importlib.import_module("torch")  # without torch, transformers can be imported but fails later
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers
