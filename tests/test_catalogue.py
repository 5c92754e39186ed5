"""The systems that are compared, and what each reads."""

from citerec.config import FuseConfig, FuseMethod
from citerec.evaluate.catalogue import (
    SYSTEMS,
    candidates,
    default_systems,
    fuse_of,
    read_by,
)
from citerec.evaluate.protocol import EvalConfig
from citerec.folder import IndexFolder


def test_what_is_compared_by_default(sample_index: IndexFolder, dense_sample: IndexFolder) -> None:
    baselines = ["most-cited", "random", "oracle"]
    graph = ["expanded", "ranker"]
    reranked = ["rerank", "rerank-alone"]

    assert default_systems(sample_index) == ["bm25", *graph, *baselines]
    assert default_systems(sample_index, rerank=True) == ["bm25", *reranked, *graph, *baselines]
    assert default_systems(sample_index, ranker="none") == ["bm25", "expanded", *baselines]
    assert default_systems(dense_sample, rerank=True) == [
        "bm25",
        "dense",
        "rrf",
        "bm25+rerank",
        *reranked,
        *graph,
        *baselines,
    ]


def test_the_candidates_are_those_of_recommend_unless_the_setting_names_others(
    sample_index: IndexFolder, dense_sample: IndexFolder
) -> None:
    assert (candidates(sample_index), candidates(dense_sample)) == ("bm25", "rrf")
    assert read_by("rerank", dense_sample, EvalConfig()) == "rrf"
    assert read_by("rerank", dense_sample, EvalConfig(candidates="dense")) == "dense"
    assert read_by("bm25+rerank", dense_sample, EvalConfig(candidates="dense")) == "bm25"
    assert read_by("weighted", dense_sample, EvalConfig(candidates="dense")) == "weighted"


def test_a_reranked_system_fuses_nothing_itself() -> None:
    weighted = EvalConfig(fuse=FuseConfig(method=FuseMethod.WEIGHTED))

    assert [name for name in SYSTEMS if fuse_of(name, weighted)] == ["rrf", "weighted"]
