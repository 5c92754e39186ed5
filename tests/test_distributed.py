"""Work on a real Ray cluster of two node processes on this machine: the same results, lost workers, errors."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from secrets import token_hex
from shutil import copytree
from typing import Any

import pytest
from support.types import Capture, MonkeyPatch, Write

pytest.importorskip("ray", reason="ray is not installed", exc_type=ImportError)
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_TOKEN"] = token_hex(32)  # not the user's, which a file would hold

from citerec.build import vectors as embed
from citerec.build.index import BuildConfig, build_index
from citerec.cli import run
from citerec.cluster.ray import connected, map_in_actors
from citerec.errors import ClusterError, ModelError
from citerec.index.folder import IndexFolder, open_index

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NODE = {"num_cpus": 1, "object_store_memory": 2**27}


@pytest.fixture(scope="module")
def nodes() -> Generator[Any]:
    """Two nodes of one processor each, which are processes of this machine."""
    from ray.cluster_utils import Cluster as Nodes

    cluster = Nodes(
        initialize_head=True, head_node_args={**NODE, "include_dashboard": False}
    )
    cluster.add_node(**NODE)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def cluster(nodes: Any) -> Iterator[None]:
    with connected(nodes.address):
        yield


def test_a_lost_worker_loses_no_item_and_writes_nothing_among_the_results(
    cluster: None, tmp_path: Path, capfd: Capture
) -> None:
    marker = str(tmp_path / "killed")

    def work(item: int) -> int:
        if item == 3 and not os.path.exists(marker):  # noqa: PTH110
            with open(marker, "w"):  # noqa: PTH123
                os.kill(os.getpid(), signal.SIGKILL)
        return item * item

    results = list(map_in_actors(range(8), lambda: work))

    assert results == [0, 1, 4, 9, 16, 25, 36, 49]
    assert Path(marker).exists()
    time.sleep(2)  # Ray's own message of it comes a moment later
    assert capfd.readouterr().out == ""


def test_an_item_that_kills_every_worker_is_an_error(cluster: None) -> None:
    def die(item: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(ClusterError, match="workers were lost with one item"):
        list(map_in_actors([1], lambda: die))


def test_an_error_of_a_worker_is_one_line(cluster: None) -> None:
    def open_nothing() -> Callable[[int], int]:
        raise ModelError("no model at /models/minilm")

    with pytest.raises(
        ClusterError, match=r"^a worker failed: no model at /models/minilm$"
    ):
        list(map_in_actors([1, 2], open_nothing))
    with pytest.raises(ClusterError, match=r"^a worker failed: ZeroDivisionError: .*$"):
        list(map_in_actors([0], lambda: lambda item: 1 // item))


def test_the_commands_give_the_same_with_and_without_ray(
    nodes: Any,
    sample_index: IndexFolder,
    tiny_model: str,
    tmp_path: Path,
    capsys: Any,
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setattr(embed, "SHARD", 20)
    index, plain = (
        copytree(sample_index.path, tmp_path / name) for name in ("ray", "plain")
    )
    query = tmp_path / "queries.jsonl"
    query.write_text(
        '{"id": "a", "title": "Dense retrieval"}\n{"id": "b", "title": "Parsing"}\n'
    )
    ray = ("--ray", nodes.address)

    def output(*command: str, index: Path = index) -> str:
        code = run([*command, "--index", str(index)])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    encode = ("encode", "--encoder", tiny_model)
    output(*encode, *ray)
    output(*encode, index=plain)
    vectors = [
        (folder / "dense/vectors.faiss").read_bytes() for folder in (index, plain)
    ]
    assert vectors[0] == vectors[1]
    recommend = (
        "recommend",
        "--query",
        str(query),
        "--format",
        "json",
        "--reranker",
        "none",
    )
    assert output(*recommend, *ray) == output(*recommend)


def test_an_index_built_with_ray_equals_one_built_without(
    nodes: Any,
    tiny_model: str,
    tmp_path: Path,
    write_jsonl: Write,
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setattr(embed, "SHARD", 7)
    corpus = write_jsonl(
        [{"id": f"p{i}", "title": f"paper on term {i}"} for i in range(50)]
    )
    plain, ray = tmp_path / "plain", tmp_path / "ray"
    build_index(corpus, plain, BuildConfig(encoder=tiny_model))

    command = ["index", str(corpus), "--index", str(ray), "--encoder", tiny_model]
    code = run([*command, "--ray", nodes.address])

    assert code == 0
    vectors = [(folder / "dense/vectors.faiss").read_bytes() for folder in (ray, plain)]
    assert vectors[0] == vectors[1]
    assert open_index(ray).manifest.counts == open_index(plain).manifest.counts


def test_an_address_without_a_cluster_is_one_line(
    sample_index: IndexFolder, capsys: Any
) -> None:
    command = ["encode", "--index", str(sample_index.path), "--encoder", "minilm"]
    code = run([*command, "--ray", "127.0.0.1:1"])

    assert code == 2
    assert "no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err
