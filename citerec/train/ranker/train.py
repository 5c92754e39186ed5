"""Trains the learning-to-rank model on the citations of one or several indexes: examples, trees, the model folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.atomic import building, check_writable
from citerec.encode.config import EncodeConfig
from citerec.encode.opening import reopen
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError, ModelError, writing
from citerec.folder import IndexFolder
from citerec.pipeline import FirstStage
from citerec.rank.ltr import SPEC, Variant
from citerec.rules.held_out import held_out
from citerec.train.ranker.ablation import DevEvaluation, ablations, measure
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples, is_reranked
from citerec.train.ranker.gather import Gatherer, KeptExamples, MatrixScores
from citerec.train.ranker.modelfolder import RankerResult, write_ranker
from citerec.train.ranker.models import (
    IndexModels,
    allowed,
    check_rerankers,
    identity,
    recorded_settings,
    rerankable,
    rerankers_of,
)
from citerec.train.ranker.queries import dev_queries, load_train
from citerec.train.ranker.variants import FOLDS, IndexExamples, KeptTrees, Measures, fit_variant
from citerec.train.record import check_target
from citerec.train.record import was_trained_so as has_record
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerReport:
    """The result of the training of a learning-to-rank model."""

    output: Path
    queries: int  # training queries
    before: Measures  # of the dev queries in first-stage order
    after: Mapping[Variant, Measures]
    trees: Mapping[Variant, int]
    calibrated: bool  # whether the model has calibrated probabilities


def train_ranker(
    indexes: Sequence[IndexFolder],
    output: Path,
    config: RankerTraining,
    *,
    apart: Sequence[IndexFolder] = (),
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
    finders: Mapping[str, FirstStage] | None = None,
) -> RankerReport:
    """Train a learning-to-rank model on the citations of indexes; the model folder is created complete at the end.

    During the training its state (examples and trees) is in a training folder next to the model folder.

    Args:
        indexes: Their train queries are the training data; their dev queries select the number of trees.
        output: The model folder to create.
        config: The settings.
        apart: Further indexes whose dev and test queries are held out of the training data.
        resume: Continue an interrupted training; the model is the same as without the interruption.
        force: Replace an existing model.
        progress: Receives task, done and total of each kind of work.
        log: Receives the measures and warnings.
        finders: Candidate retrievers by the name of the index; those of `recommend` by default.

    Raises:
        ConfigError: If there is nothing to train on.
        ModelError: If a model of an index is missing.
        ModelExistsError: If there is a model at `output` and `force` is false.
        OutputError: If the folder cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_writable(output)
    rerankers = rerankers_of(indexes, config)
    check_indexes([index for index in indexes if _name(index) not in (finders or {})])
    check_rerankers(indexes, rerankers, log)
    workspace = Workspace.for_model(output)
    with writing(workspace.folder), workspace.removed_if_refused():
        identities = {
            "indexes": [*map(identity, indexes, rerankers)],
            "apart": [identity(index, None) for index in apart],
        }
        if workspace.open(config.to_json() | identities, resume=resume, log=log):
            log(f"resuming from {workspace.folder}")
        examples_by_index: list[IndexExamples] = []
        for number, index in enumerate(indexes):
            others = [other for other in (*indexes, *apart) if other is not index]
            finder = (finders or {}).get(_name(index))
            kept = [KeptExamples(workspace, f"examples-{number}.{n}") for n in ("train", "dev")]
            examples_by_index.append(
                gather_examples(
                    index,
                    rerankers[number],
                    others,
                    config,
                    progress=progress,
                    log=log,
                    finder=finder,
                    kept=kept,
                )
            )
    fits = len(Variant) * (1 + FOLDS * any(examples.dev_teaches for examples in examples_by_index))
    kept_trees = KeptTrees(workspace.folder, fits, progress)
    try:
        report = train_on(examples_by_index, output, config, log, kept_trees)
    except ConfigError:  # there is nothing to learn in these examples, also later
        workspace.remove()
        raise
    workspace.remove()
    return report


def was_trained_so(model: Path, indexes: Sequence[IndexFolder], config: RankerTraining) -> bool:
    """Return whether a model was trained on these papers, splits and vectors with these settings."""
    try:
        facts = {"indexes": [*map(identity, indexes, rerankers_of(indexes, config))]}
    except (ConfigError, ModelError):  # a reranker is missing
        return False
    return has_record(model, config, recorded_settings(config, indexes), facts)


def check_indexes(indexes: Sequence[IndexFolder]) -> None:
    """Check that the encoders of all indexes can be opened, before the first index is searched.

    Raises:
        ModelError: If one is missing.
    """
    for index in indexes:
        recorded = index.manifest.settings.get("encoder")
        if recorded:
            reopen(Fingerprint.from_json(recorded), index.path, EncodeConfig())


