"""How fast, and in how much memory, each corpus reader reads invented files of a given size.

    python experiments/readers.py --mb 200 --mb 1000         # every reader
    python experiments/readers.py --mb 50 bibtex ris "web of science"

Each file is read in a process of its own, whose peak memory is printed with that of the same process before it reads.
Streaming readers need the same memory for any size; those that link references hold the keys of all papers.
"""

import argparse
import csv
import io
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WORDS = [a + b + c for a in "bdfglmnprst" for b in ("a", "e", "io", "u") for c in ("rn", "l", "st")]
READ = """
import resource, sys, time
from pathlib import Path
from citerec.corpus.readers import detect_format, read_papers
from citerec.corpus.readers.source import find_source
from citerec.types import Paper

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

source = find_source(Path(sys.argv[1]))
name = detect_format(source)
before, start = peak(), time.process_time()
papers = faults = citations = 0
for located in read_papers(source, name):
    if isinstance(located.paper, Paper):
        papers += 1
        citations += len(located.paper.citations)
    else:
        faults += 1
print(name, papers, faults, citations, time.process_time() - start, before, peak(), sep="\\t")
"""


def text(draw: random.Random, words: int) -> str:
    """Return a text of invented words."""
    return " ".join(draw.choices(WORDS, k=words))


def paper(number: int) -> dict[str, Any]:
    """Return the paper with a number, from 0; it cites some papers before it."""
    draw = random.Random(number)
    return {
        "number": number,
        "title": text(draw, 10).capitalize(),
        "abstract": text(draw, 150),
        "year": 1950 + number % 75,
        "family": family(number),
        "given": "Ada",
        "venue": f"Journal of {text(draw, 2)}",
        "volume": str(1 + number % 97),
        "page": str(1 + number),
        "doi": f"10.5555/{number}" if number % 3 else "",
        "cited": [draw.randrange(number) for _ in range(30)] if number else [],
    }


def bibtex(p: Mapping[str, Any]) -> str:
    return (
        f"@article{{key{p['number']},\n  title = {{{{{p['title']}}}}},\n  author = {{{p['family']}, {p['given']} and "
        f'M{{\\"u}}ller, J.}},\n  journal = {{{p["venue"]}}},\n  year = {p["year"]},\n  volume = {{{p["volume"]}}},\n'
        f"  pages = {{{p['page']}}},\n  doi = {{{p['doi']}}},\n  abstract = {{{p['abstract']}}},\n}}\n"
    )


def ris(p: Mapping[str, Any]) -> str:
    return (
        f"TY  - JOUR\nAU  - {p['family']}, {p['given']}\nTI  - {p['title']}\nAB  - {p['abstract']}\nPY  - {p['year']}\n"
        f"JO  - {p['venue']}\nVL  - {p['volume']}\nSP  - {p['page']}\nDO  - {p['doi']}\nID  - {p['number']}\nER  - \n\n"
    )


def csl(p: Mapping[str, Any]) -> str:
    item = {
        "id": f"item{p['number']}",
        "type": "article-journal",
        "title": p["title"],
        "abstract": p["abstract"],
        "author": [{"family": p["family"], "given": p["given"]}],
        "issued": {"date-parts": [[p["year"]]]},
        "container-title": p["venue"],
        "DOI": p["doi"],
    }
    return json.dumps(item, indent=2)


def arxiv(p: Mapping[str, Any]) -> str:
    item = {
        "id": f"x{p['number']}",
        "title": p["title"],
        "abstract": p["abstract"],
        "authors_parsed": [[p["family"], p["given"], ""]],
        "versions": [{"version": "v1", "created": f"Mon, 2 Apr {p['year']} 19:18:42 GMT"}],
        "update_date": "2024-01-01",
    }
    return json.dumps(item) + "\n"


def wos_references(p: Mapping[str, Any]) -> list[str]:
    return [
        f"{c['family']} A, {c['year']}, J X, V{c['volume']}, P{c['page']}"
        + (f", DOI {c['doi']}" if c["doi"] else "")
        for c in map(reference, p["cited"])
    ]


def reference(number: int) -> dict[str, Any]:
    """Return how a paper is cited."""
    return {
        "family": family(number),
        "year": 1950 + number % 75,
        "volume": 1 + number % 97,
        "page": 1 + number,
        "doi": f"10.5555/{number}" if number % 3 else "",
    }


def family(number: int) -> str:
    """Return the name of the first author of a paper."""
    return WORDS[number % len(WORDS)].capitalize()


def wos_values(p: Mapping[str, Any], between: str) -> dict[str, str]:
    return {
        "PT": "J",
        "AU": f"{p['family']}, A{between}Doe, J",
        "TI": p["title"],
        "SO": p["venue"],
        "AB": p["abstract"],
        "CR": between.join(wos_references(p)),
        "PY": str(p["year"]),
        "VL": p["volume"],
        "BP": p["page"],
        "DI": p["doi"],
        "UT": f"WOS:{p['number']:015}",
    }


def wos(p: Mapping[str, Any]) -> str:
    lines = (f"{tag} {value}\n" for tag, value in wos_values(p, "\n   ").items() if value)
    return "".join(lines) + "ER\n\n"


def wos_row(p: Mapping[str, Any]) -> str:
    return "\t".join(wos_values(p, "; ").values()) + "\n"


SCOPUS = (
    "Authors",
    "Title",
    "Year",
    "Volume",
    "Page start",
    "DOI",
    "Abstract",
    "References",
    "EID",
)


