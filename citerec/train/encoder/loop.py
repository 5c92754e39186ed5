"""Sets up the training loop for an encoder."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from citerec.encode.encoder import Vectors
from citerec.encode.model import Parts
from citerec.encode.spec import Fingerprint
from citerec.train.encoder.batch import Collator
from citerec.train.encoder.config import EncoderLoss, EncoderTraining
from citerec.train.encoder.dev import DevMeasures, EncoderDev, frozen_encoder, measure
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.net import make_net
from citerec.train.loop import RATE, Entry, TrainerSpec
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The measures of an epoch; epoch 0 is before the training."""

    epoch: int
    loss: float | None  # mean over its updates
    dev_loss: float | None
    dev_mrr: float | None
    dev_f1: float | None
    examples_per_second: float | None

    @classmethod
    def of(cls, entry: Entry) -> "Epoch":
        """Read the measures from a log entry."""
        return cls(
            epoch=round(entry["epoch"]),
            loss=entry.get("epoch_loss"),
            dev_loss=entry.get("eval_loss"),
            dev_mrr=entry.get("eval_mrr"),
            dev_f1=entry.get("eval_f1"),
            examples_per_second=entry[RATE],
        )

    def __str__(self) -> str:
        measures = {
            "loss": self.loss,
            "dev loss": self.dev_loss,
            "dev MRR": self.dev_mrr,
            "dev F1": self.dev_f1,
            "examples/s": self.examples_per_second,
        }
        figures = [f"{name} {value:.4g}" for name, value in measures.items() if value is not None]
        return f"epoch {self.epoch}: {', '.join(figures) or 'done'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSetup:
    """The model, the data and the callbacks of a training."""

    parts: Parts
    fingerprint: Fingerprint  # of the base model
    examples: EncoderExamples
    dev: EncoderDev | None
    workspace: Workspace
    progress: Progress
    log: Log

    @property
    def config(self) -> EncoderTraining:
        """The settings."""
        return self.examples.config

    def measure_dev(self) -> DevMeasures | None:
        """Measure the current model on the dev queries; None if there are none."""
        if self.dev is None:
            return None
        frozen = frozen_encoder(self.parts, self.fingerprint, self.config)
        return measure(self.dev, frozen, self.config)

    def trainer_spec(self, *, on_cpu: bool, resumed: bool) -> TrainerSpec:
        """Return the specification of the training loop.

        Args:
            on_cpu: Whether the model is trained on the CPU.
            resumed: Whether the training continues from a checkpoint.
        """
        net = make_net(self.parts, self.config, self._initial_memory(resumed))
        return TrainerSpec(
            schedule=self.config.schedule,
            examples=self.examples,
            collator=Collator(self.parts, self.examples, on_cpu=on_cpu),
            net=net,
            measure=self._measures,
            format_measures=lambda entry: str(Epoch.of(entry)),
            workspace=self.workspace,
            progress=self.progress,
            log=self.log,
        )

    def _measures(self, _: int) -> Mapping[str, Any] | None:
        measures = self.measure_dev()
        return asdict(measures) if measures else None

    def _initial_memory(self, resumed: bool) -> Vectors | None:
        """Return the initial memory: the vectors of the base model, cut as in training; None without a memory.

        Returns:
            Shape (papers, dim); zeros for a resumed training, as the checkpoint contains the memory.
        """
        config, parts = self.config, self.parts
        if config.loss is not EncoderLoss.MEMORY:
            return None
        if resumed:
            return np.zeros((len(self.examples.learners), parts.dim), np.float32)
        tokens = min(config.train_tokens or parts.spec.max_tokens, parts.spec.max_tokens)
        short = replace(parts, spec=replace(parts.spec, max_tokens=tokens))
        encoder = frozen_encoder(short, self.fingerprint, config)
        papers = self.examples.data.index.papers.at(self.examples.learners.tolist())
        return encoder.encode(
            [*papers.values()], lambda _, n, of: self.progress("encoding the memory", n, of)
        )
