"""How a cross-encoder reads and what its score means: a model folder says it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.errors import ConfigError, ModelError

NAME = "citerec_reranker.json"
LEAST, MOST = 8, 448  # tokens of one side, special tokens within


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSpec:
    """How a cross-encoder reads a pair, and how its score becomes a probability. The defaults are the paper's.

    The room that one side leaves is not given to the other. The probability that the query cites the candidate is
    sigmoid(scale * score + offset); Platt, Advances in Large Margin Classifiers, 1999.
    """

    query_tokens: int = 256  # [CLS] and the first [SEP] within
    candidate_tokens: int = 256  # the last [SEP] within
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("query_tokens", "candidate_tokens"):
            if not LEAST <= getattr(self, name) <= MOST:
                raise ConfigError(
                    f"{name} must be from {LEAST} to {MOST}, got {getattr(self, name)}"
                )
        if not (isfinite(self.scale) and isfinite(self.offset) and self.scale > 0):
            raise ConfigError(
                f"a calibration needs a scale above 0 and a finite offset, got {self.scale} and {self.offset}"
            )

    @property
    def tokens(self) -> int:
        """The most tokens of a pair."""
        return self.query_tokens + self.candidate_tokens

    @property
    def is_calibrated(self) -> bool:
        """Whether a training fitted the calibration: a model of others has none, and its sigmoid means nothing."""
        return (self.scale, self.offset) != (1.0, 0.0)

    def with_tokens(self, query: int = 0, candidate: int = 0) -> Self:
        """Return the same with other limits; 0 keeps a limit.

        Raises:
            ConfigError: If a limit cannot be.
        """
        return replace(
            self,
            query_tokens=query or self.query_tokens,
            candidate_tokens=candidate or self.candidate_tokens,
        )


def read_reranker_spec(folder: Path) -> RerankerSpec:
    """Read how the cross-encoder in a model folder reads; 256 + 256 tokens where the folder does not say.

    Raises:
        ModelError: If what the folder says cannot be made out.
    """
    path = folder / NAME
    if not path.is_file():
        return RerankerSpec()
    try:
        return _parse(orjson.loads(path.read_bytes()))
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: cannot be made out ({error!r}); is it whole?") from error


def write_reranker_spec(folder: Path, spec: RerankerSpec) -> None:
    """Say in a model folder how its cross-encoder reads."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / NAME).write_bytes(orjson.dumps(asdict(spec), option=options))


def _parse(content: Mapping[str, Any]) -> RerankerSpec:
    return RerankerSpec(
        query_tokens=int(content["query_tokens"]),
        candidate_tokens=int(content["candidate_tokens"]),
        scale=float(content["scale"]),
        offset=float(content["offset"]),
    )
