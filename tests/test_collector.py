"""A corpus that is collected from the page: `citerec serve --collect FOLDER`."""

import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.scholar_server import Fault, ScholarServer, papers_around
from support.server import listening
from support.types import Invoke

from citerec.index.folder import IndexFolder
from citerec.serve.service import Service

COLBERT = "@misc{a, doi = {10.5555/khattab2020colbert}}\n"


class Client:
    """A client of a server that collects into a folder."""

    def __init__(self, http: httpx.Client, folder: Path) -> None:
        self.http, self.folder = http, folder

    def make(self, text: str, file: str = "refs.bib", **more: Any) -> Any:
        files = {"files": (file, text.encode())}
        answer = self.http.post("page/collect", params=more, files=files)
        return answer.json() | {"status": answer.status_code}

    def ended(self) -> Mapping[str, Any]:
        """What is known of the collection when its process has ended."""
        while True:
            found = self.http.get("page/collect").json()
            if found["code"] is not None:
                return found
            time.sleep(0.05)


@pytest.fixture
def client(
    tmp_path: Path, openalex: ScholarServer, sample_index: IndexFolder
) -> Generator[Client]:
    service = Service({"sample": sample_index.path})
    with (
        listening(service, collections=tmp_path) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        yield Client(http, tmp_path)
        http.delete("page/collect")
    service.close()


def names(client: Client) -> list[str]:
    return [index["name"] for index in client.http.get("v1/index").json()["indexes"]]


def test_references_become_a_corpus_that_is_searched_and_updated(
    client: Client, openalex: ScholarServer
) -> None:
    openalex.faults = [None, Fault(wait=60)]

    plan = client.make(COLBERT, name="My refs!")
    assert (plan["name"], plan["references"]) == ("my-refs", "1 reference")
    assert plan["service"] == "OpenAlex"
    assert plan["estimate"].startswith("about ")
    assert openalex.requests == []  # an estimate sends nothing

    started = client.make(COLBERT, name="My refs!", start=True)
    second = client.make(COLBERT, name="others", start=True)
    assert (started["status"], second["status"]) == (200, 409)
    while len(openalex.requests) < 2:
        time.sleep(0.05)
    cancelled = client.http.delete("page/collect").json()
    assert cancelled["code"] not in (None, 0)
    assert cancelled["text"].startswith("cancelled")

    client.make(COLBERT, name="My refs!", start=True)
    assert client.ended() == {"name": "my-refs", "code": 0, "text": ""}
    first, *others = [sent.url for sent in openalex.requests]
    assert first not in others  # its answer was kept
    assert names(client) == ["sample", "my-refs"]
    body = {"title": "Late interaction over vectors", "index": "my-refs"}
    [answer] = client.http.post("v1/recommend", json=body).json()["answers"]
    assert answer["results"]

    papers = papers_around("khattab2020colbert")
    late = {"id": "late", "doi": "10.5555/late", "year": 2026}
    late |= {"title": "Later interaction", "citations": ["khattab2020colbert"]}
    openalex.fill([*papers, late])
    assert client.make(COLBERT, name="My refs!")["is_update"]
    client.make(COLBERT, name="My refs!", start=True)
    assert client.ended()["code"] == 0
    updated = client.http.get("v1/index").json()["indexes"][1]
    assert updated["papers"] == len(papers) + 1


def test_a_draft_that_cites_nothing_is_searched_by_its_text(
    client: Client, openalex: ScholarServer
) -> None:
    draft = "# Late interaction\n\nPassages are found by their token vectors.\n"

    plan = client.make(draft, "draft.md", semantic=True)
    client.make(draft, "draft.md", semantic=True, start=True)
    while not openalex.requests:
        time.sleep(0.05)
    client.http.delete("page/collect")

    assert plan["semantic"]
    text = openalex.requests[0].params["search.semantic"]
    assert text == "Late interaction. Passages are found by their token vectors."


def test_a_fault_of_the_service_is_one_line_without_paths(
    client: Client, openalex: ScholarServer
) -> None:
    openalex.keys = {"another"}

    client.make(COLBERT, start=True)
    ended = client.ended()

    assert ended["code"] == 2
    assert "OpenAlex refused the request" in ended["text"]
    assert str(client.folder) not in ended["text"]
    assert names(client) == ["sample"]


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("# A draft\n\nIt cites nothing.\n", "", "no reference was found"),
        ("@misc{", "", "refs.bib: "),
        (COLBERT, "taken", "there is another corpus taken"),
    ],
)
def test_what_cannot_be_collected_is_refused(
    text: str, name: str, words: str, client: Client
) -> None:
    (client.folder / "indexes" / "taken").mkdir(parents=True)

    refused = client.make(text, name=name)

    assert refused["status"] == 422
    assert words in refused["detail"]


def test_a_name_stays_in_the_folder(client: Client) -> None:
    plan = client.make(COLBERT, name="../../etc/passwd")

    assert plan["name"] == "etc-passwd"


def test_a_server_collects_only_if_it_was_told_to(address: str) -> None:
    assert httpx.get(f"{address}page/collect").status_code == 404
    page = httpx.get(address).text
    assert "data-collect" not in page


def test_other_machines_need_a_token_to_collect(invoke: Invoke) -> None:
    options = ("--host", "0.0.0.0", "--no-token", "--collect", "mine")

    code, _, err = invoke("serve", *options)

    assert code == 2
    assert "--collect needs tokens" in err
