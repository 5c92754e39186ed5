"""The server: its answers are those of the command line, and its errors say what was wrong."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from platform import python_version
from threading import Event
from typing import Any

import httpx
import pytest
from support.documents import pdf, word
from support.server import serving
from support.tables import table
from support.types import Capture, MonkeyPatch

import citerec
from citerec.cli import run
from citerec.config import RecommendConfig, RerankConfig
from citerec.errors import BadInputError
from citerec.files import isolated as inputs
from citerec.files.isolated import isolated
from citerec.index.folder import IndexFolder
from citerec.serve import ServeConfig, app
from citerec.serve.requests import RecommendRequest, read_request, size_of
from citerec.serve.service import THREADS, OpenIndex, Service

BERT = {
    "title": "Deep transformers for sentence similarity",
    "abstract": "We fine-tune a language model to compare sentences.",
}
TITLES = [
    "Attention over long documents",
    "Word vectors from co-occurrence counts",
    "Learning to rank with gradient boosted trees",
]
WORDS = RecommendConfig(few_queries=True, reranker="none", ranker="none")
FAST = {"encoder": "none", "reranker": "none", "ranker": "none"}
JSON_TYPE = {"content-type": "application/json"}
Lone = Callable[..., Service]  # opens a service with some settings


def reranking(model: str) -> RecommendConfig:
    reranker = RerankConfig(model=model)
    return RecommendConfig(few_queries=True, reranker=reranker)


@pytest.fixture(scope="module")
def service(dense_sample: IndexFolder, tiny_reranker_model: str) -> Generator[Service]:
    """The sample with vectors and a reranker."""
    config = reranking(tiny_reranker_model)
    opened = Service(
        {"sample": dense_sample.path}, {"sample": config}, None, (tiny_reranker_model,)
    )
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Generator[httpx.Client]:
    """A client of a real server; all tests of this module share it."""
    with serving(service) as connected:
        yield connected


@pytest.fixture
def lone(sample_index: IndexFolder) -> Generator[Lone]:
    """Opens a service of its own on words alone, with other settings."""
    opened: list[Service] = []

    def make(path: Path | None = None, **settings: Any) -> Service:
        config = ServeConfig(**settings)
        opened.append(
            Service({"sample": path or sample_index.path}, {"sample": WORDS}, config)
        )
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def results(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    answer = client.post("/v1/recommend", json=body)
    assert answer.status_code == 200, answer.text
    return [one["results"] for one in answer.json()["answers"]]


@contextmanager
def busy(service: Service) -> Generator[None]:
    """Keep the thread of the models busy until the block ends."""
    started, release = Event(), Event()

    def work(_: OpenIndex) -> None:
        started.set()
        release.wait(20)

    service.start(work, None)
    try:
        assert started.wait(20)
        yield
    finally:
        release.set()


def until(is_true: Callable[[], bool]) -> None:
    stop = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < stop
        time.sleep(0.01)


# --- one answer everywhere


def test_http_the_command_line_and_python_give_equal_answers(
    client: httpx.Client,
    dense_sample: IndexFolder,
    tiny_reranker_model: str,
    capfd: Capture,
    tmp_path: Path,
) -> None:
    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps(BERT | {"year": 2020}))
    options = ["--k", "7", "--reranker", tiny_reranker_model, "--explain", "--quiet"]
    command = [
        "recommend",
        "--index",
        str(dense_sample.path),
        "--query",
        str(draft),
        *options,
    ]

    assert run([*command, "--format", "json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    [answered] = results(client, query=BERT | {"year": 2020}, k=7, explain=True)
    config = reranking(tiny_reranker_model)
    with citerec.open(dense_sample.path, config) as recommender:
        found = recommender.recommend(**BERT, year=2020, k=7, explain=True).to_dicts()

    assert len(printed) == 7
    assert printed[0]["reasons"]
    assert answered == printed == found


def test_options_have_the_names_and_the_effect_of_the_command_line(
    client: httpx.Client,
) -> None:
    [plain] = results(client, **BERT, **FAST)
    first, second, third = (paper["id"] for paper in plain[:3])
    marks = {"cited": [first], "exclude": [second], "rejected": [third]}
    [marked] = results(client, **BERT, **marks, k=5, fields=["doi", "authors"])
    [sentence] = results(
        client, context="Attention replaces recurrence [CITE].", year_max=2018
    )

    assert {*plain[0]["stages"]} == {"bm25"}
    assert not {paper["id"] for paper in marked} & {first, second, third}
    assert isinstance(marked[0]["authors"], list)
    assert all(paper["year"] <= 2018 for paper in sentence)


# --- errors


WRONG = [  # body, and pointers to what is wrong in it
    *table(
        r"""
{} | []
{"title": "a", "reranker": "/etc"} | []
{"title": "a", "query": {"title": "a"}, "text": "b"} | []
{"query": {"abstract": "no title"}} | []
{"title": "a", "reranker": "none", "rerank_depth": 5} | []
{"text": "%PDF-1.7 nothing"} | []
{"query": {"title": "a", "year": 1180591620717411303424}} | []
{"query": {"title": "half of a character: \ud83d"}} | []
{"title": "a", "k": 0} | ["/k"]
{"title": "a", "colour": 1} | ["/colour"]
{"query": [1]} | ["/query", "/query/0"]
{"cited": {}} | ["/cited"]
[] | [""]
"""
    ),
    (
        json.dumps({"query": [{"title": "a", "id": str(n)} for n in range(65)]}),
        '["/query"]',
    ),
    (json.dumps({"title": "a", "abstract": "b" * 200_001}), '["/abstract"]'),
    (json.dumps({"title": "a" * 20_001, "b": 2}), '["/title", "/b"]'),
]


@pytest.mark.parametrize(("body", "pointers"), WRONG)
def test_a_wrong_request_is_answered_by_a_problem(
    client: httpx.Client, body: str, pointers: str
) -> None:
    answer = client.post("/v1/recommend", content=body, headers=JSON_TYPE)

    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (422, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    found = sorted(one["pointer"] for one in problem.get("errors", []))
    assert found == sorted(json.loads(pointers))
    assert problem["instance"].endswith(answer.headers["x-request-id"])
    assert "citerec recommend" not in problem["detail"]
    assert "--" not in problem["detail"]


CLAIM = "Trees {} grow in all of our forests.\n\n"
HALF = "trees " * 16_667  # of the most characters of a draft
BATCH = [{"id": f"{n}", "title": "a", "abstract": HALF} for n in range(11)]


@pytest.mark.parametrize("route", ["/v1/recommend", "/page/recommend"])
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            {
                "text": "Trees\n\n" + "".join(map(CLAIM.format, range(1_001))),
                "context": "all",
            },
            "there are 1,001 sentences without a reference; send at most 1,000 at once",
        ),
        (
            {"text": f"Trees\n\n{HALF}{HALF}"},
            "there are 200,008 characters of title and abstract in one draft; send at most 200,000 at once",
        ),
        (
            {"query": BATCH},
            "there are 1,100,022 characters of titles and abstracts; send at most 1,000,000 at once",
        ),
        (
            {"text": "".join(f'{{"title": "Trees {n}"}}\n' for n in range(65))},
            "there are 65 queries; send at most 64 at once",
        ),
    ],
    ids=["sentences", "draft", "drafts", "queries"],
)
def test_what_would_take_too_long_is_refused_before_anything_is_searched(
    client: httpx.Client,
    service: Service,
    route: str,
    body: dict[str, Any],
    detail: str,
) -> None:
    with busy(service):  # the models are not needed
        answer = client.post(route, json=body)

    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


@pytest.mark.parametrize(
    "body", [b'{"title": "a",\n "year": }', b'{"title": "\xff"}', b"[" * 200_000]
)
def test_a_body_that_is_no_json_is_answered_by_what_to_send(
    client: httpx.Client, body: bytes
) -> None:
    answer = client.post("/v1/recommend", content=body, headers=JSON_TYPE)

    assert answer.status_code == 400
    assert answer.json()["detail"].endswith(
        'send an object as application/json, such as {"title": "Late interaction"}'
    )


def test_unknown_paths_indexes_papers_and_parameters_are_problems_too(
    client: httpx.Client,
) -> None:
    answers = [
        client.get("/v2"),
        client.get("/v1/papers/10.1000/none"),
        client.get("/v1/search", params={"q": "a", "index": "other"}),
        client.post("/v1/recommend", json={"title": "a", "index": "other"}),
        client.put("/v1/index"),
        client.get("/v1/search", params={"q": "a", "yearmin": 2000}),
    ]

    assert [one.status_code for one in answers] == [404, 404, 404, 404, 405, 422]
    assert {one.headers["content-type"] for one in answers} == {
        "application/problem+json"
    }
    assert answers[-1].json()["errors"][0]["pointer"] == "/yearmin"


def test_no_text_of_a_client_is_read_as_a_path(
    client: httpx.Client, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.bib"
    secret.write_text("@misc{key, title={A secret}}")

    answer = client.post("/v1/recommend", json={**BERT, "cited": str(secret)})
    listed = client.post("/v1/recommend", json={**BERT, "cited": [str(secret)]})

    assert "A secret" not in answer.text + listed.text
    assert listed.json()["not_found"] == [str(secret)]


# --- limits, tokens, the end


def test_requests_beyond_the_queue_are_told_when_to_come_again(
    lone: Lone,
) -> None:
    service = lone(queue_size=1)

    with serving(service) as client:
        with busy(service):
            refused = client.post("/v1/recommend", json={"title": "a"})
        until(lambda: service.in_flight == 0)
        accepted = client.post("/v1/recommend", json={"title": "attention"})

    assert (refused.status_code, accepted.status_code) == (429, 200)
    assert int(refused.headers["retry-after"]) >= 1


def test_bodies_tokens_and_host_names_are_checked(lone: Lone) -> None:
    token = "a-secret-of-some-length"
    service = lone(
        max_body_bytes=1000, tokens=(token,), origins=("https://example.org",)
    )
    allowed = {"authorization": f"Bearer {token}"}

    with serving(service) as client:
        answers = [
            client.head("/healthz"),
            client.get("/v1/index"),
            client.get("/v1/index", headers={"authorization": "Bearer wrong"}),
            client.get("/v1/index", headers=allowed),
            client.get("/v1/index", headers=allowed | {"host": "rebound.example"}),
            client.post("/v1/recommend", json={"title": "a" * 2000}, headers=allowed),
            client.options("/v1/recommend", headers={"origin": "https://x.example"}),
            client.get("/healthz", headers={"origin": "https://example.org"}),
        ]

    assert [one.status_code for one in answers] == [
        200,
        401,
        401,
        200,
        421,
        413,
        401,
        200,
    ]
    assert answers[1].headers["www-authenticate"] == "Bearer"
    origins = [one.headers.get("access-control-allow-origin") for one in answers]
    assert origins == [None] * 7 + ["https://example.org"]


@pytest.mark.parametrize(
    "origin",
    [
        "example.org",
        "https://example.org/",
        "https://Example.org",
        "http://[::1]:80",
        "https://*.org",
    ],
)
def test_what_no_browser_sends_as_an_origin_is_refused(origin: str) -> None:
    with pytest.raises(citerec.errors.ConfigError, match="no origin of a web page"):
        ServeConfig(origins=(origin,))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:80", 200),
        ("cite.example", 200),
        ("rebound.example", 421),
        ("localhost:80@evil.com", 421),
        ("[::1]evil", 421),
        ("localhost.evil.com", 421),
        ("localhost:80:80", 421),
        ("", 421),
    ],
)
def test_only_the_names_of_the_server_are_answered(
    client: httpx.Client, lone: Lone, host: str, status: int
) -> None:
    with serving(lone(hosts=("cite.example",))) as named:
        assert named.get("/v1/index", headers={"host": host}).status_code == status


def test_a_page_of_another_origin_sends_no_request(lone: Lone) -> None:
    body, host = {"title": "attention"}, "localhost:8000"
    origins = {
        "http://localhost:8000": 200,  # the page of the server
        "https://localhost:8000": 200,  # the same, behind a proxy with TLS
        "https://example.org": 200,
        "https://evil.com": 403,
        "http://localhost:9000": 403,
        "null": 403,
    }

    with serving(lone(origins=("https://example.org",))) as client:
        for origin, status in origins.items():
            headers = {"origin": origin, "host": host}
            answer = client.post("/v1/recommend", json=body, headers=headers)
            assert (origin, answer.status_code) == (origin, status)


def sent(client: httpx.Client, data: bytes) -> bytes:
    """Send bytes on a connection of their own; return all that comes until the server closes it."""
    with socket.create_connection(
        (client.base_url.host, client.base_url.port or 80)
    ) as one:
        one.sendall(data)
        return b"".join(iter(lambda: one.recv(2**16), b""))


def test_a_request_with_two_lengths_is_answered_once_and_refused(
    client: httpx.Client,
) -> None:
    start = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n"
    smuggled = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"

    answer = sent(client, start + smuggled)

    assert answer.count(b"HTTP/1.1 ") == answer.count(b"HTTP/1.1 400 ") == 1


def test_headers_are_bounded_though_they_come_in_one_piece(
    client: httpx.Client,
) -> None:
    statuses = [
        client.get("/healthz", headers={"x-long": "a" * size}).status_code
        for size in (60_000, 65_500)
    ]

    assert statuses == [200, 431]


def test_clients_that_never_end_their_headers_keep_no_other_out(
    lone: Lone, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(app, "IDLE_SECONDS", 2)

    with serving(lone()) as client, ExitStack() as connections:
        place = client.base_url.host, client.base_url.port
        slow = [
            connections.enter_context(socket.create_connection(place))
            for _ in range(40)
        ]
        for one in slow:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        answers = [client.get("/healthz").status_code for _ in range(20)]
        ends: list[bytes] = []
        for one in slow:
            with suppress(ConnectionError):
                one.sendall(b"a")
                ends.append(one.recv(1))

    assert answers == [200] * 20
    assert set(ends) <= {b""}  # each one is closed: at once, or after its time


def test_a_request_that_is_late_gets_a_timeout(lone: Lone) -> None:
    service = lone(timeout_seconds=0.3)

    with serving(service) as client, busy(service):
        answer = client.post("/v1/recommend", json={"title": "attention"})

    assert answer.status_code == 504


def test_an_index_that_was_replaced_answers_with_the_settings_that_are_open(
    lone: Lone, sample_index: IndexFolder, tmp_path: Path
) -> None:
    index, gone = (
        Path(shutil.copytree(sample_index.path, tmp_path / "index")),
        tmp_path / "gone",
    )
    service = lone(index)
    gone.write_text("nogueira2019passage\n")
    assert run(["index", "--index", str(index), "--delete", str(gone)]) == 0

    with serving(service) as client:
        same, other = (
            client.post("/v1/recommend", json={"title": "attention", **more})
            for more in ({}, {"diversity": 0.5})
        )

    assert same.status_code == 200
    assert other.status_code == 409
    assert "GET /v1/index" in other.json()["detail"]


def test_the_list_of_indexes_opens_what_was_built_since(
    lone: Lone, sample_index: IndexFolder, tmp_path: Path
) -> None:
    index = Path(shutil.copytree(sample_index.path, tmp_path / "index"))
    gone = tmp_path / "gone"
    gone.write_text("nogueira2019passage\n")

    with serving(lone(index)) as client:
        [before] = client.get("/v1/index").json()["indexes"]
        assert run(["index", "--index", str(index), "--delete", str(gone)]) == 0
        [after] = client.get("/v1/index").json()["indexes"]
        answer = client.post(
            "/v1/recommend", json={"title": "attention", "diversity": 0.5}
        )
        manifest = index / "manifest.json"
        manifest.write_bytes(manifest.read_bytes()[:-9])
        damaged = client.get("/v1/index").json()["indexes"]

    assert (before["papers"], after["papers"]) == (300, 299)
    assert after["version"] != before["version"]
    assert answer.status_code == 200
    assert damaged == [after]


def test_a_request_whose_client_is_gone_is_dropped(lone: Lone) -> None:
    service = lone()

    with serving(service) as client:
        with busy(service):
            with suppress(httpx.ReadTimeout):  # the client closes the connection
                client.post("/v1/recommend", json={"title": "attention"}, timeout=0.5)
            until(lambda: service.in_flight == 1)
        client.post("/v1/recommend", json={"title": "attention"})
        metrics = client.get("/metrics").text

    assert 'citerec_requests_total{route="/v1/recommend",status="408"} 1.0' in metrics
    assert "citerec_queries_total 1.0" in metrics
    assert f'citerec_build_info{{python="{python_version()}",version="' in metrics
    version = re.escape(next(iter(service.indexes.values())).version)
    assert re.search(rf'citerec_index_info\{{.*ranker="",.*"{version}"', metrics)
    assert service.in_flight == 0


def test_work_on_the_models_ends_when_its_request_is_over(lone: Lone) -> None:
    service, went_on = lone(), Event()

    def endless(_: OpenIndex) -> None:
        while True:
            service.models.pause()
            went_on.set()

    work = service.start(endless, None)
    assert went_on.wait(20)

    # as `answer` does after a timeout, and for a client that is gone
    is_dropped = work.cancel()

    assert not is_dropped  # it runs
    with pytest.raises(CancelledError):
        work.result(20)
    until(lambda: service.in_flight == 0)


def test_small_requests_go_before_large_ones_and_in_between(lone: Lone) -> None:
    service, done = lone(), list[str]()
    started, release = Event(), Event()

    def large(_: OpenIndex) -> None:
        started.set()
        release.wait(20)
        done.append("a part of the first")
        service.models.pause()
        done.append("the first")

    work = [service.start(large, None, size=5)]
    assert started.wait(20)
    for name, size in (("as large", 5), ("larger", 6), ("small", 1)):
        work.append(
            service.start(lambda _, name=name: done.append(name), None, size=size)
        )
    release.set()
    for future in work:
        future.result(20)

    assert done == ["a part of the first", "small", "the first", "as large", "larger"]


def test_files_that_never_end_leave_time_for_the_next(lone: Lone) -> None:
    service = lone(timeout_seconds=12)  # 6 s to read a file

    def read(code: str, name: str) -> Callable[[OpenIndex], None]:
        return lambda _: isolated(partial(exec, code, {}), name)

    endless = [
        service.start(read("while True: pass", "bomb.tex"), None, "uploads")
        for _ in range(THREADS["uploads"])
    ]
    service.start(read("pass", "good.tex"), None, "uploads").result(12)

    for work in endless:
        with pytest.raises(BadInputError, match=r"^bomb\.tex: reading this needs too"):
            work.result(12)


def test_a_batch_is_larger_than_a_draft_and_a_draft_than_a_short_list(
    service: Service,
) -> None:
    opened = service.open_index()

    def size(**body: Any) -> int:
        request = RecommendRequest(**body)
        read, _ = read_request(request, opened)
        return size_of(request, read)

    drafts = [{"id": f"{n}", "title": "Trees"} for n in range(8)]
    sizes = [size(title="Trees", k=5), size(title="Trees"), size(query=drafts)]
    assert sizes == [3, 5, 8]  # bits of 5, of 20, of 8 * 20
    assert size(title="Trees", rerank_depth=1_000) == 10  # of 1,020


def test_closing_does_not_wait_for_work_that_does_not_end(
    lone: Lone, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.serve.service.STOP_SECONDS", 0)
    stuck, idle = lone(), lone()

    with busy(stuck):
        waiting = stuck.start(lambda _: None, None)
        assert not stuck.close()

    assert idle.close()
    assert waiting.cancelled()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "drain", "code"),
    [(1, 1, 0), (2, 600, 128 + signal.SIGTERM)],
    ids=["after the drain", "at the second signal"],
)
def test_a_signal_ends_a_server_whatever_is_in_flight(
    sample_index: IndexFolder, tmp_path: Path, signals: int, drain: int, code: int
) -> None:
    script = f"from citerec.serve import app; app.DRAIN_SECONDS = {drain}"
    drafts = [
        {"id": f"{n}", "title": f"{n} trees", "abstract": HALF[:15_000]}
        for n in range(64)
    ]

    with (
        started(sample_index, tmp_path, script) as (process, client),
        ThreadPoolExecutor(1) as pool,
    ):
        body = {"query": drafts, "k": 1000, "explain": True}  # minutes of work
        answer = pool.submit(client.post, "/v1/recommend", json=body)
        until(lambda: "citerec_requests_in_flight 1.0" in client.get("/metrics").text)
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        process.wait(60)
        with suppress(httpx.TransportError):  # which the second signal leads to
            problem = answer.result().json()
            assert (problem["status"], problem["detail"]) == (
                503,
                "the server is being stopped",
            )

    assert (process.returncode, answer.exception() is None) == (code, signals == 1)
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_signal_ends_a_server_after_the_requests_in_flight(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    queries = [{"title": f"{n} {TITLES[n % len(TITLES)]}"} for n in range(32)]
    with (
        started(sample_index, tmp_path) as (process, client),
        ThreadPoolExecutor(1) as pool,
    ):
        answer = pool.submit(
            client.post, "/v1/recommend", json={"query": queries, "k": 20}
        )
        until(lambda: "citerec_requests_in_flight 1.0" in client.get("/metrics").text)
        process.send_signal(signal.SIGTERM)
        was_waiting = not answer.done()
        status = answer.result().status_code
        process.wait(60)

    assert (was_waiting, status, process.returncode) == (True, 200, 0)


@contextmanager
def started(
    index: IndexFolder, folder: Path, script: str = ""
) -> Generator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Run `citerec serve` as a process, after a line of Python; yield it and its client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = f"{script}\nfrom citerec.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        script,
        "serve",
        "--index",
        index.path,
        "--port",
        str(port),
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stderr=log, env=os.environ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        until(lambda: is_answering(client))
        try:
            yield process, client
        finally:
            process.kill()


def is_answering(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_server_for_other_machines_needs_a_token(
    sample_index: IndexFolder, capfd: Capture
) -> None:
    code = run(["serve", "--index", str(sample_index.path), "--host", "0.0.0.0"])

    assert code == 2
    assert "--token-file FILE" in capfd.readouterr().err


# --- look-ups


def test_papers_are_linked_by_what_they_cite(client: httpx.Client) -> None:
    found = client.get(
        "/v1/search", params={"q": "attention", "year_min": 2017, "limit": 3}
    ).json()
    linked = client.post(
        "/v1/connections", json={"ids": [one["id"] for one in found["results"]]}
    )

    assert linked.json()["prior"][0]["links"] == 3  # all three build on the same work


def test_a_pdf_or_a_word_file_is_a_draft(client: httpx.Client) -> None:
    text = f"---\ntitle: {BERT['title']}\n---\n# Abstract\n\n{BERT['abstract']}\n"
    body = "The first section begins here, and it is not a part of the abstract."
    for data, more in (
        (pdf(BERT["title"], BERT["abstract"]), {"body": body}),
        (word(text), {}),
    ):
        document = b64encode(data).decode()

        answer = client.post(
            "/v1/recommend", json={"document": document, "k": 5}
        ).json()

        assert BERT["title"] in answer["notices"][0]
        found = answer["answers"][0]["results"]
        assert [found] == results(client, **BERT, **more, k=5)
    wrong = client.post("/v1/recommend", json={"document": "ab", "k": 5})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (
        422,
        "/document",
    )


BOMB = (  # each macro is eight of the one before
    "\\documentclass{article}\\def\\a{x}"
    + "".join(
        f"\\def\\{b}{{{f'{chr(92)}{a}' * 8}}}" for a, b in pairwise("abcdefghijkl")
    )
    + "\\title{A}\\begin{document}\\l\\end{document}"
)


def test_bad_uploads_end_with_one_line_and_good_ones_are_read(
    lone: Lone, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MAX_SECONDS", 2)
    good = b64encode(word(f"---\ntitle: {BERT['title']}\n---\nText.\n")).decode()
    bodies = [
        {"text": BOMB},
        {"document": b64encode(BOMB.encode()).decode()},
        {"document": good},
    ]

    with serving(lone()) as client, ThreadPoolExecutor(4) as pool:
        upload = pool.submit(
            client.post, "/page/draft", files={"files": ("a.tex", BOMB)}
        )
        answers = [
            *pool.map(lambda body: client.post("/v1/recommend", json=body), bodies)
        ]
        bad = [*answers[:2], upload.result()]

    assert answers[2].status_code == 200
    for one in bad:
        assert (one.status_code, "too much time or memory" in one.text) == (
            422,
            True,
        ), one.text
        assert tempfile.gettempdir() not in one.text


def test_the_client_semanticscholar_makes_all_its_calls(client: httpx.Client) -> None:
    scholar: Any = pytest.importorskip("semanticscholar")
    first, second, third = (
        one["id"]
        for one in client.get("/v1/search", params={"q": "attention"}).json()[
            "results"
        ][:3]
    )
    url, every = str(client.base_url).rstrip("/"), scholar.Paper.Paper.FIELDS
    api = scholar.SemanticScholar(api_url=url, retry=False)

    for fields in (None, ["title"], every):
        found = api.get_recommended_papers(first, fields, limit=3, pool_from="all-cs")
        both = api.get_recommended_papers_from_lists(
            [first, second], [third], fields, limit=3
        )
        assert len(found) == len(both) == 3
        assert third not in {paper.paperId for paper in both}
    assert found[0].publicationVenue.name == found[0].venue
    with pytest.raises(Exception, match="not found: none"):
        api.get_recommended_papers("none")
    with pytest.raises(scholar.SemanticScholarException.BadQueryParametersException):
        api.get_recommended_papers_from_lists([])


# --- files for reference managers, and the description of the API


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("application/x-bibtex", "bibtex"),
        ("application/vnd.citationstyles.csl+json", "csl"),
    ],
)
def test_an_answer_in_a_format_is_what_the_python_api_exports(
    client: httpx.Client, service: Service, accept: str, format: str
) -> None:
    answer = client.post(
        "/v1/recommend", json={**BERT, "k": 3}, headers={"accept": accept}
    )

    expected = service.open_index().default.recommend(**BERT, k=3)
    assert answer.text == expected.export(format)
    assert answer.headers["content-type"].startswith(accept)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_server_takes_and_answers_what_the_description_says(
    lone: Lone,
) -> None:
    schemathesis: Any = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings
    from hypothesis.errors import Unsatisfiable
    from hypothesis.strategies import just
    from schemathesis.core.failures import FailureGroup

    def check(case: Any, mode: Any) -> None:
        answer = case.call(base_url=str(client.base_url), timeout=60)
        is_valid = mode == schemathesis.GenerationMode.POSITIVE
        try:
            case.validate_response(answer)
        except FailureGroup as group:
            # what the schema allows is refused for its content alone, such as a text without words
            failures = {type(one).__name__ for one in group.exceptions}
            is_content = answer.status_code == 422 and "errors" not in answer.json()
            assert is_valid and is_content, (case.as_curl_command(), answer.text)
            assert failures == {"RejectedPositiveData"}, (case.as_curl_command(), group)

    with serving(lone()) as client:
        schema = schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")
        operations = [result.ok() for result in schema.get_all_operations()]
        for operation, mode in product(operations, schemathesis.GenerationMode):
            drawn = given(
                case=operation.as_strategy(generation_mode=mode), mode=just(mode)
            )
            limits = settings(
                max_examples=40, deadline=None, suppress_health_check=[*HealthCheck]
            )
            with suppress(Unsatisfiable):  # nothing can be wrong with GET /healthz
                limits(drawn(check))()

    assert len(operations) == 12
