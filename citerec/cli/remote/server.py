"""Works on requests of `citerec recommend` in a server, with the code that a command without a server runs."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from queue import Empty, Full, Queue
from threading import BoundedSemaphore
from threading import Event as Flag
from typing import Any

from citerec.cli.console import ConsoleOutput
from citerec.cli.remote.client import unsupported
from citerec.cli.remote.same import difference, files_state, program
from citerec.cli.remote.wire import Event, Sent, dump_event, load_request, result_values
from citerec.cli.request import Options, RecommendRequest
from citerec.cli.work import opener_with, prepared
from citerec.config import RecommendConfig
from citerec.drafts import QueryFile
from citerec.errors import CiterecError
from citerec.folder import IndexFolder, open_index
from citerec.indexes import MANIFEST
from citerec.recommend import BatchRecommender
from citerec.types import Log, Query, no_log, no_progress

MOST_OPEN = 4  # recommenders with different options that stay open
MOST_WAITING = 8  # requests that are worked on or wait
LINES_AHEAD = 16  # lines that wait to be sent
BEAT_SECONDS = 1.0  # a line is sent at least so often
WARM_UP = Query(id="query", title="a first search", named=False)
K = 20  # of an open recommender; others share its models


@dataclass(frozen=True, slots=True)
class _Opened:
    recommender: BatchRecommender
    messages: tuple[str, ...]  # that its opening logged


class CommandServer:
    """Works on the requests of commands, one after the other, on the indexes that a server serves."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Remember the program as it is now.

        Args:
            folders: The indexes; requests for others are refused.
        """
        self._folders = tuple(folder.absolute() for folder in folders)
        self._program = program()
        self._open: OrderedDict[object, _Opened] = OrderedDict()
        self._worker = ThreadPoolExecutor(1, "citerec-command")
        self._places = BoundedSemaphore(MOST_WAITING)

    @property
    def opened(self) -> int:
        """How many recommenders are open."""
        return len(self._open)

    def warm_up(self) -> None:
        """Start to open what a command without options needs, and to answer a query with it; returns at once."""
        for folder in self._folders:
            self._worker.submit(self._answer_first, folder.resolve())

    def answer(self, body: bytes) -> tuple[int, Iterator[bytes]]:
        """Start to work on a request; return an HTTP status and the lines of the answer.

        The status is 200; 409 if the command is to do the work itself, with the reason; 429 if too many requests wait;
        422 if the body is no request. Closing the iterator stops the work.
        """
        try:
            sent = load_request(body)
        except (ValueError, CiterecError) as error:
            return 422, iter([str(error).encode()])
        if reason := self._refusal(sent):
            return 409, iter([reason.encode()])
        if not self._places.acquire(blocking=False):
            return 429, iter([b"too many requests"])
        return 200, self._lines(sent)

    def close(self) -> None:
        """Wait for the requests that were started, and close what is open."""
        self._worker.shutdown(cancel_futures=True)
        self._open.clear()

    def _refusal(self, sent: Sent) -> str:
        """Return why the work on a request could differ from that of the command; empty if it cannot."""
        if part := difference(self._program, sent.program):
            return f"it was started with another state of: {part}; start it again"
        if sent.index not in {folder.resolve() for folder in self._folders}:  # links may change
            return f"it does not serve the index {sent.index}"
        if sent.manifest != _manifest_sum(sent.index):
            return f"its index {sent.index} is another one"
        return unsupported(sent.request)

    def _lines(self, sent: Sent) -> Iterator[bytes]:
        """Yield the lines of an answer while a worker does the work."""
        answer = _Answer()
        try:
            started = self._worker.submit(self._work, sent, answer)
        except RuntimeError:  # the server stops
            self._places.release()
            return
        started.add_done_callback(lambda _: self._places.release())
        try:
            yield from answer.lines(started.done)
        finally:
            answer.stopped.set()

    def _answer_first(self, folder: Path) -> None:
        """Answer a query on an index; an error is left for the command that meets it again."""
        request = RecommendRequest(
            options=Options(),
            drafts=QueryFile((WARM_UP,)),
            excluded=None,
            cited=None,
            quiet=True,
            verbose=False,
        )
        sent = Sent(self._program, folder, str(folder), _manifest_sum(folder), request)
        console = ConsoleOutput(request.quiet, request.verbose, no_log)
        with suppress(CiterecError):
            work = prepared(open_index(folder), request, console, self._opener(sent))
            deque(work.results(no_progress), maxlen=0)

    def _work(self, sent: Sent, answer: "_Answer") -> None:
        """Do the work of a request; an error of it is the last line."""
        request = sent.request
        try:
            folder = open_index(sent.index)

            def spelled(text: str) -> str:
                return text.replace(str(sent.index), sent.named)

            console = ConsoleOutput(
                request.quiet,
                request.verbose,
                lambda message: answer.put(Event.MESSAGE, spelled(message)),
            )
            work = prepared(folder, request, console, self._opener(sent))
            answer.put(Event.READY, value=True)

            def progress(task: str, done: int, total: int) -> None:
                answer.put(Event.PROGRESS, (task, done, total))

            for result in work.results(progress):
                why = spelled(result.why_nothing)
                answer.put(Event.RESULT, result_values(replace(result, why_nothing=why)))
            answer.put(Event.END, value=True)
        except _StoppedError:
            return
        except BaseException as error:  # the command meets it again, and reports it
            with suppress(_StoppedError):
                answer.put(Event.ERROR, str(error) or type(error).__name__)
            if not isinstance(error, Exception):
                raise

    def _opener(
        self, sent: Sent
    ) -> Callable[[IndexFolder, RecommendConfig, Log], BatchRecommender]:
        """Return what opens the models of an index, or finds them open."""
        models = (sent.index / "models", *map(Path, sent.request.options.models))
        state = (sent.manifest, *map(files_state, models))

        def opened(folder: IndexFolder, config: RecommendConfig, log: Log) -> BatchRecommender:
            key = (sent.index, state, replace(config, k=K))
            found = self._open.pop(key, None) or _open(folder, replace(config, k=K))
            self._open[key] = found
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            for message in found.messages:
                log(message)
            return found.recommender.with_k(config.k, log)

        return opened


def _open(folder: IndexFolder, config: RecommendConfig) -> _Opened:
    messages: list[str] = []
    recommender = opener_with(None)(folder, config, messages.append)
    return _Opened(recommender, tuple(messages))


def _manifest_sum(folder: Path) -> str:
    try:
        return sha256((folder / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return ""


class _StoppedError(Exception):
    """Nobody reads the answer any more."""


class _Answer:
    """The lines of an answer on their way from the worker to the connection."""

    def __init__(self) -> None:
        self.stopped = Flag()
        self._queue: Queue[tuple[bytes, bool]] = Queue(LINES_AHEAD)

    def put(self, kind: Event, value: Any) -> None:
        """Add a line; wait while too many are on their way."""
        line = dump_event(kind, value), kind in {Event.END, Event.ERROR}
        while not self.stopped.is_set():
            with suppress(Full):
                self._queue.put(line, timeout=BEAT_SECONDS)
                return
        raise _StoppedError

    def lines(self, is_done: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the lines until the last one; an empty one where none comes for `BEAT_SECONDS`.

        `is_done` tells whether no line will be added any more.
        """
        while True:
            ended = is_done()
            try:
                line, is_last = self._queue.get(timeout=BEAT_SECONDS)
            except Empty:
                if ended:
                    return
                yield b"\n"
                continue
            yield line
            if is_last:
                return
