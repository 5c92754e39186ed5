"""Trains the learning-to-rank model on the citations of one or several indexes.

A model must not be run on train queries that it was trained on: its scores there are better than on any draft. Such an
encoder or reranker is run on dev queries only, which then are training data of the ranker, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.config import EncodeConfig
from citerec.encode.files import weights_files
from citerec.encode.opening import reopen
from citerec.encode.source import find_model
from citerec.encode.spec import Fingerprint
from citerec.errors import ModelError
from citerec.folder import IndexFolder
from citerec.io import building, check_writable, sha256_of_files
from citerec.pipeline import FirstStage
from citerec.rank.calibrate import TOP
from citerec.rank.features import FEATURES
from citerec.rank.ltr import SPEC, Variant, write_spec
from citerec.rerank.choose import auto_reranker
from citerec.rules.held_out import held_out, may_know_queries
from citerec.train.boost import (
    COPIES,
    FittedVariant,
    IndexExamples,
    Measures,
    ablations,
    fit_variant,
    measure,
)
from citerec.train.ranker_examples import (
    CITATION_LAG,
    EXPAND,
    Gatherer,
    RankerExamples,
    dev_queries,
    load_train,
)
from citerec.train.record import (
    check_target,
    corpus_facts,
    encoder_folder,
    encoder_of,
    finish_folder,
    model_card,
    read_training,
    table,
    training_record,
)
from citerec.train.record import was_trained_so as has_record
from citerec.train.settings import RankerTraining
from citerec.train.trainer import Workspace
from citerec.types import Log, Progress, no_progress

PACKAGES = ("lightgbm", "numpy", "scipy")

# (name, make) -> arrays, of an interrupted training if there are some
Kept = Callable[[str, Callable[[], Mapping[str, npt.NDArray[Any]]]], dict[str, npt.NDArray[Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerReport:
    """The result of the training of a learning-to-rank model."""

    output: Path
    queries: int  # training queries
    before: Measures  # of the dev queries in first-stage order
    after: Mapping[Variant, Measures]
    trees: Mapping[Variant, int]
    calibrated: bool  # whether the model has calibrated probabilities
    dev: RankerExamples  # complete candidate sets of the dev queries


def train_ranker(
    indexes: Sequence[IndexFolder],
    output: Path,
    config: RankerTraining,
    *,
    apart: Sequence[IndexFolder] = (),
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
    finders: Mapping[str, FirstStage] | None = None,
) -> RankerReport:
    """Train a learning-to-rank model on the citations of indexes; the model folder is created complete at the end.

    Args:
        indexes: Their train queries are the training data; their dev queries select the number of trees.
        output: The model folder to create.
        config: The settings.
        apart: Further indexes whose dev and test queries are held out of the training data.
        resume: Continue an interrupted training with the examples that it gathered.
        force: Replace an existing model.
        progress: Receives task, done and total of each kind of work.
        log: Receives the measures and warnings.
        finders: Candidate retrievers by the name of the index; those of `recommend` by default.

    Raises:
        ConfigError: If there is nothing to train on.
        ModelError: If a model of an index is missing.
        ModelExistsError: If there is a model at `output` and `force` is false.
        OutputError: If the folder cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_writable(output)
    rerankers = [_reranker(index, config) for index in indexes]
    finders = finders or {}
    for index in indexes:  # before the first is searched
        if (recorded := index.manifest.settings.get("encoder")) and _name(index) not in finders:
            reopen(Fingerprint.from_json(recorded), index.path, EncodeConfig())
    workspace = Workspace.for_model(output)
    identities = {
        "indexes": [*map(_identity, indexes, rerankers)],
        "apart": [_identity(index, None) for index in apart],
    }
    with workspace.open(config.to_json() | identities, resume=resume, log=log):
        examples = [
            gather_examples(
                index,
                reranker,
                [other for other in (*indexes, *apart) if other is not index],
                config,
                progress=progress,
                log=log,
                finder=finders.get(_name(index)),
                kept=lambda name, make, n=number: workspace.kept(f"{n}.{name}", make),
            )
            for number, (index, reranker) in enumerate(zip(indexes, rerankers, strict=True))
        ]
        return train_on(examples, output, config, log)


def was_trained_so(model: Path, indexes: Sequence[IndexFolder], config: RankerTraining) -> bool:
    """Return whether a model was trained on these papers, splits and vectors with these settings."""
    try:
        facts = {"indexes": [_identity(index, _reranker(index, config)) for index in indexes]}
    except ModelError:  # a reranker is missing
        return False
    return has_record(model, _recorded_settings(config, indexes), facts)


def _reranker(index: IndexFolder, config: RankerTraining) -> str | None:
    """Return the reranker for the candidates of an index; None for none."""
    if config.reranker == "auto":
        return auto_reranker(index, default=False, same_data=True)
    return None if config.reranker == "none" else config.reranker


