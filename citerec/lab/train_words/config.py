"""Settings of the training of a word-vector encoder: a recipe, a TOML file, and options.

Options override the file, the file overrides the recipe. The defaults are those of SPECTER's appendix A
(https://arxiv.org/abs/2004.07180) where it states them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from citerec.errors import BadInputError, ConfigError
from citerec.lab.words.bag import Tf
from citerec.toml import read_toml
from citerec.train.encoder.config import EncoderRecipe
from citerec.train.settings import (
    Kinds,
    check_above_zero,
    check_least,
    checked,
    kinds_of,
    read_settings,
)


class WordRecipe(StrEnum):
    """The kind of word-vector encoder."""

    RANDOM = "random"  # random vectors
    TFIDF = "tfidf"  # TF-IDF with singular value decomposition
    DOC2VEC = "doc2vec"  # DBOW
    FASTTEXT = "fasttext"  # a weighted sum of word vectors
    SIF = "sif"  # a weighted average without its first principal component
    SGC = "sgc"  # SIF, propagated along the citations
    CITEOMATIC = "citeomatic"  # a weighted sum of word vectors, trained on citations


class Idf(StrEnum):
    """The inverse document frequency, as in scikit-learn's TfidfVectorizer."""

    NONE = "none"
    PLAIN = "plain"
    SMOOTH = "smooth"


WORD_RECIPES: frozenset[str] = frozenset(WordRecipe)
RECIPES = (*EncoderRecipe, *WordRecipe)  # of `citerec train-encoder`


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsTraining:
    """The settings of the training of a word-vector encoder; each recipe uses some of them, with its own defaults."""

    recipe: WordRecipe = WordRecipe.SIF
    seed: int = 0
    dim: int = 300
    grid: bool = True  # select the settings of the appendix's grid on the dev queries

    vectors: str = (
        ""  # precomputed word vectors: word2vec's text format, or a word-vector model; else trained
    )
    min_df: int = 3  # train papers that a word is in, at least
    max_df: float = 0.75  # share of the train papers that it is in, at most
    tf: Tf = Tf.PLAIN  # chosen by the grid, as idf, a, k, window, sample and epochs of Doc2Vec
    idf: Idf = Idf.NONE
    a: float = 1e-4  # SIF: a word of probability p weighs a / (a + p)
    k: int = 2  # SGC: propagation steps

    window: int = 5
    sample: float = 0.0  # frequency above which words are subsampled; 0 for none
    min_count: int = 3  # how often a word is there, at least, to get a vector of its own
    negative: int = 5  # words drawn against each
    learning_rate: float = 0.025  # the first; with Adam the only one
    least_rate: float = 0.0001  # the last
    buckets: int = (
        200_000  # of fastText's letter n-grams: 2 million there, whose vectors take 2.4 GB
    )
    epochs: int = 5

    batch: int = 512  # Citeomatic: triplets in an update
    margin: float = 1.0  # factor of the margins of all kinds of negatives
    negatives: int = 6  # triplets of each citation in an epoch
    dropout: float = 0.1  # share of dimensions dropped in training

    dev_queries: int = 200  # evaluated; 0 for none
    dev_pool: int = 2000  # candidate papers of the dev queries
    threads: int = 0  # 0 for one per processor

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_above_zero(self, "max_df", "a", "learning_rate", "margin")
        if self.seed >= 2**32:
            raise ConfigError(f"seed must be less than 2^32, got {self.seed}")
        for name, most in (("max_df", 1), ("sample", 1), ("dropout", 0.9)):
            if getattr(self, name) > most:
                raise ConfigError(f"{name} must be at most {most}, got {getattr(self, name)}")

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Complete values with the defaults of their recipe.

        Args:
            given: Values by name, from a TOML file or the command line.
            where: The origin of the values, as a prefix of error messages.

        Raises:
            ConfigError: If a name is unknown or unused by the recipe, or a value is invalid.
        """
        recipe = WordRecipe(_known(given.get("recipe", WordRecipe.SIF), where, WORD_RECIPES))
        if unread := [name for name in given if name not in READ[recipe]]:
            raise ConfigError(
                f"{where}the recipe {recipe} has no setting {unread[0]}; its settings: {', '.join(READ[recipe])}"
            )
        values: dict[str, Any] = {"recipe": recipe}
        values.update(_DEFAULTS[recipe])
        values.update(checked(_KINDS, given, where))
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the settings of the recipe as JSON values, without `threads`, which does not change the result."""
        return {name: getattr(self, name) for name in READ[self.recipe] if name != "threads"}


