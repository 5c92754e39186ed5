"""Files that are given to the page."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import (
    TITLE,
    expect,
)

from citerec.errors import BadInputError
from citerec.index.folder import IndexFolder
from citerec.serve.page import read_uploads
from citerec.serve.service import DEFAULT, OpenIndex
from citerec.serve.uploads import Upload


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
    assert any("outside.bib" in line for line in read["references"])
    with pytest.raises(BadInputError, match="damaged or encrypted"):
        read_uploads(
            [Upload("overleaf.zip", archive.getvalue()[:-40] + b"PK\x05\x06")], opened
        )


@pytest.mark.slow
def test_a_bad_file_gives_one_clear_message_and_loses_nothing(page: Any) -> None:
    page.fill("#title", TITLE)

    for name, data, message in [
        ("draft.pdf", b"%PDF-1.4 broken", "draft.pdf: this is a PDF"),
        (
            "big.pdf",
            bytes(17 * 2**20),
            "at most 16 MB in all. Save without pictures, or paste title and abstract",
        ),
    ]:
        page.set_input_files(
            "#file", files=[{"name": name, "mimeType": "", "buffer": data}]
        )
        expect(page.locator("#read .fault")).to_contain_text(message)
        assert "--" not in page.inner_text("#read .fault")
    expect(page.locator("#title")).to_have_value(TITLE)


def test_a_search_says_that_a_file_is_still_being_read(page: Any) -> None:
    page.route("**/page/draft", lambda _: None)  # no answer comes

    page.set_input_files(
        "#file", files=[{"name": "draft.md", "mimeType": "", "buffer": b"# Maps"}]
    )
    page.click("#find")

    expect(page.locator("#toast")).to_have_text("Reading draft.md…")


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


def test_papers_that_a_file_cites_are_of_the_next_list(page: Any) -> None:
    again = page.locator("#again button")
    text = f"# {TITLE}\n\nAs others did [1].\n\n# References\n\n[1] Attention Is All You Need. 2017."
    file = {"name": "draft.md", "mimeType": "", "buffer": text.encode()}
    page.fill("#title", TITLE)
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("papers")

    page.set_input_files("#file", files=[file])
    expect(page.locator("#known li")).to_have_count(1)

    again.click()
    expect(again).to_be_hidden()
    expect(page.locator("#status")).to_contain_text("1 paper that you took or cite")
    page.click("#edit")
    page.click("#read >> text=Undo")
    expect(again).to_be_visible()


def test_a_list_is_checked_and_its_corrections_are_a_bib(
    page: Any, address: str, sample_index: IndexFolder
) -> None:
    text = """@misc{mine, title={Attention Is All You Need}, year=2018}
        @misc{other, title={A paper of elsewhere, with a long title}}"""
    file = {"name": "refs.bib", "mimeType": "", "buffer": text.encode()}

    page.set_input_files("#file", files=[file])
    page.click("#open-drafts")
    expect(page.locator("#drafts li .title")).to_have_text("refs.bib")
    page.keyboard.press("Escape")
    page.click("text=Check my list: 1 entry has a problem; 1 of 2 entries could")
    expect(page.locator("#check")).to_contain_text(
        "Year: the file has 2018, the corpus 2017"
    )
    expect(page.locator("#check summary")).to_contain_text(
        "1 entry not in this corpus, and not checked"
    )
    with page.expect_download() as download:
        page.click("[data-corrections]")

    corrected = Path(download.value.path()).read_text(encoding="utf-8")
    answer = httpx.post(f"{address}v1/check", json={"references": text}).json()
    assert corrected == "@misc{mine, title={Attention Is All You Need}, year={2017}}\n"
    assert answer["corrections"] == corrected
    assert (answer["entries"], answer["found"], answer["with_problem"]) == (2, 1, 1)
    assert answer["missing"] == ["A paper of elsewhere, with a long title"]


def test_a_list_has_one_count_and_a_broken_entry_one_message(page: Any) -> None:
    title = "Attention Is All You Need"
    text = f"""@misc{{a, title={{{title}}}}}
        @misc{{again, title={{{title}}}}}
        @misc{{other, title={{A paper of elsewhere}}}}
        @misc{{broken, title={{B
        @misc{{last, title={{A paper of elsewhere}}}}"""
    file = {"name": "refs.bib", "mimeType": "", "buffer": text.encode()}

    page.set_input_files("#file", files=[file])
    expect(page.locator("#read")).to_contain_text(
        "refs.bib: 5 references, 2 of them in this corpus; not found: A paper of elsewhere; line 4: entry 'broken'"
    )
    page.click("#open-check")

    expect(page.locator("#check h3 + p")).to_have_text(
        "5 entries; 2 could be compared with this corpus."
    )
    assert page.inner_text("#check").count("cannot be read") == 1

    page.keyboard.press("Escape")
    notes = {"name": "notes.txt", "mimeType": "", "buffer": b"Notes\n\nMaps of cattle."}
    page.set_input_files("#file", files=[notes])
    expect(page.locator("#read")).to_contain_text("no references were found")
    expect(page.locator("#open-check")).to_have_count(0)  # there is no list


@pytest.mark.parametrize(
    ("entries", "button", "line"),
    [
        (
            ["A paper of elsewhere, with a long title"],
            "0 of 1 entry could be compared with this corpus",
            "1 entry; 0 could be compared with this corpus.",
        ),
        (
            ["A paper of elsewhere, with a long title", "Attention Is All You Need"],
            "1 of 2 entries could be compared with this corpus",
            "2 entries; 1 could be compared with this corpus, and no difference was found.",
        ),
        (
            ["Attention Is All You Need"],
            "no problem was found",
            "1 entry; 1 could be compared with this corpus, and no difference was found.",
        ),
    ],
)
def test_a_list_has_no_problem_only_if_all_of_it_was_compared(
    page: Any, entries: list[str], button: str, line: str
) -> None:
    text = "".join(
        f"@misc{{of{n}, title={{{title}}}}}" for n, title in enumerate(entries)
    )
    file = {"name": "refs.bib", "mimeType": "", "buffer": text.encode()}

    page.set_input_files("#file", files=[file])
    page.click("#open-check")

    expect(page.locator("#open-check")).to_have_text(f"Check my list: {button}")
    expect(page.locator("#check h3 + p")).to_have_text(line)


def test_what_was_read_of_a_list_goes_with_its_corpus(page: Any) -> None:
    content = b"@misc{a, title={Attention Is All You Need}, year={2017}}\n"
    file = {"name": "refs.bib", "mimeType": "", "buffer": content}
    page.set_input_files("#file", [file])
    expect(page.locator("#read")).to_contain_text("1 of them in this corpus")
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("20 papers")

    page.select_option("#index", "again")

    expect(page.locator("#read")).to_contain_text("Read from refs.bib. Choose it again")
    expect(page.locator("#status")).to_have_text("")
    expect(page.locator("#toast")).to_contain_text("Write a title, or choose a file")
