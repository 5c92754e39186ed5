"""How a paper or a draft becomes the text that a stage reads; decided here and nowhere else."""

from enum import StrEnum

from citerec.types import Paper, Query


class QueryForm(StrEnum):
    """What of a query BM25 is given (the forms that the reranker paper compares)."""

    TITLE = "title"
    TITLE_ABSTRACT = "title+abstract"
    KEY_TERMS = "key-terms"


def contents(paper: Paper | Query) -> str:
    """Return the text that is indexed and, as title + abstract, searched with."""
    return f"{paper.title}\n{paper.abstract}" if paper.abstract else paper.title


def query_text(query: Query, form: QueryForm) -> str:
    """Return the words of `query` that `form` reads; key terms are picked from title + abstract."""
    return query.title if form is QueryForm.TITLE else contents(query)
