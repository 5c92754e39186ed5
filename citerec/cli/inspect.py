"""`citerec info`, `verify`, `doctor` and `demo`."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, show, write_lines, write_result
from citerec.cli.options import Index, Quiet, Verbose

if TYPE_CHECKING:
    from citerec.folder import IndexFolder

SAMPLE = Path(__file__).parent.parent / "sample"


class InfoFormat(StrEnum):
    """The output format."""

    TABLE = "table"
    JSON = "json"


FactsFormat = Annotated[InfoFormat, typer.Option("--format", help="table or json.")]


def info(
    index: Index = None,
    format: FactsFormat = InfoFormat.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show the content of an index."""
    from citerec.cli.index import count_lines
    from citerec.folder import NAME, find_index, open_index

    folder = open_index(find_index(index))
    manifest = folder.manifest
    if format is InfoFormat.JSON:
        write_result((folder.path / NAME).read_text(encoding="utf-8"))
        return
    size = sum((folder.path / name).stat().st_size for name in manifest.checksums)
    write_lines(
        f"{folder.path}  ({size / 2**20:,.1f} MB, built {manifest.created} "
        f"by citerec {manifest.citerec})",
        f"      corpus  {manifest.corpus['path']} ({manifest.corpus['format']}, "
        f"sha256 {manifest.corpus['sha256'][:12]})",
        *count_lines(manifest.counts),
        f"      splits  {manifest.settings['splits']}",
        *encoder_lines(manifest.settings),
        *settings_in_use(folder),
    )


def encoder_lines(settings: Mapping[str, Any]) -> list[str]:
    """Return the lines about the vectors of an index."""
    if not settings["encoder"]:
        return ["     encoder  none: BM25 alone"]
    from citerec.encode.spec import Fingerprint

    fingerprint, dense = Fingerprint.from_json(settings["encoder"]), settings["dense"]
    spec = fingerprint.spec
    return [
        f"     encoder  {fingerprint} from {fingerprint.source}",
        f"              {spec.form}, {spec.max_tokens} tokens, {spec.pooling} pooling, {spec.similarity}",
        f"     vectors  {dense['papers']:,} of {dense['dim']} dimensions, {dense['kind']}",
    ]


def settings_in_use(folder: "IndexFolder") -> list[str]:
    """Return the defaults of `recommend` on an index, and their origin."""
    from citerec.rank.ltr import DEFAULT, find_ranker, suits_default_reranker
    from citerec.rerank.choose import auto_reranker, shown_reranker
    from citerec.tuned import fusion_in_use, kept_rerank_weight

    lines = [f"      fusion  {fusion_in_use(folder)}"] if folder.is_embedded else []
    if reranker := auto_reranker(folder, default=suits_default_reranker("auto", folder)):
        lines.append(f"    reranker  {shown_reranker(reranker, folder)}")
    if weight := kept_rerank_weight(folder):
        lines.append(
            f"              weight {weight.weight:g}, tuned at depth {weight.depth} without a ranker"
        )
    ranker = find_ranker("auto", folder)
    shown = "the default model" if ranker == DEFAULT else ranker and ranker.relative_to(folder.path)
    return [*lines, f"      ranker  {shown or 'none'}"]


def verify(index: Index = None, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Check every byte of an index against its manifest."""
    from citerec.folder import find_index, verify_index

    path = find_index(index)
    manifest = verify_index(path)
    if not quiet:
        write_lines(f"{path} is complete: {len(manifest.checksums)} files match their checksums")


def doctor(
    format: FactsFormat = InfoFormat.TABLE, quiet: Quiet = False, verbose: Verbose = False
) -> None:
    """Check whether this machine can run everything, and show how to fix problems."""
    from citerec.doctor import as_json, as_table, examine, healthy

    findings = examine()
    if format is InfoFormat.JSON:
        write_result(f"{as_json(findings)}\n")
    else:
        show(as_table(findings))
    if not healthy(findings):
        raise typer.Exit(1)


def demo(quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Index the bundled sample and recommend papers for a sample draft."""
    from citerec.build import BuildConfig, build_index
    from citerec.config import RecommendConfig
    from citerec.drafts import read_queries
    from citerec.export import Format, Result, dump
    from citerec.folder import INDEXES, open_index
    from citerec.recommend import Recommender

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    target = INDEXES / "sample"
    encoder = _embedded_model(console)
    config = BuildConfig(force=True, encoder=encoder)
    with console.progress(in_bytes="reading") as progress:
        report = build_index(SAMPLE / "papers.jsonl", target, config, progress)
    by = f", encoded by {encoder}," if encoder else ""
    console.log(f"indexed {report.manifest.counts['papers']} landmark papers{by} into {target}/")
    queries = read_queries(SAMPLE / "draft.json").queries
    console.log(f"the draft: {queries[0].title} ({SAMPLE / 'draft.json'})")
    recommender = Recommender(open_index(target), RecommendConfig(k=10))
    lists = recommender.recommend(queries, explain=True)
    results = [Result(one.query, one.items) for one in lists]
    write_result(dump(results, Format.TABLE, batch=False))
    if not quiet:
        write_result(f"{NEXT_STEPS}\n")


def _embedded_model(console: ConsoleOutput) -> str | None:
    """Return the model that needs no network, if it is installed: the demo downloads nothing."""
    from citerec.encode.minilm import MINILM
    from citerec.encode.source import find_model
    from citerec.errors import MissingExtraError

    try:
        return find_model(MINILM).name
    except MissingExtraError as error:
        console.warn(f"BM25 alone, no vectors: {error}")
        return None


NEXT_STEPS = """
What to do next:
  citerec recommend --index indexes/sample --title "..." --abstract "..."     recommend for your own draft
  citerec recommend --index indexes/sample --query paper.bib --format bibtex  a file in, BibTeX out
  citerec evaluate --index indexes/sample                                     evaluate it
  citerec index my-papers.jsonl                                               your own corpus: one JSON paper a line
  citerec doctor                                                              what this machine can run"""
