"""The bundled sample, and the real corpora where there are any."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from citerec.build.index import BuildConfig, build_index
from citerec.index.folder import IndexFolder, open_index

SAMPLE = Path(__file__).parent.parent.parent / "citerec" / "sample" / "papers.jsonl"


REAL_DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"


def real_corpus(name: str) -> Path:
    """Return a corpus of ../shared/data; the test is skipped where there is none."""
    folder = REAL_DATA / name
    if not folder.is_dir():
        pytest.skip(f"needs the corpus {name} in {REAL_DATA}")
    return folder


def records(text: str) -> list[dict[str, Any]]:
    """Return records that are written as JSON, apart by commas."""
    return json.loads(f"[{text}]")


def built(folder: Path, records: Iterable[Mapping[str, Any]]) -> IndexFolder:
    """Index records in a folder; return the opened index."""
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in records)
    )
    build_index(folder / "corpus.jsonl", folder / "index", BuildConfig())
    return open_index(folder / "index")
