"""The training of a transformer: checks, training folder, loop, and the record of the result.

The trainer of each kind of model calls the steps of a `TrainingJob` in order: `start`, `begin`, `run`, `finish`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.atomic import building
from citerec.encode.source import ModelSource, find_model, recorded_folder
from citerec.errors import ConfigError, extra
from citerec.rules.held_out import BASES, recorded_indexes
from citerec.train.joined import TrainingIndex, name_of
from citerec.train.loop import Entry, TrainerSpec, from_first, run_loop
from citerec.train.measures import RATE, Point, best_point
from citerec.train.record import check_target, corpus_facts, training_record
from citerec.train.schedule import Schedule, plan_steps, trainer_arguments
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress

BEFORE = "before"  # name of the measures before the training in the training folder
PACKAGES = ("torch", "transformers", "accelerate")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """The result of the training of a transformer."""

    output: Path
    history: tuple[Point, ...]  # the first is before the training
    best: int  # the epoch (encoder) or update (reranker) of the saved weights
    queries: int
    examples: int  # per epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What a finished loop leaves; the best weights are in the net."""

    history: tuple[Point, ...]
    log: tuple[Entry, ...]
    best: Point
    spec: TrainerSpec


class TrainingJob:
    """One training of a transformer, in one process or in several that train together."""

    def __init__(
        self,
        output: Path,
        marker: str,
        schedule: Schedule,
        *,
        threads: int,
        resume: bool,
        force: bool,
        progress: Progress,
        log: Log,
    ) -> None:
        """Check that the model can be trained.

        Args:
            output: The model folder to create.
            marker: The name of the file that every model of this kind holds.
            schedule: How long and how fast the model is trained.
            threads: 0 for one per processor.
            resume: Whether an interrupted training is resumed.
            force: Whether an existing model may be replaced.
            progress: Receives task, done and total of each kind of work.
            log: Receives a line for each measure, and warnings.

        Raises:
            ConfigError: If the folder holds something else.
            ModelExistsError: If there is a model at `output` and `force` is false.
            MissingExtraError: If a package of the extra `train` is not installed.
        """
        check_target(output, marker, force=force)
        check_installed(seed=schedule.seed, threads=threads)
        self.output, self.schedule = output, schedule
        self.workspace = Workspace.for_model(output)
        self.progress, self.log = progress, log
        self.resumed = False  # whether the loop continues from a checkpoint
        self._resume = resume
        self.arguments: Any = None

    def start(self, *, has_dev: bool) -> AbstractContextManager[None]:
        """Select the device; return a context in which the first process prepares the data for the others."""
        self.arguments = trainer_arguments(self.schedule, self.workspace, has_dev=has_dev)
        if not self.is_first:
            self.log, self.progress = _discard, _discard
        return self.arguments.main_process_first()

    @property
    def is_first(self) -> bool:
        """Whether this is the first process, which writes and logs for all."""
        return self.arguments.process_index == 0

    @property
    def on_cpu(self) -> bool:
        """Whether the model is trained on the CPU."""
        return self.arguments.device.type == "cpu"

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Create the training folder, or continue with an existing one.

        Args:
            plan: The facts that must be equal to continue.

        Raises:
            ConfigError: If the training in the folder was started with other settings.
        """
        there = self._resume and self.workspace.is_there()
        if not self.is_first:  # the first process has created it, or opened and locked it
            if there:
                self.workspace.check(plan)
                self.resumed = self.workspace.checkpoint() is not None
            return
        if self.workspace.open(plan, resume=self._resume, log=self.log):
            last = self.workspace.checkpoint()
            self.log(f"resuming from {last.name}" if last else "no checkpoint yet: starting again")
            self.resumed = last is not None

    def run(
        self, spec: TrainerSpec, baseline: Callable[[], Mapping[str, float]] | None
    ) -> TrainingResult:
        """Measure the model before the training, and train it.

        Args:
            spec: What is trained.
            baseline: Returns the measures before the training; None without dev queries.
        """
        updates = plan_steps(self.arguments, spec.schedule, len(spec.examples))
        if spec.format_plan:
            self.log(spec.format_plan(updates))
        before: list[Point] = []
        if baseline is None:
            self.log("no dev queries: the last weights are saved")
        else:
            before = [Point.before(from_first(lambda: self._baseline(baseline)))]
            self.log(before[0].text(spec.unit))
        log = run_loop(spec, self.arguments, self.resumed)
        history = (*before, *(Point.of(entry) for entry in log if RATE in entry))
        best = best_point(history, spec.schedule.selection_metric)
        if best is None:
            raise ConfigError("the training made no update; raise epochs or steps")
        if not _is_finite(spec.net):
            self.workspace.remove()
            raise ConfigError(
                "the training diverged: weights became infinite or no numbers; lower learning_rate, now "
                f"{spec.schedule.learning_rate:g}; no model was written"
            )
        return TrainingResult(history=history, log=tuple(log), best=best, spec=spec)

    def _baseline(self, measure: Callable[[], Mapping[str, float]]) -> Mapping[str, float]:
        """Return the measures before the training, from the training folder if they are there."""
        if saved := self.workspace.load(BEFORE):
            return saved[1]
        measures = measure()
        self.workspace.save(BEFORE, {}, measures)
        return measures

    def finish(
        self,
        result: TrainingResult,
        facts: Mapping[str, Any],
        settings: Mapping[str, Any],
        write: Callable[[Path, Mapping[str, Any]], None],
    ) -> TrainingReport:
        """Write the model folder in the first process, and remove the training folder.

        Args:
            result: The result of the loop.
            facts: The entries of the training record that say what was trained on what; `counts` is one of them.
            settings: The settings without local paths.
            write: Writes the model and its record into a folder.
        """
        unit, counts = result.spec.unit, facts["counts"]
        best = result.best.number(unit)
        if self.is_first:
            points = [point.to_json(unit) for point in result.history]
            all_facts = {**facts, "history": points, f"best_{unit.point}": best}
            with building(self.output) as folder:
                write(folder, training_record(all_facts, settings, PACKAGES))
            self.workspace.remove()
        self._warn_if_worse(result)
        return TrainingReport(
            output=self.output,
            history=result.history,
            best=best,
            queries=counts["train_queries"],
            examples=counts["examples_an_epoch"],
        )

    def _warn_if_worse(self, result: TrainingResult) -> None:
        metric, first = result.spec.schedule.selection_metric, result.history[0]
        before, after = first.quality(metric), result.best.quality(metric)
        if not first.step and before is not None and after is not None and after <= before:
            self.log(
                f"the training did not improve the ranking: dev {metric} {before:.4f} "
                f"({result.spec.unit.start}), {after:.4f} after"
            )


def _is_finite(net: Any) -> bool:
    return all(bool(weights.isfinite().all()) for weights in net.parameters())


def check_installed(*, seed: int, threads: int) -> None:
    """Import the training packages; set the random seed and the number of threads (0: one per processor).

    Raises:
        MissingExtraError: If a package is not installed.
    """
    # Busy waiting of OpenMP threads slows training tenfold on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with extra("train"):
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        import transformers
    transformers.set_seed(seed)  # a new classification head is initialised at random
    if threads:
        torch.set_num_threads(threads)


def find_base(model: str, index: TrainingIndex, log: Log) -> ModelSource:
    """Return the base model of a training.

    Raises:
        ConfigError: If it has an adapter.
        ModelError: If it cannot be found.
    """
    source = find_model(model, base=index.path, log=log)
    if source.adapter:
        raise ConfigError(
            f"{model} has an adapter, which cannot be trained further; choose its base model with --model"
        )
    return source


def base_facts(
    source: ModelSource, weights: str, index: TrainingIndex, teachers: Sequence[Path] = ()
) -> dict[str, Any]:
    """Return the entries of a training record for the base model and the index.

    The name of a base model in a folder is recorded without its local path. What the base model and the teachers were
    trained on is recorded, too: the new model may know their queries.

    Args:
        source: The base model.
        weights: The sha256 of its weights.
        index: The training data.
        teachers: The folders of the models whose scores the new model learned.
    """
    local = recorded_folder(source.location, base=index.path) is not None
    base = source.folder.name if local else source.name
    facts = {"base": base, "weights": weights, "index": name_of(index), **corpus_facts(index)}
    earlier = recorded_indexes([source.folder, *teachers])
    return {**facts, BASES: earlier} if earlier else facts


def _discard(*_: object) -> None:
    """Ignore all arguments: the log and progress callback of every process but the first."""
