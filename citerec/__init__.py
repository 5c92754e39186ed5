"""citerec recommends the papers that a text should cite.

corpus/   files of papers             -> papers and who cites whom   (build.py makes the index)
encode/   papers, drafts              -> vectors                     (SPECTER; train/ makes others)
retrieve/ a draft, an index           -> candidates                  (BM25, vectors; fuse.py makes one list)
rerank/   a draft, its candidates     -> the same, better ordered    (a cross-encoder reads both together)
rank/     candidates, all that is known -> the same, and what close papers cite, in their last order (LambdaMART)
recommend a draft                     -> papers that may be cited, best first, with reasons
evaluate/ rankings, true citations    -> an honest report            (scidocs/ judges vectors alone)
datasets/ the literature's corpora    -> files of papers             (experiment/ runs rows of its tables)

>>> from citerec import Query, open_index, Recommender       # doctest: +SKIP
>>> recommender = Recommender(open_index(Path("indexes/sample")))
>>> recommender.recommend([Query(id="draft", title="Dense retrieval of passages")])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from citerec.build import BuildConfig, build_index
    from citerec.config import Bm25Config, RecommendConfig
    from citerec.errors import CiterecError
    from citerec.folder import open_index, verify_index
    from citerec.recommend import Recommender
    from citerec.types import Paper, Query, Ranking, Recommendation

__all__ = [
    "Bm25Config",
    "BuildConfig",
    "CiterecError",
    "Paper",
    "Query",
    "Ranking",
    "RecommendConfig",
    "Recommendation",
    "Recommender",
    "build_index",
    "open_index",
    "verify_index",
]

_HOMES = {
    "Bm25Config": "config",
    "BuildConfig": "build",
    "CiterecError": "errors",
    "Paper": "types",
    "Query": "types",
    "Ranking": "types",
    "RecommendConfig": "config",
    "Recommendation": "types",
    "Recommender": "recommend",
    "build_index": "build",
    "open_index": "folder",
    "verify_index": "folder",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for, so that `import citerec` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'citerec' has no attribute {name!r}")
    return getattr(import_module(f"citerec.{_HOMES[name]}"), name)
