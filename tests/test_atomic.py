"""Folders that appear whole or not at all, whatever happens to the build."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

from citerec.atomic import building
from citerec.errors import OutputError

HOST = socket.gethostname()
KILLED = """
import os, signal, sys
from pathlib import Path
from citerec.atomic import building
with building(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("new")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def an_old(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "content").write_text("old")
    return folder


def a_dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "new" / "index"

    with building(target) as folder:
        (folder / "content").write_text("new")
        seen_meanwhile = target.exists()

    assert not seen_meanwhile
    assert (target / "content").read_text() == "new"
    assert names(target.parent) == ["index"]


def test_what_was_there_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = an_old(tmp_path / "index")

    with building(target) as folder:
        (folder / "other").write_text("new")
        seen_meanwhile = names(target)

    assert seen_meanwhile == ["content"]
    assert names(target) == ["other"]
    assert names(tmp_path) == ["index"]


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_build_that_ends_badly_leaves_nothing(tmp_path: Path, end: type[BaseException]) -> None:
    with pytest.raises(end), building(tmp_path / "a" / "b" / "index") as folder:
        (folder / "half").write_text("new")
        raise end

    assert names(tmp_path) == []


def test_a_build_that_ends_badly_leaves_what_was_there(tmp_path: Path) -> None:
    target = an_old(tmp_path / "index")

    with pytest.raises(KeyboardInterrupt), building(target):
        raise KeyboardInterrupt

    assert (target / "content").read_text() == "old"
    assert names(tmp_path) == ["index"]


def test_a_killed_build_leaves_what_was_there_and_the_next_one_clears_up(tmp_path: Path) -> None:
    target = an_old(tmp_path / "in[d]ex*")

    killed = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    after_the_kill = names(tmp_path)
    with building(target) as folder:
        (folder / "content").write_text("new")

    assert killed.returncode == -signal.SIGKILL
    assert len(after_the_kill) == 2
    assert names(tmp_path) == ["in[d]ex*"]
    assert (target / "content").read_text() == "new"


def test_an_index_that_a_killed_build_had_put_aside_comes_back(tmp_path: Path) -> None:
    target = tmp_path / "index"
    an_old(tmp_path / f".index.building-{HOST}-{a_dead_pid()}.old")

    with pytest.raises(ValueError, match="no corpus"), building(target):
        raise ValueError("no corpus")

    assert names(tmp_path) == ["index"]
    assert (target / "content").read_text() == "old"


def test_a_leftover_of_our_own_process_id_is_removed(tmp_path: Path) -> None:
    leftover = an_old(tmp_path / f".index.building-{HOST}-{os.getpid()}")  # of another container

    with building(tmp_path / "index") as folder:
        inside = names(folder)

    assert inside == []
    assert not leftover.exists()


def test_the_builds_of_others_are_left_alone(tmp_path: Path) -> None:
    others = [
        f".index.building-{HOST}-{os.getppid()}",  # alive
        f".index.building-elsewhere-{a_dead_pid()}",  # of another machine
        f".other.building-{HOST}-{a_dead_pid()}",  # of another index
        f".index.building-{HOST}-x",
    ]
    for name in others:
        an_old(tmp_path / name)

    with building(tmp_path / "index"):
        pass

    assert names(tmp_path) == sorted([*others, "index"])


def test_two_builds_of_one_index_at_once_do_not_meet(tmp_path: Path) -> None:
    with building(tmp_path / "index") as folder:
        (folder / "content").write_text("ends last")

        with building(tmp_path / "index") as other:
            (other / "content").write_text("ends first")
        seen_meanwhile = (tmp_path / "index" / "content").read_text()

    assert seen_meanwhile == "ends first"
    assert (tmp_path / "index" / "content").read_text() == "ends last"
    assert names(tmp_path) == ["index"]


def test_threads_that_build_one_folder_clear_up_nothing_of_each_other(tmp_path: Path) -> None:
    together, failed = Barrier(4), list[BaseException]()

    def make() -> None:
        try:
            for _ in range(20):
                together.wait(10)
                with building(tmp_path / "new" / "index") as folder:
                    (folder / "content").write_text("new")
        except BaseException as error:
            together.abort()
            failed.append(error)

    threads = [Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert names(tmp_path / "new") == ["index"]


def test_a_number_after_the_process_id_is_known_as_a_leftover_too(tmp_path: Path) -> None:
    dead = an_old(tmp_path / f".index.building-{HOST}-{a_dead_pid()}-7")

    with building(tmp_path / "index"):
        pass

    assert not dead.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps two folders in one step")
def test_at_no_moment_of_a_replacement_is_there_nothing(tmp_path: Path) -> None:
    target = an_old(tmp_path / "index")

    def replace() -> None:
        for _ in range(300):
            with building(target) as folder:
                (folder / "content").write_text("new")

    replacing = Thread(target=replace)
    replacing.start()
    gaps = 0
    while replacing.is_alive():
        gaps += not target.exists()

    assert gaps == 0


def test_a_folder_is_replaced_where_two_cannot_change_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    target = an_old(tmp_path / "index")

    with building(target) as folder:
        (folder / "other").write_text("new")

    assert names(target) == ["other"]
    assert names(tmp_path) == ["index"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = an_old(tmp_path / "disk" / "real")
    (tmp_path / "index").symlink_to(real)

    with building(tmp_path / "index") as folder:
        (folder / "content").write_text("new")

    assert (tmp_path / "index").is_symlink()
    assert (real / "content").read_text() == "new"
    assert names(tmp_path / "disk") == ["real"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("file/index", "Not a directory"),
        ("x" * 300, "has 300 bytes, expected at most 150; name another folder"),
        ("loop", "cannot write"),
    ],
)
def test_what_cannot_be_made_says_why_and_leaves_nothing(
    tmp_path: Path, name: str, fault: str
) -> None:
    (tmp_path / "file").write_text("a file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(OutputError, match=fault), building(tmp_path / name):
        pass

    assert names(tmp_path) == ["file", "loop"]
