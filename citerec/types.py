"""The data of the pipeline: papers, queries, hits of the stages, recommendations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from operator import index
from typing import TYPE_CHECKING, Any, Self
from unicodedata import category

from citerec.errors import ConfigError, InvalidValueError, shown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows = npt.NDArray[np.int32]
    Scores = npt.NDArray[np.float32]
    Vectors = npt.NDArray[np.float32]

Json = dict[str, Any]  # an object of JSON, or a record that has its shape
# receives the task, and how much of how much is done
Progress = Callable[[str, int, int], None]
Log = Callable[[str], None]  # receives a message for the user

YEARS = range(1, 10_000)
MAX_TITLE = 20_000  # characters
MAX_ABSTRACT = 2_000_000  # characters
BODY_SENTENCES = 60  # of the text of a draft that are searched, each by itself
# Bibliographic fields of a paper besides its authors, title, year and venue; all of them text.
BIBLIOGRAPHIC = (
    "doi",
    "url",
    "type",
    "volume",
    "issue",
    "pages",
    "publisher",
    "times_cited",
)


def id_fault(value: object) -> str:
    """Return why a value cannot be the id of a paper or a query; empty if it can."""
    if not isinstance(value, str):
        return f"must be a string, found {shown(value)}"
    if not value.strip():
        return "is empty; expected an id of at least one visible character"
    if not value.isprintable() and any(category(c) == "Cc" for c in value):
        return f"holds a line break or control character: {shown(value)}"
    return ""


def year_of(value: Any) -> int | None:
    """Return a year as a Python int; NumPy and pandas have other integer types, tables with gaps have 2019.0.

    ValueError if it is not a whole number from 1 to 9999, or a bool.
    """
    number: Any = (
        int(value) if isinstance(value, float) and value.is_integer() else value
    )
    if value is None:
        return None
    if (
        not hasattr(number, "__index__")
        or isinstance(value, bool)
        or index(number) not in YEARS
    ):
        raise ValueError(f"must be a year such as 2019, or null; found {shown(value)}")
    return index(number)


def check_years(year_min: int | None, year_max: int | None) -> None:
    """Refuse bounds that no year fits, by a ConfigError."""
    if (year_min or YEARS[0]) > (year_max or YEARS[-1]):
        raise ConfigError(
            f"no year fits: papers from the year {year_min} up to the year {year_max}"
        )


def _check(
    item: "Paper | Query", kind: str, texts: Sequence[str], lists: Sequence[str]
) -> None:
    """Check the fields of a paper or a query; its year becomes a Python int, its lists become tuples."""
    if fault := id_fault(item.id):
        raise InvalidValueError(f"a {kind}", f"its id {fault}")
    what = f"{kind} {item.id!r}"
    for name in ("title", *texts):
        if not isinstance(value := getattr(item, name), str):
            raise InvalidValueError(
                what, f"its {name} must be a string, found {shown(value)}"
            )
    try:
        object.__setattr__(item, "year", year_of(item.year))
    except ValueError as error:
        raise InvalidValueError(what, f"its year {error}") from error
    for name in lists:
        value: Any = getattr(item, name)
        is_list = not isinstance(value, str) and hasattr(value, "__iter__")
        strings: tuple[Any, ...] = tuple(value) if is_list else ()
        if not is_list or not all(isinstance(string, str) for string in strings):
            fault = f"its {name} must be a list of strings, found {shown(value)}"
            raise InvalidValueError(what, fault)
        object.__setattr__(item, name, strings)


@dataclass(frozen=True, slots=True)
class Context:
    """A sentence of a paper that cites."""

    text: str  # with `[CITE]` at each group of citations
    cites: tuple[str, ...]  # ids of the papers that it cites, at least one


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper of a corpus."""

    id: str
    title: str
    abstract: str = ""
    year: int | None = None
    authors: tuple[str, ...] = ()
    venue: str = ""
    citations: tuple[str, ...] = ()  # ids of its references, in the order given
    doi: str = ""  # as the corpus states it, bare or as a link
    url: str = ""
    type: str = ""  # as the corpus states it
    volume: str = ""
    issue: str = ""
    pages: str = ""
    publisher: str = ""
    # a number of all papers of the world, where the corpus states it
    times_cited: str = ""
    retracted: bool = False  # such a paper is never recommended
    contexts: tuple[Context, ...] = ()  # its sentences that cite, in their order

    def __post_init__(self) -> None:
        _check(
            self,
            "paper",
            ("abstract", "venue", *BIBLIOGRAPHIC),
            ("authors", "citations"),
        )
        if self.contexts:  # what a sentence cites is a reference, stated or not
            stated = {*self.citations}
            cited = dict.fromkeys(i for found in self.contexts for i in found.cites)
            more = [docid for docid in cited if docid not in stated]
            object.__setattr__(self, "citations", (*self.citations, *more))


