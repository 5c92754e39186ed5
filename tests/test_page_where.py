"""The text on the page, with the sentences that may lack a reference."""

from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    TITLE,
    expect,
    find,
    ids,
)

CLAIM = "Dense retrieval with two encoders answers open-domain questions."
CITED = "Late interaction keeps a vector for each token"
TEXT = f"""---
title: {TITLE}
abstract: {ABSTRACT}
---

# Introduction

{CITED} [@one]. Is it cheap? {CLAIM} It is so.

# Method

<b>Short</b> words. As others did [@one], we go on with our own work.

As we know, pretrained language models improve the ranking of passages.
"""


def test_sentences_without_a_reference_are_marked_in_the_text_with_their_papers(
    page: Any,
) -> None:
    file = {"name": "draft.md", "mimeType": "", "buffer": TEXT.encode()}
    claim, papers = page.locator(".claim"), page.locator(".candidates li")
    find(page)
    listed = ids(page)

    page.set_input_files("#file", files=[file])
    page.click("#each")
    expect(page.locator("#status")).to_have_text(
        "2 sentences that may lack a reference are underlined."
    )
    # not the abstract, nor what is said of one's own work
    expect(claim).to_have_count(2)
    text = page.inner_text("#where")
    # the cited one is there, and not marked
    assert text.index(CITED) < text.index(CLAIM)
    expect(page.locator(".rest summary").first).to_have_text(
        "1 sentence not underlined"
    )
    expect(claim.first).to_contain_text(CLAIM)

    expect(papers).to_have_count(6)
    groups = page.get_by_role("group", name="Papers for this sentence")
    expect(groups).to_have_count(2)
    claim.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(claim.nth(1)).to_have_attribute("aria-expanded", "false")
    expect(papers).to_have_count(3)
    name = papers.first.locator(".title").inner_text()
    papers.first.locator(".title").click()
    expect(page.locator("#details-title")).to_have_text(name)
    page.keyboard.press("Escape")
    papers.last.locator("[data-act=taken]").click()
    expect(page.locator("#shelf li")).to_have_count(1)
    assert "rft.au=" in page.get_attribute(".Z3988", "title")
    papers.first.locator("[data-act=cited]").click()
    expect(papers.first.locator("[data-act=cited]")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.locator("#known")).to_contain_text(name)
    assert page.locator(".claim[tabindex='0']").count() == 1
    assert CLAIM not in page.evaluate("() => JSON.stringify(localStorage)")

    page.go_back()
    expect(page.locator(".claim")).to_have_count(0)
    assert set(ids(page)) <= set(listed)


def test_a_text_that_went_with_the_tab_is_asked_for_by_the_name_of_its_file(
    page: Any,
) -> None:
    file = {"name": "thesis.md", "mimeType": "", "buffer": TEXT.encode()}
    page.set_input_files("#file", files=[file])
    expect(page.locator("#each")).to_be_visible()

    page.reload()  # before the first search
    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("#read")).to_contain_text("Read from thesis.md. Choose it")
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("papers")
    lost = page.locator("#notices >> text=The text of thesis.md is not kept")
    expect(lost).to_contain_text("only title and abstract are searched")
    page.click("#edit")
    page.check("[name=mode][value=each]", force=True)
    with page.expect_file_chooser() as chooser:
        page.click("#find")
        expect(lost).to_be_visible()
        assert page.locator("#where").count() == 0
        page.click("text=Choose the file again")
    chooser.value.set_files([file])
    expect(lost).to_have_count(0)
    page.click("#find")
    expect(page.locator(".claim")).to_have_count(2)

    page.reload()
    expect(lost).to_be_visible()
    page.click("text=Search without it")  # the title alone has no claim
    expect(page.locator("#notices .fault")).to_contain_text("Every sentence")
    expect(lost).to_have_count(0)
    assert CLAIM not in page.evaluate("() => JSON.stringify(localStorage)")


def test_the_line_above_a_text_counts_the_underlined_sentences(page: Any) -> None:
    subjects = "passages queries tokens answers rankings encoders".split()
    claims = [f"Dense vectors of {one} improve the retrieval." for one in subjects]
    file = {
        "name": "draft.md",
        "mimeType": "",
        "buffer": f"# {TITLE}\n\n# Introduction\n\n{' '.join(claims)}\n".encode(),
    }
    status, claim = page.locator("#status"), page.locator(".claim")

    page.set_input_files("#file", files=[file])
    page.click("#each")
    expect(status).to_have_text(
        "5 of 6 sentences that may lack a reference are underlined."
    )
    expect(claim).to_have_count(5)

    page.select_option("#most", "Infinity")
    expect(status).to_have_text("6 sentences that may lack a reference are underlined.")
    expect(claim).to_have_count(6)


def test_a_text_stays_in_place_while_it_is_searched_again(page: Any) -> None:
    file = {"name": "draft.md", "mimeType": "", "buffer": TEXT.encode()}
    page.set_input_files("#file", files=[file])
    page.click("#each")
    page.click(".candidates [data-act=taken] >> nth=0")
    page.route("**/recommend", lambda _: None)  # no answer comes

    page.click("#again button")

    expect(page.locator("#status")).to_have_text("Searching for each sentence…")
    expect(page.locator(".claim").first).to_be_visible()
    expect(page.locator("#placeholder")).to_be_hidden()


def test_a_text_that_is_searched_again_by_a_key_is_read_from_its_start(
    page: Any,
) -> None:
    file = {"name": "draft.md", "mimeType": "", "buffer": TEXT.encode()}
    page.set_input_files("#file", files=[file])
    page.click("#each")
    page.click(".candidates [data-act=taken] >> nth=0")
    page.focus(".claim >> nth=1")

    page.keyboard.press("n")

    expect(page.locator("#results")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".claim").first).to_be_focused()


def test_the_name_of_a_section_stands_once_above_its_text(page: Any) -> None:
    claims = [f"Dense vectors of {one} improve the retrieval." for one in ("a", "b")]
    parts = ["# Introduction", *claims, "It is so.", "# Results", "It works well."]
    text = "\n\n".join([f"# {TITLE}", *parts, "# Discussion", "We stop here."])
    file = {"name": "draft.md", "mimeType": "", "buffer": text.encode()}
    names = page.locator(".section")

    page.set_input_files("#file", files=[file])
    page.click("#each")

    expect(page.locator(".claim")).to_have_count(2)
    expect(names).to_have_text(["Introduction", "Results", "Discussion"])
    expect(names.first).to_be_visible()
    expect(names.nth(1)).to_be_hidden()  # with its sentences
    page.click(".rest summary")
    expect(names.last).to_be_visible()


def test_the_name_of_a_section_is_above_the_sentences_that_it_begins_with(
    page: Any,
) -> None:
    claim = "Dense vectors of passages improve the retrieval."
    parts = ["# Introduction", "It is so.", "# Method", "It is long.", "We go.", claim]
    text = "\n\n".join([f"# {TITLE}", *parts, "It is short."])
    file = {"name": "draft.md", "mimeType": "", "buffer": text.encode()}

    page.set_input_files("#file", files=[file])
    page.click("#each")

    expect(page.locator(".claim")).to_have_count(1)
    expect(page.locator(".section")).to_have_text(["Introduction", "Method"])
    lines = [*filter(None, page.inner_text(".whole").splitlines())]
    assert lines[:3] == [
        "1 sentence not underlined",
        "Method",
        "2 sentences not underlined",
    ]
