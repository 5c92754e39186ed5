"""The package keeps its habits: plain statements, nouns for names, room on a line."""

from pathlib import Path

from citerec.index.folder import IndexFolder
from experiments.loaded import PACKAGE, Weight, loaded, package_files


def test_what_is_weighed(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text(
        '"""A module."""\n\n# a note\na, b = 1, 2\nc = [one for one in "ab"]  # two\n'
    )

    weight = Weight.of([file])

    assert (weight.code, weight.tuples, weight.ones) == (2, 1, 1)
    assert weight.tuple_rate == 500


def test_statements_stay_plain() -> None:
    weight = Weight.of(package_files())

    assert weight.tuple_rate <= 1
    assert weight.ones <= 2
    assert weight.density <= 8.5


def test_rooms_stay_few() -> None:
    assert len([*PACKAGE.glob("*.py")]) <= 15


def test_one_query_enters_few_modules(dense_sample: IndexFolder) -> None:
    index = f"--index={dense_sample.path}"

    _, entered = loaded(["recommend", index, "--title=Citation networks"])

    assert len(entered) <= 45
