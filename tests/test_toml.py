"""TOML is refused before parsing where it is too deep, and read as tomllib reads it elsewhere."""

import tomllib
from pathlib import Path

import pytest

from citerec.errors import BadInputError
from citerec.toml import MAX_BYTES, MAX_DEPTH, read_toml


@pytest.mark.parametrize(
    "text",
    [
        *("a" + ".a" * 20_000 + " = 1", "[a" + ".a" * 20_000 + "]", '"a"' + '."a"' * 40 + " = 1"),
        *("a = " + "[" * 3_000 + "]" * 3_000, "a = " + "{a = " * 3_000, "a = [\n" * 40),
        *("a = " + "9" * 5_000, "a = 2020-13-45", "a = ", "#" * (MAX_BYTES + 1)),
    ],
)
def test_what_is_no_toml_or_would_take_minutes_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_text(text)

    with pytest.raises(BadInputError):
        read_toml(tmp_path / "x.toml")


def test_the_deepest_that_is_allowed_is_read(tmp_path: Path) -> None:
    text = f"{'.'.join('k' * 32)} = 1\nx = {'[' * MAX_DEPTH}{']' * MAX_DEPTH}\ny = '[a.b.c]'"
    (tmp_path / "x.toml").write_text(text)

    assert read_toml(tmp_path / "x.toml") == tomllib.loads(text)
