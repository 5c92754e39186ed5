"""Rows of a table: reading one, running it, judging what it gives, and the table."""

import gzip
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpora import SAMPLE, records
from support.tiny import tiny_bert
from support.types import MonkeyPatch

from citerec.build.index import BuildConfig, build_index
from citerec.config import Precision
from citerec.encode.encoder import open_encoder
from citerec.encode.spec import EncodeConfig
from citerec.errors import BadInputError, ConfigError
from citerec.index.folder import IndexFolder, open_index
from citerec.index.splits import write_splits
from citerec.index.vectors import vectors_of
from citerec.lab.datasets.fetch import DatasetRecord, write_record
from citerec.lab.experiment.row import Experiment, read_experiment
from citerec.lab.experiment.run import Verdict, judge, run_experiment, write_result
from citerec.lab.experiment.table import tables, tables_as_latex
from citerec.lab.scidocs.published import FIGURE_2, TABLE_1, TABLE_2, TABLE_3

MakeRow = Callable[..., Experiment]

# q and r each cite the one other paper of their word, so that BM25 puts it first: MRR 1.
PAPERS = records(
    """
{"id": "a", "title": "Apples", "year": 2000},
{"id": "b", "title": "Bears", "year": 2000},
{"id": "q", "title": "Apples again", "year": 2001, "citations": ["a"]},
{"id": "r", "title": "Bears again", "year": 2001, "citations": ["b"]}
"""
)
SPLITS = {"train": [], "dev": ["r"], "test": ["q", "a"]}
HEAD = 'title = "BM25"\nclaim = "It finds words."\ncost = "1 s"\n'


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """A corpus with its splits in the folder that the test runs in."""
    monkeypatch.chdir(tmp_path)
    folder = Path("fruit")
    folder.mkdir()
    (folder / "papers.jsonl").write_text(
        "".join(json.dumps(paper) + "\n" for paper in PAPERS)
    )
    write_splits(folder / "splits", SPLITS)
    return folder


@pytest.fixture
def row(tmp_path: Path) -> MakeRow:
    """Write a row and read it."""

    def make(more: str = "", *, corpus: str = "fruit", name: str = "row") -> Experiment:
        path = tmp_path / "experiments" / "bm25" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{HEAD}corpus = "{corpus}"\n{more}\n')
        return read_experiment(path)

    return make


# --- reading


# --- judging


@pytest.mark.parametrize(
    ("expected", "measured", "verdict"),
    [
        (0.5, 0.5019, Verdict.OK),
        (0.5, 0.4981, Verdict.OK),
        (0.5, 0.5021, Verdict.NEAR),
        (0.5, 0.4901, Verdict.NEAR),
        (0.5, 0.5101, Verdict.FAIL),
        (0.5, float("nan"), Verdict.FAIL),
        ((0.4, 0.5), 0.45, Verdict.OK),
        ((0.4, 0.5), 0.509, Verdict.NEAR),  # 9 thousandths above
        ((0.4, 0.5), 0.38, Verdict.FAIL),
    ],
)
def test_ok_is_within_2_thousandths_and_near_within_10(
    expected: Any, measured: float, verdict: Verdict
) -> None:
    for metrics in ({"mrr": measured, "map": 0.0}, {"map": 0.0, "mrr": measured}):
        found, why = judge({"map": 0.0, "mrr": expected}, metrics)

        assert found is verdict
        assert ("mrr" in why) == (verdict is not Verdict.OK)
    assert judge({"mrr": expected}, {})[0] is Verdict.FAIL


# --- running


