"""The pipeline as one object: `Recommender` opens an index and composes its stages."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from citerec.config import RecommendConfig
from citerec.eligibility import eligible
from citerec.folder import IndexFolder
from citerec.query.doi import doi_of
from citerec.query.exclude import Excluded, id_key, matching_rows
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Hits, Query, Recommendation, StageHit

REASON_WORDS = 6  # matching words that a reason names


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
        rules = eligible(queries, self.index.papers, year_max=year_max, excluded=excluded)
        found = self._bm25.retrieve(queries, rules, self.config.k)
        results = [self._with_papers(hits) for hits in found]
        if not explain:
            return results
        pairs = zip(queries, found, results, strict=True)
        return [self._with_reasons(query, hits, result) for query, hits, result in pairs]

    def rows_of(self, excluded: Excluded) -> frozenset[int]:
        """Return the rows of the papers that a list of exclusions names, by id, DOI or title."""
        papers, ids = self.index.papers, excluded.ids
        rows = {row for row in papers.rows_of(sorted(ids)).tolist() if row >= 0}
        if any(map(doi_of, ids)):  # the corpus may write a DOI as a link, or in capitals
            rows |= {row for row, docid in enumerate(papers.ids) if id_key(docid) in ids}
        by_title = matching_rows(excluded.titles, papers.titles())
        return frozenset(rows).union(*by_title.values())

    def _with_papers(self, hits: Hits) -> tuple[Recommendation, ...]:
        pairs = zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)
        return tuple(
            Recommendation(
                rank=rank,
                paper=self.index.papers[row],
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