def train_on(
    examples_by_index: Sequence[IndexExamples],
    output: Path,
    config: RankerTraining,
    log: Log,
    kept: KeptTrees | None = None,
    variants: Sequence[Variant] = tuple(Variant),
) -> RankerReport:
    """Train a model on gathered examples; otherwise as `train_ranker`.

    By default no state is saved, and all variants are trained; `Variant.FULL` must be among `variants`.
    """
    kept = kept or KeptTrees()
    fits = {variant: fit_variant(examples_by_index, variant, config, kept) for variant in variants}
    dev = RankerExamples.joined([examples.dev for examples in examples_by_index])
    full = fits[Variant.FULL]
    after = {variant: fit.measures for variant, fit in fits.items()}
    report = RankerReport(
        output=output,
        queries=full.queries,
        before=_first_stage_measures(dev),
        after=after,
        trees={variant: fit.trees.rounds for variant, fit in fits.items()},
        calibrated=full.calibration is not None,
    )
    for variant, measures in after.items():
        log(f"{variant}: {_measures_text(measures)} on dev, {report.trees[variant]} trees")
    if not report.calibrated:
        log(
            "too few cited papers in the dev lists to calibrate: recommendations have no probability"
        )
    result = RankerResult(
        indexes=[_index_facts(examples) for examples in examples_by_index],
        before=report.before,
        after={str(variant): dict(measures) for variant, measures in after.items()},
        by_index=_by_index(examples_by_index, full.evaluations),
        ablations=ablations(full.evaluations),
        models={variant: fit.trees for variant, fit in fits.items()},
        calibrations={v: fit.calibration for v, fit in fits.items() if fit.calibration},
    )
    with building(output) as folder:
        settings = recorded_settings(config, [examples.index for examples in examples_by_index])
        write_ranker(folder, result, settings)
    return report


def gather_examples(
    index: IndexFolder,
    reranker: str | None,
    other_indexes: Sequence[IndexFolder],
    config: RankerTraining,
    *,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
    finder: FirstStage | None = None,
    kept: Sequence[KeptExamples] = (),
    first_order: MatrixScores | None = None,
) -> IndexExamples:
    """Return the training and dev examples of an index.

    Args:
        index: The index.
        reranker: Its reranker; None for none.
        other_indexes: Their dev and test queries are held out of the training data.
        config: The settings.
        progress: Receives the number of gathered queries.
        log: Receives what is left out.
        finder: The candidate retriever; that of `recommend` by default.
        kept: Where the examples of train and of dev queries are saved; by default nowhere.
        first_order: As for `Gatherer`.
    """
    kept = kept or (KeptExamples(), KeptExamples())
    models = IndexModels(reranker=reranker)
    restricted = IndexModels.of_train_queries(index, reranker)
    gatherer = Gatherer(index, config, log, finder, models, first_order)
    data = load_train(index)
    if restricted != models:
        pairs = (("encoder", restricted.encoder), ("reranker", restricted.reranker == reranker))
        excluded = " and ".join(name for name, is_run in pairs if not is_run)
        log(
            f"{_name(index)}: the citations of the train queries are training data of the {excluded}; "
            "the train queries are searched without, and the dev queries are training data, too"
        )
    if data is None:
        log(f"{_name(index)}: no train query cites an eligible paper")
    train = empty = RankerExamples.joined([])
    if data and other_indexes:
        is_free = allowed(held_out(other_indexes, ("dev", "test")), index, data)
        if not is_free.all():
            log(
                f"{_name(index)}: {(~is_free).sum():,} train queries are dropped: held out in another index"
            )
        data = data.only(np.flatnonzero(is_free))
    if data:
        by_train = gatherer
        if restricted != models:
            by_train = Gatherer(index, config, log, finder, restricted, first_order)
        unseen = rerankable(index, data, restricted.reranker, other_indexes)
        if not unseen.all():
            log(
                f"{_name(index)}: {(~unseen).sum():,} train queries are not reranked: {reranker} was trained on them "
                "in another index"
            )
        train = by_train.train(data, progress, kept[0], unseen)
    dev = dev_queries(index, config, held_out(other_indexes, ("test",)))
    whole = gatherer.whole(dev, progress, kept[1]) if dev else empty
    return IndexExamples(index, train, whole, restricted != models, reranker)


def _first_stage_measures(dev: RankerExamples) -> Measures:
    return dev.measures(-np.arange(len(dev.cited), dtype=np.float64))


def _by_index(
    examples_by_index: Sequence[IndexExamples], evaluations: Sequence[DevEvaluation]
) -> list[tuple[str, Measures, Measures]]:
    return [
        (
            _name(examples.index),
            _first_stage_measures(examples.dev),
            measure([by for by in evaluations if by.index is examples.index]),
        )
        for examples in examples_by_index
        if len(examples.dev)
    ]


def _index_facts(examples: IndexExamples) -> dict[str, Any]:
    return {
        "name": _name(examples.index),
        **identity(examples.index, examples.reranker),
        "papers": len(examples.index.papers),
        "train_queries": len(examples.train),
        "dev_queries": len(examples.dev),
        "train_queries_reranked": is_reranked(examples.train),
        "dev_queries_teach": examples.dev_teaches,
    }


def _name(index: IndexFolder) -> str:
    return index.manifest.name


def _measures_text(measure: Measures) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in measure.items())
