"""Finding, opening and verifying index folders, also while they are replaced."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.sealing import reseal

from citerec.errors import IndexDamagedError, IndexFormatError, IndexNotFoundError
from citerec.folder import IndexFolder, find_index, open_index, verify_index
from citerec.manifest import NAME

REBUILDS = """
import sys
from pathlib import Path
from citerec.build import BuildConfig, build_index
few, many, index = map(Path, sys.argv[1:])
for corpus in [few, many] * 3:
    build_index(corpus, index, BuildConfig(force=True))
"""


@pytest.fixture
def copy(sample_index: IndexFolder, tmp_path: Path) -> Path:
    """A copy of the sample index that may be harmed."""
    return Path(shutil.copytree(sample_index.path, tmp_path / "copy"))


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x10
    file.write_bytes(content)


def test_an_open_index_knows_its_parts(sample_index: IndexFolder) -> None:
    index = open_index(sample_index.path)

    count = index.manifest.counts["papers"]
    in_order = index.papers.ids[np.argsort(index.id_rank)].tolist()
    assert len(index.papers) == len(index.graph.indptr) - 1 == count
    assert len(index.graph.indices) == index.manifest.counts["citations"]
    assert in_order == sorted(in_order)
    assert (index.bm25 / "rows.npy").is_file()
    assert (index.splits / "train.ids").is_file()


def test_an_index_is_whole_after_it_was_built(sample_index: IndexFolder) -> None:
    assert verify_index(sample_index.path) == sample_index.manifest


def test_a_flipped_byte_is_found_wherever_it_is(copy: Path) -> None:
    files = [file for file in sorted(copy.rglob("*")) if file.is_file() and file.stat().st_size]
    places = [
        (file, place)
        for file in files
        for place in {0, file.stat().st_size // 2, file.stat().st_size - 1}
    ]

    for file, place in places:
        flip(file, place)
        with pytest.raises((IndexDamagedError, IndexFormatError)) as caught:
            verify_index(copy)
        flip(file, place)

        assert file.name in str(caught.value)

    assert len(places) > 30
    assert copy / NAME in files
    assert verify_index(copy)


def test_a_missing_file_is_found_on_opening(copy: Path) -> None:
    (copy / "splits" / "dev.ids").unlink()

    with pytest.raises(IndexDamagedError, match=r"splits/dev.ids is missing; rebuild it"):
        open_index(copy)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("papers.arrow", "papers.arrow"),
        ("citations/indptr.npy", "citations"),
        ("citations/indices.npy", "citations"),
        ("id_rank.npy", "id_rank.npy"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"nonsense", b"ARROW1\0\0", b"\x93NUMPY\x01\x00\x02\0{}"])
def test_a_part_that_cannot_be_made_out_is_damage(
    copy: Path, name: str, part: str, content: bytes
) -> None:
    (copy / name).write_bytes(content)

    with pytest.raises(IndexDamagedError, match=f"{name} is not what was written; rebuild it"):
        open_index(copy)
    reseal(copy)  # as somebody would who offers it for download
    with pytest.raises(IndexDamagedError, match=rf"{part} cannot be read \(.+\); rebuild it"):
        open_index(copy)


def test_an_open_index_stays_what_it_is_when_it_is_removed(copy: Path) -> None:
    index = open_index(copy)

    shutil.rmtree(copy)

    assert index.papers[0].title
    assert index.graph.citing.shape == index.graph.indices.shape


def test_readers_see_a_whole_index_all_through_its_rebuilds(
    build: Callable[..., IndexFolder], tmp_path: Path, write_jsonl: Callable[..., Path]
) -> None:
    def papers(count: int) -> list[dict[str, object]]:
        return [{"id": f"p{i}", "title": "T", "citations": ["p0"]} for i in range(count)]

    few, many = write_jsonl(papers(3), "few.jsonl"), write_jsonl(papers(500), "many.jsonl")
    path = build(papers(3)).path
    seen: list[int] = []
    with subprocess.Popen([sys.executable, "-c", REBUILDS, few, many, path]) as rebuilding:
        while rebuilding.poll() is None:
            index = open_index(path)
            count = index.manifest.counts["papers"]
            assert len(index.papers) == len(index.id_rank) == len(index.graph.indptr) - 1 == count
            seen.append(verify_index(path).counts["papers"])

    assert rebuilding.returncode == 0
    assert set(seen) == {3, 500}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "few.jsonl",
        "index",
        "made",
        "many.jsonl",
    ]


# --- Finding.


def an_index(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / NAME).write_text(json.dumps({"format": 1}))
    return folder


def test_the_only_index_need_not_be_named(tmp_path: Path) -> None:
    only = an_index(tmp_path / "one")
    an_index(tmp_path / ".two.building-host-1")  # on its way
    (tmp_path / "README.md").write_text("Generated.")

    assert find_index(None, root=tmp_path) == only


def test_of_several_indexes_one_must_be_chosen(tmp_path: Path) -> None:
    for name in ("b", "a"):
        an_index(tmp_path / name)

    with pytest.raises(IndexNotFoundError, match=r"several indexes: .*/a, .*/b; choose one"):
        find_index(None, root=tmp_path)


@pytest.mark.parametrize("root", ["empty", "missing"])
def test_without_any_index_the_message_says_how_to_build_one(tmp_path: Path, root: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(IndexNotFoundError, match="citerec index CORPUS, or try: citerec demo"):
        find_index(None, root=tmp_path / root)


def test_a_bare_name_is_looked_up_among_the_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    under = an_index(tmp_path / "indexes" / "vis")
    (tmp_path / "vis").mkdir()  # the corpus, say

    assert find_index(Path("vis"), root=tmp_path / "indexes") == under
    assert find_index(under) == under


def test_an_index_here_goes_before_one_among_the_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    an_index(tmp_path / "indexes" / "vis")
    an_index(tmp_path / "vis")

    assert find_index(Path("vis"), root=tmp_path / "indexes") == Path("vis")


def test_a_name_that_nothing_has_is_given_back_and_does_not_open(tmp_path: Path) -> None:
    path = find_index(tmp_path / "nothing")

    with pytest.raises(IndexNotFoundError, match=r"is not an index .*; build one"):
        open_index(path)
