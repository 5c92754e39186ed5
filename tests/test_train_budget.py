"""`citerec train`: steps of a budget, what is used and what is not, resuming, measures before and after."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.encoder_training import records
from support.tiny import tiny_bert

from citerec.build import BuildConfig, build_index
from citerec.cli import run
from citerec.config import RecommendConfig
from citerec.errors import ConfigError
from citerec.folder import IndexFolder, open_index, verify_index
from citerec.recommend import BatchRecommender
from citerec.train.budget import steps
from citerec.train.budget.dev import DevSample, recorded_measures
from citerec.train.budget.name import Budget
from citerec.train.budget.plan import TrainPlan
from citerec.train.budget.steps import BudgetReport, IndexTraining, encoder_place, training_folder
from citerec.types import Query

Build = Callable[..., IndexFolder]
RANKER = "[ranker]\ntrees = 3\nleast_rows = 5\nqueries = 15\ndev_queries = 8\nrerank_depth = 5\n"


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of the budget `hour` with a tiny base model and few steps."""
    folder = tmp_path_factory.mktemp("budget")
    base = tiny_bert(folder / "base", seed=5)
    file = folder / "tiny.toml"
    file.write_text(
        f"""[encoder]
model = "{base}"
epochs = 1
batch = 16
queries = 40
max_tokens = 24
train_tokens = 24
learning_rate = 1e-3
dev_queries = 8
dev_pool = 40

[reranker]
model = "{base}"
query_tokens = 24
candidate_tokens = 24
queries = 20
depth = 15
steps = 3
warm_steps = 1
batch = 4
micro = 0
eval_steps = 3
dev_queries = 5
dev_depth = 10

{RANKER}"""
    )
    return file


@pytest.fixture
def index(dense_sample: IndexFolder, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dense_sample.path, tmp_path / "index"))


def trained(index: Path, settings: Path, lines: list[str], **given: Any) -> BudgetReport:
    plan = TrainPlan.read(Budget.HOUR, settings, {"threads": 1})
    return IndexTraining(path=index, plan=plan, log=lines.append, **given).run()


def starts(lines: list[str]) -> list[str]:
    return [line.partition("] ")[2] for line in lines if line.startswith("[")]


def steps_of(err: str) -> list[str]:
    return starts([line.removeprefix("citerec: ") for line in err.splitlines()])


# --- the whole of it


