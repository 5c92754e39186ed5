"""Measure approximate search of vectors against exact search: recall, build, memory, size and latency, by year bound.

    python experiments/ann.py --index /tmp/scale/100k/index --index /tmp/scale/1m/index \\
        --source INDEX [--source INDEX ...] --work /tmp/ann

The indexes are those of `experiments/synthetic.py`, the sources those that it mixed. A query is the vector of a real
paper of a source, which is not in the synthetic corpus: a paper there is a mean of two vectors with noise. Each
structure is built by `write_dense`, as `citerec encode` does, in a process of its own, and measured in another one.

Times are those of the processor on one thread: wall time means little on a machine with other work. A build that lies
in `--work` is not made again. Results are kept in `results/ann.json`; `ANN.md` is written from all of them.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from ann_page import page
from scale import memory

from citerec.config import DenseConfig, DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.folder import DENSE, IndexFolder, open_index
from citerec.index.dense.exact import RowsAndScores
from citerec.index.dense.flat import map_flat
from citerec.index.dense.library import NAME, on_threads
from citerec.index.dense.read import DenseIndex, open_dense
from citerec.index.dense.write import write_dense
from citerec.machine import about_cpu, processor
from citerec.provenance import versions
from citerec.types import Eligibility

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results" / "ann.json", HERE / "ANN.md"
Rows = npt.NDArray[np.int32]

K = 1000  # hits of a search, as first-stage retrieval asks for
QUERIES, SINGLE = (
    200,
    100,
)  # queries of the batch, and those of them that are also searched one by one
SHARES = (1.0, 0.5, 0.1, 0.01)  # of the papers that a year bound leaves, about; 1 for no bound
READ = 4096  # vectors that the builder reads at once
EXACT = "exact"


@dataclass(frozen=True)
class Structure:
    """One index to build, and the efforts to search it with besides the one that its build chose."""

    what: str
    config: DenseIndexConfig
    efforts: tuple[int, ...] = field(default=())


def _of(kind: DenseKind, **settings: Any) -> DenseIndexConfig:
    return DenseIndexConfig(kind=kind, threads=1, **settings)


STRUCTURES = {
    EXACT: Structure("every vector is compared", _of(DenseKind.EXACT)),
    "hnsw": Structure(
        "M = 32, efConstruction = 200 (default)", _of(DenseKind.HNSW), (1001, 2048, 4096)
    ),
    "hnsw-16": Structure(
        "M = 16, efConstruction = 100",
        _of(DenseKind.HNSW, hnsw_m=16, ef_construction=100),
        (1001, 2048, 4096),
    ),
    "ivf": Structure("4 √papers lists (default)", _of(DenseKind.IVF), (16, 64, 256)),
    "ivf-1024": Structure("1024 lists", _of(DenseKind.IVF, ivf_lists=1024), (16, 64, 256)),
}


def main() -> None:
    """Measure the indexes that are named, or be the process that builds or measures one structure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--index", type=Path, action="append", default=[])
    parser.add_argument("--source", type=Path, action="append", default=[], help="an index")
    parser.add_argument("--work", type=Path, help="a folder for the builds, outside the repository")
    parser.add_argument("--only", choices=STRUCTURES, action="append", help="a structure")
    parser.add_argument("--child", choices=("build", "search"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        [index], [name] = given.index, given.only
        work = build if given.child == "build" else search
        sys.stdout.buffer.write(orjson.dumps(work(index, name, given.work)))
        return
    results: dict[str, Any] = orjson.loads(RESULTS.read_bytes()) if RESULTS.is_file() else {}
    for index in given.index:
        papers = len(open_index(index).papers)
        folder = given.work / str(papers)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "queries.npy").is_file():
            np.save(folder / "queries.npy", queries_of(given.source))
        # the exact hits are what the others are compared with
        for name in [EXACT, *(n for n in given.only or STRUCTURES if n != EXACT)]:
            measured = _structure(index, name, folder)
            results.setdefault(str(papers), {})[name] = measured
            RESULTS.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")
            print(f"ann: {papers:,} papers, {name}", file=sys.stderr)
    PAGE.write_text(page(results), encoding="utf-8")


def _structure(index: Path, name: str, folder: Path) -> dict[str, Any]:
    """Build a structure, unless it is there, and search it."""
    record = folder / name / "build.json"
    if not record.is_file():
        _child("build", index, name, folder)
    searched = _child("search", index, name, folder)
    machine = {"processor": processor(about_cpu())[0], **versions(("faiss-cpu", "numpy"))}
    what = STRUCTURES[name].what
    return {
        "what": what,
        "machine": machine,
        "build": orjson.loads(record.read_bytes()),
        **searched,
    }


def _child(work: str, index: Path, name: str, folder: Path) -> dict[str, Any]:
    options = ["--child", work, "--index", str(index), "--only", name, "--work", str(folder)]
    command = [sys.executable, __file__, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return orjson.loads(done.stdout.splitlines()[-1])


def queries_of(sources: Sequence[Path]) -> npt.NDArray[np.float32]:
    """Draw the vectors of papers of the sources, shape (QUERIES, dim)."""
    from synthetic import read_source

    vectors = read_source(sources).vectors
    rng = np.random.default_rng(0)
    return vectors[np.sort(rng.choice(len(vectors), QUERIES, replace=False))]


def build(index: Path, name: str, folder: Path) -> dict[str, Any]:
    """Build a structure from the exact vectors of an index; return its settings, its size and what it cost."""
    opened = open_index(index)
    recorded = opened.manifest.settings["dense"]
    before, wall, cpu = _peak(), time.perf_counter(), time.process_time()
    settings = write_dense(
        folder / name,
        lambda: _vectors(opened, recorded["dim"]),
        rows=len(opened.papers),
        dim=recorded["dim"],
        similarity=Similarity(recorded["similarity"]),
        config=STRUCTURES[name].config,
        progress=_progress,
    )
    built = {
        "settings": settings,
        "seconds": {"processor": time.process_time() - cpu, "wall": time.perf_counter() - wall},
        "peak_mib": round(_peak() - before),
        "mb": settings["bytes"] / 1e6,
    }
    (folder / name / "build.json").write_bytes(orjson.dumps(built))
    return built


def _progress(step: str, done: int, total: int) -> None:
    if not done % (16 * READ) or done == total:
        print(f"ann: {step}, {done:,} of {total:,}", file=sys.stderr)


def _vectors(index: IndexFolder, dim: int) -> Iterator[npt.NDArray[np.float32]]:
    """Read the vectors of an exact index, not as a memory map: mapped pages would count as memory of the build."""
    path, rows = index.path / DENSE / NAME, len(index.papers)
    similarity = Similarity(index.manifest.settings["dense"]["similarity"])
    start = path.stat().st_size - map_flat(path, rows=rows, dim=dim, similarity=similarity).nbytes
    with path.open("rb") as stream:
        stream.seek(start)
        for first in range(0, rows, READ):
            count = min(READ, rows - first)
            yield np.fromfile(stream, np.float32, count * dim).reshape(count, dim)


def search(index: Path, name: str, folder: Path) -> dict[str, Any]:
    """Search a structure with every effort under every year bound; write the exact hits if it is the exact index."""
    years = open_index(index).papers.years.copy()
    settings = orjson.loads((folder / name / "build.json").read_bytes())["settings"]
    queries = np.load(folder / "queries.npy")
    before, cpu = memory(), time.process_time()
    structure = open_dense(folder / name, settings, years)
    opened = {"seconds": time.process_time() - cpu, "mib": _grown(before)}
    searches: list[dict[str, Any]] = []
    chosen: int | None = next(iter(settings.get("search", {}).values()), None)
    efforts: list[int | None] = [None] if chosen is None else [*{chosen, *STRUCTURES[name].efforts}]
    for share in SHARES:
        bound = bound_of(years, share)
        truth = folder / f"truth-{share}.npy"
        for effort in sorted(efforts, key=lambda effort: effort or 0):
            config = DenseConfig(threads=1, ef_search=effort, nprobe=effort)
            structure = open_dense(folder / name, settings, years, config)
            hits, costs = _timed(structure, queries, Eligibility(bound))
            if name == EXACT:
                np.save(truth, hits)
            exact = np.load(truth)
            recalls = {str(depth): round(recall(exact, hits, depth), 4) for depth in (K, 100)}
            about = {"effort": effort, "chosen": effort == chosen, "year_max": bound}
            eligible = len(years) if bound is None else int(np.count_nonzero(years <= bound))
            about |= {"share": share, "eligible": round(eligible / len(years), 4)}
            searches.append(about | {"recall": recalls} | costs)
    return {"open": opened, "searches": searches, "memory": _grown(before)}


def _timed(
    structure: DenseIndex, queries: npt.NDArray[np.float32], rule: Eligibility
) -> tuple[Rows, dict[str, float]]:
    """Return the hits, shape (queries, K), and the processor milliseconds of a query, alone and in a batch."""
    alone: list[float] = []
    with on_threads(1):
        structure.nearest(queries[-1:], [rule], K)  # reads the pages of the file
        for query in queries[:SINGLE]:
            start = time.process_time()
            structure.nearest(query[None], [rule], K)
            alone.append(time.process_time() - start)
        start = time.process_time()
        results = structure.nearest(queries, [rule] * len(queries), K)
        batch = (time.process_time() - start) / len(queries)
    p50, p95 = np.percentile(alone, [50, 95]).tolist()
    hits = np.stack([best(result, K) for result in results])
    costs = {"p50_ms": p50, "p95_ms": p95, "batch_ms": batch}
    return hits, {name: round(1000 * seconds, 3) for name, seconds in costs.items()}


def best(result: RowsAndScores, k: int) -> Rows:
    """Return the rows of the `k` best hits, best first, shape (k,); -1 where there are fewer."""
    rows, scores = result
    order = np.lexsort((rows, -scores))[:k]
    return np.pad(rows[order], (0, k - len(order)), constant_values=-1)


def recall(expected: Rows, hits: Rows, depth: int) -> float:
    """Return the share of the first `depth` expected rows that are among the first `depth` hits, mean over queries.

    Args:
        expected: The rows of exact search, best first, shape (queries, k); -1 where there are fewer.
        hits: The rows of the search that is measured, likewise.
        depth: At most k.
    """
    shares: list[float] = []
    for one, other in zip(expected[:, :depth], hits[:, :depth], strict=True):
        wanted = one[one >= 0]
        shares.append(float(np.isin(wanted, other).mean()) if len(wanted) else 1.0)
    return float(np.mean(shares))


def bound_of(years: npt.NDArray[np.int32], share: float) -> int | None:
    """Return the earliest year up to which at least `share` of the papers are; None for all."""
    return None if share == 1 else int(np.quantile(years, share, method="inverted_cdf"))


def _grown(before: dict[str, float]) -> dict[str, int]:
    return {name: round(size - before[name]) for name, size in memory().items()}


def _peak() -> float:
    """Return the peak resident memory of this process in MiB, without that of its parent before `exec`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
