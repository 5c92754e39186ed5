"""Collects a corpus: resolve, snowball, write; or adds to one what is new since.

The corpus is written at the end; each file appears whole, and the last one, `collection.json`, has the checksum of the
papers.
"""

import hashlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import Field, model_validator

from citerec.bibliography.entry import Entry
from citerec.collect import openalex, semanticscholar
from citerec.collect.client import Client, ResponseCache, open_cache
from citerec.collect.snowball import (
    EXPANDED,
    HEADER,
    LEAST_CITING,
    Source,
    citing_each,
    identifiers,
    newer,
    resolve,
    snowball,
)
from citerec.collect.source import CollectError, Service, SourceName
from citerec.config import Settings
from citerec.corpus import readers
from citerec.corpus.tools import canonical_line, write_lines
from citerec.errors import BadInputError, ConfigError, writing
from citerec.io import replacing, sha256_of
from citerec.machine import versions
from citerec.text import csv_cell, plural
from citerec.types import Log, Paper, Progress, no_log, no_progress

PAPERS, RECORD, UNRESOLVED = "papers.jsonl.gz", "collection.json", "unresolved.tsv"
SEARCH_SEEDS = 100  # results of a search that become seeds
FORMAT = 1  # of collection.json
LATE = timedelta(days=180)  # how long after its publication a service may learn of a paper
REFERENCES = 40  # of a paper, about
LATENCY = 0.4  # seconds from a request to its answer, about
MAX_DOLLARS, MAX_MINUTES = openalex.ALLOWANCE, 120.0  # beyond these --yes is needed


class CollectOptions(Settings):
    """What is collected around references or a search, and how."""

    search: str = Field(
        default="",
        description="Collect around the best results of a search, in place of references.",
    )
    papers: int = Field(
        default=5000,
        ge=1,
        le=200_000,
        description="Papers of the corpus; with --update, papers to add.",
    )
    source: SourceName | None = Field(
        default=None,
        description="OpenAlex (key: OPENALEX_API_KEY; the default if set) or Semantic Scholar (key: S2_API_KEY, "
        "optional).",
    )
    rate: float | None = Field(
        default=None,
        description="Requests a second; by default 10 for OpenAlex, 1 for Semantic Scholar, a third without a key.",
    )
    update: bool = Field(
        default=False, description="Add what is new since to a finished collection."
    )
    force: bool = Field(default=False, description="Replace a finished collection.")


