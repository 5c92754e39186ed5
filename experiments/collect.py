"""Measure what `citerec collect` gives an author, against a local server with the APIs of both services.

    python experiments/collect.py ../shared/data/ecology ../shared/data/labour --drafts 30

A corpus fills the server. First the three commands run on the reference list of the paper that cites most: collect,
index, recommend. Then papers stand for drafts: the server does not know the paper, a third of its references is
hidden, and the rest are given as a .bib of titles, authors and years. The measure is the share of the hidden references
among the first 20 papers that are recommended for its title and abstract; later papers are not eligible.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from citerec.build.index import BuildConfig, build_index
from citerec.build.vectors import EmbedConfig, embed_anew
from citerec.collect.run import CollectConfig, collect, make_plan
from citerec.collect.sources import SourceName
from citerec.config import RecommendConfig
from citerec.corpus.lists import read_paper_list
from citerec.encode.encoder import Encoder, open_encoder
from citerec.encode.machine import provenance
from citerec.evaluation.significance import student_test
from citerec.index.folder import open_index
from citerec.index.java import start_jvm
from citerec.match.papers import listed_rows
from citerec.recommend import Recommender
from citerec.request import ListedPapers
from citerec.types import Paper, Progress, Query, no_progress

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "collect"
PAGE = HERE / "COLLECT.md"
K = 20  # recommendations that are read
LEAST_REFERENCES = 9  # of a draft, in the corpus
ENCODER = "minilm"
RATE = 1000.0  # requests per second to the local server, in the second part
SYSTEMS = {
    "bm25": RecommendConfig(k=K, encoder="none", ranker="none", reranker="none"),
    "fusion": RecommendConfig(k=K, ranker="none", reranker="none"),
    "recommend --cited": RecommendConfig(k=K),
}
Records = Sequence[Mapping[str, Any]]


class CachedEncoder:
    """Encodes each paper once, although many of the collected corpora contain it."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[tuple[str, str], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, papers: Sequence[Paper], progress: Progress = no_progress) -> Any:
        """Return the vectors of papers, shape (papers, dim)."""
        new = [p for p in papers if (p.title, p.abstract) not in self._vectors]
        if new:
            vectors = self._encoder.encode(new, progress)
            self._vectors |= {
                (p.title, p.abstract): v for p, v in zip(new, vectors, strict=True)
            }
        return np.stack([self._vectors[p.title, p.abstract] for p in papers])


