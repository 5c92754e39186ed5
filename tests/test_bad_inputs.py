"""The table of bad inputs: each is one clear line on stderr, exit code 2, and nothing changed on disk."""

import bz2
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from support.tools import command_fault

from citerec.cli import run
from citerec.folder import IndexFolder, open_index

COMMAND = [sys.executable, "-c", "from citerec.cli import main; main()"]
SAMPLE = Path(__file__).parent.parent / "citerec" / "sample" / "papers.jsonl"
# Root may do anything with files; without these powers it may do what any owner may.
POWERLESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]

BATCH = b'{"title": "One"}\n{"title": "Two"}\n'
RECOMMEND = ("recommend", "--title", "Citation recommendation")
EVALUATE = ("evaluate", "--systems", "random")

GOOD = {
    "corpus.jsonl": b'{"id": "a", "title": "Alpha"}\n{"id": "b", "title": "Beta"}\n',
    "q.json": b'{"title": "Citation recommendation"}',
    "a.run": b"q1 Q0 x 1 2 t\n",
    "gold.txt": b"q1 0 x 1\n",
    "a.pdf": b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n",
    "folder/thesis.tex": b"years of work",
}


def record(**fields: Any) -> bytes:
    return json.dumps({"id": "a", "title": "Alpha"} | fields).encode() + b"\n"


LINES = b"".join(record(id=f"p{i}", abstract=f"of number {i * 7919}") for i in range(2000))

RUN = b"".join(b"q1 Q0 x%d 1 2 t\n" % i for i in range(999))


# --- a corpus: content, and what the message must say

CORPORA: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "the corpus is empty"),
    "blank lines alone": (b"\n \n\n", "the corpus is empty"),
    "a PDF": (GOOD["a.pdf"], "this is a PDF"),
    "cut gzip": (gzip.compress(LINES)[:-3000], "cut off"),
    "damaged gzip": (gzip.compress(LINES)[:500] + b"?" * 5000, "damaged"),
    "cut zstd": (zstd.compress(LINES)[:-3000], "cut off"),
    "cut bz2": (bz2.compress(LINES)[:-3000], "cut off"),
    "gzip of nothing": (gzip.compress(b""), "the corpus is empty"),
    "UTF-16": (record().decode().encode("utf-16"), "this is UTF-16 text"),
    "UTF-16 without its mark": (record().decode().encode("utf-16-le"), "binary data"),
    "Latin-1": (b'{"id": "a", "title": "caf\xe9"}\n', "line 1"),
    "a title of 10 MB": (record(title="word " * 2_000_000), "at most 20,000"),
    "null id": (record(id=None), "'id' must be a string, found None"),
    "missing id": (record() + b'{"title": "x", "abstract": ""}\n', "line 2: no 'id'"),
    "id with a line break": (record(id="a\nb"), "holds a line break"),
    "empty id": (record(id=""), "'id' is empty"),
    "blank id": (record(id="  "), "'id' is empty"),
    "an id of 1000 characters": (record(id="a" * 1000), "at most 512"),
    "id a number": (record(id=7), "'id' must be a string, found 7"),
    "conflicting duplicate ids": (
        record() + record(title="Other"),
        "line 2: id 'a' is already",
    ),
    "deep JSON": (b"[" * 100_000, "line 1"),
    "deep JSON in a field": (
        b'{"id": "a", "title": "x", "authors": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        "line 1",
    ),
    "NaN year": (b'{"id": "a", "title": "x", "year": NaN}\n', "line 1"),
    "year soon": (record(year="soon"), "'year' must be a year such as 2019, or null; found 'soon'"),
    "year true": (record(year=True), "found True"),
    "year 99999": (record(year=99999), "found 99999"),
    "year -1": (record(year=-1), "found -1"),
    "year 2019.5": (record(year=2019.5), "found 2019.5"),
    "year a list": (record(year=[2019]), "found [2019]"),
    "title a list": (record(title=["x"]), "'title' must be a string, found ['x']"),
    "null title": (record(title=None), "'title' must be a string, found None"),
    "missing title": (record() + b'{"id": "b", "abstract": ""}\n', "line 2: no 'title'"),
    "half a surrogate pair": (b'{"id": "a", "title": "\\ud800"}\n', "line 1"),
    "abstract a number": (record(abstract=3), "'abstract' must be a string, found 3"),
    "authors a string": (record(authors="A. Author"), "'authors' must be a list"),
    "authors of numbers": (record(authors=[1]), "'authors' must hold strings, found 1"),
    "citations a dict": (record(citations={"b": 1}), "'citations' must be a list"),
    "citations of numbers": (record(citations=[1]), "'citations' must hold strings, found 1"),
    "a JSON number line": (record() + b"17\n", "line 2: expected a JSON object, found int"),
    "broken JSON on line 3": (
        record() + record(id="b") + b'{"id": "c", "tit\n',
        "line 3: not JSON",
    ),
    "binary": (bytes(range(256)) * 9, "this is binary data"),
    "SQLite": (b"SQLite format 3\0" + bytes(100), "an SQLite database"),
    "a zip archive": (b"PK\x03\x04" + bytes(100), "a zip archive"),
    "fields of no format": (
        b'{"name": "x"}\n',
        "no format that citerec reads has these fields: name",
    ),
    "a table": (b"id,title\n1,Alpha\n", "line 1: this is a table (CSV)"),
}

