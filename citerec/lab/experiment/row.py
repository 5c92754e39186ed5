"""One row of a results table, read from its file.

A row is a TOML file: its claim, its cost, the corpus, split and system, the settings, and the expected values.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from citerec.config import Bm25Config, FuseConfig, RerankConfig, Settings, read_settings
from citerec.errors import BadInputError, ConfigError
from citerec.evaluation.metrics import METRICS
from citerec.evaluation.protocol import CitationScope, KnownGraph
from citerec.evaluation.systems import (
    CANDIDATES,
    NEED_VECTORS,
    RANKED,
    RERANKED,
    systems,
)
from citerec.files.reading import read_toml
from citerec.lab.experiment.rules import Rules
from citerec.lab.scidocs import published
from citerec.lab.scidocs.from_index import TASKS


class ExperimentKind(StrEnum):
    """What a row runs."""

    RECOMMEND = "recommend"  # a system answers the queries of a split
    STATISTICS = "statistics"  # the statistics of a corpus
    SCIDOCS = "scidocs"  # an encoder on the seven tasks of the published data
    INDEX_TASKS = "index-tasks"  # an encoder on similar tasks built from a corpus
    TOPICS = "topics"  # the separation of topics in a map of an encoder's vectors
    POOLS = "pools"  # judged pools, beside published rankings of them
    PUBLISHED = "published"  # published values only; nothing is run


ENCODES = (ExperimentKind.SCIDOCS, ExperimentKind.INDEX_TASKS, ExperimentKind.TOPICS)
COUNTS = (
    *("papers", "with abstract", "citations", "citing papers"),
    *(
        "train queries",
        "dev queries",
        "test queries",
        "gold per query",
        "first year",
        "last year",
    ),
)


ON_SCIDOCS = (*published.METRICS, "average", *published.GROUPS)
INDEX_ORDER = ("venue", "period", "cite", "co-cite", "coupling", "authors")
ON_INDEX = (*(metric for task in INDEX_ORDER for metric in TASKS[task]), "average")
TOPICS = ("homogeneity", "completeness")
ON_POOLS = ("ndcg", "map", "over fusion", "over published")
MEASURES: Mapping[ExperimentKind, tuple[str, ...]] = {
    ExperimentKind.RECOMMEND: METRICS,
    ExperimentKind.STATISTICS: COUNTS,
    ExperimentKind.SCIDOCS: ON_SCIDOCS,
    ExperimentKind.INDEX_TASKS: ON_INDEX,
    ExperimentKind.TOPICS: TOPICS,
    ExperimentKind.POOLS: ON_POOLS,
    ExperimentKind.PUBLISHED: (*METRICS, *ON_SCIDOCS, *COUNTS, *TOPICS),
}
"""The measures of each kind, with the names in `expect` and `published`."""


def _known_system(name: str) -> str:
    if name not in systems():
        raise ValueError(f"no system {name!r}; there are: {', '.join(systems())}")
    return name


Text: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"\S")]
Expected: TypeAlias = float | tuple[float, float]
"""An expected value, or its lower and upper bound."""


class Reranking(RerankConfig):
    """The reranking of a row; without a weight the reranker alone, or a feature."""

    depth: int = Field(default=100, ge=1)  # candidates per query
    candidates: str | None = Field(default=None, pattern=f"^({'|'.join(CANDIDATES)})$")


class Pools(Settings):
    """How the judged pools of a benchmark are evaluated: the mean over pools."""

    judgements: Mapping[str, str]  # by their file, the published rankings of them
    cut: float = Field(gt=0)  # of nDCG: ranks, or a share of the pool
    relevant: float = 1  # the least grade of a relevant paper, for MAP
    year_max: int | None = None

    def depth(self, pool: int) -> int:
        """Return how many ranks nDCG reads of a pool."""
        return int(self.cut) if self.cut >= 1 else max(1, int(self.cut * pool))

    @property
    def name(self) -> str:
        """The name of its nDCG."""
        return f"nDCG@{self.cut:g}" if self.cut >= 1 else f"nDCG%{self.cut:.0%}"[:-1]


class Experiment(Settings):
    """One row of a table."""

    path: Path
    title: Text  # of the row
    claim: Text = "-"
    cost: Text = "-"
    corpus: str = ""  # relative to the working folder
    kind: ExperimentKind = ExperimentKind.RECOMMEND
    needs: Literal["gpu"] | None = None  # its training would take weeks on a CPU
    rules: Rules = Rules()  # restrictions of queries and candidates
    split: Literal["train", "dev", "test"] = "test"
    system: Annotated[str, AfterValidator(_known_system)] = "bm25"
    known_graph: KnownGraph = CitationScope.TRAIN
    bm25: Bm25Config = Bm25Config()
    # the encoder of the index; None for an index without vectors
    encoder: Text | None = None
    train: Text | None = None  # TOML settings of the training of the encoder
    trained_on: Text | None = None  # the training corpus, if it is another one
    # datasets whose test papers are held out of the training corpus
    apart: tuple[str, ...] = ()
    fuse: FuseConfig = FuseConfig()  # k0 of rrf, the weights of weighted
    reranker: Text | None = None  # a folder or a hub id; None for none
    train_reranker: Text | None = None  # TOML settings of its training
    rerank: Reranking = Reranking()
    ranker: Text | None = None  # a folder; None for the default model
    train_ranker: Text | None = None  # TOML settings of its training
    # its training corpora; by default that of the row
    ranker_corpora: tuple[str, ...] = ()
    pools: Pools | None = None  # of a row of kind "pools"
    expect: Mapping[str, Expected] = {}  # by `MEASURES`
    published: Mapping[str, float] = {}  # likewise
    source: str = ""  # the source of the published values

    @property
    def table(self) -> str:
        """The table of the row: the folder of its file."""
        return self.path.parent.name

    @property
    def corpora(self) -> tuple[str, ...]:
        """Every corpus that the row reads."""
        return (self.corpus, *self.ranker_corpora, *filter(None, [self.trained_on]))

    @property
    def has_vectors(self) -> bool:
        """Whether the index has vectors."""
        return bool(self.encoder or self.train)

    @property
    def candidates(self) -> str:
        """The system whose ranking is reranked, if any is."""
        fused = "rrf" if self.has_vectors else "bm25"
        return RERANKED.get(self.system) or self.rerank.candidates or fused

    @property
    def index_name(self) -> str:
        """The folder name of the index: the corpus and its encoder."""
        encoder = Path(self.train).stem if self.train else self.encoder
        name = Path(self.corpus).name
        return f"{name}.{encoder.strip('./').replace('/', '-')}" if encoder else name

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse a missing key, one without effect, two models for one stage, and an unknown measure."""
        given = self.model_fields_set
        if self.kind is not ExperimentKind.PUBLISHED:
            for key in ("claim", "cost", "corpus"):
                if key not in given:
                    raise ValueError(f"{key!r} is missing")
        measures = MEASURES[self.kind]
        if unknown := [
            name for name in (*self.expect, *self.published) if name not in measures
        ]:
            raise ValueError(
                f"no measure {unknown[0]!r}; there are: {', '.join(measures)}"
            )
        for ends in self.expect.values():
            if isinstance(ends, tuple) and ends[0] > ends[1]:
                raise ValueError(
                    f"a range begins with its least value, got {list(ends)}"
                )
        if self.published and not self.source:
            raise ValueError("'published' needs 'source': the source of the values")
        if self.apart and not self.trained_on:
            raise ValueError("'apart' goes with 'trained_on'")
        if self.kind is ExperimentKind.RECOMMEND:
            self._check_models(given)
        else:
            self._check_other(given)
        return self

    def _check_models(self, given: set[str]) -> None:
        for a, b in (
            ("encoder", "train"),
            ("reranker", "train_reranker"),
            ("ranker", "train_ranker"),
        ):
            if {a, b} <= given:
                raise ValueError(f"{a!r} and {b!r} are two models; use one")
        if "model" in self.rerank.model_fields_set:
            raise ValueError(
                "'rerank.model' has no effect; name the model with 'reranker'"
            )
        reranks = self.system in RERANKED
        of_reranking = given & {"reranker", "train_reranker", "rerank"}
        of_ranking = given & {"ranker", "train_ranker", "ranker_corpora"}
        if reranks and not (self.reranker or self.train_reranker):
            raise ValueError(
                f"system {self.system!r} needs 'reranker' or 'train_reranker'"
            )
        if of_reranking and not (reranks or self.system in RANKED):
            raise ValueError(
                f"{min(of_reranking)!r} has no effect: {self.system!r} does not rerank"
            )
        if of_ranking and self.system not in RANKED:
            raise ValueError(
                f"{min(of_ranking)!r} has no effect: {self.system!r} has no learning-to-rank model"
            )
        if self.ranker_corpora and not self.train_ranker:
            raise ValueError("'ranker_corpora' goes with 'train_ranker'")
        needs = self.candidates if reranks else self.system
        if needs in NEED_VECTORS and not self.has_vectors:
            raise ValueError(f"{needs!r} needs 'encoder' or 'train'")

    def _check_other(self, given: set[str]) -> None:
        allowed = {
            *("path", "title", "claim", "cost", "corpus", "kind", "needs"),
            *("expect", "published", "source"),
        }
        if self.kind is ExperimentKind.POOLS:
            allowed |= {"encoder", "pools"}
            if not self.pools or not self.encoder:
                raise ValueError("a row of kind 'pools' needs 'pools' and 'encoder'")
        if self.kind in ENCODES:
            allowed |= {"encoder", "train", "trained_on", "apart"}
            if bool(self.encoder) == bool(self.train):
                raise ValueError(
                    f"a row of kind '{self.kind}' needs 'encoder' or 'train'"
                )
            if (self.kind is ExperimentKind.SCIDOCS and bool(self.train)) != bool(
                self.trained_on
            ):
                raise ValueError(
                    "'trained_on' goes with 'train' in a row of kind 'scidocs'"
                )
        if unused := given - allowed:
            raise ValueError(
                f"{min(unused)!r} has no effect: a row of kind '{self.kind}'"
            )


def read_experiment(path: Path) -> Experiment:
    """Read the file of a row.

    Raises:
        BadInputError: If it is missing, is no TOML, has no required key, or has an unknown key or an invalid value.
    """
    try:
        return read_settings(Experiment, {**read_toml(path), "path": path})
    except ConfigError as error:
        raise BadInputError(path, str(error)) from error


def format_measure(measure: str, value: float, *, digits: int = 4) -> str:
    """Format a measure: shares with `digits` decimals, counts with all digits."""
    if measure not in COUNTS:
        return f"{value:.{digits}f}"
    if measure.endswith("year"):
        return f"{value:.0f}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
