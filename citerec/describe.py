"""Describes the pipeline in use to a user: its rerankers, and each setting with its origin."""

from citerec.config import RecommendConfig, RerankConfig
from citerec.folder import IndexFolder
from citerec.rank.ltr import LtrModel, reads_probability
from citerec.rerank.reranker import OpenReranker
from citerec.tuned import fusion_in_use, rerank_weight_in_use


def describe_cascade(cascade: OpenReranker, ranker: LtrModel | None) -> str:
    """Describe a reranker and its settings in one line.

    Args:
        cascade: The reranker.
        ranker: The learning-to-rank model; None for none.
    """
    interpolates = ranker and not reads_probability(ranker, cascade)
    return f"{cascade}, against {ranker}" if interpolates else str(cascade)


def describe_settings(
    index: IndexFolder,
    config: RecommendConfig,
    cascade: OpenReranker | None,
    ranker: LtrModel | None,
    *,
    fuses: bool,
) -> tuple[str, ...]:
    """Describe the settings of the stages and the origin of each (tuned, default or option), one per line.

    Args:
        index: The index.
        config: The settings that were given.
        cascade: The reranker; None for none.
        ranker: The learning-to-rank model; None for none.
        fuses: Whether several retrievers are fused.
    """
    lines = [f"fusion: {fusion_in_use(index, config)}"] if fuses else []
    if cascade and ranker and reads_probability(ranker, cascade):
        lines.append(f"rerank weight: none, the probability is a feature of {ranker}")
    elif cascade:
        last, requested = cascade, config.reranker
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
