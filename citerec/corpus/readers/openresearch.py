"""Open Research Corpus (Semantic Scholar, 2017 on): JSON lines with `paperAbstract`, `outCitations`.

Source: https://api.semanticscholar.org/corpus, Ammar et al., NAACL 2018.
"""

from collections.abc import Mapping

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper

OWN_KEYS = {"paperAbstract", "outCitations", "inCitations", "s2Url", "keyPhrases"}


def matches(keys: Mapping[str, object]) -> bool:
    """Whether records with these keys are of this format; only canonical records have `citations`."""
    return "id" in keys and "citations" not in keys and not OWN_KEYS.isdisjoint(keys)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper(
        abstract="paperAbstract",
        citations="outCitations",
        url="s2Url",
        volume="journalVolume",
        pages="journalPages",
    )
