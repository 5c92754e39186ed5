"""Rankings by query, the judgements they are held against, and both as TREC files.

A run file has `qid Q0 docid rank score tag` on a line, a qrels file `qid 0 docid rel`. Columns stand
apart by white space, so an id is written with `_` for each white-space character (`trec_id`).
"""

import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO, TypeAlias

from citerec.atomic import replacing
from citerec.errors import BadInputError, OutputError, writing
from citerec.inputs import read_rows
from citerec.types import Ranking

Qrels: TypeAlias = Mapping[str, frozenset[str]]
"""The papers that each query cites; a query without any has no place in it."""

_RUN_COLUMNS = "qid Q0 docid rank score tag"
_QRELS_COLUMNS = "qid 0 docid rel"
_BEIR_HEADER = ["query-id", "corpus-id", "score"]
# NUL and a byte order mark read as another encoding, and half a surrogate pair has no UTF-8.
_UNWRITABLE = re.compile("[\\s\0\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Run:
    """What one system recommends for each query; a query with nothing found has an empty ranking."""

    name: str
    rankings: Mapping[str, Ranking]


def trec_id(text: str) -> str:
    """Return an id as a TREC file can hold it: one `_` for each white-space character."""
    return _UNWRITABLE.sub("_", text) or "_"


def trec_ids(ids: Iterable[str], file: Path | str) -> Iterator[str]:
    """Yield distinct ids as `trec_id` gives them, in their order.

    Raises:
        OutputError: If two of them would be the same in `file`.
    """
    written: dict[str, str] = {}
    for given in ids:
        here = trec_id(given)
        other = written.setdefault(here, given)
        if other != given:
            raise OutputError(
                f"cannot write {file}: the ids {other!r} and {given!r} are the same in a TREC file, "
                "where white space becomes '_'; rename one of them"
            )
        yield here


def trec_qrels(qrels: Qrels) -> Qrels:
    """Return `qrels` with all ids as `trec_id` writes them, so that they meet those of run files."""
    return {trec_id(qid): frozenset(map(trec_id, gold)) for qid, gold in qrels.items()}


def read_run(path: Path, name: str | None = None) -> Run:
    """Read a TREC run file, plain or packed.

    As in trec_eval, scores decide the order and the rank column is not read; equal scores stand by
    rising docid. Lines may come in any order.

    Args:
        path: The file.
        name: What to call the run; the tag of its last line if not given.

    Raises:
        BadInputError: If there is no line, or one without six columns, with a score that is no
            finite number, or with a paper that the query has already.
    """
    scores: dict[str, dict[str, float]] = {}
    tag = ""
    for number, line in read_rows(path, f"lines of {_RUN_COLUMNS}"):
        columns = _columns(path, number, line, expected=_RUN_COLUMNS)
        qid, _, docid, _, score, tag = columns
        _add(scores, qid, docid, _number(path, number, score), where=(path, number))
    if not scores:
        raise BadInputError(path, f"an empty run; expected lines of {_RUN_COLUMNS}")
    rankings = {qid: Ranking.from_scores(found) for qid, found in scores.items()}
    return Run(tag if name is None else name, rankings)


def write_run(run: Run, path: Path) -> None:
    """Write a TREC run file, in one step: `path` holds the whole run or what it held before.

    Scores are printed in full, so that reading gives the same floats. A query with an empty ranking
    has no line.

    Raises:
        OutputError: If the file cannot be written, or two ids would be the same in it.
    """
    qids = list(trec_ids(run.rankings, path))
    tag = trec_id(run.name)
    with _replacing(path) as file:
        for qid, ranking in zip(qids, run.rankings.values(), strict=True):
            written = _as_trec(ranking, path)
            for rank, (docid, score) in enumerate(
                zip(written.ids, written.scores, strict=True), start=1
            ):
                file.write(f"{qid} Q0 {docid} {rank} {float(score)!r} {tag}\n")


def read_qrels(path: Path) -> Qrels:
    """Read TREC qrels, or BEIR's table with the header `query-id corpus-id score`; plain or packed.

    A relevance of 0 or less is no citation, and a query without any citation is left out. BEIR's
    columns stand apart by tabs, so its ids may hold spaces.

    Raises:
        BadInputError: If no line tells a citation, or one has the wrong columns, a relevance that is
            no finite number, or a paper that the query has already.
    """
    judged: dict[str, dict[str, float]] = {}
    for number, qid, docid, relevance in _judgements(path):
        _add(judged, qid, docid, _number(path, number, relevance), where=(path, number))
    gold = {
        qid: frozenset(i for i, rel in found.items() if rel > 0) for qid, found in judged.items()
    }
    qrels = {qid: ids for qid, ids in gold.items() if ids}
    if not qrels:
        raise BadInputError(path, f"no relevant paper in it; expected lines of {_QRELS_COLUMNS}")
    return qrels


def write_qrels(qrels: Qrels, path: Path) -> None:
    """Write TREC qrels in one step, the papers of a query by rising id.

    Raises:
        OutputError: If the file cannot be written, or two ids would be the same in it.
    """
    qids = list(trec_ids(qrels, path))
    with _replacing(path) as file:
        for qid, gold in zip(qids, qrels.values(), strict=True):
            for docid in trec_ids(sorted(gold), path):
                file.write(f"{qid} 0 {docid} 1\n")


def _as_trec(ranking: Ranking, path: Path) -> Ranking:
    ids = list(trec_ids(ranking.ids, path))
    if ids == list(ranking.ids):
        return ranking
    # Among equal scores another id may mean another place: the file must say what a reader finds.
    return Ranking.from_scores(dict(zip(ids, ranking.scores, strict=True)))


def _judgements(path: Path) -> Iterator[tuple[int, str, str, str]]:
    beir = False
    for number, line in read_rows(path, f"lines of {_QRELS_COLUMNS}"):
        if number == 1 and line.decode(errors="replace").lower().split() == _BEIR_HEADER:
            beir = True
        elif beir:
            expected = "query-id corpus-id score"
            qid, docid, rel = _columns(path, number, line, expected=expected, separator=b"\t")
            yield number, qid, docid, rel
        else:
            qid, _, docid, rel = _columns(path, number, line, expected=_QRELS_COLUMNS)
            yield number, qid, docid, rel


def _columns(
    path: Path, number: int, line: bytes, *, expected: str, separator: bytes | None = None
) -> list[str]:
    # Bytes split at ASCII white space only: a no-break space belongs to its id.
    fields = line.strip().split(separator)
    if len(fields) != len(expected.split()):
        raise BadInputError(
            path,
            f"{len(fields)} columns found, {len(expected.split())} expected: {expected}",
            line=number,
        )
    try:
        return [field.decode() for field in fields]
    except UnicodeDecodeError as error:
        raise BadInputError(path, "not UTF-8; save it as UTF-8 text", line=number) from error


def _number(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadInputError(path, f"{text!r} is not a number", line=line) from None
    if not isfinite(value) or "_" in text:
        raise BadInputError(path, f"{text!r} is not a finite number", line=line)
    return value


def _add(
    found: dict[str, dict[str, float]],
    qid: str,
    docid: str,
    value: float,
    *,
    where: tuple[Path, int],
) -> None:
    papers = found.setdefault(qid, {})
    if docid in papers:
        path, line = where
        raise BadInputError(path, f"paper {docid!r} stands twice for query {qid!r}", line=line)
    # One string per paper, not one per line: a run of 20 000 queries names each paper many times.
    papers[sys.intern(docid)] = value


@contextmanager
def _replacing(path: Path) -> Generator[TextIO]:
    """Yield a text file that replaces `path` when the block ends without an error."""
    with (
        writing(path),
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        yield file
