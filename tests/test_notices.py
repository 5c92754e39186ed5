"""What people are told: drafts that nothing covers, lists that are empty, what is loading."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citerec.cli import run
from citerec.folder import IndexFolder
from citerec.recommend import Recommender
from citerec.retrieve.hybrid import unreadable_words
from citerec.text import WORD
from citerec.types import Query

Build = Callable[..., IndexFolder]

ARABIC = "نظام توصية الاستشهادات العلمية باستخدام الشبكات العصبية"
CHINESE = "基于预训练模型的学术论文引用推荐方法研究"
COVERED = [
    "Dense retrieval of passages",
    "Visualisierung großer Graphen für die Überprüfung von Änderungen",
    "Étude de l'évolution des réseaux de gènes chez les bactéries",
    "E = mc²",
    "x² + y² = z²; α-β ∈ ℝⁿ",
    "p53, β-catenin and 5 μM of C₆₀",
    "Q",
    "C++",
]


def pieces(words: list[str]) -> list[list[int]]:
    """Spell Arabic and Chinese letter by letter, know nothing of cuneiform, and read all else by pairs."""

    def ids(word: str) -> list[int]:
        if ord(word[0]) >= 0x10000:
            return [1]
        return [2] * (len(word) if ord(word[0]) > 0x600 else (len(word) + 1) // 2)

    return [[101, *ids(word), 102] for word in words]


@pytest.mark.parametrize("text", [ARABIC, CHINESE, "𐤀𐤁𐤂 𐤃𐤄"])
def test_words_that_are_spelled_or_unknown_cannot_be_read(text: str) -> None:
    assert unreadable_words(text, pieces) == unreadable_words(text, None) == {*WORD.findall(text)}


@pytest.mark.parametrize("text", COVERED)
def test_latin_scripts_formulas_and_short_titles_can_be_read(text: str) -> None:
    assert not unreadable_words(text, pieces)
    assert not unreadable_words(text, None)


def test_a_share_is_one_of_letters(build: Build) -> None:
    recommender = Recommender(build([{"id": "a", "title": "Trees"}]))

    assert recommender.unreadable(Query(id="d", title="abcd 引用推荐")) == 0.5


def test_a_script_that_the_corpus_has_is_covered(build: Build) -> None:
    index = build([{"id": "a", "title": CHINESE}, {"id": "b", "title": "Trees"}])
    recommender = Recommender(index)

    assert recommender.unreadable(Query(id="d", title=CHINESE)) == 0
    assert recommender.unreadable(Query(id="d", title=ARABIC)) == 1


def test_an_index_with_vectors_reads_what_its_own_tokenizer_knows(build: Build) -> None:
    index = build([{"id": "a", "title": CHINESE}, {"id": "b", "title": "Trees"}], encoder="minilm")
    recommender = Recommender(index)

    shares = {title: recommender.unreadable(Query(id="d", title=title)) for title in COVERED}

    assert max(shares.values()) < 0.5, shares
    assert recommender.unreadable(Query(id="d", title=ARABIC)) == 1  # spelled letter by letter
    assert recommender.unreadable(Query(id="d", title=CHINESE)) == 0  # the corpus has these words


def recommend(index: IndexFolder, *arguments: object) -> int:
    return run(["recommend", "--index", str(index.path), *map(str, arguments)])


def test_a_result_has_one_notice_that_its_list_may_be_unreliable(
    dense_sample: IndexFolder,
) -> None:
    logged: list[str] = []
    recommender = Recommender(dense_sample, log=logged.append)

    foreign = recommender.recommend(title=ARABIC, k=1)
    misspelled = recommender.recommend(title="Zzyzx qwertz", k=1)

    [in_a_script], [no_word] = foreign.notices, misspelled.notices
    assert "100% of the letters" in in_a_script
    assert no_word.startswith("no word of this draft occurs in an eligible paper")
    assert logged == [in_a_script, no_word]


def test_a_batch_is_warned_of_once_with_a_count(
    sample_index: IndexFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    titles = [ARABIC, "Neural networks", CHINESE]
    lines = [json.dumps({"id": f"d{i}", "title": title}) for i, title in enumerate(titles)]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))

    assert recommend(sample_index, "--query", tmp_path / "q.jsonl", "--k", 1) == 0

    error = capsys.readouterr().err
    assert error.count("script or language") == 1
    assert "2 of 3 drafts are unreliable; the first: d0:" in error


PAPERS: list[dict[str, Any]] = [
    {"id": "a", "title": "Graph drawing", "year": 1990},
    {"id": "b", "title": "Tree drawing", "year": 1995},
]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("--title", "Zebras"),
            "no word of the draft occurs in the 2 eligible papers, and this index has no vectors",
        ),
        (
            ("--title", "Drawing", "--year-max", 1980),
            "all 2 papers are later than 1980: the earliest is of 1990; give --year-max 1990",
        ),
        (
            ("--title", "Drawing", "--exclude", "all.txt"),
            "2 papers are excluded: none of 2 is eligible; leave out --exclude or --cited",
        ),
        (
            ("--title", "Drawing", "--year-max", 1991, "--exclude", "a.txt"),
            "1 paper is excluded, and 1 paper is later than 1991: none of 2 is eligible",
        ),
        (("--title", "Zebras", "--exclude", "a.txt"), "occurs in the 1 eligible paper, and"),
    ],
)
def test_an_empty_list_says_why_with_numbers(
    build: Build,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[object, ...],
    why: str,
) -> None:
    index = build(PAPERS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.txt").write_text("a\nb\n")
    (tmp_path / "a.txt").write_text("a\n")

    assert recommend(index, *arguments) == 0

    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("No eligible paper of this corpus matches: ")
    assert why in text


def test_the_format_of_dois_says_how_many_papers_have_none(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    with_doi = {"id": "a", "title": "Drawing trees", "doi": "10.1000/trees", "year": 2000}
    index = build([with_doi, {"id": "b", "title": "Drawing maps", "year": 2001}])

    assert recommend(index, "--title", "Drawing", "--format", "doi") == 0
    both = capsys.readouterr()
    assert recommend(index, "--title", "Maps", "--format", "doi") == 0
    maps = capsys.readouterr()

    assert both.out == "10.1000/trees\n"
    assert "1 of 2 recommended papers left out: no DOI; --format bibtex" in both.err
    assert maps.out == ""
    assert "1 of 1 recommended paper left out: no DOI" in maps.err


def test_a_list_by_vectors_alone_says_that_no_word_was_found(
    dense_sample: IndexFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    notice = "no word of this draft occurs in an eligible paper"

    assert recommend(dense_sample, "--title", "zxqwv", "--k", 3, "--format", "json") == 0
    unknown = capsys.readouterr()
    assert recommend(dense_sample, "--title", "zxqwv citation", "--k", 3, "--format", "json") == 0
    known = capsys.readouterr()

    assert len(json.loads(unknown.out)) == 3
    assert unknown.err.count(notice) == 1
    assert notice not in known.err
