"""`citerec encode`, and the options of all commands that embed."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, Index, Quiet, Threads, Verbose
from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.errors import ConfigError

EncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="specter, specter2, scincl, scibert, minilm, a hub id or a folder; none for BM25 alone; "
        "auto: SPECTER if it can be had, else MiniLM, else none.",
    ),
]
DenseIndexOption = Annotated[
    DenseKind,
    typer.Option("--dense-index", help="auto: exact up to a million papers, above it hnsw."),
]
DeviceOption = Annotated[str, typer.Option(help="Where the model runs: auto, cpu, cuda, cuda:1.")]
PrecisionOption = Annotated[Precision, typer.Option(help="What the model calculates with.")]
ShardOption = Annotated[
    int, typer.Option(min=1, help="Papers embedded between two savings: what a killed run loses.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with the vectors that a broken-off run left.")
]
BackendOption = Annotated[
    Backend, typer.Option(help="What runs the model; openvino can be faster on a processor.")
]


def encode(
    index: Index = None,
    encoder: EncoderOption = "auto",
    dense_index: DenseIndexOption = DenseKind.AUTO,
    device: DeviceOption = "auto",
    precision: PrecisionOption = Precision.AUTO,
    backend: BackendOption = Backend.TORCH,
    threads: Threads = 0,
    shard: ShardOption = 2048,
    resume: ResumeOption = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Embed the papers of an index anew; all else in it stays."""
    from citerec.embed import EmbedConfig, embed_anew
    from citerec.encode.encoder import open_encoder
    from citerec.folder import find_index, open_index

    console = ConsoleOutput(quiet, verbose)
    target = open_index(find_index(index)).path
    name, warning = chosen_encoder(encoder, target, console)
    if name is None:
        raise ConfigError(f"{warning or 'nothing to embed with'}; name a model: --encoder MODEL")
    if warning:
        console.warn(warning)
    how = EncodeConfig(device=device, precision=precision, threads=threads, backend=backend)
    model = open_encoder(name, how, base=target, log=console.log)
    console.detail(f"{model.fingerprint}: {model.dim} dimensions, {model.precision}")
    config = EmbedConfig(
        dense=DenseIndexConfig(kind=dense_index, threads=threads),
        resume=resume,
        shard=shard,
    )
    with keeping_shards(target, console), console.progress() as progress:
        embed_anew(target, model, config, progress)
    console.log(f"{target}: embedded by {model.fingerprint}")


def chosen_encoder(
    named: str, target: Path, console: ConsoleOutput
) -> tuple[str | None, str | None]:
    """Return which encoder is meant, None for BM25 alone, and a warning if it is not what one would expect.

    `auto` keeps the encoder of an index that is there.
    """
    from citerec.encode.source import INSIDE, auto_encoder
    from citerec.encode.spec import Fingerprint
    from citerec.errors import CiterecError
    from citerec.manifest import read_manifest

    if not named.strip():
        raise ConfigError("--encoder is empty; name a model, or say auto or none")
    if named != "auto":
        return (None if named == "none" else named), None
    try:
        recorded = read_manifest(target).settings.get("encoder")
    except CiterecError:  # no index there, or none that can be read
        recorded = None
    if recorded:
        source = Fingerprint.from_json(recorded).source
        return str(target / source) if source.startswith(INSIDE) else source, None
    name, warning = auto_encoder(console.log)
    return name, warning and f"--encoder auto: {warning}"


@contextmanager
def keeping_shards(target: Path, console: ConsoleOutput) -> Generator[None]:
    """Say, if the work is broken off, how to go on with the vectors that are there."""
    from citerec.embed import shard_count

    try:
        yield
    except BaseException:
        if kept := shard_count(target):
            shards = "shard" if kept == 1 else "shards"
            console.log(
                f"{kept} {shards} of vectors are kept; run this again with --resume to go on"
            )
        raise
