"""Hybrid retrieval: the hits of several retrievers for a query are fused into one candidate set."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from citerec import plugins
from citerec.config import FuseConfig, FuseMethod, RecommendConfig
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.fuse import fuse
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.coverage import Tokenize
from citerec.retrieve.parts import check_embedded
from citerec.retrieve.retriever import Retriever
from citerec.retrieve.sentences import LexicalScores, scores_by_sentence
from citerec.tuned import tuned_fusion
from citerec.types import CandidateSet, Eligibility, Hits, Log, Query

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.retrieve.dense import DenseRetriever, QueryEncoder


class HybridRetriever:
    """Searches by several retrievers and fuses their hits."""

    def __init__(
        self,
        index: IndexFolder,
        retrievers: Sequence[Retriever],
        config: FuseConfig | None = None,
        *,
        bm25: Bm25Retriever | None = None,
        dense: "DenseRetriever | None" = None,
        encoder: "QueryEncoder | None" = None,
        sentences_ahead: bool = False,
    ) -> None:
        """Prepare.

        Args:
            index: The index that is searched.
            retrievers: At least one, each with a name of its own.
            config: How hits are fused; reciprocal rank fusion by default.
            bm25: The retriever by BM25 where `retrievers` holds a wrapper of it.
            dense: The dense retriever, if any; `retrievers` may hold a wrapper of it.
            encoder: The encoder of these vectors.
            sentences_ahead: Whether the sentences of a single query are encoded while it is searched; for a ranking
                that reads their vectors.

        Raises:
            ConfigError: If there is no retriever, two have the same name, or the weighted fusion has no weight for one.
        """
        self.retrievers = tuple(retrievers)
        self.config = config or FuseConfig()
        self.dense = dense
        self.bm25 = bm25 or next(
            (retriever for retriever in retrievers if isinstance(retriever, Bm25Retriever)), None
        )
        scoring = (retriever for retriever in retrievers if isinstance(retriever, LexicalScores))
        self._lexical: LexicalScores | None = self.bm25 or next(scoring, None)
        self.encoder = encoder.fingerprint.name if encoder else ""  # empty without vectors
        parts = getattr(encoder, "parts", None)  # only a transformer has a tokenizer
        self.tokens: Tokenize | None = parts.tokens if parts else None
        self._id_rank, self._sentences_ahead = index.id_rank, sentences_ahead
        if not self.names:
            raise ConfigError("there is no retriever; give at least one")
        if len({*self.names}) < len(self.names):
            raise ConfigError(f"retrievers need distinct names, got {', '.join(self.names)}")
        unknown = [name for name in self.names if name not in self.config.weights]
        if unknown and len(self.names) > 1 and self.config.method is FuseMethod.WEIGHTED:
            raise ConfigError(
                f"the weighted fusion has no weight for the retriever {unknown[0]!r}; fuse by rrf"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the retrievers, in the order of their hits."""
        return tuple(retriever.name for retriever in self.retrievers)

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the `k` best eligible papers of each query, with the hits of each retriever.

        Args:
            queries: One query is a batch of one.
            eligible: One rule per query.
            k: Papers per query; each retriever returns as many as the fusion reads, at least `k`.

        Raises:
            ValueError: If `k` is less than 1.
        """
        depth = k if len(self.retrievers) == 1 else max(k, self.config.depth)
        ahead = self._sentences_ahead and len(queries) == 1
        sentences = [
            scores_by_sentence(query, self._lexical, self.dense, ahead=ahead) for query in queries
        ]
        hits = {r.name: r.retrieve(queries, eligible, depth) for r in self.retrievers}
        of_query = [{name: hits[name][i] for name in self.names} for i in range(len(queries))]
        vectors = self.dense.query_vectors(queries) if self.dense else [None] * len(queries)
        return [
            CandidateSet(
                self._fused(hits_by_retriever, k),
                hits_by_retriever,
                query_vector=vector,
                sentences=of_sentences,
            )
            for hits_by_retriever, vector, of_sentences in zip(
                of_query, vectors, sentences, strict=True
            )
        ]

    def _fused(self, hits_by_retriever: dict[str, Hits], k: int) -> Hits:
        if len(hits_by_retriever) == 1:
            return next(iter(hits_by_retriever.values()))
        deep = self.config.replace(depth=max(k, self.config.depth))
        return fuse(hits_by_retriever, self._id_rank, deep, k=k)


def open_dense(
    index: IndexFolder, config: RecommendConfig, log: Log | None = None
) -> "tuple[DenseRetriever, Encoder] | None":
    """Open dense retrieval with the encoder of an index; None for BM25 alone.

    Args:
        index: The index.
        config: The name of the encoder, and the settings of the search.
        log: Receives a message before a download from the hub.

    Raises:
        CiterecError: As `encoder_of` raises.
        IndexDamagedError: If the vectors are damaged.
    """
    if (encoder := encoder_of(index, config, log)) is None:
        return None
    from citerec.retrieve.dense import DenseRetriever  # not needed for BM25 alone

    return DenseRetriever(index, encoder, config.dense), encoder


def encoder_of(
    index: IndexFolder, config: RecommendConfig, log: Log | None = None
) -> "Encoder | None":
    """Open the encoder of an index; None for BM25 alone.

    Args:
        index: The index.
        config: The name of the encoder, and how many queries there are.
        log: Receives a message before a download from the hub.

    Raises:
        ConfigError: If an encoder is named and the index has no vectors.
        EncoderMismatchError: If the index was embedded by another encoder.
        ModelError: If the encoder is missing.
    """
    if config.encoder == "none" or (config.encoder == "auto" and not index.is_embedded):
        return None
    check_embedded(index, config.encoder)
    from citerec.encode.config import EncodeConfig  # not needed for BM25 alone
    from citerec.encode.opening import open_encoder, reopen
    from citerec.encode.spec import Fingerprint

    how = EncodeConfig(threads=config.dense.threads, few_texts=config.few_queries)
    if config.encoder != "auto":
        return open_encoder(config.encoder, how, base=index.path, log=log)
    recorded = Fingerprint.from_json(index.manifest.settings["encoder"])
    return reopen(recorded, index.path, how, log=log)


def open_hybrid(
    index: IndexFolder,
    config: RecommendConfig,
    log: Log | None = None,
    *,
    retrievers: Sequence[Retriever] | None = None,
    sentences_ahead: bool = False,
) -> HybridRetriever:
    """Open BM25, dense retrieval where the index has vectors, and registered ones, fused as configured or tuned.

    Args:
        index: The index.
        config: The settings of each.
        log: Receives a message before a download from the hub.
        retrievers: The retrievers to use instead, fused as configured.
        sentences_ahead: As for `HybridRetriever`.

    Raises:
        CiterecError: As `open_dense` and `open_registered` raise, or if the Lucene part is damaged.
    """
    if retrievers is not None:
        if config.retrievers:
            raise ConfigError(
                "retrievers are given both as objects and by name; give all as objects"
            )
        dense = _dense_of(retrievers)
        encoder = dense.encoder if dense else None
        fusion = config.fuse_with(None)
        return HybridRetriever(index, retrievers, fusion, dense=dense, encoder=encoder)
    all_retrievers: list[Retriever] = [Bm25Retriever(index, config.bm25)]
    vectors, encoder = open_dense(index, config, log) or (None, None)
    all_retrievers += [vectors] if vectors else []
    all_retrievers += [open_registered(name, index) for name in config.retrievers]
    if len(all_retrievers) == 1:
        return HybridRetriever(index, all_retrievers)
    fusion = config.fuse_with(tuned_fusion(index, config))
    return HybridRetriever(
        index,
        all_retrievers,
        fusion,
        dense=vectors,
        encoder=encoder,
        sentences_ahead=sentences_ahead,
    )


def _dense_of(retrievers: Sequence[Retriever]) -> "DenseRetriever | None":
    from citerec.retrieve.dense import DenseRetriever  # not needed for BM25 alone

    return next((one for one in retrievers if isinstance(one, DenseRetriever)), None)


def open_registered(name: str, index: IndexFolder) -> Retriever:
    """Open a retriever that another package registers as an entry point of the group `citerec.retrievers`.

    Args:
        name: The name of the entry point.
        index: The index that is searched.

    Raises:
        ConfigError: If there is none of this name, or its package cannot be imported.
    """
    if name not in (names := plugins.names(plugins.RETRIEVERS)):
        there = f"there are: {', '.join(names)}" if names else "no installed package adds one"
        raise ConfigError(f"no retriever {name!r}; {there}")
    return plugins.load(plugins.RETRIEVERS, name)(index)
