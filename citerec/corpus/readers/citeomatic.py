"""Citeomatic's JSON lines: `id title abstract out_citations in_citations year venue key_phrases`.

Source: Bhagavatula et al., NAACL 2018; the form in which its DBLP and PubMed corpora are given.
"""

from collections.abc import Mapping

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper

OWN_KEYS = {"out_citations", "in_citations", "key_phrases", "out_citation_count"}


def matches(keys: Mapping[str, object]) -> bool:
    """Whether a record of these keys is of this format; `citations` are canonical alone."""
    return "id" in keys and "citations" not in keys and not OWN_KEYS.isdisjoint(keys)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper(citations="out_citations")
