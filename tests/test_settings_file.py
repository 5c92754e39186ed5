"""The settings file: defaults of options, a table for each command."""

import json
from pathlib import Path

import pytest

from citerec.cli import run
from citerec.folder import IndexFolder


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample_index: IndexFolder) -> None:
    """A working folder with the index of the sample, and an empty configuration folder."""
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(sample_index.path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def recommended(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    capsys.readouterr()
    assert run(["recommend", "--title", "Trees", "--ranker", "none", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_table_sets_the_defaults_of_its_command_and_options_win(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("citerec.toml").write_text('[recommend]\nk = 2\nformat = "trec"\n')

    assert [line.split()[3] for line in recommended(capsys)] == ["1", "2"]
    assert len(recommended(capsys, "--k", "3")) == 3


def test_the_working_folder_wins_over_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config" / "citerec").mkdir(parents=True)
    (tmp_path / "config" / "citerec" / "citerec.toml").write_text(
        '[recommend]\nk = 4\nformat = "trec"\n'
    )
    assert len(recommended(capsys)) == 4

    Path("citerec.toml").write_text('[recommend]\nk = 1\nformat = "trec"\n')
    assert len(recommended(capsys)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "k = 5\n",  # outside the table of a command
        "[recommend]\nkk = 5\n",
        "[recommand]\nk = 5\n",
        '[recommend]\nk = "many"\n',
        "[recommend]\nk = 0\n",
        '[recommend]\noutput = "list.txt"\n',
        "broken = [",
    ],
)
def test_what_a_file_cannot_set_is_one_line_with_exit_code_2(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("citerec.toml").write_text(text)

    assert run(["recommend", "--title", "Trees"]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("option", ['index = "indexes/sample"', "force = true", "resume = true"])
def test_a_file_cannot_make_a_build_write(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("citerec.toml").write_text(f"[index]\n{option}\n")

    assert run(["index", "corpus.jsonl"]) == 2
    assert "cannot be set in a file" in capsys.readouterr().err


def test_a_group_of_commands_has_tables_in_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    Path("citerec.toml").write_text("[corpus.sample]\nseed = 3\n")

    assert run(["corpus", "sample", "none.jsonl", "-o", "x.jsonl"]) == 2
    assert "none.jsonl" in capsys.readouterr().err
    assert run(["info"]) == 0


def test_systems_of_a_file_stand_beside_given_runs_and_its_other_options_do_not_matter_to_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.run").write_text("q Q0 d 1 1 t\n")
    Path("gold.txt").write_text("q 0 d 1\n")
    ids = Path("indexes/sample/splits/test.ids").read_text().split()
    Path("own.run").write_text("".join(f"{qid} Q0 d 1 1 t\n" for qid in ids))

    def systems(text: str, *options: str) -> list[str]:
        Path("citerec.toml").write_text(f"[evaluate]\n{text}")
        assert run(["evaluate", "--run", *options, "--output", "out"]) == 0
        capsys.readouterr()
        report = json.loads(Path("out/report.json").read_text())
        return [system["name"] for system in report["systems"]]

    named = 'systems = "random"\nk1 = 2.0\n'
    assert systems(named, "own.run") == ["own", "random"]
    assert systems(named, "own.run", "--systems", "bm25") == ["own", "bm25"]
    assert systems(named, "mine.run", "--qrels", "gold.txt") == ["mine"]  # without an index
    assert systems("k1 = 2.0\naudit = true\nthreads = 1\n", "own.run") == ["own"]


def test_help_and_version_need_no_valid_file() -> None:
    Path("citerec.toml").write_text("broken = [")

    assert run(["--version"]) == run(["--help"]) == run(["recommend", "--help"]) == 0
