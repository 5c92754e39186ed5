"""How long until citerec is there: one recommendation as a whole process, and a bare import."""

import sys

from bench.measure import Ran, Row, log, run
from bench.work import Work, build_dense, citerec_command

TITLE = "Interactive visualization of large citation networks"
PLAIN = ("--encoder", "none", "--ranker", "none")
SYSTEMS = {  # what is asked for, and the goals: seconds, megabytes
    "cold.bm25": ("BM25 alone", PLAIN, 1.0, None),
    "cold.ranked": ("BM25 and vectors of MiniLM, the default ranker", (), 2.5, 450),
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


def measure_import(rounds: int) -> list[Row]:
    """Time `import citerec`, less what a bare interpreter takes right beside it."""
    log(f"import: {rounds} runs")
    pairs = [
        (run([sys.executable, "-c", "import citerec"]), run([sys.executable, "-c", "pass"]))
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
    ]
