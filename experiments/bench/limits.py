"""What the machine can do at most: products of matrices, and reading from memory, beside which the systems are put."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import mean

import orjson

from bench.measure import Row, ratio
from bench.work import Work

MATMUL, BANDWIDTH = "matmul", "bandwidth"
PREFIX = "limit-"
SIZE = 2048  # rows and columns of the matrices
SECONDS = 1.0  # of one measurement
BYTES = 2**28  # of the array that is read, more than any cache holds

Once = Callable[[], float]  # runs once; returns its operations, or bytes


def matmul(work: Work) -> Once:
    """Multiply matrices by torch, in bfloat16 where the processor has it, as citerec's models do."""
    import torch

    from citerec.encode.spec import has_bfloat16

    torch.set_num_threads(work.threads)
    kind = torch.bfloat16 if has_bfloat16() else torch.float32
    first, second = (torch.randn(SIZE, SIZE).to(kind) for _ in range(2))

    def once() -> float:
        torch.mm(first, second)
        return 2.0 * SIZE**3

    return once


def memory(work: Work) -> Once:
    """Sum an array, a part by each thread."""
    import numpy as np

    parts = np.array_split(np.ones(BYTES // 8, np.int64), work.threads)
    pool = ThreadPoolExecutor(work.threads)

    def once() -> float:
        list(pool.map(np.add.reduce, parts))
        return float(BYTES)

    return once


LIMITS: dict[str, Callable[[Work], Once]] = {MATMUL: matmul, BANDWIDTH: memory}


def serve_limit(name: str, work: Work) -> None:
    """Be a worker that answers each line by operations, or bytes, per second in billions."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    once = LIMITS[name](work)
    once()
    answers.write(orjson.dumps({"queries": 1}) + b"\n")
    answers.flush()
    for _ in sys.stdin:
        start, done = time.perf_counter(), 0.0
        while (seconds := time.perf_counter() - start) < SECONDS:
            done += once()
        answers.write(orjson.dumps({"rate": done / seconds / 1e9}) + b"\n")
        answers.flush()


def bert_flops(tokens: Sequence[int], *, layers: int, hidden: int, inner: int) -> float:
    """Return the mean floating-point operations of a BERT for one text, from the numbers of tokens of some texts.

    They are L (2 T (4 h h + 2 h f) + 4 T T h) for T tokens: the matrices, and attention.
    """
    matrices, attention = 2 * (4 * hidden**2 + 2 * hidden * inner), 4 * hidden
    return mean(layers * (matrices * count + attention * count**2) for count in tokens)


def minilm_flops(tokens: Sequence[int]) -> float:
    """Return `bert_flops` of MiniLM of 6 layers."""
    return bert_flops(tokens, layers=6, hidden=384, inner=1536)


def limit_rows(
    group: str,
    limit: str,
    peak: Sequence[float],
    rates: dict[str, list[float]],
    each: dict[str, float],
    note: str = "",
) -> Iterator[Row]:
    """Yield the limit, and how much of it each system uses.

    Args:
        group: The group of rows.
        limit: `MATMUL` or `BANDWIDTH`.
        peak: The rate of the limit in each round, in billions per second.
        rates: Items per second of each system in these rounds.
        each: Operations, or bytes, of one item of a system; systems without are left out.
        note: What else there is to know of `each`.
    """
    unit = "GFLOP/s" if limit == MATMUL else "GB/s"
    what: dict[str, str] = {
        MATMUL: f"the machine's limit: torch's product of {SIZE} x {SIZE} matrices, in bfloat16 if it has that",
        BANDWIDTH: "the machine's limit: the sum of an array that no cache holds",
    }
    uses = {
        MATMUL: "its operations, without padding",
        BANDWIDTH: "the postings that its scores need",
    }
    yield Row(name=f"{group}.{limit}", what=what[limit], unit=unit, values=tuple(peak))
    for name, amount in each.items():
        values = tuple(rate * amount / 1e9 for rate in rates[name])
        yield Row(
            name=f"{group}.{name}.{limit}",
            what=f"{name}: {uses[limit]}{note}",
            unit=unit,
            values=values,
            ratio=ratio(values, peak),
            ratio_to=f"{group}.{limit}",
        )


def tokens_of(sides: Sequence[Sequence[str]], most: Sequence[int]) -> list[int]:
    """Return the tokens of each text or pair as MiniLM reads them, with its special tokens.

    Args:
        sides: The texts, or the first and the second texts of the pairs.
        most: The tokens that each side has at most, with its special tokens.
    """
    from transformers import AutoTokenizer

    from citerec.encode.models import find_model
    from citerec.encode.torch_backend import cut

    tokenizer = AutoTokenizer.from_pretrained(find_model("minilm").folder)
    # [CLS] and [SEP] of the first side, [SEP] of others
    extra = [
        2,
        *[1] * (len(sides) - 1),
    ]
    counts = [
        [
            len(ids) + special
            for ids in cut(tokenizer, side, limit - special, special=False)
        ]
        for side, limit, special in zip(sides, most, extra, strict=True)
    ]
    return [sum(of_text) for of_text in zip(*counts, strict=True)]
