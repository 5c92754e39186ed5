"""How long one recommendation takes in a process that is warm, stage by stage, and the memory of it."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from bench.measure import Row, SkippedError, log
from bench.reranking import model_of
from bench.work import Work, build_dense
from bench.worker import Worker, peak_mb

QUERIES = 40  # of the test split, one at a time
WARM = 5  # more of them before, which do not count
DEPTH = 100
PREFIX = "latency-"
STAGES = {
    "bm25": "BM25",
    "fused": "RRF of BM25 and vectors",
    "reranked": f"the same, its best {DEPTH} reranked",
    "ranked": "RRF of BM25 and vectors, ordered by the default ranker",
    "explained": "the same, with reasons",
}


def measure_latency(work: Work, script: Path, rounds: int) -> list[Row]:
    """Time `Recommender.recommend` of one query, k = 20, by what it is made of."""
    build_dense(work)
    model_of(work)
    rows: list[Row] = []
    for name, what in STAGES.items():
        try:
            worker = Worker(PREFIX + name, work, script)
        except SkippedError as error:
            log(f"skipped: {error}")
            continue
        answers = [worker.ask("round") for _ in range(rounds)]
        worker.close()
        took = [seconds for answer in answers for seconds in answer["each"]]
        rows += [_row(name, what, took, 50), _row(name, what, took, 95)]
        rows.append(_memory(name, what, answers[-1]["megabytes"]))
    return rows


def serve_latency(name: str, work: Work) -> None:
    """Be a worker that answers each line by the seconds of every query."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    ask = _recommender(name, work)
    queries = _queries(work)
    for query in queries[:WARM]:
        ask(query)
    answers.write(orjson.dumps({"queries": len(queries) - WARM}) + b"\n")
    answers.flush()
    for _ in sys.stdin:
        each = [_timed(ask, query) for query in queries[WARM:]]
        answers.write(orjson.dumps({"each": each, "megabytes": peak_mb()}) + b"\n")
        answers.flush()


def _recommender(name: str, work: Work) -> Callable[[Any], object]:
    from citerec.config import RecommendConfig, RerankConfig
    from citerec.index.folder import open_index
    from citerec.recommend import Recommender

    rerank = RerankConfig(model=str(model_of(work)), depth=DEPTH, threads=work.threads)
    ranks = name in ("ranked", "explained")
    config = RecommendConfig(
        k=20,
        reranker=rerank if name == "reranked" else "none",
        ranker="auto" if ranks else "none",
    )
    if name == "bm25":
        config = config.replace(encoder="none")
    recommender = Recommender(open_index(work.dense), config)
    return lambda query: recommender.recommend(query, explain=name == "explained")


def _queries(work: Work) -> list[Any]:
    import numpy as np

    from citerec.evaluation.protocol import load_eval_set
    from citerec.index.folder import open_index

    queries = load_eval_set(open_index(work.dense), "test").queries
    chosen = np.linspace(0, len(queries) - 1, min(QUERIES + WARM, len(queries))).astype(
        int
    )
    return [queries[i] for i in chosen.tolist()]


def _timed(ask: Any, query: Any) -> float:
    start = time.perf_counter()
    ask(query)
    return time.perf_counter() - start


def _row(name: str, what: str, took: list[float], percent: int) -> Row:
    import numpy as np

    return Row(
        name=f"latency.{name}.p{percent}",
        what=f"{what}: one query, k = 20, {percent}th percentile of {len(took)}",
        unit="s",
        values=(float(np.percentile(took, percent)),),
    )


def _memory(name: str, what: str, megabytes: float) -> Row:
    return Row(
        name=f"latency.{name}.memory",
        what=f"{what}: most memory of the process",
        unit="MB",
        values=(megabytes,),
    )
