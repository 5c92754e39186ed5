"""Trains an encoder of words on the train papers of an index."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import building, check_writable
from citerec.errors import writing
from citerec.folder import IndexFolder
from citerec.lab.train_words.bags import make_fasttext, make_sgc, make_sif, make_tfidf
from citerec.lab.train_words.citeomatic import make_citeomatic
from citerec.lab.train_words.config import WordRecipe, WordsTraining
from citerec.lab.train_words.corpus import TrainTexts
from citerec.lab.train_words.dev import GridSearch, GridTrial
from citerec.lab.train_words.doc2vec import make_doc2vec
from citerec.lab.train_words.kept import KeptTraining
from citerec.lab.train_words.made import TrainedModel
from citerec.lab.train_words.modelfolder import write_model
from citerec.lab.train_words.vectors import sha256_of_vectors
from citerec.lab.words.chance import RandomVectors
from citerec.lab.words.folder import NAME
from citerec.train.data import splits_sha256
from citerec.train.modelfolder import check_target, read_training
from citerec.train.start import resume_or_discard
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsReport:
    """What a training made."""

    output: Path
    counts: Mapping[str, int]  # of what was learned from
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
    """Train an encoder of words; the model folder appears whole, at the end.

    Same index, same settings: same bytes, on the same machine.

    Args:
        index: Whose train papers it learns from; dev queries choose the settings.
        output: The model folder to be.
        config: How.
        resume: Go on with a training of the same index and settings that was cut short.
        force: Replace a model that is there.
        progress: Receives how far each kind of work is.
        log: Receives what is worth a line: what each setting gave.

    Raises:
        ConfigError: If there is nothing to learn from, a setting cannot be, or `resume` is given for a training
            with other settings.
        ModelExistsError: If there is a model at `output`, without `force`.
        MissingExtraError: If what trains is not installed.
        OutputError: If the folder cannot be written.
    """
    check_target(output, NAME, force=force)
    check_writable(output)
    workspace = Workspace.beside(output)
    plan = _plan(index, config)
    resume_or_discard(workspace, plan, resume=resume, log=log)
    search = GridSearch.of(index, config, log, progress, KeptTraining(workspace, plan))
    made = _MAKERS[config.recipe](TrainTexts.of(index), config, search)
    with writing(output), building(output) as folder:
        write_model(folder, made, index, config)
    workspace.remove()
    return WordsReport(output=output, counts=made.counts, tried=tuple(made.tried), chosen=made.best)


def _plan(index: IndexFolder, config: WordsTraining) -> dict[str, Any]:
    """Return what must be the same for a training to be resumed."""
    plan = {
        "corpus_sha256": index.manifest.corpus["sha256"],
        "splits_sha256": splits_sha256(index),
        **config.to_json(),
    }
    if config.vectors:
        place = Path(config.vectors).expanduser()
        plan["vectors_sha256"] = sha256_of_vectors(place) if place.exists() else None
    return plan


def was_trained_so(model: Path, index: IndexFolder, config: WordsTraining) -> bool:
    """Return whether there is a model that was trained on these papers and splits, with these settings."""
    if not (model / NAME).is_file():
        return False
    told = read_training(model)
    wanted: dict[str, Any] = orjson.loads(orjson.dumps(config.to_json()))
    if config.vectors:
        place = Path(config.vectors).expanduser()
        wanted["vectors"] = place.name
        if not place.exists() or sha256_of_vectors(place) != told.get("weights"):
            return False
    here = index.manifest.corpus["sha256"], splits_sha256(index)
    try:
        trained_on = told["corpus_sha256"], told["splits_sha256"]
        return trained_on == here and told["provenance"]["settings"] == wanted
    except (KeyError, TypeError):
        return False


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