def test_a_row_is_run_end_to_end(corpus: Path, row: MakeRow) -> None:
    outcome = run_experiment(row("expect = { mrr = 1.0, map = 0.4 }"), Path("indexes"))

    assert outcome.metrics["mrr"] == 1
    assert outcome.verdict is Verdict.FAIL
    assert outcome.why == "map is 1.0000, expected 0.4000"
    result = outcome.result
    assert (result["corpus"], result["queries"], result["verdict"]) == (
        "fruit",
        1,
        "FAIL",
    )
    assert sum(result["left_out"].values()) == 1  # a cites nothing
    assert (Path("indexes") / corpus / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            "head -1 papers.jsonl | sed s/a/new/ >> papers.jsonl",
            "from another corpus than fruit",
        ),
        (
            "mv splits/dev.ids x; mv splits/test.ids splits/dev.ids; mv x splits/test.ids",
            "has other splits than fruit",
        ),
    ],
)
def test_an_index_of_another_corpus_or_other_splits_is_refused_with_advice(
    corpus: Path, row: MakeRow, change: str, fault: str
) -> None:
    run_experiment(row(), Path("indexes"))
    subprocess.run(change, shell=True, cwd=corpus, check=True)

    advice = "rebuild it: citerec index fruit --index indexes/fruit --force"
    with pytest.raises(ConfigError, match=f"{fault}; {advice}"):
        run_experiment(row(), Path("indexes"))


# --- results and tables


def test_the_table_has_a_row_for_every_file(
    corpus: Path, tmp_path: Path, row: MakeRow
) -> None:
    outcome = run_experiment(row("expect = { mrr = 1.0 }"), Path("indexes"))
    row(corpus="nowhere", name="waits")

    file = write_result(outcome, tmp_path / "experiments" / "results")
    text = tables(tmp_path / "experiments")

    assert file == tmp_path / "experiments" / "results" / "bm25" / "row.json"
    heading, _, done, waits = [
        line for line in text.splitlines() if line.startswith("|")
    ]
    assert heading.startswith("| row | corpus | f1@20 | f1@20 (of means) | mrr |")
    # One of one found in 20 places: P = 1/20, R = 1, F1 = 2/21.
    assert done.startswith(
        "| [BM25](bm25/row.toml) | fruit, test | 0.0952 [0.095, 0.095] | 0.0952 |"
    )
    assert done.endswith("| OK |")
    assert waits.startswith("| [BM25](bm25/waits.toml) | nowhere, test | – |")
    assert waits.endswith("| not run here |")


def test_a_result_that_cannot_be_read_is_named(
    tmp_path: Path, row: Callable[..., Experiment]
) -> None:
    row()
    result = tmp_path / "experiments" / "results" / "bm25" / "row.json"
    result.parent.mkdir(parents=True)
    for content in (b"", b"[]", b'{"metrics": {}}'):
        result.write_bytes(content)

        with pytest.raises(BadInputError):
            tables(tmp_path / "experiments")


# --- rows of other kinds


def test_a_row_waits_for_what_is_not_here(corpus: Path, row: MakeRow) -> None:
    missing = run_experiment(row(corpus="nowhere"), Path("indexes"))
    unfetched = run_experiment(row(corpus="datasets/dblp"), Path("indexes"))
    theirs = row('kind = "published"\npublished = { mrr = 0.5 }\nsource = "A paper"')
    no_hub = run_experiment(
        row('system = "dense"\nencoder = "nobody/no-model"'), Path("indexes")
    )

    assert (missing.verdict, missing.why) == (Verdict.NOT_RUN, "nowhere is missing")
    assert not missing.result
    assert not Path("indexes", "nowhere").exists()
    assert unfetched.verdict is Verdict.NOT_RUN
    assert unfetched.why == (
        "datasets/dblp is missing; fetch it: citerec datasets fetch dblp"
    )
    assert run_experiment(theirs, Path("indexes")).verdict is Verdict.PUBLISHED
    assert no_hub.verdict is Verdict.NOT_RUN
    assert "nobody/no-model is not in the local cache" in no_hub.why


