"""`citerec evaluate`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput, show
from citerec.cli.options import BM25, RERANK, Index, Split, open_named, settings_options, under
from citerec.config import Settings, setting
from citerec.errors import ConfigError
from citerec.evaluate.protocol import EvalConfig

if TYPE_CHECKING:
    from citerec.evaluate.protocol import EvalSet
    from citerec.evaluate.report import Evaluation
    from citerec.folder import IndexFolder
    from citerec.run import Run

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

RECORDED = {"--known-graph", "--seed"}  # with given runs, too; all others are of systems


class SystemOptions(Settings):
    """The systems that are compared."""

    systems: str = setting(
        "",
        "Comma-separated: bm25, bm25-title, bm25-key-terms, dense, rrf, weighted, bm25+rerank, rerank, "
        "rerank-alone, expanded, ranker, ranker-no-popularity, ranker-no-authors, most-cited, random, oracle; or all. "
        "By default bm25; dense and rrf with vectors; the reranked systems with a reranker; expanded, ranker, and the "
        "baselines.",
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
        typer.Option(help="A TREC run to evaluate: alone, or with --systems beside them."),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(help="TREC or BEIR qrels for --run, in place of a split of the index."),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(min=1, help="A quick look: so many queries, evenly spread over the split."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The report folder; reports/<index>-<split> by default, with -runs for --run, -quick for --queries."
        ),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            help="Comma-separated metrics to show, by ranx's names: R@10,nDCG@10,rbp.95; the report has others, too."
        ),
    ] = "",
    options: SystemOptions,
    config: Annotated[EvalConfig, FLAGS],
    console: ConsoleOutput,
) -> None:
    """Evaluate rankings against the citations of papers, and write a report."""
    from citerec.evaluate.metrics import METRICS, metric_names
    from citerec.evaluate.protocol import EvalSet, load_eval_set
    from citerec.evaluate.report import Evaluation, assess, summary_table, write_report
    from citerec.evaluate.systems import systems
    from citerec.evaluate.tables import terminal
    from citerec.machine import provenance
    from citerec.run import read_qrels, trec_qrels

    wanted = metric_names(metrics)
    files = run or []
    if qrels is not None and not files:
        raise ConfigError("--qrels needs --run; without it a split of the index is evaluated")
    runs_systems = not files or (qrels is None and "systems" in options.model_fields_set)
    if not runs_systems:
        refuse_options_of_systems(ctx)
    folder = None
    if qrels is not None:
        corpus = qrels.stem
        eval_set = EvalSet("qrels", (), (), read_qrels(qrels))
    else:
        folder = open_named(index)
        corpus = folder.manifest.name
        eval_set = load_eval_set(folder, split)
    if queries:
        eval_set = eval_set.spread(queries)
    suffix = f"{'-runs' if files else ''}{'-quick' if queries else ''}"
    target = report_folder(output, f"{corpus}-{eval_set.split}{suffix}")  # before the work
    is_known = runs_systems or "known_graph" in config.model_fields_set
    evaluation = Evaluation(
        corpus=corpus,
        split=eval_set.split,
        known_graph=config.known_graph if is_known else None,
        qrels=trec_qrels(eval_set.qrels) if files else eval_set.qrels,
        runs=given_runs(files, systems() if runs_systems else ()),
        metrics=[name for name in wanted if name not in METRICS],
        provenance={"runs": [*map(str, files)], "qrels": str(qrels or split)} if files else {},
        left_out=eval_set.left_out,
        seed=config.seed,
    )
    if folder and runs_systems:
        evaluation = with_systems(evaluation, folder, eval_set, options, config, console)
    evaluation = replace(evaluation, provenance=provenance({**evaluation.provenance}))
    assessment = assess(evaluation)
    write_report(assessment, target)
    show(terminal(summary_table(assessment, wanted)))
    for system in assessment.systems[: len(files)]:
        if system.missing or (system.dropped and not queries):
            missing = f"queries without a ranking, which count zero: {system.missing:,}"
            console.warn(
                f"{system.name}: {missing}; rankings without judgements: {system.dropped:,}"
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
    from citerec.run import read_run

    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files]
    names = [
        f"{file.resolve().parent.name}/{stem}" if stem in taken or stems.count(stem) > 1 else stem
        for file, stem in zip(files, stems, strict=True)
    ]
    return [read_run(file, name) for file, name in zip(files, names, strict=True)]


def report_folder(output: Path | None, name: str) -> Path:
    """Return the report folder; refuse one that cannot be written, or holds anything but a report."""
    from citerec.evaluate.report import refuse_others_files
    from citerec.io import check_writable

    folder = output or REPORTS / name
    refuse_others_files(folder)
    check_writable(folder)
    return folder


def with_systems(
    evaluation: "Evaluation",
    folder: "IndexFolder",
    eval_set: "EvalSet",
    options: SystemOptions,
    config: EvalConfig,
    console: ConsoleOutput,
) -> "Evaluation":
    """Run citerec's own systems, and add their runs to an evaluation, after those that were given."""
    from citerec.evaluate.systems import CEILINGS, RANKED, RERANKED, Systems
    from citerec.rerank.reranker import choose_reranker
    from citerec.retrieve.bm25 import resolve
    from citerec.run import trec_run

    wanted = config.rerank or "auto"
    rerank = choose_reranker(wanted, folder, same_data=True, warn=console.warn)
    config = config.replace(rerank=rerank)
    names = system_names(options, folder, config)
    ranks = bool(RANKED.keys() & {*names})
    if ranks:
        config = config.replace(ranker=measurable(config.ranker, folder, console))
    console.detail(f"{folder.path}: {len(eval_set.queries)} {eval_set.split} queries")
    with console.progress() as progress:
        systems = Systems(folder, eval_set, config, console.log, progress)
        systems.check(names)
        reranked = [n for n in names if n in RERANKED or (config.rerank and n in RANKED)]
        reranker = systems.open_reranker if reranked else None  # before the work, as it may fail
        if reranker:
            console.log(str(reranker))
        runs = []
        seconds = dict[str, float | None]()
        for number, name in enumerate(names):
            progress("systems", number, len(names))
            run, seconds[name] = systems.run(name)
            runs.append(trec_run(run) if evaluation.runs else run)
        if options.audit:
            checked = systems.audit([name for name in names if name not in CEILINGS], progress)
            for fault in checked.faults[:FAULTS]:
                console.warn(f"audit: {fault}")
            if checked.faults:
                console.warn(f"audit: {len(checked.faults):,} faults in all")
                raise typer.Exit(1)
            console.log(str(checked))
    ranker = systems.ranker_of("ranker") if ranks else None
    manifest = folder.manifest
    settings = {
        "corpus": {"sha256": manifest.corpus["sha256"], "papers": manifest.counts["papers"]},
        "bm25": resolve(config.bm25, folder).model_dump(),
        "fuse": config.fuse.model_dump(),
        "rerank": [reranker.as_json()] if reranker else [],
        "rerank_weights": {name: systems.reranker_of(name).weight for name in reranked},
        "ranker": {"model": ranker.shown, "weights": ranker.fingerprint} if ranker else None,
        "depth": config.depth,
        "index": manifest.settings,
    }
    return replace(
        evaluation,
        runs=[*evaluation.runs, *runs],
        seconds=seconds,
        provenance={**evaluation.provenance, **settings},
        ceilings=CEILINGS & set(names),
    )


