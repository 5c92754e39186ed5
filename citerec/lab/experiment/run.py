"""Runs one row of a results table, compares its figures with the expected ones, and writes its result.

Missing indexes and models are built and trained.
"""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from citerec.build.index import BuildConfig, build_index, check_splits
from citerec.build.vectors import EmbedConfig, embed_anew
from citerec.config import FuseMethod, Precision
from citerec.corpus.readers import find_source, sha256_of
from citerec.encode.encoder import Encoder, open_encoder
from citerec.encode.machine import gpus, provenance
from citerec.encode.models import HUB_ID, HubError, is_name
from citerec.encode.spec import DTYPE_VARIABLE
from citerec.errors import ConfigError, MissingExtraError, writing
from citerec.evaluation.metrics import evaluate_run
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.systems import (
    RANKED,
    RERANKED,
    Systems,
    bm25_of,
    fuse_of,
    read_by,
)
from citerec.files.atomic import replacing
from citerec.files.checksums import indented_json
from citerec.files.reading import read_toml
from citerec.index.folder import NAME, RERANKER, IndexFolder, open_index
from citerec.index.splits import (
    SPLITS,
    open_queries,
    read_ids,
    shipped_queries,
    shipped_splits,
)
from citerec.index.vectors import vectors_of
from citerec.lab.datasets.catalogue import DATASETS as CATALOGUE
from citerec.lab.datasets.catalogue import FOLDER as DATASETS
from citerec.lab.datasets.catalogue import SOURCE
from citerec.lab.datasets.fetch import read_record
from citerec.lab.datasets.prepare import corpus_statistics
from citerec.lab.experiment.pools import measured_pools, metrics_of
from citerec.lab.experiment.row import (
    MEASURES,
    Expected,
    Experiment,
    ExperimentKind,
    format_measure,
)
from citerec.lab.experiment.rules import restricted
from citerec.lab.scidocs.from_index import evaluate, index_tasks, venue_topics
from citerec.lab.scidocs.suite import run_published
from citerec.lab.scidocs.topics import draw_sample, draw_topics, topic_map
from citerec.rank.ltr import DEFAULT, open_ranker
from citerec.retrieve.bm25 import resolve
from citerec.types import Progress, no_progress

SHOWN = 3  # metrics printed of a row without expected values
ENCODER = "encoder"  # name in the model folder of an index
SAMPLED = 8  # papers of an index that are encoded again, to compare their vectors
# relative to a vector's length; between processors float32 differs by 1e-6, bfloat16 from float32 by 1e-2
ROUNDING = 1e-4


@contextmanager
def in_float32() -> Generator[None]:
    """Run each model in float32, unless a row names another precision, so that processors agree on the figures."""
    before = os.environ.get(DTYPE_VARIABLE)
    os.environ[DTYPE_VARIABLE] = Precision.FLOAT32
    try:
        yield
    finally:
        del os.environ[DTYPE_VARIABLE]
        if before is not None:
            os.environ[DTYPE_VARIABLE] = before


def index_of(experiment: Experiment, indexes: Path, progress: Progress) -> IndexFolder:
    """Open the index of a row; missing parts are built, or resumed."""
    corpus = Path(experiment.corpus)
    folder = indexes / experiment.index_name
    if not (folder / NAME).is_file():
        build_index(
            corpus,
            folder,
            BuildConfig(encoder=experiment.encoder, resume=True),
            progress,
        )
    index = open_index(folder)
    source = find_source(corpus)
    advice = f"rebuild it: citerec index {corpus} --index {folder} --force"
    if index.manifest.corpus["sha256"] != sha256_of(source):
        raise ConfigError(
            f"{folder} was built from another corpus than {corpus}; {advice}"
        )
    if not _has_splits_of(index, source.folder):
        raise ConfigError(f"{folder} has other splits than {corpus}; {advice}")
    if experiment.train:
        return _embedded(
            index, trained_encoder(Path(experiment.train), index, progress), progress
        )
    return (
        _embedded(index, experiment.encoder, progress) if experiment.encoder else index
    )


