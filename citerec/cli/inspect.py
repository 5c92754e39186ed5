"""`citerec info`, `verify`, `doctor`, `demo` and `check`."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import (
    ConsoleOutput,
    read_list,
    show,
    write_lines,
    write_pieces,
    write_result,
)
from citerec.cli.corpus import index_lines
from citerec.cli.options import AsFormat, Index, open_named, settings_options
from citerec.display import plural

if TYPE_CHECKING:
    from citerec.index.folder import IndexFolder
    from citerec.match.check import ReferenceCheck

SAMPLE = Path(__file__).parent.parent / "sample"
NEXT_STEPS = """
What to do next:
  citerec serve --index indexes/sample                                        the same as a page in the browser
  citerec recommend --index indexes/sample --title "..." --abstract "..."     recommend for your own draft
  citerec recommend --index indexes/sample --query paper.bib --format bibtex  a file in, BibTeX out
  citerec evaluate --index indexes/sample                                     evaluate it
  citerec index my-papers.jsonl                                               your own corpus: one JSON paper a line
  citerec doctor                                                              what this machine can run
"""


@settings_options
def info(
    *, index: Index = None, format: AsFormat = "table", console: ConsoleOutput
) -> None:
    """Show the content of an index."""
    from citerec.index.folder import NAME

    folder = open_named(index)
    manifest = folder.manifest
    if format == "json":
        write_result((folder.path / NAME).read_text(encoding="utf-8"))
        return
    size = sum((folder.path / name).stat().st_size for name in manifest.checksums)
    write_lines(
        f"{folder.path}  ({size / 2**20:,.1f} MB, built {manifest.created} "
        f"by citerec {manifest.citerec})",
        f"      corpus  {manifest.corpus['path']} ({manifest.corpus['format']}, "
        f"sha256 {manifest.corpus['sha256'][:12]})",
        *index_lines(manifest.counts),
        f"      splits  {manifest.settings['splits']}",
        *settings_in_use(folder),
    )


def settings_in_use(folder: "IndexFolder") -> list[str]:
    """Return lines about the vectors of an index, and about the defaults of `recommend` on it with their origin."""
    from citerec.rank.ltr import DEFAULT, find_ranker
    from citerec.rerank.reranker import choose_reranker, shown_reranker

    if folder.is_embedded:
        fingerprint = folder.encoder
        dense = folder.manifest.settings["dense"]
        spec = fingerprint.spec
        lines = [
            f"     encoder  {fingerprint} from {fingerprint.source}",
            f"              {spec.form}, {spec.max_tokens} tokens, {spec.pooling} pooling, {spec.similarity}",
            f"     vectors  {dense['papers']:,} of {dense['dim']} dimensions, {dense['kind']}",
        ]
    else:
        lines = ["     encoder  none: BM25 alone"]
    if found := choose_reranker("auto", folder):
        lines.append(f"    reranker  {shown_reranker(found.model, folder)}")
    ranker = find_ranker("auto", folder)
    shown = (
        "the default model"
        if ranker == DEFAULT
        else ranker and ranker.relative_to(folder.path)
    )
    return [*lines, f"      ranker  {shown or 'none'}"]


@settings_options
def verify(*, index: Index = None, console: ConsoleOutput) -> None:
    """Check every byte of an index against its manifest."""
    from citerec.index.folder import find_index, verify_index

    path = find_index(index)
    manifest = verify_index(path)
    console.summary(
        f"{path} is complete: {len(manifest.checksums)} files match their checksums"
    )


@settings_options
def doctor(*, format: AsFormat = "table", console: ConsoleOutput) -> None:
    """Check whether this machine can run everything, and show how to fix problems."""
    from citerec.cli.doctor import as_table, examine, healthy
    from citerec.files.checksums import indented_json

    findings = examine()
    if format == "json":
        write_result(
            indented_json({"healthy": healthy(findings), "findings": findings}).decode()
        )
    else:
        show(as_table(findings))
    if not healthy(findings):
        raise typer.Exit(1)


@settings_options
def demo(*, console: ConsoleOutput) -> None:
    """Index the bundled sample and recommend papers for a sample draft."""
    from citerec.build.index import BuildConfig, build_index
    from citerec.config import RecommendConfig
    from citerec.drafts import read_queries
    from citerec.encode.models import MINILM, find_model
    from citerec.errors import MissingExtraError
    from citerec.export import Format, pieces
    from citerec.index.folder import INDEXES, open_index
    from citerec.recommend import Recommender

    target = INDEXES / "sample"
    encoder = None
    try:  # the model that comes with a package: the demo downloads nothing
        encoder = find_model(MINILM).name
    except MissingExtraError as error:
        console.warn(f"BM25 alone, no vectors: {error}")
    config = BuildConfig(force=True, encoder=encoder)
    with console.progress(in_bytes="reading") as progress:
        report = build_index(SAMPLE / "papers.jsonl", target, config, progress)
    by = f", encoded by {encoder}," if encoder else ""
    console.log(
        f"indexed {report.manifest.counts['papers']} landmark papers{by} into {target}/"
    )
    [query] = read_queries(SAMPLE / "draft.json").queries
    console.log(f"the draft: {query.title} ({SAMPLE / 'draft.json'})")
    recommender = Recommender(open_index(target), RecommendConfig(k=10))
    found = recommender.recommend(query, explain=True)
    write_pieces(pieces([found], Format.TABLE, batch=False))
    if not console.quiet:
        write_result(NEXT_STEPS)


@settings_options
def check(
    references: Annotated[Path, "A .bib, RIS or CSL-JSON file, or ids, one a line."],
    *,
    index: Index = None,
    format: AsFormat = "table",
    strict: Annotated[bool, "Exit with 1 if an entry has a problem."] = False,
    console: ConsoleOutput,
) -> None:
    """Compare your references with the corpus: retracted papers, other years, DOIs or titles, preprints, duplicates."""
    from citerec.files.checksums import indented_json
    from citerec.match.check import check_references

    folder = open_named(index)
    console.detail(
        f"{folder.path}: {plural(folder.manifest.counts['papers'], 'paper')}"
    )
    listed = read_list(references, console)
    report = check_references(listed, folder.papers)
    if format == "json":
        findings = [asdict(finding) for finding in report.findings]
        for found in findings:
            del found["entry"]
        content = {"entries": report.entries, "found": report.found}
        content |= {"with_problem": report.with_problem, "findings": findings}
        write_result(indented_json(content).decode())
    else:
        entries = plural(report.entries, "entry", "entries")
        write_lines(
            f"{references}: {entries}, {report.found} of them could be compared with this corpus; "
            f"{report.with_problem} with a problem",
            *problem_lines(report),
        )
    if strict and report.findings:
        raise typer.Exit(1)


def problem_lines(report: "ReferenceCheck") -> Iterator[str]:
    """Yield the problems in words, those of one entry under a line that names it."""
    for place, findings in groupby(report.findings, key=lambda finding: finding.place):
        yield place
        for found in findings:
            if found.entry >= 0:
                yield f"  {found.described}"
