"""`citerec scidocs`: the published folder, the tasks of an index, the command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpora import built
from support.scidocs_folder import PAPERS, TOPICS, topic, write_published
from support.tiny import tiny_bert
from typer.testing import CliRunner

from citerec.cli import make_app
from citerec.cli.lab import STORE
from citerec.encode.encoder import open_encoder
from citerec.encode.spec import EncoderSpec
from citerec.errors import BadInputError, CiterecError, ConfigError, ModelError
from citerec.index.folder import IndexFolder
from citerec.lab.scidocs.from_index import TASKS, evaluate, index_tasks
from citerec.lab.scidocs.published import GROUPS, METRICS, SPECTER
from citerec.lab.scidocs.suite import run_published
from citerec.lab.scidocs.vectors import SHARD, CachedVectors, vectors_in
from citerec.text import EncoderForm
from citerec.types import Paper

Vectors = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder of the published layout; tests must not change it."""
    return write_published(tmp_path_factory.mktemp("scidocs") / "data")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same, to be changed."""
    return write_published(tmp_path / "data")


def by_topic(papers: Sequence[Paper]) -> Vectors:
    """A vector near the corner of each paper's topic."""
    rng = np.random.default_rng(0)
    corners = np.eye(2, 4)[[topic(paper.id) for paper in papers]]
    return (corners + 0.05 * rng.standard_normal(corners.shape)).astype(np.float32)


# The published folder


def test_vectors_that_know_the_topic_solve_every_task(published: Path) -> None:
    found = run_published(published, lambda _: by_topic)

    perfect = [metric for metric in METRICS if not metric.startswith("recommendation")]
    assert {metric: found.metrics[metric] for metric in perfect} == dict.fromkeys(
        perfect, 1.0
    )
    assert (found.counts["mag train"], found.counts["mag test"]) == (36, 12)
    assert found.counts["co-view queries"] == 8
    assert found.counts["recommendation clicks"] == 20
    assert set(found.metrics) == {*METRICS, *GROUPS, "average"}
    assert run_published(published, lambda _: by_topic) == found


def test_papers_without_a_vector_are_counted(published: Path) -> None:
    def without_p00(papers: Sequence[Paper]) -> Vectors:
        vectors = by_topic(papers)
        vectors[[paper.id == "p00" for paper in papers]] = np.nan
        return vectors

    found = run_published(published, lambda _: without_p00)

    as_paper = (published / "cite" / "test.qrel").read_text().count(" 0 p00 ")
    assert found.counts["mag papers without a vector"] == 1
    assert found.counts["cite papers without a vector"] == as_paper > 0


@pytest.mark.parametrize("task", ["mag", "cite", "recommendation"])
def test_vectors_that_are_no_numbers_or_too_few_are_refused(
    published: Path, task: str
) -> None:
    with pytest.raises(ModelError, match="vectors of shape"):
        run_published(
            published, lambda _: lambda papers: by_topic(papers)[:-1], tasks=[task]
        )
    with pytest.raises(ModelError, match="none of 60 papers has a vector"):
        run_published(
            published, lambda _: lambda papers: by_topic(papers) * np.inf, tasks=[task]
        )


# Bad folders


