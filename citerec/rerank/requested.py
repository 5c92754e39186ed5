"""The models of a request for reranking, from values that name them one by one."""

from collections.abc import Mapping, Sequence

from citerec.config import CrossEncoderConfig
from citerec.errors import ConfigError

NONE = "none"


def first_given(options: Mapping[str, object]) -> str | None:
    """Return the name of the first option with a value; None if none has one."""
    return next((name for name, value in options.items() if value), None)


def is_none(models: Sequence[str], given: str | None) -> bool:
    """Whether models mean no reranker.

    Args:
        models: What `--reranker` names.
        given: An option that needs a reranker; None if there is none.

    Raises:
        ConfigError: If `none` is one of several models, or is given with such an option.
    """
    if NONE not in models:
        return False
    if len(models) > 1:
        raise ConfigError("--reranker none excludes any other --reranker")
    if given:
        raise ConfigError(f"{given} has no effect with --reranker none")
    return True


def cross_encoders(
    models: Sequence[str],
    depths: Sequence[int] | None = None,
    query_tokens: Sequence[int] | None = None,
    candidate_tokens: Sequence[int] | None = None,
) -> tuple[CrossEncoderConfig, ...]:
    """Return the settings of each model, cheapest first.

    Args:
        models: The models.
        depths: One for each; by default what suits the model.
        query_tokens: One for all, or one for each; likewise.
        candidate_tokens: Likewise.

    Raises:
        ConfigError: If a number of values does not fit.
    """
    number = len(models)
    depths = depths or [0] * number
    if len(depths) != number:
        raise ConfigError(
            f"{len(depths)} --rerank-depth for {number} --reranker; give one for each"
        )
    query = _each("--query-tokens", query_tokens, number)
    candidate = _each("--candidate-tokens", candidate_tokens, number)
    return tuple(
        CrossEncoderConfig(model=model, depth=depth, query_tokens=q, candidate_tokens=c)
        for model, depth, q, c in zip(models, depths, query, candidate, strict=True)
    )


def _each(option: str, values: Sequence[int] | None, number: int) -> Sequence[int]:
    """Repeat one value for all rerankers, or return one value for each."""
    if not values or len(values) == 1:
        return [values[0] if values else 0] * number
    if len(values) != number:
        raise ConfigError(
            f"{len(values)} {option} for {number} --reranker; give one, or one for each"
        )
    return values
