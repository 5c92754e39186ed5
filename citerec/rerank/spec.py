"""How a cross-encoder reads a pair, and its calibration; both are stated in the model's folder."""

from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.errors import ConfigError, ModelError
from citerec.settings import settings_from

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
        content: Any = orjson.loads(path.read_bytes())
        content = {"weight": 1.0, "depth": 0} | content  # which earlier versions do not write
        return settings_from(RerankerSpec, {f.name: content[f.name] for f in fields(RerankerSpec)})
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be parsed ({error!r}); is it complete?") from error


def write_reranker_spec(folder: Path, spec: RerankerSpec) -> None:
    """Write into a model folder how its cross-encoder reads, and its calibration."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / NAME).write_bytes(orjson.dumps(asdict(spec), option=options))
