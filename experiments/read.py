"""Measure what is read of the files of a folder: how many, their titles, abstracts and references; write a page.

    python experiments/read.py FOLDER... --index INDEX
    python experiments/read.py --sources FOLDER          # each folder within it has lists of one program or service
    python experiments/read.py --libraries FOLDER        # `check` of each .bib against an index of itself

A file is read as the command line reads it. A folder within FOLDER that holds LaTeX, or a .zip, is one project, read as
the page reads it. `gold.jsonl` beside the files says what is right, one file a line: `{"file": "a.pdf", "title": ...,
"abstract": ..., "citations": [ids]}`; the citations are ids of INDEX, which is needed for them alone. The results hold
kinds and counts, no texts and no names of files.
"""

import argparse
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from citerec.bibliography.entry import PaperList
from citerec.bibliography.keys import title_key
from citerec.build.index import BuildConfig, build_index
from citerec.corpus.lists import read_paper_list
from citerec.drafts import read_queries
from citerec.encode.machine import provenance
from citerec.errors import CiterecError
from citerec.index.folder import open_index
from citerec.index.papers import Papers
from citerec.match.check import check_references
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
SOURCES = """
Lists of programs and services (RIS, and .nbib of PubMed in a file called .ris): their records, and those without a
title, year, DOI or authors. Such records have none in their files either: each was compared with a plain reading of
its tags, ten of most sources by eye.

| source | files | refused | records | no title | no year | no DOI | no authors | seconds |
|---|---|---|---|---|---|---|---|---|
"""
CHECKS = """
`check` of public libraries against indexes of themselves; each finding was judged by eye (`judged` in the results).
False: the entries are of two works (in the three cases the file gives one the title of the other). Versions: the same
title by the same authors in two places, such as a conference and a journal, or two editions.

| library | entries | duplicate | preprint | unreadable | other | false | versions |
|---|---|---|---|---|---|---|---|
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
    # entries of lists without it
    no_title: int = 0
    no_year: int = 0
    no_doi: int = 0
    no_authors: int = 0


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
    parser.add_argument("--sources", type=Path, help="a folder of folders of lists")
    parser.add_argument("--libraries", type=Path, help="a folder of .bib files")
    options = parser.parse_args()
    papers = open_index(options.index).papers if options.index else None
    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.folders:
        write(folder.name, {"kinds": summary(counted(folder, papers))})
    if options.sources:
        sources = {
            folder.name: total(counted(folder, papers).values())
            for folder in sorted(options.sources.iterdir())
        }
        write("sources", {"sources": summary(sources)})
    if options.libraries:
        write("libraries", {"libraries": checked(options.libraries)})
    (HERE / "READ.md").write_text(page(), encoding="utf-8")


def write(name: str, result: dict[str, Any]) -> None:
    """Write the results of a folder."""
    result |= {"folder": name, "provenance": provenance({})}
    text = orjson.dumps(result, option=orjson.OPT_INDENT_2)
    (RESULTS / f"{name}.json").write_bytes(text + b"\n")


def summary(kinds: Mapping[str, Counts]) -> dict[str, dict[str, Any]]:
    """Return counts as JSON, with the median and the largest time."""
    facts = {kind: asdict(counts) for kind, counts in sorted(kinds.items())}
    for counts in facts.values():
        seconds = counts["seconds"]
        counts["seconds"] = [round(median(seconds), 2), round(max(seconds), 2)]
    return facts


def total(parts: Iterable[Counts]) -> Counts:
    """Return the sum of the counts of several kinds."""
    whole = Counts()
    for part in parts:
        for name, count in vars(part).items():
            setattr(whole, name, getattr(whole, name) + count)
    return whole


def checked(folder: Path) -> dict[str, dict[str, Any]]:
    """Check each library of a folder against an index of itself; what was judged by eye stays in the results."""
    earlier = RESULTS / "libraries.json"
    judged = orjson.loads(earlier.read_bytes())["libraries"] if earlier.exists() else {}
    reports: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.bib")):
        with tempfile.TemporaryDirectory() as index:
            build_index(path, Path(index, "index"), BuildConfig(skip_bad=True))
            papers = open_index(Path(index, "index")).papers
            report = check_references(read_paper_list(path), papers)
        reports[path.stem] = {
            "entries": report.entries,
            "problems": Counter(finding.problem.value for finding in report.findings),
            "judged": judged.get(path.stem, {}).get(
                "judged", {"false": None, "versions": None}
            ),
        }
    return reports


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
    for entry in read.cited.entries if read.cited else ():
        counts.no_title += not entry.title
        counts.no_year += not entry.year
        counts.no_doi += not entry.dois
        counts.no_authors += not entry.authors
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
        (result["folder"], kind, counts)
        for result in results
        for kind, counts in result.get("kinds", {}).items()
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
    parts = {key: part for result in results for key, part in result.items()}
    text += SOURCES
    names = "files refused references no_title no_year no_doi no_authors".split()
    for source, counts in parts["sources"].items():
        facts = [source, *(counts[name] for name in names), counts["seconds"][1]]
        text += f"| {' | '.join(map(str, facts))} |\n"
    text += CHECKS
    for library, report in parts["libraries"].items():
        problems = Counter(report["problems"])
        kinds = [
            problems.pop(kind, 0) for kind in ("duplicate", "preprint", "unreadable")
        ]
        facts = [library, report["entries"], *kinds, problems.total()]
        facts += report["judged"].values()
        text += f"| {' | '.join(map(str, facts))} |\n"
    return text


def share(part: int, whole: int) -> str:
    """Return a number and its share of another."""
    with suppress(ZeroDivisionError):
        return f"{part} ({part / whole:.1%})"
    return "-"


if __name__ == "__main__":
    main()
