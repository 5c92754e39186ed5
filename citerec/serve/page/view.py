"""Recommendations as the page shows them: marked words, links to papers named in reasons, citations in the list."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.folder import IndexFolder
from citerec.text import WORD, visible, web_address

Parts = list[str]  # text, marked text, text, ...: the odd ones are marked

FIELDS = ("authors", "venue", "doi", "url", "abstract")  # of `citerec.export.jsonl.FIELDS`
_MATCHES = "matches: "  # how the reason of matching words begins
_TITLE = 60  # characters of a title in a reason
_NEAR = 4_000  # papers around a recommended one whose titles are compared with those in its reasons
_SNIPPET = 240  # characters of the abstract in a row, about two lines
_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_SUFFIXES = (
    "ization ations ation ingly ments ment ness ings ing ies ied ers er ed es ly s y e".split()
)


class CorpusView:
    """Describes papers of one index to the page; reuse the object."""

    def __init__(self, index: IndexFolder) -> None:
        self.index = index

    def listed(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the rows of a list, and the citations among its papers.

        Args:
            items: Recommendations as `citerec.export.jsonl.items` writes them, with the fields `FIELDS`.

        Returns:
            `rows`, one per paper in the given order, and `links`: pairs of places, the first cites the second.
        """
        rows = self.index.papers.rows_of([item["id"] for item in items])
        shown = [self._row(item, row) for item, row in zip(items, rows.tolist(), strict=True)]
        return {"rows": shown, "links": self._links(rows)}

    def _row(self, item: dict[str, Any], row: int) -> dict[str, Any]:
        words = matched_words(item["reasons"])
        abstract = visible(item["abstract"])
        return {
            "id": item["id"],
            "rank": item["rank"],
            "title": marked(visible(item["title"]), words),
            "authors": [visible(name) for name in item["authors"]],
            "venue": visible(item["venue"]),
            "year": item["year"],
            "doi": visible(item["doi"]),
            "url": web_address(item["url"]),
            "score": item["score"],
            "probability": item["probability"],
            "stages": item["stages"],
            "citations": len(self.index.graph.cited_by(row)),
            "reasons": [self._reason(reason, row, words) for reason in item["reasons"]],
            "snippet": marked(snippet(abstract, words), words),
            "abstract": marked(abstract, words),
        }

    def _links(self, rows: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
        place = {row: i for i, row in enumerate(rows.tolist())}
        references = self.index.graph.references
        return [
            (i, place[cited])
            for row, i in place.items()
            for cited in references(row).tolist()
            if cited in place
        ]

    def _reason(self, reason: str, row: int, words: Sequence[str]) -> list[dict[str, str]]:
        """Return the pieces of a reason: `text`, with `id` if it is the title of a paper, with `mark` if it matched."""
        if reason.startswith(_MATCHES):
            pieces = [{"text": _MATCHES}]
            for i, word in enumerate(words):
                pieces += [{"text": ", "}] if i else []
                pieces.append({"text": visible(word), "mark": "1"})
            return pieces
        pieces, rest = list[dict[str, str]](), reason
        for quoted, docid in self._named(reason, row):
            before, found, after = rest.partition(quoted)
            if found:
                pieces += [{"text": visible_piece(before)}, {"text": visible(found), "id": docid}]
                rest = after
        return [*pieces, {"text": visible_piece(rest)}] if rest else pieces

    def _named(self, reason: str, row: int) -> list[tuple[str, str]]:
        """Return the titles, as a reason quotes them, of papers around a row, and their ids, in the reason's order."""
        if '"' not in reason:
            return []
        near = self._near(row)
        titles = self.index.papers.texts("title", near).to_pylist()
        named: dict[str, int] = {}
        for other, title in zip(near.tolist(), titles, strict=True):
            if title[:8] in reason and (quoted := f'"{_short(title)}"') in reason:
                named.setdefault(quoted, other)
        ids = dict(zip(named, self.index.papers.ids_at(named.values()), strict=True))
        return sorted(ids.items(), key=lambda pair: reason.index(pair[0]))

    def _near(self, row: int) -> npt.NDArray[np.int32]:
        """Return the papers that reasons name: citing papers, references, and what these cite and are cited by."""
        graph = self.index.graph
        citing, cited = self.index.graph.cited_by(row), graph.references(row)
        further = [graph.references(one) for one in citing[:_NEAR].tolist()]
        further += [graph.cited_by(one) for one in cited[:_NEAR].tolist()]
        near = np.concatenate([citing, cited, *further]).astype(np.int32)
        first = np.sort(
            np.unique(near, return_index=True)[1]
        )  # the closest remain where there are too many
        return near[first][:_NEAR]


def matched_words(reasons: Iterable[str]) -> list[str]:
    """Return the words of the reason of matching words; empty without one."""
    found = [reason for reason in reasons if reason.startswith(_MATCHES)]
    return found[0].removeprefix(_MATCHES).split(", ") if found else []


def marked(text: str, words: Iterable[str]) -> Parts:
    """Return a text in parts; those at odd places are words of the same stem as one of `words`."""
    stems = {stem(word) for word in words}
    parts, end = [""], 0
    for match in WORD.finditer(text) if stems else ():
        if stem(match[0]) in stems:
            parts[-1] += text[end : match.start()]
            parts += [match[0], ""]
            end = match.end()
    parts[-1] += text[end:]
    return parts


@lru_cache(2**16)
def stem(word: str) -> str:
    """Return a word in lower case without its ending, roughly: enough to mark `graphs` for `graph`."""
    word = word.lower()
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word.removesuffix(suffix)
    return word


def snippet(abstract: str, words: Iterable[str]) -> str:
    """Return the sentences of an abstract that hold the most of `words`; its start without any."""
    sentences = _SENTENCE.split(abstract)
    stems = {stem(word) for word in words}
    counts = [len(stems & {stem(word) for word in WORD.findall(one)}) for one in sentences]
    best = counts.index(max(counts))
    text = " ".join(sentences[best:])
    return ("… " if best else "") + (text if len(text) <= _SNIPPET else _cut(text))


def visible_piece(text: str) -> str:
    """Return a piece of a line as `visible` does, with the blanks at its ends."""
    plain = visible(text)
    before = " " if text[:1].isspace() else ""
    return before + plain + (" " if plain and text[-1:].isspace() else "")


def _short(title: str) -> str:
    return shorten(title, _TITLE, placeholder="…")


def _cut(text: str) -> str:
    return text[:_SNIPPET].rsplit(" ", 1)[0] + "…"
