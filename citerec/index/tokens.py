"""Stores the token ids of all papers of an index, memory-mapped, so that each text is tokenized once per tokenizer.

A store is a cache, as models are: it is not in the manifest's checksums, but has its own, so that `verify`
checks it. Stores are in `tokens/<key>/`, one per tokenizer:

    indptr.npy   int64, shape (papers + 1,): where the tokens of each paper begin
    ids.npy      uint16, or uint32 if the vocabulary needs it: the tokens of all papers, one after the other
    about.json   identifies the papers

After an update of the index, a store holds the first papers alone; `write_tokens` adds the others when they are needed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from citerec.arrays import check_ends, open_array
from citerec.atomic import building
from citerec.corpus.papers import Papers
from citerec.entries import read_record
from citerec.errors import CiterecError, IndexDamagedError, IndexReplacedError, OutputError
from citerec.folder import PAPERS, IndexFolder
from citerec.manifest import TOKENS, model_faults, read_manifest, seal_model
from citerec.text import pair_text
from citerec.types import Log, Progress, no_progress

INDPTR, IDS, ABOUT = "indptr.npy", "ids.npy", "about.json"
LONGEST = 447  # tokens of one text: no side of a pair has room for more
READS = f"pair_text/1/{LONGEST}"  # increase the number when `pair_text` changes
AT_ONCE = 1024  # papers that are tokenized in one call
KEPT = 50_000  # papers whose tokens `FreshTokens` keeps in memory: 40 MB for abstracts

Cut = Callable[[Sequence[str]], list[list[int]]]  # texts to ids, at most `LONGEST` each


class Tokens(Protocol):
    """The token ids of papers."""

    def of(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Return the ids of the papers at `rows`, without special tokens, by row."""
        ...


@dataclass(frozen=True, slots=True)
class TokenStore:
    """The token ids of all papers, in memory-mapped files."""

    folder: Path
    vocabulary: int  # number of ids of the tokenizer
    indptr: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

    def of(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Return the ids of the papers at `rows`, without special tokens, by row."""
        return {row: self.paper(row).tolist() for row in set(rows)}

    def paper(self, row: int) -> npt.NDArray[np.uint16] | npt.NDArray[np.uint32]:
        """Return the ids of one paper.

        Raises:
            IndexDamagedError: If one is not in the vocabulary.
        """
        ids = self.ids[self.indptr[row] : self.indptr[row + 1]]
        if len(ids) and int(ids.max()) >= self.vocabulary:
            fault = f"{TOKENS}/{self.folder.name} holds token {ids.max():,} of {self.vocabulary:,}"
            raise IndexDamagedError(self.folder.parent.parent, [fault])
        return ids


@dataclass(frozen=True, slots=True)
class FreshTokens:
    """The token ids of papers, tokenized on request; the last `KEPT` papers are cached."""

    papers: Papers
    cut: Cut
    cached: dict[int, npt.NDArray[np.uint32]] = field(
        default_factory=dict[int, "npt.NDArray[np.uint32]"]
    )

    def of(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Return the ids of the papers at `rows`, without special tokens, by row."""
        requested = set(rows)
        papers = self.papers.at(requested - self.cached.keys())
        fresh = self.cut([pair_text(paper) for paper in papers.values()])
        ids_by_row = {row: self.cached[row].tolist() for row in requested & self.cached.keys()}
        ids_by_row.update(zip(papers, fresh, strict=True))
        self.cached.update((row, np.array(ids_by_row[row], np.uint32)) for row in papers)
        for row in [*self.cached][: max(0, len(self.cached) - KEPT)]:
            del self.cached[row]
        return ids_by_row

    def unknown(self, rows: Iterable[int]) -> int:
        """Return how many of the papers are not cached."""
        return len(set(rows) - self.cached.keys())


def open_tokens(index: IndexFolder, tokenizer: str, *, vocabulary: int) -> TokenStore | None:
    """Open the token store of an index for a tokenizer; None if there is none, or it is of other papers.

    Args:
        index: The index.
        tokenizer: The sha256 of the tokenizer's files.
        vocabulary: The number of ids of the tokenizer.
    """
    folder = _folder(index, tokenizer)
    stored = open_stored(folder, index)
    if stored is None or len(stored[0]) != len(index.papers) + 1:
        return None
    return TokenStore(folder, vocabulary, *stored)


def write_tokens(
    index: IndexFolder,
    tokenizer: str,
    cut: Cut,
    *,
    vocabulary: int,
    progress: Progress | None = None,
    log: Log | None = None,
) -> TokenStore | FreshTokens:
    """Tokenize all papers of an index and store the ids in it; needs little memory.

    Args:
        index: The index.
        tokenizer: The sha256 of the tokenizer's files.
        cut: Turns texts into ids, at most `LONGEST` each.
        vocabulary: The number of ids of the tokenizer.
        progress: Receives how many papers are tokenized.
        log: Receives a message if the tokens cannot be stored: no permission, no space, or the index was replaced.

    Returns:
        The store; if it cannot be written, an object that tokenizes papers on request.
    """
    try:
        _check_papers(index)
        with building(_folder(index, tokenizer)) as workspace:
            counts = [0]
            before = _before(index, tokenizer, _kind(vocabulary), counts)
            with (workspace / IDS).open("wb") as file:
                texts = _texts(index.papers, progress or no_progress, len(counts) - 1)
                _write(file, before, map(cut, texts), counts)
            np.save(workspace / INDPTR, np.cumsum(counts, dtype=np.int64))
            write_about(workspace, index.manifest.checksums[PAPERS])
            seal_model(workspace)
            _check_papers(index)
        why = "they are gone again"
    except (OutputError, IndexReplacedError) as error:
        why = str(error)
    # Another process may have written it.
    if store := open_tokens(index, tokenizer, vocabulary=vocabulary):
        return store
    if log:
        log(f"the tokens of its papers cannot be stored ({why}); papers are tokenized when needed")
    return FreshTokens(index.papers, cut)


def open_stored(
    store: Path, index: IndexFolder
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16] | npt.NDArray[np.uint32]] | None:
    """Open a store that may hold the first papers of an index alone; None if it is damaged or of other papers.

    Args:
        store: A folder in `tokens/`.
        index: The index.

    Returns:
        Where the tokens of each stored paper begin, shape (stored papers + 1,), and the tokens.
    """
    try:
        about = orjson.loads(read_record(store / ABOUT))
        rows = about.pop("rows", len(index.papers))
        if about != _about(index.manifest.checksums[PAPERS]) or model_faults(store, whole=False):
            return None
        indptr = open_array(store / INDPTR, np.int64, length=rows + 1)
        ids = open_array(store / IDS, np.uint16, np.uint32)
        check_ends(INDPTR, indptr, len(ids))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return indptr, ids


