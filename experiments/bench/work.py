"""The folder that the measurements work in: an index, and the same corpus and queries for the peers."""

import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from bench.measure import log, run

SHARDS = 8  # files of Anserini's copy of the corpus: it indexes a file in one thread
TANTIVY_HEAP = 256_000_000  # bytes; what Lucene gets, too


@dataclass(frozen=True, slots=True)
class Work:
    """The folder, the corpus that it was made from and the threads that every system gets."""

    folder: Path
    corpus: Path
    threads: int
    reranked: int = 15  # queries whose candidates are reranked

    @property
    def index(self) -> Path:
        """The citerec index; its Lucene part is searched by Pyserini, too."""
        return self.folder / "index"

    @property
    def dense(self) -> Path:
        """A citerec index of the same corpus that has vectors."""
        return self.folder / "dense"

    @property
    def bm25s(self) -> Path:
        """The index of bm25s."""
        return self.folder / "bm25s"

    @property
    def tantivy(self) -> Path:
        """The index of tantivy."""
        return self.folder / "tantivy"

    @property
    def anserini(self) -> Path:
        """The corpus as Anserini's JsonCollection reads it."""
        return self.folder / "anserini"

    @property
    def queries(self) -> Path:
        """The test queries: text, tokens and docids, for the peers."""
        return self.folder / "queries.json"

    def log(self, name: str) -> Path:
        """Where the output of a process goes."""
        return self.folder / f"{name}.log"


def citerec_command() -> list[str]:
    """Return how to call citerec: the script beside this Python, or its main function."""
    script = Path(sys.executable).with_name("citerec")
    if script.is_file():
        return [str(script)]
    return [sys.executable, "-c", "from citerec.cli import main; main()"]


def index_command(work: Work, index: Path) -> list[str]:
    """Return the command that builds a citerec index of the corpus."""
    options = [
        "--index",
        str(index),
        "--force",
        "--threads",
        str(work.threads),
        "--quiet",
    ]
    options += ["--encoder", "none"]
    return [*citerec_command(), "index", str(work.corpus), *options]


def build(work: Work) -> None:
    """Build the citerec index, unless the folder holds that of this corpus."""
    if _corpus_of(work.index) != str(work.corpus):
        log(f"building the index of {work.corpus}")
        for peer in (work.bm25s, work.tantivy, work.anserini):
            shutil.rmtree(peer, ignore_errors=True)
        run(index_command(work, work.index), log=work.log("index"))


def build_dense(work: Work) -> None:
    """Build the index that has vectors, unless the folder holds one."""
    if (work.dense / "manifest.json").is_file():
        return
    log(f"embedding {work.corpus}: half an hour for a hundred thousand papers")
    options = ["--index", str(work.dense), "--encoder", "minilm", "--resume", "--quiet"]
    run(
        [*citerec_command(), "index", str(work.corpus), *options], log=work.log("dense")
    )


def prepare_peers(work: Work) -> None:
    """Give each peer that is installed its own index, and write the queries; needs the JVM."""
    from citerec.evaluation.protocol import load_eval_set
    from citerec.index.folder import open_index
    from citerec.text import contents

    index = open_index(work.index)
    eval_set = load_eval_set(index, "test")
    analyze = _lucene_analysis()
    texts = [contents(query) for query in eval_set.queries]
    queries = {
        "queries": [query.id for query in eval_set.queries],
        "texts": texts,
        "tokens": [analyze(text) for text in texts],
        "ids": index.papers.ids.tolist(),
    }
    work.queries.write_bytes(orjson.dumps(queries))
    papers = [contents(index.papers[row]) for row in range(len(index.papers))]
    if find_spec("bm25s") and not work.bm25s.exists():
        _index_bm25s(work.bm25s, [analyze(text) for text in papers])
    if find_spec("tantivy") and not work.tantivy.exists():
        _index_tantivy(work, papers)


def convert_for_anserini(work: Work) -> None:
    """Write the corpus as JSONL with Anserini's fields, in several files so that threads share it."""
    from citerec.index.folder import open_index
    from citerec.text import contents

    work.anserini.mkdir(exist_ok=True)
    papers = open_index(work.index).papers
    for shard in range(SHARDS):
        with (work.anserini / f"{shard}.jsonl").open("wb") as file:
            for row in range(shard, len(papers), SHARDS):
                paper = papers[row]
                fields = {"id": paper.id, "contents": contents(paper)}
                fields["year"] = f"{paper.year or 0:04d}"
                file.write(orjson.dumps(fields) + b"\n")


def _corpus_of(index: Path) -> str | None:
    manifest = index / "manifest.json"
    if not manifest.is_file():
        return None
    return orjson.loads(manifest.read_bytes())["corpus"]["path"]


def _lucene_analysis() -> Any:
    """Return a function that analyses a text as the Lucene index was."""
    from citerec.index.java import java_class

    utils = java_class("io.anserini.analysis.AnalyzerUtils")
    analyzer = java_class(
        "io.anserini.analysis.DefaultEnglishAnalyzer"
    ).newDefaultInstance()
    mapper = java_class("com.fasterxml.jackson.databind.ObjectMapper")()

    def analyze(text: str) -> list[str]:
        return orjson.loads(mapper.writeValueAsString(utils.analyze(analyzer, text)))

    return analyze


def _index_bm25s(folder: Path, tokens: list[list[str]]) -> None:
    import bm25s  # pyright: ignore[reportMissingImports]

    retriever = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    retriever.index(tokens, show_progress=False)
    retriever.save(str(folder))


def _index_tantivy(work: Work, papers: list[str]) -> None:
    import tantivy  # pyright: ignore[reportMissingImports]

    schema = tantivy.SchemaBuilder()
    schema.add_integer_field("row", fast=True)
    schema.add_text_field("contents", tokenizer_name="en_stem", index_option="freq")
    work.tantivy.mkdir()
    index = tantivy.Index(schema.build(), path=str(work.tantivy))
    writer = index.writer(TANTIVY_HEAP, work.threads)
    for row, text in enumerate(papers):
        writer.add_document(tantivy.Document(row=row, contents=text))
    writer.commit()
    writer.wait_merging_threads()
