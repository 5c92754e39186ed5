"""Opens a corpus of any format for one or several passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.collector import Collector
from citerec.corpus.readers import Located, detect_format, read_papers
from citerec.corpus.readers.source import Source, find_source, size_of
from citerec.types import Log, Paper, Progress, no_log, no_progress


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus and how it is read."""

    source: Source
    format: str
    skip_bad: bool = False

    @property
    def path(self) -> Path:
        """The path as the user named it."""
        return self.source.path

    def records(
        self, task: str = "reading", progress: Progress = no_progress, log: Log = no_log
    ) -> Iterator[Located]:
        """Yield every record, as a paper or as its fault; progress is in bytes."""
        total, done = size_of(self.source), 0

        def read(more: int) -> None:
            nonlocal done
            done += more
            progress(task, done, total)

        yield from read_papers(self.source, self.format, read, log)

    def papers(
        self,
        collector: Collector,
        task: str = "reading",
        progress: Progress = no_progress,
        log: Log = no_log,
    ) -> Iterator[Paper]:
        """Yield every paper that `collector` keeps: each id once.

        Raises:
            BadInputError: If a record is invalid and is not skipped.
        """
        for located in self.records(task, progress, log):
            if (paper := collector.add(located)) is not None:
                yield paper


def open_corpus(path: Path, format_name: str = "auto", *, skip_bad: bool = False) -> Corpus:
    """Find the files of a corpus and detect its format.

    Raises:
        BadInputError: If there is no corpus, or it is of no known format.
    """
    source = find_source(path)
    name = detect_format(source, skip_bad=skip_bad) if format_name == "auto" else format_name
    return Corpus(source, name, skip_bad)
