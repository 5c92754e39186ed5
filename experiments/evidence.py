"""Measure what groups of features of the learning-to-rank model add on a corpus that it was not trained on.

    python experiments/evidence.py indexes/vis indexes/biomed indexes/ecology indexes/labour --examples /tmp/examples

For each index, models are trained on the train queries of all others, with and without each group of features, and
measured on its own dev queries: F1@20 and MRR, each the mean of a query's values over `SEEDS`. The examples are
gathered once, with all features, and kept in the folder `--examples`. experiments/results/evidence/ keeps the rows.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.evaluate.significance import student_test
from citerec.folder import IndexFolder, open_index
from citerec.java import start_jvm
from citerec.provenance import provenance
from citerec.rank.catalogue import NAMES
from citerec.rules.held_out import held_out
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.train.ranker.boost import fit
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples
from citerec.train.ranker.gather import Gatherer
from citerec.train.ranker.queries import dev_queries, load_train
from citerec.train.record import table
from citerec.types import no_progress

HERE = Path(__file__).resolve().parent
PAGE, RESULTS = HERE / "EVIDENCE.md", HERE / "results" / "evidence"
SEEDS = (0, 1, 2)
GROUPS: Mapping[str, Sequence[str]] = {
    "linked vectors": ("linked_similarity",),
    "venue citations": ("venue_citations",),
    "walk": ("walk",),
    "sentences": (
        "sentence",
        "sentences_near",
        "sentence_bm25",
        "sentence_bm25_rank",
        "title_found",
    ),
}
STOPPING = ("vis", "ecology", "labour")  # dev queries for early stopping; those of biomed are slow

TOGETHER = "all kept groups"
FIGURES = ("F1@20", "MRR")
Examples = tuple[RankerExamples, RankerExamples]  # of train queries, and of dev queries
HEAD = """# What each group of features adds

Made by `python experiments/evidence.py` (the protocol is in the file). Models are trained on train queries of the other
indexes and measured on the dev queries of the index that is left out, the mean of three seeds; p is that of Student's
paired t-test. *Without*: 21 features. *With*: these and the group. The features were chosen by these dev queries, so
the rows are no test. They were made before there were features of sentences. Beside those, author topics raised no mean
any more and took the most time, so they were dropped; commit 6fe140f has their code.

Dropped after a screening whose rows are not kept, so read this as a record of what was tried: BM25 of the query and
the titles of the papers that cite a candidate; the cosines of the query and the mean, and the closest, of their
vectors; citations compared with those of papers of the same age (none raised the mean F1@20 of the left-out indexes by
more than another seed did); and new candidates from a walk of two steps, which added few cited papers except on vis.
Commit 397175d has their code. Tried in the same way beside the features of sentences, and dropped: a metric of the
vectors learned from the corpus' citations (within-class covariance), neighbours by that metric, a second pass that
compares candidates with the best ones of a first (similarity, co-citation, coupling), further candidates found by
sentences, and 2,500 train queries of each index in place of 1,000. Tried later, before the gradients of a query were
scaled, and dropped, too: vectors of the candidates' titles; the closest of a candidate's sentences; what the papers
close to one sentence cite; the citing or cited paper of a candidate that is closest to a sentence; and vectors of
sentences from the states of the whole draft (late chunking), which need no time of their own but lost on biomed.
Tried after that, and dropped, since none changed more than another seed did: neighbours weighted by a model that
predicts how many references they share with the query (vis, biomed and ecology left out); and, with vis left out, the
mean of three seeds, half of the queries for each tree, a quarter of the features, smoothed leaves, a lower learning
rate with more trees, and 1,200 other papers a query.

The probability of a cross-encoder that has seen neither the corpus nor the queries (`reranker/halves`; the best 30 by a
ranker without it) did not become a feature of the default model, either. Of vis, biomed, ecology and labour, each left
out of the ranker, too, two lost F1@20 and two lost MRR when the trees read it; a weight that is the same for all lists
hardly changed F1@20; and a second model over these 30 lost on vis and biomed and gained on the others, with the
probability and without it.

