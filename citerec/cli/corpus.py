"""`citerec corpus info`, `convert`, `merge` and `sample`."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, write_lines
from citerec.cli.options import Force, Format, SkipBad, settings_options
from citerec.display import plural, some_of

corpus = typer.Typer(
    no_args_is_help=True, help="Count, convert, merge and sample corpora of any format."
)
CorpusPath = Annotated[Path, "A corpus file or library, or a folder of them."]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="The file: .jsonl, .jsonl.gz or .jsonl.zst."),
]
LABELS = {  # of the counts of a corpus and of an index, in the order in which they are printed
    "papers": "papers",
    "with_abstract": "with an abstract",
    "with_doi": "with a DOI",
    "without_year": "without a year",
    "empty_titles": "with an empty title",
    "with_citations": "with citations",
    "retracted": "retracted, which are never recommended",
    "citations_inside": "citations to papers of the corpus",
    "citations_outside": "citations to papers outside the corpus",
    "same_doi": "papers with the DOI of another one",
    "same_title": "papers with title and year of another one",
    "records": "records",
    "by_doi": "joined by DOI",
    "by_id": "joined by id and title",
    "by_title": "joined by title and year",
    "renamed": "ids renamed: taken by another paper",
    "citations": "citations among them",
    "contexts": "sentences that cite them",
    "outside": "citations to papers outside",
    "parts": "papers from which the search began",
    "unknown_references": "references to papers outside the corpus",
    "self_citations": "self-citations left out",
    "repeated_references": "repeated references left out",
    "duplicates": "duplicates left out",
    "conflicting_duplicates": "records left out: id taken by another paper",
    "broken_lines": "records left out: broken lines",
    "wrong_types": "records left out: wrong types",
    "missing_fields": "records left out: missing fields",
    "train_queries": "train queries",
    "dev_queries": "dev queries",
    "test_queries": "test queries",
    "recognised_queries": "queries that are papers of the corpus, by title or text, and are hidden from themselves",
    "unknown_queries": "queries of the splits that are no papers of the corpus",
}
# even if 0
OF_INDEX = {
    "papers",
    "citations",
    "train_queries",
    "dev_queries",
    "test_queries",
}


@corpus.command()
@settings_options
def info(path: CorpusPath, *, format: Format = "auto", console: ConsoleOutput) -> None:
    """Count papers, abstracts, citations inside and outside, years and duplicates of a corpus."""
    from citerec.build.corpora import open_corpus, summarise

    opened = open_corpus(path, format, skip_bad=True)
    with console.progress(in_bytes="reading") as progress:
        collector, years = summarise(opened, progress, console.log)
    shown = {"papers", "with_abstract", "citations_inside", "citations_outside"}
    lines = count_lines(collector.counts, shown)
    if years:
        lines.append(f"{f'{min(years)}-{max(years)}':>12}  years")
    files = plural(len(opened.source.files), "file")
    write_lines(f"{path}  ({opened.format}, {files})", *lines)
    report_faults(collector.examples, opened.source.ignored, console)


@corpus.command()
@settings_options
def convert(
    path: CorpusPath,
    *,
    output: Output,
    format: Format = "auto",
    force: Force = False,
    skip_bad: SkipBad = False,
    console: ConsoleOutput,
) -> None:
    """Convert a corpus of any format to canonical JSON lines."""
    from citerec.build import corpora

    corpora.check_target(output, force=force)
    opened = corpora.open_corpus(path, format, skip_bad=skip_bad)
    with console.progress(in_bytes="reading") as progress:
        collector = corpora.convert(opened, output, progress, console.log)
    console.summary(f"{output}  (from {opened.format})", *count_lines(collector.counts))
    report_faults(collector.examples, opened.source.ignored, console)


@corpus.command()
@settings_options
def merge(
    paths: Annotated[
        list[Path],
        "Corpora, in order of precedence; one whose ids repeat, too.",
    ],
    *,
    output: Output,
    force: Force = False,
    skip_bad: SkipBad = False,
    console: ConsoleOutput,
) -> None:
    """Join corpora by DOI, then by title and year; each field is the most complete one."""
    from citerec.build.corpora import check_target, open_corpus
    from citerec.build.corpora import merge as merge_corpora

    check_target(output, force=force)
    opened = [open_corpus(path, skip_bad=skip_bad) for path in paths]
    with console.progress() as progress:
        counts, examples = merge_corpora(opened, output, progress, console.log)
    shown = {"papers", "citations", "outside"}
    console.summary(f"{output}  ({len(paths)} corpora)", *count_lines(counts, shown))
    ignored = [file for corpus in opened for file in corpus.source.ignored]
    report_faults(examples, ignored, console)


@corpus.command()
@settings_options
def sample(
    path: CorpusPath,
    *,
    output: Output,
    n: Annotated[int, typer.Option("-n", min=1, help="How many papers.")] = 1000,
    seed: Annotated[int, "The same seed gives the same papers."] = 0,
    format: Format = "auto",
    force: Force = False,
    skip_bad: SkipBad = False,
    console: ConsoleOutput,
) -> None:
    """Draw papers that are connected by citations; an index of them is split by year."""
    from citerec.build.corpora import check_target, open_corpus
    from citerec.build.corpora import sample as draw

    check_target(output, force=force)
    opened = open_corpus(path, format, skip_bad=skip_bad)
    with console.progress() as progress:
        counts = draw(opened, output, n, seed, progress, console.log)
    if counts["papers"] < n:
        console.log(f"the corpus has only {counts['papers']:,} papers")
    console.summary(f"{output}", *count_lines(counts, counts))


def count_lines(
    counts: Mapping[str, int], shown: Collection[str] = ("papers",)
) -> list[str]:
    """Return a line for each count that is not zero or in `shown`."""
    return [
        f"{counts.get(key, 0):>12,}  {label}"
        for key, label in LABELS.items()
        if counts.get(key) or key in shown
    ]


def index_lines(counts: Mapping[str, int]) -> list[str]:
    """Return a line for each count of an index."""
    return count_lines({**counts, "with_citations": 0}, OF_INDEX)


def report_faults(
    examples: Sequence[str],
    ignored: Sequence[Path],
    console: ConsoleOutput,
    format_name: str = "",
) -> None:
    """Log what was left out of a corpus, and which files of it were not read."""
    for fault in examples:
        console.log(f"left out: {fault}")
    if ignored:
        console.detail(f"not read: {', '.join(map(str, ignored))}")
    pdfs = [file for file in ignored if file.suffix.lower() == ".pdf"]
    if format_name == "library":
        from citerec.corpus.readers.files import head_of
        from citerec.library.reading import reader_of

        wrong = [file for file in pdfs if not reader_of(head_of(file), file.name)]
        if wrong:
            names = some_of([str(file) for file in wrong])
            console.log(f"not read, as no PDF is in them: {names}")
    elif pdfs:
        console.log(
            f"{plural(len(pdfs), 'PDF')} not read, since there are records; --format library reads both"
        )
