"""The pipeline as one object: `Recommender` opens an index and composes its stages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from citerec.config import RecommendConfig
from citerec.eligibility import eligible
from citerec.folder import IndexFolder
from citerec.query.exclude import Excluded, doi_rows, matching_rows
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Hits, Paper, Query, Recommendation, StageHit

REASON_WORDS = 6  # matching words that a reason names
AT_ONCE = 256  # queries of a batch that are searched together
READ_AT_ONCE = 32  # queries of a batch whose papers are in memory together


class Recommender:
    """Recommends papers of one index: BM25 finds the candidates and, so far, orders them."""

    def __init__(self, index: IndexFolder, config: RecommendConfig | None = None) -> None:
        self.index = index
        self.config = config or RecommendConfig()
        self._bm25 = Bm25Retriever(index, self.config.bm25)

    def recommend(
        self,
        queries: Sequence[Query],
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        explain: bool = False,
    ) -> list[tuple[Recommendation, ...]]:
        """Recommend papers for each query, best first.

        Args:
            queries: One query is a batch of one.
            year_max: The latest year of a paper; by default each query's own.
            excluded: Rows of papers that must not come back.
            explain: Whether to say why, which takes longer.

        Returns:
            For each query, in the order given, at most `config.k` papers; none if nothing matches.
        """
        found = self.stream(queries, year_max=year_max, excluded=excluded, explain=explain)
        return list(found)

    def stream(
        self,
        queries: Sequence[Query],
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        explain: bool = False,
    ) -> Iterator[tuple[Recommendation, ...]]:
        """Yield what `recommend` returns, in memory that does not grow with the batch."""
        out = frozenset(excluded)
        for start in range(0, len(queries), AT_ONCE):
            part = queries[start : start + AT_ONCE]
            rules = eligible(part, self.index.papers, year_max=year_max, excluded=out)
            found = self._bm25.retrieve(part, rules, self.config.k)
            for query, hits, items in zip(part, found, self._with_papers(found), strict=True):
                yield self._with_reasons(query, hits, items) if explain else items

    def rows_of(self, excluded: Excluded) -> frozenset[int]:
        """Return the rows of the papers that a list of exclusions names, by id, DOI or title."""
        papers, ids = self.index.papers, excluded.ids
        rows = frozenset(row for row in papers.rows_of(sorted(ids)).tolist() if row >= 0)
        by_doi = doi_rows(ids, papers.id_column)
        by_title = matching_rows(excluded.titles, papers.titles())
        return rows.union(by_doi, *by_title.values())

    def _with_papers(self, found: Sequence[Hits]) -> Iterator[tuple[Recommendation, ...]]:
        """Read each paper once for all queries that are read for together: many share theirs."""
        for start in range(0, len(found), READ_AT_ONCE):
            part = found[start : start + READ_AT_ONCE]
            papers = self.index.papers.at(row for hits in part for row in hits.rows.tolist())
            yield from (self._ranked(hits, papers) for hits in part)

    def _ranked(self, hits: Hits, papers: Mapping[int, Paper]) -> tuple[Recommendation, ...]:
        pairs = zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)
        return tuple(
            Recommendation(
                rank=rank,
                paper=papers[row],
                score=score,
                stages={self._bm25.name: StageHit(rank, score)},
            )
            for rank, (row, score) in enumerate(pairs, start=1)
        )

    def _with_reasons(
        self, query: Query, hits: Hits, result: tuple[Recommendation, ...]
    ) -> tuple[Recommendation, ...]:
        words = self._bm25.matches(query, hits.rows.tolist(), most=REASON_WORDS)
        return tuple(
            replace(item, reasons=(f"matches: {', '.join(matched)}",) if matched else ())
            for item, matched in zip(result, words, strict=True)
        )
