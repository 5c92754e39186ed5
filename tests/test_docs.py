"""What the README shows is what one gets: its console blocks run, its Python block, too.

Models run in float32, as the README says of its examples: in bfloat16 processors differ by more than rounding.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SAMPLE
from console import difference

from citerec.build import BuildConfig, build_index
from citerec.folder import IndexFolder, open_index

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def steps(block: str) -> list[tuple[str, str]]:
    """Split a console block into commands and what they are shown to print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


@pytest.fixture(scope="module")
def demo_index(tmp_path_factory: pytest.TempPathFactory) -> IndexFolder:
    """The index that `make demo` makes."""
    folder = tmp_path_factory.mktemp("demo") / "sample"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CITEREC_DTYPE", "float32")
        build_index(SAMPLE, folder, BuildConfig(encoder="minilm"))
    return open_index(folder)


@pytest.fixture
def workplace(tmp_path: Path, demo_index: IndexFolder) -> Path:
    """A folder in which the README's reader stands after `make demo`, with some files of their own."""
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(demo_index.path)
    texts = dict(step for block in blocks("console") for step in steps(block))
    for name in ("draft.txt", "cited.bib"):
        (tmp_path / name).write_text(texts[f"cat {name}"])
    ids = (demo_index.splits / "test.ids").read_text().split()
    papers = [demo_index.papers[int(row)] for row in demo_index.papers.rows_of(ids)]
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


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.split("\n")[0][2:40])
def test_a_console_block_of_the_readme_prints_what_it_shows(block: str, workplace: Path) -> None:
    commands = str(Path(sys.executable).parent)
    path = f"{commands}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "100", "CITEREC_DTYPE": "float32"}

    for command, shown in steps(block):
        done = subprocess.run(
            command,
            shell=True,
            cwd=workplace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

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
