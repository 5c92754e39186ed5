"""`citerec scidocs`."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, check_output, show, write_result
from citerec.cli.options import MODEL, AsFormat, FactsFormat, Index, settings_options
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.encode.spec import Fingerprint
    from citerec.folder import IndexFolder
    from citerec.lab.scidocs.ranking import Rows, Take
    from citerec.lab.scidocs.results import EncoderResult
    from citerec.lab.scidocs.suite import Encode
    from citerec.lab.scidocs.vectors import CachedVectors, PrecomputedVectors
    from citerec.types import Paper, Progress

STORE = ".scidocs.encoding"  # folder of finished vectors during a run


@dataclass(frozen=True, slots=True, kw_only=True)
class _SuiteOptions:
    """The options that apply to every encoder."""

    tasks: list[str] | None
    map: Path | None
    seed: int
    store: Path
    how: EncodeConfig


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
    map: Annotated[
        Path | None,
        typer.Option(help="Draw a map of papers by topic (MAG's, or venues): PNG, SVG or PDF."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all samples and trainings.")] = 0,
    how: Annotated[EncodeConfig, {**MODEL, "--threads": "threads"}],
    console: ConsoleOutput,
) -> None:
    """Evaluate encoders by SciDocs: on its published data, or on tasks of the same kinds built from an index."""
    from citerec.evaluate.tables import terminal
    from citerec.lab.scidocs.results import as_json, results_table
    from citerec.lab.scidocs.topics import check_picture

    names = list(dict.fromkeys(encoder or ()))
    check_output(output)
    if map:
        check_picture(map)
        check_output(map)
    if map and len(names) > 1:
        raise ConfigError("--map draws the papers of one encoder; give one --encoder only")
    if data and index:
        raise ConfigError("--data and --index are two suites; use one")
    if data and not names:
        raise ConfigError("--data needs a model: --encoder MODEL")
    options = _SuiteOptions(
        tasks=[task.strip() for task in tasks.split(",")] if tasks else None,
        map=map,
        seed=seed,
        store=(output.parent if output else Path()) / STORE,
        how=how,
    )
    of, results = (
        _run_on_data(data, names, options, console)
        if data
        else _run_on_index(index, names, options, console)
    )
    settings = {"tasks": options.tasks, "precision": options.how.precision.value}
    record = as_json(of, results, seed, settings, published=data is not None)
    if format is FactsFormat.JSON:
        write_result(record)
    else:
        show(terminal(results_table(results, published=data is not None)))
    if output:
        write_result(record, output)
    for each in results:
        _report_details(each, options, console)


def _run_on_data(
    data: Path, names: Sequence[str], options: _SuiteOptions, console: ConsoleOutput
) -> tuple[str, list["EncoderResult"]]:
    from citerec.lab.scidocs.layout import check_folder
    from citerec.lab.scidocs.results import EncoderResult
    from citerec.lab.scidocs.suite import check_tasks, encode_of, run_published
    from citerec.lab.scidocs.topics import try_map

    check_folder(data, [*check_tasks(options.tasks), *(["mag"] if options.map else [])])
    papers, labels = _papers_of_map(data, options, console)
    results: list[EncoderResult] = []
    for name in names:
        with (
            console.progress() as progress,
            _encoding(name, options, console, progress) as (fingerprint, encode),
        ):
            of_map = (
                encode_of(encode, "mag") if papers else None
            )  # raises an error if vectors are missing
            result = run_published(
                data, encode, tasks=options.tasks, seed=options.seed, progress=progress
            )
            topics = None
            if of_map and options.map:
                vectors = of_map(papers)
                topics = try_map(vectors, labels, options.map, seed=options.seed, warn=console.warn)
        results.append(EncoderResult(name, fingerprint, result, topics))
    return str(data), results


@contextmanager
def _encoding(
    name: str, options: _SuiteOptions, console: ConsoleOutput, progress: "Progress"
) -> "Generator[tuple[str, Encode | PrecomputedVectors]]":
    """Yield the fingerprint and the function that encodes: a model, or a folder of precomputed vectors."""
    from citerec.encode.encoder import open_encoder
    from citerec.lab.scidocs.vectors import PrecomputedVectors, has_vector_files

    if has_vector_files(Path(name)):
        yield f"vectors of {name}", PrecomputedVectors(Path(name))
        return
    model = open_encoder(name, options.how, log=console.log)
    with _caching(model, options.store, console, progress) as encode:
        yield str(model.fingerprint), encode


def _papers_of_map(
    data: Path, options: _SuiteOptions, console: ConsoleOutput
) -> "tuple[Sequence[Paper], Sequence[str]]":
    """Return a sample of papers and their MAG topics; empty without a map."""
    from citerec.lab.scidocs.layout import read_labels
    from citerec.lab.scidocs.suite import labelled_papers
    from citerec.lab.scidocs.topics import draw_map_sample

    if not options.map:
        return [], []
    papers, labels = labelled_papers(data, read_labels(data, "mag"))
    drawn = draw_map_sample(labels, seed=options.seed, warn=console.warn)
    return [papers[i] for i in drawn], [labels[i] for i in drawn]


def _run_on_index(
    index: Path | None, names: Sequence[str], options: _SuiteOptions, console: ConsoleOutput
) -> tuple[str, list["EncoderResult"]]:
    import numpy as np

    from citerec.folder import find_index, open_index
    from citerec.lab.scidocs.from_index import evaluate, index_tasks, venue_topics
    from citerec.lab.scidocs.results import EncoderResult
    from citerec.lab.scidocs.topics import draw_map_sample, try_map

    folder = open_index(find_index(index))
    labels = venue_topics(folder.papers) if options.map else []
    drew = draw_map_sample(labels, seed=options.seed, warn=console.warn) if options.map else []
    sample, drawn = np.array(drew, np.int32), [labels[row] for row in drew]
    results: list[EncoderResult] = []
    with console.progress() as progress:
        tasks = index_tasks(folder, tasks=options.tasks, seed=options.seed, progress=progress)
        rows = np.union1d(tasks.rows, sample)
        for name in names or [""]:
            with _vectors(name, folder, rows, options, console, progress) as (shown, made_by, take):
                result = evaluate(
                    tasks, take, form=made_by.spec.form, seed=options.seed, progress=progress
                )
                topics = None
                if drawn and options.map:
                    vectors = take(sample)
                    topics = try_map(
                        vectors, drawn, options.map, seed=options.seed, warn=console.warn
                    )
            results.append(EncoderResult(shown, str(made_by), result, topics))
    return folder.manifest.name, results


@contextmanager
def _vectors(
    name: str,
    folder: "IndexFolder",
    rows: "Rows",
    options: _SuiteOptions,
    console: ConsoleOutput,
    progress: "Progress",
) -> "Generator[tuple[str, Fingerprint, Take]]":
    """Yield the name of an encoder, its fingerprint, and the function that returns its vectors of some papers.

    The vectors are those of the index if they are exact and of this encoder; otherwise the papers are encoded.
    """
    import numpy as np

    from citerec.encode.encoder import open_encoder, reopen
    from citerec.lab.scidocs.vectors import embedded_by, kept_vectors

    own, stored = embedded_by(folder), kept_vectors(folder)
    if not name and own is None:
        raise ConfigError(f"{folder.path} has no vectors; choose a model with --encoder MODEL")
    if not name and own and stored:
        yield own.name, own, stored
        return
    if name:
        model = open_encoder(name, options.how, base=folder.path, log=console.log)
    else:
        assert own is not None
        model = reopen(own, folder.path, options.how, log=console.log)
    if stored and own and model.fingerprint.key == own.key:
        yield name, own, stored
        return
    console.detail(f"{model.fingerprint}: {len(rows):,} papers are encoded")
    with _caching(model, options.store, console, progress) as encode:
        papers = folder.papers.at(rows.tolist())
        matrix = encode([papers[row] for row in rows.tolist()])

        def take(wanted_rows: "Rows") -> Any:
            return matrix[np.searchsorted(rows, wanted_rows)]

        yield name or model.fingerprint.name, model.fingerprint, take


@contextmanager
def _caching(
    model: "Encoder", store: Path, console: ConsoleOutput, progress: "Progress"
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


def _report_details(
    results: "EncoderResult", options: _SuiteOptions, console: ConsoleOutput
) -> None:
    """Log what the table does not show: skipped tasks, missing vectors, the quality of the map."""
    result = results.result
    for task, why in result.left_out.items():
        console.warn(f"{task} is skipped: {why}")
    for what, count in result.counts.items():
        if count and what.endswith("without a vector"):
            console.warn(f"{results.encoder}: {what}: {count:,}")
    if topics := results.topics:
        figures = f"homogeneity {topics.homogeneity:.2f}, completeness {topics.completeness:.2f}"
        console.log(f"the map is {options.map}: {len(topics.clusters):,} papers, {figures}")
