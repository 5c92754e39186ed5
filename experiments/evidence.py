"""Measure what groups of features of the learning-to-rank model add on a corpus that it was not trained on.

    python experiments/evidence.py indexes/vis indexes/biomed indexes/ecology indexes/labour --examples /tmp/examples

For each index, models are trained on the train queries of all others, with and without each group of features, and
measured on its own dev queries: F1@20 and MRR, each the mean of a query's values over `SEEDS`. The examples are gathered
once, with all features, and kept in the folder `--examples`. One row of experiments/EVIDENCE.md is one group and index.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.rank.catalogue import NAMES
from citerec.rules.held_out import held_out
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.train.ranker.boost import fit
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples
from citerec.train.ranker.gather import Gatherer
from citerec.train.ranker.queries import dev_queries, load_train
from citerec.types import no_progress

PAGE = Path(__file__).with_suffix("").parent / "EVIDENCE.md"
SEEDS = (0, 1, 2)
GROUPS: Mapping[str, Sequence[str]] = {
    "citing titles": ("citing_titles",),
    "citing vectors": ("citing_similarity", "citing_closest"),
    "linked vectors": ("linked_similarity",),
    "author topics": ("author_topic", "author_closest"),
    "citation velocity": ("citations_by_age",),
    "citation velocity, corpus": ("citations_by_year",),
    "venue citations": ("venue_citations",),
    "two-step walk": ("walk",),
    "two-step walk, 50": ("walk_50",),
}

Measures = npt.NDArray[np.float64]  # shape (queries, 2): F1@20 and 1 / rank


def main() -> None:
    """Gather what is missing, fit, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("indexes", type=Path, nargs="+")
    parser.add_argument("--examples", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=700)
    parser.add_argument("--dev-queries", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    start_jvm(None)
    config = RankerTraining(
        reranker="none",
        queries=options.queries,
        dev_queries=options.dev_queries,
        threads=options.threads,
    )
    options.examples.mkdir(parents=True, exist_ok=True)
    indexes = {path.name: open_index(path) for path in options.indexes}
    train: dict[str, RankerExamples] = {}
    dev: dict[str, RankerExamples] = {}
    for name, index in indexes.items():
        others = [other for other in indexes.values() if other is not index]
        train[name], dev[name] = gathered(index, others, config, options.examples / name)
        print(f"{name}: {len(train[name])} train queries, {len(dev[name])} dev queries", flush=True)


def gathered(
    index: IndexFolder, others: Sequence[IndexFolder], config: RankerTraining, path: Path
) -> tuple[RankerExamples, RankerExamples]:
    """Return train and dev examples of an index, from files if they are there."""
    files = [path.with_name(f"{path.name}.{split}.npz") for split in ("train", "dev")]
    if not all(file.is_file() for file in files):
        gatherer = Gatherer(index, config, print)
        data, queries = load_train(index), dev_queries(index, config)
        if data is None or queries is None:
            raise SystemExit(f"{index.path} has no train or no dev queries")
        titles = index.papers.texts("title", data.queries).to_pylist()
        ids = index.papers.ids_at(data.queries.tolist())
        is_free = held_out(others, ("dev", "test")).allowed_mask(ids, titles)
        data = data.only(np.flatnonzero(is_free))
        _write(files[0], gatherer.train(data, no_progress))
        _write(files[1], gatherer.whole(queries, no_progress))
    train, dev = map(_read, files)
    return train, dev


def _write(file: Path, examples: RankerExamples) -> None:
    arrays = {one.name: getattr(examples, one.name) for one in fields(RankerExamples)}
    np.savez(file, names=np.array(NAMES), **arrays)


def _read(file: Path) -> RankerExamples:
    """Read examples; features that are not in the file are missing."""
    with np.load(file) as arrays:
        names = arrays["names"].tolist()
        saved = arrays["matrix"]
        matrix = np.full((len(saved), len(NAMES)), np.nan, np.float32)
        for column, name in enumerate(NAMES):
            if name in names:
                matrix[:, column] = saved[:, names.index(name)]
        rest = {one.name: arrays[one.name] for one in fields(RankerExamples)[1:]}
    return RankerExamples(matrix, **rest)


def measured(
    train: RankerExamples,
    validation: RankerExamples,
    left_out: RankerExamples,
    features: Sequence[str],
    config: RankerTraining,
) -> Measures:
    """Return the measures of each left-out query, the mean over models of several seeds."""
    ends = np.cumsum(left_out.sizes)[:-1]
    runs: list[list[tuple[float, float]]] = []
    for seed in SEEDS:
        settings = RankerTraining(
            **{**config.to_json(), "seed": seed}  # pyright: ignore[reportArgumentType]
        )
        scores = fit(train, validation, features, settings).scores(left_out.matrix)
        each = zip(
            np.split(scores, ends), np.split(left_out.cited, ends), left_out.gold, strict=True
        )
        runs.append([f1_and_reciprocal_rank(s, c, int(g)) for s, c, g in each])
    return np.mean(runs, axis=0)


if __name__ == "__main__":
    main()
