"""Inputs are read within bounds, and checked before any work starts."""

import bz2
import gzip
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.corpora import built
from support.types import Build, Capture, MonkeyPatch

from citerec.build.index import BuildConfig, build_index
from citerec.cli import run
from citerec.corpus.lists import read_paper_list
from citerec.drafts import read_queries
from citerec.errors import BadInputError, ModelError, OutputError
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.systems import Systems
from citerec.files import isolated as inputs
from citerec.files.arrays import save_array
from citerec.files.isolated import isolated
from citerec.files.reading import (
    MAX_FILE,
    MAX_ROW,
    read_rows,
    read_stream,
    read_whole,
    zstd,
)
from citerec.files.trec import read_qrels, read_run
from citerec.index.folder import IndexFolder
from citerec.index.splits import read_ids, shipped_queries
from citerec.lab.scidocs.vectors import read_vectors
from citerec.train.ranker import train_ranker
from citerec.train.settings import RankerTraining

READERS: dict[str, Callable[[Path], object]] = {
    "run": read_run,
    "qrels": read_qrels,
    "ids": read_ids,
    "given vectors": lambda path: read_vectors(path, []),
}

# --- Bounds


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstd.compress])
@pytest.mark.parametrize("reader", READERS)
def test_a_line_without_an_end_is_refused_with_its_place(
    tmp_path: Path, reader: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"x" * (MAX_ROW + 1)))

    with pytest.raises(
        BadInputError, match=r"line 1: a line of more than 1,048,576 bytes"
    ):
        READERS[reader](path)


def test_a_row_may_fill_its_bound_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"a" * (MAX_ROW - 1) + b"\n" + b"b" * MAX_ROW)

    assert [len(row) for _, row in read_rows(path, "rows")] == [MAX_ROW, MAX_ROW]


def test_judgements_of_a_beir_folder_are_read_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "graphs"}\n')
    (tmp_path / "qrels" / "test.tsv").write_bytes(
        b"query-id\tcorpus-id\tscore\nq" + b"x" * MAX_ROW
    )

    with pytest.raises(BadInputError, match=r"test\.tsv, line 2: a line of more than"):
        shipped_queries(tmp_path)


class EndlessStream:
    """A stream without an end, which counts how many bytes were read."""

    count = 0

    def read(self, size: int) -> bytes:
        self.count += size
        return b"x" * size


def test_a_stream_without_an_end_is_read_to_its_bound_and_one_byte_more() -> None:
    stream = EndlessStream()

    with pytest.raises(
        BadInputError, match="endless: more than 2 MB, the limit for one file"
    ):
        read_stream(stream, "endless", most=2 * 2**20)  # pyright: ignore[reportArgumentType]

    assert stream.count == 2 * 2**20 + 1


@pytest.mark.parametrize("read", [read_whole, read_queries, read_paper_list])
def test_a_file_that_is_read_as_a_whole_has_a_bound(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "huge.bib"
    with path.open("wb") as file:
        file.truncate(MAX_FILE + 1)

    with pytest.raises(BadInputError, match=r"huge\.bib: more than 256 MB.*split it"):
        read(path)


# --- Before any work


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus that ships two of three splits."""
    folder = tmp_path / "corpus"
    (folder / "splits").mkdir(parents=True)
    (folder / "papers.jsonl").write_text(
        '{"id": "a", "title": "Graph drawing", "year": 1990}\n'
    )
    for name in ("train", "test"):
        (folder / "splits" / f"{name}.ids").write_text(
            "a\n" if name == "train" else "b\n"
        )
    return folder


def never(what: str, done: int, total: int) -> None:
    raise AssertionError(f"{what} began")


def test_the_corpus_is_checked_before_an_encoder_is_looked_for(
    corpus: Path, tmp_path: Path, capsys: Capture
) -> None:
    common = ("--index", str(tmp_path / "index"), "--encoder", "no/such-encoder")

    with pytest.raises(
        BadInputError, match=r"dev.ids is missing; expected all three, or none"
    ):
        build_index(
            corpus, tmp_path / "index", BuildConfig(encoder="no/such-encoder"), never
        )
    assert run(["index", str(tmp_path / "nothing.jsonl"), *common]) == 2
    assert "nothing.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "index").exists()


def papers(name: str, count: int = 20) -> list[dict[str, object]]:
    return [
        {
            "id": f"{name}{n}",
            "title": "A paper",
            "year": 1990 + n,
            "citations": [f"{name}0"],
        }
        for n in range(count)
    ]


@pytest.fixture
def without_encoder(build: Build, tiny_model: str, tmp_path: Path) -> IndexFolder:
    """An index whose encoder is not there any more."""
    model = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    index = build(papers("p"), encoder=str(model))
    shutil.rmtree(model)
    return index


def test_an_encoder_that_is_gone_stops_an_evaluation_before_anything_is_searched(
    without_encoder: IndexFolder,
) -> None:
    eval_set = load_eval_set(without_encoder, "test")
    systems = Systems(without_encoder, eval_set, EvalConfig())

    for name in ("dense", "rrf", "expanded", "ranker"):
        with pytest.raises(ModelError, match="model"):
            systems.check([name])
    systems.check(["bm25", "oracle"])


def test_all_indexes_are_checked_before_a_ranker_is_trained_on_the_first(
    without_encoder: IndexFolder, tmp_path: Path
) -> None:
    first, config = built(tmp_path / "first", papers("q")), RankerTraining()

    with pytest.raises(ModelError, match="model"):
        train_ranker(
            [first, without_encoder], tmp_path / "ranker", config, progress=never
        )

    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Not a directory"):
        train_ranker([first], tmp_path / "file" / "ranker", config, progress=never)


# --- readers in a process of their own


@pytest.mark.parametrize(
    "work",
    [
        "while True: pass",
        "[0] * 2**34",
        "def deep(): deep()\ndeep()",
        "import os; os._exit(0)",
    ],
)
def test_a_reader_that_takes_too_much_is_one_clear_line(
    work: str, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MAX_SECONDS", 1)

    with pytest.raises(
        BadInputError, match=r"^draft\.tex: reading this needs too much time or"
    ):
        isolated(partial(exec, work, {}), "draft.tex")


def test_a_reader_in_a_process_of_its_own_returns_and_raises_what_it_would_here(
    tmp_path: Path,
) -> None:
    missing = partial(read_whole, tmp_path / "none")

    with pytest.raises(BadInputError) as here:
        missing()
    with pytest.raises(BadInputError) as there:
        isolated(missing, "none")

    assert isolated(partial(sorted, [3, 1, 2]), "numbers") == [1, 2, 3]
    with pytest.raises(
        BadInputError, match=r"^draft: cannot be read: ValueError: invalid literal"
    ):
        isolated(partial(int, "three"), "draft")
    assert (str(there.value), vars(there.value)) == (str(here.value), vars(here.value))


def test_an_array_whose_last_bytes_cannot_be_written_is_refused(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # of the 928 bytes of the file
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save_array(tmp_path / "array.npy", np.arange(100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
