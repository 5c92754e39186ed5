"""Sets up the training loop for a cross-encoder, and reads its measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from citerec.index.tokens import open_tokens
from citerec.rerank.model import RerankerParts
from citerec.train.loop import RATE, Entry, TrainerSpec
from citerec.train.reranker.batch import Reader, Steps, Texts
from citerec.train.reranker.candidates import LabelledCandidates
from citerec.train.reranker.config import RerankerRecipe, RerankerSelectionMetric, RerankerTraining
from citerec.train.reranker.dev import RerankerDev, first_stage_measures
from citerec.train.reranker.examples import RerankerExamples
from citerec.train.reranker.net import make_net
from citerec.train.reranker.update import Update, collated
from citerec.train.workspace import Numbers, Workspace
from citerec.types import Log, Progress

DAY = 24 * 60 * 60  # seconds
SCORES = "dev-scores"  # name of the dev scores of an evaluation in the training folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The measures after a number of updates; point 0 is the first-stage ranking."""

    step: int
    epoch: float
    loss: float | None = None  # mean over the updates since the previous point
    dev_loss: float | None = None
    dev_mrr: float | None = None
    dev_f1: float | None = None
    dev_mixed: float | None = None
    pairs_per_second: float | None = None

    @classmethod
    def all(cls, log: Sequence[Entry]) -> "tuple[Point, ...]":
        """Read all measures from the log."""
        return tuple(cls.of(entry) for entry in log if RATE in entry)

    @classmethod
    def of(cls, entry: Entry) -> "Point":
        """Read the measures from a log entry."""
        return cls(
            step=entry["step"],
            epoch=round(entry["epoch"], 3),
            loss=entry.get("epoch_loss"),
            dev_loss=entry.get("eval_loss"),
            dev_mrr=entry.get("eval_mrr"),
            dev_f1=entry.get("eval_f1"),
            dev_mixed=entry.get("eval_mixed"),
            pairs_per_second=entry[RATE],
        )

    def quality(self, selection_metric: RerankerSelectionMetric) -> float | None:
        """Return the selection metric, with a sign so that higher is better; None if it was not measured."""
        if selection_metric is RerankerSelectionMetric.LOSS:
            return None if self.dev_loss is None else -self.dev_loss
        return {
            RerankerSelectionMetric.F1: self.dev_f1,
            RerankerSelectionMetric.MRR: self.dev_mrr,
            RerankerSelectionMetric.MIXED: self.dev_mixed,
        }[selection_metric]

    def __str__(self) -> str:
        measures = {
            "loss": self.loss,
            "dev loss": self.dev_loss,
            "dev MRR": self.dev_mrr,
            "dev F1": self.dev_f1,
            "mixed": self.dev_mixed,
            "pairs/s": self.pairs_per_second,
        }
        figures = [f"{name} {value:.4g}" for name, value in measures.items() if value is not None]
        point = f"step {self.step}" if self.step else "first stage"
        return f"{point}: {', '.join(figures) or 'done'}"


@dataclass(frozen=True)
class RerankerSetup:
    """The model, the data and the callbacks of a training."""

    parts: RerankerParts
    labelled: LabelledCandidates
    config: RerankerTraining
    dev: RerankerDev | None
    workspace: Workspace
    progress: Progress
    log: Log
    tokenizer: str = ""  # sha256 of its files; key of the token store of the index
    entries: list[Entry] = field(default_factory=list[Entry])  # the log of the finished loop

    @cached_property
    def texts(self) -> Texts:
        """The tokens of the papers, from the token store of the index if it has them."""
        index = self.labelled.data.index
        stored = open_tokens(index, self.tokenizer, vocabulary=len(self.parts.tokenizer))
        return Texts(self.parts, index.papers, stored)

    @cached_property
    def examples(self) -> RerankerExamples:
        """The examples of the training."""
        steps = Steps(Reader(self.parts, self.texts, on_cpu=True), self.labelled, 1)
        return RerankerExamples(self.labelled, self.config, steps.lengths, self.progress)

    @property
    def updates(self) -> int:
        """The number of updates that were made."""
        return max((entry["step"] for entry in self.entries), default=0)

    def baseline(self) -> tuple[Point, ...]:
        """Measure the first-stage ranking; empty without dev queries."""
        if self.dev is None:
            self.log("no dev queries: the last weights are saved")
            return ()
        measures = {f"dev_{name}": value for name, value in first_stage_measures(self.dev).items()}
        point = Point(step=0, epoch=0.0, **measures)
        self.log(str(point))
        return (point,)

    def trainer_spec(self, *, on_cpu: bool) -> TrainerSpec:
        """Return the specification of the training loop."""
        reader = Reader(self.parts, self.texts, on_cpu=on_cpu)
        steps = Steps(reader, self.labelled, self.config.micro)
        if (
            on_cpu
        ):  # on a CPU the backward pass of eager attention is faster: 21 pairs/s instead of 16
            self.parts.model.set_attn_implementation("eager")
        net = make_net(self.parts, self.config)

        def measure(step: int) -> Mapping[str, float] | None:
            if self.dev is None:
                return None
            scores = self.dev.scores(self.parts, self.texts, self.config.running)
            self.workspace.save(f"{SCORES}-{step}", {"logits": scores})
            return self.dev.measures(scores)

        return TrainerSpec(
            schedule=self.config.schedule,
            examples=self.examples,
            collator=collated,
            net=net,
            update=Update(steps, warm_steps=self.config.warm_steps, log=self.log),
            measure=measure,
            format_measures=lambda entry: str(Point.of(entry)),
            format_remaining=lambda seconds: remaining_time(seconds, self.config, on_cpu=on_cpu),
            examples_per_item=self.config.in_list,
            workspace=self.workspace,
            progress=self.progress,
            log=self.log,
            log_loss=True,
        )


def planned_updates(updates: int, config: RerankerTraining) -> str:
    """Return the log line of the planned updates."""
    pairs = config.batch * config.in_list
    return f"{updates:,} updates of {pairs:,} pairs: {updates * pairs:,} pairs"


def remaining_time(seconds: float, config: RerankerTraining, *, on_cpu: bool) -> str:
    """Return the log line of the remaining time, with faster recipes if it is very long on a CPU."""
    units = (("days", DAY), ("hours", 3600), ("minutes", 60), ("seconds", 1))
    name, unit = next(((n, u) for n, u in units if seconds >= 2 * u), units[-1])
    estimate = f"about {round(seconds / unit):,} {name} to go, without the evaluations"
    if not on_cpu or seconds <= DAY or config.recipe is not RerankerRecipe.PAPER:
        return estimate
    return f"{estimate}; on a CPU --recipe {RerankerRecipe.STRONG} or {RerankerRecipe.PAPER_SMALL} is faster"


def dev_scores(workspace: Workspace, step: int) -> Numbers | None:
    """Return the logits of the dev candidates after a number of updates; None if they are not saved."""
    stored = workspace.saved(f"{SCORES}-{step}", "logits")
    return stored["logits"] if stored else None


def curve(log: Sequence[Entry]) -> list[tuple[int, float]]:
    """Return the loss curve: the update, and the mean loss since the previous entry."""
    return [(entry["step"], entry["loss"]) for entry in log if "loss" in entry]
