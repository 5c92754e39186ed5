"""How long until citerec is there: one recommendation as a whole process, and a bare import."""

import sys

from bench.measure import Row, run, say
from bench.work import Work, build, citerec_command

TITLE = "Interactive visualization of large citation networks"


def measure_cold_start(work: Work, rounds: int) -> list[Row]:
    """Time `citerec recommend` for one title, from the shell to the end of the process."""
    build(work)
    options = ["--index", str(work.index), "--title", TITLE, "--format", "json"]
    command = [*citerec_command(), "recommend", *options, "--reranker", "none", "--ranker", "none"]
    run(command, log=work.log("cold"))
    say(f"cold start: {rounds} runs")
    ran = [run(command, log=work.log("cold")) for _ in range(rounds)]
    what = "citerec recommend --title ... --format json, the whole process"
    return [
        Row(
            name="cold.recommend",
            what=what,
            unit="s",
            values=tuple(r.seconds for r in ran),
            goal="less than 2 s",
        ),
        Row(
            name="cold.recommend.cpu",
            what=f"{what}: processor time",
            unit="s",
            values=tuple(r.cpu for r in ran),
        ),
        Row(
            name="cold.recommend.memory",
            what=f"{what}: peak memory",
            unit="MB",
            values=tuple(r.peak_mb for r in ran),
        ),
    ]


def measure_import(rounds: int) -> list[Row]:
    """Time `import citerec`, less what a bare interpreter takes right beside it."""
    say(f"import: {rounds} runs")
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
