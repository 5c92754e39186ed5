"""Measure `recommend --context`, and train the model that ranks for sentences.

    python experiments/contexts.py build                # indexes/biomed.contexts and indexes/biomed.plain
    python experiments/contexts.py train indexes/biomed.contexts indexes/mapping
    python experiments/contexts.py measure indexes/biomed.contexts indexes/biomed.plain indexes/labour

`build` joins the sentences of ../shared/data/biomed/fulltext.jsonl.gz to its corpus. Sentences of these two indexes are
those; of another one, they are those of abstracts, and gold are the references whose titles share at least two words
with the sentence.
"""

import argparse
import gzip
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from fulltexts import lines_of

from citerec.build.corpora import write_lines
from citerec.build.index import BuildConfig, build_index
from citerec.config import RANKING_DEPTH, RecommendConfig
from citerec.drafts.context import without_markers
from citerec.encode.machine import provenance
from citerec.files.arrays import Rows
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder, open_index
from citerec.index.splits import read_ids
from citerec.pipeline import Pipeline, contexts_of, rank_stages
from citerec.rank.ltr import (
    DEFAULT,
    SENTENCES,
    RankedCandidates,
    Variant,
    open_ranker,
)
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.eligible import eligible
from citerec.text import STOP_WORDS, WORD, sentences
from citerec.train.boost import IndexExamples, RankerExamples, Trees
from citerec.train.data import LabelledQueries
from citerec.train.ranker import NEGATIVES, Gatherer, sampled, train_on
from citerec.train.settings import RankerTraining
from citerec.types import Hits, Query, QueryBatch, QueryKind

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "contexts"
DATA = HERE.parent.parent / "shared" / "data" / "biomed"
INDEXES = HERE.parent / "indexes"
OF_FULLTEXT = ("biomed.contexts", "biomed.plain")
MOST_MARKS = 3  # of a measured sentence
PER_ABSTRACT = 4  # sentences
# train sentences of an index without full texts, whose gold is a guess
OF_ABSTRACTS = 500
SAME_YEAR = -1  # a lag: citations of the year of a query are known, as for a draft
ABOUT = f"""# Sentences of a draft

`recommend --context` by the default ranker, made by `python experiments/contexts.py measure INDEX...`. Known are the
citations and sentences of train papers of an earlier year. `biomed` has real sentences of test articles with at most
{MOST_MARKS} references, and these are gold. The others have sentences of test papers' abstracts; gold are the
references whose titles share at least two words with the sentence, which favours signals of titles. "alone": the
sentence is searched alone; "draft": with title and abstract of its paper, an abstract without the sentence. "draft's
model" leaves out the model of sentences. MRR with 95 % interval (bootstrap over papers).
"""


