"""Write into the card of the default ranker its measures on test queries, and those of rankers without the corpus.

    python experiments/ranker/card.py

The figures are those of the rows of this folder and of ../dense; run these before. The card of the training names
indexes by their folders, such as `vis.minilm`; afterwards it names their corpora.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from citerec.files.atomic import building
from citerec.files.checksums import CARD, TRAINING, seal_model
from citerec.rank.ltr import DEFAULT

RESULTS = Path(__file__).resolve().parent.parent / "results"
HEADING = "## On test queries"
NEXT = "## Probabilities"
ROWS = {
    "BM25": "bm25/{}",
    "vectors": "dense/{}_dense",
    "RRF": "dense/{}_rrf",
    "this model": "ranker/{}_ranker",
    "without citation counts and age": "ranker/{}_ranker-no-popularity",
    "without authors": "ranker/{}_ranker-no-authors",
    "trained in the same way without the corpus": "ranker/{}_left-out",
}
CORPORA = ("vis", "biomed", "acm_vis", "labour", "ecology")


def main() -> None:
    """Write the card of the package's ranker."""
    write(DEFAULT)


def write(folder: Path) -> None:
    """Replace the section, and the names of indexes by those of their corpora."""
    training: dict[str, Any] = json.loads((folder / TRAINING).read_bytes())
    with building(folder) as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        card = copy / CARD
        before, after = card.read_text(encoding="utf-8").split(NEXT)
        text = before.split(HEADING)[0] + _section() + NEXT + after
        names = [str(index["name"]) for index in training["indexes"]]
        card.write_text(with_corpora(text, names), encoding="utf-8")
        seal_model(copy)


def with_corpora(card: str, indexes: Iterable[str]) -> str:
    """Return a card that names each index by its corpus: `vis` in place of `vis.minilm`."""
    for index in indexes:
        card = card.replace(index, index.partition(".")[0])
    return card.replace("| index |", "| corpus |")


def _section() -> str:
    lines = [
        HEADING,
        "",
        "F1@20 / MRR / R@1000, date-strict; the citations of train papers are known; vectors of MiniLM, untrained.",
        "`acm_vis` contains `vis`: the model of their last row was trained without both and without the corpus made",
        "from `vis`; that of `biomed` without `biomed` and the corpus made from it.",
        "",
        f"| | {' | '.join(CORPORA)} |",
        f"| --- |{' --- |' * len(CORPORA)}",
    ]
    lines += [
        f"| {what} | {' | '.join(_figures(file.format(corpus)) for corpus in CORPORA)} |"
        for what, file in ROWS.items()
    ]
    return "\n".join(lines) + "\n\n"


def _figures(row: str) -> str:
    file = RESULTS / f"{row}.json"
    if not file.is_file():
        return "–"
    metrics: dict[str, Any] = json.loads(file.read_bytes())["metrics"]
    return " / ".join(
        f"{metrics[name]:.3f}" for name in ("f1@20", "mrr", "recall@1000")
    )


if __name__ == "__main__":
    main()
