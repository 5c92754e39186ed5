"""What a recommender returns for one query: a sequence that can be shown, exported and made a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, overload

from citerec.display import percentage, plural, some_of, visible
from citerec.errors import ConfigError
from citerec.export import Format, Result, pieces
from citerec.files.arrays import Rows
from citerec.index.folder import IndexFolder
from citerec.index.papers import NO_YEAR
from citerec.retrieve.fuse import ranks_and_scores
from citerec.rules.eligible import in_years, mask
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Json,
    Paper,
    Query,
    QueryKind,
    Recommendation,
    StageHit,
)

if TYPE_CHECKING:
    from citerec.match.append import Appended


@dataclass(frozen=True, slots=True, repr=False)
class Recommendations(Result, Sequence[Recommendation]):
    """The papers recommended for one query, best first; empty if nothing was found."""

    # entries of the lists of papers that are not in the corpus
    not_found: tuple[str, ...] = ()
    # what the user should know, such as that the draft is in the corpus under another id
    notices: tuple[str, ...] = ()
    is_uncovered: bool = False  # whether the last notice is that of another field

    def __len__(self) -> int:
        return len(self.recommendations)

    @overload
    def __getitem__(self, index: int) -> Recommendation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Recommendation, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> Recommendation | tuple[Recommendation, ...]:
        return self.recommendations[index]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the papers, best first."""
        return tuple(item.paper.id for item in self.recommendations)

    @property
    def papers(self) -> tuple[Paper, ...]:
        """The papers, best first."""
        return tuple(item.paper for item in self.recommendations)

    def without(self, ids: Iterable[str], empty_reason: str) -> "Recommendations":
        """Return the list without some papers; the others keep their ranks."""
        left_out = {*ids}
        rest = tuple(item for item in self if item.paper.id not in left_out)
        reason = self.empty_reason if rest or not self else empty_reason
        return replace(self, recommendations=rest, empty_reason=reason)

    def to_dicts(self, fields: Sequence[str] = ()) -> list[Json]:
        """Return one dict per paper, with the keys of `citerec recommend --format json`.

        Args:
            fields: More keys, of `citerec.export.jsonl.FIELDS`, such as `authors`, `venue`, `doi`, `abstract`.

        Raises:
            ConfigError: If there is no such field.
        """
        from citerec.export.jsonl import check_fields, items

        check_fields(fields)
        return items(self, fields)

    def export(self, format: str) -> str:
        """Return the papers in a format of `citerec recommend --format`, such as `bibtex`, `ris`, `csl` or `trec`.

        Raises:
            ConfigError: If there is no such format.
        """
        return "".join(pieces([self], format, batch=False))

    def append(
        self, path: str | PathLike[str], *, pick: Iterable[int] | None = None
    ) -> "Appended":
        """Add the papers to a BibTeX or RIS file as `citerec.match.append.append_papers` does.

        `pick` holds the ranks of the papers, from 1; all by default.

        Raises:
            CiterecError: If there is no such rank, the file is broken, or it cannot be written.
        """
        from citerec.match.append import append_papers

        papers = {item.rank: item.paper for item in self}
        ranks = papers if pick is None else sorted({*pick})
        if wrong := [rank for rank in ranks if rank not in papers]:
            raise ConfigError(
                f"no rank {wrong[0]}; there are {len(self)} recommendations"
            )
        return append_papers(Path(path), [papers[rank] for rank in ranks])

    def __str__(self) -> str:
        lines = self.export(Format.TABLE).rstrip("\n")
        missing = (
            [f"Not in this corpus: {some_of(self.not_found)}"] if self.not_found else []
        )
        return "\n".join([lines, *map(visible, self.notices), *missing])

    __repr__ = __str__


def as_recommendations(
    candidates: CandidateSet, papers: Mapping[int, Paper]
) -> tuple[Recommendation, ...]:
    """Return candidates as recommendations, in their order; `papers` holds each candidate by row."""
    rows = candidates.rows
    ranks_of = {
        name: _places(hits, rows) for name, hits in candidates.hits_by_source.items()
    }
    values: list[float | None] = [None] * len(rows)
    if candidates.probabilities:
        values = [
            value if rank else None
            for rank, value in _places(candidates.probabilities, rows)
        ]
    scored = zip(rows.tolist(), candidates.hits.scores.tolist(), values, strict=True)
    return tuple(
        Recommendation(
            rank=place + 1,
            paper=papers[row],
            score=score,
            probability=probability,
            stages={
                name: StageHit(*hits[place])
                for name, hits in ranks_of.items()
                if hits[place][0]
            },
        )
        for place, (row, score, probability) in enumerate(scored)
    )


