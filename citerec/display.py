"""Texts for people: counts, percentages, names, and what is safe on a line of a terminal, a file or a page."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from citerec.text import stream_safe


def some_of(texts: Sequence[str]) -> str:
    """Return the first texts of a list, and how many more there are: `a; b; c; and 2 more`."""
    more = f"; and {len(texts) - 3:,} more" if len(texts) > 3 else ""
    return "; ".join(map(visible, texts[:3])) + more


def shortened(text: str, most: int) -> str:
    """Return a text on one line, of at most `most` characters; it is cut behind a word where it has several."""
    text = one_line(text)
    return (
        text
        if len(text) <= most
        else f"{text[: max(most - 1, 0)].rsplit(' ', 1)[0]}…"[:most]
    )


def plural(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, such as `1 paper` or `2,000 papers`; `several` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def percentage(probability: float | None) -> str:
    """Return a probability in [0, 1] as whole percents, between <1% and >99%; a dash for None."""
    if probability is None:
        return "-"
    percents = round(100 * probability)
    return "<1%" if percents < 1 else ">99%" if percents > 99 else f"{percents}%"


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_TAGS = re.compile(r"[\U000e0000-\U000e007f]+")
_VISIBLE: dict[int, int | str | None] = {  # in place of what controls a terminal
    # the picture of a control character
    **{code: 0x2400 + code for code in range(0x20)},
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xFFF9, 0xFFFC)], "\ufffd"),
    # directions
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x2070)], "\ufffd"),
    **dict.fromkeys(map(ord, "\t\r\x85\u2028\u2029"), " "),
    # text is legible without these marks
    **dict.fromkeys(map(ord, "\u061c\u200e\u200f\ufeff")),
    0x0A: "\n",
    0x7F: "\u2421",
}
_URL = re.compile(r"(?:https?|ftp)://[^\s/]", re.IGNORECASE)
_NOT_IN_URL = re.compile(r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
# the first character of a cell that a spreadsheet may run as a formula
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def one_line(text: str) -> str:
    """Return `text` on one line of valid Unicode, with each run of white space as one space."""
    return " ".join(_CONTROL.sub(" ", _SURROGATE.sub("\ufffd", text)).split())


def visible(text: str) -> str:
    """Return `text` on one line for a terminal: characters that would control it are replaced by visible ones."""
    return " ".join(visible_line(text).split())


def visible_line(text: str) -> str:
    """Return `text` on one line for a terminal, as `visible`, but with its blanks unchanged."""
    return visible_lines(text).replace("\n", " ")


def visible_lines(text: str) -> str:
    r"""Return `text` for a terminal: characters that would control it, except `\n`, are replaced by visible ones.

    Control characters become their pictures; characters that override or isolate text direction and
    invisible tags become U+FFFD; invisible direction marks are dropped. Letters of all scripts and their marks stay.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SURROGATE.sub("\ufffd", _TAGS.sub("\ufffd", text.replace("\r\n", "\n")))
    return stream_safe(text.translate(_VISIBLE))


def csv_cell(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet reads as a formula."""
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def web_address(url: str) -> str:
    """Return a URL in characters that every format can hold; empty if `url` is not a URL.

    Characters that are not allowed in URLs, and braces and backslashes, which BibTeX interprets, are percent-encoded.
    """
    url = _SURROGATE.sub("", url.strip())
    if not _URL.match(url):
        return ""
    return _NOT_IN_URL.sub(lambda char: quote(char[0], safe=""), url)


def html_page(package: str, **shown: Any) -> str:
    """Return the filled `page.html` of a package; all text is escaped, and shown without control of its direction."""

    def clean(value: Any) -> Any:
        # not markup of the template
        return visible_lines(value) if type(value) is str else value

    return filled(
        package,
        "page.html",
        shown,
        autoescape=True,
        finalize=clean,
        lstrip_blocks=True,
    )


def filled(package: str, template: str, shown: Mapping[str, Any], **how: Any) -> str:
    """Return a filled template of a package; `how` are options of jinja's environment."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader(package, "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        **how,
    )
    return environment.get_template(template).render(**shown)
