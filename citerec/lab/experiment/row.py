"""One row of a results table, read from its file.

A row is a TOML file: its claim, its cost, the corpus, split and system, the settings, and the expected values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from citerec.config import Bm25Config, CrossEncoderConfig, FuseConfig, RerankConfig
from citerec.errors import BadInputError, ConfigError
from citerec.evaluate.catalogue import NEED_VECTORS, RANKED, RERANKED
from citerec.evaluate.protocol import CitationScope, Rules
from citerec.inputs import reading
from citerec.lab.experiment.checks import check_all
from citerec.lab.experiment.kind import ExperimentKind, Needs
from citerec.rerank.spec import RerankerSpec
from citerec.settings import settings_from
from citerec.toml import read_toml

Expected = float | tuple[float, float]
"""An expected value, or its lower and upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """The reranking of a row."""

    candidates: str | None = None  # a system; None: rrf with vectors, bm25 without
    depth: int = 100  # candidates per query
    weight: float | None = (
        None  # in [0, 1]; None: the reranker alone, or a feature of the learning-to-rank model
    )
    query_tokens: int = 0  # 0 for the default of the model
    candidate_tokens: int = 0  # likewise
    precision: str = "auto"
    backend: str = "auto"

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ConfigError(f"depth must be at least 1, got {self.depth}")
        RerankerSpec().with_tokens(self.query_tokens, self.candidate_tokens)  # validates them
        self.config("a model")  # validates the rest

    def config(self, model: str, weight: float | None = 1) -> RerankConfig:
        """Return the rerank config for a model; `weight` applies if the row sets none."""
        stage = CrossEncoderConfig(
            model=model,
            depth=self.depth,
            query_tokens=self.query_tokens,
            candidate_tokens=self.candidate_tokens,
        )
        return RerankConfig(
            cross_encoders=(stage,),
            weight=weight if self.weight is None else self.weight,
            precision=self.precision,
            backend=self.backend,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One row of a table."""

    path: Path
    title: str  # of the row
    claim: str = ""
    cost: str = ""
    corpus: str = ""  # relative to the working folder
    kind: ExperimentKind = ExperimentKind.RECOMMEND
    needs: Needs | None = None  # a required resource
    rules: Rules = Rules()  # restrictions of queries and candidates
    split: str = "test"
    system: str = "bm25"
    known_graph: CitationScope = CitationScope.TRAIN
    bm25: Bm25Config = Bm25Config()
    encoder: str | None = None  # the encoder of the index; None for an index without vectors
    train: str | None = None  # TOML settings of the training of the encoder
    trained_on: str | None = None  # the training corpus, if it is another one
    apart: Sequence[str] = ()  # datasets whose test papers are held out of the training corpus
    fuse: FuseConfig = FuseConfig()  # k0 of rrf, the weights of weighted
    reranker: str | None = None  # a folder or a hub id; None for none
    train_reranker: str | None = None  # TOML settings of its training
    rerank: Reranking = Reranking()
    ranker: str | None = None  # a folder; None for the default model
    train_ranker: str | None = None  # TOML settings of its training
    ranker_corpora: Sequence[str] = ()  # its training corpora; by default that of the row
    disabled_features: Sequence[str] = ()  # disabled feature groups
    expect: Mapping[str, Expected] = field(default_factory=dict[str, Expected])  # by `MEASURES`
    published: Mapping[str, float] = field(
        default_factory=dict[str, float]
    )  # published values, likewise
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


def read_experiment(path: Path) -> Experiment:
    """Read the file of a row.

    Raises:
        BadInputError: If it is missing, is no TOML, has no required key, or has an unknown key or an invalid value.
    """
    with reading(path):
        exists = path.exists()
    if not exists:
        raise BadInputError(path, "no such file; name a row, such as experiments/bm25/vis.toml")
    content = read_toml(path)
    check_all(path, content)
    keys = frozenset(content)
    expect = {name: _expected(value) for name, value in content.pop("expect", {}).items()}
    try:
        row = settings_from(Experiment, {**content, "path": path, "expect": expect})
    except ConfigError as error:  # a value of a wrong type or out of its range
        raise BadInputError(path, str(error)) from error
    if row.apart and not row.trained_on:
        raise BadInputError(path, "'apart' goes with 'trained_on'")
    _check_models(row, keys)
    return row


def _expected(value: Any) -> Expected:
    return (value[0], value[-1]) if isinstance(value, list) else value


def _check_models(row: Experiment, keys: frozenset[str]) -> None:
    """Refuse a row with two models for one stage, a missing model, or a model that its system does not use."""
    path, reranks = row.path, row.system in RERANKED
    if row.kind is not ExperimentKind.RECOMMEND:
        _check_other(row, keys)
        return
    if row.encoder and row.train:
        raise BadInputError(path, "'encoder' and 'train' are two encoders; use one")
    if row.reranker and row.train_reranker:
        raise BadInputError(path, "'reranker' and 'train_reranker' are two rerankers; use one")
    if reranks and not (row.reranker or row.train_reranker):
        raise BadInputError(path, f"system {row.system!r} needs 'reranker' or 'train_reranker'")
    uses_reranker = (
        reranks or row.system in RANKED
    )  # a learning-to-rank model uses the reranker, if there is one
    if not uses_reranker and (unused := keys & {"reranker", "train_reranker", "rerank"}):
        raise BadInputError(
            path, f"{min(unused)!r} has no effect: system {row.system!r} does not rerank"
        )
    if row.ranker and row.train_ranker:
        raise BadInputError(path, "'ranker' and 'train_ranker' are two models; use one")
    if row.ranker_corpora and not row.train_ranker:
        raise BadInputError(path, "'ranker_corpora' goes with 'train_ranker'")
    if (row.ranker or row.train_ranker or row.disabled_features) and row.system not in RANKED:
        raise BadInputError(path, f"system {row.system!r} has no learning-to-rank model")
    needs = row.candidates if reranks else row.system
    if needs in NEED_VECTORS and not row.has_vectors:
        named = f"rerank.candidates {needs!r}" if reranks else f"system {needs!r}"
        raise BadInputError(path, f"{named} needs 'encoder' or 'train'")


def _check_other(row: Experiment, keys: frozenset[str]) -> None:
    """Refuse a row of another kind with unused keys, or without required ones."""
    common = {"title", "claim", "cost", "corpus", "kind", "needs", "expect", "published", "source"}
    encodes = row.kind in (
        ExperimentKind.SCIDOCS,
        ExperimentKind.INDEX_TASKS,
        ExperimentKind.TOPICS,
    )
    allowed = common | {"encoder", "train", "trained_on", "apart"} if encodes else common
    if unused := keys - allowed:
        raise BadInputError(row.path, f"{min(unused)!r} has no effect: a row of kind '{row.kind}'")
    if encodes and bool(row.encoder) == bool(row.train):
        raise BadInputError(row.path, f"a row of kind '{row.kind}' needs 'encoder' or 'train'")
    if (row.kind is ExperimentKind.SCIDOCS and bool(row.train)) != bool(row.trained_on):
        raise BadInputError(row.path, "'trained_on' goes with 'train' in a row of kind 'scidocs'")
