"""The metadata of papers in the published folder: `{id: {title, abstract, year, authors, references, cited_by}}`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from citerec.errors import BadInputError
from citerec.lab.scidocs.layout import read_json
from citerec.types import Paper


@dataclass(frozen=True, slots=True)
class PaperMetadata:
    """A paper, and the facts that the recommendation ranker uses."""

    paper: Paper  # its authors and citations are ids
    authors: frozenset[str]
    references: frozenset[str]
    cited_by: frozenset[str]


def read_metadata(path: Path, ids: Collection[str]) -> dict[str, PaperMetadata]:
    """Read some papers of a metadata file; missing papers are left out. The file is read as a whole.

    Raises:
        BadInputError: If it is invalid, or contains none of the papers.
    """
    records = read_json(path)
    papers = {i: _record(path, i, records[i]) for i in dict.fromkeys(ids) if i in records}
    if not papers:
        raise BadInputError(path, f"contains none of the {len(ids)} papers of the tasks")
    return papers


def _record(path: Path, paper_id: str, raw: object) -> PaperMetadata:
    if not isinstance(raw, dict):
        raise BadInputError(path, f"paper {paper_id!r} is no JSON object")
    fields = cast("Mapping[str, Any]", raw)
    if bad := [name for name in ("title", "abstract") if not _is_text(fields.get(name))]:
        raise BadInputError(path, f"the {bad[0]} of paper {paper_id!r} is no text")
    authors, references = (_ids(path, paper_id, fields, name) for name in ("authors", "references"))
    paper = Paper(
        id=paper_id,
        title=_text(fields.get("title")),
        abstract=_text(fields.get("abstract")),
        year=_year(fields.get("year")),
        authors=authors,
        citations=references,
    )
    cited_by = frozenset(_ids(path, paper_id, fields, "cited_by"))
    return PaperMetadata(paper, frozenset(authors), frozenset(references), cited_by)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _text(value: str | None) -> str:
    """Return a text that can be written as UTF-8: lone surrogates are replaced."""
    return (value or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _ids(path: Path, paper_id: str, fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    ids: Any = fields.get(name) or []
    if not isinstance(ids, list):
        raise BadInputError(path, f"{name} of paper {paper_id!r} is no list")
    return tuple(str(one) for one in cast("list[Any]", ids))


def _year(raw: object) -> int | None:
    """Return a year, or None if it is invalid, as in the published ranker."""
    try:
        return int(float(cast("Any", raw)))
    except (TypeError, ValueError, OverflowError):
        return None
