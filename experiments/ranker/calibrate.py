"""Fit the calibration of the default ranker on dev queries, and write into its card how good it is on test queries.

    python experiments/ranker/calibrate.py indexes/vis.minilm indexes/biomed.minilm indexes/labour.minilm

The models stay as they are. Each corpus' rows are by a calibration that was fitted without its lists. The lists are of
drafts, also without abstract or with half of their references given, and of drafts of other fields, which cite nothing.
"""

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from citerec.files.arrays import Flags, Numbers
from citerec.files.atomic import building
from citerec.files.checksums import CARD, seal_model
from citerec.index.folder import IndexFolder, open_index
from citerec.index.java import start_jvm
from citerec.rank.features import Group, without_groups
from citerec.rank.ltr import (
    DEFAULT,
    TOP,
    Calibration,
    Ranker,
    Variant,
    open_ranker,
    read_spec,
    write_spec,
)
from citerec.recommendations import UNLIKELY
from citerec.train.boost import RankerExamples, TopList, calibrated, top_lists
from citerec.train.data import F1_DEPTH, LabelledQueries, dev_queries
from citerec.train.ranker import Gatherer, with_known_half
from citerec.train.settings import RankerTraining
from citerec.types import Eligibility, no_progress

BINS = 10  # of probabilities, with equally many papers
HEADING = "## Probabilities"
QUERIES = 100  # of a corpus and split
FEW = 50  # with half of their references given, and without abstract
OTHERS = {"dev": 30, "test": 20}  # drafts of each other field
SHARED = frozenset({"vis", "acm_vis"})  # corpora with the same papers
# fields that share nothing with that of the corpus
OFF_TOPIC = {
    "vis": "labour veterinary ecology",
    "labour": "vis electrical ecology",
    "ecology": "vis labour scientometrics",
    "biomed": "vis labour electrical",
    "electrical": "veterinary ecology labour",
    "climate": "vis biomed scientometrics",
    "veterinary": "vis electrical scientometrics",
    "mapping": "labour veterinary biomed",
    "buildings": "vis veterinary scientometrics",
    "scientometrics": "veterinary electrical climate",
    "plastics": "vis labour scientometrics",
    "acm_vis": "veterinary ecology climate",
}
DISABLED = {
    "without vectors": (Group.SEMANTIC,),
    "without citations": (Group.GRAPH, Group.POPULARITY),
}
FULL = str(Variant.FULL)
# Where the fit starts; the penalty is so weak that nothing of it remains.
START = Calibration(
    scale=1, offset=-3, weights={"coverage": 10, "references": 0.5, "known": -0.5}
)
WEAK = 1e-3

# by split and kind of draft, by what ranks, by depth
Lists = Mapping[tuple[str, str], Mapping[str, Mapping[int, TopList]]]


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
    parts = np.array_split(
        np.argsort(probabilities, kind="stable"), min(bins, len(cited))
    )
    gaps = [
        abs(probabilities[part].mean() - cited[part].mean()) * len(part)
        for part in parts
    ]
    return Reliability(
        papers=len(cited),
        cited=float(cited.mean()),
        mean=float(probabilities.mean()),
        ece=float(sum(gaps)) / len(cited),
        brier=float(((probabilities - cited) ** 2).mean()),
    )


def main() -> None:
    """Gather the lists, fit, and write `ranker.json` and the card."""
    start_jvm()
    indexes = {
        Path(one).name.split(".")[0]: open_index(Path(one)) for one in sys.argv[1:]
    }
    rankers = {variant: open_ranker(DEFAULT, variant) for variant in Variant}
    lists = {name: gathered(name, indexes, rankers) for name in indexes}
    calibrations = {v: fitted(lists.values(), str(v)) for v in rankers}
    write(DEFAULT, rankers, calibrations, section(lists))


def gathered(
    name: str, indexes: Mapping[str, IndexFolder], rankers: Mapping[Variant, Ranker]
) -> Lists:
    """Return the best papers of all lists of a corpus, by each variant, and by the first with disabled features."""
    gatherer = Gatherer(indexes[name], RankerTraining(reranker="none"), print)
    lists: dict[tuple[str, str], dict[str, dict[int, TopList]]] = {}
    for split, (kind, drafts) in product(OTHERS, drafts_of(name, indexes)):
        if batch := drafts(split):
            examples = gatherer.whole(batch, no_progress)
            tables = {
                str(v): (ranker, examples.matrix) for v, ranker in rankers.items()
            }
            for how, groups in DISABLED.items():
                matrix = without_groups(examples.matrix, groups)
                tables[how] = rankers[Variant.FULL], matrix
            lists[split, kind] = {
                how: best(replace(examples, matrix=matrix), ranker)
                for how, (ranker, matrix) in tables.items()
            }
    print(name, flush=True)
    return lists


