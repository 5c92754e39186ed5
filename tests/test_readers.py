"""Corpora in every shape and packing become papers or a fault with its place: files, lines, fields, JSON streams."""

import bz2
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tools import run_python

from citerec.bibliography.fields import Fields
from citerec.corpus.readers import (
    FORMATS,
    Located,
    detect_format,
    files,
    find_source,
    read_papers,
    sha256_of,
)
from citerec.corpus.readers.files import StreamFaultError, first_record, json_records
from citerec.errors import BadInputError, BadRecordError, ConfigError
from citerec.files.reading import MAX_LINE, zstd
from citerec.types import Paper

TWO = b'{"id": "a", "title": "A"}\n{"id": "b", "title": "B"}\n'


def read(path: Path, format: str = "auto") -> list[Located]:
    source = find_source(path)
    return list(
        read_papers(source, detect_format(source) if format == "auto" else format)
    )


def ids(path: Path) -> list[str]:
    return [
        located.paper.id for located in read(path) if isinstance(located.paper, Paper)
    ]


def a_file(folder: Path, content: bytes, name: str = "corpus.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def fields(**record: Any) -> Fields:
    return Fields(record, Path("corpus.jsonl"), 7)


# --- Fields


@pytest.mark.parametrize("year", [2019, "2019", " 2019 ", 2019.0])
def test_a_year_may_be_written_in_several_ways(year: Any) -> None:
    assert fields(year=year).year() == 2019


@pytest.mark.parametrize(
    "year", ["MMXIX", 0, -5, 10_000, 2019.5, True, [2019], "٢٠١٩", 1e300]
)
def test_what_is_no_year_is_a_wrong_type(year: Any) -> None:
    with pytest.raises(
        BadRecordError, match=r"line 7: 'year' must be a year"
    ) as caught:
        fields(year=year).year()

    assert caught.value.kind == "wrong_types"


@pytest.mark.parametrize(
    "docid", [12, None, "", " ", "a\nb", "a\tb", "a\x85b", "a" * 513]
)
def test_what_is_no_id_is_refused(docid: Any) -> None:
    with pytest.raises(BadRecordError, match=r"line 7: 'id' "):
        fields(id=docid).id()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("title", None), ("title", ["T"]), ("title", "t" * 20_001)),
        *(("abstract", 3), ("abstract", "a" * 2_000_001)),
        *(
            ("authors", "Ada"),
            ("authors", [7]),
            ("citations", {}),
            ("citations", [None]),
        ),
    ],
)
def test_a_field_of_a_wrong_type_is_named(key: str, value: Any) -> None:
    with pytest.raises(BadRecordError, match=f"line 7: '{key}'") as caught:
        fields(**{"id": "x", "title": "T", key: value}).paper()

    assert caught.value.kind == "wrong_types"


def test_control_characters_become_blanks() -> None:
    record = fields(title="a\x00b\x1b[31mc", abstract="\x01line\none\x9f")

    assert record.title() == "a b [31mc"
    assert record.text("abstract") == "line\none"


# --- Lines


@pytest.mark.parametrize(
    "content",
    [
        TWO,
        b"\xef\xbb\xbf" + TWO,
        TWO.replace(b"\n", b"\r\n"),
        TWO.rstrip(b"\n"),
        b"\xef\xbb\xbf\r\n" + TWO.replace(b"\n", b"\n\n\t\n"),
        b"[" + TWO.strip().replace(b"\n", b",\n") + b"]",
        json.dumps(
            [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}], indent=1
        ).encode(),
    ],
    ids=["plain", "BOM", "CRLF", "no last newline", "blank lines", "array", "indented"],
)
def test_lines_are_read_however_they_end_and_begin(
    tmp_path: Path, content: bytes
) -> None:
    assert ids(a_file(tmp_path, content)) == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b'{"id": "a", "title": "\xff"}',
        b'{"id": "a", "title": "\\ud800"}',
        b"[" * 5000,
        *(b"7", b"null", b'[{"id": "a"}]'),
    ],
    ids=[
        "words",
        "latin-1",
        "half a surrogate",
        "deep",
        "a number",
        "null",
        "an array",
    ],
)
def test_a_broken_line_is_a_fault_and_the_next_is_read(
    tmp_path: Path, line: bytes
) -> None:
    path = a_file(tmp_path, b'{"id": "first", "title": ""}\n\n' + line + b"\n" + TWO)

    first, fault, *rest = read(path)

    assert [type(one.paper) for one in (first, *rest)] == [Paper] * 3
    assert isinstance(fault.paper, BadRecordError)
    assert (fault.line, fault.paper.kind) == (3, "broken_lines")
    assert str(fault.paper).startswith(f"{path}, line 3: ")


