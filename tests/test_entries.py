"""Names that a downloaded folder states: none leads out of it, and none is a link, a pipe or a device."""

import os
from pathlib import Path

import pytest

from citerec.entries import entries, entry_faults, name_fault, name_faults, read_record


@pytest.mark.parametrize(
    "name", ["manifest.json", "bm25/_0.cfs", "1_Pooling/config.json", "a b/Ü.txt", "...a", ".x"]
)
def test_a_path_inside_a_folder_is_a_name(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("", None, 7, "..", "../x", "a/../b", "a/..", "/etc/passwd", "a//b", "a/", "./a", "."),
        *("a\\b", "..\\x", "C:x", "a:stream", "a\0b", "a\nb", "a\x1b[2J", "\u202ea", "\ud800"),
        *("nul", "CON.txt", "a/Aux", "com1.bin", "a.", "a ", "b/c. ", "x" * 1025),
    ],
)
def test_what_leads_out_or_means_another_file_elsewhere_is_no_name(name: object) -> None:
    assert name_fault(name)


def test_two_names_of_one_file_are_refused() -> None:
    assert name_faults(["a", "b/c", "b/d"]) == []
    assert name_faults(["b/c", "B/c"]) == ["'b/c' and 'B/c' differ in case only"]
    assert name_faults(["ü", "u\u0308"])  # one letter, composed and not
    assert name_faults(["a", "a/b"]) == ["'a' is a file and a folder"]


def test_entries_that_are_no_files_are_told_by_kind(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_text("")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")

    assert sorted(entries(tmp_path)) == [
        (".hidden", "folder"),
        ("a", "file"),
        ("link", "link"),
        ("pipe", "special"),
        ("sub/b", "file"),
    ]
    assert entry_faults(tmp_path, ["a", "sub/b", "sub", "link/passwd", "link", "pipe", "c"]) == {
        "sub": "is a folder, expected a file",
        "link/passwd": "is missing: link is a link, expected a folder",
        "link": "is a link, expected a file",
        "pipe": "is a pipe or a device, expected a file",
        "c": "is missing",
    }


def test_a_link_counts_where_it_leads_into_the_same_cache(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (tmp_path / "blob").write_text("")
    (snapshot / "in").symlink_to("../../blob")
    (snapshot / "out").symlink_to("/etc/passwd")

    assert entry_faults(snapshot, ["in", "out"], links_into=tmp_path).keys() == {"out"}


def test_folders_nested_by_the_thousand_are_walked(tmp_path: Path) -> None:
    nested = [tmp_path / "/".join("d" * depth) for depth in range(1, 1201)]
    try:
        for folder in nested:
            folder.mkdir()

        assert len(list(entries(tmp_path))) == 1
    finally:
        for folder in reversed(nested):  # pytest's own clean-up recurses
            folder.rmdir()


def test_a_record_is_not_waited_for_at_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")

    with pytest.raises(OSError, match="not a file"):
        read_record(tmp_path / "manifest.json")


def test_a_file_that_is_removed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("")
    read = entries(tmp_path)

    first, _ = next(read)
    for name in {"a", "b", "c"} - {first}:
        (tmp_path / name).unlink()

    assert list(read) == []
