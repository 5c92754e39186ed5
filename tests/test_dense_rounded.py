"""Vectors rounded to 8 bits: a bound of every paper, and the same hits as without them."""

import os
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from citerec.config import RecommendConfig
from citerec.encode.spec import Similarity
from citerec.errors import IndexDamagedError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.index.dense import exact, kernel, rounded
from citerec.index.dense.exact import ExactIndex
from citerec.index.dense.flat import FlatFile, map_flat, unmap_pages, write_flat
from citerec.index.dense.grow import add_rounded
from citerec.index.dense.read import open_dense
from citerec.index.dense.rounded import Rounded, RoundedWriter
from citerec.index.dense.scan import FEW
from citerec.index.dense.write import write_dense
from citerec.recommend import BatchRecommender
from citerec.types import Eligibility, Query
from citerec.update.compact import compact_index
from citerec.update.index import update_index
from citerec.update.replace import UpdateConfig

Vectors = npt.NDArray[np.float32]

L2, COSINE = Similarity
PAPERS = 9_000  # more than two blocks of 4,096
DIM = 24


def in_topics(n: int, *, seed: int = 1) -> Vectors:
    """Unit vectors in 50 topics; every tenth is a copy of another one, so that scores tie."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((50, DIM))[rng.integers(50, size=n)]
    vectors += 0.3 * rng.standard_normal((n, DIM))
    vectors[::10] = vectors[-1]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def write_rounded(folder: Path, vectors: Vectors, similarity: Similarity) -> Rounded:
    rows, dim = vectors.shape
    blocks = ((start, vectors[start : start + 4096]) for start in range(0, rows, 4096))
    with RoundedWriter(folder, rows=rows, dim=dim) as writer:
        assert sum(len(block) for _, block in writer.through(blocks)) == rows
    return Rounded.open(folder, rows=rows, dim=dim, similarity=similarity)


def both(folder: Path, vectors: Vectors, similarity: Similarity) -> tuple[ExactIndex, ExactIndex]:
    """The index with the rounded vectors, and the one without; this module has imported numba, so the first is fast."""
    years = (2000 + np.arange(len(vectors)) % 20).astype(np.int32)
    raw = vectors.view(np.uint8)
    with_rounded = write_rounded(folder, vectors, similarity)
    return (
        ExactIndex(raw, similarity, years, with_rounded),
        ExactIndex(raw, similarity, years),
    )


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of vectors of each part of a scan of rounded vectors."""
    sizes, compare = list[int](), kernel.upper_bounds

    def counted(codes: Any, *rest: Any) -> None:
        sizes.append(len(codes))
        compare(codes, *rest)

    monkeypatch.setattr(kernel, "upper_bounds", counted)
    return sizes


def best(index: ExactIndex, query: Vectors, rule: Eligibility, k: int) -> list[tuple[float, int]]:
    """The first k hits, by score and then by row; the scores with all their bits."""
    [(rows, scores)] = index.nearest(query[None], [rule], k)
    return sorted(zip((-scores).tolist(), rows.tolist(), strict=True))[:k]


@pytest.mark.parametrize("similarity", Similarity)
@pytest.mark.parametrize("k", [1, 20, 1000, PAPERS])
@pytest.mark.parametrize(
    "rule",
    [
        Eligibility(),
        Eligibility(year_max=2009),
        Eligibility(year_max=2001, excluded=frozenset(range(0, PAPERS, 3))),
        Eligibility(year_max=1990),
    ],
    ids=["all", "half", "few", "none"],
)
def test_the_hits_are_those_of_the_exact_vectors(
    tmp_path: Path, similarity: Similarity, k: int, rule: Eligibility, scans: list[int]
) -> None:
    vectors = in_topics(PAPERS)
    if similarity is L2:  # of lengths from 0.1 to 10
        vectors *= 10 ** np.random.default_rng(4).uniform(-1, 1, (PAPERS, 1)).astype(np.float32)
    fast, plain = both(tmp_path, vectors, similarity)

    for query in in_topics(4, seed=2):
        assert best(fast, query, rule, k) == best(plain, query, rule, k)

    assert sum(scans) == 4 * PAPERS  # each query once; where that was not enough, exact vectors


