"""Nothing leaves the machine, but by what docs/privacy.md names: the system calls of every command are read."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from support.corpora import SAMPLE

from citerec.cli import make_app
from citerec.index.folder import IndexFolder

SENDS = {"collect", "datasets fetch", "watch"}  # what they are for
TITLE = "Dense Passage Retrieval for Open-Domain Question Answering"
INDEX = "--index indexes/sample"
COMMANDS = {  # each line runs in the folder that `place` makes
    "check": f"refs.bib {INDEX}",
    "corpus convert": "corpus.jsonl --output converted.jsonl",
    "corpus info": "corpus.jsonl",
    "corpus merge": "corpus.jsonl refs.bib --output merged.jsonl",
    "corpus sample": "corpus.jsonl -n 9 --output few.jsonl",
    "datasets info": "dblp",
    "datasets list": "",
    "doctor": "--format json",
    "experiment table": "--output table.md",
    "export": f"refs.bib {INDEX} --format ris",
    "info": INDEX,
    "library add": "corpus.jsonl --encoder none",
    "library update": "sample",
    "recommend": f"{INDEX} --title '{TITLE}' --explain",
    "scidocs": f"{INDEX} --tasks cite",
    "verify": INDEX,
    # tens of seconds each
    "demo": "",
    "encode": f"{INDEX} --encoder MODEL",
    "evaluate": f"{INDEX} --systems bm25,rrf,ranker",
    "experiment run": "row.toml",
    "index": "corpus.jsonl --index indexes/new --encoder MODEL",
    "train": f"{INDEX} --config train.toml",
    "train-encoder": f"{INDEX} --model MODEL --config encoder.toml --steps 1 --output encoder",
    "train-ranker": f"{INDEX} --queries 20 --output ranker",
    "train-reranker": f"{INDEX} --model MODEL --config reranker.toml --steps 1 --output reranker",
}
SLOW = [*COMMANDS][[*COMMANDS].index("demo") :]
SERVERS = {"serve": "", "mcp": "--transport http"}
CITEREC = [sys.executable, "-c", "from citerec.cli import main; main()"]
STRACE = "strace -DD -f -qq --seccomp-bpf -e trace=connect,sendto,sendmsg,sendmmsg -o".split()
pytestmark = pytest.mark.skipif(
    not shutil.which("strace") or subprocess.call([*STRACE, "/dev/null", "true"]) != 0,
    reason="strace is missing, or may not read system calls here",
)


def outside(trace: Path) -> set[str]:
    """Return the addresses and ports to which a process sent: of other machines, and of resolvers of names."""
    pattern = r'sin6?_port=htons\((\d+)\),.*?(?:inet_addr\(|AF_INET6, )"([^"]+)"'
    sent = {(host, port) for port, host in re.findall(pattern, trace.read_text())}
    own = re.compile(r"(::ffff:)?127\..*|::1")
    return {
        f"{host} {port}"
        for host, port in sent
        if port == "53" or not own.fullmatch(host)
    }


@pytest.fixture
def place(tmp_path: Path, dense_sample: IndexFolder, tiny_model: str) -> Path:
    """The folder of an author: a corpus, an index of it, a bibliography, and a row of a table."""
    shutil.copytree(dense_sample.path, tmp_path / "indexes" / "sample")
    shutil.copy(SAMPLE, tmp_path / "corpus.jsonl")
    (tmp_path / "refs.bib").write_text(
        f"@misc{{a, title = {{{TITLE}}}, year = 2020}}\n"
    )
    tokens = "query_tokens = 32\ncandidate_tokens = 32\n"
    short = f'model = "{tiny_model}"\nsteps = 1\n'
    files = {
        "row.toml": 'title = "BM25"\nclaim = "It runs."\ncost = "1 s"\ncorpus = "corpus.jsonl"\n',
        "encoder.toml": "max_tokens = 64\n",
        "reranker.toml": tokens,
        "train.toml": f"[encoder]\n{short}max_tokens = 64\n[reranker]\n{short}{tokens}[ranker]\nqueries = 20\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who forbids nothing, with a home of its own."""
    (tmp_path / "home").mkdir()
    allowed = {
        name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"
    }
    return allowed | {"HOME": f"{tmp_path}/home", "XDG_CACHE_HOME": f"{tmp_path}/cache"}


def check_nothing_left(place: Path) -> None:
    """Check that nothing was sent to another machine, and what was stored outside the folder of the command."""
    assert outside(place / "trace") == set()
    stored = {
        file.name for folder in ("home", "cache") for file in (place / folder).glob("*")
    }
    assert stored <= {".ir_datasets", "citerec", "matplotlib"}


def test_each_command_is_one_that_sends_or_one_that_sends_nothing() -> None:
    app: Any = typer.main.get_command(make_app())
    groups = {
        name: getattr(command, "commands", [""])
        for name, command in app.commands.items()
    }
    names = [
        f"{name} {part}".strip() for name, parts in groups.items() for part in parts
    ]

    assert sorted(names) == sorted([*COMMANDS, *SERVERS, *SENDS])


def test_what_is_sent_is_seen(tmp_path: Path) -> None:
    connect = "socket.socket().connect_ex(('127.0.0.1', 53))"
    send = "socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('127.0.0.53', 53))"
    program = [sys.executable, "-c", f"import socket; {connect}; {send}"]

    subprocess.run([*STRACE, str(tmp_path / "trace"), *program], check=True)

    assert outside(tmp_path / "trace") == {"127.0.0.1 53", "127.0.0.53 53"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in COMMANDS],
)
def test_a_command_sends_nothing(
    name: str, place: Path, tiny_model: str, user: dict[str, str]
) -> None:
    options = shlex.split(COMMANDS[name].replace("MODEL", tiny_model))
    command = [*STRACE, place / "trace", *CITEREC, *name.split(), *options]

    done = subprocess.run(
        command, cwd=place, env=user, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    check_nothing_left(place)


@pytest.mark.parametrize("name", ["serve", pytest.param("mcp", marks=pytest.mark.slow)])
def test_a_server_sends_nothing_but_its_answers(
    name: str, place: Path, user: dict[str, str]
) -> None:
    command = [*CITEREC, name, *SERVERS[name].split(), *INDEX.split(), "--port", "0"]
    with subprocess.Popen(
        [*STRACE, place / "trace", *command],
        cwd=place,
        env=user,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        url = next(
            found[0]
            for line in process.stderr
            if (found := re.search(r"http://\S+", line))
        )
        answer = httpx.post(
            url.rstrip("/") + "/v1/recommend", json={"title": TITLE}, timeout=60
        )
        process.send_signal(signal.SIGTERM)
        process.communicate()

    assert answer.status_code == (200 if name == "serve" else 404)
    check_nothing_left(place)
