"""What a list of references lacks: the counts of the citation graph, the list without a draft, and its errors."""

from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpora import built, records
from support.types import Build, Invoke

from citerec import Query, RecommendConfig, Recommender
from citerec.errors import ConfigError
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.rank.seeds import (
    CITED_BY,
    CO_CITATION,
    COUPLING,
    SIMILAR_LISTS,
    connections,
    graph_scores,
)
from citerec.request import ListedPapers, list_query

Cli = Invoke
# s1, s2 and s3 are the list. `hub` is cited together with all three; `cites2` cites two of them; s3 cites `base`.
PAPERS: list[dict[str, Any]] = records(
    """
{"id": "s1", "title": "Drawing trees", "year": 2000},
{"id": "s2", "title": "Drawing graphs", "year": 2001},
{"id": "s3", "title": "Drawing maps", "year": 2002, "citations": ["base"]},
{"id": "base", "title": "Planarity", "year": 1974},
{"id": "hub", "title": "Layout", "year": 2003},
{"id": "cites2", "title": "Edges", "year": 2006, "citations": ["s1", "s2"]},
{"id": "review1", "title": "Review", "year": 2010, "citations": ["s1", "s2", "hub"]},
{"id": "review2", "title": "Survey", "year": 2012, "citations": ["s2", "s3", "hub"]},
{"id": "apart", "title": "Quarks", "year": 2011}
"""
)
LIST = ["s1", "s2", "s3"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, java: None) -> IndexFolder:
    """The papers above, indexed once; tests must not change it."""
    return built(tmp_path_factory.mktemp("small"), PAPERS)


@pytest.fixture
def tiny(index: IndexFolder) -> Recommender:
    return Recommender(index)


@pytest.fixture
def cli(index: IndexFolder, tmp_path: Path, invoke: Cli) -> Cli:
    """Run `recommend` on the small index, where there is a list of references."""
    (tmp_path / "refs.txt").write_text("\n".join([*LIST, "nobody"]))
    return partial(invoke, "recommend", "--index", index.path)


# --- the citation graph


def random_graph(
    build: Build, size: int
) -> tuple[TemporalGraph, dict[int, set[int]], list[int]]:
    """Return a graph of papers that cite five others at random, with its references and years."""
    rng = np.random.default_rng(0)
    cites = {i: {int(j) for j in rng.choice(size, 5) if j != i} for i in range(size)}
    years = rng.integers(2000, 2020, size).tolist()
    records = [
        {"id": str(i), "title": f"Title {i}", "year": years[i]}
        | {"citations": [str(j) for j in cites[i]]}
        for i in range(size)
    ]
    return TemporalGraph(build(records), CitationScope.PUBLISHED), cites, years


@pytest.mark.parametrize("year", [None, 2010, 2015])
def test_scores_and_counts_are_those_of_brute_force(
    build: Build, year: int | None
) -> None:
    size, seeds = 30, {1, 4, 9, 16, 25, 29}
    graph, cites, years = random_graph(build, size)
    known = {
        i: cites[i] if year is None or years[i] < year else set[int]()
        for i in range(size)
    }
    cited_by = {p: {c for c, cited in known.items() if p in cited} for p in range(size)}
    rows = np.array(sorted(seeds), np.int32)

    def cosine(a: set[int], b: set[int]) -> float:
        return len(a & b) / sqrt(len(a) * len(b)) if a and b else 0.0

    snapshot = graph.snapshot_before(year)
    scores = {
        name: dict(zip(scored.tolist(), values.tolist(), strict=True))
        for name, (scored, values) in graph_scores(snapshot, rows).items()
    }

    for paper in set(range(size)) - seeds:
        citing = cited_by[paper]
        expected = {
            CO_CITATION: sum(cosine(citing, cited_by[s]) for s in seeds) / len(seeds),
            SIMILAR_LISTS: sum(cosine(known[one], seeds) ** 2 for one in citing),
            COUPLING: cosine(known[paper], seeds),
            CITED_BY: len(citing & seeds) / len(seeds),
        }
        assert {n: scores[n].get(paper, 0) for n in expected} == pytest.approx(
            expected, abs=1e-5
        )
        found = connections(snapshot, rows, paper)
        assert {name: len(ones) for name, ones in found.items()} == {
            CO_CITATION: len(set().union(*(known[one] for one in citing)) & seeds),
            SIMILAR_LISTS: sum(len(known[one] & seeds) > 1 for one in citing),
            COUPLING: len(known[paper] & seeds),
            CITED_BY: len(citing & seeds),
        }


# --- the list


def test_a_list_alone_gives_what_it_lacks(tiny: Recommender) -> None:
    found = tiny.recommend(cited=LIST, explain=True)

    assert found.ids[0] == "hub"
    assert set(found.ids) == {"hub", "base", "cites2", "review1", "review2"}
    assert found[0].reasons == (
        'cited together with 3 of your references, such as "Drawing graphs"',
        "cited by 2 papers with several of your references",
    )
    reasons = {item.paper.id: item.reasons for item in found}
    assert 'cites 2 of your references, such as "Drawing trees"' in reasons["cites2"]
    assert reasons["base"] == ('cited by 1 of your references, "Drawing maps"',)
    assert all(item.probability is None for item in found)
    assert not {*LIST, "hub"} & {*tiny.recommend(cited=LIST, excluded=["hub"]).ids}


def test_a_year_bounds_papers_and_citations(tiny: Recommender) -> None:
    by_2010 = tiny.recommend(cited=LIST, year_max=2010, explain=True)
    by_2009 = tiny.recommend(cited=LIST, year_max=2009)

    assert set(by_2010.ids) == {"hub", "base", "cites2", "review1"}
    hub = next(item for item in by_2010 if item.paper.id == "hub")
    said = 'cited together with 2 of your references, such as "Drawing trees"'
    assert said in hub.reasons  # review2 is of 2012
    assert set(by_2009.ids) == {"base", "cites2"}  # nobody cites `hub` yet


def test_words_and_vectors_find_papers_without_citations(
    dense_sample: IndexFolder,
) -> None:
    recommender = Recommender(dense_sample, RecommendConfig(k=30))
    cited = ["khattab2020colbert", "karpukhin2020dense"]

    found = recommender.recommend(cited=cited, explain=True)

    assert {"dense", "bm25", CO_CITATION} <= {
        name for item in found for name in item.stages
    }
    assert not {*cited} & {*found.ids}
    texts = [reason for item in found for reason in item.reasons]
    assert any(text.startswith("its text is among the") for text in texts)
    assert any(text.startswith("matches: ") for text in texts)


def test_a_paper_that_nothing_connects_gives_an_empty_list_with_its_reason(
    tiny: Recommender,
) -> None:
    found = tiny.recommend(cited=["apart"])

    assert found.ids == ()
    assert (
        "no citation and no word of a title connects the references"
        in found.empty_reason
    )


def test_lists_and_drafts_are_not_mixed(index: IndexFolder) -> None:
    queries = [list_query(), Query(id="d", title="Drawing")]

    with pytest.raises(ConfigError, match="cannot be searched together"):
        next(
            Recommender(index).recommend_many(
                queries, ListedPapers(cited=frozenset({0}))
            )
        )


# --- the command line


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("nobody\n", (), "none of the references is among the 9 papers of"),
        ("s1\n", ("--abstract", "A b"), "--abstract needs --title"),
        ("", (), "other.txt"),
    ],
)
def test_what_does_not_fit_a_list_is_an_error(
    cli: Cli, tmp_path: Path, content: str, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "other.txt").write_text(content)

    code, out, err = cli("--cited", "other.txt", "--quiet", *arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
