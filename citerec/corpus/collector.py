"""Collects the records of a corpus: numbers the papers, counts invalid and repeated records, marks retracted papers."""

import csv
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, NonNegativeInt

from citerec.bibliography.keys import doi_of, paper_doi
from citerec.corpus.readers import COLLECTION, SOURCES, Located, Source, size_of
from citerec.display import visible
from citerec.errors import BadInputError, BadRecordError
from citerec.files.checksums import read_record
from citerec.files.reading import read_rows
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
    # DOIs of papers that were retracted, in lower case, whatever their records state
    retracted: Set[str] = frozenset()
    # by docid, in row order
    rows: dict[str, int] = field(default_factory=dict[str, int])
    counts: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    # hash of each row's paper
    _contents: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, located: Located) -> Paper | None:
        """Add one record; return its paper, or None if it is skipped."""
        fault = located.paper
        if isinstance(fault, Paper):
            paper = fault
            if self.retracted and paper_doi(paper).lower() in self.retracted:
                paper = replace(paper, retracted=True)
            row = self.rows.get(paper.id)
            if row is None:
                self.rows[paper.id] = len(self.rows)
                self._contents.append(hash(paper))
                counts = self.counts
                counts["papers"] += 1
                counts["empty_titles"] += not paper.title
                counts["with_abstract"] += bool(paper.abstract)
                counts["without_year"] += paper.year is None
                counts["with_citations"] += bool(paper.citations)
                counts["retracted"] += paper.retracted
                return paper
            if self._contents[row] == hash(paper):
                self.counts["duplicates"] += 1
                return None
            if self.joins:
                return paper
            fault = BadRecordError(
                located.path,
                located.line,
                f"id {paper.id!r} is already in the corpus with another content; expected each id once "
                "(citerec corpus merge joins such records, --skip-bad keeps the first)",
                kind="conflicting_duplicates",
            )
        if not self.skip_bad:
            raise fault
        self.counts[fault.kind] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(str(fault))
        return None


def read_retracted(path: Path) -> Set[str]:
    """Return the DOIs of retracted papers, in lower case, from the table of Retraction Watch in CSV.

    Expressions of concern and corrections are no retractions; a paper that was reinstated is not retracted.
    BadInputError if the file is no such table.

    Source: https://gitlab.com/crossref/retraction-watch-data.
    """
    expected = "CSV with the columns OriginalPaperDOI and RetractionNature"
    lines = (line.decode(errors="replace") for _, line in read_rows(path, expected))
    try:
        rows = [
            (row["RetractionNature"].strip(), doi_of(row["OriginalPaperDOI"]).lower())
            for row in csv.DictReader(lines, restval="")
        ]
    except (KeyError, csv.Error) as error:
        raise BadInputError(
            path, f"cannot be read ({error}); expected {expected}"
        ) from error
    reinstated = {doi for nature, doi in rows if nature == "Reinstatement"}
    return {doi for nature, doi in rows if nature == "Retraction" and doi} - reinstated


class Identified(BaseModel):
    """The records of each source, before duplicates were removed, and what was counted after it."""

    identified: dict[str, NonNegativeInt]
    counts: dict[str, int]


def identified(source: Source, records: int) -> Mapping[str, int]:
    """Return how many records each source of a corpus had: a collection and a merged corpus record it.

    Another corpus is its own source, with `records`; so is one whose record cannot be read, or is of another corpus.
    """
    path = source.path
    beside = path.with_name(f"{path.name}{SOURCES}")
    with suppress(OSError, ValueError):
        content = read_record(path / COLLECTION if path.is_dir() else beside)
        found = Identified.model_validate_json(content)
        if found.counts.get("papers") == records:
            return found.identified
    return {visible(path.name): records}


def byte_progress(
    source: Source, progress: Progress, task: str = "reading"
) -> Callable[[int], None]:
    """Return a function that reports how many bytes of a corpus are read."""
    total = size_of(source)
    seen = 0

    def read(more: int) -> None:
        nonlocal seen
        seen += more
        progress(task, seen, total)

    return read
