"""A test that needs a program is skipped where that program is broken, not only where there is none."""

import os
from pathlib import Path

import pytest
from support.tools import browser_fault, command_fault, pdflatex_fault


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs are found first."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_pdflatex_that_fails_is_not_used(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "pdflatex", "echo 'no format file' >&2; exit 1")

    fault = pdflatex_fault(tmp_path)

    assert fault == "pdflatex cannot compile a minimal document: no format file (exit code 1)"


def test_a_pdflatex_that_writes_nothing_is_not_used(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "pdflatex", "exit 0")

    assert "it printed nothing (exit code 0)" in pdflatex_fault(tmp_path)


def test_a_pdflatex_that_compiles_is_used(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "pdflatex", "cp x.tex x.pdf")

    assert pdflatex_fault(tmp_path) == ""
    assert "A word." in (tmp_path / "x.pdf").read_text()


def test_a_browser_that_shows_nothing_is_not_used(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "chromium", "echo 'cannot open display' >&2")

    assert "minimal page: cannot open display (exit code 0)" in browser_fault(tmp_path)


def test_a_browser_that_shows_the_page_is_used(programs: Path, tmp_path: Path) -> None:
    write_program(programs / "chromium", "echo '<title>minimal</title>'")

    assert browser_fault(tmp_path) == ""


def test_what_is_not_there_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert pdflatex_fault(tmp_path) == "pdflatex is not installed"
    assert browser_fault(tmp_path) == "no chromium is installed"
    assert command_fault(["setpriv", "true"]).startswith("setpriv cannot be run")


def test_a_command_that_fails_is_not_used() -> None:
    assert command_fault(["sh", "-c", "echo denied >&2; exit 3"]).endswith("denied (exit code 3)")
    assert command_fault(["true"]) == ""
