"""Word vectors: trained by gensim's fastText on the train papers, or precomputed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from citerec.cache import sha256_of_files
from citerec.errors import BadInputError, ConfigError, extra
from citerec.inputs import read_rows
from citerec.lab.train_words.config import LEAST_RATE, MAX_DF, NEGATIVE, WINDOW, WordsTraining
from citerec.lab.train_words.corpus import TrainTexts
from citerec.lab.train_words.kept import KeptTraining
from citerec.lab.words.bag import Bag
from citerec.lab.words.doc2vec import stable_hash
from citerec.lab.words.folder import WEIGHTS, holds_words, read_words
from citerec.lab.words.model import Vectors
from citerec.lab.words.propagated import Propagated
from citerec.types import Log, Progress

PART = 65_536  # documents between two possible checkpoints
RANDOM = "random"  # the state of the random numbers, among the arrays of a checkpoint
VECTORS = "vectors"  # word vectors that are trained, and the name of their state


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The vectors of a vocabulary."""

    words: tuple[str, ...]
    vectors: Vectors  # shape (words, dim)
    sha256: str | None = None  # sha256 of precomputed vectors; None if they were trained


def word_vectors(
    texts: TrainTexts,
    config: WordsTraining,
    log: Log,
    progress: Progress,
    saved_state: KeptTraining,
) -> WordVectors:
    """Return a vector for each word of the train papers; words without a precomputed vector are left out.

    Raises:
        ConfigError: If no word has a vector, or the file has no word vectors.
        BadInputError: If the file cannot be read.
        MissingExtraError: If gensim is needed and not installed.
    """
    if not config.vectors:
        check_gensim()
        words = texts.vocabulary(config.min_df, MAX_DF)
        return WordVectors(words, _trained(texts, words, config, saved_state, progress))
    words = texts.vocabulary(config.min_df, MAX_DF)
    place = Path(config.vectors).expanduser()
    available = _of_model(place) if place.is_dir() else read_word2vec(place, frozenset(words))
    covered = tuple(word for word in words if word in available)
    if not covered:
        raise ConfigError(f"{place} has a vector for none of the {len(words)} words of the papers")
    log(f"{place.name} has a vector for {len(covered)} of {len(words)} words")
    return WordVectors(
        covered, np.stack([available[word] for word in covered]), sha256_of_vectors(place)
    )


def sha256_of_vectors(place: Path) -> str:
    """Return the sha256 of word vectors: a file, or a word-vector model."""
    return sha256_of_files([place / WEIGHTS if place.is_dir() else place])


def read_word2vec(file: Path, wanted: frozenset[str]) -> dict[str, Vectors]:
    """Read vectors in word2vec's text format: a line "words dim", then lines "word x1 ... xdim".

    Args:
        file: As written by gensim and fastText (.vec).
        wanted: The words to read.

    Raises:
        BadInputError: If it has another format; with its line.
    """
    vectors: dict[str, Vectors] = {}
    rows = read_rows(file, 'word vectors as text: "words dim", then "word x1 ... xdim" each')
    dim = _dim(next(rows, (1, b""))[1], file)
    for number, row in rows:
        word, _, numbers = row.decode(errors="replace").rstrip().partition(" ")
        if word in wanted:
            vectors[word] = _numbers(numbers, dim, file, number)
    return vectors


def _dim(head: bytes, file: Path) -> int:
    """Return the dimensions of the vectors, from the first line of their file."""
    parts = head.decode(errors="replace").split()
    if len(parts) != 2 or not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        raise BadInputError(file, f'expected "words dim", found {" ".join(parts)[:40]!r}', line=1)
    return int(parts[1])


def _numbers(text: str, dim: int, file: Path, line: int) -> Vectors:
    try:
        vector = np.array(text.split(), np.float32)
    except ValueError as error:
        raise BadInputError(file, f"no numbers: {error}", line=line) from error
    if vector.shape != (dim,) or not np.isfinite(vector).all():
        raise BadInputError(file, f"expected {dim} finite numbers, found {len(vector)}", line=line)
    return vector


