"""Queries per second and memory of each search system, and whether citerec's hits are Pyserini's."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.limits import BANDWIDTH, limit_rows
from bench.measure import Row, SkippedError, log, ratio, run
from bench.systems import SYSTEMS
from bench.work import Work, build
from bench.worker import Worker

REFERENCE, ORACLE = "pyserini", "lucene"
GOALS = {
    "search.citerec": "at least 15 x Pyserini",
    "search.citerec.memory": "at most 0.5 x Pyserini",
}


def measure_search(
    work: Work, script: Path, command: Sequence[str], rounds: int
) -> tuple[list[Row], dict[str, Any]]:
    """Measure every system that is installed; return rows, and the comparison of the hits.

    Args:
        work: Where.
        script: `bench.py`, which also is the workers' program.
        command: What prepares the peers' indexes, in a process of its own.
        rounds: How often every system answers all queries, after one round to warm up.
    """
    build(work)
    log("preparing the peers' indexes")
    run(command, log=work.log("prepare"))
    workers = list(_start(work, script))
    limit = Worker(f"limit-{BANDWIDTH}", work, script)
    timed = [worker for worker in workers if worker.name != ORACLE]
    rows = _time(timed, limit, rounds, _postings_bytes(work))
    compared = _compare(workers)
    for worker in (*workers, limit):
        worker.close()
    return rows, compared


def _postings_bytes(work: Work) -> float:
    """Return the bytes of the postings of a query's terms, of the mean query."""
    import numpy as np

    from citerec.index.bm25 import NO_TERM, Postings
    from citerec.index.folder import open_index

    index = open_index(work.index)
    documents = len(np.load(index.bm25 / "rows.npy"))
    postings = Postings(index.path / "postings", documents, 0)
    each = postings.docs.itemsize + postings.freqs.itemsize
    queries = orjson.loads(work.queries.read_bytes())["tokens"]
    numbers = [postings.number(term) for tokens in queries for term in {*tokens}]
    found = sum(postings.df(number) for number in numbers if number != NO_TERM)
    return each * found / len(queries)


def _start(work: Work, script: Path) -> Iterator[Worker]:
    for name in SYSTEMS:
        log(f"starting {name}")
        try:
            yield Worker(name, work, script)
        except SkippedError as error:
            log(f"skipped: {error}")


def _time(workers: list[Worker], limit: Worker, rounds: int, read: float) -> list[Row]:
    """Let the systems take turns, so that a busy moment of the machine hits all of them.

    Args:
        workers: The systems.
        limit: Measures how fast memory is read.
        rounds: How often every system answers all queries, after one round to warm up.
        read: The bytes of postings that a query needs.
    """
    peak: list[float] = []
    rates: dict[str, list[float]] = {worker.name: [] for worker in workers}
    cpu: dict[str, list[float]] = {worker.name: [] for worker in workers}
    for number in range(rounds + 1):
        if number:
            peak.append(limit.ask("round")["rate"])
        for worker in workers if number % 2 else reversed(workers):
            took = worker.ask("round")
            log(
                f"round {number or 'to warm up'}: {worker.name} {took['seconds']:.2f} s"
            )
            if number:
                rates[worker.name].append(worker.queries / took["seconds"])
                cpu[worker.name].append(1000 * took["cpu"] / worker.queries)
    peaks = {worker.name: [worker.ask("memory")["peak_mb"]] for worker in workers}
    return [
        *_rows("", "", "queries/s", rates),
        *_rows(".cpu", ": processor time, all threads", "ms/query", cpu),
        *_rows(".memory", f": peak memory after {rounds + 1} rounds", "MB", peaks),
        *limit_rows("search", BANDWIDTH, peak, rates, {"citerec": read}),
    ]


def _rows(
    suffix: str, what: str, unit: str, values: dict[str, list[float]]
) -> Iterator[Row]:
    reference = values.get(REFERENCE)
    for name, mine in values.items():
        yield Row(
            name=f"search.{name}{suffix}",
            what=SYSTEMS[name][1] + what,
            unit=unit,
            values=tuple(mine),
            ratio=ratio(mine, reference) if reference else None,
            ratio_to=f"search.{REFERENCE}{suffix}" if reference else None,
            goal=GOALS.get(f"search.{name}{suffix}", ""),
        )


def _compare(workers: list[Worker]) -> dict[str, Any]:
    """Compare the hits of citerec, query by query: with Lucene's to the bit, with Pyserini's as it rounds them."""
    by_name = {worker.name: worker for worker in workers}
    if not by_name.keys() >= {"citerec", ORACLE, REFERENCE}:
        return {}
    files = (
        Path(by_name[n].ask("hits")["path"]) for n in ("citerec", ORACLE, REFERENCE)
    )
    queries = hits = differs_from_lucene = differs_from_pyserini = 0
    for ours, lucene, pyserini in zip(
        *(file.open("rb") for file in files), strict=True
    ):
        ids, scores = orjson.loads(ours)
        queries += 1
        hits += len(ids)
        differs_from_lucene += ours != lucene
        differs_from_pyserini += [ids, as_anserini(scores)] != orjson.loads(pyserini)
    log(
        f"of {queries} queries {differs_from_lucene} differ from Lucene's, {differs_from_pyserini} from Pyserini's"
    )
    return {
        "queries": queries,
        "hits": hits,
        "differing_from_lucene": differs_from_lucene,
        "differing_from_pyserini": differs_from_pyserini,
    }


def as_anserini(scores: list[float]) -> list[float]:
    """Return scores as Anserini's ScoreTiesAdjusterReranker gives them to Pyserini.

    They are rounded to 4 decimals; one that is within 0.0001 of the one before it is made smaller by
    0.000001 for each such neighbour, all in 32 bits.
    """
    import numpy as np

    given = (np.floor(np.array(scores) * 1e4 + 0.5) / 1e4).astype(np.float32)
    near, step = np.float32(1e-4), np.float32(1e-6)
    ties = 0
    for i in range(1, len(given)):
        ties = ties + 1 if given[i - 1] - given[i] <= near else 0
        given[i] -= step * np.float32(ties)
    return given.tolist()