@pytest.mark.parametrize(
    "more",
    [
        'kind = "census"',
        'system = "chance"',
        "cost = [1]",
        "expect = { mrr = [0.5, 0.4] }",
        "expect = { papers = 4 }",
        "published = { mrr = 0.5 }",
        'kind = "statistics"\nsystem = "bm25"',
        'kind = "scidocs"',
        "rules = { min_gold = 0 }",
        'kind = "pools"\nencoder = "minilm"',
        "bm25 = { k2 = 1 }",
        "queries = 5",  # the quick look of `citerec evaluate`
        'system = "dense"',
        'encoder = "minilm"\ntrain = "x.toml"',
        "fuse = { dense_weight = 2 }",
        'system = "rerank"',
        'reranker = "a"\ntrain_reranker = "x.toml"',
        'system = "rerank"\nreranker = "a"\nrerank = { candidates = "rrf" }',
        'system = "rerank"\nreranker = "a"\nrerank = { model = "b" }',
        "rerank = { query_tokens = 449 }",
        "rerank = { depth = 5 }",
        'reranker = "a"',
        'system = "ranker"\nranker = "r"\ntrain_ranker = "t.toml"',
        'system = "ranker"\nranker_corpora = ["a"]',
        'ranker = "r"',
    ],
)
def test_a_row_of_any_kind_that_cannot_be_is_refused(row: MakeRow, more: str) -> None:
    with pytest.raises(BadInputError):
        row(more)


def test_a_row_waits_until_its_test_papers_were_left_out_of_training(
    corpus: Path, row: MakeRow
) -> None:
    shutil.copytree(corpus, "datasets/openresearch")
    asked = row('trained_on = "datasets/openresearch"\napart = ["dblp"]')
    about = dict.fromkeys(("title", "licence", "citation", "fetched", "citerec"), "")
    record = DatasetRecord(dataset="openresearch", files={}, counts={}, **about)

    mixed = run_experiment(asked, Path("indexes"))
    write_record(Path("datasets/openresearch"), replace(record, without={"dblp": 3}))
    apart = run_experiment(asked, Path("indexes"))

    assert mixed.verdict is Verdict.NOT_RUN
    assert mixed.why.startswith("datasets/openresearch may contain test papers of dblp")
    assert mixed.why.endswith("citerec datasets fetch openresearch --without dblp")
    assert apart.verdict is Verdict.MEASURED


def test_the_committed_tables_are_what_rows_and_results_give() -> None:
    root = Path(__file__).parent.parent / "experiments"

    assert tables(root) == (root / "TABLES.md").read_text(encoding="utf-8")
    assert tables_as_latex(root) == (root / "TABLES.tex").read_text(encoding="utf-8")


def test_judged_pools_are_evaluated_beside_published_rankings(
    corpus: Path, row: MakeRow, tiny_model: str
) -> None:
    queries = [{"id": "need", "title": "Apples in pots"}]
    for name, content in (
        ("queries.jsonl.gz", json.dumps(queries[0])),
        # r has no word of the need; it is in no ranking of words, and last
        ("qrels.txt.gz", "need 0 a 2\nneed 0 r 0\n"),
        ("theirs.trec.gz", "need Q0 r 1 0.9 x\nneed Q0 a 2 0.1 x\n"),
    ):
        (corpus / name).write_bytes(gzip.compress(content.encode()))
    shutil.rmtree(corpus / "splits")
    pools = '[pools]\ncut = 2\njudgements = { "qrels.txt.gz" = "*.trec.gz" }'

    outcome = run_experiment(
        row(f'kind = "pools"\nencoder = "{tiny_model}"\n{pools}'), Path("indexes")
    )

    by_system = {of["system"]: of for of in outcome.result["rows"]}
    assert by_system["citerec, BM25"]["ndcg"] == 1
    assert by_system["citerec, BM25"]["map"] == 1
    theirs = by_system["theirs"]
    # a, of grade 2, is second: 2 / log2(3) of the best 2 / log2(2)
    assert theirs["ndcg"] == pytest.approx(1 / math.log2(3))
    assert theirs["map"] == 0.5
    over = outcome.metrics["ndcg"] - theirs["ndcg"]
    assert outcome.metrics["over published"] == pytest.approx(over)


# --- rows with vectors


