"""Reads CSL YAML, and Hayagriva, the YAML of Typst's bibliographies, whose entries may be parts of their `parent`."""

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from citerec.display import one_line
from citerec.errors import BadInputError
from citerec.types import Json

# how a text begins: a key, and below it a field with a colon; or the list of CSL YAML
BEGIN = (
    r"\A(?:[ \t]*(?:#[^\n]*|---)?\r?\n)*+(?:references:\s*-"
    r"|[\w\"'][^\s:]*:[ \t]*\r?\n(?:[ \t]++[^\n]*+\n)*?[ \t]++(?:type|title):\s)"
)
_CSL = {  # the names of fields in CSL
    ".title": "title",
    ".date": "issued",
    ".parent.title": "container-title",
    ".abstract": "abstract",
    ".serial-number.doi": "DOI",
    ".serial-number.arxiv": "number",
    ".url": "URL",
}


def csl_items(text: str, name: Path | str) -> list[Json]:
    """Return the entries of a file as items of CSL-JSON; BadInputError if it is no YAML."""
    import yaml

    try:  # each value as a text
        table = yaml.load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError) as error:
        fault = f"this is no valid YAML: {one_line(f'{error}')[:200]}"
        raise BadInputError(name, fault) from None
    items: list[Json] = table.pop("references", [])  # of CSL
    for key, entry in table.items():
        items.append({"id": key, "author": []})
        for path, value in _values(entry):
            if path == ".author":
                items[-1]["author"].append(value)
            elif path in _CSL:  # the first of several parents counts
                named = f"arXiv:{value}" if path.endswith("arxiv") else value
                items[-1].setdefault(_CSL[path], named)
    return items


def _values(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a value with their paths; a value, as a name, may be a mapping with more about it."""
    if isinstance(value, str):
        yield path, value
        return
    parts = (
        value.items()
        if isinstance(value, dict)
        else zip(repeat("name"), value, strict=False)
    )
    for key, part in parts:
        yield from _values(part, path if key in {"value", "name"} else f"{path}.{key}")
