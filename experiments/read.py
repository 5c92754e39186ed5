"""Measure what is read of the files of a folder: how many, their titles, abstracts and references; write a page.

    python experiments/read.py FOLDER... --index INDEX

A file is read as the command line reads it. A folder within FOLDER that holds LaTeX, or a .zip, is one project, read as
the page reads it. `gold.jsonl` beside the files says what is right, one file a line: `{"file": "a.pdf", "title": ...,
"abstract": ..., "citations": [ids]}`; the citations are ids of INDEX, which is needed for them alone. The results hold
kinds and counts, no texts and no names of files.
"""

import argparse
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from citerec.bibliography.entry import PaperList
from citerec.bibliography.keys import title_key
from citerec.corpus.lists import read_paper_list
from citerec.drafts import read_queries
from citerec.encode.machine import provenance
from citerec.errors import CiterecError
from citerec.index.folder import open_index
from citerec.index.papers import Papers
from citerec.match.papers import listed_rows, same_title
from citerec.serve.uploads import Upload, read_files

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "read"
PROJECT = "LaTeX project"
DRAFTS = {
    ".tex": "LaTeX",
    ".docx": "Word",
    ".odt": "OpenDocument",
    ".rtf": "RTF",
    ".md": "Markdown",
    ".qmd": "Markdown",
    ".rmd": "Markdown",
    ".typ": "Typst",
    ".html": "HTML",
    ".pdf": "PDF",
    ".txt": "text",
}
LISTS = frozenset(
    {".bib", ".ris", ".nbib", ".enw", ".ciw", ".rdf", ".csv", ".tsv", ".json", ".jsonl"}
)
SAME_WORDS = 0.85  # F1 of the words of an abstract that is right
ABOUT = """# What is read of files as people have them

`python experiments/read.py FOLDER... --index INDEX`; no file is part of the project. "Refused": one line in place of a
result. "Abstract": found as such, not the first paragraphs in its place. "References": files that have some, and
how many they have; of a list, its entries. "Without": files without references, and how many of these say so.
Seconds of a processor for one file, its process included: median and largest.

| folder | kind | files | refused | title | abstract | references | of them | without | say so | median | largest |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
RIGHT = f"""
Against what is right (`gold.jsonl`). A title is right if a corpus would take it for the same; an abstract, if the F1
of its words is at least {SAME_WORDS}. References are papers of an index: those that the article cites there, those of
them that were found, and those that were found and are not cited.

| folder | kind | files | titles right | abstracts right | references | found | wrong |
|---|---|---|---|---|---|---|---|
"""


@dataclass
class Counts:
    """What was read of the files of one kind."""

    files: int = 0
    refused: int = 0
    titles: int = 0
    abstracts: int = 0
    with_references: int = 0
    references: int = 0
    said_none: int = 0  # files without references whose notices say so
    seconds: list[float] = field(default_factory=list)
    known: int = 0  # files with a gold title
    titles_right: int = 0
    known_abstracts: int = 0
    abstracts_right: int = 0
    gold: int = 0  # papers of the index that these files cite
    found: int = 0  # of them
    wrong: int = 0  # papers of the index that were found and are not cited


@dataclass(frozen=True)
class Read:
    """What was read of one file."""

    title: str
    abstract: str  # empty if something else stands for it
    cited: PaperList | None
    notices: Sequence[str]


def main() -> None:
    """Read the folders that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--index", type=Path, help="the index whose ids gold.jsonl has")
    options = parser.parse_args()
    papers = open_index(options.index).papers if options.index else None
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.folders:
        kinds = {
            kind: asdict(counts)
            for kind, counts in sorted(counted(folder, papers).items())
        }
        for counts in kinds.values():
            seconds = counts["seconds"]
            counts["seconds"] = [round(median(seconds), 2), round(max(seconds), 2)]
        result = {"folder": folder.name, "kinds": kinds, "provenance": provenance({})}
        text = orjson.dumps(result, option=orjson.OPT_INDENT_2)
        (RESULTS / f"{folder.name}.json").write_bytes(text + b"\n")
    (HERE / "READ.md").write_text(page(), encoding="utf-8")


def counted(folder: Path, papers: Papers | None) -> dict[str, Counts]:
    """Read all files of a folder and return what was read of each kind."""
    gold = {
        key: line
        for line in gold_lines(folder)
        for key in (line.get("file"), line.get("pdf"))
    }
    kinds: defaultdict[str, Counts] = defaultdict(Counts)
    for path, kind in files_of(folder):
        counts = kinds[kind]
        counts.files += 1
        start = processor_seconds()
        try:
            read = read_one(path, kind)
        except (CiterecError, UnicodeError):
            counts.refused += 1
            continue
        finally:
            counts.seconds.append(processor_seconds() - start)
        count(counts, read)
        if line := gold.get(path.name):
            compare(counts, read, line, papers)
    return kinds


