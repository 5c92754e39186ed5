"""Collects a corpus: resolve, snowball, write; or adds to one what is new since."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Self

import orjson
from pydantic import model_validator

from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import title_key
from citerec.build.corpora import canonical_line, write_lines
from citerec.collect.client import (
    Client,
    CollectError,
    Service,
    open_cache,
    reading_answers,
)
from citerec.collect.snowball import (
    EXPANDED,
    HEADER,
    LEAST_CITING,
    citing_each,
    identifiers,
    newer,
    resolve,
    snowball,
)
from citerec.collect.sources import (
    OpenAlex,
    SemanticScholar,
    Source,
    SourceName,
    find_service,
    query_words,
)
from citerec.config import Settings, setting
from citerec.corpus import readers
from citerec.display import csv_cell, one_line, plural
from citerec.encode.machine import versions
from citerec.errors import ConfigError
from citerec.files.checksums import indented_json, sha256_of
from citerec.types import Json, Log, Paper, Progress, no_log, no_progress

PAPERS = "papers.jsonl.gz"
RECORD = readers.COLLECTION
UNRESOLVED = "unresolved.tsv"
SEARCH_SEEDS = 100  # results of a search that become seeds
# how long after its publication a service may learn of a paper
LATE = timedelta(days=180)
REFERENCES = 40  # of a paper, about
LATENCY = 0.4  # seconds from a request to its answer, about
MAX_MINUTES = 120  # beyond it, or beyond what is free each day, --yes is needed
# each day at OpenAlex, with a key and without one
FREE_DOLLARS = 1.0
KEYLESS_DOLLARS = 0.1


class CollectOptions(Settings):
    """What is collected around references or a search, and how."""

    search: str = setting(
        "", "Collect around the best results of a search, in place of references."
    )
    semantic: bool = setting(
        False,
        "Search OpenAlex by meaning: --search is a text, such as title and abstract of a draft, of which 2,000 "
        "characters are sent.",
    )
    papers: int = setting(
        5000, "Papers of the corpus; with --update, papers to add.", ge=1, le=200_000
    )
    source: SourceName | None = setting(
        None,
        "OpenAlex (key: OPENALEX_API_KEY; the default if set) or Semantic Scholar (key: S2_API_KEY, "
        "optional).",
    )
    rate: float | None = setting(
        None,
        "Requests a second; by default 10 for OpenAlex, 1 for Semantic Scholar, a third without a key.",
        ge=0.001,
        le=1000,
    )
    update: bool = setting(
        False,
        "Add what is new since to a finished collection; without references, around those that it has.",
    )
    force: bool = setting(False, "Replace a finished collection.")


class CollectConfig(CollectOptions):
    """The options of a collection, and its references."""

    entries: tuple[Entry, ...] = ()
    name: str = ""  # of the list, for the record

    @model_validator(mode="after")
    def _check(self) -> Self:
        sources = bool(self.entries) + bool(title_key(self.search))
        if sources > 1 or not (sources or self.update):
            raise ValueError(
                "name references (a file, DOIs or arXiv ids), or words to --search, and not both"
            )
        if self.semantic and not self.search:
            raise ValueError("--semantic searches with a text: give --search")
        if self.update and self.force:
            raise ValueError(
                "--update adds to a collection, --force replaces it: use one of them"
            )
        return self


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a collection takes, about."""

    requests: int
    minutes: float
    dollars: float | None  # None for a service without prices
    free: float  # dollars of a day

    def __str__(self) -> str:
        duration = (
            "under a minute"
            if self.minutes < 1
            else plural(round(self.minutes), "minute")
        )
        free = f"of the ${self.free:.2f}".removesuffix(".00") + " that is free each day"
        price = "" if self.dollars is None else f", ${self.dollars:.2f} {free}"
        return f"about {self.requests:,} requests, {duration}{price}"


@dataclass(frozen=True, slots=True)
class CollectReport:
    """What a run did."""

    record: Json  # the content of collection.json
    # the cells of `snowball.HEADER` for each reference
    unresolved: tuple[tuple[str, ...], ...]
    sent: int  # requests
    reused: int  # responses of an earlier run that was interrupted
    added: int  # papers


