"""The vectors of an index: one faiss file, `dense/vectors.faiss`, whose ids are row numbers.

| kind | papers (auto) | what a search reads |
| --- | --- | --- |
| `exact` | up to 50,000 | every vector |
| `sq8` | up to a million | every vector as int8 (scalar quantization), the exact ones of the best |
| `hnsw` | more | a graph of nearest neighbours over int8 vectors, the exact ones of the best |

Every kind keeps the exact vectors, and the scores of a search are computed from them. The ranking compares many more
papers: on the last two kinds it reads their int8 vectors.
"""

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import IndexDamagedError, ModelError, writing
from citerec.files.arrays import Counts, Flags, Rows, Scores, Vectors
from citerec.index.contexts import CONTEXTS
from citerec.index.folder import DENSE, IndexFolder
from citerec.rules.eligible import mask
from citerec.types import Eligibility, Json, Progress, no_progress

NAME = "vectors.faiss"  # the file of the vectors in an index
# papers; a flat search then takes about 0.1 s
EXACT_UP_TO = 50_000
SQ8_UP_TO = 1_000_000
BLOCK = 4096  # vectors that are added at once
FACTORIES = {
    DenseKind.EXACT: "Flat",
    DenseKind.SQ8: "SQ8",
    DenseKind.HNSW: "HNSW32_SQ8",
}
TRAINING = 65_536  # vectors from which the range of each dimension is taken
# how far from 1 the length of a vector may be that is compared by cosine
NORM_SLACK = 0.01
MARGIN = 64  # more hits than wanted, since the order by int8 vectors differs a little
FEW_EXCLUDED = 100  # exclusions of a query that share the search of others of its year

# rows and scores, in any order
RowsAndScores = tuple[Rows, Scores]


def load() -> Any:
    """Import faiss, which is slow to import."""
    import faiss

    return faiss


@contextmanager
def on_threads(count: int) -> Generator[None]:
    """Let faiss use `count` threads inside the block; 0 for faiss's own choice."""
    faiss = load()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def resolve(kind: DenseKind, rows: int) -> DenseKind:
    """Resolve `DenseKind.AUTO` for a corpus of `rows` papers."""
    if kind is not DenseKind.AUTO:
        return kind
    if rows <= EXACT_UP_TO:
        return DenseKind.EXACT
    return DenseKind.SQ8 if rows <= SQ8_UP_TO else DenseKind.HNSW


def write_dense(
    folder: Path,
    blocks: Iterable[Vectors],
    *,
    dim: int,
    similarity: Similarity,
    config: DenseIndexConfig | None = None,
    progress: Progress = no_progress,
) -> Json:
    """Write the vectors of a corpus, in the order of rows, into `folder`; return their settings for the manifest.

    Vectors that are compared by cosine must have unit length. ModelError if a vector is not finite, or not of unit
    length although compared by cosine; OutputError if the file cannot be written.
    """
    config = config or DenseIndexConfig()
    faiss = load()
    metric = (
        faiss.METRIC_L2 if similarity is Similarity.L2 else faiss.METRIC_INNER_PRODUCT
    )
    exact = faiss.IndexFlat(dim, metric)
    path = folder / NAME
    for block in blocks:
        _check_vectors(block, exact.ntotal, similarity)
        exact.add(np.ascontiguousarray(block, np.float32))
    index = exact
    rows = exact.ntotal
    stored = _stored(exact)
    kind = resolve(config.kind, rows)
    if kind is not DenseKind.EXACT:
        base = faiss.index_factory(dim, FACTORIES[kind], metric)
        if kind is DenseKind.HNSW:
            # candidates that are compared when a vector is linked
            base.hnsw.efConstruction = 200
        # the graph depends on the order in which threads link vectors
        with on_threads(1 if kind is DenseKind.HNSW else config.threads):
            # evenly spread rows, so that the vectors decide the result alone
            base.train(np.ascontiguousarray(stored[:: ceil(rows / TRAINING)]))
            for start in range(0, rows, BLOCK):
                base.add(np.ascontiguousarray(stored[start : start + BLOCK]))
                progress("indexing vectors", min(start + BLOCK, rows), rows)
        index = faiss.IndexRefine(base, exact)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # faiss itself misses that its last write failed
        with path.open("wb") as stream:
            faiss.write_index(index, faiss.PyCallbackIOWriter(stream.write))
    progress("writing vectors", rows, rows)
    return {
        "kind": str(kind),
        "similarity": str(similarity),
        "papers": rows,
        "dim": dim,
        "faiss": faiss.__version__,
    }


