"""Measures what Ray costs: two workers of one thread each against one process of two threads, on the same processors.

    python experiments/ray_overhead.py INDEX --papers 20000 --queries 500

The index needs vectors and as many papers; `--papers 0` or `--queries 0` leaves one part out. Both sides encode the
same shards and recommend for the same drafts, which are papers of the index. Processor time is that of all processes
with those of Ray; `steady` leaves out the time until the first result of each side, in which workers start and open
their models. On a machine with other load, compare processor times: Ray runs workers at a lower priority.
"""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from citerec.config import RecommendConfig
from citerec.distributed.cluster import LOCAL, Cluster, connected
from citerec.distributed.embedding import RayShards
from citerec.distributed.recommending import RayRecommender
from citerec.encode.config import EncodeConfig
from citerec.encode.opening import reopen
from citerec.encode.spec import Fingerprint
from citerec.folder import IndexFolder, open_index
from citerec.machine import about_cpu, processor
from citerec.missing import stream_any
from citerec.recommend import AT_ONCE, BatchRecommender
from citerec.shards import PlannedShard
from citerec.types import Query

Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("index", type=Path)
    parser.add_argument("--papers", type=int, default=20_000)
    parser.add_argument("--shard", type=int, default=2048)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--block", type=int, default=AT_ONCE)
    given = parser.parse_args()
    index = open_index(given.index)
    if max(given.papers, given.queries) > len(index.papers):
        parser.error(f"{given.index} has only {len(index.papers):,} papers")
    load = os.getloadavg()[0]
    print(f"{processor(about_cpu())[0]}, {os.cpu_count()} processors, load {load:.1f}")
    start = perf_counter()
    with connected(LOCAL) as cluster:
        print(f"Ray started: {perf_counter() - start:.1f} s")
        if given.papers:
            encoding(index, cluster, given.papers, given.shard)
        if given.queries:
            recommending(index, cluster, given.queries, given.block)


def encoding(index: IndexFolder, cluster: Cluster, papers: int, size: int) -> None:
    recorded = Fingerprint.from_json(index.manifest.settings["encoder"])
    encoder = reopen(recorded, index.path, EncodeConfig())
    starts = range(0, papers, size)
    shards = [PlannedShard(Path(str(i)), range(i, min(i + size, papers))) for i in starts]

    def plain() -> Iterable[tuple[Path, Any]]:
        for shard in shards:
            yield shard.file, encoder.encode([*index.papers.at(shard.rows).values()])

    def by_ray() -> Iterable[tuple[Path, Any]]:
        for shard, vectors in RayShards(cluster)(encoder, index.path, index.papers, shards):
            yield shard.file, vectors

    expected, found = (
        timed("encode, plain", plain(), papers),
        timed("encode, Ray", by_ray(), papers),
    )
    one, other = dict(expected), dict(found)
    print("vectors identical:", all(np.array_equal(one[file], other[file]) for file in one))


def recommending(index: IndexFolder, cluster: Cluster, queries: int, block: int) -> None:
    recommender = BatchRecommender(index, RecommendConfig())
    rows = np.linspace(0, len(index.papers) - 1, queries).astype(int).tolist()
    drafts = [
        Query(id=paper.id, title=paper.title, abstract=paper.abstract, year=paper.year)
        for paper in index.papers.at(rows).values()
    ]
    workers = RayRecommender(cluster, block=block)
    expected = timed("recommend, plain", stream_any(recommender, drafts), len(drafts))
    found = timed("recommend, Ray", workers.stream(recommender, drafts), len(drafts))
    ids = [[[item.paper.id for item in one.items] for one in side] for side in (expected, found)]
    equal = sum(a == b for a, b in zip(*ids, strict=True))
    print(f"lists with the same papers in the same order: {equal} of {len(drafts)};", end=" ")
    print("identical:", expected == found)


def processor_seconds() -> float:
    """Return the processor time of this process and of all below it, with those that have ended."""
    rows: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        rows[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    below, found = {os.getpid()}, 0
    while len(below) > found:
        found = len(below)
        below |= {process for process, (parent, _) in rows.items() if parent in below}
    return sum(rows[process][1] for process in below) / os.sysconf("SC_CLK_TCK")


def timed(name: str, results: Iterable[Result], items: int) -> list[Result]:
    used, start, first, done = processor_seconds(), perf_counter(), 0.0, list[Result]()
    for result in results:
        first = first or perf_counter()
        done.append(result)
    end = perf_counter()
    used = processor_seconds() - used
    steady = f", steady {end - first:.1f} s" if len(done) > 1 else ""
    print(f"{name}: {end - start:.1f} s for {items:,}{steady}; processors {used:.1f} s", flush=True)
    return done


if __name__ == "__main__":
    main()
