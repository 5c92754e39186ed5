"""Stories of the page in a real browser: hostile titles, filters, links, sentences, keys, accessibility."""

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    DRAFT,
    TITLE,
    axe_script,
    expect,
    find,
    ids,
    open_page,
)
from support.pages import NASTY
from support.server import listening

from citerec.folder import IndexFolder
from citerec.serve.service import Service
from citerec.serve.settings import ServeConfig

BOOKMARKLET = Path(__file__).parent.parent / "docs" / "recipes" / "bookmarklet.js"
BIDI = "safe \u202etxt.exe\u202c \u2066isolated\u2069"


@pytest.mark.slow
def test_titles_with_scripts_and_direction_controls_are_harmless(
    browser: Any, build: Callable[..., IndexFolder]
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
        page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))

        find(page, {"#title": "<script>alert(1)</script> word"})
        page.click(".row .title >> nth=0")
        expect(page.locator("#details h3").last).to_contain_text("Cited by")

        assert len(ids(page)) > 10
        assert not alerts
        assert page.locator("main script, main img, main b.x, dialog script").count() == 0
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
def test_years_and_venues_filter_the_list_and_count_what_is_left(page: Any) -> None:
    find(page)
    everything = len(ids(page))
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
def test_names_in_the_map_do_not_lie_over_each_other(page: Any) -> None:
    find(page)

    boxes = page.eval_on_selector_all(
        "#map-figure .labels text",
        "all => all.map(one => one.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])",
    )
    assert boxes
    for (left, right, top, bottom), other in combinations(boxes, 2):
        beside = right <= other[0] or other[1] <= left
        assert beside or abs((top + bottom) - (other[2] + other[3])) / 2 >= (bottom - top) / 2


@pytest.mark.slow
def test_a_link_holds_ids_and_settings_but_no_text(browser: Any, address: str) -> None:
    with open_page(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        find(page)
        page.click(".row .act.known >> nth=0", force=True)
        page.click(".row .act.hide >> nth=0", force=True)
        expect(page.locator("#hidden li")).to_have_count(1)
        listed = ids(page)
        page.click("#share")
        expect(page.locator("#toast")).to_contain_text("Link copied")
        link = page.evaluate("() => navigator.clipboard.readText()")

    assert "passages" not in link
    assert "#index=sample" in link
    with open_page(browser, link) as other:
        expect(other.locator("#notices")).to_contain_text("the text of the draft is not in it")
        assert set(ids(other)) <= set(listed)
        assert len(ids(other)) > 10
        expect(other.locator("#known li")).to_have_count(1)
        expect(other.locator("#hidden li")).to_have_count(1)
        expect(other.locator("#title")).to_have_value("")


@pytest.mark.slow
def test_a_sentence_alone_or_with_its_draft_finds_what_it_needs(page: Any) -> None:
    page.click("text=A sentence")
    find(page, {"#context": "BERT is pretrained on masked words [CITE]."})
    alone = ids(page)

    page.check("#with-draft")
    find(page, {**DRAFT, "#context": "BERT is pretrained on masked words [CITE]."})

    assert alone
    expect(page.locator(".row").first).to_contain_text("BERT")


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
        "text => { one.textContent = text; getSelection().selectAllChildren(one); }", sentence
    )

    with context.expect_page() as opened:
        editor.evaluate(script.replace("http://127.0.0.1:8000/", address))
    page = opened.value

    expect(page.locator("#status")).to_contain_text("after")
    expect(page.locator("#context")).to_have_value(sentence)
    expect(page.locator("[name=mode][value=sentence]")).to_be_checked()
    expect(page.locator(".row").first).to_contain_text("BERT")
    assert page.url == address  # the text is not kept in the history
    editor.evaluate(
        "text => { one.textContent = text; getSelection().selectAllChildren(one); }", "Graphs."
    )
    with context.expect_page() as opened:
        editor.evaluate(script.replace("http://127.0.0.1:8000/", address))
    expect(opened.value.locator("#context")).to_have_value("Graphs.")
    context.close()


@pytest.mark.slow
def test_an_address_with_a_title_fills_in_the_draft_and_can_be_undone(page: Any) -> None:
    page.fill("#title", TITLE)
    page.evaluate("() => { location.hash = '#context=Masked+words.&title=BERT&index=again'; }")

    expect(page.locator("#notices")).to_contain_text("The address of this page brought the text")
    expect(page.locator("#index")).to_have_value("again")
    expect(page.locator("#with-draft")).to_be_checked()
    expect(page.locator("#title")).to_have_value("BERT")
    page.click("text=Bring back what was here")

    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("[name=mode][value=draft]")).to_be_checked()
    expect(page.locator("#index")).to_have_value("sample")


