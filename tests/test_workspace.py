"""The folder of an unfinished training: one process at a time."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from citerec.errors import ConfigError
from citerec.train.workspace import Workspace

PLAN = {"recipe": "paper"}
TRAINS = """
import sys
from pathlib import Path
from citerec.train.workspace import Workspace
Workspace.for_model(Path(sys.argv[1])).open({"recipe": "paper"}, resume=False, log=print)
print("begun", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_training(output: Path) -> Generator[None]:
    """Hold a training of another process open; it is killed at the end."""
    command = [sys.executable, "-c", TRAINS, output]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"begun\n"
        yield
        process.kill()


@pytest.mark.parametrize("resume", [False, True])
def test_a_training_that_goes_on_elsewhere_is_left_alone(tmp_path: Path, resume: bool) -> None:
    workspace = Workspace.for_model(tmp_path / "model")

    with another_training(tmp_path / "model"):
        workspace.save("candidates", {"rows": np.arange(3)})
        with pytest.raises(ConfigError) as refused, workspace.removed_if_refused():
            workspace.open(PLAN, resume=resume, log=print)
        kept = workspace.load("candidates")

    assert str(refused.value) == (
        f"another process trains in {tmp_path / '.model.training'}; wait until it is done, "
        "or train into another --output"
    )
    assert kept and kept[0]["rows"].tolist() == [0, 1, 2]


def test_a_training_whose_process_was_killed_is_resumed(tmp_path: Path) -> None:
    workspace = Workspace.for_model(tmp_path / "model")
    with another_training(tmp_path / "model"):
        pass

    assert workspace.open(PLAN, resume=True, log=print)
    assert workspace.open(PLAN, resume=True, log=print)  # this process may go on itself


def test_a_new_training_is_removed_if_it_is_refused_and_one_that_has_begun_is_not(
    tmp_path: Path,
) -> None:
    workspace = Workspace.for_model(tmp_path / "model")
    for saved in (False, True):
        with pytest.raises(ConfigError), workspace.removed_if_refused():
            workspace.open(PLAN, resume=False, log=print)
            if saved:
                workspace.save("candidates", {})
            raise ConfigError("no train queries")

        assert workspace.is_there() == saved
