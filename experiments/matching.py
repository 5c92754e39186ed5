"""Measure how often a reference is found in a corpus although its title differs, and how often wrongly.

    python experiments/matching.py ../shared/data/vis ../shared/data/biomed

The titles of some papers of a corpus are changed and looked up as `citerec recommend --cited` does, once alone and once
with year and authors. A tenth of the corpus is held out first: nothing may be found for titles of these papers. Nor for
a title of one to three words with the year and the authors of another paper. Each match that is counted
as wrong is listed below the table: many are another edition of the same work, which only a reader can tell.
"""

import argparse
import gzip
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.bibliography.keys import title_key
from citerec.bibliography.paper_list import read_paper_list
from citerec.corpus.papers import Papers, write_papers
from citerec.matching.recognise import listed_rows
from citerec.types import Paper

FIELDS = ("id", "title", "year", "authors")
Change = Callable[[str, random.Random], str]  # returns an empty title where it does not apply


def _respelt(title: str, _: random.Random) -> str:
    return title.upper().replace("-", " ").replace(":", ".") + "."


def _rotated(title: str, rng: random.Random) -> str:
    words = title.split()
    at = rng.randrange(1, len(words)) if len(words) > 1 else 0
    return " ".join(words[at:] + words[:at]) if at else ""


def _letter_dropped(title: str, rng: random.Random) -> str:
    words = title.split()
    long = [place for place, word in enumerate(words) if len(word) >= 6 and word.isalpha()]
    if not long:
        return ""
    place = rng.choice(long)
    at = rng.randrange(1, len(words[place]))
    words[place] = words[place][:at] + words[place][at + 1 :]
    return " ".join(words)


def _subtitle_left_out(title: str, _: random.Random) -> str:
    main, colon, _rest = title.partition(": ")
    return main if colon else ""


CHANGES: Mapping[str, Change] = {
    "capitals, punctuation": _respelt,
    "words rotated": _rotated,
    "a letter dropped": _letter_dropped,
    "subtitle left out": _subtitle_left_out,
}


def main() -> None:
    """Measure one corpus after the other and print their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", type=Path, nargs="+", help="folders with a corpus.jsonl.gz")
    parser.add_argument("--n", type=int, default=300, help="papers for each change")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for corpus in options.corpora:
        for line in _measured(corpus, options.n, random.Random(options.seed)):
            print(line)


def _paper(record: Mapping[str, Any]) -> Paper:
    values: dict[str, Any] = {name: record.get(name) for name in FIELDS}
    values["authors"] = values["authors"] or ()
    return Paper(**values)


def _measured(corpus: Path, n: int, rng: random.Random) -> list[str]:
    with gzip.open(corpus / "corpus.jsonl.gz", "rb") as lines:
        papers = [_paper(orjson.loads(line)) for line in lines]
    keys = sorted({title_key(paper.title) for paper in papers})
    out = set(rng.sample(keys, len(keys) // 10))
    kept = [paper for paper in papers if title_key(paper.title) not in out]
    held_out = [paper for paper in papers if title_key(paper.title) in out]
    entries = [e for full in (False, True) for e in _entries(kept, "found", full, n, rng)]
    entries += [e for full in (False, True) for e in _entries(held_out, "held out", full, n, rng)]
    entries += _of_others(kept, n, rng)
    with tempfile.TemporaryDirectory(prefix="citerec-matching-") as folder:
        rows, seconds = _looked_up([entry for _, entry, _ in entries], kept, Path(folder))
    groups = [(group, right, found) for (group, _, right), found in zip(entries, rows, strict=True)]
    title = f"{corpus.name}: {len(kept):,} papers, {len(entries):,} references"
    wrong = [
        f"- {group[0]}, {group[1]}: {orjson.dumps(entry).decode()}: {kept[row].title!r} ({kept[row].year})"
        for (group, entry, right), matched in zip(entries, rows, strict=True)
        for row in sorted(matched)
        if title_key(kept[row].title) != right
    ]
    heading = f"\n{title}, {seconds:.2f} CPU seconds\n"
    return [heading, *_table(groups, kept), "\nWrong, or another edition:\n", *wrong]


def _entries(
    papers: Sequence[Paper], kind: str, full: bool, n: int, rng: random.Random
) -> list[tuple[tuple[str, str], dict[str, object], str]]:
    """Return the group of each reference, the reference, and the key of the title that it should match."""
    facts = "title, year, authors" if full else "title alone"
    made: list[tuple[tuple[str, str], dict[str, object], str]] = []
    for name, change in CHANGES.items():
        possible = [(p, title) for p in papers if (title := change(p.title, rng))]
        for paper, title in rng.sample(possible, min(n, len(possible))):
            entry: dict[str, object] = {"title": title}
            if full:
                entry |= {"year": paper.year, "authors": paper.authors}
            right = title_key(paper.title) if kind == "found" else ""
            made.append(((f"{name}, {kind}", facts), entry, right))
    return made


def _of_others(
    papers: Sequence[Paper], n: int, rng: random.Random
) -> list[tuple[tuple[str, str], dict[str, object], str]]:
    """Return references that have a short title of one paper, and the year and the authors of another."""
    short = [p for p in papers if 0 < len(title_key(p.title).split()) < 4]
    dated = [p for p in papers if p.year and p.authors]
    made: list[tuple[tuple[str, str], dict[str, object], str]] = []
    for paper in rng.sample(short, min(n, len(short))):
        other = rng.choice(dated)
        entry: dict[str, object] = {
            "title": paper.title,
            "year": other.year,
            "authors": other.authors,
        }
        made.append((("short title of another paper, held out", "title, year, authors"), entry, ""))
    return made


def _looked_up(
    entries: Sequence[dict[str, object]], kept: Sequence[Paper], folder: Path
) -> tuple[list[frozenset[int]], float]:
    """Return the rows that each reference matched, and how long that took."""
    with write_papers(folder / "papers.arrow") as writer:
        for paper in kept:
            writer.add(paper)
    file = folder / "references.json"
    file.write_bytes(orjson.dumps(entries))
    papers, start = Papers(folder / "papers.arrow"), time.process_time()
    rows = listed_rows(read_paper_list(file), papers)
    return rows, time.process_time() - start


def _table(
    groups: Sequence[tuple[tuple[str, str], str, frozenset[int]]], kept: Sequence[Paper]
) -> list[str]:
    asked: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for group, key, rows in groups:
        asked[group] += 1
        right[group] += bool(key) and any(title_key(kept[row].title) == key for row in rows)
        wrong[group] += any(title_key(kept[row].title) != key for row in rows)
    lines = ["| change | the reference states | found | wrong |", "|---|---|--:|--:|"]
    for (change, facts), count in asked.items():
        found = "" if change.endswith("held out") else f"{right[change, facts]} of {count}"
        lines.append(f"| {change} | {facts} | {found} | {wrong[change, facts]} of {count} |")
    return lines


if __name__ == "__main__":
    main()
