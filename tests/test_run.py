"""Runs and qrels as TREC files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.errors import BadInputError, OutputError
from citerec.files.trec import (
    Run,
    read_qrels,
    read_run,
    trec_id,
    trec_qrels,
    write_qrels,
    write_run,
)
from citerec.types import Ranking

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WILD = st.text(min_size=1, max_size=6)
IDS = st.lists(WILD, unique_by=trec_id, max_size=5)


def a_file(folder: Path, text: str | bytes) -> Path:
    path = folder / "given.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_run_is_written_as_trec_eval_reads_it(tmp_path: Path) -> None:
    run = Run(
        "bm25 tuned", {"q 1": Ranking(("a\tb", "c"), (2.0, 0.5)), "q2": Ranking((), ())}
    )

    write_run(run, tmp_path / "x.run")

    text = (tmp_path / "x.run").read_text()
    assert text == "q_1 Q0 a_b 1 2.0 bm25_tuned\nq_1 Q0 c 2 0.5 bm25_tuned\n"
    assert [path.name for path in tmp_path.iterdir()] == ["x.run"]


@given(
    st.dictionaries(
        WILD, st.tuples(IDS, st.lists(FINITE, min_size=5, max_size=5)), max_size=4
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_written_run_reads_back_whatever_its_ids(
    tmp_path: Path, drawn: dict[str, tuple[list[str], list[float]]]
) -> None:
    rankings = {
        trec_id(qid): Ranking.from_scores(dict(zip(ids, scores, strict=False)))
        for qid, (ids, scores) in drawn.items()
        if ids
    }

    write_run(Run("wild", rankings), tmp_path / "x.run")

    if rankings:
        read = read_run(tmp_path / "x.run")
        assert {qid: set(one.ids) for qid, one in read.rankings.items()} == {
            qid: {*map(trec_id, one.ids)} for qid, one in rankings.items()
        }


def test_scores_of_single_precision_come_back_bit_by_bit(tmp_path: Path) -> None:
    near = np.nextafter(np.float32(0.1), np.float32(1))
    scores = (float(near), float(np.float32(0.1)), float(np.float32(1e-40)))

    write_run(Run("x", {"q": Ranking(("b", "a", "c"), scores)}), tmp_path / "x.run")

    assert read_run(tmp_path / "x.run").rankings["q"] == Ranking(
        ("b", "a", "c"), scores
    )


def test_scores_decide_and_not_the_order_of_lines_or_the_rank_column(
    tmp_path: Path,
) -> None:
    near = 3.00000001  # float32 cannot tell it from 3
    text = f"q1  Q0\tlow 1 1.5 t\n\nq2 Q0 x 1 7 t\r\nq1 Q0 b 2 3 t\nq1 Q0 a 3 {near} t"

    run = read_run(a_file(tmp_path, text))

    assert run.name == "t"
    # equal scores by falling docid, as trec_eval sorts them
    assert run.rankings["q1"].ids == ("b", "a", "low")
    assert run.rankings["q1"].scores == pytest.approx((3.0, 3.0, 1.5), abs=1e-6)
    assert run.rankings["q2"] == Ranking(("x",), (7.0,))


def test_a_gzipped_run_is_known_by_its_content(tmp_path: Path) -> None:
    path = a_file(tmp_path, gzip.compress(b"\xef\xbb\xbfq Q0 d\xc3\xa9 1 1 t\n"))

    assert read_run(path, name="mine") == Run("mine", {"q": Ranking(("dé",), (1.0,))})


GOOD = "q Q0 d 1 1.0 t\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty run"),
        (GOOD + "q Q0 e 2 nan t\n", "line 2: 'nan' is not a finite number"),
        (GOOD + "q Q0 e 2 high t\n", "line 2: 'high' is not a finite number"),
        (
            GOOD + "\nq Q0 e 2 0.5\n",
            "line 3: 5 columns found, 6 expected: qid Q0 docid",
        ),
        (GOOD + GOOD, "line 2: paper 'd' occurs twice for query 'q'"),
        (GOOD.encode("utf-16"), "this is UTF-16 text"),
        (
            GOOD.encode("utf-16-le"),
            "not UTF-8 text (save it as text in the program that wrote it); expected lines of qid",
        ),
        (b"q Q0 \xe9 1 1.0 t\n", "line 1: not UTF-8"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-9], "the file is cut off after line"),
    ],
)
def test_a_bad_run_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    path = a_file(tmp_path, text)

    with pytest.raises(BadInputError) as caught:
        read_run(path)

    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_ids_that_would_meet_in_the_file_are_refused_and_the_old_file_stays(
    tmp_path: Path,
) -> None:
    path = a_file(tmp_path, "old")
    run = Run("x", {"q": Ranking(("a b", "a_b"), (2.0, 1.0))})

    with pytest.raises(OutputError, match="'a b' and 'a_b' are the same"):
        write_run(run, path)
    with pytest.raises(OutputError, match="'q 1' and 'q_1' are the same"):
        write_qrels({"q 1": {"a": 1}, "q_1": {"a": 1}}, path)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_qrels_read_back_as_written(tmp_path: Path) -> None:
    write_qrels({"q 2": {"b": 1, "a c": 3}, "q1": {"x": 2}}, tmp_path / "qrels.txt")

    text = (tmp_path / "qrels.txt").read_text()
    assert text == "q_2 0 a_c 3\nq_2 0 b 1\nq1 0 x 2\n"
    assert read_qrels(tmp_path / "qrels.txt") == {
        "q_2": {"a_c": 3, "b": 1},
        "q1": {"x": 2},
    }


def test_relevance_of_zero_or_less_is_no_citation(tmp_path: Path) -> None:
    path = a_file(tmp_path, "q1 0 yes 2.0\nq1\t0\tno 0\nq1 0 bad -1\nq2 0 no 0\n")

    assert read_qrels(path) == {"q1": {"yes": 2}}


def test_beir_qrels_are_split_at_tabs_and_can_be_made_to_meet_run_files(
    tmp_path: Path,
) -> None:
    path = a_file(tmp_path, "query-id\tcorpus-id\tscore\nq 1\td 1\t1\nq 1\te\t0\n")

    assert read_qrels(path) == {"q 1": {"d 1": 1}}
    assert trec_qrels(read_qrels(path)) == {"q_1": {"d_1": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no relevant paper"),
        ("q 0 d 0\n", "no relevant paper"),
        ("q 0 d one\n", "line 1: 'one' is not a whole number"),
        ("q 0 d 1\nq 0 e 0.5\n", "line 2: '0.5' is not a whole number"),
        ("q 0 d 1\nq 0 d 0\n", "line 2: paper 'd' occurs twice for query 'q'"),
        ("q d 1\n", "line 1: 3 columns found, 4 expected: qid 0 docid rel"),
        ("query-id\tcorpus-id\tscore\nq\td\n", "line 2: 2 columns found, 3 expected"),
    ],
)
def test_bad_qrels_are_refused_with_their_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        read_qrels(a_file(tmp_path, text))
