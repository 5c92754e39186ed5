"""What the training loop works with when a cross-encoder is trained, and what it measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from citerec.index.tokens import open_tokens
from citerec.rerank.model import RerankerParts
from citerec.train.loop import RATE, Entry, TrainerSpec
from citerec.train.reranker.batch import Reader, Steps, Texts
from citerec.train.reranker.config import Recipe, RerankerTraining, SelectionMetric
from citerec.train.reranker.dev import Dev, own_order
from citerec.train.reranker.examples import RerankerExamples
from citerec.train.reranker.found import Labelled
from citerec.train.reranker.net import make_net
from citerec.train.reranker.update import Update, collated
from citerec.train.workspace import Numbers, Workspace
from citerec.types import Log, Progress

DAY = 24 * 60 * 60  # seconds
SCORES = "dev-scores"  # of an evaluation, that the training folder keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is known after so many updates; 0 is the order in which the candidates were found."""

    step: int
    epoch: float
    loss: float | None = None  # mean of the updates since the point before
    dev_loss: float | None = None
    dev_mrr: float | None = None
    dev_f1: float | None = None
    dev_mixed: float | None = None
    pairs_per_second: float | None = None

    @classmethod
    def all(cls, log: Sequence[Entry]) -> "tuple[Point, ...]":
        """Read all that was measured off the log."""
        return tuple(cls.of(entry) for entry in log if RATE in entry)

    @classmethod
    def of(cls, entry: Entry) -> "Point":
        """Read it off an entry of the log."""
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

    def merit(self, selection_metric: SelectionMetric) -> float | None:
        """Return how good it is: higher is better."""
        if selection_metric is SelectionMetric.LOSS:
            return None if self.dev_loss is None else -self.dev_loss
        return {
            SelectionMetric.F1: self.dev_f1,
            SelectionMetric.MRR: self.dev_mrr,
            SelectionMetric.MIXED: self.dev_mixed,
        }[selection_metric]

    def __str__(self) -> str:
        named = {
            "loss": self.loss,
            "dev loss": self.dev_loss,
            "dev MRR": self.dev_mrr,
            "dev F1": self.dev_f1,
            "mixed": self.dev_mixed,
            "pairs/s": self.pairs_per_second,
        }
        said = [f"{name} {value:.4g}" for name, value in named.items() if value is not None]
        when = f"step {self.step}" if self.step else "as found"
        return f"{when}: {', '.join(said) or 'done'}"


@dataclass(frozen=True)
class RerankerSetup:
    """What is trained, and what with."""

    parts: RerankerParts
    known: Labelled
    config: RerankerTraining
    dev: Dev | None
    workspace: Workspace
    progress: Progress
    log: Log
    tokenizer: str = ""  # sha256 of its files, by which an index keeps the tokens of its papers
    entries: list[Entry] = field(default_factory=list[Entry])  # of the loop, once it is over

    @cached_property
    def texts(self) -> Texts:
        """The tokens of the papers: those that the index keeps, if it does."""
        index = self.known.data.index
        kept = open_tokens(index, self.tokenizer, vocabulary=len(self.parts.tokenizer))
        return Texts(self.parts, index.papers, kept)

    @cached_property
    def examples(self) -> RerankerExamples:
        """What is learned from."""
        steps = Steps(Reader(self.parts, self.texts, on_cpu=True), self.known, 1)
        return RerankerExamples(self.known, self.config, steps.lengths, self.progress)

    @property
    def updated(self) -> int:
        """How many updates were made."""
        return max((entry["step"] for entry in self.entries), default=0)

    def before(self) -> tuple[Point, ...]:
        """Return how good the order of the candidates is."""
        if self.dev is None:
            self.log("no dev queries: the last weights are kept, whether or not they are the best")
            return ()
        found = {f"dev_{name}": value for name, value in own_order(self.dev).items()}
        point = Point(step=0, epoch=0.0, **found)
        self.log(str(point))
        return (point,)

    def loop(self, *, on_cpu: bool) -> TrainerSpec:
        """Return what the loop works with."""
        reader = Reader(self.parts, self.texts, on_cpu=on_cpu)
        steps = Steps(reader, self.known, self.config.micro)
        if on_cpu:  # backwards, plain attention is faster on a processor than the fused one: 21 pairs/s to 16
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
            told=lambda entry: str(Point.of(entry)),
            timed=lambda seconds: lasting(seconds, self.config, on_cpu=on_cpu),
            rated=self.config.in_list,
            workspace=self.workspace,
            progress=self.progress,
            log=self.log,
            log_loss=True,
        )


def extent(updates: int, config: RerankerTraining) -> str:
    """Return the line that says how much is to be done."""
    pairs = config.batch * config.in_list
    return f"{updates:,} updates of {pairs:,} pairs: {updates * pairs:,} pairs"


def lasting(seconds: float, config: RerankerTraining, *, on_cpu: bool) -> str:
    """Return the line that says how long it takes from now on, and what takes less if that is too long."""
    units = (("days", DAY), ("hours", 3600), ("minutes", 60), ("seconds", 1))
    name, unit = next(((n, u) for n, u in units if seconds >= 2 * u), units[-1])
    said = f"about {round(seconds / unit):,} {name} to go, besides the evaluations"
    if not on_cpu or seconds <= DAY or config.recipe is not Recipe.PAPER:
        return said
    return f"{said}; on a processor --recipe {Recipe.STRONG} or {Recipe.PAPER_SMALL} learns in less"


def dev_scores(workspace: Workspace, step: int) -> Numbers | None:
    """Return the logits that the dev candidates were given after so many updates."""
    kept = workspace.saved(f"{SCORES}-{step}", "logits")
    return kept["logits"] if kept else None


def curve(log: Sequence[Entry]) -> list[tuple[int, float]]:
    """Return the loss curve: update and mean loss of the updates since the one before."""
    return [(entry["step"], entry["loss"]) for entry in log if "loss" in entry]
