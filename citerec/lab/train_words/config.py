"""Settings of the training of a word-vector encoder.

The defaults are those of SPECTER's appendix A (https://arxiv.org/abs/2004.07180) where it states them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

from citerec.errors import BadInputError, ConfigError
from citerec.lab.words.bag import Tf
from citerec.toml import read_toml
from citerec.train.encoder.config import EncoderRecipe
from citerec.train.settings import (
    AboveZero,
    Batch,
    From0,
    From1,
    NotNegative,
    Seed,
    Threads,
    TrainingSettings,
    at_most,
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

MAX_DF = 0.75  # share of the train papers that a word of the vocabulary is in, at most
WINDOW = 5  # words on each side
NEGATIVE = 5  # words drawn against each
LEAST_RATE = 0.0001  # the last learning rate


_EVERY = ("recipe", "seed")
_DEV = ("grid", "dev_queries", "dev_pool")
_SKIPGRAM = ("sample", "min_count", "learning_rate", "epochs")
_FASTTEXT = ("dim", "vectors", "min_df", *_SKIPGRAM, "buckets", *_DEV)
READ: Mapping[WordRecipe, tuple[str, ...]] = {
    WordRecipe.RANDOM: (*_EVERY, "dim", *_DEV[1:]),
    WordRecipe.TFIDF: (*_EVERY, "dim", "min_df", "tf", "idf", *_DEV),
    WordRecipe.DOC2VEC: (*_EVERY, "dim", *_SKIPGRAM, *_DEV),
    WordRecipe.FASTTEXT: (*_EVERY, "tf", "idf", *_FASTTEXT),
    WordRecipe.SIF: (*_EVERY, "a", *_FASTTEXT),
    WordRecipe.SGC: (*_EVERY, "a", "k", *_FASTTEXT),
    WordRecipe.CITEOMATIC: (
        *(*_EVERY, "dim", "min_df", "epochs", "batch", "learning_rate"),
        *(*_DEV[1:], "threads"),
    ),
}
_SUBWORDS: Mapping[str, Any] = {"learning_rate": 0.05, "sample": 1e-4}  # fastText's own defaults
_RECIPES: Mapping[str, Mapping[str, Any]] = {
    WordRecipe.SIF: _SUBWORDS,
    WordRecipe.RANDOM: {"dim": 25},
    WordRecipe.TFIDF: {"idf": Idf.SMOOTH, "tf": Tf.SUBLINEAR},
    WordRecipe.DOC2VEC: {"grid": False, "epochs": 50},
    WordRecipe.FASTTEXT: _SUBWORDS,
    WordRecipe.SGC: _SUBWORDS,
    WordRecipe.CITEOMATIC: {"dim": 75, "epochs": 20, "learning_rate": 0.005},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsTraining(TrainingSettings):
    """The settings of the training of a word-vector encoder; each recipe uses some of them, with its own defaults."""

    recipe: WordRecipe = WordRecipe.SIF
    seed: Seed = 0
    dim: From1 = 300
    grid: bool = True  # select the settings of the appendix's grid on the dev queries

    # Precomputed word vectors: word2vec's text format, or a word-vector model; otherwise they are trained.
    vectors: str = ""
    min_df: From1 = 3  # train papers that a word is in, at least
    tf: Tf = Tf.PLAIN  # chosen by the grid, as idf, a, k, sample and epochs of Doc2Vec
    idf: Idf = Idf.NONE
    a: AboveZero = 1e-4  # SIF: a word of probability p weighs a / (a + p)
    k: From1 = 2  # SGC: propagation steps

    # Frequency above which words are subsampled; 0 for none.
    sample: Annotated[NotNegative, at_most(1)] = 0.0
    min_count: From1 = 3  # how often a word is there, at least, to get a vector of its own
    learning_rate: AboveZero = 0.025  # the first; with Adam the only one
    buckets: From1 = 200_000  # of letter n-grams; fastText has 2 million, whose vectors take 2.4 GB
    epochs: From1 = 5
    batch: Batch = 512  # Citeomatic: triplets in an update

    dev_queries: From0 = 200  # evaluated; 0 for none
    dev_pool: From1 = 2000  # candidate papers of the dev queries
    threads: Threads = 0  # 0 for one per processor

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = _RECIPES
    REMOVED: ClassVar[Mapping[str, Any]] = {
        "max_df": 0.75,
        "window": 5,
        "negative": 5,
        "least_rate": 0.0001,
        "margin": 1.0,
        "negatives": 6,
        "dropout": 0.1,
    }

    @classmethod
    def check_given(cls, given: Mapping[str, Any], where: str) -> None:
        """Refuse an unknown recipe, and settings that the recipe does not use.

        Raises:
            ConfigError: If there are any.
        """
        recipe = WordRecipe(_known(given.get("recipe", WordRecipe.SIF), where, WORD_RECIPES))
        if unread := [name for name in given if name not in READ[recipe]]:
            raise ConfigError(
                f"{where}the recipe {recipe} has no setting {unread[0]}; its settings: {', '.join(READ[recipe])}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the settings of the recipe as JSON values, without `threads`, which does not change the result."""
        return {name: getattr(self, name) for name in READ[self.recipe] if name != "threads"}


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
