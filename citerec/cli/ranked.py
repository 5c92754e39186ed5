"""The results of `citerec recommend` as they come, and whether a terminal shows them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from citerec.export import Result
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.recommend import BatchResult


def ranked_results(
    queries: tuple[Query, ...],
    results: Iterable["BatchResult"],
    progress: Callable[[str, int, int], None],
    why_nothing: Callable[[Query], str],
) -> Iterator[Result]:
    """Yield the result of each query, and report the progress; `why_nothing` explains an empty one."""
    progress("queries", 0, len(queries))
    for number, (query, result) in enumerate(zip(queries, results, strict=True), start=1):
        yield Result(query, result.items, "" if result.items else why_nothing(query))
        progress("queries", number, len(queries))


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()
