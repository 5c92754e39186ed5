"""citerec's own JSONL format; only `id` and `title` are required.

The optional fields: `abstract year authors venue citations doi url type volume issue pages publisher`.
"""

from collections.abc import Mapping

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper


def matches(keys: Mapping[str, object]) -> bool:
    """Whether records with these keys are of this format."""
    return "id" in keys and "title" in keys


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper()
