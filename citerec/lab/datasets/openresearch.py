"""Open Research Corpus of 2017-02-21: 7.2 M papers of computer science and biomedicine.

The protocol is that of the reranker paper: papers sorted by year, the oldest 80 % train, 10 % dev, 10 % test; papers
without a year are dropped, as are queries without gold; 20,000 dev and 20,000 test queries are sampled. The sample of
the authors is unknown, so a fixed seed draws another one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph
from citerec.corpus.splits import split_by_year
from citerec.lab.datasets.dataset import Counts, Dataset, DatasetItem, RemoteFile
from citerec.lab.datasets.prepare import prepare_corpus
from citerec.types import Progress

S3 = "https://s3-us-west-2.amazonaws.com/ai2-s2-research-public"
PAPERS = "papers-2017-02-21.json.gz"
SAMPLE = 20_000  # queries of dev and of test
SEED = 0


def split(
    ids: Sequence[str],
    years: npt.NDArray[np.int32],
    graph: Graph,
    *,
    sample: int = SAMPLE,
    seed: int = SEED,
) -> dict[str, list[str]]:
    """Split by year as the protocol says, and sample `sample` dev and test queries each, oldest first."""
    splits = split_by_year(ids, years, graph)
    rng = np.random.default_rng(seed)
    for name in ("dev", "test"):
        queries = splits[name]
        if len(queries) > sample:
            drawn = np.sort(rng.choice(len(queries), sample, replace=False))
            splits[name] = [queries[place] for place in drawn]
    return splits


def prepare(files: Mapping[str, Path], folder: Path, progress: Progress) -> Counts:
    """Write corpus and splits; needs about 0.7 kB of memory per paper, 5 GB in total."""
    return prepare_corpus(files[PAPERS], "openresearch", folder, split, progress)


OPENRESEARCH = Dataset(
    name="openresearch",
    title="Open Research Corpus, 2017-02-21",
    about="7.2 M papers of computer science and biomedicine with abstracts and references",
    url=f"{S3}/open-corpus/2017-02-21/papers-2017-02-21.zip",
    citation="Ammar et al., Construction of the Literature Graph in Semantic Scholar, NAACL 2018",
    stated=(
        "URL: Nogueira et al. 2020, footnote 2",
        "its later places, and the md5 of what is in the zip: Anserini, docs/experiments-openresearch.md",
        "its first place: allenai/citeomatic, citeomatic/tasks.py",
    ),
    items=(
        DatasetItem(
            file=RemoteFile(name=PAPERS, md5="f35c40992e94b458db73fa030a79844b"),
            archive=RemoteFile(
                name="papers-2017-02-21.zip",
                urls=(
                    f"{S3}/open-corpus/2017-02-21/papers-2017-02-21.zip",
                    f"{S3}/open-corpus-archive/2017-02-21/papers-2017-02-21.zip",
                    f"{S3}/2017-02-21/papers-2017-02-21.zip",
                ),
            ),
            member=PAPERS,
        ),
    ),
    prepare=prepare,
)
