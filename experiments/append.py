"""Measure what a change of 1 % of an index costs against a full build, and compare the lists; write JSON and a page.

    python experiments/append.py ../shared/data/acm_vis                     # BM25 alone
    python experiments/append.py ../shared/data/vis --encoder minilm

Three indexes of the corpus are built and changed by the command line, each command in a process of its own: all papers
(the full build); all but the last 1 %, which are then appended; the result with its first 1 % deleted, and those
appended again, which is a change of both kinds. Lists are those of `Recommender` for papers of the corpus as drafts.
Processor seconds are those of a command and its threads; they depend less on other work of the machine than wall time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.api.recommender import Recommender
from citerec.corpus.readers.source import find_source
from citerec.folder import open_index
from citerec.index.dense.library import NAME
from citerec.inputs import read_lines
from citerec.java import start_jvm
from citerec.manifest import read_manifest, write_manifest
from citerec.provenance import provenance
from citerec.sums import sha256_of
from citerec.update.index import update_index
from citerec.update.replace import UpdateConfig

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "append"
PAGE = HERE / "APPEND.md"
SHARE = 100  # one of so many papers changes
DEPTH = 100  # papers of a list that are compared
HEADS = (
    "corpus",
    "encoder",
    "papers",
    "step",
    "wall s",
    "cpu s",
    "cpu, of the full build",
    "lists with other ids",
    "largest score difference",
)
SHARED = "append, vectors of the full build"
STEPS = ("full build", "append", "append, second in a process", "delete", "append what was deleted")


def main() -> None:
    """Measure the corpora that are named, then write the page from all results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", type=Path, nargs="*", help="corpora, each with one file")
    parser.add_argument("--encoder", default="none")
    parser.add_argument(
        "--vectors",
        type=Path,
        help="an index of the corpus whose vectors are used; nothing is built",
    )
    parser.add_argument("--queries", type=int, default=100, help="drafts, drawn at random")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for corpus in options.corpora:
        with tempfile.TemporaryDirectory() as folder:
            result = measured(
                corpus, options.encoder, options.vectors, options.queries, Path(folder)
            )
        path = RESULTS / f"{corpus.name}-{options.encoder}.json"
        path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
        print(f"append: {path}", file=sys.stderr)
    PAGE.write_text(page(), encoding="utf-8")


def measured(
    corpus: Path, encoder: str, vectors: Path | None, queries: int, folder: Path
) -> dict[str, Any]:
    """Return the costs of all steps, and how the lists of the changed indexes differ from those of the full build."""
    papers, few = prepare(corpus, folder)
    full, grown = folder / "full", folder / "grown"
    costs: dict[str, dict[str, float]] = {}
    if vectors:
        command(folder / "all.jsonl", "--index", full, "--encoder", "none")
        take_vectors(full, vectors)
        shutil.copytree(full, grown)
        command("--delete", folder / "last.ids", "--index", grown)
    else:
        model = ["--encoder", encoder]
        costs["full build"] = command(folder / "all.jsonl", "--index", full, *model)
        command(folder / "most.jsonl", "--index", grown, *model)
    shutil.copytree(grown, folder / "before")
    costs["append"] = command("--append", folder / "last.jsonl", "--index", grown)
    drafts = np.random.default_rng(0).choice(papers, min(queries, papers), replace=False)
    expected = lists(full, drafts)
    differences = {"append": difference(expected, lists(grown, drafts, full))}
    gap = share_vectors(full, grown) if encoder != "none" else 0.0
    if gap:
        differences[SHARED] = difference(expected, lists(grown, drafts, full))
    costs["append, second in a process"] = warm(folder)
    costs["delete"] = command("--delete", folder / "first.ids", "--index", grown)
    costs["append what was deleted"] = command("--append", folder / "first.jsonl", "--index", grown)
    after = lists(grown, drafts, full)
    differences["append what was deleted"] = difference(expected, after)
    return {
        "corpus": corpus.name,
        "encoder": encoder,
        "papers": papers,
        "changed": few,
        "drafts": len(drafts),
        "seconds": costs,
        "lists": differences,
        "largest difference of vectors": gap,
        "provenance": provenance({"queries": queries, "depth": DEPTH}),
    }


def prepare(corpus: Path, folder: Path) -> tuple[int, int]:
    """Write all, most, the first and the last papers of a corpus; return how many there are and how many change."""
    lines = [line.rstrip(b"\n") + b"\n" for _, line in read_lines(find_source(corpus).files[0])]
    few = len(lines) // SHARE
    write(folder / "all.jsonl", lines)
    write(folder / "most.jsonl", lines[:-few])
    write(folder / "last.jsonl", lines[-few:])
    write(folder / "first.jsonl", lines[:few])
    ids = [orjson.loads(line)["id"] for line in lines[:few]]
    (folder / "first.ids").write_text("".join(f"{docid}\n" for docid in ids), encoding="utf-8")
    last = [orjson.loads(line)["id"] for line in lines[-few:]]
    (folder / "last.ids").write_text("".join(f"{docid}\n" for docid in last), encoding="utf-8")
    return len(lines), few


def take_vectors(index: Path, other: Path) -> None:
    """Give an index the vectors of another one of the same papers."""
    manifest, source = read_manifest(index), read_manifest(other)
    assert manifest.checksums["papers.arrow"] == source.checksums["papers.arrow"]
    shutil.copytree(other / "dense", index / "dense")
    settings = {**manifest.settings, **{n: source.settings[n] for n in ("encoder", "dense")}}
    sums = {n: s for n, s in source.checksums.items() if n.startswith("dense/")}
    sums = {**manifest.checksums, **sums}
    write_manifest(index, replace(manifest, settings=settings, checksums=sums))


