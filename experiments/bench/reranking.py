"""Pairs per second of citerec's cross-encoder beside sentence-transformers': same model, pairs and threads.

The pairs are real: the best papers that BM25 finds for test queries, and their texts as they are.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from bench.limits import MATMUL, limit_rows, minilm_flops, tokens_of
from bench.measure import Row, SkippedError, log, ratio
from bench.work import Work, build
from bench.worker import Worker

DEPTH = 100  # candidates of a query
PREFIX = "rerank-"
REFERENCE = "sentence-transformers"
MODEL = "reranker"  # a folder in the work folder; see `model_of`
SPLITS = ((128, 64), (128, 128))  # tokens of query and candidate

Score = Callable[[], Any]  # a score of each pair, in their order


def citerec(work: Work, precision: str, tokens: tuple[int, int] = (256, 256)) -> Score:
    """Open citerec's cross-encoder; the tokens of the corpus are cut before, once."""
    from citerec.encode.spec import EncodeConfig, Precision
    from citerec.index.folder import open_index
    from citerec.rerank.cross_encoder import open_cross_encoder

    config = EncodeConfig(threads=work.threads, precision=Precision(precision))
    index = open_index(work.index)
    queries, rows = _pairs(work)
    model = open_cross_encoder(
        str(model_of(work)),
        None,
        config,
        query_tokens=tokens[0],
        candidate_tokens=tokens[1],
    )
    model.score(index, queries[:1], rows[:1])

    def score() -> Any:
        import numpy as np

        return np.concatenate(model.score(index, queries, rows))

    return score


def sentence_transformers(work: Work, precision: str) -> Score:
    """Open CrossEncoder: with its defaults, or in another precision."""
    import torch
    from sentence_transformers import CrossEncoder

    from citerec.index.folder import open_index
    from citerec.text import pair_text

    torch.set_num_threads(work.threads)
    how: dict[str, Any] = (
        {} if precision == "float32" else {"model_kwargs": {"dtype": precision}}
    )
    model = CrossEncoder(str(model_of(work)), device="cpu", max_length=512, **how)
    papers = open_index(work.index).papers
    queries, rows = _pairs(work)
    sides = [
        (pair_text(query), pair_text(papers[row]))
        for query, mine in zip(queries, rows, strict=True)
        for row in mine.tolist()
    ]
    # cut as citerec cuts them, so that both read the same
    asked, given = zip(*sides, strict=True)
    texts = [*zip(_cut(model, asked, 254), _cut(model, given, 255), strict=True)]
    return lambda: model.predict(texts, show_progress_bar=False)


def _cut(model: Any, texts: Sequence[str], most: int) -> list[str]:
    """Return the beginnings of texts that have at most so many tokens."""
    read = model.tokenizer(
        list(texts),
        add_special_tokens=False,
        truncation=True,
        max_length=most,
        return_offsets_mapping=True,
    )
    ends = [offsets[-1][1] if offsets else 0 for offsets in read["offset_mapping"]]
    return [text[:end] for text, end in zip(texts, ends, strict=True)]


SYSTEMS: dict[str, tuple[Callable[[Work], Score], str, str]] = {
    "citerec": (
        partial(citerec, precision="auto"),
        "citerec, 256 + 256 tokens, bfloat16 where the CPU has it",
        "at least 2.5 x CrossEncoder.predict with its defaults",
    ),
    "float32": (
        partial(citerec, precision="float32"),
        "citerec in float32",
        "",
    ),
    **{
        f"citerec-{q}-{c}": (
            partial(citerec, precision="auto", tokens=(q, c)),
            f"citerec as it chooses, {q} + {c} tokens",
            "",
        )
        for q, c in SPLITS
    },
    REFERENCE: (
        partial(sentence_transformers, precision="float32"),
        "CrossEncoder.predict, its defaults, 512 tokens",
        "",
    ),
    f"{REFERENCE}-bfloat16": (
        partial(sentence_transformers, precision="bfloat16"),
        "CrossEncoder.predict in bfloat16, its best backend here",
        "",
    ),
}


def measure_reranking(work: Work, script: Path, rounds: int) -> list[Row]:
    """Measure every system in turns, and hold their scores against each other.

    Args:
        work: Where; `reranker/` in it is the model; see `model_of`.
        script: `bench.py`, which also is the workers' program.
        rounds: How often each scores all pairs; the first pairs warm it up.
    """
    build(work)
    model_of(work)
    workers: list[Worker] = []
    for name in SYSTEMS:
        try:
            workers.append(Worker(PREFIX + name, work, script))
        except SkippedError as error:
            log(f"skipped: {error}")
    limit, peak = Worker(f"limit-{MATMUL}", work, script), list[float]()
    rates: dict[str, list[float]] = {_name(worker): [] for worker in workers}
    for number in range(rounds):
        peak.append(limit.ask("round")["rate"])
        for worker in workers if number % 2 else reversed(workers):
            took = worker.ask("round")
            rates[_name(worker)].append(worker.queries / took["seconds"])
            log(
                f"round {number + 1}: {_name(worker)} {rates[_name(worker)][-1]:.1f} pairs/s"
            )
    paths = {_name(worker): worker.ask("scores")["path"] for worker in workers}
    for worker in (*workers, limit):
        worker.close()
    rows = [_row(name, rates) for name in rates]
    shares = limit_rows("rerank", MATMUL, peak, rates, _flops(work, rates))
    return [*rows, *_agreement(paths), *shares]


