"""From a corpus to an index: what is kept, what is counted, and what is left when it goes wrong."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec.build import BuildConfig, build_index
from citerec.errors import (
    BadInputError,
    BadRecordError,
    CiterecError,
    ConfigError,
    IndexExistsError,
    OutputError,
)
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.types import Paper

Write = Callable[..., Path]
A, B = {"id": "a", "title": "Alpha"}, {"id": "b", "title": "Beta"}
# Line 1 and 4 are good; 2, 5, 6, 7 and 9 are faults; 3 and 8 say again what stands above.
MESSY = [
    json.dumps({"id": "a", "title": "Alpha", "year": 2001, "citations": ["b", "b", "a", "zz"]}),
    '{"id": "broken", ',
    json.dumps({"title": "Alpha", "year": 2001, "id": "a", "citations": ["b", "b", "a", "zz"]}),
    json.dumps({"id": "b", "title": " ", "abstract": "Beta", "citations": ["a", "yy"]}),
    json.dumps({"id": "c", "title": "Gamma", "year": "MMI"}),
    json.dumps({"id": "d"}),
    json.dumps({"id": "b", "title": "Another"}),
    json.dumps({"id": "b", "title": "", "abstract": "Beta", "citations": ["a", "yy"]}),
    "[]",
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A corpus with something wrong on most lines."""
    path = tmp_path / "messy.jsonl"
    path.write_text("\n".join(MESSY))
    return path


# --- What is kept and counted.


def test_an_index_holds_papers_citations_and_lucenes_rows(
    build: Callable[..., IndexFolder],
) -> None:
    index = build([A | {"citations": ["b"]}, {"id": "empty", "title": ""}, B])

    rows = np.load(index.bm25 / "rows.npy").tolist()
    assert [index.papers[row] for row in (0, 2)] == [
        Paper(id="a", title="Alpha"),
        Paper(id="b", title="Beta"),
    ]
    assert index.graph.references(0).tolist() == [2]
    assert sorted(rows) == [0, 2]  # a paper without any text cannot be found by its words
    assert index.id_rank.tolist() == [0, 2, 1]  # a, empty, b
    assert verify_index(index.path) == index.manifest


def test_everything_that_is_wrong_is_counted_in_the_manifest(messy: Path, tmp_path: Path) -> None:
    report = build_index(messy, tmp_path / "index", BuildConfig(skip_bad=True))

    assert report.manifest.counts == {
        "papers": 2,  # a and b
        "duplicates": 2,  # lines 3 and 8
        "broken_lines": 2,  # lines 2 and 9
        "wrong_types": 1,  # line 5
        "missing_fields": 1,  # line 6
        "conflicting_duplicates": 1,  # line 7
        "empty_titles": 1,  # b
        "with_abstract": 1,  # b
        "without_year": 1,  # b
        "with_citations": 2,
        "citations": 2,  # a cites b, b cites a
        "self_citations": 1,  # of a
        "repeated_references": 1,  # of a
        "unknown_references": 2,  # zz and yy
        "bm25_tokens": 2,
        "train_queries": 0,
        "dev_queries": 0,
        "test_queries": 1,  # a, the only paper with a year: 1*8//10 = 1*9//10 = 0
    }
    assert open_index(tmp_path / "index").manifest == report.manifest
    assert [example.split(": ")[0] for example in report.examples] == [
        f"{messy}, line {number}" for number in (2, 5, 6, 7, 9)
    ]


def test_the_manifest_says_where_the_index_comes_from(write_jsonl: Write, tmp_path: Path) -> None:
    corpus = write_jsonl([A])

    manifest = build_index(corpus, tmp_path / "mine", BuildConfig()).manifest

    assert manifest.name == "mine"
    assert manifest.corpus == {
        "path": str(corpus),
        "format": "canonical",
        "files": 1,
        # printf '{"id": "a", "title": "Alpha"}\n' | sha256sum
        "sha256": "739ce52d5a1804a1cf013ae1473208330e9d11c60431b97668e715cdcaf68181",
    }
    assert set(manifest.checksums) >= {
        "papers.arrow",
        "citations/indptr.npy",
        "citations/indices.npy",
        "id_rank.npy",
        "bm25/rows.npy",
        "splits/train.ids",
    }


