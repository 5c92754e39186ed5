"""Runs one row of a results table from its file, and holds it against what it should give.

A row is a TOML file: its claim, what it costs, the corpus, split and system, the settings, and the expected numbers.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.build import BuildConfig, build_index
from citerec.config import Bm25Config, StopWords
from citerec.corpus.readers.source import find_source, sha256_of
from citerec.errors import BadInputError, CiterecError, ConfigError
from citerec.evaluate.metrics import METRICS, SystemResult, evaluate_run
from citerec.evaluate.protocol import KnownGraph, Setting, load_task, run_system
from citerec.folder import IndexFolder, open_index
from citerec.manifest import NAME
from citerec.provenance import provenance
from citerec.text import QueryForm

OK_WITHIN, NEAR_WITHIN = 0.002, 0.01  # of an expected value, either way
SHOWN = ("f1@20", "f1@20 (of means)", "mrr", "recall@100", "recall@1000", "ndcg@20", "map")


class Verdict(StrEnum):
    """How a row came out."""

    OK = "OK"
    NEAR = "near"
    FAIL = "FAIL"
    NOT_RUN = "not run here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One row of a table."""

    path: Path
    title: str  # of the row
    claim: str
    cost: str
    corpus: str  # relative to the folder that citerec is run in
    split: str = "test"
    system: str = "bm25"
    known_graph: str = "train"
    bm25: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expect: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        if unknown := [metric for metric in self.expect if metric not in METRICS]:
            raise BadInputError(self.path, f"no metric {unknown[0]!r}; there are: {METRICS}")

    @property
    def table(self) -> str:
        """The table that the row belongs to: the folder of its file."""
        return self.path.parent.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a row gave."""

    experiment: Experiment
    verdict: Verdict
    why: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])


def read_experiment(path: Path) -> Experiment:
    """Read a row's file.

    Raises:
        BadInputError: If it is missing, is no TOML, lacks a key or has one that is not known.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInputError(
            path, "no such file; name a row, such as experiments/bm25/vis.toml"
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInputError(path, f"not TOML: {error}") from error
    known = set(Experiment.__dataclass_fields__) - {"path"}
    if unknown := sorted(content.keys() - known):
        raise BadInputError(path, f"unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
    if missing := [key for key in ("title", "claim", "cost", "corpus") if key not in content]:
        raise BadInputError(path, f"{missing[0]!r} is missing")
    return Experiment(path=path, **content)


def run_experiment(experiment: Experiment, indexes: Path) -> Outcome:
    """Run a row; a corpus that is not here, or an index that is of another corpus, is said, not a failure.

    Args:
        experiment: The row.
        indexes: Where indexes lie; that of the row's corpus is built if there is none.
    """
    corpus = Path(experiment.corpus)
    if not corpus.exists():
        return Outcome(experiment, Verdict.NOT_RUN, f"{corpus} is not here")
    try:
        index = _index_of(corpus, indexes)
    except CiterecError as error:
        return Outcome(experiment, Verdict.NOT_RUN, str(error))
    setting = Setting(bm25=_bm25(experiment), known_graph=KnownGraph(experiment.known_graph))
    task = load_task(index, experiment.split)
    run, seconds = run_system(experiment.system, index, task, setting)
    measured = evaluate_run(run, task.qrels, rng=np.random.default_rng(0), seconds=seconds)
    verdict, why = judge(experiment.expect, measured.metrics)
    result = _result(experiment, index, measured, verdict, len(task.queries))
    return Outcome(experiment, verdict, why, measured.metrics, result)


def judge(expect: Mapping[str, float], metrics: Mapping[str, float]) -> tuple[Verdict, str]:
    """Hold metrics against what they should be: OK within 0.002, near within 0.01, else FAIL."""
    gaps = {name: abs(metrics[name] - value) for name, value in expect.items()}
    if not gaps or max(gaps.values()) <= OK_WITHIN:
        return Verdict.OK, ""
    worst = max(gaps, key=lambda name: gaps[name])
    why = f"{worst} is {metrics[worst]:.4f}, expected {expect[worst]:.4f}"
    return (Verdict.NEAR if gaps[worst] <= NEAR_WITHIN else Verdict.FAIL), why


def write_result(outcome: Outcome, folder: Path) -> Path:
    """Write what a row gave to `<folder>/<table>/<row>.json`; return the file."""
    experiment = outcome.experiment
    path = folder / experiment.table / f"{experiment.path.stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    path.write_bytes(orjson.dumps(outcome.result, option=options))
    return path


def tables(root: Path) -> str:
    """Return every table under `root` as Markdown: the rows' files and their committed results."""
    lines = [
        "# Tables",
        "",
        "Made by `citerec experiment table`; each row is a file: `citerec experiment run FILE`.",
        "F1@20 is the mean of each query's F1; in brackets its 95 % bootstrap interval.",
    ]
    for folder in sorted({path.parent for path in root.glob("*/*.toml")}):
        heading = ["row", "corpus", *SHOWN, "verdict"]
        lines += ["", f"## {folder.name}", "", _row(heading), _row(["---"] * len(heading))]
        lines += [_table_row(read_experiment(path), root) for path in sorted(folder.glob("*.toml"))]
    return "\n".join(lines) + "\n"


def _table_row(experiment: Experiment, root: Path) -> str:
    name = f"[{experiment.title}]({experiment.table}/{experiment.path.name})"
    corpus = f"{Path(experiment.corpus).name}, {experiment.split}"
    file = root / "results" / experiment.table / f"{experiment.path.stem}.json"
    if not file.is_file():
        return _row([name, corpus, *("–" for _ in SHOWN), str(Verdict.NOT_RUN)])
    result = orjson.loads(file.read_bytes())
    cells = [f"{result['metrics'][metric]:.4f}" for metric in SHOWN]
    low, high = result["ci95"]["f1@20"]
    cells[0] += f" [{low:.3f}, {high:.3f}]"
    return _row([name, corpus, *cells, result["verdict"]])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _index_of(corpus: Path, indexes: Path) -> IndexFolder:
    folder = indexes / corpus.name
    if not (folder / NAME).is_file():
        build_index(corpus, folder, BuildConfig())
    index = open_index(folder)
    if index.manifest.corpus["sha256"] != sha256_of(find_source(corpus)):
        raise ConfigError(f"{folder} is of another corpus than {corpus}; rebuild it with --force")
    return index


def _bm25(experiment: Experiment) -> Bm25Config:
    settings = dict(experiment.bm25)
    try:
        form = QueryForm(settings.pop("form", QueryForm.TITLE_ABSTRACT))
        stop_words = StopWords(settings.pop("stop_words", StopWords.AUTO))
        return Bm25Config(form=form, stop_words=stop_words, **settings)
    except (TypeError, ValueError) as error:
        raise BadInputError(experiment.path, f"bm25: {error}") from error


def _result(
    experiment: Experiment,
    index: IndexFolder,
    measured: SystemResult,
    verdict: Verdict,
    queries: int,
) -> dict[str, Any]:
    settings = {
        "system": experiment.system,
        "bm25": dict(experiment.bm25),
        "known_graph": experiment.known_graph,
        "corpus_sha256": index.manifest.corpus["sha256"],
    }
    return {
        "row": experiment.path.name,
        "corpus": Path(experiment.corpus).name,
        "split": experiment.split,
        "queries": queries,
        "metrics": measured.metrics,
        "ci95": measured.ci95,
        "seconds": measured.seconds,
        "expect": dict(experiment.expect),
        "verdict": str(verdict),
        "provenance": provenance(settings),
    }
