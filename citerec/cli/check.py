"""`citerec check`."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, write_lines, write_result
from citerec.cli.inspect import FactsFormat, InfoFormat
from citerec.cli.options import Index, Quiet, Verbose
from citerec.text import plural

if TYPE_CHECKING:
    from citerec.references.check import Finding, ReferenceCheck


def check(
    references: Annotated[
        Path, typer.Argument(help="A .bib, RIS or CSL-JSON file, or ids, one a line.")
    ],
    index: Index = None,
    format: FactsFormat = InfoFormat.TABLE,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if an entry has a problem.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare your references with the corpus: other years, DOIs and titles, published preprints, duplicates."""
    from citerec.folder import find_index, open_index
    from citerec.references.check import check_references

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    folder = open_index(find_index(index))
    console.detail(f"{folder.path}: {plural(folder.manifest.counts['papers'], 'paper')}")
    report = check_references(references, folder.papers)
    if format is InfoFormat.JSON:
        write_result(_json(report))
    else:
        write_lines(_summary(references, report), *_lines(report))
    if strict and report.findings:
        raise typer.Exit(1)


def _summary(path: Path, report: "ReferenceCheck") -> str:
    entries = plural(report.entries, "entry", "entries")
    return f"{path}: {entries}, {report.found} found in this corpus, {report.with_problem} with a problem"


def _lines(report: "ReferenceCheck") -> Iterator[str]:
    """Yield the problems, those of one entry under a line that names it."""
    for place, findings in groupby(report.findings, key=lambda one: one.place):
        yield place
        yield from (f"  {_described(one)}" for one in findings if one.entry >= 0)


def _described(finding: "Finding") -> str:
    from citerec.references.check import Problem

    known = f"{finding.known} ({finding.id})"
    match finding.problem:
        case Problem.PREPRINT:
            return f"preprint: published in {known}"
        case Problem.NO_DOI:
            return f"no DOI: the corpus has {known}"
        case Problem.DUPLICATE:
            return f"duplicate of {finding.known}"
        case _:
            name = "DOI" if finding.problem is Problem.DOI else finding.problem
            return f"{name}: the file has {finding.stated}, the corpus {known}"


def _json(report: "ReferenceCheck") -> str:
    import orjson

    findings: list[dict[str, Any]] = [
        {
            "problem": one.problem,
            "place": one.place,
            "key": one.key,
            "title": one.title,
            "file": one.stated,
            "corpus": one.known,
            "id": one.id,
        }
        for one in report.findings
    ]
    content = {
        "entries": report.entries,
        "found": report.found,
        "with_problem": report.with_problem,
        "findings": findings,
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
