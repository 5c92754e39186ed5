"""Lets each write of each command fail once, and kills it there; damages each file: what is lost, left, or not found?

    python experiments/faults --write
    python experiments/faults --only "recommend --append" --draw 2

Each call that a command makes to write or map a file under the folders that it owns is counted (`trap.py`). A run is
repeated with one of them failing, or killed there; then the old or the new state must be complete, and the next run
must succeed and leave no other file than an undisturbed one. All calls take two cores about two hours; with `--draw`
or `--minutes` some are drawn. `--write` replaces the rows of what was tried in the report, FAULTS.md.
"""

import argparse
import errno
import math
import os
import platform
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))
import commands  # noqa: E402
import damage  # noqa: E402
import work  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402
from trap import missing  # noqa: E402

from citerec.encode.machine import about_cpu, processor, provenance  # noqa: E402

PAGE = HERE.parent / "FAULTS.md"
ERRORS = (errno.ENOSPC, errno.EIO)  # alternate; of mmap ENOMEM
KINDS = ("ENOSPC", "EIO", "ENOMEM", "kill")
LIGHT = "citerec.cli citerec.build.index citerec.recommend citerec.lab.experiment.run httpx numba scipy pyarrow"
HEAVY = (
    f"{LIGHT} torch torch.onnx onnx onnxruntime.transformers.optimizer transformers sentence_transformers datasets "
    "accelerate lightgbm ranx citerec.train.all"
)
ENVIRONMENT = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")} | {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "no_proxy": "127.0.0.1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of commands")
    parser.add_argument(
        "--minutes",
        type=float,
        default=0,
        help="for failing calls, and for damage; 0 for all",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--draw", type=int, default=0, help="calls of each command, and files; 0: all"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--damage", choices=["yes", "no", "only"], default="yes")
    parser.add_argument("--write", action="store_true", help="write FAULTS.md")
    options = parser.parse_args()
    if why := missing():
        sys.exit(f"skipped: {why}")
    os.environ |= ENVIRONMENT
    folder = Path(tempfile.mkdtemp(prefix="citerec-faults-"))
    try:
        tables, bad = tried(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(tables)
    if options.write:
        PAGE.write_text(
            filled(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8"
        )
    sys.exit(1 if bad else 0)


def tried(folder: Path, options: argparse.Namespace) -> tuple[str, int]:
    """Try all, and print what is wrong; return the tables, and how often something was."""
    from support.corpora import SAMPLE  # pyright: ignore[reportMissingImports]
    from support.scholar_server import papers_of, serving  # pyright: ignore[reportMissingImports]

    names = options.only or list(commands.COMMANDS)
    lines = " ".join(commands.COMMANDS[name].arguments for name in names)
    needs_models = "{" in lines or "plan.toml" in lines
    embedded = needs_models or options.damage != "no"
    spawned, modules = get_context("spawn"), HEAVY if embedded else LIGHT
    papers = [{**paper, "doi": f"10.5555/{paper['id']}"} for paper in papers_of(SAMPLE)]
    results: list[tuple[str, int]] = []
    with serving(papers) as service:
        os.environ["S2_URL"] = service.url
        with spawned.Pool(1) as pool:
            pool.apply(commands.prepare, (folder,), {"embedded": embedded})
        if options.damage != "only":
            with spawned.Pool(options.jobs, work.start, (folder, modules)) as pool:
                results.append(try_faults(pool, names, options))
    if options.damage != "no":
        with spawned.Pool(options.jobs, work.start, (folder, LIGHT)) as pool:
            results.append(try_damage(pool, options))
    return "\n\n".join(table for table, _ in results), sum(bad for _, bad in results)


def try_faults(
    pool: Any, names: list[str], options: argparse.Namespace
) -> tuple[str, int]:
    rng, cases = (
        random.Random(options.seed),
        list[tuple[str, commands.Facts, int, int]](),
    )
    wholes = dict(zip(names, pool.map(work.undisturbed, names, 1), strict=True))
    for name, (calls, whole) in wholes.items():
        most = options.draw or len(calls)
        for n, at in enumerate(
            sorted(rng.sample(range(len(calls)), min(most, len(calls))))
        ):
            error = errno.ENOMEM if calls[at] == "mmap" else ERRORS[n % 2]
            cases += [(name, whole, at + 1, error), (name, whole, at + 1, 0)]
    rng.shuffle(cases)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, at, error, made, wrong in in_time(
        pool.imap_unordered(work.disturbed, cases), len(cases), options
    ):
        kind = errno.errorcode[error] if error else "kill"
        counts[name] += Counter(
            {kind: 1, f"{kind}, survived": not wrong, "wrong": bool(wrong)}
        )
        counts[name]["left"] += any(one.startswith("left") for one in wrong)
        if wrong:
            print(f"{name}, call {at} ({made}), {kind}: {'; '.join(wrong)}", flush=True)
    lines = [
        f"| command | its calls | {' | '.join(KINDS)} | left behind |",
        f"|{'---|' * 7}",
    ]
    for name, (calls, _) in wholes.items():
        made = ", ".join(f"{call} {n:,}" for call, n in Counter(calls).most_common(4))
        cells = [
            f"{counts[name][f'{kind}, survived']} of {counts[name][kind]}"
            for kind in KINDS
        ]
        left = counts[name]["left"]
        lines.append(
            f"| `{name}` | {len(calls):,}: {made} | {' | '.join(cells)} | {left} |"
        )
    return "\n".join(lines), sum(count["wrong"] for count in counts.values())


def try_damage(pool: Any, options: argparse.Namespace) -> tuple[str, int]:
    files, answer = pool.apply(work.prepare_models)
    cases = [
        (file, kind, answer, options.seed) for file in files for kind in damage.KINDS
    ]
    rng, most = random.Random(options.seed), 0
    rng.shuffle(cases)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    del cases[options.draw or len(cases) :]
    results = pool.imap_unordered(work.damaged, cases)
    for file, kind, changed, wrong, memory in in_time(results, len(cases), options):
        parts = Path(file).parts[1:-1]  # of idx/models/ranker/full.txt: models, ranker
        part = (
            "/".join(parts[: 1 + (parts[:1] == ("models",))])
            or "manifest.json and others"
        )
        part = f"cache: {parts[1]}" if file.startswith("cache") else part
        counts[part] += Counter(
            {kind: changed, f"{kind}, found": changed and not wrong}
        )
        counts[part]["wrong"] += bool(wrong)
        most = max(most, memory)
        if wrong:
            print(f"{file}, {kind}: {'; '.join(wrong)}", flush=True)
    lines = [
        f"| files of | {' | '.join(damage.KINDS)} |",
        f"|{'---|' * (1 + len(damage.KINDS))}",
    ]
    for part, count in sorted(counts.items()):
        cells = [f"{count[f'{kind}, found']} of {count[kind]}" for kind in damage.KINDS]
        lines.append(f"| {part} | {' | '.join(cells)} |")
    lines.append(
        f"| most memory of a process: {most / 2**20:,.0f} MiB |{' |' * len(damage.KINDS)}"
    )
    return "\n".join(lines), sum(count["wrong"] for count in counts.values())


def in_time(
    results: Iterable[Any], total: int, options: argparse.Namespace
) -> Iterator[Any]:
    """Yield results until the time, if it is limited, is over."""
    end = monotonic() + (options.minutes * 60 or math.inf)
    for result in track(results, "cases", total, console=Console(stderr=True)):
        yield result
        if monotonic() > end:
            return


def filled(page: str, tables: str) -> str:
    """Return the report with the rows of what was tried in place of those before; the last line is of this machine."""

    def name(row: str) -> str:
        return row.split("|")[1].partition(":")[0]

    rows = {name(line): line for line in tables.splitlines() if line.startswith("| ")}
    lines = [
        rows.pop(name(line), line) if line.startswith("| ") else line
        for line in page.splitlines()[:-1]
    ]
    assert not rows, f"no row of {PAGE.name} is of {', '.join(rows)}"
    made = provenance({})
    versions = ", ".join(
        f"{name} {version}" for name, version in made["versions"].items() if version
    )
    machine = f"{processor(about_cpu())[0]}, {os.cpu_count()} cores, Linux {platform.release()}; {versions}"
    return "\n".join([*lines, machine, ""])


if __name__ == "__main__":
    main()
