"""Writes papers as canonical JSON lines, packed by the suffix of the file; the file appears complete or not at all."""

import gzip
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import orjson

from citerec.atomic import destination, replacing
from citerec.errors import BadInputError, ConfigError, OutputError, writing
from citerec.inputs import zstd
from citerec.types import Paper

LEVEL = 6  # of gzip
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def check_target(output: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse an output file that cannot be written, before the work.

    Raises:
        ConfigError: If its name has another suffix, it exists and `force` is not set, or it is one of the inputs.
        OutputError: If it is a folder, or its folder does not exist.
    """
    if not output.name.endswith(SUFFIXES):
        raise ConfigError(
            f"{output} must be named .jsonl, .jsonl.gz or .jsonl.zst; it was not made"
        )
    if output.is_dir():
        raise OutputError(f"cannot write {output}: it is a folder; name a file")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: there is no folder {output.parent}")
    if output.exists() and not output.is_file():
        raise OutputError(f"cannot write {output}: it is no ordinary file")
    target = destination(output)
    for path in inputs:
        if not path.exists():
            raise BadInputError(path, "no such file or folder; name a corpus file or folder")
        if output.exists() and path.resolve() in {target, *target.parents}:
            raise ConfigError(f"{output} is a part of the corpus {path}; name another file")
    if output.exists() and not force:
        raise ConfigError(f"{output} already exists; replace it with --force, or name another file")


@contextmanager
def write_corpus(output: Path) -> Generator[Callable[[Paper], None]]:
    """Yield a function that writes one paper; the file replaces `output` when the block ends without an error.

    Raises:
        OutputError: If it cannot be written.
    """
    with replacing(destination(output), output) as temporary, ExitStack() as stack:
        with writing(output):
            sink = stack.enter_context(_opened(temporary, output.suffix))

        def write(paper: Paper) -> None:
            with writing(output):
                sink.write(canonical_line(paper))

        yield write
        with writing(output):
            stack.close()  # the last block is written, before the file is moved


@contextmanager
def _opened(temporary: Path, suffix: str) -> Generator[IO[bytes]]:
    with temporary.open("wb") as raw:
        if suffix == ".gz":
            with gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed:
                yield packed  # pyright: ignore[reportReturnType]
        elif suffix == ".zst":
            with zstd.open(raw, "wb") as packed:
                yield packed  # pyright: ignore[reportReturnType]
        else:
            yield raw


def canonical_line(paper: Paper) -> bytes:
    """Return a paper as a line of canonical JSON; fields without a value are left out, except the title."""
    fields: dict[str, Any] = asdict(paper)
    kept = {name: value for name, value in fields.items() if value or name == "title"}
    return orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)
