"""Bad inputs: each is one line on stderr that names what is wrong, exit code 2, and nothing changed on disk."""

import gzip
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import pytest
from support.tables import table
from support.tools import command_fault
from support.types import Capture, MonkeyPatch

from citerec.cli import run
from citerec.files.reading import zstd
from citerec.index.folder import IndexFolder

COMMAND = [sys.executable, "-c", "from citerec.cli import main; main()"]
SAMPLE = Path(__file__).parent.parent / "citerec" / "sample" / "papers.jsonl"
# Root may do anything with files; without these powers it may do what any owner may.
POWERLESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
Refused = Callable[[str, str], None]
INDEX = "index corpus.jsonl --encoder none --index made"
DRAFT = "recommend --title Citation"
SHORT = {"INDEX": INDEX, "RUN": "evaluate --qrels gold.txt --run", "DRAFT": DRAFT}


def record(**fields: Any) -> bytes:
    return json.dumps({"id": "a", "title": "Alpha"} | fields).encode() + b"\n"


LINES = b"".join(
    record(id=f"p{i}", abstract=f"of number {i * 7919}") for i in range(2000)
)


def tarred(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo("refs.bib")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


PDF = b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n"
ROW = 'title = "T"\nclaim = "C"\ncost = "1 s"\ncorpus = "corpus.jsonl"\n'
FILES: dict[str, bytes] = {
    "corpus.jsonl": record() + record(id="b"),
    "q.json": b'{"title": "Citation recommendation"}',
    "batch.jsonl": b'{"title": "One"}\n{"title": "Two"}\n',
    "a.run": b"q1 Q0 x 1 2 t\n",
    "gold.txt": b"q1 0 x 1\n",
    "folder/thesis.tex": b"years of work",
    "folder/a.run": b"q1 Q0 x 1 2 t\n",
    "pdf": PDF,
    "empty": b"",
    "blank": b" \n\t\n",
    "gzip": gzip.compress(b"x"),
    "zeros.qrels": b"q1 0 x 0\n",
    "splits/corpus.jsonl": record(),
    "splits/splits/train.ids": b"a\n",
    "reports/sample-dev/thesis.tex": b"mine",
    "system.toml": f'{ROW}system = "bm26"'.encode(),
    "b.toml": f"{ROW}bm25 = {{ b = 2 }}".encode(),
    "k2.toml": f"{ROW}bm25 = {{ k2 = 1 }}".encode(),
    "pdf.toml": ROW.replace("corpus.jsonl", "pdf").encode(),
}

# content of a corpus, and what the message names besides its file
CORPORA: dict[str, tuple[bytes, str]] = {
    "empty": (b"\n \n\n", "empty"),
    "PDF": (PDF, "PDF"),
    "SQLite": (b"SQLite format 3\0" + bytes(100), "SQLite"),
    "zip": (b"PK\x03\x04" + bytes(100), "zip"),
    "xz": (b"\xfd7zXZ\0", "packed by xz"),
    "tar": (tarred(b"@misc{a, title={A}}"), "a tar archive (unpack it: tar -xf FILE"),
    "tar.gz": (gzip.compress(tarred(b"x")), "a tar archive (unpack it: tar -xf FILE"),
    "binary": (bytes(range(256)) * 9, "binary"),
    "UTF-16": (record().decode().encode("utf-16"), "UTF-16"),
    "Latin-1": (b'{"id": "a", "title": "caf\xe9"}\n', "line 1"),
    "cut gzip": (gzip.compress(LINES)[:-3000], "cut off"),
    "cut zstd": (zstd.compress(LINES)[:-3000], "cut off"),
    "long title": (record(title="word " * 2_000_000), "line 1"),
    "ids in conflict": (record() + record(title="Other"), "line 2: id 'a'"),
    "broken JSON": (record() + record(id="b") + b'{"id": "c", "tit\n', "line 3"),
    "table": (b"id,title\n1,Alpha\n", "a table"),
}

# a command, which begins with a key of SHORT or is whole, and what its message names
COMMANDS = table(
    """
index | corpus
index nowhere.jsonl | nowhere.jsonl
index empty-folder | empty-folder
index indexes/sample --index made | indexes/sample
INDEX --format xml | 'xml'
index corpus.jsonl --encoder none --index q.json --force | q.json
index corpus.jsonl --encoder none --index folder --force | folder
index corpus.jsonl --encoder none --index indexes/sample | --force
INDEX --threads -1 | --threads
index corpus.jsonl --index made --encoder specter | allenai/specter
index corpus.jsonl --index made --encoder ./nowhere | nowhere
index splits --encoder none --index made | dev.ids
frobnicate | frobnicate
 | --help
DRAFT --colour | --colour
DRAFT more | more
DRAFT --k -3 | --k
DRAFT --year-max x | --year-max
DRAFT --k1 nan | k1
DRAFT --b 2 | --b
DRAFT --format xml | 'xml'
DRAFT --encoder minilm | has no vectors; embed its papers: citerec encode --index
DRAFT --ranker scibert | scibert
DRAFT --reranker ./no | ./no
DRAFT --reranker '' | reranker
DRAFT --reranker none --rerank-depth 10 | depth
DRAFT --rerank-weight 2 | --rerank-weight
DRAFT --output no/where | no/where
DRAFT --output folder | folder
DRAFT --index nowhere | nowhere
DRAFT --index q.json | q.json
DRAFT --index '' | --index
DRAFT --output= | --output
DRAFT --exclude '' | --exclude
index '' | empty
evaluate --run a.run --run '' | --run
DRAFT --query batch.jsonl | batch.jsonl
recommend | --query
recommend --abstract x | --abstract
recommend --title ' ' | title
recommend --query '' | query
recommend --query no | no
recommend --query folder | folder
recommend --query empty | empty
DRAFT --exclude no | no
DRAFT --exclude pdf | pdf
DRAFT --exclude empty | empty
evaluate --systems random --split all | 'all'
evaluate --systems bm26 | 'bm26'
evaluate --systems '' | ''
evaluate --systems rerank | reranker
evaluate --systems rrf | has no vectors; embed its papers: citerec encode --index
evaluate --systems random --known-graph all | --known-graph
evaluate --systems random --seed -1 | --seed
evaluate --systems random --output folder | folder
evaluate --systems bm25 --split dev | thesis.tex
evaluate --qrels gold.txt | --run
evaluate --systems random --queries 0 | --queries
evaluate --run a.run --k1 2 | --k1 has no effect with --run
evaluate --run a.run --audit | --audit has no effect with --run
evaluate --run a.run --qrels gold.txt --systems bm25 | leave out --qrels
RUN no | no
RUN pdf | pdf
RUN a.run --run a.run | a
RUN a.run --k1 1.2 | --run
RUN a.run --reranker x | --run
RUN folder/a.run --output folder | folder
evaluate --run a.run --qrels no | no
evaluate --run a.run --qrels zeros.qrels | zeros.qrels
train-encoder --recipe x | --recipe
experiment run no.toml | no.toml
experiment run q.json | q.json
experiment run system.toml | bm26
experiment run b.toml | bm25.b
experiment run k2.toml | k2
experiment run pdf.toml | PDF
mcp --port 1 | --transport
"""
)


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return mode, size and time of everything in a folder; of folders the mode."""
    states = {str(path.relative_to(folder)): path.lstat() for path in folder.rglob("*")}
    return {
        name: (s.st_mode, 0, 0)
        if S_ISDIR(s.st_mode)
        else (s.st_mode, s.st_size, s.st_mtime_ns)
        for name, s in states.items()
    }


def check(code: int, out: str, err: str, named: str) -> None:
    """Check one clear line on stderr that names what is wrong."""
    assert code == 2, err
    assert out == ""
    assert err.startswith("citerec: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert len(err) < 700
    assert named in err


@pytest.fixture
def workplace(
    tmp_path: Path, sample_index: IndexFolder, monkeypatch: MonkeyPatch
) -> Path:
    """A folder with good and bad files and one index."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "empty-folder").mkdir()
    shutil.copytree(sample_index.path, tmp_path / "indexes" / "sample")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(workplace: Path, capsys: Capture) -> Refused:
    """Run a command in this process and check that it is refused and changes nothing."""

    def call(command: str, named: str) -> None:
        before = snapshot(workplace)
        capsys.readouterr()
        code = run(shlex.split(command))
        check(code, *capsys.readouterr(), named)
        assert snapshot(workplace) == before

    return call


@pytest.mark.parametrize("name", CORPORA)
def test_a_bad_corpus(refused: Refused, workplace: Path, name: str) -> None:
    content, named = CORPORA[name]
    (workplace / "corpus.jsonl").write_bytes(content)

    refused(INDEX, named)
    refused(
        "index corpus.jsonl --encoder none --index indexes/sample --force",
        "corpus.jsonl",
    )


@pytest.mark.parametrize(("command", "named"), COMMANDS)
def test_a_bad_command(refused: Refused, command: str, named: str) -> None:
    first, *_ = command.split(" ")

    refused(command.replace(first, SHORT.get(first, first), 1), named)


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("manifest.json", 100),
        ("papers.arrow", 1000),
        ("papers.arrow", 0),
        ("bm25/segments_*", 40),
        ("bm25/rows.npy", 100),
        ("bm25/*", None),
        ("papers.arrow", None),
    ],
)
def test_a_damaged_index(
    refused: Refused, workplace: Path, name: str, keep: int | None
) -> None:
    for file in (workplace / "indexes" / "sample").glob(name):
        if keep is None:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:keep])

    for command in (DRAFT, "verify", "evaluate --systems bm25"):
        refused(command, name.split("/", maxsplit=1)[0])


