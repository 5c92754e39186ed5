"""The datasets of the literature: origin, licence, files. Facts that no source states are None; nothing is guessed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from citerec.errors import CiterecError, ConfigError
from citerec.lab.datasets.prepare import (
    CITEOMATIC_RULES,
    Years,
    prepare_citeomatic,
    prepare_openresearch,
)
from citerec.lab.scidocs.layout import LABELLED, METADATA, PROPENSITY, RANKED, SPLITS
from citerec.types import Progress

FOLDER = Path("datasets")
SOURCE = "SOURCE.json"  # the record in a fetched folder
UNSTATED = "not stated by its makers"  # shown for facts that no source gives

Prepare = Callable[[Path, Path, Progress], Mapping[str, int]]


class DatasetError(CiterecError):
    """A dataset that is not available, or differs from its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFile:
    """One file of a dataset: downloaded directly, or extracted from an archive."""

    name: str  # its path in the download folder, and in the folder of `--from`
    urls: tuple[str, ...] = ()  # of the same file, tried in this order
    md5: str | None = None
    archive: tuple[
        str, ...
    ] = ()  # URLs of a zip or tar file that contains it, likewise
    member: str = ""  # its path in the archive
    aliases: tuple[str, ...] = ()  # alternative paths in the folder of `--from`

    @property
    def archive_name(self) -> str:
        """The file name of the archive; empty without one."""
        return Path(self.archive[0]).name if self.archive else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset."""

    name: str
    title: str
    about: str  # one sentence
    files: tuple[DatasetFile, ...]
    protocol: str = ""  # settings that an evaluation on it needs, if any
    release: str = ""  # datasets of one release share a download folder
    url: str | None = None  # None: not published, must be given with `--from`
    size: str | None = None  # of all downloads
    licence: str | None = None
    citation: str = ""
    stated: tuple[str, ...] = ()  # the sources of the facts above
    prepare: Prepare | None = (
        None  # (file, folder, progress) -> counts; None: files are unchanged
    )

    @property
    def facts(self) -> dict[str, str]:
        """The facts that `citerec datasets info` shows, by label."""
        sums = [f"{file.name}: md5 {file.md5}" for file in self.files if file.md5]
        return {
            "what": self.about,
            **({"protocol": self.protocol} if self.protocol else {}),
            "from": self.url or "not published; given by path: --from FOLDER",
            "size": self.size or UNSTATED,
            "checksum": "; ".join(sums) or UNSTATED,
            "licence": self.licence or UNSTATED,
            "citation": self.citation or UNSTATED,
            "stated in": "; ".join(self.stated),
        }


S3 = "https://s3-us-west-2.amazonaws.com/ai2-s2-research-public"
PAPERS = "papers-2017-02-21.json.gz"
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
    files=(
        DatasetFile(
            name=PAPERS,
            md5="f35c40992e94b458db73fa030a79844b",
            archive=tuple(
                f"{S3}/{folder}2017-02-21/papers-2017-02-21.zip"
                for folder in ("open-corpus/", "open-corpus-archive/", "")
            ),
            member=PAPERS,
        ),
    ),
    prepare=prepare_openresearch,
)

CITEOMATIC = "citeomatic-2018-02-12"


def _citeomatic(name: str, field: str, ends: Years) -> Dataset:
    inside = f"comparison/{name}/corpus.json"
    return Dataset(
        name=name,
        title=f"{'DBLP' if name == 'dblp' else 'PubMed'} (ClusCite, Citeomatic's format)",
        about=f"papers of {field} with abstracts and references",
        protocol=f"a row of an experiment that asks it takes {CITEOMATIC_RULES}",
        release=CITEOMATIC,
        url=f"{S3}/{CITEOMATIC}/{inside}",
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
        files=(
            DatasetFile(
                name=f"{name}.json",
                urls=(f"{S3}/{CITEOMATIC}/{inside}",),
                archive=(f"{S3}/{CITEOMATIC}.tar.gz",),
                member=f"{CITEOMATIC}/{inside}",
                aliases=(
                    f"{CITEOMATIC}/{inside}",
                    inside,
                    f"{name}/corpus.json",
                    "corpus.json",
                ),
            ),
        ),
        prepare=partial(prepare_citeomatic, ends),
    )


SCIDOCS_S3 = "https://ai2-s2-research-public.s3-us-west-2.amazonaws.com/specter/scidocs"
SCIDOCS_FILES = (
    *METADATA,
    *(f"{task}/{split}.qrel" for task in RANKED.values() for split in SPLITS[1:]),
    *(f"{task}/{split}.csv" for task in (*LABELLED, "recomm") for split in SPLITS),
    PROPENSITY,
)
SCIDOCS = Dataset(
    name="scidocs",
    title="SciDocs",
    about="seven tasks that evaluate vectors of papers: classification, ranking and recommendation",
    url=f"{SCIDOCS_S3}/",
    citation=(
        "Cohan et al., SPECTER: Document-level Representation Learning using Citation-informed "
        "Transformers, ACL 2020"
    ),
    stated=(
        "place (s3://ai2-s2-research-public/specter/scidocs/, in us-west-2): allenai/scidocs, README.md",
        "paths: allenai/scidocs, scidocs/paths.py",
        "4.6 GiB for the whole folder, with vectors of SPECTER that are not fetched here: allenai/scidocs, README.md",
    ),
    files=tuple(
        DatasetFile(name=name, urls=(f"{SCIDOCS_S3}/{name}",)) for name in SCIDOCS_FILES
    ),
)


def _local(
    name: str, title: str, about: str, licence: str | None, citation: str, *stated: str
) -> Dataset:
    """Describe a small corpus that is not published with the project; users name its folder with `--from`."""
    packed = ("corpus.jsonl", "corpus.jsonl.zst", "corpus.jsonl.bz2")
    files = (
        DatasetFile(name="corpus.jsonl.gz", aliases=packed),
        *(
            DatasetFile(name=f"splits/{split}.ids")
            for split in ("train", "dev", "test")
        ),
    )
    return Dataset(
        name=name,
        title=title,
        about=about,
        licence=licence,
        citation=citation,
        stated=stated,
        files=files,
    )


DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        OPENRESEARCH,
        _citeomatic("dblp", "computer science", Years(train=2007, dev=2008, test=2011)),
        _citeomatic("pubmed", "biomedicine", Years(train=2008, dev=2009, test=2013)),
        SCIDOCS,
        _local(
            "vis",
            "Papers of IEEE VIS",
            "visualization: conference papers from 1990 on and those of its journals, with reference lists of CrossRef",
            None,
            "Isenberg et al., vispubdata.org: A Metadata Collection about IEEE Visualization Publications, TVCG 2017",
            "github.com/pisenberg/vispubdata",
            "github.com/john-guerra/visPubNetwork",
        ),
        _local(
            "biomed",
            "Life sciences, open access",
            "articles of eLife and of EuropePMC on plants, and what they cite, mostly by its title alone",
            "CC BY 3.0, CC BY 4.0 or CC0, by article",
            "",
            "github.com/elifesciences/elife-articles",
            "github.com/petermr/tigr2ess",
        ),
        _local(
            "acm_vis",
            "Computing at large",
            "papers of ACM-CR and of vis; the latter and 50 others cite, the rest are candidates",
            None,
            "",
            "github.com/boudinfl/acm-cr",
            "and those of vis",
        ),
    )
}


def find_dataset(name: str) -> Dataset:
    """Return the dataset with a name.

    Raises:
        ConfigError: If there is none.
    """
    if name not in DATASETS:
        raise ConfigError(f"no dataset {name!r}; choose from {', '.join(DATASETS)}")
    return DATASETS[name]


def where(name: str) -> Path:
    """Return the default folder of a dataset: `datasets/<name>` under the working folder."""
    return FOLDER / find_dataset(name).name


def is_fetched(name: str) -> bool:
    """Return whether a dataset is in its default folder; the folder is created complete, with its record."""
    return (where(name) / SOURCE).is_file()
