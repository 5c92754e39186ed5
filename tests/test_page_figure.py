"""The figure of the page."""

from itertools import combinations
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    TAKE,
    expect,
    find,
    open_page,
)

DRAWN = """all => all.map(one => {
  const { x, y, right, bottom } = one.getBoundingClientRect();
  return [x, y, right, bottom];
})"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_figure_shows_who_cites_whom_without_overlaps_and_by_keyboard(
    browser: Any, address: str, width: int
) -> None:
    def names() -> list[str]:
        return page.locator(".figure .labels text").all_inner_texts()

    with open_page(browser, address, viewport={"width": width, "height": 900}) as page:
        page.click(".settings summary")
        page.fill("#k", "50")
        find(page)
        page.click(TAKE)
        page.click("button[data-tab=map]")
        expect(page.locator(".figure .node")).to_have_count(50)
        expect(page.locator(".figure .node.own")).to_have_count(1)
        page.click("button[data-tab=works]")
        expect(page.locator("#prior a").first).to_be_visible()
        expect(page.locator("#derivative a").first).to_be_visible()
        page.click("button[data-tab=map]")

        drawn = page.eval_on_selector_all(".figure .shape, .figure .labels text", DRAWN)
        assert not [
            (a, b)
            for a, b in combinations(drawn, 2)
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
        ]

        assert page.locator(".figure [tabindex='0']").count() == 1
        page.focus(".figure [tabindex='0']")
        page.keyboard.press("ArrowRight")
        at = page.evaluate("() => document.activeElement.dataset.id")
        before = names()
        for _ in range(4):
            page.keyboard.press("+")
        assert page.evaluate("() => document.activeElement.dataset.id") == at
        assert names() != before
        page.keyboard.press("End")  # what is not seen is brought into sight
        last = page.evaluate(
            "() => document.activeElement.querySelector('.shape').getBoundingClientRect().right"
        )
        plane = page.locator("#plane").bounding_box()
        assert plane["x"] < last <= plane["x"] + plane["width"]
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator("#details h3").last).to_contain_text("Cited by")
        page.keyboard.press("Escape")
        assert page.evaluate("() => document.activeElement.dataset.id") == at

        page.click("button[data-tab=works]")
        prior = page.locator("#prior a").first
        title = prior.inner_text()
        prior.click()
        page.click("#details [data-name=cited]")
        page.keyboard.press("Escape")
        page.click("button[data-tab=map]")
        expect(page.locator(".figure .node.own")).to_have_count(2)
        expect(page.locator("#prior")).not_to_contain_text(title)
