"""citerec's own JSONL; only `id` and `title` are required.

The others: `abstract year authors venue citations doi url type volume issue pages publisher`.
"""

from collections.abc import Mapping

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper


def matches(keys: Mapping[str, object]) -> bool:
    """Whether a record of these keys is of this format."""
    return "id" in keys and "title" in keys


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper()
