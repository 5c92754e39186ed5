"""Compares an index with the papers that are added and the ids that are removed: which rows stay, go and come."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from citerec.corpus.columns import numbers
from citerec.corpus.graph import Graph
from citerec.corpus.outside import REPEATED, outside_batches
from citerec.corpus.papers import Papers
from citerec.errors import ConfigError, UnknownIdsError
from citerec.folder import CITATIONS, IndexFolder
from citerec.types import Paper
from citerec.update.added import Added

Rows = npt.NDArray[np.int32]

ENCODED = ("title", "abstract", "venue", "authors")  # fields that a vector may depend on
_AT_ONCE = 4096  # papers that are compared at once


@dataclass(frozen=True, slots=True)
class Delta:
    """The rows of the new index: first the papers that stay, in their order, then those that are added.

    Papers that were in the index with the same text are the first of the added ones, so that their vectors are used
    again.
    """

    kept: npt.NDArray[np.bool_]  # shape (old papers,): whether a row stays as it is
    new_row: Rows  # shape (old papers,): the row of each old paper's id in the new index; -1 if it is removed
    order: Rows  # rows of the added papers, in the order in which they are appended
    same_text: Rows  # old rows of the first papers of `order`, whose vectors are used again
    counts: dict[str, int] = field(default_factory=dict[str, int])
    unknown: tuple[str, ...] = ()  # ids to remove that are not in the index

    @property
    def first_added(self) -> int:
        """The first row of an added paper."""
        return int(np.count_nonzero(self.kept))

    @property
    def papers(self) -> int:
        """The number of papers of the new index."""
        return self.first_added + len(self.order)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not len(self.order) and bool(self.kept.all())


def compare(
    index: IndexFolder, added: Added, removed: Sequence[str], *, skip_unknown: bool = False
) -> Delta:
    """Compare an index with the papers that are added and the ids that are removed.

    Args:
        index: The index.
        added: Papers to add; one whose id is in the index replaces that paper, unless the two are the same.
        removed: Ids of papers to remove; an id that is added, too, is replaced.
        skip_unknown: Whether to skip ids to remove that are not in the index.

    Raises:
        UnknownIdsError: If ids to remove are not in the index, and `skip_unknown` is not set.
        ConfigError: If no paper would be left.
    """
    old = index.papers
    removed_rows = old.rows_of(removed)
    unknown = tuple(d for d, row in zip(removed, removed_rows, strict=True) if row < 0)
    if unknown and not skip_unknown:
        raise UnknownIdsError(index.path, unknown)
    before = old.rows_of(list(added.rows)) if added.rows else np.zeros(0, np.int32)
    same_text, unchanged = _same(index, added, before)
    kept = np.ones(len(old), np.bool_)
    kept[removed_rows[removed_rows >= 0]] = False
    kept[before[before >= 0]] = False
    kept[before[unchanged]] = True
    order = np.concatenate([np.flatnonzero(same_text), np.flatnonzero(~same_text & ~unchanged)])
    new_row = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, np.int32(-1)).astype(np.int32)
    replaced = before[order] >= 0
    positions = np.count_nonzero(kept) + np.arange(len(order))
    new_row[before[order[replaced]]] = positions[replaced]
    delta = Delta(kept, new_row, order.astype(np.int32), before[same_text], unknown=unknown)
    if not delta.papers:
        raise ConfigError(
            f"{index.path} would have no paper left; it was not changed (remove the folder instead)"
        )
    delta.counts.update(
        added=int(np.count_nonzero(~replaced)),
        replaced=int(np.count_nonzero(replaced)),
        unchanged=int(np.count_nonzero(unchanged)),
        removed=int(np.count_nonzero(new_row < 0)),
    )
    return delta


def _same(
    index: IndexFolder, added: Added, before: Rows
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which added papers are in the index with the same text but other fields, and which are the same."""
    same_text = np.zeros(len(before), np.bool_)
    unchanged = np.zeros(len(before), np.bool_)
    for row, paper, other in _pairs(index.papers, added.papers, before):
        same_text[row] = all(getattr(paper, n) == getattr(other, n) for n in ENCODED)
        unchanged[row] = paper == other
    if unchanged.any():
        unchanged &= _same_references(index, added, before, unchanged)
    return same_text & ~unchanged, unchanged


def _pairs(old: Papers, new: Papers | None, before: Rows) -> Iterator[tuple[int, Paper, Paper]]:
    """Yield the row of each added paper that is in the index, with the old and the new paper."""
    if new is None:
        return
    present = np.flatnonzero(before >= 0)
    for start in range(0, len(present), _AT_ONCE):
        rows = present[start : start + _AT_ONCE].tolist()
        theirs, ours = old.at(before[rows].tolist()), new.at(rows)
        for row in rows:
            yield row, theirs[int(before[row])], ours[row]


def _same_references(
    index: IndexFolder, added: Added, before: Rows, among: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which of some added papers state the same references as before."""
    stated: dict[int, set[str]] = {row: set() for row in np.flatnonzero(among).tolist()}
    for row, references in added.stated():
        if row in stated:
            stated[row] = set(references)
    recorded = _recorded(index, before[list(stated)])
    same = np.zeros(len(before), np.bool_)
    for row, references in stated.items():
        same[row] = references == recorded[int(before[row])]
    return same


def _recorded(index: IndexFolder, rows: Rows) -> dict[int, set[str]]:
    """Return the ids that some papers of an index cite, in the corpus and outside of it, by row."""
    graph: Graph = index.graph
    ids = {int(row): set(index.papers.ids_at(graph.references(int(row)))) for row in rows}
    for batch in outside_batches(index.path / CITATIONS):
        hits = np.flatnonzero(np.isin(numbers(batch["row"]), rows))
        for hit in hits.tolist():
            if batch["kind"][hit].as_py() != REPEATED:
                ids[batch["row"][hit].as_py()].add(batch["id"][hit].as_py())
    return ids
