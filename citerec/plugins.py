"""Parts that other packages add to citerec by entry points.

| group | name of the entry point | object |
|---|---|---|
| `citerec.encoders` | the file that marks a folder of such a model | `(ModelSource, EncodeConfig | None) -> Encoder` |
| `citerec.exporters` | a value of `citerec recommend --format` | `citerec.export.Exporter` |
| `citerec.retrievers` | a value of `citerec recommend --retriever` | `(IndexFolder) -> citerec.Retriever` |
| `citerec.rerankers` | a value of `--reranker` | `(IndexFolder) -> citerec.Reranker` |
| `citerec.features` | a feature of trained rankers | `citerec.rank.features.Feature` |
| `citerec.readers` | a value of `citerec index --format` | `citerec.corpus.readers.Format` |

A name that citerec itself uses in a group keeps its meaning. `docs/guides/extend.md` has examples of readers, an
exporter and a retriever.
"""

from enum import StrEnum
from functools import cache
from re import fullmatch
from typing import TYPE_CHECKING, Any

from citerec.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Plugins(StrEnum):
    """The groups of entry points."""

    ENCODERS = "citerec.encoders"
    EXPORTERS = "citerec.exporters"
    READERS = "citerec.readers"
    RETRIEVERS = "citerec.retrievers"
    RERANKERS = "citerec.rerankers"
    FEATURES = "citerec.features"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts of this group, in alphabetical order."""
        return tuple(sorted(_registered(self)))

    def load(self, name: str) -> Any:
        """Import a part; ConfigError if there is none of this name, or its package cannot be imported."""
        registered = _registered(self)
        if name not in registered:
            there = (
                f"there are: {', '.join(self.names)}"
                if registered
                else "install the package that adds it"
            )
            part = self.removeprefix("citerec.").removesuffix("s")
            raise ConfigError(f"no {part} {name!r}; {there}")
        point = registered[name]
        if not fullmatch(r"\w[\w.]*\s*:\s*\w[\w.]*\s*(\[.*\])?\s*", point.value):
            raise ConfigError(
                f"{name!r} of {self} is registered as {point.value!r}; expected module:object, such as "
                "'my_package.part:Part'; correct the entry point and install its package again"
            )
        try:
            return point.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"{name!r} of {self}, registered as {point.value}, cannot be loaded: {error}"
            ) from error


# parts of citerec that its lower layers reach by name alone
_OWN = {Plugins.READERS: {"library": "citerec.library:LIBRARY"}}


@cache
def _registered(group: str) -> "dict[str, EntryPoint]":
    # imported here, as few commands need it
    from importlib.metadata import EntryPoint, entry_points

    own = _OWN.get(Plugins(group), {})
    return {
        **{point.name: point for point in entry_points(group=group)},
        **{name: EntryPoint(name, value, group) for name, value in own.items()},
    }
