"""The published SciDocs folder: the place and the format of each file.

    paper_metadata_mag_mesh.json  paper_metadata_view_cite_read.json  paper_metadata_recomm.json:
                                  {id: {title, abstract, year, authors, references, cited_by}}
    mag/ mesh/                    {train,val,test}.csv: paper, class
    coview/ coread/ cite/ cocite/ {val,test}.qrel: query 0 paper relevance
    recomm/                       {train,val,test}.csv: query, clicked paper, all papers shown; propensity_scores.json

Source: https://github.com/allenai/scidocs; the data: aws s3 sync --no-sign-request
s3://ai2-s2-research-public/specter/scidocs/ FOLDER.
"""

import csv
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import orjson

from citerec.errors import BadInputError, shown
from citerec.files.reading import MAX_DATASET, read_whole
from citerec.index.folder import NAME as MANIFEST
from citerec.types import Paper

SPLITS = ("train", "val", "test")
LABELLED = ("mag", "mesh")
RANKED = {"co-view": "coview", "co-read": "coread", "cite": "cite", "co-cite": "cocite"}
RECOMMENDATION = "recommendation"
PROPENSITY = "recomm/propensity_scores.json"
METADATA = tuple(
    f"paper_metadata_{name}.json" for name in ("mag_mesh", "view_cite_read", "recomm")
)

_RELEVANCE = re.compile(r"-?[0-9]{1,9}")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledPapers:
    """Papers and their classes."""

    ids: tuple[str, ...]
    labels: tuple[str, ...]  # same length


@dataclass(frozen=True, slots=True)
class QueryJudgements:
    """The candidates of a query and their relevance."""

    query: str
    ids: tuple[str, ...]
    gains: tuple[int, ...]  # same length; 0 for an irrelevant one


@dataclass(frozen=True, slots=True)
class Click:
    """A list of papers that was shown for a query paper, and the clicked one."""

    query: str
    clicked: str
    shown: tuple[str, ...]  # in the order shown, including the clicked one

    @property
    def position(self) -> int:
        """The position of the clicked paper, from 1."""
        return self.shown.index(self.clicked) + 1


def metadata_file(task: str) -> str:
    """Return the metadata file of a task."""
    return METADATA[0 if task in LABELLED else 1 if task in RANKED else 2]


def files_of(task: str) -> list[str]:
    """Return the files of a task."""
    if task in RANKED:
        return [metadata_file(task), f"{RANKED[task]}/test.qrel"]
    folder = task if task in LABELLED else "recomm"
    files = [metadata_file(task), *(f"{folder}/{split}.csv" for split in SPLITS)]
    return files if task in LABELLED else [*files, PROPENSITY]


def check_folder(data: Path, tasks: Sequence[str]) -> None:
    """Refuse a folder without the files of some tasks.

    Raises:
        BadInputError: If it does not exist, is an index, or files are missing.
    """
    if not data.is_dir():
        raise BadInputError(
            data,
            "no such folder; choose that of the published SciDocs data, "
            "or fetch it: citerec datasets fetch scidocs",
        )
    if (data / MANIFEST).is_file():
        raise BadInputError(
            data, f"an index, not the published data; use --index {data}"
        )
    required = list(dict.fromkeys(file for task in tasks for file in files_of(task)))
    if missing := [file for file in required if not (data / file).is_file()]:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise BadInputError(
            data,
            f"{', '.join(missing[:3])}{more} missing; expected the layout of the published SciDocs data",
        )


def read_labels(data: Path, task: str) -> dict[str, LabelledPapers]:
    """Read the papers and classes of a classification task, by split.

    Raises:
        BadInputError: If a file is invalid, or a class has no train paper.
    """
    splits = {split: _labels(data / task / f"{split}.csv") for split in SPLITS}
    known = set(splits["train"].labels)
    if len(known) < 2:
        raise BadInputError(
            data / task / "train.csv", "one class only; expected two or more"
        )
    for split in ("val", "test"):
        if unseen := sorted(set(splits[split].labels) - known):
            path = data / task / f"{split}.csv"
            raise BadInputError(path, f"class {unseen[0]!r} has no paper in train.csv")
    return splits


def _labels(path: Path) -> LabelledPapers:
    pairs: dict[str, str] = {}
    for line, row in _rows(path, 2):
        if pairs.setdefault(row[0], row[1]) != row[1]:
            raise BadInputError(path, f"paper {row[0]!r} has two classes", line=line)
    return LabelledPapers(tuple(pairs), tuple(pairs.values()))


def read_judgements(path: Path) -> list[QueryJudgements]:
    """Read a qrel file, queries in the order of the file.

    Raises:
        BadInputError: If a line is invalid, a paper is repeated, or a query has no relevant paper.
    """
    by_query: dict[str, dict[str, int]] = {}
    for line, text in enumerate(_text(path).splitlines(), start=1):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != 4 or not _RELEVANCE.fullmatch(fields[3]):
            raise BadInputError(
                path,
                f"expected: query 0 paper relevance; found: {text[:80]!r}",
                line=line,
            )
        gains_of = by_query.setdefault(fields[0], {})
        if fields[2] in gains_of:
            raise BadInputError(
                path, f"paper {fields[2]!r} is repeated for {fields[0]!r}", line=line
            )
        gains_of[fields[2]] = int(fields[3])
    for query, gains in by_query.items():
        if max(gains.values()) < 1:
            raise BadInputError(
                path, f"query {query!r} has no paper of relevance 1 or more"
            )
    if not by_query:
        raise BadInputError(path, "an empty file; expected: query 0 paper relevance")
    return [
        QueryJudgements(q, tuple(gains), tuple(gains.values()))
        for q, gains in by_query.items()
    ]


