"""Finding, opening and verifying index folders, also while they are replaced, damaged or made to harm."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from support.tools import run_python
from support.types import Build, MonkeyPatch, Write

from citerec.config import RecommendConfig
from citerec.encode.encoder import open_encoder
from citerec.encode.models import find_model
from citerec.errors import (
    CiterecError,
    IndexDamagedError,
    IndexFormatError,
    IndexNotFoundError,
    ModelDamagedError,
    ModelError,
)
from citerec.files.checksums import (
    MODEL_SUMS,
    check_model,
    model_faults,
    seal_model,
    sealed,
)
from citerec.index.folder import (
    FORMAT,
    NAME,
    IndexFolder,
    checksums,
    find_index,
    open_index,
    read_manifest,
    verify_index,
    write_manifest,
)
from citerec.index.papers import SCHEMA, Papers
from citerec.retrieve.hybrid import open_hybrid

REBUILDS = """
import sys
from pathlib import Path
from citerec.build.index import BuildConfig, build_index
few, many, index = map(Path, sys.argv[1:])
for corpus in [few, many] * 2:
    build_index(corpus, index, BuildConfig(force=True))
"""


@pytest.fixture
def copy(dense_sample: IndexFolder, tmp_path: Path) -> Path:
    """A copy of an index with vectors, which a test may damage."""
    return Path(shutil.copytree(dense_sample.path, tmp_path / "copy"))


@pytest.fixture
def model(tiny_model: str, tmp_path: Path) -> Path:
    """A model with checksums, as trainers write them."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    seal_model(folder)
    return folder


def reseal(index: Path) -> None:
    """Write the manifest anew for the files that are there now, as somebody would who offers it for download."""
    write_manifest(index, replace(read_manifest(index), checksums=checksums(index)))


def forge(index: Path, **changes: Any) -> None:
    """Change parts of a manifest, and seal it."""
    content: dict[str, Any] = orjson.loads((index / NAME).read_bytes())
    del content["seal"]
    (index / NAME).write_bytes(sealed(content | changes))


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x10
    file.write_bytes(content)


def test_an_open_index_can_be_read_after_it_was_removed(copy: Path) -> None:
    index = open_index(copy)

    shutil.rmtree(copy)

    assert index.papers[0].title
    assert index.graph.citing.shape == index.graph.indices.shape


# --- damage


def test_opening_and_verifying_find_a_flipped_byte_in_any_file(copy: Path) -> None:
    files = [
        file
        for file in sorted(copy.rglob("*"))
        if file.is_file() and file.stat().st_size
    ]
    places = [(file, place) for file in files for place in (0, file.stat().st_size - 1)]
    places += [
        (copy / NAME, place) for place in range(0, (copy / NAME).stat().st_size, 97)
    ]

    for file, place in places:
        flip(file, place)
        for check in (open_index, verify_index):
            with pytest.raises((IndexDamagedError, IndexFormatError)) as caught:
                check(copy)
            assert file.name in str(caught.value)
        flip(file, place)

    assert {NAME, "papers.arrow", "docs.npy"} <= {file.name for file in files}
    assert verify_index(copy) == open_index(copy).manifest


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 5}', b"\xff"])
def test_what_is_no_manifest_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)

    with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("found", [1, FORMAT + 1, "2", None])
def test_another_format_is_to_be_rebuilt(copy: Path, found: object) -> None:
    forge(copy, format=found)

    with pytest.raises(IndexFormatError, match="rebuild it: citerec index"):
        open_index(copy)


# --- an index that was downloaded


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {"checksums": {name: "0" * 64}}
            for name in ("../victim", "/tmp/victim", "a/../../b")
        ),
        # a part of the paths of reports
        *({"name": name} for name in ("../x", "/x", "", ".", 7)),
        *({"counts": {"papers": "many"}}, {"counts": 7}, {"corpus": {"path": "x"}}),
        *({"settings": []}, {"checksums": {"papers.arrow": 7}}, {"sizes": {}}),
        *(
            {"settings": {"encoder": 7}},
            {"settings": {"encoder": {"name": "x"}, "dense": []}},
        ),
    ],
)
def test_a_manifest_of_other_names_or_types_is_refused(
    copy: Path, changes: dict[str, Any]
) -> None:
    forge(copy, **changes)

    with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
        open_index(copy)


@pytest.mark.parametrize(
    "part", ["papers.arrow", "citations", "models", "postings/more"]
)
def test_a_link_in_an_index_is_refused(copy: Path, tmp_path: Path, part: str) -> None:
    if (copy / part).exists():
        shutil.move(copy / part, tmp_path / "elsewhere")
    (copy / part).symlink_to(tmp_path / "elsewhere")

    for check in (open_index, verify_index):
        with pytest.raises(IndexDamagedError, match="link"):
            check(copy)


