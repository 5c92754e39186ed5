r"""Reads a draft from LaTeX source: title, abstract, authors, year, and the references that its `\cite` commands name.

Macros that the draft defines are expanded in these fields; pylatexenc turns them into text. The files that a draft
includes, and its bibliography, are read from its own folder alone.
"""

from pathlib import Path

from citerec.drafts.document import Document, document_year
from citerec.drafts.tex import fields
from citerec.drafts.tex.citations import cited_references
from citerec.drafts.tex.decoding import decode_tex
from citerec.drafts.tex.macros import defined_macros, expand
from citerec.drafts.tex.people import names
from citerec.drafts.tex.plain import MAX_TEXT, as_text
from citerec.drafts.tex.source import Source
from citerec.errors import extra


def read(data: bytes, name: str, path: Path | None) -> Document:
    """Read a LaTeX draft.

    Args:
        data: The source; UTF-8, the encoding that it declares, or Latin-1.
        name: The name of the draft in messages.
        path: Its file, whose folder holds the files that it includes; None for standard input.

    Raises:
        BadInputError: If it is too large.
        MissingExtraError: If pylatexenc is not installed.
    """
    with extra("drafts"):
        import pylatexenc  # noqa: F401  # pyright: ignore[reportUnusedImport]

    files = Source(name, path.parent if path else None)
    source = files.flatten(decode_tex(data))
    macros = defined_macros(source)

    def text(latex: str) -> str:
        return as_text(expand(latex[:MAX_TEXT], macros))

    stated = text(fields.abstract(source))
    cited = cited_references(source, macros, (path, name), files.notices)
    return Document(
        title=text(fields.title(source)),
        abstract=stated,
        body="" if stated else text(fields.introduction(source)),
        authors=names(expand(latex[:MAX_TEXT], macros) for latex in fields.authors(source)),
        year=document_year(text(fields.date(source))),
        cited=cited,
        notices=tuple(files.notices),
    )
