"""Looks up citation keys in the bibliography files of a draft."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from citerec.bibliography.paper_list import Entry, PaperList, entries_by_key
from citerec.bibliography.source import read_bytes
from citerec.drafts.document import CitedReferences
from citerec.errors import BadInputError

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
            if not target.is_relative_to(root):
                raise PermissionError(name)
            if target.is_file():
                return target
        except (ValueError, RuntimeError):  # a NUL in the name; a loop of links
            continue
        except OSError as error:
            if isinstance(error, PermissionError) and error.errno is None:
                raise
    return None


def read_bibliographies(
    folder: Path, names: Iterable[str], suffixes: Iterable[str], notices: list[str]
) -> tuple[dict[str, Entry], tuple[str, ...]]:
    """Read the bibliography files that a draft names, from its folder alone.

    Args:
        folder: The folder of the draft.
        names: The files as the draft names them.
        suffixes: What may be missing at the end of a name.
        notices: Receives a line for each file that is missing, outside the folder or unreadable, and for each of some
            broken entries.

    Returns:
        The entries by citation key; the first one of a repeated key counts. And the names of the files read.
    """
    entries: dict[str, Entry] = {}
    read: list[str] = []
    for name in dict.fromkeys(names):
        try:
            file = inside(folder, name, suffixes)
            if file is None:
                notices.append(f"the bibliography {name} is missing; its references are not used")
                continue
            data, _ = read_bytes(file)
            unread: list[str] = []
            for key, entry in entries_by_key(data, name, unread).items():
                entries.setdefault(key, entry)
            read.append(file.name)
            notices += [f"{file.name}, {fault}; the entry is ignored" for fault in unread[:_SHOWN]]
            if len(unread) > _SHOWN:
                notices.append(f"{file.name}: {len(unread) - _SHOWN:,} more entries are ignored")
        except PermissionError:
            notices.append(
                f"the bibliography {name} is outside the folder of the draft; it is not read"
            )
        except BadInputError as error:
            notices.append(f"the bibliography {name} is not used: {error.message}")
    return entries, tuple(read)


def look_up(
    keys: Iterable[str], entries: Mapping[str, Entry], sources: tuple[str, ...], notices: list[str]
) -> CitedReferences:
    """Return the entries of the cited keys, in order of citation; a line in `notices` names keys without one.

    Args:
        keys: Citation keys; `*` stands for all entries.
        entries: The entries of the bibliography, by key.
        sources: The names of the bibliography files.
        notices: Receives the line.
    """
    wanted = dict.fromkeys(keys)
    if EVERY_KEY in wanted:
        wanted = dict.fromkeys(key for key in [*wanted, *entries] if key != EVERY_KEY)
    missing = [key for key in wanted if key not in entries]
    if missing and entries:
        some = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
        count = "1 citation key is" if len(missing) == 1 else f"{len(missing):,} citation keys are"
        notices.append(f"{count} not in {', '.join(sources)}: {some}")
    return CitedReferences(
        PaperList(tuple(entries[key] for key in wanted if key in entries)), sources
    )
