"""Holds the test papers of one dataset out of the training on another: drops the train queries of the same papers.

Two titles are of the same paper if the Jaccard similarity of their word sets is 0.7 or more. The join is exact. If the
words of all titles are ordered by frequency, rarest first, two sets with that similarity share one of the first
n - ceil(0.7 n) + 1 of their n words. So a title is compared only with titles that share one of these rarest words.

Sources: the rule is that of Nogueira et al. 2020, section 4.1; the join of Bayardo et al., WWW 2007,
https://doi.org/10.1145/1242572.1242591.

The reranker paper trains on Open Research for DBLP and PubMed in this way (section 4.1). Held out are the dev and test
queries of a dataset, matched by title, since ids differ between datasets. SciDocs has no queries; all its papers are
held out, matched by title or id, which it shares with Open Research (both are of Semantic Scholar).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.readers import detect_format, find_source, read_papers
from citerec.errors import BadInputError, ConfigError
from citerec.files.atomic import replacing
from citerec.index.splits import FOLDER as SPLITS_FOLDER
from citerec.index.splits import read_ids
from citerec.lab.datasets.fetch import DatasetRecord, read_record, write_record
from citerec.lab.datasets.public import DatasetError
from citerec.lab.scidocs.layout import METADATA, read_json
from citerec.types import Paper, Progress

THRESHOLD = 0.7
MIN_WORDS = 2  # a title of one word, such as "Editorial", does not identify a paper
BATCH = 20_000  # titles looked up at once
PAIRS = 2_000_000  # pairs compared at once, which bounds the memory
ROUNDING = 1e-9  # tolerance: 0.7 * 10 may exceed 7

Ints = npt.NDArray[np.int64]

_special = re.compile(r"[^\w\s]|_")


def words(title: str) -> frozenset[str]:
    """Return the distinct words of a title, without case and special characters; "pre-training" is one word."""
    return frozenset(_special.sub("", title.casefold()).split())


def same_titles(
    titles: Iterable[str],
    against: Sequence[str],
    *,
    threshold: float = THRESHOLD,
    min_words: int = MIN_WORDS,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a title and one of `against` that are of the same paper, as places, rising.

    The titles are streamed and may exceed the memory; `against` is kept as word sets.

    Args:
        titles: Any number.
        against: The titles to compare with.
        threshold: Least Jaccard similarity of equal titles, in (0, 1].
        min_words: Titles with fewer words match none.
        progress: Receives the number of compared titles.

    Raises:
        ConfigError: If the threshold is outside (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold must lie in (0, 1], got {threshold}")
    title_index = _TitleIndex(against, threshold, max(min_words, 1))
    rest = iter(titles)
    first = 0
    while batch := list(islice(rest, BATCH)):
        for x, y in title_index.same_as(batch):
            yield first + x, y
        first += len(batch)
        progress(first)


class _TitleIndex:
    """An inverted index of the rarest words of titles."""

    def __init__(self, titles: Sequence[str], threshold: float, min_words: int) -> None:
        self._threshold = threshold
        self._min_words = min_words
        sets = [words(title) for title in titles]
        counts = Counter(word for words in sets for word in words)
        order = sorted(counts, key=lambda word: (counts[word], word))
        self._number = {word: number for number, word in enumerate(order)}
        numbered = [sorted(map(self._number.__getitem__, words)) for words in sets]
        self._lengths = np.array([len(numbers) for numbers in numbered], np.int64)
        self._words = _matrix(numbered, len(order))
        firsts = _RarestWords(
            numbered, [self._prefix_length(len(numbers)) for numbers in numbered]
        )
        by_number = np.argsort(firsts.numbers, kind="stable")
        self._rows = firsts.rows[by_number]
        self._left = firsts.left[by_number]
        frequencies = np.bincount(firsts.numbers, minlength=len(order))
        # of each word among the rows
        self._starts = np.concatenate([[0], np.cumsum(frequencies)])

    def same_as(self, titles: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the pairs of a title and an indexed title that are the same, rising."""
        places = list[int]()
        lengths = list[int]()
        rare = list[int]()
        numbered = list[list[int]]()
        for place, title in enumerate(titles):
            distinct = words(title)
            known_words = [
                number
                for word in distinct
                if (number := self._number.get(word)) is not None
            ]
            # Words that no indexed title has count as the rarest.
            first = self._prefix_length(len(distinct)) - (
                len(distinct) - len(known_words)
            )
            if first > 0:
                places.append(place)
                lengths.append(len(distinct))
                rare.append(first)
                numbered.append(sorted(known_words))
        matrix = _matrix(numbered, len(self._number))
        for x, y in self._alike(
            _RarestWords(numbered, rare), np.array(lengths, np.int64), matrix
        ):
            yield places[x], y

    def _prefix_length(self, length: int) -> int:
        """Return the number of rarest words of a title, one of which an equal title must share."""
        if length < self._min_words:
            return 0
        return length - ceil(self._threshold * length - ROUNDING) + 1

    def _alike(
        self, firsts: "_RarestWords", lengths: Ints, matrix: Any
    ) -> Iterator[tuple[int, int]]:
        """Yield the equal pairs, comparing about `PAIRS` of them at once."""
        counts = self._starts[firsts.numbers + 1] - self._starts[firsts.numbers]
        behind = np.cumsum(np.bincount(firsts.rows, counts, minlength=len(lengths)))
        slices = (behind // PAIRS)[firsts.rows]  # all pairs of a title are in one slice
        for part in np.unique(slices):
            xs, ys = self._candidates(
                firsts, np.flatnonzero(slices == part), counts, lengths
            )
            common = matrix[xs].multiply(self._words[ys]).sum(axis=1)
            alike = (
                common / (lengths[xs] + self._lengths[ys] - common) >= self._threshold
            )
            yield from zip(xs[alike].tolist(), ys[alike].tolist(), strict=True)

    def _candidates(
        self, firsts: "_RarestWords", entries: Ints, counts: Ints, lengths: Ints
    ) -> tuple[Ints, Ints]:
        """Return pairs that share a rarest word and can reach the threshold, without duplicates, rising."""
        entry = np.repeat(entries, counts[entries])
        steps = np.arange(len(entry)) - np.repeat(
            np.cumsum(counts[entries]) - counts[entries], counts[entries]
        )
        posting = self._starts[firsts.numbers[entry]] + steps
        xs = firsts.rows[entry]
        ys = self._rows[posting]
        # words that can be common
        most = np.minimum(firsts.left[entry], self._left[posting])
        least = (lengths[xs] + self._lengths[ys]) * (
            self._threshold / (1 + self._threshold)
        )
        fits = most >= least - ROUNDING
        keys = np.sort(xs[fits] * len(self._lengths) + ys[fits])
        keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique is six times slower here
        return keys // len(self._lengths), keys % len(self._lengths)


class _RarestWords:
    """The rarest words of titles: the number of each word, its title, and the words that follow, including itself."""

    def __init__(self, numbered: list[list[int]], rare: list[int]) -> None:
        self.rows = np.repeat(np.arange(len(rare)), rare)  # rises
        self.numbers = _flat(
            numbers[:n] for numbers, n in zip(numbered, rare, strict=True)
        )
        self.left = _flat(
            range(len(numbers), len(numbers) - n, -1)
            for numbers, n in zip(numbered, rare, strict=True)
        )


def _flat(lists: Iterable[Iterable[int]]) -> Ints:
    return np.fromiter(chain.from_iterable(lists), np.int64)


def _matrix(numbered: list[list[int]], columns: int) -> Any:
    """Return the words of each title as a sparse matrix, shape (titles, columns)."""
    from scipy.sparse import csr_array

    ends = np.cumsum([0, *map(len, numbered)])
    numbers = _flat(numbered)
    return csr_array(
        (np.ones(len(numbers), np.int32), numbers, ends), (len(numbered), columns)
    )


TRAIN = "train.ids"
HELD_OUT = ("dev.ids", "test.ids")
SCIDOCS = "scidocs"


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Papers that may not be train queries."""

    titles: list[str]
    ids: Set[str] = frozenset()  # if both datasets use the same ids


def drop_train_queries(folder: Path, other: Path, progress: Progress) -> int:
    """Drop the train queries of a dataset that are held-out papers of another.

    The papers stay in the corpus and can still be cited. A second call drops nothing more. The dropped ids are in
    `splits/without_<other>.ids`, which is written first, so that their number is right after an interruption.

    Args:
        folder: A fetched dataset; its `splits/train.ids` is rewritten.
        other: The fetched dataset with the held-out papers.
        progress: Receives the number of compared titles.

    Returns:
        The number of dropped queries.

    Raises:
        DatasetError: If a dataset was not fetched, or has no splits.
        BadInputError: If a file of a dataset cannot be read.
        ConfigError: If both are the same folder.
    """
    if folder.resolve() == other.resolve():
        raise ConfigError(
            f"{folder} cannot be held out of itself; choose another dataset"
        )
    record = _with_splits(folder)
    name = fetched(other).dataset
    held_out = _scidocs_papers(other) if name == SCIDOCS else _queries(other)
    same = (
        _same_as(folder, held_out.titles, record.counts.get("papers", 0), progress)
        | held_out.ids
    )
    train = folder / SPLITS_FOLDER / TRAIN
    dropped = folder / SPLITS_FOLDER / f"without_{name}.ids"
    before = read_ids(dropped) if dropped.is_file() else []
    queries = read_ids(train)
    newly_dropped = [docid for docid in queries if docid in same]
    all_dropped = list(dict.fromkeys([*before, *newly_dropped]))
    _write_ids(dropped, all_dropped)
    _write_ids(train, [docid for docid in queries if docid not in same])
    write_record(
        folder, replace(record, without={**record.without, name: len(all_dropped)})
    )
    return len(newly_dropped)


def fetched(other: Path) -> DatasetRecord:
    """Return the record of a fetched dataset with papers that can be held out.

    Raises:
        DatasetError: If it is none.
    """
    record = read_record(other)
    if record is not None and record.dataset == SCIDOCS:
        return record
    return _with_splits(other)


def _with_splits(folder: Path) -> DatasetRecord:
    record = read_record(folder)
    if record is None or not (folder / SPLITS_FOLDER / TRAIN).is_file():
        raise DatasetError(
            f"{folder} contains no dataset with splits; fetch it: citerec datasets fetch {folder.name}"
        )
    return record


def _queries(other: Path) -> _HeldOut:
    query_ids = {
        docid for name in HELD_OUT for docid in read_ids(other / SPLITS_FOLDER / name)
    }
    return _HeldOut([paper.title for paper in _papers(other) if paper.id in query_ids])


def _scidocs_papers(other: Path) -> _HeldOut:
    """Read the ids and titles of all papers of SciDocs; one file in memory at a time."""
    titles = dict[str, str]()
    for name in METADATA:
        records = read_json(other / name)
        titles |= {
            paper: _title(other / name, paper, raw) for paper, raw in records.items()
        }
    return _HeldOut(list(dict.fromkeys(titles.values())), frozenset(titles))


def _title(path: Path, paper: str, raw: Any) -> str:
    title = raw.get("title") or "" if isinstance(raw, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(title, str):
        raise BadInputError(path, f"the title of paper {paper!r} is no text")
    return title


def _same_as(
    folder: Path, against: list[str], papers: int, progress: Progress
) -> set[str]:
    """Return the ids of the papers whose title equals one of `against`."""
    # `ids` are those of the current batch
    same = set[str]()
    ids = list[str]()
    first = 0

    def titles() -> Iterator[str]:
        for paper in _papers(folder):
            ids.append(paper.id)
            yield paper.title

    def compared(done: int) -> None:
        nonlocal first
        first = done
        ids.clear()
        progress("titles", done, papers)

    for place, _ in same_titles(titles(), against, progress=compared):
        same.add(ids[place - first])
    return same


def _papers(folder: Path) -> Iterator[Paper]:
    source = find_source(folder)
    for located in read_papers(source, detect_format(source)):
        if isinstance(located.paper, Paper):
            yield located.paper


def _write_ids(file: Path, ids: list[str]) -> None:
    """Write a file of ids, whole or not at all."""
    with replacing(file) as temporary:
        temporary.write_text("".join(f"{docid}\n" for docid in ids), encoding="utf-8")
