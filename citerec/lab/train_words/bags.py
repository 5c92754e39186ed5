"""Bags of words: TF-IDF with SVD, fastText-sum, SIF and SGC; the dev queries select their settings."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.lab.train_words.config import MAX_DF, Idf, WordsTraining
from citerec.lab.train_words.corpus import TrainTexts
from citerec.lab.train_words.dev import GridSearch, TrainedModel
from citerec.lab.train_words.vectors import WordVectors, word_vectors
from citerec.lab.words.bag import Bag, Numbers, Tf, tf_of
from citerec.lab.words.model import Vectors, directions
from citerec.lab.words.propagated import Propagated, propagate
from citerec.lab.words.tokens import keys_of

WEIGHTINGS = [{"tf": tf, "idf": idf} for tf, idf in product(Tf, Idf)]  # nine combinations
SIF_A = [float(a) for a in np.logspace(-5, -3, 9)]
STEPS = range(1, 9)
BLOCK = 65_536  # papers converted to float64 at once


def make_tfidf(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    """Train TF-IDF vectors with SVD: the vector of a word is its row of the right singular vectors.

    Source: Deerwester et al., JASIS 1990.
    """
    words = texts.vocabulary(config.min_df, MAX_DF)
    counts = texts.counts(words)

    def make(tf: Tf, idf: Idf) -> Bag:
        weights = idf_of(counts, idf)
        vectors = _singular(tf_of(counts, tf) * weights[None, :], config)
        return Bag(words=words, word_vectors=vectors, weights=weights, tf=tf)

    model, tried = search.best(_weightings(config), make)
    return TrainedModel(model=model, tried=tried, counts=_counts(counts))


def make_fasttext(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    """Train a weighted sum of word vectors."""
    word_vecs = word_vectors(texts, config, search.log, search.progress, search.saved_state)
    counts = texts.counts(word_vecs.words)

    def make(tf: Tf, idf: Idf) -> Bag:
        weights = idf_of(counts, idf)
        return Bag(words=word_vecs.words, word_vectors=word_vecs.vectors, weights=weights, tf=tf)

    model, tried = search.best(_weightings(config), make)
    return TrainedModel(model=model, tried=tried, counts=_counts(counts), weights=word_vecs.sha256)


def make_sif(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    """Train an average of word vectors with low weights for frequent words, without its first principal component."""
    word_vecs = word_vectors(texts, config, search.log, search.progress, search.saved_state)
    counts = texts.counts(word_vecs.words)
    settings = [{"a": a} for a in (SIF_A if config.grid else [config.a])]

    def make(a: float) -> Bag:
        return sif(word_vecs, counts, a)

    model, tried = search.best(settings, make)
    return TrainedModel(model=model, tried=tried, counts=_counts(counts), weights=word_vecs.sha256)


def make_sgc(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    """Train SIF vectors propagated along the citations that every dev and test query may know."""
    word_vecs = word_vectors(texts, config, search.log, search.progress, search.saved_state)
    counts = texts.counts(word_vecs.words)
    features = sif(word_vecs, counts, config.a)
    links = texts.known_links()
    rows = np.unique(np.concatenate(links.nonzero()))  # only linked papers change
    links = links[rows][:, rows]
    papers = [*texts.data.index.papers.at(rows.tolist()).values()]
    keys, sums = keys_of(papers), features.sums(papers)
    order = np.argsort(keys)

    def make(k: int) -> Propagated:
        table = directions(propagate(sums, links, k), papers)
        return Propagated(features=features, keys=keys[order], table=table[order])

    model, tried = search.best([{"k": k} for k in (STEPS if config.grid else [config.k])], make)
    linked = {"linked_papers": len(rows), "citations_known_to_the_queries": int(links.nnz)}
    return TrainedModel(
        model=model, tried=tried, counts=_counts(counts) | linked, weights=word_vecs.sha256
    )


def sif(word_vecs: WordVectors, counts: Any, a: float) -> Bag:
    """Build a SIF model.

    Args:
        word_vecs: The word vectors.
        counts: Of these words in the train papers, shape (papers, words).
        a: A word of probability p has the weight a / (a + p).

    Source: Arora et al., ICLR 2017, algorithm 1, https://openreview.net/forum?id=SyK00v5xx.
    """
    times = counts.sum(0)
    weights = (a / (a + times / max(times.sum(), 1))).astype(np.float32)
    plain = Bag(
        words=word_vecs.words, word_vectors=word_vecs.vectors, weights=weights, average=True
    )
    lengths = np.maximum(counts.sum(1), 1)[:, None]
    averages = (counts @ (word_vecs.vectors * weights[:, None])) / lengths
    return Bag(
        words=plain.words,
        word_vectors=plain.word_vectors,
        weights=weights,
        average=True,
        component=first_component(averages),
    )


def first_component(vectors: Vectors) -> Numbers:
    """Return the first right singular vector, of unit length, shape (dim,); the vectors are not centred."""
    dim = vectors.shape[1]
    products = np.zeros((dim, dim))
    for start in range(0, len(vectors), BLOCK):  # of 7 million papers float64 would take 17 GB
        wide = vectors[start : start + BLOCK].astype(np.float64)
        products += wide.T @ wide
    _, directions = np.linalg.eigh(products)
    first = directions[:, -1]
    return (first * np.sign(first[np.abs(first).argmax()])).astype(np.float32)


def idf_of(counts: Any, idf: Idf) -> Numbers:
    """Return the inverse document frequencies, shape (words,): 1 + ln (n / df); smooth adds 1 to n and df.

    Source: scikit-learn's TfidfTransformer.
    """
    papers, words = counts.shape
    if idf is Idf.NONE:
        return np.ones(words, np.float32)
    added = int(idf is Idf.SMOOTH)
    in_papers = np.bincount(counts.indices, minlength=words)
    return (1 + np.log((papers + added) / np.maximum(in_papers + added, 1))).astype(np.float32)


def _weightings(config: WordsTraining) -> Sequence[dict[str, Any]]:
    return WEIGHTINGS if config.grid else [{"tf": config.tf, "idf": config.idf}]


def _singular(weighted: Any, config: WordsTraining) -> Vectors:
    from sklearn.decomposition import TruncatedSVD

    dim = min(config.dim, min(weighted.shape) - 1)
    if dim < 1:
        papers, words = weighted.shape
        raise ConfigError(f"{papers} train papers and {words} words are too few to decompose")
    word_vecs: Any = TruncatedSVD(dim, random_state=config.seed)
    return np.ascontiguousarray(word_vecs.fit(weighted.tocsr()).components_.T, np.float32)


def _counts(counts: Any) -> dict[str, int]:
    papers, words = counts.shape
    return {"train_papers": papers, "words": words, "words_in_them": int(counts.sum())}
