"""The keys of a row's file, and the valid values of each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import Any, cast

from citerec.config import Bm25Config, StopWords
from citerec.corpus.splits import SPLITS
from citerec.encode.config import Backend, Precision
from citerec.errors import BadInputError
from citerec.evaluate.catalogue import CANDIDATES, systems
from citerec.evaluate.protocol import Rules
from citerec.lab.experiment.kind import MEASURES, ExperimentKind, Needs
from citerec.rank.features import Group
from citerec.rules.known import PROTOCOL
from citerec.text import QueryForm

_Check = tuple[str, Callable[[Any], bool]]  # description of a valid value, and the test


def _is_range(value: Any) -> bool:
    ends = cast("list[Any]", value) if isinstance(value, list) else [value]
    return len(ends) in (1, 2) and all(map(_NUMBER[1], ends)) and ends == sorted(ends)


def _one_of(names: Iterable[str]) -> _Check:
    choices = tuple(names)
    return f"one of {', '.join(choices)}", lambda value: value in choices


_TEXT: _Check = ("a text", lambda value: isinstance(value, str) and bool(value.strip()))
_TEXTS: _Check = (
    "a list of texts",
    lambda value: isinstance(value, list) and bool(value) and all(map(_TEXT[1], value)),
)
_TABLE: _Check = ("a table, such as { mrr = 0.5 }", lambda value: isinstance(value, dict))
_NUMBER: _Check = ("a number", lambda value: type(value) in (int, float) and isfinite(value))
_SHARE: _Check = ("a number in [0, 1]", lambda v: type(v) in (int, float) and 0 <= v <= 1)
_FIGURE: Mapping[str, _Check] = {
    "expect": (
        "a number, or the least and the greatest, such as [0.4, 0.5]",
        _is_range,
    ),
    "published": _NUMBER,
}
_KEYS: Mapping[str, _Check] = {
    **dict.fromkeys(("title", "claim", "cost", "corpus", "source"), _TEXT),
    "kind": _one_of(ExperimentKind),
    "needs": _one_of(Needs),
    "rules": _TABLE,
    "split": _one_of(SPLITS),
    "system": _one_of(systems()),
    "known_graph": _one_of(PROTOCOL),
    "bm25": _TABLE,
    "encoder": _TEXT,
    "train": _TEXT,
    "trained_on": _TEXT,
    "apart": _TEXTS,
    "fuse": _TABLE,
    "reranker": _TEXT,
    "train_reranker": _TEXT,
    "rerank": _TABLE,
    "ranker": _TEXT,
    "train_ranker": _TEXT,
    "ranker_corpora": _TEXTS,
    "disabled_features": (
        f"a list of {', '.join(Group)}",
        lambda value: isinstance(value, list) and bool(value) and {*value} <= {*Group},
    ),
    "expect": _TABLE,
    "published": _TABLE,
}
_BY_CLASS: _Check = ("", lambda _: True)  # the dataclass of the table checks it
_TABLES: Mapping[str, Mapping[str, _Check]] = {
    "bm25": {
        **dict.fromkeys(Bm25Config.model_fields, _BY_CLASS),
        "form": _one_of(QueryForm),
        "stop_words": _one_of(StopWords),
    },
    "fuse": {"k0": _BY_CLASS, "bm25_weight": _SHARE, "dense_weight": _SHARE},
    "rerank": {
        **dict.fromkeys(("depth", "query_tokens", "candidate_tokens"), _BY_CLASS),
        "candidates": _one_of(CANDIDATES),
        "weight": _SHARE,
        "precision": _one_of(Precision),
        "backend": _one_of(Backend),
    },
    "rules": {setting.name: _BY_CLASS for setting in fields(Rules)},
}


def check_all(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a file with an unknown key, an invalid value, or a missing required key.

    Raises:
        BadInputError: If there is one.
    """
    _check(path, content, _KEYS)
    for name, checks in _TABLES.items():
        _check(path, content.get(name, {}), checks, f"{name}.")
    measures = MEASURES[ExperimentKind(content.get("kind", ExperimentKind.RECOMMEND))]
    for name in ("expect", "published"):
        _check(path, content.get(name, {}), dict.fromkeys(measures, _FIGURE[name]), f"{name}.")
    needed = ("title", "claim", "cost", "corpus")
    if content.get("kind") == ExperimentKind.PUBLISHED:
        needed = ("title",)
    if missing := [key for key in needed if key not in content]:
        raise BadInputError(path, f"{missing[0]!r} is missing")
    if content.get("published") and not content.get("source"):
        raise BadInputError(path, "'published' needs 'source': the source of the values")


def _check(
    path: Path, table: Mapping[str, Any], checks: Mapping[str, _Check], within: str = ""
) -> None:
    for key, value in table.items():
        if key not in checks:
            known = ", ".join(sorted(checks))
            raise BadInputError(path, f"unknown key {within + key!r}; known: {known}")
        expected, is_valid = checks[key]
        if not is_valid(value):
            raise BadInputError(path, f"{within}{key} must be {expected}, got {repr(value)[:60]}")
