"""Recommendation: do vectors help a ranker to predict which shown paper was clicked (SPECTER, sections 3.4 and 4)?

The ranker is the published one: ten features, one hidden layer of 50, sigmoid; a margin of 0.1 between the clicked and
each other shown paper; Adadelta; the epoch with the least validation loss of five. Clicks are biased towards first
positions, so each test click is weighted by the inverse propensity of its position.

The definitions of the features are those of the published ranker (https://github.com/allenai/scidocs, `recommender/`);
its eleventh input, the shown position, is always zero there. It tokenizes titles with spaCy; here a token is a run of
letters and digits, or a single other character; both are case-sensitive.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.files.arrays import Vectors
from citerec.lab.scidocs.layout import Click, Floats, PaperMetadata
from citerec.types import Progress, no_progress

Features = npt.NDArray[np.float32]  # shape (pairs, 10)
Score = Callable[[Features], Floats]  # shape (pairs, 10) to (pairs,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerConfig:
    """The settings of the ranker; the defaults are those of the published configuration."""

    epochs: int = 5
    batch: int = 128  # triplets
    hidden: int = 50
    dropout: float = 0.4
    margin: float = 0.1
    rho: float = 0.95  # of Adadelta
    clip: float = 5.0  # absolute limit of each gradient
    negatives: int = 10  # the first so many other papers shown with a clicked one


@dataclass(frozen=True, slots=True)
class RecommendationScore:
    """The score of click prediction; each click is weighted by the inverse propensity of its position."""

    ndcg: float  # in [0, 1]
    p_at_1: float  # share of clicks whose paper is ranked first, in [0, 1]
    clicks: int


@dataclass(frozen=True, slots=True)
class Clicks:
    """The clicks of each split; the published splits are by time."""

    train: Sequence[Click]
    validation: Sequence[Click]
    test: Sequence[Click]
    propensity: Floats  # of each position, shape (positions,)


def recommend(
    clicks: Clicks,
    records: Mapping[str, PaperMetadata],
    vectors: Mapping[str, Vectors],
    *,
    config: RankerConfig | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> RecommendationScore:
    """Train the ranker on the train clicks and evaluate it on the test clicks.

    Args:
        clicks: The clicks of each split.
        records: Metadata of papers.
        vectors: Vectors of papers; papers may be missing.
        config: The settings of the ranker.
        seed: Of the weights, the order of the triplets and the dropout.
        progress: Receives the number of finished epochs.
    """
    config = config or RankerConfig()
    train, validation = (
        _triplets(part, records, vectors, config.negatives)
        for part in (clicks.train, clicks.validation)
    )
    weight = float(clicks.propensity.mean() / clicks.propensity[-1])
    score = _trained(train, validation, config, weight, seed, progress)
    return score_clicks(
        clicks.test, clicks.propensity, _scores(clicks.test, records, vectors, score)
    )


def score_clicks(
    clicks: Sequence[Click], propensity: Floats, scores: Sequence[Floats]
) -> RecommendationScore:
    """Return the score of click predictions.

    The rank of the clicked paper is 1 + r, where r is the number of other papers with a higher score plus half of those
    with the same; its nDCG is 1 / log2(2 + r), its P@1 is 1 if r is 0. A click at a position of propensity p has the
    weight 1 / p.

    Args:
        clicks: The clicks.
        propensity: Of each position.
        scores: Of the shown papers of each click.
    """
    weights = np.array([1 / propensity[click.position - 1] for click in clicks])
    above = np.array([_above(*pair) for pair in zip(clicks, scores, strict=True)])
    ndcg = float(weights @ (1 / np.log2(2 + above)) / weights.sum())
    return RecommendationScore(
        ndcg, float(weights @ (above == 0) / weights.sum()), len(clicks)
    )


def _above(click: Click, scores: Floats) -> float:
    own = scores[click.position - 1]
    others = np.array([paper != click.clicked for paper in click.shown])
    return float((scores[others] > own).sum() + (scores[others] == own).sum() / 2)


def _scores(
    clicks: Sequence[Click],
    records: Mapping[str, PaperMetadata],
    vectors: Mapping[str, Vectors],
    score: Score,
) -> list[Floats]:
    pairs = [(click.query, paper) for click in clicks for paper in click.shown]
    ends = np.cumsum([len(click.shown) for click in clicks])[:-1]
    return np.split(score(pair_features(pairs, records, vectors)), ends)


def _triplets(
    clicks: Sequence[Click],
    records: Mapping[str, PaperMetadata],
    vectors: Mapping[str, Vectors],
    most: int,
) -> tuple[Features, Features]:
    """Return the features of the clicked papers and of other shown papers, one row per pair."""
    pairs: list[tuple[str, str, str]] = []
    for click in clicks:
        others = [paper for paper in click.shown if paper != click.clicked][:most]
        pairs += [(click.query, click.clicked, other) for other in others]
    clicked = pair_features(
        [(query, candidate) for query, candidate, _ in pairs], records, vectors
    )
    return clicked, pair_features(
        [(query, other) for query, _, other in pairs], records, vectors
    )


def _trained(
    train: tuple[Features, Features],
    validation: tuple[Features, Features],
    config: RankerConfig,
    weight: float,
    seed: int,
    progress: Progress,
) -> Score:
    """Train the ranker; return the scoring function of the best epoch.

    The published ranker weights each loss by the propensity at position zero minus one, which is that of the last
    position: one weight for all.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = _net(config)
        loss_of = torch.nn.MarginRankingLoss(config.margin)
        optimizer = torch.optim.Adadelta(net.parameters(), rho=config.rho)
        sides = [torch.from_numpy(side) for side in train]
        held = [torch.from_numpy(side) for side in validation]
        best = net.state_dict()
        least = float("inf")
        for epoch in range(config.epochs):
            net.train()
            for batch in torch.randperm(len(sides[0])).split(config.batch):
                optimizer.zero_grad()
                (
                    weight * _loss(net, loss_of, [side[batch] for side in sides])
                ).backward()
                torch.nn.utils.clip_grad_value_(net.parameters(), config.clip)
                optimizer.step()
            net.eval()
            with torch.no_grad():
                loss = (
                    float(_loss(net, loss_of, held)) if len(held[0]) else -float(epoch)
                )
            if loss < least:
                best = {name: w.clone() for name, w in net.state_dict().items()}
                least = loss
            progress("ranker", epoch + 1, config.epochs)
        net.load_state_dict(best)
    return lambda features: _score(net, features)


