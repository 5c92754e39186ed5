"""Trains the final ranker on the citations of one index or of several: examples, trees, the model folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.atomic import building
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.provenance import provenance
from citerec.rank.ranker import SPEC, Variant
from citerec.train.data import splits_sha256
from citerec.train.modelfolder import check_target, read_training
from citerec.train.ranker.ablation import Ablation, ablations
from citerec.train.ranker.apart import held_out
from citerec.train.ranker.boost import Trees, fit
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples, with_copies
from citerec.train.ranker.gather import Finds, Gatherer, Seen, dev_queries, load_train
from citerec.train.ranker.modelfolder import Told, write_ranker
from citerec.types import Note, Progress, untold

Measures = Mapping[str, float]  # f1@20 and mrr


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What one index teaches."""

    index: IndexFolder
    train: Examples  # of train queries, asked without the models that have seen what these cite
    dev: Examples  # whole pools
    is_seen: bool  # whether there is such a model: then the dev queries are learned from, too


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerReport:
    """What a training made."""

    output: Path
    queries: int  # that were learned from
    before: Measures  # of the dev queries, as the pool stood
    after: Mapping[Variant, Measures]
    trees: Mapping[Variant, int]


def train_ranker(
    indexes: Sequence[IndexFolder],
    output: Path,
    config: RankerTraining,
    *,
    force: bool = False,
    tell: Progress = untold,
    say: Note = lambda message: None,
    finds: Mapping[str, Finds] | None = None,
) -> RankerReport:
    """Train a ranker on the citations of indexes; the model folder appears whole, at the end.

    Args:
        indexes: Whose train queries it learns from; the dev queries say when to stop.
        output: The model folder to be.
        config: How.
        force: Replace a model that is there.
        tell: Is told how far each kind of work is.
        say: Is told what is worth a line.
        finds: What finds candidates, by the name of the index; by default what `recommend` does.

    Raises:
        ConfigError: If there is nothing to learn from.
        ModelError: If a model of an index is not there.
        ModelExistsError: If there is a model at `output`, without `force`.
        OutputError: If the folder cannot be written.
    """
    check_target(output, SPEC, force=force)
    known: list[Known] = []
    for index in indexes:
        others = [other for other in indexes if other is not index]
        known.append(_known(index, others, config, tell, say, (finds or {}).get(_name(index))))
    return train_on(known, output, config, say)


def train_on(
    known: Sequence[Known], output: Path, config: RankerTraining, say: Note
) -> RankerReport:
    """Train a ranker on what was gathered; else as `train_ranker`."""
    fits = {variant: _trained(known, variant, config) for variant in Variant}
    dev = Examples.joined([one.dev for one in known])
    full = fits[Variant.FULL]
    after = {variant: fold.measures for variant, fold in fits.items()}
    report = RankerReport(
        output=output,
        queries=full.queries,
        before=_as_found(dev),
        after=after,
        trees={variant: fold.trees.rounds for variant, fold in fits.items()},
    )
    for variant, measured in after.items():
        say(f"{variant}: {_shown(measured)} on dev, {report.trees[variant]} trees")
    with building(output) as folder:
        table: list[Ablation] = [] if full.is_folded else ablations(full.trees, dev)
        told = Told(
            settings=config.to_json(),
            expand=config.expand,
            indexes=[_about(one) for one in known],
            before=report.before,
            after={str(variant): dict(measured) for variant, measured in after.items()},
            by_index=[] if full.is_folded else _by_index(known, full.trees),
            ablations=table,
            provenance=provenance(config.to_json()),
        )
        write_ranker(folder, {variant: fold.trees for variant, fold in fits.items()}, told)
    return report


def was_trained_so(model: Path, indexes: Sequence[IndexFolder], config: RankerTraining) -> bool:
    """Return whether there is a ranker that was trained on these papers, splits and vectors, with these settings."""
    told = read_training(model)
    wanted = orjson.loads(orjson.dumps(config.to_json()))
    return told.get("settings") == wanted and [
        (one["corpus_sha256"], one["splits_sha256"], one["encoder"]) for one in told["indexes"]
    ] == [_identity(index) for index in indexes]


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    trees: Trees
    measures: Measures  # on dev queries that it was not trained on
    queries: int
    is_folded: bool


