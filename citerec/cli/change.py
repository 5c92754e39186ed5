"""`citerec index --append`, `--delete`, `--compact` and `--rollback`: changes of an index."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput
from citerec.cli.encode import report_saved_shards
from citerec.config import DenseKind
from citerec.encode.config import EncodeConfig
from citerec.errors import ConfigError

if TYPE_CHECKING:
    from citerec.update.replace import UpdateConfig, UpdateReport

AppendOption = Annotated[
    bool,
    typer.Option(
        "--append",
        help="Add the papers of the corpus to an index; a paper whose id it has is replaced.",
    ),
]
DeleteOption = Annotated[
    Path | None, typer.Option(help="Remove the papers of this file from an index: one id a line.")
]
CompactOption = Annotated[
    bool,
    typer.Option(
        "--compact",
        help="Rewrite what changes left in an index as a new build would: Lucene's segments, the splits by year. "
        "Add what an earlier version built it without.",
    ),
]
RollbackOption = Annotated[
    bool,
    typer.Option("--rollback", help="Go back to the newest version that --keep kept."),
]
KeepOption = Annotated[
    int | None,
    typer.Option(min=0, help="Keep so many earlier versions of a changed index, in DIR.versions/."),
]


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """Options of a change."""

    format: str
    skip_bad: bool
    heap: str | None
    encoder: str
    dense_index: DenseKind
    encode: EncodeConfig
    shard: int
    keep: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `citerec index` changes in an index; nothing if it builds one."""

    append: bool
    delete: Path | None
    compact: bool
    rollback: bool

    @property
    def is_any(self) -> bool:
        """Whether there is a change."""
        return self.append or self.delete is not None or self.compact or self.rollback

    def check(self, corpus: Path | None, *, force: bool, keep: int | None) -> None:
        """Refuse options that contradict each other.

        Raises:
            ConfigError: If they do.
        """
        if not self.is_any:
            if corpus is None:
                raise ConfigError("name a corpus: citerec index CORPUS (see: citerec index --help)")
            if keep is not None:
                raise ConfigError("--keep needs --append, --delete or --compact")
            return
        changes = self.append or self.delete is not None
        if changes + self.compact + self.rollback > 1:
            raise ConfigError(
                "--compact and --rollback are commands of their own; run one at a time"
            )
        if self.append and corpus is None:
            raise ConfigError("--append needs a corpus: citerec index CORPUS --append")
        if not self.append and corpus is not None:
            raise ConfigError(f"{corpus} would not be read; add its papers with --append")
        if force:
            raise ConfigError("--force builds an index anew; leave it out to change one")

    def run(
        self, corpus: Path | None, target: Path, options: UpdateOptions, console: ConsoleOutput
    ) -> list[str]:
        """Change an index; return the lines of the result.

        Raises:
            CiterecError: As for `update_index`, `compact_index` and `roll_back`.
        """
        from citerec.update.compact import compact_index
        from citerec.update.index import update_index
        from citerec.update.versions import roll_back

        if self.rollback:
            manifest = roll_back(target)
            papers = manifest.counts["papers"]
            return [f"{target}: back to the version of {manifest.created}, {papers:,} papers"]
        config = _config(options)
        if self.compact:
            report = compact_index(target, config)
            return _compacted(report)
        _check_kind(target, options.dense_index)
        with (
            report_saved_shards(target, console),
            console.progress(in_bytes="reading") as progress,
        ):
            report = update_index(
                target,
                config,
                corpus=corpus,
                removed=self.delete,
                progress=progress,
                log=console.log,
            )
        _report_details(report, console)
        return _changed(report)


def _config(options: UpdateOptions) -> "UpdateConfig":
    from citerec.update.replace import UpdateConfig
    from citerec.update.vectors import VectorConfig

    encoder = None if options.encoder in {"auto", "none"} else options.encoder
    return UpdateConfig(
        format=options.format,
        skip_bad=options.skip_bad,
        heap=options.heap,
        vectors=VectorConfig(encoder=encoder, encode=options.encode, shard=options.shard),
        keep=options.keep,
    )


def _check_kind(target: Path, kind: DenseKind) -> None:
    """Refuse another kind of vector index than the index has.

    Raises:
        ConfigError: If it differs.
    """
    from citerec.manifest import read_manifest

    present = (read_manifest(target).settings.get("dense") or {}).get("kind")
    if kind is not DenseKind.AUTO and kind != present:
        raise ConfigError(
            f"the vectors of {target} are of the kind {present or 'none'}, not {kind}; change it: "
            f"citerec encode --index {target} --dense-index {kind}"
        )


def _changed(report: "UpdateReport") -> list[str]:
    from citerec.cli.index import count_lines

    names = ("added", "replaced", "unchanged", "removed")
    counts = [f"{report.counts[name]:>12,}  {name}" for name in names if report.counts[name]]
    return [f"{report.index}", *counts, *count_lines(report.manifest.counts)]


def _compacted(report: "UpdateReport") -> list[str]:
    from citerec.cli.index import count_lines

    return [f"{report.index}  (compact)", *count_lines(report.manifest.counts)]


def _report_details(report: "UpdateReport", console: ConsoleOutput) -> None:
    from citerec.corpus.outside import OUTSIDE
    from citerec.folder import CITATIONS

    if f"{CITATIONS}/{OUTSIDE}" not in report.manifest.checksums:
        console.warn(
            f"{report.index} was built by an earlier version, which did not keep references to papers outside "
            "the corpus: those of its papers to papers added now are missing until it is built anew"
        )
    if report.unknown:
        console.log(f"{len(report.unknown):,} ids of --delete are not in the index")
    for fault in report.examples:
        console.log(f"left out: {fault}")
    if report.ignored:
        console.detail(f"not read: {', '.join(map(str, report.ignored))}")
