"""Measure what drafts of today gain from citations of their own year; write one JSON file for each corpus, and a page.

    python experiments/drafts.py indexes/vis indexes/labour

A test paper stands for a draft that is not in the corpus. It is asked without its id, and is taken out of the index: it
cannot be recommended, cites nobody, and nobody cites it. Its list is then ranked twice, by the ranker that `recommend`
uses: with the citations that papers of earlier years made (`--known-graph earlier`, and `recommend` for a paper of the
corpus), and with those of papers of its own year, too (`recommend` for a draft). Gold is what it cites.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.config import RANKING_DEPTH, Bm25Config, RecommendConfig
from citerec.encode.machine import provenance
from citerec.evaluation.metrics import evaluate_run, per_query
from citerec.evaluation.protocol import EvalSet, load_eval_set
from citerec.evaluation.significance import student_test
from citerec.files.trec import Run
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder, open_index
from citerec.index.graph import Graph
from citerec.index.java import start_jvm
from citerec.pipeline import rank_stages
from citerec.rank.ltr import DEFAULT, open_ranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.types import CandidateSet, Query, QueryBatch, Ranking

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "drafts"
PAGE = HERE / "DRAFTS.md"
KNOWN = (CitationScope.EARLIER, CitationScope.PUBLISHED)
METRICS = ("f1@20", "mrr", "recall@1000")


def main() -> None:
    """Measure the corpora that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "indexes", type=Path, nargs="*", help="index folders with a test split"
    )
    parser.add_argument(
        "--queries", type=int, default=400, help="test papers, drawn at random"
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm()
    for folder in options.indexes:
        result = measured(open_index(folder), options.queries)
        path = RESULTS / f"{folder.name}.json"
        path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
        print(f"drafts: {path}", file=sys.stderr)
    PAGE.write_text(page(), encoding="utf-8")


def measured(index: IndexFolder, most: int) -> dict[str, Any]:
    """Return the figures of both rankings, and p of their difference."""
    eval_set = some(load_eval_set(index, "test"), most)
    drafts = [
        replace(query, id=f"draft:{query.id}", named=False)
        for query in eval_set.queries
    ]
    retriever = open_hybrid(index, RecommendConfig(bm25=Bm25Config()))
    found = retriever.candidates(drafts, eval_set.eligible, RANKING_DEPTH)
    runs = {known: Run(known, {}) for known in KNOWN}
    rankings: dict[CitationScope, dict[str, Ranking]] = {known: {} for known in KNOWN}
    own = index.papers.rows_of([query.id for query in eval_set.queries]).tolist()
    for i, row in enumerate(own):
        part = drafts[i : i + 1], eval_set.eligible[i : i + 1], found[i : i + 1]
        for known, ranking in ranked(without(index, row), *part):
            rankings[known][eval_set.queries[i].id] = ranking
    runs = {known: Run(known, mine) for known, mine in rankings.items()}
    tables = {known: per_query(run, eval_set.qrels) for known, run in runs.items()}
    rng = np.random.default_rng(0)
    return {
        "corpus": index.manifest.name,
        "queries": len(eval_set.queries),
        "encoder": retriever.encoder or None,
        "figures": {
            known.value: {
                name: round(evaluate_run(run, eval_set.qrels, rng=rng).metrics[name], 5)
                for name in METRICS
            }
            for known, run in runs.items()
        },
        "p": {
            name: student_test(*(np.asarray(tables[known][name]) for known in KNOWN))
            for name in METRICS
        },
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]}),
    }


def some(eval_set: EvalSet, most: int) -> EvalSet:
    """Return the same evaluation set with at most so many queries, always the same ones."""
    chosen = np.sort(
        np.random.default_rng(0).permutation(len(eval_set.queries))[:most]
    ).tolist()
    queries = tuple(eval_set.queries[i] for i in chosen)
    return replace(
        eval_set,
        queries=queries,
        eligible=tuple(eval_set.eligible[i] for i in chosen),
        qrels={query.id: eval_set.qrels[query.id] for query in queries},
    )


def without(index: IndexFolder, row: int) -> IndexFolder:
    """Return an index in which a paper cites nobody, and nobody cites it."""
    graph = index.graph
    keep = (graph.citing != row) & (graph.indices != row)
    kept = graph.where(keep)
    return replace(index, graph=Graph(kept.indptr, kept.indices))


def ranked(
    index: IndexFolder,
    queries: Sequence[Query],
    rules: Sequence[Any],
    found: Sequence[CandidateSet],
) -> Iterator[tuple[CitationScope, Ranking]]:
    """Yield the ranking of one draft by what it knows."""
    for known in KNOWN:
        batch, candidates = QueryBatch(queries, rules), found
        for stage in rank_stages(
            TemporalGraph(index, known), open_ranker(DEFAULT), None
        ):
            candidates = stage.run(batch, candidates)
        hits = candidates[0].hits.best(RANKING_DEPTH)
        ids = index.papers.ids_at(hits.rows.tolist())
        yield (
            known,
            Ranking.from_scores(dict(zip(ids, hits.scores.tolist(), strict=True))),
        )


def page() -> str:
    """Return the results as a page."""
    results: list[Mapping[str, Any]] = [
        orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))
    ]
    lines = [
        "# Drafts of today",
        "",
        "Test papers as drafts that are not in the corpus (`python experiments/drafts.py`): the default ranker",
        "with the citations of earlier years, and with those of the draft's own year, too, as `recommend` knows them.",
        "p: Student's paired t-test.",
        "",
        "| corpus | queries | vectors | metric | earlier years | own year, too | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        for name in METRICS:
            before, after = (one["figures"][known.value][name] for known in KNOWN)
            lines.append(
                f"| {one['corpus']} | {one['queries']} | {one['encoder'] or 'none'} | {name} "
                f"| {before:.3f} | {after:.3f} | {one['p'][name]:.4f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
