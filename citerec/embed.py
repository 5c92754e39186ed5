"""Embeds the papers of an index shard by shard, so that an interrupted run can resume.

Shards are stored next to the index until its vectors are complete. The name of a shard is a key of encoder and
texts: a resumed run gives the same vectors as an uninterrupted one.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from citerec.config import DenseIndexConfig
from citerec.corpus.papers import Papers
from citerec.errors import ConfigError, IndexReplacedError, writing
from citerec.folder import (
    DENSE,
    MODELS,
    PAPERS,
    IndexFolder,
    checksums,
    open_index,
    read_manifest,
    write_manifest,
)
from citerec.io import building, locked
from citerec.shards import PlannedShard, Shard, ShardEncoder, is_complete, write_shard
from citerec.types import Paper, Progress, no_progress

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

SHARD = 2048  # papers per shard; a killed run loses at most one shard


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedConfig:
    """How the papers of an index are embedded."""

    dense: DenseIndexConfig = DenseIndexConfig()
    resume: bool = False  # reuse the shards of an interrupted run
    shard: int = SHARD  # papers per shard
    elsewhere: ShardEncoder | None = None  # encodes the missing shards; None for this process

    def __post_init__(self) -> None:
        if self.shard < 1:
            raise ConfigError(f"shard must be at least 1, got {self.shard}")


def embed(
    folder: Path,
    target: Path,
    encoder: "Encoder",
    config: EmbedConfig,
    progress: Progress,
    old: IndexFolder | None = None,
    old_rows: npt.NDArray[np.int32] | None = None,
) -> dict[str, Any]:
    """Embed the papers of an index that is being built; return the settings of the vectors for its manifest.

    Args:
        folder: The folder in which the index is built; it holds the papers.
        target: The final place of the index; shards are stored next to it.
        encoder: Gives the vectors.
        config: How to embed.
        progress: Receives how many papers are embedded.
        old: An index with vectors of the same encoder.
        old_rows: Its rows whose papers are the last ones of the new index, in order: their vectors are taken over.

    Raises:
        OutputError: If a file cannot be written.
    """
    from citerec.index.vectors import blocks_of, open_dense, write_dense

    papers = Papers(folder / PAPERS)
    kept = np.zeros(0, np.int32) if old_rows is None else old_rows
    new = len(papers) - len(kept)
    with shards_of(papers, target, encoder, config, progress, new) as shards:

        def all_vectors() -> Iterator[Shard]:
            yield from shards()
            if old is not None and len(kept):
                stored = old.manifest.settings["dense"]
                yield from blocks_of(open_dense(old.dense, stored, old.papers.years), kept)

        vectors = write_dense(
            folder / DENSE,
            all_vectors,
            rows=len(papers),
            dim=encoder.dim,
            similarity=encoder.spec.similarity,
            config=config.dense,
            progress=progress,
        )
    return {"encoder": encoder.fingerprint.to_json(), "dense": vectors}


def embed_anew(
    path: Path, encoder: "Encoder", config: EmbedConfig, progress: Progress | None = None
) -> None:
    """Replace the vectors of an index; readers see either the old or the new ones.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        IndexLockedError: If another process is changing the index.
        IndexReplacedError: If a build put another index in its place meanwhile.
        OutputError: If a file cannot be written.
    """
    open_index(path)  # before anything is locked or written
    with building(path) as folder, locked(path):
        index = open_index(path)
        kept = {n: s for n, s in index.manifest.checksums.items() if not n.startswith(f"{DENSE}/")}
        for name in kept:
            link(path / name, folder / name)
        settings = embed(folder, path, encoder, config, progress or no_progress)
        new = {f"{DENSE}/{name}": s for name, s in checksums(folder / DENSE).items()}
        manifest = index.manifest
        write_manifest(
            folder,
            replace(manifest, settings={**manifest.settings, **settings}, checksums=kept | new),
        )
        carry_models(path, folder)  # as late as possible: a model may have been trained meanwhile
        if read_manifest(path) != manifest:
            raise IndexReplacedError(path)
    forget_shards(path)


def carry_models(index: Path, folder: Path) -> None:
    """Copy the models that were trained on an index into the folder that will replace it."""
    for model in sorted((index / MODELS).glob("*")):
        carry(model, folder / MODELS / model.name)  # including a training that can be resumed


def carry(source: Path, destination: Path) -> None:
    """Link the files of a folder into another one, except those of builds in progress."""
    for file in sorted(source.rglob("*")):
        unfinished = ".building-" in file.relative_to(source.parent).as_posix()
        if file.is_file() and not file.is_symlink() and not unfinished:
            link(file, destination / file.relative_to(source))


def link(file: Path, destination: Path) -> None:
    """Link a file to a second path, or copy it where the disk has no links; a symbolic link is not followed."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, destination, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(file, destination, follow_symlinks=False)


