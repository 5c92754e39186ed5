"""The datasets of the literature: fetching, corpora and splits on fixtures of their published formats."""

import csv
import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Generator, Sequence
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from support.http_server import Handler, running
from support.types import MonkeyPatch

from citerec.build.index import BuildConfig, build_index
from citerec.cli import run
from citerec.errors import BadInputError, ConfigError, OutputError
from citerec.index.folder import IndexFolder, open_index
from citerec.index.splits import read_ids, write_splits
from citerec.lab.datasets import public
from citerec.lab.datasets.catalogue import (
    DATASETS,
    PAPERS,
    SCIDOCS_FILES,
    Dataset,
    DatasetFile,
)
from citerec.lab.datasets.convert import KIND, SHEET
from citerec.lab.datasets.fetch import DatasetRecord, FetchConfig, fetch, read_record
from citerec.lab.datasets.prepare import corpus_statistics
from citerec.lab.datasets.public import DatasetError, Repository
from citerec.lab.datasets.without import drop_train_queries
from citerec.types import no_progress


def open_research(
    docid: str, year: int | None, cites: Sequence[str], title: str = ""
) -> dict[str, Any]:
    """A record as Semantic Scholar published it in 2017; its year is missing where it is unknown."""
    record: dict[str, Any] = {
        "id": docid,
        "title": title or f"Paper {docid} of a corpus",
        "paperAbstract": f"What {docid} found.",
        "outCitations": list(cites),
        "s2Url": f"http://semanticscholar.org/paper/{docid}",
    }
    return record if year is None else record | {"year": year}


def citeomatic_record(
    docid: str, year: int, cites: Sequence[str], title: str = ""
) -> dict[str, Any]:
    """A record as Citeomatic's conversion of ClusCite's corpora writes it."""
    return {
        "id": docid,
        "title": title or f"Paper {docid} of another corpus",
        "out_citations": list(cites),
        "key_phrases": ["mining"],
        "year": year,
    }


