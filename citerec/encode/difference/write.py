"""Writes a trained model as a difference to its base model: factors of low rank in float16.

Source of the factors: Eckart and Young, Psychometrika 1936, https://doi.org/10.1007/BF02288367. Source of the share:
Wortsman et al., CVPR 2022, https://arxiv.org/abs/2109.01903.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from threadpoolctl import threadpool_limits

from citerec.atomic import building
from citerec.encode.difference.folder import (
    WEIGHTS,
    DifferenceRecord,
    base_weights,
    named_base,
    tokenizer_folder,
    write_record,
)
from citerec.encode.difference.tensors import ADDED, LEFT, RIGHT, WHOLE, read_state
from citerec.encode.light.tensors import Tensor
from citerec.encode.minilm import MINILM
from citerec.errors import ConfigError, ModelError
from citerec.manifest import CARD, TRAINING, seal_model

CONFIG = "config.json"
SPECS = ("citerec_encoder.json", "citerec_reranker.json")  # how a model reads; it has one of them

Half = npt.NDArray[np.float16]
State = Mapping[str, Tensor]


def write_difference(
    trained: Path,
    output: Path,
    *,
    rank: int,
    share: float = 1.0,
    base: str = MINILM,
    training: Mapping[str, Any],
    card: str,
) -> None:
    """Write the model in a folder as a difference to its base model; an existing output folder is replaced.

    Args:
        trained: The folder of a model that citerec trained.
        output: The folder to create.
        rank: Of the factors of a matrix; 0 stores each difference in full.
        share: The part of the trained difference that is added to the base model, in [0, 1]; tensors that the base
            model does not have stay as trained.
        base: `minilm`, or the absolute path of a model folder.
        training: The content of training.json.
        card: The model card.

    Raises:
        ConfigError: If `rank` is negative, or `share` is not in [0, 1].
        ModelError: If the model was not trained by citerec or has another tokenizer than its base model.
        MissingExtraError: If MiniLM is not installed.
        OutputError: If the folder cannot be written.
    """
    if rank < 0 or not 0 <= share <= 1:
        raise ConfigError(f"expected rank >= 0 and share in [0, 1], got {rank} and {share}")
    specs = [name for name in SPECS if (trained / name).is_file()]
    if len(specs) != 1:
        raise ModelError(f"{trained} holds no {' or '.join(SPECS)}; expected a model of citerec")
    origin = named_base(base)
    _check_tokenizer(trained, origin)
    state, base_state = read_state(trained), read_state(origin)
    prefix = prefix_of(state, base_state)
    stored = difference(state, base_state, prefix, rank=rank, share=share)
    record = DifferenceRecord(
        base=base, base_weights=base_weights(origin), prefix=prefix, rank=rank, share=share
    )
    with building(output) as folder:
        _save(folder / WEIGHTS, stored)
        write_record(folder, record)
        for name in (CONFIG, *specs):
            shutil.copyfile(trained / name, folder / name)
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / TRAINING).write_bytes(orjson.dumps(dict(training), option=options))
        (folder / CARD).write_text(card, encoding="utf-8")
        seal_model(folder)


def prefix_of(state: State, base: State) -> str:
    """Return the prefix of the base model's tensor names in a trained model: empty, or that of a model with a head."""
    prefixes = sorted({"", *(f"{name.partition('.')[0]}." for name in state)})
    return max(prefixes, key=lambda prefix: sum(prefix + name in state for name in base))


def difference(
    state: State, base: State, prefix: str, *, rank: int, share: float
) -> dict[str, Half]:
    """Return the tensors of `difference.safetensors`, by name.

    Args:
        state: The trained model.
        base: The base model.
        prefix: Of the names of `base` in `state`.
        rank: Of the factors; 0 for none.
        share: The part of the difference that is stored.

    Raises:
        ModelError: If a number is too large for float16.
    """
    stored: dict[str, Half] = {}
    for name, tensor in state.items():
        counterpart = base.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if counterpart is None or counterpart.shape != tensor.shape:
            stored[name + WHOLE] = _half(name, tensor)
            continue
        added = np.float32(share) * (tensor - counterpart)
        if not added.any():
            continue
        if added.ndim == 2 and 0 < rank * sum(added.shape) < added.size:
            left, right = _factors(added, rank)
            stored |= {name + LEFT: _half(name, left), name + RIGHT: _half(name, right)}
        else:
            stored[name + ADDED] = _half(name, added)
    return stored


def _factors(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return factors (out, rank) and (rank, in) whose product is the nearest to a matrix of this rank."""
    # on one thread: on a busy machine OpenBLAS's threads cost more than they gain
    with threadpool_limits(limits=1, user_api="blas"):
        u, s, v = np.linalg.svd(matrix, full_matrices=False)
    roots = np.sqrt(s[:rank])  # both factors get half of each singular value, to suit float16
    return u[:, :rank] * roots, roots[:, None] * v[:rank]


def _half(name: str, tensor: Tensor) -> Half:
    with np.errstate(over="ignore"):
        half = np.ascontiguousarray(tensor, np.float16)
    if not np.isfinite(half).all():
        raise ModelError(f"the tensor {name} has numbers that float16 cannot hold")
    return half


def _save(file: Path, tensors: Mapping[str, Half]) -> None:
    from safetensors.numpy import save_file

    save_file(dict(tensors), file)
    file.chmod(0o644)  # as the other files; the library makes it readable by its owner only


def _check_tokenizer(trained: Path, base: Path) -> None:
    """Refuse a model whose tokenizer is not that of its base model, which would be used in its place."""
    if _rules(trained) != _rules(base):
        raise ModelError(
            f"{trained} has another tokenizer than its base model {base}, so it cannot be stored as a difference"
        )


def _rules(folder: Path) -> dict[str, Any]:
    """Return the content of a tokenizer without its limits of length, which citerec sets itself."""
    from citerec.encode.model import open_tokenizer

    content = orjson.loads(open_tokenizer(tokenizer_folder(folder)).backend_tokenizer.to_str())
    return {key: value for key, value in content.items() if key not in ("truncation", "padding")}