@pytest.mark.slow
def test_an_empty_list_gives_its_reason(page: Any) -> None:
    page.click(".settings summary")
    page.fill("#year-max", "1800")
    page.fill("#title", TITLE)
    page.click("#find")

    expect(page.locator("#empty")).to_contain_text("later than 1800")
    expect(page.locator("#empty")).not_to_contain_text("--")


@pytest.mark.slow
def test_a_busy_server_is_waited_for(page: Any) -> None:
    refused: list[str] = []

    def refuse(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append("once")
            route.fulfill(status=429, headers={"Retry-After": "1"}, body="{}")

    page.route("**/page/recommend", refuse)
    page.fill("#title", TITLE)
    page.click("#find")

    expect(page.locator("#trouble")).to_contain_text("busy")
    expect(page.locator("#status")).to_contain_text("after")
    expect(page.locator("#trouble")).to_be_hidden()


@pytest.mark.slow
def test_the_other_index_has_marks_of_its_own(page: Any) -> None:
    find(page)
    page.click(".row .act.known >> nth=0", force=True)
    expect(page.locator("#known li")).to_have_count(1)

    page.select_option("#index", "again")

    expect(page.locator("#status")).to_contain_text("after")
    expect(page.locator("#known")).to_be_hidden()


@pytest.mark.slow
def test_every_action_has_a_key(page: Any) -> None:
    find(page)
    page.evaluate("() => document.activeElement.blur()")

    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("#selected")).to_have_text("1 selected")
    page.keyboard.press("h")
    expect(page.locator("#hidden li")).to_have_count(1)
    page.keyboard.press("u")
    expect(page.locator("#hidden")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page.locator("#details")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.id") == "title"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_no_serious_issue(browser: Any, address: str, scheme: str, width: int) -> None:
    script = axe_script()
    size = {"width": width, "height": 900}

    def issues() -> list[str]:
        found = page.evaluate("async () => (await axe.run(document)).violations")
        return [
            f"{one['id']}: {one['nodes'][0]['html']}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    with open_page(browser, address, color_scheme=scheme, viewport=size, bypass_csp=True) as page:
        page.evaluate(script)
        assert not issues()
        find(page)
        page.click(".row .act.known >> nth=0", force=True)
        expect(page.locator("#status")).to_contain_text("after")
        assert not issues()
        page.click(".row .title >> nth=0")
        expect(page.locator("#details h3").last).to_contain_text("Cited by")
        assert not issues()
        page.keyboard.press("Escape")
        page.click("#help")
        assert not issues()


@pytest.mark.slow
def test_the_answers_of_the_page_and_of_the_api_are_equal(page: Any, address: str) -> None:
    find(page)
    shown = ids(page)

    answer = page.request.post(
        f"{address}v1/recommend", data={"query": {"title": TITLE, "abstract": ABSTRACT}}
    )

    assert [one["id"] for one in answer.json()["answers"][0]["results"]] == shown


@pytest.mark.slow
def test_the_policy_forbids_scripts_within_the_page(page: Any, address: str) -> None:
    answer = page.request.get(address)
    policy = answer.headers["content-security-policy"]

    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=", answer.text())
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", answer.text())


@pytest.mark.slow
def test_a_server_with_tokens_names_its_indexes_only_to_those_who_have_one(
    browser: Any, sample_index: IndexFolder
) -> None:
    token = "a-token-of-24-characters"
    service = Service({"secret": sample_index.path}, settings=ServeConfig(tokens=(token,)))
    with listening(service) as address:
        page = browser.new_context().new_page()
        page.goto(address)
        expect(page.locator("#trouble")).to_contain_text("needs a token")
        assert "secret" not in page.content()

        page.fill("#token", "another token of the web")
        page.click("#trouble button")
        expect(page.locator("#trouble")).to_contain_text("does not know this token")
        page.fill("#token", token)
        page.click("#trouble button")

        expect(page.locator("#corpus-facts")).to_contain_text("300 papers")
        find(page)
        assert ids(page)
        page.context.close()
    service.close()
