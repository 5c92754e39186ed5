"""Feed damaged inputs to everything that reads one, and say how many gave more than one clear error.

    python experiments/fuzz.py --minutes 30

Each family runs in a process of its own: hypothesis cuts, repeats, joins and replaces parts of good inputs. A case
holds if it is read, or refused by a `CiterecError`, which the command line prints as one line. Then one token at a
time is repeated, twice as often at each step: where the time grows with the square of the size, the exponent is 2.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from io import BytesIO
from itertools import product
from math import log2
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import fpdf
import lightgbm
import numpy as np
import orjson
import pypandoc
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mcp import Client
from starlette.testclient import TestClient

from citerec.build.corpora import open_corpus, summarise
from citerec.build.index import BuildConfig, build_index
from citerec.collect import sources
from citerec.config import RecommendConfig, read_settings
from citerec.corpus.lists import read_paper_list
from citerec.corpus.readers import json_formats
from citerec.drafts import read_queries
from citerec.drafts.context import sentence_query
from citerec.encode.machine import provenance
from citerec.errors import CiterecError, ConfigError
from citerec.files.reading import read_toml
from citerec.files.trec import read_qrels, read_run
from citerec.index.java import start_jvm
from citerec.lab.experiment.row import read_experiment
from citerec.match.append import append_papers
from citerec.rank.ltr import read_spec
from citerec.rank.trees import read_booster
from citerec.serve.app import create_app
from citerec.serve.mcp import create_server
from citerec.serve.service import Service
from citerec.types import Paper

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "citerec" / "sample" / "papers.jsonl"
LONGEST = 40  # seconds of a case; pandoc is ended after 30
GROWN = 2**20  # bytes of the longest repetition
LEAST = 0.03  # seconds from which two doublings tell an exponent
SLOW = 0.5  # seconds of CPU time from which a repetition is not doubled any more
ABOUT = """# Damaged inputs

Cases of each family: good inputs, of which hypothesis cut, repeated, joined and replaced parts, and tokens that are
repeated up to a megabyte. A fault is an error other than one clear line, or a case of more than {longest} seconds.
The exponent is that of the slowest repetition: 1 where twice the input takes twice the time. Memory is the peak of the
whole process, with its libraries.

Made by `make fuzz MINUTES={minutes:g}` on {cpu}, Python {python}.

