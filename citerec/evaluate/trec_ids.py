"""Two ids that a TREC file cannot tell apart: found before the work, not when its result is written.

White space becomes `_` in a TREC file, so `a b` and `a_b` are one id there.
"""

from collections.abc import Iterable

from citerec.corpus.papers import Papers
from citerec.errors import ConfigError
from citerec.run import Qrels, Run, trec_id

NOT_PLAIN = "[^!-~]"  # a TREC file alters no other character than some of these


def refuse_meeting_ids(ids: Iterable[str], whose: str) -> None:
    """Make sure that different ids stay different in a TREC file.

    Raises:
        ConfigError: If two are the same there.
    """
    written: dict[str, str] = {}
    for given in ids:
        other = written.setdefault(trec_id(given), given)
        if other != given:
            raise ConfigError(
                f"the ids {other!r} and {given!r} of {whose} are the same in a TREC file, where white space "
                "becomes '_'; rename one of them"
            )


def refuse_meeting_papers(papers: Papers) -> None:
    """Make sure of the papers of an index; only ids that a TREC file alters are held in memory."""
    altered = [i for i in papers.ids_like(NOT_PLAIN) if trec_id(i) != i]
    targets = sorted({trec_id(i) for i in altered})
    rows = papers.rows_of(targets).tolist()
    there = (i for i, row in zip(targets, rows, strict=True) if row >= 0)
    refuse_meeting_ids([*there, *altered], "the corpus")


def refuse_meeting_qrels(qrels: Qrels) -> None:
    """Make sure of the queries, and of all that they cite."""
    refuse_meeting_ids(qrels, "the queries")
    refuse_meeting_ids(frozenset[str]().union(*qrels.values()), "the papers of the qrels")


def refuse_meeting_run(run: Run) -> None:
    """Make sure of the queries of a run, and of all that they are given."""
    refuse_meeting_ids(run.rankings, f"the queries of run {run.name!r}")
    found = (ranking.ids for ranking in run.rankings.values())
    refuse_meeting_ids(frozenset[str]().union(*found), f"run {run.name!r}")
