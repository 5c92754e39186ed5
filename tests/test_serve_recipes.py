"""The recipes of docs/recipes, which editors use."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("fastapi")

from support.browsing import axe_script, expect

from citerec import Recommender
from citerec.index.folder import IndexFolder

ROOT = Path(__file__).parent.parent
RECIPES = ROOT / "docs" / "recipes"
GUIDE = ROOT / "docs" / "guides" / "editors.md"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="Node.js is not installed")


@pytest.fixture
def server(address: str) -> str:
    """The URL of the server that all tests share."""
    return address.removesuffix("/")


@needs_node
def test_the_script_of_the_editor_prints_papers_and_entries(
    server: str, sample_index: IndexFolder
) -> None:
    text = "Late interaction keeps token vectors [CITE]."

    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs"],
        env={"CITEREC_SERVER": server, "CITEREC_TEXT": text, "CITEREC_K": "2"},
        capture_output=True,
        text=True,
        check=False,
    )

    with Recommender(sample_index) as recommender:
        papers = recommender.recommend(context=text, k=2)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"1. {papers[0].paper.title}\n   {papers[0].paper.authors[0]}"
    )
    assert done.stdout.endswith(f"\n{papers.export('bibtex')}\n")


@needs_node
def test_the_script_shows_the_error_of_the_server(server: str) -> None:
    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs", "[CITE]"],
        env={"CITEREC_SERVER": server},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "the context has no words besides citation markers" in done.stderr


def test_the_guide_shows_the_bookmarklet_on_one_line() -> None:
    one_line = " ".join((RECIPES / "bookmarklet.js").read_text().split())

    assert one_line in GUIDE.read_text().splitlines()


# --- Word

WORD = RECIPES / "word"
# of https://learn.microsoft.com/office/dev/add-ins/develop/manifest-element-ordering
ORDER = (
    "Id AlternateId Version ProviderName DefaultLocale DisplayName Description IconUrl HighResolutionIconUrl "
    "SupportUrl AppDomains Hosts Requirements DefaultSettings Permissions Dictionary VersionOverrides"
).split()
OFFICE_JS = "https://appsforoffice.microsoft.com/lib/1/hosted/office.js"
# What the pane uses of Office.js, as its documentation states it: properties are there after `load` and `sync`, what is
# inserted is there after `sync`, and each method takes its own places.
FAKE = """
(() => {
  let queue = [];
  const later = run => { queue.push(run); };
  const inserting = (places, write) => (content, place) => {
    if (!places.includes(place)) throw new Error(`InvalidArgument: ${place}`);
    later(() => write(content));
  };
  const range = text => {
    let loaded = null;
    return {
      load: name => later(() => { loaded = name === "text" ? text : null; }),
      get text() {
        if (loaded === null) throw new Error("PropertyNotLoaded");
        return loaded;
      },
      insertText: inserting(["Replace", "Start", "End", "Before", "After"], content => written.push(content)),
    };
  };
  window.written = [];
  window.selected = "";
  window.Office = { onReady: run => Promise.resolve({ host: "Word" }).then(run) };
  window.Word = {
    run: async batch => {
      const document = {
        getSelection: () =>
          Object.assign(range(window.selected), {
            paragraphs: { getFirst: () => range("Late interaction keeps token vectors.") },
          }),
        body: {
          insertParagraph: (text, place) => {
            if (!["Start", "End"].includes(place)) throw new Error(`InvalidArgument: ${place}`);
            return { insertHtml: inserting(["Replace", "Start", "End"], content => written.push(content)) };
          },
        },
      };
      return batch({ document, sync: async () => { for (const run of queue.splice(0)) run(); } });
    },
  };
})();
"""


def test_the_manifest_of_word_has_what_its_schema_asks_for_in_its_order() -> None:
    root = ElementTree.parse(WORD / "manifest.xml").getroot()
    namespace = "{http://schemas.microsoft.com/office/appforoffice/1.1}"
    names = [one.tag.removeprefix(namespace) for one in root]
    values = dict(zip(names, root, strict=True))
    source = values["DefaultSettings"][0].get("DefaultValue", "")

    assert root.get("{http://www.w3.org/2001/XMLSchema-instance}type") == "TaskPaneApp"
    assert names == [name for name in ORDER if name in names]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", values["Id"].text)
    assert re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,5}){0,3}", values["Version"].text)
    assert len(values["Description"].get("DefaultValue", "")) <= 250
    site, pane = source.rsplit("/word/", 1)
    assert site in (WORD / "Caddyfile").read_text()
    assert (WORD / pane).is_file()


def test_the_pane_of_word_cites_what_fits_the_selection_or_the_paragraph(
    browser: Any, address: str
) -> None:
    page = browser.new_page(viewport={"width": 320, "height": 700})
    others: list[str] = []

    def answer(route: Any) -> None:
        url = route.request.url
        if url == OFFICE_JS:
            route.fulfill(body=FAKE, content_type="text/javascript")
        elif "/word/" in url:
            route.fulfill(path=WORD / url.rsplit("/", 1)[1])
        else:
            if not url.startswith(address):
                others.append(url)
            route.continue_()

    page.route("**/*", answer)
    page.goto(f"{address}word/pane.html")
    title = page.locator("#list h2").first

    page.click("#find")  # nothing is selected
    expect(title).to_be_visible()
    page.evaluate("() => { selected = 'Dense retrieval with negatives from BM25.'; }")
    with page.expect_request("**/v1/recommend") as sent:
        page.press("#find", "Enter")
    assert sent.value.post_data_json["context"].startswith("Dense retrieval")
    expect(page.locator("#status")).to_have_text("8 papers")
    page.click("#list button >> nth=0")
    expect(page.locator("#status")).to_contain_text("citation is in the text")
    page.click("#list button >> nth=1")
    expect(page.locator("#status")).to_contain_text("end of the document")

    by = page.locator("#list p").first.inner_text()
    citation, reference = page.evaluate("() => written")
    assert citation == f" ({by})"
    assert by.split(" ")[0] in reference
    assert title.inner_text().split(":")[0].lower() in reference.lower()
    assert "Z3988" not in reference
    page.evaluate(axe_script())
    found = page.evaluate("async () => (await axe.run(document)).violations")
    assert [one["id"] for one in found] == []
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 320
    assert others == []
    page.close()
