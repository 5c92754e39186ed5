"""The options of all commands with a reranker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.config import RerankConfig
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError
from citerec.rerank.requested import cross_encoders, first_given, is_none

if TYPE_CHECKING:
    from citerec.cli.console import ConsoleOutput
    from citerec.folder import IndexFolder

RerankerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--reranker",
        help="auto for that of the index, else citerec-reranker, the default one; none; a folder or hub id. If "
        "repeated, cheapest first: each reranks the best candidates of the previous one. By default that of the index; "
        "without one, recommend takes citerec-reranker where --ranker is none or was trained with a reranker.",
    ),
]
RerankDepthOption = Annotated[
    list[int] | None,
    typer.Option(
        "--rerank-depth",
        min=1,
        help="Reranked candidates, one number per reranker; by default what the model states, else as many as "
        "take about 1.5 seconds, in evaluate and tune 100.",
    ),
]
QueryTokensOption = Annotated[
    list[int] | None,
    typer.Option(
        "--query-tokens",
        min=64,
        max=448,
        help="Reranking: tokens of the query, one number for all rerankers or one each; the candidate gets the rest.",
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
        help="Weight of the last reranker against the order before it; by default 0.4 after a learning-to-rank "
        "model, else the tuned one, else what the model states (1 if nothing).",
    ),
]
EarlyStopOption = Annotated[
    bool,
    typer.Option(
        "--early-stop", help="Reranking: stop as soon as the result can no longer change."
    ),
]
DeviceOption = Annotated[str, typer.Option(help="Device of the reranker: auto, cpu, cuda, cuda:1.")]
DtypeOption = Annotated[
    Precision, typer.Option("--dtype", help="Data type of the reranker's computations.")
]
BackendOption = Annotated[
    Backend,
    typer.Option(
        help="Runtime of the reranker; auto: NumPy for few pairs, openvino on a CPU for long work, else torch."
    ),
]

OPTIONS = (  # the parameters of these options
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
    """The values of the options; None for options that were not given."""

    models: Sequence[str] | None = None
    depths: Sequence[int] | None = None
    query_tokens: Sequence[int] | None = None
    candidate_tokens: Sequence[int] | None = None
    weight: float | None = None
    early_stop: bool = False
    device: str = "auto"
    precision: Precision = Precision.AUTO
    backend: Backend = Backend.AUTO
    threads: int = 0
    measures: bool = (
        False  # whether metrics are computed: then not with a model that may know the test queries
    )

    def config(
        self, index: "IndexFolder", console: "ConsoleOutput", *, default: bool
    ) -> RerankConfig | None:
        """Return the reranker config for an index; None for no reranker.

        Args:
            index: `auto` is the reranker of this index.
            console: Receives options without effect, and warnings.
            default: Whether the default reranker is used where no option asks for a reranker.

        Raises:
            ConfigError: If the options contradict each other.
        """
        models = list(self.models or ["auto"])
        found = None
        if not is_none(models, self._given):
            asked = bool(self.models or self._given)
            found = self._resolved(models, index, console, default=default or asked)
        if found is None and self._running:
            console.log(f"{self._running} has no effect: there is no reranker")
        return found

    def _resolved(
        self, models: list[str], index: "IndexFolder", console: "ConsoleOutput", *, default: bool
    ) -> RerankConfig | None:
        """Return the config with the model that `auto` means; None if it means none.

        Raises:
            ConfigError: If `auto` is one of several models, and may not be used here.
        """
        from citerec.rerank.auto import auto_reranker, resolved

        config = RerankConfig(
            cross_encoders=cross_encoders(
                models, self.depths, self.query_tokens, self.candidate_tokens
            ),
            weight=self.weight,
            early_stop=self.early_stop,
            device=self.device,
            precision=self.precision,
            backend=self.backend,
            threads=self.threads,
        )
        found = resolved(config, index, default=default, same_data=self.measures, warn=console.warn)
        needs_one = models != ["auto"] or self._given
        if found is None and needs_one and auto_reranker(index) is None:
            return config  # opening it is an error
        if found is None and len(models) > 1:
            raise ConfigError("--reranker auto is not used here; name the other models alone")
        return found

    @property
    def _running(self) -> str | None:
        """The first given option for running a reranker; None if none was given."""
        return first_given(
            {
                "--device": self.device != "auto",
                "--dtype": self.precision is not Precision.AUTO,
                "--backend": self.backend is not Backend.AUTO,
            }
        )

    @property
    def _given(self) -> str | None:
        """The first given option that needs a reranker; None if none was given."""
        return first_given(
            {
                "--rerank-depth": self.depths,
                "--query-tokens": self.query_tokens,
                "--candidate-tokens": self.candidate_tokens,
                "--rerank-weight": self.weight is not None,
                "--early-stop": self.early_stop,
            }
        )
