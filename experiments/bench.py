"""Measure citerec's speed and memory beside its peers'; write results/bench.json and BENCH.md.

    python experiments/bench.py                       all rows; about an hour
    python experiments/bench.py --only cold,import    some of them; the others stay as they were

The corpus is read where it lies; nothing of it is written into the repository.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.encoding import ENCODERS, measure_encoding, serve_encoder
from bench.indexing import index_with_anserini, measure_indexing
from bench.latency import STAGES as LATENCIES
from bench.latency import measure_latency, serve_latency
from bench.limits import LIMITS, serve_limit
from bench.measure import Row, SkippedError, log
from bench.report import record, write_page
from bench.reranking import SYSTEMS as RERANKERS
from bench.reranking import measure_reranking, serve_reranker
from bench.search import measure_search
from bench.starting import measure_batch, measure_cold_start, measure_import
from bench.systems import SYSTEMS
from bench.work import Work, convert_for_anserini, prepare_peers
from bench.worker import serve

RERANK_ROUNDS = 2  # each takes minutes
HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "shared" / "data" / "acm_vis"
# for a cold start, which is to show the start, not the corpus
SMALL = CORPUS.with_name("vis")
SAMPLE = HERE.parent / "citerec" / "sample" / "papers.jsonl"
GROUPS = (
    "search",
    "index",
    "encode",
    "rerank",
    "latency",
    "cold",
    "batch",
    "import",
)
STEPS: dict[str, Callable[[Work], None]] = {  # what is done in a process of its own
    "prepare": prepare_peers,
    "convert": convert_for_anserini,
    "anserini": index_with_anserini,
}
SERVERS: dict[
    str, Callable[[str, Work], None]
] = {  # workers that answer, by how their names begin
    "encode-": serve_encoder,
    "rerank-": serve_reranker,
    "latency-": serve_latency,
    "limit-": serve_limit,
}
SERVED: dict[
    str, Callable[[Work, Path, int], list[Row]]
] = {  # groups that these servers answer
    "encode": measure_encoding,
    "rerank": measure_reranking,
    "latency": measure_latency,
}


def main() -> None:
    """Measure, or be one of the processes that are measured."""
    options = _options()
    corpus = _corpus(options.corpus)
    if options.worker:
        work = Work(options.work, corpus, options.threads, options.queries)
        if options.worker in STEPS:
            STEPS[options.worker](work)
        elif kind := next((k for k in SERVERS if options.worker.startswith(k)), None):
            SERVERS[kind](options.worker.removeprefix(kind), work)
        else:
            serve(options.worker, work)
        return
    results, page = (
        options.output / "results" / "bench.json",
        options.output / "BENCH.md",
    )
    with tempfile.TemporaryDirectory(prefix="citerec-bench-") as temporary:
        folder = (options.work or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        work = Work(folder, corpus, options.threads, options.queries)
        for group in options.only:
            try:
                _measure(group, work, options.rounds, results)
            except SkippedError as error:
                log(f"skipped {group}: {error}")
    if results.is_file():
        write_page(results, page)
        log(f"written: {results}, {page}")


def _measure(group: str, work: Work, rounds: int, results: Path) -> None:
    if (
        group in ("cold", "batch")
        and work.corpus == CORPUS.resolve()
        and SMALL.exists()
    ):
        work = replace(work, folder=work.folder / SMALL.name, corpus=SMALL.resolve())
        work.folder.mkdir(exist_ok=True)
    log(f"{group}: {work.corpus}")
    rows: list[Row]
    more: dict[str, Any] = {}
    if group == "search":
        rows, compared = measure_search(
            work, Path(__file__), _step("prepare", work), rounds
        )
        more = {"compared": compared}
    elif group == "index":
        steps = _step("convert", work), _step("anserini", work)
        rows = measure_indexing(work, *steps, max(3, rounds - 2))
    elif group in SERVED:
        rounds = min(rounds, RERANK_ROUNDS) if group == "rerank" else rounds
        rows = SERVED[group](work, Path(__file__), rounds)
    elif group == "cold":
        rows = measure_cold_start(work, rounds + 4)
    elif group == "batch":
        rows = measure_batch(work, min(rounds, 3))
    else:
        rows = measure_import(2 * rounds + 5)
    settings: dict[str, Any] = {"rounds": rounds}
    if group != "import":
        settings |= {"corpus": work.corpus.name, "threads": work.threads}
        if work.corpus == SAMPLE:
            settings["note"] = (
                "the bundled sample, so small that the figures mean little"
            )
        if core := os.environ.get("OPENBLAS_CORETYPE"):
            settings["note"] = f"NumPy limited by OPENBLAS_CORETYPE={core}"
    record(results, group, rows, settings, **more)
    for row in rows:
        versus = (
            f"  ({row.ratio:.2f} x {row.ratio_to})" if row.ratio is not None else ""
        )
        log(f"{row.name}: {row.median:.4g} {row.unit}{versus}")


def _step(name: str, work: Work) -> list[str]:
    options = ["--work", str(work.folder), "--corpus", str(work.corpus)]
    return [
        sys.executable,
        __file__,
        "--worker",
        name,
        *options,
        "--threads",
        str(work.threads),
    ]


def _corpus(named: Path | None) -> Path:
    if named is not None and not named.exists():
        sys.exit(f"bench: no corpus at {named}")
    if named is None and not CORPUS.exists():
        log(
            f"no corpus at {CORPUS}: measuring the bundled sample, whose figures mean little"
        )
        return SAMPLE
    return (named or CORPUS).resolve()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="default: ../shared/data/acm_vis")
    parser.add_argument(
        "--work", type=Path, help="keep indexes here; default: a temporary folder"
    )
    parser.add_argument(
        "--output", type=Path, default=HERE, help="default: experiments/"
    )
    parser.add_argument("--only", type=_groups, default=GROUPS, help=",".join(GROUPS))
    parser.add_argument(
        "--rounds", type=int, default=5, help="of each system, after one more"
    )
    parser.add_argument("--threads", type=int, default=2, help="of each system")
    parser.add_argument(
        "--queries", type=int, default=15, help="whose candidates are reranked"
    )
    parser.add_argument("--worker", choices=_workers(), help=argparse.SUPPRESS)
    return parser.parse_args()


def _workers() -> list[str]:
    served = {"encode-": ENCODERS, "rerank-": RERANKERS, "latency-": LATENCIES}
    served |= {"limit-": LIMITS}
    return [
        *STEPS,
        *SYSTEMS,
        *(kind + name for kind, names in served.items() for name in names),
    ]


def _groups(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - {*GROUPS}:
        raise argparse.ArgumentTypeError(
            f"no rows {', '.join(unknown)}; there are {GROUPS}"
        )
    return chosen


if __name__ == "__main__":
    main()
