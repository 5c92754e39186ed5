"""Harms each file of an index or a model in turn, opens it and recommends, in a process of its own.

Writes one line of JSON for each harm: the file, the harm, and what came of it: "same", "other" or the error.
Arguments: the index; "plain", or "sealed" for checksums that fit; how many harms; the files to harm (all by default).
"""

import json
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from citerec.config import RecommendConfig
from citerec.errors import CiterecError
from citerec.folder import open_index
from citerec.manifest import NAME, seal_model
from citerec.recommend import BatchRecommender
from citerec.types import Query
from support.sealing import reseal

DRAFT = Query(id="draft", title="Neural networks for the recommendation of citations", year=2019)


def recommended(index: Path, few: bool) -> list[tuple[str, float]]:
    """Recommend for the draft; `few` leaves torch out."""
    recommender = BatchRecommender(open_index(index), RecommendConfig(k=10, few_queries=few))
    [found] = recommender.recommend([DRAFT], explain=True)
    return [(item.paper.id, round(item.score, 6)) for item in found]


def harms(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what may become of a file."""
    middle = len(content) // 2
    yield (
        "middle flipped",
        content[:middle] + bytes([content[middle] ^ 0x40]) + content[middle + 1 :],
    )
    yield "cut off", content[:middle]
    yield "end flipped", content[:-1] + bytes([content[-1] ^ 0x01])
    yield "zeroed", bytes(len(content))
    yield "full of ones", content[:middle] + b"\xff" * (len(content) - middle)
    yield "empty", b""


def outcome(index: Path, expected: object, few: bool) -> str:
    try:
        return "same" if recommended(index, few) == expected else "other"
    except CiterecError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"!{type(error).__name__}: {error}"


def told(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(index: Path, how: str, most: str, *names: str) -> None:
    few = bool(names)  # none of them is read by torch
    expected, kept = recommended(index, few), index.with_name("kept")
    shutil.copytree(index, kept)
    files = [f for f in sorted(index.rglob("*")) if f.is_file() and f.stat().st_size]
    for file in files:
        name = file.relative_to(index).as_posix()
        if (names and name not in names) or (
            how == "sealed" and file.name in {NAME, "checksums.json"}
        ):
            continue
        content = file.read_bytes()
        for harm, harmed in islice(harms(content), int(most)):
            told(json.dumps([name, harm]) + " ")  # is the last word of a crash
            file.write_bytes(harmed)
            if how == "sealed":
                reseal(index)
                for model in (index / "models").glob("*"):
                    seal_model(model)
            told(json.dumps(outcome(index, expected, few)) + "\n")
            shutil.rmtree(index)
            shutil.copytree(kept, index)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