def serve_reranker(name: str, work: Work) -> None:
    """Be a worker that answers `round` and `scores` with a line of JSON each, until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer

    def reply(answer: dict[str, Any]) -> None:
        answers.write(orjson.dumps(answer) + b"\n")
        answers.flush()

    if name.startswith(REFERENCE) and not find_spec("sentence_transformers"):
        reply({"error": "sentence_transformers is not installed"})
        return
    score = SYSTEMS[name][0](work)
    reply({"queries": sum(len(mine) for mine in _pairs(work)[1])})
    scores: Any = None
    for line in sys.stdin:
        if line.strip() == "round":
            start = time.perf_counter()
            scores = score()
            reply({"seconds": time.perf_counter() - start})
        else:
            import numpy as np

            path = work.folder / f"scores-{name}.npy"
            np.save(path, np.asarray(scores, np.float32).ravel())
            reply({"path": str(path)})


def model_of(work: Work) -> Path:
    """Return the cross-encoder that is measured; where there is none, MiniLM with a head of random weights."""
    folder = work.folder / MODEL
    if not (folder / "config.json").is_file():
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        from citerec.encode.models import find_model

        base = find_model("minilm").folder
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
        model.config.sentence_transformers = {
            "activation_fn": "torch.nn.modules.linear.Identity"
        }
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(base, model_max_length=512).save_pretrained(
            folder
        )
    return folder


def _pairs(work: Work) -> tuple[list[Any], list[Any]]:
    """Return queries of the test split, spread evenly, and the rows of their candidates; found once, then kept."""
    import numpy as np

    from citerec.evaluation.protocol import load_eval_set
    from citerec.index.folder import open_index

    index, kept = open_index(work.index), work.folder / "pairs.json"
    eval_set = load_eval_set(index, "test")
    chosen = np.linspace(
        0, len(eval_set.queries) - 1, min(work.reranked, len(eval_set.queries))
    ).astype(int)
    queries = [eval_set.queries[i] for i in chosen.tolist()]
    if not kept.is_file():
        from citerec.retrieve.bm25 import Bm25Retriever

        rules = [eval_set.eligible[i] for i in chosen.tolist()]
        found = Bm25Retriever(index).retrieve(queries, rules, DEPTH)
        kept.write_bytes(orjson.dumps([hits.rows.tolist() for hits in found]))
    return queries, [
        np.array(rows, np.int32) for rows in orjson.loads(kept.read_bytes())
    ]


def _flops(work: Work, names: Iterable[str]) -> dict[str, float]:
    """Return the operations of one pair for each system, by the tokens that it reads."""
    from citerec.index.folder import open_index
    from citerec.text import pair_text

    papers, (queries, rows) = open_index(work.index).papers, _pairs(work)
    candidates = [[pair_text(papers[row]) for row in mine.tolist()] for mine in rows]
    owners = [
        pair_text(q) for q, mine in zip(queries, candidates, strict=True) for _ in mine
    ]
    sides = [owners, [text for mine in candidates for text in mine]]
    splits = {f"citerec-{q}-{c}": (q, c) for q, c in SPLITS}
    return {
        name: minilm_flops(tokens_of(sides, splits.get(name, (256, 256))))
        for name in names
    }


def _row(name: str, rates: dict[str, list[float]]) -> Row:
    reference = rates.get(REFERENCE)
    return Row(
        name=f"rerank.{name}",
        what=SYSTEMS[name][1],
        unit="pairs/s",
        values=tuple(rates[name]),
        ratio=ratio(rates[name], reference) if reference else None,
        ratio_to=f"rerank.{REFERENCE}" if reference else None,
        goal=SYSTEMS[name][2],
    )


def _agreement(paths: dict[str, str]) -> list[Row]:
    """Compare the order of all pairs with that of CrossEncoder's scores."""
    import numpy as np
    from scipy.stats import spearmanr

    if REFERENCE not in paths:
        return []
    truth = np.load(paths[REFERENCE])
    return [
        Row(
            name=f"rerank.{name}.spearman",
            what=f"Spearman's correlation with CrossEncoder's scores of {len(truth)} pairs",
            unit="",
            values=(float(np.asarray(spearmanr(np.load(path), truth))[0]),),
            goal="at least 0.995" if name == "citerec" else "",
        )
        for name, path in paths.items()
        if name in ("citerec", "float32")
    ]


def _name(worker: Worker) -> str:
    return worker.name.removeprefix(PREFIX)
