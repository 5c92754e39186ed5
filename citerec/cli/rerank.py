"""The options of all commands with a reranker."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.config import RerankConfig, StopWords
from citerec.encode.spec import Precision

if TYPE_CHECKING:
    from citerec.cli.console import ConsoleOutput
    from citerec.folder import IndexFolder

RerankerOption = Annotated[
    str | None,
    typer.Option(
        "--reranker",
        help="citerec-reranker, the default one of the package; none; a folder or hub id; auto: that of the index, and "
        "without one, in recommend, citerec-reranker where --ranker is none or was trained with a reranker.",
    ),
]
RerankDepthOption = Annotated[
    int | None,
    typer.Option(
        "--rerank-depth",
        min=1,
        help="Reranked candidates; by default what the model states, else as many as "
        "take about 1.5 seconds, in evaluate and tune 100.",
    ),
]
QueryTokensOption = Annotated[
    int | None,
    typer.Option(
        "--query-tokens",
        min=64,
        max=448,
        help="Reranking: tokens of the query; the candidate gets the rest.",
    ),
]
CandidateTokensOption = Annotated[
    int | None,
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
        help="Weight of the reranker against the order before it; by default 0.4 after a learning-to-rank "
        "model, else the tuned one, else what the model states (1 if nothing).",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="Device of the reranker: auto, cpu, cuda, cuda:1.")]
DtypeOption = Annotated[
    Precision, typer.Option("--dtype", help="Data type of the reranker's computations.")
]

OPTIONS = (  # the parameters of these options
    "reranker",
    "rerank_depth",
    "query_tokens",
    "candidate_tokens",
    "rerank_weight",
    "device",
    "dtype",
)


K1 = Annotated[
    float, typer.Option("--k1", min=0, help="BM25: term frequency saturation; at most 1000.")
]
B = Annotated[float, typer.Option("--b", min=0, max=1, help="BM25: length normalisation.")]
StopWordsOption = Annotated[
    StopWords, typer.Option(help="BM25: stop words that are removed from a query.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankOptions:
    """The values of the options; None for options that were not given."""

    model: str | None = None
    depth: int | None = None
    query_tokens: int | None = None
    candidate_tokens: int | None = None
    weight: float | None = None
    device: str = "auto"
    precision: Precision = Precision.AUTO
    threads: int = 0
    measures: bool = (
        False  # whether metrics are computed: then not with a model that may know the test queries
    )

    def config(
        self, index: "IndexFolder", console: "ConsoleOutput", *, default: bool
    ) -> RerankConfig | None:
        """Return the reranker config for an index, None for no reranker; see `choose_reranker`."""
        from citerec.rerank.reranker import choose_reranker

        config = RerankConfig(
            model="auto" if self.model is None else self.model,
            depth=self.depth or 0,
            query_tokens=self.query_tokens or 0,
            candidate_tokens=self.candidate_tokens or 0,
            weight=self.weight,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
        )
        return choose_reranker(
            config, index, default=default, same_data=self.measures, warn=console.warn
        )
