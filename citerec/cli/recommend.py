"""`citerec recommend`."""

import re
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import orjson
from pydantic import ConfigDict

from citerec.cli.console import ConsoleOutput, check_output, write_pieces
from citerec.cli.options import (
    BM25,
    RERANK,
    Index,
    Ray,
    open_named,
    settings_options,
    under,
)
from citerec.config import RecommendConfig, Settings, setting
from citerec.display import plural, some_of
from citerec.errors import BadInputError, ConfigError
from citerec.files.reading import read_whole
from citerec.types import Progress, QueryKind

if TYPE_CHECKING:
    from citerec.match.append import Appended
    from citerec.recommend import Recommender
    from citerec.recommendations import Recommendations
    from citerec.request import Request

FEW_QUERIES = 8  # up to here, opening torch costs more time than it saves
ALL = "all"
_RANKS = re.compile(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?")
FLAGS = {
    "--k": "k",
    "--encoder": "encoder",
    "--fusion": "fuse.method",
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

    model_config: ClassVar[ConfigDict] = ConfigDict(str_strip_whitespace=True)

    query: str | None = setting(
        None,
        "A file with a draft, or - for stdin: LaTeX, Typst, Markdown, Word, OpenDocument, RTF, PDF, HTML, text, "
        "JSON, BibTeX, RIS; or with many: JSONL, BibTeX, RIS, CSL-JSON.",
        min_length=1,
    )
    title: str | None = setting(
        None,
        "The title of the draft, in place of --query or of the title in it.",
        min_length=1,
    )
    abstract: str | None = setting(
        None, "The abstract, with --title, or in place of that in --query."
    )
    text: Literal["body", "abstract"] = setting(
        "body",
        "What is read of the draft: body, its sentences as well, or title and abstract alone.",
    )
    year: int | None = setting(
        None, "The year of the draft, in place of that in --query.", ge=1, le=9999
    )
    context: str | None = setting(
        None,
        "The sentence that needs a reference, with or without its draft; [CITE] marks the place. all: each "
        "sentence of the draft without a reference, most sure first, with 3 papers each.",
    )
    cited: Path | None = setting(
        None,
        "References of the draft: one id per line, a printed list, a .bib, or what index reads. They guide "
        "the ranking and are not recommended. Those that a document cites are used by themselves; none for "
        "no references.",
    )
    year_max: int | None = setting(
        None,
        "Latest year of papers and of known citations; the year of the query by default.",
        ge=1,
    )
    year_min: int | None = setting(None, "Earliest year of papers.", ge=1)
    exclude: Path | None = setting(
        None, "Papers to exclude: one id per line, or a .bib."
    )
    rejected: Path | None = setting(
        None,
        "Papers of former lists that do not fit, likewise: they do not come back, and the order of "
        "the others stays.",
    )


class ListOptions(Settings):
    """How the list is written."""

    format: str = setting(
        "table",
        "table, json, jsonl, trec, bibtex, ris, csl, doi, or a format that a package adds.",
    )
    fields: str | None = setting(
        None, "JSON: what else of each paper, such as authors,venue,doi,abstract."
    )
    output: Path | None = setting(None, "Output file, in place of stdout.")
    append: Path | None = setting(
        None,
        "Add the papers to this .bib or .ris, but those that it has; FILE.bak keeps what it was.",
    )
    pick: str = setting(
        ALL, "The ranks of the papers that --append adds, such as 1,3,7 or 1-5."
    )
    since: Path | None = setting(
        None,
        "Show only papers that are not in this former list (JSON), or in those of this folder.",
    )
    explain: bool = setting(False, "Add the reasons for each paper.")


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

    fields = checked_fields(shown)
    request = read_request(draft, config, explain=shown.explain)
    drafts = request.drafts
    ranks = picked_ranks(shown, request.k or config.k, batch=drafts.batch)
    former = former_list(shown.since, batch=drafts.batch) if shown.since else None
    for notice in drafts.notices:
        console.log(notice)
    # a bar would be mixed with the list
    to_terminal = shown.output is None and sys.stdout.isatty()
    empty: list[Recommendations] = []
    with (
        open_recommender(index, config, request, ray, console) as (recommender, many),
        (ConsoleOutput(quiet=True) if to_terminal else console).progress() as progress,
    ):
        listed = recommender.look_up(request)
        for missing in listed.not_found:
            console.detail(f"not in this corpus: {missing}")
        lists = many(request, listed, progress)
        if not drafts.batch or shown.format == "doi":
            lists = [*lists]  # others may be larger than memory
        if former:
            ids, day = former
            lists = [lists[0].without(ids, f"no new papers since {day}")]
            if lists[0]:
                console.log(f"{plural(len(lists[0]), 'new paper')} since {day}")
        written = in_turn(lists, len(drafts.queries), empty, progress)
        text = pieces(
            written, shown.format, batch=drafts.batch, color=to_terminal, fields=fields
        )
        write_pieces(text, shown.output)
    log_omitted(shown.format, lists, empty, len(drafts.queries), console)
    if shown.append:
        report_appended(lists[0].append(shown.append, pick=ranks), console)


def report_appended(done: "Appended", console: ConsoleOutput) -> None:
    """Log what a bibliography has now."""
    keys = f": {', '.join(done.keys)}" if done.keys else ""
    known = [paper.title or paper.id for paper in done.skipped]
    more = f"; the file has {len(known)} already: {some_of(known)}" if known else ""
    console.log(f"{plural(len(done.keys), 'paper')} added to {done.path}{keys}{more}")
    if done.backup:
        console.detail(f"the former content is in {done.backup}")


def in_turn(
    lists: "Iterable[Recommendations]",
    count: int,
    empty: "list[Recommendations]",
    progress: Progress,
) -> "Iterator[Recommendations]":
    """Yield each list as it comes; collect those that are empty."""
    progress("queries", 0, count)
    for number, answer in enumerate(lists, start=1):
        if not answer:
            empty.append(answer)
        yield answer
        progress("queries", number, count)


def log_omitted(
    kind: str,
    lists: "Iterable[Recommendations]",
    empty: "Sequence[Recommendations]",
    count: int,
    console: ConsoleOutput,
) -> None:
    """Log why lists are empty, and how many papers a list of DOIs leaves out, in one line each."""
    from citerec.bibliography.keys import paper_doi

    if empty and kind != "table":
        many = (
            f" for {len(empty):,} of {count:,} drafts (the first: {empty[0].query.id})"
        )
        console.log(
            f"nothing was found{many if count > 1 else ''}: {empty[0].empty_reason}"
        )
    if kind == "doi":
        papers = {paper.id: paper for answer in lists for paper in answer.papers}
        if missing := sum(not paper_doi(paper) for paper in papers.values()):
            console.log(
                f"{missing:,} of {plural(len(papers), 'recommended paper')} left out: no DOI; "
                "--format bibtex, ris or csl writes all papers"
            )


def former_list(path: Path, *, batch: bool) -> tuple[set[str], str]:
    """Return the ids in the lists at `path`, a file or a folder, and the day of the last, such as 2026-11-23."""
    if batch:
        raise ConfigError("--since needs a single draft")
    ids = set[str]()
    last = 0.0
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        try:
            ids |= {item["id"] for item in orjson.loads(read_whole(file))}
        except (ValueError, TypeError, KeyError) as error:
            expected = "expected a list that citerec recommend --format json wrote"
            raise BadInputError(file, expected) from error
        last = max(last, file.stat().st_mtime)
    return ids, f"{date.fromtimestamp(last)}" if last else "the first list"


def read_request(
    draft: DraftOptions, config: RecommendConfig, *, explain: bool
) -> "Request":
    """Read the draft and the lists of papers that the options name."""
    from citerec.drafts import read_queries
    from citerec.request import Request

    title = draft.title
    abstract = draft.abstract
    given = None
    if draft.query is not None:
        title = title and " ".join(title.split())
        with_body = draft.text == "body"
        given = read_queries(
            draft.query, title=title, abstract=abstract, with_body=with_body
        )
        title = None
        abstract = None
    return Request.of(
        given,
        title=title,
        abstract=abstract or "",
        year=draft.year,
        context=draft.context,
        k=config.k if "k" in config.model_fields_set else None,
        year_max=draft.year_max,
        year_min=draft.year_min,
        excluded=draft.exclude,
        cited=draft.cited,
        rejected=draft.rejected,
        explain=explain,
    )


@contextmanager
def open_recommender(
    index: Path | None,
    config: RecommendConfig,
    request: "Request",
    ray: str | None,
    console: ConsoleOutput,
) -> "Generator[tuple[Recommender, Any]]":
    """Open the index and the models; yield the recommender and its `recommend_many`, or that of a Ray cluster."""
    from citerec.rank.trees import load
    from citerec.recommend import Recommender

    folder = open_named(index)
    drafts = request.drafts
    config = config.replace(few_queries=len(drafts.queries) <= FEW_QUERIES)
    if drafts.queries[0].kind is QueryKind.REFERENCES:  # no draft that they could read
        config = config.replace(
            reranker="none", ranker="none", popularity=True, authors=True
        )
    if config.ranker != "none":
        # pandas and scikit-learn would take half a second to import
        load(hide_optional=True)
    recommender = Recommender(folder, config, console.log)
    of_encoder = f" of {recommender.encoder}" if recommender.encoder else ""
    papers = plural(folder.manifest.counts["papers"], "paper")
    names = " + ".join(recommender.retriever_names)
    console.detail(f"{folder.path}: {papers}, {names}{of_encoder}")
    if recommender.open_reranker:
        console.log(f"{recommender.open_reranker}")
    if ray is None or drafts.by_sentence:  # one draft needs no cluster
        yield recommender, recommender.recommend_many
        return
    from citerec.cluster.ray import connected, recommend_in_actors

    with connected(ray):
        threads = config.bm25.threads or 1
        yield recommender, partial(recommend_in_actors, recommender, threads=threads)


def checked_fields(shown: ListOptions) -> tuple[str, ...]:
    """Return the names that `--fields` lists; check the format and the output file before the work."""
    from citerec.export import Format, formats

    check_output(shown.output)
    if shown.format not in formats():
        raise ConfigError(
            f"--format {shown.format!r}: there is no such format; choose from {', '.join(formats())}"
        )
    if shown.fields is None:
        return ()
    from citerec.export.jsonl import check_fields

    if shown.format not in {Format.JSON, Format.JSONL}:
        raise ConfigError(
            f"--fields is for --format json and jsonl, not {shown.format}"
        )
    names = tuple(name for part in shown.fields.split(",") if (name := part.strip()))
    check_fields(names, "--fields: ")
    return names


def picked_ranks(shown: ListOptions, k: int, *, batch: bool) -> list[int] | None:
    """Return the ranks that `--pick` lists, such as 1,3,7 or 1-5; None for all. Check `--append` before the work."""
    if shown.append:
        from citerec.files.atomic import check_writable
        from citerec.match.append import read_reference_file

        if batch:
            raise ConfigError("--append needs a single draft")
        check_output(shown.append)
        check_writable(shown.append)
        read_reference_file(shown.append)
    if shown.pick == ALL:
        return None
    ranks: list[int] = []
    for part in shown.pick.split(","):
        match = _RANKS.fullmatch(part.strip())
        if not match or not (
            picked := range(int(match[1]), int(match[2] or match[1]) + 1)
        ):
            raise ConfigError(
                f"--pick {shown.pick!r}: expected ranks such as 1,3,7 or 1-5, or all"
            )
        ranks.extend(picked)
    if not shown.append:
        raise ConfigError("--pick needs --append")
    if max(ranks) > k:
        raise ConfigError(
            f"--pick {max(ranks)}: --k {k} gives too few papers; increase --k"
        )
    return ranks