# --- commands on good files, but for those named here: arguments, files, what the message must say


@dataclass(frozen=True)
class Bad:
    """A command that cannot be done."""

    arguments: tuple[object, ...]
    says: str
    files: dict[str, bytes] | None = None


def index(*more: object, corpus: str = "corpus.jsonl") -> tuple[object, ...]:
    encoder = () if "--encoder" in more else ("--encoder", "none")
    return ("index", corpus, *more, *encoder)


def ask(content: bytes, says: str) -> Bad:
    return Bad(("recommend", "--query", "draft"), says, {"draft": content})


def exclude(content: bytes, says: str) -> Bad:
    return Bad((*RECOMMEND, "--exclude", "list"), says, {"list": content})


def runs(content: bytes, says: str) -> Bad:
    return Bad(("evaluate", "--run", "b.run", "--qrels", "gold.txt"), says, {"b.run": content})


def gold(content: bytes, says: str) -> Bad:
    return Bad(("evaluate", "--run", "a.run", "--qrels", "bad.txt"), says, {"bad.txt": content})


def row(line: str, says: str, corpus: str = "corpus.jsonl") -> Bad:
    text = f'title = "T"\nclaim = "C"\ncost = "1 s"\ncorpus = "{corpus}"\n{line}\n'
    files = {"rows/row.toml": text.encode(), "more/sample": GOOD["corpus.jsonl"]}
    return Bad(("experiment", "run", "rows/row.toml"), says, files)