def test_a_line_that_no_record_can_fill_is_one_broken_line(tmp_path: Path) -> None:
    path = a_file(
        tmp_path, TWO[:26] + b'{"id": "' + b"x" * MAX_LINE + b'"}\n' + TWO[26:]
    )

    found = read(path)

    assert [located.line for located in found] == [1, 2, 3]
    assert "over 67,108,864 bytes" in str(found[1].paper)


# --- Packing

PACKED = {
    "gzip": gzip.compress(TWO),
    "gzip of two members": gzip.compress(TWO[:30]) + gzip.compress(TWO[30:]),
    "gzip padded with zeros": gzip.compress(TWO) + bytes(512),
    "bz2 of two streams": bz2.compress(TWO[:30]) + bz2.compress(TWO[30:]),
    "zstd of two frames": zstd.compress(TWO[:30]) + zstd.compress(TWO[30:]),
    "zstd that begins with a frame to skip": b"\x50\x2a\x4d\x18\x01\0\0\0."
    + zstd.compress(TWO),
}


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.bz2", "x"])
@pytest.mark.parametrize("kind", PACKED)
def test_packing_is_known_by_content_whatever_the_name(
    tmp_path: Path, kind: str, name: str
) -> None:
    assert ids(a_file(tmp_path, PACKED[kind], name)) == ["a", "b"]


def many(count: int) -> bytes:
    return b"".join(
        json.dumps({"id": f"p{i}", "title": f"{i * 7919 % 10007}"}).encode() + b"\n"
        for i in range(count)
    )


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd.compress])
def test_a_cut_or_damaged_file_is_a_fault(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(many(5000))
    middle = len(packed) // 2
    for content in (packed[:-99], packed[:middle] + bytes(40) + packed[middle + 40 :]):
        papers = read_papers(find_source(a_file(tmp_path, content)), "canonical")

        with pytest.raises(
            BadInputError, match=r"the file is (damaged|cut off) after line"
        ):
            list(papers)


# --- Files, folders and formats


def test_a_folder_is_read_shard_after_shard_without_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    for name, content in {
        "part-00.jsonl": b'{"id": "a", "title": "A"}\n',
        "part-01.jsonl.gz": gzip.compress(b'{"id": "b", "title": "B"}\n'),
        "part-02": b' {"id": "c", "title": "C"}\n',
        "more/part-03.txt": b'{"id": "d", "title": "D"}\n',
        "splits/train.ids": b"a\n",
        "qrels/test.tsv": b"q\td\t1\n",
        **dict.fromkeys(
            ("_SUCCESS", ".part-00.jsonl.crc", "_temporary/part-09.jsonl"), b"{}"
        ),
        "empty.jsonl": b"",
        "README.md": b"# A corpus\n{...}\n",
        "notes.rtf": b"{\\rtf1 notes}",
        "dataset_info.json": b'{\n  "papers": 4\n}\n',
    }.items():
        a_file(folder, content, name)

    source = find_source(folder)

    assert ids(folder) == ["d", "a", "b", "c"]
    ignored = ["README.md", "dataset_info.json", "empty.jsonl", "notes.rtf"]
    assert [file.name for file in source.ignored] == ignored


def test_the_queries_of_a_beir_folder_are_no_papers(tmp_path: Path) -> None:
    corpus = a_file(tmp_path, b'{"_id": "p", "text": "Maps."}\n', "corpus.jsonl")
    a_file(tmp_path, b'{"_id": "q", "text": "why?"}\n', "queries.jsonl")
    a_file(tmp_path, b"query-id\tcorpus-id\tscore\n", "qrels/test.tsv")

    assert find_source(tmp_path).files == (corpus,)
    assert ids(tmp_path) == ["p"]


def test_an_index_is_no_corpus_nor_a_part_of_one(tmp_path: Path) -> None:
    a_file(tmp_path, TWO, "papers.jsonl")
    a_file(tmp_path, b'{"format": 1}', "indexes/x/manifest.json")
    a_file(tmp_path, b"ARROW1", "indexes/x/papers.arrow")

    assert find_source(tmp_path).files == (tmp_path / "papers.jsonl",)
    with pytest.raises(BadInputError, match="neither a file nor a folder"):
        find_source(Path("/dev/null"))
    with pytest.raises(BadInputError, match="this is an index, not a corpus"):
        find_source(tmp_path / "indexes" / "x")


def test_a_folder_of_two_formats_says_how_they_are_joined(tmp_path: Path) -> None:
    a_file(tmp_path, b"@misc{a, title={A}}", "refs.bib")
    a_file(tmp_path, b"TY  - JOUR\nTI  - A\nER  -\n", "refs.ris")

    a_file(tmp_path, b"Please cite:\n@misc{c, title={C}}\n", "README")  # is no corpus

    message = r"bibtex \(refs.bib\) and ris \(refs.ris\).*corpus merge"
    with pytest.raises(BadInputError, match=message):
        find_source(tmp_path)


def test_records_of_no_format_are_shown(tmp_path: Path) -> None:
    source = find_source(a_file(tmp_path, b'{"id": "no title", "name": "X"}\n' + TWO))

    with pytest.raises(BadInputError, match="these fields: id, name"):
        detect_format(source)
    with pytest.raises(BadInputError, match="begins so: b'Attention"):
        detect_format(
            find_source(a_file(tmp_path, b"Attention Is All You Need", "library"))
        )
    with pytest.raises(ConfigError, match=", ".join(FORMATS)):
        list(read_papers(source, "endnote"))


def test_the_checksum_of_one_file_is_its_own_and_of_a_folder_covers_every_shard(
    tmp_path: Path,
) -> None:
    alone = sha256_of(find_source(a_file(tmp_path, TWO, "folder/0.jsonl")))
    a_file(tmp_path, TWO, "folder/1.jsonl")
    both = sha256_of(find_source(tmp_path / "folder"))
    a_file(tmp_path, TWO + b"\n", "folder/1.jsonl")

    changed = sha256_of(find_source(tmp_path / "folder"))

    # printf '{"id": "a", "title": "A"}\n{"id": "b", "title": "B"}\n' | sha256sum
    assert alone == "d8e611eddff80782d4ba37e061db7d3eb1ba2f31e2a70a70f975e9fa1c172481"
    assert len({alone, both, changed}) == 3


# --- JSON streams

RECORDS = st.lists(
    st.dictionaries(
        st.text(max_size=4), st.text() | st.lists(st.text(alphabet='"\\{}[],x'))
    )
)


@given(
    RECORDS,
    st.sampled_from(["lines", "array", "indented", "page"]),
    st.integers(1, 50),
    st.booleans(),
)
def test_any_objects_are_read_back_from_any_shape(
    records: list[dict[str, Any]], shape: str, chunk: int, ascii_only: bool
) -> None:
    if shape == "lines":
        text = "".join(json.dumps(r, ensure_ascii=ascii_only) + "\n" for r in records)
    else:
        indent = 2 if shape == "indented" else None
        text = json.dumps(records, ensure_ascii=ascii_only, indent=indent)
    if shape == "page":
        text = '{"meta": 1, "results": ' + text + "}"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", chunk)
        stream = io.BytesIO(text.encode(errors="replace"))
        found = [row for _, row in json_records(stream)]

    assert found == [
        json.loads(json.dumps(r).encode(errors="replace")) for r in records
    ]


@given(st.binary() | st.text(alphabet='{}[]",:\\ n1\n').map(str.encode))
def test_no_bytes_break_the_stream(content: bytes) -> None:
    try:
        found = list(json_records(io.BytesIO(content)))
    except StreamFaultError as fault:
        assert "\n" not in fault.message
    else:
        assert all(isinstance(row, (dict, str)) for _, row in found)
    first_record(content)


def test_a_record_that_never_ends_is_refused_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 2**17)
    monkeypatch.setattr(files, "CHUNK", 2**15)
    deep = io.BytesIO(b"[" + b'{"a":[' * 1_000_000)
    tracemalloc.start()

    with pytest.raises(StreamFaultError, match="record 1 has over 131,072 bytes"):
        list(json_records(deep))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


