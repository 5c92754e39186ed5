"""The figures of the documentation are those of the committed results: a rerun that changes one is noticed here."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results"
# the columns of every table of quality, in this order; some show the first three
CORPORA = ("vis", "acm_vis", "biomed", "labour", "ecology")
F1, MRR, R1000 = "f1@20", "mrr", "recall@1000"

# page, first cell of the row, rows of results by corpus, metrics of a cell
QUALITY = [
    ("README.md", "BM25", "bm25/{}", (F1, MRR)),
    ("README.md", "BM25 and vectors, fused", "dense/{}_rrf", (F1, MRR)),
    ("README.md", "with the default learning-to-rank model", "ranker/{}_ranker", (F1, MRR)),
    (
        "README.md",
        "with such a model that was not trained on this corpus",
        "ranker/{}_left-out",
        (F1, MRR),
    ),
    ("docs/results.md", "BM25", "bm25/{}", (F1, MRR)),
    ("docs/results.md", "vectors", "dense/{}_dense", (F1, MRR)),
    ("docs/results.md", "RRF of both", "dense/{}_rrf", (F1, MRR)),
    ("docs/results.md", "default learning-to-rank model", "ranker/{}_ranker", (F1, MRR)),
    ("docs/results.md", "a model trained without this corpus", "ranker/{}_left-out", (F1, MRR)),
    ("docs/how/bm25.md", "title and abstract", "bm25/{}", (F1,)),
    ("docs/how/bm25.md", "key terms", "bm25/{}_key", (F1,)),
    ("docs/how/bm25.md", "title", "bm25/{}_title", (F1,)),
    ("docs/how/dense.md", "MiniLM, untrained", "dense/{}_dense", (F1, R1000)),
    ("docs/how/fusion.md", "BM25", "bm25/{}", (F1,)),
    ("docs/how/fusion.md", "MiniLM", "dense/{}_dense", (F1,)),
    ("docs/how/fusion.md", "RRF of both", "dense/{}_rrf", (F1,)),
    ("docs/how/fusion.md", "weighted sum, tuned on dev", "dense/{}_weighted", (F1,)),
    ("docs/how/expansion.md", "RRF of BM25 and MiniLM", "dense/{}_rrf", (R1000,)),
    ("docs/how/expansion.md", "with expansion", "ranker/{}_expanded", (R1000,)),
    ("docs/how/ranking.md", "BM25", "bm25/{}", (F1,)),
    ("docs/how/ranking.md", "RRF of BM25 and MiniLM", "dense/{}_rrf", (F1,)),
    ("docs/how/ranking.md", "the default model", "ranker/{}_ranker", (F1,)),
    (
        "docs/how/ranking.md",
        "a model that was not trained on this corpus",
        "ranker/{}_left-out",
        (F1,),
    ),
]
CROSS_ENCODER = {  # first cell of the row: rows of results, on each corpus that has one
    "fused list": "dense/{}_rrf",
    "reranked by one that has not seen the corpus": "models/{}_8_left-out_reranker",
    "reranked by `citerec-reranker`": "models/{}_3_reranker",
    "the same, over 25 candidates": "models/{}_3_reranker_25",
    "the same, reading 256 + 256 tokens": "models/{}_3_reranker_long",
    "default learning-to-rank model": "ranker/{}_ranker",
    "the same, reranked by `citerec-reranker`": "models/{}_9_ranker_reranked",
    "the same, its best 25 reranked": "models/{}_9_ranker_reranked_25",
}
FOUR = ("vis", "biomed", "ecology", "labour")  # the columns of these tables
SPEED = [  # page, first cell of the row, rows of the benchmark, in the order of the figures
    (
        "README.md",
        "BM25 search in 101,021 papers",
        "search.citerec search.citerec.memory search.pyserini search.pyserini.memory",
    ),
    ("README.md", "encoding with MiniLM", "encode.citerec encode.sentence-transformers"),
    (
        "README.md",
        "building an index, BM25",
        "index.citerec index.citerec-lucene index.anserini",
    ),
    ("README.md", "one query in a running process: BM25, vectors, ranked", "latency.ranked.p50"),
    (
        "README.md",
        "`citerec recommend`, the whole process, 4,552 papers",
        "cold.ranked cold.ranked.memory",
    ),
    ("docs/results.md", "BM25 search, 101,021 papers, 2 threads", "search.citerec search.pyserini"),
    ("docs/results.md", "the same, peak memory", "search.citerec.memory search.pyserini.memory"),
    ("docs/results.md", "encoding with MiniLM", "encode.citerec encode.sentence-transformers"),
    ("docs/results.md", "one query, BM25 and vectors, ranked", "latency.ranked.p50"),
    (
        "docs/results.md",
        "whole process, one query, ranked, 4,552 papers",
        "cold.ranked cold.ranked.memory",
    ),
    ("docs/guides/engineers.md", "BM25, one query", "latency.bm25.p50"),
    ("docs/guides/engineers.md", "BM25 and vectors, ranked", "latency.ranked.p50"),
    ("docs/guides/engineers.md", "the whole process, BM25 and vectors, ranked", "cold.ranked"),
    ("docs/guides/engineers.md", "BM25, throughput", "search.citerec"),
    ("docs/guides/engineers.md", "encoding with MiniLM", "encode.citerec"),
]


def row(page: str, label: str) -> list[str]:
    """Return the cells of a row of a table after its first one, without links."""
    text = re.sub(r"\]\([^)]*\)", "", (ROOT / page).read_text())
    lines = [line.strip() for line in text.splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    [cells] = [cells[1:] for cells in rows if cells[0] == label]
    return cells


def figures(cells: list[str]) -> list[str]:
    return re.findall(r"\d*\.\d+|\d[\d,]*", " ".join(cells))


def assert_shown(shown: list[str], expected: list[float]) -> None:
    """Check figures against values, each as exactly as it is shown."""
    assert len(shown) == len(expected)
    for figure, value in zip(shown, expected, strict=True):
        unit = 10.0 ** -len(figure.partition(".")[2])
        assert float(figure.replace(",", "")) == pytest.approx(value, abs=unit / 2 + 1e-9)


def metrics(result: str, names: tuple[str, ...]) -> list[float]:
    measured = json.loads((RESULTS / f"{result}.json").read_text())["metrics"]
    return [measured[name] for name in names]


@cache
def benchmark() -> dict[str, float]:
    """Return the median of each row of the benchmark, by its name."""
    sections = json.loads((RESULTS / "bench.json").read_text()).values()
    return dict(medians(row for section in sections for row in section["rows"]))


def medians(rows: Iterator[dict[str, object]]) -> Iterator[tuple[str, float]]:
    for one in rows:
        yield str(one["name"]), median(one["values"])  # type: ignore[arg-type]


@pytest.mark.parametrize(("page", "label", "result", "names"), QUALITY)
def test_a_figure_of_quality_is_that_of_its_row(
    page: str, label: str, result: str, names: tuple[str, ...]
) -> None:
    cells = row(page, label)
    shown = [corpus for corpus, cell in zip(CORPORA, cells, strict=False) if cell]

    expected = [value for corpus in shown for value in metrics(result.format(corpus), names)]

    assert_shown(figures(cells), expected)


@pytest.mark.parametrize("page", ["docs/how/reranking.md", "citerec/rerank/default/README.md"])
@pytest.mark.parametrize("label", CROSS_ENCODER)
def test_a_figure_of_the_cross_encoder_is_that_of_its_row(page: str, label: str) -> None:
    cells = zip((*FOUR, "acm_vis"), row(page, label), strict=True)
    shown = {corpus: cell for corpus, cell in cells if cell}

    results = [CROSS_ENCODER[label].format(corpus) for corpus in shown]

    assert_shown(
        figures([*shown.values()]), [value for one in results for value in metrics(one, (F1, MRR))]
    )


def test_each_row_of_the_benchmark_has_a_name_of_its_own() -> None:
    sections = json.loads((RESULTS / "bench.json").read_text()).values()
    names = [row["name"] for section in sections for row in section["rows"]]

    assert len({*names}) == len(names)


@pytest.mark.parametrize(("page", "label", "names"), SPEED)
def test_a_figure_of_speed_is_that_of_the_benchmark(page: str, label: str, names: str) -> None:
    assert_shown(figures(row(page, label)), [benchmark()[name] for name in names.split()])
