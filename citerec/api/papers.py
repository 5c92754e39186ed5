"""An index from papers in memory: dicts, `Paper` objects or a data frame."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from math import isnan
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Protocol, cast

import orjson

from citerec.build import BuildConfig, build_index
from citerec.config import RecommendConfig
from citerec.corpus.readers.fields import Fields
from citerec.encode.source import auto_encoder
from citerec.errors import BadInputError, BadRecordError, shown
from citerec.recommend import Recommender
from citerec.types import Log, Paper

KEYS = tuple(field.name for field in fields(Paper))
_GIVEN = Path("papers")  # what messages call the records
_MISSING = frozenset({"NAType", "NaTType"})  # the types of pandas.NA and NaT


class PandasFrame(Protocol):
    """A data frame of pandas."""

    @property
    def to_dict(self) -> Callable[..., Any]:
        """Return the rows as dicts, given "records"."""
        ...


class PolarsFrame(Protocol):
    """A data frame of polars."""

    @property
    def to_dicts(self) -> Callable[..., Any]:
        """Return the rows as dicts."""
        ...


Papers = Iterable[Paper] | Iterable[Mapping[str, Any]] | PandasFrame | PolarsFrame


def from_papers(
    papers: Papers,
    *,
    encoder: str | None = None,
    path: str | PathLike[str] | None = None,
    config: RecommendConfig | None = None,
    log: Log | None = None,
) -> Recommender:
    """Index papers and open the index.

    >>> import citerec                                                          # doctest: +SKIP
    >>> papers = [{"id": "a", "title": "Graph drawing"}, {"id": "b", "title": "Maps of trees"}]
    >>> with citerec.from_papers(papers) as recommender:
    ...     print(recommender.recommend(title="How to draw a tree"))

    Args:
        papers: Dicts with the keys of the canonical corpus (`id` and `title`, and where known `abstract`, `year`,
            `authors`, `venue`, `citations`, `doi`, ...), `Paper` objects, or a data frame of pandas or polars with
            these columns. None, NaN and NA are missing values; whole numbers are taken as ids.
        encoder: The model for the vectors, as `citerec index --encoder` takes it: `minilm`, `specter`, a
            hub id, a folder, or `auto`. None (or `none`) makes no vectors: BM25 alone finds the candidates, which needs
            no model and no network.
        path: The folder of the index, which must not be there. By default the index is temporary: it is removed when
            the recommender is closed or garbage-collected, or when Python ends.
        config: How papers are found and ordered.
        log: Receives a line for each download of a model.

    Raises:
        BadInputError: If there is no paper, or a record has an unknown key, lacks a title or an id, or has a wrong
            value; names the record by its number, from 1.
        IndexExistsError: If an index is at `path`.
        ModelError: If there is no such encoder.
    """
    build = BuildConfig(format="canonical", encoder=_encoder(encoder, log))
    with TemporaryDirectory(prefix="citerec-") as folder:
        corpus = Path(folder, "papers.jsonl")
        with corpus.open("wb") as file:
            file.writelines(_lines(papers))
        if path is not None:
            index = build_index(corpus, Path(path), build, log=log).index
            return Recommender(index, config, log)
        temporary = Path(mkdtemp(prefix="citerec-"))
        remove = partial(_remove, temporary, os.getpid())
        try:
            index = build_index(corpus, temporary / "papers", build, log=log).index
            return Recommender(index, config, log, on_close=remove)
        except BaseException:
            remove()
            raise


def _encoder(name: str | None, log: Log | None) -> str | None:
    """Return the encoder that a name means; None for BM25 alone."""
    if name != "auto":
        return None if name == "none" else name
    found, warning = auto_encoder(log)
    if warning and log:
        log(f"encoder auto: {warning}")
    return found


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked process leaves it to the one that made it
        shutil.rmtree(folder, ignore_errors=True)


def _lines(papers: Papers) -> Iterator[bytes]:
    """Yield each paper as a line of a canonical corpus.

    Raises:
        BadInputError: If there is none, or one that cannot be taken.
    """
    first: dict[str, tuple[int, int]] = {}  # the number and the hash of the paper with each id
    for number, record in enumerate(_records(papers), start=1):
        paper = record if isinstance(record, Paper) else _paper(record, number)
        known, content = first.setdefault(paper.id, (number, hash(paper)))
        if content != hash(paper):
            raise _fault(
                number,
                f"the id {paper.id!r} is that of record {known}, which is another paper; each paper needs its own id",
            )
        yield orjson.dumps(asdict(paper), option=orjson.OPT_APPEND_NEWLINE)
    if not first:
        raise BadInputError(_GIVEN, "there is none; expected at least one paper with id and title")


def _records(papers: Any) -> Iterable[Any]:
    if hasattr(papers, "to_dicts"):
        return papers.to_dicts()
    if hasattr(papers, "to_dict"):
        return papers.to_dict("records")
    if isinstance(papers, str | bytes | Mapping | Paper) or not hasattr(papers, "__iter__"):
        expected = (
            "expected a list of dicts or papers, or a data frame; for a corpus file: citerec index"
        )
        raise BadInputError(_GIVEN, f"found {shown(papers)}; {expected}")
    return papers


def _paper(record: Any, number: int) -> Paper:
    """Check one record as the reader of a canonical corpus does, and its keys, too."""
    if not isinstance(record, Mapping):
        raise _fault(number, f"expected a dict or a citerec.Paper, found {shown(record)}")
    given = cast("Mapping[Any, Any]", record)
    if unknown := [key for key in given if key not in KEYS]:
        raise _fault(number, f"unknown key {shown(unknown[0])}; the keys are: {', '.join(KEYS)}")
    values = {key: plain for key, value in given.items() if (plain := _plain(value)) is not None}
    for key in {"id", "citations"} & values.keys():
        values[key] = _as_ids(values[key])
    try:
        return Fields(values, _GIVEN, number).paper()
    except BadRecordError as error:
        raise _fault(number, error.message) from error


def _plain(value: Any) -> Any:
    """Return a value of a data frame as one of JSON: None for NaN and NA, lists for arrays and tuples."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if type(value).__name__ in _MISSING or (isinstance(value, float) and isnan(value)):
        return None
    if isinstance(value, tuple | set | frozenset):
        return [*cast("Iterable[Any]", value)]
    return value


def _as_ids(value: Any) -> Any:
    """Return whole numbers, alone or in a list, as text; all else as it is."""
    if isinstance(value, list):
        return [_as_ids(item) for item in cast("list[Any]", value)]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _fault(number: int, message: str) -> BadInputError:
    return BadInputError(_GIVEN, f"record {number}: {message}")
