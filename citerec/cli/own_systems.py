"""Runs citerec's own systems for `citerec evaluate`."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from citerec.cli.console import ConsoleOutput, track
from citerec.cli.given_runs import report_folder
from citerec.cli.rank import measurable, ranker_provenance
from citerec.cli.rerank import (
    RerankOptions,
)
from citerec.config import RerankConfig
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.protocol import EvalConfig
    from citerec.evaluate.systems import Systems
    from citerec.folder import IndexFolder
    from citerec.rerank.cascade import Cascade
    from citerec.types import Progress

FAULTS = 5  # faults of an audit that are printed


def own_systems(
    index: Path | None,
    split: str,
    systems: str | None,
    eval_config: "EvalConfig",
    rerank_options: RerankOptions,
    heap: str | None,
    output: Path | None,
    console: ConsoleOutput,
    audited: bool,
    ray: str | None = None,
) -> tuple["Evaluation", Path]:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.bias import cited_stats
    from citerec.evaluate.bins import years_of
    from citerec.evaluate.catalogue import CEILINGS, RANKED, default_systems, weights
    from citerec.evaluate.overlap import overlaps
    from citerec.evaluate.protocol import load_task
    from citerec.evaluate.report_folder import refuse_meeting_papers, refuse_meeting_qrels
    from citerec.evaluate.systems import Systems
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm

    named = None if systems is None else _system_names(systems)
    folder = open_index(find_index(index))
    eval_config = replace(
        eval_config,
        fuse=weights(folder),
        rerank=rerank_options.config(folder, console, default=False),
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
    with (
        _rerankers_elsewhere(ray, rerank_options.threads, console) as elsewhere,
        console.progress() as progress,
    ):
        running = Systems(folder, task, eval_config, console.log, progress, elsewhere)
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


@contextmanager
def _rerankers_elsewhere(
    ray: str | None, threads: int, console: ConsoleOutput
) -> "Generator[Callable[[Cascade], Cascade] | None]":
    """Connect to the cluster of `--ray`, which runs the rerankers; None without the option."""
    if ray is None:
        yield None
        return
    from citerec.distributed.cluster import connected
    from citerec.distributed.scoring import RayScorers

    with connected(ray) as cluster, ExitStack() as stack:
        yield RayScorers(cluster, stack, threads, console.log)


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
    weights = {name: systems.cascade_of(name).rerankers[-1].weight for name in reranked}
    if len({*weights.values()}) > 1:
        each = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        console.log(f"rerank weight: {each}")
    rerankers = [one.as_json() for one in systems.cascade.rerankers]
    return {"rerank": rerankers, "rerank_weights": weights}


def _system_names(systems: str) -> list[str]:
    from citerec.evaluate.catalogue import systems as all_systems

    requested = all_systems() if systems == "all" else (name.strip() for name in systems.split(","))
    names = list(dict.fromkeys(requested))
    if "all" in names:
        raise ConfigError("all stands for every system; name it alone")
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

    from citerec.provenance import provenance
    from citerec.retrieve.bm25 import resolve

    bm25 = resolve(eval_config.bm25, folder).model_dump()
    corpus = {
        "sha256": folder.manifest.corpus["sha256"],
        "papers": folder.manifest.counts["papers"],
    }
    return provenance(
        {
            "corpus": corpus,
            "bm25": bm25,
            "fuse": eval_config.fuse.model_dump(),
            **reranking,
            "ranker": ranker_provenance(folder, eval_config.ranker) if ranks else None,
            "depth": eval_config.depth,
            "index": folder.manifest.settings,
        }
    )
