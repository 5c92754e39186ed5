"""`citerec scidocs`."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import (
    ConsoleOutput,
    Index,
    Quiet,
    Threads,
    Verbose,
    check_output,
    show,
    write_result,
)
from citerec.cli.encode import BackendOption, DeviceOption, PrecisionOption
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.encode.spec import Fingerprint
    from citerec.folder import IndexFolder
    from citerec.lab.scidocs.given import GivenVectors
    from citerec.lab.scidocs.ranking import Rows, Take
    from citerec.lab.scidocs.record import EncoderResult
    from citerec.lab.scidocs.suite import Encode
    from citerec.lab.scidocs.vectors import CachedVectors
    from citerec.types import Paper, Progress

SHOWN = 24  # signs of an encoder's name
STORE = ".scidocs.encoding"  # where vectors lie while there are more to come


class SuiteFormat(StrEnum):
    """What comes on stdout."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SuiteOptions:
    """What is asked of each encoder."""

    tasks: list[str] | None
    map: Path | None
    seed: int
    store: Path
    how: EncodeConfig


def scidocs(
    data: Annotated[
        Path | None, typer.Option(help="The folder of the published SciDocs data: all seven tasks.")
    ] = None,
    index: Index = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="A model: a name, a hub id or a folder; may be repeated. With --index it may be left out: the "
            "index's own vectors are judged then. With --data, a folder of cls.jsonl, user-citation.jsonl and "
            "recomm.jsonl is taken as vectors that are made already."
        ),
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Comma-separated; all by default.")] = None,
    output: Annotated[Path | None, typer.Option(help="A JSON file of all figures.")] = None,
    format: Annotated[SuiteFormat, typer.Option(help="What comes on stdout.")] = SuiteFormat.TABLE,
    map: Annotated[
        Path | None,
        typer.Option(help="Draw a map of papers by topic (MAG's, or venues): PNG, SVG or PDF."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all draws and trainings.")] = 0,
    device: DeviceOption = "auto",
    precision: PrecisionOption = Precision.AUTO,
    backend: BackendOption = Backend.TORCH,
    threads: Threads = 0,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge encoders by SciDocs: on its published data, or by the same kinds of tasks built from an index."""
    from citerec.lab.scidocs.record import as_json
    from citerec.lab.scidocs.topics import check_picture

    console = ConsoleOutput(quiet, verbose)
    names = list(dict.fromkeys(encoder or ()))
    check_output(output)
    if map:
        check_picture(map)
        check_output(map)
    if map and len(names) > 1:
        raise ConfigError("--map draws the papers of one encoder; name one --encoder only")
    if data and index:
        raise ConfigError("--data and --index name two suites; give one")
    if data and not names:
        raise ConfigError("--data needs a model to judge: --encoder MODEL")
    wanted = _SuiteOptions(
        tasks=[task.strip() for task in tasks.split(",")] if tasks else None,
        map=map,
        seed=seed,
        store=(output.parent if output else Path()) / STORE,
        how=EncodeConfig(device=device, precision=precision, threads=threads, backend=backend),
    )
    of, judged = (
        _on_data(data, names, wanted, console) if data else _on_index(index, names, wanted, console)
    )
    settings = {"tasks": wanted.tasks, "precision": wanted.how.precision.value}
    record = as_json(of, judged, seed, settings, published=data is not None)
    if format is SuiteFormat.JSON:
        write_result(record)
    else:
        _show(judged, published=data is not None)
    if output:
        write_result(record, output)
    for each in judged:
        _progress(each, wanted, console)


def _on_data(
    data: Path, names: Sequence[str], wanted: _SuiteOptions, console: ConsoleOutput
) -> tuple[str, list["EncoderResult"]]:
    from citerec.lab.scidocs.layout import check_folder
    from citerec.lab.scidocs.record import EncoderResult
    from citerec.lab.scidocs.suite import check_tasks, encode_of, run_published
    from citerec.lab.scidocs.topics import try_map

    check_folder(data, [*check_tasks(wanted.tasks), *(["mag"] if wanted.map else [])])
    papers, labels = _papers_of_map(data, wanted, console)
    judged: list[EncoderResult] = []
    for name in names:
        with (
            console.progress() as progress,
            _encoding(name, wanted, console, progress) as (fingerprint, encode),
        ):
            of_map = encode_of(encode, "mag") if papers else None  # or it says what is missing
            result = run_published(
                data, encode, tasks=wanted.tasks, seed=wanted.seed, progress=progress
            )
            topics = None
            if of_map and wanted.map:
                vectors = of_map(papers)
                topics = try_map(vectors, labels, wanted.map, seed=wanted.seed, warn=console.warn)
        judged.append(EncoderResult(name, fingerprint, result, topics))
    return str(data), judged


@contextmanager
def _encoding(
    name: str, wanted: _SuiteOptions, console: ConsoleOutput, progress: "Progress"
) -> "Generator[tuple[str, Encode | GivenVectors]]":
    """Give what encodes, and its fingerprint: a model, or a folder of vectors that somebody made."""
    from citerec.encode.encoder import open_encoder
    from citerec.lab.scidocs.given import GivenVectors, is_given

    if is_given(Path(name)):
        yield f"vectors of {name}", GivenVectors(Path(name))
        return
    model = open_encoder(name, wanted.how, log=console.log)
    with _going_on(model, wanted.store, console, progress) as encode:
        yield str(model.fingerprint), encode


def _papers_of_map(
    data: Path, wanted: _SuiteOptions, console: ConsoleOutput
) -> "tuple[Sequence[Paper], Sequence[str]]":
    """Return some papers of MAG's topics, and these; none if there is no map to draw."""
    from citerec.lab.scidocs.layout import read_labels
    from citerec.lab.scidocs.suite import labelled_papers
    from citerec.lab.scidocs.topics import draw_map_sample

    if not wanted.map:
        return [], []
    papers, labels = labelled_papers(data, read_labels(data, "mag"))
    drawn = draw_map_sample(labels, seed=wanted.seed, warn=console.warn)
    return [papers[i] for i in drawn], [labels[i] for i in drawn]


def _on_index(
    index: Path | None, names: Sequence[str], wanted: _SuiteOptions, console: ConsoleOutput
) -> tuple[str, list["EncoderResult"]]:
    import numpy as np

    from citerec.folder import find_index, open_index
    from citerec.lab.scidocs.from_index import index_tasks, judge
    from citerec.lab.scidocs.labelled import venue_topics
    from citerec.lab.scidocs.record import EncoderResult
    from citerec.lab.scidocs.topics import draw_map_sample, try_map

    folder = open_index(find_index(index))
    labels = venue_topics(folder.papers) if wanted.map else []
    drew = draw_map_sample(labels, seed=wanted.seed, warn=console.warn) if wanted.map else []
    sample, drawn = np.array(drew, np.int32), [labels[row] for row in drew]
    judged: list[EncoderResult] = []
    with console.progress() as progress:
        tasks = index_tasks(folder, tasks=wanted.tasks, seed=wanted.seed, progress=progress)
        rows = np.union1d(tasks.rows, sample)
        for name in names or [""]:
            with _vectors(name, folder, rows, wanted, console, progress) as (shown, made_by, take):
                result = judge(
                    tasks, take, form=made_by.spec.form, seed=wanted.seed, progress=progress
                )
                topics = None
                if drawn and wanted.map:
                    vectors = take(sample)
                    topics = try_map(
                        vectors, drawn, wanted.map, seed=wanted.seed, warn=console.warn
                    )
            judged.append(EncoderResult(shown, str(made_by), result, topics))
    return folder.manifest.name, judged


@contextmanager
def _vectors(
    name: str,
    folder: "IndexFolder",
    rows: "Rows",
    wanted: _SuiteOptions,
    console: ConsoleOutput,
    progress: "Progress",
) -> "Generator[tuple[str, Fingerprint, Take]]":
    """Give an encoder's name, its fingerprint, and what gives its vectors of some papers of an index.

    They are those that the index keeps, if they are its own and exact; else the papers are encoded.
    """
    import numpy as np

    from citerec.encode.encoder import open_encoder, reopen
    from citerec.lab.scidocs.vectors import embedded_by, kept_vectors

    own, kept = embedded_by(folder), kept_vectors(folder)
    if not name and own is None:
        raise ConfigError(f"{folder.path} has no vectors; name a model: --encoder MODEL")
    if not name and own and kept:
        yield own.name, own, kept
        return
    if name:
        model = open_encoder(name, wanted.how, base=folder.path, log=console.log)
    else:
        assert own is not None
        model = reopen(own, folder.path, wanted.how, log=console.log)
    if kept and own and model.fingerprint.key == own.key:
        yield name, own, kept
        return
    console.detail(f"{model.fingerprint}: {len(rows):,} papers are encoded")
    with _going_on(model, wanted.store, console, progress) as encode:
        papers = folder.papers.at(rows.tolist())
        matrix = encode([papers[row] for row in rows.tolist()])

        def take(asked: "Rows") -> Any:
            return matrix[np.searchsorted(rows, asked)]

        yield name or model.fingerprint.name, model.fingerprint, take


@contextmanager
def _going_on(
    model: "Encoder", store: Path, console: ConsoleOutput, progress: "Progress"
) -> "Generator[CachedVectors]":
    """Give an encoder that keeps its vectors until the block ends well; say so if it does not."""
    from citerec.lab.scidocs.vectors import CachedVectors

    encode = CachedVectors(model, store, progress)
    try:
        yield encode
    except BaseException:
        if encode.kept:
            console.log(f"vectors are kept in {store}/; run this again to go on with them")
        raise
    encode.forget()


def _show(judged: Sequence["EncoderResult"], *, published: bool) -> None:
    from citerec.lab.scidocs.from_index import TASKS
    from citerec.lab.scidocs.published import METRICS, TABLE_1
    from citerec.lab.scidocs.table import results_table

    rows: dict[str, Mapping[str, float]] = {}
    if published:
        rows = dict(TABLE_1)
    ours = {_shown(each.encoder, published): each.result.metrics for each in judged}
    every = METRICS if published else [m for task in TASKS.values() for m in task]
    metrics = [metric for metric in every if any(metric in figures for figures in ours.values())]
    show(results_table(rows | ours, [*metrics, "average"], published=len(rows)))


def _shown(encoder: str, published: bool) -> str:
    """Return what stands for an encoder in the table: the end of a path, marked as ours beside published rows."""
    parts = [part for part in Path(encoder).parts if part not in ("models", "encoder")]
    name = encoder if len(encoder) <= SHOWN or not parts else parts[-1]
    return f"ours: {name}" if published else name


def _progress(judged: "EncoderResult", wanted: _SuiteOptions, console: ConsoleOutput) -> None:
    """Say what the table does not: what was left out, what lacks a vector, how good the map is."""
    result = judged.result
    for task, why in result.left_out.items():
        console.warn(f"{task} is left out: {why}")
    for what, count in result.counts.items():
        if count and what.endswith("without a vector"):
            console.warn(f"{judged.encoder}: {what}: {count:,}")
    if topics := judged.topics:
        figures = f"homogeneity {topics.homogeneity:.2f}, completeness {topics.completeness:.2f}"
        console.log(f"the map is {wanted.map}: {len(topics.clusters):,} papers, {figures}")