def read_clicks(path: Path, positions: int | None = None) -> list[Click]:
    """Read the shown and clicked papers, in the order of the file.

    Args:
        path: A csv file of the recommendation task.
        positions: The number of positions with a propensity; clicks may not be further down. None for no limit, for
            train and validation clicks.

    Raises:
        BadInputError: If a line is invalid.
    """
    clicks: list[Click] = []
    for line, (query, clicked, others) in _rows(path, 3):
        shown = tuple(paper.strip() for paper in others.split(","))
        if clicked not in shown:
            raise BadInputError(
                path, f"{clicked!r} was clicked, but is not shown", line=line
            )
        click = Click(query, clicked, shown)
        if positions is not None and click.position > positions:
            problem = f"the click is at position {click.position}; propensities end at {positions}"
            raise BadInputError(path, problem, line=line)
        clicks.append(click)
    return clicks


def read_propensity(path: Path) -> Floats:
    """Read the propensity of each position, shape (positions,): its over-representation among clicks.

    Raises:
        BadInputError: If it is not `{"scores": [...]}` with numbers above zero.
    """
    record = read_json(path)
    scores: Any = record.get("scores")
    expected = 'expected {"scores": [...]} with numbers above 0'
    if not isinstance(scores, list) or not scores:
        raise BadInputError(path, f"no scores; {expected}")
    values: list[Any] = scores
    if bad := [
        s for s in values if not isinstance(s, int | float) or not 0 < s < np.inf
    ]:
        raise BadInputError(path, f"found {shown(bad[0])}; {expected}")
    return np.array(values, np.float64)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file with one JSON object.

    Raises:
        BadInputError: If it contains something else, or cannot be read.
    """
    try:
        record = loads(read_whole(path, most=MAX_DATASET))
    except orjson.JSONDecodeError as error:
        raise BadInputError(
            path, f"not JSON: {error.msg}", line=error.lineno
        ) from error
    if not isinstance(record, dict):
        raise BadInputError(
            path, f"a JSON {type(record).__name__}; expected one object"
        )
    return record  # pyright: ignore[reportUnknownVariableType]


def loads(raw: bytes) -> Any:
    """Parse JSON, including the extensions of Python's module: NaN, infinity, lone surrogates.

    Raises:
        orjson.JSONDecodeError: If it is invalid.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise error from None


def _rows(path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a csv file below its heading, with their lines."""
    reader = csv.reader(_text(path).splitlines())
    try:
        rows = [(reader.line_num, row) for row in reader if row][1:]
    except csv.Error as error:
        raise BadInputError(path, f"not csv: {error}", line=reader.line_num) from error
    if not rows:
        raise BadInputError(path, f"no rows below a heading; expected {width} columns")
    for line, row in rows:
        if len(row) != width or not all(cell.strip() for cell in row):
            raise BadInputError(
                path, f"expected {width} columns; found: {shown(row)}", line=line
            )
        yield line, [cell.strip() for cell in row]


def _text(path: Path) -> str:
    try:
        return (
            read_whole(path)
            .decode("utf-8-sig")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
        )
    except UnicodeDecodeError as error:
        raise BadInputError(path, "not UTF-8 text") from error


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
    papers = {
        i: _record(path, i, records[i]) for i in dict.fromkeys(ids) if i in records
    }
    if not papers:
        raise BadInputError(
            path, f"contains none of the {len(ids)} papers of the tasks"
        )
    return papers


def _record(path: Path, paper_id: str, raw: object) -> PaperMetadata:
    if not isinstance(raw, dict):
        raise BadInputError(path, f"paper {paper_id!r} is no JSON object")
    fields = cast("Mapping[str, Any]", raw)
    if bad := [
        name for name in ("title", "abstract") if not _is_text(fields.get(name))
    ]:
        raise BadInputError(path, f"the {bad[0]} of paper {paper_id!r} is no text")
    authors, references = (
        _ids(path, paper_id, fields, name) for name in ("authors", "references")
    )
    paper = Paper(
        id=paper_id,
        title=_written(fields.get("title")),
        abstract=_written(fields.get("abstract")),
        year=_year(fields.get("year")),
        authors=authors,
        citations=references,
    )
    cited_by = frozenset(_ids(path, paper_id, fields, "cited_by"))
    return PaperMetadata(paper, frozenset(authors), frozenset(references), cited_by)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _written(value: str | None) -> str:
    """Return a text that can be written as UTF-8: lone surrogates are replaced."""
    return (value or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _ids(
    path: Path, paper_id: str, fields: Mapping[str, Any], name: str
) -> tuple[str, ...]:
    ids: Any = fields.get(name) or []
    if not isinstance(ids, list):
        raise BadInputError(path, f"{name} of paper {paper_id!r} is no list")
    return tuple(str(paper_id) for paper_id in cast("list[Any]", ids))


def _year(raw: object) -> int | None:
    """Return a year, or None if it is invalid, as in the published ranker."""
    try:
        return int(float(cast("Any", raw)))
    except (TypeError, ValueError, OverflowError):
        return None
