"""Measure the default ranker, and one of a corpus' own citations, on every field; write a page.

    python experiments/fields.py indexes/vis.minilm indexes/labour.minilm ... \\
        --examples indexes/fields_examples --own indexes/fields_own

Candidates and features are those of `recommend` under the protocol, gathered once for each index and kept in
`--examples`; both rankers order the same candidates. The ranker of the train queries of an index goes to `--own`.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.encode.machine import provenance
from citerec.evaluation.significance import bootstrap_interval, student_test
from citerec.index.folder import open_index
from citerec.index.java import start_jvm
from citerec.rank.features import NAMES
from citerec.rank.ltr import DEFAULT, Variant, open_ranker
from citerec.train.boost import RankerExamples
from citerec.train.data import dev_measures, dev_queries
from citerec.train.ranker import Gatherer, gather_examples, train_on
from citerec.train.settings import RankerTraining
from citerec.train.trainer import cached_arrays
from citerec.types import no_progress

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "fields"
SETTINGS = HERE / "ranker" / "trainings" / "fields.toml"
METRICS = ("f1", "mrr")
SEEN = frozenset({"vis", "acm_vis", "biomed", "ecology", "labour"})  # by the default
BM25, RRF, SHIPPED, OWN = "BM25", "RRF", "default", "own"
ABOUT = """# Twelve fields

Test queries of every corpus in the order of BM25, of its fusion with the vectors (RRF), of the default ranker, and of
one that learned from the train queries of this corpus alone, as `citerec train-ranker` does in a minute or two.
F1@20 / MRR; the date-strict protocol, the citations of train papers are known. The default learned from `vis`,
`acm_vis`, `biomed`, `ecology` and `labour`, and has not seen the others; models without one of these five are rows of
[TABLES.md](TABLES.md). Behind it the 95 % bootstrap interval of F1@20, and the ratios to BM25. Bold: the own model is
better, p < .05 (Student's paired t-test).

Made by `python experiments/fields.py INDEX...`.
"""


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "indexes", type=Path, nargs="*", help="index folders with a test split"
    )
    parser.add_argument(
        "--examples", type=Path, required=True, help="a folder that keeps examples"
    )
    parser.add_argument(
        "--own", type=Path, required=True, help="where rankers of each corpus go"
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    start_jvm()
    for folder in options.indexes:
        result = measured(folder, options.examples, options.own)
        name = result["corpus"]
        text = orjson.dumps(
            result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
        )
        (RESULTS / f"{name}.{result['encoder']}.json").write_bytes(text + b"\n")
    (HERE / "FIELDS.md").write_text(page(), encoding="utf-8")


def measured(folder: Path, examples: Path, own: Path) -> dict[str, Any]:
    """Return the measures of each list of the test queries of an index."""
    index = open_index(folder)
    config = RankerTraining.read(SETTINGS, {})
    name = index.manifest.name
    cached = partial(cached_arrays, examples / name)
    gatherer = Gatherer(index, config, print)
    queries = dev_queries(index, None, config.seed, split="test")
    assert queries
    test = RankerExamples(
        **cached("test", lambda: gatherer.whole(queries, no_progress).arrays)
    )

    if not (own / name).exists():
        alone = gather_examples(index, None, [], config, cached=cached)
        train_on([alone], own / name, config, print, [Variant.FULL])
    orders: dict[str, Callable[[Any], Any]] = {
        BM25: lambda matrix: np.nan_to_num(matrix[:, NAMES.index("bm25_rank")]),
        RRF: lambda matrix: np.nan_to_num(matrix[:, NAMES.index("rrf")]),
        SHIPPED: open_ranker(DEFAULT).score,
        OWN: open_ranker(own / name).score,
    }
    lists: dict[str, Any] = {}
    for what, order in orders.items():
        each = [
            dev_measures([one]) for one in test.lists(np.asarray(order(test.matrix)))
        ]
        lists[what] = {
            metric: np.array([one[metric] for one in each]) for metric in METRICS
        }
    rng = np.random.default_rng(config.seed)
    rows = {
        what: {
            metric: {
                "mean": values.mean(),
                "interval": bootstrap_interval(
                    values[:, None], lambda means: means, rng=rng
                )[:, 0],
                "p": student_test(values, lists[SHIPPED][metric]),
            }
            for metric, values in measures.items()
        }
        for what, measures in lists.items()
    }
    encoder = index.encoder.name if index.is_embedded else "none"
    made = provenance({"corpus_sha256": index.manifest.corpus["sha256"]})
    return {
        "corpus": name.partition(".")[0],
        "encoder": Path(encoder).name,
        "queries": len(test),
        "lists": rows,
        "provenance": made,
    }


def page() -> str:
    """Return the page of all results."""
    results = [
        orjson.loads(file.read_bytes()) for file in sorted(RESULTS.glob("*.json"))
    ]
    lines = [
        ABOUT,
        f"| corpus | queries | {BM25} | {RRF} | {SHIPPED} | {OWN} |",
        "|---" * 6 + "|",
    ]
    for one in results:
        cells = " | ".join(
            _cell(one["lists"], what) for what in (BM25, RRF, SHIPPED, OWN)
        )
        lines.append(f"| {one['corpus']} | {one['queries']} | {cells} |")
    new = [one for one in results if one["corpus"] not in SEEN]
    means = [
        (what, _means(results, what), _means(new, what)) for what in (SHIPPED, OWN)
    ]
    lines += [
        "",
        f"Means of the ratios to BM25; on the {len(new)} corpora that the default has not seen:",
        "",
    ]
    lines += [f"- {what} {every}; {unseen}" for what, every, unseen in means]
    lines.append("")
    return "\n".join(lines)


def _cell(lists: dict[str, Any], what: str) -> str:
    shown: list[str] = []
    for metric in METRICS:
        one, default = lists[what][metric], lists[SHIPPED][metric]
        is_better = what == OWN and one["mean"] > default["mean"] and one["p"] < 0.05
        shown.append(f"**{one['mean']:.3f}**" if is_better else f"{one['mean']:.3f}")
    if what != SHIPPED:
        return " / ".join(shown)
    low, high = lists[what]["f1"]["interval"]
    return f"{' / '.join(shown)} [{low:.3f}, {high:.3f}] {_means([{'lists': lists}], what)}"


def _means(results: Sequence[dict[str, Any]], what: str) -> str:
    """Return the means of the ratios to BM25 of F1@20 and MRR."""
    ratios = [
        [
            one["lists"][what][metric]["mean"] / one["lists"][BM25][metric]["mean"]
            for metric in METRICS
        ]
        for one in results
    ]
    return " / ".join(f"{mean:.2f}" for mean in np.mean(ratios, axis=0))


if __name__ == "__main__":
    main()
