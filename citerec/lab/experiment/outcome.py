"""The outcome of a row, and its comparison with the expected values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import writing
from citerec.lab.experiment.row import Expected, Experiment

OK_WITHIN, NEAR_WITHIN = 0.002, 0.01  # largest difference from an expected value


class Verdict(StrEnum):
    """The verdict on a row."""

    OK = "OK"
    MEASURED = "measured"  # no expected value
    NEAR = "near"
    FAIL = "FAIL"
    NOT_RUN = "not run here"
    PUBLISHED = "published"  # published values only


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of running a row."""

    experiment: Experiment
    verdict: Verdict
    why: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])
    draw: Callable[[Path], None] | None = None  # draws a figure into a file


def judge(expect: Mapping[str, Expected], metrics: Mapping[str, float]) -> tuple[Verdict, str]:
    """Compare metrics with their expected values: OK within 0.002, near within 0.01, else FAIL."""
    if not expect:
        return Verdict.MEASURED, ""
    gaps = {name: _gap(value, metrics.get(name)) for name, value in expect.items()}
    if max(gaps.values()) <= OK_WITHIN:
        return Verdict.OK, ""
    worst = max(gaps, key=lambda name: gaps[name])
    measured = f"{metrics[worst]:.4f}" if worst in metrics else "missing"
    why = f"{worst} is {measured}, expected {_shown(expect[worst])}"
    return (Verdict.NEAR if gaps[worst] <= NEAR_WITHIN else Verdict.FAIL), why


def _gap(expected: Expected, measured: float | None) -> float:
    """Return the distance of a metric from its expected value; 0 within a range."""
    if measured is None or not isfinite(measured):
        return inf
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    return max(low - measured, measured - high, 0)


def _shown(expected: Expected) -> str:
    ends = expected if isinstance(expected, tuple) else (expected,)
    return " to ".join(f"{end:.4f}" for end in ends)


def write_result(outcome: Outcome, folder: Path) -> Path:
    """Write the result of a row to `<folder>/<table>/<row>.json`; return the file.

    Raises:
        OutputError: If it cannot be written.
    """
    experiment = outcome.experiment
    path = folder / experiment.table / f"{experiment.path.stem}.json"
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    result = dict(outcome.result)
    if "per_query" in result:  # one line per metric
        lines = {name: orjson.Fragment(orjson.dumps(v)) for name, v in result["per_query"].items()}
        result["per_query"] = lines
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(result, option=options))
    return path
