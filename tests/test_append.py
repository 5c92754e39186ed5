"""`recommend --append`: papers are added to a file of references, and none of its bytes changes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pybtex.database import BibliographyData, parse_bytes
from pybtex.exceptions import PybtexError
from support.tools import run_python
from support.types import Capture, MonkeyPatch

from citerec import Recommendations
from citerec.bibliography import bibtex, ris
from citerec.cli import run
from citerec.errors import (
    BadInputError,
    CiterecError,
    ConfigError,
    FileChangedError,
    LockedError,
    OutputError,
)
from citerec.match import append as references
from citerec.match.append import append_papers
from citerec.types import Paper, Query, Recommendation

Bib = Callable[[bytes | str], Path]  # writes refs.bib
TREES = Paper(
    id="p1",
    title="On the Maps of Trees",
    year=2020,
    authors=("Ada Ångström-Smith", "Bo Li"),
    venue="Journal of Maps",
    doi="10.1234/trees_1",
)
ROOTS = Paper(
    id="p2", title="Roots of large trees: a survey", year=2021, authors=("Cy Root",)
)
LEAVES = Paper(id="p3", title="Leaves", year=2022, authors=("Di Leaf",), venue="VIS")


def pybtex_keys(data: bytes) -> list[str]:
    return list(parsed(data).entries)


def parsed(data: bytes) -> BibliographyData:
    return parse_bytes(data.decode("utf-8-sig").encode(), "bibtex")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def bib(tmp_path: Path) -> Bib:
    def write(content: bytes | str) -> Path:
        path = tmp_path / "refs.bib"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# --- BibTeX


def test_the_old_bytes_stay_and_the_new_entry_has_their_line_ends(
    bib: Bib,
) -> None:
    old = (
        b"\xef\xbb\xbf% mine, r\xc3\xa9f\xc3\xa9rences\r\n"
        b'@string{acl = "ACL"}\r\n'
        b"@InProceedings{a1,\r\n  title={A},\r\n  booktitle = acl # { 2019},  \r\n  year = 2019\r\n}"
    )
    path = bib(old)

    done = append_papers(path, [TREES])

    new = path.read_bytes()
    assert new.startswith(old)
    assert new[len(old) :] == (
        b"\r\n\r\n@article{angstromsmith2020maps,\r\n"
        b"  title = {On the Maps of Trees},\r\n"
        b"  author = {\xc3\x85ngstr\xc3\xb6m-Smith, Ada and Li, Bo},\r\n"
        b"  year = {2020},\r\n  journal = {Journal of Maps},\r\n  doi = {10.1234/trees_1},\r\n}\r\n"
    )
    assert done.keys == ("angstromsmith2020maps",)
    assert pybtex_keys(new) == ["a1", "angstromsmith2020maps"]
    assert path.with_name("refs.bib.bak").read_bytes() == old


def test_a_file_that_does_not_exist_is_made_without_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "refs.bib"

    done = append_papers(path, [TREES, LEAVES])

    assert pybtex_keys(path.read_bytes()) == ["angstromsmith2020maps", "leaf2022leaves"]
    assert (done.backup, names(tmp_path)) == (None, ["refs.bib"])


def test_papers_that_the_file_has_are_skipped_and_a_second_run_changes_nothing(
    bib: Bib,
) -> None:
    path = bib(
        "@misc{x, title = {{On} the maps of {TREES}!}}\n@misc{y, doi={https://doi.org/10.1234/TREES_2}}\n"
    )
    same_doi = Paper(id="p4", title="Another title of it", doi="10.1234/trees_2")

    first = append_papers(path, [TREES, ROOTS, same_doi])
    content, status = path.read_bytes(), path.stat()
    path.with_name("refs.bib.bak").unlink()
    second = append_papers(path, [TREES, ROOTS, same_doi])

    assert (first.keys, first.skipped) == (("root2021roots",), (TREES, same_doi))
    assert (second.keys, second.skipped) == ((), (TREES, ROOTS, same_doi))
    assert (path.read_bytes(), path.stat().st_ino) == (content, status.st_ino)
    assert not path.with_name("refs.bib.bak").exists()


def test_a_follow_up_with_another_doi_is_added(bib: Bib) -> None:
    path = bib(
        "@misc{x, title = {Roots of large trees}, author={Root, Cy}, year=2020, doi={10.1234/a}}\n"
    )

    assert append_papers(path, [ROOTS]).skipped == (ROOTS,)
    assert append_papers(path, [replace(ROOTS, doi="10.1234/b")]).keys == (
        "root2021roots",
    )


def test_two_records_of_one_paper_are_added_once(tmp_path: Path) -> None:
    preprint = Paper(
        id="p9", title="Roots of Large Trees: A Survey", year=2020, authors=("C. Root",)
    )

    done = append_papers(tmp_path / "refs.bib", [ROOTS, preprint])

    assert (done.keys, done.skipped) == (("root2021roots",), (preprint,))


def test_a_citation_key_that_is_the_id_of_another_paper_is_no_match(
    bib: Bib,
) -> None:
    path = bib("@misc{p1, title = {Something completely different from maps}}\n")

    assert append_papers(path, [TREES]).keys == ("angstromsmith2020maps",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"@misc{a, title={A}}\n\n@misc{b, title={B\n", "line 3"),
        (b"@misc{a, title={A}}\n@comment{x", "line 2"),
        (b"@misc{a title={A}}", "line 1"),
        (b'@misc{a, title="A}\n@misc{b, title={B}}', "line 1"),
        (b"@misc{a, title={\xe9}}", "not UTF-8"),
        ("@misc{a, title={A}}".encode("utf-16"), "UTF-16"),
        (b"%PDF-1.4", "a PDF"),
        (
            b'[{"id": "a", "type": "book"}]',
            "this is JSON or YAML, expected BibTeX or RIS",
        ),
    ],
)
def test_other_and_broken_files_are_refused(
    bib: Bib, content: bytes, words: str
) -> None:
    path = bib(content)

    with pytest.raises(BadInputError, match=words):
        append_papers(path, [TREES])

    assert (path.read_bytes(), names(path.parent)) == (content, ["refs.bib"])


def test_a_file_of_comments_alone_is_bibtex(bib: Bib) -> None:
    path = bib("% my references")

    append_papers(path, [LEAVES])

    assert path.read_text().startswith(
        "% my references\n\n@inproceedings{leaf2022leaves,\n  title"
    )


TEXTS = st.text(st.sampled_from('aé \t@{}"#,=%\\\n\r~-_(1'), max_size=12)
ENTRIES = st.sampled_from(
    [
        "@misc{a,}",
        "@Article{b:1,\n  title = {A {B}},\n  year = 2019\n}",
        '@INPROCEEDINGS{Leaf2022Leaves, Author = "a" # "b", crossref = acl # {x},\n}',
        "@misc{root2021roots,\r\n    note = acl}",
        "@misc{é,\n\ttitle = {}}",
    ]
)
PIECES = st.one_of(
    ENTRIES,
    TEXTS,
    st.sampled_from(
        ['@string{acl = "ACL"}', "@comment{x {y}}", "% note @misc", "@preamble{{x}}"]
    ),
)
FILES = st.builds(
    lambda bom, pieces, gap, end: bom + gap.join(pieces).encode() + end,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(PIECES, min_size=1, max_size=5),
    st.sampled_from(["\n", "\n\n", "\r\n", "\r", ""]),
    st.sampled_from([b"", b"\n", b"\r\n", b"\n\n\n", b"  "]),
)


@given(FILES)
@settings(max_examples=40)
def test_any_file_stays_as_it_is_and_parses_with_the_new_entries(
    tmp_path_factory: pytest.TempPathFactory, old: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "wild"
    folder.mkdir(exist_ok=True)
    path = folder / "refs.bib"
    path.write_bytes(old)
    text = old.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")

    try:
        done = append_papers(path, [ROOTS, LEAVES])
    except CiterecError:
        assert path.read_bytes() == old
        return

    new = path.read_bytes()
    assert new.startswith(old)
    before, _ = bibtex.read_records(text)
    after, broken = bibtex.read_records(
        new.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    )
    keys, more = (
        [r[bibtex.KEY] for _, r in rows] for rows in (before, after[len(before) :])
    )
    assert [r for _, r in after[: len(before)]] == [r for _, r in before]
    assert more == list(done.keys)
    assert not broken
    assert len({*map(str.lower, more)} - {*map(str.lower, keys)}) == len(done.keys)
    try:
        entries = parsed(old).entries
    except (PybtexError, ValueError, IndexError):
        assume(False)
    both = parsed(new).entries
    assert list(both) == [*entries, *done.keys]
    assert all(both[key] == entries[key] for key in entries)


# --- RIS


def test_ris_gets_records_in_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "refs.ris"
    old = b"TY  - JOUR\r\nTI  - Maps\r\nID  - leaf2022leaves\r\nER  - "
    path.write_bytes(old)

    done = append_papers(path, [LEAVES])

    new = path.read_bytes()
    assert new.startswith(old + b"\r\n\r\nTY  - CPAPER\r\n")
    assert new.endswith(b"ER  - \r\n")
    assert done.keys == ("leaf2022leavesa",)
    assert [r["title"] for _, r in ris.read_records(new.decode())] == ["Maps", "Leaves"]


# --- files


def test_permissions_stay_and_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    target = tmp_path / "shared" / "all.bib"
    target.write_text("@misc{a, title={A}}\n")
    target.chmod(0o640)
    link = tmp_path / "refs.bib"
    link.symlink_to(target)

    done = append_papers(link, [LEAVES])

    assert link.is_symlink()
    assert pybtex_keys(target.read_bytes()) == ["a", "leaf2022leaves"]
    assert target.stat().st_mode & 0o777 == 0o640
    assert done.backup == tmp_path / "shared" / "all.bib.bak"
    assert done.backup.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("folder", "no regular file"),
        ("pipe.bib", "no regular file"),
        ("none/refs.bib", "cannot write .*there is no folder .*none"),
        ("refs.docx", "its format is unknown"),
        ("locked.bib", "read-only"),
    ],
)
def test_what_cannot_be_extended_is_one_line(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "locked.bib").touch(0o444)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.bib")

    with pytest.raises(CiterecError, match=words):
        append_papers(tmp_path / name, [LEAVES])


# --- links that came with somebody else's folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user next to the folder of a project."""
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_text("PATH=/bin\n")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that somebody else made: its bibliography is what a shell would run."""
    path = tmp_path / "project"
    path.mkdir()
    (path / "refs.bib").write_text("% $(evil)\n@misc{a, title={A}}\n")
    return path


@pytest.mark.parametrize(
    "plant",
    [
        lambda backup, secret: backup.symlink_to(secret),
        lambda backup, secret: backup.symlink_to(
            os.path.relpath(secret, backup.parent)
        ),
        # not there yet
        lambda backup, secret: backup.symlink_to(secret.with_name(".profile")),
        lambda backup, secret: backup.symlink_to(backup),
        lambda backup, secret: os.link(secret, backup),
        lambda backup, secret: backup.touch(mode=0o444),
    ],
)
def test_the_backup_is_a_file_of_its_own(
    project: Path, secret: Path, plant: Callable[[Path, Path], None]
) -> None:
    path, backup = project / "refs.bib", project / "refs.bib.bak"
    old = path.read_bytes()
    os.utime(path, (86_400, 86_400))
    plant(backup, secret)

    append_papers(path, [LEAVES])

    assert not backup.is_symlink()
    assert (backup.read_bytes(), backup.stat().st_nlink) == (old, 1)
    assert backup.stat().st_mtime == 86_400
    assert secret.read_text() == "PATH=/bin\n"
    assert (names(project), names(secret.parent)) == (
        ["refs.bib", "refs.bib.bak"],
        [".bashrc"],
    )


@pytest.mark.parametrize(
    ("name", "to", "words"),
    [
        ("refs.bib.bak", None, r"cannot write .*/refs\.bib\.bak: "),
        (".refs.bib.lock", ".bashrc", r"cannot write .*/\.refs\.bib\.lock: "),
        ("refs.bib", ".bashrc", "its format is unknown"),
        ("refs.bib", ".profile", "its format is unknown"),  # not there yet
        ("refs.bib", ".config/refs.bib", r"there is no folder .*/\.config"),
    ],
)
def test_a_name_that_cannot_be_written_without_a_link_is_refused(
    project: Path, secret: Path, name: str, to: str | None, words: str
) -> None:
    path = project / name
    path.unlink(missing_ok=True)
    if to:
        path.symlink_to(secret.parent / to)
    else:
        path.mkdir()
    before = names(project)

    with pytest.raises(OutputError, match=words):
        append_papers(project / "refs.bib", [LEAVES])

    assert (names(project), path.is_symlink()) == (before, bool(to))
    assert secret.read_text() == "PATH=/bin\n"
    assert names(secret.parent) == [".bashrc"]


# --- several programs at once


class Hooked(list[Paper]):
    """Papers that call something each time they are read, which is after the file was read."""

    def __init__(self, papers: Sequence[Paper], hook: Callable[[], object]) -> None:
        super().__init__(papers)
        self.hook = hook

    def __iter__(self) -> Iterator[Paper]:
        self.hook()
        return super().__iter__()


EDITORS = {
    "in place": "path.write_text(path.read_text() + text)",
    "by a new file": "new = path.with_name('~'); new.write_text(path.read_text() + text); new.replace(path)",
    "and the same size": "path.write_text(text.ljust(path.stat().st_size))",
}


def edit(path: Path, how: str, text: str) -> None:
    """Let another process save the file."""
    start = "import sys; from pathlib import Path; path, text = Path(sys.argv[1]), sys.argv[2]; "
    run_python(start + how, path, text)


@pytest.mark.parametrize("how", EDITORS)
def test_what_another_program_saves_meanwhile_is_not_lost(bib: Bib, how: str) -> None:
    path, saved = bib(f"@misc{{a, title={{A}}}}\n% {'long ' * 20}\n"), list[bytes]()

    def save_once() -> None:
        if not saved:
            edit(path, EDITORS[how], "@misc{b, title={B}}\n")
            saved.append(path.read_bytes())

    done = append_papers(path, Hooked([LEAVES], save_once))

    new = path.read_bytes()
    assert new.startswith(saved[0])
    assert pybtex_keys(new) == [*pybtex_keys(saved[0]), "leaf2022leaves"]
    assert "b" in pybtex_keys(new)
    assert done.backup
    assert done.backup.read_bytes() == saved[0]
    assert names(path.parent) == ["refs.bib", "refs.bib.bak"]


def test_a_paper_that_another_program_adds_meanwhile_is_skipped(bib: Bib) -> None:
    path, saved = bib("@misc{a, title={A}}\n"), list[bytes]()

    def save_once() -> None:
        if not saved:
            edit(path, EDITORS["in place"], "@misc{b, title={Leaves}}\n")
            saved.append(path.read_bytes())

    done = append_papers(path, Hooked([LEAVES], save_once))

    assert (done.keys, done.skipped, done.backup) == ((), (LEAVES,), None)
    assert path.read_bytes() == saved[0]


def test_a_file_that_is_saved_again_and_again_stays_as_it_is(bib: Bib) -> None:
    path, saved = bib("@misc{a, title={A}}\n"), list[bytes]()

    def save() -> None:
        path.write_bytes(path.read_bytes() + b"% more\n")
        saved.append(path.read_bytes())

    with pytest.raises(FileChangedError, match="close it there, then run this again"):
        append_papers(path, Hooked([LEAVES], save))

    assert path.read_bytes() == saved[-1]
    assert len(saved) == 10  # five times, read twice
    assert names(path.parent) == ["refs.bib"]


APPEND = """
import sys
from citerec.match.append import append_papers
from citerec.types import Paper

