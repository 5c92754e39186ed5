"""Programs that some tests run and that a machine may lack, or have in a broken state."""

import shutil
import subprocess
from pathlib import Path

DOCUMENT = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"


def run_pdflatex(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a document that holds `text` to x.pdf in a folder."""
    (folder / "x.tex").write_text(DOCUMENT % text, encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "x.tex"]
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def pdflatex_fault(folder: Path) -> str:
    """Return why pdflatex cannot be used here, or an empty string if it compiles a minimal document."""
    if not shutil.which("pdflatex"):
        return "pdflatex is not installed"
    try:
        done = run_pdflatex("A word.", folder)
    except OSError as error:
        return f"pdflatex cannot be run: {error}"
    if done.returncode or not (folder / "x.pdf").exists():
        return f"pdflatex cannot compile a minimal document: {_last_line(done)}"
    return ""


def command_fault(command: list[str]) -> str:
    """Return why a command cannot be run here, or an empty string if it ends with exit code 0."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]} cannot be run: {error}"
    return f"{command[0]} does not work: {_last_line(done)}" if done.returncode else ""


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'it printed nothing'} (exit code {done.returncode})"
