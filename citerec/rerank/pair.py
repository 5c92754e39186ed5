"""How a cross-encoder reads a pair: its limits, its tokens, its calibration, and how many pairs it scores in time."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.errors import ConfigError, ModelError

NAME = "citerec_reranker.json"
LEAST, MOST = 8, 448  # tokens of one side, including special tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSpec:
    """How a cross-encoder reads a pair, and how its score becomes a probability. The defaults are the paper's.

    Unused tokens of one side are not given to the other. The probability that the query cites the candidate is
    sigmoid(scale * score + offset); Platt, Advances in Large Margin Classifiers, 1999. `weight` is the rerank weight on
    an index where none was tuned: below 1 for a model that was trained to add to the first-stage scores. `depth` is the
    number of candidates that it scores if the user gives none.
    """

    query_tokens: int = 256  # including [CLS] and the first [SEP]
    candidate_tokens: int = 256  # including the last [SEP]
    scale: float = 1.0
    offset: float = 0.0
    weight: float = 1.0
    depth: int = 0  # 0 for what suits the device

    def __post_init__(self) -> None:
        for name in ("query_tokens", "candidate_tokens"):
            if not LEAST <= getattr(self, name) <= MOST:
                raise ConfigError(
                    f"{name} must be from {LEAST} to {MOST}, got {getattr(self, name)}"
                )
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"weight must lie in [0, 1], got {self.weight}")
        if self.depth < 0:
            raise ConfigError(f"depth must be at least 0, got {self.depth}")
        if not (isfinite(self.scale) and isfinite(self.offset) and self.scale > 0):
            raise ConfigError(
                f"a calibration needs a scale above 0 and a finite offset, got {self.scale} and {self.offset}"
            )

    @property
    def tokens(self) -> int:
        """The maximal number of tokens of a pair."""
        return self.query_tokens + self.candidate_tokens

    @property
    def is_calibrated(self) -> bool:
        """Whether a training fitted the calibration; otherwise the sigmoid of a score is not a probability."""
        return (self.scale, self.offset) != (1.0, 0.0)

    def with_tokens(self, query: int = 0, candidate: int = 0) -> Self:
        """Return the spec with other limits; 0 keeps a limit.

        Raises:
            ConfigError: If a limit is out of range.
        """
        return replace(
            self,
            query_tokens=query or self.query_tokens,
            candidate_tokens=candidate or self.candidate_tokens,
        )


def read_reranker_spec(folder: Path) -> RerankerSpec:
    """Read from a model folder how its cross-encoder reads; 256 + 256 tokens if the folder does not state it.

    Raises:
        ModelError: If the file cannot be parsed.
    """
    path = folder / NAME
    if not path.is_file():
        return RerankerSpec()
    try:
        return RerankerSpec(**orjson.loads(path.read_bytes()))
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"{path} cannot be parsed ({error!r}); is it complete?") from error


def write_reranker_spec(folder: Path, spec: RerankerSpec) -> None:
    """Write into a model folder how its cross-encoder reads, and its calibration."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / NAME).write_bytes(orjson.dumps(asdict(spec), option=options))


USEFUL = 64  # tokens: a side that gets the remaining tokens has at least so many


def with_limits(spec: RerankerSpec, positions: int, query: int, candidate: int) -> RerankerSpec:
    """Return a spec with the limits that a user gave.

    If only one side has a limit and the model cannot read both in full, the other side gets the positions that the
    limited side leaves.

    Args:
        spec: The setting of the model's folder.
        positions: The tokens that the model can read; 0 for no limit.
        query: The limit of the query, with special tokens; 0 for none.
        candidate: The same for the candidate.

    Raises:
        ConfigError: If a limit is out of range, or leaves fewer than `USEFUL` tokens.
    """
    spec = spec.with_tokens(query, candidate)
    if bool(query) == bool(candidate) or not positions or spec.tokens <= positions:
        return spec
    remaining = positions - (query or candidate)
    if remaining < USEFUL:
        limited_side, other_side = ("query", "candidate") if query else ("candidate", "query")
        raise ConfigError(
            f"the model reads {positions} tokens: {query or candidate} of the {limited_side} leave "
            f"{max(0, remaining)} for the {other_side}, which needs at least {USEFUL}; choose fewer"
        )
    return spec.with_tokens(query or remaining, candidate or remaining)