def system_names(options: SystemOptions, folder: "IndexFolder", config: EvalConfig) -> list[str]:
    """Return the names of the systems to compare, each once."""
    from citerec.evaluate.systems import RERANKED, default_systems, systems

    known = systems()
    if options.systems == "all":
        names = [name for name in known if config.rerank or name not in RERANKED]
    elif "systems" in options.model_fields_set:
        names = [name.strip() for name in options.systems.split(",")]
    else:
        names = default_systems(folder, rerank=config.rerank is not None, ranker=config.ranker)
    if unknown := [name for name in (*names, *config.retrievers) if name not in known]:
        raise ConfigError(f"no system {unknown[0]!r}; choose from {', '.join(known)}, or all alone")
    return list(dict.fromkeys([*names, *config.retrievers]))


def measurable(ranker: str, folder: "IndexFolder", console: ConsoleOutput) -> str:
    """Return the model to evaluate: that of the index only if it was not trained on the current test queries."""
    from citerec.rank.ltr import DEFAULT, SPEC
    from citerec.rules.held_out import RANKER, own_model, own_name, trained_on_other_data

    own = own_model(folder, RANKER, SPEC) if ranker == "auto" else None
    if own is None or not trained_on_other_data(own, folder):
        return ranker
    console.warn(
        f"{own_name(folder, RANKER)} is not used: it was trained on other papers or splits, which may include test "
        f"queries; train it again: citerec train-ranker --index {folder.path} --force, or use it anyway: --ranker {own}"
    )
    return str(DEFAULT)