class CollectConfig(CollectOptions):
    """The options of a collection, and its references."""

    entries: tuple[Entry, ...] = ()
    name: str = ""  # of the list, for the record

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.entries) == bool(self.search.strip()):
            raise ValueError(
                "name references (a file, DOIs or arXiv ids), or a --search, and not both"
            )
        if self.update and self.force:
            raise ValueError("--update adds to a collection, --force replaces it: use one of them")
        return self


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a collection takes, about."""

    requests: int
    minutes: float
    dollars: float | None = None  # None for a service without prices

    def __str__(self) -> str:
        duration = "under a minute" if self.minutes < 1 else plural(round(self.minutes), "minute")
        free = f"of the ${openalex.ALLOWANCE:.0f} that is free each day"
        price = "" if self.dollars is None else f", ${self.dollars:.2f} {free}"
        return f"about {self.requests:,} requests, {duration}{price}"


@dataclass(frozen=True, slots=True)
class CollectReport:
    """What a run did."""

    record: Mapping[str, Any]  # the content of collection.json
    unresolved: tuple[tuple[str, ...], ...]  # the cells of `snowball.HEADER` for each reference
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
    previous: Mapping[str, Any]  # the record of the collection to update; empty for a new one

    @property
    def estimate(self) -> Estimate:
        """What it takes, from the length of its list."""
        entries, papers = self.config.entries, self.config.papers
        searches = SEARCH_SEEDS if self.config.search else 0
        with_id = sum(bool(identifiers(entry)) for entry in entries)
        requests = titles = len(entries) - with_id + bool(searches)
        seeds = len(entries) + searches
        first = seeds * (REFERENCES + LEAST_CITING)
        rounds = ceil(max(papers - first, 0) / (EXPANDED * REFERENCES))
        dollars = None
        if self.source is SourceName.OPENALEX:
            listed = seeds * min(citing_each(papers, seeds), 2 * LEAST_CITING)
            listed += rounds * EXPANDED * LEAST_CITING
            fetched = (seeds + rounds * EXPANDED) * REFERENCES
            lists = ceil(with_id / 50) + sum(ceil(n / openalex.PAGE) for n in (listed, fetched))
            requests += lists
            dollars = lists * openalex.LIST_DOLLARS + titles * openalex.SEARCH_DOLLARS
        else:
            requests += sum(ceil(n / semanticscholar.BATCH) for n in (len(entries), papers)) + 1
            requests += seeds + rounds * EXPANDED
        return Estimate(requests, requests * max(1 / self.service.rate, LATENCY) / 60, dollars)

    @property
    def query(self) -> dict[str, Any]:
        """What is collected, for the record."""
        config = self.config
        texts = [[*identifiers(entry), entry.title] for entry in config.entries]
        digest = hashlib.sha256(orjson.dumps([texts, config.search, config.papers])).hexdigest()
        return {
            "name": config.name,
            "references": len(config.entries),
            "search": config.search,
            "papers": config.papers,
            "sha256": digest,
        }


def make_plan(folder: Path, config: CollectConfig) -> Plan:
    """Check the options, keys and the folder; nothing is sent or written.

    Raises:
        ConfigError: If they contradict each other.
    """
    record = read_record(folder) if not config.force else {}
    has_key = os.environ.get("OPENALEX_API_KEY") or os.environ.get("OPENALEX_URL")
    default = SourceName.OPENALEX if has_key else SourceName.S2
    source = config.source or (SourceName(record["source"]) if record else default)
    if record and record["source"] != source:
        raise ConfigError(
            f"{folder} was collected from {record['source']}, whose ids differ from those of {source}; "
            "name another folder with --output"
        )
    if config.update and not record:
        raise ConfigError(f"{folder} has no finished collection to update; leave --update out")
    service = (openalex if source is SourceName.OPENALEX else semanticscholar).service(config.rate)
    return Plan(config, folder, source, service, record if config.update else {})


def check_size(plan: Plan) -> None:
    """Raise a ConfigError for a collection whose estimate is beyond `MAX_DOLLARS` or `MAX_MINUTES`."""
    estimate = plan.estimate
    if (estimate.dollars or 0) > MAX_DOLLARS or estimate.minutes > MAX_MINUTES:
        raise ConfigError(
            f"this would take {estimate}, more than ${MAX_DOLLARS:.0f} or {MAX_MINUTES:.0f} minutes; "
            "start it with --yes, or lower --papers"
        )


def is_complete(plan: Plan) -> bool:
    """Whether the folder has this very collection already; raise a ConfigError if it has another one."""
    record = {} if plan.config.force or plan.config.update else read_record(plan.folder)
    if record and record["query"]["sha256"] != plan.query["sha256"]:
        raise ConfigError(
            f"{plan.folder} has another collection; add to it with --update, replace it with --force, "
            "or name another folder with --output"
        )
    return bool(record)


def collect(plan: Plan, progress: Progress = no_progress, log: Log = no_log) -> CollectReport:
    """Collect a corpus into the folder of the plan; an interrupted run is continued by the same call.

    Raises:
        CollectError: If the service fails, or knows none of the references.
        OutputError: If the folder cannot be written.
    """
    started = datetime.now(UTC)
    run = f"update of {plan.previous['finished']}" if plan.previous else "collection"
    with open_cache(plan.folder, run) as cache, _open(plan, cache, log) as (client, source):
        if len(cache):
            log(f"continuing: {len(cache):,} responses of an interrupted run are used again")
        seeds, unresolved = _seeds(plan.config, source, progress)
        if plan.previous:
            ids = _update(plan, source, seeds, progress)
        else:
            ids = snowball(source, seeds, plan.config.papers, progress)
        works = source.fetch(ids)
        papers = [works[i].paper for i in ids if i in works]
        record = _write_corpus(plan, papers, seeds, unresolved, started, client)
    return CollectReport(record, tuple(unresolved), client.sent, client.reused, len(papers))


@contextmanager
def _open(plan: Plan, cache: ResponseCache, log: Log) -> Generator[tuple[Client, Source]]:
    client = Client(plan.service, cache, log)
    try:
        if plan.source is SourceName.OPENALEX:
            yield client, openalex.OpenAlex(client)
        else:
            yield client, semanticscholar.SemanticScholar(client, log)
    finally:
        client.close()


def _seeds(
    config: CollectConfig, source: Source, progress: Progress
) -> tuple[list[str], list[tuple[str, ...]]]:
    if config.search:
        ids, unresolved = source.search(config.search, SEARCH_SEEDS), []
    else:
        ids, unresolved = resolve(config.entries, source, progress)
    known = source.fetch(ids)
    if not known:
        what = f"no result for {config.search!r}" if config.search else "none of the references"
        raise CollectError(f"{source.service.title} has {what}; nothing was collected")
    return list(known), unresolved


def _update(plan: Plan, source: Source, seeds: list[str], progress: Progress) -> list[str]:
    """Return the ids of the works to add: around new references, and those that cite the old ones since."""
    known = {paper.id for paper in read_collected(plan.folder)}
    new_seeds = [i for i in seeds if i not in set(plan.previous["seeds"])]
    around = snowball(source, new_seeds, plan.config.papers, progress) if new_seeds else []
    since = (datetime.fromisoformat(plan.previous["started"]) - LATE).date().isoformat()
    room = max(plan.config.papers - len(around), 0)
    later = newer(source, plan.previous["seeds"], since, known | set(around), room)
    return [i for i in dict.fromkeys([*around, *later]) if i not in known]


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a finished collection; empty if there is none."""
    file = folder / RECORD
    if not file.is_file():
        return {}
    try:
        record: Any = orjson.loads(file.read_bytes())
        datetime.fromisoformat(record["started"])
        if SourceName(record["source"]) and {"seeds", "runs", "finished", "query"} <= record.keys():
            return record
    except (ValueError, KeyError, TypeError):  # JSONDecodeError is a ValueError
        pass
    raise BadInputError(file, "not a record of citerec collect; collect anew with --force")


