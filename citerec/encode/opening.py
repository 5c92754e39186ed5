"""Opens encoders: by name, hub id or folder, or as an index recorded them."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from citerec import plugins
from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import Encoder, TransformerEncoder
from citerec.encode.files import tokenizer_files, weights_files
from citerec.encode.light import LightParts, open_light
from citerec.encode.shared import OpenModels
from citerec.encode.source import SENT_BERT, ModelSource, find_again, find_model
from citerec.encode.spec import EncoderSpec, Fingerprint, Reads, Similarity, read_spec
from citerec.errors import EncoderMismatchError, ModelError
from citerec.io import sha256_of_files
from citerec.types import Log

if TYPE_CHECKING:
    from citerec.encode.model import Parts

LINEAR_MAP = "2_Dense"  # of sentence-transformers; without it the vectors would be others
TRANSFORMER = "config.json"  # marks the folder of a transformer


class EncoderChangedError(EncoderMismatchError):
    """The encoder that an index was embedded by has changed."""

    def __init__(self, index: Path, *, found: str, expected: str, location: str) -> None:
        ModelError.__init__(
            self,
            f"{index} was embedded by {expected}, but the model at {location} now is {found}: it was trained again or "
            f"replaced; embed the index anew: citerec encode --index {index} --encoder {location}",
        )
        self.index, self.found, self.expected = index, found, expected


_OPEN = OpenModels[TransformerEncoder]()


def open_encoder(
    name: str,
    config: EncodeConfig | None = None,
    *,
    base: Path | None = None,
    log: Log | None = None,
) -> Encoder:
    """Open an encoder by its name, hub id or folder.

    Args:
        name: One of `source.NAMES` or `source.SHIPPED`, `minilm`, a hub id, or a folder.
        config: How to run it.
        base: The folder of an index: a relative folder is also searched there.
        log: Receives what is fetched from the hub, before the download starts.

    Raises:
        ModelError: If it does not exist, or is not an encoder.
        MissingExtraError: If it needs an extra of citerec that is not installed.
    """
    return _open(find_model(name, base=base, log=log), config, log)


def reopen(
    fingerprint: Fingerprint,
    base: Path,
    config: EncodeConfig | None = None,
    *,
    log: Log | None = None,
) -> Encoder:
    """Open the encoder that an index was embedded by.

    Args:
        fingerprint: What the index recorded.
        base: The index folder.
        config: How to run it.
        log: Receives what is fetched from the hub, before the download starts.

    Raises:
        ModelError: If it does not exist any more.
        EncoderChangedError: If the encoder at its place now would give other vectors.
    """
    source = find_again(fingerprint.source, base=base, revision=fingerprint.revision, log=log)
    recorded = replace(source, name=fingerprint.name, location=fingerprint.source)
    encoder = _open(recorded, config, log)
    if encoder.fingerprint.key != fingerprint.key:
        location = (
            str(source.folder)
            if source.folder.name == Path(source.location).name
            else source.location
        )
        found = encoder.fingerprint.differs_from(fingerprint)
        raise EncoderChangedError(base, found=found, expected=str(fingerprint), location=location)
    return encoder


def fingerprint_of(source: ModelSource, parts: "Parts | LightParts") -> Fingerprint:
    """Return the fingerprint, which an index records, of the encoder in a folder."""
    weights = weights_files(source.folder)
    if source.adapter:
        from citerec.encode.adapter import CONFIG, adapter_file

        weights += [adapter_file(source.adapter), source.adapter / CONFIG]
    return Fingerprint(
        name=source.name,
        source=source.location,
        revision=source.revision,
        weights=sha256_of_files(weights),
        tokenizer=sha256_of_files(tokenizer_files(source.folder)),
        dim=parts.dim,
        spec=parts.spec,
    )


def _open(source: ModelSource, config: EncodeConfig | None, log: Log | None) -> Encoder:
    if not (source.folder / TRANSFORMER).is_file() and (marker := _plugin(source.folder)):
        return plugins.load(plugins.ENCODERS, marker)(source, config)
    folders = [source.folder, source.adapter]
    work = partial(_open_transformer, source, config, log)
    # torch converts weights for NumPy, which opens the next encoder of few texts
    return _OPEN.get((source, config, log), folders, work, _is_final)


def _is_final(encoder: TransformerEncoder) -> bool:
    return isinstance(encoder.parts, LightParts) or not encoder.config.few_texts


def _open_transformer(
    source: ModelSource, config: EncodeConfig | None, log: Log | None
) -> TransformerEncoder:
    if (source.folder / LINEAR_MAP).is_dir():
        raise ModelError(
            f"{source.folder / LINEAR_MAP} is a layer after pooling, which is not supported"
        )
    spec = spec_of(source)
    parts = open_light(source.folder, spec, source.adapter) if config and config.few_texts else None
    parts = parts or _with_torch(source, spec)
    fingerprint = fingerprint_of(source, parts)
    return TransformerEncoder(parts, fingerprint, config, log)


def _with_torch(source: ModelSource, spec: EncoderSpec) -> "Parts":
    from citerec.encode.adapter import add_adapter
    from citerec.encode.light import convert_weights
    from citerec.encode.model import load_parts

    parts = load_parts(source.folder, spec)
    convert_weights(source.folder, parts.model.state_dict())
    if source.adapter:
        add_adapter(parts.model, source.adapter)
    return parts


def _plugin(folder: Path) -> str | None:
    """Return the name under which another package opens the encoder in a folder; None if there is none."""
    markers = (name for name in plugins.names(plugins.ENCODERS) if (folder / name).is_file())
    return next(markers, None)


def spec_of(source: ModelSource) -> EncoderSpec:
    """Return how a model reads text, by its folder; Sentence-BERT reads sentence by sentence, as in SPECTER's paper."""
    spec = read_spec(source.folder)
    if source.location == SENT_BERT:
        return replace(spec, reads=Reads.SENTENCES, similarity=Similarity.COSINE)
    return spec
