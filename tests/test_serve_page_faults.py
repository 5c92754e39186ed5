"""The page with a slow reranker, bad files and a server that is restarted."""

import re
from collections.abc import Generator, Sequence
from threading import Event
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    DRAFT,
    SECONDS,
    TITLE,
    expect,
    find,
    free_port,
    ids,
    open_page,
)
from support.server import listening

from citerec.config import RecommendConfig
from citerec.folder import IndexFolder
from citerec.recommend import BatchRecommender
from citerec.serve.service import Service
from citerec.types import Paper, Query


class Reversed:
    """Prefers papers in the reverse order of their titles; waits until it is released."""

    name = "reversed"

    def __init__(self) -> None:
        self.released = Event()

    def score(self, query: Query, papers: Sequence[Paper]) -> list[float]:
        assert self.released.wait(SECONDS)
        order = sorted(paper.title for paper in papers)
        return [float(order.index(paper.title)) for paper in papers]


@pytest.fixture
def slow(sample_index: IndexFolder) -> Generator[tuple[str, Reversed]]:
    """A server whose reranker waits."""
    reranker = Reversed()
    with_reranker(service := Service({"sample": sample_index.path}), sample_index, reranker)
    with listening(service) as at:
        yield at, reranker
        reranker.released.set()
    service.close()


def with_reranker(service: Service, index: IndexFolder, reranker: Reversed) -> None:
    with service.indexes.use() as version:
        version.default = BatchRecommender(index, RecommendConfig(), reranker=reranker)


@pytest.mark.slow
def test_the_fused_list_is_there_before_a_slow_reranker_and_rows_stay_under_the_pointer(
    browser: Any, slow: tuple[str, Reversed]
) -> None:
    address, reranker = slow
    with open_page(browser, address) as page:
        for field, text in DRAFT.items():
            page.fill(field, text)
        page.click("#find")
        expect(page.locator("#status")).to_contain_text("on its way")
        fused = ids(page)

        page.hover(".row >> nth=2")
        reranker.released.set()
        expect(page.locator("#newer button")).to_be_visible()
        assert ids(page) == fused  # the pointer is on the list

        page.mouse.move(3, 3)
        expect(page.locator("#newer button")).to_be_hidden()
        assert ids(page) != fused
        assert page.locator(".moved").count() > 0


@pytest.mark.slow
def test_a_new_order_is_shown_on_request_by_key_and_the_focus_stays(
    browser: Any, slow: tuple[str, Reversed]
) -> None:
    address, reranker = slow
    with open_page(browser, address) as page:
        for field, text in DRAFT.items():
            page.fill(field, text)
        page.click("#find")
        expect(page.locator("#status")).to_contain_text("on its way")
        page.focus("#stages")
        page.keyboard.press("Escape")
        page.evaluate("() => document.activeElement.blur()")
        for _ in range(3):
            page.keyboard.press("j")
        focused = page.evaluate("() => document.activeElement.dataset.id")
        reranker.released.set()
        expect(page.locator("#newer button")).to_be_visible()

        page.keyboard.press("n")

        expect(page.locator("#newer button")).to_be_hidden()
        assert page.evaluate("() => document.activeElement.dataset.id") == focused


@pytest.mark.slow
def test_a_bad_file_gives_one_clear_message_and_loses_nothing(page: Any) -> None:
    page.fill("#title", TITLE)

    for name, data, message in [
        ("draft.pdf", b"%PDF-1.4 broken", "draft.pdf: this is a PDF"),
        ("draft.docx", b"PK\x03\x04 broken", "draft.docx"),
        ("draft.tex", b"\\documentclass{article}\xff\xfe\x00", "draft.tex"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00", "picture.png"),
        ("empty.bib", b"", "empty.bib"),
    ]:
        page.set_input_files("#file", files=[{"name": name, "mimeType": "", "buffer": data}])
        expect(page.locator("#read .fault")).to_contain_text(message)
        fault = page.inner_text("#read .fault")
        assert "--" not in fault
        assert "Traceback" not in fault

    page.set_input_files(
        "#file", files=[{"name": "big.pdf", "mimeType": "", "buffer": bytes(17 * 2**20)}]
    )
    expect(page.locator("#read .fault")).to_contain_text("too large")
    expect(page.locator("#title")).to_have_value(TITLE)


@pytest.mark.slow
def test_what_was_read_of_a_file_is_shown_and_can_be_corrected(
    page: Any, sample_index: IndexFolder
) -> None:
    paper = sample_index.papers[5]
    draft = f"---\ntitle: {TITLE}\nbibliography: refs.bib\n---\n\n# Abstract\n\n{ABSTRACT} [@one]\n"
    bib = f"@article{{one, title={{{paper.title}}}, year={paper.year}}}"
    files = [("draft.md", draft), ("refs.bib", bib)]

    page.set_input_files(
        "#file",
        files=[{"name": n, "mimeType": "", "buffer": text.encode()} for n, text in files],
    )

    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("#abstract")).to_have_value(re.compile("bi-encoder"))
    expect(page.locator("#known li")).to_have_count(1)
    page.click("#read >> text=Undo")
    expect(page.locator("#known li")).to_have_count(0)
    find(page, {"#title": "Sparse retrieval"})


@pytest.mark.slow
def test_the_year_of_a_file_does_not_stay_for_the_next_file(page: Any) -> None:
    def take(front: str) -> None:
        data = f"---\n{front}\n---\n\n# Abstract\n\n{ABSTRACT}\n".encode()
        page.set_input_files("#file", {"name": "a.md", "mimeType": "", "buffer": data})

    year = page.locator("#year")
    page.locator("details:has(#year) summary").click()
    take("title: A first draft\ndate: 2015")
    expect(year).to_have_value("2015")

    take("title: A second draft")
    expect(page.locator("#title")).to_have_value("A second draft")
    expect(year).to_have_value("")

    page.fill("#year", "2012")  # what the author states stays
    take("title: A third draft")
    expect(page.locator("#title")).to_have_value("A third draft")
    expect(year).to_have_value("2012")


@pytest.mark.slow
def test_a_search_survives_a_server_that_is_restarted(
    browser: Any, sample_index: IndexFolder
) -> None:
    port, service = free_port(), Service({"sample": sample_index.path})
    with listening(service, port) as address:
        session = open_page(browser, address)
        page = session.__enter__()
        find(page)
        page.click(".row .act.known >> nth=0", force=True)

    page.fill("#title", "Learned sparse retrieval")
    page.click("#find")
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    expect(page.locator("#trouble")).to_contain_text("kept")
    with listening(service, port):
        page.click("#trouble button")
        expect(page.locator("#status")).to_contain_text("after")

        expect(page.locator("#trouble")).to_be_hidden()
        expect(page.locator("#title")).to_have_value("Learned sparse retrieval")
        expect(page.locator("#known li")).to_have_count(1)
        session.__exit__(None, None, None)
    service.close()
