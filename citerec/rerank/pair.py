"""Joins query and candidate to one input of a cross-encoder; the only place that does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from citerec.rerank.spec import RerankerSpec


@dataclass(frozen=True, slots=True)
class Specials:
    """The special tokens around the two texts of a pair."""

    before: tuple[int, ...]  # [CLS]
    between: tuple[int, ...]  # [SEP]; two of them in models of RoBERTa's kind
    after: tuple[int, ...]  # [SEP]

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Read them from the output of a tokenizer of transformers for two empty texts.

        Raises:
            ValueError: If it adds no special tokens around a pair, as BERT's does.
        """
        ids = list(tokenizer([""], [""])["input_ids"][0])  # a single "" would count as no text
        if len(ids) < 3:
            raise ValueError("its tokenizer does not add [CLS] and [SEP] around a pair of texts")
        return cls(tuple(ids[:1]), tuple(ids[1:-1]), tuple(ids[-1:]))

    def room(self, spec: RerankerSpec) -> tuple[int, int]:
        """Return how many text tokens the query and the candidate may have.

        The first separator counts for the query, all others for the candidate: 254 and 255 of 256 + 256.
        """
        query = spec.query_tokens - len(self.before) - 1
        return query, spec.candidate_tokens - len(self.between) + 1 - len(self.after)


def pair(
    query_ids: Sequence[int], candidate_ids: Sequence[int], specials: Specials, spec: RerankerSpec
) -> tuple[list[int], int]:
    """Return the tokens `[CLS] query [SEP] candidate [SEP]`, and how many of them are segment 0.

    Each side is truncated separately; unused tokens of one side are not given to the other.

    Args:
        query_ids: The query's text, without special tokens.
        candidate_ids: The candidate's text, likewise.
        specials: The special tokens of the model's tokenizer.
        spec: The limits of both sides.

    Returns:
        At most `spec.tokens` tokens; those up to the last separator between both texts are segment 0, others 1.
    """
    query, candidate = specials.room(spec)
    first = [*specials.before, *query_ids[:query], *specials.between]
    return [*first, *candidate_ids[:candidate], *specials.after], len(first)
