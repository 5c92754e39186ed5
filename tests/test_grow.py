"""An index that grows: what `--append` and `--delete` leave is what a build of the result gives."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citerec import embed
from citerec.build import BuildConfig, build_index, grow_index
from citerec.cli import run
from citerec.corpus.graph import read_references
from citerec.corpus.splits import read_ids
from citerec.errors import (
    CiterecError,
    ConfigError,
    EncoderMismatchError,
    IndexLockedError,
    IndexNotFoundError,
)
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.io import locked
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Eligibility, Query

Build = Callable[..., IndexFolder]
Write = Callable[..., Path]
PLAIN = BuildConfig()


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
    return {
        "papers": {index.papers[row].id: index.papers[row] for row in range(len(ids))},
        "cited": {ids[r]: sorted(ids[index.graph.references(r)]) for r in range(len(ids))},
        "citing": {ids[r]: sorted(ids[index.graph.cited_by(r)]) for r in range(len(ids))},
        "stated": {ids[row]: cited for row, cited in read_references(index.path / "citations")},
        "order": ids[np.argsort(index.id_rank)].tolist(),
        "hits": (ids[hits.rows].tolist(), hits.scores.tolist()),
        "counts": {
            name: index.manifest.counts[name]
            for name in (
                "papers",
                "citations",
                "unknown_references",
                "with_citations",
                "bm25_tokens",
            )
        },
    }


def grow(index: Path, tmp_path: Path, write: Write, *added: Any, removed: str = "") -> Any:
    gone = tmp_path / "gone.ids"
    gone.write_text("\n".join(removed))
    corpus = write([*added]) if added else None
    return grow_index(index, PLAIN, corpus=corpus, removed=gone if removed else None)


def test_any_changes_give_what_a_build_of_the_result_gives(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    start = build(papers(*"abcd"))
    grow(start.path, tmp_path, write_jsonl, *papers(*"ef"))
    report = grow(start.path, tmp_path, write_jsonl, *papers("b", "g", seed=1), removed="ad")
    assert report.changes == {"added": 1, "replaced": 1, "removed": 2}
    changed = described(open_index(start.path))
    assert verify_index(start.path).corpus["base_sha256"] == start.manifest.lineage

    anew = build([*papers(*"cef"), *papers("b", "g", seed=1)], force=True)

    assert changed == described(anew)


def test_a_removed_paper_is_cited_again_when_it_comes_back(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    start = build(papers(*"abcd"))
    before = described(start)

    grow(start.path, tmp_path, write_jsonl, removed="b")
    assert "b" not in described(open_index(start.path))["papers"]
    grow(start.path, tmp_path, write_jsonl, *papers("b"))

    assert described(open_index(start.path)) == before


def test_splits_and_models_stay(build: Build, write_jsonl: Write, tmp_path: Path) -> None:
    start = build(
        [{"id": f"p{i}", "title": "T", "year": 2000 + i, "citations": ["p0"]} for i in range(9)]
    )
    (start.models / "ranker").mkdir(parents=True)
    (start.models / "ranker" / "ranker.json").write_text("{}")
    test = read_ids(start.splits / "test.ids")

    grow(start.path, tmp_path, write_jsonl, {"id": "new", "title": "T", "year": 2020})

    index = open_index(start.path)
    assert read_ids(index.splits / "test.ids") == test
    assert (index.models / "ranker" / "ranker.json").read_text() == "{}"
    assert index.manifest.lineage == start.manifest.lineage


def test_a_reader_keeps_the_index_that_it_opened(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    start = build(papers(*"abcd"))
    before = described(start)

    grow(start.path, tmp_path, write_jsonl, removed="abc")

    assert start.papers.ids.tolist() == ["a", "b", "c", "d"]
    assert before["cited"]["a"] == sorted(start.papers.ids[start.graph.references(0)])


def test_vectors_are_those_of_a_build(
    build: Build,
    write_jsonl: Write,
    tmp_path: Path,
    tiny_model: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = build(papers(*"abcd"), encoder=tiny_model)
    encoded: list[int] = []
    write = embed.write_shard
    monkeypatch.setattr(
        embed, "write_shard", lambda file, made: encoded.append(len(made)) or write(file, made)
    )

    grow(start.path, tmp_path, write_jsonl, *papers("b", "e", seed=1), removed="a")

    assert encoded == [2]  # c and d keep their vectors
    index = open_index(start.path)
    assert verify_index(start.path).settings["dense"]["papers"] == len(index.papers) == 4
    with pytest.raises(EncoderMismatchError):
        other = BuildConfig(encoder="minilm")
        grow_index(start.path, other, corpus=write_jsonl(papers("f")))
    assert len(open_index(start.path).papers) == 4


@pytest.mark.parametrize(
    ("removed", "error"),
    [(["u", "a"], ConfigError), (["a", "b"], ConfigError)],
    ids=["unknown ids", "no paper left"],
)
def test_a_change_that_fails_leaves_the_index(
    build: Build, tmp_path: Path, removed: list[str], error: type[CiterecError]
) -> None:
    start = build(papers(*"ab"))
    (tmp_path / "gone").write_text("\n".join(removed))

    with pytest.raises(error):
        grow_index(start.path, PLAIN, removed=tmp_path / "gone")

    assert verify_index(start.path) == start.manifest
    assert not [*tmp_path.glob(".index*")]


def test_unknown_ids_can_be_skipped(build: Build, tmp_path: Path) -> None:
    start = build(papers(*"ab"))
    (tmp_path / "gone").write_text("u\na\n")

    report = grow_index(start.path, BuildConfig(skip_bad=True), removed=tmp_path / "gone")

    assert report.changes == {"added": 0, "replaced": 0, "removed": 1}


def test_a_second_writer_gets_an_error(build: Build, write_jsonl: Write) -> None:
    start = build(papers(*"ab"))
    corpus = write_jsonl(papers("c"))

    with locked(start.path):
        for change in (
            lambda: grow_index(start.path, PLAIN, corpus=corpus),
            lambda: build_index(corpus, start.path, BuildConfig(force=True)),
        ):
            with pytest.raises(IndexLockedError):
                change()

    grow_index(start.path, PLAIN, corpus=corpus)
    assert len(open_index(start.path).papers) == 3


def test_there_must_be_an_index(write_jsonl: Write, tmp_path: Path) -> None:
    with pytest.raises(IndexNotFoundError):
        grow_index(tmp_path / "none", PLAIN, corpus=write_jsonl(papers("a")))


def test_the_command_line_appends_and_deletes(
    build: Build, write_jsonl: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(build(papers(*"abc")).path)
    corpus = str(write_jsonl(papers("b", "d", seed=1)))
    (tmp_path / "gone").write_text("a\n")

    code = run(["index", corpus, "--append", "--delete", str(tmp_path / "gone"), "--index", index])

    assert code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:5]] == [
        ["1", "added"],
        ["1", "replaced"],
        ["1", "removed"],
        ["3", "papers"],
    ]
    for wrong in (
        ["--append"],
        [corpus, "--delete", str(tmp_path / "gone")],
        [corpus, "--append", "--force"],
        [corpus, "--append", "--dense-index", "hnsw"],
    ):
        assert run(["index", *wrong, "--index", index]) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert json.loads((Path(index) / "manifest.json").read_text())["counts"]["papers"] == 3
