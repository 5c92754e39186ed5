"""Readers and exporters of other packages: the examples of docs/guides/extend.md, found by real entry points."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.guide import BLOCK, GUIDE

import citerec
from citerec import plugins
from citerec.cli import run
from citerec.config import FuseConfig, FuseMethod
from citerec.corpus.readers import FORMATS
from citerec.errors import ConfigError
from citerec.export import formats
from citerec.folder import IndexFolder, open_index
from citerec.io import read_toml
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import open_hybrid

TABLE = (
    "id,title,abstract,year,references\n"
    "a,Graph drawing,Forces between nodes.,1990,\n"
    'b,"Trees, drawn",,1995,a elsewhere\n'
)
PLAIN = ("--ranker", "none")

COMMAND = Path(sys.executable).parent / "citerec"

Install = Callable[..., Path]
Cli = Callable[..., "tuple[int, str]"]


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `citerec index` in an empty folder, in this process; returns the exit code and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str]:
        code = run(["index", *map(str, arguments), "--index", "made", "--encoder", "none"])
        return code, capsys.readouterr().err

    return call


def forget_plugins() -> None:
    for function in (plugins.names, plugins.load, plugins._registered):
        function.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package into a folder of sys.path: its modules, and its entry points in a .dist-info."""

    def make(modules: Mapping[str, str], entry_points: str) -> Path:
        folder = tmp_path / "site"
        folder.mkdir(exist_ok=True)
        for name, code in modules.items():
            (folder / name).write_text(code)
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        info = folder / f"package{len([*folder.iterdir()])}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: package\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(str(folder))
        forget_plugins()
        return folder

    yield make
    monkeypatch.undo()
    forget_plugins()


@pytest.fixture
def guide(install: Install, tmp_path: Path) -> Path:
    """The examples of the guide, installed as one package; returns the folder."""
    blocks = BLOCK.findall(GUIDE.read_text())
    modules = {name: code for language, name, code in blocks if language == "python"}
    lines: list[str] = []
    for language, _, code in blocks:
        if language == "toml":
            (tmp_path / "project.toml").write_text(code)
            points = read_toml(tmp_path / "project.toml")["project"]["entry-points"]
            for group, names in points.items():
                lines += [f"[{group}]"] if f"[{group}]" not in lines else []
                lines += [f"{name} = {value}" for name, value in names.items()]
    return install(modules, "\n".join(lines))


def test_each_example_of_the_guide_is_short() -> None:
    codes = [code for language, _, code in BLOCK.findall(GUIDE.read_text()) if language == "python"]

    assert len(codes) == 4
    assert all(code.count("\n") < 30 for code in codes)


# --- readers


@pytest.mark.parametrize("options", [("--format", "csv"), ()])
@pytest.mark.parametrize("name", ["papers.csv", "papers.csv.gz", "folder/part.csv"])
def test_a_table_is_indexed_by_a_registered_reader(
    cli: Cli,
    guide: Path,
    tmp_path: Path,
    name: str,
    options: tuple[str, ...],
) -> None:
    file = tmp_path / "corpus" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress(TABLE.encode()) if name.endswith(".gz") else TABLE.encode())

    code, _ = cli(file if name.count("/") == 0 else file.parent, *options)

    index = open_index(tmp_path / "made")
    assert (code, index.manifest.corpus["format"]) == (0, "csv")
    assert (index.papers[1].title, index.papers[1].year) == ("Trees, drawn", 1995)
    assert index.manifest.counts["citations"] == 1
    assert index.manifest.counts["unknown_references"] == 1


def test_json_lines_are_recognised_by_a_registered_reader(
    cli: Cli,
    guide: Path,
    tmp_path: Path,
) -> None:
    work = '{"doi": "10.1/a", "titles": [{"title": "Maps"}], "relatedIdentifiers": []}\n'
    cites = '[{"relationType": "Cites", "relatedIdentifier": "10.1/a"}]'
    other = work.replace("10.1/a", "10.1/b").replace("[]", cites)
    (tmp_path / "works.jsonl").write_text(work + other)

    code, _ = cli("works.jsonl")

    manifest = open_index(tmp_path / "made").manifest
    assert (code, manifest.corpus["format"]) == (0, "datacite")
    assert (manifest.counts["papers"], manifest.counts["citations"]) == (2, 1)


