"""Runs (ranked lists by query) and qrels (their relevance judgements), and both as TREC files.

A run file has lines of `qid Q0 docid rank score tag`, a qrels file lines of `qid 0 docid rel`. Columns are separated
by white space, so each white-space character of an id is written as `_` (`trec_id`).
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import TypeAlias

from citerec.errors import BadInputError, OutputError
from citerec.files.atomic import replacing
from citerec.files.reading import read_rows
from citerec.types import Ranking, falling, single

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""The papers that each query cites, with their grades, from 1; a query without any is left out."""

_RUN = "qid Q0 docid rank score tag"
_QRELS = "qid 0 docid rel"
_BEIR = "query-id corpus-id score"
# of the paper and its number, by column
_PLACES = {
    _RUN: (2, 4),
    _QRELS: (2, 3),
    _BEIR: (1, 2),
}
# A NUL or a byte order mark would be read as another encoding; an unpaired surrogate has no UTF-8 form.
_UNWRITABLE = re.compile("[\\s\0\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Run:
    """The recommendations of one system for each query; a query without any has an empty ranking."""

    name: str
    rankings: Mapping[str, Ranking]


def trec_id(text: str) -> str:
    """Return an id for a TREC file: each white-space character is replaced by `_`."""
    return _UNWRITABLE.sub("_", text) or "_"


def trec_ids(
    ids: Iterable[str], file: Path | str, seen: dict[str, str] | None = None
) -> Iterator[str]:
    """Yield distinct ids in the form of `trec_id`; OutputError if one equals another of them or of `seen`."""
    seen = {} if seen is None else seen
    for original in ids:
        written = trec_id(original)
        if (first := seen.setdefault(written, original)) != original:
            raise OutputError(
                f"cannot write {file}: the ids {first!r} and {original!r} are the same in a TREC file, "
                "where white space becomes '_'; rename one of them"
            )
        yield written


def trec_qrels(qrels: Qrels) -> Qrels:
    """Return `qrels` with all ids in the form of `trec_id`, to match those of run files."""
    return {
        trec_id(qid): {trec_id(docid): grade for docid, grade in gold.items()}
        for qid, gold in qrels.items()
    }


def trec_run(run: Run) -> Run:
    """Return a run with all ids in the form of `trec_id`, likewise."""
    rankings = {
        trec_id(qid): Ranking.from_scores(
            dict(zip(map(trec_id, ranking.ids), ranking.scores, strict=True))
        )
        for qid, ranking in run.rankings.items()
    }
    return Run(run.name, rankings)


def read_run(path: Path, name: str | None = None) -> Run:
    """Read a TREC run file, plain or compressed.

    As in trec_eval, scores as float32 decide the order and the rank column is ignored; equal scores are ordered by
    falling docid, and become a little smaller one after the other. Lines may be in any order.

    The run has the tag of its last line as its name, unless `name` is given. BadInputError if there is no line, or one
    without six columns, with a score that is not a finite number, or with a paper that occurs above for the same query.
    """
    scores, tag = _read(path, _RUN)
    if not scores:
        raise BadInputError(path, f"an empty run; expected lines of {_RUN}")
    rankings: dict[str, Ranking] = {}
    for qid, values in scores.items():
        numbers = single(list(values.values())).tolist()
        ranked = sorted(zip(numbers, values, strict=True), reverse=True)
        strict = falling([number for number, _ in ranked]).tolist()
        rankings[qid] = Ranking(tuple(docid for _, docid in ranked), tuple(strict))
    return Run(tag if name is None else name, rankings)


def trec_lists(
    lists: Iterable[tuple[str, Iterable[str], Sequence[float]]],
    tag: str,
    file: Path | str,
) -> Iterator[str]:
    """Yield the lines of each list: the id of its query, its papers, best first, and their scores.

    Evaluation tools sort a run again by its scores as float32, and each breaks ties in its own way. So a score that is
    not below the previous one is written as the next float32 below it; every other score reads back as the same
    float32. OutputError if two ids would be the same in `file`.
    """
    seen: dict[str, str] = {}
    for qid, ids, scores in lists:
        [query] = trec_ids([qid], file, seen)
        hits = zip(trec_ids(ids, file), falling(scores).tolist(), strict=True)
        yield "".join(
            f"{query} Q0 {docid} {rank} {score!r} {tag}\n"
            for rank, (docid, score) in enumerate(hits, start=1)
        )


def write_run(run: Run, path: Path) -> None:
    """Write a TREC run file in one step: `path` holds the complete run or its old content.

    A query with an empty ranking has no line. OutputError if the file cannot be written, or as of `trec_lists`.
    """
    lists = (
        (qid, ranking.ids, ranking.scores) for qid, ranking in run.rankings.items()
    )
    _write(path, trec_lists(lists, trec_id(run.name), path))


def read_qrels(path: Path, *, empty: list[str] | None = None) -> Qrels:
    """Read TREC qrels, or BEIR's table with the header `query-id corpus-id score`; plain or compressed.

    A relevance is a grade; one of 0 or less is not a citation, and a query without a citation is left out: its id goes
    to `empty`. BEIR's columns are separated by tabs, so its ids may contain spaces. BadInputError if no line states a
    citation, or one has the wrong columns, a relevance that is not a whole number, or a paper that occurs above for the
    same query.
    """
    gold = {
        qid: {docid: int(grade) for docid, grade in values.items() if grade > 0}
        for qid, values in _read(path, _QRELS)[0].items()
    }
    if not (qrels := {qid: ids for qid, ids in gold.items() if ids}):
        raise BadInputError(
            path, f"no relevant paper in it; expected lines of {_QRELS}"
        )
    if empty is not None:
        empty += gold.keys() - qrels.keys()
    return qrels


def write_qrels(qrels: Qrels, path: Path) -> None:
    """Write TREC qrels in one step, the papers of a query by rising id; errors as of `write_run`."""

    def lines() -> Iterator[str]:
        for qid, gold in zip(list(trec_ids(qrels, path)), qrels.values(), strict=True):
            docids = sorted(gold)
            for docid, written in zip(docids, trec_ids(docids, path), strict=True):
                yield f"{qid} 0 {written} {gold[docid]}\n"

    _write(path, lines())


def _read(path: Path, expected: str) -> tuple[dict[str, dict[str, float]], str]:
    """Return the number of each paper by query, and the last column of the last line; BEIR's header is recognised."""
    values: dict[str, dict[str, float]] = {}
    separator = None
    last = ""
    for line, row in read_rows(path, f"lines of {expected}"):
        if (
            line == 1
            and expected == _QRELS
            and row.lower().split() == _BEIR.encode().split()
        ):
            expected = _BEIR
            separator = b"\t"
            continue
        # Bytes are split at ASCII white space only: a no-break space is part of an id.
        fields = row.strip().split(separator)
        count = len(expected.split())
        if len(fields) != count:
            fault = f"{len(fields)} columns found, {count} expected: {expected}"
            raise BadInputError(path, fault, line=line)
        try:
            columns = [field.decode() for field in fields]
        except UnicodeDecodeError as error:
            raise BadInputError(
                path, "not UTF-8; save it as UTF-8 text", line=line
            ) from error
        qid, (docid, text), last = (
            columns[0],
            (columns[i] for i in _PLACES[expected]),
            columns[-1],
        )
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not isfinite(value) or (expected != _RUN and value % 1):
            kind = "finite" if expected == _RUN else "whole"
            raise BadInputError(path, f"{text!r} is not a {kind} number", line=line)
        papers = values.setdefault(qid, {})
        if docid in papers:
            raise BadInputError(
                path, f"paper {docid!r} occurs twice for query {qid!r}", line=line
            )
        # One string per paper, not one per line: a run of 20 000 queries names each paper many times.
        papers[sys.intern(docid)] = value
    return values, last


def _write(path: Path, lines: Iterable[str]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.writelines(line.encode() for line in lines)
