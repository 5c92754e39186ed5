"""Reads exports whose references must be linked to papers: one pass for the keys, one for the papers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from citerec.corpus.linking import Linker, Reference
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.streams import Broken, Located, Records, located, read_file
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source


def linked_papers(
    source: "Source",
    records: Records,
    to_paper: Callable[[Fields], Paper],
    key_of: Callable[[Mapping[str, Any]], str],
    references_of: Callable[[Mapping[str, Any]], list[Reference]],
    done: Callable[[int], None],
    log: Log,
) -> Iterator[Located]:
    """Yield every record of a corpus with its references linked to papers of the corpus.

    Args:
        source: The corpus.
        records: Parses one file.
        to_paper: Makes a paper of a record, without its references.
        key_of: Returns the `work_key` of a record.
        references_of: Returns the references of a record.
        done: Receives from time to time how many more bytes have been read.
        log: Receives how many references were linked.
    """
    linker = Linker()
    for file in source.files:
        for line, row in read_file(file, records, lambda more: done(more - more // 2)):
            paper = located(file, line, row, to_paper).paper
            if isinstance(paper, Paper) and not isinstance(row, Broken):
                linker.add(paper.id, paper.doi, key_of(row))
    for file in source.files:
        for line, row in read_file(file, records, lambda more: done(more // 2)):
            record = located(file, line, row, to_paper)
            if isinstance(record.paper, Paper) and not isinstance(row, Broken):
                citations = linker.link(references_of(row))
                record = replace(record, paper=replace(record.paper, citations=citations))
            yield record
    log(linker.report())
