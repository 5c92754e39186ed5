"""Carries the stored tokens of an index over to its new version: those of added papers are cut when first needed."""

from pathlib import Path

import numpy as np

from citerec.embed import link
from citerec.folder import IndexFolder
from citerec.index.tokens import IDS, INDPTR, open_stored, write_about
from citerec.manifest import TOKENS, seal_model
from citerec.update.delta import Delta


def update_tokens(folder: Path, index: IndexFolder, delta: Delta, papers_sum: str) -> None:
    """Write the tokens of the papers that stay, as incomplete stores; a damaged store is left out.

    Args:
        folder: The folder of the new index.
        index: The old index.
        delta: Which papers stay.
        papers_sum: The sha256 of the new `papers.arrow`.
    """
    for store in sorted((index.path / TOKENS).glob("[!.]*")):
        if (stored := open_stored(store, index)) is None:
            continue
        indptr, ids = stored
        kept = delta.kept[: len(indptr) - 1]
        new = folder / TOKENS / store.name
        if kept.all():
            link(store / IDS, new / IDS)
            link(store / INDPTR, new / INDPTR)
        else:
            new.mkdir(parents=True)
            lengths = np.diff(indptr)
            np.save(new / IDS, ids[np.repeat(kept, lengths)])
            np.save(new / INDPTR, np.cumsum([0, *lengths[kept].tolist()], dtype=np.int64))
        write_about(new, papers_sum, rows=int(np.count_nonzero(kept)))
        seal_model(new)
