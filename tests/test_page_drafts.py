"""Drafts on the page, their tabs, links and the back button."""

from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    HIDE,
    TAKE,
    TITLE,
    edit,
    expect,
    find,
    ids,
    open_page,
)

OTHER = "Colour maps for weather charts"
KEPT = "() => JSON.stringify(Object.entries(localStorage).sort())"


@pytest.mark.slow
def test_a_browser_that_keeps_nothing_finds_papers(page: Any) -> None:
    for name in ("localStorage", "sessionStorage"):
        refused = "{ get() { throw new DOMException('', 'SecurityError'); } }"
        page.add_init_script(f"Object.defineProperty(window, '{name}', {refused})")
    page.reload()

    find(page)
    page.click(TAKE)

    told = "This browser keeps nothing of this page. In this tab alone, until it is closed: this draft"
    expect(page.locator("#unkept")).to_contain_text(told)
    page.click("#new")
    page.click("#open-drafts")
    page.click(f"#drafts >> text={TITLE}")
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator(".row").first).to_be_visible()


@pytest.mark.slow
def test_marks_belong_to_a_draft(page: Any) -> None:
    find(page, {"#title": TITLE})
    page.click(TAKE)
    edit(page)
    page.fill("#title", TITLE + " with few labels")
    page.press("#title", "Tab")
    expect(page.locator("#shelf li")).to_have_count(1)

    edit(page)
    page.fill("#title", OTHER)
    page.click("#find")  # the question does not move it away from the pointer
    expect(page.locator("#question")).to_contain_text(
        f"“{TITLE} with few labels” keeps its own"
    )
    expect(page.locator("#status")).to_contain_text("papers")
    expect(page.locator("#shelf li")).to_have_count(0)
    page.click("#question button")
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator("#title")).to_have_value(OTHER)

    page.click("#new")
    expect(page.locator("#title")).to_have_value("")
    expect(page.locator("#shelf li")).to_have_count(0)
    expect(page.locator(".row")).to_have_count(0)
    assert page.evaluate("() => document.activeElement.id") == "title"
    page.click("#open-drafts")
    page.click(f"#drafts >> text={OTHER}")
    expect(page.locator("#drafts")).to_be_hidden()
    expect(page.locator("#title")).to_have_value(OTHER)
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator("#status")).to_contain_text("papers")


@pytest.mark.slow
def test_on_a_phone_a_draft_that_is_opened_makes_room_for_its_list(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    find(page)
    page.click("#new")
    expect(page.locator("#toast.shown")).to_contain_text("A new draft")
    page.route("**/page/recommend", lambda _: None)  # no answer comes

    page.click("#open-drafts")
    page.click(f"#drafts >> text={TITLE}")

    expect(page.locator("#placeholder")).to_be_visible()
    expect(page.locator("#fields")).to_be_hidden()
    expect(page.locator("#toast.shown")).to_have_count(0)


@pytest.mark.slow
def test_a_draft_can_be_removed_and_brought_back(page: Any) -> None:
    find(page)
    page.click(TAKE)
    page.click("#new")
    page.fill("#title", OTHER)
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    drafts = page.locator("#drafts li")
    expect(drafts).to_have_count(2)
    expect(drafts.locator("[aria-current]")).to_have_text(OTHER)
    expect(drafts.last).to_contain_text("today · 1 on the shelf · 1 list")

    for title in (TITLE, OTHER):
        page.click(f"#drafts li:has-text('{title}') button[title]")
        expect(drafts).to_have_count(1)
        assert page.evaluate("() => document.activeElement.closest('#drafts') !== null")
        page.click("#toast >> text=Undo")
        expect(drafts).to_have_count(2)
    expect(page.locator("#title")).to_have_value(OTHER)
    page.click(f"#drafts >> text={TITLE}")
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator("#status")).to_contain_text("papers")


@pytest.mark.slow
def test_two_tabs_do_not_overwrite_each_other(page: Any, address: str) -> None:
    find(page)
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator("#status")).to_contain_text("papers")

    page.click(TAKE)
    expect(other.locator("#shelf li")).to_have_count(1)
    other.click(HIDE)
    expect(page.locator("#hidden li")).to_have_count(1)
    other.click("#new")
    other.fill("#title", OTHER)
    page.click(TAKE)

    for tab, title, known in (page, TITLE, 2), (other, OTHER, 0):
        tab.reload()
        expect(tab.locator("#title")).to_have_value(title)
        expect(tab.locator("#shelf li")).to_have_count(known)


@pytest.mark.slow
def test_the_back_button_stays_on_the_page(page: Any) -> None:
    find(page)
    first = ids(page)
    edit(page)
    page.fill("#title", "Dense retrieval of passages about proteins")
    page.click("#find")
    expect(page.locator("#find")).to_have_text("Find papers")
    expect(page.locator("#status")).to_contain_text("papers")
    second = ids(page)
    page.click(".row .title >> nth=0")
    page.click("#details .related a >> nth=0")
    expect(page.locator("#details [data-name=back]")).to_be_visible()

    page.reload()  # the address holds the paper
    expect(page.locator("#details .abstract")).to_be_visible()
    expect(page.locator(".row")).to_have_count(len(second))
    page.go_back()
    page.go_back()
    expect(page.locator("#details")).to_be_hidden()
    assert page.url.count("#") == 0
    find(page)
    edit(page)
    page.fill("#title", "Dense retrieval of passages about proteins")
    page.click("#find")
    expect(
        page.locator(f'.row >> nth=0 >> xpath=self::*[@data-id="{second[0]}"]')
    ).to_have_count(1)
    expect(page.locator("#find")).to_have_text("Find papers")
    page.go_back()
    page.wait_for_function(
        "ids => JSON.stringify([...document.querySelectorAll('.row')].map(one => one.dataset.id))"
        " === JSON.stringify(ids)",
        arg=first,
    )


