"""The features of candidates, by name: what a learning-to-rank model may read."""

from dataclasses import dataclass
from enum import StrEnum

from citerec.config import RRF_K0
from citerec.rank.neighbours import CLOSEST
from citerec.rank.sentences import NEAR
from citerec.rank.walk import SEEDS, STEPS

OLDEST = 30  # years; the largest age


class Group(StrEnum):
    """The source of a feature. All features of a group are present or missing together."""

    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    RERANKER = "reranker"
    GRAPH = "graph"
    POPULARITY = "popularity"
    AUTHORS = "authors"
    VENUE = "venue"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the matrix."""

    name: str
    group: Group
    meaning: str
    needs: tuple[Group, ...] = ()  # further groups; the feature is missing without one of them

    @property
    def groups(self) -> frozenset[Group]:
        """All groups that the feature needs."""
        return frozenset({self.group, *self.needs})


FEATURES: tuple[Feature, ...] = (
    Feature("bm25", Group.LEXICAL, "BM25 score / the query's best; 0 where not found"),
    Feature("bm25_rank", Group.LEXICAL, f"1 / ({RRF_K0} + rank by BM25); 0 where not found"),
    Feature(
        "dense",
        Group.SEMANTIC,
        "similarity of the vectors, min-max scaled to [0, 1] over the hits",
    ),
    Feature("dense_rank", Group.SEMANTIC, f"1 / ({RRF_K0} + rank by vectors); 0 where not found"),
    Feature("rrf", Group.LEXICAL, f"mean of 1 / ({RRF_K0} + rank) over the first-stage retrievers"),
    Feature(
        "rerank",
        Group.RERANKER,
        "probability of a citation by the cross-encoder; NaN where not reranked",
    ),
    Feature(
        "cited_by_similar", Group.GRAPH, "total weight of the neighbours that cite it, in [0, 1]"
    ),
    Feature("cited_by_closest", Group.GRAPH, f"likewise, of the {CLOSEST} closest neighbours"),
    Feature("cited_by_similar_count", Group.GRAPH, "number of neighbours that cite it"),
    Feature("co_cited", Group.GRAPH, "weighted cosine of co-citation with the neighbours"),
    Feature(
        "coupled", Group.GRAPH, "weighted cosine of bibliographic coupling with the neighbours"
    ),
    Feature(
        "coupling",
        Group.GRAPH,
        "cosine of its references and the query's known references; NaN if none is known",
    ),
    Feature("citations", Group.POPULARITY, "log(1 + known citations)"),
    Feature("citations_3y", Group.POPULARITY, "log(1 + known citations of the last 3 years)"),
    Feature("age", Group.POPULARITY, f"years before the query, at most {OLDEST}"),
    Feature("author_overlap", Group.AUTHORS, "share of the query's authors that wrote it"),
    Feature(
        "self_cited", Group.AUTHORS, "log(1 + known papers of the query's authors that cite it)"
    ),
    Feature("venue_match", Group.VENUE, "1 if it appeared in the query's venue, else 0"),
    Feature("title_overlap", Group.TEXT, "Jaccard similarity of the words of both titles"),
    Feature("no_abstract", Group.TEXT, "1 if it has no abstract, else 0"),
    Feature("abstracts", Group.TEXT, "share of the candidates that have an abstract"),
    Feature(
        "linked_similarity",
        Group.GRAPH,
        "cosine of the vectors of the query and of its references and citing papers (mean), min-max scaled",
        needs=(Group.SEMANTIC,),
    ),
    Feature(
        "walk",
        Group.GRAPH,
        f"visits by a walk of {STEPS} steps from the best {SEEDS} candidates / the most visited",
    ),
    Feature(
        "venue_citations",
        Group.VENUE,
        "share of its venue in the known references of the query's venue",
        needs=(Group.GRAPH,),
    ),
    Feature(
        "sentence",
        Group.SEMANTIC,
        "highest similarity of its vector and a sentence's, in standard deviations over the candidates",
    ),
    Feature(
        "sentences_near",
        Group.SEMANTIC,
        f"sentences and title of which it is among the {NEAR} closest candidates",
    ),
    Feature(
        "sentence_bm25",
        Group.LEXICAL,
        "highest BM25 score for title or sentence, in standard deviations over the candidates",
    ),
    Feature(
        "sentence_bm25_rank",
        Group.LEXICAL,
        f"1 / ({RRF_K0} + best rank among the candidates by one of these scores)",
    ),
    Feature(
        "title_found",
        Group.TEXT,
        "share of its title's words that the draft contains; words of few candidates' titles count more",
    ),
)
NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)
