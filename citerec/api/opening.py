"""`citerec.open`."""

from citerec.api.recommender import IndexPath, Recommender
from citerec.config import RecommendConfig
from citerec.folder import IndexFolder
from citerec.types import Log


def open(  # noqa: A001  (as `gzip.open`: always `citerec.open`)
    index: IndexPath | IndexFolder | None = None,
    config: RecommendConfig | None = None,
    log: Log | None = None,
) -> Recommender:
    """Open an index and its models; see `Recommender` for the arguments."""
    return Recommender(index, config, log)
