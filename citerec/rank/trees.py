"""LightGBM models: the only import of lightgbm, and the check of a model's text before LightGBM parses it.

A wrong number in the text can crash the process, and a model may be a downloaded file. Source of the format: what
`Booster.save_model` of LightGBM 4 writes.
"""

import logging
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from citerec.errors import ModelError
from citerec.files.arrays import Array
from citerec.files.checksums import read_record

HEAD = {
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "feature_names",
    "monotone_constraints",
    "feature_infos",
    "tree_sizes",
}
FIXED = {
    "version": "v4",
    "num_class": "1",
    "num_tree_per_iteration": "1",
    "label_index": "0",
}
OBJECTIVES = {"lambdarank", "rank_xendcg", "regression"}
END = "end of trees\n"
# far above those of any ranker; the cost of contributions is quadratic in the leaves
MAX_LEAVES = 1024
MAX_TREES = 10_000
INTEGERS = (
    "split_feature",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_count",
    "internal_count",
)
NUMBERS = (
    "split_gain",
    "threshold",
    "leaf_value",
    "leaf_weight",
    "internal_value",
    "internal_weight",
)
# the other fields describe inner nodes
OF_LEAVES = {
    "leaf_value",
    "leaf_weight",
    "leaf_count",
}
# imported by lightgbm if there
OPTIONAL = (
    "pandas",
    "sklearn",
    "matplotlib",
    "graphviz",
    "dask",
)
_INTEGERS = re.compile(r"[-0-9 ]*")
_NUMBERS = re.compile(r"[-+.0-9e ]*")
# decision types of numerical splits; odd ones are categorical
_NUMERICAL = {
    0,
    2,
    4,
    6,
    8,
    10,
}
_INFO = re.compile(r"none|\[[-+.0-9e]+:[-+.0-9e]+\]")


def read_booster(file: Path, features: int) -> Any:
    """Read a model of some number of features that was saved as text, as a `lightgbm.Booster`."""
    lightgbm = load()
    try:
        text = checked(read_record(file).decode("ascii"), features)
        return lightgbm.Booster(model_str=text)
    except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ModelError(
            f"{file} cannot be parsed ({reason}); train the ranker again"
        ) from error


class _Log:
    """Passes messages of LightGBM to the log of this module: its default logger writes to stdout."""

    def info(self, message: str) -> None:
        logging.getLogger(__name__).debug(message.strip())

    warning = info  # no warning helps the user of a recommendation


def load(*, hide_optional: bool = False) -> Any:
    """Import lightgbm.

    `hide_optional` hides its optional libraries, whose import takes longer than its own. lightgbm does not use them
    until the process ends, so set it in a command only.
    """
    hides = hide_optional and sys.modules.keys().isdisjoint({"lightgbm", *OPTIONAL})
    hidden: dict[str, Any] = dict.fromkeys(OPTIONAL if hides else ())
    sys.modules.update(hidden)
    try:
        import lightgbm
    finally:
        for name in hidden:
            del sys.modules[name]
    lightgbm.register_logger(_Log())
    return lightgbm


def checked(text: str, features: int) -> str:
    """Return the part of a model's text that determines its predictions; a ValueError if it is inconsistent."""
    head, _, trees = text.partition("\n\n")
    start = 0
    for number, size in enumerate(_sizes(head, features)):
        _check_tree(trees[start : start + size], number, features)
        start += size
    if not trees[start:].startswith(END):
        raise ValueError("its trees are cut off, or longer than its tree_sizes")
    return f"{head}\n\n{trees[:start]}{END}"


