"""The list of the page: its order, rows, marks, news and export."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    DRAFT,
    HIDE,
    TAKE,
    TITLE,
    edit,
    expect,
    find,
    ids,
    open_page,
)
from support.server import listening
from support.types import Build

from citerec.index.folder import IndexFolder
from citerec.serve.service import Service

FOCUS = "() => document.activeElement.tagName"


def test_an_author_finds_marks_and_exports_papers(page: Any) -> None:
    status = page.locator("#status")
    find(page)
    expect(status).to_have_text("20 papers.")
    first, second, *_ = ids(page)

    page.click(TAKE)
    expect(page.locator("#shelf li")).to_have_count(1)
    row = page.locator(f'.row[data-id="{first}"]')
    expect(row).to_contain_text("On the shelf")
    expect(row.locator(".act:visible")).to_have_text("Undo")
    expect(page.locator("#to-shelf .count")).to_have_text("1")
    page.check(f'.row[data-id="{second}"] input')
    with page.expect_download() as download:
        page.click("[data-save=bibtex]")

    assert second in Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == "references.bib"
    page.reload()  # the draft and the marks are in the browser
    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(status).to_have_text(
        "20 papers. Order and probabilities also depend on 1 paper that you took or cite."
    )
    assert first not in ids(page)


def test_authors_are_stated_once_and_a_printed_page_has_them_and_what_a_number_is(
    page: Any,
) -> None:
    find(page)
    people = page.locator(".row .people", has_text="others").first
    first, *_ = people.inner_text().split(", ")

    people.locator("xpath=ancestor::li").locator(".title").click()
    shown = page.locator("#details .people").inner_text()
    assert "others" not in shown
    assert page.inner_text("#details").count(first) == 1
    page.click("#details [data-name=taken]")
    page.keyboard.press("Escape")
    page.emulate_media(media="print")

    expect(page.locator("#shelf .people")).to_contain_text(first)
    expect(page.locator(".meter b").first).to_have_text(re.compile("% probability$"))
    expect(page.locator(".meter small").first).to_be_visible()


def test_a_list_is_ordered_lengthened_bounded_and_left_for_papers_like_one(
    page: Any,
) -> None:
    find(page)
    best = ids(page)
    rows = page.locator(".row")

    page.select_option("#sort", "newest")
    years = [int(one) for one in page.locator(".row .year").all_inner_texts()]
    assert years == sorted(years, reverse=True)
    assert {*ids(page)} == {*best}
    page.select_option("#sort", "best")
    page.click("#more")
    expect(rows).to_have_count(40)
    assert ids(page)[:20] == best

    page.click(f'.row[data-id="{best[0]}"] .title')
    page.click("[data-name=like]")
    expect(page.locator("#notices")).to_contain_text("Papers like")
    expect(rows.first).to_be_visible()
    assert best[0] not in ids(page)
    page.click("text=Back to the list of the draft")
    expect(rows).to_have_count(40)

    edit(page)
    page.click("details.settings summary")
    page.fill("#year-min", "2010")
    page.fill("#year-max", "2015")
    page.press("#year-max", "Tab")
    page.click("#again button")  # the years ask again
    expect(page.locator("#status")).to_contain_text("papers")
    assert {int(one) for one in page.locator(".row .year").all_inner_texts()} <= {
        *range(2010, 2016)
    }


def test_papers_to_add_are_in_view_below_a_long_shelf(page: Any) -> None:
    found = page.locator("#add-list li")
    find(page)
    for _ in range(3):
        page.click(TAKE)

    page.click("#add")
    page.keyboard.type("bert")

    expect(found).to_have_count(6)
    expect(found.last).to_be_in_viewport()
    page.locator("#draft").evaluate("form => form.scrollTo(0, 0)")
    page.keyboard.press("ArrowDown")
    expect(found.nth(1)).to_be_in_viewport(ratio=1)


def test_a_list_for_a_sentence_has_its_name(page: Any) -> None:
    name = page.locator(".folded .name")
    find(page)
    expect(name).to_have_text(TITLE)

    page.click("#edit")
    page.click("text=A sentence")
    find(page, {"#context": "Late interaction keeps a vector for each token [CITE]."})

    expect(name).to_have_text("Late interaction keeps a vector for each token [CITE].")
    page.go_back()
    expect(name).to_have_text(TITLE)


def test_a_long_message_stays_until_it_can_be_read(page: Any) -> None:
    page.clock.install()
    find(page)
    page.check("#all")
    page.click("[data-copy=doi]")
    expect(page.locator("#toast.shown")).to_contain_text("20 references left out")

    page.clock.run_for(9_000)
    expect(page.locator("#toast.shown")).to_have_count(1)
    page.clock.run_for(20_000)
    expect(page.locator("#toast.shown")).to_have_count(0)


def test_a_paper_that_the_author_cites_is_added_by_words_or_doi(page: Any) -> None:
    add, found = page.locator("#add"), page.locator("#add-list li")

    add.fill("atten")  # half a word
    expect(found.first).to_be_visible()
    add.fill("attention is al")
    expect(found.first).to_contain_text("Attention Is All")
    title = found.nth(1).inner_text().rsplit(" ", 1)[0]
    add.press("ArrowDown")
    expect(add).to_have_attribute("aria-activedescendant", "add-1")
    add.press("Enter")
    expect(page.locator("#known")).to_contain_text(title.strip())
    expect(add).to_have_value("")
    add.fill("https://doi.org/10.0000/nowhere")
    expect(page.locator(".adding .hint")).to_contain_text("Not in this corpus.")


@pytest.mark.slow
def test_a_search_can_be_stopped_and_marks_do_not_move_its_list(page: Any) -> None:
    page.route("**/page/recommend", lambda _: None)  # no answer comes
    for field, text in DRAFT.items():
        page.fill(field, text)
    page.click("#find")
    expect(page.locator("#placeholder")).to_be_visible()
    expect(page.locator("#find")).to_have_text("Stop")
    page.click("#find")
    expect(page.locator("#status")).to_have_text("Stopped.")
    page.unroute("**/page/recommend")

    find(page)
    first, *others = ids(page)
    page.click(HIDE)
    assert ids(page) == others
    page.click("#again button")
    expect(page.locator("#again")).to_be_hidden()
    expect(page.locator("#status")).to_contain_text("papers")
    assert first not in ids(page)


@pytest.mark.slow
def test_years_and_venues_filter_the_list_and_count_what_is_left(page: Any) -> None:
    find(page)
    everything = len(ids(page))
    page.click("button[data-tab=map]")
    bar = page.locator("#years button", has_text=re.compile("[1-9] papers?")).first

    shown = int(re.search(r": (\d+) paper", bar.inner_text() or "")[1])
    bar.click()

    assert len(ids(page)) == shown < everything
    page.click("#filters >> text=Show all")
    assert len(ids(page)) == everything
    venue = page.locator("#venues .chip").first
    n = int(venue.locator(".n").inner_text())
    venue.click()
    assert len(ids(page)) == n


@pytest.mark.slow
def test_papers_that_the_list_of_another_day_did_not_have_are_new(page: Any) -> None:
    find(page)
    listed = ids(page)
    expect(page.locator("#fresh")).to_be_hidden()
    page.click("#more")
    expect(page.locator("#status")).to_contain_text("added")
    page.evaluate(
        """kept => { const [key] = Object.keys(localStorage).filter(one => one.includes("draft:"));
        const draft = JSON.parse(localStorage[key]), [list] = draft.lists;
        list.at -= 24 * 60 * 60 * 1000;
        list.ids = list.ids.filter(id => kept.includes(id));
        localStorage[key] = JSON.stringify(draft); }""",
        [listed[0], *listed[3:]],
    )

    page.reload()
    expect(page.locator("#fresh")).to_contain_text("2 new papers since yesterday.")
    assert page.locator(".row:has(.new)").count() == 2
    page.click("#only-new")
    expect(page.locator("#only-new")).to_have_attribute("aria-pressed", "true")
    assert ids(page) == listed[1:3]
    page.click(".row:not([hidden]) .act.hide >> nth=0", force=True)
    expect(page.locator("#fresh")).to_contain_text("1 new paper since")
    page.click("#only-new")
    assert ids(page) == [listed[0], *listed[2:]]
    page.click("#again button")
    # not of today's first list
    expect(page.locator("#fresh")).to_contain_text("since yesterday")


@pytest.mark.slow
def test_the_list_is_one_stop_of_the_tab_key_and_focus_is_never_lost(page: Any) -> None:
    find(page)
    stops = page.eval_on_selector_all(
        "#list *",
        "all => new Set(all.filter(e => e.tabIndex >= 0).map(e => e.closest('.row'))).size",
    )
    assert stops == 1
    row = "() => document.activeElement.closest('.row')?.dataset.id"
    listed = ids(page)
    page.focus("[data-save=csl], #all")
    page.focus(".row >> nth=0")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(row) == listed[1]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(row) == listed[1]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    assert page.evaluate(row) == listed[-1]
    page.keyboard.press("h")
    assert page.evaluate(row) == listed[-2]
    page.keyboard.press("u")
    assert ids(page) == listed

    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#details h3").last).to_contain_text("Cited by")
    assert page.evaluate("() => document.activeElement.id") == "details-title"
    known = page.locator("#details [data-name=cited]")
    expect(known).to_have_attribute("aria-pressed", "false")
    known.press("Enter")
    expect(known).to_have_attribute("aria-pressed", "true")
    expect(known).to_be_focused()
    page.click("#toast >> text=Undo")  # is above the sheet
    expect(known).to_have_attribute("aria-pressed", "false")
    assert page.evaluate(FOCUS) != "BODY"
    known.press("Enter")
    page.keyboard.press("Escape")  # the row to return to has gone
    page.wait_for_function("() => document.activeElement !== document.body")
    page.locator("#known li button").press("Enter")
    assert page.evaluate(FOCUS) != "BODY"
    page.locator("#again button").press("Enter")
    expect(page.locator("#status")).to_contain_text("papers")
    assert page.evaluate(FOCUS) != "BODY"

    page.click("button[data-tab=map]")
    chip = page.locator("#venues .chip").first
    chip.press("Enter")
    expect(chip).to_be_focused()


def test_a_search_by_a_key_is_read_from_its_start(page: Any) -> None:
    row = "() => document.activeElement.closest('.row')?.dataset.id"
    find(page)
    page.focus(".row >> nth=0")
    for key in "jjjt":
        page.keyboard.press(key)
    page.keyboard.press("End")

    page.keyboard.press("n")

    expect(page.locator("#results")).to_be_focused()
    expect(page.locator("#list")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#status")).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(page.locator("button[data-tab=list]")).to_be_focused()
    page.keyboard.press("j")
    assert page.evaluate(row) == ids(page)[0]
    page.keyboard.press("End")
    page.keyboard.press("Control+Enter")  # without a change
    expect(page.locator("#results")).to_be_focused()


def test_a_search_is_offered_again_after_the_marks_of_a_draft_come_back(
    page: Any,
) -> None:
    again = page.locator("#again")
    find(page)
    page.click(TAKE)
    find(page, {"#title": "Attention in translation", "#abstract": "Long sentences."})
    expect(page.locator("#shelf ol li")).to_have_count(0)
    expect(again).to_be_hidden()

    page.click("text=Undo: the same draft")

    expect(page.locator("#shelf ol li")).to_have_count(1)
    expect(again).to_be_visible()


def test_a_mark_counts_for_the_next_list_while_another_one_comes(page: Any) -> None:
    again = page.locator("#again")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    find(page)
    page.route("**/page/recommend", hold)
    page.click("#more")

    page.click(TAKE)

    expect(again).to_be_hidden()
    held[0].continue_()
    expect(page.locator("#status")).to_contain_text("of them added")
    expect(again).to_be_visible()


def test_the_back_button_brings_the_corpus_of_a_list_with_it(
    browser: Any, build: Build, sample_index: IndexFolder
) -> None:
    other = build([{"id": "a", "title": "Late interaction over passages"}])
    service = Service({"sample": sample_index.path, "other": other.path})
    with listening(service) as address, open_page(browser, address) as page:
        find(page)
        first = ids(page)
        edit(page)
        page.select_option("#index", "other")
        expect(page.locator(".row")).to_have_count(1)

        page.go_back()
        expect(page.locator("#index")).to_have_value("sample")
        assert ids(page) == first
        page.click(TAKE)
        page.reload()
        expect(page.locator("#shelf ol li")).to_have_count(1)
        expect(page.locator("#index")).to_have_value("sample")
    service.close()
