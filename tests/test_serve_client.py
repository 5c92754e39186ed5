"""`citerec recommend` with a running server gives what it gives without one, byte for byte, and falls back to it."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from citerec.cli.remote.same import program
from citerec.cli.remote.server import CommandServer
from citerec.folder import IndexFolder
from citerec.serve.app import create_app
from citerec.serve.command import CommandAnswer
from citerec.serve.local import socket_path
from citerec.serve.options import model_settings
from citerec.serve.service import Service
from citerec.serve.settings import ServeConfig

TITLE = "Citation recommendation"
INDEX = "indexes/sample"
TEX = r"""\documentclass{article}\title{Dense retrieval}\begin{document}
\begin{abstract}We retrieve passages with dense vectors.\end{abstract}
Late interaction keeps token vectors \cite{colbert}.
\begin{thebibliography}{9}\bibitem{colbert} O. Khattab and M. Zaharia.
ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over BERT. 2020.
\end{thebibliography}\end{document}"""
FILES = {
    "draft.tex": TEX,
    "two.jsonl": '{"id": "a", "title": "Citation recommendation"}\n{"id": "b", "title": "zzzz"}\n',
    "old.json": json.dumps({"title": TITLE, "year": 1800}),
    "nine.jsonl": "".join(json.dumps({"id": f"q{n}", "title": TITLE}) + "\n" for n in range(9)),
    "cited.txt": "he2010context\nno such paper of this corpus\n",
    "refs.bib": "@misc{own, title = {A paper of our own}}\n",
}

FAST = [
    ("--title", TITLE),
    ("--query", "draft.tex", "--explain", "--verbose", "--format", "json"),
]
FORMATS = [
    (*options, "--format", name)
    for name in ("table", "json", "jsonl", "trec", "bibtex", "ris", "csl")
    for options in (("--title", TITLE, "--explain"), ("--query", "two.jsonl"))
]
OPTIONS = [
    ("--title", TITLE, *options, "--format", "json", "--verbose")
    for options in (
        ("--k", "3"),
        ("--k", "1000"),
        ("--abstract", "We rank the papers that a manuscript should cite."),
        ("--context", "Late interaction keeps token vectors [CITE]"),
        ("--encoder", "none"),
        ("--fusion", "weighted"),
        ("--reranker", "none"),
        ("--ranker", "none"),
        ("--no-popularity",),
        ("--no-authors",),
        ("--diversity", "0.5"),
        ("--cited", "cited.txt"),
        ("--cited", "none"),
        ("--year-max", "2015"),
        ("--exclude", "cited.txt", "--explain"),
        ("--query-form", "key-terms", "--k1", "0.9", "--b", "0.4", "--stop-words", "long"),
        ("--quiet",),
        ("--threads", "1"),
        ("--device", "cpu"),
    )
]
OTHERS = [
    ("--query", "two.jsonl", "--format", "jsonl", "--fields", "authors,abstract"),
    ("--query", "old.json", "--ranker", "none"),
    ("--context", "Late interaction keeps token vectors [CITE]"),
    ("--cited", "cited.txt", "--explain"),
    ("--query", "draft.tex", "--cited", "none", "--verbose"),
    ("--query", "nine.jsonl", "--format", "trec"),
    ("--title", TITLE, "--key-pattern", "{Lastname}:{yy}", "--format", "bibtex"),
    ("--title", "Ελληνικά γράμματα", "--format", "json"),
    ("--title", TITLE, "--output", "out.json", "--format", "json"),
    ("--title", TITLE, "--append", "refs.bib", "--pick", "1-3"),
    ("--title", TITLE, "--append", "refs.bib", "--pick", "9", "--k", "3"),
    ("--title", TITLE, "--exclude", "missing.txt"),
    ("--title", TITLE, "--index", "missing"),
    ("--title", TITLE, "--ranker", "none", "--no-authors"),
    ("--title", TITLE, "--reranker", "none", "--rerank-depth", "5"),
    ("--title", TITLE, "--reranker", "no/such-folder-here/at-all"),
    ("--title", " "),
]


@dataclass(frozen=True)
class Done:
    """What a command did: its exit code, its output, and the files that it wrote."""

    code: int
    out: bytes
    err: bytes
    files: dict[str, bytes]


Command = Callable[..., Done]


@pytest.fixture
def recommend(
    sample_index: IndexFolder, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:  # fmt: skip
    """Run `citerec recommend` in this process, in a folder that has the index of the sample."""
    from citerec.cli import run

    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "sample").symlink_to(sample_index.path)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Done:
        for name, text in FILES.items():
            Path(name).write_text(text)
        for name in ("out.json", "refs.bib.bak"):
            Path(name).unlink(missing_ok=True)
        capfdbinary.readouterr()
        code = run(["recommend", *arguments])
        captured = capfdbinary.readouterr()
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        return Done(code, captured.out, captured.err, files)

    return call


@dataclass
class Serving:
    """A server on the socket of the user's runtime folder, and how often it answered."""

    app: Any
    answered: list[int]  # statuses


