"""`citerec evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput, show
from citerec.cli.options import (
    BM25,
    RERANK,
    Index,
    Split,
    open_named,
    settings_options,
    under,
)
from citerec.config import Settings, setting
from citerec.errors import ConfigError
from citerec.evaluation.protocol import EvalConfig

if TYPE_CHECKING:
    from citerec.files.trec import Run
    from citerec.lab.audit import Audit

REPORTS = Path("reports")
FAULTS = 5  # faults of an audit that are printed
FLAGS = {
    "--known-graph": "known_graph",
    "--retriever": "retrievers",
    **under("bm25", BM25),
    **under("rerank", RERANK),
    "--ranker": "ranker",
    "--seed": "seed",
    "--threads": "bm25.threads dense.threads rerank.threads",
}

# with given runs, too; all others are of systems
RECORDED = {
    "--known-graph",
    "--seed",
}


class SystemOptions(Settings):
    """The systems that are compared."""

    systems: str = setting(
        "",
        "Comma-separated: bm25, bm25-title, bm25-key-terms, dense, rrf, weighted, bm25+rerank, rerank, "
        "rerank-alone, expanded, ranker, ranker-no-popularity, ranker-no-authors, most-cited, random, oracle; or all. "
        "By default bm25; dense and rrf with vectors (rrf with a --retriever, too); the reranked systems with a "
        "reranker; expanded, ranker, and the baselines.",
    )
    audit: bool = setting(
        False,
        "Recompute all candidates and features without the future of each query, and report differences.",
    )


@settings_options
def evaluate(
    ctx: typer.Context,
    *,
    index: Index = None,
    split: Split = "test",
    run: Annotated[
        list[Path] | None,
        "A TREC run to evaluate: alone, or with --systems beside them.",
    ] = None,
    qrels: Annotated[
        Path | None,
        "TREC or BEIR qrels for --run, in place of a split of the index.",
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            min=1, help="A quick look: so many queries, evenly spread over the split."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        "The report folder; reports/<index>-<split> by default, with -runs for --run, -quick for --queries.",
    ] = None,
    metrics: Annotated[
        str,
        "Comma-separated metrics to show, by ranx's names: R@10,nDCG@10,rbp.95; the report has others, too.",
    ] = "",
    options: SystemOptions,
    config: Annotated[EvalConfig, FLAGS],
    console: ConsoleOutput,
) -> None:
    """Evaluate rankings against the citations of papers, and write a report."""
    from citerec.evaluation.evaluate import measured, with_systems
    from citerec.evaluation.metrics import metric_names
    from citerec.evaluation.protocol import NO_RELEVANT, EvalSet, load_eval_set
    from citerec.evaluation.report import (
        Evaluation,
        refuse_others_files,
        summary_table,
    )
    from citerec.evaluation.systems import systems
    from citerec.evaluation.tables import terminal
    from citerec.files.atomic import check_writable
    from citerec.files.trec import read_qrels, trec_qrels

    wanted = metric_names(metrics)
    files = run or []
    if qrels is not None and not files:
        raise ConfigError(
            "--qrels needs --run; without it a split of the index is evaluated"
        )
    is_named = "systems" in options.model_fields_set
    runs_systems = not files or (qrels is None and is_named)
    named = [name.strip() for name in options.systems.split(",")] if is_named else None
    if not runs_systems:
        refuse_options_of_systems(ctx)
    folder = None
    if qrels is not None:
        name = corpus = qrels.stem
        empty: list[str] = []
        graded = read_qrels(qrels, empty=empty)
        eval_set = EvalSet("qrels", (), (), graded, {NO_RELEVANT: len(empty)})
    else:
        folder = open_named(index)
        name, corpus = folder.path.name, folder.manifest.name
        eval_set = load_eval_set(folder, split)
    if queries:
        eval_set = eval_set.spread(queries)
    suffix = f"{'-runs' if files else ''}{'-quick' if queries else ''}"
    target = output or REPORTS / f"{name}-{eval_set.split}{suffix}"
    # before the work
    refuse_others_files(target)
    check_writable(target)
    is_known = runs_systems or "known_graph" in config.model_fields_set
    evaluation = Evaluation(
        corpus=corpus,
        split=eval_set.split,
        known_graph=config.known_graph if is_known else None,
        qrels=trec_qrels(eval_set.qrels) if files else eval_set.qrels,
        runs=given_runs(files, systems() if runs_systems else ()),
        metrics=wanted,
        provenance={"runs": [*map(str, files)], "qrels": str(qrels or split)}
        if files
        else {},
        left_out=eval_set.left_out,
        seed=config.seed,
    )
    if folder and runs_systems:
        console.detail(
            f"{folder.path}: {len(eval_set.queries)} {eval_set.split} queries"
        )
        with console.progress() as progress:
            evaluation, opened = with_systems(
                evaluation,
                folder,
                eval_set,
                named,
                config,
                log=console.log,
                warn=console.warn,
                progress=progress,
            )
            if options.audit:
                from citerec.lab.audit import audit_systems

                checked = audit_systems(opened, [*evaluation.seconds], progress)
                refuse_faults(checked, console)
    assessment = measured(evaluation, target)
    show(terminal(summary_table(assessment, wanted)))
    for system in assessment.systems[: len(files)]:
        if system.missing or (system.dropped and not queries):
            missing = f"queries without a ranking, which count zero: {system.missing:,}"
            console.warn(
                f"{system.name}: {missing}; rankings of other queries: {system.dropped:,}"
            )
    if omitted := evaluation.omitted:
        console.log(f"{evaluation.counted} {evaluation.split} queries; {omitted}")
    console.log(f"the report is in {target}/")


def refuse_options_of_systems(ctx: typer.Context) -> None:
    """Refuse options of the command line that have no effect on given runs; those of `citerec.toml` are defaults."""
    for flag in ("--systems", "--audit", *(FLAGS.keys() - RECORDED)):
        source = ctx.get_parameter_source(flag[2:].replace("-", "_"))
        if source and source.name == "COMMANDLINE":
            raise ConfigError(
                f"{flag} has no effect with --run, whose rankings are fixed; to compare them with systems of an index, "
                "name these by --systems, and leave out --qrels"
            )


def given_runs(files: Sequence[Path], taken: Sequence[str]) -> list["Run"]:
    """Read external runs; a run is named after its file, and its folder if a system or another file has that name."""
    from citerec.files.trec import read_run

    stems = [
        file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files
    ]
    names = [
        f"{file.resolve().parent.name}/{stem}"
        if stem in taken or stems.count(stem) > 1
        else stem
        for file, stem in zip(files, stems, strict=True)
    ]
    return [read_run(file, name) for file, name in zip(files, names, strict=True)]


def refuse_faults(checked: "Audit", console: ConsoleOutput) -> None:
    """Log that an audit found nothing; else warn of its faults and end with exit code 1."""
    if not checked.faults:
        console.log(str(checked))
        return
    for fault in checked.faults[:FAULTS]:
        console.warn(f"audit: {fault}")
    console.warn(f"audit: {len(checked.faults):,} faults in all")
    raise typer.Exit(1)
