"""Works on corpora of any format without an index: counts, converts, merges and samples them.

A corpus is streamed: memory holds ids, hashes and citations, not texts; of corpora that are merged, the papers.
"""

import gzip
import random
from array import array
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import orjson

from citerec.bibliography.entry import differ_in_doi, is_preprint_doi
from citerec.bibliography.keys import doi_of, name_key, paper_doi, title_key
from citerec.corpus.collector import RecordCounter, byte_progress, identified
from citerec.corpus.readers import (
    SOURCES,
    Source,
    detect_format,
    find_source,
    read_papers,
)
from citerec.errors import ConfigError
from citerec.files.atomic import check_parent, replacing
from citerec.files.checksums import indented_json
from citerec.files.reading import zstd
from citerec.index.graph import Graph, open_graph, write_graph, write_references
from citerec.index.papers import NO_YEAR
from citerec.types import (
    BIBLIOGRAPHIC,
    Context,
    Json,
    Log,
    Paper,
    Progress,
    no_log,
    no_progress,
)

LEVEL = 6  # of gzip
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
FAN = 20  # papers that a sample adds around a paper at once: a paper that thousands cite would fill it
SHORT = 4  # words; shorter titles, such as "Editorial", join only with the same first author
# fields of which the longest value is kept
_LONGEST = (
    "abstract",
    "venue",
    "pages",
    "publisher",
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus and how it is read."""

    source: Source
    format: str
    skip_bad: bool = False

    def papers(
        self,
        collector: RecordCounter,
        task: str = "reading",
        progress: Progress = no_progress,
        log: Log = no_log,
    ) -> Iterator[Paper]:
        """Yield every paper that `collector` keeps; ConfigError if there is none."""
        read = byte_progress(self.source, progress, task)
        for located in read_papers(self.source, self.format, read, log):
            if (paper := collector.add(located)) is not None:
                yield paper
        if not collector.rows:
            fault = f" ({collector.examples[0]})" if collector.examples else ""
            raise ConfigError(f"{self.source.path} holds no valid paper{fault}")


def open_corpus(
    path: Path, format_name: str = "auto", *, skip_bad: bool = False
) -> Corpus:
    """Find the files of a corpus and detect its format; BadInputError if there is none."""
    source = find_source(path)
    return Corpus(source, detect_format(source, format_name), skip_bad)


# --- Counting


def summarise(
    corpus: Corpus, progress: Progress = no_progress, log: Log = no_log
) -> tuple[RecordCounter, set[int]]:
    """Read a corpus once; return its counts, and the years of its papers. Invalid records are counted, not refused."""
    collector = RecordCounter(skip_bad=True)
    citations = array("q")
    counts = collector.counts
    years = set[int]()
    seen: dict[str, set[int]] = {"same_doi": set(), "same_title": set()}
    for paper in corpus.papers(collector, progress=progress, log=log):
        citations.extend(map(hash, set(paper.citations)))
        if paper.year is not None:
            years.add(paper.year)
        doi = paper_doi(paper).lower()
        title = title_key(paper.title)
        counts["with_doi"] += bool(doi)
        for name, key in (
            ("same_doi", doi),
            ("same_title", title and f"{title} {paper.year}"),
        ):
            if key:
                counts[name] += hash(key) in seen[name]
                seen[name].add(hash(key))
    ids = np.fromiter(map(hash, collector.rows), np.int64, len(collector.rows))
    inside = int(np.isin(np.array(citations, np.int64), ids).sum())
    counts["citations_inside"], counts["citations_outside"] = (
        inside,
        len(citations) - inside,
    )
    return collector, years


# --- Writing


def check_target(output: Path, *, force: bool) -> None:
    """Refuse an output of another suffix, in a missing folder, or one that exists if `force` is not set."""
    if not output.name.endswith(SUFFIXES):
        raise ConfigError(f"{output} must be named .jsonl, .jsonl.gz or .jsonl.zst")
    check_parent(output)
    if output.exists() and not force:
        raise ConfigError(
            f"{output} already exists; replace it with --force, or name another file"
        )


@contextmanager
def write_lines(
    output: Path, *, follow: bool = False
) -> Generator[Callable[[bytes], Any]]:
    """Yield a function that writes a line, packed by the suffix; the file appears complete or not at all.

    `follow` is that of `replacing`.
    """
    with (
        replacing(output, follow=follow) as temporary,
        ExitStack() as stack,
    ):
        sink: IO[bytes] | Any = stack.enter_context(temporary.open("wb"))
        if output.suffix == ".gz":
            sink = stack.enter_context(gzip.GzipFile("", "wb", LEVEL, sink, mtime=0))
        elif output.suffix == ".zst":
            sink = stack.enter_context(zstd.open(sink, "wb"))
        yield sink.write


def canonical_line(paper: Paper) -> bytes:
    """Return a paper as a line of canonical JSON; fields without a value are left out, except the title."""
    kept = {
        name: value for name, value in asdict(paper).items() if value or name == "title"
    }
    return orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)


def convert(
    corpus: Corpus, output: Path, progress: Progress = no_progress, log: Log = no_log
) -> RecordCounter:
    """Write a corpus as canonical JSON lines; return the counts. Errors are those of reading and writing."""
    collector = RecordCounter(corpus.skip_bad)
    with write_lines(output, follow=True) as write:
        for paper in corpus.papers(collector, progress=progress, log=log):
            write(canonical_line(paper))
    return collector


# --- Merging: the records of one paper are joined, each field has its most complete value


@dataclass(slots=True)
class _Group:
    """Records that are the same paper, each with the number of its corpus."""

    id: str  # that of its first record, unless another paper has it
    dois: set[str]
    records: list[tuple[int, Paper]]


class _Groups:
    """Records grouped by paper: by DOI, by id and title, else by title and year; never the DOIs of two publications."""

    def __init__(self) -> None:
        self.by_id: dict[str, _Group] = {}  # in the order of their first records
        self.counts: Counter[str] = Counter()
        self._by_doi: dict[str, _Group] = {}
        self._by_title: dict[tuple[object, ...], _Group] = {}
        self._by_stated_id: dict[tuple[int, str], _Group] = {}  # by corpus and id

    def add(self, corpus: int, paper: Paper) -> None:
        """Add a record of a corpus."""
        doi = paper_doi(paper).lower()
        dated = _title_and_year(paper)
        same_id = self.by_id.get(paper.id)
        if same_id and title_key(same_id.records[0][1].title) != title_key(paper.title):
            same_id = None
        candidates = {
            "by_doi": self._by_doi.get(doi),
            "by_id": same_id,
            "by_title": self._by_title.get(dated),
        }
        for rule, group in candidates.items():
            if group and not differ_in_doi(group.dois, [doi]):
                self.counts[rule] += 1
                break
        else:
            docid = paper.id
            number = corpus + 1
            # another paper's, such as a key that two libraries use
            while docid in self.by_id:
                docid = f"{paper.id}#{number}"
                number = number + 1
            self.counts["renamed"] += docid != paper.id
            group = self.by_id[docid] = _Group(docid, set(), [])
        group.records.append((corpus, paper))
        group.dois.add(doi)
        if doi:
            self._by_doi.setdefault(doi, group)
        if dated:
            self._by_title.setdefault(dated, group)
        self._by_stated_id[corpus, paper.id] = group
        self.counts["records"] += 1

    def cited(self, corpus: int, docid: str, corpora: int) -> _Group | None:
        """Return the group to which a citation of a record refers: by the ids of its corpus, by DOI, by other ids."""
        own = self._by_stated_id.get((corpus, docid)) or self._by_doi.get(
            doi_of(docid).lower()
        )
        others = (self._by_stated_id.get((number, docid)) for number in range(corpora))
        return own or next(filter(None, others), None)


def _title_and_year(paper: Paper) -> tuple[object, ...]:
    """Return title and year, and the family name of the first author if the title is short; empty without a title."""
    key = title_key(paper.title)
    if key.count(" ") + 1 >= SHORT:
        return key, paper.year
    family = name_key(paper.authors[0]).rpartition(" ")[2] if paper.authors else ""
    return (key, paper.year, family) if key and family else ()


def merge(
    corpora: Sequence[Corpus],
    output: Path,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> tuple[Counter[str], list[str]]:
    """Join the papers of corpora, in order of precedence, into one file of canonical JSON lines.

    A file beside it, whose name ends in `SOURCES`, counts the records of each corpus. Memory holds the papers of all
    corpora. Errors are those of reading and writing.

    Returns the counts, and examples of records that were skipped.
    """
    groups = _Groups()
    examples = list[str]()
    sources = dict[str, int]()
    for number, corpus in enumerate(corpora):
        collector = RecordCounter(corpus.skip_bad, joins=True)
        counted = groups.counts["records"]
        for paper in corpus.papers(
            collector, f"reading {corpus.source.path.name}", progress, log
        ):
            groups.add(number, paper)
        examples += collector.examples
        records = collector.counts["duplicates"]
        records += groups.counts["records"] - counted
        sources |= identified(corpus.source, records)
    counts = groups.counts
    with write_lines(output, follow=True) as write:
        for group in groups.by_id.values():
            cited: dict[str, None] = {}
            contexts: list[Context] = []
            for number, paper in group.records:
                ids: dict[str, str] = {}  # those in the merged corpus, by stated id
                for docid in paper.citations:
                    other = groups.cited(number, docid, len(corpora))
                    if other is not group:
                        ids[docid] = other.id if other else docid
                cited |= dict.fromkeys(ids.values())
                of_record = with_ids(paper.contexts, ids)
                if len(of_record) > len(contexts):
                    contexts = of_record
            merged = merged_paper([paper for _, paper in group.records])
            merged = replace(
                merged,
                id=group.id,
                citations=tuple(cited),
                contexts=tuple(contexts),
            )
            write(canonical_line(merged))
            counts["papers"] += 1
            counts["citations"] += (
                inside := sum(docid in groups.by_id for docid in cited)
            )
            counts["outside"] += len(cited) - inside
        record = indented_json({"identified": sources, "counts": counts})
        beside = output.with_name(f"{output.name}{SOURCES}")
        with write_lines(beside, follow=True) as write_record:
            write_record(record)
    return counts, examples


def with_ids(contexts: Sequence[Context], ids: Mapping[str, str]) -> list[Context]:
    """Return contexts that cite papers by other ids; what has none is left out, and so is a context without any."""
    renamed = [
        replace(context, cites=tuple(ids[i] for i in context.cites if i in ids))
        for context in contexts
    ]
    return [context for context in renamed if context.cites]


def merged_paper(records: Sequence[Paper]) -> Paper:
    """Return one paper with the most complete value of each field; equal ones are of the first record.

    The title is the first that is not in capitals, the authors are the most and the longest names, citations are all.
    The DOI and what belongs to it are those of the publication, if another record is its preprint.
    """
    published = sorted(records, key=lambda paper: is_preprint_doi(paper_doi(paper)))
    titles = [paper.title for paper in records if paper.title]
    values: Json = {
        name: next(filter(None, (getattr(paper, name) for paper in published)), "")
        for name in BIBLIOGRAPHIC
    }
    for name in _LONGEST:
        values[name] = max((getattr(paper, name) for paper in records), key=len)
    return replace(
        records[0],
        title=next(
            (title for title in titles if not title.isupper()),
            titles[0] if titles else "",
        ),
        year=next((paper.year for paper in records if paper.year is not None), None),
        authors=max(
            (p.authors for p in records), key=lambda a: (len(a), sum(map(len, a)))
        ),
        citations=tuple(
            dict.fromkeys(cited for paper in records for cited in paper.citations)
        ),
        retracted=any(paper.retracted for paper in records),
        **values,
    )


# --- Sampling


def sample(
    corpus: Corpus,
    output: Path,
    n: int,
    seed: int,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> dict[str, int]:
    """Write `n` papers of a corpus that are connected by citations; the same seed gives the same papers.

    The corpus is read twice. Papers keep their order and their citations to papers of the sample; splits are not
    written, so that an index of the sample is split by year. A corpus without citations gives a random sample.

    Returns the numbers of `papers`, of `citations` among them, and of `parts` of the graph from which they were taken.
    """
    collector = RecordCounter(corpus.skip_bad)
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        with write_references(Path(folder)) as add_references:
            for row, paper in enumerate(
                corpus.papers(collector, progress=progress, log=log)
            ):
                add_references(row, paper.citations)
        write_graph(Path(folder), collector.rows, [NO_YEAR] * len(collector.rows))
        graph = open_graph(Path(folder), len(collector.rows))
        if not len(graph.indices):
            log("this corpus has no citations: the sample is random")
        chosen, parts = _walk(graph, n, rng)
    ids = list(collector.rows)
    kept = {ids[row] for row in chosen}
    citations = 0
    with write_lines(output, follow=True) as write:
        for paper in corpus.papers(RecordCounter(corpus.skip_bad), "writing", progress):
            if paper.id in kept:
                inside = tuple(cited for cited in paper.citations if cited in kept)
                citations += len(inside)
                contexts = with_ids(
                    paper.contexts, dict(zip(inside, inside, strict=True))
                )
                write(
                    canonical_line(
                        replace(paper, citations=inside, contexts=tuple(contexts))
                    )
                )
    return {"papers": len(kept), "citations": citations, "parts": parts}


def _walk(graph: Graph, n: int, rng: random.Random) -> tuple[set[int], int]:
    """Return rows found breadth-first from random papers, and from how many papers the search began."""
    degrees = graph.lengths + graph.citation_counts()
    starts = list(range(len(degrees)))
    rng.shuffle(starts)
    # papers with citations first: others are parts of their own
    starts.sort(key=lambda row: not degrees[row])
    chosen = set[int]()
    parts = 0
    for start in starts:
        if len(chosen) >= n:
            break
        if start in chosen:
            continue
        parts += 1
        chosen.add(start)
        waiting = deque([start])
        while waiting and len(chosen) < n:
            row = waiting.popleft()
            around = [*graph.references(row).tolist(), *graph.cited_by(row).tolist()]
            others = [other for other in dict.fromkeys(around) if other not in chosen]
            drawn = rng.sample(others, FAN) if len(others) > FAN else others
            drawn = drawn[: n - len(chosen)]
            chosen.update(drawn)
            waiting.extend(drawn)
            if len(others) > FAN:
                waiting.append(row)
    return chosen, parts