@pytest.mark.slow
def test_a_shared_link_is_a_view_until_it_is_taken_over(
    browser: Any, address: str
) -> None:
    with open_page(
        browser, address, permissions=["clipboard-read", "clipboard-write"]
    ) as page:
        find(page)
        page.click(TAKE)
        page.click("#share")
        expect(page.locator("#toast")).to_contain_text("Link copied")
        link = page.evaluate("() => navigator.clipboard.readText()")
    assert "passages" not in link  # ids and settings, but no text
    assert "#index=sample" in link
    link += "&k=7&year_max=2001"

    with open_page(browser, address) as page:
        find(page, {"#title": OTHER})
        page.click(HIDE)
        kept = page.evaluate(KEPT)
        page.goto(link)
        expect(page.locator("#notices")).to_contain_text("Nothing of yours was changed")
        page.reload()
        expect(page.locator("#notices")).to_contain_text("Nothing of yours was changed")
        expect(page.locator("#shelf li")).to_have_count(1)
        expect(page.locator("#hidden li")).to_have_count(0)
        expect(page.locator("#k")).to_have_value("7")
        assert page.evaluate(KEPT) == kept

        page.click("text=Back to my draft")
        expect(page.locator("#title")).to_have_value(OTHER)
        expect(page.locator("#hidden li")).to_have_count(1)
        expect(page.locator("#k")).to_have_value("20")
        page.go_back()
        page.click("text=Take it over")
        page.reload()
        expect(page.locator("#shelf li")).to_have_count(1)
        expect(page.locator("#k")).to_have_value("7")
        page.click("#open-drafts")
        page.click(f"#drafts >> text={OTHER}")
        expect(page.locator("#hidden li")).to_have_count(1)


@pytest.mark.slow
def test_what_is_kept_may_be_broken_or_forgotten(page: Any) -> None:
    find(page)
    for broken in ('"marks":{"sample":7}', '"title":null', '"k":[1]}'):
        page.evaluate(
            "bad => { for (const key of Object.keys(localStorage)) localStorage[key] = `{${bad}}`; }",
            broken,
        )
        page.reload()
        expect(page.locator("#unkept")).to_contain_text(
            "Could not be read, and is set aside"
        )
        find(page)
        page.reload()
        expect(page.locator("#title")).to_have_value(TITLE)
        expect(page.locator("#status")).to_contain_text("papers")
        expect(page.locator("#unkept")).to_be_hidden()

    asked: list[str] = []
    page.once("dialog", lambda one: (asked.append(one.message), one.dismiss()))
    edit(page)
    page.click(".settings summary")
    page.click("#forget")
    expect(page.locator("#title")).to_have_value(TITLE)
    page.once("dialog", lambda one: (asked.append(one.message), one.accept()))
    page.click("#forget")
    expect(page.locator("#title")).to_have_value("")
    assert len(asked) == 2
    assert "draft:" not in page.evaluate(KEPT)


@pytest.mark.slow
def test_drawing_anew_disturbs_nobody_who_types(page: Any) -> None:
    find(page)
    edit(page)
    page.click("#title")
    page.keyboard.press("Home")
    page.keyboard.type("Very ")
    expect(page.locator("#title")).to_have_value(f"Very {TITLE}")
    page.keyboard.press("Control+z")
    expect(page.locator("#title")).to_have_value(TITLE)

    edit(page)
    page.click(".settings summary")
    page.fill("#k", "")
    page.locator("#k").press_sequentially("50")
    expect(page.locator("#k")).to_have_value("50")
    page.fill("#k", "500")
    page.press("#k", "Tab")
    expect(page.locator("#k")).to_have_value("20")
    expect(page.locator("#toast")).to_have_text(
        "Papers in the list: expected a whole number from 1 to 100; 20 is taken."
    )
    page.fill("#k", "50")
    page.locator("#year").press_sequentially("2300")  # too late: it does not count
    expect(page.locator("#year")).to_have_value("2300")
    page.press("#year", "Tab")
    expect(page.locator("#year")).to_have_value("")
    expect(page.locator("#toast")).to_have_text(
        "Year of the draft: expected a whole number from 1 to 2200; any is taken."
    )
    page.locator("#year").press_sequentially("2019")
    page.click("#new")
    expect(page.locator("#year")).to_have_value("")
    expect(page.locator("#k")).to_have_value("50")


def test_marks_in_another_corpus_are_counted_by_their_kind(page: Any) -> None:
    find(page)
    page.click(TAKE)
    page.click(TAKE)
    page.click(HIDE)

    page.select_option("#index", "again")

    expect(page.locator("#elsewhere button")).to_have_text(
        "2 on the shelf, 1 hidden in sample"
    )
    page.click("#open-drafts")
    expect(page.locator("#drafts li")).to_contain_text("2 on the shelf · 1 hidden")
    page.keyboard.press("Escape")
    page.click("#elsewhere button")
    expect(page.locator("#hidden li")).to_have_count(1)
