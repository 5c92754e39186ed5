"""Processor time of a query on one thread: citerec scoring stored postings, Lucene's own search, bm25s.

Also the size of the postings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from bench.measure import Row, SkippedError, log, ratio, run
from bench.systems import SYSTEMS
from bench.work import Work, build
from bench.worker import Worker

REFERENCE = "lucene"
SCORERS = ("citerec", "citerec-bounded", REFERENCE, "bm25s")
GOAL = "at most 0.2 x Lucene's search, 0 queries different"


def measure_postings(
    work: Work, script: Path, prepare: Sequence[str], rounds: int
) -> tuple[list[Row], dict[str, Any]]:
    """Measure every scorer that is installed; return rows, and the comparison of the hits.

    Args:
        work: Where.
        script: `bench.py`, which also is the workers' program.
        prepare: What prepares the peers' indexes, in a process of its own.
        rounds: How often every scorer answers all queries, after one round to warm up.
    """
    build(work)
    run(prepare, log=work.log("prepare"))
    workers = list(_start(replace(work, threads=1), script))
    cpu: dict[str, list[float]] = {worker.name: [] for worker in workers}
    for number in range(rounds + 1):
        for worker in workers if number % 2 else reversed(workers):
            took = worker.ask("round")
            log(f"round {number or 'to warm up'}: {worker.name} {took['cpu']:.2f} s")
            if number:
                cpu[worker.name].append(1000 * took["cpu"] / worker.queries)
    compared = _compare({worker.name: worker for worker in workers})
    for worker in workers:
        worker.close()
    return [*_rows(cpu), _size(work)], compared


def _start(work: Work, script: Path) -> Iterator[Worker]:
    for name in SCORERS:
        try:
            yield Worker(name, work, script)
        except SkippedError as error:
            log(f"skipped: {error}")


def _rows(cpu: dict[str, list[float]]) -> Iterator[Row]:
    for name, values in cpu.items():
        yield Row(
            name=f"postings.{name}",
            what=f"{SYSTEMS[name][1]}: processor time",
            unit="ms/query",
            values=tuple(values),
            ratio=ratio(values, cpu[REFERENCE]),
            ratio_to=f"postings.{REFERENCE}",
            goal=GOAL if name == "citerec" else "",
        )


def _size(work: Work) -> Row:
    files = [file for file in (work.index / "postings").iterdir() if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 2**20
    return Row(name="postings.size", what="the stored postings", unit="MB", values=(size,))


def _compare(workers: dict[str, Worker]) -> dict[str, Any]:
    """Compare ids and scores of citerec and Lucene, to the bit."""
    ours, lucenes = (Path(workers[name].ask("hits")["path"]) for name in ("citerec", REFERENCE))
    queries = hits = differing = 0
    with ours.open("rb") as a, lucenes.open("rb") as b:
        for mine, other in zip(a, b, strict=True):
            queries += 1
            hits += len(orjson.loads(mine)[0])
            differing += mine != other
    log(f"{differing} of {queries} queries differ between stored postings and Lucene's search")
    return {"queries": queries, "hits": hits, "differing_queries": differing, "with": "Lucene's"}
