"""Numbering papers and counting what is wrong with a corpus."""

from pathlib import Path

import pytest

from citerec.corpus.collector import EXAMPLES, Collector
from citerec.corpus.readers import Located
from citerec.errors import BadRecordError
from citerec.types import Paper

FILE = Path("corpus.jsonl")
ELMO = Paper(id="elmo", title="ELMo", abstract="Deep", year=2018)


def at(line: int, paper: Paper, file: Path = FILE) -> Located:
    return Located(file, line, paper)


def a_fault(line: int, kind: str = "broken_lines") -> Located:
    return Located(FILE, line, BadRecordError(FILE, line, "not JSON", kind=kind))


def test_what_papers_lack_is_counted() -> None:
    collector = Collector(skip_bad=False)

    for line, paper in enumerate([ELMO, Paper(id="a", title=""), Paper(id="b", title="B")]):
        collector.add(at(line, paper))
    collector.add(at(9, Paper(id="c", title="C", year=2020, citations=("a", "b"))))

    assert collector.counts == {
        "papers": 4,
        "empty_titles": 1,  # a
        "with_abstract": 1,  # elmo
        "without_year": 2,  # a and b
        "with_citations": 1,  # c
    }


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_paper_that_comes_twice_word_for_word_is_counted_and_left_out(skip_bad: bool) -> None:
    collector = Collector(skip_bad)

    taken = [collector.add(at(line, ELMO)) for line in (1, 2, 3)]

    assert taken == [ELMO, None, None]
    assert collector.counts["papers"] == 1
    assert collector.counts["duplicates"] == 2


def test_an_id_with_another_content_is_a_fault() -> None:
    collector = Collector(skip_bad=False)
    collector.add(at(8, ELMO, Path("b.jsonl")))

    with pytest.raises(
        BadRecordError, match=r"c.jsonl, line 2: id 'elmo' is already in the corpus.*corpus merge"
    ):
        collector.add(at(2, Paper(id="elmo", title="ELMo!"), Path("c.jsonl")))


def test_records_that_are_joined_later_are_all_kept() -> None:
    collector, fuller = (
        Collector(skip_bad=False, joins=True),
        Paper(id="elmo", title="ELMo", year=1),
    )

    assert [collector.add(at(line, p)) for line, p in enumerate([ELMO, fuller])] == [ELMO, fuller]


def test_with_skip_bad_the_first_paper_of_an_id_is_kept() -> None:
    collector = Collector(skip_bad=True)

    taken = [
        collector.add(at(1, ELMO)),
        collector.add(at(2, Paper(id="elmo", title="ELMo", abstract="Deep", year=2019))),
        collector.add(at(3, ELMO)),
    ]

    assert taken == [ELMO, None, None]
    assert collector.counts["conflicting_duplicates"] == 1
    assert collector.counts["duplicates"] == 1


def test_with_skip_bad_faults_are_counted_by_kind_and_the_first_are_quoted() -> None:
    collector = Collector(skip_bad=True)

    for line in range(1, 8):
        assert collector.add(a_fault(line)) is None
    collector.add(a_fault(8, kind="wrong_types"))

    assert collector.counts == {"broken_lines": 7, "wrong_types": 1}
    assert len(collector.examples) == EXAMPLES == 5
    assert collector.examples[0] == "corpus.jsonl, line 1: not JSON"
    assert collector.rows == {}
