"""Vectors for an index: what an interrupted run saved, models that are carried along."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.corpora import SAMPLE
from support.tiny import tiny_bert
from support.types import Build, MonkeyPatch, Write

from citerec.build import vectors as embed
from citerec.build.index import BuildConfig, build_index
from citerec.build.vectors import (
    EmbedConfig,
    embed_anew,
)
from citerec.cli import run
from citerec.encode.encoder import open_encoder
from citerec.encode.spec import EncoderSpec
from citerec.errors import IndexDamagedError, IndexNotFoundError, OutputError
from citerec.files.checksums import seal_model
from citerec.index.folder import (
    has_saved_vectors,
    open_index,
    saved_vectors,
    verify_index,
)
from citerec.index.vectors import vectors_of

PAPERS = [
    {"id": f"p{i}", "title": f"paper on term {i}", "year": 2000 + i} for i in range(10)
]


@pytest.fixture
def tiny(tiny_model: str) -> str:
    return tiny_model


def dense_sums(folder: Path) -> dict[str, str]:
    sums = open_index(folder).manifest.checksums
    return {name: s for name, s in sums.items() if name.startswith("dense/")}


def test_encode_gives_an_index_vectors_and_leaves_all_else(
    build: Build, tiny: str
) -> None:
    bare = build(PAPERS)
    before = dict(bare.manifest.checksums)

    embed_anew(bare.path, open_encoder(tiny), EmbedConfig())

    index = open_index(bare.path)
    after = dict(index.manifest.checksums)
    assert {name: after[name] for name in before} == before
    assert [name for name in after if name not in before] == ["dense/vectors.faiss"]
    verify_index(index.path)


class Broken(Exception):
    """The power went."""


def interrupt(index: Path, model: str, papers: int) -> None:
    """Encode an index until some papers are encoded."""

    def progress(what: str, done: int, total: int) -> None:
        if what == "encoding" and done >= papers:
            raise Broken

    with pytest.raises(Broken):
        embed_anew(index, open_encoder(model), EmbedConfig(), progress)


def resume(index: Path, model: str) -> list[int]:
    """Encode an index with the vectors that are saved; return the progress."""
    seen: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        if what == "encoding":
            seen.append(done)

    embed_anew(index, open_encoder(model), EmbedConfig(resume=True), progress)
    return seen


@pytest.fixture
def small_shards(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "SHARD", 3)


def test_auto_keeps_the_encoder_of_an_index_that_is_replaced(
    build: Build, tiny: str
) -> None:
    build(PAPERS, encoder=tiny)

    again = build(PAPERS, encoder="auto", force=True)

    assert again.encoder.source == tiny


def test_an_interrupted_first_shard_leaves_nothing(build: Build, tiny: str) -> None:
    index = build(PAPERS)

    interrupt(index.path, tiny, 0)

    assert not [*index.path.parent.glob(".*")]


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("lost", [0, 8])
def test_an_interrupted_run_leaves_the_index_and_is_continued_after_its_last_whole_shard(
    build: Build, tiny: str, lost: int
) -> None:
    index = build(PAPERS)
    embed_anew(index.path, open_encoder(tiny), EmbedConfig())
    before, expected = open_index(index.path).manifest, dense_sums(index.path)

    interrupt(index.path, tiny, 8)  # in the third shard
    assert verify_index(index.path) == before
    hidden = [path for path in index.path.parent.iterdir() if path.name.startswith(".")]
    assert hidden == [saved_vectors(index.path)]
    [saved] = saved_vectors(index.path).iterdir()
    os.truncate(saved, saved.stat().st_size - lost)  # as a kill may
    seen = resume(index.path, tiny)

    # progress comes from the encoder, and after each shard
    assert seen == ([0, 3, 3, 6, 6, 7, 7] if lost else [0, 3, 3, 4, 4])
    assert dense_sums(index.path) == expected
    assert not saved_vectors(index.path).exists()
    verify_index(index.path)


@pytest.mark.usefixtures("small_shards")
def test_saved_vectors_of_other_texts_and_encoders_are_not_used(
    build: Build, tiny: str, tmp_path: Path
) -> None:
    index = build(PAPERS)
    interrupt(index.path, tiny, 8)
    other = str(tiny_bert(tmp_path / "other", seed=1, spec=EncoderSpec(max_tokens=64)))

    assert resume(index.path, other)[-1] == 10
    resumed = dense_sums(index.path)
    embed_anew(index.path, open_encoder(other), EmbedConfig())
    assert dense_sums(index.path) == resumed

    interrupt(index.path, tiny, 8)
    changed = [*PAPERS[:2], *({**paper, "title": "new"} for paper in PAPERS[2:4])]
    # 2 are saved, 2 have one text: the batches, and with them the last bits, are others
    build(changed, encoder=tiny, force=True, resume=True)
    kept = vectors_of(open_index(index.path)).vectors(np.arange(4))
    build(changed, encoder=tiny, force=True)
    anew = vectors_of(open_index(index.path)).vectors(np.arange(4))
    np.testing.assert_allclose(kept, anew, atol=1e-5)


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("whole", [True, False])
def test_saved_vectors_behind_a_link_are_left_alone(
    build: Build, tiny: str, tmp_path: Path, whole: bool
) -> None:
    index, home = build(PAPERS), tmp_path / "home"
    interrupt(index.path, tiny, 8)
    saved_vectors(index.path).rename(home)
    [saved] = home.iterdir()
    saved.write_bytes(b"notes")  # less than a shard: it would be cut
    if whole:
        saved_vectors(index.path).symlink_to(home)
    else:
        saved_vectors(index.path).mkdir()
        (saved_vectors(index.path) / saved.name).symlink_to(saved)

    with pytest.raises(OutputError, match="is a link"):
        resume(index.path, tiny)

    assert saved.read_bytes() == b"notes"


def test_models_trained_on_an_index_outlive_its_rebuild_and_are_verified(
    build: Build, tiny: str, write_jsonl: Write
) -> None:
    index = build(PAPERS)
    model = index.models / "ranker"
    model.mkdir(parents=True)
    (model / "weights").write_text("learned")
    seal_model(model)

    build_index(write_jsonl(PAPERS[:5]), index.path, BuildConfig(force=True))
    embed_anew(index.path, open_encoder(tiny), EmbedConfig())

    assert (index.models / "ranker" / "weights").read_text() == "learned"
    verify_index(index.path)
    (index.models / "ranker" / "weights").write_text("learnt!")
    with pytest.raises(
        IndexDamagedError, match="models/ranker/weights is not what was written"
    ):
        verify_index(index.path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill so")
def test_a_killed_build_resumes_to_the_checksum_of_an_unbroken_one(
    tiny: str, tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    command = [
        "index",
        str(SAMPLE),
        "--encoder",
        tiny,
        "--index",
        str(tmp_path / "killed"),
    ]
    program = "import sys, citerec.build.vectors as v; v.SHARD = 16; from citerec import cli; cli.run(sys.argv[1:])"
    monkeypatch.setattr(embed, "SHARD", 16)
    build_index(SAMPLE, tmp_path / "unbroken", BuildConfig(encoder=tiny))
    with subprocess.Popen(
        [sys.executable, "-c", program, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not has_saved_vectors(tmp_path / "killed"):
            assert process.poll() is None, "it was done before it could be killed"
            time.sleep(0.005)
        process.kill()
    assert not (tmp_path / "killed").exists()
    with pytest.raises(IndexNotFoundError, match=r"was interrupted: .* --resume$"):
        open_index(tmp_path / "killed")

    assert run([*command, "--resume"]) == 0

    assert dense_sums(tmp_path / "killed") == dense_sums(tmp_path / "unbroken")
    verify_index(tmp_path / "killed")
