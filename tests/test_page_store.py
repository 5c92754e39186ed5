"""What the browser keeps for the page: no mark is lost, and what could not be kept is told."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    COPY,
    FILL,
    HIDE,
    RECORDS,
    TAKE,
    TITLE,
    edit,
    expect,
    find,
    open_page,
)

OTHER = "Colour maps for weather charts"
OTHER_ABSTRACT = "Rainbow palettes mislead readers who look for fronts and rain."
TAKEN = "#shelf ol li"
# as a tab whose message does not arrive: no event is sent to the tab that writes
ELSEWHERE = """change => {
  const [draft] = (RECORDS)();
  Function("draft", change)(draft);
  localStorage.setItem(`citerec:draft:${draft.id}`, JSON.stringify(draft));
}""".replace("RECORDS", RECORDS)


def taken(page: Any) -> dict[str, int]:
    """How many papers are stored on the shelf of each draft, by its title."""
    return {
        draft["title"]: sum(len(of["taken"]) for of in draft["marks"].values())
        for draft in page.evaluate(RECORDS)
    }


def saved(page: Any, button: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.click(button)
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_no_draft_with_marks_is_dropped_and_thirty_without(page: Any) -> None:
    find(page)
    page.click(TAKE)
    page.evaluate(COPY, [200, "marked", False])
    page.evaluate(COPY, [40, "bare", True])

    page.click("#new")

    kept = taken(page)
    assert [n for title, n in kept.items() if title.startswith("marked")] == [1] * 200
    assert kept[TITLE] == 1
    # and the new one, which is empty: 30
    assert sorted(
        kept.keys() - {"", TITLE} - {f"marked {i}" for i in range(200)}
    ) == sorted(f"bare {i}" for i in range(11, 40))
    page.click("#open-drafts")
    expect(page.locator("#drafts li")).to_have_count(1 + 200 + 29)


def test_what_a_full_storage_does_not_take_is_told_outlives_a_reload_and_is_kept_later(
    page: Any, address: str, tmp_path: Path
) -> None:
    find(page)
    page.click(TAKE)
    page.click("#new")
    find(page, {"#title": OTHER, "#abstract": ""})
    for _ in range(3):
        page.click(TAKE)
    page.evaluate(FILL)
    for _ in range(2):
        page.click(TAKE)

    told = page.locator("#unkept")
    expect(told).to_contain_text(
        "full. In this tab alone, until it is closed: this draft."
    )
    file = saved(page, "#unkept >> text=Save all in a file", tmp_path)
    shelves = [
        draft["marks"]["sample"]["taken"]
        for draft in json.loads(file.read_text())["drafts"]
    ]
    assert [len(shelf) for shelf in shelves] == [5, 1]
    assert taken(page) == {TITLE: 1, OTHER: 3}  # the record is as it was
    page.reload()
    expect(page.locator(TAKEN)).to_have_count(5)
    expect(told).to_contain_text("this draft")
    page.click("#open-drafts")
    page.click(f"#drafts >> text={TITLE}")
    # the marks are not in the open draft alone
    expect(told).to_contain_text(f"“{OTHER}”")

    other = page.context.new_page()
    other.goto(address)
    other.evaluate("() => localStorage.removeItem('filler')")

    expect(told).to_be_hidden()
    assert taken(page) == {TITLE: 1, OTHER: 5}


def test_a_full_storage_gives_up_drafts_without_marks_first_and_names_them(
    page: Any, tmp_path: Path
) -> None:
    find(page)
    page.click(TAKE)
    page.evaluate(COPY, [3, "bare", True])
    page.evaluate(COPY, [3, "marked", False])
    page.evaluate(FILL)

    page.click(TAKE)

    told = page.locator("#unkept")
    expect(told).to_contain_text("Without marks, and removed to make room: “bare 0”.")
    assert taken(page) == {TITLE: 2} | {f"marked {i}": 1 for i in range(3)} | {
        "bare 1": 0,
        "bare 2": 0,
    }
    file = saved(page, "#unkept >> text=Save all in a file", tmp_path)
    assert "bare 0" in {
        draft["title"] for draft in json.loads(file.read_text())["drafts"]
    }
    page.click("#unkept >> text=Close")
    expect(told).to_be_hidden()


def test_a_draft_is_the_same_while_half_of_its_title_or_abstract_stays(
    page: Any,
) -> None:
    cases = [
        ((TITLE, ABSTRACT), (OTHER, ABSTRACT), True),
        ((TITLE, ABSTRACT), (TITLE, OTHER_ABSTRACT), True),
        ((TITLE, ABSTRACT), (OTHER, OTHER_ABSTRACT), False),
        ((TITLE, ABSTRACT), ("", ABSTRACT), True),
        ((TITLE, ABSTRACT), (TITLE, ""), True),
        ((TITLE, ABSTRACT), ("", OTHER_ABSTRACT), False),
        (("", ABSTRACT), (OTHER, ABSTRACT), True),
        (("", ABSTRACT), (OTHER, OTHER_ABSTRACT), False),
        ((TITLE, ""), ("Dense passages", ""), True),  # 2 of 4 words stay
        ((TITLE, ""), ("Dense maps", ""), False),  # 1 of 4 words stays
        (("密集段落检索方法", ""), ("密集段落检索的新方法", ""), True),  # no spaces
        ((TITLE, ABSTRACT), ("密集检索", "我们训练双编码器用于开放域问答。"), False),
        (
            ("ﬁne-tuning naïve encoders", ""),
            ("FINE-TUNING NAI\u0308VE ENCODERS", ""),
            True,
        ),
    ]

    found = page.evaluate(
        """async cases => { const { isSame } = await import("/static/text.js");
        return cases.map(texts => isSame(...texts.map(([title, abstract]) => ({ title, abstract })))); }""",
        [case[:2] for case in cases],
    )

    assert found == [is_same for *_, is_same in cases]


def test_a_new_title_keeps_the_shelf_and_a_new_text_leaves_it_with_its_draft(
    page: Any,
) -> None:
    find(page)
    page.click(TAKE)
    page.locator("#shelf textarea").fill("For section 2")

    edit(page)
    page.fill("#title", OTHER)
    page.press("#title", "Tab")
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("papers")
    expect(page.locator(TAKEN)).to_have_count(1)
    edit(page)
    page.fill("#abstract", OTHER_ABSTRACT)
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("papers")
    expect(page.locator(TAKEN)).to_have_count(1)
    expect(page.locator("#question")).to_be_empty()
    assert taken(page) == {OTHER: 1}

    edit(page)
    page.fill("#title", TITLE)
    page.fill("#abstract", "")
    page.fill("#abstract", ABSTRACT)
    page.reload()  # before a search, and in the middle of it: it is searched then
    expect(page.locator("#question")).to_contain_text(
        f"“{OTHER}” keeps its own, under Drafts"
    )
    expect(page.locator(TAKEN)).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("papers")
    # the first is that of the other shelf
    page.click(TAKE.replace("nth=0", "nth=1"), force=True)
    assert taken(page) == {OTHER: 1, TITLE: 1}
    page.click("#question button")
    # and the mark that came after the question
    expect(page.locator(TAKEN)).to_have_count(2)
    assert taken(page) == {TITLE: 2}


@pytest.mark.slow
def test_the_former_draft_has_its_last_words_and_back_leads_to_its_shelf(
    page: Any,
) -> None:
    find(page)
    page.click(TAKE)
    edit(page)
    page.fill("#abstract", f"{ABSTRACT} And more.")
    page.press("#abstract", "Tab")

    file = f"---\ntitle: {OTHER}\n---\n\n# Abstract\n\n{OTHER_ABSTRACT}\n".encode()
    page.set_input_files(
        "#file", files=[{"name": "a.md", "mimeType": "", "buffer": file}]
    )
    expect(page.locator("#title")).to_have_value(OTHER)
    expect(page.locator("#question")).to_contain_text(f"“{TITLE}” keeps its own")
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("papers")
    expect(page.locator(TAKEN)).to_have_count(0)
    page.go_back()

    expect(page.locator(TAKEN)).to_have_count(1)
    expect(page.locator("#abstract")).to_have_value(f"{ABSTRACT} And more.")
    expect(page.locator("#question")).to_be_empty()
    edit(page)
    page.focus("#title")  # typed one after the other, as authors do
    page.fill("#title", OTHER)
    page.focus("#abstract")
    page.fill("#abstract", OTHER_ABSTRACT)
    page.click("#find")
    expect(page.locator("#question")).to_contain_text(f"“{TITLE}” keeps its own")
    assert taken(page) == {TITLE: 1, OTHER: 0}


# Tabs, and a storage that others change


@pytest.mark.slow
def test_two_tabs_that_do_not_hear_of_each_other_lose_no_mark(
    page: Any, address: str
) -> None:
    find(page)
    for _ in range(2):
        page.click(TAKE)
    notes = page.locator("#shelf textarea")
    notes.first.fill("Mine")
    page.evaluate(
        ELSEWHERE,
        """const { taken, hidden, cited } = draft.marks.sample;
        draft.yearMin = 1990;
        taken[0].note = "Mine, and theirs";
        taken.splice(1, 1);
        cited.push({ id: "elsewhere", title: "Marked elsewhere" });""",
    )

    page.click(HIDE)

    expect(page.locator("#known")).to_contain_text("Marked elsewhere")
    expect(page.locator(TAKEN)).to_have_count(1)
    expect(page.locator("#hidden li")).to_have_count(1)
    expect(notes).to_have_value("Mine, and theirs")
    page.evaluate(ELSEWHERE, "draft.marks.sample.taken[0].note = 'Theirs'")
    notes.fill("Of mine")
    expect(notes).to_have_value("Of mine\nTheirs")
    [draft] = page.evaluate(RECORDS)
    assert draft["yearMin"] == 1990
    assert {kind: len(papers) for kind, papers in draft["marks"]["sample"].items()} == {
        "taken": 1,
        "cited": 1,
        "hidden": 1,
    }


def test_a_tab_that_only_loads_writes_nothing_and_has_its_draft(page: Any) -> None:
    find(page)
    page.click(HIDE)  # so that the next list has another paper
    before = page.evaluate(RECORDS)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#status")).to_contain_text("papers")
    assert other.evaluate(RECORDS) == before

    page.click("#new")
    find(page, {"#title": OTHER})
    other.reload()
    expect(other.locator("#title")).to_have_value(TITLE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    ["localStorage.clear()", "document.querySelector('#drafts button[title]').click()"],
)
def test_a_draft_that_goes_elsewhere_stays_in_the_tab_that_has_it_open(
    page: Any, address: str, how: str
) -> None:
    find(page)
    page.click(TAKE)
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator("#status")).to_contain_text("papers")
    other.click("#open-drafts")

    edit(page)
    page.locator("#abstract").press_sequentially("And")
    other.evaluate(how)

    told = page.locator("#unkept")
    expect(told).to_contain_text(
        "Removed in another tab or browser, or with the data of this browser. Only here: this draft."
    )
    expect(page.locator("#abstract")).to_have_value(f"{ABSTRACT}And")
    expect(page.locator(TAKEN)).to_have_count(1)
    assert TITLE not in taken(page)
    page.click("#unkept >> text=Keep it")
    expect(told).to_be_hidden()
    assert taken(page)[TITLE] == 1


@pytest.mark.slow
def test_a_record_that_breaks_is_set_apart_and_in_the_file(
    page: Any, tmp_path: Path
) -> None:
    find(page)
    page.click(TAKE)
    page.evaluate(COPY, [3, "copy", False])
    for i, text in enumerate(('{"id": "copy0", "marks"', "7", '{"id": "another"}')):
        page.evaluate(
            "([i, text]) => localStorage.setItem(`citerec:draft:copy${i}`, text)",
            [i, text],
        )

    page.reload()

    expect(page.locator("#unkept")).to_contain_text(
        "Could not be read, and is set aside: 3 records."
    )
    file = json.loads(
        saved(page, "#unkept >> text=Save all in a file", tmp_path).read_text()
    )
    assert sorted(file["broken"].values()) == [
        "7",
        '{"id": "another"}',
        '{"id": "copy0", "marks"',
    ]
    page.reload()
    expect(page.locator("#unkept")).to_be_hidden()  # it is told once
    page.evaluate(
        "() => Object.keys(localStorage).forEach(key => localStorage.setItem(key, '{'))"
    )
    page.click(TAKE)  # while it is open, too
    expect(page.locator("#unkept")).to_contain_text("1 record")
    assert taken(page) == {TITLE: 2}


# The file


@pytest.mark.slow
def test_a_file_of_all_drafts_is_opened_elsewhere_and_where_it_was_saved(
    browser: Any, page: Any, address: str, tmp_path: Path
) -> None:
    note = "A huge note. " * 20_000  # 260,000 characters
    find(page)
    page.click(TAKE)
    page.evaluate(COPY, [40, "copy", False])
    page.locator("#shelf textarea").fill(note)
    expect(page.locator("#shelf li .hint").last).to_contain_text(
        "first 10,000 characters"
    )
    page.click("#open-drafts")
    file = saved(page, "#save-drafts", tmp_path)
    page.keyboard.press("Escape")

    page.click(TAKE)
    page.set_input_files("#file", files=[file])
    expect(page.locator("#toast")).to_contain_text(
        "0 drafts added; 41 were here already"
    )
    expect(page.locator(TAKEN)).to_have_count(2)
    expect(page.locator("#shelf textarea").first).to_have_value(note)

    drafts = json.loads(file.read_text())
    drafts["drafts"] += [
        {"id": 7},
        "text",
        None,
        {"id": "bad", "marks": {"sample": []}},
    ]
    file.write_text(json.dumps(drafts))
    with open_page(browser, address) as other:
        find(other, {"#title": OTHER})
        other.click(TAKE)
        other.set_input_files("#file", files=[file])
        expect(other.locator("#toast")).to_contain_text(
            "41 drafts added; 0 were here already"
        )
        expect(other.locator("#read")).to_contain_text(
            "4 drafts of the file could not be read"
        )
        expect(other.locator("#drafts li")).to_have_count(42)
        assert taken(other) == {OTHER: 1, TITLE: 1} | {
            f"copy {i}": 1 for i in range(40)
        }
