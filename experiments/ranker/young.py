"""Make of a corpus one in which only the newest papers have abstracts and references, as graphs of cited works are.

    python experiments/ranker/young.py ../shared/data/vis indexes/corpora/vis_young

A ranker that has seen corpora of one make only takes what holds there for a law; this is another make.
"""

import argparse
import gzip
import json
import shutil
from pathlib import Path

SHARE = 0.4  # of the train queries, the newest, that keep what they say


def main() -> None:
    """Read one corpus, write the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with corpus.jsonl.gz and splits/")
    parser.add_argument("output", type=Path, help="the folder to make")
    options = parser.parse_args()
    with gzip.open(options.corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        papers = [json.loads(line) for line in lines]
    train = set((options.corpus / "splits" / "train.ids").read_text(encoding="utf-8").split())
    asked = [paper for paper in papers if paper["id"] in train and paper["citations"]]
    years = sorted(paper["year"] for paper in asked if paper["year"])
    first = years[int(len(years) * (1 - SHARE))]
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "papers.jsonl").open("w", encoding="utf-8") as file:
        for paper in papers:
            if not paper["year"] or paper["year"] < first:
                paper |= {"abstract": "", "citations": []}
            file.write(json.dumps(paper, ensure_ascii=False) + "\n")
    shutil.copytree(options.corpus / "splits", options.output / "splits", dirs_exist_ok=True)
    print(f"{options.output}: papers before {first} have neither abstracts nor references")


if __name__ == "__main__":
    main()
