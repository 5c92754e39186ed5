"""Encoders: papers in, vectors out; opened by name, hub id or folder, or as an index recorded them."""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from citerec import plugins
from citerec.encode.models import (
    SENT_BERT,
    ModelSource,
    bottleneck_files,
    find_again,
    find_model,
    tokenizer_files,
    weights_files,
)
from citerec.encode.spec import (
    EncodeConfig,
    EncoderSpec,
    Fingerprint,
    Reads,
    Similarity,
    read_spec,
)
from citerec.errors import EncoderMismatchError, ModelError
from citerec.io import sha256_of_files
from citerec.text import EncoderForm, encoder_text
from citerec.types import Log, Paper, Progress, Query

if TYPE_CHECKING:
    from citerec.encode.torch_backend import Parts, Runner

LINEAR_MAP = "2_Dense"  # of sentence-transformers; without it the vectors would be others
TRANSFORMER = "config.json"  # marks the folder of a transformer
END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
SHORT = re.compile(  # abbreviations, whose full stop does not end a sentence
    r"(?:\b(?:e\.g|i\.e|cf|vs|al|etc|resp|approx|figs?|eqs?|sec|refs?|dr|prof|mr)|\b[A-Z])\.$",
    re.IGNORECASE,
)
LONGEST = 10  # more characters than `SHORT` can match

Vectors = npt.NDArray[np.float32]


class EncoderChangedError(EncoderMismatchError):
    """The encoder that an index was embedded by has changed."""

    def __init__(self, index: Path, *, found: str, expected: str, location: str) -> None:
        ModelError.__init__(
            self,
            f"{index} was embedded by {expected}, but the model at {location} now is {found}: it was trained again or "
            f"replaced; embed the index anew: citerec encode --index {index} --encoder {location}",
        )
        self.index, self.found, self.expected = index, found, expected


class Encoder(Protocol):
    """Turns papers and drafts into vectors; several threads may use it."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What an index records of the encoder."""
        ...

    @property
    def config(self) -> EncodeConfig:
        """How it is run."""
        ...

    @property
    def spec(self) -> EncoderSpec:
        """How it reads and pools text."""
        ...

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        ...

    @property
    def precision(self) -> str:
        """The number format of its computation: float32, bfloat16 or float16."""
        ...

    def encode(self, papers: Sequence[Paper | Query], progress: Progress | None = None) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); of unit length if compared by cosine.

        Args:
            papers: Papers, or drafts.
            progress: Receives how many papers are done.
        """
        ...


class Model(Protocol):
    """An open model with its tokenizer: `Parts` by torch, `ExportedParts` by ONNX Runtime."""

    @property
    def spec(self) -> EncoderSpec:
        """How it reads and pools text."""
        ...

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        ...

    @property
    def separator(self) -> str:
        """The text between the parts of a paper."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids: with special tokens, at most `spec.max_tokens` each."""
        ...


@dataclass(frozen=True, slots=True)
class ExportedParts:
    """The tokenizer of an exported encoder; the counterpart of `torch_backend.Parts`."""

    tokenizer: Any
    spec: EncoderSpec
    dim: int
    separator: str

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids: with special tokens, at most `spec.max_tokens` each."""
        from citerec.encode.onnx import tokenized

        return tokenized(self.tokenizer, texts, special=True)


class TransformerEncoder:
    """An encoder that is a transformer."""

    def __init__(
        self,
        parts: "Parts | ExportedParts",
        fingerprint: Fingerprint,
        config: EncodeConfig | None = None,
        log: Log | None = None,
        runner: "Runner | None" = None,
    ) -> None:
        """Make an encoder of an open model; the model may be moved to another device and precision.

        Args:
            parts: The model, or the tokenizer of one that `runner` runs.
            fingerprint: What an index records of it.
            config: How to run it.
            log: Receives a message if the device has too little memory for a batch.
            runner: What runs it; by default torch.

        Raises:
            ConfigError: If there is no such device.
        """
        self.parts: Model = parts
        self.fingerprint = fingerprint
        self.config = config or EncodeConfig()
        if runner is None:
            from citerec.encode.torch_backend import TorchBackend, encoder_net

            runner = TorchBackend(encoder_net(_summable(parts)), self.config, log)
            self._turn: Any = Lock()
        else:
            self._turn = nullcontext()  # ONNX Runtime computes for several threads at once
        self._runner = runner

    @property
    def spec(self) -> EncoderSpec:
        """How it reads and pools text."""
        return self.parts.spec

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self.parts.dim

    @property
    def precision(self) -> str:
        """The number format of its computation: float32, bfloat16 or float16."""
        return self._runner.precision

    def encode(self, papers: Sequence[Paper | Query], progress: Progress | None = None) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); of unit length if compared by cosine.

        The same papers in the same order give the same vectors, bit by bit, on the same machine. In another batch a
        paper's vector may differ in the last bits of `precision`.

        Args:
            papers: Papers, or drafts.
            progress: Receives how many papers are done.
        """
        form, separator = self.spec.form, self.parts.separator
        if self.spec.reads is Reads.SENTENCES:
            pieces, owners = pieces_of(papers, form)
            return summed(self._encode(pieces, progress), owners, len(papers))
        return self._encode([encoder_text(one, form, separator) for one in papers], progress)

    def _encode(self, texts: Sequence[str], progress: Progress | None) -> Vectors:
        vectors = np.empty((len(texts), self.dim), np.float32)
        done = 0
        with self._turn:
            for rows, outputs in self._runner.run(self.parts.tokens(texts)):
                vectors[rows] = outputs
                done += len(rows)
                if progress:
                    progress("encoding", done, len(texts))
        return vectors


