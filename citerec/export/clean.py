"""Makes titles, names and ids from any source safe for a line of a file, a terminal and a spreadsheet."""

import re
from urllib.parse import quote

from citerec.text import stream_safe

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_URL = re.compile(r"(?:https?|ftp)://[^\s/]", re.IGNORECASE)
_NOT_IN_URL = re.compile(r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
_BREAK = re.compile(r"\r\n|[\t\n\r\x85\u2028\u2029]")
# invisible direction marks; text is legible without them
_MARK = re.compile(r"[\u061c\u200e\u200f\ufeff]")
# Escape codes; characters that override or isolate text direction; invisible tags.
_CONTROLLING = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb]"
    r"|[\U000e0000-\U000e007f]+"
)
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
    return visible_lines(_BREAK.sub(" ", text))


def visible_lines(text: str) -> str:
    r"""Return `text` for a terminal: characters that would control it, except `\n`, are replaced by visible ones.

    Control characters become their pictures; characters that override or isolate text direction and
    invisible tags become U+FFFD; invisible direction marks are dropped. Letters of all scripts and their marks stay.
    """
    if text.isascii() and text.isprintable():
        return text
    visible_text = _CONTROLLING.sub(
        lambda match: _picture(match[0]), _MARK.sub("", text.replace("\r\n", "\n"))
    )
    return stream_safe(_BREAK.sub(_break_or_space, _SURROGATE.sub("\ufffd", visible_text)))


def csv_cell(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet reads as a formula."""
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _break_or_space(match: re.Match[str]) -> str:
    return match[0] if match[0] == "\n" else " "


def _picture(control: str) -> str:
    """Return the visible character for a control character, such as \u241b for ESC."""
    code = ord(control[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def web_address(url: str) -> str:
    """Return a URL in characters that every format can hold; empty if `url` is not a URL.

    Characters that are not allowed in URLs, and braces and backslashes, which BibTeX interprets, are percent-encoded.
    """
    url = _SURROGATE.sub("", url.strip())
    if not _URL.match(url):
        return ""
    return _NOT_IN_URL.sub(lambda char: quote(char[0], safe=""), url)
