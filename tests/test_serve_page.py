"""The page at `/`: stories in a real browser, and what the server does for it."""

import gzip
import json
import re
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from support.types import Build

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    ABSTRACT,
    DRAFT,
    TITLE,
    axe_script,
    expect,
    find,
    free_port,
    ids,
    open_page,
)
from support.pages import NASTY
from support.server import listening

from citerec import serve
from citerec.corpus.lists import read_paper_list
from citerec.errors import BadInputError
from citerec.index.folder import IndexFolder
from citerec.serve import ServeConfig
from citerec.serve.page import read_uploads
from citerec.serve.requests import for_clients
from citerec.serve.service import DEFAULT, OpenIndex, Service
from citerec.serve.uploads import Upload

BOOKMARKLET = Path(__file__).parent.parent / "docs" / "recipes" / "bookmarklet.js"
BIDI = "safe \u202etxt.exe\u202c \u2066isolated\u2069"


def test_an_author_finds_marks_and_exports_papers(page: Any) -> None:
    find(page)
    first, second, *_ = ids(page)

    page.hover(".row >> nth=0")
    page.click(".row .act.take >> nth=0")
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator(f'.row[data-id="{first}"]')).to_have_count(0)
    page.check(f'.row[data-id="{second}"] input')
    with page.expect_download() as download:
        page.click("[data-save=bibtex]")

    assert second in Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == "references.bib"
    page.reload()  # the draft and the marks are in the browser
    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator(".row").first).to_be_visible()
    assert first not in ids(page)


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

    page.click("details.settings summary")
    page.fill("#year-min", "2010")
    page.fill("#year-max", "2015")
    page.press("#year-max", "Tab")
    page.click("#again button")  # the years ask again
    expect(page.locator("#status")).to_contain_text("ranked")
    assert {int(one) for one in page.locator(".row .year").all_inner_texts()} <= {
        *range(2010, 2016)
    }


def test_a_paper_that_the_author_cites_is_added_by_words_or_doi(page: Any) -> None:
    add, found = page.locator("#add"), page.locator("#add-list li")

    add.press_sequentially("attention is all")
    expect(found.first).to_be_visible()
    title = found.nth(1).inner_text().rsplit(" ", 1)[0]
    add.press("ArrowDown")
    expect(add).to_have_attribute("aria-activedescendant", "add-1")
    add.press("Enter")
    expect(page.locator("#known")).to_contain_text(title.strip())
    expect(add).to_have_value("")
    add.fill("https://doi.org/10.0000/nowhere")
    expect(page.locator(".adding .hint")).to_have_text("Not in this corpus.")