def open_encoder(
    name: str,
    config: EncodeConfig | None = None,
    *,
    base: Path | None = None,
    log: Log | None = None,
) -> Encoder:
    """Open an encoder by its name, hub id or folder.

    Args:
        name: One of `models.NAMES` or `models.SHIPPED`, `minilm`, a hub id, or a folder.
        config: How to run it.
        base: The folder of an index: a relative folder is also searched there.
        log: Receives what is fetched from the hub, before the download starts.

    Raises:
        ModelError: If it does not exist, or is not an encoder.
        MissingExtraError: If it needs an extra of citerec that is not installed.
    """
    return _open(find_model(name, base=base, log=log), config or EncodeConfig(), log)


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
    encoder = _open(recorded, config or EncodeConfig(), log)
    now = encoder.fingerprint
    if now.key != fingerprint.key:
        is_folder = source.folder.name == Path(source.location).name
        raise EncoderChangedError(
            base,
            found=f"another model, or reads text in another way (weights {now.weights[:8]})",
            expected=str(fingerprint),
            location=str(source.folder) if is_folder else source.location,
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


def spec_of(source: ModelSource) -> EncoderSpec:
    """Return how a model reads text, by its folder; Sentence-BERT reads sentence by sentence, as in SPECTER's paper."""
    spec = read_spec(source.folder)
    if source.location == SENT_BERT:
        return replace(spec, reads=Reads.SENTENCES, similarity=Similarity.COSINE)
    return spec


# A server opens several indexes of one encoder: a model that is open is used again while anything uses it.
_open_encoders: WeakValueDictionary[Any, TransformerEncoder] = WeakValueDictionary()
_opening = RLock()


def _open(source: ModelSource, config: EncodeConfig, log: Log | None) -> Encoder:
    if not (source.folder / TRANSFORMER).is_file():
        for marker in plugins.names(plugins.ENCODERS):
            if (source.folder / marker).is_file():
                return plugins.load(plugins.ENCODERS, marker)(source, config)
    if (source.folder / LINEAR_MAP).is_dir():
        raise ModelError(
            f"{source.folder / LINEAR_MAP} is a layer after pooling, which is not supported"
        )
    spec = spec_of(source)
    with _opening:
        key = source, fingerprint_of(source, 0, spec), config
        encoder = _open_encoders.get(key)
        if encoder is None:
            encoder = _open_transformer(source, spec, config, log)
            _open_encoders[key] = encoder
        return encoder


def _open_transformer(
    source: ModelSource, spec: EncoderSpec, config: EncodeConfig, log: Log | None
) -> TransformerEncoder:
    """Open an encoder by ONNX Runtime for few texts, else by torch, which exports it for the next few texts."""
    from citerec.encode.onnx import OnnxBackend, export, export_key, exported

    key = export_key(source.folder, source.adapter, spec)
    found, parts = exported(key) if config.few_texts else None, None
    if found is None:
        from citerec.encode.torch_backend import encoder_net, load_parts

        parts = load_parts(source.folder, spec, source.adapter)
        facts = {"dim": parts.dim, "separator": parts.separator}
        found = export(key, encoder_net(_summable(parts)), parts.tokenizer, facts)
    if found and config.few_texts:
        dim, separator = int(found.facts["dim"]), str(found.facts["separator"])
        light = ExportedParts(found.tokenizer(spec.max_tokens), spec, dim, separator)
        runner = OnnxBackend(found, config.thread_count)
        return TransformerEncoder(light, fingerprint_of(source, dim, spec), config, log, runner)
    assert parts is not None
    return TransformerEncoder(parts, fingerprint_of(source, parts.dim, spec), config, log)


def _summable(parts: Any) -> Any:
    """Return a model whose vectors are to be summed as it gives them, if it reads sentence by sentence."""
    if parts.spec.reads is Reads.SENTENCES:
        return replace(parts, spec=replace(parts.spec, similarity=Similarity.L2))
    return parts


def sentences(text: str) -> list[str]:
    """Split a text into sentences: at a full stop, question mark or exclamation mark before a capital or a digit.

    "et al.", "e.g." and single letters do not end a sentence.
    """
    complete: list[str] = []
    first = 0
    for end in END.finditer(text):
        # Only the last characters are searched: otherwise a text of abbreviations would take quadratic time.
        if not SHORT.search(text, max(first, end.start() - LONGEST), end.start()):
            complete.append(text[first : end.end()].strip())
            first = end.end()
    return [sentence for sentence in (*complete, text[first:].strip()) if sentence]


def pieces_of(
    papers: Sequence[Paper | Query], form: EncoderForm
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return title and sentences of all papers as one list, and the paper of each piece, shape (pieces,)."""
    pieces: list[str] = []
    owners: list[int] = []
    for number, paper in enumerate(papers):
        abstract_parts = encoder_text(paper, form, "\0").split("\0")[1:]
        own = [paper.title, *(one for part in abstract_parts for one in sentences(part))]
        pieces.extend(own)
        owners.extend([number] * len(own))
    return pieces, np.array(owners, np.int64)


def summed(vectors: Vectors, owners: npt.NDArray[np.int64], papers: int) -> Vectors:
    """Sum the vectors of each paper's pieces and scale the sums to unit length, shape (papers, dim).

    Args:
        vectors: The vectors of the pieces, shape (pieces, dim).
        owners: The paper of each piece, shape (pieces,).
        papers: The number of papers.

    Source: Cohan et al., ACL 2020, appendix A, https://arxiv.org/abs/2004.07180.
    """
    sums = np.zeros((papers, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    return unit(sums)


def unit(vectors: Vectors) -> Vectors:
    """Scale vectors to unit length; a zero vector stays zero.

    Args:
        vectors: Shape (n, dim).
    """
    lengths = np.sqrt(np.square(vectors, dtype=np.float32).sum(1, keepdims=True))
    return (vectors / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
