"""A downloaded index may be damaged, or made to harm: what is opened is checked, even if its checksums fit."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.sealing import forge, reseal, without_sizes

from citerec.cli import run
from citerec.config import RecommendConfig
from citerec.corpus.papers import SCHEMA
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.opening import open_encoder
from citerec.errors import CiterecError, IndexDamagedError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.manifest import read_manifest
from citerec.recommend import BatchRecommender
from citerec.retrieve.hybrid import open_hybrid
from citerec.types import Query

DRAFT = Query(id="draft", title="Neural networks for the recommendation of citations", year=2019)
HUGE = 2**30


@pytest.fixture
def copy(dense_sample: IndexFolder, tmp_path: Path) -> Path:
    """A copy of an index with vectors, for harm."""
    others_leave = shutil.ignore_patterns("models", "tokens")
    return Path(shutil.copytree(dense_sample.path, tmp_path / "copy", ignore=others_leave))


def recommend(index: Path) -> list[str]:
    found = BatchRecommender(open_index(index), RecommendConfig(k=10)).recommend([DRAFT])
    return [item.paper.id for item in found[0]]


# --- Names and links.


@pytest.mark.parametrize("name", ["../victim", "/tmp/victim", "a/../../victim", "a\\..\\b", "NUL"])
def test_an_index_that_names_a_file_elsewhere_is_refused_and_nothing_is_written(
    copy: Path, tmp_path: Path, tiny_model: str, name: str
) -> None:
    (tmp_path / "victim").write_text("untouched")
    forge(copy, checksums={**read_manifest(copy).checksums, name: "0" * 64})
    before = sorted(tmp_path.iterdir())

    with pytest.raises(IndexDamagedError, match=r"manifest.json: .* (inside the folder|name)"):
        embed_anew(copy, open_encoder(tiny_model), EmbedConfig())
    with pytest.raises(IndexDamagedError):
        verify_index(copy)

    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "victim").read_text() == "untouched"


@pytest.mark.parametrize("name", ["../x", "a/b", "/x", "", ".", "..", 7])
def test_the_name_of_an_index_is_that_of_a_folder(copy: Path, name: object) -> None:
    forge(copy, name=name)  # `evaluate` writes its report into reports/<name>-test

    with pytest.raises(IndexDamagedError, match="its name"):
        open_index(copy)


@pytest.mark.parametrize("part", ["papers.arrow", "citations", "citations/indices.npy", "bm25"])
def test_a_link_in_place_of_a_part_is_refused(copy: Path, tmp_path: Path, part: str) -> None:
    shutil.move(copy / part, tmp_path / "elsewhere")
    (copy / part).symlink_to(tmp_path / "elsewhere")

    for check in (open_index, verify_index):
        with pytest.raises(IndexDamagedError, match=r"is a link, expected"):
            check(copy)


@pytest.mark.parametrize("part", ["models", "tokens"])
def test_trainings_are_not_led_elsewhere_by_a_link(copy: Path, tmp_path: Path, part: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (copy / part).symlink_to(tmp_path / "elsewhere")

    for check in (open_index, verify_index):
        with pytest.raises(IndexDamagedError, match=f"{part}.* is a link, expected a folder"):
            check(copy)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"counts": {"papers": "many"}}, "its counts"),
        ({"counts": 7}, "its counts"),
        ({"corpus": {"path": "x"}}, "its corpus"),
        ({"settings": []}, "its settings"),
        ({"checksums": {"papers.arrow": 7}}, "its checksums"),
        ({"checksums": []}, "its checksums"),
        ({"sizes": {"papers.arrow": "1"}}, "its sizes"),
        ({"created": None}, "its created"),
    ],
)
def test_a_manifest_of_other_types_is_refused(
    copy: Path, changes: dict[str, Any], fault: str
) -> None:
    forge(copy, **changes)

    with pytest.raises(IndexDamagedError, match=f"manifest.json: {fault} has a wrong type"):
        open_index(copy)


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": 7},
        {"encoder": {"name": "x"}},
        {"dense": None},
        {"dense": {"papers": 1}},
        {"dense": []},
    ],
)
def test_what_a_manifest_says_of_vectors_is_checked_on_opening(
    copy: Path, settings: dict[str, Any]
) -> None:
    forge(copy, settings={**read_manifest(copy).settings, **settings})

    with pytest.raises(IndexDamagedError, match=r"manifest.json cannot be read \(its"):
        open_index(copy)


# --- Arrays whose checksums fit.


def change(name: str, how: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Return what changes the numbers of an array of an index."""

    def harm(index: Path) -> None:
        np.save(index / name, how(np.load(index / name)))

    return harm


