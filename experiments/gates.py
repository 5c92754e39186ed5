"""Train each model of an index too briefly, and check that no default list becomes worse; write a page.

    python experiments/gates.py indexes/plastics.minilm indexes/scientometrics.minilm ...

Each recipe of `gates/trainings` is trained in a copy of the index, by the command that a user would type. Before and
after it, `citerec evaluate` measures the list that `recommend` shows by default.
"""

import argparse
import csv
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.encode.machine import provenance
from citerec.evaluation.significance import ALPHA, student_test
from citerec.index.folder import open_index

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "gates"
TRAININGS = sorted((HERE / "gates" / "trainings").glob("*.toml"))
QUERIES = 60  # of the test split, evenly over it
METRICS = {"f1": "f1@20", "mrr": "mrr"}
ABOUT = """# Trainings that do not help

Six trainings that are too short to help ([settings](gates/trainings)), each in a copy of an index: where the gate
puts the model, and F1@20 / MRR of the default list of {queries} test queries before and after it. A model in
`models/NAME-new` is not used by itself, and the last line of the command says so. *Worse*: F1@20 or MRR is lower,
p < {alpha:g} (Student's paired t-test).

Made by `python experiments/gates.py INDEX...`: {worse} of {trainings} trainings made a list worse, {used} of the models
are used.

| corpus | training | model goes to | before | after | |
|---|---|---|---|---|---|
"""

Measures = dict[str, npt.NDArray[np.float64]]


def main() -> None:
    """Train and measure on copies of the indexes that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "indexes",
        type=Path,
        nargs="*",
        help="index folders with vectors and a test split",
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.indexes:
        result = measured(folder)
        text = orjson.dumps(
            result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
        )
        (RESULTS / f"{result['corpus']}.json").write_bytes(text + b"\n")
        (HERE / "GATES.md").write_text(page(), encoding="utf-8")


def measured(folder: Path) -> dict[str, Any]:
    """Return where each training of an index puts its model, and what that does to the default list."""
    index = open_index(folder)
    trainings: list[dict[str, Any]] = []
    with TemporaryDirectory() as scratch:
        copy = Path(scratch) / index.manifest.name
        shutil.copytree(folder, copy)
        shutil.rmtree(copy / "models", ignore_errors=True)
        before = default_list(copy)
        for settings in TRAININGS:
            command = f"train-{settings.stem.partition('_')[0]}"
            said = run(command, "--index", copy, "--config", settings)
            [model] = (copy / "models").iterdir()
            after = default_list(copy)
            tests = {name: student_test(after[name], before[name]) for name in METRICS}
            trainings.append(
                {
                    "training": settings.stem,
                    "model": model.name,
                    "last_line": said.splitlines()[-1].replace(scratch, ""),
                    "after": {name: after[name].mean() for name in METRICS},
                    "p": tests,
                    "worse": any(
                        tests[name] < ALPHA and after[name].mean() < before[name].mean()
                        for name in METRICS
                    ),
                }
            )
            print(trainings[-1], flush=True)
            shutil.rmtree(copy / "models")
    return {
        "corpus": index.manifest.name.partition(".")[0],
        "queries": len(before["f1"]),
        "before": {name: before[name].mean() for name in METRICS},
        "trainings": trainings,
        "provenance": provenance({"corpus_sha256": index.manifest.corpus["sha256"]}),
    }


def default_list(index: Path) -> Measures:
    """Return the measures of the default list of some test queries, by query."""
    with TemporaryDirectory() as scratch:
        report = Path(scratch) / "report"
        limits = ("--queries", str(QUERIES), "--output", report)
        run("evaluate", "--index", index, "--systems", "ranker", *limits)
        with (report / "per_query.csv").open(encoding="utf-8") as lines:
            rows = [*csv.DictReader(lines)]
    keys = {name: f"ranker {metric}" for name, metric in METRICS.items()}
    return {
        name: np.array([float(row[key]) for row in rows]) for name, key in keys.items()
    }


def run(*arguments: str | Path) -> str:
    """Run a command of citerec; return what it prints."""
    command = [sys.executable, "-m", "citerec", *map(str, arguments)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout)
    return done.stdout


def page() -> str:
    """Return the page of all results."""
    results = [
        orjson.loads(file.read_bytes()) for file in sorted(RESULTS.glob("*.json"))
    ]
    rows: list[str] = []
    for result in results:
        for training in result["trainings"]:
            before = shown(result["before"])
            after = shown(training["after"])
            verdict = "worse" if training["worse"] else "not worse"
            cells = (
                result["corpus"],
                training["training"],
                f"`models/{training['model']}`",
            )
            last = "the same" if before == after else verdict
            rows.append(f"| {' | '.join((*cells, before, after, last))} |\n")
    trainings = [training for result in results for training in result["trainings"]]
    about = ABOUT.format(
        queries=QUERIES,
        alpha=ALPHA,
        worse=sum(training["worse"] for training in trainings),
        trainings=len(trainings),
        used=sum(not training["model"].endswith("-new") for training in trainings),
    )
    return about + "".join(rows)


def shown(means: dict[str, float]) -> str:
    """Return both measures."""
    return " / ".join(f"{means[name]:.4f}" for name in METRICS)


if __name__ == "__main__":
    main()
