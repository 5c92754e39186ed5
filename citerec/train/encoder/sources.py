"""The names of the training signals, and the checks of settings that belong together."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from citerec.errors import ConfigError

COUNTS_FILE = re.compile(r"\.json(\.(gz|zst|bz2))?$")


class EncoderPositives(StrEnum):
    """The source of positives."""

    CITATIONS = "citations"
    CO_CITATIONS = "co-citations"  # papers most often cited together with the query
    NEIGHBOURS = "neighbours"  # nearest in an embedding of the citation graph
    COUNTS = "counts"  # highest counts in files: co-views, co-reads


class EncoderNegatives(StrEnum):
    """The source of hard negatives."""

    CITATIONS = "citations"  # references of the query's references
    CO_CITATIONS = "co-citations"  # papers seldom cited together with the query
    MINED = "mined"  # top ranks of the fusion of BM25 and the base model
    NEIGHBOURS = "neighbours"  # at some distance in an embedding of the citation graph
    COUNTS = "counts"  # lowest counts above 0 in files


GRAPH_KINDS = tuple(kind for kind in EncoderPositives if kind is not EncoderPositives.COUNTS)
_LISTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "counts": ((str,), "texts"),
    "sources": ((str,), "texts"),
    "source_weights": ((int, float), "numbers"),
}


def listed(name: str, value: Any, where: str) -> Any:
    """Convert a list from TOML to the tuple of a list setting; other values are returned unchanged.

    Raises:
        ConfigError: If a list setting has another value, or entries of a wrong type.
    """
    if name not in _LISTS or isinstance(value, tuple):
        return value
    kinds, called = _LISTS[name]
    if not isinstance(value, list) or not all(type(entry) in kinds for entry in value):
        raise ConfigError(f"{where}{name} must be a list of {called}, got {value!r}")
    return tuple(float(entry) for entry in value) if float in kinds else tuple(value)


def check_counts(kinds: Sequence[str], counts: Sequence[str]) -> None:
    """Check that files of counts are given if and only if a source reads them.

    Args:
        kinds: The sources of positives and negatives.
        counts: The files.

    Raises:
        ConfigError: If one is given without the other.
    """
    if (EncoderPositives.COUNTS in kinds) != bool(counts):
        raise ConfigError(
            'counts = ["FILE", ...] needs positives or negatives = "counts", and the reverse; '
            f"got {len(counts)} files, positives and negatives {', '.join(kinds)}"
        )


def check_sources(sources: Sequence[str], weights: Sequence[float]) -> None:
    """Refuse unknown and repeated sources, and weights that do not match them.

    Raises:
        ConfigError: If there are any.
    """
    for source in sources:
        if source not in GRAPH_KINDS and not COUNTS_FILE.search(source):
            raise ConfigError(
                f"sources must be {', '.join(GRAPH_KINDS)} or files that end in .json; got {source!r}"
            )
    if len(set(sources)) < len(sources):
        raise ConfigError(f"sources must differ, got {', '.join(sources)}")
    if len(weights) not in (0, len(sources)):
        raise ConfigError(
            f"source_weights must have one weight per source, got {len(weights)} for {len(sources)}"
        )
    if not all(0 < weight < float("inf") for weight in weights):
        raise ConfigError(f"source_weights must be greater than 0, got {[*weights]}")
