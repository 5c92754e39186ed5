"""The SciDocs suite on its published data: all seven tasks of table 1 of the SPECTER paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from citerec.errors import ConfigError, ModelError
from citerec.files.arrays import Vectors
from citerec.lab.scidocs.classify import LabelledVectors, classify
from citerec.lab.scidocs.layout import (
    LABELLED,
    PROPENSITY,
    RANKED,
    RECOMMENDATION,
    SPLITS,
    LabelledPapers,
    PaperMetadata,
    check_folder,
    metadata_file,
    read_clicks,
    read_judgements,
    read_labels,
    read_metadata,
    read_propensity,
)
from citerec.lab.scidocs.published import GROUPS, METRICS, TASKS
from citerec.lab.scidocs.ranking import (
    DECIMALS,
    RankingScore,
    Rows,
    has_vector,
    ranked_query,
    score_ranking,
)
from citerec.lab.scidocs.recommendation import Clicks, recommend
from citerec.lab.scidocs.vectors import Encode
from citerec.types import Progress, no_progress


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The results of an encoder."""

    metrics: Mapping[str, float]  # in [0, 1]; of the tasks, and complete means
    # of queries, papers, ...
    counts: Mapping[str, int]
    # reason by skipped task
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


class EncodedPapers:
    """The papers of one metadata file that tasks use, with their vectors."""

    def __init__(self, records: Mapping[str, PaperMetadata], encode: Encode) -> None:
        """Encode the papers.

        Raises:
            ModelError: If the vectors are not one row for each paper, or no paper has one.
        """
        self.records = records
        self._row = {paper_id: row for row, paper_id in enumerate(records)}
        vectors = encode([record.paper for record in records.values()])
        if vectors.ndim != 2 or len(vectors) != len(records):
            raise ModelError(
                f"vectors of shape {vectors.shape} for {len(records)} papers"
            )
        if not has_vector(vectors).any():
            raise ModelError(
                f"none of {len(records)} papers has a vector; expected one for each"
            )
        self._matrix = vectors

    def row(self, paper_id: str) -> int:
        """Return the row of a paper, -1 if it is unknown."""
        return self._row.get(paper_id, -1)

    def at(self, rows: Rows) -> Vectors:
        """Return the vectors at some rows; NaN for row -1."""
        return np.where((rows >= 0)[:, None], self._matrix[rows], np.float32(np.nan))

    def by_id(self) -> dict[str, Vectors]:
        """Return the vector of each paper that has one."""
        there = has_vector(self._matrix)
        return {
            paper: self._matrix[row] for paper, row in self._row.items() if there[row]
        }


