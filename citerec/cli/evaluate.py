"""`citerec evaluate`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, Heap, Index, Quiet, Threads, Verbose, show, track
from citerec.cli.given_runs import given_runs, report_folder
from citerec.cli.rank import measurable, ranker_provenance
from citerec.cli.recommend import K1, B, StopWordsOption
from citerec.cli.rerank import (
    OPTIONS,
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    PrecisionOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
    RerankOptions,
    RerankWeightOption,
)
from citerec.config import Bm25Config, DenseConfig, RerankConfig, StopWords
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError
from citerec.text import QueryForm

if TYPE_CHECKING:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import EvalConfig
    from citerec.evaluate.systems import Systems
    from citerec.folder import IndexFolder
    from citerec.types import Progress

UNUSED_WITH_RUNS = (  # options of the pipeline, without effect on external runs
    "systems",
    "k1",
    "b",
    "query_form",
    "stop_words",
    "ranker",
    "audit",
    *OPTIONS,
)
FAULTS = 5  # faults of an audit that are printed


def evaluate(
    ctx: typer.Context,
    index: Index = None,
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    run: Annotated[
        list[Path] | None,
        typer.Option(help="A TREC run to evaluate in place of the systems; may be repeated."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC or BEIR qrels for --run, in place of a split.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The report folder; reports/<index>-<split> by default, with -runs for --run."
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: bm25, bm25-title, bm25-key-terms, dense, rrf, weighted, bm25+rerank, rerank, "
            "rerank-alone, expanded, ranker, ranker-no-popularity, ranker-no-authors, most-cited, random, oracle; "
            "or all. By default bm25; dense and rrf with vectors; the reranked systems with a reranker; "
            "expanded, ranker, and the baselines."
        ),
    ] = None,
    known_graph: Annotated[
        str,
        typer.Option(
            help="Papers whose citations are known at query time: train or earlier; with --run, recorded only."
        ),
    ] = "train",
    query_form: Annotated[
        QueryForm, typer.Option(help="BM25: the fields of the query.")
    ] = QueryForm.TITLE_ABSTRACT,
    k1: K1 = 1.2,
    b: B = 0.75,
    stop_words: StopWordsOption = StopWords.AUTO,
    reranker: RerankerOption = None,
    rerank_depth: RerankDepthOption = None,
    query_tokens: QueryTokensOption = None,
    candidate_tokens: CandidateTokensOption = None,
    rerank_weight: RerankWeightOption = None,
    device: DeviceOption = "auto",
    dtype: PrecisionOption = Precision.AUTO,
    backend: BackendOption = Backend.AUTO,
    ranker: Annotated[
        str,
        typer.Option(
            help="The learning-to-rank model: auto for that of the index, else the default one; or a folder."
        ),
    ] = "auto",
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Recompute all candidates and features without the future of each query, and report differences.",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random baseline and the resamples.")
    ] = 0,
    threads: Threads = 0,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate rankings against the citations of papers, and write a report."""
    from citerec.evaluate.assessment import assess
    from citerec.evaluate.protocol import EvalConfig
    from citerec.evaluate.report import refuse_others_files, write_report
    from citerec.evaluate.tables import left_out, summary_table
    from citerec.rank.known import PROTOCOL, KnownGraph

    if known_graph not in PROTOCOL:
        raise ConfigError(f"--known-graph must be train or earlier, got {known_graph!r}")
    console = ConsoleOutput(quiet, verbose)
    bm25 = Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads)
    dense = DenseConfig(threads=threads)
    eval_config = EvalConfig(bm25=bm25, dense=dense, known_graph=KnownGraph(known_graph), seed=seed)
    eval_config = replace(eval_config, ranker=ranker)
    if output is not None:
        refuse_others_files(output.resolve())
    if run:
        if unused := [name for name in UNUSED_WITH_RUNS if _is_given(ctx, name)]:
            option = f"--{unused[0].replace('_', '-')}"
            raise ConfigError(f"{option} has no effect with --run: the rankings of a run are fixed")
        recorded_graph = eval_config.known_graph if _is_given(ctx, "known_graph") else None
        evaluation, folder = given_runs(run, qrels, index, split, recorded_graph, seed, output)
    else:
        if qrels is not None:
            raise ConfigError(
                "--qrels needs --run; without --run a split of the index is evaluated"
            )
        rerank_options = RerankOptions(
            models=reranker,
            depths=rerank_depth,
            query_tokens=query_tokens,
            candidate_tokens=candidate_tokens,
            weight=rerank_weight,
            device=device,
            precision=dtype,
            backend=backend,
            threads=threads,
            measures=True,
        )
        result = _own_systems(
            index, split, systems, eval_config, rerank_options, heap, output, console, audit
        )
        evaluation, folder = result
    report = assess(evaluation)
    write_report(report, folder)
    show(summary_table(report))
    if dropped := left_out(evaluation):
        console.log(f"{len(evaluation.qrels)} {evaluation.split} queries; {dropped}")
    console.log(f"the report is in {folder}/")


