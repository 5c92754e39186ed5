"""What an encoder learns from: counts in files, co-citations, mixtures; nobody held out is ever in them."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.encoder_training import (
    assert_same_weights,
    checkpoints_every,
    config,
    named,
    never,
    quick,
    records,
)
from support.tiny import tiny_bert

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.corpus.splits import read_ids
from citerec.errors import BadInputError, ConfigError
from citerec.folder import IndexFolder, open_index
from citerec.text import EncoderForm
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder import countsfile
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.counts import grades, read_counts
from citerec.train.encoder.countsfile import QueryCounts, read_records
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.graph import co_cited
from citerec.train.encoder.signals import Signals, examples_of
from citerec.train.encoder.train import train_encoder, was_trained_so
from citerec.train.workspace import Workspace

Build = Callable[..., IndexFolder]
Counts = Mapping[str, Mapping[str, float]]  # query, other: how often

SETTINGS = Path(__file__).parent.parent / "experiments" / "specter" / "trainings"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    """Queries b to f, which may be shown a to f; x is a dev query, y a test query; g and h came later."""
    folder = tmp_path_factory.mktemp("graph")
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(record) + "\n" for record in records()))
    build_index(corpus, folder / "index", BuildConfig())
    return load_training_data(open_index(folder / "index"))


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., str]:
    """Write counts as SPECTER's training input has them; returns the file."""

    def write(counts: Counts, name: str = "counts.json") -> str:
        content = {q: {o: {"count": n} for o, n in others.items()} for q, others in counts.items()}
        (tmp_path / name).write_text(json.dumps(content))
        return str(tmp_path / name)

    return write


def examples(data: TrainingData, **settings: Any) -> EncoderExamples:
    return examples_of(Signals(data=data, config=config(**settings), mine=never))


def drawn(found: EncoderExamples, epoch: int = 0) -> list[tuple[str, ...]]:
    """The triples of an epoch, as ids."""
    ids = found.data.index.papers.ids_at
    return [tuple(ids(row)) for row in found.epoch(epoch).tolist()]


# --- what is high and what is low


def test_high_is_above_the_middle_of_the_highest_and_the_lowest_count_and_low_below() -> None:
    owners = np.array([0, 0, 0, 0, 1, 1, 2])
    counts = np.array([9, 5, 2, 1, 2, 1, 7])  # the middles are 5, 1.5 and 7

    high, low = grades(owners, counts, 3)

    assert high.tolist() == [True, False, False, False, True, False, True]
    assert low.tolist() == [False, False, True, True, False, True, False]


def test_positives_have_the_highest_counts_and_hard_negatives_the_least_that_are_not_0(
    graph: TrainingData, counted: Callable[..., str]
) -> None:
    file = counted(
        {
            "d": {"a": 9, "b": 5, "e": 2, "f": 1},  # the middle is 5, and b is neither
            "e": {"a": 3, "c": 3},  # all the same
            "f": {"a": 4, "b": 1, "c": 0},  # never together with c
        }
    )

    found = read_counts([file], graph)

    assert named(graph, found.most) == {
        "b": set(),
        "c": set(),
        "d": {"a"},
        "e": {"a", "c"},
        "f": {"a"},
    }
    assert named(graph, found.least) == {
        "b": set(),
        "c": set(),
        "d": {"e", "f"},
        "e": set(),
        "f": {"b"},
    }


def test_five_is_cited_and_one_is_cited_by_the_cited_as_specter_was_trained(
    graph: TrainingData, counted: Callable[..., str]
) -> None:
    file = counted({"d": {"c": 5, "a": 1, "b": 1}, "f": {"e": 5, "b": 1, "d": 1}})

    found = examples(graph, positives="counts", negatives="counts", counts=[file])

    cited = examples(graph).data.only(np.array([2, 4]))  # d and f, from the citations themselves
    assert named(cited, cited.gold) == named(found.data, found.positives)
    assert named(found.data, found.hard) == {"d": {"a", "b"}, "f": {"b", "d"}}
    of_d = [negative for query, _, negative in drawn(found) if query == "d"]
    assert len(of_d) == 5 and {"a", "b"} <= set(of_d)  # two hard ones, three easy ones


