"""What a budget of time buys: which models are trained on an index, and with which settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from citerec.encode.source import DEFAULT_RERANKER, is_shipped
from citerec.errors import ConfigError
from citerec.toml import read_toml
from citerec.train.budget.name import Budget
from citerec.train.encoder.config import EncoderTraining
from citerec.train.ranker.config import RankerTraining
from citerec.train.reranker.config import RerankerTraining
from citerec.train.settings import TrainingSettings

Tables = Mapping[str, Mapping[str, Any]]
Settings = TypeVar("Settings", bound=TrainingSettings)

ENCODER, RERANKER, RANKER = "encoder", "reranker", "ranker"  # steps, and tables of a settings file

SETTINGS: Mapping[Budget, Tables] = {
    Budget.MINUTES: {
        RANKER: {"queries": 2_000, "dev_queries": 300, "rerank_queries": 300, "rerank_depth": 20}
    },
    Budget.HOUR: {
        ENCODER: {
            "recipe": "memory",
            "queries": 3_000,
            "train_tokens": 128,
            "dev_pool": 1_500,
            "selection_metric": "f1",
        },
        RERANKER: {
            "recipe": "strong",
            "queries": 3_000,
            "query_tokens": 96,
            "candidate_tokens": 64,
            "teacher": "encoder",  # learns faster than from the fused order
            "distill": 0.5,
            "warm_steps": 0,
            "first_stage_weight": 0.85,
            "steps": 400,
            "batch": 8,
            "micro": 64,
            "eval_steps": 100,
            "dev_queries": 100,
            "selection_metric": "mixed",
        },
        RANKER: {"queries": 2_000, "dev_queries": 300, "rerank_depth": 20},
    },
    Budget.NIGHT: {
        ENCODER: {"recipe": "specter"},
        # A third of the updates of the paper, whose corpus has millions of papers.
        RERANKER: {"recipe": "paper", "steps": 100_000, "patience": 3},
        RANKER: {"queries": 20_000, "dev_queries": 2_000, "rerank_depth": 100},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPlan:
    """The settings of each step; None for a step that is left out."""

    budget: Budget
    encoder: EncoderTraining | None
    reranker: RerankerTraining | None
    ranker: RankerTraining

    @classmethod
    def read(
        cls, budget: Budget, file: Path | None = None, options: Mapping[str, Any] | None = None
    ) -> "TrainPlan":
        """Return the plan of a budget.

        Args:
            budget: Which steps there are, and their default settings.
            file: TOML with a table per step: its settings, as of the single commands.
            options: Settings of all steps, such as threads; None means not given.

        Raises:
            BadInputError: If the file cannot be read.
            ConfigError: If a table, a name or a value is invalid.
        """
        tables: Mapping[str, Any] = read_toml(file) if file else {}
        defaults = SETTINGS[budget]
        for name, table in tables.items():
            if name not in defaults or not isinstance(table, Mapping):
                steps = ", ".join(f"[{step}]" for step in defaults)
                raise ConfigError(f"{file}: budget {budget} has the tables {steps}, found {name!r}")
        given = {name: value for name, value in (options or {}).items() if value is not None}
        where = f"{file}: " if file else ""

        def settings(kind: type[Settings], step: str) -> Settings:
            table = tables.get(step, {})
            replaced = kind.replaced_by(table)
            kept = {name: v for name, v in defaults[step].items() if name not in replaced}
            return kind.of({**_base(budget, step), **kept, **table, **given}, where)

        return cls(
            budget=budget,
            encoder=settings(EncoderTraining, ENCODER) if ENCODER in defaults else None,
            reranker=settings(RerankerTraining, RERANKER) if RERANKER in defaults else None,
            ranker=settings(RankerTraining, RANKER),
        )

    @property
    def steps(self) -> list[str]:
        """The names of the steps in order."""
        by_encoder = [ENCODER, "vectors"] if self.encoder else []
        return [*by_encoder, *([RERANKER] if self.reranker else []), RANKER]

    def to_json(self) -> dict[str, Any]:
        """Return the settings of all steps as JSON values."""
        steps = {ENCODER: self.encoder, RERANKER: self.reranker, RANKER: self.ranker}
        settings = {name: step.to_json() for name, step in steps.items() if step}
        return {"budget": str(self.budget), **settings}

    def lines(self) -> list[str]:
        """Describe the steps, one per line."""
        described: list[str] = []
        if encoder := self.encoder:
            epochs = "1 epoch" if encoder.epochs == 1 else f"{encoder.epochs} epochs"
            described += [
                f"train-encoder: recipe {encoder.recipe}, base {encoder.model}, {epochs} of "
                f"{_queries(encoder.queries)}",
                "encode: the vectors of all papers, if the new encoder is better on dev than the present one",
            ]
        if reranker := self.reranker:
            length = (
                f"{reranker.steps:,} updates" if reranker.steps else f"{reranker.epochs} epochs"
            )
            described.append(
                f"train-reranker: recipe {reranker.recipe}, base {reranker.model}, {length} on "
                f"{_queries(reranker.queries)}"
            )
        described.append(
            f"train-ranker: {_queries(self.ranker.queries)}, at most {self.ranker.dev_queries:,} dev queries"
        )
        return [f"{number}. {line}" for number, line in enumerate(described, start=1)]


def _base(budget: Budget, step: str) -> dict[str, Any]:
    """Return the base model of a step where it is not that of its recipe: the model of the package, if any."""
    is_trained_on = budget is Budget.HOUR and step == RERANKER and is_shipped(DEFAULT_RERANKER)
    return {"model": DEFAULT_RERANKER} if is_trained_on else {}


def _queries(limit: int) -> str:
    return f"at most {limit:,} train queries" if limit else "all train queries"
