"""Measure `recommend --context`: candidates of sentences, and how sure they are; write JSON files, and a page.

python experiments/contexts.py indexes/labour indexes/climate
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from sklearn.metrics import roc_auc_score

from citerec.bibliography.keys import split_name
from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.drafts.context import has_marker, without_markers, without_query_markers
from citerec.encode.machine import provenance
from citerec.evaluation.protocol import load_eval_set
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder, open_index
from citerec.pipeline import Pipeline, rank_stages
from citerec.rank.ltr import DEFAULT, open_ranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.eligible import eligible
from citerec.text import STOP_WORDS, WORD, sentences
from citerec.types import CandidateSet, Query, QueryBatch, QueryKind

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "contexts"
PAPERS = 12  # of the test split, and of those whose abstracts have markers
YEAR = r"((?:19|20)\d\d)"
NAMED = re.compile(
    rf"([A-Z][\w'’-]+)(?:\s+(?:et al\.?|and|&|,)[^()]{{0,40}}?)?[\s,(\[]+{YEAR}"
)
ABOUT = """# Sentences of a draft without a reference

`recommend --context` by the default ranker (`python experiments/contexts.py INDEX...`). No corpus has full
texts. The queries "marked" are the sentences of abstracts that name authors and years of references; gold are
these. The queries "words" are sentences of test papers' abstracts; gold are the references whose titles share at
least two words with the sentence, which favours signals of titles. The draft is the abstract without the sentence.

