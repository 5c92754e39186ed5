"""Vectors for an index: shards that a killed run leaves, models that are carried along."""

import hashlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.corpora import SAMPLE
from support.tiny import tiny_bert

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.embed import EmbedConfig, embed_anew, shard_count, shard_folder
from citerec.encode.encoder import open_encoder
from citerec.encode.spec import EncoderSpec
from citerec.errors import IndexLockedError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.io import locked, seal_model

Build = Callable[..., IndexFolder]
PAPERS = [{"id": f"p{i}", "title": f"paper on term {i}", "year": 2000 + i} for i in range(10)]


@pytest.fixture
def tiny(tiny_model: str) -> str:
    return tiny_model


def dense_sums(folder: Path) -> dict[str, str]:
    sums = open_index(folder).manifest.checksums
    return {name: s for name, s in sums.items() if name.startswith("dense/")}


def test_an_index_is_built_with_the_vectors_of_its_papers(build: Build, tiny: str) -> None:
    index = build(PAPERS, encoder=tiny)

    settings = index.manifest.settings
    assert index.is_embedded
    assert settings["encoder"]["source"] == tiny
    assert (settings["dense"]["papers"], settings["dense"]["dim"]) == (10, 32)
    assert settings["dense"]["kind"] == "exact"
    verify_index(index.path)
    assert not shard_folder(index.path).exists()


def test_without_an_encoder_there_are_no_vectors(build: Build) -> None:
    index = build(PAPERS)

    assert not index.is_embedded
    assert not index.dense.exists()


def test_encode_gives_an_index_vectors_and_leaves_all_else(build: Build, tiny: str) -> None:
    bare = build(PAPERS)
    before = dict(bare.manifest.checksums)

    embed_anew(bare.path, open_encoder(tiny), EmbedConfig())

    index = open_index(bare.path)
    after = dict(index.manifest.checksums)
    assert {name: after[name] for name in before} == before
    assert [name for name in after if name not in before] == ["dense/vectors.faiss"]
    verify_index(index.path)


def test_another_encoder_replaces_the_vectors(build: Build, tiny: str, tmp_path: Path) -> None:
    index = build(PAPERS, encoder=tiny)
    first = dense_sums(index.path)
    other = tiny_bert(tmp_path / "other", seed=1, spec=EncoderSpec(max_tokens=64))

    embed_anew(index.path, open_encoder(str(other)), EmbedConfig())

    assert dense_sums(index.path).keys() == first.keys()
    assert dense_sums(index.path) != first
    assert open_index(index.path).manifest.settings["dense"]["similarity"] == "l2"
    verify_index(index.path)


class Broken(Exception):
    """The power went."""


def break_off_at(papers: int) -> Callable[[str, int, int], None]:
    def progress(what: str, done: int, total: int) -> None:
        if what == "encoding" and done >= papers:
            raise Broken

    return progress


def test_what_was_broken_off_goes_on_with_the_shards_that_are_whole(
    build: Build, tiny: str
) -> None:
    index = build(PAPERS)
    encoder, of_three = open_encoder(tiny), EmbedConfig(shard=3)
    embed_anew(index.path, encoder, of_three)
    unbroken = dense_sums(index.path)
    with pytest.raises(Broken):
        embed_anew(index.path, encoder, of_three, break_off_at(8))  # in the third shard
    assert shard_count(index.path) == 2
    told: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        if what == "encoding":
            told.append(done)

    embed_anew(index.path, encoder, EmbedConfig(shard=3, resume=True), progress)

    # a shard that is encoded is told of by its batch and as a whole, one that was kept as a whole only
    assert told == [0, 3, 6, 9, 9, 10, 10]
    assert dense_sums(index.path) == unbroken
    assert not shard_folder(index.path).exists()
    verify_index(index.path)


def test_a_broken_off_run_leaves_the_index_as_it_was(build: Build, tiny: str) -> None:
    index = build(PAPERS)
    before = index.manifest

    with pytest.raises(Broken):
        embed_anew(index.path, open_encoder(tiny), EmbedConfig(shard=3), break_off_at(4))

    assert verify_index(index.path) == before
    assert [p.name for p in sorted(index.path.parent.iterdir()) if p.name.startswith(".")] == [
        ".index.encoding"
    ]


