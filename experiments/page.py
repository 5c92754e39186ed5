"""Do the tasks of an author on the page in Chromium, at five widths, light and dark; write a JSON file and a page.

    citerec serve --index indexes/vis --index indexes/mapping &
    python experiments/page.py http://127.0.0.1:8000 --title ... --abstract ...

Each task is done by keyboard alone: every control takes the focus and its key. Its outcome is checked.
Times are those of a task from its first key to what it shows. axe-core looks at the page after each; every finding
counts. Pictures go to `--pictures`.
"""

import argparse
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import axe_playwright_python
import orjson
from playwright.sync_api import expect, sync_playwright

from citerec.encode.machine import provenance

HERE = Path(__file__).resolve().parent
RESULT, PAGE = HERE / "results" / "page.json", HERE / "PAGE.md"
WIDTHS, SCHEMES = (320, 390, 768, 1280, 1920), ("light", "dark")
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
FINDINGS = "async () => (await axe.run(document)).violations.map(one => one.id)"
Task = Callable[[Any], None]
LISTED = re.compile(r"^\d+ papers\.")  # status of a list
SENTENCES = "It keeps a vector for each token [@a]. Vectors of passages answer open-domain questions well.\n"


def use(page: Any, selector: str, key: str = "Enter") -> None:
    """Use a control by its key; it must take the focus."""
    page.focus(selector)
    page.keyboard.press(key)


def edit(page: Any) -> None:
    """Open the form, which a search folds."""
    if page.locator("#edit").is_visible():
        use(page, "#edit")


def search(page: Any) -> None:
    """Find papers for a draft; the first one is in view."""
    use(page, "#find")
    expect(page.locator("#status")).to_contain_text(LISTED)
    expect(page.locator(".row").first).to_be_in_viewport()
    assert (
        page.locator("#list mark").count()
        == page.locator("#list .snippet mark").count()
    )
    assert not page.locator("[data-save]").count()


def undo(page: Any) -> None:
    """Take a paper by its button; it stays in its place, and its button takes that back."""
    row, count = page.locator(".row").nth(1), page.locator("#to-shelf .count")
    page.focus(".row >> nth=1")
    use(page, ".row >> nth=1 >> .act.take")
    expect(row).to_contain_text("On the shelf")
    expect(count).to_have_text("1")
    page.keyboard.press("Enter")
    expect(count).to_have_text("0")
    expect(row.locator(".act.hide")).to_be_visible()


def take(page: Any) -> None:
    """Put the first paper on the shelf with a note, and save the shelf as BibTeX."""
    page.focus(".row >> nth=0")
    page.keyboard.press("t")
    if page.get_attribute("#shelf-toggle", "aria-expanded") == "false":  # on a phone
        use(page, "#shelf-toggle")
    page.fill("#shelf textarea >> nth=0", "for the introduction")
    with page.expect_download() as saved:
        use(page, "[data-shelf=bibtex]")
    assert "for the introduction" in Path(saved.value.path()).read_text(
        encoding="utf-8"
    )


def learn(page: Any) -> None:
    """Hide a paper, and search again with the marks."""
    hidden = page.locator(".row").first.get_attribute("data-id")
    page.focus(".row >> nth=0")
    page.keyboard.press("h")
    use(page, "#again button")
    expect(page.locator(f'.row[data-id="{hidden}"]')).to_have_count(0)
    expect(page.locator("#status")).to_contain_text(LISTED)


