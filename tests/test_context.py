"""A sentence that needs a reference: what is read of it, and what is recommended with and without its draft."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.corpora import built, records
from support.tiny_ranker import tiny_ranker
from support.types import Invoke

from citerec import Query, RecommendConfig, Recommender
from citerec.config import Bm25Config
from citerec.drafts.context import read_context, without_markers
from citerec.errors import ConfigError
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.pipeline import Pipeline, rank_stages
from citerec.rank.ltr import SENTENCES, Calibration, RankedCandidates, open_ranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import SENTENCE_WEIGHT, HybridRetriever
from citerec.types import Eligibility, QueryBatch, QueryKind

PAPERS = records(
    """
{"id": "late", "title": "Late interaction over token vectors", "year": 2020},
{"id": "sparse", "title": "Sparse vectors of expanded terms", "year": 2021},
{"id": "trees", "title": "Drawing large trees", "year": 2002, "doi": "10.5555/TREES"},
{"id": "graphs", "title": "Drawing graphs and trees in the plane", "year": 2004},
{"id": "zebra", "title": "Stripes of zebras", "year": 1999}
"""
)
DRAFT = Query(id="d", title="Drawing trees", abstract="We draw trees in the plane.")
SENTENCE = "Late interaction keeps token vectors [CITE]"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, java: None) -> IndexFolder:
    """The papers above, indexed once; tests must not change it."""
    return built(tmp_path_factory.mktemp("small"), PAPERS)


@pytest.fixture
def tiny(index: IndexFolder) -> Recommender:
    return Recommender(index, RecommendConfig(ranker="none"))


@pytest.fixture
def cli(index: IndexFolder, invoke: Callable[..., Any]) -> Invoke:
    """Run `recommend` on the small index."""
    return partial(invoke, "recommend", "--index", index.path, "--ranker", "none")


# --- citation markers


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (SENTENCE, "Late interaction keeps token vectors"),
        ("Dense [12] and sparse [3, 5-7] vectors.", "Dense and sparse vectors."),
        ("It works (Smith et al., 2020; Lee and Kim 2019a).", "It works."),
        ("It works (see Øland, 2009, for a survey).", "It works."),
        ("Smith et al. (2020) show it.", "Smith et al. show it."),
        (r"We follow~\cite{a,b} and \citep[see][p.~3]{c}.", "We follow and."),
        (r"A \textbf{late} model~\parencite{x}", "A late model"),
        ("Keys [Smi20], [ABC+19b] and [@smith2020; @lee].", "Keys, and."),
        ("trees (of 2019 leaves) stay", "trees (of 2019 leaves) stay"),
        ("the term tf(t) (a count) stays", "the term tf(t) (a count) stays"),
        ("two\n lines", "two lines"),
    ],
)
def test_citation_markers_are_removed_and_nothing_else(text: str, plain: str) -> None:
    assert without_markers(text) == plain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the context is empty"),
        (" \n", "the context is empty"),
        ("[CITE] [12] (Smith, 2020)", "no words besides citation markers"),
        (
            "word " * 5000,
            "the context has 25,000 characters; expected a sentence of at most",
        ),
    ],
)
def test_a_context_without_words_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_context(text)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Late vectors match tokens [12], but sparse vectors expand terms [CITE].", "but sparse vectors expand terms."),
        ("Late vectors match tokens [CITE], but sparse vectors expand terms [12].", "Late vectors match tokens"),
        ("Smith (2020) matches late vectors with tokens [CITE].", "Smith matches late vectors with tokens."),
        ("Late vectors [12] and sparse ones [CITE] match.", "Late vectors and sparse ones match."),
    ],
)  # fmt: skip
def test_the_claim_at_the_place_is_read_unless_it_is_short(
    text: str, claim: str
) -> None:
    assert read_context(text) == claim


# --- what is searched


def test_a_sentence_alone_is_the_query(tiny: Recommender) -> None:
    found = tiny.recommend(context=SENTENCE)

    assert found.ids == ("late", "sparse")  # two shared words and more, one
    assert found.query.title == "Late interaction keeps token vectors"
    assert found.query.kind is QueryKind.SENTENCE


def test_a_sentence_and_its_draft_are_both_searched_and_the_sentence_counts_more(
    tiny: Recommender,
) -> None:
    alone = tiny.recommend(DRAFT)
    both = tiny.recommend(DRAFT, context=SENTENCE, explain=True)

    assert set(alone.ids) == {"trees", "graphs"}
    assert set(both.ids) == {"late", "sparse", "trees", "graphs"}
    assert both.ids[0] == "late"
    assert both[0].reasons == ("matches: interaction, late, token, vectors",)
    assert both[-1].reasons == ()  # it shares words with the draft alone


def test_the_lists_are_fused_by_weighted_ranks(index: IndexFolder) -> None:
    bm25 = HybridRetriever(index, [Bm25Retriever(index, Bm25Config())])
    query = Query(id="d", title="Drawing trees", context="token vectors")

    [fused] = bm25.candidates([query], [Eligibility()], 10)

    ids = index.papers.ids_at(fused.rows.tolist())
    assert ids == ["late", "sparse", "trees", "graphs"]
    sentence, draft = SENTENCE_WEIGHT, 1 - SENTENCE_WEIGHT
    points = [sentence / 61, sentence / 62, draft / 61, draft / 62]
    assert fused.hits.scores.tolist() == pytest.approx(points)


def test_probabilities_are_those_of_drafts_so_a_sentence_has_none(
    index: IndexFolder, tmp_path: Path
) -> None:
    calibration = Calibration(scale=1.0, offset=0.0)
    folder = tiny_ranker(tmp_path / "ranker", {"bm25": 1.0}, calibration=calibration)
    recommender = Recommender(index, RecommendConfig(ranker=str(folder)))

    draft, sentence = (
        recommender.recommend(DRAFT),
        recommender.recommend(context=SENTENCE),
    )

    assert draft[0].probability is not None
    assert sentence[0].probability is None
    assert sentence.ids[0] == "late"


def test_for_a_sentence_the_scores_of_its_own_model_are_added(
    index: IndexFolder, tmp_path: Path
) -> None:
    draft = open_ranker(tiny_ranker(tmp_path / "draft", {"bm25": 1.0}))
    graph = TemporalGraph(index, CitationScope.PUBLISHED)
    first = HybridRetriever(index, [Bm25Retriever(index, Bm25Config())])
    stages = rank_stages(graph, draft, None)
    sentence = Query(id="s", title=SENTENCE, kind=QueryKind.SENTENCE)
    as_draft = replace(sentence, kind=QueryKind.DRAFT)

    of_sentence, of_draft = Pipeline(first, stages).all(
        QueryBatch([sentence, as_draft], [Eligibility(), Eligibility()])
    )

    assert isinstance(of_sentence, RankedCandidates)
    matrix = of_sentence.matrix
    both = draft.score(matrix) + open_ranker(SENTENCES).score(matrix)
    assert sorted(of_sentence.hits.scores) == pytest.approx(sorted(both))
    assert sorted(of_draft.hits.scores) == pytest.approx(sorted(draft.score(matrix)))


# --- the command line


def test_a_batch_has_a_sentence_in_each_line(cli: Invoke, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        f"""{{"id": "a", "title": "Drawing trees", "context": "{SENTENCE}"}}
{{"id": "b", "context": "Zebras have stripes (Doe, 1999)"}}
{{"id": "c", "title": "Drawing trees"}}"""
    )

    code, out, _ = cli("--query", "q.jsonl", "--format", "jsonl")

    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [one["query"] for one in found] == ["a", "b", "c"]
    assert [one["results"][0]["id"] for one in found] == ["late", "zebra", "trees"]
    assert len(found[1]["results"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--context", "[12]"),
            "error: the context has no words besides citation markers",
        ),
        (
            ("--query", "two.jsonl", "--context", "A b"),
            "but there are 2; give one draft",
        ),
        (("--query", "bad.json"), "must be a string, found"),
        ((), "there is no draft; give one by --title or --query"),
    ],
)
def test_what_does_not_fit_a_context_is_an_error_in_one_line(
    cli: Invoke,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    (tmp_path / "two.jsonl").write_text('{"title": "A"}\n{"title": "B"}\n')
    (tmp_path / "bad.json").write_text('{"title": "A", "context": ["B"]}')

    code, out, err = cli(*arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
