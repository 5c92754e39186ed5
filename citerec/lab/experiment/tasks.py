"""Rows of the other kinds: statistics of a corpus, and evaluations of an encoder on SciDocs or an index."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.opening import open_encoder, reopen
from citerec.folder import IndexFolder
from citerec.lab.datasets.statistics import corpus_statistics
from citerec.lab.experiment.kind import MEASURES
from citerec.lab.experiment.models import ENCODER, index_of, trained_encoder
from citerec.lab.experiment.outcome import Outcome, judge
from citerec.lab.experiment.row import Experiment
from citerec.lab.scidocs.from_index import run_on_index
from citerec.lab.scidocs.labelled import venue_topics
from citerec.lab.scidocs.suite import run_published
from citerec.lab.scidocs.topics import draw_sample, draw_topics, topic_map
from citerec.lab.scidocs.vectors import embedded_by, kept_vectors
from citerec.provenance import provenance
from citerec.types import Progress


def statistics(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Compute the statistics of a corpus and its splits, as table 1 of the reranker paper."""
    index = index_of(experiment, indexes, progress)
    return _outcome(experiment, corpus_statistics(index), _about(index))


def scidocs(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Evaluate an encoder on the seven tasks of the published SciDocs data."""
    encoder = open_encoder(_encoder_of(experiment, indexes, progress))
    done = run_published(Path(experiment.corpus), encoder.encode, progress=progress)
    about = {"encoder": encoder.fingerprint.to_json(), "counts": dict(done.counts)}
    return _outcome(experiment, done.metrics, about)


def _encoder_of(experiment: Experiment, indexes: Path, progress: Progress) -> str:
    """Return the encoder of a row; a trained one is in the index of its training corpus."""
    if not experiment.train:
        assert experiment.encoder is not None
        return experiment.encoder
    assert experiment.trained_on is not None
    made = replace(experiment, corpus=experiment.trained_on, train=None)
    settings = Path(experiment.train)
    model = f"{ENCODER}-{settings.stem}"
    return trained_encoder(settings, index_of(made, indexes, progress), progress, model)


def index_tasks(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Evaluate an encoder on tasks built from an index."""
    index = index_of(experiment, indexes, progress)
    every = np.arange(len(index.papers), dtype=np.int32)
    encoder = embedded_by(index)
    assert encoder is not None  # the row names one
    vectors = _vectors(index, every, progress)
    done = run_on_index(index, vectors, form=encoder.spec.form, progress=progress)
    return _outcome(
        experiment,
        done.metrics,
        _about(index) | {"counts": dict(done.counts), "left_out": dict(done.left_out)},
    )


def topics(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Map an encoder's vectors, and measure how well venues are separated."""
    index = index_of(experiment, indexes, progress)
    venues = venue_topics(index.papers)
    rows = draw_sample(venues)
    labels = [venues[row] for row in rows]
    drawn = topic_map(_vectors(index, np.array(rows, np.int32), progress), labels)
    metrics = {"homogeneity": drawn.homogeneity, "completeness": drawn.completeness}
    about = _about(index) | {"papers": len(rows), "clusters": int(drawn.clusters.max()) + 1}
    picture = partial(draw_topics, drawn, labels)
    return replace(_outcome(experiment, metrics, about), draw=picture)


def _vectors(
    index: IndexFolder, rows: npt.NDArray[np.int32], progress: Progress
) -> npt.NDArray[np.float32]:
    """Return the vectors of some papers: those of the index, or newly encoded ones if the index has rounded vectors."""
    if stored := kept_vectors(index):
        return stored(rows)
    fingerprint = embedded_by(index)
    assert fingerprint is not None  # the row names an encoder
    papers = index.papers.at(rows.tolist())
    return reopen(fingerprint, index.path).encode([papers[row] for row in rows.tolist()], progress)


def _about(index: IndexFolder) -> dict[str, Any]:
    return {
        "encoder": index.manifest.settings["encoder"],
        "corpus_sha256": index.manifest.corpus["sha256"],
    }


def _outcome(
    experiment: Experiment, metrics: Mapping[str, float], settings: dict[str, Any]
) -> Outcome:
    shown = {name: metrics[name] for name in MEASURES[experiment.kind] if name in metrics}
    verdict, why = judge(experiment.expect, shown)
    result = {
        "row": experiment.path.name,
        "kind": experiment.kind,
        "corpus": Path(experiment.corpus).name,
        "metrics": shown,
        "expect": dict(experiment.expect),
        "verdict": str(verdict),
        "provenance": provenance({"kind": experiment.kind, **settings}),
    }
    return Outcome(experiment, verdict, why, shown, result)
