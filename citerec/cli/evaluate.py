"""`citerec evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import Heap, Index, Quiet, Talk, Threads, Verbose, show
from citerec.cli.recommend import K1, B, StopWordsOption
from citerec.config import Bm25Config, StopWords
from citerec.errors import ConfigError
from citerec.text import QueryForm

if TYPE_CHECKING:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import Setting
    from citerec.folder import IndexFolder
    from citerec.run import Qrels

REPORTS = Path("reports")


def evaluate(
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
        Path | None, typer.Option(help="The report folder; reports/<index>-<split> by default.")
    ] = None,
    systems: Annotated[
        str,
        typer.Option(
            help="Comma-separated: bm25, bm25-title, bm25-key-terms, most-cited, random, oracle; or all."
        ),
    ] = "bm25,most-cited,random,oracle",
    known_graph: Annotated[
        str, typer.Option(help="Whose citations are known at query time: train or earlier papers'.")
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
    from citerec.evaluate.tables import summary_table
    from citerec.java import start_jvm

    if known_graph not in [*KnownGraph]:
        raise ConfigError(f"--known-graph is train or earlier, got {known_graph!r}")
    talk = Talk(quiet, verbose)
    bm25 = Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads)
    setting = Setting(bm25=bm25, known_graph=KnownGraph(known_graph), seed=seed)
    if output is not None:
        refuse_others_files(output.resolve())
    if run:
        evaluation = _given_runs(run, qrels, index, split, setting)
    else:
        if qrels is not None:
            raise ConfigError("--qrels goes with --run; without it a split of the index is judged")
        start_jvm(heap)
        evaluation = _own_systems(index, split, systems, setting, talk)
    report = assess(evaluation)
    folder = output or REPORTS / f"{evaluation.corpus}-{evaluation.split}"
    write_report(report, folder)
    show(summary_table(report))
    talk.note(f"the report is in {folder}/")


def _own_systems(
    index: Path | None, split: str, systems: str, setting: "Setting", talk: Talk
) -> "Evaluation":
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import SYSTEMS, load_task, run_system
    from citerec.folder import find_index, open_index

    folder = open_index(find_index(index))
    wanted = SYSTEMS if systems == "all" else (name.strip() for name in systems.split(","))
    names = list(dict.fromkeys(wanted))
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise ConfigError(f"no system {unknown[0]!r}; there are: {', '.join(SYSTEMS)}, or all")
    task = load_task(folder, split)
    talk.detail(f"{folder.path}: {len(task.queries)} {split} queries")
    with talk.progress() as tell:
        done = [
            (tell("systems", i, len(names)), run_system(name, folder, task, setting))[1]
            for i, name in enumerate(names)
        ]
    return Evaluation(
        corpus=folder.manifest.name,
        split=split,
        known_graph=setting.known_graph,
        qrels=task.qrels,
        runs=[run for run, _ in done],
        query_words=task.words,
        seconds={run.name: seconds for run, seconds in done},
        provenance=_provenance(folder, setting),
        seed=setting.seed,
    )


def _given_runs(
    files: list[Path], qrels: Path | None, index: Path | None, split: str, setting: "Setting"
) -> "Evaluation":
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import load_task
    from citerec.folder import find_index, open_index
    from citerec.provenance import provenance
    from citerec.run import read_qrels, read_run, trec_id, trec_qrels

    if qrels is not None and index is not None:
        raise ConfigError("--qrels and --index name two sources of judgements; give one")
    gold: Qrels
    if qrels is not None:
        gold, name, words = trec_qrels(read_qrels(qrels)), qrels.stem, {}
    else:
        folder = open_index(find_index(index))
        task = load_task(folder, split)
        gold, name = trec_qrels(task.qrels), folder.manifest.name
        words = {trec_id(qid): count for qid, count in task.words.items()}
    sources = {"runs": [str(file) for file in files], "qrels": str(qrels) if qrels else split}
    return Evaluation(
        corpus=name,
        split="qrels" if qrels else split,
        known_graph=setting.known_graph,
        qrels=gold,
        runs=[read_run(file, name) for file, name in zip(files, _run_names(files), strict=True)],
        query_words=words,
        provenance=provenance(sources),
        seed=setting.seed,
    )


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
        {"corpus": corpus, "bm25": bm25, "depth": setting.depth, "index": folder.manifest.settings}
    )