def gold_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of all `gold.jsonl` of a folder."""
    for path in sorted(folder.rglob("gold.jsonl")):
        yield from map(orjson.loads, path.read_bytes().splitlines())


def files_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files and projects of a folder with their kinds."""
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ".zip" or (
            path.is_dir() and any(path.rglob("*.tex"))
        ):
            yield path, PROJECT
            continue
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            suffix = file.suffix.lower()
            if (
                file.is_file()
                and file.name != "gold.jsonl"
                and suffix in {*DRAFTS, *LISTS}
            ):
                yield file, DRAFTS.get(suffix, suffix)


def read_one(path: Path, kind: str) -> Read:
    """Read a file or a project; CiterecError if it is refused."""
    if kind in LISTS:
        cited = read_paper_list(path)
        return Read(title="", abstract="", cited=cited, notices=cited.unread)
    if kind == PROJECT:
        files = (
            [file for file in path.rglob("*") if file.is_file()]
            if path.is_dir()
            else [path]
        )
        sent = [
            Upload(str(file.relative_to(path.parent)), file.read_bytes())
            for file in files
        ]
        with tempfile.TemporaryDirectory() as folder:
            read = read_files(sent, folder)
        if not read.draft:
            raise next(iter(read.faults), CiterecError("no draft"))
        entries = tuple(entry for _, cited in read.lists for entry in cited.entries)
        title, abstract, notices = (
            read.draft["title"],
            read.draft["abstract"],
            read.notices,
        )
        cited = PaperList(entries)
    else:
        drafts = read_queries(path)
        query = drafts.queries[0]
        title, abstract, notices = query.title, query.abstract, drafts.notices
        cited = drafts.cited
    is_body = any(
        "no abstract" in line or "abstract has only" in line for line in notices
    )
    return Read(
        title=title, abstract="" if is_body else abstract, cited=cited, notices=notices
    )


def count(counts: Counts, read: Read) -> None:
    """Add what was read of a file."""
    references = len(read.cited.entries) if read.cited else 0
    counts.titles += bool(read.title)
    counts.abstracts += bool(read.abstract)
    counts.with_references += bool(references)
    counts.references += references
    # a list of references, even an empty one, has a line of its own
    says = read.cited is not None or any("reference" in line for line in read.notices)
    counts.said_none += not references and says


def compare(
    counts: Counts, read: Read, gold: dict[str, Any], papers: Papers | None
) -> None:
    """Add how much of what was read is right."""
    if title := gold.get("title"):
        counts.known += 1
        counts.titles_right += same_title(read.title, title)
    if abstract := gold.get("abstract"):
        counts.known_abstracts += 1
        ours, theirs = (
            Counter(title_key(text).split()) for text in (read.abstract, abstract)
        )
        shared = (ours & theirs).total()
        counts.abstracts_right += 2 * shared >= SAME_WORDS * (
            ours.total() + theirs.total()
        )
    if papers is not None and (cited := gold.get("citations")):
        rows = {row for row in papers.rows_of(cited).tolist() if row >= 0}
        found = (
            set[int]().union(*listed_rows(read.cited, papers))
            if read.cited
            else set[int]()
        )
        counts.gold += len(rows)
        counts.found += len(rows & found)
        counts.wrong += len(found - rows)


def processor_seconds() -> float:
    """Return the seconds of a processor that this process and those that it started have taken."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def page() -> str:
    """Return the results as a page."""
    results = [
        orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))
    ]
    rows = [
        (one["folder"], kind, one["kinds"][kind])
        for one in results
        for kind in one["kinds"]
    ]
    text = ABOUT
    for folder, kind, counts in rows:
        read = counts["files"] - counts["refused"]
        names = (
            "files",
            "refused",
            "titles",
            "abstracts",
            "with_references",
            "references",
        )
        facts = [folder, kind, *(counts[name] for name in names)]
        facts += [
            read - counts["with_references"],
            counts["said_none"],
            *counts["seconds"],
        ]
        text += f"| {' | '.join(map(str, facts))} |\n"
    text += RIGHT
    for folder, kind, counts in rows:
        if counts["known"]:
            pairs = [("titles_right", "known"), ("abstracts_right", "known_abstracts")]
            shares = [share(counts[part], counts[whole]) for part, whole in pairs]
            found = [counts["gold"], share(counts["found"], counts["gold"])]
            found.append(share(counts["wrong"], counts["found"] + counts["wrong"]))
            facts = [folder, kind, counts["known"], *shares, *found]
            text += f"| {' | '.join(map(str, facts))} |\n"
    return text


def share(part: int, whole: int) -> str:
    """Return a number and its share of another."""
    with suppress(ZeroDivisionError):
        return f"{part} ({part / whole:.1%})"
    return "-"


if __name__ == "__main__":
    main()
