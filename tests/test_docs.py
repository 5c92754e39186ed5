"""What the README shows is what one gets: its console blocks run, its Python block, too.

Models run in float32, as the README says of its examples: in bfloat16 processors differ by more than rounding.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from console import difference
from filelock import FileLock

from citerec.folder import IndexFolder, open_index

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def steps(block: str) -> list[tuple[str, str]]:
    """Split a console block into commands and what they are shown to print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


COMMANDS = Path(sys.executable).parent
ENVIRONMENT = os.environ | {
    "PATH": f"{COMMANDS}:{os.environ['PATH']}",
    "COLUMNS": "100",
    "CITEREC_DTYPE": "float32",
}


def run_command(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(frozen=True)
class Demo:
    """What `make demo` leaves: the folder that it ran in, and what it printed."""

    folder: Path
    printed: subprocess.CompletedProcess[str]

    @property
    def index(self) -> IndexFolder:
        return open_index(self.folder / "indexes" / "sample")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Demo:
    """The demo, run once for all processes of a test run: in float32 it embeds the sample for half a minute."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "demo"
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            folder.mkdir()
            done = run_command("citerec demo", folder)
            (folder / "printed.json").write_text(json.dumps(vars(done)))
        printed = json.loads((folder / "printed.json").read_text())
    return Demo(folder, subprocess.CompletedProcess(**printed))


@pytest.fixture
def workplace(tmp_path: Path, demo: Demo) -> Path:
    """A folder in which the README's reader stands after `make demo`, with some files of their own."""
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(demo.index.path)
    texts = dict(step for block in blocks("console") for step in steps(block))
    for name in ("draft.txt", "cited.bib"):
        (tmp_path / name).write_text(texts[f"cat {name}"])
    index = demo.index
    ids = (index.splits / "test.ids").read_text().split()
    papers = [index.papers[int(row)] for row in index.papers.rows_of(ids)]
    queries = [{"id": p.id, "title": p.title, "year": p.year} for p in papers]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
    corpus = [
        {"id": "a", "title": "Graph drawing", "abstract": "Forces.", "year": 1990},
        {"id": "b", "title": "Tree drawing", "year": 1995, "citations": ["a", "elsewhere"]},
        {"id": "c", "title": "Maps", "abstract": "Of trees.", "year": 1999, "citations": ["b"]},
    ]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "papers.jsonl").write_text("".join(json.dumps(p) + "\n" for p in corpus))
    return tmp_path


def test_the_demo_indexes_the_sample_and_says_what_to_do_next(demo: Demo) -> None:
    done = demo.printed

    assert done.returncode == 0
    assert "matches: " in done.stdout
    assert "What to do next:" in done.stdout
    assert "indexed 300 landmark papers, embedded by minilm, into indexes/sample/" in done.stderr
    assert demo.index.manifest.name == "sample"


@pytest.mark.slow  # embeds the sample again; that --quiet leaves the result alone is tested for other commands
def test_the_demo_can_be_quiet(demo: Demo, tmp_path: Path) -> None:
    done = run_command("citerec demo --quiet", tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert demo.printed.stdout.startswith(done.stdout)


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.split("\n")[0][2:40])
def test_a_console_block_of_the_readme_prints_what_it_shows(block: str, workplace: Path) -> None:
    for command, shown in steps(block):
        done = run_command(command, workplace)

        assert done.returncode == 0, done.stderr
        printed = done.stdout + done.stderr
        assert not difference(shown, printed), f"{command} printed:\n{printed}"


def test_the_python_block_of_the_readme_runs(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    names: dict[str, object] = {}

    for block in blocks("python"):
        exec(block, names)

    assert len(names["papers"]) == 20  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "experiments/README.md"])
def test_what_a_page_links_to_is_there(page: str) -> None:
    path = README.parent / page

    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text())

    assert [link for link in links if not (path.parent / link).exists()] == []
