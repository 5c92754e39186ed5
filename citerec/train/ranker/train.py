"""Trains the final ranker on the citations of one index or of several: examples, trees, the model folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from citerec.atomic import building, check_writable
from citerec.errors import ConfigError, writing
from citerec.folder import IndexFolder
from citerec.pipeline import Finder
from citerec.provenance import provenance
from citerec.rank.probability import Calibration
from citerec.rank.ranker import SPEC, Variant
from citerec.train.modelfolder import check_target
from citerec.train.ranker.ablation import DevEvaluation, ablations, measured
from citerec.train.ranker.apart import held_out
from citerec.train.ranker.boost import Trees
from citerec.train.ranker.calibrate import calibrated
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples, with_copies
from citerec.train.ranker.gather import ExcludedModels, Gatherer, dev_queries, load_train
from citerec.train.ranker.inputs import check_indexes, identity_of
from citerec.train.ranker.kept import KeptExamples, KeptTrees
from citerec.train.ranker.modelfolder import RankerRecord, write_ranker
from citerec.train.start import resume_or_discard
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

Measures = Mapping[str, float]  # f1@20 and mrr


@dataclass(frozen=True, slots=True, eq=False)
class IndexExamples:
    """What one index teaches."""

    index: IndexFolder
    train: Examples  # of train queries, asked without the models that are spared
    dev: Examples  # whole pools
    dev_teaches: bool  # whether there is such a model: then dev queries are learned from, too


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerReport:
    """What a training made."""

    output: Path
    queries: int  # that were learned from
    before: Measures  # of the dev queries, as the pool stood
    after: Mapping[Variant, Measures]
    trees: Mapping[Variant, int]
    calibrated: bool  # whether its scores have probabilities


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
    finders: Mapping[str, Finder] | None = None,
) -> RankerReport:
    """Train a ranker on the citations of indexes; the model folder appears whole, at the end.

    Until then there is a training folder beside it, which keeps the examples and trees so far.

    Args:
        indexes: Whose train queries it learns from; the dev queries say when to stop.
        output: The model folder to be.
        config: How.
        apart: Other indexes whose dev and test queries must not teach, for they are measured.
        resume: Go on with a training that was cut short, to the same model as if it had not been.
        force: Replace a model that is there.
        progress: Receives how far each kind of work is.
        log: Receives what is worth a line.
        finders: What finds candidates, by the name of the index; by default what `recommend` does.

    Raises:
        ConfigError: If there is nothing to learn from.
        ModelError: If a model of an index is not there.
        ModelExistsError: If there is a model at `output`, without `force`.
        OutputError: If the folder cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_writable(output)
    check_indexes([index for index in indexes if _name(index) not in (finders or {})], config)
    workspace = Workspace.beside(output)
    with writing(workspace.folder):
        identities = {"indexes": [*map(identity_of, indexes)], "apart": [*map(identity_of, apart)]}
        plan = config.to_json() | identities
        resume_or_discard(workspace, plan, resume=resume, log=log)
        if not workspace.is_there():
            workspace.begin(plan)
        known: list[IndexExamples] = []
        for number, index in enumerate(indexes):
            others = [other for other in (*indexes, *apart) if other is not index]
            one, examples = (
                (finders or {}).get(_name(index)),
                workspace.folder / f"examples-{number}",
            )
            known.append(_known(index, others, config, progress, log, one, examples))
    fits = len(Variant) * (1 + config.folds * any(one.dev_teaches for one in known))
    report = train_on(known, output, config, log, KeptTrees(workspace.folder, fits, progress))
    workspace.remove()
    return report


def train_on(
    known: Sequence[IndexExamples],
    output: Path,
    config: RankerTraining,
    log: Log,
    kept: KeptTrees | None = None,
) -> RankerReport:
    """Train a ranker on what was gathered; else as `train_ranker`. By default no model is kept on the way."""
    kept = kept or KeptTrees()
    fits = {variant: _trained(known, variant, config, kept) for variant in Variant}
    dev = Examples.joined([one.dev for one in known])
    full = fits[Variant.FULL]
    after = {variant: one.measures for variant, one in fits.items()}
    report = RankerReport(
        output=output,
        queries=full.queries,
        before=_as_found(dev),
        after=after,
        trees={variant: one.trees.rounds for variant, one in fits.items()},
        calibrated=full.calibration is not None,
    )
    for variant, measures in after.items():
        log(f"{variant}: {_shown(measures)} on dev, {report.trees[variant]} trees")
    if not report.calibrated:
        log(
            "too few cited papers in the dev lists to calibrate: recommendations show no probability"
        )
    with building(output) as folder:
        told = RankerRecord(
            settings=config.to_json(),
            expand=config.expand,
            indexes=[_about(one) for one in known],
            before=report.before,
            after={str(variant): dict(measures) for variant, measures in after.items()},
            by_index=_by_index(known, full.judged),
            ablations=ablations(full.judged),
            provenance=provenance(config.to_json()),
        )
        calibrations = {v: one.calibration for v, one in fits.items() if one.calibration}
        write_ranker(
            folder, {variant: one.trees for variant, one in fits.items()}, calibrations, told
        )
    return report


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    trees: Trees
    judged: Sequence[DevEvaluation]
    queries: int  # that were learned from
    calibration: Calibration | None

    @property
    def measures(self) -> Measures:
        return measured(self.judged)


