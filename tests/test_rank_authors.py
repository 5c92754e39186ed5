"""Who wrote what, however a corpus writes names; and the words of titles and venues."""

from collections.abc import Callable

import numpy as np
import pytest

from citerec.folder import IndexFolder
from citerec.rank.features import Authors, Titles, Venues, name_key

ALL = np.arange(3, dtype=np.int32)


@pytest.mark.parametrize(
    "name",
    [
        "Ribler, R. L.",
        "Randy L. Ribler",
        "R.L. Ribler",
        "Ribler RL",
        "RL Ribler",
        "Randy Ribler 0001",
        "R. Ribler Jr.",
    ],
)
def test_one_author_is_known_however_the_name_is_written(name: str) -> None:
    assert name_key(name) == "r ribler"


def test_names_of_all_kinds_have_a_key() -> None:
    names = [
        "Laurens van der Maaten",
        "Jürgen Müller",
        "Mu\u0308ller, J.",
        "Plato",
        "Brooks, Frederick P., Jr.",
        "李明",
        "—",
    ]

    assert [name_key(name) for name in names] == [
        "l maaten", "j muller", "j muller", "plato", "f brooks", "李明", "",
    ]  # fmt: skip


def test_the_papers_of_some_people_are_found(build: Callable[..., IndexFolder]) -> None:
    index = build(
        [
            {"id": "a", "title": "A", "authors": ["Ann Bee", "C. Dee"]},
            {"id": "b", "title": "B"},
            {"id": "c", "title": "C", "authors": ["Dee, Carl"]},
        ]
    )

    found = Authors(index.papers).written_by(["Anna Bee", "C Dee", "Carl Dee", "Nobody Else", "?"])

    assert found.rows.tolist() == [0, 0, 2]  # the first by both
    assert found.author_count == 3  # Bee, Dee, Else
    assert Authors(index.papers).named.tolist() == [True, False, True]
    assert Authors(index.papers).written_by(["?"]).rows.tolist() == []


def test_titles_overlap_by_the_words_that_say_something(build: Callable[..., IndexFolder]) -> None:
    titles = ["The Drawing of Graphs", "Drawing trees, fast", "???"]
    index = build([{"id": str(n), "title": t} for n, t in enumerate(titles)])

    overlap = Titles(index.papers).overlap("On drawing large graphs", ALL)

    assert overlap.tolist() == pytest.approx([2 / 3, 1 / 5, 0])  # of drawing, large, graphs


def test_a_venue_is_the_same_in_another_year(build: Callable[..., IndexFolder]) -> None:
    venues = ["Proc. IEEE VIS 2019", "PacificVis", ""]
    papers = [{"id": str(n), "title": "T", "venue": v} for n, v in enumerate(venues)]
    known = Venues(build(papers).papers)

    assert known.same("Proc. IEEE VIS (2004)", ALL).tolist() == pytest.approx(
        [1, 0, np.nan], nan_ok=True
    )
    assert known.same("Elsewhere", ALL).tolist() == pytest.approx([0, 0, np.nan], nan_ok=True)
    assert np.isnan(known.same("", ALL)).all()
