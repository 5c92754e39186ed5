"""What the processes of `__main__.py` do: each has imported what commands need, and forks a child for each run."""

import gc
from importlib import import_module
from pathlib import Path

import commands
import damage

Facts = commands.Facts
_stages: list[commands.Stage] = []  # of this process


def start(folder: Path, modules: str) -> None:
    """Import modules, so that a forked child starts at once."""
    for name in modules.split():
        import_module(name)
    if (tiny := folder / "tiny").exists():
        import_module("transformers").AutoModel.from_pretrained(tiny)  # its tables, too
    gc.freeze()  # else a child's collector copies all of it
    _stages.append(commands.Stage(folder))


def undisturbed(name: str) -> tuple[list[str], Facts]:
    return commands.undisturbed(_stages[0], commands.COMMANDS[name])


def disturbed(
    case: tuple[str, Facts, int, int],
) -> tuple[str, int, int, str, list[str]]:
    name, whole, at, error = case
    made, wrong = commands.disturbed(
        _stages[0], commands.COMMANDS[name], whole, at, error
    )
    return name, at, error, made, wrong


def prepare_models() -> tuple[list[str], bytes]:
    return damage.prepare_models(_stages[0])


def damaged(case: tuple[str, str, bytes, int]) -> tuple[str, str, bool, list[str], int]:
    file, kind, answer, seed = case
    return file, kind, *damage.damaged(_stages[0], file, kind, answer, seed)
