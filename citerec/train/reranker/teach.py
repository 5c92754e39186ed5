"""What a model that was trained before thinks of the candidates: a larger cross-encoder, or an encoder."""

from pathlib import Path

import numpy as np
import orjson

from citerec.cache import sha256_of_files
from citerec.encode.encoder import open_encoder
from citerec.encode.model import weights_files
from citerec.encode.source import find_model
from citerec.encode.spec import NAME as ENCODER_SPEC
from citerec.encode.spec import Similarity
from citerec.folder import IndexFolder
from citerec.rerank.cross_encoder import open_reranker
from citerec.train.reranker.config import BY_ENCODER, BY_FUSION, NO_TEACHER, RerankerTraining
from citerec.train.reranker.found import Labelled, Numbers
from citerec.types import Log, Progress, Query

BLOCK = 512  # papers encoded at once


def taught(known: Labelled, config: RerankerTraining, progress: Progress, log: Log) -> Numbers:
    """Return the score that the teacher gives each candidate, in the order of `known`.

    An encoder's is how close it puts query and candidate, with a spread of 1 in each list.

    Raises:
        ModelError: If the teacher is not there, or is no model that was trained.
    """
    index = known.data.index
    folder = find_model(config.teacher, base=index.path, log=log).folder
    if is_encoder(folder):
        return _similarities(known, folder, config, progress)
    teacher = open_reranker(config.teacher, index, config.running, log=log)
    rows = known.data.queries.tolist()
    papers = index.papers.at(rows)
    lists = [known.found.lists[i] for i in range(len(rows))]
    queries = [Query.of(papers[row]) for row in rows]
    return np.concatenate(teacher.score(index, queries, lists, progress))


def weights_of_teacher(index: IndexFolder, config: RerankerTraining, log: Log) -> str | None:
    """Return the sha256 of the weights of a teacher in a folder or on the hub; None for any other."""
    if config.teacher in (NO_TEACHER, BY_ENCODER, BY_FUSION):
        return None
    folder = find_model(config.teacher, base=index.path, log=log).folder
    return sha256_of_files(weights_files(folder))


def is_encoder(folder: Path) -> bool:
    """Whether a folder says that its model makes vectors: ours, or that of sentence-transformers."""
    if (folder / ENCODER_SPEC).is_file():
        return True
    # sentence-transformers writes modules.json for its cross-encoders, too.
    return (folder / "modules.json").is_file() and not _classifies(folder)


def _classifies(folder: Path) -> bool:
    """Whether config.json says that the model tells classes apart, as a cross-encoder does."""
    try:
        kinds = orjson.loads((folder / "config.json").read_bytes()).get("architectures") or []
    except (OSError, ValueError, AttributeError):
        return False
    return any(str(kind).endswith("ForSequenceClassification") for kind in kinds)


def _similarities(
    known: Labelled, folder: Path, config: RerankerTraining, progress: Progress
) -> Numbers:
    encoder = open_encoder(str(folder), config.running)
    asked = known.data.queries[known.found.lists.owners]
    given = known.found.lists.indices
    rows = np.unique(np.concatenate([asked, given]))
    vectors = np.empty((len(rows), encoder.dim), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].tolist()
        papers = known.data.index.papers.at(block)
        vectors[start : start + len(block)] = encoder.encode([papers[row] for row in block])
        progress("encoding", start + len(block), len(rows))
    q, p = vectors[np.searchsorted(rows, asked)], vectors[np.searchsorted(rows, given)]
    cosine = encoder.spec.similarity is Similarity.COSINE
    close = np.einsum("ij,ij->i", q, p) if cosine else -np.linalg.norm(q - p, axis=1)
    return known.found.spread(close.astype(np.float32))
