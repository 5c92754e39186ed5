"""How good a model is on the dev queries: the order that it gives their candidates."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from citerec.encode.backend import open_backend
from citerec.encode.config import EncodeConfig
from citerec.errors import ConfigError, ModelError
from citerec.evaluate.protocol import EvalSet, load_task
from citerec.folder import IndexFolder
from citerec.rerank.model import RerankerParts, reranker_net
from citerec.rerank.pair import pair
from citerec.text import pair_text
from citerec.train.reranker.batch import Texts
from citerec.train.reranker.calibrate import platt
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.found import CandidateLists, Finder
from citerec.train.selection import f1_and_reciprocal_rank

Numbers = npt.NDArray[np.floating]
WEIGHTS = np.linspace(0, 1, 11)  # of the model, that mixtures are tried with


@dataclass(frozen=True)
class Dev:
    """Dev queries and their candidates."""

    queries: tuple[str, ...]  # what the model reads of each
    found: CandidateLists
    cited: npt.NDArray[np.bool_]  # of each candidate
    gold: npt.NDArray[np.int64]  # how many papers each query cites, found or not

    def scores(
        self, parts: RerankerParts, texts: Texts, how: EncodeConfig
    ) -> npt.NDArray[np.float32]:
        """Return the logit of each candidate, as the model is now and as it is run later.

        Raises:
            ModelError: If a logit is no finite number: the training went astray.
        """
        queries = parts.cut([*self.queries])
        owners, rows = self.found.lists.owners.tolist(), self.found.lists.indices.tolist()
        texts.read(rows)
        pairs = [
            pair(queries[i], texts[row].tolist(), parts.specials, parts.spec)
            for i, row in zip(owners, rows, strict=True)
        ]
        firsts = [first for _, first in pairs] if parts.typed else None
        frozen = replace(parts, model=copy.deepcopy(parts.model))  # which is moved and rounded
        logits = np.zeros(len(pairs), np.float32)
        for at, found in open_backend(reranker_net(frozen), how).run([p[0] for p in pairs], firsts):
            logits[at] = found[:, 0]
        if not np.isfinite(logits).all():
            raise ModelError("the training went astray: its scores are no numbers; lower the rate")
        return logits

    def measures(self, scores: Numbers) -> dict[str, float]:
        """Return how good the order by some scores is.

        Returns:
            `loss` is the mean of -log of the share that the cited candidates have in a softmax; f1 and mrr as below;
            `mixed` is f1 at the best of some weights, for the calibrated scores beside those of the candidates.
        """
        f1, mrr = self.ranked(scores)
        scale, offset = platt(scores, self.cited)
        chances = 1 / (1 + np.exp(-np.clip(scale * scores.astype(np.float64) + offset, -60, 60)))
        first = self._min_max(self.found.scores)
        mixed = max(self.ranked(w * chances + (1 - w) * first)[0] for w in WEIGHTS.tolist())
        return {"loss": self._loss(scores), "mrr": mrr, "f1": f1, "mixed": mixed}

    def ranked(self, scores: Numbers) -> tuple[float, float]:
        """Return the means of F1 at 20 and of 1 / rank of the first cited paper; 0 where none is found.

        Of equal scores the candidate that stood before comes first.
        """
        f1, mrr = 0.0, 0.0
        for i, gold in enumerate(self.gold.tolist()):
            mine = slice(*self.found.lists.indptr[i : i + 2])
            query_f1, reciprocal_rank = f1_and_reciprocal_rank(scores[mine], self.cited[mine], gold)
            f1 += query_f1
            mrr += reciprocal_rank
        return f1 / len(self.gold), mrr / len(self.gold)

    def _loss(self, scores: Numbers) -> float:
        losses: list[float] = []
        for i in range(len(self.gold)):
            mine = slice(*self.found.lists.indptr[i : i + 2])
            if self.cited[mine].any():
                shares = scores[mine] - np.logaddexp.reduce(scores[mine].astype(np.float64))
                losses.append(-float(shares[self.cited[mine]].mean()))
        return float(np.mean(losses)) if losses else 0.0

    def _min_max(self, scores: Numbers) -> Numbers:
        """Return scores that run from 0 to 1 in each list."""
        min_max = np.zeros(len(scores))
        for start, end in zip(
            self.found.lists.indptr[:-1], self.found.lists.indptr[1:], strict=True
        ):
            mine = scores[start:end]
            if end > start:
                min_max[start:end] = (mine - mine.min()) / max(float(np.ptp(mine)), 1e-9)
        return min_max


def dev_task(index: IndexFolder, config: RerankerTraining) -> EvalSet | None:
    """Return the dev queries and what they cite; None if there are none, or none are wanted."""
    if not config.dev_queries:
        return None
    try:
        return load_task(index, "dev")
    except ConfigError:  # none of them cites a paper here
        return None


def load_dev(index: IndexFolder, task: EvalSet, config: RerankerTraining, finder: Finder) -> Dev:
    """Draw dev queries and find their candidates."""
    rng = np.random.default_rng([config.seed, 3])
    count = min(config.dev_queries, len(task.queries))
    chosen = np.sort(rng.choice(len(task.queries), count, replace=False)).tolist()
    queries = [task.queries[i] for i in chosen]
    found = finder.find(queries, [task.eligible[i] for i in chosen], config.dev_depth)
    gold = [index.papers.rows_of(sorted(task.qrels[query.id])) for query in queries]
    cited = [np.isin(found.lists[i], rows) for i, rows in enumerate(gold)]
    return Dev(
        tuple(pair_text(query) for query in queries),
        found,
        np.concatenate(cited),
        np.array([len(rows) for rows in gold]),
    )


def own_order(dev: Dev) -> Mapping[str, float]:
    """Return how good the order is in which the candidates were found."""
    f1, mrr = dev.ranked(dev.found.scores)
    return {"mrr": mrr, "f1": f1, "mixed": f1}
