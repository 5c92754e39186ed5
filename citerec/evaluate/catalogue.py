"""The names and the stages of the systems that an evaluation compares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citerec import plugins
from citerec.config import Bm25Config, FuseConfig, FuseMethod
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rank.ltr import Variant, find_ranker
from citerec.text import QueryForm
from citerec.tuned import read_tuned
from citerec.types import Hits

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

FUSED = ("bm25", "dense")  # the retrievers of the fusions
FORMS: Mapping[str, QueryForm | None] = {
    "bm25": None,  # as configured
    "bm25-title": QueryForm.TITLE,
    "bm25-key-terms": QueryForm.KEY_TERMS,
}
FUSIONS = ("rrf", "weighted")
RERANKED: Mapping[str, str | None] = {  # with the system that finds their candidates
    "bm25+rerank": "bm25",  # as in the reranker paper
    "rerank": None,  # as configured
    "rerank-alone": None,  # likewise, in the order of the reranker's scores
}
DEPTH = 100  # reranked candidates by default, on every machine, so that results can be compared
BASELINES = ("most-cited", "random")
CEILINGS = frozenset({"oracle"})  # upper bounds, made from the gold references
EXPANDED = "expanded"  # the first-stage candidates with the expansion
RANKED: Mapping[str, Variant] = {  # ordered by the learning-to-rank model
    "ranker": Variant.FULL,
    "ranker-no-popularity": Variant.NO_POPULARITY,
    "ranker-no-authors": Variant.NO_AUTHORS,
}
SYSTEMS = (
    *FORMS,
    "dense",
    *FUSIONS,
    *RERANKED,
    EXPANDED,
    *RANKED,
    *BASELINES,
    *sorted(CEILINGS),
)
WITH_EXPANSION = frozenset({EXPANDED, *RANKED})  # that expand the candidates by the citation graph
NEED_VECTORS = frozenset({"dense", *FUSIONS})
CANDIDATES = ("bm25", "dense", *FUSIONS)  # the choices for the candidates of "rerank"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system that another package adds by an entry point of the group `citerec.systems`."""

    search: "Callable[[IndexFolder, EvalSet, EvalConfig, Encoder | None], list[Hits]]"
    needs_vectors: bool = False  # whether `search` receives the encoder of the index


def systems() -> tuple[str, ...]:
    """Return the names of all systems: citerec's own, then systems and retrievers of entry points."""
    registered = (*plugins.names(plugins.SYSTEMS), *plugins.names(plugins.RETRIEVERS))
    return tuple(dict.fromkeys((*SYSTEMS, *registered)))


def plugged(name: str) -> System | None:
    """Return the system of an entry point; None for one of `SYSTEMS`, and for a retriever.

    Raises:
        ConfigError: If it cannot be loaded.
    """
    if name in SYSTEMS or name not in plugins.names(plugins.SYSTEMS):
        return None
    return plugins.load(plugins.SYSTEMS, name)


def needs_vectors(name: str) -> bool:
    """Return whether a system needs vectors."""
    system = plugged(name)
    return system.needs_vectors if system else name in NEED_VECTORS


def default_systems(index: IndexFolder, *, rerank: bool = False, ranker: str = "auto") -> list[str]:
    """Return the systems that an evaluation compares by default.

    Args:
        index: The index.
        rerank: Whether there is a reranker.
        ranker: The ranker, as for `find_ranker`.
    """
    dense = ["dense", "rrf"] if index.is_embedded else []
    if candidates(index) == "weighted":
        dense.append("weighted")  # as `recommend` fuses
    reranked = [name for name, retriever in RERANKED.items() if dense or not retriever]
    reranked = reranked if rerank else []
    ranked = [EXPANDED, "ranker"] if find_ranker(ranker, index) else [EXPANDED]
    return ["bm25", *dense, *reranked, *ranked, *BASELINES, *sorted(CEILINGS)]


def candidates(index: IndexFolder) -> str:
    """Return the system that finds the candidates of `recommend`."""
    if not index.is_embedded:
        return "bm25"
    tuned = read_tuned(index)
    return "weighted" if tuned and tuned.method is FuseMethod.WEIGHTED else "rrf"


def weights(index: IndexFolder) -> FuseConfig:
    """Return the weights of the system "weighted": as tuned on the index, else equal weights."""
    tuned = read_tuned(index)
    return (tuned or FuseConfig()).replace(method=FuseMethod.WEIGHTED)


def read_by(name: str, index: IndexFolder, config: EvalConfig) -> str:
    """Return the system whose list a system reranks, expands or ranks; any other system is its own."""
    if name not in RERANKED and name not in WITH_EXPANSION:
        return name
    return RERANKED.get(name) or config.candidates or candidates(index)


def bm25_of(name: str, config: EvalConfig) -> Bm25Config | None:
    """Return the BM25 settings of a system; None without BM25."""
    if name in FUSIONS:
        return config.bm25
    if name not in FORMS:
        return None
    form = FORMS[name]
    return config.bm25.replace(form=form) if form else config.bm25


def fuse_of(name: str, config: EvalConfig) -> FuseConfig | None:
    """Return the fusion settings of a system; None without a fusion."""
    if name == "rrf":
        return FuseConfig(k0=config.fuse.k0, depth=config.depth)
    return config.fuse.replace(depth=config.depth) if name == "weighted" else None
