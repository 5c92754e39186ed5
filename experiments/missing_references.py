"""Measure how well the papers that a bibliography lacks are found; write one JSON file for each corpus, and a page.

    python experiments/missing_references.py indexes/vis indexes/ecology

A test paper stands for a draft that is not in the corpus: it cannot be recommended, cites nobody, and nobody cites it.
The citations of papers of a year up to its own are known. A third of its references, drawn at random, is hidden; gold
is the hidden part. The others are given to `recommend --cited`, which sees neither title nor abstract. The systems that
it is compared with see title and abstract, and may not recommend a given reference either.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
from drafts import without

from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.corpus.splits import SPLITS, gold_citations, read_ids
from citerec.evaluate.metrics import per_query
from citerec.evaluate.significance import student_test
from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.pipeline import rank_stages
from citerec.provenance import provenance
from citerec.rank.ranker import DEFAULT, open_ranker
from citerec.rank.seeds import SeedRetriever, by_key_terms
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import HybridRetriever, open_hybrid
from citerec.rules.known import CitationScope, TemporalGraph
from citerec.run import Run
from citerec.types import CandidateSet, Eligibility, Hits, Query, QueryBatch, Ranking

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "missing_references"
PAGE = HERE / "MISSING.md"
METRICS = ("recall@20", "f1@20", "ndcg@20")
FEWEST = 12  # references of a test paper in the corpus
BASELINE, OURS = "bm25", "missing"
SYSTEMS = {
    BASELINE: "BM25 of title and abstract",
    "fused": "BM25 and vectors of title and abstract",
    "ranker": "`recommend --query --cited`: the default ranker",
    OURS: "`recommend --cited`: the given references alone",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A test paper as a draft outside of the corpus."""

    row: int
    query: Query
    rule: Eligibility
    given: list[int]  # rows of the references that are given
    hidden: list[int]  # of those that are to be found

    @classmethod
    def of(cls, index: IndexFolder, row: int, given: list[int], hidden: list[int]) -> Self:
        """Make the draft of the paper at `row`."""
        paper = index.papers[row]
        query = replace(Query.of(paper), id=f"draft:{paper.id}", named=False)
        return cls(row, query, Eligibility(query.year, frozenset([row, *given])), given, hidden)


def main() -> None:
    """Measure the corpora that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="index folders")
    parser.add_argument("--queries", type=int, default=200, help="papers, drawn at random")
    parser.add_argument("--split", choices=SPLITS, default="test")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm(None)
    for folder in options.indexes:
        result = measured(open_index(folder), options.split, options.queries)
        encoded = orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n"
        if options.split == "test":
            path = RESULTS / f"{folder.name}.json"
            path.write_bytes(encoded)
            print(f"missing references: {path}", file=sys.stderr)
        else:
            sys.stdout.buffer.write(encoded)
    PAGE.write_text(page(), encoding="utf-8")


def measured(index: IndexFolder, split: str, most: int) -> dict[str, Any]:
    """Return the figures of all systems, and p of the difference between ours and the baseline."""
    retriever = open_hybrid(index, RecommendConfig())
    key_terms = by_key_terms(Bm25Retriever(index))
    runs: dict[str, dict[str, Ranking]] = {system: {} for system in SYSTEMS}
    qrels: dict[str, frozenset[str]] = {}
    drafts = [Draft.of(index, *one) for one in bibliographies(index, split, most)]
    queries, rules = [one.query for one in drafts], [one.rule for one in drafts]
    texts = retriever.candidates(queries, rules, RANKING_DEPTH)
    for draft, found in zip(drafts, texts, strict=True):
        [query_id] = index.papers.ids_at([draft.row])
        qrels[query_id] = frozenset(index.papers.ids_at(draft.hidden))
        for system, hits in lists(index, retriever, key_terms, draft, found):
            ids = index.papers.ids_at(hits.rows.tolist())
            scores = dict(zip(ids, (-np.arange(len(ids))).tolist(), strict=True))
            runs[system][query_id] = Ranking.from_scores(scores)
    tables = {system: per_query(Run(system, run), qrels) for system, run in runs.items()}
    return {
        "corpus": index.manifest.name,
        "split": split,
        "papers": len(qrels),
        "hidden": round(float(np.mean([len(gold) for gold in qrels.values()])), 2),
        "encoder": retriever.encoder or None,
        "figures": {
            system: {name: round(float(table[name].mean()), 5) for name in METRICS}
            for system, table in tables.items()
        },
        "p": {name: student_test(tables[BASELINE][name], tables[OURS][name]) for name in METRICS},
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]}),
    }


def bibliographies(
    index: IndexFolder, split: str, most: int
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield papers of a split with the given and the hidden part of their references, always the same ones."""
    rng = np.random.default_rng(0)
    graph = index.graph
    gold = gold_citations(graph, index.papers.years)
    rows = index.papers.rows_of(read_ids(index.splits / f"{split}.ids"))
    cited = {
        row: graph.references(row)[gold[graph.indptr[row] : graph.indptr[row + 1]]]
        for row in rows[rows >= 0].tolist()
    }
    enough = [row for row, references in cited.items() if len(references) >= FEWEST]
    for i in np.sort(rng.permutation(len(enough))[:most]).tolist():
        references = rng.permutation(cited[enough[i]]).tolist()
        hidden = len(references) // 3
        yield enough[i], sorted(references[hidden:]), sorted(references[:hidden])


def lists(
    index: IndexFolder,
    retriever: HybridRetriever,
    key_terms: Bm25Retriever,
    draft: Draft,
    found: CandidateSet,
) -> Iterator[tuple[str, Hits]]:
    """Yield the list of each system for one paper as a draft outside of the corpus; `found` is that of its text."""
    yield BASELINE, found.hits_by_source["bm25"]
    yield "fused", found.hits
    graph = TemporalGraph(without(index, draft.row), CitationScope.PUBLISHED)
    batch = QueryBatch([draft.query], [draft.rule], [draft.given])
    yield "ranker", ranked(graph, batch, found)
    [candidates] = SeedRetriever(graph, bm25=key_terms, dense=retriever.dense).candidates(batch, 20)
    yield OURS, candidates.hits


def ranked(graph: TemporalGraph, batch: QueryBatch, found: CandidateSet) -> Hits:
    """Return the candidates of one query in the order of the default learning-to-rank model."""
    candidates = [found]
    for stage in rank_stages(graph, open_ranker(DEFAULT), None, k=RANKING_DEPTH):
        candidates = stage.run(batch, candidates)
    return candidates[0].hits


def page() -> str:
    """Return the results as a page."""
    results: list[Mapping[str, Any]] = [
        orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))
    ]
    lines = [
        "# What a bibliography lacks",
        "",
        "Test papers as drafts that are not in the corpus: a third of their references is hidden, the others are",
        "given (`python experiments/missing_references.py INDEX...`). No system knows a citation of the paper itself,",
        f"or of a later year. Papers have at least {FEWEST} references in the corpus. p: Student's paired t-test",
        "against BM25, of recall@20.",
        "",
        "| corpus | papers | system | recall@20 | f1@20 | ndcg@20 | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        for system, shown in SYSTEMS.items():
            figures = " | ".join(f"{one['figures'][system][name]:.3f}" for name in METRICS)
            p = f"{one['p'][METRICS[0]]:.4f}" if system == OURS else ""
            lines.append(f"| {one['corpus']} | {one['papers']} | {shown} | {figures} | {p} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
