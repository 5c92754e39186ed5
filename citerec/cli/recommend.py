"""`citerec recommend`."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.append import ALL, AppendOption, KeyPatternOption, PickOption, addition
from citerec.cli.console import (
    ConsoleOutput,
    Heap,
    Index,
    Quiet,
    Threads,
    Verbose,
    check_output,
    write_pieces,
)
from citerec.cli.contexts import ContextOption, with_context
from citerec.cli.drafts import given_drafts
from citerec.cli.formats import FieldsOption, FormatOption, checked_fields
from citerec.cli.rank import (
    CitedOption,
    DiversityOption,
    NoAuthorsOption,
    NoPopularityOption,
    RankerOption,
)
from citerec.cli.ranked import is_terminal, logging_empty, logging_missing_dois
from citerec.cli.request import ListedFile, Options, RecommendRequest
from citerec.cli.rerank import (
    BackendOption,
    CandidateTokensOption,
    DeviceOption,
    DtypeOption,
    QueryTokensOption,
    RerankDepthOption,
    RerankerOption,
    RerankOptions,
    RerankWeightOption,
)
from citerec.cli.work import opened_request
from citerec.config import Bm25Config, StopWords
from citerec.encode.config import Backend, Precision
from citerec.text import QueryForm

K1 = Annotated[
    float, typer.Option("--k1", min=0, help="BM25: term frequency saturation; at most 1000.")
]
B = Annotated[float, typer.Option("--b", min=0, max=1, help="BM25: length normalisation.")]


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
            help="A file with a draft, or - for stdin: LaTeX, Markdown, Word, PDF, HTML, text, JSON, BibTeX, RIS; "
            "or with many: JSONL, BibTeX, RIS, CSL-JSON."
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(help="The title of the draft, in place of --query or of the title in it."),
    ] = None,
    abstract: Annotated[
        str | None, typer.Option(help="The abstract, with --title, or in place of that in --query.")
    ] = None,
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
    append: AppendOption = None,
    pick: PickOption = ALL,
    key_pattern: KeyPatternOption = None,
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
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Rank many queries on a Ray cluster, such as 10.0.0.1:6379; local for workers on this machine, of "
            "--threads each.",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Recommend papers that a draft should cite, best first."""
    from citerec.export import Format, pieces
    from citerec.folder import find_index

    console = ConsoleOutput(quiet, verbose)
    bm25 = Bm25Config(k1=k1, b=b, form=query_form, stop_words=stop_words, threads=threads)
    check_output(output)
    more = checked_fields(fields, format)
    drafts = with_context(
        partial(given_drafts, query, title, abstract),
        context,
        cited,
        has_draft=not (query is None and title is None and not abstract),
    )
    for notice in drafts.notices:
        console.log(notice)
    adds = addition(append, pick, key_pattern, k=k, output=output, batch=drafts.batch)
    rerank = RerankOptions(
        model=reranker,
        depth=rerank_depth,
        query_tokens=query_tokens,
        candidate_tokens=candidate_tokens,
        weight=rerank_weight,
        device=device,
        precision=dtype,
        backend=backend,
        threads=threads,
    )
    options = Options(
        k=k,
        bm25=bm25,
        encoder=encoder,
        fusion=fusion.value,
        retrievers=tuple(retriever or ()),
        rerank=rerank,
        ranker=ranker,
        popularity=not no_popularity,
        authors=not no_authors,
        diversity=diversity,
        year_max=year_max,
        explain=explain,
        heap=heap,
    )
    request = RecommendRequest(
        options=options,
        drafts=drafts,
        excluded=ListedFile.named(exclude),
        cited=ListedFile.named(cited),
    )
    shown = output is None and is_terminal()  # a progress bar would be mixed with the results
    with (
        opened_request(find_index(index), request, console, ray) as opened,
        (ConsoleOutput(quiet=True) if shown else console).progress() as progress,
    ):
        results = adds.collected(opened.results(progress))
        if format != "table":
            results = logging_empty(results, console.log)
        if format == Format.DOI:
            results = logging_missing_dois(results, console.log)
        write_pieces(
            pieces(
                results,
                format,
                batch=drafts.batch,
                color=shown,
                fields=more,
                key_pattern=adds.pattern,
            ),
            output,
        )
    adds.write(console)
