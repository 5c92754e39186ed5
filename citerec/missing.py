"""Recommends the papers that lists of references lack, without a draft."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from citerec.errors import ConfigError
from citerec.pipeline import DiversityStage, Pipeline, depth_for
from citerec.rank.missing import (
    SeedCandidates,
    SeedFirstStage,
    SeedRetriever,
    by_key_terms,
    seed_reasons,
)
from citerec.rank.reasons import MOST_WORDS
from citerec.recommend import BatchRecommender
from citerec.recommendations import READ_AT_ONCE, BatchResult, with_papers
from citerec.rules.eligible import eligible
from citerec.text import plural
from citerec.types import (
    CandidateSet,
    Progress,
    Query,
    QueryBatch,
    QueryKind,
    Recommendation,
    no_progress,
)


def list_query(name: str = "") -> Query:
    """Return the query that stands for a list of references; `name` is that of its file."""
    title = f"Papers missing from {name}" if name.strip() else "Papers missing from the references"
    return Query(id="references", title=title, named=False, kind=QueryKind.REFERENCES)


def stream_any(
    recommender: BatchRecommender,
    queries: Sequence[Query],
    *,
    year_max: int | None = None,
    excluded: Iterable[int] = (),
    cited: Collection[int] = (),
    explain: bool = False,
    progress: Progress = no_progress,
) -> Iterator[BatchResult]:
    """Yield the results of drafts and sentences, or of lists of references; see `BatchRecommender.stream`.

    Args:
        recommender: The recommender.
        queries: All drafts and sentences, or all of `list_query`.
        year_max: The latest year of papers and of known citations; by default each query's year.
        excluded: Rows of papers that are not recommended.
        cited: Rows of the known references of the queries, or of the papers of the lists.
        explain: Whether to add reasons.
        progress: Receives the number of reranked pairs.

    Raises:
        ConfigError: If there are only lists, and the corpus has none of their papers.
    """
    is_list = [query.kind is QueryKind.REFERENCES for query in queries]
    if not any(is_list):
        return recommender.stream(
            queries,
            year_max=year_max,
            excluded=excluded,
            cited=cited,
            explain=explain,
            progress=progress,
        )
    if not all(is_list):
        raise ConfigError("lists of references and drafts cannot be searched together")
    return MissingReferences(recommender).stream(
        [cited] * len(queries), queries, year_max=year_max, excluded=excluded, explain=explain
    )


class MissingReferences:
    """Recommends papers for lists of references, by the parts of a recommender.

    The learning-to-rank model and the reranker of the recommender are not used: both read the text of a draft.
    """

    def __init__(self, recommender: BatchRecommender) -> None:
        """Prepare; nothing is opened again."""
        self._recommender = recommender
        parts = recommender.retriever
        bm25 = by_key_terms(parts.bm25) if parts.bm25 else None
        self._retriever = SeedRetriever(recommender.graph, bm25=bm25, dense=parts.dense)

    def stream(
        self,
        lists: Sequence[Collection[int]],
        queries: Sequence[Query] = (),
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        explain: bool = False,
    ) -> Iterator[BatchResult]:
        """Yield the missing papers of each list, best first.

        Args:
            lists: Rows of the papers of each list; these are not recommended.
            queries: What stands for each list, of `list_query`; by default queries that are numbered from 1.
            year_max: The latest year of papers and of known citations; by default all of them count.
            excluded: Rows of further papers that are not recommended.
            explain: Whether to add reasons.

        Raises:
            ConfigError: If a list is empty, `year_max` is not a year, or a row is not in the corpus.
        """
        if year_max is not None and not year_max >= 1:
            raise ConfigError(f"year_max must be a year such as 2019, got {year_max}")
        rows = [self._recommender.checked_rows(one, "a list of references") for one in lists]
        if empty := [number for number, one in enumerate(rows, start=1) if not one]:
            papers = plural(len(self._recommender.index.papers), "paper")
            which = "the references" if len(rows) == 1 else f"list {empty[0]} of references"
            raise ConfigError(
                f"none of {which} is among the {papers} of {self._recommender.index.path}; "
                "give references of its field, or a draft"
            )
        out = self._recommender.checked_rows(excluded, "excluded")
        queries = queries or [
            replace(list_query(), id=f"list{number}") for number in range(1, len(rows) + 1)
        ]
        rules = eligible(queries, self._recommender.index.papers, year_max=year_max, excluded=out)
        for start in range(0, len(rows), READ_AT_ONCE):
            part = slice(start, start + READ_AT_ONCE)
            batch = QueryBatch(queries[part], rules[part], [sorted(one) for one in rows[part]])
            yield from self._results(batch, explain=explain)

    def _results(self, batch: QueryBatch, *, explain: bool) -> Iterator[BatchResult]:
        recommender, k = self._recommender, self._recommender.config.k
        candidates = self._pipeline(batch).all(batch)
        best = [replace(one, hits=one.hits.best(k)) for one in candidates]
        for one, items in zip(best, with_papers(recommender.index.papers, best), strict=True):
            yield BatchResult(self._with_reasons(one, items) if explain else items)

    def _pipeline(self, batch: QueryBatch) -> Pipeline:
        config = self._recommender.config
        stage = DiversityStage(self._recommender.similarity, config.diversity, config.k)
        return Pipeline(
            SeedFirstStage(self._retriever, batch.cited),
            (stage,) if config.diversity else (),
            depth=depth_for(config.k, cascade=None, ranks=False, diversifies=config.diversity > 0),
        )

    def _with_reasons(
        self, candidates: CandidateSet, items: tuple[Recommendation, ...]
    ) -> tuple[Recommendation, ...]:
        assert isinstance(candidates, SeedCandidates)  # no later stage makes others
        words = self._retriever.matches(candidates, candidates.rows.tolist(), MOST_WORDS)
        return seed_reasons(self._recommender.graph, candidates, items, words)