def _net(config: RankerConfig) -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Linear(len(FEATURES), config.hidden),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.hidden, 1),
        nn.Sigmoid(),
    )


def _loss(net: Any, loss_of: Any, sides: Sequence[Any]) -> Any:
    import torch

    clicked, other = (net(side).squeeze(1) for side in sides)
    return loss_of(clicked, other, torch.ones_like(clicked))


def _score(net: Any, features: Features) -> Floats:
    import torch

    net.eval()
    with torch.no_grad():
        return net(torch.from_numpy(features)).squeeze(1).numpy().astype(np.float64)


FEATURES = (
    "author match",
    "title match",
    "similarity of vectors",
    "shared citing papers",
    "shared references",
    "candidate cites query",
    "query cites candidate",
    "age",
    "age against the query",
    "citations",
)
NOW = 2020  # the reference year of ages
SPAN = 20.0  # years that count as 1; larger ages are cut

_TOKEN = re.compile(r"\w+|[^\w\s]")


def pair_features(
    pairs: Sequence[tuple[str, str]],
    records: Mapping[str, PaperMetadata],
    vectors: Mapping[str, Vectors],
) -> Features:
    """Return the features of pairs of query and candidate, shape (pairs, 10), columns as `FEATURES`.

    Matches and overlaps are Jaccard similarities in [0, 1]; the similarity is the cosine; ages are in units of 20 years
    in [-1, 1], positive for an older candidate; citations are log(1 + n) / 10. Unknown values are 0.

    Args:
        pairs: Ids of query and candidate.
        records: Metadata of papers; papers may be missing.
        vectors: Vectors of papers; papers may be missing.
    """
    table = np.zeros((len(pairs), len(FEATURES)), np.float32)
    for row, (query, candidate) in enumerate(pairs):
        query_paper = records.get(query)
        candidate_paper = records.get(candidate)
        if query_paper and candidate_paper:
            table[row, [0, 1, 3, 4, 8]] = _of_both(query_paper, candidate_paper)
        if candidate_paper:
            table[row, [7, 9]] = (
                _age(candidate_paper.paper.year, NOW),
                log(1 + len(candidate_paper.cited_by)) / 10,
            )
        table[row, 2] = _cosine(vectors.get(query), vectors.get(candidate))
        table[row, 5] = _cites(candidate_paper, query_paper, candidate, query)
        table[row, 6] = _cites(query_paper, candidate_paper, query, candidate)
    return table


def _of_both(query: PaperMetadata, candidate: PaperMetadata) -> tuple[float, ...]:
    return (
        _jaccard(query.authors, candidate.authors),
        _jaccard(_words(query.paper.title), _words(candidate.paper.title)),
        _jaccard(query.cited_by, candidate.cited_by),
        _jaccard(query.references, candidate.references),
        0.0
        if query.paper.year is None
        else _age(candidate.paper.year, query.paper.year),
    )


def _jaccard(a: Set[str], b: Set[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


@lru_cache(maxsize=2**16)
def _words(title: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(title))


def _age(year: int | None, since: int) -> float:
    return 0.0 if year is None else max(-1.0, min(1.0, (since - year) / SPAN))


def _cites(
    citing: PaperMetadata | None,
    cited: PaperMetadata | None,
    citing_id: str,
    cited_id: str,
) -> bool:
    """Return whether one paper cites another, according to either."""
    referenced = citing is not None and cited_id in citing.references
    return referenced or (cited is not None and citing_id in cited.cited_by)


def _cosine(a: Vectors | None, b: Vectors | None) -> float:
    if a is None or b is None:
        return 0.0
    x = a.astype(np.float64)
    y = b.astype(np.float64)
    return float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-8))