COMMANDS: dict[str, Bad] = {
    # index
    "no corpus named": Bad(("index",), "name a corpus: citerec index CORPUS"),
    "corpus missing": Bad(index(corpus="nowhere.jsonl"), "nowhere.jsonl: no such file or folder"),
    "a folder of nothing": Bad(index(corpus="folder"), "no corpus file in this folder"),
    "an index as a corpus": Bad(
        index("--index", "made", corpus="indexes/sample"), "this is an index, not a corpus"
    ),
    "unknown format": Bad(index("--format", "xml"), "no format 'xml'; there are: "),
    "the wrong format": Bad(index("--format", "beir"), "line 1: no '_id'"),
    "index path is a file": Bad(index("--index", "q.json", "--force"), "is not an index"),
    "index path under a file": Bad(index("--index", "q.json/made"), "q.json"),
    "somebody's folder": Bad(
        index("--index", "folder"), "folder already exists and is not an index"
    ),
    "somebody's folder by force": Bad(index("--index", "folder", "--force"), "was not changed"),
    "index there": Bad(index("--index", "indexes/sample"), "replace it with --force"),
    "bad corpus over an index": Bad(
        index("--index", "indexes/sample", "--force", corpus="q.json"), "expected 'id' and"
    ),
    "negative threads": Bad(index("--threads", -1), "'--threads'"),
    "threads of words": Bad(index("--threads", "many"), "'--threads'"),
    "a million threads": Bad(index("--threads", 1_000_000), "'--threads'"),
    "an encoder that is not in the cache, offline": Bad(
        index("--encoder", "specter"), "allenai/specter"
    ),
    "an encoder that is nowhere": Bad(index("--encoder", "./nowhere"), "nowhere"),
    "a folder that is no model": Bad(index("--encoder", "folder"), "folder"),
    "part of the splits": Bad(
        index(corpus="made"),
        "dev.ids, test.ids is missing; expected all three, or none",
        {"made/corpus.jsonl": GOOD["corpus.jsonl"], "made/splits/train.ids": b"a\n"},
    ),
    "an id in two splits": Bad(
        index(corpus="made"),
        "'a' is a train query, too",
        {"made/corpus.jsonl": GOOD["corpus.jsonl"]}
        | {f"made/splits/{name}.ids": b"a\n" for name in ("train", "dev", "test")},
    ),
    # options
    "unknown command": Bad(("frobnicate",), "No such command 'frobnicate'"),
    "no command": Bad((), "Missing command"),
    "unknown option": Bad((*RECOMMEND, "--colour"), "No such option: --colour"),
    "an argument too many": Bad((*RECOMMEND, "more"), "more"),
    "an option without its value": Bad((*RECOMMEND, "--k"), "--k"),
    "negative k": Bad((*RECOMMEND, "--k", -3), "'--k'"),
    "k 0": Bad((*RECOMMEND, "--k", 0), "'--k'"),
    "k ten": Bad((*RECOMMEND, "--k", "ten"), "'--k'"),
    "k 1.5": Bad((*RECOMMEND, "--k", 1.5), "'--k'"),
    "year-max x": Bad((*RECOMMEND, "--year-max", "x"), "'--year-max'"),
    "year-max -5": Bad((*RECOMMEND, "--year-max", -5), "'--year-max'"),
    "k1 -1": Bad((*RECOMMEND, "--k1", -1), "'--k1'"),
    "k1 NaN": Bad((*RECOMMEND, "--k1", "nan"), "k1"),
    "k1 infinite": Bad((*RECOMMEND, "--k1", "inf"), "k1"),
    "k1 beyond float32": Bad((*RECOMMEND, "--k1", "1e39"), "k1 must lie in [0, 1000]"),
    "b 2": Bad((*RECOMMEND, "--b", 2), "'--b'"),
    "unknown output format": Bad((*RECOMMEND, "--format", "xml"), "'xml' is not one of"),
    "unknown query form": Bad((*RECOMMEND, "--query-form", "x"), "'--query-form'"),
    "unknown stop words": Bad((*RECOMMEND, "--stop-words", "x"), "'--stop-words'"),
    "a ranker": Bad((*RECOMMEND, "--ranker", "scibert"), "--ranker none"),
    # reranking
    "a reranker that is nowhere": Bad((*RECOMMEND, "--reranker", "./no"), "'./no' is not a folder"),
    "a reranker without a name": Bad((*RECOMMEND, "--reranker", ""), "reranker is empty"),
    "a reranker that is a file": Bad((*RECOMMEND, "--reranker", "q.json"), "'q.json' is a file"),
    "a reranker that is no model": Bad((*RECOMMEND, "--reranker", "folder"), "config.json"),
    "a reranker without a trained head": Bad(
        (*RECOMMEND, "--reranker", "minilm"), "citerec train-reranker --model"
    ),
    "the index's reranker, which it has not": Bad(
        (*RECOMMEND, "--rerank-depth", 10), "has no reranker; train one: citerec train-reranker"
    ),
    "depth without a reranker": Bad(
        (*RECOMMEND, "--reranker", "none", "--rerank-depth", 10), "--rerank-depth has no effect"
    ),
    "query-tokens 63": Bad((*RECOMMEND, "--query-tokens", 63), "'--query-tokens'"),
    "candidate-tokens 449": Bad((*RECOMMEND, "--candidate-tokens", 449), "'--candidate-tokens'"),
    "rerank-weight 2": Bad((*RECOMMEND, "--rerank-weight", 2), "'--rerank-weight'"),
    "an unknown dtype": Bad((*RECOMMEND, "--dtype", "int3"), "'--dtype'"),
    "an unknown backend": Bad((*RECOMMEND, "--backend", "abacus"), "'--backend'"),
    "reranking without a reranker": Bad(
        ("evaluate", "--systems", "rerank"), "reranking needs a reranker"
    ),
    "a reranker for given runs": Bad(
        ("evaluate", "--run", "a.run", "--qrels", "gold.txt", "--reranker", "x"),
        "--reranker has no effect with --run",
    ),
    "output in a missing folder": Bad(
        (*RECOMMEND, "--output", "no/where"), "cannot write no/where: there is no folder no"
    ),
    "output is a folder": Bad((*RECOMMEND, "--output", "folder"), "folder: it is a folder"),
    "output is here": Bad((*RECOMMEND, "--output", "."), "it is a folder"),
    "output under a file": Bad((*RECOMMEND, "--output", "q.json/x"), "there is no folder q.json"),
    # which index
    "missing index": Bad((*RECOMMEND, "--index", "nowhere"), "nowhere is not an index"),
    "index is a file": Bad((*RECOMMEND, "--index", "q.json"), "q.json is not an index"),
    "index is a folder": Bad((*RECOMMEND, "--index", "folder"), "folder is not an index"),
    # empty names, as of a variable of a script that is not set
    "index without a name": Bad(
        (*RECOMMEND, "--index", ""),
        "'--index': it is empty; name a file or a folder, or leave out the option",
    ),
    "output without a name": Bad((*RECOMMEND, "--output", ""), "'--output': it is empty; name"),
    "output without a name after =": Bad((*RECOMMEND, "--output="), "'--output': it is empty"),
    "exclude without a name": Bad((*RECOMMEND, "--exclude", ""), "'--exclude': it is empty; name"),
    "cited without a name": Bad((*RECOMMEND, "--cited", ""), "'--cited': it is empty; name"),
    "append without a name": Bad((*RECOMMEND, "--append", ""), "'--append': it is empty; name"),
    "a corpus without a name": Bad(
        ("index", ""), "it is empty; name a file or a folder (see: citerec index"
    ),
    "references without a name": Bad(
        ("check", ""), "it is empty; name a file or a folder (see: citerec check"
    ),
    "a run without a name": Bad(("evaluate", "--run", "a.run", "--run", ""), "it is empty; name"),
    # queries
    "a batch and a title": Bad(
        (*RECOMMEND, "--query", "batch"), "but batch holds 2; leave them out", {"batch": BATCH}
    ),
    "neither query nor title": Bad(("recommend",), "either by --query"),
    "abstract alone": Bad(("recommend", "--abstract", "x"), "--abstract needs --title"),
    "a batch and an abstract": Bad(
        ("recommend", "--query", "batch", "--abstract", "x"),
        "--title and --abstract are for one draft",
        {"batch": BATCH},
    ),
    "empty title": Bad(("recommend", "--title", " "), "--title is empty"),
    "empty title with an abstract": Bad(
        ("recommend", "--title", "", "--abstract", "x"), "--title is empty"
    ),
    "query file missing": Bad(("recommend", "--query", "no"), "no: no such file"),
    "query file is a folder": Bad(("recommend", "--query", "folder"), "this is a folder"),
    "query file without a name": Bad(("recommend", "--query", ""), "--query is empty"),
    "query file empty": ask(b"", "this is empty"),
    "query file of blanks": ask(b" \n\t\n", "this is empty"),
    "query file a PDF": ask(GOOD["a.pdf"], "pdftotext"),
    "query file gzip": ask(gzip.compress(b"x"), "gunzip"),
    "query file UTF-16": ask("Title".encode("utf-16"), "UTF-16"),
    "query file Latin-1": ask(b"caf\xe9", "iconv"),
    "query file broken JSON": ask(b'{"title": "x"', "not valid JSON"),
    "query file deep JSON": ask(b'{"title": ' + b"[" * 100_000, "not valid JSON"),
    "broken JSON in a batch": ask(b'{"title": "x"}\n{"title": \n', "draft, line 2"),
    "two queries with one id": ask(
        b'{"id": "q", "title": "x"}\n{"id": "q", "title": "y"}\n',
        "line 2: the id 'q' is already used",
    ),
    "a query without a title": ask(b'{"id": "q", "abstract": "x"}', "it has no title"),
    "a query with a title of spaces": ask(b'{"title": " "}', "it has no title"),
    "a query with a title of numbers": ask(b'{"title": 3}', '"title" must be a string'),
    "a query of the year soon": ask(b'{"title": "x", "year": "soon"}', 'found "soon"'),
    "a query that is a number": ask(b"17", "a single JSON value"),
    "a list of no queries": ask(b"[]", "holds no paper"),
    "a BibTeX file without an entry": ask(b"@string{a = {b}}\n", "draft"),
    # exclusions
    "exclude missing": Bad((*RECOMMEND, "--exclude", "no"), "no: no such file"),
    "exclude a folder": Bad((*RECOMMEND, "--exclude", "folder"), "this is a folder"),
    "exclude a PDF": exclude(GOOD["a.pdf"], "this is a PDF"),
    "exclude nothing": exclude(b"", "this is empty"),
    "exclude broken JSON": exclude(b'[{"id": "x"}', "not valid JSON"),
    # evaluate
    "unknown split": Bad(
        (*EVALUATE, "--split", "all"), "no split 'all' in indexes/sample; choose one of train"
    ),
    "a split that is a path": Bad((*EVALUATE, "--split", "../splits/test"), "no split"),
    "unknown system": Bad(("evaluate", "--systems", "bm26"), "no system 'bm26'; choose from bm25"),
    "no system": Bad(("evaluate", "--systems", ""), "no system ''"),
    "unknown known graph": Bad((*EVALUATE, "--known-graph", "all"), "train or earlier"),
    "negative seed": Bad((*EVALUATE, "--seed", -1), "'--seed'"),
    "report is a file": Bad((*EVALUATE, "--output", "q.json"), "q.json is a file"),
    "report in somebody's folder": Bad((*EVALUATE, "--output", "folder"), "thesis.tex"),
    "qrels without a run": Bad(("evaluate", "--qrels", "gold.txt"), "--qrels needs --run"),
    "run missing": Bad(("evaluate", "--run", "no", "--qrels", "gold.txt"), "No such file"),
    "run a folder": Bad(("evaluate", "--run", "folder", "--qrels", "gold.txt"), "folder"),
    "run empty": runs(b"", "an empty run"),
    "run with a NaN score": runs(b"q1 Q0 x 1 NaN t\n", "line 1: 'NaN' is not a finite number"),
    "run with a score of words": runs(b"q1 Q0 x 1 best t\n", "'best' is not a number"),
    "run of two columns": runs(b"q1 x\n", "2 columns found, 6 expected"),
    "run with a paper twice": runs(b"q1 Q0 x 1 2 t\nq1 Q0 x 2 1 t\n", "line 2: paper 'x'"),
    "run of another query set": runs(b"q7 Q0 x 1 2 t\n", "is for another query set"),
    "run a PDF": runs(GOOD["a.pdf"], "b.run"),
    "run cut gzip": runs(gzip.compress(RUN)[:-9], "the file is cut off after line"),
    "run twice": Bad(
        ("evaluate", "--run", "a.run", "--run", "a.run", "--qrels", "gold.txt"),
        "two runs are named",
    ),
    "options that a given run makes vain": Bad(
        ("evaluate", "--run", "a.run", "--qrels", "gold.txt", "--k1", 1.2), "--k1 has no effect"
    ),
    "stop words for a given run": Bad(
        ("evaluate", "--run", "a.run", "--stop-words", "long"), "--stop-words has no effect"
    ),
    "a run in the folder of its report": Bad(
        ("evaluate", "--run", "folder/a.run", "--qrels", "gold.txt", "--output", "folder"),
        "folder holds",
        {"folder/a.run": GOOD["a.run"]},
    ),
    "a run in the default folder of its report": Bad(
        ("evaluate", "--run", "reports/gold-qrels-runs/a.run", "--qrels", "gold.txt"),
        "choose another folder with --output",
        {"reports/gold-qrels-runs/a.run": GOOD["a.run"]},
    ),
    "somebody's files in the default folder": Bad(
        ("evaluate", "--systems", "bm25"), "thesis.tex", {"reports/sample-test/thesis.tex": b"mine"}
    ),
    "qrels with ids that meet": Bad(
        ("evaluate", "--run", "a.run", "--qrels", "bad.txt"),
        "the ids 'q 1' and 'q_1' of the queries are the same",
        {"bad.txt": b"query-id\tcorpus-id\tscore\nq 1\tx\t1\nq_1\ty\t1\n"},
    ),
    "run with ids that meet": runs(
        "q1 Q0 x\u00a0y 1 2 t\nq1 Q0 x_y 2 1 t\n".encode(), "of run 'b' are the same"
    ),
    "qrels missing": Bad(("evaluate", "--run", "a.run", "--qrels", "no"), "No such file"),
    "qrels empty": gold(b"", "no relevant paper in it"),
    "qrels of zeros": gold(b"q1 0 x 0\n", "no relevant paper in it"),
    "qrels of two columns": gold(b"q1 x\n", "2 columns found, 4 expected"),
    "qrels UTF-16": gold("q1 0 x 1\n".encode("utf-16"), "UTF-16"),
    # experiments
    "an experiment that is missing": Bad(("experiment", "run", "no.toml"), "no such file"),
    "an experiment that is no TOML": Bad(("experiment", "run", "q.json"), "not TOML"),
    "an experiment of an unknown key": row("colour = 1", "unknown key 'colour'"),
    "an experiment of an unknown metric": row("expect = { p = 1 }", "unknown key 'expect.p'"),
    "an experiment whose expectation is a number": row("expect = 3", "expect must be a table"),
    "an experiment that expects words": row(
        'expect = { mrr = "x" }', "expect.mrr must be a number"
    ),
    "an experiment that expects a NaN": row(
        "expect = { mrr = nan }", "expect.mrr must be a number"
    ),
    "an experiment of an unknown graph": row('known_graph = "x"', "known_graph must be one of"),
    "an experiment of an unknown split": row("split = 1", "split must be one of train, dev, test"),
    "an experiment of an unknown system": row('system = "bm26"', "system must be one of bm25"),
    "an experiment whose bm25 is a word": row('bm25 = "abc"', "bm25 must be a table"),
    "an experiment whose k1 is a word": row('bm25 = { k1 = "x" }', "bm25.k1 must be a number"),
    "an experiment whose b is too high": row("bm25 = { b = 2 }", "bm25: b must lie in [0, 1]"),
    "an experiment of half a term": row("bm25 = { key_terms = 0.5 }", "bm25.key_terms must be"),
    "an experiment of an unknown form": row("bm25 = { form = [] }", "bm25.form must be one of"),
    "an experiment of an unknown setting": row("bm25 = { k2 = 1 }", "unknown key 'bm25.k2'"),
    "an experiment of a bad corpus": row("", "this is a PDF", corpus="a.pdf"),
    "an experiment on another index": row(
        "", "indexes/sample was built from another corpus", "more/sample"
    ),
}

