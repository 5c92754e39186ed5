"""TOML is refused before parsing where it is too deep, and read as tomllib reads it elsewhere."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.errors import BadInputError
from citerec.toml import MAX_BYTES, MAX_DEPTH, MAX_PARTS, read_toml

PIECES = ['"""', "'''", '"', "'", "\\", "[", "]", "{", "}", ".", ",", "=", "#", "\n", "a", "1", " "]


def a_file(folder: Path, text: str) -> Path:
    path = folder / "given.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" + ".a" * 20_000 + " = 1", r"line 1: a key of more than 32 parts"),
        ("x = 1\n[a" + ".a" * 20_000 + "]", r"line 2: a key of more than 32 parts"),
        ('"a"' + '."a"' * 40 + " = 1", r"line 1: a key of more than 32 parts"),
        ("a = " + "[" * 3_000 + "]" * 3_000, r"line 1: arrays or tables within each other"),
        ("a = [\n" * 40, r"line 33: arrays or tables within each other more than 32 deep"),
        ("a = " + "{a = " * 3_000, r"line 1: arrays or tables within each other"),
        ("a = " + "9" * 5_000, "not TOML: .*integer string conversion"),
        ("a = 2020-13-45", "not TOML"),
        ("a = ", "not TOML"),
        ("#" * (MAX_BYTES + 1), "more than 1 MB"),
    ],
)
def test_what_would_take_minutes_or_the_stack_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        read_toml(a_file(tmp_path, text))


def test_the_deepest_that_is_allowed_is_read(tmp_path: Path) -> None:
    key = ".".join("k" * MAX_PARTS)
    text = f"{key} = 1\nx = {'[' * MAX_DEPTH}{']' * MAX_DEPTH}"

    assert read_toml(a_file(tmp_path, text)) == tomllib.loads(text)


def test_brackets_and_dots_within_strings_and_comments_do_not_count(tmp_path: Path) -> None:
    text = "\n".join(
        [
            f'basic = "{"[." * 50}\\"{"[." * 50}"',
            f"literal = '{'[.' * 50}'",
            f'long = """{"[." * 50}"" \\""" {"[." * 50}"""""',
            f"raw = '''{'[.' * 50}''{'[.' * 50}'''",
            f"# {'[.' * 50}",
            "numbers = [1.5, 2.5]",
        ]
    )

    assert read_toml(a_file(tmp_path, text)) == tomllib.loads(text)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_wild_text_is_read_as_tomllib_reads_it_or_refused(tmp_path: Path, text: str) -> None:
    path = a_file(tmp_path, text)
    try:
        expected = tomllib.loads(text)
    except ValueError:
        expected = None

    try:
        found = read_toml(path)
    except BadInputError as error:
        assert expected is None or "deep" in error.message
    else:
        assert found == expected
