"""What the training loop works with when an encoder is trained."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from citerec.encode.encoder import Vectors
from citerec.encode.model import Parts
from citerec.encode.spec import Fingerprint
from citerec.train.encoder.batch import Collator
from citerec.train.encoder.config import EncoderTraining, Loss
from citerec.train.encoder.dev import Dev, DevMeasures, frozen_encoder, measure
from citerec.train.encoder.examples import Examples
from citerec.train.encoder.net import make_net
from citerec.train.loop import RATE, Entry, TrainerSpec
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What is known of an epoch once it is over; 0 is before training."""

    epoch: int
    loss: float | None  # mean of its updates
    dev_loss: float | None
    dev_mrr: float | None
    dev_f1: float | None
    examples_per_second: float | None

    @classmethod
    def of(cls, entry: Entry) -> "Epoch":
        """Read it off an entry of the log."""
        return cls(
            epoch=round(entry["epoch"]),
            loss=entry.get("epoch_loss"),
            dev_loss=entry.get("eval_loss"),
            dev_mrr=entry.get("eval_mrr"),
            dev_f1=entry.get("eval_f1"),
            examples_per_second=entry[RATE],
        )

    def __str__(self) -> str:
        named = {
            "loss": self.loss,
            "dev loss": self.dev_loss,
            "dev MRR": self.dev_mrr,
            "dev F1": self.dev_f1,
            "examples/s": self.examples_per_second,
        }
        said = [f"{name} {value:.4g}" for name, value in named.items() if value is not None]
        return f"epoch {self.epoch}: {', '.join(said) or 'done'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderCourse:
    """What is trained, and what with."""

    parts: Parts
    fingerprint: Fingerprint  # of the base model
    examples: Examples
    dev: Dev | None
    workspace: Workspace
    progress: Progress
    log: Log

    @property
    def config(self) -> EncoderTraining:
        """How it trains."""
        return self.examples.config

    def measured(self) -> DevMeasures | None:
        """Measure the model as it is now."""
        if self.dev is None:
            return None
        frozen = frozen_encoder(self.parts, self.fingerprint, self.config)
        return measure(self.dev, frozen, self.config)

    def loop(self, *, on_cpu: bool, going_on: bool) -> TrainerSpec:
        """Return what the loop works with.

        Args:
            on_cpu: Whether it trains on a processor.
            going_on: Whether it goes on from a checkpoint.
        """
        net = make_net(self.parts, self.config, self._remembered(going_on))
        return TrainerSpec(
            schedule=self.config.schedule,
            examples=self.examples,
            collator=Collator(self.parts, self.examples, on_cpu=on_cpu),
            net=net,
            measure=self._measures,
            told=lambda entry: str(Epoch.of(entry)),
            workspace=self.workspace,
            progress=self.progress,
            log=self.log,
        )

    def _measures(self, _: int) -> Mapping[str, Any] | None:
        found = self.measured()
        return asdict(found) if found else None

    def _remembered(self, going_on: bool) -> Vectors | None:
        """Return what the memory begins with: the papers as the base model reads them, cut as in training.

        Who goes on from a checkpoint finds in it what to remember.
        """
        config, parts = self.config, self.parts
        if config.loss is not Loss.MEMORY:
            return None
        if going_on:
            return np.zeros((len(self.examples.learners), parts.dim), np.float32)
        tokens = min(config.train_tokens or parts.spec.max_tokens, parts.spec.max_tokens)
        short = replace(parts, spec=replace(parts.spec, max_tokens=tokens))
        encoder = frozen_encoder(short, self.fingerprint, config)
        papers = self.examples.data.index.papers.at(self.examples.learners.tolist())
        return encoder.encode(
            [*papers.values()], lambda _, n, of: self.progress("remembering", n, of)
        )
