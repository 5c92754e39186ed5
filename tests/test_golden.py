"""Golden runs: every system answers the sample's test queries as is written in experiments/golden/sample.

BM25 is compared exactly: Lucene's arithmetic is the same on every processor. Of the other systems the best 20 papers
of each query are compared in float32, whose last digits differ between processors: a score may differ by `CLOSE`, so
papers with scores as close as that may swap, and a share of `LOOSE` may differ by more, where a tree of the
learning-to-rank model splits right between two roundings of a similarity. These tests embed the sample: they are slow.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.corpora import SAMPLE

from citerec.build.index import BuildConfig, build_index
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.systems import Systems
from citerec.files.trec import Run, read_run
from citerec.graph.temporal import CitationScope
from citerec.index.folder import IndexFolder, open_index

GOLDEN = Path(__file__).parent.parent / "experiments" / "golden" / "sample"
CLOSE = 1e-4
LOOSE = 0.01
TOP = 20


@pytest.fixture(scope="module")
def index(
    tmp_path_factory: pytest.TempPathFactory, java: None
) -> Iterator[IndexFolder]:
    """The sample embedded by MiniLM, in float32."""
    folder = tmp_path_factory.mktemp("golden") / "sample"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CITEREC_DTYPE", "float32")
        build_index(SAMPLE, folder, BuildConfig(encoder="minilm"))
        yield open_index(folder)


def answer(index: IndexFolder, known: str, system: str) -> Run:
    settings = EvalConfig(known_graph=CitationScope(known))
    return Systems(index, load_eval_set(index, "test"), settings).run(system)[0]


def differences(run: Run, golden: Run) -> list[str]:
    """Return a line for each paper of a best 20 that is not where it should be."""
    wrong: list[str] = []
    for qid, expected in golden.rankings.items():
        scores: Mapping[str, float] = dict(
            zip(expected.ids, expected.scores, strict=True)
        )
        ours = run.rankings[qid]
        for docid, score in zip(ours.ids[:TOP], ours.scores[:TOP], strict=True):
            # a paper that the other list lacks ties with its last one
            nearest = scores.get(docid, expected.scores[-1])
            if abs(score - nearest) > CLOSE * max(1, abs(score)):
                wrong.append(
                    f"{qid}: {docid} has {score}, expected {scores.get(docid)}"
                )
    return wrong


def check(index: IndexFolder, known: str, system: str) -> None:
    golden = read_run(GOLDEN / f"{known}-{system}.run")
    run = answer(index, known, system)

    wrong = differences(run, golden)

    assert run.rankings.keys() == golden.rankings.keys()
    assert len(wrong) <= LOOSE * TOP * len(golden.rankings), "\n".join(wrong)


@pytest.mark.parametrize("system", ["bm25", "bm25-title", "bm25-key-terms"])
def test_bm25_answers_to_the_digit(sample_index: IndexFolder, system: str) -> None:
    golden: dict[str, list[tuple[str, float]]] = {}
    for line in (GOLDEN / f"earlier-{system}.run").read_text().splitlines():
        qid, _, docid, _, score, _ = line.split()
        golden.setdefault(qid, []).append((docid, float(score)))

    rankings = answer(sample_index, "earlier", system).rankings

    assert golden == {
        qid: [*zip(ranking.ids, ranking.scores, strict=True)]
        for qid, ranking in rankings.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        run.stem
        for run in sorted(GOLDEN.glob("*.run"))
        if run.stem.startswith(("earlier", "train"))
    ],
)
def test_every_system_answers_as_before(index: IndexFolder, name: str) -> None:
    known, system = name.split("-", 1)
    check(index, known, system)


def test_a_golden_run_that_differs_is_found(sample_index: IndexFolder) -> None:
    golden = read_run(GOLDEN / "earlier-rrf.run")

    assert differences(answer(sample_index, "earlier", "bm25"), golden)
