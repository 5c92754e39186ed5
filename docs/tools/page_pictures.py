"""Takes the pictures of the server's page: `python docs/tools/page_pictures.py [FOLDER]`.

With a folder it takes ten pictures there, from the empty page to formatted references, in place of those of the
documentation.

It needs `indexes/sample` (made by `make demo`), the extra `serve`, playwright and Debian's `chromium`. The page shows a
draft of the bundled sample, once in light and once in dark colours.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Page, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
INDEX, FOLDER = ROOT / "indexes" / "sample", ROOT / "docs" / "pictures"
PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}/"
TITLE = "Efficient passage retrieval with late interaction"
ABSTRACT = (
    "We index contextual token embeddings and compress them with product quantization."
)
SIZE: ViewportSize = {"width": 1440, "height": 900}
PATIENCE = 60  # seconds until the server is ready


def main() -> None:
    """Start a server, and take both pictures, or the ten of a folder."""
    strip = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    program = shutil.which("chromium")
    if program is None or not INDEX.is_dir():
        sys.exit("page_pictures: needs chromium, and indexes/sample of `make demo`")
    command = [
        str(Path(sys.executable).with_name("citerec")),
        "serve",
        "--index",
        str(INDEX),
        "--port",
        str(PORT),
    ]
    with subprocess.Popen(command) as server, sync_playwright() as playwright:
        try:
            _wait_until_ready()
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox"]
            )
            if strip:
                take_strip(browser.new_page(viewport=SIZE), strip)
            for colours in () if strip else ("light", "dark"):
                page = browser.new_page(viewport=SIZE, color_scheme=colours)
                _recommend(page)
                page.screenshot(path=FOLDER / f"page-{colours}.png")
            browser.close()
        finally:
            server.terminate()


def _wait_until_ready() -> None:
    for _ in range(PATIENCE * 4):
        try:
            with urlopen(f"{ADDRESS}readyz"):
                return
        except (URLError, ConnectionError):
            time.sleep(0.25)
    sys.exit("page_pictures: the server did not become ready")


def take_strip(page: Page, folder: Path) -> None:
    """Take ten pictures of an author's way, numbered in its order."""
    steps = "empty draft list paper taken hidden shelf review again references".split()
    numbered = enumerate(steps, start=1)

    def take() -> None:
        number, step = next(numbered)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{number:02}-{step}.png")

    folder.mkdir(parents=True, exist_ok=True)
    _fill(page, take)
    take()
    _search(page)
    take()
    page.click(".row .title >> nth=0")
    take()
    page.keyboard.press("Escape")
    page.click(".row:not(.done) .act.take >> nth=0")
    take()
    page.click(".row:not(.done) .act.hide >> nth=0")
    page.fill(".row .reason", "Another field of study")
    take()
    page.fill("#shelf textarea >> nth=0", "For section 2")
    take()
    page.click("#open-review")
    take()
    page.keyboard.press("Escape")
    page.click("#again button")
    page.wait_for_selector("#list[aria-busy=false]")
    page.click(".row:not(.done) .act.take >> nth=0")
    take()
    with page.expect_download() as download:
        page.click("[data-shelf=html]")
    page.goto("about:blank")
    page.set_content(download.value.path().read_text(encoding="utf-8"))
    take()


def _fill(page: Page, opened: Callable[[], None] = lambda: None) -> None:
    page.goto(ADDRESS)
    page.wait_for_selector("html[data-ready]")
    opened()
    page.fill("#title", TITLE)
    page.fill("#abstract", ABSTRACT)


def _recommend(page: Page) -> None:
    _fill(page)
    _search(page)


def _search(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#list > li")
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur(); window.scrollTo(0, 0)")


if __name__ == "__main__":
    main()
