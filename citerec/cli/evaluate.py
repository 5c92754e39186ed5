"""`citerec evaluate`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, show
from citerec.cli.options import Heap, Index, Quiet, Threads, Verbose
from citerec.cli.rank import measurable, ranker_provenance
from citerec.cli.rerank import (
    K1,
    OPTIONS,
    B,
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    DtypeOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
    RerankOptions,
    RerankWeightOption,
    StopWordsOption,
)
from citerec.config import Bm25Config, DenseConfig, StopWords
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError
from citerec.text import QueryForm

if TYPE_CHECKING:
    from citerec.evaluate.protocol import EvalConfig
    from citerec.evaluate.report import Evaluation
    from citerec.evaluate.systems import Systems
    from citerec.folder import IndexFolder
    from citerec.run import Run
    from citerec.types import Progress

REPORTS = Path("reports")
FAULTS = 5  # faults of an audit that are printed
OF_SYSTEMS = (  # options without effect on external runs
    *("systems", "retriever", "k1", "b", "query_form", "stop_words", "ranker", "audit"),
    *OPTIONS,
)


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
    metrics: Annotated[
        str,
        typer.Option(
            help="Comma-separated metrics besides the usual ones, by ranx's names: R@10,nDCG@10,hit_rate@5,rbp.95."
        ),
    ] = "",
    systems: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: bm25, bm25-title, bm25-key-terms, dense, rrf, weighted, bm25+rerank, rerank, "
            "rerank-alone, expanded, ranker, ranker-no-popularity, ranker-no-authors, most-cited, random, oracle; "
            "or all. By default bm25; dense and rrf with vectors; the reranked systems with a reranker; "
            "expanded, ranker, and the baselines."
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="A first-stage retriever that another package registers, as a further system; may be repeated."
        ),
    ] = None,
    known_graph: Annotated[
        str,
        typer.Option(
            help="The citations that are known at query time: train for those of train papers of earlier years; "
            "earlier for those of all papers of earlier years. With --run it is only recorded."
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
    dtype: DtypeOption = Precision.AUTO,
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
        int,
        typer.Option(min=0, max=2**32 - 1, help="Seed of the random baseline and the resamples."),
    ] = 0,
    threads: Threads = 0,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate rankings against the citations of papers, and write a report."""
    from citerec.evaluate.metrics import metric_names
    from citerec.evaluate.protocol import EvalConfig
    from citerec.evaluate.report import (
        assess,
        summary_table,
        write_report,
    )
    from citerec.evaluate.tables import terminal
    from citerec.rules.known import PROTOCOL, CitationScope

    if known_graph not in PROTOCOL:
        raise ConfigError(f"--known-graph must be train or earlier, got {known_graph!r}")
    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    extra = metric_names(metrics)
    if run:
        if unused := [name for name in OF_SYSTEMS if _is_given(ctx, name)]:
            option = f"--{unused[0].replace('_', '-')}"
            raise ConfigError(f"{option} has no effect with --run: the rankings of a run are fixed")
        if qrels is not None and not _is_given(ctx, "index"):
            index = None  # of a settings file; qrels replace it
        evaluation, folder = _given_runs(run, qrels, index, split, output)
        recorded = known_graph if _is_given(ctx, "known_graph") else None
        evaluation = replace(evaluation, known_graph=recorded)
    else:
        if qrels is not None:
            raise ConfigError("--qrels needs --run; without it a split of the index is evaluated")
        config = EvalConfig(
            bm25=Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads),
            dense=DenseConfig(threads=threads),
            known_graph=CitationScope(known_graph),
            ranker=ranker,
            seed=seed,
        )
        options = RerankOptions(
            model=reranker,
            depth=rerank_depth,
            query_tokens=query_tokens,
            candidate_tokens=candidate_tokens,
            weight=rerank_weight,
            device=device,
            precision=dtype,
            backend=backend,
            threads=threads,
            measures=True,
        )
        evaluation, folder = _own_systems(
            (index, split, output), systems, retriever or (), config, options, heap, console, audit
        )
    assessment = assess(replace(evaluation, metrics=extra, seed=seed))
    write_report(assessment, folder)
    show(terminal(summary_table(assessment, extra)))
    if dropped := evaluation.omitted:
        console.log(f"{len(evaluation.qrels)} {evaluation.split} queries; {dropped}")
    console.log(f"the report is in {folder}/")


def _is_given(ctx: typer.Context, parameter: str) -> bool:
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _given_runs(
    files: list[Path], qrels: Path | None, index: Path | None, split: str, output: Path | None
) -> tuple["Evaluation", Path]:
    """Read external runs and their judgements; return the evaluation and the report folder."""
    from citerec.evaluate.protocol import load_task
    from citerec.evaluate.report import Evaluation
    from citerec.folder import find_index, open_index
    from citerec.machine import provenance
    from citerec.run import read_qrels, read_run, trec_qrels

    if qrels is not None and index is not None:
        raise ConfigError("--qrels and --index are two sources of judgements; use one")
    if qrels is not None:
        corpus, gold, dropped = qrels.stem, read_qrels(qrels), dict[str, int]()
        split = "qrels"
    else:
        folder = open_index(find_index(index))
        task = load_task(folder, split)
        corpus, gold, dropped = folder.manifest.name, task.qrels, dict(task.left_out)
    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files]
    names = [
        stem if stems.count(stem) == 1 else f"{file.resolve().parent.name}/{stem}"
        for file, stem in zip(files, stems, strict=True)
    ]
    sources = {"runs": [str(file) for file in files], "qrels": str(qrels) if qrels else split}
    evaluation = Evaluation(
        corpus=corpus,
        split=split,
        known_graph=None,
        qrels=trec_qrels(gold),
        runs=[read_run(file, name) for file, name in zip(files, names, strict=True)],
        provenance=provenance(sources),
        left_out=dropped,
    )
    return evaluation, _report_folder(output, f"{corpus}-{split}-runs")


