"""Corpora of one JSON object a paper: citerec's own, and those of ten others.

Sources: BEIR: Thakur et al., NeurIPS 2021. Open Research Corpus: Ammar et al., NAACL 2018. Citeomatic: Bhagavatula et
al., NAACL 2018. arXiv's snapshot: https://www.kaggle.com/datasets/Cornell-University/arxiv. AMiner's DBLP v10 to v14:
https://www.aminer.org/citation. OpenAlex: https://developers.openalex.org.
Semantic Scholar: https://api.semanticscholar.org/api-docs/graph. Europe PMC: https://europepmc.org/RestfulWebService.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from citerec.bibliography.entry import Entry, first_year
from citerec.bibliography.fields import NO_CITATIONS, Fields, library_paper, number_text
from citerec.bibliography.json_entries import to_entry
from citerec.bibliography.keys import doi_of, dois_of, id_key, plain_text, to_text
from citerec.corpus.readers.files import (
    KEYS,
    BytesRead,
    Format,
    Located,
    Source,
    ToPaper,
    json_records,
    papers_of,
    read_file,
)
from citerec.display import plural
from citerec.errors import BadInputError, BadRecordError
from citerec.files.reading import read_rows
from citerec.types import Json, Log, Paper

# Two digits of the year begin the ids of arXiv: `hep-th/9901001` until March 2007, `0704.0001` since.
_ARXIV_ID = re.compile(r"(?:[a-z-]+(?:\.[A-Za-z-]+)?/)?([0-9]{2})[0-9]{2}\.?[0-9]{3,5}")
_WORK = re.compile(r"(?:https?://openalex\.org/(?:works/)?)?[Ww]([0-9]{1,18})")
_DATE = re.compile(r"updated_date=([0-9]{4}-[0-9]{2}-[0-9]{2})")


def _openalex(fields: Fields) -> Paper:
    if not (docid := _work(fields.id())):
        fields.fail(f"'id' must be that of a work, such as W1; found {fields.id()!r}")
    title = fields.record.get("title") or fields.record.get("display_name") or ""
    return fields.paper(
        KEYS["openalex"],
        id=docid,  # the short one, such as W2741809807, as API clients use it
        title=plain_text(fields.of({"title": title}).title()),
        abstract=plain_text(fields.restored("abstract_inverted_index")),
        venue=fields.short("primary_location.source.display_name"),
        citations=fields.items(
            "referenced_works",
            lambda value: "" if value is None else _work(value) or None,
        ),
        pages=fields.pages("biblio.first_page", "biblio.last_page"),
    )


def _work(value: object) -> str:
    """Return the short id of a work; empty if it is not one."""
    match = _WORK.fullmatch(value.strip()) if isinstance(value, str) else None
    return f"W{int(match[1])}" if match else ""


def _openalex_papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the works of a file, or of a snapshot, those of the latest `updated_date` first.

    So `--skip-bad` keeps the latest record of a work. Paratext, such as covers, is left out; so are works that the
    snapshot lists as deleted.
    """
    # a snapshot has folders of authors and the like, too
    works = [
        file
        for file in source.files
        if "works" in file.relative_to(source.path).parts[:-1]
    ]
    latest_first = sorted(
        works or source.files,
        key=lambda file: _DATE.findall(str(file.parent)),
        reverse=True,
    )
    deleted = {
        _work(line.split(b",")[0].decode(errors="replace"))
        for file in source.ignored
        if file.name.startswith("deleted_ids.csv")
        for _, line in read_rows(file, "one id a line")
    }

    def why(work: Json) -> str:
        if _work(work.get("id")) in deleted:
            return "works that were deleted"
        is_paratext = work.get("is_paratext") is True or work.get("type") == "paratext"
        return "works that are paratext, such as covers" if is_paratext else ""

    yield from papers_of(latest_first, _openalex, read, log, why=why)


def _aminer(fields: Fields) -> Paper:
    raw = fields.record
    docid = raw.get("id", raw.get("_id"))
    record = fields.of(
        {
            **raw,
            **({} if docid is None else {"id": number_text(docid) or docid}),
            "title": raw.get("title") or "",
            "year": None if raw.get("year") in (0, "0", -1) else raw.get("year"),
        }
    )
    return record.paper(
        KEYS["aminer"],
        abstract=record.text("abstract") or record.restored("indexed_abstract"),
        venue=record.venue("venue"),
        citations=record.items(
            "references",
            lambda value: "" if value in (None, "") else number_text(value) or None,
        ),
        pages=record.pages("page_start", "page_end"),
    )