def write_about(store: Path, papers: str, *, rows: int | None = None) -> None:
    """Write which papers a store holds.

    Args:
        store: The folder of the store.
        papers: The sha256 of `papers.arrow`.
        rows: How many of the first papers it holds; None for all.
    """
    about = _about(papers) if rows is None else {**_about(papers), "rows": rows}
    (store / ABOUT).write_bytes(orjson.dumps(about))


def _before(
    index: IndexFolder, tokenizer: str, kind: np.dtype[Any], counts: list[int]
) -> npt.NDArray[Any]:
    """Return the tokens that an update of the index has kept, and add the lengths of their texts to `counts`."""
    stored = open_stored(_folder(index, tokenizer), index)
    if stored is None or stored[1].dtype != kind:
        return np.zeros(0, kind)
    counts += np.diff(stored[0]).tolist()
    return stored[1]


def _check_papers(index: IndexFolder) -> None:
    """Refuse to write into an index that was replaced since it was opened.

    Raises:
        IndexReplacedError: If it was.
    """
    try:
        stored_sum = read_manifest(index.path).checksums[PAPERS]
    except (CiterecError, KeyError) as error:
        raise IndexReplacedError(index.path) from error
    if stored_sum != index.manifest.checksums[PAPERS]:
        raise IndexReplacedError(index.path)


def _texts(papers: Papers, progress: Progress, start: int) -> Iterator[list[str]]:
    progress("cutting", start, len(papers))
    for first in range(start, len(papers), AT_ONCE):
        rows = range(first, min(first + AT_ONCE, len(papers)))
        yield [pair_text(paper) for paper in papers.at(rows).values()]
        progress("cutting", rows.stop, len(papers))


def _write(
    file: BinaryIO,
    before: npt.NDArray[Any],
    chunks: Iterable[list[list[int]]],
    counts: list[int],
) -> None:
    """Write ids as they arrive, and collect the length of each text; the header is written last, over a placeholder."""
    kind = before.dtype
    _header(file, kind, 0)
    file.write(before.data)
    for texts in chunks:
        counts += map(len, texts)
        file.write(np.array([i for ids in texts for i in ids], kind).tobytes())
    file.seek(0)
    _header(file, kind, sum(counts))


def _header(file: BinaryIO, kind: np.dtype[Any], length: int) -> None:
    fields = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, fields | {"shape": (length,)})


def _kind(vocabulary: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def _folder(index: IndexFolder, tokenizer: str) -> Path:
    key = hashlib.sha256(f"{tokenizer} {READS}".encode()).hexdigest()
    return index.path / TOKENS / key[:16]


def _about(papers: str) -> dict[str, Any]:
    return {"papers": papers, "reads": READS}
