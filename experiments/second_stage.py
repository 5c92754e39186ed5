"""Measure what a cross-encoder that is trained on a corpus adds to the default list of that corpus; write a page.

    python experiments/second_stage.py indexes/vis.minilm indexes/labour.minilm ... --models indexes/second_stage

The cross-encoder of an index is trained on its train queries alone, once, into `--models`. It then reads the best
papers of the default ranker again, as `recommend` does, for some test queries under the protocol. On a GPU:
`--settings experiments/reranker/trainings/gpu.toml`, the full recipe, whose page has its name.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import orjson

from citerec.config import RerankConfig
from citerec.evaluate.metrics import per_query
from citerec.evaluate.protocol import EvalConfig, EvalSet, load_task
from citerec.evaluate.significance import student_test
from citerec.evaluate.systems import Systems
from citerec.folder import open_index
from citerec.java import start_jvm
from citerec.machine import provenance
from citerec.rank.ltr import DEFAULT
from citerec.train.reranker import train_reranker
from citerec.train.settings import RerankerTraining

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "second_stage"
SETTINGS = HERE / "reranker" / "trainings" / "fields.toml"
DEPTH = (
    100  # what takes 1.5 seconds on two cores with 96 + 64 tokens; 20 would leave F1@20 as it is
)
MOST = 150  # test queries, evenly over the split
METRICS = {"f1": "f1@20", "mrr": "mrr"}
ABOUT = """# A cross-encoder of one's own

What a cross-encoder adds to the default list of the corpus that it was trained on: {model}, trained on the train
queries of the corpus for {steps} updates of {batch} lists ([settings](reranker/trainings/{kind}.toml)). It reads the
best {depth} papers of the default ranker, with the weight that `recommend` gives it. F1@20 / MRR of at most {most}
test queries under the date-strict protocol. Bold: p < .05 (Student's paired t-test).

Made by `python experiments/second_stage.py INDEX...`.
"""


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="index folders with a test split")
    parser.add_argument("--models", type=Path, required=True, help="where the cross-encoders go")
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="of the trainings")
    options = parser.parse_args()
    settings: Path = options.settings
    config, kind = RerankerTraining.read(settings, {}), settings.stem
    results = RESULTS / kind
    results.mkdir(parents=True, exist_ok=True)
    start_jvm()
    suffix = "" if kind == SETTINGS.stem else f"_{kind.upper()}"
    for folder in options.indexes:
        result = measured(folder, options.models / kind, config)
        text = orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
        (results / f"{result['corpus']}.json").write_bytes(text + b"\n")
        text = page(config, kind)
        (HERE / f"SECOND_STAGE{suffix}.md").write_text(text, encoding="utf-8")


def measured(folder: Path, models: Path, config: RerankerTraining) -> dict[str, Any]:
    """Return the measures of the default list of an index with and without its own cross-encoder."""
    index, start = open_index(folder), monotonic()
    model = models / index.manifest.name
    if not model.exists():
        train_reranker(index, model, config, log=print)
    minutes = (monotonic() - start) / 60
    task = some(load_task(index, "test"))
    lists = {
        "default": EvalConfig(ranker=str(DEFAULT)),
        "reranked": EvalConfig(
            ranker=str(DEFAULT), rerank=RerankConfig(model=str(model.resolve()), depth=DEPTH)
        ),
    }
    scores: dict[str, Any] = {}
    for name, settings in lists.items():
        run, _ = Systems(index, task, settings, print).run("ranker")
        scores[name] = per_query(run, task.qrels)
    made = provenance({"corpus_sha256": index.manifest.corpus["sha256"]})
    return {
        "corpus": index.manifest.name.partition(".")[0],
        "queries": len(task.queries),
        "train_queries": index.manifest.counts["train_queries"],
        "minutes": minutes,
        "lists": {n: {m: s[key].mean() for m, key in METRICS.items()} for n, s in scores.items()},
        "p": {
            m: student_test(*(scores[name][key] for name in lists)) for m, key in METRICS.items()
        },
        "provenance": made,
    }


def some(task: EvalSet) -> EvalSet:
    """Return at most `MOST` queries of a task, evenly over it."""
    places = np.unique(np.linspace(0, len(task.queries) - 1, MOST).round().astype(int)).tolist()
    queries = tuple(task.queries[i] for i in places)
    rules, qrels = (
        tuple(task.eligible[i] for i in places),
        {q.id: task.qrels[q.id] for q in queries},
    )
    return replace(task, queries=queries, eligible=rules, qrels=qrels)


def page(config: RerankerTraining, kind: str) -> str:
    """Return the page of all results of some settings."""
    of_training = {"model": config.model, "steps": config.steps, "batch": config.batch}
    about = ABOUT.format(**of_training, depth=DEPTH, most=MOST, kind=kind)
    files = sorted((RESULTS / kind).glob("*.json"))
    results = [orjson.loads(file.read_bytes()) for file in files]
    lines = [about, "| corpus | train queries | test queries | default | with its own | change |"]
    lines += ["|---" * 6 + "|"]
    for one in results:
        default, reranked = (one["lists"][name] for name in ("default", "reranked"))
        shown = [f"{default[m]:.3f}" for m in METRICS], [_cell(one, m) for m in METRICS]
        cells = [one["corpus"], f"{one['train_queries']:,}", str(one["queries"])]
        cells += [" / ".join(part) for part in shown]
        cells.append(" / ".join(f"{reranked[m] / default[m] - 1:+.1%}" for m in METRICS))
        lines.append(f"| {' | '.join(cells)} |")
    means = " / ".join(f"{_change(results, m):+.1%}" for m in METRICS)
    minutes = np.median([one["minutes"] for one in results if one["minutes"] > 1] or [0])
    lines += ["", f"Mean change of {len(results)} corpora: {means}.", ""]
    lines += [f"Training took {minutes:.0f} minutes each, in the median.", ""]
    return "\n".join(lines)


def _cell(one: dict[str, Any], metric: str) -> str:
    text = f"{one['lists']['reranked'][metric]:.3f}"
    return f"**{text}**" if one["p"][metric] < 0.05 else text


def _change(results: Sequence[dict[str, Any]], metric: str) -> float:
    return float(
        np.mean(
            [
                one["lists"]["reranked"][metric] / one["lists"]["default"][metric] - 1
                for one in results
            ]
        )
    )


if __name__ == "__main__":
    main()
