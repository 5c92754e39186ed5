"""Teacher scores of the candidates: from a larger cross-encoder, or from an encoder."""

from pathlib import Path

import numpy as np
import orjson

from citerec.cache import sha256_of_files
from citerec.encode.model import weights_files
from citerec.encode.opening import open_encoder
from citerec.encode.source import find_model
from citerec.encode.spec import NAME as ENCODER_SPEC
from citerec.encode.spec import Similarity
from citerec.rerank.cross_encoder import open_cross_encoder
from citerec.train.joined import TrainingIndex, parts_of
from citerec.train.record import encoder_folder
from citerec.train.reranker.candidates import LabelledCandidates, Numbers
from citerec.train.reranker.config import RerankerTraining
from citerec.types import Log, Progress, Query

BLOCK = 512  # papers encoded at once


def taught(
    labelled: LabelledCandidates, config: RerankerTraining, progress: Progress, log: Log
) -> Numbers:
    """Return the teacher score of each candidate, in the order of the entries of `labelled`.

    The score of an encoder is the similarity of query and candidate, standardised in each list.

    Raises:
        ModelError: If the teacher is missing, or is no trained model.
    """
    folder = find_model(config.teacher, base=labelled.data.index.path, log=log).folder
    if is_encoder(folder):
        return _similarities(labelled, folder, config, progress)
    scores: list[Numbers] = []
    for part in labelled.data.by_index():
        teacher = open_cross_encoder(config.teacher, part.index, config.running, log=log)
        rows = part.data.queries.tolist()
        papers = part.index.papers.at(rows)
        lists = [labelled.candidates.lists[i] - np.int32(part.start) for i in part.numbers.tolist()]
        queries = [Query.of(papers[row]) for row in rows]
        scores += teacher.score(part.index, queries, lists, progress)
    return np.concatenate(scores)


def weights_of_teacher(index: TrainingIndex, config: RerankerTraining, log: Log) -> str | None:
    """Return the sha256 of the weights of a teacher that is a model; None for any other teacher."""
    if config.teacher_model is None:
        return None
    folder = find_model(config.teacher_model, base=index.path, log=log).folder
    return sha256_of_files(weights_files(folder))


def teacher_folders(index: TrainingIndex, config: RerankerTraining, log: Log) -> list[Path]:
    """Return the folders of the models that teach: the named one, or the encoders of the indexes, if in folders.

    The fused order is that of BM25 and of the vectors, so the encoders teach there, too.

    Raises:
        ModelError: If the teacher cannot be found.
    """
    if config.teacher_model is not None:
        return [find_model(config.teacher_model, base=index.path, log=log).folder]
    if not config.has_teacher:
        return []
    return [folder for part in parts_of(index) if (folder := encoder_folder(part))]


def is_encoder(folder: Path) -> bool:
    """Return whether a folder holds an encoder of citerec or sentence-transformers."""
    if (folder / ENCODER_SPEC).is_file():
        return True
    # sentence-transformers also writes modules.json for cross-encoders.
    return (folder / "modules.json").is_file() and not _classifies(folder)


def _classifies(folder: Path) -> bool:
    """Return whether config.json names a sequence classifier, as that of a cross-encoder."""
    try:
        kinds = orjson.loads((folder / "config.json").read_bytes()).get("architectures") or []
    except (OSError, ValueError, AttributeError):
        return False
    return any(str(kind).endswith("ForSequenceClassification") for kind in kinds)


def _similarities(
    labelled: LabelledCandidates, folder: Path, config: RerankerTraining, progress: Progress
) -> Numbers:
    encoder = open_encoder(str(folder), config.running)
    query_rows = labelled.data.queries[labelled.candidates.lists.segment_ids]
    paper_rows = labelled.candidates.lists.indices
    rows = np.unique(np.concatenate([query_rows, paper_rows]))
    vectors = np.empty((len(rows), encoder.dim), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].tolist()
        papers = labelled.data.index.papers.at(block)
        vectors[start : start + len(block)] = encoder.encode([papers[row] for row in block])
        progress("encoding", start + len(block), len(rows))
    q, p = vectors[np.searchsorted(rows, query_rows)], vectors[np.searchsorted(rows, paper_rows)]
    cosine = encoder.spec.similarity is Similarity.COSINE
    similarity = np.einsum("ij,ij->i", q, p) if cosine else -np.linalg.norm(q - p, axis=1)
    return labelled.candidates.standardised(similarity.astype(np.float32))
