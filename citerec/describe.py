"""Describes the pipeline in use to a user: its rerankers, and each setting with its origin."""

from citerec.config import RecommendConfig, RerankConfig
from citerec.folder import IndexFolder
from citerec.rank.ltr import LtrModel, reads_probability
from citerec.rerank.cascade import Cascade
from citerec.tuned import fusion_in_use, rerank_weight_in_use


def describe_cascade(cascade: Cascade, ranker: LtrModel | None) -> str:
    """Describe rerankers and their settings in one line.

    Args:
        cascade: The rerankers.
        ranker: The learning-to-rank model; None for none.
    """
    interpolates = ranker and not reads_probability(ranker, cascade)
    return f"{cascade}, against {ranker}" if interpolates else str(cascade)


def describe_settings(
    index: IndexFolder,
    config: RecommendConfig,
    cascade: Cascade | None,
    ranker: LtrModel | None,
    *,
    fuses: bool,
) -> tuple[str, ...]:
    """Describe the settings of the stages and the origin of each (tuned, default or option), one per line.

    Args:
        index: The index.
        config: The settings that were given.
        cascade: The rerankers; None for none.
        ranker: The learning-to-rank model; None for none.
        fuses: Whether several retrievers are fused.
    """
    lines = [f"fusion: {fusion_in_use(index, config)}"] if fuses else []
    if cascade and ranker and reads_probability(ranker, cascade):
        lines.append(f"rerank weight: none, the probability is a feature of {ranker}")
    elif cascade:
        last, requested = cascade.rerankers[-1], config.reranker
        weight = rerank_weight_in_use(
            index,
            last.weight,
            str(last.settings["weights"]),
            is_option=isinstance(requested, RerankConfig) and requested.weight is not None,
            has_ranker=ranker is not None,
        )
        lines.append(f"rerank weight: {weight}")
    origin = "default" if config.ranker == "auto" else "option"
    return (*lines, f"ranker: {ranker or 'none'} ({origin})")
