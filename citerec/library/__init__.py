"""A library as a corpus: records of reference managers, and PDFs, JATS, TEI or LaTeX sources of their papers.

It is a corpus format as any other. `reading` reads the texts, `lookup` finds the papers that a reference names, `graph`
joins both, `corpus` finds records and texts and tells what was read.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from citerec.bibliography.fields import Fields
from citerec.corpus.readers.files import BytesRead, Format, Located, Source
from citerec.library.jsonlines import is_full_text, is_item
from citerec.types import Json, Log


def _papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    from citerec.library.corpus import library_papers

    return library_papers(source, read, log)


def _joins(files: Sequence[Path], formats: Mapping[Path, str]) -> list[Path]:
    from citerec.library.corpus import files_of_library

    return files_of_library(files, formats)


def _matches(record: Json) -> bool:
    return is_full_text(record) or is_item(record)


LIBRARY = Format(read=Fields.paper, papers=_papers, matches=_matches, joins=_joins)
