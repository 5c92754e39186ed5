"""Reads the vectors of an index as a certain encoder gives them, so that its papers need not be encoded again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from citerec.corpus.papers import Papers
from citerec.encode.projection import Projection, unit
from citerec.encode.spec import Fingerprint, Similarity
from citerec.folder import DENSE, IndexFolder
from citerec.shards import PlannedShard, Shard

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder


def stored_vectors(
    index: IndexFolder, encoder: Fingerprint
) -> Callable[[Sequence[int]], Shard] | None:
    """Return what reads vectors of an index, if a certain encoder made them and they are exact; else None.

    Args:
        index: The index.
        encoder: The encoder. Its similarity may be cosine although the index compares by another one: the vectors get
            unit length. Not the reverse: their length is lost.
    """
    recorded, dense = (index.manifest.settings.get(name) for name in ("encoder", "dense"))
    if not recorded or not dense:
        return None
    made_by = Fingerprint.from_json(recorded)
    by_cosine = encoder.spec.similarity is Similarity.COSINE
    if by_cosine:
        made_by = replace(made_by, spec=replace(made_by.spec, similarity=Similarity.COSINE))
    if made_by.key != encoder.key:
        return None
    from citerec.index.vectors import open_dense

    vectors = open_dense(index.path / DENSE, dense, index.papers.years)

    def read(rows: Sequence[int]) -> Shard:
        found = vectors.vectors(np.asarray(rows, np.int32))
        return unit(found) if by_cosine else found

    return read


@dataclass(frozen=True, slots=True)
class MappedShards:
    """Maps the vectors of an index, in place of encoding its papers; a `ShardEncoder`."""

    read: Callable[[Sequence[int]], Shard]  # reads vectors of the index
    projection: Projection

    @classmethod
    def of(cls, index: IndexFolder, encoder: "Encoder") -> Self | None:
        """Return what maps the vectors of an index; None unless the encoder is a map of the one that made them."""
        projection: Projection | None = getattr(encoder, "projection", None)
        if projection is None:
            return None
        weights, tokenizer = projection.base
        base = replace(encoder.fingerprint, weights=weights, tokenizer=tokenizer)
        read = stored_vectors(index, base)
        return cls(read, projection) if read else None

    def __call__(
        self, encoder: "Encoder", base: Path, papers: Papers, missing: Sequence[PlannedShard]
    ) -> Iterator[tuple[PlannedShard, Shard]]:
        """Yield the shards with their mapped vectors."""
        for shard in missing:
            yield shard, self.projection.of(self.read(shard.rows), encoder.spec.similarity)
