"""The search systems: each is opened once and then answers all test queries, ids and scores in Python.

The answer is one `(docids, scores)` per query. Only what a system needs is imported, so that the memory of
the process is its own.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from bench.work import Work

K = 1000
Answers = list[tuple[list[str], list[float]]]
Search = Callable[[], Answers]


def citerec(work: Work) -> Search:
    """Open citerec with no year bound, so that it finds what Pyserini finds."""
    return _citerec(work, bounded=False)


def citerec_bounded(work: Work) -> Search:
    """Open citerec with the protocol's rule: no later year, not the query itself."""
    return _citerec(work, bounded=True)


def lucene(work: Work) -> Search:
    """Open the Lucene part of the same index by Lucene's own searcher; papers of equal scores are ordered by id."""
    import numpy as np

    from citerec.index.bm25 import CONTENTS, ROWS, analyzer, open_reader
    from citerec.index.folder import open_index
    from citerec.index.java import as_type, java_class
    from citerec.types import Hits

    index = open_index(work.index)
    rows, ids = np.load(index.bm25 / ROWS), index.papers.ids
    searcher = java_class("org.apache.lucene.search.IndexSearcher")(
        open_reader(index.bm25)
    )
    bm25 = java_class("org.apache.lucene.search.similarities.BM25Similarity")
    searcher.setSimilarity(bm25(1.2, 0.75))
    searcher.setMaxClauseCount(2**31 - 1)
    generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
    texts = _queries(work)["texts"]

    def search(text: str, most: int) -> tuple[Any, Any]:
        query = generator.buildQuery(CONTENTS, analyzer(), text)
        top = searcher.search(as_type("org.apache.lucene.search.Query", query), most)
        docs = java_class("io.anserini.search.ScoredDocs").fromTopDocs(top, searcher)
        return np.array(docs.lucene_docids, np.int64), np.array(docs.scores, np.float32)

    def one(text: str) -> tuple[list[str], list[float]]:
        docs, scores = search(text, 2 * K)
        # more papers may have this score
        if len(scores) == 2 * K and scores[K - 1] == scores[-1]:
            docs, scores = search(text, len(rows))
        hits = Hits.ordered(rows[docs], scores, index.id_rank, K)
        return ids[hits.rows].tolist(), hits.scores.tolist()

    return lambda: [one(text) for text in texts]


def pyserini(work: Work) -> Search:
    """Open Pyserini on the Lucene part of the same index, in a JVM with the same heap."""
    from citerec.index.java import start_jvm

    start_jvm()
    from pyserini.search.lucene import LuceneSearcher

    searcher = LuceneSearcher(str(work.index / "bm25"))
    searcher.set_bm25(1.2, 0.75)
    given = _queries(work)
    texts, names = given["texts"], given["queries"]

    def search() -> Answers:
        found = searcher.batch_search(texts, names, k=K, threads=work.threads)
        answers: Answers = []
        for name in names:
            hits = found.get(name, [])
            answers.append(([hit.docid for hit in hits], [hit.score for hit in hits]))
        return answers

    return search


def bm25s(work: Work) -> Search:
    """Open bm25s; its queries come analysed, so it is timed without analysis."""
    import bm25s as library  # pyright: ignore[reportMissingImports]
    import numpy as np

    retriever = library.BM25.load(str(work.bm25s))
    _activate_numba(retriever)
    given = _queries(work)
    tokens, ids = given["tokens"], np.array(given["ids"], object)
    k = min(K, len(ids))

    def search() -> Answers:
        rows, scores = retriever.retrieve(
            tokens, k=k, n_threads=work.threads, show_progress=False, return_as="tuple"
        )
        return [
            (ids[found].tolist(), score.tolist())
            for found, score in zip(rows, scores, strict=True)
        ]

    return search


def tantivy(work: Work) -> Search:
    """Open tantivy with its own English analysis, which keeps stop words."""
    import tantivy as library  # pyright: ignore[reportMissingImports]

    index = library.Index.open(str(work.tantivy))
    searcher = index.searcher()
    given = _queries(work)
    ids: list[str] = given["ids"]
    words = [
        " ".join(re.findall(r"[a-z0-9]+", text.lower())) for text in given["texts"]
    ]

    def one(text: str) -> tuple[list[str], list[float]]:
        query: Any = index.parse_query(text, ["contents"])
        hits = searcher.search(query, K, count=False).hits
        rows: list[Any] = searcher.fast_field_values(
            "row", [address for _, address in hits]
        )
        return [ids[row] for row in rows], [score for score, _ in hits]

    def search() -> Answers:
        with ThreadPoolExecutor(work.threads) as pool:
            return list(pool.map(one, words))

    return search


SYSTEMS: dict[str, tuple[Callable[[Work], Search], str]] = {
    "citerec": (citerec, "citerec, title + abstract, top 1000, no year bound"),
    "pyserini": (pyserini, "Pyserini's batch_search on the same Lucene index"),
    "lucene": (lucene, "Lucene's own search: not timed, its hits are compared"),
    "citerec-bounded": (citerec_bounded, "citerec with the protocol's year bound"),
    "bm25s": (
        bm25s,
        "bm25s (numba where installed), Lucene's tokens, analysis not timed",
    ),
    "tantivy": (tantivy, "tantivy, its own en_stem analysis, which keeps stop words"),
}


def _citerec(work: Work, *, bounded: bool) -> Search:
    from citerec.config import Bm25Config, StopWords
    from citerec.evaluation.protocol import load_eval_set
    from citerec.index.folder import open_index
    from citerec.retrieve.bm25 import Bm25Retriever
    from citerec.types import Eligibility

    index = open_index(work.index)
    eval_set = load_eval_set(index, "test")
    config = Bm25Config(stop_words=StopWords.ANSERINI, threads=work.threads)
    retriever = Bm25Retriever(index, config)
    rules = eval_set.eligible if bounded else [Eligibility()] * len(eval_set.queries)
    ids = index.papers.ids

    def search() -> Answers:
        found = retriever.retrieve(eval_set.queries, rules, K)
        return [(ids[hits.rows].tolist(), hits.scores.tolist()) for hits in found]

    return search


def _queries(work: Work) -> dict[str, Any]:
    return orjson.loads(Path(work.queries).read_bytes())


def _activate_numba(retriever: Any) -> None:
    """Let bm25s search with numba, if that is installed: its fastest way."""
    from importlib.util import find_spec

    if find_spec("numba"):
        retriever.backend = "numba"
        retriever.activate_numba_scorer()
