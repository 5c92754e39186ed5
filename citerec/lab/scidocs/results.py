"""The results of a suite: as JSON, and as a table for the terminal in the order of table 1 of the paper."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from citerec.encode.machine import provenance
from citerec.evaluation.tables import NONE, Cell, Table
from citerec.files.checksums import indented_json
from citerec.lab.scidocs.from_index import TASKS
from citerec.lab.scidocs.published import METRICS, TABLE_1
from citerec.lab.scidocs.suite import SuiteResult


@dataclass(frozen=True, slots=True)
class EncoderResult:
    """The results of an encoder."""

    encoder: str  # as the user named it
    fingerprint: str
    result: SuiteResult

    def notices(self) -> Iterator[str]:
        """Yield what was skipped, and what has no vector."""
        for task, why in self.result.left_out.items():
            yield f"{task} is skipped: {why}"
        for what, count in self.result.counts.items():
            if count and what.endswith("without a vector"):
                yield f"{self.encoder}: {what}: {count:,}"


def as_json(
    of: str,
    results: Sequence[EncoderResult],
    seed: int,
    settings: Mapping[str, Any],
    *,
    published: bool,
) -> str:
    """Return the results of some encoders, with the facts to reproduce them, as JSON text.

    Args:
        of: The published folder, or the name of an index.
        results: The results.
        seed: Of all samples.
        settings: For the provenance.
        published: Whether it is the published suite; then table 1 of the paper is included.
    """
    record = {
        "suite": "published" if published else "index",
        "of": of,
        "seed": seed,
        "encoders": [
            {
                "encoder": each.encoder,
                "fingerprint": each.fingerprint,
                **asdict(each.result),
            }
            for each in results
        ],
        **({"published": TABLE_1} if published else {}),
        "provenance": provenance({**settings}),
    }
    return indented_json(record).decode()


LONGEST_NAME = 24  # characters of an encoder's name; of a longer path the end is shown
_HEADINGS = {
    "mag": "MAG",
    "mesh": "MeSH",
    "map": "MAP",
    "ndcg": "nDCG",
    "coupling": "Coup-\nling",
    "authors": "Auth-\nors",
    "recommendation": "Rec.",
    "average": "Avg.",
}


def results_table(results: Sequence[EncoderResult], *, published: bool) -> Table:
    """Return one row per encoder, values times 100 as in the paper; – for missing values.

    Args:
        results: The results of each encoder.
        published: Whether they are on the published data; then the rows of the paper come first.
    """
    rows: Mapping[str, Mapping[str, float]] = TABLE_1 if published else {}
    own_rows = {
        _row_name(each.encoder, published): each.result.metrics for each in results
    }
    every = (
        METRICS if published else [metric for task in TASKS.values() for metric in task]
    )
    metrics = [
        metric for metric in every if any(metric in of for of in own_rows.values())
    ]
    metrics.append("average")
    cells = [
        [
            Cell(text=name),
            *(Cell(text=percent(values.get(metric))) for metric in metrics),
        ]
        for name, values in {**rows, **own_rows}.items()
    ]
    return Table(
        caption="SciDocs",
        columns=["encoder", *map(heading, metrics)],
        rows=cells,
        rule_after=len(rows),
    )


def heading(metric: str) -> str:
    """Return the heading of a metric's column: the parts of its name, one below the other."""
    words = metric.replace("-", "- ").split()
    return "\n".join(_HEADINGS.get(word, word[:1].upper() + word[1:]) for word in words)


def percent(share: float | None) -> str:
    """Format a share as in the paper: times 100, one decimal."""
    return NONE if share is None else f"{100 * share:.1f}"


def _row_name(encoder: str, published: bool) -> str:
    """Return the name of an encoder in the table: the end of a path, marked as ours next to published rows."""
    parts = [part for part in Path(encoder).parts if part not in ("models", "encoder")]
    name = encoder if len(encoder) <= LONGEST_NAME or not parts else parts[-1]
    return f"ours: {name}" if published else name