def test_what_the_index_does_not_hold_is_left_out_and_counted_but_still_stands_above_the_rest(
    graph: TrainingData, counted: Callable[..., str]
) -> None:
    file = counted(
        {
            "d": {"lost": 5, "a": 1},  # the only paper that d cites is not here: a is no positive
            "e": {"a": 5, "lost": 1, "x": 1, "g": 1},  # x is a dev query, g came after the queries
            "lost": {"a": 5},
            "g": {"a": 5},  # no train query
        }
    )
    said: list[str] = []

    found = read_counts([file], graph, log=said.append)

    assert named(graph, found.most) == {"b": set(), "c": set(), "d": set(), "e": {"a"}, "f": set()}
    assert named(graph, found.least)["d"] == {"a"}
    assert not named(graph, found.least)["e"]
    assert said == [
        "counts.json: 2 of 4 queries are train queries, 1 are not in the index; "
        "2 of their 6 counts are of eligible papers, 2 of papers outside the index"
    ]


def test_several_files_and_packed_ones_are_read_as_one(
    graph: TrainingData, counted: Callable[..., str], tmp_path: Path
) -> None:
    one = counted({"d": {"a": 2, "b": 1}}, "one.json")
    other = tmp_path / "other.json.gz"
    other.write_bytes(gzip.compress(b'{"e": {"a": {"count": 1}}}'))

    found = read_counts([one, str(other)], graph)

    assert named(graph, found.most) == {"b": set(), "c": set(), "d": {"a"}, "e": {"a"}, "f": set()}
    with pytest.raises(BadInputError, match=r"has counts of 'd' twice; expected them once"):
        read_counts([one, one], graph)


def test_of_many_papers_of_low_counts_some_are_kept(build: Build, tmp_path: Path) -> None:
    papers = {f"p{i}": (1999, "") for i in range(200)} | {"q": (2000, "p0")}
    later = {f"z{i}": (2001, "") for i in range(60)}  # so that q is a train query
    data = load_training_data(build(records(papers | later)))
    counts = {f"p{i}": {"count": 1 + (i == 0)} for i in range(200)}
    (tmp_path / "c.json").write_text(json.dumps({"q": counts}))

    found = read_counts([str(tmp_path / "c.json")], data, seed=3)
    again = read_counts([str(tmp_path / "c.json")], data, seed=3)

    assert found.most.lengths.tolist() == [1]
    assert found.least.lengths.tolist() == [100]
    assert found.least.indices.tolist() == again.least.indices.tolist()


# --- co-citations


def test_a_paper_is_drawn_to_those_most_often_cited_with_it_and_held_off_those_seldom_so(
    build: Build,
) -> None:
    data = load_training_data(
        build(
            records(
                {
                    "o": (1999, ""),
                    "p": (2000, ""),
                    "s": (2001, ""),
                    "q": (2002, "o"),
                    "t": (2003, "q p s"),  # q with p and with s
                    "u": (2004, "q p"),  # q with p again
                    "v": (2005, "q p o"),  # and again; once with o, which q cites
                    "w": (2006, "t"),
                    "x": (2007, "q s"),  # a dev query: what it cites is not known
                    "y": (2008, "q s"),
                }
            )
        )
    )

    found = co_cited(data)  # q: three times with p, once with s and with o; the middle is 2

    assert named(data, found.most)["q"] == {"p"}
    assert named(data, found.least)["q"] == {"s", "o"}
    how = {"positives": "co-citations", "negatives": "co-citations"}
    triples = [t for t in drawn(examples(data, **how, examples=2, hard=1)) if t[0] == "q"]
    assert len(triples) == 2
    assert {positive for _, positive, _ in triples} == {"p"}
    assert "s" in {negative for *_, negative in triples}  # o is cited, and so no negative


# --- mixtures


