"""Chooses the papers of a corpus: the works of the references, then what they cite and what cites them, in rounds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from rapidfuzz import fuzz

from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import arxiv_dois, doi_of, title_key
from citerec.collect.client import RefusedError
from citerec.collect.sources import PAPER_ID, WORK_ID, Source, citation_count
from citerec.files.arrays import batched
from citerec.match.papers import rows_of_entry, similar_titles
from citerec.types import Paper, Progress

# citing works of one paper that are listed
LEAST_CITING = 100
MOST_CITING = 1000
EXPANDED = 50  # papers of a further round
MAX_ROUNDS = 40
HEADER = ("reference", "title", "ids", "reason", "closest title found", "similarity %")


def identifier(text: str) -> str:
    """Return `doi:…`, `arxiv:…` or `id:…` for an id that a service knows; empty for others, such as BibTeX keys."""
    text = text.strip()
    if doi := next(iter(arxiv_dois(text)), "") or doi_of(text):
        return f"doi:{doi.lower()}".replace("doi:10.48550/arxiv.", "arxiv:")
    if match := WORK_ID.fullmatch(text):
        return f"id:{match[1].upper()}"
    return f"id:{text}" if PAPER_ID.fullmatch(text) else ""


def identifiers(entry: Entry) -> list[str]:
    """Return the ids of an entry that a service knows."""
    return list(dict.fromkeys(filter(None, map(identifier, entry.ids))))


def resolve(
    entries: Sequence[Entry], source: Source, progress: Progress
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the ids of the works of the entries, and the cells of `HEADER` for each entry that is not found.

    An id is preferred. A title must match as in `citerec recommend --cited`: over small differences, unless year or
    authors contradict it. Of several works with the same title, the most cited one is chosen. An entry that the
    service refuses is not found, and its reason is what the service states.
    """
    by_id = source.find_ids(
        list(dict.fromkeys(i for entry in entries for i in identifiers(entry)))
    )
    found: list[str] = []
    unresolved: list[tuple[str, ...]] = []
    for number, entry in enumerate(entries, start=1):
        progress("resolving", number, len(entries))
        ids = identifiers(entry)
        works = list[Paper]()
        if known := next((by_id[i] for i in ids if i in by_id), ""):
            found.append(known)
            continue
        reason = (f"unknown to {source.service.title}", "", "")
        if key := title_key(entry.title):
            try:
                works = source.find_title(entry.title)
            except RefusedError as error:
                reason = (str(error), "", "")
        elif not ids:
            reason = ("neither a DOI, an arXiv id nor a title", "", "")
        titles = [work.title for work in works]
        similar = similar_titles([entry.title], enumerate(titles))[entry.title]
        if rows := rows_of_entry(entry, similar, dict(enumerate(works))):
            matching = (works[row] for row in rows)
            found.append(
                min(matching, key=lambda work: (-citation_count(work), work.id)).id
            )
            continue
        if titles:
            similarity, closest = max(
                (fuzz.ratio(key, title_key(t)), t) for t in titles
            )
            reason = ("title, year or authors differ", closest, f"{similarity:.0f}")
        unresolved.append((entry.place, entry.title, " ".join(ids), *reason))
    return list(dict.fromkeys(found)), unresolved


def snowball(
    source: Source, seeds: Sequence[str], papers: int, progress: Progress
) -> list[str]:
    """Return the ids of at most `papers` works around the seeds; the seeds are first.

    The first round expands the seeds. While there is room, further rounds expand the best works so far, `EXPANDED` at a
    time. A round ranks what it found as `_best` states. There are never fewer than seeds.
    """
    chosen = dict.fromkeys(seeds)
    waiting = list(seeds)
    touched: defaultdict[str, set[str]] = defaultdict(set)
    for number in range(MAX_ROUNDS):
        size = EXPANDED if number else len(seeds)
        batch = waiting[:size]
        waiting = waiting[size:]
        if len(chosen) >= papers or not batch:
            break
        source.fetch(batch)
        for expanded, references in source.references(batch).items():
            for reference in references:
                touched[reference].add(expanded)
        listed: set[str] = set()
        for citing, cited in source.citing(
            batch, LEAST_CITING if number else citing_each(papers, len(seeds))
        ):
            listed.add(cited)
            touched[citing].add(cited)
            progress("citing works of", len(listed), len(batch))
        for paper in chosen:
            touched.pop(paper, None)
        new = _best(source, touched, frozenset(seeds), papers - len(chosen))
        chosen.update(dict.fromkeys(new))
        waiting += new
        progress("choosing", min(len(chosen), papers), papers)
    return list(chosen)


def citing_each(papers: int, seeds: int) -> int:
    """Return how many citing works of each seed are listed: about twice as many in all as papers are wanted."""
    return min(max(2 * papers // max(seeds, 1), LEAST_CITING), MOST_CITING)


def newer(
    source: Source, seeds: Sequence[str], since: str, known: Set[str], papers: int
) -> list[str]:
    """Return at most `papers` works that cite the seeds, were published since a day, and are not known yet."""
    source.fetch(seeds)
    touched: defaultdict[str, set[str]] = defaultdict(set)
    for citing, cited in source.citing(seeds, MOST_CITING, since):
        if citing not in known:
            touched[citing].add(cited)
    return _best(source, touched, frozenset(seeds), papers)


def _best(
    source: Source, touched: Mapping[str, Set[str]], seeds: Set[str], most: int
) -> list[str]:
    """Return the best `most` works that the service has with a title.

    Those with more seeds touched are better, then those with more expanded papers touched, with more citations, and
    with a lower id. `touched` holds for each paper the expanded papers that cite it or that it cites.
    """
    counts = source.times_cited(sorted(touched))
    order = sorted(
        touched,
        key=lambda paper: (
            -len(touched[paper] & seeds),
            -len(touched[paper]),
            -counts[paper],
            paper,
        ),
    )
    found: list[str] = []
    # the others in place of those that do not exist
    for part in (order[:most], *batched(order[most:], 100)):
        if len(found) < most:
            works = source.fetch(part)
            found += [i for i in part if i in works]
    return found[:most]
