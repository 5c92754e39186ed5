"""The bundled sample, and the real corpora where there are any."""

from pathlib import Path

import pytest

SAMPLE = Path(__file__).parent.parent.parent / "citerec" / "sample" / "papers.jsonl"


REAL_DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"


def real_corpus(name: str) -> Path:
    """Return a corpus of ../shared/data; the test is skipped where there is none."""
    folder = REAL_DATA / name
    if not folder.is_dir():
        pytest.skip(f"needs the corpus {name} in {REAL_DATA}")
    return folder
