"""Vectors in shards: the papers and scores of the whole index, bit by bit; missing shards are not passed over."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from citerec.config import RecommendConfig
from citerec.distributed.records import write_list
from citerec.distributed.vectors import LIST, identity_of, open_vector_shards, write_vector_shard
from citerec.distributed.write import split_rows
from citerec.encode.encoder import Encoder
from citerec.encode.opening import open_encoder
from citerec.errors import ClusterError, ConfigError
from citerec.folder import IndexFolder
from citerec.recommend import BatchRecommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.rules.eligible import eligible
from citerec.types import Query

Build = Callable[..., IndexFolder]


def sharded(index: IndexFolder, folder: Path, count: int) -> Path:
    parts = enumerate(split_rows(len(index.papers), count))
    records = [write_vector_shard(index, rows, folder / f"v{i}") for i, rows in parts]
    write_list(folder / LIST, records)
    return folder


@pytest.fixture(scope="module")
def shards(dense_sample: IndexFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sharded(dense_sample, tmp_path_factory.mktemp("shards"), 3)


@pytest.fixture(scope="module")
def encoder(tiny_model: str) -> Encoder:
    return open_encoder(tiny_model)


def drafts(index: IndexFolder) -> list[Query]:
    papers = index.papers.at(range(0, 300, 9)).values()
    return [Query(id=p.id, title=p.title, abstract=p.abstract, year=p.year) for p in papers]


@pytest.mark.parametrize("k", [1, 50, 250])  # a shard has 100 papers
def test_hits_of_shards_equal_those_of_the_whole_index(
    dense_sample: IndexFolder, shards: Path, encoder: Encoder, k: int
) -> None:
    queries = drafts(dense_sample)
    rules = eligible(queries, dense_sample.papers, excluded=frozenset({5, 150, 290}))

    expected = DenseRetriever(dense_sample, encoder).retrieve(queries, rules, k)
    with open_vector_shards(dense_sample, shards) as vectors:
        dense = DenseRetriever(dense_sample, encoder, search=vectors)
        found = dense.retrieve(queries, rules, k)

    assert dense.name == "dense"
    for one, other in zip(found, expected, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_large_shards_compare_rounded_vectors_first_and_find_the_same(
    dense_sample: IndexFolder,
    encoder: Encoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("citerec.index.dense.rounded.FROM", 100)  # papers
    monkeypatch.setattr("citerec.index.dense.exact.WORTH_COMPILING", 0)
    folder = sharded(dense_sample, tmp_path / "shards", 3)
    queries = drafts(dense_sample)
    rules = eligible(queries, dense_sample.papers)

    expected = DenseRetriever(dense_sample, encoder).retrieve(queries, rules, 20)
    with open_vector_shards(dense_sample, folder) as vectors:
        dense = DenseRetriever(dense_sample, encoder, search=vectors)
        found = [
            dense.retrieve([query], [rule], 20)[0]
            for query, rule in zip(queries, rules, strict=True)
        ]

    assert (folder / "v0" / "rounded_codes.npy").is_file()
    for one, other in zip(found, expected, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_recommendations_by_shards_are_those_of_the_index(
    dense_sample: IndexFolder, shards: Path, encoder: Encoder
) -> None:
    config = RecommendConfig(k=10, ranker="none", reranker="none", diversity=0.3)
    queries = drafts(dense_sample)[:5]

    expected = BatchRecommender(dense_sample, config).recommend(queries)
    with open_vector_shards(dense_sample, shards) as vectors:
        dense = DenseRetriever(dense_sample, encoder, search=vectors)
        retrievers = [Bm25Retriever(dense_sample), dense]
        found = BatchRecommender(dense_sample, config, retrievers=retrievers).recommend(queries)

    assert found == expected


def test_a_missing_shard_is_an_error_and_partial_answers_are_marked(
    dense_sample: IndexFolder, shards: Path, encoder: Encoder, tmp_path: Path
) -> None:
    folder, messages = copytree(shards, tmp_path / "shards"), list[str]()
    rmtree(folder / "v1")
    with (
        pytest.raises(ClusterError, match=r"v1, one of 3 shards, .* the folder does not exist"),
        open_vector_shards(dense_sample, folder),
    ):
        pass

    with open_vector_shards(
        dense_sample, folder, allow_missing=True, log=messages.append
    ) as vectors:
        config = RecommendConfig(k=5, ranker="none", reranker="none")
        dense = DenseRetriever(dense_sample, encoder, search=vectors)
        recommender = BatchRecommender(dense_sample, config, retrievers=[dense])
        query = Query(id="q", title="dense retrieval of passages")
        [result] = recommender.stream([query])

    assert [message.endswith("the answers are partial") for message in messages] == [True]
    assert result.items
    assert all([*item.stages] == ["dense-partial"] for item in result.items)
    assert (
        "the list is partial: dense searched without the shards that are missing" in result.notices
    )


def test_a_damaged_shard_is_written_again_and_the_others_are_kept(
    dense_sample: IndexFolder, shards: Path, tmp_path: Path
) -> None:
    folder = copytree(shards, tmp_path / "shards")
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.faiss")}
    content = bytearray((folder / "v2" / "vectors.faiss").read_bytes())
    content[-1] ^= 1
    (folder / "v2" / "vectors.faiss").write_bytes(content)
    with pytest.raises(ClusterError, match="v2"), open_vector_shards(dense_sample, folder):
        pass

    sharded(dense_sample, folder, 3)

    with open_vector_shards(dense_sample, folder):
        pass
    after = {file: file.stat().st_mtime_ns for file in folder.rglob("*.faiss")}
    changed = {file.relative_to(folder).parts[0] for file in after if after[file] != before[file]}
    assert changed == {"v2"}


def test_shards_of_other_vectors_and_approximate_vectors_are_refused(
    dense_sample: IndexFolder, sample_index: IndexFolder, shards: Path
) -> None:
    manifest = dense_sample.manifest
    sums = {**manifest.checksums, "dense/vectors.faiss": "0" * 64}
    other = replace(dense_sample, manifest=replace(manifest, checksums=sums))
    settings = {**manifest.settings, "dense": {**manifest.settings["dense"], "kind": "hnsw"}}
    approximate = replace(dense_sample, manifest=replace(manifest, settings=settings))

    with pytest.raises(ConfigError, match="of another index"), open_vector_shards(other, shards):
        pass
    with pytest.raises(ConfigError, match="vectors of the kind hnsw, shards need exact ones"):
        identity_of(approximate)
    with pytest.raises(ConfigError, match="has no vectors"):
        identity_of(sample_index)