def main() -> None:
    """Build, train or measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("build", "train", "measure"))
    parser.add_argument("indexes", type=Path, nargs="*", help="index folders")
    parser.add_argument("--queries", type=int, default=4500, help="of each index")
    parser.add_argument("--output", type=Path, default=SENTENCES)
    options = parser.parse_args()
    if options.what == "build":
        build()
    elif options.what == "train":
        train([*map(open_index, options.indexes)], options.output, options.queries)
    else:
        RESULTS.mkdir(parents=True, exist_ok=True)
        for folder in options.indexes:
            result = measured(open_index(folder), options.queries)
            content = orjson.dumps(result, option=orjson.OPT_INDENT_2)
            (RESULTS / f"{folder.name}.json").write_bytes(content + b"\n")
        (HERE / "CONTEXTS.md").write_text(page(), encoding="utf-8")


def build() -> None:
    """Index the corpus of biomed with MiniLM, with and without the sentences of its full texts."""
    contexts: dict[str, list[Any]] = {}
    for article in lines_of(DATA / "fulltext.jsonl.gz"):
        texts = [(s["text"], s["cites"]) for s in article["sentences"] if s["cites"]]
        contexts[article["id"]] = [{"text": t, "cites": c} for t, c in texts]
    corpus = INDEXES / ".biomed.contexts.corpus"
    shutil.copytree(DATA / "splits", corpus / "splits", dirs_exist_ok=True)
    with (
        gzip.open(DATA / "corpus.jsonl.gz") as papers,
        write_lines(corpus / "corpus.jsonl.gz") as write,
    ):
        for line in papers:
            paper = orjson.loads(line)
            paper["contexts"] = contexts.get(paper["id"], [])
            write(orjson.dumps(paper, option=orjson.OPT_APPEND_NEWLINE))
    config = BuildConfig(encoder="minilm", force=True, resume=True)
    for name, source in zip(
        OF_FULLTEXT, (corpus, DATA / "corpus.jsonl.gz"), strict=True
    ):
        build_index(source, INDEXES / name, config)


# --- Sentences


def sentences_of(
    index: IndexFolder, ids: Sequence[str], count: int, rng: np.random.Generator
) -> list[tuple[Query, frozenset[str]]]:
    """Draw sentences of some papers, each with its draft, and the ids of the papers that it cites."""
    wanted = {*ids}
    if index.manifest.name in OF_FULLTEXT:
        found = [
            (
                article["id"],
                without_markers(sentence["text"]),
                frozenset(sentence["cites"]),
            )
            for article in lines_of(DATA / "fulltext.jsonl.gz")
            if article["id"] in wanted
            for sentence in article["sentences"]
            if sentence["cites"] and sentence["marks"] <= MOST_MARKS
        ]
    else:
        found = of_abstracts(index, ids)
    found = [item for item in found if len(WORD.findall(item[1])) > 2]
    chosen = [found[i] for i in np.sort(rng.permutation(len(found))[:count]).tolist()]
    rows = index.papers.rows_of([docid for docid, _, _ in chosen]).tolist()
    papers = index.papers.at(rows)
    drafts = [Query.of(papers[row]) for row in rows]
    return [
        (replace(draft, context=text, abstract=without(draft.abstract, text)), gold)
        for draft, (_, text, gold) in zip(drafts, chosen, strict=True)
    ]


def of_abstracts(
    index: IndexFolder, ids: Sequence[str]
) -> list[tuple[str, str, frozenset[str]]]:
    """Return sentences of abstracts with references whose titles have two of their words: paper, text, ids."""
    rows = index.papers.rows_of(ids)
    found: list[tuple[str, str, frozenset[str]]] = []
    for row, paper in index.papers.at(rows[rows >= 0].tolist()).items():
        cited = index.papers.at(index.graph.references(row).tolist()).values()
        titles = [(one.id, words(one.title)) for one in cited]
        for text in sentences(paper.abstract)[:PER_ABSTRACT]:
            of_text = words(text)
            gold = frozenset(i for i, title in titles if len(title & of_text) > 1)
            if gold:
                found.append((paper.id, text, gold))
    return found


def words(text: str) -> frozenset[str]:
    """Return the words of a text that are no function words."""
    found = (word.lower() for word in WORD.findall(text) if len(word) > 2)
    return frozenset(found) - STOP_WORDS


def without(abstract: str, sentence: str) -> str:
    """Return an abstract without one of its sentences."""
    return " ".join(abstract.replace(sentence, " ").split())


def alone(query: Query) -> Query:
    """Return the query for a sentence without its draft; its year and id stay."""
    fields = {"title": query.context, "kind": QueryKind.SENTENCE}
    return replace(query, abstract="", authors=(), venue="", context="", **fields)


def labelled(
    index: IndexFolder, items: Sequence[tuple[Query, frozenset[str]]]
) -> LabelledQueries:
    """Return sentences with the rules of their papers and the rows of what they cite."""
    queries = [query for query, _ in items]
    gold = [index.papers.rows_of(sorted(ids)) for _, ids in items]
    rules = eligible(queries, index.papers)
    return LabelledQueries(queries, rules, gold=gold)


# --- Training


def train(indexes: Sequence[IndexFolder], output: Path, count: int) -> None:
    """Train the model of sentences on train papers of some indexes; a tenth of these papers are for early stopping.

    Half of the sentences are without their drafts. Of an index with contexts, a third are searched without these; the
    others know the citations of their own year, as drafts do: the corpus of full texts has few years.
    """
    config = RankerTraining(reranker="none", threads=1, trees=300)
    examples = [examples_of(index, count, config) for index in indexes]
    base = Trees(open_ranker(DEFAULT).model)
    train_on(examples, output, config, print, [Variant.FULL], base=base)


def examples_of(
    index: IndexFolder, count: int, config: RankerTraining
) -> IndexExamples:
    """Return the examples of the sentences of one index."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(read_ids(index.splits / "train.ids")).tolist()
    tenth = len(ids) // 10
    if index.manifest.name not in OF_FULLTEXT:
        count = min(count, OF_ABSTRACTS)
    parts: list[RankerExamples] = []
    for papers, share, sample in ((ids[tenth:], 1.0, True), (ids[:tenth], 0.1, False)):
        drawn = sentences_of(index, papers, round(count * share), rng)
        items = [
            (alone(query) if rng.random() < 0.5 else query, gold)
            for query, gold in drawn
        ]
        how = [(index, 0)]
        if index.contexts:
            how = [(index, SAME_YEAR)] * 2 + [(replace(index, contexts=None), 0)]
        gathered: list[RankerExamples] = []
        for number, (opened, lag) in enumerate(how):
            gatherer = Gatherer(opened, config, print)
            queries = labelled(index, items[number :: len(how)])
            for part in gatherer.gathered(queries, lag):
                done = (
                    sampled(*part, NEGATIVES, rng)
                    if sample
                    else RankerExamples.one(*part)
                )
                gathered.append(done)
                if len(gathered) % 500 == 0:
                    print(index.path.name, len(gathered), flush=True)
        parts.append(RankerExamples.joined(gathered))
    return IndexExamples(index, parts[0], parts[1], dev_teaches=False)


