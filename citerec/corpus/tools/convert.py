"""Converts a corpus of any format to canonical JSON lines."""

from pathlib import Path

from citerec.corpus.collector import Collector
from citerec.corpus.tools.reading import Corpus
from citerec.corpus.tools.writing import write_corpus
from citerec.errors import ConfigError
from citerec.types import Log, Progress, no_log, no_progress


def convert(
    corpus: Corpus, output: Path, progress: Progress = no_progress, log: Log = no_log
) -> Collector:
    """Write a corpus as canonical JSON lines; return the counts.

    Raises:
        BadInputError: If a record is invalid and is not skipped.
        ConfigError: If there is no valid paper.
        OutputError: If the file cannot be written.
    """
    collector = Collector(corpus.skip_bad)
    with write_corpus(output) as write:
        for paper in corpus.papers(collector, progress=progress, log=log):
            write(paper)
        if not collector.rows:
            raise ConfigError(f"{corpus.path} holds no valid paper; {output} was not made")
    return collector
