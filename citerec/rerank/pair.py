"""Query and candidate as one input of a cross-encoder; decided here and nowhere else."""

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
        """Read them from how a tokenizer of transformers joins two empty texts.

        Raises:
            ValueError: If it puts no special tokens around a pair, as BERT-like ones do.
        """
        ids = list(tokenizer([""], [""])["input_ids"][0])  # a lone "" would count as no text
        if len(ids) < 3:
            raise ValueError("its tokenizer does not put [CLS] and [SEP] around a pair of texts")
        return cls(tuple(ids[:1]), tuple(ids[1:-1]), tuple(ids[-1:]))

    def room(self, spec: RerankerSpec) -> tuple[int, int]:
        """Return how many tokens of text the query and the candidate may have.

        The first separator counts as the query's, all others as the candidate's: 254 and 255 of 256 + 256.
        """
        query = spec.query_tokens - len(self.before) - 1
        return query, spec.candidate_tokens - len(self.between) + 1 - len(self.after)


def pair(
    query_ids: Sequence[int], candidate_ids: Sequence[int], specials: Specials, spec: RerankerSpec
) -> tuple[list[int], int]:
    """Return the tokens `[CLS] query [SEP] candidate [SEP]`, and how many of them are segment 0.

    Each side is cut on its own; room that one leaves is not given to the other.

    Args:
        query_ids: The query's text, without special tokens.
        candidate_ids: The candidate's.
        specials: Of the model's tokenizer.
        spec: How many tokens each side may have.

    Returns:
        At most `spec.tokens` tokens; those up to the first separator are segment 0, the rest segment 1.
    """
    query, candidate = specials.room(spec)
    first = [*specials.before, *query_ids[:query], *specials.between]
    return [*first, *candidate_ids[:candidate], *specials.after], len(first)
