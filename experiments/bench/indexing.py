"""citerec's indexer against Anserini's own on the same texts, each as a whole process."""

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.measure import Ran, Row, log, ratio, run
from bench.work import Work, build, index_command

if TYPE_CHECKING:
    pass


LUCENE = "lucene"  # the folder of the index that Anserini writes


def measure_indexing(
    work: Work,
    convert: Sequence[str],
    anserini: Sequence[str],
    rounds: int,
) -> list[Row]:
    """Time the indexers, turn by turn.

    Anserini is given plain JSONL, cut into as many files as it needs to keep its threads busy. citerec is timed as a
    user runs it: it unpacks and checks the corpus and writes papers, graph, splits, postings and checksums besides.

    Args:
        work: Where.
        convert: The command that writes the corpus for Anserini; it is not timed.
        anserini: The command that runs Anserini's indexer.
        rounds: How often each runs.
    """
    build(work)
    log("converting the corpus for Anserini")
    run(convert, log=work.log("convert"))
    commands = {
        "citerec": index_command(work, work.folder / "again"),
        "anserini": anserini,
    }
    ran: dict[str, list[Ran]] = {name: [] for name in commands}
    for number in range(1, rounds + 1):
        for name, command in commands.items():
            shutil.rmtree(work.folder / LUCENE, ignore_errors=True)
            ran[name].append(run(command, log=work.log(f"index-{name}")))
        seconds = ", ".join(
            f"{name} {of[-1].seconds:.1f} s" for name, of in ran.items()
        )
        log(f"round {number}: {seconds}")
    return [
        *_rows(
            "", "s", {name: [one.seconds for one in of] for name, of in ran.items()}
        ),
        *_rows(
            ".cpu", "s", {name: [one.cpu for one in of] for name, of in ran.items()}
        ),
        *_rows(
            ".memory",
            "MB",
            {name: [one.peak_mb for one in of] for name, of in ran.items()},
        ),
    ]


def index_with_anserini(work: Work) -> None:
    """Run Anserini's indexer on the converted corpus, in this process."""
    from citerec.index.java import java_class

    arguments = [
        *("-collection", "JsonCollection", "-input", str(work.anserini)),
        *(
            "-index",
            str(work.folder / LUCENE),
            "-generator",
            "DefaultLuceneDocumentGenerator",
        ),
        *("-fields", "year", "-threads", str(work.threads), "-memoryBuffer", "256"),
    ]
    java_class("io.anserini.index.IndexCollection").main(arguments)


WORDS = {"": "", ".cpu": ": processor time", ".memory": ": peak memory"}
WHAT = {
    "citerec": "citerec index: unpack, check, papers, graph, splits, Lucene, postings, checksums",
    "anserini": "Anserini's IndexCollection, plain JSONL to Lucene",
}
GOALS = {
    "citerec": "at most 1.7 x Anserini",
}


def _rows(suffix: str, unit: str, values: dict[str, list[float]]) -> Iterator[Row]:
    """Yield a row for each indexer; those of citerec have the ratio to Anserini."""
    for name, of in values.items():
        ours = name in GOALS
        yield Row(
            name=f"index.{name}{suffix}",
            what=WHAT[name] + WORDS[suffix],
            unit=unit,
            values=tuple(of),
            ratio=ratio(of, values["anserini"]) if ours else None,
            ratio_to=f"index.anserini{suffix}" if ours else "",
            goal=GOALS[name] if ours and not suffix else "",
        )