def shard_folder(target: Path) -> Path:
    """Return the folder of the shards of an index that is being embedded."""
    target = Path(os.path.realpath(target))
    return target.with_name(f".{target.name}.encoding")


def shard_count(target: Path) -> int:
    """Return how many shards an interrupted run left for an index."""
    return len([*shard_folder(target).glob("*.npy")])


@contextmanager
def shards_of(
    papers: Papers,
    target: Path,
    encoder: "Encoder",
    config: EmbedConfig,
    progress: Progress,
    count: int,
) -> Generator[Callable[[], Iterator[Shard]]]:
    """Embed the first `count` papers, shard by shard; the shards exist until `forget_shards`.

    Yields:
        A function that reads the shards.
    """
    store = shard_folder(target)
    with writing(store):
        store.mkdir(parents=True, exist_ok=True)
        if not config.resume:
            for old in store.glob("*.npy"):
                old.unlink()
        plan = _planned(papers, store, encoder, config, count)
        if config.elsewhere:
            shards = [shard for shard, _ in plan]
            _encode_elsewhere(config.elsewhere, encoder, target, papers, shards, progress)
            files = [shard.file for shard in shards]
        else:
            files = [*_embedded(plan, encoder, progress, count)]
        yield lambda: (np.load(file, mmap_mode="r") for file in files)


def forget_shards(target: Path) -> None:
    """Remove the shards of an index that has its vectors now."""
    shutil.rmtree(shard_folder(target), ignore_errors=True)


def _planned(
    papers: Papers, store: Path, encoder: "Encoder", config: EmbedConfig, count: int
) -> Iterator[tuple[PlannedShard, list[Paper]]]:
    """Yield the shards of the first `count` papers, each with its papers."""
    for first in range(0, count, config.shard):
        rows = range(first, min(first + config.shard, count))
        batch = [*papers.at(rows).values()]
        key = _key(encoder, batch, config.elsewhere)
        name = f"{first:09}-{key[:24]}.npy"
        yield PlannedShard(store / name, rows), batch


def _embedded(
    plan: Iterator[tuple[PlannedShard, list[Paper]]],
    encoder: "Encoder",
    progress: Progress,
    count: int,
) -> Iterator[Path]:
    total = count
    progress("encoding", 0, total)
    for shard, batch in plan:
        if not is_complete(shard.file, (len(batch), encoder.dim)):
            first = shard.rows.start
            write_shard(shard.file, encoder.encode(batch, _shifted(progress, first, total)))
        progress("encoding", shard.rows.stop, total)
        yield shard.file


def _encode_elsewhere(
    elsewhere: ShardEncoder,
    encoder: "Encoder",
    base: Path,
    papers: Papers,
    shards: list[PlannedShard],
    progress: Progress,
) -> None:
    """Encode the shards that are missing; each is written as it comes."""
    total = sum(len(shard.rows) for shard in shards)
    missing = [s for s in shards if not is_complete(s.file, (len(s.rows), encoder.dim))]
    done = total - sum(len(shard.rows) for shard in missing)
    progress("encoding", done, total)
    for shard, vectors in elsewhere(encoder, base, papers, missing):
        write_shard(shard.file, vectors)
        done += len(shard.rows)
        progress("encoding", done, total)


def _shifted(progress: Progress, first: int, total: int) -> Progress:
    return lambda what, done, _: progress(what, first + done, total)


def _key(encoder: "Encoder", papers: list[Paper], elsewhere: ShardEncoder | None) -> str:
    """Return the key of a shard: two shards of one key hold the same vectors."""
    run = encoder.config
    setup = (encoder.fingerprint.key, run.device, run.batch_tokens, encoder.precision)
    digest = hashlib.sha256(repr(setup).encode())
    for paper in papers:
        fields = (paper.id, paper.title, paper.abstract, paper.venue, paper.authors)
        digest.update(repr(fields).encode(errors="surrogatepass"))
    return digest.hexdigest()
