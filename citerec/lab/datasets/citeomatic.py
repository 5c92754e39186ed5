"""DBLP and PubMed: the corpora of ClusCite in Citeomatic's format, split by fixed years.

The queries are those of Citeomatic: dev and test queries cite at least 10 train papers. A dataset folder cannot
restrict gold and candidates to train papers; rows of experiments set these `RULES`. Citeomatic's code starts the
train years at 1966; here they have no start, as in its paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph
from citerec.corpus.splits import SPLITS, gold_citations
from citerec.errors import ConfigError
from citerec.lab.datasets.dataset import Counts, Dataset, DatasetItem, RemoteFile
from citerec.lab.datasets.prepare import prepare_corpus
from citerec.types import Progress

S3 = "https://s3-us-west-2.amazonaws.com/ai2-s2-research-public"
RELEASE = "citeomatic-2018-02-12"
ARCHIVE_BYTES = 75_000_000_000  # "~75G" in Citeomatic's README
MIN_GOLD = 10
RULES = f"rules = {{ min_gold = {MIN_GOLD}, train_only = true }}"  # in the TOML file of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Years:
    """The last year of each split."""

    train: int  # the following year is the first of dev
    dev: int
    test: int

    def __post_init__(self) -> None:
        if not self.train < self.dev < self.test:
            raise ConfigError(f"years must rise, got {self.train}, {self.dev}, {self.test}")


def split(
    ids: Sequence[str],
    years: npt.NDArray[np.int32],
    graph: Graph,
    *,
    ends: Years,
    min_gold: int = MIN_GOLD,
) -> dict[str, list[str]]:
    """Return the queries of each split, oldest first.

    Args:
        ids: The docid of each row.
        years: The year of each row, shape (n,).
        graph: The citation graph.
        ends: The last year of each split.
        min_gold: Train papers of no later year that a dev or test query cites at least.
    """
    is_train = years <= ends.train
    gold = gold_citations(graph, years) & is_train[graph.indices]
    answers = np.bincount(graph.citing[gold], minlength=len(ids))
    firsts = (np.iinfo(np.int32).min, ends.train + 1, ends.dev + 1)
    rows = np.argsort(years, kind="stable")
    splits: dict[str, list[str]] = {}
    for name, first, last in zip(SPLITS, firsts, (ends.train, ends.dev, ends.test), strict=True):
        selected = (
            (years >= first) & (years <= last) & (answers >= (1 if name == "train" else min_gold))
        )
        splits[name] = [ids[int(row)] for row in rows[selected[rows]]]
    return splits


def prepare(ends: Years, files: Mapping[str, Path], folder: Path, progress: Progress) -> Counts:
    """Write corpus and splits; return the counts."""
    (corpus,) = files.values()
    return prepare_corpus(
        corpus, "citeomatic", folder, partial(split, ends=ends), progress, until=ends.test
    )


def citeomatic_dataset(name: str, title: str, about: str, ends: Years) -> Dataset:
    """Describe one of the two corpora of Citeomatic's release."""
    inside = f"comparison/{name}/corpus.json"
    return Dataset(
        name=name,
        title=title,
        about=about,
        protocol=f"a row of an experiment that asks it takes {RULES}",
        release=RELEASE,
        url=f"{S3}/{RELEASE}/{inside}",
        citation=(
            "Ren et al., ClusCite, KDD 2014; in this form Bhagavatula et al., Content-Based Citation "
            "Recommendation, NAACL 2018"
        ),
        stated=(
            "place: allenai/citeomatic, get-data.sh (the folder of the first versions, the archive of the last)",
            "paths: allenai/citeomatic, citeomatic/common.py",
            "years and the least gold: allenai/citeomatic, citeomatic/corpus.py and citeomatic/training.py",
            "size of the archive, which holds models, too (about 75 GB): allenai/citeomatic, README.md",
        ),
        items=(
            DatasetItem(
                file=RemoteFile(name=f"{name}.json", urls=(f"{S3}/{RELEASE}/{inside}",)),
                archive=RemoteFile(
                    name=f"{RELEASE}.tar.gz",
                    urls=(f"{S3}/{RELEASE}.tar.gz",),
                    size=ARCHIVE_BYTES,
                ),
                member=f"{RELEASE}/{inside}",
                aliases=(f"{RELEASE}/{inside}", inside, f"{name}/corpus.json", "corpus.json"),
            ),
        ),
        prepare=partial(prepare, ends),
    )


DBLP = citeomatic_dataset(
    "dblp",
    "DBLP (ClusCite, Citeomatic's format)",
    "papers of computer science with abstracts and references",
    Years(train=2007, dev=2008, test=2011),
)
PUBMED = citeomatic_dataset(
    "pubmed",
    "PubMed (ClusCite, Citeomatic's format)",
    "papers of biomedicine with abstracts and references",
    Years(train=2008, dev=2009, test=2013),
)
