"""How a transformer is trained and what that leaves: arguments, loop, checkpoints; training record, model card, folder.

The loop, the schedule and the checkpoints are those of transformers' Trainer (sentence-transformers subclasses it);
several GPUs train together under `accelerate launch`.
"""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import orjson

from citerec.display import filled
from citerec.encode.machine import provenance
from citerec.encode.models import (
    ModelSource,
    find_model,
    is_name,
    recorded_folder,
    weights_files,
)
from citerec.encode.spec import Precision, has_bfloat16
from citerec.errors import ConfigError, ModelExistsError, extra, writing
from citerec.files.arrays import Array
from citerec.files.atomic import building, locked, refuse_links
from citerec.files.cache import sha256_of_files
from citerec.files.checksums import CARD, TRAINING, indented_json, seal_model
from citerec.index.folder import IndexFolder
from citerec.rules.held_out import BASES, data_of, recorded_indexes
from citerec.train.data import TrainingData, load_training_data
from citerec.train.settings import ModelTraining, RerankerTraining
from citerec.types import Json, Log, Progress

EVERY = 600.0  # seconds between checkpoints: what a crash loses at most
WEIGHT_DECAY = 0.01
CPU_TOKENS = 1024  # more take memory and no less time
GPU_TOKENS = 65_536
PLAN = "plan.json"
NEW = "-new"  # suffix of a model that is not in use

Arrays = Mapping[str, Array]


# --- what a training depends on


def corpus_facts(index: IndexFolder) -> Json:
    """Return what identifies the papers and splits of an index."""
    corpus, splits = data_of(index)
    return {"corpus_sha256": corpus, "splits_sha256": splits}


def encoder_folder(index: IndexFolder) -> Path | None:
    """Return the folder of the model that an index was embedded by; None without vectors or if it has only a name."""
    recorded = index.manifest.settings.get("encoder")
    return (
        recorded_folder(str(recorded["source"]), base=index.path) if recorded else None
    )


def plan_of(config: ModelTraining, index: IndexFolder) -> Json:
    """Return what the training of a transformer depends on: settings, base model, papers, splits, and a teacher.

    The base model is identified by its name, or by the sha256 of the weights of a local folder.
    """
    base = config.model
    folders = [folder for folder in (Path(base), index.path / base) if folder.is_dir()]
    if folders and not is_name(base):
        base = sha256_of_files(weights_files(folders[0]))
    plan = config.model_dump(mode="json") | {"model": base} | corpus_facts(index)
    if isinstance(config, RerankerTraining):
        reads_vectors = config.distill or config.candidates == "fused"
        plan["encoder"] = index.encoder_weights if reads_vectors else None
    return plan


def was_trained_so(model: Path, plan: Json) -> bool:
    """Return whether a model was trained as a plan says: with these settings, on these papers, splits and vectors."""
    return read_training(model).get("plan") == plan


def read_training(model: Path) -> Json:
    """Return the content of training.json; empty if it cannot be read."""
    try:
        return orjson.loads((model / TRAINING).read_bytes())
    except (OSError, ValueError):
        return {}


def target_of(
    output: Path | None, index: IndexFolder, name: str, spec: str, *, force: bool
) -> Path:
    """Return the folder of a new model: `output`, else that of the index's own models of a name.

    It may not replace a folder that is no trained model with a file `spec`, and a model, in use or not, only with
    `force`.
    """
    target = output or index.models / name
    for folder in (
        (target,) if output else (target, own_folder(target, is_better=False))
    ):
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            continue
        if not (folder / spec).is_file() or not (folder / TRAINING).is_file():
            raise ConfigError(
                f"{folder} exists and is no model that citerec trained; move it away, or choose another folder"
            )
        if not force:
            raise ModelExistsError(
                f"{folder} already exists; replace it with --force, or name another folder with --output"
            )
    return target


# --- the training folder


