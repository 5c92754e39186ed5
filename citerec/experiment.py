"""Runs one row of a results table from its file, and holds it against what it should give.

A row is a TOML file: its claim, what it costs, the corpus, split and system, the settings, and the expected numbers.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.build import BuildConfig, build_index
from citerec.config import Bm25Config, StopWords
from citerec.corpus.queries import open_queries, shipped_queries
from citerec.corpus.readers.source import find_source, reading, sha256_of
from citerec.corpus.splits import SPLITS, read_ids, shipped_splits
from citerec.errors import BadInputError, ConfigError, writing
from citerec.evaluate.metrics import METRICS, SystemResult, evaluate_run
from citerec.evaluate.protocol import (
    SYSTEMS,
    KnownGraph,
    Setting,
    Task,
    bm25_of,
    load_task,
    run_system,
)
from citerec.folder import IndexFolder, open_index
from citerec.manifest import NAME
from citerec.provenance import provenance
from citerec.retrieve.bm25 import resolve
from citerec.text import QueryForm

OK_WITHIN, NEAR_WITHIN = 0.002, 0.01  # of an expected value, either way
SHOWN = ("f1@20", "f1@20 (of means)", "mrr", "recall@100", "recall@1000", "ndcg@20", "map")

_Check = tuple[str, Callable[[Any], bool]]  # what a value must be, and whether it is


def _one_of(names: Iterable[str]) -> _Check:
    there = tuple(names)
    return f"one of {', '.join(there)}", lambda value: value in there


_TEXT: _Check = ("a text", lambda value: isinstance(value, str) and bool(value.strip()))
_TABLE: _Check = ("a table, such as { mrr = 0.5 }", lambda value: isinstance(value, dict))
_WHOLE: _Check = ("a whole number", lambda value: type(value) is int)
_NUMBER: _Check = ("a number", lambda value: type(value) in (int, float))
_SHARE: _Check = ("a number in [0, 1]", lambda v: type(v) in (int, float) and 0 <= v <= 1)
_KEYS: Mapping[str, _Check] = {
    **dict.fromkeys(("title", "claim", "cost", "corpus"), _TEXT),
    "split": _one_of(SPLITS),
    "system": _one_of(SYSTEMS),
    "known_graph": _one_of(KnownGraph),
    "bm25": _TABLE,
    "expect": _TABLE,
}
_BM25_KEYS: Mapping[str, _Check] = {
    "k1": _NUMBER,
    "b": _NUMBER,
    "form": _one_of(QueryForm),
    "key_terms": _WHOLE,
    "stop_words": _one_of(StopWords),
    "threads": _WHOLE,
}


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
    known_graph: KnownGraph = KnownGraph.TRAIN
    bm25: Bm25Config = Bm25Config()
    expect: Mapping[str, float] = field(default_factory=dict[str, float])  # by `METRICS`

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
        BadInputError: If it is missing, is no TOML, lacks a key, or has one that is not known or cannot be so.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInputError(
            path, "no such file; name a row, such as experiments/bm25/vis.toml"
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInputError(path, f"not TOML: {error}") from error
    _check(path, content, _KEYS)
    _check(path, content.get("bm25", {}), _BM25_KEYS, "bm25.")
    _check(path, content.get("expect", {}), dict.fromkeys(METRICS, _SHARE), "expect.")
    if missing := [key for key in ("title", "claim", "cost", "corpus") if key not in content]:
        raise BadInputError(path, f"{missing[0]!r} is missing")
    graph = KnownGraph(content.pop("known_graph", KnownGraph.TRAIN))
    bm25 = _bm25(path, content.pop("bm25", {}))
    return Experiment(path=path, known_graph=graph, bm25=bm25, **content)


def _check(
    path: Path, table: Mapping[str, Any], checks: Mapping[str, _Check], within: str = ""
) -> None:
    for key, value in table.items():
        if key not in checks:
            known = ", ".join(sorted(checks))
            raise BadInputError(path, f"unknown key {within + key!r}; known: {known}")
        what, fits = checks[key]
        if not fits(value):
            raise BadInputError(path, f"{within}{key} must be {what}, got {repr(value)[:60]}")


def _bm25(path: Path, settings: dict[str, Any]) -> Bm25Config:
    form = QueryForm(settings.pop("form", QueryForm.TITLE_ABSTRACT))
    stop_words = StopWords(settings.pop("stop_words", StopWords.AUTO))
    try:
        return Bm25Config(form=form, stop_words=stop_words, **settings)
    except ConfigError as error:  # a value out of its range
        raise BadInputError(path, f"bm25: {error}") from error


def run_experiment(experiment: Experiment, indexes: Path) -> Outcome:
    """Run a row; where its corpus is not here, that is said, and is no failure.

    Args:
        experiment: The row.
        indexes: Where indexes lie; that of the row's corpus is built if there is none.

    Raises:
        ConfigError: If the index is of another corpus or of other splits.
        CiterecError: Whatever else keeps a corpus that is here from being indexed or searched.
    """
    corpus = Path(experiment.corpus)
    with reading(corpus):
        if not corpus.exists():
            return Outcome(experiment, Verdict.NOT_RUN, f"{corpus} is not here")
    index = _index_of(corpus, indexes)
    setting = Setting(bm25=experiment.bm25, known_graph=experiment.known_graph)
    task = load_task(index, experiment.split)
    run, seconds = run_system(experiment.system, index, task, setting)
    measured = evaluate_run(run, task.qrels, rng=np.random.default_rng(0), seconds=seconds)
    verdict, why = judge(experiment.expect, measured.metrics)
    result = _result(experiment, index, measured, verdict, task)
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
    """Write what a row gave to `<folder>/<table>/<row>.json`; return the file.

    Raises:
        OutputError: If it cannot be written.
    """
    experiment = outcome.experiment
    path = folder / experiment.table / f"{experiment.path.stem}.json"
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(outcome.result, option=options))
    return path


def tables(root: Path) -> str:
    """Return every table under `root` as Markdown: the rows' files and their committed results.

    Raises:
        BadInputError: If a row or a result cannot be made out.
    """
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
    try:
        result = orjson.loads(file.read_bytes())
        cells = [f"{result['metrics'][metric]:.4f}" for metric in SHOWN]
        low, high = result["ci95"]["f1@20"]
        cells[0] += f" [{low:.3f}, {high:.3f}]"
        return _row([name, corpus, *cells, result["verdict"]])
    except (OSError, ValueError, TypeError, KeyError) as error:
        advice = f"citerec experiment run {experiment.path}"
        raise BadInputError(file, f"no result of a row; make it again: {advice}") from error


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _index_of(corpus: Path, indexes: Path) -> IndexFolder:
    folder = indexes / corpus.name
    if not (folder / NAME).is_file():
        build_index(corpus, folder, BuildConfig())
    index = open_index(folder)
    source = find_source(corpus)
    advice = f"rebuild it: citerec index {corpus} --index {folder} --force"
    if index.manifest.corpus["sha256"] != sha256_of(source):
        raise ConfigError(f"{folder} is of another corpus than {corpus}; {advice}")
    if not _has_splits_of(index, source.folder):
        raise ConfigError(f"{folder} asks other queries than {corpus} ships; {advice}")
    return index


def _has_splits_of(index: IndexFolder, corpus: Path) -> bool:
    """Whether the index asks what the corpus ships: the checksum of a corpus covers its papers alone."""
    queries = shipped_queries(corpus)
    if queries is not None:
        return queries == open_queries(index.splits)
    shipped = shipped_splits(corpus)
    if shipped is None:
        return index.manifest.settings["splits"] != "shipped"
    return shipped == {name: read_ids(index.splits / f"{name}.ids") for name in SPLITS}


def _result(
    experiment: Experiment,
    index: IndexFolder,
    measured: SystemResult,
    verdict: Verdict,
    task: Task,
) -> dict[str, Any]:
    bm25 = bm25_of(experiment.system, Setting(bm25=experiment.bm25))
    settings = {
        "system": experiment.system,
        "bm25": asdict(resolve(bm25, index)) if bm25 else None,  # as it was searched with
        "known_graph": experiment.known_graph,
        "corpus_sha256": index.manifest.corpus["sha256"],
    }
    return {
        "row": experiment.path.name,
        "corpus": Path(experiment.corpus).name,
        "split": experiment.split,
        "queries": len(task.queries),
        "left_out": dict(task.left_out),
        "metrics": measured.metrics,
        "ci95": measured.ci95,
        "seconds": measured.seconds,
        "expect": dict(experiment.expect),
        "verdict": str(verdict),
        "provenance": provenance(settings),
    }
