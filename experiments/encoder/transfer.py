"""Measure what trained encoders give on corpora that they have not seen, by the share of their training.

    python experiments/encoder/transfer.py \\
        --unseen indexes/encoders/first indexes/biomed.minilm indexes/labour.minilm \\
        --unseen indexes/encoders/second indexes/vis.minilm indexes/ecology.minilm

Each `--unseen` names an encoder that was trained from MiniLM, and indexes with MiniLM's vectors that it has not seen. A
share s takes the mean of the weights: s of the trained ones, 1 - s of MiniLM's; 0 is MiniLM. A linear map is mixed with
the identity. Each share encodes the papers of a copy of the index, which is removed afterwards. Measured are the
vectors alone, fused with BM25 (RRF), and the default learning-to-rank model, on dev queries. One JSON file for each
index and recipe, and a page of all.

Source of the share: Wortsman et al., CVPR 2022, https://arxiv.org/abs/2109.01903.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.difference.write import write_difference
from citerec.encode.opening import open_encoder
from citerec.encode.projection import (
    Matrix,
    projection_file,
    read_projection,
    write_projection,
)
from citerec.evaluate.metrics import mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, EvalSet, load_task
from citerec.evaluate.significance import student_test
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.manifest import editing_model
from citerec.provenance import provenance
from citerec.rank.ranker import DEFAULT
from citerec.rules.trained_on import may_know_queries
from citerec.train.record import read_training, table

EXPERIMENTS = Path(__file__).resolve().parent.parent
RESULTS = EXPERIMENTS / "results" / "encoder"
PAGE = EXPERIMENTS / "ENCODER.md"
SYSTEMS = ("dense", "rrf", "ranker")
METRICS = ("f1@20", "mrr", "recall@1000")
ABOUT = """# Encoders on corpora that they have not seen

Encoders were trained from MiniLM, each on two corpora, and encode the papers of the two others: by the recipe `memory`
(`encoder/trainings/default_half.toml`), and by the recipe `linear` with its defaults. Share: the part of the trained
weights in their mean with MiniLM's (of a linear map: with the identity); 0 is MiniLM itself. Dev queries; in brackets
the change from MiniLM, with a star where p < .05 (Student's paired t-test).

[How it was made](README.md#encoders-on-corpora-that-they-have-not-seen).
"""

PerQuery = Mapping[str, Any]  # the metrics of each query, by name


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    options = _options()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm(None)
    for model, *indexes in options.unseen:
        for folder in map(Path, indexes):
            result = measured(Path(model), folder, options.shares)
            path = RESULTS / f"{folder.name}_{result['training']['recipe']}.json"
            path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
            print(f"transfer: {path}", file=sys.stderr)
    PAGE.write_text(page(), encoding="utf-8")


def measured(model: Path, folder: Path, shares: list[float]) -> dict[str, Any]:
    """Return the figures of each system on one index, by share."""
    index = open_index(folder)
    if may_know_queries(model, index):
        raise SystemExit(f"{model} was trained on {folder}")
    task = load_task(index, "dev")
    before = dict(_systems(index, task))
    figures = {"0": {name: _means(of) for name, of in before.items()}}
    for share in shares:
        with tempfile.TemporaryDirectory(prefix="transfer-", dir=folder.parent) as temporary:
            copy = _encoded(model, folder, Path(temporary), share)
            figures[f"{share:g}"] = {
                name: _means(of) | {"p": _p(of, before[name])} for name, of in _systems(copy, task)
            }
    return {
        "corpus": index.manifest.name.partition(".")[0],
        "queries": len(task.queries),
        "figures": figures,
        "training": read_training(model)["provenance"]["settings"],
        "provenance": provenance({"split": "dev", "shares": shares}),
    }


def _encoded(model: Path, folder: Path, work: Path, share: float) -> IndexFolder:
    """Return a copy of an index with the vectors of a share of an encoder's training."""
    part = work / "encoder"
    if projection_file(model):
        shutil.copytree(model, part)
        with editing_model(part) as edited:
            write_projection(edited, _mixed(model, share))
    else:
        write_difference(model, part, rank=0, share=share, training=read_training(model), card="")
    copy = work / folder.name
    shutil.copytree(folder, copy)
    embed_anew(copy, open_encoder(str(part)), EmbedConfig())
    return open_index(copy)


def _mixed(model: Path, share: float) -> Matrix:
    """Return the mean of a linear map and the identity."""
    encoder = open_encoder(str(model))
    projection = read_projection(model, encoder.dim)
    assert projection is not None
    mixed = share * projection.matrix + (1 - share) * np.eye(encoder.dim)
    return mixed.astype(np.float32)


def _systems(index: IndexFolder, task: EvalSet) -> Iterator[tuple[str, PerQuery]]:
    systems = Systems(index, task, EvalConfig(ranker=str(DEFAULT)))
    for name in SYSTEMS:
        run, _ = systems.run(name)
        yield name, per_query(run, task.qrels)


def _means(figures: PerQuery) -> dict[str, Any]:
    means = mean_metrics(figures)
    return {name: means[name] for name in METRICS}


def _p(after: PerQuery, before: PerQuery) -> dict[str, float]:
    return {name: float(student_test(after[name], before[name])) for name in METRICS}


def page() -> str:
    """Return the results as a page."""
    results = [orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))]
    header = ("system", "share", "F1@20", "MRR", "R@1000")
    parts = [
        f"## {one['corpus']}, recipe {one['training']['recipe']}, {one['queries']:,} dev queries\n\n"
        f"{table(header, [*_rows(one)])}\n"
        for one in results
    ]
    return "\n".join([ABOUT, *parts])


def _rows(one: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    base = one["figures"]["0"]
    for system in SYSTEMS:
        for share, figures in one["figures"].items():
            yield system, share, *(_cell(figures[system], base[system], name) for name in METRICS)


def _cell(figures: Mapping[str, Any], base: Mapping[str, float], name: str) -> str:
    if "p" not in figures:
        return f"{figures[name]:.4f}"
    star = "*" if figures["p"][name] < 0.05 else ""
    return f"{figures[name]:.4f} ({figures[name] / base[name] - 1:+.1%}{star})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--unseen", nargs="+", action="append", default=[], metavar=("MODEL", "INDEX"))
    add("--shares", type=float, nargs="+", default=[0.3], help="of the training, in (0, 1]")
    return parser.parse_args()


if __name__ == "__main__":
    main()
