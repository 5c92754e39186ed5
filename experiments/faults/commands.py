"""The commands that write, on the bundled sample with tiny models, and what they leave."""

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import httpx
from support.corpora import SAMPLE  # pyright: ignore[reportMissingImports]
from support.tiny import tiny_bert, tiny_reranker  # pyright: ignore[reportMissingImports]
from trap import Fault, run_trapped

from citerec.build.index import BuildConfig, build_index
from citerec.cli import run
from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.errors import CiterecError
from citerec.files.checksums import sha256_of
from citerec.index.folder import NAME, verify_index

DRAFT = f"--query {SAMPLE.parent / 'draft.json'}"
SMALL = "--model {tiny} --steps 1 --batch 2 --queries 4 --device cpu --force"
SERVICE = "--source s2 --rate 1000"


Facts = dict[str, Any]
MODELS = ("tiny", "other", "reranker")


@dataclass(frozen=True)
class Command:
    """A command line, and the index, file or folder that it writes."""

    arguments: str
    writes: str
    cold: bool = False  # whether it starts with an empty cache
    steps: bool = False  # whether what it writes changes step by step


COMMANDS = {
    "index": Command(
        "index papers.jsonl --index new --encoder {tiny} --force", "new", cold=True
    ),
    "index --force": Command(
        "index papers.jsonl --index idx --encoder none --force", "idx"
    ),
    "index --append": Command("index more.jsonl --index idx --append", "idx"),
    "index --delete": Command("index --index idx --delete gone.ids --skip-bad", "idx"),
    "encode": Command("encode --index idx --encoder {other} --device cpu", "idx"),
    "train-encoder": Command(f"train-encoder --index idx {SMALL}", "idx"),
    "train-reranker": Command(
        f"train-reranker --index idx {SMALL} --config small.toml", "idx"
    ),
    "train-ranker": Command("train-ranker --index idx --queries 9 --force", "idx"),
    "train": Command("train --index idx --config plan.toml --force", "idx", steps=True),
    "evaluate": Command(
        "evaluate --index idx --split dev --systems bm25 --ranker none --output out",
        "out",
    ),
    "recommend": Command(
        f"recommend --index idx {DRAFT} --reranker {{reranker}} --format json --output list.json",
        "list.json",
        cold=True,
    ),
    "recommend --append": Command(
        f"recommend --index idx {DRAFT} --append refs.bib", "refs.bib"
    ),
    "export": Command("export gone.ids --index idx --output out.bib", "out.bib"),
    "collect": Command(
        f"collect refs.bib -o mine --papers 20 {SERVICE}", "mine", steps=True
    ),
    "collect --update": Command(
        f"collect more.bib -o got --papers 20 --update {SERVICE}", "got", steps=True
    ),
    "corpus convert": Command(
        "corpus convert papers.jsonl -o out.jsonl.zst --force", "out.jsonl.zst"
    ),
    "corpus merge": Command(
        "corpus merge papers.jsonl more.jsonl -o out.jsonl.gz", "out.jsonl.gz"
    ),
    "corpus sample": Command(
        "corpus sample papers.jsonl -n 9 -o out.jsonl", "out.jsonl"
    ),
    "scidocs": Command(
        "scidocs --index idx --tasks cite --output out.json", "out.json"
    ),
    "serve": Command(
        "serve --index idx --port 0 --reranker {reranker}", "idx", cold=True
    ),
    "experiment run": Command(
        "experiment run rows/row.toml --results results", "results"
    ),
}
STEP = "steps = 1\nbatch = 2\nqueries = 4\ndev_queries = 4\n"
PAIRS = "query_tokens = 16\ncandidate_tokens = 16\n"
ROW = (
    'title = "BM25"\nclaim = "It finds words."\ncost = "1 s"\ncorpus = "papers.jsonl"\n'
)


