"""The results of `citerec recommend` as they come, and whether a terminal shows them."""

import sys
from collections.abc import Callable, Iterable, Iterator

from citerec.bibliography.doi import paper_doi
from citerec.export import Result
from citerec.text import plural


def logging_empty(results: Iterable[Result], log: Callable[[str], None]) -> Iterator[Result]:
    """Yield results, and log at the end why lists are empty, for formats that only show papers."""
    drafts, empty = 0, list[Result]()
    for result in results:
        drafts += 1
        if not result.recommendations:
            empty.append(result)
        yield result
    if not empty:
        return
    many = f" for {len(empty):,} of {drafts:,} drafts (the first: {empty[0].query.id})"
    log(f"nothing was found{many if drafts > 1 else ''}: {empty[0].why_nothing}")


def logging_missing_dois(results: Iterable[Result], log: Callable[[str], None]) -> Iterator[Result]:
    """Yield results, and log at the end how many of their papers have no DOI, for the format that lists DOIs."""
    has_doi: dict[str, bool] = {}  # by id of the paper
    for result in results:
        papers = [item.paper for item in result.recommendations]
        has_doi |= {paper.id: bool(paper_doi(paper)) for paper in papers}
        yield result
    if missing := list(has_doi.values()).count(False):
        verb = "has no DOI and is" if missing == 1 else "have no DOI and are"
        log(
            f"{missing:,} of {plural(len(has_doi), 'recommended paper')} {verb} left out; --format bibtex, ris or csl "
            "writes all papers"
        )


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()