def _arxiv(fields: Fields) -> Paper:
    docid = fields.id()
    authors = fields.items("authors_parsed", _parsed_name)
    if not authors and isinstance(text := fields.record.get("authors"), str):
        authors = tuple(re.split(r",\s+|\s+and\s+", to_text(text)))
    entry = Entry(
        title=to_text(fields.title()),
        abstract=to_text(fields.text("abstract")),
        year=_arxiv_year(fields, docid),
        authors=authors,
        venue=to_text(fields.text("journal-ref")),
        dois=dois_of(fields.text("doi")),
    )
    return library_paper(
        fields, [docid], entry, url=f"https://arxiv.org/abs/{docid}", type="preprint"
    )


def _parsed_name(parts: Any) -> str | None:
    """Turn `["Doe", "Jane", "Jr."]` into `Jane Doe Jr.`; further parts are affiliations."""
    if not isinstance(parts, list):
        return None
    words = [part for part in cast("list[Any]", parts)[:3] if isinstance(part, str)]
    return to_text(" ".join(filter(None, words[1:2] + words[:1] + words[2:])))


def _arxiv_year(fields: Fields, docid: str) -> int | None:
    """Return the year of the first version; else that in the id; else that of the last update."""
    created = next(
        (version.text("created") for version in fields.objects("versions")), ""
    )
    year = first_year(created)
    if not year and (of_id := _ARXIV_ID.fullmatch(docid)):
        year = int(of_id[1]) + (1900 if int(of_id[1]) > 90 else 2000)
    return year or first_year(fields.text("update_date"))


def _csl(fields: Fields) -> Paper:
    try:
        entry = to_entry(fields.record, Entry(), fields.path)
    except BadInputError as error:
        fields.fail(error.message)
    stated: Any = {
        name: fields.short(name) for name in ("type", "volume", "issue", "publisher")
    }
    return library_paper(
        fields,
        [entry.key, *entry.dois],
        entry,
        url=fields.short("URL"),
        pages=fields.short("page"),
        **stated,
    )


# --- Crossref

_DATES = ("issued", "published-print", "published-online", "posted")


def _crossref(fields: Fields, notices: Collection[str] = ()) -> Paper:
    """Turn a work into a paper; its id is its DOI in lower case, as those that cite it have it.

    `notices` are the DOIs that notices of retraction name.
    """
    title = fields.short("title")
    subtitle = fields.short("subtitle")
    if subtitle not in title:
        title = f"{title}: {subtitle}"
    years = (first_year(str(fields.get(key))) for key in _DATES)
    references = (
        doi_of(reference.short("DOI")).lower()
        for reference in fields.objects("reference")
    )
    docid = id_key(fields.id("DOI"))
    return fields.paper(
        KEYS["crossref"],
        id=docid,
        title=plain_text(title),
        abstract=plain_text(fields.text("abstract")),
        year=next(filter(None, years), None),
        venue=plain_text(fields.short("container-title")),
        citations=tuple(filter(None, references)),
        doi=fields.doi("DOI"),
        retracted=docid in notices or bool(_retractions(fields, "updated-by")),
    )


def _retractions(work: Fields, key: str) -> set[str]:
    """Return the DOIs of the retractions among the updates of a work."""
    return {
        doi_of(update.short("DOI")).lower()
        for update in work.objects(key)
        if update.short("type").lower() == "retraction"
    }


