"""The evaluation protocol: the queries, their gold, and the information that a system may use.

The protocol is date-strict: gold and candidates are of no later year than the query, and the known citations are those
by train-split papers of an earlier year (`train`), or by all papers of an earlier year (`earlier`, as in a deployed
system). If a corpus ships its own queries (BEIR), its splits list these; then every paper counts as a train paper,
except those that are a dev or test query, by id, DOI, title or text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal, TypeAlias

import numpy as np

from citerec.config import (
    RANKING_DEPTH,
    Bm25Config,
    DenseConfig,
    FuseConfig,
    FuseMethod,
    RerankConfig,
    Settings,
    setting,
)
from citerec.errors import ConfigError
from citerec.files.trec import Qrels
from citerec.graph.temporal import CitationScope
from citerec.index.folder import IndexFolder
from citerec.index.papers import NO_YEAR
from citerec.index.splits import SPLITS, gold_citations, open_queries, read_ids
from citerec.rules.eligible import eligible, query_rows
from citerec.types import Eligibility, Query

NOT_HERE = "not in the corpus"  # reasons why queries are left out
NO_GOLD = "without gold: citing no paper of the corpus of no later year"
NO_RELEVANT = "without a relevant paper"
NOT_DRAWN = "not drawn by --queries"

KnownGraph: TypeAlias = Literal[CitationScope.TRAIN, CitationScope.EARLIER]


@dataclass(frozen=True, slots=True)
class EvalSet:
    """The evaluation set: the queries of a split, their eligible papers and their gold."""

    split: str
    queries: tuple[Query, ...]
    eligible: tuple[Eligibility, ...]  # one per query
    qrels: Qrels
    # number of queries by reason
    left_out: Mapping[str, int]

    def spread(self, count: int) -> "EvalSet":
        """Return `count` of the queries, evenly spread over their order, or all if there are no more."""
        total = len(self.qrels)
        drawn = min(count, total)
        pairs = list(self.qrels.items())
        qrels = dict(pairs[n * total // drawn] for n in range(drawn))
        keep = [query.id in qrels for query in self.queries]
        return EvalSet(
            self.split,
            tuple(compress(self.queries, keep)),
            tuple(compress(self.eligible, keep)),
            qrels,
            {**self.left_out, NOT_DRAWN: total - drawn},
        )


class EvalConfig(Settings):
    """The settings that the systems of one evaluation share."""

    bm25: Bm25Config = Bm25Config()
    dense: DenseConfig = DenseConfig()
    # of the system "weighted"
    fuse: FuseConfig = FuseConfig(method=FuseMethod.WEIGHTED)
    retrievers: tuple[str, ...] = setting(
        (),
        "Further first-stage retrievers, fused as in recommend: names that installed packages register.",
    )
    rerank: RerankConfig | None = None  # None for no reranker
    # the system whose ranking "rerank" and "ranker" rerank; None: the retrievers of `recommend`
    candidates: str | None = None
    ranker: str = setting(
        "auto",
        "The learning-to-rank model: auto for that of the index, else the default one; or a folder.",
    )
    known_graph: KnownGraph = setting(
        CitationScope.TRAIN,
        "The citations that a system may use for a query; all were made before its year. train: only those "
        "made by papers of the train split, the protocol of all results. earlier: those made by any paper of the "
        "corpus, as recommend uses them.",
    )
    depth: int = RANKING_DEPTH  # papers per query; no metric uses more
    seed: int = setting(
        0, "Seed of the random baseline and the resamples.", ge=0, le=2**32 - 1
    )


def load_eval_set(index: IndexFolder, split: str) -> EvalSet:
    """Load the queries of one of `SPLITS` with their gold.

    Gold are the cited papers of the corpus that are of no later year and not retracted, from the citations or from
    shipped qrels. Queries without gold are left out and counted in `EvalSet.left_out`. ConfigError if the index has no
    such split, or the split has no query with gold.
    """
    file = index.splits / f"{split}.ids"
    if split not in SPLITS or not file.is_file():
        raise ConfigError(
            f"no split {split!r} in {index.path}; choose one of {', '.join(SPLITS)}"
        )
    papers = index.papers
    graph = index.graph
    shipped = open_queries(index.splits)
    queried: list[tuple[Query, dict[str, int]]] = []  # each query with its gold
    unknown = 0
    if shipped is None:
        rows = papers.rows_of(read_ids(file))
        # of a shipped split, which may name papers of another corpus
        unknown = int((rows < 0).sum())
        gold = gold_citations(graph, papers.years) & ~np.isin(
            graph.indices, papers.retracted
        )
        references = graph.where(gold)
        for row in rows[rows >= 0].tolist():
            cited = papers.ids_at(references[row])
            queried.append((Query.of(papers[row]), dict.fromkeys(cited, 1)))
    else:
        gold_by_query = shipped.gold.get(split, {})
        cited = sorted(set[str]().union(*gold_by_query.values()))
        row_of = dict(zip(cited, papers.rows_of(cited).tolist(), strict=True))
        # as if not there
        row_of |= dict.fromkeys(papers.ids_at(papers.retracted.tolist()), -1)
        given = [shipped.queries[qid] for qid in gold_by_query]
        for query, own in zip(given, query_rows(given, papers), strict=True):
            year = query.year or int(papers.years[[*own]].max(initial=NO_YEAR)) or None
            grades = gold_by_query[query.id]
            in_corpus = [i for i in grades if row_of[i] not in (-1, *own)]
            cited = [
                i for i in in_corpus if year is None or papers.years[row_of[i]] <= year
            ]
            queried.append((replace(query, year=year), {i: grades[i] for i in cited}))
    queries = tuple(query for query, cited in queried if cited)
    qrels = {query.id: cited for query, cited in queried if cited}
    left_out = {NOT_HERE: unknown, NO_GOLD: len(queried) - len(queries)}
    if not queries:
        raise ConfigError(
            f"the {split} split of {index.path} has no query that cites a paper in it"
        )
    return EvalSet(split, queries, tuple(eligible(queries, papers)), qrels, left_out)
