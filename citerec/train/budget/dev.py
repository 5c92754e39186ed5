"""Measures what an index recommends on dev queries, before and after its models are trained.

No measure is of a model that was trained on the measured queries: a learning-to-rank model that learned from dev
queries is represented by the cross-validation of its training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from citerec.config import RerankConfig
from citerec.evaluate.catalogue import candidates, weights
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.rank.ltr import DEFAULT, SPEC, suits_default_reranker
from citerec.rerank.choose import auto_reranker
from citerec.rules.held_out import RANKER, own_model, trained_on_other_data
from citerec.train.data import load_dev_task
from citerec.train.lists import Rows
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.queries import dev_queries
from citerec.train.record import read_training
from citerec.types import Hits, Log, Progress

Measures = Mapping[str, float]  # f1@20 and mrr, means over the queries
BM25, FUSED, RANKED, ALL = "BM25", "BM25 and vectors", "ranker", "ranker and reranker"  # systems
RERANK_WEIGHTS = (0.2, 0.4, 0.6, 0.8, 1.0)
RERANK_DEPTH = 50  # unless the settings of the ranker state one
WITHOUT_RERANKER = "all but reranker"  # row of the ablations of a training record


@dataclass(frozen=True, slots=True)
class DevSample:
    """The dev queries that the training of the learning-to-rank model draws, too."""

    eval_set: EvalSet
    gold: Sequence[Rows]  # per query, the rows of its references
    depth: int  # reranked candidates per query

    @classmethod
    def of(cls, index: IndexFolder, config: RankerTraining) -> "DevSample | None":
        """Return the sample of an index; None if it has no dev queries."""
        task, drawn = load_dev_task(index), dev_queries(index, config)
        if task is None or drawn is None:
            return None
        few = replace(
            task,
            queries=tuple(drawn.queries),
            eligible=tuple(drawn.eligible),
            qrels={query.id: task.qrels[query.id] for query in drawn.queries},
        )
        return cls(few, drawn.gold, config.rerank_depth or RERANK_DEPTH)

    def __len__(self) -> int:
        return len(self.gold)

    def measured(self, hits: Sequence[Hits]) -> dict[str, float]:
        """Return F1@20 and MRR of some hits, one list per query."""
        pairs = [
            f1_and_reciprocal_rank(
                -np.arange(len(one), dtype=np.float64), np.isin(one.rows, gold), len(gold)
            )
            for one, gold in zip(hits, self.gold, strict=True)
        ]
        f1, reciprocal_ranks = zip(*pairs, strict=True)
        return {"f1@20": float(np.mean(f1)), "mrr": float(np.mean(reciprocal_ranks))}

    def rerank_config(self, reranker: str, weight: float | None = None) -> RerankConfig:
        """Return the configuration of a reranker at the depth of the sample."""
        return RerankConfig(model=reranker, depth=self.depth, weight=weight)


def system_measures(
    index: IndexFolder, sample: DevSample, log: Log, progress: Progress
) -> dict[str, Measures]:
    """Measure the systems of an index with the models that it has now, by name."""
    config = EvalConfig(fuse=weights(index))
    systems = Systems(index, sample.eval_set, config, log, progress)
    measures: dict[str, Measures] = {BM25: sample.measured(systems.hits("bm25"))}
    if index.is_embedded:
        measures[FUSED] = sample.measured(systems.hits(candidates(index)))
    ranker = own_model(index, RANKER, SPEC)
    if ranker and trained_on_other_data(ranker, index):
        ranker = None  # its dev queries may be others
    recorded = recorded_measures(ranker) if ranker else {}
    suits = suits_default_reranker(str(ranker or DEFAULT), index)
    reranker = auto_reranker(index, default=suits, same_data=True)
    config = replace(config, ranker=str(ranker or DEFAULT))
    if RANKED not in recorded:
        systems = Systems(index, sample.eval_set, config, log, progress)
        recorded[RANKED] = sample.measured(systems.hits("ranker"))
        if reranker:
            config = replace(config, rerank=sample.rerank_config(reranker))
            systems = Systems(index, sample.eval_set, config, log, progress)
            recorded[ALL] = sample.measured(systems.hits("ranker"))
    if not reranker:
        recorded.pop(ALL, None)
    return measures | recorded


def final(measures: Mapping[str, Measures]) -> Measures:
    """Return the measures of what `recommend` gives: the last of the systems."""
    return measures[ALL] if ALL in measures else measures[RANKED]


def recorded_measures(ranker: Path) -> dict[str, Measures]:
    """Return the cross-validated measures in the record of a model that learned from dev queries; else empty."""
    record = read_training(ranker)
    facts: Any = record.get("indexes", [])
    if len(facts) != 1 or not facts[0].get("dev_queries_teach"):
        return {}
    rows: Any = record["ablations"]
    [without] = [row for row in rows if row["label"] == WITHOUT_RERANKER]
    measures: dict[str, Measures] = {RANKED: {"f1@20": without["f1"], "mrr": without["mrr"]}}
    return measures | ({ALL: dict(record["after"]["full"])} if facts[0].get("reranker") else {})


def best_reranked(
    index: IndexFolder, sample: DevSample, reranker: str | None, log: Log, progress: Progress
) -> float:
    """Return F1@20 of the first stage, or of its best interpolation with a reranker.

    Args:
        index: The index.
        sample: The dev queries.
        reranker: The reranker; None for the first stage alone.
        log: Receives messages.
        progress: Receives the number of reranked pairs.
    """
    config = EvalConfig(fuse=weights(index))
    if reranker is None:
        systems = Systems(index, sample.eval_set, config, log, progress)
        return sample.measured([one.hits for one in systems.candidates()])["f1@20"]
    config = replace(config, rerank=sample.rerank_config(reranker, 1.0))
    systems = Systems(index, sample.eval_set, config, log, progress)
    hits = [one.hits for one in systems.candidates()]
    reranked = (
        systems.reranked(hits, systems.cascade.with_weight(weight)) for weight in RERANK_WEIGHTS
    )
    return max(sample.measured(one)["f1@20"] for one in reranked)