def lines(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def zipped(folder: Path, records: Sequence[dict[str, Any]]) -> Path:
    """The published zip, which holds one gzip of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "papers-2017-02-21.zip", "w") as archive:
        archive.writestr("license.txt", "terms")
        archive.writestr(PAPERS, gzip.compress(lines(records), mtime=0))
    return folder


def unsummed(dataset: Dataset) -> Dataset:
    """The same dataset without the checksums of the real files, which a fixture cannot have."""
    return replace(
        dataset, files=tuple(replace(file, md5=None) for file in dataset.files)
    )


def got(dataset: Dataset, folder: Path, source: Path, **settings: Any) -> DatasetRecord:
    return fetch(
        dataset,
        folder,
        FetchConfig(source=source, **settings),
        no_progress,
        lambda _: None,
    )


def index_of(folder: Path, tmp_path: Path) -> IndexFolder:
    build_index(folder, tmp_path / "index", BuildConfig())
    return open_index(tmp_path / "index")


def old_papers(n: int) -> list[dict[str, Any]]:
    return [
        open_research(f"p{i}", 1990 + i, [f"p{i - 1}"] if i else []) for i in range(n)
    ]


def test_open_research_is_unzipped_split_by_year_and_indexed(tmp_path: Path) -> None:
    papers = old_papers(10)  # each cites the one before; the first cites none
    papers.append(open_research("undated", None, ["p0"]))
    papers += [open_research("p1", 1991, []), {"id": "x", "s2Url": "", "year": 1}]
    source = zipped(tmp_path / "given", papers)

    record = got(
        unsummed(DATASETS["openresearch"]), tmp_path / "d" / "openresearch", source
    )

    splits = tmp_path / "d" / "openresearch" / "splits"
    # the oldest, not p0
    assert read_ids(splits / "train.ids") == [f"p{i}" for i in range(1, 8)]
    assert read_ids(splits / "dev.ids") == ["p8"]
    assert read_ids(splits / "test.ids") == ["p9"]
    assert record.counts["papers"] == 10
    assert record.counts["undated"] == record.counts["conflicting_duplicates"] == 1
    assert record.counts["missing_fields"] == 1
    assert (source / "papers-2017-02-21.zip").is_file()  # never moved
    index = index_of(tmp_path / "d" / "openresearch", tmp_path)
    assert index.manifest.settings["splits"] == "shipped"


def dblp_papers() -> list[dict[str, Any]]:
    old = [
        citeomatic_record(f"t{i}", 1990 + i % 18, ["t0"] if i else [])
        for i in range(12)
    ]
    cited = [f"t{i}" for i in range(12)]
    return [
        *old,
        citeomatic_record("dev9", 2008, cited[:9]),  # one too few
        citeomatic_record("dev10", 2008, cited[:10]),
        # the tenth is no train paper
        citeomatic_record("test9", 2010, [*cited[:9], "dev10"]),
        citeomatic_record("test12", 2011, [*cited, "outside"]),
        citeomatic_record("late", 2012, cited),
    ]


def test_dblp_asks_queries_of_ten_train_papers_and_more(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "corpus.json").write_bytes(lines(dblp_papers()))

    record = got(DATASETS["dblp"], tmp_path / "dblp", tmp_path / "given")

    splits = tmp_path / "dblp" / "splits"
    # t0 cites none
    assert set(read_ids(splits / "train.ids")) == {f"t{i}" for i in range(1, 12)}
    assert read_ids(splits / "dev.ids") == ["dev10"]
    assert read_ids(splits / "test.ids") == ["test12"]
    assert {file.name for file in splits.iterdir()} == {
        "train.ids",
        "dev.ids",
        "test.ids",
    }
    assert record.counts["too_late"] == 1
    assert index_of(tmp_path / "dblp", tmp_path).manifest.counts["papers"] == 16


def test_pubmed_is_taken_out_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    inside = "citeomatic-2018-02-12/comparison/pubmed/corpus.json"
    with tarfile.open(
        tmp_path / "given" / "citeomatic-2018-02-12.tar.gz", "w:gz"
    ) as archive:
        for name, content in (
            ("citeomatic-2018-02-12/README", b"x"),
            (inside, lines(dblp_papers())),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

    got(DATASETS["pubmed"], tmp_path / "pubmed", tmp_path / "given")

    splits = tmp_path / "pubmed" / "splits"
    # its dev year is 2009; its train years end in 2008
    assert read_ids(splits / "dev.ids") == []
    # dev10: a train paper
    assert {*read_ids(splits / "test.ids")} == {
        "test9",
        "test12",
        "late",
    }


def scidocs_folder(folder: Path) -> Path:
    for name in SCIDOCS_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{{}}{name}")
    return folder


def test_a_file_that_scidocs_lacks_is_named(tmp_path: Path) -> None:
    source = scidocs_folder(tmp_path / "given")
    (source / "mesh" / "val.csv").unlink()

    with pytest.raises(DatasetError, match=r"mesh/val\.csv"):
        got(DATASETS["scidocs"], tmp_path / "other", source)


def test_a_file_with_another_checksum_is_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "given", old_papers(10))
    target = tmp_path / "o"

    with pytest.raises(DatasetError, match="md5"):  # of the real file
        got(DATASETS["openresearch"], target, source)
    (tmp_path / "_downloads" / "openresearch" / PAPERS).unlink()
    got(unsummed(DATASETS["openresearch"]), target, source)
    with pytest.raises(DatasetError, match="another file"):
        changed = zipped(tmp_path / "new", old_papers(11))
        got(unsummed(DATASETS["openresearch"]), target, changed, force=True)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    source = zipped(tmp_path / "given", old_papers(10))
    first = got(unsummed(DATASETS["openresearch"]), tmp_path / "o", source)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")

    assert (
        got(unsummed(DATASETS["openresearch"]), tmp_path / "o", tmp_path / "nowhere")
        == first
    )
    for folder in ("mine", "o", "given/papers-2017-02-21.zip"):
        with pytest.raises(ConfigError):
            got(DATASETS["dblp"], tmp_path / folder, source)
    (tmp_path / "o" / "SOURCE.json").write_text("{}")
    with pytest.raises(BadInputError):
        read_record(tmp_path / "o")


def test_a_damaged_archive_leaves_nothing(tmp_path: Path) -> None:
    source = zipped(tmp_path / "given", old_papers(10))
    archive = source / "papers-2017-02-21.zip"
    whole = archive.read_bytes()

    for content in (
        whole[: len(whole) // 2],
        whole.replace(b"papers-2017", b"others-2017"),
    ):
        archive.write_bytes(content)
        with pytest.raises(BadInputError, match=r"papers-2017-02-21\.zip"):
            got(unsummed(DATASETS["openresearch"]), tmp_path / "o", source)

    assert not (tmp_path / "o").exists()


def held_apart(tmp_path: Path) -> tuple[Path, Path]:
    papers = old_papers(10)
    papers[3]["title"] = "Mining the citation graph"
    papers[4]["title"] = "Mining: the Citation-Graph"
    papers[5]["title"] = "Mining the citation graph, part two of three"
    # a test query: it is none of the training
    papers[9]["title"] = "Mining the citation graph"
    got(
        unsummed(DATASETS["openresearch"]),
        tmp_path / "openresearch",
        zipped(tmp_path / "1", papers),
    )
    others = dblp_papers()
    others[-2]["title"] = "Mining the Citation Graph."
    others[2]["title"] = "Paper p6 of a corpus"  # of a train paper: it may stay
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "corpus.json").write_bytes(lines(others))
    got(DATASETS["dblp"], tmp_path / "dblp", tmp_path / "2")
    return tmp_path / "openresearch", tmp_path / "dblp"


def test_train_queries_of_the_title_of_a_test_query_are_dropped(tmp_path: Path) -> None:
    ours, theirs = held_apart(tmp_path)

    dropped = drop_train_queries(ours, theirs, no_progress)
    again = drop_train_queries(ours, theirs, no_progress)

    # p3 has the same four words; p4 has three, of which two are common; p5 has eight, of which four are.
    assert (dropped, again) == (1, 0)
    assert read_ids(ours / "splits" / "train.ids") == [
        "p1",
        "p2",
        "p4",
        "p5",
        "p6",
        "p7",
    ]
    assert read_ids(ours / "splits" / "test.ids") == ["p9"]
    record = read_record(ours)
    assert record is not None
    assert record.without == {"dblp": 1}


def test_all_papers_of_scidocs_are_held_out_by_id_or_title(
    tmp_path: Path, monkeypatch: MonkeyPatch, capfd: Any
) -> None:
    held_apart(tmp_path)
    monkeypatch.chdir(tmp_path)
    published = scidocs_folder(tmp_path / "given")
    held = {
        "mag_mesh": {"p2": {"title": "Another title"}, "x": {"title": None}},
        "view_cite_read": {"y": {"title": "Mining the citation graph!"}},  # that of p3
        "recomm": {"z": {"title": "Paper p6 of a corpus"}},
    }
    for name, papers in held.items():
        (published / f"paper_metadata_{name}.json").write_text(json.dumps(papers))
    assert (
        run(["datasets", "fetch", "scidocs", "--from", str(published), "--quiet"]) == 0
    )

    options = ["--output", "openresearch", "--without", "scidocs"]
    assert run(["datasets", "fetch", "openresearch", *options]) == 0

    # "Paper p1 of a corpus" shares 4 of 6 words with that of p6: 0.67 is below 0.7.
    assert read_ids(tmp_path / "openresearch/splits/train.ids") == [
        "p1",
        "p4",
        "p5",
        "p7",
    ]
    record = read_record(tmp_path / "openresearch")
    assert record is not None
    assert record.without == {"scidocs": 3}
    shown = capfd.readouterr()
    assert "openresearch exists; use --force" in shown.err
    assert "3 train queries dropped" in shown.err
    assert "10 papers" in shown.out
    assert run(["datasets", "info", "scidocs"]) == 0
    assert "mag/train.csv" in capfd.readouterr().out


def test_statistics_count_what_the_protocol_counts(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "corpus.jsonl").write_text(
        """{"id": "z", "title": "Zero", "year": 1999, "abstract": "There."}
{"id": "a", "title": "One", "year": 2000, "citations": ["z"]}
{"id": "b", "title": "Two", "year": 2001, "citations": ["z", "a", "c"]}
{"id": "c", "title": "Three", "citations": ["z", "b", "gone"]}"""
    )
    write_splits(
        tmp_path / "given" / "splits", {"train": ["a"], "dev": ["b"], "test": ["c"]}
    )

    found = corpus_statistics(index_of(tmp_path / "given", tmp_path))

    # a: z; b: z, a and c, whose year is unknown and so not known to be later; c: z, b
    assert (found["papers"], found["with abstract"]) == (4, 1)
    assert (found["citations"], found["citing papers"]) == (6, 3)
    assert [found[f"{name} queries"] for name in ("train", "dev", "test")] == [1, 1, 1]
    assert found["gold per query"] == pytest.approx(6 / 3)
    assert (found["first year"], found["last year"]) == (1999, 2001)


def test_mistakes_are_one_line(
    tmp_path: Path, monkeypatch: MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["datasets", "fetch", "dplb"]) == 2
    assert run(["datasets", "info", "dplb"]) == 2
    assert run(["datasets", "fetch", "dblp", "--from", "x", "--without", "y"]) == 2

    assert capfd.readouterr().err.count("citerec: error: ") == 3
    assert list(tmp_path.iterdir()) == []


CONTENT = bytes(range(256)) * 8_000  # 2 MB


class Server(ThreadingHTTPServer):
    """Serves `files`, and breaks off as many answers as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Files)
        self.files: dict[str, bytes] = {"/data.bin": CONTENT}
        self.breaks = 0  # answers that are cut off after a million bytes
        self.ranges: list[str] = []  # of each request
        self.url = ""


