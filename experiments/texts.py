"""Measure what the body of a draft adds, on test articles with their introductions; write TEXTS.md.

python experiments/texts.py indexes/biomed.minilm ../shared/data/biomed/fulltext.jsonl.gz
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import orjson
from fulltexts import introductions

from citerec.config import RecommendConfig
from citerec.encode.machine import provenance
from citerec.evaluation.significance import bootstrap_interval
from citerec.index.folder import open_index
from citerec.index.java import start_jvm
from citerec.rank.ltr import DEFAULT, TEXTS, open_ranker
from citerec.retrieve.fuse import rrf
from citerec.retrieve.hybrid import open_hybrid
from citerec.train.data import LabelledQueries, dev_queries
from citerec.train.ranker import Gatherer
from citerec.train.settings import RankerTraining
from citerec.types import Hits, no_progress

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "texts"
FIRST = {  # first stages: the hits that are fused
    "BM25": ("bm25",),
    "vectors": ("dense",),
    "sentences of the body, BM25": ("body",),
    "sentences of the body, vectors": ("body_dense",),
    "BM25 and vectors": ("bm25", "dense"),
    "all four": ("bm25", "dense", "body", "body_dense"),
}
ABOUT = """# Drafts with their text

Test articles with their introductions, date-strict; the citations of train papers are known. Each sentence of an
introduction, without its citation markers, is searched by itself, 60 of a draft at most; a paper gets 1 / (10 + rank)
from each sentence that finds it. F1@20 with its 95 % bootstrap interval.

Made by `python experiments/texts.py INDEX FULLTEXT`; `experiments/ranker/train_texts.py` trains the last row.
"""


def main() -> None:
    """Measure the systems on the test queries of an index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("texts", type=Path)
    options = parser.parse_args()
    start_jvm()
    index = open_index(options.index)
    found = dev_queries(index, None, 0, split="test")
    assert found
    bodies = introductions(options.texts)
    queries = replace(
        found,
        queries=[
            replace(query, body=bodies.get(query.id, ())) for query in found.queries
        ],
    )
    rows = dict[str, Any]()
    start = perf_counter()
    sets = open_hybrid(index, RecommendConfig()).candidates(
        queries.queries, queries.eligible, 1000
    )
    seconds = perf_counter() - start
    for what, names in FIRST.items():
        fused = (
            rrf([one.hits_by_source[name] for name in names], index.id_rank)
            for one in sets
        )
        rows[what] = measured(labelled(fused, queries))
    config = RankerTraining(reranker="none")
    ranker = open_ranker(DEFAULT)
    added = open_ranker(TEXTS)
    lists = {
        "default list, title and abstract": ({}, (ranker,)),
        "default list, the body searched, no model of it": (bodies, (ranker,)),
        "default list": (bodies, (ranker, added)),
    }
    for what, (texts, models) in lists.items():
        gatherer = Gatherer(index, config, print, bodies=texts)
        examples = gatherer.whole(found, no_progress)
        scores = np.sum([model.score(examples.matrix) for model in models], axis=0)
        scored = examples.lists(scores)
        ordered = (
            (cited[np.argsort(-scores, kind="stable")], gold)
            for scores, cited, gold in scored
        )
        rows[what] = measured(ordered)
    result = {
        "queries": len(found),
        "sentences": float(np.mean([len(query.body) for query in queries.queries])),
        "seconds": round(seconds, 1),
        "rows": rows,
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]}),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = index.manifest.name.partition(".")[0]
    options_ = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
    (RESULTS / f"{name}.json").write_bytes(
        orjson.dumps(result, option=options_) + b"\n"
    )
    (HERE / "TEXTS.md").write_text(page(name, result), encoding="utf-8")


def labelled(
    lists: Iterable[Hits], queries: LabelledQueries
) -> Iterable[tuple[Any, int]]:
    """Yield which papers of each list are cited, best first, and the number of cited papers."""
    for hits, gold in zip(lists, queries.gold, strict=True):
        yield np.isin(hits.rows, gold), len(gold)


def measured(lists: Iterable[tuple[Any, int]]) -> dict[str, Any]:
    """Return the means over the queries, with the interval of F1@20."""
    f1, mrr, r100, r1000 = [], [], [], []
    for cited, gold in lists:
        first = np.flatnonzero(cited)
        f1.append(2 * cited[:20].sum() / (20 + gold))
        mrr.append(1 / (1 + first[0]) if len(first) else 0.0)
        r100.append(cited[:100].sum() / max(gold, 1))
        r1000.append(cited[:1000].sum() / max(gold, 1))
    interval = bootstrap_interval(
        np.array(f1)[:, None], lambda means: means, rng=np.random.default_rng(0)
    )
    means = {"f1": f1, "mrr": mrr, "r100": r100, "r1000": r1000}
    return {name: float(np.mean(each)) for name, each in means.items()} | {
        "interval": interval[:, 0]
    }


def page(name: str, result: dict[str, Any]) -> str:
    """Return the page of one corpus."""
    lines: Sequence[str] = [
        ABOUT,
        f"`{name}`, {result['queries']} drafts with {result['sentences']:.0f} sentences on average; the four searches "
        f"took {result['seconds']:.0f} s together.",
        "",
        "| system | F1@20 | MRR | R@100 | R@1000 |",
        "|---|---|---|---|---|",
        *(
            f"| {what} | {row['f1']:.3f} [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}] | {row['mrr']:.3f} "
            f"| {row['r100']:.3f} | {row['r1000']:.3f} |"
            for what, row in result["rows"].items()
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