def test_a_folder_that_is_not_the_published_one_is_refused(
    folder: Path, sample_index: IndexFolder
) -> None:
    (folder / "cite" / "test.qrel").unlink()
    (folder / "recomm" / "val.csv").unlink()

    with pytest.raises(BadInputError, match=r"cite/test\.qrel, recomm/val\.csv"):
        run_published(folder, lambda _: by_topic)
    for other in (folder / "nowhere", sample_index.path):
        with pytest.raises(BadInputError):
            run_published(other, lambda _: by_topic)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("cite/test.qrel", "p00 0 p02 1\np00 0 p04\n", "test.qrel, line 2"),
        ("cite/test.qrel", "p00 0 p02 1\np00 0 p02 0\n", "line 2: paper 'p02'"),
        ("cite/test.qrel", "p00 0 p02 0\n", "query 'p00'"),
        ("mag/test.csv", "pid,class\np50,x\n", "class 'x'"),
        ("mag/train.csv", "pid,class\np50,x\n", "one class only"),
        ("recomm/test.csv", 'q,c,s\np00,p02,"p04,p06"\n', "line 2: 'p02' was clicked"),
        (
            "recomm/test.csv",
            'q,c,s\np00,p02,"p04,p06,p08,p10,p02"\n',
            "line 2: .* position 5",
        ),
        ("recomm/propensity_scores.json", '{"scores": [1, 0]}', "found 0"),
        ("paper_metadata_recomm.json", "{", "paper_metadata_recomm.json, line 1"),
        ("paper_metadata_mag_mesh.json", '{"p00": {"title": 3}}', "paper 'p00'"),
    ],
)
def test_what_is_wrong_is_said_with_its_file_and_place(
    folder: Path, file: str, content: str, told: str
) -> None:
    (folder / file).write_text(content)

    with pytest.raises(CiterecError, match=told):
        run_published(folder, lambda _: by_topic)


# From an index


