"""`citerec recommend`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import (
    ConsoleOutput,
    Heap,
    Index,
    Quiet,
    Threads,
    Verbose,
    check_output,
    without_garbage_collection,
    write_pieces,
)
from citerec.cli.contexts import ContextOption, suited, with_context
from citerec.cli.formats import FieldsOption, FormatOption, checked_fields
from citerec.cli.notices import loaded, warn_unreadable
from citerec.cli.rank import (
    CitedOption,
    DiversityOption,
    NoAuthorsOption,
    NoPopularityOption,
    RankerOption,
)
from citerec.cli.rerank import (
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    DtypeOption,
    EarlyStopOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
    RerankOptions,
    RerankWeightOption,
)
from citerec.config import (
    Bm25Config,
    DenseConfig,
    FuseMethod,
    RecommendConfig,
    StopWords,
)
from citerec.encode.config import Backend, Precision
from citerec.errors import ConfigError
from citerec.export import Result
from citerec.text import QueryForm, plural
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.drafts import QueryFile
    from citerec.folder import IndexFolder
    from citerec.recommend import BatchRecommender, BatchResult

K1 = Annotated[float, typer.Option("--k1", min=0, help="BM25: term frequency saturation.")]
B = Annotated[float, typer.Option("--b", min=0, max=1, help="BM25: length normalisation.")]

FEW_QUERIES = 8  # queries up to which torch, OpenVINO and Java's second compiler cost more time than they save


class Fusion(StrEnum):
    """The fusion of the first-stage retrievers."""

    AUTO = "auto"
    RRF = "rrf"
    WEIGHTED = "weighted"


StopWordsOption = Annotated[
    StopWords, typer.Option(help="BM25: stop words that are removed from a query.")
]


def recommend(
    query: Annotated[
        str | None,
        typer.Option(
            help="A file with one or many drafts, or - for stdin: JSON, JSONL, BibTeX, RIS, CSL-JSON, text."
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The title of the draft, in place of --query.")
    ] = None,
    abstract: Annotated[str, typer.Option(help="The abstract, with --title.")] = "",
    context: ContextOption = None,
    index: Index = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Number of papers.")] = 20,
    encoder: Annotated[
        str, typer.Option(help="auto for that of the index, or none for BM25 alone.")
    ] = "auto",
    fusion: Annotated[
        Fusion,
        typer.Option(help="Fusion of BM25 and vectors; auto: the tuned one, else rrf."),
    ] = Fusion.AUTO,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="A first-stage retriever that a package adds, fused with BM25 and vectors; may be repeated."
        ),
    ] = None,
    reranker: RerankerOption = None,
    rerank_depth: RerankDepthOption = None,
    query_tokens: QueryTokensOption = None,
    candidate_tokens: CandidateTokensOption = None,
    rerank_weight: RerankWeightOption = None,
    early_stop: EarlyStopOption = False,
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    backend: BackendOption = Backend.AUTO,
    ranker: RankerOption = "auto",
    no_popularity: NoPopularityOption = False,
    no_authors: NoAuthorsOption = False,
    diversity: DiversityOption = 0.0,
    cited: CitedOption = None,
    year_max: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Latest year of papers and of known citations; the year of the query by default.",
        ),
    ] = None,
    exclude: Annotated[
        Path | None, typer.Option(help="Papers to exclude: one id per line, or a .bib.")
    ] = None,
    format: FormatOption = "table",
    fields: FieldsOption = None,
    output: Annotated[Path | None, typer.Option(help="Output file, in place of stdout.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the reasons for each paper.")
    ] = False,
    query_form: Annotated[
        QueryForm, typer.Option(help="BM25: the fields of the query.")
    ] = QueryForm.TITLE_ABSTRACT,
    k1: K1 = 1.2,
    b: B = 0.75,
    stop_words: StopWordsOption = StopWords.AUTO,
    threads: Threads = 0,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Recommend papers that a draft should cite, best first."""
    from citerec.export import pieces
    from citerec.folder import find_index, open_index
    from citerec.missing import stream_any

    console = ConsoleOutput(quiet, verbose)
    bm25 = Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads)
    check_output(output)
    more = checked_fields(fields, format)
    drafts = with_context(
        partial(_queries, query, title, abstract),
        context,
        cited,
        has_draft=not (query is None and title is None and not abstract),
    )
    folder = open_index(find_index(index))
    rerank = RerankOptions(
        models=reranker,
        depths=rerank_depth,
        query_tokens=query_tokens,
        candidate_tokens=candidate_tokens,
        weight=rerank_weight,
        early_stop=early_stop,
        device=device,
        precision=dtype,
        backend=backend,
        threads=threads,
    ).config(folder, console)
    few = len(drafts.queries) <= FEW_QUERIES
    if rerank and backend is Backend.AUTO and few:
        rerank = replace(rerank, backend=Backend.TORCH)
    config = RecommendConfig(
        k=k,
        bm25=bm25,
        encoder=encoder,
        dense=DenseConfig(threads=threads),
        retrievers=tuple(retriever or ()),
        fuse=None if fusion is Fusion.AUTO else FuseMethod(fusion.value),
        reranker=rerank or "none",
        ranker=ranker,
        popularity=not no_popularity,
        authors=not no_authors,
        diversity=diversity,
        few_queries=few,
    )
    recommender = _open_recommender(folder, suited(config, drafts), heap, console)
    excluded = _matching_rows(exclude, recommender, console)
    cited_rows = _matching_rows(cited, recommender, console)
    warn_unreadable(drafts.queries, recommender, console)
    shown = output is None and _is_terminal()  # a progress bar would be mixed with the results
    with (ConsoleOutput(quiet=True) if shown else console).progress() as progress:
        recommendations = stream_any(
            recommender,
            drafts.queries,
            year_max=year_max,
            excluded=excluded,
            cited=cited_rows,
            explain=explain,
            progress=progress,
        )
        results = _results(
            drafts.queries,
            recommendations,
            progress,
            lambda one: recommender.explain_no_results(
                one, year_max=year_max, excluded=excluded | cited_rows
            ),
        )
        write_pieces(pieces(results, format, batch=drafts.batch, color=shown, fields=more), output)


