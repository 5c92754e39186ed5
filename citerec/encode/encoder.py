"""Encoders: papers in, vectors out; opened by name, hub id or folder, or as an index recorded them."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np

from citerec.encode.models import (
    HubError,
    ModelSource,
    bottleneck_files,
    find_model,
    recorded_folder,
    tokenizer_files,
    weights_files,
)
from citerec.encode.onnx import OnnxBackend, Runner, export, export_key, exported
from citerec.encode.spec import (
    EncodeConfig,
    EncoderSpec,
    Fingerprint,
    read_spec,
    requested_precision,
)
from citerec.encode.torch_backend import (
    Parts,
    TorchBackend,
    encoder_net,
    load_parts,
    shared,
)
from citerec.errors import ModelError
from citerec.files.arrays import Vectors
from citerec.files.cache import sha256_of_files
from citerec.plugins import Plugins
from citerec.text import encoder_text
from citerec.types import Log, Paper, Progress, Query, no_log, no_progress


class Encoder(Protocol):
    """Turns papers and drafts into vectors; several threads may use it."""

    fingerprint: Fingerprint  # what an index records of it
    config: EncodeConfig  # how it is run
    spec: EncoderSpec  # how it reads and pools text
    dim: int  # the dimension of a vector
    precision: str  # of its computation: float32, bfloat16 or float16

    def encode(
        self, papers: Sequence[Paper | Query], progress: Progress = no_progress
    ) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); of unit length if compared by cosine."""
        ...


class TransformerEncoder:
    """An encoder that is a transformer."""

    def __init__(
        self,
        parts: Parts,
        fingerprint: Fingerprint,
        config: EncodeConfig,
        runner: Runner | None = None,
    ) -> None:
        """Make an encoder of an open model, which torch runs unless there is a `runner`, and may move to a device.

        A ConfigError if there is no such device.
        """
        self._parts = parts
        self.spec = parts.spec
        self.dim = parts.dim
        self.fingerprint = fingerprint
        self.config = config
        # ONNX Runtime computes for several threads at once
        self._turn: Any = nullcontext()
        if runner is None:
            runner = TorchBackend(encoder_net(parts), self.config)
            self._turn = Lock()
        self._runner = runner
        self.precision = runner.precision

    def encode(
        self, papers: Sequence[Paper | Query], progress: Progress = no_progress
    ) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); of unit length if compared by cosine.

        The same papers in the same order give the same vectors, bit by bit, on the same machine. In another batch a
        paper's vector may differ in the last bits of `precision`.
        """
        texts = [
            encoder_text(paper, self.spec.form, self._parts.separator)
            for paper in papers
        ]
        vectors = np.empty((len(texts), self.dim), np.float32)
        done = 0
        with self._turn:
            for rows, outputs in self._runner.run(self._parts.tokens(texts)):
                vectors[rows] = outputs
                done += len(rows)
                progress("encoding", done, len(texts))
        return vectors


def open_encoder(
    name: str,
    config: EncodeConfig | None = None,
    *,
    base: Path | None = None,
    log: Log = no_log,
) -> Encoder:
    """Open an encoder by its name, hub id or folder, as `find_model` finds it.

    ModelError if it does not exist, or is not an encoder; MissingExtraError if it needs an extra of citerec that is not
    installed.
    """
    return _open(find_model(name, base=base, log=log), config or EncodeConfig())


def reopen(
    fingerprint: Fingerprint,
    base: Path,
    config: EncodeConfig | None = None,
    *,
    log: Log = no_log,
) -> Encoder:
    """Open the encoder of which an index, in the folder `base`, recorded a fingerprint.

    ModelError if it does not exist any more, or the encoder at its place now would give other vectors.
    """
    folder = recorded_folder(fingerprint.source, base=base)
    if folder and not folder.is_dir():
        raise ModelError(
            f"the model that {base} was embedded by is missing: {folder} is not a folder; restore it, or embed the "
            f"index anew: citerec encode --index {base} --encoder MODEL"
        )
    location = str(folder or fingerprint.source)
    try:
        source = find_model(location, revision=fingerprint.revision, log=log)
    except HubError as error:
        error.add_note(
            f"embed the index anew: citerec encode --index {base} --encoder minilm"
        )
        raise
    recorded = replace(source, name=fingerprint.name, location=fingerprint.source)
    encoder = _open(recorded, config or EncodeConfig())
    if encoder.fingerprint.key != fingerprint.key:
        raise ModelError(
            f"{base} was embedded by {fingerprint}, but the model at {location} now is another, or reads text in "
            "another way: it was trained again or replaced; embed the index anew: "
            f"citerec encode --index {base} --encoder {location}"
        )
    return encoder


def fingerprint_of(source: ModelSource, dim: int, spec: EncoderSpec) -> Fingerprint:
    """Return the fingerprint, which an index records, of the encoder in a folder."""
    weights = weights_files(source.folder)
    weights += bottleneck_files(source.adapter) if source.adapter else []
    return Fingerprint(
        name=source.name,
        source=source.location,
        revision=source.revision,
        weights=sha256_of_files(weights),
        tokenizer=sha256_of_files(tokenizer_files(source.folder)),
        dim=dim,
        spec=spec,
    )


def _open(source: ModelSource, config: EncodeConfig) -> Encoder:
    if not (source.folder / "config.json").is_file():
        for marker in Plugins.ENCODERS.names:
            if (source.folder / marker).is_file():
                return Plugins.ENCODERS.load(marker)(source, config)
    spec = read_spec(source.folder)
    precision = requested_precision(config.precision)

    def opened() -> TransformerEncoder:
        """Open it by ONNX Runtime for few texts, else by torch, which exports it for the next few texts."""
        key = export_key(source.folder, source.adapter, spec)
        found = exported(key) if config.few_texts else None
        parts = None
        runner = None
        if found is None:
            parts = load_parts(source.folder, spec, source.adapter)
            facts = {"dim": parts.dim, "separator": parts.separator}
            found = export(key, encoder_net(parts), parts.tokenizer, facts)
        if found and config.few_texts:
            facts = found.facts
            tokenizer = found.tokenizer(spec.max_tokens)
            parts = Parts(None, tokenizer, spec, facts["dim"], facts["separator"])
            runner = OnnxBackend(found, config.thread_count)
        assert parts
        fingerprint = replace(recorded, dim=parts.dim)
        return TransformerEncoder(parts, fingerprint, config, runner)

    recorded = fingerprint_of(source, 0, spec)
    return shared((source, recorded, config, precision), opened)