def made_corpus() -> list[dict[str, object]]:
    """400 papers of two venues and 20 years; each cites the two before it of its venue, and the one 100 before."""
    return [
        {
            "id": f"d{n:03}",
            "title": f"{TOPICS[n % 2]} {n}",
            "year": 2000 + n // 20,
            "venue": ("Journal of A.", "JOURNAL OF A")[n % 4 // 2] if n % 2 else "B",
            "authors": [
                f"Ann {chr(97 + n % 26)}uthor",
                f"Bob {chr(97 + n // 26)}uilder",
            ],
            "citations": [f"d{m:03}" for m in (n - 2, n - 4, n - 100) if m >= 0],
        }
        for n in range(400)
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, java: None) -> IndexFolder:
    """An index of that corpus."""
    return built(tmp_path_factory.mktemp("made"), made_corpus())


def test_vectors_that_know_the_venue_solve_what_is_told_by_venue(
    index: IndexFolder,
) -> None:
    rng = np.random.default_rng(0)
    rows = np.arange(400)
    place = np.stack([rows % 2 * 1000.0, rows], axis=1) + 0.01 * rng.standard_normal(
        (400, 2)
    )

    found = evaluate(index_tasks(index), place.astype(np.float32).__getitem__)

    assert found.metrics["venue f1"] == 1.0
    assert found.metrics["cite map"] > 0.8
    assert not found.left_out
    tasks = [metric for metrics in TASKS.values() for metric in metrics]
    assert found.metrics["average"] == pytest.approx(
        np.mean([found.metrics[m] for m in tasks])
    )


def test_the_tasks_of_an_index_are_what_they_say(index: IndexFolder) -> None:
    graph, papers = index.graph, index.papers
    cites = [{*graph.references(row).tolist()} for row in range(400)]
    names = [{*papers[row].authors} for row in range(400)]
    late = set(range(360, 400))

    def related(task: str, a: int, b: int) -> bool:
        if task == "cite":
            return b in cites[a]
        if task == "coupling":
            return bool(cites[a] & cites[b])
        if task == "authors":
            return bool(names[a] & names[b])
        citing = {n for n in range(400) if {a, b} <= cites[n]}
        return bool(citing) and citing <= late

    for task, queries in index_tasks(index).ranked.items():
        for query in queries:
            found = query.candidates[query.gains > 0].tolist()
            others = query.candidates[query.gains == 0].tolist()
            assert 1 <= len(found) <= 5
            assert len(set(others)) == 25
            assert all(related(task, query.query, row) for row in found)
            assert not any(related(task, query.query, row) for row in others)
            assert query.query not in query.candidates
            assert task == "co-cite" or query.query in late
            if task == "cite":
                assert (papers.years[others] <= papers.years[query.query]).all()
                # as what goes with a query is
                assert {*others} <= set[int]().union(*cites)


def test_papers_of_a_class_are_split_60_20_20_and_periods_are_of_like_size(
    index: IndexFolder,
) -> None:
    tasks = index_tasks(index)

    for task in tasks.labelled.values():
        sizes = [len(part.rows) for part in task.parts]
        rows = np.concatenate([part.rows for part in task.parts])
        assert sizes == [240, 80, 80]
        assert len(set(rows.tolist())) == 400
    train = tasks.labelled["venue"].train
    assert {label: train.labels.count(label) for label in set(train.labels)} == {
        "b": 120,
        "journal of a": 120,  # its two spellings are one
    }
    periods = tasks.labelled["period"].train.labels
    assert sorted(set(periods)) == [
        "2000-2003",
        "2004-2007",
        "2008-2011",
        "2012-2015",
        "2016-2019",
    ]
    assert {periods.count(period) for period in periods} == {48}


def test_an_encoder_that_reads_the_answer_of_a_task_is_not_asked_it(
    index: IndexFolder,
) -> None:
    vectors = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    tasks = index_tasks(index, tasks=["venue", "authors", "period"])

    def asked(form: EncoderForm) -> set[str]:
        return {*evaluate(tasks, vectors.__getitem__, form=form).metrics}

    plain = asked(EncoderForm.TITLE_ABSTRACT)

    assert plain >= {"venue f1", "authors map", "authors ndcg"}
    assert plain - asked(EncoderForm.VENUE) == {"venue f1"}
    assert plain - asked(EncoderForm.AUTHORS) == {"authors map", "authors ndcg"}
    with pytest.raises(ConfigError, match="no task is left: venue"):
        evaluate(
            index_tasks(index, tasks=["venue"]),
            vectors.__getitem__,
            form=EncoderForm.VENUE,
        )


def test_what_an_index_is_too_small_for_is_left_out_and_never_zero(build: Any) -> None:
    index = build(made_corpus()[:90])  # 5 years; test papers: 9
    found = evaluate(index_tasks(index), np.eye(90, dtype=np.float32).__getitem__)

    assert set(found.left_out) == {*TASKS} - {name.split()[0] for name in found.metrics}
    assert "cite" in found.left_out
    assert "needs 10" in found.left_out["cite"]
    assert "venue f1" not in found.metrics
    # too small for the one; the other is of the published data
    for task in (
        "cite",
        "mag",
    ):
        with pytest.raises(ConfigError, match=task):
            index_tasks(index, tasks=[task])


# Encoders


def test_encoding_goes_on_where_it_was_broken_off(
    tmp_path: Path, tiny_model: str
) -> None:
    model = open_encoder(tiny_model)
    papers = [Paper(id=str(n), title=f"text {n}") for n in range(SHARD + 5)]
    whole = model.encode(papers[:SHARD])
    told: list[int] = []

    class Broken(RuntimeError):
        pass

    def break_off(what: str, done: int, total: int) -> None:
        if done > SHARD:
            raise Broken

    with pytest.raises(Broken):
        CachedVectors(model, tmp_path / "kept", break_off)(papers)
    again = CachedVectors(
        model, tmp_path / "kept", lambda what, done, total: told.append(done)
    )
    vectors = again(papers)

    assert told[0] == SHARD  # the first shard is not encoded again
    assert np.array_equal(vectors[:SHARD], whole)
    assert again.kept == 2
    again.forget()
    assert not (tmp_path / "kept").exists()


def test_what_is_kept_of_one_text_or_encoder_is_not_taken_for_another(
    tmp_path: Path, tiny_model: str
) -> None:
    other = open_encoder(
        str(tiny_bert(tmp_path / "other", seed=1, spec=EncoderSpec(max_tokens=64)))
    )
    papers = [Paper(id="a", title="text")]

    first = CachedVectors(open_encoder(tiny_model), tmp_path / "kept")(papers)
    second = CachedVectors(other, tmp_path / "kept")
    found = second(papers)
    changed = second([Paper(id="a", title="text", abstract="graph")])

    assert np.array_equal(found, other.encode(papers))
    assert not np.allclose(first, found)
    assert not np.allclose(found, changed)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(
        make_app(), ["scidocs", *(str(argument) for argument in arguments)]
    )


def test_the_published_suite_prints_the_papers_table_and_ours(
    published: Path, tiny_model: str, tmp_path: Path
) -> None:
    done = run(
        "--data",
        published,
        "--encoder",
        tiny_model,
        "--output",
        tmp_path / "out.json",
        "-q",
    )

    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.split("\n")]
    assert ["SPECTER", "82.0", "86.4", "83.6"] in [line[:4] for line in lines]
    assert "tiny" in done.stdout
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["published"][SPECTER]["average"] == 0.8
    assert set(record["encoders"][0]["metrics"]) == {*METRICS, *GROUPS, "average"}
    assert not (tmp_path / STORE).exists()