def test_taken_papers_stay_on_the_shelf_with_notes_and_leave_it_for_other_programs(
    browser: Any, page: Any, address: str, tmp_path: Path
) -> None:
    bibtex = pytest.importorskip("pybtex.database", reason="pybtex is not installed")
    find(page)
    first, second, *_ = ids(page)
    page.evaluate(
        "() => document.addEventListener('ZoteroItemUpdated', () => { document.title = 'Updated'; })"
    )
    page.focus(".row >> nth=0")
    page.keyboard.press("t")
    assert page.title() == "Updated"
    page.click(".row .act.take >> nth=0")
    assert not {first, second} & {*ids(page)}
    page.locator("#shelf textarea").first.fill("For section 2: {ärger} & more")
    with page.expect_request("**/page/recommend") as sent:
        page.click("#find")
    expect(page.locator("#status")).to_contain_text("after")
    assert sent.value.post_data_json["cited"] == [first, second]
    assert not {first, second} & {*ids(page)}

    def saved(button: str) -> Path:
        with page.expect_download() as download:
            page.click(button)
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    [key, _] = bibtex.parse_file(saved("[data-shelf=bibtex]")).entries
    own = f"@misc{{{key}, title={{A paper that this corpus does not have}}}}".encode()
    bib = {"name": "own.bib", "mimeType": "", "buffer": own}
    page.set_input_files("#file", files=[bib])
    expect(page.locator("#read")).to_contain_text("A list of references")
    entries = bibtex.parse_file(saved("[data-shelf=bibtex]")).entries
    assert key not in entries
    assert len(entries) == 2
    assert any(
        "section 2" in one.fields.get("annotation", "") for one in entries.values()
    )
    assert page.locator(".Z3988").count() == 2
    page.select_option("#style", label="Another style…")
    page.fill("#other-style", "Elsevier Harvard")
    page.press("#other-style", "Enter")
    formatted = saved("[data-shelf=html]").read_text(encoding="utf-8")
    assert formatted.count("csl-entry") == 2
    shelf = saved("#save-shelf")
    assert [one.ids[0] for one in read_paper_list(shelf).entries] == [first, second]

    with open_page(browser, address) as other:
        find(other, {"#title": OTHER})
        other.set_input_files("#file", files=[shelf])
        expect(other.locator("#shelf li")).to_have_count(2)
        expect(other.locator("#title")).to_have_value(TITLE)
        note = other.locator("#shelf textarea").first
        expect(note).to_have_value("For section 2: {ärger} & more")
        other.locator("#shelf li button").first.click()
        other.click("#toast >> text=Undo")
        other.reload()
        expect(other.locator("#shelf textarea").last).to_have_value(
            re.compile("section 2")
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
    claim, open_claim = (
        page.locator(".claim"),
        page.locator(".claim[aria-expanded=true]"),
    )
    find(page)
    listed = ids(page)

    page.set_input_files("#file", files=[file])
    page.click("#each")
    expect(page.locator("#status")).to_have_text(
        "3 sentences of 8 may lack a reference."
    )
    expect(claim).to_have_count(3)
    text = page.inner_text("#where")
    # the cited one is there, and not marked
    assert text.index(CITED) < text.index(CLAIM)
    expect(page.locator(".rest summary")).to_have_text("2 sentences without a mark")
    expect(claim.nth(1)).to_contain_text(CLAIM)

    claim.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(open_claim).to_contain_text(CLAIM)
    papers = page.locator(".candidates li")
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


# What the server does for the page


def test_the_routes_of_the_page_answer_without_a_browser(address: str) -> None:
    body = {"title": TITLE, "abstract": ABSTRACT, "k": 5, "index": "again"}
    with httpx.Client(base_url=address, timeout=60) as client:
        page = client.get("/")
        script = client.get("/static/main.js")
        tag = {"If-None-Match": script.headers["etag"]}
        again = client.get("/static/main.js", headers=tag)
        missing = client.get("/static/none.js")
        shown = client.post("/page/recommend", json=body).json()
        late, plain = (
            client.post(path, json=body | {"year_max": 1800}).json()
            for path in ("/page/recommend", "/v1/recommend")
        )
        expected = client.post(
            "/v1/recommend", json={"title": TITLE, "abstract": ABSTRACT, "k": 5}
        )
        [answer] = expected.json()["answers"]
        found = [one["id"] for one in answer["results"]]
        rows = client.get(
            "/page/papers", params={"ids": [found[1], "none", found[0]]}
        ).json()
        broken = client.post(
            "/page/draft", files={"files": ("draft.docx", b"PK\x03\x04")}
        )

    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=", page.text)
    assert script.headers["content-type"].startswith("text/javascript")
    assert missing.status_code == 404
    assert (script.headers["content-encoding"], again.status_code) == ("gzip", 304)
    assert again.headers["content-security-policy"] == policy
    assert [row["id"] for row in shown["rows"]] == found
    assert "later than 1800" in late["empty_reason"]
    assert "change year_min or" in plain["answers"][0]["empty_reason"]
    assert [row["id"] for row in rows["rows"]] == [found[1], found[0]]
    assert broken.status_code == 422
    assert "--" not in broken.json()["detail"]


def test_the_files_of_the_page_are_small() -> None:
    folder = Path(serve.__file__).parent / "page"

    files = [
        one
        for one in folder.rglob("*")
        if one.suffix in {".html", ".css", ".js", ".svg"}
    ]

    assert sum(len(gzip.compress(one.read_bytes())) for one in files) < 150_000


def test_messages_name_keys_in_place_of_options() -> None:
    late = "all papers are later; give --year-max 1990 or a later year, or correct the draft's year"
    damaged = "it is damaged; pass its text: pdftotext paper.pdf - | citerec recommend --query -"

    assert for_clients(late) == late.replace("--year-max", "year_max")
    assert for_clients(damaged, "; paste its text") == "it is damaged; paste its text"


def test_a_zip_is_a_folder_and_each_list_in_it_counts(
    sample_index: IndexFolder,
) -> None:
    first, second, third = (sample_index.papers[row] for row in (3, 4, 5))
    main = (
        rb"\documentclass{article}\title{Maps of trees}\begin{document}\maketitle"
        rb"\begin{abstract}We draw trees as maps.\end{abstract}"
        rb"\input{parts/one}\bibliography{lists/my}\end{document}"
    )
    archive = BytesIO()
    with ZipFile(archive, "w") as file:
        file.writestr("work/main.tex", main)
        file.writestr("work/parts/one.tex", r"As in \cite{one}.")
        # a chapter
        file.writestr("work/two.tex", r"\documentclass[main]{subfiles}" + 500 * "A")
        file.writestr("work/lists/my.bib", f"@misc{{one, title={{{first.title}}}}}")
        file.writestr(
            "work/more.json", json.dumps([{"id": "z", "title": second.title}])
        )
        file.writestr("work/old.ris", f"TY  - JOUR\nTI  - {third.title}\nER  - \n")
        file.writestr("work/broken.json", "[{")
        file.writestr("../outside.bib", "@misc{two, title={Nowhere}}")

    opened = OpenIndex("sample", sample_index.path, DEFAULT)
    read = read_uploads([Upload("overleaf.zip", archive.getvalue())], opened)

    assert read["draft"]["title"] == "Maps of trees"
    assert {one["id"] for one in read["cited"]} == {first.id, second.id, third.id}
    assert any("broken.json" in line for line in read["unread"])
    assert any(
        "outside.bib is a link or outside the folder" in line for line in read["unread"]
    )
    with pytest.raises(BadInputError, match="damaged or encrypted"):
        read_uploads(
            [Upload("overleaf.zip", archive.getvalue()[:-40] + b"PK\x05\x06")], opened
        )


# Stopped searches, bad files, restarts


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
    page.hover(".row >> nth=0")
    page.click(".row >> nth=0 >> .act.hide")
    assert ids(page) == others
    page.click("#again button")
    expect(page.locator("#again")).to_be_hidden()
    expect(page.locator("#status")).to_contain_text("after")
    assert first not in ids(page)


@pytest.mark.slow
def test_a_bad_file_gives_one_clear_message_and_loses_nothing(page: Any) -> None:
    page.fill("#title", TITLE)

    for name, data, message in [
        ("draft.pdf", b"%PDF-1.4 broken", "draft.pdf: this is a PDF"),
        ("big.pdf", bytes(17 * 2**20), "too large"),
    ]:
        page.set_input_files(
            "#file", files=[{"name": name, "mimeType": "", "buffer": data}]
        )
        expect(page.locator("#read .fault")).to_contain_text(message)
        assert "--" not in page.inner_text("#read .fault")
    expect(page.locator("#title")).to_have_value(TITLE)


@pytest.mark.slow
def test_a_dropped_folder_and_a_pasted_reference_list_are_taken_for_what_they_are(
    page: Any, sample_index: IndexFolder, tmp_path: Path
) -> None:
    first, second, third = (sample_index.papers[row] for row in (5, 6, 7))
    folder = tmp_path / "work"
    (folder / "lists").mkdir(parents=True)
    (folder / "lists" / "refs.bib").write_text(f"@misc{{one, title={{{first.title}}}}}")
    (folder / "figure.png").write_bytes(bytes(17 * 2**20))
    (folder / "a").mkdir()
    for number in range(950):  # more than are sent at once, before the text
        (folder / "a" / f"{number}.png").touch()
    (folder / "main.tex").write_text(
        rf"\documentclass{{article}}\title{{{TITLE}}}\begin{{document}}\maketitle"
        r"As in \cite{one}.\bibliography{lists/refs}\end{document}"
    )
    session = page.context.new_cdp_session(page)
    dragged = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": 200, "y": 200, "data": dragged}
        session.send("Input.dispatchDragEvent", event)

    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("#known li")).to_have_count(1)

    printed = f"References\nLovelace, A. ({third.year}).\n    {third.title}. Journal, 3, 1–2.\n"
    for count, text in enumerate(
        (f"@misc{{two, title={{{second.title}}}}}", printed), start=2
    ):
        page.fill("#abstract", f"We draw maps.{text}")  # as a paste leaves it
        page.evaluate(
            """text => { const data = new DataTransfer(); data.setData("text/plain", text);
            document.querySelector("#abstract").dispatchEvent(new ClipboardEvent("paste",
            { clipboardData: data, bubbles: true, cancelable: true })); }""",
            text,
        )
        expect(page.locator("#known li")).to_have_count(count)
        expect(page.locator("#abstract")).to_have_value("We draw maps.")
    expect(page.locator("#title")).to_have_value(TITLE)
    page.click("#read >> text=Undo")
    expect(page.locator("#known li")).to_have_count(2)


