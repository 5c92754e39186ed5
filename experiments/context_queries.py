"""Sentences that need references, with their gold: from full texts in JATS XML, from TREC topics, or from abstracts.

- JATS (PubMed Central): the sentences with an `<xref ref-type="bibr">`. Gold are the papers that they cite, found in
  the corpus by DOI or title. The draft is the article's title and abstract. Of a range such as [3-5] only the ends
  have an `xref`, so only these are gold.
- TREC: topics (`<top>` blocks with `<num>` and `<title>`, or lines of id, tab, sentence) and qrels. There is no draft.
- Abstracts, a substitute where a corpus has no full texts: see `proxies`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from defusedxml.ElementTree import parse

from citerec.bibliography.doi import doi_of
from citerec.bibliography.paper_list import Entry, PaperList
from citerec.corpus.papers import Papers
from citerec.drafts.context import without_markers
from citerec.encode.sentences import sentences
from citerec.errors import BadInputError
from citerec.evaluate.protocol import load_task
from citerec.folder import IndexFolder
from citerec.inputs import read_lines
from citerec.matching.recognise import listed_rows
from citerec.run import read_qrels
from citerec.text import STOP_WORDS, WORD
from citerec.types import Query, QueryKind

SHARED = 2  # words of a sentence that the title of a gold reference has at least, in `proxies`
FEWEST_WORDS = 4  # of a sentence
_REF, _END = "\ue000", "\ue001"  # around the ids of a citation, in the text of a paragraph
_CITED = re.compile(f"{_REF}([^{_END}]*){_END}")
_AFTER_STOP = re.compile(f"([.!?])((?:[\\s,;–-]*{_REF}[^{_END}]*{_END})+)")  # a superscript
_EMPTY = re.compile(r"[(\[]\s*(?:see|e\.g\.,?|[,;–-]|\s)*[)\]]")  # what is left of "(12, 13)"


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """A sentence, with its draft where that is known, and the papers that it cites."""

    query: Query
    gold: frozenset[str]  # docids


@dataclass(frozen=True, slots=True)
class Article:
    """One full text."""

    draft: Query  # its id is that of the article
    cites: tuple[
        tuple[str, tuple[str, ...]], ...
    ]  # sentences, and the ids of the entries that each cites
    entries: dict[str, tuple[str, str]]  # DOI and title of the entries of the bibliography, by id


def read_jats(path: Path) -> Article:
    """Read an article in JATS XML.

    Raises:
        BadInputError: If it is not XML, or has no title.
    """
    try:
        root = _without_namespaces(parse(path).getroot())
    except (SyntaxError, ValueError) as error:  # of the parser, or of defusedxml
        raise BadInputError(path, f"this is not JATS XML ({error})") from error
    meta = root.find("./front/article-meta")
    title = "" if meta is None else _text(meta.find(".//article-title"))
    if meta is None or not title:
        raise BadInputError(path, "the article has no title; expected front/article-meta")
    years = [year for node in meta.iter("year") if (year := _text(node)).isdigit()]
    doi = _doi(meta, "article-id")
    draft = Query(
        id=doi or path.stem,
        title=title,
        abstract=_text(meta.find("abstract")),
        year=min(map(int, years), default=None),
        doi=doi,
        named=bool(doi),
    )
    entries = {
        ref.get("id", ""): (_doi(ref, "pub-id"), _text(ref.find(".//article-title")))
        for ref in root.iter("ref")
    }
    return Article(draft, tuple(_cites(root.find("body"))), entries)


def from_jats(paths: Iterable[Path], papers: Papers) -> Iterator[ContextQuery]:
    """Yield the sentences of articles that cite a paper of the corpus."""
    for path in paths:
        article = read_jats(path)
        rows = _rows_of(article.entries, papers)
        for number, (sentence, ids) in enumerate(article.cites, start=1):
            cited = frozenset[int]().union(*(rows.get(one, frozenset()) for one in ids))
            if cited and len(sentence.split()) >= FEWEST_WORDS:
                query_id = f"{article.draft.id}#{number}"
                query = replace(article.draft, id=query_id, context=sentence, named=False)
                yield ContextQuery(query, frozenset(papers.ids_at(sorted(cited))))


def from_trec(topics: Path, qrels: Path) -> Iterator[ContextQuery]:
    """Yield the sentences of topics that have gold.

    Raises:
        BadInputError: If a file cannot be read.
    """
    gold = read_qrels(qrels)
    for number, text in read_topics(topics):
        sentence = without_markers(text)
        if sentence and number in gold:
            query = Query(id=number, title=sentence, named=False, kind=QueryKind.SENTENCE)
            yield ContextQuery(query, gold[number])


def read_topics(path: Path) -> Iterator[tuple[str, str]]:
    """Yield number and sentence of each topic.

    Raises:
        BadInputError: If there is no topic, or a line without a tab outside of `<top>` blocks.
    """
    lines = [line.decode("utf-8", "replace").strip() for _, line in read_lines(path)]
    text = "\n".join(lines)
    blocks = re.findall(r"<top>(.*?)</top>", text, re.DOTALL | re.IGNORECASE)
    for block in blocks:
        number, sentence = _field("num", block), _field("title", block)
        yield number.removeprefix("Number:").strip(), sentence
    if blocks:
        return
    for place, line in enumerate(lines, start=1):
        number, tab, sentence = line.partition("\t")
        if line and not tab:
            raise BadInputError(path, "expected an id, a tab and a sentence", line=place)
        if line:
            yield number.strip(), sentence


def proxies(index: IndexFolder, split: str, most: int) -> list[ContextQuery]:
    """Return sentences of abstracts as a substitute for sentences with citations, always the same ones.

    For each paper of a split, the sentence of its abstract with the most words of the title of one of its references,
    drawn at random. Gold are the references whose titles share at least `SHARED` words with the sentence. This is no
    citation context: an abstract hardly cites, the gold favours searching by words, and the draft holds the sentence.
    """
    rng = np.random.default_rng(0)
    task = load_task(index, split)
    found: list[ContextQuery] = []
    for i in rng.permutation(len(task.queries)).tolist():
        query = task.queries[i]
        ids = sorted(task.qrels[query.id])
        rows = index.papers.rows_of(ids)
        titles = [_words(title) for title in index.papers.texts("title", rows).to_pylist()]
        if found_one := _proxy(query, ids, titles, rng):
            found.append(found_one)
        if len(found) == most:
            break
    return found


def _proxy(
    query: Query, ids: Sequence[str], titles: Sequence[frozenset[str]], rng: np.random.Generator
) -> ContextQuery | None:
    """Return the proxy of one paper; None if no sentence of its abstract shares `SHARED` words with a title."""
    parts = [one for one in sentences(query.abstract) if len(one.split()) >= FEWEST_WORDS]
    for place in rng.permutation(len(ids)).tolist():
        shared = [len(_words(one) & titles[place]) for one in parts]
        if max(shared, default=0) >= SHARED:
            sentence = parts[int(np.argmax(shared))]
            words = _words(sentence)
            gold = [
                docid
                for docid, title in zip(ids, titles, strict=True)
                if len(words & title) >= SHARED
            ]
            return ContextQuery(replace(query, context=sentence), frozenset(gold))
    return None


def _words(text: str) -> frozenset[str]:
    words = (word.lower() for word in WORD.findall(text))
    return frozenset(word for word in words if len(word) > 2 and word not in STOP_WORDS)


def _cites(body: Element | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each sentence of the paragraphs that cites, without markers, and the ids of what it cites."""
    for paragraph in () if body is None else body.iter("p"):
        text = _AFTER_STOP.sub(r"\2\1", " ".join(_marked(paragraph).split()))
        for sentence in sentences(text):
            ids = [one for group in _CITED.findall(sentence) for one in group.split()]
            if ids:
                plain = _EMPTY.sub(" ", _CITED.sub(" ", sentence))
                yield without_markers(plain), tuple(dict.fromkeys(ids))


