"""Makes drafts as Word documents and PDFs, good ones and harmful ones."""

import subprocess
import zipfile
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import Literal

import fpdf
import pypandoc


@cache
def word(markdown: str, kind: str = "docx") -> bytes:
    """Return a Word document of Markdown, or an `odt` or `rtf`; a title in front matter gets the style Title."""
    command = [
        pypandoc.get_pandoc_path(),
        "-s",
        "-f",
        "markdown",
        "-t",
        kind,
        "-o",
        "-",
    ]
    return subprocess.run(
        command, input=markdown.encode(), capture_output=True, check=True
    ).stdout


def rezipped(data: bytes, text: str | None) -> bytes:
    """Replace the text of a Word document, `word/document.xml`; None removes it."""
    out = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            if name != "word/document.xml":
                new.writestr(name, old.read(name))
        if text is not None:
            new.writestr("word/document.xml", text)
    return out.getvalue()


def pdf(
    title: str,
    abstract: str,
    *,
    heading: str = "Abstract",
    after: str = "1 Introduction",
    columns: int = 1,
    password: str = "",
    font: str = "",
) -> bytes:
    """Return a PDF: a small running head, a large title, an author, and the abstract in one or two columns."""
    page = fpdf.FPDF()
    page.add_page()
    if font:  # of the characters that the standard fonts lack
        page.add_font("Own", fname=font)
    name = "Own" if font else "Times"
    if password:
        page.set_encryption(owner_password="owner", user_password=password)
    for size, text in (
        (9, "Proceedings of an Invented Conference"),
        (20, title),
        (11, "Ada Lovelace"),
    ):
        page.set_font(name, size=size)
        page.multi_cell(0, size / 2, text, new_x="LMARGIN", new_y="NEXT")
    page.set_font(name, size=10)
    body = "The first section begins here, and it is not a part of the abstract. " * 30
    with page.text_columns(ncols=columns, gutter=6) as column:
        column.write(f"{heading}\n{abstract}\n{after}\n{body}")
    return bytes(page.output())


def whole_text(
    title: str, text: str, references: Sequence[str], doi: str = ""
) -> bytes:
    """Return a PDF of a whole paper: its title, an abstract, a text that cites, and the references."""
    page = fpdf.FPDF()
    page.add_page()
    abstract = (
        "Abstract\nWe report what was found in one invented study of invented plants."
    )
    parts = (
        (20, title),
        (10, f"Ada Lovelace, 2021. {doi}\n\n{abstract}\n\n1 Introduction\n{text}"),
        (10, "\nReferences\n" + "\n".join(references)),
    )
    for size, part in parts:
        page.set_font("Times", size=size)
        page.multi_cell(0, size / 2, part, align="L", new_x="LMARGIN", new_y="NEXT")
    return bytes(page.output())


def small_library() -> dict[str, bytes]:
    """Return three PDFs by name: the paper on sage cites those on basil and mint."""
    basil = "Sacred basil heals the wounds of laboratory mice"
    mint = "Wild mint repels the larvae of many mosquitoes"
    sage = "Common sage improves the memory of older adults"
    others = [f"{n}. Other N. A book of nobody here, volume {n}. 1999." for n in (3, 4)]
    cited = [f"1. Lovelace A. {basil}. 2021.", f"2. Hopper G. {mint}. 2021.", *others]
    claim = "Leaves of many plants heal wounds in a few days [1, 2]."
    return {
        "basil.pdf": whole_text(basil, "Mice heal.", others, "10.1234/basil"),
        "mint.pdf": whole_text(mint, "Larvae flee.", others),
        "sage.pdf": whole_text(sage, claim, cited),
    }


def placed(
    *pages: list[tuple[float, float, float, str]], style: Literal["", "B"] = ""
) -> bytes:
    """Return a PDF of texts at places: each (millimetres from the left, from the top, points of the font, text).

    The first page is in a style, such as bold.
    """
    document = fpdf.FPDF()
    for number, texts in enumerate(pages):
        document.add_page()
        for x, y, size, text in texts:
            document.set_font("Times", "" if number else style, size=size)
            document.text(x, y, text)
    return bytes(document.output())


def raw_pdf(
    content: bytes = b"", pages: bytes = b"<< /Kids [3 0 R] /Count 1 >>"
) -> bytes:
    """Return a PDF of one page with the given content stream and page tree."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        pages,
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    out, places = b"%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + (
        b"xref\n0 5\n0000000000 65535 f \n%strailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (table, len(out))
    )
