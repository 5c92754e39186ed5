"""Downloads from a real server on this machine: gone on with, checked, refused in one line."""

import gzip
import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from citerec.errors import OutputError
from citerec.lab.datasets.catalogue import DATASETS
from citerec.lab.datasets.dataset import Dataset, DatasetError, DatasetItem, RemoteFile
from citerec.lab.datasets.download import GoneError, download, query_server
from citerec.lab.datasets.fetch import FetchConfig, fetch
from citerec.lab.datasets.record import read_record
from citerec.types import no_progress

CONTENT = np.random.default_rng(0).bytes(3_000_000)


class Server(ThreadingHTTPServer):
    """Serves `files`, and behaves as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {"/data.bin": CONTENT}
        self.etag = '"one"'
        self.ranges = True  # whether it sends a part where it is asked for one
        self.breaks = 0  # how many answers are cut off after a million bytes
        self.lies = 0  # bytes more than there are that it says a file has
        self.heads = True  # whether it answers HEAD
        self.circles = False  # whether it sends everybody to where they are
        self.asked: list[tuple[str, str, str]] = []  # (method, path, range)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        server = cast("Server", self.server)
        wanted = self.headers.get("Range", "")
        server.asked.append((self.command, self.path, wanted))
        content = server.files.get(self.path)
        if content is None or (not body and not server.heads):
            self.send_response(405 if content else 403)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if server.circles:
            self.send_response(302)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        fresh = self.headers.get("If-Range") in {None, server.etag}
        if wanted and server.ranges and fresh:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if server.etag:
            self.send_header("ETag", server.etag)
        self.send_header("Content-Length", str(len(content) - start + server.lies))
        self.end_headers()
        if body:
            self.send(server, content[start:])
        if server.lies:
            self.close_connection = True  # else the client waits for what never comes

    def send(self, server: Server, content: bytes) -> None:
        if server.breaks:
            server.breaks -= 1
            self.wfile.write(content[:1_000_000])
            self.wfile.flush()
            self.close_connection = True
            return
        self.wfile.write(content)


@contextmanager
def serving() -> Generator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server() -> Generator[Server]:
    with serving() as one:
        yield one


def get(server: Server, target: Path) -> list[int]:
    told: list[int] = []
    download(query_server(f"{server.url}/data.bin"), target, told.append, pause=0)
    return told


def gets(server: Server) -> list[str]:
    return [wanted for method, _, wanted in server.asked if method == "GET"]


def one_file(server: Server, **facts: Any) -> Dataset:
    remote = RemoteFile(name="data.bin", urls=(f"{server.url}/data.bin",), **facts)
    return Dataset(
        name="toy",
        title="A toy",
        about="One file",
        url=server.url,
        items=(DatasetItem(file=remote),),
    )


# One file.


def test_a_file_is_fetched_and_told_in_bytes(server: Server, tmp_path: Path) -> None:
    told = get(server, tmp_path / "new" / "data.bin")

    assert (tmp_path / "new" / "data.bin").read_bytes() == CONTENT
    assert told == sorted(told)
    assert told[-1] == 3_000_000
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["data.bin"]


def test_a_broken_answer_is_gone_on_with_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.breaks = 2

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert gets(server)[0] == ""
    starts = [int(wanted.removeprefix("bytes=").rstrip("-")) for wanted in gets(server)[1:]]
    assert starts == [1_000_000, 2_000_000]


def broken_off(server: Server, folder: Path) -> Path:
    """Break a download off after a million bytes, as Ctrl-C would."""

    def stop(done: int) -> None:
        if done >= 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(query_server(f"{server.url}/data.bin"), folder / "data.bin", stop, pause=0)
    return folder / "data.bin.part"


def test_an_interrupted_download_is_gone_on_with_later(server: Server, tmp_path: Path) -> None:
    part = broken_off(server, tmp_path)
    there = part.stat().st_size

    get(server, tmp_path / "data.bin")

    assert 1_000_000 <= there < 3_000_000
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert gets(server) == ["", f"bytes={there}-"]
    assert not part.exists()


def test_a_server_without_ranges_starts_anew(server: Server, tmp_path: Path) -> None:
    broken_off(server, tmp_path)
    server.ranges = False

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("size", [3_000_000, 2_000_000, 500_000])
def test_a_file_that_was_replaced_meanwhile_starts_anew(
    server: Server, tmp_path: Path, size: int
) -> None:
    broken_off(server, tmp_path)
    server.etag, server.files["/data.bin"] = '"two"', b"2" * size

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == b"2" * size


def test_a_file_that_is_replaced_between_question_and_answer_starts_anew(
    server: Server, tmp_path: Path
) -> None:
    broken_off(server, tmp_path)
    offered = query_server(f"{server.url}/data.bin")
    server.etag, server.files["/data.bin"] = '"two"', b"2" * 3_000_000

    download(offered, tmp_path / "data.bin", lambda _: None, pause=0)

    assert (tmp_path / "data.bin").read_bytes() == b"2" * 3_000_000


def test_without_an_etag_the_size_tells_whether_it_is_the_same(
    server: Server, tmp_path: Path
) -> None:
    server.etag = ""
    there = broken_off(server, tmp_path).stat().st_size

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert gets(server) == ["", f"bytes={there}-"]


def test_a_server_that_answers_no_head_is_fetched_from_too(server: Server, tmp_path: Path) -> None:
    server.heads = False

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_an_empty_note_beside_a_part_is_of_another_version(server: Server, tmp_path: Path) -> None:
    part = broken_off(server, tmp_path)
    part.with_name("data.bin.part.json").write_bytes(b"")  # a kill may leave it so

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert gets(server) == ["", ""]
    assert [path.name for path in tmp_path.iterdir()] == ["data.bin"]


def test_redirects_without_end_are_one_line(server: Server) -> None:
    server.circles = True

    with pytest.raises(DatasetError, match=r"data.bin cannot be reached \(Exceeded maximum"):
        query_server(f"{server.url}/data.bin")


def test_an_empty_file_is_a_file(server: Server, tmp_path: Path) -> None:
    server.files["/data.bin"] = b""

    get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin").read_bytes() == b""


def test_who_breaks_off_again_and_again_is_given_up(server: Server, tmp_path: Path) -> None:
    server.lies = 1  # one byte never comes

    with pytest.raises(
        DatasetError, match=r"stopped after 3.0 MB .*run the command again to resume"
    ):
        get(server, tmp_path / "data.bin")

    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT


def test_a_disk_that_is_too_small_is_said_before(server: Server, tmp_path: Path) -> None:
    server.lies = 10**18

    with pytest.raises(
        OutputError, match=r"GB free, but data.bin needs 1,000,000,000.0 GB more; free"
    ):
        get(server, tmp_path / "data.bin")

    assert gets(server) == []


def test_a_file_that_is_not_there_is_said_so(server: Server, tmp_path: Path) -> None:
    with pytest.raises(GoneError, match=r"nothing.zip is not available: the server returned 403"):
        query_server(f"{server.url}/nothing.zip")


def test_offline_is_one_line_that_names_the_url_and_what_to_do() -> None:
    with serving() as gone:
        url = f"{gone.url}/data.bin"

    with pytest.raises(DatasetError) as caught:
        query_server(url)

    assert url in str(caught.value)
    assert "--from FOLDER" in str(caught.value)
    assert "\n" not in str(caught.value)


# Datasets.


def test_a_dataset_says_what_it_fetches_before(server: Server, tmp_path: Path) -> None:
    notes: list[str] = []

    record = fetch(one_file(server), tmp_path / "toy", FetchConfig(), no_progress, notes.append)

    downloads = tmp_path / "_downloads" / "toy"
    assert notes == [f"fetching A toy from {server.url}/data.bin: 3.0 MB, to {downloads}"]
    assert (tmp_path / "toy" / "data.bin").read_bytes() == CONTENT
    assert record.files["data.bin"].sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert record.files["data.bin"].origin == f"{server.url}/data.bin"
    assert record.licence == "not stated by its makers"
    assert read_record(tmp_path / "toy") == record


def test_what_was_downloaded_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    fetch(one_file(server), tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)
    server.asked.clear()

    fetch(one_file(server), tmp_path / "toy", FetchConfig(force=True), no_progress, lambda _: None)

    assert server.asked == []


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_another_file_than_its_makers_state_is_refused(
    server: Server, tmp_path: Path, kind: str
) -> None:
    right = hashlib.new(kind, CONTENT).hexdigest()
    wrong = one_file(server, **{kind: "0" * len(right)})

    with pytest.raises(
        DatasetError, match=rf"data.bin has {kind} {right}, expected 000.*; remove it"
    ):
        fetch(wrong, tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)

    assert not (tmp_path / "toy").exists()
    stated = one_file(server, **{kind: right})
    fetch(stated, tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)


def test_another_file_than_was_fetched_first_is_refused(server: Server, tmp_path: Path) -> None:
    fetch(one_file(server), tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)
    (tmp_path / "_downloads" / "toy" / "data.bin").unlink()
    server.files["/data.bin"] = b"replaced"

    with pytest.raises(DatasetError, match="as fetched on"):
        fetch(
            one_file(server), tmp_path / "toy", FetchConfig(force=True), no_progress, lambda _: None
        )

    assert (tmp_path / "toy" / "data.bin").read_bytes() == CONTENT


def several(server: Server) -> Dataset:
    server.files |= {"/b.csv": b"b", "/new/c.csv": b"c"}
    names = {"a.bin": ("/data.bin",), "x/b.csv": ("/b.csv",), "c.csv": ("/old/c.csv", "/new/c.csv")}
    items = [
        DatasetItem(file=RemoteFile(name=name, urls=tuple(server.url + path for path in paths)))
        for name, paths in names.items()
    ]
    extra = DatasetItem(file=RemoteFile(name="d.csv", urls=(f"{server.url}/gone",)), required=False)
    return Dataset(
        name="toys", title="Toys", about="Some", url=f"{server.url}/", items=(*items, extra)
    )


def test_a_file_has_several_places_and_may_be_done_without(server: Server, tmp_path: Path) -> None:
    notes: list[str] = []
    told: list[tuple[str, int, int]] = []

    fetch(
        several(server),
        tmp_path / "toys",
        FetchConfig(),
        lambda what, done, total: told.append((what, done, total)),
        notes.append,
    )

    there = {p.name for p in (tmp_path / "toys").rglob("*") if p.is_file()}
    assert there == {"a.bin", "b.csv", "c.csv", "SOURCE.json"}
    assert "gone is not available: the server returned 403; it is not required" in notes[0]
    assert f"fetching Toys from {server.url}/ (3 files): 3.0 MB" in notes[1]
    assert told[-1] == ("fetching", 3_000_002, 3_000_002)


def test_a_file_that_is_needed_and_gone_ends_it(server: Server, tmp_path: Path) -> None:
    dataset = several(server)
    del server.files["/b.csv"]

    with pytest.raises(
        DatasetError, match=r"b.csv is not available: .*; name a folder that contains it"
    ):
        fetch(dataset, tmp_path / "toys", FetchConfig(), no_progress, lambda _: None)

    assert gets(server) == []  # nothing is fetched in vain


def test_a_file_that_is_gone_is_to_be_had_in_the_archive(server: Server, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("all/data.bin", "inside")
    server.files = {"/all.zip": packed.getvalue()}
    item = DatasetItem(
        file=RemoteFile(name="data.bin", urls=(f"{server.url}/data.bin",)),
        archive=RemoteFile(name="all.zip", urls=(f"{server.url}/all.zip",), size=75_000_000_000),
        member="all/data.bin",
    )
    toy = Dataset(name="toy", title="A toy", about="One file", url=server.url, items=(item,))

    with pytest.raises(DatasetError, match=r"all.zip, about 75.0 GB: add --archive"):
        fetch(toy, tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)
    fetch(toy, tmp_path / "toy", FetchConfig(archive=True), no_progress, lambda _: None)

    assert (tmp_path / "toy" / "data.bin").read_text() == "inside"


def test_datasets_of_one_release_share_its_archive(server: Server, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/corpus.json", "of a")
        archive.writestr("b/corpus.json", "of b")
    server.files = {"/all.zip": packed.getvalue()}
    for name in "ab":
        item = DatasetItem(
            file=RemoteFile(name=f"{name}.json"),
            archive=RemoteFile(name="all.zip", urls=(f"{server.url}/all.zip",)),
            member=f"{name}/corpus.json",
        )
        toy = Dataset(name=name, title=name, about="", url=server.url, release="r-1", items=(item,))
        fetch(toy, tmp_path / name, FetchConfig(archive=True), no_progress, lambda _: None)

    assert len(gets(server)) == 1
    assert (tmp_path / "b" / "b.json").read_text() == "of b"
    assert (tmp_path / "_downloads" / "r-1" / "all.zip").is_file()
    assert DATASETS["dblp"].release == DATASETS["pubmed"].release == "citeomatic-2018-02-12"


def test_dblp_is_fetched_and_prepared(server: Server, tmp_path: Path) -> None:
    records = [
        {"id": str(n), "title": f"Paper {n}", "abstract": "", "out_citations": ["0"], "year": 2000}
        for n in range(3)
    ]
    server.files["/corpus.json"] = "".join(json.dumps(r) + "\n" for r in records).encode()
    file = RemoteFile(name="dblp.json", urls=(f"{server.url}/corpus.json",))
    dblp = DATASETS["dblp"]
    here = Dataset(
        name="dblp",
        title=dblp.title,
        about=dblp.about,
        url=server.url,
        items=(DatasetItem(file=file),),
        prepare=dblp.prepare,
    )

    record = fetch(here, tmp_path / "dblp", FetchConfig(), no_progress, lambda _: None)

    assert (record.counts["papers"], record.counts["train_queries"]) == (3, 2)
    with gzip.open(tmp_path / "dblp" / "corpus.jsonl.gz") as corpus:
        assert len(corpus.readlines()) == 3
