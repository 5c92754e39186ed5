"""What was tuned on an index: how BM25 and dense retrieval are weighed; beside the models trained on it."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import building
from citerec.config import FuseConfig, FuseMethod
from citerec.errors import BadInputError, ConfigError
from citerec.folder import IndexFolder
from citerec.manifest import seal_model

FOLDER, FILE = "fusion", "fusion.json"


def write_tuned(index: IndexFolder, config: FuseConfig, how: Mapping[str, Any]) -> Path:
    """Write how the stages of an index are to be fused, and how that was found; return the file.

    Raises:
        OutputError: If it cannot be written.
    """
    content = {"fuse": asdict(config), "for": _of(index), "how": dict(how)}
    target = index.models / FOLDER
    with building(target) as folder:
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / FILE).write_bytes(orjson.dumps(content, option=options))
        seal_model(folder)
    return target / FILE


def read_tuned(index: IndexFolder) -> FuseConfig | None:
    """Return how the stages of an index are to be fused; None if it was not tuned with its papers and encoder.

    Raises:
        BadInputError: If it cannot be made out.
    """
    file = index.models / FOLDER / FILE
    if not file.is_file():
        return None
    try:
        content = orjson.loads(file.read_bytes())
        if content["for"] != _of(index):
            return None
        settings: Any = content["fuse"]
        return replace(FuseConfig(**settings), method=FuseMethod(settings["method"]))
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        advice = f"citerec tune --index {index.path}"
        raise BadInputError(file, f"cannot be made out; make it again: {advice}") from error


def _of(index: IndexFolder) -> dict[str, str | None]:
    """Return what a tuning is good for: these papers, that encoder."""
    recorded = index.manifest.settings.get("encoder")
    encoder = recorded["weights"] if recorded else None
    return {"corpus": index.manifest.corpus["sha256"], "encoder": encoder}
