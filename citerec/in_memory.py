"""An index from papers in memory: dicts, `Paper` objects or a data frame."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, fields
from math import isnan
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from citerec.build.index import BuildConfig, build_index
from citerec.config import RecommendConfig
from citerec.encode.models import HubError
from citerec.errors import BadInputError, shown
from citerec.recommend import Recommender
from citerec.types import Log, Paper, no_log

KEYS = tuple(field.name for field in fields(Paper))
_SOURCE = Path("papers")  # what messages call the records


def from_papers(
    papers: Iterable[Any],
    *,
    encoder: str | None = None,
    path: str | PathLike[str] | None = None,
    config: RecommendConfig | None = None,
    log: Log = no_log,
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
        encoder: The model for the vectors, as `citerec index --encoder` takes it. None (or `none`) makes no vectors:
            BM25 alone finds the candidates, which needs no model and no network.
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
    build = BuildConfig(format="canonical", encoder=encoder)
    on_close = None
    with TemporaryDirectory(prefix="citerec-") as folder, ExitStack() as on_error:
        corpus = Path(folder, "papers.jsonl")
        with corpus.open("wb") as file:
            file.writelines(_lines(papers))
        if path is None:
            made = TemporaryDirectory(prefix="citerec-", ignore_cleanup_errors=True)
            path = Path(on_error.enter_context(made), "papers")
            on_close = made.cleanup
        try:
            index = build_index(corpus, path, build, log=log).index
        except BadInputError as error:  # its path is that of the temporary file
            place = f"record {error.line}: " if error.line else ""
            raise BadInputError(_SOURCE, f"{place}{error.message}") from error
        except HubError as error:
            error.add_note('choose encoder="minilm"')
            raise
        recommender = Recommender(index, config, log, on_close=on_close)
        on_error.pop_all()
        return recommender


def _lines(papers: Any) -> Iterator[bytes]:
    """Yield each paper as a line of a canonical corpus."""
    if hasattr(papers, "to_dicts"):  # of polars
        records = papers.to_dicts()
    elif hasattr(papers, "to_dict"):  # of pandas
        records = papers.to_dict("records")
    elif isinstance(papers, str | bytes | Mapping | Paper) or not hasattr(
        papers, "__iter__"
    ):
        expected = "a list of dicts or papers, or a data frame; for a corpus file: citerec index"
        raise BadInputError(_SOURCE, f"found {shown(papers)}; expected {expected}")
    else:
        records = papers
    number = 0
    for number, record in enumerate(records, start=1):
        given: Any = asdict(record) if isinstance(record, Paper) else record
        fault = ""
        if not isinstance(given, Mapping):
            fault = f"expected a dict or a citerec.Paper, found {shown(record)}"
        elif unknown := [key for key in given if key not in KEYS]:
            fault = f"unknown key {shown(unknown[0])}; the keys are: {', '.join(KEYS)}"
        if fault:
            raise BadInputError(_SOURCE, f"record {number}: {fault}")
        values = {
            key: plain
            for key, value in given.items()
            if (plain := _plain(value)) is not None
        }
        for key in {"id", "citations"} & values.keys():
            value = values[key]
            values[key] = (
                [*map(_as_id, value)] if isinstance(value, list) else _as_id(value)
            )
        yield orjson.dumps(values, default=str, option=orjson.OPT_APPEND_NEWLINE)
    if not number:
        raise BadInputError(
            _SOURCE, "there is none; expected at least one paper with id and title"
        )


def _plain(value: Any) -> Any:
    """Return a value of a data frame as one of JSON: None for NaN and NA, lists for arrays and tuples."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    is_missing = type(value).__name__ in {"NAType", "NaTType"}  # of pandas
    if is_missing or (isinstance(value, float) and isnan(value)):
        return None
    return [*value] if isinstance(value, tuple | set | frozenset) else value


def _as_id(value: Any) -> Any:
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    )
