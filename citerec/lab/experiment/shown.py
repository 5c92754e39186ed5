"""Converts the outcome of a row for the page of a run."""

from pathlib import Path
from typing import Any

from citerec.evaluate.by_year import by_year, years_of
from citerec.evaluate.calibration import calibrate
from citerec.evaluate.catalogue import CEILINGS
from citerec.evaluate.plots import recall_by_depth
from citerec.lab.experiment.compared import RowOutcome
from citerec.lab.experiment.kind import ExperimentKind
from citerec.lab.experiment.outcome import Outcome


def shown(outcome: Outcome) -> RowOutcome:
    """Return the outcome for the page; a row without rankings has only its values."""
    row = outcome.experiment
    per_query = dict(outcome.result.get("per_query", {}))
    return RowOutcome(
        title=row.title,
        file=str(row.path),
        table=row.table,
        corpus=Path(row.corpus).name,
        split=row.split if row.kind is ExperimentKind.RECOMMEND else "",
        claim=row.claim,
        verdict=str(outcome.verdict),
        why=outcome.why,
        metrics=outcome.metrics,
        ci95=outcome.result.get("ci95", {}),
        expect=row.expect,
        published=row.published,
        published_source=row.source,
        queries_sha256=per_query.pop("queries_sha256", ""),
        per_query=per_query,
        is_ceiling=row.kind is ExperimentKind.RECOMMEND and row.system in CEILINGS,
        **_drawn(outcome, per_query),
    )


def _drawn(outcome: Outcome, per_query: dict[str, Any]) -> dict[str, Any]:
    run, task = outcome.run, outcome.task
    if run is None or task is None:
        return {}
    years = years_of(task.queries)
    return {
        "curve": recall_by_depth(run, task.qrels).tolist(),
        "calibration": calibrate(run, task.qrels),
        "by_year": by_year(per_query["f1@20"], sorted(task.qrels), years),
    }
