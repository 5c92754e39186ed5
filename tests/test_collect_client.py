"""The client of `citerec collect` against a real local server that misbehaves, and what it makes of wild JSON."""

import socket
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scholar_server import (
    BROKEN,
    CUT,
    HTML,
    MALFORMED,
    Fault,
    ScholarServer,
    busy,
    serving,
)

from citerec.collect import semanticscholar
from citerec.collect.client import Client
from citerec.collect.estimate import estimate
from citerec.collect.openalex import OpenAlex
from citerec.collect.resolve import identifier
from citerec.collect.semanticscholar import SemanticScholar
from citerec.collect.service import Politeness, Service, retry_after
from citerec.collect.store import open_cache, read_record
from citerec.collect.work import CollectError, Source, Work, plain
from citerec.errors import BadInputError, ConfigError, OutputError

PAPERS = [
    {"id": "a", "title": "Graph drawing", "year": 1990, "doi": "10.5555/a"},
    {"id": "b", "title": "Tree drawing", "year": 1995, "citations": ["a"], "doi": "10.5555/b"},
]
WORKS = {"filter": "openalex:W1000"}
QUICK = Politeness(rate=1000, tries=4, first_pause=0.01, timeout=5)


@pytest.fixture
def server() -> Generator[ScholarServer]:
    with serving(PAPERS) as running:
        yield running


@contextmanager
def opened(
    server: ScholarServer | str, folder: Path, politeness: Politeness = QUICK, **more: Any
) -> Generator[tuple[Client, list[str]]]:
    """Open a client; yields it, and the list of what it logs."""
    url = server if isinstance(server, str) else server.url
    service = Service(title="OpenAlex", url=url, variable="KEY", parameter="api_key", **more)
    messages: list[str] = []
    with open_cache(folder, "collection") as cache:
        client = Client(service, politeness, cache, messages.append)
        yield client, messages
        client.close()


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([BROKEN, BROKEN], "HTTP 500: Internal Server Error"),
        ([CUT], "peer closed connection"),
        ([MALFORMED], "the answer is not JSON (damaged JSON)"),
        ([HTML], "the answer is not JSON (text/html)"),
        ([Fault(body=b"7")], "neither an object nor a list"),
        ([Fault(503, b"")], "HTTP 503"),
        ([Fault(403, b'{"message": "Rate limit exceeded"}')], "HTTP 403: Rate limit exceeded"),
        ([busy("0")], "HTTP 429: Too Many Requests"),
    ],
)
def test_a_passing_fault_is_tried_again(
    faults: list[Fault], message: str, server: ScholarServer, tmp_path: Path
) -> None:
    server.faults = list(faults)

    with opened(server, tmp_path) as (client, messages):
        answer = client.get("/works", WORKS)

    assert answer["results"][0]["title"] == "Graph drawing"
    assert client.sent == len(faults) + 1
    assert len(messages) == len(faults)
    assert message in messages[0]
    assert "trying again in" in messages[0]


def test_a_server_that_asks_for_a_pause_gets_it(server: ScholarServer, tmp_path: Path) -> None:
    server.faults = [busy("0.4")]

    start = time.monotonic()
    with opened(server, tmp_path) as (client, _):
        client.get("/works", WORKS)

    assert time.monotonic() - start >= 0.4


def test_a_server_that_asks_for_hours_ends_the_run(server: ScholarServer, tmp_path: Path) -> None:
    server.faults = [busy("7200")]

    with opened(server, tmp_path) as (client, _), pytest.raises(CollectError) as caught:
        client.get("/works", WORKS)

    assert "asks to wait 2.0 hours" in str(caught.value)
    assert "the same command continues" in str(caught.value)


def test_tries_are_bounded(server: ScholarServer, tmp_path: Path) -> None:
    server.faults = [HTML] * 9

    with opened(server, tmp_path) as (client, _), pytest.raises(CollectError) as caught:
        client.get("/works", WORKS)

    assert "failed 4 times (the answer is not JSON (text/html))" in str(caught.value)
    assert len(server.requests) == 4


