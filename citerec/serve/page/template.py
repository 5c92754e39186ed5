"""Renders the page; the only module of the server that imports jinja2."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from citerec.export.clean import visible
from citerec.serve.page.shortcuts import SHORTCUTS


def render(indexes: Sequence[Mapping[str, Any]], *, version: str, most_bytes: int) -> str:
    """Return the page as HTML.

    Args:
        indexes: The open indexes, the default first: `name`, `papers`, `first_year`, `last_year` and `found_by`.
        version: That of citerec.
        most_bytes: The largest upload.
    """
    return _template().render(
        indexes=indexes, version=version, most_bytes=most_bytes, shortcuts=SHORTCUTS
    )


def _clean(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # not markup


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("citerec.serve.page", "templates"),
        autoescape=True,
        finalize=_clean,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")