def _embedded(index: IndexFolder, encoder: str, progress: Progress) -> IndexFolder:
    """Encode the papers of an index, unless they are encoded by this encoder, and as precisely."""
    model = open_encoder(encoder, base=index.path)
    if (
        index.is_embedded
        and index.encoder.key == model.fingerprint.key
        and _agree(index, model)
    ):
        return index
    embed_anew(index.path, model, EmbedConfig(resume=True), progress)
    return open_index(index.path)


def _agree(index: IndexFolder, model: Encoder) -> bool:
    """Whether vectors of an index are those that its encoder gives now, but for rounding in float32."""
    rows = np.unique(np.linspace(0, len(index.papers) - 1, SAMPLED, dtype=np.int32))
    new = model.encode([*index.papers.at(rows.tolist()).values()])
    far = np.linalg.norm(vectors_of(index).vectors(rows) - new, axis=1)
    return bool((far <= ROUNDING * np.linalg.norm(new, axis=1)).all())


def trained_encoder(
    settings: Path, index: IndexFolder, progress: Progress, name: str = ENCODER
) -> str:
    """Train the encoder of a row on its index, unless it exists; return its folder."""
    from citerec.train.encoder import train_encoder
    from citerec.train.settings import EncoderTraining
    from citerec.train.trainer import plan_of, was_trained_so

    model = index.models / name
    config = EncoderTraining.read(settings, {})
    if not was_trained_so(model, plan_of(config, index)):
        train_encoder(index, model, config, resume=True, force=True, progress=progress)
    return str(model)


def reranker_of(
    experiment: Experiment, index: IndexFolder, progress: Progress
) -> str | None:
    """Return the reranker of a row; train it on the index, unless it exists.

    It is stored next to the reranker of the index, which `recommend` uses, so a row does not change recommendations.
    """
    if not experiment.train_reranker:
        return experiment.reranker
    from citerec.train.reranker import train_reranker
    from citerec.train.settings import RerankerTraining
    from citerec.train.trainer import plan_of, was_trained_so

    settings = Path(experiment.train_reranker)
    config = RerankerTraining.read(settings, {})
    own = index.models / RERANKER
    for_row = own.with_name(f"{RERANKER}-{settings.stem}")
    for model in (own, for_row):
        if was_trained_so(model, plan_of(config, index)):
            return str(model)
    train_reranker(index, for_row, config, resume=True, force=True, progress=progress)
    return str(for_row)


def ranker_of(
    experiment: Experiment, index: IndexFolder, indexes: Path, progress: Progress
) -> str:
    """Return the learning-to-rank model of a row; train it on the corpora of the row, unless it exists.

    It is not stored as the model of the index, which `recommend` would use.
    """
    if experiment.system not in RANKED or not experiment.train_ranker:
        return experiment.ranker or str(DEFAULT)
    from citerec.train.ranker import plan_of, train_ranker
    from citerec.train.settings import RankerTraining
    from citerec.train.trainer import was_trained_so

    settings = Path(experiment.train_ranker)
    config = RankerTraining.read(settings, {})
    corpora = experiment.ranker_corpora or (experiment.corpus,)
    train_indexes = [
        index_of(experiment.model_copy(update={"corpus": corpus}), indexes, progress)
        for corpus in corpora
    ]
    model = index.models / f"ranker-{settings.stem}"
    withheld = (
        [] if any(other.path == index.path for other in train_indexes) else [index]
    )
    if not was_trained_so(model, plan_of(config, train_indexes, withheld)):
        train_ranker(
            train_indexes,
            model,
            config,
            withheld=withheld,
            resume=True,
            force=True,
            progress=progress,
        )
    return str(model)


def _has_splits_of(index: IndexFolder, corpus: Path) -> bool:
    """Return whether the splits of an index are those of the corpus; its checksum covers only papers."""
    queries = shipped_queries(corpus)
    if queries is not None:
        # with the papers that the queries were recognised as
        stored = open_queries(index.splits)
        known = (
            {q.id: replace(q, corpus_ids=()) for q in stored.queries.values()}
            if stored
            else {}
        )
        return stored is not None and (known, stored.gold) == (
            queries.queries,
            queries.gold,
        )
    shipped = shipped_splits(corpus)
    if shipped is None:
        return index.manifest.settings["splits"] != "shipped"
    return shipped == {name: read_ids(index.splits / f"{name}.ids") for name in SPLITS}


