"""The settings file: defaults of options, a table for each command."""

from pathlib import Path

import pytest
from support.types import Capture, MonkeyPatch

from citerec.cli import run


@pytest.fixture(autouse=True)
def work(sample_place: Path, monkeypatch: MonkeyPatch) -> None:
    """A working folder with the index of the sample, and an empty configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(sample_place / "config"))


def recommended(capsys: Capture, *options: str) -> list[str]:
    capsys.readouterr()
    assert run(["recommend", "--title", "Trees", "--ranker", "none", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_table_sets_the_defaults_of_its_command_and_options_win(
    capsys: Capture,
) -> None:
    Path("citerec.toml").write_text('[recommend]\nk = 2\nformat = "trec"\n')

    assert [line.split()[3] for line in recommended(capsys)] == ["1", "2"]
    assert len(recommended(capsys, "--k", "3")) == 3


def test_the_working_folder_wins_over_the_user(tmp_path: Path, capsys: Capture) -> None:
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
    text: str, capsys: Capture
) -> None:
    Path("citerec.toml").write_text(text)

    assert run(["recommend", "--title", "Trees"]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "option", ['index = "indexes/sample"', "force = true", "resume = true"]
)
def test_a_file_cannot_make_a_build_write(option: str, capsys: Capture) -> None:
    Path("citerec.toml").write_text(f"[index]\n{option}\n")

    assert run(["index", "corpus.jsonl"]) == 2
    assert "cannot be set in a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("recommend --title Trees", 'ray = "10.0.0.1:6379"'),
        ("serve", 'desk = "drafts"'),
        ("serve", 'token_file = "tokens.txt"'),
        ("watch corpus --query draft.txt", 'index = "indexes/sample"'),
    ],
)
def test_a_file_cannot_say_where_drafts_go_or_who_reads_them(
    command: str, option: str, capsys: Capture
) -> None:
    name, *given = command.split()
    Path("citerec.toml").write_text(f"[{name}]\n{option}\n")

    assert run([name, *given]) == 2
    assert "cannot be set in a file" in capsys.readouterr().err


def test_a_group_of_commands_has_tables_in_its_table(capsys: Capture) -> None:
    Path("citerec.toml").write_text("[corpus.sample]\nseed = 3\n")

    assert run(["corpus", "sample", "none.jsonl", "-o", "x.jsonl"]) == 2
    assert "none.jsonl" in capsys.readouterr().err
    assert run(["info"]) == 0


def test_help_and_version_need_no_valid_file() -> None:
    Path("citerec.toml").write_text("broken = [")

    assert run(["--version"]) == run(["--help"]) == run(["recommend", "--help"]) == 0
