"""Converts the files of public repositories to corpora: papers of IEEE VIS and the ACM, JATS, Web of Science.

Each function receives the files of its repositories by their paths, and returns papers by id.
"""

import csv
import gzip
import hashlib
import html
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from citerec.errors import writing
from citerec.index.splits import FOLDER, SPLITS, write_splits

Files = Mapping[str, Path]  # by path in the repository
Papers = dict[str, "Converted"]  # by id
CORPUS = "corpus.jsonl.gz"


@dataclass(slots=True, kw_only=True)
class Converted:
    """A paper of a public corpus."""

    title: str
    abstract: str = ""
    year: int | None
    authors: list[str]
    venue: str
    citations: set[str] = field(default_factory=set[str])


# --- texts

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_INVISIBLE = "\u00ad\u200b\u200c\u200d\ufeff"


def clean(text: str | None) -> str:
    """Return a text without tags, entities, control characters and repeated white space."""
    text = text or ""
    for _ in range(2):  # some are escaped twice
        text = html.unescape(text)
    text = unicodedata.normalize("NFC", _TAG.sub(" ", text))  # noqa: TID251 (short texts)
    if text.isprintable():  # as nearly every text is
        return " ".join(text.split())
    kept = (
        ("" if char in _INVISIBLE else " ")
        if unicodedata.category(char)[0] == "C" and char not in "\n\t"
        else char
        for char in text
    )
    return " ".join("".join(kept).split())


def key(title: str) -> str:
    """Return the letters and digits of a title, by which titles are compared."""
    folded = unicodedata.normalize("NFKD", title.lower())  # noqa: TID251 (short texts)
    return re.sub(r"[^a-z0-9]+", "", folded)


def doi(text: str | None) -> str:
    """Return the DOI in a text; empty if it is none."""
    bare = re.sub(
        r"^(https?://(dx\.)?doi\.org/|doi:\s*)", "", (text or "").strip().lower()
    ).rstrip(".;, ")
    return bare if re.match(r"^10\.\d{4,9}/\S+$", bare) else ""


# --- papers of IEEE VIS

VIS_FILES = (
    r"vispubdata-update/(\d{4}/original_data/articles-[^/]+\.json|"
    r"results/(vispubdata-update-journals|citations_references(_journals)?_vispubdata)\.csv)"
)
SHEET = "IEEE VIS papers 1990-2015 - Main dataset.csv"
_FRONT_MATTER = re.compile(
    r"^(\[|ieee visualization and graphics technical|message from|preface|\[?(front|back) (cover|matter)|"
    r"table of contents|welcome|title page|copyright|author index|reviewers|committees?|keynote|capstone|panel|cover|"
    r"supporting organi|.*(committee|reviewers)$|vgtc|vis(week)? \d{4}|contents|index|blank page|the .* award|"
    r".*award recipient)",
    re.I,
)
KIND = (
    "Paper type: C=conference paper, J = journal paper, "
    "M=miscellaneous (capstone, keynote, VAST challenge, panel, poster, ...)"
)


References = defaultdict[str, set[str]]  # of a paper: DOIs, or titles


def vis(repositories: Sequence[Files]) -> Papers:
    """Return the papers of IEEE VIS and of the journals of its field: id is the DOI."""
    return _linked_papers(*_vis(repositories))


