"""What an index says of itself, and how a change of any byte is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from citerec.errors import IndexDamagedError, IndexFormatError, IndexNotFoundError
from citerec.manifest import (
    FORMAT,
    NAME,
    Manifest,
    checksums,
    faults,
    read_manifest,
    write_manifest,
)
from citerec.sums import unexpected

MANIFEST = Manifest(
    name="x",
    created="2026-01-02T03:04:05+00:00",
    citerec="0.1.0",
    corpus={"path": "x.jsonl", "format": "canonical", "files": 1, "sha256": "ab"},
    counts={"papers": 2},
    settings={"encoder": None},
    checksums={},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two files and the manifest that knows them."""
    (tmp_path / "a").write_text("A")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b").write_text("")
    write_manifest(tmp_path, replace(MANIFEST, checksums=checksums(tmp_path)))
    return tmp_path


def test_a_manifest_comes_back(folder: Path) -> None:
    manifest = read_manifest(folder)

    assert manifest == replace(MANIFEST, checksums=checksums(folder))
    assert manifest.format == FORMAT == 1


def test_the_checksums_cover_every_file_but_the_manifest(folder: Path) -> None:
    assert checksums(folder) == {
        # printf A | sha256sum; sha256sum /dev/null
        "a": "559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd",
        "deep/b": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }


def test_a_whole_folder_has_no_fault(folder: Path) -> None:
    assert faults(folder, read_manifest(folder)) == []


def make_missing(folder: Path) -> None:
    (folder / "a").unlink()


def make_altered(folder: Path) -> None:
    (folder / "a").write_text("B")


def make_longer(folder: Path) -> None:
    (folder / "deep" / "b").write_text(" ")


def make_more(folder: Path) -> None:
    (folder / "deep" / "c").write_text("C")


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (make_missing, "a is missing"),
        (make_altered, "a is not what was written"),
        (make_longer, "deep/b is not what was written"),
        (make_more, "deep/c does not belong to it"),
    ],
)
def test_each_harm_is_a_line(folder: Path, harm: Callable[[Path], None], fault: str) -> None:
    manifest = read_manifest(folder)

    harm(folder)

    assert faults(folder, manifest) == [fault]


def test_every_flipped_bit_of_the_manifest_is_found(folder: Path) -> None:
    written = (folder / NAME).read_bytes()

    for place in range(len(written)):
        flipped = bytearray(written)
        flipped[place] ^= 1 << (place % 8)
        (folder / NAME).write_bytes(flipped)

        with pytest.raises((IndexDamagedError, IndexFormatError)):
            read_manifest(folder)


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b"{}", b'{"format": 1}', b"\xff"])
def test_what_is_no_manifest_is_damaged(folder: Path, content: bytes) -> None:
    (folder / NAME).write_bytes(content)

    with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
        read_manifest(folder)


def test_another_spelling_of_the_same_content_is_not_what_was_written(folder: Path) -> None:
    content = orjson.loads((folder / NAME).read_bytes())
    (folder / NAME).write_bytes(orjson.dumps(content))

    with pytest.raises(IndexDamagedError, match="is not what was written"):
        read_manifest(folder)


@pytest.mark.parametrize("found", [0, 2, "1", None])
def test_another_format_says_how_to_rebuild(folder: Path, found: object) -> None:
    content = orjson.loads((folder / NAME).read_bytes())
    (folder / NAME).write_bytes(orjson.dumps(content | {"format": found}))

    with pytest.raises(IndexFormatError, match=f"format {found!r}, this citerec reads format 1"):
        read_manifest(folder)


def test_a_folder_without_a_manifest_is_no_index(folder: Path) -> None:
    for path in (folder / "missing", folder / "deep", folder / "a"):
        with pytest.raises(IndexNotFoundError, match="is not an index"):
            read_manifest(path)


def test_a_manifest_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()

    with pytest.raises(IndexNotFoundError, match="cannot be read: it is not a file"):
        read_manifest(tmp_path)


def test_a_folder_that_a_rebuild_removed_meanwhile_has_no_unexpected_files(tmp_path: Path) -> None:
    assert unexpected(tmp_path / "removed", {"weights.npy"}) == []
