"""Write into the card of the ranker that comes along how it does on test queries, and where it has not seen the corpus.

    python experiments/ranker/card.py

The figures are those of the rows of ../models, ../bm25 and ../dense; run these before.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from citerec.manifest import seal_model
from citerec.rank.ranker import DEFAULT

RESULTS = Path(__file__).resolve().parent.parent / "results"
HEADING = "## On test queries"
NEXT = "## Probabilities"
ROWS = {  # the first file that there is
    "BM25": ("bm25/{}", "models/{}_1_bm25"),
    "RRF of BM25 and vectors": ("dense/{}_rrf", "models/{}_2_rrf"),
    "RRF, reranked by the default cross-encoder": ("models/{}_3_reranker",),
    "this ranker": ("models/{}_4_ranker",),
    "this ranker and the default cross-encoder": ("models/{}_5_all",),
    "a ranker that has not seen the corpus": ("models/{}_6_left-out_ranker",),
    "ranker and cross-encoder that have not seen the corpus": ("models/{}_7_left-out_all",),
}
CORPORA = ("vis", "acm_vis", "biomed", "labour", "ecology")


def main() -> None:
    """Put the section where it belongs, or anew, and seal the folder again."""
    card = DEFAULT / "README.md"
    text = card.read_text(encoding="utf-8")
    before, after = text.split(NEXT)
    card.write_text(before.split(HEADING)[0] + _section() + NEXT + after, encoding="utf-8")
    seal_model(DEFAULT)


def _section() -> str:
    lines = [
        HEADING,
        "",
        "F1@20 / MRR, date-strict; the citations of train papers are known; vectors of MiniLM. `acm_vis` contains",
        "`vis`: models that have not seen one of them have seen neither.",
        "",
        f"| | {' | '.join(CORPORA)} |",
        f"| --- |{' --- |' * len(CORPORA)}",
    ]
    lines += [
        f"| {what} | {' | '.join(_figures(files, corpus) for corpus in CORPORA)} |"
        for what, files in ROWS.items()
    ]
    return "\n".join(lines) + "\n\n"


def _figures(files: Sequence[str], corpus: str) -> str:
    places = (RESULTS / f"{file.format(corpus)}.json" for file in files)
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return "–"
    metrics: dict[str, Any] = json.loads(file.read_bytes())["metrics"]
    return " / ".join(f"{metrics[name]:.3f}" for name in ("f1@20", "mrr"))


if __name__ == "__main__":
    main()
