"""The server: its answers are those of the command line, and its errors say what was wrong."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from support.server import serving

import citerec
from citerec.cli import run
from citerec.config import RecommendConfig, RerankConfig
from citerec.folder import IndexFolder
from citerec.rerank.requested import cross_encoders
from citerec.serve.options import config_of, model_settings
from citerec.serve.problems import ProblemError
from citerec.serve.schema import RecommendRequest
from citerec.serve.service import Service
from citerec.serve.settings import ServeConfig

BERT = {
    "title": "Deep transformers for sentence similarity",
    "abstract": "We fine-tune a language model to compare sentences.",
}
DRAFTS = [
    "Attention over long documents",
    "Word vectors from co-occurrence counts",
    "Learning to rank with gradient boosted trees",
    "Neural machine translation by attention",
    "Image classification with deep networks",
    "Graph neural networks for citations",
]


@pytest.fixture(scope="module")
def service(dense_sample: IndexFolder, tiny_reranker_model: str) -> Generator[Service]:
    """The sample with vectors and a reranker."""
    models = model_settings([tiny_reranker_model])
    opened = Service({"sample": dense_sample.path}, models)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Generator[httpx.Client]:
    """A client of a real server; all tests of this module share it."""
    with serving(service) as connected:
        yield connected


@pytest.fixture
def lone(sample_index: IndexFolder) -> Generator[Callable[..., Service]]:
    """Opens a service of its own on words alone, with other settings."""
    opened: list[Service] = []

    def make(path: Path | None = None, **settings: Any) -> Service:
        config = ServeConfig(**settings)
        models = model_settings(["none"], ranker="none")
        opened.append(Service({"sample": path or sample_index.path}, models, config))
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
    """Keep the worker busy with a request until the block ends."""
    started, release, former = Event(), Event(), service.on_batch

    def wait_for_release(queries: int, seconds: float) -> None:
        started.set()
        release.wait(20)

    service.on_batch = wait_for_release
    first = service.submit(RecommendRequest(title="attention"))
    try:
        assert started.wait(20)
        yield
    finally:
        service.on_batch = former
        release.set()
        wait([first], 20)


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
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps(BERT | {"year": 2020}))
    options = ["--k", "7", "--reranker", tiny_reranker_model, "--explain", "--quiet"]
    command = ["recommend", "--index", str(dense_sample.path), "--query", str(draft), *options]

    assert run([*command, "--format", "json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    [answered] = results(client, query=BERT | {"year": 2020}, k=7, explain=True)
    config = RecommendConfig(few_queries=True, reranker=rerank_config(tiny_reranker_model))
    with citerec.open(dense_sample.path, config) as recommender:
        found = recommender.recommend(**BERT, year=2020, k=7, explain=True).to_dicts()

    assert len(printed) == 7
    assert printed[0]["reasons"]
    assert answered == printed == found


def rerank_config(model: str) -> RerankConfig:
    return model_settings([model]).running(cross_encoders([model]))


def test_auto_means_what_it_means_without_a_server(
    service: Service, dense_sample: IndexFolder
) -> None:
    request = RecommendRequest(**BERT, k=5, reranker="auto", ranker="auto")
    with citerec.open(dense_sample.path, RecommendConfig(few_queries=True)) as recommender:
        expected = recommender.recommend(**BERT, k=5).to_dicts()

    auto = service.submit(request).result().answers[0].to_dicts()
    started = service.submit(RecommendRequest(**BERT, k=5)).result().answers[0].to_dicts()

    assert auto == expected
    assert started != expected  # it reranks


def test_a_server_without_a_ranking_model_opens_one_for_a_request_that_names_auto(
    sample_index: IndexFolder,
) -> None:
    models = model_settings(["none"], ranker="none")

    rankers = [
        config_of(RecommendRequest(title="a", **options), sample_index, models).ranker
        for options in ({}, {"ranker": "auto"}, {"ranker": "none"})
    ]

    assert rankers == ["none", "auto", "none"]
    with pytest.raises(citerec.CiterecError, match="--rerank-depth has no effect"):
        config_of(RecommendRequest(title="a", rerank_depth=[5]), sample_index, models)


def test_queries_of_one_request_are_answered_in_their_order(client: httpx.Client) -> None:
    queries = [{"id": f"draft-{n}", "title": title} for n, title in enumerate(DRAFTS)]

    answer = client.post("/v1/recommend", json={"query": queries, "k": 3}).json()

    assert [one["query"] for one in answer["answers"]] == [one["id"] for one in queries]
    assert all(len(one["results"]) == 3 for one in answer["answers"])


def test_requests_that_run_together_get_the_answers_of_each_alone(service: Service) -> None:
    requests = [
        RecommendRequest(
            title=title, k=5 + n, explain=n % 2 == 0, year_max=2019 if n == 3 else None
        )
        for n, title in enumerate(DRAFTS)
    ]
    alone = [service.submit(one).result().answers for one in requests]

    with busy(service):
        waiting = [service.submit(one) for one in requests]
        until(lambda: service.batcher.waiting == len(requests))
    together = [one.result() for one in waiting]

    assert {one.batch for one in together} == {len(requests)}
    assert [one.answers for one in together] == alone


def test_an_answer_has_one_notice_that_its_list_may_be_unreliable(client: httpx.Client) -> None:
    foreign, misspelled = (
        client.post("/v1/recommend", json={"title": title, "k": 1}).json()["answers"][0]["notices"]
        for title in ("基于预训练模型的学术论文引用推荐方法研究", "Zzyzx qwertz")
    )

    assert len(foreign) == len(misspelled) == 1
    assert foreign[0].startswith("most words of this draft are in a script or language that the")
    assert misspelled[0].startswith("no word of this draft occurs in an eligible paper")


def test_a_faulty_request_does_not_spoil_the_others_of_its_batch(service: Service) -> None:
    good = RecommendRequest(title=DRAFTS[0])
    bad = RecommendRequest(query={"title": "Text", "context": "[12]"})

    with busy(service):
        waiting = [service.submit(one) for one in (good, bad)]
        until(lambda: service.batcher.waiting == 2)

    assert len(waiting[0].result().answers[0].items) == 20
    with pytest.raises(citerec.CiterecError, match="no words besides citation markers"):
        waiting[1].result()


def test_options_have_the_names_and_the_effect_of_the_command_line(client: httpx.Client) -> None:
    [plain] = results(client, **BERT, reranker="none", ranker="none", encoder="none")
    [cited] = results(client, **BERT, cited=[plain[0]["id"]], exclude=[plain[1]["id"]], k=5)
    [missing] = results(client, cited=[plain[0]["id"]], k=5, fields=["doi", "authors"])
    [sentence] = results(client, context="Attention replaces recurrence [CITE].", year_max=2018)

    assert {*plain[0]["stages"]} == {"bm25"}
    assert not {one["id"] for one in cited} & {one["id"] for one in plain[:2]}
    assert plain[0]["id"] not in {one["id"] for one in missing}
    assert isinstance(missing[0]["authors"], list)
    assert all(one["year"] <= 2018 for one in sentence)


# --- errors


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "there is no draft"),
        ({"title": " "}, "title is empty"),
        ({"title": "a", "k": 0}, "/k: Input should be greater than or equal to 1"),
        ({"title": "a", "colour": 1}, "/colour: Extra inputs are not permitted"),
        ({"title": "a", "reranker": "/etc"}, "this server offers: auto, none"),
        ({"title": "a", "query": {}, "text": "b"}, "query and text are both given"),
        ({"query": {"abstract": "no title"}}, "title"),
        ({"title": "a", "retriever": ["x"]}, "no retriever 'x'"),
        ({"title": "a" * 20_001}, "/title: String should have at most 20000 characters"),
        ({"query": []}, "/query: List should have at least 1 item"),
        ({"query": [1]}, "/query/0: Input should be a valid dictionary"),
        ({"cited": {}}, "/cited: Input should be a valid list, or Input should be a valid string"),
    ],
)
def test_a_wrong_request_is_answered_by_a_problem(
    client: httpx.Client, body: dict[str, Any], detail: str
) -> None:
    answer = client.post("/v1/recommend", json=body)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert detail in answer.json()["detail"]
    assert answer.json()["instance"].endswith(answer.headers["x-request-id"])


def test_unknown_paths_indexes_and_papers_are_problems_too(client: httpx.Client) -> None:
    answers = [
        client.get("/v2"),
        client.get("/v1/papers/10.1000/none"),
        client.get("/v1/search", params={"q": "a", "index": "other"}),
        client.post("/v1/recommend", json={"title": "a", "index": "other"}),
        client.put("/v1/index"),
        client.post("/v1/recommend", content=b"{", headers={"content-type": "application/json"}),
    ]

    assert [one.status_code for one in answers] == [404, 404, 404, 404, 405, 400]
    assert {one.headers["content-type"] for one in answers} == {"application/problem+json"}


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        (b'{"title": "a", "year": 99999999999999999999}', "holds a whole number beyond 64 bits;"),
        (b'{"title": "a", "abstract": "cut in half: \\ud83d"}', "holds half of a character"),
        (b'[{"title": "a"}, {"title": "b", "\\ud83d": 1}]', "holds half of a character"),
        (b'{"title": "a", "b": %b1%b}' % (b"[" * 254, b"]" * 254), "is nested too deeply"),
    ],
)
def test_a_record_that_no_file_could_hold_is_a_problem_that_names_the_fault(
    client: httpx.Client, query: bytes, fault: str
) -> None:
    json_type = {"content-type": "application/json"}

    answer = client.post("/v1/recommend", content=b'{"query": %b}' % query, headers=json_type)

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"query {fault}")


def test_a_record_may_be_nested_as_deeply_as_that_of_a_file(client: httpx.Client) -> None:
    query = b'{"title": "Attention", "b": %b1%b}' % (b"[" * 253, b"]" * 253)

    answer = client.post(
        "/v1/recommend",
        content=b'{"query": %b}' % query,
        headers={"content-type": "application/json"},
    )

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ({"text": "%PDF-1.7 nothing"}, "send its text"),
        (
            {"text": "\\documentclass{article}\\begin{document}Words.\\end{document}"},
            "send it as title",
        ),
        ({"cited": []}, "cited is empty; give the references that something is missing from"),
        ({"text": "A title", "year": 2020}, "a record of query, or text, has its own"),
    ],
)
def test_advice_is_for_those_who_send_requests(
    client: httpx.Client, body: dict[str, Any], advice: str
) -> None:
    answer = client.post("/v1/recommend", json=body)

    assert answer.status_code == 422
    assert advice in answer.json()["detail"]
    assert "citerec recommend" not in answer.json()["detail"]


def test_a_misspelt_parameter_is_refused(client: httpx.Client) -> None:
    answers = [
        client.get("/v1/search", params={"q": "a", "yearmin": 2000}),
        client.get("/v1/index", params={"name": "sample"}),
    ]

    assert [one.status_code for one in answers] == [422, 422]
    details = [one.json()["detail"] for one in answers]
    assert (
        details[0]
        == "/yearmin: expected author, index, limit, offset, q, venue, year_max, year_min"
    )
    assert details[1] == "/name: expected no parameter"


def test_a_body_that_is_no_json_is_answered_by_the_place_of_the_fault(client: httpx.Client) -> None:
    body = b'{"title": "a",\n "year": }'

    answer = client.post(
        "/v1/recommend", content=body, headers={"content-type": "application/json"}
    )

    assert answer.json()["detail"] == (
        "the body is not JSON: line 2, character 10: expecting value; send an object, such as "
        '{"title": "Late interaction"}'
    )


@pytest.mark.parametrize(
    ("content", "media_type", "detail"),
    [
        (b"[]", "application/json", "the body: it is no JSON object of the Content-Type"),
        (b'{"title": "a"}', "text/plain", "the body: it is no JSON object of the Content-Type"),
        (b"", "application/json", "the body: it is no JSON object of the Content-Type"),
        (b'{"title": "\xff"}', "application/json", "the body is not UTF-8; send an object"),
        (b"[" * 200_000, "application/json", "the body is nested too deeply; send an object"),
    ],
)
def test_a_body_that_cannot_be_read_is_answered_by_what_to_send(
    client: httpx.Client, content: bytes, media_type: str, detail: str
) -> None:
    answer = client.post("/v1/recommend", content=content, headers={"content-type": media_type})

    assert answer.status_code in {400, 422}
    assert detail in answer.json()["detail"]
    assert all(one["pointer"] == "" for one in answer.json().get("errors", []))


def test_too_many_queries_are_told_when_to_come_again(lone: Callable[..., Service]) -> None:
    service = lone(queue_size=2)
    service.admission.admit(2)

    with serving(service) as client:
        refused = client.post("/v1/recommend", json={"title": "a"})
        service.admission.leave(2)
        accepted = client.post("/v1/recommend", json={"title": "attention"})

    assert (refused.status_code, accepted.status_code) == (429, 200)
    assert int(refused.headers["retry-after"]) >= 1


def test_bodies_tokens_and_host_names_are_checked(lone: Callable[..., Service]) -> None:
    token = "a-secret-of-some-length"
    service = lone(max_body_bytes=1000, tokens=(token,))
    allowed = {"authorization": f"Bearer {token}"}

    with serving(service) as client:
        answers = [
            client.get("/healthz"),
            client.get("/v1/index"),
            client.get("/v1/index", headers={"authorization": "Bearer wrong"}),
            client.get("/v1/index", headers=allowed),
            client.get("/v1/index", headers=allowed | {"host": "rebound.example"}),
            client.post("/v1/recommend", json={"title": "a" * 2000}, headers=allowed),
            client.options("/v1/recommend", headers={"origin": "https://x.example"}),
        ]

    assert [one.status_code for one in answers] == [200, 401, 401, 200, 421, 413, 401]
    assert answers[1].headers["www-authenticate"] == "Bearer"
    assert not any("access-control-allow-origin" in one.headers for one in answers)


def test_pages_of_allowed_origins_may_read_the_answers(lone: Callable[..., Service]) -> None:
    allowed = ("https://example.org", "http://localhost:3000", "null", "moz-extension://0a-1b")
    service = lone(origins=allowed)

    with serving(service) as client:
        answers = [
            client.get("/healthz", headers={"origin": origin})
            for origin in (*allowed, "https://x.example")
        ]

    headers = [one.headers.get("access-control-allow-origin") for one in answers]
    assert headers == [*allowed, None]


@pytest.mark.parametrize(
    "origin",
    [
        *("foo", "", "example.org", "https://", "https://example.org/", "https://example.org/page"),
        *("https://Example.org", "https://example.org:443", "http://[::1]:80", "https://*.org"),
        *("https://example.org:port", "https://me@example.org", "https://bücher.example"),
    ],
)
def test_what_no_browser_sends_as_an_origin_is_refused(
    sample_index: IndexFolder, origin: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run(["serve", "--index", str(sample_index.path), "--allow-origin", origin])

    err = capfd.readouterr().err
    assert (code, err.count("\n")) == (2, 1)
    assert f"{origin!r} is no origin of a web page; expected" in err


def test_a_request_that_is_late_gets_a_timeout(lone: Callable[..., Service]) -> None:
    service = lone(timeout_seconds=0.3)

    with serving(service) as client, busy(service):
        answer = client.post("/v1/recommend", json={"title": "attention"})

    assert answer.status_code == 504


def test_a_server_that_stops_answers_what_it_has_and_refuses_more(
    lone: Callable[..., Service],
) -> None:
    service = lone()
    first = service.submit(RecommendRequest(title="attention"))

    service.close()

    assert len(first.result().answers[0].items) == 20
    with pytest.raises(ProblemError, match="being stopped"):
        service.submit(RecommendRequest(title="attention"))


def test_a_request_whose_client_is_gone_is_dropped(lone: Callable[..., Service]) -> None:
    service, batches = lone(), list[int]()

    with serving(service) as client:
        service.on_batch = lambda queries, seconds: batches.append(queries)
        with busy(service):
            with suppress(httpx.ReadTimeout):  # the client closes the connection
                client.post("/v1/recommend", json={"title": "attention"}, timeout=0.5)
            until(lambda: service.admission.in_flight == 1)
        client.post("/v1/recommend", json={"title": "attention"})
        metrics = client.get("/metrics").text

    assert 'citerec_requests_total{route="/v1/recommend",status="499"} 1.0' in metrics
    assert batches == [1]  # after the first one, for which `busy` waits
    assert service.admission.in_flight == 0


@pytest.mark.slow
def test_a_signal_ends_a_server_after_the_requests_in_flight(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from citerec.cli import main; main()", "serve"]
    options = ["--index", sample_index.path, "--port", str(port)]
    queries = [{"title": f"{n} {DRAFTS[n % len(DRAFTS)]}"} for n in range(32)]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [*command, *options],
            stderr=log,
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        until(lambda: is_answering(client))

        body = {"query": queries, "k": 20}
        answer = pool.submit(client.post, "/v1/recommend", json=body)
        until(lambda: "citerec_queries_in_flight 32.0" in client.get("/metrics").text)
        process.send_signal(signal.SIGTERM)
        was_waiting = not answer.done()
        status = answer.result().status_code
        process.wait(60)

    assert (was_waiting, status, process.returncode) == (True, 200, 0)


def is_answering(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


# --- look-ups


def test_papers_are_searched_and_looked_up_with_their_citations(client: httpx.Client) -> None:
    found = client.get("/v1/search", params={"q": "attention", "year_min": 2017, "limit": 3}).json()
    first = found["results"][0]["id"]
    paper = client.get(f"/v1/papers/{first}", params={"limit": 2}).json()
    [described] = client.get("/v1/index").json()["indexes"]

    assert len(found["results"]) == 3
    assert all(one["year"] >= 2017 for one in found["results"])
    assert paper["paper"]["id"] == first
    assert len(paper["cited_by"]["results"]) == min(2, paper["cited_by"]["total"])
    assert (described["name"], described["papers"]) == ("sample", 300)


def test_clients_of_semantic_scholar_get_its_answers(client: httpx.Client) -> None:
    first = client.get("/v1/search", params={"q": "attention"}).json()["results"][0]["id"]
    body = {"positivePaperIds": [first], "negativePaperIds": []}
    path = "/recommendations/v1/papers"

    by_list = client.post(path, json=body, params={"limit": 4, "fields": "title,year,tldr"}).json()
    by_paper = client.get(f"{path}/forpaper/{first}", params={"limit": 2}).json()
    unknown = client.post(path, json={"positivePaperIds": ["none"]})

    assert [*by_list["recommendedPapers"][0]] == ["paperId", "title", "year", "tldr"]
    assert len(by_list["recommendedPapers"]) == 4
    assert first not in {one["paperId"] for one in by_paper["recommendedPapers"]}
    assert (unknown.status_code, unknown.json()["error"][:22]) == (404, "Input papers not found")


def test_metrics_count_requests_by_route(client: httpx.Client) -> None:
    client.get("/v1/papers/10.1000/none")

    text = client.get("/metrics").text

    assert 'citerec_requests_total{route="/v1/papers/{id:path}",status="404"}' in text
    assert 'citerec_index_papers{index="sample"} 300.0' in text


# --- versions, tokens


def test_other_vectors_and_another_ranker_are_another_version(
    lone: Callable[..., Service], dense_sample: IndexFolder, tmp_path: Path
) -> None:
    folder = tmp_path / "live"
    shutil.copytree(dense_sample.path, folder)

    def version() -> str:
        opened = lone(folder).indexes.acquire()
        opened.release()
        return opened.version

    first = version()
    assert version() == first
    (folder / "models" / "ranker").mkdir(parents=True)
    (folder / "models" / "ranker" / "checksums.json").write_text("{}")
    other_model = version()
    assert run(["encode", "--index", str(folder), "--dense-index", "hnsw", "--quiet"]) == 0

    assert len({first, other_model, version()}) == 3
    assert first.split()[0] == version().split()[0]  # the time of the build


def test_a_server_for_other_machines_needs_a_token(
    sample_index: IndexFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run(["serve", "--index", str(sample_index.path), "--host", "0.0.0.0"])

    assert code == 2
    assert "there is no token; give --token-file FILE" in capfd.readouterr().err
