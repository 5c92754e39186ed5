"""BM25 through Lucene, held against a brute-force BM25 in numpy, and against Pyserini."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from time import sleep

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.config import Bm25Config, StopWords
from citerec.errors import ConfigError, IndexDamagedError, IndexReplacedError
from citerec.folder import IndexFolder, open_index
from citerec.java import java_class
from citerec.retrieve.bm25 import Bm25Retriever, resolve
from citerec.rules.eligible import mask
from citerec.text import QueryForm, contents
from citerec.types import Eligibility, Hits, Query

Build = Callable[..., IndexFolder]

ANYBODY = Eligibility()
CORNERS = [(1.2, 0.75), (0.9, 0.4), (0.0, 0.75), (2.0, 0.0), (1.2, 1.0)]
OPERATORS = ["AND", "OR NOT", '"', "*", "?", "~2", "^3", "(", "[a TO b]", "year:2019", "\\", "\0"]
# Any code point at all, half surrogate pairs too: a shell passes bytes that are no UTF-8 as those.
WILD = st.text(st.characters(exclude_categories=()), max_size=40)


class BruteForce:
    """BM25 as Lucene defines it, over every paper of an index.

    idf * tf / (tf + k1 * (1 - b + b * length / mean length)), where idf is
    ln(1 + (n - df + 0.5) / (df + 0.5)) and a length is what is left of it in one byte.
    """

    def __init__(self, index: IndexFolder) -> None:
        papers = [index.papers[row] for row in range(len(index.papers))]
        self._terms = [Counter(analyze(contents(paper))) for paper in papers]
        self._df = Counter(term for terms in self._terms for term in terms)
        lengths = [terms.total() for terms in self._terms]
        self._n = sum(1 for length in lengths if length)
        self._mean = sum(lengths) / self._n
        small_float = java_class("org.apache.lucene.util.SmallFloat")
        self._lengths = [small_float.byte4ToInt(small_float.intToByte4(n)) for n in lengths]

    def scores(self, text: str, k1: float, b: float) -> npt.NDArray[np.float64]:
        """Score every row; shape (papers,), 0 where no term matches."""
        query = Counter(analyze(text))
        return np.array([self._score(query, row, k1, b) for row in range(len(self._terms))])

    def _score(self, query: Counter[str], row: int, k1: float, b: float) -> float:
        norm = k1 * (1 - b + b * self._lengths[row] / self._mean)
        terms = self._terms[row]
        return sum(
            count * self._idf(term) * terms[term] / (terms[term] + norm)
            for term, count in query.items()
            if terms[term]
        )

    def _idf(self, term: str) -> float:
        df = self._df[term]
        return np.log(1 + (self._n - df + 0.5) / (df + 0.5))


def analyze(text: str) -> list[str]:
    analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    return list(java_class("io.anserini.analysis.AnalyzerUtils").analyze(analyzer, text))


def ask(title: str, abstract: str = "", **more: object) -> Query:
    return Query(id="draft", title=title, abstract=abstract, **more)  # pyright: ignore[reportArgumentType]


def search(
    retriever: Bm25Retriever, query: Query, k: int = 10, eligible: Eligibility = ANYBODY
) -> Hits:
    return retriever.retrieve([query], [eligible], k)[0]


def found(index: IndexFolder, hits: Hits) -> list[str]:
    return index.papers.ids_at(hits.rows)


def ordered(index: IndexFolder, rows: Sequence[int], scores: Sequence[float]) -> list[int]:
    ids = index.papers.ids
    place = {row: (-score, ids[row]) for row, score in zip(rows, scores, strict=True)}
    return sorted(place, key=place.__getitem__)


@pytest.fixture(scope="module")
def sample(sample_index: IndexFolder) -> Bm25Retriever:
    return Bm25Retriever(sample_index)


@pytest.fixture(scope="module")
def sample_queries(sample_index: IndexFolder) -> list[Query]:
    """Every 30th paper of the sample as a query, under an id of its own."""
    papers = [sample_index.papers[row] for row in range(0, len(sample_index.papers), 30)]
    return [Query(id=f"as {p.id}", title=p.title, abstract=p.abstract) for p in papers]


# --- scores


@pytest.mark.parametrize(("k1", "b"), CORNERS)
def test_scores_are_those_of_brute_force(
    sample_index: IndexFolder, sample_queries: list[Query], k1: float, b: float
) -> None:
    oracle = BruteForce(sample_index)
    retriever = Bm25Retriever(sample_index, Bm25Config(k1=k1, b=b))

    everything = len(sample_index.papers)
    results = retriever.retrieve(sample_queries, [ANYBODY] * len(sample_queries), everything)

    for query, hits in zip(sample_queries, results, strict=True):
        expected = oracle.scores(contents(query), k1, b)
        assert sorted(hits.rows.tolist()) == np.flatnonzero(expected).tolist()
        assert hits.scores == pytest.approx(expected[hits.rows], rel=1e-4)
        assert ordered(sample_index, hits.rows.tolist(), hits.scores.tolist()) == [*hits.rows]


def test_the_form_title_reads_the_title_alone(sample_index: IndexFolder) -> None:
    oracle = BruteForce(sample_index)
    retriever = Bm25Retriever(sample_index, Bm25Config(form=QueryForm.TITLE))

    hits = search(retriever, ask("Citation analysis", "Neural networks for images"), k=300)

    expected = oracle.scores("Citation analysis", 1.2, 0.75)
    assert sorted(hits.rows.tolist()) == np.flatnonzero(expected).tolist()
    assert hits.scores == pytest.approx(expected[hits.rows], rel=1e-4)


def test_a_term_counts_as_often_as_the_query_repeats_it(sample: Bm25Retriever) -> None:
    once = search(sample, ask("citation"))

    thrice = search(sample, ask("citation citation citation"))

    assert thrice.rows.tolist() == once.rows.tolist()
    assert thrice.scores == pytest.approx(3 * once.scores, rel=1e-5)


def test_a_k1_that_lucene_cannot_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="k1 must be at most 1000"):
        Bm25Config(k1=1e39)


def test_k_is_at_least_one(sample: Bm25Retriever) -> None:
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        search(sample, ask("citation"), k=0)


# --- who is eligible


def test_every_year_bound_gives_what_brute_force_gives(
    sample_index: IndexFolder, sample: Bm25Retriever, sample_queries: list[Query]
) -> None:
    years = sample_index.papers.years
    bounds = [None, -5, 0, 10_000, 2**40, *range(int(years.min()) - 1, int(years.max()) + 2)]

    for query in sample_queries[:3]:
        all_hits = search(sample, query, k=300)
        for bound in bounds:
            within = np.ones(len(years), bool) if bound is None else years <= bound

            hits = search(sample, query, k=20, eligible=Eligibility(bound))

            keep = within[all_hits.rows]
            assert hits.rows.tolist() == all_hits.rows[keep][:20].tolist(), bound
            assert hits.scores.tolist() == all_hits.scores[keep][:20].tolist(), bound


@pytest.mark.parametrize("undated", [1, 39])  # of 40: by fetching more, and by a filter of Lucene
def test_a_paper_without_a_year_is_within_every_bound(build: Build, undated: int) -> None:
    records = [
        {"id": f"p{i:02}", "title": "tensor", "year": None if i < undated else 2019}
        for i in range(40)
    ]
    index = build(records)
    retriever = Bm25Retriever(index)

    for bound in (-5, 0, 1, 1850, 2018):
        hits = search(retriever, ask("tensor"), k=40, eligible=Eligibility(bound))

        assert found(index, hits) == [f"p{i:02}" for i in range(undated)]


def test_three_eligible_papers_among_many_better_ones_are_found(build: Build) -> None:
    better = [{"id": f"new{i}", "title": "tensor tensor", "year": 2020} for i in range(2000)]
    old = [{"id": f"old{i}", "title": "tensor and other things", "year": 1950} for i in range(3)]
    index = build([*better[:1000], *old, *better[1000:]])
    retriever = Bm25Retriever(index)

    for k in (1, 2, 3, 10, 5000):
        hits = search(retriever, ask("tensor"), k=k, eligible=Eligibility(1950))

        assert found(index, hits) == ["old0", "old1", "old2"][:k]


@pytest.mark.parametrize("k", [1, 2, 20, 10**9, 2**70])
def test_all_but_two_papers_excluded(
    sample_index: IndexFolder, sample: Bm25Retriever, k: int
) -> None:
    query = ask("citation analysis of the scientific literature")
    ranked = search(sample, query, k=300)
    left = {int(ranked.rows[7]), int(ranked.rows[-1])}
    others = frozenset(range(len(sample_index.papers))) - left

    hits = search(sample, query, k=k, eligible=Eligibility(None, others))

    assert hits.rows.tolist() == [ranked.rows[7], ranked.rows[-1]][:k]


def test_a_bound_and_exclusions_together_leave_k_hits_if_the_corpus_holds_them(
    sample_index: IndexFolder, sample: Bm25Retriever, sample_queries: list[Query]
) -> None:
    years = sample_index.papers.years
    rng = np.random.default_rng(7)

    for query in sample_queries:
        ranked = search(sample, query, k=300)
        out = frozenset(rng.choice(len(years), 100, replace=False).tolist())
        rule = Eligibility(int(rng.choice(years)), out)

        hits = search(sample, query, k=30, eligible=rule)

        assert hits.rows.tolist() == [r for r in ranked.rows if mask(rule, years)[r]][:30]


# --- ties


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> IndexFolder:
    """3000 papers of one text in the years 2000 to 2009, in random order, and five better ones."""
    from citerec.build import BuildConfig, build_index

    names = [f"p{i:04}" for i in range(3000)]
    random.Random(5).shuffle(names)
    text = "Tensor methods for graphs, which " + " ".join(f"term{i}" for i in range(40))
    records = [
        {"id": name, "title": text, "year": 2000 + int(name[1:]) % 10, "abstract": "x"}
        for name in names
    ]
    better = [{"id": f"z{i}", "title": "Tensor tensor", "year": 2000} for i in range(5)]
    folder = tmp_path_factory.mktemp("twins")
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(r) + "\n" for r in [*records, *better]))
    build_index(corpus, folder / "index", BuildConfig())
    return open_index(folder / "index")


def test_of_equal_papers_the_smallest_ids_come_first(twins: IndexFolder) -> None:
    retriever = Bm25Retriever(twins)

    hits = search(retriever, ask("graphs term7 term31 methods term2"), k=10)

    assert found(twins, hits) == [f"p{i:04}" for i in range(10)]
    assert len(set(hits.scores.tolist())) == 1


@pytest.mark.parametrize("k", [5, 6, 10, 100, 3005, 10_000])
def test_ties_across_the_k_boundary_stand_by_id(twins: IndexFolder, k: int) -> None:
    hits = search(Bm25Retriever(twins), ask("tensor"), k=k)

    assert (
        found(twins, hits) == [*(f"z{i}" for i in range(5)), *(f"p{i:04}" for i in range(3000))][:k]
    )


@pytest.mark.parametrize("year", range(2000, 2010))
def test_ties_under_a_year_bound_stand_by_id(twins: IndexFolder, year: int) -> None:
    allowed = [name for i in range(3000) if (name := f"p{i:04}") and 2000 + i % 10 <= year]
    rows = {name: int(twins.papers.rows_of([name])[0]) for name in allowed[:7]}

    hits = search(
        Bm25Retriever(twins),
        ask("graphs"),
        k=10,
        eligible=Eligibility(year, frozenset(rows.values())),
    )

    assert found(twins, hits) == allowed[7:17]


# --- queries of any kind


def test_a_query_of_5000_terms_that_all_match_works(build: Build) -> None:
    words = [f"term{i}" for i in range(5000)]
    index = build(
        [
            {"id": "all", "title": "All", "abstract": " ".join(words)},
            {"id": "last", "title": "Last", "abstract": words[-1]},
            {"id": "other", "title": "Other"},
        ]
    )

    hits = search(Bm25Retriever(index), ask(" ".join(words)))

    assert found(index, hits) == ["all", "last"]


@pytest.mark.slow
def test_a_query_of_ten_megabytes_works(sample_index: IndexFolder, sample: Bm25Retriever) -> None:
    words = " ".join(f"w{i}" for i in range(1_200_000))

    hits = search(sample, ask(f"{words} citation"))

    assert found(sample_index, hits) == found(sample_index, search(sample, ask("citation")))


@pytest.mark.parametrize("title", ["the of and", "?!", "\0", "😀", "\udcff", "zzzzqqqq"])
def test_a_query_without_a_known_word_finds_nothing(sample_index: IndexFolder, title: str) -> None:
    for form in QueryForm:
        for stop_words in (StopWords.ANSERINI, StopWords.LONG):
            config = Bm25Config(form=form, stop_words=stop_words)

            assert len(search(Bm25Retriever(sample_index, config), ask(title))) == 0


@pytest.mark.parametrize(
    "title",
    ["citation\0analysis", "citation😀analysis", "\udcffcitation \ud800analysis\udc00"]
    + [f"citation {operator} analysis" for operator in ('"', "*", "~", "^3", ") (", "\\", "&& ||")],
)
def test_what_is_no_word_is_passed_over(sample: Bm25Retriever, title: str) -> None:
    hits = search(sample, ask(title))

    plain = search(sample, ask("citation analysis"))
    assert hits.rows.tolist()[:1] == plain.rows.tolist()[:1]
    if "3" not in title:
        assert hits.scores.tolist() == plain.scores.tolist()


@pytest.fixture(scope="module")
def of_each_form(sample_index: IndexFolder) -> list[Bm25Retriever]:
    return [Bm25Retriever(sample_index, Bm25Config(form=form)) for form in QueryForm]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    title=st.lists(WILD | st.sampled_from([*OPERATORS, "citation", "the", "graph"]), max_size=6)
    .map(" ".join)
    .filter(str.strip),
    abstract=WILD,
    year=st.none() | st.integers(-3000, 12_000),
    k=st.integers(1, 400),
)
def test_any_text_gives_a_valid_ranking(
    sample_index: IndexFolder,
    of_each_form: list[Bm25Retriever],
    title: str,
    abstract: str,
    year: int | None,
    k: int,
) -> None:
    for retriever in of_each_form:
        hits = search(retriever, ask(title, abstract), k=k, eligible=Eligibility(year))

        assert len(hits) <= k
        assert len(set(hits.rows.tolist())) == len(hits.rows) == len(hits.scores)
        assert np.isfinite(hits.scores).all()
        assert (hits.scores > 0).all()
        keys = list(zip(-hits.scores, found(sample_index, hits), strict=True))
        assert all(a < b for a, b in pairwise(keys))
        retriever.matches(ask(title, abstract), hits.rows[:2].tolist(), most=6)


def test_papers_without_text_are_found_by_nothing(build: Build) -> None:
    index = build([{"id": "a", "title": ""}, {"id": "b", "title": ""}])

    for form in QueryForm:
        retriever = Bm25Retriever(index, Bm25Config(form=form))

        assert len(search(retriever, ask("citation analysis"))) == 0
        assert retriever.matches(ask("citation"), [1, 0], most=6) == [[], []]


# --- batches and threads


@pytest.mark.parametrize("threads", [0, 1, 2, 16])
def test_a_batch_gives_what_its_queries_give_one_by_one(
    sample_index: IndexFolder, sample: Bm25Retriever, sample_queries: list[Query], threads: int
) -> None:
    queries = sample_queries * 4
    rules = [Eligibility(1960 + 2 * i) for i in range(len(queries))]
    retriever = Bm25Retriever(sample_index, Bm25Config(threads=threads))

    batch = retriever.retrieve(queries, rules, 20)

    assert len(batch) == len(queries)
    for query, rule, hits in zip(queries, rules, batch, strict=True):
        alone = search(sample, query, k=20, eligible=rule)
        assert hits.rows.tolist() == alone.rows.tolist()
        assert hits.scores.tolist() == alone.scores.tolist()


def test_a_batch_of_none_is_empty(sample: Bm25Retriever) -> None:
    assert sample.retrieve([], [], 10) == []


def test_a_query_without_its_rule_is_our_own_mistake(sample: Bm25Retriever) -> None:
    with pytest.raises(ValueError, match="zip"):
        sample.retrieve([ask("a"), ask("b")], [ANYBODY], 10)


def test_retrievers_in_two_threads_do_not_disturb_each_other(
    sample_index: IndexFolder, sample_queries: list[Query]
) -> None:
    retrievers = [Bm25Retriever(sample_index, Bm25Config(k1=k1, b=b)) for k1, b in CORNERS]
    expected = [[search(r, q).scores.tolist() for q in sample_queries] for r in retrievers]

    def again(number: int) -> list[list[float]]:
        return [search(retrievers[number], q).scores.tolist() for q in sample_queries]

    with ThreadPoolExecutor(len(retrievers)) as pool:
        results = list(pool.map(again, [*range(len(retrievers))] * 3))

    assert results == expected * 3


@pytest.mark.parametrize("by_signal", [True, False], ids=["Ctrl-C", "an error"])
def test_an_end_before_time_lets_no_further_query_begin(
    sample: Bm25Retriever, monkeypatch: pytest.MonkeyPatch, by_signal: bool
) -> None:
    begun: list[Query] = []

    def search_slowly(_: Bm25Retriever, query: Query, *__: object) -> Hits:
        begun.append(query)
        if len(begun) == 5 and by_signal:
            os.kill(os.getpid(), signal.SIGINT)  # which the main thread gets
        elif len(begun) == 5:
            raise KeyboardInterrupt
        sleep(0.01)
        return Hits(np.zeros(0, np.int32), np.zeros(0, np.float32))

    monkeypatch.setattr(Bm25Retriever, "_search", search_slowly)
    monkeypatch.setattr(sample, "config", Bm25Config(threads=2))
    with pytest.raises(KeyboardInterrupt):
        sample.retrieve([ask("tensor")] * 1000, [ANYBODY] * 1000, 10)

    assert 5 <= len(begun) < 1000


# --- key terms and stop words


KEY_TERM_CORPUS = [
    {"id": "a", "title": "graph tensor"},
    {"id": "b", "title": "graph tensor"},
    {"id": "c", "title": "graph quark"},
    {"id": "d", "title": "lemma"},
]


def test_key_terms_are_those_of_highest_tf_idf(build: Build) -> None:
    # ln(4 / (1 + df)): graph ln 1 = 0, tensor 3 * ln(4/3) = 0.86, quark ln 2 = 0.69, lemma the same.
    index = build(KEY_TERM_CORPUS)
    query = ask("graph tensor tensor tensor quark zebra lemma")

    def ids(key_terms: int) -> set[str]:
        config = Bm25Config(form=QueryForm.KEY_TERMS, key_terms=key_terms)
        return set(found(index, search(Bm25Retriever(index, config), query)))

    assert ids(1) == {"a", "b"}
    assert ids(2) == {"a", "b", "d"}  # lemma comes before quark in the alphabet
    assert ids(3) == ids(4) == {"a", "b", "c", "d"}


def test_a_word_that_no_paper_has_is_no_key_term(build: Build) -> None:
    index = build(KEY_TERM_CORPUS)
    config = Bm25Config(form=QueryForm.KEY_TERMS, key_terms=1)

    hits = search(Bm25Retriever(index, config), ask("zebra zebra zebra quark"))

    assert found(index, hits) == ["c"]


def test_all_key_terms_give_the_scores_of_title_and_abstract(
    sample_index: IndexFolder, sample: Bm25Retriever, sample_queries: list[Query]
) -> None:
    config = Bm25Config(form=QueryForm.KEY_TERMS, key_terms=10_000)

    hits = search(Bm25Retriever(sample_index, config), sample_queries[0])

    whole = search(sample, sample_queries[0])
    assert hits.rows.tolist() == whole.rows.tolist()
    assert hits.scores == pytest.approx(whole.scores, rel=1e-6)


def with_abstracts(share: float) -> list[dict[str, str]]:
    return [
        {"id": f"p{i}", "title": "We saw tensors" if i else "Tensors"}
        | ({"abstract": "Some words."} if i < 10 * share else {})
        for i in range(10)
    ]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, StopWords.LONG), (0.4, StopWords.LONG), (0.5, StopWords.ANSERINI)],
)
def test_auto_leaves_out_function_words_where_most_papers_are_a_title(
    build: Build, share: float, expected: StopWords
) -> None:
    index = build(with_abstracts(share))

    assert resolve(Bm25Config(), index).stop_words is expected
    for said in (StopWords.LONG, StopWords.ANSERINI):
        assert resolve(Bm25Config(stop_words=said), index).stop_words is said


def test_function_words_find_nothing_where_they_are_left_out(build: Build) -> None:
    index = build(with_abstracts(0.0))

    def ids(stop_words: StopWords) -> list[str]:
        retriever = Bm25Retriever(index, Bm25Config(stop_words=stop_words))
        return found(index, search(retriever, ask("we x tensors"), k=1))

    assert ids(StopWords.ANSERINI) == ["p1"]  # which has the "we"
    assert ids(StopWords.LONG) == ["p0"]  # the shortest


def test_a_query_of_function_words_alone_is_searched_as_it_is(build: Build) -> None:
    index = build(with_abstracts(0.0))
    retriever = Bm25Retriever(index, Bm25Config(stop_words=StopWords.LONG))

    assert len(search(retriever, ask("we"))) == 9


# --- the words of an explanation


def test_matching_words_are_shown_as_the_query_writes_them(build: Build) -> None:
    index = build(
        [
            {"id": "a", "title": "Recommendation of citations with BERT and COVID19"},
            {"id": "b", "title": "Citation"},
            {"id": "c", "title": ""},
        ]
    )
    query = ask("Recommending Citations: the BERT way of citation for CoViD19")

    words = Bm25Retriever(index).matches(query, [1, 2, 0], most=6)

    assert words[:2] == [["citations"], []]
    assert set(words[2]) == {"BERT", "CoViD19", "recommending", "citations"}


def test_the_heaviest_words_come_first_and_function_words_never(build: Build) -> None:
    index = build(
        [{"id": "a", "title": "we saw tensor graphs"}, {"id": "b", "title": "graphs"}]
        + [{"id": f"x{i}", "title": "lemma"} for i in range(8)]
    )
    query = ask("we study graphs and tensors, as we saw")

    words = Bm25Retriever(index).matches(query, [0], most=2)

    assert words == [["saw", "tensors"]]  # df 1, then graphs with df 2; "we" weighs double


def test_a_term_of_several_words_is_shown_whole(build: Build) -> None:
    index = build([{"id": "a", "title": "Version 3.14", "abstract": "snake_cases"}])

    words = Bm25Retriever(index).matches(ask('(3.14), "snake_cases".'), [0], most=6)

    assert words == [["3.14", "snake_cases"]]


def test_a_word_behind_several_terms_is_shown_once(build: Build) -> None:
    index = build([{"id": "a", "title": "深度学习"}])

    assert Bm25Retriever(index).matches(ask("深度学习"), [0], most=6) == [["深度学习"]]


# --- damage, and the literature's own tool


def test_a_damaged_lucene_folder_says_how_to_mend_it(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    for name in ("segments_*", "rows.npy", "_*.si", "_*.fnm"):
        copy = tmp_path / name.strip("*.")
        shutil.copytree(sample_index.path, copy)
        victim = max((copy / "bm25").glob(name), key=lambda path: path.stat().st_size)
        victim.write_bytes(victim.read_bytes()[:40])

        with pytest.raises(IndexDamagedError, match="rebuild it: citerec index"):
            Bm25Retriever(open_index(copy))


def test_an_index_that_another_took_the_place_of_is_not_called_damaged(
    sample_index: IndexFolder, tmp_path: Path, build: Build
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(sample_index.path, copy)
    opened = open_index(copy)
    other = build([{"id": "a", "title": "A"}])
    shutil.rmtree(copy)
    shutil.copytree(other.path, copy)

    with pytest.raises(IndexReplacedError, match="was replaced while it was opened; run this"):
        Bm25Retriever(opened)
    (copy / "bm25" / "rows.npy").unlink()
    with pytest.raises(IndexReplacedError, match="was replaced while it was opened; run this"):
        Bm25Retriever(opened)


PYSERINI = """
import json, sys
from citerec.java import start_jvm
start_jvm()
from pyserini.search.lucene import LuceneSearcher
folder, k1, b = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
queries = json.load(sys.stdin)
searcher = LuceneSearcher(folder)
searcher.set_bm25(k1, b)
found = searcher.batch_search(list(queries.values()), list(queries), k=1000, threads=2)
print("RESULT", json.dumps({q: [(h.docid, h.score) for h in hits] for q, hits in found.items()}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("k1", "b"), CORNERS[:2])
def test_hits_and_scores_are_those_of_pyserini(
    sample_index: IndexFolder, sample_queries: list[Query], k1: float, b: float
) -> None:
    retriever = Bm25Retriever(sample_index, Bm25Config(k1=k1, b=b))

    ours = retriever.retrieve(sample_queries, [ANYBODY] * len(sample_queries), 1000)

    done = subprocess.run(
        [sys.executable, "-c", PYSERINI, str(sample_index.bm25), str(k1), str(b)],
        input=json.dumps({q.id: contents(q) for q in sample_queries}),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout.rpartition("RESULT")[2])
    for query, hits in zip(sample_queries, ours, strict=True):
        expected = dict(theirs[query.id])  # its scores have four decimals
        scores = dict(zip(found(sample_index, hits), hits.scores.tolist(), strict=True))
        assert scores == pytest.approx(expected, abs=1e-4)
        assert list(expected) == sorted(scores, key=lambda docid: (-expected[docid], docid))
        assert list(scores)[:20] == list(expected)[:20]
