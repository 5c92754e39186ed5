"""`citerec tune`."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import Heap, Index, Quiet, Talk, Threads, Verbose, show
from citerec.cli.recommend import K1, B, StopWordsOption
from citerec.cli.rerank import (
    Asked,
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    PrecisionOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
)
from citerec.config import Bm25Config, DenseConfig, FuseConfig, FuseMethod, StopWords
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from citerec.evaluate.protocol import Setting, Task
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
    reranker: RerankerOption = None,
    rerank_depth: RerankDepthOption = None,
    query_tokens: QueryTokensOption = None,
    candidate_tokens: CandidateTokensOption = None,
    device: DeviceOption = "auto",
    dtype: PrecisionOption = Precision.AUTO,
    backend: BackendOption = Backend.AUTO,
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
    """Find on the dev split how the stages are best put together; `recommend` then does so."""
    from citerec.evaluate.protocol import Setting, load_task
    from citerec.evaluate.tune import tune as run
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm
    from citerec.tuned import kept_rerank_weight, write_tuned

    talk = Talk(quiet, verbose)
    if not dry_run:
        _refuse_test(split)
    folder = open_index(find_index(index))
    rerank = Asked(
        models=reranker,
        depths=rerank_depth,
        query_tokens=query_tokens,
        candidate_tokens=candidate_tokens,
        device=device,
        precision=dtype,
        backend=backend,
        threads=threads,
        measures=True,
    ).config(folder, talk)
    task = load_task(folder, split)
    start_jvm(heap)
    setting = Setting(
        bm25=Bm25Config(k1=k1, b=b, stop_words=stop_words, threads=threads),
        dense=DenseConfig(threads=threads),
        rerank=rerank,
    )
    with talk.progress() as tell:
        tuning = run(folder, task, setting, str(metric), tell, talk.note)
    for table in _tables(tuning):
        show(table)
    if dry_run:
        return
    weight = tuning.rerank or kept_rerank_weight(folder)
    file = write_tuned(folder, tuning.fuse, _how(tuning, task, setting), weight)
    talk.note(f"{_found(tuning)} on {split}; recommend uses it from now on ({file})")


def _refuse_test(split: str) -> None:
    if split == "test":
        raise ConfigError(
            "tuning on the test split would spoil every figure measured on it; say dev"
        )


def _how(tuning: "Tuning", task: "Task", setting: "Setting") -> dict[str, Any]:
    """Return what is kept of how it was found."""
    from citerec.provenance import provenance

    return provenance(
        {
            "split": task.split,
            "queries": len(task.queries),
            "metric": tuning.metric,
            "metrics": tuning.best.metrics if tuning.trials else None,
            "bm25": {"k1": setting.bm25.k1, "b": setting.bm25.b},
            "reranking": tuning.reranking,
            "reranked_metrics": tuning.best_weight.metrics if tuning.best_weight else None,
        }
    )


def _found(tuning: "Tuning") -> str:
    """Say what is best."""
    best = [f"{_named(tuning.fuse)} is best"] if tuning.trials else []
    if weight := tuning.best_weight:
        best.append(f"{tuning.reranking} is best with weight {weight.weight:g}")
    return ", ".join(best)


def _tables(tuning: "Tuning") -> "Iterator[Table]":
    if tuning.trials:
        fused = [(_named(t.fuse), t.metrics, t is tuning.best) for t in tuning.trials]
        yield _table("fusion", fused)
    if tuning.weights:
        best = tuning.best_weight
        yield _table(
            "reranker's weight", [(f"{t.weight:g}", t.metrics, t is best) for t in tuning.weights]
        )


def _table(what: str, rows: Iterable[tuple[str, Mapping[str, float], bool]]) -> "Table":
    from rich.table import Table

    table = Table(what, *SHOWN, box=None, pad_edge=False)
    for name, metrics, is_best in rows:
        cells = (f"{metrics[metric]:.4f}" for metric in SHOWN)
        mark, style = (" *", "bold") if is_best else ("", None)
        table.add_row(f"{name}{mark}", *cells, style=style)
    return table


def _named(fuse: FuseConfig) -> str:
    if fuse.method is FuseMethod.RRF:
        return f"rrf, k {fuse.k0}"
    return f"weighted, bm25 {fuse.bm25_weight:g} + dense {fuse.dense_weight:g}"
