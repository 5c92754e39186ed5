"""Put citerec beside published rankings of the same pools: DORIS-MAE and CSFCube.

    python experiments/benchmarks.py ../shared/data/benchmarks

The folder, which the project does not contain, has one folder a benchmark: papers and queries, graded judgements, and
published rankings as TREC runs. All are evaluated by the same code, on the judged papers alone.
"""

import argparse
import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from sklearn.metrics import average_precision_score, ndcg_score

import citerec
from citerec.build.index import BuildConfig, build_index
from citerec.config import RecommendConfig
from citerec.drafts import parse_queries
from citerec.encode.machine import provenance
from citerec.evaluation.significance import bootstrap_interval
from citerec.files.arrays import Floats
from citerec.index.folder import open_index

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "benchmarks"
INDEXES = HERE.parent / "indexes"
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


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What is measured on one corpus: the mean over judged pools."""

    title: str
    judgements: Mapping[str, str]  # by their file, the published rankings of them
    cut: float  # of nDCG: ranks, or a share of the pool
    relevant: float  # the least grade of a relevant paper, for MAP
    year_max: int | None = None

    def depth(self, pool: int) -> int:
        """Return how many ranks nDCG reads of a pool."""
        return int(self.cut) if self.cut >= 1 else max(1, int(self.cut * pool))

    @property
    def name(self) -> str:
        """The name of its nDCG."""
        return f"nDCG@{self.cut:g}" if self.cut >= 1 else f"nDCG%{self.cut:.0%}"[:-1]


BENCHMARKS = {
    "doris-mae": Benchmark(
        "DORIS-MAE: 40 research needs of a paragraph",
        {"qrels.txt.gz": "published/*.trec.gz"},
        10,
        1,
    ),
    "csfcube": Benchmark(
        "CSFCube: 34 papers, 50 pairs of paper and facet",
        {
            f"qrels.{facet}.txt.gz": f"specter.{facet}.trec.gz"
            for facet in ("background", "method", "result")
        },
        0.2,
        2,
        year_max=2100,
    ),
}
ABOUT = """# Published benchmarks

The same pools of judged papers, ranked by citerec and by others, all evaluated by the same code; 100 is best. Made by
`python experiments/benchmarks.py FOLDER`. Nothing was trained on them. Behind nDCG its 95 % interval, and that of its
difference to the default list (bootstrap over queries, paired).

Cautions: the pools of DORIS-MAE are those of BIRCO, which are smaller than the published ones, so figures differ from
the paper's; its grades are by a language model; 40 queries are few, and differences of two points are within chance.
CSFCube's papers have one ranking for all facets. Both corpora have no citations, authors or venues.
"""


def main() -> None:
    """Measure each benchmark of the folder, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="has a folder for each benchmark")
    folder = parser.parse_args().folder
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name, benchmark in BENCHMARKS.items():
        result = measured(folder / name, benchmark)
        content = orjson.dumps(result, option=orjson.OPT_INDENT_2)
        (RESULTS / f"{name}.json").write_bytes(content + b"\n")
    (HERE / "BENCHMARKS.md").write_text(page(), encoding="utf-8")


def measured(folder: Path, benchmark: Benchmark) -> dict[str, Any]:
    """Return the measures of a benchmark with MiniLM."""
    index = INDEXES / f"{folder.name}.minilm"
    if not index.exists():
        build_index(folder, index, BuildConfig(encoder="minilm"))
    facts = {"corpus_sha256": open_index(index).manifest.corpus["sha256"]}
    rows = measured_index(index, folder, benchmark)
    return {"rows": rows, "provenance": provenance(facts)}


def measured_index(
    index: Path, folder: Path, benchmark: Benchmark
) -> list[dict[str, Any]]:
    """Return nDCG and MAP of each system, best first, with intervals; citerec's are those of an index."""
    runs = {
        name: ranked(index, folder, config, benchmark.year_max)
        for name, config in SYSTEMS.items()
    }
    tables: dict[str, list[tuple[float, float]]] = {}
    for file, published in benchmark.judgements.items():
        judgements = read_judgements(folder / file)
        for name, run in runs.items():
            tables.setdefault(name, []).extend(evaluated(run, judgements, benchmark))
        for path in sorted(folder.glob(published)):
            name = path.name.partition(".")[0]
            measures = evaluated(read_run(path), judgements, benchmark)
            tables.setdefault(name, []).extend(measures)
    default = np.array(tables[DEFAULT])[:, 0]
    rows: list[dict[str, Any]] = []
    for name, table in tables.items():
        values = np.array(table)
        ndcg, mean_precision = (100 * np.nanmean(values, axis=0)).tolist()
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


def ranked(
    index: Path, folder: Path, config: RecommendConfig, year_max: int | None
) -> Run:
    """Return the scores of the papers of each query by citerec."""
    packed = (folder / "queries.jsonl.gz").read_bytes()
    queries = parse_queries(gzip.decompress(packed)).queries
    with citerec.open(index, config) as recommender:
        request = citerec.Request.of(queries, k=DEPTH, year_max=year_max)
        return {
            query.id: {item.paper.id: -float(item.rank) for item in items}
            for query, items in zip(
                queries, recommender.recommend_many(request), strict=True
            )
        }


def evaluated(
    run: Run, judgements: Judgements, benchmark: Benchmark
) -> list[tuple[float, float]]:
    """Return nDCG, with linear gain, and average precision of each pool; a paper that the run lacks is last."""
    measures: list[tuple[float, float]] = []
    for query, pool in judgements.items():
        scores = run.get(query, {})
        # ties are in the order of ids
        ids = sorted(pool, key=lambda i: (-scores.get(i, -np.inf), i))
        grades = np.array([pool[i] for i in ids])
        places = -np.arange(len(ids), dtype=np.float64)
        depth = benchmark.depth(len(ids))
        ndcg = ndcg_score([grades], [places], k=depth, ignore_ties=True)
        relevant = grades >= benchmark.relevant
        precision = (
            average_precision_score(relevant, places) if relevant.any() else np.nan
        )
        measures.append((float(ndcg), float(precision)))
    return measures


def interval(values: Floats) -> list[float]:
    """Return the 95 % bootstrap interval of a mean, times 100."""
    rng = np.random.default_rng(0)
    ends = bootstrap_interval(100 * values[:, None], lambda means: means, rng=rng)
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


def page() -> str:
    """Return the results as a page."""
    lines = [ABOUT]
    for name, benchmark in BENCHMARKS.items():
        result = orjson.loads((RESULTS / f"{name}.json").read_bytes())
        lines += [
            f"## {benchmark.title}",
            "",
            f"| system | {benchmark.name} | 95 % | less the default list's, 95 % | MAP |",
            "|---|--:|---|---|--:|",
        ]
        for row in result["rows"]:
            low, high = row["ci95"]
            less, more = row["less_default"]
            apart = "" if row["system"] == DEFAULT else f"{less:+.1f} to {more:+.1f}"
            values = f"{row['ndcg']:.1f} | {low:.1f} to {high:.1f} | {apart} | {row['map']:.1f}"
            lines.append(f"| {row['system']} | {values} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
