"""One row of a results table, as its file says it.

A row is a TOML file: its claim, what it costs, the corpus, split and system, the settings, and the expected numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from citerec.config import Bm25Config, FuseConfig, RerankConfig, RerankStage, StopWords
from citerec.errors import BadInputError, ConfigError
from citerec.evaluate.catalogue import NEED_VECTORS, RANKED, RERANKED
from citerec.evaluate.protocol import KnownGraph, Rules
from citerec.inputs import reading
from citerec.lab.experiment.checks import check_all
from citerec.lab.experiment.kind import ExperimentKind, Needs
from citerec.rerank.spec import RerankerSpec
from citerec.text import QueryForm
from citerec.toml import read_toml

Expected = float | tuple[float, float]
"""A figure that a row should give, or the least and the greatest."""

_Kind = TypeVar("_Kind", FuseConfig, "Reranking", Rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """What a row reranks, and how."""

    candidates: str | None = None  # a system; None for rrf with vectors, bm25 without
    depth: int = 100  # candidates per query
    weight: float | None = None  # in [0, 1]; None: the reranker alone, or as a ranker mixes it in
    query_tokens: int = 0  # 0 for what the model was made for
    candidate_tokens: int = 0  # likewise
    precision: str = "auto"
    backend: str = "auto"

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ConfigError(f"depth must be at least 1, got {self.depth}")
        RerankerSpec().with_tokens(self.query_tokens, self.candidate_tokens)  # which checks them
        self.config("a model")  # which checks the rest

    def config(self, model: str, weight: float | None = 1) -> RerankConfig:
        """Return the same for a model; `weight` is what it weighs where the row does not say."""
        stage = RerankStage(
            model=model,
            depth=self.depth,
            query_tokens=self.query_tokens,
            candidate_tokens=self.candidate_tokens,
        )
        return RerankConfig(
            stages=(stage,),
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
    corpus: str = ""  # relative to the folder that citerec is run in
    kind: ExperimentKind = ExperimentKind.RECOMMEND
    needs: Needs | None = None  # what it is not run without
    rules: Rules = Rules()  # which queries are asked, and among which papers
    split: str = "test"
    system: str = "bm25"
    known_graph: KnownGraph = KnownGraph.TRAIN
    bm25: Bm25Config = Bm25Config()
    encoder: str | None = None  # whose vectors the index has; None for an index without
    train: str | None = None  # the settings of the training that makes the encoder, a TOML file
    trained_on: str | None = None  # the corpus that makes its models, where that is another
    apart: Sequence[str] = ()  # datasets whose test papers that corpus was fetched without
    fuse: FuseConfig = FuseConfig()  # k0 of rrf, the weights of weighted
    reranker: str | None = None  # a folder or a hub id; None for none
    train_reranker: str | None = None  # the settings of the training that makes it, a TOML file
    rerank: Reranking = Reranking()
    ranker: str | None = None  # a folder; None for the one that comes with citerec
    train_ranker: str | None = None  # the settings of the training that makes it, a TOML file
    ranker_corpora: Sequence[str] = ()  # that it learns from; by default the row's own
    disabled_features: Sequence[str] = ()  # sources that it does without
    expect: Mapping[str, Expected] = field(default_factory=dict[str, Expected])  # by `MEASURES`
    published: Mapping[str, float] = field(
        default_factory=dict[str, float]
    )  # others' figures, likewise
    source: str = ""  # of these

    @property
    def table(self) -> str:
        """The table that the row belongs to: the folder of its file."""
        return self.path.parent.name

    @property
    def corpora(self) -> tuple[str, ...]:
        """Every corpus that the row reads."""
        return (self.corpus, *self.ranker_corpora, *filter(None, [self.trained_on]))

    @property
    def has_vectors(self) -> bool:
        """Whether the index has an encoder's vectors."""
        return bool(self.encoder or self.train)

    @property
    def candidates(self) -> str:
        """The system whose list is reranked, if any is."""
        fused = "rrf" if self.has_vectors else "bm25"
        return RERANKED.get(self.system) or self.rerank.candidates or fused

    @property
    def index_name(self) -> str:
        """The folder of the index: the corpus, and what its vectors are of."""
        of = Path(self.train).stem if self.train else self.encoder
        name = Path(self.corpus).name
        return f"{name}.{of.strip('./').replace('/', '-')}" if of else name


