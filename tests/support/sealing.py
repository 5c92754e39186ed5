"""What somebody does who offers a harmed index or model with checksums that fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from citerec.manifest import NAME, Manifest, checksums, read_manifest, write_manifest
from citerec.sums import seal_of, serialised


def reseal(index: Path, **changes: Any) -> None:
    """Write the manifest of an index anew, for the files that lie there now, with some parts changed."""
    manifest = read_manifest(index)
    write_manifest(index, replace(manifest, checksums=checksums(index), **changes))


def forge(index: Path, **changes: Any) -> None:
    """Change parts of a manifest, whatever lies there, and seal it."""
    content: dict[str, Any] = orjson.loads((index / NAME).read_bytes())
    del content["seal"]
    content |= changes
    (index / NAME).write_bytes(serialised(content | {"seal": seal_of(content)}))


def without_sizes(index: Path) -> Manifest:
    """Write a manifest as they were before they told sizes; return it."""
    manifest = replace(read_manifest(index), sizes={})
    (index / NAME).write_bytes(manifest.to_bytes())
    return manifest