@pytest.mark.slow
def test_a_search_survives_a_server_that_is_restarted(
    browser: Any, sample_index: IndexFolder
) -> None:
    port, service = free_port(), Service({"sample": sample_index.path})
    with listening(service, port) as address:
        session = open_page(browser, address)
        page = session.__enter__()
        find(page)
        page.click(".row .act.take >> nth=0", force=True)

    page.fill("#title", "Dense and sparse retrieval of passages")
    page.click("#find")
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    expect(page.locator("#trouble")).to_contain_text("kept")
    with listening(service, port):
        page.click("#trouble button")
        expect(page.locator("#status")).to_contain_text("after")

        expect(page.locator("#trouble")).to_be_hidden()
        expect(page.locator("#title")).to_have_value(
            "Dense and sparse retrieval of passages"
        )
        expect(page.locator("#shelf li")).to_have_count(1)
        session.__exit__(None, None, None)
    service.close()


# Hostile titles, filters, links, sentences, keys, accessibility


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
def test_years_and_venues_filter_the_list_and_count_what_is_left(page: Any) -> None:
    find(page)
    everything = len(ids(page))
    page.click("#explore-toggle")
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

    expect(page.locator("#status")).to_contain_text("after")
    expect(page.locator("#context")).to_have_value(sentence)
    expect(page.locator("[name=mode][value=sentence]")).to_be_checked()
    expect(page.locator(".row").first).to_contain_text("BERT")
    assert page.url == address  # the text is not kept in the history
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize(("status", "shown"), [(429, "after"), (504, "took too long")])
def test_a_busy_server_is_waited_for_and_a_late_answer_is_not(
    page: Any, status: int, shown: str
) -> None:
    requests: list[str] = []

    def refuse_the_first(route: Any) -> None:
        requests.append(route.request.url)
        if len(requests) == 1:
            headers = {"Retry-After": "1", "Content-Type": "application/problem+json"}
            route.fulfill(
                status=status, headers=headers, body='{"detail": "it took too long"}'
            )
        else:
            route.continue_()

    page.route("**/page/recommend", refuse_the_first)
    page.fill("#title", TITLE)
    page.click("#find")

    expect(page.locator("body")).to_contain_text(shown)
    expect(page.locator("#trouble")).to_be_hidden()
    assert len(requests) == (2 if status == 429 else 1)


