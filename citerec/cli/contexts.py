"""`citerec recommend` for a sentence of a draft, and for a list of references without a draft."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.config import RecommendConfig
from citerec.errors import ConfigError
from citerec.types import Log, QueryKind

if TYPE_CHECKING:
    from citerec.drafts import QueryFile

ContextOption = Annotated[
    str | None,
    typer.Option(
        help="The sentence that needs a reference, with or without its draft; [CITE] marks the place."
    ),
]


def with_context(
    drafts: Callable[[], "QueryFile"],
    context: str | None,
    cited: Path | None,
    *,
    has_draft: bool,
) -> "QueryFile":
    """Return the queries of a draft and a sentence, of either alone, or of a list of references alone.

    Args:
        drafts: Reads the drafts; called if there is one.
        context: The sentence.
        cited: The list of references.
        has_draft: Whether an option names a draft.

    Raises:
        ConfigError: If the context has no words, or there are several drafts for it.
        CiterecError: As `drafts` raises.
    """
    from citerec.drafts import QueryFile
    from citerec.drafts.context import read_context, sentence_query

    if not has_draft and context is not None:
        return QueryFile((sentence_query(context),))
    if not has_draft and cited is not None:
        from citerec.recommend import list_query

        return QueryFile((list_query(cited.name),))
    given = drafts()
    if context is None:
        return given
    if given.batch:
        raise ConfigError(
            f"--context is a sentence of one draft, but --query holds {len(given.queries):,}; "
            'give one draft, or the key "context" in each line of a JSONL file'
        )
    [query] = given.queries
    return replace(given, queries=(replace(query, context=read_context(context)),))


def suited(
    config: RecommendConfig, drafts: "QueryFile", reranker: str | None, warn: Log
) -> RecommendConfig:
    """Return the settings for some queries: without the models that read a draft, if there is only a list.

    Args:
        config: The settings.
        drafts: The queries.
        reranker: The model of `--reranker`.
        warn: Receives a warning if a model was named and is not used.
    """
    if drafts.queries[0].kind is not QueryKind.REFERENCES:
        return config
    if config.ranker not in ("auto", "none") or (reranker or "auto") not in ("auto", "none"):
        warn("--ranker and --reranker need a draft; --cited alone has none, so they are not used")
    return config.replace(reranker="none", ranker="none", popularity=True, authors=True)