| family | cases | refused | faults | slowest case | exponent | memory |
|---|--:|--:|--:|--:|--:|--:|
"""

# of the content of a file, and a folder for files
Read = Callable[[bytes, Path], object]
Make = Callable[[Path], Read]  # prepares in a folder, once


@dataclass
class Family:
    """What one reader takes."""

    make: Make
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()  # that mean something to it


@dataclass
class Outcome:
    """What became of the cases of a family."""

    name: str
    cases: int = 0
    refused: int = 0
    slowest: float = 0.0  # seconds
    exponent: float = 1.0
    repeated: bytes = b""  # the token of the exponent
    memory: float = 0.0  # MiB
    # the input by the place of the fault
    faults: dict[str, str] = field(default_factory=dict)


# --- families


def reads_file(name: str, read: Callable[[Path], object]) -> Make:
    """Make what writes the bytes to a file and reads it."""

    def make(folder: Path) -> Read:
        def one(data: bytes, folder: Path) -> object:
            (folder / name).write_bytes(data)
            return read(folder / name)

        return one

    return make


def corpus(name: str) -> Make:
    """Read a corpus whose format is detected."""
    return reads_file(name, lambda file: summarise(open_corpus(file)))


def draft(name: str) -> Make:
    """Read a draft, as `recommend --query` does, with the sentences that cite nothing."""

    def read(file: Path) -> object:
        queries = read_queries(file)
        # several drafts, or no sentence without a reference
        with suppress(ConfigError):
            queries = queries.stated(context="all")
        return queries

    return reads_file(name, read)


def appended(file: Path) -> object:
    """Add a paper to a bibliography."""
    return append_papers(
        file, [Paper(id="p", title="Ångström & {LaTeX}", authors=("A. B",))]
    )


def sample_service(folder: Path) -> Any:
    """Open the sample for the families that answer requests."""
    start_jvm()
    build_index(SAMPLE, folder / "sample", BuildConfig())
    config = RecommendConfig(few_queries=True)
    return Service({"sample": folder / "sample"}, {"sample": config})


def sample_client(folder: Path) -> TestClient:
    """Return a client of the API on the sample."""
    return TestClient(create_app(sample_service(folder)), base_url="http://localhost")


def request(path: str) -> Make:
    """Send a body to the API."""

    def make(folder: Path) -> Read:
        client = sample_client(folder)

        def one(data: bytes, folder: Path) -> object:
            kind = {"content-type": "application/json"}
            return answered(client.post(path, content=data, headers=kind))

        return one

    return make


def search(folder: Path) -> Read:
    """Search the corpus of the API."""
    client = sample_client(folder)

    def one(data: bytes, folder: Path) -> object:
        # a URL has a limit
        values = iter(data[:2000].decode(errors="replace").split("\n"))
        names = ("q", "year_min", "author", "offset")
        return answered(
            client.get("/v1/search", params=dict(zip(names, values, strict=False)))
        )

    return one


def answered(answer: Any) -> object:
    """Return an answer; a CiterecError for a refusal, and an error for a fault of the server."""
    if answer.status_code >= 500:
        raise AssertionError(f"{answer.status_code}: {answer.text[:200]}")
    if answer.status_code >= 400:
        raise CiterecError(answer.json()["detail"])
    return answer.content


def tool(folder: Path) -> Read:
    """Call the tools of the MCP server."""
    opening: Future[Any] = Future()
    service = sample_service(folder)
    service.close = lambda: None  # the next call needs it
    opening.set_result(service)

    async def call(name: str, arguments: Any) -> Any:
        async with Client(create_server(opening)) as client:
            return await client.call_tool(name, arguments)

    def one(data: bytes, folder: Path) -> object:
        name, _, arguments = data.decode(errors="replace").partition(" ")
        try:
            given = orjson.loads(arguments)
        except ValueError as error:
            raise CiterecError(str(error)) from None
        if not isinstance(given, dict):
            raise CiterecError("no object")
        result = asyncio.run(call(name, given))
        if result.is_error:
            raise CiterecError(str(result.content))
        return result

    return one


def works(data: bytes, folder: Path) -> object:
    """Read a work of OpenAlex and of Semantic Scholar, as `collect` receives it."""
    try:
        raw = orjson.loads(data)
    except ValueError as error:
        raise CiterecError(str(error)) from None
    if not isinstance(raw, dict):
        raise CiterecError("no object")
    return [
        sources._work(raw, read)  # pyright: ignore[reportPrivateUsage]
        for read in (json_formats._openalex, json_formats.s2_paper)  # pyright: ignore[reportPrivateUsage]
    ]


JSON = [
    b"{",
    b"[",
    b'"',
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"1e999",
    b"-1",
    b'"title":',
    b',"a":',
]
TEX = [
    b"\\input{x}",
    b"{",
    b"}",
    b"%",
    b"\\cite{a}",
    b"$",
    b"\\begin{a}",
    b"\\def\\a{\\a}",
    b"    ",
]
BIB = [
    b"@article{a,",
    b"}",
    b"{",
    b'"',
    b"#",
    b"@comment{",
    b"@string{a={b}}",
    b" ",
    b"title={",
]
MARKED = [
    b"> ",
    b"[",
    b"`",
    b"*",
    b"- ",
    b"[@a]",
    b"|",
    b"# ",
    b"<a>",
    b"<!--",
    b"---\n",
    b"](",
    b"<",
]
WORDS = [
    b"[CITE]",
    b"(Smith, 2020; ",
    b"[1, 2]",
    b"et al. ",
    b". ",
    b"-",
    b"\xe2\x80\xa2",
    b"     ",
    b"A. ",
]
PAPER = b'{"id": "a", "title": "Alpha", "abstract": "Of b.", "year": 2020, "authors": ["A. B"], "citations": ["b"]}\n'
OPENALEX = (
    b'{"id": "https://openalex.org/W1", "display_name": "Alpha", "title": "Alpha", "publication_year": 2020, '
    b'"authorships": [{"author": {"display_name": "A. B"}}], "referenced_works": ["https://openalex.org/W2"], '
    b'"abstract_inverted_index": {"Of": [0], "b": [1]}, "doi": "https://doi.org/10.1/a", "cited_by_count": 3}\n'
)
S2 = b'{"paperId": "01", "corpusid": 7, "title": "Alpha", "year": 2020, "externalIds": {"DOI": "10.1/a"}}'
CSL = b'[{"id": "a", "title": "Alpha", "issued": {"date-parts": [[2020]]}, "author": [{"family": "B"}]}]'
BIBTEX = b"@string{v = {Venue}}\n@article{a, title = {{A}lpha} # v, author = {B, A. and C}, doi={10.1/a}}\n"
RIS = b"TY  - JOUR\nTI  - Alpha\nAU  - B, A.\nPY  - 2020\nDO  - 10.1/a\nER  - \n"
PUBMED = (
    b"<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>Alpha</ArticleTitle>"
    b"<Abstract><AbstractText>Of b.</AbstractText></Abstract></Article></MedlineCitation>"
    b"</PubmedArticle></PubmedArticleSet>"
)
LATEX = (
    rb"\documentclass{article}\title{Alpha}\author{A}\begin{document}\begin{abstract}Of b.\end{abstract}"
    b"\n\\section{Introduction}Claims \\cite{a}. Others \\citep[see][p. 2]{b,c}.\n"
    rb"\begin{thebibliography}{1}\bibitem{a} B. Alpha. 2020.\end{thebibliography}\end{document}"
)
MARKDOWN = b"---\ntitle: Alpha\nabstract: Of b.\n---\n# Introduction\n\nClaims [@a; @b, p. 2]. Others.\n"
HTML = b"<html><head><title>Alpha</title></head><body><h1>Alpha</h1><p>Of b. <a href='x'>[1]</a></p></body></html>"
TYPST = b'#import "x.typ": y\n#show: y.with(title: [Alpha], abstract: [Of b.])\n= Introduction\nClaims @a.\n'
TEXT = b"Alpha of beta\n\nAbstract: We show b. Others (Smith, 2020) show c [3].\n\nReferences\n[1] B, A. Alpha. 2020.\n"
RANKING = b"q1 Q0 x 1 2.5 t\nq1 Q0 y 2 1.5 t\n"
SETTINGS = (
    b'k = 5\nfuse = { method = "rrf" }\n[bm25]\nk1 = 0.9\n[reranker]\nmodel = "none"\n'
)
ROW = b'title = "T"\nclaim = "C"\ncost = "1 s"\ncorpus = "corpus.jsonl"\nsystem = "bm25"\n[expect]\nmrr = 0.5\n'
DRAFT = b'{"query": {"title": "Dense retrieval", "abstract": "Of b."}, "k": 3, "year_max": 2020, "explain": true}'
TOOLS = [
    b'recommend {"title": "Dense retrieval", "abstract": "Of b.", "k": 3}',
    b'search {"keywords": "retrieval", "k": 3, "year_min": 2000}',
    b'get_paper {"id": "vaswani2017attention"}',
    b'references_and_citers {"id": "vaswani2017attention", "k": 3}',
    b'check_bibliography {"bibliography": "@article{a, title={Attention}}"}',
]
WORD_TEXT = "word/document.xml"
TREES = HERE.parent / "citerec" / "rank" / "default"


def small_trees() -> bytes:
    """Return a ranker of two trees over three features."""
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 3)), rng.integers(0, 2, 60)
    data = lightgbm.Dataset(x, y, group=[30, 30], feature_name=["a", "b", "c"])
    how = {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 5}
    return lightgbm.train(how, data, 2).model_to_string().encode()


@cache
def word() -> bytes:
    """Return a small Word document."""
    command = [pypandoc.get_pandoc_path(), "-f", "markdown", "-t", "docx", "-o", "-"]
    return subprocess.run(
        command, input=MARKDOWN, capture_output=True, check=True
    ).stdout


def word_text(data: bytes, folder: Path) -> object:
    """Read a Word document whose text is damaged within its archive."""
    with (
        ZipFile(BytesIO(word())) as old,
        ZipFile(folder / "a.docx", "w", ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, data if name == WORD_TEXT else old.read(name))
    return read_queries(folder / "a.docx")


def pdf() -> bytes:
    """Return a small PDF."""
    page = fpdf.FPDF()
    page.set_compression(False)
    page.add_page()
    for size, text in (
        (20, "Alpha of beta"),
        (10, "Abstract. We show b. 1 Introduction. Claims."),
    ):
        page.set_font("Times", size=size)
        page.multi_cell(0, 9, text, new_x="LMARGIN", new_y="NEXT")
    return bytes(page.output())


def families() -> dict[str, Family]:
    """Return all families by name."""
    return {
        "corpus: JSON lines": Family(corpus("a.jsonl"), [PAPER * 3], JSON),
        "corpus: OpenAlex": Family(corpus("a.json"), [OPENALEX], [*JSON, b'"doi":']),
        "corpus: Semantic Scholar": Family(corpus("s2.json"), [S2], JSON),
        "corpus: CSL-JSON": Family(corpus("csl.json"), [CSL], [*JSON, b"[[2020]]"]),
        "corpus: BibTeX": Family(corpus("a.bib"), [BIBTEX], BIB),
        "corpus: RIS": Family(
            corpus("a.ris"), [RIS], [b"TY  - ", b"\nER  - ", b"AU  - "]
        ),
        "corpus: PubMed": Family(
            corpus("a.xml"), [PUBMED], [b"<PubmedArticle>", b"<", b"&a;"]
        ),
        "list of papers": Family(
            reads_file("list.txt", read_paper_list),
            [BIBTEX, RIS, CSL, PAPER, TEXT],
            [*BIB, *WORDS],
        ),
        "bibliography that grows": Family(
            reads_file("a.bib", appended), [BIBTEX, RIS], BIB
        ),
        "draft: text": Family(draft("a.txt"), [TEXT, PAPER, BIBTEX], WORDS),
        "draft: LaTeX": Family(draft("a.tex"), [LATEX], TEX),
        "draft: Markdown": Family(draft("a.md"), [MARKDOWN], MARKED),
        "draft: HTML": Family(draft("a.html"), [HTML], MARKED),
        "draft: Typst": Family(draft("a.typ"), [TYPST], [*MARKED, b"#let a = a"]),
        "draft: Word": Family(draft("a.docx"), [word()], [b"PK\x03\x04", b"word/"]),
        "draft: text of Word": Family(
            lambda _: word_text,
            [ZipFile(BytesIO(word())).read(WORD_TEXT)],
            [*MARKED, b"<w:p>", b"&a;"],
        ),
        "draft: PDF": Family(draft("a.pdf"), [pdf()], [b"<<", b"[", b" 0 R", b"obj"]),
        "one sentence": Family(
            lambda _: lambda data, _: sentence_query(data.decode(errors="replace")),
            [TEXT],
            WORDS,
        ),
        "run": Family(
            reads_file("a.run", read_run), [RANKING], [b"q1 ", b"\t", b"NaN", b"1e999"]
        ),
        "judgements": Family(
            reads_file("a.qrels", read_qrels), [b"q1 0 x 1\n"], [b"q1 ", b"-1"]
        ),
        "settings": Family(
            reads_file(
                "a.toml", lambda file: read_settings(RecommendConfig, read_toml(file))
            ),
            [SETTINGS],
            [b"[", b"a=", b"{a=", b'"""'],
        ),
        "row of a table": Family(
            reads_file("a.toml", read_experiment), [ROW], [b"[", b"a.", b"{a="]
        ),
        "trees of a ranker": Family(
            reads_file(
                "a.txt", lambda file: read_booster(file, 3).predict(np.zeros((2, 3)))
            ),
            [small_trees()],
            [b"num_leaves=", b"-1", b"1e999", b" 0"],
        ),
        "settings of a ranker": Family(
            reads_file("ranker.json", lambda file: read_spec(file.parent)),
            [(TREES / "ranker.json").read_bytes()],
            JSON,
        ),
        "API: recommend": Family(request("/v1/recommend"), [DRAFT], JSON),
        "API: export": Family(
            request("/v1/export"),
            [b'{"ids": ["vaswani2017attention"], "format": "bibtex"}'],
            JSON,
        ),
        "API: connections": Family(
            request("/v1/connections"), [b'{"ids": ["vaswani2017attention"]}'], JSON
        ),
        "API: search": Family(
            search, [b"dense\n2000\nsmith\n0"], [b'"', b"*", b"\xff", b"-1"]
        ),
        "API of Semantic Scholar": Family(
            request("/recommendations/v1/papers"),
            [b'{"positivePaperIds": ["vaswani2017attention"]}'],
            JSON,
        ),
        "tools of an assistant": Family(tool, TOOLS, JSON),
        "answers of a service": Family(lambda _: works, [OPENALEX, S2], JSON),
    }