@pytest.mark.slow
def test_a_browser_that_keeps_nothing_finds_papers(page: Any) -> None:
    for name in ("localStorage", "sessionStorage"):
        refused = "{ get() { throw new DOMException('', 'SecurityError'); } }"
        page.add_init_script(f"Object.defineProperty(window, '{name}', {refused})")
    page.reload()

    find(page)
    page.click(".row .act.take >> nth=0", force=True)

    told = "This browser keeps nothing of this page. In this tab alone, until it is closed: this draft"
    expect(page.locator("#unkept")).to_contain_text(told)
    page.click("#new")
    page.click("#open-drafts")
    page.click(f"#drafts >> text={TITLE}")
    expect(page.locator("#shelf li")).to_have_count(1)
    expect(page.locator(".row").first).to_be_visible()


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
        page.click(".row .act.take >> nth=0", force=True)
        expect(page.locator("#status")).to_contain_text("after")
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


# The figure

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
        page.click(".row .act.take >> nth=0", force=True)
        page.click("#explore-toggle")
        expect(page.locator(".figure .node")).to_have_count(50)
        expect(page.locator(".figure .node.own")).to_have_count(1)
        expect(page.locator("#prior a").first).to_be_visible()
        expect(page.locator("#derivative a").first).to_be_visible()

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

        prior = page.locator("#prior a").first
        title = prior.inner_text()
        prior.click()
        page.click("#details [data-name=cited]")
        page.keyboard.press("Escape")
        expect(page.locator(".figure .node.own")).to_have_count(2)
        expect(page.locator("#prior")).not_to_contain_text(title)


# Drafts, tabs, links and the back button


OTHER = "Colour maps for weather charts"
KEPT = "() => JSON.stringify(Object.entries(localStorage).sort())"
FOCUS = "() => document.activeElement.tagName"


@pytest.mark.slow
def test_marks_belong_to_a_draft(page: Any) -> None:
    find(page, {"#title": TITLE})
    page.click(".row .act.take >> nth=0", force=True)
    page.fill("#title", TITLE + " with few labels")
    page.press("#title", "Tab")
    expect(page.locator("#shelf li")).to_have_count(1)

    page.fill("#title", OTHER)
    page.click("#find")  # the question does not move it away from the pointer
    expect(page.locator("#question")).to_contain_text(
        f"“{TITLE} with few labels” keeps its own"
    )
    expect(page.locator("#status")).to_contain_text("after")
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
    expect(page.locator("#status")).to_contain_text("after")


@pytest.mark.slow
def test_a_draft_can_be_removed_and_brought_back(page: Any) -> None:
    find(page)
    page.click(".row .act.take >> nth=0", force=True)
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
    expect(page.locator("#status")).to_contain_text("after")


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
    page.click("#find")
    # not of today's first list
    expect(page.locator("#fresh")).to_contain_text("since yesterday")


