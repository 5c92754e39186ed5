"""Shares the positions of a cross-encoder between query and candidate."""

from citerec.errors import ConfigError
from citerec.rerank.spec import RerankerSpec

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
