"""`citerec.evaluate`: measures systems of an index, given by name or as objects, in one call."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from citerec.encode.machine import provenance
from citerec.errors import ConfigError
from citerec.evaluation.metrics import metric_names
from citerec.evaluation.protocol import EvalConfig, EvalSet, load_eval_set
from citerec.evaluation.report import Assessment, Evaluation, assess, write_report
from citerec.evaluation.systems import (
    CEILINGS,
    FUSIONS,
    RANKED,
    RERANKED,
    System,
    Systems,
    default_systems,
    systems,
)
from citerec.files.trec import trec_run
from citerec.index.folder import MODELS, RANKER, IndexFolder, PathLike, open_index
from citerec.rank.ltr import DEFAULT, SPEC
from citerec.rerank.reranker import choose_reranker, name_of
from citerec.retrieve.bm25 import resolve
from citerec.rules.held_out import trained_on_other_data
from citerec.types import Log, Progress, no_log, no_progress


def evaluate(
    systems: str | Sequence[str | System],
    index: PathLike | IndexFolder,
    *,
    split: str = "test",
    metrics: str | Sequence[str] = (),
    queries: int | None = None,
    config: EvalConfig | None = None,
    report: PathLike | None = None,
    log: Log = no_log,
    progress: Progress = no_progress,
) -> Assessment:
    """Measure systems on the papers of a split, by the citations that these make, and test their differences.

    >>> import citerec                                                          # doctest: +SKIP
    >>> print(citerec.evaluate(["bm25", mine], "indexes/sample", metrics=["ndcg@10"]))

    Args:
        systems: Names, as `citerec evaluate --systems` takes them, and objects: a `Retriever`, a `FirstStage`, a
            `Pipeline` or a `Recommender`. An object's `name` names it, else its class.
        index: An index, or its folder.
        split: train, dev or test.
        metrics: Metrics besides those of every report, by ranx's names.
        queries: A quick look: so many queries, evenly spread over the split; None for all.
        config: The settings of the systems that are named. Of a recommender only what it knows of the citation graph
            is set: `config.known_graph`.
        report: A folder for the report; None for none.
        log: Receives what the user should know of a system.
        progress: Receives the number of systems and of pairs that are reranked.

    Returns:
        The results, which `print` shows as a table: means with intervals, and tests of all pairs.

    Raises:
        ConfigError: If a system or metric is unknown, two have the same name, or a retriever returns what it must not.
        CiterecError: If a model or a part of the index cannot be opened.
    """
    if not isinstance(index, IndexFolder):
        index = open_index(index)
    config = config or EvalConfig()
    eval_set = load_eval_set(index, split)
    if queries is not None:
        if queries < 1:
            raise ConfigError(f"queries must be at least 1, got {queries}")
        eval_set = eval_set.spread(queries)
    compared = [systems] if isinstance(systems, str) else [*systems]
    if not compared:
        raise ConfigError('there is no system; name some, such as ["bm25", "ranker"]')
    evaluation = Evaluation(
        corpus=index.manifest.name,
        split=eval_set.split,
        known_graph=config.known_graph,
        qrels=eval_set.qrels,
        runs=(),
        metrics=metric_names(
            metrics if isinstance(metrics, str) else ",".join(metrics)
        ),
        left_out=eval_set.left_out,
        seed=config.seed,
    )
    evaluation, _ = with_systems(
        evaluation,
        index,
        eval_set,
        compared,
        config,
        log=log,
        warn=log,
        progress=progress,
    )
    return measured(evaluation, None if report is None else Path(report))


def measured(evaluation: Evaluation, report: Path | None) -> Assessment:
    """Measure the runs of an evaluation, record what made them, and write the report."""
    made_by = provenance({**evaluation.provenance})
    assessment = assess(replace(evaluation, provenance=made_by))
    if report is not None:
        write_report(assessment, report)
    return assessment


def with_systems(
    evaluation: Evaluation,
    index: IndexFolder,
    eval_set: EvalSet,
    wanted: Sequence[str | System] | None,
    config: EvalConfig,
    *,
    log: Log,
    warn: Log,
    progress: Progress,
) -> tuple[Evaluation, Systems]:
    """Run systems, by default those that suit the index, and add their runs to an evaluation after those it has."""
    rerank = choose_reranker(config.rerank or "auto", index, same_data=True, warn=warn)
    config = config.replace(rerank=rerank)
    if wanted is None:
        wanted = default_systems(index, config, rerank=rerank is not None)
    elif [*wanted] == ["all"]:
        wanted = [name for name in systems() if rerank or name not in RERANKED]
    known = systems()
    objects: dict[str, System] = {}
    names: list[str] = []
    for system in (*wanted, *config.retrievers):
        name = system if isinstance(system, str) else name_of(system)
        names.append(name)
        if isinstance(system, str):
            if name not in known:
                raise ConfigError(
                    f"no system {name!r}; choose from {', '.join(known)}, or all alone"
                )
        elif name in objects or name in known:
            raise ConfigError(
                f"two systems are named {name!r}; give one another attribute `name`"
            )
        else:
            objects[name] = system
    names = [*dict.fromkeys(names)]
    ranks = bool(RANKED.keys() & {*names})
    if ranks:
        config = config.replace(ranker=measurable(config.ranker, index, warn))
    opened = Systems(index, eval_set, config, log, progress, objects)
    opened.check([name for name in names if name not in objects])
    reranked = [
        name for name in names if name in RERANKED or (rerank and name in RANKED)
    ]
    # before the work, as it may fail
    reranker = opened.open_reranker if reranked else None
    if reranker:
        log(str(reranker))
    runs = [*evaluation.runs]
    seconds = dict[str, float | None]()
    for number, name in enumerate(names):
        progress("systems", number, len(names))
        run, took = opened.run(name)
        # a fusion of more than BM25 and the vectors names what else it fuses
        more = config.retrievers if name in FUSIONS else ()
        run = replace(run, name="+".join([name, *more]))
        seconds[run.name] = took
        runs.append(trec_run(run) if evaluation.runs else run)
    ranker = opened.ranker_of("ranker") if ranks else None
    manifest = index.manifest
    settings = {
        "corpus": {
            "sha256": manifest.corpus["sha256"],
            "papers": manifest.counts["papers"],
        },
        "retrievers": config.retrievers,
        "bm25": resolve(config.bm25, index).model_dump(),
        "fuse": config.fuse.model_dump(),
        "rerank": [reranker.as_json()] if reranker else [],
        "rerank_weights": {name: opened.reranker_of(name).weight for name in reranked},
        "ranker": {"model": ranker.shown, "weights": ranker.fingerprint}
        if ranker
        else None,
        "depth": config.depth,
        "index": manifest.settings,
    }
    measured = replace(
        evaluation,
        runs=runs,
        seconds=seconds,
        provenance={**evaluation.provenance, **settings},
        ceilings=CEILINGS & {*names},
    )
    return measured, opened


def measurable(ranker: str, index: IndexFolder, warn: Log) -> str:
    """Return the model to evaluate: that of the index only if it was not trained on the current test queries."""
    own = index.own_model(RANKER, SPEC) if ranker == "auto" else None
    if own is None or not trained_on_other_data(own, index):
        return ranker
    warn(
        f"{MODELS}/{RANKER} is not used: it was trained on other papers or splits, which may include test "
        f"queries; train it again: citerec train-ranker --index {index.path} --force, or use it anyway: --ranker {own}"
    )
    return str(DEFAULT)
