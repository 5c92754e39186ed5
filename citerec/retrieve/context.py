"""Retrieval for a sentence of a draft: the sentence and the draft are searched, and their candidates are fused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from citerec.config import RRF_K0
from citerec.errors import ConfigError
from citerec.fuse import Rank, rrf, weighted_sum
from citerec.retrieve.hybrid import HybridRetriever
from citerec.types import CandidateSet, Eligibility, Hits, Query, QueryVector


class Source(StrEnum):
    """The search whose ranks and scores a learning-to-rank model reads."""

    SENTENCE = "sentence"
    DRAFT = "draft"
    BOTH = "both"  # both searches of each retriever, fused by their scores


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """How the search for a sentence and the search for its draft are fused; tuned on sentences of dev papers."""

    weight: float = 0.6  # of the sentence, in [0, 1]; the draft has the rest
    k0: int = RRF_K0  # damping of the ranks
    features: Source = Source.BOTH

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"the weight of the sentence must lie in [0, 1], got {self.weight}")


def sentence_of(query: Query) -> Query:
    """Return the query for the sentence of a draft alone; the query itself if it has no context."""
    return replace(query, title=query.context, abstract="") if query.context else query


class ContextRetriever:
    """A first stage that also searches the sentence of each query that has one."""

    def __init__(
        self, retriever: HybridRetriever, id_rank: Rank, config: ContextConfig | None = None
    ) -> None:
        """Prepare; `retriever` searches drafts and sentences, `id_rank` breaks ties."""
        self._retriever, self._id_rank = retriever, id_rank
        self.config = config or ContextConfig()

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the `k` best eligible papers of each query, with the hits of each retriever as configured."""
        places = [i for i, query in enumerate(queries) if query.context]
        together = [*queries, *(sentence_of(queries[i]) for i in places)]
        rules = [*eligible, *(eligible[i] for i in places)]
        candidates = self._retriever.candidates(together, rules, k)
        for i, of_sentence in zip(places, candidates[len(queries) :], strict=True):
            candidates[i] = self.fused(candidates[i], of_sentence, k)
        return candidates[: len(queries)]

    def fused(self, draft: CandidateSet, sentence: CandidateSet, k: int) -> CandidateSet:
        """Return the `k` best candidates of both searches."""
        weights = [1 - self.config.weight, self.config.weight]
        both = [draft.hits, sentence.hits]
        hits = rrf(both, self._id_rank, k0=self.config.k0, weights=weights, k=k)
        return CandidateSet(
            hits,
            self._sources(draft.hits_by_source, sentence.hits_by_source),
            query_vector=read_vector(draft.query_vector, sentence.query_vector, self.config),
            sentences=draft.sentences
            if self.config.features is Source.DRAFT
            else sentence.sentences,
        )

    def _sources(
        self, draft: Mapping[str, Hits], sentence: Mapping[str, Hits]
    ) -> Mapping[str, Hits]:
        """Return the hits that a learning-to-rank model reads, by retriever."""
        weight, features = self.config.weight, self.config.features
        if features is not Source.BOTH:
            return draft if features is Source.DRAFT else sentence
        return {
            name: weighted_sum([draft[name], sentence[name]], [1 - weight, weight], self._id_rank)
            for name in draft
        }


def read_vector(
    draft: QueryVector | None, sentence: QueryVector | None, config: ContextConfig
) -> QueryVector | None:
    """Return the query vector that a learning-to-rank model reads; None without vectors."""
    if draft is None or sentence is None or config.features is Source.DRAFT:
        return draft
    if config.features is Source.SENTENCE:
        return sentence
    mean = (1 - config.weight) * draft.values + config.weight * sentence.values
    return replace(draft, values=mean)
