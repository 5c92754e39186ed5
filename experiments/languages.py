"""Measure drafts of other languages than English, on an English corpus and on a German one; write LANGUAGES.md.

    python experiments/languages.py              # MiniLM
    python experiments/languages.py ENCODER...   # also a multilingual one: a hub id or a folder

`languages/drafts.jsonl` has 20 papers of the bundled sample, whose titles and one or two sentences about them were
written anew in five languages; `languages/german_titles.jsonl` has 225 titles of the sample in German.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import citerec
from citerec.build.index import BuildConfig, build_index
from citerec.config import RecommendConfig
from citerec.encode.machine import provenance

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "languages"
SAMPLE = HERE.parent / "citerec" / "sample" / "papers.jsonl"
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "zh": "Chinese",
}
SYSTEMS = {
    "BM25": RecommendConfig(encoder="none", ranker="none"),
    "BM25 and vectors": RecommendConfig(ranker="none"),
    "default list": RecommendConfig(),
}
DEPTH = 20
ABOUT = """# Drafts of other languages

Titles and one or two sentences of 20 papers of the bundled sample, written in five languages; F1@20 / MRR of the
papers of the sample that they cite. "titles": 225 papers of the sample with their titles alone, in English and in
German. 20 drafts are few: differences of .03 are within chance. Made by `python experiments/languages.py ENCODER...`.
"""

Record = Mapping[str, Any]


def main() -> None:
    """Measure each encoder that is named, MiniLM by default, and write the page of all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("encoders", nargs="*", default=["minilm"])
    RESULTS.mkdir(parents=True, exist_ok=True)
    drafts = read(HERE / "languages" / "drafts.jsonl")
    papers = read(SAMPLE)
    german = {
        of["id"]: of["title"] for of in read(HERE / "languages" / "german_titles.jsonl")
    }
    titles = [{**of, "abstract": ""} for of in papers if of["id"] in german]
    corpora = {
        "the sample": (papers, [*LANGUAGES]),
        "titles, English": (titles, ["en", "de"]),
        "titles, German": (
            [{**of, "title": german[of["id"]]} for of in titles],
            ["de"],
        ),
    }
    for encoder in parser.parse_args().encoders:
        rows = [
            row
            for name, (records, languages) in corpora.items()
            for row in measured(name, records, drafts, languages, encoder)
        ]
        result = {"rows": rows, "provenance": provenance({"encoder": encoder})}
        content = orjson.dumps(result, option=orjson.OPT_INDENT_2)
        (RESULTS / f"{Path(encoder).name}.json").write_bytes(content + b"\n")
    (HERE / "LANGUAGES.md").write_text(page(), encoding="utf-8")


def read(path: Path) -> list[Record]:
    """Read the records of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measured(
    name: str,
    papers: Sequence[Record],
    drafts: Sequence[Record],
    languages: Sequence[str],
    encoder: str,
) -> list[Record]:
    """Return a row for each language of the drafts on one corpus."""
    years = {paper["id"]: paper["year"] for paper in papers}
    gold = {paper["id"]: {*paper["citations"]} & years.keys() for paper in papers}
    rows: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "papers.jsonl"
        corpus.write_bytes(b"\n".join(map(orjson.dumps, papers)))
        build_index(corpus, Path(folder) / "index", BuildConfig(encoder=encoder))
        for language in languages:
            # the id is that of the paper itself, which is thus no candidate
            queries = [
                citerec.Query(id=of["id"], year=years[of["id"]], **of[language])
                for of in drafts
                if of["id"] in years
            ]
            lists = {
                system: f1_and_mrr(Path(folder) / "index", config, queries, gold)
                for system, config in SYSTEMS.items()
            }
            rows.append({"corpus": name, "drafts": LANGUAGES[language], **lists})
            print(rows[-1], flush=True)
    return rows


def f1_and_mrr(
    index: Path,
    config: RecommendConfig,
    queries: Sequence[citerec.Query],
    gold: Mapping[str, set[str]],
) -> list[float]:
    """Return F1@20 and MRR of some drafts, means."""
    request = citerec.Request.of(queries, k=1000)
    values: list[tuple[float, float]] = []
    with citerec.open(index, config) as recommender:
        found = recommender.recommend_many(request)
        for query, items in zip(queries, found, strict=True):
            cited = gold[query.id]
            ranks = [item.rank for item in items if item.paper.id in cited]
            hits = sum(rank <= DEPTH for rank in ranks)
            values.append(
                (2 * hits / (DEPTH + len(cited)), 1 / min(ranks) if ranks else 0)
            )
    return np.mean(values, axis=0).tolist()


def page() -> str:
    """Return all results as a page."""
    lines = [ABOUT]
    for path in sorted(RESULTS.glob("*.json")):
        lines += [
            f"## {path.stem}",
            "",
            f"| corpus | drafts | {' | '.join(SYSTEMS)} |",
            "|---|---|---|---|---|",
        ]
        for row in orjson.loads(path.read_bytes())["rows"]:
            cells = [f"{row[name][0]:.3f} / {row[name][1]:.3f}" for name in SYSTEMS]
            lines.append(f"| {row['corpus']} | {row['drafts']} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
