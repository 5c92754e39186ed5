"""The folder of a word-vector model: citerec_words.json has its settings and words, model.safetensors its arrays."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import orjson

from citerec.errors import ModelError
from citerec.lab.words.bag import Bag
from citerec.lab.words.chance import RandomVectors
from citerec.lab.words.doc2vec import Doc2VecWords
from citerec.lab.words.model import Stated, Tensors, WordModel
from citerec.lab.words.propagated import Propagated

NAME, WEIGHTS = "citerec_words.json", "model.safetensors"
FORMAT = 1

_OPENED: Mapping[str, Callable[[Stated, Tensors], WordModel]] = {
    "random": RandomVectors.of_parts,
    "bag": Bag.of_parts,
    "sgc": Propagated.of_parts,
    "doc2vec": Doc2VecWords.of_parts,
}
_KINDS: Mapping[type, str] = {
    RandomVectors: "random",
    Bag: "bag",
    Propagated: "sgc",
    Doc2VecWords: "doc2vec",
}


def holds_words(folder: Path) -> bool:
    """Return whether a folder contains a word-vector model."""
    return (folder / NAME).is_file()


def write_words(folder: Path, model: WordModel) -> None:
    """Write a model into an existing folder; the same model gives the same bytes."""
    from safetensors.numpy import save_file

    stated, tensors = model.parts()
    content = {"format": FORMAT, "kind": _KINDS[type(model)], **stated}
    (folder / NAME).write_bytes(orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE))
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, folder / WEIGHTS)


def read_words(folder: Path) -> WordModel:
    """Open the word-vector model in a folder.

    Raises:
        ModelError: If it cannot be read, or has another format.
        MissingExtraError: If it needs gensim, which is not installed.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    about = folder / NAME
    try:
        stated: Stated = orjson.loads(about.read_bytes())
        found, kind = stated["format"], stated["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{about}: cannot be read ({error!r}); is the file complete?") from error
    if found != FORMAT or kind not in _OPENED:
        raise ModelError(
            f"{about}: a model of kind {kind!r} in format {found!r}; this citerec opens "
            f"{', '.join(_OPENED)} in format {FORMAT}; train it again: citerec train-encoder"
        )
    try:
        return _OPENED[kind](stated, load_file(folder / WEIGHTS))
    except (OSError, ValueError, KeyError, TypeError, IndexError, SafetensorError) as error:
        raise ModelError(
            f"{folder / WEIGHTS}: the arrays do not match {NAME} ({error!r}); train the model again: "
            "citerec train-encoder"
        ) from error