def put(place: int, value: float) -> Callable[[Any], Any]:
    def harm(numbers: Any) -> Any:
        numbers[place] = value
        return numbers

    return harm


def swapped_papers(index: Path) -> None:
    """Change the order of two offsets of the titles, which Arrow does not notice."""
    file = index / "papers.arrow"
    with pa.memory_map(str(file)) as source:
        title = pa.ipc.open_file(source).read_all()["title"].chunk(0)
        ends = np.frombuffer(title.buffers()[1], np.int32, len(title) + 1)
        was = ends[3:5].tobytes()
    content = file.read_bytes()
    assert content.count(was) == 1
    file.write_bytes(content.replace(was, np.array([HUGE, -HUGE], np.int32).tobytes()))


def without_a_column(index: Path) -> None:
    with pa.OSFile(str(index / "papers.arrow"), "wb") as sink:
        schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("title")])
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([["a"], ["b"]], schema=schema))


def cut_off(name: str, keep: float) -> Callable[[Path], None]:
    def harm(index: Path) -> None:
        content = (index / name).read_bytes()
        (index / name).write_bytes(content[: int(len(content) * keep)])

    return harm


INDPTR, INDICES = "citations/indptr.npy", "citations/indices.npy"
ROWS, RANK = "bm25/rows.npy", "id_rank.npy"


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (change(INDPTR, put(5, 2**40)), "indptr.npy does not rise"),
        (change(INDPTR, put(0, -1)), "indptr.npy does not rise"),
        (change(INDPTR, put(-1, 10**6)), "indptr.npy does not rise"),
        (change(INDPTR, lambda a: a[:-1]), "indptr.npy holds 300 numbers, expected 301"),
        (change(INDPTR, lambda a: a.astype(np.int32)), "of int32 of shape"),
        (change(INDICES, put(7, HUGE)), "indices.npy names row 1,073,741,824"),
        (change(INDICES, put(7, -1)), "indices.npy names row -1"),
        (change(INDICES, lambda a: a[::-1].copy()), "out of order"),
        (change(INDICES, lambda a: a.reshape(1, -1)), "shape"),
        (change(RANK, put(0, 300)), "id_rank.npy names row 300"),
        (change(RANK, lambda a: a * 0), "id_rank.npy names a row twice"),
        (change(ROWS, put(3, -1)), "rows.npy names row -1"),
        (change(ROWS, put(3, 10**6)), "rows.npy names row 1,000,000"),
        (change(ROWS, lambda a: a * 0), "rows.npy names a row twice"),
        (change(ROWS, lambda a: a[:-1]), "Lucene holds 300 documents, expected 299"),
        (cut_off("dense/vectors.faiss", 0.5), "dense/ cannot be read"),
        (cut_off("papers.arrow", 0.9), "papers.arrow cannot be read"),
        (swapped_papers, "a text ends before it begins"),
        (without_a_column, "it has other columns"),
    ],
)
def test_arrays_that_lead_beyond_themselves_are_refused_though_their_checksums_fit(
    copy: Path, harm: Callable[[Path], None], fault: str
) -> None:
    harm(copy)
    reseal(copy)

    with pytest.raises(CiterecError) as caught:
        open_hybrid(open_index(copy), RecommendConfig(ranker="none"))

    assert fault in str(caught.value)
    assert "rebuild it" in str(caught.value)


def test_a_pickle_in_an_array_is_not_opened(copy: Path) -> None:
    np.save(copy / RANK, np.array([{}] * 300, object), allow_pickle=True)
    reseal(copy)

    with pytest.raises(IndexDamagedError, match=r"id_rank.npy cannot be read"):
        open_index(copy)


def test_an_archive_in_place_of_an_array_is_refused(copy: Path) -> None:
    np.savez(copy / RANK, a=np.zeros(300))
    shutil.move(copy / f"{RANK}.npz", copy / RANK)
    reseal(copy)

    with pytest.raises(IndexDamagedError, match="not an array as numpy writes it"):
        open_index(copy)