@pytest.mark.slow
def test_two_tabs_do_not_overwrite_each_other(page: Any, address: str) -> None:
    find(page)
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator("#status")).to_contain_text("after")

    page.click(".row .act.take >> nth=0", force=True)
    expect(other.locator("#shelf li")).to_have_count(1)
    other.click(".row .act.hide >> nth=0", force=True)
    expect(page.locator("#hidden li")).to_have_count(1)
    other.click("#new")
    other.fill("#title", OTHER)
    page.click(".row .act.take >> nth=0", force=True)

    for tab, title, known in (page, TITLE, 2), (other, OTHER, 0):
        tab.reload()
        expect(tab.locator("#title")).to_have_value(title)
        expect(tab.locator("#shelf li")).to_have_count(known)


@pytest.mark.slow
def test_the_back_button_stays_on_the_page(page: Any) -> None:
    find(page)
    first = ids(page)
    page.fill("#title", "Dense retrieval of passages about proteins")
    page.click("#find")
    expect(page.locator("#find")).to_have_text("Find papers")
    expect(page.locator("#status")).to_contain_text("after")
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
        page.click(".row .act.take >> nth=0", force=True)
        page.click("#share")
        expect(page.locator("#toast")).to_contain_text("Link copied")
        link = page.evaluate("() => navigator.clipboard.readText()")
    assert "passages" not in link  # ids and settings, but no text
    assert "#index=sample" in link
    link += "&k=7&year_max=2001"

    with open_page(browser, address) as page:
        find(page, {"#title": OTHER})
        page.click(".row .act.hide >> nth=0", force=True)
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
        expect(page.locator("#status")).to_contain_text("after")
        expect(page.locator("#unkept")).to_be_hidden()

    asked: list[str] = []
    page.once("dialog", lambda one: (asked.append(one.message), one.dismiss()))
    page.click(".settings summary")
    page.click("#forget")
    expect(page.locator("#title")).to_have_value(TITLE)
    page.once("dialog", lambda one: (asked.append(one.message), one.accept()))
    page.click("#forget")
    expect(page.locator("#title")).to_have_value("")
    assert len(asked) == 2
    assert "draft:" not in page.evaluate(KEPT)


# The page is drawn anew at each change


@pytest.mark.slow
def test_drawing_anew_disturbs_nobody_who_types(page: Any) -> None:
    find(page)
    page.click("#title")
    page.keyboard.press("Home")
    page.keyboard.type("Very ")
    expect(page.locator("#title")).to_have_value(f"Very {TITLE}")
    page.keyboard.press("Control+z")
    expect(page.locator("#title")).to_have_value(TITLE)

    page.click(".settings summary")
    page.fill("#k", "")
    page.locator("#k").press_sequentially("50")
    expect(page.locator("#k")).to_have_value("50")
    page.locator("#year").press_sequentially("2300")  # too late: it does not count
    expect(page.locator("#year")).to_have_value("2300")
    page.press("#year", "Tab")
    expect(page.locator("#year")).to_have_value("")
    page.locator("#year").press_sequentially("2019")
    page.click("#new")
    expect(page.locator("#year")).to_have_value("")
    expect(page.locator("#k")).to_have_value("50")


# What axe does not see


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
    expect(page.locator("#status")).to_contain_text("after")
    assert page.evaluate(FOCUS) != "BODY"

    page.click("#explore-toggle")
    chip = page.locator("#venues .chip").first
    chip.press("Enter")
    expect(chip).to_be_focused()


@pytest.mark.slow
def test_it_fits_small_and_usual_windows(browser: Any, address: str) -> None:
    with open_page(browser, address, viewport={"width": 320, "height": 640}) as page:
        find(page)
        for place in ("#explore-toggle", ".settings summary", ".row .title >> nth=0"):
            page.click(place)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 320

    with open_page(browser, address, viewport={"width": 1280, "height": 720}) as page:
        find(page, {"#title": TITLE, "#abstract": ABSTRACT * 20})
        assert page.locator("#find").bounding_box()["y"] < 680
        third = page.locator(".row >> nth=2").bounding_box()
        assert third["y"] + third["height"] <= 720


@pytest.mark.slow
def test_a_server_with_tokens_names_its_indexes_only_to_those_who_have_one(
    browser: Any, sample_index: IndexFolder
) -> None:
    token = "a-token-of-24-characters"
    service = Service(
        {"secret": sample_index.path}, settings=ServeConfig(tokens=(token,))
    )
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
