"""The stages of the pipeline, as protocols: what a part of another package, or an object of a program, provides.

| stage | what it does | entry points | protocol |
|---|---|---|---|
| retriever | finds candidates | `citerec.retrievers`: `(IndexFolder) -> Retriever` | `Retriever`, may be `Built` |
| first stage | retrieves and fuses a candidate set for each query | | `FirstStage` |
| stage | adds candidates, scores them or reorders them | | `Stage` |
| reranker | scores pairs of a query and a paper | `citerec.rerankers`: `(IndexFolder) -> Reranker` | `Reranker` |
| learning-to-rank model | scores candidates by their features | | `RankModel` |
| encoder | turns papers and drafts into vectors | `citerec.encoders` | `citerec.encode.encoder.Encoder` |
| feature | a column of the learning-to-rank model | `citerec.features`: a `Feature` | `citerec.rank.features.Feature` |

`docs/guides/extend.md` has an example of each. What a retriever returns is checked by `checked_hits`, once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from citerec.errors import ConfigError, shown
from citerec.files.arrays import Numbers, Scores
from citerec.index.folder import IndexFolder
from citerec.plugins import Plugins
from citerec.rules.eligible import within
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Paper,
    Progress,
    Query,
    QueryBatch,
)


class Retriever(Protocol):
    """Finds candidates in an index: a first-stage retriever; see docs/guides/extend.md."""

    @property
    def name(self) -> str:
        """The name of its hits."""
        ...

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return one `Hits` per query, in the order given: its `k` best eligible papers.

        Fewer than `k` are returned only if fewer eligible papers match.
        """
        ...


class Built(Protocol):
    """The class of a retriever that keeps data in the index; its `build` needs no instance."""

    def build(self, index: IndexFolder, folder: Path) -> None:
        """Write what the retriever reads into an empty folder, which becomes a part of the index.

        It is called for `citerec index CORPUS --retriever NAME`, and again when papers are added or removed. The
        retriever finds the folder by `index.plugin(NAME)`.
        """
        ...


class FirstStage(Protocol):
    """Retrieves the candidate set of each query; `citerec.retrieve.hybrid.HybridRetriever` is one."""

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the `k` best eligible papers of each query."""
        ...


class Stage(Protocol):
    """A stage after the first: adds candidates to candidate sets, scores them or reorders them.

    The same batch always gives the same result.
    """

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = ...,
    ) -> Sequence[CandidateSet]:
        """Return one candidate set per query, in the order given."""
        ...


class Reranker(Protocol):
    """A user's reranker; it may have an attribute `depth`, how many candidates it scores (50 by default)."""

    def score(self, query: Query, papers: Sequence[Paper]) -> Sequence[float]:
        """Return one finite score per paper, in the order given; a higher one is better."""
        ...


class RankModel(Protocol):
    """Scores candidates by their features."""

    def score(self, features: Scores) -> Numbers:
        """Return the score of each paper, shape (papers,); a higher one is better.

        `features` has the columns `citerec.rank.features.NAMES`, then the added ones; NaN where a value is unknown.
        """
        ...


def check_stages(stages: object, method: str) -> None:
    """Refuse what is no list of stages: objects, not classes, that have a method; a ConfigError."""
    given: Sequence[object] = stages if isinstance(stages, Sequence) else ()
    wrong = [
        stage
        for stage in given
        if isinstance(stage, type) or not callable(getattr(stage, method, None))
    ]
    if wrong or not given:
        found = wrong[0] if wrong else stages
        raise ConfigError(
            f"{shown(found)} is no stage: expected an object with a method {method}(...), as in docs/guides/extend.md"
        )


def checked_scores(returned: Any, name: str, count: int) -> Scores:
    """Return the scores of so many papers by an object of a user, float32; a ConfigError if they are none."""
    scores = np.asarray(returned, np.float32)
    if scores.shape != (count,) or not np.isfinite(scores).all():
        raise ConfigError(
            f"{name}.score must return {count} finite numbers, one per paper, got shape {scores.shape}"
        )
    return scores


def checked_hits(
    returned: Any,
    name: str,
    index: IndexFolder,
    eligible: Sequence[Eligibility],
    k: int,
) -> list[Hits]:
    """Return what a retriever of another package found: one `Hits` per query, ordered by score, of at most `k` papers.

    Rows and scores may be lists or arrays. ConfigError, which names the retriever, if these are not one `Hits` per
    query, or if a paper is not in the index, comes twice, is not eligible for its query or has no finite score.
    """

    def fault(what: str) -> ConfigError:
        return ConfigError(
            f"the retriever {name!r} {what}; it must return one citerec.Hits per query, of distinct rows that are "
            "eligible (citerec.rules.eligible.within) and their scores"
        )

    if not isinstance(returned, Sequence) or len(returned) != len(eligible):
        raise fault(f"returned no list of {len(eligible):,} results")
    checked = list[Hits]()
    for hits, rule in zip(returned, eligible, strict=True):
        try:
            rows = np.asarray(hits.rows)
            scores = np.asarray(hits.scores, np.float32)
        except (AttributeError, TypeError, ValueError) as error:
            raise fault(
                f"returned {type(hits).__name__} for a query: {error}"
            ) from error
        if (
            rows.shape != scores.shape
            or rows.ndim != 1
            or (rows.dtype.kind not in "iu" and len(rows))
        ):
            raise fault(
                f"returned rows {rows.dtype} {rows.shape} with scores of {scores.shape}"
            )
        rows = rows.astype(np.int64)
        if len(outside := rows[(rows < 0) | (rows >= len(index.papers))]):
            raise fault(
                f"returned row {outside[0]}, but the index has {len(index.papers):,} papers"
            )
        if len(np.unique(rows)) < len(rows):
            raise fault("returned a paper twice for a query")
        if not np.isfinite(scores).all():
            raise fault("returned a score that is not finite")
        rows = rows.astype(np.int32)
        allowed = within(rule, index.papers.years, rows)
        if not allowed.all():
            count = int((~allowed).sum())
            raise fault(
                f"returned {count:,} of {len(rows):,} papers that a query may not be given"
            )
        checked.append(Hits.ordered(rows, scores, index.id_rank, k))
    return checked


def builders(names: Sequence[str]) -> dict[str, Built]:
    """Return registered retrievers that keep data in an index; ConfigError if one is unknown, or keeps nothing."""
    found = {name: Plugins.RETRIEVERS.load(name) for name in names}
    if without := [
        name for name, factory in found.items() if not hasattr(factory, "build")
    ]:
        raise ConfigError(
            f"the retriever {without[0]!r} keeps nothing in an index; name it where you search: "
            f"citerec recommend --retriever {without[0]}"
        )
    return found
