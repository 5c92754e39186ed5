"""Make of a corpus one of another make: a ranker that has seen one make only takes what holds there for a law.

    python experiments/ranker/makes.py young ../shared/data/vis indexes/corpora/vis_young
    python experiments/ranker/makes.py core ../shared/data/biomed indexes/corpora/biomed_core

`young`: only the newest papers have abstracts and references, as where a collection is joined by the works that it
cites. `core`: the papers that have abstracts, without the others.
"""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

SHARE = 0.4  # of the train queries of `young`, the newest, that keep what they say
Papers = list[dict[str, Any]]


def main() -> None:
    """Read one corpus, write the other."""
    parser = argparse.ArgumentParser(
        description="Make of a corpus one of another make."
    )
    parser.add_argument("make", choices=("young", "core"))
    parser.add_argument(
        "corpus", type=Path, help="a folder with corpus.jsonl.gz and splits/"
    )
    parser.add_argument("output", type=Path, help="the folder to make")
    options = parser.parse_args()
    with gzip.open(options.corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        papers = [json.loads(line) for line in lines]
    splits = {
        file.name: file.read_text(encoding="utf-8").split()
        for file in (options.corpus / "splits").glob("*.ids")
    }
    kept = (
        _young(papers, {*splits["train.ids"]})
        if options.make == "young"
        else _core(papers)
    )
    (options.output / "splits").mkdir(parents=True, exist_ok=True)
    with (options.output / "papers.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(paper, ensure_ascii=False) + "\n" for paper in kept)
    ids = {paper["id"] for paper in kept}
    for name, mine in splits.items():
        there = "".join(f"{docid}\n" for docid in mine if docid in ids)
        (options.output / "splits" / name).write_text(there, encoding="utf-8")
    print(f"{options.output}: {len(kept):,} papers")


def _young(papers: Papers, train: set[str]) -> Papers:
    asked = [paper for paper in papers if paper["id"] in train and paper["citations"]]
    years = sorted(paper["year"] for paper in asked if paper["year"])
    first = years[int(len(years) * (1 - SHARE))]
    return [
        paper
        if paper["year"] and paper["year"] >= first
        else paper | {"abstract": "", "citations": []}
        for paper in papers
    ]


def _core(papers: Papers) -> Papers:
    return [paper for paper in papers if paper["abstract"]]


if __name__ == "__main__":
    main()
