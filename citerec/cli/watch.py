"""`citerec watch`."""

from pathlib import Path
from typing import Annotated

from citerec.cli.console import ConsoleOutput, check_output, write_lines
from citerec.cli.index import default_index
from citerec.cli.options import open_named, settings_options
from citerec.collect.feed import WatchConfig


@settings_options
def watch(
    corpus: Annotated[Path, "The folder of a finished collection."],
    *,
    query: Annotated[list[Path], "A file with a draft; may be repeated."],
    index: Annotated[
        Path | None,
        "Its index; indexes/<corpus name> by default.",
    ] = None,
    feed: Annotated[Path, "The Atom feed to write."] = Path("new-papers.atom"),
    config: WatchConfig,
    console: ConsoleOutput,
) -> None:
    """Add what is new to a collected corpus, and announce new papers that drafts should cite.

    A paper is announced once for a draft: on stdout, in the feed and, with --mail, in a mail. Run it each day, as by
    cron. Only ids of papers are sent to the service.
    """
    from citerec.collect.run import CollectConfig, make_plan
    from citerec.collect.watch import watch as run
    from citerec.drafts import read_queries
    from citerec.rank.trees import load
    from citerec.request import Request

    plan = make_plan(corpus, CollectConfig(update=True))
    target = open_named(index or default_index(corpus)).path
    check_output(feed)
    drafts = {
        str(file.resolve()): Request.of(read_queries(file), explain=True)
        for file in query
    }
    load(hide_optional=True)
    console.log(f"only ids are sent to {plan.service.title}; no draft, no path")
    with console.progress() as progress:
        news = run(plan, target, drafts, feed, config, progress, console.log)
    for item in news:
        write_lines(
            item["draft"], *(f"  {item[key]}" for key in ("title", "text", "link"))
        )
