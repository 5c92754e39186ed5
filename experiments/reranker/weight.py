"""Find the rerank weight of cross-encoders on corpora that they were not trained on, and set it.

    python experiments/reranker/weight.py \\
        --unseen experiments/reranker/halves/first/citerec-reranker indexes/biomed.minilm indexes/labour.minilm \\
        --unseen experiments/reranker/halves/second/citerec-reranker indexes/vis.minilm indexes/ecology.minilm \\
        --package citerec/rerank/default

Each `--unseen` names a model and indexes that it has not seen; it reranks the best of the fused list of dev queries.
The best weight has the highest product of the ratios F1@20 after / before and MRR after / before, over all these
indexes; the last column is the best for all others, which shows how much an index decides. The models of `--unseen`
get this weight. `--package` has seen all corpora, so its weight is that of their scores with its calibration: on other
corpora it is taken to score as they do.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.folder import open_index
from citerec.java import start_jvm
from citerec.manifest import seal_model
from citerec.rerank.model import load_reranker
from citerec.rerank.spec import RerankerSpec, read_reranker_spec, write_reranker_spec
from citerec.rules.held_out import may_know_queries
from citerec.train.joined import join
from citerec.train.record import table
from citerec.train.reranker.batch import Texts
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.dev import RerankerDev, draw_dev, load_dev

Measures = Mapping[float, tuple[float, float]]  # F1@20 and MRR by weight


def main() -> None:
    """Measure, print what the best weights give, and set them."""
    options = _options()
    start_jvm(None)
    config = RerankerTraining.of(
        {
            "dtype": "auto",
            "candidates": "fused",
            "dev_queries": options.queries,
            "dev_depth": options.depth,
        }
    )
    reranked = [
        LeftOut.of(Path(model), Path(index), config)
        for model, *indexes in options.unseen
        for index in indexes
    ]
    if len(reranked) < 2:
        raise SystemExit("name two indexes or more after the models")
    halves = sorted({Path(model) for model, *_ in options.unseen})
    set_weight(halves, {index.name: index.by_weight() for index in reranked})
    if options.package:
        spec = read_reranker_spec(options.package)
        set_weight([options.package], {index.name: index.by_weight(spec) for index in reranked})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The dev queries of an index, with the scores of a model that was not trained on it."""

    name: str
    spec: RerankerSpec
    dev: RerankerDev
    scores: npt.NDArray[np.float32]  # of the candidates, shape (entries,)

    @classmethod
    def of(cls, model: Path, folder: Path, config: RerankerTraining) -> "LeftOut":
        """Rerank the dev queries of an index."""
        index, parts = open_index(folder), load_reranker(model)
        if may_know_queries(model, index):
            raise SystemExit(f"{model} was trained on {folder}")
        joined = join([index])
        dev = load_dev(draw_dev(joined, config), config, print)
        if dev is None:
            raise SystemExit(f"{folder} has no dev queries")
        scores = dev.scores(parts, Texts(parts, joined.papers), config.running)
        return cls(folder.name, parts.spec, dev, scores)

    def by_weight(self, spec: RerankerSpec | None = None) -> Measures:
        """Return F1@20 and MRR by weight, with the calibration of the model or of another one."""
        spec = spec or self.spec
        return self.dev.by_weight(self.scores, spec.scale, spec.offset)


def set_weight(folders: Sequence[Path], measures: Mapping[str, Measures]) -> None:
    """Print what the best weight gives on each index, and set it."""
    weight = best(measures)
    print(f"\n{', '.join(map(str, folders))}: weight {weight:g}\n")
    rows = [
        (
            name,
            *(f"{before:.4f}" for before in of_index[0.0]),
            *(f"{b / a - 1:+.1%}" for a, b in zip(of_index[0.0], of_index[weight], strict=True)),
            f"{best({other: m for other, m in measures.items() if other != name}):g}",
        )
        for name, of_index in measures.items()
    ]
    print(table(("index", "F1@20", "MRR", "F1@20", "MRR", "weight of the others"), rows))
    for folder in folders:
        write_reranker_spec(folder, replace(read_reranker_spec(folder), weight=weight))
        seal_model(folder)


def best(measures: Mapping[str, Measures]) -> float:
    """Return the weight of the highest product of the ratios after / before, over both measures of all indexes."""

    def gain(weight: float) -> float:
        return math.prod(
            after / before
            for of_index in measures.values()
            for before, after in zip(of_index[0.0], of_index[weight], strict=True)
        )

    return max(next(iter(measures.values())), key=gain)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--unseen", nargs="+", action="append", required=True, metavar=("MODEL", "INDEX"))
    add("--package", type=Path, help="a model that was trained on all of these indexes")
    add("--queries", type=int, default=200, help="dev queries of each index, drawn at random")
    add("--depth", type=int, default=50, help="candidates of a dev query")
    return parser.parse_args()


if __name__ == "__main__":
    main()