def test_a_row_is_in_float32_whatever_was_run_before(
    corpus: Path,
    row: MakeRow,
    tiny_model: str,
    tmp_path: Path,
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setenv("CITEREC_DTYPE", "bfloat16")
    asked = row(f'system = "dense"\nencoder = "{tiny_model}"')
    folder = tmp_path / "indexes" / asked.index_name
    build_index(corpus, folder, BuildConfig(encoder=tiny_model))
    papers = [*open_index(folder).papers.at(range(4)).values()]

    outcome = run_experiment(asked, tmp_path / "indexes")
    made = (folder / "manifest.json").stat().st_mtime_ns
    assert run_experiment(asked, tmp_path / "indexes").metrics == outcome.metrics

    exact = open_encoder(tiny_model, EncodeConfig(precision=Precision.FLOAT32)).encode(
        papers
    )
    stored = vectors_of(open_index(folder)).vectors(np.arange(4, dtype=np.int32))
    assert stored == pytest.approx(exact, abs=1e-5)
    assert (folder / "manifest.json").stat().st_mtime_ns == made  # these are kept
    assert outcome.result["provenance"]["settings"]["dtype"] == "float32"
    assert os.environ["CITEREC_DTYPE"] == "bfloat16"  # of the user


# --- rows that rerank


def test_a_row_that_reranks_tells_with_what(
    corpus: Path,
    row: MakeRow,
    tiny_reranker_model: str,
    monkeypatch: MonkeyPatch,
) -> None:
    monkeypatch.setenv("CITEREC_DTYPE", "bfloat16")
    asked = row(
        f'system = "rerank"\nreranker = "{tiny_reranker_model}"\n'
        "rerank = { depth = 3, weight = 0.5, query_tokens = 16 }"
    )

    outcome = run_experiment(asked, Path("indexes"))

    settings = outcome.result["provenance"]["settings"]
    assert (asked.index_name, asked.candidates) == ("fruit", "bm25")
    assert settings["candidates"] == "bm25"
    assert settings["bm25"]["k1"] == 1.2
    [used] = settings["rerank"]
    assert (used["model"], used["depth"], used["weight"]) == ("reranker", 3, 0.5)
    assert (used["query_tokens"], used["precision"]) == (16, "float32")
    assert outcome.metrics["recall@1000"] == 1


def test_a_row_trains_its_reranker_once_and_leaves_others_alone(
    row: MakeRow, tmp_path: Path, sample_index: IndexFolder
) -> None:
    indexes = tmp_path / "indexes"
    shutil.copytree(sample_index.path, indexes / "papers.jsonl")
    base = tiny_bert(tmp_path / "base")
    for name, steps in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.toml").write_text(
            f'model = "{base}"\nrecipe = "paper"\nsteps = {steps}\nbatch = 4\nqueries = 4\n'
            "query_tokens = 16\ncandidate_tokens = 16\ndev_queries = 0\nthreads = 1\n"
        )

    def weights(name: str) -> str:
        more = f'system = "rerank"\ntrain_reranker = "{tmp_path / name}.toml"'
        asked = row(f"{more}\nrerank = {{ depth = 2 }}", corpus=str(SAMPLE))
        [told] = run_experiment(asked, indexes).result["provenance"]["settings"][
            "rerank"
        ]
        return f"{told['model']} {told['weights']}"

    def made() -> dict[str, int]:
        models = sorted(
            (indexes / "papers.jsonl" / "models").glob("*/model.safetensors")
        )
        return {file.parent.name: file.stat().st_mtime_ns for file in models}

    first, second, files = weights("one"), weights("two"), made()

    assert first.startswith("models/reranker-one ")
    assert second.startswith("models/reranker-two ")
    assert [weights("one"), weights("two")] == [first, second]
    assert made() == files
    # not the one that `recommend` reads
    assert list(files) == [
        "reranker-one",
        "reranker-two",
    ]


# --- rows that rank


