"""Compares the lists of the sample between processors, threads and interfaces: the same papers in the same order?

    python experiments/same_lists.py        writes experiments/NUMBERS.md; minutes

Each instruction set embeds the sample anew with MiniLM, in float32, and recommends for its test papers as drafts.
torch, oneDNN, OpenBLAS, numba, numpy, Faiss and glibc are limited by their variables. ONNX Runtime and LightGBM have
none: they use what the processor has. Interfaces answer from an index that is built without limits.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from golden import ONE_WAY, ROOT, SAMPLE, drafts_of

K = 20  # papers of a list
Lists = Mapping[str, list[tuple[str, float]]]
HWCAPS = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "FAISS_OPT_LEVEL": "avx2",
    "GLIBC_TUNABLES": HWCAPS,
}
AVX512 = {
    "ATEN_CPU_CAPABILITY": "avx512",
    "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
    "OPENBLAS_CORETYPE": "SkylakeX",
    "NUMBA_CPU_NAME": "skylake-avx512",
    "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL AVX512_SPR",
    "FAISS_OPT_LEVEL": "avx512",
}
SETS = {"avx2": ("AVX2", AVX2), "avx512f": ("AVX-512", AVX512), "amx_tile": ("AMX", {})}


def citerec(variables: Mapping[str, str], threads: int, *arguments: object) -> None:
    """Run a command of citerec, whose libraries may use these instructions and so many threads."""
    command = [
        sys.executable,
        "-m",
        "citerec",
        *map(str, arguments),
        "--threads",
        str(threads),
    ]
    own = {**os.environ, **ONE_WAY, "PYTHONPATH": str(ROOT), **variables}
    own |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    subprocess.run(
        [*command, "--quiet"], check=True, env=own, stdout=subprocess.DEVNULL
    )


def by_command(
    work: Path, index: Path, variables: Mapping[str, str], threads: int, *more: object
) -> Lists:
    """Return the lists of `citerec recommend`."""
    output = work / "lists.jsonl"
    options = (
        "--query",
        work / "drafts.jsonl",
        "--k",
        K,
        "--format",
        "jsonl",
        "--output",
        output,
    )
    citerec(variables, threads, "recommend", "--index", index, *options, *more)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    return {line["query"]: pairs(line["results"]) for line in lines}


def pairs(papers: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Return ids and scores."""
    return [(paper["id"], paper["score"]) for paper in papers]


def by_python(drafts: list[dict[str, Any]], index: Path) -> Lists:
    """Return the lists of `citerec.open(index).recommend`."""
    import citerec as package

    with package.open(index) as recommender:
        lists = [recommender.recommend(package.Query(**draft), k=K) for draft in drafts]
        return {
            d["id"]: pairs(one.to_dicts()) for d, one in zip(drafts, lists, strict=True)
        }


def by_servers(drafts: list[dict[str, Any]], index: Path) -> dict[str, Lists]:
    """Return the lists of the HTTP API and of the tool of assistants."""
    from fastapi.testclient import TestClient
    from mcp import Client

    from citerec.serve.app import create_app
    from citerec.serve.mcp import create_server
    from citerec.serve.service import Service

    service = Service({"sample": index})
    opened: Future[Service] = Future()
    opened.set_result(service)

    async def by_tool() -> Lists:
        async with Client(create_server(opened)) as client:
            lists: dict[str, list[tuple[str, float]]] = {}
            for draft in drafts:
                arguments = {
                    name: value for name, value in draft.items() if name != "id"
                }
                found = await client.call_tool("recommend", {**arguments, "k": K})
                lists[draft["id"]] = pairs((found.structured_content or {})["results"])
            return lists

    client = TestClient(create_app(service), base_url="http://127.0.0.1")
    answers = [
        client.post("/v1/recommend", json={"query": d, "k": K}).json() for d in drafts
    ]
    lists = [pairs(answer["answers"][0]["results"]) for answer in answers]
    http = {draft["id"]: one for draft, one in zip(drafts, lists, strict=True)}
    return {"HTTP API": http, "MCP": asyncio.run(by_tool())}


def row(name: str, threads: object, lists: Lists, expected: Lists) -> str:
    """Return a row of the table: how many lists have the same papers in the same order, and how far scores differ."""
    ids = {query: [paper for paper, _ in scored] for query, scored in expected.items()}
    ordered = sum([paper for paper, _ in lists[query]] == ids[query] for query in ids)
    known = {
        (query, paper): score for query in expected for paper, score in expected[query]
    }
    found = {
        (query, paper): score for query in expected for paper, score in lists[query]
    }
    furthest = max(
        abs(score - known[key]) for key, score in found.items() if key in known
    )
    other = len(found.keys() - known.keys())
    return f"| {name} | {threads} | {ordered} of {len(ids)} | {other} of {len(known)} | {furthest:.0e} |"


def main() -> None:
    """Write experiments/NUMBERS.md."""
    os.environ |= ONE_WAY
    flags = Path("/proc/cpuinfo").read_text().split()
    how = ("index", SAMPLE, "--encoder", "minilm", "--index")
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        citerec({}, 1, *how, work / "sample")
        names = ("id", "title", "abstract")  # what every interface takes
        papers: list[dict[str, Any]] = [*drafts_of(work / "sample")]
        drafts = [
            {name: paper[name] for name in names if name in paper} for paper in papers
        ]
        (work / "drafts.jsonl").write_text(
            "".join(f"{json.dumps(draft)}\n" for draft in drafts)
        )
        expected = by_command(work, work / "sample", {}, 1)
        for flag, (name, variables) in SETS.items():
            for threads in (1, 2) if flag in flags else ():
                own = work / f"{flag}{threads}"
                citerec(variables, threads, *how, own)
                lists = by_command(work, own, variables, threads)
                rows.append(row(name, threads, lists, expected))
            if flag not in flags:
                rows.append(f"| {name} | | not on this processor | | |")
        ways = {
            "Python": by_python(drafts, work / "sample"),
            **by_servers(drafts, work / "sample"),
        }
        ways["Ray"] = by_command(work, work / "sample", {}, 1, "--ray", "local")
        rows += [row(name, 1, lists, expected) for name, lists in ways.items()]
    (ROOT / "experiments" / "NUMBERS.md").write_text(PAGE + "\n".join(rows) + "\n")


PAGE = f"""# The same lists everywhere

`python experiments/same_lists.py` recommends {K} papers for each test paper of the sample, with MiniLM in float32
and the default learning-to-rank model, and compares with `citerec recommend` on one thread without limits.
Where two libraries round differently, papers whose scores are that close may swap.

| instructions, or interface | threads | lists in the same order | other papers | scores differ by at most |
| --- | --- | --- | --- | --- |
"""

if __name__ == "__main__":
    main()
