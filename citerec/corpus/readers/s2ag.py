"""The dumps of the Semantic Scholar Academic Graph: papers, and next to them abstracts, citations and paper-ids.

The files of a folder are recognised by their keys. DuckDB joins and sorts them on disk within a memory limit; papers
and citations are then two streams in the order of the corpus ids, which are read side by side. The id of a paper is its
corpus id; with the dump paper-ids it is the sha that the API of Semantic Scholar calls paperId.
Sources: https://api.semanticscholar.org/api-docs/datasets, https://duckdb.org/docs.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain, groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from citerec.bibliography.fields import Fields, number_text
from citerec.corpus.readers.files import (
    KEYS,
    BytesRead,
    Format,
    Located,
    Source,
    first_record,
    head_of,
    located,
    papers_of,
)
from citerec.display import one_line, some_of
from citerec.errors import BadInputError, OutputError, extra, shown
from citerec.types import Json, Log, Paper

_KINDS = {  # the first whose keys a record has
    "citations": "citingcorpusid citedcorpusid",
    "paper-ids": "corpusid sha",
    "abstracts": "corpusid abstract",
    "papers": "corpusid title",
}
BATCH = 8_192  # rows that are fetched at once
# A sort in too little memory fails: a 32nd of the packed dumps, from 256 MB to 4 GB; beyond it DuckDB uses the disk.
_MEMORY = (256, 4096)
_SHARE = 32
_TABLES = """
CREATE TABLE sha AS SELECT corpusid AS corpus, min(sha) AS sha FROM {paper-ids}
    WHERE "primary" IS DISTINCT FROM false GROUP BY corpusid;
CREATE TABLE paper AS SELECT TRY_CAST(json->>'$.corpusid' AS BIGINT) AS corpus, json::VARCHAR AS record FROM {papers};
CREATE TABLE abstract AS SELECT corpusid AS corpus, any_value(abstract) AS text FROM {abstracts} GROUP BY corpusid;
CREATE TABLE citation AS SELECT DISTINCT citingcorpusid AS citing, citedcorpusid AS cited FROM {citations}
    WHERE citedcorpusid IS NOT NULL AND citingcorpusid IN (SELECT corpus FROM paper)
"""
_PAPERS = """SELECT paper.corpus, record, coalesce(sha, paper.corpus::VARCHAR), text FROM paper
    LEFT JOIN sha USING (corpus) LEFT JOIN abstract USING (corpus) ORDER BY paper.corpus, record"""
_CITATIONS = """SELECT citing, coalesce(sha, cited::VARCHAR) FROM citation
    LEFT JOIN sha ON cited = sha.corpus ORDER BY citing, cited"""
_COLUMNS = {
    "abstracts": "corpusid: 'BIGINT', abstract: 'VARCHAR'",
    "citations": "citingcorpusid: 'BIGINT', citedcorpusid: 'BIGINT'",
    "paper-ids": "corpusid: 'BIGINT', sha: 'VARCHAR', \"primary\": 'BOOLEAN'",
}


def _kind(record: Json) -> str | None:
    if "id" in record or "_id" in record:
        return None
    keys = record.keys()
    return next(
        (kind for kind, needed in _KINDS.items() if keys >= {*needed.split()}), None
    )


def _papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the papers of all dumps; those that are joined, in the order of their corpus ids."""
    files: dict[str, list[Path]] = {kind: [] for kind in _KINDS}
    others: list[str] = []
    for file in source.files:
        if kind := _kind(first_record(head_of(file))):
            files[kind].append(file)
        else:
            others.append(str(file.relative_to(source.folder)))
    if others:
        log(
            f"left out {some_of(others)}: neither papers nor abstracts, citations or paper-ids"
        )
    if not files["papers"]:
        present = ", ".join(kind for kind in _KINDS if files[kind])
        raise BadInputError(
            source.path,
            f"the dump of papers is missing; found {present}; put papers into the same folder",
        )
    for kind in ("abstracts", "citations"):
        if not files[kind]:
            log(f"there is no dump of {kind} in {source.path}: the papers have none")
    if sum(map(bool, files.values())) > 1:
        yield from _joined(files, source, log)
        return
    yield from papers_of(files["papers"], _paper, read, log)


def _joined(
    files: Mapping[str, list[Path]], source: Source, log: Log
) -> Iterator[Located]:
    with extra("corpora"):
        import duckdb

    size = sum(file.stat().st_size for dumps in files.values() for file in dumps) >> 20
    memory = min(max(size // _SHARE, _MEMORY[0]), _MEMORY[1])
    with TemporaryDirectory(
        prefix=".joining-", dir=source.scratch, ignore_cleanup_errors=True
    ) as folder:
        (none := Path(folder, "none")).touch()
        tables = {kind: _table(kind, dumps or [none]) for kind, dumps in files.items()}
        settings: Any = {
            "memory_limit": f"{memory}MB",
            "temp_directory": f"{folder}/spill",
        }
        try:
            with closing(
                duckdb.connect(f"{folder}/tables", config=settings)
            ) as database:
                # it would go to stdout
                database.execute("SET enable_progress_bar = false")
                log(
                    "joining the dumps of "
                    + ", ".join(kind for kind in files if files[kind])
                )
                for statement in _TABLES.split(";"):
                    database.execute(statement.format_map(tables))

                def rows(query: str) -> Iterator[tuple[Any, ...]]:
                    cursor = database.cursor().execute(query)
                    return chain.from_iterable(
                        iter(lambda: cursor.fetchmany(BATCH), [])
                    )

                groups = groupby(rows(_CITATIONS), key=lambda row: row[0])
                cited = (
                    (citing, [docid for _, docid in group]) for citing, group in groups
                )
                citing, of_citing = next(cited, (None, []))
                for line, row in enumerate(rows(_PAPERS), start=1):
                    corpus, record, docid, abstract = row
                    while citing is not None and corpus is not None and citing < corpus:
                        citing, of_citing = next(cited, (None, []))
                    citations = of_citing if citing == corpus else []
                    more = {"id": docid, "abstract": abstract, "citations": citations}
                    yield located(
                        source.path, line, orjson.loads(record) | more, _paper
                    )
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            reason = str(error).splitlines()[0][:200]
            raise OutputError(f"cannot join the dumps in {folder}: {reason}") from error
        except duckdb.Error as error:  # names the file and the line
            raise BadInputError(source.path, one_line(str(error))[:300]) from error


def _table(kind: str, files: list[Path]) -> str:
    """Return the SQL of a table of all dumps of a kind."""
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    if kind == "papers":
        return f"read_json_objects([{names}], format = 'newline_delimited')"
    return f"read_json([{names}], format = 'newline_delimited', columns = {{{_COLUMNS[kind]}}})"


def _paper(fields: Fields) -> Paper:
    """Turn one record of the dump of papers into a paper; what was joined to it has the keys of a canonical one."""
    raw = fields.record
    corpus = number_text(raw.get("corpusid"))
    if not corpus.isdecimal():
        fields.fail(
            f"'corpusid' must be a whole number, found {shown(raw.get('corpusid'))}"
        )
    named = {"id": raw.get("id") or corpus, "title": raw.get("title") or ""}
    return fields.of({**raw, **named, "year": raw.get("year") or None}).paper(
        KEYS["s2ag"],
        doi=fields.doi("externalids.DOI"),
        venue=fields.text("venue") or fields.short("journal.name"),
    )


S2AG = Format(
    read=_paper, papers=_papers, matches=lambda record: _kind(record) is not None
)
