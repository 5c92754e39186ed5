"""The vectors of an index on disk: written as a stream, read by faiss, damaged, measured."""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import pytest

from citerec.config import DenseConfig, DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import ConfigError, ModelError, OutputError
from citerec.index.dense.library import NAME, on_threads
from citerec.index.dense.read import open_dense
from citerec.index.dense.scan import dropped_bound, pairwise
from citerec.index.dense.train import parts_of
from citerec.index.dense.write import resolve, write_dense
from citerec.types import Eligibility

Vectors = npt.NDArray[np.float32]

L2, COSINE = Similarity
ANYBODY = Eligibility()


def some_vectors(n: int, dim: int = 16, *, unit: bool = False, seed: int = 3) -> Vectors:
    """Vectors in a hundred clumps, as texts have topics."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((100, dim))
    vectors = topics[rng.integers(100, size=n)] + 0.5 * rng.standard_normal((n, dim))
    if unit:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def write(
    folder: Path, vectors: Vectors, similarity: Similarity = L2, cut: int = 700, **config: Any
) -> dict[str, Any]:
    shards = [vectors[i : i + cut] for i in range(0, len(vectors), cut)]
    n, dim = vectors.shape
    return write_dense(
        folder, shards, rows=n, dim=dim, similarity=similarity, config=DenseIndexConfig(**config)
    )


def no_years(n: int) -> npt.NDArray[np.int32]:
    return np.zeros(n, np.int32)


def by_brute_force(query: Vectors, vectors: Vectors, similarity: Similarity) -> npt.NDArray[Any]:
    a, b = query.astype(np.float64), vectors.astype(np.float64)
    return b @ a if similarity is COSINE else -np.sqrt(((b - a) ** 2).sum(axis=1))


# --- the exact index


@pytest.mark.parametrize("similarity", Similarity)
def test_the_file_is_byte_by_byte_what_faiss_writes(tmp_path: Path, similarity: Similarity) -> None:
    vectors = some_vectors(10_000, unit=True)

    said = write(tmp_path / "dense", vectors, similarity)

    metric = {L2: faiss.METRIC_L2, COSINE: faiss.METRIC_INNER_PRODUCT}[similarity]
    by_faiss = faiss.IndexFlat(16, metric)
    by_faiss.add(vectors)
    written = (tmp_path / "dense" / NAME).read_bytes()
    assert written == faiss.serialize_index(by_faiss).tobytes()
    assert said == {
        "kind": "exact",
        "similarity": str(similarity),
        "papers": 10_000,
        "dim": 16,
        "bytes": len(written),
        "faiss": faiss.__version__,
    }


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_corpus_of_hardly_any_papers_has_an_index(tmp_path: Path, n: int) -> None:
    vectors = some_vectors(n)

    said = write(tmp_path, vectors)
    index = open_dense(tmp_path, said, no_years(n))

    [(rows, scores)] = index.nearest(some_vectors(1, seed=4), [ANYBODY], 5)
    assert sorted(rows.tolist()) == list(range(n))
    assert scores == pytest.approx(by_brute_force(some_vectors(1, seed=4)[0], vectors, L2)[rows])
    assert faiss.read_index(str(tmp_path / NAME)).ntotal == n


@pytest.mark.parametrize("cut", [1, 4095, 4096, 4097, 9000])
def test_how_the_shards_are_cut_makes_no_difference(tmp_path: Path, cut: int) -> None:
    vectors = some_vectors(9000)

    write(tmp_path / "a", vectors, cut=9000)
    write(tmp_path / "b", vectors, cut=cut)

    assert (tmp_path / "a" / NAME).read_bytes() == (tmp_path / "b" / NAME).read_bytes()


def test_vectors_are_written_and_searched_in_a_fraction_of_their_memory(tmp_path: Path) -> None:
    """200 MB of them, and not a quarter held at any time."""
    code = f"""
