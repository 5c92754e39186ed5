"""`citerec scidocs`."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from citerec.cli.console import ConsoleOutput, check_output, show, write_result
from citerec.cli.options import MODEL, AsFormat, FactsFormat, Index, open_named, settings_options
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.encode.spec import Fingerprint
    from citerec.folder import IndexFolder
    from citerec.lab.scidocs.ranking import Rows, Take
    from citerec.lab.scidocs.suite import Encode
    from citerec.lab.scidocs.vectors import CachedVectors, PrecomputedVectors

STORE = ".scidocs.encoding"  # folder of finished vectors during a run


@settings_options
def scidocs(
    *,
    data: Annotated[
        Path | None, typer.Option(help="The folder of the published SciDocs data.")
    ] = None,
    index: Index = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="A model: a name, a hub id or a folder; may be repeated. With --index, default is the encoder of the "
            "index. With --data, a folder of cls.jsonl, user-citation.jsonl and recomm.jsonl is read as precomputed "
            "vectors."
        ),
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Comma-separated; all by default.")] = None,
    output: Annotated[Path | None, typer.Option(help="A JSON file of all results.")] = None,
    format: AsFormat = FactsFormat.TABLE,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all samples and trainings.")] = 0,
    how: Annotated[EncodeConfig, {**MODEL, "--threads": "threads"}],
    console: ConsoleOutput,
) -> None:
    """Evaluate encoders by SciDocs: on its published data, or on tasks of the same kinds built from an index."""
    from citerec.evaluate.tables import terminal
    from citerec.lab.scidocs.from_index import evaluate, index_tasks
    from citerec.lab.scidocs.layout import check_folder
    from citerec.lab.scidocs.results import EncoderResult, as_json, results_table
    from citerec.lab.scidocs.suite import check_tasks, run_published

    names = list(dict.fromkeys(encoder or ()))
    wanted = [task.strip() for task in tasks.split(",")] if tasks else None
    store = (output.parent if output else Path()) / STORE
    check_output(output)
    if data and index:
        raise ConfigError("--data and --index are two suites; use one")
    if data and not names:
        raise ConfigError("--data needs a model: --encoder MODEL")
    results: list[EncoderResult] = []
    with console.progress() as progress:
        cached = partial(caching, store=store, console=console, progress=progress)
        if data:
            of = str(data)
            check_folder(data, check_tasks(wanted))
            for name in names:
                with encoding(name, how, console, cached) as (fingerprint, encode):
                    result = run_published(data, encode, tasks=wanted, seed=seed, progress=progress)
                results.append(EncoderResult(name, fingerprint, result))
        else:
            folder = open_named(index)
            of = folder.manifest.name
            suite = index_tasks(folder, tasks=wanted, seed=seed, progress=progress)
            for name in names or [""]:
                with vectors_of(name, folder, suite.rows, how, console, cached) as (made_by, take):
                    form = made_by.spec.form
                    result = evaluate(suite, take, form=form, seed=seed, progress=progress)
                results.append(EncoderResult(name or made_by.name, str(made_by), result))
    settings = {"tasks": wanted, "precision": how.precision.value}
    record = as_json(of, results, seed, settings, published=data is not None)
    if format is FactsFormat.JSON:
        write_result(record)
    else:
        show(terminal(results_table(results, published=data is not None)))
    if output:
        write_result(record, output)
    for each in results:
        for task, why in each.result.left_out.items():
            console.warn(f"{task} is skipped: {why}")
        counts = each.result.counts.items()
        for what, count in [(w, n) for w, n in counts if n and w.endswith("without a vector")]:
            console.warn(f"{each.encoder}: {what}: {count:,}")


@contextmanager
def encoding(
    name: str, how: EncodeConfig, console: ConsoleOutput, cached: Any
) -> "Generator[tuple[str, Encode | PrecomputedVectors]]":
    """Yield the fingerprint and the function that encodes: a model, or a folder of precomputed vectors."""
    from citerec.encode.encoder import open_encoder
    from citerec.lab.scidocs.vectors import PrecomputedVectors, has_vector_files

    if has_vector_files(Path(name)):
        yield f"vectors of {name}", PrecomputedVectors(Path(name))
        return
    model = open_encoder(name, how, log=console.log)
    with cached(model) as encode:
        yield str(model.fingerprint), encode


@contextmanager
def vectors_of(
    name: str,
    folder: "IndexFolder",
    rows: "Rows",
    how: EncodeConfig,
    console: ConsoleOutput,
    cached: Any,
) -> "Generator[tuple[Fingerprint, Take]]":
    """Yield the fingerprint of an encoder, and the function that returns its vectors of some papers.

    The vectors are those of the index if they are exact and of this encoder; otherwise the papers are encoded.
    """
    from citerec.encode.encoder import open_encoder, reopen
    from citerec.lab.scidocs.vectors import embedded_by, kept_vectors

    own, stored = embedded_by(folder), kept_vectors(folder)
    if not name and own is None:
        raise ConfigError(f"{folder.path} has no vectors; choose a model with --encoder MODEL")
    if not name and own and stored:
        yield own, stored
        return
    if name or own is None:
        model = open_encoder(name, how, base=folder.path, log=console.log)
    else:
        model = reopen(own, folder.path, how, log=console.log)
    if stored and own and model.fingerprint.key == own.key:
        yield own, stored
        return
    console.detail(f"{model.fingerprint}: {len(rows):,} papers are encoded")
    with cached(model) as encode:
        papers = folder.papers.at(rows.tolist())
        matrix = encode([papers[row] for row in rows.tolist()])
        yield model.fingerprint, lambda wanted: matrix[np.searchsorted(rows, wanted)]


@contextmanager
def caching(
    model: "Encoder", store: Path, console: ConsoleOutput, progress: Any
) -> "Generator[CachedVectors]":
    """Yield an encoder that saves its vectors until the block ends; log how to resume if it fails."""
    from citerec.lab.scidocs.vectors import CachedVectors

    encode = CachedVectors(model, store, progress)
    try:
        yield encode
    except BaseException:
        if encode.kept:
            console.log(f"vectors are saved in {store}/; run the command again to continue")
        raise
    encode.forget()