def test_a_row_trains_its_ranker_once_beside_the_indexs_own(
    corpus: Path, row: MakeRow
) -> None:
    # which r does not cite
    other = {
        "id": "c",
        "title": "Bears once more",
        "year": 2000,
    }
    with (corpus / "papers.jsonl").open("a") as papers:
        papers.write(json.dumps(other) + "\n")
    (corpus / "splits" / "train.ids").write_text("r")
    (corpus / "splits" / "dev.ids").write_text("")
    Path("few.toml").write_text("trees = 2\nleast_rows = 1\nthreads = 1\n")
    ranks = row('system = "ranker"\ntrain_ranker = "few.toml"')

    first = run_experiment(ranks, Path("indexes"))
    made = Path("indexes") / "fruit" / "models" / "ranker-few" / "training.json"
    before = made.stat().st_mtime_ns
    again = run_experiment(ranks, Path("indexes"))

    assert first.metrics == again.metrics
    assert made.stat().st_mtime_ns == before
    assert not made.parent.with_name("ranker").exists()
    assert first.result["provenance"]["settings"]["ranker"]["model"] == "ranker-few"


# --- what notes name

ROOT = Path(__file__).parent.parent
EXPERIMENTS = ROOT / "experiments"
# a path, with * or <name> for any
NAMED = re.compile(r"(?<![\w/.])[\w.*<>-]+(?:/[\w.*<>-]+)*/?")
FOLDERS = {
    path.name
    for base in (ROOT, EXPERIMENTS)
    for path in base.iterdir()
    if path.is_dir()
}
# by commands, or no part of the project
MADE = {
    "indexes",
    "reports",
    "datasets",
    "shared",
}
FILES = [*EXPERIMENTS.rglob("*")]


def missing_names(text: str) -> list[str]:
    """Return what a text names of the project, and is not there: files, folders, tables."""
    names = [name.strip("/.") for name in NAMED.findall(text)]
    found = {
        name
        for name in names
        if name.endswith((".toml", ".md", ".py", ".tex"))
        or re.fullmatch(r"(?:reranker|specter)_(?:table|fig)\w+", name)
        or ("/" in name and name.split("/")[0] in FOLDERS - MADE)
    }
    patterns = {name: re.sub("<.*?>", "*", name) for name in sorted(found)}
    return [
        name
        for name, pattern in patterns.items()
        if not any(file.match(pattern) for file in FILES)
        and not any(ROOT.glob(pattern))
    ]


@pytest.mark.parametrize(
    "file",
    [
        *sorted(path.relative_to(ROOT).as_posix() for path in EXPERIMENTS.glob("*.md")),
        *sorted(
            path.relative_to(ROOT).as_posix() for path in EXPERIMENTS.rglob("*.toml")
        ),
    ],
)
def test_what_a_note_names_is_there(file: str) -> None:
    path = ROOT / file
    text = path.read_text(encoding="utf-8")

    assert missing_names(text) == []
    for number in re.findall(r"\brow (\d+)", text) if path.name == "table.toml" else ():
        assert [*path.parent.glob(f"{number}_*"), *path.parent.glob(f"0{number}_*")], (
            number
        )


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md"]
)
def test_what_a_page_names_of_the_experiments_is_there(page: str) -> None:
    for path in ROOT.glob(page):
        names = re.findall(r"experiments/[\w.*<>/-]+", path.read_text(encoding="utf-8"))

        assert missing_names(" ".join(names)) == [], path


def test_the_rows_of_specters_tables_hold_its_published_figures() -> None:
    root = Path(__file__).parent.parent / "experiments"

    def published(table: str) -> list[dict[str, float]]:
        files = sorted((root / table).glob("[0-9]*.toml"))
        return [
            dict(row.published) for row in map(read_experiment, files) if row.published
        ]

    assert published("specter_table1") == [*TABLE_1.values()]
    assert published("specter_table2") == [*TABLE_2.values()]
    assert published("specter_table3") == [*TABLE_3.values()]
    assert published("specter_fig2") == [*FIGURE_2.values()]


# --- what others published
