"""Titles, names and ids come from anywhere: made safe for a line of a file and for a terminal."""

import re
from urllib.parse import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_URL = re.compile(r"(?:https?|ftp)://[^\s/]", re.IGNORECASE)
_NOT_IN_URL = re.compile(r"[^!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]")
_UNSEEN = re.compile(  # escape codes, and what turns the direction of text
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def one_line(text: str) -> str:
    """Return `text` on one line that can be encoded, its runs of white space as one space."""
    return " ".join(_CONTROL.sub(" ", _SURROGATE.sub("\ufffd", text)).split())


def visible(text: str) -> str:
    """Return `text` on one line, for a terminal: what would act on it is shown instead."""
    return one_line(_UNSEEN.sub(lambda found: _picture(found[0]), text))


def _picture(control: str) -> str:
    """Return the sign that stands for a control character, such as \u241b for ESC."""
    code = ord(control)
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
