"""`make fuzz` finds what does not hold; here a few cases of the families that are read at once."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from citerec.errors import BadInputError

HERE = Path(__file__).resolve().parent
QUICK = [
    "one sentence",
    "judgements",
    "settings of a ranker",
    "corpus: JSON lines",
    "draft: text",
]


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec: Any = importlib.util.spec_from_file_location(
        "fuzz", HERE.parent / "experiments/fuzz.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


def test_a_refusal_is_no_fault_and_another_error_is_one(
    fuzz: ModuleType, tmp_path: Path
) -> None:
    def read(data: bytes, _: Path) -> None:
        if data.startswith(b"{"):
            raise BadInputError("a", "one line")
        assert not data, "a fault"

    outcome = fuzz.Outcome("a")
    for data in (b"", b"{", b"x", b"y"):
        fuzz.tried(read, data, tmp_path, outcome)

    assert (outcome.cases, outcome.refused) == (4, 1)
    assert [*outcome.faults] == ["AssertionError at ?"]


@pytest.mark.parametrize("name", QUICK)
def test_damaged_inputs_are_read_or_refused(
    fuzz: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "GROWN", 2**13)

    outcome = fuzz.fuzzed(name, 0.2, 1)

    assert outcome.cases > 50
    assert outcome.faults == {}
