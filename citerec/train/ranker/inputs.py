"""What a training of the ranker needs, checked before the first index is searched."""

from collections.abc import Sequence

from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import reopen
from citerec.encode.source import find_model
from citerec.encode.spec import Fingerprint
from citerec.folder import IndexFolder
from citerec.train.data import splits_sha256
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.gather import reranker_of


def check_indexes(indexes: Sequence[IndexFolder], config: RankerTraining) -> None:
    """Check the models of all indexes, before the first one is searched.

    Raises:
        ModelError: If the encoder or the reranker of an index is not there.
    """
    for index in indexes:
        recorded = index.manifest.settings.get("encoder")
        if recorded:
            reopen(Fingerprint.from_json(recorded), index.path, EncodeConfig())
        if reranker := reranker_of(index, config):
            find_model(str(reranker), base=index.path)


def identity_of(index: IndexFolder) -> tuple[str, str, str | None]:
    """Return what an index is known by: sha256 of its papers, of its splits, and of its encoder's weights."""
    recorded = index.manifest.settings.get("encoder")
    encoder = recorded["weights"] if recorded else None
    return index.manifest.corpus["sha256"], splits_sha256(index), encoder
