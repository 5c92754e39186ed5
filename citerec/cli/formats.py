"""The options of `citerec recommend` that say how papers are written."""

from typing import Annotated

import typer

from citerec.errors import ConfigError
from citerec.export import Format, formats


def _format(name: str) -> str:
    if name in [*Format] or name in formats():
        return name
    listed = ", ".join(repr(str(one)) for one in formats())
    raise typer.BadParameter(f"{name!r} is not one of {listed}.")


def _completions() -> list[str]:
    return [*formats()]


FormatOption = Annotated[
    str,
    typer.Option(
        parser=_format,
        metavar=f"<{'|'.join(Format)}>",
        autocompletion=_completions,
        help="table, json, jsonl, trec, bibtex, ris, csl, doi, or a format that a package adds.",
    ),
]
FieldsOption = Annotated[
    str | None,
    typer.Option(help="JSON: what else of each paper, such as authors,venue,doi,abstract."),
]


def checked_fields(fields: str | None, format: str) -> tuple[str, ...]:
    """Return the names that `--fields` lists.

    Raises:
        ConfigError: If a name is none of `citerec.export.jsonl.FIELDS`, or the format is not JSON.
    """
    if fields is None:
        return ()
    from citerec.export.jsonl import FIELDS

    if format not in {Format.JSON, Format.JSONL}:
        raise ConfigError(f"--fields is for --format json and jsonl, not {format}")
    names = tuple(name for part in fields.split(",") if (name := part.strip()))
    if unknown := [name for name in names if name not in FIELDS]:
        raise ConfigError(f"--fields: no field {unknown[0]!r}; choose from {', '.join(FIELDS)}")
    return names
