"""Judged pools: citerec beside published rankings of the same papers, evaluated by the same code.

A benchmark is a folder: papers and queries (`corpus.jsonl.gz`, `queries.jsonl.gz`), graded judgements as TREC's qrels,
and published rankings as TREC runs. Only judged papers are ranked.
"""

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from citerec.config import RecommendConfig
from citerec.drafts import parse_queries
from citerec.evaluation.significance import bootstrap_interval
from citerec.files.arrays import Floats
from citerec.lab.experiment.row import Pools
from citerec.lab.scidocs.classify import load
from citerec.recommend import Recommender
from citerec.request import Request

DEPTH = 1000
DEFAULT = "citerec, default list"
FUSED = "citerec, BM25 and vectors fused"
SYSTEMS = {
    "citerec, BM25": RecommendConfig(encoder="none", ranker="none"),
    FUSED: RecommendConfig(ranker="none"),
    DEFAULT: RecommendConfig(),
}

Grades = Mapping[str, float]  # by id
Judgements = Mapping[str, Grades]  # by query
Run = Mapping[str, Mapping[str, float]]  # scores by query and id


def measured_pools(index: Path, folder: Path, pools: Pools) -> list[dict[str, Any]]:
    """Return nDCG and MAP of each system, best first; citerec's are those of an index.

    Each has the 95 % interval of its nDCG, and of its difference to the default list (bootstrap over queries, paired).
    """
    runs = {
        name: ranked(index, folder, config, pools.year_max)
        for name, config in SYSTEMS.items()
    }
    tables: dict[str, list[tuple[float, float]]] = {}
    for file, published in pools.judgements.items():
        judgements = read_judgements(folder / file)
        for name, run in runs.items():
            tables.setdefault(name, []).extend(evaluated(run, judgements, pools))
        for path in sorted(folder.glob(published)):
            name = path.name.partition(".")[0]
            measures = evaluated(read_run(path), judgements, pools)
            tables.setdefault(name, []).extend(measures)
    default = np.array(tables[DEFAULT])[:, 0]
    rows: list[dict[str, Any]] = []
    for name, table in tables.items():
        values = np.array(table)
        ndcg, mean_precision = np.nanmean(values, axis=0).tolist()
        rows.append(
            {
                "system": name,
                "ndcg": ndcg,
                "ci95": interval(values[:, 0]),
                "less_default": interval(values[:, 0] - default),
                "map": mean_precision,
            }
        )
    return sorted(rows, key=lambda row: -row["ndcg"])


def metrics_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the measures of a row: those of the default list, and its nDCG less fusion's and the best published."""
    by_system = {row["system"]: row for row in rows}
    default = by_system[DEFAULT]
    others = [row["ndcg"] for row in rows if not row["system"].startswith("citerec,")]
    return {
        "ndcg": default["ndcg"],
        "map": default["map"],
        "over fusion": default["ndcg"] - by_system[FUSED]["ndcg"],
        "over published": default["ndcg"] - max(others, default=np.nan),
    }


def ranked(
    index: Path, folder: Path, config: RecommendConfig, year_max: int | None
) -> Run:
    """Return the scores of the papers of each query by citerec."""
    packed = (folder / "queries.jsonl.gz").read_bytes()
    queries = parse_queries(gzip.decompress(packed)).queries
    with Recommender(index, config) as recommender:
        request = Request.of(queries, k=DEPTH, year_max=year_max)
        return {
            query.id: {item.paper.id: -float(item.rank) for item in items}
            for query, items in zip(
                queries, recommender.recommend_many(request), strict=True
            )
        }


def evaluated(
    run: Run, judgements: Judgements, pools: Pools
) -> list[tuple[float, float]]:
    """Return nDCG, with linear gain, and average precision of each pool; a paper that the run lacks is last."""
    scikit_learn = load("metrics")
    measures: list[tuple[float, float]] = []
    for query, pool in judgements.items():
        scores = run.get(query, {})
        # ties are in the order of ids
        ids = sorted(pool, key=lambda i: (-scores.get(i, -np.inf), i))
        grades = np.array([pool[i] for i in ids])
        places = -np.arange(len(ids), dtype=np.float64)
        depth = pools.depth(len(ids))
        ndcg = scikit_learn.ndcg_score([grades], [places], k=depth, ignore_ties=True)
        relevant = grades >= pools.relevant
        precision = np.nan
        if relevant.any():
            precision = scikit_learn.average_precision_score(relevant, places)
        measures.append((float(ndcg), float(precision)))
    return measures


def interval(values: Floats) -> list[float]:
    """Return the 95 % bootstrap interval of a mean."""
    rng = np.random.default_rng(0)
    ends = bootstrap_interval(values[:, None], lambda means: means, rng=rng)
    return ends[:, 0].tolist()


def read_judgements(path: Path) -> Judgements:
    """Read graded judgements, as TREC's qrels."""
    judgements: dict[str, dict[str, float]] = {}
    for query, _, docid, grade in _fields(path):
        judgements.setdefault(query, {})[docid] = float(grade)
    return judgements


def read_run(path: Path) -> Run:
    """Read a TREC run."""
    run: dict[str, dict[str, float]] = {}
    for query, _, docid, _, score, *_ in _fields(path):
        run.setdefault(query, {})[docid] = float(score)
    return run


def _fields(path: Path) -> Iterable[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (line.split() for line in lines)