def test_a_mixture_draws_each_source_in_proportion(
    sample_index: IndexFolder, counted: Callable[..., str]
) -> None:
    data = load_training_data(sample_index)
    pool = sample_index.papers.ids_at(np.flatnonzero(data.pool).tolist())
    queries = sample_index.papers.ids_at(data.queries.tolist())
    high, low = pool[:3], pool[3:20]  # what the file ties to every query
    file = counted({q: dict.fromkeys(high, 2) | dict.fromkeys(low, 1) for q in queries})
    sources = {"sources": ["citations", file], "source_weights": [3, 1]}

    found = examples(data, **sources, examples=5, hard=5)

    triples = found.epoch(0)
    of_file = np.isin(triples[:, 1], sample_index.papers.rows_of(high))
    cited = data.forbidden(data.gold).holds(triples[:, 0], triples[:, 1])
    assert len(triples) == len(found) == 5 * len(data.queries)
    assert (of_file | cited).all()
    share, spread = of_file.mean(), (0.25 * 0.75 / len(triples)) ** 0.5
    assert 0.25 - 4 * spread < share < 0.25 + 4 * spread + 9 / len(pool)  # some are cited as well
    of_low = np.isin(triples[:, 2], sample_index.papers.rows_of(low))
    assert of_low[of_file & ~cited].all()  # hard negatives are of the source of the positive


def test_the_sources_of_a_mixture_are_alike_often_unless_told_otherwise(
    graph: TrainingData, counted: Callable[..., str]
) -> None:
    file = counted({"f": {"a": 2, "c": 1}})  # one query of five, and f cites e alone

    found = examples(graph, sources=["citations", file], examples=200, hard=1)

    triples = drawn(found)
    of_file = sum(positive == "a" and query == "f" for query, positive, _ in triples)
    assert len(triples) == 200 * 5
    assert 440 < of_file < 560  # its triples are 200, and repeat


def test_a_mixture_is_the_same_for_the_same_seed_and_drawn_anew_only_if_wanted(
    graph: TrainingData,
) -> None:
    def epochs(**given: Any) -> list[list[tuple[str, ...]]]:
        found = examples(graph, sources=["citations", "co-citations"], **given)
        return [drawn(found, number) for number in (0, 1)]

    old, new = epochs(), epochs(fresh=True)

    assert epochs() == old
    assert sorted(old[0]) == sorted(old[1]) and old[0] != old[1]  # in another order
    assert sorted(new[0]) != sorted(new[1])
    assert epochs(seed=1) != old


def test_a_mixture_asks_whoever_one_of_its_sources_asks(
    graph: TrainingData, counted: Callable[..., str]
) -> None:
    one, other = counted({"c": {"a": 1}}, "one.json"), counted({"e": {"b": 1}}, "other.json")

    found = examples(graph, sources=[one, other], hard=0)

    assert found.data.index.papers.ids_at(found.data.queries.tolist()) == ["c", "e"]
    assert named(found.data, found.positives) == {"c": {"a"}, "e": {"b"}}
    assert len(found) == 2 * 5
    assert {(query, positive) for query, positive, _ in drawn(found)} == {("c", "a"), ("e", "b")}


def test_of_many_queries_a_part_is_asked_the_same_from_whatever_source(
    sample_index: IndexFolder,
) -> None:
    data = load_training_data(sample_index)

    one = examples(data, queries=20)
    mixed = examples(data, queries=20, sources=["citations", "co-citations"])
    other = examples(data, queries=20, seed=1)

    assert 15 <= len(one.data.queries) <= 20  # a few have nothing to learn from
    assert {*mixed.data.queries.tolist()} >= {*one.data.queries.tolist()}
    assert len(mixed.data.queries) <= 20
    assert {*other.data.queries.tolist()} != {*one.data.queries.tolist()}


# --- who is held out

IDS = [*"abcdefghxy", "lost"]


