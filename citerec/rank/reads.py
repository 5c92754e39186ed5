"""What a learning-to-rank model reads: vectors of sentences, probabilities of a reranker that it may not know."""

from citerec.errors import ModelError
from citerec.folder import IndexFolder
from citerec.rank.custom import LtrModel
from citerec.rank.evidence import SENTENCE_VECTORS
from citerec.rank.ranker import find_ranker, read_spec
from citerec.rerank.cascade import Cascade


def suits_default_reranker(ranker: str, index: IndexFolder) -> bool:
    """Return whether lists are reranked by the default cross-encoder of the package if no option asks for it.

    They are if there is no learning-to-rank model, or one that was trained with a cross-encoder. They are not if there
    is no such model: whoever opens it reports that.

    Args:
        ranker: As for `find_ranker`.
        index: The index.

    Raises:
        IndexDamagedError: As for `find_ranker`.
    """
    try:
        folder = find_ranker(ranker, index)
        return folder is None or bool(read_spec(folder).get("provenance", {}).get("rerankers"))
    except ModelError:
        return False


def reads_sentence_vectors(ranker: LtrModel) -> bool:
    """Return whether a learning-to-rank model reads the vectors of the sentences of a query."""
    return not SENTENCE_VECTORS.isdisjoint(ranker.features)


def reads_probability(ranker: LtrModel, cascade: Cascade) -> bool:
    """Return whether a learning-to-rank model reads the probabilities of the last reranker as a feature.

    It reads those of a reranker that it was trained with, and calibrated ones, which mean the same for every reranker.
    A model that records no reranker reads every probability.
    """
    last = cascade.rerankers[-1]
    if not (ranker.reads_reranker and last.has_probability):
        return False
    return last.calibrated or not ranker.rerankers or _knows(ranker, cascade)


def reranker_notice(ranker: LtrModel, cascade: Cascade) -> str:
    """Return what a user should know if a model that reads a reranker was trained with another one; else empty.

    A model whose train queries were reranked by models of other corpora is made for any calibrated reranker.
    """
    last = cascade.rerankers[-1]
    if not (ranker.reads_reranker and ranker.rerankers) or _knows(ranker, cascade):
        return ""
    if not reads_probability(ranker, cascade):
        return (
            f"{last.shown} gives no calibrated probabilities, which {ranker} reads; "
            "its scores are interpolated with those of the ranker"
        )
    if ranker.cross_fitted:
        return ""
    return (
        f"{ranker} was trained with another reranker than {last.shown}; train it again: "
        f"citerec train-ranker --index {cascade.index.path} --force"
    )


def _knows(ranker: LtrModel, cascade: Cascade) -> bool:
    return cascade.rerankers[-1].settings.get("weights") in ranker.rerankers
