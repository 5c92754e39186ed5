"""Takes one member out of a zip or tar archive, whole or not at all.

Only the member that is asked for is written, under a name of our own: no path of the archive is ever followed.
"""

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from citerec.atomic import replacing
from citerec.errors import BadInputError, writing
from citerec.lab.datasets.download import check_space

CHUNK = 2**20
ENCRYPTED = 1  # the flag of a member of a zip
BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, NotImplementedError)


def take_member(
    archive: Path, member: str, target: Path, progress: Callable[[int, int], None]
) -> None:
    """Write a member of an archive to `target`.

    Args:
        archive: A zip or tar file, the latter packed with gzip, bzip2, xz or not.
        member: The path in it; a file of that name in another folder of it will do where there is only one.
        target: The file to make.
        progress: Receives how many bytes are written, of how many.

    Raises:
        BadInputError: If the archive is damaged, or holds no such file.
        OutputError: If the disk is too small, or the file cannot be written.
    """
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary, _opened(archive, member) as (stream, size):
        check_space(target.parent, size, what=target.name)
        _copy(archive, stream, temporary, lambda done: progress(done, size))


def _copy(archive: Path, stream: IO[bytes], part: Path, progress: Callable[[int], None]) -> None:
    done = 0
    with writing(part), part.open("wb") as sink:  # its close may fail, too: on a full disk
        while chunk := _read(archive, stream):
            sink.write(chunk)
            done += len(chunk)
            progress(done)


def _read(archive: Path, stream: IO[bytes]) -> bytes:
    with _intact(archive):
        return stream.read(CHUNK)


@contextmanager
def _opened(archive: Path, member: str) -> Generator[tuple[IO[bytes], int]]:
    """Open a member of an archive; give its stream and its size in bytes."""
    if zipfile.is_zipfile(archive):
        with _intact(archive), zipfile.ZipFile(archive) as packed:
            name = _found(
                archive, member, [i.filename for i in packed.infolist() if not i.is_dir()]
            )
            if packed.getinfo(name).flag_bits & ENCRYPTED:
                raise BadInputError(archive, f"{name} is encrypted; expected it as it is published")
            with packed.open(name) as stream:
                yield stream, packed.getinfo(name).file_size
        return
    with _intact(archive), tarfile.open(archive, "r|*") as packed:
        for entry in packed:  # one pass: to list a tar of many GB would be to unpack it
            if entry.isfile() and (entry.name.removeprefix("./") == member):
                safe = tarfile.data_filter(entry, str(archive.parent))
                stream = packed.extractfile(safe)
                assert stream is not None
                yield stream, entry.size
                return
    raise BadInputError(archive, f"holds no {member}; expected the archive as it is published")


def _found(archive: Path, member: str, names: list[str]) -> str:
    same = [name for name in names if name == member]
    same = same or [name for name in names if Path(name).name == Path(member).name]
    if len(same) == 1:
        return same[0]
    shown = ", ".join(names[:5]) or "nothing"
    raise BadInputError(archive, f"holds {shown}, but no {member}; expected it as it is published")


@contextmanager
def _intact(archive: Path) -> Generator[None]:
    """Turn what a damaged archive raises into one line."""
    try:
        yield
    except BadInputError:
        raise
    except BROKEN as error:
        said = " ".join(str(error).split())[:120]
        raise BadInputError(
            archive, f"is cut off or damaged ({said}); remove it and fetch it again"
        ) from error


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file at `target` too: as a link where the disk is the same, else as a copy.

    Raises:
        OutputError: If the disk is too small, or the file cannot be written.
    """
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source.resolve())  # a link to a link would be another link
        except OSError:  # another disk, or a file of somebody else
            check_space(target.parent, source.stat().st_size, what=target.name)
            shutil.copyfile(source, target)
