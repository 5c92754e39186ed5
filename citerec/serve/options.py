"""The settings of the pipeline for one request: those that the server was started with, and its own options."""

from dataclasses import dataclass
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
from citerec.rank.ltr import suits_default_reranker
from citerec.rerank.auto import AUTO, resolved
from citerec.rerank.requested import NONE, cross_encoders, first_given, is_none
from citerec.serve.schema import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How the models run; a request cannot change it."""

    # of requests without options; `default` is the reranker
    config: RecommendConfig = RecommendConfig(few_queries=True)
    # Of requests that name no reranker; empty: what suits the ranker, as without the option of `citerec recommend`.
    default: tuple[str, ...] = ()
    rerankers: tuple[str, ...] = ()  # what requests may name, besides auto and none
    device: str = "auto"
    precision: str = "auto"
    backend: str = Backend.AUTO
    threads: int = 0

    def running(
        self,
        encoders: tuple[CrossEncoderConfig, ...],
        weight: float | None = None,
        *,
        early_stop: bool = False,
    ) -> RerankConfig:
        """Return the settings of cross-encoders that run as this server runs models."""
        return RerankConfig(
            cross_encoders=encoders,
            weight=weight,
            early_stop=early_stop,
            device=self.device,
            precision=self.precision,
            backend=self.backend,
            threads=self.threads,
        )


def config_of(options: Options, index: IndexFolder, models: ModelSettings) -> RecommendConfig:
    """Return the settings of the pipeline for a request, with `k` as the server has it.

    Raises:
        ConfigError: If the options contradict each other, or name a model that the server does not offer.
    """
    start = models.config
    bm25 = start.bm25.replace(
        k1=float(options.k1),
        b=float(options.b),
        form=options.query_form,
        stop_words=options.stop_words,
    )
    return start.replace(
        bm25=bm25,
        encoder=options.encoder if start.encoder == AUTO else start.encoder,
        retrievers=tuple(options.retriever) or start.retrievers,
        fuse=start.fuse if options.fusion == AUTO else FuseMethod(options.fusion),
        reranker=_reranking(options, index, models),
        ranker=options.ranker if "ranker" in options.model_fields_set else start.ranker,
        popularity=start.popularity and not options.no_popularity,
        authors=start.authors and not options.no_authors,
        diversity=float(options.diversity),
    )


def _reranking(
    options: Options, index: IndexFolder, models: ModelSettings
) -> RerankConfig | Literal["auto", "none"]:
    names = [options.reranker] if isinstance(options.reranker, str) else options.reranker
    given = first_given(
        {
            "--rerank-depth": options.rerank_depth,
            "--query-tokens": options.query_tokens,
            "--candidate-tokens": options.candidate_tokens,
            "--rerank-weight": options.rerank_weight is not None,
            "--early-stop": options.early_stop,
        }
    )
    if names is None and not given:
        ranker = options.ranker if "ranker" in options.model_fields_set else models.config.ranker
        return default_reranking(index, models, ranker)
    names = names or models.default or (AUTO,)
    if is_none(names, given):
        return "none"
    if unknown := [name for name in names if name not in (AUTO, *models.rerankers)]:
        offered = ", ".join([AUTO, NONE, *models.rerankers])
        raise ConfigError(f"no reranker {unknown[0][:60]!r}; this server offers: {offered}")
    config = models.running(
        cross_encoders(names, options.rerank_depth, options.query_tokens, options.candidate_tokens),
        weight=None if options.rerank_weight is None else float(options.rerank_weight),
        early_stop=options.early_stop,
    )
    found = resolved(config, index)
    if found is None and given:
        raise ConfigError(f"{given} has no effect: there is no reranker; leave it out")
    return found or "none"


def default_reranking(
    index: IndexFolder, models: ModelSettings, ranker: str
) -> RerankConfig | Literal["auto", "none"]:
    """Return the reranking of requests that name no reranker; what `auto` means on the index is found.

    Args:
        index: The index.
        models: The models of the server.
        ranker: The learning-to-rank model of the request, by name.
    """
    if is_none(models.default, None):
        return "none"
    config = models.running(cross_encoders(models.default or (AUTO,)))
    is_wanted = bool(models.default) or suits_default_reranker(ranker, index)
    return resolved(config, index, default=is_wanted) or "none"


def model_settings(
    rerankers: list[str],
    *,
    ranker: str = AUTO,
    device: str = AUTO,
    precision: str = AUTO,
    backend: str = Backend.AUTO,
    threads: int = 0,
) -> ModelSettings:
    """Return how models run, from the options of `citerec serve`.

    Args:
        rerankers: auto, none, or models; the first one is the default. Empty: what suits the ranker.
        ranker: auto, none, or a folder.
        device: The device of rerankers.
        precision: The data type of their computations.
        backend: Their library; auto is NumPy or torch, as in `citerec recommend`, so that scores are the same.
        threads: Threads; 0 for one per processor.
    """
    config = RecommendConfig(
        few_queries=True,
        bm25=Bm25Config(threads=threads),
        dense=DenseConfig(threads=threads),
        ranker=ranker,
    )
    return ModelSettings(
        config=config,
        default=tuple(rerankers[:1]),
        rerankers=tuple(name for name in rerankers if name not in (AUTO, NONE)),
        device=device,
        precision=precision,
        backend=backend,
        threads=threads,
    )