def test_few_queries_and_many_find_the_same(tmp_path: Path, scans: list[int]) -> None:
    """Up to four queries read the rounded vectors, more are multiplied with the exact ones."""
    fast, _ = both(tmp_path, in_topics(PAPERS), COSINE)
    queries = in_topics(9, seed=2)

    together = fast.nearest(queries, [Eligibility()] * 9, 50)
    assert not scans

    for query, (rows, scores) in zip(queries, together, strict=True):
        hits = sorted(zip((-scores).tolist(), rows.tolist(), strict=True))[:50]
        assert hits == best(fast, query, Eligibility(), 50)


def test_vectors_that_rounding_hardly_tells_apart_are_found_in_their_order(
    tmp_path: Path, scans: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All vectors lie within 0.001 of one: less than a step of 1/127, so every bound is about the same."""
    rng = np.random.default_rng(5)
    one = np.full(DIM, DIM**-0.5)
    vectors = one + 0.001 / DIM**0.5 * rng.standard_normal((PAPERS, DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    fast, plain = both(tmp_path, vectors, COSINE)
    query, exact_scans = in_topics(1, seed=3)[0], list[int]()
    expected = best(plain, query, Eligibility(), 30)
    compare = exact.scan

    def counted(queries: Any, blocks: Any, k: int, *rest: Any) -> Any:
        exact_scans.append(k)
        return compare(queries, blocks, k, *rest)

    monkeypatch.setattr(exact, "scan", counted)

    assert best(fast, query, Eligibility(), 30) == expected

    assert sum(scans) == PAPERS
    assert exact_scans  # the 92 papers with the highest bounds were not certain to hold the best 30


numbers = st.floats(-1e3, 1e3, width=32)


@given(
    vectors=arrays(np.float32, st.tuples(st.integers(1, 6), st.just(5)), elements=numbers),
    query=arrays(np.float32, 5, elements=numbers),
    similarity=st.sampled_from(Similarity),
)
def test_no_paper_is_closer_than_its_bound(
    tmp_path_factory: pytest.TempPathFactory,
    vectors: Vectors,
    query: Vectors,
    similarity: Similarity,
) -> None:
    index = write_rounded(tmp_path_factory.mktemp("rounded"), vectors, similarity)

    bounds, rows = index.scan(kernel, query[None], len(vectors), lambda *_: None, 0, len(vectors))

    closeness = vectors.astype(np.float64) @ query.astype(np.float64)
    if similarity is L2:
        closeness -= (vectors.astype(np.float64) ** 2).sum(axis=1) / 2
    sizes = np.linalg.norm(vectors.astype(np.float64), axis=1)
    length = np.linalg.norm(query.astype(np.float64))
    float32 = 2.0**-21 * (sizes + length) ** 2 + 2.0**-126  # a bound is rounded to this type
    assert sorted(rows[0].tolist()) == list(range(len(vectors)))
    assert (bounds[0] >= closeness[rows[0]] - float32[rows[0]]).all()


def test_the_directions_of_lists_are_summed(tmp_path: Path) -> None:
    """With compiled loops and without, and but for rounding as by the exact vectors."""
    vectors = 3 * in_topics(200)
    index = write_rounded(tmp_path, vectors, L2)
    lists = [[5, 7, 7], [], [199], [*range(0, 200, 3)]]
    ends = np.cumsum([0, *map(len, lists)])
    rows = np.concatenate([np.array(one, np.int32) for one in lists])

    sums = index.summed_directions(kernel, ends, rows)

    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.stack([units[np.array(one, int)].sum(axis=0) for one in lists])
    assert sums == pytest.approx(expected, abs=0.01 * len(lists[3]) ** 0.5)
    assert not sums[1].any()
    assert index.summed_directions(None, ends, rows) == pytest.approx(sums, abs=1e-5)
    for row in (-1, 200):
        with pytest.raises(ValueError, match=f"a list names row {row}"):
            index.summed_directions(kernel, np.array([0, 1]), np.array([row], np.int32))


def test_an_index_of_fifty_thousand_papers_has_them_and_fewer_do_not(tmp_path: Path) -> None:
    for papers in (rounded.FROM - 1, rounded.FROM):
        folder = tmp_path / str(papers)
        vectors = in_topics(papers)[:, :4].copy()

        settings = write_dense(folder, [vectors], rows=papers, dim=4, similarity=L2)

        files = {path.name for path in folder.glob("rounded_*")}
        assert settings.get("rounded", False) == (papers == rounded.FROM) == bool(files)
        index = open_dense(folder, settings, np.zeros(papers, np.int32))
        [(rows, scores)] = index.nearest(vectors[7:8], [Eligibility()], 1)
        assert 7 in rows
        assert scores.max() == 0


def test_an_index_of_an_earlier_version_gets_them(tmp_path: Path) -> None:
    vectors = in_topics(rounded.FROM)[:, :4].copy()
    settings = write_dense(tmp_path, [vectors], rows=rounded.FROM, dim=4, similarity=L2)
    written = {path.name: path.read_bytes() for path in tmp_path.glob("rounded_*")}
    for name in written:
        (tmp_path / name).unlink()
    earlier = {name: value for name, value in settings.items() if name != "rounded"}

    assert add_rounded(tmp_path, earlier) == settings

    assert {path.name: path.read_bytes() for path in tmp_path.glob("rounded_*")} == written
    assert len(written) == 4
    assert add_rounded(tmp_path, settings) == settings  # nothing to do


def test_an_index_keeps_them_through_its_changes(
    dense_sample: IndexFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index of an earlier version is compacted; then a paper is deleted. Here 100 papers are enough for them."""
    folder, gone = tmp_path / "index", tmp_path / "gone.txt"
    copytree(dense_sample.path, folder)
    draft = Query(id="draft", title="Late interaction of token vectors", abstract="Passages.")
    config = RecommendConfig(k=30, ranker="none", reranker="none")
    monkeypatch.setattr(rounded, "FROM", 100)

    def hits(index: IndexFolder) -> list[tuple[str, Any]]:
        [items] = BatchRecommender(index, config).recommend([draft])
        return [(item.paper.id, item.stages.get("dense")) for item in items]

    before = hits(open_index(folder))
    compact_index(folder, UpdateConfig())

    manifest = verify_index(folder)
    assert manifest.settings["dense"]["rounded"]
    files = {f"dense/{path.name}" for path in (folder / "dense").glob("rounded_*")}
    assert len(files) == 4
    assert files <= manifest.checksums.keys()
    assert hits(open_index(folder)) == before

    gone.write_text(f"{before[0][0]}\n")
    update_index(folder, UpdateConfig(), removed=gone)
    assert np.load(folder / "dense" / rounded.SCALES).shape == (len(dense_sample.papers) - 1,)
    assert before[0][0] not in dict(hits(open_index(folder)))

    codes = folder / "dense" / rounded.CODES
    content = bytearray(codes.read_bytes())
    content[-1] ^= 1
    codes.write_bytes(content)
    with pytest.raises(IndexDamagedError, match="rounded_codes"):
        verify_index(folder)


@pytest.mark.parametrize("name", [rounded.CODES, rounded.SCALES, rounded.LOST, rounded.LENGTHS])
def test_a_file_that_is_cut_or_missing_is_refused(tmp_path: Path, name: str) -> None:
    write_rounded(tmp_path, in_topics(10), COSINE)
    whole = (tmp_path / name).read_bytes()

    (tmp_path / name).write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=name):
        Rounded.open(tmp_path, rows=10, dim=DIM, similarity=COSINE)

    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError):
        Rounded.open(tmp_path, rows=10, dim=DIM, similarity=COSINE)


