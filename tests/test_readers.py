"""Corpora of each format, packed and cut in every way, become papers or a fault with its place."""

import bz2
import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus.readers import Located, detect_format, read_papers
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.source import Source, find_source, sha256_of, size_of
from citerec.errors import BadInputError, BadRecordError, ConfigError
from citerec.inputs import MAX_LINE, read_lines, zstd
from citerec.types import Paper

# One record of each format, with every field that its source has.
CANONICAL = {
    "id": "bert",
    "title": "BERT:  Pre-training\nof Transformers",
    "abstract": " We introduce BERT. ",
    "year": 2019,
    "authors": ["Jacob Devlin", "Ming-Wei Chang"],
    "venue": "NAACL",
    "citations": ["elmo", "gpt"],
}
OPEN_RESEARCH = {
    "entities": ["Language model"],
    "journalVolume": "",
    "journalPages": "4171-4186",
    "pmid": "",
    "year": 2019,
    "outCitations": ["elmo", "gpt"],
    "s2Url": "https://semanticscholar.org/paper/bert",
    "s2PdfUrl": "",
    "id": "bert",
    "authors": [
        {"name": "Jacob Devlin", "ids": ["39172707"]},
        {"name": "Ming-Wei Chang", "ids": []},
    ],
    "journalName": "",
    "paperAbstract": "We introduce BERT.",
    "inCitations": ["roberta"],
    "pdfUrls": [],
    "title": "BERT: Pre-training of Transformers",
    "doi": "10.18653/v1/N19-1423",
    "sources": ["DBLP"],
    "doiUrl": "https://doi.org/10.18653/v1/N19-1423",
    "venue": "NAACL",
}
CITEOMATIC = {
    "id": "bert",
    "title": "BERT: Pre-training of Transformers",
    "abstract": "We introduce BERT.",
    "authors": ["Jacob Devlin", "Ming-Wei Chang"],
    "out_citations": ["elmo", "gpt"],
    "in_citations": ["roberta"],
    "in_citation_count": 1,
    "out_citation_count": 2,
    "key_phrases": ["language model"],
    "year": 2019,
    "venue": "NAACL",
}
BEIR = {
    "_id": "bert",
    "title": "BERT: Pre-training of Transformers",
    "text": "We introduce BERT.",
    "metadata": {
        "authors": ["Jacob Devlin", "Ming-Wei Chang"],
        "year": 2019,
        "venue": "NAACL",
        "cited_by": ["roberta"],
        "references": ["elmo", "gpt"],
    },
}
RECORDS: Mapping[str, Mapping[str, Any]] = {
    "canonical": CANONICAL,
    "openresearch": OPEN_RESEARCH,
    "citeomatic": CITEOMATIC,
    "beir": BEIR,
}
BERT = Paper(
    id="bert",
    title="BERT: Pre-training of Transformers",
    abstract="We introduce BERT.",
    year=2019,
    authors=("Jacob Devlin", "Ming-Wei Chang"),
    venue="NAACL",
    citations=("elmo", "gpt"),
)
PRINTED = {
    "doi": "10.18653/v1/N19-1423",
    "url": "https://aclanthology.org/N19-1423",
    "type": "paper-conference",
    "volume": "1",
    "issue": "2",
    "pages": "4171-4186",
    "publisher": "ACL",
}
TWO = b'{"id": "a", "title": "A"}\n{"id": "b", "title": "B"}\n'


def read(path: Path, format: str = "auto") -> list[Located]:
    source = find_source(path)
    return list(read_papers(source, detect_format(source) if format == "auto" else format))


def ids(path: Path) -> list[str]:
    return [located.paper.id for located in read(path) if isinstance(located.paper, Paper)]


def papers(source: Source, name: str) -> list[Paper]:
    read = [located.paper for located in read_papers(source, name)]
    return [paper for paper in read if isinstance(paper, Paper)]


