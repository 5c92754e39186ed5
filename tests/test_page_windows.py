"""The page in windows of every size, with axe, hostile titles and a bookmarklet."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.types import Build

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    HIDE,
    TAKE,
    TITLE,
    axe_script,
    expect,
    find,
    ids,
    open_page,
)
from support.pages import NASTY
from support.server import listening

from citerec.serve.service import Service

BOOKMARKLET = Path(__file__).parent.parent / "docs" / "recipes" / "bookmarklet.js"
BIDI = "safe \u202etxt.exe\u202c \u2066isolated\u2069"


@pytest.mark.slow
def test_titles_with_scripts_and_direction_controls_are_harmless(
    browser: Any, build: Build
) -> None:
    titles = [*NASTY, BIDI, "", "<svg onload=alert(1)> word", "شبكات الاستشهاد word"]
    index = build(
        [
            {
                "id": f"p{i}<script>alert({i})</script>",
                "title": title,
                "abstract": f"A word and {title}",
                "venue": title,
                "authors": [title] if title else [],
                "citations": ["p0<script>alert(0)</script>"] if i else [],
                "url": "javascript:alert(1)",
            }
            for i, title in enumerate(titles)
        ]
    )
    service = Service({"<b>nasty</b>": index.path})
    with listening(service) as address, open_page(browser, address) as page:
        alerts: list[str] = []
        page.on(
            "dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss())
        )

        find(page, {"#title": "<script>alert(1)</script> word"})
        page.click(".row .title >> nth=0")
        expect(page.locator("#details h3").last).to_contain_text("Cited by")

        assert len(ids(page)) > 10
        assert not alerts
        assert (
            page.locator("main script, main img, main b.x, dialog script").count() == 0
        )
        text = page.inner_text("main")
        assert "<script>alert" in text
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
        assert (
            page.evaluate(
                "() => getComputedStyle(document.querySelector('.row .title')).unicodeBidi"
            )
            == "isolate"
        )
        page.keyboard.press("Escape")
        page.check("#all")
        with page.expect_download():
            page.click("[data-save=csl]")
    service.close()


@pytest.mark.slow
def test_the_bookmarklet_opens_the_page_with_the_selected_sentence(
    browser: Any, address: str
) -> None:
    sentence = "BERT is pretrained on masked words & more [CITE]."
    script = BOOKMARKLET.read_text().removeprefix("javascript:")
    context = browser.new_context(reduced_motion="reduce")
    editor = context.new_page()
    editor.set_content("<p>Before.</p><p id='one'></p>")
    editor.evaluate(
        "text => { one.textContent = text; getSelection().selectAllChildren(one); }",
        sentence,
    )

    with context.expect_page() as opened:
        editor.evaluate(script.replace("http://127.0.0.1:8000/", address))
    page = opened.value

    expect(page.locator("#status")).to_contain_text("papers")
    expect(page.locator("#context")).to_have_value(sentence)
    expect(page.locator("[name=mode][value=sentence]")).to_be_checked()
    expect(page.locator(".row").first).to_contain_text("BERT")
    assert page.url == address  # the text is not kept in the history
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_no_serious_issue(
    browser: Any, address: str, scheme: str, width: int
) -> None:
    script = axe_script()
    size = {"width": width, "height": 900}

    def issues() -> list[str]:
        found = page.evaluate("async () => (await axe.run(document)).violations")
        return [
            f"{one['id']}: {one['nodes'][0]['html']}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    with open_page(
        browser, address, color_scheme=scheme, viewport=size, bypass_csp=True
    ) as page:
        page.evaluate(script)
        assert not issues()
        find(page)
        page.click(TAKE)
        expect(page.locator("#status")).to_contain_text("papers")
        assert not issues()
        page.click(".row .title >> nth=0")
        expect(page.locator("#details h3").last).to_contain_text("Cited by")
        assert not issues()
        page.keyboard.press("Escape")
        page.click("#help")
        assert not issues()
        page.keyboard.press("Escape")
        if width < 900:
            page.click("#shelf-toggle")
        expect(page.locator("#shelf textarea")).to_be_visible()
        assert not issues()
        page.click("#open-drafts")
        assert not issues()


@pytest.mark.slow
def test_it_fits_small_and_usual_windows(browser: Any, address: str) -> None:
    with open_page(browser, address, viewport={"width": 320, "height": 640}) as page:
        find(page)
        for place in (
            "button[data-tab=map]",
            "button[data-tab=list]",
            "#edit",
            ".row .title >> nth=0",
        ):
            page.click(place)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 320

    with open_page(browser, address, viewport={"width": 1280, "height": 720}) as page:
        find(page, {"#title": TITLE, "#abstract": ABSTRACT * 20})
        third = page.locator(".row >> nth=2").bounding_box()
        assert third["y"] + third["height"] <= 720


COVERED = """() => {
  return [...document.querySelectorAll("main :is(button, a, input, select)")].filter(control => {
    const { x, y, width, height } = control.getBoundingClientRect();
    const middle = [x + width / 2, y + height / 2];
    const isSeen = width > 1 && y > 0 && y + height < innerHeight;
    return isSeen && document.elementFromPoint(...middle)?.closest("#toast");
  }).map(control => control.outerHTML);
}"""


@pytest.mark.parametrize("size", [(390, 844), (320, 640), (844, 390)])
def test_a_message_covers_no_button_of_a_list_on_a_phone(
    browser: Any, address: str, size: tuple[int, int]
) -> None:
    width, height = size
    window = {"width": width, "height": height}
    with open_page(browser, address, viewport=window) as page:
        find(page)
        for act in (HIDE, TAKE, HIDE):
            page.click(act)
            expect(page.locator("#toast.shown")).to_contain_text("Undo")
            assert page.evaluate(COVERED) == []
        expect(page.locator(".row .state")).to_have_text(
            ["Hidden", "On the shelf", "Hidden"]
        )

        page.check("#all")
        for what, told in (
            ("bibtex", "17 references copied"),
            ("doi", "17 references left out"),
        ):
            page.click(f"[data-copy={what}]")
            expect(page.locator("#toast.shown")).to_contain_text(told)
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            expect(page.locator("#more")).to_be_in_viewport()
            assert page.evaluate(COVERED) == []
            end, message = (
                page.locator(part).bounding_box() for part in ("main", "#toast")
            )
            assert end["y"] + end["height"] <= message["y"] + 1
            assert message["y"] + message["height"] == pytest.approx(height, abs=1)


@pytest.mark.parametrize("width", [1280, 1920])
def test_a_message_is_on_one_line_of_a_wide_window(
    browser: Any, address: str, width: int
) -> None:
    lines = """() => { const range = document.createRange();
      range.selectNodeContents(document.querySelector("#toast span"));
      return new Set([...range.getClientRects()].map(one => Math.round(one.top))).size; }"""
    with open_page(browser, address, viewport={"width": width, "height": 800}) as page:
        find(page)
        for _ in range(6):
            page.click(TAKE)
            expect(page.locator("#toast.shown")).to_contain_text("On the shelf")
            assert page.evaluate(lines) == 1
            assert " …" not in page.inner_text("#toast")


@pytest.mark.parametrize("width", [320, 390])
def test_why_a_file_cannot_be_read_takes_little_of_a_phone(
    browser: Any, address: str, width: int
) -> None:
    window = {"width": width, "height": 740}
    file = {"name": "my-draft.pdf", "mimeType": "", "buffer": b"%PDF-1.4 broken"}
    with open_page(browser, address, viewport=window) as page:
        page.set_input_files("#file", files=[file])
        summary = page.locator("#read .fault summary")
        why = page.locator("#read .fault p")
        expect(summary).to_have_text("Not read. my-draft.pdf: this is a PDF…")
        expect(why).to_be_hidden()
        assert page.locator("#read").bounding_box()["height"] < 70

        summary.click()

        expect(why).to_contain_text("this one is damaged")
        expect(why).to_contain_text("paste its text into the fields instead")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_phone_scrolls_to_the_map_that_was_tapped(
    browser: Any, address: str, motion: str
) -> None:
    place = "() => document.querySelector('.tabs').getBoundingClientRect().top"
    with open_page(browser, address, viewport={"width": 390, "height": 740}) as page:
        page.emulate_media(reduced_motion=motion)
        # with a notice above the list
        find(page, {"#title": "Grazing and the milk yield of dairy cows"})

        for tab in ("map", "list", "works", "map"):
            page.click(f"button[data-tab={tab}]")
            page.wait_for_function(f"() => Math.abs(({place})() - 10) < 2")
        expect(page.locator("#years")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (1440, 900)])
def test_what_is_said_of_a_paper_hides_nothing_of_its_sheet(
    browser: Any, address: str, size: tuple[int, int]
) -> None:
    width, height = size
    window = {"width": width, "height": height}
    with open_page(browser, address, viewport=window) as page:
        find(page)
        page.click(".row .title >> nth=0")
        page.click("#details .related a >> nth=0")
        page.click("#details [data-name=taken]")
        expect(page.locator("#toast.shown")).to_contain_text("On the shelf")

        back, close, said, title = (
            page.locator(f"#details {part}").bounding_box()
            for part in (
                "[data-name=back]",
                "[data-name=close]",
                "#toast",
                "#details-title",
            )
        )
        assert back["x"] + back["width"] <= said["x"]
        assert said["x"] + said["width"] <= close["x"]
        assert said["y"] + said["height"] <= title["y"]
        page.click("#toast button")
        expect(page.locator("#toast")).to_contain_text("Undone")


def test_a_long_message_on_a_list_does_not_hide_a_paper_that_is_opened(
    browser: Any, address: str
) -> None:
    with open_page(browser, address, viewport={"width": 390, "height": 844}) as page:
        find(page)
        page.check("#all")
        page.click("[data-copy=doi]")
        expect(page.locator("#toast.shown")).to_contain_text("references left out")

        page.click(".row .title >> nth=0")

        expect(page.locator("#details-title")).to_be_visible()
        expect(page.locator("#toast.shown")).to_have_count(0)
