"""The names of what an encoder may learn from, and which settings of them go together."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from citerec.errors import ConfigError

COUNTS_FILE = re.compile(r"\.json(\.(gz|zst|bz2))?$")


class Positives(StrEnum):
    """Which papers a query is drawn to."""

    CITATIONS = "citations"
    CO_CITATIONS = "co-citations"  # most often cited together with it
    NEIGHBOURS = "neighbours"  # in an embedding of the citation graph
    COUNTS = "counts"  # of the highest counts in files: co-views, co-reads


class Negatives(StrEnum):
    """Where the hard ones come from, those that a query is held off."""

    CITATIONS = "citations"  # cited by a paper that it cites
    CO_CITATIONS = "co-citations"  # cited together with it, but seldom
    MINED = "mined"  # what BM25 and the base model find together
    NEIGHBOURS = "neighbours"  # of some distance, in an embedding of the citation graph
    COUNTS = "counts"  # of the lowest counts in files, above 0


GRAPH_KINDS = tuple(kind for kind in Positives if kind is not Positives.COUNTS)
_LISTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "counts": ((str,), "texts"),
    "sources": ((str,), "texts"),
    "source_weights": ((int, float), "numbers"),
}


def listed(name: str, value: Any, where: str) -> Any:
    """Return the list that a TOML file has as the tuple that a setting is; any other value as it is.

    Raises:
        ConfigError: If the setting is a list, and the value is none, or holds something else.
    """
    if name not in _LISTS or isinstance(value, tuple):
        return value
    kinds, called = _LISTS[name]
    if not isinstance(value, list) or not all(type(entry) in kinds for entry in value):
        raise ConfigError(f"{where}{name} must be a list of {called}, got {value!r}")
    return tuple(float(entry) for entry in value) if float in kinds else tuple(value)


def check_counts(kinds: Sequence[str], counts: Sequence[str]) -> None:
    """Refuse files of counts that nobody reads, and the reverse.

    Args:
        kinds: What positives and negatives are.
        counts: The files.

    Raises:
        ConfigError: If one is there without the other.
    """
    if (Positives.COUNTS in kinds) != bool(counts):
        raise ConfigError(
            'counts = ["FILE", ...] goes with positives or negatives = "counts"; '
            f"got {len(counts)} files, and {', '.join(kinds)}"
        )


def check_sources(sources: Sequence[str], weights: Sequence[float]) -> None:
    """Refuse sources that are not known, stand twice, or do not fit their weights.

    Raises:
        ConfigError: If they cannot be.
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
            f"source_weights must be one for each source, got {len(weights)} for {len(sources)}"
        )
    if not all(0 < weight < float("inf") for weight in weights):
        raise ConfigError(f"source_weights must be greater than 0, got {[*weights]}")
