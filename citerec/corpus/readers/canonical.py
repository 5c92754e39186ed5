"""citerec's own JSONL: `id title abstract year authors venue citations`, the last five optional."""

from collections.abc import Mapping

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper


def matches(keys: Mapping[str, object]) -> bool:
    """Whether a record of these keys is of this format."""
    return "id" in keys and "title" in keys


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper()
