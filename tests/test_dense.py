"""Dense retrieval, held against brute force in numpy: eligibility, ties, batches, damage."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.corpora import built
from support.types import Build

from citerec.config import DenseConfig, DenseIndexConfig, DenseKind, RecommendConfig
from citerec.encode.spec import EncoderSpec, Fingerprint, Similarity
from citerec.errors import (
    EncoderMismatchError,
    IndexReplacedError,
    ModelError,
)
from citerec.index.folder import IndexFolder, checksums, open_index, write_manifest
from citerec.index.vectors import similarities, write_dense
from citerec.recommend import Recommender
from citerec.retrieve.dense import DenseRetriever, sentence_queries
from citerec.rules.eligible import mask
from citerec.types import Eligibility, Hits, Query

Vectors = npt.NDArray[np.float32]

L2, COSINE = Similarity
KINDS = [DenseKind.EXACT, DenseKind.SQ8, DenseKind.HNSW]
ANYBODY = Eligibility()
DIM = 16
N = 3_000


def a_fingerprint(
    similarity: Similarity = L2, weights: str = "1234567890"
) -> Fingerprint:
    spec = EncoderSpec(similarity=similarity)
    return Fingerprint(
        name="letters",
        source="here",
        weights=weights,
        tokenizer="t",
        dim=DIM,
        spec=spec,
    )


@dataclass
class Letters:
    """An encoder that counts letters; it notes how often it is asked."""

    fingerprint: Fingerprint = field(default_factory=a_fingerprint)
    asked: list[int] = field(default_factory=list[int])

    def encode(self, papers: Sequence[Query]) -> Vectors:
        self.asked.append(len(papers))
        counts = [
            [paper.title.count(letter) for letter in "abcdefghijklmnop"]
            for paper in papers
        ]
        return np.array(counts, np.float32).reshape(-1, DIM)


def some_vectors(n: int, *, unit: bool = False, seed: int = 3) -> Vectors:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, DIM)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if unit else vectors


def embedded(
    index: IndexFolder, vectors: Vectors, similarity: Similarity = L2, **config: Any
) -> IndexFolder:
    """Give an index vectors, as `citerec encode` does."""
    said = write_dense(
        index.path / "dense",
        [vectors],
        dim=vectors.shape[1],
        similarity=similarity,
        config=DenseIndexConfig(**config),
    )
    encoder = asdict(a_fingerprint(similarity))
    settings = {**index.manifest.settings, "dense": said, "encoder": encoder}
    manifest = replace(
        index.manifest, settings=settings, checksums=checksums(index.path)
    )
    write_manifest(index.path, manifest)
    return open_index(index.path)


def opened(index: IndexFolder, **config: Any) -> DenseRetriever:
    similarity = Similarity(index.manifest.settings["dense"]["similarity"])
    return DenseRetriever(
        index, Letters(a_fingerprint(similarity)), DenseConfig(**config)
    )


def papers(n: int, years: Sequence[int | None] = (None,)) -> list[dict[str, Any]]:
    """Papers whose ids do not rise with their rows."""
    return [
        {"id": f"p{(i * 7919) % n:05}", "title": "x", "year": years[i % len(years)]}
        for i in range(n)
    ]


def by_brute_force(
    index: IndexFolder, vectors: Vectors, query: Vectors, rule: Eligibility, k: int
) -> list[int]:
    """The best rows by the scores that count: pair by pair, ties by docid, in plain Python."""
    similarity = Similarity(index.manifest.settings["dense"]["similarity"])
    scores = similarities(query, vectors, similarity).tolist()
    allowed = np.flatnonzero(mask(rule, index.papers.years)).tolist()
    return sorted(allowed, key=lambda row: (-scores[row], index.papers.ids[row]))[:k]


def check_order(index: IndexFolder, hits: Hits) -> None:
    places = [
        (-s, index.papers.ids[row])
        for row, s in zip(hits.rows, hits.scores, strict=True)
    ]
    assert places == sorted(places)
    assert len(set(hits.rows.tolist())) == len(hits)
    assert (hits.rows.dtype, hits.scores.dtype) == (np.int32, np.float32)


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> IndexFolder:
    """Papers of the years 2000 to 2009, every tenth undated; no vectors yet."""
    years = [None, *range(2000, 2010), *range(2003, 2010)]
    return built(tmp_path_factory.mktemp("dated"), papers(N, years))


@pytest.fixture(scope="module")
def every_kind(
    tmp_path_factory: pytest.TempPathFactory, dated: IndexFolder
) -> Callable[[DenseKind, Similarity], IndexFolder]:
    """The dated papers with an index of vectors of any kind."""
    import shutil

    made: dict[tuple[DenseKind, Similarity], IndexFolder] = {}

    def get(kind: DenseKind, similarity: Similarity = L2) -> IndexFolder:
        if (kind, similarity) not in made:
            folder = tmp_path_factory.mktemp(kind) / "index"
            shutil.copytree(dated.path, folder)
            vectors = some_vectors(N, unit=similarity is COSINE)
            made[kind, similarity] = embedded(
                open_index(folder), vectors, similarity, kind=kind
            )
        return made[kind, similarity]

    return get


RULES = [
    Eligibility(),
    Eligibility(2004, frozenset([1, 2, 3])),
    Eligibility(2000, frozenset(range(0, N, 2))),
    Eligibility(1999),
    Eligibility(None, frozenset(range(5, N))),
    Eligibility(None, frozenset(range(N))),
    Eligibility(-5, frozenset([0])),
    Eligibility(2**40, frozenset([17])),
    Eligibility(2006, frozenset(range(150))),
]


# --- the exact index gives what brute force gives


@pytest.mark.parametrize("similarity", Similarity)
@pytest.mark.parametrize("k", [1, 10, N, 2**70])
def test_exact_hits_are_those_of_brute_force_under_every_rule(
    every_kind: Build, similarity: Similarity, k: int
) -> None:
    index = every_kind(DenseKind.EXACT, similarity)
    vectors = some_vectors(N, unit=similarity is COSINE)
    queries = some_vectors(len(RULES), unit=similarity is COSINE, seed=8)

    results = opened(index).search(queries, RULES, k)

    for query, rule, hits in zip(queries, RULES, results, strict=True):
        assert hits.rows.tolist() == by_brute_force(index, vectors, query, rule, k)
        check_order(index, hits)


def test_a_score_is_the_inner_product_or_minus_the_distance(build: Build) -> None:
    vectors = np.zeros((3, DIM), np.float32)
    vectors[:, :2] = [(1, 0), (0.6, 0.8), (0, 1)]
    query = vectors[:1]
    index = build(papers(3))

    [by_cosine] = opened(embedded(index, vectors, COSINE)).search(query, [ANYBODY], 3)
    [by_distance] = opened(embedded(index, vectors, L2)).search(query, [ANYBODY], 3)

    assert by_cosine.rows.tolist() == by_distance.rows.tolist() == [0, 1, 2]
    assert by_cosine.scores == pytest.approx([1, 0.6, 0])
    # (1, 0) to (.6, .8): sqrt(.16 + .64); to (0, 1): sqrt(2).
    assert by_distance.scores == pytest.approx([0, -np.sqrt(0.8), -np.sqrt(2)])


# --- k eligible hits come back, fewer only if fewer are eligible


@pytest.mark.parametrize("similarity", Similarity)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [5, N])
def test_k_eligible_hits_come_back_whatever_the_kind(
    every_kind: Build, kind: DenseKind, similarity: Similarity, k: int
) -> None:
    index = every_kind(kind, similarity)
    queries = some_vectors(len(RULES), unit=similarity is COSINE, seed=8)

    results = opened(index).search(queries, RULES, k)

    for rule, hits in zip(RULES, results, strict=True):
        allowed = mask(rule, index.papers.years)
        assert allowed[hits.rows].all()
        assert len(hits) == min(k, np.count_nonzero(allowed))
        check_order(index, hits)


# --- ties


@pytest.mark.parametrize("kind", [DenseKind.EXACT, DenseKind.HNSW])
@pytest.mark.parametrize("similarity", Similarity)
def test_ties_across_the_k_boundary_stand_by_id(
    build: Build, kind: DenseKind, similarity: Similarity
) -> None:
    """Five better papers, then 3000 of one vector."""
    query = some_vectors(1, unit=True)
    vectors = np.repeat(-query, 3005, axis=0)
    better = query + 0.1 * some_vectors(5, seed=8)
    vectors[1000:1005] = better / np.linalg.norm(better, axis=1, keepdims=True)
    index = embedded(build(papers(3005)), vectors, similarity, kind=kind)
    retriever = opened(index)
    twins = sorted(
        index.papers.ids_at([i for i in range(3005) if not 1000 <= i < 1005])
    )

    for k in (1, 5, 6, 10, 100, 3004, 3005, 10_000):
        [hits] = retriever.search(query, [ANYBODY], k)

        ids = index.papers.ids_at(hits.rows)
        assert set(ids[:5]) <= set(index.papers.ids_at(range(1000, 1005)))
        assert ids[5:] == twins[: max(k - 5, 0)], k


# --- queries and encoders


def test_queries_are_encoded_as_one_batch(build: Build) -> None:
    encoder = Letters()
    texts = ["aaab", "bbbb", "cab"]
    records = [{"id": text, "title": text} for text in texts]
    vectors = encoder.encode([Query(id=text, title=text) for text in texts])
    index = embedded(build(records), vectors)

    retriever = DenseRetriever(index, encoder)
    queries = [Query(id="q", title="bbba"), Query(id="r", title="abc")]
    results = retriever.retrieve(queries, [ANYBODY] * 2, 2)

    # bbba to bbbb: one a and one b, sqrt(2). To aaab: sqrt(8), to cab: sqrt(1 + 4).
    assert [index.papers.ids_at(h.rows) for h in results] == [
        ["bbbb", "cab"],
        ["cab", "aaab"],
    ]
    assert results[0].scores == pytest.approx([-np.sqrt(2), -np.sqrt(5)])
    assert encoder.asked == [3, 2]
    assert retriever.retrieve([], [], 2) == []


def test_a_text_in_place_of_a_title_is_compared_sentence_by_sentence() -> None:
    need = Query(id="q", title="I label data for a task. I need to know its costs.")
    draft = replace(need, abstract="Labels cost money and time.")

    assert [part.title for part in sentence_queries(need)] == [
        "I label data for a task.",
        "I need to know its costs.",
    ]
    assert [part.title for part in sentence_queries(draft)] == [
        "I label data for a task. I need to know its costs.",
        "Labels cost money and time.",
    ]


def test_another_encoder_is_refused_with_what_to_do(every_kind: Build) -> None:
    index = every_kind(DenseKind.EXACT)

    with pytest.raises(
        EncoderMismatchError, match=r"embedded by letters \(weights 12345678\), not by"
    ):
        DenseRetriever(index, Letters(a_fingerprint(weights="abcdefgh")))
    with pytest.raises(
        EncoderMismatchError, match=r"leave --encoder out, or embed it anew"
    ):
        DenseRetriever(index, Letters(a_fingerprint(COSINE)))


def test_a_vector_that_is_not_finite_is_refused(every_kind: Build) -> None:
    retriever = opened(every_kind(DenseKind.EXACT))
    broken = some_vectors(1)
    broken[0, 3] = np.inf

    with pytest.raises(ModelError, match="a vector that is not finite"):
        retriever.search(broken, [ANYBODY], 5)


# --- damage


def test_vectors_of_an_index_that_was_replaced_are_not_opened(build: Build) -> None:
    index = embedded(build(papers(5)), some_vectors(5))
    embedded(index, some_vectors(5, seed=9))

    with pytest.raises(IndexReplacedError):
        Recommender(index, RecommendConfig(encoder="none", ranker="none"))
