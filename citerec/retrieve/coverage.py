"""How much of a query is in words that an encoder cannot read: those that its tokenizer spells letter by letter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from citerec.retrieve.bm25 import Bm25Retriever
from citerec.text import WORD, contents, normalized
from citerec.types import Eligible, Query

Tokens = Callable[
    [Sequence[str]], list[list[int]]
]  # ids of the pieces of each text, special ones at both ends

SPELLED = 0.8  # pieces of a letter, from which on a word is spelled
_MOST = 40  # characters of a word that are looked at
_LONG = 3  # letters from which on a word is no symbol
_AFTER_GREEK = 0x400  # where Unicode's blocks of Latin and Greek letters end
_NO_WORD = "\U00012000"  # a cuneiform sign, which stands for what a vocabulary does not hold


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The words of a text that an encoder cannot read."""

    words: frozenset[str]
    share: float  # of the letters of the text, in [0, 1]


def unreadable(text: str, tokens: Tokens | None) -> Unreadable:
    """Find the words of a text that an encoder cannot read.

    A word of ASCII letters is never one: names, units and the symbols of formulas are spelled in any language.

    Args:
        text: The text.
        tokens: The tokenizer of the encoder; None for no encoder, which reads no script but Latin.
    """
    words = WORD.findall(text)
    strange = [word for word in dict.fromkeys(words) if not word.isascii() and not _is_symbol(word)]
    if tokens is None:
        found = frozenset(word for word in strange if not _is_latin(word))
    elif strange:
        starts = [word[:_MOST] for word in strange]  # scripts without spaces make long words
        [strangest, *pieces] = tokens([_NO_WORD, *starts])
        unknown = (
            strangest[1] if len(strangest) == 3 else None
        )  # tokenizers of bytes know everything
        found = frozenset(
            word
            for word, start, ids in zip(strange, starts, pieces, strict=True)
            if unknown in ids or len(ids) - 2 >= SPELLED * max(_letters(start), 2)
        )
    else:
        found = frozenset[str]()
    total = sum(map(_letters, words))
    share = sum(_letters(word) for word in words if word in found) / total if total else 0.0
    return Unreadable(found, share)


def unreadable_share(query: Query, bm25: Bm25Retriever, tokens: Tokens | None) -> float:
    """Return the share of a query's letters in words that no retriever can read, in [0, 1].

    These are words that the encoder spells letter by letter, unless the best paper of BM25 holds one of them.

    Args:
        query: The query.
        bm25: Knows the words of the corpus.
        tokens: The tokenizer of the encoder; None for BM25 alone.
    """
    checked = unreadable(contents(query), tokens)
    if not checked.words:
        return 0.0
    [hits] = bm25.retrieve([query], [Eligible()], 1)
    [matched] = bm25.matches(query, hits.rows.tolist(), most=1000) or [[]]
    known = {word.lower() for word in matched}
    return 0.0 if any(word.lower() in known for word in checked.words) else checked.share


def _letters(word: str) -> int:
    return sum(character.isalpha() for character in word)


def _is_symbol(word: str) -> bool:
    """Whether a word is short and Latin or Greek: a symbol of a formula, such as x², α or ℝⁿ."""
    return _letters(word) < _LONG and _is_latin(word)


def _is_latin(word: str) -> bool:
    """Whether the letters of a word are Latin, with or without marks, or Greek, as in formulas."""
    plain = normalized("NFKD", word[:_MOST])
    return all(ord(character) < _AFTER_GREEK for character in plain)
