"""An archive of Lucene's classes, from which a JVM starts in a third of the time (class data sharing).

It lies in the user's cache folder, one for each Java and jar. A command that finds none works without it, and starts
a process that makes one while nobody waits. The JVM checks what it opens, and loads its classes from the jar where
the archive is damaged or was made for another Java or jar.
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
RETRY_SECONDS = 3600  # after a process that did not make an archive, and that may still run
KEPT = 4  # archives, of 25 MB each; older ones are removed when another one is made
LIST_SECONDS, DUMP_SECONDS = 120, 120
SPEC = "2"  # changes with how an archive is made
LIST_CLASSES = "from citerec.retrieve.archive import list_classes; list_classes({file!r})"
MAKE = "from citerec.jvm_archive import make; make({home!r}, {jar!r})"


def options(home: Path, jar: Path) -> Iterator[str]:
    """Yield the options by which a JVM opens the archive, if there is one."""
    file = archive_file(home, jar)
    if file and is_private(file):
        # "auto": an archive that does not fit is left alone; the check sums find one that is damaged.
        yield from (f"-XX:SharedArchiveFile={file}", "-Xshare:auto", "-XX:+VerifySharedSpaces")


def archive_file(home: Path, jar: Path) -> Path | None:
    """Return where the archive of a Java and a jar lies, made or not; None where there can be none.

    Args:
        home: The folder of the Java.
        jar: Anserini's.
    """
    cache = cache_folder()
    if cache is None or os.pathsep in str(cache):  # which the JVM takes for two files
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
    """Start a process that makes the archive, unless it is there, cannot be written, or was tried of late."""
    file = archive_file(home, jar)
    if file is None or file.exists() or not (_launcher(home) and private_folder(file.parent)):
        return
    mark = file.with_suffix(".making")
    with suppress(OSError):
        if time.time() - mark.stat().st_mtime < RETRY_SECONDS:
            return
    with suppress(OSError):
        mark.touch(mode=0o600)
        maker = subprocess.Popen(
            _python(MAKE.format(home=str(home), jar=str(jar))),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=file.parent,
            env=_environment(),
            start_new_session=True,
        )
        maker.returncode = 0  # nobody waits for it, of which Python would warn


def make(home: str | Path, jar: str | Path) -> bool:
    """Make the archive of a Java and a jar: list the classes that searches load, then let the JVM write them.

    Another process may make the same one: either of them stays, whole.

    Returns:
        Whether it is there now.
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
            listed = Path(folder, "classes.txt")
            program = _python(LIST_CLASSES.format(file=str(listed)))
            environment = _environment() | {"CITEREC_JAVA_HOME": str(home)}
            _run(program, environment, LIST_SECONDS)
            files = f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={archive}"
            dump = (java, "-Xshare:dump", *files, "-XX:+UseSerialGC", "-Xlog:disable", "-cp", jar)
            _run([str(part) for part in dump], environment, DUMP_SECONDS)
            archive.chmod(0o600)
        remove_old(file)
        file.with_suffix(".making").unlink(missing_ok=True)
    return is_private(file)


def remove_old(newest: Path) -> None:
    """Remove all archives but the newest few; one that a JVM has open stays readable to it."""
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
    """Return the program that starts a JVM, which some Javas lack."""
    files = (home / "bin" / "java", home / "bin" / "java.exe")
    return next((file for file in files if file.is_file()), None)


def _python(program: str) -> list[str]:
    return [sys.executable, "-P", "-c", program]  # -P: not from the user's folder


def _environment() -> dict[str, str]:
    """Return the environment of a child, which imports what this process does and no option of Java's reaches."""
    dropped = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