@given(
    counts=st.dictionaries(
        st.sampled_from(IDS), st.dictionaries(st.sampled_from(IDS), st.integers(0, 4)), min_size=1
    ),
    sources=st.sampled_from([(), ("citations",), ("citations", "co-citations")]),
    fresh=st.booleans(),
    seed=st.integers(0, 3),
)
def test_nobody_held_out_is_in_any_example_whatever_the_counts(
    graph: TrainingData,
    tmp_path_factory: pytest.TempPathFactory,
    counts: Counts,
    sources: tuple[str, ...],
    fresh: bool,
    seed: int,
) -> None:
    file = tmp_path_factory.mktemp("counts") / "counts.json"
    file.write_text(
        json.dumps({q: {o: {"count": n} for o, n in them.items()} for q, them in counts.items()})
    )
    alone = {"positives": "counts", "negatives": "counts", "counts": [str(file)]}
    how = {"sources": [*sources, str(file)]} if sources else alone

    try:
        found = examples(graph, **how, fresh=fresh, seed=seed)
    except ConfigError:
        assume(False)
        return

    for query, positive, negative in drawn(found, 0) + drawn(found, 1):
        assert query in "bcdef"
        assert positive in "abcdef" and negative in "abcdef"
        assert len({query, positive, negative}) == 3
        cites = graph.cited[sorted("bcdef").index(query)]
        assert negative not in graph.index.papers.ids_at(cites.tolist())
        if not sources:
            tied = {o: n for o, n in counts[query].items() if n and o != query}
            middle = (min(tied.values()) + max(tied.values())) / 2
            assert tied[positive] > middle or len({*tied.values()}) == 1


def test_no_dev_or_test_query_of_a_corpus_is_in_a_mixture(
    sample_index: IndexFolder, counted: Callable[..., str]
) -> None:
    data = load_training_data(sample_index)
    ids = sample_index.papers.ids_at(range(data.papers))
    rng = np.random.default_rng(0)
    file = counted({i: {j: int(rng.integers(3)) for j in rng.choice(ids, 9)} for i in ids})

    found = examples(data, sources=["citations", "co-citations", "neighbours", file])

    used = {paper for triple in drawn(found) for paper in triple}
    held_out = {i for s in ("dev", "test") for i in read_ids(sample_index.splits / f"{s}.ids")}
    assert not used & held_out
    asked = {triple[0] for triple in drawn(found)}
    assert asked <= set(read_ids(sample_index.splits / "train.ids"))


# --- files


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_file_is_read_piece_by_piece_to_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(countsfile, "CHUNK", chunk)
    rng = np.random.default_rng(chunk)
    names = ['p"1', "é\n{}", "\\u", "x" * 90, *"pqrs"]
    content = {
        name: {other: {"count": int(rng.integers(9)), "frac": 0.5} for other in names[:n]}
        for n, name in enumerate(names)
    }

    for spread in (None, 0, 33):
        for ascii in (True, False):
            text = json.dumps(content, indent=spread, ensure_ascii=ascii)
            (tmp_path / "c.json").write_text(text, encoding="utf-8")
            found = list(read_records(tmp_path / "c.json"))
            assert found == [
                QueryCounts(name, tuple(them), tuple(float(e["count"]) for e in them.values()))
                for name, them in content.items()
            ]
    (tmp_path / "c.json").write_text(" {\n} ")
    assert list(read_records(tmp_path / "c.json")) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"line 1: the file ends too early; expected \{\"query id\""),
        ('["a"]', r"line 1: found '\[' where '\{' should be"),
        ('{"a": {"b": {"count": 1}}', "line 1: the file ends too early"),
        ('{"a": {"b": {"count": 1', "line 1: not JSON: Expecting"),
        ('{"a": {"b": {"count": 1}}} {', r"line 1: found '\{' after the end of the object"),
        ('{"a": {"b": {"count": 1}}\n "c"}', "line 2: found '\"' where ',' should be"),
        ('{"a": {"b": {"count": 1}},\n\n c: 1}', "line 3: found 'c' where a query id should be"),
        ('{"a":\n{"b":\n {"count" 1}}}' + " " * 99, "line 3: not JSON: Expecting ':'"),
        ('{"a": ["b"]}', r"line 1: the counts of 'a' are \['b'\]"),
        ('{"id": "a", "title": "A"}', "line 1: the counts of 'id' are 'a'"),
        ('{"a": {"b": 5}}', "line 1: the count of 'a' with 'b' is 5; expected"),
        ('{"a": {"b": {"count": "5"}}}', "'a' with 'b' is"),
        ('{"a": {"b": {"count": -1}}}', "'a' with 'b' is"),
        ('{"a": {"b": {"count": NaN}}}', "'a' with 'b' is"),
        ('{"a": {"b": {"count": true}}}', "'a' with 'b' is"),
        ('{"a": {"b": {"count": 1' + "0" * 400 + "}}}", "'a' with 'b' is"),
        ('{"a": ' + "[" * 100_000, "too deeply nested JSON"),
    ],
)
def test_a_file_that_holds_no_counts_is_one_line_with_file_and_place(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "bad.json").write_text(content)

    with pytest.raises(BadInputError, match=message) as caught:
        list(read_records(tmp_path / "bad.json"))

    assert str(tmp_path / "bad.json") in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_file_that_cannot_be_read_at_all_says_why(tmp_path: Path) -> None:
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b'{"a": {}}' * 999)[:40])
    (tmp_path / "latin.json").write_bytes('{"é": {}}'.encode("latin-1"))

    with pytest.raises(BadInputError, match=r"none.json: no such file; expected counts: \{"):
        list(read_records(tmp_path / "none.json"))
    with pytest.raises(BadInputError, match=r"cut.json.gz: cannot be unpacked"):
        list(read_records(tmp_path / "cut.json.gz"))
    with pytest.raises(BadInputError, match=r"latin.json: not UTF-8 text"):
        list(read_records(tmp_path / "latin.json"))


