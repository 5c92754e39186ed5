"""`citerec corpus info`, `convert`, `merge` and `sample`."""

from collections.abc import Iterable
from enum import StrEnum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput, write_lines
from citerec.cli.options import Quiet, Verbose

if TYPE_CHECKING:
    from citerec.corpus.merge import MergeReport
    from citerec.corpus.tools import Corpus, Summary

corpus = typer.Typer(
    no_args_is_help=True, help="Count, convert, merge and sample corpora of any format."
)
CorpusPath = Annotated[Path, typer.Argument(help="A corpus file or library, or a folder of them.")]
Format = Annotated[str, typer.Option(help="auto, or the name of a format, as for citerec index.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="The file: .jsonl, .jsonl.gz or .jsonl.zst.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip invalid records.")]
ALWAYS = {"papers", "with_abstract", "citations_inside", "citations_outside"}
NAMES = {
    "papers": "papers",
    "with_abstract": "with an abstract",
    "with_doi": "with a DOI",
    "without_year": "without a year",
    "empty_titles": "with an empty title",
    "with_citations": "with citations",
    "citations_inside": "citations to papers of the corpus",
    "citations_outside": "citations to papers outside the corpus",
    "same_doi": "papers with the DOI of another one",
    "same_title": "papers with title and year of another one",
    "duplicates": "duplicates left out",
    "conflicting_duplicates": "records left out: id taken by another paper",
    "broken_lines": "records left out: broken lines",
    "wrong_types": "records left out: wrong types",
    "missing_fields": "records left out: missing fields",
}
JOINED = {
    "records": "records",
    "by_doi": "joined by DOI",
    "by_id": "joined by id and title",
    "by_title": "joined by title and year",
    "renamed": "ids renamed: taken by another paper",
}


@corpus.command()
def info(
    path: CorpusPath, format: Format = "auto", quiet: Quiet = False, verbose: Verbose = False
) -> None:
    """Count papers, abstracts, citations inside and outside, years and duplicates of a corpus."""
    from citerec.corpus.tools import open_corpus, summarise

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    opened = open_corpus(path, format, skip_bad=True)
    with console.progress(in_bytes="reading") as progress:
        summary = summarise(opened, progress, console.log)
    write_lines(f"{path}  ({summary.format}, {_files(summary)})", *_counts(summary))
    for fault in summary.examples:
        console.log(f"left out: {fault}")
    _report_ignored(opened, console)


class Target(StrEnum):
    """What `convert` writes."""

    CANONICAL, BEIR = auto(), auto()


@corpus.command()
def convert(
    path: CorpusPath,
    output: Output,
    format: Format = "auto",
    to: Annotated[
        Target, typer.Option(help="beir: a folder with corpus.jsonl, queries.jsonl and qrels/.")
    ] = Target.CANONICAL,
    force: Force = False,
    skip_bad: SkipBad = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Convert a corpus of any format to canonical JSON lines, or to BEIR's layout."""
    from citerec.corpus import tools

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    if to is Target.CANONICAL:
        tools.check_target(output, [path], force=force)
    opened = tools.open_corpus(path, format, skip_bad=skip_bad)
    write = tools.to_beir if to is Target.BEIR else tools.convert
    with console.progress(in_bytes="reading") as progress:
        collector = write(opened, output, progress, console.log)
    if not quiet:
        write_lines(f"{output}  (from {opened.format})", *_lines(collector.counts))
    for fault in collector.examples:
        console.log(f"left out: {fault}")
    _report_ignored(opened, console)


@corpus.command()
def merge(
    paths: Annotated[list[Path], typer.Argument(help="Corpora, in order of precedence.")],
    output: Output,
    force: Force = False,
    skip_bad: SkipBad = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Join corpora by DOI, then by title and year; each field is the most complete one."""
    from citerec.corpus.merge import merge as merge_corpora
    from citerec.corpus.tools import check_target, open_corpus

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    check_target(output, paths, force=force)
    opened = [open_corpus(path, skip_bad=skip_bad) for path in paths]
    with console.progress() as progress:
        report = merge_corpora(opened, output, progress, console.log)
    if not quiet:
        write_lines(f"{output}  ({len(paths)} corpora)", *_merged(report))
    for collector in report.collectors:
        for fault in collector.examples:
            console.log(f"left out: {fault}")


@corpus.command()
def sample(
    path: CorpusPath,
    output: Output,
    n: Annotated[int, typer.Option("-n", min=1, help="How many papers.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same papers.")] = 0,
    format: Format = "auto",
    force: Force = False,
    skip_bad: SkipBad = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Draw papers that are connected by citations; an index of them is split by year."""
    from citerec.corpus.tools import check_target, open_corpus
    from citerec.corpus.tools import sample as draw

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    check_target(output, [path], force=force)
    opened = open_corpus(path, format, skip_bad=skip_bad)
    with console.progress() as progress:
        report = draw(opened, output, n, seed, progress, console.log)
    if report.papers < n:
        console.log(f"the corpus has only {report.papers:,} papers")
    if not quiet:
        write_lines(
            f"{output}",
            f"{report.papers:>12,}  papers",
            f"{report.citations:>12,}  citations among them",
            f"{report.parts:>12,}  papers from which the search began",
        )


def _files(summary: "Summary") -> str:
    return "1 file" if summary.files == 1 else f"{summary.files:,} files"


def _counts(summary: "Summary") -> Iterable[str]:
    yield from _lines(summary.counts, ALWAYS)
    if summary.years:
        first, last = summary.years
        yield f"{f'{first}-{last}':>12}  years"


def _lines(counts: dict[str, int], always: set[str] | None = None) -> Iterable[str]:
    shown = always or {"papers"}
    for key, name in NAMES.items():
        if counts.get(key) or key in shown:
            yield f"{counts.get(key, 0):>12,}  {name}"


def _merged(report: "MergeReport") -> Iterable[str]:
    yield f"{report.papers:>12,}  papers"
    for key, name in JOINED.items():
        if count := report.counts[key]:
            yield f"{count:>12,}  {name}"
    yield f"{report.citations:>12,}  citations among them"
    yield f"{report.counts['outside']:>12,}  citations to papers outside"


def _report_ignored(opened: "Corpus", console: ConsoleOutput) -> None:
    if opened.source.ignored:
        console.detail(f"not read: {', '.join(map(str, opened.source.ignored))}")