def _of_model(folder: Path) -> dict[str, Vectors]:
    model = read_words(folder) if holds_words(folder) else None
    bag = model.features if isinstance(model, Propagated) else model
    if not isinstance(bag, Bag):
        raise ConfigError(
            f"{folder} contains no word vectors; choose a model of the recipe fasttext or sif, or a file "
            "in word2vec's text format"
        )
    return dict(zip(bag.words, bag.word_vectors, strict=True))


def _trained(
    texts: TrainTexts,
    words: Sequence[str],
    config: WordsTraining,
    saved_state: KeptTraining,
    progress: Progress,
) -> Vectors:
    """Train skip-gram vectors with letter n-grams (Bojanowski et al., TACL 2017), in one thread for reproducibility."""
    from gensim.models.fasttext import FastText

    if trained := saved_state.load(VECTORS):
        return trained[0][VECTORS]
    model = FastText(
        vector_size=config.dim,
        sg=1,
        window=WINDOW,
        sample=config.sample,
        min_count=config.min_count,
        negative=NEGATIVE,
        alpha=config.learning_rate,
        min_alpha=LEAST_RATE,
        bucket=config.buckets,
        workers=1,
        seed=config.seed,
        hashfxn=stable_hash,
    )
    fit(model, texts.cut, config.epochs, FASTTEXT, saved_state, progress)
    vectors = np.asarray(model.wv[list(words)], np.float32)
    saved_state.save(VECTORS, {VECTORS: vectors}, {})
    return vectors


@dataclass(frozen=True, slots=True)
class Fit:
    """The training task of a gensim model."""

    name: str  # of its state, in the training folder
    shown: str  # its name on a progress bar
    weights: tuple[str, ...]  # the arrays that training changes, as attributes of the model


FASTTEXT = Fit(
    "fasttext", "training word vectors", ("wv.vectors_vocab", "wv.vectors_ngrams", "syn1neg")
)


def fit(
    model: Any,
    documents: Sequence[Any],
    epochs: int,
    task: Fit,
    saved_state: KeptTraining,
    progress: Progress,
) -> None:
    """Train a gensim model on documents, from its saved state if there is one.

    The learning rate falls linearly from the model's `alpha` to its `min_alpha` over all epochs.

    Raises:
        ConfigError: If no word is frequent enough, or the saved state is damaged.
    """
    total = epochs * len(documents)
    first, last = model.alpha, model.min_alpha
    model.build_vocab(documents)
    if not len(model.wv):
        raise ConfigError("no word of the train papers is frequent enough; lower min_count")
    done = _restored(model, task, saved_state)
    progress(task.shown, done, total)
    while done < total:
        begin = done % len(documents)
        part = documents[begin : begin + PART]
        model.alpha = first - (first - last) * done / total
        done += len(part)
        model.min_alpha = first - (first - last) * done / total
        model.train(part, total_examples=len(part), epochs=1)
        progress(task.shown, done, total)
        if done < total:
            _keep(model, task, saved_state, done)


def _keep(model: Any, task: Fit, saved_state: KeptTraining, done: int) -> None:
    chance = model.random.get_state(legacy=False)["state"]
    arrays = {name: attrgetter(name)(model) for name in task.weights}
    facts = {"done": done, "position": chance["pos"]}
    saved_state.save_if_due(task.name, {**arrays, RANDOM: chance["key"]}, facts)


def _restored(model: Any, task: Fit, saved_state: KeptTraining) -> int:
    """Restore the saved state of a model; return the number of documents it has read, 0 without a state."""
    state = saved_state.load(task.name)
    if state is None:
        return 0
    arrays, facts = state
    for name in task.weights:
        attrgetter(name)(model)[:] = arrays[name]
    model.random.set_state(("MT19937", arrays[RANDOM], facts["position"]))
    return facts["done"]


def check_gensim() -> None:
    """Import gensim.

    Raises:
        MissingExtraError: If it is not installed.
    """
    with extra("words"):
        import gensim.models  # noqa: F401  # pyright: ignore[reportUnusedImport]
