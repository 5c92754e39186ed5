"""The vectors of an index: every kind finds what a comparison with all vectors finds, with exact scores."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import ModelError
from citerec.files.arrays import Vectors
from citerec.index import vectors
from citerec.index.vectors import NAME, DenseIndex, resolve, similarities, write_dense
from citerec.types import Eligibility

PAPERS, DIM, K = 3000, 32, 20
KINDS = [DenseKind.EXACT, DenseKind.SQ8, DenseKind.HNSW]
YEARS = np.arange(PAPERS, dtype=np.int32) % 20 + 2000


@pytest.fixture(scope="module")
def papers() -> Vectors:
    drawn = np.random.default_rng(0).normal(size=(PAPERS, DIM)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def written(
    folder: Path, rows: Vectors, kind: DenseKind, similarity: Similarity
) -> dict[str, Any]:
    parts = [rows[:1000], rows[1000:]]
    config = DenseIndexConfig(kind=kind)
    return write_dense(
        folder, parts, dim=rows.shape[1], similarity=similarity, config=config
    )


def best(
    query: Vectors, rows: Vectors, keep: npt.NDArray[np.bool_], similarity: Similarity
) -> Any:
    scores = (
        rows @ query
        if similarity is Similarity.COSINE
        else -np.linalg.norm(rows - query, axis=1)
    )
    return np.argsort(np.where(keep, -scores, np.inf), kind="stable")[:K].tolist()


@pytest.mark.parametrize("similarity", Similarity)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_the_nearest_eligible_papers(
    tmp_path: Path, papers: Vectors, kind: DenseKind, similarity: Similarity
) -> None:
    settings = written(tmp_path, papers, kind, similarity)
    queries = papers[[5, 17, 18, 19, 900]] + np.float32(0.01)
    rules = [
        Eligibility(),
        Eligibility(2003),
        Eligibility(2011),
        Eligibility(2003, excluded=frozenset({17, 20})),
        Eligibility(excluded=frozenset(range(800, 1000))),
    ]

    index = DenseIndex(tmp_path, settings, YEARS)
    found = index.nearest(queries, rules, K)

    for query, rule, (rows, scores) in zip(queries, rules, found, strict=True):
        keep = (rule.year_max >= YEARS) if rule.year_max else np.ones(PAPERS, np.bool_)
        keep[list(rule.excluded)] = False
        assert keep[rows].all()
        top = rows[np.argsort(-scores, kind="stable")][:K].tolist()
        assert len({*top} & {*best(query, papers, keep, similarity)}) >= K - (
            kind is not KINDS[0]
        )
        assert scores.tolist() == similarities(query, papers[rows], similarity).tolist()
    rows = np.array([7, 2999, 7])
    np.testing.assert_array_equal(index.vectors(rows), papers[rows])
    faiss = vectors.load()
    whole = faiss.read_index(str(tmp_path / NAME))
    stored = faiss.downcast_index(getattr(whole, "base_index", whole))
    np.testing.assert_allclose(
        index.approximate(rows), stored.reconstruct_batch(rows), atol=1e-6
    )


def test_queries_that_exclude_many_papers_in_common_find_the_nearest_others(
    tmp_path: Path, papers: Vectors
) -> None:
    settings = written(tmp_path, papers, DenseKind.EXACT, Similarity.COSINE)
    index, queries = DenseIndex(tmp_path, settings, YEARS), papers[[5, 17, 19]]
    retracted = frozenset(range(0, PAPERS, 2))
    rules = [Eligibility(excluded=retracted | {row}) for row in (5, 17, 19)]

    found = index.nearest(queries, rules, K)

    for query, rule, (rows, scores) in zip(queries, rules, found, strict=True):
        keep = np.isin(np.arange(PAPERS), [*rule.excluded], invert=True)
        top = rows[np.argsort(-scores, kind="stable")][:K].tolist()
        assert top == best(query, papers, keep, Similarity.COSINE)


def test_the_kind_follows_the_number_of_papers() -> None:
    kinds = [
        resolve(DenseKind.AUTO, rows) for rows in (50_000, 50_001, 1_000_000, 1_000_001)
    ]

    assert kinds == [DenseKind.EXACT, DenseKind.SQ8, DenseKind.SQ8, DenseKind.HNSW]


def test_wrong_vectors_are_refused(tmp_path: Path, papers: Vectors) -> None:
    long = papers[:10] * np.float32(2)
    with pytest.raises(ModelError, match="length 2"):
        written(tmp_path, long, DenseKind.EXACT, Similarity.COSINE)
    long[3, 0] = np.nan
    with pytest.raises(ModelError, match="paper 3"):
        written(tmp_path, long, DenseKind.EXACT, Similarity.L2)


@pytest.mark.parametrize("kind", KINDS)
def test_another_file_is_refused(
    tmp_path: Path, papers: Vectors, kind: DenseKind
) -> None:
    settings = written(tmp_path, papers, kind, Similarity.COSINE)
    other = DenseKind.SQ8 if kind is not DenseKind.SQ8 else DenseKind.EXACT

    for wrong in ({"kind": str(other)}, {"papers": 5}, {"dim": 31}):
        with pytest.raises(ValueError, match="it "):
            DenseIndex(tmp_path, settings | wrong, YEARS)
    (tmp_path / NAME).write_bytes(b"x" * 100_000)
    with pytest.raises(ValueError, match="cannot read"):
        DenseIndex(tmp_path, settings, YEARS)
