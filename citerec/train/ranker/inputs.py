"""The inputs of the training of the learning-to-rank model: checks of its indexes, and their identity."""

from collections.abc import Sequence
from pathlib import Path

import orjson

from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import reopen
from citerec.encode.source import find_model
from citerec.encode.spec import Fingerprint
from citerec.folder import IndexFolder
from citerec.train.data import splits_sha256
from citerec.train.modelfolder import read_training
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.gather import reranker_of


def check_indexes(indexes: Sequence[IndexFolder], config: RankerTraining) -> None:
    """Check that the models of all indexes can be opened, before the first index is searched.

    Raises:
        ModelError: If the encoder or the reranker of an index is missing.
    """
    for index in indexes:
        recorded = index.manifest.settings.get("encoder")
        if recorded:
            reopen(Fingerprint.from_json(recorded), index.path, EncodeConfig())
        if reranker := reranker_of(index, config):
            find_model(str(reranker), base=index.path)


def identity_of(index: IndexFolder) -> tuple[str, str, str | None]:
    """Return the identity of an index: sha256 of its papers, its splits, and its encoder's weights (None without)."""
    recorded = index.manifest.settings.get("encoder")
    encoder = recorded["weights"] if recorded else None
    return index.manifest.corpus["sha256"], splits_sha256(index), encoder


def was_trained_so(model: Path, indexes: Sequence[IndexFolder], config: RankerTraining) -> bool:
    """Return whether a model was trained on these papers, splits and vectors with these settings."""
    record = read_training(model)
    expected = orjson.loads(orjson.dumps(config.to_json()))
    return record.get("settings") == expected and [
        (one["corpus_sha256"], one["splits_sha256"], one["encoder"]) for one in record["indexes"]
    ] == [identity_of(index) for index in indexes]
