"""What is known of each dataset, and its corpus and splits on fixtures of its published format."""

import bz2
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.corpus.splits import read_ids
from citerec.errors import BadInputError, ConfigError, OutputError
from citerec.folder import IndexFolder, open_index
from citerec.lab.datasets import citeomatic, openresearch, scidocs, without
from citerec.lab.datasets.catalogue import DATASETS, find_dataset, is_fetched, where
from citerec.lab.datasets.dataset import Dataset, DatasetError, DatasetItem, RemoteFile
from citerec.lab.datasets.fetch import FetchConfig, fetch
from citerec.lab.datasets.record import DatasetRecord, read_record
from citerec.lab.datasets.statistics import corpus_statistics, statistics
from citerec.lab.datasets.unpack import take_member
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
        "authors": [{"ids": ["1"], "name": "A. Author"}],
        "inCitations": [],
        "outCitations": list(cites),
        "keyPhrases": ["Citation"],
        "pdfUrls": [],
        "s2Url": f"http://semanticscholar.org/paper/{docid}",
        "venue": "ACL",
    }
    return record if year is None else record | {"year": year}


def citeomatic_record(
    docid: str, year: int, cites: Sequence[str], title: str = ""
) -> dict[str, Any]:
    """A record as Citeomatic's conversion of ClusCite's corpora writes it."""
    return {
        "id": docid,
        "title": title or f"Paper {docid} of another corpus",
        "abstract": f"What {docid} found.",
        "authors": ["17", "4"],
        "out_citations": list(cites),
        "out_citation_count": len(cites),
        "in_citation_count": 0,
        "key_phrases": ["mining"],
        "year": year,
        "venue": "",
        "date": None,
    }