class QueryKind(StrEnum):
    """What the title of a query is."""

    DRAFT = "draft"  # the title of a paper
    SENTENCE = "sentence"  # a sentence without its draft; no paper has it as its title
    REFERENCES = "references"  # the name of a list of references, which is not searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A text that needs references.

    It does not contain any references: those are in the qrels, so that they cannot leak into a stage.
    """

    id: str
    title: str
    abstract: str = ""
    year: int | None = None  # papers of a later year are not eligible
    authors: tuple[str, ...] = ()
    venue: str = ""
    # whether the id was given; a generated one is not the id of a paper
    named: bool = True
    doi: str = ""  # a draft is recognised in the corpus by it
    # papers of the corpus that this draft was recognised as
    corpus_ids: tuple[str, ...] = ()
    # the sentence of the draft that needs references; empty for the draft as a whole
    context: str = ""
    section: str = ""  # the heading of the draft before that sentence
    # the sentences of its text besides the abstract, without citation markers
    body: tuple[str, ...] = ()
    kind: QueryKind = QueryKind.DRAFT

    def __post_init__(self) -> None:
        _check(
            self,
            "query",
            ("abstract", "venue", "doi", "context"),
            ("authors", "corpus_ids", "body"),
        )
        object.__setattr__(self, "kind", QueryKind(self.kind))
        if not self.title.strip():
            fault = "it has no title, and a query needs one"
            raise InvalidValueError(f"query {self.id!r}", fault)

    @property
    def is_sentence(self) -> bool:
        """Whether a sentence needs references, with or without its draft, and not a draft as a whole."""
        return bool(self.context) or self.kind is QueryKind.SENTENCE

    @classmethod
    def of(cls, paper: Paper) -> Self:
        """Make the query for the references of `paper`.

        The query of a paper without a title is its abstract, or its id if it has no text, so that no query of a split
        is lost.
        """
        has_title = bool(paper.title.strip())
        return cls(
            id=paper.id,
            title=paper.title if has_title else paper.abstract.strip() or paper.id,
            abstract=paper.abstract if has_title else "",
            year=paper.year,
            authors=paper.authors,
            venue=paper.venue,
            doi=paper.doi,
        )


@dataclass(frozen=True, slots=True)
class Hits:
    """Papers that one stage found for one query, as rows of an index, best first.

    Scores fall; equal scores are ordered by rising docid. Both arrays have shape (hits,).
    """

    rows: "Rows"
    scores: "Scores"

    @classmethod
    def ordered(
        cls, rows: "Rows", scores: "Scores", id_rank: "Rows", k: int | None = None
    ) -> Self:
        """Sort papers by falling score, equal scores by rising docid, and keep the best `k`, or all.

        `rows` are distinct; `scores` have their shape, (hits,); `id_rank` is the rank of each row's docid among all
        docids, shape (papers of the index,).
        """
        import numpy as np

        order = np.lexsort((id_rank[rows], -scores))[:k]
        return cls(rows[order], scores[order])

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, keep: "npt.NDArray[np.bool_]") -> Self:
        """Return the hits that a mask selects, shape (hits,)."""
        return type(self)(self.rows[keep], self.scores[keep])

    def best(self, k: int) -> Self:
        """Return the first `k`."""
        return type(self)(self.rows[:k], self.scores[:k])


@dataclass(frozen=True, slots=True)
class Ranking:
    """Papers for one query by docid, best first: falling score, equal scores by rising docid."""

    ids: tuple[str, ...]
    scores: tuple[float, ...]  # same length; comparable only within this ranking

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.scores) == len(set(self.ids)):
            raise ValueError(
                f"{len(set(self.ids))} papers but {len(self.scores)} scores"
            )
        if not_finite := [s for s in self.scores if not isfinite(s)]:
            raise ValueError(f"scores must be finite, got {not_finite[0]}")
        for (a, x), (b, y) in pairwise(zip(self.ids, self.scores, strict=True)):
            if x < y or (x == y and a > b):
                raise ValueError(
                    f"{a!r} is ranked before {b!r} against their scores; build with Ranking.from_scores"
                )

    @classmethod
    def from_scores(cls, scores: Mapping[str, float]) -> Self:
        """Sort papers by falling score, equal scores by rising docid; a ValueError if a score is NaN or infinite."""
        ids = sorted(scores, key=lambda i: (-scores[i], i))
        return cls(tuple(ids), tuple(scores[i] for i in ids))

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class QueryVector:
    """The vector of a query, with access to those of the papers."""

    values: "Vectors"  # shape (dim,)
    # returns those of rows, of length 1, shape (rows, dim)
    of_papers: Callable[["Rows"], "Vectors"]


@dataclass(frozen=True, slots=True, eq=False)
class SentenceScores:
    """What compares papers with each sentence of a query: with title and abstract, or with the body."""

    # shape (sentences, dim); None without vectors
    vectors: Callable[[], "Vectors"] | None = None
    # shape (sentences, papers); None without it
    bm25: Callable[["Rows"], "Vectors"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSet:
    """The candidates of one query, as they flow through the pipeline."""

    hits: Hits  # all of them, in the order of the last stage
    # by the name of a retriever or a later stage: the papers that it found or scored
    hits_by_source: Mapping[str, Hits]
    # calibrated; None if unknown
    probabilities: Hits | None = field(default=None, kw_only=True)
    # None without vectors
    query_vector: QueryVector | None = field(default=None, kw_only=True)
    sentences: SentenceScores = field(default=SentenceScores(), kw_only=True)
    body: SentenceScores = field(default=SentenceScores(), kw_only=True)
    # of the searches for a sentence and for its draft, in [0, 1]: 1 if both find the same paper first
    agreement: float = field(default=1.0, kw_only=True)
    # by "bm25" and "dense": the papers that known sentences cite, see `rank.contexts`; empty if none were searched
    contexts: Mapping[str, Hits] = field(default_factory=dict[str, Hits], kw_only=True)

    @property
    def rows(self) -> "Rows":
        """The row numbers of the papers, shape (papers,)."""
        return self.hits.rows


@dataclass(frozen=True, slots=True)
class StageHit:
    """Rank and score that one stage gave a paper."""

    rank: int  # from 1
    score: float  # comparable only within this stage and query


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One recommended paper, with its rank and score in each stage, and reasons."""

    rank: int  # from 1
    paper: Paper
    score: float  # of the last stage; comparable only within this list
    # calibrated, that the query cites it; None if no stage is
    probability: float | None = None
    stages: Mapping[str, StageHit] = field(default_factory=dict[str, StageHit])
    reasons: tuple[str, ...] = ()
    passage: str = ""  # the sentence of its abstract that is nearest to the draft


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Which papers one query may be given; see `citerec.rules.eligible` for the rule."""

    # papers of a later year are not eligible; a paper without a year is
    year_max: int | None = None
    excluded: frozenset[int] = frozenset()  # row numbers
    year_min: int | None = None  # likewise, of an earlier year


@dataclass(frozen=True, slots=True, eq=False)
class QueryBatch:
    """Queries that go through the pipeline together."""

    queries: Sequence[Query]
    eligible: Sequence[Eligibility]  # one per query
    # rows of each query's known references; empty for none
    cited: Sequence[Sequence[int]] = ()

    def __len__(self) -> int:
        return len(self.queries)

    def known_references(self, position: int) -> Sequence[int]:
        """Return the rows of the references that the query at a place is known to have."""
        return self.cited[position] if self.cited else ()

    def at(self, positions: Sequence[int]) -> Self:
        """Return the queries at some places as a batch, with what it has of each query."""
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        chosen = {
            name: [values[i] for i in positions]
            for name, values in columns.items()
            if values
        }
        return replace(self, **chosen)


def no_progress(task: str, done: int, total: int) -> None:
    """Ignore progress: a `Progress` for callers that show none."""


def no_log(message: str) -> None:
    """Ignore messages: a `Log` for callers that show none."""


def falling(scores: "npt.ArrayLike") -> "npt.NDArray[np.float32]":
    """Return `scores` as float32, each below the previous one: the next smaller float32 where it is not, same shape.

    Scores beyond the range of `single` are clipped.
    """
    import numpy as np

    strict = single(scores)
    if not (strict[1:] < strict[:-1]).all():
        for i in range(1, len(strict)):
            strict[i] = min(strict[i], np.nextafter(strict[i - 1], np.float32(-np.inf)))
    return strict


def single(scores: "npt.ArrayLike") -> "npt.NDArray[np.float32]":
    """Return `scores` as float32, same shape, clipped to +-3e38, which leaves room for millions of smaller ones."""
    import numpy as np

    return np.clip(scores, -3e38, 3e38).astype(np.float32)