import resource, sys
from pathlib import Path
import numpy as np
from citerec.encode.spec import Similarity
from citerec.index.dense import kernel  # imports numba, which takes memory of its own
from citerec.index.dense.read import open_dense
from citerec.index.dense.write import write_dense
from citerec.types import Eligibility

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))

def shards():
    for i in range(100):
        yield np.full((2000, 256), i, np.float32)

small = np.ones((1, 256), np.float32)
said = write_dense(Path({str(tmp_path / "small")!r}), [small], rows=1, dim=256, similarity=Similarity.L2)
before, most = anonymous(), 0
def tell(what, done, of):
    global most
    most = max(most, anonymous())
folder = Path({str(tmp_path / "large")!r})
said = write_dense(folder, shards, rows=200_000, dim=256, similarity=Similarity.L2, progress=tell)
index = open_dense(folder, said, np.zeros(200_000, np.int32))
rows, scores = index.nearest(np.full((1, 256), 7, np.float32), [Eligibility()], 1)[0]
assert 14_000 in rows and scores.max() == 0
print(max(most, anonymous()) - before)
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50


def test_an_hnsw_index_is_checked_and_opened_without_a_copy_of_its_links(tmp_path: Path) -> None:
    vectors = some_vectors(4000)
    said = write(tmp_path, vectors, kind=DenseKind.HNSW, hnsw_m=512, ef_construction=8)
    links = 4000 * 2 * 512 * 4  # bytes on the lowest layer

    tracemalloc.start()
    open_dense(tmp_path, said, no_years(4000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert said["bytes"] > links
    assert most < links / 4


@pytest.mark.parametrize("kind", [DenseKind.EXACT, DenseKind.HNSW, DenseKind.IVF])
def test_progress_is_told_up_to_the_last_vector(tmp_path: Path, kind: DenseKind) -> None:
    told: list[tuple[str, int, int]] = []

    write_dense(
        tmp_path,
        lambda: iter([some_vectors(10_000)]),
        rows=10_000,
        dim=16,
        similarity=L2,
        config=DenseIndexConfig(kind=kind, ef_construction=20),
        progress=lambda *news: told.append(news),
    )

    passes = [("writing vectors", 10_000)]
    if kind is not DenseKind.EXACT:
        steps = ["reading vectors", "training", "indexing vectors"]
        passes = [*((step, 10_000) for step in steps), ("measuring recall", 200)]
    assert [news for news in told if news[1] == news[2]] == [(w, n, n) for w, n in passes]


# --- vectors that cannot be


def test_vectors_that_are_not_finite_are_refused_with_the_paper(tmp_path: Path) -> None:
    vectors = some_vectors(1000)
    vectors[801, 3] = np.nan

    with pytest.raises(ModelError, match="gave paper 801 a vector that is not finite"):
        write(tmp_path, vectors)


def test_cosine_refuses_vectors_that_are_not_of_unit_length(tmp_path: Path) -> None:
    vectors = some_vectors(1000, unit=True)
    vectors[7] *= 2

    with pytest.raises(ModelError, match="gave paper 7 a vector of length 2; expected 1"):
        write(tmp_path, vectors, COSINE)


@pytest.mark.parametrize("rows", [999, 1001])
def test_more_or_fewer_vectors_than_papers_are_a_mistake_of_the_caller(
    tmp_path: Path, rows: int
) -> None:
    with pytest.raises(ValueError, match=f"1000 vectors, expected {rows}"):
        write_dense(tmp_path, [some_vectors(1000)], rows=rows, dim=16, similarity=L2)


def test_shards_of_another_length_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shape \(5, 16\), expected \(n, 8\)"):
        write_dense(tmp_path, [some_vectors(5)], rows=5, dim=8, similarity=L2)


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    for kind in (DenseKind.EXACT, DenseKind.HNSW):
        with pytest.raises(OutputError, match=r"cannot write .*/file"):
            write(tmp_path / "file", some_vectors(10), kind=kind)


# --- damage


@pytest.fixture(scope="module")
def written(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[DenseKind], tuple[bytes, dict[str, Any]]]:
    made: dict[DenseKind, tuple[bytes, dict[str, Any]]] = {}

    def get(kind: DenseKind) -> tuple[bytes, dict[str, Any]]:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            said = write(folder, some_vectors(10_000), kind=kind, ef_construction=20, ivf_lists=50)
            made[kind] = ((folder / NAME).read_bytes(), said)
        return made[kind]

    return get


@pytest.mark.parametrize("kind", [DenseKind.EXACT, DenseKind.HNSW, DenseKind.IVF])
def test_a_truncated_file_is_refused(
    tmp_path: Path, written: Callable[[DenseKind], tuple[bytes, dict[str, Any]]], kind: DenseKind
) -> None:
    whole, said = written(kind)

    for length in (0, 3, 40, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / NAME).write_bytes(whole[:length])
        with pytest.raises(ValueError, match=f"it has {length} bytes, expected {len(whole)}"):
            open_dense(tmp_path, said, no_years(10_000))
        if length < len(whole) - 1:  # faiss itself would not miss one byte
            with pytest.raises(ValueError, match=r"faiss cannot read it|it is not a flat index"):
                open_dense(tmp_path, {**said, "bytes": length}, no_years(10_000))


@pytest.mark.parametrize("kind", [DenseKind.EXACT, DenseKind.HNSW, DenseKind.IVF])
def test_a_file_of_other_vectors_is_refused(
    tmp_path: Path, written: Callable[[DenseKind], tuple[bytes, dict[str, Any]]], kind: DenseKind
) -> None:
    whole, said = written(kind)
    (tmp_path / NAME).write_bytes(whole)

    for other in ({"dim": 8}, {"papers": 9999}, {"similarity": "cosine"}):
        with pytest.raises(ValueError, match=r"it is not a flat index|it holds"):
            open_dense(tmp_path, said | other, no_years((said | other)["papers"]))
    with pytest.raises(ValueError, match="it holds 10000 vectors for 5 papers"):
        open_dense(tmp_path, said, no_years(5))


@pytest.mark.parametrize("kind", [DenseKind.EXACT, DenseKind.HNSW, DenseKind.IVF])
def test_a_file_of_something_else_is_refused(
    tmp_path: Path, written: Callable[[DenseKind], tuple[bytes, dict[str, Any]]], kind: DenseKind
) -> None:
    whole, said = written(kind)
    (tmp_path / NAME).write_bytes(b"PK" * (len(whole) // 2) + b"?" * (len(whole) % 2))

    with pytest.raises(ValueError, match=r"it is not a flat index|faiss cannot read it"):
        open_dense(tmp_path, said, no_years(10_000))
    (tmp_path / NAME).unlink()
    with pytest.raises(FileNotFoundError):
        open_dense(tmp_path, said, no_years(10_000))


# --- scores


@pytest.mark.parametrize("dim", [1, 2, 4, 8, 16, 384, 385])
@pytest.mark.parametrize("similarity", Similarity)
def test_a_pair_is_scored_alike_alone_and_in_company(dim: int, similarity: Similarity) -> None:
    vectors = some_vectors(40, dim)
    query = some_vectors(1, dim, seed=9)[0]

    together = pairwise(query, vectors, similarity)

    alone = [pairwise(query, vectors[i : i + 1], similarity)[0] for i in range(40)]
    assert together.tolist() == [float(score) for score in alone]
    expected = by_brute_force(query, vectors, similarity)
    assert together == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_the_bound_of_what_a_scan_leaves_behind_holds_for_vectors_far_from_zero() -> None:
    """Distances of 1 between vectors of length 1000: in x x / 2 nothing of them would be left."""
    rng = np.random.default_rng(5)
    vectors = (1000 / 8 + rng.standard_normal((2000, 64)) / 8).astype(np.float32)
    query = vectors[0]
    near = vectors @ query - np.einsum("ij,ij->i", vectors, vectors) / 2
    scores = pairwise(query, vectors, L2)

    for k in (1, 10, 500):
        kept = np.argsort(-near)[: k + 100]
        kth = float(np.sort(scores[kept])[-k])
        bound = dropped_bound(query, float(near[kept].min()), kth, L2)
        left = np.setdiff1d(np.arange(2000), kept)
        could = scores[left][scores[left] >= kth]
        assert bound >= could.max(initial=-np.inf)


@pytest.mark.parametrize("offset", [0, 10, 1000])
def test_exact_means_exact_however_far_from_zero_the_vectors_are(
    tmp_path: Path, offset: int
) -> None:
    vectors = some_vectors(9000, 32) + np.float32(offset)
    said = write(tmp_path, vectors)
    index = open_dense(tmp_path, said, no_years(9000))
    queries = vectors[::900] + np.float32(0.01)

    results = index.nearest(queries, [ANYBODY] * len(queries), 100)

    for query, (rows, scores) in zip(queries, results, strict=True):
        every = pairwise(query, vectors, L2)
        best = np.sort(every)[::-1][:100]
        assert np.sort(scores)[::-1][:100].tolist() == best.tolist()
        assert every[rows].tolist() == scores.tolist()


# --- approximate indexes


@pytest.mark.parametrize(
    ("kind", "similarity"),
    [
        (DenseKind.HNSW, Similarity.L2),
        (DenseKind.IVF, Similarity.COSINE),
        pytest.param(DenseKind.HNSW, Similarity.COSINE, marks=pytest.mark.slow),
        pytest.param(DenseKind.IVF, Similarity.L2, marks=pytest.mark.slow),
    ],
)
def test_an_approximate_index_says_the_recall_that_it_has(
    tmp_path: Path, kind: DenseKind, similarity: Similarity
) -> None:
    vectors = some_vectors(12_000, 16, unit=similarity is COSINE)

    said = write(
        tmp_path,
        vectors,
        similarity,
        kind=kind,
        ef_construction=60,
        ef_search=8,
        nprobe=1,
        ivf_lists=50,
    )
    index = faiss.read_index(str(tmp_path / NAME))

    # 1000 hits of 12,000 papers, the query itself left out: measured again from the file alone.
    assert said["recall"]["depth"] == 1000
    rng = np.random.default_rng(0)
    rng.choice(12_000, 12_000, replace=False)
    own = np.sort(rng.choice(12_000, 200, replace=False))
    effort = {"efSearch": max(said["search"].get("ef_search", 0), 1001)}
    params = faiss.SearchParametersHNSW(**effort)
    if kind is DenseKind.IVF:
        params = faiss.SearchParametersIVF(nprobe=said["search"]["nprobe"])
    _, found = index.search(vectors[own], 1001, params=params)
    shares: list[float] = []
    for row, mine in zip(own, found, strict=True):
        scores = by_brute_force(vectors[row], vectors, similarity)
        scores[row] = -np.inf
        shares.append(np.isin(np.argsort(-scores)[:1000], mine[mine != row][:1000]).mean())
    assert said["recall"]["value"] == pytest.approx(np.mean(shares), abs=0.002)
    assert (said["recall"]["queries"], said["papers"], said["dim"]) == (200, 12_000, 16)


def test_the_effort_is_doubled_until_the_recall_is_reached(tmp_path: Path) -> None:
    vectors = some_vectors(12_000)
    efforts: list[int] = []
    recalls: list[float] = []

    for target in (0, 0.7, 1):
        said = write(
            tmp_path, vectors, kind=DenseKind.IVF, ivf_lists=50, nprobe=1, recall_target=target
        )
        efforts.append(said["search"]["nprobe"])
        recalls.append(said["recall"]["value"])

    assert efforts[0] == 1
    assert efforts[1] == 2 ** int(np.log2(efforts[1])) > 1  # doubled from 1
    assert recalls[0] < 0.7 <= recalls[1] <= recalls[2]
    assert efforts[2] == said["made"]["lists"] == 50  # every list, and still no more


def test_ivf_reads_no_more_lists_than_its_compressed_vectors_are_worth(tmp_path: Path) -> None:
    """Four bytes a vector find 0.85 of the exact hits in all 50 lists; 0.95 of that is 0.81."""
    vectors = some_vectors(12_000)

    said = write(tmp_path, vectors, kind=DenseKind.IVF, ivf_lists=50, nprobe=1)

    assert said["recall"]["target"] == 0.95
    assert said["search"]["nprobe"] == 16
    assert 0.81 < said["recall"]["value"] < 0.85


@pytest.mark.parametrize("kind", [DenseKind.HNSW, DenseKind.IVF])
def test_the_same_vectors_and_seed_give_the_same_file(tmp_path: Path, kind: DenseKind) -> None:
    vectors = some_vectors(10_000)

    said = [
        write(tmp_path / str(cut), vectors, kind=kind, cut=cut, ef_construction=40)
        for cut in (700, 10_000)
    ]

    assert said[0] == said[1]
    if kind is DenseKind.IVF:
        assert said[0]["made"]["lists"] == 10_000 // 39  # fewer than 4 * sqrt(10,000)
    assert (tmp_path / "700" / NAME).read_bytes() == (tmp_path / "10000" / NAME).read_bytes()


def test_ivf_of_too_few_papers_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs at least 9984 papers .* the corpus has 300; use"):
        write(tmp_path, some_vectors(300), kind=DenseKind.IVF)

    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("n", [1, 2, 30])
def test_hnsw_of_a_few_papers_finds_them_all(tmp_path: Path, n: int) -> None:
    vectors = some_vectors(n)

    said = write(tmp_path, vectors, kind=DenseKind.HNSW)

    [(rows, _)] = open_dense(tmp_path, said, no_years(n)).nearest(vectors[:1], [ANYBODY], n)
    assert sorted(rows.tolist()) == list(range(n))
    assert said["recall"]["value"] == 1


def test_hnsw_of_no_papers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs at least 1 papers"):
        write(tmp_path, some_vectors(0), kind=DenseKind.HNSW)


def test_auto_is_exact_up_to_a_million_papers() -> None:
    assert resolve(DenseKind.AUTO, 1_000_000) is DenseKind.EXACT
    assert resolve(DenseKind.AUTO, 1_000_001) is DenseKind.HNSW
    assert resolve(DenseKind.IVF, 5) is DenseKind.IVF


@pytest.mark.parametrize(("dim", "parts"), [(384, 96), (768, 192), (1, 1), (3, 1), (7, 1), (30, 6)])
def test_ivf_cuts_vectors_into_parts_of_about_four_dimensions(dim: int, parts: int) -> None:
    assert parts_of(dim) == parts
    assert dim % parts == 0


# --- settings and threads


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"hnsw_m": 1}, "hnsw_m must be at least 2, got 1"),
        ({"ivf_lists": 0}, "ivf_lists must be at least 1, got 0"),
        ({"recall_target": 1.5}, r"recall_target must lie in \[0, 1\], got 1.5"),
        ({"training_papers": 9}, "training_papers must be at least 10000, got 9"),
        ({"threads": -1}, "threads must be at least 0, got -1"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DenseIndexConfig(**setting)


def test_a_search_of_no_effort_is_refused() -> None:
    with pytest.raises(ConfigError, match="nprobe must be at least 1, got 0"):
        DenseConfig(nprobe=0)
    with pytest.raises(ConfigError, match="threads must be at least 0, got -1"):
        DenseConfig(threads=-1)


def test_the_threads_of_faiss_are_given_back_even_after_an_error() -> None:
    before = faiss.omp_get_max_threads()

    with pytest.raises(KeyError), on_threads(before + 3):
        assert faiss.omp_get_max_threads() == before + 3
        raise KeyError
    with on_threads(0):
        assert faiss.omp_get_max_threads() == before

    assert faiss.omp_get_max_threads() == before


def test_opening_the_modules_imports_no_faiss() -> None:
    code = (
        "import sys, citerec.retrieve.fuse, citerec.retrieve.dense, citerec.index.dense.write;"
        "print({'faiss', 'torch', 'transformers'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