def read_collected(folder: Path) -> Iterator[Paper]:
    """Yield the papers of a finished collection, in order."""
    for located in readers.read_papers(readers.Source(folder, (folder / PAPERS,)), "canonical"):
        if not isinstance(located.paper, Paper):
            raise located.paper
        yield located.paper


def _write_corpus(
    plan: Plan,
    papers: Sequence[Paper],
    seeds: Sequence[str],
    unresolved: Sequence[tuple[str, ...]],
    started: datetime,
    client: Client,
) -> dict[str, Any]:
    """Write papers, the table of unresolved references, and the record, each file whole; return the record.

    An update keeps the papers that the collection has, unchanged.
    """
    folder = plan.folder
    counts = {"papers": 0, "with_abstract": 0, "references": 0}
    with write_lines(folder / PAPERS) as write:
        for part in (read_collected(folder) if plan.previous else (), papers):
            for paper in part:
                write(canonical_line(paper))
                counts["papers"] += 1
                counts["with_abstract"] += bool(paper.abstract)
                counts["references"] += len(paper.citations)
    run = {
        "started": started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "requests": client.sent + client.reused,
        "dollars": round(client.dollars, 4) if plan.source is SourceName.OPENALEX else None,
    }
    record = {
        "format": FORMAT,
        "source": plan.source.value,
        "service": client.service.title,
        "query": plan.query,
        "started": run["started"],
        "finished": run["finished"],
        "seeds": list(dict.fromkeys([*plan.previous.get("seeds", []), *seeds])),
        "resolved": len(seeds),
        "unresolved": len(unresolved),
        "runs": [*plan.previous.get("runs", []), run],
        "versions": versions(("citerec", "httpx", "rapidfuzz")),
        "counts": counts,
        "papers_sha256": sha256_of(folder / PAPERS),
    }
    rows = ("\t".join(csv_cell(" ".join(c.split())) for c in r) for r in (HEADER, *unresolved))
    texts = {
        UNRESOLVED: "".join(f"{row}\n" for row in rows),
        RECORD: orjson.dumps(record, option=orjson.OPT_INDENT_2).decode() + "\n",
    }
    for name, text in texts.items():
        with writing(folder), replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return record
