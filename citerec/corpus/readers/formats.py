"""The formats that citerec reads, and how a file is recognised as one of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citerec import plugins
from citerec.corpus.readers import (
    aminer,
    bibtex,
    csl,
    exports,
    openalex,
    pubmed,
    ris,
    s2ag,
)
from citerec.corpus.readers.jsonl import FORMATS
from citerec.errors import ConfigError

# The first match wins.
FILE_FORMATS: Mapping[str, Any] = {
    "bibtex": bibtex,
    "ris": ris,
    "openalex": openalex,
    "s2ag": s2ag,
    "csl": csl,
    "wos": exports.WOS,
    "scopus": exports.SCOPUS,
    "pubmed": pubmed,
    "aminer": aminer,
}


def format_names() -> tuple[str, ...]:
    """Return the names of all formats: citerec's own, and those of registered readers."""
    return (*FORMATS, *FILE_FORMATS, *registered())


def registered() -> Mapping[str, Any]:
    """Return the readers of other packages by name; citerec's own names keep their meaning.

    Raises:
        ConfigError: If one cannot be loaded, or lacks a part.
    """
    names = [n for n in plugins.names(plugins.READERS) if n not in {*FORMATS, *FILE_FORMATS}]
    readers = {name: plugins.load(plugins.READERS, name) for name in names}
    for name, reader in readers.items():
        recognised = hasattr(reader, "sniff") or hasattr(reader, "suffixes")
        if not hasattr(reader, "read") or not (
            recognised if hasattr(reader, "records") else hasattr(reader, "matches")
        ):
            raise ConfigError(
                f"the reader {name!r} is not complete; expected read and matches (for JSON lines), "
                "or read, records and suffixes or sniff (for other files)"
            )
    return readers


def file_format(file: Path, head: bytes) -> str | None:
    """Return the name of the format of a file by its first bytes or suffix; None for JSON lines and the rest."""
    name = plain_name(file)
    for key, reader in registered().items():
        if Path(name).suffix in getattr(reader, "suffixes", ()):
            return key
    readers = {**FILE_FORMATS, **registered()}.items()
    return next((k for k, r in readers if hasattr(r, "sniff") and r.sniff(head, name)), None)


def plain_name(file: Path) -> str:
    """Return the name of a file without the suffix of its compression."""
    return file.with_suffix("").name if file.suffix in {".gz", ".zst", ".bz2"} else file.name