@dataclass(frozen=True, slots=True)
class TrainingState:
    """The folder next to a model that holds checkpoints and prepared arrays of its unfinished training."""

    model: Path

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.model.absolute().with_name(f".{self.model.name}.training")

    @contextmanager
    def open(self, plan: Json, *, resume: bool, log: Log) -> Generator[None]:
        """Start a training, or resume one of the same plan; a block that ends without an error removes the folder.

        LockedError if another process trains the model. Of the processes of one training, the first does all this.
        """
        if not is_first():
            yield
            return
        file = self.folder / PLAN
        with locked(self.model):
            if resume and file.is_file():
                refuse_links(self.folder)
                started = orjson.loads(file.read_bytes())
                for name in started | plan:
                    if started.get(name) != plan.get(name):
                        raise ConfigError(
                            f"the training in {self.folder} had other settings: {name} was {started.get(name)}, is "
                            f"{plan.get(name)}; use the same ones, or leave --resume out"
                        )
            else:
                if resume:
                    log(f"nothing to resume at {self.folder}: starting again")
                with writing(self.folder):
                    shutil.rmtree(self.folder, ignore_errors=True)
                    self.folder.mkdir(parents=True)
                    file.write_bytes(indented_json(plan))
            try:
                yield
            except ConfigError:  # nothing to learn from: what was prepared is of no use
                shutil.rmtree(self.folder, ignore_errors=True)
                raise
            shutil.rmtree(self.folder, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folder if it is there; LockedError if another process trains the model."""
        if self.folder.exists():
            with locked(self.model):
                shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def checkpoint(self) -> Path | None:
        """The last complete checkpoint."""
        # which is written last
        whole = self.folder.glob("checkpoint-*/trainer_state.json")
        return max(
            (f.parent for f in whole), key=lambda f: int(f.name[11:]), default=None
        )


def cached_arrays(
    folder: Path, name: str, make: Callable[[], Arrays]
) -> dict[str, Array]:
    """Return the arrays that a folder holds under a name; if it has none, make and save them.

    Of several processes the first one makes them, before the others read them.
    """
    file = folder / f"{name}.npz"
    unfinished = folder / f"{name}.tmp.npz"
    turn: Any = nullcontext()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from accelerate import PartialState

        one_day = timedelta(days=1)  # a search of millions of queries
        turn = PartialState(timeout=one_day).main_process_first()
    with turn:
        if not file.is_file():
            with writing(file):
                folder.mkdir(exist_ok=True)
                np.savez(unfinished, allow_pickle=False, **make())
                unfinished.replace(file)
    with np.load(file, allow_pickle=False) as read:
        return {part: read[part] for part in read.files}


# --- the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The measures after a number of updates; step 0 is before the training."""

    step: int
    epoch: float
    loss: float | None = None  # mean over the updates since the previous point
    # measures on the dev queries, by name; empty without dev queries
    dev: Mapping[str, float]

    def __str__(self) -> str:
        figures = {"loss": self.loss} if self.loss is not None else {}
        figures |= {f"dev {name}": value for name, value in self.dev.items()}
        shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        return f"update {self.step:,}: {shown}" if self.step else f"before: {shown}"


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The result of the training of a transformer."""

    output: Path
    queries: int
    examples: int  # per epoch
    # the first is of the base encoder, or of the first stage
    history: tuple[Point, ...]
    best: Point  # the evaluation of the saved weights
    is_better: bool  # on dev than what the model stands on; false without dev queries


def is_first() -> bool:
    """Whether this is the first process of a training, which writes and logs for all."""
    return int(os.environ.get("RANK", "0")) == 0


def prepare(
    config: ModelTraining, index: IndexFolder, log: Log
) -> tuple[TrainingData, ModelSource]:
    """Import the packages of the extra `train`; set seed and threads; return the training data and the base model.

    A base model with an adapter is refused.
    """
    # Busy waiting of OpenMP threads slows training tenfold on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with extra("train"):
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        import transformers
    transformers.logging.set_verbosity_error()
    # a new classification head is initialised at random
    transformers.set_seed(config.seed)
    if config.threads:
        torch.set_num_threads(config.threads)
    data = load_training_data(index).sampled(config.queries, config.seed)
    source = find_model(config.model, base=index.path, log=log)
    if source.adapter:
        raise ConfigError(
            f"{config.model} has an adapter, which cannot be trained further; choose its base model"
        )
    return data, source


def arguments_of(
    kind: Any, config: ModelTraining, folder: Path, *, has_dev: bool
) -> Any:
    """Return the arguments of a Trainer, of class `kind`.

    Dev queries select the weights by `config.metric`; without, the last weights are saved.
    """
    import torch

    on_cpu = config.device == "cpu" or not torch.cuda.is_available()
    bfloat16 = has_bfloat16() if on_cpu else torch.cuda.is_bf16_supported()
    strategy = "steps" if config.eval_steps else "epoch"
    steps = config.eval_steps or 500
    arguments = kind(
        output_dir=str(folder),
        use_cpu=on_cpu,
        bf16=bfloat16
        if config.dtype is Precision.AUTO
        else config.dtype is Precision.BFLOAT16,
        seed=config.seed,
        num_train_epochs=config.epochs,
        max_steps=config.steps or -1,
        learning_rate=config.learning_rate,
        warmup_steps=config.warmup,
        weight_decay=WEIGHT_DECAY,
        eval_strategy=strategy if has_dev else "no",
        save_strategy=strategy,
        logging_strategy=strategy,  # so that a logged loss is the mean since the last evaluation
        eval_steps=config.eval_steps or None,
        save_steps=steps,
        logging_steps=steps,
        save_total_limit=2,
        load_best_model_at_end=has_dev,
        metric_for_best_model=f"eval_{config.metric}" if has_dev else None,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        label_names=[],
        disable_tqdm=True,
        log_level="error",
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several: accelerate launch
    if config.batch % arguments.world_size:
        raise ConfigError(
            f"batch must be a multiple of the number of devices, {arguments.world_size}; got {config.batch}"
        )
    arguments.per_device_train_batch_size = config.batch // arguments.world_size
    return arguments


def tokens_at_once(model: Any, arguments: Any) -> int:
    """Return how many tokens, including padding, a training may read at once within its memory.

    A model on a processor gets the plain implementation of attention, whose gradient is several times as fast there.
    """
    if arguments.device.type != "cpu":
        return GPU_TOKENS
    model.set_attn_implementation("eager")
    return CPU_TOKENS


def train(
    trainer: Any,
    state: TrainingState,
    before: Mapping[str, float],
    *,
    resume: bool,
    on_epoch: Callable[[int], None] = lambda number: None,
    progress: Progress,
    log: Log,
) -> tuple[tuple[Point, ...], Point]:
    """Run a Trainer; leave the best weights in its model. Return the history, and the point of these weights.

    A first Ctrl-C or SIGTERM ends the training after the update at hand, with a checkpoint; a second one at once.

    `trainer` logs its evaluation under `eval_` names, `before` are the measures before the training, and `on_epoch`
    receives the number of each epoch before it begins, from 0.
    """
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    metric = trainer.args.metric_for_best_model
    first = Point(step=0, epoch=0.0, dev=before)
    log(str(first) if metric else "no dev queries: the last weights are saved")
    last = state.checkpoint if resume else None
    if last:
        log(f"resuming from {last.name}")
    with writing(state.folder), _stoppable() as stopping:
        trainer.add_callback(_watch(on_epoch, stopping, progress, log))
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    history = (first, *_points(trainer.state.log_history, metric))
    if len(history) == 1:
        raise ConfigError("the training made no update; raise epochs or steps")
    if not all(
        bool(weights.isfinite().all()) for weights in trainer.model.parameters()
    ):
        raise ConfigError(
            "the training diverged: weights became infinite or no numbers; lower learning_rate, now "
            f"{trainer.args.learning_rate:g}"
        )
    if not metric:
        return history, history[-1]
    name = metric.removeprefix("eval_")
    best = max(history[1:], key=lambda point: point.dev[name])
    if best.dev[name] <= before[name]:
        log(
            f"the training did not improve dev {name}: {before[name]:.4f}, {best.dev[name]:.4f}"
        )
    return history, best


@contextmanager
def _stoppable() -> Generator[list[int]]:
    """Collect a signal in the yielded list, and raise it again at the end; a second one ends the block at once."""
    caught: list[int] = []
    former: dict[int, Any] = {}

    def catch(number: int, _: object) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    if threading.current_thread() is threading.main_thread():
        former = {n: signal.signal(n, catch) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if caught:
        signal.raise_signal(caught[0])
        raise KeyboardInterrupt


def _watch(
    on_epoch: Callable[[int], None],
    stopping: Sequence[int],
    progress: Progress,
    log: Log,
) -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        saved = monotonic()

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            on_epoch(int(state.epoch or 0))

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress("training", state.global_step, state.max_steps)
            alone = args.world_size == 1  # clocks of several processes would not agree
            if stopping or (alone and monotonic() - self.saved > EVERY):
                control.should_save = True
            control.should_log |= bool(args.eval_steps) and control.should_training_stop
            control.should_training_stop |= bool(stopping)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_evaluate &= not stopping

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.saved = monotonic()

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            # at the end of an epoch it may be due twice
            control.should_evaluate = False
            if state.is_world_process_zero:
                log(str(_points(state.log_history, args.metric_for_best_model)[-1]))

    return Watch()


def _points(entries: Sequence[Mapping[str, Any]], metric: str | None) -> list[Point]:
    """Return the evaluations of a Trainer's log with the loss before each; without evaluations, its end."""
    points: list[Point] = []
    loss: float | None = None
    for entry in entries:
        loss = entry.get("loss", loss)
        if metric in entry or (metric is None and "train_runtime" in entry):
            dev = {
                k[5:]: v
                for k, v in entry.items()
                if k in ("eval_mrr", "eval_f1", "eval_mixed")
            }
            points.append(
                Point(step=entry["step"], epoch=entry["epoch"], loss=loss, dev=dev)
            )
    return points


# --- what a training leaves


def finish(
    output: Path,
    trained: tuple[tuple[Point, ...], Point],
    config: ModelTraining,
    index: IndexFolder,
    source: ModelSource,
    facts: Mapping[str, Any],
    write: Callable[[Path], Mapping[str, Any]],
    card: str,
    *,
    teachers: Sequence[Path] = (),
    is_better: bool,
) -> TrainingReport:
    """Write the folder of a model in the first process; return the report.

    What the base model `source` and the teachers were trained on is recorded: the new model may know their queries.
    `trained` is what `train` returned, `facts` are entries of the record, `is_better` goes into it. `write` saves the
    model in a folder, and returns what the card shows besides the record.
    """
    history, best = trained
    if is_first():
        # of a model in a folder, the name without its path
        local = recorded_folder(source.location, base=index.path) is not None
        base = source.folder.name if local else source.name
        earlier = recorded_indexes([source.folder, *teachers])
        record = {
            "base": base,
            "weights": sha256_of_files(weights_files(source.folder)),
            "index": index.manifest.name,
            **corpus_facts(index),
            **({BASES: earlier} if earlier else {}),
            **facts,
            "history": [asdict(point) for point in history],
            "best_step": best.step,
            "is_better": is_better,
        }
        settings = config.model_dump(mode="json") | {"model": base}
        with writing(output), building(output) as folder:
            finish_folder(folder, record, settings, card, write(folder))
    queries, examples = (
        facts["counts"][name] for name in ("train_queries", "examples_an_epoch")
    )
    return TrainingReport(output, queries, examples, history, best, is_better)


def own_folder(target: Path, *, is_better: bool) -> Path:
    """Return where a model of an index goes: `target` if it is better than what it stands on, else next to it."""
    return target if is_better else target.with_name(f"{target.name}{NEW}")


def finish_folder(
    folder: Path,
    facts: Mapping[str, Any],
    settings: Json,
    card: str,
    shown: Mapping[str, Any],
) -> None:
    """Write training.json and the model card, and seal the folder.

    `settings` are those of the training without local paths; the card shows the record and `shown`.
    """
    record = {**facts, "provenance": provenance(settings)}
    (folder / TRAINING).write_bytes(indented_json(record))
    shown = {**shown, "record": record, "version": version("citerec")}
    (folder / CARD).write_text(
        filled("citerec.train", f"cards/{card}", shown), encoding="utf-8"
    )
    # readable by their owner only until now
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / TRAINING).stat().st_mode)
    seal_model(folder)