def add(page: Any) -> None:
    """Add a paper that the draft cites by words of its title, by keyboard."""
    page.focus("#add")
    title = page.locator(".row:not(.done) h3").nth(3).inner_text()
    page.keyboard.type(title[:30])  # it may end in half a word
    expect(page.locator("#add-list li").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#known li")).to_have_count(1)


def like(page: Any) -> None:
    """List papers like one, and go back."""
    before = page.locator(".row").first.get_attribute("data-id")
    use(page, ".row .title >> nth=0")
    use(page, "[data-name=like]")
    expect(page.locator("#notices")).to_contain_text("Papers like")
    page.go_back()
    expect(page.locator(".row").first).to_have_attribute("data-id", before)


def years(page: Any) -> None:
    """Sort the list, lengthen it, and bound its years, and drop the bound above the list."""
    page.select_option("#sort", "newest")
    page.select_option("#sort", "best")
    rows = page.locator(".row").count()
    use(page, "#more")
    expect(page.locator("#status")).to_contain_text("added")
    assert page.locator(".row").count() > rows
    edit(page)
    use(page, "details.settings summary")
    page.fill("#year-min", "2000")
    page.press("#year-min", "Tab")
    use(page, "#again button")
    expect(page.locator("[data-bound]")).to_contain_text("from 2000")
    use(page, "[data-bound]")
    expect(page.locator("[data-bound]")).to_have_count(0)
    expect(page.locator("#status")).to_contain_text(LISTED)


def keyboard(page: Any) -> None:
    """Search, walk the list, open, take and undo by keyboard alone."""
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status")).to_contain_text(LISTED)
    page.evaluate("() => document.activeElement.blur()")
    for key in "jjo":
        page.keyboard.press(key)
    expect(page.locator("#details .by")).to_be_visible()
    name = page.inner_text("#details-title")
    page.keyboard.press("j")
    expect(page.locator("#details-title")).not_to_have_text(name)
    page.keyboard.press("Escape")
    shelf = page.locator("#shelf .count")
    count = shelf.inner_text()
    for key in "tu":
        page.keyboard.press(key)
    expect(shelf).to_have_text(count)


def text(page: Any) -> None:
    """Read a text with citations; its few sentences that most likely lack one are underlined, with papers below."""
    body = (
        f"# {page.input_value('#title')}\n\n## Abstract\n\n{page.input_value('#abstract')}\n\n"
        f"# Introduction\n\n{SENTENCES}"
    )
    file: Any = {"name": "draft.md", "mimeType": "", "buffer": body.encode()}
    page.set_input_files("#file", files=[file])
    use(page, "#each")
    expect(page.locator("#status")).to_contain_text("underlined")
    assert page.locator(".claim").count() == 1  # not of the abstract
    expect(page.locator(".candidates li").first).to_be_visible()
    page.focus(".claim >> nth=0")
    page.keyboard.press("Enter")
    expect(page.locator(".candidates")).to_have_count(0)
    page.go_back()
    expect(page.locator(".row").first).to_be_visible()
    edit(page)
    use(page, "[name=mode][value=draft]", "Space")


def figure(page: Any) -> None:
    """See who cites whom in the list, and open a paper in the figure by keyboard."""
    has_tabs = page.locator(".tabs").is_visible()  # the figure has no place of its own
    if has_tabs:
        use(page, "button[data-tab=map]")
    page.focus(".figure [tabindex='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#details h3").last).to_contain_text("Cited by")
    page.keyboard.press("Escape")
    labels = page.locator("#plane .labels text").all_text_contents()
    assert len(labels) == len({*labels}), labels
    if has_tabs:
        use(page, "button[data-tab=list]")


def corpora(page: Any) -> None:
    """Choose another corpus: what the draft has in the first one is told, and one key away."""
    first = page.input_value("#index")
    shelf = page.locator("#shelf .count").inner_text()
    page.select_option("#index", index=1)
    expect(page.locator("#elsewhere")).to_contain_text(first)
    use(page, "#elsewhere button")
    expect(page.locator("#shelf .count")).to_have_text(shelf)
    expect(page.locator("#status")).to_contain_text(LISTED)


def explained(page: Any) -> None:
    """Open the help, which explains the percentage, and check a list of references."""
    page.keyboard.press("Escape")
    use(page, "#help")
    expect(page.locator("#shortcuts")).to_contain_text("Probability")
    page.keyboard.press("Escape")
    bib = f"@misc{{mine, title={{{page.locator('.row h3').first.inner_text()}}}}}".encode()
    file: Any = {"name": "refs.bib", "mimeType": "", "buffer": bib}
    page.set_input_files("#file", files=[file])
    expect(page.locator("#status")).to_contain_text(LISTED)
    edit(page)
    use(page, "#open-check")
    expect(page.locator("#check")).to_contain_text("1 could be compared")


