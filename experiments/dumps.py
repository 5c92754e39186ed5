"""Invented dumps of any size in the formats of OpenAlex, Semantic Scholar, AMiner, PubMed and Crossref.

python experiments/readers.py openalex s2ag aminer pubmed crossref
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from readers import text


def numbers(draw: random.Random, most: int) -> list[int]:
    """Return up to 40 numbers of papers that a paper cites."""
    return [draw.randrange(1, most + 2) for _ in range(draw.randrange(40))]


def openalex(number: int, draw: random.Random) -> dict[str, Any]:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(text(draw, 150).split()):
        index.setdefault(word, []).append(place)
    at = "https://openalex.org/"
    return {
        "id": f"{at}W{number}",
        "doi": f"https://doi.org/10.5555/{number}",
        "title": text(draw, 10),
        "display_name": text(draw, 10),
        "publication_year": draw.randrange(1950, 2026),
        "type": "article",
        "is_retracted": False,
        "is_paratext": False,
        "primary_location": {"source": {"display_name": text(draw, 3)}, "landing_page_url": None},
        "authorships": [
            {"author": {"id": f"{at}A{i}", "display_name": text(draw, 2)}, "institutions": []}
            for i in range(4)
        ],
        "biblio": {"volume": "1", "issue": None, "first_page": "7", "last_page": "9"},
        "abstract_inverted_index": index,
        "referenced_works": [f"{at}W{i}" for i in numbers(draw, number)],
        "concepts": [{"id": f"{at}C{i}", "display_name": "x", "score": 0.5} for i in range(20)],
    }


def aminer(number: int, draw: random.Random) -> dict[str, Any]:
    return {
        "id": number,
        "title": text(draw, 10),
        "authors": [{"name": text(draw, 2), "org": text(draw, 4), "id": i} for i in range(4)],
        "venue": {"raw": text(draw, 3), "id": 7},
        "year": draw.randrange(1950, 2026),
        "n_citation": 3,
        "page_start": "7",
        "page_end": "9",
        "doc_type": "Conference",
        "references": numbers(draw, number),
        "abstract": text(draw, 150),
    }


def crossref(number: int, draw: random.Random) -> dict[str, Any]:
    return {
        "DOI": f"10.5555/{number}",
        "URL": f"https://doi.org/10.5555/{number}",
        "title": [text(draw, 10)],
        "container-title": [text(draw, 3)],
        "type": "journal-article",
        "issued": {"date-parts": [[draw.randrange(1950, 2026), 3, 1]]},
        "author": [{"given": "Ada", "family": text(draw, 1), "affiliation": []} for _ in range(4)],
        "abstract": f"<jats:p>{text(draw, 150)}</jats:p>",
        "reference": [
            {"key": f"r{i}", "DOI": f"10.5555/{i}", "doi-asserted-by": "crossref"}
            for i in numbers(draw, number)
        ],
        "reference-count": 3,
        "member": "1",
    }


def pubmed(number: int, draw: random.Random) -> str:
    authors = (f"<Author><LastName>{text(draw, 1)}</LastName><ForeName>A</ForeName></Author>",) * 4
    references = (
        f'<Reference><Citation>x</Citation><ArticleIdList><ArticleId IdType="pubmed">{i}</ArticleId>'
        "</ArticleIdList></Reference>"
        for i in numbers(draw, number)
    )
    terms = '<MeshHeading><DescriptorName UI="D1">x</DescriptorName></MeshHeading>' * 10
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="1">{number}</PMID><Article><Journal><JournalIssue>'
        f"<PubDate><Year>{draw.randrange(1950, 2026)}</Year></PubDate></JournalIssue><Title>{text(draw, 3)}</Title>"
        f"</Journal><ArticleTitle>{text(draw, 10)}</ArticleTitle><Abstract><AbstractText>{text(draw, 150)}"
        f"</AbstractText></Abstract><AuthorList>{''.join(authors)}</AuthorList></Article><MeshHeadingList>{terms}"
        f"</MeshHeadingList></MedlineCitation><PubmedData><ReferenceList>{''.join(references)}</ReferenceList>"
        "</PubmedData></PubmedArticle>"
    )


def s2ag_paper(number: int, draw: random.Random) -> dict[str, Any]:
    return {
        "corpusid": number,
        "externalids": {"DOI": f"10.5555/{number}", "MAG": None, "CorpusId": str(number)},
        "url": f"https://www.semanticscholar.org/paper/{number:040x}",
        "title": text(draw, 10),
        "authors": [{"authorId": str(i), "name": text(draw, 2)} for i in range(4)],
        "venue": text(draw, 3),
        "year": draw.randrange(1950, 2026),
        "publicationtypes": ["JournalArticle"],
        "journal": {"name": text(draw, 3), "pages": "7-9", "volume": "1"},
    }


def s2ag_abstract(number: int, draw: random.Random) -> dict[str, Any]:
    return {"corpusid": number, "openaccessinfo": {"license": None}, "abstract": text(draw, 150)}


def s2ag_citations(number: int, draw: random.Random) -> Iterator[dict[str, Any]]:
    for cited in numbers(draw, number):
        contexts = [text(draw, 15)]
        yield {"citingcorpusid": number, "citedcorpusid": cited, "contexts": contexts}


def endless(make: Callable[[int, random.Random], Any], seed: int = 7) -> Iterator[str]:
    """Yield records without end; their numbers are those of a shuffled block."""
    draw, first = random.Random(seed), 1
    while True:
        block = list(range(first, first + 1000))
        draw.shuffle(block)
        for number in block:
            record = make(number, draw)
            yield record if isinstance(record, str) else json.dumps(record)
        first += 1000


def write(file: Path, records: Iterator[str], size: int, head: str, between: str, tail: str) -> int:
    """Write records of about `size` characters in all; return how many."""
    file.parent.mkdir(parents=True, exist_ok=True)
    packed = file.suffix == ".gz"
    count = length = 0
    with gzip.open(file, "wt", 1) if packed else file.open("w") as stream:
        sink: TextIO = stream  # pyright: ignore[reportAssignmentType]
        sink.write(head)
        while length < size:
            record = next(records)
            sink.write(between + record if count else record)
            length += len(record)
            count += 1
        sink.write(tail)
    return count


def write_lines(folder: Path, size: int, make: Callable[[int, random.Random], Any]) -> None:
    write(folder / "part_000.gz", endless(make), size, "", "\n", "\n")


def write_openalex(folder: Path, size: int) -> None:
    records = endless(openalex)
    for date in ("2024-01-01", "2024-02-01"):
        part = folder / "data" / "works" / f"updated_date={date}" / "part_000.gz"
        write(part, records, size // 2, "", "\n", "\n")


def write_s2ag(folder: Path, size: int) -> None:
    """Write papers and abstracts of a quarter of the size each, and citations of half of it."""
    count = write(folder / "papers" / "0.gz", endless(s2ag_paper), size // 4, "", "\n", "\n")
    write(folder / "abstracts" / "0.gz", endless(s2ag_abstract), size // 4, "", "\n", "\n")
    draw = random.Random(8)
    rows = (
        json.dumps(row)
        for _ in iter(int, 1)
        for row in s2ag_citations(draw.randrange(1, count + 1), draw)
    )
    write(folder / "citations" / "0.gz", rows, size // 2, "", "\n", "\n")


def write_pubmed(folder: Path, size: int) -> None:
    """Write four files, as the baseline has many."""
    records = endless(pubmed)
    for number in range(1, 5):
        file = folder / f"pubmed26n{number:04}.xml.gz"
        write(file, records, size // 4, "<PubmedArticleSet>\n", "\n", "\n</PubmedArticleSet>\n")


DUMPS: dict[str, Callable[[Path, int], Any]] = {
    "openalex": write_openalex,
    "openalex, page of the API": lambda folder, size: write(
        folder / "works.json", endless(openalex), size, '{"meta":{},"results":[', ",", "]}"
    ),
    "s2ag": write_s2ag,
    "aminer v10": lambda folder, size: write_lines(folder, size, aminer),
    "aminer v12, one line": lambda folder, size: write(
        folder / "dblp.json", endless(aminer), size, "[", ",", "]"
    ),
    "pubmed": write_pubmed,
    "crossref": lambda folder, size: write_lines(folder, size, crossref),
    "crossref, items": lambda folder, size: write(
        folder / "0.json.gz", endless(crossref), size, '{"items":[', ",", "]}"
    ),
}
