"""Decides when the next checkpoint of a training is due, by time: a stopped training loses a few minutes at most."""

from collections.abc import Callable
from time import monotonic

EVERY = 180.0  # seconds between checkpoints at least
SHARE = 0.05  # of the training time that checkpoints may take at most


class CheckpointTimer:
    """Decides when a checkpoint is due: after `EVERY` seconds, or later if a checkpoint takes long to write."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Start to count; `clock` returns seconds."""
        self._clock = clock
        self._last = clock()
        self._began: float | None = None
        self._wait = EVERY

    def is_due(self) -> bool:
        """Return whether a checkpoint should be written now."""
        return self._clock() - self._last >= self._wait

    def begin(self) -> None:
        """Record that a checkpoint is started because it is due; its duration sets the next interval."""
        self._began = self._clock()

    def done(self) -> None:
        """Record that a checkpoint was written."""
        self._last = self._clock()
        if self._began is not None:
            self._wait = max(EVERY, (self._last - self._began) / SHARE)
            self._began = None
