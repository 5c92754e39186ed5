"""Evaluates an encoder on the dev queries: loss, MRR and F1 over a sample of papers."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.encoder import Encoder, TransformerEncoder, Vectors
from citerec.encode.model import Parts
from citerec.encode.spec import Fingerprint, Similarity
from citerec.folder import IndexFolder
from citerec.rules.eligible import within
from citerec.text import contents
from citerec.train.data import DevQueries
from citerec.train.encoder.config import EncoderLoss, EncoderTraining
from citerec.train.encoder.losses import in_batch, triplet
from citerec.train.encoder.mine import similarities
from citerec.train.joined import TrainingIndex, parts_of
from citerec.train.lists import Flags, Rows
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.types import Paper, Query


@dataclass(frozen=True)
class EncoderDev:
    """Dev queries, their candidate papers, and the examples of the dev loss."""

    queries: tuple[Query, ...]
    papers: tuple[Paper, ...]  # the candidates of all queries
    allowed: Flags  # eligible papers, shape (queries, papers)
    gold: Flags  # cited papers, same shape
    positives: npt.NDArray[np.int64]  # a column of each query for the loss, shape (queries,)
    negatives: npt.NDArray[np.int64]  # columns of each query for the loss, shape (queries, n)
    # Of each index, in the order of its queries and its papers: their rows; -1 for a query that is no paper.
    rows: tuple[tuple[IndexFolder, Rows, Rows], ...]


def load_dev(index: TrainingIndex, config: EncoderTraining) -> EncoderDev | None:
    """Draw dev queries and their candidate papers; None if there are none or `dev_queries` is 0.

    The candidates are all papers that the queries cite, and random eligible ones up to `dev_pool`. Several indexes have
    equal shares of both.
    """
    rng = np.random.default_rng([config.seed, 3])
    indexes = parts_of(index)
    share = replace(
        config,
        dev_queries=-(-config.dev_queries // len(indexes)),
        dev_pool=-(-config.dev_pool // len(indexes)),
    )
    parts = [part for one in indexes if (part := _load(one, share, rng)) is not None]
    return _joined(parts) if parts else None


def _joined(parts: Sequence[EncoderDev]) -> EncoderDev:
    """Join the queries and candidates of several indexes; a query has candidates of its own index only."""
    from scipy.linalg import block_diag

    allowed: Any = block_diag(*(part.allowed for part in parts))
    gold: Any = block_diag(*(part.gold for part in parts))
    starts = np.cumsum([0, *(len(part.papers) for part in parts)])
    return EncoderDev(
        tuple(query for part in parts for query in part.queries),
        tuple(paper for part in parts for paper in part.papers),
        allowed.astype(np.bool_),
        gold.astype(np.bool_),
        np.concatenate([p.positives + start for p, start in zip(parts, starts, strict=False)]),
        np.concatenate([p.negatives + start for p, start in zip(parts, starts, strict=False)]),
        tuple(rows for part in parts for rows in part.rows),
    )


def _load(
    index: IndexFolder, config: EncoderTraining, rng: np.random.Generator
) -> EncoderDev | None:
    """Draw the dev queries of one index."""
    drawn = DevQueries.drawn(index, config.dev_queries, rng)
    if drawn is None:
        return None
    rows = _sample_papers(index, drawn, config.dev_pool, rng)
    years = index.papers.years
    allowed = np.stack([within(eligible, years, rows) for eligible in drawn.eligible])
    cited = np.stack([np.isin(rows, gold_rows) for gold_rows in drawn.gold])
    papers = index.papers.at(rows.tolist())
    negatives = config.examples if config.loss is EncoderLoss.TRIPLET else config.batch - 1
    return EncoderDev(
        drawn.queries,
        tuple(papers[row] for row in rows.tolist()),
        allowed,
        cited,
        np.array([rng.choice(np.flatnonzero(flags)) for flags in cited]),
        _draw_columns(allowed & ~cited, negatives, rng),
        ((index, _query_rows(index, drawn.queries), rows),),
    )


def _query_rows(index: IndexFolder, queries: Sequence[Query]) -> Rows:
    """Return the rows of the papers that are these queries, text for text; -1 for none."""
    rows = index.papers.rows_of([query.id for query in queries])
    papers = index.papers.at(rows[rows >= 0].tolist())
    same = [
        row in papers and contents(papers[row]) == contents(query)
        for row, query in zip(rows.tolist(), queries, strict=True)
    ]
    return np.where(same, rows, -1).astype(np.int32)


def measure(dev: EncoderDev, encoder: Encoder, config: EncoderTraining) -> dict[str, float]:
    """Return the dev loss, MRR and F1 at 20 of an encoder; both in [0, 1], higher is better."""
    vectors = encoder.encode([*dev.queries, *dev.papers])
    return measure_vectors(dev, vectors, encoder.spec.similarity, config)


def measure_vectors(
    dev: EncoderDev, vectors: Vectors, similarity: Similarity, config: EncoderTraining
) -> dict[str, float]:
    """Return what `measure` does for the vectors of the queries, then of the papers, shape (queries + papers, dim)."""
    queries, papers = vectors[: len(dev.queries)], vectors[len(dev.queries) :]
    scores = similarities(similarity, queries, papers)
    scores[~dev.allowed] = -np.inf
    f1, mrr = mean_f1_and_mrr(scores, dev.gold)
    return {"loss": _loss(dev, queries, papers, scores, config), "mrr": mrr, "f1": f1}


def mean_f1_and_mrr(scores: Vectors, gold: Flags) -> tuple[float, float]:
    """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper.

    Equal scores keep the order of the columns.

    Args:
        scores: Shape (queries, papers); higher is better.
        gold: Cited papers, same shape; each query has at least one.
    """
    measured = [
        f1_and_reciprocal_rank(row, flags, int(flags.sum()))
        for row, flags in zip(scores, gold, strict=True)
    ]
    f1, reciprocal_ranks = zip(*measured, strict=True)
    return float(np.mean(f1)), float(np.mean(reciprocal_ranks))


def frozen_encoder(parts: Parts, fingerprint: Fingerprint, config: EncoderTraining) -> Encoder:
    """Return an encoder with a copy of the current weights, which further training does not change."""
    frozen = Parts(copy.deepcopy(parts.model), parts.tokenizer, parts.spec)
    return TransformerEncoder(frozen, fingerprint, config.running)


def _sample_papers(
    index: IndexFolder, drawn: DevQueries, count: int, rng: np.random.Generator
) -> Rows:
    """Return the gold papers of the queries and random eligible ones, up to `count`."""
    gold = np.unique(np.concatenate(drawn.gold))
    all_rows = np.arange(len(index.papers), dtype=np.int32)
    bounds = [eligible.year_max for eligible in drawn.eligible]
    known = [bound for bound in bounds if bound is not None]
    if len(known) == len(bounds):
        all_rows = all_rows[index.papers.years <= max(known)]
    others = np.setdiff1d(all_rows, gold)
    more = min(max(count - len(gold), 0), len(others))
    return np.union1d(gold, rng.choice(others, more, replace=False)).astype(np.int32)


def _draw_columns(flags: Flags, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw `count` flagged columns of each row; a row with fewer flags repeats them."""
    keys = np.where(flags, rng.random(flags.shape), 2.0)
    order = np.argsort(keys, axis=1)
    available = np.maximum(flags.sum(1), 1)[:, None]
    return np.take_along_axis(order, np.arange(count)[None, :] % available, 1)


def _loss(
    dev: EncoderDev,
    query_vectors: Vectors,
    paper_vectors: Vectors,
    scores: Vectors,
    config: EncoderTraining,
) -> float:
    """Return the training loss over the sampled dev papers; there are no hard negatives among them."""
    import torch

    with torch.inference_mode():
        if config.loss is EncoderLoss.TRIPLET:
            count = dev.negatives.shape[1]
            queries = torch.from_numpy(np.repeat(query_vectors, count, axis=0))
            positives = torch.from_numpy(np.repeat(paper_vectors[dev.positives], count, axis=0))
            negatives = torch.from_numpy(paper_vectors[dev.negatives.ravel()])
            return float(triplet(queries, positives, negatives, margin=config.margin))
        columns = np.column_stack([dev.positives, dev.negatives])
        logits = torch.from_numpy(np.take_along_axis(scores, columns, 1))
        targets = torch.zeros(len(logits), dtype=torch.int64)
        allowed = torch.isfinite(logits)
        return float(in_batch(logits, targets, allowed, temperature=config.temperature))
