"""The known datasets and their folders."""

from collections.abc import Mapping
from pathlib import Path

from citerec.errors import ConfigError
from citerec.lab.datasets.citeomatic import DBLP, PUBMED
from citerec.lab.datasets.dataset import Dataset
from citerec.lab.datasets.local import ACM_VIS, BIOMED, VIS
from citerec.lab.datasets.openresearch import OPENRESEARCH
from citerec.lab.datasets.record import NAME
from citerec.lab.datasets.scidocs import SCIDOCS

FOLDER = Path("datasets")

DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset for dataset in (OPENRESEARCH, DBLP, PUBMED, SCIDOCS, VIS, BIOMED, ACM_VIS)
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
    return (where(name) / NAME).is_file()
