"""The first stages of an index, opened together, and what they find put into one list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from citerec.config import FuseConfig, RecommendConfig
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.fuse import fuse, stage_hits
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.coverage import Tokens, unreadable
from citerec.text import contents
from citerec.tuned import read_tuned
from citerec.types import (
    Eligible,
    Hits,
    Log,
    Paper,
    Query,
    Recommendation,
    Retriever,
    StageHit,
)

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.retrieve.dense import DenseRetriever


@dataclass(frozen=True, slots=True)
class Candidates:
    """What was found for one query."""

    hits: Hits  # the list
    stages: Mapping[str, Hits]  # what each stage found, by its name
    # Calibrated, of papers of `hits`; None if unknown.
    probabilities: Hits | None = field(default=None, kw_only=True)


class HybridRetriever:
    """BM25, and dense retrieval where the index has vectors."""

    def __init__(
        self,
        index: IndexFolder,
        config: RecommendConfig,
        log: Log | None = None,
    ) -> None:
        """Open the stages.

        Args:
            index: What is searched.
            config: How.
            log: Receives what is fetched from the hub, before.

        Raises:
            ConfigError: If an encoder is named and the index has no vectors.
            EncoderMismatchError: If the index was embedded by another encoder.
            ModelError: If the encoder is not there.
            IndexDamagedError: If a part of the index is not what was written.
        """
        self._id_rank = index.id_rank
        self.bm25 = Bm25Retriever(index, config.bm25)
        self.dense: DenseRetriever | None = None
        self.encoder = ""  # whose vectors
        self._tokens: Tokens | None = None
        self.fuse = FuseConfig()
        if encoder := _encoder(index, config, log):
            self.dense = _dense(index, encoder, config)
            self.encoder = encoder.fingerprint.name
            parts = getattr(encoder, "parts", None)  # of a transformer; word vectors have no pieces
            self._tokens = parts.tokens if parts else None
            self.fuse = config.fuse_with(read_tuned(index))

    @property
    def names(self) -> tuple[str, ...]:
        """The stages, in the order that they are told in."""
        return tuple(stage.name for stage in self._stages)

    def unreadable(self, query: Query) -> float:
        """Return the share of a query's letters in words that no stage can make sense of, in [0, 1].

        Those that the encoder spells letter by letter, unless the paper that BM25 likes best holds one of them.
        """
        found = unreadable(contents(query), self._tokens)
        if not found.words:
            return 0.0
        [hits] = self.bm25.retrieve([query], [Eligible()], 1)
        [matched] = self.bm25.matches(query, hits.rows.tolist(), most=1000) or [[]]
        known = {word.lower() for word in matched}
        return 0.0 if any(word.lower() in known for word in found.words) else found.share

    def find(
        self, queries: Sequence[Query], eligible: Sequence[Eligible], k: int
    ) -> list[Candidates]:
        """Return the `k` best eligible papers of each query, and where each stage put them."""
        stages = self._stages
        depth = k if len(stages) == 1 else max(k, self.fuse.depth)
        found = {stage.name: stage.retrieve(queries, eligible, depth) for stage in stages}
        each = [{name: hits[i] for name, hits in found.items()} for i in range(len(queries))]
        return [Candidates(self._fused(mine, k), mine) for mine in each]

    @property
    def _stages(self) -> list[Retriever]:
        return [self.bm25] if self.dense is None else [self.bm25, self.dense]

    def _fused(self, found: Mapping[str, Hits], k: int) -> Hits:
        if len(found) == 1:
            return next(iter(found.values()))
        deep = replace(self.fuse, depth=max(k, self.fuse.depth))
        return fuse(found, self._id_rank, deep, k=k)


def ranked(found: Candidates, papers: Mapping[int, Paper]) -> tuple[Recommendation, ...]:
    """Return candidates as recommendations, in their order; `papers` are theirs, by row."""
    rows = found.hits.rows
    put = {name: stage_hits(hits, rows) for name, hits in found.stages.items()}
    placed = {
        name: list(zip(ranks.tolist(), scores.tolist(), strict=True))
        for name, (ranks, scores) in put.items()
    }
    likely: list[float | None] = [None] * len(rows)
    if found.probabilities:
        ranks, values = stage_hits(found.probabilities, rows)
        pairs = zip(ranks.tolist(), values.tolist(), strict=True)
        likely = [value if rank else None for rank, value in pairs]
    scored = zip(rows.tolist(), found.hits.scores.tolist(), likely, strict=True)
    return tuple(
        Recommendation(
            rank=rank,
            paper=papers[row],
            score=score,
            probability=probability,
            stages={
                name: StageHit(*places[rank - 1])
                for name, places in placed.items()
                if places[rank - 1][0]  # 0 where the stage did not find it
            },
        )
        for rank, (row, score, probability) in enumerate(scored, start=1)
    )


def _dense(index: IndexFolder, encoder: "Encoder", config: RecommendConfig) -> "DenseRetriever":
    from citerec.retrieve.dense import DenseRetriever  # BM25 alone starts sooner without

    return DenseRetriever(index, encoder, config.dense)


def _encoder(index: IndexFolder, config: RecommendConfig, log: Log | None) -> "Encoder | None":
    if config.encoder == "none" or (config.encoder == "auto" and not index.is_embedded):
        return None
    if not index.is_embedded:
        raise ConfigError(
            f"{index.path} has no vectors; embed its papers: "
            f"citerec encode --index {index.path} --encoder {config.encoder}"
        )
    from citerec.encode.config import EncodeConfig
    from citerec.encode.encoder import open_encoder, reopen
    from citerec.encode.spec import Fingerprint

    how = EncodeConfig(threads=config.dense.threads, few_texts=config.few_queries)
    if config.encoder != "auto":
        return open_encoder(config.encoder, how, base=index.path, log=log)
    recorded = Fingerprint.from_json(index.manifest.settings["encoder"])
    return reopen(recorded, index.path, how, log=log)
