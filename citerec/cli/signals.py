"""Handles SIGTERM and SIGHUP as Ctrl-C, so that a command removes its unfinished files."""

import signal
from types import FrameType
from typing import NoReturn

ENDING = ("SIGTERM", "SIGHUP")  # SIGHUP does not exist on Windows


class EndedError(KeyboardInterrupt):
    """A signal ends this process."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code of a process that a signal ended: 128 + its number."""
        return 128 + self.number


def end_by_signals() -> None:
    """Let ending signals raise `EndedError`; signals that are ignored, as under nohup, stay ignored."""
    for number in _numbers():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def ended_by(error: BaseException | None) -> EndedError | None:
    """Return the signal that caused an error, also indirectly: the clean-up may fail on a closed terminal."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        if isinstance(error, EndedError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _end(number: int, _: FrameType | None) -> NoReturn:
    for other in _numbers():  # a second signal must not interrupt the clean-up
        signal.signal(other, signal.SIG_IGN)
    raise EndedError(number)


def _numbers() -> list[signal.Signals]:
    return [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
