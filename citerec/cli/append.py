"""The options of `citerec recommend` that add papers to a file of references."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput
from citerec.errors import ConfigError
from citerec.text import plural
from citerec.types import Paper

if TYPE_CHECKING:
    from citerec.export import Result
    from citerec.export.keys import KeyPattern

AppendOption = Annotated[
    Path | None,
    typer.Option(
        help="Add the papers to this .bib, .ris or CSL .json, but those that it has; FILE.bak keeps what it was."
    ),
]
PickOption = Annotated[
    str, typer.Option(help="The ranks of the papers that --append adds, such as 1,3,7 or 1-5.")
]
KeyPatternOption = Annotated[
    str | None,
    typer.Option(
        help="Citation keys of --append and BibTeX, such as {Lastname}:{yy}{Word}; {lastname}{year}{word} by default."
    ),
]
ALL = "all"
_RANKS = re.compile(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?")


@dataclass(slots=True)
class Addition:
    """What is added to a file of references after a recommendation."""

    path: Path | None
    ranks: frozenset[int]  # from 1; empty for all
    pattern: "KeyPattern | None" = None
    papers: dict[str, Paper] = field(default_factory=dict[str, Paper])  # by id, best first

    def collected(self, results: Iterable["Result"]) -> Iterator["Result"]:
        """Yield results as they come, and keep the papers that are added."""
        for result in results:
            if self.path:
                for item in result.recommendations:
                    if not self.ranks or item.rank in self.ranks:
                        self.papers.setdefault(item.paper.id, item.paper)
            yield result

    def write(self, console: ConsoleOutput) -> None:
        """Add the papers to the file, and report it in one line.

        Raises:
            ConfigError: If a rank is higher than the number of recommendations.
            CiterecError: If the file cannot be extended.
        """
        if self.path is None:
            return
        if (missing := len(self.ranks) - len(self.papers)) > 0:
            raise ConfigError(
                f"--pick {max(self.ranks)}: there is no recommendation of this rank "
                f"({missing} of {len(self.ranks)} are missing); nothing was added to {self.path}"
            )
        from citerec.references.append import append_papers

        done = append_papers(self.path, list(self.papers.values()), self.pattern)
        added = f"{plural(len(done.keys), 'paper')} added to {self.path}"
        keys = f": {', '.join(done.keys)}" if done.keys else ""
        console.log(f"{added}{keys}{_skipped(done.skipped)}")
        if done.backup:
            console.detail(f"the former content is in {done.backup}")


def addition(
    append: Path | None,
    pick: str,
    key_pattern: str | None,
    *,
    k: int,
    output: Path | None,
    batch: bool,
) -> Addition:
    """Check the options, and that the file can be extended, before the work.

    Raises:
        ConfigError: If they contradict each other, or a rank or the pattern is invalid.
        CiterecError: If the file cannot be extended.
    """
    pattern = None
    if key_pattern is not None:
        from citerec.export.keys import KeyPattern

        pattern = KeyPattern(key_pattern)
    ranks = _ranks(pick)
    if append is None:
        if ranks:
            raise ConfigError("--pick needs --append; name the file that the papers are added to")
        return Addition(None, ranks, pattern)
    if ranks and batch:
        raise ConfigError(
            "--pick needs a single draft; leave it out to add the papers of all drafts"
        )
    if ranks and max(ranks) > k:
        raise ConfigError(f"--pick {max(ranks)}: --k {k} gives {plural(k, 'paper')}; increase --k")
    if output and os.path.realpath(output) == os.path.realpath(append):
        raise ConfigError(
            f"--output would replace {append}; leave it out, --append writes the file"
        )
    from citerec.references.file import read_reference_file

    read_reference_file(append)
    return Addition(append, ranks, pattern)


def _ranks(pick: str) -> frozenset[int]:
    """Return the ranks that `--pick` lists; none for all."""
    if pick.strip().lower() == ALL:
        return frozenset()
    ranks: set[int] = set()
    for part in pick.split(","):
        match = _RANKS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise ConfigError(f"--pick {pick!r}: expected ranks such as 1,3,7 or 1-5, or {ALL}")
        ranks.update(range(first, last + 1))
    return frozenset(ranks)


def _skipped(papers: tuple[Paper, ...]) -> str:
    if not papers:
        return ""
    first = papers[0].title or papers[0].id
    more = f" and {len(papers) - 1} more" if len(papers) > 1 else ""
    return (
        f"; skipped, as the file has {'it' if len(papers) == 1 else 'them'} already: {first}{more}"
    )