def share_vectors(full: Path, grown: Path) -> float:
    """Give an index the vectors of the full build; return the largest difference of two numbers before.

    Models that calculate in bfloat16 round a text in one batch otherwise than in another.
    """
    one, other = open_index(full), open_index(grown)
    dim = one.manifest.settings["dense"]["dim"]
    expected = np.fromfile(one.dense / NAME, np.uint8)[-4 * dim * len(one.papers) :]
    rows = one.papers.rows_of(other.papers.ids.tolist())
    shared = expected.reshape(len(rows), -1)[rows]
    content = np.fromfile(other.dense / NAME, np.uint8)
    before = content[-shared.size :].copy().view(np.float32)
    content[-shared.size :] = shared.ravel()
    content.tofile(other.dense / NAME)
    sums = {**other.manifest.checksums, f"dense/{NAME}": sha256_of(other.dense / NAME)}
    write_manifest(grown, replace(other.manifest, checksums=sums))
    return float(np.abs(shared.ravel().view(np.float32) - before).max())


def write(path: Path, lines: Sequence[bytes]) -> None:
    """Write some records of a corpus."""
    path.write_bytes(b"".join(lines))


def command(*arguments: object) -> dict[str, float]:
    """Run `citerec index`; return its wall and its processor seconds."""
    before, started = os.times(), time.perf_counter()
    program = [Path(sys.executable).with_name("citerec"), "index", *map(str, arguments), "--quiet"]
    subprocess.run(program, check=True)
    wall, after = time.perf_counter() - started, os.times()
    children = after.children_user + after.children_system
    cpu = children - before.children_user - before.children_system
    return {"wall": round(wall, 2), "cpu": round(cpu, 2)}


def warm(folder: Path) -> dict[str, float]:
    """Append in this process for a second time, with libraries loaded and code compiled as in a service."""
    cost: dict[str, float] = {}
    for number in range(2):
        index = folder / f"warm{number}"
        shutil.copytree(folder / "before", index)
        before, started = os.times(), time.perf_counter()
        update_index(index, UpdateConfig(), corpus=folder / "last.jsonl")
        wall, after = time.perf_counter() - started, os.times()
        cpu = after.user + after.system - before.user - before.system
        cost = {"wall": round(wall, 2), "cpu": round(cpu, 2)}
    return cost


Lists = list[list[tuple[str, float]]]


def lists(index: Path, rows: Any, drafts_of: Path | None = None) -> Lists:
    """Return ids and scores of the lists of some papers as drafts; the rows are those of `drafts_of`."""
    start_jvm(None)
    papers = open_index(drafts_of or index).papers.at(rows.tolist())
    recommender = Recommender(index)
    return [
        [
            (item.paper.id, item.score)
            for item in recommender.recommend(title=one.title, abstract=one.abstract, k=DEPTH)
        ]
        for one in papers.values()
    ]


def difference(expected: Lists, found: Lists) -> dict[str, Any]:
    """Return how many lists have other ids, and the largest difference of two scores of one paper."""
    pairs = list(zip(expected, found, strict=True))
    other = sum([i for i, _ in a] != [i for i, _ in b] for a, b in pairs)
    gaps = [abs(score - dict(b)[docid]) for a, b in pairs for docid, score in a if docid in dict(b)]
    return {"other ids": other, "largest score difference": float(max(gaps, default=0.0))}


def page() -> str:
    """Return the page of all results."""
    lines = [
        "# An index that grows",
        "",
        "A change of 1 % of a corpus against a full build (`python experiments/append.py`), in wall and processor",
        "seconds. Each command is a process of its own, except for the second in a process. Lists: the best",
        f"{DEPTH} papers for papers of the corpus as drafts, against those of the full build.",
        "",
        f"| {' | '.join(HEADS)} |",
        f"|{'|'.join('---' for _ in HEADS)}|",
    ]
    notes: list[str] = []
    for path in sorted(RESULTS.glob("*.json")):
        result: dict[str, Any] = orjson.loads(path.read_bytes())
        full = result["seconds"].get("full build")
        for step in [step for step in STEPS if step in result["seconds"]]:
            seconds = result["seconds"][step]
            share = f"{seconds['cpu'] / full['cpu']:.1%}" if full else ""
            lists_of = result["lists"].get(step)
            same = ["", ""]
            if lists_of:
                gap = lists_of["largest score difference"]
                same = [f"{lists_of['other ids']} of {result['drafts']}", f"{gap:.1e}"]
            cells = [result["corpus"], result["encoder"], f"{result['papers']:,}", step]
            cells += [f"{seconds['wall']:.1f}", f"{seconds['cpu']:.1f}", share, *same]
            lines.append(f"| {' | '.join(cells)} |")
        if gap := result.get("largest difference of vectors"):
            shared = result["lists"][SHARED]
            notes.append(
                f"{result['corpus']}: the encoder calculates in bfloat16, whose rounding depends on the other texts of "
                f"a batch. Numbers of vectors differ by up to {gap:.1e} from those of the full build. With the "
                f"vectors of the full build, {shared['other ids']} of {result['drafts']} lists have other ids, "
                f"and scores differ by up to {shared['largest score difference']:.1e}."
            )
    return "\n".join([*lines, *(f"\n{note}" for note in notes)]) + "\n"


if __name__ == "__main__":
    main()