def _vis(
    repositories: Sequence[Files],
) -> tuple[Papers, References, References]:
    """Return papers by DOI, and of each the DOIs that it cites and the titles of other works."""
    update, network = repositories
    papers: Papers = {}
    cited, titles = References(set), References(set)
    for path, file in update.items():
        year = re.match(r"vispubdata-update/(\d{4})/", path)
        if not year:
            continue
        series = path.rpartition("/articles-")[2].removesuffix(".json")
        for article in json.loads(_text(file)).get("articles", []):
            title = clean(article.get("title"))
            docid = doi(article.get("doi"))
            if not docid or not title or _FRONT_MATTER.search(title):
                continue
            abstract = clean(article.get("abstract"))
            people = (article.get("authors") or {}).get("authors", [])
            names = [clean(person.get("full_name")) for person in people]
            papers[docid] = Converted(
                title=title,
                abstract=abstract if len(abstract) >= 40 else "",
                year=int(year[1]),
                authors=[name for name in names if name],
                venue=f"IEEE VIS ({series})",
            )
    results = "vispubdata-update/results"
    for row in _rows(update[f"{results}/vispubdata-update-journals.csv"]):
        docid = doi(row["DOI"])
        if docid and clean(row["Title"]) and docid not in papers:
            papers[docid] = Converted(
                title=clean(row["Title"]),
                abstract=clean(row["Abstract"]),
                year=int(row["Year"]),
                authors=_listed(row["AuthorNames"]),
                venue=row["Journal"],
            )
    for name in ("citations_references", "citations_references_journals"):
        for row in _rows(update[f"{results}/{name}_vispubdata.csv"]):
            if (docid := doi(row["DOI"])) in papers:
                cited[docid].update(map(doi, row["citedPapers"].split(";")))
                titles[docid].update(row["citedPapersWithoutDOI"].split(":::"))
    for row in _rows(network[SHEET]):
        docid = doi(row["Paper DOI"])
        title = clean(row["Paper Title"])
        if not docid or not title or row[KIND].strip() == "M":
            continue
        paper = papers.setdefault(
            docid,
            Converted(
                title=title,
                year=int(row["Year"]),
                authors=_listed(row["Deduped author names"]),
                venue=row["Conference"],
            ),
        )
        paper.abstract = paper.abstract or clean(row["Abstract"])
        cited[docid].update(map(doi, re.split(r"[;,]", row["References"] or "")))
    # front matter has no reference, and no abstract or no author
    papers = {
        docid: paper
        for docid, paper in papers.items()
        if (paper.abstract and paper.authors) or cited[docid] - {""}
    }
    return papers, cited, titles


def _linked_papers(papers: Papers, cited: References, titles: References) -> Papers:
    """Link papers to those of them that they cite by DOI or by a long title."""
    by_title: dict[str, str] = {}
    for docid, paper in papers.items():
        by_title.setdefault(key(paper.title), docid)
    for docid, paper in papers.items():
        named = {key(clean(title)) for title in titles[docid]}
        found = {by_title.get(title) for title in named if len(title) > 25}
        paper.citations = {other for other in cited[docid] | found if other in papers}
    return papers


def _listed(names: str) -> list[str]:
    return [clean(name) for name in names.split(";") if name.strip()]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _rows(file: Path) -> Iterator[dict[str, str]]:
    text = file.read_bytes().decode(errors="replace")
    before = csv.field_size_limit(10**9)  # of the process
    try:
        rows = [*csv.DictReader(io.StringIO(text))]
    finally:
        csv.field_size_limit(before)
    yield from rows


# --- ACM-CR, with the papers of IEEE VIS

