"""`citerec tune`."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, show
from citerec.cli.options import Heap, Index, Quiet, Threads, Verbose
from citerec.cli.rerank import (
    K1,
    B,
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    DtypeOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
    RerankOptions,
    StopWordsOption,
)
from citerec.config import Bm25Config, DenseConfig, StopWords
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from citerec.evaluate.protocol import EvalConfig, EvalSet
    from citerec.evaluate.tune import Choice, Tuning
    from citerec.folder import IndexFolder
    from citerec.tuned import RerankWeight

SHOWN = ("f1@20", "mrr", "recall@100", "recall@1000", "ndcg@20")


class Metric(StrEnum):
    """The tuned metric."""

    F1 = "f1@20"
    MRR = "mrr"
    RECALL_100 = "recall@100"
    RECALL_1000 = "recall@1000"
    NDCG = "ndcg@20"
    MAP = "map"


def tune(
    index: Index = None,
    split: Annotated[str, typer.Option(help="The split of the queries; usually dev.")] = "dev",
    metric: Annotated[Metric, typer.Option(help="The metric to maximise.")] = Metric.F1,
    reranker: RerankerOption = None,
    rerank_depth: RerankDepthOption = None,
    query_tokens: QueryTokensOption = None,
    candidate_tokens: CandidateTokensOption = None,
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    backend: BackendOption = Backend.AUTO,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the result without changing the index.")
    ] = False,
    k1: K1 = 1.2,
    b: B = 0.75,
    stop_words: StopWordsOption = StopWords.AUTO,
    threads: Threads = 0,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Tune fusion and rerank weight on the dev split; `recommend` uses them if they are significantly better."""
    from citerec.evaluate.protocol import EvalConfig, load_task
    from citerec.evaluate.tune import tune as run
    from citerec.folder import find_index, open_index
    from citerec.io import check_writable
    from citerec.java import start_jvm
    from citerec.tuned import FOLDER, read_tuned, write_tuned

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    if not dry_run:
        _refuse_test(split)
    folder = open_index(find_index(index))
    if not dry_run:
        check_writable(folder.models / FOLDER)
    rerank = RerankOptions(
        model=reranker,
        depth=rerank_depth,
        query_tokens=query_tokens,
        candidate_tokens=candidate_tokens,
        device=device,
        precision=dtype,
        backend=backend,
        threads=threads,
        measures=True,
    ).config(folder, console, default=False)
    task = load_task(folder, split)
    start_jvm(heap)
    eval_config = EvalConfig(
        bm25=Bm25Config(k1=k1, b=b, stop_words=stop_words, threads=threads),
        dense=DenseConfig(threads=threads),
        rerank=rerank,
    )
    with console.progress() as progress:
        tuning = run(folder, task, eval_config, str(metric), progress, console.log)
    for table in _tables(tuning):
        show(table)
    for line in _verdicts(tuning, split):
        console.log(line)
    if dry_run:
        return
    fuse = tuning.fusion.used if tuning.fusion else read_tuned(folder)
    file = write_tuned(folder, fuse, _how(tuning, task, eval_config), _weight(tuning, folder))
    console.log(f"recommend uses these settings from now on ({file})")


def _refuse_test(split: str) -> None:
    if split == "test":
        raise ConfigError(
            "tuning on the test split would invalidate every metric on it; use --split dev"
        )


def _how(tuning: "Tuning", task: "EvalSet", eval_config: "EvalConfig") -> dict[str, Any]:
    """Return how the settings were found, for the file of tuned settings."""
    from citerec.machine import provenance

    fusion, weight = tuning.fusion, tuning.weight
    return provenance(
        {
            "split": task.split,
            "queries": len(task.queries),
            "metric": tuning.metric,
            "metrics": fusion.best.metrics if fusion else None,
            "bm25": {"k1": eval_config.bm25.k1, "b": eval_config.bm25.b},
            "checks": {
                "fusion": fusion.check.to_json() if fusion else None,
                "weight": weight.check.to_json() if weight else None,
            },
            "reranking": str(tuning.reranker or ""),
            "reranked_metrics": weight.best.metrics if weight else None,
        }
    )


def _weight(tuning: "Tuning", folder: "IndexFolder") -> "RerankWeight | None":
    """Return the weight to write: the new one, or an earlier one that was not tuned again."""
    from citerec.tuned import kept_rerank_weight

    before, tried = kept_rerank_weight(folder), tuning.reranker
    if tuning.rerank or before is None or tried is None:
        return tuning.rerank or before
    return before if before.reranker != tried.settings["weights"] else None


def _verdicts(tuning: "Tuning", split: str) -> Iterator[str]:
    """Yield what is best, whether it is used, and why."""
    from citerec.tuned import shown_fusion

    if tuning.fusion:
        yield f"fusion: {_verdict(tuning.fusion, shown_fusion, tuning.metric, split)}"
    if tuning.weight:
        verdict = _verdict(tuning.weight, "{:g}".format, tuning.metric, split)
        yield f"rerank weight: {verdict} ({tuning.reranker}; without a learning-to-rank model)"


def _verdict(choice: "Choice[Any]", shown: Callable[[Any], str], metric: str, split: str) -> str:
    from citerec.evaluate.significance import ALPHA

    check, trial = choice.check, choice.best
    best, default = shown(trial.setting), shown(choice.trials[choice.default].setting)
    score, queries = trial.metrics[metric], f"{check.queries:,} {split} queries"
    if best == default:
        return f"{default}, the default, is best on {queries} ({metric} {score:.4f})"
    result = (
        f"{best} is best on {queries} ({metric} {score:.4f}, the default {default} {check.default:.4f}); "
        f"in {check.folds}-fold cross-validation tuning gives {check.tuned:.4f} "
        f"(p {check.p:.2g} against the default)"
    )
    if check.is_better:
        return f"{result}: used"
    return f"{result}: not used, since it is not significantly better (p < {ALPHA:g}); {default} is used"


def _tables(tuning: "Tuning") -> "Iterator[Table]":
    from citerec.tuned import shown_fusion

    if tuning.fusion:
        yield _table("fusion", tuning.fusion, shown_fusion)
    if tuning.weight:
        yield _table("rerank weight", tuning.weight, "{:g}".format)


def _table(what: str, choice: "Choice[Any]", shown: Callable[[Any], str]) -> "Table":
    from rich.table import Table

    table = Table(what, *SHOWN, box=None, pad_edge=False)
    best = choice.best
    for trial in choice.trials:
        mark, style = (" *", "bold") if trial is best else ("", None)
        cells = (f"{trial.metrics[metric]:.4f}" for metric in SHOWN)
        table.add_row(f"{shown(trial.setting)}{mark}", *cells, style=style)
    return table
