"""Train the model for lists where no citation is known, on corpora whose citations are hidden.

    python experiments/ranker/train_library.py indexes/*.minilm --examples indexes/library_examples

Its few trees are added to the fused order of the first stage. Half of its lists are without authors and venue, too.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from citerec.index.folder import IndexFolder, open_index
from citerec.index.java import start_jvm
from citerec.rank.ltr import LIBRARY, Linear, Variant
from citerec.rules.held_out import held_out
from citerec.train.boost import IndexExamples, RankerExamples
from citerec.train.data import LabelledQueries, dev_queries, load_training_data
from citerec.train.ranker import NEGATIVES, Gatherer, sampled, train_on
from citerec.train.settings import RankerTraining
from citerec.train.trainer import Arrays, cached_arrays

SETTINGS = Path(__file__).parent / "trainings" / "library.toml"
# times 1 / (60 + rank) by each retriever; the best paper of both is .08 above the second
FUSED = Linear({"bm25_rank": 150, "dense_rank": 150})
EVER = 10_000  # years of unknown citations


def main() -> None:
    """Gather what is missing, and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="+", help="the indexes")
    parser.add_argument(
        "--examples", type=Path, required=True, help="a folder that keeps the examples"
    )
    parser.add_argument("--output", type=Path, default=LIBRARY)
    options = parser.parse_args()
    start_jvm()
    indexes = [open_index(path) for path in options.indexes]
    config = RankerTraining.read(SETTINGS, {})
    examples = [examples_of(i, indexes, config, options.examples) for i in indexes]
    train_on(examples, options.output, config, print, [Variant.FULL], base=FUSED)


def examples_of(
    index: IndexFolder,
    indexes: Sequence[IndexFolder],
    config: RankerTraining,
    folder: Path,
) -> IndexExamples:
    """Return the examples of one index; what the folder holds is not gathered again."""
    print(index.manifest.name, flush=True)
    saved = folder / index.manifest.name
    saved.mkdir(parents=True, exist_ok=True)
    others = [other for other in indexes if other is not index]
    gatherer = Gatherer(index, config, print)
    rng = np.random.default_rng(config.seed)

    def train() -> Arrays:
        data = load_training_data(index)
        titles = index.papers.texts("title", data.queries).to_pylist()
        ids = index.papers.ids_at(data.queries.tolist())
        free = held_out(others, ("dev", "test")).allowed_mask(ids, titles)
        chosen = rng.permutation(np.flatnonzero(free))[: config.queries]
        queries = data.only(np.sort(chosen)).labelled()
        is_bare = rng.random(len(queries)) < 0.5
        parts = [
            sampled(*part, NEGATIVES, rng)
            for bare in (False, True)
            for part in gatherer.gathered(
                bared(queries.at(np.flatnonzero(is_bare == bare).tolist()), bare), EVER
            )
        ]
        return RankerExamples.joined(parts).arrays

    def dev() -> Arrays:
        held = held_out(others, ("test",))
        queries = dev_queries(index, config.dev_queries, config.seed, held=held)
        lists = gatherer.gathered(bared(queries), EVER) if queries else ()
        parts = [
            RankerExamples.one(matrix, cited, gold) for matrix, cited, gold in lists
        ]
        return RankerExamples.joined(parts).arrays

    made = [
        RankerExamples(**cached_arrays(saved, name, make))
        for name, make in (("train", train), ("dev", dev))
    ]
    return IndexExamples(index, *made, dev_teaches=False)


def bared(queries: LabelledQueries, bare: bool = True) -> LabelledQueries:
    """Return queries without authors and venue."""
    if not bare:
        return queries
    texts = [replace(query, authors=(), venue="") for query in queries.queries]
    return replace(queries, queries=texts)


if __name__ == "__main__":
    main()