# --- cases


@st.composite
def edited(draw: st.DrawFn, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Draw a good input, of which some parts are cut, repeated, joined or replaced."""
    data = draw(st.sampled_from(seeds))
    pieces = st.sampled_from([*tokens, b"\0", b"\n", b"\xff", "\u202e\u0301é".encode()])
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        end = draw(
            st.integers(at, min(len(data), at + draw(st.sampled_from([1, 8, 2000]))))
        )
        piece = draw(
            st.one_of(
                pieces.flatmap(lambda one: st.integers(1, 200).map(lambda n: one * n)),
                st.binary(max_size=4),
                st.just(data[at:end] * 2),
                st.just(b""),
            )
        )
        data = data[:at] + piece + data[end:]
    return data


def tried(read: Read, data: bytes, folder: Path, outcome: Outcome) -> None:
    """Read one case, and note what was no clear answer."""
    outcome.cases += 1
    start = perf_counter()
    try:
        read(data, folder)
    except CiterecError:  # which the command line prints as one line
        outcome.refused += 1
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if f"{os.sep}citerec{os.sep}" in one.filename][-1:]
        where = f"{Path(own[0].filename).name}:{own[0].lineno}" if own else "?"
        outcome.faults.setdefault(
            f"{type(error).__name__} at {where}", f"{error}: {data[:300]!r}"
        )
    seconds = perf_counter() - start
    outcome.slowest = max(outcome.slowest, seconds)
    if seconds > LONGEST:
        outcome.faults.setdefault(f"{seconds:.0f} seconds", repr(data[:300]))


def grown(read: Read, family: Family, folder: Path, outcome: Outcome) -> None:
    """Repeat each token ever more often, alone and within a good input; note the exponent of the slowest growth."""
    half = len(family.seeds[0]) // 2
    around = [(b"", b""), (family.seeds[0][:half], family.seeds[0][half:])]

    def seconds(data: bytes) -> float:
        """CPU time of a case, with that of child processes."""
        begin = sum(os.times()[:4])
        tried(read, data, folder, outcome)
        return sum(os.times()[:4]) - begin

    seconds(family.seeds[0])  # what is imported or opened once
    least = seconds(family.seeds[0])  # such as that of a child process
    for token, (head, tail) in product([*family.tokens, b" ", b"\n", b"("], around):
        taken, size = [0.0, 0.0], 2**12
        while size <= GROWN and taken[-1] < SLOW:
            taken.append(seconds(head + token * (size // len(token)) + tail) - least)
            if taken[-3] > LEAST:
                found = log2(max(taken[-1] / taken[-3], 1)) / 2
                outcome.exponent, outcome.repeated = max(
                    (outcome.exponent, outcome.repeated), (found, token)
                )
            size *= 4 if size < 2**16 else 2


def fuzzed(name: str, seconds: float, number: int) -> Outcome:
    """Try cases of a family for a time, in this process."""
    family, outcome = families()[name], Outcome(name)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "cases"
        folder.mkdir()
        read = family.make(Path(made))
        grown(read, family, folder, outcome)
        end = perf_counter() + seconds
        while perf_counter() < end and len(outcome.faults) < 20:
            number += 1

            @seed(number)
            @settings(
                max_examples=50,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
            )
            @given(data=edited(family.seeds, family.tokens))
            def cases(data: bytes) -> None:
                tried(read, data, folder, outcome)

            cases()
    outcome.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return outcome


def main() -> None:
    """Fuzz every family, or those that are named; write a page; exit with 1 if a case did not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help="parts of the names of families; all by default"
    )
    parser.add_argument(
        "--minutes", type=float, default=30, help="of all processes together"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first cases")
    options = parser.parse_args()
    chosen = [
        name
        for name in families()
        if not options.names or any(p in name for p in options.names)
    ]
    workers = os.cpu_count() or 1
    each = options.minutes * 60 * workers / len(chosen)
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, max_tasks_per_child=1) as pool:
        how = partial(fuzzed, seconds=each, number=1_000_000 * options.seed)
        outcomes: list[Outcome] = []
        for outcome in pool.map(how, chosen):
            outcomes.append(outcome)
            print(
                outcome.name,
                outcome.cases,
                f"{outcome.slowest:.2f} s",
                f"{outcome.exponent:.1f}",
                outcome.repeated,
                flush=True,
            )
            for fault, case in outcome.faults.items():
                print(f"  {fault}\n    {case}", flush=True)
    if not options.names:
        (HERE / "FUZZ.md").write_text(page(outcomes, options.minutes), encoding="utf-8")
    raise SystemExit(any(outcome.faults for outcome in outcomes))


def page(outcomes: Sequence[Outcome], minutes: float) -> str:
    """Return the page of all families."""
    made = provenance({})
    head = ABOUT.format(
        longest=LONGEST,
        minutes=minutes,
        cpu=made["machine"]["processor"],
        python=made["versions"]["python"],
    )
    rows = [
        f"| {one.name} | {one.cases:,} | {one.refused:,} | {len(one.faults)} | {one.slowest:.2f} s "
        f"| {one.exponent:.1f} | {one.memory:.0f} MiB |\n"
        for one in outcomes
    ]
    total = sum(one.cases for one in outcomes), sum(len(one.faults) for one in outcomes)
    return head + "".join(rows) + f"\n{total[0]:,} cases, {total[1]} faults.\n"


if __name__ == "__main__":
    main()
