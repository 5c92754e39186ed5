"""Doc2Vec by gensim: DBOW with negative sampling."""

from itertools import product
from typing import Any

import numpy as np

from citerec.lab.train_words.config import LEAST_RATE, NEGATIVE, WINDOW, WordsTraining
from citerec.lab.train_words.corpus import TrainTexts
from citerec.lab.train_words.dev import GridSearch, TrainedModel
from citerec.lab.train_words.vectors import Fit, check_gensim, fit
from citerec.lab.words.doc2vec import Doc2VecWords, stable_hash

# The appendix also varies the window (5, 10, 15), which DBOW without word vectors does not use.
GRID = [
    {"sample": sample, "epochs": epochs}
    for sample, epochs in product((0.0, 1e-6, 1e-5), (50, 100, 200))
]


def make_doc2vec(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    """Train Doc2Vec.

    Raises:
        MissingExtraError: If gensim is not installed.

    Source: Le and Mikolov, ICML 2014, https://arxiv.org/abs/1405.4053.
    """
    check_gensim()
    settings = GRID if config.grid else [{"sample": config.sample, "epochs": config.epochs}]

    def make(sample: float, epochs: int) -> Doc2VecWords:
        return _trained(texts, config, search, sample=sample, epochs=epochs)

    model, tried = search.best(settings, make)
    counts = {
        "train_papers": len(texts.cut),
        "words": len(model.words),
        "words_in_them": int(model.counts.sum()),
    }
    return TrainedModel(model=model, tried=tried, counts=counts)


def _trained(
    texts: TrainTexts, config: WordsTraining, search: GridSearch, *, sample: float, epochs: int
) -> Doc2VecWords:
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    model: Any = Doc2Vec(
        vector_size=config.dim,
        dm=0,
        dbow_words=0,
        window=WINDOW,
        min_count=config.min_count,
        sample=sample,
        negative=NEGATIVE,
        alpha=config.learning_rate,
        min_alpha=LEAST_RATE,
        workers=1,
        seed=config.seed,
        hashfxn=stable_hash,
    )
    documents = [TaggedDocument(words, [number]) for number, words in enumerate(texts.cut)]
    task = Fit(f"doc2vec-{sample}-{epochs}", "training Doc2Vec", ("dv.vectors", "syn1neg"))
    fit(model, documents, epochs, task, search.saved_state, search.progress)
    words = tuple(model.wv.index_to_key)
    counts = [int(model.wv.get_vecattr(word, "count")) for word in words]
    return Doc2VecWords(
        words=words,
        counts=np.array(counts, np.int64),
        outputs=np.asarray(model.syn1neg, np.float32).copy(),
        negative=NEGATIVE,
        sample=sample,
        learning_rate=config.learning_rate,
        least_rate=LEAST_RATE,
        epochs=epochs,
    )
