"""BM25 over stored postings gives the ids and scores of Lucene's own search, to the bit; NumPy and numba agree."""

import json
import random
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.corpora import built
from support.lucene import LuceneSearcher
from support.tools import run_python
from support.types import Build

from citerec.config import Bm25Config, StopWords
from citerec.errors import IndexDamagedError
from citerec.index.bm25 import LENGTHS, ROWS, byte_of_length
from citerec.index.folder import IndexFolder, open_index
from citerec.index.java import java_class
from citerec.retrieve.bm25 import Bm25Retriever, resolve
from citerec.rules.eligible import mask
from citerec.text import QueryForm, contents
from citerec.types import Eligibility, Hits, Query

ANYBODY = Eligibility()
CORNERS = [(1.2, 0.75), (0.9, 0.4), (0.0, 0.75), (2.0, 0.0), (1000.0, 1.0)]
WORDS = "tree graph citation maps colour edge user 3.14 naïve 猫 the".split()
TEXTS = st.lists(st.sampled_from([*WORDS, "unseen"]), min_size=1, max_size=30).map(
    " ".join
)
RULES = st.builds(
    Eligibility,
    st.none() | st.integers(1990, 2030) | st.sampled_from([-5, 0, 2**40]),
    st.frozensets(st.integers(0, 9)),
)
OPERATORS = [*'AND NOT " * ? ~2 ^3 ( [a TO b] year:2019 \\'.split(), "\0"]
# Any code point at all, half surrogate pairs too: a shell passes bytes that are no UTF-8 as those.
WILD = st.text(st.characters(exclude_categories=()), max_size=40)


def ask(title: str, abstract: str = "", **more: object) -> Query:
    return Query(id="draft", title=title, abstract=abstract, **more)  # pyright: ignore[reportArgumentType]


def search(
    retriever: Bm25Retriever, query: Query, k: int = 10, eligible: Eligibility = ANYBODY
) -> Hits:
    return retriever.retrieve([query], [eligible], k)[0]


def found(index: IndexFolder, hits: Hits) -> list[str]:
    return index.papers.ids_at(hits.rows)


def by_lucene(
    index: IndexFolder, text: str, rule: Eligibility, k: int, **parameters: float
) -> Hits:
    """Return Lucene's hits: all of them are fetched, then the rules and the ties by id applied."""
    docs, scores = LuceneSearcher(index.bm25, **parameters).all(text)
    rows = np.load(index.bm25 / ROWS)[docs]
    kept = mask(rule, index.papers.years)[rows]
    return Hits.ordered(rows[kept], scores[kept], index.id_rank, k)


class ByNumpy(Bm25Retriever):
    _is_compiled = False  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]


class ByNumba(Bm25Retriever):
    _is_compiled = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]


def both_ways(
    index: IndexFolder, config: Bm25Config | None = None
) -> list[Bm25Retriever]:
    return [ByNumpy(index, config), ByNumba(index, config)]


def check_same(expected: Hits, hits: Hits) -> None:
    assert hits.rows.tolist() == expected.rows.tolist()
    assert hits.scores.tobytes() == expected.scores.tobytes()


@pytest.fixture(scope="module")
def sample(sample_index: IndexFolder) -> Bm25Retriever:
    return Bm25Retriever(sample_index)


@pytest.fixture(scope="module")
def sample_queries(sample_index: IndexFolder) -> list[Query]:
    """Every 30th paper of the sample as a query, under an id of its own."""
    papers = [
        sample_index.papers[row] for row in range(0, len(sample_index.papers), 30)
    ]
    return [Query(id=f"as {p.id}", title=p.title, abstract=p.abstract) for p in papers]


# --- scores


