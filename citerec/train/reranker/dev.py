"""Evaluates a cross-encoder on the dev queries: the order that it gives their candidates."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from citerec.encode.backend import open_backend
from citerec.encode.config import EncodeConfig
from citerec.errors import ModelError
from citerec.folder import IndexFolder
from citerec.rerank.model import RerankerParts, reranker_net
from citerec.rerank.pair import pair
from citerec.rerank.spec import RerankerSpec
from citerec.text import pair_text
from citerec.train.data import DevQueries
from citerec.train.joined import TrainingIndex, parts_of
from citerec.train.measures import f1_and_reciprocal_rank, platt
from citerec.train.reranker.batch import Texts
from citerec.train.reranker.candidates import CandidateFinder, CandidateLists
from citerec.train.reranker.config import RerankerTraining
from citerec.types import Log

Numbers = npt.NDArray[np.floating]
RERANK_WEIGHTS = np.linspace(0, 1, 21).round(2)  # where probabilities are small, the best is near 1


@dataclass(frozen=True)
class RerankerDev:
    """Dev queries and their candidates."""

    queries: tuple[str, ...]  # the text of each
    candidates: CandidateLists
    cited: npt.NDArray[np.bool_]  # of each candidate, shape (entries,)
    gold: npt.NDArray[np.int64]  # cited papers of each query, retrieved or not, shape (queries,)

    def scores(
        self, parts: RerankerParts, texts: Texts, how: EncodeConfig
    ) -> npt.NDArray[np.float32]:
        """Return the logit of each candidate with the current weights, shape (entries,).

        Raises:
            ModelError: If a logit is not finite: the training diverged.
        """
        queries = parts.cut([*self.queries])
        lists = self.candidates.lists
        segment_ids, rows = lists.segment_ids.tolist(), lists.indices.tolist()
        texts.read(rows)
        pairs = [
            pair(queries[i], texts[row].tolist(), parts.specials, parts.spec)
            for i, row in zip(segment_ids, rows, strict=True)
        ]
        firsts = [first for _, first in pairs] if parts.typed else None
        # The backend moves and rounds the weights.
        frozen = replace(parts, model=copy.deepcopy(parts.model))
        logits = np.zeros(len(pairs), np.float32)
        for positions, outputs in open_backend(reranker_net(frozen), how).run(
            [p[0] for p in pairs], firsts
        ):
            logits[positions] = outputs[:, 0]
        if not np.isfinite(logits).all():
            raise ModelError(
                "the training diverged: its scores are not finite; lower learning_rate"
            )
        return logits

    def measures(self, scores: Numbers) -> dict[str, float]:
        """Measure the order by some scores.

        Args:
            scores: Of the candidates, shape (entries,).

        Returns:
            `loss` is the mean of -log of the softmax share of the cited candidates; `f1` and `mrr` as in `ranked`;
            `mixed` is the f1 at the best rerank weight, for calibrated probabilities interpolated with min-max scaled
            first-stage scores.
        """
        f1, mrr = self.ranked(scores)
        mixed = max(f1 for f1, _ in self.by_weight(scores, *platt(scores, self.cited)).values())
        return {"loss": self._loss(scores), "mrr": mrr, "f1": f1, "mixed": mixed}

    def calibrated(self, spec: RerankerSpec, scores: Numbers, *, adds: bool) -> RerankerSpec:
        """Return a spec with the calibration of some scores.

        Args:
            spec: The spec.
            scores: Of the candidates, shape (entries,).
            adds: Whether the model learned to add to the first-stage scores; then `weight` is the rerank weight of the
                highest product of F1 at 20 and MRR, in which a percent of either counts the same.
        """
        scale, offset = platt(scores, self.cited)
        of_weights = self.by_weight(scores, scale, offset)
        best = max(of_weights, key=lambda weight: math.prod(of_weights[weight]))
        weight = best if adds else spec.weight
        return replace(spec, scale=scale, offset=offset, weight=weight)

    def by_weight(
        self, scores: Numbers, scale: float, offset: float
    ) -> Mapping[float, tuple[float, float]]:
        """Return what `ranked` returns for probabilities interpolated with first-stage scores, by rerank weight.

        The probabilities are sigmoid(scale * score + offset).

        Args:
            scores: Of the candidates, shape (entries,).
            scale: Above 0.
            offset: Of any sign.
        """
        z = np.clip(scale * scores.astype(np.float64) + offset, -60, 60)
        probabilities, first = 1 / (1 + np.exp(-z)), self._min_max(self.candidates.scores)
        return {
            weight: self.ranked(weight * probabilities + (1 - weight) * first)
            for weight in RERANK_WEIGHTS.tolist()
        }

    def ranked(self, scores: Numbers) -> tuple[float, float]:
        """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper (0 if there is none).

        Equal scores keep the order of the candidates.
        """
        f1, mrr = 0.0, 0.0
        for i, gold in enumerate(self.gold.tolist()):
            entries = slice(*self.candidates.lists.indptr[i : i + 2])
            measures = f1_and_reciprocal_rank(scores[entries], self.cited[entries], gold)
            f1 += measures[0]
            mrr += measures[1]
        return f1 / len(self.gold), mrr / len(self.gold)

    def _loss(self, scores: Numbers) -> float:
        losses: list[float] = []
        for i in range(len(self.gold)):
            entries = slice(*self.candidates.lists.indptr[i : i + 2])
            if self.cited[entries].any():
                shares = scores[entries] - np.logaddexp.reduce(scores[entries].astype(np.float64))
                losses.append(-float(shares[self.cited[entries]].mean()))
        return float(np.mean(losses)) if losses else 0.0

    def _min_max(self, scores: Numbers) -> Numbers:
        """Scale the scores of each list to [0, 1]."""
        min_max = np.zeros(len(scores))
        for start, end in zip(
            self.candidates.lists.indptr[:-1], self.candidates.lists.indptr[1:], strict=True
        ):
            of_list = scores[start:end]
            if end > start:
                min_max[start:end] = (of_list - of_list.min()) / max(float(np.ptp(of_list)), 1e-9)
        return min_max


@dataclass(frozen=True, slots=True)
class DrawnDev:
    """Dev queries of an index that are drawn, before their candidates are searched."""

    index: IndexFolder
    start: int  # the joined row of the first paper of the index
    queries: DevQueries


def draw_dev(index: TrainingIndex, config: RerankerTraining) -> list[DrawnDev]:
    """Draw dev queries; several indexes have equal shares, and an index without dev queries has none."""
    rng = np.random.default_rng([config.seed, 3])
    indexes = parts_of(index)
    starts = np.cumsum([0, *(len(one.papers) for one in indexes)]).tolist()
    count = -(-config.dev_queries // len(indexes))
    return [
        DrawnDev(one, start, drawn)
        for one, start in zip(indexes, starts, strict=False)
        if (drawn := DevQueries.drawn(one, count, rng)) is not None
    ]


def load_dev(parts: Sequence[DrawnDev], config: RerankerTraining, log: Log) -> RerankerDev | None:
    """Retrieve the candidates of dev queries; None without queries."""
    found: list[CandidateLists] = []
    cited: list[npt.NDArray[np.bool_]] = []
    for part in parts:
        finder = CandidateFinder(part.index, config, log)
        drawn = part.queries
        candidates = finder.find(drawn.queries, drawn.eligible, config.dev_depth)
        cited += [np.isin(candidates.lists[i], rows) for i, rows in enumerate(drawn.gold)]
        found.append(candidates.shifted(part.start))
    if not found:
        return None
    return RerankerDev(
        tuple(pair_text(query) for part in parts for query in part.queries.queries),
        CandidateLists.joined(found),
        np.concatenate(cited),
        np.array([len(rows) for part in parts for rows in part.queries.gold]),
    )


def first_stage_measures(dev: RerankerDev) -> Mapping[str, float]:
    """Return the measures of the first-stage ranking."""
    f1, mrr = dev.ranked(dev.candidates.scores)
    return {"mrr": mrr, "f1": f1, "mixed": f1}
