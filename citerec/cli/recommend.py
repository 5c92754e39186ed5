"""`citerec recommend`."""

import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from citerec.cli.console import ConsoleOutput, check_output, write_pieces
from citerec.cli.options import BM25, RERANK, Index, Ray, open_named, settings_options, under
from citerec.config import RecommendConfig, RerankConfig, Settings
from citerec.errors import ConfigError
from citerec.text import plural
from citerec.types import Progress, Query, QueryKind

if TYPE_CHECKING:
    from citerec.bibliography.entry import PaperList
    from citerec.drafts import QueryFile
    from citerec.export import Result
    from citerec.recommend import Recommender
    from citerec.recommendations import Recommendations

FEW_QUERIES = 8  # up to here, opening torch costs more time than it saves
ALL = "all"
UNREAD_SHOWN = 20  # unreadable entries of a list that have a line each
_RANKS = re.compile(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?")
FLAGS = {
    "--k": "k",
    "--encoder": "encoder",
    "--fusion": "fuse",
    "--retriever": "retrievers",
    **under("reranker", RERANK),
    "--ranker": "ranker",
    "--no-popularity": "popularity",
    "--no-authors": "authors",
    "--diversity": "diversity",
    **under("bm25", BM25),
    "--threads": "bm25.threads dense.threads reranker.threads",
}


class DraftOptions(Settings):
    """What needs references."""

    query: str | None = Field(
        default=None,
        description="A file with a draft, or - for stdin: LaTeX, Markdown, Word, PDF, text, JSON, BibTeX, RIS; "
        "or with many: JSONL, BibTeX, RIS, CSL-JSON.",
    )
    title: str | None = Field(
        default=None,
        description="The title of the draft, in place of --query or of the title in it.",
    )
    abstract: str | None = Field(
        default=None, description="The abstract, with --title, or in place of that in --query."
    )
    context: str | None = Field(
        default=None,
        description="The sentence that needs a reference, with or without its draft; [CITE] marks the place.",
    )
    cited: Path | None = Field(
        default=None,
        description="References of the draft: one id per line, or a .bib. They guide the ranking and are not "
        "recommended. Those that a document cites are used by themselves; none for no references.",
    )
    year_max: int | None = Field(
        default=None,
        ge=1,
        description="Latest year of papers and of known citations; the year of the query by default.",
    )
    exclude: Path | None = Field(
        default=None, description="Papers to exclude: one id per line, or a .bib."
    )


class ListOptions(Settings):
    """How the list is written."""

    format: str = Field(
        default="table",
        description="table, json, jsonl, trec, bibtex, ris, csl, doi, or a format that a package adds.",
    )
    fields: str | None = Field(
        default=None,
        description="JSON: what else of each paper, such as authors,venue,doi,abstract.",
    )
    output: Path | None = Field(default=None, description="Output file, in place of stdout.")
    append: Path | None = Field(
        default=None,
        description="Add the papers to this .bib, .ris or CSL .json, but those that it has; FILE.bak keeps what it "
        "was.",
    )
    pick: str = Field(
        default=ALL,
        description="The ranks of the papers that --append adds, such as 1,3,7 or 1-5.",
    )
    explain: bool = Field(default=False, description="Add the reasons for each paper.")


@settings_options
def recommend(
    *,
    draft: DraftOptions,
    index: Index = None,
    config: Annotated[RecommendConfig, FLAGS],
    shown: ListOptions,
    ray: Ray = None,
    console: ConsoleOutput,
) -> None:
    """Recommend papers that a draft should cite, best first."""
    from citerec.export import pieces
    from citerec.rules.known import QueryOptions

    fields = checked_fields(shown)
    drafts = read_drafts(draft)
    ranks = picked_ranks(shown, config.k, batch=drafts.batch)
    excluded, cited = read_list(draft.exclude), read_list(draft.cited)
    for notice in drafts.notices:
        console.log(notice)
    to_terminal = shown.output is None and sys.stdout.isatty()  # a bar would be mixed with the list
    with (
        opened(index, suited(config, drafts, console), ray, console) as (recommender, many),
        (ConsoleOutput(quiet=True) if to_terminal else console).progress() as progress,
    ):
        known = rows_of(cited, f"in {draft.cited}", recommender, console)
        if str(draft.cited) != "none":
            known |= rows_of(drafts.cited, f"cited in {drafts.cited_from}", recommender, console)
        options = QueryOptions(
            year_max=draft.year_max,
            excluded=rows_of(excluded, f"in {draft.exclude}", recommender, console),
            cited=known,
            explain=shown.explain,
        )
        results = Results(drafts.queries, many(drafts.queries, options, progress), progress)
        # one list is a value before it is formatted; those of a batch may be larger than memory
        values = results if drafts.batch and not shown.append else [*results]
        kind = shown.format
        text = pieces(values, kind, batch=drafts.batch, color=to_terminal, fields=fields)
        write_pieces(text, shown.output)
    results.log_missing(kind, console)
    if shown.append:
        append([*values], shown.append, ranks, console)


@dataclass(slots=True)
class Results:
    """The results of queries in their order, and what the formats that only show papers leave out."""

    queries: tuple[Query, ...]
    lists: "Iterator[Recommendations]"
    progress: Progress
    empty: "list[Result]" = field(default_factory=list["Result"])
    has_doi: dict[str, bool] = field(default_factory=dict[str, bool])  # by id of the paper

    def __iter__(self) -> "Iterator[Result]":
        from citerec.bibliography.keys import paper_doi

        self.progress("queries", 0, len(self.queries))
        for number, one in enumerate(self.lists, start=1):
            if not one:
                self.empty.append(one)
            self.has_doi |= {item.paper.id: bool(paper_doi(item.paper)) for item in one}
            yield one
            self.progress("queries", number, len(self.queries))

    def log_missing(self, kind: str, console: ConsoleOutput) -> None:
        """Log why lists are empty, and how many papers a list of DOIs leaves out, in one line each."""
        if self.empty and kind != "table":
            first, drafts = self.empty[0], len(self.queries)
            many = f" for {len(self.empty):,} of {drafts:,} drafts (the first: {first.query.id})"
            console.log(f"nothing was found{many if drafts > 1 else ''}: {first.empty_reason}")
        missing = list(self.has_doi.values()).count(False)
        if missing and kind == "doi":
            console.log(
                f"{missing:,} of {plural(len(self.has_doi), 'recommended paper')} left out: no DOI; "
                "--format bibtex, ris or csl writes all papers"
            )


def read_drafts(draft: DraftOptions) -> "QueryFile":
    """Return the queries of a draft and a sentence, of either alone, or of a list of references alone.

    Raises:
        ConfigError: If the options do not fit together.
        BadInputError: If a file cannot be read.
    """
    from citerec.drafts import QueryFile, read_queries
    from citerec.drafts.context import read_context, sentence_query

    title = None if draft.title is None else " ".join(draft.title.split())
    abstract = None if draft.abstract is None else draft.abstract.strip()
    if title == "" or (draft.query is not None and not draft.query.strip()):
        raise ConfigError("--title and --query must not be empty; give a title, or name a file")
    if draft.query is not None:
        given = read_queries(draft.query, title=title, abstract=abstract)
    elif title is not None:
        given = QueryFile((Query(id="query", title=title, abstract=abstract or "", named=False),))
    elif abstract:
        raise ConfigError("--abstract needs --title; add the title of the draft")
    elif draft.context is not None:
        return QueryFile((sentence_query(draft.context),))
    elif draft.cited is not None:
        from citerec.recommend import list_query

        return QueryFile((list_query(draft.cited.name),))
    else:
        raise ConfigError(
            "give the draft either by --query FILE (- for stdin) or by --title; "
            "without a draft, give --context or --cited"
        )
    if draft.context is None:
        return given
    if given.batch:
        raise ConfigError(
            f"--context is a sentence of one draft, but --query holds {len(given.queries):,}; "
            'give one draft, or the key "context" in each line of a JSONL file'
        )
    return replace(given, queries=(replace(given.queries[0], context=read_context(draft.context)),))


def suited(config: RecommendConfig, drafts: "QueryFile", console: ConsoleOutput) -> RecommendConfig:
    """Return the settings for some queries: a list alone has no draft that a ranker or reranker could read."""
    if drafts.queries[0].kind is not QueryKind.REFERENCES:
        return config.replace(few_queries=len(drafts.queries) <= FEW_QUERIES)
    reranker = config.reranker
    model = reranker.model if isinstance(reranker, RerankConfig) else reranker
    if not {config.ranker, model} <= {"auto", "none"}:
        console.warn(
            "--ranker and --reranker need a draft; --cited alone has none, so they are not used"
        )
    return config.replace(
        few_queries=True, reranker="none", ranker="none", popularity=True, authors=True
    )


@contextmanager
def opened(
    index: Path | None, config: RecommendConfig, ray: str | None, console: ConsoleOutput
) -> "Generator[tuple[Recommender, Any]]":
    """Open the index and the models; yield the recommender and its `recommend_many`, or that of a Ray cluster.

    Raises:
        CiterecError: If one cannot be opened, or there is no cluster at the address.
    """
    from citerec.rank.trees import load
    from citerec.recommend import Recommender

    folder = open_named(index)
    if config.ranker != "none":
        load(hide_optional=True)  # pandas and scikit-learn would take half a second to import
    recommender = Recommender(folder, config, console.log)
    of_encoder = f" of {recommender.encoder}" if recommender.encoder else ""
    papers = plural(folder.manifest.counts["papers"], "paper")
    names = " + ".join(recommender.retriever_names)
    console.detail(f"{folder.path}: {papers}, {names}{of_encoder}")
    if recommender.reranker:
        console.log(recommender.reranker_in_use)
    for line in recommender.settings_in_use:
        console.detail(line)
    if ray is None:
        yield recommender, recommender.recommend_many
        return
    from citerec.distributed import RayRecommender, connected

    with connected(ray):
        workers = RayRecommender(recommender, config.bm25.threads)
        yield recommender, workers.recommend_many


def read_list(path: Path | None) -> "PaperList | None":
    """Return the list of papers that an option names, read once as it may be a pipe; None for none.

    Raises:
        BadInputError: If it cannot be read.
    """
    if path is None or str(path) == "none":
        return None
    from citerec.bibliography.paper_list import read_paper_list

    return read_paper_list(path)


def rows_of(
    references: "PaperList | None", place: str, recommender: "Recommender", console: ConsoleOutput
) -> frozenset[int]:
    """Return the rows of the papers that a list names; log how many were found. None is an empty list."""
    if references is None:
        return frozenset()
    from citerec.matching import listed_rows

    papers, name = recommender.index.papers, place.removeprefix("cited ").removeprefix("in ")
    for fault in references.unread[:UNREAD_SHOWN]:
        console.warn(f"{name}: {fault}; the entry is ignored")
    if (more := len(references.unread) - UNREAD_SHOWN) > 0:
        console.warn(f"{name}: {more:,} more entries are ignored (list them: citerec check)")
    by_entry = listed_rows(references, papers)
    for entry, rows in zip(references.entries, by_entry, strict=True):
        ids = ", ".join(papers.ids_at(sorted(rows)))
        console.detail(f"{name}: {entry.title or entry.place}: {ids or 'not found'}")
    missing = sum(not rows for rows in by_entry)
    hint = " (use --verbose to list them)" if missing and not console.verbose else ""
    not_found = f", {missing} not found{hint}" if missing else ""
    found = f"{len(by_entry) - missing} found in this corpus"
    console.log(f"{plural(len(by_entry), 'reference')} {place}: {found}{not_found}")
    return frozenset[int]().union(*by_entry)


def checked_fields(shown: ListOptions) -> tuple[str, ...]:
    """Return the names that `--fields` lists; check the format and the output file before the work.

    Raises:
        ConfigError: If a name or the format is unknown, or the format is not JSON.
        OutputError: If the output file cannot be written.
    """
    from citerec.export import Format, formats

    check_output(shown.output)
    if shown.format not in formats():
        raise ConfigError(
            f"--format {shown.format!r}: there is no such format; choose from {', '.join(formats())}"
        )
    if shown.fields is None:
        return ()
    from citerec.export.jsonl import FIELDS

    if shown.format not in {Format.JSON, Format.JSONL}:
        raise ConfigError(f"--fields is for --format json and jsonl, not {shown.format}")
    names = tuple(name for part in shown.fields.split(",") if (name := part.strip()))
    if unknown := [name for name in names if name not in FIELDS]:
        raise ConfigError(f"--fields: no field {unknown[0]!r}; choose from {', '.join(FIELDS)}")
    return names


def picked_ranks(shown: ListOptions, k: int, *, batch: bool) -> frozenset[int]:
    """Return the ranks that `--pick` lists, such as 1,3,7 or 1-5; none for all. Check `--append` before the work.

    Raises:
        ConfigError: If the options contradict each other, or a rank is invalid.
        CiterecError: If the file of `--append` cannot be extended.
    """
    ranks: set[int] = set()
    for part in shown.pick.split(",") if shown.pick.strip().lower() != ALL else ():
        match = _RANKS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise ConfigError(f"--pick {shown.pick!r}: expected ranks such as 1,3,7 or 1-5, or all")
        ranks.update(range(first, last + 1))
    if ranks and (batch or not shown.append):
        raise ConfigError("--pick needs --append and a single draft")
    if ranks and max(ranks) > k:
        raise ConfigError(f"--pick {max(ranks)}: --k {k} gives too few papers; increase --k")
    if shown.append:
        if shown.output and realpath(shown.output) == realpath(shown.append):
            raise ConfigError(f"--output would replace {shown.append}; --append writes the file")
        from citerec.references import read_reference_file

        check_output(shown.append)
        read_reference_file(shown.append)
    return frozenset(ranks)


def append(
    results: "Sequence[Result]", path: Path, ranks: frozenset[int], console: ConsoleOutput
) -> None:
    """Add the papers of some ranks (none for all) to a file of references, and report it in one line.

    Raises:
        ConfigError: If a rank is higher than the number of recommendations.
        CiterecError: If the file cannot be extended.
    """
    from citerec.references import append_papers

    papers = {
        item.paper.id: item.paper
        for result in results
        for item in result.recommendations
        if not ranks or item.rank in ranks
    }
    if len(papers) < len(ranks):
        raise ConfigError(
            f"--pick {max(ranks)}: there is no recommendation of this rank; nothing was added to {path}"
        )
    done = append_papers(path, list(papers.values()))
    keys = f": {', '.join(done.keys)}" if done.keys else ""
    skipped = "; ".join(paper.title or paper.id for paper in done.skipped[:3])
    more = f"; skipped, as the file has {len(done.skipped)} already: {skipped}" if skipped else ""
    console.log(f"{plural(len(done.keys), 'paper')} added to {path}{keys}{more}")
    if done.backup:
        console.detail(f"the former content is in {done.backup}")
