"""From a corpus to an index, and from an index to one that has grown: what is kept, what is counted, what fails."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.types import Build, Capture, MonkeyPatch, Write

from citerec.build.index import BuildConfig, build_index, grow_index
from citerec.cli import run
from citerec.encode.encoder import TransformerEncoder
from citerec.errors import (
    BadRecordError,
    ConfigError,
    EncoderMismatchError,
    IndexDamagedError,
    IndexExistsError,
    IndexNotFoundError,
    LockedError,
)
from citerec.files.atomic import locked
from citerec.index.folder import (
    IndexFolder,
    checksums,
    open_index,
    verify_index,
    write_manifest,
)
from citerec.index.graph import REFERENCES, STATED
from citerec.index.papers import open_table
from citerec.index.splits import read_ids, write_splits
from citerec.index.vectors import vectors_of
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Eligibility, Paper, Query

PLAIN = BuildConfig()
A, B = {"id": "a", "title": "Alpha"}, {"id": "b", "title": "Beta"}
# Lines 1 and 4 are good; 2, 5, 6, 7 and 9 are faults; 3 and 8 repeat earlier records.
MESSY = """\
{"id": "a", "title": "Alpha", "year": 2001, "citations": ["b", "b", "a", "zz"]}
{"id": "broken",
{"title": "Alpha", "year": 2001, "id": "a", "citations": ["b", "b", "a", "zz"]}
{"id": "b", "title": " ", "abstract": "Beta", "citations": ["a", "yy"]}
{"id": "c", "title": "Gamma", "year": "MMI"}
{"id": "d"}
{"id": "b", "title": "Another"}
{"id": "b", "title": "", "abstract": "Beta", "citations": ["a", "yy"]}
[]"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- what is kept and counted


def test_an_index_holds_papers_citations_and_lucenes_rows(build: Build) -> None:
    index = build([A | {"citations": ["b"]}, {"id": "empty", "title": ""}, B])

    rows = np.load(index.bm25 / "rows.npy").tolist()
    assert [index.papers[row] for row in (0, 2)] == [
        Paper(id="a", title="Alpha"),
        Paper(id="b", title="Beta"),
    ]
    assert index.graph.references(0).tolist() == [2]
    assert rows == [0, 2]  # a paper without any text cannot be found by its words
    assert index.id_rank.tolist() == [0, 2, 1]  # a, empty, b
    assert verify_index(index.path) == index.manifest


def test_all_faults_of_a_corpus_are_counted_in_the_manifest(tmp_path: Path) -> None:
    corpus = tmp_path / "messy.jsonl"
    corpus.write_text(MESSY)

    report = build_index(corpus, tmp_path / "index", BuildConfig(skip_bad=True))

    assert report.manifest.counts == {
        "papers": 2,  # a and b
        "duplicates": 2,  # lines 3 and 8
        "retracted": 0,
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
    assert report.manifest.settings["splits"] == "by year, 80/10/10"
    assert open_index(tmp_path / "index").manifest == report.manifest
    assert [example.split(": ")[0] for example in report.examples] == [
        f"{corpus}, line {number}" for number in (2, 5, 6, 7, 9)
    ]


def test_the_manifest_states_where_the_index_comes_from(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = write_jsonl([A])
    progress: list[tuple[str, int, int]] = []

    report = build_index(
        corpus, tmp_path / "mine", PLAIN, lambda *step: progress.append(step)
    )

    assert report.manifest.name == "mine"
    assert report.manifest.corpus == {
        "path": str(corpus),
        "format": "canonical",
        "files": 1,
        # printf '{"id": "a", "title": "Alpha"}\n' | sha256sum
        "sha256": "739ce52d5a1804a1cf013ae1473208330e9d11c60431b97668e715cdcaf68181",
        "identified": {corpus.name: 1},
    }
    assert progress[0] == ("reading", corpus.stat().st_size, corpus.stat().st_size)
    assert progress[-1] == ("finishing", 2, 2)


def test_unusual_ids_and_texts_go_through_lucene_and_back(build: Build) -> None:
    ids = [
        "😀",
        "é\u2028x",
        "a b",
        "a\ufeffbom",
        "\ufeffa",
        'q"\\',
        "x" * 512,
        "\u200b",
    ]
    wild = [
        {"id": docid, "title": "\x01\x02 \x9b", "abstract": "\x00 word"}
        for docid in ids
    ]

    index = build(
        [*wild, {"id": "blank", "title": "\x01"}, {"id": "joiner", "title": "\u200b"}]
    )

    rows = np.load(index.bm25 / "rows.npy")
    assert sorted(index.papers.ids_at(rows)) == sorted([*ids, "joiner"])
    assert index.papers[0] == Paper(id="😀", title="", abstract="word")
    assert index.manifest.counts["empty_titles"] == len(ids) + 1


def test_the_same_corpus_makes_the_same_index(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = write_jsonl([A | {"year": 2000 + i, "id": f"p{i}"} for i in range(50)])

    made = [build_index(corpus, tmp_path / name, PLAIN).manifest for name in "xy"]

    x, y = (  # Lucene writes a random id into each segment
        {
            file: s
            for file, s in m.checksums.items()
            if "bm25/_" not in file and "segm" not in file
        }
        for m in made
    )
    assert x == y
    assert {
        "papers.arrow",
        "bm25/rows.npy",
        "postings/docs.npy",
        "splits/test.ids",
    } <= x.keys()
    assert made[0].counts == made[1].counts


# --- splits


def dated(count: int) -> list[dict[str, Any]]:
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


def test_shipped_splits_are_used_and_their_unknown_queries_counted(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = write_jsonl(dated(4), "shipped/corpus.jsonl")
    splits = {"train": ["p4"], "dev": ["p3", "gone"], "test": ["p2"]}
    write_splits(corpus.parent / "splits", splits)

    report = build_index(corpus, tmp_path / "index", PLAIN)

    assert report.manifest.settings["splits"] == "shipped"
    assert report.manifest.counts["unknown_queries"] == 1
    assert ids_of(tmp_path / "index") == splits


# --- what fails


def test_a_corpus_without_one_good_paper_makes_no_index(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = write_jsonl([A | {"year": "?"}, B | {"title": 7}])

    with pytest.raises(ConfigError, match="holds no valid paper; no index was built"):
        build_index(corpus, tmp_path / "index", BuildConfig(skip_bad=True))

    assert names(tmp_path) == ["corpus.jsonl"]


# --- an index that exists


def test_an_index_is_replaced_only_with_force_and_only_by_a_whole_one(
    build: Build, write_jsonl: Write
) -> None:
    index = build([A])
    more, bad = (
        write_jsonl([A, B], "more.jsonl"),
        write_jsonl([A, {"id": 7}], "bad.jsonl"),
    )

    with pytest.raises(IndexExistsError, match="replace it with --force"):
        build_index(more, index.path, PLAIN)
    with pytest.raises(BadRecordError):
        build_index(bad, index.path, BuildConfig(force=True))
    assert verify_index(index.path) == index.manifest
    (index.path / "papers.arrow").unlink()  # a damaged index can be replaced
    build_index(more, index.path, BuildConfig(force=True))

    assert len(open_index(index.path).papers) == 2


@pytest.mark.parametrize("name", ["manifest.json", "thesis.tex"])
def test_a_folder_that_is_no_index_is_not_replaced_even_with_force(
    write_jsonl: Write, tmp_path: Path, name: str
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("{}")  # a web page has a manifest.json, too

    with pytest.raises(
        ConfigError, match="already exists and is not an index; it was not changed"
    ):
        build_index(write_jsonl([A]), tmp_path / "mine", BuildConfig(force=True))

    assert names(tmp_path / "mine") == [name]
    (tmp_path / "mine" / name).unlink()
    # an empty folder may become an index
    build_index(write_jsonl([A]), tmp_path / "mine", PLAIN)


# --- builds that are killed and interrupted


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A corpus that takes seconds to index."""
    folder = tmp_path_factory.mktemp("large")
    text = " ".join(f"word{i}" for i in range(60))
    with (folder / "large.jsonl").open("w") as out:
        for i in range(30_000):
            out.write(
                json.dumps({"id": f"p{i}", "title": f"T {i}", "abstract": text}) + "\n"
            )
    yield folder / "large.jsonl"
    shutil.rmtree(folder)


def start_index(corpus: Path, index: Path, *options: str) -> subprocess.Popen[str]:
    """Start `citerec index` and return once it is in the middle of a build."""
    command = [
        Path(sys.executable).with_name("citerec"),
        "index",
        corpus,
        "--index",
        index,
    ]
    command += options or ["--encoder", "none", "--force"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not [
        f for f in index.parent.glob(".*building-*/**/papers.arrow") if f.stat().st_size
    ]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    return process


@pytest.mark.parametrize("options", [[], ["--append"]], ids=["build", "append"])
def test_a_killed_build_leaves_the_old_index_and_the_next_one_removes_its_files(
    large: Path, build: Build, write_jsonl: Write, tmp_path: Path, options: list[str]
) -> None:
    old = build([A])

    with start_index(large, old.path, *options) as process:
        process.kill()
    after_the_kill = names(tmp_path)
    whole = verify_index(old.path)
    build_index(write_jsonl([A, B]), old.path, BuildConfig(force=True))

    assert process.returncode == -signal.SIGKILL
    # the corpus' folder, the index, the leftover, its lock
    assert len(after_the_kill) == 4
    assert whole == old.manifest
    assert names(tmp_path) == ["corpus.jsonl", "index", "made"]
    assert verify_index(old.path).counts["papers"] == 2


@pytest.mark.parametrize(
    ("signals", "code", "what"),
    [
        ([signal.SIGINT], 1, "interrupted"),
        # as a session ends: the first one counts, the others do not stop the cleaning up
        ([signal.SIGTERM, signal.SIGTERM], 128 + 15, "SIGTERM received"),
    ],
)
def test_an_interrupted_build_leaves_nothing_and_prints_one_line(
    large: Path, tmp_path: Path, signals: list[signal.Signals], code: int, what: str
) -> None:
    with start_index(large, tmp_path / "indexes" / "index") as process:
        for number in signals:
            process.send_signal(number)
        _, message = process.communicate()

    assert process.returncode == code
    assert message == f"citerec: {what}; no file is left half-written\n"
    assert names(tmp_path) == []


# --- an index that grows is what a build of the result gives


def papers(*ids: str, seed: int = 0) -> list[dict[str, Any]]:
    """Papers of random words that cite each other, themselves and papers outside the corpus."""
    records: list[dict[str, Any]] = []
    for docid in ids:
        rng = random.Random(f"{docid} {seed}")
        records.append(
            {
                "id": docid,
                "title": " ".join(rng.choices(["graph", "map", "tree", "edge"], k=3)),
                "abstract": rng.choice(["", "Of colours."]),
                "year": rng.choice([None, 2001, 2002]),
                "citations": [*rng.choices("abcdefgh", k=4), docid, "x"],
            }
        )
    return records


def described(index: IndexFolder) -> dict[str, Any]:
    """Describe an index by ids, so that the order of its rows does not count."""
    ids = index.papers.ids
    query = Query(id="draft", title="A map of graphs and trees of colours")
    [hits] = Bm25Retriever(index).retrieve([query], [Eligibility()], 50)
    counted = (
        "papers",
        "citations",
        "unknown_references",
        "with_citations",
        "bm25_tokens",
    )
    return {
        "papers": {index.papers[row].id: index.papers[row] for row in range(len(ids))},
        "cited": {
            ids[r]: sorted(ids[index.graph.references(r)]) for r in range(len(ids))
        },
        "citing": {
            ids[r]: sorted(ids[index.graph.cited_by(r)]) for r in range(len(ids))
        },
        "stated": {
            ids[row["row"]]: row["references"]
            for row in open_table(
                index.path / "citations" / REFERENCES, STATED
            ).to_pylist()
        },
        "order": ids[np.argsort(index.id_rank)].tolist(),
        "hits": (ids[hits.rows].tolist(), hits.scores.tolist()),
        "counts": {name: index.manifest.counts[name] for name in counted},
    }


def grow(
    index: Path, tmp_path: Path, write: Write, *added: Any, removed: str = ""
) -> Any:
    gone = tmp_path / "gone.ids"
    gone.write_text("\n".join(removed))
    corpus = write([*added]) if added else None
    return grow_index(index, PLAIN, corpus=corpus, removed=gone if removed else None)


def test_any_changes_give_what_a_build_of_the_result_gives(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    start = build(papers(*"abcd"))
    grow(start.path, tmp_path, write_jsonl, *papers(*"ef"))
    report = grow(
        start.path, tmp_path, write_jsonl, *papers("b", "g", seed=1), removed="ad"
    )
    assert report.changes == {"added": 1, "replaced": 1, "removed": 2}
    changed = described(open_index(start.path))
    assert verify_index(start.path).corpus["base_sha256"] == start.manifest.lineage
    # a reader keeps what it opened
    assert start.papers.ids.tolist() == [
        "a",
        "b",
        "c",
        "d",
    ]

    anew = build([*papers(*"cef"), *papers("b", "g", seed=1)], force=True)

    assert changed == described(anew)


def contents_of(index: IndexFolder) -> dict[str, bytes]:
    """Return the files of an index, except those that Lucene writes itself, the splits and the manifest."""
    return {
        name: (index.path / name).read_bytes()
        for name in index.manifest.checksums
        if not name.startswith("splits/")
        and ("bm25/" not in name or name.endswith("rows.npy"))
    }


SENTENCE = {"text": "Maps of trees are graphs [CITE].", "cites": ["b", "new"]}
OLD = [
    *papers(*"abc"),
    {"id": "é", "title": "Étude", "abstract": "Größe α", "contexts": [SENTENCE]},
]


@pytest.mark.parametrize(
    ("old", "added", "removed"),
    [
        (OLD, [{"id": "new", "title": "Unheard 深層学習 terms"}], ""),
        (OLD, [{"id": "new", "title": "A map of a tree", "abstract": ""}], ""),
        (OLD, [{"id": "new", "title": "Map", "citations": ["a", "é", "new"]}], ""),
        (OLD, [{"id": "new", "title": "", "year": 2001, "authors": ["Li, Bo"]}], ""),
        (OLD, [{"id": "new", "title": "Ö", "contexts": [SENTENCE]}], ""),
        (OLD, [{"id": "b", "title": "Another text"}, *papers("g")], ""),
        (OLD, [{"id": "é", "title": "Étude, of which no sentence is left"}], "a"),
        (OLD, [], "cé"),
        (OLD, papers("z"), "abcé"),
        ([OLD[3]], [{"id": "new", "title": "Map"}], "é"),
        (
            papers(*map(str, range(4090))),
            papers("7", *map(str, range(5000, 5010)), seed=1),
            "35",
        ),
    ],
    ids=[
        "new terms",
        "old terms, which an old sentence cites",
        "citations",
        "no text",
        "contexts",
        "replaced",
        "contexts replaced",
        "removed",
        "all removed",
        "no references and sentences left",
        "a batch is filled",
    ],
)
def test_an_index_that_grows_has_the_bytes_of_a_build_of_all_papers(
    build: Build,
    write_jsonl: Write,
    tmp_path: Path,
    old: list[dict[str, Any]],
    added: list[dict[str, Any]],
    removed: str,
) -> None:
    changed = {*removed, *(paper["id"] for paper in added)}
    stay = [paper for paper in old if paper["id"] not in changed]
    start = build(old)
    grow(start.path, tmp_path, write_jsonl, *added, removed=removed)
    grown = open_index(start.path)
    verify_index(grown.path)
    contents = contents_of(grown)
    facts = described(grown)

    anew = build([*stay, *added], force=True)

    assert contents == contents_of(anew)
    assert facts == described(anew)


def test_a_removed_paper_is_cited_again_when_it_is_added_again(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    start = build(papers(*"abcd"))
    before = described(start)

    grow(start.path, tmp_path, write_jsonl, removed="b")
    assert "b" not in described(open_index(start.path))["papers"]
    grow(start.path, tmp_path, write_jsonl, *papers("b"))

    assert described(open_index(start.path)) == before


def test_splits_and_models_stay(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    start = build(dated(9))
    (start.models / "ranker").mkdir(parents=True)
    (start.models / "ranker" / "ranker.json").write_text("{}")
    test = read_ids(start.splits / "test.ids")

    grow(start.path, tmp_path, write_jsonl, {"id": "new", "title": "T", "year": 2020})

    index = open_index(start.path)
    assert read_ids(index.splits / "test.ids") == test
    assert (index.models / "ranker" / "ranker.json").read_text() == "{}"
    assert index.manifest.lineage == start.manifest.lineage


def test_vectors_of_unchanged_papers_are_not_computed_again(
    build: Build,
    write_jsonl: Write,
    tmp_path: Path,
    tiny_model: str,
    monkeypatch: MonkeyPatch,
) -> None:
    start = build(papers(*"abcd"), encoder=tiny_model)
    encoded: list[int] = []
    encode = TransformerEncoder.encode

    def counted(encoder: TransformerEncoder, batch: list[Paper], *rest: Any) -> Any:
        encoded.append(len(batch))
        return encode(encoder, batch, *rest)

    monkeypatch.setattr(TransformerEncoder, "encode", counted)
    before = start.papers.rows_of(["b", "c", "d"])
    kept = vectors_of(start).vectors(before)

    # b has another text, c the same one, d is not named
    grow(
        start.path,
        tmp_path,
        write_jsonl,
        *papers("b", "e", seed=1),
        *papers("c"),
        removed="a",
    )

    assert encoded == [2]
    index = open_index(start.path)
    after = vectors_of(index).vectors(index.papers.rows_of(["b", "c", "d"]))
    assert (after == kept).all(axis=1).tolist() == [False, True, True]
    assert (
        verify_index(start.path).settings["dense"]["papers"] == len(index.papers) == 4
    )
    with pytest.raises(EncoderMismatchError):
        grow_index(
            start.path, BuildConfig(encoder="minilm"), corpus=write_jsonl(papers("f"))
        )


@pytest.mark.parametrize("removed", ["ua", "ab"], ids=["unknown ids", "no paper left"])
def test_a_change_that_fails_leaves_the_index(
    build: Build, tmp_path: Path, removed: str
) -> None:
    start = build(papers(*"ab"))
    (tmp_path / "gone").write_text("\n".join(removed))

    with pytest.raises(ConfigError):
        grow_index(start.path, PLAIN, removed=tmp_path / "gone")

    assert verify_index(start.path) == start.manifest
    assert not [*tmp_path.glob(".index*")]
    (tmp_path / "gone").write_text("u\na\n")
    report = grow_index(
        start.path, BuildConfig(skip_bad=True), removed=tmp_path / "gone"
    )
    assert report.changes == {"added": 0, "replaced": 0, "removed": 1}


def test_compressed_references_of_an_older_version_are_built_anew(
    build: Build, write_jsonl: Write
) -> None:
    start = build([A | {"citations": ["b"]}, B])
    file = start.path / "citations" / "references.arrow"
    table = pa.ipc.open_file(file).read_all()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)
    manifest = replace(start.manifest, checksums=checksums(start.path))
    write_manifest(start.path, manifest)

    with pytest.raises(IndexDamagedError, match="it is compressed; rebuild it"):
        grow_index(start.path, PLAIN, corpus=write_jsonl(papers("c")))

    assert len(open_index(start.path).papers) == 2


def test_only_one_process_may_change_an_index(build: Build, write_jsonl: Write) -> None:
    start = build(papers(*"ab"))
    corpus = write_jsonl(papers("c"))

    with locked(start.path):
        for change in (
            lambda: grow_index(start.path, PLAIN, corpus=corpus),
            lambda: build_index(corpus, start.path, BuildConfig(force=True)),
        ):
            with pytest.raises(LockedError):
                change()

    grow_index(start.path, PLAIN, corpus=corpus)
    assert len(open_index(start.path).papers) == 3
    with pytest.raises(IndexNotFoundError):
        grow_index(start.path / "none", PLAIN, corpus=corpus)


def test_the_command_line_appends_and_deletes(
    build: Build, write_jsonl: Write, tmp_path: Path, capsys: Capture
) -> None:
    index = str(build(papers(*"abc")).path)
    corpus = str(write_jsonl(papers("b", "d", seed=1)))
    (tmp_path / "gone").write_text("a\n")

    code = run(
        [
            "index",
            corpus,
            "--append",
            "--delete",
            str(tmp_path / "gone"),
            "--index",
            index,
        ]
    )

    assert code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert " 1 added 1 replaced 1 removed 3 papers " in shown
    for wrong in (
        ["--append"],
        [corpus, "--delete", str(tmp_path / "gone")],
        [corpus, "--append", "--force"],
        [corpus, "--append", "--dense-index", "hnsw"],
    ):
        assert run(["index", *wrong, "--index", index]) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