def _marked(node: Element) -> str:
    """Return the text of a node with the ids of its citations in place of their text."""
    if node.tag == "xref" and node.get("ref-type") == "bibr":
        return f"{_REF}{node.get('rid', '')}{_END}"
    return (node.text or "") + "".join(_marked(child) + (child.tail or "") for child in node)


def _rows_of(entries: dict[str, tuple[str, str]], papers: Papers) -> dict[str, frozenset[int]]:
    """Return the rows of the entries of a bibliography, by DOI, else by title."""
    listed = [Entry(ids=(doi,) if doi else (), title=title) for doi, title in entries.values()]
    return dict(zip(entries, listed_rows(PaperList(tuple(listed)), papers), strict=True))


def _without_namespaces(root: Any) -> Element:
    for node in root.iter():
        if isinstance(node.tag, str):  # no comment
            node.tag = node.tag.rpartition("}")[2]
    return root


def _text(node: Element | None) -> str:
    return "" if node is None else " ".join("".join(node.itertext()).split())


def _doi(node: Element, tag: str) -> str:
    dois = (doi_of(_text(one)) for one in node.iter(tag) if one.get("pub-id-type") == "doi")
    return next(filter(None, dois), "")


def _field(name: str, block: str) -> str:
    match = re.search(rf"<{name}>(.*?)(?:</{name}>|(?=<)|\Z)", block, re.DOTALL | re.IGNORECASE)
    return " ".join(match[1].split()) if match else ""
