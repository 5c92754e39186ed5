"""Time `citerec index --append` of the last 1 % of a corpus beside a build of all of it; write GROW.md.

    python experiments/grow.py ../shared/data/acm_vis/corpus.jsonl.gz --copies 2

With `--copies` the papers are repeated under other ids. Builds and appends alternate, each in a process of its own,
without vectors; every file but Lucene's and the manifest must be that of the build.
"""

import argparse
import filecmp
import gzip
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import orjson

from citerec.encode.machine import provenance
from citerec.index.folder import NAME

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "grow.json"
SHARE = 100  # the last of so many papers are added
ABOUT = """# Indexes that grow

`citerec index` of all papers, and `citerec index --append` of the last 1 % to an index of the others, without vectors;
medians of {rounds} rounds in turn. Every file but Lucene's and the manifest is byte for byte that of the build. Made by
`python experiments/grow.py CORPUS --copies 2`.

| papers | added | build, s | append, s | append / build |
|--:|--:|--:|--:|--:|
| {papers:,} | {added:,} | {build:.1f} | {append:.1f} | {share:.0%} |

`{machine}`
"""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="canonical JSON lines, packed")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="citerec-grow.") as name:
        folder = Path(name)
        counts = split(options.corpus, folder, options.copies)
        builds: list[float] = []
        appends: list[float] = []
        for _ in range(options.rounds):
            for made in ("all.index", "old.index"):
                shutil.rmtree(folder / made, ignore_errors=True)
            build = ("--encoder", "none", "--index")
            builds.append(timed(folder, "all", *build, "all.index"))
            timed(folder, "old", *build, "old.index")
            appends.append(timed(folder, "new", "--append", "--index", "old.index"))
        compare(folder / "all.index", folder / "old.index")
    result = {"counts": counts, "builds": builds, "appends": appends}
    made_by = provenance({})
    RESULT.write_bytes(orjson.dumps(result | {"provenance": made_by}) + b"\n")
    text = ABOUT.format(
        rounds=options.rounds,
        papers=sum(counts),
        added=counts[1],
        build=median(builds),
        append=median(appends),
        share=median(appends) / median(builds),
        machine=orjson.dumps(made_by["machine"]).decode(),
    )
    (HERE / "GROW.md").write_text(text, encoding="utf-8")
    print(text)


def split(corpus: Path, folder: Path, copies: int) -> Sequence[int]:
    """Write a corpus whole, and its first and its last papers apart; return how many these are."""
    with gzip.open(corpus) as lines:
        papers = [orjson.loads(line) for line in lines]
    records = [
        {
            **paper,
            "id": f"{copy}.{paper['id']}",
            "citations": [f"{copy}.{cited}" for cited in paper["citations"]],
        }
        for copy in range(copies)
        for paper in papers
    ]
    first = len(records) - len(records) // SHARE
    parts = {"all": records, "old": records[:first], "new": records[first:]}
    for name, part in parts.items():
        (folder / name).mkdir()
        with (folder / name / "papers.jsonl").open("wb") as out:
            out.writelines(
                orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
                for record in part
            )
        splits = folder / name / "splits"
        if name != "new":  # the same in both, so that the indexes are
            splits.mkdir()
            for place, kind in enumerate(("train", "dev", "test")):
                (splits / f"{kind}.ids").write_text(f"{records[place]['id']}\n")
    return [first, len(records) - first]


def timed(folder: Path, *arguments: str) -> float:
    """Run `citerec index`; return its seconds."""
    command = [sys.executable, "-m", "citerec", "index", *arguments, "--quiet"]
    start = perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - start


def compare(built: Path, grown: Path) -> None:
    """Raise an AssertionError if a file of two indexes differs, but for Lucene's and the manifest."""
    for file in built.rglob("*"):
        name = file.relative_to(built)
        is_own = file.is_file() and name.parts[0] != "bm25" and file.name != NAME
        if is_own and not filecmp.cmp(file, grown / name, shallow=False):
            raise AssertionError(f"{name} differs")


if __name__ == "__main__":
    main()