def _crossref_papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the works; files are read twice, since a work is retracted if a notice among them says so."""
    notices = set[str]()
    without_doi = 0
    for file in source.files:
        for line, row in read_file(file, json_records):
            with suppress(BadRecordError):  # counted below
                work = Fields({} if isinstance(row, str) else row, file, line)
                notices |= _retractions(work, "update-to")
                without_doi += sum(
                    not reference.short("DOI")
                    for reference in work.objects("reference")
                )
    yield from papers_of(source.files, partial(_crossref, notices=notices), read, log)
    if without_doi:
        log(f"left out {without_doi:,} references without a DOI")


_RETRACTED = re.compile(
    r"\W?(?:RETRACTED|Retracted)(?: (?i:article|chapter|paper))?\s?[:\]]"
)


def s2_paper(fields: Fields) -> Paper:
    """Turn a paper of the API of Semantic Scholar into one; its references have its ids, too."""
    references = (
        reference.short("paperId") for reference in fields.objects("references")
    )
    title = plain_text(fields.title())
    return fields.paper(
        KEYS["s2"],
        title=title,
        retracted=bool(_RETRACTED.match(title)),  # the service has no field for it
        abstract=plain_text(fields.text("abstract")),
        venue=fields.short("venue") or fields.short("journal.name"),
        citations=tuple(dict.fromkeys(filter(None, references))),
        doi=fields.doi("externalIds.DOI"),
    )


def _europepmc(fields: Fields) -> Paper:
    """Turn a result of Europe PMC into a paper; that of `resultType=core` has more, under other names."""
    return fields.paper(
        KEYS["europepmc" if "pubTypeList" in fields.record else "europepmc_lite"],
        title=plain_text(fields.title()),
        abstract=plain_text(fields.text("abstractText")),
        authors=fields.names("authorList.author")
        or tuple(
            filter(None, fields.text("authorString").removesuffix(".").split(", "))
        ),
        retracted="retracted publication"
        in f"{fields.get('pubTypeList')} {fields.get('pubType')}".lower(),
    )


# what others call the fields of citerec's own format
_MEANT = {
    "author": "authors",
    "authorString": "authors",
    "date": "year",
    "published": "year",
    "pubYear": "year",
    "pub_date": "year",
    "journal": "venue",
    "journalTitle": "venue",
}


def _canonical_papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the records of citerec's own format; `log` receives which fields are not read since they are named else."""
    unread = Counter[str]()

    def count(record: Json) -> str:
        named = _MEANT.keys() & record.keys()
        unread.update(name for name in named if not record.get(_MEANT[name]))
        return ""

    yield from papers_of(source.files, Fields.paper, read, log, why=count)
    for name, many in sorted(unread.items()):
        log(
            f"{name!r} of {plural(many, 'record')} is not read: citerec's own format has {_MEANT[name]!r}"
        )


# --- All of them


def _json(
    read: ToPaper,
    needed: str,
    own: str,
    other: str = "citations",
    **more: Any,
) -> Format:
    """Return the format of records that have all keys of `needed`, one of `own` and none of `other`."""

    def matches(record: Json) -> bool:
        keys = record.keys()
        has_own = not keys.isdisjoint(own.split()) and keys.isdisjoint(other.split())
        return keys >= {*needed.split()} and has_own

    return Format(read=read, matches=matches, **more)


_CROSSREF = _json(
    _crossref,
    "DOI",
    "indexed is-referenced-by-count member reference reference-count references-count",
    papers=_crossref_papers,
)


def _is_crossref(record: Json) -> bool:
    """Whether it is a work of Crossref; one with selected fields alone has what no other source has: several titles."""
    return _CROSSREF.matches(record) or isinstance(record.get("title"), list)


# The first match wins. Only canonical records have `citations`.
JSON_FORMATS: Mapping[str, Format] = {
    "openalex": _json(
        _openalex,
        "id",
        "abstract_inverted_index referenced_works authorships works_count publication_year",
        papers=_openalex_papers,
    ),
    "crossref": replace(_CROSSREF, matches=_is_crossref),
    "europepmc": _json(_europepmc, "id source title", "authorString pubYear pubType"),
    "csl": _json(
        _csl,
        "title",
        "issued container-title author accessed citation-key DOI event-title genre page publisher-place URL",
        "_id year authors citations authorships paperAbstract pub_date",
        note=NO_CITATIONS,
    ),
    "arxiv": _json(
        _arxiv,
        "id",
        "authors_parsed versions",
        note=NO_CITATIONS.replace("this library", "the snapshot of arXiv"),
    ),
    "openresearch": _json(
        lambda fields: fields.paper(KEYS["openresearch"]),
        "id",
        "paperAbstract outCitations inCitations s2Url keyPhrases",
    ),
    "citeomatic": _json(
        lambda fields: fields.paper(KEYS["citeomatic"]),
        "id",
        "out_citations in_citations key_phrases out_citation_count",
    ),
    "s2": _json(s2_paper, "paperId", "title authors externalIds abstract year", "id"),
    "beir": _json(
        lambda fields: fields.of({"title": "", **fields.record}).paper(KEYS["beir"]),
        "_id",
        "text",
    ),
    "aminer": _json(_aminer, "title", "references n_citation indexed_abstract fos"),
    "canonical": _json(Fields.paper, "title", "id", "", papers=_canonical_papers),
}
