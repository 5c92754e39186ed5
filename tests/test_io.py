"""Folders that appear complete or not at all, names and checksums of files, the cache, TOML."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.types import MonkeyPatch

from citerec.errors import BadInputError, OutputError
from citerec.files.atomic import building, locked, refuse_links, replacing
from citerec.files.cache import CACHED_SIZE, cache_folder, is_private, sha256_of_files
from citerec.files.checksums import entries, is_inside, read_record
from citerec.files.reading import decoded, read_toml

KILLED = """
import os, signal, sys
from pathlib import Path
from citerec.files.atomic import building, replacing
with building(Path(sys.argv[1])) as folder, replacing(Path(sys.argv[2])) as file:
    (folder / "half").write_text("new")
    file.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def old(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "content").write_text("old")
    return folder


@pytest.mark.parametrize(
    ("data", "text", "foreign"),
    [
        ("Über €\r\n".encode(), "Über €\n", 0),
        ("\ufeffÜber".encode(), "Über", 0),
        ("Über ".encode() + b"caf\xe9\r\x80", "Über café\n€", 2),
        # no letter of Windows; half of a letter of UTF-8
        (
            b"\x81 \xc3",
            "\ufffd Ã",
            2,
        ),
    ],
)
def test_bytes_that_are_not_utf_8_are_read_as_windows_1252(
    data: bytes, text: str, foreign: int
) -> None:
    assert decoded(data) == (text, foreign)


def test_a_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "new" / "index"

    with building(target) as folder:
        (folder / "content").write_text("new")
        seen_meanwhile = target.exists()

    assert not seen_meanwhile
    assert (target / "content").read_text() == "new"
    assert names(target.parent) == ["index"]


# only Linux swaps two folders
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_folder_is_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    target = old(tmp_path / "index")

    with building(target) as folder:
        (folder / "other").write_text("new")
        seen_meanwhile = names(target)

    assert seen_meanwhile == ["content"]
    assert names(target) == ["other"]
    assert names(tmp_path) == ["index"]


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt])
def test_a_build_that_fails_changes_nothing(
    tmp_path: Path, end: type[BaseException]
) -> None:
    target = old(tmp_path / "index")

    with pytest.raises(end), building(target) as folder:
        (folder / "half").write_text("new")
        raise end

    assert (target / "content").read_text() == "old"
    assert names(tmp_path) == ["index"]


def test_the_next_run_removes_what_killed_ones_left(tmp_path: Path) -> None:
    target, file = old(tmp_path / "in[d]ex*"), tmp_path / "refs.bib"
    for host, process in (("this", os.getppid()), ("elsewhere", 2**22)):
        old(tmp_path / f".in[d]ex*.building-{host}-{process}-0")
    other = old(tmp_path / ".other.building-0")  # of another folder

    with subprocess.Popen([sys.executable, "-c", KILLED, target, file]) as killed:
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie
        after_the_kill = names(tmp_path)
        with building(target) as folder, replacing(file) as temporary:
            (folder / "content").write_text("new")
            temporary.write_text("new")
            with building(target):  # of another thread
                assert folder.exists()

    assert killed.returncode == -signal.SIGKILL
    assert len(after_the_kill) == 4  # the build removed the first two
    assert names(tmp_path) == sorted(["in[d]ex*", "refs.bib", other.name])
    assert (target / "content").read_text() == file.read_text() == "new"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = old(tmp_path / "disk" / "real")
    (tmp_path / "index").symlink_to(real)

    with building(tmp_path / "index") as folder:
        (folder / "content").write_text("new")

    assert (tmp_path / "index").is_symlink()
    assert (real / "content").read_text() == "new"
    assert names(tmp_path / "disk") == ["real"]