@pytest.mark.parametrize(("k1", "b"), CORNERS)
def test_ids_and_scores_are_lucenes(
    sample_index: IndexFolder, sample_queries: list[Query], k1: float, b: float
) -> None:
    rules = [
        Eligibility(1990 + i, frozenset({i, i + 1})) for i in range(len(sample_queries))
    ]

    for retriever in both_ways(sample_index, Bm25Config(k1=k1, b=b)):
        for k, chosen in ((1, rules), (300, rules), (300, [ANYBODY] * len(rules))):
            found = retriever.retrieve(sample_queries, chosen, k)
            for query, rule, hits in zip(sample_queries, chosen, found, strict=True):
                check_same(
                    by_lucene(sample_index, contents(query), rule, k, k1=k1, b=b), hits
                )


@settings(max_examples=40)
@given(text=TEXTS, rule=RULES, k=st.integers(1, 50) | st.just(2**70))
def test_any_query_of_a_small_corpus_is_lucenes(
    small: tuple[IndexFolder, list[Bm25Retriever]], text: str, rule: Eligibility, k: int
) -> None:
    index, retrievers = small

    for retriever in retrievers:
        check_same(
            by_lucene(index, text, rule, k), search(retriever, ask(text), k, rule)
        )


@pytest.fixture(scope="module")
def small(
    tmp_path_factory: pytest.TempPathFactory, java: None
) -> tuple[IndexFolder, list[Bm25Retriever]]:
    """40 papers of random words, some without text or year, and one of 300 times a word."""
    rng = random.Random(1)
    records = [
        {
            "id": f"p{i}",
            "title": " ".join(rng.choices(WORDS, k=rng.randrange(6))),
            "abstract": " ".join(rng.choices(WORDS, k=rng.choice([0, 5, 80]))),
            "year": rng.choice([None, *range(1995, 2025)]),
        }
        for i in range(40)
    ]
    records.append({"id": "often", "title": "tree " * 300})
    index = built(tmp_path_factory.mktemp("small"), records)
    return index, both_ways(index, Bm25Config(stop_words=StopWords.ANSERINI))


def test_lengths_are_rounded_as_lucene_rounds_them(java: None) -> None:
    small_float = java_class("org.apache.lucene.util.SmallFloat")
    lengths = [*range(300), 10**4, 10**6, 2**31 - 1]

    assert LENGTHS.tolist() == [
        small_float.byte4ToInt(b if b < 128 else b - 256) for b in range(256)
    ]
    assert byte_of_length(np.array(lengths)).tolist() == [
        small_float.intToByte4(length) & 0xFF for length in lengths
    ]


def test_the_scores_of_given_papers_are_those_of_a_search(
    sample_index: IndexFolder, sample: Bm25Retriever, sample_queries: list[Query]
) -> None:
    rows = np.arange(299, -1, -7, dtype=np.int32)

    table = sample.scores_of_papers(sample_queries, rows)

    for query, scores in zip(sample_queries, table, strict=True):
        hits = search(sample, query, k=300)
        searched = dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))
        assert scores.tolist() == [searched.get(row, 0) for row in rows.tolist()]


# --- ties


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> IndexFolder:
    """3000 papers of one text in the years 2000 to 2009, in random order."""
    names = [f"p{i:04}" for i in range(3000)]
    random.Random(5).shuffle(names)
    text = "Tensor methods for graphs, which " + " ".join(f"term{i}" for i in range(40))
    records = [
        {"id": name, "title": text, "year": 2000 + int(name[1:]) % 10, "abstract": "x"}
        for name in names
    ]
    return built(tmp_path_factory.mktemp("twins"), records)


@pytest.mark.parametrize("k", [1, 100, 10_000])
@pytest.mark.parametrize("year", [2000, 2004, 2009])
def test_ties_under_a_year_bound_stand_by_id(
    twins: IndexFolder, year: int, k: int
) -> None:
    allowed = [
        name for i in range(3000) if (name := f"p{i:04}") and 2000 + i % 10 <= year
    ]
    rows = {name: int(twins.papers.rows_of([name])[0]) for name in allowed[:7]}

    hits = search(
        Bm25Retriever(twins),
        ask("graphs"),
        k=k,
        eligible=Eligibility(year, frozenset(rows.values())),
    )

    assert found(twins, hits) == allowed[7 : 7 + k]


