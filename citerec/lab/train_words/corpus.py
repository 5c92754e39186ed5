"""The training texts of word-vector encoders: papers that are neither dev nor test queries."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.corpus.queries import open_queries
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.lab.words.tokens import counted, words_of
from citerec.rules.held_out import held_out_rows
from citerec.rules.known import citing_before
from citerec.text import EncoderForm, encoder_text
from citerec.train.data import TrainingData, load_training_data
from citerec.train.joined import parts_of
from citerec.types import Paper

BLOCK = 4096  # papers read at once


@dataclass(frozen=True)
class TrainTexts:
    """The training papers of an index, and the citations between them."""

    data: TrainingData

    @classmethod
    def of(cls, index: IndexFolder) -> "TrainTexts":
        """Load the training data of an index.

        Raises:
            ConfigError: If there is nothing to train on.
        """
        return cls(load_training_data(index))

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The papers, rising."""
        return np.flatnonzero(self.data.pool)

    def papers(self) -> Iterator[Paper]:
        """Yield the papers, by row."""
        rows = self.rows.tolist()
        for first in range(0, len(rows), BLOCK):
            yield from self.data.index.papers.at(rows[first : first + BLOCK]).values()

    def texts(self) -> Iterator[str]:
        """Yield title and abstract of each paper as one text."""
        for paper in self.papers():
            yield encoder_text(paper, EncoderForm.TITLE_ABSTRACT, " ")

    @cached_property
    def cut(self) -> list[list[str]]:
        """The words of each paper."""
        return [words_of(text) for text in self.texts()]

    def vocabulary(self, min_df: int, max_df: float) -> tuple[str, ...]:
        """Return the vocabulary in alphabetical order, without English stop words.

        Args:
            min_df: Least number of papers with a word.
            max_df: Largest share of the papers with a word.

        Raises:
            ConfigError: If no word is left.
        """
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        in_papers = Counter(word for words in self.cut for word in set(words))
        most = max_df * len(self.cut)
        frequent = (word for word, count in in_papers.items() if min_df <= count <= most)
        words = tuple(sorted(word for word in frequent if word not in ENGLISH_STOP_WORDS))
        if not words:
            raise ConfigError(
                f"no word is in {min_df} or more of the {len(self.cut)} train papers and in at most "
                f"{max_df:.0%} of them; lower min_df"
            )
        return words

    def counts(self, words: Sequence[str]) -> Any:
        """Count words in each paper: a sparse matrix, shape (papers, words)."""
        return counted(self.texts(), {word: number for number, word in enumerate(words)})

    def known_links(self) -> Any:
        """Return the citations that every dev and test query may know: a sparse matrix over all papers.

        These are the citations by train papers that are older than every dev and test query; no query is cited.
        """
        known = citing_before(first_query_year(*parts_of(self.data.index)), self.data.years)
        links = self.data.links.tocoo()
        selected = known[links.row]
        entries = (links.data[selected], (links.row[selected], links.col[selected]))
        return type(links)(entries, shape=links.shape).tocsr()


def first_query_year(index: IndexFolder) -> int | None:
    """Return the year of the oldest dev or test query; None if no year is known."""
    shipped = open_queries(index.splits)
    if shipped is not None:
        query_ids = {qid for split in ("dev", "test") for qid in shipped.gold.get(split, {})}
        known = [shipped.queries[qid].year for qid in query_ids]
        years = [year for year in known if year is not None]
    else:
        query_years = index.papers.years[held_out_rows(index)]
        years = query_years[query_years != NO_YEAR].tolist()
    return min(years) if years else None
