"""The pipeline as one object: `Recommender` opens an index and composes its stages."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from citerec.candidates import Candidates, HybridRetriever, ranked
from citerec.config import RecommendConfig, RerankConfig
from citerec.eligibility import eligible
from citerec.errors import ConfigError
from citerec.folder import IndexFolder, verifying_on_failure
from citerec.nothing import why_nothing
from citerec.query.exclude import Excluded
from citerec.query.recognise import listed_rows, recognised
from citerec.rank import explained, final
from citerec.rank.diversity import DEPTH as DIVERSE
from citerec.rank.diversity import Alike, by_vectors, by_words, cut, diversified
from citerec.rank.final import LtrStage, RankedCandidates
from citerec.rank.known import Rows
from citerec.rank.ranker import Ranker, Variant, find_ranker, open_ranker
from citerec.rank.words import title_words
from citerec.rerank.cascade import Cascade
from citerec.rerank.opening import open_cascade, wanted
from citerec.tuned import fusion_in_force, weight_in_force
from citerec.types import (
    Eligible,
    Log,
    Progress,
    Query,
    Recommendation,
    no_progress,
)

REASON_WORDS = 6  # matching words that a reason names
AT_ONCE = 256  # queries of a batch that are searched together
READ_AT_ONCE = 32  # queries of a batch whose papers are in memory together
PAIRS_AT_ONCE = 4096  # of a batch that are reranked together: enough to sort by length, soon done


class Recommender:
    """Recommends papers of one index: found by words and vectors, reranked, ranked at last by all that is known."""

    def __init__(
        self,
        index: IndexFolder,
        config: RecommendConfig | None = None,
        log: Log | None = None,
    ) -> None:
        """Open an index; `log` receives what is fetched from the hub, before.

        Raises:
            CiterecError: If a part of it, or a model, cannot be opened.
        """
        self.index, self._log = index, log
        self.config = config or RecommendConfig()
        self.ranker = _open_ranker(index, self.config)
        self._first = HybridRetriever(index, self.config, log)
        rerank = wanted(self.config.reranker, index)
        if rerank and self.ranker and rerank.weight is None and not self.ranker.reads_reranker:
            rerank = replace(rerank, weight=final.BLEND)
        self.cascade: Cascade | None = open_cascade(index, rerank, log) if rerank else None
        if self.cascade and self.ranker:
            self.cascade = final.beside(self.cascade, self.ranker, rerank)
        expand = self.config.expand
        self._final = LtrStage(index, self.ranker, expand=expand) if self.ranker else None

    @property
    def encoder(self) -> str:
        """The name of the encoder whose vectors are searched; empty for BM25 alone."""
        return self._first.encoder

    @property
    def reranker(self) -> str:
        """The name of what reranks; empty for nothing."""
        return self.cascade.name if self.cascade else ""

    @property
    def reranks(self) -> str:
        """What reranks, and how, in one line; empty for nothing."""
        if self.cascade is None:
            return ""
        mixes = self.ranker and not self.ranker.reads_reranker
        return f"{self.cascade}, against {self.ranker}" if mixes else str(self.cascade)

    @property
    def in_force(self) -> tuple[str, ...]:
        """How the stages are put together, and where each setting comes from (tuned, default or option), in lines."""
        index, config, ranker = self.index, self.config, self.ranker
        lines = [f"fusion: {fusion_in_force(index, config)}"] if self._first.dense else []
        if self.cascade and ranker and ranker.reads_reranker:
            lines.append(f"reranker's weight: none, it is a feature of {ranker}")
        elif self.cascade:
            last, asked = self.cascade.stages[-1], config.reranker
            weight = weight_in_force(
                index,
                last.weight,
                str(last.how["weights"]),
                is_option=isinstance(asked, RerankConfig) and asked.weight is not None,
                has_ranker=ranker is not None,
            )
            lines.append(f"reranker's weight: {weight}")
        origin = "default" if config.ranker == "auto" else "option"
        return (*lines, f"ranker: {ranker or 'none'} ({origin})")

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
        cited: Iterable[int] = (),
        explain: bool = False,
    ) -> list[tuple[Recommendation, ...]]:
        """Recommend papers for each query, best first.

        Args:
            queries: One query is a batch of one.
            year_max: The latest year of a paper, and of the citations that are known; by default each query's own.
            excluded: Rows of papers that must not come back.
            cited: Rows of papers that the queries cite already: the ranker knows, and they do not come back.
            explain: Whether to say why, which takes longer.

        Returns:
            For each query, in the order given, at most `config.k` papers; none if nothing matches.

        Raises:
            ConfigError: If `year_max` is no year, or a row is none of the corpus.
        """
        found = self.stream(
            queries, year_max=year_max, excluded=excluded, cited=cited, explain=explain
        )
        return list(found)

    def stream(
        self,
        queries: Sequence[Query],
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        cited: Iterable[int] = (),
        explain: bool = False,
        progress: Progress = no_progress,
    ) -> Iterator[tuple[Recommendation, ...]]:
        """Yield what `recommend` returns, in memory that does not grow with the batch.

        `progress` receives how many pairs are reranked.
        """
        if year_max is not None and not year_max >= 1:
            raise ConfigError(f"year_max must be a year such as 2019, got {year_max}")
        known = self._checked_rows(cited, "cited")
        out = known | self._checked_rows(excluded, "excluded")
        with verifying_on_failure(self.index):
            for start in range(0, len(queries), AT_ONCE):
                part = recognised(queries[start : start + AT_ONCE], self.index.papers, self._log)
                rules = eligible(part, self.index.papers, year_max=year_max, excluded=out)
                found = self._first.find(part, rules, self._depth)
                for asked, best in self._ordered(part, rules, found, known, progress):
                    chosen = [self._chosen(one) for one in best]
                    results = self._with_papers(chosen)
                    for query, one, items in zip(asked, chosen, results, strict=True):
                        yield self._with_reasons(query, one, items) if explain else items

    def _checked_rows(self, rows: Iterable[int], name: str) -> frozenset[int]:
        """Return some rows of the corpus; a number that is none would be read outside of an array."""
        checked, papers = frozenset(rows), len(self.index.papers)
        if bad := [row for row in checked if not 0 <= row < papers]:
            raise ConfigError(
                f"{name} must hold rows of the corpus, from 0 to {papers - 1:,}; got {bad[0]}"
            )
        return checked

    def unreadable(self, query: Query) -> float:
        """Return the share of a query's letters in words that neither encoder nor corpus knows, in [0, 1].

        From about a half on, what is recommended means little: the text is in a script or language that nothing covers.
        """
        return self._first.unreadable(query)

    def why_nothing(
        self, query: Query, *, year_max: int | None = None, excluded: Iterable[int] = ()
    ) -> str:
        """Return why nothing is recommended for a query, with numbers, and what to change.

        Args:
            query: For which `recommend` returned nothing.
            year_max: As it was given to `recommend`.
            excluded: The rows that were excluded, known citations among them.
        """
        [rule] = eligible(
            [query], self.index.papers, year_max=year_max, excluded=frozenset(excluded)
        )
        return why_nothing(self.index, rule, has_vectors=bool(self.encoder))

    @property
    def _depth(self) -> int:
        """How many candidates of the first stages are wanted."""
        most = [self.config.k]
        most += [self.cascade.depth] if self.cascade else []
        most += [final.DEPTH] if self._final else []
        most += [DIVERSE] if self.config.diversity else []
        return max(most)

    def rows_of(self, excluded: Excluded) -> frozenset[int]:
        """Return the rows of the papers that a list of references names, by id, DOI or title."""
        return frozenset[int]().union(*listed_rows(excluded, self.index.papers))

    def _ordered(
        self,
        queries: Sequence[Query],
        rules: Sequence[Eligible],
        found: Sequence[Candidates],
        cited: frozenset[int],
        progress: Progress,
    ) -> Iterator[tuple[Sequence[Query], Sequence[Candidates]]]:
        """Yield all candidates of each query in their last order, as many queries at once as are reranked together."""
        at_once = max(1, PAIRS_AT_ONCE // self.cascade.depth) if self.cascade else READ_AT_ONCE
        for start in range(0, len(found), at_once):
            mine = slice(start, start + at_once)
            asked, here = queries[mine], found[mine]
            if self._final:
                best: Sequence[Candidates] = self._final.order(
                    asked,
                    rules[mine],
                    here,
                    k=self.config.k,
                    cited=cited,
                    cascade=self.cascade,
                    progress=progress,
                )
            else:
                best = self._reranked(asked, here, progress)
            yield asked, best

    def _reranked(
        self, queries: Sequence[Query], found: Sequence[Candidates], progress: Progress
    ) -> Sequence[Candidates]:
        if self.cascade is None:
            return found
        done = self.cascade.rerank(queries, [one.hits for one in found], self.config.k, progress)
        return [
            Candidates(
                new.hits, {**old.stages, **new.stages}, probabilities=self.cascade.likely(new)
            )
            for old, new in zip(found, done, strict=True)
        ]

    def _chosen(self, found: Candidates) -> Candidates:
        """Take the best `k`, or, if the list is to be diverse, those that differ."""
        config, hits = self.config, cut(found.hits, self.config.k)
        if config.diversity:
            top = cut(found.hits, max(config.k, DIVERSE))
            hits = diversified(top, self._alike(top.rows), config.diversity, config.k)
        return replace(found, hits=hits)

    def _alike(self, rows: Rows) -> Alike:
        if self._first.dense:
            return by_vectors(self._first.dense.vectors(rows))
        titles = self.index.papers.texts("title", rows).to_pylist()
        return by_words([title_words(title) for title in titles])

    def _with_papers(self, found: Sequence[Candidates]) -> Iterator[tuple[Recommendation, ...]]:
        """Read each paper once for all queries that are read for together: many share theirs."""
        for start in range(0, len(found), READ_AT_ONCE):
            part = found[start : start + READ_AT_ONCE]
            papers = self.index.papers.at(row for one in part for row in one.hits.rows.tolist())
            yield from (ranked(one, papers) for one in part)

    def _with_reasons(
        self, query: Query, found: Candidates, result: tuple[Recommendation, ...]
    ) -> tuple[Recommendation, ...]:
        rows = found.hits.rows
        words = self._first.bm25.matches(query, rows.tolist(), most=REASON_WORDS)
        if isinstance(found, RankedCandidates) and self.ranker:
            return explained.weighed(self.ranker, found, result, words, self.cascade)
        return explained.plain(result, words, self.cascade)


def _open_ranker(index: IndexFolder, config: RecommendConfig) -> Ranker | None:
    variant = Variant.of(popularity=config.popularity, authors=config.authors)
    folder = find_ranker(config.ranker, index)
    if folder is None and variant is not Variant.FULL:
        raise ConfigError(
            f"{index.path} has no ranker, so there is nothing that reads popularity or authors"
        )
    return open_ranker(folder, variant) if folder else None
