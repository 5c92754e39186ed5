"""Queries and judgements that a BEIR folder ships."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.types import Write

from citerec.build.index import BuildConfig, build_index
from citerec.errors import BadInputError
from citerec.index.folder import open_index
from citerec.index.splits import ShippedQueries, open_queries, shipped_queries
from citerec.types import Query

CORPUS = [
    {"_id": "d1", "title": "Deep nets", "text": "Layers upon layers.", "metadata": {}},
    {"_id": "d2", "title": "Kernels", "text": "A trick.", "metadata": {"year": 2001}},
]
QUERIES = [
    {"_id": "q1", "text": "why  deep\nnets?", "metadata": {"year": 2020}},
    {"_id": "q2", "text": "kernels é", "metadata": {}},
    {"_id": "q3", "text": "judged by nobody"},
]
HEADER = "query-id\tcorpus-id\tscore\n"
TEST = HEADER + "q1\td1\t1\nq1\td2\t0\nq2\td2\t2\n"
FOUND = ShippedQueries(
    queries={
        "q1": Query(id="q1", title="why deep nets?", year=2020),
        "q2": Query(id="q2", title="kernels é"),
        "q3": Query(id="q3", title="judged by nobody"),
    },
    gold={"test": {"q1": {"d1": 1}, "q2": {"d2": 2}}},
)
Ship = Write


@pytest.fixture
def ship(tmp_path: Path) -> Ship:
    """Write a BEIR folder; returns it."""

    def write(
        queries: Sequence[Mapping[str, Any]] = QUERIES,
        judged: str = TEST,
        split: str = "test",
    ) -> Path:
        folder = tmp_path / "beir"
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        for name, records in (("corpus", CORPUS), ("queries", queries)):
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (folder / f"{name}.jsonl").write_text(lines)
        (folder / "qrels" / f"{split}.tsv").write_text(judged)
        return folder

    return write


def test_queries_are_read_with_their_year_and_gold_is_what_is_relevant(
    ship: Ship,
) -> None:
    shipped = shipped_queries(ship())

    assert shipped == FOUND
    assert shipped.splits == {"train": [], "dev": [], "test": ["q1", "q2"]}


def test_a_judged_query_that_is_not_there_is_a_fault(ship: Ship) -> None:
    with pytest.raises(
        BadInputError, match=r"test.tsv: query 'q9' is not in queries.jsonl"
    ):
        shipped_queries(ship(judged=HEADER + "q9\td1\t1\n"))


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        (
            {"_id": "q1", "text": "another"},
            r"line 4: query 'q1' occurs above with another text",
        ),
        ({"_id": "q4"}, r"line 4: no 'text' in this record"),
        ({"_id": 4, "text": "x"}, r"line 4: '_id' must be a string, found 4"),
        (
            {"_id": "q4", "text": "x", "metadata": {"year": "?"}},
            r"line 4: 'metadata.year' must be a year",
        ),
    ],
)
def test_a_query_that_cannot_be_taken_is_named_with_its_line(
    ship: Ship, query: dict[str, Any], fault: str
) -> None:
    with pytest.raises(BadInputError, match=fault):
        shipped_queries(ship([*QUERIES, query]))


def test_an_index_of_a_beir_folder_holds_its_queries_and_not_as_papers(
    ship: Ship, tmp_path: Path
) -> None:
    report = build_index(ship(), tmp_path / "index", BuildConfig())

    index = open_index(tmp_path / "index")

    assert index.papers.ids.tolist() == ["d1", "d2"]
    assert open_queries(index.splits) == FOUND
    assert report.manifest.settings["splits"] == "shipped"
    assert report.manifest.counts["test_queries"] == 2
    assert (index.splits / "test.ids").read_text() == "q1\nq2\n"
