"""Measure what marks in a list teach the next list; write one JSON file for each corpus, and a page.

    python experiments/marks.py indexes/labour indexes/climate ...

A test paper stands for a draft without references, whose author marks the first 5 or 10 papers of the list: taken are
those that the paper cites, the others are rejected. Gold is what the paper cites and is not among the first 10; these
are left out of every list, so that all lists are compared on the same papers: what `recommend --cited TAKEN --rejected
REJECTED` gives is the list of "taken". Likewise for a draft that has a half of its references, drawn at random; gold is
the other half. Variants: papers rise that are cited together with known references (by the highest cosine of their
citing papers, times 4 standard deviations of the best scores); rejected papers are not eligible, and so no neighbours;
papers sink that are cited together with rejected ones.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from scipy.sparse import csr_array

from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.encode.machine import provenance
from citerec.evaluation.metrics import per_query
from citerec.evaluation.protocol import load_eval_set
from citerec.evaluation.significance import student_test
from citerec.files.arrays import Rows, Scores
from citerec.files.trec import Run
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder, open_index
from citerec.pipeline import Pipeline, rank_stages
from citerec.rank.ltr import DEFAULT, TOP, open_ranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.eligible import eligible
from citerec.types import Hits, Query, QueryBatch, Ranking

RESULTS = Path(__file__).resolve().parent / "results" / "marks"
# of 1, 2, 4 and 8 the best for halves of dev papers' references
CO_CITATION = np.float32(4)
METRICS, MARKS = ("f1@20", "mrr"), (5, 10)
HEAD = (
    "| corpus | vectors | queries | list | f1@20 | p | mrr | p | against |\n"
    + "|---" * 9
    + "|"
)
NONE, HALF = "no marks", "half of the references"
RISE, OUT, SINK = "co-cited rise", "rejected not eligible", "co-cited sink"
COMPARED = {f"{n} taken": NONE for n in MARKS} | {
    f"{one}, {how}": one
    for one in (HALF, *(f"{n} taken" for n in MARKS))
    for how in (RISE, OUT, SINK)
}


class Drafts:
    """The lists of drafts by one index."""

    def __init__(self, index: IndexFolder) -> None:
        """Open the stages of `recommend`."""
        self.index, self.retriever = index, open_hybrid(index, RecommendConfig())
        self.graph = TemporalGraph(index, CitationScope.PUBLISHED)
        self.ranker = open_ranker(DEFAULT)
        stages = rank_stages(self.graph, self.ranker, None)
        self.pipeline = Pipeline(self.retriever, stages, RANKING_DEPTH)

    def lists(
        self, name: str, query: Query, yes: Rows, no: Rows
    ) -> Iterator[tuple[str, Rows]]:
        """Yield the list of a draft with taken and rejected papers, and its variants."""
        plain, rows = self._ranked(query, yes, yes)
        yield name, rows.rows
        yield (
            f"{name}, {RISE}",
            self._moved(rows, self.co_citation(plain, rows.rows, yes)).rows,
        )
        yield f"{name}, {OUT}", self._ranked(query, yes, np.append(yes, no))[1].rows
        yield (
            f"{name}, {SINK}",
            self._moved(rows, -self.co_citation(plain, rows.rows, no)).rows,
        )

    def _ranked(self, query: Query, yes: Rows, out: Rows) -> tuple[Any, Hits]:
        rules = eligible([query], self.index.papers, excluded=out.tolist())
        one: Any = self.pipeline.all(QueryBatch([query], rules, [yes.tolist()]))[0]
        scores = self.ranker.score(one.matrix)
        return one, Hits.ordered(one.expanded.rows, scores, self.index.id_rank)

    def _moved(self, hits: Hits, by: Scores) -> Hits:
        scores = hits.scores + by * hits.scores[:TOP].std()
        return Hits.ordered(hits.rows, scores, self.index.id_rank)

    def co_citation(self, one: Any, rows: Rows, others: Rows) -> Scores:
        """Return the highest cosine of the citing papers of each paper and another one, in weighted form."""
        citing: list[Any] = []
        for papers in (rows, others):
            columns, sizes = self.graph.all_citers.sampled(papers)
            known = one.expanded.snapshot.is_citing(columns).astype(np.float32)
            shape, ends = (
                (len(papers), len(self.index.papers)),
                np.append(0, np.cumsum(sizes)),
            )
            citing.append(csr_array((known, columns, ends), shape=shape))
        counts = [np.maximum(links.sum(axis=1), 1) for links in citing]
        cosines = (citing[0] @ citing[1].T).toarray() / np.sqrt(np.outer(*counts))
        return CO_CITATION * cosines.max(axis=1, initial=0).astype(np.float32)

    def marked(self, query: Query, gold: Rows) -> tuple[dict[str, Rows], Rows]:
        """Return the lists after marks, without the papers that may be marked, and the gold that is left."""
        nothing = gold[:0]
        lists = dict(self.lists(NONE, query, nothing, nothing))
        seen = lists[NONE][: max(MARKS)]
        for most in MARKS:
            yes, no = (
                seen[:most][np.isin(seen[:most], gold) == flag]
                for flag in (True, False)
            )
            lists |= self.lists(f"{most} taken", query, yes, no)
        left = {name: rows[~np.isin(rows, seen)] for name, rows in lists.items()}
        return left, gold[~np.isin(gold, seen)]

    def half(self, query: Query, gold: Rows) -> tuple[dict[str, Rows], Rows]:
        """Return the lists of a draft that has the first half of its references, and the other half."""
        known, rest = np.split(gold, [len(gold) // 2])
        return dict(self.lists(HALF, query, known, gold[:0])), rest


def measured(index: IndexFolder, most: int) -> dict[str, Any]:
    """Return the figures of all lists, and p of the differences."""
    eval_set, drafts, rng = (
        load_eval_set(index, "test"),
        Drafts(index),
        np.random.default_rng(0),
    )
    runs, golds = (
        dict[str, dict[str, Ranking]](),
        dict[str, dict[str, dict[str, int]]](),
    )
    for i in rng.permutation(len(eval_set.queries))[:most].tolist():
        query = eval_set.queries[i]
        gold = rng.permutation(index.papers.rows_of(sorted(eval_set.qrels[query.id])))
        for way in (drafts.marked, drafts.half) if len(gold) > 1 else ():
            lists, rest = way(query, gold)
            left = dict.fromkeys(index.papers.ids_at(rest.tolist()), 1)
            for name, rows in lists.items() if left else ():
                ids = index.papers.ids_at(rows.tolist())
                scores = {docid: -float(place) for place, docid in enumerate(ids)}
                runs.setdefault(name, {})[query.id] = Ranking.from_scores(scores)
                golds.setdefault(name, {})[query.id] = left
    tables = {name: per_query(Run(name, of), golds[name]) for name, of in runs.items()}
    figures: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        other, figures[name] = (
            tables[COMPARED.get(name, name)],
            {"queries": len(golds[name])},
        )
        for metric in METRICS:
            figures[name][metric] = round(float(table[metric].mean()), 5)
            figures[name][f"p {metric}"] = student_test(table[metric], other[metric])
    of = {
        "corpus": index.path.name,
        "encoder": drafts.retriever.encoder or None,
        "lists": figures,
    }
    return of | {
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]})
    }


def page(results: list[dict[str, Any]]) -> str:
    """Return the results as a page."""
    test = "p: Student's paired t-test against the list that the last column names."
    lines = [
        "# Marks in a list",
        "",
        *(__doc__ or "").splitlines()[2:],
        "",
        test,
        "",
        HEAD,
    ]
    for one in results:
        start = f"| {one['corpus']} | {one['encoder'] or 'none'} "
        for name, other in ({NONE: "", HALF: ""} | COMPARED).items():
            row = one["lists"].get(name)
            # else the same list
            if row and (name in (NONE, HALF) or row["p f1@20"] < 1):
                cells = " | ".join(
                    f"{row[m]:.3f} | {row[f'p {m}']:.4f}" for m in METRICS
                )
                lines.append(
                    f"{start}| {row['queries']} | {name} | {cells} | {other} |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the corpora that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="index folders")
    parser.add_argument(
        "--queries", type=int, default=120, help="test papers, drawn at random"
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.indexes:
        result = orjson.dumps(measured(open_index(folder), options.queries), option=2)
        (RESULTS / f"{folder.name}.json").write_bytes(result + b"\n")
    files = sorted(RESULTS.glob("*.json"))
    text = page([orjson.loads(file.read_bytes()) for file in files])
    (RESULTS.parents[1] / "MARKS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
