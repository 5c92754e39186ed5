"""A library that lives: `citerec library add` and `update`, from a Zotero that runs; papers are saved to it."""

import json
from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.documents import whole_text
from support.types import Invoke, MonkeyPatch
from support.zotero_server import ZoteroServer, zotero

from citerec import Recommender
from citerec.build.index import BuildConfig, build_index
from citerec.collect import zotero as client
from citerec.collect.zotero import ITEMS, save_papers
from citerec.encode.encoder import TransformerEncoder, Vectors
from citerec.errors import CiterecError, ConfigError
from citerec.files import cache as files_cache
from citerec.index.folder import open_index
from citerec.index.vectors import vectors_of
from citerec.types import Paper

BASIL = "Sacred basil heals the wounds of laboratory mice"
MINT = "Wild mint repels the larvae of many mosquitoes"
SAGE = "Common sage improves the memory of older adults"
INDEX = Path("indexes/zotero")
NOTHING = "indexes/zotero: 0 new, 0 changed, 0 deleted\n"
LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def running(
    tmp_path: Path, monkeypatch: MonkeyPatch, java: None
) -> Generator[ZoteroServer]:
    """A Zotero with two papers, which were edited long ago; the tests run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files_cache, "cache_folder", lambda: tmp_path / "cache")
    with zotero() as (server, address):
        monkeypatch.setenv(client.VARIABLE, address)
        server.library.clock = LONG_AGO
        server.library.add("MINT0001", title=MINT, date="2021-05", DOI="10.1234/mint")
        server.library.add("SAGE0001", title=SAGE, date="2021")
        server.library.sync()
        server.library.clock = None
        yield server


@pytest.fixture
def added(running: ZoteroServer, invoke: Invoke) -> ZoteroServer:
    code, _, errors = invoke("library", "add", "zotero", "--encoder", "none")
    assert code == 0, errors
    return running


def titles() -> dict[str, str]:
    papers = open_index(INDEX).papers
    return {paper.id: paper.title for paper in papers.at(range(len(papers))).values()}


# --- add


def test_the_library_of_a_zotero_becomes_an_index(
    running: ZoteroServer, invoke: Invoke
) -> None:
    running.library.add(
        "BASIL001",
        itemType="conferencePaper",
        title=BASIL,
        creators=[
            {"creatorType": "author", "firstName": "Ada", "lastName": "Lovelace"},
            {"creatorType": "author", "name": "The Basil Group"},
            {"creatorType": "editor", "firstName": "Ed", "lastName": "Itor"},
        ],
        abstractNote="Mice heal.",
        proceedingsTitle="BASIL '21",
        extra="DOI: 10.1234/basil",
    )
    running.library.add(
        "PRESS001",
        itemType="patent",
        title="A press for the oil of sage",
        issueDate="2003-06-10",
        creators=[
            {"creatorType": "attorneyAgent", "name": "Turing"},
            {"creatorType": "inventor", "firstName": "Grace", "lastName": "Hopper"},
        ],
    )
    running.library.add("NOTE0001", itemType="note", note="Read this")
    running.library.add("TRASH001", title="Nobody needs this paper")
    running.library.trash("TRASH001")

    code, lines, _ = invoke("library", "add", "zotero", "--encoder", "none")

    assert code == 0
    assert lines.startswith("indexes/zotero  (library)\n           4  papers\n")
    others = {"PRESS001": "A press for the oil of sage", "SAGE0001": SAGE}
    assert titles() == {"BASIL001": BASIL, "MINT0001": MINT, **others}
    papers = open_index(INDEX).papers
    [row, press] = papers.rows_of(["BASIL001", "PRESS001"]).tolist()
    paper = papers.at([row])[row]
    patent = papers.at([press])[press]
    assert (patent.authors, patent.year) == (("Grace Hopper",), 2003)
    assert paper.authors == ("Ada Lovelace", "The Basil Group")
    assert (paper.venue, paper.doi, paper.type) == (
        "BASIL '21",
        "10.1234/basil",
        "conferencePaper",
    )


def test_attached_files_become_texts_and_citations(
    running: ZoteroServer, invoke: Invoke, tmp_path: Path
) -> None:
    other = "3. Other N. A book that nobody here has, volume 3. 1999."
    text = "Leaves of many plants heal wounds [1]. Nothing is cited in this sentence."
    file = tmp_path / "a sage.pdf"
    references = [f"1. Hopper G. {MINT}. J Inv Plants. 2021;4:1-5.", other, other]
    file.write_bytes(whole_text(SAGE, text, references))
    running.library.add(
        "FILE0001", itemType="attachment", parentItem="SAGE0001", file=file.as_uri()
    )

    code, lines, _ = invoke("library", "add", "zotero", "--encoder", "none")

    assert code == 0
    assert "1  citations among them" in lines
    assert open_index(INDEX).papers.rows_of(["SAGE0001"]) == [1]


def test_a_zotero_that_does_not_run_or_refuses_is_one_clear_line(
    running: ZoteroServer, invoke: Invoke, monkeypatch: MonkeyPatch
) -> None:
    running.is_allowed = False
    arguments = ("library", "add", "zotero", "--encoder", "none")
    refused = invoke(*arguments)
    monkeypatch.setenv(client.VARIABLE, "http://127.0.0.1:9")
    silent = invoke(*arguments)
    monkeypatch.setenv(client.VARIABLE, "https://api.zotero.org")
    elsewhere = invoke(*arguments)

    for (code, lines, errors), stated in (
        (refused, "in its settings, under Advanced, tick 'Allow other applications"),
        (silent, "Zotero does not answer at http://127.0.0.1:9, nothing was changed"),
        (elsewhere, "is https://api.zotero.org, which is not on this machine"),
    ):
        assert (code, lines) == (2, "")
        assert stated in errors
        assert errors.count("\n") == 1
    assert not Path("corpora").exists()
    assert not INDEX.exists()


# --- update


def test_an_update_follows_what_is_new_changed_trashed_and_deleted(
    added: ZoteroServer, invoke: Invoke
) -> None:
    library = added.library
    library.add("BASIL001", title=BASIL)
    library.edit("MINT0001", date="2022")  # not synchronised: no version changes
    library.trash("SAGE0001")

    first = invoke("library", "update")
    second = invoke("library", "update", "zotero")
    library.trash("SAGE0001", back=True)
    library.erase("BASIL001")
    third = invoke("library", "update")

    assert first[:2] == (0, "indexes/zotero: 1 new, 1 changed, 1 deleted\n")
    assert second[:2] == (0, NOTHING)
    assert third[:2] == (0, "indexes/zotero: 1 new, 0 changed, 1 deleted\n")
    assert titles() == {"MINT0001": MINT, "SAGE0001": SAGE}


def test_an_edit_that_comes_from_another_computer_is_found_by_its_version(
    added: ZoteroServer, invoke: Invoke
) -> None:
    added.library.clock = LONG_AGO + timedelta(days=9)  # before the last visit
    added.library.edit("MINT0001", title=f"{MINT} in spring")
    added.library.sync()

    assert invoke("library", "update")[1] == (
        "indexes/zotero: 0 new, 1 changed, 0 deleted\n"
    )
    assert titles()["MINT0001"] == f"{MINT} in spring"


def test_an_update_asks_for_changed_items_alone(
    running: ZoteroServer, invoke: Invoke, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    running.library.clock = LONG_AGO
    for number in range(7):
        running.library.add(f"MORE{number:04}", title=f"Paper {number} of many")
    running.library.sync()
    running.library.clock = None

    invoke("library", "add", "zotero", "--encoder", "none")
    pages = [asked["start"] for asked in running.asked if "start" in asked]
    running.asked.clear()
    running.library.add("BASIL001", title=BASIL)
    code, line, _ = invoke("library", "update")

    assert pages == ["0", "2", "4", "6", "8"]  # of nine items
    assert (code, line) == (0, "indexes/zotero: 1 new, 0 changed, 0 deleted\n")
    assert [asked.get("start", asked.get("format")) for asked in running.asked] == [
        "0",  # the new one, and one that is older than the last visit
        "versions",
    ]
    assert len(titles()) == 10


def test_an_updated_index_gives_the_answers_of_a_new_build(
    added: ZoteroServer, invoke: Invoke, tmp_path: Path
) -> None:
    library = added.library
    other = "3. Other N. A book that nobody here has, volume 3. 1999."
    references = [f"1. Lovelace A. {BASIL}. J Inv Plants. 2021;3:7-19.", other, other]
    text = "Leaves of many plants heal wounds [1]. Nothing is cited in this sentence."
    file = tmp_path / "sage.pdf"
    file.write_bytes(whole_text(SAGE, text, references))
    library.add(
        "FILE0001", itemType="attachment", parentItem="SAGE0001", file=file.as_uri()
    )
    invoke("library", "update")  # what the text cites is not in the library yet
    library.add("BASIL001", title=BASIL, date="2021")
    library.erase("MINT0001")

    invoke("library", "update")
    build_index("corpora/zotero", "fresh", BuildConfig())

    updated = open_index(INDEX)
    fresh = open_index("fresh")
    sums, expected = (  # Lucene gives each of its segments an id
        {
            name: sha
            for name, sha in index.manifest.checksums.items()
            if "bm25/" not in name
        }
        for index in (updated, fresh)
    )
    assert sums == expected
    assert updated.manifest.counts == fresh.manifest.counts
    assert len(updated.graph.indices) == 1  # sage cites basil, which came later
    draft = "What heals the wounds of mice"
    lists = [Recommender(index).recommend(title=draft) for index in (updated, fresh)]
    assert [item.score for item in lists[0]] == [item.score for item in lists[1]]


def test_only_new_texts_are_encoded_and_the_vectors_are_those_of_a_new_build(
    running: ZoteroServer, invoke: Invoke, tiny_model: str, monkeypatch: MonkeyPatch
) -> None:
    encoded = list[str]()
    encode = TransformerEncoder.encode

    def counted(
        self: TransformerEncoder, papers: Sequence[Paper], *more: Any
    ) -> Vectors:
        encoded.extend(paper.id for paper in papers)
        return encode(self, papers, *more)

    monkeypatch.setenv("CITEREC_DTYPE", "float32")  # as few texts are encoded
    invoke("library", "add", "zotero", "--encoder", tiny_model)
    running.library.add("BASIL001", title=BASIL)
    running.library.trash("MINT0001")
    with monkeypatch.context() as patched:
        patched.setattr(TransformerEncoder, "encode", counted)
        code, line, errors = invoke("library", "update")
    build_index("corpora/zotero", "fresh", BuildConfig(encoder=tiny_model))

    assert (code, line) == (0, "indexes/zotero: 1 new, 0 changed, 1 deleted\n"), errors
    assert encoded == ["BASIL001"]
    updated, fresh = (
        vectors_of(open_index(index)).vectors(np.arange(2))
        for index in (INDEX, "fresh")
    )
    assert updated == pytest.approx(fresh, abs=1e-5)


def test_marks_of_retracted_papers_stay(running: ZoteroServer, invoke: Invoke) -> None:
    table = Path("retractions.csv")
    table.write_text(
        "OriginalPaperDOI,RetractionNature\n10.1234/MINT,Retraction\n", encoding="utf-8"
    )

    invoke("library", "add", "zotero", "--encoder", "none", "--retracted", table)
    running.library.add("BASIL001", title=BASIL)
    invoke("library", "update")

    papers = open_index(INDEX).papers
    assert papers.ids_at(papers.retracted) == ["MINT0001"]


def test_nothing_is_lost_if_zotero_ends_meanwhile(
    added: ZoteroServer, invoke: Invoke
) -> None:
    before = Path("corpora/zotero", ITEMS).read_bytes()
    added.library.add("BASIL001", title=BASIL)
    for answers in (0, 1):
        added.ends_after = answers

        code, line, errors = invoke("library", "update")

        assert (code, line) == (2, "")
        assert "nothing was changed: start Zotero, then try again" in errors
        assert Path("corpora/zotero", ITEMS).read_bytes() == before
        assert titles().keys() == {"MINT0001", "SAGE0001"}
    added.ends_after = None
    assert invoke("library", "update")[1] == (
        "indexes/zotero: 1 new, 0 changed, 0 deleted\n"
    )


def test_an_update_that_ended_before_its_build_is_made_up_for(
    added: ZoteroServer, invoke: Invoke
) -> None:
    added.library.add("BASIL001", title=BASIL)
    client.fetch_library(Path("corpora/zotero"), lambda task, done, total: None)

    assert invoke("library", "update")[1] == (
        "indexes/zotero: 1 new, 0 changed, 0 deleted\n"
    )


# --- libraries that are files


def test_a_bibliography_is_followed_by_its_content(
    invoke: Invoke, tmp_path: Path, java: None
) -> None:
    bib = tmp_path / "refs.bib"
    bib.write_text(f"@article{{mint, title = {{{MINT}}}}}\n", encoding="utf-8")
    assert invoke("library", "add", "refs.bib", "--encoder", "none")[0] == 0
    same = invoke("library", "update")
    bib.write_text(
        f"@article{{mint, title = {{{MINT}}}, year = 2021}}\n"
        f"@article{{sage, title = {{{SAGE}}}}}\n@article{{broken, year = 2021}}\n",
        encoding="utf-8",
    )

    code, line, errors = invoke("library", "update")

    assert same[1] == "indexes/refs: 0 new, 0 changed, 0 deleted\n"
    assert (code, line) == (0, "indexes/refs: 1 new, 1 changed, 0 deleted\n")
    assert "this record has no title" in errors


def test_an_index_that_was_appended_to_is_not_updated(
    invoke: Invoke, tmp_path: Path, java: None
) -> None:
    for name, title in (("refs", MINT), ("more", SAGE)):
        text = f"@article{{{name}, title = {{{title}}}}}\n"
        (tmp_path / f"{name}.bib").write_text(text, encoding="utf-8")
    invoke("library", "add", "refs.bib", "--encoder", "none")
    invoke("index", "more.bib", "--append", "--index", "indexes/refs")

    code, _, errors = invoke("library", "update")

    assert code == 2
    assert (
        "was changed by --append, --delete or --retracted, which an update would"
        in errors
    )


# --- papers go back

TREES = Paper(
    id="p1",
    title="On the Maps of Trees",
    abstract="Trees are drawn.",
    year=2020,
    authors=("Ada Lovelace",),
    venue="Journal of Maps",
    doi="10.1234/trees",
)


def test_papers_are_saved_to_zotero_once(running: ZoteroServer) -> None:
    mint = Paper(id="x", title=f"{MINT}.".upper())  # it is there

    assert save_papers([TREES, mint], {"p1": "for section 2"}) == 1
    assert save_papers([TREES, mint], {}) == 0

    [item] = [
        item.data
        for key, item in running.library.items.items()
        if key.startswith("NEW")
    ]
    assert (item["title"], item["abstractNote"]) == (TREES.title, "")  # its licence
    assert (item["DOI"], item["date"], item["extra"]) == (
        "10.1234/trees",
        "2020",
        "for section 2",
    )


def test_a_library_that_must_not_change_is_one_clear_line(
    running: ZoteroServer,
) -> None:
    running.is_editable = False

    with pytest.raises(CiterecError, match="select a library there that you may"):
        save_papers([TREES], {})


def test_a_zotero_that_answers_something_else_is_one_sentence_for_a_person(
    running: ZoteroServer,
) -> None:
    messages = list[str]()
    for status, body in ((404, b""), (500, b""), (200, b"<html>"), (200, b"[1]")):
        running.always = (status, body)
        with pytest.raises(CiterecError) as caught:
            save_papers([TREES], {})
        messages.append(str(caught.value))

    address = f"http://127.0.0.1:{running.server_address[1]}"
    other = f"what answers at {address} is not Zotero: end that program, start Zotero, then try again"
    assert messages == [
        "this Zotero has no local API, which came with version 7: update Zotero, then try again",
        "Zotero answers with an error (HTTP 500): start Zotero anew, then try again",
        other,
        other,
    ]


def test_no_other_machine_is_asked(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv(client.VARIABLE, "http://192.168.0.9:23119")

    with pytest.raises(ConfigError, match="not on this machine"):
        save_papers([TREES], {})


def test_a_shelf_goes_to_zotero_and_into_a_bibliography(
    running: ZoteroServer, sample_place: Path, invoke: Invoke
) -> None:
    paper = {"id": "khattab2020colbert", "note": "for section 2"}
    shelf = {"citerec": "shelf", "papers": [paper]}
    Path("shelf.json").write_text(json.dumps(shelf), encoding="utf-8")
    Path("refs.bib").write_text("% mine\n", encoding="utf-8")
    arguments = ("export", "shelf.json", "--zotero", "--append", "refs.bib")

    code, lines, errors = invoke(*arguments)
    again = invoke(*arguments)

    assert (code, lines) == (0, "")
    assert "1 paper added to refs.bib: khattab2020colbert" in errors
    assert "1 paper saved to Zotero; it had 0\n" in errors
    assert "0 papers saved to Zotero; it had 1\n" in again[2]
    text = Path("refs.bib").read_text(encoding="utf-8")
    assert text.startswith("% mine\n")
    assert text.count("annotation = {for section 2}") == 1


# --- the server


def test_a_server_of_this_machine_saves_to_zotero_and_says_what_is_new(
    added: ZoteroServer, invoke: Invoke
) -> None:
    pytest.importorskip("uvicorn", reason="the server is not installed")
    from support.server import serving

    from citerec.serve import ServeConfig
    from citerec.serve.service import Service

    for number, title in enumerate((BASIL, TREES.title)):
        added.library.add(f"NEXT{number:04}", title=title)
    invoke("library", "update")
    added.library.erase("NEXT0001")
    outside = "@misc{own, title={A paper that this corpus does not have}}"
    body = {"ids": ["MINT0001", "NEXT0001"], "outside": outside}

    with serving(Service({"zotero": INDEX})) as server:
        [facts] = server.get("/v1/index").json()["indexes"]
        saved = server.post("/v1/zotero", json=body | {"notes": {"own": "read"}})
        unknown = server.post("/v1/zotero", json={"ids": ["NONE0001"]})
        added.is_allowed = False
        refused = server.post("/v1/zotero", json=body)
    open_to_all = ServeConfig(host="0.0.0.0", tokens=("t" * 16,))
    with serving(Service({"zotero": INDEX}, settings=open_to_all)) as server:
        server.headers["authorization"] = f"Bearer {'t' * 16}"
        far = server.post("/v1/zotero", json=body)

    assert (facts["papers"], facts["new"]) == (4, 2)
    assert saved.json() == {"saved": 2, "known": 1}
    items = added.library.items.values()
    assert "read" in {item.data.get("extra") for item in items}
    assert (unknown.status_code, refused.status_code, far.status_code) == (
        404,
        424,
        404,
    )
    assert "tick 'Allow other applications" in refused.json()["detail"]
    assert "this machine alone" in far.json()["detail"]


# --- large libraries


def test_a_library_of_5000_papers_is_read_once_and_followed_in_seconds(
    running: ZoteroServer, invoke: Invoke
) -> None:
    running.library.clock = LONG_AGO
    for number in range(5000):
        running.library.add(f"MANY{number:04}", title=f"Paper {number} on plants")
    running.library.sync()
    running.library.clock = None
    assert invoke("library", "add", "zotero", "--encoder", "none")[0] == 0
    for number in range(10):
        running.library.add(f"NEXT{number:04}", title=f"Later paper {number}")

    line = invoke("library", "update")[1]

    assert line == "indexes/zotero: 10 new, 0 changed, 0 deleted\n"
    assert len(titles()) == len(running.library.items) == 5012
