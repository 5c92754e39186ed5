"""Hybrid retrieval: the hits of several retrievers for a query are fused into one candidate set.

For a sentence of a draft both the sentence and the draft are searched, and their candidates are fused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from citerec import plugins
from citerec.config import RRF_K0, FuseConfig, FuseMethod, RecommendConfig
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.fuse import Rank, fuse, rrf, weighted_sum
from citerec.retrieve.retriever import Retriever
from citerec.retrieve.sentences import LexicalScores, scores_by_sentence
from citerec.text import WORD, contents, normalized
from citerec.tuned import tuned_fusion
from citerec.types import CandidateSet, Eligibility, Hits, Log, Query, QueryVector

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.retrieve.dense import DenseRetriever, QueryEncoder


# token ids of each text, with special tokens at both ends
Tokenize = Callable[[Sequence[str]], list[list[int]]]

UNREADABLE = 0.5  # share of unreadable letters from which recommendations are unreliable
SPLIT = 0.8  # tokens per letter from which a word counts as unreadable
_MOST = 40  # characters of a word that are examined
_LONG = 3  # letters from which a word is not a symbol
_AFTER_GREEK = 0x400  # end of Unicode's blocks of Latin and Greek letters
_UNKNOWN_WORD = "\U00012000"  # a cuneiform sign, which every vocabulary of pieces lacks


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The words of a text that an encoder cannot read."""

    words: frozenset[str]
    share: float  # of the letters of the text, in [0, 1]


def unreadable(text: str, tokens: Tokenize | None) -> Unreadable:
    """Find the words of a text that an encoder cannot read.

    ASCII words always count as readable: names, units and symbols of formulas are split into letters in any language.

    Args:
        text: The text.
        tokens: The tokenizer of the encoder; None for no encoder: then only Latin script is readable.
    """
    words = WORD.findall(text)
    non_ascii = [
        word for word in dict.fromkeys(words) if not word.isascii() and not _is_symbol(word)
    ]
    if tokens is None:
        unreadable_words = frozenset(word for word in non_ascii if not _is_latin(word))
    elif non_ascii:
        starts = [word[:_MOST] for word in non_ascii]  # scripts without spaces make long words
        [unknown_ids, *pieces] = tokens([_UNKNOWN_WORD, *starts])
        # tokenizers of bytes have no unknown token
        unknown = unknown_ids[1] if len(unknown_ids) == 3 else None
        unreadable_words = frozenset(
            word
            for word, start, ids in zip(non_ascii, starts, pieces, strict=True)
            if unknown in ids or len(ids) - 2 >= SPLIT * max(_letters(start), 2)
        )
    else:
        unreadable_words = frozenset[str]()
    total = sum(map(_letters, words))
    share = (
        sum(_letters(word) for word in words if word in unreadable_words) / total if total else 0.0
    )
    return Unreadable(unreadable_words, share)


def unreadable_share(query: Query, bm25: Bm25Retriever, tokens: Tokenize | None) -> float:
    """Return the share of a query's letters in words that no retriever can read, in [0, 1].

    These are words that the encoder spells letter by letter, unless the best paper of BM25 holds one of them.

    Args:
        query: The query.
        bm25: Knows the words of the corpus.
        tokens: The tokenizer of the encoder; None for BM25 alone.
    """
    checked = unreadable(contents(query), tokens)
    if not checked.words:
        return 0.0
    [hits] = bm25.retrieve([query], [Eligibility()], 1)
    [matched] = bm25.matches(query, hits.rows.tolist(), most=1000) or [[]]
    known = {word.lower() for word in matched}
    return 0.0 if any(word.lower() in known for word in checked.words) else checked.share


def _letters(word: str) -> int:
    return sum(character.isalpha() for character in word)


def _is_symbol(word: str) -> bool:
    """Whether a word is short and Latin or Greek: a symbol of a formula, such as x², α or ℝⁿ."""
    return _letters(word) < _LONG and _is_latin(word)


def _is_latin(word: str) -> bool:
    """Whether the letters of a word are Latin, with or without marks, or Greek, as in formulas."""
    plain = normalized("NFKD", word[:_MOST])
    return all(ord(character) < _AFTER_GREEK for character in plain)


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
        sentences = scores_by_sentence(queries, self._lexical, self.dense, ahead=ahead)
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
    index.check_embedded(config.encoder)
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
