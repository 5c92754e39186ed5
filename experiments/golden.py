"""Golden runs: what every system answers, before and after a change of the code that must change no answer.

    python experiments/golden.py write FOLDER --index DIR [--index DIR ...] [--reranker MODEL]
    python experiments/golden.py compare BEFORE AFTER
    python experiments/golden.py expect

`write` runs all systems of `citerec evaluate` on the test split, with the citations of train papers and of all earlier
papers, and `citerec recommend --format trec` on the same drafts under ids of their own; all in float32, on one thread.
On one machine `compare` finds every byte the same. `expect` writes `experiments/golden/sample/`: BM25's run whole,
which is the same on every processor, and the best 20 of the other systems, which the tests compare within a tolerance.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "experiments" / "golden" / "sample"
SAMPLE = ROOT / "citerec" / "sample" / "papers.jsonl"
# papers of a list that are compared where the arithmetic of processors differs
TOP = 20
DRAFTS = 100  # of an index, for which `recommend` is run
RANKED = ("expanded", "ranker", "ranker-no-popularity", "ranker-no-authors")
ALWAYS = ("bm25", "bm25-title", "bm25-key-terms", *RANKED, "most-cited", "random")
WITH_VECTORS = ("dense", "rrf", "weighted")
WITH_RERANKER = ("bm25+rerank", "rerank", "rerank-alone")
ONE_WAY = {"CITEREC_DTYPE": "float32", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
PLAIN = ("--threads", "1", "--quiet")


def citerec(*arguments: object) -> None:
    """Run a command of citerec in the same environment, one thread, float32."""
    script = "import sys; from citerec.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    subprocess.run(
        command, check=True, env={**os.environ, **ONE_WAY}, stdout=subprocess.DEVNULL
    )


def write(folder: Path, indexes: Sequence[Path], reranker: str | None) -> None:
    """Write the runs of all systems on some indexes, one folder each."""
    for index in indexes:
        target = folder / index.name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        manifest = json.loads((index / "manifest.json").read_bytes())
        systems = [
            *ALWAYS,
            *(WITH_VECTORS if manifest["settings"].get("encoder") else ()),
        ]
        with tempfile.TemporaryDirectory() as work:
            for known in ("train", "earlier"):
                evaluated(index, systems, known, "none", Path(work) / known, target)
            if reranker:
                reranked = [*WITH_RERANKER, "ranker"]
                evaluated(
                    index, reranked, "train", reranker, Path(work) / "reranked", target
                )
            drafts = Path(work) / "drafts.jsonl"
            drafts.write_text(
                "".join(f"{json.dumps(draft)}\n" for draft in drafts_of(index))
            )
            for name, options in recommendations(reranker).items():
                run = target / f"recommend-{name}.run"
                common = (
                    "--index",
                    index,
                    "--format",
                    "trec",
                    "--k",
                    100,
                    "--output",
                    run,
                )
                citerec("recommend", "--query", drafts, *common, *options, *PLAIN)
        print(f"{target}: {len(list(target.iterdir()))} runs")


def evaluated(
    index: Path,
    systems: Sequence[str],
    known: str,
    reranker: str,
    work: Path,
    target: Path,
) -> None:
    """Run systems over the test split, and take their runs."""
    how = ("--known-graph", known, "--reranker", reranker, "--ranker", "auto")
    names = ("--systems", ",".join(systems))
    citerec("evaluate", "--index", index, *names, *how, "--output", work, *PLAIN)
    prefix = f"{known}-" if reranker == "none" else "reranked-"
    for run in work.glob("*.run"):
        shutil.copy(run, target / f"{prefix}{run.name}")


def recommendations(reranker: str | None) -> dict[str, tuple[object, ...]]:
    """Return the options of each way to recommend, by name."""
    ways: dict[str, tuple[object, ...]] = {
        "default": ("--reranker", "none"),
        "fused": ("--reranker", "none", "--ranker", "none"),
        "bm25": ("--reranker", "none", "--ranker", "none", "--encoder", "none"),
        "bounded": ("--reranker", "none", "--year-max", 2005, "--diversity", 0.3),
    }
    if reranker:
        ways["reranked"] = ("--reranker", reranker)
        ways["reranked-alone"] = ("--reranker", reranker, "--ranker", "none")
    return ways


def drafts_of(index: Path) -> Iterator[dict[str, object]]:
    """Yield papers of the test split as drafts: under ids of their own, with all that a draft may have."""
    table = pa.ipc.open_file(pa.memory_map(str(index / "papers.arrow"))).read_all()
    ids = (index / "splits" / "test.ids").read_text().split("\n")
    row_of = {docid: row for row, docid in enumerate(table["id"].to_pylist())}
    rows = [row_of[docid] for docid in ids if docid in row_of][:DRAFTS]
    names = ("title", "abstract", "year", "authors", "venue")
    for number, paper in enumerate(table.select(names).take(rows).to_pylist()):
        if paper["title"]:
            yield {"id": f"draft{number}", **{n: v for n, v in paper.items() if v}}


def compare(before: Path, after: Path) -> bool:
    """Say which runs differ; return whether none does."""
    names = sorted(file.relative_to(before) for file in before.rglob("*.run"))
    other = sorted(file.relative_to(after) for file in after.rglob("*.run"))
    differing = [name for name in names if not _same(before / name, after / name)]
    differing += [name for name in other if name not in names]
    for name in differing:
        print(f"differs: {name}")
    print(f"{len(names)} runs, {len(differing)} differ")
    return bool(names) and not differing


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def expect() -> None:
    """Write what the tests expect of the sample, embedded by MiniLM."""
    with tempfile.TemporaryDirectory() as work:
        index = Path(work) / "sample"
        citerec("index", SAMPLE, "--index", index, "--encoder", "minilm", *PLAIN)
        write(Path(work) / "runs", [index], None)
        shutil.rmtree(EXPECTED, ignore_errors=True)
        EXPECTED.mkdir(parents=True)
        runs = Path(work) / "runs" / "sample"
        names = {*runs.glob("train-*.run"), *runs.glob("earlier-*.run")} - {
            *runs.glob("train-bm25*")
        }
        # BM25 knows no citations, so one of its runs is enough
        for run in sorted(names):
            lines = run.read_text().splitlines(keepends=True)
            whole = "bm25" in run.name
            kept = [line for line in lines if whole or int(line.split()[3]) <= TOP]
            (EXPECTED / run.name).write_text("".join(kept))
    print(f"{EXPECTED}: {len(list(EXPECTED.glob('*.run')))} runs")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser(
        "write", help="write the runs of all systems on some indexes"
    )
    writing.add_argument("folder", type=Path)
    writing.add_argument("--index", type=Path, action="append", required=True)
    writing.add_argument(
        "--reranker", help="a cross-encoder, for the systems that rerank"
    )
    comparing = commands.add_parser(
        "compare", help="compare two folders of runs, byte by byte"
    )
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    commands.add_parser("expect", help="write what the tests expect of the sample")
    given = parser.parse_args()
    if given.command == "write":
        write(given.folder, given.index, given.reranker)
    elif given.command == "compare":
        return 0 if compare(given.before, given.after) else 1
    else:
        expect()
    return 0


if __name__ == "__main__":
    sys.exit(main())