def test_a_scale_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    write_rounded(tmp_path, in_topics(10), COSINE)
    np.save(tmp_path / rounded.SCALES, np.full(10, np.nan, np.float32))

    with pytest.raises(ValueError, match=r"rounded_scales\.npy holds a number that is not finite"):
        Rounded.open(tmp_path, rows=10, dim=DIM, similarity=COSINE)


def resident_kib(file: Path) -> int:
    """The memory of this process that holds pages of a mapped file, in KiB."""
    maps = Path("/proc/self/smaps").read_text().split(f"{file}\n")[1:]
    return sum(int(one.split("Rss:")[1].split()[0]) for one in maps)


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="Linux tells what is resident")
def test_no_page_of_the_exact_vectors_stays_in_memory(tmp_path: Path) -> None:
    papers = rounded.FROM
    vectors = np.tile(in_topics(papers), (1, 4)) / 2  # 96 dimensions: 4 * 50,000 * 96 are 19.2 MB
    settings = write_dense(tmp_path, [vectors], rows=papers, dim=96, similarity=COSINE)
    index = open_dense(tmp_path, settings, np.full(papers, 2000, np.int32))
    file = next(tmp_path.glob("vectors*"))
    every_hundredth = np.arange(0, papers, 100, dtype=np.int32)

    assert np.array_equal(index.vectors(every_hundredth), vectors[::100])
    assert resident_kib(file) == 0

    mapped = map_flat(file, rows=papers, dim=96, similarity=COSINE)
    without = ExactIndex(mapped, COSINE, np.full(papers, 2000, np.int32))
    assert np.array_equal(without.vectors(every_hundredth), vectors[::100])
    assert resident_kib(file) > 4 * len(every_hundredth) / 2  # pages of 4 KiB and their neighbours
    unmap_pages(mapped)
    assert resident_kib(file) == 0

    for queries in (1, FEW + 1):  # by rounded vectors; by all exact ones
        hits = index.nearest(vectors[:queries], [Eligibility()] * queries, 20)

        assert all(len(rows) >= 20 for rows, _ in hits)
        assert resident_kib(file) == 0


