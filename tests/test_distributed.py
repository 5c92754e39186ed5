"""The parts of distributed work that need no Ray: checksums of shards, what a worker opens, batches of pairs."""

import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import numpy as np
import pytest

from citerec.config import Bm25Config, CrossEncoderConfig, RecommendConfig, RerankConfig
from citerec.distributed.cluster import check_reachable, connected
from citerec.distributed.embedding import worker_config as encoding_config
from citerec.distributed.recommending import worker_config
from citerec.distributed.records import write_list
from citerec.distributed.scoring import RayCrossEncoder, RayRunner, open_worker
from citerec.distributed.sharded import merged, open_shards
from citerec.distributed.shards import write_shard
from citerec.distributed.write import split_rows
from citerec.embed import EmbedConfig, embed_anew, shard_folder
from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.opening import open_encoder
from citerec.errors import ClusterError, ConfigError, MissingExtraError
from citerec.folder import IndexFolder, open_index
from citerec.recommend import BatchRecommender
from citerec.rerank.cross_encoder import open_reranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.rules.eligible import eligible
from citerec.shards import is_complete
from citerec.shards import write_shard as write_vectors
from citerec.text import QueryForm
from citerec.types import Eligibility, Query

Build = Callable[..., IndexFolder]
PAPERS = [{"id": f"p{i}", "title": f"paper on term {i}", "year": 2000 + i} for i in range(10)]


