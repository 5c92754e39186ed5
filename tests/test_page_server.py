"""What the server does for the page, and what the page does without the server."""

import gzip
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    TAKE,
    TITLE,
    edit,
    expect,
    find,
    free_port,
    ids,
    open_page,
)
from support.server import listening

from citerec import serve
from citerec.index.folder import IndexFolder
from citerec.serve import ServeConfig
from citerec.serve.requests import for_clients
from citerec.serve.service import Service


def test_the_routes_of_the_page_answer_without_a_browser(address: str) -> None:
    body = {"title": TITLE, "abstract": ABSTRACT, "k": 5, "index": "again"}
    with httpx.Client(base_url=address, timeout=60) as client:
        page = client.get("/")
        script = client.get("/static/main.js")
        tag = {"If-None-Match": script.headers["etag"]}
        again = client.get("/static/main.js", headers=tag)
        [address] = re.findall(r'src="(static/[^/]+/main.js)"', page.text)
        kept = client.get(address)
        missing = client.get("/static/none.js")
        shown = client.post("/page/recommend", json=body).json()
        late, plain = (
            client.post(path, json=body | {"year_max": 1800}).json()
            for path in ("/page/recommend", "/v1/recommend")
        )
        expected = client.post(
            "/v1/recommend", json={"title": TITLE, "abstract": ABSTRACT, "k": 5}
        )
        [answer] = expected.json()["answers"]
        found = [one["id"] for one in answer["results"]]
        rows = client.get(
            "/page/papers", params={"ids": [found[1], "none", found[0]]}
        ).json()
        broken = client.post(
            "/page/draft", files={"files": ("draft.docx", b"PK\x03\x04")}
        )

    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=", page.text)
    assert script.headers["content-type"].startswith("text/javascript")
    assert kept.content == script.content
    assert "immutable" in kept.headers["cache-control"]
    assert script.headers["cache-control"] == "no-cache"
    assert f'modulepreload" href="{address}"' in page.text
    assert missing.status_code == 404
    assert (script.headers["content-encoding"], again.status_code) == ("gzip", 304)
    assert again.headers["content-security-policy"] == policy
    assert [row["id"] for row in shown["rows"]] == found
    assert "later than 1800" in late["empty_reason"]
    assert "choose other years" in plain["answers"][0]["empty_reason"]
    assert [row["id"] for row in rows["rows"]] == [found[1], found[0]]
    assert broken.status_code == 422
    assert "--" not in broken.json()["detail"]


def test_the_files_of_the_page_are_small() -> None:
    folder = Path(serve.__file__).parent / "page"

    files = [
        one
        for one in folder.rglob("*")
        if one.suffix in {".html", ".css", ".js", ".svg"}
    ]

    assert sum(len(gzip.compress(one.read_bytes())) for one in files) < 140_000


def test_messages_name_keys_in_place_of_options() -> None:
    late = "all papers are later; give --year-max 1990 or a later year, or correct the draft's year"
    damaged = "it is damaged; pass its text: pdftotext paper.pdf - | citerec recommend --query -"

    assert for_clients(late) == late.replace("--year-max", "year_max")
    assert for_clients(damaged, "; paste its text") == "it is damaged; paste its text"


@pytest.mark.slow
def test_a_search_survives_a_server_that_is_restarted(
    browser: Any, sample_index: IndexFolder
) -> None:
    port, service = free_port(), Service({"sample": sample_index.path})
    with listening(service, port) as address:
        session = open_page(browser, address)
        page = session.__enter__()
        find(page)
        page.click(TAKE)

    edit(page)
    page.fill("#title", "Dense and sparse retrieval of passages")
    page.click("#find")
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    expect(page.locator("#trouble")).to_contain_text("kept")
    assert len(ids(page)) == 19  # the list stays, of which one paper was taken
    with listening(service, port):
        page.click("#trouble button")
        expect(page.locator("#status")).to_contain_text("papers")

        expect(page.locator("#trouble")).to_be_hidden()
        expect(page.locator("#title")).to_have_value(
            "Dense and sparse retrieval of passages"
        )
        expect(page.locator("#shelf li")).to_have_count(1)
        session.__exit__(None, None, None)
    service.close()


@pytest.mark.slow
@pytest.mark.parametrize(("status", "shown"), [(429, "after"), (504, "took too long")])
def test_a_busy_server_is_waited_for_and_a_late_answer_is_not(
    page: Any, status: int, shown: str
) -> None:
    requests: list[str] = []

    def refuse_the_first(route: Any) -> None:
        requests.append(route.request.url)
        if len(requests) == 1:
            headers = {"Retry-After": "1", "Content-Type": "application/problem+json"}
            route.fulfill(
                status=status, headers=headers, body='{"detail": "it took too long"}'
            )
        else:
            route.continue_()

    page.route("**/page/recommend", refuse_the_first)
    page.fill("#title", TITLE)
    page.click("#find")

    expect(page.locator("body")).to_contain_text(shown)
    expect(page.locator("#trouble")).to_be_hidden()
    assert len(requests) == (2 if status == 429 else 1)


@pytest.mark.slow
def test_a_server_with_tokens_names_its_indexes_only_to_those_who_have_one(
    browser: Any, sample_index: IndexFolder
) -> None:
    token = "a-token-of-24-characters"
    service = Service(
        {"secret": sample_index.path}, settings=ServeConfig(tokens=(token,))
    )
    with listening(service) as address:
        page = browser.new_context().new_page()
        page.goto(address)
        expect(page.locator("#trouble")).to_contain_text("needs a token")
        assert "secret" not in page.content()

        page.fill("#token", "another token of the web")
        page.click("#trouble button")
        expect(page.locator("#trouble")).to_contain_text("does not know this token")
        page.fill("#token", token)
        page.click("#trouble button")

        expect(page.locator("#corpus-facts")).to_contain_text("300 papers")
        find(page)
        assert ids(page)
        page.context.close()
    service.close()
