"""Settings files: who wins, what is checked, and what `citerec config` shows."""

import os
from pathlib import Path

import pytest
import typer

from citerec.cli import COMMANDS, make_app, run
from citerec.cli.options import REFUSED, options_of
from citerec.cli.settings_file import COMMON, settings_of, use_keys
from citerec.errors import BadInputError, ConfigError
from citerec.folder import IndexFolder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample_index: IndexFolder) -> Path:
    """A working folder with the index of the sample; returns the user's configuration folder."""
    work = tmp_path / "work"
    (work / "indexes").mkdir(parents=True)
    (work / "indexes" / "sample").symlink_to(sample_index.path)
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CITEREC_JAVA_HEAP", raising=False)
    folder = tmp_path / "config" / "citerec"
    folder.mkdir(parents=True)
    return folder


def settings(text: str, folder: Path | None = None) -> None:
    ((folder or Path()) / "citerec.toml").write_text(text, encoding="utf-8")


def show(capsys: pytest.CaptureFixture[str], command: str = "recommend") -> dict[str, list[str]]:
    """Value and origin of each option that `citerec config show` prints."""
    capsys.readouterr()
    assert run(["config", "show", "--command", command]) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()[1:]]
    return {name: [value, origin] for name, value, origin in rows}


def failure(capsys: pytest.CaptureFixture[str], text: str, *arguments: str) -> str:
    settings(text)
    capsys.readouterr()

    code = run(list(arguments) or ["recommend", "--title", "Trees"])

    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1
    return captured.err


# --- who wins