def test_an_hour_trains_all_models_also_after_an_interruption_and_keeps_them(
    index: Path,
    settings: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    command = ["train", "--index", str(index), "--budget", "hour", "--config", str(settings)]
    command += ["--threads", "1", "--force"]

    with monkeypatch.context() as patched:
        patched.setattr(steps, "train_reranker", stop)
        assert run(command) == 1
    broken = capsys.readouterr().err
    saved = training_folder(index).load("before")
    with pytest.raises(ConfigError, match="started with other settings"):
        IndexTraining(path=index, plan=TrainPlan.read(Budget.MINUTES), resume=True).run()
    assert run([*command, "--resume"]) == 0
    resumed = capsys.readouterr()
    verify_index(index)
    used = open_index(index)
    assert run(command) == 0
    again = capsys.readouterr()

    assert steps_of(broken) == [
        "training the encoder",
        "encoding the papers",
        "training the reranker",
    ]
    assert "finished steps are kept; resume: citerec train" in broken and "--resume\n" in broken
    assert steps_of(resumed.err) == [
        "the encoder was trained with these settings already",
        "the papers are encoded by this encoder already",
        "training the reranker",
        "training the ranker",
    ]
    assert "training the" not in " ".join(steps_of(again.err))
    assert {path.name for path in used.models.iterdir()} == {"encoder", "reranker", "ranker"}
    assert used.manifest.settings["encoder"]["source"] == "./models/encoder"
    rows = [line.split() for line in resumed.out.splitlines()]
    assert rows[0][1:3] == ["dev", "queries"]
    assert [row[0] for row in rows[1:]] == ["BM25", "BM25", "ranker", "ranker"]
    assert rows[1][1] == rows[1][2]  # training does not change BM25
    assert saved is not None
    assert rows[2][3] == f"{saved[1]['BM25 and vectors']['f1@20']:.3f}"  # with the first vectors
    after = [line.split() for line in again.out.splitlines()]
    assert (after[2][3], after[4][3]) == (rows[2][4], rows[4][3])  # what is used now


@pytest.mark.slow  # the ranker alone is tested below
def test_models_that_are_not_better_are_not_used_until_they_are_forced(
    index: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_index(index)
    monkeypatch.setattr(steps, "measure", lambda *_: {"f1": 0.5, "mrr": 0.5})  # for any encoder
    monkeypatch.setattr(steps, "best_reranked", lambda *_: 0.5)
    monkeypatch.setattr(steps, "final", lambda _: {"f1@20": 1.0})
    lines: list[str] = []

    report = trained(index, settings, lines)
    again: list[str] = []
    trained(index, settings, again, force=True)

    assert report.refused == ("encoder", "reranker", "ranker")
    assert sum("it is not used" in line for line in lines) == 3
    assert starts(lines)[1] == "the vectors stay as they are"
    assert len(starts(again)) == 4 and "training the encoder" not in starts(again)
    after = open_index(index)
    assert after.manifest.settings["encoder"] != before.manifest.settings["encoder"]
    assert {"encoder", "reranker", "ranker"} <= {path.name for path in after.models.iterdir()}


def test_a_ranker_that_is_not_better_is_not_used_until_it_is_forced(
    sample_index: IndexFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Path(shutil.copytree(sample_index.path, tmp_path / "index"))
    (tmp_path / "few.toml").write_text(RANKER)
    plan = TrainPlan.read(Budget.MINUTES, tmp_path / "few.toml", {"threads": 1})
    refused: list[str] = []
    used: list[str] = []

    with monkeypatch.context() as patched:
        patched.setattr(steps, "final", lambda _: {"f1@20": 1.0})  # nothing is better than this
        report = IndexTraining(path=index, plan=plan, log=refused.append).run()
        before = BatchRecommender(open_index(index), RecommendConfig(k=3))
        IndexTraining(path=index, plan=plan, force=True, log=used.append).run()
    after = BatchRecommender(open_index(index), RecommendConfig(k=3))

    assert (report.refused, str(before.ranker)) == (("ranker",), "the default ranker")
    assert report.before == report.after and list(report.after) == ["BM25", "ranker"]
    assert starts(refused) == ["training the ranker"]
    assert "1.0000 without: it is not used; it stays in" in refused[-1]
    assert starts(used) == ["the ranker was trained with these settings already"]
    assert str(after.ranker) == "ranker"
    assert after.recommend([Query(id="draft", title="Dense retrieval")])[0]


# --- parts


def test_the_encoder_in_use_is_never_overwritten(sample_index: IndexFolder) -> None:
    def using(source: str) -> IndexFolder:
        recorded = {"source": source}
        manifest = replace(sample_index.manifest, settings={"encoder": recorded})
        return replace(sample_index, manifest=manifest)

    assert encoder_place(using("minilm"), lambda _: False).name == "encoder"
    assert encoder_place(using("./models/encoder"), lambda _: False).name == "encoder-new"
    assert encoder_place(using("./models/encoder-new"), lambda _: False).name == "encoder"
    by_path = str(sample_index.models.resolve() / "encoder")
    assert encoder_place(using(by_path), lambda _: False).name == "encoder-new"
    assert encoder_place(using("minilm"), lambda p: p.name == "encoder-new").name == "encoder-new"


def test_measures_of_a_ranker_that_learned_from_dev_queries_are_cross_validated(
    tmp_path: Path,
) -> None:
    record: dict[str, Any] = {
        "indexes": [{"dev_queries_teach": True, "reranker": "sha"}],
        "after": {"full": {"f1@20": 0.4, "mrr": 0.6}},
        "ablations": [{"label": "all but reranker", "f1": 0.3, "mrr": 0.5}],
    }
    (tmp_path / "training.json").write_text(json.dumps(record))

    assert recorded_measures(tmp_path) == {
        "ranker": {"f1@20": 0.3, "mrr": 0.5},
        "ranker and reranker": {"f1@20": 0.4, "mrr": 0.6},
    }
    record["indexes"][0]["dev_queries_teach"] = False
    (tmp_path / "training.json").write_text(json.dumps(record))
    assert recorded_measures(tmp_path) == {}


def test_an_index_without_dev_queries_uses_every_new_model(build: Build, tmp_path: Path) -> None:
    papers = [paper for paper in records() if paper["id"] not in ("x", "y")]
    made = build([*papers, *({"id": i, "title": i, "year": 2010} for i in "xyz")])
    (tmp_path / "few.toml").write_text("[ranker]\ntrees = 2\nleast_rows = 1\n")
    plan = TrainPlan.read(Budget.MINUTES, tmp_path / "few.toml", {"threads": 1})
    lines: list[str] = []

    report = IndexTraining(path=made.path, plan=plan, log=lines.append).run()

    assert report == BudgetReport(queries=0)
    assert lines[0].startswith("there are no dev queries")
    assert (made.models / "ranker" / "ranker.json").is_file()
    assert DevSample.of(made, plan.ranker) is None


# --- plans and bad input


def test_a_dry_run_prints_the_steps_and_trains_nothing(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for budget, count in (("minutes", 1), ("hour", 4), ("night", 4)):
        assert run(["train", "--index", str(index), "--budget", budget, "--dry-run"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[0].endswith(f"train queries; budget {budget}")
        assert [line[:2] for line in out[1:-1]] == [f"{n}." for n in range(1, count + 1)]
        assert out[-1].startswith("device: the ")
    assert "train-encoder: recipe specter, base scibert, 2 epochs of all train queries" in out[1]
    assert not (index / "models").exists()


def test_a_dry_run_names_the_device_and_a_gpu_that_is_missing(
    index: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    (tmp_path / "cpu.toml").write_text('[encoder]\ndevice = "cpu"\n')

    def device(budget: str, *options: object) -> str:
        arguments = ["train", "--index", index, "--budget", budget, "--dry-run", *options]
        assert run([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device("hour") == "device: the CPU; torch finds no GPU"
    assert device("night") == (
        "device: the CPU; torch finds no GPU, and the budget night needs one: it would not start; "
        "choose --budget hour"
    )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "H100")
    assert device("night") == "device: the GPU H100; trained on the CPU: ranker"
    on_cpu = device("hour", "--config", tmp_path / "cpu.toml")
    assert on_cpu == "device: the GPU H100; trained on the CPU: encoder, ranker"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "week"], "'week' is not one of 'minutes', 'hour', 'night'"),
        (["--index", "nowhere"], "nowhere"),
        (["--config", "none.toml"], "none.toml"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], index: Path
) -> None:
    given = arguments if "--index" in arguments else ["--index", str(index), *arguments]

    assert run(["train", *given]) == 2

    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[encoder]\nepochs = 1", r"budget minutes has the tables \[ranker\], found 'encoder'"),
        ("ranker = 1", "found 'ranker'"),
        ("[ranker]\ntress = 1", "unknown setting 'tress'"),
    ],
)
def test_settings_must_fit_the_steps_of_the_budget(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.toml").write_text(text)

    with pytest.raises(ConfigError, match=message):
        TrainPlan.read(Budget.MINUTES, tmp_path / "t.toml")


def test_settings_of_a_table_replace_those_of_the_budget_that_contradict_them(
    tmp_path: Path,
) -> None:
    file = tmp_path / "t.toml"
    file.write_text('[encoder]\nrecipe = "linear"\n[reranker]\nepochs = 3\n')

    plan = TrainPlan.read(Budget.HOUR, file)

    assert plan.encoder and plan.encoder.linear and plan.encoder.queries == 3_000
    assert plan.reranker and (plan.reranker.epochs, plan.reranker.steps) == (3, 0)
    assert "3 epochs on at most 3,000 train queries" in plan.lines()[2]


def test_without_train_queries_or_a_gpu_nothing_is_started(
    write_jsonl: Callable[..., Path], tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    corpus = write_jsonl([{"id": "a", "title": "A", "year": 2000}])
    build_index(corpus, tmp_path / "alone", BuildConfig())

    with pytest.raises(ConfigError, match="has no train queries"):
        IndexTraining(path=tmp_path / "alone", plan=TrainPlan.read(Budget.MINUTES)).run()
    with pytest.raises(ConfigError, match="the budget night needs a GPU"):
        IndexTraining(path=index, plan=TrainPlan.read(Budget.NIGHT)).run()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="runs in one process"):
        IndexTraining(path=index, plan=TrainPlan.read(Budget.HOUR)).run()
    assert not (index / "models").exists()
