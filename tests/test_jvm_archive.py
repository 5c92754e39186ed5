"""The archive that a JVM starts from: made once, never missed, never believed where it does not fit."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from citerec import jvm_archive
from citerec.cache import is_private
from citerec.java import find_jar, find_java

SEARCH = """
import sys
from pathlib import Path
from citerec.config import Bm25Config
from citerec.index.bm25 import Bm25Builder
from citerec.java import java_class, start_jvm
from citerec.retrieve.archive import PAPERS, QUERY
from citerec.retrieve.lucene import Lucene

start_jvm(quick=True)
folder = Path(sys.argv[1])
builder = Bm25Builder(folder, threads=1)
builder.add(PAPERS)
builder.close()
lucene = Lucene(folder, Bm25Config())
documents, scores = lucene.top(lucene.bag(QUERY), 5, exhaustive=False)
mapped = Path("/proc/self/maps").read_text().splitlines()
archives = {line.split()[-1] for line in mapped if ".jsa" in line}
print(documents.tolist(), [f"{score:.4f}" for score in scores], *archives)
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is mapped")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder that holds an archive; tests must not change it."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        assert jvm_archive.make(find_java().home, find_jar())
    yield cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def file_in(cache: Path) -> Path:
    [file] = cache.glob("citerec/jvm/*.jsa")
    return file


def search(cache: Path, tmp_path: Path) -> str:
    """Search in a process of its own; it must not say a word."""
    child = subprocess.run(
        [sys.executable, "-c", SEARCH, str(tmp_path / "bm25")],
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout.strip()


@LINUX
def test_a_search_from_the_archive_finds_what_one_without_finds(made: Path, tmp_path: Path) -> None:
    plain = search(tmp_path / "empty", tmp_path / "one")
    quick = search(made, tmp_path / "two")

    assert ".jsa" not in plain
    assert quick == f"{plain} {file_in(made)}"


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def with_a_flipped_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def with_another_header(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[:4096] = b"\xff" * 4096
    file.write_bytes(content)


def that_anyone_may_write(file: Path) -> None:
    file.chmod(0o666)


def that_is_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@LINUX
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(cut_in_half, id="cut_in_half"),
        pytest.param(that_anyone_may_write, id="that_anyone_may_write"),
        pytest.param(emptied, id="emptied", marks=pytest.mark.slow),
        pytest.param(with_a_flipped_byte, id="with_a_flipped_byte", marks=pytest.mark.slow),
        pytest.param(with_another_header, id="with_another_header", marks=pytest.mark.slow),
        pytest.param(that_is_a_folder, id="that_is_a_folder", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_archive_is_passed_over_without_a_word(
    made: Path, tmp_path: Path, damage: object
) -> None:
    assert callable(damage)
    copy = Path(shutil.copytree(made, tmp_path / "cache"))
    damage(file_in(copy))

    found = search(copy, tmp_path)

    assert found.startswith("[") and ".jsa" not in found


def test_another_java_or_jar_has_another_archive(cache: Path, tmp_path: Path) -> None:
    home, jar = tmp_path / "java", tmp_path / "anserini.jar"
    (home / "lib" / "server").mkdir(parents=True)
    for file in (jar, home / "release", home / "lib" / "server" / "libjvm.so"):
        file.write_text("one")
    first = jvm_archive.archive_file(home, jar)

    (home / "release").write_text("another")
    second = jvm_archive.archive_file(home, jar)
    jar.write_text("another")
    third = jvm_archive.archive_file(home, jar)
    jar.unlink()

    assert first and first.is_relative_to(cache)
    assert len({first, second, third}) == 3
    assert jvm_archive.archive_file(home, jar) is None


def test_a_cache_folder_that_the_jvm_would_take_for_two_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"a{os.pathsep}b"))

    assert jvm_archive.archive_file(find_java().home, find_jar()) is None


def test_where_the_cache_cannot_be_written_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    jvm_archive.make_later(find_java().home, find_jar())

    assert not jvm_archive.make(find_java().home, find_jar())
    assert [*jvm_archive.options(find_java().home, find_jar())] == []
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_java_that_cannot_make_one_is_tried_once(cache: Path, tmp_path: Path) -> None:
    home, jar = tmp_path / "java", tmp_path / "anserini.jar"
    for file in (jar, home / "release", home / "bin" / "java"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    assert not jvm_archive.make(home, jar)
    jvm_archive.make_later(home, jar)
    [mark] = cache.rglob("*.making")
    first = mark.stat().st_mtime_ns
    jvm_archive.make_later(home, jar)

    assert mark.stat().st_mtime_ns == first
    assert not [*cache.rglob("*.jsa")]


def test_old_archives_are_removed(made: Path, tmp_path: Path) -> None:
    newest = tmp_path / "lucene-new.jsa"
    for number in range(6):
        file = tmp_path / f"lucene-{number}.jsa"
        file.touch()
        os.utime(file, (number, number))
    newest.touch()

    jvm_archive.remove_old(newest)

    assert sorted(file.name for file in tmp_path.glob("*.jsa")) == [
        *("lucene-3.jsa", "lucene-4.jsa", "lucene-5.jsa", "lucene-new.jsa")
    ]


def test_the_first_command_has_an_archive_made_for_the_next(cache: Path, tmp_path: Path) -> None:
    program = (
        "from citerec.cli import main; import sys;"
        f"main(['index', sys.argv[1], '--index', {str(tmp_path / 'index')!r}, '--encoder', 'none', '--quiet'])"
    )
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "title": "Networks"}\n')

    subprocess.run([sys.executable, "-c", program, str(corpus)], check=True, timeout=120)
    deadline = time.monotonic() + 120
    while not [*cache.glob("citerec/jvm/*.jsa")] and time.monotonic() < deadline:
        time.sleep(0.2)

    assert is_private(file_in(cache))