# --- what needs a process of its own: the environment, another user, a full disk


def in_a_process(
    command: str,
    named: str,
    *,
    cwd: Path,
    before: Sequence[str] = (),
    **environment: str,
) -> None:
    """Run a command and check that it is refused and changes nothing."""
    as_it_was = snapshot(cwd)
    done = subprocess.run(
        [*before, *COMMAND, *shlex.split(command)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    check(done.returncode, done.stdout, done.stderr, named)
    assert snapshot(cwd) == as_it_was


def test_a_java_home_without_java_and_a_heap_that_cannot_be(workplace: Path) -> None:
    folder = str(workplace / "folder")

    in_a_process(INDEX, "Java", cwd=workplace, CITEREC_JAVA_HOME=folder)
    in_a_process(INDEX, "lots", cwd=workplace, CITEREC_JAVA_HEAP="lots")


def test_an_empty_standard_input(workplace: Path) -> None:
    in_a_process("recommend --query -", "standard input", cwd=workplace)


@pytest.fixture
def powerless() -> list[str]:
    """What to put before a command so that the modes of files count."""
    if os.geteuid() != 0:
        return []
    if fault := command_fault([*POWERLESS, "true"]):
        pytest.skip(f"modes of files do not bind root: {fault}")
    return POWERLESS


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (
            "index corpus.jsonl --encoder none --index indexes/sample --force",
            "cannot write",
        ),
        (f"{DRAFT} --output out", "cannot write out"),
        (f"{DRAFT} --append refs.bib", "cannot write refs.bib: no permission"),
    ],
)
def test_a_folder_that_may_not_be_written(
    workplace: Path, powerless: list[str], command: str, named: str
) -> None:
    folders = [workplace, *(path for path in workplace.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)

    in_a_process(command, named, cwd=workplace, before=powerless)

    for folder in folders:
        folder.chmod(0o755)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk with room for 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)]
    if fault := command_fault(["mount", *options]):
        pytest.skip(f"a small disk can be mounted by root alone: {fault}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(small_disk: Path, sample_index: IndexFolder) -> None:
    in_a_process(f"index {SAMPLE} --encoder none --index made", "made", cwd=small_disk)

    (small_disk / "out").write_bytes(b"before")
    (small_disk / "fill").write_bytes(bytes(270_000))
    result = f"--index {sample_index.path} --k 300 --format json --output out"
    in_a_process(f"recommend --title 'a model of data' {result}", "out", cwd=small_disk)