@pytest.fixture(scope="session")
def commands(sample_index: IndexFolder) -> Iterator[CommandServer]:
    server = CommandServer([sample_index.path])
    yield server
    server.close()


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The socket of a runtime folder that this test has alone; nothing listens on it yet."""
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    path = socket_path()
    path.parent.mkdir(mode=0o700)
    return path


@pytest.fixture
def serving(commands: CommandServer, runtime: Path) -> Iterator[list[int]]:
    """A server on that socket; its list receives the status of each answer."""
    statuses: list[int] = []

    def answer(body: bytes) -> tuple[int, Iterator[bytes]]:
        status, lines = commands.answer(body)
        statuses.append(status)
        return status, lines

    with served(answer, unix(runtime)):
        yield statuses


def unix(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(path))
    return bound


def served(answer: CommandAnswer, listening: socket.socket) -> "served_app":
    """Return a server of the route of commands alone."""
    from fastapi import FastAPI

    from citerec.serve.command import command_router

    app = FastAPI()
    app.include_router(command_router(answer))
    return served_app(app, listening)


class served_app:
    """The loop of a real server in a thread, on one socket."""

    def __init__(self, app: Any, listening: socket.socket) -> None:
        import uvicorn

        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        self._thread = Thread(target=self._server.run, args=([listening],))

    def __enter__(self) -> None:
        self._thread.start()
        while not self._server.started:
            pass

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.mark.parametrize(
    "options",
    [*FAST, *(pytest.param(one, marks=pytest.mark.slow) for one in (*FORMATS, *OPTIONS, *OTHERS))],
    ids=" ".join,
)
def test_a_server_changes_no_byte_of_what_a_command_writes(
    options: Sequence[str], recommend: Command, serving: list[int]
) -> None:
    alone = recommend(*options, "--no-server")
    assert serving == []

    by_server = recommend(*options)

    assert by_server == alone
    assert set(serving) <= {200}


def test_a_server_is_used_for_an_index_by_any_path_of_it(
    recommend: Command, serving: list[int], sample_index: IndexFolder
) -> None:
    done = [
        recommend("--title", TITLE, *index)
        for index in ((), ("--index", "sample"), ("--index", str(sample_index.path)))
    ]

    assert done[0] == done[1] == done[2]
    assert serving == [200, 200, 200]


def test_a_server_of_another_index_or_program_is_not_used(
    recommend: Command, runtime: Path, commands: CommandServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    alone = recommend("--title", TITLE, "--no-server")
    other = CommandServer([tmp_path])
    with served(other.answer, unix(runtime)):
        assert recommend("--title", TITLE) == alone

        monkeypatch.setenv("CITEREC_SERVER", str(runtime))
        done = recommend("--title", TITLE)
    other.close()

    assert replace(done, err=b"") == replace(alone, err=b"")
    assert b"is not used: it does not serve the index" in done.err
    assert done.err.count(b"\n") == alone.err.count(b"\n") + 1


def test_a_server_that_was_started_in_another_environment_is_not_used(
    recommend: Command, serving: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEREC_DTYPE", "float32")

    assert recommend("--title", TITLE) == recommend("--title", TITLE, "--no-server")
    assert serving == [409]


def test_a_socket_that_nothing_listens_on_is_ignored(recommend: Command, runtime: Path) -> None:
    unix(runtime).close()

    assert recommend("--title", TITLE) == recommend("--title", TITLE, "--no-server")


def test_a_socket_in_a_folder_of_others_is_ignored(recommend: Command, runtime: Path) -> None:
    def never(body: bytes) -> tuple[int, Iterator[bytes]]:
        raise AssertionError("a draft was sent")

    with served(never, unix(runtime)):
        runtime.parent.chmod(0o755)

        assert recommend("--title", TITLE) == recommend("--title", TITLE, "--no-server")


def test_a_named_server_that_does_not_answer_is_an_error_in_one_line(
    recommend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("CITEREC_SERVER", url)

    done = recommend("--title", TITLE)

    assert (done.code, done.out) == (2, b"")
    assert done.err.decode() == (
        f"citerec: error: the server {url} (CITEREC_SERVER) does not answer: Connection refused; "
        "start one: citerec serve, or work without: --no-server\n"
    )
    assert recommend("--title", TITLE, "--no-server").code == 0


def test_a_named_server_is_used_over_http(
    recommend: Command, commands: CommandServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("CITEREC_SERVER", f"http://127.0.0.1:{listening.getsockname()[1]}/")
    answers = list[int]()

    def answer(body: bytes) -> tuple[int, Iterator[bytes]]:
        status, lines = commands.answer(body)
        answers.append(status)
        return status, lines

    with served(answer, listening):
        done = recommend("--title", TITLE, "--format", "json")

    assert done == recommend("--title", TITLE, "--format", "json", "--no-server")
    assert answers == [200]


def test_a_server_with_tokens_wants_the_token_of_the_command(
    recommend: Command, commands: CommandServer, sample_index: IndexFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    token = "a-secret-of-some-length"
    models = model_settings(["none"], ranker="none")
    settings = ServeConfig(poll_seconds=0, tokens=(token,))
    service = Service({"sample": sample_index.path}, models, settings)
    listening = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("CITEREC_SERVER", f"http://127.0.0.1:{listening.getsockname()[1]}")
    alone = recommend("--title", TITLE, "--no-server")

    with served_app(create_app(service, commands.answer), listening):
        without = recommend("--title", TITLE)
        monkeypatch.setenv("CITEREC_TOKEN", token)
        by_server = recommend("--title", TITLE)
    service.close()

    assert (without.code, without.out) == (2, b"")
    assert b"it refuses the token; set CITEREC_TOKEN to one that it knows" in without.err
    assert by_server == alone


def test_a_silent_server_is_left_for_local_work(
    recommend: Command, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.cli.remote.connection.SILENT_SECONDS", 0.2)
    listening = unix(runtime)
    listening.listen()  # connections are accepted by the system, but never read

    assert recommend("--title", TITLE) == recommend("--title", TITLE, "--no-server")
    listening.close()


@pytest.mark.parametrize(
    "last",
    [
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("", "message", "ready")),
        "result",
    ],
)
def test_a_server_that_stops_half_way_loses_and_repeats_nothing(
    last: str, recommend: Command, commands: CommandServer, runtime: Path
) -> None:
    def half(body: bytes) -> tuple[int, Iterator[bytes]]:
        status, answer = commands.answer(body)
        return status, until(last, answer)

    options = ("--query", "two.jsonl", "--format", "jsonl", "--verbose")
    with served(half, unix(runtime)):
        done = recommend(*options)

    assert done == recommend(*options, "--no-server")


def test_a_request_cannot_make_a_server_read_a_file(
    sample_index: IndexFolder, commands: CommandServer, tmp_path: Path, runtime: Path
) -> None:
    (tmp_path / "secret").write_text("he2010context\n")
    body = request_for(sample_index.path)
    body["excluded"] = {"path": str(tmp_path / "secret"), "papers": None}

    status, lines = commands.answer(json.dumps(body).encode())
    first = json.loads(next(line for line in lines if line.strip()))

    assert status == 200
    assert "0 references in" in first["message"] or "0 found" in first["message"]


def test_a_command_without_options_finds_its_models_open(sample_index: IndexFolder) -> None:
    warm = CommandServer([sample_index.path])

    warm.warm_up()
    status, lines = warm.answer(json.dumps(request_for(sample_index.path)).encode())
    # on a busy machine there are empty lines, which keep the connection open
    events = [name for line in lines for name in json.loads(line.strip() or "{}")]
    opened = warm.opened
    warm.close()

    assert (status, events[-1], opened) == (200, "end", 1)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b'{"queries": 3}'])
def test_a_body_that_is_no_request_is_refused(body: bytes, commands: CommandServer) -> None:
    status, lines = commands.answer(body)

    assert status == 422
    assert b"".join(lines)


def test_a_model_that_is_trained_meanwhile_is_used(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    from citerec.cli.remote.same import files_state

    before = files_state(tmp_path)
    (tmp_path / "ranker").mkdir()
    assert files_state(tmp_path) == before
    (tmp_path / "ranker" / "ranker.json").write_text("{}")

    assert files_state(tmp_path) != before


def test_a_warm_command_loads_no_model_and_no_array_library(
    sample_index: IndexFolder, serving: list[int], tmp_path: Path
) -> None:
    needless = {
        "numpy", "pyarrow", "jnius", "torch", "lightgbm", "fastapi", "uvicorn", "bibtexparser", "asyncio",
        "citerec.java", "citerec.drafts.tex", "rich.progress",
        "citerec.folder", "citerec.recommend", "citerec.cli.work", "citerec.serve.command",
    }  # fmt: skip
    script = (
        "import sys\nfrom citerec.cli import run\n"
        f"run(['recommend', '--title', {TITLE!r}, '--index', {str(sample_index.path)!r}])\n"
        f"print({needless!r} & set(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert serving == [200]
    assert done.stdout.count("\n") > 20
    assert done.stderr.splitlines()[-1] == "set()"


@pytest.mark.slow
def test_ctrl_c_ends_a_command_that_waits_for_a_server(
    sample_index: IndexFolder, runtime: Path, tmp_path: Path
) -> None:
    listening = unix(runtime)
    listening.listen()
    command = Path(sys.executable).parent / "citerec"
    started = subprocess.Popen(
        [command, "recommend", "--title", TITLE, "--index", sample_index.path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    connection, _ = listening.accept()
    connection.recv(100)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    connection.close()
    listening.close()

    assert (started.returncode, out) == (1, b"")
    assert err == b"citerec: interrupted; no file is left half-written\n"


def until(last: str, lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of an answer up to the first one of a kind; none for no kind."""
    while last:
        yield (line := next(lines))
        if last.encode() in line[:12]:
            return


def request_for(index: Path) -> dict[str, Any]:
    """Return the request of a plain command."""
    from hashlib import sha256

    import orjson

    from citerec.cli.remote.wire import Sent, dump_request
    from citerec.cli.request import Options, RecommendRequest
    from citerec.drafts import QueryFile
    from citerec.types import Query

    options = Options(k=3)
    request = RecommendRequest(
        options=options, drafts=QueryFile((Query(id="q", title=TITLE),)), excluded=None, cited=None,
        quiet=False, verbose=False,
    )  # fmt: skip
    manifest = sha256((index / "manifest.json").read_bytes()).hexdigest()
    body = dump_request(Sent(program(), index.resolve(), "indexes/x", manifest, request))
    return orjson.loads(body)