def prepare(folder: Path, *, embedded: bool = True) -> None:
    """Write what the commands read into `folder/start`, and tiny models next to it, unless no index is embedded."""
    start, models = folder / "start", {name: str(folder / name) for name in MODELS}
    if embedded:
        spec = EncoderSpec(
            pooling=Pooling.MEAN, max_tokens=64, similarity=Similarity.COSINE
        )
        tiny_bert(folder / "tiny", spec=spec, positions=512)
        tiny_bert(folder / "other", spec=spec, positions=512, seed=1)
        tiny_reranker(folder / "reranker")
    (start / "tmp").mkdir(parents=True)
    (start / "rows").mkdir()
    shutil.copy(SAMPLE, start / "papers.jsonl")
    papers = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
    build_index(
        SAMPLE, start / "idx", BuildConfig(encoder=models["tiny"] if embedded else None)
    )
    more = [{**paper, "id": f"{paper['id']}-2"} for paper in papers[:5]]
    (start / "more.jsonl").write_text(
        "".join(f"{json.dumps(paper)}\n" for paper in more)
    )
    (start / "gone.ids").write_text("".join(f"{paper['id']}\n" for paper in papers[:5]))
    entries = [
        f"@misc{{k{n}, title={{{p['title']}}}}}\n" for n, p in enumerate(papers[:9])
    ]
    (start / "refs.bib").write_text("".join(entries[:3]))
    (start / "more.bib").write_text("".join(entries))
    base = f'model = "{models["tiny"]}"\n{STEP}'
    (start / "small.toml").write_text(f"{STEP}{PAIRS}")
    (start / "plan.toml").write_text(
        f"[encoder]\n{base}[reranker]\n{base}{PAIRS}[ranker]\nqueries = 9\ntrees = 5\n"
    )
    (start / "rows" / "row.toml").write_text(ROW)
    os.chdir(start)
    assert run(shlex.split(f"collect refs.bib -o got --papers 10 {SERVICE}")) == 0


def state(path: Path) -> str:
    """Return what is at a path, without times: "none", "damaged ...", a list's papers and scores, or a checksum."""
    if not path.exists():
        return "none"
    if path.name == "list.json":
        return json.dumps(
            [[paper["id"], paper["score"]] for paper in json.loads(path.read_text())]
        )
    if (path / NAME).exists():
        try:
            manifest = verify_index(path)
        except CiterecError as error:
            return f"damaged: {error}"
        # Lucene's have a random id
        names = [n for n in manifest.checksums if not n.startswith("bm25/")]
        content = [f"{name} {manifest.checksums[name]}" for name in sorted(names)]
        content += sorted(model.name for model in path.glob("models/[!.]*"))
    else:
        files = (
            [path]
            if path.is_file()
            else sorted(
                p
                for p in path.rglob("*")
                if p.is_file() and "/." not in f"/{p.relative_to(path)}"
            )
        )
        content = [f"{file.relative_to(path)} {_content(file)}" for file in files]
    if not content:  # what an interrupted run keeps for the next one is hidden
        return "none"
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:12]


def same(found: str, expected: str) -> bool:
    """Whether two states are one; scores may differ by 1e-4: without an export torch computes, and rounds otherwise."""
    if not (found.startswith("[") and expected.startswith("[")):
        return found == expected
    lists: list[list[tuple[str, float]]] = [json.loads(found), json.loads(expected)]
    return len(lists[0]) == len(lists[1]) and all(
        a == b and abs(x - y) < 1e-4 for (a, x), (b, y) in zip(*lists, strict=True)
    )


def _content(file: Path) -> str:
    """Return the content of a file, for those with times only that they are whole."""
    data = file.read_bytes()
    if file.suffix == ".json":
        return str(sorted(json.loads(data))) if data else "cut"
    if file.suffix == ".html":
        return "whole" if data.rstrip().endswith(b"</html>") else "cut"
    return hashlib.sha256(data).hexdigest()


def names(root: Path) -> set[str]:
    """Return the files and folders that are there, but for checksums in the cache."""
    found = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    return {
        name
        for name in found
        if "/citerec/sha256" not in name
        and "/Microsoft" not in name
        and "hsperf" not in name
    }


def contents(root: Path) -> dict[str, str]:
    """Return what each file or folder holds."""
    return {
        name: sha256_of(root / name) if (root / name).is_file() else ""
        for name in names(root)
    }


def use_server(log: Path) -> None:
    """Send a draft, as text and as a file, to the server of this process, which this ends as Ctrl-C does."""
    while not (url := re.search(r" at (http\S+)/ ", log.read_text())):
        sleep(0.05)
    draft = {"title": "Attention over long documents", "k": 5}
    document = b64encode(b"\\title{Attention over long documents}").decode()
    for body in (draft, {"document": document, "k": 5}):
        answer = httpx.post(f"{url[1]}/v1/recommend", json=body, timeout=120)
        if answer.status_code != 200:
            print(
                f"Traceback: no list, but {answer.status_code} {answer.text}",
                flush=True,
            )
    os.kill(os.getpid(), signal.SIGINT)


