"""`citerec evaluate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import Heap, Index, Quiet, Talk, Threads, Verbose, show
from citerec.cli.recommend import K1, B, StopWordsOption
from citerec.config import Bm25Config, DenseConfig, StopWords
from citerec.errors import ConfigError
from citerec.text import QueryForm

if TYPE_CHECKING:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import Setting, Task
    from citerec.folder import IndexFolder
    from citerec.run import Qrels, Run

REPORTS = Path("reports")
VAIN_WITH_RUNS = ("systems", "k1", "b", "query_form", "stop_words")  # what a run was made with


def evaluate(
    ctx: typer.Context,
    index: Index = None,
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    run: Annotated[
        list[Path] | None,
        typer.Option(help="A TREC run to evaluate, in place of the systems; may be repeated."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC or BEIR judgements for --run, in place of a split.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The report folder; reports/<index>-<split> by default, -runs added for --run."
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: bm25, bm25-title, bm25-key-terms, dense, rrf, weighted, most-cited, random, "
            "oracle; or all. By default bm25, dense and rrf if there are vectors, and the baselines."
        ),
    ] = None,
    known_graph: Annotated[
        str,
        typer.Option(
            help="Whose citations are known at query time: train or earlier papers'; for --run, were."
        ),
    ] = "train",
    query_form: Annotated[
        QueryForm, typer.Option(help="BM25: what of the query is searched with.")
    ] = QueryForm.TITLE_ABSTRACT,
    k1: K1 = 1.2,
    b: B = 0.75,
    stop_words: StopWordsOption = StopWords.AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Of the random run and the resamples.")] = 0,
    threads: Threads = 0,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Hold rankings against what papers truly cite, and write a report."""
    from citerec.evaluate.assessment import assess
    from citerec.evaluate.protocol import KnownGraph, Setting
    from citerec.evaluate.report import refuse_others_files, write_report
    from citerec.evaluate.tables import left_out, summary_table

    if known_graph not in [*KnownGraph]:
        raise ConfigError(f"--known-graph is train or earlier, got {known_graph!r}")
    talk = Talk(quiet, verbose)
    bm25 = Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads)
    dense = DenseConfig(threads=threads)
    setting = Setting(bm25=bm25, dense=dense, known_graph=KnownGraph(known_graph), seed=seed)
    if output is not None:
        refuse_others_files(output.resolve())
    if run:
        if vain := [name for name in VAIN_WITH_RUNS if _is_given(ctx, name)]:
            option = f"--{vain[0].replace('_', '-')}"
            raise ConfigError(f"{option} has no effect with --run: its rankings are made already")
        told = setting.known_graph if _is_given(ctx, "known_graph") else None
        evaluation, folder = _given_runs(run, qrels, index, split, told, seed, output)
    else:
        if qrels is not None:
            raise ConfigError("--qrels goes with --run; without it a split of the index is judged")
        evaluation, folder = _own_systems(index, split, systems, setting, heap, output, talk)
    report = assess(evaluation)
    write_report(report, folder)
    show(summary_table(report))
    if dropped := left_out(evaluation):
        talk.note(f"{len(evaluation.qrels)} {evaluation.split} queries; {dropped}")
    talk.note(f"the report is in {folder}/")


def _is_given(ctx: typer.Context, parameter: str) -> bool:
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _target(output: Path | None, name: str, inputs: Sequence[Path] = ()) -> Path:
    """Return the report folder; refuse one whose replacement would destroy anything but a report."""
    from citerec.evaluate.report import refuse_others_files, refuse_own_inputs

    folder = output or REPORTS / name
    refuse_own_inputs(folder, inputs)
    refuse_others_files(folder.resolve())
    return folder


def _own_systems(
    index: Path | None,
    split: str,
    systems: str | None,
    setting: "Setting",
    heap: str | None,
    output: Path | None,
    talk: Talk,
) -> tuple["Evaluation", Path]:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import load_task
    from citerec.evaluate.systems import CEILINGS, default_systems, weights
    from citerec.evaluate.trec_ids import refuse_meeting_papers, refuse_meeting_qrels
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm

    names = None if systems is None else _system_names(systems)
    folder = open_index(find_index(index))
    names = names or default_systems(folder)
    setting = replace(setting, fuse=weights(folder))
    task = load_task(folder, split)
    target = _target(output, f"{folder.manifest.name}-{split}")
    start_jvm(heap)
    refuse_meeting_qrels(task.qrels)
    refuse_meeting_papers(folder.papers)
    talk.detail(f"{folder.path}: {len(task.queries)} {split} queries")
    done = _run_all(names, folder, task, setting, talk)
    evaluation = Evaluation(
        corpus=folder.manifest.name,
        split=split,
        known_graph=setting.known_graph,
        qrels=task.qrels,
        runs=[run for run, _ in done],
        query_words=task.words,
        seconds={run.name: seconds for run, seconds in done},
        provenance=_provenance(folder, setting),
        left_out=task.left_out,
        ceilings=CEILINGS & set(names),
        seed=setting.seed,
    )
    return evaluation, target