def vectors_of(index: IndexFolder) -> "DenseIndex":
    """Open the vectors of an index; IndexDamagedError if they cannot be read."""
    return _opened(index, DENSE, index.manifest.settings["dense"], index.papers.years)


def vectors_of_contexts(index: IndexFolder) -> "DenseIndex | None":
    """Open the vectors of the contexts of an index, whose rows are their numbers; None without any.

    IndexDamagedError if they cannot be read.
    """
    settings = index.manifest.settings.get(CONTEXTS)
    if not (settings and index.contexts):
        return None
    return _opened(index, f"{CONTEXTS}/{DENSE}", settings, index.contexts.years)


def _opened(index: IndexFolder, part: str, settings: Json, years: Rows) -> "DenseIndex":
    try:
        return DenseIndex(index.path / part, settings, years)
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise IndexDamagedError(
            index.path, [f"{part}/ cannot be read ({error})"]
        ) from error


class DenseIndex:
    """The vectors of an index; several threads may use it."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], years: Rows) -> None:
        """Open the vectors that `write_dense` wrote, memory-mapped; `settings` are what it returned.

        `years` holds the year of each row, shape (papers,), for eligibility. OSError if the file cannot be read,
        ValueError if it is damaged or does not match `settings`, KeyError if these are incomplete.
        """
        faiss = load()
        path = folder / NAME
        kind = DenseKind(settings["kind"])
        self.similarity = Similarity(settings["similarity"])
        rows = int(settings["papers"])
        dim = int(settings["dim"])
        if rows != len(years):
            raise ValueError(f"it holds {rows} vectors for {len(years)} papers")
        self._years = years
        try:
            # which owns its parts
            self._whole = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise ValueError("faiss cannot read it") from error
        # the part that has the vectors, and the part that is searched
        self._exact = self._base = self._whole
        if isinstance(self._whole, faiss.IndexRefine):
            self._exact = faiss.downcast_index(self._whole.refine_index)
            self._base = faiss.downcast_index(self._whole.base_index)
        expected = faiss.index_factory(1, FACTORIES[kind]).__class__
        is_exact = isinstance(self._exact, faiss.IndexFlat)
        if not isinstance(self._base, expected) or not is_exact:
            raise ValueError(f"it is no index of the kind {kind}")
        if {(part.ntotal, part.d) for part in (self._exact, self._base)} != {
            (rows, dim)
        }:
            raise ValueError(f"it does not hold {rows} vectors of {dim} dimensions")
        self._is_graph = hasattr(self._base, "hnsw")
        # what a scan reads
        self._scanned = self._base
        if self._is_graph:
            self._scanned = faiss.downcast_index(self._base.storage)
        self._file = os.open(path, os.O_RDONLY)
        finalize(self, os.close, self._file)
        # behind the exact vectors, faiss writes a number of 4 bytes
        self._first = path.stat().st_size - 4 - 4 * rows * dim

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows, shape (len(rows), dim)."""
        if self._base is self._exact:
            return _stored(self._exact)[rows]
        # Not from the map: for each page that is read there, the system maps 15 others, until all are in memory.
        vectors = np.empty((len(rows), self._exact.d), np.float32)
        for vector, row in zip(vectors, rows.tolist(), strict=True):
            os.preadv(self._file, (vector.data,), self._first + row * vector.nbytes)
        return vectors

    def approximate(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows as a scan reads them, shape (len(rows), dim): exact, or those of int8."""
        if self._base is self._exact:
            return self.vectors(rows)
        faiss = load()
        sq8 = self._scanned
        codes = faiss.rev_swig_ptr(sq8.codes.data(), sq8.codes.size()).reshape(
            -1, sq8.d
        )
        lowest, width = np.split(faiss.vector_to_array(sq8.sq.trained), 2)
        # what `sa_decode` returns, which takes ten times as long
        return codes[rows] * (width / 255) + (lowest + width / 510)

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of at least the `k` best eligible papers of each query, in any order.

        Scores: the inner product for cosine, minus the distance for L2. A pair of query and paper has the same score in
        any batch, bit by bit.
        """
        none = np.zeros(0, np.int32), np.zeros(0, np.float32)
        results: list[RowsAndScores] = [none] * len(vectors)
        groups: dict[Eligibility, list[int]] = {}
        # what no query may be given, such as the retracted papers of a large corpus
        common = frozenset.intersection(
            *(rule.excluded for rule in eligible or [Eligibility()])
        )
        if len(common) <= FEW_EXCLUDED:
            common = frozenset[int]()
        for i, rule in enumerate(eligible):
            is_few = len(rule.excluded - common) <= FEW_EXCLUDED
            shared = replace(rule, excluded=common) if is_few else rule
            groups.setdefault(shared, []).append(i)
        for rule, group in groups.items():
            keep = mask(rule, self._years)
            count = int(np.count_nonzero(keep))
            excluded = max(
                min(len(eligible[i].excluded - common), FEW_EXCLUDED) for i in group
            )
            # int8 vectors give a slightly other order: of a million papers, 64 more held the first 1,000 of each draft
            int8 = k // 8 if self._base is not self._exact else 0
            fetch = min(k + int8 + excluded + MARGIN, count)
            pending = group if count else []
            while pending:
                found = self._candidates(vectors[pending], fetch, keep, count)
                for i, rows in zip(pending, found, strict=True):
                    excluded_rows = [*eligible[i].excluded]
                    is_hit = (rows >= 0) & ~np.isin(rows, excluded_rows)
                    hits = rows[is_hit].astype(np.int32)
                    exact = self.vectors(hits)
                    scores = similarities(vectors[i], exact, self.similarity)
                    results[i] = hits, scores
                is_all = fetch == count
                pending = [
                    i for i in pending if not (is_all or _is_complete(results[i][1], k))
                ]
                fetch = min(4 * fetch, count)
        return results

    def _candidates(
        self, vectors: Vectors, fetch: int, keep: Flags, count: int
    ) -> Counts:
        """Return the rows nearest to each vector among those to keep, -1 for none, shape (queries, fetch or more)."""
        faiss = load()
        queries = np.ascontiguousarray(vectors, np.float32)
        bits = None if count == len(keep) else np.packbits(keep, bitorder="little")
        selector = {} if bits is None else {"sel": faiss.IDSelectorBitmap(bits)}
        # The fewer papers are eligible, the more nodes of the graph are visited: a scan costs less then.
        if self._is_graph and fetch < count and count * 4 > len(keep):
            effort = max(2048, fetch) * ceil(len(keep) / count)
            params = faiss.SearchParametersHNSW(efSearch=effort, **selector)
            return self._base.search(queries, fetch, params=params)[1]
        params = faiss.SearchParameters(**selector)
        return self._scanned.search(queries, fetch, params=params)[1]


def _is_complete(scores: Scores, k: int) -> bool:
    """Whether there are `k` hits, and none that was not fetched ties with the last of them."""
    return len(scores) >= k and float(-np.partition(-scores, k - 1)[k - 1]) > float(
        scores.min()
    )


def similarities(query: Vectors, vectors: Vectors, similarity: Similarity) -> Scores:
    """Score vectors against one query, shape (dim,); each pair is computed separately. Shape (len(vectors),).

    The inner product for cosine, minus the Euclidean distance for L2.
    """
    faiss = load()
    query = np.ascontiguousarray(query)
    vectors = np.ascontiguousarray(vectors)
    scores = np.empty(len(vectors), np.float32)
    indices = np.arange(len(vectors))
    measures = {
        Similarity.COSINE: faiss.fvec_inner_products_by_idx,
        Similarity.L2: faiss.fvec_L2sqr_by_idx,
    }
    pointers = [faiss.swig_ptr(array) for array in (scores, query, vectors, indices)]
    measures[similarity](*pointers, len(query), 1, len(vectors))
    return scores if similarity is Similarity.COSINE else 0 - np.sqrt(scores)


def unit(vectors: Vectors) -> Vectors:
    """Return vectors of length 1, shape of `vectors`; the last axis is a vector's."""
    # without a copy of the vectors
    squares = np.einsum("...i,...i->...", vectors, vectors)
    return vectors / np.maximum(np.sqrt(squares), np.float32(1e-9))[..., None]


def _stored(exact: Any) -> Vectors:
    """Return the vectors of a flat index without copying them, shape (papers, dim)."""
    if not exact.ntotal:
        return np.zeros((0, exact.d), np.float32)
    return (
        load().rev_swig_ptr(exact.get_xb(), exact.ntotal * exact.d).reshape(-1, exact.d)
    )


def _check_vectors(shard: Vectors, first: int, similarity: Similarity) -> None:
    norms = np.sqrt(np.einsum("ij,ij->i", shard, shard))
    if len(wrong := np.flatnonzero(~np.isfinite(norms))):
        raise ModelError(
            f"the encoder gave paper {first + wrong[0]} a vector that is not finite; "
            "is the model complete? try another"
        )
    unequal = np.flatnonzero(np.abs(norms - 1) > NORM_SLACK)
    if similarity is Similarity.COSINE and len(unequal):
        raise ModelError(
            f"the encoder gave paper {first + unequal[0]} a vector of length {norms[unequal[0]]:.3g}; "
            "expected 1, as cosine compares them"
        )
