"""The figures of the documentation are those of the committed results: a rerun that changes one is noticed here."""

import json
import re
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from support.tables import table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results"
# the columns of every table of quality, in this order; some show the first three
CROSS_ENCODERS = {  # page: first cell of the row of the cross-encoders, without its link
    "README.md": "BM25, then a [cross-encoder trained on the corpus for minutes",
    "docs/results.md": "BM25, its best 50 or 100 by a [cross-encoder trained on the corpus for minutes",
}
CORPORA = ("vis", "acm_vis", "biomed", "labour", "ecology")
QUALITY = (
    table(  # page, metrics of a cell, first cell of a row: results of the row by corpus
        """
README.md | f1@20 mrr | BM25 | bm25/{}
README.md | f1@20 mrr | BM25 and vectors, fused | dense/{}_rrf
README.md | f1@20 mrr | with the default learning-to-rank model | ranker/{}_ranker
README.md | f1@20 mrr | with such a model that was not trained on this corpus | ranker/{}_left-out
docs/results.md | f1@20 mrr | BM25 | bm25/{}
docs/results.md | f1@20 mrr | vectors | dense/{}_dense
docs/results.md | f1@20 mrr | RRF of both | dense/{}_rrf
docs/results.md | f1@20 mrr | default learning-to-rank model | ranker/{}_ranker
docs/results.md | f1@20 mrr | a model trained without this corpus | ranker/{}_left-out
docs/how/bm25.md | f1@20 | title and abstract | bm25/{}
docs/how/bm25.md | f1@20 | key terms | bm25/{}_key
docs/how/bm25.md | f1@20 | title | bm25/{}_title
docs/how/dense.md | f1@20 recall@1000 | MiniLM, untrained | dense/{}_dense
docs/how/fusion.md | f1@20 | BM25 | bm25/{}
docs/how/fusion.md | f1@20 | MiniLM | dense/{}_dense
docs/how/fusion.md | f1@20 | RRF of both | dense/{}_rrf
docs/how/fusion.md | f1@20 | weighted sum, weights of dev | dense/{}_weighted
docs/how/expansion.md | recall@1000 | RRF of BM25 and MiniLM | dense/{}_rrf
docs/how/expansion.md | recall@1000 | with expansion | ranker/{}_expanded
docs/how/ranking.md | f1@20 | BM25 | bm25/{}
docs/how/ranking.md | f1@20 | RRF of BM25 and MiniLM | dense/{}_rrf
docs/how/ranking.md | f1@20 | the default model | ranker/{}_ranker
docs/how/ranking.md | f1@20 | a model that was not trained on this corpus | ranker/{}_left-out
"""
    )
)
SPEED = table(  # page, first cell of a row: rows of the benchmark, in the order of the figures
    """
README.md | BM25 search in 101,021 papers | search.citerec search.citerec.memory search.pyserini search.pyserini.memory
README.md | encoding with MiniLM | encode.citerec encode.sentence-transformers
README.md | building an index, BM25 | index.citerec index.anserini
README.md | one query in a running process: BM25, vectors, ranked | latency.ranked.p50
README.md | `citerec recommend`, the whole process, 4,552 papers | cold.ranked cold.ranked.memory
docs/results.md | BM25 search, 101,021 papers, 2 threads | search.citerec search.pyserini
docs/results.md | the same, peak memory | search.citerec.memory search.pyserini.memory
docs/results.md | encoding with MiniLM | encode.citerec encode.sentence-transformers
docs/results.md | one query, BM25 and vectors, ranked | latency.ranked.p50
docs/results.md | whole process, one query, ranked, 4,552 papers | cold.ranked cold.ranked.memory
docs/results.md | one query, BM25 | latency.bm25.p50
docs/results.md | cross-encoder by torch, 256 + 256 tokens | rerank.citerec rerank.sentence-transformers
"""
)


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
        assert float(figure.replace(",", "")) == pytest.approx(
            value, abs=unit / 2 + 1e-9
        )


def metrics(result: str, names: str) -> list[float]:
    measured = json.loads((RESULTS / f"{result}.json").read_text())["metrics"]
    return [measured[name] for name in names.split()]


@cache
def benchmark() -> dict[str, float]:
    """Return the median of each row of the benchmark, by its name."""
    sections = json.loads((RESULTS / "bench.json").read_text()).values()
    rows = [row for section in sections for row in section["rows"]]
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: median(row["values"]) for row in rows}


@pytest.mark.parametrize(("page", "names", "label", "result"), QUALITY)
def test_the_figures_of_quality_are_those_of_their_rows(
    page: str, names: str, label: str, result: str
) -> None:
    cells = row(page, label)
    shown = [corpus for corpus, cell in zip(CORPORA, cells, strict=False) if cell]

    expected = [
        value for corpus in shown for value in metrics(result.format(corpus), names)
    ]

    assert_shown(figures(cells), expected)


@pytest.mark.parametrize("page", CROSS_ENCODERS)
def test_the_figures_of_the_cross_encoders_are_those_of_their_rows(page: str) -> None:
    rows = (
        "vis_bm25_long",
        "acm_vis_bm25_plain",
        "biomed_bm25_from_vis",
        "labour_bm25_from_vis",
    )

    expected = [
        value
        for name in rows
        for value in metrics(f"cross_encoder/{name}", "f1@20 mrr")
    ]

    assert_shown(figures(row(page, CROSS_ENCODERS[page])), expected)


@pytest.mark.parametrize(("page", "label", "names"), SPEED)
def test_the_figures_of_speed_are_those_of_the_benchmark(
    page: str, label: str, names: str
) -> None:
    assert_shown(
        figures(row(page, label)), [benchmark()[name] for name in names.split()]
    )