def _sizes(head: str, features: int) -> list[int]:
    """Check the head of a model; return the length of the text of each tree."""
    first, *lines = head.split("\n")
    fields = _fields(lines, HEAD)
    if first != "tree" or any(
        fields.get(name) != value for name, value in FIXED.items()
    ):
        raise ValueError("its head is not the head of a ranker")
    if fields.get("objective") not in OBJECTIVES:
        raise ValueError(f"its objective is {fields.get('objective', '')[:40]!r}")
    if fields.get("max_feature_idx") != str(features - 1):
        raise ValueError(f"it does not read {features} features")
    names, infos = (
        fields.get(name, "").split(" ") for name in ("feature_names", "feature_infos")
    )
    if (
        len(names) != features
        or len(infos) != features
        or not all(map(_INFO.fullmatch, infos))
    ):
        raise ValueError(f"its head does not describe {features} features")
    if "monotone_constraints" in fields:
        constraints = _numbers(fields, "monotone_constraints", features)
        if np.abs(constraints).max() > 1:
            raise ValueError("its monotone_constraints are not -1, 0 or 1")
    sizes = _numbers(fields, "tree_sizes", fields.get("tree_sizes", "").count(" ") + 1)
    if sizes.min() < 0 or len(sizes) > MAX_TREES:
        raise ValueError("its tree_sizes are invalid")
    return sizes.tolist()


def _check_tree(text: str, number: int, features: int) -> None:
    """Check one tree: its numbers, their counts, and the structure of its nodes."""
    first, *lines = text.removesuffix("\n\n\n").split("\n")
    if first != f"Tree={number}" or not text.endswith("\n\n\n"):
        raise ValueError(f"tree {number} is cut off")
    known = {"num_leaves", "num_cat", "is_linear", "shrinkage", *INTEGERS, *NUMBERS}
    fields = _fields(lines, known)
    [leaves] = _numbers(fields, "num_leaves", 1).tolist()
    if not 1 <= leaves <= MAX_LEAVES:
        raise ValueError(f"tree {number} has {leaves} leaves")
    if (fields.get("num_cat"), fields.get("is_linear")) != ("0", "0"):
        raise ValueError(f"tree {number} has categorical splits or linear leaves")
    if leaves == 1:  # LightGBM reads no other field
        _numbers(fields, "leaf_value", 1)
        return
    _numbers(fields, "shrinkage", 1)
    tree = {
        name: _numbers(fields, name, leaves - (name not in OF_LEAVES))
        for name in (*NUMBERS, *INTEGERS)
    }
    if not ((tree["split_feature"] >= 0) & (tree["split_feature"] < features)).all():
        raise ValueError(f"tree {number} splits by a feature that does not exist")
    if not _NUMERICAL.issuperset(tree["decision_type"].tolist()):
        raise ValueError(f"tree {number} has a split that is not numerical")
    if min(tree["leaf_count"].min(), tree["internal_count"].min()) < 0:
        raise ValueError(f"tree {number} has a negative count")
    children = np.concatenate([tree["left_child"], tree["right_child"]])
    is_node = children >= 0
    parents = np.tile(np.arange(leaves - 1), 2)
    if (
        not np.array_equal(np.sort(children[is_node]), np.arange(1, leaves - 1))
        or not np.array_equal(np.sort(~children[~is_node]), np.arange(leaves))
        or (children <= parents)[
            is_node
        ].any()  # nodes are numbered in the order of splits
    ):
        raise ValueError(f"the nodes of tree {number} do not form a tree")


def _fields(lines: list[str], known: set[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition("=")
        if name not in known or name in fields:
            raise ValueError(f"it has the unexpected line {line[:40]!r}")
        fields[name] = value
    return fields


def _numbers(fields: dict[str, str], name: str, count: int) -> Array:
    """Return the numbers of a field, shape (count,): whole ones unless LightGBM reads them as floats."""
    is_whole = name not in {*NUMBERS, "shrinkage"}
    text = fields.get(name, "missing")
    if name == "threshold":  # LightGBM may write an infinite one
        text = text.replace("inf", "1e308")
    if not (_INTEGERS if is_whole else _NUMBERS).fullmatch(text):
        raise ValueError(f"its {name} are not numbers of this kind")
    numbers = np.array([*map(float, text.split())])
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise ValueError(f"it has {len(numbers)} {name}, expected {count} finite ones")
    if not is_whole:
        return numbers
    if np.abs(numbers).max(initial=0) >= 2**31:
        raise ValueError(f"its {name} are too large")
    return numbers.astype(np.int64)