class Stage:
    """A folder in which commands run in children of this process, each from the same start."""

    def __init__(self, folder: Path) -> None:
        """Use a folder that `prepare` filled."""
        self.folder, self.root = folder, folder / f"root{os.getpid()}"
        self.models = {name: str(folder / name) for name in MODELS}
        self._log, self._facts = (
            folder / f"{name}{os.getpid()}" for name in ("log", "facts")
        )

    def restart(self) -> None:
        """Set everything back."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.folder / "start", self.root)

    def arguments(self, command: Command) -> list[str]:
        """Return the command line of a command."""
        return shlex.split(command.arguments.format(**self.models))

    def child(
        self,
        work: Callable[[], Facts],
        *,
        cold: bool = False,
        fault: Fault | None = None,
    ) -> tuple[int, str, Facts]:
        """Run work in a child, whose facts have its exit code as `code`; return exit code, output and facts."""

        def inside() -> int:
            out = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir(self.root)
            os.environ["TMPDIR"] = str(self.root / "tmp")
            os.environ["XDG_CACHE_HOME"] = str(
                (self.root if cold else self.folder) / "cache"
            )
            facts = work()
            self._facts.write_text(json.dumps(facts))
            return int(facts["code"])

        self._facts.unlink(missing_ok=True)
        code = run_trapped(inside, self.root if fault else None, fault or Fault())
        facts = json.loads(self._facts.read_text()) if self._facts.exists() else {}
        return code, self._log.read_text(errors="replace"), facts

    def call(
        self, command: Command, fault: Fault | None = None
    ) -> tuple[int, str, Facts]:
        """Run a command; without a fault, its facts are what was there before and after it."""

        def work() -> Facts:
            if command.arguments.startswith("serve "):
                Thread(target=use_server, args=[self._log], daemon=True).start()
            if fault:
                return {"code": run(self.arguments(command))}
            facts: Facts = {"before": state(Path(command.writes))}
            facts["code"] = run(self.arguments(command))
            return facts | {
                "after": state(Path(command.writes)),
                "names": sorted(names(self.root)),
            }

        return self.child(work, cold=command.cold, fault=fault)


def undisturbed(stage: Stage, command: Command) -> tuple[list[str], Facts]:
    """Run a command without a fault; return the names of its calls, and what was there before and after it."""
    stage.restart()
    fault = Fault()
    code, log, _ = stage.call(command, fault)
    assert code == 0, log
    stage.restart()
    code, log, facts = stage.call(command)
    assert code == 0, log
    return fault.calls, facts


def disturbed(
    stage: Stage, command: Command, whole: Facts, at: int, error: int
) -> tuple[str, list[str]]:
    """Let one call fail, or kill the process there, and run the command again; return the call and what is wrong."""
    stage.restart()
    fault, wrong = Fault(at, error), list[str]()
    code, log, _ = stage.call(command, fault)
    name = fault.calls[at - 1] if len(fault.calls) >= at else "none"
    refusals = [
        line for line in log.splitlines() if line.startswith("citerec: error: ")
    ]
    is_refused = code == 2 and len(refusals) == 1 and log.rstrip().endswith(refusals[0])
    if "Traceback" in log or (error and code != 0 and not is_refused):
        wrong.append(f"exit code {code}: {log[-1500:]}")
    if contents(stage.root) == contents(stage.folder / "start"):
        return name, wrong  # the next run is an undisturbed one
    code, log, facts = stage.call(command)
    if not facts:
        return name, [*wrong, f"next run: exit code {code}: {log[-1500:]}"]
    old, new, found = whole["before"], whole["after"], facts["before"]
    is_known = same(found, old) or same(found, new) or command.steps
    if found.startswith("damaged") or not is_known:
        wrong.append(f"between: {found}")
    if code and not (same(found, new) and "already exists" in log):
        wrong.append(f"next run: exit code {code}: {log[-1500:]}")
    if not same(facts["after"], new):
        wrong.append(f"after the next run: {facts['after']}, not {new}")
    if left := sorted({*facts["names"]} - {*whole["names"]}):
        wrong.append(f"left: {left[:5]}")
    return name, wrong