# --- an index that was harmed: how, what to run on it, what the message must say


def _replace(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def harm(index: Path) -> None:
        content = (index / name).read_bytes()
        assert old in content
        (index / name).write_bytes(content.replace(old, new, 1))

    return harm


def _cut(name: str, keep: int) -> Callable[[Path], None]:
    def harm(index: Path) -> None:
        (file,) = index.glob(name)
        file.write_bytes(file.read_bytes()[:keep])

    return harm


def _remove(name: str) -> Callable[[Path], None]:
    def harm(index: Path) -> None:
        for file in index.glob(name):
            file.unlink()

    return harm


HARMS: dict[str, tuple[Callable[[Path], None], str]] = {
    "of another format version": (
        _replace("manifest.json", b'"format": 2', b'"format": 99'),
        "has index format 99, this citerec reads format 1; rebuild it",
    ),
    "manifest cut": (_cut("manifest.json", 100), "manifest.json cannot be read"),
    "manifest empty": (_cut("manifest.json", 0), "manifest.json cannot be read"),
    "manifest altered": (
        _replace("manifest.json", b'"papers": 300', b'"papers": 301'),
        "manifest.json is not what was written",
    ),
    "manifest a list": (lambda index: _write(index / "manifest.json", b"[]"), "manifest.json"),
    "papers cut": (_cut("papers.arrow", 1000), "papers.arrow"),
    "papers empty": (_cut("papers.arrow", 0), "papers.arrow"),
    "papers missing": (_remove("papers.arrow"), "papers.arrow is missing"),
    "Lucene's segments cut": (_cut("bm25/segments_*", 40), "bm25"),
    "Lucene's rows cut": (_cut("bm25/rows.npy", 100), "bm25"),
    "Lucene missing": (_remove("bm25/*"), "is missing"),
}


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Take down the mode, size and checksum of everything in a folder."""
    seen: dict[str, tuple[int, int, str]] = {}
    for path in sorted(folder.rglob("*")):
        state, digest = path.lstat(), ""
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        size = 0 if path.is_dir() else state.st_size
        seen[str(path.relative_to(folder))] = (state.st_mode, size, digest)
    return seen


def check(code: int, out: str, err: str, says: str) -> None:
    """Check what stands for every bad input, and that the message says `says`."""
    assert code == 2, err
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("citerec: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert len(err) < 700
    # the place of the fault, such as "line 2"; the wording around it is free
    assert all(place in err for place in re.findall(r"line \d+", says))


@pytest.fixture
def workplace(tmp_path: Path, sample_index: IndexFolder, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some good files and one index."""
    for name, content in GOOD.items():
        _write(tmp_path / name, content)
    shutil.copytree(sample_index.path, tmp_path / "indexes" / "sample")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(workplace: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Run a command in this process and check that it is refused and changes nothing."""

    def call(*arguments: object, says: str) -> None:
        before = snapshot(workplace)
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        check(code, captured.out, captured.err, says)
        assert snapshot(workplace) == before

    return call


@pytest.mark.parametrize("name", CORPORA)
def test_a_bad_corpus(refused: Callable[..., None], workplace: Path, name: str) -> None:
    content, says = CORPORA[name]
    (workplace / "corpus.jsonl").write_bytes(content)

    refused(*index("--index", "indexes/made", corpus="corpus.jsonl"), says=says)
    refused(*index("--index", "indexes/sample", "--force", corpus="corpus.jsonl"), says=says)


def test_a_bad_corpus_is_refused_with_the_default_encoder_too(
    refused: Callable[..., None], workplace: Path
) -> None:
    content, says = CORPORA["year soon"]
    (workplace / "corpus.jsonl").write_bytes(content)

    refused("index", "corpus.jsonl", "--index", "indexes/made", says=says)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bad_command(refused: Callable[..., None], workplace: Path, name: str) -> None:
    bad = COMMANDS[name]
    for file, content in (bad.files or {}).items():
        _write(workplace / file, content)

    refused(*bad.arguments, says=bad.says)


@pytest.mark.parametrize("name", HARMS)
def test_a_harmed_index(refused: Callable[..., None], workplace: Path, name: str) -> None:
    harm, says = HARMS[name]
    harm(workplace / "indexes" / "sample")

    refused(*RECOMMEND, says=says)
    refused("verify", says=says)
    refused("evaluate", "--systems", "bm25", says=says)


def test_a_split_of_the_index_that_is_missing(
    refused: Callable[..., None], workplace: Path
) -> None:
    (workplace / "indexes" / "sample" / "splits" / "test.ids").unlink()

    refused(*EVALUATE, says="splits/test.ids is missing")


@pytest.mark.parametrize("year", [2019, "2019", 2019.0, " 2019 "])
def test_a_year_may_be_written_in_several_ways(
    workplace: Path, capsys: pytest.CaptureFixture[str], year: object
) -> None:
    (workplace / "corpus.jsonl").write_bytes(record(year=year))
    (workplace / "q.json").write_bytes(json.dumps({"title": "Alpha", "year": year}).encode())

    assert run(["index", "corpus.jsonl", "--index", "made", "--encoder", "none"]) == 0
    assert run(["recommend", "--query", "q.json", "--index", "made"]) == 0

    assert open_index(workplace / "made").papers[0].year == 2019
    assert capsys.readouterr().err == ""


# --- what needs a process of its own: the environment, another user, a full disk


def in_a_process(
    *arguments: object, cwd: Path, says: str, before: Sequence[str] = (), **environment: str
) -> None:
    """Run a command and check that it is refused and changes nothing."""
    as_it_was = snapshot(cwd)
    done = subprocess.run(
        [*before, *COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    check(done.returncode, done.stdout, done.stderr, says)
    assert snapshot(cwd) == as_it_was


@pytest.mark.parametrize("home", ["nowhere", "folder", "q.json"])
def test_a_java_home_that_holds_no_java(workplace: Path, home: str) -> None:
    says = f"CITEREC_JAVA_HOME is {workplace / home}, but Java 21 or newer is needed"

    variables = {"CITEREC_JAVA_HOME": str(workplace / home)}
    in_a_process(*index("--index", "made"), cwd=workplace, says=says, **variables)


@pytest.mark.parametrize(
    "heap",
    [
        "lots",
        "1m",
        "9999999g",
        *(pytest.param(heap, marks=pytest.mark.slow) for heap in ("2t", "-1g", "0g")),
    ],
)
def test_a_heap_that_cannot_be(workplace: Path, heap: str) -> None:
    arguments = index("--index", "made", f"--heap={heap}")
    in_a_process(*arguments, cwd=workplace, says="heap")


def test_an_empty_standard_input(workplace: Path) -> None:
    in_a_process("recommend", "--query", "-", cwd=workplace, says="standard input: this is empty")


@pytest.fixture
def powerless() -> list[str]:
    """What to put before a command so that the modes of files count."""
    if os.geteuid() != 0:
        return []
    if fault := command_fault([*POWERLESS, "true"]):
        pytest.skip(f"modes of files do not bind root: {fault}")
    return POWERLESS


@pytest.fixture
def read_only(workplace: Path) -> Generator[Path]:
    """A folder with files, none of whose folders may be changed."""
    folders = [workplace, *(path for path in workplace.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield workplace
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (index("--index", "made"), "cannot write"),
        (index(), "cannot write"),
        (index("--index", "indexes/sample", "--force"), "cannot write"),
        ((*RECOMMEND, "--output", "out"), "cannot write out: Permission denied"),
        ((*RECOMMEND, "--output", "q.json"), "cannot write q.json: Permission denied"),
        (EVALUATE, "cannot write"),
    ],
    ids=["index", "index by default", "index by force", "output", "output there", "report"],
)
def test_a_folder_that_may_not_be_written(
    read_only: Path, powerless: list[str], arguments: tuple[object, ...], says: str
) -> None:
    in_a_process(*arguments, cwd=read_only, says=says, before=powerless)


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (index("--index", "made"), "corpus.jsonl"),
        (("recommend", "--query", "q.json"), "q.json"),
        ((*RECOMMEND, "--exclude", "gold.txt"), "gold.txt"),
        (("evaluate", "--run", "a.run", "--qrels", "gold.txt"), "a.run"),
        (RECOMMEND, "indexes/sample/manifest.json"),
        (RECOMMEND, "indexes/sample/papers.arrow"),
        (RECOMMEND, "indexes/sample/bm25/rows.npy"),
    ],
    ids=["corpus", "query", "exclusions", "run", "manifest", "papers", "Lucene's rows"],
)
def test_a_file_that_may_not_be_read(
    workplace: Path, powerless: list[str], arguments: tuple[object, ...], file: str
) -> None:
    (workplace / file).chmod(0)

    in_a_process(*arguments, cwd=workplace, says=Path(file).parts[0], before=powerless)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk with room for 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)]
    if fault := command_fault(["mount", *options]):
        pytest.skip(f"a small disk can be mounted by root alone: {fault}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_while_indexing(small_disk: Path) -> None:
    in_a_process(
        *("index", SAMPLE, "--encoder", "none", "--index", small_disk / "made"),
        cwd=small_disk,
        says="made",
    )


def test_a_full_disk_under_a_result(small_disk: Path, sample_index: IndexFolder) -> None:
    (small_disk / "out").write_bytes(b"before")
    (small_disk / "fill").write_bytes(bytes(270_000))
    more = ("--index", sample_index.path, "--k", 300, "--format", "json", "--output", "out")

    in_a_process(
        *("recommend", "--title", "a model of data", *more),
        cwd=small_disk,
        says="cannot write out: No space left on device",
    )