A sentence is searched alone, its draft alone, or both. "No weights" leaves out what the ranker adds to the scores of a
sentence (`SENTENCE_WEIGHTS`). The weights were chosen on sentences of labour, biomed, electrical, veterinary, mapping
and buildings; the other corpora had no part in it.
"""
PLACES = """
The place: two sentences of one abstract, "words" of different references, are joined to one, with a citation after
each, one of them `[CITE]`. Preferred: how often gold of this claim is ranked above that of the other. Without the
marker, both claims are searched, and the share is a half by symmetry.
"""
SEPARATED = """
AUC: how well a signal separates sentences with a citation marker from the others of these abstracts, lists with
gold among the first three from those without, and sentences of a draft from those of another paper in its place.
The probability is that of the best paper; the agreement is 1 if the searches for the sentence and for its draft
find the same paper first. The sureness that `recommend` shows is their product.
"""


@dataclass(frozen=True)
class Item:
    """A sentence of an abstract."""

    query: Query  # with the sentence as its context
    gold: frozenset[int]  # rows of the references that the sentence is about
    cites: bool = False  # whether it has a citation marker
    is_own: bool = True  # whether it is a sentence of the paper of the query


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "indexes", type=Path, nargs="*", help="index folders with a test split"
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.indexes:
        index = open_index(folder)
        result: dict[str, Any] = {
            kind: measured(index, items)
            for kind, items in (
                ("marked", [*marked(index)]),
                ("words", [*of_test(index)]),
            )
            if any(item.gold for item in items)
        }
        result |= {
            "encoder": open_hybrid(index, RecommendConfig()).encoder or None,
            "provenance": provenance(
                {"corpus_sha256": index.manifest.corpus["sha256"]}
            ),
        }
        text = orjson.dumps(result, option=orjson.OPT_INDENT_2)
        (RESULTS / f"{folder.name}.json").write_bytes(text + b"\n")
    (HERE / "CONTEXTS.md").write_text(page(), encoding="utf-8")


def marked(index: IndexFolder) -> Iterator[Item]:
    """Yield the sentences of the first abstracts that name one of their references."""
    papers, left = index.papers.at(range(len(index.papers))), PAPERS
    for row, paper in papers.items():
        if not has_marker(paper.abstract):
            continue
        known = {
            (split_name(name).family.casefold(), (papers[one].year or 0) + late): one
            for one in index.graph.references(row).tolist()
            for name in papers[one].authors[:3]
            for late in (-1, 0, 1)
        }
        items: list[Item] = []
        for text in sentences(paper.abstract):
            draft = abstract_without(paper.abstract, text)
            names = {(name.casefold(), int(year)) for name, year in NAMED.findall(text)}
            gold = frozenset(known[key] for key in names & known.keys())
            if len(WORD.findall(plain := without_markers(text))) >= 5:
                query = replace(Query.of(paper), abstract=draft, context=plain)
                items.append(Item(query, gold, cites=has_marker(text)))
        if left and any(item.gold and item.cites for item in items):
            left -= 1
            yield from items


def of_test(index: IndexFolder) -> Iterator[Item]:
    """Yield up to six sentences of each test paper, and as many of another one as if they were its own."""
    eval_set = load_eval_set(index, "test")
    places = (
        np.random.default_rng(0).permutation(len(eval_set.queries))[:PAPERS].tolist()
    )
    texts = [sentences(eval_set.queries[place].abstract)[:6] for place in places]
    for number, query in enumerate(eval_set.queries[place] for place in places):
        rows = index.papers.rows_of(sorted(eval_set.qrels[query.id]))
        titles = [*map(words, index.papers.texts("title", rows).to_pylist())]
        for text in texts[number]:
            pairs = zip(rows.tolist(), titles, strict=True)
            gold = frozenset(
                row for row, title in pairs if len(title & words(text)) > 1
            )
            draft = abstract_without(query.abstract, text)
            yield Item(replace(query, abstract=draft, context=text), gold)
        for text in texts[number - 1]:
            yield Item(replace(query, context=text), frozenset(), is_own=False)


def abstract_without(abstract: str, sentence: str) -> str:
    """Return an abstract without one of its sentences."""
    return " ".join(abstract.replace(sentence, " ").split())


def alone(query: Query) -> Query:
    """Return the query for a sentence without its draft; its year stays, so that no later paper is found."""
    sentence = replace(
        query, title=query.context, abstract="", authors=(), venue="", context=""
    )
    return replace(sentence, kind=QueryKind.SENTENCE)


def claims(items: Sequence[Item]) -> Iterator[tuple[Item, frozenset[int]]]:
    """Yield pairs of sentences of one paper as one sentence with two claims, and the gold of the other claim."""
    for one, two in pairwise(item for item in items if item.gold and item.is_own):
        if one.query.id == two.query.id and not one.gold & two.gold:
            first, second = (item.query.context.rstrip(" .") for item in (one, two))
            for gold, other, ends in (
                (one, two, ("CITE", "12")),
                (two, one, ("12", "CITE")),
            ):
                text = f"{first} [{ends[0]}], and {second} [{ends[1]}]."
                yield (
                    replace(
                        one, query=replace(one.query, context=text), gold=gold.gold
                    ),
                    other.gold,
                )


def words(text: str) -> frozenset[str]:
    """Return the words of a text that are no function words."""
    return (
        frozenset(one.lower() for one in WORD.findall(text) if len(one) > 2)
        - STOP_WORDS
    )


def measured(index: IndexFolder, items: Sequence[Item]) -> dict[str, Any]:
    """Return R@3 and MRR of the candidates, and how well each signal separates."""
    graph = TemporalGraph(index, CitationScope.PUBLISHED)
    stages = rank_stages(graph, open_ranker(DEFAULT), None)
    pipeline = Pipeline(
        open_hybrid(index, RecommendConfig()), stages, RANKING_DEPTH, 32
    )

    no_weights = rank_stages(
        graph, replace(open_ranker(DEFAULT), calibration=None), None
    )
    before = replace(pipeline, stages=no_weights)

    def ranked(queries: list[Query], by: Pipeline = pipeline) -> list[CandidateSet]:
        return by.all(QueryBatch(queries, eligible(queries, index.papers)))

    with_gold = [item for item in items if item.gold]
    both = ranked([item.query for item in items])
    lists = {
        "sentence, no weights": ranked(
            [alone(item.query) for item in with_gold], before
        ),
        "sentence": ranked([alone(item.query) for item in with_gold]),
        "draft": ranked([replace(item.query, context="") for item in with_gold]),
        "both, no weights": ranked([item.query for item in with_gold], before),
        "both": [one for one, item in zip(both, items, strict=True) if item.gold],
    }
    gold = [item.gold for item in with_gold]
    places = [*claims(items)]
    at_place = ranked([without_query_markers(alone(item.query)) for item, _ in places])
    plain = ranked(
        [
            alone(replace(i.query, context=without_markers(i.query.context)))
            for i, _ in places
        ]
    )
    preferred = [
        first(o, i.gold) > first(o, g)
        for o, (i, g) in zip(at_place, places, strict=True)
    ]
    of_place = {
        "preferred": np.mean(preferred).item(),
        **{
            name: np.mean(
                [first(o, i.gold) for o, (i, _) in zip(found, places, strict=True)]
            ).item()
            for name, found in (("MRR, no place", plain), ("MRR", at_place))
        },
    }
    best = [one.probabilities.scores[0] if one.probabilities else 0 for one in both]
    signals = {
        "probability": np.array(best),
        "agreement": np.array([o.agreement for o in both]),
    }
    signals["sureness"] = signals["probability"] * signals["agreement"]
    pairs = zip(both, items, strict=True)
    groups = {  # which sentences are compared, and those whose signal shall be high
        "a citation": ([item.is_own for item in items], [item.cites for item in items]),
        "right": (
            [*map(bool, (i.gold for i in items))],
            [top(o, i.gold) > 0 for o, i in pairs],
        ),
        "own": ([True] * len(items), [item.is_own for item in items]),
    }
    return {
        "sentences": len(items),
        "with gold": len(gold),
        "candidates": {
            name: {
                "R@3": np.mean(
                    [top(*one) for one in zip(found, gold, strict=True)]
                ).item(),
                "MRR": np.mean(
                    [first(*one) for one in zip(found, gold, strict=True)]
                ).item(),
            }
            for name, found in lists.items()
        },
        "places": {"claims": len(places), **of_place} if places else {},
        "auc": {
            what: {
                s: float(roc_auc_score(np.array(high)[w], v[w]))
                for s, v in signals.items()
            }
            for what, (w, high) in groups.items()
            if len(set(np.array(high)[w].tolist())) == 2
        },
    }


def top(candidates: CandidateSet, gold: frozenset[int]) -> float:
    """Return the share of the gold papers that are among the first three."""
    return len({*candidates.rows[:3].tolist()} & gold) / max(len(gold), 1)


def first(candidates: CandidateSet, gold: frozenset[int]) -> float:
    """Return the reciprocal rank of the first gold paper; 0 for none."""
    return next(
        (1 / n for n, row in enumerate(candidates.rows.tolist(), 1) if row in gold), 0.0
    )


def page() -> str:
    """Return the results as a page."""
    found = [
        (path.stem, orjson.loads(path.read_bytes()))
        for path in sorted(RESULTS.glob("*"))
    ]
    lines = [
        "| corpus | queries | with gold | searched | R@3 | MRR |",
        "|---|---|---|---|---|---|",
    ]
    table = [
        "| corpus | queries | separated | probability | agreement | sureness |",
        lines[1],
    ]
    places = [
        "| corpus | claims | preferred | MRR, no place | MRR |",
        "|---|---|---|---|---|",
    ]
    names = ((f"{name} ({one['encoder'] or 'BM25 alone'})", one) for name, one in found)
    for name, kind, one in (
        (n, k, f[k]) for n, f in names for k in ("marked", "words") if k in f
    ):
        for row, of in one["candidates"].items():
            cells = (
                name,
                kind,
                one["with gold"],
                row,
                f"{of['R@3']:.3f}",
                f"{of['MRR']:.3f}",
            )
            lines.append(f"| {' | '.join(map(str, cells))} |")
        if kind == "words" and (at := one["places"]):
            places.append(
                f"| {name} | {' | '.join(f'{value:.3g}' for value in at.values())} |"
            )
        for what, signals in one["auc"].items():
            cells = name, kind, what, *(f"{value:.3f}" for value in signals.values())
            table.append(f"| {' | '.join(cells)} |")
    return "\n".join([ABOUT, *lines, PLACES, *places, SEPARATED, *table, ""])


if __name__ == "__main__":
    main()