def test_wild_ids_and_texts_go_through_lucene_and_back(build: Callable[..., IndexFolder]) -> None:
    ids = ["😀", "é\u2028x", "a b", "a\ufeffbom", 'q"\\', "x" * 512, "\u200b"]
    wild = [{"id": docid, "title": "\x01\x02 \x9b", "abstract": "\x00 word"} for docid in ids]

    index = build([*wild, {"id": "blank", "title": "\x01"}, {"id": "joiner", "title": "\u200b"}])

    rows = np.load(index.bm25 / "rows.npy")
    assert sorted(index.papers.ids_at(rows)) == sorted([*ids, "joiner"])
    assert index.papers[0] == Paper(id="😀", title="", abstract="word")
    assert index.manifest.counts["empty_titles"] == len(ids) + 1


def test_the_same_corpus_makes_the_same_index(write_jsonl: Write, tmp_path: Path) -> None:
    corpus = write_jsonl([A | {"year": 2000 + i, "id": f"p{i}"} for i in range(50)])

    made = [build_index(corpus, tmp_path / name, BuildConfig()).manifest for name in "xy"]

    x, y = (
        {file: sha256 for file, sha256 in manifest.checksums.items() if "bm25/" not in file}
        for manifest in made
    )
    assert x == y
    assert len(x) == 27  # papers, id_rank, 6 of citations, 8 of lookup, 8 of postings, 3 of splits
    assert made[0].counts == made[1].counts


def test_the_progress_ends_where_the_corpus_ends(write_jsonl: Write, tmp_path: Path) -> None:
    corpus = write_jsonl([A, B])
    told: list[tuple[str, int, int]] = []

    build_index(corpus, tmp_path / "index", BuildConfig(), lambda *now: told.append(now))

    size = corpus.stat().st_size
    assert told[0] == ("reading", size, size)
    assert told[-1] == ("finishing", 2, 2)


def test_a_folder_of_packed_shards_is_one_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "0.jsonl").write_text(json.dumps(A | {"citations": ["b"]}))
    (folder / "1.jsonl.gz").write_bytes(gzip.compress(json.dumps(B).encode()))
    (folder / "README.md").write_text("# Two shards")

    report = build_index(folder, tmp_path / "index", BuildConfig())

    assert report.manifest.counts["papers"] == 2
    assert report.manifest.counts["citations"] == 1
    assert report.manifest.corpus["files"] == 2
    assert report.ignored == (folder / "README.md",)


def test_an_index_beside_its_corpus_is_not_read_when_it_is_rebuilt(
    write_jsonl: Write, tmp_path: Path
) -> None:
    write_jsonl([A, B], "here/papers.jsonl")
    target = tmp_path / "here" / "indexes" / "here"

    for _ in range(2):
        report = build_index(tmp_path / "here", target, BuildConfig(force=True))

    assert report.manifest.counts["papers"] == 2
    assert report.manifest.corpus["files"] == 1


# --- Splits.


def a_dated_corpus(count: int) -> list[dict[str, Any]]:
    """Papers of 2001 on, each but the first citing the one before."""
    return [
        {"id": f"p{i}", "title": "T", "year": 2000 + i, "citations": [f"p{i - 1}"]}
        for i in range(1, count + 1)
    ]


def ids_of(index: Path) -> dict[str, list[str]]:
    return {
        name: (index / "splits" / f"{name}.ids").read_text().split()
        for name in ("train", "dev", "test")
    }


def test_a_corpus_without_splits_is_split_by_year(write_jsonl: Write, tmp_path: Path) -> None:
    corpus = write_jsonl(a_dated_corpus(10))

    report = build_index(corpus, tmp_path / "index", BuildConfig())

    assert report.manifest.settings["splits"] == "by year, 80/10/10"
    assert ids_of(tmp_path / "index") == {
        "train": ["p2", "p3", "p4", "p5", "p6", "p7", "p8"],  # p1 cites nothing
        "dev": ["p9"],
        "test": ["p10"],
    }


