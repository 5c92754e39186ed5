"""Draws a connected sample of a corpus: papers that cite each other, found from a random paper over its citations."""

import random
from array import array
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.corpus.collector import Collector
from citerec.corpus.tools.reading import Corpus
from citerec.corpus.tools.writing import write_corpus
from citerec.errors import ConfigError
from citerec.types import Log, Progress, no_log, no_progress

FAN = 20  # papers that are added around a paper at once: a paper that thousands cite would fill the sample


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What a sample holds."""

    papers: int
    citations: int
    parts: int  # of the citation graph from which papers were taken


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Papers that cite, or are cited by, each paper, in CSR form."""

    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]

    def of(self, row: int) -> list[int]:
        return self.rows[self.starts[row] : self.starts[row + 1]].tolist()


def sample(
    corpus: Corpus,
    output: Path,
    n: int,
    seed: int,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> SampleReport:
    """Write `n` papers of a corpus that are connected by citations; the same seed gives the same papers.

    The corpus is read twice. Papers keep their order and their citations to papers of the sample; splits are not
    written, so that an index of the sample is split by year. A corpus without citations gives a random sample.

    Raises:
        BadInputError: If a record is invalid and is not skipped.
        ConfigError: If there is no valid paper.
        OutputError: If the file cannot be written.
    """
    ids, neighbours = _graph(corpus, progress, log)
    if not ids:
        raise ConfigError(f"{corpus.path} holds no valid paper; {output} was not made")
    rng = random.Random(seed)
    if len(neighbours.rows):
        chosen, parts = _walk(neighbours, n, rng)
    else:
        log("this corpus has no citations: the sample is random")
        chosen = set(rng.sample(range(len(ids)), min(n, len(ids))))
        parts = len(chosen)
    kept = {ids[row] for row in chosen}
    citations = 0
    with write_corpus(output) as write:
        for paper in corpus.papers(Collector(corpus.skip_bad), "writing", progress):
            if paper.id in kept:
                inside = tuple(cited for cited in paper.citations if cited in kept)
                citations += len(inside)
                write(replace(paper, citations=inside))
    return SampleReport(len(kept), citations, parts)


def _graph(corpus: Corpus, progress: Progress, log: Log) -> tuple[list[str], _Neighbours]:
    """Read ids and citations; citations are held as hashes until every id is known."""
    collector = Collector(corpus.skip_bad)
    citing, cited = array("i"), array("q")
    for row, paper in enumerate(corpus.papers(collector, progress=progress, log=log)):
        citing.extend([row] * len(paper.citations))
        cited.extend(map(hash, paper.citations))
    ids = list(collector.rows)
    hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
    order = np.argsort(hashes)
    wanted = np.frombuffer(cited, np.int64) if cited else np.zeros(0, np.int64)
    places = np.searchsorted(hashes[order], wanted)
    targets = order[np.minimum(places, len(ids) - 1)] if ids else places
    sources = np.frombuffer(citing, np.int32) if citing else np.zeros(0, np.int32)
    inside = (hashes[targets] == wanted) & (targets != sources)
    return ids, _both_ways(sources[inside], targets[inside].astype(np.int32), len(ids))


def _both_ways(
    sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32], papers: int
) -> _Neighbours:
    """Return the graph without directions; the references of a paper come before those that cite it."""
    rows = np.concatenate([sources, targets])
    others = np.concatenate([targets, sources])
    starts = np.zeros(papers + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=papers), out=starts[1:])
    return _Neighbours(starts, others[np.argsort(rows, kind="stable")])


def _walk(neighbours: _Neighbours, n: int, rng: random.Random) -> tuple[set[int], int]:
    """Return rows found breadth-first from random papers, and from how many papers the search began."""
    papers = len(neighbours.starts) - 1
    starts = list(range(papers))
    rng.shuffle(starts)
    # papers with citations first: others are parts of their own
    starts.sort(key=lambda row: neighbours.starts[row] == neighbours.starts[row + 1])
    chosen, parts = set[int](), 0
    for start in starts:
        if len(chosen) >= n:
            break
        if start in chosen:
            continue
        parts += 1
        chosen.add(start)
        waiting = deque([start])
        while waiting and len(chosen) < n:
            row = waiting.popleft()
            found = list(dict.fromkeys(r for r in neighbours.of(row) if r not in chosen))
            drawn = rng.sample(found, FAN) if len(found) > FAN else found
            drawn = drawn[: n - len(chosen)]
            chosen.update(drawn)
            waiting.extend(drawn)
            if len(found) > FAN:
                waiting.append(row)
    return chosen, parts
