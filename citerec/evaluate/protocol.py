"""The protocol: which queries are asked, what counts as right, and what a system may know.

Date-strict: a query's papers are of no later year, and the known citations are those made by train-split
papers of an earlier year (`train`), or by all papers of an earlier year (`earlier`, as a deployed
system would know them). Where a corpus ships queries of its own, as BEIR's do, its splits name those, and
no paper; there every paper counts as a train paper, but for one whose id is that of a dev or test query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from citerec.config import Bm25Config, DenseConfig, FuseConfig, FuseMethod, RerankConfig
from citerec.corpus.papers import NO_YEAR
from citerec.corpus.queries import ShippedQueries, open_queries
from citerec.corpus.splits import SPLITS, gold_citations, read_ids
from citerec.eligibility import eligible
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rank.features import Group
from citerec.rank.known import KnownGraph, train_papers
from citerec.run import Qrels
from citerec.text import contents
from citerec.types import Eligible, Query

NOT_HERE = "not in the corpus"  # why a query is left out
NO_GOLD = "without gold: citing no paper of the corpus of no later year"
TOO_FEW = "with fewer gold citations than asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which queries of a split are asked, and among which papers: all of them, unless told otherwise.

    Citeomatic's DBLP and PubMed take `Rules(min_gold=10, train_only=True)`.

    Source: Bhagavatula et al., NAACL 2018, section 4, https://aclanthology.org/N18-1022.
    """

    min_gold: int = 1  # gold citations that a query needs
    train_only: bool = False  # candidates and gold are of the years of the train queries

    def __post_init__(self) -> None:
        if self.min_gold < 1:
            raise ConfigError(f"min_gold must be at least 1, got {self.min_gold}")


@dataclass(frozen=True, slots=True)
class EvalSet:
    """The queries of a split, who may be recommended to each, and what each truly cites."""

    split: str
    queries: tuple[Query, ...]
    eligible: tuple[Eligible, ...]  # one per query
    qrels: Qrels
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])  # ids of the split, by why

    @property
    def words(self) -> dict[str, int]:
        """How many words each query has, title and abstract."""
        return {query.id: len(contents(query).split()) for query in self.queries}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalConfig:
    """What the systems of one evaluation share."""

    bm25: Bm25Config = Bm25Config()
    dense: DenseConfig = DenseConfig()
    fuse: FuseConfig = FuseConfig(method=FuseMethod.WEIGHTED)  # of the system "weighted"
    rerank: RerankConfig | None = None  # None for no reranker
    candidates: str | None = (
        None  # the system whose list "rerank" reranks and "ranker" ranks; None: as `recommend` finds them
    )
    ranker: str = (
        "auto"  # of the systems that rank: the index's own, else the one of citerec; or a folder
    )
    disabled_features: tuple[Group, ...] = ()  # what the ranker does without
    known_graph: KnownGraph = KnownGraph.TRAIN
    depth: int = 1000  # papers per query; the metrics look no deeper
    seed: int = 0


def load_task(index: IndexFolder, split: str, rules: Rules = Rules()) -> EvalSet:
    """Load the queries of a split with their gold.

    Gold is what a query cites in the corpus and of no later year, whether the corpus tells it or ships
    it as qrels; a query without any is left out, and counted in `EvalSet.left_out`.

    Args:
        index: The corpus.
        split: One of `SPLITS`.
        rules: Which of its queries are asked, and among which papers.

    Raises:
        ConfigError: If the index has no such split, or the split no query.
    """
    file = index.splits / f"{split}.ids"
    if split not in SPLITS or not file.is_file():
        raise ConfigError(f"no split {split!r} in {index.path}; there are: {', '.join(SPLITS)}")
    shipped = open_queries(index.splits)
    if shipped is not None:
        queries, qrels = _shipped_queries(index, shipped, split)
        left_out = {NOT_HERE: 0, NO_GOLD: len(shipped.gold.get(split, {})) - len(queries)}
    else:
        ids = read_ids(file)
        queries, qrels = _corpus_queries(index, ids)
        unknown = int((index.papers.rows_of(ids) < 0).sum())
        left_out = {NOT_HERE: unknown, NO_GOLD: len(ids) - unknown - len(queries)}
    if not queries:
        raise ConfigError(
            f"the {split} split of {index.path} has no query that cites a paper in it"
        )
    task = EvalSet(split, tuple(queries), tuple(eligible(queries, index.papers)), qrels, left_out)
    return task if rules == Rules() else _restricted(index, task, rules)


def _restricted(index: IndexFolder, task: EvalSet, rules: Rules) -> EvalSet:
    """Ask fewer queries, among fewer papers."""
    latest = _last_train_year(index) if rules.train_only else None
    qrels = {qid: _no_later(index, gold, latest) for qid, gold in task.qrels.items()}
    enough = [
        (query, replace(rule, year_max=_earlier(rule.year_max, latest)))
        for query, rule in zip(task.queries, task.eligible, strict=True)
        if len(qrels[query.id]) >= rules.min_gold
    ]
    if not enough:
        raise ConfigError(
            f"the {task.split} split of {index.path} has no query with {rules.min_gold} gold citations"
        )
    return replace(
        task,
        queries=tuple(query for query, _ in enough),
        eligible=tuple(rule for _, rule in enough),
        qrels={query.id: qrels[query.id] for query, _ in enough},
        left_out={**task.left_out, TOO_FEW: len(task.queries) - len(enough)},
    )


def _last_train_year(index: IndexFolder) -> int | None:
    years = index.papers.years[train_papers(index)]
    known = years[years != NO_YEAR]
    return int(known.max()) if len(known) else None


def _no_later(index: IndexFolder, docids: frozenset[str], latest: int | None) -> frozenset[str]:
    if latest is None:
        return docids
    ids = sorted(docids)
    years = index.papers.years[index.papers.rows_of(ids)].tolist()
    return frozenset(
        i for i, year in zip(ids, years, strict=True) if year == NO_YEAR or year <= latest
    )


def _earlier(a: int | None, b: int | None) -> int | None:
    known: Sequence[int] = [year for year in (a, b) if year is not None]
    return min(known, default=None)


def _corpus_queries(index: IndexFolder, ids: list[str]) -> tuple[list[Query], Qrels]:
    papers, graph = index.papers, index.graph
    gold = gold_citations(graph, papers.years)
    queries: list[Query] = []
    qrels: dict[str, frozenset[str]] = {}
    for row in papers.rows_of(ids).tolist():
        if row < 0:  # a shipped split may name a paper that the corpus does not hold
            continue
        mine = slice(graph.indptr[row], graph.indptr[row + 1])
        if cited := papers.ids_at(graph.indices[mine][gold[mine]]):
            query = Query.of(papers[row])
            queries.append(query)
            qrels[query.id] = frozenset(cited)
    return queries, qrels


def _shipped_queries(
    index: IndexFolder, shipped: ShippedQueries, split: str
) -> tuple[list[Query], Qrels]:
    judged = shipped.gold.get(split, {})
    cited = sorted(frozenset[str]().union(*judged.values()))
    rows = index.papers.rows_of(cited).tolist()
    years = {i: index.papers.years[row] for i, row in zip(cited, rows, strict=True) if row >= 0}
    queries: list[Query] = []
    qrels: dict[str, frozenset[str]] = {}
    for qid, docids in judged.items():
        query = shipped.queries[qid]
        there = (docid for docid in docids if docid in years and docid != qid)
        gold = [i for i in there if query.year is None or years[i] <= query.year]
        if gold:
            queries.append(query)
            qrels[qid] = frozenset(gold)
    return queries, qrels
