"""The names of the systems that an evaluation compares, and what each is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from citerec import plugins
from citerec.config import Bm25Config, FuseConfig, FuseMethod
from citerec.errors import ConfigError
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rank.ranker import Variant, find_ranker
from citerec.text import QueryForm
from citerec.tuned import read_tuned
from citerec.types import Hits

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

FUSED = ("bm25", "dense")  # the stages that the fusions read
FORMS: Mapping[str, QueryForm | None] = {
    "bm25": None,  # as the setting says
    "bm25-title": QueryForm.TITLE,
    "bm25-key-terms": QueryForm.KEY_TERMS,
}
FUSIONS = ("rrf", "weighted")
RERANKED: Mapping[str, str | None] = {  # and whose candidates
    "bm25+rerank": "bm25",  # as the reranker paper has it
    "rerank": None,  # as the setting says
    "rerank-alone": None,  # the same, in the reranker's own order
}
DEPTH = 100  # candidates reranked unless told otherwise: no figure depends on the machine
BASELINES = ("most-cited", "random")
CEILINGS = frozenset({"oracle"})  # made from the gold itself: no system to be compared with
EXPANDED = "expanded"  # what close papers cite joins the candidates
RANKED: Mapping[str, Variant] = {  # by the final ranker
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
WITH_POOLS = frozenset({EXPANDED, *RANKED})  # that ask the citation graph
NEED_VECTORS = frozenset({"dense", *FUSIONS})
CANDIDATES = ("bm25", "dense", *FUSIONS)  # what "rerank" may read


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system that another package adds by an entry point of the group `citerec.systems`."""

    search: "Callable[[IndexFolder, EvalSet, EvalConfig, Encoder | None], list[Hits]]"
    needs_vectors: bool = False  # whether it is given the encoder of the index


def systems() -> tuple[str, ...]:
    """Return the names of all systems: citerec's own, then those of entry points."""
    return (*SYSTEMS, *(name for name in plugins.names(plugins.SYSTEMS) if name not in SYSTEMS))


def plugged(name: str) -> System | None:
    """Return the system of an entry point; None for one of `SYSTEMS`.

    Raises:
        ConfigError: If there is no system of this name, or it cannot be loaded.
    """
    if name in SYSTEMS:
        return None
    if name not in systems():
        raise ConfigError(f"no system {name!r}; there are: {', '.join(systems())}")
    return plugins.load(plugins.SYSTEMS, name)


def needs_vectors(name: str) -> bool:
    """Return whether a system needs vectors."""
    system = plugged(name)
    return system.needs_vectors if system else name in NEED_VECTORS


def default_systems(index: IndexFolder, *, rerank: bool = False, ranker: str = "auto") -> list[str]:
    """Return the systems that an evaluation compares unless told otherwise; with a reranker if there is one."""
    dense = ["dense", "rrf"] if index.is_embedded else []
    if candidates(index) == "weighted":
        dense.append("weighted")  # as `recommend` fuses
    reranked = [name for name, found_by in RERANKED.items() if dense or not found_by]
    reranked = reranked if rerank else []
    ranked = [EXPANDED, "ranker"] if find_ranker(ranker, index) else [EXPANDED]
    return ["bm25", *dense, *reranked, *ranked, *BASELINES, *sorted(CEILINGS)]


def candidates(index: IndexFolder) -> str:
    """Return the system that finds candidates as `recommend` does."""
    if not index.is_embedded:
        return "bm25"
    tuned = read_tuned(index)
    return "weighted" if tuned and tuned.method is FuseMethod.WEIGHTED else "rrf"


def weights(index: IndexFolder) -> FuseConfig:
    """Return the weights of the system "weighted": as tuned on the index, else both alike."""
    tuned = read_tuned(index)
    return replace(tuned or FuseConfig(), method=FuseMethod.WEIGHTED)


def read_by(name: str, index: IndexFolder, setting: EvalConfig) -> str:
    """Return the system whose list a system reranks, expands or ranks; of any other, itself."""
    if name not in RERANKED and name not in WITH_POOLS:
        return name
    return RERANKED.get(name) or setting.candidates or candidates(index)


def bm25_of(name: str, setting: EvalConfig) -> Bm25Config | None:
    """Return what BM25 searches with in a system; None for one without BM25."""
    if name in FUSIONS:
        return setting.bm25
    if name not in FORMS:
        return None
    form = FORMS[name]
    return replace(setting.bm25, form=form) if form else setting.bm25


def fuse_of(name: str, setting: EvalConfig) -> FuseConfig | None:
    """Return how a system fuses; None for one that does not."""
    if name == "rrf":
        return FuseConfig(k0=setting.fuse.k0, depth=setting.depth)
    return replace(setting.fuse, depth=setting.depth) if name == "weighted" else None
