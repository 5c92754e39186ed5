"""An index that changes: papers are added, replaced and removed; the result is that of a new build."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citerec.api.recommender import Recommender
from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.corpus.outside import outside_batches
from citerec.errors import ConfigError, IndexLockedError, ModelError, UnknownIdsError
from citerec.folder import CITATIONS, IndexFolder, open_index, verify_index
from citerec.index.tokens import open_tokens, write_tokens
from citerec.index.vectors import open_dense
from citerec.lock import locked
from citerec.manifest import write_manifest
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.rules.held_out import data_of
from citerec.types import Eligibility, Query
from citerec.update.compact import compact_index
from citerec.update.index import update_index
from citerec.update.replace import UpdateConfig
from citerec.update.versions import roll_back, versions_of

Records = Sequence[Mapping[str, Any]]
Build = Callable[..., IndexFolder]
Write = Callable[..., Path]

WORDS = ["tree", "graph", "citation", "map", "colour", "edge", "user", "study"]
QUERIES = [
    Query(id="q", title=title) for title in ("tree graph edge", "user study of maps", "citation")
]


def paper(docid: str, title: str, cites: str = "", **more: Any) -> dict[str, Any]:
    return {"id": docid, "title": title, "citations": cites.split(), **more}


OLD = [
    paper("a", "tree map", year=2001),
    paper("b", "graph of citations", "a new b b", year=2002),
    paper("c", "edge study", "a b new", year=2003),
]


def update(index: Path, added: Records = (), removed: Sequence[str] = (), **more: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        corpus, ids = Path(folder, "more.jsonl"), Path(folder, "ids.txt")
        corpus.write_text("".join(json.dumps(record) + "\n" for record in added))
        ids.write_text("".join(f"{docid}\n" for docid in removed))
        return update_index(
            index,
            UpdateConfig(**more),
            corpus=corpus if added else None,
            removed=ids if removed else None,
        )


def built(folder: Path, records: Records, **config: Any) -> IndexFolder:
    corpus = folder.with_suffix(".jsonl")
    corpus.write_text("".join(json.dumps(record) + "\n" for record in records))
    build_index(corpus, folder, BuildConfig(force=True, threads=1, **config))
    return open_index(folder)


def edges(index: IndexFolder) -> set[tuple[str, str]]:
    ids = index.papers.ids
    return {(ids[a], ids[b]) for a, b in zip(index.graph.citing, index.graph.indices, strict=True)}


def outside(index: IndexFolder) -> list[tuple[str, str, int]]:
    ids = index.papers.ids
    return sorted(
        (ids[row["row"]], row["id"], row["kind"])
        for batch in outside_batches(index.path / CITATIONS)
        for row in batch.to_pylist()
    )


def hits(index: IndexFolder) -> list[list[tuple[str, float]]]:
    retriever = Bm25Retriever(index)
    every = Eligibility(None)
    found = retriever.retrieve(QUERIES, [every] * len(QUERIES), 100)
    return [
        [
            (index.papers.ids[row], round(float(score), 6))
            for row, score in zip(one.rows, one.scores, strict=True)
        ]
        for one in found
    ]


def content(index: IndexFolder) -> dict[str, Any]:
    """What does not depend on the order of rows."""
    split = {"train_queries", "dev_queries", "test_queries", "unknown_queries"}
    papers = index.papers.at(range(len(index.papers)))
    by_rank = sorted(papers, key=lambda row: index.id_rank[row])
    return {
        "papers": {one.id: one for one in papers.values()},
        "rank": [papers[row].id for row in by_rank],
        "edges": edges(index),
        "outside": outside(index),
        "counts": {n: c for n, c in index.manifest.counts.items() if n not in split},
        "hits": hits(index),
    }


IDS = st.sampled_from("abcdefgh")
RECORD = st.fixed_dictionaries(
    {
        "title": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        "abstract": st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
        "year": st.sampled_from([None, 2000, 2005]),
        "citations": st.lists(IDS, max_size=4),
    }
)
CHANGE = st.tuples(st.dictionaries(IDS, RECORD, max_size=4), st.sets(IDS, max_size=3))


@settings(max_examples=8)
@given(
    first=st.dictionaries(IDS, RECORD, min_size=1, max_size=5),
    changes=st.lists(CHANGE, min_size=1, max_size=3),
)
def test_any_changes_give_what_a_new_build_of_the_result_gives(
    java: None, first: dict[str, Any], changes: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        papers = dict(first)
        index = built(folder / "index", [{"id": i, **r} for i, r in papers.items()])
        for added, removed in changes:
            left = {i: r for i, r in papers.items() if i not in removed} | added
            if not left:
                continue
            records = [{"id": i, **r} for i, r in added.items()]
            update(index.path, records, sorted(removed & papers.keys()))
            papers = left

        index = open_index(folder / "index")
        verify_index(index.path)
        new = built(folder / "new", [{"id": i, **r} for i, r in papers.items()])
        assert content(index) == content(new)
        compact_index(index.path, UpdateConfig())
        index = open_index(index.path)
        verify_index(index.path)
        assert content(index) == content(new)
        assert index.manifest.counts["train_queries"] == new.manifest.counts["train_queries"]


def test_an_old_reference_to_a_paper_that_is_added_becomes_a_citation(build: Build) -> None:
    index = build(OLD)
    assert index.manifest.counts["unknown_references"] == 2

    update(index.path, [paper("new", "a new tree", "c missing", year=2004)])

    changed = open_index(index.path)
    assert edges(changed) - edges(index) == {("b", "new"), ("c", "new"), ("new", "c")}
    assert changed.manifest.counts["unknown_references"] == 1
    assert changed.manifest.counts["self_citations"] == 1  # b cites itself, twice
    assert changed.manifest.counts["repeated_references"] == 1


def test_a_removed_paper_is_cited_again_when_it_comes_back(build: Build) -> None:
    index = build(OLD)
    before = content(index)

    update(index.path, removed=["a"])
    assert edges(open_index(index.path)) == {("c", "b")}
    update(index.path, [OLD[0]])

    assert content(open_index(index.path)) == before


def test_many_small_changes_are_merged_and_keep_their_rows(build: Build, tmp_path: Path) -> None:
    index = build(OLD)
    added = [paper(f"n{i}", f"{WORDS[i % 8]} graph") for i in range(12)]

    for one in added:
        update(index.path, [one])

    segments = {file.name.partition(".")[0] for file in (index.path / "bm25").glob("_*.si")}
    assert len(segments) < 10
    new = built(tmp_path / "new", [*OLD, *added])
    assert content(open_index(index.path)) == content(new)


def inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


def test_only_what_changed_is_written(build: Build) -> None:
    index = build(OLD)
    inodes = {n: (index.path / n).stat().st_ino for n in index.manifest.checksums}

    report = update(index.path, [OLD[1], paper("new", "a new tree")])

    assert report.counts == {"added": 1, "replaced": 0, "unchanged": 1, "removed": 0}
    stayed = {n for n, i in inodes.items() if inode(index.path / n) == i}
    assert {n for n in inodes if n.startswith("bm25/_")} <= stayed
    assert {n for n in inodes if n.startswith("splits/")} <= stayed


def test_an_update_that_changes_nothing_leaves_the_index(build: Build) -> None:
    index = build(OLD)

    report = update(index.path, OLD)

    assert report.counts["unchanged"] == 3
    assert open_index(index.path).manifest == index.manifest


def test_a_reader_keeps_the_index_that_it_opened(build: Build) -> None:
    index = build(OLD)
    recommender = Recommender(index.path)
    before = recommender.recommend(title="tree map", k=3).ids

    update(index.path, [paper("new", "tree map")], ["a"])

    assert recommender.recommend(title="tree map", k=3).ids == before
    assert "new" in Recommender(index.path).recommend(title="tree map", k=3).ids


# --- splits, vectors, tokens, models


def dated(count: int) -> list[dict[str, Any]]:
    return [paper(f"p{i}", f"tree {i}", f"p{i - 1}", year=2000 + i) for i in range(count)]


def splits(index: Path) -> dict[str, list[str]]:
    return {file.stem: file.read_text().split() for file in (index / "splits").glob("*.ids")}


def test_added_papers_join_no_split_until_the_index_is_compact(build: Build) -> None:
    index = build(dated(20))
    before = splits(index.path)
    assert before["test"] == ["p18", "p19"]

    update(index.path, dated(30)[20:])
    assert splits(index.path) == before

    compact_index(index.path, UpdateConfig())
    assert splits(index.path)["test"] == ["p27", "p28", "p29"]


def test_a_removed_query_stays_in_its_split_and_is_counted(build: Build) -> None:
    index = build(dated(20))

    report = update(index.path, removed=["p19"])

    assert splits(index.path)["test"] == ["p18", "p19"]
    assert report.manifest.counts["unknown_queries"] == 1


def test_an_update_keeps_models_and_what_they_were_trained_on(build: Build) -> None:
    index = build(OLD)
    model = index.path / "models" / "reranker"
    model.mkdir(parents=True)
    (model / "weights").write_bytes(b"1")
    before = data_of(index)

    update(index.path, [paper("new", "graph")], ["a"])

    changed = open_index(index.path)
    assert (model / "weights").read_bytes() == b"1"
    assert data_of(changed) == before
    assert changed.manifest.corpus["sha256"] != index.manifest.corpus["sha256"]


def vectors(index: IndexFolder) -> dict[str, Any]:
    opened = open_dense(index.dense, index.manifest.settings["dense"], index.papers.years)
    rows = np.arange(len(index.papers), dtype=np.int32)
    return dict(zip(index.papers.ids, opened.vectors(rows), strict=True))


def test_only_papers_with_a_new_text_are_embedded(
    build: Build, tiny_model: str, tmp_path: Path
) -> None:
    index = build(OLD, encoder=tiny_model)
    steps: list[tuple[str, int, int]] = []
    corpus = tmp_path / "more.jsonl"
    changes = [OLD[0] | {"year": 1999}, OLD[1] | {"title": "another"}, paper("new", "map")]
    corpus.write_text("".join(json.dumps(record) + "\n" for record in changes))

    update_index(
        index.path, UpdateConfig(), corpus=corpus, progress=lambda *step: steps.append(step)
    )

    changed = open_index(index.path)
    verify_index(index.path)
    new = vectors(built(tmp_path / "new", [*changes, OLD[2]], encoder=tiny_model))
    assert ("encoding", 2, 2) in steps
    assert changed.papers[changed.papers.rows_of(["a"])[0]].year == 1999
    assert vectors(changed).keys() == new.keys()
    for docid, vector in vectors(changed).items():
        assert vector == pytest.approx(new[docid], abs=1e-6)


def letters(texts: Sequence[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]


def test_tokens_of_papers_that_stay_are_not_cut_again(build: Build) -> None:
    index = build(OLD)
    write_tokens(index, "ab" * 32, letters, vocabulary=128)
    cut: list[str] = []

    def counted(texts: Sequence[str]) -> list[list[int]]:
        cut.extend(texts)
        return letters(texts)

    update(index.path, [paper("new", "map")], ["b"])

    changed = open_index(index.path)
    verify_index(index.path)
    assert open_tokens(changed, "ab" * 32, vocabulary=128) is None
    tokens = write_tokens(changed, "ab" * 32, counted, vocabulary=128)
    assert cut == ["map"]
    texts = {row: "".join(map(chr, ids)) for row, ids in tokens.of(range(3)).items()}
    assert texts == {0: "tree map", 1: "edge study", 2: "map"}
    verify_index(index.path)


# --- locks, crashes, versions


def test_a_second_writer_gets_an_error_that_names_the_first(build: Build) -> None:
    index = build(OLD)

    with locked(index.path), pytest.raises(IndexLockedError, match=f"process {os.getpid()} on "):
        update(index.path, [paper("new", "map")])

    update(index.path, [paper("new", "map")])
    assert not [*index.path.parent.glob(".*.lock")]


def test_the_lock_of_a_killed_process_is_taken_over(build: Build) -> None:
    index = build(OLD)
    code = (
        "import os, sys; from pathlib import Path; from citerec.lock import locked\n"
        "with locked(Path(sys.argv[1])): os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(index.path)], check=False)
    assert [*index.path.parent.glob(".*.lock")]

    update(index.path, [paper("new", "map")])

    assert not [*index.path.parent.glob(".*.lock")]


def test_a_killed_update_leaves_the_old_index_and_the_next_one_clears_up(
    build: Build, tmp_path: Path
) -> None:
    index = build(OLD)
    text = " ".join(f"word{i}" for i in range(60))
    with (tmp_path / "more.jsonl").open("w") as out:
        for i in range(20_000):
            out.write(json.dumps(paper(f"p{i}", f"T {i}", abstract=text)) + "\n")
    before = content(index)
    command = [Path(sys.executable).with_name("citerec"), "index", "--append"]
    command += [tmp_path / "more.jsonl", "--index", index.path]

    with subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) as process:
        while not [*tmp_path.glob(".index.building-*/papers.arrow")]:
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()

    assert process.returncode == -signal.SIGKILL
    assert [*tmp_path.glob(".index.building-*")]
    assert content(open_index(index.path)) == before
    verify_index(index.path)
    update(index.path, [paper("new", "map")])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "made", "more.jsonl"]
    assert verify_index(index.path).counts["papers"] == 4


def test_a_full_disk_leaves_the_old_index(build: Build, tmp_path: Path) -> None:
    index = build(OLD)
    (tmp_path / "more.jsonl").write_text(
        "".join(json.dumps(paper(f"p{i}", "x" * 1000)) + "\n" for i in range(1000))
    )
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000,) * 2);"
        "from citerec.cli import run; sys.exit(run(sys.argv[1:]))"
    )
    arguments = ["index", "--append", tmp_path / "more.jsonl", "--index", index.path]

    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert verify_index(index.path) == index.manifest
    assert not [*tmp_path.glob(".*")]


def test_versions_are_kept_and_gone_back_to(build: Build) -> None:
    index = build(OLD)

    for docid in ("x", "y", "z"):
        update(index.path, [paper(docid, "map")], keep=2)

    assert [len(open_index(version).papers) for version in versions_of(index.path)] == [4, 5]
    assert roll_back(index.path).counts["papers"] == 5
    assert roll_back(index.path).counts["papers"] == 4
    assert set(verify_index(index.path).counts) and set(open_index(index.path).papers.ids) == {
        *"abcx"
    }
    with pytest.raises(ConfigError, match="no earlier version"):
        roll_back(index.path)
    assert sorted(p.name for p in index.path.parent.iterdir()) == ["index", "made"]


# --- invalid input


def test_ids_to_delete_that_are_unknown_are_listed(build: Build) -> None:
    index = build(OLD)

    with pytest.raises(UnknownIdsError, match=r"2 ids to delete are not in .*: 'u', 'v'; "):
        update(index.path, removed=["a", "u", "v"])

    assert update(index.path, removed=["a", "u", "v"], skip_bad=True).unknown == ("u", "v")
    assert len(open_index(index.path).papers) == 2


def test_the_last_paper_is_not_deleted(build: Build) -> None:
    index = build(OLD)

    with pytest.raises(ConfigError, match="no paper left"):
        update(index.path, removed=["a", "b", "c"])

    assert open_index(index.path).manifest == index.manifest


def test_an_index_of_an_earlier_version_lacks_references_and_a_warning_names_that(
    build: Build, write_jsonl: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    index = build(OLD)
    sums = {n: s for n, s in index.manifest.checksums.items() if "outside" not in n}
    (index.path / CITATIONS / "outside.arrow").unlink()
    write_manifest(index.path, replace(index.manifest, checksums=sums))
    more = write_jsonl([paper("new", "map", "a", year=2004)], "more.jsonl")

    code = run(["index", "--append", str(more), "--index", str(index.path)])

    assert code == 0
    assert "built by an earlier version" in capfd.readouterr().err
    assert edges(open_index(index.path)) == edges(index) | {("new", "a")}
    verify_index(index.path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--append"], "--append needs a corpus"),
        ([], "name a corpus"),
        (["more.jsonl", "--compact"], "would not be read"),
        (["--rollback", "--compact"], "run one at a time"),
        (["more.jsonl", "--append", "--force"], "--force builds an index anew"),
        (["more.jsonl", "--keep", "1"], "--keep needs"),
        (["more.jsonl", "--append", "--index", "missing"], "missing is not an index"),
        (["--delete", "missing.txt", "--index", "index"], "missing.txt"),
        (["more.jsonl", "--append", "--index", "index", "--encoder", "x"], "has no vectors"),
        (
            ["more.jsonl", "--append", "--index", "index", "--dense-index", "hnsw"],
            "of the kind none",
        ),
        (["--rollback", "--index", "index"], "no earlier version of index"),
    ],
)
def test_a_wrong_command_gives_one_line(
    build: Build,
    write_jsonl: Write,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    index = build(OLD)
    write_jsonl([paper("new", "map")], "more.jsonl")
    monkeypatch.chdir(index.path.parent)

    assert run(["index", *arguments]) == 2

    message_shown = capfd.readouterr().err
    assert message in message_shown
    assert len(message_shown.splitlines()) == 1
    assert open_index(index.path).manifest == index.manifest


def test_an_encoder_that_is_gone_is_named(
    build: Build, tiny_model: str, tmp_path: Path, write_jsonl: Write
) -> None:
    shutil.copytree(tiny_model, tmp_path / "model")
    index = build(OLD, encoder=str(tmp_path / "model"))
    shutil.rmtree(tmp_path / "model")

    with pytest.raises(ModelError, match="model"):
        update(index.path, [paper("new", "map")])

    update(index.path, removed=["a"])  # needs no encoder
    assert vectors(open_index(index.path)).keys() == {"b", "c"}


def test_the_command_line_appends_and_deletes(
    build: Build, write_jsonl: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    index = build(OLD)
    more = write_jsonl([paper("new", "map"), OLD[0], OLD[1] | {"title": "b"}], "more.jsonl")
    (tmp_path / "ids.txt").write_text("c\n")
    place = ["--index", str(index.path)]

    assert run(["index", "--append", str(more), "--delete", str(tmp_path / "ids.txt"), *place]) == 0

    lines = [line.split() for line in capfd.readouterr().out.splitlines()[1:6]]
    assert lines == [
        ["1", "added"],
        ["1", "replaced"],
        ["1", "unchanged"],
        ["1", "removed"],
        ["3", "papers"],
    ]