def run_published(
    data: Path,
    encode_of: Callable[[str], Encode],
    *,
    tasks: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SuiteResult:
    """Evaluate an encoder on the published tasks; each paper is encoded once.

    Args:
        data: The published folder; see `citerec.lab.scidocs.layout`.
        encode_of: Returns what encodes the papers of a task; that is called once for each of the three sets of papers.
        tasks: Some of `TASKS`; all by default. Means are returned if all their tasks are run.
        seed: Of the SVM and of the ranker.
        progress: Receives the number of finished tasks.

    Raises:
        ConfigError: If there is no such task.
        BadInputError: If a file is missing or invalid.
        ModelError: If the encoder returns no vectors.
    """
    named = check_tasks(tasks)
    check_folder(data, named)
    metrics: dict[str, float] = {}
    counts: dict[str, int] = {}
    done = 0
    encoding = {metadata_file(task): encode_of(task) for task in named}
    for file, encoder in encoding.items():
        tasks_of_file = [task for task in named if metadata_file(task) == file]
        run = (
            _labelled
            if tasks_of_file[0] in LABELLED
            else _ranked
            if tasks_of_file[0] in RANKED
            else _clicked
        )
        for task, scores, counted in run(data, tasks_of_file, encoder, seed, progress):
            metrics |= scores
            counts |= {f"{task} {what}": count for what, count in counted.items()}
            done += 1
            progress("tasks", done, len(named))
    return SuiteResult(metrics | means(metrics), counts)


def check_tasks(tasks: Sequence[str] | None) -> list[str]:
    """Return the chosen tasks in the order of the paper.

    Raises:
        ConfigError: If there is no such task.
    """
    if unknown := [task for task in tasks or () if task not in TASKS]:
        raise ConfigError(f"no task {unknown[0]!r}; choose from {', '.join(TASKS)}")
    return [task for task in TASKS if not tasks or task in tasks]


def means(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the means of tables 2 and 3, and the average of all metrics, if their metrics are complete."""
    groups = {
        group: [metric for task in tasks for metric in TASKS[task]]
        for group, tasks in GROUPS.items()
    }
    return {
        name: float(np.mean([metrics[metric] for metric in names]))
        for name, names in {**groups, "average": METRICS}.items()
        if all(metric in metrics for metric in names)
    }


_Scored = list[tuple[str, dict[str, float], dict[str, int]]]


def _labelled(
    data: Path, tasks: Sequence[str], encode: Encode, seed: int, progress: Progress
) -> _Scored:
    sets = {task: read_labels(data, task) for task in tasks}
    ids = [i for splits in sets.values() for part in splits.values() for i in part.ids]
    known = EncodedPapers(read_metadata(data / metadata_file(tasks[0]), ids), encode)
    scored: _Scored = []
    for task, splits in sets.items():
        train, val, test = parts = [_examples(splits[split], known) for split in SPLITS]
        without_vector = sum(int((~has_vector(part.vectors)).sum()) for part in parts)
        f1 = classify(train, val, test, seed=seed).f1
        sizes = {
            split: len(part.labels) for split, part in zip(SPLITS, parts, strict=True)
        }
        scored.append(
            (
                task,
                {f"{task} f1": f1},
                {**sizes, "papers without a vector": without_vector},
            )
        )
    return scored


def _examples(part: LabelledPapers, known: EncodedPapers) -> LabelledVectors:
    rows = np.array([known.row(paper) for paper in part.ids], np.int32)
    return LabelledVectors(known.at(rows), part.labels)


def _ranked(
    data: Path, tasks: Sequence[str], encode: Encode, seed: int, progress: Progress
) -> _Scored:
    by_task = {
        task: read_judgements(data / RANKED[task] / "test.qrel") for task in tasks
    }
    ids = [
        i for queries in by_task.values() for q in queries for i in (q.query, *q.ids)
    ]
    known = EncodedPapers(read_metadata(data / metadata_file(tasks[0]), ids), encode)
    scored: _Scored = []
    for task, queries in by_task.items():
        ranked_queries = [
            ranked_query(
                known.row(query.query),
                query.ids,
                [*map(known.row, query.ids)],
                query.gains,
            )
            for query in queries
        ]
        score = score_ranking(ranked_queries, known.at, decimals=DECIMALS)
        scored.append((task, ranking_metrics(task, score), ranking_counts(score)))
    return scored


def ranking_metrics(task: str, score: RankingScore) -> dict[str, float]:
    """Return the metrics of a ranking task by their names."""
    return {f"{task} map": score.map, f"{task} ndcg": score.ndcg}


def ranking_counts(score: RankingScore) -> dict[str, int]:
    """Return the counts of a ranking task."""
    return {
        "queries": score.queries,
        "queries without a vector": score.skipped,
        "papers without a vector": score.without_vector,
    }


def _clicked(
    data: Path, tasks: Sequence[str], encode: Encode, seed: int, progress: Progress
) -> _Scored:
    propensity = read_propensity(data / PROPENSITY)
    train, val, test = (
        read_clicks(
            data / "recomm" / f"{split}.csv",
            len(propensity) if split == "test" else None,
        )
        for split in SPLITS
    )
    ids = {
        i: None
        for part in (train, val, test)
        for click in part
        for i in (click.query, *click.shown)
    }
    known = EncodedPapers(read_metadata(data / metadata_file(tasks[0]), ids), encode)
    vectors = known.by_id()
    clicks = Clicks(train, val, test, propensity)
    score = recommend(clicks, known.records, vectors, seed=seed, progress=progress)
    metrics = {"recommendation ndcg": score.ndcg, "recommendation p@1": score.p_at_1}
    counts = {
        "clicks": score.clicks,
        "papers without a vector": len(ids) - len(vectors),
    }
    return [(RECOMMENDATION, metrics, counts)]
