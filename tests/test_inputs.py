"""No line and no file, however it is packed, is read beyond its bound."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.bibliography.paper_list import read_paper_list
from citerec.corpus.splits import read_ids, shipped_queries
from citerec.drafts import read_queries
from citerec.errors import BadInputError
from citerec.inputs import (
    MAX_FILE,
    MAX_ROW,
    read_rows,
    read_stream,
    read_whole,
    zstd,
)
from citerec.lab.scidocs.layout import read_judgements
from citerec.lab.scidocs.vectors import VectorFile
from citerec.run import read_qrels, read_run

READERS: dict[str, Callable[[Path], object]] = {
    "run": read_run,
    "qrels": read_qrels,
    "ids": read_ids,
    "given vectors": lambda path: VectorFile(path)([]),
}


class CountingStream:
    """A stream without an end, which counts how many bytes were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def read(self, size: int) -> bytes:
        self.asked += size
        return b"x" * size


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstd.compress])
@pytest.mark.parametrize("reader", READERS)
def test_a_line_without_an_end_is_refused_with_its_place(
    tmp_path: Path, reader: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"1 2\n" * (reader == "word vectors") + b"x" * (MAX_ROW + 1)))
    line = 2 if reader == "word vectors" else 1

    with pytest.raises(BadInputError, match=f"line {line}: a line of more than 1,048,576 bytes"):
        READERS[reader](path)


def test_a_row_may_fill_its_bound_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"a" * (MAX_ROW - 1) + b"\n" + b"b" * MAX_ROW)

    assert [len(row) for _, row in read_rows(path, "rows")] == [MAX_ROW, MAX_ROW]


def test_judgements_of_a_beir_folder_are_read_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "graphs"}\n')
    (tmp_path / "qrels" / "test.tsv").write_bytes(b"query-id\tcorpus-id\tscore\nq" + b"x" * MAX_ROW)

    with pytest.raises(BadInputError, match=r"test\.tsv, line 2: a line of more than"):
        shipped_queries(tmp_path)


def test_a_stream_without_an_end_is_read_to_its_bound_and_one_byte_more() -> None:
    stream = CountingStream()

    with pytest.raises(BadInputError, match="endless: more than 2 MB, the limit for one file"):
        read_stream(stream, "endless", most=2 * 2**20)  # pyright: ignore[reportArgumentType]

    assert stream.asked == 2 * 2**20 + 1


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.parametrize("read", [read_whole, read_queries, read_paper_list, read_judgements])
def test_a_file_that_is_read_as_a_whole_has_a_bound(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = sparse(tmp_path / "huge.bib", MAX_FILE + 1)

    with pytest.raises(BadInputError, match=r"huge\.bib: more than 256 MB.*split it"):
        read(path)