@dataclass(frozen=True, slots=True)
class Specials:
    """The special tokens around the two texts of a pair."""

    before: tuple[int, ...]  # [CLS]
    between: tuple[int, ...]  # [SEP]; two of them in models of RoBERTa's kind
    after: tuple[int, ...]  # [SEP]

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Read them from the output of a tokenizer of transformers for two empty texts.

        Raises:
            ValueError: If it adds no special tokens around a pair, as BERT's does.
        """
        ids = list(tokenizer([""], [""])["input_ids"][0])  # a single "" would count as no text
        if len(ids) < 3:
            raise ValueError("its tokenizer does not add [CLS] and [SEP] around a pair of texts")
        return cls(tuple(ids[:1]), tuple(ids[1:-1]), tuple(ids[-1:]))

    def room(self, spec: RerankerSpec) -> tuple[int, int]:
        """Return how many text tokens the query and the candidate may have.

        The first separator counts for the query, all others for the candidate: 254 and 255 of 256 + 256.
        """
        query = spec.query_tokens - len(self.before) - 1
        return query, spec.candidate_tokens - len(self.between) + 1 - len(self.after)


def pair(
    query_ids: Sequence[int], candidate_ids: Sequence[int], specials: Specials, spec: RerankerSpec
) -> tuple[list[int], int]:
    """Return the tokens `[CLS] query [SEP] candidate [SEP]`, and how many of them are segment 0.

    Each side is truncated separately; unused tokens of one side are not given to the other.

    Args:
        query_ids: The query's text, without special tokens.
        candidate_ids: The candidate's text, likewise.
        specials: The special tokens of the model's tokenizer.
        spec: The limits of both sides.

    Returns:
        At most `spec.tokens` tokens; those up to the last separator between both texts are segment 0, others 1.
    """
    query, candidate = specials.room(spec)
    first = [*specials.before, *query_ids[:query], *specials.between]
    return [*first, *candidate_ids[:candidate], *specials.after], len(first)


SECONDS = 1.5  # for reranking one query
CORE_FLOPS, GPU_FLOPS = 1.5e11, 1e14  # per second: a core with AVX-512, a GPU with tensor cores
CORES = 2  # of the processor, if the number is not given
DEPTHS = (1000, 500, 200, 100, 50, 20, 10)


def default_depth(spec: RerankerSpec, sizes: Any, device: str, cores: int = CORES) -> int:
    """Return how many pairs of full length take about `SECONDS`: a round number from 10 to 1000.

    On two cores: MiniLM of 6 layers takes 4.4 GFLOP for a pair of 128 + 64 tokens: 100; 13.3 at 256 + 256: 20. BERT
    takes 97 at 256 + 256: 10.

    Args:
        spec: How the cross-encoder reads a pair.
        sizes: The configuration of its model, by the names of transformers.
        device: cpu, or another device.
        cores: CPU cores in use.
    """
    affordable = affordable_depth(spec, sizes, device, cores)
    return next((depth for depth in DEPTHS if depth <= affordable), DEPTHS[-1])


def affordable_depth(spec: RerankerSpec, sizes: Any, device: str, cores: int = CORES) -> float:
    """Return how many pairs of full length take `SECONDS`; the arguments are those of `default_depth`."""
    flops = SECONDS * (cores * CORE_FLOPS if device == "cpu" else GPU_FLOPS)
    return flops / pair_flops(spec.tokens, sizes)


def pair_flops(tokens: int, sizes: Any) -> float:
    """Return the floating-point operations of one pair of full length, T tokens, in a BERT of L layers.

    L * (2T * (4h² + 2hf) + 4T²h): four projections and the feed-forward part, two operations per weight and token;
    then attention, which multiplies T × h by h × T, and T × T by T × h.
    """
    h = sizes.hidden_size
    f = getattr(sizes, "intermediate_size", 4 * h)
    return sizes.num_hidden_layers * (
        2 * tokens * (4 * h * h + 2 * h * f) + 4 * tokens * tokens * h
    )