def _is_given(ctx: typer.Context, parameter: str) -> bool:
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _own_systems(
    index: Path | None,
    split: str,
    systems: str | None,
    eval_config: "EvalConfig",
    rerank_options: RerankOptions,
    heap: str | None,
    output: Path | None,
    console: ConsoleOutput,
    audited: bool,
) -> tuple["Evaluation", Path]:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.bias import cited_stats
    from citerec.evaluate.by_year import years_of
    from citerec.evaluate.catalogue import CEILINGS, RANKED, default_systems, weights
    from citerec.evaluate.overlap import overlaps
    from citerec.evaluate.protocol import load_task
    from citerec.evaluate.systems import Systems
    from citerec.evaluate.trec_ids import refuse_meeting_papers, refuse_meeting_qrels
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm

    named = None if systems is None else _system_names(systems)
    folder = open_index(find_index(index))
    eval_config = replace(
        eval_config, fuse=weights(folder), rerank=rerank_options.config(folder, console)
    )
    if named is None:
        named = default_systems(
            folder, rerank=eval_config.rerank is not None, ranker=eval_config.ranker
        )
    names = named if systems != "all" else _possible(named, eval_config.rerank)
    if RANKED.keys() & {*names}:
        eval_config = replace(eval_config, ranker=measurable(eval_config.ranker, folder, console))
    task = load_task(folder, split)
    target = report_folder(output, f"{folder.manifest.name}-{split}")
    start_jvm(heap)
    refuse_meeting_qrels(task.qrels)
    refuse_meeting_papers(folder.papers)
    console.detail(f"{folder.path}: {len(task.queries)} {split} queries")
    with console.progress() as progress:
        running = Systems(folder, task, eval_config, console.log, progress)
        running.check(names)
        reranking = _reranking(names, running, console)
        done = [running.run(name) for name in track(names, progress)]
        if audited:
            _audit(names, running, console, progress)
    evaluation = Evaluation(
        corpus=folder.manifest.name,
        split=split,
        known_graph=eval_config.known_graph,
        qrels=task.qrels,
        runs=[run for run, _ in done],
        query_words=task.words,
        query_years=years_of(task.queries),
        overlap=overlaps(folder, task),
        cited_stats=cited_stats(folder, task, eval_config.known_graph),
        seconds={run.name: seconds for run, seconds in done},
        provenance=_provenance(
            folder, eval_config, reranking, ranks=bool(RANKED.keys() & {*names})
        ),
        left_out=task.left_out,
        ceilings=CEILINGS & set(names),
        seed=eval_config.seed,
    )
    return evaluation, target


def _audit(
    names: list[str], systems: "Systems", console: ConsoleOutput, progress: "Progress"
) -> None:
    """Audit the run; print the faults and exit with 1 if there are any."""
    from citerec.evaluate.catalogue import CEILINGS

    checked = systems.audit([name for name in names if name not in CEILINGS], progress)
    for fault in checked.faults[:FAULTS]:
        console.warn(f"audit: {fault}")
    if checked.faults:
        console.warn(f"audit: {len(checked.faults):,} faults in all")
        raise typer.Exit(1)
    console.log(str(checked))


def _reranking(names: list[str], systems: "Systems", console: ConsoleOutput) -> dict[str, Any]:
    """Open the reranker if a system needs it, and log it; return its facts for the report."""
    from citerec.evaluate.catalogue import RANKED, RERANKED

    systems_with_reranker = {*RERANKED, *RANKED} if systems.reranks else {*RERANKED}
    reranked = [name for name in names if name in systems_with_reranker]
    if not reranked:
        return {"rerank": [], "rerank_weights": {}}
    console.log(str(systems.cascade))
    weights = {name: systems.cascade_of(name).stages[-1].weight for name in reranked}
    if len({*weights.values()}) > 1:
        each = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        console.log(f"rerank weight: {each}")
    stages = [stage.as_json() for stage in systems.cascade.stages]
    return {"rerank": stages, "rerank_weights": weights}


def _system_names(systems: str) -> list[str]:
    from citerec.evaluate.catalogue import systems as all_systems

    requested = all_systems() if systems == "all" else (name.strip() for name in systems.split(","))
    names = list(dict.fromkeys(requested))
    if unknown := [name for name in names if name not in all_systems()]:
        raise ConfigError(
            f"no system {unknown[0]!r}; choose from {', '.join(all_systems())}, or all"
        )
    return names


def _possible(names: list[str], rerank: RerankConfig | None) -> list[str]:
    """Return the systems that can be run: without a reranker no reranked ones."""
    from citerec.evaluate.catalogue import RERANKED

    return [name for name in names if rerank or name not in RERANKED]


def _provenance(
    folder: "IndexFolder", eval_config: "EvalConfig", reranking: dict[str, Any], *, ranks: bool
) -> dict[str, object]:
    from dataclasses import asdict

    from citerec.provenance import provenance
    from citerec.retrieve.bm25 import resolve

    bm25 = asdict(resolve(eval_config.bm25, folder))
    corpus = {
        "sha256": folder.manifest.corpus["sha256"],
        "papers": folder.manifest.counts["papers"],
    }
    return provenance(
        {
            "corpus": corpus,
            "bm25": bm25,
            "fuse": asdict(eval_config.fuse),
            **reranking,
            "ranker": ranker_provenance(folder, eval_config.ranker) if ranks else None,
            "depth": eval_config.depth,
            "index": folder.manifest.settings,
        }
    )