def a_file(folder: Path, content: bytes, name: str = "corpus.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def fields(**record: Any) -> Fields:
    return Fields(record, Path("corpus.jsonl"), 7)


# --- Formats.


@pytest.mark.parametrize("name", RECORDS)
def test_each_format_is_told_by_its_keys_and_read_to_the_same_paper(
    name: str, write_jsonl: Callable[..., Path]
) -> None:
    source = find_source(write_jsonl([RECORDS[name]]))

    found = detect_format(source)

    assert found == name
    assert [replace(p, **dict.fromkeys(PRINTED, "")) for p in papers(source, found)] == [BERT]


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("canonical", {"id": "x", "title": "X"}),
        ("openresearch", {"id": "x", "title": "X", "inCitations": []}),
        ("citeomatic", {"id": "x", "title": "X", "key_phrases": []}),
        ("beir", {"_id": "x", "title": "X", "text": ""}),
        ("canonical", dict.fromkeys(CANONICAL) | {"id": "x", "title": "X"}),
        ("openresearch", dict.fromkeys(OPEN_RESEARCH) | {"id": "x", "title": "X"}),
        ("citeomatic", dict.fromkeys(CITEOMATIC) | {"id": "x", "title": "X"}),
        ("beir", {"_id": "x", "title": "X", "text": None, "metadata": {}}),
    ],
)
def test_a_record_with_no_more_than_it_needs_is_a_paper(
    name: str, record: dict[str, Any], write_jsonl: Callable[..., Path]
) -> None:
    path = write_jsonl([record])

    assert detect_format(find_source(path)) == name
    assert read(path)[0].paper == Paper(id="x", title="X")


def test_citations_are_not_lost_to_a_key_of_another_format(
    write_jsonl: Callable[..., Path],
) -> None:
    path = write_jsonl([CANONICAL | {"key_phrases": ["nlp"], "s2Url": ""}])

    assert read(path)[0].paper == BERT


def test_a_beir_passage_without_a_title_is_a_paper(write_jsonl: Callable[..., Path]) -> None:
    path = write_jsonl([{"_id": "x", "text": "Some passage."}])

    assert read(path)[0].paper == Paper(id="x", title="", abstract="Some passage.")


def test_a_format_that_there_is_not_lists_those_that_there_are(
    write_jsonl: Callable[..., Path],
) -> None:
    path = write_jsonl([CANONICAL])

    with pytest.raises(ConfigError, match="openresearch, citeomatic, beir, canonical"):
        read(path, "endnote")


def test_records_of_no_format_are_shown_with_their_fields(write_jsonl: Callable[..., Path]) -> None:
    path = write_jsonl([{"doi": "10.1/x", "name": "X"}])

    with pytest.raises(BadInputError, match="these fields: doi, name"):
        detect_format(find_source(path))


def test_the_format_is_that_of_the_first_record_that_can_be_taken(
    write_jsonl: Callable[..., Path],
) -> None:
    path = write_jsonl([{"id": "no title"}, BEIR])

    assert detect_format(find_source(path), skip_bad=True) == "beir"


def test_a_shard_of_another_format_faults_where_it_begins(
    tmp_path: Path, write_jsonl: Callable[..., Path]
) -> None:
    write_jsonl([CANONICAL], "mixed/a.jsonl")
    write_jsonl([BEIR], "mixed/b.jsonl")

    found = read(tmp_path / "mixed")

    assert found[0].paper == BERT
    assert isinstance(found[1].paper, BadRecordError)
    assert found[1].paper.kind == "missing_fields"
    assert "b.jsonl, line 1: no 'id' in this record" in str(found[1].paper)


def test_an_array_is_read_as_lines_are(tmp_path: Path) -> None:
    text = json.dumps([{"id": "a", "title": "A"}, {"id": "b", "title": "B"}], indent=1)

    assert ids(a_file(tmp_path, text.encode())) == ["a", "b"]


def test_what_is_no_corpus_shows_how_it_begins(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="begins so"):
        detect_format(find_source(a_file(tmp_path, b"\\documentclass{article}", "library")))


# --- Fields.


@pytest.mark.parametrize("year", [2019, "2019", " 2019 ", 2019.0])
def test_a_year_may_be_written_in_several_ways(year: Any) -> None:
    assert fields(year=year).year() == 2019


@pytest.mark.parametrize("year", ["MMXIX", 0, -5, 10_000, 2019.5, True, [2019], "٢٠١٩", 1e300])
def test_what_is_no_year_is_a_wrong_type(year: Any) -> None:
    with pytest.raises(BadRecordError, match=r"line 7: 'year' must be a year") as caught:
        fields(year=year).year()

    assert caught.value.kind == "wrong_types"


