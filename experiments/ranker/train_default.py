"""Train the ranker of all corpora, and one without each corpus, on examples that are gathered once.

    python experiments/ranker/train_default.py indexes/vis.minilm indexes/biomed.minilm indexes/ecology.minilm \\
        --examples indexes/ranker_examples --left-out indexes/left_out --output citerec/rank/default

Indexes that share papers are left out together. With `--rerankers` the rankers read a cross-encoder: the indexes are
in two halves (`--second` names the other one), and a cross-encoder that was trained on one half scores the queries of
the other half, so it has seen none of the queries that the ranker learns from. Which candidates it scores is decided by
a ranker of the other half that reads no cross-encoder.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.rank.features import NAMES
from citerec.rank.ltr import Variant
from citerec.rerank.reranker import NAME as RERANK
from citerec.toml import read_toml
from citerec.train.ranker.boost import Trees, fit
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples
from citerec.train.ranker.gather import KeptExamples, MatrixScores
from citerec.train.ranker.models import IndexModels
from citerec.train.ranker.train import gather_examples, train_on
from citerec.train.ranker.variants import IndexExamples
from citerec.train.workspace import Workspace

SETTINGS = Path(__file__).parent / "trainings" / "default.toml"
SHARED = 0.1  # of the papers of the smaller index; from here on two indexes are left out together


def main() -> None:
    """Gather what is missing, and train."""
    options = _options()
    start_jvm(None)
    halves = [[open_index(path) for path in paths] for paths in (options.indexes, options.second)]
    apart = [open_index(path) for path in options.apart]
    everything = [*halves[0], *halves[1], *apart]
    config = RankerTraining.of(read_toml(options.config))
    examples: list[IndexExamples] = []
    for half, other, reranker in zip(halves, halves[::-1], options.rerankers[::-1], strict=True):
        order = first_order(other, everything, config, options.examples) if reranker else None
        examples += [
            gathered(index, reranker, everything, config, options.examples, order) for index in half
        ]
    if options.output:
        train(examples, options.output, config)
    if options.left_out:
        train_left_out(examples, options.left_out, config)


def train(
    examples: Sequence[IndexExamples],
    output: Path,
    config: RankerTraining,
    variants: Sequence[Variant] = tuple(Variant),
) -> None:
    """Train a ranker on the examples of some indexes; an existing one is replaced."""
    if any(one.reranker for one in examples):
        names = [Path(one.reranker).name if one.reranker else "none" for one in examples]
        config = RankerTraining.of({**config.to_json(), "reranker": names})
    train_on(examples, output, config, print, variants=variants)


def train_left_out(examples: Sequence[IndexExamples], output: Path, config: RankerTraining) -> None:
    """Train a ranker of all features without each index and those that share papers with it."""
    trained: dict[tuple[str, ...], Path] = {}  # by the names of its indexes
    for left_out in examples:
        rest = [one for one in examples if not shares_papers(one.index, left_out.index)]
        names = tuple(one.index.manifest.name for one in rest)
        folder = output / left_out.index.manifest.name
        if names in trained:
            shutil.copytree(trained[names], folder, dirs_exist_ok=True)
        else:
            train(rest, folder, config, [Variant.FULL])
            trained[names] = folder


def first_order(
    indexes: Sequence[IndexFolder],
    everything: Sequence[IndexFolder],
    config: RankerTraining,
    folder: Path,
) -> MatrixScores:
    """Return a ranker of some indexes that reads no reranker; of those that share papers, the first counts."""
    few = RankerTraining.of({**config.to_json(), "queries": 300, "dev_queries": 100})
    parts = [
        gathered(index, None, everything, few, folder, kind="first")
        for number, index in enumerate(indexes)
        if not any(shares_papers(index, earlier) for earlier in indexes[:number])
    ]
    train = RankerExamples.joined([part.train.learnable() for part in parts])
    dev = RankerExamples.joined([part.dev for part in parts])
    trees: Trees = fit(train, dev, [name for name in NAMES if name != RERANK], few)
    return lambda matrix: trees.scores(matrix).astype(np.float32)


def gathered(
    index: IndexFolder,
    reranker: str | None,
    everything: Sequence[IndexFolder],
    config: RankerTraining,
    folder: Path,
    order: MatrixScores | None = None,
    kind: str = "examples",
) -> IndexExamples:
    """Return the examples of an index; what the folder holds is not gathered again."""
    workspace = Workspace(folder / f"{index.manifest.name}.{'reranked' if reranker else kind}")
    plan: Mapping[str, object] = {"queries": config.queries, "dev_queries": config.dev_queries}
    workspace.open(plan, resume=True, log=print)
    kept = [KeptExamples(workspace, name) for name in ("train", "dev")]
    print(f"{index.manifest.name}, reranked by {reranker}", flush=True)
    others = [other for other in everything if other is not index]
    found = gather_examples(
        index, reranker, others, config, log=print, kept=kept, first_order=order
    )
    if reranker and IndexModels.of_train_queries(index, reranker).reranker is None:
        raise SystemExit(f"{reranker} was trained on {index.manifest.name}")
    return found


def shares_papers(index: IndexFolder, other: IndexFolder) -> bool:
    """Return whether two indexes are the same, or have many papers in common."""
    ids = [{*one.papers.ids_at(range(len(one.papers)))} for one in (index, other)]
    return len(ids[0] & ids[1]) >= SHARED * min(map(len, ids))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("indexes", type=Path, nargs="+", help="the indexes, or those of one half")
    add("--second", type=Path, nargs="*", default=[], help="the indexes of the other half")
    add("--rerankers", nargs=2, default=[None, None], help="cross-encoders of the two halves")
    add("--apart", type=Path, nargs="*", default=[], help="indexes that hold out more queries")
    add("--config", type=Path, default=SETTINGS, help="the settings of the training")
    add("--examples", type=Path, required=True, help="a folder that keeps the examples")
    add("--left-out", type=Path, help="where to write the rankers without each corpus")
    add("--output", type=Path, help="where to write the ranker of all corpora")
    return parser.parse_args()


if __name__ == "__main__":
    main()