def test_an_index_is_judged_by_its_own_vectors_or_by_another_encoder(
    build: Any, tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index = build(made_corpus(), encoder=tiny_model)
    other = str(tiny_bert(tmp_path / "other", seed=1, spec=EncoderSpec(max_tokens=64)))

    own = run("--index", index.path, "--format", "json", "--tasks", "cite,venue")
    both = run(
        *("--index", index.path, "--encoder", tiny_model, "--encoder", other),
        *("--format", "json", "--tasks", "cite,venue"),
    )

    assert own.exit_code == both.exit_code == 0, own.output + both.output
    first, second = json.loads(both.stdout)["encoders"]
    assert json.loads(own.stdout)["encoders"][0]["metrics"] == first["metrics"]
    assert first["metrics"] != second["metrics"]
    assert set(second["metrics"]) == {"venue f1", "cite map", "cite ndcg"}


def write_vectors(folder: Path, papers: Sequence[str]) -> Path:
    vectors = by_topic([Paper(id=paper, title="") for paper in papers])
    lines = [
        json.dumps({"paper_id": paper, "embedding": vector.tolist()})
        for paper, vector in zip(papers, vectors, strict=True)
    ]
    folder.mkdir(exist_ok=True)
    for name in ("cls", "user-citation", "recomm"):
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder


def test_vectors_that_somebody_made_are_judged_as_a_model_is(
    published: Path, tmp_path: Path
) -> None:
    made = write_vectors(tmp_path / "made", PAPERS)
    without_vectors = write_vectors(tmp_path / "lacking", PAPERS[1:])

    done = run(
        "--data",
        published,
        "--encoder",
        made,
        "--tasks",
        "mag,cite",
        "--format",
        "json",
    )
    other = run(
        "--data", published, "--encoder", without_vectors, "--tasks", "mag,cite"
    )

    assert done.exit_code == 0, done.output
    metrics = json.loads(done.stdout)["encoders"][0]["metrics"]
    assert metrics == {"mag f1": 1, "cite map": 1, "cite ndcg": 1}
    assert "mag papers without a vector: 1" in other.stderr


@pytest.mark.parametrize(
    "line", ["{", '{"paper_id": "new"}', '{"paper_id": "new", "embedding": [1, 2]}']
)
def test_bad_lines_of_vectors_are_named(line: str, tmp_path: Path) -> None:
    made = write_vectors(tmp_path / "made", PAPERS)
    with (made / "cls.jsonl").open("a") as file:
        file.write(f"\n{line}\n")
    papers = [Paper(id=paper, title="") for paper in ("p00", "new")]

    with pytest.raises(BadInputError, match="line 61"):
        vectors_in(made, "mag")(papers)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--data", "DATA"], "--data needs a model"),
        (["--data", "DATA", "--index", "x", "--encoder", "y"], "are two suites"),
        (["--index", "INDEX"], "has no vectors; choose a model with --encoder MODEL"),
        (["--index", "INDEX", "--tasks", "mag"], "no task 'mag'"),
        (
            ["--data", "DATA", "--encoder", "x", "--output", "no/x.json"],
            "there is no folder no",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(
    arguments: list[str], told: str, published: Path, sample_index: IndexFolder
) -> None:
    places = {"DATA": str(published), "INDEX": str(sample_index.path)}

    done = run(*(places.get(argument, argument) for argument in arguments))

    assert isinstance(done.exception, CiterecError)
    assert told in str(done.exception)
