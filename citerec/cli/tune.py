"""`citerec tune`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, show
from citerec.cli.options import BM25, RERANK, Index, Split, open_named, settings_options, under
from citerec.errors import ConfigError
from citerec.evaluate.protocol import EvalConfig

if TYPE_CHECKING:
    from rich.table import Table

    from citerec.evaluate.protocol import EvalSet
    from citerec.evaluate.tune import Choice, Tuning

SHOWN = ("f1@20", "mrr", "recall@100", "recall@1000", "ndcg@20")
FLAGS = {
    "--retriever": "retrievers",
    **under("bm25", {flag: field for flag, field in BM25.items() if field != "form"}),
    **under("rerank", {flag: field for flag, field in RERANK.items() if field != "weight"}),
    "--threads": "bm25.threads dense.threads rerank.threads",
}


@settings_options
def tune(
    *,
    index: Index = None,
    split: Split = "dev",
    metric: Annotated[
        str, typer.Option(help=f"The metric to maximise: {', '.join(SHOWN)} or map.")
    ] = "f1@20",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the result without changing the index.")
    ] = False,
    config: Annotated[EvalConfig, FLAGS],
    console: ConsoleOutput,
) -> None:
    """Tune fusion and rerank weight on the dev split; `recommend` uses them if they are significantly better."""
    from citerec.evaluate.protocol import load_task
    from citerec.evaluate.tune import tune as run
    from citerec.io import check_writable
    from citerec.rerank.reranker import choose_reranker
    from citerec.tuned import FOLDER, kept_rerank_weight, read_tuned, shown_fusion, write_tuned

    if split == "test" and not dry_run:
        raise ConfigError(
            "tuning on the test split would invalidate every metric on it; use --split dev"
        )
    folder = open_named(index)
    if not dry_run:
        check_writable(folder.models / FOLDER)
    wanted = config.rerank or "auto"
    rerank = choose_reranker(wanted, folder, default=False, same_data=True, warn=console.warn)
    config, task = config.replace(rerank=rerank), load_task(folder, split)
    with console.progress() as progress:
        tuning = run(folder, task, config, metric, progress, console.log)
    choices: list[tuple[str, Choice, Callable[[Any], str], str]] = []
    if tuning.fusion:
        choices.append(("fusion", tuning.fusion, shown_fusion, ""))
    if tuning.weight:
        alone = f" ({tuning.reranker}; without a learning-to-rank model)"
        choices.append(("rerank weight", tuning.weight, "{:g}".format, alone))
    for name, choice, shown, _ in choices:
        show(table(name, choice, shown))
    for name, choice, shown, condition in choices:
        console.log(f"{name}: {verdict_on(choice, shown, tuning.metric, split)}{condition}")
    if not dry_run:
        used = config.retrievers
        fuse = tuning.fusion.used if tuning.fusion else read_tuned(folder, used)
        weight, tried = tuning.rerank, tuning.reranker
        before = kept_rerank_weight(folder)  # it stays if it was not tuned again
        if not weight and before and not (tried and tried.settings["weights"] == before.reranker):
            weight = before
        file = write_tuned(folder, fuse, record(tuning, task, config), weight, used)
        console.log(f"recommend uses these settings from now on ({file})")


def record(tuning: "Tuning", task: "EvalSet", config: EvalConfig) -> dict[str, Any]:
    """Return how the settings were found, for the file of tuned settings."""
    from citerec.machine import provenance

    fusion, weight = tuning.fusion, tuning.weight
    return provenance(
        {
            "split": task.split,
            "queries": len(task.queries),
            "metric": tuning.metric,
            "metrics": fusion.best.metrics if fusion else None,
            "bm25": {"k1": config.bm25.k1, "b": config.bm25.b},
            "checks": {
                "fusion": fusion.check.to_json() if fusion else None,
                "weight": weight.check.to_json() if weight else None,
            },
            "reranking": str(tuning.reranker or ""),
            "reranked_metrics": weight.best.metrics if weight else None,
        }
    )


def verdict_on(choice: "Choice", shown: Callable[[Any], str], metric: str, split: str) -> str:
    """Return what is best, whether it is used, and why."""
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


def table(what: str, choice: "Choice", shown: Callable[[Any], str]) -> "Table":
    """Return a table with a row per trial; the best is marked."""
    from rich.table import Table

    table = Table(what, *SHOWN, box=None, pad_edge=False)
    for trial in choice.trials:
        mark, style = (" *", "bold") if trial is choice.best else ("", None)
        cells = (f"{trial.metrics[metric]:.4f}" for metric in SHOWN)
        table.add_row(f"{shown(trial.setting)}{mark}", *cells, style=style)
    return table
