"""citerec's indexer against Anserini's own on the same texts, each as a whole process."""

import shutil
from collections.abc import Sequence

from bench.measure import Ran, Row, log, ratio, run
from bench.work import Work, build, index_command


def measure_indexing(
    work: Work, convert: Sequence[str], anserini: Sequence[str], rounds: int
) -> list[Row]:
    """Time both indexers, turn by turn.

    citerec unpacks and checks the corpus and writes papers, graph, splits and checksums besides; Anserini
    is given plain JSONL, cut into as many files as it needs to keep its threads busy.

    Args:
        work: Where.
        convert: The command that writes the corpus for Anserini; it is not timed.
        anserini: The command that runs Anserini's indexer.
        rounds: How often each runs.
    """
    build(work)
    log("converting the corpus for Anserini")
    run(convert, log=work.log("convert"))
    ours: list[Ran] = []
    theirs: list[Ran] = []
    for number in range(1, rounds + 1):
        ours.append(run(index_command(work, work.folder / "again"), log=work.log("index")))
        shutil.rmtree(work.folder / "lucene", ignore_errors=True)
        theirs.append(run(anserini, log=work.log("anserini")))
        log(
            f"round {number}: citerec {ours[-1].seconds:.1f} s, Anserini {theirs[-1].seconds:.1f} s"
        )
    whole = "citerec index: unpack, check, papers, graph, splits, Lucene, checksums"
    bare = "Anserini's IndexCollection, plain JSONL to Lucene"
    return [
        *_pair("", "s", whole, bare, [r.seconds for r in ours], [r.seconds for r in theirs]),
        *_pair(".cpu", "s", whole, bare, [r.cpu for r in ours], [r.cpu for r in theirs]),
        *_pair(
            ".memory", "MB", whole, bare, [r.peak_mb for r in ours], [r.peak_mb for r in theirs]
        ),
    ]


def index_with_anserini(work: Work) -> None:
    """Run Anserini's indexer on the converted corpus, in this process."""
    from citerec.java import java_class

    arguments = [
        *("-collection", "JsonCollection", "-input", str(work.anserini)),
        *("-index", str(work.folder / "lucene"), "-generator", "DefaultLuceneDocumentGenerator"),
        *("-fields", "year", "-threads", str(work.threads), "-memoryBuffer", "256"),
    ]
    java_class("io.anserini.index.IndexCollection").main(arguments)


WORDS = {"": "", ".cpu": ": processor time", ".memory": ": peak memory"}


def _pair(
    suffix: str, unit: str, whole: str, bare: str, ours: list[float], theirs: list[float]
) -> tuple[Row, Row]:
    return (
        Row(
            name=f"index.citerec{suffix}",
            what=whole + WORDS[suffix],
            unit=unit,
            values=tuple(ours),
            ratio=ratio(ours, theirs),
            ratio_to=f"index.anserini{suffix}",
            goal="" if suffix else "at most 1 x Anserini",
        ),
        Row(
            name=f"index.anserini{suffix}",
            what=bare + WORDS[suffix],
            unit=unit,
            values=tuple(theirs),
        ),
    )
