"""Reads the papers that are to be added to an index into temporary files, so that memory use stays constant."""

import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.collector import Collector, bytes_read
from citerec.corpus.graph import ReferenceSpill
from citerec.corpus.papers import Papers, write_papers
from citerec.corpus.readers import detect_format, read_papers
from citerec.corpus.readers.source import Source, sha256_of
from citerec.errors import ConfigError
from citerec.types import Progress

FOLDER = "added.tmp"  # in the folder of the new index, until it is complete
CORPUS_COUNTS = ("papers", "empty_titles", "with_abstract", "without_year", "with_citations")


@dataclass(frozen=True, slots=True)
class Added:
    """Papers that are to be added, in temporary files."""

    rows: dict[str, int]  # row of each id in `papers`
    papers: Papers | None  # None if there are none
    references: ReferenceSpill | None  # the references of each row of `papers`
    counts: Counter[str]  # of records that were left out
    examples: tuple[str, ...] = ()  # the first faults, each with file and line
    ignored: tuple[Path, ...] = ()
    files: int = 0
    sha256: str = ""  # of the files

    def stated(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the row and the references of each paper that has some."""
        return iter(self.references or ())


@contextmanager
def read_added(
    folder: Path, source: Source | None, *, format_name: str, skip_bad: bool, progress: Progress
) -> Generator[Added]:
    """Read the papers of a corpus into temporary files, which are removed when the block ends.

    Args:
        folder: The folder in which the new index is built.
        source: The corpus; None for no papers.
        format_name: The format of the corpus, or auto.
        skip_bad: Whether to skip invalid records.
        progress: Receives how much is read.

    Raises:
        BadInputError: If the corpus cannot be read, or a record is invalid and `skip_bad` is not set.
        ConfigError: If it holds no valid paper.
    """
    if source is None:
        yield Added({}, None, None, Counter())
        return
    temporary = folder / FOLDER
    temporary.mkdir()
    try:
        yield _read(temporary, source, format_name, progress, Collector(skip_bad))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read(
    temporary: Path, source: Source, name: str, progress: Progress, collector: Collector
) -> Added:
    if name == "auto":
        name = detect_format(source, skip_bad=collector.skip_bad)
    spill = ReferenceSpill(temporary / "references")
    try:
        with write_papers(temporary / "papers") as papers:
            for located in read_papers(source, name, bytes_read(source, progress)):
                if (paper := collector.add(located)) is not None:
                    papers.add(paper)
                    spill.add(len(collector.rows) - 1, paper.citations)
    finally:
        spill.close()
    if not collector.rows:
        raise ConfigError(f"{source.path} holds no valid paper; the index was not changed")
    left_out = Counter({n: c for n, c in collector.counts.items() if n not in CORPUS_COUNTS})
    return Added(
        rows=collector.rows,
        papers=Papers(temporary / "papers"),
        references=spill,
        counts=left_out,
        examples=tuple(collector.examples),
        ignored=source.ignored,
        files=len(source.files),
        sha256=sha256_of(source),
    )