@pytest.mark.parametrize(
    ("docid", "fault"),
    [
        (12, "must be a string, found 12"),
        (None, "must be a string, found None"),
        ("", "is empty"),
        (" ", "is empty"),
        ("a\nb", "control character"),
        ("a\tb", "control character"),
        ("a\x85b", "control character"),
        ("\ufeffa", "begins with a byte-order mark"),
        ("a" * 513, "has 513 characters; expected at most 512"),
    ],
)
def test_what_is_no_id_is_refused(docid: Any, fault: str) -> None:
    with pytest.raises(BadRecordError, match=fault):
        fields(id=docid).id()


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"id": "x", "title": None}, "'title' must be a string, found None"),
        ({"id": "x", "title": ["T"]}, "'title' must be a string"),
        ({"id": "x", "title": "t" * 20_001}, "'title' has 20,001 characters"),
        ({"id": "x", "title": "T", "abstract": 3}, "'abstract' must be a string, found 3"),
        ({"id": "x", "title": "T", "abstract": "a" * 2_000_001}, "'abstract' has 2,000,001"),
        ({"id": "x", "title": "T", "authors": "Ada"}, "'authors' must be a list, found 'Ada'"),
        ({"id": "x", "title": "T", "authors": [7]}, "'authors' must hold strings, found 7"),
        ({"id": "x", "title": "T", "citations": {}}, "'citations' must be a list"),
        ({"id": "x", "title": "T", "citations": [None]}, "'citations' must hold strings"),
        ({"_id": "x", "title": "T", "text": "", "metadata": [1]}, "'metadata' must be an object"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(
    record: dict[str, Any], fault: str, write_jsonl: Callable[..., Path]
) -> None:
    (located,) = read(write_jsonl([record]))

    assert isinstance(located.paper, BadRecordError)
    assert located.paper.kind == "wrong_types"
    assert fault in str(located.paper)


def test_control_characters_become_blanks() -> None:
    record = fields(title="a\x00b\x1b[31mc", abstract="\x01line\none\x9f")

    assert record.title() == "a b [31mc"
    assert record.text("abstract") == "line\none"


# --- Lines.


@pytest.mark.parametrize(
    "content",
    [
        TWO,
        b"\xef\xbb\xbf" + TWO,
        TWO.replace(b"\n", b"\r\n"),
        TWO.rstrip(b"\n"),
        b"\n  \n" + TWO.replace(b"\n", b"\n\n\t\n"),
        b"\xef\xbb\xbf\r\n" + TWO,
    ],
    ids=["plain", "BOM", "CRLF", "no last newline", "blank lines", "BOM on a blank line"],
)
def test_lines_are_read_however_they_end_and_begin(tmp_path: Path, content: bytes) -> None:
    assert ids(a_file(tmp_path, content)) == ["a", "b"]


def test_blank_lines_count_when_a_line_is_named(tmp_path: Path) -> None:
    path = a_file(tmp_path, b'\n{"id": "a", "title": "A"}\n\n{"id": "b", \n')

    found = read(path)

    assert [located.line for located in found] == [2, 4]
    assert isinstance(found[1].paper, BadRecordError)
    assert str(found[1].paper).startswith(f"{path}, line 4: not JSON: ")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"nonsense", "not JSON"),
        (b'{"id": "a", "title": "\xff"}', "not JSON"),
        (b'{"id": "a", "title": "\\ud800"}', "not JSON"),
        (b'{"id": "a", "title": NaN}', "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"7", "expected a JSON object"),
        (b"null", "expected a JSON object"),
        (b'[{"id": "a"}]', "expected a JSON object"),
    ],
    ids=["words", "latin-1", "half a surrogate", "NaN", "deep", "a number", "null", "an array"],
)
def test_a_broken_line_is_a_fault_and_the_next_is_read(
    tmp_path: Path, line: bytes, fault: str
) -> None:
    path = a_file(tmp_path, b'{"id": "first", "title": ""}\n' + line + b"\n" + TWO)

    found = read(path)

    assert [type(located.paper) for located in found] == [Paper, BadRecordError, Paper, Paper]
    assert isinstance(found[1].paper, BadRecordError)
    assert (found[1].line, found[1].paper.kind) == (2, "broken_lines")
    assert fault in str(found[1].paper)


