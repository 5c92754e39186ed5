"""Lucene's index is written by loops in Java: its content is that which Anserini's own indexer writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from citerec.errors import OutputError
from citerec.index.bm25 import ROWS, Bm25Builder, open_reader, write_rows, year_term
from citerec.index.handles import read_texts
from citerec.index.lucene_documents import LEAST, encoded
from citerec.index.lucene_ids import segment_ids
from citerec.index.lucene_postings import LucenePostings
from citerec.java import java_class
from citerec.text import contents
from citerec.types import Paper

WORDS = "graphs of citations link scientific papers that are read by machines".split()
PAPERS = [
    Paper(id="a", title="Citations", year=1965),
    Paper(id="Ω/ß 𝔘", title="Naïve Übersetzung, 日本語 and 𝔘nicode’s", abstract="It's \x00 wild."),
    Paper(id="i" * 300, title="Long", abstract="word " * 40_000, year=2020),
    *(Paper(id=f"p{n}", title=" ".join(WORDS[n % 7 :]), year=2000 + n % 20) for n in range(60)),
]


def by_citerec(folder: Path, papers: list[Paper], threads: int = 1) -> Path:
    builder = Bm25Builder(folder, threads=threads)
    builder.add(papers)
    builder.close()
    return folder


def by_anserini(folder: Path, papers: list[Paper]) -> Path:
    folder.mkdir()
    options = ["-input", str(folder), "-collection", "JsonCollection", "-index", str(folder)]
    indexer: Any = java_class("io.anserini.index.SimpleIndexer")(
        [*options, "-fields", "year", "-threads", "1"]
    )
    records = [{"id": p.id, "contents": contents(p), "year": year_term(p.year)} for p in papers]
    indexer.addRawDocuments([orjson.dumps(record).decode() for record in records])
    indexer.close()
    return folder


def sizes(folder: Path) -> dict[str, int]:
    return {
        file.name: file.stat().st_size for file in folder.iterdir() if file.name != "write.lock"
    }


def in_reader(folder: Path, read: Callable[[Any], Any]) -> Any:
    reader = open_reader(folder)
    try:
        return read(reader)
    finally:
        reader.close()


def test_the_files_are_those_of_anserinis_indexer(tmp_path: Path) -> None:
    ours, theirs = by_citerec(tmp_path / "a", PAPERS), by_anserini(tmp_path / "b", PAPERS)

    assert sizes(ours) == sizes(theirs)
    for name in sizes(ours):
        # each file holds the random id of its segment, and a checksum
        contents_differ = np.frombuffer((ours / name).read_bytes(), np.uint8) != np.frombuffer(
            (theirs / name).read_bytes(), np.uint8
        )
        assert (
            name.endswith(".si") or name.startswith("segments") or contents_differ.sum() <= 16 + 8
        )


@pytest.mark.parametrize("threads", [1, 3])
def test_each_document_has_the_row_of_its_paper(tmp_path: Path, threads: int) -> None:
    papers = [Paper(id=f"p{n}", title=f"Graph {n}") for n in range(3 * LEAST + 1)]
    folder = by_citerec(tmp_path / "bm25", papers, threads)

    documents = write_rows(folder, {paper.id: row for row, paper in enumerate(papers)})

    rows = np.load(folder / ROWS).tolist()
    ids = in_reader(folder, lambda reader: [*segment_ids(reader, tmp_path)])
    assert documents == len(papers)
    assert [f"p{row}" for row in rows] == [docid for segment in ids for docid in segment]
    assert sorted(rows) == [*range(len(papers))]
    assert threads > 1 or rows == [*range(len(papers))]


def test_ids_and_texts_of_any_length_go_through_lucene(tmp_path: Path) -> None:
    folder = by_citerec(tmp_path / "bm25", PAPERS)

    ids = in_reader(folder, lambda reader: [*segment_ids(reader, tmp_path)])
    counted = in_reader(folder, lambda reader: LucenePostings(reader).statistics())

    assert ids == [[paper.id for paper in PAPERS]]
    assert counted.documents == counted.with_terms == len(PAPERS)
    assert counted.tokens > 40_000


def test_papers_without_text_are_skipped(tmp_path: Path) -> None:
    folder = by_citerec(tmp_path / "bm25", [Paper(id="a", title=" "), Paper(id="b", title="B c")])

    assert in_reader(folder, lambda reader: [*segment_ids(reader, tmp_path)]) == [["b"]]


def test_a_text_is_read_as_it_was_written(tmp_path: Path) -> None:
    texts = ["", "a", "é" * 64, "b" * 127, "c" * 128, "d" * 20_000]
    file = tmp_path / "texts"

    file.write_bytes(b"".join(encoded([(text, text, text)]) for text in texts))

    assert read_texts(file) == [text.encode() for text in texts for _ in range(4)]


def test_a_folder_that_cannot_be_written_is_an_error_with_its_reason(tmp_path: Path) -> None:
    builder = Bm25Builder(tmp_path / "bm25", threads=1)
    builder.abandon()

    with pytest.raises(OutputError, match="Lucene cannot write"):
        builder.add([Paper(id="a", title="Graphs")])
