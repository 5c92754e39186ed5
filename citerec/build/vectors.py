"""Embeds the papers of an index; a text that has a vector of the same encoder already is not encoded again.

Vectors are found by the hash of the text that the encoder reads: in the old index while it grows, and in the cache next
to the index that an interrupted run leaves. The cache is a file of records (hash, vector) for each encoder.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from citerec.config import DenseIndexConfig, DenseKind, Settings, setting
from citerec.drafts.context import without_markers
from citerec.errors import writing
from citerec.files.arrays import Vectors, batched
from citerec.files.atomic import building, link, locked, refuse_links
from citerec.index.contexts import CONTEXTS, LEAST_EMBEDDED, Contexts
from citerec.index.folder import (
    DENSE,
    MODELS,
    PAPERS,
    IndexFolder,
    checksums,
    has_saved_vectors,
    open_index,
    saved_vectors,
    write_manifest,
)
from citerec.index.papers import Papers
from citerec.text import EncoderForm, encoder_text
from citerec.types import Json, Paper, Progress, no_progress

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

# papers that are encoded and saved at once; a killed run loses at most these
SHARD = 2048
KEY = 16  # bytes of the hash of a text


@dataclass(frozen=True, slots=True)
class ContextTexts:
    """What Lucene and an encoder read of contexts."""

    contexts: Contexts

    def __len__(self) -> int:
        return len(self.contexts)

    def at(self, numbers: Iterable[int]) -> dict[int, Paper]:
        """Return some contexts, by number, as papers whose title is the sentence without marks of citations."""
        wanted = np.array(sorted({*numbers}), np.int32)
        pairs = zip(wanted.tolist(), self.contexts.texts(wanted), strict=True)
        return {n: Paper(id=f"{n}", title=without_markers(text)) for n, text in pairs}


Texts = Papers | ContextTexts
Keys = npt.NDArray[np.bytes_]
# (encoder, folder of the index, batches of papers) -> the vectors of each batch, in order
EncodeElsewhere = Callable[["Encoder", Path, Iterable[list[Paper]]], Iterator[Vectors]]


class EmbedConfig(Settings):
    """How the papers of an index are embedded."""

    dense: DenseIndexConfig = DenseIndexConfig()
    resume: bool = setting(False, "Reuse the vectors that an interrupted run saved.")
    # an `EncodeElsewhere` on other machines; None for this process
    elsewhere: Callable[..., Any] | None = None


class _Cache:
    """The vectors of texts by their keys: those of an old index, and those that are saved in a file."""

    def __init__(self, file: Path, encoder: "Encoder", old: IndexFolder | None) -> None:
        from citerec.index.vectors import vectors_of, vectors_of_contexts

        self._file = file
        self._record = np.dtype(
            [("key", f"S{KEY}"), ("vector", np.float32, (encoder.dim,))]
        )
        form = encoder.spec.form
        self._old: list[tuple[Keys, Any]] = []
        if old:
            self._old.append((keys_of(old.papers, form), vectors_of(old)))
        if old and old.contexts and (vectors := vectors_of_contexts(old)):
            self._old.append((keys_of(ContextTexts(old.contexts), form), vectors))
        with file.open("ab") as out:
            # Whole shards are kept: the next ones are then those of an uninterrupted run.
            shard = SHARD * self._record.itemsize
            out.truncate(out.tell() // shard * shard)

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Save the vectors of a shard."""
        records = np.empty(len(keys), self._record)
        records["key"], records["vector"] = keys, vectors
        with self._file.open("ab") as out:
            out.write(records.tobytes())
            out.flush()
            os.fsync(out.fileno())

    def missing(self, keys: Keys) -> npt.NDArray[np.intp]:
        """Return the places of the texts without a vector in `keys`, in order, each text once."""
        texts, first = np.unique(keys, return_index=True)
        return np.sort(first[~np.isin(texts, self._known())])

    def vectors(self, keys: Keys) -> Iterator[Vectors]:
        """Yield the vectors of all `keys`, block by block."""
        known = self._known()
        saved = self._saved()["vector"]
        order = np.argsort(known, kind="stable")
        for block in batched(keys, SHARD):
            places = order[np.searchsorted(known, block, sorter=order)].astype(np.int32)
            vectors = np.empty((len(block), saved.shape[1]), np.float32)
            first = 0
            for old_keys, old in self._old:
                inside = (first <= places) & (places < first + len(old_keys))
                vectors[inside] = old.vectors(places[inside] - first)
                first += len(old_keys)
            vectors[places >= first] = saved[places[places >= first] - first]
            yield vectors

    def _known(self) -> Keys:
        return np.concatenate([*(keys for keys, _ in self._old), self._saved()["key"]])

    def _saved(self) -> Any:
        is_empty = not self._file.stat().st_size  # which cannot be mapped
        return (
            np.empty(0, self._record)
            if is_empty
            else np.memmap(self._file, self._record, "r")
        )