# largest difference from an expected value
OK_WITHIN = 0.002
NEAR_WITHIN = 0.01


class Verdict(StrEnum):
    """The verdict on a row."""

    OK = "OK"
    MEASURED = "measured"  # no expected value
    NEAR = "near"
    FAIL = "FAIL"
    NOT_RUN = "not run here"
    PUBLISHED = "published"  # published values only


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of running a row."""

    experiment: Experiment
    verdict: Verdict
    why: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])
    draw: Callable[[Path], None] | None = None  # draws a figure into a file

    def __str__(self) -> str:
        names = self.experiment.expect or [*self.metrics][:SHOWN]
        figures = "  ".join(
            f"{name} {format_measure(name, self.metrics[name])}"
            for name in names
            if name in self.metrics
        )
        return (
            f"{self.verdict:<12} {self.experiment.path}  {figures}  {self.why}".rstrip()
        )


def run_experiment(
    experiment: Experiment, indexes: Path, progress: Progress = no_progress
) -> Outcome:
    """Run a row; a missing corpus, model or machine gives the verdict "not run here", not a failure.

    Args:
        experiment: The row.
        indexes: The folder of indexes; missing indexes are built and missing models trained.
        progress: Receives task, done and total.

    Raises:
        ConfigError: If the index is of another corpus or other splits.
        CiterecError: Any other error of indexing or searching an existing corpus.
    """
    if experiment.kind is ExperimentKind.PUBLISHED:
        return Outcome(
            experiment, Verdict.PUBLISHED, "published values; nothing is run"
        )
    trained_on = experiment.trained_on
    here: dict[str, Any] = {
        "corpus": _place(experiment.corpus),
        "ranker_corpora": tuple(map(_place, experiment.ranker_corpora)),
        "trained_on": _place(trained_on) if trained_on else None,
    }
    experiment = experiment.model_copy(update=here)
    if why := missing(experiment):
        return Outcome(experiment, Verdict.NOT_RUN, why)
    # before the first of them is indexed
    for corpus in filter(None, experiment.corpora):
        check_splits(find_source(Path(corpus)).folder)
    run = {
        ExperimentKind.RECOMMEND: _recommend,
        ExperimentKind.STATISTICS: _statistics,
        ExperimentKind.SCIDOCS: _scidocs,
        ExperimentKind.INDEX_TASKS: _index_tasks,
        ExperimentKind.TOPICS: _topics,
        ExperimentKind.POOLS: _pools,
    }[experiment.kind]
    try:
        with in_float32():
            return run(experiment, indexes, progress)
    except (HubError, MissingExtraError) as error:
        return Outcome(experiment, Verdict.NOT_RUN, str(error))


def _place(corpus: str) -> str:
    """Return where a corpus is: the place that a row names, else a dataset of its name that was fetched."""
    path = Path(corpus)
    fetched = DATASETS / path.name
    return (
        str(fetched) if not path.exists() and (fetched / SOURCE).is_file() else corpus
    )


def judge(
    expect: Mapping[str, Expected], metrics: Mapping[str, float]
) -> tuple[Verdict, str]:
    """Compare metrics with their expected values: OK within 0.002, near within 0.01, else FAIL."""
    if not expect:
        return Verdict.MEASURED, ""
    gaps = {name: _gap(value, metrics.get(name)) for name, value in expect.items()}
    worst = max(gaps, key=lambda name: gaps[name])
    if gaps[worst] <= OK_WITHIN:
        return Verdict.OK, ""
    expected = expect[worst]
    ends = expected if isinstance(expected, tuple) else (expected,)
    measured = f"{metrics[worst]:.4f}" if worst in metrics else "missing"
    why = f"{worst} is {measured}, expected {' to '.join(f'{end:.4f}' for end in ends)}"
    return (Verdict.NEAR if gaps[worst] <= NEAR_WITHIN else Verdict.FAIL), why


def _gap(expected: Expected, measured: float | None) -> float:
    """Return the distance of a metric from its expected value; 0 within a range."""
    if measured is None or not isfinite(measured):
        return inf
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    return max(low - measured, measured - high, 0.0)


def write_result(outcome: Outcome, folder: Path) -> Path:
    """Write the result of a row to `<folder>/<table>/<row>.json`, and its figure next to it; return the file.

    Raises:
        OutputError: If it cannot be written.
    """
    experiment = outcome.experiment
    path = folder / experiment.table / f"{experiment.path.stem}.json"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(indented_json(dict(outcome.result)))
        if outcome.draw:
            figure = path.with_suffix(".svg")
            figure.unlink(missing_ok=True)  # a link is not followed
            outcome.draw(figure)
    return path


def missing(experiment: Experiment) -> str:
    """Return what a row needs and this machine does not have; empty if the row can be run."""
    for path in map(Path, experiment.corpora):
        if not path.exists():
            known = CATALOGUE.get(path.name)
            is_public = path.parent == DATASETS or (known and known.convert)
            advice = (
                f"; fetch it: citerec datasets fetch {path.name}" if is_public else ""
            )
            return f"{path} is missing{advice}"
    models = [experiment.encoder, experiment.reranker, experiment.ranker]
    named = [(name, experiment.path) for name in models if name]
    for file in filter(
        None, (experiment.train, experiment.train_reranker, experiment.train_ranker)
    ):
        base: Any = read_toml(Path(file)).get("model")
        named += [(base, Path(file))] if isinstance(base, str) else []
    for name, by in named:
        is_local = "/" in name and not is_name(name) and not HUB_ID.fullmatch(name)
        if is_local and not Path(name).exists():
            return f"{name}, named in {by}, is missing"
    if experiment.needs == "gpu" and not gpus():
        return "it needs a GPU"
    if not experiment.trained_on:
        return ""
    # the training corpus may contain test papers of the row
    corpus = Path(experiment.trained_on)
    record = read_record(corpus)
    if included := [
        name for name in experiment.apart if not record or name not in record.without
    ]:
        without = " ".join(f"--without {name}" for name in included)
        return (
            f"{corpus} may contain test papers of {included[0]}; drop them before it is indexed: "
            f"citerec datasets fetch {corpus.name} {without}"
        )
    return ""


def _recommend(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Run the system of a row and measure it."""
    index = index_of(experiment, indexes, progress)
    reranker = reranker_of(experiment, index, progress)
    rerank = experiment.rerank
    config = EvalConfig(
        bm25=experiment.bm25,
        fuse=experiment.fuse.replace(method=FuseMethod.WEIGHTED),
        rerank=rerank.replace(model=reranker) if reranker else None,
        candidates=experiment.candidates,
        ranker=ranker_of(experiment, index, indexes, progress),
        known_graph=experiment.known_graph,
    )
    eval_set = restricted(
        index, load_eval_set(index, experiment.split), experiment.rules
    )
    systems = Systems(index, eval_set, config, progress=progress)
    run, seconds = systems.run(experiment.system)
    measured = evaluate_run(
        run, eval_set.qrels, rng=np.random.default_rng(0), seconds=seconds
    )
    verdict, why = judge(experiment.expect, measured.metrics)
    result = {
        "row": experiment.path.name,
        "corpus": Path(experiment.corpus).name,
        "split": experiment.split,
        "queries": len(eval_set.queries),
        "left_out": dict(eval_set.left_out),
        "metrics": measured.metrics,
        "ci95": measured.ci95,
        "seconds": measured.seconds,
        "expect": dict(experiment.expect),
        "verdict": str(verdict),
        "provenance": provenance(_settings(experiment, index, config, systems)),
    }
    return Outcome(experiment, verdict, why, measured.metrics, result)


