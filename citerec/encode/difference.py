"""Models stored as a difference to a base model: small folders that open as the whole model.

A folder has `difference.json` (the base model and the sha256 of its weights), `difference.safetensors`, `config.json`,
and the files that citerec writes into every model: how it reads, `training.json`, `README.md`, `checksums.json`. The
tokenizer is that of the base model.

| tensor of the model | stored as |
| --- | --- |
| a matrix | factors of the difference to the base model, `.left` (out, rank) and `.right` (rank, in), by its SVD |
| a vector, or a matrix whose factors would be larger | the difference, `.added` |
| a tensor that the base model does not have, such as a head | `.whole` |
| a tensor that equals that of the base model | nothing |

All numbers are float16; they are added to the weights of the base model in float32.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import orjson
from threadpoolctl import threadpool_limits

from citerec.encode.minilm import MINILM, minilm_folder
from citerec.encode.numpy_bert import Tensor, Tensors, UnsupportedError, one_blas_thread
from citerec.errors import ConfigError, ModelError, shown
from citerec.io import (
    CARD,
    TRAINING,
    building,
    is_regular,
    read_record,
    seal_model,
    sha256_of_files,
)

RECORD, WEIGHTS = "difference.json", "difference.safetensors"
FORMAT, DTYPE = 1, "float16"
BASE_WEIGHTS = "model.safetensors"  # a base model has its weights in one file


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRecord:
    """What a difference is added to, and how it was stored."""

    base: str  # `minilm`, or the absolute path of a model folder
    base_weights: str  # sha256 of the weights of the base model
    prefix: str  # of the names of the base model's tensors in this model: empty, or `bert.`
    rank: int  # of the factors; 0 if no matrix is factored
    share: float = 1.0  # of the trained difference, in [0, 1]

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is written."""
        return {"format": FORMAT, "dtype": DTYPE, **asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a record that `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If it is not one.
        """
        if (content["format"], content["dtype"]) != (FORMAT, DTYPE):
            raise ValueError(f"format {content['format']} of {content['dtype']}")
        return cls(
            **{name: str(content[name]) for name in ("base", "base_weights", "prefix")},
            rank=int(content["rank"]),
            share=float(content["share"]),
        )


def is_difference(folder: Path) -> bool:
    """Return whether a model folder holds a difference to a base model."""
    return (folder / RECORD).is_file()


def read_difference(folder: Path) -> DifferenceRecord:
    """Read the record of a folder that holds a difference.

    Raises:
        ModelError: If it cannot be parsed.
    """
    path = folder / RECORD
    try:
        return DifferenceRecord.from_json(orjson.loads(read_record(path)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be parsed ({error!r}); is it complete?") from error


def write_record(folder: Path, record: DifferenceRecord) -> None:
    """Write the record of a difference into its folder."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / RECORD).write_bytes(orjson.dumps(record.to_json(), option=options))


def base_folder(folder: Path) -> Path:
    """Return the folder of the base model that a difference names.

    Raises:
        MissingExtraError: If it is MiniLM, and its package is not installed.
        ModelError: If there is no such model, or it has other weights than the recorded ones.
    """
    record = read_difference(folder)
    base = named_base(record.base)
    if (found := base_weights(base)) != record.base_weights:
        raise ModelError(
            f"{folder} is a difference to {shown(record.base)} with the weights {record.base_weights[:8]}, but {base} "
            f"has the weights {found[:8]}; restore that model, or train anew"
        )
    return base


def tokenizer_folder(folder: Path) -> Path:
    """Return the folder of a model's tokenizer: that of the base model for a difference, else the model's own.

    Raises:
        MissingExtraError, ModelError: As `base_folder` raises.
    """
    return base_folder(folder) if is_difference(folder) else folder


def named_base(name: str) -> Path:
    """Return the folder of a base model by its name in a record.

    Raises:
        MissingExtraError: If it is MiniLM, and its package is not installed.
        ModelError: If there is no such model.
    """
    if name == MINILM:
        return minilm_folder()
    folder = Path(name)
    if not folder.is_absolute() or not is_regular(folder / BASE_WEIGHTS):
        raise ModelError(
            f"no base model {shown(name)}; expected {MINILM}, or the absolute path of a folder with {BASE_WEIGHTS}"
        )
    return folder


def base_weights(base: Path) -> str:
    """Return the sha256 of the weights of a base model."""
    return sha256_of_files([base / BASE_WEIGHTS])


LEFT, RIGHT, ADDED, WHOLE = (
    ".left",
    ".right",
    ".added",
    ".whole",
)  # ends of the names of its tensors


class DifferenceTensors:
    """The tensors of a model that is stored as a difference, by name; the counterpart of `Tensors`.

    Those of the base model that the difference leaves out are mapped, not copied.
    """

    def __init__(self, folder: Path) -> None:
        """Map the files of a difference and of its base model into memory.

        Raises:
            UnsupportedError: If one of them is not a safetensors file.
            MissingExtraError, ModelError: If the base model is missing, or another one.
        """
        self._prefix = read_difference(folder).prefix
        self._base = Tensors(base_folder(folder) / BASE_WEIGHTS)
        self._stored = Tensors(folder / WEIGHTS)
        self._stored_names = frozenset(self._stored.names)

    @property
    def names(self) -> list[str]:
        """The names of all tensors of the model."""
        base = [self._prefix + name for name in self._base.names]
        whole = [n.removesuffix(WHOLE) for n in self._stored.names if n.endswith(WHOLE)]
        return list(dict.fromkeys([*base, *whole]))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor.

        Raises:
            UnsupportedError: If there is no tensor of this name.
        """
        if name + WHOLE in self._stored_names:
            return self._stored.shape(name + WHOLE)
        return self._base.shape(self._in_base(name))

    def is_float(self, name: str) -> bool:
        """Return whether a tensor holds floats, which alone can be read."""
        return name + WHOLE in self._stored_names or self._base.is_float(self._in_base(name))

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor in float32.

        Raises:
            UnsupportedError: If there is no tensor of this name and shape, or its type is not a float.
        """
        if name + WHOLE in self._stored_names:
            return self._stored.read(name + WHOLE, shape)
        base = self._base.read(self._in_base(name), shape)
        if name + ADDED in self._stored_names:
            return base + self._stored.read(name + ADDED, shape)
        if name + LEFT not in self._stored_names:
            return base
        rows, rank = shape[0], self._stored.shape(name + LEFT)[-1]
        left = self._stored.read(name + LEFT, (rows, rank))
        right = self._stored.read(name + RIGHT, (rank, *shape[1:]))
        with one_blas_thread():
            whole = left @ right
        whole += base
        return whole

    def _in_base(self, name: str) -> str:
        if not name.startswith(self._prefix):
            raise UnsupportedError(f"no tensor {name} that can be read")
        return name.removeprefix(self._prefix)


def open_tensors(folder: Path) -> Tensors | DifferenceTensors:
    """Map the weights of a model folder into memory, which are a difference or in one safetensors file.

    Raises:
        UnsupportedError: If they are in no such file.
        MissingExtraError, ModelError: If the base model of a difference is missing, or another one.
    """
    return DifferenceTensors(folder) if is_difference(folder) else Tensors(folder / BASE_WEIGHTS)


def read_state(folder: Path) -> dict[str, Tensor]:
    """Return all float tensors of a model folder in float32, by name; none of them is a memory map.

    Raises:
        ModelError: If they cannot be read.
        MissingExtraError: If the base model of a difference is not installed.
    """
    try:
        tensors = open_tensors(folder)
        names = [name for name in tensors.names if tensors.is_float(name)]
        return {name: np.array(tensors.read(name, tensors.shape(name))) for name in names}
    except UnsupportedError as error:
        raise ModelError(f"{folder}: its weights cannot be read: {error}") from error


# Writes a trained model as a difference to its base model: factors of low rank in float16.
#
# Source of the factors: Eckart and Young, Psychometrika 1936, https://doi.org/10.1007/BF02288367. Source of the share:
# Wortsman et al., CVPR 2022, https://arxiv.org/abs/2109.01903.


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