"""
Measures = npt.NDArray[np.float64]  # shape (queries, 2): F1@20 and 1 / rank


@dataclass(frozen=True, slots=True)
class Row:
    """One group of features on one left-out index."""

    group: str
    index: str
    queries: int
    without: Sequence[float]  # as `FIGURES`
    with_group: Sequence[float]
    p: Sequence[float]  # of Student's paired t-test

    @classmethod
    def of(cls, group: str, index: str, without: Measures, with_group: Measures) -> "Row":
        """Summarise the measures of each query."""
        p = [student_test(a, b) for a, b in zip(without.T, with_group.T, strict=True)]
        row = cls(
            group,
            index,
            len(without),
            without.mean(axis=0).tolist(),
            with_group.mean(axis=0).tolist(),
            p,
        )
        print(row, flush=True)
        return row


def main() -> None:
    """Gather what is missing, fit, measure, and write results and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("indexes", type=Path, nargs="+")
    parser.add_argument("--examples", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=700)
    parser.add_argument("--dev-queries", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--left-out", nargs="*", help="Measure these only; all by default.")
    parser.add_argument("--page", action="store_true", help="Only write the page anew.")
    options = parser.parse_args()
    config = RankerTraining(
        reranker="none",
        queries=options.queries,
        dev_queries=options.dev_queries,
        threads=options.threads,
    )
    if not options.page:
        start_jvm(None)
        options.examples.mkdir(parents=True, exist_ok=True)
        indexes = {path.name: open_index(path) for path in options.indexes}
        examples: dict[str, Examples] = {}
        for name, index in indexes.items():
            others = [other for other in indexes.values() if other is not index]
            examples[name] = gathered(index, others, config, options.examples / name)
        for left_out in options.left_out or indexes:
            _save(left_out, rows(left_out, examples, config), config)
    saved = [orjson.loads(file.read_bytes()) for file in sorted(RESULTS.glob("*.left_out.json"))]
    PAGE.write_text(page([row for of_index in saved for row in of_index]), encoding="utf-8")


def rows(left_out: str, examples: Mapping[str, Examples], config: RankerTraining) -> Iterator[Row]:
    """Yield one row for each group, and one for all of them, on one left-out index."""
    groups = {name: [*features] for name, features in GROUPS.items()}
    new = [feature for features in groups.values() for feature in features]
    before = [name for name in NAMES if name not in new]
    groups[TOGETHER] = new
    others = {name: parts for name, parts in examples.items() if name != left_out}
    train = RankerExamples.joined([every(2, part.learnable()) for part, _ in others.values()])
    dev_parts = [every(4, part) for name, (_, part) in others.items() if name in STOPPING]
    stopping = RankerExamples.joined(dev_parts)
    dev = examples[left_out][1]
    first = measured(train, stopping, dev, before, config)
    for group, features in groups.items():
        names = [name for name in NAMES if name in before or name in features]
        second = measured(train, stopping, dev, names, config)
        yield Row.of(group, left_out, first, second)


def every(n: int, examples: RankerExamples) -> RankerExamples:
    """Return every n-th query, which makes fits fast."""
    return examples.of(np.arange(len(examples)) % n == 0)


def gathered(
    index: IndexFolder, others: Sequence[IndexFolder], config: RankerTraining, path: Path
) -> Examples:
    """Return train and dev examples of an index, from files if they are there."""
    files = [path.with_name(f"{path.name}.{split}.npz") for split in ("train", "dev")]
    if not all(file.is_file() for file in files):
        gatherer = Gatherer(index, config, print)
        data, queries = load_train(index), dev_queries(index, config)
        if data is None or queries is None:
            raise SystemExit(f"{index.path} has no train or no dev queries")
        titles = index.papers.texts("title", data.queries).to_pylist()
        ids = index.papers.ids_at(data.queries.tolist())
        is_free = held_out(others, ("dev", "test")).allowed_mask(ids, titles)
        data = data.only(np.flatnonzero(is_free))
        _write(files[0], gatherer.train(data, no_progress))
        _write(files[1], gatherer.whole(queries, no_progress))
    train, dev = map(_read, files)
    return train, dev


def _write(file: Path, examples: RankerExamples) -> None:
    arrays = {one.name: getattr(examples, one.name) for one in fields(RankerExamples)}
    np.savez(file, names=np.array(NAMES), **arrays)


def _read(file: Path) -> RankerExamples:
    """Read examples; features that are not in the file are missing."""
    with np.load(file) as arrays:
        names = arrays["names"].tolist()
        saved = arrays["matrix"]
        matrix = np.full((len(saved), len(NAMES)), np.nan, np.float32)
        for column, name in enumerate(NAMES):
            if name in names:
                matrix[:, column] = saved[:, names.index(name)]
        rest = {one.name: arrays[one.name] for one in fields(RankerExamples)[1:]}
    return RankerExamples(matrix, **rest)


def measured(
    train: RankerExamples,
    stopping: RankerExamples,
    left_out: RankerExamples,
    features: Sequence[str],
    config: RankerTraining,
) -> Measures:
    """Return the measures of each left-out query, the mean over models of several seeds."""
    ends = np.cumsum(left_out.sizes)[:-1]
    runs: list[list[tuple[float, float]]] = []
    for seed in SEEDS:
        settings = RankerTraining(
            **{**config.to_json(), "seed": seed}  # pyright: ignore[reportArgumentType]
        )
        scores = fit(train, stopping, features, settings).scores(left_out.matrix)
        each = zip(
            np.split(scores, ends), np.split(left_out.cited, ends), left_out.gold, strict=True
        )
        runs.append([f1_and_reciprocal_rank(s, c, int(g)) for s, c, g in each])
    return np.mean(runs, axis=0)


def _save(index: str, new: Iterable[Row], config: RankerTraining) -> None:
    """Write rows as they come; they replace those of the same group."""
    facts = {"seeds": len(SEEDS), "commit": provenance(config.to_json())["git_commit"]}
    file = RESULTS / f"{index}.left_out.json"
    by_group: dict[str, Any] = {}
    if file.is_file():
        by_group = {row["group"]: row for row in orjson.loads(file.read_bytes())}
    for row in new:
        by_group[row.group] = {**asdict(row), **facts}
        file.write_bytes(orjson.dumps([*by_group.values()], option=orjson.OPT_INDENT_2))


def page(saved: Sequence[Mapping[str, Any]]) -> str:
    """Return the results as a page."""
    return f"{HEAD}{_table(saved)}\n"


def _table(saved: Sequence[Mapping[str, Any]]) -> str:
    lines: list[tuple[str, ...]] = []
    for group in dict.fromkeys(row["group"] for row in saved):
        of_group = [row for row in saved if row["group"] == group]
        lines += [
            (
                group,
                row["index"],
                str(row["queries"]),
                *_cells(row["without"], row["with_group"], row["p"]),
            )
            for row in of_group
        ]
        before, after = (
            np.mean([r[k] for r in of_group], axis=0) for k in ("without", "with_group")
        )
        lines.append((group, "mean", "", *_cells(before, after)))
    columns = (
        f"{figure} {what}" for figure in FIGURES for what in ("without", "with", "change", "p")
    )
    return table(("group", "left-out index", "queries", *columns), lines)


def _cells(
    without: Sequence[float], with_group: Sequence[float], p: Sequence[float] = ()
) -> Iterator[str]:
    for n, (before, after) in enumerate(zip(without, with_group, strict=True)):
        yield from (f"{before:.4f}", f"{after:.4f}", f"{after - before:+.4f}")
        yield f"{p[n]:.3f}" if p else ""


if __name__ == "__main__":
    main()
