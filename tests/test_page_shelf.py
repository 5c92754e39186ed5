"""The shelf of the page: what is on it, and how it leaves the page."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    TAKE,
    TITLE,
    expect,
    find,
    ids,
    open_page,
)
from support.server import listening
from support.types import Build, MonkeyPatch
from support.zotero_server import zotero

from citerec.build.index import BuildConfig, update_index
from citerec.corpus.lists import read_paper_list
from citerec.serve.service import Service

OTHER = "Colour maps for weather charts"


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
    page.click(TAKE)
    assert not {first, second} & {*ids(page)}
    page.locator("#shelf textarea").first.fill("For section 2: {ärger} & more")
    with page.expect_request("**/page/recommend") as sent:
        page.click("#again button")
    expect(page.locator("#status")).to_contain_text("papers")
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


def test_a_paper_that_no_corpus_has_is_kept_marked_and_exported(
    page: Any, tmp_path: Path
) -> None:
    find(page)
    page.click(TAKE)
    page.fill("#add", "https://doi.org/10.1234/nowhere")
    page.click("#outside")
    expect(page.locator("#shelf ol li")).to_have_count(2)
    page.fill(
        "#add",
        r"@article{mine20, title={Elsewhere {\"U}ber all}, author={Ada Ärger}, year=2020, journal={J}, volume=7}",
    )
    page.press("#add", "Enter")

    expect(page.locator("#shelf ol li").last).to_contain_text(
        "Elsewhere Über all outside this corpus"
    )
    page.locator("#shelf textarea").last.fill("For section 3")
    with page.expect_download() as download:
        page.click("[data-shelf=bibtex]")
    written = read_paper_list(
        download.value.path().rename(tmp_path / "shelf.bib")
    ).entries
    assert len(written) == 3
    assert written[1].dois == ("10.1234/nowhere",)
    assert (written[2].title, written[2].year) == ("Elsewhere Über all", 2020)
    text = (tmp_path / "shelf.bib").read_text(encoding="utf-8")
    assert "volume = {7}" in text
    assert "annotation = {For section 3}" in text
    with page.expect_request("**/page/recommend") as sent:
        page.click("#again button")
    assert len(sent.value.post_data_json["cited"]) == 1
    page.reload()
    expect(page.locator("#shelf ol li")).to_have_count(3)
    page.fill("#add", "@article{broken")
    page.press("#add", "Enter")
    expect(page.locator("#toast")).to_contain_text("outside")


def test_dois_are_counted_and_a_file_without_one_is_not_saved(page: Any) -> None:
    saved: list[Any] = []
    said = page.locator("#toast")

    def keep(download: Any) -> None:
        saved.append(download)

    def put(fields: str) -> None:
        page.fill("#add", f"@misc{{a, {fields}}}")
        page.press("#add", "Enter")
        expect(page.locator("#add")).to_have_value("")
        page.click("[data-shelf=doi]")

    page.on("download", keep)
    put("title={Without}")
    put("title={Bare}")
    expect(said).to_have_text(
        "No reference saved; 2 references left out, without a DOI: Without; Bare"
    )
    with page.expect_download() as waited:
        put("title={With}, doi={10.1234/one}")
    expect(said).to_contain_text("1 reference saved; 2 references left out")

    assert saved == [waited.value]
    assert waited.value.path().read_text() == "10.1234/one\n"


def test_the_shelf_is_saved_to_zotero(page: Any, monkeypatch: MonkeyPatch) -> None:
    find(page)
    page.click(TAKE)
    with zotero() as (server, address):
        monkeypatch.setenv("CITEREC_ZOTERO", address)

        page.click("#to-zotero")
        expect(page.locator("#toast")).to_contain_text("1 paper saved to Zotero")
        page.click("#to-zotero")
        expect(page.locator("#toast")).to_contain_text(
            "0 papers saved to Zotero; it had 1 already"
        )
        server.is_allowed = False
        page.click("#to-zotero")
        expect(page.locator("#toast")).to_contain_text("tick 'Allow other applications")

        assert len(server.library.items) == 1
    page.click("#to-zotero")
    expect(page.locator("#toast")).to_have_text(
        f"Zotero does not answer at {address}, nothing was changed: start Zotero, then try again"
    )


def test_the_corpus_says_what_the_last_update_of_a_library_added(
    browser: Any, build: Build, tmp_path: Path
) -> None:
    build([{"id": "a", "title": "Alpha"}])
    with (tmp_path / "made/corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('{"id": "b", "title": "Beta"}\n')
    update_index(tmp_path / "index", BuildConfig())
    service = Service({"mine": tmp_path / "index"})

    with listening(service) as address, open_page(browser, address) as opened:
        expect(opened.locator("#corpus-facts")).to_have_text("2 papers · 1 new")
    service.close()
