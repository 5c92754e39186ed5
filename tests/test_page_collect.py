"""Collecting a corpus on the page, in a browser."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import DRAFT, axe_script, edit, expect, find, open_page
from support.scholar_server import ScholarServer
from support.server import listening

from citerec.index.folder import IndexFolder
from citerec.serve.service import Service

COLBERT = b"@misc{a, doi = {10.5555/khattab2020colbert}}\n"
COWS = {"#title": "Grazing and the milk yield of dairy cows"}
CLAIM = "Cows on pasture give less milk than cows that are fed in a barn."
SMALL = {"width": 320, "height": 640}


@pytest.fixture
def collecting(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    browser: Any,
    openalex: ScholarServer,
    sample_index: IndexFolder,
) -> Generator[Any]:
    """The page of a server that collects, and has one corpus or none yet, in a small window."""
    service = Service({request.param: sample_index.path} if request.param else {})
    with (
        listening(service, collections=tmp_path) as address,
        open_page(browser, address, viewport=SMALL) as page,
    ):
        yield page
    service.close()


def choose(page: Any, content: bytes, name: str = "refs.bib") -> None:
    file = {"name": name, "mimeType": "text/plain", "buffer": content}
    page.set_input_files("#collect-files", [file])


@pytest.mark.slow
@pytest.mark.parametrize("collecting", [""], indirect=True)
def test_a_list_becomes_a_corpus_by_the_keyboard(collecting: Any) -> None:
    page = collecting
    page.focus("text=Collect a corpus first…")
    page.keyboard.press("Enter")
    choose(page, COLBERT)
    dialog = page.locator("#collect")
    expect(dialog).to_contain_text("1 reference. OpenAlex: about ")
    expect(dialog).to_contain_text(
        "Only ids and titles of the references are sent to OpenAlex"
    )
    page.evaluate(axe_script())
    faults = page.evaluate("async () => (await axe.run(document)).violations")
    assert [fault["id"] for fault in faults] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]
    page.fill("#collect-name", "Late interaction")

    page.focus("#collect-start")
    page.keyboard.press("Enter")
    expect(page.locator("#collect-status")).to_contain_text("late-interaction")
    expect(page.locator("#collect-use")).to_be_visible(timeout=300_000)
    page.focus("#collect-use")
    page.keyboard.press("Enter")

    expect(dialog).to_be_hidden()
    expect(page.locator(".corpus")).to_contain_text("late-interaction")
    # the list is read once more: nobody chooses it again
    expect(page.locator("#known li")).to_have_count(1)
    expect(page.locator("#status")).to_contain_text("papers")
    edit(page)
    expect(page.locator("#read")).to_contain_text("1 of them in this corpus")
    expect(page.locator("#read")).not_to_contain_text("Choose it again")
    find(page, DRAFT)
    assert page.locator(".row").count() > 0


@pytest.mark.parametrize("collecting", ["sample"], indirect=True)
def test_what_cannot_be_read_is_told_and_work_is_cancelled(
    collecting: Any, openalex: ScholarServer
) -> None:
    page = collecting
    page.click("#open-collect")

    choose(page, b"# A draft\n\nIt cites nothing.\n", "draft.md")
    expect(page.locator("#collect")).to_contain_text("no reference was found")
    choose(page, b"%PDF-1.4 broken", "draft.pdf")
    expect(page.locator("#collect .fault").first).to_have_text(
        re.compile("^draft.pdf: this is a PDF")
    )
    choose(page, b"# A draft\n\nIt cites nothing.\n", "draft.md")
    page.check("#collect-semantic")
    expect(page.locator("#collect")).to_contain_text("are sent to OpenAlex: no other")
    page.uncheck("#collect-semantic")
    choose(page, COLBERT)
    page.click("#collect-start")
    page.click("#collect-cancel")

    expect(page.locator("#collect-status")).to_contain_text("cancelled")
    expect(page.locator("#collect-start")).to_be_visible()


@pytest.mark.parametrize("collecting", ["sample"], indirect=True)
def test_a_draft_of_another_field_leads_to_a_corpus_for_it(collecting: Any) -> None:
    page = collecting
    told = page.locator("#notices >> text=The corpus does not cover this draft")
    find(page, COWS)
    expect(told).to_be_visible()
    text = f"# {COWS['#title']}\n\n## Methods\n\n{CLAIM}\n"
    file = {"name": "cows.md", "mimeType": "", "buffer": text.encode()}
    page.set_input_files("#file", [file])

    page.click("#each")

    expect(page.locator(".claim").first).to_be_visible()
    expect(told).to_be_visible()
    page.click("text=Collect a corpus for this draft…")
    expect(page.locator("#collect")).to_be_visible()


@pytest.mark.parametrize("collecting", ["sample"], indirect=True)
def test_other_words_of_a_notice_lead_to_a_corpus_too(collecting: Any) -> None:
    page = collecting
    link = page.locator("#notices >> text=Collect a corpus for this draft…")

    def reword(route: Any) -> None:
        answer = route.fetch().json()
        words = ["Its field is another one"] if answer["notices"] else ["It is here"]
        route.fulfill(json={**answer, "notices": words})

    page.route("**/page/recommend", reword)
    find(page, COWS)
    expect(page.locator("#notices")).to_contain_text("Its field is another one.")
    expect(link).to_be_visible()
    find(page, DRAFT)
    expect(page.locator("#notices")).to_contain_text("It is here.")
    expect(link).to_be_hidden()


def test_a_page_without_the_option_has_no_button(page: Any) -> None:
    assert page.locator("#open-collect").count() == 0
    find(page, COWS)
    expect(page.locator("#notices")).to_contain_text("does not cover this draft")
    assert page.locator("#notices button").count() == 0