def test_verify_names_what_does_not_belong_to_an_index(copy: Path) -> None:
    os.mkfifo(copy / "pipe")
    (copy / "link").symlink_to("/etc/passwd")
    (copy / "citations" / "more").write_text("")
    (copy / "models" / ".reranker.training").mkdir(parents=True)  # it can be resumed
    (copy / "models" / "notes.txt").write_text("")

    with pytest.raises(IndexDamagedError) as caught:
        verify_index(copy)

    named = {fault.split()[0] for fault in caught.value.faults}
    assert named == {"pipe", "link", "citations/more", "models/notes.txt"}


def test_a_pipe_in_place_of_the_manifest_is_not_read(copy: Path) -> None:
    (copy / NAME).unlink()
    os.mkfifo(copy / NAME)

    with pytest.raises(IndexNotFoundError, match="cannot be read"):
        open_index(copy)


# --- arrays whose checksums fit


def change(name: str, how: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Return what changes the numbers of an array of an index."""
    return lambda index: np.save(index / name, how(np.load(index / name)))


def put(place: int, value: float) -> Callable[[Any], Any]:
    def damage(numbers: Any) -> Any:
        numbers[place] = value
        return numbers

    return damage


def without_a_column(index: Path) -> None:
    with pa.OSFile(str(index / "papers.arrow"), "wb") as sink:
        schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("title")])
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([["a"], ["b"]], schema=schema))


def pickled(index: Path) -> None:
    np.save(index / "id_rank.npy", np.array([{}] * 300, object), allow_pickle=True)


def not_utf_8(index: Path) -> None:
    papers = index / "papers.arrow"
    papers.write_bytes(papers.read_bytes().replace(b"retrieval", b"retri\xffval"))


def packed(compression: str, title: str = "A") -> Callable[[Path], None]:
    """Return what replaces the papers of an index, all of one title, in compressed batches."""

    def damage(index: Path) -> None:
        table = Papers(index / "papers.arrow").table
        titles = pa.array([title] * len(table))
        table = table.set_column(1, SCHEMA.field("title"), titles)
        options = pa.ipc.IpcWriteOptions(compression=compression)
        (index / "papers.arrow").unlink()  # it is mapped
        with pa.ipc.new_file(index / "papers.arrow", SCHEMA, options=options) as out:
            out.write_table(table)

    return damage


def of_holes(index: Path) -> None:
    with (index / "postings" / "freqs.npy").open("r+b") as file:
        file.truncate(2**40)


def cut_off(name: str) -> Callable[[Path], None]:
    return lambda index: os.truncate(index / name, (index / name).stat().st_size // 2)


@pytest.mark.parametrize(
    "damage",
    [
        *(
            change("citations/indptr.npy", how)
            for how in (put(5, 2**40), lambda a: a[:-1])
        ),
        *(change("citations/indices.npy", how) for how in (put(7, 2**30), put(7, -1))),
        *(change("id_rank.npy", how) for how in (put(0, 301), lambda a: a * 0)),
        *(change("bm25/rows.npy", how) for how in (put(3, 10**6), lambda a: a[:-1])),
        change("postings/indptr.npy", put(3, -1)),
        *(change("citations/cited_by_indptr.npy", put(7, n)) for n in (-1, 2**40)),
        *(change("citations/cited_by_indices.npy", put(7, n)) for n in (-1, 300)),
        *(change("postings/docs.npy", put(9, n)) for n in (-1, 300)),
        change("lookup/ids_rows.npy", put(3, -1)),
        *(not_utf_8, packed("zstd"), packed("lz4")),
        *(pickled, without_a_column),
        *(cut_off("dense/vectors.faiss"), cut_off("postings/docs.npy")),
    ],
)
def test_arrays_that_lead_beyond_themselves_are_refused_though_their_checksums_fit(
    copy: Path, damage: Callable[[Path], None]
) -> None:
    damage(copy)
    reseal(copy)

    with pytest.raises(CiterecError, match="rebuild it"):
        open_hybrid(open_index(copy), RecommendConfig(ranker="none"))


def test_verifying_refuses_what_opening_refuses(copy: Path) -> None:
    packed("zstd", "A" * 10**6)(copy)  # 300 MB in memory
    reseal(copy)

    for check in (open_index, verify_index):
        with pytest.raises(IndexDamagedError, match="compressed"):
            check(copy)


def test_a_file_of_holes_is_not_read(copy: Path) -> None:
    sums = read_manifest(copy).checksums
    of_holes(copy)
    forge(copy, checksums=sums)

    for check in (open_index, verify_index):
        with pytest.raises(IndexDamagedError, match="1,099,511,627,776 bytes, more"):
            check(copy)


def test_a_content_is_checked_once(copy: Path) -> None:
    open_index(copy)

    program = "import sys; from citerec.index.folder import open_index; open_index(sys.argv[1]); print(*sys.modules)"
    imported = run_python(program, copy).stdout.split()

    assert "citerec.index.folder" in imported
    assert "citerec.index.content" not in imported


# --- models


def test_a_model_of_which_a_byte_was_changed_or_a_file_removed_is_not_opened(
    model: Path,
) -> None:
    flip(model / "config.json", -1)
    with pytest.raises(ModelDamagedError, match=r"config.json is not what was written"):
        find_model(str(model))
    assert model_faults(model) == ["config.json is not what was written"]
    (model / "config.json").unlink()
    with pytest.raises(ModelDamagedError, match=r"config.json is missing"):
        find_model(str(model))


def test_a_model_of_other_software_has_no_checksums_and_a_card_may_be_edited(
    model: Path,
) -> None:
    (model / "README.md").write_text("One")
    seal_model(model)
    (model / "README.md").write_text("Another")
    check_model(model)
    (model / MODEL_SUMS).unlink()
    assert find_model(str(model)).folder == model

    (model / "training.json").write_text("{}")  # of a model that citerec trained
    with pytest.raises(ModelDamagedError, match=r"checksums.json is missing"):
        check_model(model)


@pytest.mark.parametrize(
    ("record", "content"),
    [
        ("model.safetensors.index.json", {"weight_map": {"a": "../x"}}),
        ("tokenizer_config.json", {"vocab_file": "/etc/passwd"}),
    ],
)
def test_a_model_names_no_file_outside_its_folder(
    model: Path, record: str, content: dict[str, object]
) -> None:
    (model.parent / "x").touch()
    (model / record).write_text(json.dumps(content))
    seal_model(model)

    with pytest.raises(ModelError, match="not a path inside the"):
        find_model(str(model))


# --- readers while it is rebuilt


@pytest.mark.parametrize(
    ("record", "content"),
    [
        ("config.json", {"num_hidden_layers": 10**6}),
        ("config.json", {"num_labels": 10**6}),
        ("config.json", {"hidden_size": 4 * 10**6, "intermediate_size": 4 * 10**6}),
        ("config.json", {"vocab_size": 4 * 10**6}),
        ("tokenizer.json", {"model": {"vocab": {"theta": 4 * 10**9}}}),
        ("tokenizer.json", {"added_tokens": [{"id": 4 * 10**9, "content": "q"}]}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"4000000000": {}}}),
        ("added_tokens.json", {"q": 4 * 10**9}),
    ],
)
def test_a_model_of_numbers_that_take_gigabytes_is_not_opened(
    model: Path, record: str, content: dict[str, object]
) -> None:
    (model / "added_tokens.json").write_text("{}")
    stated: dict[str, object] = json.loads((model / record).read_text())
    (model / record).write_text(json.dumps(stated | content))
    seal_model(model)

    with pytest.raises(ModelError, match=r"\d{7,}|\d,\d{3},\d{3}"):
        open_encoder(str(model))


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "special.json"])
def test_a_model_has_no_devices(model: Path, name: str) -> None:
    (model / name).unlink(missing_ok=True)
    (model / name).symlink_to("/dev/zero")

    with pytest.raises(ModelError, match=f"{name} is not a file"):
        find_model(str(model))


def test_readers_see_a_whole_index_all_through_its_rebuilds(
    build: Build, write_jsonl: Write
) -> None:
    def papers(count: int) -> list[dict[str, object]]:
        return [
            {"id": f"p{i}", "title": "T", "citations": ["p0"]} for i in range(count)
        ]

    few, many = (
        write_jsonl(papers(3), "few.jsonl"),
        write_jsonl(papers(500), "many.jsonl"),
    )
    path = build(papers(3)).path
    seen: list[int] = []
    with subprocess.Popen(
        [sys.executable, "-c", REBUILDS, few, many, path]
    ) as rebuilding:
        while rebuilding.poll() is None:
            index = open_index(path)
            count = index.manifest.counts["papers"]
            assert (
                len(index.papers)
                == len(index.id_rank)
                == len(index.graph.indptr) - 1
                == count
            )
            seen.append(verify_index(path).counts["papers"])

    assert rebuilding.returncode == 0
    assert set(seen) == {3, 500}


# --- finding


def an_index(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / NAME).write_text(json.dumps({"format": 1}))
    return folder


def test_a_bare_name_is_an_index_here_or_under_indexes(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    under = an_index(tmp_path / "indexes" / "vis")
    (tmp_path / "vis").mkdir()  # a corpus, say

    assert find_index(Path("vis"), root=tmp_path / "indexes") == under
    (tmp_path / "vis").rmdir()
    an_index(tmp_path / "vis")
    assert find_index(Path("vis"), root=tmp_path / "indexes") == Path("vis")
    with pytest.raises(IndexNotFoundError, match=r"is not an index .*; build one"):
        open_index(find_index(tmp_path / "nothing"))