def test_recommend_takes_its_defaults_from_the_working_folder(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('index = "indexes/sample"\n[recommend]\nk = 2\nformat = "trec"\nranker = "none"\n')
    assert run(["recommend", "--title", "Dense retrieval"]) == 0
    by_settings = capsys.readouterr().out

    assert run(["recommend", "--title", "Dense retrieval", "--k", "1"]) == 0

    assert len(by_settings.splitlines()) == 2
    assert capsys.readouterr().out.splitlines() == by_settings.splitlines()[:1]


def test_the_working_folder_wins_over_the_user_and_a_table_over_the_common_part(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('k = 5\nranker = "none"\n[recommend]\nk = 6\ndiversity = 0.5\n', home)
    settings("k = 7\n")

    shown = show(capsys)

    assert shown["k"] == ["7", "citerec.toml, line 1"]
    assert shown["ranker"] == ["none", f"{home / 'citerec.toml'}, line 2"]
    assert shown["diversity"] == ["0.5", f"{home / 'citerec.toml'}, line 5"]
    assert shown["explain"] == ["false", "default"]


def test_the_environment_wins_over_a_file(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings('heap = "1g"\n')
    by_file = show(capsys)["heap"]

    monkeypatch.setenv("CITEREC_JAVA_HEAP", "3g")

    assert by_file == ["1g", "citerec.toml, line 1"]
    assert show(capsys)["heap"] == ["3g", "environment CITEREC_JAVA_HEAP"]


def test_a_common_index_is_not_where_citerec_index_builds(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('index = "indexes/sample"\nformat = "bibtex"\n')

    assert show(capsys, "info")["index"] == ["indexes/sample", "citerec.toml, line 1"]
    assert show(capsys, "info")["format"] == ["table", "default"]
    assert show(capsys, "index")["format"] == ["auto", "default"]
    assert "index" not in show(capsys, "index")


def test_common_settings_may_be_in_a_table_of_their_own(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('[common]\nindex = "indexes/sample"\nk = 3\n[index]\nshard = 64\n')

    assert show(capsys)["k"] == ["3", "citerec.toml, line 3"]
    assert show(capsys, "info")["index"] == ["indexes/sample", "citerec.toml, line 2"]
    assert show(capsys, "index")["shard"] == ["64", "citerec.toml, line 5"]


def test_qrels_replace_an_index_of_the_settings(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('index = "indexes/sample"\n')

    assert run(["evaluate", "--run", "run.txt", "--qrels", "none.txt"]) == 2
    assert run(["evaluate", "--run", "run.txt", "--qrels", "none.txt", "--index", "x"]) == 2

    by_settings, by_option = capsys.readouterr().err.splitlines()
    assert "two sources" not in by_settings
    assert "--qrels and --index are two sources" in by_option


def test_a_list_or_one_text_sets_an_option_that_may_be_repeated(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('[recommend]\nreranker = ["a", "b"]\nretriever = "c"\nexclude = "~/x.bib"\n')

    shown = show(capsys)

    assert shown["retriever"][0] == "c"
    assert shown["exclude"][0] == str(Path("~/x.bib").expanduser())
    assert run(["config", "show", "--format", "json"]) == 0
    assert '"value": "a, b"' in capsys.readouterr().out


def test_a_group_of_commands_has_tables_in_its_table(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings("[datasets.fetch]\narchive = true\n")

    assert show(capsys, "datasets fetch")["archive"] == ["true", "citerec.toml, line 2"]
    assert run(["datasets", "list"]) == 0
    settings("[datasets]\narchive = true\n")
    assert run(["datasets", "list"]) == 2
    assert "line 2: datasets is a group; settings belong in" in capsys.readouterr().err


# --- what is refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('k = "ten"', "line 1: k: expected a whole number, found 'ten'"),
        ("k = true", "line 1: k: expected a whole number"),
        ("[recommend]\n\nk = 0", "line 3: recommend.k:"),
        ('[recommend]\nfusion = "x"', "'x' is not one of 'auto', 'rrf', 'weighted'"),
        ('[recommend]\nkk = 3\n"k" = 3', "line 2: unknown setting 'recommend.kk'; known settings:"),
        ('index = ""', "line 1: index: it is empty; name a file or a folder"),
        ('format = "tabel"', "line 1: format: 'tabel' is not one of 'table', 'json'"),
        (
            "[recomend]",
            "line 1: there is no command 'recomend'; choose from check, collect, config,",
        ),
        ("recommend = 3", "line 1: unknown setting 'recommend'"),
        ('colour = "red"', "line 1: unknown setting 'colour'; settings of all commands: index,"),
        ("k = [[[", "citerec.toml: not TOML"),
        ('[recommend]\nreranker = ["a", 3]', "expected text, or a list of such, found 3"),
    ],
)
def test_a_wrong_name_or_value_is_one_line_with_its_place(
    home: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    assert words in failure(capsys, text)


@pytest.mark.parametrize("name", ["output", "append", "pick", "query"])
def test_a_file_cannot_make_a_command_write(
    home: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    in_table = failure(capsys, f'[recommend]\n{name} = "x"\n')
    outside = failure(capsys, f'{name} = "x"\n')

    assert f"'recommend.{name}' cannot be set in a settings file" in in_table
    assert f"give it on the command line: --{name}" in in_table
    assert f"'{name}' cannot be set in a settings file" in outside


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("[index]\nforce = true", "index"),
        ("[index]\nrollback = true", "index"),
        ("[index]\ncompact = true", "index"),
        ('[index]\nindex = "indexes/other"', "index"),
        ('[train-ranker]\noutput = "x"', "train-ranker"),
    ],
)
def test_a_file_cannot_make_a_command_replace(
    home: Path, capsys: pytest.CaptureFixture[str], text: str, command: str
) -> None:
    err = failure(capsys, text, "config", "show", "--command", command)

    assert "it decides which files are written or replaced" in err


def test_every_refused_or_common_setting_is_one_of_a_command() -> None:
    app = typer.main.get_command(make_app())
    parsers = dict(app.commands)  # pyright: ignore[reportAttributeAccessIssue]
    for group in [name for name, parser in parsers.items() if hasattr(parser, "commands")]:
        parsers |= parsers.pop(group).commands
    names = {name for command, p in parsers.items() for name in options_of(command, p)}

    planned = {"delete", "overwrite", "host", "yes", "search", "update"}  # or of other commands

    assert set(COMMON) <= names
    assert set(REFUSED) - planned <= names


def test_help_version_and_config_path_need_no_valid_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings("broken = [")

    assert run(["--version"]) == run(["--help"]) == run(["recommend", "--help"]) == 0
    assert run(["config", "path"]) == 0

    lines = capsys.readouterr().out.splitlines()[-2:]
    assert lines[0] == f"read          {Path('citerec.toml').absolute()}"
    assert lines[1] == f"no such file  {home / 'citerec.toml'}"


def test_a_folder_or_a_pipe_is_no_settings_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("citerec.toml").mkdir()
    assert run(["info"]) == 2
    Path("citerec.toml").rmdir()
    os.mkfifo("citerec.toml")
    assert run(["info"]) == 2

    assert capsys.readouterr().err.count("not a regular file, expected settings in TOML") == 2


def test_an_error_of_the_options_points_to_the_settings(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = failure(capsys, '[recommend]\nfields = "doi"\n')

    assert "--fields is for --format json" in err
    assert "citerec config show" in err


# --- keys of services


def keys(text: str, folder: Path) -> dict[str, object]:
    """Settings of a command `collect`, in whose table keys may be named."""
    settings(text, folder)
    app = typer.main.get_command(make_app(["info"]))
    info = app.commands["info"]  # pyright: ignore[reportAttributeAccessIssue]
    return dict(settings_of("collect", info, {*COMMANDS, "collect"}, [folder / "citerec.toml"]))


def test_a_setting_names_the_variable_of_a_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OPENALEX", "secret")
    monkeypatch.delenv("OPENALEX_API_KEY", raising=False)
    monkeypatch.setenv("S2_API_KEY", "mine")
    found = keys('[collect]\nopenalex_key_env = "MY_OPENALEX"\ns2_key_env = "OTHER"\n', home)

    use_keys(found)  # pyright: ignore[reportArgumentType]

    assert os.environ["OPENALEX_API_KEY"] == "secret"
    assert os.environ["S2_API_KEY"] == "mine"
    monkeypatch.delenv("S2_API_KEY")
    with pytest.raises(ConfigError, match="line 3: s2_key_env: the environment has no OTHER"):
        use_keys(found)  # pyright: ignore[reportArgumentType]
    monkeypatch.delenv("OPENALEX_API_KEY")


def test_a_working_folder_cannot_send_other_secrets(home: Path) -> None:
    with pytest.raises(BadInputError, match="AWS_SECRET is no variable of OPENALEX"):
        keys('[collect]\nopenalex_key_env = "AWS_SECRET"\n', Path())
    with pytest.raises(BadInputError, match="the name of an environment variable, not the key"):
        keys('[collect]\nopenalex_key_env = "sk-1234"\n', Path())
