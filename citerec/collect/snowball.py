"""Chooses the papers of a corpus: the seeds, then what they cite and what cites them, in rounds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from citerec.collect.work import Source
from citerec.types import Progress

LEAST_CITING, MOST_CITING = 100, 1000  # citing works of one paper that are listed
EXPANDED = 50  # papers of a further round
MAX_ROUNDS = 40


@dataclass(slots=True)
class Neighbours:
    """Papers that cite expanded papers or are cited by them, with the expanded papers that they touch."""

    touched: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, paper: str, expanded: str) -> None:
        """Add a citation between a paper and an expanded paper, in either direction."""
        if paper != expanded:
            self.touched[paper].add(expanded)

    def ranked(self, seeds: Set[str], counts: Mapping[str, int]) -> list[str]:
        """Return all of them, best first.

        The order: seeds touched, expanded papers touched, citations, rising id.

        Args:
            seeds: The seeds.
            counts: How often each paper is cited.
        """

        def key(paper: str) -> tuple[int, int, int, str]:
            touched = self.touched[paper]
            return (-len(touched & seeds), -len(touched), -counts.get(paper, 0), paper)

        return sorted(self.touched, key=key)


def snowball(source: Source, seeds: Sequence[str], papers: int, progress: Progress) -> list[str]:
    """Return the ids of at most `papers` works around the seeds; the seeds are first.

    The first round expands the seeds. While there is room, further rounds expand the best works so far, `EXPANDED` at a
    time. A round ranks what it found as `Neighbours.ranked` states.

    Args:
        source: The service.
        seeds: Ids of works that the service knows.
        papers: How many works to choose; never fewer than there are seeds.
        progress: Receives how many works are chosen.

    Raises:
        CollectError: If the service fails.
    """
    chosen = dict.fromkeys(seeds)
    neighbours, waiting = Neighbours(), list(seeds)
    first, seed_set = True, frozenset(seeds)
    for _ in range(MAX_ROUNDS):
        batch = waiting if first else waiting[:EXPANDED]
        waiting = [] if first else waiting[EXPANDED:]
        if len(chosen) >= papers or not batch:
            break
        most = citing_each(papers, len(seeds)) if first else LEAST_CITING
        expand(source, batch, most, neighbours, progress)
        for paper in chosen:
            neighbours.touched.pop(paper, None)
        ranked = neighbours.ranked(seed_set, source.times_cited(sorted(neighbours.touched)))
        new = existing(source, ranked, papers - len(chosen))
        chosen.update(dict.fromkeys(new))
        waiting += new
        progress("choosing", min(len(chosen), papers), papers)
        first = False
    return list(chosen)


def citing_each(papers: int, seeds: int) -> int:
    """Return how many citing works of each seed are listed: about twice as many in all as papers are wanted."""
    return min(max(2 * papers // max(seeds, 1), LEAST_CITING), MOST_CITING)


def expand(
    source: Source, ids: Sequence[str], most: int, neighbours: Neighbours, progress: Progress
) -> None:
    """Add to `neighbours` what some works cite, and at most `most` works that cite each of them."""
    source.fetch(ids)
    for expanded, references in source.references(ids).items():
        for reference in references:
            neighbours.add(reference, expanded)
    listed: set[str] = set()
    for link in source.citing(ids, most):
        listed.add(link.cited)
        neighbours.add(link.citing, link.cited)
        progress("citing works of", len(listed), len(ids))


def existing(source: Source, ranked: Sequence[str], most: int) -> list[str]:
    """Return the first `most` works that the service has with a title."""
    found: list[str] = []
    for part in _parts(ranked, most):
        works = source.fetch(part)
        found += [i for i in part if i in works]
        if len(found) >= most:
            break
    return found[:most]


def _parts(ranked: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    """Yield `most` ids first, and then smaller parts for those that do not exist."""
    yield ranked[:most]
    for start in range(most, len(ranked), 100):
        yield ranked[start : start + 100]


def newer(
    source: Source, seeds: Iterable[str], since: str, known: Set[str], papers: int
) -> list[str]:
    """Return works that cite the seeds, were published on a day or later, and are not known yet, best first.

    Args:
        source: The service.
        seeds: The cited works.
        since: The day, YYYY-MM-DD.
        known: Ids to leave out.
        papers: How many works at most.
    """
    ids = list(seeds)
    source.fetch(ids)
    neighbours = Neighbours()
    for link in source.citing(ids, MOST_CITING, since):
        if link.citing not in known:
            neighbours.add(link.citing, link.cited)
    counts = source.times_cited(sorted(neighbours.touched))
    return existing(source, neighbours.ranked(frozenset(ids), counts), papers)