def gather_examples(
    index: IndexFolder,
    reranker: str | None,
    others: Sequence[IndexFolder],
    config: RankerTraining,
    *,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
    finder: FirstStage | None = None,
    kept: Kept = lambda name, make: dict(make()),
) -> IndexExamples:
    """Return the training and dev examples of an index.

    Args:
        index: The index.
        reranker: Its reranker; None for none.
        others: Further indexes; their dev and test queries are held out of the training data.
        config: The settings.
        progress: Receives the number of gathered queries.
        log: Receives what is left out.
        finder: The candidate retriever; that of `recommend` by default.
        kept: Returns the arrays of an interrupted training under a name, or makes them.
    """
    name = _name(index)
    folder = encoder_folder(index)
    # An encoder without a record of citerec was trained elsewhere, and is run; a reranker without one is not.
    encoder_knows = bool(folder and read_training(folder) and may_know_queries(folder, index))
    reranker_knows = bool(
        reranker and may_know_queries(find_model(reranker, base=index.path).folder, index)
    )
    known = {"encoder": encoder_knows, "reranker": reranker_knows}
    if any(known.values()):
        excluded = " and ".join(model for model, knows in known.items() if knows)
        log(
            f"{name}: the citations of the train queries are training data of the {excluded}; the train queries are "
            "searched without, and the dev queries are training data, too"
        )
    data = load_train(index)
    if data is None:
        log(f"{name}: no train query cites an eligible paper")
    elif others:
        titles = index.papers.texts("title", data.queries).to_pylist()
        held = held_out(others, ("dev", "test"))
        free = held.allowed_mask(index.papers.ids_at(data.queries.tolist()), titles)
        if not free.all():
            log(f"{name}: {(~free).sum():,} train queries are dropped: held out in another index")
        data = data.only(np.flatnonzero(free))
    whole = Gatherer(index, config, log, reranker=reranker, finder=finder)
    by_train = whole
    if any(known.values()):
        usable = None if reranker_knows else reranker
        by_train = Gatherer(
            index, config, log, encoder=not encoder_knows, reranker=usable, finder=finder
        )
    train = dev = RankerExamples.joined([])
    if some := data:
        train = RankerExamples(**kept("train", lambda: by_train.train(some, progress).arrays))
    if queries := dev_queries(index, config, held_out(others, ("test",))):
        dev = RankerExamples(**kept("dev", lambda: whole.whole(queries, progress).arrays))
    return IndexExamples(index, train, dev, any(known.values()), reranker)


def train_on(
    examples: Sequence[IndexExamples],
    output: Path,
    config: RankerTraining,
    log: Log,
    variants: Sequence[Variant] = tuple(Variant),
) -> RankerReport:
    """Train some variants, `Variant.FULL` among them, on gathered examples; otherwise as `train_ranker`."""
    fits: dict[Variant, FittedVariant] = {}
    for variant in variants:
        fits[variant] = one = fit_variant(examples, variant, config)
        measures = ", ".join(f"{name} {value:.4f}" for name, value in one.measures.items())
        log(f"{variant}: {measures} on dev, {one.trees.rounds} trees")
    full = fits[Variant.FULL]
    if full.calibration is None:
        log("too few cited papers in the dev lists to calibrate: there will be no probability")
    dev = RankerExamples.joined(one.dev for one in examples)
    with building(output) as folder:
        _write(folder, examples, fits, dev, config)
    return RankerReport(
        output=output,
        queries=full.queries,
        before=dev.first_stage(),
        after={variant: one.measures for variant, one in fits.items()},
        trees={variant: one.trees.rounds for variant, one in fits.items()},
        calibrated=full.calibration is not None,
        dev=dev,
    )


def _name(index: IndexFolder) -> str:
    return index.manifest.name


def _identity(index: IndexFolder, reranker: str | None) -> dict[str, Any]:
    """Return what a training on an index depends on: the sha256 of its papers, splits, encoder and reranker."""
    weights = None
    if reranker:
        weights = sha256_of_files(weights_files(find_model(reranker, base=index.path).folder))
    return corpus_facts(index) | {"encoder": encoder_of(index), "reranker": weights}


def _recorded_settings(config: RankerTraining, indexes: Sequence[IndexFolder]) -> dict[str, Any]:
    """Return the settings as they are recorded: only the name of a reranker in a folder."""
    name = config.reranker
    local = any(folder.is_dir() for folder in (Path(name), *(one.path / name for one in indexes)))
    return config.to_json() | {"reranker": Path(name).name if local else name}


