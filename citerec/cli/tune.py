"""`citerec tune`."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import Heap, Index, Quiet, Talk, Threads, Verbose, show
from citerec.cli.recommend import K1, B, StopWordsOption
from citerec.config import Bm25Config, DenseConfig, FuseConfig, FuseMethod, StopWords

if TYPE_CHECKING:
    from rich.table import Table

    from citerec.evaluate.tune import Tuning

SHOWN = ("f1@20", "mrr", "recall@100", "recall@1000", "ndcg@20")


class Metric(StrEnum):
    """What is tuned for."""

    F1 = "f1@20"
    MRR = "mrr"
    RECALL_100 = "recall@100"
    RECALL_1000 = "recall@1000"
    NDCG = "ndcg@20"
    MAP = "map"


def tune(
    index: Index = None,
    split: Annotated[str, typer.Option(help="Whose queries are asked; dev, as a rule.")] = "dev",
    metric: Annotated[Metric, typer.Option(help="What is to be highest.")] = Metric.F1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be found; leave the index alone.")
    ] = False,
    k1: K1 = 1.2,
    b: B = 0.75,
    stop_words: StopWordsOption = StopWords.AUTO,
    threads: Threads = 0,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find on the dev split how BM25 and vectors are best put together; `recommend` then does so."""
    from citerec.errors import ConfigError
    from citerec.evaluate.protocol import Setting, load_task
    from citerec.evaluate.tune import tune as run
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm
    from citerec.provenance import provenance
    from citerec.tuned import write_tuned

    talk = Talk(quiet, verbose)
    if split == "test" and not dry_run:
        raise ConfigError(
            "tuning on the test split would spoil every figure measured on it; say dev"
        )
    folder = open_index(find_index(index))
    task = load_task(folder, split)
    start_jvm(heap)
    setting = Setting(
        bm25=Bm25Config(k1=k1, b=b, stop_words=stop_words, threads=threads),
        dense=DenseConfig(threads=threads),
    )
    with talk.progress() as tell:
        tuning = run(folder, task, setting, str(metric), tell)
    show(_table(tuning))
    if dry_run:
        return
    best = tuning.best
    how = {"split": split, "queries": len(task.queries), "metric": str(metric)}
    told = provenance({**how, "metrics": best.metrics, "bm25": {"k1": k1, "b": b}})
    file = write_tuned(folder, best.fuse, told)
    talk.note(f"{_named(best.fuse)} is best on {split}; recommend uses it from now on ({file})")


def _table(tuning: "Tuning") -> "Table":
    from rich.table import Table

    table = Table("fusion", *SHOWN, box=None, pad_edge=False)
    best = tuning.best
    for trial in tuning.trials:
        style = "bold" if trial is best else None
        mark = " *" if trial is best else ""
        cells = (f"{trial.metrics[name]:.4f}" for name in SHOWN)
        table.add_row(f"{_named(trial.fuse)}{mark}", *cells, style=style)
    return table


def _named(fuse: FuseConfig) -> str:
    if fuse.method is FuseMethod.RRF:
        return f"rrf, k {fuse.k0}"
    return f"weighted, bm25 {fuse.bm25_weight:g} + dense {fuse.dense_weight:g}"
