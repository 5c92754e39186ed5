"""The pipeline as one object: `Recommender` opens an index and composes its stages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from citerec.candidates import Candidates, FirstStages
from citerec.config import RecommendConfig
from citerec.eligibility import eligible
from citerec.folder import IndexFolder
from citerec.fuse import stage_hits
from citerec.query.exclude import Excluded, doi_rows, matching_rows
from citerec.rerank.cascade import NAME as RERANK
from citerec.rerank.cascade import Cascade
from citerec.rerank.opening import open_cascade, wanted
from citerec.types import Hits, Note, Paper, Progress, Query, Recommendation, StageHit, untold

REASON_WORDS = 6  # matching words that a reason names
CLOSE = 100  # rank of dense retrieval down to which it is a reason
AT_ONCE = 256  # queries of a batch that are searched together
READ_AT_ONCE = 32  # queries of a batch whose papers are in memory together
PAIRS_AT_ONCE = 4096  # of a batch that are reranked together: enough to sort by length, soon done
LIKELY = 0.01  # probability from which on a reranker's word is a reason


class Recommender:
    """Recommends papers of one index: found by BM25 and dense retrieval, fused, and reranked by a cross-encoder."""

    def __init__(
        self,
        index: IndexFolder,
        config: RecommendConfig | None = None,
        note: Note | None = None,
    ) -> None:
        """Open an index; `note` is told what is fetched from the hub, before.

        Raises:
            CiterecError: If a part of it, or a model, cannot be opened.
        """
        self.index = index
        self.config = config or RecommendConfig()
        self._first = FirstStages(index, self.config, note)
        rerank = wanted(self.config.reranker, index)
        self.cascade: Cascade | None = open_cascade(index, rerank, note) if rerank else None

    @property
    def encoder(self) -> str:
        """The name of the encoder whose vectors are searched; empty for BM25 alone."""
        return self._first.encoder

    @property
    def reranker(self) -> str:
        """The name of what reranks; empty for nothing."""
        return self.cascade.name if self.cascade else ""

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that find candidates."""
        return self._first.names

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
        progress: Progress = untold,
    ) -> Iterator[tuple[Recommendation, ...]]:
        """Yield what `recommend` returns, in memory that does not grow with the batch.

        `progress` is told how many pairs are reranked.
        """
        out = frozenset(excluded)
        for start in range(0, len(queries), AT_ONCE):
            part = queries[start : start + AT_ONCE]
            rules = eligible(part, self.index.papers, year_max=year_max, excluded=out)
            depth = max(self.config.k, self.cascade.depth) if self.cascade else self.config.k
            found = self._first.find(part, rules, depth)
            for asked, best in self._reranked(part, found, progress):
                for query, one, items in zip(asked, best, self._with_papers(best), strict=True):
                    yield self._with_reasons(query, one, items) if explain else items

    def rows_of(self, excluded: Excluded) -> frozenset[int]:
        """Return the rows of the papers that a list of exclusions names, by id, DOI or title."""
        papers, ids = self.index.papers, excluded.ids
        rows = frozenset(row for row in papers.rows_of(sorted(ids)).tolist() if row >= 0)
        by_doi = doi_rows(ids, papers.id_column)
        by_title = matching_rows(excluded.titles, papers.titles())
        return rows.union(by_doi, *by_title.values())

    def _reranked(
        self, queries: Sequence[Query], found: list[Candidates], progress: Progress
    ) -> Iterator[tuple[Sequence[Query], list[Candidates]]]:
        """Yield the best `k` of each query, as many queries at once as are reranked together."""
        if self.cascade is None:
            yield queries, found
            return
        k, at_once = self.config.k, max(1, PAIRS_AT_ONCE // self.cascade.depth)
        for start in range(0, len(found), at_once):
            asked, here = queries[start : start + at_once], found[start : start + at_once]
            done = self.cascade.rerank(asked, [one.hits for one in here], k, progress)
            yield (
                asked,
                [
                    Candidates(
                        Hits(new.hits.rows[:k], new.hits.scores[:k]), {**old.stages, **new.stages}
                    )
                    for old, new in zip(here, done, strict=True)
                ],
            )

    def _with_papers(self, found: Sequence[Candidates]) -> Iterator[tuple[Recommendation, ...]]:
        """Read each paper once for all queries that are read for together: many share theirs."""
        for start in range(0, len(found), READ_AT_ONCE):
            part = found[start : start + READ_AT_ONCE]
            papers = self.index.papers.at(row for one in part for row in one.hits.rows.tolist())
            yield from (_ranked(one, papers) for one in part)

    def _with_reasons(
        self, query: Query, found: Candidates, result: tuple[Recommendation, ...]
    ) -> tuple[Recommendation, ...]:
        words = self._first.bm25.matches(query, found.hits.rows.tolist(), most=REASON_WORDS)
        probability = self.cascade.probability if self.cascade else None
        return tuple(
            replace(item, reasons=tuple(_reasons(item, matched, probability)))
            for item, matched in zip(result, words, strict=True)
        )


def _ranked(found: Candidates, papers: Mapping[int, Paper]) -> tuple[Recommendation, ...]:
    rows = found.hits.rows
    put = {name: stage_hits(hits, rows) for name, hits in found.stages.items()}
    placed = {
        name: list(zip(ranks.tolist(), scores.tolist(), strict=True))
        for name, (ranks, scores) in put.items()
    }
    pairs = zip(rows.tolist(), found.hits.scores.tolist(), strict=True)
    return tuple(
        Recommendation(
            rank=rank,
            paper=papers[row],
            score=score,
            stages={
                name: StageHit(*places[rank - 1])
                for name, places in placed.items()
                if places[rank - 1][0]  # 0 where the stage did not find it
            },
        )
        for rank, (row, score) in enumerate(pairs, start=1)
    )


def _reasons(
    item: Recommendation, matched: Sequence[str], probability: Callable[[float], float] | None
) -> Iterator[str]:
    if matched:
        yield f"matches: {', '.join(matched)}"
    if (dense := item.stages.get("dense")) and dense.rank <= CLOSE:
        yield f"close in meaning: number {dense.rank} of all"
    judged = item.stages.get(RERANK)
    if judged and probability and (likely := probability(judged.score)) >= LIKELY:
        yield f"judged citable: probability {likely:.2f}"
