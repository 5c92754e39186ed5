"""Rows of the results, and how a whole process is measured."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured quantity, a value per round."""

    name: str
    what: str
    unit: str
    values: tuple[float, ...]
    ratio: float | None = None  # median over the rounds of value / value of `ratio_to`
    ratio_to: str | None = None
    goal: str = ""

    @property
    def median(self) -> float:
        """The median of the values."""
        return median(self.values)


class SkippedError(Exception):
    """A row cannot be measured here; the message says why."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one process took."""

    seconds: float  # by the clock
    cpu: float  # seconds of all its threads
    peak_mb: float  # largest resident memory


def ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios of values measured side by side."""
    return median(a / b for a, b in zip(values, others, strict=True))


def run(command: Sequence[str], *, log: Path | None = None) -> Ran:
    """Run a command to its end.

    Args:
        command: The program and its arguments.
        log: Where its output goes; nowhere by default.

    Raises:
        SkippedError: If it fails.
    """
    target = log or Path(os.devnull)
    with target.open("wb") as sink:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = f"; it said: {last_line(log)}" if log else ""
        raise SkippedError(
            f"`{' '.join(command[:4])} ...` ended with {process.returncode}{said}"
        )
    per_mb = 2**20 if sys.platform == "darwin" else 2**10
    return Ran(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / per_mb)


def last_line(log: Path) -> str:
    """Return the last line of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "nothing"


def log(message: str) -> None:
    """Report progress on stderr."""
    print(f"bench: {message}", file=sys.stderr, flush=True)
