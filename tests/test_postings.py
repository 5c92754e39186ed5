"""Stored postings give the ids and scores of Lucene's own search, to the bit, whatever happens to the index."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.config import Bm25Config
from citerec.errors import IndexDamagedError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.index import lucene_postings
from citerec.index.postings import LENGTHS, byte_of_length, open_postings, postings_folder
from citerec.java import java_class
from citerec.manifest import POSTINGS
from citerec.retrieve import bm25 as bm25_module
from citerec.retrieve.bm25 import BY_LUCENE, Bm25Retriever
from citerec.text import QueryForm
from citerec.types import Eligibility, Query
from citerec.update.compact import compact_index
from citerec.update.index import update_index
from citerec.update.replace import UpdateConfig

Build = Callable[..., IndexFolder]
Write = Callable[..., Path]

WORDS = [
    "tree",
    "graph",
    "citation",
    "maps",
    "colour",
    "edge",
    "user",
    "3.14",
    "naïve",
    "猫",
    "the",
]
TEXTS = st.lists(st.sampled_from([*WORDS, "unseen"]), min_size=1, max_size=30).map(" ".join)
RULES = st.builds(
    Eligibility,
    st.none() | st.integers(1990, 2030) | st.sampled_from([-5, 0, 2**40]),
    st.frozensets(st.integers(0, 9)),
)
CORNERS = [(1.2, 0.75), (0.9, 0.4), (0.0, 0.75), (2.0, 0.0), (1.2, 1.0), (1000.0, 1.0)]
NEVER = -(10**9)


@pytest.fixture
def by_lucene(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bm25Retriever]:
    """Open an index so that Lucene itself searches it."""

    def make(index: IndexFolder, config: Bm25Config | None = None) -> Bm25Retriever:
        with monkeypatch.context() as patch:
            patch.setenv(BY_LUCENE, "lucene")
            retriever = Bm25Retriever(index, config)
        assert not scored(retriever)
        return retriever

    return make


def scored(retriever: Bm25Retriever) -> bool:
    """Whether a retriever scores stored postings."""
    return retriever._scorer is not None  # pyright: ignore[reportPrivateUsage]


def by_postings(index: IndexFolder, config: Bm25Config | None = None) -> list[Bm25Retriever]:
    """Open an index so that its postings are scored: by NumPy, and by numba."""
    retrievers = [Bm25Retriever(index, config), Bm25Retriever(index, config)]
    for retriever, queries in zip(retrievers, (NEVER, 10**9), strict=True):
        assert scored(retriever)
        retriever._scorer.expect(queries)  # pyright: ignore
    return retrievers


def ask(title: str, abstract: str = "") -> Query:
    return Query(id="draft", title=title, abstract=abstract)


def check_same(
    lucene: Bm25Retriever,
    others: Sequence[Bm25Retriever],
    queries: Sequence[Query],
    rules: Sequence[Eligibility],
    k: int = 10,
) -> None:
    """Check that all give the same papers, with the same bits as scores, and the same matching words."""
    expected = lucene.retrieve(queries, rules, k)
    for other in others:
        for hits, found in zip(expected, other.retrieve(queries, rules, k), strict=True):
            assert found.rows.tolist() == hits.rows.tolist()
            assert found.scores.tobytes() == hits.scores.tobytes()
        rows = expected[0].rows[:2].tolist()
        words = other.matches(queries[0], rows, most=9)
        assert words == lucene.matches(queries[0], rows, most=9)


def papers(count: int, seed: int, *, prefix: str = "p") -> list[dict[str, Any]]:
    """Papers of random words; some without text, some without a year."""
    rng = random.Random(seed)
    return [
        {
            "id": f"{prefix}{i}",
            "title": " ".join(rng.choices(WORDS, k=rng.randrange(6))),
            "abstract": " ".join(rng.choices(WORDS, k=rng.choice([0, 5, 80]))),
            "year": rng.choice([None, *range(1995, 2025)]),
        }
        for i in range(count)
    ]


# --- scores


@pytest.mark.parametrize(("k1", "b"), CORNERS)
def test_ids_and_scores_are_lucenes(
    sample_index: IndexFolder, by_lucene: Callable[..., Bm25Retriever], k1: float, b: float
) -> None:
    config = Bm25Config(k1=k1, b=b)
    chosen = [sample_index.papers[row] for row in range(0, 300, 20)]
    queries = [Query(id=f"as {p.id}", title=p.title, abstract=p.abstract) for p in chosen]
    rules = [Eligibility(1990 + i, frozenset({i, i + 1})) for i in range(len(queries))]

    lucene, others = by_lucene(sample_index, config), by_postings(sample_index, config)

    for k in (1, 300):
        check_same(lucene, others, queries, [Eligibility()] * len(queries), k)
        check_same(lucene, others, queries, rules, k)


def test_an_interrupted_query_leaves_no_scores_to_the_next_one(
    sample_index: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during a compiled loop is raised when the loop returns, with the scores of all its terms."""
    [_, retriever] = by_postings(sample_index)
    scorer: Any = retriever._scorer  # pyright: ignore[reportPrivateUsage]
    [expected] = retriever.retrieve([ask("citation graph")], [Eligibility()], 10)
    add_scores = scorer._kernel.add_scores

    def interrupted(*arguments: Any) -> bool:
        add_scores(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scorer._kernel, "add_scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            retriever.retrieve([ask("language models")], [Eligibility()], 10)
    [found] = retriever.retrieve([ask("citation graph")], [Eligibility()], 10)

    assert found.rows.tolist() == expected.rows.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("form", QueryForm)
def test_every_form_of_a_query_is_lucenes(
    sample_index: IndexFolder, by_lucene: Callable[..., Bm25Retriever], form: QueryForm
) -> None:
    config = Bm25Config(form=form, key_terms=5)
    queries = [ask("Citation analysis of citations", "Graphs, trees; maps and graphs."), ask("?!")]

    lucene, others = by_lucene(sample_index, config), by_postings(sample_index, config)

    check_same(lucene, others, queries, [Eligibility()] * 2)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=TEXTS, abstract=TEXTS | st.just(""), rule=RULES, k=st.integers(1, 50))
