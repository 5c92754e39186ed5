"""Scores the pairs of a cross-encoder on a cluster, for `citerec evaluate`.

The process of the command searches, tokenizes and ranks; actors run the model on the very batches that it would run
itself, so that the scores are the same, bit by bit, on machines of one kind. Actors need the model, not the index.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np

from citerec.cache import sha256_of_files
from citerec.distributed.cluster import Cluster
from citerec.distributed.embedding import worker_config
from citerec.distributed.pool import Pool
from citerec.encode.backend import Outputs, Runner, Tokens, open_backend
from citerec.encode.batching import batches
from citerec.encode.config import EncodeConfig
from citerec.encode.files import weights_files
from citerec.encode.torch_backend import CPU_TOKENS, GPU_TOKENS
from citerec.errors import ClusterError
from citerec.rerank.cross_encoder import CrossEncoder
from citerec.rerank.model import load_reranker, reranker_net
from citerec.rerank.reranker import OpenReranker
from citerec.types import Log

GROUPS_AT_ONCE = 8  # batches that an actor gets at once: about half a second of work on a processor

Part = Sequence[
    tuple[Tokens, Sequence[int] | None]
]  # batches: tokens, and lengths of first segments


class RayCrossEncoder(CrossEncoder):
    """A cross-encoder that is open here, and whose model another runner runs."""

    def __init__(self, model: CrossEncoder, runner: Runner) -> None:
        self.__dict__.update(vars(model))
        self._runner, self._turn = runner, Lock()


class RayRunner:
    """A `Runner` whose batches are computed by actors that hold the model."""

    def __init__(self, model: CrossEncoder, pool: Pool[Part, list[Outputs]]) -> None:
        """Run the batches of an open model in a pool."""
        self.precision, self.device = model.precision, model.device
        self._pool = pool
        default = CPU_TOKENS if self.device == "cpu" else GPU_TOKENS
        self._budget = model.config.batch_tokens or default

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs; see `Runner`.

        Raises:
            ClusterError: If a worker cannot open the model, or too many workers are lost.
        """
        groups = batches([len(ids) for ids in tokens], self._budget)
        parts = [groups[i : i + GROUPS_AT_ONCE] for i in range(0, len(groups), GROUPS_AT_ONCE)]
        items = (
            [([tokens[i] for i in rows], firsts and [firsts[i] for i in rows]) for rows in part]
            for part in parts
        )
        for number, outputs in self._pool.results(items):
            yield from zip(parts[number], outputs, strict=True)


@dataclass(frozen=True, slots=True)
class RayScorers:
    """Moves a cross-encoder to a cluster; its actors end when `stack` is closed."""

    cluster: Cluster
    stack: ExitStack
    threads: int = 0  # of an actor; 0 for one
    log: Log | None = None

    def __call__(self, reranker: OpenReranker) -> OpenReranker:
        """Return a reranker whose cross-encoder runs on the cluster."""
        if not isinstance(reranker.scorer, CrossEncoder):
            return reranker
        return replace(reranker, scorer=self._on_cluster(reranker.scorer))

    def _on_cluster(self, model: CrossEncoder) -> CrossEncoder:
        if model.backend == "numpy":
            return model
        config = replace(worker_config(model.config, model.precision), threads=self.threads or 1)
        make = partial(
            open_worker,
            model.source.absolute(),
            model.fingerprint,
            config,
            model.spec.query_tokens,
            model.spec.candidate_tokens,
        )
        pool = self.stack.enter_context(
            Pool[Part, list[Outputs]](
                self.cluster,
                make,
                cpus=config.thread_count,
                gpus=int(config.device.startswith("cuda")),
                log=self.log,
            )
        )
        return RayCrossEncoder(model, RayRunner(model, pool))


def open_worker(
    folder: Path, fingerprint: str, config: EncodeConfig, query_tokens: int, candidate_tokens: int
) -> Callable[[Part], list[Outputs]]:
    """Open a cross-encoder in an actor; return what computes batches.

    Raises:
        ClusterError: If another model is at the path on this machine.
        ModelError: If there is none.
    """
    parts = load_reranker(folder, query_tokens=query_tokens, candidate_tokens=candidate_tokens)
    if sha256_of_files(weights_files(folder)) != fingerprint:
        raise ClusterError(
            f"{folder} on a worker's machine is another model; copy the model to all nodes, or put it into a folder "
            "that they share"
        )
    runner = open_backend(reranker_net(parts), config)

    def computed(part: Part) -> list[Outputs]:
        return [_in_order(runner, *batch) for batch in part]

    return computed


def _in_order(runner: Runner, tokens: Tokens, firsts: Sequence[int] | None) -> Outputs:
    """Return the outputs of one batch, which a device of little memory may split."""
    done = [*runner.run(tokens, firsts)]
    rows = [row for some, _ in done for row in some]
    return np.concatenate([outputs for _, outputs in done])[np.argsort(rows)]
