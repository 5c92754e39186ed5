"""Decides which records of several corpora are the same paper: by DOI, by id and title, else by title and year."""

from array import array
from collections import Counter
from dataclasses import dataclass, field

from citerec.bibliography.doi import doi_of, paper_doi
from citerec.bibliography.keys import title_key
from citerec.corpus.readers.exports import author_key
from citerec.types import Paper

SHORT = 4  # words; shorter titles, such as "Editorial", join only with the same first author


@dataclass(slots=True)
class Groups:
    """Records that are the same paper, by numbers from 0 in the order of their first records.

    Two records with different DOIs are never joined. Memory holds keys, not texts.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    ids: list[str] = field(
        default_factory=list[str]
    )  # the id of each group: that of its first record
    sizes: "array[int]" = field(default_factory=lambda: array("i"))  # records of each group
    _has_doi: "array[int]" = field(
        default_factory=lambda: array("q")
    )  # hash of its DOI, 0 for none
    _titles: "array[int]" = field(
        default_factory=lambda: array("q")
    )  # hash of the title of its first record
    _by_doi: dict[str, int] = field(default_factory=dict[str, int])
    _by_title: dict[int, int] = field(default_factory=dict[int, int])
    _by_id: list[dict[str, int]] = field(default_factory=list[dict[str, int]])  # one per corpus
    _taken: dict[str, int] = field(default_factory=dict[str, int])  # groups by their ids

    def start_corpus(self) -> None:
        """Begin with the records of the next corpus, which has ids of its own."""
        self._by_id.append({})

    def add(self, paper: Paper) -> int:
        """Add a record of the current corpus; return its group."""
        doi, title = paper_doi(paper).lower(), hash(title_key(paper.title))
        joined = self._joined(paper, doi, title)
        group = self._new(paper.id, title) if joined is None else joined
        self.sizes[group] += 1
        if doi and not self._has_doi[group]:
            self._has_doi[group] = hash(doi)
            self._by_doi.setdefault(doi, group)
        if key := _title_and_year(paper):
            self._by_title.setdefault(key, group)
        self._by_id[-1][paper.id] = group
        self.counts["records"] += 1
        return group

    def _joined(self, paper: Paper, doi: str, title: int) -> int | None:
        if doi and (group := self._by_doi.get(doi)) is not None:
            self.counts["by_doi"] += 1
            return group
        group = self._taken.get(paper.id)
        if group is not None and self._titles[group] == title and self._may_join(group, doi):
            self.counts["by_id"] += 1
            return group
        group = self._by_title.get(_title_and_year(paper))
        if group is not None and self._may_join(group, doi):
            self.counts["by_title"] += 1
            return group
        return None

    def _may_join(self, group: int, doi: str) -> bool:
        return not doi or self._has_doi[group] in {0, hash(doi)}

    def _new(self, docid: str, title: int) -> int:
        group = len(self.ids)
        if docid in self._taken:  # another paper, such as of a BibTeX key that two libraries use
            self.counts["renamed"] += 1
            number = len(self._by_id)
            while f"{docid}#{number}" in self._taken:
                number += 1
            docid = f"{docid}#{number}"
        self._taken[docid] = group
        self.ids.append(docid)
        self.sizes.append(0)
        self._has_doi.append(0)
        self._titles.append(title)
        return group

    def is_paper(self, docid: str) -> bool:
        """Whether an id is that of a group."""
        return docid in self._taken

    def cited(self, corpus: int, docid: str) -> int | None:
        """Return the group to which a citation of a record refers: by the ids of its corpus, by DOI, by other ids."""
        tables = (self._by_id[corpus], *(ids for n, ids in enumerate(self._by_id) if n != corpus))
        if (group := tables[0].get(docid)) is not None:
            return group
        if (doi := doi_of(docid)) and (group := self._by_doi.get(doi.lower())) is not None:
            return group
        return next((ids[docid] for ids in tables[1:] if docid in ids), None)


def _title_and_year(paper: Paper) -> int:
    """Return a hash of title and year, and of the first author if the title is short; 0 without a title."""
    key = title_key(paper.title)
    if not key:
        return 0
    if key.count(" ") + 1 >= SHORT:
        return hash((key, paper.year))
    author = paper.authors[0] if paper.authors else ""
    family = author_key(author).split(" ")[0] or title_key(author).rpartition(" ")[2]
    return hash((key, paper.year, family)) if family else 0
