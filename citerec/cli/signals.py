"""Ends a command as Ctrl-C does when its terminal closes or the system asks it to end: what it began is removed."""

import signal
from types import FrameType
from typing import NoReturn

ENDING = ("SIGTERM", "SIGHUP")  # the latter is unknown on Windows


class EndedError(KeyboardInterrupt):
    """A signal asks this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell says of a process that a signal ended."""
        return 128 + self.number


def end_by_signals() -> None:
    """Let signals that ask a process to end raise `EndedError`; those that are ignored, as under nohup, stay so."""
    for number in _numbers():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def ended_by(error: BaseException | None) -> EndedError | None:
    """Return the signal that led to an error: cleaning up may fail in its turn, on a closed terminal."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        if isinstance(error, EndedError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _end(number: int, _: FrameType | None) -> NoReturn:
    for other in _numbers():  # a second one must not stop the cleaning up
        signal.signal(other, signal.SIG_IGN)
    raise EndedError(number)


def _numbers() -> list[signal.Signals]:
    return [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
