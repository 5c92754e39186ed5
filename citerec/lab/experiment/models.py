"""The index and the models of a row; missing ones are built and trained."""

from pathlib import Path

from citerec.build import BuildConfig, build_index
from citerec.corpus.readers.source import find_source, sha256_of
from citerec.corpus.splits import SPLITS, open_queries, read_ids, shipped_queries, shipped_splits
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.opening import open_encoder
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError
from citerec.evaluate.systems import RANKED
from citerec.folder import NAME, IndexFolder, open_index
from citerec.lab.experiment.row import Experiment
from citerec.rank.ltr import DEFAULT
from citerec.rules.held_out import RERANKER
from citerec.types import Progress

ENCODER = "encoder"  # name in the model folder of an index


def index_of(experiment: Experiment, indexes: Path, progress: Progress) -> IndexFolder:
    """Open the index of a row; missing parts are built, or resumed."""
    corpus, folder = Path(experiment.corpus), indexes / experiment.index_name
    if not (folder / NAME).is_file():
        build_index(corpus, folder, BuildConfig(encoder=experiment.encoder, resume=True), progress)
    index = open_index(folder)
    source = find_source(corpus)
    advice = f"rebuild it: citerec index {corpus} --index {folder} --force"
    if index.manifest.corpus["sha256"] != sha256_of(source):
        raise ConfigError(f"{folder} was built from another corpus than {corpus}; {advice}")
    if not _has_splits_of(index, source.folder):
        raise ConfigError(f"{folder} has other splits than {corpus}; {advice}")
    if experiment.train:
        return _embedded(index, trained_encoder(Path(experiment.train), index, progress), progress)
    return _embedded(index, experiment.encoder, progress) if experiment.encoder else index


def _embedded(index: IndexFolder, encoder: str, progress: Progress) -> IndexFolder:
    """Encode the papers of an index, unless they are encoded by this encoder."""
    model = open_encoder(encoder, base=index.path)
    recorded = index.manifest.settings["encoder"]
    if recorded and Fingerprint.from_json(recorded).key == model.fingerprint.key:
        return index
    embed_anew(index.path, model, EmbedConfig(resume=True), progress)
    return open_index(index.path)


def trained_encoder(
    settings: Path, index: IndexFolder, progress: Progress, name: str = ENCODER
) -> str:
    """Train the encoder of a row on its index, unless it exists; return its folder."""
    from citerec.train.encoder import train_encoder, was_trained_so
    from citerec.train.settings import EncoderTraining

    model = index.models / name
    config = EncoderTraining.read(settings, {})
    if not was_trained_so(model, index, config):
        train_encoder(index, model, config, resume=True, force=True, progress=progress)
    return str(model)


def reranker_of(experiment: Experiment, index: IndexFolder, progress: Progress) -> str | None:
    """Return the reranker of a row; train it on the index, unless it exists.

    It is stored next to the reranker of the index, which `recommend` uses, so a row does not change recommendations.
    """
    if not experiment.train_reranker:
        return experiment.reranker
    from citerec.train.reranker import train_reranker, was_trained_so
    from citerec.train.settings import RerankerTraining

    settings = Path(experiment.train_reranker)
    config = RerankerTraining.read(settings, {})
    own = index.models / RERANKER
    for_row = own.with_name(f"{RERANKER}-{settings.stem}")
    for model in (own, for_row):
        if was_trained_so(model, index, config):
            return str(model)
    train_reranker(index, for_row, config, resume=True, force=True, progress=progress)
    return str(for_row)


def ranker_of(experiment: Experiment, index: IndexFolder, indexes: Path, progress: Progress) -> str:
    """Return the learning-to-rank model of a row; train it on the corpora of the row, unless it exists.

    It is not stored as the model of the index, which `recommend` would use.
    """
    if experiment.system not in RANKED or not experiment.train_ranker:
        return experiment.ranker or str(DEFAULT)
    from citerec.train.ranker import train_ranker, was_trained_so
    from citerec.train.settings import RankerTraining

    settings = Path(experiment.train_ranker)
    config = RankerTraining.read(settings, {})
    corpora = experiment.ranker_corpora or (experiment.corpus,)
    train_indexes = [
        index_of(experiment.model_copy(update={"corpus": corpus}), indexes, progress)
        for corpus in corpora
    ]
    model = index.models / f"ranker-{settings.stem}"
    apart = [] if any(other.path == index.path for other in train_indexes) else [index]
    if not was_trained_so(model, train_indexes, config):
        train_ranker(
            train_indexes, model, config, apart=apart, resume=True, force=True, progress=progress
        )
    return str(model)


def _has_splits_of(index: IndexFolder, corpus: Path) -> bool:
    """Return whether the splits of an index are those of the corpus; its checksum covers only papers."""
    queries = shipped_queries(corpus)
    if queries is not None:
        return queries == open_queries(index.splits)
    shipped = shipped_splits(corpus)
    if shipped is None:
        return index.manifest.settings["splits"] != "shipped"
    return shipped == {name: read_ids(index.splits / f"{name}.ids") for name in SPLITS}
