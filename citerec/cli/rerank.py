"""The options of all commands that rerank."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.config import RerankConfig, RerankStage
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.cli.console import ConsoleOutput
    from citerec.folder import IndexFolder

RerankerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--reranker",
        help="auto: the index's own, if it has one; none; a folder or hub id. Repeated, cheapest first: each reads the "
        "best of the one before.",
    ),
]
RerankDepthOption = Annotated[
    list[int] | None,
    typer.Option(
        "--rerank-depth",
        min=1,
        help="Candidates that are reranked, one per reranker; by default what model and device do in about a second, "
        "in evaluate and tune 100.",
    ),
]
QueryTokensOption = Annotated[
    list[int] | None,
    typer.Option(
        "--query-tokens",
        min=64,
        max=448,
        help="Reranking: tokens of the query. One for all, or one per reranker; the candidate gets what is left.",
    ),
]
CandidateTokensOption = Annotated[
    list[int] | None,
    typer.Option(
        "--candidate-tokens", min=64, max=448, help="Reranking: tokens of a candidate; likewise."
    ),
]
RerankWeightOption = Annotated[
    float | None,
    typer.Option(
        "--rerank-weight",
        min=0,
        max=1,
        help="Of the last reranker against the first stages; by default as tuned, else 1.",
    ),
]
EarlyStopOption = Annotated[
    bool,
    typer.Option(
        "--early-stop", help="Reranking: read no further once the result cannot change any more."
    ),
]
DeviceOption = Annotated[
    str, typer.Option(help="Where the reranker runs: auto, cpu, cuda, cuda:1.")
]
PrecisionOption = Annotated[
    Precision, typer.Option("--dtype", help="What the reranker calculates with.")
]
BackendOption = Annotated[
    Backend,
    typer.Option(
        help="What runs the reranker; auto: torch, but openvino on a processor, if installed, for long work."
    ),
]

OPTIONS = (  # the parameters that they fill
    "reranker",
    "rerank_depth",
    "query_tokens",
    "candidate_tokens",
    "rerank_weight",
    "device",
    "dtype",
    "backend",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankOptions:
    """What the options say; None for what was not given."""

    models: Sequence[str] | None
    depths: Sequence[int] | None
    query_tokens: Sequence[int] | None
    candidate_tokens: Sequence[int] | None
    weight: float | None = None
    early_stop: bool = False
    device: str
    precision: Precision
    backend: Backend
    threads: int
    measures: bool = False  # whether figures are made: not by a model that may know the answers

    def config(self, index: "IndexFolder", console: "ConsoleOutput") -> RerankConfig | None:
        """Return which rerankers are meant for an index, and how they are run; None for no reranker.

        Args:
            index: Whose own is meant by auto.
            console: Is told what has no effect, and warns of what is left out.

        Raises:
            ConfigError: If the options contradict each other.
        """
        models = list(self.models or ["auto"])
        if "none" in models:
            if len(models) > 1:
                raise ConfigError("--reranker none goes with no other --reranker")
            if self._given:
                raise ConfigError(f"{self._given} has no effect with --reranker none")
        if "none" in models or (models == ["auto"] and not self._has_own(index, console)):
            if self._running:
                console.log(f"{self._running} has no effect: nothing is reranked")
            return None
        return RerankConfig(
            stages=_stages(models, self),
            weight=self.weight,
            early_stop=self.early_stop,
            device=self.device,
            precision=self.precision,
            backend=self.backend,
            threads=self.threads,
        )

    def _has_own(self, index: "IndexFolder", console: "ConsoleOutput") -> bool:
        """Whether the index has a reranker, or one is asked of it, that may be used unasked."""
        from citerec.rerank.opening import OWN, own_reranker, trained_on_other_data

        own = own_reranker(index)
        if own is None:
            return bool(self._given)  # that it has none is an error then
        if not (self.measures and trained_on_other_data(own, index)):
            return True
        name = f"{index.models.name}/{OWN}"
        console.warn(
            f"{name} is left out: it was not trained on these papers and splits, and would be measured on papers that "
            f"it learned from; train it anew: citerec train-reranker --index {index.path} --force, or name it all "
            f"the same: --reranker {name}"
        )
        return False

    @property
    def _running(self) -> str | None:
        """An option that says how a reranker is run; None if none was given."""
        given = {
            "--device": self.device != "auto",
            "--dtype": self.precision is not Precision.AUTO,
            "--backend": self.backend is not Backend.AUTO,
        }
        return next((option for option, value in given.items() if value), None)

    @property
    def _given(self) -> str | None:
        """An option that is of use with a reranker only; None if none was given."""
        given = {
            "--rerank-depth": self.depths,
            "--query-tokens": self.query_tokens,
            "--candidate-tokens": self.candidate_tokens,
            "--rerank-weight": self.weight is not None,
            "--early-stop": self.early_stop,
        }
        return next((option for option, value in given.items() if value), None)


def _stages(models: Sequence[str], asked: RerankOptions) -> tuple[RerankStage, ...]:
    number = len(models)
    depths = asked.depths or [0] * number
    if len(depths) != number:
        raise ConfigError(f"{len(depths)} --rerank-depth for {number} --reranker; give one each")
    query = _each("--query-tokens", asked.query_tokens, number)
    candidate = _each("--candidate-tokens", asked.candidate_tokens, number)
    return tuple(
        RerankStage(model=model, depth=depth, query_tokens=q, candidate_tokens=c)
        for model, depth, q, c in zip(models, depths, query, candidate, strict=True)
    )


def _each(option: str, values: Sequence[int] | None, number: int) -> Sequence[int]:
    """Spread one value for all, or take one for each."""
    if not values or len(values) == 1:
        return [values[0] if values else 0] * number
    if len(values) != number:
        raise ConfigError(
            f"{len(values)} {option} for {number} --reranker; give one, or one for each"
        )
    return values