def read_words_training(file: Path | None, options: Mapping[str, Any]) -> WordsTraining:
    """Read the settings: options override the file, the file overrides the recipe.

    Args:
        file: TOML; keys as the fields of `WordsTraining`.
        options: From the command line; None means not given.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it is invalid.
    """
    return read_settings(WordsTraining.of, file, options)


def wants_words(file: Path | None, recipe: str | None) -> bool:
    """Return whether a word-vector encoder is to be trained, by the option or else the file.

    Raises:
        ConfigError: If there is no such recipe.
    """
    if recipe is not None:
        return _known(recipe, "") in WORD_RECIPES
    if file is None:
        return False
    named: object = None
    with suppress(BadInputError):  # the error is raised when the whole file is read
        named = read_toml(file).get("recipe")
    return named is not None and _known(named, f"{file}: ") in WORD_RECIPES


def _known(recipe: object, where: str, among: frozenset[str] = frozenset(RECIPES)) -> str:
    if not isinstance(recipe, str) or recipe not in among:
        shown = ", ".join(name for name in RECIPES if name in among)
        raise ConfigError(f"{where}recipe must be {shown}; got {recipe!r}")
    return recipe


_EVERY = ("recipe", "seed")
_WORDS, _DEV = ("min_df", "max_df"), ("grid", "dev_queries", "dev_pool")
_SKIPGRAM = ("window", "sample", "min_count", "negative", "learning_rate", "least_rate", "epochs")
_FASTTEXT = ("dim", "vectors", *_WORDS, *_SKIPGRAM, "buckets", *_DEV)
READ: Mapping[WordRecipe, tuple[str, ...]] = {
    WordRecipe.RANDOM: (*_EVERY, "dim", *_DEV[1:]),
    WordRecipe.TFIDF: (*_EVERY, "dim", *_WORDS, "tf", "idf", *_DEV),
    WordRecipe.DOC2VEC: (*_EVERY, "dim", *_SKIPGRAM, *_DEV),
    WordRecipe.FASTTEXT: (*_EVERY, "tf", "idf", *_FASTTEXT),
    WordRecipe.SIF: (*_EVERY, "a", *_FASTTEXT),
    WordRecipe.SGC: (*_EVERY, "a", "k", *_FASTTEXT),
    WordRecipe.CITEOMATIC: (
        *(*_EVERY, "dim", *_WORDS, "epochs", "batch", "learning_rate"),
        *("margin", "negatives", "dropout", *_DEV[1:], "threads"),
    ),
}
_LEAST = {
    **dict.fromkeys(("seed", "sample", "least_rate", "dropout", "dev_queries", "threads"), 0),
    **dict.fromkeys(("dim", "min_df", "k", "window", "min_count", "negative", "buckets"), 1),
    **dict.fromkeys(("epochs", "batch", "negatives", "dev_pool"), 1),
}
_KINDS: Kinds = kinds_of(WordsTraining)
_SUBWORDS: Mapping[str, Any] = {"learning_rate": 0.05, "sample": 1e-4}  # fastText's own defaults
_DEFAULTS: Mapping[WordRecipe, Mapping[str, Any]] = {
    WordRecipe.RANDOM: {"dim": 25},
    WordRecipe.TFIDF: {"idf": Idf.SMOOTH, "tf": Tf.SUBLINEAR},
    WordRecipe.DOC2VEC: {"grid": False, "epochs": 50},
    WordRecipe.FASTTEXT: _SUBWORDS,
    WordRecipe.SIF: _SUBWORDS,
    WordRecipe.SGC: _SUBWORDS,
    WordRecipe.CITEOMATIC: {"dim": 75, "epochs": 20, "learning_rate": 0.005},
}
