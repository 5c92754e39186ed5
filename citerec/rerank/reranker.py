"""Rerankers: which one an index uses, how it is opened, and how it reorders the best candidates of each query.

A paper's score is weight * s + (1 - weight) * f: s is the score of the cross-encoder, f the score in the list before
reranking, both standardised over the candidates that are scored. With a weight of 1 it is the raw score of the
cross-encoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from citerec.config import RerankConfig
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError, ModelError
from citerec.files.arrays import Rows, Scores
from citerec.index.folder import MODELS, RERANKER, IndexFolder
from citerec.plugins import Plugins
from citerec.retrieve.fuse import interpolated, min_max
from citerec.rules.held_out import trained_on_other_data, trained_on_other_splits
from citerec.stages import Reranker, check_stages, checked_scores
from citerec.types import (
    CandidateSet,
    Hits,
    Json,
    Log,
    Progress,
    Query,
    QueryBatch,
    falling,
    no_log,
    no_progress,
)

AUTO = "auto"
NONE = "none"
NAME = "rerank"  # the name of the reranker's hits
WEIGHT_AFTER_RANKER = 0.2  # if its best one is unknown; see experiments/SECOND_STAGE.md
DEPTH = 50  # candidates per query of a reranker that a user brings


class Scorer(Protocol):
    """Scores pairs; `CrossEncoder` is one."""

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress = no_progress,
    ) -> list[Scores]:
        """Return the score of each candidate of each query, float32, in the order of `rows`."""
        ...

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return each score in [0, 1], same shape; a calibrated scorer returns probabilities."""
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """The reranked candidates of one query."""

    hits: Hits  # all candidates; scores are comparable only among those that the reranker scored
    scored: Hits  # those that it scored, ordered by its raw scores


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReranker:
    """A stage that reorders the best candidates: an open cross-encoder, or a user's object, and how many it scores."""

    index: IndexFolder
    name: str  # for users
    scorer: Scorer
    depth: int  # candidates per query
    weight: float  # against the previous order, in [0, 1]
    # what its scores depend on: weights, tokens, backend, precision
    settings: Mapping[str, Any]
    # likewise, against the scores of a ranker
    weight_after_ranker: float = WEIGHT_AFTER_RANKER
    calibrated: bool = False  # whether a training calibrated its scores
    has_probability: bool = True  # whether a score means the same for every query

    @classmethod
    def of(
        cls,
        index: IndexFolder,
        reranker: Reranker,
        weight: float | None,
        *,
        name: str = "",
        depth: int = 0,
    ) -> Self:
        """Wrap a user's reranker; its scores of one query are scaled to [0, 1] for interpolation.

        A weight of None is 1; a depth of 0 that of the object. ConfigError if it is no reranker.
        """
        check_stages([reranker], "score")
        name = name or name_of(reranker)
        return cls(
            index=index,
            name=name,
            scorer=PaperScorer(reranker),
            depth=depth or getattr(reranker, "depth", DEPTH),
            weight=1.0 if weight is None else weight,
            settings={"device": "cpu", "weights": name},
            has_probability=False,
        )

    def __str__(self) -> str:
        """Describe the reranker and its settings in one line."""
        weight = "" if self.weight == 1 else f", weight {self.weight:g}"
        best = f"reranking the best {self.depth:,} by {self.name}"
        how = self.settings
        if "backend" in how:  # no user's object
            where = "" if how["device"] == "cpu" else f" on {how['device']}"
            best += f": {how['query_tokens']}+{how['candidate_tokens']} tokens, {how['backend']} "
            best += f"{how['precision']}{where}"
        return f"{best}{weight}"

    def as_json(self) -> Json:
        """Return the description for a report."""
        shown = Path(self.name).name if Path(self.name).is_absolute() else self.name
        return {
            "model": shown,
            "depth": self.depth,
            "weight": self.weight,
            **self.settings,
        }

    def probability(self, score: float) -> float:
        """Return the calibrated probability of a score."""
        return float(self.scorer.to_unit_interval(np.array([score], np.float32))[0])

    def probabilities(self, reranked: Reranked) -> Hits | None:
        """Return the calibrated probabilities of the scored papers.

        None unless a training calibrated the reranker and its scores alone decide the order.
        """
        return (
            self.unit_scores(reranked) if self.calibrated and self.weight == 1 else None
        )

    def unit_scores(self, reranked: Reranked) -> Hits:
        """Return the scored papers with their scores in [0, 1]: probabilities if calibrated."""
        scored = reranked.scored
        return Hits(scored.rows, self.scorer.to_unit_interval(scored.scores))

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Rerank as a stage of the pipeline: the pairs of all queries are scored together."""
        lists = [found.hits for found in candidates]
        done = self.rerank(batch.queries, lists, progress)
        reranked: list[CandidateSet] = []
        for before, after in zip(candidates, done, strict=True):
            probabilities = before.probabilities  # of a ranker, which are calibrated
            if probabilities is None:
                probabilities = self.probabilities(after)
            by_source = {**before.hits_by_source, NAME: after.scored}
            reranked.append(
                replace(
                    before,
                    hits=after.hits,
                    hits_by_source=by_source,
                    probabilities=probabilities,
                )
            )
        return reranked

    def rerank(
        self,
        queries: Sequence[Query],
        candidates: Sequence[Hits],
        progress: Progress = no_progress,
    ) -> list[Reranked]:
        """Rerank the best candidates of each query; the pairs of all queries are scored together.

        The scored candidates of each query, best first, are above its others in their order.
        """
        rows = [hits.rows[: self.depth] for hits in candidates]
        scores = self.scorer.score(self.index, queries, rows, progress)
        id_rank = self.index.id_rank
        done = list[Reranked]()
        for hits, of_query in zip(candidates, scores, strict=True):
            new = of_query
            if self.weight != 1:
                new = interpolated(of_query, hits.scores[: len(of_query)], self.weight)
            order = reordered(hits, new.astype(np.float32), id_rank)
            scored = Hits.ordered(hits.rows[: len(of_query)], of_query, id_rank)
            done.append(Reranked(order, scored))
        return done


def reordered(hits: Hits, scores: Scores, id_rank: Rows) -> Hits:
    """Order the first `len(scores)` hits by new scores, and keep all others below them in their order.

    Scores of the two groups are not comparable: below the last scored paper, each score is 1 less than the one above,
    or the next smaller float32 where 1 is less than their precision.
    """
    if not len(scores):
        return hits
    top = Hits.ordered(hits.rows[: len(scores)], scores, id_rank)
    others = hits.rows[len(scores) :]
    below = falling(float(top.scores[-1]) - np.arange(len(others) + 1))[1:]
    return Hits(np.concatenate([top.rows, others]), np.concatenate([top.scores, below]))


@dataclass(frozen=True, slots=True)
class PaperScorer:
    """Reads the papers of an index for a user's reranker."""

    reranker: Reranker

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress = no_progress,
    ) -> list[Scores]:
        """Return the scores of the candidates of each query, float32."""
        scores: list[Scores] = []
        for query, of_query in zip(queries, rows, strict=True):
            papers = index.papers.at(of_query.tolist())
            found = self.reranker.score(
                query, [papers[row] for row in of_query.tolist()]
            )
            name = name_of(self.reranker)
            scores.append(checked_scores(found, name, len(of_query)))
        return scores

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return the scores of one query scaled to [0, 1]; they are no calibrated probabilities."""
        return min_max(scores).astype(np.float32)


def name_of(part: object) -> str:
    """Return the name under which messages show an object that a user brings: its `name`, else its type."""
    return str(getattr(part, "name", "") or type(part).__name__)


def choose_reranker(
    requested: str | RerankConfig,
    index: IndexFolder,
    *,
    same_data: bool = False,
    warn: Log = no_log,
) -> RerankConfig | None:
    """Return the configuration of the reranker that a request means on an index, with its model; None for none.

    `requested` is auto (the index's own one, if any), none, a model, or a configuration whose model is one of these.
    With `same_data`, as in an evaluation, an own model of other papers or splits, which may know queries of the index,
    is left out; `warn` receives a warning. ConfigError if depth, weight or tokens are given and there is no reranker;
    IndexDamagedError if the folder of the index's own reranker has no model in it.
    """
    config = RerankConfig(model=requested) if isinstance(requested, str) else requested
    if config.model not in {AUTO, NONE}:
        return config
    if config.model == AUTO and (own := index.own_model(RERANKER, "config.json")):
        other = same_data and (
            trained_on_other_data(own, index) or trained_on_other_splits(own, index)
        )
        if not other:  # a relative path could also name a folder in the working folder
            return config.replace(model=str(own.absolute()))
        name = f"{MODELS}/{RERANKER}"
        warn(
            f"{name} is not used: it, its base or its teacher was trained on other papers or splits, which may "
            f"include test queries; train it again: citerec train-reranker --index {index.path} --force, or use it "
            f"anyway: --reranker {name}"
        )
    given = (
        config.weight is not None,
        config.depth,
        config.query_tokens,
        config.candidate_tokens,
    )
    # one that is left out has its own warning
    if any(given) and not (index.models / RERANKER).exists():
        raise ConfigError(
            f"depth, weight and tokens of a reranker have no effect: {index.path} has none; name one"
        )
    return None


def open_reranker(
    index: IndexFolder,
    config: RerankConfig,
    log: Log = no_log,
    *,
    depth: int = 0,
    few_queries: bool = False,
) -> OpenReranker:
    """Open the reranker of a configuration.

    A relative folder is also searched in the index. `depth` is that of a configuration without one, 0 for what suits
    model and device; `few_queries` prefers what opens faster. ModelError if there is no such model, or it is not a
    cross-encoder; MissingExtraError if a required package is not installed; ConfigError if a setting is not possible.
    """
    # imported here, because runs without a reranker do not need it
    from citerec.rerank.cross_encoder import open_cross_encoder

    chosen = choose_reranker(config, index)
    if chosen is None:
        raise ModelError(
            f"{index.path} has no reranker; name a model, or train one: citerec train-reranker --index {index.path}"
        )
    if chosen.model in Plugins.RERANKERS.names:
        made = Plugins.RERANKERS.load(chosen.model)(index)
        depth = chosen.depth or getattr(made, "depth", depth)
        return OpenReranker.of(
            index, made, chosen.weight, name=chosen.model, depth=depth
        )
    model = open_cross_encoder(
        chosen.model,
        index,
        EncodeConfig(
            device=config.device,
            precision=config.precision,
            threads=config.threads,
            few_texts=few_queries,
        ),
        query_tokens=config.query_tokens,
        candidate_tokens=config.candidate_tokens,
        pairs=config.depth,
        log=log,
    )
    shown = shown_reranker(model.name, index)
    spec = model.spec
    is_own = model.source.resolve().is_relative_to(index.models.resolve())
    if is_own and trained_on_other_data(model.source, index):
        log(
            f"{shown} was not trained on these papers and splits; train it anew: "
            f"citerec train-reranker --index {index.path} --force"
        )
    after_ranker = spec.weight_after_ranker
    return OpenReranker(
        index=index,
        name=shown,
        scorer=model,
        depth=config.depth or depth or model.default_depth,
        weight=spec.weight if config.weight is None else config.weight,
        weight_after_ranker=WEIGHT_AFTER_RANKER
        if after_ranker is None
        else after_ranker,
        calibrated=spec.is_calibrated,
        settings={
            "weights": model.fingerprint,
            "query_tokens": spec.query_tokens,
            "candidate_tokens": spec.candidate_tokens,
            "backend": model.backend,
            "precision": model.precision,
            "device": model.device,
        },
    )


def shown_reranker(model: str, index: IndexFolder) -> str:
    """Return the name of a reranker for users: one inside the index by its path there."""
    folder = Path(model).absolute()
    base = index.path.absolute()
    return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else model
