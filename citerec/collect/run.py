"""Collects a corpus: resolve, snowball, write; or adds to one what is new since."""

import hashlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import Field, model_validator

from citerec.bibliography.entry import Entry
from citerec.collect import openalex, semanticscholar
from citerec.collect.client import Client
from citerec.collect.estimate import MAX_DOLLARS, MAX_MINUTES, Estimate, estimate
from citerec.collect.resolve import HEADER, Resolved, Unresolved, identifiers, resolve
from citerec.collect.service import Politeness, Service, SourceName
from citerec.collect.snowball import newer, snowball
from citerec.collect.store import (
    ResponseCache,
    open_cache,
    read_collected,
    read_record,
    remove_cache,
    write_corpus,
)
from citerec.collect.work import CollectError, Source
from citerec.config import Settings
from citerec.errors import ConfigError
from citerec.machine import versions
from citerec.types import Log, Paper, Progress, no_progress

SEARCH_SEEDS = 100  # results of a search that become seeds
FORMAT = 1  # of collection.json
LATE = timedelta(days=180)  # how long after its publication a service may learn of a paper


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
class CollectReport:
    """What a run did."""

    record: Mapping[str, Any]  # the content of collection.json
    unresolved: tuple[Unresolved, ...]
    sent: int  # requests
    reused: int  # responses of an earlier run that was interrupted
    added: int  # papers


@dataclass(frozen=True, slots=True)
class Plan:
    """A collection that is ready to start."""

    config: CollectConfig
    folder: Path
    source: SourceName
    service: Service = field(repr=False)
    rate: float  # requests per second
    previous: Mapping[str, Any]  # the record of the collection to update; empty for a new one
    estimate: Estimate

    @property
    def run(self) -> str:
        """The name of this run in the work folder; responses of another run are not used."""
        return f"update of {self.previous['finished']}" if self.previous else "collection"


def make_plan(folder: Path, config: CollectConfig) -> Plan:
    """Check the options and the folder, and estimate the work; nothing is sent or written.

    Raises:
        ConfigError: If a key is missing, or the options contradict each other or the collection in the folder.
    """
    record = read_record(folder) if not config.force else {}
    source = config.source or (SourceName(record["source"]) if record else default_source())
    if record and record["source"] != source:
        raise ConfigError(
            f"{folder} was collected from {record['source']}, whose ids differ from those of {source}; "
            "name another folder with --output"
        )
    if config.update and not record:
        raise ConfigError(f"{folder} has no finished collection to update; leave --update out")
    service = (openalex if source is SourceName.OPENALEX else semanticscholar).service()
    rate = _default_rate(source, service) if config.rate is None else config.rate
    Politeness(rate=rate)
    expected = estimate(
        config.entries,
        config.papers,
        rate,
        is_openalex=source is SourceName.OPENALEX,
        search_seeds=SEARCH_SEEDS if config.search else 0,
    )
    previous = record if config.update else {}
    return Plan(config, folder, source, service, rate, previous, expected)


def default_source() -> SourceName:
    """Return OpenAlex if its key or a mirror is set, else Semantic Scholar."""
    has_key = os.environ.get("OPENALEX_API_KEY") or os.environ.get("OPENALEX_URL")
    return SourceName.OPENALEX if has_key else SourceName.S2


def _default_rate(source: SourceName, service: Service) -> float:
    if source is SourceName.OPENALEX:
        return openalex.RATE
    return semanticscholar.RATE if service.key else semanticscholar.RATE_WITHOUT_KEY


def check_size(plan: Plan) -> None:
    """Refuse a collection that is larger than one would start without a thought.

    Raises:
        ConfigError: If its estimate is beyond `MAX_DOLLARS` or `MAX_MINUTES`.
    """
    if plan.estimate.is_large:
        raise ConfigError(
            f"this would take {plan.estimate}, more than ${MAX_DOLLARS:.0f} or {MAX_MINUTES:.0f} minutes; "
            "start it with --yes, or lower --papers"
        )


def is_complete(plan: Plan) -> bool:
    """Whether the folder has this very collection already.

    Raises:
        ConfigError: If it has another one.
    """
    record = {} if plan.config.force or plan.config.update else read_record(plan.folder)
    if record and record.get("query", {}).get("sha256") != _query_of(plan.config)["sha256"]:
        raise ConfigError(
            f"{plan.folder} has another collection; add to it with --update, replace it with --force, "
            "or name another folder with --output"
        )
    return bool(record)


