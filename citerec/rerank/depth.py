"""How many candidates a cross-encoder scores while a user waits, from its size and device."""

from typing import Any, Protocol

from citerec.rerank.spec import RerankerSpec

SECONDS = 1.5  # for reranking one query
CORE_FLOPS, GPU_FLOPS = 1.5e11, 1e14  # per second: a core with AVX-512, a GPU with tensor cores
CORES = 2  # of the processor, if the number is not given
DEPTHS = (1000, 500, 200, 100, 50, 20, 10)


class HasSizes(Protocol):
    """A cross-encoder whose work per pair is known."""

    @property
    def spec(self) -> RerankerSpec:
        """How it reads a pair."""
        ...

    @property
    def sizes(self) -> Any:
        """The sizes of its model, by the names of transformers."""
        ...


def default_depth(parts: HasSizes, device: str, cores: int = CORES) -> int:
    """Return how many pairs of full length take about `SECONDS`: a round number from 10 to 1000.

    On two cores: MiniLM of 6 layers takes 4.4 GFLOP for a pair of 128 + 64 tokens: 100; 13.3 at 256 + 256: 20. BERT
    takes 97 at 256 + 256: 10.

    Args:
        parts: The cross-encoder.
        device: cpu, or another device.
        cores: Processor cores in use.
    """
    affordable = affordable_depth(parts, device, cores)
    return next((depth for depth in DEPTHS if depth <= affordable), DEPTHS[-1])


def affordable_depth(parts: HasSizes, device: str, cores: int = CORES) -> float:
    """Return how many pairs of full length take `SECONDS`; the arguments are those of `default_depth`."""
    return SECONDS * (cores * CORE_FLOPS if device == "cpu" else GPU_FLOPS) / pair_flops(parts)


def pair_flops(parts: HasSizes) -> float:
    """Return the floating-point operations of one pair of full length, T tokens, in a BERT of L layers.

    L * (2T * (4h² + 2hf) + 4T²h): four projections and the feed-forward part, two operations per weight and token;
    then attention, which multiplies T × h by h × T, and T × T by T × h.
    """
    config = parts.sizes
    tokens, h = parts.spec.tokens, config.hidden_size
    f = getattr(config, "intermediate_size", 4 * h)
    return config.num_hidden_layers * (
        2 * tokens * (4 * h * h + 2 * h * f) + 4 * tokens * tokens * h
    )