def test_the_largest_sums_of_codes_fit_into_32_bits(tmp_path: Path) -> None:
    """All codes of such vectors are 127 or -127, a query's are 16,383: 127 * 16,383 * 1,024 is just below 2**31."""
    papers = np.full((2, 1024), 1 / 32, np.float32)
    papers[1] *= -1
    index = write_rounded(tmp_path, papers, COSINE)

    bounds, rows = index.scan(kernel, papers[:1], 2, lambda *_: None, 0, 2)

    assert rows.tolist() == [[0, 1]]
    assert 1 <= bounds[0, 0] < 1.01
    assert -1 <= bounds[0, 1] < -0.99


@pytest.mark.skipif(not FlatFile.is_supported(), reason="this platform does not read at a position")
def test_a_file_that_becomes_shorter_is_reported(tmp_path: Path) -> None:
    vectors = in_topics(10)
    write_flat(tmp_path / "v", [(0, vectors)], rows=10, dim=DIM, similarity=COSINE)
    file = FlatFile(tmp_path / "v", rows=10, dim=DIM, similarity=COSINE)
    last = np.array([9], np.int32)
    assert np.array_equal(file.vectors(last), vectors[9:])

    os.truncate(tmp_path / "v", (tmp_path / "v").stat().st_size - 4)

    with pytest.raises(OSError, match="v became shorter after it was opened"):
        file.vectors(last)
    with pytest.raises(ValueError, match="not a flat index of 10 vectors"):
        FlatFile(tmp_path / "v", rows=10, dim=DIM, similarity=COSINE)
