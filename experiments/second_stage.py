"""Measure what a cross-encoder that is trained on a corpus adds to the default list of that corpus; write a page.

    python experiments/second_stage.py indexes/vis.minilm indexes/labour.minilm ... --models indexes/second_stage

The cross-encoder of an index is trained on its train queries alone, once, into `--models`. It then reads the best
papers of the default ranker again, as `recommend` does, for some test queries under the protocol.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.config import RerankConfig
from citerec.evaluate.metrics import per_query
from citerec.evaluate.protocol import EvalConfig, EvalSet, load_task
from citerec.evaluate.significance import student_test
from citerec.evaluate.systems import DEPTH, Systems
from citerec.folder import open_index
from citerec.java import start_jvm
from citerec.machine import provenance
from citerec.rank.ltr import DEFAULT
from citerec.train.reranker import train_reranker
from citerec.train.settings import RerankerTraining

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "second_stage"
SETTINGS = HERE / "reranker" / "trainings" / "fields.toml"
MOST = 150  # test queries, evenly over the split
METRICS = {"f1": "f1@20", "mrr": "mrr"}
ABOUT = """# A cross-encoder of one's own

What a cross-encoder adds to the default list of the corpus that it was trained on
([settings](reranker/trainings/fields.toml)). It reads the best {depth} papers of the default ranker, with the weight
that `recommend` gives it. F1@20 / MRR of at most {most} test queries under the date-strict protocol. Bold: p < .05
(Student's paired t-test).

Made by `python experiments/second_stage.py INDEX...`.
"""


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="index folders with a test split")
    parser.add_argument("--models", type=Path, required=True, help="where the cross-encoders go")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm()
    for folder in options.indexes:
        result = measured(folder, options.models)
        text = orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
        (RESULTS / f"{result['corpus']}.json").write_bytes(text + b"\n")
        (HERE / "SECOND_STAGE.md").write_text(page(), encoding="utf-8")


def measured(folder: Path, models: Path) -> dict[str, Any]:
    """Return the measures of the default list of an index with and without its own cross-encoder."""
    index = open_index(folder)
    model = models / index.manifest.name
    if not model.exists():
        train_reranker(index, model, RerankerTraining.read(SETTINGS, {}), log=print)
    task = some(load_task(index, "test"))
    default = EvalConfig(ranker=str(DEFAULT))
    rerank = RerankConfig(model=str(model.resolve()))
    lists = {"default": default, "reranked": default.replace(rerank=rerank)}
    scores: dict[str, Any] = {}
    for name, settings in lists.items():
        run, _ = Systems(index, task, settings, print).run("ranker")
        scores[name] = per_query(run, task.qrels)
    made = provenance({"corpus_sha256": index.manifest.corpus["sha256"]})
    return {
        "corpus": index.manifest.name.partition(".")[0],
        "queries": len(task.queries),
        "train_queries": index.manifest.counts["train_queries"],
        "lists": {n: {m: s[key].mean() for m, key in METRICS.items()} for n, s in scores.items()},
        "p": {m: student_test(*(s[key] for s in scores.values())) for m, key in METRICS.items()},
        "provenance": made,
    }


def some(task: EvalSet) -> EvalSet:
    """Return at most `MOST` queries of a task, evenly over it."""
    places = np.unique(np.linspace(0, len(task.queries) - 1, MOST).round().astype(int)).tolist()
    queries, rules = ([part[i] for i in places] for part in (task.queries, task.eligible))
    qrels = {query.id: task.qrels[query.id] for query in queries}
    return replace(task, queries=tuple(queries), eligible=tuple(rules), qrels=qrels)


def page() -> str:
    """Return the page of all results."""
    results = [orjson.loads(file.read_bytes()) for file in sorted(RESULTS.glob("*.json"))]
    lines = [ABOUT.format(depth=DEPTH, most=MOST)]
    lines += ["| corpus | train queries | test queries | default | with its own | change |"]
    lines += ["|---" * 6 + "|"]
    changes: list[list[float]] = []
    for one in results:
        default, reranked = (one["lists"][name] for name in ("default", "reranked"))
        changes.append([reranked[m] / default[m] - 1 for m in METRICS])
        shown = [f"{default[m]:.3f}" for m in METRICS], [_cell(one, m) for m in METRICS]
        cells = [one["corpus"], f"{one['train_queries']:,}", str(one["queries"])]
        cells += [" / ".join(part) for part in shown]
        cells.append(" / ".join(f"{change:+.1%}" for change in changes[-1]))
        lines.append(f"| {' | '.join(cells)} |")
    means = " / ".join(f"{mean:+.1%}" for mean in np.mean(changes, axis=0))
    lines += ["", f"Mean change of {len(results)} corpora: {means}.", ""]
    return "\n".join(lines)


def _cell(one: dict[str, Any], metric: str) -> str:
    text = f"{one['lists']['reranked'][metric]:.3f}"
    return f"**{text}**" if one["p"][metric] < 0.05 else text


if __name__ == "__main__":
    main()