ACM_FILES = r"data/(acm-dl/.*\.bib|topics\+qrels/papers/.*\.dois)"
_ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),(.*?)(?=^@\w+\{|\Z)", re.M | re.S)
_VALUE = re.compile(r"\s*(\w+)\s*=\s*\{(.*)\},?\s*")
_ACCENTS = dict(
    zip(
        "'`^\"~=.cvuHkrdb",
        "\u0301\u0300\u0302\u0308\u0303\u0304\u0307\u0327\u030c\u0306\u030b\u0328\u030a\u0323\u0331",
        strict=True,
    )
)
_LETTERS: Mapping[str, str] = dict(  # longest first
    zip(
        "ss ae AE oe OE aa AA o O l L i j".split(),
        "ßæÆœŒåÅøØłŁij",
        strict=True,
    )
)


def acm_vis(repositories: Sequence[Files]) -> Papers:
    """Return articles of the ACM and of IEEE VIS: id is the DOI.

    Those of VIS cite, and the 50 articles whose references ACM-CR lists. Papers that have no abstract, cite nothing
    and are not cited are left out.
    """
    acm, *others = repositories
    of_vis, cited, titles = _vis(others)
    papers: Papers = {}
    for path, file in acm.items():
        if path.endswith(".dois"):
            docid = "10.1145/" + path.rpartition("/")[2].removesuffix(".dois")
            cited[docid].update(map(doi, _text(file).split()))
        else:
            papers = _of_acm(_text(file)) | papers
    papers = dict(sorted((papers | of_vis).items()))
    papers = _linked_papers(papers, cited, titles)
    named = {
        other for docid, paper in papers.items() for other in paper.citations - {docid}
    }
    return {
        docid: paper
        for docid, paper in papers.items()
        if paper.abstract or paper.citations or docid in named
    }


def _of_acm(text: str) -> Papers:
    """Return the articles of BibTeX as the ACM writes it: a value that goes over several lines counts for nothing."""
    papers: Papers = {}
    for kind, name, body in _ENTRY.findall(text):
        values = dict[str, str]()
        for line in body.splitlines():
            if found := _VALUE.fullmatch(line):
                values.setdefault(found[1].lower(), found[2])
        docid = doi(values.get("doi")) or doi(name)
        if (
            kind not in ("article", "inproceedings")
            or not docid
            or "title" not in values
        ):
            continue
        abstract = clean(values.get("abstract"))
        names = (
            clean(_unescaped(person))
            for person in re.split(r"\s+and\s+", values.get("author", ""))
        )
        year = values.get("year", "")
        venues = (values.get(field) for field in ("journal", "series", "booktitle"))
        papers.setdefault(
            docid,
            Converted(
                title=clean(_unescaped(values["title"])),
                abstract=abstract if len(abstract) >= 40 else "",
                year=int(year) if year.isdigit() else None,
                authors=[
                    " ".join(reversed(one.split(", ", 1))) for one in names if one
                ],
                venue=clean(_unescaped(next(filter(None, venues), ""))),
            ),
        )
    return papers


def _unescaped(text: str) -> str:
    """Return a text with the accents and letters that its TeX means, without grouping braces.

    As it was when the figures were made; `bibliography.keys.to_text` knows more of TeX.
    """
    if "\\" in text:
        text = re.sub(r"\\([&%$#_{}])", r"\1", text)
        marks = (
            r"['`^\"~=.])\s*\{?\\?([A-Za-z])\}?\}?",
            r"[cvuHkrdb])\s*\{\\?([A-Za-z])\}\}?",
        )
        for mark in marks:
            text = re.sub(
                r"\{?\\(" + mark, lambda found: found[2] + _ACCENTS[found[1]], text
            )
        letters = "|".join(_LETTERS)
        text = re.sub(
            rf"\{{?\\({letters})(?![A-Za-z])\s*(?:\{{\}})?\}}?",
            lambda found: _LETTERS[found[1]],
            text,
        )
        text = re.sub(
            r"\\(?:textit|textbf|emph|text|rm|it|bf|em|tt|textsc|texttt)\b\s*", "", text
        )
    return text.replace("{", "").replace("}", "")


# --- Web of Science

WOS_FILES = r"(?i:.*\.(txt|ciw|isi|bib|tsv|xls))"
_FIELD = re.compile(r"[A-Z][A-Z0-9] ")
_BIBTEX = {
    "TI": "title",
    "AB": "abstract",
    "PY": "year",
    "DI": "doi",
    "SO": "(?:journal|booktitle)",
    "VL": "volume",
}
Record = Mapping[str, list[str]]  # lines by tag


def wos(repositories: Sequence[Files], *, bibtex_ids: bool = False) -> Papers:
    """Return the papers of exports of Web of Science, as text, table or BibTeX.

    Their ids are those of Web of Science; in BibTeX, where one paper may come under several, they are titles, unless
    `bibtex_ids`.

    A reference is linked by DOI, else by the surname of its first author, year, volume and first page, if one paper
    alone has these.
    """
    records: dict[str, Record] = {}
    [files] = repositories
    for path, file in files.items():
        for record in _exported(path, file.read_bytes(), bibtex_ids):
            docid = _first(record, "UT") or clean(" ".join(record["TI"])).lower()
            records[docid] = record
    by_doi: dict[str, str] = {}
    by_place: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for docid, record in records.items():
        if own := doi(_first(record, "DI")):
            by_doi[own] = docid
        if all(_first(record, tag) for tag in ("VL", "BP", "AU")):
            surname = _first(record, "AU").split(",")[0]
            place = (_first(record, tag) for tag in ("PY", "VL", "BP"))
            by_place[_letters(surname), *place].add(docid)
    papers: Papers = {}
    for docid, record in records.items():
        year = _first(record, "PY")
        cited = {_linked(line, by_doi, by_place) for line in record.get("CR", ())}
        papers[docid] = Converted(
            title=clean(" ".join(record["TI"])),
            abstract=clean(" ".join(record.get("AB", []))),
            year=int(year) if year.isdigit() else None,
            authors=[
                clean(name) for name in record.get("AF") or record.get("AU") or []
            ],
            venue=clean(" ".join(record.get("SO", []))),
            citations={other for other in cited if other and other != docid},
        )
    return papers


def _linked(
    line: str,
    by_doi: Mapping[str, str],
    by_place: Mapping[tuple[str, ...], set[str]],
) -> str | None:
    """Return the paper of a cited reference, such as "Lee A, 2001, J DOC, V57, P3, DOI 10.1108/x"."""
    named = re.search(r"DOI \[?(10\.[^,\]\s]+)", line)
    if named and (docid := by_doi.get(doi(named[1]))):
        return docid
    parts = line.split(", ")
    volume = next((part[1:] for part in parts if re.match(r"V\d", part)), "")
    page = next((part[1:] for part in parts if re.match(r"P\w*\d", part)), "")
    if len(parts) < 4 or not volume or not page:
        return None
    name = parts[0].strip().lower()
    surname = _letters(re.sub(r"[,\s]+\S*$", "", name) or parts[0])
    fitting = by_place.get((surname, parts[1], volume, page), set())
    return next(iter(fitting)) if len(fitting) == 1 else None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _first(record: Record, tag: str) -> str:
    return (record.get(tag) or [""])[0].strip()


def _exported(path: str, data: bytes, bibtex_ids: bool) -> Iterable[Record]:
    """Return the records of a file; none if it is no export with references."""
    try:
        is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    head = text[:3000]
    if "\nPT " in head or (text.startswith(("PT ", "FN ")) and "\tTI\t" not in head):
        return _of_text(text)
    if "\tTI\t" in head and "\tCR\t" in head:
        return _of_table(text)
    if path.lower().endswith(".bib") and "cited-references" in text.lower():
        return _of_bibtex(text, {"UT": "unique-id"} if bibtex_ids else {})
    return ()


def _of_text(text: str) -> Iterator[Record]:
    for block in re.split(r"\nER\s*(?:\n|$)", text.replace("\r\n", "\n")):
        record: defaultdict[str, list[str]] = defaultdict(list)
        tag = ""
        for line in block.splitlines():
            if _FIELD.match(line):
                tag = line[:2]
                record[tag].append(line[3:])
            elif line.startswith("   ") and tag:
                record[tag].append(line[3:])
        if record.get("TI"):
            yield record


def _of_table(text: str) -> Iterator[Record]:
    rows = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    tags = [tag.strip("\ufeff").strip() for tag in next(rows)]
    for row in rows:
        record = {
            tag: value.split("; ") if tag in ("CR", "AU", "AF") else [value]
            for tag, value in zip(tags, row, strict=False)
            if value
        }
        if record.get("TI"):
            yield record


def _of_bibtex(text: str, more: Mapping[str, str]) -> Iterator[Record]:
    for entry in re.split(r"\n@", "\n" + text.replace("\r\n", "\n")):

        def value(name: str, entry: str = entry) -> str:
            found = re.search(
                rf"\n\s*{name}\s*=\s*[{{\"]+(.*?)[}}\"]+,?\s*(?=\n\s*[A-Za-z-]+\s*=|\n\s*\}}|\Z)",
                entry,
                re.S | re.I,
            )
            return re.sub(r"\\([&%$#_])", r"\1", found[1]) if found else ""

        record = {
            tag: [" ".join(value(name).split())]
            for tag, name in {**_BIBTEX, **more}.items()
            if value(name)
        }
        if not record.get("TI"):
            continue
        names = re.split(r"\s+and\s+", value("author"))
        lines = value("cited-references").split("\n")
        record["AU"] = [" ".join(name.split()) for name in names if name.strip()]
        record["BP"] = [value("pages").split("-")[0].strip()]
        record["CR"] = [line.strip().rstrip(".") for line in lines if line.strip()]
        yield record


# --- JATS

ELIFE_FILES = r".*\.xml"
EPMC_FILES = r".*fulltext\.xml"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LEFT_OUT = ("xref", "tex-math", "fn", "object-id", "label")
_CITATIONS = ("element-citation", "mixed-citation", "citation", "nlm-citation")
_NO_ARTICLE = re.compile(r"(correction|erratum|retraction|corrigendum)\b", re.I)


@dataclass(slots=True, kw_only=True)
class _Work:
    """An article, or a work that one cites."""

    title: str
    abstract: str = ""
    year: int | None
    doi: str
    pmid: str
    venue: str
    authors: list[str]
    references: list["_Work"] = field(default_factory=list["_Work"])

    @property
    def id(self) -> str:
        return self.doi or (f"pmid:{self.pmid}" if self.pmid else "")

    @property
    def names(self) -> list[str]:
        """The keys of which any two works share one if they are the same."""
        title = key(self.title)
        return [
            *([f"d:{self.doi}"] if self.doi else []),
            *([f"p:{self.pmid}"] if self.pmid else []),
            *([f"t:{title}"] if len(title) >= 30 else []),
        ]


class _Same:
    """Which names are of one work."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the name that stands for a work."""
        parents = self._parents
        while parents.setdefault(name, name) != name:
            parents[name] = parents[parents[name]]
            name = parents[name]
        return name

    def join(self, names: Sequence[str]) -> None:
        """Record that some names are of one work."""
        for name in names[1:]:
            self._parents[self.of(name)] = self.of(names[0])


def biomed(repositories: Sequence[Files]) -> Papers:  # noqa: PLR0912 (its steps share names)
    """Return articles of eLife and EuropePMC, and every work that two or more of them cite, by its title alone."""
    articles: dict[str, _Work] = {}
    seen = set[str]()  # hashes, which are the names of the files
    for files in repositories:
        for file in files.values():
            if file.name in seen:
                continue
            seen.add(file.name)
            article = _article(file.read_bytes())
            if not article or not article.title or not article.id:
                continue
            if not _NO_ARTICLE.match(article.title):
                articles.setdefault(article.id, article)
    same = _Same()
    for article in articles.values():
        for work in (article, *article.references):
            same.join(work.names)
    ids: dict[str, str] = {}
    for docid, article in articles.items():
        if article.names:
            ids.setdefault(same.of(article.names[0]), docid)
    cited: defaultdict[str, set[str]] = defaultdict(set)
    works: dict[str, _Work] = {}
    printed: defaultdict[str, Counter[str]] = defaultdict(Counter)
    dois: dict[str, str] = {}
    for docid, article in articles.items():
        for work in article.references:
            if not work.names or not work.title:
                continue
            name = same.of(work.names[0])
            cited[docid].add(name)
            printed[name][work.title] += 1
            if work.doi:
                dois[name] = min(dois.get(name, work.doi), work.doi)
            known = works.setdefault(name, work)
            if _completeness(work) > _completeness(known):
                works[name] = work
    papers = {docid: _paper(article) for docid, article in articles.items()}
    counts = Counter(name for names in cited.values() for name in names)
    for name in sorted(counts):
        work = works[name]
        if name not in ids and counts[name] >= 2 and len(key(work.title)) >= 15:
            docid = dois.get(name) or work.id or f"title:{key(work.title)[:80]}"
            docid = f"{docid}#2" if docid in papers else docid
            ids[name] = docid
            papers[docid] = _paper(work)
            papers[docid].title = printed[name].most_common(1)[0][0].rstrip(".")
    for docid in articles:
        papers[docid].citations = {ids[name] for name in cited[docid] if name in ids}
    named = {ids[name] for name in counts if name in ids}
    return {
        docid: paper
        for docid, paper in papers.items()
        if paper.abstract or paper.citations or docid in named
    }


def _completeness(work: _Work) -> tuple[int, bool, str]:
    return len(work.authors), bool(work.year), work.title


def _paper(work: _Work) -> Converted:
    return Converted(
        title=work.title,
        abstract=work.abstract,
        year=work.year,
        authors=work.authors,
        venue=work.venue,
    )


def _article(data: bytes) -> _Work | None:
    """Return the article of a JATS file; None if it is none."""
    data = re.sub(rb"<!DOCTYPE[^>\[]*(\[[^\]]*\])?[^>]*>", b"", data, count=1)
    try:
        root = ET.fromstring(data)
    except ET.ParseError:
        return None
    meta = root.find(".//front/article-meta")
    if meta is None:
        return None
    ids = {
        element.get("pub-id-type"): (element.text or "").strip()
        for element in meta.findall("article-id")
    }
    abstracts = (
        element
        for element in meta.findall("abstract")
        if element.get("abstract-type") in (None, "", "section", "structured")
    )
    abstract = _words(next(abstracts, None))
    abstract = re.sub(r"^(abstract|summary)[:.\s]+", "", abstract, flags=re.I)
    years = [(year.text or "").strip() for year in meta.findall("pub-date/year")]
    contributors = (
        element
        for element in meta.findall("contrib-group/contrib")
        if element.get("contrib-type") in ("author", None)
    )
    people = (name for element in contributors for name in element.findall("name"))
    return _Work(
        title=_words(meta.find("title-group/article-title")),
        abstract=re.sub(r"\s*DOI:?\s*http\S+\s*$", "", abstract),
        year=min((int(year) for year in years if year.isdigit()), default=None),
        doi=doi(ids.get("doi")),
        pmid=re.sub(r"\D", "", ids.get("pmid", "")),
        venue=_words(root.find(".//front/journal-meta//journal-title")),
        authors=[_person(name) for name in people],
        references=[*_references(root)],
    )


def _references(root: ET.Element) -> Iterator[_Work]:
    """Yield the first citation with a title of each reference."""
    for reference in root.iter("ref"):
        for element in reference:
            title = element.find("article-title")
            if element.tag.rpartition("}")[2] not in _CITATIONS or title is None:
                continue
            ids = dict[str | None, str]()
            for number in element.findall("pub-id"):
                ids[number.get("pub-id-type")] = number.text or ""
            links = (doi(link.get(_HREF)) for link in element.iter("ext-link"))
            year = element.find("year")
            printed = "".join(year.itertext()) if year is not None else ""
            found = re.search(r"\b(1[89]\d\d|20[0-2]\d)\b", printed)
            yield _Work(
                title=_words(title),
                year=int(found[1]) if found else None,
                doi=doi(ids.get("doi")) or next(filter(None, links), ""),
                pmid=re.sub(r"\D", "", ids.get("pmid", "")),
                venue=_words(element.find("source")),
                authors=[_person(name) for name in element.iter("name")][:12],
            )
            break


def _person(name: ET.Element) -> str:
    parts = (name.findtext("given-names"), name.findtext("surname"))
    return clean(" ".join(filter(None, parts)))


def _words(element: ET.Element | None) -> str:
    """Return the text of an element, without formulas and marks of citations."""

    def walk(node: ET.Element) -> Iterator[str]:
        yield node.text or ""
        for child in node:
            tag = child.tag.rpartition("}")[2]
            if tag not in _LEFT_OUT:
                yield from walk(child)
            if tag in ("p", "title", "sec", "break"):
                yield " "
            yield child.tail or ""

    return "" if element is None else clean("".join(walk(element)))


# --- the corpus


def convert(
    read: Callable[[Sequence[Files]], Papers],
    repositories: Sequence[Files],
    folder: Path,
    *,
    by_query: bool = False,
) -> dict[str, int]:
    """Write the papers that `read` finds as a corpus; the counts of `write_corpus`."""
    return write_corpus(read(repositories), folder, by_query=by_query)


def write_corpus(
    papers: Papers, folder: Path, *, by_query: bool = False
) -> dict[str, int]:
    """Write papers as canonical JSON lines, by id, and their splits; return counts.

    Papers that have a year, by year and sha1 of the id: the oldest 80 % are train, the next 10 % dev, the latest 10 %
    test; with `by_query`, of those that cite a paper of no later year. A query cites such a paper, one of dev none of
    test.
    """
    gold: dict[str, list[str]] = {}
    citations = 0
    with (
        writing(folder),
        (folder / CORPUS).open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as sink,
    ):
        for docid in sorted(papers):
            paper = papers[docid]
            cited = sorted((paper.citations & papers.keys()) - {docid})
            citations += len(cited)
            gold[docid] = [
                other
                for other in cited
                if (year := papers[other].year) and paper.year and year <= paper.year
            ]
            record: dict[str, Any] = {
                "id": docid,
                "title": paper.title,
                "abstract": paper.abstract,
                "year": paper.year,
            }
            more = {"authors": paper.authors, "venue": paper.venue}
            record |= {name: value for name, value in more.items() if value}
            line = json.dumps({**record, "citations": cited}, ensure_ascii=False)
            sink.write(f"{line}\n".encode())
    dated = sorted(
        (docid for docid, paper in papers.items() if paper.year),
        key=lambda docid: (
            papers[docid].year,
            hashlib.sha1(docid.encode(), usedforsecurity=False).hexdigest(),
        ),
    )
    if by_query:
        dated = [docid for docid in dated if gold[docid]]
    first = len(dated) * 8 // 10
    second = first + (len(dated) - first) // 2
    parts = (dated[:first], dated[first:second], dated[second:])
    pools = (set(dated[:first]), set(dated[:second]), set(papers))
    splits = {
        name: [
            docid
            for docid in part
            if gold[docid] and (by_query or not pool.isdisjoint(gold[docid]))
        ]
        for name, part, pool in zip(SPLITS, parts, pools, strict=True)
    }
    with writing(folder):
        write_splits(folder / FOLDER, splits)
    queries = {f"{name}_queries": len(ids) for name, ids in splits.items()}
    return {"papers": len(papers), "citations": citations, **queries}
