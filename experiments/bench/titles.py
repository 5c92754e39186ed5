"""Which of a million titles are of the same paper as one of 100,000: citerec's exact join, and MinHash.

The titles are those of the corpora beside the project, the same with a few words changed, and words drawn at random;
they lie in the folder of the measurement and nowhere else.
"""

import gzip
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.measure import Ran, Row, SkippedError, log, run
from bench.work import Work

TITLES, AGAINST = 1_000_000, 100_000
CHANGED = 0.25  # share of the titles that are one of the 100,000 with words changed
SAMPLE = 400  # titles whose pairs are sought by brute force, too
THRESHOLD = 0.7
BANDS, BAND_ROWS = 20, 4  # a pair of similarity 0.7 is found with a chance of 0.996
Pair = tuple[int, int]


def measure_titles(work: Work, steps: Sequence[Sequence[str]], data: Path) -> list[Row]:
    """Time both, each as a process of its own that reads the titles and writes the pairs.

    Args:
        work: Where.
        steps: The commands that run them, in the order of `STEPS`.
        data: The folder of the corpora whose titles are taken.
    """
    log("writing titles")
    real = [title for corpus in sorted(data.glob("*/corpus.jsonl.gz")) for title in _titles(corpus)]
    if not real:
        raise SkippedError(f"no corpora in {data}")
    _write(work, *_made(real, random.Random(0)))
    ran: dict[str, Ran] = {}
    for name, step in zip(STEPS, steps, strict=True):
        ran[name] = run(step, log=work.log(name))
        log(f"{name}: {ran[name].seconds:.1f} s")
    truth = set(_by_brute_force(*_read(work)))
    asked = set(_sample())
    what = f"{TITLES:,} titles ({len(real):,} real) against {AGAINST:,}"
    rows: list[Row] = []
    for name, label in LABELS.items():
        pairs = {(x, y) for x, y in orjson.loads(_pairs(work, name).read_bytes()) if x in asked}
        right = len(pairs & truth) / len(truth)
        wrong = f"{len(pairs - truth)} wrong"
        rows += _rows(name.replace("-", "."), f"{label}: {what}", ran[name], right, wrong)
    return rows


def find_exactly(work: Work) -> None:
    """Find the pairs by citerec."""
    from citerec.lab.datasets.without import same_titles

    titles, against = _read(work)
    _pairs(work, "titles-exact").write_bytes(orjson.dumps(list(same_titles(titles, against))))


def find_by_minhash(work: Work) -> None:
    """Find the pairs by datasketch's MinHash, banded, and check each exactly."""
    from datasketch import MinHash, MinHashLSH  # pyright: ignore[reportMissingImports]

    from citerec.lab.datasets.without import words

    titles, against = _read(work)
    known = [words(title) for title in against]
    bands = MinHashLSH(num_perm=BANDS * BAND_ROWS, params=(BANDS, BAND_ROWS))

    def hashed(sets: Iterable[frozenset[str]]) -> Iterator[Any]:
        encoded = ([word.encode() for word in one] for one in sets)
        return MinHash.generator(encoded, num_perm=BANDS * BAND_ROWS)

    with bands.insertion_session() as session:
        for place, one in enumerate(hashed(known)):
            if len(known[place]) > 1:
                session.insert(place, one, check_duplication=False)
    pairs: list[Pair] = []
    for place, one in enumerate(hashed(map(words, titles))):
        distinct = words(titles[place])
        if len(distinct) > 1:
            near: list[Any] = bands.query(one)  # the places that were inserted
            found = sorted(y for y in near if _alike(distinct, known[y]))
            pairs += ((place, y) for y in found)
    _pairs(work, "titles-minhash").write_bytes(orjson.dumps(pairs))


STEPS: dict[str, Callable[[Work], None]] = {
    "titles-exact": find_exactly,
    "titles-minhash": find_by_minhash,
}
LABELS = {
    "titles-exact": "citerec's exact join",
    "titles-minhash": f"datasketch's MinHash, {BANDS} bands of {BAND_ROWS}, then exact",
}


def _rows(name: str, what: str, ran: Ran, recall: float, wrong: str) -> list[Row]:
    return [
        Row(name=name, what=what, unit="s", values=(ran.seconds,)),
        Row(name=f"{name}.cpu", what="processor time", unit="s", values=(ran.cpu,)),
        Row(name=f"{name}.memory", what="peak memory", unit="MB", values=(ran.peak_mb,)),
        Row(
            name=f"{name}.recall",
            what=f"pairs found of those that brute force finds for {SAMPLE} titles; {wrong}",
            unit="",
            values=(recall,),
            goal="at least 0.99",
        ),
    ]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    common = len(one & other)
    return common / (len(one) + len(other) - common) >= THRESHOLD


def _sample() -> list[int]:
    return random.Random(1).sample(range(TITLES), SAMPLE)


def _by_brute_force(titles: Sequence[str], against: Sequence[str]) -> Iterator[Pair]:
    from citerec.lab.datasets.without import words

    known = [(y, found) for y, title in enumerate(against) if len(found := words(title)) > 1]
    for x in _sample():
        distinct = words(titles[x])
        if len(distinct) > 1:
            yield from ((x, y) for y, other in known if _alike(distinct, other))


def _made(real: list[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Return the titles and those they are compared with."""
    bag = [word for title in real for word in title.split()]
    lengths = [len(title.split()) for title in real]

    def drawn() -> str:
        return " ".join(rng.choices(bag, k=rng.choice(lengths)))

    against = rng.sample(real, min(AGAINST * 4 // 5, len(real)))
    against += [drawn() for _ in range(AGAINST - len(against))]
    titles = [
        *real,
        *(_changed(rng.choice(against), bag, rng) for _ in range(int(TITLES * CHANGED))),
    ]
    titles += [drawn() for _ in range(TITLES - len(titles))]
    rng.shuffle(titles)
    return titles, against


def _changed(title: str, bag: list[str], rng: random.Random) -> str:
    """Drop, add or replace one to three words."""
    parts = title.split()
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        place = rng.randrange(len(parts) + 1)
        parts[place : place + rng.randrange(2)] = rng.sample(bag, rng.randrange(2))
    return " ".join(parts)


def _titles(corpus: Path) -> list[str]:
    with gzip.open(corpus) as lines:
        return [orjson.loads(line)["title"] for line in lines]


def _write(work: Work, titles: list[str], against: list[str]) -> None:
    (work.folder / "titles.json").write_bytes(orjson.dumps([titles, against]))


def _read(work: Work) -> tuple[list[str], list[str]]:
    titles, against = orjson.loads((work.folder / "titles.json").read_bytes())
    return titles, against


def _pairs(work: Work, name: str) -> Path:
    return work.folder / f"{name}.pairs.json"