def lines(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def zipped(folder: Path, records: Sequence[dict[str, Any]]) -> Path:
    """The published zip, which holds one gzip of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "papers-2017-02-21.zip", "w") as archive:
        archive.writestr("license.txt", "terms")
        archive.writestr(openresearch.PAPERS, gzip.compress(lines(records), mtime=0))
    return folder


def unsummed(dataset: Dataset) -> Dataset:
    """The same dataset without the checksums of the real files, which a fixture cannot have."""
    (item,) = dataset.items
    file = RemoteFile(name=item.file.name, urls=item.file.urls)
    one = DatasetItem(file=file, archive=item.archive, member=item.member, aliases=item.aliases)
    return Dataset(
        name=dataset.name,
        title=dataset.title,
        about=dataset.about,
        url=dataset.url,
        items=(one,),
        prepare=dataset.prepare,
    )


def got(dataset: Dataset, folder: Path, source: Path, **settings: Any) -> DatasetRecord:
    return fetch(
        dataset, folder, FetchConfig(source=source, **settings), no_progress, lambda _: None
    )


def index_of(folder: Path, tmp_path: Path) -> IndexFolder:
    build_index(folder, tmp_path / "index", BuildConfig())
    return open_index(tmp_path / "index")


def old_papers(n: int) -> list[dict[str, Any]]:
    return [open_research(f"p{i}", 1990 + i, [f"p{i - 1}"] if i else []) for i in range(n)]


# The catalogue.


def test_every_dataset_says_where_it_comes_from_and_what_nobody_states() -> None:
    assert set(DATASETS) == {
        "openresearch",
        "dblp",
        "pubmed",
        "scidocs",
        "vis",
        "biomed",
        "acm_vis",
    }
    for dataset in DATASETS.values():
        assert dataset.facts["licence"]
        assert dataset.stated
        assert where(dataset.name) == Path("datasets") / dataset.name
    assert DATASETS["dblp"].facts["size"] == "not stated by its makers"
    assert "md5 f35c40992e94b458db73fa030a79844b" in DATASETS["openresearch"].facts["checksum"]


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no dataset 'dplb'; choose from openresearch, dblp"):
        find_dataset("dplb")


@pytest.mark.parametrize("name", ["../x", "/etc/x", ""])
def test_a_file_lies_within_its_dataset(name: str) -> None:
    with pytest.raises(ConfigError, match="inside its dataset"):
        RemoteFile(name=name)


def test_a_checksum_is_one() -> None:
    with pytest.raises(ConfigError, match="sha256 must be 64 hex digits, got 'abc'"):
        RemoteFile(name="x", sha256="abc")


# Open Research.


def test_open_research_is_unzipped_split_by_year_and_indexed(tmp_path: Path) -> None:
    papers = old_papers(10)  # each cites the one before; the first cites none
    papers.append(open_research("undated", None, ["p0"]))
    source = zipped(tmp_path / "given", papers)

    record = got(unsummed(openresearch.OPENRESEARCH), tmp_path / "d" / "openresearch", source)

    splits = tmp_path / "d" / "openresearch" / "splits"
    assert read_ids(splits / "train.ids") == [
        f"p{i}" for i in range(1, 8)
    ]  # the oldest 8, without p0
    assert read_ids(splits / "dev.ids") == ["p8"]
    assert read_ids(splits / "test.ids") == ["p9"]
    assert record.counts["papers"] == 10
    assert record.counts["undated"] == 1
    assert (source / "papers-2017-02-21.zip").is_file()  # never moved
    index = index_of(tmp_path / "d" / "openresearch", tmp_path)
    assert index.manifest.settings["splits"] == "shipped"
    assert index.papers[1].abstract == "What p1 found."
    assert index.manifest.counts["citations"] == 9


def test_what_was_unpacked_may_be_given_itself(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    packed = gzip.compress(lines(old_papers(10)))
    (tmp_path / "given" / openresearch.PAPERS).write_bytes(packed)

    record = got(unsummed(openresearch.OPENRESEARCH), tmp_path / "openresearch", tmp_path / "given")

    assert record.files[openresearch.PAPERS].sha256 == hashlib.sha256(packed).hexdigest()
    assert not (tmp_path / "_downloads").exists()


def test_queries_are_drawn_alike_each_time_and_stay_in_order() -> None:
    ids = [f"{i:04}" for i in range(1000)]
    years = np.repeat(np.arange(1900, 2000, dtype=np.int32), 10)
    from citerec.corpus.graph import Graph

    graph = Graph(np.arange(1001, dtype=np.int64), np.zeros(1000, np.int32))  # all cite 0

    one = openresearch.split(ids, years, graph, sample=20)
    again = openresearch.split(ids, years, graph, sample=20)
    other = openresearch.split(ids, years, graph, sample=20, seed=1)

    assert one == again
    assert one["test"] != other["test"]
    assert {name: len(one[name]) for name in one} == {"train": 800, "dev": 20, "test": 20}
    assert [years[int(docid)] for docid in one["dev"]] == sorted(years[int(d)] for d in one["dev"])
    assert all(800 <= int(docid) < 900 for docid in one["dev"])


def test_a_bad_record_is_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    papers = [*old_papers(10), open_research("p1", 1991, []), {"id": "x", "s2Url": "", "year": 1}]

    record = got(
        unsummed(openresearch.OPENRESEARCH), tmp_path / "o", zipped(tmp_path / "given", papers)
    )

    assert record.counts["papers"] == 10
    assert record.counts["conflicting_duplicates"] == 1
    assert record.counts["missing_fields"] == 1


def test_a_corpus_without_years_is_none(tmp_path: Path) -> None:
    source = zipped(tmp_path / "given", [open_research("a", None, [])])

    with pytest.raises(BadInputError, match="no paper with a year"):
        got(unsummed(openresearch.OPENRESEARCH), tmp_path / "o", source)

    assert not (tmp_path / "o").exists()


# DBLP and PubMed.


def dblp_papers() -> list[dict[str, Any]]:
    old = [citeomatic_record(f"t{i}", 1990 + i % 18, ["t0"] if i else []) for i in range(12)]
    cited = [f"t{i}" for i in range(12)]
    return [
        *old,
        citeomatic_record("dev9", 2008, cited[:9]),  # one too few
        citeomatic_record("dev10", 2008, cited[:10]),
        citeomatic_record("test9", 2010, [*cited[:9], "dev10"]),  # the tenth is no train paper
        citeomatic_record("test12", 2011, [*cited, "outside"]),
        citeomatic_record("late", 2012, cited),
    ]


def test_dblp_asks_queries_of_ten_train_papers_and_more(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "corpus.json").write_bytes(lines(dblp_papers()))

    record = got(DATASETS["dblp"], tmp_path / "dblp", tmp_path / "given")

    splits = tmp_path / "dblp" / "splits"
    assert set(read_ids(splits / "train.ids")) == {f"t{i}" for i in range(1, 12)}  # t0 cites none
    assert read_ids(splits / "dev.ids") == ["dev10"]
    assert read_ids(splits / "test.ids") == ["test12"]
    assert {file.name for file in splits.iterdir()} == {"train.ids", "dev.ids", "test.ids"}
    assert record.counts["too_late"] == 1
    assert index_of(tmp_path / "dblp", tmp_path).manifest.counts["papers"] == 16


def test_pubmed_is_taken_out_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    inside = "citeomatic-2018-02-12/comparison/pubmed/corpus.json"
    with tarfile.open(tmp_path / "given" / "citeomatic-2018-02-12.tar.gz", "w:gz") as archive:
        for name, content in (
            ("citeomatic-2018-02-12/README", b"x"),
            (inside, lines(dblp_papers())),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

    got(DATASETS["pubmed"], tmp_path / "pubmed", tmp_path / "given")

    splits = tmp_path / "pubmed" / "splits"
    assert (
        read_ids(splits / "dev.ids") == []
    )  # PubMed's dev year is 2009; its train years end in 2008
    assert set(read_ids(splits / "test.ids")) == {
        "test9",
        "test12",
        "late",
    }  # dev10 is a train paper


def test_years_of_splits_rise() -> None:
    with pytest.raises(ConfigError, match="years must rise, got 2007, 2007, 2011"):
        citeomatic.Years(train=2007, dev=2007, test=2011)


# SciDocs and local corpora.


def scidocs_folder(folder: Path) -> Path:
    for name in scidocs.FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{{}}{name}")
    return folder


def test_scidocs_is_taken_as_it_was_published(tmp_path: Path) -> None:
    source = scidocs_folder(tmp_path / "given")

    record = got(DATASETS["scidocs"], tmp_path / "scidocs", source)

    assert record.counts == {"files": 21}
    assert (tmp_path / "scidocs" / "cite" / "test.qrel").read_text() == "{}cite/test.qrel"
    assert (source / "cite" / "test.qrel").is_file()


def test_files_that_a_folder_lacks_are_named(tmp_path: Path) -> None:
    source = scidocs_folder(tmp_path / "given")
    (source / "mag" / "val.csv").unlink()
    (source / "recomm" / "propensity_scores.json").unlink()

    with pytest.raises(
        DatasetError, match=r"has no mag/val.csv, recomm/propensity_scores.json; exp"
    ):
        got(DATASETS["scidocs"], tmp_path / "scidocs", source)


def test_no_folder_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"nowhere is no folder; expected a folder with dblp.json"
    ):
        got(DATASETS["dblp"], tmp_path / "dblp", tmp_path / "nowhere")


def local_folder(folder: Path, papers: Sequence[dict[str, Any]]) -> Path:
    (folder / "splits").mkdir(parents=True)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(lines(papers)))
    for name, docid in (("train", "a"), ("dev", "b"), ("test", "c")):
        (folder / "splits" / f"{name}.ids").write_text(f"{docid}\n")
    return folder


LOCAL = [
    {"id": "z", "title": "Zero", "year": 1999, "abstract": "There."},
    {"id": "a", "title": "One", "year": 2000, "citations": ["z"]},
    {"id": "b", "title": "Two", "year": 2001, "citations": ["z", "a", "c"]},  # c is later
    {"id": "c", "title": "Three", "citations": ["z", "b", "gone"]},
]


def test_a_local_corpus_is_given_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = local_folder(tmp_path / "given", LOCAL)
    monkeypatch.chdir(tmp_path)

    assert not is_fetched("vis")
    assert run(["datasets", "fetch", "vis", "--from", str(source), "--quiet"]) == 0

    assert is_fetched("vis")
    assert read_ids(where("vis") / "splits" / "dev.ids") == ["b"]


def test_a_local_corpus_cannot_be_downloaded(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="vis is not published; name a folder with corpus"):
        fetch(DATASETS["vis"], tmp_path / "vis", FetchConfig(), no_progress, lambda _: None)


# Checksums, records, what exists; use --force.


def test_another_file_than_was_fetched_first_is_refused(tmp_path: Path) -> None:
    source = local_folder(tmp_path / "given", LOCAL)
    got(DATASETS["vis"], tmp_path / "vis", source)
    (source / "splits" / "dev.ids").unlink()  # it may be a link to what was fetched
    (source / "splits" / "dev.ids").write_text("a\n")

    with pytest.raises(DatasetError, match=r"has sha256 .*, expected .*, as fetched on 20"):
        got(DATASETS["vis"], tmp_path / "vis", source, force=True)

    assert read_ids(tmp_path / "vis" / "splits" / "dev.ids") == ["b"]  # as it was


def test_a_file_that_its_makers_did_not_publish_is_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "given", old_papers(3))

    with pytest.raises(
        DatasetError, match=r"md5 .*, expected f35c40992e94b458db73fa030a79844b, as its a"
    ):
        got(openresearch.OPENRESEARCH, tmp_path / "o", source)


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    source = local_folder(tmp_path / "given", LOCAL)
    first = got(DATASETS["vis"], tmp_path / "vis", source)

    assert got(DATASETS["vis"], tmp_path / "vis", tmp_path / "nowhere") == first

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="mine is not empty and contains no dataset"):
        got(DATASETS["vis"], tmp_path / "mine", source)


@pytest.mark.parametrize("other", ["biomed", "acm_vis"])
def test_a_folder_of_another_dataset_is_not_taken_for_this_one(
    tmp_path: Path, other: str, capfd: Any
) -> None:
    source = local_folder(tmp_path / "given", LOCAL)
    got(DATASETS["vis"], tmp_path / "x", source)

    for force in (False, True):
        with pytest.raises(
            ConfigError, match=f"x contains vis, not {other}; choose another folder"
        ):
            got(DATASETS[other], tmp_path / "x", source, force=force)
    assert run(["datasets", "fetch", other, "--output", str(tmp_path / "x")]) == 2

    assert "exists; use --force" not in capfd.readouterr().err


def test_a_file_is_no_folder_to_fetch_to(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").touch()

    with pytest.raises(ConfigError, match=r"plain.txt is a file; choose a folder with --output"):
        got(DATASETS["vis"], tmp_path / "plain.txt", local_folder(tmp_path / "given", LOCAL))


@pytest.mark.parametrize("packed", ["corpus.jsonl", "corpus.jsonl.bz2"])
def test_a_local_corpus_keeps_how_it_is_packed(tmp_path: Path, packed: str) -> None:
    source = local_folder(tmp_path / "given", LOCAL)
    got(DATASETS["vis"], tmp_path / "vis", source)
    (source / "corpus.jsonl.gz").unlink()
    content = lines(LOCAL)
    (source / packed).write_bytes(bz2.compress(content) if packed.endswith("bz2") else content)

    record = got(DATASETS["vis"], tmp_path / "vis", source, force=True)

    there = {file.name for file in (tmp_path / "vis").iterdir()}
    assert there == {packed, "splits", "SOURCE.json"}
    assert {name for name in record.files if "corpus" in name} == {packed}
    assert index_of(tmp_path / "vis", tmp_path).manifest.counts["papers"] == 4


def test_a_link_in_a_given_folder_is_followed(tmp_path: Path) -> None:
    source = local_folder(tmp_path / "given", LOCAL)
    (source / "corpus.jsonl.gz").rename(source / "kept.gz")
    (source / "corpus.jsonl.gz").symlink_to("kept.gz")  # relative: it would dangle elsewhere

    got(DATASETS["vis"], tmp_path / "vis", source)

    stored = tmp_path / "vis" / "corpus.jsonl.gz"
    assert not stored.is_symlink()
    assert gzip.decompress(stored.read_bytes()) == lines(LOCAL)


@pytest.mark.parametrize(
    ("field", "value"), [("counts", 3), ("counts", {"papers": "x"}), ("fetched", 3), ("without", 1)]
)
def test_a_damaged_record_is_said_so(tmp_path: Path, field: str, value: object) -> None:
    got(DATASETS["vis"], tmp_path / "vis", local_folder(tmp_path / "given", LOCAL))
    file = tmp_path / "vis" / "SOURCE.json"
    whole = json.loads(file.read_bytes())

    for content in ({"dataset": "vis"}, whole | {field: value}):
        file.write_text(json.dumps(content))
        with pytest.raises(BadInputError, match="is no valid dataset record"):
            read_record(tmp_path / "vis")


# Archives.


def test_a_damaged_zip_leaves_nothing(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "given", old_papers(500)) / "papers-2017-02-21.zip"
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 0xFF
    archive.write_bytes(content)

    with pytest.raises(BadInputError, match="is incomplete or damaged"):
        got(unsummed(openresearch.OPENRESEARCH), tmp_path / "o", tmp_path / "given")

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [archive.name]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_cut_archive_is_said_so(tmp_path: Path, kind: str) -> None:
    archive = tmp_path / f"a.{kind}"
    content = np.random.default_rng(0).bytes(100_000)
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("x", content)
    else:
        with tarfile.open(archive, "w:gz") as packed:
            entry = tarfile.TarInfo("x")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    archive.write_bytes(archive.read_bytes()[:50_000])

    with pytest.raises(BadInputError, match="is incomplete or damaged"):
        take_member(archive, "x", tmp_path / "out" / "x", lambda done, size: None)

    assert list((tmp_path / "out").iterdir()) == []


def test_an_archive_cannot_write_elsewhere(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("../../x", "evil")

    take_member(tmp_path / "a.zip", "x", tmp_path / "out" / "x", lambda done, size: None)

    assert (tmp_path / "out" / "x").read_text() == "evil"
    assert not (tmp_path.parent / "x").exists()


def test_an_archive_of_something_else_is_said_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("cats.png", "")

    with pytest.raises(BadInputError, match=r"contains cats.png, but no papers.json"):
        take_member(tmp_path / "a.zip", "papers.json", tmp_path / "x", lambda done, size: None)


def test_an_encrypted_zip_is_said_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("x", "secret")
    content = (tmp_path / "a.zip").read_bytes()
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # of the member, and of its entry
        place = content.index(start) + flags
        content = content[:place] + b"\x01" + content[place + 1 :]
    (tmp_path / "a.zip").write_bytes(content)

    with pytest.raises(BadInputError, match="x is encrypted"):
        take_member(tmp_path / "a.zip", "x", tmp_path / "x", lambda done, size: None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("size", [100, 5_000_000])  # the first is not written until the file closes
def test_a_full_disk_is_not_a_damaged_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("x", b"0" * size)
    monkeypatch.setattr("citerec.atomic.uuid4", lambda: UUID(int=0))
    (tmp_path / ".x.00000000.tmp").symlink_to("/dev/full")

    with pytest.raises(OutputError, match="No space left on device"):
        take_member(tmp_path / "a.zip", "x", tmp_path / "x", lambda done, size: None)


# Train queries without those of another dataset.


def held_apart(tmp_path: Path) -> tuple[Path, Path]:
    papers = old_papers(10)
    papers[3]["title"] = "Mining the citation graph"
    papers[4]["title"] = "Mining: the Citation-Graph"
    papers[5]["title"] = "Mining the citation graph, part two of three"
    papers[9]["title"] = "Mining the citation graph"  # a test query: it is none of the training
    got(
        unsummed(openresearch.OPENRESEARCH),
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
    assert read_ids(ours / "splits" / "train.ids") == ["p1", "p2", "p4", "p5", "p6", "p7"]
    assert read_ids(ours / "splits" / "test.ids") == ["p9"]
    record = read_record(ours)
    assert record is not None
    assert record.without == {"dblp": 1}


def test_a_kill_before_the_record_is_written_does_not_lose_the_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = held_apart(tmp_path)

    def killed(folder: Path, record: DatasetRecord) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(without, "write_record", killed)
        drop_train_queries(ours, theirs, no_progress)
    dropped = drop_train_queries(ours, theirs, no_progress)

    record = read_record(ours)
    assert dropped == 0  # p3 is gone already
    assert record is not None
    assert record.without == {"dblp": 1}
    assert read_ids(ours / "splits" / "without_dblp.ids") == ["p3"]


def test_all_papers_of_scidocs_are_held_out_by_id_or_title(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
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
    assert run(["datasets", "fetch", "scidocs", "--from", str(published), "--quiet"]) == 0

    options = ["--output", "openresearch", "--without", "scidocs"]
    assert run(["datasets", "fetch", "openresearch", *options]) == 0

    # "Paper p1 of a corpus" shares 4 of 6 words with that of p6: 0.67 is below 0.7.
    assert read_ids(tmp_path / "openresearch/splits/train.ids") == ["p1", "p4", "p5", "p7"]
    record = read_record(tmp_path / "openresearch")
    assert record is not None
    assert record.without == {"scidocs": 3}
    assert "3 train queries dropped" in capfd.readouterr().err


def test_the_other_dataset_has_to_be_there(tmp_path: Path) -> None:
    ours, _ = held_apart(tmp_path)

    with pytest.raises(DatasetError, match="pubmed contains no dataset with splits; fetch it"):
        drop_train_queries(ours, tmp_path / "pubmed", no_progress)
    with pytest.raises(ConfigError, match="held out of itself"):
        drop_train_queries(ours, ours, no_progress)


# Statistics.


def test_statistics_count_what_the_protocol_counts(tmp_path: Path) -> None:
    index = index_of(local_folder(tmp_path / "given", LOCAL), tmp_path)

    found = corpus_statistics(index)

    # a: z; b: z, a and c, whose year is unknown and so not known to be later; c: z, b
    assert found["papers"] == 4
    assert found["with abstract"] == 1
    assert found["citations"] == 6
    assert found["citing papers"] == 3
    assert [found[f"{name} queries"] for name in ("train", "dev", "test")] == [1, 1, 1]
    assert found["gold per query"] == pytest.approx(6 / 3)
    assert (found["first year"], found["last year"]) == (1999, 2001)
    assert statistics(index).share_with_abstract == 0.25


# The command line.


def test_datasets_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["datasets", "list"]) == 0
    listed = capfdbinary.readouterr().out.decode()
    assert run(["datasets", "info", "dblp"]) == 0
    about = capfdbinary.readouterr().out.decode()

    assert [line.split()[0] for line in listed.splitlines()] == list(DATASETS)
    assert "licence:      not stated by its makers" in about
    assert "comparison/dblp/corpus.json" in about
    assert "takes rules = { min_gold = 10, train_only = true }" in about


def test_fetching_says_what_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    held_apart(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").mkdir()
    (tmp_path / "dblp").rename(tmp_path / "datasets" / "dblp")

    options = ["--output", "openresearch", "--without", "dblp"]
    assert run(["datasets", "fetch", "openresearch", *options]) == 0
    said = capfd.readouterr()

    assert "openresearch exists; use --force" in said.err
    assert "1 train queries dropped" in said.err
    assert "10 papers" in said.out
    assert run(["datasets", "info", "dblp"]) == 0
    assert "16 papers" in capfd.readouterr().out


def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["datasets", "fetch", "dplb"]) == 2
    assert run(["datasets", "fetch", "acm_vis"]) == 2
    assert run(["datasets", "info", "dplb"]) == 2
    assert run(["datasets", "fetch", "dblp", "--from", "x", "--without", "y"]) == 2

    assert capfd.readouterr().err.count("citerec: error: ") == 4
    assert list(tmp_path.iterdir()) == []
