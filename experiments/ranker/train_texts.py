"""Train what the default ranker reads of the body of a draft, on articles with their introductions.

    python experiments/ranker/train_texts.py indexes/biomed.minilm ../shared/data/biomed/fulltext.jsonl.gz \\
        --examples indexes/text_examples

The trees learn what the score of the default ranker lacks: without a body its lists stay as they are.
"""

import argparse
import shutil
import sys
from functools import partial
from pathlib import Path

from citerec.files.atomic import building
from citerec.files.checksums import CARD, seal_model
from citerec.index.folder import open_index
from citerec.index.java import start_jvm
from citerec.rank.ltr import DEFAULT, Variant, VariantSpec, read_spec, write_spec
from citerec.train.boost import FittedVariant, RankerExamples, fit_variant
from citerec.train.ranker import gather_examples
from citerec.train.settings import RankerTraining
from citerec.train.trainer import cached_arrays

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fulltexts import introductions

SETTINGS = Path(__file__).parent / "trainings" / "texts.toml"
HEADING = "## Drafts with their text"
NEXT = "## On test queries"


def main() -> None:
    """Gather what is missing, train, and write the model into the folder of the default ranker."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("index", type=Path, help="an index of the articles")
    parser.add_argument("texts", type=Path, help="the file of their whole texts")
    parser.add_argument(
        "--examples", type=Path, required=True, help="a folder that keeps the examples"
    )
    parser.add_argument("--output", type=Path, default=DEFAULT, help="a ranker")
    options = parser.parse_args()
    start_jvm()
    index = open_index(options.index)
    config = RankerTraining.read(SETTINGS, {})
    saved = options.examples / index.manifest.name
    saved.mkdir(parents=True, exist_ok=True)
    examples = gather_examples(
        index,
        None,
        [],
        config,
        log=print,
        bodies=introductions(options.texts),
        cached=partial(cached_arrays, saved),
    )
    fitted = fit_variant([examples], Variant.TEXTS, config)
    before = examples.dev.measures(fitted.trees.base.score(examples.dev.matrix))
    print(before, fitted.measures)
    write(options.output, fitted, examples.train, before)


def write(
    folder: Path, fitted: FittedVariant, train: RankerExamples, before: dict[str, float]
) -> None:
    """Add the model to a ranker, with a section of its card."""
    trees = fitted.trees
    file = f"{Variant.TEXTS}.txt"
    with building(folder) as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        (copy / file).write_bytes(trees.booster.model_to_string().encode())
        spec = read_spec(copy)
        variant = VariantSpec(
            file=file, features=trees.features, calibration=fitted.calibration
        )
        variants = {**spec.variants, Variant.TEXTS: variant}
        write_spec(copy, spec.replace(variants=variants))
        card = copy / CARD
        first, rest = card.read_text(encoding="utf-8").split(NEXT)
        first = first.split(HEADING)[0]
        gains = ", ".join(f"`{name}` {gain:.0%}" for name, gain in trees.gains.items())
        after = fitted.measures
        section = (
            f"{HEADING}\n\n"
            f"`{file}` is added to the score where the body of a draft was searched: {trees.rounds} trees that learned "
            f"what\nthe score lacks, on {len(train):,} train queries of biomed with their introductions. Their gains: "
            f"{gains}.\n\n"
            "| dev queries with introductions | F1@20 | MRR |\n| --- | --- | --- |\n"
            f"| without it | {before['f1@20']:.4f} | {before['mrr']:.4f} |\n"
            f"| with it | {after['f1@20']:.4f} | {after['mrr']:.4f} |\n\n"
        )
        card.write_text(first + section + NEXT + rest, encoding="utf-8")
        seal_model(copy)


if __name__ == "__main__":
    main()
