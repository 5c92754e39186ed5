"""Two processes of torchrun train the model that one process trains: gloo averages their gradients."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.tiny import tiny_bert

from citerec.folder import IndexFolder
from citerec.manifest import model_faults

pytestmark = pytest.mark.slow  # each training starts processes that import torch

SCRIPT = """
import sys
from pathlib import Path
from citerec.folder import open_index
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.train import train_encoder
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.train import train_reranker

kind, index, output, settings, resume, stop = sys.argv[1:]
train, config = {
    "encoder": (train_encoder, EncoderTraining), "reranker": (train_reranker, RerankerTraining)
}[kind]

def progress(what, done, total):  # only the first process receives it
    if (what, done) == ("training", int(stop)):
        raise SystemExit("stopped")

report = train(
    open_index(Path(index)), Path(output), config.read(Path(settings), {}),
    resume=bool(int(resume)), progress=progress,
)
print([point.loss for point in report.history][1:], flush=True)
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
COMMON: dict[str, Any] = {
    **{"batch": 16, "dev_queries": 5, "threads": 1, "device": "cpu", "dtype": "float32"},
    "learning_rate": 1e-3,
}
RERANKER = {
    **{"steps": 4, "eval_steps": 1, "log_steps": 1, "queries": 10},
    **{"query_tokens": 32, "candidate_tokens": 32},
    **{"dropout": 0.0, "attention_dropout": 0.0},  # which each process draws for itself
}
ENCODER = {"epochs": 4, "queries": 32, "examples": 1, "hard": 0, "max_tokens": 32}
KINDS = {
    "reranker-pairs": ("reranker", {**RERANKER, "micro": 4}),
    "reranker-lists": ("reranker", {**RERANKER, "list_negatives": 3, "loss": "softmax"}),
    "encoder-triplets": ("encoder", {**ENCODER, "loss": "triplet", "dropout": False}),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "base")


class Training:
    """A training of the sample as a program."""

    def __init__(self, index: Path, folder: Path, kind: str, settings: dict[str, Any]) -> None:
        self.kind, self.index, self.folder = kind, index, folder
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(SCRIPT)
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        (folder / "settings.toml").write_text("".join(lines))

    def run(
        self, output: str, *start: str, resume: bool = False, stop: int = 0, fails: bool = False
    ) -> list[list[float]]:
        """Train; return the losses of the updates, as each process reports them."""
        arguments = [
            *(self.kind, self.index, self.folder / output, self.folder / "settings.toml"),
            *(int(resume), stop),
        ]
        done = subprocess.run(
            [sys.executable, *start, str(self.folder / "train.py"), *map(str, arguments)],
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert bool(done.returncode) == fails, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", [*KINDS])
def test_two_processes_have_the_losses_of_one_process_with_the_same_batch(
    name: str, sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    kind, given = KINDS[name]
    training = Training(sample_index.path, tmp_path, kind, {**COMMON, "model": str(base), **given})

    [alone] = training.run("alone")
    [first, second] = training.run("two", *TORCHRUN)

    assert len(alone) == 4
    assert len({*alone}) == 4
    assert first == second
    assert first == pytest.approx(alone, rel=1e-4)
    assert model_faults(tmp_path / "two") == []


def test_two_processes_that_were_stopped_resume_where_they_were(
    sample_index: IndexFolder, base: Path, tmp_path: Path
) -> None:
    kind, given = KINDS["reranker-lists"]
    settings = {**COMMON, "model": str(base), **given, "dropout": 0.1}
    training = Training(sample_index.path, tmp_path, kind, settings)

    whole = training.run("whole", *TORCHRUN)
    assert training.run("stopped", *TORCHRUN, stop=3, fails=True) == []
    assert not (tmp_path / "stopped").exists()
    resumed = training.run("stopped", *TORCHRUN, resume=True)

    assert resumed == whole
    weights = [tmp_path / name / "model.safetensors" for name in ("whole", "stopped")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
