"""The examples that were gathered so far, in the training folder: a training that is stopped goes on from them."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from citerec.train.due import CheckpointTimer
from citerec.train.ranker.examples import Examples

STATE = "generator"  # the state of the random numbers, among the arrays of a file


@dataclass(slots=True)
class KeptExamples:
    """One file of examples, written anew every few minutes and at the end: whole, or as it was before."""

    file: Path | None  # None for a training that keeps none
    timer: CheckpointTimer = field(default_factory=CheckpointTimer)

    def gather(
        self,
        make: Callable[[int], Iterable[Examples]],
        rng: np.random.Generator,
        tell: Callable[[int], None],
    ) -> Examples:
        """Return the examples that are kept, and after them those that `make` adds; keep these, too.

        Args:
            make: Gathers examples block by block, without those of the first so many queries.
            rng: What they are drawn with; it is set to where it stood when the kept ones were written.
            tell: Is told how many queries are done.
        """
        parts = self._read(rng)
        state, written = rng.bit_generator.state, len(parts)
        try:
            for part in make(sum(map(len, parts))):
                parts.append(part)
                state = rng.bit_generator.state
                tell(sum(map(len, parts)))
                if self.timer.is_due():
                    self.timer.begin()
                    self._write(parts, state)
                    written = len(parts)
                    self.timer.done()
        finally:
            if len(parts) > written:
                self._write(parts, state)
        return Examples.joined(parts)

    def _read(self, rng: np.random.Generator) -> list[Examples]:
        if self.file is None or not self.file.is_file():
            return []
        with np.load(self.file) as kept:
            rng.bit_generator.state = json.loads(kept[STATE].tobytes())
            return [Examples(**{one.name: kept[one.name] for one in fields(Examples)})]

    def _write(self, parts: Sequence[Examples], state: object) -> None:
        if self.file is None:
            return
        joined = Examples.joined(parts)
        arrays = {one.name: getattr(joined, one.name) for one in fields(Examples)}
        arrays[STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
        beside = self.file.with_suffix(".new.npz")
        np.savez(beside, allow_pickle=False, **arrays)
        beside.replace(self.file)