# --- queries of any kind


@pytest.fixture(scope="module")
def of_each_form(sample_index: IndexFolder) -> list[Bm25Retriever]:
    return [Bm25Retriever(sample_index, Bm25Config(form=form)) for form in QueryForm]


@settings(max_examples=50)
@given(
    title=st.lists(
        WILD | st.sampled_from([*OPERATORS, "citation", "the", "graph"]), max_size=6
    )
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


@pytest.mark.parametrize("threads", [0, 1, 16])
def test_a_batch_gives_what_its_queries_give_one_by_one(
    sample_index: IndexFolder,
    sample: Bm25Retriever,
    sample_queries: list[Query],
    threads: int,
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

    # df 1, then graphs with df 2; "we" weighs double
    assert words == [["saw", "tensors"]]


def test_words_that_many_papers_have_are_no_reasons(build: Build) -> None:
    index = build(
        [{"id": "a", "title": "four mice found basil"}]
        + [{"id": f"f{i}", "title": "four trees found"} for i in range(14)]
        + [{"id": f"m{i}", "title": "mice"} for i in range(9)]
        + [{"id": f"x{i}", "title": "lemma"} for i in range(76)]
    )
    query = ask("We found basil in four mice")

    words = Bm25Retriever(index).matches(query, [0, 1], most=6)

    # 10 papers of 100 have mice: 5 % and 5 more are the most
    assert words == [["basil", "mice"], []]


GERMAN = (
    "Suche mit Vektoren und die Rolle der Modelle",
    "Wir zeigen, dass BERT die Suche nach Passagen verbessert, aber nicht von allein. Der Aufwand sinkt.",
)


def test_function_words_of_another_language_are_no_reasons(build: Build) -> None:
    index = build(
        [
            {
                "id": "a",
                "title": "BERT von der Wiege",
                "abstract": "aber nicht dass die und",
            }
        ]
    )
    english = ask("Zebras, quaggas and the role of von Humboldt", "We name herds.")

    retriever = Bm25Retriever(index)

    assert retriever.foreign_language(ask(*GERMAN)) == "German"
    assert retriever.matches(ask(*GERMAN), [0], most=6) == [["BERT"]]
    assert retriever.foreign_language(english) == ""


def test_a_term_of_several_words_is_shown_whole(build: Build) -> None:
    index = build(
        [{"id": "a", "title": "Version 3.14", "abstract": "snake_cases 深度学习"}]
    )

    words = Bm25Retriever(index).matches(
        ask('(3.14), "snake_cases" 深度学习.'), [0], most=6
    )

    assert set(words[0]) == {"3.14", "snake_cases", "深度学习"}


# --- damage, and the literature's own tool


@pytest.mark.parametrize(
    "name", ["bm25/rows.npy", "postings/docs.npy", "postings/terms.npy"]
)
def test_a_damaged_part_is_named(
    sample_index: IndexFolder, tmp_path: Path, name: str
) -> None:
    copy = Path(shutil.copytree(sample_index.path, tmp_path / "copy"))
    index = open_index(copy)
    (copy / name).write_bytes((copy / name).read_bytes()[:40])

    with pytest.raises(IndexDamagedError, match="rebuild it"):
        Bm25Retriever(index)


PYSERINI = """
import json, sys
from citerec.index.java import start_jvm
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

    texts = json.dumps({q.id: contents(q) for q in sample_queries})
    done = run_python(PYSERINI, sample_index.bm25, k1, b, input=texts)
    theirs = json.loads(done.stdout.rpartition("RESULT")[2])
    for query, hits in zip(sample_queries, ours, strict=True):
        expected = dict(theirs[query.id])  # its scores have four decimals
        scores = dict(zip(found(sample_index, hits), hits.scores.tolist(), strict=True))
        assert scores == pytest.approx(expected, abs=1e-4)
        assert list(expected) == sorted(
            scores, key=lambda docid: (-expected[docid], docid)
        )
        assert list(scores)[:20] == list(expected)[:20]