class HerePool:
    """Runs items in this process, the last one first."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def results(self, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for number, item in reversed([*enumerate(items)]):
            yield number, self._work(item)


def test_a_missing_ray_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    with (
        pytest.raises(MissingExtraError, match=r"pip install 'citerec\[ray\]'"),
        connected("local"),
    ):
        pass


def test_a_shard_whose_values_changed_is_not_complete(tmp_path: Path) -> None:
    file, vectors = tmp_path / "shard.npy", np.arange(6, dtype=np.float32).reshape(2, 3)
    write_vectors(file, vectors)
    assert is_complete(file, (2, 3))
    assert np.array_equal(np.load(file, mmap_mode="r"), vectors)

    content = bytearray(file.read_bytes())
    content[-40] ^= 1  # in the values, which precede 32 bytes of checksum
    file.write_bytes(content)

    assert not is_complete(file, (2, 3))


def test_only_missing_shards_are_encoded_elsewhere(build: Build, tiny_model: str) -> None:
    index, encoder, sent = build(PAPERS), open_encoder(tiny_model), list[range]()
    embed_anew(index.path, encoder, EmbedConfig(shard=3))
    expected = (index.path / "dense/vectors.faiss").read_bytes()

    def elsewhere(encoder: Any, base: Path, papers: Any, missing: Any) -> Iterator[Any]:
        for shard in reversed(missing):  # in any order
            sent.append(shard.rows)
            if len(sent) == 3:
                raise ClusterError("the last worker was lost")
            yield shard, encoder.encode([*papers.at(shard.rows).values()])

    config = EmbedConfig(shard=3, elsewhere=elsewhere, resume=True)
    with pytest.raises(ClusterError):
        embed_anew(index.path, encoder, config)
    embed_anew(index.path, encoder, config)

    assert sent == [range(9, 10), range(6, 9), range(3, 6), range(3, 6), range(3)]
    assert (index.path / "dense/vectors.faiss").read_bytes() == expected
    assert not shard_folder(index.path).exists()


def test_a_worker_encodes_in_the_precision_of_the_command() -> None:
    config = encoding_config(EncodeConfig(batch_tokens=64), "bfloat16")

    assert (config.precision, config.device) == (Precision.BFLOAT16, "cpu")
    assert (config.threads, config.batch_tokens) == (1, 64)


def test_a_worker_reranks_as_deep_as_the_command(
    dense_sample: IndexFolder, tiny_reranker_model: str
) -> None:
    one = CrossEncoderConfig(model=tiny_reranker_model)
    config = RecommendConfig(reranker=RerankConfig(cross_encoders=(one,)), ranker="none")
    recommender = BatchRecommender(dense_sample, config)
    assert recommender.cascade

    found = worker_config(config, recommender.cascade, threads=1)

    assert isinstance(found.reranker, RerankConfig)
    [encoder] = found.reranker.cross_encoders
    assert encoder == replace(one, depth=recommender.cascade.depth)
    assert (found.reranker.threads, found.bm25.threads, found.dense.threads) == (1, 1, 1)


def test_pairs_scored_by_workers_have_the_same_scores_bit_by_bit(
    sample_index: IndexFolder, tiny_reranker_model: str
) -> None:
    model = open_reranker(tiny_reranker_model, None, EncodeConfig(batch_tokens=128))
    queries = [Query(id=f"q{i}", title=f"retrieval of {i} papers " * (i + 1)) for i in range(4)]
    rows = [np.arange(i, 40, 2, dtype=np.int32) for i in range(4)]
    config = encoding_config(model.config, model.precision)
    spec = model.spec
    work = open_worker(
        model.source, model.fingerprint, config, spec.query_tokens, spec.candidate_tokens
    )
    pool: Any = HerePool(work)

    expected = model.score(sample_index, queries, rows)
    found = RayCrossEncoder(model, RayRunner(model, pool)).score(sample_index, queries, rows)

    assert [scores.tolist() for scores in found] == [scores.tolist() for scores in expected]


def test_a_worker_refuses_another_model_at_the_path(tiny_reranker_model: str) -> None:
    with pytest.raises(ClusterError, match="another model; copy the model to all nodes"):
        open_worker(Path(tiny_reranker_model), "0" * 64, EncodeConfig(), 0, 0)


def test_ray_is_for_builds_not_for_changes(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    from citerec.cli import run

    index = build(PAPERS)

    code = run(["index", "--index", str(index.path), "--rollback", "--ray", "local"])

    assert code == 2
    assert "--ray builds indexes; leave it out to change one" in capsys.readouterr().err
    assert open_index(index.path).manifest == index.manifest


def sharded(index: IndexFolder, folder: Path, count: int) -> Path:
    parts = enumerate(split_rows(len(index.papers), count))
    created = index.manifest.created
    records = [write_shard(index.papers, rows, folder / f"s{i}", created) for i, rows in parts]
    write_list(folder / "shards.json", records)
    return folder


def test_rows_are_divided_in_order_into_parts_of_nearly_one_size() -> None:
    assert split_rows(10, 3) == [range(3), range(3, 6), range(6, 10)]
    with pytest.raises(ConfigError, match="2 papers cannot be divided into 3 shards"):
        split_rows(2, 3)


def test_the_best_of_all_shards_are_merged_with_ties_by_docid() -> None:
    first = np.array([4, 0], np.int32), np.array([2, 1], np.float32)
    second = np.array([3, 9], np.int32), np.array([2, 3], np.float32)

    hits = merged([first, second], np.arange(10, dtype=np.int32), 3)

    assert hits.rows.tolist() == [9, 3, 4]
    assert hits.scores.tolist() == [3, 2, 2]


@pytest.fixture(scope="module")
def shards(sample_index: IndexFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sharded(sample_index, tmp_path_factory.mktemp("shards"), 3)


@pytest.mark.parametrize("form", [QueryForm.TITLE_ABSTRACT, QueryForm.KEY_TERMS])
def test_hits_of_shards_equal_those_of_the_whole_index(
    sample_index: IndexFolder, shards: Path, form: QueryForm
) -> None:
    config = Bm25Config(form=form)
    queries = [
        Query(id=p.id, title=p.title, abstract=p.abstract, year=p.year)
        for p in sample_index.papers.at(range(0, 300, 9)).values()
    ]
    rules = eligible(queries, sample_index.papers, excluded=frozenset({5, 150, 290}))

    expected = Bm25Retriever(sample_index, config).retrieve(queries, rules, 50)
    with open_shards(sample_index, shards, config=config) as bm25:
        found = bm25.retrieve(queries, rules, 50)

    assert bm25.name == "bm25"
    for one, other in zip(found, expected, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_scores_by_shards_are_those_of_the_whole_index(
    sample_index: IndexFolder, shards: Path
) -> None:
    papers = sample_index.papers.at(range(0, 300, 50)).values()
    queries = [Query(id=p.id, title=p.title) for p in papers] + [Query(id="none", title="zxqwv")]
    rows = np.random.default_rng(0).permutation(len(sample_index.papers))[:200].astype(np.int32)

    expected = Bm25Retriever(sample_index).scores_of_papers(queries, rows)
    with open_shards(sample_index, shards) as bm25:
        found = bm25.scores_of_papers(queries, rows)

    assert found.tobytes() == expected.tobytes()
    assert (expected[:-1] > 0).any(axis=1).all()
    assert not expected[-1].any()


def test_a_query_without_a_word_finds_nothing_in_shards(
    sample_index: IndexFolder, shards: Path
) -> None:
    wordless = Query(id="q", title="The of and")
    rows = np.arange(3, dtype=np.int32)

    with open_shards(sample_index, shards) as bm25:
        [hits] = bm25.retrieve([wordless], [Eligibility()], 10)
        scores = bm25.scores_of_papers([wordless], rows)

    assert len(hits) == 0
    assert scores.tolist() == [[0, 0, 0]]


def test_the_ranked_list_over_shards_is_that_of_the_whole_index(
    sample_index: IndexFolder, shards: Path
) -> None:
    """The default model reads BM25 scores of single sentences; so shards have to give the same ones."""
    draft = Query(
        id="draft",
        title="Late interaction for passages",
        abstract="We compress the vectors of tokens with product quantization. "
        "A cross-encoder is compared with BM25 on open-domain questions.",
        year=2022,
    )
    config = RecommendConfig(k=30, encoder="none", reranker="none")

    [expected] = BatchRecommender(sample_index, config).recommend([draft])
    with open_shards(sample_index, shards) as bm25:
        [found] = BatchRecommender(sample_index, config, retrievers=[bm25]).recommend([draft])

    assert [(item.paper.id, item.score) for item in found] == [
        (item.paper.id, item.score) for item in expected
    ]
    assert len(found) == 30


def test_a_missing_shard_is_an_error_and_partial_answers_are_marked(
    sample_index: IndexFolder, shards: Path, tmp_path: Path
) -> None:
    folder, messages = copytree(shards, tmp_path / "shards"), list[str]()
    rmtree(folder / "s1")
    with (
        pytest.raises(ClusterError, match=r"s1, one of 3 shards, .* the folder does not exist"),
        open_shards(sample_index, folder),
    ):
        pass

    with open_shards(sample_index, folder, allow_missing=True, log=messages.append) as bm25:
        config = RecommendConfig(k=5, ranker="none", reranker="none")
        recommender = BatchRecommender(sample_index, config, retrievers=[bm25])
        query = Query(id="q", title="dense retrieval of passages")
        [result] = recommender.stream([query])

    assert [message.endswith("the answers are partial") for message in messages] == [True]
    assert result.items
    assert all([*item.stages] == ["bm25-partial"] for item in result.items)
    assert (
        "the list is partial: bm25 searched without the shards that are missing" in result.notices
    )


def test_a_damaged_shard_is_written_again_and_the_others_are_kept(
    sample_index: IndexFolder, shards: Path, tmp_path: Path
) -> None:
    folder = copytree(shards, tmp_path / "shards")
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.npy")}
    content = bytearray((folder / "s2" / "years.npy").read_bytes())
    content[-1] ^= 1
    (folder / "s2" / "years.npy").write_bytes(content)
    with pytest.raises(ClusterError, match="s2"), open_shards(sample_index, folder):
        pass

    sharded(sample_index, folder, 3)

    with open_shards(sample_index, folder):
        pass
    after = {file: file.stat().st_mtime_ns for file in folder.rglob("*.npy")}
    changed = {file.relative_to(folder).parts[0] for file in after if after[file] != before[file]}
    assert changed == {"s2"}


def test_shards_of_another_index_are_refused(shards: Path, build: Build) -> None:
    with (
        pytest.raises(ConfigError, match="shards of another index"),
        open_shards(build(PAPERS), shards),
    ):
        pass


def test_replicas_out_of_range_are_refused() -> None:
    from citerec.distributed.serving import Replicas

    with pytest.raises(ConfigError, match="at least 1, and at most as many as 2, got 3"):
        Replicas(least=3, most=2)


def test_a_list_of_no_shards_is_damaged(sample_index: IndexFolder, tmp_path: Path) -> None:
    (tmp_path / "shards.json").write_text("[]")

    with (
        pytest.raises(ClusterError, match=r"shards\.json lists no shard; build"),
        open_shards(sample_index, tmp_path),
    ):
        pass


@pytest.mark.parametrize("address", ["", "http://127.0.0.1:6379", "127.0.0.1:22222222"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ClusterError, match=r"is no address of a Ray cluster; expected local, auto"):
        check_reachable(address)


def test_an_address_where_nothing_listens_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        check_reachable(f"127.0.0.1:{port}")
        check_reachable("auto")

    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(ClusterError, match=f"no Ray cluster at {address}: .* ray start --head"):
            check_reachable(address)
