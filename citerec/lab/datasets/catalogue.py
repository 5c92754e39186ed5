"""The datasets of the literature: origin, licence, files. Facts that no source states are None; nothing is guessed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from re import escape

from citerec.errors import ConfigError
from citerec.lab.datasets.convert import (
    ACM_FILES,
    ELIFE_FILES,
    EPMC_FILES,
    SHEET,
    VIS_FILES,
    WOS_FILES,
    Files,
    acm_vis,
    biomed,
    convert,
    vis,
    wos,
)
from citerec.lab.datasets.prepare import (
    CITEOMATIC_RULES,
    Years,
    prepare_citeomatic,
    prepare_openresearch,
)
from citerec.lab.datasets.public import Repository
from citerec.lab.scidocs.layout import LABELLED, METADATA, PROPENSITY, RANKED, SPLITS
from citerec.types import Progress

FOLDER = Path("datasets")
SOURCE = "SOURCE.json"  # the record in a fetched folder
UNSTATED = "not stated by its makers"  # shown for facts that no source gives

Prepare = Callable[[Path, Path, Progress], Mapping[str, int]]
Convert = Callable[[Sequence[Files], Path], Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFile:
    """One file of a dataset: downloaded directly, or extracted from an archive."""

    name: str  # its path in the download folder, and in the folder of `--from`
    urls: tuple[str, ...] = ()  # of the same file, tried in this order
    md5: str | None = None
    # URLs of a zip or tar file that contains it, likewise
    archive: tuple[str, ...] = ()
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
    # (file, folder, progress) -> counts; None: files are unchanged
    prepare: Prepare | None = None
    # of a public corpus, in place of `files`, which `--from` takes
    repositories: tuple[Repository, ...] = ()
    convert: Convert | None = None  # (files of each repository, folder) -> counts

    @property
    def facts(self) -> dict[str, str]:
        """The facts that `citerec datasets info` shows, by label."""
        sums = [f"{file.name}: md5 {file.md5}" for file in self.files if file.md5]
        sums += [f"{repo.name}: sha256 {repo.listing}" for repo in self.repositories]
        places = [self.url or "", *(repo.url for repo in self.repositories)]
        places = [place for place in places if place]
        return {
            "what": self.about,
            **({"protocol": self.protocol} if self.protocol else {}),
            "from": "; ".join(places) or "not published; given by path: --from FOLDER",
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


UNSTATED_TERMS = "the repository states none; texts are their publishers': for measuring, not to be passed on"


def _public(
    name: str,
    title: str,
    about: str,
    licence: str,
    citation: str,
    convert: Convert,
    *repositories: Repository,
) -> Dataset:
    """Describe a small corpus of public files, which is not published with the project; `--from` takes a ready one."""
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
        stated=tuple(f"github.com/{repository.name}" for repository in repositories),
        files=files,
        repositories=repositories,
        convert=convert,
    )


def _wos(
    name: str,
    about: str,
    repository: str,
    commit: str,
    listing: str,
    folder: str = "",
    *,
    files: str = WOS_FILES,
    bibtex_ids: bool = False,
) -> Dataset:
    """Describe a corpus of exports of Web of Science that lie in a public repository."""
    return _public(
        name,
        f"Web of Science: {about}",
        f"records of {about} with their cited references",
        UNSTATED_TERMS,
        f"github.com/{repository}",
        partial(convert, partial(wos, bibtex_ids=bibtex_ids)),
        Repository(
            name=repository,
            commit=commit,
            files=escape(folder) + files,
            listing=listing,
        ),
    )


VIS = (
    Repository(
        name="pisenberg/vispubdata",
        commit="2fb559aa4966fedd77a52392bf53bb5f4e088f0f",
        files=VIS_FILES,
        listing="7896d5a7653e2b5f2e7a57ba29314766116ae00de6f39ed0e611f7c0865ea6e0",
    ),
    Repository(
        name="john-guerra/visPubNetwork",
        commit="75a42c00f11936ee8db0e09cc793dfad3a0589f8",
        files=escape(SHEET),
        listing="2b8b451b27d6dcd1c2c52ca6afb8111769282250897c6d48b256ef8bec676868",
    ),
)

DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        OPENRESEARCH,
        _citeomatic("dblp", "computer science", Years(train=2007, dev=2008, test=2011)),
        _citeomatic("pubmed", "biomedicine", Years(train=2008, dev=2009, test=2013)),
        SCIDOCS,
        _public(
            "vis",
            "Papers of IEEE VIS",
            "visualization: conference papers from 1990 on and those of its journals, with reference lists of CrossRef",
            "code: MIT; data: not stated, abstracts are from IEEE Xplore: for measuring, not to be passed on",
            "Isenberg et al., vispubdata.org: A Metadata Collection about IEEE Visualization Publications, TVCG 2017",
            partial(convert, vis),
            *VIS,
        ),
        _public(
            "biomed",
            "Life sciences, open access",
            "articles of eLife and of EuropePMC on plants, and what they cite, mostly by its title alone",
            "CC BY 3.0, CC BY 4.0 or CC0, by article",
            "",
            partial(convert, biomed, by_query=True),
            Repository(
                name="elifesciences/elife-articles",
                commit="6c97171e3855cb82db35beea99d5ef6260212e2a",
                files=ELIFE_FILES,
                listing="edc1d752286b1a5d13e0e457506bf20d32a88fd0b461cb0743502b59ed4156df",
            ),
            Repository(
                name="petermr/tigr2ess",
                commit="9612323fd84d69053c1477e4a224f4b85d4a5f4f",
                files=EPMC_FILES,
                listing="6d20907ec3580e6a78b2b1990ad0f6034cdf3613a598c43bdb82b1891b93d4a8",
            ),
        ),
        _wos(
            "labour",
            "labour, management, sociology of work",
            "Pufan-Huang/SysRev-Collective",
            "7cd887c3fb69e906c6a8ef4f30ff7c1c2951a975",
            "433755492e5d7cb1ef9734bb3fbf835cbbf4f4f7e122bafcf9d58d4ff085fcc2",
            files=r".*\.txt",
        ),
        _wos(
            "ecology",
            "capture-recapture, ecology",
            "oliviergimenez/capture-recapture-review",
            "016436132140e07daa80256c4f64cb8712a9da59",
            "5efb545a19e24f0093d5b42f589360b6fae44b63569bdb1ca4a31ad553b10158",
        ),
        _wos(
            "electrical",
            "electrical engineering, internet of things, energy",
            "youngjour/literature_review_co-citation_graph",
            "cb9332d794d036cc703cbaed599fb22d7cb995ec",
            "9a4fefb028da2d361c021a3310f11959ff5df3e791350ed89b43dd9b01880235",
            "data/wos/",
        ),
        _wos(
            "climate",
            "climate, land use, input-output economics",
            "ecoFw/review_mrio-land",
            "738901d3d11e8e8c89c74e2151e2e9d24c22cc67",
            "be69549f74d931bff64c58b2546b75d2cefb302c071e366d61ea3fd9ac4c76a5",
            "data/wos_io/",
        ),
        _wos(
            "veterinary",
            "veterinary science, food safety",
            "TMax66/IZSLEReasearch",
            "4f9abf23d2d1a40f86fafd802409240e46dfb0ed",
            "3084e0d858088c0bf83b2dab1d57bd997a7fff104a1dcdbda86a33c7e46804ec",
        ),
        _wos(
            "mapping",
            "cartography, remote sensing",
            "CatherineCheng01/Cartography-and-Neural-Networks",
            "a3f6358753110cfce5d9080c0a9f73006dd229ef",
            "2f2d2550910248244e016ed2dc67ac2e0718e3f3ceff8fbe36380afa7cc9af73",
        ),
        _wos(
            "buildings",
            "energy, buildings",
            "globe2060org/data-availability-review2025",
            "5b16fbef6046f01875eda1da1654d5ce42877552",
            "7aeddb957f7af2ddf7ea3cff5c34488817dc6b3a4e1643a19712468fd76fb337",
        ),
        _wos(
            "scientometrics",
            "scientometrics",
            "andrelmfsantos/scientometrics",
            "b2a0b168990c183037fe5f8a158173de1b19ad0b",
            "83275660a25989409f906a57284c63a37d1fc8e5c896937fc19c1b3da1f1ae60",
            "datasets/",
        ),
        _wos(
            "plastics",
            "single-use plastics",
            "anumarythariyan-businessanalytics/single-use-plastics-bibliometric-analysis",
            "1f3a41aa8e33a1eda44ee1298304ed9a49ab5515",
            "db65fd2c896f271e1934781fb4b4b52241d5abcc16d5162fb610cfa13641afff",
            bibtex_ids=True,
        ),
        _public(
            "acm_vis",
            "Computing at large",
            "articles of the ACM and the papers of vis; these and 50 articles cite, the others are candidates",
            "repository: Unlicense; texts are their publishers': for measuring, not to be passed on",
            "Boudin, ACM-CR: A Manually Annotated Test Collection for Citation Recommendation, JCDL 2021",
            partial(convert, acm_vis),
            Repository(
                name="boudinfl/acm-cr",
                commit="0e65d68f5caae0eb902f4a3881575fd37fdb53e8",
                files=ACM_FILES,
                listing="6a33d11f4dc4be0121a6e55e4b8c8eff844d563c1fbe25074db346466acc677d",
            ),
            *VIS,
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
