"""Sends a request to a running server; what no server can do, or one fails in, is done in this process."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.cli.console import ConsoleOutput
from citerec.cli.remote.connection import Address, RefusedError, UnavailableError, answer_lines
from citerec.cli.remote.same import program
from citerec.cli.remote.wire import Event, Sent, dump_request, load_event, result_of
from citerec.cli.request import RecommendRequest
from citerec.encode.config import Backend, Precision
from citerec.errors import CiterecError, ServerError
from citerec.indexes import MANIFEST
from citerec.types import Progress

if TYPE_CHECKING:
    from citerec.cli.work import Work
    from citerec.export import Result

MOST_QUERIES = 8  # more gain nothing by a warm start, and run on other backends than few do
MOST_BYTES = 8 * 2**20  # of a request


def open_remote(
    named: str, path: Path, request: RecommendRequest, console: ConsoleOutput
) -> "RemoteWork | None":
    """Send a request to a server; return None if the work is to be done in this process.

    Args:
        named: The server that the user names; empty for the one at the socket of the user's runtime folder.
        path: The folder of the index.
        request: The request.
        console: Receives the messages of the work, and why a named server is not used.

    Raises:
        ServerError: If the user names a server, and it does not answer.
    """
    try:
        address = Address.of(named)
        reason = unsupported(request)
        if not reason:
            work = RemoteWork(path, request, console, address)
            work.wait_until_ready()
            return work
    except RefusedError as refusal:
        reason = str(refusal)
    except UnavailableError as error:
        if named:
            raise ServerError(named, str(error)) from error
        return None
    if named:
        console.log(f"the server {named} is not used: {reason}")
    return None


def unsupported(request: RecommendRequest) -> str:
    """Return why a server cannot work on a request as this process does; empty if it can."""
    options, rerank = request.options, request.options.rerank
    if len(request.queries) > MOST_QUERIES:
        return f"there are more than {MOST_QUERIES} queries"
    own = {  # the runtime of models and Java, which is that of the server
        "--heap": options.heap,
        "--threads": rerank.threads,
        "--device": rerank.device != "auto",
        "--dtype": rerank.precision is not Precision.AUTO,
        "--backend": rerank.backend is not Backend.AUTO,
        "--retriever": options.retrievers,
    }
    if given := next((option for option, value in own.items() if value), ""):
        return f"{given} is given"
    # Other names may mean another model elsewhere, or later.
    if other := [name for name in options.models if not (_is_absolute(name))]:
        return f"{other[0]} is not the absolute path of a model"
    return ""


def _is_absolute(name: str) -> bool:
    return Path(name).is_absolute() and Path(name).is_dir()


@dataclass(slots=True)
class RemoteWork:
    """A request that a server works on; if it fails, this process does the rest of the work."""

    path: Path
    request: RecommendRequest
    console: ConsoleOutput
    address: Address
    _messages: int = 0  # that were printed
    _events: Iterator[tuple[Event, Any]] = field(default_factory=lambda: iter(()))
    _local: "Work | None" = None

    def wait_until_ready(self) -> None:
        """Send the request, and print messages until the server has opened the models.

        Raises:
            RefusedError: If the server does not take the request.
            UnavailableError: If it does not answer.
            ServerError: As `results` raises.
            CiterecError: As a command without a server raises.
        """
        self._events = _events(self.address, self._body())
        try:
            for kind, value in self._events:
                match kind:
                    case Event.READY:
                        return
                    case Event.MESSAGE:
                        self._print(value)
                    case Event.ERROR:
                        break
                    case _:
                        raise UnavailableError("its answer cannot be read")
            self._local = self._open_here()
        except UnavailableError:
            if self.address.named or not self._messages:
                raise
            self._local = self._open_here()

    def results(self, progress: Progress) -> "Iterator[Result]":
        """Yield the result of each query.

        Raises:
            ServerError: If the user named the server, and it stops before the last result.
            CiterecError: As a command without a server raises.
        """
        given = 0
        if self._local is None:
            try:
                for result in self._received(progress):
                    yield result
                    given += 1
            except UnavailableError as error:
                if self.address.named:
                    raise ServerError(self.address.named, str(error)) from error
            if given == len(self.request.queries):
                return
        local = self._local or self._open_here()
        yield from islice(local.results(progress), given, None)

    def _received(self, progress: Progress) -> "Iterator[Result]":
        """Yield results until the last one, or an error of the work."""
        queries = iter(self.request.queries)
        for kind, value in self._events:
            match kind:
                case Event.MESSAGE:
                    self._print(value)
                case Event.PROGRESS:
                    progress(*value)
                case Event.RESULT:
                    try:
                        result = result_of(value, next(queries))
                    except (ValueError, CiterecError, StopIteration) as error:
                        raise UnavailableError("its answer cannot be read") from error
                    yield result
                case _:
                    return

    def _body(self) -> bytes:
        """Return the request as JSON.

        Raises:
            RefusedError: If a file cannot be read, or a text not be written: this process reports it.
        """
        with suppress(CiterecError, TypeError, OSError):
            index = self.path.resolve(strict=True)
            manifest = sha256((index / MANIFEST).read_bytes()).hexdigest()
            body = dump_request(Sent(program(), index, str(self.path), manifest, self.request))
            if len(body) <= MOST_BYTES:
                return body
            raise RefusedError("the request is too long")
        raise RefusedError("an input cannot be read")

    def _print(self, message: str) -> None:
        self._messages += 1
        self.console.line(message)

    def _open_here(self) -> "Work":
        """Open the index and the models in this process; messages that were printed are left out."""
        from citerec.cli.work import open_work

        skipped = iter(range(self._messages))

        def rest(message: str) -> None:
            if next(skipped, None) is None:
                self.console.line(message)

        return open_work(self.path, self.request, replace(self.console, receiver=rest))


def _events(address: Address, body: bytes) -> Iterator[tuple[Event, Any]]:
    """Yield the events of an answer; the first one is awaited with the request.

    Raises:
        UnavailableError: If the server stops before the end.
    """
    for line in answer_lines(address, body):
        try:
            kind, value = load_event(line)
        except ValueError as error:
            raise UnavailableError("its answer cannot be read") from error
        yield kind, value
        if kind in {Event.END, Event.ERROR}:
            return
    raise UnavailableError("it stopped before the end of its answer")