def drafts(page: Any) -> None:
    """Begin another draft, and come back to the first one with its shelf."""
    shelf = page.locator("#shelf .count").inner_text()
    title = page.input_value("#title")
    page.keyboard.press("Escape")
    use(page, "#new")
    expect(page.locator("#title")).to_have_value("")
    use(page, "#open-drafts")
    use(page, f"#drafts button >> text={title}")
    expect(page.locator("#shelf .count")).to_have_text(shelf)


TASKS: tuple[Task, ...] = (
    search,
    undo,
    take,
    learn,
    add,
    like,
    years,
    text,
    figure,
    corpora,
    explained,
    drafts,
    keyboard,
)


expect.set_options(timeout=30_000)


def done(page: Any, task: Task) -> dict[str, Any]:
    """Do one task; return its time, what axe finds, and whether the page fits its window."""
    start = perf_counter()
    task(page)
    return {
        "ms": round(1000 * (perf_counter() - start)),
        "axe": page.evaluate(FINDINGS),
        "fits": page.evaluate(
            "() => document.documentElement.scrollWidth <= innerWidth"
        ),
    }


def run(address: str, draft: tuple[str, str], pictures: Path | None) -> dict[str, Any]:
    """Do all tasks in each window."""
    found: dict[str, Any] = {}
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=program, args=["--no-sandbox"]
        )
        for width in WIDTHS:
            for scheme in SCHEMES:
                window: Any = {
                    "viewport": {"width": width, "height": 720},
                    "color_scheme": scheme,
                }
                context = browser.new_context(
                    **window, bypass_csp=True, reduced_motion="reduce"
                )
                page = context.new_page()
                faults: list[str] = []
                page.on("pageerror", lambda error, to=faults: to.append(str(error)))
                page.goto(address)
                page.wait_for_selector("html[data-ready]")
                page.evaluate(AXE.read_text(encoding="utf-8"))
                page.fill("#title", draft[0])
                page.fill("#abstract", draft[1])
                of = found[f"{width} {scheme}"] = dict[str, Any]()
                for task in TASKS:
                    of[task.__name__] = done(page, task)
                    if pictures:
                        page.screenshot(
                            path=pictures / f"{width}-{scheme}-{task.__name__}.png"
                        )
                assert not faults, faults
                context.close()
        browser.close()
    return found


def markdown(windows: dict[str, Any]) -> str:
    """Return the page of the results."""
    head = ["task", *windows]
    lines = [
        "# The tasks of an author on the page",
        "",
        "    citerec serve --index INDEX --index OTHER &",
        "    python experiments/page.py http://127.0.0.1:8000 --title ... --abstract ...",
        "",
        "By keyboard alone in Chromium, at five widths, light and dark (`results/page.json`). Milliseconds from",
        "the first key of a task to what it shows; in brackets what axe-core finds then, of any impact. The list",
        "of a search appears once, in its last order. The two cores did other work, too: times are upper bounds.",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
    ]
    for task in TASKS:
        cells = [window[task.__name__] for window in windows.values()]
        shown = [
            f"{cell['ms']} ({len(cell['axe'])}){'' if cell['fits'] else ' overflows'}"
            for cell in cells
        ]
        lines.append(f"| {' | '.join([(task.__doc__ or '').rstrip('.'), *shown])} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Serve an index, do the tasks, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--title", required=True)
    parser.add_argument("--abstract", required=True)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    windows = run(given.address, (given.title, given.abstract), given.pictures)
    result = {"windows": windows, "provenance": provenance({"title": given.title})}
    RESULT.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    PAGE.write_text(markdown(windows), encoding="utf-8")


if __name__ == "__main__":
    main()
