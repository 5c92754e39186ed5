"""citerec recommends the papers that a text should cite.

corpus/   files of papers             -> papers and the citation graph (build.py makes the index)
encode/   papers, drafts              -> vectors                     (MiniLM, SPECTER; train/)
rules/    queries, papers, years      -> which papers are eligible, which citations are known, what is held out
retrieve/ a draft, an index           -> candidates                  (BM25, vectors; fused into one list)
rank/     candidates, citation graph  -> more candidates by expansion, in the order of their features (LambdaMART)
rerank/   a draft, its candidates     -> the best, reordered         (a cross-encoder reads draft and candidate)
recommend a draft                     -> recommended papers, best first, with reasons
search    words, an id, a paper       -> papers of the corpus: by keywords, by id or DOI, along citations
evaluation/ rankings, citations       -> a report: metrics, intervals, tests
lab/      published corpora and tables -> datasets, SciDocs, experiments: what reproduces papers

>>> import citerec                                            # doctest: +SKIP
>>> recommender = citerec.open("indexes/sample")
>>> print(recommender.recommend(title="Dense retrieval of passages", year=2021, k=5))
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# ONNX Runtime reads it when it is imported
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
if TYPE_CHECKING:
    from citerec.build.index import BuildConfig, build_index
    from citerec.config import Bm25Config, RecommendConfig
    from citerec.errors import CiterecError
    from citerec.evaluation.evaluate import evaluate
    from citerec.in_memory import from_papers
    from citerec.index.folder import open_index, verify_index
    from citerec.recommend import Recommender, open  # noqa: A004
    from citerec.recommendations import Recommendations
    from citerec.request import Request
    from citerec.stages import RankModel, Reranker, Retriever
    from citerec.types import Eligibility, Hits, Paper, Query, Ranking, Recommendation

__all__ = [
    "Bm25Config",
    "BuildConfig",
    "CiterecError",
    "Eligibility",
    "Hits",
    "Paper",
    "Query",
    "RankModel",
    "Ranking",
    "RecommendConfig",
    "Recommendation",
    "Recommendations",
    "Recommender",
    "Request",
    "Reranker",
    "Retriever",
    "build_index",
    "evaluate",
    "from_papers",
    "open",
    "open_index",
    "verify_index",
]

_HOMES = {
    "build.index": ("BuildConfig", "build_index"),
    "config": ("Bm25Config", "RecommendConfig"),
    "evaluation.evaluate": ("evaluate",),
    "errors": ("CiterecError",),
    "index.folder": ("open_index", "verify_index"),
    "in_memory": ("from_papers",),
    "recommend": ("Recommender", "open"),
    "recommendations": ("Recommendations",),
    "request": ("Request",),
    "stages": ("RankModel", "Reranker", "Retriever"),
    "types": ("Eligibility", "Hits", "Paper", "Query", "Ranking", "Recommendation"),
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that `import citerec` is fast."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"citerec.{home}"), name)
    raise AttributeError(f"module 'citerec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
