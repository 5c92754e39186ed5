"""`citerec serve --desk`: the drafts of the page as files; none is lost, and what is not there yet is told."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

import httpx
from support.browsing import COPY, FILL, TAKE, TITLE, expect, find, free_port, open_page
from support.server import listening

from citerec.errors import ConfigError
from citerec.index.folder import IndexFolder
from citerec.serve.desk import Desk
from citerec.serve.service import Service

TAKEN = "#shelf ol li"


def on_desk(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in folder.glob("*-*.json")]


def test_a_draft_is_a_file_of_its_user_and_an_older_state_does_not_replace_it(
    tmp_path: Path, sample_index: IndexFolder
) -> None:
    folder = tmp_path / "desk"
    desk = Desk(folder)
    draft = {"id": "m3k", "title": "Late: interaction/../x", "marks": {}}
    service = Service({"sample": sample_index.path})
    with (
        listening(service, desk=desk) as address,
        httpx.Client(base_url=address) as client,
    ):
        assert client.get("desk").status_code == 403
        client.headers["Citerec-Desk"] = desk.key
        tag = client.put("desk/m3k", json={"draft": draft}).json()["tag"]
        [path] = folder.glob("*-*.json")
        older = client.put("desk/m3k", json={"draft": draft, "tag": "another"})
        draft["title"] = "深层检索"
        newer = client.put("desk/m3k", json={"draft": draft, "tag": tag})
        outside = client.put("desk/..%2fx", json={"draft": draft})
        listed = client.get("desk").json()
        read = client.get("desk/m3k").json()
        client.delete("desk/m3k")
        gone = client.get("desk/m3k")
    service.close()

    assert path.name == "late-interaction-x-m3k.json"
    assert (folder.stat().st_mode & 0o777, older.status_code) == (0o700, 409)
    assert (outside.status_code, gone.status_code) == (404, 404)
    assert listed == {"folder": str(folder), "tags": {"m3k": newer.json()["tag"]}}
    assert read["draft"] == draft
    assert not on_desk(folder)
    [removed] = folder.glob("removed/*")
    assert json.loads(removed.read_bytes()) == draft
    assert removed.stat().st_mode & 0o777 == 0o600
    assert Desk(folder).key == desk.key


@pytest.mark.slow
def test_a_desk_takes_no_folder_of_something_else(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("Read this first.")

    for folder, fault in (
        (sample_index.path, "has other files and no desk"),
        (tmp_path, "has other files and no desk"),
        (tmp_path / "notes.txt", "is a file; --desk needs a folder"),
    ):
        with pytest.raises(ConfigError, match=fault):
            Desk(folder)

    assert Desk(tmp_path / "new").key == Desk(tmp_path / "new").key


def test_two_browsers_a_cleared_store_and_a_killed_server_lose_nothing(
    browser: Any, sample_index: IndexFolder, tmp_path: Path
) -> None:
    desk = Desk(tmp_path / "desk")
    port, service = free_port(), Service({"sample": sample_index.path})
    with (
        listening(service, port, desk) as address,
        open_page(browser, f"{address}#desk={desk.key}") as page,
    ):
        find(page)
        page.click(TAKE)
        page.locator("#shelf textarea").fill("For section 2")
        page.click("#open-drafts")
        expect(page.locator("#drafts .hint").last).to_contain_text(str(desk.folder))
        page.keyboard.press("Escape")
        page.wait_for_timeout(1500)
        assert page.evaluate("() => location.hash") == ""
        [draft] = on_desk(desk.folder)
        assert draft["marks"]["sample"]["taken"][0]["note"] == "For section 2"

        with open_page(browser, f"{address}#desk={desk.key}") as other:
            expect(other.locator("#title")).to_have_value(TITLE)
            expect(other.locator("#shelf textarea")).to_have_value("For section 2")
            expect(other.locator("#status")).to_contain_text("papers")
            page.click(TAKE)  # at the same time
            other.click(TAKE.replace("nth=0", "nth=3"))
            for tab in (page, other, page):
                tab.wait_for_timeout(1500)
                tab.evaluate("() => dispatchEvent(new Event('focus'))")
            for tab in (page, other):
                expect(tab.locator(TAKEN)).to_have_count(3)
            other.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            other.goto(address)
            expect(other.locator("#kept")).to_contain_text(
                "kept in this browser alone. To keep drafts as files of the server, too"
            )
            other.goto(f"{address}?again#desk={desk.key}")
            expect(other.locator(TAKEN)).to_have_count(3)

    page_of = browser.new_context(reduced_motion="reduce")
    page = page_of.new_page()
    with listening(service, port, desk):
        page.goto(f"{address}#desk={desk.key}")
        expect(page.locator("#status")).to_contain_text("papers")
    page.click(TAKE)
    told = page.locator("#unkept")
    expect(told).to_contain_text(
        "Not in the folder of the desk yet, but in this browser"
    )
    page.click("#again button")
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    expect(told).to_be_hidden()  # one bar says so
    page.click("#find")  # Stop
    expect(told).to_be_visible()
    [draft] = on_desk(desk.folder)
    assert len(draft["marks"]["sample"]["taken"]) == 3
    with listening(service, port, desk):
        page.evaluate("() => dispatchEvent(new Event('focus'))")
        expect(told).to_be_hidden()
        [draft] = on_desk(desk.folder)
        assert len(draft["marks"]["sample"]["taken"]) == 4
    page_of.close()
    service.close()


@pytest.mark.slow
def test_two_hundred_drafts_and_a_full_store_are_on_the_desk(
    browser: Any, sample_index: IndexFolder, tmp_path: Path
) -> None:
    desk = Desk(tmp_path / "desk")
    service = Service({"sample": sample_index.path})
    with (
        listening(service, desk=desk) as address,
        open_page(browser, f"{address}#desk={desk.key}") as page,
    ):
        find(page)
        page.click(TAKE)
        page.evaluate(COPY, [200, "marked", False])
        page.evaluate("() => dispatchEvent(new Event('focus'))")
        for _ in range(60):
            page.wait_for_timeout(1000)
            if len(on_desk(desk.folder)) == 201:
                break
        page.evaluate(FILL)
        page.click(TAKE)

        page.wait_for_timeout(3000)
        drafts = on_desk(desk.folder)
        assert len(drafts) == 201
        counts = sorted(len(one["marks"]["sample"]["taken"]) for one in drafts)
        assert counts == [1] * 200 + [2]
        expect(page.locator("#unkept")).to_be_hidden()
        with open_page(browser, f"{address}#desk={desk.key}") as other:
            expect(other.locator(TAKEN)).to_have_count(2)
            other.click("#open-drafts")
            expect(other.locator("#drafts li")).to_have_count(201)
    service.close()
