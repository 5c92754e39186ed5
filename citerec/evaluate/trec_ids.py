"""Finds ids that are equal in a TREC file, before a run is computed.

White space becomes `_` in a TREC file, so `a b` and `a_b` are the same id there.
"""

from collections.abc import Iterable

from citerec.corpus.papers import Papers
from citerec.errors import ConfigError
from citerec.run import Qrels, Run, trec_id

NOT_PLAIN = "[^!-~]"  # only ids with such characters can change in a TREC file


def refuse_meeting_ids(ids: Iterable[str], whose: str) -> None:
    """Refuse different ids that are equal in a TREC file.

    Raises:
        ConfigError: If there are two.
    """
    written: dict[str, str] = {}
    for original in ids:
        other = written.setdefault(trec_id(original), original)
        if other != original:
            raise ConfigError(
                f"the ids {other!r} and {original!r} of {whose} are the same in a TREC file, where white space "
                "becomes '_'; rename one of them"
            )


def refuse_meeting_papers(papers: Papers) -> None:
    """Check the papers of an index; only ids that change in a TREC file are held in memory."""
    altered = [i for i in papers.ids_like(NOT_PLAIN) if trec_id(i) != i]
    targets = sorted({trec_id(i) for i in altered})
    rows = papers.rows_of(targets).tolist()
    existing = (i for i, row in zip(targets, rows, strict=True) if row >= 0)
    refuse_meeting_ids([*existing, *altered], "the corpus")


def refuse_meeting_qrels(qrels: Qrels) -> None:
    """Check the ids of the queries and of all gold papers."""
    refuse_meeting_ids(qrels, "the queries")
    refuse_meeting_ids(frozenset[str]().union(*qrels.values()), "the papers of the qrels")


def refuse_meeting_run(run: Run) -> None:
    """Check the ids of the queries of a run and of all its papers."""
    refuse_meeting_ids(run.rankings, f"the queries of run {run.name!r}")
    rankings = (ranking.ids for ranking in run.rankings.values())
    refuse_meeting_ids(frozenset[str]().union(*rankings), f"run {run.name!r}")
