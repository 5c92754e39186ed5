"""Train the ranker of all corpora, and one without each corpus, on examples that are gathered once.

    python experiments/ranker/train_default.py indexes/vis.minilm indexes/biomed.minilm indexes/ecology.minilm \\
        --examples indexes/ranker_examples --left-out indexes/left_out --output citerec/rank/default

Indexes that share papers are left out together.
"""

import argparse
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from citerec.index.folder import IndexFolder, open_index
from citerec.index.java import start_jvm
from citerec.rank.ltr import Variant
from citerec.train.boost import IndexExamples
from citerec.train.ranker import gather_examples, train_on
from citerec.train.settings import RankerTraining
from citerec.train.trainer import cached_arrays

SETTINGS = Path(__file__).parent / "trainings" / "default.toml"
SHARED = 0.1  # of the papers of the smaller index; from here on two indexes are left out together


def main() -> None:
    """Gather what is missing, and train."""
    options = _options()
    start_jvm()
    indexes = [open_index(path) for path in options.indexes]
    everything = [*indexes, *(open_index(path) for path in options.held_out)]
    config = RankerTraining.read(options.config, {})
    examples = [
        gathered(index, everything, config, options.examples) for index in indexes
    ]
    if options.output:
        train_on(examples, options.output, config, print)
    if options.left_out:
        train_left_out(examples, options.left_out, config)


def train_left_out(
    examples: Sequence[IndexExamples], output: Path, config: RankerTraining
) -> None:
    """Train a ranker of all features without each index and those that share papers with it."""
    trained: dict[tuple[str, ...], Path] = {}  # by the names of its indexes
    for left_out in examples:
        rest = [one for one in examples if not shares_papers(one.index, left_out.index)]
        names = tuple(one.index.manifest.name for one in rest)
        folder = output / left_out.index.manifest.name
        if names in trained:
            shutil.copytree(trained[names], folder, dirs_exist_ok=True)
        else:
            train_on(rest, folder, config, print, [Variant.FULL])
            trained[names] = folder


def gathered(
    index: IndexFolder,
    everything: Sequence[IndexFolder],
    config: RankerTraining,
    folder: Path,
) -> IndexExamples:
    """Return the examples of an index; what the folder holds is not gathered again."""
    saved = folder / index.manifest.name
    saved.mkdir(parents=True, exist_ok=True)
    print(index.manifest.name, flush=True)
    others = [other for other in everything if other is not index]
    return gather_examples(
        index, None, others, config, log=print, cached=partial(cached_arrays, saved)
    )


def shares_papers(index: IndexFolder, other: IndexFolder) -> bool:
    """Return whether two indexes are the same, or have many papers in common."""
    ids = [{*one.papers.ids_at(range(len(one.papers)))} for one in (index, other)]
    return len(ids[0] & ids[1]) >= SHARED * min(map(len, ids))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("indexes", type=Path, nargs="+", help="the indexes")
    add(
        "--held-out",
        type=Path,
        nargs="*",
        default=[],
        help="indexes that hold out more queries",
    )
    add("--config", type=Path, default=SETTINGS, help="the settings of the training")
    add("--examples", type=Path, required=True, help="a folder that keeps the examples")
    add("--left-out", type=Path, help="where to write the rankers without each corpus")
    add("--output", type=Path, help="where to write the ranker of all corpora")
    return parser.parse_args()


if __name__ == "__main__":
    main()