def _settings(
    experiment: Experiment, index: IndexFolder, config: EvalConfig, systems: Systems
) -> dict[str, Any]:
    """Return the settings of a run for its provenance."""
    retriever = read_by(experiment.system, index, config)
    reranks = experiment.system in RERANKED
    ranks = experiment.system in RANKED
    reranker = (
        systems.reranker_of(experiment.system)
        if reranks or (ranks and config.rerank)
        else None
    )
    bm25 = bm25_of(retriever, config)
    fuse = fuse_of(retriever, config)
    ranker = (
        open_ranker(Path(config.ranker), RANKED[experiment.system]) if ranks else None
    )
    return {
        "system": experiment.system,
        "bm25": resolve(bm25, index).model_dump()
        if bm25
        else None,  # with the resolved stop words
        "fuse": fuse.model_dump() if fuse else None,
        "candidates": retriever if reranks else None,
        "rerank": [reranker.as_json()] if reranker else None,
        "ranker": ranker
        and {
            "model": ranker.shown,
            "weights": ranker.fingerprint,
            "learned_from": [Path(corpus).name for corpus in experiment.ranker_corpora]
            or None,
        },
        "known_graph": experiment.known_graph,
        "rules": experiment.rules.model_dump(),
        **_about(index),
    }


def _statistics(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    index = index_of(experiment, indexes, progress)
    return _outcome(experiment, corpus_statistics(index), _about(index))


def _scidocs(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Evaluate an encoder on the published data; a trained one is in the index of its training corpus."""
    name = experiment.encoder
    if experiment.train:
        settings = Path(experiment.train)
        made = experiment.model_copy(
            update={"corpus": experiment.trained_on, "train": None}
        )
        index = index_of(made, indexes, progress)
        name = trained_encoder(settings, index, progress, f"{ENCODER}-{settings.stem}")
    assert name is not None  # a row of this kind has one
    encoder = open_encoder(name)
    done = run_published(
        Path(experiment.corpus), lambda _: encoder.encode, progress=progress
    )
    about = {
        "encoder": asdict(encoder.fingerprint),
        "dtype": encoder.precision,
        "counts": dict(done.counts),
    }
    return _outcome(experiment, done.metrics, about)


def _index_tasks(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    index = index_of(experiment, indexes, progress)
    tasks = index_tasks(index, progress=progress)
    form = index.encoder.spec.form
    done = evaluate(tasks, vectors_of(index).vectors, form=form, progress=progress)
    more = {"counts": dict(done.counts), "left_out": dict(done.left_out)}
    return _outcome(experiment, done.metrics, _about(index) | more)


def _topics(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Map an encoder's vectors, and measure how well venues are separated."""
    index = index_of(experiment, indexes, progress)
    venues = venue_topics(index.papers)
    rows = draw_sample(venues)
    labels = [venues[row] for row in rows]
    drawn = topic_map(vectors_of(index).vectors(np.array(rows, np.int32)), labels)
    metrics = {"homogeneity": drawn.homogeneity, "completeness": drawn.completeness}
    about = _about(index) | {
        "papers": len(rows),
        "clusters": int(drawn.clusters.max()) + 1,
    }
    return replace(
        _outcome(experiment, metrics, about), draw=partial(draw_topics, drawn, labels)
    )


def _pools(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Rank judged pools, and evaluate published rankings of them."""
    assert experiment.pools
    index = index_of(experiment, indexes, progress)
    rows = measured_pools(index.path, Path(experiment.corpus), experiment.pools)
    outcome = _outcome(experiment, metrics_of(rows), _about(index))
    return replace(outcome, result={**outcome.result, "rows": rows})


def _about(index: IndexFolder) -> dict[str, Any]:
    return {
        "encoder": index.manifest.settings["encoder"],
        "dtype": Precision.FLOAT32
        if index.is_embedded
        else None,  # of the encoder; see `in_float32`
        "corpus_sha256": index.manifest.corpus["sha256"],
    }


def _outcome(
    experiment: Experiment, metrics: Mapping[str, float], settings: dict[str, Any]
) -> Outcome:
    shown = {
        name: metrics[name] for name in MEASURES[experiment.kind] if name in metrics
    }
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
