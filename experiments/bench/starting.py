"""Whole commands: one recommendation from a cold start, a batch of drafts, a bare import; and what is installed."""

import sys
from itertools import islice
from pathlib import Path

import orjson

import citerec
from bench.measure import Ran, Row, log, run
from bench.work import Work, build_dense, citerec_command

TITLE = "Interactive visualization of large citation networks"
PLAIN = ("--encoder", "none", "--ranker", "none")
SYSTEMS = {  # what is asked for, and the goals: seconds, megabytes
    "cold.bm25": ("BM25 alone", PLAIN, 1.0, None),
    "cold.ranked": ("BM25 and vectors of MiniLM, the default ranker", (), 1.5, 450),
}


def measure_cold_start(work: Work, rounds: int) -> list[Row]:
    """Time `citerec recommend` for one title, from the shell to the end of the process, by what it searches with.

    The systems take turns.
    """
    build_dense(work)
    options = ["--index", str(work.dense), "--title", TITLE, "--format", "json"]
    command = [*citerec_command(), "recommend", *options, "--reranker", "none"]
    run([*command, *PLAIN], log=work.log("cold"))
    log(f"cold start: {rounds} runs")
    ran: dict[str, list[Ran]] = {name: [] for name in SYSTEMS}
    for number in range(rounds + 1):
        for name, (_, more, _, _) in SYSTEMS.items():
            one = run([*command, *more], log=work.log("cold"))
            if number:  # the first one fills the caches of the system
                ran[name].append(one)
    return [row for name in SYSTEMS for row in _rows(name, ran[name])]


def _rows(name: str, ran: list[Ran]) -> list[Row]:
    searched, _, seconds, megabytes = SYSTEMS[name]
    what = f"citerec recommend --title ... --format json, the whole process: {searched}"
    return [
        Row(
            name=name,
            what=what,
            unit="s",
            values=tuple(one.seconds for one in ran),
            goal=f"at most {seconds:g} s",
        ),
        Row(
            name=f"{name}.cpu",
            what=f"{what}; processor time",
            unit="s",
            values=tuple(one.cpu for one in ran),
        ),
        Row(
            name=f"{name}.memory",
            what=f"{what}; peak memory",
            unit="MB",
            values=tuple(one.peak_mb for one in ran),
            goal=f"at most {megabytes} MB" if megabytes else "",
        ),
    ]


DRAFTS = 500
BATCH_GOAL = "at least 10 drafts/s"


def measure_batch(work: Work, rounds: int) -> list[Row]:
    """Time `citerec recommend` with all defaults for a file of drafts that have abstracts."""
    from citerec.index.folder import open_index

    build_dense(work)
    papers = open_index(work.dense).papers
    every = (papers[row] for row in reversed(range(len(papers))))
    drafts = list(islice((paper for paper in every if paper.abstract), DRAFTS))
    file = work.folder / "drafts.jsonl"
    records = [
        {"title": one.title, "abstract": one.abstract, "year": one.year}
        for one in drafts
    ]
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    options = [
        "--index",
        str(work.dense),
        "--query",
        str(file),
        "--format",
        "jsonl",
        "--quiet",
    ]
    command = [*citerec_command(), "recommend", *options]
    log(f"batch: {rounds} runs of {len(drafts)} drafts")
    ran = [run(command, log=work.log("batch")) for _ in range(rounds)]
    what = f"citerec recommend of {len(drafts)} drafts with abstracts, the whole process, all defaults"
    return [
        Row(
            name="batch.drafts",
            what=what,
            unit="drafts/s",
            values=tuple(len(drafts) / one.seconds for one in ran),
            goal=BATCH_GOAL,
        ),
        Row(
            name="batch.drafts.memory",
            what=f"{what}; peak memory",
            unit="MB",
            values=tuple(one.peak_mb for one in ran),
        ),
    ]


def measure_import(rounds: int) -> list[Row]:
    """Time `import citerec`, less what a bare interpreter takes right beside it."""
    log(f"import: {rounds} runs")
    pairs = [
        (
            run([sys.executable, "-c", "import citerec"]),
            run([sys.executable, "-c", "pass"]),
        )
        for _ in range(rounds + 1)
    ][1:]
    what = "import citerec in a fresh process, less the bare interpreter"
    return [
        Row(
            name="import.citerec",
            what=what,
            unit="s",
            values=tuple(ours.seconds - bare.seconds for ours, bare in pairs),
            goal="less than 0.3 s",
        ),
        Row(
            name="import.citerec.cpu",
            what=f"{what}: processor time",
            unit="s",
            values=tuple(ours.cpu - bare.cpu for ours, bare in pairs),
        ),
        Row(
            name="install.size",
            what="the environment that citerec runs in, with all that is installed in it",
            unit="MB",
            values=(_size(Path(sys.prefix)),),
        ),
        Row(
            name="install.citerec",
            what="the package citerec alone",
            unit="MB",
            values=(_size(Path(citerec.__file__).parent),),
        ),
    ]


def _size(folder: Path) -> float:
    files = (
        file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()
    )
    return sum(file.stat().st_size for file in files) / 2**20