def test_a_slow_answer_is_given_up_and_tried_again(server: ScholarServer, tmp_path: Path) -> None:
    server.faults = [Fault(wait=1.0)]
    politeness = Politeness(rate=1000, tries=2, first_pause=0.01, timeout=0.2)

    with opened(server, tmp_path, politeness) as (client, messages):
        answer = client.get("/works", WORKS)

    assert answer["results"]
    assert "no answer in time" in messages[0]


def test_offline_is_stated_plainly(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

        with opened(url, tmp_path) as (client, _), pytest.raises(CollectError) as caught:
            client.get("/works", WORKS)

    assert str(caught.value).startswith(f"OpenAlex cannot be reached at {url} (")
    assert "citerec collect needs a network" in str(caught.value)


def test_a_request_is_sent_once(server: ScholarServer, tmp_path: Path) -> None:
    with opened(server, tmp_path) as (client, _):
        first = [
            client.get("/works", WORKS),
            client.post("/graph/v1/paper/batch", {"fields": "title"}, ["DOI:10.5555/a"]),
        ]
        missing = client.get("/works/doi:10.5555%2Fmissing", {}, optional=True)
    with opened(server, tmp_path) as (later, _):
        again = [
            later.get("/works", WORKS),
            later.post("/graph/v1/paper/batch", {"fields": "title"}, ["DOI:10.5555/a"]),
        ]
        assert later.get("/works/doi:10.5555%2Fmissing", {}, optional=True) is None

    assert missing is None
    assert again == first
    assert (client.sent, later.sent, later.reused) == (3, 0, 3)


def test_responses_of_another_run_are_not_used(server: ScholarServer, tmp_path: Path) -> None:
    with opened(server, tmp_path) as (client, _):
        client.get("/works", WORKS)

    with open_cache(tmp_path, "update of 2026-01-01") as cache:
        assert len(cache) == 0


def test_requests_keep_the_rate(server: ScholarServer, tmp_path: Path) -> None:
    start = time.monotonic()
    with opened(server, tmp_path, Politeness(rate=20)) as (client, _):
        for number in range(5):
            client.get("/works", {"filter": f"openalex:W{number}"})

    assert time.monotonic() - start >= 4 / 20


def test_a_redirect_to_another_host_does_not_take_the_key_along(
    server: ScholarServer, tmp_path: Path
) -> None:
    with serving([]) as thief:
        server.faults = [Fault(302, b"", {"Location": f"{thief.url}/works"})]

        with (
            opened(server, tmp_path, key="secret") as (client, _),
            pytest.raises(CollectError, match="HTTP 302"),
        ):
            client.get("/works", WORKS)

        assert thief.requests == []


def test_a_redirect_within_the_service_is_followed(server: ScholarServer, tmp_path: Path) -> None:
    server.faults = [Fault(301, b"", {"Location": "/works?filter=ignored"})]  # a merged work

    with opened(server, tmp_path, key="secret") as (client, _):
        answer = client.get("/works/W1", WORKS)

    assert answer["results"][0]["title"] == "Graph drawing"
    assert server.requests[1].params["api_key"] == "secret"


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    (tmp_path / ".collect").mkdir()
    (tmp_path / ".collect" / "responses.sqlite").write_text("no database" * 100)

    with pytest.raises(OutputError, match=r"is damaged .*; remove it"), open_cache(tmp_path, "x"):
        pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"seeds": 7}',
        '{"seeds": [], "runs": [], "query": {}, "finished": "", "started": "x"}',
    ],
)
def test_a_damaged_record_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "collection.json").write_text(text)

    with pytest.raises(BadInputError, match="not a record of citerec collect"):
        read_record(tmp_path)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("Mon, 23 Nov 2026 12:01:00 GMT", 60.0),
        ("Mon, 23 Nov 2020 12:00:00 GMT", 0.0),  # in the past
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, seconds: float | None) -> None:
    now = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)

    assert retry_after(value, now) == seconds


