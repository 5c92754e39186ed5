"""faiss, torch and the JVM in one process, whichever comes first: each brings threads of its own."""

import json
import os
import subprocess
import sys
from itertools import permutations

import pytest

from citerec.folder import IndexFolder

PREAMBLE = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

results = {}
texts = "citation analysis of the scientific literature"

def jvm():
    from citerec.folder import open_index
    from citerec.java import start_jvm
    from citerec.retrieve.bm25 import Bm25Retriever
    from citerec.types import Eligibility, Query

    start_jvm()
    index = open_index(Path(sys.argv[1]))
    retriever = Bm25Retriever(index)
    query = Query(id="draft", title=texts)
    results["bm25"] = lambda: retriever.retrieve([query], [Eligibility()], 10)[0].rows.tolist()

def use_faiss():
    import faiss
    import numpy as np

    vectors = np.random.default_rng(5).standard_normal((3000, 64)).astype(np.float32)
    index = faiss.IndexFlatL2(64)
    index.add(vectors)
    results["dense"] = lambda: index.search(vectors[:40] + 0.1, 5)[1].tolist()

def use_torch():
    import torch

    torch.manual_seed(5)
    a = torch.randn(300, 300, dtype=torch.float64)
    results["matmul"] = lambda: round(float((a @ a @ a).abs().sum()), 3)

parts = {"jvm": jvm, "faiss": use_faiss, "torch": use_torch}
"""
EACH_IN_TURN = """
for name in sys.argv[2].split():
    parts[name]()
    results[sorted(results)[0]]()
print(json.dumps({name: work() for name, work in sorted(results.items())}))
"""
TOGETHER = """
for part in parts.values():
    part()
alone = {name: work() for name, work in results.items()}

def often(name):
    return all(results[name]() == alone[name] for _ in range(30))

names = ["matmul", "dense", "matmul", "dense"]
with ThreadPoolExecutor(4) as pool:
    same = list(pool.map(often, names))
assert results["bm25"]() == alone["bm25"]
print(json.dumps(same))
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    assert "OMP" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected(sample_index: IndexFolder) -> dict[str, object]:
    """What comes out where the JVM is first, which is the order of `citerec recommend`."""
    return json.loads(run(EACH_IN_TURN, str(sample_index.path), "jvm faiss torch"))


ORDERS = [" ".join(order) for order in permutations(["jvm", "faiss", "torch"])][1:]
QUICK = "torch faiss jvm"  # the reverse


@pytest.mark.parametrize(
    "order",
    [order if order == QUICK else pytest.param(order, marks=pytest.mark.slow) for order in ORDERS],
)
def test_every_order_of_imports_gives_the_same(
    sample_index: IndexFolder, expected: dict[str, object], order: str
) -> None:
    found = json.loads(run(EACH_IN_TURN, str(sample_index.path), order))

    assert found == expected
    assert found["dense"][7][0] == 7  # each vector finds itself
    assert len(found["bm25"]) == 10


def test_torch_and_faiss_work_in_threads_at_once(sample_index: IndexFolder) -> None:
    assert json.loads(run(TOGETHER, str(sample_index.path))) == [True] * 4
