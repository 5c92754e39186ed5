"""The bibliography of a draft: the files that it names, read from its own folder alone, looked up by citation key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from citerec.bibliography.paper_list import Entry, PaperList, entries_by_key
from citerec.bibliography.source import read_bytes
from citerec.drafts.document import CitedReferences
from citerec.errors import BadInputError
from citerec.text import plural

EVERY_KEY = "*"  # as in \nocite{*}
_SHOWN = 5  # missing keys that a notice names, and broken entries that have a notice


def inside(folder: Path, name: str, suffixes: Iterable[str] = ("",)) -> Path | None:
    """Return the first existing file `name` + suffix of a folder; None if there is none.

    Raises:
        PermissionError: If the name leads outside the folder: by `..`, as an absolute path, or by a link.
    """
    root = folder.resolve()
    for suffix in suffixes:
        try:
            target = (root / f"{name}{suffix}").resolve()
            is_file = target.is_file()
        except (OSError, ValueError, RuntimeError):  # a NUL in the name; a loop of links
            continue
        if not target.is_relative_to(root):
            raise PermissionError(name)
        if is_file:
            return target
    return None


@dataclass(slots=True)
class Bibliography:
    """The references that a draft may cite by key; `notices` receives lines for the user."""

    path: Path | None  # of the draft; None for standard input
    name: str  # of the draft, in messages
    notices: list[str]
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    sources: tuple[str, ...] = ()

    def add(self, entries: Mapping[str, Entry], source: str) -> None:
        """Add entries by key; the first one of a repeated key counts."""
        if entries:
            self.entries = {**entries, **self.entries}
            self.sources = (*self.sources, source)

    def read_files(self, names: Iterable[str], formatted: tuple[Mapping[str, Entry], str]) -> None:
        r"""Read the files that a draft names; formatted references (a `.bbl`) stand in for what is missing.

        Args:
            names: The files as the draft names them.
            formatted: Entries by key, and the name of their source.
        """
        faults: list[str] = []
        for name in dict.fromkeys(names):
            if self.path is None:
                self.notices.append(
                    f"the bibliography {name} cannot be followed from standard input; "
                    "pass the draft by its name, or the references with --cited FILE"
                )
                break
            self._read_file(self.path.parent, name, faults)
        if self.entries or not formatted[0] or any("outside" in fault for fault in faults):
            self.notices += faults
        self.add(*formatted)

    def _read_file(self, folder: Path, name: str, faults: list[str]) -> None:
        unread: list[str] = []
        try:
            file = inside(folder, name, ("", ".bib", ".json"))
            if file is None:
                faults.append(f"the bibliography {name} is missing; its references are not used")
                return
            self.add(entries_by_key(read_bytes(file)[0], name, unread), file.name)
        except PermissionError:
            faults.append(f"the bibliography {name} is outside the folder of the draft")
        except BadInputError as error:
            faults.append(f"the bibliography {name} is not used: {error.message}")
        faults += [f"{name}, {fault}; the entry is ignored" for fault in unread[:_SHOWN]]
        if (more := len(unread) - _SHOWN) > 0:
            faults.append(f"{name}: {more:,} more entries are ignored")

    def look_up(self, keys: list[str], *, has_inline: bool = False) -> CitedReferences:
        """Return the entries of citation keys, in order of citation; a notice names keys without one."""
        if not keys:
            return CitedReferences()
        if not self.entries:
            if keys != [EVERY_KEY] and not has_inline:
                count = plural(len(keys), "citation key")
                self.notices.append(
                    f"{count}, but no bibliography was found: pass the references with --cited FILE"
                )
            return CitedReferences()
        wanted = dict.fromkeys(keys)
        if EVERY_KEY in wanted:
            wanted = dict.fromkeys(key for key in [*wanted, *self.entries] if key != EVERY_KEY)
        if missing := [key for key in wanted if key not in self.entries]:
            some = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
            count = plural(len(missing), "citation key")
            self.notices.append(f"{count} not in {', '.join(self.sources)}: {some}")
        found = tuple(self.entries[key] for key in wanted if key in self.entries)
        return CitedReferences(PaperList(found), self.sources)
