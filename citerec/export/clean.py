"""Titles, names and ids come from anywhere: made safe for a line of a file, a terminal and a spreadsheet."""

import re
from urllib.parse import quote

from citerec.text import stream_safe

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_URL = re.compile(r"(?:https?|ftp)://[^\s/]", re.IGNORECASE)
_NOT_IN_URL = re.compile(r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
_BREAK = re.compile(r"\r\n|[\t\n\r\x85\u2028\u2029]")
_MARK = re.compile(r"[\u061c\u200e\u200f\ufeff]")  # unseen; scripts are read without
_ACTING = re.compile(  # escape codes; what overrides or isolates the direction of text; unseen text
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb]"
    r"|[\U000e0000-\U000e007f]+"
)
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # how a cell begins that a spreadsheet may run
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def one_line(text: str) -> str:
    """Return `text` on one line that can be encoded, its runs of white space as one space."""
    return " ".join(_CONTROL.sub(" ", _SURROGATE.sub("\ufffd", text)).split())


def visible(text: str) -> str:
    """Return `text` on one line, for a terminal: what would act on it is shown instead."""
    return " ".join(visible_line(text).split())


def visible_line(text: str) -> str:
    """Return `text` on one line, for a terminal, as `visible` does; its blanks stay."""
    return visible_lines(_BREAK.sub(" ", text))


def visible_lines(text: str) -> str:
    r"""Return `text` for a terminal: what would act on it is shown instead, all but `\n`.

    Control characters become their pictures, those that override or isolate the direction of text and
    invisible tags U+FFFD; invisible direction marks go. Letters of any script and their marks stay.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = _ACTING.sub(lambda found: _picture(found[0]), _MARK.sub("", text.replace("\r\n", "\n")))
    return stream_safe(_BREAK.sub(_kept_break, _SURROGATE.sub("\ufffd", shown)))


def csv_cell(text: str) -> str:
    """Return a text as a cell of a CSV file: a spreadsheet does not take it for a formula."""
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _kept_break(found: re.Match[str]) -> str:
    return found[0] if found[0] == "\n" else " "


def _picture(control: str) -> str:
    """Return the sign that stands for a control character, such as \u241b for ESC."""
    code = ord(control[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def web_address(url: str) -> str:
    """Return a URL that every format can hold; empty if `url` is none.

    Signs that no URL may have, and the braces and backslashes that BibTeX would read, are percent-encoded.
    """
    url = _SURROGATE.sub("", url.strip())
    if not _URL.match(url):
        return ""
    return _NOT_IN_URL.sub(lambda sign: quote(sign[0], safe=""), url)