def test_a_query_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(countsfile, "CHUNK", 100)
    monkeypatch.setattr(countsfile, "MAX_RECORD", 1000)
    (tmp_path / "c.json").write_text('{"a": {"' + "b" * 9999)

    with pytest.raises(BadInputError, match="the counts of one query are longer than"):
        list(read_records(tmp_path / "c.json"))


def test_counts_of_another_corpus_teach_nothing(
    graph: TrainingData, counted: Callable[..., str]
) -> None:
    for counts in ({"k": {"l": 5}, "d": {"l": 5, "x": 3, "d": 9}}, {"d": {}}, {}):
        file = counted(counts)
        with pytest.raises(
            ConfigError, match=r"no train query of .* has a count with an eligible paper"
        ):
            read_counts([file], graph)


# --- settings


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('positives = "counts"', r'counts = \["FILE", ...\] needs positives or negatives ='),
        ('counts = ["a.json"]', "got 1 files, positives and negatives citations, citations"),
        ('counts = "a.json"', r"t.toml: counts must be a list of texts, got 'a.json'"),
        ("sources = [1]", r"t.toml: sources must be a list of texts, got \[1\]"),
        ('sources = ["cocitations"]', "sources must be citations, co-citations, neighbours or fil"),
        ('sources = ["counts"]', "sources must be citations, co-citations, neighbours or files"),
        ('sources = ["citations", "citations"]', "sources must differ, got citations, citations"),
        (
            'sources = ["a.json"]\nsource_weights = [1, 2]',
            "must have one weight per source, got 2 for 1",
        ),
        ('sources = ["a.json"]\nsource_weights = [0]', r"must be greater than 0, got \[0.0\]"),
        ('sources = ["a.json"]\nsource_weights = [true]', "must be a list of numbers"),
        (
            'recipe = "modern"\nsources = ["citations"]',
            "sources need the triplet loss, got in-batch",
        ),
        (
            'positives = "counts"\ncounts = ["a.json"]\nsources = ["b.json"]',
            "counts has no effect with sources",
        ),
    ],
)
def test_settings_of_signals_that_cannot_be_are_one_clear_line(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "t.toml").write_text(content)

    with pytest.raises(ConfigError, match=message):
        EncoderTraining.read(tmp_path / "t.toml", {})


def differences(one: EncoderTraining, other: EncoderTraining) -> dict[str, Any]:
    names = [field.name for field in fields(one)]
    return {n: getattr(other, n) for n in names if getattr(one, n) != getattr(other, n)}


@pytest.mark.parametrize("folder", [SETTINGS, SETTINGS / "paper"])
def test_each_row_of_tables_2_and_3_differs_from_specter_in_one_point(folder: Path) -> None:
    base = EncoderTraining.read(folder / "citations.toml", {})

    found = {
        file.stem: differences(base, EncoderTraining.read(file, {}))
        for file in folder.glob("*.toml")
    }

    def counts(name: str) -> dict[str, Any]:
        return {
            "positives": "counts",
            "negatives": "counts",
            "counts": (f"datasets/specter/{name}.json",),
        }

    assert found == {
        "citations": {},
        "no-abstract": {"form": EncoderForm.TITLE},
        "venue": {"form": EncoderForm.VENUE},
        "author": {"form": EncoderForm.AUTHORS},
        "no-hard": {"hard": 0},
        "bert-large": {"model": "google-bert/bert-large-uncased"},
        "co-citation": {"positives": "co-citations", "negatives": "co-citations"},
        "multitask": {
            "sources": found["multitask"]["sources"],
        },
        "co-view": counts("co-views"),
        "co-read": counts("co-reads"),
    }


