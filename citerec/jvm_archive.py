"""An archive of Lucene's classes, with which a JVM starts in a third of the time (class data sharing).

Archives are in the user's cache folder, one per Java and jar. A command without an archive runs without it, and starts
a background process that creates it. The JVM validates the archive, and loads classes from the jar if the archive is
damaged or was created for another Java or jar.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from citerec.atomic import replacing
from citerec.cache import cache_folder, is_private, private_folder
from citerec.errors import OutputError

FOLDER = "jvm"
RETRY_SECONDS = 3600  # seconds after a process that may still run, or failed
KEPT = 4  # archives of 25 MB each; older ones are removed when another one is created
LIST_SECONDS, DUMP_SECONDS = 120, 120
SPEC = "2"  # to be changed when archives are created in another way
LIST_CLASSES = "from citerec.retrieve.archive import list_classes; list_classes({file!r})"
MAKE = "from citerec.jvm_archive import make; make({home!r}, {jar!r})"


def options(home: Path, jar: Path) -> Iterator[str]:
    """Yield the JVM options that use the archive, if there is one."""
    file = archive_file(home, jar)
    if file and is_private(file):
        # "auto": an archive that does not match is ignored; a damaged one is detected by its checksums.
        yield from (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", "-XX:+VerifySharedSpaces")


def archive_file(home: Path, jar: Path) -> Path | None:
    """Return the path of the archive of a Java and a jar, whether it exists or not; None if it is not possible.

    Args:
        home: The folder of the Java.
        jar: Anserini's jar.
    """
    cache = cache_folder()
    if cache is None or os.pathsep in str(cache):  # the JVM would read two paths
        return None
    home, jar = home.resolve(), jar.resolve()
    digest = hashlib.sha256(SPEC.encode())
    for file in (jar, home / "release", *sorted(home.glob("lib/server/*jvm.*"))):
        try:
            status = file.stat()
        except OSError:
            return None
        digest.update(f"\0{file}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="replace"))
    return cache / FOLDER / f"lucene-{digest.hexdigest()[:20]}.jsa"


def make_later(home: Path, jar: Path) -> None:
    """Start a process that creates the archive, unless it exists, cannot be written, or was tried in the last hour."""
    file = archive_file(home, jar)
    if file is None or file.exists() or not (_launcher(home) and private_folder(file.parent)):
        return
    marker_file = file.with_suffix(".making")
    with suppress(OSError):
        if time.time() - marker_file.stat().st_mtime < RETRY_SECONDS:
            return
    with suppress(OSError):
        marker_file.touch(mode=0o600)
        process = subprocess.Popen(
            _python(MAKE.format(home=str(home), jar=str(jar))),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=file.parent,
            env=_environment(),
            start_new_session=True,
        )
        process.returncode = 0  # the process is not waited for, and Python would warn of that


def make(home: str | Path, jar: str | Path) -> bool:
    """Create the archive of a Java and a jar: list the classes that searches load, then let the JVM write them.

    Several processes may create the same archive; one of them is kept, complete.

    Returns:
        Whether the archive exists now.
    """
    home, jar = Path(home), Path(jar).resolve()
    file, java = archive_file(home, jar), _launcher(home)
    if file is None or java is None or not private_folder(file.parent):
        return False
    with suppress(OSError, OutputError, subprocess.SubprocessError):
        with (
            TemporaryDirectory(dir=file.parent, prefix=".making-") as folder,
            replacing(file) as archive,
        ):
            class_list = Path(folder, "classes.txt")
            program = _python(LIST_CLASSES.format(file=str(class_list)))
            environment = _environment() | {"CITEREC_JAVA_HOME": str(home)}
            _run(program, environment, LIST_SECONDS)
            files = f"-XX:SharedClassListFile={class_list}", f"-XX:SharedArchiveFile={archive}"
            dump = (java, "-Xshare:dump", *files, "-XX:+UseSerialGC", "-Xlog:disable", "-cp", jar)
            _run([str(part) for part in dump], environment, DUMP_SECONDS)
            archive.chmod(0o600)
        remove_old(file)
        file.with_suffix(".making").unlink(missing_ok=True)
    return is_private(file)


def remove_old(newest: Path) -> None:
    """Remove all archives except the newest few; a JVM that has one open can still read it."""
    others = [file for file in newest.parent.glob("lucene-*.jsa") if file != newest]
    for file in sorted(others, key=lambda file: -file.stat().st_mtime)[KEPT - 1 :]:
        file.unlink(missing_ok=True)


def _run(command: list[str], environment: dict[str, str], seconds: float) -> None:
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        timeout=seconds,
        check=True,
    )


def _launcher(home: Path) -> Path | None:
    """Return the program that starts a JVM; None for a Java that has none."""
    files = (home / "bin" / "java", home / "bin" / "java.exe")
    return next((file for file in files if file.is_file()), None)


def _python(program: str) -> list[str]:
    return [sys.executable, "-P", "-c", program]  # -P: no imports from the working folder


def _environment() -> dict[str, str]:
    """Return the environment of a child process: the same import path, without options for Java."""
    dropped = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