def _run_all(
    names: list[str], folder: "IndexFolder", task: "Task", setting: "Setting", talk: Talk
) -> list[tuple["Run", float | None]]:
    from citerec.evaluate.systems import Systems

    systems = Systems(folder, task, setting, talk.note)
    with talk.progress() as tell:
        return [
            (tell("systems", i, len(names)), systems.run(name))[1] for i, name in enumerate(names)
        ]


def _system_names(systems: str) -> list[str]:
    from citerec.evaluate.systems import SYSTEMS

    wanted = SYSTEMS if systems == "all" else (name.strip() for name in systems.split(","))
    names = list(dict.fromkeys(wanted))
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise ConfigError(f"no system {unknown[0]!r}; there are: {', '.join(SYSTEMS)}, or all")
    return names


def _given_runs(
    files: list[Path],
    qrels: Path | None,
    index: Path | None,
    split: str,
    known_graph: str | None,
    seed: int,
    output: Path | None,
) -> tuple["Evaluation", Path]:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.trec_ids import refuse_meeting_qrels, refuse_meeting_run
    from citerec.provenance import provenance
    from citerec.run import read_run, trec_id, trec_qrels

    if qrels is not None and index is not None:
        raise ConfigError("--qrels and --index name two sources of judgements; give one")
    inputs = [*files, qrels] if qrels is not None else files
    judged = _judgements(qrels, index, split, output, inputs)
    refuse_meeting_qrels(judged.qrels)
    runs = [read_run(file, name) for file, name in zip(files, _run_names(files), strict=True)]
    for run in runs:
        refuse_meeting_run(run)
    sources = {"runs": [str(file) for file in files], "qrels": str(qrels) if qrels else split}
    evaluation = Evaluation(
        corpus=judged.corpus,
        split=judged.split,
        known_graph=known_graph,
        qrels=trec_qrels(judged.qrels),
        runs=runs,
        query_words={trec_id(qid): count for qid, count in judged.words.items()},
        provenance=provenance(sources),
        left_out=judged.left_out,
        seed=seed,
    )
    return evaluation, judged.target


@dataclass(frozen=True, slots=True)
class _Judgements:
    """What given runs are held against, and where their report goes."""

    corpus: str
    split: str
    target: Path
    qrels: "Qrels"
    words: Mapping[str, int] = field(default_factory=dict[str, int])
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])


def _judgements(
    qrels: Path | None, index: Path | None, split: str, output: Path | None, inputs: Sequence[Path]
) -> _Judgements:
    if qrels is not None:
        from citerec.run import read_qrels

        target = _target(output, f"{qrels.stem}-qrels-runs", inputs)
        return _Judgements(qrels.stem, "qrels", target, read_qrels(qrels))
    from citerec.evaluate.protocol import load_task
    from citerec.folder import find_index, open_index

    folder = open_index(find_index(index))
    name = folder.manifest.name
    task = load_task(folder, split)
    target = _target(output, f"{name}-{split}-runs", inputs)
    return _Judgements(name, split, target, task.qrels, task.words, task.left_out)


def _run_names(files: list[Path]) -> list[str]:
    """Name each run after its file; after its folder, too, where two files share a name."""
    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files]
    return [
        stem if stems.count(stem) == 1 else f"{file.resolve().parent.name}/{stem}"
        for file, stem in zip(files, stems, strict=True)
    ]


def _provenance(folder: "IndexFolder", setting: "Setting") -> dict[str, object]:
    from dataclasses import asdict

    from citerec.provenance import provenance
    from citerec.retrieve.bm25 import resolve

    bm25 = asdict(resolve(setting.bm25, folder))
    corpus = {
        "sha256": folder.manifest.corpus["sha256"],
        "papers": folder.manifest.counts["papers"],
    }
    return provenance(
        {
            "corpus": corpus,
            "bm25": bm25,
            "fuse": asdict(setting.fuse),
            "depth": setting.depth,
            "index": folder.manifest.settings,
        }
    )