def test_a_line_that_no_record_can_fill_is_one_broken_line(tmp_path: Path) -> None:
    path = a_file(tmp_path, TWO[:26] + b'{"id": "' + b"x" * MAX_LINE + b'"}\n' + TWO[26:])

    found = read(path)

    assert [located.line for located in found] == [1, 2, 3]
    assert isinstance(found[1].paper, BadRecordError)
    assert "over 67,108,864 bytes" in str(found[1].paper)


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"%PDF-1.7\n", "a PDF"),
        (b"PK\x03\x04rest", "a zip archive"),
        ("{}\n".encode("utf-16"), "UTF-16 text"),
        (b'{"id": "a\0"}', "binary data"),
        (b"\xfd7zXZ\0", "xz-packed"),
    ],
)
def test_what_is_no_text_is_told_by_its_beginning(tmp_path: Path, head: bytes, what: str) -> None:
    with pytest.raises(BadInputError, match=f"this is {what}; expected JSON lines"):
        list(read_lines(a_file(tmp_path, head)))


def test_reading_tells_how_many_bytes_it_has_read(tmp_path: Path) -> None:
    path = a_file(tmp_path, TWO * 1200)
    told: list[int] = []

    list(read_lines(path, told.append))

    assert len(told) > 1
    assert sum(told) == size_of(find_source(path)) == 1200 * len(TWO)


# --- Packing.

