"""What is kept in the user's cache folder: whole, private, and believed only where nothing changed."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from citerec.cache import CHECKSUMS, LARGE, cache_folder, is_private, sha256_of_files, write_cached


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder()
    assert folder
    return folder


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A large file that was written a while ago, as far as the clock says."""
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"1" * LARGE)
    later(monkeypatch)
    return file


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time() + 60
    monkeypatch.setattr("citerec.cache.time.time", lambda: now)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sums(cache: Path) -> list[str]:
    return [file.read_text() for file in (cache / CHECKSUMS).glob("*")]


def test_the_sum_of_a_large_file_is_kept(cache: Path, weights: Path) -> None:
    first = sha256_of_files([weights])
    [kept] = (cache / CHECKSUMS).iterdir()
    kept.write_text("0" * 64)  # to see that it is read

    assert first == sha256(b"1" * LARGE)
    assert sha256_of_files([weights]) == "0" * 64


def test_a_file_that_changed_is_read_again_whatever_its_time_of_writing_says(
    cache: Path, weights: Path
) -> None:
    sha256_of_files([weights])
    written = weights.stat().st_mtime_ns

    with weights.open("r+b") as stream:  # the same place on the disk, the same size
        stream.write(b"2")
    os.utime(weights, ns=(written, written))

    assert sha256_of_files([weights]) == sha256(b"2" + b"1" * (LARGE - 1))


def test_the_sum_of_a_file_that_was_written_just_now_is_not_kept(
    cache: Path, tmp_path: Path
) -> None:
    file = tmp_path / "fresh"
    file.write_bytes(b"1" * LARGE)

    sha256_of_files([file])

    assert sums(cache) == []


def test_small_files_are_read_each_time(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "small"
    file.write_bytes(b"1")

    assert sha256_of_files([file, file]) == sha256(b"11")
    assert not cache.exists()


@pytest.mark.parametrize("content", ["", "0" * 63, "g" * 64, "é"])
def test_a_sum_that_is_none_is_made_again(cache: Path, weights: Path, content: str) -> None:
    sha256_of_files([weights])
    [kept] = (cache / CHECKSUMS).iterdir()
    kept.write_text(content)

    assert sha256_of_files([weights]) == sha256(b"1" * LARGE)
    assert sums(cache) == [sha256(b"1" * LARGE)]


def test_what_others_may_write_is_not_believed(cache: Path, weights: Path) -> None:
    sha256_of_files([weights])
    [kept] = (cache / CHECKSUMS).iterdir()
    kept.write_text("0" * 64)
    kept.chmod(0o666)

    assert not is_private(kept)
    assert sha256_of_files([weights]) == sha256(b"1" * LARGE)


def test_a_cache_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    write_cached(tmp_path / "file" / "citerec" / "note", b"1")

    assert sha256_of_files([weights]) == sha256(b"1" * LARGE)
    assert (tmp_path / "file").is_file()
