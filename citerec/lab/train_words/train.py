"""Trains a word-vector encoder on the train papers of an index."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.atomic import building, check_writable
from citerec.errors import writing
from citerec.folder import IndexFolder
from citerec.lab.train_words.bags import make_fasttext, make_sgc, make_sif, make_tfidf
from citerec.lab.train_words.citeomatic import make_citeomatic
from citerec.lab.train_words.config import WordRecipe, WordsTraining
from citerec.lab.train_words.corpus import TrainTexts
from citerec.lab.train_words.dev import GridSearch, GridTrial, TrainedModel
from citerec.lab.train_words.doc2vec import make_doc2vec
from citerec.lab.train_words.kept import KeptTraining
from citerec.lab.train_words.modelfolder import write_model
from citerec.lab.train_words.vectors import sha256_of_vectors
from citerec.lab.words.chance import RandomVectors
from citerec.lab.words.folder import NAME
from citerec.train.record import check_target, corpus_facts
from citerec.train.record import was_trained_so as has_record
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsReport:
    """The result of the training of a word-vector encoder."""

    output: Path
    counts: Mapping[str, int]  # of the training data
    tried: tuple[GridTrial, ...]
    chosen: GridTrial


def train_words(
    index: IndexFolder,
    output: Path,
    config: WordsTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> WordsReport:
    """Train a word-vector encoder; the model folder is created complete at the end.

    The same index and settings give the same bytes on the same machine.

    Args:
        index: Its train papers are the training data; its dev queries select the settings.
        output: The model folder to create.
        config: The settings.
        resume: Continue an interrupted training of the same index and settings.
        force: Replace an existing model.
        progress: Receives task, done and total of each kind of work.
        log: Receives the measures of each setting.

    Raises:
        ConfigError: If there is nothing to train on, a setting is invalid, or a training with other settings is
            resumed.
        ModelExistsError: If there is a model at `output` and `force` is false.
        MissingExtraError: If a package of the extra is not installed.
        OutputError: If the folder cannot be written.
    """
    check_target(output, NAME, force=force)
    check_writable(output)
    workspace = Workspace.for_model(output)
    plan = _plan(index, config)
    if workspace.open(plan, resume=resume, log=log, create=False):
        log(f"resuming from {workspace.folder}")
    search = GridSearch.of(index, config, log, progress, KeptTraining(workspace, plan))
    trained = _MAKERS[config.recipe](TrainTexts.of(index), config, search)
    with writing(output), building(output) as folder:
        write_model(folder, trained, index, config)
    workspace.remove()
    return WordsReport(
        output=output, counts=trained.counts, tried=tuple(trained.tried), chosen=trained.best
    )


def _plan(index: IndexFolder, config: WordsTraining) -> dict[str, Any]:
    """Return the facts that must be equal for a training to be resumed."""
    vectors = {"vectors_sha256": _vectors_sha256(config)} if config.vectors else {}
    return {**corpus_facts(index), **config.to_json(), **vectors}


def was_trained_so(model: Path, index: IndexFolder, config: WordsTraining) -> bool:
    """Return whether a model was trained on these papers, splits and precomputed vectors with these settings."""
    facts = corpus_facts(index)
    if config.vectors:
        sha256 = _vectors_sha256(config)
        if sha256 is None:
            return False
        facts["weights"] = sha256
    return (model / NAME).is_file() and has_record(model, config, config.to_json(), facts)


def _vectors_sha256(config: WordsTraining) -> str | None:
    """Return the sha256 of the precomputed word vectors; None if they are missing."""
    place = Path(config.vectors).expanduser()
    return sha256_of_vectors(place) if place.exists() else None


def _make_random(_: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    model = RandomVectors(dim=config.dim, seed=config.seed)
    return TrainedModel(model=model, tried=[search.measured(model, {})])


_MAKERS: Mapping[WordRecipe, Callable[[TrainTexts, WordsTraining, GridSearch], TrainedModel]] = {
    WordRecipe.RANDOM: _make_random,
    WordRecipe.TFIDF: make_tfidf,
    WordRecipe.DOC2VEC: make_doc2vec,
    WordRecipe.FASTTEXT: make_fasttext,
    WordRecipe.SIF: make_sif,
    WordRecipe.SGC: make_sgc,
    WordRecipe.CITEOMATIC: make_citeomatic,
}