@settings(max_examples=50)
@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_client(value: str) -> None:
    seconds = retry_after(value, datetime(2026, 11, 23, tzinfo=UTC))

    assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://doi.org/10.1145/3397271.3401075", "doi:10.1145/3397271.3401075"),
        ("doi:10.1145/ABC", "doi:10.1145/abc"),
        ("arXiv:2004.12832", "arxiv:2004.12832"),
        ("https://arxiv.org/abs/2004.12832v2", "arxiv:2004.12832"),
        ("10.48550/arXiv.2004.12832", "arxiv:2004.12832"),
        ("arXiv:hep-th/9901001", "arxiv:hep-th/9901001"),
        ("https://openalex.org/W2741809807", "id:W2741809807"),
        ("0123456789abcdef0123456789abcdef01234567", "id:0123456789abcdef0123456789abcdef01234567"),
        ("khattab2020", ""),  # a BibTeX key stays at home
        ("../../etc/passwd", ""),
    ],
)
def test_only_ids_of_services_are_ids(text: str, found: str) -> None:
    assert identifier(text) == found


def test_markup_leaves_titles() -> None:
    assert (
        plain("<i>In vivo</i> &amp; in\n<scp>vitro</scp>: x &lt; y") == "In vivo & in vitro: x < y"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = (
    "id doi title publication_year type authorships primary_location biblio cited_by_count referenced_works "
    "abstract_inverted_index paperId externalIds url abstract venue year publicationTypes journal authors "
    "citationCount referenceCount references results meta data next citingPaper citedPaper"
).split()
WILD = st.recursive(
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8),
    lambda inner: st.dictionaries(
        st.sampled_from(FIELDS), inner | st.lists(inner, max_size=3), max_size=6
    ),
    max_leaves=6,
)


def test_wild_json_breaks_no_source(tmp_path: Path) -> None:
    politeness = Politeness(rate=1000, tries=1, timeout=5)
    numbers = count()

    with serving([]) as server, opened(server, tmp_path, politeness) as (client, messages):

        @settings(max_examples=20)
        @given(WILD | JSON)
        def answered_with(answer: Any) -> None:
            server.wild, number = [answer], next(numbers)  # another number: another request
            for source in (
                OpenAlex(client, messages.append),
                SemanticScholar(client, messages.append),
            ):
                with suppress(CollectError):  # neither an object nor a list
                    works = request_everything(source, number)
                    assert all(w.paper.title and w.times_cited >= 0 for w in works.values())

        answered_with()


def request_everything(source: Source, number: int) -> Mapping[str, Work]:
    ids = list(source.find_ids([f"doi:10.5555/{number}", f"id:W{number}"]).values())
    source.find_title(f"Graph drawing {number}")
    source.search(f"graph {number}", 10)
    works = source.fetch([*ids, f"W{number}"])
    source.references(list(works))
    list(source.citing(list(works), 10))
    list(source.citing(list(works), 10, since="2026-01-01"))
    return works


@pytest.mark.parametrize("rate", [0, -1, 1e-300, float("nan"), float("inf"), 1e9])
def test_a_rate_must_be_a_rate(rate: float) -> None:
    with pytest.raises(ConfigError, match=r"--rate must be from 0\.001 to 1000"):
        Politeness(rate=rate)


@pytest.mark.parametrize("url", ["ftp://x", "api.openalex.org", "http://", "file:///etc/passwd"])
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(ConfigError, match="must begin with https://"):
        Service(title="OpenAlex", url=url, variable="KEY")


def test_the_estimate_of_a_search_counts_its_price() -> None:
    few = estimate((), 100, 10.0, is_openalex=True, search_seeds=100)
    s2 = estimate((), 100, semanticscholar.RATE, is_openalex=False, search_seeds=100)

    assert 0.001 < (few.dollars or 0) < 0.1
    assert s2.dollars is None
    assert s2.minutes >= s2.requests / 60
