"""Finds what a row needs and this machine does not have: a corpus, a model, a file, a GPU."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from citerec.encode.source import HUB_ID, is_name
from citerec.inputs import reading
from citerec.lab.datasets.catalogue import FOLDER as DATASETS
from citerec.lab.datasets.record import read_record
from citerec.lab.experiment.kind import Needs
from citerec.lab.experiment.row import Experiment
from citerec.machine import gpus
from citerec.toml import read_toml

FILES = {
    ".json",
    ".gz",
    ".zst",
    ".bz2",
    ".txt",
    ".vec",
}  # suffixes of files that the settings of a training may name


def missing(experiment: Experiment) -> str:
    """Return what a row needs and is missing; empty if the row can be run.

    An unreadable file is reported by the code that reads it.
    """
    for path in map(Path, experiment.corpora):
        if not _is_there(path):
            fetched = path.parent == DATASETS
            advice = f"; fetch it: citerec datasets fetch {path.name}" if fetched else ""
            return f"{path} is missing{advice}"
    for name, by in _named(experiment):
        if not _is_there(Path(name)):
            return f"{name}, named in {by}, is missing"
    if experiment.needs is Needs.GPU and not gpus():
        return "it needs a GPU"
    return _not_apart(experiment)


def _is_there(path: Path) -> bool:
    with reading(path):
        return path.exists()


def _named(experiment: Experiment) -> Iterator[tuple[str, Path]]:
    """Yield the local models and files that a row and its training settings name, and the naming file."""
    for name in (experiment.encoder, experiment.reranker, experiment.ranker):
        if name and _is_local(name):
            yield name, experiment.path
    for file in (experiment.train, experiment.train_reranker, experiment.train_ranker):
        if file:
            settings = Path(file)
            yield from ((name, settings) for name in _read_by(settings))


def _read_by(settings: Path) -> Iterator[str]:
    content = read_toml(settings)
    for key in ("model", "teacher", "vectors", "counts", "sources"):
        value: Any = content.get(key)
        names = cast("list[Any]", value) if isinstance(value, list) else [value]
        yield from (name for name in names if isinstance(name, str) and _is_local(name))


def _is_local(name: str) -> bool:
    """Return whether a name is a local path: no known name, no hub id, no setting."""
    if is_name(name) or "/" not in name:
        return Path(name).suffix in FILES
    return not HUB_ID.fullmatch(name) or Path(name).suffix in FILES


def _not_apart(experiment: Experiment) -> str:
    """Return an error if the training corpus may contain test papers of the row."""
    if not experiment.apart or not experiment.trained_on:
        return ""
    corpus = Path(experiment.trained_on)
    record = read_record(corpus)
    left_out = record.without if record else {}
    if included := [name for name in experiment.apart if name not in left_out]:
        without = " ".join(f"--without {name}" for name in included)
        return (
            f"{corpus} may contain test papers of {included[0]}; drop them before it is indexed: "
            f"citerec datasets fetch {corpus.name} {without}"
        )
    return ""
