"""How much of a query an encoder cannot read: words that its tokenizer splits into single letters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from citerec.retrieve.bm25 import Bm25Retriever
from citerec.text import WORD, contents, normalized
from citerec.types import Eligibility, Query

# token ids of each text, with special tokens at both ends
Tokenize = Callable[[Sequence[str]], list[list[int]]]

UNREADABLE = 0.5  # share of unreadable letters from which recommendations are unreliable
SPLIT = 0.8  # tokens per letter from which a word counts as unreadable
_MOST = 40  # characters of a word that are examined
_LONG = 3  # letters from which a word is not a symbol
_AFTER_GREEK = 0x400  # end of Unicode's blocks of Latin and Greek letters
_UNKNOWN_WORD = "\U00012000"  # a cuneiform sign, which every vocabulary of pieces lacks


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The words of a text that an encoder cannot read."""

    words: frozenset[str]
    share: float  # of the letters of the text, in [0, 1]


def unreadable(text: str, tokens: Tokenize | None) -> Unreadable:
    """Find the words of a text that an encoder cannot read.

    ASCII words always count as readable: names, units and symbols of formulas are split into letters in any language.

    Args:
        text: The text.
        tokens: The tokenizer of the encoder; None for no encoder: then only Latin script is readable.
    """
    words = WORD.findall(text)
    non_ascii = [
        word for word in dict.fromkeys(words) if not word.isascii() and not _is_symbol(word)
    ]
    if tokens is None:
        unreadable_words = frozenset(word for word in non_ascii if not _is_latin(word))
    elif non_ascii:
        starts = [word[:_MOST] for word in non_ascii]  # scripts without spaces make long words
        [unknown_ids, *pieces] = tokens([_UNKNOWN_WORD, *starts])
        # tokenizers of bytes have no unknown token
        unknown = unknown_ids[1] if len(unknown_ids) == 3 else None
        unreadable_words = frozenset(
            word
            for word, start, ids in zip(non_ascii, starts, pieces, strict=True)
            if unknown in ids or len(ids) - 2 >= SPLIT * max(_letters(start), 2)
        )
    else:
        unreadable_words = frozenset[str]()
    total = sum(map(_letters, words))
    share = (
        sum(_letters(word) for word in words if word in unreadable_words) / total if total else 0.0
    )
    return Unreadable(unreadable_words, share)


def unreadable_share(query: Query, bm25: Bm25Retriever, tokens: Tokenize | None) -> float:
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
    [hits] = bm25.retrieve([query], [Eligibility()], 1)
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
