"""Measure `recommend --context`: what a sentence, its draft and both find; write one JSON file per corpus, and a page.

    python experiments/contexts.py indexes/vis indexes/ecology --settings   # sentences of abstracts: `proxies`
    python experiments/contexts.py indexes/mine --jats articles/*.xml   # sentences that cite, from full texts
    python experiments/contexts.py indexes/mine --topics topics.txt --qrels qrels.txt

Sentences of abstracts are a substitute for sentences that cite, see `context_queries.proxies`. With `--settings`, all
settings are compared on the dev split, otherwise their stored figures stay. The setting that citerec uses is measured
on the test split.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from context_queries import ContextQuery, from_jats, from_trec, proxies

from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.evaluate.significance import student_test
from citerec.folder import IndexFolder, open_index
from citerec.fuse import rrf, weighted_sum
from citerec.java import start_jvm
from citerec.matching.recognise import recognise
from citerec.pipeline import rank_stages
from citerec.provenance import provenance
from citerec.rank.ranker import DEFAULT, open_ranker
from citerec.retrieve.context import ContextConfig, ContextRetriever, Source, sentence_of
from citerec.retrieve.hybrid import HybridRetriever, open_hybrid
from citerec.rules.eligible import eligible
from citerec.rules.known import CitationScope, TemporalGraph
from citerec.types import CandidateSet, Hits, QueryBatch

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "contexts"
PAGE = HERE / "CONTEXTS.md"
WEIGHTS = tuple(round(0.1 * step, 1) for step in range(1, 10))  # of the sentence
METRICS = ("R@10", "nDCG@10")
TOP = 10
Table = dict[str, np.ndarray[Any, Any]]  # metrics -> values, shape (queries,)


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="index folders")
    parser.add_argument("--queries", type=int, default=250, help="sentences, drawn at random")
    parser.add_argument("--settings", action="store_true", help="try all settings on dev, too")
    parser.add_argument("--jats", type=Path, nargs="+", default=[], help="full texts in JATS XML")
    parser.add_argument("--topics", type=Path, help="sentences as TREC topics, with --qrels")
    parser.add_argument("--qrels", type=Path, help="their gold")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm(None)
    for folder in options.indexes:
        index = open_index(folder)
        if options.jats or options.topics:
            given = (
                from_jats(options.jats, index.papers)
                if options.jats
                else from_trec(options.topics, options.qrels)
            )
            figures = Measured(index, [*given][: options.queries]).figures()
            sys.stdout.buffer.write(orjson.dumps(figures, option=orjson.OPT_INDENT_2) + b"\n")
            continue
        path = RESULTS / f"{folder.name}.json"
        before: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
        dev = None if options.settings else before.get("dev")
        result = of_proxies(index, options.queries, dev)
        path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
        print(f"contexts: {path}", file=sys.stderr)
    if not (options.jats or options.topics):
        PAGE.write_text(page(), encoding="utf-8")


def of_proxies(index: IndexFolder, most: int, dev: dict[str, Any] | None) -> dict[str, Any]:
    """Return the figures of all settings on dev, if they are not known, and of the setting in use on test."""
    if dev is None:
        tried = Measured(index, proxies(index, "dev", most))
        dev = {"queries": len(tried.gold), "gold": tried.mean_gold, **tried.settings()}
    test = Measured(index, proxies(index, "test", most))
    return {
        "corpus": index.manifest.name,
        "encoder": test.retriever.encoder or None,
        "dev": dev,
        "test": {"queries": len(test.gold), "gold": test.mean_gold, **test.figures()},
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]}),
    }


class Measured:
    """The candidates of sentences and of their drafts, each searched once."""

    def __init__(self, index: IndexFolder, given: Sequence[ContextQuery]) -> None:
        """Search; the queries may not see papers of a later year, nor the article itself."""
        self.index = index
        self.retriever: HybridRetriever = open_hybrid(index, RecommendConfig())
        recognised = recognise([one.query for one in given], index.papers)
        self.queries = [one.query for one in recognised]
        self.rules = eligible(self.queries, index.papers)
        self.gold = [set(index.papers.rows_of(sorted(one.gold)).tolist()) for one in given]
        self.mean_gold = round(float(np.mean([len(one) for one in self.gold])), 2)
        sentences = [sentence_of(query) for query in self.queries]
        self.sentence = self.retriever.candidates(sentences, self.rules, RANKING_DEPTH)
        self.draft = self.retriever.candidates(self.queries, self.rules, RANKING_DEPTH)

    def figures(self) -> dict[str, Any]:
        """Return the figures of a sentence, its draft and both, with the settings in use, and p of both."""
        tables = {
            "bm25 sentence": self.table([one.hits_by_source["bm25"] for one in self.sentence]),
            "bm25 draft": self.table([one.hits_by_source["bm25"] for one in self.draft]),
            "sentence": self.table([one.hits for one in self.sentence]),
            "draft": self.table([one.hits for one in self.draft]),
            "both": self.table([one.hits for one in self.both()]),
            "ranker, draft": self.table(self.ranked(self.draft)),
            "ranker, both": self.table(self.ranked(self.both())),
        }
        best = max(("sentence", "draft"), key=lambda name: tables[name]["nDCG@10"].mean())
        p = {name: student_test(tables[best][name], tables["both"][name]) for name in METRICS}
        return {"figures": {name: _means(table) for name, table in tables.items()}, "p": p}

    def settings(self) -> dict[str, Any]:
        """Return the figures of every weight and method of fusion, and of the sources of the model's features."""
        rank = self.index.id_rank
        methods: dict[str, tuple[Callable[[list[Hits], list[float]], Hits], str]] = {
            "bm25, rrf 10": (lambda hits, w: rrf(hits, rank, k0=10, weights=w), "bm25"),
            "rrf 10": (lambda hits, w: rrf(hits, rank, k0=10, weights=w), ""),
            "rrf 60": (lambda hits, w: rrf(hits, rank, k0=60, weights=w), ""),
            "scores": (lambda hits, w: weighted_sum(hits, w, rank), ""),
        }
        found: dict[str, Any] = {}
        for name, (fused, source) in methods.items():
            for weight in (0.0, *WEIGHTS, 1.0):
                hits = [
                    fused([_hits(a, source), _hits(b, source)], [weight, 1 - weight])
                    for a, b in zip(self.sentence, self.draft, strict=True)
                ]
                found[f"{name}, weight {weight:g}"] = _means(self.table(hits))
        ranked = {
            f"{source} {weight:g}": _means(self.table(self.ranked(self.both(source, weight))))
            for source in Source
            for weight in (0.5, 0.8)
        }
        return {"fusion": found, "features of the ranker": ranked}

    def both(
        self, features: Source | None = None, weight: float | None = None
    ) -> list[CandidateSet]:
        """Return the fused candidates, as `ContextRetriever` fuses them."""
        config = ContextConfig()
        config = replace(
            config,
            features=features or config.features,
            weight=config.weight if weight is None else weight,
        )
        context = ContextRetriever(self.retriever, self.index.id_rank, config)
        pairs = zip(self.draft, self.sentence, strict=True)
        return [context.fused(draft, sentence, RANKING_DEPTH) for draft, sentence in pairs]

    def ranked(self, candidates: Sequence[CandidateSet]) -> list[Hits]:
        """Return the candidates in the order of the default learning-to-rank model, with citations of earlier years."""
        batch = QueryBatch(self.queries, self.rules)
        graph = TemporalGraph(self.index, CitationScope.EARLIER)
        for stage in rank_stages(graph, open_ranker(DEFAULT), None, k=TOP):
            candidates = stage.run(batch, candidates)
        return [one.hits for one in candidates]

    def table(self, hits: Sequence[Hits]) -> Table:
        """Return the metrics of each query."""
        found = [
            [row in gold for row in one.rows[:TOP].tolist()]
            for one, gold in zip(hits, self.gold, strict=True)
        ]
        sizes = [len(gold) for gold in self.gold]
        discount = 1 / np.log2(np.arange(2, TOP + 2))
        return {
            "R@10": np.array([sum(one) / n for one, n in zip(found, sizes, strict=True)]),
            "nDCG@10": np.array(
                [
                    float(np.dot(one, discount[: len(one)]) / discount[:n].sum())
                    for one, n in zip(found, sizes, strict=True)
                ]
            ),
        }


