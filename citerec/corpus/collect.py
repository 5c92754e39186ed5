"""Takes in the records of a corpus: numbers the papers, counts what is wrong with them."""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from citerec.corpus.readers import Located
from citerec.errors import BadRecordError
from citerec.types import Paper

EXAMPLES = 5  # faults that are quoted


@dataclass(slots=True)
class Collector:
    """Numbers papers in the order they come and keeps one of each id.

    A record that cannot be taken stops the build, unless `skip_bad`: then it is counted. The same paper
    twice, word for word, is counted and left out either way; the same id with another content is a fault.
    """

    skip_bad: bool
    rows: dict[str, int] = field(default_factory=dict[str, int])  # by docid, in row order
    counts: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    _contents: "array[int]" = field(default_factory=lambda: array("q"))  # hash of each row's paper
    _lines: "array[int]" = field(default_factory=lambda: array("q"))  # where each row was read
    _files: list[Path] = field(default_factory=list[Path])
    _first_rows: list[int] = field(default_factory=list[int])  # of each file

    def take(self, located: Located) -> Paper | None:
        """Take one record; return its paper, or None if it is left out.

        Raises:
            BadRecordError: If it cannot be taken and `skip_bad` is not set.
        """
        found = located.paper
        if isinstance(found, Paper) and (row := self.rows.get(found.id)) is not None:
            if self._contents[row] == hash(found):
                self.counts["duplicates"] += 1
                return None
            found = self._conflict(located, found.id, row)
        if isinstance(found, BadRecordError):
            self._leave_out(found)
            return None
        self._number(located, found)
        return found

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

    def _leave_out(self, fault: BadRecordError) -> None:
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
            f"id {docid!r} stands already in {self._files[first]}, line {self._lines[row]}, "
            "with another content; expected each id once (--skip-bad keeps the first)",
            kind="conflicting_duplicates",
        )
