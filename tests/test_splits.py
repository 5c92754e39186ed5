"""Splits by the protocol, and those that a corpus ships."""

import hashlib
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.corpora import real_corpus

from citerec.corpus.collector import RecordCounter
from citerec.corpus.readers import find_source, read_papers
from citerec.errors import BadInputError
from citerec.index.graph import Graph, open_graph, write_graph, write_references
from citerec.index.papers import NO_YEAR
from citerec.index.splits import (
    gold_citations,
    read_ids,
    shipped_splits,
    split_by_year,
    write_splits,
)


def graph_of(*cited: list[int]) -> Graph:
    """The graph in which row `i` cites the rows `cited[i]`."""
    indptr = np.cumsum([0, *map(len, cited)])
    return Graph(indptr.astype(np.int64), np.array([*chain(*cited)], np.int32))


def years(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return np.array(values, np.int32)


def test_the_oldest_eight_of_ten_are_train_the_next_is_dev_the_latest_is_test() -> None:
    ids = list("jihgfedcba")  # the latest stands first: j of 2010, ..., a of 2001
    dates = years(*range(2010, 2000, -1))
    each_cites_the_one_before = graph_of(*([i + 1] for i in range(9)), [])

    splits = split_by_year(ids, dates, each_cites_the_one_before)

    assert splits == {
        # 2001 is train, too, but cites nothing
        "train": [
            "b",
            "c",
            "d",
            "e",
            "f",
            "g",
            "h",
        ],
        "dev": ["i"],
        "test": ["j"],
    }


def test_papers_of_one_year_stand_by_the_sha1_of_their_id() -> None:
    sha1 = {i: hashlib.sha1(i.encode()).hexdigest()[:4] for i in "abc"}
    cyclic = graph_of([1], [2], [0])

    splits = split_by_year(["a", "b", "c"], years(2020, 2020, 2020), cyclic)

    assert sha1 == {"a": "86f7", "b": "e9d7", "c": "84a5"}  # so: c, a, b
    # ends 3*8//10, 3*9//10, 3
    assert splits == {
        "train": ["c", "a"],
        "dev": [],
        "test": ["b"],
    }


def test_a_paper_without_a_year_is_in_no_split_and_moves_no_border() -> None:
    # Of the two dated papers 2*8//10 = 1 is train, and 2*9//10 = 1 leaves none for dev.
    splits = split_by_year(
        ["x", "old", "new"], years(NO_YEAR, 2000, 2001), graph_of([1], [0], [1])
    )

    assert splits == {"train": ["old"], "dev": [], "test": ["new"]}


def test_a_paper_that_cites_only_its_future_is_no_query() -> None:
    splits = split_by_year(["a", "b"], years(2000, 2001), graph_of([1], [0]))

    assert splits == {"train": [], "dev": [], "test": ["b"]}


def test_gold_is_what_is_not_known_to_be_later() -> None:
    # Row 0 of 2000 cites 1999, 2000, 2001 and an unknown year; row 4, without a year, cites 2001.
    graph = graph_of([1, 2, 3, 4], [], [], [], [3])

    gold = gold_citations(graph, years(2000, 1999, 2000, 2001, NO_YEAR))

    assert gold.tolist() == [True, True, False, True, True]


# --- Shipped splits.

LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
IDS = LINES.filter(lambda docid: docid.strip() != "" and not docid.startswith("\ufeff"))


@given(st.lists(IDS, unique=True))
@example(["b", "a", "10.1/x y", "é\u2028😀 "])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_splits_come_back_in_their_order(tmp_path: Path, ids: list[str]) -> None:
    splits = {"train": ids[1:], "dev": [], "test": ids[:1]}

    write_splits(tmp_path / "splits", splits)

    assert shipped_splits(tmp_path) == splits


def test_a_list_of_ids_may_come_from_another_system(tmp_path: Path) -> None:
    (tmp_path / "x.ids").write_bytes(b"\xef\xbb\xbfa\r\n\r\n  \nb")

    assert read_ids(tmp_path / "x.ids") == ["a", "b"]


def test_some_splits_without_the_others_are_a_fault(tmp_path: Path) -> None:
    write_splits(tmp_path / "splits", {"train": ["a"], "test": ["b"]})

    with pytest.raises(
        BadInputError, match=r"dev.ids is missing; expected all three, or none"
    ):
        shipped_splits(tmp_path)


@pytest.mark.parametrize(
    ("splits", "fault"),
    [
        (
            {"train": ["a"], "dev": ["b"], "test": ["a"]},
            r"test.ids: 'a' is a train query, too",
        ),
        (
            {"train": ["a", "a"], "dev": [], "test": []},
            r"train.ids: 'a' is a train query, too",
        ),
    ],
)
def test_an_id_in_two_places_is_a_fault(
    tmp_path: Path, splits: dict[str, list[str]], fault: str
) -> None:
    write_splits(tmp_path / "splits", splits)

    with pytest.raises(BadInputError, match=fault):
        shipped_splits(tmp_path)


def test_ids_that_cannot_be_read_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "x.ids").write_bytes(b"caf\xe9\n")

    with pytest.raises(BadInputError, match="not UTF-8 text"):
        read_ids(tmp_path / "x.ids")
    with pytest.raises(BadInputError, match="cannot be read: Is a directory"):
        read_ids(tmp_path)
    with pytest.raises(BadInputError, match="cannot be read: No such file"):
        read_ids(tmp_path / "missing.ids")


# --- The real corpora, whose shipped splits were made by the protocol.


@pytest.mark.slow
def test_the_protocol_gives_the_split_that_vis_ships(tmp_path: Path) -> None:
    folder = real_corpus("vis")
    shipped = shipped_splits(folder)
    assert shipped is not None

    made = split_real(folder, tmp_path)

    assert {name: len(ids) for name, ids in shipped.items()} == {
        "train": 2772,
        "dev": 434,
        "test": 420,
    }
    assert {name: set(ids) for name, ids in made.items()} == {
        name: set(ids) for name, ids in shipped.items()
    }


def split_real(folder: Path, workspace: Path) -> dict[str, list[str]]:
    collector = RecordCounter(skip_bad=False)
    dates: list[int] = []
    with write_references(workspace) as add:
        for located in read_papers(find_source(folder), "canonical"):
            if (paper := collector.add(located)) is not None:
                add(len(dates), paper.citations)
                dates.append(paper.year or NO_YEAR)
    write_graph(workspace, collector.rows, dates)
    return split_by_year(
        list(collector.rows), years(*dates), open_graph(workspace, len(dates))
    )