@dataclass(frozen=True, slots=True)
class Plan:
    """A collection that is ready to start."""

    config: CollectConfig
    folder: Path
    source: SourceName
    service: Service
    query: Json  # what is collected, for the record
    previous: Json  # the record of the collection to update; empty for a new one
    is_complete: bool  # whether the folder has this very collection already

    @property
    def estimate(self) -> Estimate:
        """What it takes, from the length of its list."""
        entries = self.config.entries
        papers = self.config.papers
        searches = SEARCH_SEEDS if self.config.search else 0
        if self.config.semantic:
            searches = OpenAlex.nearest
        with_id = sum(bool(identifiers(entry)) for entry in entries)
        titles = len(entries) - with_id + bool(searches)
        seeds = len(entries) + searches
        first = seeds * (REFERENCES + LEAST_CITING)
        expanded = ceil(max(papers - first, 0) / (EXPANDED * REFERENCES)) * EXPANDED
        dollars = None
        free = FREE_DOLLARS
        if self.source is SourceName.OPENALEX:
            free = FREE_DOLLARS if self.service.key else KEYLESS_DOLLARS
            listed = seeds * min(citing_each(papers, seeds), 2 * LEAST_CITING)
            listed += expanded * LEAST_CITING
            lists = ceil(with_id / OpenAlex.dois) + ceil(listed / OpenAlex.batch)
            lists += ceil((seeds + expanded) * REFERENCES / OpenAlex.batch)
            dollars = lists * OpenAlex.list_dollars + titles * OpenAlex.search_dollars
            if self.config.semantic:
                dollars += OpenAlex.semantic_dollars - OpenAlex.search_dollars
        else:
            lists = (
                sum(ceil(n / SemanticScholar.batch) for n in (len(entries), papers)) + 1
            )
            lists += seeds + expanded
        requests = titles + lists
        minutes = requests * max(1 / self.service.rate, LATENCY) / 60
        return Estimate(requests, minutes, dollars, free)


def make_plan(folder: Path, config: CollectConfig) -> Plan:
    """Check the options, keys and the folder; nothing is sent or written."""
    record = read_record(folder) if not config.force else {}
    has_key = os.environ.get("OPENALEX_API_KEY") or os.environ.get("OPENALEX_URL")
    default = SourceName.OPENALEX if has_key else SourceName.S2
    source = config.source or SourceName(record.get("source", default))
    if record and record["source"] != source:
        raise ConfigError(
            f"{folder} was collected from {record['source']}, whose ids differ from those of {source}; "
            "name another folder with --output"
        )
    if config.update and not record:
        raise ConfigError(
            f"{folder} has no finished collection to update; make one: citerec collect REFERENCES --output {folder}"
        )
    query = _query(config)
    if config.update and not (config.entries or config.search):
        query = record["query"]
        if not query.get("semantic"):  # a draft's text is sent once
            config = config.replace(search=query["search"])
    is_complete = bool(record) and not config.update
    if is_complete and record["query"]["sha256"] != query["sha256"]:
        raise ConfigError(
            f"{folder} has another collection; add to it with --update, replace it with --force, "
            "or name another folder with --output"
        )
    if config.semantic and source is not SourceName.OPENALEX:
        raise ConfigError("--semantic searches OpenAlex: add --source openalex")
    service = find_service(source, config.rate)
    previous = record if config.update else {}
    return Plan(config, folder, source, service, query, previous, is_complete)


def _query(config: CollectConfig) -> Json:
    """Return what is collected, for the record."""
    texts = [[*identifiers(entry), entry.title] for entry in config.entries]
    described = [texts, config.search, config.papers]
    if config.semantic:
        described.append("semantic")
    return {
        "name": config.name,
        "references": len(config.entries),
        "search": config.search,
        "semantic": config.semantic,
        "papers": config.papers,
        "sha256": hashlib.sha256(orjson.dumps(described)).hexdigest(),
    }


