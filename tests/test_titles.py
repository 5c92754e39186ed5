"""Titles of the same paper: against brute force, and by cases that can be checked in the head."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.errors import ConfigError
from citerec.lab.datasets import without as module
from citerec.lab.datasets.without import same_titles, words

few_words = st.lists(
    st.sampled_from("of the a deep graph neural data big".split()), max_size=9
)
some_titles = st.lists(few_words.map(" ".join), max_size=12)


def brute_force(
    titles: list[str], against: list[str], threshold: float = 0.7
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for i, title in enumerate(titles):
        for j, other in enumerate(against):
            a, b = words(title), words(other)
            if min(len(a), len(b)) >= 2 and len(a & b) / len(a | b) >= threshold:
                found.append((i, j))
    return found


def test_case_and_special_characters_do_not_count() -> None:
    assert words("Pre-Training: BERT & 'friends' (2nd_ed.)") == {
        "pretraining",
        "bert",
        "friends",
        "2nded",
    }
    assert words("Über die Größe") == words("über DIE GRÖSSE")


def test_seven_of_ten_words_are_the_same_and_six_of_nine_are_not() -> None:
    ten = "a b c d e f g h i j"  # against its first seven words: 7 / 10
    nine = "k l m n o p q r s"  # against its first six words: 6 / 9 = 0.67

    assert list(same_titles(["a b c d e f g", "k l m n o p"], [nine, ten])) == [(0, 1)]


def test_titles_of_no_word_or_one_are_the_same_as_none() -> None:
    titles = ["Editorial", "", "?!", "Guest Editorial"]

    assert list(same_titles(titles, titles)) == [(3, 3)]
    assert list(same_titles(titles, titles, min_words=1)) == [(0, 0), (3, 3)]


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match=r"in \(0, 1\]"):
        list(same_titles(["a"], ["a"], threshold=threshold))


@given(some_titles, some_titles, st.sampled_from([0.3, 0.5, 2 / 3, 0.7, 0.9, 1.0]))
def test_every_pair_is_found_and_no_other(
    titles: list[str], against: list[str], threshold: float
) -> None:
    assert list(same_titles(titles, against, threshold=threshold)) == brute_force(
        titles, against, threshold
    )


def test_many_titles_come_in_batches_and_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(0)
    vocabulary = [f"w{i}" for i in range(60)]
    titles = [
        " ".join(rng.choices(vocabulary[: rng.choice((8, 60))], k=6))
        for _ in range(300)
    ]
    monkeypatch.setattr(module, "BATCH", 70)
    # so that a batch is compared in several steps
    monkeypatch.setattr(module, "PAIRS", 50)
    told: list[int] = []

    found = list(same_titles(iter(titles), titles, progress=told.append))

    assert found == brute_force(titles, titles)
    assert len(found) > 300
    assert told == [70, 140, 210, 280, 300]