def test_any_query_of_a_small_corpus_is_lucenes(
    three: list[Bm25Retriever], title: str, abstract: str, rule: Eligibility, k: int
) -> None:
    check_same(three[0], three[1:], [ask(title, abstract)], [rule], k)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory, java: None) -> list[Bm25Retriever]:
    """A small corpus searched by Lucene, NumPy and numba."""
    from citerec.build import BuildConfig, build_index

    folder = tmp_path_factory.mktemp("three")
    records = [*papers(40, 1), {"id": "often", "title": "tree " * 300}]
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(record) + "\n" for record in records))
    build_index(corpus, folder / "index", BuildConfig(threads=2))
    index = open_index(folder / "index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BY_LUCENE, "lucene")
        lucene = Bm25Retriever(index)
    return [lucene, *by_postings(index)]


def test_lengths_are_rounded_as_lucene_rounds_them(java: None) -> None:
    small_float = java_class("org.apache.lucene.util.SmallFloat")
    lengths = [*range(300), 10**4, 10**6, 2**31 - 1]

    assert LENGTHS.tolist() == [
        small_float.byte4ToInt(b if b < 128 else b - 256) for b in range(256)
    ]
    assert byte_of_length(np.array(lengths)).tolist() == [
        small_float.intToByte4(length) & 0xFF for length in lengths
    ]


def test_threads_do_not_disturb_each_other(three: list[Bm25Retriever]) -> None:
    queries = [ask(" ".join(random.Random(i).choices(WORDS, k=4))) for i in range(40)]
    rules = [Eligibility()] * len(queries)
    expected = [hits.scores.tobytes() for hits in three[0].retrieve(queries, rules, 5)]

    def search(retriever: Bm25Retriever) -> list[bytes]:
        return [hits.scores.tobytes() for hits in retriever.retrieve(queries, rules, 5)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(search, three[1:] * 4))

    assert results == [expected] * 8


# --- an index that changes


@pytest.mark.parametrize("seed", range(3))
def test_after_every_change_scores_are_still_lucenes(
    build: Build, write_jsonl: Write, by_lucene: Callable[..., Bm25Retriever], seed: int
) -> None:
    rng = random.Random(seed)
    index = build(papers(30, seed))
    queries = [ask(" ".join(rng.choices(WORDS, k=6))) for _ in range(5)]
    rules = [Eligibility(rng.choice([None, 2010])) for _ in queries]

    for step in range(3):
        added = papers(12, 10 * seed + step, prefix=rng.choice(["p", f"new{step}-"]))
        removed = write_jsonl([], "removed")
        known = [paper.id for paper in map(index.papers.__getitem__, range(len(index.papers)))]
        removed.write_text("\n".join(rng.sample(known, 4 * step)))
        update_index(
            index.path,
            UpdateConfig(skip_bad=True),
            corpus=write_jsonl(added, f"added{step}/corpus.jsonl"),
            removed=removed if step else None,
        )
        if step == 2:
            compact_index(index.path, UpdateConfig())
        index = open_index(index.path)

        check_same(by_lucene(index), by_postings(index), queries, rules, 50)
        verify_index(index.path)
        assert len([*(index.path / POSTINGS).iterdir()]) == 1


def test_an_update_that_removes_the_last_paper_of_a_word_keeps_the_papers_of_the_other_words(
    build: Build, write_jsonl: Write, by_lucene: Callable[..., Bm25Retriever]
) -> None:
    index = build([{"id": "a", "title": "tree"}, {"id": "b", "title": "graph"}])
    removed = write_jsonl([], "removed")
    removed.write_text("a\n")
    update_index(
        index.path,
        UpdateConfig(),
        corpus=write_jsonl([{"id": "c", "title": "graph"}], "added/corpus.jsonl"),
        removed=removed,
    )
    index = open_index(index.path)

    numpy, numba = by_postings(index)

    [hits] = numpy.retrieve([ask("graph")], [Eligibility(None)], 10)
    assert [index.papers.ids[row] for row in hits.rows] == ["b", "c"]
    check_same(by_lucene(index), [numpy, numba], [ask("graph")], [Eligibility(None)])


def test_an_update_reads_only_new_documents_from_lucene(
    build: Build, write_jsonl: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = build(papers(30, 1))
    firsts: list[int] = []
    segments = lucene_postings.LucenePostings.segments

    def recorded(self: Any, folder: Path, first: int = 0) -> Any:
        firsts.append(first)
        return segments(self, folder, first)

    monkeypatch.setattr(lucene_postings.LucenePostings, "segments", recorded)
    documents = index.manifest.counts["bm25_documents"]

    update_index(
        index.path, UpdateConfig(), corpus=write_jsonl(papers(3, 2, prefix="n"), "n/corpus.jsonl")
    )

    assert firsts == [documents]


# --- an index without postings


def test_an_old_index_gets_postings_when_they_are_worth_it(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = build(papers(30, 1))
    shutil.rmtree(index.path / POSTINGS)
    retriever = Bm25Retriever(index)
    queries = [ask("tree graph")] * bm25_module.WORTH_STORING
    [expected] = retriever.retrieve(queries[:1], [Eligibility()], 5)
    assert not (index.path / POSTINGS).exists()

    results = retriever.retrieve(queries, [Eligibility()] * len(queries), 5)

    assert scored(retriever)
    assert {hits.scores.tobytes() for hits in results} == {expected.scores.tobytes()}
    assert open_postings(index.path, index.manifest.checksums)
    verify_index(index.path)


def test_an_old_index_gets_postings_before_papers_are_scored(build: Build) -> None:
    index = build(papers(30, 1))
    shutil.rmtree(index.path / POSTINGS)
    retriever = Bm25Retriever(index)
    [hits] = retriever.retrieve([ask("tree graph")], [Eligibility()], 5)

    table = retriever.scores_of_papers([ask("tree graph")], hits.rows)

    assert scored(retriever)
    assert table.tolist() == [hits.scores.tolist()]


def test_without_permission_to_write_lucene_searches(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = build(papers(30, 1))
    shutil.rmtree(index.path / POSTINGS)
    (index.path / POSTINGS).write_text("no folder")
    retriever = Bm25Retriever(index)
    queries = [ask("tree graph")] * bm25_module.WORTH_STORING

    results = retriever.retrieve(queries, [Eligibility()] * len(queries), 5)

    assert not scored(retriever)
    assert all(len(hits) == 5 for hits in results)


def test_postings_of_another_lucene_index_are_not_read(build: Build, write_jsonl: Write) -> None:
    index = build(papers(30, 1))
    sums = dict(index.manifest.checksums)

    other = {**sums, "bm25/segments_1": "0" * 64}

    assert open_postings(index.path, sums)
    assert open_postings(index.path, other) is None


def test_a_damaged_file_is_found_and_not_read(build: Build) -> None:
    index = build(papers(30, 1))
    file = postings_folder(index.path, index.manifest.checksums) / "docs.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1

    file.write_bytes(content)

    with pytest.raises(IndexDamagedError, match=r"postings/.*docs\.npy is not what was written"):
        verify_index(index.path)
    assert not scored(Bm25Retriever(index))
