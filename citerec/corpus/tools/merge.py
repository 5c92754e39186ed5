"""Merges corpora: joins the records of one paper, takes the most complete value of each field, remaps citations.

The corpora are read twice: for their keys, and for their texts. Records that wait for others of the same paper lie on
disk, so that memory does not hold texts.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import orjson

from citerec.atomic import destination
from citerec.corpus.collector import Collector
from citerec.corpus.tools.joining import Groups
from citerec.corpus.tools.reading import Corpus
from citerec.corpus.tools.writing import canonical_line, write_corpus
from citerec.errors import ConfigError, writing
from citerec.types import BIBLIOGRAPHIC, Log, Paper, Progress, no_log, no_progress

_LONGEST = ("abstract", "venue", "pages", "publisher")  # fields of which the longest value is kept


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What was merged."""

    papers: int
    citations: int  # among the merged papers
    counts: Counter[str]  # records, by_doi, by_id, by_title, renamed, outside
    collectors: tuple[Collector, ...]  # one per corpus: what was skipped


def merge(
    corpora: Sequence[Corpus],
    output: Path,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> MergeReport:
    """Join the papers of corpora into one file; the id of a paper is that of its first record.

    Args:
        corpora: In order of precedence.
        output: The file of canonical JSON lines.
        progress: Receives the task and the bytes that were read.
        log: Receives what the formats lack.

    Raises:
        BadInputError: If a record is invalid and is not skipped.
        ConfigError: If there is no valid paper.
        OutputError: If the file cannot be written.
    """
    groups, of_record = Groups(), array("i")
    collectors: list[Collector] = []
    for corpus in corpora:
        collectors.append(Collector(corpus.skip_bad))
        groups.start_corpus()
        for paper in corpus.papers(collectors[-1], f"keys of {corpus.path.name}", progress, log):
            of_record.append(groups.add(paper))
    if not of_record:
        raise ConfigError(f"there is no valid paper in the corpora; {output} was not made")
    citations = 0
    with write_corpus(output) as write, _waiting(output) as waiting:
        for group, paper in _remapped(corpora, groups, of_record, progress):
            if (records := waiting.add(group, paper, groups.sizes[group])) is None:
                continue
            merged = replace(merged_paper(records), id=groups.ids[group])
            inside = sum(map(groups.is_paper, merged.citations))
            citations += inside
            groups.counts["outside"] += len(merged.citations) - inside
            write(merged)
    return MergeReport(len(groups.ids), citations, groups.counts, tuple(collectors))


def _remapped(
    corpora: Sequence[Corpus], groups: Groups, of_record: "array[int]", progress: Progress
) -> Iterator[tuple[int, Paper]]:
    """Yield every record with its group, and with the ids of merged papers in its citations."""
    number = 0
    for place, corpus in enumerate(corpora):
        collector = Collector(corpus.skip_bad)
        for paper in corpus.papers(collector, f"texts of {corpus.path.name}", progress):
            group = of_record[number]
            number += 1
            cited = [(docid, groups.cited(place, docid)) for docid in paper.citations]
            ids = (
                docid if found is None else groups.ids[found]
                for docid, found in cited
                if found != group
            )
            yield group, replace(paper, citations=tuple(dict.fromkeys(ids)))


class _Waiting:
    """Keeps the records of papers that have further records on disk."""

    def __init__(self, file: IO[bytes], output: Path) -> None:
        self._file, self._output = file, output
        self._places: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, group: int, paper: Paper, size: int) -> list[Paper] | None:
        """Add a record; return all records of its group if it is the last of `size`, else None."""
        if size == 1:
            return [paper]
        if len(self._places[group]) + 1 == size:
            return [*map(self._read, self._places.pop(group)), paper]
        with writing(self._output):
            self._places[group].append(self._file.seek(0, 2))
            self._file.write(canonical_line(paper))
        return None

    def _read(self, place: int) -> Paper:
        self._file.seek(place)
        record: dict[str, Any] = orjson.loads(self._file.readline())
        for name in ("authors", "citations"):
            record[name] = tuple(record.get(name, ()))
        return Paper(**record)


@contextmanager
def _waiting(output: Path) -> Generator[_Waiting]:
    """Yield a file without a name in the folder of the output, which no end of the process leaves behind."""
    with ExitStack() as stack:
        with writing(output):
            file = stack.enter_context(TemporaryFile(dir=destination(output).parent))
        yield _Waiting(file, output)


def merged_paper(records: Sequence[Paper]) -> Paper:
    """Return one paper with the most complete value of each field; equal ones are of the first record.

    The title is the first that is not in capitals, the authors are the most and the longest names, citations are all.
    """
    first = records[0]
    titles = [paper.title for paper in records if paper.title]
    mixed = (title for title in titles if not title.isupper())
    values: dict[str, Any] = {
        name: next(filter(None, (getattr(paper, name) for paper in records)), "")
        for name in BIBLIOGRAPHIC
    }
    for name in _LONGEST:
        values[name] = max((getattr(paper, name) for paper in records), key=len)
    return replace(
        first,
        title=next(mixed, titles[0] if titles else ""),
        year=next((paper.year for paper in records if paper.year is not None), None),
        authors=max((p.authors for p in records), key=lambda a: (len(a), sum(map(len, a)))),
        citations=tuple(dict.fromkeys(cited for paper in records for cited in paper.citations)),
        **values,
    )
