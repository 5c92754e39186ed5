"""Pairs per second of `citerec train-reranker` beside a plain loop: same model, corpus, tokens, pairs in an update.

The plain loop is what one writes first: transformers' model as it comes, bfloat16 autocast where the processor has it,
AdamW over all weights, each pair cut when it is read, batches in random order.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson

from bench.limits import MATMUL, limit_rows, minilm_flops
from bench.measure import Row, log, ratio
from bench.work import Work, build
from bench.worker import Worker

TOKENS = 128  # of each side: 256 a pair
PAIRS = 32  # in an update
UPDATES = 6  # timed, after one that is not
PREFIX = "train-"
PLAIN = "plain"

Rates = tuple[float, float]  # pairs per second, and per second of processor time
Train = Callable[[], Rates]


class Clock(NamedTuple):
    """A point in time, in seconds."""

    wall: float
    cpu: float  # of this process


def clock() -> Clock:
    """Return the time now."""
    return Clock(time.perf_counter(), time.process_time())


def rates(start: Clock, end: Clock, pairs: int) -> Rates:
    """Return the rates of some pairs between two points in time."""
    return pairs / (end.wall - start.wall), pairs / (end.cpu - start.cpu)


def citerec(work: Work) -> Train:
    """Train by the recipe `strong`; candidates are found before the clock starts."""
    from citerec.folder import open_index
    from citerec.train.reranker.config import RerankerTraining
    from citerec.train.reranker.train import train_reranker

    settings = {
        "recipe": "strong",
        "query_tokens": TOKENS,
        "candidate_tokens": TOKENS,
        "batch": PAIRS // 8,
        "queries": 100,
        "steps": UPDATES + 1,
        "eval_steps": 0,
        "dev_queries": 0,
        "warm_steps": 0,
        "threads": work.threads,
    }
    config, index = RerankerTraining.of(settings), open_index(work.index)

    def train() -> Rates:
        ends: list[Clock] = []  # of the updates

        def progress(task: str, done: int, total: int) -> None:
            if task == "training":
                ends.append(clock())

        train_reranker(index, work.folder / "trained", config, force=True, progress=progress)
        return rates(ends[0], ends[-1], (len(ends) - 1) * PAIRS)

    return train


def plain(work: Work) -> Train:
    """Train as one does it first, on pairs of the same corpus."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from citerec.encode.config import has_bfloat16
    from citerec.encode.source import find_model
    from citerec.folder import open_index
    from citerec.text import pair_text

    torch.set_num_threads(work.threads)
    torch.manual_seed(0)
    base = find_model("minilm").folder
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    papers = open_index(work.index).papers

    def train() -> Rates:
        import numpy as np

        rows = np.random.default_rng(0).integers(0, len(papers), (UPDATES + 1, PAIRS, 2))
        start = clock()
        for number, drawn in enumerate(rows.tolist()):
            if number == 1:  # the first one warms up
                start = clock()
            texts = [[pair_text(papers[row]) for row in pair] for pair in drawn]
            sides = [
                tokenizer.batch_decode(
                    tokenizer(list(side), truncation=True, max_length=TOKENS - 1)["input_ids"],
                    skip_special_tokens=True,
                )
                for side in zip(*texts, strict=True)
            ]
            inputs = tokenizer(
                *sides, padding=True, truncation=True, max_length=2 * TOKENS, return_tensors="pt"
            )
            labels = torch.zeros(PAIRS)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=has_bfloat16()):
                logits = model(**inputs).logits[:, 0].float()
            torch.nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return rates(start, clock(), UPDATES * PAIRS)

    return train


TRAINERS: dict[str, tuple[Callable[[Work], Train], str, str]] = {
    "citerec": (
        citerec,
        f"citerec train-reranker, recipe strong, MiniLM, {TOKENS} + {TOKENS} tokens",
        "at least 2 x a plain loop",
    ),
    PLAIN: (plain, "a plain loop, the same model, tokens and pairs in an update", ""),
}


def measure_training(work: Work, script: Path, rounds: int) -> list[Row]:
    """Train a few updates by each, in turns."""
    build(work)
    workers = [Worker(PREFIX + name, work, script) for name in TRAINERS]
    limit, peak = Worker(f"limit-{MATMUL}", work, script), list[float]()
    found: dict[str, list[Rates]] = {name: [] for name in TRAINERS}
    for number in range(rounds):
        peak.append(limit.ask("round")["rate"])
        for worker in workers if number % 2 else reversed(workers):
            name = worker.name.removeprefix(PREFIX)
            wall, cpu = worker.ask("round")["rates"]
            found[name].append((wall, cpu))
            log(f"round {number + 1}: {name} {wall:.1f} pairs/s, {cpu:.1f} per processor second")
    for worker in (*workers, limit):
        worker.close()
    rates = {name: [wall for wall, _ in of] for name, of in found.items()}
    # forward, and twice as much backward
    each = dict.fromkeys(found, 3 * minilm_flops([2 * TOKENS]))
    note = f", if each pair had {2 * TOKENS} tokens: at most"
    shares = limit_rows("train", MATMUL, peak, rates, each, note)
    rows = [
        Row(
            name=f"train.{name}{suffix}",
            what=f"{what}{', per second of processor time' if suffix else ''}",
            unit="pairs/s",
            values=tuple(of[kind] for of in found[name]),
            ratio=ratio([of[kind] for of in found[name]], [of[kind] for of in found[PLAIN]]),
            ratio_to=f"train.{PLAIN}{suffix}",
            goal=goal,
        )
        for name, (_, what, goal) in TRAINERS.items()
        for kind, suffix in enumerate(("", ".cpu"))
    ]
    return [*rows, *shares]


def serve_training(name: str, work: Work) -> None:
    """Be a worker that answers each line by the rate of a few updates."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    train = TRAINERS[name][0](work)
    answers.write(orjson.dumps({"queries": 1}) + b"\n")
    answers.flush()
    for _ in sys.stdin:
        answers.write(orjson.dumps({"rates": train()}) + b"\n")
        answers.flush()
