"""Evaluates encoders, given by name, on the published suite or on the tasks of an index."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from citerec.encode.encoder import Encoder, open_encoder
from citerec.encode.spec import EncodeConfig, Fingerprint
from citerec.errors import ConfigError
from citerec.index.folder import IndexFolder
from citerec.index.vectors import vectors_of as opened
from citerec.lab.scidocs.from_index import evaluate, index_tasks
from citerec.lab.scidocs.layout import check_folder
from citerec.lab.scidocs.ranking import Rows, Take
from citerec.lab.scidocs.results import EncoderResult
from citerec.lab.scidocs.suite import check_tasks, run_published
from citerec.lab.scidocs.vectors import (
    CachedVectors,
    Encode,
    has_vector_files,
    vectors_in,
)
from citerec.types import Log, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How encoders are run and reported."""

    how: EncodeConfig
    cached: Callable[[Encoder], CachedVectors]
    seed: int
    progress: Progress
    log: Log


def on_published(
    data: Path, names: Sequence[str], tasks: Sequence[str] | None, run: Running
) -> list[EncoderResult]:
    """Evaluate models, or folders of precomputed vectors, on the published folder `data`."""
    check_folder(data, check_tasks(tasks))
    results: list[EncoderResult] = []
    for name in names:
        with encoding(name, run) as (fingerprint, encode):
            result = run_published(
                data, encode, tasks=tasks, seed=run.seed, progress=run.progress
            )
        results.append(EncoderResult(name, fingerprint, result))
    return results


def on_index(
    index: IndexFolder, names: Sequence[str], tasks: Sequence[str] | None, run: Running
) -> list[EncoderResult]:
    """Evaluate models, without names the encoder of the index, on tasks that are built from an index."""
    suite = index_tasks(index, tasks=tasks, seed=run.seed, progress=run.progress)
    results: list[EncoderResult] = []
    for name in names or [""]:
        with vectors_of(name, index, suite.rows, run) as (made_by, take):
            form = made_by.spec.form
            result = evaluate(
                suite, take, form=form, seed=run.seed, progress=run.progress
            )
        results.append(EncoderResult(name or made_by.name, str(made_by), result))
    return results


@contextmanager
def encoding(name: str, run: Running) -> Generator[tuple[str, Callable[[str], Encode]]]:
    """Yield the fingerprint, and what encodes for a task: a model, or a folder of precomputed vectors."""
    if has_vector_files(Path(name)):
        yield f"vectors of {name}", partial(vectors_in, Path(name))
        return
    model = open_encoder(name, run.how, log=run.log)
    with run.cached(model) as encode:
        yield str(model.fingerprint), lambda _: encode


@contextmanager
def vectors_of(
    name: str, index: IndexFolder, rows: Rows, run: Running
) -> Generator[tuple[Fingerprint, Take]]:
    """Yield the fingerprint of an encoder, and the function that returns its vectors of some papers.

    The vectors are those of the index if they are of this encoder; otherwise the papers are encoded.
    """
    if not name and not index.is_embedded:
        raise ConfigError(
            f"{index.path} has no vectors; choose a model with --encoder MODEL"
        )
    model = open_encoder(name, run.how, base=index.path, log=run.log) if name else None
    if model is None or (
        index.is_embedded and model.fingerprint.key == index.encoder.key
    ):
        yield index.encoder, opened(index).vectors
        return
    with run.cached(model) as encode:
        papers = index.papers.at(rows.tolist())
        matrix = encode([papers[row] for row in rows.tolist()])
        yield model.fingerprint, lambda wanted: matrix[np.searchsorted(rows, wanted)]