def test_a_canonical_corpus_stays_canonical_where_readers_are_registered(
    cli: Cli,
    guide: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "papers.jsonl").write_text('{"id": "a", "title": "Maps"}\n')

    assert cli("papers.jsonl")[0] == 0

    assert open_index(tmp_path / "made").manifest.corpus["format"] == "canonical"


def test_a_fault_in_a_table_is_named_with_its_line_and_may_be_skipped(
    cli: Cli,
    guide: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "papers.csv").write_text(f"{TABLE}c,Maps,,soon,\n")

    stopped = cli("papers.csv")
    skipped = cli("papers.csv", "--skip-bad")

    assert stopped[0] == 2
    assert "papers.csv, line 4: 'year' must be a year" in stopped[1]
    assert skipped[0] == 0
    assert open_index(tmp_path / "made").manifest.counts["papers"] == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "suffixes = ('.csv',)\ndef records(stream): yield 1, {}['x']\ndef read(fields): pass",
            "papers.csv: the reader 'broken' failed: KeyError: 'x'",
        ),
        (
            "suffixes = ('.csv',)\ndef records(stream): yield 7, {}\ndef read(fields): 1 / 0",
            "papers.csv, line 7: the reader 'broken' failed: ZeroDivisionError: division by zero",
        ),
        (
            "from citerec import Paper\nsuffixes = ('.csv',)\n"
            "def records(stream): yield 7, {}\ndef read(fields): return Paper(id='', title='A')",
            "papers.csv, line 7: a paper: its id is empty",
        ),
        ("suffixes = ('.csv',)\ndef read(fields): pass", "the reader 'broken' is not complete"),
        ("import nowhere", "'broken' of citerec.readers, registered as broken, cannot be loaded"),
    ],
)
def test_a_broken_reader_is_one_line_that_names_it(
    cli: Cli,
    install: Install,
    tmp_path: Path,
    code: str,
    message: str,
) -> None:
    install({"broken.py": code}, "[citerec.readers]\nbroken = broken\n")
    (tmp_path / "papers.csv").write_text(TABLE)

    status, shown = cli("papers.csv", "--format", "broken")

    assert (status, shown.count("\n")) == (2, 1)
    assert message in shown
    assert not (tmp_path / "made").exists()


def test_a_format_that_nobody_registered_is_refused_with_those_there_are(
    cli: Cli,
    guide: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "papers.csv").write_text(TABLE)

    code, shown = cli("papers.csv", "--format", "excel")

    listed = ", ".join([*FORMATS, "csv", "datacite"])
    assert (code, shown) == (2, f"citerec: error: no format 'excel'; there are: {listed}\n")


# --- exporters


def test_a_registered_exporter_writes_the_results(guide: Path) -> None:
    papers = [{"id": "a", "title": "Graph drawing", "year": 1990}, {"id": "b", "title": "Drawing"}]

    with citerec.from_papers(papers, config=citerec.RecommendConfig(ranker="none")) as recommender:
        text = recommender.recommend(title="Drawings of graphs").export("markdown")

    assert formats()[-1] == "markdown"
    assert text == (
        "## Drawings of graphs\n\n1. Graph drawing (1990), `a`\n2. Drawing (no year), `b`\n\n"
    )


def test_the_command_line_finds_the_reader_and_the_exporter_of_an_installed_package(
    guide: Path, tmp_path: Path
) -> None:
    (tmp_path / "papers.csv").write_text(TABLE)
    paths = f"{guide}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )

    built = run("index", "papers.csv", "--encoder", "none", "--index", "made")
    done = run("recommend", "--title", "Trees", "--index", "made", "--format", "markdown", *PLAIN)
    wrong = run("recommend", "--title", "Trees", "--index", "made", "--format", "word")

    assert (built.returncode, done.returncode, wrong.returncode) == (0, 0, 2)
    assert done.stdout == "## Trees\n\n1. Trees, drawn (1995), `b`\n\n"
    assert "'word'" in wrong.stderr
    assert "doi, markdown" in wrong.stderr