def _write(
    folder: Path,
    examples: Sequence[IndexExamples],
    fits: Mapping[Variant, FittedVariant],
    dev: RankerExamples,
    config: RankerTraining,
) -> None:
    """Write the variants of a model, their training record and the model card into a folder."""
    for variant, one in fits.items():
        (folder / f"{variant}.txt").write_text(one.trees.text, encoding="utf-8")
    indexes = [
        {
            "name": _name(one.index),
            **_identity(one.index, one.reranker),
            "papers": len(one.index.papers),
            "train_queries": len(one.train),
            "dev_queries": len(one.dev),
            "train_queries_reranked": one.train.is_reranked,
            "dev_queries_teach": one.dev_teaches,
        }
        for one in examples
    ]
    origin = {
        "citerec": version("citerec"),
        "learned_from": [facts["name"] for facts in indexes],
        "rerankers": sorted({facts["reranker"] for facts in indexes} - {None}),
        "cross_fitted": any(facts["train_queries_reranked"] for facts in indexes),
    }
    features = {variant: one.trees.features for variant, one in fits.items()}
    calibrations = {v: one.calibration for v, one in fits.items() if one.calibration}
    write_spec(folder, features, EXPAND, origin, calibrations)
    full = fits[Variant.FULL]
    facts = {
        "indexes": indexes,
        "before": dict(dev.first_stage()),
        "after": {str(variant): dict(one.measures) for variant, one in fits.items()},
        "ablations": [
            {"label": label, "f1": row["f1@20"], "mrr": row["mrr"]}
            for label, row in ablations(full.evaluations).items()
        ],
        "gains": {str(variant): one.trees.gains for variant, one in fits.items()},
    }
    settings = _recorded_settings(config, [one.index for one in examples])
    record = training_record(facts, settings, PACKAGES)
    by_index = [
        (_name(one.index), one.dev.first_stage(), measure(own))
        for one in examples
        if (own := [e for e in full.evaluations if e.index is one.index]) and len(one.dev)
    ]
    finish_folder(folder, record, _card(record, by_index, fits))


def _card(
    record: Mapping[str, Any],
    by_index: Sequence[tuple[str, Measures, Measures]],
    fits: Mapping[Variant, FittedVariant],
) -> str:
    indexes = record["indexes"]
    names, trees = ", ".join(facts["name"] for facts in indexes), fits[Variant.FULL].trees
    meaning = {feature.name: feature.meaning for feature in FEATURES}
    queries = [
        (
            facts["name"],
            f"{facts['papers']:,}",
            f"{facts['train_queries']:,}",
            f"{facts['dev_queries']:,}" + (", training data" if facts["dev_queries_teach"] else ""),
        )
        for facts in indexes
    ]
    variants = [
        (name, one["f1@20"], one["mrr"])
        for name, one in {"first stage": record["before"], **record["after"]}.items()
    ]
    measures = [
        (name, before["f1@20"], after["f1@20"], before["mrr"], after["mrr"])
        for name, before, after in by_index
    ]
    calibrations = [
        (str(v), f"{one.calibration.scale:.3f}", f"{one.calibration.offset:.3f}")
        for v, one in fits.items()
        if one.calibration
    ]
    return model_card(
        f"A learning-to-rank model for citations, trained on {names}",
        f"""It ranks the candidates of a draft by lexical and semantic similarity, the references of neighbours,
citations, age, authors and venue: LambdaMART of LightGBM, {trees.rounds} trees.
If an index has no vectors, authors, citation graph or reranker, these features are disabled, as in training copies.""",
        {
            "Use": """`citerec recommend --query FILE --ranker FOLDER`; `--no-popularity` and `--no-authors` select
the variants that were trained without citation counts and age, and without authors.""",
            "Data": f"""{table(("index", "papers", "train queries", "dev queries"), queries)}

It was not trained on test queries. It was trained on dev queries only of an index whose encoder or reranker
was trained on the citations of its train queries; such dev queries are measured by cross-validation. Half of the train
queries did not know the newest citations, of up to {CITATION_LAG} years. Each train query has
{COPIES} copies with disabled feature groups.""",
            "Measures": f"On the dev queries:\n\n{table(('variant', 'F1@20', 'MRR'), variants)}\n\n"
            + table(("index", "F1@20 before", "after", "MRR before", "after"), measures),
            "Probabilities": f"""\
sigmoid(scale * (score - mean of the list's best {TOP} scores) + offset), fitted on the best {TOP} papers
of each dev query's complete list; none if too few of them are cited.

{table(("variant", "scale", "offset"), calibrations)}""",
            "Ablations": "On the dev queries, with disabled feature groups; nothing is trained again.\n\n"
            + table(
                ("feature groups", "F1@20", "MRR"),
                [(row["label"], row["f1"], row["mrr"]) for row in record["ablations"]],
            ),
            "Features": table(
                ("feature", "share of the gain", "what it is"),
                [(name, f"{share:.1%}", meaning[name]) for name, share in trees.gains.items()],
            ),
        },
        record["provenance"]["settings"],
    )
