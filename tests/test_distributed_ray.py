"""Work on a real Ray cluster of two node processes on this machine: lost workers, new nodes, the same results."""

import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from secrets import token_hex
from shutil import copytree
from typing import Any

import pytest

pytest.importorskip("ray", reason="ray is not installed", exc_type=ImportError)
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_TOKEN"] = token_hex(32)  # not the user's, which a file would hold

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.config import (
    RecommendConfig,
    RerankConfig,
)
from citerec.distributed import RayRecommender, RayShards
from citerec.distributed.cluster import Cluster, Pool, connected
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.opening import open_encoder
from citerec.errors import ClusterError
from citerec.folder import IndexFolder, open_index
from citerec.recommend import Recommender
from citerec.types import Query

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NODE = {"num_cpus": 1, "object_store_memory": 2**27}
Build = Callable[..., IndexFolder]


@pytest.fixture(scope="module")
def nodes() -> Generator[Any]:
    """Two nodes of one processor each, which are processes of this machine."""
    from ray.cluster_utils import Cluster as Nodes

    cluster = Nodes(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    cluster.add_node(**NODE)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def cluster(nodes: Any) -> Iterator[Cluster]:
    with connected(nodes.address) as cluster:
        yield cluster


def workers(kind: bytes = b"ray::Worker") -> list[int]:
    """The processes that run actors of this test's cluster."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(kind) and is_below(int(folder.name), os.getpid()):
            found.append(int(folder.name))
    return found


def is_below(process: int, ancestor: int) -> bool:
    while process > 1 and process != ancestor:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process == ancestor


def test_vectors_of_workers_equal_those_of_this_process_though_one_is_killed(
    dense_sample: IndexFolder, tiny_model: str, tmp_path: Path, cluster: Cluster
) -> None:
    index, encoder = copytree(dense_sample.path, tmp_path / "index"), open_encoder(tiny_model)
    embed_anew(index, encoder, EmbedConfig(shard=20))
    expected = (index / "dense/vectors.faiss").read_bytes()
    killed, messages = list[int](), list[str]()

    def progress(what: str, done: int, total: int) -> None:
        if what == "encoding" and done > 60 and not killed:
            killed.extend(workers()[:1])
            os.kill(killed[0], signal.SIGKILL)

    elsewhere = RayShards(cluster, messages.append)
    embed_anew(index, encoder, EmbedConfig(shard=20, elsewhere=elsewhere), progress)

    assert killed
    assert (index / "dense/vectors.faiss").read_bytes() == expected
    # a worker between two shards is replaced without a message
    assert all("its work is given to another one" in message for message in messages)


def test_an_item_that_kills_every_worker_is_an_error(cluster: Cluster) -> None:
    def die(item: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return item

    with (
        Pool[int, int](cluster, lambda: die) as pool,
        pytest.raises(ClusterError, match="4 workers were lost with the same item"),
    ):
        list(pool.results([1]))


def test_a_lost_worker_loses_no_item_and_writes_nothing_among_the_results(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    marker, messages = str(tmp_path / "killed"), list[str]()

    def work(item: int) -> int:
        if item == 3 and not os.path.exists(marker):  # noqa: PTH110
            with open(marker, "w"):  # noqa: PTH123
                os.kill(os.getpid(), signal.SIGKILL)
        return item * item

    with Pool[int, int](cluster, lambda: work, log=messages.append) as pool:
        results = list(pool.in_order(range(8)))

    assert results == [0, 1, 4, 9, 16, 25, 36, 49]
    assert len(messages) == 1
    assert messages[0].startswith("a worker was lost")
    time.sleep(2)  # Ray's own message of it comes a moment later
    assert capfd.readouterr().out == ""


def test_an_error_of_a_worker_is_one_line(cluster: Cluster) -> None:
    def open_nothing() -> Callable[[int], int]:
        from citerec.errors import ModelError

        raise ModelError("no model at /models/minilm")

    with (
        Pool[int, int](cluster, open_nothing) as pool,
        pytest.raises(ClusterError, match="a worker failed: no model at /models/minilm"),
    ):
        list(pool.results([1, 2]))


def test_a_node_that_is_added_takes_part_and_one_that_is_removed_loses_nothing(
    nodes: Any, cluster: Cluster
) -> None:
    def work(item: int) -> tuple[int, str]:
        import time

        import ray

        time.sleep(0.5)
        return item, ray.get_runtime_context().get_node_id()

    added, seen, numbers = None, list[str](), list[int]()
    with Pool[int, tuple[int, str]](cluster, lambda: work) as pool:
        for number, (item, node) in pool.results(range(200)):
            assert item == number
            numbers.append(number)
            seen.append(node)
            if len(seen) == 3:
                added = nodes.add_node(**NODE)
            if added and added.node_id in seen:
                nodes.remove_node(added, allow_graceful=False)
                break
        else:
            pytest.fail("no item was given to the new node")
        rest = dict(pool.results(range(20)))  # by the nodes that are left

    assert sorted(rest) == [*range(20)]


def test_recommendations_of_workers_equal_those_of_this_process(
    dense_sample: IndexFolder, tiny_reranker_model: str, cluster: Cluster
) -> None:
    config = RecommendConfig(
        k=5, reranker=RerankConfig(model=tiny_reranker_model, depth=10), ranker="none"
    )
    recommender = Recommender(dense_sample, config)
    papers = dense_sample.papers.at(range(len(dense_sample.papers))).values()
    queries = [Query(id=p.id, title=p.title, abstract=p.abstract, year=p.year) for p in papers]
    assert len(queries) > 256  # two blocks

    expected = list(recommender.recommend_many(queries))
    found = list(RayRecommender(recommender, cluster).recommend_many(queries))

    assert found == expected


def test_the_commands_print_the_same_with_and_without_ray(
    nodes: Any, sample_index: IndexFolder, tiny_model: str, tmp_path: Path, capsys: Any
) -> None:
    index = copytree(sample_index.path, tmp_path / "index")
    query = tmp_path / "queries.jsonl"
    query.write_text('{"id": "a", "title": "Dense retrieval"}\n{"id": "b", "title": "Parsing"}\n')
    ray = ("--ray", nodes.address)

    def output(*command: str) -> str:
        code = run([*command, "--index", str(index)])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    output("encode", "--encoder", tiny_model, *ray)
    assert open_index(index).is_embedded
    recommend = ("recommend", "--query", str(query), "--format", "json", "--reranker", "none")
    assert output(*recommend, *ray) == output(*recommend)


def test_an_index_built_with_ray_equals_one_built_without(
    nodes: Any, tiny_model: str, tmp_path: Path, write_jsonl: Callable[..., Path], java: None
) -> None:
    corpus = write_jsonl([{"id": f"p{i}", "title": f"paper on term {i}"} for i in range(50)])
    plain, ray = tmp_path / "plain", tmp_path / "ray"
    build_index(corpus, plain, BuildConfig(encoder=tiny_model, shard=7))

    code = run(
        [
            *("index", str(corpus), "--index", str(ray), "--encoder", tiny_model),
            *("--shard", "7", "--ray", nodes.address),
        ]
    )

    assert code == 0
    assert (ray / "dense/vectors.faiss").read_bytes() == (
        plain / "dense/vectors.faiss"
    ).read_bytes()
    assert open_index(ray).manifest.counts == open_index(plain).manifest.counts


def test_an_address_without_a_cluster_is_a_clear_error(
    sample_index: IndexFolder, capsys: Any
) -> None:
    code = run(
        [
            *("encode", "--index", str(sample_index.path), "--encoder", "minilm"),
            *("--ray", "127.0.0.1:1"),
        ]
    )

    assert code == 2
    assert "no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err


def test_replicas_give_the_answers_of_one_server(
    sample_index: IndexFolder, cluster: Cluster
) -> None:
    pytest.importorskip("fastapi", reason="the server is not installed")
    import httpx
    from support.server import serving

    from citerec.distributed import Replicas, served
    from citerec.serve import ServeConfig
    from citerec.serve.service import Service

    indexes, draft = {"sample": sample_index.path}, {"title": "Dense retrieval", "reranker": "none"}
    with serving(Service(indexes)) as client:
        expected = client.post("/v1/recommend", json=draft).json()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings, replicas = ServeConfig(port=port), Replicas(least=2, most=2)
    with served(cluster, indexes, settings=settings, replicas=replicas) as url:
        answers = [
            httpx.post(f"{url}v1/recommend", json=draft, timeout=120).json() for _ in range(4)
        ]

    assert [answer["answers"] for answer in answers] == [expected["answers"]] * 4
