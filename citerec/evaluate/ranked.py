"""The systems that ask the citation graph: the candidates with what close papers cite, and the final ranker's order."""

from collections.abc import Sequence

from citerec.candidates import Candidates
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rank.final import LtrStage
from citerec.rank.pool import CandidateExpander
from citerec.rank.ranker import Ranker
from citerec.rerank.cascade import Cascade
from citerec.types import Hits, Progress

AT_ONCE = 64  # queries whose pools are in memory together


def expanded(
    index: IndexFolder, task: EvalSet, setting: EvalConfig, found: Sequence[Candidates]
) -> list[Hits]:
    """Fuse, by reciprocal rank, the candidates of each query with what close papers cite."""
    expander = CandidateExpander(index, setting.known_graph)
    hits: list[Hits] = []
    for part in _parts(task):
        pools = expander.pool(task.queries[part], task.eligible[part], found[part])
        hits += [_best(pool.hits, setting.depth) for pool in pools]
    return hits


def ranked(
    index: IndexFolder,
    task: EvalSet,
    setting: EvalConfig,
    found: Sequence[Candidates],
    ranker: Ranker,
    cascade: Cascade | None,
    progress: Progress,
) -> list[Hits]:
    """Order the pool of each query by a ranker; the rerankers, if any, read the best of it before."""
    final = LtrStage(
        index, ranker, setting.known_graph, disabled_features=setting.disabled_features
    )
    hits: list[Hits] = []
    for part in _parts(task):
        ordered = final.order(
            task.queries[part],
            task.eligible[part],
            found[part],
            k=setting.depth,
            cascade=cascade,
            progress=progress,
        )
        hits += [_best(one.hits, setting.depth) for one in ordered]
    return hits


def _parts(task: EvalSet) -> list[slice]:
    return [slice(i, i + AT_ONCE) for i in range(0, len(task.queries), AT_ONCE)]


def _best(hits: Hits, k: int) -> Hits:
    return Hits(hits.rows[:k], hits.scores[:k])
