"""`citerec index`."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, write_lines
from citerec.cli.corpus import count_lines
from citerec.cli.encode import (
    DenseIndexOption,
    DeviceOption,
    DtypeOption,
    EncoderOption,
    RayOption,
    ResumeOption,
    chosen_encoder,
    encoding,
)
from citerec.cli.options import Heap, Quiet, Threads, Verbose
from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import EncodeConfig, Precision
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.build import BuildReport

GENERIC_NAMES = {"corpus", "papers", "data", "part", "documents"}
ALWAYS = ("papers", "citations", "train_queries", "dev_queries", "test_queries")  # even if 0


def index(
    corpus: Annotated[
        Path | None,
        typer.Argument(help="A corpus file, or a folder of shards.", show_default=False),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            help="The folder to create; indexes/<corpus name> by default. For a change, the index; "
            "optional if indexes/ contains only one."
        ),
    ] = None,
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add the papers of the corpus to an index; a paper whose id it has is replaced.",
        ),
    ] = False,
    delete: Annotated[
        Path | None,
        typer.Option(help="Remove the papers of this file from an index: one id a line."),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            help="auto recognises the format by content; or the name of one, such as canonical, bibtex, ris or wos, "
            "or of a reader that a package adds."
        ),
    ] = "auto",
    encoder: EncoderOption = "auto",
    dense_index: DenseIndexOption = DenseKind.AUTO,
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    threads: Threads = 0,
    resume: ResumeOption = False,
    ray: RayOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing index.")] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip invalid records, and unknown ids of --delete.")
    ] = False,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Build an index folder from a corpus, or a new one from an index: add, replace and remove papers."""
    from citerec.build import BuildConfig, build_index, check_inputs, grow_index

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    changes = append or delete is not None
    if changes:
        _check_change(corpus, append=append, other=force or ray is not None)
        target = _changed_index(corpus, index)
        name, warning = (None if encoder in {"auto", "none"} else encoder), None
        _check_kind(target, dense_index)
    else:
        if corpus is None:
            raise ConfigError("name a corpus: citerec index CORPUS (see: citerec index --help)")
        target = index or default_index(corpus)
        check_inputs(corpus, target, force=force)  # before an encoder is downloaded
        name, warning = chosen_encoder(encoder, target, console)
        if name is None and (ray is not None or dense_index is not DenseKind.AUTO):
            raise ConfigError(
                "--ray and --dense-index need vectors, and there is no encoder; name one with --encoder MODEL"
            )
    config = BuildConfig(
        format=format,
        force=force,
        skip_bad=skip_bad,
        heap=heap,
        encoder=name,
        encode=EncodeConfig(device=device, precision=dtype, threads=threads),
        dense=DenseIndexConfig(kind=dense_index, threads=threads),
        resume=resume,
    )
    with (
        encoding(target, ray, console) as elsewhere,
        console.progress(in_bytes="reading") as progress,
    ):
        if changes:
            options: dict[str, Any] = {"progress": progress, "log": console.log}
            report = grow_index(target, config, corpus=corpus, removed=delete, **options)
        else:
            assert corpus
            config = replace(config, elsewhere=elsewhere)
            report = build_index(corpus, target, config, progress, console.log)
    if warning:  # after the build, so that errors of the corpus come first
        console.warn(warning)
    if not quiet:
        write_lines(*summary(report))
    for fault in report.examples:
        console.log(f"left out: {fault}")
    if report.ignored:
        console.detail(f"not read: {', '.join(map(str, report.ignored))}")


def _check_change(corpus: Path | None, *, append: bool, other: bool) -> None:
    if append and corpus is None:
        raise ConfigError("--append needs a corpus: citerec index CORPUS --append")
    if not append and corpus is not None:
        raise ConfigError(f"{corpus} would not be read; add its papers with --append")
    if other:
        raise ConfigError("--force and --ray build an index anew; leave them out to change one")


def _changed_index(corpus: Path | None, index: Path | None) -> Path:
    """Return the index to change: the named one, else indexes/<corpus name> if it exists, else the only one."""
    from citerec.folder import find_index

    named = default_index(corpus) if corpus and index is None else None
    return named if named and named.is_dir() else find_index(index)


def _check_kind(target: Path, kind: DenseKind) -> None:
    """Refuse another kind of vector index than the index has."""
    from citerec.folder import read_manifest

    present = (read_manifest(target).settings.get("dense") or {}).get("kind")
    if kind is not DenseKind.AUTO and kind != present:
        raise ConfigError(
            f"the vectors of {target} are of the kind {present or 'none'}, not {kind}; change it: "
            f"citerec encode --index {target} --dense-index {kind}"
        )


def default_index(corpus: Path) -> Path:
    """Return indexes/<corpus name>: the name of the folder, or of the file without its suffixes.

    A file with a generic name such as "corpus" or "papers" gets the name of its folder.
    """
    from citerec.folder import INDEXES

    path = Path(os.path.realpath(corpus))  # `resolve` fails at a link that leads to itself
    stem = path.name if path.is_dir() else path.name.split(".")[0]
    name = path.parent.name if stem.lower() in GENERIC_NAMES else stem
    return INDEXES / (name or "corpus")


def summary(report: "BuildReport") -> list[str]:
    """Return the counts of a build, one per line."""
    heading = f"{report.index}  ({report.manifest.corpus['format']})"
    changes = [f"{count:>12,}  {name}" for name, count in report.changes.items() if count]
    return [heading, *changes, *index_lines(report.manifest.counts)]


def index_lines(counts: Mapping[str, int]) -> list[str]:
    """Return a line for each count of an index."""
    return count_lines({**counts, "with_citations": 0}, ALWAYS)