@pytest.mark.parametrize("name", ["file/index", "x" * 300, "loop"])
def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("a file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(OutputError, match=name[:4]), building(tmp_path / name):
        pass

    assert names(tmp_path) == ["file", "loop"]


# --- links


@pytest.mark.parametrize("follow", [False, True])
def test_a_link_is_followed_only_if_the_user_named_it(
    tmp_path: Path, follow: bool
) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)

    with replacing(link, follow=follow) as temporary:
        temporary.write_text("new")

    assert (link.read_text(), link.is_symlink()) == ("new", follow)
    assert file.read_text() == ("new" if follow else "old")
    assert names(tmp_path) == ["file", "link"]


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_lock_writes_through_no_link(
    tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    make(file, tmp_path / ".index.lock")

    with suppress(OutputError), locked(tmp_path / "index"):  # of a symbolic link
        pass

    assert (file.read_text(), file.stat().st_nlink) == ("old", 1)


def test_a_folder_that_an_earlier_run_left_has_no_link(tmp_path: Path) -> None:
    folder = old(tmp_path / "folder")
    refuse_links(folder)
    refuse_links(tmp_path / "nothing")

    (folder / "deep").mkdir()
    (folder / "deep" / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "link").symlink_to("/")

    for path, name in ((folder, "folder/deep/link"), (tmp_path / "link", "link")):
        with pytest.raises(OutputError, match=f"{name} is a link"):
            refuse_links(path)


# --- names and kinds


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            None,
            7,
            "..",
            "../x",
            "a/../b",
            "a/..",
            "/etc/passwd",
            "a//b",
            "a/",
            "./a",
            ".",
        ),
        *(
            "a\\b",
            "..\\x",
            "C:x",
            "a:stream",
            "a\0b",
            "a\nb",
            "a\x1b[2J",
            "\u202ea",
            "\ud800",
        ),
        "x" * 1025,
    ],
)
def test_a_path_that_leads_out_of_the_folder_is_no_name(name: object) -> None:
    assert not is_inside(name)
    assert all(
        map(is_inside, ("manifest.json", "bm25/_0.cfs", "a b/Ü.txt", "...a", ".x"))
    )


def test_entries_are_listed_by_kind_and_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_text("")
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")

    assert list(entries(tmp_path)) == [
        ("link", "link"),
        ("pipe", "special"),
        ("sub/b", "file"),
    ]
    with pytest.raises(OSError, match="not a file"):
        read_record(tmp_path / "pipe")


# --- the cache of checksums


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder()
    assert folder
    return folder / "sha256"


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """A large file that was written a minute ago, as far as the clock says."""
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"1" * CACHED_SIZE)
    now = time.time() + 60
    monkeypatch.setattr("citerec.files.cache.time.time", lambda: now)
    return file


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_the_checksum_of_a_large_file_is_cached_until_the_file_changes(
    cache: Path, weights: Path
) -> None:
    first = sha256_of_files([weights])
    [cached] = cache.iterdir()
    cached.write_text("0" * 64)  # to see that it is read
    second = sha256_of_files([weights])
    written = weights.stat().st_mtime_ns
    with weights.open("r+b") as stream:  # the same size, and the same time of writing
        stream.write(b"2")
    os.utime(weights, ns=(written, written))

    assert (first, second) == (sha256(b"1" * CACHED_SIZE), "0" * 64)
    assert sha256_of_files([weights]) == sha256(b"2" + b"1" * (CACHED_SIZE - 1))


def test_checksums_of_small_and_of_fresh_files_are_not_cached(
    cache: Path, tmp_path: Path
) -> None:
    small, fresh = tmp_path / "small", tmp_path / "fresh"
    small.write_bytes(b"1")
    fresh.write_bytes(b"1" * CACHED_SIZE)

    assert sha256_of_files([small, small]) == sha256(b"11")
    assert sha256_of_files([fresh]) == sha256(b"1" * CACHED_SIZE)
    assert not cache.exists()


@pytest.mark.parametrize(("content", "mode"), [("0" * 63, 0o600), ("0" * 64, 0o666)])
def test_a_damaged_checksum_and_one_that_others_may_write_are_not_used(
    cache: Path, weights: Path, content: str, mode: int
) -> None:
    sha256_of_files([weights])
    [cached] = cache.iterdir()
    cached.write_text(content)
    cached.chmod(mode)

    assert is_private(cached) == (mode == 0o600)
    assert sha256_of_files([weights]) == sha256(b"1" * CACHED_SIZE)


# --- TOML


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 3_000 + "]" * 3_000, "a = 2020-13-45", "a = \xff"]
)
def test_what_is_no_toml_is_bad_input(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_bytes(text.encode("latin-1"))

    with pytest.raises(BadInputError, match=r"x\.toml: not TOML"):
        read_toml(tmp_path / "x.toml")
