"""Each write of a command fails once, or the command is killed there: a few drawn cases of `make faults`."""

import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parent.parent / "experiments" / "faults"
LIGHT = ("index --force", "recommend --append", "collect", "corpus convert", "export")


def tried(*options: str) -> str:
    """Run the driver; return its report, which is after the commands' own output."""
    done = subprocess.run(
        [sys.executable, DRIVER, "--jobs", "1", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if "skipped" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_a_write_that_fails_and_a_kill_leave_the_old_or_the_new() -> None:
    report = tried("--only", *LIGHT, "--draw", "1", "--damage", "no")

    assert all(f"| `{command}` |" in report for command in LIGHT)
    assert report.count("1 of 1") == 2 * len(LIGHT)  # an error and a kill of each


@pytest.mark.slow
def test_every_command_leaves_the_old_or_the_new_and_damage_is_found() -> None:
    report = tried("--draw", "4", "--seed", "1")

    assert "| `train` |" in report and "| files of |" in report
