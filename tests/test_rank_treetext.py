"""The text of a LightGBM model: what LightGBM would not survive does not reach it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.tiny_ranker import tiny_ranker
from support.tools import run_python

from citerec.errors import ModelDamagedError, ModelError
from citerec.files.checksums import seal_model
from citerec.rank.ltr import DEFAULT, Variant, open_ranker
from citerec.rank.trees import checked


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of a few trees of 21 features."""
    folder = tiny_ranker(
        tmp_path_factory.mktemp("r"), {"bm25": 1.0}, variants=[Variant.FULL]
    )
    return (folder / "full.txt").read_text()


def count(text: str) -> int:
    return len(text.partition("feature_names=")[2].partition("\n")[0].split())


def test_of_a_whole_model_only_what_does_not_predict_is_left_out(text: str) -> None:
    kept = checked(text, count(text))

    assert text.startswith(kept)
    assert kept.endswith("\n\nend of trees\n")
    for variant in Variant:  # those of the package
        assert checked(
            (DEFAULT / f"{variant}.txt").read_text(),
            len(open_ranker(DEFAULT, variant).features),
        )


def put(name: str, value: str) -> Callable[[str], str]:
    """Return what puts a first number into a field of the first tree, of as many letters."""

    def harm(text: str) -> str:
        head, found, rest = text.partition(f"\n{name}=")
        first, blank, more = rest.partition(" ")
        return f"{head}{found}{value.ljust(len(first), '0')}{blank}{more}"

    return harm


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lambda t: t[: len(t) // 2], "is cut off"),
        (lambda t: t[: t.index("end of trees")], "cut off"),
        (lambda t: t.replace("tree_sizes=", "tree_sizes=9"), "cut off"),
        (lambda t: t.replace("num_class=1", "num_class=9"), "head"),
        (
            lambda t: t.replace("max_feature_idx=", "max_feature_idx=9"),
            "does not read",
        ),
        (lambda t: t.replace("num_leaves=15", "num_leaves=99", 1), "expected 98"),
        (lambda t: t.replace("num_cat=0", "num_cat=1", 1), "categorical splits"),
        (lambda t: t.replace("is_linear=0", "is_linear=1", 1), "linear leaves"),
        (put("split_feature", "99"), "expected|cut off|does not exist"),
        (put("left_child", "9"), "not form a tree|cut off"),
        (put("leaf_value", "nan"), "leaf_value"),
        (put("decision_type", "1"), "not numerical"),
        (lambda t: t.replace("version=v4", "version=v9"), "head"),
        (lambda t: "", "head"),
    ],
)
def test_a_model_that_does_not_fit_itself_is_refused(
    text: str, harm: Callable[[str], str], fault: str
) -> None:
    harmed = harm(text)

    assert harmed != text
    with pytest.raises(ValueError, match=fault):
        checked(harmed, count(text))


def test_a_cut_off_model_is_one_line_and_ends_no_process(tmp_path: Path) -> None:
    folder = tiny_ranker(tmp_path / "r", {"bm25": 1.0}, variants=[Variant.FULL])
    whole = (folder / "full.txt").read_text()
    # LightGBM aborts: exit code 134
    (folder / "full.txt").write_text(whole[: len(whole) // 2])

    with pytest.raises(ModelDamagedError, match=r"full\.txt is not what was written"):
        open_ranker(folder)
    seal_model(folder)
    with pytest.raises(
        ModelError, match=r"full\.txt cannot be parsed \(tree .* is cut off\)"
    ):
        open_ranker(folder)


def test_lightgbm_writes_nothing_to_stdout() -> None:
    program = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from citerec.rank.trees import load\n"
        "lightgbm = load()\n"
        "data = lightgbm.Dataset(np.zeros((9, 2)), np.zeros(9))\n"
        "lightgbm.train({'min_data_in_leaf': 1, 'min_data': 2}, data, num_boost_round=1)\n"  # warns of all there is
    )

    child = run_python(program)

    assert (child.stdout, child.stderr) == ("", "")


@pytest.mark.parametrize("name", ["../full.txt", "/etc/passwd", "a\\b", ""])
def test_a_ranker_names_no_file_outside_its_folder(tmp_path: Path, name: str) -> None:
    folder = tiny_ranker(tmp_path / "r", {"bm25": 1.0}, variants=[Variant.FULL])
    spec = folder / "ranker.json"
    spec.write_text(
        spec.read_text().replace('"full.txt"', f'"{name}"'.replace("\\", "\\\\"))
    )
    seal_model(folder)

    with pytest.raises(ModelError, match=r"ranker\.json"):
        open_ranker(folder)
