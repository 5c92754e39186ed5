"""Measure what a cross-encoder that is trained on a corpus adds to the default list of that corpus; write a page.

    python experiments/second_stage.py indexes/plastics.minilm ... --models indexes/second_stage

The cross-encoder of an index is trained on its train queries alone, once, into `--models`, or is named by `--model`. It
then reads the best papers of the default ranker again, for some test queries under the protocol, with some weights.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.config import RerankConfig
from citerec.encode.machine import provenance
from citerec.evaluation.metrics import per_query
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.significance import student_test
from citerec.evaluation.systems import DEPTH, Systems
from citerec.index.folder import open_index
from citerec.index.java import start_jvm
from citerec.rank.ltr import DEFAULT
from citerec.train.reranker import train_reranker
from citerec.train.settings import RerankerTraining

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "second_stage"
SETTINGS = HERE / "reranker" / "trainings" / "fields.toml"
WEIGHTS = 0, 0.1, 0.2, 0.3, 0.4  # of the cross-encoder against the ranker
MOST = 200  # test queries, evenly over the split
METRICS = {"f1": "f1@20", "mrr": "mrr"}
ABOUT = """# A cross-encoder of one's own

What a cross-encoder adds to the default list of the corpus that it was trained on. It reads the best {depth} papers of
the default ranker again, and its score has a weight of w against the ranker's, both standardised. F1@20 / MRR of at
most {most} test queries under the date-strict protocol: of the default list, then the change. Bold: p < .05 (Student's
paired t-test). Before it, without a ranker: F1@20 of the first stage on dev queries, and with the cross-encoder at its
best weight there.

Made by `python experiments/second_stage.py INDEX... --models FOLDER`, which trains by
[settings](reranker/trainings/fields.toml) of 100 updates; a cross-encoder of more updates is one of
[a row](cross_encoder/trainings/long.toml), named by `--model`.
"""


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "indexes", type=Path, nargs="*", help="index folders with a test split"
    )
    parser.add_argument("--models", type=Path, help="where the cross-encoders go")
    parser.add_argument(
        "--model", type=Path, help="one that was trained on the index, instead"
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm()
    for folder in options.indexes:
        result = measured(folder, options.model or options.models / folder.name)
        text = orjson.dumps(
            result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
        )
        (RESULTS / f"{result['corpus']}.json").write_bytes(text + b"\n")
        (HERE / "SECOND_STAGE.md").write_text(page(), encoding="utf-8")


def measured(folder: Path, model: Path) -> dict[str, Any]:
    """Return the measures of the default list of an index, and as its own cross-encoder changes it, by weight."""
    index = open_index(folder)
    if not model.exists():
        train_reranker(index, model, RerankerTraining.read(SETTINGS, {}), log=print)
    eval_set = load_eval_set(index, "test").spread(MOST)
    settings = EvalConfig(ranker=str(DEFAULT))
    systems = Systems(index, eval_set, settings, print)
    hits = systems.hits("ranker")
    rerank = RerankConfig(model=str(model.resolve()))
    reranker = Systems(
        index, eval_set, settings.replace(rerank=rerank), print
    ).reranker_of("ranker")
    scores: dict[str, Any] = {}
    for weight in WEIGHTS:
        done = replace(reranker, weight=weight).rerank(eval_set.queries, hits)
        run = systems.as_run("ranker", [one.hits for one in done])
        scores[str(weight)] = per_query(run, eval_set.qrels)
    trained = orjson.loads((model / "training.json").read_bytes())
    best = {point["step"]: point["dev"]["mixed"] for point in trained["history"]}
    return {
        "corpus": index.manifest.name.partition(".")[0],
        "updates": trained["plan"]["steps"],
        "fused": {"f1": best[0], "best": best[trained["best_step"]]},
        "queries": len(eval_set.queries),
        "train_queries": index.manifest.counts["train_queries"],
        "weights": {
            weight: {
                name: {
                    "mean": one[key].mean(),
                    "p": student_test(one[key], scores["0"][key]),
                }
                for name, key in METRICS.items()
            }
            for weight, one in scores.items()
        },
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]}),
    }


def page() -> str:
    """Return the page of all results."""
    results = [
        orjson.loads(file.read_bytes()) for file in sorted(RESULTS.glob("*.json"))
    ]
    lines = [ABOUT.format(depth=DEPTH, most=MOST)]
    names = [f"w = {weight:g}" for weight in WEIGHTS[1:]]
    lines += [
        f"| corpus | train queries | updates | first stage, dev | default | {' | '.join(names)} |"
    ]
    lines += ["|---" * (5 + len(names)) + "|"]
    changes: list[list[list[float]]] = []
    for one in results:
        default, *others = one["weights"].values()
        changes.append(
            [[of[m]["mean"] / default[m]["mean"] - 1 for m in METRICS] for of in others]
        )
        fused = f"{one['fused']['f1']:.3f} → {one['fused']['best']:.3f}"
        cells = [
            one["corpus"],
            f"{one['train_queries']:,}",
            f"{one['updates']:,}",
            fused,
        ]
        cells.append(" / ".join(f"{default[m]['mean']:.3f}" for m in METRICS))
        for of, change in zip(others, changes[-1], strict=True):
            marks = ["**" * (of[m]["p"] < 0.05) for m in METRICS]
            cells.append(shown(change, marks))
        lines.append(f"| {' | '.join(cells)} |")
    means = map(shown, np.mean(changes, axis=0).tolist())
    lines += [f"| mean | | | | | {' | '.join(means)} |", ""]
    return "\n".join(lines)


def shown(changes: Sequence[float], marks: Sequence[str] = ("", "")) -> str:
    """Return the changes of both measures, with a mark on both sides of each."""
    pairs = zip(changes, marks, strict=True)
    return " / ".join(f"{mark}{change:+.1%}{mark}" for change, mark in pairs)


if __name__ == "__main__":
    main()
