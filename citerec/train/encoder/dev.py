"""How good a model is on the dev queries: loss and MRR over a sample of papers."""

import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.eligibility import within
from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import Encoder, TransformerEncoder, Vectors
from citerec.encode.model import Parts
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError
from citerec.evaluate.protocol import EvalSet, load_task
from citerec.folder import IndexFolder
from citerec.train.encoder.config import EncoderTraining, Loss
from citerec.train.encoder.losses import in_batch, triplet
from citerec.train.encoder.mine import similarities
from citerec.train.lists import Flags, Rows
from citerec.train.selection import f1_and_reciprocal_rank
from citerec.types import Paper, Query


@dataclass(frozen=True)
class Dev:
    """Dev queries, the papers that they are searched in, and what is drawn of these for the loss."""

    queries: tuple[Query, ...]
    papers: tuple[Paper, ...]
    allowed: Flags  # who may be recommended, shape (queries, papers)
    gold: Flags  # what is cited, same shape
    positives: npt.NDArray[np.int64]  # a column of each query, shape (queries,)
    negatives: npt.NDArray[np.int64]  # columns of each query, shape (queries, n)


@dataclass(frozen=True, slots=True)
class DevMeasures:
    """What is measured on the dev queries."""

    loss: float
    mrr: float  # in [0, 1]; higher is better, here and below
    f1: float  # at 20


def load_dev(index: IndexFolder, config: EncoderTraining) -> Dev | None:
    """Draw dev queries and the papers that they are searched in; None if there are none, or none are wanted.

    The papers are all that the queries cite, and random ones that one of them may cite, up to `dev_pool`.
    """
    if not config.dev_queries:
        return None
    try:
        task = load_task(index, "dev")
    except ConfigError:  # none of them cites a paper here
        return None
    rng = np.random.default_rng([config.seed, 3])
    count = min(config.dev_queries, len(task.queries))
    chosen = np.sort(rng.choice(len(task.queries), count, replace=False)).tolist()
    gold = [_rows(index, task, i) for i in chosen]
    rows = _pool(index, task, chosen, np.unique(np.concatenate(gold)), config.dev_pool, rng)
    years = index.papers.years
    allowed = np.stack([within(task.eligible[i], years, rows) for i in chosen])
    cited = np.stack([np.isin(rows, mine) for mine in gold])
    papers = index.papers.at(rows.tolist())
    wanted = config.examples if config.loss is Loss.TRIPLET else config.batch - 1
    return Dev(
        tuple(task.queries[i] for i in chosen),
        tuple(papers[row] for row in rows.tolist()),
        allowed,
        cited,
        np.array([rng.choice(np.flatnonzero(mine)) for mine in cited]),
        _drawn(allowed & ~cited, wanted, rng),
    )


def measure(dev: Dev, encoder: Encoder, config: EncoderTraining) -> DevMeasures:
    """Measure a model on the dev queries."""
    vectors = encoder.encode([*dev.queries, *dev.papers])
    asked, given = vectors[: len(dev.queries)], vectors[len(dev.queries) :]
    scores = similarities(encoder.spec.similarity, asked, given)
    scores[~dev.allowed] = -np.inf
    f1, mrr = mean_f1_and_mrr(scores, dev.gold)
    return DevMeasures(_loss(dev, asked, given, scores, config), mrr, f1)


def mean_f1_and_mrr(scores: Vectors, gold: Flags) -> tuple[float, float]:
    """Return the means over the queries of F1 at 20 and of 1 / rank of the first gold paper.

    Equal scores keep the order of the papers.

    Args:
        scores: Shape (queries, papers).
        gold: Same shape; each query has at least one gold paper.
    """
    measured = [
        f1_and_reciprocal_rank(row, flags, int(flags.sum()))
        for row, flags in zip(scores, gold, strict=True)
    ]
    f1, reciprocal_ranks = zip(*measured, strict=True)
    return float(np.mean(f1)), float(np.mean(reciprocal_ranks))


def frozen_encoder(parts: Parts, fingerprint: Fingerprint, config: EncoderTraining) -> Encoder:
    """Return an encoder of the model as it is now, which training does not change."""
    run = EncodeConfig(device=config.device, precision=config.precision, threads=config.threads)
    frozen = Parts(copy.deepcopy(parts.model), parts.tokenizer, parts.spec)
    return TransformerEncoder(frozen, fingerprint, run)


def _rows(index: IndexFolder, task: EvalSet, i: int) -> Rows:
    return index.papers.rows_of(sorted(task.qrels[task.queries[i].id]))


def _pool(
    index: IndexFolder,
    task: EvalSet,
    chosen: list[int],
    gold: Rows,
    count: int,
    rng: np.random.Generator,
) -> Rows:
    every = np.arange(len(index.papers), dtype=np.int32)
    bounds = {task.eligible[i].year_max for i in chosen}
    latest = None if None in bounds else max(bound for bound in bounds if bound is not None)
    free = np.ones(len(every), np.bool_)
    if latest is not None:
        free &= index.papers.years <= latest
    others = np.setdiff1d(every[free], gold)
    more = min(max(count - len(gold), 0), len(others))
    return np.union1d(gold, rng.choice(others, more, replace=False)).astype(np.int32)


def _drawn(free: Flags, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw columns that are flagged, the same number in each row; where one has fewer, they repeat."""
    keys = np.where(free, rng.random(free.shape), 2.0)
    order = np.argsort(keys, axis=1)
    there = np.maximum(free.sum(1), 1)[:, None]
    return np.take_along_axis(order, np.arange(count)[None, :] % there, 1)


def _loss(
    dev: Dev, asked: Vectors, given: Vectors, scores: Vectors, config: EncoderTraining
) -> float:
    """Return the loss of training over the papers drawn for it: no hard negatives among them."""
    import torch

    with torch.inference_mode():
        if config.loss is Loss.TRIPLET:
            count = dev.negatives.shape[1]
            queries = torch.from_numpy(np.repeat(asked, count, axis=0))
            positives = torch.from_numpy(np.repeat(given[dev.positives], count, axis=0))
            negatives = torch.from_numpy(given[dev.negatives.ravel()])
            return float(triplet(queries, positives, negatives, margin=config.margin))
        columns = np.column_stack([dev.positives, dev.negatives])
        shown = torch.from_numpy(np.take_along_axis(scores, columns, 1))
        targets = torch.zeros(len(shown), dtype=torch.int64)
        allowed = torch.isfinite(shown)
        return float(in_batch(shown, targets, allowed, temperature=config.temperature))
