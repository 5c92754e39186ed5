"""One open version of an index: its recommenders by settings, and the requests that use it."""

import hashlib
from collections import Counter, OrderedDict
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Condition, RLock

import orjson

from citerec.api.corpus import Corpus
from citerec.config import RecommendConfig
from citerec.folder import IndexFolder, open_index
from citerec.manifest import MODEL_SUMS
from citerec.recommend import BatchRecommender
from citerec.rerank.cascade import Cascade, Scorer
from citerec.rules.known import Rows, Scores
from citerec.serve.options import ModelSettings, config_of, default_reranking
from citerec.serve.schema import Options
from citerec.types import Progress, Query

MAX_VARIANTS = 6  # recommenders of other settings than the default ones, which are open at once
WARM_UP = Query(id="query", title="a first search", named=False)


class EachAlone:
    """Scores the pairs of each query in a batch of their own, so that other queries change no bit of a score."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self.to_unit_interval = scorer.to_unit_interval

    def score(
        self,
        index: IndexFolder,
        queries: list[Query],
        rows: list[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        """Return the score of each candidate of each query, in the order of `rows`."""
        pairs = zip(queries, rows, strict=True)
        return [self._scorer.score(index, [q], [r], progress)[0] for q, r in pairs]


class OpenVersion:
    """One version of an index, open until the last request that uses it has ended; shared by threads."""

    def __init__(self, name: str, path: Path, models: ModelSettings) -> None:
        """Open the index with the default settings.

        Raises:
            CiterecError: If the index or a model cannot be opened.
        """
        self.name = name
        self.index = open_index(path)
        self.version = _version_of(self.index)
        self._models = models
        self._lock, self._free = RLock(), Condition()
        self._users, self._retired, self.closed = 0, False, False
        self._variants: OrderedDict[RecommendConfig, BatchRecommender] = OrderedDict()
        self._borrowed = Counter[BatchRecommender]()
        reranking = default_reranking(self.index, models, models.config.ranker)
        config = models.config.replace(reranker=reranking)
        self.default = BatchRecommender(self.index, config)
        self.corpus = Corpus(self.index, self.default.retriever.bm25)

    def borrow(self, options: Options | None = None) -> BatchRecommender:
        """Return the recommender for the options of a request, opened if it is not; `give_back` must follow.

        Raises:
            CiterecError: If the options are wrong, or a part cannot be opened.
        """
        config = self.default.config
        if options is not None and options.model_fields_set & set(Options.model_fields):
            config = config_of(options, self.index, self._models)
        with self._lock:
            if config == self.default.config:
                return self.default
            found = self._variants.get(config)
            if found is None:
                found = self._variants[config] = BatchRecommender(self.index, config)
            self._variants.move_to_end(config)
            self._borrowed[found] += 1
            self._evict()
            return found

    def give_back(self, recommender: BatchRecommender) -> None:
        """End the use of a recommender."""
        with self._lock:
            if recommender is not self.default:
                self._borrowed[recommender] -= 1
                self._evict()

    def _evict(self) -> None:
        """Close the recommenders that were not used for the longest time, if nothing uses them now."""
        for config, one in [*self._variants.items()][: len(self._variants) - MAX_VARIANTS]:
            if not self._borrowed[one]:
                del self._variants[config], self._borrowed[one]
                _close(one)

    def warm_up(self) -> None:
        """Answer a query, so that the first request finds everything loaded."""
        self.default.recommend([WARM_UP], explain=True)

    def acquire(self) -> bool:
        """Keep the version open until `release`; returns False if it is closed already."""
        with self._free:
            if self.closed:
                return False
            self._users += 1
            return True

    def release(self) -> None:
        """End a use."""
        with self._free:
            self._users -= 1
        self._close_if_free()

    def retire(self) -> None:
        """Close the version as soon as nothing uses it."""
        with self._free:
            self._retired = True
        self._close_if_free()

    def _close_if_free(self) -> None:
        with self._free:
            if not self._retired or self._users or self.closed:
                return
            self.closed = True
        with self._lock:
            for one in (self.default, *self._variants.values()):
                _close(one)
            self._variants.clear()
            self.corpus.close()


def _version_of(index: IndexFolder) -> str:
    """Return what identifies a version: the time of its build, and the start of a sha256 of its files and models."""
    manifest = index.manifest
    digest = hashlib.sha256(orjson.dumps([manifest.checksums, manifest.settings]))
    for sums in sorted(index.models.glob(f"*/{MODEL_SUMS}")):
        digest.update(sums.read_bytes())
    return f"{manifest.created} {digest.hexdigest()[:12]}"


def _close(recommender: BatchRecommender) -> None:
    if recommender.retriever.bm25:
        recommender.retriever.bm25.close()


def alone(recommender: BatchRecommender, k: int) -> BatchRecommender:
    """Return a recommender of `k` papers that reranks the candidates of each query by themselves."""
    other = copy(recommender)
    if cascade := recommender.cascade:
        each = (replace(one, scorer=EachAlone(one.scorer)) for one in cascade.rerankers)
        other.cascade = Cascade(cascade.index, tuple(each), cascade.early_stop)
    return other.with_k(k)
