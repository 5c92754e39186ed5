"""Messages of `citerec recommend`: the loading status, and warnings about unreadable drafts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from citerec.cli.console import ConsoleOutput
from citerec.config import RecommendConfig, RerankConfig
from citerec.types import Query, QueryKind

if TYPE_CHECKING:
    from citerec.folder import IndexFolder
    from citerec.recommend import BatchRecommender


def loaded(folder: "IndexFolder", config: RecommendConfig) -> str:
    """Return the components that are loaded before the first search, for the status line."""
    from citerec.rerank.choose import shown_reranker

    parts = [f"the index {folder.manifest.name}"]
    if config.encoder != "none" and folder.is_embedded:
        parts.append(f"the encoder {folder.manifest.settings['encoder']['name']}")
    if isinstance(config.reranker, RerankConfig):
        parts.append(f"the reranker {shown_reranker(config.reranker.model, folder)}")
    if config.ranker != "none":
        parts.append("the learning-to-rank model")
    return " · ".join(parts)


def warn_unreadable(
    queries: Sequence[Query], recommender: "BatchRecommender", console: ConsoleOutput
) -> None:
    """Warn, in one line, of queries whose script or language neither the encoder nor the corpus covers."""
    from citerec.retrieve.hybrid import UNREADABLE

    read = [query for query in queries if query.kind is not QueryKind.REFERENCES]
    shares = [(query, recommender.unreadable(query)) for query in read]
    bad = [(query, share) for query, share in shares if share >= UNREADABLE]
    if not bad:
        return
    encoder = f"the encoder {recommender.encoder}" if recommender.encoder else "this index"
    who = "this draft"
    if len(queries) > 1:
        who = f"{len(bad):,} of {len(queries):,} drafts (the first: {bad[0][0].id})"
    console.warn(
        f"most words of {who} are in a script or language that neither {encoder} nor the papers cover "
        f"({bad[0][1]:.0%} of the letters); the recommendations are unreliable"
    )
