"""Trains the learning-to-rank model on the citations of indexes: its queries and candidates, its folder and its card.

`Gatherer` makes the candidate sets and their features by the stages of `recommend`: the first stage, the expansion,
`citerec.rank.features.Features`, and the reranker.

A model must not be run on train queries that it was trained on: its scores there are better than on any draft. Such an
encoder or reranker is run on dev queries only, which then are training data of the ranker, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from citerec.config import RecommendConfig, RerankConfig
from citerec.encode.encoder import reopen
from citerec.encode.models import find_model, weights_files
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError, ModelError
from citerec.evaluation.significance import ALPHA, randomisation_test
from citerec.files.arrays import Flags, batched
from citerec.files.atomic import building, check_writable
from citerec.files.cache import sha256_of_files
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import RANKER, IndexFolder
from citerec.pipeline import Pipeline, contexts_of
from citerec.plugins import Plugins
from citerec.rank.expand import NEIGHBOURS, CandidateExpander
from citerec.rank.features import (
    FEATURES,
    Feature,
    Features,
    Group,
    Matrix,
    added_features,
    declared_features,
)
from citerec.rank.ltr import (
    DEFAULT,
    SPEC,
    TOP,
    Linear,
    RankerSpec,
    Variant,
    VariantSpec,
    open_ranker,
    with_rerank_feature,
    write_spec,
)
from citerec.rerank.reranker import choose_reranker, open_reranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.held_out import held_out, may_know_queries, trained_on_other_data
from citerec.train import trainer
from citerec.train.boost import (
    FittedVariant,
    IndexExamples,
    Measures,
    RankerExamples,
    Trees,
    fit_variant,
)
from citerec.train.data import (
    F1,
    LabelledQueries,
    TrainingData,
    dev_queries,
    load_training_data,
    query_measures,
)
from citerec.train.settings import RankerTraining
from citerec.types import (
    Hits,
    Json,
    Log,
    Progress,
    no_log,
    no_progress,
)

BLOCK = 64  # queries that are searched, and whose candidates are in memory, at once
NEGATIVES = 400  # sampled candidates per query that it does not cite, at most
# years; half of the queries do not know the newest citations, of 1 to so many
CITATION_LAG = 5
# of the train queries, which know half of their references, as with --cited
KNOWN_FRACTION = 0.15

# (name, make) -> arrays, which an interrupted training may have saved
ArrayCache = Callable[[str, Callable[[], trainer.Arrays]], trainer.Arrays]


def with_known_half(
    queries: LabelledQueries, share: float, rng: np.random.Generator
) -> LabelledQueries:
    """Return the same queries; a `share` of them knows half of its references, and only the rest is gold."""
    halves = [
        rng.permutation(gold)[: len(gold) // 2] if rng.random() < share else gold[:0]
        for gold in queries.gold
    ]
    known = [np.sort(half).tolist() for half in halves]
    rules = [
        replace(rule, excluded=rule.excluded.union(half)) if half else rule
        for rule, half in zip(queries.eligible, known, strict=True)
    ]
    rest = [
        np.setdiff1d(gold, half)
        for gold, half in zip(queries.gold, halves, strict=True)
    ]
    return LabelledQueries(queries.queries, rules, known, gold=rest)


# --- candidates and features


class Gatherer:
    """Makes examples of the queries of one index: searches them, expands the candidates, computes features."""

    def __init__(
        self,
        index: IndexFolder,
        config: RankerTraining,
        log: Log,
        *,
        encoder: bool = True,
        reranker: str | None = None,
        features: Sequence[Feature] = (),
        bodies: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        scope: CitationScope = CitationScope.TRAIN,
    ) -> None:
        """Open the stages of an index: its vectors, unless `encoder` is false, and a reranker, unless it is None.

        `scope` says whose citations are known. `features` are computed besides citerec's own, those of the settings,
        and those of the retrievers. `bodies` are those of queries by id.
        """
        self._config = config
        self._bodies = bodies
        retrieval = RecommendConfig(
            encoder="auto" if encoder else "none", retrievers=config.retrievers
        )
        self._first_stage = open_hybrid(index, retrieval, log)
        self._default = open_ranker(DEFAULT)  # orders the papers to rerank
        self._reranker = None
        if reranker:
            settings = RerankConfig(
                model=reranker, depth=config.rerank_depth, threads=config.threads
            )
            self._reranker = open_reranker(index, settings, log)
        self._graph = TemporalGraph(index, scope)
        given = (*features, *added_features(config.features, features))
        retrievers = self._first_stage.retrievers
        self.added = declared_features((*retrievers, config.reranker), given)
        self._features = Features(self._graph, added=self.added)

    def train(self, data: TrainingData, progress: Progress) -> RankerExamples:
        """Return examples of the train queries; for half of them the newest citations are unknown."""
        config = self._config
        rng = np.random.default_rng([self._config.seed, 6])
        number = len(data.queries)
        chosen = np.sort(rng.permutation(number)[: config.queries or number])
        queries = with_known_half(data.only(chosen).labelled(), KNOWN_FRACTION, rng)
        lags = rng.integers(1, CITATION_LAG, len(chosen), endpoint=True)
        lags[rng.random(len(chosen)) >= 0.5] = 0
        parts: list[RankerExamples] = []
        for lag in range(CITATION_LAG + 1):
            for part in self.gathered(
                queries.at(np.flatnonzero(lags == lag).tolist()), lag
            ):
                parts.append(sampled(*part, NEGATIVES, rng))
                progress("features", len(parts), len(chosen))
        return RankerExamples.joined(parts)

    def whole(self, queries: LabelledQueries, progress: Progress) -> RankerExamples:
        """Return examples of all candidates of some queries; no citation that is known is too new."""
        parts: list[RankerExamples] = []
        for part in self.gathered(queries, 0):
            parts.append(RankerExamples.one(*part))
            progress("features of dev queries", len(parts), len(queries))
        return RankerExamples.joined(parts)

    def gathered(
        self, queries: LabelledQueries, citation_lag: int
    ) -> Iterator[tuple[Matrix, Flags, int]]:
        """Yield for each query the features of its candidates, their gold mask, and the gold count."""
        graph = self._graph.lagged(citation_lag)
        stages = contexts_of(graph, self._first_stage), CandidateExpander(graph)
        pipeline = Pipeline(
            self._first_stage, tuple(stage for stage in stages if stage)
        )
        for places in batched(range(len(queries)), BLOCK):
            part = queries.at(places)
            texts = [
                replace(query, body=self._bodies.get(query.id, ()))
                for query in part.queries
            ]
            part = replace(part, queries=texts)
            candidates: list[Any] = pipeline.all(part)  # `ExpandedCandidates`
            matrices = [
                self._features.matrix(query, found, part.known_references(i))
                for i, (query, found) in enumerate(
                    zip(part.queries, candidates, strict=True)
                )
            ]
            if self._reranker:
                id_rank = self._graph.index.id_rank
                lists = [
                    Hits.ordered(found.rows, self._default.score(matrix), id_rank)
                    for found, matrix in zip(candidates, matrices, strict=True)
                ]
                done = self._reranker.rerank(part.queries, lists)
                matrices = [
                    with_rerank_feature(
                        matrix, found.rows, self._reranker.unit_scores(after)
                    )
                    for matrix, found, after in zip(
                        matrices, candidates, done, strict=True
                    )
                ]
            for matrix, found, gold in zip(
                matrices, candidates, part.gold, strict=True
            ):
                yield matrix, np.isin(found.rows, gold), len(gold)


def sampled(
    matrix: Matrix, cited: Flags, gold: int, negatives: int, rng: np.random.Generator
) -> RankerExamples:
    """Sample the examples of one query: all cited papers, and at most `negatives` others.

    Half of the others are the top candidates, where the ranking is decided; the rest is drawn from all candidates. Each
    of these is weighted by the square root of the number of papers that it represents. Without weights the model would
    learn that middle ranks are nearly empty and would raise useless papers from there; the full weight would cost
    accuracy at the top.
    """
    others = np.flatnonzero(~cited)
    best = others[: negatives // 2]
    rest = others[negatives // 2 :]
    drawn = rng.choice(rest, min(len(rest), negatives - len(best)), replace=False)
    weights = np.ones(len(cited), np.float32)
    weights[drawn] = np.sqrt(len(rest) / max(len(drawn), 1))
    rows = np.sort(np.concatenate([np.flatnonzero(cited), best, drawn]))
    return RankerExamples.one(matrix[rows], cited[rows], gold, weights[rows])


def gather_examples(
    index: IndexFolder,
    reranker: str | None,
    others: Sequence[IndexFolder],
    config: RankerTraining,
    *,
    progress: Progress = no_progress,
    log: Log = no_log,
    features: Sequence[Feature] = (),
    bodies: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    cached: ArrayCache = lambda name, make: dict(make()),
    with_deployed: bool = False,
) -> IndexExamples:
    """Return the training and dev examples of an index, without the held-out queries of other indexes.

    `features` and `bodies` are as for `Gatherer`; `cached` returns the arrays that an interrupted training saved under
    a name, or makes them. `with_deployed` also makes dev examples that know what `recommend` knows.
    """
    name = index.manifest.name
    folder = trainer.encoder_folder(index)
    # An encoder without a record of citerec was trained elsewhere, and is run; a reranker without one is not.
    encoder_knows = bool(
        folder and trainer.read_training(folder) and may_know_queries(folder, index)
    )
    weights = _folder_of(reranker, index)
    reranker_knows = bool(weights and may_know_queries(weights, index))
    known = {"encoder": encoder_knows, "reranker": reranker_knows}
    excluded = " and ".join(model for model, knows in known.items() if knows)
    opened = partial(Gatherer, index, config, log, features=features, bodies=bodies)
    gatherer = by_train = opened(reranker=reranker)
    if excluded:
        log(
            f"{name}: the citations of the train queries are training data of the {excluded}; the train queries are "
            "searched without, and the dev queries are training data, too"
        )
        untaught = None if reranker_knows else reranker
        by_train = opened(encoder=not encoder_knows, reranker=untaught)
    train = dev = RankerExamples.joined([])
    deployed = None
    try:
        data = load_training_data(index)
    except ConfigError:
        log(f"{name}: no train query cites an eligible paper")
    else:
        titles = index.papers.texts("title", data.queries).to_pylist()
        held = held_out(others, ("dev", "test"))
        free = held.allowed_mask(index.papers.ids_at(data.queries.tolist()), titles)
        if not free.all():
            log(
                f"{name}: {(~free).sum():,} train queries are dropped: held out in another index"
            )
        data = data.only(np.flatnonzero(free))
        train = RankerExamples(
            **cached("train", lambda: by_train.train(data, progress).arrays)
        )
    held = held_out(others, ("test",))
    if queries := dev_queries(index, config.dev_queries, config.seed, held=held):
        dev = RankerExamples(
            **cached("dev", lambda: gatherer.whole(queries, progress).arrays)
        )
        if with_deployed:
            knowing = opened(reranker=reranker, scope=CitationScope.EARLIER)
            deployed = RankerExamples(
                **cached("deployed", lambda: knowing.whole(queries, progress).arrays)
            )
    return IndexExamples(
        index, train, dev, bool(excluded), reranker, gatherer.added, deployed
    )


# --- the training


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerReport:
    """The result of the training of a learning-to-rank model."""

    output: Path
    queries: int  # training queries
    before: Measures  # of the dev queries in first-stage order
    # F1@20 on the dev queries of the ranker in use before; None if that was not measured
    in_use: float | None
    after: Mapping[Variant, Measures]
    # on dev than the ranker in use before; false if that was not measured
    is_better: bool


def train_ranker(
    indexes: Sequence[IndexFolder],
    output: Path | None,
    config: RankerTraining,
    *,
    withheld: Sequence[IndexFolder] = (),
    features: Sequence[Feature] = (),
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> RankerReport:
    """Train a learning-to-rank model on the citations of indexes; the model folder is created complete at the end.

    Without `output` it is `models/ranker` of the only index, or `models/ranker-new` if the model is not significantly
    better on dev than the ranker in use.

    Their train queries are the training data; their dev queries select the number of trees. The dev and test queries of
    `withheld` are held out of the training data, too. The model reads `features` besides citerec's own, those of the
    settings, and those of the retrievers. Other arguments and errors are those of `train_encoder`.
    """
    target = trainer.target_of(output, indexes[0], RANKER, SPEC, force=force)
    check_writable(target)
    for index in indexes:  # before the first is searched
        if index.is_embedded:
            reopen(index.encoder, index.path, EncodeConfig())
    state = trainer.TrainingState(target)
    plan = plan_of(config, indexes, withheld)
    plan |= {"given": [feature.name for feature in features]} if features else {}
    with state.open(plan, resume=resume, log=log):
        examples: list[IndexExamples] = []
        for number, index in enumerate(indexes):
            cached = partial(trainer.cached_arrays, state.folder / str(number))
            others = [other for other in (*indexes, *withheld) if other is not index]
            reranker = _reranker(index, config)
            gathered = gather_examples(
                index,
                reranker,
                others,
                config,
                progress=progress,
                log=log,
                features=features,
                cached=cached,
                with_deployed=output is None,
            )
            examples.append(gathered)
        own = None if output else indexes[0]
        return train_on(examples, target, config, log, plan=plan, own=own)


def _reranker(index: IndexFolder, config: RankerTraining) -> str | None:
    """Return the reranker for the candidates of an index; None for none."""
    chosen = choose_reranker(config.reranker, index, same_data=True)
    return chosen.model if chosen else None


def plan_of(
    config: RankerTraining,
    indexes: Sequence[IndexFolder],
    withheld: Sequence[IndexFolder] = (),
) -> Json:
    """Return what a training depends on: the settings, and papers, splits, encoder and reranker of each index."""
    facts = [_facts(index, _reranker(index, config)) for index in indexes]
    held = [trainer.corpus_facts(index) for index in withheld]
    return _shown(config) | {"indexes": facts, "withheld": held}


def _shown(config: RankerTraining) -> Json:
    """Return the settings as JSON values, without local paths."""
    return config.model_dump(mode="json") | {"reranker": Path(config.reranker).name}


def _folder_of(reranker: str | None, index: IndexFolder) -> Path | None:
    """Return the folder of a reranker; None for none, and for one that a package registers."""
    if reranker is None or reranker in Plugins.RERANKERS.names:
        return None
    return find_model(reranker, base=index.path).folder


def _facts(index: IndexFolder, reranker: str | None) -> Json:
    folder = _folder_of(reranker, index)
    weights = sha256_of_files(weights_files(folder)) if folder else reranker
    return trainer.corpus_facts(index) | {
        "encoder": index.encoder_weights,
        "reranker": weights,
    }


def train_on(
    examples: Sequence[IndexExamples],
    output: Path,
    config: RankerTraining,
    log: Log,
    variants: Sequence[Variant] = tuple(Variant),
    plan: Mapping[str, Any] | None = None,
    own: IndexFolder | None = None,
    base: Trees | Linear | None = None,
    group: Group | None = None,
) -> RankerReport:
    """Train some variants, `Variant.FULL` among them, on gathered examples; otherwise as `train_ranker`.

    The scores of the model are added to those of `base`, which becomes a part of it if it is `Linear`. With a `group`
    it reads these features alone.

    A model of the index `own` goes next to `output` if it is not better than the ranker in use there.
    """
    fits: dict[Variant, FittedVariant] = {}
    for variant in variants:
        fitted = fit_variant(examples, variant, config, base, group)
        measures = ", ".join(
            f"{name} {value:.4f}" for name, value in fitted.measures.items()
        )
        log(f"{variant}: {measures} on dev, {fitted.trees.rounds} trees")
        fits[variant] = fitted
    full = fits[Variant.FULL]
    if full.calibration is None:
        log(
            "no cited paper in the dev lists to calibrate: there will be no probability"
        )
    dev = RankerExamples.joined(of_index.dev for of_index in examples)
    before = dev.measures(-np.arange(len(dev.cited), dtype=np.float64))
    after = {variant: fitted.measures for variant, fitted in fits.items()}
    in_use, is_better = (
        _compared(own, dev, examples[0].deployed, full, log)
        if own and len(dev)
        else (None, False)
    )
    if own:
        output = trainer.own_folder(output, is_better=is_better)
    indexes = [
        {
            "name": of_index.index.manifest.name,
            **_facts(of_index.index, of_index.reranker),
            "papers": len(of_index.index.papers),
            "train_queries": len(of_index.train),
            "dev_queries": len(of_index.dev),
            "dev_queries_teach": of_index.dev_teaches,
        }
        for of_index in examples
    ]
    origin = {
        "citerec": version("citerec"),
        "learned_from": [facts["name"] for facts in indexes],
        "rerankers": sorted({facts["reranker"] for facts in indexes} - {None}),
        "retrievers": config.retrievers,
    }
    facts = {
        "indexes": indexes,
        "before": before,
        "after": {str(variant): measures for variant, measures in after.items()},
        "gains": {str(variant): fitted.trees.gains for variant, fitted in fits.items()},
        "plan": plan or {},
    }
    linear = base if isinstance(base, Linear) else Linear({})
    with building(output) as folder:
        specs: dict[Variant, VariantSpec] = {}
        for variant, fitted in fits.items():
            trees = fitted.trees
            file = f"{variant}.txt"
            (folder / file).write_bytes(trees.booster.model_to_string().encode())
            specs[variant] = VariantSpec(
                file=file,
                features=trees.features,
                calibration=fitted.calibration,
                linear=linear.weights,
            )
        spec = RankerSpec(
            format=1, neighbours=NEIGHBOURS, variants=specs, provenance=origin
        )
        write_spec(folder, spec)
        meaning = {
            feature.name: feature.meaning for feature in (*FEATURES, *full.trees.added)
        }
        shown: Json = {
            "rounds": full.trees.rounds,
            "meaning": meaning,
            "spec": SPEC,
            "top": TOP,
            "lag": CITATION_LAG,
            "is_addition": isinstance(base, Trees),
            "linear": linear.weights,
        }
        trainer.finish_folder(folder, facts, _shown(config), "ranker.md", shown)
    return RankerReport(
        output=output,
        queries=full.queries,
        before=before,
        in_use=in_use,
        after=after,
        is_better=is_better,
    )


def _compared(
    index: IndexFolder,
    dev: RankerExamples,
    deployed: RankerExamples | None,
    fitted: FittedVariant,
    log: Log,
) -> tuple[float | None, bool]:
    """Return the F1@20 of the ranker in use on dev queries, and whether a new one is significantly better.

    With the citations that `recommend` knows, those of `deployed`, its mean may not be lower either: where few papers
    are train papers, the ranker in use misses most citations of the others. A ranker in use that learned from these dev
    queries counts with its cross-validated F1@20, as a mean, which has no test. One that reads a feature that these
    examples lack is not compared: None, and the new one is not better.
    """
    added = fitted.trees.added
    cross_validated = None
    in_use = index.own_model(RANKER, SPEC)
    if in_use and not trained_on_other_data(in_use, index):
        record = trainer.read_training(in_use)
        if any(facts.get("dev_queries_teach") for facts in record.get("indexes", [])):
            cross_validated = float(record["after"]["full"]["f1@20"])
    else:
        in_use = DEFAULT
    try:
        before = Trees(open_ranker(in_use, features=added).model, added)
        scores = before.scores(dev.matrix)
    except (ModelError, ValueError) as error:
        log(f"the ranker in use cannot be compared: {error}")
        return None, False
    measured = ~np.isnan(fitted.by_query[:, F1])
    new = fitted.by_query[measured, F1, None]
    old = query_measures(dev.lists(scores))[measured, F1, None]
    rng = np.random.default_rng([0, 13])
    [p] = randomisation_test(new, old, lambda means: means, rng=rng)
    f1 = float(old.mean()) if cross_validated is None else cross_validated
    is_sure = cross_validated is not None or p < ALPHA
    is_better = is_sure and fitted.measures["f1@20"] > f1
    if is_better and deployed:
        known = [
            deployed.measures(trees.scores(deployed.matrix))["f1@20"]
            for trees in (before, fitted.trees)
        ]
        if known[1] < known[0]:
            log(
                "where the citations of all earlier papers are known, as in recommend, F1@20 on dev falls from "
                f"{known[0]:.4f} to {known[1]:.4f}"
            )
            is_better = False
    return f1, is_better