def drafts_of(
    name: str, indexes: Mapping[str, IndexFolder]
) -> list[tuple[str, Callable[[str], LabelledQueries | None]]]:
    """Return the kinds of drafts for a corpus, and what makes those of a split; None if it has none."""
    index, latest = indexes[name], int(indexes[name].papers.years.max())

    def draft(split: str, most: int = QUERIES) -> LabelledQueries | None:
        return dev_queries(index, most, 0, split=split)

    def known(split: str) -> LabelledQueries | None:
        queries = draft(split, FEW)
        return queries and with_known_half(queries, 1, np.random.default_rng(0))

    def title(split: str) -> LabelledQueries | None:
        queries = draft(split, FEW)
        return queries and replace(
            queries, queries=[replace(one, abstract="") for one in queries.queries]
        )

    def stranger(other: str, split: str) -> LabelledQueries | None:
        queries = dev_queries(indexes[other], OTHERS[split], 0, split=split)
        return queries and strangers(queries, latest)

    others = [one for one in OFF_TOPIC.get(name, "").split() if one in indexes]
    return [
        *((one.__name__, one) for one in (draft, known, title)),
        *((other, partial(stranger, other)) for other in others),
    ]


def best(examples: RankerExamples, ranker: Ranker) -> dict[int, TopList]:
    """Return the papers of the depths that are fitted, measured and checked."""
    scores = ranker.score(examples.matrix).astype(np.float64)
    return {top: top_lists(examples, scores, top) for top in (TOP, F1_DEPTH, 1)}


def strangers(queries: LabelledQueries, year: int) -> LabelledQueries:
    """Return drafts of another field: new ones, that cite no paper of the corpus."""
    drafts = [replace(one, id=f"other:{one.id}", year=year) for one in queries.queries]
    gold = [one[:0] for one in queries.gold]
    return LabelledQueries(
        drafts, [Eligibility(year)] * len(drafts), [()] * len(drafts), gold=gold
    )


def fitted(corpora: Iterable[Lists], how: str) -> Calibration:
    """Fit a calibration to the dev lists of some corpora."""
    lists = [
        of[how][TOP]
        for lists in corpora
        for (split, _), of in lists.items()
        if split == "dev"
    ]
    if (made := calibrated(lists, START, WEAK)) is None:
        raise SystemExit("no dev query cites a paper of its list")
    return made


def write(
    folder: Path,
    rankers: Mapping[Variant, Ranker],
    calibrations: Mapping[Variant, Calibration],
    text: str,
) -> None:
    """Replace the calibrations of a ranker and the section of its card at once."""
    spec = read_spec(folder)
    variants = {
        v: spec.variants[v].replace(calibration=calibrations.get(v)) for v in rankers
    }
    with building(folder) as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        write_spec(copy, spec.replace(variants=variants))
        card = copy / CARD
        before, rest = card.read_text(encoding="utf-8").split(HEADING)
        card.write_text(before + text + rest[rest.index("## ") :], encoding="utf-8")
        seal_model(copy)


def section(lists: Mapping[str, Lists]) -> str:
    """Return the section of the card: for each corpus how good a calibration of the others is."""
    lines = [
        HEADING,
        "",
        "sigmoid(scale * score + offset + sum of weight * value), fitted on the best",
        f"{TOP} papers of dev lists that the trees did not see: drafts, also with half of their references given",
        "or without abstract, and drafts of other fields, which cite nothing. On the first 20 papers of test lists,",
        "each row by a calibration of the other corpora. Notices: lists whose best paper has at most 5 %, of drafts of",
        "other fields and of the corpus' own.",
        "",
        "| corpus | cited | mean probability | ECE | Brier | ECE: half given | title alone "
        "| no vectors | no citations | other fields: best paper | notices | notices of its own |",
        "| --- |" + " --- |" * 11,
    ]
    table: list[list[float]] = []
    for name, of in lists.items():
        out = SHARED if name in SHARED else {name}
        rest = [one for other, one in lists.items() if other not in out]
        calibration = fitted(rest or [of], FULL)
        table.append(row(of, calibration))
        lines.append(f"| {name} | {cells(table[-1])} |")
    lines.append(f"| mean | {cells(np.nanmean(table, axis=0).tolist())} |")
    return "\n".join(lines) + "\n\n"


def row(of: Lists, calibration: Calibration) -> list[float]:
    """Return the measures of one corpus, in the order of the table."""

    def measure(kind: str, how: str = FULL) -> Reliability:
        scores, matrix, cited = of["test", kind][how][F1_DEPTH]
        return reliability(calibration.probabilities(scores, matrix), cited)

    def likely(kind: str) -> Numbers:
        scores, matrix, _ = of["test", kind][FULL][1]
        return calibration.probabilities(scores, matrix)

    draft, kinds = measure("draft"), [k for split, k in of if split == "test"]
    others = np.concatenate(
        [
            np.zeros(0),
            *(likely(k) for k in kinds if k not in ("draft", "known", "title")),
        ]
    )
    eces = [
        *(measure(kind).ece for kind in ("known", "title")),
        *(measure("draft", how).ece for how in DISABLED),
    ]
    alarms = [
        float((values <= UNLIKELY).mean()) for values in (others, likely("draft"))
    ]
    return [
        draft.cited,
        draft.mean,
        draft.ece,
        draft.brier,
        *eces,
        float(others.mean()),
        *alarms,
    ]


def cells(values: Sequence[float]) -> str:
    """Return the cells of one row."""
    plain = range(2, 8)
    return " | ".join(
        f"{v:.3f}" if i in plain else f"{v:.1%}" for i, v in enumerate(values)
    )


if __name__ == "__main__":
    main()