def relative_scores(items: Sequence[Recommendation]) -> tuple[Recommendation, ...]:
    """Return the recommendations for a sentence: each score is e to the power of its difference to that of the first.

    A raw score has no scale that a user knows, and probabilities are calibrated for drafts, not for sentences.
    """
    relative = [exp(item.score - items[0].score) for item in items]
    scored = zip(items, relative, strict=True)
    return tuple(replace(item, score=score, probability=None) for item, score in scored)


def _places(hits: Hits, rows: Rows) -> list[tuple[int, float]]:
    """Return the rank and the score of each row in the hits of a stage; rank 0 if it is not a hit."""
    ranks, scores = ranks_and_scores(hits, rows)
    return list(zip(ranks.tolist(), scores.tolist(), strict=True))


# --- notices about a list

UNLIKELY = 0.05  # no paper of another field is more probable


def explain_no_results(index: IndexFolder, rule: Eligibility, kind: QueryKind) -> str:
    """Return why no paper was found: no paper is eligible, or no eligible paper has a word of the query."""
    years = index.papers.years
    papers = len(index.papers)
    outside = papers - int(in_years(rule, years).sum())
    late = f"later than {rule.year_max}"
    early = f"earlier than {rule.year_min}"
    which = (
        late
        if rule.year_min is None
        else f"{early} or {late}"
        if rule.year_max
        else early
    )
    if outside == papers:
        known = years[years != NO_YEAR]
        return (
            f"all {papers:,} papers are {which}: they are of {known.min()} to {known.max()}; "
            "choose other years, or correct the draft's year"
        )
    if not (searchable := int(mask(rule, years).sum())):
        others = f" and {outside:,} {which}" if outside else ""
        barred = "excluded or retracted" if len(index.papers.retracted) else "excluded"
        return (
            f"none of {plural(papers, 'paper')} is eligible: {papers - outside:,} {barred}{others}; "
            "exclude fewer papers, or name fewer that the draft cites"
        )
    searched = plural(searchable, "eligible paper")
    if kind is QueryKind.REFERENCES:
        return f"no citation and no word of a title connects the references with the {searched}"
    vectors = (
        "its vectors were not searched; leave out --encoder none"
        if index.is_embedded
        else "this index has no vectors for a semantic search; add an abstract, or vectors: "
        f"citerec encode --index {index.path} --encoder MODEL"
    )
    return f"no word of the {kind} occurs in the {searched}, and {vectors}"


def unreliable_notice(
    query: Query, candidates: CandidateSet, language: str, *, covered: bool
) -> tuple[str, bool]:
    """Return a notice if no word of a query was found, or the corpus does not cover a draft; else an empty one.

    The second value is whether the notice is that the corpus does not cover the draft.
    `language` is that of the draft where the corpus has another, else empty.
    `covered` says that the corpus has some of its references: what is unlikely then is the rest of its papers.
    """
    words = candidates.hits_by_source.get("bm25")
    likely = candidates.probabilities
    if query.kind is QueryKind.REFERENCES or not len(candidates.hits):
        return "", False
    if words is not None and not len(words):
        return (
            f"no word of this {query.kind} occurs in an eligible paper, so the list may be unreliable; "
            "check the spelling and the language, or add an abstract"
        ), False
    if language and not query.is_sentence:
        return (
            f"this draft is in {language}, and most of its words occur in no paper of this corpus; translate title and "
            f"abstract, or search a corpus in {language}"
        ), False
    if query.is_sentence or not likely or likely.scores[0] > UNLIKELY:
        return "", False
    if covered:
        return (
            f"the corpus has little else for this draft: no other paper is above {percentage(UNLIKELY)}"
        ), False
    return (
        f"the corpus does not cover this draft: no paper has a probability above {percentage(UNLIKELY)}; "
        f"search a corpus of its field{'' if query.abstract else ', or add an abstract'}"
    ), True