class Slow(list):
    def __iter__(self):
        print("has read", flush=True)
        sys.stdin.readline()
        return super().__iter__()

append_papers(sys.argv[1], Slow([Paper(id="p1", title="On the Maps of Trees", year=2020)]))
"""


def test_a_second_process_waits_for_the_first(
    bib: Bib, monkeypatch: MonkeyPatch
) -> None:
    path = bib("@misc{a, title={A}}\n")
    first = subprocess.Popen(
        [sys.executable, "-c", APPEND, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert first.stdin
    assert first.stdout
    assert first.stdout.readline() == b"has read\n"

    with (
        monkeypatch.context() as patch,
        pytest.raises(LockedError, match="is being changed"),
    ):
        patch.setattr(references, "_SECONDS", 0)
        append_papers(path, [LEAVES])
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(append_papers, path, [LEAVES])
        first.communicate(b"\n\n")
        done = second.result()

    assert (first.returncode, done.keys) == (0, ("leaf2022leaves",))
    assert pybtex_keys(path.read_bytes()) == ["a", "anon2020maps", "leaf2022leaves"]
    assert names(path.parent) == ["refs.bib", "refs.bib.bak"]


def test_several_at_once_are_all_in_the_file(bib: Bib) -> None:
    path, start = bib("@misc{a, title={A}}\n"), Barrier(3)

    def add(paper: Paper) -> tuple[str, ...]:
        start.wait()
        return append_papers(path, [paper]).keys

    with ThreadPoolExecutor(3) as pool:
        keys = {key for added in pool.map(add, (TREES, ROOTS, LEAVES)) for key in added}

    assert {*pybtex_keys(path.read_bytes())} == {"a", *keys}
    assert len(keys) == 3


# --- the command line and Python


RECOMMEND = (
    "recommend",
    "--title",
    "Dense retrieval of passages",
    "--ranker",
    "none",
    "--k",
    "4",
)


def test_recommend_adds_the_picked_papers(sample_place: Path, capsys: Capture) -> None:
    assert run([*RECOMMEND, "--format", "json"]) == 0
    titles = [item["title"] for item in json.loads(capsys.readouterr().out)]

    assert run([*RECOMMEND, "--append", "refs.bib", "--pick", "1, 3-4"]) == 0

    err = capsys.readouterr().err
    added = parsed((sample_place / "refs.bib").read_bytes()).entries.values()
    shown = [re.sub(r"[{}]", "", entry.fields["title"]) for entry in added]
    assert shown == [titles[0], titles[2], titles[3]]
    assert "3 papers added to refs.bib: " in err
    assert run([*RECOMMEND, "--append", "refs.bib"]) == 0
    assert "1 paper added to refs.bib: " in (err := capsys.readouterr().err)
    assert f"; the file has 3 already: {titles[0]}; " in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pick", "1"], "--pick needs --append"),
        (["--append", "refs.bib", "--pick", "5"], "--k 4 gives too few papers"),
        (
            ["--append", "refs.bib", "--pick", "0"],
            "expected ranks such as 1,3,7 or 1-5",
        ),
        (["--append", "refs.doc"], "its format is unknown"),
    ],
)
def test_wrong_options_are_one_line_before_the_work(
    sample_place: Path, capsys: Capture, options: list[str], words: str
) -> None:
    code = run([*RECOMMEND, *options])

    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert words in captured.err
    assert not (sample_place / "refs.bib").exists()


def test_a_rank_that_a_list_does_not_have_is_refused(tmp_path: Path) -> None:
    found = Recommendations(
        Query(id="q", title="Trees"), (Recommendation(rank=1, paper=TREES, score=1),)
    )

    with pytest.raises(ConfigError, match="no rank 4; there are 1"):
        found.append(tmp_path / "refs.bib", pick=[4])