def _report_folder(output: Path | None, name: str) -> Path:
    """Return the report folder; refuse one that cannot be written, or holds anything but a report."""
    from citerec.evaluate.report import refuse_others_files
    from citerec.io import check_writable

    folder = output or REPORTS / name
    refuse_others_files(folder)
    check_writable(folder)
    return folder


def _own_systems(
    where: tuple[Path | None, str, Path | None],
    systems: str | None,
    retrievers: Sequence[str],
    config: "EvalConfig",
    rerank_options: RerankOptions,
    heap: str | None,
    console: ConsoleOutput,
    audited: bool,
) -> tuple["Evaluation", Path]:
    """Run citerec's own systems; return the evaluation and the report folder."""
    from citerec.evaluate.protocol import load_task
    from citerec.evaluate.report import Evaluation
    from citerec.evaluate.systems import (
        CEILINGS,
        RANKED,
        RERANKED,
        Systems,
        default_systems,
        weights,
    )
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm

    index, split, output = where
    named = None if systems is None else _system_names(systems)
    folder = open_index(find_index(index))
    rerank = rerank_options.config(folder, console, default=False)
    config = replace(config, fuse=weights(folder), rerank=rerank)
    names = named or default_systems(folder, rerank=rerank is not None, ranker=config.ranker)
    if systems == "all":  # without a reranker no reranked ones
        names = [name for name in names if rerank or name not in RERANKED]
    names = list(dict.fromkeys([*names, *retrievers]))
    ranks = bool(RANKED.keys() & {*names})
    if ranks:
        config = replace(config, ranker=measurable(config.ranker, folder, console))
    task = load_task(folder, split)
    target = _report_folder(output, f"{folder.manifest.name}-{split}")  # refused before the work
    start_jvm(heap)
    console.detail(f"{folder.path}: {len(task.queries)} {split} queries")
    with console.progress() as progress:
        running = Systems(folder, task, config, console.log, progress)
        running.check(names)
        reranking = _reranking(names, running, console)
        done: list[tuple[Run, float | None]] = []
        for number, name in enumerate(names):
            progress("systems", number, len(names))
            done.append(running.run(name))
        if audited:
            _audit([name for name in names if name not in CEILINGS], running, console, progress)
    evaluation = Evaluation(
        corpus=folder.manifest.name,
        split=split,
        known_graph=config.known_graph,
        qrels=task.qrels,
        runs=[run for run, _ in done],
        seconds={run.name: seconds for run, seconds in done},
        provenance=_provenance(folder, config, reranking, ranks=ranks),
        left_out=task.left_out,
        ceilings=CEILINGS & set(names),
    )
    return evaluation, target


def _system_names(systems: str) -> list[str]:
    from citerec.evaluate.systems import systems as all_systems

    known = all_systems()
    if systems == "all":
        return [*known]
    names = list(dict.fromkeys(name.strip() for name in systems.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"no system {unknown[0]!r}; choose from {', '.join(known)}, or all alone")
    return names


def _audit(
    names: list[str], systems: "Systems", console: ConsoleOutput, progress: "Progress"
) -> None:
    """Audit the run; print the faults and exit with 1 if there are any."""
    checked = systems.audit(names, progress)
    for fault in checked.faults[:FAULTS]:
        console.warn(f"audit: {fault}")
    if checked.faults:
        console.warn(f"audit: {len(checked.faults):,} faults in all")
        raise typer.Exit(1)
    console.log(str(checked))


def _reranking(names: list[str], systems: "Systems", console: ConsoleOutput) -> dict[str, Any]:
    """Open the reranker if a system needs it, and log it; return its facts for the report."""
    from citerec.evaluate.systems import RANKED, RERANKED

    reranked = [name for name in names if name in RERANKED or (systems.reranks and name in RANKED)]
    if not reranked:
        return {"rerank": [], "rerank_weights": {}}
    console.log(str(systems.cascade))
    weights = {name: systems.cascade_of(name).weight for name in reranked}
    if len({*weights.values()}) > 1:
        each = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        console.log(f"rerank weight: {each}")
    return {
        "rerank": [systems.cascade.as_json()],
        "rerank_weights": weights,
    }


def _provenance(
    folder: "IndexFolder", config: "EvalConfig", reranking: dict[str, Any], *, ranks: bool
) -> dict[str, object]:
    from citerec.machine import provenance
    from citerec.retrieve.bm25 import resolve

    corpus = {
        "sha256": folder.manifest.corpus["sha256"],
        "papers": folder.manifest.counts["papers"],
    }
    return provenance(
        {
            "corpus": corpus,
            "bm25": resolve(config.bm25, folder).model_dump(),
            "fuse": config.fuse.model_dump(),
            **reranking,
            "ranker": ranker_provenance(folder, config.ranker) if ranks else None,
            "depth": config.depth,
            "index": folder.manifest.settings,
        }
    )
