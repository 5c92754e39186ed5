"""What can be chosen for the training of a cross-encoder, by name."""

from enum import StrEnum


class RerankerRecipe(StrEnum):
    """A named set of defaults."""

    PAPER = "paper"  # the settings of the paper, https://aclanthology.org/2020.sdp-1.10
    PAPER_SMALL = "paper-small"  # the same for a small corpus and model
    STRONG = "strong"  # lists of candidates of the hybrid retriever


class RerankerLoss(StrEnum):
    """The loss function."""

    BCE = "bce"  # each pair by itself: cited or not
    SOFTMAX = "softmax"  # the cited paper against its list
    RANKNET = "ranknet"
    LAMBDA = "lambda"
    MARGIN_MSE = "margin-mse"  # score differences of the teacher


class CandidateSource(StrEnum):
    """The retriever of the candidates."""

    BM25 = "bm25"
    FUSED = "fused"  # RRF of BM25 and the vectors of the index; BM25 alone without vectors


class RerankerPositives(StrEnum):
    """The cited papers that are positives."""

    FOUND = "found"  # cited candidates
    ALL = "all"  # all cited papers; leaks the label, as added papers are all cited


class RerankerNegatives(StrEnum):
    """The papers that are negatives."""

    FOUND = "found"  # candidates
    RANDOM = (
        "random"  # candidates and random papers; leaks the label, as added papers are never cited
    )


class RerankerSelectionMetric(StrEnum):
    """The measure on the dev queries that selects the best weights."""

    F1 = "f1"  # at 20
    MRR = "mrr"
    MIXED = "mixed"  # f1 of the best interpolation with the first-stage scores
    LOSS = "loss"
