"""How a cross-encoder reads a pair: its limits, its tokens, its calibration, and how many pairs it scores in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import orjson
from pydantic import Field

from citerec.config import Settings, read_settings
from citerec.errors import ConfigError, ModelError

NAME = "citerec_reranker.json"
# of one side, including special tokens
SideTokens = Annotated[int, Field(ge=8, le=448)]


class RerankerSpec(Settings):
    """How a cross-encoder reads a pair, and how its score becomes a probability. The defaults are the paper's.

    Unused tokens of one side are not given to the other. The probability that the query cites the candidate is
    sigmoid(scale * score + offset); Platt, Advances in Large Margin Classifiers, 1999.
    """

    query_tokens: SideTokens = 256  # including [CLS] and the first [SEP]
    candidate_tokens: SideTokens = 256  # including the last [SEP]
    scale: float = Field(default=1.0, gt=0)
    offset: float = 0.0
    # the best on dev queries of its training, against the first-stage scores
    weight: float = Field(default=1.0, ge=0, le=1)
    # likewise against the scores of the ranker, 0 if it does not help there; None if that was not measured
    weight_after_ranker: float | None = Field(default=None, ge=0, le=1)

    @property
    def tokens(self) -> int:
        """The maximal number of tokens of a pair."""
        return self.query_tokens + self.candidate_tokens

    @property
    def is_calibrated(self) -> bool:
        """Whether a training fitted the calibration; otherwise the sigmoid of a score is not a probability."""
        return (self.scale, self.offset) != (1.0, 0.0)


def read_reranker_spec(
    folder: Path, query_tokens: int = 0, candidate_tokens: int = 0
) -> RerankerSpec:
    """Read from a model folder how its cross-encoder reads; 256 + 256 tokens if the folder does not state it.

    Limits that a user gave replace those of the folder; 0 for none. ModelError if the file cannot be parsed;
    ConfigError if a limit is out of range.
    """
    path = folder / NAME
    spec = RerankerSpec()
    try:
        if path.is_file():
            spec = read_settings(RerankerSpec, orjson.loads(path.read_bytes()))
    except (ConfigError, OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    return spec.replace(
        query_tokens=query_tokens or spec.query_tokens,
        candidate_tokens=candidate_tokens or spec.candidate_tokens,
    )


def write_reranker_spec(folder: Path, spec: RerankerSpec) -> None:
    """Write into a model folder how its cross-encoder reads, and its calibration."""
    (folder / NAME).write_text(f"{spec.model_dump_json(indent=2)}\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Specials:
    """The special tokens around the two texts of a pair."""

    before: tuple[int, ...]  # [CLS]
    between: tuple[int, ...]  # [SEP]; two of them in models of RoBERTa's kind
    after: tuple[int, ...]  # [SEP]

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Read them from the output of a tokenizer of transformers for two empty texts."""
        # a single "" would count as no text
        ids = list(tokenizer([""], [""])["input_ids"][0])
        if len(ids) < 3:
            raise ModelError(
                f"the tokenizer of {tokenizer.name_or_path} does not add [CLS] and [SEP] around a pair of texts"
            )
        return cls(tuple(ids[:1]), tuple(ids[1:-1]), tuple(ids[-1:]))


def pair(
    query_ids: Sequence[int],
    candidate_ids: Sequence[int],
    specials: Specials,
    spec: RerankerSpec,
) -> tuple[list[int], int]:
    """Return the tokens `[CLS] query [SEP] candidate [SEP]`, and how many of them are segment 0.

    The ids of both sides have no special tokens. Each side is truncated separately. The first separator counts for the
    query, all others for the candidate: 256 + 256 tokens hold 254 + 255 of the texts.
    """
    query = spec.query_tokens - len(specials.before) - 1
    candidate = spec.candidate_tokens - len(specials.between) + 1 - len(specials.after)
    first = [*specials.before, *query_ids[:query], *specials.between]
    return [*first, *candidate_ids[:candidate], *specials.after], len(first)


SECONDS = 1.5  # for reranking one query
# per second: a core with AVX-512, a GPU with tensor cores
CORE_FLOPS = 1.5e11
GPU_FLOPS = 1e14
CORES = 2  # of the processor, if the number is not given
DEPTHS = (1000, 500, 200, 100, 50, 20, 10)


def default_depth(
    spec: RerankerSpec, sizes: Any, device: str, cores: int = CORES
) -> int:
    """Return how many pairs of full length take about `SECONDS`: a round number from 10 to 1000.

    On two cores: MiniLM of 6 layers takes 4.4 GFLOP for a pair of 128 + 64 tokens: 100; 13.3 at 256 + 256: 20. BERT
    takes 97 at 256 + 256: 10. `sizes` is the configuration of the model, by the names of transformers.
    """
    affordable = affordable_depth(spec, sizes, device, cores)
    return next((depth for depth in DEPTHS if depth <= affordable), DEPTHS[-1])


def affordable_depth(spec: RerankerSpec, sizes: Any, device: str, cores: int) -> float:
    """Return how many pairs of full length take `SECONDS` on a device, on `cores` if it is cpu."""
    flops = SECONDS * (cores * CORE_FLOPS if device == "cpu" else GPU_FLOPS)
    return flops / pair_flops(spec.tokens, sizes)


def pair_flops(tokens: int, sizes: Any) -> float:
    """Return the floating-point operations of one pair of full length, T tokens, in a BERT of L layers.

    L * (2T * (4h² + 2hf) + 4T²h): four projections and the feed-forward part, two operations per weight and token;
    then attention, which multiplies T × h by h × T, and T × T by T × h.
    """
    h = sizes.hidden_size
    f = getattr(sizes, "intermediate_size", 4 * h)
    per_layer = 2 * tokens * (4 * h * h + 2 * h * f) + 4 * tokens * tokens * h
    return sizes.num_hidden_layers * per_layer
