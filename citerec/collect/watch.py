"""Follows a collected corpus for drafts: adds what is new to it, and announces what of that the drafts should cite.

A paper is new to a draft if the corpus got it after the draft was first followed. Its place in the corpus states that,
whatever the clock says. It is announced once, when it is among the best papers for the draft.

    new-papers.atom       the feed
    new-papers.atom.json  what was announced for which draft

The feed is made from the second file, which is written first: what a killed run announced is in the feed of the next
one. News are marked as sent after their mail: a run that is killed in between sends that mail twice.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import orjson

from citerec.build.index import BuildConfig, grow_index
from citerec.collect.feed import WatchConfig, atom, clean, described, send
from citerec.collect.run import Plan, collect, read_collected
from citerec.config import RecommendConfig
from citerec.display import plural
from citerec.errors import BadInputError
from citerec.files.atomic import locked, replacing
from citerec.files.checksums import indented_json
from citerec.files.reading import read_whole
from citerec.recommend import Recommender
from citerec.request import Request
from citerec.types import Json, Log, Progress, no_log, no_progress

MOST_ENTRIES = 500  # of the feed, the latest


def watch(
    plan: Plan,
    index: Path,
    drafts: Mapping[str, Request],
    feed: Path,
    config: WatchConfig,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> list[Json]:
    """Update a collection and its index; announce new papers in a feed and, if `config` has an address, by mail.

    Args:
        plan: The update of a collection.
        index: The index of the collection.
        drafts: What is recommended for, each by a name that stays.
        feed: The file of the feed; what was announced is kept beside it.
        config: Which papers are announced, and how.
        progress: As `collect` and `grow_index` call it.
        log: Receives what `collect` logs, and a line for each draft that was not followed before.

    Returns:
        What was announced, the best of each draft first: `title`, `link`, `text`, and the title of the draft, `draft`.

    Raises:
        LockedError: If another run uses the feed.
        CollectError: If the service cannot be reached: nothing was announced, and the next run catches up. Or if the
            mail cannot be sent: the feed is written, and the next run sends it.
        CiterecError: If a file or the index cannot be read or written.
    """
    kept = feed.with_name(f"{feed.name}.json")
    with locked(feed):
        state = _read(kept)
        followed: dict[str, int] = state["drafts"]
        announced: list[Json] = state["announced"]
        report = collect(plan, progress, log)
        log(f"{plan.folder}: {plural(report.added, 'paper')} added")
        grow_index(index, BuildConfig(), corpus=plan.folder, progress=progress)
        papers = [paper.id for paper in read_collected(plan.folder)]
        collected = report.record["runs"][0]["started"]
        known = {item["id"] for item in announced}
        # no news are older than former ones, whatever the clock says
        at = max([datetime.now(UTC).isoformat(), *(n["at"] for n in announced[-1:])])
        recommender = Recommender(index, RecommendConfig(few_queries=True, k=config.k))
        news = list[Json]()
        for file, request in drafts.items():
            # the year that a draft states is over when it is followed
            queries = [replace(query, year=None) for query in request.drafts.queries]
            for found in recommender.recommend_many(request.with_queries(queries)):
                draft = f"{file} {found.query.id}"
                # a collection that was replaced has other places
                name = f"{draft} since {collected}"
                title = clean(found.query.title)
                if name not in followed:
                    log(f"followed from now on: {title}")
                new = {*papers[followed.setdefault(name, len(papers)) :]}
                about = {"draft": title, "at": at, "unsent": bool(config.mail)}
                items = [
                    described(item, state["feed"], draft)
                    for item in found
                    if item.paper.id in new
                ]
                news += [item | about for item in items if item["id"] not in known]
        announced += news
        _write(kept, indented_json(state))
        _write(feed, atom(state["feed"], at, announced[-MOST_ENTRIES:]).encode())
        unsent = [item for item in announced if item["unsent"]]
        if config.mail and unsent:
            send(unsent, config)
            for item in unsent:
                item["unsent"] = False
            _write(kept, indented_json(state))
    return news


def _read(file: Path) -> Json:
    """Read what was announced; of a new feed, nothing."""
    if not file.exists():
        return {"feed": uuid4().urn, "drafts": {}, "announced": []}
    try:
        return orjson.loads(read_whole(file))
    except ValueError as error:
        fault = "this is no JSON; remove it to follow the drafts anew"
        raise BadInputError(file, fault) from error


def _write(file: Path, data: bytes) -> None:
    with replacing(file, follow=True) as temporary:
        temporary.write_bytes(data)