class Files(Handler):
    def do_GET(self) -> None:
        server = cast("Server", self.server)
        wanted = self.headers.get("Range", "")
        server.ranges.append(wanted)
        if (content := server.files.get(self.path)) is None:
            self.answer(403)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        cut_at = 1_000_000 if server.breaks else None
        server.breaks -= bool(server.breaks)
        self.answer(206 if start else 200, content[start:], cut_at=cut_at)


@pytest.fixture
def server() -> Generator[Server]:
    one = Server()
    with running(one) as one.url:
        yield one


def toy(*files: DatasetFile) -> Dataset:
    return Dataset(
        name="toy", title="A toy", about="Some files", url="http://x", files=files
    )


def test_a_download_that_breaks_off_is_resumed(server: Server, tmp_path: Path) -> None:
    server.breaks = 1
    said: list[str] = []
    dataset = toy(DatasetFile(name="data.bin", urls=(f"{server.url}/data.bin",)))

    record = fetch(dataset, tmp_path / "toy", FetchConfig(), no_progress, said.append)

    assert (tmp_path / "toy" / "data.bin").read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=1000000-"]
    assert said == [f"fetching {server.url}/data.bin (2,048,000 bytes)"]
    assert record.counts == {"files": 1}


def test_a_download_continues_in_no_link(server: Server, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    part = tmp_path / "_downloads" / "toy" / "data.bin.part"
    part.parent.mkdir(parents=True)
    part.symlink_to(tmp_path / "notes")
    dataset = toy(DatasetFile(name="data.bin", urls=(f"{server.url}/data.bin",)))

    with pytest.raises(OutputError, match=r"data\.bin\.part is a link"):
        fetch(dataset, tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)

    assert (tmp_path / "notes").read_text() == "mine"


def test_a_download_that_breaks_off_again_and_again_is_given_up(
    server: Server, tmp_path: Path
) -> None:
    server.breaks = 99
    server.files["/data.bin"] = CONTENT * 10
    dataset = toy(DatasetFile(name="data.bin", urls=(f"{server.url}/data.bin",)))

    with pytest.raises(DatasetError, match="run the command again to resume"):
        fetch(dataset, tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)

    assert (
        tmp_path / "_downloads" / "toy" / "data.bin.part"
    ).stat().st_size == 5_000_000
    assert not (tmp_path / "toy").exists()


def test_a_file_has_several_places_and_may_be_in_an_archive(
    server: Server, tmp_path: Path
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside/data.bin", CONTENT)
    server.files["/all.zip"] = packed.getvalue()
    gone = f"{server.url}/gone"
    file = DatasetFile(
        name="data.bin",
        urls=(gone,),
        archive=(gone, f"{server.url}/all.zip"),
        member="data.bin",
    )

    with pytest.raises(DatasetError, match="add --archive"):
        fetch(toy(file), tmp_path / "toy", FetchConfig(), no_progress, lambda _: None)
    fetch(
        toy(file),
        tmp_path / "toy",
        FetchConfig(archive=True),
        no_progress,
        lambda _: None,
    )

    assert (tmp_path / "toy" / "data.bin").read_bytes() == CONTENT
    with pytest.raises(DatasetError, match="cannot be reached"):
        offline = toy(DatasetFile(name="x", urls=("http://127.0.0.1:9/x",)))
        fetch(offline, tmp_path / "off", FetchConfig(), no_progress, lambda _: None)


# --- public corpora

WOS = """FN Clarivate
VR 1.0
PT J
AU Lee, Ann
TI Counting &amp; marking seals
AB We mark
   seals twice.
SO J SEALS
VL 7
BP 11
PY 2001
UT WOS:1
ER

PT J
AU Wu, B
TI Marks that last
CR Lee A, 2001, J SEALS, V7, P11
   Nobody N, 1999, J ELSE, V1, P1
DI 10.1000/MARKS
PY 2003
UT WOS:2
ER

PT J
AU Roe, C
TI A review of marks
CR Wu B, 2003, J SEALS, V9, P1, DOI 10.1000/marks
   Lee A, 2001, J SEALS, V7, P11
PY 2005
UT WOS:3
ER
"""
JATS = """<!DOCTYPE article PUBLIC "x" "y">
<article><front><journal-meta><journal-title>eSeals</journal-title></journal-meta><article-meta>
<article-id pub-id-type="doi">10.7554/{number}</article-id>
<title-group><article-title>How {number} <italic>seals</italic> swim in the dark of winter</article-title></title-group>
<contrib-group><contrib><name><surname>Lee</surname><given-names>Ann</given-names></name></contrib></contrib-group>
<pub-date><year>{year}</year></pub-date><abstract><p>They do<xref>1</xref>.</p></abstract></article-meta></front>
<back><ref-list>{references}</ref-list></back></article>
"""
REFERENCE = """<ref><element-citation><article-title>{title}</article-title><year>{year}</year>
<name><surname>Ray</surname></name></element-citation></ref>"""
BOOK = "The book of seals, as everybody knows it"


def article(number: str, year: int, *cites: tuple[str, int]) -> bytes:
    references = "".join(REFERENCE.format(title=t, year=y) for t, y in cites)
    return JATS.format(number=number, year=year, references=references).encode()


def vis_article(number: int, title: str, abstract: str) -> dict[str, Any]:
    people = {"authors": [{"full_name": "Ann Lee"}]}
    doi = f"10.1109/vis.{number}"
    return {"doi": doi, "title": title, "abstract": abstract, "authors": people}


def table_of(*rows: dict[str, str]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def published(
    server: Server, name: str, repositories: Sequence[dict[str, bytes]]
) -> Dataset:
    """Serve small repositories in place of those of a dataset, as GitHub would; return the dataset of these."""
    dataset = DATASETS[name]
    served: list[Repository] = []
    for repository, files in zip(dataset.repositories, repositories, strict=True):
        at = f"{repository.name}/{repository.commit}"
        hashes = {
            path: hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            for path, data in files.items()
        }
        for path, data in files.items():
            server.files[f"/raw/{at}/{quote(path)}"] = data
        tree = [
            {"type": "blob", "path": path, "sha": hashes[path], "size": len(data)}
            for path, data in {**files, "LICENSE": b""}.items()
            if path in hashes
        ]
        tree.append({"type": "tree", "path": "data", "sha": "0"})
        listing = f"/repos/{repository.name}/git/trees/{repository.commit}?recursive=1"
        server.files[listing] = json.dumps({"tree": tree}).encode()
        wanted = sorted(p for p in files if re.fullmatch(repository.files, p))
        lines = "".join(f"{hashes[path]} {path}\n" for path in wanted)
        digest = hashlib.sha256(lines.encode()).hexdigest()
        served.append(replace(repository, listing=digest))
    return replace(dataset, repositories=tuple(served))


@pytest.fixture
def github(server: Server, monkeypatch: MonkeyPatch) -> Server:
    monkeypatch.setattr(public, "API", server.url)
    monkeypatch.setattr(public, "RAW", f"{server.url}/raw")
    return server


def papers_in(folder: Path) -> dict[str, dict[str, Any]]:
    with gzip.open(folder / "corpus.jsonl.gz", "rt") as file:
        return {record["id"]: record for record in map(json.loads, file)}


def fetched(dataset: Dataset, folder: Path) -> DatasetRecord:
    return fetch(dataset, folder, FetchConfig(), no_progress, lambda _: None)


def test_exports_of_web_of_science_become_a_corpus(
    github: Server, tmp_path: Path
) -> None:
    files = {"a b.txt": WOS.encode(), "notes.txt": b"Nothing", "plot.png": b"\x89PNG"}
    dataset = published(github, "labour", [files])

    record = fetched(dataset, tmp_path / "labour")

    papers = papers_in(tmp_path / "labour")
    first = papers["WOS:1"]
    assert first["title"] == "Counting & marking seals"
    assert first["abstract"] == "We mark seals twice."
    cited = {docid: paper["citations"] for docid, paper in papers.items()}
    assert cited == {"WOS:1": [], "WOS:2": ["WOS:1"], "WOS:3": ["WOS:1", "WOS:2"]}
    assert read_ids(tmp_path / "labour" / "splits" / "test.ids") == ["WOS:3"]
    assert (record.counts["papers"], record.counts["citations"]) == (3, 3)
    assert "not to be passed on" in record.licence
    requests = len(github.ranges)
    fetch(
        dataset,
        tmp_path / "labour",
        FetchConfig(force=True),
        no_progress,
        lambda _: None,
    )
    assert len(github.ranges) == requests + 1  # the listing alone


def vis_files() -> list[dict[str, bytes]]:
    """Return small files of both repositories: VIS.2 cites VIS.1, and a paper of a journal cites VIS.2."""
    long = "We draw graphs so that everybody can read what is in them."
    articles = [
        vis_article(1, "Drawing graphs", long),
        vis_article(2, "Reading graphs", long),
        vis_article(3, "Message from the chairs", long),
    ]
    results = "vispubdata-update/results"
    no_journals = {
        "DOI": "10.1109/tvcg.4",
        "Title": "Graphs in journals",
        "Abstract": long,
        "Year": "2003",
        "AuthorNames": "Bo Wu;Ann Lee",
        "Journal": "TVCG",
    }
    cited = {
        "DOI": "10.1109/vis.2",
        "citedPapers": "10.1109/VIS.1;10.9/x",
        "citedPapersWithoutDOI": "",
    }
    of_journals = {
        **cited,
        "DOI": "10.1109/tvcg.4",
        "citedPapers": "https://doi.org/10.1109/vis.2",
    }
    sheet = {
        "Paper DOI": "10.1109/vis.1",
        "Paper Title": "Drawing graphs",
        "Abstract": "",
        "Year": "2001",
        "Conference": "InfoVis",
        "Deduped author names": "Ann Lee",
        "References": "",
        KIND: "C",
    }
    update = {
        "vispubdata-update/2002/original_data/articles-InfoVis.json": json.dumps(
            {"articles": articles}
        ).encode(),
        f"{results}/vispubdata-update-journals.csv": table_of(no_journals),
        f"{results}/citations_references_vispubdata.csv": table_of(cited),
        f"{results}/citations_references_journals_vispubdata.csv": table_of(
            of_journals
        ),
    }
    return [update, {SHEET: table_of(sheet)}]


def test_papers_of_vis_are_joined_from_their_tables(
    github: Server, tmp_path: Path
) -> None:
    dataset = published(github, "vis", vis_files())

    fetched(dataset, tmp_path / "vis")

    papers = papers_in(tmp_path / "vis")
    assert {docid: paper["citations"] for docid, paper in papers.items()} == {
        "10.1109/tvcg.4": ["10.1109/vis.2"],
        "10.1109/vis.1": [],
        "10.1109/vis.2": ["10.1109/vis.1"],
    }
    assert papers["10.1109/vis.1"]["venue"] == "IEEE VIS (InfoVis)"
    assert papers["10.1109/tvcg.4"]["authors"] == ["Bo Wu", "Ann Lee"]


ACM = """@inproceedings{10.1145/1,
author = {M\\"{u}ller, Ann and {Wu}, Bo},
title = {Reading Graphs},
year = {2003},
doi = {10.1145/1},
abstract = {How a person reads graphs &amp; tables, in three experiments.},
series = {CHI '03}
}

@article{10.5555/2,
title = {A Work That Is Cited},
year = {No}
}

@article{10.1145/3,
title = {A Work That Nobody Cites},
doi = {10.1145/3},
abstract = {Its abstract goes
over two lines.}
}

@book{10.1145/4,
title = {A Book That Is Cited}
}
"""


def test_articles_of_the_acm_join_the_papers_of_vis(
    github: Server, tmp_path: Path
) -> None:
    acm = {
        "data/acm-dl/chi/chi-2003.bib": ACM.encode(),
        "data/topics+qrels/papers/chi-2003/1.dois": (
            b"[1]\t10.5555/2\tUAI\n-[2]\t10.9/outside\n[3] 10.1109/VIS.2 vis\n"
        ),
    }
    dataset = published(github, "acm_vis", [acm, *vis_files()])

    fetched(dataset, tmp_path / "acm_vis")

    papers = papers_in(tmp_path / "acm_vis")
    assert {docid: paper["citations"] for docid, paper in papers.items()} == {
        "10.1109/tvcg.4": ["10.1109/vis.2"],
        "10.1109/vis.1": [],
        "10.1109/vis.2": ["10.1109/vis.1"],
        "10.1145/1": ["10.1109/vis.2", "10.5555/2"],
        "10.5555/2": [],
    }
    first = papers["10.1145/1"]
    assert first["authors"] == ["Ann Müller", "Bo Wu"]
    assert first["abstract"].startswith("How a person reads graphs & tables")
    assert (first["year"], first["venue"]) == (2003, "CHI '03")
    assert papers["10.5555/2"]["year"] is None


def test_articles_in_jats_become_a_corpus_with_what_two_of_them_cite(
    github: Server, tmp_path: Path
) -> None:
    one = article("one", 2001, (BOOK, 1990), ("A work that a single article cites", 1))
    first = "How one seals swim in the dark of winter"
    two = article("two", 2002, (BOOK, 1990), (first, 2001))
    dataset = published(
        github, "biomed", [{"a.xml": one, "b.xml": b"<no"}, {"x/fulltext.xml": two}]
    )

    fetched(dataset, tmp_path / "biomed")

    papers = papers_in(tmp_path / "biomed")
    book = next(docid for docid in papers if docid.startswith("title:thebookof"))
    assert papers["10.7554/two"]["citations"] == ["10.7554/one", book]
    assert papers["10.7554/one"]["citations"] == [book]
    assert papers["10.7554/one"]["abstract"] == "They do."
    assert papers[book]["title"] == BOOK
    assert papers[book]["year"] == 1990
    assert len(papers) == 3


def test_a_server_that_is_not_there_is_one_plain_line(
    monkeypatch: MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(public, "API", "http://127.0.0.1:9")  # nothing listens there

    with pytest.raises(DatasetError) as caught:
        fetched(DATASETS["vis"], tmp_path / "vis")

    assert str(caught.value) == (
        "127.0.0.1:9 cannot be reached; it needs a connection; what was fetched is kept, so run the command again"
    )
    assert not (tmp_path / "vis").exists()


def test_another_file_or_listing_is_refused(github: Server, tmp_path: Path) -> None:
    dataset = published(github, "labour", [{"a.txt": WOS.encode()}])
    [repository] = dataset.repositories
    file = f"/raw/{repository.name}/{repository.commit}/a.txt"

    github.files[file] = WOS.replace("seals", "whales").encode()
    with pytest.raises(DatasetError, match="another file than that of the commit"):
        fetched(dataset, tmp_path / "labour")
    del github.files[file]
    with pytest.raises(DatasetError, match="run the command again"):
        fetched(dataset, tmp_path / "labour")
    other = replace(dataset, repositories=(replace(repository, listing="0" * 64),))
    with pytest.raises(DatasetError, match="lists other files than expected"):
        fetched(other, tmp_path / "labour")
    assert not (tmp_path / "labour").exists()
