"""Fit the calibration of the default ranker on dev queries, and write into its card how good it is on test queries.

    python experiments/ranker/calibrate.py indexes/vis.minilm indexes/biomed.minilm

The models stay as they are. Each corpus' test lists are also measured by a calibration that was fitted on the dev lists
of the others alone.
"""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from citerec.config import ExpandConfig
from citerec.folder import IndexFolder, open_index
from citerec.io import CARD, building, seal_model
from citerec.java import start_jvm
from citerec.rank.features import Group, without_groups
from citerec.rank.ltr import (
    DEFAULT,
    SPEC,
    TOP,
    Calibration,
    Ranker,
    Variant,
    open_ranker,
    write_spec,
)
from citerec.retrieve.fuse import sigmoid
from citerec.train.boost import Numbers, RankerExamples, calibrated, top_lists
from citerec.train.data import F1_DEPTH, Flags, dev_queries
from citerec.train.ranker import Gatherer
from citerec.train.settings import RankerTraining

TopList = tuple[Numbers, Flags]
BINS = 10  # of probabilities, with equally many papers
HEADING = "## Probabilities"
DISABLED = {
    "all": (),
    "without vectors": (Group.SEMANTIC,),
    "without citations": (Group.GRAPH, Group.POPULARITY),
}


@dataclass(frozen=True, slots=True)
class Reliability:
    """The agreement of probabilities and citations; all values are in [0, 1]."""

    papers: int
    cited: float  # share of the papers that are cited
    mean: float  # of the probabilities
    ece: float  # expected calibration error; 0 is best
    brier: float  # mean squared difference of probability and outcome; 0 is best


def reliability(probabilities: Numbers, cited: Flags, bins: int = BINS) -> Reliability:
    """Measure probabilities against citations, both of shape (papers,); all values are 0 without a paper.

    The expected calibration error is the mean, over bins with equally many papers, of the difference between the mean
    probability and the share of cited papers.

    Source: Naeini et al., AAAI 2015, https://doi.org/10.1609/aaai.v29i1.9602.
    """
    if not len(cited):
        return Reliability(0, 0.0, 0.0, 0.0, 0.0)
    parts = np.array_split(np.argsort(probabilities, kind="stable"), min(bins, len(cited)))
    gaps = [abs(probabilities[part].mean() - cited[part].mean()) * len(part) for part in parts]
    return Reliability(
        papers=len(cited),
        cited=float(cited.mean()),
        mean=float(probabilities.mean()),
        ece=float(sum(gaps)) / len(cited),
        brier=float(((probabilities - cited) ** 2).mean()),
    )


def main() -> None:
    """Gather the lists, fit, and write `ranker.json` and the card."""
    start_jvm(None)
    indexes = {Path(one).name.split(".")[0]: open_index(Path(one)) for one in sys.argv[1:]}
    dev = {name: whole(index, "dev") for name, index in indexes.items()}
    test = {name: whole(index, "test") for name, index in indexes.items()}
    rankers = {variant: open_ranker(DEFAULT, variant) for variant in Variant}
    lists = {v: {n: top(ranker, dev[n]) for n in dev} for v, ranker in rankers.items()}
    calibrations = {v: made for v in rankers if (made := calibrated([*lists[v].values()]))}
    rows = measured(rankers, calibrations, test, lists[Variant.FULL])
    write(DEFAULT, rankers, calibrations, section([*indexes], rows))


def measured(
    rankers: Mapping[Variant, Ranker],
    calibrations: Mapping[Variant, Calibration],
    test: Mapping[str, RankerExamples],
    of_full: Mapping[str, TopList],
) -> list[tuple[str, str, Reliability]]:
    """Return how reliable the probabilities are on the test queries of each corpus.

    Args:
        rankers: The variants.
        calibrations: Their calibrations.
        test: The candidates of the test queries, by corpus.
        of_full: The dev lists of the variant with all features, by corpus.

    Returns:
        Corpus, features and reliability of each row of the card.
    """
    full = rankers[Variant.FULL]
    rows: list[tuple[str, str, Reliability]] = []
    for name, examples in test.items():
        for label, groups in DISABLED.items():
            matrix = without_groups(examples.matrix, groups)
            scores = full.score(matrix)
            rows.append(
                (name, label, measured_at_top(calibrations[Variant.FULL], examples, scores))
            )
        if left_out := calibrated([one for other, one in of_full.items() if other != name]):
            scores = full.score(examples.matrix)
            label = "fitted without this corpus"
            rows.append((name, label, measured_at_top(left_out, examples, scores)))
    for variant in (Variant.NO_POPULARITY, Variant.NO_AUTHORS):
        for name, examples in test.items():
            scores = rankers[variant].score(examples.matrix)
            rows.append(
                (name, variant.value, measured_at_top(calibrations[variant], examples, scores))
            )
    return rows


def write(
    folder: Path,
    rankers: Mapping[Variant, Ranker],
    calibrations: Mapping[Variant, Calibration],
    text: str,
) -> None:
    """Replace the calibrations of a ranker and the section of its card at once."""
    spec = json.loads((folder / SPEC).read_bytes())
    features = {variant: ranker.features for variant, ranker in rankers.items()}
    expand = ExpandConfig(neighbours=spec["neighbours"])
    with building(folder) as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        write_spec(copy, features, expand, spec["provenance"], calibrations)
        card = copy / CARD
        before, rest = card.read_text(encoding="utf-8").split(HEADING)
        card.write_text(before + text + rest[rest.index("## ") :], encoding="utf-8")
        seal_model(copy)


def whole(index: IndexFolder, split: str) -> RankerExamples:
    """Return all candidates of all queries of a split."""
    config = RankerTraining(reranker="none")
    queries = dev_queries(index, None, config.seed, split=split)
    if queries is None:
        raise SystemExit(f"{index.path} has no {split} queries")
    return Gatherer(index, config, print).whole(queries, lambda what, done, total: None)


def top(ranker: Ranker, examples: RankerExamples) -> TopList:
    """Return the best papers of each list by a ranker."""
    return top_lists(examples, ranker.score(examples.matrix), TOP)


def measured_at_top(
    calibration: Calibration, examples: RankerExamples, scores: Numbers, top: int = F1_DEPTH
) -> Reliability:
    """Measure a calibration on the best `top` papers of each query, which users see."""
    relative, cited = top_lists(examples, scores, top)
    return reliability(
        sigmoid(calibration.scale * relative.astype(np.float64) + calibration.offset), cited
    )


def section(names: Sequence[str], rows: Sequence[tuple[str, str, Reliability]]) -> str:
    """Return the section of the card."""
    lines = [
        HEADING,
        "",
        "The probability that the draft cites a paper is sigmoid(scale * (score - mean of the list's best",
        f"{TOP} scores) + offset), fitted on the best {TOP} papers of each whole dev list of {' and '.join(names)}.",
        "The trees were not trained on these lists. On the first 20 papers of each list of the test queries:",
        "",
        "| corpus | features | papers | cited | mean probability | ECE | Brier |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {how} | {r.papers:,} | {r.cited:.1%} | {r.mean:.1%} | {r.ece:.3f} | {r.brier:.3f} |"
        for name, how, r in rows
    ]
    return "\n".join(lines) + "\n\n"


if __name__ == "__main__":
    main()
