"""Programs that some tests run and that a machine may lack, or have in a broken state."""

import shutil
import subprocess
from pathlib import Path

DOCUMENT = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
HEADLESS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr"
)
BROWSERS = ("chromium", "google-chrome")
BROWSER_SECONDS = 60  # a broken browser may hang instead of failing


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


def run_browser(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page without a window.

    Args:
        page: The file.
        profile: A folder for the browser's own files.
        options: What to do with the page.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    command = [browser, *HEADLESS.split(), f"--user-data-dir={profile}", *options, page.as_uri()]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=BROWSER_SECONDS
    )


def browser_fault(folder: Path) -> str:
    """Return why no browser can be used here, or an empty string if one shows a minimal page."""
    if not any(map(shutil.which, BROWSERS)):
        return "no chromium is installed"
    page = folder / "minimal.html"
    page.write_text("<title>minimal</title>", encoding="utf-8")
    try:
        done = run_browser(page, folder / "profile", "--dump-dom")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"chromium cannot be run: {error}"
    works = done.returncode == 0 and "<title>minimal</title>" in done.stdout
    return "" if works else f"chromium cannot show a minimal page: {_last_line(done)}"


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