def folder_name(name: str) -> str:
    """Return the name of the folder of a collection: the words of a name."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")[:60] or "references"


def check_size(estimate: Estimate) -> None:
    """Raise a ConfigError for a collection beyond what is free each day, or beyond `MAX_MINUTES`."""
    if (estimate.dollars or 0) > estimate.free or estimate.minutes > MAX_MINUTES:
        key = (
            ""
            if estimate.free == FREE_DOLLARS
            else "set OPENALEX_API_KEY (a free key has $1), "
        )
        raise ConfigError(
            f"this would take {estimate}, more than ${estimate.free:.2f} or {MAX_MINUTES} minutes; "
            f"{key}start it with --yes, or lower --papers"
        )


def collect(
    plan: Plan, progress: Progress = no_progress, log: Log = no_log
) -> CollectReport:
    """Collect a corpus into the folder of the plan; an interrupted run is continued by the same call."""
    started = datetime.now(UTC)
    config = plan.config
    previous = plan.previous
    run = f"update of {previous['finished']}" if previous else "collection"
    with open_cache(plan.folder, run) as cache:
        if kept := len(list(cache.iterdir())):
            log(f"continuing: {kept:,} responses of an interrupted run are used again")
        client = Client(plan.service, cache, log, 10_000 + 10 * plan.estimate.requests)
        kind = OpenAlex if plan.source is SourceName.OPENALEX else SemanticScholar
        with closing(client.http), reading_answers(plan.service):
            source = kind(client)
            unresolved = list[tuple[str, ...]]()
            source.elided |= {*previous.get("without_references", ())}
            if config.semantic and isinstance(source, OpenAlex):
                ids = source.near(config.search)
            elif config.search:
                log(f"searching for: {query_words(config.search)}")
                ids = source.search(config.search, SEARCH_SEEDS)
            elif config.entries:
                ids, unresolved = resolve(config.entries, source, progress)
            else:
                ids = previous["seeds"]
            if not (seeds := list(source.fetch(ids))):
                text = config.search
                what = f"no result for {text!r}" if text else "none of the references"
                raise CollectError(
                    f"{plan.service.title} has {what}; nothing was collected"
                )
            if previous:
                # around new references, and what cites the old ones since
                known = {paper.id for paper in read_collected(plan.folder)}
                added = [i for i in seeds if i not in set(previous["seeds"])]
                around = snowball(source, added, config.papers, progress)
                since = (
                    (datetime.fromisoformat(previous["started"]) - LATE)
                    .date()
                    .isoformat()
                )
                room = max(config.papers - len(around), 0)
                later = newer(
                    source, previous["seeds"], since, known | set(around), room
                )
                ids = [i for i in dict.fromkeys([*around, *later]) if i not in known]
            else:
                ids = snowball(source, seeds, config.papers, progress)
            papers = list(source.fetch(ids).values())
        times = {
            "started": started.isoformat(timespec="seconds"),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        this_run = {
            **times,
            "requests": client.sent + client.reused,
            "dollars": round(source.dollars, 4) or None,
        }
        record = {
            "format": 1,
            "source": plan.source.value,
            "service": plan.service.title,
            "query": plan.query,
            **times,
            "seeds": list(dict.fromkeys([*previous.get("seeds", []), *seeds])),
            "resolved": len(seeds),
            "unresolved": (
                len(unresolved) if config.entries else previous.get("unresolved", 0)
            ),
            "runs": [*previous.get("runs", []), this_run],
        }
        _write(plan, source, papers, record, unresolved)
    return CollectReport(
        record, tuple(unresolved), client.sent, client.reused, len(papers)
    )


def read_record(folder: Path) -> Json:
    """Return the record of a finished collection; empty if there is none."""
    file = folder / RECORD
    return orjson.loads(file.read_bytes()) if file.is_file() else {}


def read_collected(folder: Path) -> Iterator[Paper]:
    """Yield the papers of a finished collection, in order."""
    for located in readers.read_papers(
        readers.Source(folder, (folder / PAPERS,)), "canonical"
    ):
        if not isinstance(located.paper, Paper):
            raise located.paper
        yield located.paper


def _write(
    plan: Plan,
    source: Source,
    papers: Sequence[Paper],
    record: Json,
    unresolved: Sequence[tuple[str, ...]],
) -> None:
    """Write papers, those of an updated collection first, the unresolved references and the record, each file whole."""
    folder = plan.folder
    elided = list[str]()
    counts = {"papers": 0, "with_abstract": 0, "references": 0}
    with write_lines(folder / PAPERS) as write:
        for paper in chain(read_collected(folder) if plan.previous else (), papers):
            citations = tuple(
                dict.fromkeys([*paper.citations, *source.links[paper.id]])
            )
            write(canonical_line(replace(paper, citations=citations)))
            counts["papers"] += 1
            counts["with_abstract"] += bool(paper.abstract)
            counts["references"] += len(citations)
            if paper.id in source.elided:
                elided.append(paper.id)
    record |= {
        "without_references": elided,
        "versions": versions(("citerec", "httpx", "rapidfuzz")),
        "counts": counts,
        "identified": {f"{plan.service.title} (citation search)": counts["papers"]},
        "papers_sha256": sha256_of(folder / PAPERS),
    }
    if plan.config.entries or not plan.previous:
        with write_lines(folder / UNRESOLVED) as write:
            for row in (HEADER, *unresolved):
                cells = "\t".join(csv_cell(one_line(cell)) for cell in row)
                write(f"{cells}\n".encode())
    with write_lines(folder / RECORD) as write:
        write(indented_json(record))
