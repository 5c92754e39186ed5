"""Takes the pictures of the server's page: `python docs/tools/page_pictures.py`.

It needs `indexes/sample` (made by `make demo`), the extra `serve`, playwright and Debian's `chromium`. The page shows a
draft of the bundled sample, once in light and once in dark colours.
"""

import shutil
import subprocess
import sys
import time
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
    """Start a server, and take both pictures."""
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
            for colours in ("light", "dark"):
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


def _recommend(page: Page) -> None:
    page.goto(ADDRESS)
    page.wait_for_selector("html[data-ready]")
    page.fill("#title", TITLE)
    page.fill("#abstract", ABSTRACT)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#list > li")
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur(); window.scrollTo(0, 0)")


if __name__ == "__main__":
    main()
