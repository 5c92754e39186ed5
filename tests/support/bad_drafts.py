"""Drafts that cannot be read: the file, and what the message must say."""

from support.documents import BODY, pdf, raw_pdf, rezipped, word

WORD = word(("Title", "A Title"), ("", "Some text."))
PDF = pdf("A Title of Words", "An abstract.")
LATEX = "\\documentclass{article}\n"
ENTITIES = f'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>{BODY.format("&b;")}'


def _markdown(front_matter: str) -> bytes:
    return f"---\n{front_matter}\n---\n\nText.\n".encode()


BAD_DRAFTS: dict[str, tuple[bytes, str]] = {
    # LaTeX
    "LaTeX without a title": (
        f"{LATEX}\\begin{{document}}x".encode(),
        "this draft (LaTeX) has no title that was found; give it yourself: --query FILE --title T",
    ),
    "LaTeX with an empty title": (f"{LATEX}\\title{{ }}".encode(), "no title"),
    "LaTeX whose title is a comment": (f"{LATEX}%\\title{{T}}".encode(), "no title"),
    "LaTeX whose title is not closed": (f"{LATEX}\\title{{T".encode(), "no title"),
    "LaTeX whose title is the definition of a class": (f"{LATEX}\\title{{#1}}".encode(), "no title"),
    "LaTeX of braces": (f"{LATEX}{'{' * 200_000}".encode(), "no title"),
    "LaTeX with a title of a megabyte": (
        f"{LATEX}\\title{{{'word ' * 200_000}}}".encode(), "characters; expected at most 20,000",
    ),
    "LaTeX of 17 MB": (LATEX.encode() + b"x" * (17 * 2**20), "has more than 16 MB or 500 files"),
    "a chapter of LaTeX": (b"\\section{Introduction}\nSome text.", "no title"),
    "LaTeX with a NUL": (f"{LATEX}\\title{{T}}\0".encode(), "binary data"),
    # Markdown
    "broken front matter": (_markdown("title: a: b"), "line 2: its front matter is not valid YAML"),
    "front matter with a tab": (_markdown("title:\n\t- a"), "line 3: its front matter is not"),
    "front matter of an object": (
        _markdown("title: !!python/object/apply:os.getcwd []"), "could not determine a constructor",
    ),
    "front matter with an impossible date": (_markdown("title: T\ndate: 2024-13-45"), "not valid YAML"),
    "front matter of aliases": (_markdown("a: &a [x, x]\ntitle: [*a, *a]"), "has aliases (*name)"),
    "deep front matter": (_markdown("a: " + "[" * 5_000), "is nested too deeply"),
    "front matter of 200 kB": (_markdown(f"a: {'x' * 200_000}"), "expected at most 131,072"),
    "front matter without a title": (_markdown("author: Ada"), "this draft (Markdown) has no title"),
    "Markdown whose title is a list": (_markdown("title: [a, b]"), "has no title"),
    "Markdown in Latin-1": (b"---\ntitle: T\n---\ncaf\xe9", "line 4: byte 0xe9 is not UTF-8"),
    # Word
    "a cut Word document": (WORD[: len(WORD) // 2], "this one is damaged"),
    "a Word document of nothing": (word(), "this draft (Word) has no title"),
    "a Word document with entities": (rezipped(WORD, word_document=ENTITIES), "declares entities"),
    "a Word document with broken XML": (rezipped(WORD, word_document="<w:document"), "is damaged"),
    "a Word document without its text": (rezipped(WORD, word_document=None), "zip archive"),
    "a Word document that unpacks to 40 MB": (
        rezipped(WORD, word_document=BODY.format(" " * 40_000_000)), "has more than 32 MB",
    ),
    "a Word document of many elements": (
        rezipped(WORD, word_document=BODY.format("<w:p/>" * 2_100_000)), "more than 1,000,000 elements",
    ),
    "a deep Word document": (
        rezipped(WORD, word_document=BODY.format("<w:p>" * 9_000 + "</w:p>" * 9_000)), "is damaged",
    ),
    "an archive of something else": (
        rezipped(word(), word_document=None, content=""), "citerec reads a query as",
    ),
    # PDF
    "a cut PDF": (PDF[:300], "but this one is damaged"),
    "a PDF without text": (raw_pdf(), "has no text: it is a scan or a picture; run OCR first"),
    "a PDF with a password": (pdf("A Title", "Text.", password="x"), "this one is encrypted"),
    "a PDF whose pages hold each other": (
        raw_pdf(pages=b"<< /Kids [2 0 R] /Count 1 >>"), "but this one is damaged",
    ),
    "a PDF of deep objects": (
        raw_pdf(pages=b"<< /Kids " + b"[" * 20_000 + b"]" * 20_000 + b" /Count 1 >>"), "this one is damaged",
    ),
    # HTML
    "HTML without a title": (b"<!doctype html><body><p>Text.</p></body>", "(HTML) has no title"),
    "an empty page": (b"<html></html>", "has no title"),
    "a page of 65 MB": (b"<html>" + b" " * (65 * 2**20), "expected at most 67,108,864"),
    "an old Word document": (b"\xd0\xcf\x11\xe0" + bytes(100), "an old Word document"),
    "RTF": (b"{\\rtf1 Text}", "an RTF document"),
}  # fmt: skip