def embed(
    folder: Path,
    target: Path,
    encoder: "Encoder",
    config: EmbedConfig,
    progress: Progress,
    old: IndexFolder | None = None,
) -> Json:
    """Embed the papers and contexts of an index that is being built; return the settings of the vectors.

    A resumed run gives the same vectors as an uninterrupted one, bit by bit. `folder` holds the papers; the cache is
    next to `target`, the final place, until `forget_vectors`; `old` is an index with vectors of the same encoder.
    OutputError if a file cannot be written.
    """
    if not config.resume:
        forget_vectors(target)
    run = encoder.config
    store = saved_vectors(target)
    setup = (encoder.fingerprint.key, run.device, encoder.precision)
    name = hashlib.sha256(repr(setup).encode()).hexdigest()
    papers = Papers(folder / PAPERS)
    how = (target, encoder, progress)
    settings: Json = {"encoder": asdict(encoder.fingerprint)}
    with writing(store):
        refuse_links(store)
        store.mkdir(parents=True, exist_ok=True)
        try:
            cache = _Cache(store / f"{name[:24]}.vectors", encoder, old)
            settings["dense"] = _embedded(papers, folder / DENSE, cache, config, *how)
            if (folder / CONTEXTS).is_dir():
                contexts = Contexts(folder / CONTEXTS, papers.years)
                if len(contexts) >= LEAST_EMBEDDED:
                    kind = config.dense.replace(kind=DenseKind.AUTO)
                    config = config.replace(dense=kind)
                    texts = ContextTexts(contexts)
                    vectors = _embedded(texts, contexts.dense, cache, config, *how)
                    settings[CONTEXTS] = vectors
        finally:  # nothing is saved after an interruption of the first shard
            if not has_saved_vectors(target):
                forget_vectors(target)
    return settings


def _embedded(
    texts: Texts,
    dense: Path,
    cache: _Cache,
    config: EmbedConfig,
    target: Path,
    encoder: "Encoder",
    progress: Progress,
) -> Json:
    """Write the vectors of some texts into a folder, `dense`; return their settings."""
    from citerec.index.vectors import write_dense

    keys = keys_of(texts, encoder.spec.form)
    missing = cache.missing(keys)
    done = 0
    total = len(missing)
    shards = [*batched(missing, SHARD)]
    batches = ([*texts.at(shard.tolist()).values()] for shard in shards)

    def encoded_here() -> Iterator[Vectors]:
        for batch in batches:
            yield encoder.encode(
                batch, lambda what, n, _: progress(what, done + n, total)
            )

    elsewhere = config.elsewhere
    encoded = elsewhere(encoder, target, batches) if elsewhere else encoded_here()
    progress("encoding", 0, total)
    for shard, vectors in zip(shards, encoded, strict=True):
        cache.add(keys[shard], vectors)
        done += len(shard)
        progress("encoding", done, total)
    return write_dense(
        dense,
        cache.vectors(keys),
        dim=encoder.dim,
        similarity=encoder.spec.similarity,
        config=config.dense,
        progress=progress,
    )


def keys_of(papers: Texts, form: EncoderForm) -> Keys:
    """Return the hash of the text that an encoder reads of each paper, shape (papers,)."""
    keys = np.empty(len(papers), f"S{KEY}")
    for rows in batched(range(len(papers)), SHARD):
        for row, paper in papers.at(rows).items():
            text = encoder_text(paper, form, "\0").encode(errors="surrogatepass")
            keys[row] = hashlib.blake2b(text, digest_size=KEY).digest()
    return keys


def embed_anew(
    path: Path,
    encoder: "Encoder",
    config: EmbedConfig,
    progress: Progress = no_progress,
) -> None:
    """Replace the vectors of an index; readers see either the old or the new ones.

    Errors are those of `open_index`, `locked` and `embed`.
    """
    open_index(path)  # before anything is locked or written
    with locked(path), building(path) as folder:
        index = open_index(path)
        kept = {
            n: s
            for n, s in index.manifest.checksums.items()
            if not n.startswith((f"{DENSE}/", f"{CONTEXTS}/{DENSE}/"))
        }
        for name in kept:
            link(path / name, folder / name)
        settings = embed(folder, path, encoder, config, progress)
        manifest = replace(
            index.manifest,
            settings={**index.manifest.settings, **settings},
            checksums=kept | checksums(folder, kept),
        )
        write_manifest(folder, manifest)
        # as late as possible: a model may have been trained meanwhile
        carry_models(path, folder)
    forget_vectors(path)


def carry_models(index: Path, folder: Path) -> None:
    """Link the models that were trained on an index, and trainings that can be resumed, into its next folder."""
    for file in sorted((index / MODELS).rglob("*")):
        name = file.relative_to(index).as_posix()
        if file.is_file() and not file.is_symlink() and ".building-" not in name:
            link(file, folder / name)


def forget_vectors(target: Path) -> None:
    """Remove the saved vectors of an index, such as one that holds them now."""
    shutil.rmtree(saved_vectors(target), ignore_errors=True)
