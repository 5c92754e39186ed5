"""A process that holds one search system, so that its time and memory are its own.

It reads one word a line from stdin (`round`, `memory`, `hits`) and answers each with one line of JSON.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from bench.measure import SkippedError, last_line
from bench.systems import SYSTEMS, Search
from bench.work import Work


class Worker:
    """The parent's end of a worker."""

    def __init__(self, name: str, work: Work, script: Path) -> None:
        self.name = name
        self._log = work.log(name)
        command = [
            sys.executable,
            str(script),
            "--worker",
            name,
            "--work",
            str(work.folder),
        ]
        command += ["--corpus", str(work.corpus), "--threads", str(work.threads)]
        command += ["--queries", str(work.reranked)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self.queries: int = self._answer()["queries"]

    def ask(self, word: str) -> dict[str, Any]:
        """Have one thing done and return what it gave.

        Raises:
            SkippedError: If the worker failed.
        """
        assert self._process.stdin
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the worker."""
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        answer = orjson.loads(line) if line else {"error": last_line(self._log)}
        if "error" in answer:
            self._process.communicate()
            raise SkippedError(f"{self.name}: {answer['error']}")
        return answer


def serve(name: str, work: Work) -> None:
    """Be a worker, until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer

    def reply(answer: dict[str, Any]) -> None:
        answers.write(orjson.dumps(answer) + b"\n")
        answers.flush()

    try:
        search = SYSTEMS[name][0](work)
    except ModuleNotFoundError as error:
        reply(
            {"error": f"{error.name} is not installed; run: pip install {error.name}"}
        )
        return
    queries = len(orjson.loads(work.queries.read_bytes())["queries"])
    reply({"queries": queries})
    for line in sys.stdin:
        reply(_do(line.strip(), name, search, work))


def _do(word: str, name: str, search: Search, work: Work) -> dict[str, Any]:
    if word == "memory":
        return {"peak_mb": peak_mb()}
    if word == "hits":
        path = work.folder / f"hits-{name}.jsonl"
        with path.open("wb") as file:
            file.writelines(orjson.dumps(answer) + b"\n" for answer in search())
        return {"path": str(path)}
    before, start = os.times(), time.perf_counter()
    search()
    seconds, after = time.perf_counter() - start, os.times()
    return {
        "seconds": seconds,
        "cpu": after.user - before.user + after.system - before.system,
    }


def peak_mb() -> float:
    """Return the most memory that this process held, not counting its parent's, which ru_maxrss does."""
    status = Path("/proc/self/status")
    if status.is_file():
        kilobytes = next(
            x for x in status.read_text().splitlines() if x.startswith("VmHWM")
        )
        return int(kilobytes.split()[1]) / 2**10
    per_mb = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mb
