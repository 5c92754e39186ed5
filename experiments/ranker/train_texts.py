"""Train the model of the text of a draft, on articles with their introductions.

    python experiments/ranker/train_texts.py indexes/biomed.minilm ../shared/data/biomed/fulltext.jsonl.gz \\
        --examples indexes/text_examples

Its trees learn what the score of the default ranker lacks: without a text its lists stay as they are.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from citerec.index.folder import open_index
from citerec.index.java import start_jvm
from citerec.rank.features import Group
from citerec.rank.ltr import DEFAULT, TEXTS, Variant, open_ranker
from citerec.train.boost import Trees
from citerec.train.ranker import gather_examples, train_on
from citerec.train.settings import RankerTraining
from citerec.train.trainer import cached_arrays

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fulltexts import introductions

SETTINGS = Path(__file__).parent / "trainings" / "texts.toml"


def main() -> None:
    """Gather what is missing, and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("index", type=Path, help="an index of the articles")
    parser.add_argument("texts", type=Path, help="the file of their whole texts")
    parser.add_argument(
        "--examples", type=Path, required=True, help="a folder that keeps the examples"
    )
    parser.add_argument("--output", type=Path, default=TEXTS)
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
    base = Trees(open_ranker(DEFAULT).model)
    score = base.scores(examples.dev.matrix)
    print("dev, without the text:", examples.dev.measures(score))
    train_on(
        [examples],
        options.output,
        config,
        print,
        [Variant.FULL],
        base=base,
        group=Group.BODY,
    )


if __name__ == "__main__":
    main()
