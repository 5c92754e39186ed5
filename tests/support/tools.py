"""Programs that some tests run, and that a machine may lack or have in a broken state."""

import subprocess
import sys
from typing import Any


def run_python(
    program: str, *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which must end well; return what it printed."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, **options
    )


def command_fault(command: list[str]) -> str:
    """Return why a command cannot be run here, or an empty string if it ends with exit code 0."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]} cannot be run: {error}"
    return f"{command[0]} does not work: {_last_line(done)}" if done.returncode else ""


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return (
        f"{lines[-1] if lines else 'it printed nothing'} (exit code {done.returncode})"
    )
