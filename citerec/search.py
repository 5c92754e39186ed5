"""`Corpus`: the papers of an open index, searched by keywords, by id or DOI, and along citations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from citerec.bibliography.keys import id_key, title_key
from citerec.display import one_line
from citerec.errors import ConfigError, PaperNotFoundError, shown
from citerec.files.arrays import Counts, Rows
from citerec.index.folder import IndexFolder
from citerec.index.papers import NO_YEAR
from citerec.match.papers import rows_by_doi
from citerec.recommendations import Recommendations, as_recommendations
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Paper,
    Query,
    QueryKind,
    check_years,
)

# what may precede an id, as in the API of Semantic Scholar
_PREFIX = re.compile(
    r"^(?:doi|corpusid|arxiv|mag|acl|pmid|pmcid|url):\s*", re.IGNORECASE
)
DEEPEST = 50_000  # hits of the keywords that filters are applied to
_READ_AT_ONCE = 256  # papers that are read together to apply the filters


@dataclass(frozen=True, slots=True)
class PaperDetails:
    """A paper, and how many citations it has within the corpus."""

    paper: Paper
    references: int  # papers of the corpus that it cites
    cited_by: int  # papers of the corpus that cite it


@dataclass(frozen=True, slots=True)
class LinkedPapers:
    """A page of the papers that a paper cites, or that cite it."""

    papers: tuple[Paper, ...]  # most cited within the corpus first, then by id
    total: int  # of all pages
    offset: int  # papers before this page


@dataclass(frozen=True, slots=True)
class Connections:
    """How some papers are connected: with each other, and with other papers of the corpus by several of them."""

    links: tuple[tuple[str, str], ...]  # ids: the first paper cites the second
    # others that they cite, and how many of them do
    prior: tuple[tuple[Paper, int], ...]
    # others that cite them, and how many each cites
    derivative: tuple[tuple[Paper, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """What a paper must fulfil besides having the keywords; a paper of an unknown year passes no bound of years.

    Raises:
        ConfigError: If no year fits.
    """

    year_min: int | None = None
    year_max: int | None = None
    author: str = ""  # words that one of the names has, up to case and accents
    venue: str = ""  # words that the name of the venue has, likewise

    def __post_init__(self) -> None:
        check_years(self.year_min, self.year_max)

    def passes(self, paper: Paper) -> bool:
        """Whether a paper that is within the bounds, or of an unknown year, fulfils all of it."""
        is_bounded = self.year_min is not None or self.year_max is not None
        if is_bounded and paper.year is None:
            return False
        has_author = not self.author or any(
            _has(name, self.author) for name in paper.authors
        )
        return has_author and (not self.venue or _has(paper.venue, self.venue))


class Corpus:
    """The papers of an open index."""

    def __init__(self, index: IndexFolder, bm25: Bm25Retriever | None = None) -> None:
        """Prepare; `bm25` searches, by default one that is opened here."""
        self.index = index
        self._bm25 = bm25 or Bm25Retriever(index)

    @property
    def years(self) -> tuple[int, int] | None:
        """The first and the last year of its papers; None if no year is known."""
        years = self.index.papers.years
        known = years[years != NO_YEAR]
        return (int(known.min()), int(known.max())) if len(known) else None

    def search(
        self,
        keywords: str,
        *,
        k: int = 20,
        offset: int = 0,
        filter: SearchFilter | None = None,
        as_typed: bool = False,
    ) -> Recommendations:
        """Find papers by keywords with BM25, best first.

        Args:
            keywords: Words of titles and abstracts; a paper need not have all of them.
            k: The number of papers.
            offset: The number of better papers that are left out, for further pages; ranks count them.
            filter: What the papers must fulfil; it is applied to the best `DEEPEST` hits of the keywords.
            as_typed: Whether the last word may be the start of one.

        Raises:
            ConfigError: If there are no keywords, `k` is less than 1, or `offset` is negative.
        """
        if not keywords.strip():
            raise ConfigError(
                "there are no keywords; give some, such as: dense retrieval"
            )
        if k < 1 or offset < 0:
            raise ConfigError(
                f"k must be at least 1 and offset at least 0, got {k} and {offset}"
            )
        if as_typed:
            keywords = " ".join([keywords, *self._bm25.completions(keywords)])
        query = Query(
            id="query", title=one_line(keywords), named=False, kind=QueryKind.SENTENCE
        )
        bounds = filter or SearchFilter()
        hits = self._hits(query, bounds, offset + k)
        papers = self.index.papers.at(hits.rows.tolist())
        items = as_recommendations(
            CandidateSet(hits, {Bm25Retriever.name: hits}), papers
        )[offset:]
        limits = "" if bounds == SearchFilter() else " and passes the filters"
        reason = f"no {'further ' if offset else ''}paper has these words{limits}"
        return Recommendations(query, items, "" if items else reason)

    def paper(self, id: str) -> PaperDetails:
        """Return a paper by its id or its DOI, bare, as a link, or after a prefix such as `DOI:` or `CorpusId:`.

        Raises:
            PaperNotFoundError: If the corpus does not have it.
        """
        row = self._row(id)
        return PaperDetails(
            self.index.papers[row],
            len(self.index.graph.references(row)),
            int(self._counts[row]),
        )

    def references(self, id: str, *, k: int = 20, offset: int = 0) -> LinkedPapers:
        """Return a page of the papers of the corpus that a paper cites; see `paper` for `id` and errors."""
        return self._page(self.index.graph.references(self._row(id)), k, offset)

    def cited_by(self, id: str, *, k: int = 20, offset: int = 0) -> LinkedPapers:
        """Return a page of the papers of the corpus that cite a paper; see `paper` for `id` and errors."""
        return self._page(self.index.graph.cited_by(self._row(id)), k, offset)

    def connections(self, ids: Sequence[str], *, k: int = 10) -> Connections:
        """Return the citations among papers, and at most `k` works each that several of them cite or that cite several.

        Papers are given by their exact ids; those that the corpus does not have are left out.
        """
        papers = self.index.papers
        graph = self.index.graph
        rows = np.unique(
            [row for row in papers.rows_of(ids).tolist() if row >= 0]
        ).astype(np.int32)
        cited, counts = graph.lists(rows)
        citing, _ = graph.transposed(papers.years).sampled(rows)
        own = np.repeat(rows, counts)
        among = [
            papers.ids_at(side[np.isin(cited, rows)].tolist()) for side in (own, cited)
        ]

        def others(linked: Rows) -> tuple[tuple[Paper, int], ...]:
            found, links = np.unique(linked[~np.isin(linked, rows)], return_counts=True)
            order = np.lexsort((self.index.id_rank[found], -links))[:k]
            best = {int(found[i]): int(links[i]) for i in order if links[i] > 1}
            read = papers.at(best)
            return tuple((read[row], n) for row, n in best.items())

        return Connections(
            tuple(zip(*among, strict=True)), others(cited), others(citing)
        )

    def counts(self, ids: Sequence[str]) -> list[tuple[int, int]]:
        """Return how many papers of the corpus each of some papers cites, and how many cite it, by their exact ids."""
        graph = self.index.graph
        rows = self.index.papers.rows_of(ids).tolist()
        return [
            (len(graph.references(row)), int(self._counts[row])) if row >= 0 else (0, 0)
            for row in rows
        ]

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the rows of papers; None for one that the corpus does not have. See `paper` for `ids`."""
        papers = self.index.papers
        given = [paper_id.strip() for paper_id in ids]
        bare = [_PREFIX.sub("", given_id) for given_id in given]
        keys = [id_key(bare_id) for bare_id in bare]
        by_doi = rows_by_doi(keys, papers)
        found: list[int | None] = []
        pairs = zip(
            papers.rows_of(given).tolist(), papers.rows_of(bare).tolist(), strict=True
        )
        for pair, key in zip(pairs, keys, strict=True):
            rows = [row for row in pair if row >= 0] or sorted(by_doi.get(key, ()))
            found.append(rows[0] if rows else None)
        return found

    def _hits(self, query: Query, filter: SearchFilter, needed: int) -> Hits:
        """Return the best `needed` hits that pass the filter; papers are read as they are needed."""
        rule = Eligibility(filter.year_max, year_min=filter.year_min)
        papers = self.index.papers
        kept = list[int]()
        depth = needed if filter == SearchFilter() else DEEPEST
        [hits] = self._bm25.retrieve([query], [rule], depth)
        for start in range(0, len(hits), _READ_AT_ONCE):
            rows = hits.rows[start : start + _READ_AT_ONCE].tolist()
            read = papers.at(rows)
            kept += [i for i, row in enumerate(rows, start) if filter.passes(read[row])]
            if len(kept) >= needed:
                break
        return Hits(hits.rows[kept[:needed]], hits.scores[kept[:needed]])

    def _row(self, id: str) -> int:
        [row] = self.rows_of([id])
        if row is None:
            raise PaperNotFoundError(
                f"{self.index.path.name} has no paper with the id or DOI {shown(id.strip())}; "
                "find its id by a search for its title"
            )
        return row

    def _page(self, rows: Rows, k: int, offset: int) -> LinkedPapers:
        order = np.lexsort((self.index.id_rank[rows], -self._counts[rows]))
        chosen = rows[order][offset : offset + k].tolist()
        papers = self.index.papers.at(chosen)
        return LinkedPapers(tuple(papers[row] for row in chosen), len(rows), offset)

    @cached_property
    def _counts(self) -> Counts:
        """How many papers of the corpus cite each row, shape (papers,)."""
        return self.index.graph.citation_counts()


def _has(name: str, words: str) -> bool:
    """Whether a name has all of some words, up to case and accents."""
    return {*title_key(words).split()} <= {*title_key(name).split()}