def scopus(p: Mapping[str, Any]) -> str:
    cited = [
        f"{c['family']} A., A title; and more, J X, {c['volume']}, 2, pp. {c['page']}-{c['page']}, ({c['year']})"
        for c in map(reference, p["cited"])
    ]
    values = [f"{p['family']} A.; Doe J.", p["title"], p["year"], p["volume"], p["page"], p["doi"]]
    line = io.StringIO()
    table = csv.writer(line, quoting=csv.QUOTE_ALL)
    table.writerow([*values, p["abstract"], "; ".join(cited), f"2-s2.0-{p['number']}"])
    return line.getvalue()


def endless(write: Callable[[Mapping[str, Any]], str]) -> Iterator[str]:
    number = 0
    while True:
        yield write(paper(number))
        number += 1


def file_of(
    name: str,
    record: Callable[[Mapping[str, Any]], str],
    *,
    encoding: str = "utf-8",
    head: str = "",
    between: str = "",
    tail: str = "",
) -> Callable[[Path, int], None]:
    """Return a function that writes one file of about so many bytes into a folder."""

    def write(folder: Path, size: int) -> None:
        with (folder / name).open("w", encoding=encoding, newline="") as sink:
            sink.write(head)
            for count, one in enumerate(endless(record)):
                sink.write(between + one if count else one)
                if count % 100 == 0 and sink.tell() >= size:
                    break
            sink.write(tail)

    return write


def zotero(folder: Path, size: int) -> None:
    """Write a database with the tables of Zotero that hold items, their fields and creators."""
    database = sqlite3.connect(folder / "zotero.sqlite")
    database.executescript(
        """
        CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
        CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT, libraryID INT, key TEXT);
        CREATE TABLE libraries (libraryID INTEGER PRIMARY KEY, type TEXT);
        INSERT INTO libraries VALUES (1, 'user');
        CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY);
        CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT);
        CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value);
        CREATE TABLE itemData (itemID INT, fieldID INT, valueID INT, PRIMARY KEY (itemID, fieldID));
        CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
        CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
        CREATE TABLE itemCreators (itemID INT, creatorID INT, creatorTypeID INT, orderIndex INT,
          PRIMARY KEY (itemID, creatorID, creatorTypeID, orderIndex));
        INSERT INTO itemTypes VALUES (1, 'journalArticle');
        INSERT INTO creatorTypes VALUES (1, 'author');
        INSERT INTO fields VALUES (1, 'title'), (2, 'abstractNote'), (3, 'date'), (4, 'DOI');
        """
    )
    for number in range(size // 1350):
        p = paper(number)
        database.execute("INSERT INTO items VALUES (?, 1, 1, ?)", (number, f"K{number}"))
        database.execute("INSERT INTO creators VALUES (?, ?, ?, 0)", (number, "Ada", p["family"]))
        database.execute("INSERT INTO itemCreators VALUES (?, ?, 1, 0)", (number, number))
        for field, value in enumerate(
            (p["title"], p["abstract"], str(p["year"]), p["doi"]), start=1
        ):
            key = number * 4 + field
            database.execute("INSERT INTO itemDataValues VALUES (?, ?)", (key, value))
            database.execute("INSERT INTO itemData VALUES (?, ?, ?)", (number, field, key))
    database.commit()
    database.close()


TABLE = "\t".join(wos_values(paper(0), "; ")) + "\n"
READERS: dict[str, Callable[[Path, int], Any]] = {
    "bibtex": file_of("refs.bib", bibtex),
    "ris": file_of("refs.ris", ris),
    "csl": file_of("library.json", csl, head="[\n", between=",\n", tail="\n]\n"),
    "arxiv": file_of("arxiv.json", arxiv),
    "zotero": zotero,
    "web of science, tagged": file_of("savedrecs.txt", wos, head="FN ISI\nVR 1.0\n", tail="EF\n"),
    "web of science, table": file_of("savedrecs.txt", wos_row, encoding="utf-16", head=TABLE),
    "scopus": file_of("scopus.csv", scopus, head=",".join(SCOPUS) + "\r\n"),
}


def main() -> None:
    """Print a table of the readers named, at the sizes named."""
    if find_spec("dumps"):
        READERS.update(import_module("dumps").DUMPS)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("readers", nargs="*", help=f"of: {', '.join(READERS)}; all by default")
    parser.add_argument(
        "--mb", type=int, action="append", help="a size in MB; 50 and 200 by default"
    )
    options = parser.parse_args()
    print("| file | MB | papers | citations | papers/s | MB/s | memory, MB | before reading |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, write in READERS.items():
        if not options.readers or any(map(name.startswith, options.readers)):
            for megabytes in options.mb or (50, 200):
                print(row(name, write, megabytes), flush=True)


def row(name: str, write: Callable[[Path, int], Any], megabytes: int) -> str:
    """Write one file, read it in another process, and return a row of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "corpus"
        folder.mkdir()
        write(folder, megabytes * 10**6)
        command = [sys.executable, "-c", READ, str(folder)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    _, papers, faults, citations, *figures = output.strip().split("\t")
    if faults != "0":
        raise SystemExit(f"{name}: {faults} records of the invented file cannot be read")
    seconds, before, peak = map(float, figures)
    rates = f"{int(papers) / seconds:,.0f} | {megabytes / seconds:.1f}"
    return f"| {name} | {megabytes} | {int(papers):,} | {int(citations):,} | {rates} | {peak:.0f} | {before:.0f} |"


if __name__ == "__main__":
    main()