# --- What each opening finds, and what `verify` finds.


def test_a_flipped_bit_in_a_small_file_is_found_on_opening(copy: Path) -> None:
    for old in (False, True):
        if old:
            without_sizes(copy)
        for name in ("splits/test.ids", INDICES, "bm25/segments_1"):
            content = (copy / name).read_bytes()
            (copy / name).write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
            with pytest.raises(IndexDamagedError, match=f"{name} is not what was written"):
                open_index(copy)
            (copy / name).write_bytes(content)


def test_a_large_file_is_found_by_its_size_on_opening_and_by_its_bytes_by_verify(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.sums.SMALL", 100)
    content = (copy / "papers.arrow").read_bytes()

    (copy / "papers.arrow").write_bytes(content + b" ")
    with pytest.raises(IndexDamagedError, match=r"papers.arrow is not what was written"):
        open_index(copy)
    (copy / "papers.arrow").write_bytes(content.replace(b"neural", b"nevral"))
    open_index(copy)
    with pytest.raises(IndexDamagedError, match=r"papers.arrow is not what was written"):
        verify_index(copy)


def test_an_index_of_before_opens(copy: Path) -> None:
    before = recommend(copy)

    assert without_sizes(copy) == read_manifest(copy)
    assert read_manifest(copy).sizes == {}
    assert recommend(copy) == before
    assert verify_index(copy)


def pipe(index: Path) -> str:
    os.mkfifo(index / "pipe")
    return "pipe is a pipe or a device, which does not belong to it"


def link(index: Path) -> str:
    (index / "link").symlink_to("/etc/passwd")
    return "link is a link, which does not belong to it"


def hidden_folder(index: Path) -> str:
    (index / ".hidden").mkdir()
    return ".hidden does not belong to it"


def further_file(index: Path) -> str:
    (index / "citations" / "more").write_text("")
    return "citations/more does not belong to it"


def file_among_models(index: Path) -> str:
    (index / "models").mkdir()
    (index / "models" / "notes.txt").write_text("")
    return "models/notes.txt does not belong to it"


def pipe_among_models(index: Path) -> str:
    (index / "models" / "mine").mkdir(parents=True)
    os.mkfifo(index / "models" / "mine" / "checksums.json")
    return "models/mine/checksums.json cannot be read"


def hidden_folder_among_models(index: Path) -> str:
    (index / "models" / ".x").mkdir(parents=True)
    return "models/.x does not belong to it"


@pytest.mark.parametrize(
    "add",
    [
        *(pipe, link, hidden_folder, further_file),
        *(file_among_models, pipe_among_models, hidden_folder_among_models),
    ],
)
def test_verify_names_what_does_not_belong_to_an_index(
    copy: Path, add: Callable[[Path], str]
) -> None:
    fault = add(copy)

    with pytest.raises(IndexDamagedError) as caught:
        verify_index(copy)

    assert fault in caught.value.faults


def test_a_training_that_can_go_on_belongs_to_an_index(copy: Path) -> None:
    (copy / "models" / ".reranker.training").mkdir(parents=True)

    assert verify_index(copy)


# --- The command line.


@pytest.mark.parametrize("length", [151, 250, 300])
def test_a_name_that_no_folder_can_have_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], length: int
) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "a", "title": "T"}\n')
    index = str(tmp_path / ("x" * length))

    for command in (["index", str(corpus), "--encoder", "none"], ["info"], ["verify"]):
        assert run([*command, "--index", index]) == 2
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


@pytest.mark.parametrize("command", ["info", "verify", "recommend"])
@pytest.mark.parametrize("name", ["papers.arrow", INDICES, "bm25/segments_1", "manifest.json"])
def test_damage_is_one_line_that_names_the_file_and_what_to_do(
    copy: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[: len(content) // 2])
    draft = ["--title", "Citations"] if command == "recommend" else []

    assert run([command, "--index", str(copy), *draft]) == 2

    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert name in told.err
    assert "rebuild it: citerec index CORPUS --index" in told.err


def test_no_command_waits_at_a_pipe_in_place_of_a_manifest(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "manifest.json").unlink()
    os.mkfifo(copy / "manifest.json")

    for command in ("info", "verify"):
        assert run([command, "--index", str(copy)]) == 2
        assert "manifest.json cannot be read: it is not a file" in capsys.readouterr().err
