"""The settings of the pipeline for one request: those that the server was started with, and its own options."""

from dataclasses import dataclass, replace
from typing import Literal

from citerec.config import (
    Bm25Config,
    CrossEncoderConfig,
    DenseConfig,
    FuseMethod,
    RecommendConfig,
    RerankConfig,
)
from citerec.encode.config import Backend
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rerank.opening import AUTO, auto_reranker, resolved
from citerec.serve.schema import Options

NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How the models run; a request cannot change it."""

    config: RecommendConfig = RecommendConfig(few_queries=True)  # of requests without options
    rerankers: tuple[str, ...] = ()  # what requests may name, besides auto and none
    device: str = "auto"
    precision: str = "auto"
    backend: str = Backend.TORCH
    threads: int = 0


def config_of(options: Options, index: IndexFolder, models: ModelSettings) -> RecommendConfig:
    """Return the settings of the pipeline for a request, with `k` as the server has it.

    Raises:
        ConfigError: If the options contradict each other, or name a model that the server does not offer.
    """
    start = models.config
    bm25 = replace(
        start.bm25,
        k1=float(options.k1),
        b=float(options.b),
        form=options.query_form,
        stop_words=options.stop_words,
    )
    return replace(
        start,
        bm25=bm25,
        encoder=options.encoder if start.encoder == AUTO else start.encoder,
        retrievers=tuple(options.retriever) or start.retrievers,
        fuse=start.fuse if options.fusion == AUTO else FuseMethod(options.fusion),
        reranker=_reranking(options, index, models),
        ranker=options.ranker if options.ranker == NONE else start.ranker,
        popularity=start.popularity and not options.no_popularity,
        authors=start.authors and not options.no_authors,
        diversity=float(options.diversity),
    )


def _reranking(
    options: Options, index: IndexFolder, models: ModelSettings
) -> RerankConfig | Literal["auto", "none"]:
    names = [options.reranker] if isinstance(options.reranker, str) else options.reranker
    given = {
        name: getattr(options, name)
        for name in ("rerank_depth", "query_tokens", "candidate_tokens", "early_stop")
        if getattr(options, name)
    }
    if options.rerank_weight is not None:
        given["rerank_weight"] = options.rerank_weight
    if names is None and not given:
        return models.config.reranker
    if names is not None and NONE in names:
        if len(names) > 1 or given:
            raise ConfigError("reranker none excludes any other reranker and its options")
        return "none"
    names = names or [*(models.rerankers[:1] or [AUTO])]
    if unknown := [name for name in names if name not in (AUTO, *models.rerankers)]:
        offered = ", ".join([AUTO, NONE, *models.rerankers])
        raise ConfigError(f"no reranker {unknown[0][:60]!r}; this server offers: {offered}")
    config = RerankConfig(
        cross_encoders=_cross_encoders(names, options),
        weight=None if options.rerank_weight is None else float(options.rerank_weight),
        early_stop=options.early_stop,
        device=models.device,
        precision=models.precision,
        backend=models.backend,
        threads=models.threads,
    )
    found = resolved(config, index)
    if found is None and given:
        raise ConfigError("there is no reranker, so its options have no effect; leave them out")
    return found or "none"


def default_reranking(
    index: IndexFolder, models: ModelSettings
) -> RerankConfig | Literal["auto", "none"]:
    """Return the reranking that `auto` means on an index, run as the server runs models."""
    if models.config.reranker != AUTO:
        return models.config.reranker
    model = auto_reranker(index)
    if model is None:
        return "none"
    return RerankConfig(
        cross_encoders=(CrossEncoderConfig(model=model),),
        device=models.device,
        precision=models.precision,
        backend=models.backend,
        threads=models.threads,
    )


def _cross_encoders(names: list[str], options: Options) -> tuple[CrossEncoderConfig, ...]:
    depths = options.rerank_depth or [0] * len(names)
    if len(depths) != len(names):
        raise ConfigError(
            f"{len(depths)} rerank_depth for {len(names)} reranker; give one for each"
        )
    query = _each("query_tokens", options.query_tokens, len(names))
    candidate = _each("candidate_tokens", options.candidate_tokens, len(names))
    return tuple(
        CrossEncoderConfig(model=model, depth=depth, query_tokens=q, candidate_tokens=c)
        for model, depth, q, c in zip(names, depths, query, candidate, strict=True)
    )


def _each(name: str, values: list[int], number: int) -> list[int]:
    if len(values) <= 1:
        return [values[0] if values else 0] * number
    if len(values) != number:
        raise ConfigError(f"{len(values)} {name} for {number} reranker; give one, or one for each")
    return values


def model_settings(
    rerankers: list[str],
    *,
    ranker: str = AUTO,
    device: str = AUTO,
    precision: str = AUTO,
    backend: str = Backend.TORCH,
    threads: int = 0,
) -> ModelSettings:
    """Return how models run, from the options of `citerec serve`.

    Args:
        rerankers: auto, none, or models; the first one is the default.
        ranker: auto, none, or a folder.
        device: The device of rerankers.
        precision: The data type of their computations.
        backend: Their library; auto is torch, so that scores are those of `citerec recommend`.
        threads: Threads; 0 for one per processor.
    """
    backend = Backend.TORCH if backend == AUTO else backend
    first = rerankers[0]
    reranking: RerankConfig | Literal["auto", "none"] = "none" if first == NONE else "auto"
    if first not in (AUTO, NONE):
        reranking = RerankConfig(
            cross_encoders=(CrossEncoderConfig(model=first),),
            device=device,
            precision=precision,
            backend=backend,
            threads=threads,
        )
    config = RecommendConfig(
        few_queries=True,
        bm25=Bm25Config(threads=threads),
        dense=DenseConfig(threads=threads),
        reranker=reranking,
        ranker=ranker,
    )
    return ModelSettings(
        config=config,
        rerankers=tuple(name for name in rerankers if name not in (AUTO, NONE)),
        device=device,
        precision=precision,
        backend=backend,
        threads=threads,
    )