def read_experiment(path: Path) -> Experiment:
    """Read a row's file.

    Raises:
        BadInputError: If it is missing, is no TOML, lacks a key, or has one that is not known or cannot be so.
    """
    with reading(path):
        there = path.exists()
    if not there:
        raise BadInputError(path, "no such file; name a row, such as experiments/bm25/vis.toml")
    content = read_toml(path)
    check_all(path, content)
    keys = frozenset(content)
    kind = ExperimentKind(content.pop("kind", ExperimentKind.RECOMMEND))
    needs = Needs(content.pop("needs")) if "needs" in content else None
    rules = _settings(path, "rules", Rules, content.pop("rules", {}))
    expect = {name: _expected(value) for name, value in content.pop("expect", {}).items()}
    graph = KnownGraph(content.pop("known_graph", KnownGraph.TRAIN))
    bm25 = _bm25(path, content.pop("bm25", {}))
    fuse = _settings(path, "fuse", FuseConfig, content.pop("fuse", {}))
    rerank = _settings(path, "rerank", Reranking, content.pop("rerank", {}))
    row = Experiment(
        path=path,
        kind=kind,
        needs=needs,
        rules=rules,
        known_graph=graph,
        bm25=bm25,
        fuse=fuse,
        rerank=rerank,
        expect=expect,
        **content,
    )
    if row.apart and not row.trained_on:
        raise BadInputError(path, "'apart' goes with 'trained_on'")
    _check_models(row, keys)
    return row


def _expected(value: Any) -> Expected:
    return (value[0], value[-1]) if isinstance(value, list) else value


def _check_models(row: Experiment, keys: frozenset[str]) -> None:
    """Refuse a row that names two models for one stage, none where it needs one, or one that it does not read."""
    path, reranks = row.path, row.system in RERANKED
    if row.kind is not ExperimentKind.RECOMMEND:
        _check_other(row, keys)
        return
    if row.encoder and row.train:
        raise BadInputError(path, "'encoder' and 'train' name two encoders; give one")
    if row.reranker and row.train_reranker:
        raise BadInputError(path, "'reranker' and 'train_reranker' name two rerankers; give one")
    if reranks and not (row.reranker or row.train_reranker):
        raise BadInputError(path, f"system {row.system!r} needs 'reranker' or 'train_reranker'")
    reads = (
        reranks or row.system in RANKED
    )  # a ranker reads what a reranker thinks, if there is one
    if not reads and (vain := keys & {"reranker", "train_reranker", "rerank"}):
        raise BadInputError(
            path, f"{min(vain)!r} has no effect: system {row.system!r} does not rerank"
        )
    if row.ranker and row.train_ranker:
        raise BadInputError(path, "'ranker' and 'train_ranker' name two rankers; give one")
    if row.ranker_corpora and not row.train_ranker:
        raise BadInputError(path, "'ranker_corpora' goes with 'train_ranker'")
    if (row.ranker or row.train_ranker or row.disabled_features) and row.system not in RANKED:
        raise BadInputError(path, f"system {row.system!r} takes no ranker")
    needs = row.candidates if reranks else row.system
    if needs in NEED_VECTORS and not row.has_vectors:
        what = f"rerank.candidates {needs!r}" if reranks else f"system {needs!r}"
        raise BadInputError(path, f"{what} needs 'encoder' or 'train'")


def _check_other(row: Experiment, keys: frozenset[str]) -> None:
    """Refuse a row of another kind that asks for what it does not read, or lacks what it does."""
    common = {"title", "claim", "cost", "corpus", "kind", "needs", "expect", "published", "source"}
    encodes = row.kind in (
        ExperimentKind.SCIDOCS,
        ExperimentKind.INDEX_TASKS,
        ExperimentKind.TOPICS,
    )
    read = common | {"encoder", "train", "trained_on", "apart"} if encodes else common
    if vain := keys - read:
        raise BadInputError(row.path, f"{min(vain)!r} has no effect: a row of kind '{row.kind}'")
    if encodes and bool(row.encoder) == bool(row.train):
        raise BadInputError(row.path, f"a row of kind '{row.kind}' needs 'encoder' or 'train'")
    if (row.kind is ExperimentKind.SCIDOCS and bool(row.train)) != bool(row.trained_on):
        raise BadInputError(row.path, "'trained_on' goes with 'train' in a row of kind 'scidocs'")


def _bm25(path: Path, settings: dict[str, Any]) -> Bm25Config:
    form = QueryForm(settings.pop("form", QueryForm.TITLE_ABSTRACT))
    stop_words = StopWords(settings.pop("stop_words", StopWords.AUTO))
    try:
        return Bm25Config(form=form, stop_words=stop_words, **settings)
    except ConfigError as error:  # a value out of its range
        raise BadInputError(path, f"bm25: {error}") from error


def _settings(path: Path, name: str, kind: type[_Kind], settings: dict[str, Any]) -> _Kind:
    try:
        return kind(**settings)
    except ConfigError as error:
        raise BadInputError(path, f"{name}: {error}") from error
