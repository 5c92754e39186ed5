"""Citeomatic's JSON lines: `id title abstract out_citations in_citations year venue key_phrases`.

Source: Bhagavatula et al., NAACL 2018, which publishes its DBLP and PubMed corpora in this format.
"""

from collections.abc import Mapping

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper

OWN_KEYS = {"out_citations", "in_citations", "key_phrases", "out_citation_count"}


def matches(keys: Mapping[str, object]) -> bool:
    """Whether records with these keys are of this format; only canonical records have `citations`."""
    return "id" in keys and "citations" not in keys and not OWN_KEYS.isdisjoint(keys)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper(citations="out_citations")
