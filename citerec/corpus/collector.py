"""Collects the records of a corpus: numbers the papers and counts invalid and repeated records."""

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from citerec.corpus.readers import Located, Source, size_of
from citerec.errors import BadRecordError
from citerec.types import Paper, Progress

EXAMPLES = 5  # faults that are kept as examples


@dataclass(slots=True)
class RecordCounter:
    """Numbers papers in the order in which they arrive, and keeps one paper per id.

    An invalid record raises, unless `skip_bad` is set: then it is counted and skipped. An identical repeated paper
    is counted and skipped in both cases; a repeated id with other content is an invalid record.
    """

    skip_bad: bool
    joins: bool = False  # whether records of one id are joined later: each is kept then
    rows: dict[str, int] = field(default_factory=dict[str, int])  # by docid, in row order
    counts: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    _contents: "array[int]" = field(default_factory=lambda: array("q"))  # hash of each row's paper

    def add(self, located: Located) -> Paper | None:
        """Add one record; return its paper, or None if it is skipped."""
        paper = located.paper
        if isinstance(paper, Paper) and (row := self.rows.get(paper.id)) is not None:
            if self._contents[row] == hash(paper):
                self.counts["duplicates"] += 1
                return None
            if self.joins:
                return paper
            fault = (
                f"id {paper.id!r} is already in the corpus with another content; expected each id once "
                "(citerec corpus merge joins such records, --skip-bad keeps the first)"
            )
            kind = "conflicting_duplicates"
            paper = BadRecordError(located.path, located.line, fault, kind=kind)
        if isinstance(paper, BadRecordError):
            if not self.skip_bad:
                raise paper
            self.counts[paper.kind] += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(str(paper))
            return None
        self.rows[paper.id] = len(self.rows)
        self._contents.append(hash(paper))
        self.counts["papers"] += 1
        self.counts["empty_titles"] += not paper.title
        self.counts["with_abstract"] += bool(paper.abstract)
        self.counts["without_year"] += paper.year is None
        self.counts["with_citations"] += bool(paper.citations)
        return paper


def byte_progress(
    source: Source, progress: Progress, task: str = "reading"
) -> Callable[[int], None]:
    """Return a function that reports how many bytes of a corpus are read."""
    total, seen = size_of(source), Counter[str]()

    def read(more: int) -> None:
        seen["bytes"] += more
        progress(task, seen["bytes"], total)

    return read
