"""Lucene's own search over the Lucene part of an index: the oracle of the BM25 that scores stored postings."""

from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.index.bm25 import CONTENTS, analyzer, open_reader
from citerec.index.java import as_type, java_class


class LuceneSearcher:
    """Searches an index by Lucene."""

    def __init__(self, bm25: Any, k1: float = 1.2, b: float = 0.75) -> None:
        self._reader = open_reader(bm25)
        self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(
            self._reader
        )
        similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")
        self._searcher.setSimilarity(similarity(k1, b))
        self._searcher.setMaxClauseCount(2**31 - 1)

    def all(self, text: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return every matching document with its score, best first."""
        generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        bag = as_type(
            "org.apache.lucene.search.Query",
            generator.buildQuery(CONTENTS, analyzer(), text),
        )
        top = self._searcher.search(bag, max(int(self._reader.maxDoc()), 1))
        docs = java_class("io.anserini.search.ScoredDocs").fromTopDocs(
            top, self._searcher
        )
        return np.array(docs.lucene_docids, np.int64), np.array(docs.scores, np.float32)
