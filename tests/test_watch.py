"""`citerec watch`: new papers for drafts as a feed and a mail, each once, whatever happens in between."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.browsing import free_port
from support.mail_server import receiving
from support.scholar_server import ScholarServer, papers_around
from support.types import Invoke, MonkeyPatch

from citerec.collect import client as client_module
from citerec.collect import watch as watch_module
from citerec.collect.feed import PASSWORD

ATOM = "{http://www.w3.org/2005/Atom}"
SEED = "khattab2020colbert"
TITLE = "Late interaction retrieval with quantised vectors"
# A run that is killed before it writes the file of a name.
KILLED = """
import os, sys
from pathlib import Path
name, *arguments = sys.argv[1:]
replace = Path.replace
Path.replace = lambda self, to: os._exit(9) if Path(to).name == name else replace(self, to)
from citerec.cli import main
main(arguments)
"""


def new(name: str, **more: Any) -> dict[str, Any]:
    """A paper that cites the seed, and that the draft needs."""
    title = f"Late interaction retrieval with vectors, part {name}"
    about = {"id": f"new{name}", "title": title, "doi": f"10.5555/new{name}"}
    return {**about, "year": 2026, "citations": [SEED], "authors": ["Ada Bell"], **more}


class Watched:
    """A corpus in the folder of a test, and a service that gets papers."""

    def __init__(self, folder: Path, server: ScholarServer, invoke: Invoke) -> None:
        self.folder, self.server, self.invoke = folder, server, invoke
        self.papers = papers_around(SEED)
        (folder / "draft.md").write_text(
            f"# {TITLE}\n\nWe compress late interaction.\n"
        )
        self.arguments = ["watch", "corpora/mine", "--query", "draft.md", "--k", "60"]

    def publish(self, *papers: dict[str, Any]) -> None:
        self.papers += papers
        self.server.fill(self.papers)

    def run(self, *more: object) -> tuple[int, str, str]:
        return self.invoke(*self.arguments, *more)

    def killed(self, name: str) -> None:
        """Run in a process that ends before it writes a file."""
        command = [sys.executable, "-c", KILLED, name, *self.arguments]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, check=False
        )
        assert done.returncode == 9, done.stderr

    @property
    def entries(self) -> list[ElementTree.Element]:
        """The entries of the feed, in which each rule of RFC 4287 for them holds."""
        feed = ElementTree.parse(self.folder / "new-papers.atom").getroot()
        entries = feed.findall(f"{ATOM}entry")
        assert feed.findtext(f"{ATOM}author/{ATOM}name")  # else each entry needs one
        for element in (feed, *entries):
            for name in ("id", "title", "updated"):
                assert len(element.findall(f"{ATOM}{name}")) == 1, name
            assert element.findtext(f"{ATOM}id", "").startswith("urn:uuid:")
            dated = datetime.fromisoformat(element.findtext(f"{ATOM}updated", ""))
            assert dated.tzinfo
        ids = [entry.findtext(f"{ATOM}id") for entry in entries]
        assert len({*ids}) == len(ids)
        dates = [entry.findtext(f"{ATOM}updated", "") for entry in entries]
        assert dates == sorted(dates, reverse=True)
        return entries

    @property
    def titles(self) -> list[str]:
        return [entry.findtext(f"{ATOM}title", "") for entry in self.entries]


@pytest.fixture
def watched(
    tmp_path: Path,
    invoke: Invoke,
    monkeypatch: MonkeyPatch,
    openalex: ScholarServer,
    java: None,
) -> Generator[Watched]:
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.01)
    made = invoke("collect", f"10.5555/{SEED}", "-o", "corpora/mine")
    assert made[0] == 0, made
    assert invoke("index", "corpora/mine", "--encoder", "none")[0] == 0
    yield Watched(tmp_path, openalex, invoke)
    assert openalex.refused == []


def set_clock(monkeypatch: MonkeyPatch, now: datetime) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return now

    monkeypatch.setattr(watch_module, "datetime", Clock)
    monkeypatch.setattr("citerec.collect.run.datetime", Clock)


def test_ten_days_announce_each_paper_once(
    watched: Watched, monkeypatch: MonkeyPatch
) -> None:
    start = datetime(2026, 11, 1, 6, tzinfo=UTC)
    announced = list[str]()

    def day(number: int, *, clock: int | None = None) -> int:
        set_clock(monkeypatch, start + timedelta(days=clock or number))
        code, out, err = watched.run()
        assert code in (0, 2), err
        announced.extend(
            line.strip() for line in out.splitlines() if line[2:6] == "Late"
        )
        return code

    def publish(number: int) -> list[str]:
        papers = [new(f"{number}{letter}") for letter in "ab"]
        watched.publish(*papers)
        return [paper["title"] for paper in papers]

    published = list[str]()
    assert day(1) == 0  # what the corpus has now is not new
    assert watched.titles == []
    published += publish(2)
    assert day(2) == 0
    assert sorted(watched.titles) == sorted(published)
    published += publish(3)
    monkeypatch.setenv("OPENALEX_URL", f"http://127.0.0.1:{free_port()}")
    assert day(3) == 2  # no network
    monkeypatch.setenv("OPENALEX_URL", watched.server.url)
    published += publish(4)
    assert day(4) == 0
    published += publish(5)
    watched.killed("collection.json")
    published += publish(6)
    assert day(6) == 0
    published += publish(7)
    assert [day(7), day(7)] == [0, 0]
    published += publish(8)
    assert day(8, clock=1) == 0  # the clock is set back by a week
    published += publish(9)
    watched.killed("new-papers.atom")
    published += publish(10)
    assert day(10) == 0

    assert Counter(watched.titles) == Counter(published)
    # a killed run prints nothing; what it announced is in the feed
    assert Counter(announced) == Counter(published) - Counter(published[-4:-2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["papers.jsonl.gz", "collection.json", "new-papers.atom.json"]
)
def test_what_a_killed_run_did_not_announce_the_next_one_does(
    name: str, watched: Watched
) -> None:
    watched.run()
    watched.publish(new("a"), new("b"))

    watched.killed(name)
    code, _, err = watched.run()
    again = watched.run()

    assert code == 0, err
    assert sorted(watched.titles) == [new("a")["title"], new("b")["title"]]
    assert again[:2] == (0, "")


def test_texts_of_papers_leave_the_feed_well_formed(watched: Watched) -> None:
    watched.run()
    title = "Late interaction retrieval with vectors, part <b>&\"'\x0b\uffff]]>"
    watched.publish(new("a", title=title, doi="10.5555/a&b;c"))

    code, _, err = watched.run()

    assert code == 0, err
    [entry] = watched.entries
    assert entry.findtext(f"{ATOM}title", "").startswith(
        'Late interaction retrieval with vectors, part <b>&"'
    )
    link = entry.find(f"{ATOM}link")
    assert link is not None
    assert link.get("href") == "https://doi.org/10.5555/a&b;c"
    text = entry.findtext(f"{ATOM}content", "")
    assert text.startswith(f"For “{TITLE}”: Ada Bell. ")


def test_each_draft_has_its_own_news(watched: Watched) -> None:
    (watched.folder / "other.md").write_text("# Graph drawing\n\nWe draw graphs.\n")
    watched.run()
    watched.publish(new("a"))

    # the second draft is followed from now on
    first = watched.run("--query", "other.md")
    watched.publish(new("b"))
    second = watched.run("--query", "other.md")

    assert f"  {new('a')['title']}" in first[1].splitlines()
    assert "followed from now on: Graph drawing" in first[2]
    assert f"  {new('a')['title']}" not in second[1].splitlines()
    drafts = [
        (entry.findtext(f"{ATOM}title"), entry.findtext(f"{ATOM}content", ""))
        for entry in watched.entries
    ]
    assert all(TITLE in text for title, text in drafts if title == new("a")["title"])


def test_a_mail_is_sent_once_and_again_if_it_was_refused(
    watched: Watched, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "secret-password")
    with receiving() as server:
        mail = ("--mail", "me@example.org", "--smtp", server.address)
        watched.run(*mail)
        watched.publish(new("a"))
        server.is_full = True
        refused = watched.run(*mail)
        server.is_full = False
        watched.publish(new("b"))
        sent = watched.run(*mail)
        nothing = watched.run(*mail)

    assert (refused[0], sent[0], nothing[0]) == (2, 0, 0), sent[2]
    assert "did not take the mail (" in refused[2]
    assert "the disk is full" in refused[2]
    [message] = server.mails
    assert message["Subject"] == "2 new papers for your drafts"
    assert (message["To"], message["From"]) == ("me@example.org", "me@example.org")
    text = str(message.get_payload(decode=True), "utf-8")
    for title in (TITLE, new("a")["title"], new("b")["title"]):
        assert title in text
    assert len(watched.titles) == 2
    assert not [f for f in watched.folder.rglob("*.json") if "secret" in f.read_text()]


def test_a_mail_over_the_network_is_encrypted(
    watched: Watched, monkeypatch: MonkeyPatch
) -> None:
    # an address of this machine that is no known name of it
    with receiving("127.0.0.2") as server:
        mail = ("--mail", "me@example.org", "--smtp", server.address)
        watched.run(*mail)
        watched.publish(new("a"))
        code, _, err = watched.run(*mail)

    assert code == 2
    assert "STARTTLS" in err
    assert server.mails == []


def test_only_ids_are_sent(watched: Watched) -> None:
    watched.run()
    watched.server.requests.clear()

    watched.run()

    assert watched.server.requests
    for sent in watched.server.requests:
        assert set(sent.params) <= {
            "select",
            "per_page",
            "filter",
            "sort",
            "cursor",
            "api_key",
        }
        assert "Late" not in sent.url


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["corpora/none", "--query", "draft.md"], "no finished collection"),
        (["corpora/mine"], "'--query'"),
        (["corpora/mine", "--query", "none.md"], "none.md"),
        (["corpora/mine", "--query", "draft.md", "--index", "none"], "none"),
        (["corpora/mine", "--query", "draft.md", "--feed", "none/x.atom"], "no folder"),
    ],
)
def test_what_cannot_be_watched_is_one_line(
    arguments: list[str], words: str, watched: Watched
) -> None:
    code, out, err = watched.invoke("watch", *arguments)

    assert (code, out) == (2, "")
    assert words in err.splitlines()[-1]


def test_a_file_of_something_else_is_not_replaced(watched: Watched) -> None:
    (watched.folder / "new-papers.atom.json").write_text("a note")

    code, _, err = watched.run()

    assert code == 2
    assert "this is no JSON" in err
    assert not (watched.folder / "new-papers.atom").exists()


def test_an_update_needs_no_list(watched: Watched) -> None:
    before = json.loads((watched.folder / "corpora/mine/collection.json").read_text())
    watched.publish(new("a"))

    code, out, err = watched.invoke("collect", "-o", "corpora/mine", "--update")

    assert code == 0, err
    assert "1 of them new" in out
    after = json.loads((watched.folder / "corpora/mine/collection.json").read_text())
    assert after["query"] == before["query"]
    assert after["seeds"] == before["seeds"]
