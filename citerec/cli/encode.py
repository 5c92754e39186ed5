"""`citerec encode`, and the options of all commands that run an encoder."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput
from citerec.cli.options import Index, Quiet, Threads, Verbose
from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import EncodeConfig, Precision
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.embed import EncodeElsewhere

EncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="specter, specter2, scincl, scibert, minilm, a hub id or a folder; none for BM25 alone; "
        "auto: SPECTER if it is available, else MiniLM, else none.",
    ),
]
NewEncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="specter, specter2, scincl, scibert, minilm, a hub id or a folder; auto: that of the index, else SPECTER "
        "if it is available, else MiniLM.",
    ),
]
DenseIndexOption = Annotated[
    DenseKind,
    typer.Option(
        "--dense-index", help="auto: exact up to 50,000 papers, sq8 up to a million, hnsw above."
    ),
]
DeviceOption = Annotated[str, typer.Option(help="Where the model runs: auto, cpu, cuda, cuda:1.")]
DtypeOption = Annotated[Precision, typer.Option(help="Data type of the model's computations.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Reuse the vectors that an interrupted run saved.")
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Encode on a Ray cluster, such as 10.0.0.1:6379; local for workers on this machine, of --threads each.",
    ),
]


def encode(
    index: Index = None,
    encoder: NewEncoderOption = "auto",
    dense_index: DenseIndexOption = DenseKind.AUTO,
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    threads: Threads = 0,
    resume: ResumeOption = False,
    ray: RayOption = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Encode the papers of an index again; the rest of the index is unchanged."""
    from citerec.embed import EmbedConfig, embed_anew
    from citerec.encode.encoder import open_encoder
    from citerec.folder import find_index, open_index

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    target = open_index(find_index(index)).path
    name, warning = chosen_encoder(encoder, target, console)
    if name is None:
        raise ConfigError(f"{warning or 'there is no encoder'}; choose one with --encoder MODEL")
    if warning:
        console.warn(warning)
    how = EncodeConfig(device=device, precision=dtype, threads=threads)
    model = open_encoder(name, how, base=target, log=console.log)
    console.detail(f"{model.fingerprint}: {model.dim} dimensions, {model.precision}")
    with encoding(target, ray, console) as elsewhere, console.progress() as progress:
        config = EmbedConfig(
            dense=DenseIndexConfig(kind=dense_index, threads=threads),
            resume=resume,
            elsewhere=elsewhere,
        )
        embed_anew(target, model, config, progress)
    console.log(f"{target}: encoded by {model.fingerprint}")


def chosen_encoder(
    named: str, target: Path, console: ConsoleOutput
) -> tuple[str | None, str | None]:
    """Return the encoder to use (None for BM25 alone), and a warning if `auto` had to fall back.

    `auto` keeps the encoder of an existing index.
    """
    from citerec.encode.models import auto_encoder, recorded_folder
    from citerec.encode.spec import Fingerprint
    from citerec.errors import CiterecError
    from citerec.folder import read_manifest

    if not named.strip():
        raise ConfigError("--encoder is empty; name a model, auto or none")
    if named != "auto":
        return (None if named == "none" else named), None
    try:
        recorded = read_manifest(target).settings.get("encoder")
    except CiterecError:  # there is no readable index
        recorded = None
    if recorded:
        source = Fingerprint.from_json(recorded).source
        folder = recorded_folder(source, base=target)
        return str(folder) if folder else source, None
    name, warning = auto_encoder(console.log)
    return name, warning and f"--encoder auto: {warning}"


@contextmanager
def encoding(
    target: Path, ray: str | None, console: ConsoleOutput
) -> "Generator[EncodeElsewhere | None]":
    """Connect to the cluster of `--ray`, if it is given; log how to resume interrupted work that saved vectors."""
    from citerec.embed import has_saved_vectors

    try:
        if ray is None:
            yield None
        else:
            from citerec.distributed import connected, encode_in_actors

            with connected(ray):
                yield encode_in_actors
    except BaseException:
        if has_saved_vectors(target):
            console.log("vectors are saved; run the command again with --resume to continue")
        raise