def test_the_settings_of_the_paper_are_those_it_states() -> None:
    paper = EncoderTraining.read(SETTINGS / "paper" / "citations.toml", {})

    assert (paper.model, paper.max_tokens, paper.train_tokens) == ("scibert", 512, 0)
    assert (paper.epochs, paper.examples, paper.hard) == (2, 5, 2)
    assert (paper.batch, paper.learning_rate, paper.margin) == (32, 2e-5, 1)


# --- training


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def seldom(sample_index: IndexFolder, counted: Callable[..., str]) -> str:
    """Counts that tie each train query of the sample to three papers of the pool."""
    data = load_training_data(sample_index)
    ids = sample_index.papers.ids_at
    rng = np.random.default_rng(0)
    pool = np.flatnonzero(data.pool)
    return counted(
        {
            query: dict(
                zip(ids(rng.choice(pool, 3, replace=False).tolist()), (9, 1, 1), strict=True)
            )
            for query in ids(data.queries.tolist())
        },
        "co-views.json",
    )


@pytest.mark.slow
def test_a_mixture_that_was_cut_short_goes_on_to_the_same_weights(
    sample_index: IndexFolder,
    tiny: Path,
    seldom: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints_every(monkeypatch, 5)
    sources = ["citations", "co-citations", seldom]
    how = quick(tiny, sources=sources, epochs=1, dev_queries=0)
    train_encoder(sample_index, tmp_path / "whole", how)

    def stop(what: str, done: int, total: int) -> None:
        if (what, done) == ("training", 8):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(sample_index, tmp_path / "m", how, progress=stop)
    last = Workspace.for_model(tmp_path / "m").checkpoint()
    assert last is not None and last.name == "checkpoint-5"
    train_encoder(sample_index, tmp_path / "m", how, resume=True)

    assert_same_weights(tmp_path / "m", tmp_path / "whole")
    told = json.loads((tmp_path / "m" / "training.json").read_text())["provenance"]["settings"]
    assert told["sources"] == ["citations", "co-citations", "co-views.json"]
    assert list(told["files_sha256"]) == ["co-views.json"]
    assert str(tmp_path) not in (tmp_path / "m" / "README.md").read_text()


def test_a_model_is_known_by_the_counts_that_it_learned_from(
    sample_index: IndexFolder, tiny: Path, seldom: str, tmp_path: Path
) -> None:
    counts = {"positives": "counts", "negatives": "counts", "counts": [seldom]}
    how = quick(tiny, **counts, epochs=1, dev_queries=0)
    said: list[str] = []

    train_encoder(sample_index, tmp_path / "m", how, log=said.append)

    assert said[0].startswith("co-views.json: ")
    assert was_trained_so(tmp_path / "m", sample_index, how)
    Path(seldom).write_text(Path(seldom).read_text().replace("9}", "8}", 1))
    assert not was_trained_so(tmp_path / "m", sample_index, how)


def test_the_command_line_says_in_one_line_what_is_wrong_with_a_file(
    sample_index: IndexFolder, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "t.toml"
    file = tmp_path / "co-views.json"
    settings.write_text(
        f'positives = "counts"\ncounts = ["{file}"]\nmax_tokens = 24\nthreads = 1\n'
    )
    common = ["train-encoder", "--index", str(sample_index.path), "--model", str(tiny)]
    common += ["--config", str(settings), "--output", str(tmp_path / "m")]

    assert run(common) == 2
    missing = capsys.readouterr().err
    file.write_text('{"a": 5}')
    assert run(common) == 2
    bad = capsys.readouterr().err

    assert missing.startswith(f"citerec: error: {file}: no such file; expected counts: {{")
    assert f"citerec: error: {file}, line 1: the counts of 'a' are 5; expected {{" in bad
    assert not (tmp_path / "m").exists()