def _hits(candidates: CandidateSet, source: str) -> Hits:
    return candidates.hits_by_source[source] if source else candidates.hits


def _means(table: Table) -> dict[str, float]:
    return {name: round(float(values.mean()), 4) for name, values in table.items()}


def page() -> str:
    """Return the results as a page."""
    results: list[Mapping[str, Any]] = [
        orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))
    ]
    lines = [
        "# Sentences that need references",
        "",
        "`recommend --context` on the test split (`python experiments/contexts.py INDEX...`). The corpora have no full",
        "texts, so these are not sentences that cite: a query is the sentence of a test paper's abstract with the most",
        "words of the title of one of its references. Gold are its references whose titles share at least two words",
        "with the sentence. That favours searching by words, and the draft (title and abstract) holds the sentence.",
        "p: Student's paired t-test of both against the better of sentence and draft.",
        "",
        "| corpus | sentences | gold | searched | R@10 | nDCG@10 | p (nDCG@10) |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        for name, figures in one["test"]["figures"].items():
            p = f"{one['test']['p']['nDCG@10']:.4f}" if name == "both" else ""
            queries, gold = one["test"]["queries"], one["test"]["gold"]
            shown = " | ".join(f"{figures[metric]:.3f}" for metric in METRICS)
            lines.append(f"| {one['corpus']} | {queries} | {gold:.1f} | {name} | {shown} | {p} |")
    return "\n".join([*lines, *_dev_lines(results)]) + "\n"


def _dev_lines(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of settings on dev."""
    shown = (0, 0.3, 0.5, 0.6, 0.7, 1)
    lines = [
        "",
        "nDCG@10 on the dev split by the weight of the sentence (BM25 and vectors, fused by ranks with k 60 or 10, or",
        "by scores), and by the search whose scores the learning-to-rank model reads. citerec uses ranks, k 60, weight",
        "0.6 and both. A weight of 0.5 is as good here, but these drafts hold their sentences, which favours drafts.",
        "",
        f"| corpus | setting | {' | '.join(map(str, shown))} |",
        f"|---|---|{'---|' * len(shown)}",
    ]
    for one in results:
        for method in ("rrf 60", "rrf 10", "scores"):
            of_method = (one["dev"]["fusion"][f"{method}, weight {weight:g}"] for weight in shown)
            figures = " | ".join(f"{figure['nDCG@10']:.3f}" for figure in of_method)
            lines.append(f"| {one['corpus']} | {method} | {figures} |")
    lines += ["", "| corpus | the model reads | weight 0.5 | weight 0.8 |", "|---|---|---|---|"]
    for one in results:
        for source in Source:
            of_source = [one["dev"]["features of the ranker"][f"{source} {w}"] for w in (0.5, 0.8)]
            figures = " | ".join(f"{figure['nDCG@10']:.3f}" for figure in of_source)
            lines.append(f"| {one['corpus']} | {source} | {figures} |")
    return lines


if __name__ == "__main__":
    main()
