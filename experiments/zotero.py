"""Time a Zotero of thousands of items as a library: the first time, with ten new items, with nothing new.

    python experiments/zotero.py ../shared/data/ecology --items 5000

The Zotero is the local server of the tests, which answers as its local API does; its items are papers of a corpus,
with their abstracts. Each time is that of a whole command. The figures are printed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from citerec.build.corpora import open_corpus
from citerec.collect import zotero as client
from citerec.corpus.collector import RecordCounter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
LATER = 10  # items that come after the first time


def main() -> None:
    """Fill the library, add it, and follow it."""
    from support.zotero_server import zotero  # pyright: ignore[reportMissingImports]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="its first papers become items")
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--encoder", default="minilm", help="none: without vectors")
    options = parser.parse_args()
    corpus = open_corpus(options.corpus).papers(RecordCounter(skip_bad=False))
    papers = list(islice(corpus, options.items + LATER))
    with zotero() as (server, address), tempfile.TemporaryDirectory() as folder:

        def add(start: int, stop: int | None) -> None:
            for number, paper in enumerate(papers[start:stop], start):
                server.library.add(
                    f"ITEM{number:04}",
                    title=paper.title,
                    abstractNote=paper.abstract,
                    date=str(paper.year or ""),
                )
            server.library.sync()

        def timed(what: str, *command: str) -> None:
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "citerec", "library", *command],
                cwd=folder,
                env=os.environ | {client.VARIABLE: address},
                check=True,
                capture_output=True,
                text=True,
            )
            line = (done.stdout or done.stderr).strip().splitlines()[-1]
            print(f"{what}: {time.perf_counter() - start:.1f} s ({line})", flush=True)

        add(0, -LATER)
        timed("the first time", "add", "zotero", "--encoder", options.encoder)
        add(len(papers) - LATER, None)
        timed(f"{LATER} new", "update")
        timed("nothing new", "update")


if __name__ == "__main__":
    main()
