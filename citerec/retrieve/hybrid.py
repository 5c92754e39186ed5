"""Hybrid retrieval: the hits of several retrievers for a query are fused into one candidate set.

For a sentence of a draft both the sentence and the draft are searched, and their candidates are fused.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from citerec.config import (
    RANKING_DEPTH,
    RRF_K0,
    FuseConfig,
    FuseMethod,
    RecommendConfig,
)
from citerec.errors import ConfigError, shown
from citerec.index.folder import IndexFolder
from citerec.plugins import Plugins
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.body import BodyHits, search_bodies
from citerec.retrieve.dense import DenseRetriever, LexicalScores, scores_by_sentence
from citerec.retrieve.fuse import fuse, rrf, weighted_sum
from citerec.stages import Retriever, check_stages, checked_hits
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Log,
    Query,
    QueryVector,
    SentenceScores,
    no_log,
)

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder


# Of sentences of dev papers: the search for the sentence has this weight in [0, 1], that for its draft the rest.
SENTENCE_WEIGHT = 0.6


class HybridRetriever:
    """The default `FirstStage`: searches by several retrievers and fuses their hits."""

    def __init__(
        self,
        index: IndexFolder,
        retrievers: Sequence[Retriever],
        config: FuseConfig | None = None,
    ) -> None:
        """Prepare; a retriever that wraps another has it as `retriever`.

        ConfigError if one is no retriever, two have the same name, or the weighted fusion has no weight for one.
        """
        check_stages(retrievers, "retrieve")
        for retriever in retrievers:
            if not isinstance(getattr(retriever, "name", None), str):
                raise ConfigError(
                    f"the retriever {shown(retriever)} has no name, a text"
                )
        self.retrievers = tuple(retrievers)
        self.config = config or FuseConfig()
        self._index = index
        self._id_rank = index.id_rank
        searched = [
            getattr(retriever, "retriever", retriever) for retriever in retrievers
        ]
        self.bm25 = next(
            (
                retriever
                for retriever in searched
                if isinstance(retriever, Bm25Retriever)
            ),
            None,
        )
        self.dense = next(
            (
                retriever
                for retriever in searched
                if isinstance(retriever, DenseRetriever)
            ),
            None,
        )
        lexical = (
            retriever for retriever in searched if isinstance(retriever, LexicalScores)
        )
        self._lexical: LexicalScores | None = self.bm25 or next(lexical, None)
        if len({*self.names}) < len(self.names):
            raise ConfigError(
                f"retrievers need distinct names, got {', '.join(self.names)}"
            )
        unknown = [name for name in self.names if name not in self.config.weights]
        if (
            unknown
            and len(self.names) > 1
            and self.config.method is FuseMethod.WEIGHTED
        ):
            raise ConfigError(
                f"the weighted fusion has no weight for the retriever {unknown[0]!r}; fuse by rrf"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the retrievers, in the order of their hits."""
        return tuple(retriever.name for retriever in self.retrievers)

    @property
    def encoder(self) -> str:
        """The name of the encoder whose vectors are searched; empty without vectors."""
        return self.dense.encoder.fingerprint.name if self.dense else ""

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the `k` best eligible papers of each query, with the hits of each retriever.

        For a sentence of a draft both are searched; a model reads the scores and vectors of both.
        """
        places = [i for i, query in enumerate(queries) if query.context]
        together = [*queries, *(sentence_alone(queries[i]) for i in places)]
        sets = self._searched(together, [*eligible, *(eligible[i] for i in places)], k)
        weights = [1 - SENTENCE_WEIGHT, SENTENCE_WEIGHT]
        for i, sentence in zip(places, sets[len(queries) :], strict=True):
            draft = sets[i]
            hits = rrf([draft.hits, sentence.hits], self._id_rank, weights=weights, k=k)
            by_source = {
                name: weighted_sum(
                    [of_draft, sentence.hits_by_source[name]], weights, self._id_rank
                )
                for name, of_draft in draft.hits_by_source.items()
            }
            vector: QueryVector | None = draft.query_vector
            if vector and sentence.query_vector:
                mean = (
                    weights[0] * vector.values
                    + weights[1] * sentence.query_vector.values
                )
                vector = replace(vector, values=mean)
            agreement = float(hits.scores[:1].sum()) * (RRF_K0 + 1)
            sets[i] = replace(
                sentence,
                hits=hits,
                hits_by_source=by_source,
                query_vector=vector,
                agreement=agreement,
            )
        return sets[: len(queries)]

    def _searched(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        depth = k if len(self.retrievers) == 1 else max(k, RANKING_DEPTH)
        sentences = scores_by_sentence(queries, self._lexical, self.dense)
        hits = dict[str, list[Hits]]()
        for retriever in self.retrievers:
            found = retriever.retrieve(queries, eligible, depth)
            if getattr(retriever, "retriever", retriever) not in (
                self.bm25,
                self.dense,
            ):
                found = checked_hits(
                    found, retriever.name, self._index, eligible, depth
                )
            hits[retriever.name] = found
        vectors: list[QueryVector | None] = [None] * len(queries)
        if dense := self.dense:  # which has encoded them already
            vectors = [
                QueryVector(vector, dense.directions)
                for vector in dense.encoded(queries)
            ]
        stages = self.bm25, self._lexical, self.dense
        bodies = dict[int, BodyHits]()
        if any(query.body for query in queries):
            bodies = search_bodies(queries, eligible, *stages, self._id_rank, depth)
        sets: list[CandidateSet] = []
        for i, (vector, of_sentences) in enumerate(
            zip(vectors, sentences, strict=True)
        ):
            by_source = {name: found[i] for name, found in hits.items()}
            if body := bodies.get(i):
                by_source |= body.hits
            first, *others = by_source.values()
            fused = (
                fuse(by_source, self._id_rank, self.config, k=k) if others else first
            )
            sets.append(
                CandidateSet(
                    fused,
                    by_source,
                    query_vector=vector,
                    sentences=of_sentences,
                    body=body.scores if body else SentenceScores(),
                )
            )
        return sets


def encoder_of(
    index: IndexFolder, config: RecommendConfig, log: Log
) -> "Encoder | None":
    """Open the encoder of an index; None for BM25 alone. A CiterecError if the named or recorded one cannot be used."""
    if config.encoder == "none" or (config.encoder == "auto" and not index.is_embedded):
        return None
    index.check_embedded(config.encoder)
    from citerec.encode.encoder import open_encoder, reopen
    from citerec.encode.spec import EncodeConfig  # not needed for BM25 alone

    how = EncodeConfig(threads=config.dense.threads, few_texts=config.few_queries)
    if config.encoder != "auto":
        return open_encoder(config.encoder, how, base=index.path, log=log)
    return reopen(index.encoder, index.path, how, log=log)


def open_hybrid(
    index: IndexFolder,
    config: RecommendConfig,
    log: Log = no_log,
    *,
    retrievers: Sequence[Retriever] | None = None,
) -> HybridRetriever:
    """Open BM25, dense retrieval where the index has vectors, and registered ones, fused as configured.

    `retrievers` are used in place of these. CiterecError if a retriever is unknown, or a part of
    the index or its encoder cannot be opened.
    """
    if retrievers is not None:
        return HybridRetriever(index, retrievers, config.fuse)
    opened: list[Retriever] = [Bm25Retriever(index, config.bm25)]
    if encoder := encoder_of(index, config, log):
        opened.append(DenseRetriever(index, encoder, config.dense))
    opened += [Plugins.RETRIEVERS.load(name)(index) for name in config.retrievers]
    return HybridRetriever(index, opened, config.fuse)


def sentence_alone(query: Query) -> Query:
    """Return the query for the sentence of a draft alone; the query itself if it has no context."""
    return replace(query, title=query.context, abstract="") if query.context else query