def _known(
    index: IndexFolder,
    others: Sequence[IndexFolder],
    config: RankerTraining,
    tell: Progress,
    say: Note,
    finds: Finds | None,
) -> Known:
    seen = Seen.by(index, config)
    gatherer = Gatherer(index, config, say, finds)
    data = load_train(index)
    if seen:
        what = " and ".join(name for name in ("encoder", "reranker") if getattr(seen, name))
        say(
            f"{_name(index)}: its {what} knows what the train queries cite: they are asked without, and the dev "
            "queries teach, too"
        )
    if data is None:
        say(f"{_name(index)}: no train query cites a paper that it may")
    train = nothing = Examples.joined([])
    if data:
        papers = index.papers.at(data.queries.tolist())
        mine = [papers[row] for row in data.queries.tolist()]
        apart = held_out(others, ("dev", "test"))
        kept = apart.spares([one.id for one in mine], [one.title for one in mine])
        if not kept.all():
            say(f"{_name(index)}: {(~kept).sum():,} train queries are held out in another index")
        asked = Gatherer(index, config, say, finds, seen) if seen else gatherer
        train = asked.train(data.only(np.flatnonzero(kept)), tell)
    dev = dev_queries(index, config, held_out(others, ("test",)))
    return Known(index, train, gatherer.whole(dev, tell) if dev else nothing, bool(seen))


def _trained(known: Sequence[Known], variant: Variant, config: RankerTraining) -> _Fit:
    """Train one variant; where dev queries have to teach, in folds, each measured by those that it did not see."""
    features = [feature.name for feature in variant.features]
    copied = partial(_copied, config=config)
    teach = Examples.joined([one.train for one in known])
    seen = Examples.joined([one.dev for one in known if one.is_seen])
    dev = Examples.joined([one.dev for one in known if not one.is_seen])
    if not len(teach.learnable()) and not len(seen.learnable()):
        raise ConfigError(
            "there is nothing to learn from: no query of the index cites a paper that is found for it"
        )
    if not len(seen):
        trees = fit(copied(teach), dev if len(dev.learnable()) else None, features, config)
        return _Fit(trees, dev.measures(trees.scores(dev.matrix)), len(teach), is_folded=False)
    rounds, measured = _in_folds(teach, seen, features, config)
    both = copied(Examples.joined([teach, seen]))
    return _Fit(
        fit(both, None, features, config, rounds), measured, len(teach) + len(seen), is_folded=True
    )


def _in_folds(
    teach: Examples, seen: Examples, features: Sequence[str], config: RankerTraining
) -> tuple[int, Measures]:
    """Return how many trees are best, and how good they are on queries that they were not trained on."""
    number = min(config.folds, len(seen))
    fold = np.random.default_rng([config.seed, 8]).permutation(np.arange(len(seen)) % number)
    rounds: list[int] = []
    scores = np.zeros(len(seen.cited))
    for k in range(number):
        out = fold == k
        learned = _copied(Examples.joined([teach, seen.of(~out)]), config)
        if not len(learned.learnable()):
            continue
        watched = seen.of(out)
        trees = fit(learned, watched if len(watched.learnable()) else None, features, config)
        scores[out[seen.owners]] = trees.scores(watched.matrix)
        rounds.append(trees.rounds)
    return max(1, round(float(np.mean(rounds)))) if rounds else 1, seen.measures(scores)


def _copied(examples: Examples, config: RankerTraining) -> Examples:
    return with_copies(examples.learnable(), config.copies, np.random.default_rng([config.seed, 9]))


def _as_found(dev: Examples) -> Measures:
    return dev.measures(-np.arange(len(dev.cited), dtype=np.float64))


def _by_index(known: Sequence[Known], trees: Trees) -> list[tuple[str, Measures, Measures]]:
    return [
        (_name(one.index), _as_found(one.dev), one.dev.measures(trees.scores(one.dev.matrix)))
        for one in known
    ]


def _identity(index: IndexFolder) -> tuple[str, str, str | None]:
    recorded = index.manifest.settings.get("encoder")
    encoder = recorded["weights"] if recorded else None
    return index.manifest.corpus["sha256"], splits_sha256(index), encoder


def _about(one: Known) -> dict[str, Any]:
    corpus, splits, encoder = _identity(one.index)
    return {
        "name": _name(one.index),
        "corpus_sha256": corpus,
        "splits_sha256": splits,
        "encoder": encoder,
        "papers": len(one.index.papers),
        "train_queries": len(one.train),
        "dev_queries": len(one.dev),
        "dev_queries_teach": one.is_seen,
    }


def _name(index: IndexFolder) -> str:
    return index.manifest.name


def _shown(measured: Measures) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in measured.items())