def _known(
    index: IndexFolder,
    others: Sequence[IndexFolder],
    config: RankerTraining,
    progress: Progress,
    log: Log,
    finder: Finder | None,
    examples: Path,
) -> IndexExamples:
    spared = ExcludedModels.of(index, config)
    gatherer = Gatherer(index, config, log, finder)
    data = load_train(index)
    if spared:
        what = " and ".join(name for name in ("encoder", "reranker") if getattr(spared, name))
        log(
            f"{_name(index)}: train queries are asked without the {what}; the dev queries teach, too"
        )
    if data is None:
        log(f"{_name(index)}: no train query cites a paper that it may")
    train = nothing = Examples.joined([])
    if data and others:
        apart = held_out(others, ("dev", "test"))
        titles = index.papers.texts("title", data.queries).to_pylist()
        kept = apart.spares(index.papers.ids_at(data.queries.tolist()), titles)
        if not kept.all():
            log(f"{_name(index)}: {(~kept).sum():,} train queries are held out in another index")
        data = data.only(np.flatnonzero(kept))
    if data:
        asked = Gatherer(index, config, log, finder, spared) if spared else gatherer
        train = asked.train(data, progress, KeptExamples(examples.with_suffix(".train.npz")))
    dev = dev_queries(index, config, held_out(others, ("test",)))
    of_dev = KeptExamples(examples.with_suffix(".dev.npz"))
    return IndexExamples(
        index, train, gatherer.whole(dev, progress, of_dev) if dev else nothing, bool(spared)
    )


def _trained(
    known: Sequence[IndexExamples], variant: Variant, config: RankerTraining, kept: KeptTrees
) -> _Fit:
    """Train one variant, and tell by which dev queries, that it was not trained on, it is measured."""
    features = [feature.name for feature in variant.features]
    copied = partial(_copied, config=config)
    teach = Examples.joined([one.train for one in known])
    seen = Examples.joined([one.dev for one in known if one.dev_teaches])
    if not len(teach.learnable()) and not len(seen.learnable()):
        raise ConfigError(
            "there is nothing to learn from: no query of the index cites a paper that is found for it"
        )
    judged: list[DevEvaluation] = []
    trees, stop = None, Examples.joined([one.dev for one in known if not one.dev_teaches])
    if len(seen):
        judged, trees = _in_folds(known, teach, stop, features, config, kept)
        teach, stop = Examples.joined([teach, seen]), Examples.joined([])
    made = kept.fit(copied(teach), stop if len(stop.learnable()) else None, features, config, trees)
    judged += [DevEvaluation(o.index, made, o.dev) for o in known if not o.dev_teaches]
    return _Fit(made, judged, len(teach), calibrated(judged))


def _in_folds(
    known: Sequence[IndexExamples],
    teach: Examples,
    stop: Examples,
    features: Sequence[str],
    config: RankerTraining,
    kept: KeptTrees,
) -> tuple[list[DevEvaluation], int]:
    """Return rankers that learned from most of the dev queries, with the rest, and how many trees are best."""
    rng = np.random.default_rng([config.seed, 8])
    folds = [
        (one, rng.permutation(np.arange(len(one.dev)) % config.folds))
        for one in known
        if one.dev_teaches
    ]
    judged: list[DevEvaluation] = []
    rounds: list[int] = []
    for k in range(config.folds):
        more = Examples.joined([teach, *(one.dev.of(fold != k) for one, fold in folds)])
        out = [(one.index, one.dev.of(fold == k)) for one, fold in folds]
        watched = Examples.joined([stop, *(dev for _, dev in out)])
        if not len(more.learnable()):
            continue
        watches = len(watched.learnable()) > 0
        trees = kept.fit(_copied(more, config), watched if watches else None, features, config)
        judged += [DevEvaluation(index, trees, dev) for index, dev in out]
        rounds.append(trees.rounds)
    return judged, max(1, round(float(np.mean(rounds)))) if rounds else 1


def _copied(examples: Examples, config: RankerTraining) -> Examples:
    return with_copies(examples.learnable(), config.copies, np.random.default_rng([config.seed, 9]))


def _as_found(dev: Examples) -> Measures:
    return dev.measures(-np.arange(len(dev.cited), dtype=np.float64))


def _by_index(
    known: Sequence[IndexExamples], judged: Sequence[DevEvaluation]
) -> list[tuple[str, Measures, Measures]]:
    return [
        (
            _name(one.index),
            _as_found(one.dev),
            measured([by for by in judged if by.index is one.index]),
        )
        for one in known
        if len(one.dev)
    ]


def _about(one: IndexExamples) -> dict[str, Any]:
    corpus, splits, encoder = identity_of(one.index)
    return {
        "name": _name(one.index),
        "corpus_sha256": corpus,
        "splits_sha256": splits,
        "encoder": encoder,
        "papers": len(one.index.papers),
        "train_queries": len(one.train),
        "dev_queries": len(one.dev),
        "dev_queries_teach": one.dev_teaches,
    }


def _name(index: IndexFolder) -> str:
    return index.manifest.name


def _shown(measured: Measures) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in measured.items())