@without_garbage_collection()
def _open_recommender(
    folder: "IndexFolder", config: RecommendConfig, heap: str | None, console: ConsoleOutput
) -> "BatchRecommender":
    """Open the pipeline; log the reranker, and the retrievers if verbose."""
    from citerec.java import start_jvm
    from citerec.recommend import BatchRecommender

    with console.status(f"loading {loaded(folder, config)}"):
        start_jvm(heap, quick=config.few_queries)
        if config.ranker != "none":
            from citerec.rank.library import load

            load(hide_optional=True)
        recommender = BatchRecommender(folder, config, console.log)
    retrievers = " + ".join(recommender.retriever_names)
    if recommender.encoder:
        retrievers += f" of {recommender.encoder}"
    console.detail(
        f"{folder.path}: {plural(folder.manifest.counts['papers'], 'paper')}, {retrievers}"
    )
    if recommender.cascade:
        console.log(recommender.reranks)
    for line in recommender.settings_in_use:
        console.detail(line)
    return recommender


def _queries(query: str | None, title: str | None, abstract: str) -> "QueryFile":
    from citerec.drafts import QueryFile, read_queries

    if query is None and title is None and abstract:
        raise ConfigError("--abstract needs --title; add the title of the draft")
    if (query is None) == (title is None):
        raise ConfigError(
            "give the draft either by --query FILE (- for stdin) or by --title; "
            "without a draft, give --context or --cited"
        )
    if query is not None:
        if abstract:
            raise ConfigError("--abstract needs --title; a query file has its own abstract")
        if not query.strip():
            raise ConfigError("--query is empty; name a file, or - for stdin")
        return read_queries(query)
    words = " ".join((title or "").split())
    if not words:
        raise ConfigError("--title is empty; give the title of the draft")
    return QueryFile((Query(id="query", title=words, abstract=abstract.strip(), named=False),))


def _matching_rows(
    path: Path | None, recommender: "BatchRecommender", console: ConsoleOutput
) -> frozenset[int]:
    if path is None:
        return frozenset()
    from citerec.bibliography.paper_list import read_paper_list
    from citerec.matching.recognise import listed_rows

    listed = read_paper_list(path)
    for fault in listed.unread:
        console.warn(f"{path}: {fault}; the entry is ignored")
    papers = recommender.index.papers
    rows_by_entry = listed_rows(listed, papers)
    for entry, rows in zip(listed.entries, rows_by_entry, strict=True):
        ids = ", ".join(papers.ids_at(sorted(rows)))
        console.detail(f"{path}: {entry.title or entry.place}: {ids or 'not found'}")
    missing = sum(not rows for rows in rows_by_entry)
    not_found = f", {missing} not found" if missing else ""
    hint = " (use --verbose to list them)" if missing and not console.verbose else ""
    references = "1 reference" if len(rows_by_entry) == 1 else f"{len(rows_by_entry)} references"
    console.log(
        f"{references} in {path}: {len(rows_by_entry) - missing} found in this corpus{not_found}{hint}"
    )
    return frozenset[int]().union(*rows_by_entry)


def _results(
    queries: tuple[Query, ...],
    results: Iterable["BatchResult"],
    progress: Callable[[str, int, int], None],
    why_nothing: Callable[[Query], str],
) -> Iterator[Result]:
    progress("queries", 0, len(queries))
    for number, (query, result) in enumerate(zip(queries, results, strict=True), start=1):
        yield Result(query, result.items, "" if result.items else why_nothing(query))
        progress("queries", number, len(queries))


def _is_terminal() -> bool:
    import sys

    return sys.stdout.isatty()