def main() -> None:
    """Measure the corpora that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "corpora", type=Path, nargs="*", help="folders with a corpus.jsonl.gz"
    )
    parser.add_argument(
        "--drafts", type=int, default=50, help="drafts of each corpus; 0 for none"
    )
    parser.add_argument(
        "--papers", type=int, default=300, help="papers of each draft's corpus"
    )
    parser.add_argument(
        "--story",
        type=int,
        default=1000,
        help="papers of the three commands; 0 to leave them out",
    )
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "tests"))
    from support.scholar_server import papers_of, serving  # pyright: ignore[reportMissingImports]

    RESULTS.mkdir(parents=True, exist_ok=True)
    for folder in options.corpora:
        papers = papers_of(folder / "corpus.jsonl.gz")
        with serving(papers) as server, tempfile.TemporaryDirectory() as work:
            os.environ |= {"OPENALEX_URL": server.url, "S2_URL": server.url}
            # Semantic Scholar is used without a key
            os.environ |= {"OPENALEX_API_KEY": "local"}
            path = RESULTS / f"{folder.name}.json"
            result: dict[str, Any] = (
                orjson.loads(path.read_bytes()) if path.is_file() else {}
            )
            result |= {"corpus": folder.name, "papers": len(papers)}
            result["provenance"] = provenance(vars(options) | {"corpora": None})
            for held in held_out(
                papers, server, Path(work), options.drafts, options.papers
            ):
                # so that an interrupted run is not lost
                save(path, result | {"held_out": held})
                result["held_out"] = held
            if options.story:
                sources = (s.value for s in SourceName)
                runs = [
                    story(papers, server, Path(work), s, options.story) for s in sources
                ]
                save(path, result | {"story": runs})
    PAGE.write_text(page(), encoding="utf-8")
    print(page())


def save(path: Path, result: Mapping[str, Any]) -> None:
    """Write the results of a corpus."""
    path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")


def story(
    papers: Records, server: Any, work: Path, source: str, most: int
) -> dict[str, Any]:
    """Run the three commands; return the seconds of each, and the requests."""
    by_id = {paper["id"]: paper for paper in papers}
    draft = max(
        papers, key=lambda paper: (len(paper.get("citations", [])), paper["id"])
    )
    bib, query, corpus = (
        work / "refs.bib",
        work / "draft.json",
        work / f"story-{source}",
    )
    bib.write_text(bibtex([by_id[i] for i in draft["citations"] if i in by_id]))
    query.write_bytes(
        orjson.dumps({k: draft[k] for k in ("title", "abstract", "year")})
    )
    index, start = work / f"index-{source}", len(server.requests)
    server.hidden = {draft["id"]}
    commands = {
        "collect": ["collect", bib, "-o", corpus, "--source", source, "--papers", most],
        "index": ["index", corpus, "--index", index, "--encoder", ENCODER],
        "recommend": ["recommend", "--query", query, "--cited", bib, "--index", index],
    }
    seconds = {name: timed(command) for name, command in commands.items()}
    record = orjson.loads((corpus / "collection.json").read_bytes())
    return {
        "source": source,
        "references": record["query"]["references"],
        "resolved": record["resolved"],
        "papers": record["counts"]["papers"],
        "requests": len(server.requests) - start,
        "dollars": record["runs"][0]["dollars"],
        "seconds": seconds,
    }


def timed(command: Sequence[object]) -> float:
    """Run a command of citerec in a process of its own; return the seconds that it took."""
    code = "import sys; from citerec.cli import main; main(sys.argv[1:])"
    whole, start = [sys.executable, "-c", code, *map(str, command)], time.monotonic()
    subprocess.run(whole, check=True, stdout=subprocess.DEVNULL)
    return round(time.monotonic() - start, 1)


def held_out(
    papers: Records, server: Any, work: Path, drafts: int, most: int
) -> Iterator[dict[str, Any]]:
    """Yield, after each draft, the share of hidden references that each system finds on average."""
    by_id = {paper["id"]: paper for paper in papers}
    chosen = drawn(papers, by_id, drafts)
    encoder, rng = CachedEncoder(open_encoder(ENCODER)), np.random.default_rng(0)
    start_jvm()
    shares: dict[str, list[float]] = {name: [] for name in ("collected", *SYSTEMS)}
    requests: list[int] = []
    for number, draft in enumerate(chosen, start=1):
        references = [i for i in dict.fromkeys(draft["citations"]) if i in by_id]
        order = rng.permutation(len(references)).tolist()
        hidden = {references[place] for place in order[: len(references) // 3]}
        given = [by_id[i] for i in references if i not in hidden]
        server.hidden, before = {draft["id"]}, len(server.requests)
        folder = work / f"draft-{number}"
        titles = {by_id[i]["title"] for i in hidden}
        for name, share in one_draft(
            draft, given, titles, folder, encoder, most
        ).items():
            shares[name].append(share)
        requests.append(len(server.requests) - before)
        best = np.array(shares["recommend --cited"])
        means = {
            name: round(float(np.mean(values)), 4) for name, values in shares.items()
        }
        print(f"{number}/{len(chosen)} {means}", file=sys.stderr)
        p = (
            {n: student_test(np.array(shares[n]), best) for n in ("bm25", "fusion")}
            if number > 1
            else {}
        )
        yield {
            "drafts": number,
            "papers": most,
            "shares": means,
            "p": p,
            "encoder": ENCODER,
        } | {"requests": round(float(np.mean(requests)), 1)}


def drawn(
    papers: Records, by_id: Mapping[str, Any], drafts: int
) -> list[Mapping[str, Any]]:
    """Return papers with an abstract, a year and `LEAST_REFERENCES` references, always the same ones."""
    able = [
        paper
        for paper in papers
        if paper.get("abstract")
        and paper.get("year")
        and sum(i in by_id for i in set(paper.get("citations", []))) >= LEAST_REFERENCES
    ]
    places = np.sort(np.random.default_rng(0).permutation(len(able))[:drafts]).tolist()
    return [able[place] for place in places]


def one_draft(
    draft: Mapping[str, Any],
    given: Records,
    hidden: set[str],
    folder: Path,
    encoder: CachedEncoder,
    most: int,
) -> dict[str, float]:
    """Collect around the given references; return the share of hidden titles in the corpus and in each list."""
    folder.mkdir()
    bib, corpus, target = folder / "refs.bib", folder / "corpus", folder / "index"
    bib.write_text(bibtex(given))
    listed = read_paper_list(bib)
    config = CollectConfig(
        entries=listed.entries, papers=most, source=SourceName.OPENALEX, rate=RATE
    )
    collect(make_plan(corpus, config))
    build_index(corpus, target, BuildConfig())
    embed_anew(target, cast("Encoder", encoder), EmbedConfig())
    index = open_index(target)
    titles = index.papers.column("title").to_pylist()
    cited = frozenset[int]().union(*listed_rows(listed, index.papers))
    shares = {"collected": len(hidden & set(titles)) / len(hidden)}
    query = Query(
        id="draft",
        title=draft["title"],
        abstract=draft["abstract"],
        year=draft["year"],
        named=False,
    )
    for name, settings in SYSTEMS.items():
        recommender = Recommender(index, settings)
        [items] = recommender.recommend_many([query], ListedPapers(cited=cited))
        shares[name] = len(hidden & {item.paper.title for item in items}) / len(hidden)
    return shares


def bibtex(papers: Records) -> str:
    """Return papers as BibTeX: title, authors and year, without an id."""
    entries: list[str] = []
    for number, paper in enumerate(papers):
        authors = " and ".join(paper.get("authors", []))
        fields = {"title": paper["title"], "author": authors, "year": paper.get("year")}
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
        entries.append(f"@article{{ref{number},\n" + ",\n".join(lines) + "\n}\n")
    return "\n".join(entries)


def page() -> str:
    """Return the results as a page."""
    results = [
        orjson.loads(path.read_bytes()) for path in sorted(RESULTS.glob("*.json"))
    ]
    lines = [
        "# From a reference list to recommendations",
        "",
        "Against a local server that speaks the APIs of OpenAlex and Semantic Scholar and is filled from a real corpus",
        "(`python experiments/collect.py CORPUS...`). The real services know more papers, and answer more slowly.",
        "",
        "## The three commands",
        "",
        "Seconds of `collect`, `index` (with MiniLM) and `recommend` on the reference list of the paper that cites",
        "most, at the default rates: 10 requests a second to OpenAlex, one in three seconds to Semantic Scholar",
        "without a key. Up to 12 other programs shared the two processors, which slows `index` and `recommend`.",
        "",
        "| corpus | source | references | resolved | papers | requests | dollars | collect | index | recommend |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += story_rows(results)
    lines += [
        "",
        "## Hidden references",
        "",
        "A third of a paper's references is hidden; the corpus is collected around the rest, without the paper. The",
        f"table has the share of hidden references in that corpus, and in the first {K} recommendations. p: Student's",
        "paired t-test of `recommend --cited` against BM25 and against the fusion.",
        "",
        "| corpus | drafts | papers | requests | in corpus | BM25 | fusion | recommend --cited | p BM25 | p fusion |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += held_out_rows(results)
    return "\n".join(lines) + "\n"


def story_rows(results: Records) -> Iterator[str]:
    """Yield the rows of the three commands."""
    for one in results:
        for run in one.get("story", []):
            facts = [
                one["corpus"],
                *(
                    run[k]
                    for k in ("source", "references", "resolved", "papers", "requests")
                ),
            ]
            price = "-" if run["dollars"] is None else f"{run['dollars']:.3f}"
            yield f"| {' | '.join(map(str, [*facts, price, *run['seconds'].values()]))} |"


def held_out_rows(results: Records) -> Iterator[str]:
    """Yield the rows of the hidden references."""
    for one in results:
        if not (held := one.get("held_out")):
            continue
        shares = [f"{value:.3f}" for value in held["shares"].values()]
        ps = [f"{value:.4f}" for value in held["p"].values()] or ["-", "-"]
        facts = [
            one["corpus"],
            held["drafts"],
            held["papers"],
            held["requests"],
            *shares,
            *ps,
        ]
        yield f"| {' | '.join(map(str, facts))} |"


if __name__ == "__main__":
    main()
