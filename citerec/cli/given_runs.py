"""`citerec evaluate --run`: external runs in place of the systems of the pipeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.overlap import Overlap
    from citerec.run import Qrels

REPORTS = Path("reports")


def report_folder(output: Path | None, name: str, inputs: Sequence[Path] = ()) -> Path:
    """Return the report folder; refuse one whose replacement would destroy anything but a report."""
    from citerec.atomic import check_writable, destination
    from citerec.evaluate.report_folder import refuse_others_files, refuse_own_inputs

    folder = output or REPORTS / name
    refuse_own_inputs(folder, inputs)
    refuse_others_files(destination(folder))
    check_writable(folder)
    return folder


def given_runs(
    files: list[Path],
    qrels: Path | None,
    index: Path | None,
    split: str,
    known_graph: str | None,
    seed: int,
    output: Path | None,
) -> tuple["Evaluation", Path]:
    """Read external runs and their judgements; return the evaluation and the report folder.

    Raises:
        ConfigError: If two sources of judgements are given, or the report folder holds anything but a report.
        BadInputError: If a file is no run or no qrels.
    """
    from citerec.evaluate.assessment import Evaluation
    from citerec.evaluate.report_folder import refuse_meeting_qrels, refuse_meeting_run
    from citerec.provenance import provenance
    from citerec.run import read_run, trec_id, trec_qrels

    if qrels is not None and index is not None:
        raise ConfigError("--qrels and --index are two sources of judgements; use one")
    inputs = [*files, qrels] if qrels is not None else files
    source = _judgements(qrels, index, split, output, inputs)
    refuse_meeting_qrels(source.qrels)
    runs = [read_run(file, name) for file, name in zip(files, _run_names(files), strict=True)]
    for run in runs:
        refuse_meeting_run(run)
    sources = {"runs": [str(file) for file in files], "qrels": str(qrels) if qrels else split}
    evaluation = Evaluation(
        corpus=source.corpus,
        split=source.split,
        known_graph=known_graph,
        qrels=trec_qrels(source.qrels),
        runs=runs,
        query_words={trec_id(qid): count for qid, count in source.words.items()},
        query_years={trec_id(qid): year for qid, year in source.years.items()},
        overlap={
            trec_id(qid): {trec_id(docid): share for docid, share in shares.items()}
            for qid, shares in source.overlap.items()
        },
        provenance=provenance(sources),
        left_out=source.left_out,
        seed=seed,
    )
    return evaluation, source.target


@dataclass(frozen=True, slots=True)
class _JudgementSource:
    """The judgements of external runs, and the report folder."""

    corpus: str
    split: str
    target: Path
    qrels: "Qrels"
    words: Mapping[str, int] = field(default_factory=dict[str, int])
    years: Mapping[str, int] = field(default_factory=dict[str, int])
    overlap: "Overlap" = field(default_factory=dict[str, Mapping[str, float]])
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])


def _judgements(
    qrels: Path | None, index: Path | None, split: str, output: Path | None, inputs: Sequence[Path]
) -> _JudgementSource:
    if qrels is not None:
        from citerec.run import read_qrels

        target = report_folder(output, f"{qrels.stem}-qrels-runs", inputs)
        return _JudgementSource(qrels.stem, "qrels", target, read_qrels(qrels))
    from citerec.evaluate.bins import years_of
    from citerec.evaluate.overlap import overlaps
    from citerec.evaluate.protocol import load_task
    from citerec.folder import find_index, open_index

    folder = open_index(find_index(index))
    name = folder.manifest.name
    task = load_task(folder, split)
    target = report_folder(output, f"{name}-{split}-runs", inputs)
    years, overlap = years_of(task.queries), overlaps(folder, task)
    return _JudgementSource(
        name, split, target, task.qrels, task.words, years, overlap, task.left_out
    )


def _run_names(files: list[Path]) -> list[str]:
    """Return the name of each run: that of its file, with its folder if two files share a name."""
    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in files]
    return [
        stem if stems.count(stem) == 1 else f"{file.resolve().parent.name}/{stem}"
        for file, stem in zip(files, stems, strict=True)
    ]