# --- stages


def test_the_retriever_of_the_guide_is_fused_with_bm25(
    guide: Path,
    sample_index: IndexFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(sample_index.path)
    monkeypatch.chdir(tmp_path)
    *_, usage = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}

    exec(usage, names)

    recommender: citerec.Recommender = names["recommender"]
    assert recommender.retriever_names == ("bm25", "latest")
    assert len(capsys.readouterr().out.split("\n")) > 20
    config = citerec.RecommendConfig(ranker="none")
    latest = citerec.Recommender(sample_index, config, retrievers=[names["Latest"](sample_index)])
    found = latest.recommend(title="Dense retrieval of passages", year=2010, k=5)
    assert [paper.year for paper in found.papers] == [2010] * 5


def test_a_registered_retriever_is_fused_where_it_is_named(
    guide: Path, sample_index: IndexFolder
) -> None:
    query = citerec.Query(id="draft", title="Dense retrieval of passages", year=2010)
    plain = citerec.RecommendConfig(ranker="none")

    with citerec.Recommender(sample_index, plain.replace(retrievers=("latest",))) as named:
        found = named.recommend(query, k=40)
        settings = named.settings_in_use
    with citerec.Recommender(sample_index, plain) as without:
        assert without.retriever_names == ("bm25",)
    latest = citerec.Recommender(
        sample_index, plain, retrievers=[Bm25Retriever(sample_index), load_latest()(sample_index)]
    )

    assert named_stages(found) == {"bm25", "latest"}
    assert found.ids == latest.recommend(query, k=40).ids
    assert settings[0] == "fusion: rrf, k 60 (default)"


def test_a_retriever_without_a_weight_is_fused_by_rrf_even_after_tuning(
    guide: Path, sample_index: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = FuseConfig(method=FuseMethod.WEIGHTED, bm25_weight=0.9, dense_weight=0.1)
    monkeypatch.setattr("citerec.tuned.read_tuned", lambda _: tuned)
    config = citerec.RecommendConfig(ranker="none", retrievers=("latest",))

    opened = open_hybrid(sample_index, config)

    assert opened.config == FuseConfig()
    with pytest.raises(ConfigError, match="no weight for the retriever 'latest'; fuse by rrf"):
        open_hybrid(sample_index, config.replace(fuse=FuseMethod.WEIGHTED))


def test_a_retriever_that_no_package_adds_is_refused(
    guide: Path, sample_index: IndexFolder
) -> None:
    config = citerec.RecommendConfig(ranker="none", retrievers=("oldest",))

    with pytest.raises(ConfigError, match="no retriever 'oldest'; there are: latest"):
        citerec.Recommender(sample_index, config)
    with pytest.raises(ConfigError, match="both as objects and by name"):
        citerec.Recommender(sample_index, config, retrievers=[Bm25Retriever(sample_index)])


def test_the_command_line_names_a_registered_retriever(
    guide: Path, sample_index: IndexFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = ("--title", "Dense retrieval of passages", "--index", str(sample_index.path), *PLAIN)

    code = run(["recommend", *draft, "--retriever", "latest", "--format", "json", "--verbose"])
    shown = capsys.readouterr()
    wrong = run(["recommend", *draft, "--retriever", "oldest"])

    assert (code, wrong) == (0, 2)
    assert {name for item in json.loads(shown.out) for name in item["stages"]} == {"bm25", "latest"}
    assert "bm25 + latest" in shown.err
    assert "no retriever 'oldest'; there are: latest" in capsys.readouterr().err


def load_latest() -> Any:
    return plugins.load(plugins.RETRIEVERS, "latest")


def named_stages(found: citerec.Recommendations) -> set[str]:
    return {name for item in found for name in item.stages}