# --- Measuring


def measured(index: IndexFolder, count: int) -> dict[str, Any]:
    """Return MRR, R@10 and R@1000 of test sentences, alone and with their drafts, by each ranking."""
    rng = np.random.default_rng(1)
    items = sentences_of(index, read_ids(index.splits / "test.ids"), count, rng)
    graph = TemporalGraph(index, CitationScope.TRAIN)
    first_stage = open_hybrid(index, RecommendConfig())
    ranker = open_ranker(DEFAULT)
    contexts = contexts_of(graph, first_stage)
    stages = rank_stages(graph, ranker, None, contexts)
    pipeline = Pipeline(first_stage, stages, RANKING_DEPTH, 32)
    results: dict[str, Any] = {}
    for form in ("alone", "draft"):
        asked = [(alone(q) if form == "alone" else q, gold) for q, gold in items]
        queries = labelled(index, asked)
        lists: dict[str, list[Rows]] = {"draft's model": [], "default": []}
        batch = QueryBatch(queries.queries, queries.eligible)
        for _, candidates in pipeline.run(batch):
            for found in candidates:
                assert isinstance(found, RankedCandidates)
                rows = found.expanded.rows
                scores = ranker.score(found.matrix)
                by_draft = Hits.ordered(rows, scores, index.id_rank)
                lists["draft's model"].append(by_draft.rows)
                lists["default"].append(found.rows)
        for name, ranked in lists.items():
            results[f"{form}, {name}"] = summary(ranked, queries)
            print(index.path.name, form, name, results[f"{form}, {name}"], flush=True)
    facts = {"corpus_sha256": index.manifest.corpus["sha256"]}
    return {
        "sentences": len(items),
        "results": results,
        "provenance": provenance(facts),
    }


def summary(lists: Sequence[Rows], queries: LabelledQueries) -> dict[str, Any]:
    """Return the means over sentences, and an interval of the MRR by a bootstrap over their papers."""
    measures: list[tuple[float, float, float]] = []
    for found, gold in zip(lists, queries.gold, strict=True):
        ranks = np.flatnonzero(np.isin(found[:1000], gold)) + 1
        first = float(1 / ranks[0]) if len(ranks) else 0.0
        at_10 = float((ranks <= 10).sum() / len(gold))
        measures.append((first, at_10, float(len(ranks) / len(gold))))
    table = np.array(measures)
    papers = np.unique([query.id for query in queries.queries], return_inverse=True)[1]
    rng = np.random.default_rng(2)
    number = papers.max() + 1
    sums = np.bincount(papers, table[:, 0], number)
    sizes = np.bincount(papers, minlength=number)
    drawn = rng.integers(0, number, (1000, number))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    names = ("MRR", "R@10", "R@1000")
    return dict(zip(names, table.mean(axis=0).tolist(), strict=True)) | {
        "ci95": [low, high]
    }


def page() -> str:
    """Return the results as a page."""
    lines = ["| corpus | sentences | ranked | MRR | 95 % | R@10 | R@1000 |"]
    lines.append("|---|--:|---|--:|---|--:|--:|")
    for path in sorted(RESULTS.glob("*.json")):
        result = orjson.loads(path.read_bytes())
        for name, row in result["results"].items():
            low, high = row["ci95"]
            values = f"{row['MRR']:.3f} | {low:.3f}-{high:.3f} | {row['R@10']:.3f} | {row['R@1000']:.3f}"
            lines.append(f"| {path.stem} | {result['sentences']} | {name} | {values} |")
    return "\n".join([ABOUT, *lines, ""])


if __name__ == "__main__":
    main()
