"""`citerec mcp`, called by the client of the official SDK: over stdio, over HTTP, and in this process."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

pytest.importorskip("mcp")

import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import CallToolResult

from citerec import RecommendConfig, Recommender
from citerec.errors import BadInputError
from citerec.index.folder import IndexFolder
from citerec.search import SearchFilter
from citerec.serve import ServeConfig
from citerec.serve.mcp import create_server, http_app
from citerec.serve.service import Service

CONFIG = RecommendConfig(few_queries=True)
DRAFT = {
    "title": "Dense retrieval of passages",
    "abstract": "A dual encoder ranks passages.",
}
DPR, TRANSFORMER = "karpukhin2020dense", "vaswani2017attention"
TOKEN = "a-token-of-the-tests"
COMMAND = [sys.executable, "-c", "from citerec.cli import main; main()", "mcp"]

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}

Call = Callable[..., CallToolResult]


@pytest.fixture(scope="module")
def recommender(sample_index: IndexFolder) -> Iterator[Recommender]:
    with Recommender(sample_index, CONFIG) as opened:
        yield opened


def with_client(server: Any, story: Callable[[Client], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with Client(server) as client:
            return await story(client)

    return asyncio.run(connected())


class Kept(Service):
    """Stays open for the next client."""

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def call(sample_index: IndexFolder) -> Call:
    """Call one tool of a server in this process."""
    opening: Future[Service] = Future()
    opening.set_result(Kept({"sample": sample_index.path}, {"sample": CONFIG}))

    def of(name: str, **arguments: Any) -> CallToolResult:
        server = create_server(opening)
        return with_client(server, lambda client: client.call_tool(name, arguments))

    return of


def content(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def error(result: CallToolResult) -> str:
    assert result.is_error
    [block] = result.content
    assert block.type == "text"
    assert "\n" not in block.text
    return block.text


def test_an_assistant_over_stdio_gets_the_list_of_the_python_api(
    sample_index: IndexFolder, recommender: Recommender
) -> None:
    command = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--index", str(sample_index.path)]
    )
    unexpected: list[Any] = []  # such as a line of stdout that is no message

    async def story() -> tuple[set[str], CallToolResult]:
        async def note(message: Any) -> None:
            unexpected.append(message)

        async with Client(command, message_handler=note) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, await client.call_tool("recommend", {**DRAFT, "k": 5})

    tools, result = asyncio.run(story())

    expected = recommender.recommend(**DRAFT, k=5, explain=True).to_dicts()
    assert unexpected == []
    assert tools == {
        *("recommend", "search", "get_paper", "references_and_citers"),
        *("check_bibliography", "corpus_info"),
    }
    keys = ("rank", "id", "title", "year", "score", "probability", "reasons")
    for paper, own in zip(content(result)["results"], expected, strict=True):
        assert [paper[key] for key in keys] == [own[key] for key in keys]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_at_once(
    sample_index: IndexFolder, number: int
) -> None:
    with subprocess.Popen(
        [*COMMAND, "--index", sample_index.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{json.dumps(HELLO)}\n")
        process.stdin.flush()
        process.stdout.readline()  # it is waiting for the next message
        process.send_signal(number)
        process.wait(timeout=60)
        errors = process.stderr.read() if process.stderr else ""

    assert (process.returncode, errors) == (128 + number, "")


@pytest.mark.parametrize(
    "arguments",
    [
        {**DRAFT, "cited": [DPR, "no-such-paper"], "rejected": [TRANSFORMER]},
        {"context": "Self-attention replaces recurrence [CITE]."},
        {"cited": [TRANSFORMER]},
        {"title": "Machine translation", "body": "A draft. Attention is enough here."},
    ],
)
def test_a_draft_a_sentence_and_a_list_get_recommendations(
    call: Call, recommender: Recommender, arguments: dict[str, Any]
) -> None:
    result = content(call("recommend", **arguments, k=3, abstract_chars=0))

    expected = recommender.recommend(**arguments, k=3)
    assert tuple(paper["id"] for paper in result["results"]) == expected.ids
    assert result["not_found"] == [*expected.not_found]
    assert {paper["abstract"] for paper in result["results"]} == {""}


@pytest.mark.parametrize(
    "bounds",
    [
        {"year_min": 2015, "year_max": 2019},
        {"author": "MANNING"},
        {"venue": "NAACL"},
        {},
    ],
)
def test_http_mcp_and_python_find_the_same_papers_in_the_same_order(
    call: Call, recommender: Recommender, address: str, bounds: dict[str, Any]
) -> None:
    words = "neural networks for language"

    params = {"q": words, "limit": 3, "offset": 1, **bounds}
    page = httpx.get(f"{address}v1/search", params=params).json()["results"]
    tool = content(call("search", keywords=words, k=3, offset=1, **bounds))["results"]
    found = recommender.corpus.search(
        words, k=3, offset=1, filter=SearchFilter(**bounds)
    )

    expected = [(item.paper.id, item.score) for item in found]
    assert expected
    for results in (page, tool):
        assert [(paper["id"], paper["score"]) for paper in results] == expected


def test_http_mcp_and_python_describe_a_paper_alike(
    call: Call, recommender: Recommender, address: str
) -> None:
    page = httpx.get(f"{address}v1/papers/CorpusId:{DPR}", params={"limit": 4}).json()
    card = content(call("get_paper", id=DPR))
    links = content(call("references_and_citers", id=DPR, k=4))
    details = recommender.corpus.paper(DPR)

    assert page["paper"]["id"] == card["id"] == details.paper.id == DPR
    assert card["bibtex"].startswith("@inproceedings{karpukhin2020dense,")
    assert (len(card["authors"]), card["author_count"]) == (5, 8)
    assert page["references"]["total"] == card["reference_count"] == details.references
    assert page["cited_by"]["total"] == card["cited_by_count"] == details.cited_by
    for name in ("references", "cited_by"):
        ids = [paper.id for paper in getattr(recommender.corpus, name)(DPR, k=4).papers]
        assert [paper["id"] for paper in page[name]["results"]] == ids
        assert [paper["id"] for paper in links[name]["papers"]] == ids
    [described, _] = httpx.get(f"{address}v1/index").json()["indexes"]
    assert content(call("corpus_info")) == described


def test_a_wrong_year_of_a_bibliography_is_corrected(call: Call) -> None:
    title = "Dense Passage Retrieval for Open-Domain Question Answering"
    entry = f"@article{{mine, title={{{title}}}, year={{2017}}}}"

    checked = content(call("check_bibliography", content=entry))
    after = content(call("check_bibliography", content=entry, offset=1))

    assert [found["problem"] for found in checked["problems"]] == ["year"]
    assert checked["corrections"] == f"{entry.replace('2017', '2020')}\n"
    assert after["corrections"] == ""


@pytest.mark.parametrize(
    ("name", "arguments", "part"),
    [
        ("recommend", {}, "there is no draft; give one by title"),
        ("recommend", {"title": "x", "k": 99}, "k must be at most 50"),
        ("recommend", {"title": 7}, "got 7"),
        ("recommend", {"text": "x"}, "'text'"),
        ("search", {}, "keywords"),
        (
            "search",
            {"keywords": "a", "year_min": 2, "year_max": 1},
            "papers from the year 2 up to the year 1",
        ),
        ("get_paper", {"id": "no\nsuch"}, "no\\nsuch"),
        ("check_bibliography", {"content": "[{"}, "content, line 1"),
        ("cite", {}, "Unknown tool: cite"),
    ],
)
def test_a_wrong_call_is_one_line_that_says_what_to_do(
    call: Call, name: str, arguments: dict[str, Any], part: str
) -> None:
    assert part in error(call(name, **arguments))


def test_an_index_that_cannot_be_opened_is_the_error_of_each_call() -> None:
    opening: Future[Service] = Future()
    opening.set_exception(BadInputError("models", "they are missing; train them"))

    result = with_client(
        create_server(opening), lambda client: client.call_tool("corpus_info", {})
    )

    assert error(result) == "models: they are missing; train them"


@pytest.fixture
def url(sample_index: IndexFolder) -> Iterator[str]:
    """A server over HTTP on a free port, which wants a token."""
    settings = ServeConfig(tokens=(TOKEN,))
    app = http_app(Service({"sample": sample_index.path}, {"sample": CONFIG}, settings))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join()


def test_an_assistant_over_http_needs_the_token(
    url: str, recommender: Recommender
) -> None:
    without = httpx.post(url, json={})
    elsewhere = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
    rebound = httpx.post(url, json={}, headers=elsewhere)

    async def story() -> CallToolResult:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool("recommend", {**DRAFT, "k": 3})

    result = asyncio.run(story())

    assert (without.status_code, without.headers["www-authenticate"]) == (401, "Bearer")
    assert rebound.status_code == 421
    ids = tuple(paper["id"] for paper in content(result)["results"])
    assert ids == recommender.recommend(**DRAFT, k=3).ids