def test_shards_of_other_texts_or_of_another_encoder_are_not_taken(
    build: Build, tiny: str, tmp_path: Path
) -> None:
    index = build(PAPERS)
    with pytest.raises(Broken):
        embed_anew(index.path, open_encoder(tiny), EmbedConfig(shard=3), break_off_at(8))
    other = tiny_bert(tmp_path / "other", seed=1, spec=EncoderSpec(max_tokens=64))

    embed_anew(index.path, open_encoder(str(other)), EmbedConfig(shard=3, resume=True))
    resumed = dense_sums(index.path)
    embed_anew(index.path, open_encoder(str(other)), EmbedConfig(shard=3))

    assert dense_sums(index.path) == resumed


def test_a_shard_that_was_cut_short_is_made_again(build: Build, tiny: str) -> None:
    index = build(PAPERS)
    encoder = open_encoder(tiny)
    embed_anew(index.path, encoder, EmbedConfig(shard=3))
    unbroken = dense_sums(index.path)
    with pytest.raises(Broken):
        embed_anew(index.path, encoder, EmbedConfig(shard=3), break_off_at(8))
    [first, *_] = sorted(shard_folder(index.path).glob("*.npy"))
    first.write_bytes(first.read_bytes()[:-8])

    embed_anew(index.path, encoder, EmbedConfig(shard=3, resume=True))

    assert dense_sums(index.path) == unbroken


def test_without_resume_the_work_begins_anew(build: Build, tiny: str) -> None:
    index = build(PAPERS)
    encoder = open_encoder(tiny)
    with pytest.raises(Broken):
        embed_anew(index.path, encoder, EmbedConfig(shard=3), break_off_at(8))
    for shard in shard_folder(index.path).glob("*.npy"):
        vectors = np.load(shard)
        np.save(shard, vectors[:, ::-1].copy())  # of the right shape, and wrong

    embed_anew(index.path, encoder, EmbedConfig(shard=3))

    kept = dense_sums(index.path)
    embed_anew(index.path, encoder, EmbedConfig(shard=3))
    assert dense_sums(index.path) == kept


def test_two_processes_do_not_embed_for_one_index_at_once(build: Build, tiny: str) -> None:
    index = build(PAPERS)

    with locked(index.path), pytest.raises(IndexLockedError):
        embed_anew(index.path, open_encoder(tiny), EmbedConfig())


def test_models_trained_on_an_index_outlive_its_rebuild_and_are_verified(
    build: Build, tiny: str, write_jsonl: Callable[..., Path]
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


def test_a_flipped_byte_in_a_model_is_found(build: Build) -> None:
    index = build(PAPERS)
    model = index.models / "ranker"
    model.mkdir(parents=True)
    (model / "weights").write_text("learned")
    seal_model(model)
    (model / "weights").write_text("learnt!")

    with pytest.raises(Exception, match="models/ranker/weights is not what was written"):
        verify_index(index.path)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill so")
def test_a_killed_build_resumes_to_the_checksum_of_an_unbroken_one(
    tiny: str, tmp_path: Path
) -> None:
    command = ["index", str(SAMPLE), "--encoder", tiny, "--shard", "16"]
    command += ["--index", str(tmp_path / "killed")]
    build_index(SAMPLE, tmp_path / "unbroken", BuildConfig(encoder=tiny, shard=16))
    with subprocess.Popen(
        [Path(sys.executable).parent / "citerec", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while shard_count(tmp_path / "killed") < 2:
            assert process.poll() is None, "it was done before it could be killed"
            time.sleep(0.005)
        process.kill()
    assert not (tmp_path / "killed").exists()
    left = {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in shards(tmp_path / "killed")}

    assert run([*command, "--resume"]) == 0

    assert len(left) >= 2
    assert dense_sums(tmp_path / "killed") == dense_sums(tmp_path / "unbroken")
    verify_index(tmp_path / "killed")


def shards(target: Path) -> list[Path]:
    return sorted(shard_folder(target).glob("*.npy"))