def test_a_shipped_split_is_taken_and_what_it_names_in_vain_is_counted(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = write_jsonl(a_dated_corpus(4), "shipped/corpus.jsonl")
    splits = {"train": ["p4"], "dev": ["p3", "gone"], "test": ["p2"]}
    (corpus.parent / "splits").mkdir()
    for name, ids in splits.items():
        (corpus.parent / "splits" / f"{name}.ids").write_text("\n".join(ids))

    report = build_index(corpus, tmp_path / "index", BuildConfig())

    assert report.manifest.settings["splits"] == "shipped"
    assert report.manifest.counts["unknown_queries"] == 1
    assert ids_of(tmp_path / "index") == splits


# --- What goes wrong.


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (2, "not JSON"),
        (5, "'year' must be a year"),
        (6, "no 'title' in this record"),
        (7, "id 'b' is already in"),
        (9, "expected a JSON object"),
    ],
)
def test_a_bad_record_stops_the_build_and_is_named_with_file_and_line(
    tmp_path: Path, line: int, fault: str
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    good = [text if number in (1, 4, line) else "" for number, text in enumerate(MESSY, start=1)]
    corpus.write_text("\n".join(good))

    with pytest.raises(BadRecordError) as caught:
        build_index(corpus, tmp_path / "new" / "index", BuildConfig())

    assert str(caught.value).startswith(f"{corpus}, line {line}: {fault}")
    assert names(tmp_path) == ["corpus.jsonl"]


def test_a_shard_of_another_format_stops_the_build(write_jsonl: Write, tmp_path: Path) -> None:
    write_jsonl([A], "mixed/0.jsonl")
    write_jsonl([{"_id": "b", "title": "Beta", "text": ""}], "mixed/1.jsonl")

    with pytest.raises(BadRecordError, match=r"1.jsonl, line 1: no 'id' in this record"):
        build_index(tmp_path / "mixed", tmp_path / "index", BuildConfig())


def test_a_cut_file_stops_the_build_even_with_skip_bad(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl.gz"
    corpus.write_bytes(gzip.compress(b"\n".join(json.dumps(A).encode() for _ in range(999)))[:-9])

    with pytest.raises(BadInputError, match="the file is cut off"):
        build_index(corpus, tmp_path / "index", BuildConfig(skip_bad=True))

    assert names(tmp_path) == ["corpus.jsonl.gz"]


def test_a_corpus_without_one_good_paper_makes_no_index(write_jsonl: Write, tmp_path: Path) -> None:
    corpus = write_jsonl([A | {"year": "?"}, B | {"title": 7}])

    with pytest.raises(ConfigError, match="holds no valid paper; no index was built"):
        build_index(corpus, tmp_path / "index", BuildConfig(skip_bad=True))

    assert names(tmp_path) == ["corpus.jsonl"]


def test_a_split_that_cannot_be_read_is_a_fault_of_the_input(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = write_jsonl([A], "shipped/corpus.jsonl")
    (corpus.parent / "splits").mkdir()
    for name in ("train", "dev", "test"):
        (corpus.parent / "splits" / f"{name}.ids").write_bytes(b"\xff")

    with pytest.raises(BadInputError, match=r"train.ids, line 1: not UTF-8 text"):
        build_index(corpus, tmp_path / "index", BuildConfig())

    assert names(tmp_path) == ["shipped"]


@pytest.mark.parametrize(
    ("index", "error", "fault"),
    [
        ("file/index", OutputError, "cannot write .*: Not a directory"),
        ("x" * 300, OutputError, "has 300 bytes, expected at most 150; name another folder"),
        ("\udcff", ConfigError, "is not UTF-8; name another folder"),
    ],
)
def test_an_index_that_cannot_be_made_says_why(
    write_jsonl: Write, tmp_path: Path, index: str, error: type[CiterecError], fault: str
) -> None:
    corpus = write_jsonl([A])
    (tmp_path / "file").write_text("a file")

    with pytest.raises(error, match=fault):
        build_index(corpus, tmp_path / index, BuildConfig())


def test_a_corpus_may_have_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    corpus = tmp_path / "\udcff.jsonl"
    corpus.write_text(json.dumps(A))

    report = build_index(corpus, tmp_path / "index", BuildConfig())

    assert report.manifest.corpus["path"].endswith("/\ufffd.jsonl")
    assert verify_index(tmp_path / "index") == report.manifest


def test_threads_are_not_negative() -> None:
    with pytest.raises(ConfigError, match="threads must not be negative, got -1"):
        BuildConfig(threads=-1)


# --- What is there already.


def test_an_index_is_replaced_only_with_force(
    build: Callable[..., IndexFolder], write_jsonl: Write
) -> None:
    path = build([A]).path
    corpus = write_jsonl([A, B], "more.jsonl")

    with pytest.raises(IndexExistsError, match="replace it with --force"):
        build_index(corpus, path, BuildConfig())
    kept = len(open_index(path).papers)
    build_index(corpus, path, BuildConfig(force=True))

    assert kept == 1
    assert len(open_index(path).papers) == 2


def test_a_failed_rebuild_keeps_the_index(
    build: Callable[..., IndexFolder], write_jsonl: Write, tmp_path: Path
) -> None:
    index = build([A])
    corpus = write_jsonl([A, {"id": 7}], "bad.jsonl")

    with pytest.raises(BadRecordError):
        build_index(corpus, index.path, BuildConfig(force=True))

    assert verify_index(index.path) == index.manifest
    assert names(tmp_path) == ["bad.jsonl", "index", "made"]


def test_a_damaged_index_can_be_replaced(
    build: Callable[..., IndexFolder], write_jsonl: Write
) -> None:
    path = build([A]).path
    (path / "papers.arrow").unlink()

    build_index(write_jsonl([B]), path, BuildConfig(force=True))

    assert verify_index(path).counts["papers"] == 1


@pytest.mark.parametrize("held", ["manifest.json", "thesis.tex"])
def test_a_folder_that_is_no_index_is_left_alone_even_with_force(
    write_jsonl: Write, tmp_path: Path, held: str
) -> None:
    corpus = write_jsonl([A])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / held).write_text("{}")  # a web page has a manifest.json, too

    with pytest.raises(ConfigError, match="already exists and is not an index; it was not changed"):
        build_index(corpus, tmp_path / "mine", BuildConfig(force=True))

    assert names(tmp_path / "mine") == [held]


def test_an_empty_folder_may_become_an_index(write_jsonl: Write, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()

    build_index(write_jsonl([A]), tmp_path / "index", BuildConfig())

    assert verify_index(tmp_path / "index").counts["papers"] == 1


# --- Builds that are killed and interrupted.


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A corpus that takes seconds to index."""
    folder = tmp_path_factory.mktemp("large")
    text = " ".join(f"word{i}" for i in range(60))
    with (folder / "large.jsonl").open("w") as out:
        for i in range(60_000):
            out.write(json.dumps({"id": f"p{i}", "title": f"T {i}", "abstract": text}) + "\n")
    yield folder / "large.jsonl"
    shutil.rmtree(folder)


def start_index(corpus: Path, index: Path) -> subprocess.Popen[str]:
    """Start `citerec index` and return once it is in the middle of a build."""
    command = [
        Path(sys.executable).with_name("citerec"),
        "index",
        corpus,
        "--index",
        index,
        "--encoder",
        "none",
    ]
    process = subprocess.Popen([*command, "--force"], stderr=subprocess.PIPE, text=True)
    while not [f for f in index.parent.glob(".*building-*/papers.arrow") if f.stat().st_size]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    return process


def test_a_killed_build_leaves_the_old_index_and_the_next_one_clears_up(
    large: Path, build: Callable[..., IndexFolder], write_jsonl: Write, tmp_path: Path
) -> None:
    old = build([A])

    with start_index(large, old.path) as process:
        process.kill()
    after_the_kill = names(tmp_path)
    whole = verify_index(old.path)
    build_index(write_jsonl([A, B]), old.path, BuildConfig(force=True))

    assert process.returncode == -signal.SIGKILL
    assert len(after_the_kill) == 4  # the corpus' folder, the index, the leftover, its lock
    assert whole == old.manifest
    assert names(tmp_path) == ["corpus.jsonl", "index", "made"]
    assert verify_index(old.path).counts["papers"] == 2


@pytest.mark.parametrize(
    ("interrupt", "code", "what"),
    [
        (signal.SIGINT, 1, "interrupted"),
        (signal.SIGTERM, 128 + 15, "SIGTERM received"),
        (signal.SIGHUP, 128 + 1, "SIGHUP received"),
    ],
)
def test_an_interrupted_build_leaves_nothing_and_says_one_line(
    large: Path, tmp_path: Path, interrupt: signal.Signals, code: int, what: str
) -> None:
    with start_index(large, tmp_path / "indexes" / "index") as process:
        process.send_signal(interrupt)
        _, said = process.communicate()

    assert process.returncode == code
    assert said == f"citerec: {what}; no file is left half-written\n"
    assert names(tmp_path) == []


def test_further_signals_do_not_stop_the_cleaning_up(large: Path, tmp_path: Path) -> None:
    with start_index(large, tmp_path / "indexes" / "index") as process:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):  # as a session ends
            process.send_signal(number)
        process.communicate()

    assert process.returncode in {128 + 1, 128 + 15}  # both may wait when the first is taken
    assert names(tmp_path) == []


# --- A million papers.
