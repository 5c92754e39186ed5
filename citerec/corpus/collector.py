"""Collects the records of a corpus: numbers the papers and counts invalid and repeated records."""

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from citerec.corpus.readers import Located, Source, size_of
from citerec.errors import BadRecordError
from citerec.types import Paper, Progress

EXAMPLES = 5  # faults that are kept as examples


@dataclass(slots=True)
class Collector:
    """Numbers papers in the order in which they arrive, and keeps one paper per id.

    An invalid record raises, unless `skip_bad` is set: then it is counted and skipped. An identical repeated paper
    is counted and skipped in both cases; a repeated id with other content is an invalid record.
    """

    skip_bad: bool
    rows: dict[str, int] = field(default_factory=dict[str, int])  # by docid, in row order
    counts: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    _contents: "array[int]" = field(default_factory=lambda: array("q"))  # hash of each row's paper
    # line of each row's record in its file
    _lines: "array[int]" = field(default_factory=lambda: array("q"))
    _files: list[Path] = field(default_factory=list[Path])
    _first_rows: list[int] = field(default_factory=list[int])  # first row of each file

    def add(self, located: Located) -> Paper | None:
        """Add one record; return its paper, or None if it is skipped.

        Raises:
            BadRecordError: If it is invalid and `skip_bad` is not set.
        """
        record = located.paper
        if isinstance(record, Paper) and (row := self.rows.get(record.id)) is not None:
            if self._contents[row] == hash(record):
                self.counts["duplicates"] += 1
                return None
            record = self._conflict(located, record.id, row)
        if isinstance(record, BadRecordError):
            self._skip(record)
            return None
        self._number(located, record)
        return record

    def _number(self, located: Located, paper: Paper) -> None:
        if not self._files or self._files[-1] != located.path:
            self._files.append(located.path)
            self._first_rows.append(len(self.rows))
        self.rows[paper.id] = len(self.rows)
        self._contents.append(hash(paper))
        self._lines.append(located.line)
        self.counts["papers"] += 1
        self.counts["empty_titles"] += not paper.title
        self.counts["with_abstract"] += bool(paper.abstract)
        self.counts["without_year"] += paper.year is None
        self.counts["with_citations"] += bool(paper.citations)

    def _skip(self, fault: BadRecordError) -> None:
        if not self.skip_bad:
            raise fault
        self.counts[fault.kind] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(str(fault))

    def _conflict(self, located: Located, docid: str, row: int) -> BadRecordError:
        first = max(i for i, start in enumerate(self._first_rows) if start <= row)
        return BadRecordError(
            located.path,
            located.line,
            f"id {docid!r} is already in {self._files[first]}, line {self._lines[row]}, "
            "with another content; expected each id once (--skip-bad keeps the first)",
            kind="conflicting_duplicates",
        )


def bytes_read(source: Source, progress: Progress) -> Callable[[int], None]:
    """Return a function that reports how many bytes of a corpus are read."""
    total, seen = size_of(source), Counter[str]()

    def read(more: int) -> None:
        seen["bytes"] += more
        progress("reading", seen["bytes"], total)

    return read
