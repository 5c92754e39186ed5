"""The recipes of docs/recipes, which editors use."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("fastapi")


from citerec import Recommender
from citerec.index.folder import IndexFolder

ROOT = Path(__file__).parent.parent
RECIPES = ROOT / "docs" / "recipes"
GUIDE = ROOT / "docs" / "guides" / "editors.md"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="Node.js is not installed")


@pytest.fixture
def server(address: str) -> str:
    """The URL of the server that all tests share."""
    return address.removesuffix("/")


@needs_node
def test_the_script_of_the_editor_prints_papers_and_entries(
    server: str, sample_index: IndexFolder
) -> None:
    text = "Late interaction keeps token vectors [CITE]."

    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs"],
        env={"CITEREC_SERVER": server, "CITEREC_TEXT": text, "CITEREC_K": "2"},
        capture_output=True,
        text=True,
        check=False,
    )

    with Recommender(sample_index) as recommender:
        papers = recommender.recommend(context=text, k=2)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"1. {papers[0].paper.title}\n   {papers[0].paper.authors[0]}"
    )
    assert done.stdout.endswith(f"\n{papers.export('bibtex')}\n")


@needs_node
def test_the_script_shows_the_error_of_the_server(server: str) -> None:
    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs", "[CITE]"],
        env={"CITEREC_SERVER": server},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "the context has no words besides citation markers" in done.stderr


def test_the_guide_shows_the_bookmarklet_on_one_line() -> None:
    one_line = " ".join((RECIPES / "bookmarklet.js").read_text().split())

    assert one_line in GUIDE.read_text().splitlines()
