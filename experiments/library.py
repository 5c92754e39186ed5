"""Measure a library of PDFs: references found and wrong, sentences and what they cite, seconds; write LIBRARY.md.

python experiments/library.py FOLDER [--many 1000] [--index INDEX]

FOLDER holds `corpus.jsonl.gz`, `fulltext.jsonl.gz`, and `pdfs/` with `gold.jsonl`, as `biomed` does. With an index of
the records, the default list is measured on its citation graph, and on one of which citations are missing or wrong, at
random, as often as they were in the PDFs.
"""

import argparse
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
from fulltexts import lines_of
from rapidfuzz import fuzz, process

from citerec.build.corpora import open_corpus
from citerec.corpus.collector import RecordCounter
from citerec.encode.machine import provenance
from citerec.files import cache
from citerec.index.folder import open_index
from citerec.index.graph import Graph
from citerec.index.java import start_jvm
from citerec.library.pdf import read_pdf
from citerec.rank.ltr import DEFAULT, open_ranker
from citerec.train.data import dev_queries
from citerec.train.ranker import Gatherer
from citerec.train.settings import RankerTraining
from citerec.types import Paper, no_progress

HERE = Path(__file__).resolve().parent
SAME_SENTENCE = 80  # percent of letters, of the sentence of a PDF and that of its XML
ABOUT = """# A library of PDFs becomes a graph

`python experiments/library.py FOLDER` on {pdfs} open-access articles as PDF, added without their references
to the {papers:,} records of `biomed` (title, year, authors; no volume, no page). What is right is from their XML.

| | bound | |
| --- | --: | --: |
| PDFs matched to their records | | {matched} of {pdfs} |
| references of the PDFs that are records, found | ≥ .93 | {found:.3f} ({right} of {gold}) |
| references found that the XML does not have | ≤ .02 | {wrong_share:.3f} ({wrong} of {all_found}) |
| citing sentences, with their papers | | {contexts} |
| … found again in the XML | | {again} |
| … of these, marks that name the same papers | | {marks:.3f} |
| … pairs of sentence and paper of the XML, found | | {pairs:.3f} |
| years of the articles right | | {years} of {pdfs} |
{timed}{listed}
## By PDF

What the XML does not have is in the list of the PDF each time, read by eye: the graph of `biomed` joined a reference
without an id by its exact title alone.

| PDF | references that are records | found | not in the XML |
| --- | --: | --: | --: |
{by_pdf}

{machine}
"""


@dataclass(frozen=True)
class Gold:
    """What a PDF cites, by the XML of its publisher."""

    file: str
    id: str
    cites: frozenset[str]


def papers_of(folder: Path, format_name: str, lines: list[str]) -> dict[str, Paper]:
    corpus = open_corpus(folder, format_name)
    papers = corpus.papers(RecordCounter(False), log=lines.append)
    return {paper.id: paper for paper in papers}


def library(folder: Path, scratch: Path, gold: list[Gold]) -> dict[str, Paper]:
    """Return the papers of the records, without the references of the PDFs, and of the PDFs themselves."""
    own = {each.id for each in gold}
    with (scratch / "corpus.jsonl").open("wb") as out:
        for record in lines_of(folder / "corpus.jsonl.gz"):
            kept = record | ({"citations": []} if record["id"] in own else {})
            out.write(orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE))
    for each in gold:
        (scratch / each.file).symlink_to(folder / "pdfs" / each.file)
    return papers_of(scratch, "library", [])


def sentences(
    folder: Path, gold: list[Gold], papers: dict[str, Paper]
) -> dict[str, Any]:
    """Compare the sentences of the PDFs with those of the XML."""
    own = {each.id for each in gold}
    records = lines_of(folder / "fulltext.jsonl.gz")
    texts = {
        record["id"]: record["sentences"] for record in records if record["id"] in own
    }
    again = same = named = pairs = 0
    for docid, of_xml in texts.items():
        cited = [sentence for sentence in of_xml if sentence["cites"]]
        pairs += sum(len(sentence["cites"]) for sentence in cited)
        found: defaultdict[int, set[str]] = defaultdict(set)
        for context in papers[docid].contexts:
            best = process.extractOne(
                context.text,
                [s["text"] for s in cited],
                scorer=fuzz.ratio,
                score_cutoff=SAME_SENTENCE,
            )
            if best:
                again += 1
                found[best[2]].update(context.cites)
                same += set(context.cites) == set(cited[best[2]]["cites"])
        named += sum(
            len(ids & set(cited[place]["cites"])) for place, ids in found.items()
        )
    return {
        "again": again,
        "marks": same / max(again, 1),
        "pairs": named / max(pairs, 1),
    }


