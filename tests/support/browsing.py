"""A browser, for tests of the page."""

import shutil
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "google-chrome")
TITLE = "Dense retrieval of passages"
ABSTRACT = "We train a bi-encoder for open-domain question answering with hard negatives from BM25."
DRAFT = {"#title": TITLE, "#abstract": ABSTRACT}
SECONDS = 30  # how long a test waits for the page; the machine may be busy


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


@contextmanager
def open_browser() -> Generator[Any]:
    """A headless browser; the test is skipped where there is none that works."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no chromium is installed")
    with playwright.sync_playwright() as started:
        try:
            browser = started.chromium.launch(
                executable_path=program, args=["--no-sandbox"]
            )
        except playwright.Error as error:
            pytest.skip(f"chromium does not work: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Any, address: str, **options: Any) -> Generator[Any]:
    """The page in a browser profile of its own; an error of its scripts fails the test."""
    faults: list[str] = []
    context = browser.new_context(reduced_motion="reduce", **options)
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    yield page
    context.close()
    assert not faults


def axe_script() -> str:
    """The script of axe-core, from the package axe-playwright-python; the test is skipped without it."""
    package = pytest.importorskip(
        "axe_playwright_python", reason="axe-core is not installed"
    )
    return Path(package.__file__).with_name("axe.min.js").read_text(encoding="utf-8")


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as of

    of.set_options(timeout=SECONDS * 1000)
    return of(locator)


RECORDS = """() => Object.entries(localStorage).filter(([key]) => key.startsWith("citerec:draft:"))
  .map(([, text]) => JSON.parse(text))"""
TAKE = ".row:not(.done) .act.take >> nth=0"  # of the best paper without a mark
HIDE = ".row:not(.done) .act.hide >> nth=0"


def edit(page: Any) -> None:
    """Open the form, which a search folds."""
    if page.locator("#edit").is_visible():
        page.click("#edit")


def find(page: Any, draft: dict[str, str] = DRAFT) -> None:
    """Fill the form, search, and wait for the last order."""
    edit(page)
    for field, text in draft.items():
        page.fill(field, text)
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("papers")


# copies of the draft that is stored, the oldest first; `isBare`: without its marks
COPY = """([n, name, isBare]) => {
  const [draft] = (RECORDS)().sort((a, b) => b.changed - a.changed);
  for (let i = 0; i < n; i++) {
    const id = `${name}${i}`, marks = isBare ? {} : draft.marks;
    const copy = { ...draft, id, title: `${name} ${i}`, changed: 1000 + i, marks };
    localStorage.setItem(`citerec:draft:${id}`, JSON.stringify(copy));
  }
}""".replace("RECORDS", RECORDS)
FILL = """() => {
  let text = localStorage.getItem("filler") ?? "";
  for (let n = 2 ** 22; n >= 1; n /= 2)
    try {
      while (true) { localStorage.setItem("filler", text + "x".repeat(n)); text += "x".repeat(n); }
    } catch {}
}"""


def ids(page: Any) -> list[str]:
    """The papers of the list without a mark."""
    return page.eval_on_selector_all(
        ".row:not([hidden], .done)", "rows => rows.map(row => row.dataset.id)"
    )
