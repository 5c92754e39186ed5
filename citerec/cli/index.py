"""`citerec index` and `citerec encode`."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from citerec.build.index import BuildConfig
from citerec.build.vectors import EmbedConfig
from citerec.cli.console import ConsoleOutput
from citerec.cli.corpus import index_lines, report_faults
from citerec.cli.options import MODEL, Index, Ray, open_named, settings_options, under
from citerec.config import DenseKind, setting
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.build.index import BuildReport
    from citerec.build.vectors import EncodeElsewhere

GENERIC_NAMES = {"corpus", "papers", "data", "part", "documents"}
NAMES = "specter, specter2, scincl, scibert, minilm, mpnet, a hub id or a folder; "
VECTORS = {
    "--encoder": "encoder",
    "--dense-index": "dense.kind",
    **under("encode", MODEL),
    "--threads": "encode.threads dense.threads",
    "--resume": "resume",
}
FLAGS = {
    "--format": "format",
    "--retracted": "retracted",
    "--add-cited": "add_cited",
    "--retriever": "retrievers",
    **VECTORS,
    "--force": "force",
    "--skip-bad": "skip_bad",
}


class IndexOptions(BuildConfig):
    """How a corpus is read and embedded."""

    encoder: str | None = setting(
        "auto", f"{NAMES}none for BM25 alone; auto: minilm.", min_length=1
    )


class EncodeOptions(EmbedConfig):
    """How the papers of an index are embedded anew."""

    encoder: str = setting(
        "auto",
        f"{NAMES}auto: minilm; where the index has an encoder, auto keeps it.",
        min_length=1,
    )
    encode: EncodeConfig = EncodeConfig()


@settings_options
def index(
    corpus: Annotated[Path | None, "A corpus file, or a folder of shards."] = None,
    *,
    index: Annotated[
        Path | None,
        "The folder to create; indexes/<corpus name> by default. For a change, the index; "
        "optional if indexes/ contains only one.",
    ] = None,
    append: Annotated[
        bool,
        "Add the papers of the corpus to an index; a paper whose id it has is replaced.",
    ] = False,
    delete: Annotated[
        Path | None,
        "Remove the papers of this file from an index: one id a line.",
    ] = None,
    config: Annotated[IndexOptions, FLAGS],
    ray: Ray = None,
    console: ConsoleOutput,
) -> None:
    """Build an index folder from a corpus, or a new one from an index: add, replace and remove papers."""
    from citerec.build.index import build_index, check_inputs, grow_index
    from citerec.index.folder import find_index

    marks = corpus is None and config.retracted is not None
    changes = append or delete is not None or marks
    named = default_index(corpus) if corpus and index is None else index
    if changes:
        if append and corpus is None:
            raise ConfigError("--append needs a corpus: citerec index CORPUS --append")
        if not append and corpus is not None:
            raise ConfigError(
                f"{corpus} would not be read; add its papers with --append"
            )
        anew = (
            config.force or ray is not None or config.dense.kind is not DenseKind.AUTO
        )
        if anew or config.encoder == "none":
            raise ConfigError(
                "--force, --ray, --dense-index and --encoder none build an index anew; "
                "leave them out to change one"
            )
        target = named if named and named.is_dir() else find_index(index)
    else:
        if corpus is None or named is None:
            raise ConfigError(
                "name a corpus: citerec index CORPUS (see: citerec index --help)"
            )
        target = named
        check_inputs(corpus, target, force=config.force)  # before Ray starts
    with (
        encode_where(target, ray, console) as elsewhere,
        console.progress(in_bytes="reading") as progress,
    ):
        config = config.replace(elsewhere=elsewhere)
        if corpus and not changes:
            report = build_index(corpus, target, config, progress, console.log)
        else:
            report = grow_index(
                target,
                config,
                corpus=corpus,
                removed=delete,
                progress=progress,
                log=console.log,
            )
    show_report(report, console)


def show_report(report: "BuildReport", console: ConsoleOutput) -> None:
    """Print what an index holds, and what was left out."""
    format_name = report.manifest.corpus["format"]
    changes = report.changes.items()
    console.summary(
        f"{report.index}  ({format_name})",
        *(f"{count:>12,}  {name}" for name, count in changes if count),
        *index_lines(report.manifest.counts),
    )
    report_faults(report.examples, report.ignored, console, format_name)


def default_index(corpus: Path) -> Path:
    """Return indexes/<corpus name>: the name of the folder, or of the file without its suffixes.

    A file with a generic name such as "corpus" or "papers" gets the name of its folder.
    """
    from citerec.index.folder import INDEXES

    # `resolve` fails at a link that leads to itself
    path = Path(os.path.realpath(corpus))
    stem = path.name if path.is_dir() else path.name.split(".")[0]
    name = path.parent.name if stem.lower() in GENERIC_NAMES else stem
    return INDEXES / (name or "corpus")


@settings_options
def encode(
    *,
    index: Index = None,
    config: Annotated[EncodeOptions, VECTORS],
    ray: Ray = None,
    console: ConsoleOutput,
) -> None:
    """Encode the papers of an index again; the rest of the index is unchanged."""
    from citerec.build.index import chosen_encoder
    from citerec.build.vectors import embed_anew
    from citerec.encode.encoder import open_encoder

    target = open_named(index).path
    name = chosen_encoder(config.encoder, target, console.log)
    if name is None:
        raise ConfigError("there is no encoder; choose one with --encoder MODEL")
    model = open_encoder(name, config.encode, base=target, log=console.log)
    console.detail(f"{model.fingerprint}: {model.dim} dimensions, {model.precision}")
    with (
        encode_where(target, ray, console) as elsewhere,
        console.progress() as progress,
    ):
        embed_anew(target, model, config.replace(elsewhere=elsewhere), progress)
    console.log(f"{target}: encoded by {model.fingerprint}")


@contextmanager
def encode_where(
    target: Path, ray: str | None, console: ConsoleOutput
) -> "Generator[EncodeElsewhere | None]":
    """Connect to the cluster of `--ray`, if it is given; log how to resume interrupted work that saved vectors."""
    from citerec.index.folder import has_saved_vectors

    try:
        if ray is None:
            yield None
        else:
            from citerec.cluster.ray import connected, encode_in_actors

            with connected(ray):
                yield encode_in_actors
    except BaseException:
        if has_saved_vectors(target):
            console.log(
                "vectors are saved; run the command again with --resume to continue"
            )
        raise