def timed(folder: Path, many: int) -> str:
    """Return a row of seconds: the PDFs, repeated with other checksums until there are `many`, read anew and again."""
    files = sorted((folder / "pdfs").glob("*.pdf"))
    with TemporaryDirectory() as name:
        for number in range(many):
            file = files[number % len(files)]
            target = Path(name, f"{number}-{file.name}")
            target.write_bytes(file.read_bytes() + b"\n%% %d\n" % number)
        seconds: list[float] = []
        for _ in range(2):
            start = time.perf_counter()
            papers_of(Path(name), "auto", [])
            seconds.append(time.perf_counter() - start)
    first, second = seconds
    return (
        f"| {many:,} PDFs, two processes: seconds the first time | ≤ 900 | {first:,.0f} |\n"
        f"| … with all texts in the cache (an unchanged folder is not read at all) | | {second:,.0f} |\n"
    )


def listed(folder: Path, found: float, wrong: float) -> str:
    """Return rows of the default list of test queries: by the graph of an index, and by one with errors as measured."""
    start_jvm()
    index = open_index(folder)
    rng = np.random.default_rng(0)
    graph = index.graph
    citing = graph.citing
    kept = rng.random(len(citing)) < found
    count = int(kept.sum() * wrong / (1 - wrong))  # whose cited papers are other ones
    extra = rng.permutation(np.flatnonzero(kept))[:count]
    others = rng.permutation(graph.indices)[:count]
    rows = np.concatenate([citing[kept], citing[extra]])
    cited = np.concatenate([graph.indices[kept], others])
    pairs = np.unique(np.column_stack([rows, cited])[rows != cited], axis=0)
    degrees = np.bincount(pairs[:, 0], minlength=len(index.papers))
    ends = np.concatenate([[0], np.cumsum(degrees)])
    read = replace(index, graph=Graph(ends, pairs[:, 1].astype(np.int32)))
    queries = dev_queries(index, None, 0, split="test")
    assert queries
    ranker = open_ranker(DEFAULT)
    lines = ""
    for what, opened in (("the true graph", index), ("one with these errors", read)):
        gatherer = Gatherer(opened, RankerTraining(reranker="none"), print)
        examples = gatherer.whole(queries, no_progress)
        measures = examples.measures(ranker.score(examples.matrix))
        lines += f"| default list, {what}: F1@20 / MRR | | {measures['f1@20']:.4f} / {measures['mrr']:.4f} |\n"
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--index", type=Path, help="an index of the records")
    given = parser.parse_args()
    gold = [
        Gold(line["pdf"], line["id"], frozenset(line["citations"]))
        for line in lines_of(given.folder / "pdfs" / "gold.jsonl")
    ]
    with TemporaryDirectory() as name:
        cache.cache_folder = lambda: Path(name, "cache")
        scratch = Path(name, "library")
        scratch.mkdir()
        papers = library(given.folder.resolve(), scratch, gold)
        rows = timed(given.folder, given.many) if given.many else ""
    cited = {each.id: set(papers[each.id].citations) for each in gold}
    right = sum(len(cited[each.id] & each.cites) for each in gold)
    wrong = sum(len(cited[each.id] - each.cites) for each in gold)
    number = sum(len(each.cites) for each in gold)
    texts = {
        e.file: read_pdf((given.folder / "pdfs" / e.file).read_bytes(), Path(e.file))
        for e in gold
    }
    page = ABOUT.format(
        pdfs=len(gold),
        papers=len(papers),
        matched=sum(bool(papers[each.id].citations) for each in gold),
        found=right / number,
        right=right,
        gold=number,
        wrong=wrong,
        all_found=right + wrong,
        wrong_share=wrong / (right + wrong),
        contexts=sum(len(papers[each.id].contexts) for each in gold),
        years=sum(texts[each.file].entry.year == papers[each.id].year for each in gold),
        timed=rows,
        listed=listed(given.index, right / number, wrong / (right + wrong))
        if given.index
        else "",
        by_pdf="\n".join(
            f"| {each.file} | {len(each.cites)} | {len(cited[each.id] & each.cites)} "
            f"| {len(cited[each.id] - each.cites)} |"
            for each in gold
        ),
        machine=f"`{orjson.dumps(provenance({})['machine']).decode()}`",
        **sentences(given.folder, gold, papers),
    )
    (HERE / "LIBRARY.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