PACKED = {
    "gzip": gzip.compress(TWO),
    "gzip of two members": gzip.compress(TWO[:30]) + gzip.compress(TWO[30:]),
    "gzip padded with zeros": gzip.compress(TWO) + bytes(512),
    "bz2": bz2.compress(TWO),
    "bz2 of two streams": bz2.compress(TWO[:30]) + bz2.compress(TWO[30:]),
    "zstd": zstd.compress(TWO),
    "zstd of two frames": zstd.compress(TWO[:30]) + zstd.compress(TWO[30:]),
    "zstd that begins with a frame to skip": b"\x50\x2a\x4d\x18\x01\0\0\0." + zstd.compress(TWO),
}


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.gz", "corpus.zst", "corpus.bz2", "x"])
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


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        *(pytest.param(pack, marks=pytest.mark.slow) for pack in (bz2.compress, zstd.compress)),
    ],
)
def test_a_cut_file_is_a_fault_after_the_papers_before_the_cut(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(many(100_000))
    path = a_file(tmp_path, packed[: len(packed) * 9 // 10])
    papers = read_papers(find_source(path), "canonical")

    first = next(papers)

    assert first.paper == Paper(id="p0", title="0")
    with pytest.raises(BadInputError, match=r"the file is cut off after line \d{4,} "):
        list(papers)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd.compress])
def test_a_damaged_file_is_a_fault(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(many(5000)))
    middle = len(packed) // 2
    packed[middle : middle + 40] = bytes(40)
    path = a_file(tmp_path, bytes(packed))

    with pytest.raises(BadInputError, match=r"the file is (damaged|cut off) after line"):
        list(read_lines(path))


# --- Files and folders.


def test_a_folder_is_read_shard_after_shard_without_what_lies_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    a_file(folder, b'{"id": "a", "title": "A"}\n', "part-00.jsonl")
    a_file(folder, gzip.compress(b'{"id": "b", "title": "B"}\n'), "part-01.jsonl.gz")
    a_file(folder, b' {"id": "c", "title": "C"}\n', "part-02")
    a_file(folder, b'{"id": "d", "title": "D"}\n', "more/part-03.txt")
    a_file(folder, b"a\n", "splits/train.ids")
    a_file(folder, b"q\td\t1\n", "qrels/test.tsv")
    for name in ("_SUCCESS", ".part-00.jsonl.crc", "_temporary/part-09.jsonl", "empty.jsonl"):
        a_file(folder, b"" if name == "empty.jsonl" else b"{}", name)
    for name, text in {
        "README.md": b"# A corpus\n{...}\n",
        "notes.rtf": b"{\\rtf1 notes}",
        "dataset_info.json": b'{\n  "papers": 4\n}\n',
        "LICENSE": b"MIT",
    }.items():
        a_file(folder, text, name)

    source = find_source(folder)

    assert ids(folder) == ["d", "a", "b", "c"]
    assert [file.name for file in source.ignored] == [
        "LICENSE",
        "README.md",
        "dataset_info.json",
        "empty.jsonl",
        "notes.rtf",
    ]


def test_a_shard_that_begins_broken_is_a_shard_by_its_name(tmp_path: Path) -> None:
    a_file(tmp_path, TWO, "corpus/0.jsonl")
    a_file(tmp_path, b"nonsense\n", "corpus/1.jsonl")

    source = find_source(tmp_path / "corpus")

    assert [file.name for file in source.files] == ["0.jsonl", "1.jsonl"]


def test_the_queries_of_a_beir_folder_are_no_papers(tmp_path: Path) -> None:
    a_file(tmp_path, json.dumps(BEIR).encode(), "beir/corpus.jsonl")
    a_file(tmp_path, b'{"_id": "q", "text": "why?"}\n', "beir/queries.jsonl")
    a_file(tmp_path, b"query-id\tcorpus-id\tscore\n", "beir/qrels/test.tsv")

    source = find_source(tmp_path / "beir")

    assert source.files == (tmp_path / "beir" / "corpus.jsonl",)
    assert ids(tmp_path / "beir") == ["bert"]


def test_an_index_is_no_corpus_nor_a_part_of_one(tmp_path: Path) -> None:
    a_file(tmp_path, TWO, "papers.jsonl")
    a_file(tmp_path, b'{"format": 1}', "indexes/x/manifest.json")
    a_file(tmp_path, b"ARROW1", "indexes/x/papers.arrow")

    assert find_source(tmp_path).files == (tmp_path / "papers.jsonl",)
    with pytest.raises(BadInputError, match="this is an index, not a corpus"):
        find_source(tmp_path / "indexes" / "x")


def test_where_there_is_no_corpus_the_message_says_what_was_expected(tmp_path: Path) -> None:
    a_file(tmp_path, b"# Nothing yet\n", "empty/README.md")

    with pytest.raises(BadInputError, match="no such file or folder"):
        find_source(tmp_path / "missing.jsonl")
    with pytest.raises(BadInputError, match="no corpus file in this folder; expected JSONL"):
        find_source(tmp_path / "empty")
    with pytest.raises(BadInputError, match="cannot be read: File name too long"):
        find_source(tmp_path / ("x" * 300))
    with pytest.raises(BadInputError, match="neither a file nor a folder"):
        find_source(Path("/dev/null"))


@pytest.mark.parametrize(
    "content",
    [b"", b"\n \n", b"\xef\xbb\xbf", gzip.compress(b"")],
    ids=["nothing", "blank lines", "BOM", "packed"],
)
def test_an_empty_corpus_says_so(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInputError, match="the corpus is empty"):
        detect_format(find_source(a_file(tmp_path, content)))


def test_a_file_that_goes_away_is_a_fault_not_a_traceback(tmp_path: Path) -> None:
    source = find_source(a_file(tmp_path, TWO))
    source.path.unlink()

    for look in (size_of, sha256_of, detect_format):
        with pytest.raises(BadInputError, match="cannot be read: No such file"):
            look(source)


def test_the_checksum_of_one_file_is_its_own_and_of_a_folder_covers_every_shard(
    tmp_path: Path,
) -> None:
    one = a_file(tmp_path, TWO, "folder/0.jsonl")
    alone = sha256_of(find_source(one))
    a_file(tmp_path, TWO, "folder/1.jsonl")
    both = sha256_of(find_source(tmp_path / "folder"))
    a_file(tmp_path, TWO + b"\n", "folder/1.jsonl")

    changed = sha256_of(find_source(tmp_path / "folder"))

    # printf '{"id": "a", "title": "A"}\n{"id": "b", "title": "B"}\n' | sha256sum
    assert alone == "d8e611eddff80782d4ba37e061db7d3eb1ba2f31e2a70a70f975e9fa1c172481"
    assert len({alone, both, changed}) == 3
