"""What `citerec recommend` is given, read and checked, before an index is opened."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from citerec.cli.rerank import RerankOptions
from citerec.config import Bm25Config
from citerec.errors import CiterecError
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.bibliography.paper_list import PaperList
    from citerec.drafts import QueryFile

NO_CITED = "none"  # for --cited: not even the references that the draft cites


@dataclass(slots=True)
class ListedFile:
    """A list of papers that an option names; it is read at its first use, and once, as it may be a pipe."""

    path: str
    _read: "PaperList | CiterecError | None" = None

    @classmethod
    def named(cls, path: Path | None) -> Self | None:
        """Return the list of an option; None if it is not given."""
        return None if path is None else cls(str(path))

    @property
    def is_none(self) -> bool:
        """Whether it is no file, but the word for no references at all."""
        return self.path == NO_CITED

    def read(self) -> "PaperList":
        """Return the list.

        Raises:
            BadInputError: As `read_paper_list` raises.
        """
        from citerec.bibliography.paper_list import read_paper_list

        if self._read is None:
            try:
                self._read = read_paper_list(Path(self.path))
            except CiterecError as error:
                self._read = error
        if isinstance(self._read, CiterecError):
            raise self._read
        return self._read


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `citerec recommend` that decide how papers are found and ordered, with their defaults."""

    k: int = 20
    bm25: Bm25Config = Bm25Config()
    encoder: str = "auto"
    fusion: str = "auto"  # or rrf, weighted
    retrievers: tuple[str, ...] = ()
    rerank: RerankOptions = RerankOptions()
    ranker: str = "auto"
    popularity: bool = True
    authors: bool = True
    diversity: float = 0.0
    year_max: int | None = None
    explain: bool = False
    heap: str | None = None  # of the JVM

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are named, but for `auto` and `none`."""
        named = (self.encoder, self.ranker, self.rerank.model or "auto")
        return tuple(name for name in named if name not in ("auto", "none"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendRequest:
    """What is searched for, and how."""

    options: Options
    drafts: "QueryFile"
    excluded: ListedFile | None
    cited: ListedFile | None

    @property
    def queries(self) -> tuple[Query, ...]:
        """The drafts, or what stands for a sentence or a list of references."""
        return self.drafts.queries
