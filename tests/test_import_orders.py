"""The JVM, faiss and torch work in one process, whichever is first, and in threads."""

import json
import os
import subprocess
import sys

import pytest

from citerec.index.folder import IndexFolder

PREAMBLE = """
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

results = {}

def jvm():
    from citerec.index.folder import open_index
    from citerec.index.java import start_jvm
    from citerec.retrieve.bm25 import Bm25Retriever
    from citerec.types import Eligibility, Query

    start_jvm()
    retriever = Bm25Retriever(open_index(Path(sys.argv[1])))
    query = Query(id="draft", title="citation analysis of the scientific literature")
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
for name in sys.argv[2].split():
    parts[name]()
    results[sorted(results)[0]]()
alone = {name: work() for name, work in sorted(results.items())}
"""
THREADS = """
def often(name):
    return all(results[name]() == alone[name] for _ in range(30))

with ThreadPoolExecutor(4) as pool:
    assert all(pool.map(often, ["matmul", "dense", "matmul", "dense"]))
assert results["bm25"]() == alone["bm25"]
"""


@pytest.mark.parametrize(
    "order",
    ["torch faiss jvm", pytest.param("jvm faiss torch", marks=pytest.mark.slow)],
)
def test_libraries_in_any_order_and_in_threads_work(
    sample_index: IndexFolder, order: str
) -> None:
    program = f"{PREAMBLE}{THREADS}\nprint(json.dumps(alone))"

    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-c",
            program,
            str(sample_index.path),
            order,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )

    assert done.returncode == 0, done.stderr
    assert "OMP" not in done.stderr
    found = json.loads(done.stdout)
    assert found["dense"][7][0] == 7  # each vector finds itself
    assert len(found["bm25"]) == 10