def collect(
    plan: Plan, progress: Progress = no_progress, log: Log = lambda _: None
) -> CollectReport:
    """Collect a corpus; an interrupted run is continued by the same call.

    Returns:
        The report; the files are in the folder of the plan.

    Raises:
        CollectError: If the service fails, or knows none of the references.
        OutputError: If the folder cannot be written.
    """
    started = datetime.now(UTC)
    with open_cache(plan.folder, plan.run) as cache, _open(plan, cache, log) as (client, source):
        if len(cache):
            log(f"continuing: {len(cache):,} responses of an interrupted run are used again")
        resolved = _seeds(plan.config, source, progress)
        if plan.previous:
            ids = _update(plan, source, resolved, progress)
        else:
            ids = snowball(source, resolved.ids, plan.config.papers, progress)
        works = source.fetch(ids)
        record = _record(plan, resolved, started, client)
        rows = [HEADER, *(one.row for one in resolved.unresolved)]
        papers = (works[i].paper for i in ids if i in works)
        record = write_corpus(plan.folder, _all_papers(plan, papers), rows, record)
        sent, reused = client.sent, client.reused
    remove_cache(plan.folder)
    return CollectReport(record, resolved.unresolved, sent, reused, len(works))


@contextmanager
def _open(plan: Plan, cache: ResponseCache, log: Log) -> Generator[tuple[Client, Source]]:
    client = Client(plan.service, Politeness(rate=plan.rate), cache, log)
    try:
        if plan.source is SourceName.OPENALEX:
            yield client, openalex.OpenAlex(client, log)
        else:
            yield client, semanticscholar.SemanticScholar(client, log)
    finally:
        client.close()


def _seeds(config: CollectConfig, source: Source, progress: Progress) -> Resolved:
    if config.search:
        found = source.search(config.search, SEARCH_SEEDS)
        resolved = Resolved(tuple(dict.fromkeys(found)), (), 0)
    else:
        resolved = resolve(config.entries, source, progress)
    known = source.fetch(resolved.ids)
    if not known:
        what = f"no result for {config.search!r}" if config.search else "none of the references"
        raise CollectError(f"{source.title} has {what}; nothing was collected")
    return Resolved(
        tuple(i for i in resolved.ids if i in known), resolved.unresolved, resolved.references
    )


def _update(plan: Plan, source: Source, resolved: Resolved, progress: Progress) -> list[str]:
    """Return the ids of the works to add: around new references, and those that cite the old ones since."""
    known = {paper.id for paper in read_collected(plan.folder)}
    new_seeds = [i for i in resolved.ids if i not in set(plan.previous["seeds"])]
    around = snowball(source, new_seeds, plan.config.papers, progress) if new_seeds else []
    since = (datetime.fromisoformat(plan.previous["started"]) - LATE).date().isoformat()
    room = max(plan.config.papers - len(around), 0)
    later = newer(source, plan.previous["seeds"], since, known | set(around), room)
    return [i for i in dict.fromkeys([*around, *later]) if i not in known]


def _all_papers(plan: Plan, new: Iterator[Paper]) -> Iterator[Paper]:
    """Yield the papers that an updated collection has, unchanged, and then the new ones."""
    if plan.previous:
        yield from read_collected(plan.folder)
    yield from new


def _query_of(config: CollectConfig) -> dict[str, Any]:
    texts = [[*identifiers(entry), entry.title] for entry in config.entries]
    digest = hashlib.sha256(orjson.dumps([texts, config.search, config.papers])).hexdigest()
    return {
        "name": config.name,
        "references": len(config.entries),
        "search": config.search,
        "papers": config.papers,
        "sha256": digest,
    }


def _record(plan: Plan, resolved: Resolved, started: datetime, client: Client) -> dict[str, Any]:
    """Return what `collection.json` holds, without counts and checksum."""
    seeds: Sequence[str] = list(dict.fromkeys([*plan.previous.get("seeds", []), *resolved.ids]))
    run = {
        "started": started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "requests": client.sent + client.reused,
        "dollars": round(client.dollars, 4) if plan.source is SourceName.OPENALEX else None,
    }
    return {
        "format": FORMAT,
        "source": plan.source.value,
        "service": client.service.title,
        "query": _query_of(plan.config),
        "started": run["started"],
        "finished": run["finished"],
        "seeds": seeds,
        "resolved": len(resolved.ids),
        "unresolved": len(resolved.unresolved),
        "runs": [*plan.previous.get("runs", []), run],
        "versions": versions(("citerec", "httpx", "rapidfuzz")),
    }
