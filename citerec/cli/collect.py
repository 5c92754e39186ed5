"""`citerec collect`."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput, read_list
from citerec.cli.options import settings_options
from citerec.collect.run import CollectOptions
from citerec.display import shortened
from citerec.errors import BadInputError, CiterecError

if TYPE_CHECKING:
    from citerec.bibliography.entry import Entry
    from citerec.collect.run import CollectReport

CORPORA = Path("corpora")
WITHOUT_KEY = (
    "OpenAlex allows $0.10 a day without a key, $1 with one; "
    "https://openalex.org/settings/api has a free one"
)
SHOWN = 20  # unresolved references in the table on the screen


@settings_options
def collect(
    refs: Annotated[
        list[str] | None,
        "A bibliography (any list that `recommend --cited` reads), or DOIs and arXiv ids (arXiv:2004.12832).",
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder to create; corpora/<name of the list> by default.",
        ),
    ] = None,
    options: CollectOptions,
    dry_run: Annotated[bool, "Print the estimate, and send nothing."] = False,
    yes: Annotated[bool, "Start a large collection, too."] = False,
    console: ConsoleOutput,
) -> None:
    """Fetch a corpus around references: what they cite, and what cites them.

    Only ids and titles of the references, or the words of --search, are sent to the service, never a path; with
    --semantic the text of --search as it is.
    An interrupted run is continued by the same command.
    """
    from citerec.collect.client import open_cache
    from citerec.collect.run import CollectConfig, check_size, folder_name, make_plan
    from citerec.collect.run import collect as run

    name, entries = read_references(refs or [], options.search, console)
    config = CollectConfig(**dict(options), entries=tuple(entries), name=name)
    folder = output or CORPORA / folder_name(name)
    plan = make_plan(folder, config)
    if plan.is_complete:
        # removes what a killed run left
        with (
            suppress(CiterecError),
            open_cache(folder, ""),
        ):
            pass
        console.log(
            f"{folder} is complete; --update adds what is new, --force collects it anew"
        )
        return
    service = plan.service.title
    estimate = plan.estimate
    sent = "ids and titles of the references are sent"
    if options.semantic:
        sent = "the text of --search is sent"
    elif options.search:
        sent = "the words of --search are sent"
    kept = "no path" if options.semantic else "no draft, no abstract, no path"
    console.log(f"only {sent} to {service}; {kept}")
    if estimate.dollars is not None and not plan.service.key:
        console.log(f"{plan.service.variable} is not set: {WITHOUT_KEY}")
    console.log(f"{service}: {estimate}")
    if dry_run:
        return
    if not yes:
        check_size(estimate)
    try:
        with console.progress() as progress:
            report = run(plan, progress, console.log)
    except KeyboardInterrupt:
        console.log(f"what was fetched is kept in {folder}; the same command continues")
        raise
    console.summary(*summary(folder, report))


def read_references(
    refs: Sequence[str], search: str, console: ConsoleOutput
) -> tuple[str, "list[Entry]"]:
    """Return the name of a list, without its folder, and its entries: from files, DOIs and arXiv ids."""
    from citerec.bibliography.entry import Entry
    from citerec.collect.snowball import identifier

    entries = list[Entry]()
    name = search
    for text in refs:
        if text == "-" or Path(text).exists():
            listed = read_list(text, console)
            entries += listed.entries
            name = name or Path(text).stem
            for fault in listed.unread:
                console.warn(f"{Path(text).name}: left out: {fault}")
        elif identifier(text):
            entries.append(Entry(ids=(text,), label=text))
        else:
            known = "no such file, and neither a DOI (10.1145/…) nor an arXiv id (arXiv:2004.12832)"
            raise BadInputError(text, known)
    if refs and not entries:
        raise BadInputError(
            ", ".join(refs), "no entry can be read: nothing to collect around"
        )
    return name or "references", entries


def summary(folder: Path, report: "CollectReport") -> list[str]:
    """Return the lines that describe a finished collection."""
    record = report.record
    counts = report.record["counts"]
    total = record["query"]["references"] or record["resolved"] + record["unresolved"]
    added = f", {report.added:,} of them new" if len(record["runs"]) > 1 else ""
    reused = (
        f", {report.reused:,} answers of an interrupted run" if report.reused else ""
    )
    lines = [
        f"{folder}  ({record['service']})",
        f"{counts['papers']:>12,}  papers{added}",
        f"{counts['with_abstract']:>12,}  with an abstract",
        f"{record['resolved']:>12,}  works of {total:,} references",
        f"{report.sent:>12,}  requests{reused}",
    ]
    if elided := len(record["without_references"]):
        lines.append(
            f"{elided:>12,}  without a list of references: their publishers withhold it"
        )
    if report.unresolved:
        lines += ["", f"not resolved ({folder / 'unresolved.tsv'}):"]
    for place, title, _, reason, closest, score in report.unresolved[:SHOWN]:
        found = f"; closest: {shortened(closest, 60)} ({score}%)" if closest else ""
        lines.append(f"  {place[:40]}: {shortened(title, 60)}: {reason}{found}")
    if (more := len(report.unresolved) - SHOWN) > 0:
        lines.append(f"  and {more:,} more")
    return [*lines, "", f"next: citerec index {folder}"]
