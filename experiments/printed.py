"""Measure how many references of a PDF are recognised in a corpus, and how many papers are wrong.

    python experiments/printed.py INDEX OTHER_CORPUS.jsonl.gz

Papers with at least 10 references in the index are drafts; Chromium prints each as a PDF, in four styles and two
columns. Half of the references are papers of another corpus: whatever is found for these is wrong.
"""

import argparse
import gzip
import random
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import orjson
from playwright.sync_api import sync_playwright

from citerec.bibliography.keys import title_key
from citerec.drafts import parse_queries
from citerec.folder import open_index
from citerec.matching import listed_rows

CSS = "body { columns: 2; font: 9pt serif; hyphens: auto; text-align: justify }"
Style = Callable[[int, list[str], str, str, str], str]


def initials(name: str) -> tuple[str, str]:
    """Return the initials and the last name."""
    *given, last = name.split() or [""]
    return " ".join(f"{one[0]}." for one in given), last


def first_names(names: list[str]) -> str:
    """Return `A. Lovelace, C. Babbage`."""
    return ", ".join(" ".join(initials(name)) for name in names)


def last_names(names: list[str]) -> str:
    """Return `Lovelace, A., Babbage, C.`."""
    return ", ".join(", ".join(initials(name)[::-1]) for name in names)


STYLES: dict[str, Style] = {
    "ieee": lambda n, a, t, v, y: f"[{n}] {first_names(a)}, “{t},” {v}, vol. 3, pp. 1–9, {y}.",
    "acm": lambda n, a, t, v, y: f"[{n}] {', '.join(a)}. {y}. {t}. {v} 12, 3 ({y}), 11–20.",
    "apa": lambda n, a, t, v, y: f"{last_names(a)} ({y}). {t}. {v}, 12(3), 11–20.",
    "springer": lambda n, a, t, v, y: f"{n}. {last_names(a)}: {t}. {v} 12(3), 11–20 ({y})",
}


def main() -> None:
    """Print one line per style."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--drafts", type=int, default=10)
    options = parser.parse_args()
    index, rng = open_index(options.index), random.Random(0)
    batches = (batch["title"].to_pylist() for batch in index.papers.batches())
    own = {title_key(one) for batch in batches for one in batch}
    others = [one for one in records(options.other) if one.get("authors") and one.get("year")]
    others = [one for one in others if title_key(one["title"]) not in own]
    degrees = index.graph.indptr[1:] - index.graph.indptr[:-1]
    rows = rng.sample((degrees >= 10).nonzero()[0].tolist(), options.drafts)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        page = browser.new_page()
        for style, write in STYLES.items():
            found = right = gold = 0
            for row in rows:
                draft, cited = index.papers[row], index.graph.references(row).tolist()
                known = [index.papers[one] for one in cited]
                strange = rng.sample(others, len(known))
                texts = [(p.authors, p.title, p.venue, p.year) for p in known]
                texts += [(o["authors"], o["title"], o.get("venue"), o["year"]) for o in strange]
                texts.sort(key=lambda one: str(one[0]))
                lines = (
                    f"<p>{escape(write(n, [*map(str, a)], str(t), str(v or 'Journal'), str(y)))}"
                    for n, (a, t, v, y) in enumerate(texts, 1)
                )
                page.set_content(
                    f"<html lang=en><style>{CSS}</style><h1>{escape(draft.title)}</h1><h2>Abstract"
                    f"</h2><p>{escape(draft.abstract)}<h2>References</h2>{''.join(lines)}"
                )
                read = parse_queries(page.pdf(), name="draft.pdf")
                by_entry = listed_rows(read.cited, index.papers) if read.cited else []
                mine = set[int]().union(*by_entry)
                same = {index.papers[one].title for one in cited}
                titles = {index.papers[one].title for one in mine}
                found, right, gold = (
                    found + len(titles),
                    right + len(titles & same),
                    gold + len(same),
                )
            share = f"{right}/{gold} found ({right / gold:.1%}), {found - right} wrong"
            print(f"{style}: {share}")
        browser.close()


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a corpus."""
    with gzip.open(path) as stream:
        yield from map(orjson.loads, stream)


if __name__ == "__main__":
    main()
