"""`citerec evaluate`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, Heap, Index, Quiet, Threads, Verbose, show
from citerec.cli.given_runs import given_runs
from citerec.cli.own_systems import own_systems
from citerec.cli.recommend import K1, B, StopWordsOption
from citerec.cli.rerank import (
    OPTIONS,
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    DtypeOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
    RerankOptions,
    RerankWeightOption,
)
from citerec.config import Bm25Config, DenseConfig, StopWords
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError
from citerec.text import QueryForm

UNUSED_WITH_RUNS = (  # options of the pipeline, without effect on external runs
    "systems",
    "k1",
    "b",
    "query_form",
    "stop_words",
    "ranker",
    "audit",
    "ray",
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
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Run the reranker on a Ray cluster, such as 10.0.0.1:6379; local for workers on this machine, of "
            "--threads each.",
        ),
    ] = None,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate rankings against the citations of papers, and write a report."""
    from citerec.atomic import destination
    from citerec.evaluate.assessment import assess
    from citerec.evaluate.contents import left_out, summary_table
    from citerec.evaluate.protocol import EvalConfig
    from citerec.evaluate.report.terminal import terminal
    from citerec.evaluate.report_folder import refuse_others_files, write_report
    from citerec.rules.known import PROTOCOL, CitationScope

    if known_graph not in PROTOCOL:
        raise ConfigError(f"--known-graph must be train or earlier, got {known_graph!r}")
    console = ConsoleOutput(quiet, verbose)
    bm25 = Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads)
    dense = DenseConfig(threads=threads)
    eval_config = EvalConfig(
        bm25=bm25, dense=dense, known_graph=CitationScope(known_graph), seed=seed
    )
    eval_config = replace(eval_config, ranker=ranker)
    if output is not None:
        refuse_others_files(destination(output))
    if run:
        if unused := [name for name in UNUSED_WITH_RUNS if _is_given(ctx, name)]:
            option = f"--{unused[0].replace('_', '-')}"
            raise ConfigError(f"{option} has no effect with --run: the rankings of a run are fixed")
        if qrels is not None and not _is_given(ctx, "index"):
            index = None  # of a settings file; qrels replace it
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
        result = own_systems(
            index, split, systems, eval_config, rerank_options, heap, output, console, audit, ray
        )
        evaluation, folder = result
    assessment = assess(evaluation)
    write_report(assessment, folder)
    show(terminal(summary_table(assessment)))
    if dropped := left_out(assessment):
        console.log(f"{len(evaluation.qrels)} {evaluation.split} queries; {dropped}")
    console.log(f"the report is in {folder}/")


def _is_given(ctx: typer.Context, parameter: str) -> bool:
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")
