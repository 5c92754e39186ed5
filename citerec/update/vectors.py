"""Gives the added papers of an index their vectors, by the encoder of the manifest."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citerec.config import DenseIndexConfig, DenseKind
from citerec.corpus.papers import Papers
from citerec.embed import SHARD, EmbedConfig, forget_shards, shards_of
from citerec.encode.config import EncodeConfig
from citerec.encode.spec import Fingerprint, Similarity
from citerec.errors import ConfigError, EncoderMismatchError
from citerec.folder import DENSE, PAPERS, IndexFolder
from citerec.types import Log, Progress
from citerec.update.delta import Delta

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.index.vectors import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorConfig:
    """How added papers are embedded."""

    encoder: str | None = None  # a name, hub id or folder that must be the index's encoder
    encode: EncodeConfig = EncodeConfig()
    shard: int = SHARD  # papers per shard; a killed run loses the vectors of at most one shard


def update_vectors(
    folder: Path,
    index: IndexFolder,
    delta: Delta,
    config: VectorConfig,
    progress: Progress,
    log: Log | None,
) -> dict[str, Any]:
    """Write the vectors of the new index; return their settings for its manifest.

    Papers whose text is as before keep their vector. The shards of an interrupted run are used again.

    Args:
        folder: The folder in which the new index is built; it holds its papers.
        index: The old index.
        delta: Which papers stay, go and come.
        config: How to embed.
        progress: Receives how many papers are embedded.
        log: Receives what is fetched from the hub.

    Raises:
        ModelError: If the encoder does not exist any more, or another one is at its place.
        ConfigError: If another process embeds papers for the index.
        OutputError: If a file cannot be written.
    """
    from citerec.index.vectors import blocks_of, open_dense, write_dense

    old_rows = np.concatenate([np.flatnonzero(delta.kept).astype(np.int32), delta.same_text])
    settings = index.manifest.settings
    dense = settings["dense"]
    old = open_dense(index.dense, dense, index.papers.years)
    common: dict[str, Any] = {"rows": delta.papers, "dim": dense["dim"], "progress": progress}
    common["similarity"] = Similarity(dense["similarity"])
    kind = DenseKind(dense["kind"])
    common["config"] = DenseIndexConfig(kind=kind, threads=config.encode.threads)
    if len(old_rows) == delta.papers:
        kept = partial(blocks_of, old, old_rows)
        return {"dense": write_dense(folder / DENSE, kept, **common)}
    encoder = open_encoder_of(index, config, log)
    how = EmbedConfig(dense=DenseIndexConfig(), resume=True, shard=config.shard)
    papers = Papers(folder / PAPERS)
    with shards_of(papers, index.path, encoder, how, progress, len(old_rows)) as shards:

        def all_vectors() -> "Iterator[Vectors]":
            yield from blocks_of(old, old_rows)
            yield from shards()

        return {"dense": write_dense(folder / DENSE, all_vectors, **common)}


def open_encoder_of(index: IndexFolder, config: VectorConfig, log: Log | None) -> "Encoder":
    """Open the encoder of an index.

    Raises:
        EncoderMismatchError: If the configuration names another one.
        ModelError: If it does not exist any more.
    """
    from citerec.encode.opening import open_encoder, reopen

    fingerprint = Fingerprint.from_json(index.manifest.settings["encoder"])
    if config.encoder is None:
        return reopen(fingerprint, index.path, config.encode, log=log)
    encoder = open_encoder(config.encoder, config.encode, base=index.path, log=log)
    if encoder.fingerprint.key != fingerprint.key:
        raise EncoderMismatchError(
            index.path, found=encoder.fingerprint.name, expected=str(fingerprint)
        )
    return encoder


def check_encoder(index: IndexFolder, config: VectorConfig) -> None:
    """Refuse an encoder that is named for an index without vectors.

    Raises:
        ConfigError: If it is.
    """
    if config.encoder and not index.is_embedded:
        raise ConfigError(
            f"{index.path} has no vectors; add papers without --encoder, or embed all of them: "
            f"citerec encode --index {index.path} --encoder {config.encoder}"
        )


def forget_vectors(index: Path) -> None:
    """Remove the shards of an index that has its vectors now."""
    forget_shards(index)
