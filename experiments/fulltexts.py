"""Bodies of the articles of a file of whole texts, as `../shared/data/biomed/FULLTEXT.md` describes it."""

import gzip
from pathlib import Path

import orjson

from citerec.drafts.context import without_markers
from citerec.drafts.sentences import LEAST_WORDS
from citerec.text import word_count
from citerec.types import Sentence


def introductions(file: Path) -> dict[str, tuple[Sentence, ...]]:
    """Return the sentences of the first section of each article by its id, without citation markers."""
    found = dict[str, tuple[Sentence, ...]]()
    with gzip.open(file) as lines:
        for line in lines:
            article = orjson.loads(line)
            texts = [
                (without_markers(sentence["text"]), sentence["marks"] > 0)
                for sentence in article["sentences"]
                if sentence["section"] == 0
            ]
            heading = next(iter(article["sections"]), "")
            found[article["id"]] = tuple(
                Sentence(text, heading, has_marks)
                for text, has_marks in texts
                if word_count(text) >= LEAST_WORDS
            )
    return found