MEMORY = """
import sys; from pathlib import Path; from citerec.corpus.readers import *
print(sum(1 for _ in read_papers(find_source(Path(sys.argv[1])), sys.argv[2])))
status = Path("/proc/self/status").read_text()  # ru_maxrss would include the parent's memory
print(status.split("VmHWM:")[1].split()[0])
"""
RECORD = {
    "aminer": '{{"id": {}, "title": "A", "references": [], "abstract": "{}"}},',
    "pubmed": "<PubmedArticle><MedlineCitation><PMID>{}</PMID><Article><ArticleTitle>{}</ArticleTitle>"
    "</Article></MedlineCitation></PubmedArticle>",
}
WHOLE = {"aminer": "[{}{{}}]", "pubmed": "<PubmedArticleSet>{}</PubmedArticleSet>"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", RECORD)
def test_memory_does_not_grow_with_a_file(tmp_path: Path, name: str) -> None:
    def peak(size: int) -> float:
        """Return the peak memory of a process that reads a dump of `size` records, in MB."""
        records = "".join(
            RECORD[name].format(n, "x" * 3000) for n in range(1, size + 1)
        )
        path = a_file(tmp_path, WHOLE[name].format(records).encode(), "dump")
        count, memory = run_python(MEMORY, path, name).stdout.split()
        assert int(count) >= size
        return int(memory) / 1024

    small, large = map(peak, (2_000, 20_000))

    assert large < small + 15
