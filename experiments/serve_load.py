"""Puts load on `citerec serve`, and prints a table of what came back.

    python experiments/serve_load.py --index indexes/vis --clients 32 --seconds 60
    python experiments/serve_load.py --index indexes/vis --batch-size 1        # without dynamic batching
    python experiments/serve_load.py --index /tmp/copy --swap-every 5          # a new version every 5 seconds
    python experiments/serve_load.py --index indexes/vis --clients 1 --page    # the page: its first list, and its last

Each client sends the next draft as soon as the last one was answered; the drafts are papers of the index, as titles and
abstracts. The server runs in a process of its own with the options that follow `--`. `--swap-every` changes the index:
give a copy.
"""

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from citerec.folder import open_index

API, PAGE = "/v1/recommend", "/page/recommend"
CLI = "from citerec.cli import main; main()"
COLUMNS = "clients batch requests req/s p50_ms p95_ms p99_ms first_ms statuses swaps memory_mb ready_s".split()


@dataclass
class Seen:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list[float])  # of answers with status 200
    first: list[float] = field(default_factory=list[float])  # until the page's first list
    statuses: Counter[str] = field(default_factory=Counter[str])
    memory: list[float] = field(default_factory=list[float])  # MiB, once a second


def drafts(index: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """Return papers of an index as drafts without ids, drawn at random."""
    papers = open_index(index).papers
    rows = random.Random(seed).sample(range(len(papers)), min(count, len(papers)))
    return [
        {"title": paper.title, "abstract": paper.abstract}
        for paper in papers.at(rows).values()
        if paper.title.strip()
    ]


async def client(
    http: httpx.AsyncClient, bodies: Sequence[dict[str, Any]], until: float, seen: Seen, path: str
) -> None:
    """Send one draft after the other; a client that is told to wait does so."""
    for body in bodies:
        if time.monotonic() > until:
            return
        started = time.monotonic()
        try:
            async with http.stream("POST", path, json=body) as answer:
                chunks = [time.monotonic() - started async for _ in answer.aiter_text()]
                if path == PAGE and answer.status_code == 200:
                    seen.first.append(chunks[0])
        except httpx.HTTPError as error:
            seen.statuses[type(error).__name__] += 1
            continue
        seen.statuses[str(answer.status_code)] += 1
        if answer.status_code == 200:
            seen.seconds.append(time.monotonic() - started)
        elif answer.status_code == 429:
            await asyncio.sleep(float(answer.headers.get("retry-after", "1")))


async def watch(pid: int, until: float, seen: Seen) -> None:
    """Record the server's memory once a second."""
    while time.monotonic() < until:
        text = Path(f"/proc/{pid}/status").read_text()
        kilobytes = next(line.split()[1] for line in text.splitlines() if "VmRSS" in line)
        seen.memory.append(int(kilobytes) / 1024)
        await asyncio.sleep(1)


async def swap(index: Path, every: float, until: float) -> None:
    """Put a new version of the index into place: without its last paper, then with it again by a roll-back."""
    last = index.with_suffix(".last.txt")
    papers = open_index(index).papers
    last.write_text(papers.ids_at([len(papers) - 1])[0])
    commands = [["--delete", str(last), "--keep", "1"], ["--rollback"]]
    while time.monotonic() + every < until:
        for options in commands:
            await asyncio.sleep(every)
            command = [sys.executable, "-c", CLI, "index", "--index", str(index), *options]
            process = await asyncio.create_subprocess_exec(*command, "--quiet")
            await process.wait()


async def measure(url: str, pid: int, options: argparse.Namespace) -> Seen:
    """Run all clients for the time that the options say."""
    seen = Seen()
    bodies = drafts(options.index, 2000, options.seed)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=httpx.Limits()) as http:
        await http.post(API, json=bodies[0])
        until = time.monotonic() + options.seconds
        draws = [random.Random(n).choices(bodies, k=100_000) for n in range(options.clients)]
        path = PAGE if options.page else API
        work = [client(http, own, until, seen, path) for own in draws]
        work.append(watch(pid, until, seen))
        if options.swap_every:
            work.append(swap(options.index, options.swap_every, until))
        await asyncio.gather(*work)
    return seen


def row(seen: Seen, options: argparse.Namespace, swaps: int, ready: float) -> dict[str, Any]:
    """Return one row of the table."""
    p50, p95, p99 = np.percentile(np.array(seen.seconds or [np.nan]) * 1000, [50, 95, 99])
    first_list = np.array(seen.first or [np.nan]) * 1000
    first, last = seen.memory[0], seen.memory[-1]
    return {
        "clients": options.clients,
        "batch": options.batch_size,
        "requests": sum(seen.statuses.values()),
        "req/s": round(len(seen.seconds) / options.seconds, 2),
        "p50_ms": round(p50),
        "p95_ms": round(p95),
        "p99_ms": round(p99),
        "first_ms": "/".join(f"{ms:.0f}" for ms in np.percentile(first_list, [50, 95])),
        "statuses": " ".join(f"{status}:{n}" for status, n in sorted(seen.statuses.items())),
        "swaps": swaps,
        "memory_mb": f"{first:.0f}-{max(seen.memory):.0f}, {last:.0f} at the end",
        "ready_s": round(ready, 1),
    }


def wait_until_ready(url: str, server: "subprocess.Popen[bytes]") -> float:
    """Return the seconds until the server answers."""
    started = time.monotonic()
    while server.poll() is None:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return time.monotonic() - started
        except httpx.HTTPError:
            time.sleep(0.02)
    sys.exit("the server did not start")


def main() -> None:
    """Start a server, put load on it, and print the row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--swap-every", type=float, default=0)
    parser.add_argument("--page", action="store_true", help="ask as the page does")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="append the row to this file")
    parser.add_argument("server", nargs="*", help="options of citerec serve, after --")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", CLI, "serve", "--index", str(options.index), "--quiet"]
    command += ["--port", str(port), "--batch-size", str(options.batch_size), "--no-socket"]
    with subprocess.Popen([*command, *options.server]) as server:
        try:
            ready = wait_until_ready(url, server)
            seen = asyncio.run(measure(url, server.pid, options))
            swaps = httpx.get(f"{url}/v1/index").json()["indexes"][0]["swaps"]
        finally:
            server.send_signal(signal.SIGTERM)
    found = row(seen, options, swaps, ready)
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    print("| " + " | ".join(str(found[name]) for name in COLUMNS) + " |")
    if options.json:
        with options.json.open("a") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
